/* Power cuts, on real files: see test/README.md.
 *
 *  cut work DATA --seed S --batches N [--end close|exit]      writes batches, and marks in the trace what it was told
 *  cut states TRACE --seed S --states N [--first F]           cuts the trace N times and judges what is there
 *  cut states TRACE --seed S --at K --state X [--omit J]      one of them; its folder is kept
 *             --base DIR --least A --most B                   the trace began with the content of DIR
 *  cut make TRACE --states N --to DIR [--first F]             makes folders, and prints what each is
 *  cut check DATA --seed S --least A --most B                 judges a folder as it is
 *  cut flips DATA --seed S --least A --most B --states N      turns bits in copies of a folder, and judges them
 *  cut lost DATA --seed S --least A --most B --states N       takes segments of the log away in copies of a folder
 *  cut ship TARGET --to DATA --seed S --batches N [--end ...] ships the batches of a store to a target of backups
 *  cut copies TRACE --seed S --states N ...                   as `states`: what is cut and judged is such a target
 *
 * Folders are made in --scratch. Judging happens in children: whatever it ends in is told, with the command that does
 * it again. The last line counts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"
#include "cut/copies.h"
#include "cut/disk.h"
#include "cut/flips.h"
#include "cut/judge.h"

#define ROOM_LOOK_US   20000
#define READ_EVERY     16 /* batches */
#define FAILURES_SHOWN 10
#define LANES          16
#define MORE_BATCHES   2 /* than the trace has: a folder goes on after a cut */

struct arguments {
    const char *command, *path;
    uint64_t seed, states, first, state, patience;
    uint32_t batches, least, most;
    int64_t at, omit;
    bool no_ranges;
    const char *end, *base, *to, *scratch, *data;
};
static struct arguments given = {.first = STATE_RANDOM,
                                 .at = -1,
                                 .omit = OMIT_NONE,
                                 .end = "close",
                                 .scratch = "/dev/shm",
                                 .data = "data",
                                 .most = UINT32_MAX};

struct count {
    uint64_t passed, failed;
};

/* ---- work ---- */

static void mark(int trace, enum trace_mark kind, uint32_t number)
{
    struct trace_record record = {.kind = TRACE_MARK, .flags = kind, .length = number};
    if (trace >= 0) ensure(write(trace, &record, sizeof record) == (ssize_t)sizeof record);
}

/* A disk without room may have some later; nothing of the batch was written then. */
static enum store_result write_batch(struct store *store, const struct store_batch *batch, bool durable)
{
    enum store_result result = store_write(store, batch, durable);
    for (uint64_t i = 0; result == STORE_FULL && i < given.patience; i++) {
        usleep(ROOM_LOOK_US);
        result = store_write(store, batch, durable);
    }
    return result;
}

/* A failure must be told, other data is wrong. */
static bool reads_right(const struct batches *batches, struct store *store, uint32_t number)
{
    uint32_t found;
    char words[1024];
    if (batches_verify(batches, store, number, number, &found, words, sizeof words)) return true;
    printf("behind batch %u: %s\n", number, words);
    return !strncmp(words, "cannot be read", strlen("cannot be read"));
}

/* Exit status 0: it was told the truth, whatever that was. */
static int work(void)
{
    const char *to = getenv(CUT_TRACE);
    int trace = to ? open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    char words[1024];
    struct batches batches;
    struct store *store = open_store(given.path, false, words, sizeof words);
    if (!store) {
        printf("not opened: %s\n", words);
        return 0;
    }
    uint32_t begun = 0, durable = 0;
    bool is_told = true; /* that all is well */
    uint64_t content;
    struct store_batch batch = {0};
    if (!batches_read(store, &begun, &content)) {
        printf("not read: %s\n", store->error);
        store_close(store);
        return 0;
    }
    batches_init(&batches, given.seed, begun + given.batches + 1, given.no_ranges);
    bool is_true = reads_right(&batches, store, begun);
    mark(trace, MARK_DURABLE, durable = begun); /* it can be read */
    for (uint32_t last = begun + given.batches; is_true && is_told && begun < last;) {
        store_batch_clear(&batch);
        struct batch_manner manner = batch_make(&batches, ++begun, &batch);
        mark(trace, MARK_BEGUN, begun);
        enum store_result result = write_batch(store, &batch, manner.durable);
        if (result == STORE_OK && manner.sync) result = store_sync(store);
        if (result == STORE_OK && (manner.durable || manner.sync)) mark(trace, MARK_DURABLE, durable = begun);
        is_told = result == STORE_OK;
        if (!is_told) printf("not written: %s\n", result == STORE_FULL ? store->refusal : store->error);
        is_true = !is_told || begun % READ_EVERY || reads_right(&batches, store, begun);
    }
    printf("begun %u durable %u\n", begun, durable);
    fflush(stdout);
    if (!strcmp(given.end, "exit")) _exit(is_true ? 0 : 3); /* as a kill would */
    store_close(store);
    store_batch_free(&batch);
    batches_free(&batches);
    return is_true ? 0 : 3;
}

/* ---- traces ---- */

struct trace {
    char *bytes;
    size_t len;
    size_t *at; /* of the records */
    size_t count;
    uint32_t batches; /* the last one begun */
};

static const struct trace_record *record_of(const struct trace *trace, size_t i, const char **text,
                                            const char **data)
{
    const struct trace_record *record = (const struct trace_record *)(const void *)(trace->bytes +
                                                                                    trace->at[i]);
    *text = (const char *)(record + 1);
    *data = *text + record->text_bytes;
    return record;
}

/* The records are not aligned in the file; they are in memory. */
static struct trace trace_read(const char *path)
{
    struct trace trace = {0};
    struct trace_record record;
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t cap = 0;
    while (fread(&record, sizeof record, 1, file) == 1) {
        size_t more = (size_t)record.text_bytes + record.data_bytes,
               whole = (sizeof record + more + 7) / 8 * 8;
        if (record.kind == 0 || record.kind >= TRACE_KINDS) {
            fprintf(stderr, "%s is no trace\n", path);
            exit(2);
        }
        ensure(record.kind != TRACE_MARK || (record.file >= 0 && record.file < LANES));
        if (trace.len + whole > cap) trace.bytes = must_realloc(trace.bytes, cap = 2 * cap + whole);
        memcpy(trace.bytes + trace.len, &record, sizeof record);
        if (more && fread(trace.bytes + trace.len + sizeof record, more, 1, file) != 1) break;
        if (record.kind == TRACE_UNKNOWN) {
            fprintf(stderr, "%s: %s\n", path, trace.bytes + trace.len + sizeof record);
            exit(2);
        }
        if ((trace.count & (trace.count - 1)) == 0)
            trace.at = must_realloc(trace.at, (trace.count ? 2 * trace.count : 1) * sizeof *trace.at);
        trace.at[trace.count++] = trace.len;
        if (record.kind == TRACE_MARK && record.length > trace.batches)
            trace.batches = (uint32_t)record.length;
        trace.len += whole;
    }
    fclose(file);
    return trace;
}

static void trace_free(struct trace *trace)
{
    free(trace->bytes);
    free(trace->at);
}

static bool changes_files(const struct trace_record *record)
{
    switch ((enum trace_kind)record->kind) {
    case TRACE_OPEN: return record->flags & (O_CREAT | O_TRUNC);
    case TRACE_CLOSE:
    case TRACE_MARK:
    case TRACE_FAULT:
    case TRACE_UNKNOWN: return false;
    default: return true;
    }
}

/* ---- states ---- */

struct state {
    size_t at;
    uint64_t seed;
    int64_t omit;
};

struct states {
    struct state *list;
    size_t count;
};

static void states_add(struct states *states, struct state state)
{
    if ((states->count & (states->count - 1)) == 0)
        states->list = must_realloc(states->list,
                                    (states->count ? 2 * states->count : 1) * sizeof *states->list);
    states->list[states->count++] = state;
}

static int by_place(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->seed > y->seed) - (x->seed < y->seed);
}

/* Random places and seeds; at every tenth also all and nothing of what was not synced. */
static struct states choose_states(const struct trace *trace)
{
    struct states states = {0};
    struct random random;
    const char *text, *data;
    if (given.at >= 0) {
        states_add(&states, (struct state){(size_t)given.at, given.state, given.omit});
        return states;
    }
    size_t changes = 0;
    for (size_t i = 0; i < trace->count; i++) changes += changes_files(record_of(trace, i, &text, &data));
    if (!changes) {
        fprintf(stderr, "the trace has no record of files\n");
        exit(2);
    }
    random_seed(&random, given.seed ^ given.first);
    for (uint64_t i = 0; i < given.states;) {
        size_t at = (size_t)random_below(&random, trace->count);
        if (!changes_files(record_of(trace, at, &text, &data))) continue;
        uint64_t seed = random_below(&random, 12);
        states_add(&states, (struct state){at, seed < STATE_RANDOM ? seed : given.first + i, OMIT_NONE});
        i++;
    }
    qsort(states.list, states.count, sizeof *states.list, by_place);
    return states;
}

struct pass {
    struct disk *disk;
    struct trace trace;
    uint32_t begun[LANES], durable[LANES]; /* so far */
    bool (*made)(struct pass *pass, const struct state *state, const char *folder);
    const struct batches *batches;
    struct count count;
    uint64_t shown;
};

static void make_and_hand_over(struct pass *pass, const struct trace_record *record,
                               const struct state *state)
{
    char folder[PATH_MAX];
    if (given.to) {
        snprintf(folder, sizeof folder, "%s/%llu", given.to, (unsigned long long)pass->count.passed + 1);
    } else {
        snprintf(folder, sizeof folder, "%s/cut-%d", given.scratch, (int)getpid());
    }
    disk_make(pass->disk, record, state->seed, state->omit, folder);
    if (pass->made(pass, state, folder)) {
        pass->count.passed++;
    } else {
        pass->count.failed++;
    }
    if (!given.to && given.at < 0) remove_folder(folder);
    if (!given.to && given.at >= 0) printf("its folder, after it was opened: %s\n", folder);
}

/* Every page of a sync that may be the missing one: of one sync in so many, chosen by the seed. */
static void make_omissions(struct pass *pass, const struct trace_record *record, size_t i, uint64_t *left)
{
    size_t pages = disk_syncing_pages(pass->disk, record);
    if (!*left || !pages || (i + given.first) % 7) return;
    for (size_t page = 0; page < pages && *left; page++, --*left)
        make_and_hand_over(pass, record, &(struct state){i, STATE_ALL, (int64_t)page});
}

static void pass_run(struct pass *pass)
{
    struct states states = choose_states(&pass->trace);
    uint64_t omissions = given.at < 0 ? given.states / 3 : 0;
    size_t next = 0;
    pass->disk = disk_open(given.base);
    pass->durable[0] = given.least;
    pass->begun[0] = given.base ? given.most : 0;
    for (size_t i = 0; i < pass->trace.count; i++) {
        const char *text, *data;
        const struct trace_record *record = record_of(&pass->trace, i, &text, &data);
        disk_begin(pass->disk, record, text, data);
        for (; next < states.count && states.list[next].at == i; next++)
            make_and_hand_over(pass, record, &states.list[next]);
        if (changes_files(record)) make_omissions(pass, record, i, &omissions);
        disk_complete(pass->disk, record);
        if (record->kind != TRACE_MARK) continue;
        uint32_t *begun = &pass->begun[record->file], *durable = &pass->durable[record->file];
        *(record->flags == MARK_BEGUN ? begun : durable) = (uint32_t)record->length;
        if (*begun < *durable) *begun = *durable;
    }
    disk_close(pass->disk);
    free(states.list);
}

static bool is_right(const struct judgement *judgement, char *words, size_t words_len)
{
    if (!strcmp(given.command, "copies")) return copies_judge(judgement, given.scratch, words, words_len);
    return judge(judgement, words, words_len);
}

static bool judge_state(struct pass *pass, const struct state *state, const char *folder)
{
    char data[PATH_MAX], words[4096];
    snprintf(data, sizeof data, "%s/%s", folder, given.data);
    struct judgement judgement = {.batches = pass->batches,
                                  .folder = data,
                                  .least = pass->durable[0],
                                  .most = pass->begun[0],
                                  .read_only_first = state->seed % 5 == 0,
                                  .dies = state->seed % 3 == 0,
                                  .once = (state->at + state->seed) % 2};
    if (is_right(&judgement, words, sizeof words)) return true;
    if (pass->shown++ >= FAILURES_SHOWN) return false;
    printf("FAILED at record %zu, state %llu", state->at, (unsigned long long)state->seed);
    if (state->omit != OMIT_NONE) printf(", without page %lld", (long long)state->omit);
    printf(" (batch %u acknowledged, %u begun): %s", pass->durable[0], pass->begun[0], words);
    printf("  again: build/cut/cut %s %s --seed %llu --at %zu --state %llu", given.command, given.path,
           (unsigned long long)given.seed, state->at, (unsigned long long)state->seed);
    if (state->omit != OMIT_NONE) printf(" --omit %lld", (long long)state->omit);
    if (given.base) printf(" --base %s --least %u --most %u", given.base, given.least, given.most);
    printf("\n");
    return false;
}

static int end_of(struct count count)
{
    printf("%llu passed, %llu failed\n", (unsigned long long)count.passed, (unsigned long long)count.failed);
    return count.failed ? 1 : 0;
}

static int states(void)
{
    struct pass pass = {.made = judge_state, .trace = trace_read(given.path)};
    struct batches batches;
    batches_init(&batches, given.seed, pass.trace.batches + MORE_BATCHES, given.no_ranges);
    pass.batches = &batches;
    pass_run(&pass);
    batches_free(&batches);
    trace_free(&pass.trace);
    return end_of(pass.count);
}

static void mark_shipped(void *context, enum trace_mark kind, uint32_t number)
{
    mark(*(const int *)context, kind, number);
}

static int ship(void)
{
    const char *to = getenv(CUT_TRACE);
    int trace = to ? open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    struct shipping shipping = {.target = given.path,
                                .data = given.to,
                                .seed = given.seed,
                                .batches = given.batches,
                                .no_ranges = given.no_ranges,
                                .is_killed = !strcmp(given.end, "exit"),
                                .mark = mark_shipped,
                                .context = &trace};
    return copies_ship(&shipping) ? 0 : 3;
}

static bool print_state(struct pass *pass, const struct state *state, const char *folder)
{
    printf("%s %zu %llu %lld", folder, state->at, (unsigned long long)state->seed, (long long)state->omit);
    for (int i = 0; i < LANES; i++) printf(" %u %u", pass->durable[i], pass->begun[i]);
    printf("\n");
    return true;
}

static int make(void)
{
    struct pass pass = {.made = print_state, .trace = trace_read(given.path)};
    pass_run(&pass);
    trace_free(&pass.trace);
    return 0;
}

static int check(void)
{
    struct batches batches;
    char words[4096];
    struct judgement judgement = {
        .batches = &batches, .folder = given.path, .least = given.least, .most = given.most};
    batches_init(&batches, given.seed, given.batches + MORE_BATCHES, given.no_ranges);
    bool right = judge(&judgement, words, sizeof words);
    if (!right) printf("%s", words);
    batches_free(&batches);
    return right ? 0 : 1;
}

static int damage(void (*judge_copies)(const struct judgement *judgement, const char *scratch, uint64_t seed,
                                       uint64_t times, uint64_t *passed, uint64_t *failed))
{
    struct batches batches;
    struct judgement judgement = {
        .batches = &batches, .folder = given.path, .least = given.least, .most = given.most};
    batches_init(&batches, given.seed, given.batches + MORE_BATCHES, given.no_ranges);
    struct count count = {0};
    judge_copies(&judgement, given.scratch, given.first, given.states, &count.passed, &count.failed);
    batches_free(&batches);
    return end_of(count);
}

static int flips(void)
{
    return damage(flips_judge);
}

static int lost(void)
{
    return damage(lost_judge);
}

/* ---- arguments ---- */

static bool take_number(const char *name, const char *value)
{
    long long number = strtoll(value, NULL, 10);
    if (!strcmp(name, "--seed"))
        given.seed = (uint64_t)number;
    else if (!strcmp(name, "--states"))
        given.states = (uint64_t)number;
    else if (!strcmp(name, "--first"))
        given.first = (uint64_t)number;
    else if (!strcmp(name, "--state"))
        given.state = (uint64_t)number;
    else if (!strcmp(name, "--patience"))
        given.patience = (uint64_t)number;
    else if (!strcmp(name, "--batches"))
        given.batches = (uint32_t)number;
    else if (!strcmp(name, "--least"))
        given.least = (uint32_t)number;
    else if (!strcmp(name, "--most"))
        given.most = (uint32_t)number;
    else if (!strcmp(name, "--at"))
        given.at = number;
    else if (!strcmp(name, "--no-ranges"))
        given.no_ranges = number;
    else if (!strcmp(name, "--omit"))
        given.omit = number;
    else
        return false;
    return true;
}

static bool take_text(const char *name, const char *value)
{
    if (!strcmp(name, "--end"))
        given.end = value;
    else if (!strcmp(name, "--base"))
        given.base = value;
    else if (!strcmp(name, "--to"))
        given.to = value;
    else if (!strcmp(name, "--scratch"))
        given.scratch = value;
    else if (!strcmp(name, "--data"))
        given.data = value;
    else
        return false;
    return true;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } commands[] = {{"work", work},   {"states", states}, {"make", make}, {"check", check},
                    {"flips", flips}, {"lost", lost},     {"ship", ship}, {"copies", states}};
    if (count < 3) {
        fprintf(
            stderr,
            "cut work|states|make|check|flips|lost|ship|copies PATH ...; the head of test/cut/cut.c tells more\n");
        return 2;
    }
    given.command = arguments[1];
    given.path = arguments[2];
    for (int i = 3; i < count; i += 2) {
        if (i + 1 < count &&
            (take_number(arguments[i], arguments[i + 1]) || take_text(arguments[i], arguments[i + 1])))
            continue;
        fprintf(stderr, "what is %s?\n", arguments[i]);
        return 2;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(arguments[1], commands[i].name)) return commands[i].run();
    fprintf(stderr, "what is %s?\n", arguments[1]);
    return 2;
}
