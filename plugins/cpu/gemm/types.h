/* The types of the native matrix product, see gemm.h. */
#ifndef PLUGINS_CPU_GEMM_TYPES_H
#define PLUGINS_CPU_GEMM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* Storage types. f16 and bf16 are widened to f32, accumulated there and rounded once, to nearest
 * even. f32, f16 and bf16 may be mixed; f64 stands alone. A and B of i8 or of u8 accumulate in i32,
 * modulo 2^32; C is i32 then, or with an epilogue also a float of at most 32 bits. */
enum cpu_gemm_type {
    CPU_GEMM_F32,
    CPU_GEMM_F64,
    CPU_GEMM_F16,
    CPU_GEMM_BF16,
    CPU_GEMM_I8,
    CPU_GEMM_U8,
    CPU_GEMM_I32 /* or u32 */
};

/* Instruction sets, best last. A description asks for one with `isa`; AUTO takes the best
 * that is fast here. */
enum cpu_gemm_isa {
    CPU_GEMM_ISA_AUTO,
    CPU_GEMM_ISA_BASE,
    CPU_GEMM_ISA_AVX2,
    CPU_GEMM_ISA_AVX512,
    /* AVX512, and dot products of bf16; emulated where there are none */
    CPU_GEMM_ISA_AVX512_BF16,
    CPU_GEMM_ISA_AMX, /* AVX512, and matrix units for bf16; emulated where there are none */
    CPU_GEMM_ISA_COUNT
};

/* A tile of C, of the sums' type: float, double where C is f64, or int32_t. Element (r, c) of it is
 * data[r * ld + c] and belongs to C at (row + r, col + c) of matrix `batch`. */
struct cpu_gemm_tile {
    void *data;
    int64_t row, col, batch, ld;
    int rows, cols;
    int thread; /* number of the thread that calls, below the count of threads */
};

/* A size that tiles have. */
struct cpu_gemm_shape {
    int rows, cols;
};
enum { CPU_GEMM_SHAPES = 144 };

/* Called once for every element of C, in tiles, from the worker threads, after alpha and beta and
 * before the result is rounded to C's type. It changes the tile in place, and sums of i32 to floats
 * where C has these, and does not read beyond rows x cols. A tile has at most 1024 rows and 1024
 * columns. */
typedef void cpu_gemm_epilogue_fn(void *user, const struct cpu_gemm_tile *tile);

enum { CPU_GEMM_MAX_LEVELS = 2 };

struct cpu_gemm_desc {
    enum cpu_gemm_type type_a, type_b, type_c;
    enum cpu_gemm_isa isa;
    bool transpose_a; /* A is stored k x m instead of m x k */
    bool transpose_b; /* B is stored n x k instead of k x n */
    int64_t m, n, k;
    int64_t lda, ldb, ldc;                /* distance of rows, in elements */
    int64_t batch;                        /* number of matrices, at least 1 */
    int64_t stride_a, stride_b, stride_c; /* distance of matrices, in elements; 0 repeats A or B */
    int levels; /* of Strassen's algorithm; above 0 for one batch of f32 or f64 throughout */
    cpu_gemm_epilogue_fn *epilogue; /* or NULL */
};

/* dst[r][c] = alpha * src[r][c] + beta * dst[r][c], rounded to type; dst is not read when beta is
 * 0. */
typedef void cpu_gemm_store(void *dst, int64_t ldd, enum cpu_gemm_type type, const void *src,
                            int64_t lds, int64_t rows, int64_t cols, double alpha, double beta);

struct cpu_gemm_kernels;
struct cpu_pairs_kernels;
struct cpu_thread_pool;

/* One run of a plan. */
struct cpu_gemm_args {
    const void *a, *b;
    void *c;                      /* not read when beta is 0; overlaps neither A nor B */
    double alpha, beta;           /* rounded to the accumulator's type; whole numbers for i32 */
    void *user;                   /* handed to the epilogue */
    void *workspace;              /* 64-byte aligned, of cpu_gemm_workspace_size bytes */
    struct cpu_thread_pool *pool; /* NULL: the calling thread alone */
    uint32_t threads;             /* of the pool, to use at most */
};

/* The algorithms; see cpu_gemm_plan_make. */
enum cpu_gemm_route {
    CPU_GEMM_TILES,
    CPU_GEMM_DOT,
    CPU_GEMM_AXPY,
    CPU_GEMM_PAIRS,
    CPU_GEMM_LEVELS, /* of Strassen's algorithm, as the description asks */
    CPU_GEMM_ROUTES
};

/* Columns of C in a task of the route PAIRS, at most. */
enum { CPU_GEMM_PAIRS_MAX_COLS = 512 };

/* Copies of A and B, and sums, in the workspace of a run that is single: lines in elements, offsets
 * in bytes. A is first. */
struct cpu_gemm_single {
    int64_t lda, ldb, ldc;
    int64_t b, sums, bytes;
};

/* Opaque: every field is derived from the description. Owns no memory. */
struct cpu_gemm_plan {
    struct cpu_gemm_desc desc; /* in the route LEVELS, m, n and k are those of a block */
    int64_t m, n, k;           /* of the whole matrices */
    const struct cpu_gemm_kernels *kernels;
    /* Of sums; of them, or of what the epilogue made of them, as type_c. */
    cpu_gemm_store *store_sums, *store_c;
    enum cpu_gemm_route route;
    bool pack_a, pack_b;
    bool streams;   /* C leaves the caches: written by streaming stores unless it is read */
    bool is_single; /* one task with a small workspace, if it runs on one thread */
    struct cpu_gemm_single single;
    const struct cpu_pairs_kernels *pairs; /* NULL without a unit for A and B, or its emulation */
    bool swap;                             /* skinny routes: the long dimension is m */
    bool in_chains;                        /* strips have few sums, see cpu_gemm_strip */
    bool in_tiles;                         /* AXPY: the sums are in registers for all of k */
    bool writes_row;                       /* AXPY in tiles: C is one row of memory */
    int size;                              /* bytes of an accumulator element */
    int64_t kc, slabs; /* the fixed division of k, on which the bits of the result depend */
    int64_t strip;     /* rows of a register tile */
    int64_t outer_m, outer_n, group; /* packed at a time: a block of C, matrices of a batch */
    int64_t outer_k;                 /* the k of a phase */
    int64_t task_m, task_n;          /* what one task computes */
    int64_t chunk;                   /* skinny routes: elements of the long dimension in a task */
    double expected_ns;              /* of one thread, for a guess of the time */
    int max_threads;                 /* more cost more than they gain */
};

#endif
