/* Policy documents in the form in which the service hands them back. */
#ifndef API_POLICY_DOCUMENT_H
#define API_POLICY_DOCUMENT_H

#include "api/tables.h"

/* Judges a resource-based policy and answers its canonical form: without white space, members in a fixed
 * order, lists of one as the one, accounts as their ARNs. Two documents that mean the same have the same
 * form. */
bool policy_canonical(struct verdict *verdict, struct slice text, struct slice *out);

#endif
