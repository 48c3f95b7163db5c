/* xoshiro256**, seeded through splitmix64 as its authors advise. */
#include "base/random.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fail.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) random->state[i] = splitmix(&seed);
}

void random_seed_from_system(struct random *random)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = (uint64_t)monotonic_us();
    random_seed(random, seed);
}

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    ensure(bound > 0);
    uint64_t threshold = -bound % bound;
    for (;;) {
        uint64_t value = random_next(random);
        if (value >= threshold) return value % bound;
    }
}

void uuid_put(char out[UUID_BYTES], uint64_t a, uint64_t b)
{
    snprintf(out, UUID_BYTES, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
             (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0x3fff) | 0x8000,
             (unsigned long long)(b & 0xffffffffffff));
}

void random_letters(char *out, size_t count, const char *letters)
{
    ensure(count <= 256 && getrandom(out, count, 0) == (ssize_t)count); /* so many come at once */
    for (size_t i = 0; i < count; i++) out[i] = letters[(unsigned char)out[i] & 31];
    out[count] = 0;
}
