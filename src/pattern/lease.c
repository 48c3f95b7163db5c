/* Leases: one holder at a time, with an end and a fence.
 *
 * Table PREFIXleases: hash key `name` (S); `owner` (S): who holds it, absent when it was released; `fence`
 * (N): grows with each grant and stays when the lease is released; `until` (N, ms since 1970): the lease is
 * free after it, also when nobody released it; `waiting` (L of M {owner, until}): who waits, in order, each
 * until then; `data`: what the holder left there. A lease that was granted to several at a time has instead of `owner`:
 * `seats` (M: the fence of each grant -> M {owner, until}), `holders` (N), how many there may be, as the last grant
 * said, and `until`, when a seat was given back last.
 *
 * A lease is granted by one conditional write that raises the fence; whoever guards something with the lease
 * refuses smaller fences than it has seen, which protects it from a holder who does not know that its time is
 * over. Owners must tell themselves apart: a second POST of the same owner is the same grant again.
 *
 * Who waits stands in a line. When the lease becomes free the first takes it; who stands behind others takes
 * it after GRACE_MS for each of them, since those seem to have gone, and they lose their place. A place whose
 * time is over counts for nothing. */
#include "calendar/calendar.h"
#include "pattern/hold.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define GRACE_MS     2000 /* longer than anybody waits before looking again */
#define WAITING_MOST 100
#define HOLDERS_MOST 1000
#define LEAVE_BYTES  500 /* of the request that takes a place out of the line */

static const struct flow_table leases = {"leases", "name", NULL};

enum { NAME };
#define FIELD_LEASE FIELD_IN_PATH("name", 0, "the lease")

/* ---- telling ---- */

/* Of an owner who waits. All who wait (owner "") look at the same item, and one of them when the lease ends. */
static uint64_t topic_of(const struct flow *flow, struct slice owner)
{
    return flow_topic("lease", flow_text(flow, NAME), owner);
}

static struct slice key_of(struct flow *flow)
{
    return flow_compose(flow, "{'name':%S}", flow_text(flow, NAME));
}

/* ---- who holds it ---- */

/* The grants that last, of one holder or of several. */
struct seats {
    unsigned taken;
    bool has_map;      /* it was granted to several at a time; else `owner` has it */
    int64_t fence;     /* the last one that was given */
    int64_t mine;      /* the asker's; 0: none */
    int64_t next_ms;   /* when the first of them ends by itself; INT64_MAX: there is none */
    int64_t free_ms;   /* the last moment when one became free */
    struct slice seen; /* the map as it stands, {...} */
    struct slice kept; /* those of the map that last, with commas between */
};

static struct seats seats_of(struct flow *flow, struct slice item, struct slice asker)
{
    struct arena *arena = flow->arena;
    struct dynamo_hold hold = hold_of(flow, item);
    struct seats seats = {.has_map = item_has(arena, item, "seats"),
                          .fence = hold.fence,
                          .next_ms = INT64_MAX,
                          .free_ms = hold.until_ms,
                          .seen = item_content(arena, item, "seats")};
    struct slice name, seat;
    struct buf kept = {0};
    if (hold_is_on(flow, item)) {
        seats.taken = 1;
        seats.next_ms = hold.until_ms;
        if (slice_equal(hold.owner, asker)) seats.mine = hold.fence;
    }
    raw_each_member (arena, seats.seen, &name, &seat) {
        struct slice content = raw_member(arena, seat, "M");
        int64_t until_ms = item_int(arena, content, "until", 0);
        if (until_ms < flow->now_ms) {
            if (until_ms > seats.free_ms) seats.free_ms = until_ms;
            continue;
        }
        seats.taken++;
        if (until_ms < seats.next_ms) seats.next_ms = until_ms;
        if (slice_equal(item_text(arena, content, "owner"), asker)) raw_int(name, &seats.mine);
        if (kept.len) buf_byte(&kept, ',');
        flow_put(flow, &kept, "%s:%r", name, seat);
    }
    seats.kept = arena_take(arena, &kept);
    return seats;
}

static struct slice told_until(struct flow *flow, int64_t until_ms)
{
    return moment_text(flow->arena, until_ms - flow->world->skew_ms);
}

/* What was written is told, also when it is over by the time its reply comes. */
static void tell_grant(struct flow *flow, struct slice item, struct slice owner)
{
    struct dynamo_hold mine = hold_of(flow, item);
    struct slice name, seat;
    int64_t fence;
    if (item_has(flow->arena, item, "seats")) mine.fence = 0;
    raw_each_member (flow->arena, item_content(flow->arena, item, "seats"), &name, &seat) {
        struct slice content = raw_member(flow->arena, seat, "M");
        if (!slice_equal(item_text(flow->arena, content, "owner"), owner) || !raw_int(name, &fence)) continue;
        if (fence > mine.fence)
            mine = (struct dynamo_hold){owner, item_int(flow->arena, content, "until", 0), fence};
    }
    flow_wake_kin_at(flow, topic_of(flow, SLICE("")), mine.until_ms + 1);
    flow_answer(flow, 200, "{'fence':%d,'until':%s}", mine.fence, told_until(flow, mine.until_ms));
}

/* Who has it now, as members of a refusal. */
static struct slice holder_members(struct flow *flow, struct slice item)
{
    struct dynamo_hold hold = hold_of(flow, item);
    struct seats seats = seats_of(flow, item, SLICE(""));
    if (seats.has_map)
        return flow_compose(flow, "'fence':%d,'holders':%d,'taken':%d", hold.fence,
                            item_int(flow->arena, item, "holders", 1), (int64_t)seats.taken);
    if (!seats.taken) return flow_compose(flow, "'fence':%d", hold.fence);
    return flow_compose(flow, "'owner':%s,'fence':%d,'until':%s", hold.owner, hold.fence,
                        hold_until_text(flow, item));
}

static _Noreturn void refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-lease", "There is no lease '%.*s'; its first grant makes it.",
                SLICE_ARG(flow_text(flow, NAME)));
}

static struct slice read_item(struct flow *flow)
{
    return task_get(flow, &leases, "%A", key_of(flow));
}

/* ---- the line ---- */

struct line {
    struct slice places; /* the attribute's list as it stands; SLICE_NONE: none */
    struct slice kept;   /* without those whose time is over and without the asker, with commas between */
    unsigned count;      /* of places that count */
    unsigned ahead;      /* of those, before the asker's; all, when it has none */
    bool is_in;          /* the asker has a place that counts */
    bool has_old;        /* some are over */
    struct slice first;  /* owner of the first that counts */
    struct slice next;   /* of the first that counts besides the asker */
    struct slice behind; /* like kept, but only those behind the asker */
};

static void add_place(struct buf *places, struct slice place)
{
    if (places->len) buf_byte(places, ',');
    buf_slice(places, place);
}

static struct slice place_owner(struct flow *flow, struct slice place)
{
    return item_text(flow->arena, raw_member(flow->arena, place, "M"), "owner");
}

static int64_t place_until(struct flow *flow, struct slice place)
{
    return item_int(flow->arena, raw_member(flow->arena, place, "M"), "until", 0);
}

static void line_read(struct flow *flow, struct slice item, struct slice asker, struct line *line)
{
    struct slice place;
    struct buf kept = {0}, behind = {0};
    *line = (struct line){.places = item_content(flow->arena, item, "waiting")};
    raw_each (flow->arena, line->places, &place) {
        struct slice owner = place_owner(flow, place);
        bool is_mine = slice_equal(owner, asker);
        if (place_until(flow, place) < flow->now_ms) {
            line->has_old = true;
            continue;
        }
        if (!line->count++) line->first = owner;
        if (is_mine) line->is_in = true;
        if (is_mine) continue;
        if (!line->next.data) line->next = owner;
        if (!line->is_in) line->ahead++;
        add_place(&kept, place);
        if (line->is_in) add_place(&behind, place);
    }
    line->kept = arena_take(flow->arena, &kept);
    line->behind = arena_take(flow->arena, &behind);
}

/* ---- POST: grant ---- */

enum { GRANT_OWNER = NAME + 1, GRANT_FOR, GRANT_WAIT, GRANT_HOLDERS, GRANT_DATA };

static const struct field grant_fields[] = {
    FIELD_LEASE,
    [GRANT_OWNER] = {"owner", IN_BODY, FIELD_NAME, true,
                     .help = "who wants it; nobody else may use the same"},
    [GRANT_FOR] = FIELD_FOR(HOLD_MOST_MS, "for how long (default: 30s)"),
    [GRANT_WAIT] = FIELD_WAIT(IN_BODY, "how long to wait for it (default: not at all)"),
    [GRANT_HOLDERS] = {"holders", IN_BODY, FIELD_INT, .min = 1, .max = HOLDERS_MOST,
                       .help = "how many may hold it at a time, this one among them (default: 1)"},
    [GRANT_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what others shall see"},
};

static struct slice grant_owner(const struct flow *flow)
{
    return flow_text(flow, GRANT_OWNER);
}

static int64_t grant_ms(const struct flow *flow)
{
    return flow_int_or(flow, GRANT_FOR, HOLD_USUAL_MS);
}

/* The write that grants; the edit has what becomes of those who wait, and more conditions than that it is free. Whether
 * it did; the item is as it is now, or as it was seen. */
static bool grant_write(struct flow *flow, struct edit *edit)
{
    if (flow_given(flow, GRANT_DATA))
        edit_set(flow, edit, "data", "%J", flow_text(flow, GRANT_DATA));
    else
        edit_put(flow, edit, EDIT_REMOVE, "#data", NULL);
    return edit_write(flow, edit, &leases, key_of(flow));
}

/* As its only holder. */
static void take_alone(struct flow *flow, struct edit *edit)
{
    hold_take(flow, edit, grant_owner(flow), grant_ms(flow), HOLD_FREE);
}

/* Beside others, on their seats as they were seen. Seats that are over go away with it. */
static void take_seat(struct flow *flow, const struct seats *seats, struct edit *edit)
{
    int64_t fence = seats->fence + 1;
    edit_set(flow, edit, "seats", "{'M':{%A%,'%d':{'M':{'owner':%S,'until':%N}}}}", seats->kept, fence,
             grant_owner(flow), hold_until_ms(flow, grant_ms(flow)));
    edit_set(flow, edit, "holders", "%N", flow_int_or(flow, GRANT_HOLDERS, 1));
    edit_set(flow, edit, "fence", "%N", fence);
    edit_put(flow, edit, EDIT_REMOVE, "#owner", NULL);
    edit_if(flow, edit, HOLD_FREE, "':now':%N", flow->now_ms);
    if (seats->has_map)
        edit_if(flow, edit, "#seats = :places", "':places':{'M':%A}", seats->seen);
    else
        edit_if(flow, edit, "attribute_not_exists(#seats)", NULL);
    if (seats->fence)
        edit_if(flow, edit, "#fence = :last", "':last':%N", seats->fence);
    else
        edit_if(flow, edit, "attribute_not_exists(#fence)", NULL);
}

/* In the hope that it is there, nobody holds it and nobody waits. The first grant of all enters its name. */
static bool grant_at_once(struct flow *flow)
{
    if (flow_int_or(flow, GRANT_HOLDERS, 1) == 1) {
        struct edit edit = {0};
        take_alone(flow, &edit);
        edit_if(flow, &edit,
                "attribute_exists(#fence) and attribute_not_exists(#seats) and "
                "(attribute_not_exists(#waiting) or size(#waiting) = :zero)",
                NULL);
        if (grant_write(flow, &edit)) return true;
    } else {
        read_item(flow);
    }
    if (!flow_item(flow).data) names_enter(flow, SLICE("lease"), flow_text(flow, NAME));
    return false;
}

/* Names the seat of a fence in expressions: #seats.#7. */
static struct slice seat_path(struct flow *flow, int64_t fence)
{
    return arena_printf(flow->arena, "#seats.#%lld", (long long)fence);
}

/* More time for a seat, whose holder is given; SLICE_NONE: its data stays. */
static bool seat_renew(struct flow *flow, int64_t fence, struct slice owner, int64_t until_ms,
                       struct slice data)
{
    struct slice seat = seat_path(flow, fence);
    return edit_item(
        flow, &leases, key_of(flow),
        flow_compose(flow, "SET %r.#until = :until%[%?, #data = :data%]", seat, data.data != NULL),
        flow_compose(flow, "%r.#owner = :owner and %r.#until >= :now", seat, seat),
        "':until':%N,':owner':%S,':now':%N%[,':data':%J%]", until_ms, owner, flow->now_ms, data);
}

/* It was granted to this owner before, and the reply was lost, or the owner asks again: the same fence, from
 * now. */
static bool grant_again(struct flow *flow, const struct seats *seats)
{
    int64_t until_ms = hold_until_ms(flow, grant_ms(flow));
    if (seats->has_map) return seat_renew(flow, seats->mine, grant_owner(flow), until_ms, SLICE_NONE);
    return edit_item(flow, &leases, key_of(flow), SLICE("SET #until = :until"), SLICE(HOLD_ACT),
                     "':fence':%N,':until':%N", seats->mine, until_ms);
}

/* It is the asker's turn: on the line as it was seen, without the asker and, where they missed theirs, those before
 * it. */
static bool grant_turn(struct flow *flow, const struct seats *seats, const struct line *line,
                       struct slice rest)
{
    struct edit edit = {0};
    if (seats->has_map || flow_int_or(flow, GRANT_HOLDERS, 1) > 1)
        take_seat(flow, seats, &edit);
    else
        take_alone(flow, &edit);
    if (line->places.data) {
        edit_put(flow, &edit, EDIT_SET, "#waiting = :rest", "':rest':{'L':[%A]}", rest);
        edit_if(flow, &edit, "#waiting = :seen", "':seen':{'L':%A}", line->places);
    } else {
        edit_if(flow, &edit, "attribute_not_exists(#waiting)", NULL);
    }
    return grant_write(flow, &edit);
}

/* A place at the end of the line, until then; those that are over go away with it. */
static void stand_in_line(struct flow *flow, const struct line *line, int64_t until_ms)
{
    struct slice mine = flow_compose(flow, "{'M':{'owner':%S,'until':%N}}", grant_owner(flow), until_ms);
    struct slice update, condition, values;
    if (line->has_old) {
        update = SLICE("SET #waiting = :line");
        condition = SLICE("#waiting = :seen");
        values = flow_compose(flow, "':seen':{'L':%r},':line':{'L':[%r%,%r]}", line->places, line->kept,
                              mine);
    } else {
        update = SLICE("SET #waiting = list_append(if_not_exists(#waiting, :none), :mine)");
        condition = SLICE("#owner <> :owner and not contains(#waiting, :place) and "
                          "(attribute_not_exists(#waiting) or size(#waiting) < :most)");
        values = flow_compose(flow, "':none':{'L':[]},':mine':{'L':[%r]},':place':%r,':owner':%S,':most':%N",
                              mine, mine, grant_owner(flow), (int64_t)WAITING_MOST);
    }
    edit_item(flow, &leases, key_of(flow), update, condition, "%r", values);
}

/* ---- leaving the line ---- */

static bool leaves(const struct flow *flow, struct slice owner)
{
    if (slice_equal(owner, grant_owner(flow))) return true;
    for (size_t i = 0; i < flow->follower_count; i++)
        if (slice_equal(owner, grant_owner(flow->followers[i]))) return true;
    return false;
}

/* Those who stay. False: all do. */
static bool line_left(struct flow *flow, struct slice places, struct slice *rest)
{
    struct slice place;
    struct buf stay = {0};
    bool has_left = false;
    raw_each (flow->arena, places, &place) {
        bool goes = place_until(flow, place) < flow->now_ms || leaves(flow, place_owner(flow, place));
        has_left |= goes;
        if (!goes) add_place(&stay, place);
    }
    *rest = arena_take(flow->arena, &stay);
    return has_left;
}

/* Takes this task and those it leads out of the line; the item as it is then. */
static struct slice leave_line(struct flow *flow)
{
    for (;; task_again(flow)) {
        struct slice item = read_item(flow), rest;
        struct slice places = item_content(flow->arena, item, "waiting");
        if (!line_left(flow, places, &rest)) return item;
        edit_item(flow, &leases, key_of(flow), SLICE("SET #waiting = :rest"), SLICE("#waiting = :seen"),
                  "':seen':{'L':%r},':rest':{'L':[%r]}", places, rest);
        if (!flow_failed(flow)) return flow_item(flow);
    }
}

/* Whether one more may have it, of as many as the asker says. */
static bool has_room(struct flow *flow, struct slice item)
{
    struct seats seats = seats_of(flow, item, SLICE(""));
    return seats.has_map ? seats.taken < flow_int_or(flow, GRANT_HOLDERS, 1) : !seats.taken;
}

/* The time is over, or nobody is there any more: gives the place back, so that nobody waits for it. Those who
 * leave at the same time do so by one write, else each would spoil the others'. */
static _Noreturn void grant_leave(struct flow *flow, struct slice item, struct line *line)
{
    struct flow_share share = {.bytes = LEAVE_BYTES};
    if (line->is_in && task_join(flow, flow_topic("lease line", flow_text(flow, NAME), SLICE("")), share)) {
        item = leave_line(flow);
        line_read(flow, item, grant_owner(flow), line);
        /* whoever is next must not wait for a place that is empty */
        if (line->count && has_room(flow, item)) flow_wake(flow, topic_of(flow, line->first));
        flow_disband(flow);
    }
    if (!has_room(flow, item) && item_has(flow->arena, item, "seats"))
        task_refuse_with(flow, holder_members(flow, item), 409, "held",
                         "The lease is held by as many as may.");
    if (!has_room(flow, item))
        task_refuse_with(flow, holder_members(flow, item), 409, "held", "The lease is held by %.*s.",
                         SLICE_ARG(item_text(flow->arena, item, "owner")));
    task_refuse_with(flow, holder_members(flow, item), 409, "others-wait",
                     "The lease is free, but others have waited for it longer.");
}

/* ---- taking and waiting ---- */

/* A wake is for one owner, the first in line. Looks again afterwards. */
static void grant_wait(struct flow *flow, const struct seats *seats, int64_t until_ms)
{
    int64_t change_ms = seats->next_ms < INT64_MAX ? seats->next_ms + 1 : INT64_MAX;
    task_watch_as(flow, topic_of(flow, grant_owner(flow)), flow_thing("lease", flow_text(flow, NAME)),
                  topic_of(flow, SLICE("")), change_ms, until_ms);
    flow_look(flow);
    read_item(flow);
}

/* Does what is to be done by the image of the lease that was seen last, and sees another; true: it is granted. */
static bool grant_try(struct flow *flow, int64_t until_ms)
{
    struct slice item = flow_item(flow);
    struct line line;
    struct seats seats = seats_of(flow, item, grant_owner(flow));
    int64_t most = flow_int_or(flow, GRANT_HOLDERS, 1);
    /* One that has it as its only holder leaves room for nobody. */
    int64_t room = !seats.has_map && seats.taken ? 0 : most - (int64_t)seats.taken;
    line_read(flow, item, grant_owner(flow), &line);
    if (room < 0) room = 0;
    int64_t free_ms = room ? seats.free_ms : seats.next_ms + 1;
    bool is_next = line.ahead < room;
    int64_t turn_ms = is_next ? free_ms : free_ms + (line.ahead - (room ? room - 1 : 0)) * GRACE_MS;
    if (flow->is_gone) grant_leave(flow, item, &line);
    if (seats.mine) return grant_again(flow, &seats);
    if (room && (is_next || flow->now_ms >= turn_ms)) {
        if (!grant_turn(flow, &seats, &line, is_next ? line.kept : line.behind)) return false;
        /* there may be room for the next one, too, who was not woken */
        if (room > 1 && line.count > line.is_in) flow_wake(flow, topic_of(flow, line.next));
        return true;
    }
    if (flow->now_ms >= until_ms) grant_leave(flow, item, &line);
    if (!line.is_in && line.count >= WAITING_MOST)
        task_refuse(flow, 429, "too-many-waiting", "%u others wait for this lease already.", line.count);
    if (line.is_in)
        grant_wait(flow, &seats, turn_ms < until_ms ? turn_ms : until_ms);
    else
        stand_in_line(flow, &line, until_ms);
    return false;
}

static void grant_lease(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GRANT_WAIT, 0);
    task_outlives_client(flow); /* those behind must not wait for one who is not there */
    flow_look(flow);
    bool is_granted = grant_at_once(flow);
    while (!is_granted) is_granted = grant_try(flow, until_ms);
    tell_grant(flow, flow_item(flow), grant_owner(flow));
}

/* ---- PUT: renew ---- */

enum { RENEW_OWNER = NAME + 1, RENEW_FENCE, RENEW_FOR, RENEW_UNTIL, RENEW_DATA, RENEW_REPLY };

static const struct field renew_fields[] = {
    FIELD_LEASE,
    [RENEW_OWNER] = {"owner", IN_BODY, FIELD_NAME, true, .help = "who holds it"},
    [RENEW_FENCE] = FIELD_FENCE("of the grant"),
    [RENEW_FOR] = FIELD_FOR(HOLD_MOST_MS, "from now (default: 30s)"),
    [RENEW_UNTIL] = {"until", IN_BODY, FIELD_NAME, .help = "or a time, as GET answers it"},
    [RENEW_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what others shall see instead"},
    [RENEW_REPLY] = FIELD_ANSWERED("held", FIELD_BOOL),
    FIELD_ANSWERED("waiting", FIELD_LIST),
};

/* The fence is not the lease's any more, or never was this owner's. */
static _Noreturn void refuse_stale(struct flow *flow, struct slice item, struct slice owner, int64_t fence)
{
    struct slice members = holder_members(flow, item);
    if (!item.data) refuse_unknown(flow);
    if (!item_has(flow->arena, item, "seats"))
        hold_refuse_fence(flow, item, fence, members, "lease", "granted");
    task_refuse_with(flow, members, 409, "not-held", "%.*s does not hold the lease.", SLICE_ARG(owner));
}

static void renew_lease(struct flow *flow)
{
    bool has_data = flow_given(flow, RENEW_DATA);
    struct slice owner = flow_text(flow, RENEW_OWNER);
    int64_t fence = flow_int(flow, RENEW_FENCE), until_ms = hold_renewed_ms(flow, RENEW_FOR, RENEW_UNTIL);
    bool is_renewed = edit_item(flow, &leases, key_of(flow),
                                has_data ? SLICE("SET #until = :until, #data = :data")
                                         : SLICE("SET #until = :until"),
                                SLICE(HOLD_ACT " and #owner = :owner and #until >= :now"),
                                "':fence':%N,':owner':%S,':until':%N,':now':%N%[,':data':%J%]", fence, owner,
                                until_ms, flow->now_ms, flow_text(flow, RENEW_DATA));
    struct slice item = flow_item(flow);
    struct dynamo_hold found = hold_of(flow, item);
    if (!is_renewed && item_has(flow->arena, item, "seats")) {
        is_renewed = seat_renew(flow, fence, owner, until_ms, flow_text(flow, RENEW_DATA));
        item = flow_item(flow);
    }
    if (!is_renewed && slice_equal(found.owner, owner) && found.fence == fence)
        /* others may rely on its end already, and be about to take it */
        task_refuse_with(flow, holder_members(flow, item), 409, "expired",
                         "The lease ended at %.*s: take it again.", SLICE_ARG(hold_until_text(flow, item)));
    if (!is_renewed) refuse_stale(flow, item, owner, fence);
    tell_grant(flow, item, owner);
}

/* ---- DELETE: release ---- */

enum { RELEASE_OWNER = NAME + 1, RELEASE_FENCE, RELEASE_OWNER_QUERY, RELEASE_FENCE_QUERY };

/* Many clients send no body with DELETE, so the query serves as well. */
static const struct field release_fields[] = {
    FIELD_LEASE,
    [RELEASE_OWNER] = {"owner", IN_BODY, FIELD_NAME, .help = "who holds it; here or in the query"},
    [RELEASE_FENCE] = {"fence", IN_BODY, FIELD_INT, .min = 1, .max = INT64_MAX,
                       .help = "of the grant; likewise"},
    [RELEASE_OWNER_QUERY] = {"owner", IN_QUERY, FIELD_NAME, .help = "who holds it"},
    [RELEASE_FENCE_QUERY] = {"fence", IN_QUERY, FIELD_INT, .min = 1, .max = INT64_MAX,
                             .help = "of the grant"},
};

/* Gives a seat back; one that is not there any more was given back before, or is over. */
static struct slice seat_release(struct flow *flow, int64_t fence, struct slice owner)
{
    struct slice seat = seat_path(flow, fence);
    edit_item(flow, &leases, key_of(flow), flow_compose(flow, "SET #until = :now REMOVE %r", seat),
              flow_compose(flow, "%r.#owner = :owner", seat), "':owner':%S,':now':%N", owner, flow->now_ms);
    return flow_item(flow);
}

/* A fence that was given, whose seat is nobody's. */
static bool is_given_back(struct flow *flow, struct slice item, int64_t fence)
{
    struct slice seats = item_content(flow->arena, item, "seats");
    const char *name = arena_printf(flow->arena, "%lld", (long long)fence).data;
    return seats.data && fence <= hold_of(flow, item).fence && !raw_member(flow->arena, seats, name).data;
}

static void release_lease(struct flow *flow)
{
    unsigned owner_field = flow_given(flow, RELEASE_OWNER) ? RELEASE_OWNER : RELEASE_OWNER_QUERY;
    unsigned fence_field = flow_given(flow, RELEASE_FENCE) ? RELEASE_FENCE : RELEASE_FENCE_QUERY;
    struct line line;
    if (!flow_given(flow, owner_field) || !flow_given(flow, fence_field))
        task_refuse(flow, 400, "bad-request", "owner and fence are needed, in the body or in the query.");
    struct slice owner = flow_text(flow, owner_field);
    int64_t fence = flow_int(flow, fence_field);
    bool is_released = edit_item(flow, &leases, key_of(flow), SLICE("SET #until = :now REMOVE #owner, #data"),
                                 SLICE(HOLD_ACT " and #owner = :owner"), "':fence':%N,':owner':%S,':now':%N",
                                 fence, owner, flow->now_ms);
    struct slice item = flow_item(flow);
    if (!is_released && item_has(flow->arena, item, "seats")) item = seat_release(flow, fence, owner);
    bool was_released = is_given_back(flow, item, fence) ||
                        (item.data && !item_has(flow->arena, item, "owner") &&
                         !item_has(flow->arena, item, "seats") && hold_of(flow, item).fence == fence);
    if (!is_released && !was_released) refuse_stale(flow, item, owner, fence);
    line_read(flow, item, SLICE(""), &line);
    if (line.count) flow_wake(flow, topic_of(flow, line.first));
    flow_answer(flow, 200, "{'released':true,'fence':%d}", fence);
}

/* ---- GET ---- */

static const struct field read_fields[] = {FIELD_LEASE};

static bool is_full(struct flow *flow, struct slice item, const struct seats *seats)
{
    return seats->has_map ? seats->taken >= item_int(flow->arena, item, "holders", 1) : seats->taken > 0;
}

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    struct seats seats = seats_of(flow, item, SLICE(""));
    return flow_compose(flow, ",'held':%b,%r", (int)is_full(flow, item, &seats), holder_members(flow, item));
}

NAMES_LIST(list_leases, SLICE("lease"), "leases", "name", "name", .table = &leases, .tell = told_in_list)

static void show_lease(struct flow *flow)
{
    struct slice item = read_item(flow), place, name, seat;
    if (!item.data) refuse_unknown(flow);
    struct seats seats = seats_of(flow, item, SLICE(""));
    flow_put(flow, flow->body, "{'name':%s,'held':%b,%r,'waiting':[", flow_text(flow, NAME),
             (int)is_full(flow, item, &seats), holder_members(flow, item));
    raw_each (flow->arena, item_content(flow->arena, item, "waiting"), &place) {
        if (place_until(flow, place) < flow->now_ms) continue;
        flow_put(flow, flow->body, "%,%s", place_owner(flow, place));
    }
    buf_byte(flow->body, ']');
    if (seats.has_map) {
        buf_text(flow->body, ",\"seats\":[");
        raw_each_member (flow->arena, seats.seen, &name, &seat) {
            if (place_until(flow, seat) < flow->now_ms) continue;
            flow_put(flow, flow->body, "%,{'owner':%s,'fence':%r,'until':%s}", place_owner(flow, seat), name,
                     told_until(flow, place_until(flow, seat)));
        }
        buf_byte(flow->body, ']');
    }
    if (seats.taken) plain_put_members(flow->body, flow->arena, item, "data");
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row lease_rows[] = {
    {"POST", "/v1/leases/{name}", grant_lease, "Grants a lease, perhaps after waiting in line for it.",
     FIELDS(grant_fields), "{'fence':7,'until':'2026-11-15T03:42:36.250Z'}", "lease take owner"},
    {"PUT", "/v1/leases/{name}", renew_lease, "Renews a lease.", FIELDS(renew_fields),
     "{'fence':7,'until':'2026-11-15T03:43:06.250Z'}", "lease renew owner fence"},
    {"DELETE", "/v1/leases/{name}", release_lease, "Releases a lease.", FIELDS(release_fields),
     "{'released':true,'fence':7}", "lease release owner fence"},
    {"GET", "/v1/leases/{name}", show_lease, "Who holds a lease, and who waits.", FIELDS(read_fields),
     "{'name':'x','held':true,'owner':'a','fence':7,'until':'2026-11-15T03:42:36.250Z','waiting':['b']}",
     "lease get"},
    {"GET", "/v1/leases", list_leases, "The leases that were ever granted, by name, and who holds them.",
     FIELDS(names_fields),
     "{'leases':[{'name':'x','held':true,'owner':'a','fence':7,'until':'2026-11-15T03:42:36.250Z'}]}",
     "lease list -> leases"},
};
/* clang-format on */
ROW_COUNT(lease);
