/* What a kernel of matrix products depends on, and its parameters. */
#ifndef PLUGINS_CUDA_GEMM_TILE_KEY_H
#define PLUGINS_CUDA_GEMM_TILE_KEY_H

#include <hal/ir.h>
#include <hal/plugin.h>
#include <stdbool.h>

enum {
    CUDA_GEMM_ROWS = 128, /* of a tile: 64 for each of two warpgroups that multiply it together */
    CUDA_GEMM_MAX_COLUMNS = 256,
    CUDA_GEMM_MAX_SUMS = 4 * CUDA_GEMM_ROWS * CUDA_GEMM_MAX_COLUMNS, /* bytes, of a group */
    CUDA_GEMM_MAX_CLUSTER = 8, /* groups of any, and so parts of k that a cluster adds */
    CUDA_GEMM_MAX_PARTS = 16,  /* parts of k that are added through device memory */
    CUDA_GEMM_STATES = 4096,   /* tiles whose parts are added there, at most: words of a queue */
    CUDA_GEMM_THREADS = 384,
    CUDA_GEMM_MAP_BYTES = 128,
    CUDA_GEMM_LINE = 128 /* bytes of a row of every box in shared memory: the swizzle's width */
};

/* Two groups of a cluster multiply the same rows or the same columns of C: each copies half of the
 * tile of A or B to both. */
enum { CUDA_GEMM_SHARES_NONE, CUDA_GEMM_SHARES_A, CUDA_GEMM_SHARES_B };

/* Of a further input: all rows of a tile have the same values, or all columns; two or four
 * neighbours along a row are loaded with one access. */
enum {
    CUDA_GEMM_INPUT_SAME_ROWS = 1,
    CUDA_GEMM_INPUT_SAME_COLUMNS = 2,
    CUDA_GEMM_INPUT_PAIRS = 4,
    CUDA_GEMM_INPUT_FOURS = 8
};

/* Everything that the text depends on. */
typedef struct cuda_gemm_key {
    hal_type type;   /* of A and B: F16, BF16, F32, F8_E4M3, I8 or U8 */
    hal_type type_c; /* F16, BF16 or F32; of integers also I32 or U32 */
    uint8_t transpose_a, transpose_b;
    uint8_t swapped;   /* C is stored transposed */
    uint8_t reads_c;   /* beta may differ from 0 */
    uint8_t flushes;   /* sums of some elements of k are added to F32 sums, as the units truncate */
    uint8_t split;     /* groups that share a tile of C, each for a part of k */
    uint8_t in_memory; /* they add their sums through device memory; else as a cluster */
    uint8_t staged;    /* C leaves through a loop over rows in shared memory; set where split > 1 */
    uint8_t by_rows;   /* no tensor map describes C, whose boxes are stored by rows; not `staged` */
    uint8_t width;     /* of that loop: elements of C that an access has, 1 or 4 */
    uint8_t direct;    /* A and B are read without tensor maps */
    uint8_t wait_seconds; /* after which a wait ends the kernel with an assertion; 0: never */
    uint8_t shared;       /* CUDA_GEMM_SHARES_*: pairs of groups have a tile of A or B in common */
    uint8_t alternates;   /* the warpgroups take turns, each with tiles of 64 rows of its own */
    uint8_t tile; /* of strict F32, from 1 on, see gemm/fma.h; of the units 0. For strict F32: */
    uint8_t width_a, width_b; /* elements of a copy across k, 1 or 4 */
    uint8_t ragged;           /* k is no multiple of a stage */
    uint32_t columns; /* of a tile: multiples of 16 up to 256; at most 128 where sums are flushed */
    uint32_t input_count;
    hal_type inputs[HAL_GEMM_MAX_INPUTS];
    uint8_t layouts[HAL_GEMM_MAX_INPUTS]; /* CUDA_GEMM_INPUT_*; 0: each element by itself */
    const hal_ir_kernel *epilogue;        /* or null */
} cuda_gemm_key;

/* A further input of the epilogue: an address and strides in elements. */
typedef struct cuda_gemm_input {
    uint64_t address;
    int64_t row_stride, column_stride, batch_stride;
} cuda_gemm_input;

/* A or B as the producer without tensor maps reads it, in the place of its map; distances in bytes.
 */
typedef struct cuda_gemm_source {
    uint64_t address;
    int64_t line, batch;
    uint32_t k, reserved;
} cuda_gemm_source;

/* What kernels of strict F32 have instead of tensor maps. Groups multiply `rounds` whole tiles, and
 * `share` stages of the tiles after them, the first `longer` groups one more. */
typedef struct cuda_fma_block {
    uint64_t a, b, partials, flags; /* addresses */
    int64_t stride_a, stride_b;     /* elements, 0 where all matrices of the batch share it */
    uint32_t lda, ldb, k;
    uint32_t rounds, share, longer;
    float one;
    uint32_t reserved;
} cuda_fma_block;

/* The parameter block of a launch. */
typedef struct cuda_gemm_block {
    union {
        uint8_t maps[3][CUDA_GEMM_MAP_BYTES]; /* of A, B and C, or sources; aligned to 64 */
        cuda_fma_block fma;
    };
    uint64_t c;            /* address */
    int64_t ldc, stride_c; /* elements */
    uint32_t m, n;
    uint32_t steps;                   /* stages of k */
    uint32_t tiles_m, tiles_n, tiles; /* of one matrix, and of the whole batch */
    uint32_t raster;                  /* rows of tiles that are taken together, for the L2 */
    uint32_t batched_a, batched_b;    /* 0: all matrices of the batch share the operand */
    union {
        struct {
            float alpha, beta;
        };
        uint32_t factors[2]; /* the same of integers, modulo 2^32 */
    };
    uint32_t batch;
    uint32_t places; /* tiles of C, of all matrices; of pairs where groups share operands */
    uint64_t parts;  /* address of the queue's memory, see gemm/end/partial.h */
    cuda_gemm_input inputs[HAL_GEMM_MAX_INPUTS]; /* as many as there are */
} cuda_gemm_block;

/* Elements in a line of 128 bytes: of k in a stage, and of m or n in a box that lies along them. */
static inline uint32_t cuda_gemm_line(hal_type type)
{
    return CUDA_GEMM_LINE / hal_type_size(type);
}

/* Rows of a tile of C. */
static inline uint32_t cuda_gemm_rows(const cuda_gemm_key *key)
{
    return key->alternates ? CUDA_GEMM_ROWS / 2 : CUDA_GEMM_ROWS;
}

/* Which 64 rows of a tile a warpgroup multiplies, in PTX. */
static inline const char *cuda_gemm_band(const cuda_gemm_key *key)
{
    return key->alternates ? "0" : "%multiplier";
}

/* Groups that share a tile of A or B: neighbours in a cluster. */
static inline uint32_t cuda_gemm_pairs(const cuda_gemm_key *key)
{
    return key->shared != CUDA_GEMM_SHARES_NONE ? 2 : 1;
}

/* Whether a tensor map describes A (0), B (1) or C (2). */
static inline bool cuda_gemm_is_mapped(const cuda_gemm_key *key, uint32_t matrix)
{
    return matrix < 2 ? !key->direct : !key->staged && !key->by_rows;
}

/* Groups of a cluster. */
static inline uint32_t cuda_gemm_cluster(const cuda_gemm_key *key)
{
    return cuda_gemm_pairs(key) * (key->in_memory ? 1u : key->split);
}

/* Bytes of the sums of one group. */
static inline uint32_t cuda_gemm_sum_bytes(const cuda_gemm_key *key)
{
    return cuda_gemm_rows(key) * key->columns * 4;
}

/* Whether the copies of A and B round F32 to TF32: products of one term. */
static inline bool cuda_gemm_rounds(const cuda_gemm_key *key)
{
    return key->type == HAL_TYPE_F32 && !key->flushes;
}

/* Whether A and B have 8-bit elements, which the units read along k only. */
static inline bool cuda_gemm_has_bytes(const cuda_gemm_key *key)
{
    return hal_type_size(key->type) == 1;
}

/* Whether A and B are integers, whose sums are exact modulo 2^32. */
static inline bool cuda_gemm_is_integer(const cuda_gemm_key *key)
{
    return hal_type_is_integer(key->type);
}

/* Sets what the end of a tile depends on but its layout: whether C is read, and the epilogue. */
static inline void cuda_gemm_key_set_end(cuda_gemm_key *key, const hal_gemm_description *d)
{
    key->reads_c = !d->beta_is_zero;
    key->input_count = d->input_count;
    key->epilogue = d->epilogue;
    for (uint32_t i = 0; i < d->input_count; i++) {
        key->inputs[i] = d->inputs[i].type;
    }
}

#endif
