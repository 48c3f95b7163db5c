/* Operations that the service has and this database not yet: known by name, so that whoever calls one is told
 * what it is instead of being told that there is no such thing. */
#include "api/shapes.h"

#define BACKUP  "There are no backups yet: stop the server and copy its folder, or read the table with Scan."
#define EXPORT  "There is no S3 to write to: read the table with Scan."
#define IMPORT  "There is no S3 to read from: write the items with BatchWriteItem."
#define PARTIQL "There is no PartiQL yet: use the operation that the statement stands for."
#define VECTOR  "There are no vector indexes."

/* X(name, what to do instead) */
#define NOT_OFFERED(X)                                                                                       \
    X(BatchExecuteStatement, PARTIQL)                                                                        \
    X(CreateBackup, BACKUP)                                                                                  \
    X(DeleteBackup, BACKUP)                                                                                  \
    X(DescribeBackup, BACKUP)                                                                                \
    X(DescribeExport, EXPORT)                                                                                \
    X(DescribeImport, IMPORT)                                                                                \
    X(ExecuteStatement, PARTIQL)                                                                             \
    X(ExecuteTransaction, PARTIQL)                                                                           \
    X(ExportTableToPointInTime, EXPORT)                                                                      \
    X(ImportTable, IMPORT)                                                                                   \
    X(RestoreTableFromBackup, BACKUP)                                                                        \
    X(RestoreTableToPointInTime, BACKUP)                                                                     \
    X(SearchVectors, VECTOR)

/* Whatever the request holds. */
static const struct shape any_shape = {.kind = SHAPE_STRUCT, .type_name = "Input"};

#define X(op, instead)                                                                                       \
    static void begin_##op(struct api_call *call, const struct node *input)                                  \
    {                                                                                                        \
        (void)input;                                                                                         \
        refuse(call, "UnsupportedOperationException", #op " is not offered here. " instead);                 \
    }                                                                                                        \
    const struct operation operation_##op = {.name = TEXT(#op), .input = &any_shape, .begin = begin_##op};
NOT_OFFERED(X)
#undef X

/* What nobody can make cannot be listed either: programs that look before they leap find nothing.
 * X(name, the list's member in the reply) */
#define EMPTY_LISTS(X)                                                                                       \
    X(ListBackups, "BackupSummaries")                                                                        \
    X(ListExports, "ExportSummaries")                                                                        \
    X(ListImports, "ImportSummaryList")

#define X(op, member)                                                                                        \
    static void begin_##op(struct api_call *call, const struct node *input)                                  \
    {                                                                                                        \
        (void)input;                                                                                         \
        buf_text(call->reply, "{\"" member "\":[]}");                                                        \
    }                                                                                                        \
    const struct operation operation_##op = {.name = TEXT(#op), .input = &any_shape, .begin = begin_##op};
EMPTY_LISTS(X)
#undef X
