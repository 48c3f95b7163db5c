/* The console: a web page in the binary (src/console/page), and what feeds it.
 *
 * The page is a client like any other: it calls DynamoDB's API, Lambda's and /v1 at the origin that it came from. Only
 * what no API has is served here:
 *
 *   GET /                  the page, for who accepts text/html
 *   GET /console/NAME      a file of the page
 *   GET /console/info      what this server is, as JSON
 *   GET /console/help      {"commands":[{"name","summary","help"},...]}: the texts of the command line
 *   GET /console/events    what happens, each second (events.c)
 *   GET /console/changes?table=NAME   each change of a table (changes.c)
 *   GET /console/running?job=ID       {"tasks":[...]}: those of a job that this server calls its target for
 *   POST /console/match    {"pattern","events"}: which events match (match.c)
 *
 * Events are server-sent (text/event-stream), each a line "data: {...}" and an empty one:
 *   {"history":[SAMPLE,...],"stepMs":10000}   of the last day, where ?since=MS is as old; in several events
 *   {"history":[SAMPLE,...],"stepMs":1000}    of the last ten minutes, behind ?since=MS
 *                                             ?last=MS: of so many milliseconds before now
 *   {"sample":SAMPLE}                         from then on, each second
 * A SAMPLE has "t" (ms since 1970) and what happened in the second (or, per second, in the ten) before: "ops" (by name,
 * only those that there were; "/v1" is all patterns), "p50", "p99" (microseconds of a request), "errors", "commits",
 * "batch" (writes in a commit, mean), "syncUs" (p50), "calls", "callErrors", "callUs" (p50) of functions; and as it is
 * then: "connections", "memory", "disk" (bytes), "lagMs" (the oldest change that waits for a function), "queue"
 * (asynchronous calls), "dead" (messages in queues). What cannot be told, as the p50 of no requests, is left out. Live
 * samples also have, of the busiest, "tables": {NAME: {"r", "w"}}, "functions": {NAME: {"calls", "errors", "running"}}
 * and "jobs": {NAME: {"done", "failed", "total"}}, and "triggers": {ID: {"table", "function", "lagMs"}}, those that lag
 * most.
 * Samples of ten seconds have "step": 10000.
 *
 * Changes are events, too: {"seq","t","kind","keys","old","new"}, the kind INSERT, MODIFY or REMOVE, keys and items in
 * DynamoDB's JSON, "old" and "new" where there is one; {"skipped":n} where more came than anybody could read; as the
 * last one {"end":SENTENCE}, where the client did not read.
 *
 * The files are compressed when the binary is built and served as they are. They may load nothing from elsewhere, and
 * run no script but these files (the policy in page.c).
 *
 * Where keys are asked for, the page's files and `info` need no signature; everything else does, for the service name
 * "quipu" as under /v1. Which web pages may ask at all is decided before, for all doors (rest_door). */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/slice.h"
#include "base/stats.h"
#include "dynamo/dynamo.h"
#include "rest/rest.h"

struct console;
struct drive;
struct func;
struct pattern;
struct trigger;

/* What it points at is kept, not owned. */
struct console_options {
    const char *folder; /* the page's files are read from here at each request; NULL: those in the binary */
    bool reads_only;    /* the page offers no changes; the door refuses those that it asks for all the same */
    bool asks_for_keys; /* the server has --credentials */
    struct dynamo *dynamo;
    struct engine *engine; /* NULL: the data is elsewhere */
    struct func *func;     /* NULL: none */
    struct trigger *trigger; /* likewise, */
    struct pattern *pattern; /* ... and this, */
    struct drive *drive;     /* ... and this */
    const char *kind, *where; /* of the data: "folder", "memory" or "remote"; the folder or URL, may be NULL */
    const char *region, *prefix;
    bool has_hooks;
    void (*put_help)(struct buf *out); /* the command line's: members of a JSON array; NULL: none */
    const struct clock *clock;
};

/* NULL and a sentence when the folder cannot be read. */
struct console *console_open(const struct console_options *options, char *error, size_t error_len);
/* NULL is fine. Before func and trigger are closed, and when no loop runs any more. */
void console_close(struct console *console);

/* What only the door can count. */
struct console_counts {
    uint64_t errors, v1, connections;
};
struct console_source {
    const struct histogram *operations; /* microseconds of each request, by the operation's number */
    void (*count)(void *context, struct console_counts *out);
    void *context;
};
/* From here on it samples. */
void console_start(struct console *console, const struct console_source *source);
/* The server is about to stop: the streams end. */
void console_drain(struct console *console);

/* What the door knows of a request beside the call. */
struct console_visit {
    bool is_signed;  /* by a key of ours, or no keys are asked for */
    bool takes_gzip; /* in a reply */
};

/* Whether the path needs no signature: the page's files, and what the page must know before it can ask for a key. */
bool console_is_open(struct slice path);
/* Answers a call of /, /console or what is below it. */
void console_serve(struct console *console, struct rest_call *call, const struct console_visit *visit);
bool console_reads_only(const struct console *console);
/* Lines for /metrics. */
void console_put_metrics(struct console *console, struct buf *out);

#endif
