/* What a device is, in hal's terms. */
#include "describe.h"

#include "lower/lower.h"
#include "quirks.h"

#include <stdio.h>
#include <string.h>

/* 128 registers of 32 bits: https://dougallj.github.io/applegpu/docs.html. */
enum { APPLE_ITEM_REGISTERS = 128 * 4 };

/* Metal does not tell the number of cores; hal uses it to spread work. Those of the smallest GPU of
 * each class by Apple, and of a small discrete GPU. */
static uint32_t core_count(const metal_facts *facts)
{
    static const struct {
        const char *word;
        uint32_t cores;
    } classes[] = {{" Ultra", 48}, {" Max", 24}, {" Pro", 14}};
    if (facts->apple_family == 0) {
        return facts->low_power ? 8 : 20;
    }
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strstr(facts->name, classes[i].word)) {
            return classes[i].cores;
        }
    }
    return 8;
}

static uint32_t smaller(uint64_t a, uint64_t b)
{
    const uint64_t least = a < b ? a : b;
    return least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
}

static void describe_limits(metal_card *card)
{
    enum { LARGEST_GROUP = 1024 };
    const metal_facts *facts = &card->facts;
    hal_device_info *info = &card->info;
    card->memory_limit = facts->working_set > 0 ? facts->working_set : facts->max_buffer;
    info->memory_bytes = card->memory_limit;
    info->max_allocation =
        facts->max_buffer < card->memory_limit ? facts->max_buffer : card->memory_limit;
    info->max_binding = info->max_allocation;
    info->binding_alignment = 16; /* of the widest access */
    info->compute_units = core_count(facts);
    info->max_group_items = smaller(facts->max_threads[0], LARGEST_GROUP);
    for (uint32_t i = 0; i < 3; i++) {
        info->max_group_size[i] = smaller(facts->max_threads[i], info->max_group_items);
        /* Positions in the grid have 32 bits. */
        info->max_grid[i] = i == 0 ? UINT32_MAX / LARGEST_GROUP : UINT16_MAX;
    }
    info->shared_bytes = smaller(facts->shared_bytes, UINT32_MAX);
    info->max_bindings = HAL_IR_MAX_BINDINGS;
    info->max_vector_bytes = 16;
    info->preferred_group = smaller(info->max_group_items, 256);
    info->item_register_bytes = facts->apple_family > 0 ? APPLE_ITEM_REGISTERS : 0;
    info->max_queues = 4;
}

/* GPUs by Apple have 32 lanes; those by others choose a width for each kernel. */
static void describe_features(metal_card *card)
{
    const metal_facts *facts = &card->facts;
    hal_device_info *info = &card->info;
    info->storage_types = metal_lower_storage_types();
    info->arithmetic_types = info->storage_types & HAL_TYPES_VALUES;
    /* Denormals of f32 may be flushed to zero (Metal Shading Language Specification, 8.1). */
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT;
    info->features = HAL_FEATURE_TIMESTAMPS | HAL_FEATURE_FILL_PATTERNS | HAL_FEATURE_INDIRECT;
    if (!card->private_memory) {
        info->features |= HAL_FEATURE_MAP_DEVICE | HAL_FEATURE_ZERO_COPY;
    }
    if (facts->apple_family >= 7 && !(card->quirks & METAL_QUIRK_NO_SUBGROUPS)) {
        info->subgroup_width = METAL_SUBGROUP_WIDTH;
        if (!(card->quirks & METAL_QUIRK_NO_MATRICES)) {
            info->matrix_types = HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) |
                                 HAL_TYPE_BIT(HAL_TYPE_F32);
        }
    }
}

static void describe_identity(metal_card *card)
{
    const metal_facts *facts = &card->facts;
    hal_device_info *info = &card->info;
    info->kind = facts->unified || facts->low_power ? HAL_DEVICE_INTEGRATED : HAL_DEVICE_DISCRETE;
    snprintf(info->name, sizeof info->name, "%s", facts->name);
    snprintf(info->id, sizeof info->id, "registry:%llx", (unsigned long long)facts->registry_id);
    snprintf(info->driver, sizeof info->driver, "Metal %.50s", facts->system);
    if (facts->architecture[0] != '\0') {
        snprintf(info->architecture, sizeof info->architecture, "%s", facts->architecture);
    } else if (facts->apple_family > 0) {
        snprintf(info->architecture, sizeof info->architecture, "apple%u", facts->apple_family);
    } else {
        snprintf(info->architecture, sizeof info->architecture, "%.60s", facts->name);
    }
}

bool metal_describe(metal_card *card, char reason[160])
{
    metal_shim_describe(card->gpu, &card->facts);
    const metal_facts *facts = &card->facts;
    if (facts->apple_family == 0 && !facts->mac2) {
        snprintf(reason, 160, "is of neither the family Apple 6 nor Mac 2");
        return false;
    }
    if (facts->max_threads[0] == 0 || facts->max_buffer == 0) {
        snprintf(reason, 160, "does not tell its limits");
        return false;
    }
    card->private_memory = !facts->unified || (card->quirks & METAL_QUIRK_STAGED_MEMORY) != 0;
    card->info.size = sizeof card->info;
    describe_limits(card);
    describe_features(card);
    describe_identity(card);
    return true;
}
