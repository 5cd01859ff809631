/* The gradients of attention, see ops/attention.h: delta by a reduction, then blocks of rows or the
 * kernels of backward.c. */
#include "attention.h"
#include "fused.h"
#include "gradient_blocks.h"

#include <ops/index.h>
#include <ops/reduce.h>

#include "tensor/allocation.h"
#include "tensor/expression.h"

enum { DQ, DK, DV, GRADIENTS };

static hal_ir_value product_emit(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    (void)user;
    return hal_ir_mul(b, in[0], in[1]);
}

/* delta = the sum of dy y of each row. */
static hal_status delta_make(const ops_attention_call *a)
{
    const hal_type types[2] = {a->accumulator, a->accumulator};
    ops_expression *product;
    HAL_TRY(ops_expression_make("product", types, 2, product_emit, NULL, &product));
    const ops_reduce_options options = {.size = sizeof options,
                                        .prologue = product,
                                        .prologue_inputs = &a->dy,
                                        .prologue_input_count = 1};
    const hal_status status =
        ops_reduce(a->context, OPS_REDUCE_SUM, OPS_ATTENTION_COLUMN, &a->y, &options, &a->delta);
    ops_expression_destroy(product);
    return status;
}

/* A number for each query. */
static hal_status numbers_make(const ops_attention_call *a, ops_tensor *numbers)
{
    const int64_t shape[OPS_ATTENTION_RANK] = {a->q.shape[OPS_ATTENTION_OUTER],
                                               a->q.shape[OPS_ATTENTION_BATCH], a->rows, 1};
    *numbers = (ops_tensor){.type = a->accumulator, .rank = OPS_ATTENTION_RANK};
    uint64_t count = 1;
    for (uint32_t i = OPS_ATTENTION_RANK; i-- > 0;) {
        numbers->shape[i] = shape[i];
        numbers->stride[i] = (int64_t)count;
        count *= (uint64_t)shape[i];
    }
    return ops_buffer_create(a->context, count * hal_type_size(a->accumulator), &numbers->buffer);
}

/* A copy of a tensor whose rows are not contiguous takes its place; made: its memory. */
static hal_status contiguous_make(ops_context *context, ops_tensor *x, ops_tensor *made)
{
    if (x->stride[OPS_ATTENTION_COLUMN] == 1 || x->shape[OPS_ATTENTION_COLUMN] == 1) {
        return HAL_OK;
    }
    *made = ops_row_major(x);
    HAL_TRY(ops_buffer_create(context,
                              (uint64_t)ops_tensor_get_element_count(x) * hal_type_size(x->type),
                              &made->buffer));
    HAL_TRY(ops_copy(context, x, made));
    *x = *made;
    return HAL_OK;
}

/* Records the kernels of a call whose inputs have contiguous rows. */
static hal_status kernels_record(const ops_attention_call *a)
{
    ops_attention_work works[OPS_ATTENTION_GRADIENT_KERNELS];
    const uint32_t count = ops_attention_gradients_plan(a, works);
    hal_status status = count > 0 ? HAL_OK : HAL_ERROR_UNSUPPORTED;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        status = ops_attention_fused_record(a, &works[i]);
    }
    return status;
}

/* By kernels; UNSUPPORTED where they do not compute the call, which is then as it was. */
static hal_status kernels_try(ops_attention_call *a)
{
    ops_tensor *const inputs[4] = {&a->q, &a->k, &a->v, &a->dy};
    ops_tensor given[4], made[4] = {{0}, {0}, {0}, {0}};
    hal_status status = numbers_make(a, &a->norm);
    for (uint32_t i = 0; i < 4; i++) {
        given[i] = *inputs[i];
        status = status == HAL_OK ? contiguous_make(a->context, inputs[i], &made[i]) : status;
    }
    status = status == HAL_OK ? kernels_record(a) : status;
    for (uint32_t i = 0; i < 4; i++) {
        *inputs[i] = given[i];
        hal_buffer_release(made[i].buffer);
    }
    hal_buffer_release(a->norm.buffer);
    return status;
}

/* Blocks where the device's table has no time of kernels, and where no kernel computes the call. */
static hal_status form_record(ops_attention_call *a)
{
    const bool is_kernel = a->options.form == OPS_ATTENTION_KERNEL;
    const bool has_kernels = a->context->tuning->attention.plain_ops > 0;
    if (is_kernel || (a->options.form == OPS_ATTENTION_ANY && has_kernels)) {
        const hal_status status = kernels_try(a);
        if (status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
    }
    return is_kernel ? hal_status_set(
                           HAL_ERROR_UNSUPPORTED,
                           "%s: options.form: expected a call that kernels compute (heads of at "
                           "most %d elements, a positive scale, gradients with contiguous rows, "
                           "room for tiles), got another; use OPS_ATTENTION_ANY",
                           a->function, OPS_ATTENTION_MAX_HEAD)
                     : ops_attention_gradient_blocks_record(a);
}

static hal_status gradients_record(ops_attention_call *a)
{
    hal_status status = numbers_make(a, &a->delta);
    status = status == HAL_OK ? delta_make(a) : status;
    status = status == HAL_OK ? form_record(a) : status;
    hal_buffer_release(a->delta.buffer);
    return status;
}

/* Each result has the shape of an input, and memory of its own. */
static hal_status check_results(ops_attention_call *a, const ops_tensor *const inputs[6],
                                const ops_tensor *const gradients[GRADIENTS])
{
    static const char *const names[GRADIENTS] = {"dq", "dk", "dv"};
    const ops_tensor *all[6 + GRADIENTS];
    for (uint32_t i = 0; i < 6; i++) {
        all[i] = inputs[i];
    }
    for (uint32_t i = 0; i < GRADIENTS; i++) {
        HAL_TRY(ops_attention_check_output(a, names[i], gradients[i], inputs[i], all, 6 + i));
        all[6 + i] = gradients[i];
    }
    a->dq = ops_attention_all_axes(gradients[DQ]);
    a->dk = ops_attention_all_axes(gradients[DK]);
    a->dv = ops_attention_all_axes(gradients[DV]);
    return HAL_OK;
}

/* y and dy have the shape of the result. */
static hal_status check_given(ops_attention_call *a, const ops_tensor *y, const ops_tensor *dy,
                              const ops_tensor *result)
{
    const ops_tensor *const given[2] = {y, dy};
    for (uint32_t i = 0; i < 2; i++) {
        char text[2][OPS_TEXT_BYTES];
        const char *name = i ? "dy" : "y";
        HAL_TRY(ops_check_tensor(a->context, a->function, name, given[i]));
        if (given[i]->type != result->type || !ops_same_shape(given[i], result)) {
            return ops_invalid("%s: %s: expected %s, got %s", a->function, name,
                               ops_describe(result, text[0]), ops_describe(given[i], text[1]));
        }
    }
    a->y = ops_attention_all_axes(y);
    a->dy = ops_attention_all_axes(dy);
    return HAL_OK;
}

hal_status ops_attention_gradients(ops_context *context, const ops_attention_options *options,
                                   const ops_tensor *const inputs[3], const ops_tensor *y,
                                   const ops_tensor *dy, const ops_tensor *const gradients[3])
{
    ops_attention_call a = {.function = "ops_attention_gradients", .context = context};
    ops_tensor result;
    bool has_all = context && inputs && y && dy && gradients;
    for (uint32_t i = 0; has_all && i < 3; i++) {
        has_all = inputs[i] && gradients[i];
    }
    if (!has_all) {
        return ops_invalid("%s: expected a context, tensors and results, got null", a.function);
    }
    HAL_TRY(ops_attention_check_inputs(&a, options, inputs, &result));
    HAL_TRY(check_given(&a, y, dy, &result));
    const ops_tensor *const all[6] = {inputs[0], inputs[1], inputs[2], a.options.mask, y, dy};
    HAL_TRY(check_results(&a, all, gradients));
    if (ops_tensor_get_element_count(y) > 0 && a.columns > 0) {
        return gradients_record(&a);
    }
    for (uint32_t i = 0; i < 3; i++) {
        HAL_TRY(ops_fill(context, 0, gradients[i]));
    }
    return HAL_OK;
}
