/* What the item operations share: maps of values, keys against a schema, expressions and their legacy forms,
 * single writes, pages of items, consumed capacity.
 *
 * Every function that can refuse answers false (or NULL) after it has done so; the caller just returns. All
 * memory is the call's arena. */
#ifndef API_ITEMS_H
#define API_ITEMS_H

#include "api/shapes.h"

/* ---- words and members of a request ---- */

/* A member of a structure that may itself be null, as elements of maps and lists may. */
const struct node *node_field(const struct node *node, unsigned index);

/* True for an empty fault; else the call is refused with this sentence. */
static inline bool invalid_unless_sound(struct api_call *call, struct slice fault)
{
    return fault.len == 0 || invalid_text(call, fault);
}

/* Transactions tell for each number of units whether they are for reading or for writing. */
enum capacity_axis { AXIS_NONE, AXIS_READ, AXIS_WRITE };
/* invalid() of text in pieces: unlike printf's %s, they may hold zero bytes, as strings of requests may. */
bool invalid_parts(struct api_call *call, const struct slice *parts, size_t count);
#define INVALID(call, ...)                                                                                   \
    invalid_parts((call), (const struct slice[]){__VA_ARGS__},                                               \
                  sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))

/* ---- maps of values (value_map.c) ---- */

/* Refuses when an attribute has no name, or too long a one. */
bool check_attribute_name(struct api_call *call, struct slice name);
/* An Item or Key as a map. Refuses when a value is unsound, in the words of the value. */
bool map_from_node(struct api_call *call, const struct node *node, struct map *out);
/* The same for an ExclusiveStartKey, which says of some faults that the starting key is invalid. */
bool start_key_from_node(struct api_call *call, const struct node *node, struct map *out);

/* ---- keys (keys.c) ---- */

/* The key of one item: its values, and its bytes in the store. */
struct item_key {
    const struct value *hash, *range; /* range NULL where the table has none */
    struct slice bytes;
};

/* A Key: exactly the table's key attributes. */
bool key_from_map(struct api_call *call, const struct table *table, const struct map *key,
                  struct item_key *out);
/* An item to put: has the key attributes, and right types where it has attributes of index keys. Batches say
 * less about a missing or mistyped key than PutItem does. */
bool key_from_item(struct api_call *call, const struct table *table, const struct map *item, bool in_batch,
                   struct item_key *out);
/* The same without refusing: what is wrong as a sentence, or an empty slice. */
struct slice key_of_map(struct api_call *call, const struct table *table, const struct map *key,
                        struct item_key *out);
struct slice key_of_item(struct api_call *call, const struct table *table, const struct map *item,
                         bool in_batch, struct item_key *out);
/* The bytes of a key whose values are known to fit the schema. */
struct slice key_bytes(struct api_call *call, const struct table *table, const struct value *hash,
                       const struct value *range);
/* Refuses a value that no key attribute may have: an empty or too long one. */
bool check_key_value(struct api_call *call, struct slice name, const struct value *value, bool is_hash);
/* The same as a sentence, or an empty slice; the second only about its length. */
struct slice key_value_fault(struct arena *arena, struct slice name, const struct value *value, bool is_hash);
struct slice key_length_fault(const struct value *value, bool is_hash);

/* Key attributes of the table and its indexes cannot be looked into: refuses paths that do. Any of the three
 * may be NULL. */
bool check_key_paths(struct api_call *call, const struct table *table, const struct condition *condition,
                     const struct update *update, const struct projection *projection);
/* The same without refusing: a sentence, or an empty slice. */
struct slice key_path_fault(struct arena *arena, const struct table *table, const struct condition *condition,
                            const struct update *update, const struct projection *projection);

/* ---- indexes (index_keys.c) ---- */

/* Visits each key attribute of each index, global indexes first; stops at false. */
struct index_key {
    const struct index_definition *index;
    struct slice name;
    enum value_type type;
    bool is_hash;
    bool is_filter; /* of a vector index: only its type matters */
};
bool visit_index_keys(const struct table *table, bool (*visit)(void *context, const struct index_key *key),
                      void *context);
/* What is wrong with the item's attributes of index keys, or an empty slice. */
struct slice item_index_fault(struct arena *arena, const struct table *table, const struct map *item);
/* The same of an update whose operands have the wrong type, as far as the request alone tells. */
struct slice update_index_fault(struct arena *arena, const struct table *table, const struct update *update);
/* For struct write: refuses what the update made of index keys. */
bool check_updated_index_keys(const struct write *write, const struct map *item, struct slice *fault);
bool check_legacy_index_keys(const struct write *write, const struct map *item, struct slice *fault);

/* ---- expressions (expressions.c) ---- */

#define LEGACY_PARAMETERS 4

struct legacy_parameter {
    const char *name;
    const struct node *node;
};

/* The expression parameters of a request. The operation fills in the nodes, NULL for those it does not know.
 */
struct expressions {
    const struct node *names, *values;
    const struct node *update_text, *condition_text, *key_condition_text, *filter_text, *projection_text;
    const struct node *search_text;
    struct legacy_parameter legacy[LEGACY_PARAMETERS]; /* in the order in which the service prints them */

    /* answers of expressions_parse: NULL where the text was absent */
    struct expr_params params;
    struct update *update;
    struct condition *condition, *key_condition, *filter, *search;
    struct projection *projection;
};

/* Refuses expressions next to legacy parameters, and names or values without expressions. */
bool expressions_check(struct api_call *call, const struct expressions *expressions);
/* Parses and binds all texts; refuses names and values that none uses. */
bool expressions_parse(struct api_call *call, struct expressions *expressions);

/* ---- legacy parameters (legacy.c, legacy_update.c) ---- */

extern const struct shape shape_expected_map;      /* Expected */
extern const struct shape shape_condition_map;     /* KeyConditions, QueryFilter, ScanFilter */
extern const struct shape shape_attribute_updates; /* AttributeUpdates */

/* Expected or a filter as a condition; *out stays NULL when there is none. */
bool expected_to_condition(struct api_call *call, const struct node *expected,
                           const struct node *conditional_operator, struct condition **out);
bool filter_to_condition(struct api_call *call, const struct node *filter,
                         const struct node *conditional_operator, struct condition **out);
/* KeyConditions as terms, checked as far as they can be before the table is known. */
bool key_conditions_to_terms(struct api_call *call, const struct node *conditions, struct key_terms *out);
/* AttributesToGet; *out stays NULL when there are none. */
bool attributes_to_projection(struct api_call *call, const struct node *attributes, struct projection **out);
bool attribute_updates_to_update(struct api_call *call, const struct node *updates, struct update **out);
/* A fault of an update in the words of AttributeUpdates. */
struct slice legacy_update_fault(struct slice fault);

/* ---- reads (get_item.c) ---- */

/* The stored item in JSON, or what the projection takes of it; false when the image is damaged. */
bool put_read_item(struct api_call *call, struct slice image, const struct projection *projection);

/* ---- single writes (item_write.c) ---- */

enum return_values { RETURN_NONE, RETURN_ALL_OLD, RETURN_UPDATED_OLD, RETURN_ALL_NEW, RETURN_UPDATED_NEW };

/* PutItem, UpdateItem and DeleteItem between begin and finish. */
struct item_write {
    struct write write;
    struct slice table_name; /* as the request had it */
    const struct node *return_capacity, *return_metrics;
    enum return_values return_values;
    bool return_on_failure;
    bool is_legacy;
    bool is_insert; /* of PartiQL: its condition fails where the item exists */
    bool only_clears; /* an update of nothing but REMOVE and DELETE */
    struct item_key key;
    const struct throttle_demand *throttled; /* after the commit: why it was not done; or NULL */
};

enum return_values return_values_from_node(const struct node *node);
/* Encodes a PUT's item on this thread rather than the writer's; refuses one that is too large. The second
 * does not refuse: a sentence, or an empty slice. */
bool encode_put(struct api_call *call, struct write *write);
struct slice put_fault(struct api_call *call, struct write *write);
/* What the schema does not allow the write's update to do, as a sentence, or an empty slice; sets what the
 * writer has to check of the new item. (update_item.c) */
struct slice fit_update(struct api_call *call, struct write *write, bool is_legacy);
bool update_only_clears(const struct update *update);
/* On the writer's thread: engine_write_check, and whether there is anything to keep. An update that only
 * clears attributes does not bring a missing item into being. */
bool check_write(struct batch *batch, struct write *write, bool only_clears);
/* On the writer's thread: checks the write, asks for its throughput, and keeps it. */
void apply_item_write(struct api_call *call, struct batch *batch, struct item_write *item_write);
/* Hands the write over; item_write_finish is the operations' finish. */
void item_write_submit(struct api_call *call, struct item_write *item_write);
void item_write_finish(struct api_call *call);
/* The parts of that reply. Refuses unless the write was applied; then what it returns, as a member that begins
 * with these bytes ("Attributes":), and what it cost. *written: the reply's object has a member. */
bool check_write_outcome(struct api_call *call, const struct item_write *item_write);
bool put_returned(struct api_call *call, const struct item_write *item_write, struct slice member,
                  bool *written);
void put_write_capacity(struct api_call *call, const struct item_write *item_write, bool *written);

/* ---- several writes of one request (many_writes.c) ---- */

struct named_table {
    struct slice name; /* as the request had it */
    struct table *table;
};

struct placed_write {
    struct write write;
    struct item_key key;
    uint32_t place; /* of its table among many_writes.tables */
    const struct throttle_demand *throttled; /* BatchWriteItem: why it was left unprocessed; or NULL */
};

struct many_writes {
    struct placed_write *writes;
    uint32_t count;
    struct named_table *tables;
    uint32_t table_count;
    const struct node *return_capacity, *return_metrics;
};

bool find_tables(struct api_call *call, struct named_table *tables, uint32_t count);
/* On the writer's thread: whether one of them was deleted since. */
bool any_table_is_gone(struct batch *batch, const struct named_table *tables, uint32_t count);
/* ConsumedCapacity and ItemCollectionMetrics as the next members of the reply, where they were asked for. In
 * a transaction (which has an axis) the table's part counts twice; on the axis of reads the items that were
 * written are charged as if they were read. */
void put_many_capacities(struct api_call *call, const struct many_writes *many, enum capacity_axis axis);
void put_many_metrics(struct api_call *call, const struct many_writes *many);

/* ---- pages ---- */

/* What Query and Scan ask for, once understood. */
struct page_request {
    const struct table *table;
    const struct index_definition *index; /* or NULL */
    struct slice table_name;              /* as the request had it */
    const struct node *return_capacity;
    bool backwards, consistent, count_only;
    bool fetch_whole; /* of a local index: attributes that it does not project were asked for */
    uint64_t limit;   /* 0: none */
    const struct condition *filter;
    const struct projection *projection;
    const struct key_condition *key_condition; /* NULL: a scan */
    uint32_t segment, segments;                /* scan; 1 segment is all */
    const struct map *start;                   /* ExclusiveStartKey, or NULL */
};

/* The range of stored keys that the request reads from the table, behind its start key. False: it is empty.
 * (page_range.c) */
struct key_range {
    struct slice from, to;
};
bool page_range(struct api_call *call, const struct page_request *request, struct key_range *out);
/* The stored key of the start key: of an item, or of an index's entry. */
struct slice page_start(struct api_call *call, const struct page_request *request);

/* Values of keys that are too long, or empty; and keys in a filter beside a key condition. (query.c) */
bool check_key_lengths(struct api_call *call, const struct key_condition *keys);
bool check_filter_keys(struct api_call *call, const struct condition *filter, const char *parameter,
                       const struct key_fields *keys);

/* Reads the page, from the table or an index, and writes the reply. (page_reply.c) */
void page_reply(struct api_call *call, const struct page_request *request);
/* The keys of the table and of the index that is read, out of an item: where the next page starts. */
struct map page_last_key(struct arena *arena, const struct page_request *request, const struct map *last);

/* The reply while it grows. */
struct page_writer {
    struct api_call *call;
    const struct page_request *request;
    uint64_t items;
    bool damaged;         /* an image could not be read */
    struct page *page;    /* the one that is read */
    double fetched_units; /* of items read beside their index entries */
    uint64_t fetched;     /* those of them that the reply has */
};
struct page_totals {
    uint64_t scanned, matched, bytes;
    double table_units, index_units;
    const struct map *last; /* the last evaluated item when there is more, or NULL */
    struct slice from;      /* the first stored key of its range */
};
/* Refuses a page for which there is no throughput, where that acts. */
bool check_page_admission(struct api_call *call, const struct page_request *request,
                          const struct page_totals *totals);
void page_begin(struct page_writer *writer, struct api_call *call, const struct page_request *request);
/* One item: whole and encoded, or a map, of which the projection is taken. */
void page_put_encoded(struct page_writer *writer, struct slice encoded);
void page_put_map(struct page_writer *writer, const struct map *item);
/* Reads the page's items into the reply; false when that failed, and the caller refuses. */
bool page_read(struct page_writer *writer, const struct page_request *request, struct page_totals *totals);
void page_end(struct page_writer *writer, const struct page_totals *totals);

/* The index of this name, if one is given (query.c). */
bool find_page_index(struct api_call *call, const struct node *name, struct page_request *request);

/* ---- Select (select.c) ---- */

/* Select, ProjectionExpression and AttributesToGet together. */
bool check_select(struct api_call *call, const struct node *select, const struct node *projection_text,
                  const struct node *attributes, bool has_index, bool is_query);
/* Whether the index has what was asked for; sets fetch_whole. */
bool check_index_select(struct api_call *call, const struct node *select, struct page_request *request);
/* A filter on what the index does not have: a sentence, or an empty slice. */
struct slice index_filter_fault(struct api_call *call, const struct page_request *request);

/* ---- ExclusiveStartKey (start_key.c) ---- */

/* The keys that a page of the table or index runs by. */
struct key_fields page_fields(const struct page_request *request);
/* Against the keys of the index or table: a query looks at its number of attributes first, then at hash and
 * range key, each in its turn; a scan at all of it at once. */
bool check_query_start(struct api_call *call, const struct page_request *request);
bool check_query_start_hash(struct api_call *call, const struct page_request *request);
bool check_query_start_range(struct api_call *call, const struct page_request *request);
bool check_scan_start(struct api_call *call, const struct page_request *request);
/* Against the table's own keys. */
bool check_start_table_key(struct api_call *call, const struct page_request *request);
/* A query of a table without range key: one page, which cannot be continued. */
bool page_is_one_item(const struct page_request *request);
/* A query cannot start where its conditions do not hold. */
bool check_start_conditions(struct api_call *call, const struct page_request *request);

/* ---- capacity (capacity_json.c) ---- */

#define CAPACITY_INDEXES   (LIMIT_LSI_COUNT + LIMIT_GSI_COUNT)
#define TRANSACTION_FACTOR 2 /* a transaction prepares and commits: twice the work on the table itself */

struct capacity {
    double table;
    double indexes[CAPACITY_INDEXES]; /* by their place in the definition */
    double failed;                    /* of writes that a batch tried in vain: part of the sum alone */
    double vector_bytes[LIMIT_VECTOR_INDEXES];
    enum capacity_axis axis;
};

/* Adds what a write of one item cost: the table's part and each index's. */
void capacity_add_write(struct api_call *call, struct capacity *capacity, const struct write *write);
/* Vector indexes are charged by the byte, for a kilobyte at least. */
double capacity_of_vectors(uint64_t bytes);
/* How large an item is in the index: its vector in 32-bit floats, and what else is projected. */
uint64_t vector_entry_bytes(const struct table *table, const struct vector_definition *vectors,
                            const struct map *item);
/* ,"ConsumedCapacity":{...} as a member, or one element of a batch's list; nothing unless asked for. */
bool capacity_wanted(const struct node *return_capacity);
void capacity_put(struct buf *out, const struct node *return_capacity, struct slice table_name,
                  const struct table *table, const struct capacity *capacity);

/* {"ItemCollectionKey":{...},"SizeEstimateRangeGB":[0.0,1.0]}: for tables with local indexes, as it is after
 * the write. */
bool metrics_wanted(const struct node *return_metrics, const struct table *table);
void metrics_put(struct api_call *call, const struct table *table, const struct value *hash);
/* A write that its item collection has no room for. */
#define COLLECTION_FULL "Collection size exceeded"
/* An INSERT of an item that is there. */
#define DUPLICATE_ITEM "Duplicate primary key exists in table"
/* A write that there is no memory for: ours, the service has no such limit. */
#define NO_VECTOR_MEMORY                                                                                       \
    "The vector indexes of this server have all the memory that they may have. Delete vectors or a vector "  \
    "index, or move to a machine with more memory"
bool refuse_full_collection(struct api_call *call);

#endif
