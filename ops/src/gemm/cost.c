/* The cost model of split-K, see cost.h. */
#include "cost.h"

#include "tiles.h"

#include <math.h>

/* Throughput of one compute unit: bytes per nanosecond from the second-level cache (5.5 TB/s for
 * 132 units), and multiplications per nanosecond for a tile speed of 1; a launch; a turn of loads.
 * Only ratios matter. The model is within a fifth of measured f32 products of 10 us and more, in
 * strict arithmetic without split-K (docs/benchmarks); speeds of matrix units are from large
 * products. */
#define UNIT_BYTES_PER_NS 42.0
#define UNIT_STEPS_PER_NS 2.0
#define LAUNCH_NS 2500.0
#define TURN_NS 500.0
enum { SPEED_INTRA_GROUP = 30 };

/* Limits of split-K: least k of a product; least depth of a part, so that pipelines fill; multiple
 * of the depth, so that parts start aligned; least ratio of the times. Of 200 f32 products on an
 * H200, log-uniform, those of 10 us and more gained up to 2.3 and lost at most 8 %; shorter ones
 * lost up to 38 % without limits of their own, as the model knows them less well. Those of matrix
 * units were not measured. */
enum { SPLIT_MIN_K = 512, SPLIT_MIN_DEPTH = 192, SPLIT_DEPTH_STEP = 64, SPLIT_UNSURE_MIN_K = 1024 };
#define SPLIT_MIN_GAIN 1.02
#define SPLIT_KNOWN_NS 10e3
#define SPLIT_UNSURE_MIN_GAIN 1.25

/* Tries as many parts as give each unit one or two such blocks. */
static const uint16_t split_blocks[][2] = {{32, 32}, {64, 64}, {64, 128}, {128, 128}, {128, 256}};

/* Throughput of a full device with such tiles, in the unit of the table of staged tiles. */
static double tiles_speed(const ops_gemm_tiles *t, uint32_t width)
{
    if (t->matrix) {
        return (double)t->speed / t->matrix;
    }
    const double speed = t->speed ? t->speed : SPEED_INTRA_GROUP;
    return width > 4 ? speed / 2 : speed;
}

static uint64_t round_count(const hal_device_info *info, uint64_t groups)
{
    return (groups + info->compute_units - 1) / info->compute_units;
}

/* Nanoseconds of one kernel: a launch, and the loads or multiplications of the busiest unit,
 * whichever take longer. */
static double kernel_ns(const hal_device_info *info, const ops_gemm_plan *plan,
                        const ops_gemm_tiles *t, const ops_gemm_work *work, uint32_t k,
                        uint32_t batch)
{
    const uint32_t width = hal_type_size(plan->type_ab);
    const uint64_t rows = ops_gemm_blocks(work->m, t->block_m);
    const uint64_t columns = ops_gemm_blocks(work->n, t->block_n);
    const uint32_t lines = (t->block_m < work->m ? t->block_m : work->m) +
                           (t->block_n < work->n ? t->block_n : work->n);
    const double reads = (double)lines * width / UNIT_BYTES_PER_NS;
    const double products =
        (double)t->block_m * t->block_n / (UNIT_STEPS_PER_NS * tiles_speed(t, width));
    return LAUNCH_NS + (double)round_count(info, rows * columns * batch) * k *
                           (reads > products ? reads : products);
}

/* Nanoseconds of both kernels of split-K; infinite where the device cannot run them. */
static double split_ns(const hal_device_info *info, const ops_gemm_plan *plan,
                       const ops_gemm_work *work, uint32_t depth)
{
    const uint32_t parts = (work->k + depth - 1) / depth, width = hal_type_size(plan->type_ab);
    const uint32_t sum = hal_type_size(plan->accumulator);
    const double elements = (double)work->m * work->n;
    ops_gemm_tiles t, reduce;
    if (plan->tiles.matrix) {
        ops_gemm_choose_matrix_tiles(info, plan->tiles.flush ? HAL_GEMM_ACCURATE : HAL_GEMM_FAST,
                                     work->m, work->n, depth, parts, plan->type_ab,
                                     ops_gemm_access_bytes(plan), plan->b.k_contiguous, &t);
    } else if (!ops_gemm_choose_intra_group_tiles(info, work->m, work->n, depth, parts, width,
                                                  plan->a.k_contiguous, plan->b.k_contiguous, &t)) {
        ops_gemm_choose_tiles(info, work->m, work->n, depth, parts, width, plan->b.k_contiguous,
                              &t);
    }
    ops_gemm_choose_reduce_tiles(info, work->m, work->n, parts, sum, &reduce);
    const uint64_t columns = ops_gemm_blocks(work->n, t.block_n);
    const uint64_t reduce_columns = ops_gemm_blocks(work->n, reduce.block_n);
    const uint64_t rows = ops_gemm_blocks(work->m, reduce.block_m);
    if (columns > info->max_grid[0] || reduce_columns > info->max_grid[0] ||
        elements * parts * sum > (double)info->max_binding) {
        return INFINITY;
    }
    const uint32_t turn = (uint32_t)reduce.intra_group_split_k * reduce.unroll;
    const double rounds = (double)round_count(info, rows * reduce_columns);
    const double read = rounds * reduce.block_m * reduce.block_n * parts * sum;
    const double written = elements * parts * sum / info->compute_units;
    return kernel_ns(info, plan, &t, work, depth, parts) + LAUNCH_NS +
           (read + written) / UNIT_BYTES_PER_NS + (double)((parts + turn - 1) / turn) * TURN_NS;
}

uint32_t ops_gemm_choose_split_k(const hal_device_info *info, const ops_gemm_plan *plan,
                                 const ops_gemm_work *work, uint32_t batch)
{
    if (info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0 || batch > 1 ||
        work->k < SPLIT_MIN_K) {
        return 0;
    }
    const double whole = kernel_ns(info, plan, &plan->tiles, work, work->k, 1);
    const int is_known = whole >= SPLIT_KNOWN_NS && !plan->tiles.matrix;
    double least = whole / (is_known ? SPLIT_MIN_GAIN : SPLIT_UNSURE_MIN_GAIN);
    uint32_t chosen = 0, last = 0;
    if (!is_known && work->k < SPLIT_UNSURE_MIN_K) {
        return 0;
    }
    for (uint32_t i = 0; i < 2 * sizeof split_blocks / sizeof split_blocks[0]; i++) {
        const uint64_t rows = ops_gemm_blocks(work->m, split_blocks[i / 2][0]);
        const uint64_t columns = ops_gemm_blocks(work->n, split_blocks[i / 2][1]);
        const uint64_t most = (i % 2 + 1) * (uint64_t)info->compute_units / (rows * columns);
        if (most < 2) {
            continue;
        }
        uint64_t depth = (work->k + most - 1) / most;
        depth = depth < SPLIT_MIN_DEPTH ? SPLIT_MIN_DEPTH : depth;
        depth = (depth + SPLIT_DEPTH_STEP - 1) / SPLIT_DEPTH_STEP * SPLIT_DEPTH_STEP;
        if (depth >= work->k || depth == last) {
            continue;
        }
        last = (uint32_t)depth;
        const double now = split_ns(info, plan, work, last);
        if (now < least) {
            least = now;
            chosen = last;
        }
    }
    return chosen;
}
