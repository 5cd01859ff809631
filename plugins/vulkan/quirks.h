/* What is known of single drivers and cannot be asked of them: one table, each row with its
 * reason. Nothing else in the plugin looks at a driver's name. */
#ifndef HALYARD_VULKAN_QUIRKS_H
#define HALYARD_VULKAN_QUIRKS_H

#include <stdint.h>
#include <vulkan/vulkan_core.h>

typedef struct vulkan_quirks {
    VkDriverId driver;
    uint32_t exactness;        /* HAL_EXACT_* that its arithmetic has beyond what Vulkan promises */
    uint32_t exact_doubles;    /* 1: division and square root of f64 are correctly rounded */
    uint32_t folds_halves;     /* 1: takes f32 to f16 and back to f32 for nothing, unrounded */
    uint32_t lanes_in_order;   /* 1: in a group of one dimension lanes follow the work-items */
    uint32_t compiles_late;    /* 1: machine code is made at the first dispatch */
    const char *null_variable; /* with this variable in the environment it compiles only */
} vulkan_quirks;

/* The row of a driver; of one that is not in the table, a row that promises nothing. */
const vulkan_quirks *vulkan_quirks_of(VkDriverId driver);

/* Whether the driver runs nothing in this process. */
int vulkan_quirks_is_null(const vulkan_quirks *quirks);

#endif
