/* What the files of groups share: a head as it was read, its rule as a condition, and how a group is
 * completed. The tables and what holds for them: group.c. */
#ifndef PATTERN_GROUP_H
#define PATTERN_GROUP_H

#include "pattern/edit.h"
#include "pattern/flow.h"
#include "pattern/slots.h"

#define GROUP_LONG_MS  (3660 * 24 * 3600 * 1000ll)
#define GROUP_AGAIN_MS 60000 /* so long after a change its rules are given to all open groups once more */
#define GROUP_KINDS    50    /* that a rule can ask for: a condition holds at most 300 operators */

extern const struct flow_table group_table, group_rules_table, group_events_table;

/* X(name): what a head's `state` says. */
#define GROUP_STATES(X) X(OPEN) X(COMPLETE) X(DELETING)
enum group_state {
    GROUP_NONE,
#define X(name) GROUP_##name,
    GROUP_STATES(X)
#undef X
};
/* X(name): what rules consist of, which a head has by the same names. The deadline is last: a head may have another. */
#define GROUP_RULES(X)                                                                                       \
    X(size) X(needs) X(when) X(values) X(folds) X(quiet) X(late) X(keep) X(then) X(deadline)
enum group_late { LATE_DISCARD, LATE_APPEND, LATE_NEW };

/* A group, and its head as it was read last. */
struct group {
    struct slice name, key;
    struct slice id;   /* "NAME/KEY", the hash key of its heads */
    struct slice item; /* SLICE_NONE: there is none */
    enum group_state state;
    enum group_late late;
    int64_t generation, count, bytes;
    int64_t opened_ms, touched_ms, quiet_ms, deadline_ms, keep_ms; /* 0: none */
    int64_t rules;                                                 /* the version of the rules that it has */
    struct slice spilled; /* the hash key of its further events; SLICE_NONE: all of them stand in the head */
    struct slice redo;    /* the last of those, which may have no item yet */
    bool own_deadline;    /* its first event brought it */
    bool has_when;        /* a condition of the user's is in its rule */
    struct slice folds;   /* what is folded from its events' data; SLICE_NONE: nothing */
};

/* ---- fields that rows begin with ---- */

enum { GROUP_NAME, GROUP_KEY };
#define FIELD_GROUP_NAME FIELD_IN_PATH("name", 200, "the kind of groups, which have rules")
#define FIELD_GROUP_KEY  FIELD_IN_PATH("key", 900, "the group: what its events have in common")

/* ---- group.c ---- */

struct group group_named(struct flow *flow, struct slice name, struct slice key);
/* Takes over what an item, a head or rules, says. */
void group_read(struct flow *flow, struct group *group, struct slice item);
/* The latest generation, or `generation` where that is above 0. */
void group_load(struct flow *flow, struct group *group, int64_t generation);
/* The rules of a name, SLICE_NONE: there are none; as this process knew them last, perhaps not the latest; and either,
 * of which they come cheaper. */
struct slice group_rules_read(struct flow *flow, struct slice name);
struct slice group_rules_known(struct flow *flow, struct slice name);
struct slice group_rules_guess(struct flow *flow, struct slice name);
void group_rules_remember(struct flow *flow, struct slice name, struct slice rules);
/* The item of the rules, also when they are forgotten. */
struct slice group_rules_item(struct flow *flow, struct slice name);
/* What the sweep has remembered of a name: when it is to look again. */
uint64_t group_sweep_topic(struct slice name);
/* {"group":...,"generation":...} of a head. */
struct slice group_key(struct flow *flow, const struct group *group, int64_t generation);
uint64_t group_topic(const struct group *group);
/* "NAME/0", "NAME/1"..., the hash key of a group in the indexes; of any slot of a name; and how many slots it has. */
struct slice group_slot(struct flow *flow, const struct group *group);
struct slice group_slot_at(struct flow *flow, struct slice name, int64_t slot);
struct slots group_slots(struct flow *flow, struct slice name);
/* When the sweep is to look at it: when it is due, or to heal it; INT64_MAX: never. */
int64_t group_due_ms(const struct flow *flow, const struct group *group);
/* Why it is to be completed though its rule does not hold, "quiet" or "deadline"; NULL: it is not. */
const char *group_is_over(const struct flow *flow, const struct group *group);
_Noreturn void group_refuse_unknown(struct flow *flow);

/* ---- group_rule.c ---- */

/* The condition of an edit that the rule of a head, or of the rules' item, holds, or that it does not. False: there is
 * no rule. */
bool group_if_rule(struct flow *flow, struct edit *edit, struct slice item, bool holds);
/* The same as it must be for the rule to hold when an event of this kind has been added. A user's own condition is as
 * it is, since what becomes of it is for the service to say. */
bool group_if_rule_with(struct flow *flow, struct edit *edit, struct slice item, struct slice kind,
                        bool holds);
/* It will hold with an event of this kind, for certain. */
bool group_completes(struct flow *flow, struct slice item, struct slice kind);
/* Is it an element of this set? */
bool group_has(struct flow *flow, struct slice item, const char *name, struct slice wanted);
/* What of it can be said without the service: false, it does not hold. */
bool group_may_be_complete(struct flow *flow, struct slice item);
/* A condition with values and names in their places ("count >= 3") in DynamoDB's words, with the values
 * (":v1") as a JSON object, NULL data where there are none. *fault: what is wrong with it, or NULL. */
struct slice group_when_read(struct flow *flow, struct slice written, struct slice *values,
                             const char **fault);
/* A condition of the user's in a form that can stand among ours; SLICE_NONE and a sentence in *fault: it
 * cannot. `folds`: an object, whose names stand for what a head has of them. */
struct slice group_when(struct flow *flow, struct slice expression, struct slice folds, const char **fault);
/* What is wrong with the words of a condition in DynamoDB's form and the types of its values, a plain object; NULL:
 * nothing that could be told here. `folds`: as they were sent. */
const char *group_when_fault(struct flow *flow, struct slice expression, struct slice values,
                             struct slice folds);
/* What names consist of. */
static inline bool group_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
/* A word of the language, or what a group has anyway. */
bool group_when_knows(struct slice word);
/* Its values, as members ",':w_name':..."; `values` is a map attribute's content. */
struct slice group_when_values(struct flow *flow, struct slice values);
/* What an edit of a head changes: it gets these rules, and loses what they do not have; the sweep looks at it then; it
 * is complete, and kept so long (0: for ever). `by`: "#by = :last". */
void group_rules_set(struct flow *flow, struct edit *edit, struct slice rules, bool keeps_deadline);
void group_set_due(struct flow *flow, const struct group *group, struct edit *edit, int64_t due_ms);
void group_end(struct flow *flow, const struct group *group, struct edit *edit, int64_t keep_ms,
               const char *why, const char *by);
/* Completes the group as it was read, and reads it again: perhaps somebody else was first. `why`: NULL by its rule,
 * which is looked at again by the write; and so it is for GROUP_BY_RULES, when they were changed. */
#define GROUP_BY_RULES "rules"
void group_complete(struct flow *flow, struct group *group, const char *why);

/* ---- group_fold.c ---- */

/* Refuses what is no `fold` of rules; `plain` is what was sent. */
void group_folds_check(struct flow *flow, struct slice plain);
/* What a condition can do with one of them, as it was sent. */
enum group_fold_type { GROUP_FOLD_NUMBER, GROUP_FOLD_SCALAR, GROUP_FOLD_SET, GROUP_FOLD_ANY };
enum group_fold_type group_fold_type(struct flow *flow, struct slice plain);
/* The values, a map attribute's content, with one more event, an item of it. *fault: a sentence why it cannot be
 * folded; NULL: it can. */
struct slice group_fold_next(struct flow *flow, struct slice folds, struct slice values, struct slice event,
                             const char **fault);
/* The values of all events of the group as it was read. */
struct slice group_fold_all(struct flow *flow, const struct group *group, struct slice folds);

/* No event has come since it was read, and it is the same: not another one of its key, after it was deleted. */
void group_if_unchanged(struct flow *flow, const struct group *group, struct edit *edit);

/* ---- group_change.c ---- */

/* Gives the group as it was read these rules, an item of the rules' table, if they are newer than its own, and
 * completes it where they say so. */
void group_change(struct flow *flow, struct group *group, struct slice rules);
/* The same with every group of the name that is open. The rules must have been written before; `waits_ms`: for
 * the index to have what was written before them. */
void group_change_all(struct flow *flow, struct slice rules, int64_t waits_ms);

/* ---- group_put.c, group_add.c, group_sweep.c, group_complete.c ---- */

flow_step group_put, group_rules, group_list_rules, group_forget, group_add, group_add_many, group_delete,
    group_complete_now;
extern const struct field group_put_fields[8], group_name_fields[1], group_add_fields[8],
    group_only_fields[2], group_complete_fields[4], group_many_fields[3];

#endif
