/* What the operations on backups and restores share. A backup is a note of the engine (engine.h), its content a copy
 * under its id that somebody else has made (api.h, api_backups). */
#ifndef API_BACKUPS_H
#define API_BACKUPS_H

#include "api/background.h"

#define BACKUP_NOTE SLICE("backup") /* the kind of the notes */
#define RESTORING   "restoring"     /* the setting of a table that is being filled: {backup, table, time_ms} */

/* X(member): of the note, and of the struct. */
#define BACKUP_TEXTS(X)                                                                                      \
    X(name)                                                                                                  \
    X(table)                                                                                                 \
    X(type)    /* USER or SYSTEM */                                                                          \
    X(restore) /* the id of the restore that reads it; empty: none */
#define BACKUP_NUMBERS(X)                                                                                    \
    X(created_ms)                                                                                            \
    X(expires_ms) /* 0: never */                                                                             \
    X(items)                                                                                                 \
    X(bytes)

struct backup_note {
    struct slice id; /* "01763123456789-0a1b2c3d": the last part of its ARN */
#define X(member) struct slice member;
    BACKUP_TEXTS(X)
#undef X
#define X(member) int64_t member;
    BACKUP_NUMBERS(X)
#undef X
    struct slice definition; /* of the table as it was, encoded */
};

bool backup_note_put(struct batch *batch, struct arena *arena, const struct backup_note *backup);
bool backup_note_in_batch(struct batch *batch, struct arena *arena, struct slice id, struct backup_note *out);
void put_backup_arn(struct buf *out, const struct api *api, struct slice table, struct slice id);
/* The backup that an ARN names, or a refusal in the service's words. */
bool backup_by_arn(struct api_call *call, struct slice arn, struct backup_note *out);

/* Whether a table can be brought back to a moment, and to which ones. */
struct recovery {
    bool is_on;
    int64_t days, from_ms, until_ms;
};
struct recovery table_recovery(const struct api *api, const struct table_definition *definition);

/* The copy that a table leaves when it is dropped, and what its note will be; without an id where there can be none. */
void system_backup_take(struct api_call *call, struct slice table, struct backup_note *out);

bool refuse_missing_table(struct api_call *call, struct slice name);
/* A table that is there and not being made; else a refusal. Held until the call has ended. */
struct table *find_table_to_back_up(struct api_call *call, struct slice name);
/* Refuses where nobody has files, or nothing may be written. */
bool backups_are_offered(struct api_call *call);

#endif
