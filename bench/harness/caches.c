/* Compile caches, see caches.h. */
#include "harness/caches.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void caches_use_folder(const char *folder, const char *hal_cache)
{
    static const char *const variables[] = {"HAL_CACHE_DIR",         "POCL_CACHE_DIR",
                                            "MESA_SHADER_CACHE_DIR", "CUDA_CACHE_PATH",
                                            "XDG_CACHE_HOME",        "__GL_SHADER_DISK_CACHE_PATH"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        setenv(variables[i], folder, 1);
    }
    if (hal_cache) {
        setenv("HAL_CACHE_DIR", hal_cache, 1);
    }
}

bool caches_make_folder(char folder[64])
{
    strcpy(folder, "/tmp/hal-bench-XXXXXX");
    const bool made = mkdtemp(folder) != NULL;
    folder[0] = made ? folder[0] : 0;
    return made;
}

bool caches_disable(char folder[64])
{
    static const char *const switches[][2] = {{"MESA_SHADER_CACHE_DISABLE", "true"},
                                              {"CUDA_CACHE_DISABLE", "1"},
                                              {"__GL_SHADER_DISK_CACHE", "0"}};
    if (!caches_make_folder(folder)) {
        return false;
    }
    caches_use_folder(folder, "off");
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        setenv(switches[i][0], switches[i][1], 1);
    }
    return true;
}

static int remove_entry(const char *path, const struct stat *what, int kind, struct FTW *place)
{
    (void)what;
    (void)kind;
    (void)place;
    return remove(path);
}

void caches_remove(const char *folder)
{
    if (folder[0] != 0) {
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}
