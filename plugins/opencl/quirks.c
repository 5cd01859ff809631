/* The table of drivers' habits. Called once for each device, by device.c. */
#include "quirks.h"

#include "opencl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct quirk_row {
    const char *platform, *device; /* what the names contain */
    uint32_t quirks;
    const char *reason;
} quirk_row;

static const quirk_row rows[] = {
    {"Portable Computing Language", "", OPENCL_QUIRK_SCALAR_ACCESS,
     "its work-item loops become vectors only where they hold scalars"},
    {"Portable Computing Language", "", OPENCL_QUIRK_SLOW_HALF,
     "its vload_half and vstore_half are branches: no vectors, and seconds to compile"},
    {"Portable Computing Language", "", OPENCL_QUIRK_OWN_DECLARATIONS,
     "it reads clang's 18,000 lines of declarations twice for each program"},
    {"Portable Computing Language", "", OPENCL_QUIRK_CALLED_ITEMS,
     "it compiles three copies of a kernel, and makes gathers of what lies side by side"},
    {"NVIDIA", "", OPENCL_QUIRK_LAZY_MEMORY, "clCreateBuffer succeeds whatever is free"},
    {"NVIDIA", "", OPENCL_QUIRK_WRONG_GROUP_LIMIT,
     "says 256 work-items of a kernel that was compiled for 1024"},
    {"NVIDIA", "", OPENCL_QUIRK_NO_PROFILING,
     "on queues that can be asked for times, an event takes 7 us and a small write 6 us more"},
    {"rusticl", "llvmpipe", OPENCL_QUIRK_SOFTWARE, "reports itself as a processor of the host"},
    {"rusticl", "", OPENCL_QUIRK_BUFFER_ARGUMENTS,
     "takes a structure by value without the bytes that pad its end"},
    {"rusticl", "llvmpipe", OPENCL_QUIRK_FMA_OF_ZERO,
     "its fma is a function of integers that loses the sign of a sum of zeros"},
    {"rusticl", "llvmpipe", OPENCL_QUIRK_NO_PROFILING, "its times are all zero"},
    {"rusticl", "llvmpipe", OPENCL_QUIRK_WRONG_GROUP_LIMIT,
     "says 32 work-items for every kernel, and runs more"},
};

typedef struct quirk_name {
    const char *name;
    uint32_t quirk;
} quirk_name;

static const quirk_name names[] = {
    {"shadow", OPENCL_QUIRK_SHADOW},
    {"buffer_arguments", OPENCL_QUIRK_BUFFER_ARGUMENTS},
    {"lazy_memory", OPENCL_QUIRK_LAZY_MEMORY},
    {"no_profiling", OPENCL_QUIRK_NO_PROFILING},
    {"scalar_access", OPENCL_QUIRK_SCALAR_ACCESS},
    {"software", OPENCL_QUIRK_SOFTWARE},
    {"fma_not_fused", OPENCL_QUIRK_FMA_NOT_FUSED},
    {"no_denormals", OPENCL_QUIRK_NO_DENORMALS},
    {"no_half", OPENCL_QUIRK_NO_HALF},
    {"own_cache", OPENCL_QUIRK_OWN_CACHE},
    {"fma_of_zero", OPENCL_QUIRK_FMA_OF_ZERO},
    {"slow_half", OPENCL_QUIRK_SLOW_HALF},
    {"pageable", OPENCL_QUIRK_PAGEABLE},
    {"no_subgroups", OPENCL_QUIRK_NO_SUBGROUPS},
    {"event_wait", OPENCL_QUIRK_EVENT_WAIT},
    {"wrong_group_limit", OPENCL_QUIRK_WRONG_GROUP_LIMIT},
    {"own_declarations", OPENCL_QUIRK_OWN_DECLARATIONS},
    {"called_items", OPENCL_QUIRK_CALLED_ITEMS},
};

enum { NAME_COUNT = sizeof names / sizeof names[0] };

/* Takes the first name off a list; the quirk that it names, 0 for none. */
static uint32_t next_quirk(const char **list, bool *away)
{
    *away = **list == '-';
    const char *name = *list + *away;
    const size_t length = strcspn(name, ",");
    *list = name + length + (name[length] == ',');
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0) {
            return names[i].quirk;
        }
    }
    return 0;
}

/* Adds to `quirks`, and takes away, what a list names. */
static uint32_t adjusted(uint32_t quirks, const char *list)
{
    while (list != NULL && *list != '\0') {
        bool away;
        const uint32_t quirk = next_quirk(&list, &away);
        quirks = away ? quirks & ~quirk : quirks | quirk;
    }
    return quirks;
}

uint32_t opencl_quirks(const char *platform, const char *device)
{
    uint32_t quirks = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strstr(platform, rows[i].platform) != NULL && strstr(device, rows[i].device) != NULL) {
            quirks |= rows[i].quirks;
        }
    }
    return adjusted(quirks, secure_getenv("HAL_OPENCL_QUIRKS"));
}

hal_status opencl_quirks_check(void)
{
    const char *list = secure_getenv("HAL_OPENCL_QUIRKS");
    for (const char *rest = list; rest != NULL && *rest != '\0';) {
        bool away;
        if (next_quirk(&rest, &away) == 0) {
            char there[512] = "";
            for (size_t i = 0, used = 0; i < NAME_COUNT && used < sizeof there; i++) {
                used += (size_t)snprintf(there + used, sizeof there - used, "%s%s",
                                         i > 0 ? ", " : "", names[i].name);
            }
            return opencl_fail(HAL_ERROR_INVALID_ARGUMENT,
                               "HAL_OPENCL_QUIRKS=%.100s: names of quirks were expected, with "
                               "commas between them, and a minus before those to take away; there "
                               "are %s",
                               list, there);
        }
    }
    return HAL_OK;
}
