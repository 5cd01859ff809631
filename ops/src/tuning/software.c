/* Processors behind a GPU's interface: lanes are elements of a processor's vectors, and a compiler
 * that takes seconds for long unrolled kernels is between.
 *
 * Fitted on llvmpipe with AVX-512: `hal-bench grid` and `reduce` on lavapipe. Fields
 * that no measurement of it decided have the values of gpu.c or processor.c. */
#include "tuning.h"

#include "gemm.inl"

const ops_tuning ops_tuning_software = {
    .device_class = "software gpu",
    .index32_limit = INT64_C(1) << 31,
    .attention_bytes = UINT64_C(4) << 20,
    .elementwise = {.max_width = 8,
                    .min_row = 32,
                    .min_loads = 4,
                    .busy_groups = 8,
                    .evens_lines = true,
                    .max_lanes = 64},
    .fold = {.groups = OPS_FOLD_BY_WIDE_VECTORS,
             .has_whole_groups = true,
             .min_shared_axis = 64,
             .max_chains = 4,
             .group_items = 256,
             .vector_items = 16,
             .row_items = 8,
             .min_shared_steps = 512,
             .min_row = 16,
             .min_narrow = 4096,
             .min_narrow_steps = 16,
             .min_along = 32,
             .item_elements = 4},
    .rows = {.min_steps = 16,
             .min_slice = 8192,
             .min_sliced = 65536,
             .min_slicing_units = 1,
             .max_slices = 1024,
             .busy_items = 920,
             .full_items = 2048,
             .max_groups = 32,
             .max_large_kept = 8,
             .max_kept = 8,
             .rest_by_chunks = true,
             .stores_costly = true},
    .scan = {.unit_items = 64, .min_part_length = 256},
    .copy = {.min_kernel_bytes = UINT64_MAX, .min_split_bytes = UINT64_MAX},
    .compile = {.fast_ns = 4000000,
                .expected_ns = 30000000,
                .eager_plans = 16,
                .launch_ns = 1000,
                .bytes_per_ns = 15},
    /* Levels of Strassen's algorithm: the ratios of an H100 (docs/dense.md). */
    .gemm = {OPS_GEMM_PORTABLE_TUNING,
             /* bf16 on an H100, native with copies over portable: 5128 x 5677 x 11 1.5, x 24 1.1,
              * x 32 0.9 (docs/benchmarks, 2026-11-28-regret). */
             .min_copied_work = 0x1p20, .min_copied_steps = 25, .copies_strict = false,
             .copy_launch_ns = 1424.5, .copy_bytes_per_ns = 19.305, .groups_per_unit = 4,
             /* 16 vectors of 8 floats, since compilers prefer half of the widest vectors. */
             .vectorised = {.block_m = 128,
                            .block_n = 16,
                            .block_k = 4,
                            .thread_m = 8,
                            .thread_n = 16,
                            .strip_m = 8,
                            .strip_n = 8,
                            .intra_group_split_k = 1},
             .wide_n = 256, .wide_m = 16, .tall_n = 64, .tall_m = 64,
             .normwise = {.ops_per_byte = 12,
                          .units_ops_per_byte = 40,
                          .ops_per_launch = 2e8,
                          .peel_passes = 7,
                          .min_block = 1024,
                          .min_gain = 1.03}},
};
