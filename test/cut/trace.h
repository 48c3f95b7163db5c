/* What a process did to the files below one folder, in order: written by record.c, read by disk.c.
 *
 * A trace is a file of records; whoever has something to tell appends its record with one write, so several processes
 * may write to it, one after the other or beside each other. A record is a head, then `text_bytes` bytes of text (a
 * path below the folder, without a slash in front; for a rename two, each with its zero byte), then `data_bytes` bytes
 * of data. */
#ifndef CUT_TRACE_H
#define CUT_TRACE_H

#include <stdint.h>

/* The environment of a process that is recorded. */
#define CUT_FOLDER "CUT_FOLDER" /* below which files are recorded; its own name is not */
#define CUT_TRACE  "CUT_TRACE"  /* the file that the trace is appended to */
#define CUT_SMALL  "CUT_SMALL" /* bytes of RocksDB's memtables, so that little data is flushed and compacted */
#define CUT_FAIL                                                                                             \
    "CUT_FAIL"       /* KIND:NUMBER:ERRNO[:on]: which call fails; `on`: and all behind it. KILL: the end */
#define CUT_KILLED 9 /* its exit status then */
#define CUT_COUNT  "CUT_COUNT" /* is set: how often each kind of call was made is printed at the end */

enum trace_kind {
    TRACE_OPEN = 1, /* text: path; file: descriptor; flags: of open(2) */
    TRACE_CLOSE,    /* file */
    TRACE_WRITE,    /* file, at; data. flags 1: it is synced when it is done */
    TRACE_ZEROS,    /* the same; `length` zeros were written */
    TRACE_SIZE,     /* file; length: its new size */
    TRACE_SYNC,     /* file, or folder. flags 1: it has failed */
    TRACE_RENAME,   /* text: two paths */
    TRACE_LINK,     /* text: two paths */
    TRACE_UNLINK,   /* text: path */
    TRACE_MKDIR,    /* text: path */
    TRACE_MARK,     /* flags: an enum trace_mark; length: its number; file: which of several that count */
    TRACE_FAULT,    /* a call failed on purpose; text: which */
    TRACE_UNKNOWN,  /* text: something was done that cannot be recorded */
    TRACE_KINDS
};

/* What the one who works with the files says of itself. Numbers are those of batches. */
enum trace_mark {
    MARK_BEGUN = 1, /* the batch may be there from now on */
    MARK_DURABLE,   /* all up to it must be there from now on */
};

struct trace_record {
    uint32_t kind;
    uint32_t process;
    int32_t file;
    uint32_t flags;
    uint64_t at, length;
    uint32_t text_bytes, data_bytes;
};

#endif
