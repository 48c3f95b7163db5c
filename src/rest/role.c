/* What a key may do, by the role that the credentials file gives it.
 *
 *   admin  everything
 *   data   tables, items, streams and patterns; nothing that starts a program or calls a URL
 *   read   what changes nothing, of the same
 *
 * Functions, mappings, schedules and what patterns react with are items in tables of the server's own. Whoever could
 * write those could plant a function, and their environment holds secrets. So for data and read these tables do not
 * exist behind DynamoDB's API; patterns are used through /v1.
 *
 * A table's name is sought wherever a request can hold one: in members whose names end in TableName or Arn, in
 * PartiQL statements, and in the names within RequestItems. Attributes of items cannot be mistaken for them: their
 * values are objects. */
#include "base/json.h"
#include "rest/rest.h"

static const char *const role_names[] = {[ROLE_ADMIN] = "admin", [ROLE_DATA] = "data", [ROLE_READ] = "read"};

bool rest_role_find(struct slice name, enum rest_role *role)
{
    for (unsigned i = 0; i < sizeof role_names / sizeof *role_names; i++) {
        if (!slice_equal(slice_of(role_names[i]), name)) continue;
        *role = (enum rest_role)i;
        return true;
    }
    return false;
}

const char *rest_role_name(enum rest_role role)
{
    return role_names[role];
}

/* ---- DynamoDB's operations ---- */

struct search {
    struct json_reader reader;
    struct slice prefix;
    bool only_selects; /* statements must not write */
    bool found_own, found_write;
};

static bool ends_in(struct slice text, struct slice end)
{
    return text.len >= end.len && slice_equal(slice_from(text, text.len - end.len), end);
}

bool rest_role_owns_table(struct slice name, struct slice prefix)
{
    struct slice mark = SLICE(":table/");
    if (slice_starts(name, prefix)) return true;
    for (size_t i = 0; i + mark.len <= name.len; i++)
        if (slice_starts(slice_from(name, i), mark) && slice_starts(slice_from(name, i + mark.len), prefix))
            return true;
    return false;
}

static void search_statement(struct search *search, struct slice statement)
{
    size_t at = 0;
    if (slice_contains(statement, search->prefix)) search->found_own = true;
    while (at < statement.len && strchr(" \t\r\n", statement.data[at])) at++;
    struct slice first = {statement.data + at, statement.len - at < 6 ? statement.len - at : 6};
    if (search->only_selects && !slice_equal_ignoring_case(first, SLICE("select")))
        search->found_write = true;
}

static void search_value(struct search *search, struct slice name, bool is_top)
{
    struct slice text, inner;
    switch (json_peek(&search->reader)) {
    case JSON_STRING:
        if (!json_string(&search->reader, &text)) return;
        if ((ends_in(name, SLICE("TableName")) || ends_in(name, SLICE("Arn"))) &&
            rest_role_owns_table(text, search->prefix))
            search->found_own = true;
        if (slice_starts(name, SLICE("ResourceId")) && slice_starts(text, SLICE("table/")) &&
            slice_starts(slice_from(text, strlen("table/")), search->prefix))
            search->found_own = true; /* a scalable target */
        if (slice_equal(name, SLICE("Statement"))) search_statement(search, text);
        return;
    case JSON_OBJECT:
        json_enter(&search->reader);
        while (json_member(&search->reader, &inner)) {
            if (is_top && slice_equal(name, SLICE("RequestItems")) &&
                rest_role_owns_table(inner, search->prefix))
                search->found_own = true;
            search_value(search, inner, !name.data);
        }
        return;
    case JSON_ARRAY:
        json_enter(&search->reader);
        while (json_element(&search->reader)) search_value(search, name, false);
        return;
    default: json_skip(&search->reader);
    }
}

bool rest_operation_only_reads(struct slice operation)
{
    static const struct slice starts[] = {SLICE("Describe"), SLICE("List"), SLICE("Get")};
    static const struct slice others[] = {SLICE("BatchGetItem"), SLICE("Query"), SLICE("Scan"),
                                          SLICE("TransactGetItems"), SLICE("SearchVectors")};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (slice_starts(operation, starts[i])) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (slice_equal(operation, others[i])) return true;
    return false;
}

static bool takes_statements(struct slice operation)
{
    return slice_equal(operation, SLICE("ExecuteStatement")) ||
           slice_equal(operation, SLICE("BatchExecuteStatement")) ||
           slice_equal(operation, SLICE("ExecuteTransaction"));
}

bool rest_request_only_reads(struct slice operation, struct slice body, struct arena *arena)
{
    struct search search = {.only_selects = true, .prefix = SLICE("")};
    if (!takes_statements(operation)) return rest_operation_only_reads(operation);
    json_begin(&search.reader, body, arena);
    if (body.len) search_value(&search, SLICE_NONE, false);
    return !search.found_write && !json_failed(&search.reader);
}

bool rest_role_admits_operation(enum rest_role role, struct slice operation, struct slice body,
                                struct slice prefix, struct arena *arena, struct slice *message)
{
    bool has_statements = takes_statements(operation);
    struct search search = {.prefix = prefix, .only_selects = role == ROLE_READ};
    if (role == ROLE_ADMIN) return true;
    json_begin(&search.reader, body, arena);
    if (body.len) search_value(&search, SLICE_NONE, false);
    if (json_failed(&search.reader)) { /* whoever is asked next may read more into it than we do */
        *message = SLICE("The request is not JSON.");
        return false;
    }
    if (role == ROLE_READ && (has_statements ? search.found_write : !rest_operation_only_reads(operation))) {
        *message = arena_printf(arena, "This key has the role read, which may not call %.*s%s.",
                                SLICE_ARG(operation), has_statements ? " with a statement that writes" : "");
        return false;
    }
    if (!search.found_own) return true;
    *message = arena_printf(arena,
                            "This key has the role %s, which may not use the tables that begin with '%.*s': "
                            "they are the server's own. Patterns are used through /v1.",
                            role_names[role], SLICE_ARG(prefix));
    return false;
}

/* ---- everything else ---- */

bool rest_path_only_reads(struct slice method, struct slice path)
{
    bool gets = slice_equal(method, SLICE("GET")) || slice_equal(method, SLICE("HEAD"));
    if (slice_equal(path, SLICE("/console/match"))) return true; /* what it matches is in its body */
    return gets && !slice_starts(path, SLICE("/counter")); /* which adds */
}

bool rest_role_admits_path(enum rest_role role, struct slice method, struct slice path, struct arena *arena,
                           struct slice *message)
{
    bool is_pattern = slice_starts(path, SLICE("/v1/")) || slice_starts(path, SLICE("/counter")) ||
                      slice_starts(path, SLICE("/wall"));
    if (role == ROLE_ADMIN) return true;
    if (!is_pattern || slice_starts(path, SLICE("/v1/functions")) ||
        slice_starts(path, SLICE("/v1/queues")) || slice_starts(path, SLICE("/v1/routes")) ||
        slice_starts(path, SLICE("/v1/backup"))) {
        *message = arena_printf(
            arena, "This key has the role %s, which may not use functions, mappings, schedules, hooks and backups.",
            role_names[role]);
        return false;
    }
    if (role != ROLE_READ || rest_path_only_reads(method, path)) return true;
    *message = arena_printf(arena, "This key has the role read, which may not call %.*s %.*s.",
                            SLICE_ARG(method), SLICE_ARG(path));
    return false;
}
