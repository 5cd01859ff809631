/* NCCL's library, opened at run time, and what it can do. */
#include "collectives/nccl.h"

#include "collectives/peer_sum.h"

#include <dlfcn.h>
#include <kit/fork.h>
#include <kit/library.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char default_name[] = "libnccl.so.2";
static nccl_library functions;
static bool is_loaded;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
KIT_FORK_RESET(load_lock, NULL)

/* By hal_type: the number of NCCL's type and one, 0 for none. */
static const uint8_t type_numbers[HAL_TYPE_COUNT] = {
    [HAL_TYPE_I8] = NCCL_I8 + 1,     [HAL_TYPE_U8] = NCCL_U8 + 1,   [HAL_TYPE_I32] = NCCL_I32 + 1,
    [HAL_TYPE_U32] = NCCL_U32 + 1,   [HAL_TYPE_I64] = NCCL_I64 + 1, [HAL_TYPE_U64] = NCCL_U64 + 1,
    [HAL_TYPE_F16] = NCCL_F16 + 1,   [HAL_TYPE_F32] = NCCL_F32 + 1, [HAL_TYPE_F64] = NCCL_F64 + 1,
    [HAL_TYPE_BF16] = NCCL_BF16 + 1,
};

static const uint8_t reduction_numbers[] = {
    [HAL_REDUCE_SUM] = NCCL_SUM,
    [HAL_REDUCE_MEAN] = NCCL_MEAN,
    [HAL_REDUCE_MIN] = NCCL_MIN,
    [HAL_REDUCE_MAX] = NCCL_MAX,
};

const nccl_library *cuda_nccl(void)
{
    return &functions;
}

int cuda_nccl_type(uint32_t type)
{
    return type < HAL_TYPE_COUNT ? type_numbers[type] - 1 : -1;
}

int cuda_nccl_reduction(uint32_t reduction)
{
    return reduction_numbers[reduction];
}

/* Set before the library reads them, unless the user has: the configuration of a communicator has
 * no fields for them. Multicast of NVLink (NVLS) sums in the switch and has failed in containers
 * and on partitioned machines. Ranks connect when a communicator is created, so that no later call
 * waits for other processes (RUNTIME_CONNECT). */
static void environment_set(void)
{
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

/* The library's name or path; null: the user wants none. */
static const char *library_name(void)
{
    const char *value = secure_getenv("HAL_CUDA_NCCL");
    if (value && strcmp(value, "off") == 0) {
        return NULL;
    }
    return !value || value[0] == 0 || strcmp(value, "on") == 0 ? default_name : value;
}

static hal_status library_open(void)
{
    static const kit_symbol symbols[] = {
#define SYMBOL(name, parameters) {#name, offsetof(nccl_library, name), 1},
#define TEXT(name, parameters) {#name, offsetof(nccl_library, name), 1},
#include "collectives/nccl_symbols.inl"
#undef SYMBOL
#undef TEXT
    };
    const char *const names[] = {library_name(), NULL};
    const kit_library library = {
        .title = "NCCL",
        .names = names,
        .remedy = "install NCCL 2.14 or newer (libnccl2), or set HAL_CUDA_NCCL to its path",
        .missing = HAL_ERROR_LIBRARY_MISSING,
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof symbols[0],
    };
    if (!names[0]) {
        return kit_fail(HAL_ERROR_LIBRARY_MISSING, "NCCL is off by HAL_CUDA_NCCL");
    }
    environment_set();
    return kit_library_open(kit_host(), &library, &functions);
}

hal_status cuda_nccl_load(void)
{
    pthread_mutex_lock(&load_lock);
    const hal_status status = is_loaded ? HAL_OK : library_open();
    is_loaded = status == HAL_OK;
    pthread_mutex_unlock(&load_lock);
    return status;
}

/* MIN and MAX of floats ignore NaN in NCCL. The mean of integers is that of a sum in the narrow
 * type. So both are left to hal. The mean of floats multiplies by 1 / count before it adds. */
hal_status cuda_comm_backend(hal_plugin_instance *instance, hal_plugin_comm_backend *backend)
{
    const uint32_t integers = HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) |
                              HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32) |
                              HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64);
    const uint32_t floats = HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) |
                            HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_F64);
    int version = 0;
    (void)instance;
    HAL_TRY(cuda_nccl_load());
    if (functions.ncclGetVersion(&version) != NCCL_SUCCESS) {
        return kit_fail(HAL_ERROR_LIBRARY_MISSING, "NCCL does not tell its version");
    }
    hal_plugin_comm_backend made = {.size =
                                        backend->size < sizeof made ? backend->size : sizeof made,
                                    .version = (uint32_t)version,
                                    .name = "nccl",
                                    .sum_types = integers | floats,
                                    .mean_types = floats,
                                    .min_max_types = integers};
    if (cuda_peer_sum_is_offered()) {
        made.ordered_types = cuda_peer_types;
        made.ordered_bytes = CUDA_PEER_BYTES;
        made.ordered_ranks = CUDA_PEER_RANKS;
    }
    snprintf(made.description, sizeof made.description, "NCCL %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    memcpy(backend, &made, made.size);
    return HAL_OK;
}
