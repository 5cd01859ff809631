/* Which tiles the portable matrix product uses: one table. Called by gemm/portable.c. */
#include "kernel.h"

#include <math.h>

/* Lanes of a processor run in lock-step along the columns; a work-item holds a column of sums. The
 * tall tile reads B with a stride where its columns are not neighbours, and amortises that. */
static const ops_gemm_tiles lanes_wide = {16, 256, 8, 16, 1, 16, 1, 0, 0, 0, 1, 0, 0, 0, 0};
static const ops_gemm_tiles lanes_tall = {64, 64, 8, 64, 1, 64, 1, 0, 0, 0, 1, 0, 0, 0, 0};

/* Where a compiler makes vectors of one work-item's arithmetic: it finds them along the columns of
 * C, and the sums stay in registers: 16 of 8 floats, as compilers prefer vectors of half the width
 * even where there are wider ones. The work-items of a group follow each other down the rows and
 * find the columns of B in the cache. Such a processor has no shared memory of its own, and staging
 * was half as fast. */
static const ops_gemm_tiles alone = {128, 16, 4, 8, 16, 8, 8, 0, 0, 0, 1, 0, 0, 0, 0};
#define GROUPS_OF_A_UNIT 4 /* from so many on, units end at about the same time */

/* Work-items of their own. `speed` is what a full device reaches with such tiles, relative to the
 * first: measured on one GPU for the first three, estimated for the small ones from the loads that
 * a multiplication needs. The sizes of the first two were found on it as well: 8 x 16 sums leave
 * room for two sets of operands in 255 registers, and four slices of k keep a unit busy with a tile
 * small enough for matrices of a thousand rows. */
typedef struct candidate {
    ops_gemm_tiles tiles;
    uint16_t speed;
} candidate;

static const candidate staged[] = {
    {{128, 256, 8, 8, 16, 4, 4, 4, 8, 3, 1, 1, 0, 0, 0}, 100},
    {{64, 128, 32, 8, 16, 4, 4, 8, 4, 3, 4, 1, 0, 0, 0}, 93},
    {{128, 128, 8, 8, 8, 4, 4, 8, 4, 2, 1, 2, 0, 0, 0}, 95},
    {{64, 64, 16, 8, 4, 4, 4, 4, 8, 2, 1, 4, 0, 0, 0}, 70},
    {{32, 32, 16, 4, 2, 4, 2, 4, 8, 2, 1, 0, 0, 0, 0}, 35},
    {{16, 16, 16, 2, 2, 2, 2, 4, 8, 2, 1, 0, 0, 0, 0}, 12},
};

/* For matrix units, from large to small; the first that gives every unit a group is taken. Halves:
 * warps of 64 x 64, in tiles as large as registers allow, since the second-level cache is what
 * bounds them. F32: warps of 64 x 32, as two sets of sums and two parts of every operand leave no
 * room for more. */
enum { UNIT_TILES = 4 };
static const ops_gemm_tiles units_half[UNIT_TILES] = {
    {128, 256, 64, 8, 16, 1, 8, 8, 4, 3, 1, 1, 0, 1, 0},
    {128, 128, 64, 8, 16, 1, 8, 8, 4, 3, 1, 2, 0, 1, 0},
    {128, 64, 64, 8, 8, 1, 8, 8, 4, 3, 1, 2, 0, 1, 0},
    {64, 64, 64, 4, 8, 1, 8, 8, 4, 4, 1, 2, 0, 1, 0}};
static const ops_gemm_tiles units_f32[UNIT_TILES] = {
    {128, 128, 32, 8, 8, 1, 8, 8, 4, 4, 1, 1, 0, 1, 0},
    {128, 128, 32, 8, 8, 1, 8, 8, 4, 4, 1, 1, 0, 1, 0},
    {128, 64, 32, 8, 8, 1, 8, 8, 4, 4, 1, 2, 0, 1, 0},
    {64, 64, 32, 4, 8, 1, 8, 8, 4, 4, 1, 2, 0, 1, 0}};

/* Limits of slices of k. A product is for them when it has so few rows or columns that every
 * element of A or B is used a few times only, or when its elements are so few for each unit that
 * staged tiles would leave units idle, or wait for one tile of k after another. Values: what a
 * work-item has under way, in registers, beside its sums. */
enum {
    SLICED_SIDE = 16,
    SLICED_ELEMENTS = 512,
    SLICED_BLOCK = 32,
    SLICED_ITEMS = 256,
    SLICED_VALUES = 96
};

/* Where the device says how many registers a work-item has: the part of them that sums may take
 * beside two sets of operands and what is on its way to shared memory, and the part for the values
 * that slices have under way. Intel's compiler spills nothing with these, and does with more. */
enum { SUMS_SHARE = 4, VALUES_SHARE = 2 };

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
enum { SPEED_SLICED = 30, SPEED_TF32 = 400, SPEED_HALVES = 775, ADDING_UNROLL = 8 };

/* Which products are split: their k, what a part has of it at least, so that pipelines fill, and in
 * steps of what, so that parts begin where vectors and tiles do; and what is to be gained. */
enum { SPLIT_LEAST_K = 1024, SPLIT_LEAST_DEPTH = 256, SPLIT_STEPS = 64 };
#define SPLIT_LEAST_GAIN 1.25

/* Parts are tried that give units one or two such blocks. */
static const uint16_t split_blocks[][2] = {{32, 32}, {64, 64}, {64, 128}, {128, 128}, {128, 256}};

/* The smallest power of two that covers a length, within limits. */
static uint16_t cover(int64_t length, uint16_t least, uint16_t most)
{
    uint16_t size = least;
    while (size < most && size < length) {
        size = (uint16_t)(2 * size);
    }
    return size;
}

static ops_gemm_tiles choose_alone(const hal_device_info *info, int64_t m, int64_t n,
                                   uint32_t batch, uint32_t width)
{
    ops_gemm_tiles t = alone;
    t.block_n = cover(n, 4, (uint16_t)(width > 4 ? t.block_n / 2 : t.block_n));
    t.thread_n = (uint8_t)t.block_n;
    t.strip_n = t.thread_n < t.strip_n ? t.thread_n : t.strip_n;
    t.block_m = cover(m, 1, t.block_m);
    const uint64_t enough = GROUPS_OF_A_UNIT * (uint64_t)info->compute_units;
    const uint64_t columns = (uint64_t)(n + t.block_n - 1) / t.block_n * batch;
    const uint32_t items = info->max_group_size[1];
    while (t.block_m > t.thread_m &&
           (t.block_m > t.thread_m * items ||
            (uint64_t)(m + t.block_m - 1) / t.block_m * columns < enough)) {
        t.block_m /= 2;
    }
    t.thread_m = t.block_m < t.thread_m ? (uint8_t)t.block_m : t.thread_m;
    t.strip_m = t.thread_m;
    return t;
}

/* No larger than the matrix: idle lanes and rows cost as much as busy ones. */
static ops_gemm_tiles choose_lanes(int64_t m, int64_t n, int b_k_contiguous)
{
    ops_gemm_tiles t = b_k_contiguous ? lanes_tall : lanes_wide;
    t.block_n = cover(n, 16, t.block_n);
    uint16_t rows =
        (uint16_t)(t.block_m * (b_k_contiguous ? lanes_tall : lanes_wide).block_n / t.block_n);
    t.block_m = cover(m, 1, rows < 64 ? rows : 64);
    t.thread_m = (uint8_t)t.block_m;
    t.strip_m = t.thread_m;
    return t;
}

/* Time in rounds of the whole device, up to a factor. */
static uint64_t cost(const hal_device_info *info, const candidate *c, int64_t m, int64_t n,
                     uint32_t batch)
{
    const ops_gemm_tiles *t = &c->tiles;
    uint64_t rows = (uint64_t)(m + t->block_m - 1) / t->block_m;
    uint64_t columns = (uint64_t)(n + t->block_n - 1) / t->block_n;
    uint64_t units = info->compute_units ? info->compute_units : 1;
    uint64_t rounds = (rows * columns * batch + units - 1) / units;
    return rounds * t->block_m * t->block_n * 1000 / c->speed;
}

static int fits(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width)
{
    uint32_t items = (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n) * t->slices;
    uint32_t registers = t->thread_m * t->thread_n * (width < 4 ? 4 : width);
    uint32_t most = info->item_register_bytes ? info->item_register_bytes / SUMS_SHARE : 512;
    int copies = (info->abilities & HAL_ABILITY_ASYNC_COPY) && width >= 4;
    return items <= info->max_group_items && items <= info->max_group_size[0] &&
           registers <= most && ops_gemm_shared_elements(t) * width <= info->shared_bytes &&
           (t->stages <= 2 || copies);
}

/* The largest block, near a square, that leaves a group for most units. */
static void choose_block(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                         ops_gemm_tiles *t)
{
    const uint64_t enough = info->compute_units - info->compute_units / 4;
    t->block_m = 1;
    t->block_n = cover(n, 1, 4);
    for (;;) {
        const int more_m = t->block_m < m && t->block_m < SLICED_BLOCK;
        const int more_n = t->block_n < n && t->block_n < SLICED_BLOCK;
        const int by_m = more_m && (!more_n || t->block_m <= t->block_n);
        const uint32_t block_m = by_m ? 2u * t->block_m : t->block_m;
        const uint32_t block_n = by_m ? t->block_n : 2u * t->block_n;
        /* Shifts: this is reached by every call. */
        const uint64_t rows = ((uint64_t)m + block_m - 1) >> __builtin_ctz(block_m);
        const uint64_t columns = ((uint64_t)n + block_n - 1) >> __builtin_ctz(block_n);
        if ((!more_m && !more_n) || rows * columns * batch < enough) {
            return;
        }
        t->block_m = (uint16_t)block_m;
        t->block_n = (uint16_t)block_n;
    }
}

/* Whether every unit has a staged tile of the product as a whole, which then gains nothing. Slices
 * and the tiles of matrix units are made as small as that takes, and the cache bounds them. */
static int fills(const hal_device_info *info, const ops_gemm_plan *plan, const ops_gemm_work *work)
{
    const ops_gemm_tiles *t = &plan->tiles;
    const uint64_t rows = (work->m + t->block_m - 1u) / t->block_m;
    const uint64_t columns = (work->n + t->block_n - 1u) / t->block_n;
    return !t->unroll && !t->matrix && rows * columns >= info->compute_units;
}

/* Of a full device, as in the table of staged tiles. */
static double speed_of(const ops_gemm_tiles *t, uint32_t width)
{
    if (t->matrix) {
        return width == 2 ? SPEED_HALVES : (double)SPEED_TF32 / t->matrix;
    }
    double speed = SPEED_SLICED;
    for (uint32_t i = 0; !t->unroll && i < sizeof staged / sizeof staged[0]; i++) {
        const ops_gemm_tiles *other = &staged[i].tiles;
        if (other->block_m == t->block_m && other->block_n == t->block_n) {
            speed = staged[i].speed;
        }
    }
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
    } else if (!ops_gemm_choose_slices(info, work->m, work->n, depth, parts, width,
                                       plan->a.k_contiguous, &t)) {
        ops_gemm_choose_tiles(info, work->m, work->n, parts, width, plan->b.k_contiguous, &t);
    }
    ops_gemm_choose_adding(info, work->m, work->n, parts, sum, &adding);
    const uint64_t columns = (work->n + t.block_n - 1u) / t.block_n;
    const uint64_t adding_columns = (work->n + adding.block_n - 1u) / adding.block_n;
    const uint64_t rows = (work->m + adding.block_m - 1u) / adding.block_m;
    if (columns > info->max_grid[0] || adding_columns > info->max_grid[0] ||
        elements * parts * sum > (double)info->max_binding) {
        return INFINITY;
    }
    const uint32_t turn = (uint32_t)adding.slices * adding.unroll;
    const double rounds = (double)rounds_of(info, rows * adding_columns);
    const double read = rounds * adding.block_m * adding.block_n * parts * sum;
    const double written = elements * parts * sum / info->compute_units;
    return duration(info, plan, &t, work, depth, parts) + LAUNCH_NS +
           (read + written) / UNIT_BYTES_PER_NS + (double)((parts + turn - 1) / turn) * TURN_NS;
}

void ops_gemm_choose_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                           uint32_t width, int b_k_contiguous, ops_gemm_tiles *tiles)
{
    if (info->item_vector_bytes > 0) {
        *tiles = choose_alone(info, m, n, batch, width);
        return;
    }
    if (info->kind == HAL_DEVICE_CPU && info->subgroup_width > 0) {
        *tiles = choose_lanes(m, n, b_k_contiguous);
        return;
    }
    const uint32_t count = sizeof staged / sizeof staged[0];
    uint64_t least = UINT64_MAX;
    *tiles = staged[count - 1].tiles;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t now = cost(info, &staged[i], m, n, batch);
        if (now < least && fits(info, &staged[i].tiles, width)) {
            least = now;
            *tiles = staged[i].tiles;
        }
    }
    if (width > 4) { /* sums of two registers each leave room for half as many groups */
        tiles->min_groups_per_unit =
            (uint8_t)(tiles->min_groups_per_unit ? (tiles->min_groups_per_unit + 1) / 2 : 4);
    }
}

int ops_gemm_choose_slices(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                           uint32_t batch, uint32_t width, int a_k_contiguous,
                           ops_gemm_tiles *tiles)
{
    const uint32_t warp = 32, wide = width > 4 ? 2 : 1;
    ops_gemm_tiles t = {.block_k = (uint16_t)(wide == 2 ? 2 : 4)};
    if (info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0 ||
        ((m > SLICED_SIDE && n > SLICED_SIDE) &&
         (uint64_t)m * (uint64_t)n * batch > (uint64_t)SLICED_ELEMENTS * info->compute_units)) {
        return 0;
    }
    choose_block(info, m, n, batch, &t);
    if (((uint64_t)n + t.block_n - 1) / t.block_n > info->max_grid[0]) {
        return 0; /* wider tiles may fit in the grid */
    }
    t.thread_m = (uint8_t)(t.block_m < 8 ? t.block_m : 8);
    t.thread_n = (uint8_t)(t.block_n < 4 ? t.block_n : 4);
    t.strip_m = (uint8_t)(a_k_contiguous ? 1 : t.thread_m < 4 ? t.thread_m : 4);
    t.strip_n = t.thread_n;
    t.lanes_m = (uint8_t)(t.block_m / t.thread_m);
    t.lanes_n = (uint8_t)(t.block_n / t.thread_n);

    const uint32_t lanes = (uint32_t)t.lanes_m * t.lanes_n;
    uint32_t items = SLICED_ITEMS;
    while (items > info->max_group_items || items > info->max_group_size[0]) {
        items /= 2;
    }
    while (t.block_k > 1 && k < (int64_t)(t.block_k * warp / lanes)) {
        t.block_k /= 2;
    }
    t.slices = cover((k + t.block_k - 1) / t.block_k, 1, (uint16_t)(items / lanes));
    while (t.slices > 1 && ops_gemm_sliced_elements(&t) * 4 * wide > info->shared_bytes) {
        t.slices /= 2;
    }
    t.min_groups_per_unit =
        1; /* registers for all loads under way: a compiler would rather wait for some */
    const uint32_t most =
        info->item_register_bytes ? info->item_register_bytes / (4 * VALUES_SHARE) : SLICED_VALUES;
    const uint32_t values = (uint32_t)(t.thread_m + t.thread_n) * t.block_k * wide;
    t.unroll = 1;
    while (t.unroll < 4 && (int64_t)t.unroll * t.slices * t.block_k < k &&
           2 * t.unroll * values <= most) {
        t.unroll *= 2;
    }
    *tiles = t;
    return 1;
}

int ops_gemm_choose_matrix_tiles(const hal_device_info *info, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, uint32_t batch, hal_type type,
                                 int b_k_contiguous, ops_gemm_tiles *tiles)
{
    if (precision == HAL_GEMM_STRICT || !(info->matrix_types & HAL_TYPE_BIT(type)) ||
        !(info->abilities & HAL_ABILITY_ASYNC_COPY) ||
        info->subgroup_width != HAL_IR_MATRIX_LANES || m < 64 || n < 64 || k < 32) {
        return 0;
    }
    for (uint32_t i = 0; i < UNIT_TILES; i++) {
        *tiles = type == HAL_TYPE_F32 ? units_f32[i] : units_half[i];
        const int64_t rows = (m + tiles->block_m - 1) / tiles->block_m,
                      columns = (n + tiles->block_n - 1) / tiles->block_n;
        const int room = precision == HAL_GEMM_FAST || tiles->block_n <= 128; /* for two sets */
        if (room && rows * columns * batch >= info->compute_units) {
            break;
        }
    }
    tiles->matrix = type == HAL_TYPE_F32 && precision == HAL_GEMM_ACCURATE ? 3 : 1;
    tiles->flush = precision == HAL_GEMM_ACCURATE;
    tiles->strip_n = b_k_contiguous ? 2 : 8;
    if (tiles->flush && tiles->thread_n == 16) { /* room for the second set of sums */
        tiles->thread_n /= 2;
        tiles->min_groups_per_unit = 1;
    }
    return 1;
}

uint32_t ops_gemm_choose_depth(const hal_device_info *info, const ops_gemm_plan *plan,
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

/* Work-items of a group add the parts of four neighbours each, all loads of a turn under way at
 * once; where there are more parts than a turn takes, slices of the group share them. */
void ops_gemm_choose_adding(const hal_device_info *info, int64_t m, int64_t n, uint32_t parts,
                            uint32_t width, ops_gemm_tiles *tiles)
{
    ops_gemm_tiles t = {.block_k = 1, .thread_m = 1, .strip_m = 1, .min_groups_per_unit = 2};
    uint32_t items = SLICED_ITEMS;
    while (items > 1 && (items > info->max_group_items || items > info->max_group_size[0])) {
        items /= 2;
    }
    t.thread_n = t.strip_n = n % 4 == 0 ? 4 : 1;
    t.unroll = (uint8_t)cover(parts, 1, ADDING_UNROLL);
    t.lanes_n = (uint8_t)cover(n / t.thread_n, 1, (uint16_t)(items < 16 ? items : 16));
    t.slices = cover(((int64_t)parts + t.unroll - 1) / t.unroll, 1, (uint16_t)(items / t.lanes_n));
    const uint32_t left = items / (t.lanes_n * (uint32_t)t.slices);
    t.lanes_m = (uint8_t)cover(m, 1, (uint16_t)(left < 64 ? left : 64));
    t.block_m = t.lanes_m;
    t.block_n = (uint16_t)(t.lanes_n * t.thread_n);
    while (ops_gemm_sliced_elements(&t) * width > info->shared_bytes &&
           (t.lanes_m > 1 || t.slices > 1)) {
        if (t.lanes_m > 1) {
            t.block_m = t.lanes_m /= 2;
        } else {
            t.slices /= 2;
        }
    }
    *tiles = t;
}

/* Work-items of a group store neighbours of a row, as an elementwise kernel does. */
void ops_gemm_choose_scale_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                 ops_gemm_tiles *tiles)
{
    ops_gemm_tiles t = {.block_k = 1, .thread_m = 1, .strip_m = 1, .slices = 1};
    uint32_t items = SLICED_ITEMS;
    while (items > 1 && (items > info->max_group_items || items > info->max_group_size[0])) {
        items /= 2;
    }
    t.thread_n = t.strip_n = n % 4 == 0 ? 4 : 1;
    t.lanes_n = (uint8_t)cover(n / t.thread_n, 1, (uint16_t)(items < 32 ? items : 32));
    const uint32_t rows = items / t.lanes_n;
    t.lanes_m = (uint8_t)cover(
        m, 1, (uint16_t)(rows < info->max_group_size[1] ? rows : info->max_group_size[1]));
    t.block_m = t.lanes_m;
    t.block_n = (uint16_t)(t.lanes_n * t.thread_n);
    *tiles = t;
}
