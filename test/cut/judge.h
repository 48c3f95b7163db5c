/* Opens data folders and judges what is in them, in children: what they die of is a judgement too. */
#ifndef CUT_JUDGE_H
#define CUT_JUDGE_H

#include "cut/batches.h"

/* Opens the store, whose journal has small segments if CUT_SMALL is set. */
struct store *open_store(const char *folder, bool read_only, char *words, size_t words_len);

struct judgement {
    const struct batches *batches; /* and one more than may be there */
    const char *folder;
    uint32_t least, most;       /* the last batch must be one of these */
    bool read_only_first, dies; /* the first process that opens it ends without a close */
    bool once;                  /* there is no second one */
};

/* True, or what is wrong, in words. */
bool judge(const struct judgement *judgement, char *words, size_t words_len);

/* The same, once: a folder that does not open, or cannot be read, is right too if a sentence says so. */
bool judge_damaged(const struct judgement *judgement, bool *found, char *words, size_t words_len);

/* Runs it in a child, whose output goes to *words. False: so does the child say, or it died. */
bool judge_in_child(bool (*part)(void *context), void *context, char *words, size_t words_len);

void remove_folder(const char *folder);

#endif
