/* A library opened at run time and its symbols, see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The first library that opens; else null, with the loader's error for the first name. */
static void *open_first(const kit_library *library, char *reason, size_t bytes)
{
    for (const char *const *name = library->names; *name; name++) {
        void *handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (handle) {
            return handle;
        }
        const char *words = dlerror();
        if (name == library->names) {
            snprintf(reason, bytes, "%s", words ? words : *name);
        }
    }
    return NULL;
}

hal_status kit_library_open(const hal_host *host, const kit_library *library, void *table)
{
    char reason[256] = "", text[640];
    void *handle = open_first(library, reason, sizeof reason);
    if (!handle) {
        snprintf(text, sizeof text, "%s cannot be opened (%s); %s", library->title, reason,
                 library->remedy);
        return host->fail(host, library->missing, text);
    }
    for (uint32_t i = 0; i < library->symbol_count; i++) {
        const kit_symbol *symbol = &library->symbols[i];
        if (symbol->needed && !dlsym(handle, symbol->name)) {
            snprintf(text, sizeof text, "%s has no function %s: it is too old; %s", library->title,
                     symbol->name, library->remedy);
            dlclose(handle);
            return host->fail(host, HAL_ERROR_TOO_OLD, text);
        }
    }
    for (uint32_t i = 0; i < library->symbol_count; i++) {
        const kit_symbol *symbol = &library->symbols[i];
        void *function = dlsym(handle, symbol->name);
        memcpy((char *)table + symbol->offset, &function, sizeof function);
    }
    return HAL_OK;
}
