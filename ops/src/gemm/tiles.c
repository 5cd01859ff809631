/* The choice of tiles of the portable GEMM kernel. */
#include "tiles.h"

#include "kernel.h"

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

/* Work-items of a group, at most tuning->max_items, that the device allows along x. */
static uint32_t group_items(const hal_device_info *info, const ops_gemm_tuning *tuning)
{
    uint32_t items = tuning->max_items;
    while (items > 1 && (items > info->max_group_items || items > info->max_group_size[0])) {
        items /= 2;
    }
    return items;
}

static ops_gemm_tiles choose_vectorised(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                        int64_t m, int64_t n, uint32_t batch, uint32_t width)
{
    ops_gemm_tiles t = tuning->vectorised;
    t.block_n = cover(n, 4, (uint16_t)(width > 4 ? t.block_n / 2 : t.block_n));
    t.thread_n = (uint8_t)t.block_n;
    t.strip_n = t.thread_n < t.strip_n ? t.thread_n : t.strip_n;
    t.block_m = cover(m, 1, t.block_m);
    const uint64_t enough = tuning->groups_per_unit * (uint64_t)info->compute_units;
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
static ops_gemm_tiles choose_cpu_lanes(const ops_gemm_tuning *tuning, int64_t m, int64_t n,
                                       bool b_k_contiguous)
{
    ops_gemm_tiles t = {.block_k = 8, .thread_n = 1, .strip_n = 1, .intra_group_split_k = 1};
    t.block_n = cover(n, 16, b_k_contiguous ? tuning->tall_n : tuning->wide_n);
    const uint32_t area = b_k_contiguous ? (uint32_t)tuning->tall_m * tuning->tall_n
                                         : (uint32_t)tuning->wide_m * tuning->wide_n;
    const uint32_t rows = area / t.block_n;
    t.block_m = cover(m, 1, (uint16_t)(rows < 64 ? rows : 64));
    t.thread_m = t.strip_m = (uint8_t)t.block_m;
    return t;
}

static bool tiles_fit(const hal_device_info *info, const ops_gemm_tuning *tuning,
                      const ops_gemm_tiles *t, uint32_t width)
{
    uint32_t items =
        (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n) * t->intra_group_split_k;
    uint32_t registers = t->thread_m * t->thread_n * (width < 4 ? 4 : width);
    uint32_t most =
        info->item_register_bytes ? info->item_register_bytes / tuning->sums_share : 512;
    const bool copies = (info->features & HAL_FEATURE_ASYNC_COPY) && width >= 4;
    return items <= info->max_group_items && items <= info->max_group_size[0] &&
           registers <= most && ops_gemm_shared_elements(t) * width <= info->shared_bytes &&
           (t->stages <= 2 || copies);
}

ops_gemm_tiles ops_gemm_least_staged_tiles(void)
{
    return (ops_gemm_tiles){.block_m = 32,
                            .block_n = 32,
                            .block_k = 8,
                            .intra_group_split_k = 1,
                            .lanes_m = 8,
                            .lanes_n = 8,
                            .thread_m = 4,
                            .thread_n = 4,
                            .strip_m = 4,
                            .strip_n = 4,
                            .stages = 2};
}

void ops_gemm_choose_cpu_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                               int64_t m, int64_t n, uint32_t batch, uint32_t width,
                               bool b_k_contiguous, ops_gemm_tiles *tiles)
{
    *tiles = info->item_vector_bytes > 0 ? choose_vectorised(info, tuning, m, n, batch, width)
                                         : choose_cpu_lanes(tuning, m, n, b_k_contiguous);
}

/* Completes tiles of intra-group split-K whose block is chosen. */
static ops_gemm_tiles complete_intra_group_tiles(const hal_device_info *info,
                                                 const ops_gemm_tuning *tuning, uint16_t block_m,
                                                 uint16_t block_n, int64_t k, uint32_t width,
                                                 bool a_k_contiguous)
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
    const uint32_t items = group_items(info, tuning);
    while (t.block_k > 1 && k < (int64_t)(t.block_k * warp / lanes)) {
        t.block_k /= 2;
    }
    t.intra_group_split_k = cover((k + t.block_k - 1) / t.block_k, 1, (uint16_t)(items / lanes));
    while (t.intra_group_split_k > 1 &&
           ops_gemm_intra_group_elements(&t) * 4 * wide > info->shared_bytes) {
        t.intra_group_split_k /= 2;
    }
    t.min_groups_per_unit = 1; /* leaves registers for all loads in flight */
    const uint32_t most = info->item_register_bytes
                              ? info->item_register_bytes / (4 * tuning->values_share)
                              : tuning->max_values;
    const uint32_t values = (uint32_t)(t.thread_m + t.thread_n) * t.block_k * wide;
    t.unroll = 1;
    while (t.unroll < 4 && (int64_t)t.unroll * t.intra_group_split_k * t.block_k < k &&
           2 * t.unroll * values <= most) {
        t.unroll *= 2;
    }
    return t;
}

static const ops_gemm_tile_table *unit_tiles(const ops_gemm_tuning *tuning, hal_type type,
                                             bool by_registers, uint32_t access)
{
    const bool is_f32 = type == HAL_TYPE_F32;
    if (type == HAL_TYPE_F64) {
        return by_registers ? &tuning->register_units_f64 : &tuning->units_f64;
    }
    if (!is_f32 && access < 16) {
        return &tuning->narrow_units_half;
    }
    if (by_registers) {
        return is_f32 ? &tuning->register_units_f32 : &tuning->register_units_half;
    }
    return is_f32 ? &tuning->units_f32 : &tuning->units_half;
}

/* Whether tiles of matrix units are filled by asynchronous copies: they need deep stages. With
 * 48 KiB on an H100 halves at 4096 had 163 TFLOP/s, through registers 224 to 230; F32 as
 * TF32 70 and 108. */
static bool units_copy(const hal_device_info *info)
{
    enum { LEAST_SHARED = 64 << 10 };
    return (info->features & HAL_FEATURE_ASYNC_COPY) && info->shared_bytes >= LEAST_SHARED;
}

/* The device's tiles for a type and precision, `*count` of them; the first ones may be too wide. */
static const ops_gemm_tile *precise_unit_tiles(const hal_device_info *info,
                                               const ops_gemm_shape *shape, uint32_t *count)
{
    const uint32_t precision = shape->precision, access = shape->access;
    const hal_type type = shape->type;
    const bool is_f32 = type == HAL_TYPE_F32;
    const bool by_registers = !units_copy(info);
    const ops_gemm_tile_table *all = unit_tiles(shape->tuning, type, by_registers, access);
    const ops_gemm_tile *table = all->rows;
    *count = all->count;
    if (is_f32 && by_registers && precision == HAL_GEMM_ACCURATE) {
        table += *count - 1; /* the operands in parts take the registers of a larger tile */
        *count = 1;
    }
    return table;
}

/* Fast products with wide accesses have room for the largest tiles; others have second sums, or
 * places of elements. */
static bool units_are_roomy(uint32_t precision, uint32_t access)
{
    return precision == HAL_GEMM_FAST && access == 16;
}

static void complete_matrix_tiles(const hal_device_info *info, uint32_t precision, hal_type type,
                                  uint32_t access, bool b_k_contiguous, ops_gemm_tiles *tiles)
{
    const bool is_f32 = type == HAL_TYPE_F32;
    const bool by_registers = !units_copy(info);
    if (type == HAL_TYPE_F64) { /* each step is an FMA, in every class */
        tiles->matrix = 1;
        tiles->strip_n = 2;
        return;
    }
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

bool ops_gemm_units_multiply(const hal_device_info *info, const ops_gemm_tuning *tuning,
                             uint32_t precision, int64_t m, int64_t n, int64_t k, hal_type type)
{
    const int64_t least = type == HAL_TYPE_F64   ? tuning->units_least_f64
                          : type == HAL_TYPE_F32 ? tuning->units_least_f32
                                                 : tuning->units_least_half;
    return (precision != HAL_GEMM_STRICT || type == HAL_TYPE_F64) &&
           (info->matrix_types & HAL_TYPE_BIT(type)) &&
           info->subgroup_width == HAL_IR_MATRIX_LANES && m >= least && n >= least && k >= 32;
}

/* A work-item adds the partial sums of up to four neighbours, with all loads of a turn in flight;
 * slices of the group share partial sums beyond a turn. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                  int64_t m, int64_t n, uint32_t parts, uint32_t width,
                                  ops_gemm_tiles *tiles)
{
    ops_gemm_tiles t = {.block_k = 1, .thread_m = 1, .strip_m = 1, .min_groups_per_unit = 2};
    const uint32_t items = group_items(info, tuning);
    t.thread_n = t.strip_n = n % 4 == 0 ? 4 : 1;
    t.unroll = (uint8_t)cover(parts, 1, tuning->reduce_unroll);
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
static ops_gemm_tiles elementwise_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                        int64_t m, int64_t n, uint8_t thread_m)
{
    ops_gemm_tiles t = {.block_k = 1, .intra_group_split_k = 1};
    const uint32_t items = group_items(info, tuning);
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

void ops_gemm_choose_scale_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                 int64_t m, int64_t n, ops_gemm_tiles *tiles)
{
    *tiles = elementwise_tiles(info, tuning, m, n, 1);
}

static void set_outer_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning, int64_t m,
                            int64_t n, int64_t k, ops_gemm_tiles *tiles)
{
    *tiles = elementwise_tiles(info, tuning, m, n, tuning->outer_rows);
    while (2 * tiles->block_k <= k && tiles->block_k < tuning->outer_steps) {
        tiles->block_k *= 2;
    }
}

static uint32_t tile_area(const ops_gemm_tiles *tiles)
{
    return (uint32_t)tiles->block_m * tiles->block_n;
}

void ops_gemm_generalise_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                               int64_t m, uint32_t width, ops_gemm_tiles *tiles)
{
    enum { LEAST_AREA = 4096, LANES = 64, ROWS = 8 };
    if (tiles->matrix || tiles->unroll || tiles->intra_group_split_k > 1) {
        return;
    }
    if (!tiles->stages && info->item_vector_bytes > 0) {
        *tiles = tuning->vectorised;
        /* A part of the special kernel's tile: the compiler's time grows with the text. */
        tiles->block_n /= 2;
        tiles->thread_n = (uint8_t)tiles->block_n;
        tiles->block_m = m > 1 ? tiles->thread_m / 2 : 1;
        tiles->thread_m = tiles->strip_m = (uint8_t)tiles->block_m;
        return;
    }
    if (!tiles->stages && tiles->lanes_n > 0) { /* that only scales: full groups, elements */
        enum { MANY = 1023 };
        *tiles = elementwise_tiles(info, tuning, MANY, MANY, 1);
        return;
    }
    if (!tiles->stages) { /* one work-item for a column, on processors */
        if (tiles->thread_n == 1 && tiles->lanes_n == 0 && info->max_group_items >= LANES) {
            tiles->block_n = LANES;
            tiles->block_m = m > 1 ? ROWS : 1;
            tiles->thread_m = tiles->strip_m = (uint8_t)tiles->block_m;
        }
        return;
    }
    const ops_gemm_tiles *best = NULL;
    for (uint32_t i = 0; i < tuning->staged.count; i++) {
        const ops_gemm_tiles *t = &tuning->staged.rows[i].tiles;
        if (t->block_k <= tiles->block_k && t->intra_group_split_k == 1 &&
            tile_area(t) >= LEAST_AREA && tiles_fit(info, tuning, t, width) &&
            (!best || t->block_k < best->block_k ||
             (t->block_k == best->block_k && tile_area(t) < tile_area(best)))) {
            best = t;
        }
    }
    *tiles = best ? *best : *tiles;
}

/* Blocks of intra-group split-K that candidates have: of at most max_split_block lines, of which a
 * side is at most 8 times smaller than the matrix allows. Returns 0 after the last one. */
static bool intra_group_candidate(const hal_device_info *info, const ops_gemm_shape *shape,
                                  uint32_t number, int64_t k, ops_gemm_tiles *tiles)
{
    enum { SIDES = 4 };
    const uint16_t most_m = cover(shape->m, 1, shape->tuning->max_split_block),
                   most_n = cover(shape->n, 1, shape->tuning->max_split_block);
    const uint16_t block_m = (uint16_t)(most_m >> number / SIDES),
                   block_n = (uint16_t)(most_n >> number % SIDES);
    if (block_m > 0 && block_n > 0 && (block_n >= 4 || block_n == most_n)) {
        *tiles = complete_intra_group_tiles(info, shape->tuning, block_m, block_n, k,
                                            hal_type_size(shape->type), shape->a_k_contiguous);
        if ((uint32_t)tiles->lanes_m * tiles->lanes_n > group_items(info, shape->tuning)) {
            *tiles = (ops_gemm_tiles){0};
        }
    }
    return number < SIDES * SIDES;
}

/* Makes stages less deep until they fit into shared memory, down to two steps of k. Returns whether
 * they do. */
static bool fit_stages(const hal_device_info *info, const ops_gemm_shape *shape,
                       ops_gemm_tiles *tiles)
{
    const uint32_t least = hal_type_size(shape->type) == 2 ? 32 : 16;
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

bool ops_gemm_get_tiles(const hal_device_info *info, const ops_gemm_shape *shape, uint32_t number,
                        int64_t k, ops_gemm_tiles *tiles, const ops_gemm_rates **rates)
{
    const ops_gemm_tile_table *staged = &shape->tuning->staged;
    const uint32_t count = staged->count, width = hal_type_size(shape->type);
    uint32_t units = 0;
    *tiles = (ops_gemm_tiles){0};
    *rates = NULL;
    if (number < count) {
        if (tiles_fit(info, shape->tuning, &staged->rows[number].tiles, width)) {
            *tiles = staged->rows[number].tiles;
            *rates = &staged->rows[number].rates;
        }
        if (width > 4) { /* sums of two registers leave room for half as many groups */
            tiles->min_groups_per_unit =
                (uint8_t)(tiles->min_groups_per_unit ? (tiles->min_groups_per_unit + 1) / 2 : 4);
        }
        return true;
    }
    number -= count;
    if (number == 0) {
        if (shape->k <= shape->tuning->outer_max_k) {
            set_outer_tiles(info, shape->tuning, shape->m, shape->n, shape->k, tiles);
        }
        return true;
    }
    number--;
    if (shape->access > 0) {
        const ops_gemm_tile *table = precise_unit_tiles(info, shape, &units);
        const bool is_roomy = units_are_roomy(shape->precision, shape->access);
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
            return true;
        }
    }
    return intra_group_candidate(info, shape, number - units, k, tiles);
}
