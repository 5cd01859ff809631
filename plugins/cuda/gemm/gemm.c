/* Native matrix products, see gemm/gemm.h: tensor maps, the parameter blocks of launches, and
 * modules. On the warpgroup units the choice of the kernel is gemm/plan.c and its text
 * gemm/wgmma.c, of strict F32 gemm/fma_plan.c and gemm/fma.c. */
#include "gemm/gemm.h"

#include "gemm/fma.h"
#include "gemm/fma_plan.h"
#include "gemm/launch.h"
#include "gemm/tile/ring.h"
#include "gemm/wgmma.h"
#include "kernel.h"
#include "capability.h"
#include "modules.h"

#include <kit/hash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `rounds`: F32 becomes TF32 as it is copied. The address is replaced in each launch. The driver
 * wants a current context. */
static hal_status map_encode(const cuda_gemm_operand *o, bool rounds, uint8_t *map)
{
    static const int types[HAL_TYPE_COUNT] = {
        [HAL_TYPE_F16] = CUDA_MAP_F16, [HAL_TYPE_BF16] = CUDA_MAP_BF16,
        [HAL_TYPE_F32] = CUDA_MAP_F32, [HAL_TYPE_F8_E4M3] = CUDA_MAP_U8,
        [HAL_TYPE_I8] = CUDA_MAP_U8,   [HAL_TYPE_U8] = CUDA_MAP_U8,
        [HAL_TYPE_I32] = CUDA_MAP_I32, [HAL_TYPE_U32] = CUDA_MAP_U32};
    const uint64_t size = hal_type_size(o->type);
    const uint64_t extents[3] = {(uint64_t)o->inner, (uint64_t)o->outer, o->batch};
    const uint64_t row = (uint64_t)o->leading * size;
    const uint64_t strides[2] = {row, o->batch > 1 ? (uint64_t)o->batch_stride * size
                                                   : row * (uint64_t)o->outer};
    const uint32_t box[3] = {o->box_inner, o->box_outer, 1}, steps[3] = {1, 1, 1};
    return cuda_check(
        cuda_functions()->cuTensorMapEncodeTiled(
            map, rounds ? CUDA_MAP_TF32 : types[o->type], 3, (void *)(uintptr_t)4096, extents,
            strides, box, steps, 0, CUDA_MAP_SWIZZLE_128, CUDA_MAP_PROMOTE_256, 0),
        "gemm: describing a matrix of %llu x %llu x %llu elements", (unsigned long long)extents[2],
        (unsigned long long)extents[1], (unsigned long long)extents[0]);
}

/* Without its address, which is that of a launch. */
static cuda_gemm_source source_of(const cuda_gemm_operand *o, uint32_t k)
{
    const int64_t size = hal_type_size(o->type);
    return (cuda_gemm_source){
        .line = o->leading * size, .batch = o->batch > 1 ? o->batch_stride * size : 0, .k = k};
}

static void launch_fill_fma(const cuda_gemm_plan *plan, cuda_fma_block *block)
{
    const hal_gemm_description *d = &plan->product;
    *block = (cuda_fma_block){.stride_a = d->stride_a,
                              .stride_b = d->stride_b,
                              .lda = (uint32_t)d->lda,
                              .ldb = (uint32_t)d->ldb,
                              .k = (uint32_t)d->k,
                              .rounds = plan->rounds,
                              .share = plan->share,
                              .longer = plan->longer,
                              .one = 1};
}

static hal_status launch_fill(const cuda_gemm_plan *plan, struct cuda_gemm_launch *launch)
{
    const hal_gemm_description *d = &plan->product;
    cuda_gemm_block *block = &launch->block;
    launch->input_count = d->input_count;
    launch->strict = plan->key.tile > 0;
    for (uint32_t i = 0; i < 3; i++) {
        launch->mapped[i] = !launch->strict && cuda_gemm_is_mapped(&plan->key, i);
    }
    launch->swapped = plan->key.swapped;
    launch->of_integers = cuda_gemm_is_integer(&plan->key);
    launch->in_memory = plan->key.in_memory;
    block->ldc = d->ldc;
    block->stride_c = d->stride_c;
    block->m = (uint32_t)d->m;
    block->n = (uint32_t)d->n;
    const uint32_t depth =
        plan->key.tile > 0 ? cuda_fma_tile_of(&plan->key)->depth : cuda_gemm_line(d->type_a);
    block->steps = (uint32_t)((d->k + depth - 1) / depth);
    block->tiles_m = plan->tiles_m;
    block->tiles_n = plan->tiles_n;
    block->batch = d->batch;
    block->places = plan->tiles_m * plan->tiles_n * d->batch;
    block->tiles = block->places * (plan->key.in_memory ? plan->key.split : 1);
    block->raster = plan->raster;
    block->batched_a = plan->operands[0].batch > 1;
    block->batched_b = plan->operands[1].batch > 1;
    for (uint32_t i = 0; i < d->input_count; i++) {
        block->inputs[i] = (cuda_gemm_input){.row_stride = d->inputs[i].row_stride,
                                             .column_stride = d->inputs[i].column_stride,
                                             .batch_stride = d->inputs[i].batch_stride};
    }
    if (launch->strict) {
        launch_fill_fma(plan, &block->fma);
        return HAL_OK;
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 3 && status == HAL_OK; i++) {
        if (i < 2 && !launch->mapped[i]) {
            const cuda_gemm_source source = source_of(&plan->operands[i], (uint32_t)d->k);
            memcpy(block->maps[i], &source, sizeof source);
        } else if (launch->mapped[i]) {
            status = map_encode(&plan->operands[i], i < 2 && cuda_gemm_rounds(&plan->key),
                                block->maps[i]);
        }
    }
    return status;
}

/* The key is zero where nothing was set, so its bytes are equal for equal keys. */
static void key_hash(const cuda_gemm_key *key, uint64_t hash[2])
{
    cuda_gemm_key plain;
    memcpy(&plain, key, sizeof plain);
    plain.epilogue = NULL;
    hash[0] = hash[1] = 0;
    if (key->epilogue) {
        cuda_kernel_hash(key->epilogue, hash);
    }
    kit_hash_add(hash, &plain, sizeof plain);
}

static hal_status gemm_write(const void *key, const hal_plugin_device *device, kit_text *text)
{
    (void)device;
    return ((const cuda_gemm_key *)key)->tile > 0 ? cuda_fma_write(key, text)
                                                  : cuda_gemm_write(key, text);
}

static uint32_t shared_bytes(const cuda_gemm_key *key)
{
    return key->tile > 0 ? cuda_fma_shared_bytes(key) : cuda_gemm_shared_bytes(key);
}

/* Clusters of a kernel that are on the device at once. More would wait until the first ones have
 * multiplied all their tiles. */
static uint32_t cluster_count(const hal_plugin_device *device, const cuda_gemm_key *key,
                              cuda_function function)
{
    const cuda_launch_attribute attribute = {.kind = CUDA_LAUNCH_CLUSTER,
                                             .value = {cuda_gemm_cluster(key), 1, 1}};
    const cuda_launch_config config = {.grid = {cuda_gemm_cluster(key), 1, 1},
                                       .group = {CUDA_GEMM_THREADS, 1, 1},
                                       .shared_bytes = shared_bytes(key),
                                       .attributes = &attribute,
                                       .attribute_count = 1};
    int count = 0;
    if (cuda_gemm_cluster(key) == 1) {
        return device->units;
    }
    if (!cuda_functions()->cuOccupancyMaxActiveClusters ||
        cuda_functions()->cuOccupancyMaxActiveClusters(&count, function, &config) != 0 ||
        count < 1) {
        return 1;
    }
    return (uint32_t)count;
}

/* Finds the module of a key or makes it. The context is current. */
static hal_status module_find(hal_plugin_device *device, const cuda_gemm_key *key,
                              const cuda_shared_module **found)
{
    cuda_kernel_source source = {
        .name = "gemm", .write = gemm_write, .what = key, .loads_text = device->gemm_loads_text};
    key_hash(key, source.key);
    return cuda_modules_find(device, &source, shared_bytes(key), found);
}

static void plan_log(const hal_gemm_description *d, const cuda_gemm_plan *plan, uint32_t groups)
{
    static const char *const shared[] = {"", ", pairs share A", ", pairs share B"};
    char line[256];
    static const char *const names[HAL_TYPE_COUNT] = {
        [HAL_TYPE_F32] = "f32", [HAL_TYPE_F16] = "f16",         [HAL_TYPE_BF16] = "bf16",
        [HAL_TYPE_I8] = "i8",   [HAL_TYPE_F8_E4M3] = "f8_e4m3", [HAL_TYPE_U8] = "u8"};
    const char *type = names[d->type_a];
    if (plan->key.tile > 0) {
        const cuda_fma_tile *tile = cuda_fma_tile_of(&plan->key);
        snprintf(line, sizeof line,
                 "cuda: gemm: %lldx%lldx%lld x %u of strict f32: tile %ux%u, %u groups, %u rounds "
                 "of whole tiles, about %lld ns",
                 (long long)d->m, (long long)d->n, (long long)d->k, d->batch, (uint32_t)tile->rows,
                 (uint32_t)tile->columns, groups, plan->rounds, (long long)plan->ns);
        kit_log(HAL_LOG_DEBUG, line);
        return;
    }
    snprintf(
        line, sizeof line,
        "cuda: gemm: %lldx%lldx%lld x %u of %s: tile %ux%u%s%s%s, %u%s of k%s, %u groups, about "
        "%lld ns",
        (long long)d->m, (long long)d->n, (long long)d->k, d->batch, type,
        cuda_gemm_rows(&plan->key), plan->key.columns,
        plan->key.swapped ? " of the transposed product" : "", shared[plan->key.shared],
        plan->key.alternates ? ", in turn" : "", plan->key.split,
        plan->key.split == 1 ? " part" : " parts", plan->key.in_memory ? " through memory" : "",
        groups, (long long)plan->ns);
    kit_log(HAL_LOG_DEBUG, line);
}

/* Whether the arithmetic is that of multiply-adds; sums of integers are exact in any order. */
static bool is_strict(const hal_gemm_description *d)
{
    return d->precision == HAL_GEMM_STRICT && hal_type_is_float(d->type_a);
}

/* The strict kernel serves the other classes of F32 where it takes less time. */
static hal_status plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                              double most_ns, cuda_gemm_plan *plan)
{
    cuda_gemm_plan strict;
    if (is_strict(d)) {
        return cuda_fma_plan_choose(device, d, plan);
    }
    const bool has_strict = device->gemm_tile.columns == 0 && device->gemm_tile.strict == 0 &&
                            cuda_fma_plan_choose(device, d, &strict) == HAL_OK;
    const hal_status status = cuda_gemm_plan_choose(device, d, most_ns, plan);
    if (has_strict && (status != HAL_OK || strict.ns < plan->ns)) {
        *plan = strict;
        return HAL_OK;
    }
    return status;
}

hal_status cuda_gemm_estimate(hal_plugin_device *device, const hal_gemm_description *description,
                              double most_ns, double *nanoseconds)
{
    cuda_gemm_plan plan;
    const bool is_forced =
        is_strict(description) ? device->gemm_tile.strict > 0 : device->gemm_tile.columns > 0;
    const hal_status status = plan_choose(device, description, is_forced ? 0 : most_ns, &plan);
    *nanoseconds = status == HAL_OK && !is_forced ? plan.ns : 0;
    return status;
}

static uint64_t plan_workspace(const cuda_gemm_plan *plan)
{
    return plan->partials ? (uint64_t)plan->groups * cuda_fma_partial_bytes(&plan->key) : 0;
}

hal_status cuda_gemm_workspace(hal_plugin_device *device, const hal_gemm_description *description,
                               uint64_t *workspace_bytes)
{
    cuda_gemm_plan plan;
    HAL_TRY(plan_choose(device, description, 0, &plan));
    *workspace_bytes = plan_workspace(&plan);
    return HAL_OK;
}

hal_status cuda_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    cuda_gemm_plan plan;
    *kernel = NULL;
    *workspace_bytes = 0;
    HAL_TRY(plan_choose(device, description, 0, &plan));
    hal_status status = HAL_OK;
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    struct cuda_gemm_launch *launch = aligned_alloc(64, sizeof *launch);
    const cuda_shared_module *module = NULL;
    if (!made || !launch) {
        status = kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: gemm: no host memory");
    } else {
        memset(launch, 0, sizeof *launch);
        status = cuda_context_push(device);
    }
    if (status == HAL_OK) {
        status = launch_fill(&plan, launch);
        if (status == HAL_OK) {
            status = module_find(device, &plan.key, &module);
        }
        if (status == HAL_OK) {
            const uint32_t tiles = launch->block.tiles;
            const uint32_t most = cluster_count(device, &plan.key, module->function);
            launch->groups = plan.key.tile > 0
                                 ? plan.groups
                                 : (tiles < most ? tiles : most) * cuda_gemm_cluster(&plan.key);
        }
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        free(launch);
        free(made);
        return status;
    }
    plan_log(description, &plan, launch->groups);
    if (plan.key.in_memory) {
        atomic_store(&device->needs_parts, true);
    }
    *made = (hal_plugin_kernel){
        .function = module->function,
        .serial = atomic_fetch_add(&device->kernels, 1) + 1,
        .group = {plan.key.tile > 0 ? CUDA_FMA_THREADS : CUDA_GEMM_THREADS, 1, 1},
        .binding_count = 4 + description->input_count,
        .scalar_bytes = 2 * sizeof(double),
        .dynamic_shared = shared_bytes(&plan.key),
        .waits_itself = (device->features & CUDA_FEATURE_EARLY_START) != 0,
        .in_clusters = cuda_gemm_cluster(&plan.key) > 1,
        .gemm = launch,
        .groups = launch->groups,
        .write = cuda_gemm_parameters};
    *kernel = made;
    *workspace_bytes = plan_workspace(&plan);
    return HAL_OK;
}
