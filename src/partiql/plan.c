/* How a SELECT is read, and which item the other statements are about.
 *
 * A WHERE that names the hash key, by = or IN, in all of its alternatives becomes one Query for each value.
 * What it says of the range key becomes part of that Query where a Query can hold it; alternatives of ranges
 * become further Queries, as the service does it. Everything else is the Query's filter. A WHERE that leaves
 * the hash key open is the filter of a Scan. */
#include "partiql/internal.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fail.h"

/* Conditions that all hold. */
struct conjuncts {
    const struct condition **list;
    uint32_t count;
};

/* One Query in the making. */
struct part {
    struct statement_part out;
    const struct condition *whole; /* all but the hash key */
    struct slice from, to;         /* of the range key, encoded; to.data NULL: no end */
    bool is_negated;               /* says something of the range key that only a filter can hold */
};

struct planning {
    struct arena *arena;
    struct slice *fault;
    const struct key_fields *fields;
    struct slice hash, range; /* the key attributes; range may be empty */
    struct part parts[LIMIT_STATEMENT_PARTS];
    uint32_t count;
};

static bool refuse(struct planning *planning, const char *sentence)
{
    *planning->fault = slice_of(sentence);
    return false;
}

/* ---- conditions as lists ---- */

static uint32_t count_of(const struct condition *condition, enum condition_kind kind)
{
    if (!condition) return 0;
    if (condition->kind != kind) return 1;
    return count_of(condition->left, kind) + count_of(condition->right, kind);
}

static void flatten(const struct condition *condition, enum condition_kind kind, struct conjuncts *out)
{
    if (!condition) return;
    if (condition->kind != kind) {
        out->list[out->count++] = condition;
        return;
    }
    flatten(condition->left, kind, out);
    flatten(condition->right, kind, out);
}

/* The operands of nested ANDs or ORs, in the order of the statement. */
static struct conjuncts list_of(struct arena *arena, const struct condition *condition,
                                enum condition_kind kind)
{
    struct conjuncts out = {arena_array(arena, const struct condition *, count_of(condition, kind) + 1), 0};
    flatten(condition, kind, &out);
    return out;
}

/* The conjuncts of `with`, and those of `all` but one. */
static struct conjuncts replace(struct arena *arena, const struct conjuncts *all, uint32_t except,
                                const struct condition *with)
{
    struct conjuncts out = {
        arena_array(arena, const struct condition *, count_of(with, CONDITION_AND) + all->count + 1), 0};
    flatten(with, CONDITION_AND, &out);
    for (uint32_t i = 0; i < all->count; i++)
        if (i != except) out.list[out.count++] = all->list[i];
    return out;
}

static const struct condition *join(struct arena *arena, enum condition_kind kind,
                                    const struct condition *left, const struct condition *right)
{
    if (!left || !right) return left ? left : right;
    struct condition *both = arena_new(arena, struct condition);
    both->kind = kind;
    both->left = (struct condition *)left;
    both->right = (struct condition *)right;
    return both;
}

static const struct condition *join_all(struct arena *arena, const struct conjuncts *all, uint32_t except)
{
    const struct condition *joined = NULL;
    for (uint32_t i = 0; i < all->count; i++)
        if (i != except) joined = join(arena, CONDITION_AND, joined, all->list[i]);
    return joined;
}

/* ---- comparisons of a key ---- */

static bool is_attribute(const struct operand *operand, struct slice name)
{
    return operand->kind == OPERAND_PATH && operand->path.count == 1 &&
           slice_equal(operand->path.parts[0].name, name);
}

static enum key_compare compare_of(enum condition_kind kind, bool is_mirrored)
{
    switch (kind) {
    case CONDITION_EQ: return KEY_EQ;
    case CONDITION_LT: return is_mirrored ? KEY_GT : KEY_LT;
    case CONDITION_LE: return is_mirrored ? KEY_GE : KEY_LE;
    case CONDITION_GT: return is_mirrored ? KEY_LT : KEY_GT;
    case CONDITION_GE: return is_mirrored ? KEY_LE : KEY_GE;
    case CONDITION_BETWEEN: return is_mirrored ? KEY_NONE : KEY_BETWEEN;
    case CONDITION_BEGINS_WITH: return is_mirrored ? KEY_NONE : KEY_BEGINS_WITH;
    default: return KEY_NONE;
    }
}

/* Reads a condition as what a Query could hold about the attribute. */
static bool read_term(const struct condition *condition, struct slice name, struct key_term *out)
{
    const struct operand *operands = condition->operands;
    *out = (struct key_term){.name = name};
    if (condition->operand_count < 2 || condition->operand_count > 3) return false;
    bool is_mirrored = operands[0].kind == OPERAND_VALUE;
    if (!is_attribute(&operands[is_mirrored ? 1 : 0], name)) return false;
    out->compare = compare_of(condition->kind, is_mirrored);
    if (out->compare == KEY_NONE) return false;
    for (uint32_t i = 0; i < condition->operand_count; i++) {
        if (i == (is_mirrored ? 1 : 0)) continue;
        if (operands[i].kind != OPERAND_VALUE) return false;
        out->values[out->value_count++] = operands[i].value;
    }
    return true;
}

static bool is_equality(const struct condition *condition, struct slice name)
{
    struct key_term term;
    return condition->kind == CONDITION_EQ && read_term(condition, name, &term);
}

/* name IN [values] */
static bool is_choice(const struct condition *condition, struct slice name)
{
    if (condition->kind != CONDITION_IN || !is_attribute(&condition->operands[0], name)) return false;
    for (uint32_t i = 1; i < condition->operand_count; i++)
        if (condition->operands[i].kind != OPERAND_VALUE) return false;
    return true;
}

/* What says something of the range key that no Query can hold. */
static bool is_negated(const struct condition *condition, struct slice range)
{
    bool is_negative = condition->kind == CONDITION_NE || condition->kind == CONDITION_NOT;
    return range.len && is_negative && condition_mentions(condition, range);
}

/* ---- parts ---- */

static struct slice key_type_fault(struct arena *arena, struct slice name)
{
    return arena_printf(arena,
                        "Key attribute's data type should match its data type in table's schema: Key %.*s",
                        SLICE_ARG(name));
}

static bool check_type(struct planning *planning, const struct key_field *field, const struct value *value)
{
    if (value->type == field->type) return true;
    *planning->fault = key_type_fault(planning->arena, field->name);
    return false;
}

static struct slice encoded(struct planning *planning, const struct value *value, bool is_behind)
{
    struct buf bytes = {0};
    key_encode(&bytes, value);
    if (is_behind) buf_byte(&bytes, 0);
    return arena_take(planning->arena, &bytes);
}

/* The bytes of the range keys that a part can meet: no encoded key begins another, so a zero byte behind one
 * is where the next ones begin. */
static void measure(struct planning *planning, struct part *part)
{
    const struct key_condition *keys = &part->out.keys;
    struct buf bytes = {0};
    part->from = SLICE("");
    part->to = SLICE_NONE;
    switch (keys->compare) {
    case KEY_NONE: return;
    case KEY_EQ:
        part->from = encoded(planning, keys->range[0], false);
        part->to = encoded(planning, keys->range[0], true);
        return;
    case KEY_LT: part->to = encoded(planning, keys->range[0], false); return;
    case KEY_LE: part->to = encoded(planning, keys->range[0], true); return;
    case KEY_GT: part->from = encoded(planning, keys->range[0], true); return;
    case KEY_GE: part->from = encoded(planning, keys->range[0], false); return;
    case KEY_BETWEEN:
        part->from = encoded(planning, keys->range[0], false);
        part->to = encoded(planning, keys->range[1], true);
        return;
    case KEY_BEGINS_WITH:
        key_encode_prefix(&bytes, keys->range[0]);
        part->from = arena_copy(planning->arena, buf_view(&bytes));
        if (key_successor(&bytes)) part->to = arena_copy(planning->arena, buf_view(&bytes));
        buf_free(&bytes);
        return;
    }
}

/* A Query of one hash value. `term` is what it holds of the range key, or NULL. */
static bool add_part(struct planning *planning, const struct value *hash, const struct key_term *term,
                     const struct conjuncts *rest, uint32_t taken)
{
    const struct key_fields *fields = planning->fields;
    struct key_term terms[2] = {
        {.name = planning->hash, .compare = KEY_EQ, .value_count = 1, .values = {hash}}};
    struct key_terms all = {terms, 1};
    if (planning->count == LIMIT_STATEMENT_PARTS)
        return refuse(planning, "Too many decomposed read operations for a given query.");
    if (!check_type(planning, &fields->hash[0], hash)) return false;
    for (uint32_t i = 0; term && i < term->value_count; i++)
        if (!check_type(planning, &fields->range[0], term->values[i])) return false;
    if (term) terms[all.count++] = *term;
    struct part *part = &planning->parts[planning->count++];
    *part = (struct part){0};
    if (!key_terms_bind(planning->arena, &all, fields, &part->out.keys, planning->fault)) return false;
    part->out.filter = join_all(planning->arena, rest, taken);
    part->whole = join_all(planning->arena, rest, UINT32_MAX);
    part->out.is_get = !fields->index.len && (!planning->range.len || part->out.keys.compare == KEY_EQ);
    for (uint32_t i = 0; i < rest->count; i++) part->is_negated |= is_negated(rest->list[i], planning->range);
    measure(planning, part);
    return true;
}

/* An OR becomes Queries of its own where one of its alternatives has a range, and none speaks of the range key
 * in a way that only a filter can. */
static bool is_split(const struct planning *planning, const struct condition *condition)
{
    struct key_term term;
    bool has_range = false;
    if (condition->kind != CONDITION_OR) return false;
    struct conjuncts alternatives = list_of(planning->arena, condition, CONDITION_OR);
    for (uint32_t i = 0; i < alternatives.count; i++) {
        struct conjuncts all = list_of(planning->arena, alternatives.list[i], CONDITION_AND);
        for (uint32_t j = 0; j < all.count; j++) {
            if (is_negated(all.list[j], planning->range)) return false;
            has_range |= is_choice(all.list[j], planning->range) ||
                         read_term(all.list[j], planning->range, &term);
        }
    }
    return has_range;
}

/* The parts of one hash value. */
static bool plan_range(struct planning *planning, const struct value *hash, const struct conjuncts *rest)
{
    struct key_term term, chosen;
    uint32_t taken = UINT32_MAX;
    if (!planning->range.len) return add_part(planning, hash, NULL, rest, UINT32_MAX);
    for (uint32_t i = 0; i < rest->count; i++) {
        if (!is_split(planning, rest->list[i])) continue;
        struct conjuncts alternatives = list_of(planning->arena, rest->list[i], CONDITION_OR);
        for (uint32_t j = 0; j < alternatives.count; j++) {
            struct conjuncts narrowed = replace(planning->arena, rest, i, alternatives.list[j]);
            if (!plan_range(planning, hash, &narrowed)) return false;
        }
        return true;
    }
    for (uint32_t i = 0; i < rest->count; i++) {
        if (!read_term(rest->list[i], planning->range, &term)) continue;
        if (taken != UINT32_MAX && (chosen.compare == KEY_EQ || term.compare != KEY_EQ)) continue;
        chosen = term;
        taken = i;
    }
    if (taken != UINT32_MAX) return add_part(planning, hash, &chosen, rest, taken);
    for (uint32_t i = 0; i < rest->count; i++) {
        const struct condition *choice = rest->list[i];
        if (!is_choice(choice, planning->range)) continue;
        for (uint32_t j = 1; j < choice->operand_count; j++) {
            chosen = (struct key_term){.name = planning->range, .compare = KEY_EQ, .value_count = 1};
            chosen.values[0] = choice->operands[j].value;
            if (!add_part(planning, hash, &chosen, rest, i)) return false;
        }
        return true;
    }
    return add_part(planning, hash, NULL, rest, UINT32_MAX);
}

/* True when all alternatives of the condition name the hash key. */
static bool names_hash(const struct condition *condition, struct slice hash)
{
    if (condition->kind == CONDITION_AND)
        return names_hash(condition->left, hash) || names_hash(condition->right, hash);
    if (condition->kind == CONDITION_OR)
        return names_hash(condition->left, hash) && names_hash(condition->right, hash);
    return is_equality(condition, hash) || is_choice(condition, hash);
}

static bool plan_hash(struct planning *planning, const struct conjuncts *all)
{
    struct key_term term;
    for (uint32_t i = 0; i < all->count; i++) {
        if (!is_equality(all->list[i], planning->hash)) continue;
        struct conjuncts rest = replace(planning->arena, all, i, NULL);
        ensure(read_term(all->list[i], planning->hash, &term));
        return plan_range(planning, term.values[0], &rest);
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const struct condition *choice = all->list[i];
        if (!is_choice(choice, planning->hash)) continue;
        struct conjuncts rest = replace(planning->arena, all, i, NULL);
        for (uint32_t j = 1; j < choice->operand_count; j++)
            if (!plan_range(planning, choice->operands[j].value, &rest)) return false;
        return true;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->list[i]->kind != CONDITION_OR || !names_hash(all->list[i], planning->hash)) continue;
        struct conjuncts alternatives = list_of(planning->arena, all->list[i], CONDITION_OR);
        for (uint32_t j = 0; j < alternatives.count; j++) {
            struct conjuncts narrowed = replace(planning->arena, all, i, alternatives.list[j]);
            if (!plan_hash(planning, &narrowed)) return false;
        }
        return true;
    }
    ensure(false); /* names_hash said that one of them does */
}

/* ---- overlaps and order ---- */

static bool same_hash(const struct part *a, const struct part *b)
{
    return value_equal(a->out.keys.hash[0], b->out.keys.hash[0]);
}

static bool overlap(const struct part *a, const struct part *b)
{
    bool a_begins_before = !b->to.data || slice_compare(a->from, b->to) < 0;
    bool b_begins_before = !a->to.data || slice_compare(b->from, a->to) < 0;
    return same_hash(a, b) && a_begins_before && b_begins_before;
}

/* Both in one Query of the hash value, with what they say as its filter. */
static void merge(struct planning *planning, uint32_t into, uint32_t from)
{
    struct part *part = &planning->parts[into];
    const struct condition *left = part->whole, *right = planning->parts[from].whole;
    part->whole = left && right ? join(planning->arena, CONDITION_OR, left, right) : NULL;
    part->out.filter = part->whole;
    part->out.is_get = false;
    part->out.keys.compare = KEY_NONE;
    part->is_negated = true;
    measure(planning, part);
    planning->parts[from] = planning->parts[--planning->count];
}

static bool settle_overlaps(struct planning *planning)
{
    for (uint32_t i = 0; i < planning->count; i++) {
        for (uint32_t j = i + 1; j < planning->count; j++) {
            const struct part *a = &planning->parts[i], *b = &planning->parts[j];
            if (!overlap(a, b)) continue;
            if (!a->is_negated && !b->is_negated)
                return refuse(planning,
                              "Overlapping conditions with range keys are not supported in where clause");
            merge(planning, i, j);
            j = i; /* the merged part may meet others of the same hash value */
        }
    }
    return true;
}

static int part_order(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    int order = value_compare(a->out.keys.hash[0], b->out.keys.hash[0]);
    return order ? order : slice_compare(a->from, b->from);
}

/* Sorted by both keys, each in its direction. */
static void sort_parts(struct planning *planning, bool hash_descends, bool range_descends,
                       struct statement_plan *out)
{
    uint32_t count = planning->count, first = 0;
    qsort(planning->parts, count, sizeof *planning->parts, part_order);
    out->part_count = count;
    out->parts = arena_array(planning->arena, struct statement_part, count);
    while (first < count) {
        uint32_t end = first + 1;
        while (end < count && same_hash(&planning->parts[first], &planning->parts[end])) end++;
        for (uint32_t i = first; i < end; i++) {
            uint32_t within = range_descends ? end - 1 - i : i - first;
            uint32_t start = hash_descends ? count - end : first;
            out->parts[start + within] = planning->parts[i].out;
        }
        first = end;
    }
}

/* ---- ORDER BY ---- */

static const struct statement_order *find_order(const struct statement *statement, struct slice name)
{
    for (uint32_t i = 0; i < statement->order_count; i++)
        if (slice_equal(statement->order[i].name, name)) return &statement->order[i];
    return NULL;
}

static bool check_order(struct planning *planning, const struct statement *statement, bool is_scan)
{
    for (uint32_t i = 0; i < statement->order_count; i++) {
        struct slice name = statement->order[i].name;
        bool is_range = planning->range.len && slice_equal(name, planning->range);
        if (is_range || slice_equal(name, planning->hash)) continue;
        *planning->fault = arena_printf(planning->arena,
                                        "Attribute %.*s in ORDER BY clause must be part of the primary key",
                                        SLICE_ARG(name));
        return false;
    }
    if (statement->order_count && is_scan)
        return refuse(planning, "Must have at least one non-optional hash key condition in WHERE clause when "
                                "using ORDER BY clause.");
    return true;
}

static bool has_several_hashes(const struct planning *planning)
{
    for (uint32_t i = 1; i < planning->count; i++)
        if (!same_hash(&planning->parts[0], &planning->parts[i])) return true;
    return false;
}

#define COMPOUND                                                                                             \
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE " \
    "keys."
const struct slice statement_compound_fault = {COMPOUND, sizeof COMPOUND - 1};

bool statement_plan(struct arena *arena, const struct statement *statement, const struct key_fields *fields,
                    struct statement_plan *out, struct slice *fault)
{
    struct planning *planning = arena_new(arena, struct planning);
    *out = (struct statement_plan){0};
    planning->arena = arena;
    planning->fault = fault;
    planning->fields = fields;
    planning->hash = fields->hash[0].name;
    planning->range = fields->range_count ? fields->range[0].name : SLICE_NONE;
    *fault = key_fields_are_compound(fields) ? statement_compound_fault : statement->late_fault;
    if (fault->len) return false;
    out->is_scan = !statement->where || !names_hash(statement->where, planning->hash);
    if (!check_order(planning, statement, out->is_scan)) return false;
    if (out->is_scan) return true;
    struct conjuncts all = list_of(arena, statement->where, CONDITION_AND);
    if (!plan_hash(planning, &all) || !settle_overlaps(planning)) return false;
    const struct statement_order *hash = find_order(statement, planning->hash);
    const struct statement_order *range = planning->range.len ? find_order(statement, planning->range) : NULL;
    if (statement->order_count && !hash && has_several_hashes(planning))
        return refuse(planning, "Must have hash key in ORDER BY clause when more than one hash key condition "
                                "specified in WHERE clause.");
    /* A range key that ORDER BY does not name runs backwards on the service. */
    out->backwards = range ? range->descends : statement->order_count > 0;
    sort_parts(planning, hash && hash->descends, out->backwards, out);
    return true;
}

struct slice statement_explain(struct arena *arena, const struct statement *statement,
                               const struct statement_plan *plan)
{
    struct slice source = statement->index.len
                              ? arena_printf(arena, "index %.*s of table %.*s", SLICE_ARG(statement->index),
                                             SLICE_ARG(statement->table))
                              : arena_printf(arena, "table %.*s", SLICE_ARG(statement->table));
    const char *filtered = ", filtered", *order = plan->backwards ? ", backwards" : "";
    if (plan->is_scan)
        return arena_printf(arena, "scan of %.*s%s", SLICE_ARG(source), statement->where ? filtered : "");
    uint32_t gets = 0, filters = 0;
    for (uint32_t i = 0; i < plan->part_count; i++) {
        gets += plan->parts[i].is_get;
        filters += plan->parts[i].filter != NULL;
    }
    if (!filters) filtered = "";
    if (plan->part_count == 1)
        return arena_printf(arena, "%s of %.*s%s%s", gets ? "key read" : "query", SLICE_ARG(source), filtered,
                            gets ? "" : order);
    return arena_printf(arena, "%u %s of %.*s%s%s", plan->part_count,
                        gets == plan->part_count ? "key reads" : "queries", SLICE_ARG(source), filtered,
                        order);
}

/* ---- the item of a write ---- */

/* name = value, and where it is allowed name IN [value]. */
static const struct value *pinned_value(const struct condition *condition, struct slice name, bool takes_in)
{
    struct key_term term;
    if (is_equality(condition, name)) {
        ensure(read_term(condition, name, &term));
        return term.values[0];
    }
    if (takes_in && is_choice(condition, name) && condition->operand_count == 2)
        return condition->operands[1].value;
    return NULL;
}

enum statement_pinned statement_pin(struct arena *arena, const struct statement *statement,
                                    const struct key_schema *keys, bool takes_in, struct statement_pin *out,
                                    struct slice *fault)
{
    struct slice names[2] = {keys->hash, keys->range}, duplicate;
    enum value_type types[2] = {keys->hash_type, keys->range_type};
    const struct value *values[2] = {NULL, NULL};
    uint32_t count = keys->range.len ? 2 : 1;
    struct conjuncts all = list_of(arena, statement->where, CONDITION_AND);
    *out = (struct statement_pin){.key = {arena_array(arena, struct attribute, 2), 0}};
    for (uint32_t i = 0; i < all.count; i++) {
        bool is_key = false;
        for (uint32_t k = 0; k < count; k++) {
            const struct value *value = pinned_value(all.list[i], names[k], takes_in);
            if (!value) continue;
            is_key = true;
            if (values[k] && !value_equal(values[k], value)) {
                *fault = arena_printf(arena,
                                      "Multiple conditions on same key %.*s. Only single item "
                                      "Update/Insert/Delete are supported",
                                      SLICE_ARG(names[k]));
                return PINNED_TWICE;
            }
            values[k] = value;
        }
        if (!is_key) out->condition = join(arena, CONDITION_AND, out->condition, all.list[i]);
    }
    for (uint32_t k = 0; k < count; k++) {
        if (values[k]) continue;
        *fault = SLICE("Where clause does not contain a mandatory equality on all key attributes");
        return PINNED_NOT;
    }
    for (uint32_t k = 0; k < count; k++) {
        out->key.attributes[out->key.count++] = (struct attribute){names[k], *values[k]};
        if (values[k]->type == types[k]) continue;
        *fault = key_type_fault(arena, names[k]);
        return PINNED_WRONG;
    }
    ensure(map_sort(&out->key, &duplicate));
    return PINNED_WHOLE;
}

struct slice statement_insert_fault(struct arena *arena, const struct statement *statement,
                                    const struct key_schema *keys)
{
    const struct slice names[2] = {keys->hash, keys->range};
    const enum value_type types[2] = {keys->hash_type, keys->range_type};
    for (int i = 0; i < 2 && names[i].len; i++) {
        const struct value *value = map_find(&statement->item, names[i]);
        if (!value)
            return arena_printf(arena, "Key attribute should be present in the item: Key %.*s",
                                SLICE_ARG(names[i]));
        if (value->type != types[i]) return key_type_fault(arena, names[i]);
    }
    return SLICE_NONE;
}
