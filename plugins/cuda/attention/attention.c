/* Native attention, see attention/attention.h: the choice of the kernel, tensor maps and parameter
 * blocks. The text is attention/text.c. */
#include "attention/attention.h"

#include "attention/text.h"
#include "capability.h"
#include "memory.h"
#include "modules.h"

#include <kit/hash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(cuda_attention_block) <= CUDA_MAX_PARAMETERS, "a launch has room");

enum {
    VECTOR = 8, /* elements of 16 bytes */
    STEP = 16,  /* of a product */
    SECTION_BYTES = 25 << 20,
    FEW_ROUNDS = 6,
    HALF_SHARED = 113 << 10, /* of a compute unit */
    MANY_ROWS = 4096 /* of short heads, from which on groups of three warpgroups are faster */
};

#define MAX_STRIDE (INT64_C(1) << 38)

static hal_status decline(const char *expected)
{
    return kit_fail(HAL_ERROR_UNSUPPORTED, "cuda: attention: %s", expected);
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool step_is_mappable(int64_t step, int64_t least)
{
    return step >= least && step % VECTOR == 0 && step < MAX_STRIDE;
}

/* Whether rows begin at multiples of 16 bytes, as tensor maps want. `shares`: matrices may be one.
 */
static bool is_mappable(const hal_attention_description *d, const hal_attention_strides *s,
                        bool shares)
{
    return step_is_mappable(s->row, 1) && (d->batch == 1 || step_is_mappable(s->batch, !shares)) &&
           (d->outer == 1 || step_is_mappable(s->outer, !shares));
}

static hal_status check(const hal_plugin_device *device, const hal_attention_description *d)
{
    if (device->capability != 90 || !cuda_functions()->cuTensorMapEncodeTiled ||
        !cuda_functions()->cuTensorMapReplaceAddress) {
        return decline("device: expected compute capability 9.0 and tensor maps");
    }
    if (d->precision == HAL_GEMM_STRICT || hal_type_size(d->type) != 2) {
        return decline("expected f16 or bf16, and the precision accurate or fast");
    }
    if (d->d > CUDA_ATTENTION_MAX_HEAD || d->e > CUDA_ATTENTION_MAX_HEAD ||
        d->m > CUDA_ATTENTION_MAX_LENGTH || d->n > CUDA_ATTENTION_MAX_LENGTH) {
        return decline("expected d and e of at most 256, m and n of at most 2^30");
    }
    if (!is_mappable(d, &d->q, false) || !is_mappable(d, &d->k, true) ||
        !is_mappable(d, &d->v, true) || !is_mappable(d, &d->y, false) || d->e % VECTOR != 0) {
        return decline("strides, and e: expected multiples of 16 bytes");
    }
    return HAL_OK;
}

static uint16_t round_head(int64_t head)
{
    return (uint16_t)(divide_up(head, STEP) * STEP);
}

/* Groups that share the keys of few rows: as many as there are compute units for. */
static uint8_t split_choose(const hal_plugin_device *device, const hal_attention_description *d,
                            const cuda_attention_key *key)
{
    const uint64_t matrices = (uint64_t)d->batch * d->outer;
    const int64_t units = (int64_t)(device->units / matrices), tiles = divide_up(d->n, key->keys);
    const int64_t most = units < tiles ? units : tiles;
    if (d->m > cuda_attention_rows(key) || (d->causal && d->m > 1) || most < 1) {
        return 1;
    }
    return (uint8_t)(most < CUDA_ATTENTION_MAX_SPLIT ? most : CUDA_ATTENTION_MAX_SPLIT);
}

/* By the type, sizes and the device alone. */
static void choose(const hal_plugin_device *device, const hal_attention_description *d,
                   cuda_attention_key *key)
{
    const uint16_t widest = (uint16_t)(d->d > d->e ? d->d : d->e);
    memset(key, 0, sizeof *key);
    key->type = d->type;
    key->causal = d->causal;
    key->d = round_head(d->d);
    key->e = round_head(d->e);
    key->wait_seconds = device->gemm_wait;
    key->warpgroups = widest > 128                                  ? 2
                      : widest <= 64 && d->m >= MANY_ROWS           ? 3
                      : widest <= 64 || d->m <= CUDA_ATTENTION_BAND ? 1
                                                                    : 2;
    key->keys = widest <= 128 ? 128 : widest <= 192 ? 96 : 80;
    key->split = split_choose(device, d, key);
}

/* The address is replaced in each launch. */
static hal_status map_encode(const hal_attention_description *d, const hal_attention_strides *s,
                             int64_t rows, int64_t head, uint32_t box_rows, uint8_t *map)
{
    const uint64_t size = hal_type_size(d->type);
    const uint64_t extents[4] = {(uint64_t)head, (uint64_t)rows, s->batch ? d->batch : 1,
                                 s->outer ? d->outer : 1};
    const int64_t along[3] = {s->row, s->batch, s->outer};
    uint64_t strides[3], least = (uint64_t)divide_up(head, VECTOR) * VECTOR;
    for (uint32_t i = 0; i < 3; i++) { /* any where there is one */
        least = extents[i + 1] > 1 ? (uint64_t)along[i] : least;
        strides[i] = least * size;
    }
    const uint32_t box[4] = {CUDA_ATTENTION_LINE_LENGTH, box_rows, 1, 1}, steps[4] = {1, 1, 1, 1};
    return cuda_check(
        cuda_functions()->cuTensorMapEncodeTiled(
            map, d->type == HAL_TYPE_F16 ? CUDA_MAP_F16 : CUDA_MAP_BF16, 4, (void *)(uintptr_t)4096,
            extents, strides, box, steps, 0, CUDA_MAP_SWIZZLE_128, CUDA_MAP_PROMOTE_256, 0),
        "attention: describing matrices of %lld x %lld elements", (long long)rows, (long long)head);
}

/* Matrices whose keys and values take half of the L2; those of one where all tiles are alike. */
static uint32_t section_of(const hal_attention_description *d)
{
    const int64_t bytes = d->n * (d->d + d->e) * hal_type_size(d->type);
    const int64_t most = d->causal ? SECTION_BYTES / bytes : 1;
    const int64_t matrices = (int64_t)d->batch * d->outer;
    return (uint32_t)(most < 1 ? 1 : most < matrices ? most : matrices);
}

static hal_status block_fill(const hal_attention_description *d, const cuda_attention_key *key,
                             cuda_attention_block *block)
{
    const int64_t size = hal_type_size(d->type);
    block->y_row = d->y.row * size;
    block->y_batch = d->y.batch * size;
    block->y_outer = d->y.outer * size;
    block->m = (uint32_t)d->m;
    block->n = (uint32_t)d->n;
    block->e = (uint32_t)d->e;
    block->shift = (int32_t)(d->n - d->m);
    block->row_tiles = (uint32_t)divide_up(d->m, cuda_attention_rows(key));
    block->batches = d->batch;
    block->matrices = d->batch * d->outer;
    block->tiles = block->row_tiles * block->matrices;
    block->section = section_of(d);
    block->k_batch = d->k.batch != 0;
    block->k_outer = d->k.outer != 0;
    block->v_batch = d->v.batch != 0;
    block->v_outer = d->v.outer != 0;
    HAL_TRY(map_encode(d, &d->q, d->m, d->d, cuda_attention_rows(key), block->maps[0]));
    HAL_TRY(map_encode(d, &d->k, d->n, d->d, key->keys, block->maps[1]));
    return map_encode(d, &d->v, d->n, d->e, key->keys, block->maps[2]);
}

static cuda_address binding_address(const hal_binding *binding)
{
    return binding->memory->address + binding->offset;
}

static uint32_t parameters_write(const hal_plugin_kernel *kernel, const hal_plugin_queue *queue,
                                 const hal_batch *batch, const hal_command *command, uint8_t *to)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    cuda_attention_block block = *kernel->attention;
    double scale;
    (void)queue;
    for (uint32_t i = 0; i < 3; i++) {
        cuda_functions()->cuTensorMapReplaceAddress(
            block.maps[i], (void *)(uintptr_t)binding_address(&bindings[i]));
    }
    block.y = binding_address(&bindings[3]);
    memcpy(&scale, batch->scalars + command->scalar_first, sizeof scale);
    block.scale = (float)(scale / log(2));
    memcpy(to, &block, sizeof block);
    return sizeof block;
}

static hal_status source_write(const void *key, const hal_plugin_device *device, kit_text *text)
{
    (void)device;
    return cuda_attention_write(key, text);
}

static hal_status module_find(hal_plugin_device *device, const cuda_attention_key *key,
                              const cuda_shared_module **module)
{
    cuda_kernel_source source = {
        .name = "attention", .write = source_write, .what = key, .key = {1, 0}, .loads_text = true};
    kit_hash_add(source.key, key, sizeof *key);
    return cuda_modules_find(device, &source, cuda_attention_shared_bytes(key), module);
}

/* As many as are on the device at once, which copy for their next tile before the present one ends,
 * are up to 20 % faster where each has few tiles; else one for each tile, as the device balances
 * many ones better. */
static uint32_t group_count(const hal_plugin_device *device, const cuda_attention_key *key,
                            uint32_t tiles)
{
    const bool are_two = cuda_attention_shared_bytes(key) <= HALF_SHARED;
    const uint32_t most = device->units * (key->warpgroups == 1 && are_two ? 2 : 1);
    const bool is_kept = key->split == 1 && key->warpgroups < 3 && key->keys == 128 &&
                         tiles > most && tiles / most < FEW_ROUNDS;
    return is_kept ? most : tiles * key->split;
}

hal_status cuda_attention(hal_plugin_device *device, const hal_attention_description *d,
                          hal_plugin_kernel **kernel)
{
    cuda_attention_key key;
    const cuda_shared_module *module = NULL;
    *kernel = NULL;
    HAL_TRY(check(device, d));
    choose(device, d, &key);
    if ((double)divide_up(d->m, cuda_attention_rows(&key)) * d->batch * d->outer > INT32_MAX) {
        return decline("expected fewer than 2^31 tiles of rows");
    }
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    cuda_attention_block *block = aligned_alloc(64, (sizeof *block + 63) / 64 * 64);
    hal_status status = made && block
                            ? cuda_context_push(device)
                            : kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: attention: no host memory");
    if (status == HAL_OK) {
        memset(block, 0, sizeof *block);
        status = block_fill(d, &key, block);
        if (status == HAL_OK) {
            status = module_find(device, &key, &module);
        }
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        free(block);
        free(made);
        return status;
    }
    *made = (hal_plugin_kernel){.function = module->function,
                                .serial = atomic_fetch_add(&device->kernels, 1) + 1,
                                .group = {cuda_attention_threads(&key), 1, 1},
                                .binding_count = 4,
                                .scalar_bytes = sizeof(double),
                                .dynamic_shared = cuda_attention_shared_bytes(&key),
                                .waits_itself = (device->features & CUDA_FEATURE_EARLY_START) != 0,
                                .in_clusters = key.split > 1,
                                .attention = block,
                                .groups = group_count(device, &key, block->tiles),
                                .write = parameters_write};
    *kernel = made;
    return HAL_OK;
}
