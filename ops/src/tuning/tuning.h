/* Constants that measurements decided, in one table per class of devices. A context selects its
 * table once; the code has no other place that asks for the class of a device.
 *
 * A field is 0 where a class does without what it limits, unless its comment says otherwise.
 * Capacities of arrays and of caches, and limits of formats, are no tuning and stay with the code
 * that they limit. tools/fit has programs that fit tables to measurements. */
#ifndef OPS_SRC_TUNING_TUNING_H
#define OPS_SRC_TUNING_TUNING_H

#include "gemm.h"

#include <hal/hal.h>
#include <stdbool.h>

/* Elementwise kernels (kernels/elementwise.c). */
typedef struct ops_elementwise_tuning {
    uint32_t max_width; /* elements of a work-item that one access may load; at least 1 */
    uint32_t min_row;   /* work-items of a line from which kernels have rows; 0: lines of groups */
    uint32_t min_loads; /* elements that a work-item of a row loads before it waits for one */
    uint32_t busy_groups;   /* groups of a busy compute unit */
    bool evens_lines;       /* an even share of lines for each work-item: no idle lanes */
    bool subgroup_is_known; /* groups are multiples of subgroup_width, not of max_lanes */
    uint32_t max_lanes;     /* of a subgroup that groups are multiples of */
    uint32_t full_items;    /* work-items that a compute unit should hold, some of which load while
                               others compute; 0: the device decides */
    uint32_t max_full_groups;
    uint32_t max_loaded_bytes; /* of a work-item; with more it needs the registers itself */
    uint32_t min_loaded_bytes; /* of a work-item, with fewer of which it computes two vectors */
    uint32_t max_joined_copy;  /* bytes of an input that joined kernels copy rather than bind by
                                  itself; 0: any */
    uint32_t general_bytes;    /* per element of a view that a general kernel is charged for */
    /* The same of a processor's lanes (ops_has_lane_vectors): neighbours, and others. */
    uint32_t general_lanes_bytes, general_apart_bytes;

    /* Devices whose kernels have lines of groups. */
    uint32_t large_group;      /* work-items of a group of large arrays in order */
    uint32_t min_large_groups; /* groups of that size from which an array is large */
    uint32_t one_group_step;   /* small arrays of a multiple of it are one group */
    uint32_t min_lanes;        /* work-items from which a group covers lines */
    uint32_t tile_side;        /* work-items along x of a group that is a tile */
    uint32_t tile_items;       /* work-items of a tile */
    uint32_t unit_tiles;       /* tiles of a compute unit, at least */
    uint32_t min_tile_columns; /* shortest line of a tile where lines of a view have gaps */
    uint32_t min_strided_line; /* the same of other groups */
} ops_elementwise_tuning;

/* Groups that compute ranges of lines, by steps of rows of work-items (kernels/ranges.c). */
typedef struct ops_ranges_tuning {
    uint32_t elements;         /* of a range; 0: no ranges */
    uint32_t step_items;       /* cost of a step, in work-items */
    uint32_t line_items;       /* cost of a row of a step, in work-items */
    uint32_t min_masked;       /* elements of the shortest line that is computed with masks */
    uint32_t long_line;        /* elements from which lines are read one by one, for prefetchers */
    uint32_t min_indexed_line; /* elements of the shortest line with an index of its own */
    uint32_t few_lines;        /* lines that steps share evenly, at most */
    double min_gain;           /* greatest part of the work for which other lines are taken */
} ops_ranges_tuning;

/* Tiles of inputs that are contiguous along another dimension (kernels/transposed.c). */
typedef struct ops_transposed_tuning {
    uint32_t max_elements;        /* of a staged tile; 0: nothing is staged */
    uint32_t max_ragged_elements; /* the same where lines of the output begin inside sectors */
    uint32_t min_elements;        /* fewer do not pay */
    uint32_t box_side;          /* elements of a side next to a short one; shorter ones are short */
    uint32_t max_shared_bytes;  /* of a group, so that several fit a compute unit */
    uint32_t many_sides;        /* sides of a dimension of which the last one may be short */
    int64_t max_step;           /* greatest stride, in elements, of a staged view's lines */
    uint32_t sector_bytes;      /* that global memory transfers at least */
    uint32_t max_run;           /* elements of a run of a tile */
    uint32_t idle_divisor;      /* at most one of this many work-items is idle */
    uint32_t max_staged_width;  /* neighbours that a work-item copies to shared memory at a time */
    uint32_t computed_elements; /* that a work-item computes at a time */

    /* Devices that read squares in registers. */
    int64_t min_lines;   /* elements of the dimension that is read along; 0: no squares */
    int64_t min_square;  /* elements of a tile with short sides */
    int64_t min_columns; /* of a tile with short sides */
    int64_t long_side;   /* columns that are not short */
} ops_transposed_tuning;

/* The form of groups that fold an axis (kernels/fold.c). */
typedef enum ops_fold_groups {
    OPS_FOLD_BY_VECTORS,      /* lanes are elements of vectors: combining them costs much */
    OPS_FOLD_BY_WIDE_VECTORS, /* the same behind a GPU's interface */
    OPS_FOLD_BY_LANES         /* lanes combine by shuffles and loads of neighbours coalesce */
} ops_fold_groups;

typedef struct ops_fold_tuning {
    ops_fold_groups groups;
    bool has_whole_groups;   /* groups without idle work-items access without guards */
    int64_t min_shared_axis; /* length from which work-items share a contiguous axis */
    uint32_t max_chains;     /* accumulators of a work-item */
    uint32_t step_bytes;     /* of values that a work-item loads in a step; 0: by max_chains */
    uint32_t group_items;    /* work-items of a group */

    /* OPS_FOLD_BY_VECTORS, contiguous axis */
    int64_t min_wide_axis;   /* length from which 256 instead of 64 work-items share it */
    uint32_t min_kept_along; /* work-items along an axis whose row needs no loop, at least */
    uint32_t max_kept_along; /* the same, at most */
    uint32_t kept_chunks;    /* elements of such a work-item */
    int64_t min_side_axis;   /* length from which vector_items share a shorter axis, with other rows
                                 in the same group */
    /* OPS_FOLD_BY_VECTORS and _WIDE_VECTORS, contiguous outputs */
    uint32_t vector_items;    /* work-items of a vector */
    uint32_t row_items;       /* cost of a row of a group, in work-items */
    int64_t min_shared_steps; /* along the axis from which work-items share an output */
    uint64_t min_row;    /* outputs from which a group keeps to one row: fewer leave lanes idle */
    uint32_t max_across; /* work-items across outputs, of long axes */
    int64_t min_long_across;  /* length of a long axis: prefetchers follow long lines */
    int64_t min_narrow;       /* elements from which fewer outputs are a group as well */
    int64_t min_narrow_steps; /* of those, along the axis, from which work-items share one */
    int64_t min_steep_axis;   /* length from which few outputs have a vector each for some steps */
    int64_t layers_work;      /* vectors that a group with several rows may load in any case */
    uint64_t max_layered;     /* outputs of the longest row of such a group; 0: no such groups */
    uint32_t layers_groups;   /* groups of a compute unit above which it may load more */
    /* OPS_FOLD_BY_WIDE_VECTORS, contiguous axis */
    uint32_t min_along; /* work-items along the axis */
    /* OPS_FOLD_BY_WIDE_VECTORS and _BY_LANES */
    uint32_t item_elements; /* of a work-item: fewer leave too few loads in flight */
    /* OPS_FOLD_BY_LANES */
    uint32_t many_elements; /* the same where many_items have as many, on rows of min_many_axis */
    uint32_t many_items;    /* of a compute unit */
    int64_t min_many_axis;
    uint32_t min_side;         /* words that work-items of a group read side by side */
    uint32_t cache_line_words; /* the same of outputs */
    uint32_t usual_items;      /* work-items of a group that shares an axis */
    uint32_t max_items;        /* of one whose work-items had more than 2 * item_elements */
    uint32_t kept_line_words;  /* outputs side by side where the group keeps elements; 0: never */
    uint32_t min_kept_line_words;
} ops_fold_tuning;

/* Kernels of row programs (kernels/rows.c). */
typedef struct ops_rows_tuning {
    /* Slices of an axis. */
    int64_t min_steps;         /* elements of a work-item */
    int64_t min_slice;         /* elements of a slice */
    int64_t min_sliced;        /* elements of an axis from which the second kernel pays */
    int64_t min_slicing_units; /* compute units from which it pays */
    int64_t max_slices;
    int64_t unit_groups; /* groups of a compute unit that slices add up to; 0: by busy_items */
    int64_t busy_items;  /* work-items that keep a compute unit busy with loads */
    uint32_t full_items; /* work-items that a compute unit may have */
    uint32_t max_groups; /* groups that a compute unit may have */

    /* Elements that a work-item keeps in registers. */
    uint32_t large_group;   /* work-items above which a group keeps max_large_kept */
    int64_t max_large_kept; /* words of a work-item of large groups */
    int64_t max_kept;       /* the same of others */
    uint32_t shared_items;  /* work-items of a group with several rows that keeps nothing */
    uint32_t shared_groups; /* groups of a compute unit that remain */
    uint32_t cache_step; /* elements of whose multiples shared memory has room; 0: it caches none */
    uint32_t cache_steps;     /* steps from which they double, so that lengths share kernels */
    int64_t min_cached_loads; /* elements from which it loads twice as many at once */

    bool rest_by_chunks;    /* the last loop has the unroll of the others: no registers are short */
    bool all_items_store;   /* all work-items of a row store its value: masks cost more */
    bool rotates_chains;    /* general kernels have the text of one element: none waits for loads */
    bool stores_costly;     /* an output's memory holds costly values between loops */
    bool stores_by_parts;   /* stores begin at whole parts of sectors */
    bool softmax_is_online; /* where a group keeps no row, one loop finds the greatest value and the
                                 sum: reading the row again costs more than exp */
    uint32_t general_bytes; /* per element of a view that a general kernel is charged for */
    /* The same of a processor's lanes (ops_has_lane_vectors): neighbours, then also per row; and
     * lanes that are no neighbours in the special kernel either. */
    uint32_t general_lanes_bytes, general_row_bytes, general_apart_bytes;
} ops_rows_tuning;

/* Copies, and calls on arrays. */
typedef struct ops_copy_tuning {
    uint64_t min_kernel_bytes; /* from which a kernel copies contiguous words, not the queue */
    uint64_t min_split_bytes;  /* from which the queue copies the words of tensors that end within
                                  one, and a kernel the rest */
    uint64_t
        max_joined_bytes; /* of a part that is copied by a kernel together with others; 0: none */
    bool copies_alone;    /* a copy that nothing is fused with is a call of ops_copy */
} ops_copy_tuning;

/* The compile policy (tensor/compile_policy.c). */
typedef struct ops_compile_tuning {
    uint64_t fast_ns;         /* compilations faster than this are never deferred: the cpu plugin's,
                              and those of a warm compile cache */
    uint64_t general_from_ns; /* compilations from which shapes have general kernels */
    uint64_t expected_ns;     /* of a compilation, on devices where it is slow, however little time
                              the fastest one takes; 0: compilations decide, see fast_ns */
    uint64_t guessed_ns;      /* the same before one was measured, where compilations decide */
    uint64_t expected_by_vectors_ns; /* the same where the driver's compiler makes vectors of
                                        work-items (item_vector_bytes) */
    uint32_t eager_plans;  /* compiled at their first use: together they cost about as much as the
                              kernels of single operations, which are missing at first */
    uint64_t launch_ns;    /* extra cost of a single kernel */
    uint64_t bytes_per_ns; /* rate of intermediate results between single kernels */
    uint64_t general_ns;   /* what a general kernel of a small array takes longer */
} ops_compile_tuning;

/* Scans (kernels/scan.c). */
typedef struct ops_scan_tuning {
    bool shares_lines;         /* groups scan a line together, where lines are not side by side */
    int64_t min_shared_length; /* longest line that one work-item scans for itself */
    int64_t unit_items;        /* work-items that keep a compute unit busy */
    int64_t min_part_length;   /* elements of the shortest part that one work-item scans */
    int64_t busy_share;        /* with shares_lines: lines side by side are shared if they are fewer
                                  than the work-items of a busy device by this factor */
} ops_scan_tuning;

/* Sorting (kernels/sort.c). */
typedef struct ops_sort_tuning {
    bool by_digits;         /* blocks by digits and short lines by counts, as work-items of a
                                 processor each have a part; else by networks */
    int64_t most_counted;   /* elements of a short line, at most 256 */
    int64_t min_block;      /* elements of a block, of which a line has one for each processor */
    int64_t min_many_items; /* elements from which many_items sort a block */
    uint32_t few_items, many_items; /* divisors of 256 */
} ops_sort_tuning;

/* Convolutions (composed/convolution.c). */
typedef struct ops_convolution_tuning {
    uint64_t piece_bytes; /* most windows of one product, unless those of a line take more */
    bool pads_by_copies;  /* tests of coordinates cost more than a fill and a copy */
    int64_t zeros_first; /* elements of x from which that is so where a copy reads across memory,
                          * since tiles of it go through shared memory; 0: never */
    bool pools_at_once; /* windows that are long or reach beyond x by one kernel (kernels/pool.c) */
    bool bakes_steps;   /* depthwise: neighbours at known distances share an address */
    uint32_t results;   /* depthwise: of a work-item, where steps are known; 0, 1: one */
    /* Implicit GEMM, on a compute unit: bytes that copies write or read in a nanosecond, 0: it is
     * never chosen; nanoseconds of a multiplication in the product of copied windows and in the
     * implicit one, of F32 elsewhere and of halves on matrix units; and of a further kernel. */
    double implicit_copy_rate, implicit_ns[2], implicit_units_ns[2], implicit_launch_ns;
    int64_t min_line; /* depthwise, channels first: shorter lines have channels last between */
    /* Direct convolutions (kernels/direct.c), nanoseconds on a compute unit; without a sum's they
     * are never chosen. Of a vector of 16 lanes: a load of x, and a multiply-add; of a group, and
     * of a weight that it reads; of an element of planes, and of a group that copies it; of an
     * element that is copied because lanes are apart in memory; of a call. */
    double direct_load_ns, direct_sum_ns, direct_group_ns, direct_weight_ns;
    double direct_plane_ns, direct_plane_group_ns, direct_transposed_ns, direct_call_ns;
    double direct_general_ns; /* that a general kernel takes longer for a load of one lane */
    /* The other ways: of an element of a copied window whose neighbours are so in x or apart, in
     * short lines too (min_line); of a multiplication, few_rows of them at least for an element; of
     * an element of x with its padding; of a result of groups, which copies join; of a further
     * phase of a transposed convolution; the same of the kernel for one channel per group. */
    double copied_near_ns, copied_far_ns, copied_short_ns, copied_sum_ns, few_rows, copied_pad_ns,
        copied_join_ns, copied_phase_ns;
    double depthwise_near_ns, depthwise_far_ns, depthwise_pad_ns;
    /* The same of columns, products of dy with each element of the window: of a multiplication, of
     * an element of columns among zeros, of a result, of a phase, of an element of the window. */
    double column_sum_ns, column_ns, column_result_ns, column_phase_ns, column_tap_ns;
} ops_convolution_tuning;

/* Attention (attention/attention.c). */
typedef struct ops_attention_tuning {
    uint64_t block_bytes; /* of the scores that blocks of rows keep at a time */
    /* The time of both forms. Operations for each compute unit and ns: of the kernel of single
     * products, with heads of at most 64 elements and longer ones (0: never chosen), of that on
     * matrix units, of blocks of single products, and of blocks on matrix units. */
    double plain_ops, plain_wide_ops, matrix_ops, block_ops, block_matrix_ops;
    double key_ns;   /* of the kernel on matrix units for a key, at least */
    double block_ns; /* of blocks, at least */
} ops_attention_tuning;

/* Recurrent layers by one kernel (kernels/recurrent.c); with more, products read the weights
 * faster. */
typedef struct ops_recurrent_tuning {
    int64_t max_hidden;   /* hidden values */
    int64_t max_products; /* of a step: batch times weights */
} ops_recurrent_tuning;

typedef struct ops_tuning {
    const char *device_class;
    int64_t index32_limit;  /* counts and indices below it have 32 bits; at most 2^31 */
    bool knows_dense_views; /* kernels are told which views are contiguous */
    bool scatter_in_turn;   /* one work-item for each line of updates (kernels/scatter.c) */
    bool scatter_atomics;   /* atomic operations take less time than sorts do */
    /* Most updates along the axis for which elements look, and elements times these. */
    int64_t scatter_few, scatter_few_looks;
    ops_attention_tuning attention;
    ops_elementwise_tuning elementwise;
    ops_ranges_tuning ranges;
    ops_transposed_tuning transposed;
    ops_fold_tuning fold;
    ops_rows_tuning rows;
    ops_scan_tuning scan;
    ops_sort_tuning sort;
    ops_convolution_tuning convolution;
    ops_recurrent_tuning recurrent;
    ops_copy_tuning copy;
    ops_compile_tuning compile;
    ops_gemm_tuning gemm;
} ops_tuning;

extern const ops_tuning ops_tuning_processor, ops_tuning_gpu, ops_tuning_software;

/* The table of a device's class. */
const ops_tuning *ops_tuning_select(const hal_device_info *info);

#endif
