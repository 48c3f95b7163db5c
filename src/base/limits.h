/* Every limit of the program, each with its reason. What has no bound here is bounded by something here. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* A table, whose lines may have the 120 columns that test/rooms allows. */
/* clang-format off */

/* ---- DynamoDB's own limits: the service's numbers, not ours ---- */
#define LIMIT_ITEM_BYTES            (400 * 1024) /* names and values, as the service counts them */
#define LIMIT_HASH_KEY_BYTES        2048
#define LIMIT_RANGE_KEY_BYTES       1024
#define LIMIT_ATTRIBUTE_NAME_BYTES  65535
#define LIMIT_KEY_NAME_BYTES        255
#define LIMIT_NESTING               32 /* levels of lists and maps in an item or an expression value */
#define LIMIT_EXPRESSION_BYTES      4096
#define LIMIT_EXPRESSION_OPERATORS  300
#define LIMIT_EXPRESSION_IN         100
#define LIMIT_EXPRESSION_DEPTH      1000 /* of parentheses and calls while parsing: ours, the parser recurses */
#define LIMIT_STATEMENT_CHARACTERS  8192 /* of PartiQL */
#define LIMIT_STATEMENT_PARTS       50   /* Queries and key reads that a SELECT is broken into */
#define LIMIT_STATEMENT_BATCH       25   /* statements of BatchExecuteStatement */
#define LIMIT_NEXT_TOKEN_CHARACTERS 32768
#define LIMIT_PLACEHOLDER_BYTES     255
#define LIMIT_PARAMETERS_BYTES      (2 * 1024 * 1024) /* all substituted names and values of a request */
#define LIMIT_PAGE_BYTES            (1024 * 1024)     /* Query and Scan, before the filter */
#define LIMIT_BATCH_GET_KEYS        100
#define LIMIT_BATCH_GET_BYTES       (16 * 1024 * 1024)
#define LIMIT_BATCH_WRITE_REQUESTS  25
#define LIMIT_TRANSACTION_ACTIONS   100
#define LIMIT_TRANSACTION_BYTES     (4 * 1024 * 1024) /* items and expressions of a request, or items of a reply */
#define LIMIT_TOKEN_CHARACTERS      36
#define LIMIT_SCAN_SEGMENTS         1000000
#define LIMIT_LIST_TABLES           100
#define LIMIT_LSI_COUNT             5
#define LIMIT_GSI_COUNT             20
#define LIMIT_COLLECTION_BYTES      (10ull << 30) /* items of one hash key and their entries in local indexes */
#define LIMIT_KEY_PARTS             4   /* hash attributes, and as many range attributes, of a global index */
#define LIMIT_INDEX_NON_KEY         20  /* NonKeyAttributes of one index */
#define LIMIT_PROJECTED_ATTRIBUTES  100 /* NonKeyAttributes of all indexes of a table together */
#define LIMIT_VECTOR_INDEXES        5    /* of a table */
#define LIMIT_VECTOR_DIMENSIONS     4096
#define LIMIT_VECTOR_TOP            100  /* results of a search */
#define LIMIT_VECTOR_FILTERS        20   /* INLINE_FILTER attributes of a vector index */
#define LIMIT_VECTOR_MEMORY         2    /* ours: all vectors together take at most half of the machine's memory */
#define LIMIT_VECTOR_EXACT          100000 /* ours: vectors that a search compares all of; of more, by sketches, some */
#define LIMIT_VECTOR_CANDIDATES     (1 << 20) /* ours: that sketches leave to a search, 8 MB; of more it compares all */
#define LIMIT_VECTOR_WAIT_MS        10000 /* ours: a search waits so long for an index that is loaded after a start */
#define LIMIT_ATTRIBUTE_DEFINITIONS 256 /* more than all keys of a table and its indexes can use */
#define LIMIT_TAGS                  50
#define LIMIT_THROTTLE_BUCKETS      16384 /* ours: of tables, and as many of partitions, that throttling remembers */
#define LIMIT_THROTTLE_TABLES       100   /* ours: tables that a test hook may say something of their own about */
#define LIMIT_SCALING_POLICIES      50 /* of one scalable target */
#define LIMIT_REPLICAS              50 /* regions of a global table */
#define LIMIT_REGION_NAME           64 /* ours: the service knows its regions by name */
#define LIMIT_TABLES                2500

/* ---- Exports and imports ---- */
#define LIMIT_TRANSFER_RECORD_BYTES (8 * 1024 * 1024) /* a line: an item of 400 KB in \u00XX fits thrice */
#define LIMIT_TRANSFER_FILE_BYTES   (16 * 1024 * 1024) /* of a data file of an export, about; it is made in memory */
#define LIMIT_TRANSFER_NESTING      64  /* of Ion values and their annotations while reading: the reader recurses */
#define LIMIT_TRANSFER_COLUMNS      65536 /* of a row of CSV; an item of 400 KB cannot have more attributes */
#define LIMIT_TRANSFER_WINDOW_LOG   27  /* memory that a Zstandard frame may ask for: 128 MB, the library's own limit */
#define LIMIT_TRANSFER_OBJECTS      50000 /* that an import reads: the service's number */
#define LIMIT_TRANSFER_JOBS         50 /* at a time, a thread each: the service's number for imports */
#define LIMIT_RESTORES              50 /* of tables at a time, a thread each: the service's number */
#define LIMIT_RESTORE_ITEMS         256 /* that a restore writes at once, so that other writers wait a moment only; */
#define LIMIT_RESTORE_BYTES         (1024 * 1024) /* ... and their bytes, about */
#define LIMIT_TRANSFER_KEPT_MS      (90 * 24 * 3600 * 1000ll) /* the note of a job that has ended: as the service */
#define LIMIT_TRANSFER_TOKEN_MS     (8 * 3600 * 1000ll) /* a ClientToken names its job for so long: as the service */
#define LIMIT_TRANSFER_BEGIN_MS     2000 /* that the writer waits for a new export to hold its view of the table */
#define LIMIT_BUCKET_KEY_BYTES      1024 /* S3's */
#define LIMIT_BUCKET_KEY_PARTS      64 /* folders in a key: a listing holds one open for each */

/* ---- Numbers: 38 digits fit an unsigned __int128 ---- */
#define LIMIT_NUMBER_DIGITS         38
#define LIMIT_NUMBER_EXPONENT_MAX   125  /* of the first significant digit */
#define LIMIT_NUMBER_EXPONENT_MIN   (-130)
#define LIMIT_NUMBER_TEXT           176 /* longest canonical text: sign, "0.", 129 zeros, 38 digits and slack */

/* ---- HTTP ---- */
#define LIMIT_BODY_BYTES            (16 * 1024 * 1024) /* the service's own request limit */
#define LIMIT_BUFFERED_BYTES        (1024 * 1024 * 1024) /* large requests in memory, of all connections together */
#define LIMIT_HEADER_BYTES          (64 * 1024)        /* request line and headers together; XRay causes are long */
#define LIMIT_DYNAMODB_HEADER_BYTES (16 * 1024)        /* the same of requests to DynamoDB: the service's own limit */
#define LIMIT_HEADER_COUNT          100
#define LIMIT_CONNECTIONS           10000
#define LIMIT_FIBER_STACK_BYTES     (64 * 1024) /* only patterns' code runs there; what is used takes memory */
#define LIMIT_REMEMBERED            4096 /* things that patterns remember from one call to the next, */
#define LIMIT_REMEMBERED_BYTES      4096 /* ... and of each: settings and ends of chains have some hundred */
#define LIMIT_FIBER_STACKS_KEPT     512 /* for the next ones, of those that are over */
#define LIMIT_CROWDED_PART          16   /* the last part of all connections: newcomers take the place of idle ones */
#define LIMIT_CROWDED_IDLE_MS       1000 /* ... that have been idle for so long, */
#define LIMIT_CROWDED_HASTE         5    /* ... or of requests that have used this part of their time */
#define LIMIT_LONG_REQUEST_US       500  /* of its loop's time: a connection's next one shares turns with others */
#define LIMIT_HEADER_MS             15000 /* from the first byte of a request to the end of its headers */
#define LIMIT_BODY_MS               60000 /* from the end of the headers to the end of the body */
#define LIMIT_IDLE_MS               120000
#define LIMIT_SEND_MS               60000 /* a client that does not take LIMIT_SEND_BYTES of its reply ... */
#define LIMIT_SEND_BYTES            (16 * 1024) /* ... in that time: slower than any modem */
#define LIMIT_UNREAD_BYTES          (256 * 1024 * 1024) /* large replies that clients have not taken, together */
#define LIMIT_ACTED_TIMES           4 /* times as many with the replies of what was done: it would be done again ... */
#define LIMIT_ROOM_TIMES            2 /* ... and from so many on it is not begun where its reply may be large */
#define LIMIT_SEND_PRESSED_MS       5000 /* the time for LIMIT_SEND_BYTES while more than half of that is in use */
#define LIMIT_DRAIN_MS              10000 /* after SIGTERM, for what is in flight */
#define LIMIT_PIPELINE_BYTES        (256 * 1024) /* unsent replies of a connection before its next request is served */
#define LIMIT_PIECES_BYTES          (4 * 1024 * 1024) /* of a reply in pieces, that wait for a slow client */
#define LIMIT_LINGER_MS             2000 /* for a refused client to finish sending and read why */
#define LIMIT_CHUNK_LINE_BYTES      4096 /* a chunk's size and extensions */
#define LIMIT_READ_BYTES            (16 * 1024)  /* first room for a request: most fit, head and body, in one read */
#define LIMIT_SPARE_EXCHANGES       128          /* kept per loop for the next requests, and of their buffers ... */
#define LIMIT_SPARE_BUFFER_BYTES    (64 * 1024)  /* ... those up to this size */
#define LIMIT_GZIP_MIN_BYTES        1024 /* a smaller reply fits one packet as it is */
#define LIMIT_REFUSED_CONNECTIONS   64 /* above the limit of connections, to be told so; the next are closed unheard */
#define LIMIT_LISTENERS             8  /* addresses of one host name: localhost has two */
#define LIMIT_REFUSAL_BYTES         600 /* the sentence that refuses a request */
#define LIMIT_GUESTS                4096 /* connections by all further ports: a descriptor each */
#define LIMIT_PORT_CONNECTIONS      256 /* of one further port: a function's own clients, with room for many threads */
#define LIMIT_PORT_BUFFERED_BYTES   (128 * 1024 * 1024) /* large requests in memory that came by one further port */
#define LIMIT_PORT_HEADER_BYTES     (1024 * 1024 + 64 * 1024) /* XRay's cause of an error takes 1 MB of headers */

/* ---- Remote endpoints ---- */
#define LIMIT_REMOTE_CALLS          1024 /* on the wire at the same time: each is a connection of its own */
#define LIMIT_REMOTE_REPLY_BYTES    (64 * 1024 * 1024) /* 16 MB of items, written as JSON by whoever */
#define LIMIT_REMOTE_HEADER_BYTES   (300 * 1024) /* of a reply, with its trailer: libcurl's own, which keeps them all */
#define LIMIT_REMOTE_URL_BYTES      1024
#define LIMIT_ALTERNATOR_TABLE_NAME 192 /* bytes, as ScyllaDB's files are named by it; for the imitation */
#define LIMIT_ALTERNATOR_INDEX_NAME 222 /* of a table and its index together */
#define LIMIT_ALTERNATOR_BATCH      100 /* writes of a BatchWriteItem there */
#define LIMIT_NODES                 1000 /* of a cluster, that calls are dealt to */
#define LIMIT_KNOWN_TABLES          256 /* of an Alternator; others are asked for by each call */
#define LIMIT_NODES_BYTES           (256 * 1024) /* the list of a cluster's nodes: thousands of addresses */
#define LIMIT_REGION_BYTES          64
#define LIMIT_ACCESS_KEY_BYTES      128 /* as long as AWS's may be */
#define LIMIT_REGION_DATABASES      64  /* of --separate-regions: each has memory and files of its own */
#define LIMIT_PROFILES_BYTES        (1024 * 1024) /* of AWS's files of profiles */

/* ---- Functions and triggers ---- */
#define LIMIT_CAUSE_FUNCTIONS       16 /* names in the lineage of a write */
#define LIMIT_EVENT_BYTES           (6 * 1024 * 1024) /* Lambda: a synchronous call's payload, and a batch's */
#define LIMIT_ASYNC_EVENT_BYTES     (1024 * 1024)     /* Lambda: an asynchronous call's */
#define LIMIT_FUNCTION_REPLY_BYTES  (6 * 1024 * 1024 + 100) /* Lambda's own figure */
#define LIMIT_STREAM_REPLY_BYTES    (20 * 1024 * 1024) /* Lambda: of a reply that is sent as it is made */
#define LIMIT_STREAM_WINDOW_BYTES   (256 * 1024) /* of these, that wait for the client; then the function waits */
#define LIMIT_PRELUDE_BYTES         (64 * 1024)  /* the status and the headers of one */
#define LIMIT_ANSWER_READ_BYTES     (64 * 1024 * 1024) /* a reply above that limit is read up to here, to be told of */
#define LIMIT_API_NAME              63  /* it is a label of a host's name */
#define LIMIT_ROUTES                300 /* API Gateway: of an API */
#define LIMIT_API_BYTES             (300 * 1024) /* its definition, which is one item */
#define LIMIT_APIS_KEPT             1000 /* in memory; more are read for each request */
#define LIMIT_API_AGE_MS            1000 /* of what is in memory, where other servers may change it */
#define LIMIT_MAPPED_BODY_BYTES     (1024 * 1024) /* of a request that a template maps: more than DynamoDB writes */
#define LIMIT_VELOCITY_BYTES        (8 * 1024 * 1024) /* that a mapping template makes, in all its texts together */
#define LIMIT_VELOCITY_NODES        100000 /* values in lists and maps that it makes: each is memory */
#define LIMIT_VELOCITY_STEPS        1000000 /* of its text that are read, loops again with each round */
#define LIMIT_VELOCITY_WORK         (256 * 1024 * 1024) /* bytes and values that its calls go through: a second or so */
#define LIMIT_VELOCITY_MEMORY       (128 * 1024 * 1024) /* that all of this takes: twice the largest body as values */
#define LIMIT_VELOCITY_ROUNDS       1000 /* API Gateway: of a #foreach */
#define LIMIT_VELOCITY_DEPTH        64 /* in its text and its values: the reader recurses */
#define LIMIT_CODE_BYTES            (50 * 1024 * 1024)  /* Lambda: an archive sent in a request */
#define LIMIT_UNPACKED_BYTES        (250 * 1024 * 1024) /* Lambda: the same, unpacked */
#define LIMIT_CODE_PART_BYTES       (380 * 1024) /* of an archive in one item */
#define LIMIT_WINDOW_STATE_BYTES    (1024 * 1024) /* Lambda: the state of a tumbling window */
#define LIMIT_PATTERN_BYTES         (16 * 1024) /* of a filter's pattern: 4096 characters, Lambda's limit, in UTF-8 */
#define LIMIT_PATTERN_BRANCHES      1000 /* EventBridge: combinations of a pattern's $or-s */
#define LIMIT_PATTERN_ENTRIES       100000 /* fields of all branches of a pattern: ours, they are memory */
#define LIMIT_MAPPINGS              10000 /* ours: each has its place in memory */
#define LIMIT_FILTERS               10   /* Lambda: of a mapping, where the quota was raised; 5 else */
#define LIMIT_FILTER_CHARACTERS     4096 /* Lambda: of a filter's pattern */
#define LIMIT_DESTINATION_CHARACTERS 350 /* Lambda: of a destination's ARN */
#define LIMIT_FUNCTION_NAME         140  /* Lambda: with ARN and qualifier */
#define LIMIT_TAG_NAME              128  /* Lambda: of tags, in characters */
#define LIMIT_TAG_VALUE             256
#define LIMIT_QUEUE_NAME_BYTES      256 /* SNS: of a topic; it becomes a hash key */
#define LIMIT_THEN_BYTES            (16 * 1024) /* of a reaction: each item that waits for its time holds it */
#define LIMIT_EFFECTS               90 /* writes that one reply may return: the rest of a transaction is ours */
#define LIMIT_APPLIED_MOST          64 /* the most that it names: as many may be between an effect and its end */
#define LIMIT_SHARD_ID_BYTES        65 /* the service's own */
#define LIMIT_WINDOW_INLINE_BYTES   (8 * 1024)   /* of a window's state in its position: every commit pays for it */
#define LIMIT_WINDOW_PART_BYTES     (350 * 1024) /* of a window's state in one item */
#define LIMIT_SHARD_BYTES          (16 * 1024 * 1024) /* records of a shard that a mapping has read ahead ... */
#define LIMIT_CONSUMER_BYTES        (256 * 1024 * 1024) /* ... and of all of them, where they have any already */
#define LIMIT_LOG_BYTES             (8 * 1024 * 1024) /* kept of each function's output */
#define LIMIT_LOG_TAIL_BYTES        4096 /* Lambda: in X-Amz-Log-Result */
#define LIMIT_LOG_LINE_BYTES        (64 * 1024)   /* of a function's output; longer ones are broken */
#define LIMIT_LOG_PENDING_BYTES     (1024 * 1024) /* of each function's output, not yet in its file; more is dropped */
#define LIMIT_LOG_READ_BYTES        (1024 * 1024) /* in one answer */
#define LIMIT_LOG_WAIT_MS           60000 /* for more output, in one request */
#define LIMIT_DEBUG_CALL_MS         (7LL * 86400 * 1000) /* a call under a debugger: as long as anybody debugs */
#define LIMIT_DEBUG_MS              60000 /* how long a debug session lasts without being renewed, at most */
#define LIMIT_WATCHED_DIRECTORIES   4096 /* of all functions that are run in place */
#define LIMIT_QUEUE_PART_BYTES      (256 * 1024) /* of an asynchronous call's payload in one item */
#define LIMIT_QUEUE_ENTRIES         100000 /* asynchronous calls known by name; more wait in the table only */
#define LIMIT_QUEUE_RUNNING         256 /* asynchronous calls under way at the same time */
#define LIMIT_REDRIVE_MESSAGES      100 /* of a queue that one request looks at: one transaction each, seconds in all */
#define LIMIT_REDRIVE_BYTES         (16 * 1024 * 1024) /* of calls that one request moves, for the same reason */
#define LIMIT_REDRIVE_COUNT_PAGES   16 /* of a megabyte, to count what is left; a longer queue has more than is told */
#define LIMIT_DESTINATION_BYTES     (256 * 1024) /* what is told of a finished call, as SQS has it */
#define LIMIT_SANDBOXED             4096 /* programs of strangers at the same time, each with its keeper */
#define LIMIT_SANDBOX_REQUEST_BYTES (2 * 1024 * 1024) /* a program's arguments and environment; Linux takes no more */
#define LIMIT_FAMILY                8192  /* descendants of a program that are seen in one look */
#define LIMIT_PROCESSES             65536 /* of the machine, where the kernel has no lists of children */
#define LIMIT_STORAGE_DEPTH         200 /* of a program's temporary folder: each level is a descriptor */
#define LIMIT_USER_GROUPS           64 /* groups of the user that programs run as */
#define LIMIT_OUTPUT_READ_BYTES     (64 * 1024)   /* of a program's output at a time: what a pipe holds */
#define LIMIT_OUTPUT_LEFT_BYTES     (1024 * 1024) /* read when it has ended: the most that a pipe may hold */
#define LIMIT_CODE_ENTRIES          100000 /* files of an archive: ours, the disk has names to lose, too */
#define LIMIT_CODE_FOLDERS          20000 /* of an archive: more than any 250 MB of packages, and slow to make */
#define LIMIT_CODE_DEPTH            100 /* folders in folders of an archive: each name is looked up from the top */
#define LIMIT_FUNCTIONS             10000 /* ours: each has its place in memory */
#define LIMIT_LAYERS                5     /* Lambda: of one function */
#define LIMIT_LABELLED_FUNCTIONS    200   /* ours: functions with numbers of their own in /metrics, 8 lines each */
#define LIMIT_FUNCTION_PARTS        1000  /* versions, aliases and settings of one function: ours */
#define LIMIT_FUNCTION_CONCURRENCY  1600  /* Lambda: invocations at a time in one process */
#define LIMIT_VARIABLES_BYTES       4096  /* Lambda: all environment variables of a function, as JSON */
#define LIMIT_POLICY_BYTES          20480 /* Lambda: the policy of a function */
#define LIMIT_CHANGE_ATTEMPTS       20 /* of a change of a function that others change at the same time */
#define LIMIT_ZONE_BYTES            (64 * 1024) /* of a time zone's file: the longest have 4 kB */
#define LIMIT_ZONE_NAME             50          /* EventBridge Scheduler: of ScheduleExpressionTimezone */
#define LIMIT_SCHEDULES             100000 /* with due times to come: each is in memory */
#define LIMIT_SCHEDULES_FIRING      16     /* at a time: each is a task that may have an Input in hand */
#define LIMIT_SCHEDULE_NEXT         100    /* due times in a reply: each is a search in the calendar */
#define LIMIT_SCHEDULE_INPUT_BYTES  (256 * 1024) /* EventBridge Scheduler: of a target's Input */

#define LIMIT_DRIVE_CONCURRENCY     1000 /* calls for one thing at a time, over all servers: Lambda's own default */
#define LIMIT_DRIVE_SHARES          8 /* that a drive's concurrency is cut into, each a lease of some server */
#define LIMIT_DRIVE_LANES           32 /* partitions of a log that one server calls a consumer for at a time */
#define LIMIT_DRIVE_PAUSE_MS        30000 /* between two attempts to have a target called that cannot be */

#define LIMIT_IDLE_WAIT_MS          60000 /* of the hook that waits until triggers and functions are at rest */
#define LIMIT_CLOCK_MS              4102444799999 /* the hooks' clock ends with 2099: schedules walk there in steps */
#define LIMIT_STREAM_SHARDS         1024 /* that hooks may split a stream into, closed ones too: all are one item */

/* ---- Patterns ---- */
#define LIMIT_BATCH_EVENTS          1000 /* of groups and periods in one request: they are in memory together */
#define LIMIT_BATCH_UNITS           100 /* of work: each is a write of its own, one after the other */
#define LIMIT_GROUP_FOLDS           10  /* names of a group's fold: with all values full, the head has room for them */
#define LIMIT_FOLD_VALUES           100 /* different ones: each event writes the whole set */
#define LIMIT_FOLD_VALUE_BYTES      256 /* of a text in it, for the same reason */
#define LIMIT_FOLD_NAME_BYTES       50
#define LIMIT_FOLD_PATH_BYTES       200

/* ---- JSON ---- */
#define LIMIT_JSON_DEPTH            256 /* the reader recurses; items may nest 32 deep, two JSON levels each */

/* ---- Templates ---- */
#define LIMIT_TEMPLATE_BYTES        (4 * 1024 * 1024) /* four times CloudFormation's: functions' code may stand in it */
#define LIMIT_TEMPLATE_NODES        500000 /* with what aliases stand for: ours, each takes 120 bytes */
#define LIMIT_TEMPLATE_NAME_BYTES   4096 /* of a member's name: ours, others are made of it for each alias */
#define LIMIT_TEMPLATE_NOTE_BYTES   1024 /* of a sentence about a template: the same */
#define LIMIT_TEMPLATE_PARAMETERS   200 /* CloudFormation's */
#define LIMIT_TEMPLATE_RESOURCES    2000 /* four times CloudFormation's: SAM and serverless.yml make several of one */
#define LIMIT_TEMPLATE_WORK         (64 * 1024 * 1024) /* bytes that functions make, and names compared, in one call */
#define LIMIT_TEMPLATE_NESTING      1000 /* of functions and conditions that stand for each other: the same */
#define LIMIT_TEMPLATE_DEPTH        200 /* of objects and arrays: ours, all walks recurse */

/* ---- quipu load ---- */
/* What an item of 400 KB may take as text: 6 bytes a byte in escapes (\u0001), 9 in empty texts of a list, and up to
 * 50 in numbers such as 1E-130, which are written out: 20 MB. The rest is for spaces and for names. */
#define LIMIT_SQL_BYTES             (32 * 1024 * 1024) /* of statements from standard input */
#define LIMIT_LINE_BYTES            65536              /* typed by a person */
#define LIMIT_LINE_HISTORY          2000
#define LIMIT_LOAD_VALUE_BYTES      (32 * 1024 * 1024)
/* Values that these bytes may hold, since each takes some 80 bytes while it is looked at: one of an item counts at
 * least a byte of its 400 KB, and is two in DynamoDB's JSON, {"S":""}. */
#define LIMIT_LOAD_VALUES           (1024 * 1024)

/* ---- Backups ---- */
#define LIMIT_BACKUP_READ_BYTES     (4 * 1024 * 1024) /* of a file or of the log's batches that one request reads */
#define LIMIT_BACKUP_BLOCK_BYTES    (256 * 1024 * 1024) /* of one batch: far more than a commit makes of its 8 MB */
#define LIMIT_BACKUP_PIECE_BYTES    (64 * 1024 * 1024) /* of a piece of the log; what is kept is forgotten by pieces */
#define LIMIT_BACKUP_BASE_BYTES     (64 * 1024 * 1024) /* of a base's description: half a million files */
#define LIMIT_BACKUP_CHECKPOINTS    4 /* of a server at a time: each holds files that the tables do not need any more */
#define LIMIT_BACKUP_IDLE_MS        (10 * 60 * 1000) /* a checkpoint that nobody reads from is removed after this */
#define LIMIT_BACKUP_STALE_MS       (60 * 1000) /* or after this, when another backup needs its place */
#define LIMIT_BACKUP_FOLLOWERS      16 /* that a server knows by name */
#define LIMIT_BACKUP_FOLLOWER_BYTES 120 /* of such a name, which is a label of /metrics */
#define LIMIT_BACKUP_FOLLOWER_MS    (24LL * 3600 * 1000) /* one that did not ask for so long is forgotten */
#define LIMIT_BACKUP_LOG_BYTES      (1024ull * 1024 * 1024) /* of log on disk; beyond it none is held for followers */
#define LIMIT_BACKUP_BEHIND         100000 /* batches that a backup ships behind its base: writers may outrun it */
#define LIMIT_BACKUP_WAIT_MS        20000 /* for a batch, in one request */
#define LIMIT_BACKUP_BASE_MS        (24LL * 3600 * 1000) /* of log behind a base: more takes long to write anew */
#define LIMIT_MEMORY_BACKUPS        100 /* of CreateBackup with --memory: each holds what has changed since */
#define LIMIT_MEMORY_HISTORY_BYTES  (256ull * 1024 * 1024) /* of writes whose moments can be gone back to, in memory */
#define LIMIT_BACKUP_KEPT_MS        (3650LL * 86400 * 1000) /* of --keep-log: ten years */

/* ---- Console ---- */
#define LIMIT_CONSOLE_FILE_BYTES    (4 * 1024 * 1024) /* of a file of the page in --console-folder */
#define LIMIT_CONSOLE_STREAMS       100 /* open at a time, of each kind: 20 people with some tabs */
#define LIMIT_CONSOLE_SECONDS       600 /* samples of a second that are kept: ten minutes */
#define LIMIT_CONSOLE_TENS          8640 /* samples of ten seconds: a day */
#define LIMIT_CONSOLE_HISTORY_BYTES (2 * 1024 * 1024) /* of memory for both */
#define LIMIT_CONSOLE_CHANGES_BYTES (256 * 1024) /* of a watched table's changes that wait: nobody reads more */
#define LIMIT_BATCH_ERROR_BYTES     4096 /* of what a function said, kept for the document of a failure */
#define LIMIT_CONSOLE_MATCH_EVENTS  100 /* that a pattern is tried out on at a time: what a page shows */
#define LIMIT_CONSOLE_MATCH_BYTES   (1024 * 1024) /* of them: a loop's thread matches them, for some milliseconds */
#define LIMIT_CONSOLE_STUCK_MS      5000 /* a client that reads nothing for so long is not told of changes any more */
#define LIMIT_CONSOLE_TOP           20 /* tables, functions, jobs and lags that a sample names: the first */
#define LIMIT_JOB_METERS            64 /* jobs that are counted at a time: some more than anybody is shown */
#define LIMIT_JOB_METER_NAME_BYTES  255 /* of a job's name that is counted: what a line of a terminal shows */

/* ---- Searches ---- */
#define LIMIT_SLOW_THREADS          64 /* that search vectors: one for each processor, up to this */

/* ---- Writer ---- */
#define LIMIT_COMMIT_REQUESTS       4096             /* in one commit, so that nobody waits long for a stranger */
#define LIMIT_JOURNAL_BYTES         (256ull * 1024 * 1024) /* beyond it everything is brought to the tables' files */
/* Free on the disk of a data folder that is opened: RocksDB ends the process where its manifest, of some KB, does not
 * fit. */
#define LIMIT_ROOM_TO_OPEN_BYTES    (1024 * 1024)
#define LIMIT_SEGMENT_BYTES         (32 * 1024 * 1024) /* of the commit log: four of them are kept to be used again */
#define LIMIT_COMMIT_BYTES          (8 * 1024 * 1024)

#endif
