/* The choice of the kernel of a strict F32 product, see gemm_fma_plan.h. */
#include "gemm_fma_plan.h"

#include "gemm_fma.h"
#include "gemm_fma_load.h"

#include <math.h>
#include <string.h>

/* The model of the time, in cycles of one multiprocessor, fitted to products on an H100
 * (docs/benchmarks, 2026-11-27-strict). */
#define PRODUCTS 128.0       /* multiply-adds a cycle */
#define LAUNCH_CYCLES 5000.0 /* of a kernel, and the first loads */
#define END_CYCLES 2500.0    /* of a tile, or of a share of one; */
#define C_BYTES 1200.0       /* at least writing C, on all multiprocessors; a cycle */
#define PARTIAL_CYCLES 800.0 /* waiting for the sums of other groups, */
#define PARTIAL_BYTES 40.0   /* and adding those of one; a cycle */

/* The share of its cycles in which a tile's loop multiplies, and what a copy of single elements of
 * a work-item adds to its time; as much again where it has to see whether it is within k. */
static const double efficiency[CUDA_FMA_TILES] = {0.83, 0.82, 0.83, 0.80};
#define NARROW_COPY 0.006

/* The portable kernel with the tiles of ops/src/gemm/tiles.c that it has for such products:
 * multiply-adds of a multiprocessor in a cycle, with up to PORTABLE_PARTS parts of k, of at least
 * PORTABLE_DEPTH steps; bytes a cycle from the L2, and from the memory. */
static const struct {
    uint32_t rows, columns;
    double products;
} portable_tiles[] = {{128, 256, 101}, {128, 128, 96}, {64, 128, 94},
                      {64, 64, 71},    {32, 128, 60},  {32, 32, 35}};
enum { PORTABLE_PARTS = 16, PORTABLE_DEPTH = 192 };
#define PORTABLE_LAUNCH 5000.0
#define PORTABLE_PRODUCTS 3e8     /* with fewer multiply-adds it was faster in all of 16 products */
#define PORTABLE_SUM_BYTES 2800.0 /* of all multiprocessors, a cycle */
#define PORTABLE_MEMORY_BYTES 1200.0

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
           (1 + NARROW_COPY * copies * (key->ragged ? 2 : 1));
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
    plan->cycles = LAUNCH_CYCLES + longest * stage_cycles(&plan->key) +
                   fmax(ends * END_CYCLES, bytes / C_BYTES);
    if (plan->partials) {
        plan->cycles += PARTIAL_CYCLES + parts * cuda_fma_partial_bytes(&plan->key) / PARTIAL_BYTES;
    }
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

/* Tries a tile with each number of groups that splits k alike for all tiles, and with a group for
 * each multiprocessor. Returns whether there is such a kernel. */
static bool plan_tile(const hal_plugin_device *device, const hal_gemm_description *d,
                      uint8_t number, cuda_gemm_plan *best)
{
    cuda_gemm_plan plan = *best;
    plan.key.tile = number;
    const cuda_fma_tile *tile = cuda_fma_tile_of(&plan.key);
    plan.key.ragged = d->k % tile->depth != 0;
    if (d->m < tile->rows || d->n < tile->columns || !cuda_fma_is_supported(&plan.key)) {
        return false;
    }
    const uint64_t tiles_m = (uint64_t)(d->m + tile->rows - 1) / tile->rows,
                   tiles_n = (uint64_t)(d->n + tile->columns - 1) / tile->columns,
                   tiles = tiles_m * tiles_n * d->batch,
                   steps = (uint64_t)(d->k + tile->depth - 1) / tile->depth;
    if (tiles * steps > INT32_MAX / 4) { /* so that products with numbers of groups fit */
        return false;
    }
    plan.tiles_m = (uint32_t)tiles_m;
    plan.tiles_n = (uint32_t)tiles_n;
    const uint32_t most = device->units * tile->groups;
    plan.raster = tiles > most ? 16 : 2;
    plan_complete(&plan, most);
    *best = plan;
    for (uint64_t groups = tiles; groups < most && groups <= tiles * steps; groups += tiles) {
        plan_complete(&plan, (uint32_t)groups);
        if (plan.cycles < best->cycles) {
            *best = plan;
        }
    }
    return true;
}

/* The plan with the least time after `last`, which may be null; of the tile that HAL_CUDA_GEMM
 * names, if any. */
static bool plan_search(const hal_plugin_device *device, const hal_gemm_description *d,
                        const cuda_gemm_plan *last, cuda_gemm_plan *best)
{
    bool found = false;
    for (uint8_t number = 1; number <= CUDA_FMA_TILES; number++) {
        cuda_gemm_plan plan = *best;
        if ((device->gemm_tile.strict == 0 || device->gemm_tile.strict == number) &&
            plan_tile(device, d, number, &plan) &&
            (last == NULL || plan.cycles > last->cycles ||
             (plan.cycles == last->cycles && number > last->key.tile)) &&
            (!found || plan.cycles < best->cycles)) {
            *best = plan;
            found = true;
        }
    }
    return found;
}

/* Cycles of the portable kernel. */
static double portable_cycles(const hal_gemm_description *d, uint32_t units)
{
    const double m = (double)d->m, n = (double)d->n, k = (double)d->k, batch = d->batch;
    double least = INFINITY;
    for (size_t i = 0; i < sizeof portable_tiles / sizeof portable_tiles[0]; i++) {
        const double rows = portable_tiles[i].rows, columns = portable_tiles[i].columns;
        const double tiles = ceil(m / rows) * ceil(n / columns) * batch;
        for (uint32_t parts = 1; parts <= PORTABLE_PARTS; parts++) {
            if (parts > 1 && (k < parts * PORTABLE_DEPTH || batch > 1)) {
                break;
            }
            const double rounds = ceil(tiles * parts / units), depth = ceil(k / parts);
            const double sums =
                parts > 1 ? PORTABLE_LAUNCH + m * n * 4 * (parts + 1) / PORTABLE_SUM_BYTES : 0;
            least =
                fmin(least, rounds * depth * rows * columns / portable_tiles[i].products + sums);
        }
    }
    const double bytes = 4 * (m * k + k * n + m * n) * batch;
    return PORTABLE_LAUNCH + fmax(least, bytes / PORTABLE_MEMORY_BYTES);
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
        !plan_search(device, d, NULL, plan)) {
        return cuda_gemm_decline("shape: expected a result of at least 64 x 128 or 128 x 64");
    }
    for (uint32_t i = 1; i < d->candidate; i++) {
        const cuda_gemm_plan last = *plan;
        *plan = start;
        if (!plan_search(device, d, &last, plan)) {
            return cuda_gemm_decline(CUDA_GEMM_NO_CANDIDATE);
        }
    }
    if (!d->required && device->gemm_tile.strict == 0 &&
        (d->copied || (double)d->m * (double)d->n * (double)d->k * d->batch < PORTABLE_PRODUCTS ||
         portable_cycles(d, device->units) < plan->cycles)) {
        return cuda_gemm_decline(CUDA_GEMM_SLOWER);
    }
    /* C and the epilogue do not change the order of additions. */
    cuda_gemm_key_set_end(key, d);
    if (!cuda_fma_is_supported(key)) {
        return cuda_gemm_decline(CUDA_GEMM_LONG_EPILOGUE);
    }
    return HAL_OK;
}
