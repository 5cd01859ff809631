/* Which tiles the portable matrix product uses: one table. Called by gemm/portable.c. */
#include "tiles.h"

#include <math.h>

/* Lanes of a processor run in lock-step along the columns; a work-item holds a column of sums. The
 * tall tile reads B with a stride where its columns are not neighbours, and amortises that. */
static const ops_gemm_tiles lanes_wide = {.block_m = 16,
                                          .block_n = 256,
                                          .block_k = 8,
                                          .thread_m = 16,
                                          .thread_n = 1,
                                          .strip_m = 16,
                                          .strip_n = 1,
                                          .intra_group_split_k = 1};
static const ops_gemm_tiles lanes_tall = {.block_m = 64,
                                          .block_n = 64,
                                          .block_k = 8,
                                          .thread_m = 64,
                                          .thread_n = 1,
                                          .strip_m = 64,
                                          .strip_n = 1,
                                          .intra_group_split_k = 1};

/* Where a compiler makes vectors of one work-item's arithmetic: it finds them along the columns of
 * C, and the sums stay in registers: 16 of 8 floats, as compilers prefer vectors of half the width
 * even where there are wider ones. The work-items of a group follow each other down the rows and
 * find the columns of B in the cache. Such a processor has no shared memory of its own, and staging
 * was half as fast. */
static const ops_gemm_tiles alone = {.block_m = 128,
                                     .block_n = 16,
                                     .block_k = 4,
                                     .thread_m = 8,
                                     .thread_n = 16,
                                     .strip_m = 8,
                                     .strip_n = 8,
                                     .intra_group_split_k = 1};
#define GROUPS_OF_A_UNIT 4 /* from so many on, units end at about the same time */

/* Work-items of their own. `speed` is what a full device reaches with such tiles, relative to the
 * first: measured on one GPU for the first three, estimated for the small ones from the loads that
 * a multiplication needs. The sizes of the first two were found on it as well: 8 x 16 sums leave
 * room for two sets of operands in 255 registers, and four slices of k keep a unit busy with a tile
 * small enough for matrices of a thousand rows. */
static const ops_gemm_tiles staged[] = {
    {.block_m = 128,
     .block_n = 256,
     .block_k = 8,
     .thread_m = 8,
     .thread_n = 16,
     .strip_m = 4,
     .strip_n = 4,
     .lanes_m = 4,
     .lanes_n = 8,
     .stages = 3,
     .intra_group_split_k = 1,
     .min_groups_per_unit = 1,
     .speed = 100},
    {.block_m = 64,
     .block_n = 128,
     .block_k = 32,
     .thread_m = 8,
     .thread_n = 16,
     .strip_m = 4,
     .strip_n = 4,
     .lanes_m = 8,
     .lanes_n = 4,
     .stages = 3,
     .intra_group_split_k = 4,
     .min_groups_per_unit = 1,
     .speed = 93},
    {.block_m = 128,
     .block_n = 128,
     .block_k = 8,
     .thread_m = 8,
     .thread_n = 8,
     .strip_m = 4,
     .strip_n = 4,
     .lanes_m = 8,
     .lanes_n = 4,
     .stages = 2,
     .intra_group_split_k = 1,
     .min_groups_per_unit = 2,
     .speed = 95},
    {.block_m = 64,
     .block_n = 64,
     .block_k = 16,
     .thread_m = 8,
     .thread_n = 4,
     .strip_m = 4,
     .strip_n = 4,
     .lanes_m = 4,
     .lanes_n = 8,
     .stages = 2,
     .intra_group_split_k = 1,
     .min_groups_per_unit = 4,
     .speed = 70},
    {.block_m = 32,
     .block_n = 32,
     .block_k = 16,
     .thread_m = 4,
     .thread_n = 2,
     .strip_m = 4,
     .strip_n = 2,
     .lanes_m = 4,
     .lanes_n = 8,
     .stages = 2,
     .intra_group_split_k = 1,
     .speed = 35},
    {.block_m = 16,
     .block_n = 16,
     .block_k = 16,
     .thread_m = 2,
     .thread_n = 2,
     .strip_m = 2,
     .strip_n = 2,
     .lanes_m = 4,
     .lanes_n = 8,
     .stages = 2,
     .intra_group_split_k = 1,
     .speed = 12},
};

/* For matrix units, from large to small; the first that gives every unit a group is taken. Halves:
 * warps of 64 x 64, in tiles as large as registers allow, since the second-level cache is what
 * bounds them. F32: warps of 64 x 32, as two sets of sums and two parts of every operand leave no
 * room for more. */
enum { UNIT_TILES = 4 };
static const ops_gemm_tiles units_half[UNIT_TILES] = {{.block_m = 128,
                                                       .block_n = 256,
                                                       .block_k = 64,
                                                       .thread_m = 8,
                                                       .thread_n = 16,
                                                       .strip_m = 1,
                                                       .strip_n = 8,
                                                       .lanes_m = 8,
                                                       .lanes_n = 4,
                                                       .stages = 3,
                                                       .intra_group_split_k = 1,
                                                       .min_groups_per_unit = 1,
                                                       .matrix = 1},
                                                      {.block_m = 128,
                                                       .block_n = 128,
                                                       .block_k = 64,
                                                       .thread_m = 8,
                                                       .thread_n = 16,
                                                       .strip_m = 1,
                                                       .strip_n = 8,
                                                       .lanes_m = 8,
                                                       .lanes_n = 4,
                                                       .stages = 3,
                                                       .intra_group_split_k = 1,
                                                       .min_groups_per_unit = 2,
                                                       .matrix = 1},
                                                      {.block_m = 128,
                                                       .block_n = 64,
                                                       .block_k = 64,
                                                       .thread_m = 8,
                                                       .thread_n = 8,
                                                       .strip_m = 1,
                                                       .strip_n = 8,
                                                       .lanes_m = 8,
                                                       .lanes_n = 4,
                                                       .stages = 3,
                                                       .intra_group_split_k = 1,
                                                       .min_groups_per_unit = 2,
                                                       .matrix = 1},
                                                      {.block_m = 64,
                                                       .block_n = 64,
                                                       .block_k = 64,
                                                       .thread_m = 4,
                                                       .thread_n = 8,
                                                       .strip_m = 1,
                                                       .strip_n = 8,
                                                       .lanes_m = 8,
                                                       .lanes_n = 4,
                                                       .stages = 4,
                                                       .intra_group_split_k = 1,
                                                       .min_groups_per_unit = 2,
                                                       .matrix = 1}};
static const ops_gemm_tiles units_f32[UNIT_TILES] = {{.block_m = 128,
                                                      .block_n = 128,
                                                      .block_k = 32,
                                                      .thread_m = 8,
                                                      .thread_n = 8,
                                                      .strip_m = 1,
                                                      .strip_n = 8,
                                                      .lanes_m = 8,
                                                      .lanes_n = 4,
                                                      .stages = 4,
                                                      .intra_group_split_k = 1,
                                                      .min_groups_per_unit = 1,
                                                      .matrix = 1},
                                                     {.block_m = 128,
                                                      .block_n = 128,
                                                      .block_k = 32,
                                                      .thread_m = 8,
                                                      .thread_n = 8,
                                                      .strip_m = 1,
                                                      .strip_n = 8,
                                                      .lanes_m = 8,
                                                      .lanes_n = 4,
                                                      .stages = 4,
                                                      .intra_group_split_k = 1,
                                                      .min_groups_per_unit = 1,
                                                      .matrix = 1},
                                                     {.block_m = 128,
                                                      .block_n = 64,
                                                      .block_k = 32,
                                                      .thread_m = 8,
                                                      .thread_n = 8,
                                                      .strip_m = 1,
                                                      .strip_n = 8,
                                                      .lanes_m = 8,
                                                      .lanes_n = 4,
                                                      .stages = 4,
                                                      .intra_group_split_k = 1,
                                                      .min_groups_per_unit = 2,
                                                      .matrix = 1},
                                                     {.block_m = 64,
                                                      .block_n = 64,
                                                      .block_k = 32,
                                                      .thread_m = 4,
                                                      .thread_n = 8,
                                                      .strip_m = 1,
                                                      .strip_n = 8,
                                                      .lanes_m = 8,
                                                      .lanes_n = 4,
                                                      .stages = 4,
                                                      .intra_group_split_k = 1,
                                                      .min_groups_per_unit = 2,
                                                      .matrix = 1}};

/* Limits of slices of k. A product is for them when it has so few rows or columns that every
 * element of A or B is used a few times only, or when its elements are so few for each unit that
 * staged tiles would leave units idle, or wait for one tile of k after another. Values: what a
 * work-item has in flight, in registers, in addition to its sums. */
enum {
    SLICED_SIDE = 16,
    SLICED_ELEMENTS = 512,
    SLICED_BLOCK = 32,
    SLICED_ITEMS = 256,
    SLICED_VALUES = 96
};

/* Where the device says how many registers a work-item has: the part of them that sums may take
 * next to two sets of operands and what is on its way to shared memory, and the part for the values
 * that slices have in flight. Intel's compiler spills nothing with these, and does with more. */
enum { SUMS_SHARE = 4, VALUES_SHARE = 2 };

/* Loads of the kernel that reduces partial sums that are in flight at once. */
enum { ADDING_UNROLL = 8 };

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
static uint64_t cost(const hal_device_info *info, const ops_gemm_tiles *t, int64_t m, int64_t n,
                     uint32_t batch)
{
    uint64_t rows = (uint64_t)(m + t->block_m - 1) / t->block_m;
    uint64_t columns = (uint64_t)(n + t->block_n - 1) / t->block_n;
    uint64_t units = info->compute_units ? info->compute_units : 1;
    uint64_t rounds = (rows * columns * batch + units - 1) / units;
    return rounds * t->block_m * t->block_n * 1000 / t->speed;
}

static int fits(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width)
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
    *tiles = staged[count - 1];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t now = cost(info, &staged[i], m, n, batch);
        if (now < least && fits(info, &staged[i], width)) {
            least = now;
            *tiles = staged[i];
        }
    }
    if (width > 4) { /* sums of two registers each leave room for half as many groups */
        tiles->min_groups_per_unit =
            (uint8_t)(tiles->min_groups_per_unit ? (tiles->min_groups_per_unit + 1) / 2 : 4);
    }
}

int ops_gemm_choose_intra_group_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
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
    t.intra_group_split_k = cover((k + t.block_k - 1) / t.block_k, 1, (uint16_t)(items / lanes));
    while (t.intra_group_split_k > 1 &&
           ops_gemm_intra_group_elements(&t) * 4 * wide > info->shared_bytes) {
        t.intra_group_split_k /= 2;
    }
    t.min_groups_per_unit =
        1; /* registers for all loads in flight: a compiler would rather wait for some */
    const uint32_t most =
        info->item_register_bytes ? info->item_register_bytes / (4 * VALUES_SHARE) : SLICED_VALUES;
    const uint32_t values = (uint32_t)(t.thread_m + t.thread_n) * t.block_k * wide;
    t.unroll = 1;
    while (t.unroll < 4 && (int64_t)t.unroll * t.intra_group_split_k * t.block_k < k &&
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

/* Work-items of a group add the parts of four neighbours each, all loads of a turn in flight at
 * once; where there are more parts than a turn takes, slices of the group share them. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t parts,
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

/* Work-items of a group store neighbours of a row, as an elementwise kernel does. */
void ops_gemm_choose_scale_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                 ops_gemm_tiles *tiles)
{
    ops_gemm_tiles t = {.block_k = 1, .thread_m = 1, .strip_m = 1, .intra_group_split_k = 1};
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
