/* Threads that share a job, a lease and a log, with the database inside the program.
 *
 *     cc -pthread -o patterns patterns.c $(pkg-config --cflags --libs quipu)
 *     ./patterns :memory:
 *     ./patterns http://127.0.0.1:8000    # the same among processes and machines, or on Amazon DynamoDB
 *
 * A job of 20 pages is done by four threads, twice by some of them, as happens when messages are delivered
 * again. Each page is numbered by a counter and noted in a log. One thread, and only one, is told that it was
 * the last; it takes a lease and reads the log. */
#include <pthread.h>
#include <quipu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGES   20
#define THREADS 4

struct worker {
    struct quipu *db;
    pthread_t thread;
    int number;
};

static void die(const char *doing, const struct quipu_reply *reply)
{
    fprintf(stderr, "%s: %s\n", doing, reply ? reply->message : "failed");
    exit(1);
}

/* Everything in order of the log, by a consumer of the group "print". */
static void read_log(struct quipu *db)
{
    struct quipu_reply *events = NULL, *reply = NULL;
    struct quipu_read read = {.owner = "the last one"};
    struct quipu_batch batch;
    size_t count = 0;
    enum quipu_result result;
    while ((result = quipu_log_read(db, "pages", "print", &read, &batch, &events)) == QUIPU_FOUND) {
        for (size_t i = 0; i < batch.count; i++) count += batch.events[i].sequence == (int64_t)count + 1;
        if (quipu_log_ack(db, "pages", "print", batch.partition, batch.fence, batch.position + (int64_t)batch.count,
                          &reply) < 0)
            die("ack", reply);
    }
    if (result < 0) die("read", events);
    printf("%d events in order\n", (int)count);
    quipu_reply_free(events);
    quipu_reply_free(reply);
}

/* What must be done once, by one. The lease guards it against whoever else might come to do it. */
static void consolidate(struct quipu *db, const char *me)
{
    struct quipu_reply *reply = NULL;
    struct quipu_lease lease;
    int64_t version;
    if (quipu_lease_take(db, "report", me, 60000, 10000, &lease, &reply) < 0) die("lease", reply);
    printf("last: one thread, with fence %d\n", (int)lease.fence);
    read_log(db);
    if (quipu_document_put(db, "reports", "pages", "{\"pages\":20}", QUIPU_ANY, &version, &reply) < 0)
        die("document", reply);
    if (quipu_lease_release(db, "report", me, &lease, &reply) < 0) die("release", reply);
    quipu_reply_free(reply);
}

/* Every page is done by two threads; the second time it is not counted. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct quipu *db = worker->db;
    struct quipu_reply *reply = NULL;
    struct quipu_done done;
    int64_t number;
    char me[20], page[20], token[44];
    snprintf(me, sizeof me, "worker-%d", worker->number);
    for (int i = 0; i < PAGES; i++) {
        if (i % THREADS != worker->number && (i + 1) % THREADS != worker->number) continue;
        snprintf(page, sizeof page, "page-%d", i);
        if (quipu_counter_add(db, "attempts", 1, &number, &reply) < 0) die("count", reply);
        if (quipu_log_append(db, "pages", "all", "{}", page, NULL, NULL, &reply) < 0) die("append", reply);
        /* Two threads do the same page: with a token each, one call of one of them is the last. */
        int64_t task = i;
        snprintf(token, sizeof token, "%s %s", me, page);
        struct quipu_tasks tasks = {.numbers = &task, .count = 1, .token = token};
        if (quipu_job_done_tasks(db, "pages", &tasks, &done, &reply) < 0) die("done", reply);
        if (done.last) consolidate(db, me);
    }
    quipu_reply_free(reply);
    return NULL;
}

static void prepare(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job_options job = {.total = PAGES, .deadline_ms = 3600000};
    if (quipu_job_put(db, "pages", &job, NULL, &reply) < 0) die("job", reply);
    if (quipu_log_put(db, "pages", 1, 0, &reply) < 0) die("log", reply);
    quipu_reply_free(reply);
}

static void report(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    int64_t attempts;
    if (quipu_job_wait(db, "pages", 10000, &job, &reply) != QUIPU_FOUND) die("wait", reply);
    if (quipu_counter_get(db, "attempts", &attempts, &reply) < 0) die("attempts", reply);
    printf("%d of %d pages by %d attempts\n", (int)job.done, (int)job.total, (int)attempts);
    if (quipu_document_get(db, "reports", "pages", NULL, &reply) < 0) die("report", reply);
    printf("report: %s\n", reply->json);
    quipu_reply_free(reply);
}

int main(int argc, char **argv)
{
    char error[QUIPU_ERROR_BYTES];
    struct quipu *db = quipu_open(argc > 1 ? argv[1] : ":memory:", NULL, error, sizeof error);
    struct worker workers[THREADS];
    if (!db) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    prepare(db);
    for (int i = 0; i < THREADS; i++) {
        workers[i].db = db;
        workers[i].number = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    report(db);
    quipu_close(db);
    return 0;
}
