/* The context, and the checks of tensors that every family makes before it records. */
#ifndef OPS_SRC_TENSOR_CONTEXT_H
#define OPS_SRC_TENSOR_CONTEXT_H

#include "kernel_table.h"
#include "rounding.h"
#include "scalars.h"
#include "scratch.h"
#include "shape.h"

#include "tuning/tuning.h"

#include <ops/pointwise.h>

#include <stdbool.h>

/* State that a higher layer keeps with a context, as the first member of its structure. */
typedef struct ops_extension {
    void (*destroy)(struct ops_extension *extension);
} ops_extension;

/* Kernels that are being compiled in the background, see compile_ahead.h. */
#define OPS_AHEAD_KERNELS 64u

typedef struct ops_ahead_kernel {
    hal_kernel *kernel; /* one reference */
    uint64_t hash[2];   /* of its key */
    uint64_t plan[2];   /* of the plan that it was requested for; 0: of none */
    bool is_requested;  /* inserted when it is compiled: others compute meanwhile */
    bool is_deferred;   /* they are single kernels of that plan, else general ones */
} ops_ahead_kernel;

typedef struct ops_compile_ahead {
    uint32_t count, requested; /* of all kernels, those that are requested */
    ops_ahead_kernel kernels[OPS_AHEAD_KERNELS];
} ops_compile_ahead;

/* How products by quantised weights of few rows are computed, for measurements. */
typedef struct ops_quantised_way {
    uint8_t without_units, copied, units; /* units: wherever they can be */
    uint8_t tiles, warps_n, warps;        /* of the kernel for matrix units; 0: the least cost */
    uint8_t ahead; /* turns, up to OPS_GEMM_QUANTISED_AHEAD; 0: by registers */
} ops_quantised_way;

struct ops_context {
    hal_queue *queue;
    hal_device *device;
    const hal_device_info *info;
    const ops_tuning *tuning; /* of the device's class */
    ops_kernel_table kernels;
    ops_expression *unary[OPS_UNARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *binary[OPS_BINARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *where[HAL_TYPE_COUNT];
    ops_expression *cast[HAL_TYPE_COUNT][HAL_TYPE_COUNT];
    ops_scratch scratch;
    uint32_t convolution;        /* an ops_convolution_way */
    uint32_t scatter;            /* an ops_scatter_order */
    ops_quantised_way quantised; /* of few rows */
    struct ops_returns *returns; /* of exports to streams; null: none yet */
    void *plans;                 /* of gemm/cache.c, freed with the context; null: none yet */
    struct ops_plan_recorder *recorder;
    struct ops_compile_policy *compile_policy;
    ops_compile_ahead ahead;
    ops_extension *extension; /* of the array layer; null until the first array */
};

/* ---- Tensors ---- */

/* Checks the size that a caller wrote into a structure of options. */
hal_status ops_check_size(const char *function, const char *argument, uint32_t size,
                          uint32_t expected);

/* Checks that a type, rank and shape are such; gives their bytes, which 63 bits can count. */
hal_status ops_check_shape(const char *function, hal_type type, uint32_t rank, const int64_t *shape,
                           uint64_t *bytes);

/* Checks that a tensor belongs to the context's device and is within its buffer. `function` and
 * `argument` name it in the message. */
hal_status ops_check_tensor(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor);

/* The same for a tensor that is written: no two of its elements may share memory. */
hal_status ops_check_output(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor);

/* Checks that a tensor can be broadcast to a shape. */
hal_status ops_check_broadcast(const char *function, const char *argument, const ops_tensor *tensor,
                               uint32_t rank, const int64_t *shape);

/* Whether the device's memory holds a type; the error names function and argument. */
hal_status ops_check_storage(const ops_context *context, const char *function, const char *argument,
                             hal_type type);

#endif
