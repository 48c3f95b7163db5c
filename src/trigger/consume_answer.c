/* What a function's answer says of its batch.
 *
 * Lambda's rules: where the mapping has ReportBatchItemFailures, the lowest sequence number that the
 * answer names is where the function failed; an empty list, null, or no such member means that all is
 * done; a list that cannot be understood, or names a record that was not handed over, means that all has
 * failed. */
#include "base/raw.h"
#include "trigger/judge.h"

int sequence_compare(struct slice a, struct slice b)
{
    while (a.len && a.data[0] == '0') a = slice_from(a, 1);
    while (b.len && b.data[0] == '0') b = slice_from(b, 1);
    if (a.len != b.len) return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.data, b.data, a.len) : 0;
}

/* Records of a batch are in the order of their numbers. */
static bool find_record(struct slice sequence, const struct record *records, uint32_t count, uint32_t *found)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sequence_compare(records[middle].sequence, sequence) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low;
    return low < count && slice_equal(records[low].sequence, sequence);
}

/* {"itemIdentifier":"..."} */
static bool read_failure(struct json_reader *reader, struct slice *identifier)
{
    struct slice name;
    *identifier = SLICE("");
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &name)) {
        bool is_it = slice_equal(name, SLICE("itemIdentifier")) && json_peek(reader) == JSON_STRING;
        if (is_it ? !json_string(reader, identifier) : !json_skip(reader)) return false;
    }
    return !json_failed(reader) && identifier->len;
}

static void fail(struct answer *answer, const char *fault)
{
    answer->outcome = OUTCOME_FAILED;
    answer->fault = fault;
}

static void read_failures(struct slice list, const struct record *records, uint32_t count,
                          struct arena *arena, struct answer *answer)
{
    struct json_reader reader;
    struct slice identifier;
    uint32_t lowest = count, index;
    json_begin(&reader, list, arena);
    if (json_peek(&reader) == JSON_NULL) return;
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) {
        fail(answer, "batchItemFailures is not a list");
        return;
    }
    while (json_element(&reader)) {
        if (!read_failure(&reader, &identifier) || !find_record(identifier, records, count, &index)) {
            fail(answer, "batchItemFailures names no record of the batch");
            return;
        }
        if (index < lowest) lowest = index;
    }
    if (lowest == count) return;
    answer->outcome = OUTCOME_PARTIAL;
    answer->done = lowest;
}

/* The members of interest, raw. False when the answer is no JSON. */
static bool find_members(struct slice reply, struct arena *arena, struct slice *failures, struct slice *state)
{
    struct json_reader reader;
    struct slice name, raw;
    *failures = *state = SLICE("");
    json_begin(&reader, reply, arena);
    if (json_peek(&reader) == JSON_END) return true;
    if (json_peek(&reader) != JSON_OBJECT) return json_skip(&reader) && json_done(&reader);
    json_enter(&reader);
    while (json_member(&reader, &name)) {
        if (!raw_take(&reader, &raw)) return false;
        if (slice_equal(name, SLICE("batchItemFailures"))) *failures = raw;
        if (slice_equal(name, SLICE("state")) && !slice_equal(raw, SLICE("null"))) *state = raw;
    }
    return json_done(&reader);
}

void answer_read(struct slice reply, bool reports_failures, const struct record *records, uint32_t count,
                 struct arena *arena, struct answer *out)
{
    struct slice failures;
    *out = (struct answer){.outcome = OUTCOME_DONE};
    bool is_json = find_members(reply, arena, &failures, &out->state);
    if (!is_json) out->state = SLICE("");
    if (!reports_failures) return;
    if (!is_json)
        fail(out, "the answer is not JSON");
    else if (failures.len)
        read_failures(failures, records, count, arena, out);
}
