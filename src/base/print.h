/* Formatted text, as vsnprintf writes it. Names, keys and answers are composed of strings and whole numbers for every
 * request: what has nothing else is written here in a tenth of the steps, the rest by vsnprintf. */
#ifndef BASE_PRINT_H
#define BASE_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/* Writes as much as there is room for, with a zero behind it, and answers how long the whole text is. */
size_t print_text(char *to, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* "1 table", "2 tables": a count and what is counted, for printf in place. The noun is a short one. */
struct counted {
    char text[64];
};
struct counted counted(unsigned long long count, const char *noun);

#endif
