/* Finds libcurl on this machine, once. It stays loaded until the process ends: its own threads may still run.
 */
#include "client/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static struct curl loaded;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_functions(void *library)
{
#define X(name)                                                                                              \
    loaded.name = (__typeof__(loaded.name))dlsym(library, "curl_" #name);                                    \
    if (!loaded.name) return false;
    CURL_FUNCTIONS(X)
#undef X
    return true;
}

static void load(void)
{
    /* The same functions built on OpenSSL or on GnuTLS; Debian has both. */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !is_loaded; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        is_loaded = library && find_functions(library) && loaded.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    }
}

const struct curl *curl_load(char *error, size_t error_len)
{
    pthread_once(&once, load);
    if (is_loaded) return &loaded;
    snprintf(error, error_len,
             "URLs need libcurl 7.68 or later, and libcurl.so.4 is not to be found (Debian: libcurl4)");
    return NULL;
}
