/* Tiles and costs of the portable kernels of matrix products behind a GPU's interface, for the
 * table of each class.
 *
 * Rates and costs are nanoseconds of one unit of an H100 with 132 units, fitted by least squares of
 * logarithms to 7,600 times of the kernels of 340 random f32 products (m, n, k log-uniform in 1 to
 * 8192, three layouts): half of the estimates are within 8 %, nine of ten within 25 %. half_staged,
 * the factor 2 of F64 and the rates of tiles for halves are not of that fit but estimated;
 * units_narrow, units_single and the rates of narrow accesses to halves are scaled to 100 times of
 * random products (docs/benchmarks, 2026-11-28-regret; `hal-bench gemm --regret`). That of
 * units' tiles of 32 rows is of gradients of convolutions on an H200, 2 groups of which take twice
 * as long as one; with narrow accesses or registers it is set to a little more than that of
 * 64 x 64. */

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
static const ops_gemm_tile staged[] = {
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
static const ops_gemm_tile units_half[] = {
    /*           block         thread stages groups resident step alone end, odd */
    MATRIX_UNITS(128, 256, 64, 8, 16, 3,     1,     1, 18.3, 14, 4100, 10000),
    MATRIX_UNITS(128, 128, 64, 8, 16, 3,     2,     2, 13.1,  8, 2700,  6700),
    MATRIX_UNITS(128,  64, 64, 8,  8, 3,     2,     2, 10.2,  6, 1500,  3800),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 4,     2,     2,  2.1, 10, 1200,  2900),
    MATRIX_UNITS( 32, 128, 64, 4,  8, 4,     2,     2, 10.0, 11, 1200,  2900),
};
static const ops_gemm_tile units_f32[] = {
    MATRIX_UNITS(128, 256, 32, 8, 16, 3,     1,     1, 28.4, 28, 1600, 3100),
    MATRIX_UNITS(128, 128, 32, 8, 16, 3,     2,     2, 14.0, 16, 1600, 3100),
    MATRIX_UNITS(128,  64, 32, 8,  8, 4,     2,     2,  8.3, 12, 1500, 3100),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 4,     2,     2,  4.2, 11, 1400, 3000),
};
/* F64: warps of 64 x 32, since a sum has two registers. Rates, units_late, units_registers and
 * units_place are fitted to 141 times of random and square products on an H200, without others to
 * check them; the times of lone groups and of the ends of the three smaller tiles were then set so
 * that the choice for products of few microseconds stays the measured one. Half of the estimates
 * are within 7 %, nine of ten within 18 %. */
static const ops_gemm_tile units_f64[] = {
    MATRIX_UNITS(128, 128, 32, 8,  8, 3,     1,     1, 82.0, 82, 1180, 2400),
    MATRIX_UNITS(128, 128, 16, 8,  8, 4,     1,     1, 84.0, 84, 1040, 2260),
    MATRIX_UNITS(128,  64, 16, 8,  8, 3,     2,     2, 42.6, 52, 1940, 2550),
    MATRIX_UNITS( 64,  64, 16, 4,  8, 3,     3,     3, 22.8, 28,  900, 1200),
    MATRIX_UNITS( 32,  64, 16, 2,  8, 4,     3,     3, 12.9, 20,  700,  850),
};

/* Halves whose lines are no multiples of 16 bytes pass through registers too, in deeper stages than
 * below: a line of the first-level cache is read at once. */
static const ops_gemm_tile narrow_units_half[] = {
    MATRIX_UNITS(128, 128, 64, 8,  8, 2,     1,     1, 11.3, 11.5, 2400, 5500),
    MATRIX_UNITS(128,  64, 64, 8,  8, 2,     2,     2,  7.0,  7.2, 1450, 3250),
    MATRIX_UNITS( 64,  64, 64, 4,  8, 2,     2,     2,  3.7,  3.6,  780, 1800),
    MATRIX_UNITS( 32, 128, 64, 4,  8, 2,     2,     2,  4.2,  4.1,  780, 1800),
};

/* Without asynchronous copies a tile passes through registers and two stages, in 48 KiB. Rates are
 * from 4096 x 4096 x 4096 on an H200: halves 260 TFLOP/s, f32 as TF32 124. */
static const ops_gemm_tile register_units_half[] = {
    MATRIX_UNITS(128, 128, 32, 8, 16, 2,     1,     1, 16.6, 17, 3000, 6000),
    MATRIX_UNITS(128,  64, 32, 8, 16, 2,     2,     2,  8.3, 12, 1600, 3200),
    MATRIX_UNITS( 64,  64, 32, 8,  8, 2,     2,     2,  4.2, 10, 1300, 2500),
    MATRIX_UNITS( 32, 128, 32, 4,  8, 2,     2,     2,  4.8, 11, 1300, 2500),
};
static const ops_gemm_tile register_units_f32[] = {
    MATRIX_UNITS(128, 128, 16, 8, 16, 2,     1,     1, 35.0, 35, 3000, 6000),
    MATRIX_UNITS(128,  64, 16, 8, 16, 2,     2,     2, 17.5, 24, 1600, 3200),
    MATRIX_UNITS( 64,  64, 32, 4,  8, 2,     2,     2,  8.8, 18, 1300, 2500),
};
static const ops_gemm_tile register_units_f64[] = {
    MATRIX_UNITS(128, 128,  8, 8,  8, 2,     1,     1, 90.0, 90, 3000, 4000),
    MATRIX_UNITS(128,  64,  8, 8,  8, 2,     2,     2, 45.0, 70, 1600, 2200),
    MATRIX_UNITS( 64,  64,  8, 4,  8, 2,     3,     3, 23.0, 35, 1000, 1400),
    MATRIX_UNITS( 64,  64, 16, 4,  8, 2,     2,     2, 23.0, 35, 1000, 1400),
};
/* clang-format on */

#define TABLE(name) {.rows = name, .count = sizeof(name) / sizeof *(name)}

/* clang-format off */
#define OPS_GEMM_PORTABLE_TUNING                                                                  \
    .staged = TABLE(staged), .units_half = TABLE(units_half), .units_f32 = TABLE(units_f32),      \
    .units_f64 = TABLE(units_f64), .register_units_f64 = TABLE(register_units_f64),               \
    .narrow_units_half = TABLE(narrow_units_half),                                                \
    .register_units_half = TABLE(register_units_half),                                            \
    .register_units_f32 = TABLE(register_units_f32),                                              \
    /* The multiply-adds of halves take 2 to 4 times as long for 17 to 48 x 4096 x 4096 on an     \
     * H100, although most of a tile is not used. */                                              \
    .units_least_f32 = 64, .units_least_f64 = 33, .units_least_half = 17,                        \
    .max_split_block = 32, .max_items = 256, .max_values = 96,                                    \
    /* Other registers hold two sets of operands and staged vectors; Intel's compiler spills with \
     * more. */                                                                                   \
    .sums_share = 4, .values_share = 2,                                                           \
    .outer_max_k = 32, .outer_rows = 4, .outer_steps = 4, .reduce_unroll = 8,                     \
    .cost = {                                                                                     \
        .launch = 947.0, .direct_launch = 732.0, .reduce_launch = 946.0,                          \
        .reduce_element = 0.00203, .c_element = 0.00091, .direct_c_element = 0.00114,             \
        .item_load = 0.0054, .item_step = 0.0094, .sector = 0.236, .line = 0.125,                 \
        .partial_sum = 0.0202, .turn = 89.0, .group = 0.55, .parts = 162.0,                       \
        .direct_turn = 185.0, .direct_load = 0.017, .direct_store = 0.0316,                       \
        .half_staged = 1.12, .far_from = 20e6, .far_bytes = 40e6, .far_staged = 0.88,             \
        .far_loads = 0.22, .units_parts = 2.6, .units_flush = 1.2, .units_narrow = 1.75,          \
        .units_single = 1.2, .units_late = 0.12, .units_registers = 144, .units_place = 0.02}
/* clang-format on */
