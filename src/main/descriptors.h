/* How many files may be open, dealt out before anything is opened: whoever runs out of descriptors is refused
 * something, except the store, which must open the next log or stop. So the store's share is set aside, and
 * connections and functions get what is left. */
#ifndef MAIN_DESCRIPTORS_H
#define MAIN_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct descriptors_needs {
    unsigned threads;
    uint32_t process_max; /* of functions; 0: there are none */
    bool on_disk;         /* the data is in a folder of ours */
    bool is_elsewhere;    /* the data is behind a URL */
    uint32_t databases;   /* in folders of their own, besides; at most */
};

struct descriptors {
    uint64_t limit;       /* of open files, as far as it could be raised */
    uint32_t connections; /* of clients */
    uint32_t guests;      /* connections of functions */
    uint32_t process_max;
    uint32_t store_files; /* that the store may keep open; 0: as many as it has */
    uint32_t databases;
    uint32_t database_files; /* that each of those may keep open */
};

/* Raises the soft limit as far as there is use for it and deals it out. False and one clear sentence when there
 * are too few for a server. */
bool descriptors_deal(struct descriptors *out, const struct descriptors_needs *needs, char *error,
                      size_t error_len);

#endif
