/* quipu job start: opens a job whose tasks the server calls by itself, and sends it the items of a file, a chunk at a
 * time. What is there already is passed over, so after an interruption the same command goes on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "cli/listing.h"
#include "cli/operation.h"
#include "cli/progress.h"
#include "cli/special.h"

#define CHUNK_BYTES (1000 * 1000)
#define CHUNK_LINES 4096
#define LINE_MOST   300000 /* what a job takes as an item */

/* Members of the PUT: JSON where it is that, else text. */
static const char *const settings[] = {"total",   "each",   "concurrency", "attempts", "backoff",
                                       "timeout", "paused", "deadline",    "tolerate", "keep",
                                       "then",    "from",   "parent"};

struct sending {
    const struct arguments *arguments;
    struct place place;
    const char *id;
    FILE *file;
    struct progress progress;
    struct buf lines;
    unsigned long long stored, line, in_chunk;
};

/* Sends one request and takes the count of items from its answer. */
static int send(struct sending *sending, struct inquiry *inquiry, bool prints)
{
    struct arena arena = {0};
    struct heard heard = inquiry_run(&sending->place, &arena, inquiry);
    int status = heard_status(&heard);
    if (status != EXIT_FINE)
        heard_complain(sending->arguments, &sending->place, &heard);
    else if (prints)
        json_print(heard.body);
    else
        sending->stored = node_count(heard.json, "stored");
    arena_free(&arena);
    inquiry_free(inquiry);
    return status;
}

static int job_open(struct sending *sending)
{
    struct inquiry inquiry = {.method = "PUT"};
    inquiry_path(&inquiry, "/v1/jobs/%s", sending->id, "");
    buf_byte(&inquiry.body, '{');
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *text = argument_text(sending->arguments, settings[i]);
        if (!text) continue;
        if (inquiry.body.len > 1) buf_byte(&inquiry.body, ',');
        json_put_string(&inquiry.body, slice_of(settings[i]));
        buf_byte(&inquiry.body, ':');
        if (!typed_json(sending->arguments, settings[i], text, &inquiry.body)) return EXIT_USAGE;
    }
    buf_byte(&inquiry.body, '}');
    return send(sending, &inquiry, true);
}

static int chunk_send(struct sending *sending, bool ends)
{
    struct inquiry inquiry = {.method = "POST"};
    char from[24];
    inquiry_path(&inquiry, "/v1/jobs/%s/items", sending->id, "");
    snprintf(from, sizeof from, "%llu", sending->stored);
    inquiry_query(&inquiry, "from", slice_of(from));
    if (ends) inquiry_query(&inquiry, "end", SLICE("true"));
    buf_slice(&inquiry.body, buf_view(&sending->lines));
    sending->lines.len = sending->in_chunk = 0;
    int status = send(sending, &inquiry, false);
    progress_show(&sending->progress, sending->stored);
    return status;
}

/* The next line that is not empty, behind what the chunk has; false: there is none, or it is too long. */
static bool line_read(struct sending *sending)
{
    struct buf *lines = &sending->lines;
    size_t start = lines->len;
    int c = 0;
    while (c != EOF && lines->len - start <= LINE_MOST) {
        c = getc(sending->file);
        bool is_end = c == '\n' || c == EOF;
        if (!is_end) buf_byte(lines, (unsigned char)c);
        if (c == '\n' || (is_end && lines->len > start)) sending->line++;
        if (is_end && slice_trim((struct slice){lines->data + start, lines->len - start}).len) {
            buf_byte(lines, '\n');
            return true;
        }
        if (is_end) lines->len = start;
    }
    return false;
}

static int items_send(struct sending *sending)
{
    int status = chunk_send(sending, false); /* tells what is there */
    unsigned long long skipped = 0;
    for (; status == EXIT_FINE && skipped < sending->stored && line_read(sending); skipped++)
        sending->lines.len = 0;
    if (status == EXIT_FINE && skipped < sending->stored)
        return complain("the job has %s already, more than the file", counted(sending->stored, "item").text);
    while (status == EXIT_FINE && line_read(sending)) {
        sending->in_chunk++;
        bool is_full = sending->in_chunk == CHUNK_LINES || sending->lines.len >= CHUNK_BYTES;
        if (is_full) status = chunk_send(sending, false);
    }
    if (status == EXIT_FINE && ferror(sending->file))
        return complain("the items cannot be read: %s", strerror(errno));
    if (status == EXIT_FINE && sending->lines.len > sending->in_chunk && !feof(sending->file))
        return complain("line %llu is longer than 300,000 bytes", sending->line + 1);
    return status == EXIT_FINE ? chunk_send(sending, true) : status;
}

int job_start(const struct arguments *arguments)
{
    const char *items = argument_text(arguments, "items");
    struct sending sending = {.arguments = arguments, .id = argument_word(arguments, 0)};
    if (!argument_text(arguments, "each"))
        return complain_of_usage(arguments, "--each is missing: what is to be called");
    if (items && argument_text(arguments, "total"))
        return complain_of_usage(arguments, "--items and --total exclude each other");
    sending.file = !items || !strcmp(items, "-") ? stdin : fopen(items, "r");
    if (!sending.file) return complain("%s: %s", items, strerror(errno));
    if (!place_open(&sending.place, arguments, PLACE_MAKE)) return EXIT_FAULT;
    int status = job_open(&sending);
    if (status == EXIT_FINE && items) {
        progress_begin(&sending.progress, sending.id, 0);
        status = items_send(&sending);
        if (status == EXIT_FINE) progress_end(&sending.progress, "stored", sending.stored);
    }
    if (sending.file != stdin) fclose(sending.file);
    buf_free(&sending.lines);
    place_close(&sending.place);
    return status;
}
