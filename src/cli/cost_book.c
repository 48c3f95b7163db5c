/* The book: every operation of every pattern, each in the situation that people meet most. Steps without a
 * name prepare what the next one measures. In their texts, which have ' for ", stand
 *
 *   {data}        a JSON object of as many bytes as were asked for; EVENTS: a batch of such events
 *   {leaf}        the tasks of a leaf but its last
 *   {n}           which of several times it is, from 0 on
 *   {prefix}      of the tables' names
 *   {second}      now, since 1970; {before}: half a minute ago, in ISO 8601
 *   {id} ...      what the last answer that had such a member said
 *
 * The rows of doc/scale.md have the same names; test/blackbox/test_scale.py compares. */
#include <stdio.h>
#include <string.h>

#include "calendar/calendar.h"
#include "cli/cost.h"
#include "pattern/pattern.h"

#define KEPT_NAMES       3
#define NAME_BYTES       80
#define HALF_A_MINUTE_MS 30000
#define LEAF_TASKS       256
#define EVENTS_AT_ONCE   25

struct step {
    const char *pattern, *operation; /* NULL: only prepares */
    const char *request;             /* "POST /v1/counters/orders"; or an operation of DynamoDB */
    const char *body;
    const char *header;
    unsigned times;   /* 0: once */
    int64_t later_ms; /* that the clock moves on before it */
};

/* clang-format off */
#define RECORD(number) \
    "{'Records':[{'eventID':'" number "','eventName':'MODIFY','dynamodb':{'ApproximateCreationDateTime':{second}," \
    "'Keys':{'id':{'S':'a'}},'OldImage':{'id':{'S':'a'},'v':{'N':'1'}}," \
    "'NewImage':{'id':{'S':'a'},'v':{'N':'" number "'}},'SequenceNumber':'1000000000000000000" number "'," \
    "'SizeBytes':20,'StreamViewType':'NEW_AND_OLD_IMAGES'}}]}"

#define PREPARE(...)                       {.request = __VA_ARGS__}
#define MEASURE(pattern_, operation_, ...) {.pattern = pattern_, .operation = operation_, .request = __VA_ARGS__}

static const struct step book[] = {
    /* ---- counter ---- */
    PREPARE("POST /v1/counters/first"),
    MEASURE("counter", "make, by its first number", "POST /v1/counters/c"),
    MEASURE("counter", "next", "POST /v1/counters/c"),
    MEASURE("counter", "next 100 as a block", "POST /v1/counters/c", .body = "{'block':100}"),
    PREPARE("POST /v1/counters/c", .header = "Idempotency-Key: first"),
    MEASURE("counter", "next, with a key", "POST /v1/counters/c", .header = "Idempotency-Key: key"),
    MEASURE("counter", "next, the same key again", "POST /v1/counters/c", .header = "Idempotency-Key: key"),
    MEASURE("counter", "next, the original's route", "GET /counter?systemKey=c"),
    MEASURE("counter", "read", "GET /v1/counters/c"),
    MEASURE("counter", "set", "PUT /v1/counters/c", .body = "{'value':7}"),
    MEASURE("counter", "remove", "DELETE /v1/counters/c"),
    PREPARE("POST /v1/counters/c{n}", .times = 9),
    MEASURE("counter", "list ten", "GET /v1/counters?limit=10"),

    /* ---- lease ---- */
    PREPARE("POST /v1/leases/first", .body = "{'owner':'a'}"),
    MEASURE("lease", "make, by its first grant", "POST /v1/leases/l", .body = "{'owner':'z'}"),
    PREPARE("DELETE /v1/leases/l?owner=z&fence=1"),
    MEASURE("lease", "grant", "POST /v1/leases/l", .body = "{'owner':'a','for':'30s'}"),
    MEASURE("lease", "grant, refused", "POST /v1/leases/l", .body = "{'owner':'b','for':'30s'}"),
    MEASURE("lease", "renew", "PUT /v1/leases/l", .body = "{'owner':'a','fence':2}"),
    MEASURE("lease", "read", "GET /v1/leases/l"),
    MEASURE("lease", "release", "DELETE /v1/leases/l?owner=a&fence=2"),
    PREPARE("POST /v1/leases/five", .body = "{'owner':'z','holders':5}"),
    PREPARE("DELETE /v1/leases/five?owner=z&fence=1"),
    MEASURE("lease", "list leases", "GET /v1/leases"),
    MEASURE("lease", "grant, one of five", "POST /v1/leases/five", .body = "{'owner':'a','holders':5}"),
    MEASURE("lease", "renew, one of five", "PUT /v1/leases/five", .body = "{'owner':'a','fence':2}"),
    MEASURE("lease", "release, one of five", "DELETE /v1/leases/five?owner=a&fence=2"),

    /* ---- once ---- */
    PREPARE("GET /v1/once/o/k"),
    MEASURE("once", "begin", "POST /v1/once/o/k", .body = "{'for':'30s'}"),
    MEASURE("once", "begin, refused", "POST /v1/once/o/k", .body = "{}"),
    MEASURE("once", "renew", "PUT /v1/once/o/k", .body = "{'fence':1}"),
    MEASURE("once", "finish", "POST /v1/once/o/k/finish", .body = "{'fence':1,'result':{data}}"),
    MEASURE("once", "begin, it is done", "POST /v1/once/o/k", .body = "{}"),
    MEASURE("once", "read", "GET /v1/once/o/k"),
    MEASURE("once", "forget", "DELETE /v1/once/o/k"),
    PREPARE("POST /v1/once/o/f"),
    MEASURE("once", "fail", "POST /v1/once/o/f/fail", .body = "{'fence':1}"),
    MEASURE("once", "list what failed", "GET /v1/once/o"),

    /* ---- limit ---- */
    PREPARE("POST /v1/limits/m", .body = "{'rate':2,'per':'1h'}"),
    MEASURE("limit", "take", "POST /v1/limits/m", .body = "{'rate':2,'per':'1h'}"),
    MEASURE("limit", "take, refused", "POST /v1/limits/m", .body = "{'rate':2,'per':'1h'}"),
    MEASURE("limit", "read", "GET /v1/limits/m"),
    MEASURE("limit", "list limits", "GET /v1/limits"),
    MEASURE("limit", "remove", "DELETE /v1/limits/m"),

    /* ---- document ---- */
    PREPARE("PUT /v1/documents/c/{n}", .body = "{data}", .times = 9),
    MEASURE("document", "write a new one", "PUT /v1/documents/c/d", .body = "{data}"),
    MEASURE("document", "write over a version", "PUT /v1/documents/c/d",
            .body = "{data}", .header = "If-Match: \"1\""),
    MEASURE("document", "write, refused", "PUT /v1/documents/c/d", .body = "{data}", .header = "If-Match: \"1\""),
    MEASURE("document", "patch", "PATCH /v1/documents/c/d", .body = "{'more':1}"),
    MEASURE("document", "patch a version", "PATCH /v1/documents/c/d",
            .body = "{'more':2}", .header = "If-Match: \"3\""),
    MEASURE("document", "read", "GET /v1/documents/c/d"),
    MEASURE("document", "read, unchanged", "GET /v1/documents/c/d", .header = "If-None-Match: \"4\""),
    MEASURE("document", "list ten", "GET /v1/documents/c"),
    MEASURE("document", "list collections", "GET /v1/documents"),
    MEASURE("document", "delete", "DELETE /v1/documents/c/d"),

    /* ---- work ---- */
    PREPARE("GET /v1/work/q"),
    MEASURE("work", "set a queue", "PUT /v1/work/q", .body = "{'lease':'30s','attempts':3,'backoff':'1s'}"),
    PREPARE("POST /v1/work/q/a", .body = "{'data':{data}}"),
    MEASURE("work", "submit", "POST /v1/work/q/b", .body = "{'data':{data}}"),
    MEASURE("work", "submit again", "POST /v1/work/q/b", .body = "{'data':{data}}"),
    PREPARE("DELETE /v1/work/q/b"),
    MEASURE("work", "claim", "POST /v1/work/q/claim", .body = "{'owner':'w'}"),
    MEASURE("work", "claim, nothing there", "POST /v1/work/q/claim", .body = "{'owner':'v'}"),
    MEASURE("work", "beat", "POST /v1/work/q/a/beat", .body = "{'fence':1,'progress':{'page':7},'step':7}",
            .later_ms = 10000),
    MEASURE("work", "finish", "POST /v1/work/q/a/finish", .body = "{'fence':1,'result':{data}}"),
    MEASURE("work", "read", "GET /v1/work/q/a"),
    PREPARE("POST /v1/work/q/f", .body = "{'data':{data}}"),
    PREPARE("POST /v1/work/q/claim", .body = "{'owner':'w'}"),
    MEASURE("work", "fail", "POST /v1/work/q/f/fail", .body = "{'fence':1,'reason':'no ink'}"),
    PREPARE("POST /v1/work/q/claim", .body = "{'owner':'w'}", .later_ms = 5000),
    MEASURE("work", "fail for good", "POST /v1/work/q/f/fail",
            .body = "{'fence':2,'reason':'no ink','retry':false}"),
    MEASURE("work", "retry", "POST /v1/work/q/f/retry"),
    PREPARE("POST /v1/work/q/u{n}", .body = "{'data':{data}}", .times = 8),
    MEASURE("work", "list ten", "GET /v1/work/q"),
    MEASURE("work", "delete", "DELETE /v1/work/q/u0"),
    MEASURE("work", "list queues", "GET /v1/work"),
    MEASURE("work", "submit five at once", "POST /v1/work/q",
            .body = "{'units':[{'id':'many-a','data':{data}},{'id':'many-b','data':{data}},"
                    "{'id':'many-c','data':{data}},{'id':'many-d','data':{data}},{'id':'many-e','data':{data}}]}"),
    PREPARE("PUT /v1/work/first", .body = "{'each':'f','paused':true}"),
    MEASURE("work", "hand units to a function", "PUT /v1/work/q", .body = "{'each':'f','paused':true}"),
    MEASURE("work", "list what is driven", "GET /v1/drives"),
    MEASURE("work", "remove a drive", "DELETE /v1/drives/work:first?version=1"),

    /* ---- job ---- */
    PREPARE("GET /v1/jobs"),
    PREPARE("PUT /v1/jobs/first", .body = "{'total':2}"),
    PREPARE("POST /v1/jobs/first/failed", .body = "{'task':0,'reason':'no ink'}"),
    MEASURE("job", "open, 1000 tasks", "PUT /v1/jobs/j", .body = "{'total':1000,'tolerate':10}"),
    MEASURE("job", "done, the first of a leaf", "POST /v1/jobs/j/done", .body = "{'task':4}"),
    MEASURE("job", "done", "POST /v1/jobs/j/done", .body = "{'task':0}"),
    MEASURE("job", "done, the same task again", "POST /v1/jobs/j/done", .body = "{'task':0}"),
    MEASURE("job", "done, with a result", "POST /v1/jobs/j/done", .body = "{'task':1,'result':{data}}"),
    MEASURE("job", "done, ten tasks of a leaf", "POST /v1/jobs/j/done",
            .body = "{'tasks':[10,11,12,13,14,15,16,17,18,19]}"),
    MEASURE("job", "done, with its progress", "POST /v1/jobs/j/done?progress=1", .body = "{'task':2}"),
    MEASURE("job", "failed", "POST /v1/jobs/j/failed", .body = "{'task':3,'reason':'no ink'}"),
    PREPARE("POST /v1/jobs/j/done", .body = "{'tasks':[{leaf}]}"),
    MEASURE("job", "done, the last of a leaf", "POST /v1/jobs/j/done", .body = "{'task':255}"),
    MEASURE("job", "read", "GET /v1/jobs/j"),
    MEASURE("job", "read, with its progress", "GET /v1/jobs/j?progress=1"),
    MEASURE("job", "list what is missing", "GET /v1/jobs/j/missing?limit=100"),
    MEASURE("job", "list failures", "GET /v1/jobs/first/failures"),
    MEASURE("job", "list results", "GET /v1/jobs/j/results"),
    MEASURE("job", "list open ones", "GET /v1/jobs?state=open"),
    MEASURE("job", "grow by 1000 tasks", "PATCH /v1/jobs/j", .body = "{'total':2000}"),
    MEASURE("job", "try failures again", "POST /v1/jobs/first/redrive"),
    PREPARE("PUT /v1/jobs/each-first", .body = "{'items':[1],'each':'f','paused':true}"),
    MEASURE("job", "open, with each", "PUT /v1/jobs/each", .body = "{'total':1000,'each':'f','paused':true}"),
    MEASURE("job", "what is to be called next", "GET /v1/jobs/each/tasks"),
    MEASURE("job", "done, two tasks with results", "POST /v1/jobs/each/done",
            .body = "{'tasks':[{'task':0,'result':{data}},{'task':1,'result':{data}}]}"),
    PREPARE("PUT /v1/jobs/lines", .body = "{'each':'f','paused':true}"),
    PREPARE("POST /v1/jobs/lines/items", .body = "1"),
    MEASURE("job", "store an item", "POST /v1/jobs/lines/items?from=1", .body = "{'any':{data}}"),
    PREPARE("PUT /v1/jobs/table",
            .body = "{'each':'f','paused':true,'from':{'table':'{prefix}counters','query':{'KeyConditionExpression':"
                    "'#n = :n','ExpressionAttributeNames':{'#n':'name'},'ExpressionAttributeValues':"
                    "{':n':{'S':'x'}}}}}"),
    MEASURE("job", "read items of a table", "POST /v1/jobs/table/read"),
    PREPARE("PUT /v1/jobs/small", .body = "{'total':2}"),
    PREPARE("POST /v1/jobs/small/done", .body = "{'task':0}"),
    MEASURE("job", "done, the last of the job", "POST /v1/jobs/small/done", .body = "{'task':1}"),
    MEASURE("job", "list finished ones", "GET /v1/jobs?state=complete"),
    MEASURE("job", "events of a finished one", "GET /v1/jobs/small/events"),
    MEASURE("job", "delete, 2 tasks", "DELETE /v1/jobs/small"),
    MEASURE("job", "delete, 2000 tasks", "DELETE /v1/jobs/j"),

    /* ---- group ---- */
    PREPARE("GET /v1/groups/g?state=open"),
    MEASURE("group", "set the rules", "PUT /v1/groups/g", .body = "{'complete':{'size':10},'late':'append'}"),
    MEASURE("group", "read the rules", "GET /v1/groups/g"),
    MEASURE("group", "add the first event", "POST /v1/groups/g/k", .body = "{'id':'e','data':{'click':1}}"),
    MEASURE("group", "add an event", "POST /v1/groups/g/k", .body = "{'id':'f','data':{'click':2}}"),
    MEASURE("group", "add the same again", "POST /v1/groups/g/k", .body = "{'id':'f','data':{'click':2}}"),
    PREPARE("POST /v1/groups/g/k", .body = "{'id':'{n}','data':{'click':{n}}}", .times = 7),
    MEASURE("group", "add the event that completes it", "POST /v1/groups/g/k",
            .body = "{'id':'l','data':{'click':10}}"),
    MEASURE("group", "add a late event", "POST /v1/groups/g/k", .body = "{'id':'late','data':{'click':11}}"),
    PREPARE("POST /v1/groups/g/large", .body = "{'id':'{n}','data':{data}}", .times = 7),
    MEASURE("group", "add to a large one", "POST /v1/groups/g/large", .body = "{'id':'e','data':{data}}"),
    PREPARE("PUT /v1/groups/q", .body = "{'complete':{'size':100},'quiet':'5m'}"),
    PREPARE("POST /v1/groups/q/k", .body = "{'id':'a','data':{'click':1}}"),
    MEASURE("group", "add, with a quiet time", "POST /v1/groups/q/k", .body = "{'id':'b','data':{'click':2}}",
            .later_ms = 1000),
    PREPARE("PUT /v1/groups/f", .body = "{'complete':{'when':'clicks >= 9'},'fold':{'clicks':{'sum':'click'}}}"),
    PREPARE("POST /v1/groups/f/k", .body = "{'id':'a','data':{'click':1}}"),
    MEASURE("group", "add, with a folded value", "POST /v1/groups/f/k", .body = "{'id':'b','data':{'click':2}}"),
    MEASURE("group", "add the one that it is complete with", "POST /v1/groups/f/k",
            .body = "{'id':'c','data':{'click':6}}"),
    PREPARE("POST /v1/groups/f/now", .body = "{'id':'a','data':{'click':1}}"),
    MEASURE("group", "complete by force", "POST /v1/groups/f/now/complete"),
    MEASURE("group", "read", "GET /v1/groups/g/k"),
    MEASURE("group", "list open ones", "GET /v1/groups/g?state=open"),
    MEASURE("group", "list finished ones", "GET /v1/groups/g?state=complete"),
    MEASURE("group", "list rules", "GET /v1/groups"),
    PREPARE("PUT /v1/groups/b", .body = "{'complete':{'size':100}}"),
    PREPARE("POST /v1/groups/b/k", .body = "{'id':'a','data':{'click':1}}"),
    MEASURE("group", "add five at once", "POST /v1/groups/b",
            .body = "{'events':[{'key':'k','id':'b','data':{'click':2}},{'key':'k','id':'c','data':{'click':3}},"
                    "{'key':'k','id':'d','data':{'click':4}},{'key':'k','id':'e','data':{'click':5}},"
                    "{'key':'k','id':'f','data':{'click':6}}]}"),
    MEASURE("group", "delete", "DELETE /v1/groups/g/k"),
    MEASURE("group", "forget the rules", "DELETE /v1/groups/g"),

    /* ---- period ---- */
    PREPARE("GET /v1/periods/p"),
    MEASURE("period", "make", "PUT /v1/periods/p", .body = "{'every':'1h','shards':1}"),
    MEASURE("period", "add the first of a bucket", "POST /v1/periods/p", .body = "{'data':{data}}"),
    MEASURE("period", "add", "POST /v1/periods/p", .body = "{'data':{data}}"),
    MEASURE("period", "add, with an id", "POST /v1/periods/p", .body = "{'id':'a','data':{data}}"),
    MEASURE("period", "add, the same id again", "POST /v1/periods/p", .body = "{'id':'a','data':{data}}"),
    MEASURE("period", "read its settings", "GET /v1/periods/p"),
    PREPARE("POST /v1/periods/p", .body = "{'data':{data}}", .times = 7),
    MEASURE("period", "close a bucket of ten", "POST /v1/periods/p/close", .later_ms = 3600000),
    MEASURE("period", "close, nothing to do", "POST /v1/periods/p/close"),
    MEASURE("period", "read the present bucket", "GET /v1/periods/p/now"),
    MEASURE("period", "list buckets", "GET /v1/periods/p/buckets"),
    MEASURE("period", "list periods", "GET /v1/periods"),
    PREPARE("POST /v1/periods/p", .body = "{'data':{data}}"),
    MEASURE("period", "add five at once", "POST /v1/periods/p",
            .body = "{'events':[{'data':{'click':1}},{'data':{'click':2}},{'data':{'click':3}},{'data':{'click':4}},"
                    "{'data':{'click':5}}]}"),
    MEASURE("period", "remove", "DELETE /v1/periods/p"),

    /* ---- history ---- */
    PREPARE("CreateTable",
            .body = "{'TableName':'{prefix}orders','BillingMode':'PAY_PER_REQUEST',"
     "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
     "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'S'}]}"),
    PREPARE("GET /v1/history/{prefix}orders"),
    MEASURE("history", "keep", "PUT /v1/history/{prefix}orders", .body = "{'keep':'30d'}"),
    PREPARE("PutItem", .body = "{'TableName':'{prefix}orders','Item':{'id':{'S':'a'},'v':{'N':'28'}}}"),
    MEASURE("history", "record a change", "POST /v1/history/{prefix}orders", .body = RECORD("10")),
    PREPARE("POST /v1/history/{prefix}orders", .body = RECORD("2{n}"), .times = 9, .later_ms = 60000),
    MEASURE("history", "list tables", "GET /v1/history"),
    MEASURE("history", "read settings", "GET /v1/history/{prefix}orders"),
    MEASURE("history", "read ten versions", "GET /v1/history/{prefix}orders/a"),
    MEASURE("history", "read as of a time", "GET /v1/history/{prefix}orders/a?at={before}"),
    MEASURE("history", "read ten changes of a table", "GET /v1/history/{prefix}orders?from={before}"),
    MEASURE("history", "read a table as of a time", "GET /v1/history/{prefix}orders?at={before}"),
    MEASURE("history", "restore", "POST /v1/history/{prefix}orders/a/restore",
            .body = "{'at':'{before}'}"),
    MEASURE("history", "keep no more", "DELETE /v1/history/{prefix}orders"),

    /* ---- log ---- */
    PREPARE("PUT /v1/logs/first", .body = "{'partitions':1}"),
    PREPARE("POST /v1/logs/first", .body = "{'key':'k','token':'t'}"),
    PREPARE("POST /v1/logs/first/consumers/g/read", .body = "{'owner':'o'}"),
    PREPARE("POST /v1/logs/first/consumers/g/park",
            .body = "{'partition':'{partition}','fence':{fence},'sequence':1}"),
    MEASURE("log", "make", "PUT /v1/logs/l", .body = "{'partitions':1}"),
    PREPARE("POST /v1/logs/l", .body = "{'key':'k','data':{data}}"),
    MEASURE("log", "append, the first in five seconds", "POST /v1/logs/l",
            .body = "{'key':'k','data':{data}}", .later_ms = 6000),
    MEASURE("log", "append", "POST /v1/logs/l", .body = "{'key':'k','data':{data}}"),
    MEASURE("log", "append, as expected", "POST /v1/logs/l", .body = "{'key':'k','data':{data},'expected':3}"),
    MEASURE("log", "append, with a token", "POST /v1/logs/l", .body = "{'key':'k','data':{data},'token':'t'}"),
    MEASURE("log", "append, the same token again", "POST /v1/logs/l",
            .body = "{'key':'k','data':{data},'token':'t'}"),
    MEASURE("log", "append 25 at once", "POST /v1/logs/l", .body = "{'events':[EVENTS]}"),
    MEASURE("log", "read the events of a partition", "GET /v1/logs/l/partitions/0"),
    MEASURE("log", "read a key, 30 events in its partition", "GET /v1/logs/l/keys/k"),
    MEASURE("log", "read", "POST /v1/logs/l/consumers/g/read", .body = "{'owner':'o'}"),
    MEASURE("log", "acknowledge some", "POST /v1/logs/l/consumers/g/ack",
            .body = "{'partition':'{partition}','fence':{fence},'sequence':3}"),
    MEASURE("log", "lag", "GET /v1/logs/l/consumers/g/lag"),
    MEASURE("log", "park", "POST /v1/logs/l/consumers/g/park",
            .body = "{'partition':'{partition}','fence':{fence},'sequence':4,'reason':'bad'}"),
    MEASURE("log", "acknowledge all", "POST /v1/logs/l/consumers/g/ack",
            .body = "{'partition':'{partition}','fence':{fence},'sequence':30}"),
    MEASURE("log", "read, nothing new", "POST /v1/logs/l/consumers/g/read",
            .body = "{'owner':'o'}", .later_ms = 60000),
    MEASURE("log", "list parked events", "GET /v1/logs/l/consumers/g/parked"),
    MEASURE("log", "replay a partition", "POST /v1/logs/l/consumers/g/replay",
            .body = "{'partition':'0','sequence':1}"),
    MEASURE("log", "replay what was parked", "POST /v1/logs/l/consumers/g/replay", .body = "{'parked':true}"),
    MEASURE("log", "replay from a time on", "POST /v1/logs/l/consumers/g/replay",
            .body = "{'time':'{before}'}"),
    MEASURE("log", "describe", "GET /v1/logs/l"),
    MEASURE("log", "list logs", "GET /v1/logs"),
    MEASURE("log", "split", "POST /v1/logs/l/split", .body = "{'partition':'0'}"),
    MEASURE("log", "merge", "POST /v1/logs/l/merge", .body = "{'partitions':['1','2']}"),
    MEASURE("log", "hand events to a function", "PUT /v1/logs/l/consumers/g",
            .body = "{'function':'f','paused':true}"),
    MEASURE("log", "read what is called", "GET /v1/logs/l/consumers/g"),
    MEASURE("log", "remove a group", "DELETE /v1/logs/l/consumers/g"),
    MEASURE("log", "delete, 30 events", "DELETE /v1/logs/l"),

    /* ---- board ---- */
    PREPARE("POST /v1/boards/b", .body = "{'text':'hello {n}'}", .times = 9),
    PREPARE("POST /v1/boards/other", .body = "{'text':'hello'}", .header = "Idempotency-Key: first"),
    MEASURE("board", "post", "POST /v1/boards/b", .body = "{'text':'hello'}"),
    MEASURE("board", "post, with a key", "POST /v1/boards/b",
            .body = "{'text':'hello'}", .header = "Idempotency-Key: k"),
    MEASURE("board", "delete one, posted with a key", "DELETE /v1/boards/b/{id}"),
    PREPARE("POST /v1/boards/b", .body = "{'text':'hello'}"),
    MEASURE("board", "delete one", "DELETE /v1/boards/b/{id}"),
    MEASURE("board", "read ten", "GET /v1/boards/b"),
    MEASURE("board", "list boards", "GET /v1/boards"),
    MEASURE("board", "delete all of ten", "DELETE /v1/boards/b"),
    PREPARE("POST /wall", .body = "hello"),
    MEASURE("board", "post, the original's route", "POST /wall", .body = "hello"),
    MEASURE("board", "read, the original's route", "GET /wall"),
    MEASURE("board", "delete all, the original's route", "DELETE /wall"),
};
/* clang-format on */

/* ---- words ---- */

/* What later steps refer to. */
static const char *const kept_names[KEPT_NAMES] = {"id", "partition", "fence"};

struct reader {
    struct meter *meter;
    unsigned long long bytes; /* of {data} */
    unsigned nth;
    char kept[KEPT_NAMES][NAME_BYTES];
};

static void put_data(struct buf *out, unsigned long long bytes)
{
    static const char frame[] = "{\"text\":\"\"}";
    buf_text(out, "{\"text\":\"");
    for (unsigned long long i = sizeof frame - 1; i < bytes; i++) buf_byte(out, 'x');
    buf_text(out, "\"}");
}

/* All tasks of a job's first leaf but its last. */
static void put_leaf(struct buf *out)
{
    for (int i = 0; i < LEAF_TASKS - 1; i++) buf_printf(out, i ? ",%d" : "%d", i);
}

static void put_word(struct reader *reader, struct buf *out, struct slice word)
{
    if (slice_equal(word, SLICE("data"))) put_data(out, reader->bytes);
    if (slice_equal(word, SLICE("leaf"))) put_leaf(out);
    if (slice_equal(word, SLICE("n"))) buf_printf(out, "%u", reader->nth);
    if (slice_equal(word, SLICE("second"))) buf_printf(out, "%lld", (long long)reader->meter->now_ms / 1000);
    if (slice_equal(word, SLICE("before")))
        buf_slice(out, moment_text(&reader->meter->arena, reader->meter->now_ms - HALF_A_MINUTE_MS));
    if (slice_equal(word, SLICE("prefix"))) buf_slice(out, slice_of(reader->meter->prefix));
    for (size_t i = 0; i < KEPT_NAMES; i++)
        if (slice_equal(word, slice_of(kept_names[i]))) buf_slice(out, slice_of(reader->kept[i]));
}

static void put_events(struct reader *reader, struct buf *out)
{
    for (int i = 0; i < EVENTS_AT_ONCE; i++) {
        buf_slice(out, slice_of(i ? ",{\"key\":\"k\",\"data\":" : "{\"key\":\"k\",\"data\":"));
        put_data(out, reader->bytes);
        buf_byte(out, '}');
    }
}

/* A text of the book with its words filled in, ended by a zero byte that does not count. */
static void put_text(struct reader *reader, struct buf *out, const char *text)
{
    out->len = 0;
    for (; *text; text++) {
        size_t len = *text == '{' ? strcspn(text + 1, "}'{ ") : 0;
        if (len && text[len + 1] == '}') {
            put_word(reader, out, (struct slice){text + 1, len});
            text += len + 1;
        } else if (strncmp(text, "EVENTS", 6) == 0) {
            put_events(reader, out);
            text += 5;
        } else {
            buf_byte(out, *text == '\'' ? '"' : (unsigned char)*text);
        }
    }
    buf_byte(out, 0);
    out->len--;
}

static void keep_words(struct reader *reader, const struct node *json)
{
    for (size_t i = 0; i < KEPT_NAMES; i++) {
        struct slice text = node_text(json, kept_names[i]);
        if (text.len) snprintf(reader->kept[i], NAME_BYTES, "%.*s", SLICE_ARG(text));
    }
}

/* ---- steps ---- */

static bool take_step(struct reader *reader, const struct step *step, struct measure *out)
{
    struct buf request = {0}, body = {0};
    put_text(reader, &request, step->request);
    put_text(reader, &body, step->body ? step->body : "");
    *out = (struct measure){.status = 200};
    bool fine = strchr(request.data, ' ')
                    ? meter_ask(reader->meter, request.data, step->header, buf_view(&body), out)
                    : meter_call(reader->meter, request.data, buf_view(&body));
    keep_words(reader, out->json);
    if (fine && step->pattern && out->status >= 400 && !strstr(step->operation, "refused")) {
        complain("%s: %d %.*s", request.data, out->status, SLICE_ARG(out->reply));
        fine = false;
    }
    buf_free(&request);
    buf_free(&body);
    return fine;
}

static void print_step(struct listing *listing, const struct step *step, const struct measure *measure)
{
    struct buf json = {0};
    struct arena *arena = &listing->arena;
    buf_byte(&json, '{');
    put_string_member(&json, "pattern", slice_of(step->pattern));
    put_string_member(&json, "operation", slice_of(step->operation));
    put_string_member(&json, "request", slice_of(step->request));
    put_measure(&json, measure);
    buf_byte(&json, '}');
    struct slice *row = listing_row(listing, buf_view(&json));
    if (row) {
        row[0] = slice_of(step->pattern);
        row[1] = slice_of(step->operation);
        row[2] = number_shown(arena, measure->writes);
        row[3] = number_shown(arena, measure->reads);
        row[4] = arena_printf(arena, "%llu", measure->calls);
        row[5] = number_shown(arena, measure->dollars);
    }
    buf_free(&json);
}

int cost_of_book(struct meter *meter, const struct arguments *arguments)
{
    static const char *const head[] = {"Pattern",    "Operation", "Write units",
                                       "Read units", "Calls",     "$ a million"};
    struct reader reader = {.meter = meter, .bytes = COST_BYTES_DEFAULT};
    struct listing listing;
    bool fine = true;
    if (!argument_number(arguments, "bytes", 1, COST_BYTES_MOST, &reader.bytes)) return EXIT_USAGE;
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    for (size_t i = 0; fine && i < sizeof book / sizeof *book; i++) {
        struct measure measure;
        meter_wait(meter, book[i].later_ms);
        for (reader.nth = 0; fine && reader.nth < (book[i].times ? book[i].times : 1); reader.nth++)
            fine = take_step(&reader, &book[i], &measure);
        if (fine && book[i].pattern) print_step(&listing, &book[i], &measure);
    }
    listing_end(&listing, "operations");
    return fine ? EXIT_FINE : EXIT_FAULT;
}
