/* Random numbers from a seed (xoshiro256**): the same seed gives the same run. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed);
void random_seed_from_system(struct random *random);
uint64_t random_next(struct random *random);
/* Uniform in 0 .. bound - 1. */
uint64_t random_below(struct random *random, uint64_t bound);

/* So many of these 32 letters as nobody can guess, and a zero. */
void random_letters(char *out, size_t count, const char *letters);

/* A UUID of version 4, with these for its random bits. */
#define UUID_BYTES 37
void uuid_put(char out[UUID_BYTES], uint64_t a, uint64_t b);

#endif
