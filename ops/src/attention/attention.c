/* Attention, see ops/attention.h: the checks of a call, and which form computes it. */
#include "attention.h"

#include "blocks.h"
#include "fused.h"
#include "native.h"

#include <ops/index.h>

#include "tensor/overlap.h"

#include <math.h>

ops_tensor ops_attention_all_axes(const ops_tensor *tensor)
{
    ops_tensor made = *tensor;
    const uint32_t missing = OPS_ATTENTION_RANK - tensor->rank;
    made.rank = OPS_ATTENTION_RANK;
    for (uint32_t i = 0; i < OPS_ATTENTION_RANK; i++) {
        made.shape[i] = i < missing ? 1 : tensor->shape[i - missing];
        made.stride[i] = i < missing ? 0 : tensor->stride[i - missing];
    }
    return made;
}

static hal_status refuse_shapes(const char *function, const ops_tensor *q, const ops_tensor *k,
                                const ops_tensor *v)
{
    char text[3][OPS_TEXT_BYTES];
    return ops_invalid(
        "%s: k, v: expected floats of the type of q, [..., n, d] and [..., n, e] for "
        "q [..., m, d], with at most two leading axes, those of q or of length 1, "
        "got q %s, k %s, v %s",
        function, ops_describe(q, text[0]), ops_describe(k, text[1]), ops_describe(v, text[2]));
}

static bool leading_axes_fit(const ops_tensor *x, const ops_tensor *q)
{
    return (x->shape[OPS_ATTENTION_OUTER] == q->shape[OPS_ATTENTION_OUTER] ||
            x->shape[OPS_ATTENTION_OUTER] == 1) &&
           (x->shape[OPS_ATTENTION_BATCH] == q->shape[OPS_ATTENTION_BATCH] ||
            x->shape[OPS_ATTENTION_BATCH] == 1);
}

static hal_status check_mask(const char *function, const ops_tensor *mask, hal_type type,
                             uint32_t rank, const int64_t *shape)
{
    if (mask->type != HAL_TYPE_BOOL &&
        (!hal_type_is_float(mask->type) || hal_type_of_value(mask->type) != type)) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: mask: expected bool, or floats that are %s as values, got %s",
                           function, hal_type_name(type), ops_describe(mask, text));
    }
    return ops_check_broadcast(function, "mask", mask, rank, shape);
}

hal_status ops_attention_describe(const char *function, const ops_tensor *q, const ops_tensor *k,
                                  const ops_tensor *v, const ops_tensor *mask, ops_tensor *y)
{
    const ops_tensor *all[3] = {q, k, v};
    for (uint32_t i = 0; i < 3; i++) {
        if (all[i]->rank < 2 || all[i]->rank > OPS_ATTENTION_RANK || all[i]->rank > q->rank ||
            all[i]->type != q->type || !hal_type_is_float(q->type)) {
            return refuse_shapes(function, q, k, v);
        }
    }
    const ops_tensor wide_q = ops_attention_all_axes(q), wide_k = ops_attention_all_axes(k),
                     wide_v = ops_attention_all_axes(v);
    if (wide_v.shape[OPS_ATTENTION_ROW] != wide_k.shape[OPS_ATTENTION_ROW] ||
        wide_k.shape[OPS_ATTENTION_COLUMN] != wide_q.shape[OPS_ATTENTION_COLUMN] ||
        !leading_axes_fit(&wide_k, &wide_q) || !leading_axes_fit(&wide_v, &wide_q) ||
        wide_q.shape[OPS_ATTENTION_ROW] > INT32_MAX ||
        wide_k.shape[OPS_ATTENTION_ROW] > INT32_MAX) {
        return refuse_shapes(function, q, k, v);
    }
    *y = *q;
    y->buffer = NULL;
    y->shape[q->rank - 1] = wide_k.shape[OPS_ATTENTION_ROW];
    if (mask) {
        HAL_TRY(check_mask(function, mask, hal_type_of_value(q->type), q->rank, y->shape));
    }
    y->shape[q->rank - 1] = wide_v.shape[OPS_ATTENTION_COLUMN];
    *y = ops_row_major(y);
    return HAL_OK;
}

hal_status ops_attention_check_inputs(ops_attention_call *a, const ops_attention_options *options,
                                      const ops_tensor *const inputs[3], ops_tensor *y)
{
    static const char *const names[4] = {"q", "k", "v", "options.mask"};
    a->options = (ops_attention_options)OPS_ATTENTION_OPTIONS_DEFAULT;
    if (options) {
        HAL_TRY(ops_check_size(a->function, "options", options->size, sizeof *options));
        a->options = *options;
    }
    if (a->options.form > OPS_ATTENTION_BLOCKS) {
        return ops_invalid("%s: options.form: expected an ops_attention_form_choice, got %u",
                           a->function, a->options.form);
    }
    HAL_TRY(
        ops_attention_describe(a->function, inputs[0], inputs[1], inputs[2], a->options.mask, y));
    for (uint32_t i = 0; i < 4; i++) {
        const ops_tensor *x = i < 3 ? inputs[i] : a->options.mask;
        if (x) {
            HAL_TRY(ops_check_tensor(a->context, a->function, names[i], x));
        }
    }
    a->type = y->type;
    a->accumulator = hal_type_of_value(y->type);
    a->q = ops_attention_all_axes(inputs[0]);
    a->k = ops_attention_all_axes(inputs[1]);
    a->v = ops_attention_all_axes(inputs[2]);
    a->rows = a->q.shape[OPS_ATTENTION_ROW];
    a->columns = a->k.shape[OPS_ATTENTION_ROW];
    if (a->options.scale == 0) {
        a->options.scale = 1 / sqrt((double)a->q.shape[OPS_ATTENTION_COLUMN]);
    }
    const int64_t shape[OPS_ATTENTION_RANK] = {
        a->q.shape[OPS_ATTENTION_OUTER], a->q.shape[OPS_ATTENTION_BATCH], a->rows, a->columns};
    return a->options.mask
               ? ops_tensor_broadcast(a->options.mask, OPS_ATTENTION_RANK, shape, &a->mask)
               : HAL_OK;
}

hal_status ops_attention_check_output(const ops_attention_call *a, const char *name,
                                      const ops_tensor *output, const ops_tensor *like,
                                      const ops_tensor *const *inputs, uint32_t count)
{
    char text[2][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_output(a->context, a->function, name, output));
    if (output->type != like->type || !ops_same_shape(output, like)) {
        return ops_invalid("%s: %s: expected %s, got %s", a->function, name,
                           ops_describe(like, text[0]), ops_describe(output, text[1]));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i] && ops_overlap(inputs[i], output)) {
            return ops_invalid(
                "%s: %s: expected memory that no input and no other result uses, got "
                "an overlap",
                a->function, name);
        }
    }
    return HAL_OK;
}

/* ---- Forms ---- */

/* The plugin's kernel where it has one; else the portable one where its model says that it takes
 * less time than the blocks. */
static hal_status record_form(const ops_attention_call *a)
{
    ops_attention_work work;
    const uint32_t form = a->options.form;
    if (ops_attention_native_fits(a)) {
        const hal_status status = ops_attention_native_record(a);
        if (status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
    }
    const bool has_kernel = form != OPS_ATTENTION_BLOCKS && ops_attention_fused_plan(a, &work);
    if (has_kernel && (form == OPS_ATTENTION_KERNEL || ops_attention_fused_is_faster(a, &work))) {
        return ops_attention_fused_record(a, &work);
    }
    if (form == OPS_ATTENTION_KERNEL) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED,
            "ops_attention: options.form: expected a call that one kernel computes "
            "(heads of at most %d contiguous elements, a positive scale, room for "
            "tiles), got another; use OPS_ATTENTION_ANY",
            OPS_ATTENTION_MAX_HEAD);
    }
    return ops_attention_blocks_record(a);
}

hal_status ops_attention(ops_context *context, const ops_attention_options *options,
                         const ops_tensor *q, const ops_tensor *k, const ops_tensor *v,
                         const ops_tensor *y)
{
    ops_attention_call a = {.function = "ops_attention", .context = context};
    ops_tensor result;
    if (!context || !q || !k || !v || !y) {
        return ops_invalid("ops_attention: %s: expected a pointer, got null", !context ? "context"
                                                                              : !q     ? "q"
                                                                              : !k     ? "k"
                                                                              : !v     ? "v"
                                                                                       : "y");
    }
    const ops_tensor *const inputs[4] = {q, k, v, options ? options->mask : NULL};
    HAL_TRY(ops_attention_check_inputs(&a, options, inputs, &result));
    HAL_TRY(ops_attention_check_output(&a, "y", y, &result, inputs, 4));
    a.y = ops_attention_all_axes(y);
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    if (a.columns == 0) {
        return ops_fill(context, 0, y);
    }
    return record_form(&a);
}
