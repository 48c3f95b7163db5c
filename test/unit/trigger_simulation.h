/* What the simulation and its function share. */
#ifndef TEST_UNIT_TRIGGER_SIMULATION_H
#define TEST_UNIT_TRIGGER_SIMULATION_H

#include "unit/trigger_stage.h"

#define PLAY_KEYS    12
#define PLAY_RECORDS 4000

enum play_kind { PLAY_PLAIN, PLAY_POISON, PLAY_WINDOWS, PLAY_MOVES };

struct play {
    struct stage stage;
    uint64_t seed;
    enum play_kind kind;
    bool reports, bisects, has_filter, is_disabled;
    bool has_long_states; /* of windows: too long for the positions' items */
    unsigned trouble; /* how likely a mishap is, per mille; 0: the storm is over */
    unsigned actors;
    uint32_t lanes;
    uint64_t revision;
    unsigned written;
    unsigned char key_of[PLAY_RECORDS]; /* of the nth write */
    int64_t move;                /* the number of the last move back to the start */
    bool unheard[STAGE_ACTORS];  /* of the last change */
    unsigned moves;
    unsigned steps, crashes, stops, splits, jumps, mishaps;
};

bool play_chance(struct play *play, unsigned per_mille);
void play_function(struct stage *stage, struct invocation *invocation);

#endif
