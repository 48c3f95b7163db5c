/* A policy is read once as JSON; its members are kept as they stand in the text and put together anew in the
 * service's order. Nothing here decides who may do what: that is not asked on one machine. */
#include "api/policy_document.h"

#include "base/raw.h"

#define POLICY_BYTES   20480 /* the service's limit, white space included */
#define MEMBERS_MAX    32
#define STATEMENTS_MAX 512 /* more do not fit in a policy */
#define BAD_POLICY     INVALID_VALUES "Invalid policy document: "

struct member {
    struct slice name, raw; /* raw: the value as it stands */
};

struct members {
    struct member list[MEMBERS_MAX];
    unsigned count;
};

struct policy {
    struct verdict *verdict;
    struct arena *arena;
    struct slice text;
    struct buf out;
    struct slice sids[STATEMENTS_MAX];
    unsigned sid_count, statement_count;
    bool is_unbounded;
};

/* ---- reading ---- */

static bool reject_json(struct policy *policy)
{
    return reject(policy->verdict, BAD_POLICY "This policy contains invalid Json");
}

/* Where a part of the text stands, counted from 1; the end of the text when it is no part. */
static bool reject_syntax(struct policy *policy, const char *at)
{
    unsigned line = 1, column = 1;
    for (const char *c = policy->text.data; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    return reject(policy->verdict, BAD_POLICY "Syntax error at position (%u,%u)", line, column);
}

/* The members of an object. False when there are too many, or one twice: the service takes that for broken
 * JSON. */
static bool read_members(struct policy *policy, struct slice raw, struct members *out)
{
    struct raw_walk walk;
    struct slice name, value;
    out->count = 0;
    if (raw_walk_begin(&walk, policy->arena, raw) != JSON_OBJECT) return false;
    while (raw_walk_next(&walk, &name, &value)) {
        for (unsigned i = 0; i < out->count; i++)
            if (slice_equal(out->list[i].name, name)) return false;
        if (out->count == MEMBERS_MAX) return false;
        out->list[out->count++] = (struct member){name, value};
    }
    return json_done(&walk.reader);
}

static const struct member *find_member(const struct members *members, const char *name)
{
    for (unsigned i = 0; i < members->count; i++)
        if (slice_equal(members->list[i].name, slice_of(name))) return &members->list[i];
    return NULL;
}

/* ---- writing ---- */

/* Without white space outside of strings. */
static void put_raw(struct buf *out, struct slice raw)
{
    bool in_string = false;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.data[i];
        if (!in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) continue;
        buf_byte(out, (unsigned char)c);
        if (in_string && c == '\\') buf_byte(out, (unsigned char)raw.data[++i]);
        if (c == '"') in_string = !in_string;
    }
}

static bool is_account(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    return text.len == 12;
}

/* A string or list; accounts as ARNs where they stand for principals, no element twice. */
static void put_one_or_many(struct policy *policy, struct slice raw, bool of_accounts)
{
    struct raw_walk walk;
    struct slice element = raw;
    struct buf list = {0}, one = {0};
    unsigned count = 0;
    bool is_list = raw_walk_begin(&walk, policy->arena, raw) == JSON_ARRAY;
    while (is_list ? raw_walk_next(&walk, NULL, &element) : !count) {
        struct slice account = raw_string(policy->arena, element);
        one.len = 0;
        if (of_accounts && is_account(account))
            buf_printf(&one, "\"arn:aws:iam::%.*s:root\"", SLICE_ARG(account));
        else
            put_raw(&one, element);
        if (count && slice_contains(buf_view(&list), buf_view(&one))) continue;
        if (count++) buf_byte(&list, ',');
        buf_slice(&list, buf_view(&one));
    }
    if (count != 1) buf_byte(&policy->out, '[');
    buf_slice(&policy->out, buf_view(&list));
    if (count != 1) buf_byte(&policy->out, ']');
    buf_free(&list);
    buf_free(&one);
}

static bool put_principal(struct policy *policy, const struct member *principal)
{
    struct members kinds;
    if (raw_kind(principal->raw) == JSON_STRING) {
        put_raw(&policy->out, principal->raw);
        if (slice_equal(raw_string(policy->arena, principal->raw), SLICE("*"))) return true;
        return reject(policy->verdict, INVALID_VALUES "Invalid principal in policy document.");
    }
    if (!read_members(policy, principal->raw, &kinds)) return reject_syntax(policy, principal->raw.data);
    buf_byte(&policy->out, '{');
    for (unsigned i = 0; i < kinds.count; i++) {
        if (i) buf_byte(&policy->out, ',');
        json_put_string(&policy->out, kinds.list[i].name);
        buf_byte(&policy->out, ':');
        put_one_or_many(policy, kinds.list[i].raw, slice_equal(kinds.list[i].name, SLICE("AWS")));
    }
    buf_byte(&policy->out, '}');
    return true;
}

static bool put_effect(struct policy *policy, const struct member *effect)
{
    struct slice text = raw_string(policy->arena, effect->raw);
    if (slice_equal_ignoring_case(text, SLICE("Allow")))
        buf_text(&policy->out, "\"Allow\"");
    else if (slice_equal_ignoring_case(text, SLICE("Deny")))
        buf_text(&policy->out, "\"Deny\"");
    else
        return reject_syntax(policy, effect->raw.data);
    return true;
}

/* ---- statements ---- */

static const char *const statement_order[] = {"Sid",          "Effect",      "Principal",
                                              "NotPrincipal", "Action",      "NotAction",
                                              "Resource",     "NotResource", "Condition"};

static bool check_statement(struct policy *policy, const struct members *members)
{
    static const struct {
        const char *name, *instead;
    } required[] = {{"Effect", "Effect"},
                    {"Principal", "NotPrincipal"},
                    {"Action", "NotAction"},
                    {"Resource", "NotResource"}};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!find_member(members, required[i].name) && !find_member(members, required[i].instead))
            return reject(policy->verdict, BAD_POLICY "Missing required field %s", required[i].name);
    for (unsigned i = 0; i < members->count; i++) {
        size_t known = 0;
        while (known < 9 && !slice_equal(members->list[i].name, slice_of(statement_order[known]))) known++;
        if (known == 9) return reject_syntax(policy, members->list[i].raw.data);
    }
    const struct member *sid = find_member(members, "Sid");
    if (!sid) return true;
    struct slice text = raw_string(policy->arena, sid->raw);
    for (unsigned i = 0; i < policy->sid_count; i++)
        if (slice_equal(policy->sids[i], text))
            return reject(policy->verdict, BAD_POLICY "The Statement Ids in the policy are not unique");
    policy->sids[policy->sid_count++] = text;
    return true;
}

/* Everybody, without a condition. */
static bool is_unbounded(struct policy *policy, const struct members *members)
{
    const struct member *principal = find_member(members, "Principal"),
                        *effect = find_member(members, "Effect");
    struct members kinds;
    if (!principal || find_member(members, "Condition") ||
        !slice_equal_ignoring_case(raw_string(policy->arena, effect->raw), SLICE("Allow")))
        return false;
    if (slice_equal(raw_string(policy->arena, principal->raw), SLICE("*"))) return true;
    const struct member *aws = read_members(policy, principal->raw, &kinds) ? find_member(&kinds, "AWS")
                                                                            : NULL;
    return aws && slice_contains(aws->raw, SLICE("\"*\""));
}

static bool put_statement_member(struct policy *policy, const struct member *member)
{
    struct slice name = member->name;
    if (slice_equal(name, SLICE("Effect"))) return put_effect(policy, member);
    if (slice_equal(name, SLICE("Principal")) || slice_equal(name, SLICE("NotPrincipal")))
        return put_principal(policy, member);
    if (slice_equal(name, SLICE("Sid")) || slice_equal(name, SLICE("Condition")))
        put_raw(&policy->out, member->raw);
    else
        put_one_or_many(policy, member->raw, false);
    return true;
}

static bool put_statement(struct policy *policy, struct slice raw)
{
    struct members members;
    const char *before = "{";
    if (!read_members(policy, raw, &members)) return reject_syntax(policy, raw.data);
    if (policy->statement_count == STATEMENTS_MAX) return reject_syntax(policy, raw.data);
    if (!check_statement(policy, &members)) return false;
    if (policy->statement_count++) buf_byte(&policy->out, ',');
    for (size_t i = 0; i < sizeof statement_order / sizeof *statement_order; i++) {
        const struct member *member = find_member(&members, statement_order[i]);
        if (!member) continue;
        buf_printf(&policy->out, "%s\"%s\":", before, statement_order[i]);
        if (!put_statement_member(policy, member)) return false;
        before = ",";
    }
    buf_byte(&policy->out, '}');
    policy->is_unbounded |= is_unbounded(policy, &members);
    return true;
}

static bool put_statements(struct policy *policy, struct slice raw)
{
    struct raw_walk walk;
    struct slice statement;
    enum json_kind kind = raw_walk_begin(&walk, policy->arena, raw);
    buf_text(&policy->out, ",\"Statement\":[");
    if (kind == JSON_OBJECT) {
        if (!put_statement(policy, raw)) return false;
    } else if (kind == JSON_ARRAY) {
        while (raw_walk_next(&walk, NULL, &statement))
            if (!put_statement(policy, statement)) return false;
    } else {
        return reject_syntax(policy, raw.data);
    }
    buf_text(&policy->out, "]}");
    return policy->statement_count > 0 ||
           reject(policy->verdict, BAD_POLICY "Could not parse the policy: Statement is empty!");
}

/* ---- the document ---- */

static bool put_document(struct policy *policy)
{
    struct members members;
    enum json_kind kind = raw_kind(policy->text);
    if (kind == JSON_NULL) return reject(policy->verdict, BAD_POLICY "This text appears not to be a policy");
    if (!read_members(policy, policy->text, &members)) return reject_json(policy);
    const struct member *version = find_member(&members, "Version"), *id = find_member(&members, "Id"),
                        *statement = find_member(&members, "Statement");
    if (!statement) return reject_syntax(policy, policy->text.data + policy->text.len);
    buf_text(&policy->out, "{\"Version\":");
    put_raw(&policy->out, version ? version->raw : SLICE("\"2008-10-17\""));
    if (id) {
        buf_text(&policy->out, ",\"Id\":");
        put_raw(&policy->out, id->raw);
    }
    if (!put_statements(policy, statement->raw)) return false;
    if (policy->is_unbounded)
        return reject(policy->verdict, "Resource-based policy grants unbounded access in one or more "
                                       "elements. Please revise the policy to ensure least-privilege form of "
                                       "access");
    return true;
}

bool policy_canonical(struct verdict *verdict, struct slice text, struct slice *out)
{
    if (text.len > POLICY_BYTES)
        return reject(verdict, INVALID_VALUES "Maximum policy size of %d bytes exceeded", POLICY_BYTES);
    struct policy *policy = arena_new(verdict->arena, struct policy);
    policy->verdict = verdict;
    policy->arena = verdict->arena;
    policy->text = text;
    bool is_sound = put_document(policy);
    if (is_sound) *out = arena_copy(verdict->arena, buf_view(&policy->out));
    buf_free(&policy->out);
    return is_sound;
}
