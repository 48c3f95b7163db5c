/* Templates of applications as others write them: CloudFormation (also what `cdk synth` writes), SAM, serverless.yml.
 *
 * A template becomes one tree (base/node.h), whichever language it is written in. YAML's short forms are the long ones
 * there: `!Ref x` is {"Ref":"x"}, `!GetAtt a.b` is {"Fn::GetAtt":["a","b"]}, `!Sub` is {"Fn::Sub":...}.
 *
 *   - Nodes have the line and column of the text. Every error begins with file:line:column.
 *   - Bytes, nodes and depth are bounded (base/limits.h), and aliases count as what they stand for.
 *   - A name stands once in an object. Where the text has it twice, the last one counts, and a note tells it.
 *
 * Trees, notes and texts live in the arena that the caller gives. */
#ifndef TEMPLATE_TEMPLATE_H
#define TEMPLATE_TEMPLATE_H

#include "base/node.h"

#define TEMPLATE_ERROR_BYTES 512

/* What was not understood, in the order of finding. */
struct template_note {
    uint32_t line, column;
    struct slice text; /* a sentence without its full stop */
    struct template_note *next;
};

struct template_notes {
    struct template_note *first, *last;
    size_t count;
};

/* The tree of a text in YAML or JSON; the name is that of its file, for errors. NULL and the error when it cannot be
 * read. The tree keeps the text. */
const struct node *template_read(struct arena *arena, struct slice text, const char *name,
                                 struct template_notes *notes, char error[TEMPLATE_ERROR_BYTES]);

#endif
