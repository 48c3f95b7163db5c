/* Key conditions against the keys of a table or index.
 *
 * One hash and one range attribute are what tables, local indexes and most global ones have; the service has
 * spoken of them in the same words since its first days. Keys of several attributes came later, with rules
 * and words of their own: all hash attributes by equality, range attributes from left to right, equality on
 * all but the last. */
#include "expr/parse.h"

#include "base/fail.h"

struct binding {
    struct arena *arena;
    struct slice *fault;
    const struct key_terms *terms;
    const struct key_fields *fields;
    struct key_condition *out;
};

bool key_fields_are_compound(const struct key_fields *fields)
{
    return fields->hash_count > 1 || fields->range_count > 1;
}

static bool refuse(struct binding *binding, struct slice sentence)
{
    return FAULT(binding->arena, binding->fault, sentence);
}

static bool refuse_missing(struct binding *binding, struct slice name)
{
    return FAULT(binding->arena, binding->fault, SLICE("Query condition missed key schema element: "), name);
}

bool key_terms_are_plain(struct arena *arena, const struct key_terms *terms, struct slice *fault)
{
    if (terms->count == 1 || terms->count == 2) return true;
    return FAULT(arena, fault, SLICE("Conditions can be of length 1 or 2 only"));
}

static const struct key_term *find_term(const struct binding *binding, struct slice name)
{
    for (uint32_t i = 0; i < binding->terms->count; i++)
        if (slice_equal(binding->terms->list[i].name, name)) return &binding->terms->list[i];
    return NULL;
}

/* ---- values ---- */

static bool check_types(struct binding *binding, const struct key_term *term, enum value_type type)
{
    if (term->compare == KEY_NONE)
        return refuse(binding, SLICE("Attempted conditional constraint is not an indexable operation"));
    for (uint32_t i = 0; i < term->value_count; i++) {
        if (term->values[i]->type != type)
            return refuse(binding, SLICE("One or more parameter values were invalid: Condition parameter "
                                         "type does not match schema type"));
    }
    return true;
}

/* An index tells its name, too. */
static bool refuse_empty(struct binding *binding, struct slice name, enum value_type type)
{
    struct slice index = binding->fields->index, kind = type == VALUE_S ? SLICE("string") : SLICE("binary");
    if (!index.len)
        return FAULT(binding->arena, binding->fault,
                     SLICE("One or more parameter values are not valid. The AttributeValue for a key "
                           "attribute cannot contain an empty "),
                     kind, SLICE(" value. Key: "), name);
    return FAULT(binding->arena, binding->fault,
                 SLICE("One or more parameter values are not valid. A value specified for a secondary index "
                       "key is not supported. The AttributeValue for a key attribute cannot contain an "
                       "empty "),
                 kind, SLICE(" value. IndexName: "), index, SLICE(", IndexKey: "), name);
}

static bool check_not_empty(struct binding *binding, const struct key_term *term)
{
    for (uint32_t i = 0; i < term->value_count; i++) {
        const struct value *value = term->values[i];
        if (value->type != VALUE_N && value->bytes.len == 0)
            return refuse_empty(binding, term->name, value->type);
    }
    return true;
}

static bool check_values(struct binding *binding, const struct key_term *term, enum value_type type)
{
    return check_types(binding, term, type) && check_not_empty(binding, term);
}

/* The condition on the last of the range attributes that have one. */
static void take_compared(struct key_condition *out, const struct key_term *term)
{
    out->compare = term->compare;
    out->range[0] = term->values[0];
    out->range[1] = term->values[1];
}

/* ---- one hash attribute, at most one range attribute ---- */

static bool bind_plain_hash(struct binding *binding)
{
    const struct key_field *field = &binding->fields->hash[0];
    if (binding->fields->range_count == 0 && binding->terms->count > 1)
        return refuse(binding, SLICE("Query key condition not supported"));
    const struct key_term *term = find_term(binding, field->name);
    if (!term) return refuse_missing(binding, field->name);
    if (!check_types(binding, term, field->type)) return false;
    if (term->compare != KEY_EQ) return refuse(binding, SLICE("Query key condition not supported"));
    if (!check_not_empty(binding, term)) return false;
    binding->out->hash[binding->out->hash_count++] = term->values[0];
    return true;
}

static bool bind_plain_range(struct binding *binding)
{
    const struct key_field *field = &binding->fields->range[0];
    if (binding->terms->count == 1) return true;
    const struct key_term *term = find_term(binding, field->name);
    if (!term) return refuse_missing(binding, field->name);
    if (!check_values(binding, term, field->type)) return false;
    take_compared(binding->out, term);
    return true;
}

/* ---- several of them ---- */

/* "a, b": the fields that lack a term, or those whose term is no equality. */
static struct slice list_fields(struct binding *binding, const struct key_field *fields, uint32_t count,
                                bool lacking)
{
    struct slice text = SLICE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct key_term *term = find_term(binding, fields[i].name);
        if (lacking ? term != NULL : term && term->compare == KEY_EQ) continue;
        text = arena_printf(binding->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? ", " : "",
                            SLICE_ARG(fields[i].name));
    }
    return text;
}

static bool check_hash_equality(struct binding *binding)
{
    const struct key_fields *fields = binding->fields;
    struct slice names = list_fields(binding, fields->hash, fields->hash_count, true);
    if (!names.len) names = list_fields(binding, fields->hash, fields->hash_count, false);
    if (!names.len) return true;
    return FAULT(binding->arena, binding->fault, SLICE("HASH key attributes "), names,
                 SLICE(" must have equality conditions specified in the query"));
}

static bool bind_compound_hash(struct binding *binding)
{
    const struct key_fields *fields = binding->fields;
    struct key_condition *out = binding->out;
    const struct value *values[LIMIT_KEY_PARTS];
    if (binding->terms->count > fields->hash_count + fields->range_count)
        return refuse(binding, SLICE("Query key condition not supported"));
    if (!check_hash_equality(binding)) return false;
    for (uint32_t i = 0; i < fields->hash_count; i++) {
        const struct key_term *term = find_term(binding, fields->hash[i].name);
        if (!check_values(binding, term, fields->hash[i].type)) return false;
        values[i] = term->values[0];
    }
    memcpy(out->hash, values, fields->hash_count * sizeof *values);
    out->hash_count = fields->hash_count;
    return true;
}

static bool refuse_order(struct binding *binding, struct slice names, struct slice because)
{
    return FAULT(binding->arena, binding->fault, SLICE("RANGE key attributes "), names,
                 SLICE(" must have equality conditions specified in the query because a condition is present "
                       "on key attribute "),
                 because);
}

/* Gaps are told before inequalities, and the first gap only. *count: how many range attributes have a term.
 */
static bool check_range_order(struct binding *binding, uint32_t *count)
{
    const struct key_fields *fields = binding->fields;
    for (uint32_t i = 0; i < fields->range_count; i++) {
        if (!find_term(binding, fields->range[i].name)) continue;
        struct slice gap = list_fields(binding, fields->range, i, true);
        if (gap.len) return refuse_order(binding, gap, fields->range[i].name);
        *count = i + 1;
    }
    if (*count < 2) return true;
    struct slice unequal = list_fields(binding, fields->range, *count - 1, false);
    return !unequal.len || refuse_order(binding, unequal, fields->range[*count - 1].name);
}

static bool bind_compound_range(struct binding *binding)
{
    const struct key_fields *fields = binding->fields;
    struct key_condition *out = binding->out;
    uint32_t count = 0;
    if (!check_range_order(binding, &count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct key_term *term = find_term(binding, fields->range[i].name);
        if (!check_values(binding, term, fields->range[i].type)) return false;
        if (i + 1 < count)
            out->equal[out->equal_count++] = term->values[0];
        else
            take_compared(out, term);
    }
    if (binding->terms->count == fields->hash_count + count) return true;
    ensure(count < fields->range_count);
    return refuse_missing(binding, fields->range[count].name);
}

bool key_terms_bind(struct arena *arena, const struct key_terms *terms, const struct key_fields *fields,
                    struct key_condition *out, struct slice *fault)
{
    struct binding binding = {arena, fault, terms, fields, out};
    *out = (struct key_condition){.compare = KEY_NONE};
    ensure(fields->hash_count >= 1);
    if (key_fields_are_compound(fields)) return bind_compound_hash(&binding) && bind_compound_range(&binding);
    return key_terms_are_plain(arena, terms, fault) && bind_plain_hash(&binding) &&
           bind_plain_range(&binding);
}
