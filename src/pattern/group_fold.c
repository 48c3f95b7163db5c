/* Groups: values that are folded from the events' data, one for each name of the rules' `fold`. The tables and what
 * holds for them: group.c.
 *
 * A head has the values in `fold`. The write that adds an event puts them there as they are with it, on the condition
 * that no other event has come since the head was read: so they are always those of the events that the head counts.
 * When the rules change what is folded, the values are made anew of all events (group_change.c). There the events with
 * items of their own come in the order of their ids, which matters for `last` only: it goes by the events' times.
 *
 * An event that has nothing under the path, or null, changes nothing. One whose value cannot be folded (a text for a
 * sum) is refused; where it was there before the rules were, it is passed over. */
#include "base/fail.h"
#include "pattern/group.h"
#include "value/value.h"

/* X(name): how values are folded, and what the rules call it. */
#define FOLDS(X) X(count) X(sum) X(min) X(max) X(last) X(distinct)
enum how {
#define X(name) FOLD_##name,
    FOLDS(X) FOLD_COUNT
#undef X
};
static const char *const how_words[] = {
#define X(name) #name,
    FOLDS(X)
#undef X
};

struct fold {
    struct slice name;
    enum how how;
    struct slice path; /* "a.b.0", dots divide members and places; "*": the whole */
    struct slice kind; /* of the events that count; SLICE_NONE: all */
};

/* ---- the settings ---- */

static bool is_name(struct slice text)
{
    bool fits = text.len && text.len <= LIMIT_FOLD_NAME_BYTES &&
                !(text.data[0] >= '0' && text.data[0] <= '9');
    for (size_t i = 0; i < text.len; i++) fits &= group_is_word(text.data[i]);
    return fits;
}

/* What is wrong with {"sum": "amount", "of": "payment"}; NULL: nothing. */
static const char *fold_fault(struct flow *flow, struct slice plain)
{
    struct slice word, value;
    unsigned hows = 0;
    if (raw_kind(plain) != JSON_OBJECT) return "is like {\"sum\": \"amount\", \"of\": \"payment\"}";
    raw_each_member (flow->arena, plain, &word, &value) {
        struct slice text = raw_string(flow->arena, value);
        bool is_how = false;
        for (unsigned i = 0; i < FOLD_COUNT; i++) is_how |= slice_equal(word, slice_of(how_words[i]));
        if (!is_how && !slice_equal(word, SLICE("of")))
            return "knows count, sum, min, max, last and distinct, one of them, and of";
        if (!text.len || text.len > LIMIT_FOLD_PATH_BYTES)
            return is_how
                       ? "needs a path of 1 to 200 bytes, like \"amount\" or \"order.total\"; \"*\" is the whole data"
                       : "needs a kind of 1 to 200 bytes in of";
        hows += is_how;
    }
    return hows == 1 ? NULL : "must have one of count, sum, min, max, last and distinct";
}

void group_folds_check(struct flow *flow, struct slice plain)
{
    struct slice name, value;
    size_t count = 0;
    if (raw_kind(plain) != JSON_OBJECT)
        task_refuse(flow, 400, "bad-rule", "fold must be an object, like {\"paid\": {\"sum\": \"amount\"}}.");
    raw_each_member (flow->arena, plain, &name, &value) {
        const char *fault = !is_name(name)
                                ? "is no name: it begins with a letter and holds up to 50 letters, digits "
                                  "and _"
                            : group_when_knows(name)
                                ? "means something else in a condition: take another name"
                                : fold_fault(flow, value);
        if (fault) task_refuse(flow, 400, "bad-rule", "fold.%.*s %s.", SLICE_ARG(flow_shown(name)), fault);
        if (++count > LIMIT_GROUP_FOLDS) task_refuse(flow, 400, "bad-rule", "fold has up to 10 names.");
    }
    if (!count) task_refuse(flow, 400, "bad-rule", "fold must have at least one name.");
}

/* As it is stored: the definition is a map attribute. */
static struct fold fold_read(struct flow *flow, struct slice name, struct slice definition)
{
    struct slice members = raw_member(flow->arena, definition, "M");
    struct fold fold = {.name = name, .kind = item_text(flow->arena, members, "of")};
    for (unsigned i = 0; i < FOLD_COUNT; i++) {
        struct slice path = item_text(flow->arena, members, how_words[i]);
        if (!path.data) continue;
        fold.how = (enum how)i;
        fold.path = path;
    }
    return fold;
}

enum group_fold_type group_fold_type(struct flow *flow, struct slice plain)
{
    for (unsigned i = 0; i < FOLD_COUNT; i++) {
        if (!raw_member(flow->arena, plain, how_words[i]).data) continue;
        return i == FOLD_count || i == FOLD_sum ? GROUP_FOLD_NUMBER
               : i == FOLD_min || i == FOLD_max ? GROUP_FOLD_SCALAR
               : i == FOLD_distinct             ? GROUP_FOLD_SET
                                                : GROUP_FOLD_ANY;
    }
    return GROUP_FOLD_ANY;
}

/* ---- values ---- */

/* An attribute value within another one; SLICE_NONE: it is not there, or null. */
static struct slice value_at(struct flow *flow, struct slice attribute, struct slice path)
{
    struct slice type, content;
    if (slice_equal(path, SLICE("*"))) path = SLICE("");
    while (path.len && attribute.data) {
        struct slice word = slice_cut(&path, '.'), element;
        int64_t place;
        if (!attribute_open(flow->arena, attribute, &type, &content)) return SLICE_NONE;
        attribute = SLICE_NONE;
        if (slice_equal(type, SLICE("M"))) {
            attribute = raw_member(flow->arena, content,
                                   arena_printf(flow->arena, "%.*s", SLICE_ARG(word)).data);
        } else if (slice_equal(type, SLICE("L")) && raw_int(word, &place)) {
            raw_each (flow->arena, content, &element)
                if (place-- == 0) attribute = element;
        }
    }
    if (!attribute_open(flow->arena, attribute, &type, &content) || slice_equal(type, SLICE("NULL")))
        return SLICE_NONE;
    return attribute;
}

static const char *fault_of(struct flow *flow, const struct fold *fold, const char *sentence)
{
    bool is_whole = slice_equal(fold->path, SLICE("*"));
    return arena_printf(flow->arena, "%s%.*s %s, and the rules' fold \"%.*s\" takes its %s",
                        is_whole ? "data" : "data.", is_whole ? 0 : (int)fold->path.len, fold->path.data,
                        sentence, SLICE_ARG(fold->name), how_words[fold->how])
        .data;
}

/* The canonical text of a number attribute. */
static struct slice number_of(struct flow *flow, struct slice attribute)
{
    struct slice text = attribute_text(flow->arena, attribute), canonical;
    return number_canonical(flow->arena, text, &canonical) == NUMBER_OK ? canonical : text;
}

static struct slice sum_take(struct flow *flow, const struct fold *fold, struct slice sum, struct slice value,
                             const char **fault)
{
    struct number a = {0}, b, out;
    struct slice type, content;
    if (sum.data) ensure(number_parse(attribute_text(flow->arena, sum), &a) == NUMBER_OK);
    attribute_open(flow->arena, value, &type, &content);
    if (!slice_equal(type, SLICE("N")) || number_parse(attribute_text(flow->arena, value), &b) != NUMBER_OK)
        *fault = fault_of(flow, fold, "is no number");
    else if (number_add(&a, &b, &out) != NUMBER_OK)
        *fault = fault_of(flow, fold, "makes a sum of more than 38 digits");
    else
        return flow_compose(flow, "{'N':%s}", number_text(flow->arena, &out));
    return sum;
}

static struct slice least_take(struct flow *flow, const struct fold *fold, struct slice least,
                               struct slice value, const char **fault)
{
    struct slice type, least_type, content;
    attribute_open(flow->arena, value, &type, &content);
    bool is_number = slice_equal(type, SLICE("N"));
    struct slice text = is_number ? number_of(flow, value) : attribute_text(flow->arena, value);
    if (!is_number && !slice_equal(type, SLICE("S")))
        *fault = fault_of(flow, fold, "is neither a number nor a text");
    else if (text.len > LIMIT_FOLD_VALUE_BYTES)
        *fault = fault_of(flow, fold, "has more than 256 bytes");
    else if (least.data && attribute_open(flow->arena, least, &least_type, &content) &&
             !slice_equal(type, least_type))
        *fault = fault_of(flow, fold,
                          is_number ? "is a number, where texts were before"
                                    : "is a text, where numbers were before");
    if (*fault) return least;
    struct slice before = least.data ? attribute_text(flow->arena, least) : text;
    int order = is_number ? number_text_compare(text, before) : slice_compare(text, before);
    bool is_kept = least.data && (fold->how == FOLD_min ? order >= 0 : order <= 0);
    return is_kept ? least : is_number ? flow_compose(flow, "{'N':%s}", text) : value;
}

static struct slice set_take(struct flow *flow, const struct fold *fold, struct slice set, struct slice value,
                             const char **fault)
{
    struct slice type, set_type = SLICE(""), members = SLICE(""), content, member;
    int64_t count = 0;
    attribute_open(flow->arena, value, &type, &content);
    bool is_number = slice_equal(type, SLICE("N"));
    struct slice text = is_number ? number_of(flow, value) : attribute_text(flow->arena, value);
    if ((!is_number && !slice_equal(type, SLICE("S"))) || !text.len)
        *fault = fault_of(flow, fold, "is neither a number nor a text");
    else if (text.len > LIMIT_FOLD_VALUE_BYTES)
        *fault = fault_of(flow, fold, "has more than 256 bytes");
    else if (set.data && attribute_open(flow->arena, set, &set_type, &members) &&
             !slice_equal(set_type, is_number ? SLICE("NS") : SLICE("SS")))
        *fault = fault_of(flow, fold,
                          is_number ? "is a number, where texts were before"
                                    : "is a text, where numbers were before");
    if (*fault) return set;
    raw_each (flow->arena, members, &member) {
        struct slice there = raw_text(flow->arena, member);
        count++;
        if (is_number ? number_text_compare(there, text) == 0 : slice_equal(there, text)) return set;
    }
    if (count >= LIMIT_FOLD_VALUES) {
        *fault = fault_of(flow, fold, "is new, though there are 100 different ones");
        return set;
    }
    members = members.len ? (struct slice){members.data + 1, members.len - 2}
                          : members; /* without its brackets */
    return flow_compose(flow, "{%s:[%A%,%s]}", is_number ? SLICE("NS") : SLICE("SS"), members, text);
}

static struct slice last_take(struct flow *flow, const struct fold *fold, struct slice before,
                              struct slice value, const char **fault)
{
    struct slice type, content;
    if (value.len > LIMIT_FOLD_VALUE_BYTES) {
        *fault = fault_of(flow, fold, "has more than 256 bytes as JSON");
        return before;
    }
    attribute_open(flow->arena, value, &type, &content);
    return slice_equal(type, SLICE("N")) ? flow_compose(flow, "{'N':%s}", number_of(flow, value)) : value;
}

/* What a fold's value is with one more, which is there. */
static struct slice fold_take(struct flow *flow, const struct fold *fold, struct slice before,
                              struct slice value, const char **fault)
{
    switch (fold->how) {
    case FOLD_count: return flow_compose(flow, "%N", attribute_int(flow->arena, before, 0) + 1);
    case FOLD_sum: return sum_take(flow, fold, before, value, fault);
    case FOLD_min:
    case FOLD_max: return least_take(flow, fold, before, value, fault);
    case FOLD_distinct: return set_take(flow, fold, before, value, fault);
    case FOLD_last: return last_take(flow, fold, before, value, fault);
    case FOLD_COUNT: break;
    }
    return before;
}

/* ---- events ---- */

struct fold_state {
    struct slice values; /* as in a head */
    struct slice
        times; /* of the events that `last` values are of, {"name":{"S":when}}; SLICE_NONE: none is asked for */
};

/* The state with one more event. *fault: what is wrong with it, which is passed over; NULL: nothing. */
static struct fold_state state_next(struct flow *flow, struct slice folds, struct fold_state state,
                                    struct slice event, const char **fault)
{
    struct slice name, definition, values = SLICE(""), times = SLICE("");
    struct slice kind = item_text(flow->arena, event, "kind"), time = item_text(flow->arena, event, "time");
    struct slice data = item_attribute(flow->arena, event, "data");
    *fault = NULL;
    raw_each_member (flow->arena, folds, &name, &definition) {
        struct fold fold = fold_read(flow, name, definition);
        const char *named = arena_printf(flow->arena, "%.*s", SLICE_ARG(name)).data, *wrong = NULL;
        struct slice value = value_at(flow, data, fold.path);
        struct slice now = item_attribute(flow->arena, state.values, named);
        struct slice since = item_text(flow->arena, state.times, named);
        bool is_there = value.data || (fold.how == FOLD_count && slice_equal(fold.path, SLICE("*")));
        bool is_older = since.data && slice_compare(time, since) < 0;
        if (!now.data && (fold.how == FOLD_count || fold.how == FOLD_sum)) now = SLICE("{\"N\":\"0\"}");
        if (is_there && !is_older && (!fold.kind.data || slice_equal(fold.kind, kind))) {
            now = fold_take(flow, &fold, now, value, &wrong);
            if (fold.how == FOLD_last && !wrong) since = time;
        }
        if (wrong && !*fault) *fault = wrong;
        if (now.data) values = flow_compose(flow, "%A%,%s:%A", values, name, now);
        if (state.times.data && since.data) times = flow_compose(flow, "%A%,%s:%S", times, name, since);
    }
    return (struct fold_state){flow_compose(flow, "{%A}", values),
                               state.times.data ? flow_compose(flow, "{%A}", times) : SLICE_NONE};
}

struct slice group_fold_next(struct flow *flow, struct slice folds, struct slice values, struct slice event,
                             const char **fault)
{
    return state_next(flow, folds, (struct fold_state){values, SLICE_NONE}, event, fault).values;
}

/* Gives back what was allocated since the mark but for the state, and where the next page begins. */
static struct slice state_rewind(struct flow *flow, struct fold_state *state, struct slice after,
                                 struct arena_mark mark)
{
    struct buf values = {0}, times = {0}, start = {0};
    buf_slice(&values, state->values);
    buf_slice(&times, state->times);
    buf_slice(&start, after);
    flow_rewind(flow, mark);
    *state = (struct fold_state){arena_take(flow->arena, &values), arena_take(flow->arena, &times)};
    return arena_take(flow->arena, &start);
}

struct slice group_fold_all(struct flow *flow, const struct group *group, struct slice folds)
{
    struct fold_state state = {SLICE("{}"), SLICE("{}")};
    struct slice event, last = item_text(flow->arena, group->redo, "id"), after = SLICE_NONE;
    const char *fault;
    raw_each (flow->arena, item_content(flow->arena, group->item, "events"), &event)
        state = state_next(flow, folds, state, raw_member(flow->arena, event, "M"), &fault);
    if (!group->spilled.data) return state.values;
    struct arena_mark mark = arena_mark(flow->arena);
    do {
        task_query(flow, "#part = :part", READ_FRESH "%[,'ExclusiveStartKey':{'part':%S,'id':%S}%]",
                   "':part':%S", &group_events_table, group->spilled, after, group->spilled);
        after = item_text(flow->arena, flow_last_key(flow), "id");
        raw_each (flow->arena, flow_items(flow), &event)
            if (!slice_equal(item_text(flow->arena, event, "id"), last))
                state = state_next(flow, folds, state, event, &fault);
        if (after.data) after = state_rewind(flow, &state, after, mark);
    } while (after.data);
    return state_next(flow, folds, state, group->redo, &fault)
        .values; /* the last one, which may have no item yet */
}
