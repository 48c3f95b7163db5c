#include "unit/func_gate.h"

#include "base/fail.h"
#include "unit/test.h"

static bool answer_nothing(struct dynamo_call *call)
{
    call->status = 500;
    call->error = "InternalServerError";
    buf_text(call->reply, "{\"__type\":\"InternalServerError\",\"message\":\"The gate is shut.\"}");
    return true;
}

static struct slice request_of(const struct gate *gate, const struct dynamo_call *call)
{
    bool has_pages = slice_equal(call->name, SLICE("Query")) || slice_equal(call->name, SLICE("Scan"));
    if (!gate->pages_of || !has_pages) return call->request;
    return arena_printf(call->arena, "{\"Limit\":%u,%.*s", gate->pages_of,
                        SLICE_ARG(slice_from(call->request, 1)));
}

static void make(const struct gate *gate, struct dynamo_call *call)
{
    struct slice error, message;
    size_t start = call->reply->len;
    struct dynamo_call inner = {.name = call->name, .request = request_of(gate, call), .reply = call->reply};
    call->status = dynamo_call_wait(gate->inner, &inner);
    call->error = NULL;
    if (call->status == 200) return;
    dynamo_error(slice_from(buf_view(call->reply), start), call->arena, &error, &message);
    call->error = arena_printf(call->arena, "%.*s", SLICE_ARG(error)).data;
}

static bool gate_begin(struct dynamo *door, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct gate *gate = (struct gate *)door;
    (void)turn;
    ensure(call->name.len != 0);
    unsigned number = ++gate->calls;
    if (gate->act && number == gate->acts_at) gate->act(gate->context);
    const char *keeps = gate->keeps;
    if (keeps && slice_contains(call->request, slice_of(keeps))) {
        gate->kept.len = 0;
        buf_slice(&gate->kept, call->request);
    }
    bool is_dead = gate->dies_at && number >= gate->dies_at;
    if (is_dead && !(gate->dies_late && number == gate->dies_at)) return answer_nothing(call);
    size_t start = call->reply->len;
    make(gate, call);
    bool is_write = slice_contains(call->name, SLICE("Item")) && !slice_equal(call->name, SLICE("GetItem"));
    if (gate->is_doubled && is_write) {
        call->reply->len = start;
        make(gate, call);
    }
    if (!is_dead) return true;
    call->reply->len = start;
    return answer_nothing(call);
}

static void gate_turn_end(struct dynamo *door, struct dynamo_turn *turn)
{
    (void)door, (void)turn;
}

static void gate_finish(struct dynamo_call *call)
{
    (void)call;
}

static void gate_shut(struct dynamo *door)
{
    (void)door;
}

void gate_open(struct gate *gate, struct dynamo *inner)
{
    static const struct dynamo_methods methods = {
        .begin = gate_begin, .turn_end = gate_turn_end, .finish = gate_finish, .close = gate_shut};
    *gate = (struct gate){.door = {.methods = &methods}, .inner = inner};
}

void gate_close(struct gate *gate)
{
    buf_free(&gate->kept);
}
