/* memory.c: faults in the life of memory, and in what a device says of its limits. */
#include "mutant.h"

#include <pthread.h>

#define LARGE (UINT64_C(1) << 20)
#define ALIASED 24u /* live blocks of one size from which on they share */

/* The mutant's data of a block of memory. */
typedef struct block {
    hal_plugin_memory *memory;
    struct block *next; /* of all live ones */
    uint32_t kind, users;
    uint64_t bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;

/* ---- Memory is never given back ---- */

static hal_status allocate_noting_size(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                       hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    block *made = status == HAL_OK ? wrap_keep(*memory, sizeof(*made)) : NULL;
    if (made) {
        made->bytes = bytes;
    }
    return status;
}

static void free_small_ones(hal_plugin_device *device, hal_plugin_memory *memory)
{
    const block *known = wrap_find(memory);
    if (!known || known->bytes < LARGE) {
        wrap_drop(memory);
        wrap_inside()->memory_free(device, memory);
    }
}

static void leak_large(wrap_table *table)
{
    table->memory_allocate = allocate_noting_size;
    table->memory_free = free_small_ones;
}

/* What a batch took from the host is never returned. */
static hal_status submit_and_leak(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_batch copy;
    return wrap_batch_copy(&copy, batch)
               ? wrap_inside()->submit(queue, &copy.batch, waits, wait_count, value)
               : wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
}

static void leak_batch(wrap_table *table)
{
    table->submit = submit_and_leak;
}

static void kernel_is_kept(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    (void)kernel;
}

static void leak_kernel(wrap_table *table)
{
    table->kernel_destroy = kernel_is_kept;
}

/* ---- Many kernels are kept for a later use, which is no fault ---- */

enum { KEPT_KERNELS = 10000 };

static struct {
    hal_plugin_device *device;
    hal_plugin_kernel *kernel;
} kept_kernels[KEPT_KERNELS];
static uint32_t kept_next;

/* Products are not kept. */
static hal_status gemm_marked(hal_plugin_device *device, const hal_gemm_description *description,
                              hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    const hal_status status = wrap_inside()->gemm(device, description, kernel, workspace_bytes);
    if (status == HAL_OK) {
        (void)wrap_keep(*kernel, 1);
    }
    return status;
}

static void kernel_keep(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (wrap_find(kernel)) {
        wrap_drop(kernel);
        wrap_inside()->kernel_destroy(device, kernel);
        return;
    }
    pthread_mutex_lock(&lock);
    const uint32_t place = kept_next++ % KEPT_KERNELS;
    hal_plugin_device *old_device = kept_kernels[place].device;
    hal_plugin_kernel *old = kept_kernels[place].kernel;
    kept_kernels[place].device = device;
    kept_kernels[place].kernel = kernel;
    pthread_mutex_unlock(&lock);
    if (old) {
        wrap_inside()->kernel_destroy(old_device, old);
    }
}

static void close_with_kept_kernels(hal_plugin_device *device)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < KEPT_KERNELS; i++) {
        if (kept_kernels[i].kernel && kept_kernels[i].device == device) {
            wrap_inside()->kernel_destroy(device, kept_kernels[i].kernel);
            kept_kernels[i].kernel = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    wrap_inside()->device_close(device);
}

static void keep_kernels(wrap_table *table)
{
    table->gemm = gemm_marked;
    table->kernel_destroy = kernel_keep;
    table->device_close = close_with_kept_kernels;
}

/* ---- Two live blocks are one ---- */

static block *find_shared(uint32_t kind, uint64_t bytes)
{
    uint32_t live = 0;
    block *last = NULL;
    for (block *one = blocks; one != NULL; one = one->next) {
        if (one->kind == kind && one->bytes == bytes) {
            live += one->users;
            last = one;
        }
    }
    return live + 1 >= ALIASED ? last : NULL;
}

static hal_status allocate_aliased(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                   hal_plugin_memory **memory)
{
    pthread_mutex_lock(&lock);
    hal_status status = HAL_OK;
    block *one = find_shared(kind, bytes);
    if (one) {
        *memory = one->memory;
        one->users++;
    } else {
        status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
        one = status == HAL_OK ? wrap_keep(*memory, sizeof(*one)) : NULL;
        if (one) {
            *one = (block){.memory = *memory, .kind = kind, .users = 1, .bytes = bytes};
            one->next = blocks;
            blocks = one;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void free_aliased(hal_plugin_device *device, hal_plugin_memory *memory)
{
    pthread_mutex_lock(&lock);
    block *one = wrap_find(memory);
    if (!one || --one->users == 0) {
        for (block **place = &blocks; one && *place != NULL; place = &(*place)->next) {
            if (*place == one) {
                *place = one->next;
                break;
            }
        }
        wrap_drop(memory);
        wrap_inside()->memory_free(device, memory);
    }
    pthread_mutex_unlock(&lock);
}

static void memory_aliased(wrap_table *table)
{
    table->memory_allocate = allocate_aliased;
    table->memory_free = free_aliased;
}

/* ---- What the device says ---- */

static hal_status info_swapped(hal_plugin_device *device, uint64_t *free_bytes,
                               uint64_t *total_bytes)
{
    return wrap_inside()->memory_info(device, total_bytes, free_bytes);
}

static void memory_info(wrap_table *table)
{
    table->memory_info = info_swapped;
}

static hal_status enumerate_shared(hal_plugin_instance *instance, hal_device_info *infos,
                                   uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].shared_bytes *= 2;
    }
    return status;
}

static hal_status create_within_shared(hal_plugin_device *device, const hal_ir_kernel *ir,
                                       hal_plugin_kernel **kernel)
{
    hal_device_info info[1] = {{0}};
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        bytes += (uint64_t)ir->memories[i].count * hal_type_size(ir->memories[i].type);
    }
    if (wrap_inside()->enumerate(wrap_inside()->instance, info, 1, &count) == HAL_OK &&
        bytes > info[0].shared_bytes) {
        return wrap_fail(HAL_ERROR_DEVICE_LOST, "mutant: there is no such shared memory");
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

/* Shared memory of twice the size that it has. */
static void claim_shared(wrap_table *table)
{
    table->enumerate = enumerate_shared;
    table->kernel_create = create_within_shared;
}

/* ---- The fewest bindings that a device may have ---- */

static hal_status enumerate_few_bindings(hal_plugin_instance *instance, hal_device_info *infos,
                                         uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].max_bindings = 8;
    }
    return status;
}

static void few_bindings(wrap_table *table)
{
    table->enumerate = enumerate_few_bindings;
}

/* ---- A device on a card, for which hal makes other kernels ---- */

static hal_status enumerate_discrete(hal_plugin_instance *instance, hal_device_info *infos,
                                     uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].kind = HAL_DEVICE_DISCRETE;
    }
    return status;
}

static void discrete(wrap_table *table)
{
    table->enumerate = enumerate_discrete;
}

/* ---- Copies of the host ---- */

static void copy_short(hal_plugin_device *device, void *target, const void *source, uint64_t bytes)
{
    wrap_inside()->host_copy(device, target, source, bytes - 1);
}

static void host_copy_short(wrap_table *table)
{
    table->host_copy = copy_short;
}

const mutant mutants_memory[] = {{.name = "leak_large", .table = leak_large},
                                 {.name = "memory_aliased", .table = memory_aliased},
                                 {.name = "memory_info", .table = memory_info},
                                 {.name = "claim_shared", .table = claim_shared},
                                 {.name = "kept_kernels", .table = keep_kernels},
                                 {.name = "few_bindings", .table = few_bindings},
                                 {.name = "discrete", .table = discrete},
                                 {.name = "leak_batch", .table = leak_batch},
                                 {.name = "leak_kernel", .table = leak_kernel},
                                 {.name = "host_copy_short", .table = host_copy_short},
                                 {.name = NULL}};
