/* See print.h: directives that are known here, one after the other; at the first other one all is left to vsnprintf. */
#include "base/print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

struct printer {
    char *to;
    size_t room, len;
};

static void put(struct printer *printer, const char *text, size_t len)
{
    if (printer->len < printer->room) {
        size_t left = printer->room - printer->len;
        memcpy(printer->to + printer->len, text, len < left ? len : left);
    }
    printer->len += len;
}

static void put_whole(struct printer *printer, uint64_t magnitude, bool negative)
{
    char digits[21];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude);
    if (negative) digits[--at] = '-';
    put(printer, digits + at, sizeof digits - at);
}

static void put_signed(struct printer *printer, long long value)
{
    put_whole(printer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

/* The directive behind a '%'; answers what is behind it, NULL for one that is not known here. */
static const char *put_directive(struct printer *printer, const char *at, va_list *args)
{
    if (at[0] == 's' || (at[0] == '.' && at[1] == '*' && at[2] == 's')) {
        int most = at[0] == '.' ? va_arg(*args, int) : -1;
        const char *text = va_arg(*args, const char *);
        if (!text && most != 0) return NULL;
        if (most) put(printer, text, most < 0 ? strlen(text) : strnlen(text, (size_t)most));
        return at + (at[0] == '.' ? 3 : 1);
    }
    if (at[0] == 'd') {
        put_signed(printer, va_arg(*args, int));
        return at + 1;
    }
    if (at[0] == 'u') {
        put_whole(printer, va_arg(*args, unsigned), false);
        return at + 1;
    }
    if (at[0] == 'z' && at[1] == 'u') {
        put_whole(printer, va_arg(*args, size_t), false);
        return at + 2;
    }
    if (at[0] == 'l' && at[1] == 'l' && at[2] == 'd') {
        put_signed(printer, va_arg(*args, long long));
        return at + 3;
    }
    if (at[0] == 'l' && at[1] == 'l' && at[2] == 'u') {
        put_whole(printer, va_arg(*args, unsigned long long), false);
        return at + 3;
    }
    return NULL;
}

/* False where a directive is not known. */
static bool print_plain(struct printer *printer, const char *format, va_list *args)
{
    for (;;) {
        const char *directive = strchrnul(format, '%');
        put(printer, format, (size_t)(directive - format));
        if (!*directive) return true;
        format = put_directive(printer, directive + 1, args);
        if (!format) return false;
    }
}

size_t print_text(char *to, size_t room, const char *format, va_list args)
{
    struct printer printer = {to, room, 0};
    va_list plain;
    va_copy(plain, args);
    bool is_plain = print_plain(&printer, format, &plain);
    va_end(plain);
    if (is_plain) {
        if (room) to[printer.len < room ? printer.len : room - 1] = 0;
        return printer.len;
    }
    int len = vsnprintf(to, room, format, args);
    ensure(len >= 0);
    return (size_t)len;
}

struct counted counted(unsigned long long count, const char *noun)
{
    struct counted out;
    size_t len = strlen(noun);
    ensure(len > 1 && len < 40);
    char last = noun[len - 1], before = noun[len - 2];
    bool is_y = last == 'y' && !strchr("aeiou", before);
    bool hisses = last == 's' || last == 'x' || (last == 'h' && strchr("cs", before));
    const char *end = count == 1 ? "" : is_y ? "ies" : hisses ? "es" : "s";
    snprintf(out.text, sizeof out.text, "%llu %.*s%s", count, (int)(count != 1 && is_y ? len - 1 : len), noun,
             end);
    return out;
}
