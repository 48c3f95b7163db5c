/* Histories: versions that are no longer to be kept go.
 *
 * By their number: of each item the last so many stay. By their age: what had been replaced (or removed) for
 * longer than `keep`; so what held at any time within `keep` can still be told, however old it is. Of a
 * history that was deleted: all.
 *
 * A sweep walks through the table of versions, some pages at a time, then rests: where it stands, and how
 * many versions of the item there it has seen, is the item "*" of the settings. Several servers may walk at
 * the same time; what one has deleted the other does not find. So an item has a few versions more than
 * needed, for as long as a walk takes. */
#include "calendar/calendar.h"
#include "pattern/history.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 5000
/* Each walk reads all versions there are, which costs on AWS: between two of them is a rest, fifty times as
 * long as the walk took, but for small histories and very large ones. */
#define REST_TIMES    50
#define REST_LEAST_MS (15 * 60000)
#define REST_MOST_MS  (24 * 3600000)
#define PAGE          1000 /* versions: their keys only */
#define PAGES         10   /* of one sweep */

/* What is to be kept of a table. */
struct rule {
    struct slice table;   /* percent-encoded, with the slash behind */
    int64_t versions;     /* 0: all */
    struct slice cutoff;  /* versions that begin with less are old; SLICE_NONE: none */
    struct slice name;    /* of the table */
    struct slice deleted; /* SLICE_NONE: it is a history */
    const struct rule *next;
};

/* An item that has versions too many. */
struct excess {
    struct slice item;
    const struct rule *rule;
};

enum stage { BY_NUMBER, BY_AGE, OVER };

struct prune {
    const struct rule *rules;
    struct slice cursor;       /* a key; SLICE_NONE: the begin */
    struct slice item;         /* that the walk is at */
    int64_t seen;              /* versions of it */
    struct slice began, rests; /* moments of the walk; SLICE_NONE: not told */
    unsigned pages;
    struct excess *excesses;
    size_t count, at;
    enum stage stage;   /* of the present one */
    int64_t kept;       /* versions of it that stay, as far as they were counted */
    struct slice bound; /* what is before it goes */
};

static flow_step prune_settings, prune_walk, prune_listed, prune_next, prune_counted, prune_aged, prune_ask,
    prune_delete, prune_end, prune_forget, prune_noted;

/* ---- settings ---- */

static void settings_ask(struct flow *flow, struct slice start)
{
    flow_call(flow, prune_settings, "Scan", "{'TableName':%T%A}", &history_settings_table,
              start.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", start) : SLICE(""));
}

static void prune_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct prune);
    settings_ask(flow, SLICE_NONE);
}

static void rule_take(struct flow *flow, struct prune *prune, struct slice item)
{
    struct rule *rule = arena_new(flow->arena, struct rule);
    int64_t keep_s = item_int(flow->arena, item, "keep", 0);
    struct buf table = {0};
    *rule = (struct rule){.versions = item_int(flow->arena, item, "versions", 0),
                          .name = item_text(flow->arena, item, "table"),
                          .deleted = item_text(flow->arena, item, "deleted"),
                          .next = prune->rules};
    if (keep_s) rule->cutoff = moment_text(flow->arena, flow->now_ms - keep_s * 1000);
    if (!keep_s && !rule->versions && !rule->deleted.data) return;
    rest_encode(&table, rule->name);
    buf_byte(&table, '/');
    rule->table = arena_copy(flow->arena, buf_view(&table));
    buf_free(&table);
    prune->rules = rule;
}

static void walk_take(struct flow *flow, struct prune *prune, struct slice item)
{
    prune->cursor = item_content(flow->arena, item, "cursor");
    prune->item = item_text(flow->arena, item, "item");
    prune->seen = item_int(flow->arena, item, "seen", 0);
    prune->began = item_text(flow->arena, item, "began");
    prune->rests = item_text(flow->arena, item, "rests");
}

static void prune_settings(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct slice item, last = flow_last_key(flow), now = moment_text(flow->arena, flow->now_ms);
    struct raw_look look;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (raw_look_next(&look, NULL, &item)) {
        if (item_says(flow->arena, item, "table", "*"))
            walk_take(flow, prune, item);
        else
            rule_take(flow, prune, item);
    }
    bool rests = prune->rests.data && slice_compare(now, prune->rests) < 0;
    if (last.data) {
        settings_ask(flow, last);
    } else if (!prune->rules || rests) {
        flow_finish(flow, 200);
    } else {
        if (!prune->began.data) prune->began = now;
        prune_walk(flow);
    }
}

/* ---- the walk ---- */

static void prune_walk(struct flow *flow)
{
    const struct prune *prune = flow->state;
    flow_call(flow, prune_listed, "Scan",
              "{'TableName':%T,'ProjectionExpression':'#item, #version, #event',%#,'Limit':%d%A}",
              &history_table, (int64_t)PAGE,
              prune->cursor.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", prune->cursor) : SLICE(""));
}

static const struct rule *rule_of(const struct prune *prune, struct slice item)
{
    for (const struct rule *rule = prune->rules; rule; rule = rule->next)
        if (slice_starts(item, rule->table)) return rule;
    return NULL;
}

/* Versions of one item come one after the other, the oldest first; this is the `seen`th. */
static bool is_excess(struct flow *flow, const struct prune *prune, const struct rule *rule,
                      struct slice version)
{
    bool is_old = rule->cutoff.data &&
                  slice_compare(item_text(flow->arena, version, "version"), rule->cutoff) < 0;
    bool is_removal = item_says(flow->arena, version, "event", "REMOVE");
    return rule->deleted.data || (rule->versions && prune->seen > rule->versions) ||
           (is_old && (prune->seen > 1 || is_removal));
}

static void prune_listed(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct slice items = flow_items(flow), version;
    struct raw_look look;
    prune->excesses = arena_array(flow->arena, struct excess, raw_count(flow->arena, items));
    prune->count = prune->at = 0;
    prune->cursor = flow_last_key(flow);
    raw_look_begin(&look, flow->arena, items);
    while (raw_look_next(&look, NULL, &version)) {
        struct slice item = item_text(flow->arena, version, "item");
        const struct rule *rule = rule_of(prune, item);
        if (!slice_equal(item, prune->item)) prune->seen = 0;
        prune->item = item;
        prune->seen++;
        bool is_noted = prune->count && slice_equal(prune->excesses[prune->count - 1].item, item);
        if (!rule || is_noted || !is_excess(flow, prune, rule, version)) continue;
        prune->excesses[prune->count++] = (struct excess){item, rule};
    }
    prune_next(flow);
}

/* ---- one item ---- */

static void count_ask(struct flow *flow, struct slice start)
{
    const struct prune *prune = flow->state;
    const struct excess *excess = &prune->excesses[prune->at];
    flow_call(flow, prune_counted, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item','ProjectionExpression':'#item, "
              "#version',%#,'ExpressionAttributeValues':{':item':%S},'ScanIndexForward':false,'Limit':%d%A}",
              &history_table, excess->item, excess->rule->versions - prune->kept, start);
}

static void age_ask(struct flow *flow)
{
    const struct prune *prune = flow->state;
    const struct excess *excess = &prune->excesses[prune->at];
    flow_call(flow, prune_aged, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :cutoff',"
              "'ProjectionExpression':'#version, #event',%#,'ExpressionAttributeValues':{':item':%S,"
              "':cutoff':%S},'ScanIndexForward':false,'Limit':1}",
              &history_table, excess->item, excess->rule->cutoff);
}

/* What stands before the bound goes. */
static void bound_is(struct flow *flow, struct slice bound)
{
    struct prune *prune = flow->state;
    prune->bound = bound;
    prune_ask(flow);
}

static void stage_is(struct flow *flow, enum stage stage)
{
    ((struct prune *)flow->state)->stage = stage;
    prune_next(flow);
}

static void prune_next(struct flow *flow)
{
    struct prune *prune = flow->state;
    if (prune->at == prune->count) {
        if (prune->cursor.data && ++prune->pages < PAGES)
            prune_walk(flow);
        else
            prune_end(flow);
        return;
    }
    const struct rule *rule = prune->excesses[prune->at].rule;
    if (rule->deleted.data && prune->stage == BY_NUMBER) {
        prune->stage = BY_AGE;
        bound_is(flow, SLICE("~"));
    } else if (rule->versions && prune->stage == BY_NUMBER) {
        count_ask(flow, SLICE(""));
    } else if (rule->cutoff.data && prune->stage <= BY_AGE) {
        prune->stage = BY_AGE;
        age_ask(flow);
    } else {
        prune->at++;
        prune->kept = 0;
        stage_is(flow, BY_NUMBER);
    }
}

/* The oldest that stays is the last of so many. */
static void prune_counted(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct raw_look look;
    struct slice version, oldest = SLICE_NONE, last = flow_last_key(flow);
    raw_look_begin(&look, flow->arena, flow_items(flow));
    for (; raw_look_next(&look, NULL, &version); prune->kept++)
        oldest = item_text(flow->arena, version, "version");
    if (oldest.data && prune->kept == prune->excesses[prune->at].rule->versions)
        bound_is(flow, oldest);
    else if (last.data)
        count_ask(flow, flow_compose(flow, ",'ExclusiveStartKey':%A", last));
    else
        stage_is(flow, BY_AGE);
}

/* The last before the cutoff held at the cutoff: it stays, unless it says that there was nothing. */
static void prune_aged(struct flow *flow)
{
    struct slice last = history_first(flow), version = item_text(flow->arena, last, "version");
    if (!last.data)
        stage_is(flow, OVER);
    else if (item_says(flow->arena, last, "event", "REMOVE"))
        bound_is(flow, arena_printf(flow->arena, "%.*s~", SLICE_ARG(version)));
    else
        bound_is(flow, version);
}

/* ---- deleting ---- */

static void prune_ask(struct flow *flow)
{
    const struct prune *prune = flow->state;
    flow_call(flow, prune_delete, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :bound',%#,"
              "'ExpressionAttributeValues':{':item':%S,':bound':%S},'ProjectionExpression':'#item, "
              "#version','Limit':%d}",
              &history_table, prune->excesses[prune->at].item, prune->bound, (int64_t)SWEEP_REMOVED);
}

/* Until nothing is left to delete. */
static void prune_delete(struct flow *flow)
{
    const struct prune *prune = flow->state;
    if (!sweep_remove_listed(flow, &history_table, prune_ask)) stage_is(flow, prune->stage + 1);
}

/* ---- where it stands ---- */

static void prune_end(struct flow *flow)
{
    const struct prune *prune = flow->state;
    if (!prune->cursor.data)
        prune_forget(flow);
    else
        flow_call(flow, prune_noted, "PutItem",
                  "{'TableName':%T,'Item':{'table':{'S':'*'},'cursor':{'M':%A},'item':%S,'seen':%N,"
                  "'began':%S}}",
                  &history_settings_table, prune->cursor, prune->item, prune->seen, prune->began);
}

static int64_t rest_ms(const struct flow *flow, const struct prune *prune)
{
    int64_t began_ms = flow->now_ms;
    moment_parse(prune->began, &began_ms);
    int64_t rest = (flow->now_ms - began_ms) * REST_TIMES;
    if (rest > REST_MOST_MS) return REST_MOST_MS;
    return rest < REST_LEAST_MS ? REST_LEAST_MS : rest;
}

/* A walk that began after a history was deleted has removed all its versions. */
static void prune_forget(struct flow *flow)
{
    struct prune *prune = flow->state;
    const struct rule *rule = prune->rules;
    while (rule && (!rule->deleted.data || slice_compare(rule->deleted, prune->began) >= 0))
        rule = rule->next;
    if (rule) {
        prune->rules = rule->next;
        flow_call(flow, prune_forget, "DeleteItem",
                  "{'TableName':%T,'Key':{'table':%S},'ConditionExpression':'#deleted = :deleted',%#,"
                  "'ExpressionAttributeValues':{':deleted':%S}}",
                  &history_settings_table, rule->name, rule->deleted);
    } else {
        flow_call(flow, prune_noted, "PutItem", "{'TableName':%T,'Item':{'table':{'S':'*'},'rests':%S}}",
                  &history_settings_table, moment_text(flow->arena, flow->now_ms + rest_ms(flow, prune)));
    }
}

static void prune_noted(struct flow *flow)
{
    flow_finish(flow, 200);
}

const struct flow_sweep history_sweep = {"histories", SWEEP_MS, prune_begin};
