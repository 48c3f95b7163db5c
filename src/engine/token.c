/* Idempotency tokens: for ten minutes the engine knows which transaction a token stood for, also across
 * restarts. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

#define TOKEN_AGE_MS (10 * 60 * 1000)
#define TOKEN_BATCH  1000

/* Two hashes make a name of 128 bits out of a token: no two will meet. */
static void token_key(struct buf *out, char kind, int64_t time_ms, struct slice token)
{
    struct buf salted = {0};
    out->len = 0;
    buf_byte(out, (unsigned char)kind);
    if (kind == KEY_TOKEN_TIME) buf_u64(out, (uint64_t)time_ms);
    buf_u64(out, hash_bytes(token));
    buf_byte(&salted, 0x55);
    buf_slice(&salted, token);
    buf_u64(out, hash_bytes(buf_view(&salted)));
    buf_free(&salted);
}

enum token_result engine_token_check(struct batch *batch, struct arena *arena, struct slice token,
                                     uint64_t payload_hash, struct slice *note)
{
    struct slice stored;
    token_key(&batch->key, KEY_TOKEN, 0, token);
    struct slice key = buf_view(&batch->key);
    uint64_t hash = hash_bytes(key);
    if (!batch_find(batch, arena, hash, key, &stored) || stored.len < 16) return TOKEN_NEW;
    if ((int64_t)bytes_u64(stored.data) + TOKEN_AGE_MS <= engine_now_ms(batch->engine)) return TOKEN_NEW;
    *note = slice_from(stored, 16);
    if (bytes_u64(stored.data + 8) != payload_hash) return TOKEN_DIFFERENT;
    return batch_own(batch, hash, key) ? TOKEN_RUNNING : TOKEN_SAME;
}

void engine_token_keep(struct batch *batch, struct slice token, uint64_t payload_hash, struct slice note)
{
    int64_t now = engine_now_ms(batch->engine);
    struct slice nothing = SLICE("");
    batch->value.len = 0;
    buf_u64(&batch->value, (uint64_t)now);
    buf_u64(&batch->value, payload_hash);
    buf_slice(&batch->value, note);
    token_key(&batch->key, KEY_TOKEN, 0, token);
    struct slice key = buf_view(&batch->key), value = buf_view(&batch->value);
    batch_set_uncached(batch, key, &value);
    token_key(&batch->key, KEY_TOKEN_TIME, now, token);
    batch_set_uncached(batch, buf_view(&batch->key), &nothing);
}

/* ---- forgetting old ones ---- */

struct forget {
    struct commit commit;
    struct arena arena;
    struct slice keys[TOKEN_BATCH]; /* of 'O' entries */
    uint32_t count;
};

static bool gather(void *context, struct slice key, struct slice value)
{
    struct forget *forget = context;
    (void)value;
    forget->keys[forget->count++] = arena_copy(&forget->arena, key);
    return forget->count < TOKEN_BATCH;
}

/* A token may have been used again since: then its entry is younger than this mark and stays. */
static void apply_forget(struct commit *commit, struct batch *batch)
{
    struct forget *forget = (struct forget *)commit;
    for (uint32_t i = 0; i < forget->count; i++) {
        struct slice mark = forget->keys[i], stored;
        batch->key.len = 0;
        buf_byte(&batch->key, KEY_TOKEN);
        buf_slice(&batch->key, slice_from(mark, 9));
        struct slice key = buf_view(&batch->key);
        uint64_t hash = hash_bytes(key);
        if (batch_find(batch, &forget->arena, hash, key, &stored) && stored.len >= 8 &&
            bytes_u64(stored.data) == bytes_u64(mark.data + 1))
            batch_set_uncached(batch, key, NULL);
        batch_set_uncached(batch, mark, NULL);
    }
}

bool token_keep_house(struct engine *engine)
{
    struct forget *forget = must_zero(1, sizeof *forget);
    int64_t oldest = engine_now_ms(engine) - TOKEN_AGE_MS;
    struct buf to = {0};
    const char from = KEY_TOKEN_TIME;
    forget->commit.apply = apply_forget;
    buf_byte(&to, KEY_TOKEN_TIME);
    buf_u64(&to, oldest > 0 ? (uint64_t)oldest : 0);
    bool read = store_scan(engine->store, (struct slice){&from, 1}, buf_view(&to), false, gather, forget) ==
                STORE_OK;
    bool more = read && forget->count == TOKEN_BATCH;
    if (read && forget->count) engine_commit(engine, &forget->commit);
    if (forget->commit.failed) more = false;
    buf_free(&to);
    arena_free(&forget->arena);
    free(forget);
    return more;
}
