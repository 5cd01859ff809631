/* What kernels of recurrent layers share, see recurrent.h. */
#include "recurrent.h"

#include "index_task.h"
#include "tensor/dispatch.h"
#include "tensor/indexing.h"
#include "tensor/loop_limit.h"
#include "tensor/shape.h"

#include <ops/recurrent.h>

#include <string.h>

/* ---- Emission ---- */

hal_ir_value ops_recurrent_constant(const ops_recurrent_kernel *k, uint32_t value)
{
    return hal_ir_u32(k->b, value);
}

hal_ir_value ops_recurrent_number(const ops_recurrent_kernel *k, double value)
{
    return hal_ir_number(k->b, (hal_type)k->call->form.type, value);
}

ops_recurrent_kernel ops_recurrent_begin(hal_ir_builder *b, const ops_recurrent_call *call)
{
    ops_recurrent_kernel k = {.b = b, .call = call};
    const uint32_t hidden = call->form.hidden;
    ops_declare_bindings(b, &call->bindings);
    k.steps = ops_scalar(b, "steps", 0, 0, HAL_TYPE_U32);
    k.batch = ops_scalar(b, "batch", 0, 0, HAL_TYPE_U32);
    for (uint32_t i = 0; i < OPS_RECURRENT_TENSORS; i++) {
        k.base[i] = ops_scalar(b, "base", i, 0, HAL_TYPE_U32);
        for (uint32_t axis = 0; axis < 2 && (call->strided >> i & 1); axis++) {
            k.stride[i][axis] = ops_scalar(b, "stride", i, axis, HAL_TYPE_U32);
        }
    }
    hal_ir_group_size(b, call->form.gates * hidden, 1, 1);
    k.item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    k.row = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    k.gate = hal_ir_div(b, k.item, ops_recurrent_constant(&k, hidden));
    k.j = hal_ir_sub(b, k.item, hal_ir_mul(b, k.gate, ops_recurrent_constant(&k, hidden)));
    k.is_first = hal_ir_lt(b, k.item, ops_recurrent_constant(&k, hidden));
    return k;
}

hal_ir_value ops_recurrent_index(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                                 uint32_t width, hal_ir_value column)
{
    hal_ir_builder *b = k->b;
    const hal_ir_value line =
        step == HAL_IR_NONE ? k->row : hal_ir_add(b, hal_ir_mul(b, step, k->batch), k->row);
    const hal_ir_value before = hal_ir_mul(b, line, ops_recurrent_constant(k, width));
    return hal_ir_add(b, k->base[t], hal_ir_add(b, before, column));
}

hal_ir_value ops_recurrent_load(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                                uint32_t width, hal_ir_value column)
{
    return k->call->tensors[t] ? hal_ir_load(k->b, k->call->slots[t],
                                             ops_recurrent_index(k, t, step, width, column))
                               : ops_recurrent_number(k, 0);
}

void ops_recurrent_store(const ops_recurrent_kernel *k, uint32_t t, hal_ir_value step,
                         hal_ir_value value)
{
    const hal_ir_value index = ops_recurrent_index(k, t, step, k->call->form.hidden, k->j);
    hal_ir_store_wide(k->b, k->call->slots[t], index, 0, k->is_first, value);
}

hal_ir_value ops_recurrent_initial(const ops_recurrent_kernel *k, uint32_t t)
{
    hal_ir_builder *b = k->b;
    const hal_ir_value row = hal_ir_mul(b, k->row, k->stride[t][0]);
    const hal_ir_value column = hal_ir_mul(b, k->j, k->stride[t][1]);
    return hal_ir_load(b, k->call->slots[t], hal_ir_add(b, k->base[t], hal_ir_add(b, row, column)));
}

/* Products in a loop's iteration: a divisor of `count`, for loads in flight. */
static uint32_t unroll_of(uint32_t count)
{
    return count % 8 == 0 ? 8 : count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
}

hal_ir_value ops_recurrent_dot(const ops_recurrent_kernel *k, hal_ir_memory_id shared,
                               hal_ir_value first, uint32_t w, hal_ir_value at, uint32_t stride)
{
    hal_ir_builder *b = k->b;
    const uint32_t hidden = k->call->form.hidden, unroll = unroll_of(hidden);
    const hal_ir_value sum = hal_ir_var(b, ops_recurrent_number(k, 0));
    const hal_ir_value i =
        hal_ir_for(b, ops_recurrent_constant(k, 0), ops_recurrent_constant(k, hidden),
                   ops_recurrent_constant(k, unroll));
    const hal_ir_value x_at = hal_ir_add(b, first, i);
    const hal_ir_value w_at =
        hal_ir_add(b, at, hal_ir_mul(b, i, ops_recurrent_constant(k, stride)));
    hal_ir_value x[8], y[8], total = hal_ir_get(b, sum);
    for (uint32_t u = 0; u < unroll; u++) {
        y[u] = hal_ir_load_wide(b, k->call->slots[w], w_at, (int32_t)(u * stride), 1, HAL_IR_NONE);
        x[u] = hal_ir_load_wide(b, shared, x_at, (int32_t)u, 1, HAL_IR_NONE);
    }
    for (uint32_t u = 0; u < unroll; u++) {
        total = hal_ir_fma(b, x[u], y[u], total);
    }
    hal_ir_set(b, sum, total);
    hal_ir_end(b);
    return hal_ir_get(b, sum);
}

hal_ir_value ops_recurrent_back(const ops_recurrent_kernel *k, hal_ir_memory_id sums,
                                hal_ir_memory_id parts, uint32_t w)
{
    hal_ir_builder *b = k->b;
    const uint32_t hidden = k->call->form.hidden;
    const hal_ir_value first = hal_ir_mul(b, k->gate, ops_recurrent_constant(k, hidden));
    const hal_ir_value line = hal_ir_mul(b, first, ops_recurrent_constant(k, hidden));
    const hal_ir_value at = hal_ir_add(b, k->base[w], hal_ir_add(b, line, k->j));
    hal_ir_store(b, parts, k->item, ops_recurrent_dot(k, sums, first, w, at, hidden));
    hal_ir_barrier(b);
    hal_ir_value total = hal_ir_load(b, parts, k->j);
    for (uint32_t g = 1; g < k->call->form.gates; g++) {
        const hal_ir_value part =
            hal_ir_load_wide(b, parts, k->j, (int32_t)(g * hidden), 1, HAL_IR_NONE);
        total = hal_ir_add(b, total, part);
    }
    return total;
}

hal_ir_value ops_recurrent_sigmoid(const ops_recurrent_kernel *k, hal_ir_value x)
{
    hal_ir_builder *b = k->b;
    const hal_ir_value one = ops_recurrent_number(k, 1);
    const hal_ir_value e = hal_ir_math(b, HAL_IR_EXP, hal_ir_neg(b, x), HAL_IR_NONE, 0);
    return hal_ir_div(b, one, hal_ir_add(b, one, e));
}

hal_ir_value ops_recurrent_tanh(const ops_recurrent_kernel *k, hal_ir_value x)
{
    return hal_ir_math(k->b, HAL_IR_TANH, x, HAL_IR_NONE, 0);
}

hal_ir_value ops_recurrent_sigmoid_slope(const ops_recurrent_kernel *k, hal_ir_value y)
{
    return hal_ir_mul(k->b, y, hal_ir_sub(k->b, ops_recurrent_number(k, 1), y));
}

hal_ir_value ops_recurrent_tanh_slope(const ops_recurrent_kernel *k, hal_ir_value y)
{
    return hal_ir_sub(k->b, ops_recurrent_number(k, 1), hal_ir_mul(k->b, y, y));
}

hal_ir_value ops_recurrent_select(const ops_recurrent_kernel *k, const hal_ir_value *of_gate)
{
    hal_ir_builder *b = k->b;
    const uint32_t last = k->call->form.gates - 1;
    hal_ir_value own = of_gate[last];
    for (uint32_t g = last; g-- > 0;) {
        const hal_ir_value is_own = hal_ir_eq(b, k->gate, ops_recurrent_constant(k, g));
        own = hal_ir_select(b, is_own, of_gate[g], own);
    }
    return own;
}

hal_ir_value ops_recurrent_step(const ops_recurrent_kernel *k, hal_ir_value i)
{
    hal_ir_builder *b = k->b;
    const hal_ir_value last = hal_ir_sub(b, k->steps, ops_recurrent_constant(k, 1));
    return k->call->form.is_reversed ? hal_ir_sub(b, last, i) : i;
}

hal_ir_value ops_recurrent_state(const ops_recurrent_kernel *k, hal_ir_value step, bool is_after)
{
    const bool is_next = is_after != (k->call->form.is_reversed != 0);
    return is_next ? hal_ir_add(k->b, step, ops_recurrent_constant(k, 1)) : step;
}

hal_ir_value ops_recurrent_first_state(const ops_recurrent_kernel *k)
{
    return k->call->form.is_reversed ? k->steps : ops_recurrent_constant(k, 0);
}

/* ---- Checks and recording ---- */

hal_status ops_recurrent_check_layer(const ops_context *context, uint32_t size, uint32_t expected,
                                     uint32_t is_reversed, const ops_tensor *gates,
                                     ops_recurrent_call *call)
{
    char text[OPS_TEXT_BYTES];
    HAL_TRY(ops_check_size(call->function, "layer", size, expected));
    HAL_TRY(ops_check_tensor(context, call->function, "layer.gates", gates));
    if (gates->rank != 3 || gates->shape[2] % 4 != 0 || gates->shape[2] > INT32_MAX / 4 ||
        (gates->type != HAL_TYPE_F32 && gates->type != HAL_TYPE_F64)) {
        return ops_invalid("%s: layer.gates: expected f32 or f64 [steps, batch, 4 hidden], got %s",
                           call->function, ops_describe(gates, text));
    }
    call->steps = gates->shape[0];
    call->batch = gates->shape[1];
    call->form.type = gates->type;
    call->form.hidden = (uint32_t)(gates->shape[2] / 4);
    call->form.is_reversed = is_reversed != 0;
    return HAL_OK;
}

hal_status ops_recurrent_add(const ops_context *context, ops_recurrent_call *call, uint32_t t,
                             const char *name, const ops_tensor *tensor, uint32_t rank,
                             const int64_t *shape)
{
    char text[2][OPS_TEXT_BYTES];
    const bool is_strided = call->strided >> t & 1;
    if (!tensor) {
        return HAL_OK;
    }
    HAL_TRY(t >= call->first_output ? ops_check_output(context, call->function, name, tensor)
                                    : ops_check_tensor(context, call->function, name, tensor));
    ops_tensor expected = *tensor;
    expected.type = (hal_type)call->form.type;
    expected.rank = rank;
    memcpy(expected.shape, shape, rank * sizeof *shape);
    if (tensor->type != expected.type || !ops_same_shape(tensor, &expected) ||
        (!is_strided && !ops_tensor_is_contiguous(tensor))) {
        return ops_invalid("%s: %s: expected %s%s, got %s", call->function, name,
                           is_strided ? "" : "a contiguous ", ops_describe(&expected, text[0]),
                           ops_describe(tensor, text[1]));
    }
    int64_t first, end;
    ops_span(tensor, &first, &end);
    if (end - first > INT32_MAX) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: %s: expected a span of at most 2^31 - 1 elements, got %s",
                              call->function, name, ops_describe(tensor, text[0]));
    }
    for (uint32_t i = 0; i < t && t >= call->first_output; i++) {
        if (call->tensors[i]) {
            HAL_TRY(ops_check_apart(call->function, name, call->tensors[i], tensor));
        }
    }
    call->tensors[t] = tensor;
    return HAL_OK;
}

static hal_status check_device(const ops_context *context, const ops_recurrent_call *call)
{
    const hal_device_info *info = context->info;
    const uint64_t items = (uint64_t)call->form.gates * call->form.hidden;
    const uint64_t bytes = 2 * items * hal_type_size((hal_type)call->form.type);
    const int64_t steps = ops_loop_limit(context, call->form.hidden + 1, 0);
    if (items > info->max_group_items || items > info->max_group_size[0] ||
        bytes > info->shared_bytes) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: layer: expected %u times the hidden values to fit a group of "
                              "this device with %u work-items, got %u hidden values",
                              call->function, call->form.gates, info->max_group_items,
                              call->form.hidden);
    }
    if (call->steps > steps) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: layer: expected at most %lld steps for loops of this device, "
                              "got %lld",
                              call->function, (long long)steps, (long long)call->steps);
    }
    return HAL_OK;
}

hal_status ops_recurrent_record(ops_context *context, ops_recurrent_call *call)
{
    if (call->form.hidden == 0 || call->batch == 0) {
        return HAL_OK;
    }
    HAL_TRY(check_device(context, call));
    for (uint32_t i = 0; i < OPS_RECURRENT_TENSORS; i++) {
        if (call->tensors[i]) {
            const uint32_t access = i < call->first_output ? HAL_ACCESS_READ : HAL_ACCESS_WRITE;
            call->slots[i] = (uint8_t)ops_bind(context, &call->bindings, call->tensors[i], access);
            call->form.present |= 1u << i;
        }
    }
    ops_bindings_merge(&call->bindings, call->slots, OPS_RECURRENT_TENSORS);
    const uint32_t grid[3] = {(uint32_t)call->batch, 1, 1};
    if (call->batch > context->info->max_grid[0]) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: layer: expected a batch of at most %u, got %lld", call->function,
                              context->info->max_grid[0], (long long)call->batch);
    }
    ops_cache_key key;
    ops_cache_key_begin(&key, call->family);
    ops_cache_key_append(&key, &call->form, sizeof call->form);
    ops_bindings_key(&call->bindings, call->slots, OPS_RECURRENT_TENSORS, &key);
    ops_entry *entry;
    HAL_TRY(ops_cache_get(context, &key, call->kernel, call->emit, call, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_put_u32(&block, (uint32_t)call->steps);
    ops_put_u32(&block, (uint32_t)call->batch);
    for (uint32_t i = 0; i < OPS_RECURRENT_TENSORS; i++) {
        const ops_tensor *tensor = call->tensors[i];
        ops_put_u32(&block,
                    tensor ? (uint32_t)ops_base(&call->bindings, call->slots[i], tensor) : 0);
        for (uint32_t axis = 0; axis < 2 && (call->strided >> i & 1); axis++) {
            ops_put_u32(&block, tensor ? (uint32_t)tensor->stride[axis] : 0);
        }
    }
    return ops_dispatch(context, entry, grid, &call->bindings, &block);
}

int ops_recurrent_is_faster(const ops_context *context, uint32_t gates, int64_t batch,
                            int64_t hidden)
{
    const ops_recurrent_tuning *tuning = &context->tuning->recurrent;
    const int64_t items = context->info->max_group_items;
    return OPS_RECURRENT_TENSORS <= context->info->max_bindings && hidden > 0 &&
           hidden <= tuning->max_hidden && gates * hidden <= items && batch > 0 &&
           batch <= tuning->max_products / (gates * hidden * hidden) &&
           batch <= context->info->max_grid[0];
}
