/* A vendor's library, opened at run time: nothing of it is needed to build or to load a plugin.
 *
 * A plugin keeps one list of what it calls, symbols.inl, with a line SYMBOL(name) for what it
 * needs and OPTIONAL(name) for what it can do without, and reads it twice: as members of a struct
 * of function pointers, and as the array of kit_symbol that fills it. */
#ifndef PLUGINS_KIT_LIBRARY_H
#define PLUGINS_KIT_LIBRARY_H

#include <hal/plugin.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kit_symbol {
    const char *name;
    size_t offset;   /* of the function pointer in the table */
    uint32_t needed; /* 0: a null pointer is left where the library lacks it */
} kit_symbol;

typedef struct kit_library {
    const char *title;        /* "the OpenCL loader" */
    const char *const *names; /* tried in this order; ends with null */
    const char *remedy;       /* what to do if none exists: "install ..." */
    hal_status missing;       /* LIBRARY_MISSING or DRIVER_MISSING, when none can be opened */
    const kit_symbol *symbols;
    uint32_t symbol_count;
} kit_library;

/* Opens the library with local symbols, never to be closed, and writes its functions to `table`.
 * Threads: one at a time for one table.
 * Errors, with their sentence given to host->fail: library->missing with the loader's own words;
 * TOO_OLD naming the first needed symbol that is not there. The table is then not changed. */
hal_status kit_library_open(const hal_host *host, const kit_library *library, void *table);

#ifdef __cplusplus
}
#endif

#endif
