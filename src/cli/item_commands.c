/* quipu get, put, update, delete: one item at a time. */
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "cli/phrase.h"
#include "cli/plain.h"
#include "cli/print.h"
#include "cli/values.h"

/* What the four have in common: a table with its keys, and a request that grows. */
struct item_call {
    const struct arguments *arguments;
    struct place place;
    struct schema schema;
    struct arena schema_arena, arena; /* the latter for one item and its reply */
    struct phrases phrases;
    struct buf request;
    int status;
};

static bool begin(struct item_call *call, const struct arguments *arguments, enum place_use use)
{
    *call = (struct item_call){.arguments = arguments, .status = EXIT_FAULT};
    call->phrases = phrases_of_request(&call->arena);
    if (!place_open(&call->place, arguments, use)) return false;
    if (!schema_load(&call->place, &call->schema_arena, argument_word(arguments, 0), NULL, &call->schema))
        return false;
    request_begin(&call->request, call->schema.table);
    return true;
}

static int end(struct item_call *call)
{
    place_close(&call->place);
    phrases_free(&call->phrases);
    buf_free(&call->request);
    arena_free(&call->arena);
    arena_free(&call->schema_arena);
    return call->status;
}

/* What was typed makes no sense. */
static bool refuse(struct item_call *call)
{
    call->status = complain_of_usage(call->arguments, "%s", call->phrases.fault);
    return false;
}

static bool put_key(struct item_call *call, const char *hash, const char *range)
{
    put_name(&call->request, "Key");
    return phrase_key(&call->request, &call->phrases, &call->schema, hash, range) || refuse(call);
}

static bool put_expression(struct item_call *call, const char *member, const char *text)
{
    struct buf expression = {0};
    bool fine = phrase_put(&expression, &call->phrases, slice_of(text));
    put_string_member(&call->request, member, buf_view(&expression));
    buf_free(&expression);
    return fine || refuse(call);
}

static bool put_condition(struct item_call *call)
{
    const char *text = argument_text(call->arguments, "if");
    return !text || put_expression(call, "ConditionExpression", text);
}

/* The call itself; NULL after complaining. */
static const struct node *ask(struct item_call *call, const char *operation)
{
    phrases_put_members(&call->request, &call->phrases);
    buf_byte(&call->request, '}');
    struct answer answer = place_ask(&call->place, &call->arena, operation, &call->request);
    if (!answer.error) return answer.json;
    if (strcmp(answer.error, "ConditionalCheckFailedException") == 0)
        complain("the condition is not met: %s", argument_text(call->arguments, "if"));
    else
        place_complain(&call->place, call->schema.table, answer.error, answer.message);
    return NULL;
}

/* The old or new item of a reply, when it has one. */
static void print_attributes(struct item_call *call, const struct node *reply)
{
    const struct node *item = node_member(reply, "Attributes");
    bool fine = !item || print_item(form_chosen(call->arguments), &call->schema, item->source);
    call->status = fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- get ---- */

static bool put_fields(struct item_call *call)
{
    const char *fields = argument_text(call->arguments, "fields");
    struct buf paths = {0};
    if (!fields) return true;
    bool fine = phrase_put_paths(&paths, &call->phrases, slice_of(fields));
    put_string_member(&call->request, "ProjectionExpression", buf_view(&paths));
    buf_free(&paths);
    return fine || refuse(call);
}

static void get_one(struct item_call *call)
{
    const struct arguments *arguments = call->arguments;
    if (!put_key(call, argument_word(arguments, 1), argument_word(arguments, 2)) || !put_fields(call)) return;
    put_raw_member(&call->request, "ConsistentRead", SLICE("true"));
    const struct node *reply = ask(call, "GetItem");
    const struct node *item = node_member(reply, "Item");
    if (item)
        call->status = print_item(form_chosen(arguments), &call->schema, item->source) ? EXIT_FINE
                                                                                       : EXIT_FAULT;
    else if (reply)
        complain("there is no such item in %s", call->schema.table);
}

static int get(const struct arguments *arguments)
{
    struct item_call call;
    if (begin(&call, arguments, PLACE_READ)) get_one(&call);
    return end(&call);
}

/* ---- put ---- */

static bool refuse_item(struct item_call *call, const char *fault, struct slice text)
{
    call->phrases.fault =
        arena_printf(&call->arena, "%s: %.*s", fault, (int)(text.len < 200 ? text.len : 200), text.data).data;
    return refuse(call);
}

/* An item in plain or in DynamoDB's JSON. */
static bool put_item_json(struct item_call *call, struct slice text)
{
    const char *fault;
    const struct node *item = node_parse(&call->arena, text, &fault);
    if (!item) return refuse_item(call, fault, text);
    put_name(&call->request, "Item");
    if (argument_given(call->arguments, "dynamodb-json"))
        buf_slice(&call->request, item->source);
    else if (!plain_item_to_dynamo(&call->request, item, &fault))
        return refuse_item(call, fault, text);
    return true;
}

/* A key's type is known; other texts are texts. */
static bool put_text_value(struct item_call *call, struct slice name, struct slice text)
{
    struct key_part part = {name, 'S'};
    if (slice_equal(name, call->schema.hash.name)) part.type = call->schema.hash.type;
    if (slice_equal(name, call->schema.range.name)) part.type = call->schema.range.type;
    return phrase_key_value(&call->request, &call->phrases, &part, text) || refuse(call);
}

static bool put_json_value(struct item_call *call, struct slice text)
{
    const char *fault;
    const struct node *value = node_parse(&call->arena, text, &fault);
    if (value && plain_value_to_dynamo(&call->request, value, &fault)) return true;
    return refuse_item(call, fault, text);
}

/* name=text and name:=json */
static bool put_item_words(struct item_call *call)
{
    put_name(&call->request, "Item");
    buf_byte(&call->request, '{');
    for (size_t i = 1; i < argument_words(call->arguments); i++) {
        const char *word = argument_word(call->arguments, i), *equals = strchr(word, '=');
        bool is_json = equals && equals > word && equals[-1] == ':';
        if (!equals || equals - is_json == word)
            return refuse_item(call, "an item is {\"name\":value,...}, or name=text and name:=json",
                               slice_of(word));
        struct slice name = {word, (size_t)(equals - word) - (is_json ? 1 : 0)};
        put_comma(&call->request);
        json_put_string(&call->request, name);
        buf_byte(&call->request, ':');
        if (!(is_json ? put_json_value(call, slice_of(equals + 1))
                      : put_text_value(call, name, slice_of(equals + 1))))
            return false;
    }
    buf_byte(&call->request, '}');
    return true;
}

/* The request is complete but for the condition. */
static void put_finish(struct item_call *call)
{
    if (!put_condition(call)) return;
    if (argument_given(call->arguments, "old"))
        put_string_member(&call->request, "ReturnValues", SLICE("ALL_OLD"));
    const struct node *reply = ask(call, "PutItem");
    if (reply)
        print_attributes(call, reply);
    else
        call->status = EXIT_FAULT;
}

/* One of many: a request of its own. What is wrong with it is no wrong usage. */
static bool put_next(struct item_call *call, struct slice text)
{
    phrases_free(&call->phrases);
    arena_reset(&call->arena);
    call->phrases = phrases_of_request(&call->arena);
    request_begin(&call->request, call->schema.table);
    if (put_item_json(call, text)) put_finish(call);
    if (call->status == EXIT_USAGE) call->status = EXIT_FAULT;
    return call->status == EXIT_FINE;
}

/* Items from standard input, one after the other. */
static void put_many(struct item_call *call)
{
    struct values values;
    struct slice text;
    unsigned long long count = 0;
    enum values_result result;
    values_begin(&values, stdin);
    call->status = EXIT_FINE;
    while ((result = values_next(&values, &text)) == VALUES_FOUND && put_next(call, text)) count++;
    if (result != VALUES_FOUND && result != VALUES_END) {
        struct buf fault = {0};
        values_put_fault(&fault, result);
        call->status = complain("%.*s", (int)fault.len, fault.data);
        buf_free(&fault);
    }
    if (call->status != EXIT_FINE)
        complain("stopped behind %s, in line %llu", counted(count, "item").text, values.line);
    else if (errors_are_terminal())
        fprintf(stderr, "%s\n", counted(count, "item").text);
    values_end(&values);
}

static int put(const struct arguments *arguments)
{
    struct item_call call;
    const char *item = argument_word(arguments, 1);
    if (!begin(&call, arguments, PLACE_WRITE)) return end(&call);
    if (!item || strcmp(item, "-") == 0)
        put_many(&call);
    else if (item[0] != '{' ? put_item_words(&call) : put_item_json(&call, slice_of(item)))
        put_finish(&call);
    return end(&call);
}

/* ---- update ---- */

static void update_one(struct item_call *call)
{
    const struct arguments *arguments = call->arguments;
    size_t words = argument_words(arguments);
    const char *range = words == 4 ? argument_word(arguments, 2) : NULL;
    if (!put_key(call, argument_word(arguments, 1), range)) return;
    if (!put_expression(call, "UpdateExpression", argument_word(arguments, words - 1)) ||
        !put_condition(call))
        return;
    put_string_member(&call->request, "ReturnValues", SLICE("ALL_NEW"));
    const struct node *reply = ask(call, "UpdateItem");
    if (reply) print_attributes(call, reply);
}

static int update(const struct arguments *arguments)
{
    struct item_call call;
    if (begin(&call, arguments, PLACE_WRITE)) update_one(&call);
    return end(&call);
}

/* ---- delete ---- */

static void delete_one(struct item_call *call)
{
    const struct arguments *arguments = call->arguments;
    if (!put_key(call, argument_word(arguments, 1), argument_word(arguments, 2)) || !put_condition(call))
        return;
    put_string_member(&call->request, "ReturnValues", SLICE("ALL_OLD"));
    const struct node *reply = ask(call, "DeleteItem");
    if (!reply) return;
    if (!node_member(reply, "Attributes"))
        complain("there is no such item in %s", call->schema.table);
    else if (argument_given(arguments, "old"))
        print_attributes(call, reply);
    else
        call->status = EXIT_FINE;
}

static int delete (const struct arguments *arguments)
{
    struct item_call call;
    if (begin(&call, arguments, PLACE_WRITE)) delete_one(&call);
    return end(&call);
}

/* ---- the rows ---- */

#define IF_FLAG                                                                                              \
    {                                                                                                        \
        "if", "CONDITION", "only when this is so: 'plays < 10 and attribute_exists(Artist)'"                 \
    }

static const struct flag get_flags[] = {{"fields", "LIST", "only these attributes: 'Year,tags[0]'"},
                                        FORM_FLAGS};
static const struct flag put_flags[] = {
    IF_FLAG, {"old", NULL, "print the item that was there before"}, FORM_FLAGS};
static const struct flag update_flags[] = {IF_FLAG, FORM_FLAGS};
static const struct flag delete_flags[] = {
    IF_FLAG, {"old", NULL, "print the item that was deleted"}, FORM_FLAGS};

const struct command command_get = {
    .name = "get",
    .summary = "print an item",
    .usage = "TABLE HASH [RANGE] [flags]",
    .about = "Prints the item with this key: readable on a terminal, JSON otherwise. Keys are written as "
             "they are; the\n"
             "table knows their types (binary ones are base64). Exit status 1 when there is no such item.",
    FLAGS(get_flags),
    .examples = "  quipu get Music 'Nina Simone' Sinnerman\n"
                "  quipu get Users 42 --fields name,email --on https://dynamodb.eu-central-1.amazonaws.com",
    .works_on_data = true,
    .words_min = 2,
    .words_max = 3,
    .run = get};

const struct command command_put = {
    .name = "put",
    .summary = "write an item",
    .usage = "TABLE [ITEM | NAME=TEXT | NAME:=JSON]... [flags]",
    .about = "Writes an item, in place of the one with the same key. It is plain JSON, or attributes one by "
             "one; without\n"
             "either, items are read from standard input, one after the other.\n"
             "\n"
             "In plain JSON, text, numbers, lists and objects are what they are in DynamoDB. What JSON lacks "
             "is written\n"
             "so: binary {\"$binary\":\"base64\"}, sets {\"$set\":[1,2]}, and {\"$map\":{...}} for an object "
             "that would be\n"
             "mistaken for one of these. With --dynamodb-json items are read and printed in DynamoDB's JSON.",
    FLAGS(put_flags),
    .examples =
        "  quipu put Music '{\"Artist\":\"Nina Simone\",\"Song\":\"Sinnerman\",\"Year\":1965}'\n"
        "  quipu put Music Artist='Nina Simone' Song=Sinnerman Year:=1965 tags:='{\"$set\":[\"jazz\"]}'\n"
        "  quipu put Music Artist=Odetta Song=Gallows --if 'attribute_not_exists(Artist)'\n"
        "  quipu scan Music --on ./old | quipu put Music",
    .works_on_data = true,
    .words_min = 1,
    .words_max = WORDS_MANY,
    .run = put};

const struct command command_update = {
    .name = "update",
    .summary = "change an item",
    .usage = "TABLE HASH [RANGE] EXPRESSION [flags]",
    .about = "Changes an item by an update expression and prints it as it is then. Names and values stand "
             "where they are\n"
             "meant: no # and no :. Names with odd letters go into `backticks`, texts into \"quotes\" or "
             "'quotes'.",
    FLAGS(update_flags),
    .examples = "  quipu update Music 'Nina Simone' Sinnerman 'SET plays = if_not_exists(plays, 0) + 1'\n"
                "  quipu update Users 42 'SET name = \"Ada\", address.city = \"London\" REMOVE draft'\n"
                "  quipu update Jobs 7 'ADD done {\"$set\":[12]}' --if 'not contains(done, 12)'",
    .works_on_data = true,
    .words_min = 3,
    .words_max = 4,
    .run = update};

const struct command command_delete = {
    .name = "delete",
    .summary = "delete an item",
    .usage = "TABLE HASH [RANGE] [flags]",
    .about = "Deletes the item with this key. Exit status 1 when there was none.",
    FLAGS(delete_flags),
    .examples = "  quipu delete Music 'Nina Simone' Sinnerman\n"
                "  quipu delete Jobs 7 --if 'state = \"done\"' --old",
    .works_on_data = true,
    .words_min = 2,
    .words_max = 3,
    .run = delete};
