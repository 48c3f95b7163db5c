/* libzip, loaded when the first archive is opened.
 *
 * It is not linked: Debian has no archive of it that could go into a static binary, and who runs functions
 * from folders never needs it. */
#ifndef FUNC_ZIP_LIBRARY_H
#define FUNC_ZIP_LIBRARY_H

#include <stddef.h>
#include <zip.h>

/* X(name): the functions that are used, without "zip_". */
// clang-format off
#define ZIP_FUNCTIONS(X) \
    X(source_buffer_create) \
    X(source_free) \
    X(open_from_source) \
    X(discard) \
    X(get_num_entries) \
    X(stat_index) \
    X(file_get_external_attributes) \
    X(fopen_index) \
    X(fread) \
    X(fclose)
// clang-format on

struct zip_library {
#define X(name) __typeof__(zip_##name) *name;
    ZIP_FUNCTIONS(X)
#undef X
};

/* The library, ready for use; NULL and a sentence when there is none. From any thread. */
const struct zip_library *zip_library_load(char *error, size_t error_len);

#endif
