/* Devices whose lanes coalesce neighbouring accesses: GPUs of every vendor.
 *
 * Fitted on an H100 and an H200 with NVIDIA's driver: `hal-bench grid`, `pointwise` and `reduce`
 * against the rate of a copy (docs/benchmarks/grid.md has the newest figures). compile: time of
 * NVIDIA's driver for fused kernels, `hal-bench start`. */
#include "tuning.h"

const ops_tuning ops_tuning_gpu = {
    .device_class = "gpu",
    .index32_limit = INT64_C(1) << 31,
    .elementwise = {.max_width = 8,
                    .min_row = 32,
                    .min_loads = 4,
                    .busy_groups = 8,
                    .subgroup_is_known = true,
                    .max_lanes = 64,
                    /* NVIDIA's driver otherwise gives gelu of f16 60 registers, with which 1,024
                     * work-items fit. */
                    .full_items = 1536,
                    .max_full_groups = 32,
                    .max_loaded_bytes = 64,
                    .min_loaded_bytes = 32},
    .transposed = {.max_elements = 4096,
                   .max_ragged_elements = 8192,
                   .min_elements = 256,
                   .box_side = 64,
                   .max_shared_bytes = 36864,
                   .many_sides = 16,
                   .max_step = 4,
                   .sector_bytes = 32,
                   .max_run = 64,
                   .idle_divisor = 7,
                   .max_staged_width = 4,
                   .computed_elements = 4},
    .fold = {.groups = OPS_FOLD_BY_LANES,
             .has_whole_groups = true,
             .min_shared_axis = 5,
             .max_chains = 4,
             .step_bytes = 64,
             .group_items = 256,
             .item_elements = 16,
             .many_elements = 32,
             .many_items = 1024,
             .min_many_axis = 512,
             .min_side = 16,
             .cache_line_words = 32,
             .usual_items = 512,
             .max_items = 1024,
             .kept_line_words = 16,
             .min_kept_line_words = 8},
    .rows = {.min_steps = 16,
             .min_slice = 8192,
             .min_sliced = 65536,
             .min_slicing_units = 1,
             .max_slices = 1024,
             .busy_items = 920,
             .full_items = 2048,
             .max_groups = 32,
             .large_group = 512,
             .max_large_kept = 32,
             .max_kept = 64,
             .cache_step = 32,
             .cache_steps = 16,
             .min_cached_loads = 64,
             .stores_by_parts = true,
             .softmax_is_online = true},
    /* Some drivers' copies reach a quarter of a kernel's rate. */
    .copy = {.min_kernel_bytes = UINT64_C(1) << 20, .min_split_bytes = UINT64_MAX},
    .compile = {.fast_ns = 4000000, .eager_plans = 16, .launch_ns = 1000, .bytes_per_ns = 500},

    /* bf16 on an H100, native with copies over portable: 5128 x 5677 x 11 1.5, x 24 1.1, x 32 0.9;
     * copies on an H100 (docs/benchmarks, 2026-11-28-regret). */
    .gemm = {.min_copied_work = 0x1p20,
             .min_copied_steps = 25,
             .copies_strict = false,
             .copy_launch_ns = 1424.5,
             .copy_bytes_per_ns = 19.305},
};
