/* A device as the driver describes it. */
#ifndef PLUGINS_OPENCL_CARD_H
#define PLUGINS_OPENCL_CARD_H

#include "driver.h"
#include "quirks.h"

#include <hal/plugin.h>
#include <stdbool.h>

enum {
    OPENCL_ALIGNMENT = 256,     /* of memory, bytes */
    OPENCL_SUBGROUP_WIDTH = 16, /* lanes, where a kernel can require a width */
    OPENCL_WARP_WIDTH = 32      /* with OPENCL_QUIRK_WARPS */
};

/* A device of a platform, as enumerate found it. Never freed. */
typedef struct opencl_card {
    cl_platform_id platform;
    cl_device_id device;
    hal_device_info info;
    uint32_t quirks; /* OPENCL_QUIRK_*, see quirks.h */
    const char *quirk_reasons[OPENCL_QUIRK_COUNT];
    bool unified;     /* host and device share their memory */
    bool fine_shared; /* and fine-grained buffers, which need no mapping */
    bool correct_divide;
    bool profiling;
    size_t max_parameters; /* bytes of a kernel's arguments */
} opencl_card;

#endif
