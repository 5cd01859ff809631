/* hal/types.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_TYPES_H
#define TESTS_ABI_FROZEN_HAL_TYPES_H

#include <hal/ir.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hal_device_kind {
    HAL_DEVICE_DISCRETE = 1,
    HAL_DEVICE_INTEGRATED = 2,
    HAL_DEVICE_VIRTUAL = 3,
    HAL_DEVICE_SOFTWARE = 4,
    HAL_DEVICE_CPU = 5
} hal_device_kind;

typedef enum hal_exactness {
    HAL_EXACT_FMA = 1,
    HAL_EXACT_DIVIDE = 2,
    HAL_EXACT_SQRT = 4,
    HAL_EXACT_DENORMALS = 8
} hal_exactness;

typedef enum hal_feature {
    HAL_FEATURE_ASYNC_COPY = 1,
    HAL_FEATURE_ATOMIC_64 = 2,
    HAL_FEATURE_MAP_DEVICE = 4,
    HAL_FEATURE_TIMESTAMPS = 8,
    HAL_FEATURE_FAST_MATH = 16,
    HAL_FEATURE_ZERO_COPY = 32,
    HAL_FEATURE_INDIRECT = 64,
    HAL_FEATURE_FILL_PATTERNS = 128
} hal_feature;

typedef struct hal_device_info {
    uint32_t size;
    uint32_t kind;
    char name[128];
    char id[64];
    char driver[64];
    char architecture[64];
    uint64_t memory_bytes;
    uint64_t max_allocation;
    uint64_t max_binding;
    uint32_t binding_alignment;
    uint32_t compute_units;
    uint32_t subgroup_width;
    uint32_t max_group_items;
    uint32_t max_group_size[3];
    uint32_t max_grid[3];
    uint32_t shared_bytes;
    uint32_t max_bindings;
    uint32_t max_vector_bytes;
    uint32_t preferred_group;
    uint32_t storage_types;
    uint32_t arithmetic_types;
    uint32_t exactness;
    uint32_t features;
    uint32_t math_f32;
    uint32_t math_f64;
    uint32_t max_queues;
    uint32_t matrix_types;
    uint32_t item_vector_bytes;
    uint32_t item_register_bytes;
    uint32_t max_loop_iterations;
    uint32_t reserved[5];
} hal_device_info;

typedef enum hal_memory_kind {
    HAL_MEMORY_DEVICE = 0,
    HAL_MEMORY_UPLOAD = 1,
    HAL_MEMORY_DOWNLOAD = 2,
    HAL_MEMORY_SHARED = 3,
    HAL_MEMORY_KIND_COUNT = 4
} hal_memory_kind;

typedef enum hal_log_level {
    HAL_LOG_ERROR = 1,
    HAL_LOG_WARN = 2,
    HAL_LOG_INFO = 3,
    HAL_LOG_DEBUG = 4
} hal_log_level;

typedef struct hal_gemm_input {
    hal_type type;
    uint8_t reserved[7];
    int64_t row_stride, column_stride, batch_stride;
} hal_gemm_input;

typedef enum hal_gemm_precision {
    HAL_GEMM_STRICT = 0,
    HAL_GEMM_ACCURATE = 1,
    HAL_GEMM_FAST = 2,
    HAL_GEMM_NORMWISE = 3
} hal_gemm_precision;

#define HAL_GEMM_MAX_INPUTS 16u
#define HAL_GEMM_MAX_LEVELS 2u

typedef struct hal_gemm_description {
    uint32_t size;
    hal_type type_a, type_b, type_c;
    uint8_t transpose_a, transpose_b;
    uint8_t beta_is_zero;
    uint8_t precision;
    uint8_t levels;
    uint8_t reserved[4];
    uint32_t batch;
    uint32_t input_count;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    hal_gemm_input inputs[HAL_GEMM_MAX_INPUTS];
    const hal_ir_kernel *epilogue;
} hal_gemm_description;

typedef enum hal_collective_kind {
    HAL_COLLECTIVE_ALL_REDUCE = 0,
    HAL_COLLECTIVE_ALL_GATHER = 1,
    HAL_COLLECTIVE_REDUCE_SCATTER = 2,
    HAL_COLLECTIVE_BROADCAST = 3,
    HAL_COLLECTIVE_REDUCE = 4,
    HAL_COLLECTIVE_ALL_TO_ALL = 5,
    HAL_COLLECTIVE_EXCHANGE = 6
} hal_collective_kind;

typedef enum hal_reduction {
    HAL_REDUCE_SUM = 0,
    HAL_REDUCE_MEAN = 1,
    HAL_REDUCE_MIN = 2,
    HAL_REDUCE_MAX = 3
} hal_reduction;

#ifdef __cplusplus
}
#endif
#endif
