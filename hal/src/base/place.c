/* Folders at the time of loading, see place.h. */
#include "place.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An address in this library: an exported function may have its address in the program, or be
 * replaced by one of the program. */
static const char anchor;

static char *library_folder;
static char *working_folder;

__attribute__((constructor)) static void place_find(void)
{
    Dl_info library;
    working_folder = getcwd(NULL, 0);
    if (!dladdr(&anchor, &library) || !library.dli_fname) {
        return;
    }
    library_folder = realpath(library.dli_fname, NULL);
    char *slash = library_folder ? strrchr(library_folder, '/') : NULL;
    if (slash) {
        *slash = 0;
    }
}

const char *hal_place_library(void)
{
    return library_folder;
}

void hal_place_add(hal_text *text, const char *path)
{
    if (path[0] != '/' && working_folder) {
        hal_text_add(text, "%s/", working_folder);
    }
    hal_text_add(text, "%s", path);
}
