/* A device as the system describes it. */
#ifndef PLUGINS_METAL_CARD_H
#define PLUGINS_METAL_CARD_H

#include "driver.h"

#include <hal/plugin.h>

enum { METAL_SUBGROUP_WIDTH = 32 }; /* lanes of a simdgroup on GPUs by Apple */

/* A device as enumerate found it. Never freed. */
typedef struct metal_card {
    metal_gpu *gpu;
    metal_facts facts;
    hal_device_info info;
    uint32_t quirks;       /* METAL_QUIRK_*, see quirks.h */
    bool private_memory;   /* device memory is not mapped */
    uint64_t memory_limit; /* bytes that the process may allocate */
} metal_card;

#endif
