/* A running server as the source of copies: the client's half of server.c. What comes over the wire is checked: names
 * of files when a base is parsed, bytes against the checksum that precedes them. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backup/target.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/node.h"

#define ATTEMPTS      6
#define PAUSE_US      200000u          /* before the second attempt; twice as long before each further one */
#define CHECKPOINT_MS (10 * 60 * 1000) /* to bring everything to files, on slow disks */
#define READ_MS       (2 * 60 * 1000)
#define READ_HEAD     16 /* before a file's bytes: the checksum, the newest batch */

struct remote {
    struct backup_source source; /* first: it is cast back */
    backup_asker *asker;
    void *context;
    char name[LIMIT_BACKUP_FOLLOWER_BYTES + 1];
    bool follows;
    char id[BACKUP_NAME_BYTES]; /* of the checkpoint; "": there is none */
};

static void message_take(const struct backup_ask *ask, char *error, size_t error_len)
{
    struct arena arena = {0};
    const char *fault;
    const struct node *tree = node_parse(&arena, buf_view(ask->reply), &fault);
    struct slice message = node_text(tree, "message");
    if (!message.len) message = node_text(tree, "Message");
    if (message.len)
        snprintf(error, error_len, "%.*s", SLICE_ARG(message));
    else if (ask->status == 404)
        snprintf(error, error_len,
                 "the server knows nothing of backups (HTTP status 404): is it an older quipu, or "
                 "another DynamoDB?");
    else
        snprintf(error, error_len, "the server answered with HTTP status %d", ask->status);
    arena_free(&arena);
}

static enum backup_log ask_once(struct remote *remote, struct backup_ask *ask, char *error, size_t error_len)
{
    ask->reply->len = 0;
    if (!remote->asker(remote->context, ask)) {
        snprintf(error, error_len, "%s", ask->failure);
        return BACKUP_LOG_AWAY;
    }
    if (ask->status == 200) return BACKUP_LOG_BLOCK;
    message_take(ask, error, error_len);
    if (ask->status == 410) return BACKUP_LOG_GONE;
    return ask->status >= 500 || ask->status == 429 ? BACKUP_LOG_AWAY : BACKUP_LOG_FAILED;
}

/* What passes by itself is tried again. */
static bool ask(struct remote *remote, struct backup_ask *asked, char *error, size_t error_len)
{
    for (unsigned attempt = 0;; attempt++) {
        enum backup_log result = ask_once(remote, asked, error, error_len);
        if (result != BACKUP_LOG_AWAY || attempt + 1 == ATTEMPTS) return result == BACKUP_LOG_BLOCK;
        usleep(PAUSE_US << attempt);
    }
}

static void remote_end(void *self)
{
    struct remote *remote = self;
    struct buf reply = {0};
    char path[200], error[300];
    if (!remote->id[0]) return;
    snprintf(path, sizeof path, "/v1/backup/checkpoints/%s", remote->id);
    struct backup_ask asked = {.method = "DELETE", .path = path, .reply = &reply};
    ask_once(remote, &asked, error, sizeof error); /* else the server removes it after a while */
    remote->id[0] = '\0';
    buf_free(&reply);
}

static bool remote_begin(void *self, struct backup_base *base, char *error, size_t error_len)
{
    struct remote *remote = self;
    struct buf reply = {0};
    char query[sizeof remote->name + 10];
    snprintf(query, sizeof query, "target=%s", remote->name);
    struct backup_ask asked = {.method = "POST",
                               .path = "/v1/backup/checkpoints",
                               .query = query,
                               .total_ms = CHECKPOINT_MS,
                               .reply = &reply};
    remote_end(self);
    /* Once: whoever named a wrong URL wants to know it now. */
    bool fine = ask_once(remote, &asked, error, error_len) == BACKUP_LOG_BLOCK;
    if (fine && (!base_parse(buf_view(&reply), base, remote->id) || !remote->id[0])) {
        snprintf(error, error_len, "the server's list of files cannot be understood");
        fine = false;
    }
    buf_free(&reply);
    return fine;
}

static bool remote_read(void *self, const struct backup_file *file, uint64_t from, struct buf *out,
                        char *error, size_t error_len)
{
    struct remote *remote = self;
    struct buf reply = {0};
    char path[300], query[40];
    snprintf(path, sizeof path, "/v1/backup/checkpoints/%s/files/%s", remote->id, file->name);
    snprintf(query, sizeof query, "from=%llu", (unsigned long long)from);
    struct backup_ask asked = {
        .method = "GET", .path = path, .query = query, .total_ms = READ_MS, .reply = &reply};
    bool fine = ask(remote, &asked, error, error_len);
    if (fine) {
        struct slice checked = reply.len < READ_HEAD ? SLICE_NONE : slice_from(buf_view(&reply), 8);
        fine = checked.data && hash_bytes(checked) == bytes_u64(reply.data);
        if (fine) {
            remote->source.newest = bytes_u64(checked.data);
            buf_slice(out, slice_from(buf_view(&reply), READ_HEAD));
        } else {
            snprintf(error, error_len, "the file %s arrived otherwise than it was sent", file->name);
        }
    }
    buf_free(&reply);
    return fine;
}

static enum backup_log remote_log(void *self, uint64_t source, uint64_t from, int64_t wait_ms,
                                  struct buf *block, char *error, size_t error_len)
{
    struct remote *remote = self;
    char query[LIMIT_BACKUP_FOLLOWER_BYTES + 120], name[LIMIT_BACKUP_FOLLOWER_BYTES + 12] = "";
    if (remote->follows) snprintf(name, sizeof name, "follower=%s&", remote->name);
    snprintf(query, sizeof query, "%sfrom=%llu&source=%016llx&wait=%lld", name, (unsigned long long)from,
             (unsigned long long)source, (long long)wait_ms);
    struct backup_ask asked = {.method = "GET",
                               .path = "/v1/backup/log",
                               .query = query,
                               .total_ms = wait_ms + READ_MS,
                               .reply = block};
    enum backup_log result = ask_once(remote, &asked, error, error_len);
    if (result == BACKUP_LOG_BLOCK && block->len < BLOCK_HEAD) {
        snprintf(error, error_len, "the server sent no block of the log");
        return BACKUP_LOG_AWAY;
    }
    return result;
}

static void remote_close(void *self)
{
    remote_end(self);
    free(self);
}

struct backup_source *backup_source_server(backup_asker *asker, void *context, const char *name, bool follows)
{
    struct remote *remote = must_zero(1, sizeof *remote);
    remote->asker = asker;
    remote->context = context;
    remote->follows = follows;
    snprintf(remote->name, sizeof remote->name, "%s", name);
    remote->source = (struct backup_source){.self = remote,
                                            .begin = remote_begin,
                                            .read = remote_read,
                                            .end = remote_end,
                                            .log = remote_log,
                                            .close = remote_close};
    return &remote->source;
}
