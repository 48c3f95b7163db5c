/* Finds libzip on this machine, once; it stays loaded. */
#include "func/zip_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static struct zip_library loaded;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_functions(void *library)
{
#define X(name)                                                                                              \
    loaded.name = (__typeof__(loaded.name))dlsym(library, "zip_" #name);                                     \
    if (!loaded.name) return false;
    ZIP_FUNCTIONS(X)
#undef X
    return true;
}

static void load(void)
{
    static const char *const names[] = {"libzip.so.4", "libzip.so.5"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !is_loaded; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        is_loaded = library && find_functions(library);
    }
}

const struct zip_library *zip_library_load(char *error, size_t error_len)
{
    pthread_once(&once, load);
    if (is_loaded) return &loaded;
    snprintf(error, error_len,
             "Archives need libzip 1.x, and libzip.so is not to be found (Debian: libzip4); a folder can be "
             "run without it");
    return NULL;
}
