/* Which drivers have which quirk, with the reason; see quirks.h. */
#include "quirks.h"

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Conditions: what the names of platform and device contain; a null device is any. */
typedef struct quirk_row {
    const char *platform, *device;
    uint32_t quirks;
    const char *reason;
} quirk_row;

static const quirk_row rows[] = {
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_SCALAR_ACCESS,
     .reason = "its work-item loops become vectors only where they hold scalars"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_SLOW_HALF,
     .reason = "its vload_half and vstore_half are branches: no vectors, and seconds to compile"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_OWN_DECLARATIONS,
     .reason = "it reads clang's 18,000 lines of declarations twice for each program"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_OWN_CACHE,
     .reason = "asked for a binary, it compiles another version, for groups of any size, which no "
               "dispatch uses; it keeps the one of the first dispatch itself"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_CALLED_ITEMS,
     .reason = "it compiles three copies of a kernel, and makes gathers of what lies side by side"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_NO_SUBGROUPS,
     .reason = "5.0 offers subgroups of 16; one that is not full crashes or computes wrong values: "
               "found by ir/subgroup_short"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_WRONG_INTEGRAL,
     .reason =
         "a kernel with rint, floor or trunc of a constant that is large or not finite stores "
         "nothing: found by ir/constants with 3.1"},
    {.platform = "Portable Computing Language",
     .quirks = OPENCL_QUIRK_EVENT_WAIT,
     .reason = "clFinish of 3.1 does not return while another thread keeps the queue busy"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_LAZY_MEMORY,
     .reason = "clCreateBuffer succeeds whatever is free"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_WRONG_GROUP_LIMIT,
     .reason = "says 256 work-items of a kernel that was compiled for 1024"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_NO_PROFILING,
     .reason =
         "on queues that can be asked for times, an event takes 7 us and a small write 6 us more"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_EAGER,
     .reason = "starts commands without clFlush, which takes 0.8 us"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_WARPS,
     .reason = "has no subgroups of OpenCL; takes inline PTX, and fills warps in the order of "
               "work-items"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_WRONG_EXTREMA,
     .reason = "folds the comparison of a value that was converted from f32 with a constant 0, "
               "and gives 0 for min(0, -0): found by ir/constants"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_WRONG_ABS,
     .reason = "takes abs of the least integer, which is negative, for positive: found by ir/pairs "
               "with driver 580.159"},
    {.platform = "NVIDIA",
     .quirks = OPENCL_QUIRK_WRONG_FILLS,
     .reason = "clEnqueueFillBuffer counts patterns from the buffer's beginning in 32 bits: from "
               "2^31 on it writes elsewhere or loses the context; found by widths/offsets"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_SOFTWARE,
     .reason = "reports itself as a processor of the host"},
    {.platform = "rusticl",
     .quirks = OPENCL_QUIRK_BUFFER_ARGUMENTS,
     .reason = "takes a structure by value without the bytes that pad its end"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_FMA_OF_ZERO,
     .reason = "its fma is a function of integers that loses the sign of a sum of zeros"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_NO_PROFILING,
     .reason = "its times are all zero"},
    {.platform = "rusticl",
     .quirks = OPENCL_QUIRK_EVENT_WAIT,
     .reason = "clFinish of Mesa 22.3.6 waits for what was enqueued since the last clFlush only"},
    {.platform = "rusticl",
     .quirks = OPENCL_QUIRK_WRONG_WIDENING,
     .reason = "a comparison of such an integer with a constant that i32 can hold is always true "
               "or false: NIR takes the least i32 for 2^31; found by ir/constants with Mesa 22.3"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_WRONG_ZEROS,
     .reason = "gallivm takes 0 / x for 0 and x + 0 for x, also within pow, whose pow(-0, 1) is 0, "
               "and loses NaN: found by ir/constants with Mesa 22.3"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_LIMITED_LOOPS,
     .reason = "gallivm ends all loops of a kernel silently after 65,535 iterations in total"},
    {.platform = "rusticl",
     .device = "llvmpipe",
     .quirks = OPENCL_QUIRK_WRONG_GROUP_LIMIT,
     .reason = "says 32 work-items for every kernel, and runs more"},
};

const char *const opencl_quirk_names[OPENCL_QUIRK_COUNT] = {
#define QUIRK(name, text, effect) [OPENCL_QUIRK_NUMBER_##name] = (text),
    OPENCL_QUIRKS(QUIRK)
#undef QUIRK
};

/* Reads the next name of a list, with a minus or not. Returns its quirk, 0 for an unknown name. */
static uint32_t list_next(const char **list, bool *removes)
{
    *removes = **list == '-';
    const char *name = *list + *removes;
    const size_t length = strcspn(name, ",");
    *list = name + length + (name[length] == ',');
    for (size_t i = 0; i < OPENCL_QUIRK_COUNT; i++) {
        if (strlen(opencl_quirk_names[i]) == length &&
            strncmp(opencl_quirk_names[i], name, length) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static uint32_t list_apply(const char *list, uint32_t quirks)
{
    while (list && *list != '\0') {
        bool removes;
        const uint32_t quirk = list_next(&list, &removes);
        quirks = removes ? quirks & ~quirk : quirks | quirk;
    }
    return quirks;
}

static bool row_applies(const quirk_row *row, const char *platform, const char *device)
{
    return strstr(platform, row->platform) && (!row->device || strstr(device, row->device) != NULL);
}

uint32_t opencl_quirks(const char *platform, const char *device,
                       const char *reasons[OPENCL_QUIRK_COUNT])
{
    uint32_t quirks = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t has = row_applies(&rows[i], platform, device) ? rows[i].quirks : 0;
        quirks |= has;
        for (uint32_t bit = 0; bit < OPENCL_QUIRK_COUNT; bit++) {
            reasons[bit] = has >> bit & 1 ? rows[i].reason : reasons[bit];
        }
    }
    quirks = list_apply(secure_getenv("HAL_OPENCL_QUIRKS"), quirks);
    for (uint32_t bit = 0; bit < OPENCL_QUIRK_COUNT; bit++) {
        if (quirks >> bit & 1 && !reasons[bit]) {
            reasons[bit] = "HAL_OPENCL_QUIRKS says so";
        }
    }
    return quirks;
}

hal_status opencl_quirks_check(void)
{
    const char *list = secure_getenv("HAL_OPENCL_QUIRKS");
    for (const char *rest = list; rest && *rest != '\0';) {
        bool removes;
        if (list_next(&rest, &removes) == 0) {
            char known[512] = "";
            for (size_t i = 0, used = 0; i < OPENCL_QUIRK_COUNT && used < sizeof known; i++) {
                used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                         i > 0 ? ", " : "", opencl_quirk_names[i]);
            }
            return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "HAL_OPENCL_QUIRKS: expected names separated by commas, with a minus "
                            "before those to remove, got %.100s; the names are %s",
                            list, known);
        }
    }
    return HAL_OK;
}
