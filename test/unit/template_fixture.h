/* A template and what became of it, as texts that can be compared. It has the files more.yml, bad.yml and text.txt, and
 * HOME in its environment. */
#ifndef TEST_UNIT_TEMPLATE_FIXTURE_H
#define TEST_UNIT_TEMPLATE_FIXTURE_H

#include "template/template.h"

/* Forgets all that was read, and what was given. */
void fixture_end(void);
void fixture_give(const char *name, const char *value);
/* Opens the template: "" or the error. */
struct slice fixture_open(const char *text);
/* A resource's properties: references are Id or Id.Attribute in < >, those of Later stay unknown, of Never are none. */
struct slice fixture_properties(const char *id);
/* All resources in their order, "Id(needs) ..." */
struct slice fixture_order(void);
/* One resource as it is translated, "Type{Properties}", unresolved. */
struct slice fixture_source(const char *id);
/* "Name=value ..." */
struct slice fixture_outputs(void);
/* "line: text; ..." */
struct slice fixture_notes(void);

#endif
