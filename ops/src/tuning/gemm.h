/* Constants of matrix products, see tuning.h. */
#ifndef OPS_SRC_TUNING_GEMM_H
#define OPS_SRC_TUNING_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* How C is divided. A work-item computes thread_m x thread_n elements as strips of strip_m x
 * strip_n neighbours; its strips are as far apart as the strips of its warp extend, so that
 * neighbouring work-items access neighbouring memory. All sizes are powers of two. Three kinds of
 * kernel:
 * - direct (stages 0, unroll 0): work-items read A and B from global memory, block_k steps at once.
 * - staged (stages > 0): tiles of A and B of depth block_k pass through a ring of `stages` tiles in
 *   shared memory; 2 stages are copied through registers, more by asynchronous copies.
 * - intra-group split-K (unroll > 0): no staging; each slice of the group takes block_k steps of k
 *   in turn, with the loads of `unroll` turns in flight; partial sums meet in shared memory. */
typedef struct ops_gemm_tiles {
    uint16_t block_m, block_n, block_k;
    uint16_t intra_group_split_k; /* slices of k that the group sums at once */
    uint16_t lanes_m, lanes_n;    /* work-items of a warp along rows and columns; 0: of the group */
    uint8_t thread_m, thread_n;
    uint8_t strip_m, strip_n;
    uint8_t stages;
    uint8_t min_groups_per_unit; /* hint: groups resident on a compute unit; 0: no hint */
    uint8_t unroll;
    /* Matrix-unit products per F32 product (3 or 1), 1 for halves, 0: multiply-add. Lanes are 8 x 4
     * and strips 1 x 8, or 1 x 2 where B is contiguous along k (gemm/emit_matrix.c). */
    uint8_t matrix;
    uint8_t flush;       /* sums of a tile start at zero and are added to the accumulators */
    uint8_t any_slices;  /* the general kernel of intra-group split-K: slices, steps and parts are
                            scalars, and blocks have as many columns as they leave work-items */
    uint8_t reserved[2]; /* 0 */
} ops_gemm_tiles;

/* Of tiles, on a device whose units are all busy: groups of a unit at once, and nanoseconds. */
typedef struct ops_gemm_rates {
    float resident; /* groups that a unit has at once */
    float step;     /* of a step of k of one group, when a unit has as many as it can */
    float alone;    /* the same of a group that has a unit for itself */
    float end;      /* of the start and the end of a group */
    float odd_end;  /* the same where the elements of C's lines are no multiple of 4 */
} ops_gemm_rates;

typedef struct ops_gemm_tile {
    ops_gemm_tiles tiles;
    ops_gemm_rates rates;
} ops_gemm_tile;

typedef struct ops_gemm_tile_table {
    const ops_gemm_tile *rows;
    uint32_t count;
} ops_gemm_tile_table;

/* The cost model of portable kernels (gemm/cost.c): nanoseconds of one compute unit. */
typedef struct ops_gemm_cost_tuning {
    double launch;
    double direct_launch;
    double reduce_launch;
    double reduce_element;
    double c_element;
    double direct_c_element;
    double item_load;
    double item_step;
    double sector;
    double line;
    double partial_sum;
    double turn;
    double group;
    double parts;
    double direct_turn;
    double direct_load;
    double direct_store;
    double half_staged;
    double far_from;
    double far_bytes;
    double far_staged;
    double far_loads;
    double units_parts;
    double units_flush;
    double units_narrow;
    double units_single;
    double units_late, units_registers, units_place; /* of F64 */
} ops_gemm_cost_tuning;

/* The cost model of levels of Strassen's algorithm (gemm/normwise) counts time in operations of a
 * plain product: those that the device does while it moves a byte, and while it starts a kernel. */
typedef struct ops_normwise_tuning {
    double ops_per_byte;
    double units_ops_per_byte; /* of types that matrix units multiply */
    double ops_per_launch;
    double peel_passes; /* passes over all operands that edges and unaligned rows cost */
    int64_t min_block;  /* least length of a block that is multiplied */
    double min_gain;    /* least gain in time */

    /* Of a plugin's kernel that forms the sums while it packs: per byte with one compute unit, with
     * two, for each further one, at most. */
    double inside_ops_of_one, inside_ops_of_two, inside_ops_of_thread, inside_ops_of_many;
    int64_t inside_min_length[3]; /* of matrices for each number of levels; 0: no such kernels */
    double inside_min_gain;
} ops_normwise_tuning;

typedef struct ops_gemm_tuning {
    bool has_levels_inside; /* a plugin's kernel has the levels, unless weights are prepared */
    uint32_t split_depth;   /* steps of k of each part of a product; 0: by estimated time */

    /* Tiles of GPUs; where several tables serve, the first rows may be too wide. */
    ops_gemm_tile_table staged, units_half, units_f32, units_f64, narrow_units_half,
        register_units_half, register_units_f32, register_units_f64;
    /* Rows and columns that matrix units multiply. */
    int64_t units_least_f32, units_least_f64, units_least_half;
    uint16_t max_split_block; /* lines of a block of intra-group split-K */
    uint16_t max_items;       /* work-items of a group without staging */
    uint16_t max_values; /* elements in flight in registers; where the device tells its registers */
    uint16_t sums_share, values_share; /* sums may take one of that many, values one of that many */
    uint16_t outer_max_k; /* steps of k of products that may write more than they read again */
    uint8_t outer_rows, outer_steps; /* rows and steps of their work-items */
    uint8_t quantised_rows; /* of A, up to which quantised weights are decoded in the product */
    uint8_t quantised_unit_rows; /* the same of matrix units */
    /* Rows of A up to which weights are copied in pieces, and bytes of one; 0: at once. */
    uint8_t quantised_piece_rows;
    uint32_t quantised_piece_bytes;
    uint8_t reduce_unroll; /* loads in flight of the kernel that adds partial sums */
    ops_gemm_cost_tuning cost;

    /* Copies of A and B into lines that a plugin's kernel takes, which it does not need. */
    double min_copied_work;   /* multiplications: a GPU multiplies fewer in less time than a copy */
    int64_t min_copied_steps; /* of k: with fewer, the portable kernel is bound by C */
    bool copies_strict;       /* else strict products are never copied where the plugin estimates */
    double copy_launch_ns;    /* of a copy, */
    double copy_bytes_per_ns; /* and what a compute unit reads and writes */

    /* Processors that compile work-items to vectors of columns. */
    ops_gemm_tiles vectorised;
    uint32_t groups_per_unit; /* from which on units finish at about the same time */

    /* Processors whose lanes run in lock-step along columns. The tall tile amortises the strided
     * reads of a B that is contiguous along k. */
    uint16_t wide_n, wide_m, tall_n, tall_m;
    int64_t many_rows; /* of A, from which a B with contiguous rows is faster; 0: never copied */

    ops_normwise_tuning normwise;
} ops_gemm_tuning;

#endif
