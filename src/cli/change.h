/* A record of a stream, read and written for people and programs. */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include "base/node.h"

struct change {
    struct slice event;          /* "INSERT", "MODIFY", "REMOVE" */
    struct slice sequence, time; /* time: seconds since 1970, as it stands; empty: unknown */
    const struct node *keys, *old_image, *new_image; /* NULL: the stream does not carry it */
    bool has_expired;                                /* deleted by TTL */
};

/* Takes a record of GetRecords apart. False when it is none. */
bool change_read(const struct node *record, struct change *out);

/* {"event":"INSERT","time":...,"sequence":"...","keys":{...},"new":{...}} in plain JSON. False when a value
 * is none. */
bool change_put_plain(struct buf *out, const struct change *change);

/* "MODIFY  Artist=Nina Song=Sinnerman  plays: 1 -> 2": the keys, then what changed, as far as the images
 * tell. Values are cut where they are long. False when a value is none. */
bool change_put_words(struct buf *out, struct arena *arena, const struct change *change);

#endif
