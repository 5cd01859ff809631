/* Levels of Strassen's algorithm, see gemm_levels.h. Block sizes are rounded up: what a block lacks
 * at the edges of a matrix is 0 where it is packed, and is not stored. */
#include "gemm_levels.h"

#include <string.h>

enum { PRODUCTS = 7, BLOCKS = 4 };

/* V. Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13 (1969). Product r is
 * (sum of of_a[r][i] A_i) (sum of of_b[r][j] B_j) and is added to C_l with to_c[r][l]; blocks are
 * numbered by rows. */
static const int8_t of_a[PRODUCTS][BLOCKS] = {{1, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0},
                                              {0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 0, 1, 0},
                                              {0, 1, 0, -1}};
static const int8_t of_b[PRODUCTS][BLOCKS] = {{1, 0, 0, 1},  {1, 0, 0, 0}, {0, 1, 0, -1},
                                              {-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0},
                                              {0, 0, 1, 1}};
static const int8_t to_c[PRODUCTS][BLOCKS] = {{1, 0, 0, 1}, {0, 0, 1, -1}, {0, 1, 0, 1},
                                              {1, 0, 1, 0}, {-1, 1, 0, 0}, {0, 0, 0, 1},
                                              {1, 0, 0, 0}};

/* A block that a product reads or is added to. */
struct term {
    int sign;
    int row, col; /* of the block, in blocks */
};

int cpu_gemm_level_products(int levels)
{
    return levels == 0 ? 1 : levels == 1 ? PRODUCTS : PRODUCTS * PRODUCTS;
}

/* The coefficient of a block in a product: the Kronecker product of those of the levels. */
static int coefficient_of(const int8_t table[PRODUCTS][BLOCKS], int levels, int product, int row,
                          int col)
{
    int value = 1;
    for (int level = 0; level < levels; level++) {
        value *= table[product % PRODUCTS][(row & 1) * 2 + (col & 1)];
        product /= PRODUCTS;
        row >>= 1;
        col >>= 1;
    }
    return value;
}

static int terms_of(const int8_t table[PRODUCTS][BLOCKS], int levels, int product,
                    struct term terms[CPU_GEMM_MAX_TERMS])
{
    int count = 0;
    for (int block = 0; block < 1 << 2 * levels; block++) {
        const int row = block >> levels, col = block & ((1 << levels) - 1);
        const int sign = coefficient_of(table, levels, product, row, col);
        if (sign != 0) {
            terms[count++] = (struct term){sign, row, col};
        }
    }
    return count;
}

/* Whether no product from `first` to `end` - 1 is added to the block. */
static bool block_is_untouched(int levels, int first, int end, const struct term *block)
{
    for (int product = first; product < end; product++) {
        if (coefficient_of(to_c, levels, product, block->row, block->col) != 0) {
            return false;
        }
    }
    return true;
}

static int64_t part_of(int64_t length, int64_t start, int64_t most)
{
    return cpu_gemm_clamp(length - start, 0, most);
}

/* to[r][c] = sum of signed blocks, each from its own element on: rows x cols of the block, of which
 * fewer exist at the edges. */
static void sum_add(const struct cpu_gemm_kernels *kernels, enum cpu_gemm_type type, char *to,
                    int64_t ldd, const char *from, int64_t lds, int64_t rows, int64_t cols,
                    int64_t all_rows, int64_t all_cols, int sign, bool first)
{
    const int64_t size = cpu_gemm_type_bytes(type);
    if (first && (rows < all_rows || cols < all_cols)) {
        for (int64_t r = 0; r < all_rows; r++) {
            memset(to + r * ldd * size, 0, (size_t)(all_cols * size));
        }
    }
    if (rows > 0 && cols > 0) {
        kernels->store(to, ldd, type, from, lds, rows, cols, sign, first ? 0 : 1);
    }
}

static int64_t slab_length(const struct cpu_gemm_plan *p, int64_t slab)
{
    return p->slabs == 1 ? p->desc.k : cpu_gemm_least(p->kc, p->desc.k - slab * p->kc);
}

static void strip_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s, int64_t unit)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const enum cpu_gemm_type type = d->type_a;
    struct term terms[CPU_GEMM_MAX_TERMS];
    const int64_t slab = unit / s->strips, k0 = slab * p->kc, length = slab_length(p, slab);
    const int64_t at = unit % s->strips * p->strip, rows = cpu_gemm_least(p->strip, s->m - at);
    const int64_t stride = cpu_gemm_a_stride(p);
    char *to = (char *)job->args->workspace + (slab * s->strips * p->strip + at) * stride * p->size;
    const int count = terms_of(of_a, p->levels, s->product, terms);
    for (int i = 0; i < count; i++) {
        const int64_t row = terms[i].row * d->m + s->m0 + at, k = terms[i].col * d->k + k0;
        const int64_t r = part_of(p->m, row, rows), c = part_of(p->k, k, length);
        const char *a = (const char *)job->args->a +
                        (d->transpose_a ? k * d->lda + row : row * d->lda + k) * p->size;
        if (d->transpose_a) {
            sum_add(p->kernels, type, to, p->strip, a, d->lda, c, r, length, rows, terms[i].sign,
                    i == 0);
        } else {
            sum_add(p->kernels, type, to, stride, a, d->lda, r, c, rows, length, terms[i].sign,
                    i == 0);
        }
    }
}

enum { ROWS = 64 };

/* Some neighbouring panels, a few rows at a time, so that whole lines of B are read. */
static void panels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                        int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const struct cpu_gemm_kernels *kernels = p->kernels;
    const enum cpu_gemm_type type = d->type_a;
    struct term terms[CPU_GEMM_MAX_TERMS];
    const int64_t slab = unit / s->panels, k0 = slab * p->kc, length = slab_length(p, slab);
    const int64_t nr = kernels->nr, wide = nr * CPU_GEMM_LEVELS_PANELS;
    const int64_t all = cpu_gemm_round_up(s->n, nr) * p->kc;
    char *turned = (char *)job->args->workspace + job->layout.scratch + slot * job->layout.slot;
    const int count = terms_of(of_b, p->levels, s->product, terms);
    for (int64_t row = 0; row < length; row += ROWS) {
        const int64_t rows = cpu_gemm_least(ROWS, length - row);
        for (int i = 0; i < count; i++) {
            for (int64_t at = unit % s->panels * wide;
                 at < cpu_gemm_least(s->n, (unit % s->panels + 1) * wide); at += nr) {
                const int64_t cols = cpu_gemm_least(nr, s->n - at);
                char *to = (char *)job->args->workspace + job->layout.b +
                           (slab * all + at * p->kc + row * nr) * p->size;
                const int64_t k = terms[i].row * d->k + k0 + row;
                const int64_t col = terms[i].col * d->n + s->n0 + at;
                const int64_t r = part_of(p->k, k, rows), c = part_of(p->n, col, cols);
                const char *b = (const char *)job->args->b +
                                (d->transpose_b ? col * d->ldb + k : k * d->ldb + col) * p->size;
                if (d->transpose_b) {
                    kernels->transpose(turned, nr, b, d->ldb, type, r, c);
                }
                sum_add(kernels, type, to, nr, d->transpose_b ? turned : b,
                        d->transpose_b ? nr : d->ldb, r, c, rows, cols, terms[i].sign, i == 0);
            }
        }
    }
}

void cpu_gemm_levels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                          int64_t unit, int slot)
{
    const int64_t strips = s->strips * job->plan->slabs;
    if (unit < strips) {
        strip_pack(job, s, unit);
    } else {
        panels_pack(job, s, unit - strips, slot);
    }
}

/* Adds a tile of the product, from `row` and `col` of a block on, to the blocks of C. */
static void tile_add(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                     const struct cpu_gemm_strip *tile, int64_t all, int64_t row, int64_t col,
                     int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const int products = cpu_gemm_level_products(p->levels);
    struct term terms[CPU_GEMM_MAX_TERMS];
    const int count = terms_of(to_c, p->levels, s->product, terms);
    for (int i = 0; i < count; i++) {
        const int64_t r0 = terms[i].row * d->m + row, c0 = terms[i].col * d->n + col;
        const int64_t rows = part_of(p->m, r0, all), cols = part_of(p->n, c0, tile->cols);
        char *c = (char *)job->args->c + (r0 * d->ldc + c0) * p->size;
        if (rows == 0 || cols == 0) {
            continue;
        }
        const bool is_first = block_is_untouched(p->levels, 0, s->product, &terms[i]);
        p->kernels->store(c, d->ldc, d->type_c, tile->c, tile->ldc, rows, cols, terms[i].sign,
                          is_first ? job->args->beta : 1);
        if (d->epilogue != NULL &&
            block_is_untouched(p->levels, s->product + 1, products, &terms[i])) {
            d->epilogue(job->args->user, &(struct cpu_gemm_tile){.data = c,
                                                                 .row = r0,
                                                                 .col = c0,
                                                                 .ld = d->ldc,
                                                                 .rows = (int)rows,
                                                                 .cols = (int)cols,
                                                                 .thread = slot});
        }
    }
}

void cpu_gemm_levels_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                              int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t across = cpu_gemm_ceil_div(s->n, job->task_n), size = p->size;
    const int64_t m0 = unit / across * job->task_m, n = unit % across * job->task_n;
    const int64_t end = cpu_gemm_least(m0 + job->task_m, s->m), nr = p->kernels->nr;
    const int64_t stride = cpu_gemm_a_stride(p), strips = cpu_gemm_ceil_div(s->m, p->strip);
    const char *work = job->args->workspace;
    char *tile = (char *)job->args->workspace + job->layout.scratch + slot * job->layout.slot;
    struct cpu_gemm_strip strip = {.cols = cpu_gemm_least(job->task_n, s->n - n),
                                   .alpha = job->args->alpha,
                                   .b_row = nr,
                                   .b_panel = nr * p->kc,
                                   .a_row = p->desc.transpose_a ? 1 : stride,
                                   .a_col = p->desc.transpose_a ? p->strip : 1};
    strip.ldc = strip.cols;
    for (int64_t slab = 0; slab < p->slabs; slab++) {
        strip.k = slab_length(p, slab);
        strip.beta = slab == 0 ? 0 : 1;
        strip.b =
            work + job->layout.b + (slab * cpu_gemm_round_up(s->n, nr) * p->kc + n * p->kc) * size;
        for (int64_t m = m0; m < end; m += p->strip) {
            strip.rows = (int)cpu_gemm_least(p->strip, end - m);
            strip.a = work + (slab * strips * p->strip + m) * stride * size;
            strip.c = tile + (m - m0) * strip.ldc * size;
            p->kernels->strip(&strip);
        }
    }
    strip.c = tile;
    tile_add(job, s, &strip, end - m0, s->m0 + m0, s->n0 + n, slot);
}
