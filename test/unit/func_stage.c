#include "unit/func_stage.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "func/archive.h"
#include "func/pool.h"

#define LONG_MS 180000 /* longer than anything takes on the slowest machine */

/* ---- the server ---- */

static void serve_plain(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_reply(exchange, 404, SLICE("text/plain"), SLICE_NONE);
}

static struct slice refuse(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context;
    buf_printf(body, "%d %s", *status, reason);
    return SLICE("text/plain");
}

static void *run_server(void *server)
{
    net_server_run(server);
    return NULL;
}

/* What a function's process asks of the server. */
static void forward(void *context, struct http_exchange *exchange, struct slice cause)
{
    struct stage *stage = context;
    pthread_mutex_lock(&stage->lock);
    snprintf(stage->forwarded_path, sizeof stage->forwarded_path, "%.*s", SLICE_ARG(exchange->path));
    snprintf(stage->forwarded_cause, sizeof stage->forwarded_cause, "%.*s", SLICE_ARG(cause));
    pthread_mutex_unlock(&stage->lock);
    buf_slice(&exchange->reply, cause);
    http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
}

static int64_t stage_now(void *self)
{
    struct stage *stage = self;
    return clock_now_ms(&clock_system) + atomic_load(&stage->ahead_ms);
}

static void server_begin(struct stage *stage)
{
    char error[256] = "";
    struct net_options options = {.host = "127.0.0.1", .threads = 2, .limits = net_limits_default};
    options.limits.drain_ms = 100;
    options.handler = (struct net_handler){.request = serve_plain, .refusal = refuse, .context = stage};
    stage->server = net_server_new(&options, error, sizeof error);
    if (!stage->server) fprintf(stderr, "%s\n", error);
    ensure(stage->server);
    ensure(pthread_create(&stage->thread, NULL, run_server, stage->server) == 0);
    stage->has_server_ended = false;
}

static void server_end(struct stage *stage)
{
    if (stage->has_server_ended) return;
    net_server_stop(stage->server);
    pthread_join(stage->thread, NULL);
    stage->has_server_ended = true;
}

static void func_begin(struct stage *stage)
{
    const struct stage_options *options = &stage->options;
    char error[256] = "";
    struct func_options func_options = {.dynamo = stage->dynamo,
                                        .sandbox = stage->sandbox,
                                        .clock = &stage->clock,
                                        .folder = stage->folder,
                                        .region = "us-east-1",
                                        .account = "000000000000",
                                        .shared = options->shared,
                                        .process_max = options->process_max,
                                        .idle_ms = options->idle_ms};
    stage->func = func_open(&func_options, error, sizeof error);
    if (!stage->func) fprintf(stderr, "%s\n", error);
    ensure(stage->func);
    func_start(stage->func, stage->server, forward, stage);
}

void stage_open(struct stage *stage, const struct stage_options *options)
{
    char error[256] = "";
    *stage = (struct stage){.options = *options, .dynamo = options->dynamo};
    pthread_mutex_init(&stage->lock, NULL);
    stage->clock = (struct clock){stage_now, stage};
    snprintf(stage->folder, sizeof stage->folder, "/tmp/quipu-stage-XXXXXX");
    ensure(mkdtemp(stage->folder));
    stage->sandbox = sandbox_new(NULL, error, sizeof error);
    ensure(stage->sandbox);
    if (!stage->dynamo) stage->dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    ensure(stage->dynamo);
    server_begin(stage);
    func_begin(stage);
}

static void stage_free(struct stage *stage)
{
    net_server_free(stage->server);
    sandbox_free(stage->sandbox);
    if (!stage->options.dynamo) dynamo_close(stage->dynamo);
    archive_remove(stage->folder);
    pthread_mutex_destroy(&stage->lock);
}

void stage_close(struct stage *stage)
{
    server_end(stage);
    func_close(stage->func);
    stage_free(stage);
}

void stage_close_func_first(struct stage *stage)
{
    func_close(stage->func);
    server_end(stage);
    stage_free(stage);
}

void stage_restart(struct stage *stage)
{
    func_close(stage->func);
    func_begin(stage);
}

/* ---- functions ---- */

void stage_folder(struct stage *stage, const char *name, char *out, size_t room)
{
    snprintf(out, room, "%s/code-%s", stage->folder, name);
}

void stage_write_file(const char *path, const char *text, unsigned mode)
{
    FILE *file = fopen(path, "w");
    ensure(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

static void create(struct stage *stage, const char *name, const char *guest, const char *more)
{
    struct arena arena = {0};
    struct slice reply;
    char folder[128];
    stage_folder(stage, name, folder, sizeof folder);
    struct slice body = arena_printf(
        &arena,
        "{\"FunctionName\":\"%s\",\"Runtime\":\"provided.al2023\",\"Handler\":\"h.m\",\"MemorySize\":1024,"
        "\"Role\":\"arn:aws:iam::000000000000:role/r\",\"Code\":{\"Directory\":\"%s\"},"
        "\"Environment\":{\"Variables\":{\"GUEST\":\"%s\",\"MINE\":\"yes\"}}%s%s%s}",
        name, folder, guest, strstr(more, "\"Timeout\"") ? "" : ",\"Timeout\":60", *more ? "," : "", more);
    int status = stage_rest(stage, "POST", "/2015-03-31/functions", body.data, &arena, &reply);
    if (status != 201) test_failed(__FILE__, __LINE__, "%s: %d %.*s", name, status, SLICE_ARG(reply));
    arena_free(&arena);
}

/* By way of this process, so that it does not matter when the file is built anew meanwhile. */
void stage_put_guest(const char *path)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/%d/exe", (int)getpid());
    ensure(symlink(self, path) == 0);
}

void stage_function(struct stage *stage, const char *name, const char *guest, const char *more)
{
    char folder[128], bootstrap[160];
    stage_folder(stage, name, folder, sizeof folder);
    snprintf(bootstrap, sizeof bootstrap, "%s/bootstrap", folder);
    mkdir(folder, 0777);
    stage_put_guest(bootstrap);
    create(stage, name, guest, more);
}

void stage_script(struct stage *stage, const char *name, const char *script, const char *more)
{
    char folder[128], bootstrap[160];
    stage_folder(stage, name, folder, sizeof folder);
    snprintf(bootstrap, sizeof bootstrap, "%s/bootstrap", folder);
    mkdir(folder, 0777);
    stage_write_file(bootstrap, script, 0755);
    create(stage, name, "none", more);
}

const char *stage_gated(struct stage *stage, struct arena *arena)
{
    return arena_printf(arena, "\"until %s/gate\"", stage->folder).data;
}

void stage_open_gate(struct stage *stage)
{
    char path[128];
    snprintf(path, sizeof path, "%s/gate", stage->folder);
    stage_write_file(path, "", 0644);
}

/* ---- calls ---- */

static void outcome_done(struct invocation *invocation)
{
    struct outcome *outcome = (struct outcome *)invocation;
    _Atomic int *counter = outcome->counter;
    pthread_mutex_lock(&outcome->lock);
    outcome->is_done = true;
    pthread_cond_signal(&outcome->change);
    pthread_mutex_unlock(&outcome->lock);
    if (counter) atomic_fetch_add(counter, 1);
}

void outcome_prepare(struct outcome *outcome, const char *name, const char *payload)
{
    pthread_mutex_init(&outcome->lock, NULL);
    pthread_cond_init(&outcome->change, NULL);
    outcome->invocation.function = slice_of(name);
    outcome->invocation.payload = slice_of(payload);
    outcome->invocation.arena = &outcome->arena;
    outcome->invocation.done = outcome_done;
}

void outcome_begin(struct outcome *outcome, struct stage *stage, const char *name, const char *payload)
{
    outcome_prepare(outcome, name, payload);
    func_invoke(stage->func, &outcome->invocation);
}

void outcome_wait(struct outcome *outcome)
{
    pthread_mutex_lock(&outcome->lock);
    while (!outcome->is_done) pthread_cond_wait(&outcome->change, &outcome->lock);
    pthread_mutex_unlock(&outcome->lock);
}

void outcome_free(struct outcome *outcome)
{
    buf_free(&outcome->invocation.reply);
    buf_free(&outcome->invocation.log);
    arena_free(&outcome->arena);
    pthread_mutex_destroy(&outcome->lock);
    pthread_cond_destroy(&outcome->change);
}

void outcome_call(struct outcome *outcome, struct stage *stage, const char *name, const char *payload)
{
    outcome_begin(outcome, stage, name, payload);
    outcome_wait(outcome);
}

/* ---- looking ---- */

struct slice stage_dynamo(struct stage *stage, const char *operation, const char *request,
                          struct arena *arena)
{
    struct buf reply = {0};
    dynamo_call(stage->dynamo, slice_of(operation), slice_of(request), &reply);
    struct slice copy = arena_copy(arena, buf_view(&reply));
    buf_free(&reply);
    return copy;
}

bool stage_until(bool (*holds)(void *context), void *context)
{
    int64_t until_us = monotonic_us() + LONG_MS * 1000ll;
    while (!holds(context)) {
        if (monotonic_us() > until_us) return false;
        usleep(2000);
    }
    return true;
}

struct rest_waiting {
    struct rest_call call; /* first: the call is us */
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_done;
};

static void rest_done(struct rest_call *call)
{
    struct rest_waiting *waiting = (struct rest_waiting *)call;
    pthread_mutex_lock(&waiting->lock);
    waiting->is_done = true;
    pthread_cond_signal(&waiting->change);
    pthread_mutex_unlock(&waiting->lock);
}

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call;
    return slice_equal_ignoring_case(name, SLICE("Host")) ? SLICE("localhost") : SLICE_NONE;
}

int stage_rest(struct stage *stage, const char *method, const char *target, const char *body,
               struct arena *arena, struct slice *reply)
{
    struct buf out = {0};
    const char *query = strchr(target, '?');
    struct rest_waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    waiting.call = (struct rest_call){.method = slice_of(method),
                                      .path = {target, query ? (size_t)(query - target) : strlen(target)},
                                      .query = slice_of(query ? query + 1 : ""),
                                      .body = slice_of(body ? body : ""),
                                      .header = no_header,
                                      .arena = arena,
                                      .done = rest_done,
                                      .headers = SLICE(""),
                                      .reply = &out};
    if (!func_serve(stage->func, &waiting.call)) {
        *reply = SLICE_NONE;
        return 404;
    }
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_done) pthread_cond_wait(&waiting.change, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    *reply = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return waiting.call.status;
}

unsigned stage_processes(struct stage *stage, const char *name, const char *state)
{
    struct buf out = {0};
    char wanted[64];
    unsigned count = 0;
    pool_put_processes(stage->func->pool, slice_of(name), &out);
    buf_byte(&out, 0);
    snprintf(wanted, sizeof wanted, "\"State\":\"%s", state ? state : "");
    for (const char *at = out.data; (at = strstr(at, wanted)); at++) count++;
    buf_free(&out);
    return count;
}

struct process_wanted {
    struct stage *stage;
    const char *name;
};

static bool process_rests(void *context)
{
    struct process_wanted *wanted = context;
    return stage_processes(wanted->stage, wanted->name, "Idle") == 1;
}

void stage_rest_process(struct stage *stage, const char *name)
{
    if (!stage_until(process_rests, &(struct process_wanted){stage, name}))
        test_failed(__FILE__, __LINE__, "%s has not one idle process", name);
}

struct log_wanted {
    struct stage *stage;
    const char *name, *text;
    struct buf out;
};

static bool log_holds(void *context)
{
    struct log_wanted *wanted = context;
    uint64_t next;
    wanted->out.len = 0;
    logs_read(wanted->stage->func->logs, slice_of(wanted->name), 0, 1 << 20, &wanted->out, &next);
    return slice_contains(buf_view(&wanted->out), slice_of(wanted->text));
}

struct slice stage_log(struct stage *stage, const char *name, const char *until, struct arena *arena)
{
    struct log_wanted wanted = {.stage = stage, .name = name, .text = until};
    if (!stage_until(log_holds, &wanted)) test_failed(__FILE__, __LINE__, "%s never logs %s", name, until);
    struct slice text = arena_copy(arena, buf_view(&wanted.out));
    buf_free(&wanted.out);
    return text;
}
