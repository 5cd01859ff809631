/* The one device: what it is, its instruction set and its threads.
 * HAL_CPU_ISA and HAL_CPU_THREADS are read when the device is opened. */
#include "device.h"

#include "gemm/plan.h"
#include "jit/jit.h"
#include "memory.h"
#include "status.h"
#include "threads/caches.h"
#include "threads/process.h"
#include "threads/processors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum { MAX_THREADS = 1024 };

typedef struct instruction_set {
    const char *name;
    const cpu_lanes *(*lanes)(void); /* null without the instructions */
    enum cpu_gemm_isa gemm;
} instruction_set;

#if defined(__x86_64__) || defined(__i386__)
/* Lanes and compiled kernels for AVX2 convert halves by F16C, for which not every compiler's
 * builtin has a name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static const cpu_lanes *avx512_or_null(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               ? cpu_lanes_avx512()
               : NULL;
}

static const cpu_lanes *amx_or_null(void)
{
    return cpu_gemm_isa_native(CPU_GEMM_ISA_AMX) ? avx512_or_null() : NULL;
}

static const cpu_lanes *bf16_or_null(void)
{
    return cpu_gemm_isa_native(CPU_GEMM_ISA_AVX512_BF16) ? avx512_or_null() : NULL;
}

static const cpu_lanes *avx2_or_null(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()
               ? cpu_lanes_avx2()
               : NULL;
}

/* Best first. */
static const instruction_set sets[] = {
    {"amx", amx_or_null, CPU_GEMM_ISA_AMX},
    {"avx512_bf16", bf16_or_null, CPU_GEMM_ISA_AVX512_BF16},
    {"avx512", avx512_or_null, CPU_GEMM_ISA_AVX512},
    {"avx2", avx2_or_null, CPU_GEMM_ISA_AVX2},
    {"sse2", cpu_lanes_sse2, CPU_GEMM_ISA_BASE},
};
#else
static const instruction_set sets[] = {{"plain", cpu_lanes_plain, CPU_GEMM_ISA_BASE}};
#endif

/* The last set is always there. */
static const instruction_set *best_set(void)
{
    const instruction_set *set = sets;
    while (!set->lanes() || !cpu_gemm_isa_is_fast(set->gemm)) {
        set++;
    }
    return set;
}

static hal_status choose_set(const instruction_set **set)
{
    const char *wanted = secure_getenv("HAL_CPU_ISA");
    char known[64] = "";
    *set = best_set();
    if (!wanted || wanted[0] == '\0') {
        return HAL_OK;
    }
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        const cpu_lanes *here = sets[i].lanes();
        if (strcmp(sets[i].name, wanted) == 0 && here) {
            *set = &sets[i];
            return HAL_OK;
        }
        if (here) {
            const size_t used = strlen(known);
            snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                     sets[i].name);
        }
    }
    return cpu_fail(
        HAL_ERROR_UNSUPPORTED,
        "HAL_CPU_ISA: expected one of %s, which this machine and build have, got \"%s\"; "
        "unset it to take the best",
        known, wanted);
}

/* Processors that the process may use, limited by the quota of its control groups. */
static uint32_t usable_processors(void)
{
    const uint32_t allowed = cpu_processors_allowed(), quota = cpu_processors_quota("");
    const uint32_t count = quota < allowed ? quota : allowed;
    return count > MAX_THREADS ? (uint32_t)MAX_THREADS : count;
}

static hal_status choose_threads(uint32_t *threads)
{
    const char *wanted = secure_getenv("HAL_CPU_THREADS");
    *threads = usable_processors();
    if (!wanted || wanted[0] == '\0') {
        return HAL_OK;
    }
    char *end = NULL;
    errno = 0;
    const long number = strtol(wanted, &end, 10);
    if (errno != 0 || *end != '\0' || number < 1 || number > MAX_THREADS) {
        return cpu_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "HAL_CPU_THREADS: expected a number from 1 to %d, got \"%s\"",
                        (int)MAX_THREADS, wanted);
    }
    *threads = (uint32_t)number;
    return HAL_OK;
}

/* Whether kernels are compiled; the interpreter serves tests and comparisons. */
static hal_status choose_compiler(const cpu_lanes *lanes, bool *compiles)
{
    const char *wanted = secure_getenv("HAL_CPU_JIT");
    const bool unset = !wanted || wanted[0] == '\0';
    *compiles = cpu_jit_is_possible(lanes) && (unset || strcmp(wanted, "on") == 0);
    if (unset || strcmp(wanted, "on") == 0 || strcmp(wanted, "off") == 0) {
        return HAL_OK;
    }
    return cpu_fail(HAL_ERROR_INVALID_ARGUMENT, "HAL_CPU_JIT: expected on or off, got \"%s\"",
                    wanted);
}

/* Reads a whole number from a variable; it stays where the variable is not set. */
static hal_status choose_number(const char *variable, const char *unit, uint64_t *number)
{
    const char *wanted = secure_getenv(variable);
    if (!wanted || wanted[0] == '\0') {
        return HAL_OK;
    }
    char *end = NULL;
    errno = 0;
    const unsigned long long read = strtoull(wanted, &end, 10);
    if (errno != 0 || *end != '\0' || wanted[0] < '0' || wanted[0] > '9') {
        return cpu_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: expected a number of %s, got \"%s\"",
                        variable, unit, wanted);
    }
    *number = read;
    return HAL_OK;
}

/* A system that grants fewer threads leaves a device with those, at least the calling one. */
static hal_status threads_start(hal_plugin_device *device, uint32_t threads)
{
    device->threads = 1;
    if (threads == 1) {
        return HAL_OK;
    }
    device->pool = cpu_thread_pool_create(threads);
    if (device->pool) {
        device->threads = cpu_thread_pool_size(device->pool);
        device->share = cpu_share_create(device->threads, usable_processors());
    }
    if (!device->share) {
        if (device->pool) {
            cpu_thread_pool_destroy(device->pool);
        }
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "cpu: no host memory for a pool of %u threads",
                        threads);
    }
    if (device->threads < threads) {
        char message[128];
        snprintf(message, sizeof(message), "cpu: the system started %u of %u threads",
                 device->threads, threads);
        kit_log(HAL_LOG_WARN, message);
    }
    return HAL_OK;
}

static void read_name(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "Processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) {
        return;
    }
    while (fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1] != '\0') {
            colon[2 + strcspn(colon + 2, "\n")] = '\0';
            snprintf(name, size, "%s", colon + 2);
            break;
        }
    }
    fclose(file);
}

/* Claims the functions that the tables have. */
static uint32_t claimed_math(const cpu_lanes *lanes, uint32_t type)
{
    uint32_t claimed = 0;
    for (uint32_t k = 0; k < HAL_IR_MATH_COUNT; k++) {
        const uint32_t opcode = HAL_IR_MATH_FIRST + k;
        if (lanes->unary[opcode][type] || lanes->binary[opcode][type][0]) {
            claimed |= UINT32_C(1) << k;
        }
    }
    return claimed;
}

/* Claims the types that memory may have. */
static uint32_t claimed_storage(const cpu_lanes *lanes)
{
    uint32_t claimed = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        claimed |= lanes->load[type] ? HAL_TYPE_BIT(type) : 0;
    }
    return claimed;
}

static void describe(hal_device_info *info, const instruction_set *set, uint32_t threads)
{
    const cpu_lanes *lanes = set->lanes();
    const uint64_t memory = cpu_memory_total();
    info->size = sizeof(*info);
    info->kind = HAL_DEVICE_CPU;
    read_name(info->name, sizeof(info->name));
    snprintf(info->id, sizeof(info->id), "cpu:%.56s", info->name);
    snprintf(info->driver, sizeof(info->driver), "lanes on %u threads", threads);
#if defined(__x86_64__)
    snprintf(info->architecture, sizeof(info->architecture), "x86-64 %s", lanes->name);
#elif defined(__aarch64__)
    snprintf(info->architecture, sizeof(info->architecture), "aarch64 %s", lanes->name);
#else
    snprintf(info->architecture, sizeof(info->architecture), "%s", lanes->name);
#endif
    info->memory_bytes = memory;
    info->max_allocation = memory;
    info->max_binding = memory;
    info->binding_alignment = 16;
    info->compute_units = threads;
    info->subgroup_width = CPU_BLOCK;
    info->max_group_items = CPU_MAX_ITEMS;
    for (uint32_t k = 0; k < 3; k++) {
        info->max_group_size[k] = CPU_MAX_ITEMS;
        info->max_grid[k] = k == 0 ? INT32_MAX : UINT16_MAX;
    }
    info->shared_bytes = 128 << 10;
    info->max_bindings = HAL_IR_MAX_BINDINGS;
    info->max_vector_bytes = 64;
    info->preferred_group = 256;
    info->storage_types = claimed_storage(lanes);
    info->arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                             HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                             HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                             HAL_TYPE_BIT(HAL_TYPE_F64);
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->features = HAL_FEATURE_ASYNC_COPY | HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_MAP_DEVICE |
                     HAL_FEATURE_TIMESTAMPS | HAL_FEATURE_ZERO_COPY | HAL_FEATURE_FILL_PATTERNS |
                     HAL_FEATURE_INDIRECT | HAL_FEATURE_COPY_ROWS | HAL_FEATURE_VIRTUAL_MEMORY |
                     HAL_FEATURE_GROUPED_PRODUCTS |
                     (cpu_gemm_isa_has_bytes(set->gemm) ? HAL_FEATURE_INTEGER_PRODUCTS : 0);
    info->math_f32 = claimed_math(lanes, CPU_F32);
    info->math_f64 = claimed_math(lanes, CPU_F64);
    info->max_queues = threads;
}

hal_status cpu_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    const instruction_set *set = best_set();
    uint32_t threads = usable_processors();
    *count = 1;
    if (capacity == 0) {
        return HAL_OK;
    }
    /* Wrong values of the variables are reported when the device is opened. */
    const char *isa = secure_getenv("HAL_CPU_ISA"), *limit = secure_getenv("HAL_CPU_THREADS");
    if (isa && isa[0] != '\0' && choose_set(&set) != HAL_OK) {
        set = best_set();
    }
    if (limit && limit[0] != '\0' && choose_threads(&threads) != HAL_OK) {
        threads = usable_processors();
    }
    memset(&infos[0], 0, sizeof(infos[0]));
    describe(&infos[0], set, threads);
    return HAL_OK;
}

hal_status cpu_device_open(uint32_t index, hal_plugin_device **device)
{
    const instruction_set *set = NULL;
    uint32_t threads = 1;
    bool compiles = false;
    uint64_t stream_bytes = (uint64_t)cpu_streaming_bytes(), background_us = 0;
    *device = NULL;
    if (index != 0) {
        return cpu_fail(HAL_ERROR_NOT_FOUND, "cpu:%u: there is one device, cpu:0", index);
    }
    HAL_TRY(choose_set(&set));
    HAL_TRY(choose_threads(&threads));
    HAL_TRY(choose_compiler(set->lanes(), &compiles));
    HAL_TRY(choose_number("HAL_CPU_STREAM", "bytes", &stream_bytes));
    HAL_TRY(choose_number("HAL_CPU_BACKGROUND", "microseconds", &background_us));
    hal_plugin_device *made = calloc(1, sizeof(*made));
    if (!made) {
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "cpu: no host memory for a device");
    }
    const hal_status status = threads_start(made, threads);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    made->lanes = set->lanes();
    made->gemm_isa = set->gemm;
    made->compiles = compiles;
    made->stream_bytes = stream_bytes;
    made->background_ns = 1000 * background_us;
    made->generation = cpu_process_generation();
    atomic_init(&made->arena_bytes, (size_t)1 << 16);
    atomic_init(&made->slot_count, 64);
    atomic_init(&made->memory_count, HAL_IR_MAX_BINDINGS);
    *device = made;
    return HAL_OK;
}

/* A child process has no workers to join: its pool is leaked. */
void cpu_device_close(hal_plugin_device *device)
{
    if (!device) {
        return;
    }
    if (device->pool && device->generation == cpu_process_generation()) {
        cpu_thread_pool_destroy(device->pool);
    }
    cpu_share_destroy(device->share);
    free(device);
}
