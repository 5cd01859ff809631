/* Native matrix products on the warpgroup units, see gemm.h: what is taken, the choice of the tile,
 * tensor maps, and the parameter blocks of launches. The kernels come from gemm_text.c. */
#include "gemm.h"

#include "quirks.h"

#include <stdlib.h>
#include <string.h>

/* Bytes: of the start of a matrix and of its rows, for tensor maps. */
enum { MAP_ALIGNMENT = 16 };
static const int64_t MAX_EXTENT = INT32_MAX;
static const int64_t MAX_STRIDE = INT64_C(1) << 40; /* bytes */

/* A matrix as a tensor map sees it: contiguous along `inner`. */
typedef struct gemm_operand {
    hal_type type;
    int64_t inner, outer, leading, batch_stride; /* elements */
    uint32_t batch;                              /* matrices; 1 where all products share it */
    uint32_t box_inner, box_outer;
} gemm_operand;

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool operand_is_mappable(const gemm_operand *o)
{
    const int64_t size = hal_type_size(o->type);
    return o->inner > 0 && o->outer > 0 && o->inner <= MAX_EXTENT && o->outer <= MAX_EXTENT &&
           o->leading < MAX_STRIDE / size && o->leading * size % MAP_ALIGNMENT == 0 &&
           o->batch_stride < MAX_STRIDE / size && o->batch_stride * size % MAP_ALIGNMENT == 0;
}

static void operands_describe(const hal_gemm_description *d, const cuda_gemm_key *key,
                              gemm_operand operands[3])
{
    const uint32_t batch_a = d->stride_a != 0 ? d->batch : 1,
                   batch_b = d->stride_b != 0 ? d->batch : 1;
    const uint32_t store = CUDA_GEMM_STORE_ROW / hal_type_size(key->type_c);
    operands[0] = (gemm_operand){.type = d->type_a,
                                 .inner = d->transpose_a ? d->m : d->k,
                                 .outer = d->transpose_a ? d->k : d->m,
                                 .leading = d->lda,
                                 .batch_stride = d->stride_a,
                                 .batch = batch_a,
                                 .box_inner = CUDA_GEMM_DEPTH,
                                 .box_outer = d->transpose_a ? CUDA_GEMM_DEPTH : CUDA_GEMM_ROWS};
    operands[1] = (gemm_operand){.type = d->type_b,
                                 .inner = d->transpose_b ? d->k : d->n,
                                 .outer = d->transpose_b ? d->n : d->k,
                                 .leading = d->ldb,
                                 .batch_stride = d->stride_b,
                                 .batch = batch_b,
                                 .box_inner = CUDA_GEMM_DEPTH,
                                 .box_outer = d->transpose_b ? key->columns : CUDA_GEMM_DEPTH};
    operands[2] = (gemm_operand){.type = d->type_c,
                                 .inner = d->n,
                                 .outer = d->m,
                                 .leading = d->ldc,
                                 .batch_stride = d->stride_c,
                                 .batch = d->batch,
                                 .box_inner = store,
                                 .box_outer = CUDA_GEMM_BOX};
}

/* Estimated cycles of a product with tiles of so many columns. A multiprocessor multiplies 4 x
 * columns cycles for a stage. The 55 bytes a cycle from the L2, and what the end of a tile takes,
 * are assumed, not fitted to measurements. */
static double tile_cost(const hal_gemm_description *d, uint32_t columns, uint32_t units)
{
    const double tiles =
        (double)divide_up(d->m, CUDA_GEMM_ROWS) * (double)divide_up(d->n, columns) * d->batch;
    const double waves = (double)divide_up((int64_t)tiles, units);
    const double multiply = 4.0 * columns,
                 copy = (CUDA_GEMM_ROWS + columns) * CUDA_GEMM_DEPTH * 2 / 55.0;
    const double step = multiply > copy ? multiply : copy;
    return waves * ((double)divide_up(d->k, CUDA_GEMM_DEPTH) * step + 300.0 + 3.0 * columns);
}

static uint32_t tile_choose(const hal_gemm_description *d, uint32_t units, uint32_t max_columns)
{
    static const uint32_t choices[] = {64, 128, 192, 256};
    uint32_t best = choices[0];
    for (uint32_t i = 1; i < sizeof choices / sizeof choices[0]; i++) {
        if (choices[i] <= max_columns &&
            tile_cost(d, choices[i], units) < tile_cost(d, best, units)) {
            best = choices[i];
        }
    }
    return best;
}

/* Whether tiles of 128 rows keep a fifth of the device busy: else the portable kernel, which splits
 * k over groups, is as fast or faster (crossover between 256 and 512 cubed on an H100). */
static bool tile_is_worth(const hal_gemm_description *d, uint32_t columns, uint32_t units)
{
    const double ideal = (double)d->m * (double)d->n * (double)d->k * d->batch / (1024.0 * units);
    return ideal > 0.2 * tile_cost(d, columns, units);
}

static hal_status gemm_decline(const char *what)
{
    return cuda_fail(HAL_ERROR_UNSUPPORTED, "cuda: gemm: %s", what);
}

/* Chooses the kernel, and describes the operands. */
static hal_status gemm_plan(const hal_plugin_device *device, const hal_gemm_description *d,
                            cuda_gemm_key *key, gemm_operand operands[3])
{
    if (device->capability != 90 || cuda_functions()->cuTensorMapEncodeTiled == NULL ||
        cuda_functions()->cuTensorMapReplaceAddress == NULL) {
        return gemm_decline("device: expected compute capability 9.0 and tensor maps");
    }
    memset(key, 0, sizeof *key);
    key->type = d->type_a;
    key->type_c = d->type_c;
    key->transpose_a = d->transpose_a;
    key->transpose_b = d->transpose_b;
    key->reads_c = !d->beta_is_zero;
    key->flushes = d->precision == HAL_GEMM_ACCURATE;
    key->input_count = d->input_count;
    key->epilogue = d->epilogue;
    for (uint32_t i = 0; i < d->input_count; i++) {
        key->inputs[i] = d->inputs[i].type;
    }
    key->columns = tile_choose(d, device->units, key->flushes ? 128 : CUDA_GEMM_MAX_COLUMNS);
    if (d->precision == HAL_GEMM_STRICT) {
        return gemm_decline("precision: expected accurate or fast: the units truncate sums");
    }
    if (d->type_a != d->type_b || !cuda_gemm_is_supported(key)) {
        return gemm_decline("types: expected A and B of f16 or bf16, C of theirs or f32, and a "
                            "short epilogue");
    }
    operands_describe(d, key, operands);
    for (uint32_t i = 0; i < 3; i++) {
        if (!operand_is_mappable(&operands[i])) {
            return gemm_decline("strides: expected multiples of 16 bytes");
        }
    }
    if (!tile_is_worth(d, key->columns, device->units)) {
        return gemm_decline("shape: expected one that fills the device");
    }
    return HAL_OK;
}

/* The address is replaced in each launch. The driver wants a current context. */
static hal_status map_encode(const gemm_operand *o, uint8_t *map)
{
    static const int types[HAL_TYPE_COUNT] = {[HAL_TYPE_F16] = CUDA_MAP_F16,
                                              [HAL_TYPE_BF16] = CUDA_MAP_BF16,
                                              [HAL_TYPE_F32] = CUDA_MAP_F32};
    const uint64_t size = hal_type_size(o->type);
    const uint64_t extents[3] = {(uint64_t)o->inner, (uint64_t)o->outer, o->batch};
    const uint64_t row = (uint64_t)o->leading * size;
    const uint64_t strides[2] = {row, o->batch > 1 ? (uint64_t)o->batch_stride * size
                                                   : row * (uint64_t)o->outer};
    const uint32_t box[3] = {o->box_inner, o->box_outer, 1}, steps[3] = {1, 1, 1};
    return cuda_check(cuda_functions()->cuTensorMapEncodeTiled(
                          map, types[o->type], 3, (void *)(uintptr_t)4096, extents, strides, box,
                          steps, 0, CUDA_MAP_SWIZZLE_128, CUDA_MAP_PROMOTE_256, 0),
                      "gemm: describing a matrix of %llu x %llu x %llu elements",
                      (unsigned long long)extents[2], (unsigned long long)extents[1],
                      (unsigned long long)extents[0]);
}

static hal_status launch_fill(const hal_plugin_device *device, const hal_gemm_description *d,
                              const cuda_gemm_key *key, const gemm_operand operands[3],
                              struct cuda_gemm_launch *launch)
{
    cuda_gemm_block *block = &launch->block;
    const int64_t tiles_m = divide_up(d->m, CUDA_GEMM_ROWS),
                  tiles_n = divide_up(d->n, key->columns);
    if (tiles_m * tiles_n > INT32_MAX / (int64_t)d->batch) {
        return gemm_decline("shape: expected fewer than 2^31 tiles");
    }
    launch->input_count = d->input_count;
    block->ldc = d->ldc;
    block->stride_c = d->stride_c;
    block->m = (uint32_t)d->m;
    block->n = (uint32_t)d->n;
    block->steps = (uint32_t)divide_up(d->k, CUDA_GEMM_DEPTH);
    block->tiles_m = (uint32_t)tiles_m;
    block->tiles_n = (uint32_t)tiles_n;
    block->tiles = (uint32_t)(tiles_m * tiles_n) * d->batch;
    block->raster = key->columns >= 192 ? 16 : 8;
    block->batched_a = operands[0].batch > 1;
    block->batched_b = operands[1].batch > 1;
    launch->groups = block->tiles < device->units ? block->tiles : device->units;
    for (uint32_t i = 0; i < d->input_count; i++) {
        block->inputs[i] = (cuda_gemm_input){.row_stride = d->inputs[i].row_stride,
                                             .column_stride = d->inputs[i].column_stride,
                                             .batch_stride = d->inputs[i].batch_stride};
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 3 && status == HAL_OK; i++) {
        status = map_encode(&operands[i], block->maps[i]);
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
    if (key->epilogue != NULL) {
        cuda_kernel_hash(key->epilogue, hash);
    }
    cuda_hash_add(hash, &plain, sizeof plain);
}

static hal_status gemm_write(const void *key, const hal_plugin_device *device, kit_text *text)
{
    (void)device;
    return cuda_gemm_write(key, text);
}

/* Finds the module of a key or makes it. The context is current. */
static hal_status module_find(hal_plugin_device *device, const cuda_gemm_key *key,
                              const cuda_gemm_module **found)
{
    uint64_t hash[2];
    key_hash(key, hash);
    pthread_mutex_lock(&device->gemm_lock);
    const cuda_gemm_module *module = device->gemm_modules;
    while (module != NULL && (module->key[0] != hash[0] || module->key[1] != hash[1])) {
        module = module->next;
    }
    hal_status status = HAL_OK;
    if (module == NULL) {
        cuda_gemm_module *made = calloc(1, sizeof *made);
        hal_plugin_kernel loaded = {.dynamic_shared = cuda_gemm_shared_bytes(key)};
        const cuda_kernel_source source = {
            .name = "gemm", .write = gemm_write, .what = key, .key = {hash[0], hash[1]}};
        status = made == NULL ? cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: gemm: no host memory")
                              : cuda_kernel_compile(device, &source, &loaded);
        if (status == HAL_OK) {
            *made = (cuda_gemm_module){.key = {hash[0], hash[1]},
                                       .module = loaded.module,
                                       .function = loaded.function,
                                       .next = device->gemm_modules};
            device->gemm_modules = made;
            module = made;
        } else {
            free(made);
        }
    }
    pthread_mutex_unlock(&device->gemm_lock);
    *found = module;
    return status;
}

hal_status cuda_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    cuda_gemm_key key;
    gemm_operand operands[3];
    *kernel = NULL;
    *workspace_bytes = 0;
    hal_status status = gemm_plan(device, description, &key, operands);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    struct cuda_gemm_launch *launch = aligned_alloc(64, sizeof *launch);
    const cuda_gemm_module *module = NULL;
    if (made == NULL || launch == NULL) {
        status = cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: gemm: no host memory");
    } else {
        memset(launch, 0, sizeof *launch);
        status = cuda_context_push(device);
    }
    if (status == HAL_OK) {
        status = launch_fill(device, description, &key, operands, launch);
        if (status == HAL_OK) {
            status = module_find(device, &key, &module);
        }
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        free(launch);
        free(made);
        return status;
    }
    *made = (hal_plugin_kernel){.function = module->function,
                                .serial = atomic_fetch_add(&device->kernels, 1) + 1,
                                .group = {CUDA_GEMM_THREADS, 1, 1},
                                .binding_count = 4 + description->input_count,
                                .scalar_bytes = 2 * sizeof(double),
                                .dynamic_shared = cuda_gemm_shared_bytes(&key),
                                .waits_itself = (device->quirks & CUDA_QUIRK_EARLY_START) != 0,
                                .gemm = launch};
    *kernel = made;
    return HAL_OK;
}

void cuda_gemm_forget(hal_plugin_device *device, bool lost)
{
    const bool unloads =
        !lost && device->gemm_modules != NULL && cuda_context_push(device) == HAL_OK;
    while (device->gemm_modules != NULL) {
        cuda_gemm_module *module = device->gemm_modules;
        device->gemm_modules = module->next;
        if (unloads) {
            cuda_functions()->cuModuleUnload(module->module);
        }
        free(module);
    }
    if (unloads) {
        cuda_context_pop();
    }
}
