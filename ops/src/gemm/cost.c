/* The cost model of split-K, see cost.h. */
#include "cost.h"

#include "tiles.h"

#include <math.h>

/* What a unit of a GPU does in a nanosecond, of which the choice of products in parts of k needs
 * the proportions only: bytes that it gets from the second-level cache (5.5 TB/s among 132), and
 * multiplications for each of a tile's `speed`. A launch, and a turn of loads that wait for each
 * other. These give within a fifth what one GPU took for f32 products of 10 microseconds and more,
 * in strict arithmetic and not split (docs/benchmarks). The speed of slices follows from the same
 * measurements, those of matrix units from large products. */
#define UNIT_BYTES_PER_NS 42.0
#define UNIT_STEPS_PER_NS 2.0
#define LAUNCH_NS 2500.0
#define TURN_NS 500.0
enum { SPEED_SLICED = 30, SPEED_TF32 = 400, SPEED_HALVES = 775 };

/* Which products are split: their k, what a part has of it at least, so that pipelines fill, and in
 * steps of what, so that parts begin where vectors and tiles do; and what is to be gained. */
enum { SPLIT_LEAST_K = 1024, SPLIT_LEAST_DEPTH = 256, SPLIT_STEPS = 64 };
#define SPLIT_LEAST_GAIN 1.25

/* Parts are tried that give units one or two such blocks. */
static const uint16_t split_blocks[][2] = {{32, 32}, {64, 64}, {64, 128}, {128, 128}, {128, 256}};

/* Whether every unit has a staged tile of the product as a whole, which then gains nothing. Slices
 * and the tiles of matrix units are made as small as that takes, and the cache bounds them. */
static int fills(const hal_device_info *info, const ops_gemm_plan *plan, const ops_gemm_work *work)
{
    const ops_gemm_tiles *t = &plan->tiles;
    const uint64_t rows = (work->m + t->block_m - 1u) / t->block_m;
    const uint64_t columns = (work->n + t->block_n - 1u) / t->block_n;
    return !t->unroll && !t->matrix && rows * columns >= info->compute_units;
}

/* Throughput of a full device with such tiles, in the unit of the table of staged tiles. */
static double speed_of(const ops_gemm_tiles *t, uint32_t width)
{
    if (t->matrix) {
        return width == 2 ? SPEED_HALVES : (double)SPEED_TF32 / t->matrix;
    }
    const double speed = t->speed ? t->speed : SPEED_SLICED;
    return width > 4 ? speed / 2 : speed;
}

static uint64_t rounds_of(const hal_device_info *info, uint64_t groups)
{
    return (groups + info->compute_units - 1) / info->compute_units;
}

/* Nanoseconds of one kernel: its launch, and what the unit that has most to do reads or multiplies,
 * whichever takes longer. */
static double duration(const hal_device_info *info, const ops_gemm_plan *plan,
                       const ops_gemm_tiles *t, const ops_gemm_work *work, uint32_t k,
                       uint32_t batch)
{
    const uint32_t width = hal_type_size(plan->type_ab);
    const uint64_t rows = (work->m + t->block_m - 1u) / t->block_m;
    const uint64_t columns = (work->n + t->block_n - 1u) / t->block_n;
    const uint32_t lines = (t->block_m < work->m ? t->block_m : work->m) +
                           (t->block_n < work->n ? t->block_n : work->n);
    const double reads = (double)lines * width / UNIT_BYTES_PER_NS;
    const double products =
        (double)t->block_m * t->block_n / (UNIT_STEPS_PER_NS * speed_of(t, width));
    return LAUNCH_NS + (double)rounds_of(info, rows * columns * batch) * k *
                           (reads > products ? reads : products);
}

/* Both kernels; too long where a device cannot run them. */
static double duration_split(const hal_device_info *info, const ops_gemm_plan *plan,
                             const ops_gemm_work *work, uint32_t depth)
{
    const uint32_t parts = (work->k + depth - 1) / depth, width = hal_type_size(plan->type_ab);
    const uint32_t sum = hal_type_size(plan->accumulator);
    const double elements = (double)work->m * work->n;
    ops_gemm_tiles t, adding;
    if (plan->tiles.matrix) {
        ops_gemm_choose_matrix_tiles(info, plan->tiles.flush ? HAL_GEMM_ACCURATE : HAL_GEMM_FAST,
                                     work->m, work->n, depth, parts, plan->type_ab,
                                     plan->b.k_contiguous, &t);
    } else if (!ops_gemm_choose_intra_group_tiles(info, work->m, work->n, depth, parts, width,
                                                  plan->a.k_contiguous, &t)) {
        ops_gemm_choose_tiles(info, work->m, work->n, parts, width, plan->b.k_contiguous, &t);
    }
    ops_gemm_choose_reduce_tiles(info, work->m, work->n, parts, sum, &adding);
    const uint64_t columns = (work->n + t.block_n - 1u) / t.block_n;
    const uint64_t adding_columns = (work->n + adding.block_n - 1u) / adding.block_n;
    const uint64_t rows = (work->m + adding.block_m - 1u) / adding.block_m;
    if (columns > info->max_grid[0] || adding_columns > info->max_grid[0] ||
        elements * parts * sum > (double)info->max_binding) {
        return INFINITY;
    }
    const uint32_t turn = (uint32_t)adding.intra_group_split_k * adding.unroll;
    const double rounds = (double)rounds_of(info, rows * adding_columns);
    const double read = rounds * adding.block_m * adding.block_n * parts * sum;
    const double written = elements * parts * sum / info->compute_units;
    return duration(info, plan, &t, work, depth, parts) + LAUNCH_NS +
           (read + written) / UNIT_BYTES_PER_NS + (double)((parts + turn - 1) / turn) * TURN_NS;
}

uint32_t ops_gemm_choose_split_k(const hal_device_info *info, const ops_gemm_plan *plan,
                                 const ops_gemm_work *work, uint32_t batch)
{
    if (info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0 || batch > 1 ||
        work->k < SPLIT_LEAST_K || fills(info, plan, work)) {
        return 0;
    }
    const double whole = duration(info, plan, &plan->tiles, work, work->k, 1);
    double least = whole / SPLIT_LEAST_GAIN;
    uint32_t chosen = 0, last = 0;
    for (uint32_t i = 0; i < 2 * sizeof split_blocks / sizeof split_blocks[0]; i++) {
        const uint64_t rows = (work->m + split_blocks[i / 2][0] - 1u) / split_blocks[i / 2][0];
        const uint64_t columns = (work->n + split_blocks[i / 2][1] - 1u) / split_blocks[i / 2][1];
        const uint64_t most = (i % 2 + 1) * (uint64_t)info->compute_units / (rows * columns);
        if (most < 2) {
            continue;
        }
        uint64_t depth = (work->k + most - 1) / most;
        depth = depth < SPLIT_LEAST_DEPTH ? SPLIT_LEAST_DEPTH : depth;
        depth = (depth + SPLIT_STEPS - 1) / SPLIT_STEPS * SPLIT_STEPS;
        if (depth >= work->k || depth == last) {
            continue;
        }
        last = (uint32_t)depth;
        const double now = duration_split(info, plan, work, last);
        if (now < least) {
            least = now;
            chosen = last;
        }
    }
    return chosen;
}
