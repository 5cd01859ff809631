/* runs the functions of hal-math-exhaustive on a device, one kernel for each. Where every bit
 * pattern is an input the kernel makes it from its place in the grid. */
#include "math/exhaustive_device.h"

#define ALL_CHUNK ((size_t)1 << 24)
#define SAMPLE_CHUNK ((size_t)1 << 20)

/* The kernel's scalars, in the order of their declaration. */
typedef struct math_scalars {
    uint32_t count;
    uint32_t first, step; /* of the bit patterns; not where samples are read */
} math_scalars;

static void forget_function(math_device *device)
{
    hal_kernel_release(device->kernel);
    hal_buffer_release(device->arguments[0]);
    hal_buffer_release(device->arguments[1]);
    hal_buffer_release(device->results);
    device->kernel = NULL;
    device->arguments[0] = device->arguments[1] = device->results = NULL;
}

static hal_type type_of(const math_case *function)
{
    return function->is_double ? HAL_TYPE_F64 : HAL_TYPE_F32;
}

/* Bit pattern `i` from the first one on. */
static hal_ir_value enumerated(hal_ir_builder *b, hal_ir_value i)
{
    hal_ir_value first = hal_ir_scalar_value(b, "first", HAL_TYPE_U32);
    hal_ir_value step = hal_ir_scalar_value(b, "step", HAL_TYPE_U32);
    return hal_ir_bitcast(b, HAL_TYPE_F32, hal_ir_add(b, first, hal_ir_mul(b, i, step)));
}

static hal_ir_value apply(hal_ir_builder *b, math_function function, hal_ir_value x, hal_ir_value y)
{
    static const uint32_t opcodes[] = {
        [MATH_EXP] = HAL_IR_EXP,     [MATH_EXP2] = HAL_IR_EXP2, [MATH_EXPM1] = HAL_IR_EXPM1,
        [MATH_LOG] = HAL_IR_LOG,     [MATH_LOG2] = HAL_IR_LOG2, [MATH_LOG1P] = HAL_IR_LOG1P,
        [MATH_SIN] = HAL_IR_SIN,     [MATH_COS] = HAL_IR_COS,   [MATH_TAN] = HAL_IR_TAN,
        [MATH_ATAN] = HAL_IR_ATAN,   [MATH_TANH] = HAL_IR_TANH, [MATH_ERF] = HAL_IR_ERF,
        [MATH_RSQRT] = HAL_IR_RSQRT, [MATH_POW] = HAL_IR_POW,
    };
    if (function == MATH_SQRT) {
        return hal_ir_sqrt(b, x);
    }
    if (function == MATH_DIVIDE) {
        return hal_ir_div(b, x, y);
    }
    return hal_ir_math(b, opcodes[function], x, y, 0);
}

/* results[i] = function(x) for i < count. */
static hal_status build(const math_device *device, hal_ir_kernel **ir)
{
    const math_case *function = device->function;
    const hal_type type = type_of(function);
    hal_ir_builder *b;
    HAL_TRY(hal_ir_builder_create(function->name, &b));
    hal_ir_memory_id x = HAL_IR_NONE, y = HAL_IR_NONE;
    hal_ir_group_size(b, device->group, 1, 1);
    if (function->is_sampled) {
        x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    }
    if (function->has_two_arguments) {
        y = hal_ir_binding(b, "y", type, HAL_ACCESS_READ);
    }
    hal_ir_memory_id results = hal_ir_binding(b, "results", type, HAL_ACCESS_WRITE);
    hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value inside = hal_ir_lt(b, i, count);
    hal_ir_value first =
        function->is_sampled ? hal_ir_load_wide(b, x, i, 0, 1, inside) : enumerated(b, i);
    hal_ir_value second =
        function->has_two_arguments ? hal_ir_load_wide(b, y, i, 0, 1, inside) : HAL_IR_NONE;
    hal_ir_store_wide(b, results, i, 0, inside, apply(b, function->function, first, second));
    const hal_status status = hal_ir_builder_finish(b, ir);
    hal_ir_builder_destroy(b);
    return status;
}

static hal_status run(math_device *device, const math_scalars *scalars, uint32_t scalar_bytes,
                      void *results)
{
    hal_range ranges[3];
    uint32_t range_count = 0;
    for (int i = 0; i < 2; i++) {
        if (device->arguments[i]) {
            ranges[range_count++] = (hal_range){device->arguments[i], 0, HAL_WHOLE};
        }
    }
    ranges[range_count++] = (hal_range){device->results, 0, HAL_WHOLE};
    const uint32_t grid[3] = {(scalars->count + device->group - 1) / device->group, 1, 1};
    HAL_TRY(hal_queue_dispatch(device->queue, device->kernel, grid, ranges, range_count, scalars,
                               scalar_bytes));
    return hal_queue_read(device->queue, device->results, 0,
                          (uint64_t)scalars->count * hal_type_size(type_of(device->function)),
                          results);
}

hal_status math_device_open(math_device *device, const char *selection)
{
    *device = (math_device){0};
    HAL_TRY(hal_device_open(selection, &device->device));
    device->info = hal_device_get_info(device->device);
    return hal_queue_create(device->device, &device->queue);
}

void math_device_close(math_device *device)
{
    forget_function(device);
    hal_queue_destroy(device->queue);
    hal_device_release(device->device);
}

bool math_device_offers(const math_device *device, const math_case *function)
{
    uint32_t types = device->info->arithmetic_types & device->info->storage_types;
    return (types & HAL_TYPE_BIT(type_of(function))) != 0;
}

hal_status math_device_prepare(math_device *device, const math_case *function)
{
    const hal_device_info *info = device->info;
    const uint64_t size = hal_type_size(type_of(function));
    forget_function(device);
    device->function = function;
    device->group = info->preferred_group;
    device->chunk = function->is_sampled ? SAMPLE_CHUNK : ALL_CHUNK;
    if (device->chunk > info->max_binding / size) {
        device->chunk = (size_t)(info->max_binding / size);
    }
    if (device->chunk > (uint64_t)info->max_grid[0] * device->group) {
        device->chunk = (size_t)info->max_grid[0] * device->group;
    }
    hal_ir_kernel *ir;
    HAL_TRY(build(device, &ir));
    hal_status status = hal_kernel_create(device->device, ir, &device->kernel);
    hal_ir_kernel_destroy(ir);
    const int argument_count = !function->is_sampled ? 0 : function->has_two_arguments ? 2 : 1;
    for (int i = 0; i < argument_count && status == HAL_OK; i++) {
        status = hal_buffer_create(device->device, HAL_MEMORY_DEVICE, device->chunk * size,
                                   &device->arguments[i]);
    }
    if (status == HAL_OK) {
        status = hal_buffer_create(device->device, HAL_MEMORY_DEVICE, device->chunk * size,
                                   &device->results);
    }
    return status;
}

hal_status math_device_run_all(math_device *device, uint64_t first, uint64_t step, size_t count,
                               void *results)
{
    const math_scalars scalars = {(uint32_t)count, (uint32_t)(first * step), (uint32_t)step};
    return run(device, &scalars, sizeof scalars, results);
}

hal_status math_device_run_samples(math_device *device, const void *x, const void *y, size_t count,
                                   void *results)
{
    const math_scalars scalars = {(uint32_t)count, 0, 0};
    const uint64_t bytes = (uint64_t)count * hal_type_size(type_of(device->function));
    hal_status status = hal_queue_write(device->queue, device->arguments[0], 0, x, bytes);
    if (status == HAL_OK && device->arguments[1]) {
        status = hal_queue_write(device->queue, device->arguments[1], 0, y, bytes);
    }
    return status != HAL_OK ? status : run(device, &scalars, sizeof scalars.count, results);
}
