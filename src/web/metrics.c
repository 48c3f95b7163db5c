/* What /metrics tells, in Prometheus' text format. */
#include <stdio.h>
#include <string.h>

#include "backup/backup.h"
#include "console/console.h"
#include "drive/drive.h"
#include "fiber/fiber.h"
#include "func/func.h"
#include "pattern/pattern.h"
#include "react/react.h"
#include "trigger/trigger.h"
#include "web/internal.h"

/* The names are string constants of one table, so their address tells them apart; a full table counts no new
 * ones. */
void web_count_error(struct web *web, const char *error)
{
    for (int i = 0; i < WEB_ERROR_KINDS; i++) {
        const char *name = atomic_load(&web->errors[i].name), *none = NULL;
        if (!name) {
            if (atomic_compare_exchange_strong(&web->errors[i].name, &none, error))
                name = error;
            else
                name = none;
        }
        if (name == error || strcmp(name, error) == 0) {
            stats_add(&web->errors[i].count, 1);
            return;
        }
    }
}

void web_count_for_console(void *context, struct console_counts *out)
{
    struct web *web = context;
    *out = (struct console_counts){.v1 = stats_read(&web->v1_requests)};
    for (int i = 0; i < WEB_ERROR_KINDS && atomic_load(&web->errors[i].name); i++)
        out->errors += stats_read(&web->errors[i].count);
    if (web->server) out->connections = stats_read(&net_server_stats(web->server)->connections_open);
}

static void put_operations(struct web *web, struct buf *out)
{
    stats_put_head(out, "quipu_requests_total", "counter", "Requests answered, by operation.");
    for (unsigned i = 0; i < api_operation_count(); i++) {
        uint64_t count = histogram_count(&web->operations[i]);
        if (count)
            buf_printf(out, "quipu_requests_total{operation=\"%.*s\"} %llu\n",
                       SLICE_ARG(api_operation_name(api_operation_at(i))), (unsigned long long)count);
    }
    stats_put_head(out, "quipu_request_seconds", "histogram",
                   "From the whole request to its reply, by operation.");
    for (unsigned i = 0; i < api_operation_count(); i++) {
        char labels[80];
        if (!histogram_count(&web->operations[i])) continue;
        snprintf(labels, sizeof labels, "operation=\"%.*s\"",
                 SLICE_ARG(api_operation_name(api_operation_at(i))));
        histogram_put(out, "quipu_request_seconds", labels, &web->operations[i], 1e6);
    }
}

static void put_errors(struct web *web, struct buf *out)
{
    stats_put_head(out, "quipu_errors_total", "counter", "Requests answered with an exception, by its name.");
    for (int i = 0; i < WEB_ERROR_KINDS; i++) {
        const char *name = atomic_load(&web->errors[i].name);
        if (name)
            buf_printf(out, "quipu_errors_total{exception=\"%s\"} %llu\n", name,
                       (unsigned long long)stats_read(&web->errors[i].count));
    }
}

static void put_writer(struct web *web, struct buf *out)
{
    const struct engine_stats *stats = engine_stats(web->engine);
    stats_put_number(out, "quipu_commits_total", "counter", "Writes committed.", stats_read(&stats->commits));
    stats_put_head(out, "quipu_commit_batch_size", "histogram", "Writes that shared one commit.");
    histogram_put(out, "quipu_commit_batch_size", "", &stats->batch_sizes, 1);
    stats_put_head(out, "quipu_commit_seconds", "histogram", "Writing and syncing one commit.");
    histogram_put(out, "quipu_commit_seconds", "", &stats->commit_us, 1e6);
    stats_put_number(out, "quipu_cache_hits_total", "counter", "Items found in the cache.",
                     stats_read(&stats->cache_hits));
    stats_put_number(out, "quipu_cache_misses_total", "counter", "Items looked up in the store.",
                     stats_read(&stats->cache_misses));
    stats_put_number(out, "quipu_cache_bytes", "gauge", "Memory of the item cache.",
                     engine_cache_bytes(web->engine));
    stats_put_number(out, "quipu_vector_bytes", "gauge", "Memory of the vector indexes.",
                     engine_vector_bytes(web->engine));
}

static void put_store(struct web *web, struct buf *out)
{
    struct store_stats stats = {0};
    engine_store_stats(web->engine, &stats);
    stats_put_number(out, "quipu_store_disk_bytes", "gauge", "Size of the data folder.", stats.disk_bytes);
    stats_put_number(out, "quipu_store_memory_bytes", "gauge", "Memory of the store.", stats.memory_bytes);
    stats_put_number(out, "quipu_store_keys", "gauge", "Stored entries, estimated.", stats.keys_estimate);
}

static void put_connections(struct web *web, struct buf *out)
{
    const struct net_stats *stats = net_server_stats(web->server);
    stats_put_number(out, "quipu_connections_open", "gauge", "Open connections.",
                     stats_read(&stats->connections_open));
    stats_put_number(out, "quipu_connections_total", "counter", "Connections accepted.",
                     stats_read(&stats->connections_total));
    stats_put_head(out, "quipu_loop_connections", "gauge", "Connections of each event loop.");
    for (unsigned i = 0; i < web->threads; i++)
        buf_printf(out, "quipu_loop_connections{loop=\"%u\"} %u\n", i,
                   net_server_loop_connections(web->server, i));
    stats_put_number(out, "quipu_connections_moved_total", "counter",
                     "Connections that went from a busy event loop to another.", stats_read(&stats->moved));
    stats_put_number(out, "quipu_refused_total", "counter", "Requests that HTTP itself refused.",
                     stats_read(&stats->refused));
    stats_put_number(out, "quipu_timeouts_total", "counter", "Connections closed by a time-out.",
                     stats_read(&stats->timeouts));
    stats_put_number(out, "quipu_displaced_total", "counter",
                     "Idle or unfinished connections closed to make room for new ones.",
                     stats_read(&stats->displaced));
    stats_put_number(out, "quipu_deferred_total", "counter",
                     "Times that a client of long requests waited a turn, so that others were served first.",
                     stats_read(&stats->deferred));
    stats_put_number(out, "quipu_received_bytes_total", "counter", "Bytes read from clients.",
                     stats_read(&stats->bytes_in));
    stats_put_number(out, "quipu_sent_bytes_total", "counter", "Bytes written to clients.",
                     stats_read(&stats->bytes_out));
}

/* Requests of patterns and work in the background, each on a stack of its own. */
static void put_tasks(struct buf *out)
{
    struct fiber_counts counts = fiber_count();
    stats_put_number(out, "quipu_tasks_begun_total", "counter", "Tasks that have begun.", counts.begun);
    stats_put_number(out, "quipu_tasks_waiting", "gauge",
                     "Tasks that wait for a reply, a moment or a change.", counts.waiting);
    stats_put_number(out, "quipu_tasks_running", "gauge", "Tasks that run on a thread at this moment.",
                     counts.running);
    stats_put_number(out, "quipu_task_stacks_kept", "gauge", "Stacks that are kept for further tasks.",
                     counts.kept);
    stats_put_number(out, "quipu_task_stack_bytes", "gauge", "What a task's stack may hold.",
                     counts.stack_bytes);
    stats_put_number(out, "quipu_task_stack_used_bytes", "gauge",
                     "The most that one task has used of it, in whole pages.", counts.stack_used_bytes);
}

void web_put_metrics(struct web *web, struct buf *out)
{
    put_operations(web, out);
    put_errors(web, out);
    if (web->engine) {
        put_writer(web, out);
        put_store(web, out);
    }
    if (web->func) func_put_metrics(web->func, out);
    if (web->trigger) trigger_put_metrics(web->trigger, out);
    if (web->react) react_put_metrics(web->react, out);
    if (web->drive) drive_put_metrics(web->drive, out);
    if (web->backup) backup_put_metrics(web->backup, out);
    if (web->pattern) pattern_put_metrics(web->pattern, out);
    if (web->console) console_put_metrics(web->console, out);
    put_tasks(out);
    if (web->server) put_connections(web, out);
    stats_put_number(out, "quipu_pattern_requests_total", "counter", "Requests under /v1.",
                     stats_read(&web->v1_requests));
    stats_put_number(out, "quipu_uptime_seconds", "gauge", "Since the start.",
                     (uint64_t)(clock_now_ms(web->clock) - web->started_ms) / 1000);
}
