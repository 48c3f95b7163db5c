/* Any text as the body of CreateSchedule, and as an item: nothing crashes, what is refused says why, and what was
 * understood comes back out of its item as it went in. */
#include "base/fail.h"
#include "trigger/schedule.h"

static void check_same(const struct schedule *a, const struct schedule *b)
{
    ensure(slice_equal(a->expression, b->expression) && slice_equal(a->target, b->target));
    ensure(slice_equal(a->input, b->input) && slice_equal(a->zone, b->zone));
    ensure(a->start_ms == b->start_ms && a->end_ms == b->end_ms && a->window_min == b->window_min);
    ensure(a->token_sum == b->token_sum);
}

static void check_item(struct arena *arena, const struct schedule *schedule)
{
    struct buf reply = {0};
    struct schedule again;
    const struct trigger trigger = {.region = SLICE("r"), .account = SLICE("000000000000")};
    struct slice item = schedule_item(arena, schedule);
    ensure(raw_is_json(arena, item) && schedule_from_item(arena, item, &again));
    check_same(schedule, &again);
    schedule_put_reply(&reply, arena, &trigger, schedule, SHOWN);
    ensure(raw_is_json(arena, buf_view(&reply)));
    buf_free(&reply);
}

/* Due times go on, and the one that is fired has come. */
static void check_due(struct arena *arena, struct schedule *schedule)
{
    struct slice why;
    int64_t now_ms = 1748736000000;
    schedule->anchor_ms = now_ms;
    struct timetable *timetable = schedule_timetable(arena, schedule, &why);
    ensure(timetable);
    schedule->next_ms = schedule_first(schedule, timetable, now_ms);
    for (int i = 0; i < 5 && schedule->next_ms != SCHEDULE_NONE; i++) {
        int64_t fire_ms = schedule_fire_ms(schedule, timetable, schedule->next_ms);
        ensure(fire_ms >= schedule->next_ms);
        now_ms = fire_ms + i * INT64_C(40000);
        struct schedule_verdict verdict = schedule_judge(schedule, timetable, now_ms);
        ensure(verdict.due_ms == SCHEDULE_NONE ||
               (verdict.due_ms >= schedule->next_ms && verdict.due_ms <= now_ms));
        ensure(verdict.next_ms == SCHEDULE_NONE || verdict.next_ms > schedule->next_ms);
        schedule->next_ms = verdict.next_ms;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note_done(struct rest_call *call)
{
    ensure(!call->context);
    call->context = call;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice text = {(const char *)data, size};
    struct schedule schedule;
    struct rest_call call = {
        .body = text, .parameters = {SLICE("name")}, .arena = &arena, .reply = &reply, .done = note_done};
    if (schedule_read(&call, &schedule)) {
        ensure(!call.context);
        check_item(&arena, &schedule);
        check_due(&arena, &schedule);
    } else {
        ensure(call.context && call.status >= 400 && call.headers.len);
        ensure(raw_is_json(&arena, buf_view(&reply)));
    }
    schedule_from_item(&arena, text, &schedule);
    schedule_function(text);
    buf_free(&reply);
    arena_free(&arena);
    return 0;
}
