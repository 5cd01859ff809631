/* The choice of the kernel of a strict F32 product, see gemm/fma_plan.h. */
#include "gemm/fma_plan.h"

#include "gemm/fma.h"
#include "gemm/producer/fma.h"

#include <math.h>
#include <string.h>

/* The model of the time, in cycles of one multiprocessor, fitted to products on an H100
 * (docs/benchmarks, 2026-11-27-strict, 2026-11-28-regret). */
#define CLOCK 1.98           /* cycles a nanosecond */
#define PRODUCTS 128.0       /* multiply-adds a cycle */
#define LAUNCH_CYCLES 5000.0 /* of a kernel, and the first loads */
#define END_CYCLES 2500.0    /* of a tile, or of a share of one; */
#define C_BYTES 1200.0       /* at least writing C, on all multiprocessors; a cycle */
#define PARTIAL_CYCLES 800.0 /* waiting for the sums of other groups, */
#define PARTIAL_BYTES 40.0   /* and adding those of one; a cycle */

/* The share of its cycles in which a tile's loop multiplies, and what a copy of single elements of
 * a work-item adds to its time, a fifth more where it has to see whether it is within k. */
static const double efficiency[CUDA_FMA_TILES] = {0.86, 0.82, 0.75, 0.73};
#define NARROW_COPY 0.006

/* Cycles of a stage. */
static double stage_cycles(const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    double copies = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const cuda_fma_operand o = cuda_fma_operand_of(key, i == 1);
        copies += o.width == 1 ? (double)o.passes * o.across : 0;
    }
    return (double)tile->rows * tile->columns * tile->depth / PRODUCTS / efficiency[key->tile - 1] *
           (1 + NARROW_COPY * copies * (key->ragged ? 1.2 : 1));
}

/* Completes a plan with a tile and a number of groups. */
static void plan_complete(cuda_gemm_plan *plan, uint32_t groups)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(&plan->key);
    const uint64_t steps = (uint64_t)(plan->product.k + tile->depth - 1) / tile->depth;
    const uint64_t tiles = (uint64_t)plan->tiles_m * plan->tiles_n * plan->product.batch;
    /* The last tiles are shared: more than one for each group, so that few pass sums. */
    uint64_t rounds = tiles / groups;
    rounds -= tiles % groups != 0 && rounds > 0;
    const uint64_t rest = (tiles - rounds * groups) * steps;
    plan->groups = groups;
    plan->rounds = (uint32_t)rounds;
    plan->share = (uint32_t)(rest / groups);
    plan->longer = (uint32_t)(rest % groups);
    plan->partials = rest > 0;
    const double longest = (double)(rounds * steps + plan->share + (plan->longer > 0));
    const double parts = plan->share ? ceil((double)steps / plan->share) : 1;
    const double ends = (double)rounds + (plan->partials ? 2 : 0);
    const hal_gemm_description *d = &plan->product;
    const double bytes = 4 * (double)d->m * (double)d->n * d->batch;
    double cycles = LAUNCH_CYCLES + longest * stage_cycles(&plan->key) +
                    fmax(ends * END_CYCLES, bytes / C_BYTES);
    if (plan->partials) {
        cycles += PARTIAL_CYCLES + parts * cuda_fma_partial_bytes(&plan->key) / PARTIAL_BYTES;
    }
    plan->ns = cycles / CLOCK;
}

/* The widest copies of A, B and C. */
static void key_set_widths(cuda_gemm_key *key, const hal_gemm_description *d)
{
    const int64_t a = d->lda | d->stride_a | d->m, b = d->ldb | d->stride_b | d->n,
                  c = d->ldc | d->stride_c | d->n;
    key->width_a = d->transpose_a && a % 4 == 0 ? 4 : 1;
    key->width_b = !d->transpose_b && b % 4 == 0 ? 4 : 1;
    key->width = c % 4 == 0 ? 4 : 1;
}

/* Whether a plan comes after another in the order of plans: by time, tile and groups. */
static bool plan_follows(const cuda_gemm_plan *plan, const cuda_gemm_plan *other)
{
    return plan->ns != other->ns               ? plan->ns > other->ns
           : plan->key.tile != other->key.tile ? plan->key.tile > other->key.tile
                                               : plan->groups > other->groups;
}

/* Tries a tile with each number of groups that splits k alike for all tiles, and with a group for
 * each multiprocessor. *best becomes the first one of those and of *best itself if `*found`. */
static void tile_search(const hal_plugin_device *device, const cuda_gemm_plan *start,
                        uint8_t number, cuda_gemm_plan *best, bool *found)
{
    const hal_gemm_description *d = &start->product;
    cuda_gemm_plan plan = *start;
    plan.key.tile = number;
    const cuda_fma_tile *tile = cuda_fma_tile_of(&plan.key);
    plan.key.ragged = d->k % tile->depth != 0;
    if (d->m < tile->rows || d->n < tile->columns || !cuda_fma_is_supported(&plan.key)) {
        return;
    }
    const uint64_t tiles_m = (uint64_t)(d->m + tile->rows - 1) / tile->rows,
                   tiles_n = (uint64_t)(d->n + tile->columns - 1) / tile->columns,
                   tiles = tiles_m * tiles_n * d->batch,
                   steps = (uint64_t)(d->k + tile->depth - 1) / tile->depth;
    if (tiles * steps > INT32_MAX / 4) { /* so that products with numbers of groups fit */
        return;
    }
    plan.tiles_m = (uint32_t)tiles_m;
    plan.tiles_n = (uint32_t)tiles_n;
    const uint64_t most = (uint64_t)device->units * tile->groups;
    plan.raster = tiles > most ? 16 : 2;
    bool is_last = false;
    for (uint64_t groups = tiles; !is_last; groups += tiles) {
        is_last = groups >= most || groups > tiles * steps;
        plan_complete(&plan, (uint32_t)(is_last ? most : groups));
        if (!*found || plan_follows(best, &plan)) {
            *best = plan;
            *found = true;
        }
    }
}

/* The plan with the least time, of the tile that HAL_CUDA_GEMM names, if any. */
static bool plan_search(const hal_plugin_device *device, const cuda_gemm_plan *start,
                        cuda_gemm_plan *best)
{
    bool found = false;
    for (uint8_t number = 1; number <= CUDA_FMA_TILES; number++) {
        if (device->gemm_tile.strict == 0 || device->gemm_tile.strict == number) {
            tile_search(device, start, number, best, &found);
        }
    }
    return found;
}

hal_status cuda_fma_plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                                cuda_gemm_plan *plan)
{
    cuda_gemm_key *key = &plan->key;
    if (device->capability != 90) {
        return cuda_gemm_decline("device: expected compute capability 9.0");
    }
    if (d->levels > 0) {
        return cuda_gemm_decline("levels: expected 0");
    }
    if (d->type_a != HAL_TYPE_F32 || d->type_b != HAL_TYPE_F32 || d->type_c != HAL_TYPE_F32) {
        return cuda_gemm_decline("types: expected f32 for strict arithmetic");
    }
    memset(plan, 0, sizeof *plan);
    memcpy(&plan->product, d, sizeof plan->product);
    key->type = key->type_c = HAL_TYPE_F32;
    key->split = 1;
    key->wait_seconds = device->gemm_wait;
    key->transpose_a = d->transpose_a;
    key->transpose_b = d->transpose_b;
    key_set_widths(key, d);
    const cuda_gemm_plan start = *plan;
    if (d->k < 1 || d->k > INT32_MAX) {
        return cuda_gemm_decline("k: expected 1 to 2147483647");
    }
    if (d->lda > UINT32_MAX || d->ldb > UINT32_MAX || device->units > CUDA_FMA_MAX_GROUPS ||
        !plan_search(device, &start, plan)) {
        return cuda_gemm_decline("shape: expected a result of at least 64 x 128 or 128 x 64");
    }
    /* C and the epilogue do not change the order of additions. */
    cuda_gemm_key_set_end(key, d);
    if (!cuda_fma_is_supported(key)) {
        return cuda_gemm_decline(CUDA_GEMM_LONG_EPILOGUE);
    }
    return HAL_OK;
}
