/* A laboratory for functions: a database in memory, the room opened on it, requests made without a socket,
 * and archives made by hand, also ones that nobody's tool would make. */
#ifndef TEST_UNIT_FUNC_LAB_H
#define TEST_UNIT_FUNC_LAB_H

#include <stdatomic.h>

#include "func/func.h"
#include "unit/test.h"

struct lab {
    struct dynamo *dynamo;
    struct func *func;
    struct net_server *server; /* NULL before lab_start */
    struct clock clock;
    _Atomic int64_t now_ms;
    char folder[64];
    bool shared, owns_dynamo;
};

void lab_open(struct lab *lab);
void lab_open_shared(struct lab *lab);
/* On a door that stays the caller's. */
void lab_open_on(struct lab *lab, struct dynamo *dynamo, bool shared);
/* Closes the room and opens it again, as a restart does: what is not stored is gone. */
void lab_reopen(struct lab *lab);
/* A second room on the same tables, as another server's. */
void lab_open_beside(struct lab *lab, const struct lab *first);
/* From here on functions and accepted calls run; no test listens on the server's port. */
void lab_start(struct lab *lab);
void lab_close(struct lab *lab);

struct answer {
    int status;
    struct buf body;
    struct slice headers;
    struct arena arena;
};

/* One header may be given with the request: "Name: value"; NULL: none. */
struct answer lab_send(struct lab *lab, const char *method, const char *target, const char *body,
                       const char *header);
void answer_free(struct answer *answer);
/* The raw JSON of a member, found by a path "Configuration.Environment.Variables.A"; empty: not there. */
struct slice answer_member(struct answer *answer, const char *path);
/* The same of a string, without its quotes. */
struct slice answer_text(struct answer *answer, const char *path);

/* Sends, checks the status, and forgets the answer. */
#define LAB_EXPECT(lab, method, target, content, wanted)                                                     \
    lab_expect((lab), (method), (target), (content), (wanted), __FILE__, __LINE__)
void lab_expect(struct lab *lab, const char *method, const char *target, const char *body, int status,
                const char *file, int line);
/* The same for an error: its type and its whole message. */
#define LAB_REFUSED(lab, method, target, content, wanted, type, message)                                     \
    lab_refused((lab), (method), (target), (content), (wanted), (type), (message), __FILE__, __LINE__)
void lab_refused(struct lab *lab, const char *method, const char *target, const char *body, int status,
                 const char *type, const char *message, const char *file, int line);

/* Calls the door and answers the reply's text, in the arena. */
struct slice lab_dynamo(struct lab *lab, const char *operation, const char *request, struct arena *arena);

/* ---- archives ---- */

struct lab_file {
    const char *name, *content;
    unsigned mode; /* with the kind, as stat has it; 0: an archive without modes */
};

/* Appends an archive without compression. */
void lab_zip(struct buf *out, const struct lab_file *files, size_t count);
/* {"FunctionName":NAME,"Runtime":"provided.al2023","Role":...,"Code":{"ZipFile":...} and `more`, as text. */
const char *lab_create_body(struct arena *arena, const char *name, const char *bootstrap, const char *more);

#endif
