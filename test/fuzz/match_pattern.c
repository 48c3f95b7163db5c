/* Any text as a pattern and any text as an event, a line feed between them: the pattern is refused with a
 * sentence, or the answer for the event is the same each time, the same with white space around it, and the
 * same when the event has one more field that no pattern of this size can name. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/fail.h"
#include "match/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool matches(const struct event_pattern *pattern, struct slice event)
{
    struct arena scratch = {0};
    bool answer = pattern_matches(pattern, event, &scratch);
    arena_free(&scratch);
    return answer;
}

static void check_event(const struct event_pattern *pattern, struct slice event)
{
    bool answer = matches(pattern, event);
    ensure(matches(pattern, event) == answer);
    struct buf changed = {0};
    buf_byte(&changed, ' ');
    buf_slice(&changed, event);
    buf_byte(&changed, '\n');
    ensure(matches(pattern, buf_view(&changed)) == answer);
    if (answer) {
        changed.len = 0;
        buf_text(&changed, "{\"\\u0000unasked\":[1,{\"a\":[{}]}],");
        const char *brace = memchr(event.data, '{', event.len);
        buf_slice(&changed, slice_from(event, (size_t)(brace + 1 - event.data)));
        /* an event without fields would end in a comma now */
        if (!slice_contains(event, SLICE("\""))) changed.len = 0;
        ensure(changed.len == 0 || matches(pattern, buf_view(&changed)));
    }
    buf_free(&changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size}, event = SLICE_NONE;
    const char *line = size ? memchr(data, '\n', size) : NULL;
    if (line) {
        text.len = (size_t)(line - text.data);
        event = (struct slice){line + 1, size - text.len - 1};
    }
    struct arena arena = {0};
    char error[200];
    struct event_pattern *pattern = pattern_compile(&arena, text, error, sizeof error);
    ensure((pattern == NULL) == (error[0] != '\0'));
    if (pattern && event.data) check_event(pattern, event);
    arena_free(&arena);
    return 0;
}
