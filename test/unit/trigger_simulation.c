/* The whole consumer, from a seed, with everything going wrong: replies lost, calls that never left or come
 * late, throttled doors and functions, functions that fail, answer late, answer partly or return too much,
 * consumers that die at any moment, three of them sharing, clocks that jump, shards that split, settings that
 * change.
 *
 * The function returns writes that append each record's number to a list of its key. In the end every list
 * must hold the records of its key, each once, in order. There are four kinds of plays: *plain* ones retry
 * for ever; in those with *poison* some records always fail and must be in the destination, each once, and
 * nowhere else; in those with *windows* the numbers are gathered in the state of a tumbling window and
 * written by its last call; in those with *moves* the mapping is moved back to the start now and then, servers hear of
 * it one after the other, and each list is begun anew, from its first record, at most so often. Some plays have a
 * filter; what it keeps out must be in no list. All of it is played where there are transactions, and where there are
 * none. */
#include "unit/trigger_simulation.h"

#include <stdlib.h>

#include "base/fail.h"

#define PER_MILLE 1000

bool play_chance(struct play *play, unsigned per_mille)
{
    return random_below(&play->stage.random, PER_MILLE) < per_mille;
}

static bool is_poison(const struct play *play, unsigned number)
{
    return play->kind == PLAY_POISON && number % 29 == 3;
}

static bool is_filtered_out(const struct play *play, unsigned number)
{
    return play->has_filter && number % 7 >= 4;
}

/* ---- what goes on ---- */

static void write_record(struct play *play)
{
    char pk[16], number[16];
    if (play->written == PLAY_RECORDS) return;
    /* The last call of a window returns a write for each key of it: where there are no transactions, it may be one. */
    bool has_one_key = play->kind == PLAY_WINDOWS && play->stage.without_transactions;
    unsigned key = (unsigned)random_below(&play->stage.random, has_one_key ? 1 : PLAY_KEYS);
    snprintf(pk, sizeof pk, "key-%u", key);
    snprintf(number, sizeof number, "n%u%s", play->written, is_poison(play, play->written) ? "poison" : "");
    play->key_of[play->written] = (unsigned char)key;
    stage_put(&play->stage, pk, (int)(play->written % 7), number);
    play->written++;
}

static struct mapping *make_mapping(struct play *play)
{
    struct mapping *mapping = stage_mapping(&play->stage);
    mapping->batch_size = 7;
    mapping->lanes = play->lanes;
    mapping->reports_failures = play->reports;
    mapping->bisect = play->bisects;
    mapping->revision = ++play->revision;
    mapping->enabled = !play->is_disabled;
    if (play->move) mapping->move = (struct mapping_move){.number = play->move, .to = SLICE("TRIM_HORIZON")};
    if (play->has_filter)
        stage_add_filter(mapping, "{\"dynamodb\":{\"Keys\":{\"sk\":{\"N\":[\"0\",\"1\",\"2\",\"3\"]}}}}");
    if (play->kind == PLAY_WINDOWS) mapping->tumbling_ms = 2000;
    if (play->kind == PLAY_POISON) {
        mapping->bisect = true;
        mapping->retries_max = 1;
        mapping->on_failure = arena_copy(&mapping->arena, SLICE("dead"));
    }
    return mapping;
}

static void start_actor(struct play *play, unsigned number)
{
    stage_set(stage_start(&play->stage, number), make_mapping(play));
}

/* Some go without a word, some give back what they hold. */
static void crash_or_start(struct play *play)
{
    unsigned number = (unsigned)random_below(&play->stage.random, play->actors);
    struct actor *actor = &play->stage.actors[number];
    if (!actor->consumer) {
        start_actor(play, number);
    } else if (play_chance(play, 300)) {
        consumer_stop(actor->consumer);
    } else {
        stage_crash(&play->stage, actor);
        play->crashes++;
    }
}

static void move_time(struct play *play)
{
    struct stage *stage = &play->stage;
    uint64_t most_us = play_chance(play, 20) ? 3000000 : play->actors > 1 ? 200000 : 20000;
    int64_t us = (int64_t)random_below(&stage->random, most_us);
    stage->ticks_us += us;
    stage->now_ms += us / 1000;
    if (!play_chance(play, 3)) return;
    stage->now_ms += (int64_t)random_below(&stage->random, 30000);
    play->jumps++;
}

static void change_mapping(struct play *play)
{
    play->is_disabled = play_chance(play, 300) && play->trouble;
    play->lanes = 1 + (uint32_t)random_below(&play->stage.random, 4);
    if (play->kind == PLAY_MOVES && play->trouble && play_chance(play, 700)) {
        play->move = (int64_t)play->revision + 1;
        play->moves++;
    }
    for (unsigned i = 0; i < play->actors; i++) {
        play->unheard[i] = play->kind == PLAY_MOVES && play->trouble;
        if (!play->unheard[i] && play->stage.actors[i].consumer) stage_set(&play->stage.actors[i], make_mapping(play));
    }
}

static void hear_of_change(struct play *play)
{
    unsigned number = (unsigned)random_below(&play->stage.random, play->actors);
    bool is_news = play->unheard[number] && play->stage.actors[number].consumer;
    play->unheard[number] = false;
    if (is_news) stage_set(&play->stage.actors[number], make_mapping(play));
}

static void perform_some(struct play *play)
{
    struct stage *stage = &play->stage;
    if (play_chance(play, 100)) stage_arrive(stage);
    if (!stage->act_count) return;
    unsigned index = (unsigned)random_below(&stage->random, stage->act_count);
    enum mishap mishap = MISHAP_NONE;
    if (play_chance(play, play->trouble)) mishap = (enum mishap)(1 + random_below(&stage->random, MISHAPS));
    play->mishaps += mishap != MISHAP_NONE;
    stage_perform_with(stage, index, mishap);
}

static void step_one(struct play *play)
{
    struct actor *actor = &play->stage.actors[random_below(&play->stage.random, play->actors)];
    if (!actor->consumer) return;
    consumer_step(actor->consumer);
    if (!actor->consumer->is_stopping || !consumer_has_stopped(actor->consumer)) return;
    stage_crash(&play->stage, actor);
    play->stops++;
}

static void split(struct play *play)
{
    if (play->splits == 5 || !play_chance(play, 200)) return;
    stage_split(&play->stage);
    play->splits++;
}

static void storm_step(struct play *play)
{
    unsigned chance = (unsigned)random_below(&play->stage.random, PER_MILLE);
    play->steps++;
    if (play->kind == PLAY_MOVES && play_chance(play, 10)) hear_of_change(play);
    if (chance < 400)
        perform_some(play);
    else if (chance < 800)
        step_one(play);
    else if (chance < 900)
        write_record(play);
    else if (chance < 993)
        move_time(play);
    else if (chance < 998)
        crash_or_start(play);
    else if (chance < 999)
        split(play);
    else if (play_chance(play, play->kind == PLAY_MOVES ? 600 : 200))
        change_mapping(play);
}

/* ---- what must be true in the end ---- */

/* The numbers in the list of the key in their order, separated by blanks. */
static void read_list(struct play *play, const char *pk, struct buf *out)
{
    struct stage *stage = &play->stage;
    const char *at;
    out->len = 0;
    stage_call(stage, "GetItem", "{\"TableName\":\"lists\",\"Key\":{\"pk\":{\"S\":\"%s\"}}}", pk);
    struct slice text = buf_view(&stage->reply);
    while ((at = memmem(text.data, text.len, "{\"S\":\"n", 7))) {
        text = slice_from(text, (size_t)(at - text.data) + 6);
        const char *end = memchr(text.data, '"', text.len);
        buf_put(out, text.data, (size_t)(end - text.data));
        buf_byte(out, ' ');
    }
}

static void check_lists(struct play *play)
{
    struct buf list = {0}, expected = {0};
    for (unsigned key = 0; key < PLAY_KEYS; key++) {
        char pk[16];
        snprintf(pk, sizeof pk, "key-%u", key);
        expected.len = 0;
        for (unsigned i = 0; i < play->written; i++)
            if (play->key_of[i] == key && !is_poison(play, i) && !is_filtered_out(play, i))
                buf_printf(&expected, "n%u ", i);
        read_list(play, pk, &list);
        if (!slice_equal(buf_view(&list), buf_view(&expected)))
            test_failed(__FILE__, __LINE__, "seed %llu, %s:\n  got:      %.*s\n  expected: %.*s",
                        (unsigned long long)play->seed, pk, SLICE_ARG(buf_view(&list)),
                        SLICE_ARG(buf_view(&expected)));
    }
    buf_free(&list);
    buf_free(&expected);
}

/* Each list is a few passes over the records of its key in their order, and the last pass has them all. */
static void check_passes(struct play *play)
{
    struct buf list = {0};
    for (unsigned key = 0; key < PLAY_KEYS; key++) {
        unsigned numbers[PLAY_RECORDS], count = 0, at = 0, passes = 0;
        char pk[16];
        bool is_good = true;
        snprintf(pk, sizeof pk, "key-%u", key);
        for (unsigned i = 0; i < play->written; i++)
            if (play->key_of[i] == key && !is_filtered_out(play, i)) numbers[count++] = i;
        read_list(play, pk, &list);
        buf_byte(&list, '\0');
        for (char *text = list.data; is_good && *text == 'n';) {
            unsigned number = (unsigned)strtoul(text + 1, &text, 10);
            text++;
            if (!at || at == count || numbers[at] != number) at = 0, passes++;
            is_good = at < count && numbers[at++] == number;
        }
        if (!is_good || at != count || passes > play->moves + 1)
            test_failed(__FILE__, __LINE__, "seed %llu, %s, %u moves, %u records, %u of them in pass %u: %s",
                        (unsigned long long)play->seed, pk, play->moves, count, at, passes, list.data);
    }
    buf_free(&list);
}

static void check_documents(struct play *play)
{
    unsigned poisoned = 0;
    for (unsigned i = 0; i < play->written; i++) poisoned += is_poison(play, i) && !is_filtered_out(play, i);
    stage_call(&play->stage, "Scan", "{\"TableName\":\"dead\"}");
    struct slice reply = buf_view(&play->stage.reply);
    CHECK_INT(count_text(reply, "RetryAttemptsExhausted"), poisoned);
    CHECK_INT(count_text(reply, "\\\"batchSize\\\":1,"), poisoned);
}

/* Nothing is left behind: no window and no effect. Of the states of windows some may be where their commit was not
 * made and the server that wrote them lives on; whoever takes the lease next deletes them. */
static void check_positions(struct play *play)
{
    stage_call(&play->stage, "Scan", "{\"TableName\":\"quipu-positions\"}");
    struct slice reply = buf_view(&play->stage.reply);
    if (!play->stage.without_transactions) CHECK_INT(count_text(reply, "\"state/"), 0);
    CHECK_INT(count_text(reply, "\"window"), 0);
    CHECK_INT(count_text(reply, "\"effect"), 0);
}

/* Each has said that it has nothing more to do, at some time since the storm was over. */
static bool all_said_so(struct play *play, bool *said)
{
    bool all = true;
    for (unsigned i = 0; i < play->actors; i++) {
        said[i] |= consumer_is_quiet(play->stage.actors[i].consumer);
        all &= said[i];
    }
    return all;
}

/* Leases of the dead, and their wishes, must have ended before quiet means that all is done; so must windows.
 */
static void calm_down(struct play *play)
{
    bool said[STAGE_ACTORS] = {false};
    play->trouble = 0;
    for (unsigned i = 0; i < play->actors; i++) {
        struct actor *actor = &play->stage.actors[i];
        if (actor->consumer && actor->consumer->is_stopping) stage_crash(&play->stage, actor);
        if (!actor->consumer) start_actor(play, i);
    }
    change_mapping(play);
    if (play->actors > 1) stage_pass(&play->stage, 90000);
    for (int i = 0; i < 200; i++) {
        stage_pass(&play->stage, 500);
        if (!all_said_so(play, said)) continue;
        if (play->kind == PLAY_WINDOWS) stage_pass(&play->stage, 8000);
        return;
    }
    test_failed(__FILE__, __LINE__, "seed %llu: it does not come to rest", (unsigned long long)play->seed);
}

/* ---- plays ---- */

enum { ALONE, TOGETHER = 1, WITHOUT_TRANSACTIONS = 2 };

static void play_open(struct play *play, uint64_t seed, enum play_kind kind, unsigned how)
{
    bool shared = how & TOGETHER;
    *play = (struct play){
        .seed = seed, .kind = kind, .trouble = 30, .actors = shared ? STAGE_ACTORS : 1, .lanes = 1};
    stage_open(&play->stage, 2);
    random_seed(&play->stage.random, seed);
    stage_make_things(&play->stage);
    stage_make_table(&play->stage, "lists", "pk");
    stage_make_table(&play->stage, "dead", "id");
    play->stage.context = play;
    play->stage.function = play_function;
    play->stage.shared = play->stage.without_news = shared;
    play->stage.without_transactions = how & WITHOUT_TRANSACTIONS;
    play->has_long_states = seed % 2;
    play->reports = play_chance(play, 500);
    play->bisects = play_chance(play, 500);
    play->has_filter = play_chance(play, 300);
}

static unsigned run_play(uint64_t seed, enum play_kind kind, unsigned how)
{
    static struct play play;
    play_open(&play, seed, kind, how);
    start_actor(&play, 0);
    for (unsigned i = 0; i < 8000; i++) storm_step(&play);
    calm_down(&play);
    if (kind == PLAY_MOVES)
        check_passes(&play);
    else
        check_lists(&play);
    if (kind == PLAY_POISON) check_documents(&play);
    check_positions(&play);
    if (getenv("SIMULATION_TELLS"))
        printf("seed %llu: %u records, %u invocations, %u calls, %u crashes, %u stops, %u mishaps, "
               "%u splits, %u jumps, %u moves\n",
               (unsigned long long)seed, play.written, play.stage.invocations, play.stage.calls, play.crashes,
               play.stops, play.mishaps, play.splits, play.jumps, play.moves);
    stage_close(&play.stage);
    return play.steps;
}

/* SIMULATION_SEED runs one seed, SIMULATION_SEEDS more of them than usual. */
static void run_plays(enum play_kind kind, unsigned how, const char *what)
{
    const char *one = getenv("SIMULATION_SEED"), *many = getenv("SIMULATION_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, steps = 0;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : 10;
    for (uint64_t seed = first; seed < first + count; seed++) steps += run_play(seed, kind, how);
    printf("simulated %llu steps: %s\n", (unsigned long long)steps, what);
}

TEST(simulated_alone_every_record_has_its_effect_once_and_in_order)
{
    run_plays(PLAY_PLAIN, ALONE, "alone");
}

TEST(simulated_together_every_record_has_its_effect_once_and_in_order)
{
    run_plays(PLAY_PLAIN, TOGETHER, "together");
}

TEST(simulated_poison_is_told_to_the_destination_once)
{
    run_plays(PLAY_POISON, ALONE, "poison, alone");
}

TEST(simulated_poison_is_told_once_by_all_together)
{
    run_plays(PLAY_POISON, TOGETHER, "poison, together");
}

TEST(simulated_windows_lose_and_repeat_nothing)
{
    run_plays(PLAY_WINDOWS, ALONE, "windows, alone");
}

TEST(simulated_windows_lose_and_repeat_nothing_together)
{
    run_plays(PLAY_WINDOWS, TOGETHER, "windows, together");
}

TEST(simulated_moves_begin_every_list_anew_and_in_order)
{
    run_plays(PLAY_MOVES, ALONE, "moves, alone");
}

TEST(simulated_moves_begin_every_list_anew_together)
{
    run_plays(PLAY_MOVES, TOGETHER, "moves, together");
}

/* ---- the same without transactions ---- */

TEST(simulated_without_transactions_every_record_has_its_effect_once_and_in_order)
{
    run_plays(PLAY_PLAIN, WITHOUT_TRANSACTIONS, "without transactions, alone");
}

TEST(simulated_without_transactions_together_every_record_has_its_effect_once)
{
    run_plays(PLAY_PLAIN, WITHOUT_TRANSACTIONS | TOGETHER, "without transactions, together");
}

TEST(simulated_without_transactions_poison_is_told_to_the_destination_once)
{
    run_plays(PLAY_POISON, WITHOUT_TRANSACTIONS, "without transactions, poison, alone");
}

TEST(simulated_without_transactions_poison_is_told_once_by_all_together)
{
    run_plays(PLAY_POISON, WITHOUT_TRANSACTIONS | TOGETHER, "without transactions, poison, together");
}

TEST(simulated_without_transactions_windows_lose_and_repeat_nothing)
{
    run_plays(PLAY_WINDOWS, WITHOUT_TRANSACTIONS, "without transactions, windows, alone");
}

TEST(simulated_without_transactions_windows_lose_and_repeat_nothing_together)
{
    run_plays(PLAY_WINDOWS, WITHOUT_TRANSACTIONS | TOGETHER, "without transactions, windows, together");
}
