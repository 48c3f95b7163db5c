/* Documents in every order: no update is lost, versions only grow, and of those who saw the same version one
 * wins. */
#include "unit/pattern_explore.h"

#define FIRST REQUEST("PUT /v1/documents/c/a", "{}")

/* Whoever was told a version was told one of their own. */
static void check_versions(struct outcome *outcome)
{
    for (unsigned i = 0; i < outcome->count; i++)
        for (unsigned j = 0; j < i; j++)
            if (outcome->answers[i].status < 300 && outcome->answers[j].status < 300 &&
                outcome_int(outcome, i, "version") == outcome_int(outcome, j, "version"))
                outcome_fault(outcome, "version %lld twice", (long long)outcome_int(outcome, i, "version"));
}

static void check_patches(struct outcome *outcome)
{
    struct slice end = outcome_ask(outcome, "GET /v1/documents/c/a", NULL);
    check_versions(outcome);
    if (!slice_equal(end, SLICE("{\"a\":1,\"b\":1,\"c\":1}")))
        outcome_fault(outcome, "lost: %.*s", SLICE_ARG(end));
}

static const struct exploration patches = {.name = "document patched by three",
                                           .flows = {REQUEST("PATCH /v1/documents/c/a", "{\"a\":1}"),
                                                     REQUEST("PATCH /v1/documents/c/a", "{\"b\":1}"),
                                                     REQUEST("PATCH /v1/documents/c/a", "{\"c\":1}")},
                                           .before = {FIRST},
                                           .faults = 1,
                                           .check = check_patches};

TEST(explore_document_patched)
{
    explore(&patches);
    explore_broken(&patches, "#version = :seen and", "#version <> :zero and :seen <> :zero and");
}

/* All three saw version 1: one of them wins, whatever is lost or repeated on the way. */
static void check_one_wins(struct outcome *outcome)
{
    unsigned winners = 0;
    struct slice end = outcome_call(outcome, "Scan", "{\"TableName\":\"quipu-documents\"}");
    check_versions(outcome);
    for (unsigned i = 0; i < outcome->count; i++) winners += outcome->answers[i].status < 300;
    if (winners > 1) outcome_fault(outcome, "%u winners", winners);
    if (!slice_contains(end, SLICE("\"version\":{\"N\":\"2\"}")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(end));
}

static const struct exploration writers = {
    .name = "document replaced by three",
    .flows = {REQUEST_WITH("PUT /v1/documents/c/a", "1", "If-Match", "\"1\""),
              REQUEST_WITH("PUT /v1/documents/c/a", "2", "If-Match", "\"1\""),
              REQUEST_WITH("DELETE /v1/documents/c/a", NULL, "If-Match", "\"1\"")},
    .before = {FIRST},
    .faults = 2,
    .check = check_one_wins};

TEST(explore_document_replaced)
{
    explore(&writers);
    explore_broken(&writers, "#version = :seen and", "#version <> :zero and :seen <> :zero and");
    explore_broken(&writers, " and #version = :seen", " and :seen = :seen");
    explore_broken(&writers,
                   "attribute_exists(#version) and attribute_not_exists(#deleted) and #version = :seen",
                   "attribute_exists(#version) and #version >= :seen");
}

/* Deleted and made again: the old version never fits the new document. */
static void check_made_again(struct outcome *outcome)
{
    check_versions(outcome);
    bool made = outcome->answers[1].status < 300, replaced = outcome->answers[2].status < 300;
    if (made && outcome_int(outcome, 1, "version") < 3) outcome_fault(outcome, "made although it was there");
    if (made && replaced && outcome->answers[2].began > outcome->answers[1].event)
        outcome_fault(outcome, "an old version fits a new document");
}

static const struct exploration again = {
    .name = "document deleted and made again",
    .flows = {REQUEST("DELETE /v1/documents/c/a", NULL),
              REQUEST_WITH("PUT /v1/documents/c/a", "2", "If-None-Match", "*"),
              REQUEST_WITH("PUT /v1/documents/c/a", "3", "If-Match", "\"1\"")},
    .before = {FIRST},
    .faults = 2,
    .check = check_made_again};

TEST(explore_document_made_again)
{
    explore(&again);
    explore_broken(&again, "SET #version = #version + :one, #deleted",
                   "SET #version = #version - :one, #deleted");
    explore_broken(&again, "(attribute_not_exists(#version) or attribute_exists(#deleted))",
                   "#version <> :zero");
}
