/* The choice of tiles of the portable GEMM kernel. */
#include "tiles.h"

#include "kernel.h"

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

/* A row of the tables of tiles for GPUs. The rates are fitted to measured times (gemm/cost.c). */
typedef struct gpu_tiles {
    ops_gemm_tiles tiles;
    ops_gemm_rates rates;
} gpu_tiles;

/* clang-format off */
#define STAGED(m, n, k, tm, tn, sm, sn, lm, ln, ring, split, groups, ...)                        \
    {                                                                                           \
        {.block_m = m, .block_n = n, .block_k = k, .thread_m = tm, .thread_n = tn,              \
         .strip_m = sm, .strip_n = sn, .lanes_m = lm, .lanes_n = ln, .stages = ring,            \
         .intra_group_split_k = split, .min_groups_per_unit = groups},                          \
        {__VA_ARGS__}                                                                           \
    }

/* Multiply-adds, staged. With 8 x 16 sums two sets of operands fit 255 registers; split-K in the
 * group keeps a unit busy with a tile small enough for matrices of a thousand rows. With lanes
 * along columns alone (the last row) a warp has neighbours of a row, so that it stores C without
 * gaps whatever the strides are. */
static const gpu_tiles staged[] = {
    /*     block         thread strip lanes stages split groups resident step alone end, odd */
    STAGED(128, 256,  8, 8, 16, 4, 4, 4, 8, 3,     1,    1,     1, 146.3, 12, 1328, 5590),
    STAGED( 64, 128, 32, 8, 16, 4, 4, 8, 4, 3,     4,    1,     1,  40.7, 17, 1485, 3000),
    STAGED(128, 128,  8, 8,  8, 4, 4, 8, 4, 2,     1,    2,     2,  77.0, 82,  774, 6550),
    STAGED( 64,  64, 16, 8,  4, 4, 4, 4, 8, 2,     1,    4,     4,  24.9, 31,   61,  365),
    STAGED( 32,  32, 16, 4,  2, 4, 2, 4, 8, 2,     1,    0,     8,  11.2, 14,    0,    0),
    STAGED( 16,  16, 16, 2,  2, 2, 2, 4, 8, 2,     1,    0,    16,   5.0, 14,    0,    0),
    STAGED( 32, 128,  8, 8,  4, 4, 4, 1, 32, 2,    1,    5,     5,  26.4, 37,    0,  116),
};

/* Matrix units. Warps of 64 x 64, in tiles as large as registers allow, since the second-level
 * cache is the limit; of 64 x 32 where there are two sets of sums, operands in two parts, or narrow
 * accesses. */
#define MATRIX_UNITS(m, n, k, tm, tn, ring, groups, ...)                                        \
    STAGED(m, n, k, tm, tn, 1, 8, 8, 4, ring, 1, groups, __VA_ARGS__)
static const gpu_tiles units_half[] = {
    /*           block         thread stages groups resident step alone end, odd */
    MATRIX_UNITS(128, 256, 64, 8, 16, 3,     1,     1, 18.3, 14, 4100, 10000),
    MATRIX_UNITS(128, 128, 64, 8, 16, 3,     2,     2, 13.1,  8, 2700,  6700),
    MATRIX_UNITS(128,  64, 64, 8,  8, 3,     2,     2, 10.2,  6, 1500,  3800),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 4,     2,     2,  2.1, 10, 1200,  2900),
};
static const gpu_tiles units_f32[] = {
    MATRIX_UNITS(128, 256, 32, 8, 16, 3,     1,     1, 28.4, 28, 1600, 3100),
    MATRIX_UNITS(128, 128, 32, 8, 16, 3,     2,     2, 14.0, 16, 1600, 3100),
    MATRIX_UNITS(128,  64, 32, 8,  8, 4,     2,     2,  8.3, 12, 1500, 3100),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 4,     2,     2,  4.2, 11, 1400, 3000),
};

/* Halves whose lines are no multiples of 16 bytes pass through registers too, in deeper stages than
 * below: a line of the first-level cache is read at once. */
static const gpu_tiles narrow_units_half[] = {
    MATRIX_UNITS(128, 128, 64, 8,  8, 2,     1,     1, 11.3, 11.5, 2400, 5500),
    MATRIX_UNITS(128,  64, 64, 8,  8, 2,     2,     2,  7.0,  7.2, 1450, 3250),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 2,     2,     2,  3.7,  3.6,  780, 1800),
};

/* The fewest rows and columns that units multiply: the multiply-adds of halves take 2 to 4 times as
 * long for 17 to 48 x 4096 x 4096 on an H100, although most of a tile is not used. */
enum { UNITS_LEAST_F32 = 64, UNITS_LEAST_HALF = 17 };

/* Without asynchronous copies a tile passes through registers and two stages, in 48 KiB. Rates are
 * from 4096 x 4096 x 4096 on an H200: halves 260 TFLOP/s, f32 as TF32 124. */
static const gpu_tiles register_units_half[] = {
    MATRIX_UNITS(128, 128, 32, 8, 16, 2,     1,     1, 16.6, 17, 3000, 6000),
    MATRIX_UNITS(128,  64, 32, 8, 16, 2,     2,     2,  8.3, 12, 1600, 3200),
    MATRIX_UNITS( 64,  64, 32, 8,  8, 2,     2,     2,  4.2, 10, 1300, 2500),
};
static const gpu_tiles register_units_f32[] = {
    MATRIX_UNITS(128, 128, 16, 8, 16, 2,     1,     1, 35.0, 35, 3000, 6000),
    MATRIX_UNITS(128,  64, 16, 8, 16, 2,     2,     2, 17.5, 24, 1600, 3200),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 2,     2,     2,  8.8, 18, 1300, 2500),
};
/* clang-format on */

/* Intra-group split-K: for products with so few rows or columns that elements of A or B are reused
 * only a few times, or so few elements per unit that staged tiles would leave units idle. Values:
 * elements that a work-item has in flight in registers, in addition to its sums. */
enum { SPLIT_BLOCK = 32, SPLIT_ITEMS = 256, SPLIT_VALUES = 96 };

/* Where the device reports its registers per work-item, sums may take a fourth of them (the others
 * hold two sets of operands and staged vectors), and values in flight half: Intel's compiler spills
 * with more. */
enum { SUMS_SHARE = 4, VALUES_SHARE = 2 };

/* Products with at most so many steps of k may write more than they read again: a work-item
 * computes a few rows from operands in the first-level cache, some steps at once. */
enum { OUTER_MAX_K = 32, OUTER_ROWS = 4, OUTER_STEPS = 4 };

/* Loads in flight of the kernel that reduces partial sums. */
enum { REDUCE_UNROLL = 8 };

/* The smallest power of two that covers a length, or the largest one within the limits, of which
 * `least` is a power of two. */
static uint16_t cover(int64_t length, uint16_t least, uint16_t most)
{
    uint16_t size = least;
    while (size <= most / 2 && size < length) {
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

static int tiles_fit(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width)
{
    uint32_t items =
        (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n) * t->intra_group_split_k;
    uint32_t registers = t->thread_m * t->thread_n * (width < 4 ? 4 : width);
    uint32_t most = info->item_register_bytes ? info->item_register_bytes / SUMS_SHARE : 512;
    int copies = (info->features & HAL_FEATURE_ASYNC_COPY) && width >= 4;
    return items <= info->max_group_items && items <= info->max_group_size[0] &&
           registers <= most && ops_gemm_shared_elements(t) * width <= info->shared_bytes &&
           (t->stages <= 2 || copies);
}

void ops_gemm_choose_cpu_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                               uint32_t width, int b_k_contiguous, ops_gemm_tiles *tiles)
{
    *tiles = info->item_vector_bytes > 0 ? choose_vectorised(info, m, n, batch, width)
                                         : choose_cpu_lanes(m, n, b_k_contiguous);
}

/* Completes tiles of intra-group split-K whose block is chosen. */
static ops_gemm_tiles complete_intra_group_tiles(const hal_device_info *info, uint16_t block_m,
                                                 uint16_t block_n, int64_t k, uint32_t width,
                                                 int a_k_contiguous)
{
    const uint32_t warp = 32, wide = width > 4 ? 2 : 1;
    ops_gemm_tiles t = {
        .block_m = block_m, .block_n = block_n, .block_k = (uint16_t)(wide == 2 ? 2 : 4)};
    t.thread_m = (uint8_t)(t.block_m < 8 ? t.block_m : 8);
    t.thread_n = (uint8_t)(t.block_n < 4 ? t.block_n : 4);
    t.strip_m = (uint8_t)(a_k_contiguous ? 1 : t.thread_m < 4 ? t.thread_m : 4);
    t.strip_n = t.thread_n;
    t.lanes_m = t.block_m / t.thread_m;
    t.lanes_n = t.block_n / t.thread_n;

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
    return t;
}

static const gpu_tiles *unit_tiles(int is_f32, int by_registers, uint32_t access, uint32_t *count)
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

/* Whether tiles of matrix units are filled by asynchronous copies: they need deep stages. With
 * 48 KiB on an H100 halves at 4096 had 163 TFLOP/s, through registers 224 to 230; F32 as
 * TF32 70 and 108. */
static int units_copy(const hal_device_info *info)
{
    enum { LEAST_SHARED = 64 << 10 };
    return (info->features & HAL_FEATURE_ASYNC_COPY) && info->shared_bytes >= LEAST_SHARED;
}

/* The device's tiles for a type and precision, `*count` of them; the first ones may be too wide. */
static const gpu_tiles *precise_unit_tiles(const hal_device_info *info, uint32_t precision,
                                           hal_type type, uint32_t access, uint32_t *count)
{
    const int is_f32 = type == HAL_TYPE_F32;
    const int by_registers = !units_copy(info);
    const gpu_tiles *table = unit_tiles(is_f32, by_registers, access, count);
    if (is_f32 && by_registers && precision == HAL_GEMM_ACCURATE) {
        table += *count - 1; /* the operands in parts take the registers of a larger tile */
        *count = 1;
    }
    return table;
}

/* Fast products with wide accesses have room for the largest tiles; others have second sums, or
 * places of elements. */
static int units_are_roomy(uint32_t precision, uint32_t access)
{
    return precision == HAL_GEMM_FAST && access == 16;
}

static void complete_matrix_tiles(const hal_device_info *info, uint32_t precision, hal_type type,
                                  uint32_t access, int b_k_contiguous, ops_gemm_tiles *tiles)
{
    const int is_f32 = type == HAL_TYPE_F32;
    const int by_registers = !units_copy(info);
    tiles->matrix = is_f32 && precision == HAL_GEMM_ACCURATE ? 3 : 1;
    tiles->flush = precision == HAL_GEMM_ACCURATE;
    if (tiles->flush && !is_f32 && access < 16) {
        tiles->block_k /= 2; /* the second set of sums takes the registers of half of the loads */
    }
    tiles->strip_n = b_k_contiguous ? 2 : 8;
    if (!units_are_roomy(precision, access) && tiles->thread_n == 16) {
        tiles->thread_n /= 2;
        tiles->stages = is_f32 && !by_registers ? 4 : tiles->stages;
        tiles->min_groups_per_unit = 1;
    }
}

int ops_gemm_units_multiply(const hal_device_info *info, uint32_t precision, int64_t m, int64_t n,
                            int64_t k, hal_type type)
{
    const int64_t least = type == HAL_TYPE_F32 ? UNITS_LEAST_F32 : UNITS_LEAST_HALF;
    return precision != HAL_GEMM_STRICT && (info->matrix_types & HAL_TYPE_BIT(type)) &&
           info->subgroup_width == HAL_IR_MATRIX_LANES && m >= least && n >= least && k >= 32;
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
    t.lanes_n = cover(n / t.thread_n, 1, (uint16_t)(items < 16 ? items : 16));
    t.intra_group_split_k =
        cover(((int64_t)parts + t.unroll - 1) / t.unroll, 1, (uint16_t)(items / t.lanes_n));
    const uint32_t left = items / (t.lanes_n * (uint32_t)t.intra_group_split_k);
    t.lanes_m = cover(m, 1, (uint16_t)(left < 64 ? left : 64));
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
    t.lanes_n = cover(n / t.thread_n, 1, (uint16_t)(items < 32 ? items : 32));
    const uint32_t rows = items / t.lanes_n;
    t.lanes_m = cover((m + thread_m - 1) / thread_m, 1,
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

static void set_outer_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                            ops_gemm_tiles *tiles)
{
    *tiles = elementwise_tiles(info, m, n, OUTER_ROWS);
    while (2 * tiles->block_k <= k && tiles->block_k < OUTER_STEPS) {
        tiles->block_k *= 2;
    }
}

/* Blocks of intra-group split-K that candidates have: those of at most SPLIT_BLOCK lines, of which
 * a side is at most 8 times smaller than the matrix allows. Returns 0 after the last one. */
static int intra_group_candidate(const hal_device_info *info, const ops_gemm_shape *shape,
                                 uint32_t number, int64_t k, ops_gemm_tiles *tiles)
{
    enum { SIDES = 4 };
    const uint16_t most_m = cover(shape->m, 1, SPLIT_BLOCK),
                   most_n = cover(shape->n, 1, SPLIT_BLOCK);
    const uint16_t block_m = (uint16_t)(most_m >> number / SIDES),
                   block_n = (uint16_t)(most_n >> number % SIDES);
    if (block_m > 0 && block_n > 0 && (block_n >= 4 || block_n == most_n)) {
        *tiles = complete_intra_group_tiles(info, block_m, block_n, k, hal_type_size(shape->type),
                                            shape->a_k_contiguous);
        if ((uint32_t)tiles->lanes_m * tiles->lanes_n > group_items(info)) {
            *tiles = (ops_gemm_tiles){0};
        }
    }
    return number < SIDES * SIDES;
}

/* Makes stages less deep until they fit into shared memory, down to two steps of k. Returns whether
 * they do. */
static int fit_stages(const hal_device_info *info, const ops_gemm_shape *shape,
                      ops_gemm_tiles *tiles)
{
    const uint32_t least = 64 / hal_type_size(shape->type);
    ops_gemm_kernel_key key = {.tiles = *tiles,
                               .type_ab = shape->type,
                               .a.k_contiguous = shape->a_k_contiguous,
                               .b.k_contiguous = shape->b_k_contiguous};
    while (ops_gemm_matrix_bytes(&key) > info->shared_bytes && key.tiles.block_k > least) {
        key.tiles.block_k /= 2;
    }
    tiles->block_k = key.tiles.block_k;
    return ops_gemm_matrix_bytes(&key) <= info->shared_bytes;
}

int ops_gemm_get_tiles(const hal_device_info *info, const ops_gemm_shape *shape, uint32_t number,
                       int64_t k, ops_gemm_tiles *tiles, const ops_gemm_rates **rates)
{
    const uint32_t count = sizeof staged / sizeof staged[0], width = hal_type_size(shape->type);
    uint32_t units = 0;
    *tiles = (ops_gemm_tiles){0};
    *rates = NULL;
    if (number < count) {
        if (tiles_fit(info, &staged[number].tiles, width)) {
            *tiles = staged[number].tiles;
            *rates = &staged[number].rates;
        }
        if (width > 4) { /* sums of two registers leave room for half as many groups */
            tiles->min_groups_per_unit =
                (uint8_t)(tiles->min_groups_per_unit ? (tiles->min_groups_per_unit + 1) / 2 : 4);
        }
        return 1;
    }
    number -= count;
    if (number == 0) {
        if (shape->k <= OUTER_MAX_K) {
            set_outer_tiles(info, shape->m, shape->n, shape->k, tiles);
        }
        return 1;
    }
    number--;
    if (shape->access > 0) {
        const gpu_tiles *table =
            precise_unit_tiles(info, shape->precision, shape->type, shape->access, &units);
        const int is_roomy = units_are_roomy(shape->precision, shape->access);
        if (number < units) {
            if (is_roomy || table[number].tiles.block_n <= 128) {
                *tiles = table[number].tiles;
                *rates = &table[number].rates;
                complete_matrix_tiles(info, shape->precision, shape->type, shape->access,
                                      shape->b_k_contiguous, tiles);
                if (!fit_stages(info, shape, tiles)) {
                    *tiles = (ops_gemm_tiles){0};
                }
            }
            return 1;
        }
    }
    return intra_group_candidate(info, shape, number - units, k, tiles);
}
