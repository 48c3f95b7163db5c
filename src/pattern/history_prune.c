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

struct prune {
    const struct rule *rules;
    struct slice cursor;       /* a key; SLICE_NONE: the begin */
    struct slice item;         /* that the walk is at */
    int64_t seen;              /* versions of it */
    struct slice began, rests; /* moments of the walk; SLICE_NONE: not told */
};

/* ---- settings ---- */

static void rule_take(struct flow *flow, struct prune *prune, struct slice item)
{
    struct rule *rule = arena_new(flow->arena, struct rule);
    int64_t keep_s = item_int(flow->arena, item, "keep", 0);
    *rule = (struct rule){.versions = item_int(flow->arena, item, "versions", 0),
                          .name = item_text(flow->arena, item, "table"),
                          .deleted = item_text(flow->arena, item, "deleted"),
                          .next = prune->rules};
    if (keep_s) rule->cutoff = moment_text(flow->arena, flow->now_ms - keep_s * 1000);
    if (!keep_s && !rule->versions && !rule->deleted.data) return;
    rule->table = flow_compose(flow, "%A/", rest_encoded(flow->arena, rule->name));
    prune->rules = rule;
}

/* ---- the walk ---- */

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

/* The next page of versions: the items in it that have too many. */
static size_t walk_page(struct flow *flow, struct prune *prune, struct excess **excesses)
{
    struct slice version;
    size_t count = 0;
    task_call(flow, "Scan",
              "{'TableName':%T,'ProjectionExpression':'#item, #version, #event',%#,'Limit':%d" READ_FROM "}",
              &history_table, (int64_t)PAGE, prune->cursor);
    *excesses = arena_array(flow->arena, struct excess, raw_count(flow->arena, flow_items(flow)));
    prune->cursor = flow_last_key(flow);
    raw_each (flow->arena, flow_items(flow), &version) {
        struct slice item = item_text(flow->arena, version, "item");
        const struct rule *rule = rule_of(prune, item);
        if (!slice_equal(item, prune->item)) prune->seen = 0;
        prune->item = item;
        prune->seen++;
        bool is_noted = count && slice_equal((*excesses)[count - 1].item, item);
        if (!rule || is_noted || !is_excess(flow, prune, rule, version)) continue;
        (*excesses)[count++] = (struct excess){item, rule};
    }
    return count;
}

/* ---- one item ---- */

/* The oldest of its last so many versions, which stays; SLICE_NONE: it has fewer. */
static struct slice bound_by_number(struct flow *flow, const struct excess *excess)
{
    int64_t left = excess->rule->versions;
    struct slice version, oldest = SLICE_NONE, last = SLICE_NONE;
    do {
        task_query(flow, "#item = :item",
                   ",'ProjectionExpression':'#item, #version','ScanIndexForward':false,'Limit':%d" READ_FROM,
                   "':item':%S", &history_table, left, last, excess->item);
        raw_each (flow->arena, flow_items(flow), &version) {
            oldest = item_text(flow->arena, version, "version");
            left--;
        }
        last = flow_last_key(flow);
    } while (left > 0 && last.data);
    return left ? SLICE_NONE : oldest;
}

/* The last before the cutoff held at the cutoff: it stays, unless it says that there was nothing. */
static struct slice bound_by_age(struct flow *flow, const struct excess *excess)
{
    task_query(flow, "#item = :item and #version < :cutoff",
               ",'ProjectionExpression':'#version, #event'" QUERY_LAST, "':item':%S,':cutoff':%S",
               &history_table, excess->item, excess->rule->cutoff);
    struct slice last = raw_first(flow->arena, flow_items(flow)),
                 version = item_text(flow->arena, last, "version");
    if (!item_says(flow->arena, last, "event", "REMOVE")) return version;
    return arena_printf(flow->arena, "%.*s~", SLICE_ARG(version));
}

/* Deletes its versions before the bound, where there is one. */
static void delete_before(struct flow *flow, struct slice item, struct slice bound)
{
    if (!bound.data) return;
    do {
        task_query(flow, "#item = :item and #version < :bound",
                   ",'ProjectionExpression':'#item, #version','Limit':%d", "':item':%S,':bound':%S",
                   &history_table, (int64_t)SWEEP_REMOVED, item, bound);
    } while (delete_listed(flow, &history_table));
}

/* ---- where it stands ---- */

static int64_t rest_ms(const struct flow *flow, const struct prune *prune)
{
    int64_t began_ms = flow->now_ms;
    moment_parse(prune->began, &began_ms);
    int64_t rest = (flow->now_ms - began_ms) * REST_TIMES;
    if (rest > REST_MOST_MS) return REST_MOST_MS;
    return rest < REST_LEAST_MS ? REST_LEAST_MS : rest;
}

/* The walk is at its end. One that began after a history was deleted has removed all its versions. */
static void end_walk(struct flow *flow, const struct prune *prune)
{
    for (const struct rule *rule = prune->rules; rule; rule = rule->next)
        if (rule->deleted.data && slice_compare(rule->deleted, prune->began) < 0)
            task_delete(flow, "#deleted = :deleted", "':deleted':%S", &history_settings_table,
                        flow_compose(flow, "{'table':%S}", rule->name), rule->deleted);
    task_call(flow, "PutItem", "{'TableName':%T,'Item':{'table':{'S':'*'},'rests':%S}}",
              &history_settings_table, moment_text(flow->arena, flow->now_ms + rest_ms(flow, prune)));
}

static void prune_histories(struct flow *flow)
{
    struct prune prune = {0};
    struct slice now = moment_text(flow->arena, flow->now_ms);
    struct excess *excesses;
    unsigned pages = 0;
    struct slice item, start = SLICE_NONE;
    do {
        task_call(flow, "Scan", "{'TableName':%T" READ_FROM "}", &history_settings_table, start);
        raw_each (flow->arena, flow_items(flow), &item) {
            if (item_says(flow->arena, item, "table", "*")) {
                prune.cursor = item_content(flow->arena, item, "cursor");
                prune.item = item_text(flow->arena, item, "item");
                prune.seen = item_int(flow->arena, item, "seen", 0);
                prune.began = item_text(flow->arena, item, "began");
                prune.rests = item_text(flow->arena, item, "rests");
            } else
                rule_take(flow, &prune, item);
        }
        start = flow_last_key(flow);
    } while (start.data);
    bool rests = prune.rests.data && slice_compare(now, prune.rests) < 0;
    if (!prune.rules || rests) {
        flow_finish(flow, 200);
        return;
    }
    if (!prune.began.data) prune.began = now;
    do {
        size_t count = walk_page(flow, &prune, &excesses);
        for (size_t i = 0; i < count; i++) {
            const struct excess *excess = &excesses[i];
            const struct rule *rule = excess->rule;
            if (rule->deleted.data) delete_before(flow, excess->item, SLICE("~"));
            if (rule->versions) delete_before(flow, excess->item, bound_by_number(flow, excess));
            if (rule->cutoff.data) delete_before(flow, excess->item, bound_by_age(flow, excess));
        }
    } while (prune.cursor.data && ++pages < PAGES);
    if (prune.cursor.data)
        task_call(
            flow, "PutItem",
            "{'TableName':%T,'Item':{'table':{'S':'*'},'cursor':{'M':%A},'item':%S,'seen':%N,'began':%S}}",
            &history_settings_table, prune.cursor, prune.item, prune.seen, prune.began);
    else
        end_walk(flow, &prune);
    flow_finish(flow, 200);
}

const struct flow_sweep history_sweep = {"histories", SWEEP_MS, prune_histories};
