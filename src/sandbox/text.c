/* Texts without a library: between a fork and the end of a child nothing may be allocated or locked. */
#include <string.h>

#include "sandbox/internal.h"

char *text_put(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len + 1);
    return at + len;
}

char *text_put_number(char *at, uint64_t number)
{
    char digits[24];
    size_t len = 0;
    do digits[len++] = (char)('0' + number % 10);
    while (number /= 10);
    while (len) *at++ = digits[--len];
    *at = 0;
    return at;
}
