/* Throughput that acts: provisioned units, maxima of on-demand tables and what one partition can bear. Off unless the
 * server is told otherwise, and then no request takes notice of it. A table's tag quipu:throttle, "on" or "off", says
 * so of that table; what is said at run time goes before both.
 *
 * A request's demand is made when it is known what it costs, by the numbers that ConsumedCapacity tells: of a read
 * when it was done, of a write on the writer's thread before it is kept. It has an arm for the table (its local indexes
 * draw on it, too) and one for each global index. Each arm is let in while there is anything in its buckets, and then
 * takes its whole cost, so that one large request after a quiet second is not refused. A demand that is refused takes
 * nothing.
 *
 * Time is the database's, which tests can move. */
#ifndef API_THROTTLE_H
#define API_THROTTLE_H

#include "api/items.h"
#include "api/transact.h"

enum throttle_cause {
    THROTTLE_NONE,
    THROTTLE_PROVISIONED, /* the units of the table or index are used up */
    THROTTLE_MAXIMUM,     /* OnDemandThroughput's */
    THROTTLE_KEY_RANGE,   /* more than one partition gives */
};

struct throttle_arm {
    const struct index_definition *index; /* NULL: the table */
    double units;
    bool is_write, has_partition;
    uint32_t partition; /* the hash of the hash key */
    enum throttle_cause cause;
};

struct throttle_demand {
    const struct table *table;
    struct throttle_arm arms[1 + LIMIT_GSI_COUNT];
    uint32_t count;
};

struct throttle *throttle_new(bool all);
void throttle_free(struct throttle *throttle);

/* False: nobody need ask about this table. */
bool throttle_is_on(const struct api *api, const struct table *table);

/* What a read costs. `key`: a stored key of the table or index, of which the partition is taken; empty for scans, which
 * read all of them. */
struct throttle_demand throttle_read(const struct table *table, const struct index_definition *index,
                                     struct slice key, double table_units, double index_units);
/* What a checked write costs: a failed condition the item that it looked at, in a transaction the table's part twice.
 */
struct throttle_demand throttle_write(struct api_call *call, const struct write *write, bool in_transaction);

/* All of them, or none: false leaves the causes in their arms. */
bool throttle_admit(struct api *api, struct throttle_demand *demands, uint32_t count);
bool throttle_has_refused(const struct throttle_demand *demand);

/* One demand; when it is not let in, the copy that is refused with, else NULL. */
const struct throttle_demand *throttle_refusal(struct api_call *call, struct throttle_demand demand);

/* The exception that tells of it, with its ThrottlingReasons; and what a cancelled transaction says. Answers false. */
bool refuse_throttled(struct api_call *call, const struct throttle_demand *demand);
struct reason throttle_reason(const struct throttle_demand *demand);

#endif
