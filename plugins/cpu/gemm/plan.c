/* Plans of the matrix product, see plan.h. Called when a kernel is created, not when it
 * runs. */
#include "gemm/plan.h"

#include "threads/caches.h"
#include "gemm/pair_kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Whether the matrices have at most 2^59 elements and their rows do not overlap. */
static bool matrix_fits(int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride)
{
    const int64_t limit = INT64_C(1) << 59;
    int64_t one, all;

    if (ld < cols || __builtin_mul_overflow(rows, ld, &one) || one > limit) {
        return false;
    }
    return !__builtin_mul_overflow(batch, stride, &all) && all <= limit;
}

/* The least sides, and the least product of m, n and k, for which matrix units are faster. */
enum { PAIRS_SIDE = 6, PAIRS_DEPTH = 32, PAIRS_WORK = 16384 };
/* The least such product of bytes, whose other way is a portable kernel. That one is faster, too,
 * for a row times a B of rows, which it need not pack. */
enum { BYTES_WORK = 512 };
/* Blocks of k that a task multiplies at a time. */
enum { PAIRS_BLOCKS = 16 };
/* Bytes of B that are packed at a time. */
enum { PAIRS_PACKED = 64 << 20 };

/* The longest short and the least long side of axpy of converted matrices in the caches. */
enum { AXPY_SIDE = 24, AXPY_ROWS = 8, AXPY_LENGTH = 16 };

/* The most vectors of a row, and of few rows, that are summed in chains, and the least k. */
enum { CHAINED_ROW = 7, CHAINED_ROWS = 3, CHAINED_DEPTH = 12 };

/* Costs in multiply-adds of a vector: writing a row of a tile, waiting for a
 * sum, adding up the lanes of a sum, transposing a vector or one element where few are; passes: a
 * copy, sums along the long side, tiles that are transposed. And how many elements are converted
 * meanwhile. */
enum {
    ROW_COST = 3,
    WAIT_COST = 8,
    SUM_COST = 10,
    TRANSPOSE_COST = 8,
    ELEMENT_COST = 1,
    COPY_COST = 50,
    DOT_COST = 60,
    TURN_COST = 200,
    CONVERTED = 4
};

/* The most rows, columns and k of a block of LEVELS of which the sums are packed at a time. */
enum { LEVELS_OUTER = 2048 };

static bool is_byte(enum cpu_gemm_type type)
{
    return type == CPU_GEMM_I8 || type == CPU_GEMM_U8;
}

static const char *types_check(const struct cpu_gemm_desc *d)
{
    const enum cpu_gemm_type types[3] = {d->type_a, d->type_b, d->type_c};
    int wide = 0, integers = 0;
    for (int i = 0; i < 3; i++) {
        if (types[i] < CPU_GEMM_F32 || types[i] > CPU_GEMM_I32) {
            return "gemm: types: expected f32, f64, f16, bf16, i8, u8 or i32";
        }
        wide += types[i] == CPU_GEMM_F64;
        integers += cpu_gemm_is_integer(types[i]);
    }
    if (wide != 0 && wide != 3) {
        return "gemm: types: expected f64 for all three matrices or none";
    }
    if (integers > 0 && (types[0] != types[1] || !is_byte(types[0]) ||
                         (types[2] != CPU_GEMM_I32 && (integers == 3 || !d->epilogue)))) {
        return "gemm: types: expected i8 or u8 for A and B, and i32 or with an epilogue a float "
               "for C";
    }
    return NULL;
}

static const char *desc_check(const struct cpu_gemm_desc *d)
{
    const char *wrong = types_check(d);
    if (wrong) {
        return wrong;
    }
    if (d->levels < 0 || d->levels > CPU_GEMM_MAX_LEVELS) {
        return "gemm: levels: expected 0 to 2";
    }
    if (d->levels > 0 && (d->batch != 1 || d->type_a != d->type_b || d->type_a != d->type_c ||
                          (d->type_a != CPU_GEMM_F32 && d->type_a != CPU_GEMM_F64))) {
        return "gemm: levels: expected 0 except for one batch of f32 or f64";
    }
    if (d->isa >= CPU_GEMM_ISA_COUNT || !cpu_gemm_isa_supported(d->isa)) {
        return "gemm: isa: expected an instruction set of this processor";
    }
    if (d->m < 1 || d->n < 1 || d->k < 0 || d->batch < 1) {
        return "gemm: sizes: expected m, n and batch of at least 1 and k of at least 0";
    }
    if (d->stride_a < 0 || d->stride_b < 0 || d->stride_c < 0) {
        return "gemm: strides: expected non-negative ones between the matrices of a batch";
    }
    int64_t a_rows = d->transpose_a ? d->k : d->m, b_rows = d->transpose_b ? d->n : d->k;
    int64_t a_cols = d->transpose_a ? d->m : d->k, b_cols = d->transpose_b ? d->k : d->n;
    if (!matrix_fits(a_rows, a_cols, d->lda, d->batch, d->stride_a)) {
        return "gemm: lda: expected at least a row of A, and at most 2^59 elements in A";
    }
    if (!matrix_fits(b_rows, b_cols, d->ldb, d->batch, d->stride_b)) {
        return "gemm: ldb: expected at least a row of B, and at most 2^59 elements in B";
    }
    if (!matrix_fits(d->m, d->n, d->ldc, d->batch, d->stride_c)) {
        return "gemm: ldc: expected at least a row of C, and at most 2^59 elements in C";
    }
    if (d->batch > 1 && d->stride_c < (d->m - 1) * d->ldc + d->n) {
        return "gemm: stride_c: expected matrices of C that do not overlap";
    }
    return NULL;
}

/* A matrix of one row or column is stored in both orders: the one whose reads need no copies. */
static void desc_straighten(struct cpu_gemm_desc *d)
{
    if (d->transpose_a && d->m == 1 && d->lda == 1) {
        d->transpose_a = false;
        d->lda = d->k;
    } else if (!d->transpose_a && d->k == 1 && d->lda == 1) {
        d->transpose_a = true;
        d->lda = d->m;
    }
    if (d->transpose_b && d->k == 1 && d->ldb == 1) {
        d->transpose_b = false;
        d->ldb = d->n;
    } else if (!d->transpose_b && d->m == 1 && d->n == 1 && d->ldb == 1) { /* for the route DOT */
        d->transpose_b = true;
        d->ldb = d->k;
    }
}

/* Chains in which strips of few rows are summed, see gemm_few.inl. */
static int64_t plan_chains(const struct cpu_gemm_plan *p, int64_t rows, int64_t cols)
{
    const int64_t most = (rows == 1 ? CHAINED_ROW : CHAINED_ROWS) * p->kernels->lanes;
    const int few = p->kernels->chain_rows;
    return rows > few || cols > most || p->desc.k < CHAINED_DEPTH ? 1 : 2 * rows <= few ? 4 : 2;
}

/* The times of the routes, in multiply-adds of a vector. The costs are fitted to the times of 6000
 * products with a side of at most 32 in each layout: of F32 under AVX-512 and AVX2, of F64. */
static int64_t plan_transpose_time(const struct cpu_gemm_plan *p, int64_t rows, int64_t cols)
{
    const int64_t lanes = p->kernels->lanes, rest = rows % lanes;
    const int64_t part = rest > lanes / 2 ? lanes : rest > lanes / 4 ? lanes * 5 / 8 : lanes / 2;
    return rows < 2 || cols < 4 ? rows * cols * ELEMENT_COST
                                : cpu_gemm_ceil_div(cols, lanes) * TRANSPOSE_COST *
                                      (rows - rest + (rest > 0 ? part : 0));
}

/* Rows of `vectors` that a tile multiplies, or the waits for its sums where these are few. */
static int64_t plan_tiles_multiply_time(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t vectors = cpu_gemm_ceil_div(d->n, p->kernels->lanes);
    const int64_t apart = d->transpose_a ? d->k / 8 : 0; /* each k is in other lines of memory */
    const int64_t time = d->m * (d->k + apart + ROW_COST) * vectors;
    const int64_t together = d->m == 1 ? 8 : p->kernels->nr / p->kernels->lanes;
    const int64_t tiles =
        cpu_gemm_ceil_div(d->m, p->kernels->mr) * cpu_gemm_ceil_div(vectors, together);
    const int64_t waits = tiles * d->k * WAIT_COST / plan_chains(p, d->m, d->n);
    return time > waits ? time : waits;
}

static int64_t plan_tiles_time(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    int64_t time = plan_tiles_multiply_time(p);
    if (d->transpose_b && d->n > 1) {
        /* Copies of matrices beyond the second cache take twice as long. */
        const bool is_far = d->n * d->k > cpu_cache_bytes(2) / p->size;
        time += plan_transpose_time(p, d->k, d->n) * (is_far ? 2 : 1) + COPY_COST;
    } else if (d->type_b != cpu_gemm_sums_type(p)) {
        time += d->k * d->n / CONVERTED + COPY_COST;
    }
    return d->type_a != cpu_gemm_sums_type(p) ? time + d->m * d->k / CONVERTED + COPY_COST : time;
}

/* Whether the short matrix of the route DOT has its rows along k, as it is stored. */
static bool desc_dots_in_place(const struct cpu_gemm_desc *d, bool swap)
{
    return swap ? d->transpose_b || (d->n == 1 && d->ldb == 1) : !d->transpose_a;
}

static int64_t plan_dot_time(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t vectors = cpu_gemm_ceil_div(d->k, p->kernels->lanes);
    const int64_t loads = p->kernels->dot_rows < 4 ? 2 : 1; /* for each multiply-add */
    const int64_t rows = p->swap ? d->n : d->m;
    const int64_t cols = cpu_gemm_round_up(p->swap ? d->m : d->n, CPU_GEMM_DOT_ROWS);
    const int64_t time = rows * cols * (loads * vectors + SUM_COST) + DOT_COST;
    return desc_dots_in_place(d, p->swap) ? time
                                          : time + plan_transpose_time(p, rows, d->k) + COPY_COST;
}

/* Of AXPY with a long A: tiles whose columns are along m, and are transposed. */
static int64_t plan_columns_time(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t vectors = cpu_gemm_ceil_div(d->m, p->kernels->lanes);
    const int64_t time = vectors * d->n * (d->k + ROW_COST);
    return d->n == 1 ? time + DOT_COST : time + plan_transpose_time(p, d->m, d->n) + TURN_COST;
}

/* Products with a short side are bound by reading the long matrix once, and tiles would be mostly
 * empty, or packed for few uses. Long matrices that exceed the caches are read once by axpy where
 * tiles would read them in pieces. */
static void plan_choose_route(struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t shorter = d->m < d->n ? d->m : d->n, longer = d->m < d->n ? d->n : d->m;
    const int64_t lanes = p->kernels->lanes, l2 = cpu_cache_bytes(2) / p->size;
    p->route = CPU_GEMM_TILES;
    p->swap = d->m > d->n;
    if (shorter > CPU_GEMM_SKINNY) {
        return;
    }
    if (p->swap ? !d->transpose_a : d->transpose_b) {
        if (plan_dot_time(p) < plan_tiles_time(p)) {
            p->route = CPU_GEMM_DOT;
        } else if (d->transpose_b && d->n == 1) { /* a row of B is a column too */
            p->desc.transpose_b = false;
            p->desc.ldb = 1;
        }
        return;
    }
    const bool is_native = (p->swap ? d->type_a : d->type_b) == cpu_gemm_sums_type(p);
    const bool has_columns = p->swap && is_native && plan_columns_time(p) < plan_tiles_time(p);
    const int64_t few = p->swap ? AXPY_SIDE : AXPY_ROWS;
    const bool has_few =
        !is_native && shorter <= few && longer >= AXPY_LENGTH && 4 * d->k >= lanes * shorter;
    const bool exceeds_cache = longer * d->k > (p->swap ? l2 / 8 : cpu_streaming_bytes() / p->size);
    if (has_few || has_columns || (exceeds_cache && longer >= 4 * shorter && d->k >= 4 * lanes)) {
        p->route = CPU_GEMM_AXPY;
    }
}

/* Products whose sides fill a good part of a tile. */
static bool plan_suits_pairs(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    if (p->pairs && cpu_gemm_is_integer(d->type_a)) {
        return (d->m > 1 || d->transpose_b) && d->k > 0 && d->m * d->n * d->k >= BYTES_WORK;
    }
    return p->pairs && d->m >= PAIRS_SIDE && d->n >= PAIRS_SIDE && d->k >= PAIRS_DEPTH &&
           d->m * d->n * d->k >= PAIRS_WORK;
}

void cpu_gemm_plan_take_pairs(struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    p->route = CPU_GEMM_PAIRS;
    p->swap = false;
    p->slabs = cpu_gemm_ceil_div(d->k, PAIRS_BLOCKS * p->pairs->depth);
    p->kc = cpu_gemm_round_up(cpu_gemm_ceil_div(d->k, p->slabs), p->pairs->depth);
    p->slabs = cpu_gemm_ceil_div(d->k, p->kc);
    p->strip = d->m < CPU_PAIRS_SIDE ? d->m : CPU_PAIRS_SIDE;
    p->outer_m = d->m;
    p->outer_k = d->k;
    const int64_t item = /* bytes of a column */
        cpu_gemm_ceil_div(d->k, p->pairs->depth) * CPU_PAIRS_LINE_BYTES;
    const int64_t most = cpu_gemm_clamp(PAIRS_PACKED / item, CPU_GEMM_PAIRS_MAX_COLS, INT64_MAX);
    p->outer_n = most < d->n ? most / CPU_GEMM_PAIRS_MAX_COLS * CPU_GEMM_PAIRS_MAX_COLS : d->n;
    p->task_m = cpu_gemm_round_up(d->m < 256 ? d->m : 256, CPU_PAIRS_SIDE);
    p->task_n = cpu_gemm_round_up(p->outer_n < CPU_GEMM_PAIRS_MAX_COLS ? p->outer_n
                                                                       : CPU_GEMM_PAIRS_MAX_COLS,
                                  CPU_PAIRS_SIDE);
    p->pack_a = false;
    p->pack_b = d->m > p->task_m;
    p->group =
        p->pack_b ? cpu_gemm_clamp(PAIRS_PACKED / (p->outer_n * item), 1, d->batch) : d->batch;
}

/* Slabs of k: a strip of A fills half of the first cache. */
static void plan_choose_slabs(struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t l1 = cpu_cache_bytes(1) / p->size;
    int64_t kc = cpu_gemm_clamp(l1 / 2 / p->kernels->mr, 128, 512) / 16 * 16;
    p->slabs = d->k > kc ? cpu_gemm_ceil_div(d->k, kc) : 1;
    p->kc = cpu_gemm_round_up(cpu_gemm_ceil_div(d->k, p->slabs), 16);
    if (p->slabs == 1) {
        p->kc = d->k;
    } else {
        p->slabs = cpu_gemm_ceil_div(d->k, p->kc);
    }
}

int64_t cpu_gemm_plan_side(const struct cpu_gemm_plan *p)
{
    const int64_t l2 = cpu_cache_bytes(2) / p->size;
    return cpu_gemm_clamp(l2 / 4 / (p->kc > 0 ? p->kc : 1), 64, 960);
}

/* A phase packs the sums of several slabs, so that a task combines its tiles once. They come from
 * beyond the second cache, so that tiles are larger than for other products. */
static void plan_choose_levels(struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const int64_t side = cpu_gemm_clamp(cpu_gemm_plan_side(p), 64, 192), most = LEVELS_OUTER;
    p->route = CPU_GEMM_LEVELS;
    p->kc = p->kc > 0 ? p->kc : 1;
    p->strip = p->kernels->mr;
    p->task_m = cpu_gemm_round_up(2 * side, CPU_GEMM_LEVELS_TASK_M);
    p->task_n = cpu_gemm_round_up(2 * side, CPU_GEMM_LEVELS_TASK_N);
    p->outer_m = cpu_gemm_round_up(most, CPU_GEMM_LEVELS_TASK_M);
    p->outer_m = p->outer_m < d->m ? p->outer_m : d->m;
    p->outer_n = cpu_gemm_round_up(most, CPU_GEMM_LEVELS_TASK_N);
    p->outer_n = p->outer_n < d->n ? p->outer_n : d->n;
    p->outer_k = p->slabs > 1 ? cpu_gemm_clamp(most / p->kc, 1, p->slabs) * p->kc : d->k;
    p->pack_a = p->pack_b = true;
    p->group = 1;
}

static void plan_choose_blocks(struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_kernels *kernels = p->kernels;
    const enum cpu_gemm_type native = cpu_gemm_sums_type(p);
    int64_t l2 = cpu_cache_bytes(2) / p->size;

    /* Strips of equal height, to avoid a last one of a row or two. */
    p->strip = cpu_gemm_ceil_div(d->m, cpu_gemm_ceil_div(d->m, kernels->mr));
    /* If C's type cannot hold sums between slabs, an outer block has memory for them. */
    bool c_is_16_bit = d->type_c == CPU_GEMM_F16 || d->type_c == CPU_GEMM_BF16;
    int64_t outer = c_is_16_bit && p->slabs > 1 ? 2048 : 4096;
    p->outer_m = cpu_gemm_round_up(outer, p->strip);
    p->outer_m = p->outer_m < d->m ? p->outer_m : d->m;
    p->outer_n = cpu_gemm_round_up(outer, kernels->nr);
    p->outer_n = p->outer_n < d->n ? p->outer_n : d->n;
    const int64_t side = cpu_gemm_plan_side(p);
    p->task_m = cpu_gemm_round_up(side < p->outer_m ? side : p->outer_m, p->strip);
    p->task_n = cpu_gemm_round_up(side < p->outer_n ? side : p->outer_n, kernels->nr);
    /* Rows along k are read in place as fast as packed; other reads are packed if the matrix is
     * larger than the near caches. */
    p->pack_a = d->type_a != native || (d->transpose_a && d->m * d->k > l2 / 8);
    p->pack_b = d->type_b != native || d->transpose_b ||
                (d->n * d->k > l2 / 4 && d->m > 20 * kernels->mr) ||
                (d->n * d->k > l2 && d->m > 4 * kernels->mr);
    p->group = cpu_gemm_clamp(l2 * 2 / (d->m * p->kc + d->n * p->kc + 1), 1, d->batch);
    p->outer_k = p->route == CPU_GEMM_TILES ? p->kc : d->k;
    if (p->route != CPU_GEMM_TILES) {
        int64_t rows = p->swap ? d->n : d->m, cols = p->swap ? d->m : d->n;
        enum cpu_gemm_type type = p->swap ? d->type_b : d->type_a;
        p->pack_b = false;
        p->pack_a = type != native || (p->route == CPU_GEMM_DOT && !desc_dots_in_place(d, p->swap));
        p->in_tiles = p->route == CPU_GEMM_AXPY && p->swap && d->type_a == native &&
                      d->m * d->k * p->size <= cpu_streaming_bytes();
        p->writes_row = p->in_tiles && d->n == 1 && d->ldc == 1 && d->type_c == native;
        p->group = cpu_gemm_clamp(l2 / (rows * d->k + 1), 1, d->batch);
        p->chunk = p->route == CPU_GEMM_DOT ? 64
                   : p->in_tiles            ? cpu_gemm_clamp(2048 / rows / 64 * 64, 64, 1024)
                                            : cpu_gemm_clamp(4096 / rows / 64 * 64, 256, 1024);
        if (p->chunk > cols) {
            p->chunk = cols;
        }
    }
    p->in_chains = (p->route == CPU_GEMM_TILES && plan_chains(p, d->m, d->n) > 1) ||
                   (p->in_tiles && plan_chains(p, d->n, d->m) > 1);
    const int64_t row = d->ldc * p->size, c_bytes = d->batch * d->m * d->n * p->size;
    p->streams = p->route == CPU_GEMM_TILES && p->slabs == 1 && d->type_c == native &&
                 !d->epilogue && row % 64 == 0 && d->stride_c * p->size % 64 == 0 &&
                 c_bytes >= cpu_streaming_bytes();
}

/* A few microseconds of work do not amortise a second thread. */
void cpu_gemm_plan_expect(struct cpu_gemm_plan *p, double b_count)
{
    const struct cpu_gemm_desc *d = &p->desc;
    const double m = (double)d->m, n = (double)d->n, k = (double)d->k;
    const double batch = (double)d->batch * cpu_gemm_level_products(d->levels);
    const double flops = 2 * m * n * k * batch;
    const double bytes = ((m * k + m * n) * batch + k * n * b_count) * p->size;
    const double rate = p->route == CPU_GEMM_PAIRS ? 400 : 6.0 * p->kernels->lanes;
    p->expected_ns = flops / rate > bytes / 20 ? flops / rate : bytes / 20;
    p->max_threads = p->expected_ns < 8000 ? 1 : 1 << 16;
}

enum { ALIGNED = 16 }; /* elements of which the lines of copies are multiples */

static int64_t line_of(int64_t elements)
{
    return (elements + ALIGNED - 1) & -(int64_t)ALIGNED;
}

/* Where a single run has its copies. */
static struct cpu_gemm_single plan_single_layout(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    struct cpu_gemm_single layout = {.lda = d->lda, .ldb = d->ldb, .ldc = d->ldc};
    if (p->route != CPU_GEMM_TILES) {
        const int64_t rows = p->swap ? d->n : d->m;
        layout.sums = p->pack_a ? line_of(d->k) * rows * p->size : 0;
        layout.bytes = layout.sums + 2 * line_of(p->chunk * rows) * p->size;
        return layout;
    }
    if (p->pack_a) {
        layout.lda = line_of(d->transpose_a ? d->m : d->k);
        layout.b = layout.lda * (d->transpose_a ? d->k : d->m) * p->size;
    }
    layout.sums = layout.b;
    if (p->pack_b) {
        layout.ldb = line_of(d->n);
        layout.sums += layout.ldb * d->k * p->size;
    }
    layout.bytes = layout.sums;
    if (d->type_c != cpu_gemm_sums_type(p)) {
        layout.ldc = line_of(d->n);
        layout.bytes += layout.ldc * p->strip * p->size;
    }
    return layout;
}

/* One task of one thread, whose copies fit on the stack. */
static bool plan_is_single(const struct cpu_gemm_plan *p)
{
    const struct cpu_gemm_desc *d = &p->desc;
    if (d->batch > 1 || d->levels > 0) {
        return false;
    }
    if (p->route == CPU_GEMM_TILES) {
        return p->slabs == 1 && d->m <= p->task_m && d->n <= p->task_n &&
               p->single.bytes <= CPU_GEMM_SINGLE_BYTES;
    }
    return p->route != CPU_GEMM_PAIRS && (p->swap ? d->m : d->n) <= p->chunk &&
           p->single.bytes <= CPU_GEMM_SINGLE_BYTES;
}

bool cpu_gemm_isa_supported(enum cpu_gemm_isa isa)
{
    if (isa == CPU_GEMM_ISA_BASE || isa == CPU_GEMM_ISA_AUTO) {
        return true;
    }
#if defined(__x86_64__)
    /* The builtin also checks that the operating system saves the registers; it has no name for
     * F16C. */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C)) {
        return false;
    }
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return false;
    }
    if (isa == CPU_GEMM_ISA_AVX2) {
        return true;
    }
    if (isa >= CPU_GEMM_ISA_AVX512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
#endif
    return false;
}

bool cpu_gemm_isa_native(enum cpu_gemm_isa isa)
{
    if (!cpu_gemm_isa_supported(isa)) { /* first: the others are compiled for AVX-512 */
        return false;
    }
#if defined(__x86_64__)
    return (isa != CPU_GEMM_ISA_AMX || cpu_pairs_amx()) &&
           (isa != CPU_GEMM_ISA_AVX512_BF16 || cpu_pairs_bf16() != NULL);
#else
    return true;
#endif
}

bool cpu_gemm_isa_has_bytes(enum cpu_gemm_isa isa)
{
#if defined(__x86_64__)
    return isa >= CPU_GEMM_ISA_AVX512 && cpu_gemm_isa_supported(isa) &&
           cpu_pairs_vnni(CPU_GEMM_I8) != NULL;
#else
    (void)isa;
    return false;
#endif
}

bool cpu_gemm_isa_is_fast(enum cpu_gemm_isa isa)
{
    if (!cpu_gemm_isa_native(isa)) {
        return false;
    }
#if defined(__x86_64__)
    return isa != CPU_GEMM_ISA_AVX512_BF16 || cpu_pairs_bf16_is_fast();
#else
    return true;
#endif
}

/* The unit for the types of A and B. */
static const struct cpu_pairs_kernels *pairs_of(const struct cpu_gemm_desc *d,
                                                enum cpu_gemm_isa isa)
{
#if defined(__x86_64__)
    if (isa >= CPU_GEMM_ISA_AVX512 && cpu_gemm_is_integer(d->type_a)) {
        return cpu_pairs_vnni(d->type_a);
    }
    if (d->type_a != CPU_GEMM_BF16 || d->type_b != CPU_GEMM_BF16) {
        return NULL;
    }
    if (isa == CPU_GEMM_ISA_AMX) {
        return cpu_pairs_amx() ? cpu_pairs_amx() : &cpu_pairs_amx_emulated;
    }
    if (isa == CPU_GEMM_ISA_AVX512_BF16) {
        return cpu_pairs_bf16() ? cpu_pairs_bf16() : &cpu_pairs_bf16_emulated;
    }
#else
    (void)d;
    (void)isa;
#endif
    return NULL;
}

static void plan_choose_kernels(struct cpu_gemm_plan *plan, enum cpu_gemm_isa isa)
{
    const bool wide = plan->desc.type_a == CPU_GEMM_F64;
    plan->size = wide ? 8 : 4;
    plan->kernels = &cpu_gemm_base[wide];
    plan->pairs = pairs_of(&plan->desc, isa);
#if defined(__x86_64__)
    if (isa == CPU_GEMM_ISA_AVX2) {
        plan->kernels = &cpu_gemm_avx2[wide];
    }
    if (isa >= CPU_GEMM_ISA_AVX512) {
        plan->kernels = &cpu_gemm_avx512[wide];
    }
#endif
    plan->store_sums = plan->store_c = plan->kernels->store;
#if defined(__x86_64__)
    if (isa > CPU_GEMM_ISA_AVX512 && plan->desc.type_c == CPU_GEMM_BF16 && cpu_bf16_store()) {
        plan->store_c = cpu_bf16_store();
    }
    if (cpu_gemm_is_integer(plan->desc.type_a)) {
        plan->store_sums = cpu_vnni_store;
        plan->store_c = plan->desc.type_c == CPU_GEMM_I32 ? cpu_vnni_store : plan->store_c;
    }
#endif
}

static void plan_choose(struct cpu_gemm_plan *plan)
{
    if (plan_suits_pairs(plan) || cpu_gemm_is_integer(plan->desc.type_a)) {
        cpu_gemm_plan_take_pairs(plan);
        return;
    }
    plan_choose_slabs(plan);
    if (plan->desc.levels > 0) {
        plan_choose_levels(plan);
        return;
    }
    plan_choose_route(plan);
    plan_choose_blocks(plan);
}

void cpu_gemm_plan_set_rows(struct cpu_gemm_plan *plan, const struct cpu_gemm_desc *desc,
                            int64_t rows)
{
    plan->desc = *desc;
    plan->desc.batch = 1;
    plan->desc.m = plan->m = rows;
    plan->in_tiles = plan->writes_row = false;
    desc_straighten(&plan->desc);
    plan_choose(plan);
}

void cpu_gemm_plan_part(struct cpu_gemm_plan *part, const struct cpu_gemm_plan *whole, int64_t rows,
                        int64_t cols)
{
    *part = *whole;
    part->desc.m = part->m = rows;
    part->desc.n = part->n = cols;
    if (part->route == CPU_GEMM_PAIRS) {
        cpu_gemm_plan_take_pairs(part);
    } else {
        plan_choose_blocks(part);
    }
    part->pack_a = whole->pack_a;
    part->pack_b = part->route == CPU_GEMM_PAIRS ? part->pack_b : whole->pack_b;
    part->in_chains = whole->in_chains;
    part->in_tiles = whole->in_tiles;
    part->writes_row = whole->writes_row;
    part->streams = part->is_single = false;
    part->max_threads = 1;
}

const char *cpu_gemm_plan_make(struct cpu_gemm_plan *plan, const struct cpu_gemm_desc *desc)
{
    const char *wrong = desc_check(desc);
    if (wrong) {
        return wrong;
    }
    *plan = (struct cpu_gemm_plan){.desc = *desc, .m = desc->m, .n = desc->n, .k = desc->k};
    plan->desc.m = cpu_gemm_ceil_div(desc->m, INT64_C(1) << desc->levels);
    plan->desc.n = cpu_gemm_ceil_div(desc->n, INT64_C(1) << desc->levels);
    plan->desc.k = cpu_gemm_ceil_div(desc->k, INT64_C(1) << desc->levels);
    if (desc->levels == 0) {
        desc_straighten(&plan->desc);
    }
    enum cpu_gemm_isa isa = desc->isa;
    for (int i = CPU_GEMM_ISA_COUNT - 1; isa == CPU_GEMM_ISA_AUTO; i--) {
        if (cpu_gemm_isa_is_fast((enum cpu_gemm_isa)i)) {
            isa = (enum cpu_gemm_isa)i;
        }
    }
    plan_choose_kernels(plan, isa);
    if (cpu_gemm_is_integer(desc->type_a) && !plan_suits_pairs(plan)) {
        return "gemm: types: expected floats, or larger products of i8 or u8 where there is a unit "
               "for them";
    }
    plan_choose(plan);
    const double b_count = (double)desc->batch * cpu_gemm_level_products(desc->levels);
    cpu_gemm_plan_expect(plan, b_count);
    plan->single = plan_single_layout(plan);
    plan->is_single = plan_is_single(plan);
    return NULL;
}

int64_t cpu_gemm_workspace_size(const struct cpu_gemm_plan *plan, int threads)
{
    struct cpu_gemm_layout layout;
    const int64_t shared = cpu_gemm_layout_of(plan, threads, &layout);
    const int64_t single = plan->is_single ? plan->single.bytes : 0;
    return single > shared ? single : shared;
}

struct cpu_gemm_pairs_slot cpu_gemm_pairs_slot_of(const struct cpu_gemm_plan *p)
{
    const int64_t panel = p->kc / p->pairs->depth * CPU_PAIRS_BLOCK_BYTES;
    const int64_t rows = p->task_m / CPU_PAIRS_SIDE, cols = p->task_n / CPU_PAIRS_SIDE;
    struct cpu_gemm_pairs_slot slot = {.a = p->pack_b ? 0 : cols * panel};
    slot.sums = slot.a + panel;
    slot.lines = slot.sums + rows * cols * CPU_PAIRS_SUM_BYTES;
    slot.bytes = slot.lines + (p->desc.epilogue ? p->task_n * CPU_PAIRS_SIDE * 4 : 0);
    return slot;
}

/* After the panels of packed B there are the exponents, one for each slab of each panel. */
static int64_t pairs_layout_of(const struct cpu_gemm_plan *p, int threads,
                               struct cpu_gemm_layout *layout)
{
    if (p->pack_b) {
        const int64_t panels = cpu_gemm_ceil_div(p->outer_n, CPU_PAIRS_SIDE);
        const int64_t blocks = cpu_gemm_ceil_div(p->desc.k, p->pairs->depth);
        layout->item_b =
            cpu_gemm_round_up(panels * (blocks * CPU_PAIRS_BLOCK_BYTES + 2 * p->slabs), 64);
    }
    layout->scratch = layout->item_b * p->group;
    layout->slot = cpu_gemm_pairs_slot_of(p).bytes;
    return layout->scratch + layout->slot * threads;
}

/* A slot has tiles of 7 products; while sums are packed, pieces of 4 blocks and a transposed one.
 */
static int64_t levels_layout_of(const struct cpu_gemm_plan *p, int threads,
                                struct cpu_gemm_layout *layout)
{
    const int64_t nr = p->kernels->nr, stride = cpu_gemm_a_stride(p);
    const int64_t slabs = cpu_gemm_ceil_div(p->outer_k, p->kc), products = 7, pieces = 5;
    const int64_t wide = (nr > p->strip ? nr : p->strip) * CPU_GEMM_LEVELS_PANELS;
    const int64_t rows = p->task_m < p->outer_m ? p->task_m : p->outer_m;
    const int64_t cols = p->task_n < p->outer_n ? p->task_n : p->outer_n;
    const int64_t tiles = rows * cols * products;
    const int64_t panels = wide * CPU_GEMM_LEVELS_ROWS * pieces;
    const int64_t strip = p->strip * p->kc * pieces, most = tiles > panels ? tiles : panels;
    layout->item_a = cpu_gemm_round_up(p->outer_m, p->strip) * stride * slabs * p->size;
    layout->item_a = cpu_gemm_round_up(layout->item_a, 64);
    layout->item_b =
        cpu_gemm_round_up(cpu_gemm_round_up(p->outer_n, nr) * p->kc * slabs * p->size, 64);
    layout->b = layout->item_a * products;
    layout->scratch = layout->b + layout->item_b * products;
    layout->slot = cpu_gemm_round_up((most > strip ? most : strip) * p->size, 64);
    return layout->scratch + layout->slot * threads;
}

int64_t cpu_gemm_layout_of(const struct cpu_gemm_plan *p, int threads,
                           struct cpu_gemm_layout *layout)
{
    int64_t size = 0, nr = p->kernels->nr;
    bool c_is_16_bit = p->desc.type_c == CPU_GEMM_F16 || p->desc.type_c == CPU_GEMM_BF16;

    if (threads > p->max_threads) {
        threads = p->max_threads;
    }
    if (threads < 1) {
        threads = 1;
    }
    *layout = (struct cpu_gemm_layout){0};
    if (p->route == CPU_GEMM_PAIRS) {
        return pairs_layout_of(p, threads, layout);
    }
    if (p->route == CPU_GEMM_LEVELS) {
        return levels_layout_of(p, threads, layout);
    }
    if (p->route != CPU_GEMM_TILES) {
        int64_t rows = p->swap ? p->desc.n : p->desc.m;
        layout->item_a = p->pack_a ? cpu_gemm_round_up(p->desc.k, 16) * rows * p->size : 0;
        size = cpu_gemm_round_up(layout->item_a * p->group, 64);
        layout->scratch = size;
        layout->slot = cpu_gemm_round_up(2 * p->chunk * rows * p->size, 64);
        return size + layout->slot * threads;
    }
    if (p->pack_a) {
        layout->item_a = cpu_gemm_round_up(p->outer_m, p->strip) * cpu_gemm_a_stride(p) * p->size;
    }
    if (p->pack_b) {
        layout->item_b = cpu_gemm_round_up(p->outer_n, nr) * p->kc * p->size;
    }
    layout->b = cpu_gemm_round_up(layout->item_a * p->group, 64);
    size = layout->scratch = layout->b + cpu_gemm_round_up(layout->item_b * p->group, 64);
    if (c_is_16_bit && p->slabs == 1) {
        layout->slot = cpu_gemm_round_up(p->strip * p->task_n * p->size, 64);
        size += layout->slot * threads;
    } else if (c_is_16_bit) {
        layout->item_c = p->outer_m * p->outer_n * p->size;
        size += layout->item_c * p->group;
    }
    return size;
}
