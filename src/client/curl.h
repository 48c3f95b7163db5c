/* libcurl, loaded when the first client is opened.
 *
 * It is not linked: it brings some thirty libraries with it, nearly doubles the time in which the program
 * starts, and Debian has no archive of it that could go into a static binary. Who never opens a URL never
 * needs it. */
#ifndef CLIENT_CURL_H
#define CLIENT_CURL_H

#define CURL_DISABLE_TYPECHECK /* its macros would take our members for its functions */
#include <curl/curl.h>
#include <stddef.h>

/* X(name): the functions that are used, without "curl_". */
#define CURL_FUNCTIONS(X)                                                                                    \
    X(global_init)                                                                                           \
    X(easy_init)                                                                                             \
    X(easy_cleanup)                                                                                          \
    X(easy_setopt)                                                                                           \
    X(easy_getinfo)                                                                                          \
    X(easy_strerror)                                                                                         \
    X(slist_append)                                                                                          \
    X(slist_free_all)                                                                                        \
    X(multi_init)                                                                                            \
    X(multi_cleanup)                                                                                         \
    X(multi_setopt)                                                                                          \
    X(multi_add_handle)                                                                                      \
    X(multi_remove_handle)                                                                                   \
    X(multi_perform)                                                                                         \
    X(multi_poll)                                                                                            \
    X(multi_wakeup)                                                                                          \
    X(multi_info_read)

struct curl {
#define X(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(X)
#undef X
};

/* The library, ready for use; NULL and a sentence when there is none. From any thread. */
const struct curl *curl_load(char *error, size_t error_len);

#endif
