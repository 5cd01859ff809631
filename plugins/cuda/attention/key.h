/* What a kernel of attention depends on, where its tiles lie in shared memory, and its parameters.
 *
 * A group has one warpgroup that copies and 1 to 3 that multiply, each 64 rows of the queries. The
 * tiles of q, k and v are boxes of 64 elements of the head, 128 bytes, in the 128-byte swizzle;
 * what lies beyond a head, or beyond the last row, is 0. Keys and values have rings of stages of
 * their own. Barriers: `full` of a tile completes when its bytes have arrived, `empty` when all
 * warps that multiply it have read it. */
#ifndef PLUGINS_CUDA_ATTENTION_KEY_H
#define PLUGINS_CUDA_ATTENTION_KEY_H

#include <hal/plugin.h>
#include <stdbool.h>

enum {
    CUDA_ATTENTION_MAP_BYTES = 128,
    CUDA_ATTENTION_LINE = 128,       /* bytes of a row of a box: the swizzle's width */
    CUDA_ATTENTION_LINE_LENGTH = 64, /* elements of it */
    CUDA_ATTENTION_BAND = 64,        /* rows of a warpgroup */
    CUDA_ATTENTION_STAGES = 2,
    CUDA_ATTENTION_ALIGNMENT = 1024, /* of tiles, as the swizzle repeats every 8 lines */
    CUDA_ATTENTION_MAX_HEAD = 256,
    CUDA_ATTENTION_MAX_LENGTH = 1 << 30, /* tiles begin and end at 32-bit numbers */
    CUDA_ATTENTION_MAX_SPLIT = 8         /* groups of a cluster */
};

/* Everything that the text depends on. */
typedef struct cuda_attention_key {
    hal_type type;        /* of all tensors: F16 or BF16 */
    uint8_t causal;       /* row i has the columns up to i + n - m */
    uint8_t warpgroups;   /* that multiply */
    uint8_t split;        /* groups of a cluster that share the keys of a tile; at least 1 */
    uint8_t wait_seconds; /* after which a wait ends the kernel with an assertion; 0: never */
    uint16_t d, e;        /* the heads of q and k, and of v, rounded up to multiples of 16 */
    uint16_t keys;        /* of a tile: a multiple of 16 */
} cuda_attention_key;

/* The parameter block of a launch. */
typedef struct cuda_attention_block {
    _Alignas(64) uint8_t maps[3][CUDA_ATTENTION_MAP_BYTES]; /* of q, k and v */
    uint64_t y;                                             /* address */
    int64_t y_row, y_batch, y_outer;                        /* bytes */
    uint32_t m, n, e;
    int32_t shift;              /* n - m */
    uint32_t row_tiles;         /* of one matrix */
    uint32_t batches;           /* matrices of the inner leading axis */
    uint32_t tiles;             /* of all matrices */
    uint32_t matrices, section; /* all, and those whose tiles are taken together */
    uint32_t k_batch, k_outer;  /* 0: all matrices along the axis share k; else 1 */
    uint32_t v_batch, v_outer;
    float scale; /* of scores, times log2(e) */
} cuda_attention_block;

static inline uint32_t cuda_attention_rows(const cuda_attention_key *key)
{
    return key->warpgroups * (uint32_t)CUDA_ATTENTION_BAND;
}

static inline uint32_t cuda_attention_threads(const cuda_attention_key *key)
{
    return 128 * (key->warpgroups + 1u);
}

/* Registers of a work-item that multiplies, and of one that copies: all of a compute unit for two
 * groups of one warpgroup, else for one group. */
static inline uint32_t cuda_attention_registers(const cuda_attention_key *key)
{
    return key->warpgroups == 1 ? 232 : key->warpgroups == 2 ? 240 : 160;
}

static inline uint32_t cuda_attention_copy_registers(const cuda_attention_key *key)
{
    return key->warpgroups == 3 ? 32 : 24;
}

/* Boxes of a tile along a head. */
static inline uint32_t cuda_attention_boxes(uint32_t head)
{
    return (head + CUDA_ATTENTION_LINE_LENGTH - 1) / CUDA_ATTENTION_LINE_LENGTH;
}

static inline uint32_t cuda_attention_tile_bytes(uint32_t rows, uint32_t head)
{
    return cuda_attention_boxes(head) * rows * CUDA_ATTENTION_LINE;
}

/* Offsets from register %base; of stage 0. */
static inline uint32_t cuda_attention_k(const cuda_attention_key *key)
{
    return cuda_attention_tile_bytes(cuda_attention_rows(key), key->d);
}

static inline uint32_t cuda_attention_v(const cuda_attention_key *key)
{
    return cuda_attention_k(key) +
           CUDA_ATTENTION_STAGES * cuda_attention_tile_bytes(key->keys, key->d);
}

/* Bytes of a row of a group's sums in shared memory, which replace the tiles where several groups
 * share the keys, with few bank conflicts. The greatest scores and the sums of the weights of all
 * rows follow them. */
static inline uint32_t cuda_attention_sums_pitch(const cuda_attention_key *key)
{
    return 4u * key->e + 32;
}

static inline uint32_t cuda_attention_barriers(const cuda_attention_key *key)
{
    const uint32_t tiles = cuda_attention_v(key) +
                           CUDA_ATTENTION_STAGES * cuda_attention_tile_bytes(key->keys, key->e);
    const uint32_t sums = cuda_attention_rows(key) * (cuda_attention_sums_pitch(key) + 8);
    return key->split == 1 || tiles > sums ? tiles : sums;
}

/* Offsets from register %barriers; of stage 0. */
enum {
    CUDA_ATTENTION_Q_FULL = 0,
    CUDA_ATTENTION_Q_EMPTY = 8,
    CUDA_ATTENTION_K_FULL = 16,
    CUDA_ATTENTION_K_EMPTY = CUDA_ATTENTION_K_FULL + 8 * CUDA_ATTENTION_STAGES,
    CUDA_ATTENTION_V_FULL = CUDA_ATTENTION_K_EMPTY + 8 * CUDA_ATTENTION_STAGES,
    CUDA_ATTENTION_V_EMPTY = CUDA_ATTENTION_V_FULL + 8 * CUDA_ATTENTION_STAGES,
    CUDA_ATTENTION_HOLD = CUDA_ATTENTION_V_EMPTY + 8 * CUDA_ATTENTION_STAGES, /* never completes */
    CUDA_ATTENTION_BARRIER_BYTES = CUDA_ATTENTION_HOLD + 8
};

static inline uint32_t cuda_attention_shared_bytes(const cuda_attention_key *key)
{
    return CUDA_ATTENTION_ALIGNMENT + cuda_attention_barriers(key) + CUDA_ATTENTION_BARRIER_BYTES;
}

#endif
