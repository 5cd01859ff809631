/* The routines of one instruction set for the matrix product: a table over dense blocks, one for
 * f32 and one for f64 accumulation. Filled in by gemm/micro_<isa>.c. */
#ifndef PLUGINS_CPU_GEMM_KERNELS_H
#define PLUGINS_CPU_GEMM_KERNELS_H

#include "gemm/types.h"

enum { CPU_GEMM_DOT_ROWS = 4 }; /* rows of the big matrix that `dot` takes at once */

/* rows x cols of C from `rows` of A and `cols` of B, both already in the accumulator's type. B is
 * a sequence of panels of `nr` columns. */
struct cpu_gemm_strip {
    int64_t k, cols;
    int rows; /* at most mr */
    const void *a;
    int64_t a_row, a_col; /* distances of neighbours along m and along k */
    const void *b;
    int64_t b_row, b_panel; /* distance of neighbours along k; of panels */
    void *c;
    int64_t ldc;
    double alpha, beta;
    bool in_chains; /* few rows: each element has several sums, of every that many terms */
    bool streams;   /* whole vectors of C are aligned and are written past the caches */
    /* What comes into the second cache with even and with odd panels: memory, and bytes for each
     * k. Null: nothing. */
    struct {
        const char *from;
        int64_t step;
    } ahead[2];
};

/* Short matrix Y (rows x k, in the accumulator's type) times a long one X (stored as `type`). The
 * sums go to out. */
struct cpu_gemm_skinny {
    int64_t k, cols;
    int rows;
    const void *y;
    int64_t y_row, y_col;
    const void *x;
    int64_t ldx;
    enum cpu_gemm_type type;
    void *out;
    int64_t ldo;
};

/* The 7 sums of 4 blocks that a level of Strassen's algorithm multiplies. A block is `first`, or
 * first + sign * second. Columns are stored in panels of `width`. */
struct cpu_gemm_sums {
    struct {
        const void *first, *second; /* second: of all blocks or NULL */
    } from[4];
    int64_t ld;
    double sign;
    int64_t rows, cols, width;
    void *to[7];        /* x0 + x3, x2 + x3, x0, x3, x0 + x1, x2 - x0, x1 - x3 */
    int64_t ldo, panel; /* distance of rows, of panels */
};

struct cpu_gemm_kernels {
    int mr, nr, lanes;
    int dot_rows;   /* rows of Y that `dot` takes at once */
    int chain_rows; /* the most rows of strips in chains */
    /* c = alpha * a * b + beta * c; c is not read when beta is 0. */
    void (*strip)(const struct cpu_gemm_strip *strip);
    /* dst[r][c] = src[r][c], widened; rows x cols, ldd and lds apart. */
    void (*copy)(void *dst, int64_t ldd, const void *src, int64_t lds, enum cpu_gemm_type type,
                 int64_t rows, int64_t cols);
    /* dst[r][c] = src[c][r], widened; dst is rows x cols. */
    void (*transpose)(void *dst, int64_t ldd, const void *src, int64_t lds, enum cpu_gemm_type type,
                      int64_t rows, int64_t cols);
    cpu_gemm_store *store;
    /* out[r][c] += sum over k of y[r][k] * x[c][k]; y_col is 1. */
    void (*dot)(const struct cpu_gemm_skinny *s);
    /* out[r][c] += sum over k of y[r][k] * x[k][c]. */
    void (*axpy)(const struct cpu_gemm_skinny *s);
    void (*sums)(const struct cpu_gemm_sums *s);
    /* Of 7 products of `count` elements, one after another, the first 4 become blocks of C. */
    void (*combine)(void *products, int64_t count);
};

/* Tables of an instruction set; NULL if the build lacks it. [0] f32, [1] f64. */
extern const struct cpu_gemm_kernels cpu_gemm_base[2];
extern const struct cpu_gemm_kernels cpu_gemm_avx2[2];
extern const struct cpu_gemm_kernels cpu_gemm_avx512[2];

#endif
