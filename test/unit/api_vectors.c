/* Vector indexes: their definitions, what may be written into an indexed attribute, and SearchVectors, with the
 * service's words. Where these are not known, the words are ours: such lines are marked. */
#include "unit/api_items.h"

#define INVALID "ValidationException: "
#define VALUES  INVALID "One or more parameter values were invalid: "
#define WRITTEN INVALID "One or more parameter values were invalid. Invalid "

static void run(struct world *world, const struct exchange *exchanges, size_t count)
{
    for (size_t i = 0; i < count; i++) check_exchange(world, &exchanges[i]);
}

#define RUN(world, exchanges) run(world, exchanges, sizeof(exchanges) / sizeof *(exchanges))

#define ID        "{'AttributeName':'id','AttributeType':'S'}"
#define TENANT    "{'AttributeName':'tenant','AttributeType':'S'}"
#define KIND      "{'AttributeName':'kind','AttributeType':'N'}"
#define ON_ID     "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}]"
#define ALL       "'Projection':{'ProjectionType':'ALL'}"
#define HASH(a)   "{'AttributeName':'" a "','SearchSchemaElementType':'HASH'}"
#define FILTER(a) "{'AttributeName':'" a "','SearchSchemaElementType':'INLINE_FILTER'}"
#define INDEX_ON(name, attribute, dimensions, distance, rest)                                                \
    "{'IndexName':'" name "','VectorAttribute':{'AttributeName':'" attribute "'},'Dimensions':" #dimensions  \
    ",'DistanceFunction':'" distance "'," rest "}"
#define INDEX(name, dimensions, distance, rest) INDEX_ON(name, "embedding", dimensions, distance, rest)
#define TABLE(attributes, indexes)                                                                           \
    "{'TableName':'docs','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[" attributes "]," ON_ID     \
    ",'VectorIndexes':[" indexes "]}"

/* "plain" has no search schema, "schema" a HASH attribute and a filter, "dot" little of the items. */
static const char *const docs = TABLE(
    ID "," TENANT "," KIND,
    INDEX("plain", 3, "EUCLIDEAN", ALL) "," INDEX(
        "schema", 3, "COSINE",
        "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['title']},'SearchSchema':[" HASH(
            "tenant") "," FILTER("kind") "]") "," INDEX("dot", 3, "DOT_PRODUCT",
                                                        "'Projection':{'ProjectionType':'KEYS_ONLY'}"));

static void docs_open(struct world *world)
{
    world_open(world);
    ask_quoted(world, "CreateTable", docs);
    ensure(world->status == 200);
}

static void put(struct world *world, const char *item)
{
    char request[600];
    snprintf(request, sizeof request, "{'TableName':'docs','Item':%s}", item);
    struct slice reply = ask_quoted(world, "PutItem", request);
    if (world->status != 200) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(reply));
}

static void put_all(struct world *world)
{
    put(world, "{'id':{'S':'a'},'tenant':{'S':'x'},'kind':{'N':'1'},'title':{'S':'A'},"
               "'embedding':{'L':[{'N':'1'},{'N':'0'},{'N':'0'}]}}");
    put(world, "{'id':{'S':'b'},'tenant':{'S':'x'},'kind':{'N':'2'},'title':{'S':'B'},"
               "'embedding':{'L':[{'N':'0'},{'N':'2'},{'N':'0'}]}}");
    put(world, "{'id':{'S':'c'},'tenant':{'S':'y'},'kind':{'N':'1'},'title':{'S':'C'},"
               "'embedding':{'L':[{'N':'-3'},{'N':'0'},{'N':'0'}]}}");
    put(world, "{'id':{'S':'d'},'title':{'S':'D'},'embedding':{'L':[{'N':'0.5'},{'N':'0'},{'N':'0'}]}}");
    put(world, "{'id':{'S':'e'},'tenant':{'S':'x'}}");
}

#define NEAR_A "'SearchVector':[{'N':'1'},{'N':'0'},{'N':'0'}]"

TEST(vectors_definitions_are_refused_in_the_services_words)
{
    struct world world;
    world_open(&world);
    static const struct exchange exchanges[] = {
        {"CreateTable",
         "{'TableName':'docs','AttributeDefinitions':[" ID "]," ON_ID
         ",'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1},'VectorIndexes':[" INDEX(
             "vix", 3, "COSINE", ALL) "]}",
         VALUES "Vector indexes are only supported for PAY_PER_REQUEST tables"},
        {"CreateTable", TABLE(ID, INDEX("vix", 3, "COSINE", ALL ",'SearchSchema':[" HASH("tenant") "]")),
         VALUES "One element in SearchSchema is not defined in attribute definitions"},
        {"CreateTable", TABLE(ID, INDEX("vix", 0, "COSINE", ALL)),
         INVALID
         "1 validation error detected: Value '0' at 'vectorIndexes.1.member.dimensions' failed to satisfy "
         "constraint: Member must have value greater than or equal to 1"},
        {"CreateTable", TABLE(ID, INDEX("vi", 3, "COSINE", ALL)),
         INVALID
         "1 validation error detected: Value 'vi' at 'vectorIndexes.1.member.indexName' failed to satisfy "
         "constraint: Member must have length greater than or equal to 3"},
        {"CreateTable", TABLE(ID, INDEX("vix", 4097, "COSINE", ALL)),
         VALUES "Number of dimensions must be between 1 and 4096 inclusive."},
        {"CreateTable",
         TABLE(ID, INDEX("vi1", 3, "COSINE", ALL) "," INDEX("vi2", 3, "COSINE", ALL) "," INDEX(
                       "vi3", 3, "COSINE", ALL) "," INDEX("vi4", 3, "COSINE",
                                                          ALL) "," INDEX("vi5", 3, "COSINE",
                                                                         ALL) "," INDEX("vi6", 3,
                                                                                        "COSI"
                                                                                        "NE",
                                                                                        ALL)),
         VALUES "VectorIndex count exceeds the per-table limit of 5"},
        {"CreateTable", TABLE(ID, INDEX("vi1", 3, "COSINE", ALL) "," INDEX("vi2", 4, "COSINE", ALL)),
         VALUES "Conflicting attribute definition for 'embedding'. All VectorIndexes on the same vector "
                "attribute must use the same dimensions."},
        {"CreateTable", TABLE(ID, INDEX("vi1", 3, "COSINE", ALL) "," INDEX("vi1", 3, "EUCLIDEAN", ALL)),
         VALUES "Duplicate index name: vi1"},
        {"CreateTable", TABLE(ID "," TENANT, INDEX("vix", 3, "COSINE", ALL)),
         VALUES
         "Some AttributeDefinitions are not used. AttributeDefinitions: [id, tenant], keys used: [id]"},
        {"CreateTable", TABLE(ID, INDEX("vix", 3, "MANHATTAN", ALL)),
         INVALID
         "1 validation error detected: Value 'MANHATTAN' at "
         "'vectorIndexes.1.member.distanceFunction' failed to satisfy constraint: Member must satisfy "
         "enum value set: [COSINE, EUCLIDEAN, DOT_PRODUCT]"},
        /* ours, all that follow */
        {"CreateTable", TABLE(ID, INDEX_ON("vix", "id", 3, "COSINE", ALL)),
         VALUES
         "Conflicting attribute definition for 'id'. A vector attribute cannot be a key or an element of a "
         "SearchSchema."},
        {"CreateTable",
         TABLE(ID "," TENANT,
               INDEX("vix", 3, "COSINE", ALL ",'SearchSchema':[" HASH("tenant") "," FILTER("tenant") "]")),
         VALUES "Duplicate element in SearchSchema: tenant"},
        {"CreateTable",
         "{'TableName':'docs','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[" ID "]," ON_ID
         ",'VectorIndexes':[]}",
         VALUES "List of VectorIndexes is empty"},
        {"DescribeTable", "{'TableName':'docs'}",
         "ResourceNotFoundException: Requested resource not found: Table: docs not found"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

TEST(vectors_are_described)
{
    struct world world;
    docs_open(&world);
    put_all(&world);
    struct slice table = ask(&world, "DescribeTable", "{\"TableName\":\"docs\"}");
    CHECK_CONTAINS(
        table, "{\"IndexName\":\"schema\",\"SearchSchema\":[{\"AttributeName\":\"tenant\","
               "\"SearchSchemaElementType\":\"HASH\"},{\"AttributeName\":\"kind\","
               "\"SearchSchemaElementType\":\"INLINE_FILTER\"}],\"Projection\":{\"ProjectionType\":"
               "\"INCLUDE\",\"NonKeyAttributes\":[\"title\"]},\"VectorAttribute\":{\"AttributeName\":"
               "\"embedding\"},\"Dimensions\":3,\"DistanceFunction\":\"COSINE\",\"IndexStatus\":\"ACTIVE\",");
    CHECK_CONTAINS(table, "\"ItemCount\":3,\"IndexArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/docs/"
                          "index/schema\"}");
    CHECK_CONTAINS(table, "\"ItemCount\":4,\"IndexArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/docs/"
                          "index/plain\"}");
    CHECK(!slice_contains(table, SLICE("Backfilling")));
    world_close(&world);
}

TEST(vectors_are_found_nearest_first)
{
    struct world world;
    docs_open(&world);
    put_all(&world);
    static const struct exchange exchanges[] = {
        {"SearchVectors", "{'TableName':'docs','IndexName':'plain','TopK':2," NEAR_A "}",
         "{'SearchResults':[{'Item':{'id':{'S':'a'},'kind':{'N':'1'},'tenant':{'S':'x'},'title':{'S':'A'}},"
         "'Score':0.0},{'Item':{'id':{'S':'d'},'title':{'S':'D'}},'Score':0.5}]}"},
        {"SearchVectors", "{'TableName':'docs','IndexName':'dot','TopK':100," NEAR_A "}",
         "{'SearchResults':[{'Item':{'id':{'S':'a'}},'Score':1.0},{'Item':{'id':{'S':'d'}},'Score':0.5},"
         "{'Item':{'id':{'S':'b'}},'Score':0.0},{'Item':{'id':{'S':'c'}},'Score':-3.0}]}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'schema','TopK':9," NEAR_A
         ",'SearchConditionExpression':'tenant = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         "{'SearchResults':[{'Item':{'id':{'S':'a'},'kind':{'N':'1'},'tenant':{'S':'x'},'title':{'S':'A'}},"
         "'Score':0.0},{'Item':{'id':{'S':'b'},'kind':{'N':'2'},'tenant':{'S':'x'},'title':{'S':'B'}},'Score':1.0}]}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'schema','TopK':9,'ProjectionExpression':'title, embedding'," NEAR_A
         ",'SearchConditionExpression':'#k = :k AND :t = tenant','ExpressionAttributeNames':{'#k':'kind'},"
         "'ExpressionAttributeValues':{':t':{'S':'x'},':k':{'N':'2.0'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'SearchResults':[{'Item':{'embedding':{'L':[{'N':'0.0'},{'N':'2.0'},{'N':'0.0'}]},'title':{'S':'B'}},"
         "'Score':1.0}],'ConsumedCapacity':{'VectorSearchRequestBytes':1024.0}}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'schema','TopK':9," NEAR_A
         ",'SearchConditionExpression':'tenant = :t','ExpressionAttributeValues':{':t':{'S':'nobody'}}}",
         "{'SearchResults':[]}"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

#define SEARCH(rest) "{'TableName':'docs','IndexName':'schema','TopK':1," rest "}"
#define SEARCH_WHERE(condition)                                                                              \
    SEARCH(NEAR_A ",'SearchConditionExpression':'" condition "','ExpressionAttributeValues':{':t':{'S':'x'}}")

TEST(vectors_searches_are_refused_in_the_services_words)
{
    struct world world;
    docs_open(&world);
    put_all(&world);
    static const struct exchange exchanges[] = {
        {"SearchVectors", "{'TableName':'docs','IndexName':'plain','TopK':101," NEAR_A "}",
         INVALID
         "Provided TopK value '101' is out of valid range. The value must be between 1 and 100 inclusive"},
        {"SearchVectors", "{'TableName':'docs','IndexName':'plain','TopK':0," NEAR_A "}",
         INVALID
         "1 validation error detected: Value '0' at 'topK' failed to satisfy constraint: Member must have "
         "value greater than or equal to 1"},
        {"SearchVectors", SEARCH(NEAR_A),
         INVALID "SearchConditionExpression must be provided when SearchSchema has a HASH key"},
        {"SearchVectors", SEARCH_WHERE("tenant > :t"),
         INVALID "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression"},
        {"SearchVectors", SEARCH_WHERE("begins_with(tenant, :t)"),
         INVALID "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression"},
        {"SearchVectors", SEARCH_WHERE("NOT tenant = :t"),
         INVALID "Invalid SearchConditionExpression: Invalid comparator used in SearchConditionExpression"},
        {"SearchVectors", SEARCH_WHERE("title = :t"),
         INVALID
         "SearchConditionExpression must not contain any attributes that is not in SearchSchema. Invalid "
         "attribute: title"},
        {"SearchVectors", SEARCH_WHERE("tenant = :u"),
         INVALID "Invalid SearchConditionExpression: An expression attribute value used in expression is not "
                 "defined; attribute value: :u"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'SearchVector':[{'N':'1'},{'N':'2'}]}",
         INVALID "Input search vector dimension 2 does not match vector index dimension 3"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'SearchVector':[{'N':'1'},{'S':'2'},{'N':'3'}]}",
         INVALID "Search vector contains invalid values. All values in the search vector must be a 32-bit "
                 "floating-point number attribute"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'SearchVector':[{'N':'1'},{'N':'1E39'},{'N':'3'}]}",
         INVALID "Search vector contains invalid values. All values in the search vector must be a 32-bit "
                 "floating-point number attribute"},
        {"SearchVectors", "{'TableName':'docs','IndexName':'vix','TopK':1," NEAR_A "}",
         INVALID "The table does not have the specified index: vix"},
        {"SearchVectors", "{'TableName':'none','IndexName':'vix','TopK':1," NEAR_A "}",
         "ResourceNotFoundException: Requested resource not found"},
        {"Query",
         "{'TableName':'docs','IndexName':'plain','KeyConditionExpression':'id = :i',"
         "'ExpressionAttributeValues':{':i':{'S':'a'}}}",
         INVALID "The table does not have the specified index: plain"},
        {"ExecuteStatement", "{'Statement':'SELECT * FROM docs.plain'}",
         INVALID "Scan operation not supported on this index type"},
        /* ours, all that follow */
        {"SearchVectors",
         SEARCH(NEAR_A
                ",'SearchConditionExpression':'kind = :k','ExpressionAttributeValues':{':k':{'N':'1'}}"),
         INVALID "SearchConditionExpression missed search schema element: tenant"},
        {"SearchVectors", SEARCH_WHERE("tenant = :t AND tenant = :t"),
         INVALID "Invalid SearchConditionExpression: Only one condition is allowed for attribute: tenant"},
        {"SearchVectors",
         SEARCH(NEAR_A
                ",'SearchConditionExpression':'tenant = :t','ExpressionAttributeValues':{':t':{'N':'1'}}"),
         VALUES "Condition parameter type does not match schema type"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'dot','TopK':1,'ProjectionExpression':'title'," NEAR_A "}",
         VALUES "Vector index dot does not project [title]"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

/* As seen on the service: the columns are those of the last letter of null, and of the last brace. */
TEST(vectors_requests_have_all_members)
{
    struct world world;
    docs_open(&world);
    static const struct exchange exchanges[] = {
        {"SearchVectors", "{'TableName':null,'IndexName':'vix','SearchVector':[{'N':'1'}],'TopK':1}",
         "SerializationException: invalid type: null, expected a string at line 1 column 17"},
        {"SearchVectors", "{'TableName':'none','IndexName':null,'SearchVector':[{'N':'1'}],'TopK':1}",
         "SerializationException: invalid type: null, expected a string at line 1 column 36"},
        {"SearchVectors", "{'TableName':'none','IndexName':'vix',\n'SearchVector':null,'TopK':1}",
         "SerializationException: invalid type: null, expected a sequence at line 2 column 19"},
        {"SearchVectors", "{'TableName':'none','IndexName':'vix','SearchVector':[{'N':'1'}],'TopK':null}",
         "SerializationException: invalid type: null, expected i32 at line 1 column 76"},
        {"SearchVectors", "{'IndexName':'vi','SearchVector':[{'N':'1'}],'TopK':1}\n",
         INVALID "missing field `TableName` at line 1 column 54"},
        {"SearchVectors", "{'TableName':'none','IndexName':'vix','TopK':1,'ProjectionExpression':null}",
         INVALID "missing field `SearchVector` at line 1 column 75"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

#define PUT(rest) "{'TableName':'docs','Item':{'id':{'S':'z'}," rest "}}"

TEST(vectors_writes_are_refused_in_the_services_words)
{
    struct world world;
    docs_open(&world);
    static const struct exchange exchanges[] = {
        {"PutItem", PUT("'embedding':{'L':[{'N':'1'},{'N':'2'}]}"),
         WRITTEN "size for parameter embedding, Expected: 3, Actual: 2 IndexName: plain"},
        {"PutItem", PUT("'embedding':{'L':[{'N':'1'},{'S':'2'},{'N':'3'}]}"),
         WRITTEN "type for parameter embedding[1], Expected: 32-bit floating point number, Actual: S. "
                 "IndexName: plain"},
        {"PutItem", PUT("'embedding':{'L':[{'N':'1'},{'N':'2'},{'N':'-4E38'}]}"),
         WRITTEN "type for parameter embedding[2], Expected: 32-bit floating point number, Actual: N. "
                 "IndexName: plain"},
        {"PutItem", PUT("'embedding':{'S':'1'}"),
         WRITTEN
         "type for parameter embedding, Expected: 32-bit floating point number list IndexName: plain"},
        {"PutItem", PUT("'tenant':{'S':''}"),
         INVALID
         "One or more parameter values are not valid. A value specified for a secondary index key is not "
         "supported. The AttributeValue for a key attribute cannot contain an empty string value. "
         "IndexName: schema, IndexKey: tenant"},
        {"PutItem", PUT("'tenant':{'N':'1'}"),
         VALUES "Type mismatch for Index Key tenant Expected: S Actual: N IndexName: schema"},
        {"PutItem", PUT("'embedding':{'L':[{'N':'1'},{'N':'2'},{'N':'3'}]}"), "{}"},
        {"UpdateItem",
         "{'TableName':'docs','Key':{'id':{'S':'z'}},'UpdateExpression':'SET embedding[3] = :n',"
         "'ExpressionAttributeValues':{':n':{'N':'4'}}}",
         WRITTEN "size for parameter embedding, Expected: 3, Actual: 4 IndexName: plain"},
        {"UpdateItem",
         "{'TableName':'docs','Key':{'id':{'S':'z'}},'UpdateExpression':'SET embedding[1] = :n',"
         "'ExpressionAttributeValues':{':n':{'N':'7'}}}",
         "{}"},
        {"BatchWriteItem",
         "{'RequestItems':{'docs':[{'PutRequest':{'Item':{'id':{'S':'y'},'embedding':{'L':[]}}}}]}}",
         WRITTEN "size for parameter embedding, Expected: 3, Actual: 0 IndexName: plain"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':9,'SearchVector':[{'N':'1'},{'N':'7'},{'N':'3'}]}",
         "{'SearchResults':[{'Item':{'id':{'S':'z'}},'Score':0.0}]}"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

#define CHARGED(indexes)                                                                                     \
    "{'ConsumedCapacity':{'TableName':'docs','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}" indexes "}}"
#define BYTES(name) "'" name "':{'VectorWriteRequestBytes':1024.0}"

TEST(vectors_are_charged_by_bytes_when_they_change)
{
    struct world world;
    docs_open(&world);
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'docs','ReturnConsumedCapacity':'INDEXES','Item':{'id':{'S':'a'},"
         "'embedding':{'L':[{'N':'1'},{'N':'0'},{'N':'0'}]}}}",
         CHARGED(",'VectorIndexes':{" BYTES("plain") "," BYTES("dot") "}")},
        {"UpdateItem",
         "{'TableName':'docs','ReturnConsumedCapacity':'INDEXES','Key':{'id':{'S':'a'}},"
         "'UpdateExpression':'SET title = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         CHARGED(",'VectorIndexes':{" BYTES("plain") "}")},
        {"UpdateItem",
         "{'TableName':'docs','ReturnConsumedCapacity':'INDEXES','Key':{'id':{'S':'a'}},"
         "'UpdateExpression':'SET title = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         CHARGED("")},
        {"UpdateItem",
         "{'TableName':'docs','ReturnConsumedCapacity':'INDEXES','Key':{'id':{'S':'a'}},"
         "'UpdateExpression':'SET tenant = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         CHARGED(",'VectorIndexes':{" BYTES("plain") "," BYTES("schema") "}")},
        {"DeleteItem", "{'TableName':'docs','ReturnConsumedCapacity':'TOTAL','Key':{'id':{'S':'a'}}}",
         "{'ConsumedCapacity':{'TableName':'docs','CapacityUnits':1.0}}"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}

/* As seen on the service: an index's bytes are those of its entry, each number of the vector has four, and there are
 * 1024 at least. */
TEST(vectors_are_charged_by_their_entries)
{
    struct world world;
    char title[1501] = "", request[2000], expected[300];
    docs_open(&world);
    memset(title, 't', sizeof title - 1);
    snprintf(
        request, sizeof request,
        "{'TableName':'docs','ReturnConsumedCapacity':'INDEXES','Item':{'id':{'S':'a'},'title':{'S':'%s'},"
        "'embedding':{'L':[{'N':'1'},{'N':'0'},{'N':'12345678901234567890123456789012345678'}]}}}",
        title);
    /* id a, title and its text, embedding and three floats; the table's item is the same, so it is written by 2. */
    snprintf(
        expected, sizeof expected,
        "{'ConsumedCapacity':{'TableName':'docs','CapacityUnits':2.0,'Table':{'CapacityUnits':2.0},"
        "'VectorIndexes':{'plain':{'VectorWriteRequestBytes':%zu.0},'dot':{'VectorWriteRequestBytes':1024.0}}}}",
        strlen("id"
               "a"
               "title"
               "embedding") +
            sizeof title - 1 + 3 * 4);
    check_exchange(&world, &(struct exchange){"PutItem", request, expected});
    world_close(&world);
}

#define WIDE "{'N':'12345678901234567890123456789012345678'}"

/* Numbers of 38 digits have 20 bytes, and 4 as a float: a write is charged for floats, a read for the numbers. */
TEST(vectors_are_written_as_floats_and_read_as_numbers)
{
    static const size_t paddings[] = {996, 997};
    struct world world;
    docs_open(&world);
    for (size_t i = 0; i < 2; i++) {
        char padding[1000] = "", request[1600], expected[200];
        memset(padding, 'p', paddings[i]);
        snprintf(
            request, sizeof request,
            "{'TableName':'docs','ReturnConsumedCapacity':'TOTAL','Item':{'id':{'S':'aa'},'pad':{'S':'%s'},"
            "'embedding':{'L':[" WIDE "," WIDE "," WIDE "]}}}",
            padding);
        snprintf(expected, sizeof expected, "{'ConsumedCapacity':{'TableName':'docs','CapacityUnits':%zu.0}}",
                 i + 1);
        size_t floats = strlen("id"
                               "aa"
                               "pad"
                               "embedding") +
                        paddings[i] + 3 * 4;
        CHECK_INT(floats, i ? 1025 : 1024);
        check_exchange(&world, &(struct exchange){"PutItem", request, expected});
        ask_quoted(&world, "DeleteItem", "{'TableName':'docs','Key':{'id':{'S':'aa'}}}");
    }
    char padding[5000] = "", request[5400];
    memset(padding, 'p',
           4096 -
               strlen("id"
                      "aa"
                      "pad"
                      "embedding") -
               3 * 4);
    snprintf(request, sizeof request,
             "{'TableName':'docs','Item':{'id':{'S':'aa'},'pad':{'S':'%s'},'embedding':{'L':[" WIDE "," WIDE
             "," WIDE "]}}}",
             padding);
    check_exchange(&world, &(struct exchange){"PutItem", request, "{}"});
    check_exchange(
        &world,
        &(struct exchange){
            "GetItem",
            "{'TableName':'docs','Key':{'id':{'S':'aa'}},'ConsistentRead':true,"
            "'ProjectionExpression':'id','ReturnConsumedCapacity':'TOTAL'}",
            "{'Item':{'id':{'S':'aa'}},'ConsumedCapacity':{'TableName':'docs','CapacityUnits':2.0}}"});
    world_close(&world);
}

/* 16777217 is the first whole number that no 32-bit float is. */
TEST(vectors_are_shown_as_their_index_has_them)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'docs','Item':{'id':{'S':'f'},'embedding':{'L':[{'N':'0.1'},{'N':'16777217'},"
         "{'N':'1.000000059604644775390625'}]}}}",
         "{}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'ProjectionExpression':'embedding',"
         "'SearchVector':[{'N':'0.1'},{'N':'16777217'},{'N':'1'}]}",
         "{'SearchResults':[{'Item':{'embedding':{'L':[{'N':'0.1'},{'N':'16777216.0'},{'N':'1.0'}]}},"
         "'Score':0.0}]}"},
        {"PutItem",
         "{'TableName':'docs','Item':{'id':{'S':'g'},'embedding':{'L':[{'N':'-3E+38'},{'N':'0.00000125'},"
         "{'N':'-120'}]}}}",
         "{}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'ProjectionExpression':'embedding',"
         "'SearchVector':[{'N':'-3E+38'},{'N':'0.00000125'},{'N':'-120'}]}",
         "{'SearchResults':[{'Item':{'embedding':{'L':[{'N':'-3e38'},{'N':'0.00000125'},{'N':'-120.0'}]}},"
         "'Score':0.0}]}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'dot','TopK':1,'ProjectionExpression':'embedding[1]',"
         "'SearchVector':[{'N':'0'},{'N':'0'},{'N':'-1'}]}",
         "{'SearchResults':[{'Item':{'embedding':{'L':[{'N':'0.00000125'}]}},'Score':120.0}]}"},
        {"GetItem", "{'TableName':'docs','Key':{'id':{'S':'f'}}}",
         "{'Item':{'embedding':{'L':[{'N':'0.1'},{'N':'16777217'},{'N':'1.000000059604644775390625'}]},"
         "'id':{'S':'f'}}}"},
    };
    struct world world;
    docs_open(&world);
    RUN(&world, exchanges);
    world_close(&world);
}

#define ADD(index) "{'TableName':'docs','VectorIndexUpdates':[{'Create':" index "}]}"
#define DROP(name) "{'TableName':'docs','VectorIndexUpdates':[{'Delete':{'IndexName':'" name "'}}]}"
#define BUSY                                                                                                 \
    "LimitExceededException: Subscriber limit exceeded: Only 1 online index can be created or deleted "      \
    "simultaneously per table"

TEST(vectors_are_added_to_a_table_with_items_and_taken_away)
{
    struct world world;
    docs_open(&world);
    put_all(&world);
    static const struct exchange refused[] = {
        {"UpdateTable", "{'TableName':'docs','VectorIndexUpdates':[]}",
         VALUES "List of VectorIndexUpdates is empty"},
        {"UpdateTable", "{'TableName':'docs','VectorIndexUpdates':[{}]}",
         VALUES "One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must not be null"},
        {"UpdateTable",
         "{'TableName':'docs','VectorIndexUpdates':[{'Delete':{'IndexName':'dot'}},{'Delete':{'IndexName':'plain'}}]}",
         BUSY},
        {"UpdateTable", ADD(INDEX("plain", 3, "COSINE", ALL)),
         INVALID "Attempting to create an index which already exists"},
        {"UpdateTable", ADD(INDEX("new", 4, "COSINE", ALL)),
         VALUES
         "Conflicting attribute definition for 'embedding'. All VectorIndexes on the same vector attribute "
         "must use the same dimensions."},
        {"UpdateTable", DROP("none"),
         "ResourceNotFoundException: Requested resource not found: Index none for table docs"},
        {"UpdateTable",
         "{'TableName':'docs','BillingMode':'PROVISIONED','ProvisionedThroughput':{'ReadCapacityUnits':1,"
         "'WriteCapacityUnits':1}}",
         VALUES "Vector indexes are only supported for PAY_PER_REQUEST tables"},
    };
    RUN(&world, refused);
    char *request = quoted(ADD(INDEX("new", 3, "COSINE", ALL ",'SearchSchema':[" HASH("tenant") "]")));
    CHECK_CONTAINS(ask(&world, "UpdateTable", request), "\"IndexStatus\":\"CREATING\",\"Backfilling\":false");
    free(request);
    CHECK_CONTAINS(ask(&world, "DescribeTable", "{\"TableName\":\"docs\"}"),
                   "\"IndexStatus\":\"CREATING\",\"Backfilling\":true");
    static const struct exchange filling[] = {
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'new','TopK':9," NEAR_A
         ",'SearchConditionExpression':'tenant = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         INVALID "Cannot search backfilling vector index: new"},
        {"UpdateTable", DROP("plain"), BUSY},
        {"UpdateTable", ADD(INDEX("other", 3, "COSINE", ALL)), BUSY},
        {"DeleteTable", "{'TableName':'docs'}",
         "ResourceInUseException: Attempt to change a resource which is still in use: Cannot delete table while "
         "indexes are being created, updated, or deleted."},
    };
    RUN(&world, filling);
    engine_wait_idle(world.engine);
    CHECK(!slice_contains(ask(&world, "DescribeTable", "{\"TableName\":\"docs\"}"), SLICE("CREATING")));
    static const struct exchange filled[] = {
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'new','TopK':9,'ProjectionExpression':'id'," NEAR_A
         ",'SearchConditionExpression':'tenant = :t','ExpressionAttributeValues':{':t':{'S':'x'}}}",
         "{'SearchResults':[{'Item':{'id':{'S':'a'}},'Score':0.0},{'Item':{'id':{'S':'b'}},'Score':1.0}]}"},
    };
    RUN(&world, filled);
    request = quoted(DROP("new"));
    CHECK_CONTAINS(ask(&world, "UpdateTable", request), "\"IndexStatus\":\"DELETING\"");
    free(request);
    static const struct exchange dropped[] = {
        {"SearchVectors", "{'TableName':'docs','IndexName':'new','TopK':9," NEAR_A "}",
         INVALID "The table does not have the specified index: new"},
    };
    RUN(&world, dropped);
    CHECK_FINE(&world, "DeleteTable", "{\"TableName\":\"docs\"}");
    world_close(&world);
}

/* Our own limit: a write that would need more memory is refused, and changes nothing. */
TEST(vectors_have_a_limit_of_memory)
{
    struct world world;
    world_open_options(&world, (struct engine_options){.vector_limit_bytes = 2000});
    ask_quoted(&world, "CreateTable", TABLE(ID, INDEX("plain", 3, "EUCLIDEAN", ALL)));
    ensure(world.status == 200);
    char request[300];
    unsigned written = 0;
    for (; written < 100; written++) {
        snprintf(
            request, sizeof request,
            "{'TableName':'docs','Item':{'id':{'S':'%03u'},'embedding':{'L':[{'N':'%u'},{'N':'0'},{'N':'0'}]}}}",
            written, written);
        ask_quoted(&world, "PutItem", request);
        if (world.status != 200) break;
    }
    CHECK(written > 3 && written < 60);
    CHECK_TEXT(slice_of(world.error ? world.error : ""), "LimitExceededException");
    CHECK_CONTAINS(buf_view(&world.reply), "The vector indexes of this server have all the memory");
    static const struct exchange exchanges[] = {
        {"UpdateItem",
         "{'TableName':'docs','Key':{'id':{'S':'000'}},'UpdateExpression':'SET embedding[0] = :n',"
         "'ExpressionAttributeValues':{':n':{'N':'-5'}}}",
         "{}"},
        {"PutItem", "{'TableName':'docs','Item':{'id':{'S':'no vector'}}}", "{}"},
        {"SearchVectors",
         "{'TableName':'docs','IndexName':'plain','TopK':1,'SearchVector':[{'N':'-5'},{'N':'0'},{'N':'0'}]}",
         "{'SearchResults':[{'Item':{'id':{'S':'000'}},'Score':0.0}]}"},
    };
    RUN(&world, exchanges);
    world_close(&world);
}
