/* Libraries that are opened on request. */
#include "peers/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool library_open(const char *files, const library_symbol *symbols, size_t count, char *message,
                  size_t bytes)
{
    void *library = NULL;
    char file[64];
    for (const char *at = files; !library && *at != 0; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        snprintf(file, sizeof file, "%.*s", (int)length, at);
        library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        at += length;
    }
    if (!library) {
        snprintf(message, bytes, "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            snprintf(message, bytes, "%s lacks %s", file, symbols[i].name);
            return false;
        }
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return true;
}
