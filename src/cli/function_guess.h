/* What a folder of code says about how it runs. */
#ifndef CLI_FUNCTION_GUESS_H
#define CLI_FUNCTION_GUESS_H

#include "base/arena.h"

struct function_guess {
    const char *runtime, *handler; /* NULL: nothing can be said */
    const char *fault;             /* why not: a phrase */
    bool lacks_permission;         /* all that is missing is the permission to run `bootstrap` */
};

/* Looks for what each runtime's users put there: an executable `bootstrap`; index.mjs, index.js or a
 * package.json with "main"; lambda_function.py. Two of them, or none, say nothing. */
void function_guess(const char *folder, struct arena *arena, struct function_guess *out);

#endif
