/* The choice of tiles of the portable GEMM kernel. Called by gemm/task.c and gemm/cost.c. */
#include "tiles.h"

#include <math.h>

/* CPUs whose lanes run in lock-step along the columns: a work-item sums one column. The tall tile
 * amortises the strided reads of a B that is contiguous along k. */
enum { CPU_WIDE_N = 256, CPU_WIDE_M = 16, CPU_TALL_N = 64, CPU_TALL_M = 64 };

/* CPUs whose compiler vectorises one work-item (item_vector_bytes): along the columns of C, with
 * the sums in registers: 16 vectors of 8 floats, since compilers prefer half of the widest vectors.
 * The work-items of a group go down the rows and find B's columns in the cache; staging was half as
 * fast. */
static const ops_gemm_tiles vectorised = {.block_m = 128,
                                          .block_n = 16,
                                          .block_k = 4,
                                          .thread_m = 8,
                                          .thread_n = 16,
                                          .strip_m = 8,
                                          .strip_n = 8,
                                          .intra_group_split_k = 1};
#define GROUPS_PER_UNIT 4 /* from so many on, units finish at about the same time */

/* Staged tiles for GPUs. `speed` is measured on one GPU for the first three, estimated for the
 * small ones from their loads per multiplication. With 8 x 16 sums two sets of operands fit 255
 * registers; split-K keeps a unit busy with a tile small enough for matrices of a thousand rows. */
/* clang-format off */
#define STAGED(m, n, k, tm, tn, sm, sn, lm, ln, ring, split, groups, speed_)                    \
    {                                                                                           \
        .block_m = m, .block_n = n, .block_k = k, .thread_m = tm, .thread_n = tn, .strip_m = sm, \
        .strip_n = sn, .lanes_m = lm, .lanes_n = ln, .stages = ring,                            \
        .intra_group_split_k = split, .min_groups_per_unit = groups, .speed = speed_            \
    }
static const ops_gemm_tiles staged[] = {
    /*     block         thread strip lanes stages split groups speed */
    STAGED(128, 256,  8, 8, 16, 4, 4, 4, 8, 3,     1,    1,     100),
    STAGED( 64, 128, 32, 8, 16, 4, 4, 8, 4, 3,     4,    1,      93),
    STAGED(128, 128,  8, 8,  8, 4, 4, 8, 4, 2,     1,    2,      95),
    STAGED( 64,  64, 16, 8,  4, 4, 4, 4, 8, 2,     1,    4,      70),
    STAGED( 32,  32, 16, 4,  2, 4, 2, 4, 8, 2,     1,    0,      35),
    STAGED( 16,  16, 16, 2,  2, 2, 2, 4, 8, 2,     1,    0,      12),
};

/* Staged tiles for a small k: a warp has neighbouring columns of a row, so that it stores C without
 * gaps whatever the strides are, and several groups hide each other's loads and stores. (An H100
 * takes 48 us for 5128 x 5677 x 11 of f32, 157 with the tiles above. 21 products each, mean of the
 * time of those above over this: k of 11 1.5, 24 1.7, 48 1.35, 64 1.3, 100 1.17;
 * with even rows and k of 100 0.9.) */
static const ops_gemm_tiles small_k =
    STAGED( 32, 128,  8, 8,  4, 4, 4, 1, 32, 2,    1,    5,      60);
/* The largest k, of C with even and with odd lines, as measured above. Matrices with rows for one
 * tile only, or columns for no more than half of one, have the tiles above. */
enum { SMALL_K_MAX = 48, SMALL_K_MAX_ODD = 100, SMALL_K_MIN_M = 33, SMALL_K_MIN_N = 65 };

/* Tiles for matrix units, from large to small; the first one that gives every unit a group is used.
 * Warps of 64 x 64, in tiles as large as registers allow, since the second-level cache is the
 * limit; of 64 x 32 where there are two sets of sums, operands in two parts, or narrow accesses.
 * Speeds are from large products, of F32 with one term. */
#define MATRIX_UNITS(m, n, k, tm, tn, ring, groups, speed_)                                  \
    STAGED(m, n, k, tm, tn, 1, 8, 8, 4, ring, 1, groups, speed_)
static const ops_gemm_tiles units_half[] = {
    /*           block         thread stages groups speed */
    MATRIX_UNITS(128, 256, 64, 8, 16, 3,     1,     775),
    MATRIX_UNITS(128, 128, 64, 8, 16, 3,     2,     775),
    MATRIX_UNITS(128,  64, 64, 8,  8, 3,     2,     775),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 4,     2,     775),
};
static const ops_gemm_tiles units_f32[] = {
    MATRIX_UNITS(128, 256, 32, 8, 16, 3,     1,     400),
    MATRIX_UNITS(128, 128, 32, 8, 16, 3,     2,     400),
    MATRIX_UNITS(128,  64, 32, 8,  8, 4,     2,     400),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 4,     2,     400),
};

/* Halves whose lines are no multiples of 16 bytes pass through registers too, in deeper stages than
 * below: a line of the first-level cache is read at once. */
static const ops_gemm_tiles narrow_units_half[] = {
    MATRIX_UNITS(128, 128, 64, 8,  8, 2,     1,     300),
    MATRIX_UNITS(128,  64, 64, 8,  8, 2,     2,     300),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 2,     2,     300),
};

/* The fewest rows and columns that units multiply: the multiply-adds of halves take 2 to 4 times as
 * long for 17 to 48 x 4096 x 4096 on an H100, although most of a tile is not used. */
enum { UNITS_LEAST_F32 = 64, UNITS_LEAST_HALF = 17 };

/* Without asynchronous copies a tile passes through registers and two stages, in 48 KiB. Measured
 * on an H200, 4096 x 4096 x 4096: halves 260 TFLOP/s, f32 as TF32 124. */
static const ops_gemm_tiles register_units_half[] = {
    MATRIX_UNITS(128, 128, 32, 8, 16, 2,     1,     490),
    MATRIX_UNITS(128,  64, 32, 8, 16, 2,     2,     490),
    MATRIX_UNITS( 64,  64, 32, 8,  8, 2,     2,     490),
};
static const ops_gemm_tiles register_units_f32[] = {
    MATRIX_UNITS(128, 128, 16, 8, 16, 2,     1,     235),
    MATRIX_UNITS(128,  64, 16, 8, 16, 2,     2,     235),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 2,     2,     235),
};
/* clang-format on */

/* Intra-group split-K: for products with so few rows or columns that elements of A or B are reused
 * only a few times, or so few elements per unit that staged tiles would leave units idle. Values:
 * elements that a work-item has in flight in registers, in addition to its sums. */
enum {
    SPLIT_SIDE = 16,
    SPLIT_ELEMENTS = 512,
    SPLIT_BLOCK = 32,
    SPLIT_ITEMS = 256,
    SPLIT_VALUES = 96
};

/* Where the device reports its registers per work-item, sums may take a fourth of them (the others
 * hold two sets of operands and staged vectors), and values in flight half: Intel's compiler spills
 * with more. */
enum { SUMS_SHARE = 4, VALUES_SHARE = 2 };

/* Products with at most so many steps of k write more than they read again: a work-item computes a
 * few rows from operands in the first-level cache, some steps at once. */
enum { OUTER_MAX_K = 8, OUTER_ROWS = 4, OUTER_STEPS = 4 };

/* Loads in flight of the kernel that reduces partial sums. */
enum { REDUCE_UNROLL = 8 };

/* The smallest power of two that covers a length, within limits. */
static uint16_t cover(int64_t length, uint16_t least, uint16_t most)
{
    uint16_t size = least;
    while (size < most && size < length) {
        size = (uint16_t)(2 * size);
    }
    return size;
}

/* Work-items of a group, at most SPLIT_ITEMS, that the device allows along x. */
static uint32_t group_items(const hal_device_info *info)
{
    uint32_t items = SPLIT_ITEMS;
    while (items > 1 && (items > info->max_group_items || items > info->max_group_size[0])) {
        items /= 2;
    }
    return items;
}

static ops_gemm_tiles choose_vectorised(const hal_device_info *info, int64_t m, int64_t n,
                                        uint32_t batch, uint32_t width)
{
    ops_gemm_tiles t = vectorised;
    t.block_n = cover(n, 4, (uint16_t)(width > 4 ? t.block_n / 2 : t.block_n));
    t.thread_n = (uint8_t)t.block_n;
    t.strip_n = t.thread_n < t.strip_n ? t.thread_n : t.strip_n;
    t.block_m = cover(m, 1, t.block_m);
    const uint64_t enough = GROUPS_PER_UNIT * (uint64_t)info->compute_units;
    const uint64_t columns = ops_gemm_blocks((uint64_t)n, t.block_n) * batch;
    const uint32_t items = info->max_group_size[1];
    while (t.block_m > t.thread_m && (t.block_m > t.thread_m * items ||
                                      ops_gemm_blocks((uint64_t)m, t.block_m) * columns < enough)) {
        t.block_m /= 2;
    }
    t.thread_m = t.block_m < t.thread_m ? (uint8_t)t.block_m : t.thread_m;
    t.strip_m = t.thread_m;
    return t;
}

/* No larger than the matrix: idle lanes and rows cost as much as busy ones. */
static ops_gemm_tiles choose_cpu_lanes(int64_t m, int64_t n, int b_k_contiguous)
{
    ops_gemm_tiles t = {.block_k = 8, .thread_n = 1, .strip_n = 1, .intra_group_split_k = 1};
    t.block_n = cover(n, 16, b_k_contiguous ? CPU_TALL_N : CPU_WIDE_N);
    const uint32_t area = b_k_contiguous ? CPU_TALL_M * CPU_TALL_N : CPU_WIDE_M * CPU_WIDE_N;
    const uint32_t rows = area / t.block_n;
    t.block_m = cover(m, 1, (uint16_t)(rows < 64 ? rows : 64));
    t.thread_m = t.strip_m = (uint8_t)t.block_m;
    return t;
}

/* Time of a staged tile, in rounds of the whole device, up to a factor. */
static double tiles_cost(const hal_device_info *info, const ops_gemm_tiles *t, int64_t m, int64_t n,
                         int64_t k, uint32_t batch)
{
    const uint64_t depth = ops_gemm_blocks((uint64_t)k, t->block_k) * t->block_k;
    uint64_t rows = ops_gemm_blocks((uint64_t)m, t->block_m);
    uint64_t columns = ops_gemm_blocks((uint64_t)n, t->block_n);
    uint64_t units = info->compute_units ? info->compute_units : 1;
    uint64_t rounds = (rows * columns * batch + units - 1) / units;
    /* A unit with fewer groups than hide each other's latency is slower. */
    uint64_t missing = t->min_groups_per_unit > rounds ? t->min_groups_per_unit - rounds : 0;
    return (double)(4 * rounds + missing) * t->block_m * t->block_n * (double)depth / t->speed;
}

static int tiles_fit(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width)
{
    uint32_t items =
        (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n) * t->intra_group_split_k;
    uint32_t registers = t->thread_m * t->thread_n * (width < 4 ? 4 : width);
    uint32_t most = info->item_register_bytes ? info->item_register_bytes / SUMS_SHARE : 512;
    int copies = (info->abilities & HAL_ABILITY_ASYNC_COPY) && width >= 4;
    return items <= info->max_group_items && items <= info->max_group_size[0] &&
           registers <= most && ops_gemm_shared_elements(t) * width <= info->shared_bytes &&
           (t->stages <= 2 || copies);
}

/* The largest block, near a square, that leaves a group for most units. A group that reads only a
 * few neighbours of each row of B wastes most of what the memory delivers: where it is contiguous
 * along the rows, blocks are up to SPLIT_BLOCK columns wide, as long as a fifth of the units has
 * one, and k is split further. (11x1338x2613 takes an H200 10.6 us with blocks of 32 columns and
 * 16.5 with 8; of 20 products none took longer.) */
static void choose_split_block(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                               int b_k_contiguous, ops_gemm_tiles *t)
{
    const uint64_t enough = info->compute_units - info->compute_units / 4;
    t->block_m = 1;
    t->block_n = cover(n, 1, 4);
    while (!b_k_contiguous && t->block_n < SPLIT_BLOCK &&
           5 * ops_gemm_blocks((uint64_t)n, 2u * t->block_n) * batch >= info->compute_units) {
        t->block_n *= 2;
    }
    for (;;) {
        const int more_m = t->block_m < m && t->block_m < SPLIT_BLOCK;
        const int more_n = t->block_n < n && t->block_n < SPLIT_BLOCK;
        const int by_m = more_m && (!more_n || t->block_m <= t->block_n);
        const uint32_t block_m = by_m ? 2u * t->block_m : t->block_m;
        const uint32_t block_n = by_m ? t->block_n : 2u * t->block_n;
        /* Shifts, since every call comes here. */
        const uint64_t rows = ((uint64_t)m + block_m - 1) >> __builtin_ctz(block_m);
        const uint64_t columns = ((uint64_t)n + block_n - 1) >> __builtin_ctz(block_n);
        if ((!more_m && !more_n) || rows * columns * batch < enough) {
            return;
        }
        t->block_m = (uint16_t)block_m;
        t->block_n = (uint16_t)block_n;
    }
}

void ops_gemm_choose_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                           uint32_t batch, uint32_t width, int b_k_contiguous,
                           ops_gemm_tiles *tiles)
{
    if (info->item_vector_bytes > 0) {
        *tiles = choose_vectorised(info, m, n, batch, width);
        return;
    }
    if (info->kind == HAL_DEVICE_CPU && info->subgroup_width > 0) {
        *tiles = choose_cpu_lanes(m, n, b_k_contiguous);
        return;
    }
    const uint32_t count = sizeof staged / sizeof staged[0];
    const int is_small_k = k <= (n % 4 ? SMALL_K_MAX_ODD : SMALL_K_MAX) && m >= SMALL_K_MIN_M &&
                           n >= SMALL_K_MIN_N && tiles_fit(info, &small_k, width);
    double least = INFINITY;
    *tiles = is_small_k ? small_k : staged[count - 1];
    for (uint32_t i = 0; i < count && !is_small_k; i++) {
        const double now = tiles_cost(info, &staged[i], m, n, k, batch);
        if (now < least && tiles_fit(info, &staged[i], width)) {
            least = now;
            *tiles = staged[i];
        }
    }
    if (width > 4) { /* sums of two registers leave room for half as many groups */
        tiles->min_groups_per_unit =
            (uint8_t)(tiles->min_groups_per_unit ? (tiles->min_groups_per_unit + 1) / 2 : 4);
    }
}

int ops_gemm_choose_intra_group_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                                      uint32_t batch, uint32_t width, int a_k_contiguous,
                                      int b_k_contiguous, ops_gemm_tiles *tiles)
{
    const uint32_t warp = 32, wide = width > 4 ? 2 : 1;
    ops_gemm_tiles t = {.block_k = (uint16_t)(wide == 2 ? 2 : 4)};
    if (info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0 ||
        ((m > SPLIT_SIDE && n > SPLIT_SIDE) &&
         (uint64_t)m * (uint64_t)n * batch > (uint64_t)SPLIT_ELEMENTS * info->compute_units)) {
        return 0;
    }
    choose_split_block(info, m, n, batch, b_k_contiguous, &t);
    if (ops_gemm_blocks((uint64_t)n, t.block_n) > info->max_grid[0]) {
        return 0; /* wider tiles may fit in the grid */
    }
    t.thread_m = (uint8_t)(t.block_m < 8 ? t.block_m : 8);
    t.thread_n = (uint8_t)(t.block_n < 4 ? t.block_n : 4);
    t.strip_m = (uint8_t)(a_k_contiguous ? 1 : t.thread_m < 4 ? t.thread_m : 4);
    t.strip_n = t.thread_n;
    t.lanes_m = (uint8_t)(t.block_m / t.thread_m);
    t.lanes_n = (uint8_t)(t.block_n / t.thread_n);

    const uint32_t lanes = (uint32_t)t.lanes_m * t.lanes_n;
    const uint32_t items = group_items(info);
    while (t.block_k > 1 && k < (int64_t)(t.block_k * warp / lanes)) {
        t.block_k /= 2;
    }
    t.intra_group_split_k = cover((k + t.block_k - 1) / t.block_k, 1, (uint16_t)(items / lanes));
    while (t.intra_group_split_k > 1 &&
           ops_gemm_intra_group_elements(&t) * 4 * wide > info->shared_bytes) {
        t.intra_group_split_k /= 2;
    }
    t.min_groups_per_unit = 1; /* leaves registers for all loads in flight */
    const uint32_t most =
        info->item_register_bytes ? info->item_register_bytes / (4 * VALUES_SHARE) : SPLIT_VALUES;
    const uint32_t values = (uint32_t)(t.thread_m + t.thread_n) * t.block_k * wide;
    t.unroll = 1;
    while (t.unroll < 4 && (int64_t)t.unroll * t.intra_group_split_k * t.block_k < k &&
           2 * t.unroll * values <= most) {
        t.unroll *= 2;
    }
    *tiles = t;
    return 1;
}

static const ops_gemm_tiles *unit_tiles(int is_f32, int by_registers, uint32_t access,
                                        uint32_t *count)
{
#define TABLE(tiles) (*count = sizeof(tiles) / sizeof *(tiles), (tiles))
    if (!is_f32 && access < 16) {
        return TABLE(narrow_units_half);
    }
    if (by_registers) {
        return is_f32 ? TABLE(register_units_f32) : TABLE(register_units_half);
    }
    return is_f32 ? TABLE(units_f32) : TABLE(units_half);
#undef TABLE
}

int ops_gemm_choose_matrix_tiles(const hal_device_info *info, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, uint32_t batch, hal_type type,
                                 uint32_t access, int b_k_contiguous, ops_gemm_tiles *tiles)
{
    const int is_f32 = type == HAL_TYPE_F32;
    const int64_t least = is_f32 ? UNITS_LEAST_F32 : UNITS_LEAST_HALF;
    if (precision == HAL_GEMM_STRICT || !(info->matrix_types & HAL_TYPE_BIT(type)) ||
        info->subgroup_width != HAL_IR_MATRIX_LANES || m < least || n < least || k < 32) {
        return 0;
    }
    const int by_registers = !(info->abilities & HAL_ABILITY_ASYNC_COPY);
    const int is_roomy = precision == HAL_GEMM_FAST && access == 16; /* else second sums, places */
    uint32_t count;
    const ops_gemm_tiles *table = unit_tiles(is_f32, by_registers, access, &count);
    if (is_f32 && by_registers && precision == HAL_GEMM_ACCURATE) {
        table += count - 1; /* the operands in parts take the registers of a larger tile */
        count = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        *tiles = table[i];
        const uint64_t rows = ops_gemm_blocks((uint64_t)m, tiles->block_m);
        const uint64_t columns = ops_gemm_blocks((uint64_t)n, tiles->block_n);
        const int has_room = is_roomy || tiles->block_n <= 128;
        if (has_room && rows * columns * batch >= info->compute_units) {
            break;
        }
    }
    tiles->matrix = is_f32 && precision == HAL_GEMM_ACCURATE ? 3 : 1;
    tiles->flush = precision == HAL_GEMM_ACCURATE;
    if (tiles->flush && !is_f32 && access < 16) {
        tiles->block_k /= 2; /* the second set of sums takes the registers of half of the loads */
    }
    tiles->strip_n = b_k_contiguous ? 2 : 8;
    if (!is_roomy && tiles->thread_n == 16) {
        tiles->thread_n /= 2;
        tiles->stages = is_f32 && !by_registers ? 4 : tiles->stages;
        tiles->min_groups_per_unit = 1;
    }
    return 1;
}

/* A work-item adds the partial sums of up to four neighbours, with all loads of a turn in flight;
 * slices of the group share partial sums beyond a turn. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t parts,
                                  uint32_t width, ops_gemm_tiles *tiles)
{
    ops_gemm_tiles t = {.block_k = 1, .thread_m = 1, .strip_m = 1, .min_groups_per_unit = 2};
    const uint32_t items = group_items(info);
    t.thread_n = t.strip_n = n % 4 == 0 ? 4 : 1;
    t.unroll = (uint8_t)cover(parts, 1, REDUCE_UNROLL);
    t.lanes_n = (uint8_t)cover(n / t.thread_n, 1, (uint16_t)(items < 16 ? items : 16));
    t.intra_group_split_k =
        cover(((int64_t)parts + t.unroll - 1) / t.unroll, 1, (uint16_t)(items / t.lanes_n));
    const uint32_t left = items / (t.lanes_n * (uint32_t)t.intra_group_split_k);
    t.lanes_m = (uint8_t)cover(m, 1, (uint16_t)(left < 64 ? left : 64));
    t.block_m = t.lanes_m;
    t.block_n = (uint16_t)(t.lanes_n * t.thread_n);
    while (ops_gemm_intra_group_elements(&t) * width > info->shared_bytes &&
           (t.lanes_m > 1 || t.intra_group_split_k > 1)) {
        if (t.lanes_m > 1) {
            t.block_m = t.lanes_m /= 2;
        } else {
            t.intra_group_split_k /= 2;
        }
    }
    *tiles = t;
}

/* Groups as those of an elementwise kernel, with `thread_m` rows for each work-item. */
static ops_gemm_tiles elementwise_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                        uint8_t thread_m)
{
    ops_gemm_tiles t = {.block_k = 1, .intra_group_split_k = 1};
    const uint32_t items = group_items(info);
    t.thread_m = t.strip_m = thread_m;
    t.thread_n = t.strip_n = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
    t.lanes_n = (uint8_t)cover(n / t.thread_n, 1, (uint16_t)(items < 32 ? items : 32));
    const uint32_t rows = items / t.lanes_n;
    t.lanes_m =
        (uint8_t)cover((m + thread_m - 1) / thread_m, 1,
                       (uint16_t)(rows < info->max_group_size[1] ? rows : info->max_group_size[1]));
    t.block_m = (uint16_t)(t.lanes_m * thread_m);
    t.block_n = (uint16_t)(t.lanes_n * t.thread_n);
    return t;
}

void ops_gemm_choose_scale_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                 ops_gemm_tiles *tiles)
{
    *tiles = elementwise_tiles(info, m, n, 1);
}

int ops_gemm_choose_outer_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                                ops_gemm_tiles *tiles)
{
    if (info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0 || k > OUTER_MAX_K) {
        return 0;
    }
    *tiles = elementwise_tiles(info, m, n, OUTER_ROWS);
    while (2 * tiles->block_k <= k && tiles->block_k < OUTER_STEPS) {
        tiles->block_k *= 2;
    }
    return 1;
}
