/* Recording of fusion plans, see fusion_record.h. */
#include "fusion_record.h"

#include "attention_match.h"
#include "matmul_record.h"

#include "gemm/windows.h"
#include "kernels/depthwise_weights.h"
#include "kernels/direct.h"
#include "kernels/fold.h"
#include "kernels/pool.h"
#include "kernels/reduce.h"
#include "kernels/resize.h"
#include "kernels/scatter_atomic.h"

#include <ops/index.h>
#include <ops/windows.h>

static ops_tensor plan_output(const ops_fusion_plan *plan, uint32_t i, hal_buffer *const *buffers)
{
    const ops_array *output = plan->outputs[i];
    ops_tensor tensor = output->view;
    /* The source of a view has the elements of the root, in their order, but another shape. */
    if (!plan->anchor && !plan->rows && plan->epilogue.node_frames[plan->epilogue.outputs[i]] > 0) {
        tensor = plan->roots[0]->view;
        tensor.type = output->view.type;
    }
    tensor.buffer = buffers[i];
    return tensor;
}

/* The views of inputs `first` to `end` - 1. */
static void plan_views(const ops_fusion_plan *plan, uint32_t first, uint32_t end, ops_tensor *views)
{
    for (uint32_t i = first; i < end; i++) {
        views[i - first] = ops_fusion_plan_input(plan, i);
    }
}

/* A copy alone, for ops_copy, which moves the bits of types that kernels convert: a conversion may
 * change those of a NaN. Other types GPUs copy as fast by a kernel; on processors ops_copy leaves
 * contiguous memory to the queue. */
static bool plan_is_copy(const ops_fusion_plan *plan)
{
    const ops_array *node = plan->epilogue.nodes[0];
    return (plan->context->tuning->copy.copies_alone ||
            hal_type_is_narrow_float(node->view.type)) &&
           plan->epilogue.node_count == 1 && node->operation == OPS_OPERATION_UNARY &&
           node->function == OPS_IDENTITY;
}

static hal_status record_elementwise(const ops_fusion_plan *plan, hal_buffer *const *buffers)
{
    ops_tensor inputs[OPS_CLUSTER_LEAVES], outputs[OPS_MAX_OUTPUTS];
    ops_expression *expression;
    plan_views(plan, 0, plan->input_count, inputs);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        outputs[i] = plan_output(plan, i, buffers);
    }
    if (plan_is_copy(plan)) {
        ops_tensor x;
        HAL_TRY(ops_tensor_broadcast(&inputs[0], outputs[0].rank, outputs[0].shape, &x));
        return ops_copy(plan->context, &x, &outputs[0]);
    }
    HAL_TRY(ops_fusion_cluster_make_expression(&plan->epilogue, 0, 1, &expression));
    hal_status status = ops_pointwise(plan->context, expression, inputs, plan->input_count, outputs,
                                      plan->output_count);
    ops_expression_destroy(expression);
    return status;
}

/* Adds node number `index` of rows to a program. Returns its value. */
static uint8_t program_add_node(ops_row_program *program, const ops_fusion_cluster *cluster,
                                uint32_t index, const uint8_t *operands)
{
    const ops_array *node = cluster->nodes[index];
    const uint64_t only_stores = (uint64_t)ops_fusion_cluster_only_stores(cluster, index);
    const uint64_t key[2] = {OPS_ROW_KEY_NODE, node->operation | (uint64_t)node->function << 8 |
                                                   (uint64_t)node->view.type << 16 |
                                                   only_stores << 24};
    if (node->operation != OPS_OPERATION_REDUCE) {
        return ops_row_map(
            program, only_stores ? ops_fusion_cluster_emit_stored : ops_fusion_cluster_emit_node,
            node, key, operands, node->operand_count);
    }
    const hal_type type = hal_type_of_value(node->operands[0]->view.type);
    uint8_t value = ops_row_reduce(program, node->function, type, operands, 1);
    if (ops_fold_finds_place(node->function)) {
        value = ops_row_index(program, hal_type_of_value(node->view.type),
                              ops_row_place(program, value));
    }
    return ops_row_map(program, ops_fusion_cluster_emit_node, node, key, &value, 1);
}

/* A tensor of rows' results with the reduced axis, of length 1. It has the axes of `shape` in their
 * order, except for some of length 1. */
static ops_tensor with_row_axis(const ops_tensor *tensor, const ops_tensor *shape, uint32_t axis)
{
    ops_tensor made = *tensor;
    made.rank = shape->rank;
    for (uint32_t i = 0, k = 0; i < made.rank; i++) {
        made.shape[i] = i == axis ? 1 : shape->shape[i];
        made.stride[i] = 0;
        while (made.shape[i] != 1 && tensor->shape[k] == 1) {
            k++;
        }
        if (made.shape[i] != 1) {
            made.stride[i] = tensor->stride[k++];
        }
    }
    return made;
}

/* The program, and the tensors of inputs and outputs. */
typedef struct rows_pass {
    ops_row_program program;
    ops_tensor tensors[OPS_CLUSTER_LEAVES + OPS_MAX_OUTPUTS];
} rows_pass;

static hal_status rows_pass_record(const ops_fusion_plan *plan, hal_buffer *const *buffers,
                                   rows_pass *pass)
{
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const ops_tensor *shape = &plan->rows->operands[0]->view;
    const uint32_t axis = plan->rows->axis;
    ops_tensor *tensors = pass->tensors;
    ops_row_program *program = &pass->program;
    ops_row_layout layout;
    uint8_t values[OPS_CLUSTER_OPERATIONS];
    ops_fusion_plan_row_layout(plan, &layout);
    ops_row_begin(program, plan->input_count);
    plan_views(plan, 0, plan->input_count, tensors);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        uint8_t operands[OPS_INLINE_OPERANDS];
        for (uint32_t j = 0; j < cluster->nodes[i]->operand_count; j++) {
            const uint8_t operand = cluster->operands[i][j];
            operands[j] = operand & OPS_CLUSTER_LEAF ? (uint8_t)(operand & ~OPS_CLUSTER_LEAF)
                                                     : values[operand];
        }
        values[i] = program_add_node(program, cluster, i, operands);
    }
    const int64_t elements = ops_tensor_get_element_count(shape);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const ops_tensor y = plan_output(plan, i, buffers);
        const bool is_row = ops_tensor_get_element_count(&y) != elements;
        ops_row_output(program, values[cluster->outputs[i]]);
        tensors[plan->input_count + i] = is_row ? with_row_axis(&y, shape, axis) : y;
    }
    const ops_row_call call = {.function = "ops_array_evaluate",
                               .name = "rows",
                               .program = program,
                               .rank = shape->rank,
                               .axis = axis,
                               .shape = shape->shape,
                               .tensors = tensors,
                               .layout = &layout,
                               .mean_length = shape->shape[axis]};
    return elements == 0 ? HAL_OK : ops_row_record(plan->context, &call);
}

static hal_status record_rows(const ops_fusion_plan *plan, hal_buffer *const *buffers)
{
    ops_scratch *scratch = &plan->context->scratch;
    rows_pass *pass = ops_scratch_take(scratch, "ops_array_evaluate", sizeof *pass);
    if (!pass) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = rows_pass_record(plan, buffers, pass);
    ops_scratch_return(scratch, pass);
    return status;
}

/* The views of all inputs, in scratch memory; null, and an error, without memory. */
static ops_tensor *plan_take_views(const ops_fusion_plan *plan)
{
    ops_tensor *views = ops_scratch_take(&plan->context->scratch, "ops_array_evaluate",
                                         plan->input_count * sizeof *views);
    if (views) {
        plan_views(plan, 0, plan->input_count, views);
    }
    return views;
}

static hal_status record_reduce_of(const ops_fusion_plan *plan, const ops_expression *prologue,
                                   const ops_expression *epilogue, const ops_tensor *inputs,
                                   const ops_tensor *y)
{
    const ops_array *anchor = plan->anchor;
    const ops_tensor *shape = &anchor->operands[0]->view;
    ops_tensor x;
    /* The prologue's first input takes the place of x and has its shape. */
    HAL_TRY(ops_tensor_broadcast(&inputs[0], shape->rank, shape->shape, &x));
    const ops_reduce_options options = {.size = sizeof options,
                                        .prologue = prologue,
                                        .prologue_inputs = inputs + 1,
                                        .prologue_input_count = plan->epilogue_first - 1,
                                        .epilogue = epilogue,
                                        .epilogue_inputs = inputs + plan->epilogue_first,
                                        .epilogue_input_count =
                                            plan->input_count - plan->epilogue_first};
    return ops_reduce_as(plan->context, (ops_reduction)anchor->function, anchor->axis, &x, &options,
                         y, shape);
}

static hal_status record_reduce(const ops_fusion_plan *plan, const ops_expression *prologue,
                                const ops_expression *epilogue, const ops_tensor *y)
{
    ops_tensor *inputs = plan_take_views(plan);
    if (!inputs) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = record_reduce_of(plan, prologue, epilogue, inputs, y);
    ops_scratch_return(&plan->context->scratch, inputs);
    return status;
}

static hal_status record_concatenate(const ops_fusion_plan *plan, const ops_tensor *y)
{
    ops_tensor *parts = plan_take_views(plan);
    if (!parts) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status =
        ops_concatenate(plan->context, plan->anchor->axis, parts, plan->input_count, y);
    ops_scratch_return(&plan->context->scratch, parts);
    return status;
}

/* A copy of x, of which elements are updated. */
static hal_status record_scatter(const ops_fusion_plan *plan, const ops_tensor *y)
{
    const ops_array *anchor = plan->anchor;
    return ops_scatter_of(plan->context, anchor->function, anchor->axis, &plan->inputs[0]->view,
                          &plan->inputs[1]->view, &plan->inputs[2]->view, y);
}

static hal_status record_attention(const ops_fusion_plan *plan, const ops_tensor *y)
{
    bool transposed;
    ops_attention_options options = ops_attention_options_of(plan->anchor, &transposed);
    ops_tensor k = plan->inputs[1]->view;
    if (transposed) {
        HAL_TRY(ops_tensor_transpose(&k, k.rank - 2, k.rank - 1, &k));
    }
    options.mask = plan->input_count > 3 ? &plan->inputs[3]->view : NULL;
    return ops_attention(plan->context, &options, &plan->inputs[0]->view, &k,
                         &plan->inputs[2]->view, y);
}

static hal_status record_dequantise(const ops_fusion_plan *plan, const ops_tensor *y)
{
    ops_quantised weights;
    ops_tensor zeros, as_b;
    HAL_TRY(ops_matmul_weights(plan, 0, &zeros, &weights));
    HAL_TRY(ops_tensor_transpose(y, 0, 1, &as_b));
    return ops_dequantise(plan->context, &weights, &as_b);
}

/* A view of y, whose channels may be last, in which they are second. */
static hal_status channels_second(const ops_fusion_plan *plan, uint32_t rank, const ops_tensor *y,
                                  ops_tensor *second)
{
    int32_t axes[OPS_MAX_RANK] = {0, (int32_t)rank + 1};
    for (uint32_t i = 0; i < rank; i++) {
        axes[i + 2] = (int32_t)i + 1;
    }
    *second = *y;
    return plan->anchor->function ? ops_tensor_permute(y, axes, second) : HAL_OK;
}

static hal_status record_convolution(const ops_fusion_plan *plan, const ops_tensor *y)
{
    const ops_gemm_windows_form *form = plan->anchor->form;
    const ops_tensor *x = &plan->inputs[0]->view, *w = &plan->inputs[1]->view;
    const ops_tensor *bias = plan->input_count > 2 ? &plan->inputs[2]->view : NULL;
    ops_tensor second;
    if (form->is_gradient) {
        return ops_gemm_windows(plan->context, form, x, y, NULL, w);
    }
    HAL_TRY(channels_second(plan, form->rank, y, &second));
    return ops_gemm_windows(plan->context, form, x, w, bias, &second);
}

static hal_status record_depthwise(const ops_fusion_plan *plan, const ops_tensor *y)
{
    const ops_depthwise_options *options = plan->anchor->form;
    const ops_tensor *bias = plan->input_count > 2 ? &plan->inputs[2]->view : NULL;
    ops_tensor second;
    HAL_TRY(channels_second(plan, options->rank, y, &second));
    return ops_depthwise(plan->context, options, &plan->inputs[0]->view, &plan->inputs[1]->view,
                         bias, &second);
}

/* Results are [images, lines, places, window, C m] with channels last, else [C m, window, images,
 * lines, places]. */
static hal_status record_depthwise_weights(const ops_fusion_plan *plan, const ops_tensor *y)
{
    static const int32_t last[5] = {0, 1, 4, 3, 2}, second[5] = {2, 3, 0, 1, 4};
    ops_tensor sums;
    HAL_TRY(ops_tensor_permute(y, plan->anchor->function ? last : second, &sums));
    return ops_depthwise_weights(plan->context, plan->anchor->form, &plan->inputs[0]->view,
                                 &plan->inputs[1]->view, &sums);
}

static hal_status record_direct(const ops_fusion_plan *plan, const ops_tensor *y)
{
    const ops_direct_form *form = plan->anchor->form;
    const ops_tensor *bias = plan->input_count > 2 ? &plan->inputs[2]->view : NULL;
    ops_tensor second;
    HAL_TRY(channels_second(plan, form->rank, y, &second));
    return ops_direct(plan->context, form, &plan->inputs[0]->view, &plan->inputs[1]->view, bias,
                      &second);
}

static hal_status record_pool(const ops_fusion_plan *plan, hal_buffer *const *buffers)
{
    const ops_pool_form *form = plan->anchor->form;
    const ops_tensor *x = &plan->inputs[0]->view, y = plan_output(plan, 0, buffers);
    ops_tensor results[2];
    HAL_TRY(channels_second(plan, form->rank, &y, &results[0]));
    if (plan->anchor->operation == OPS_OPERATION_POOL_GRADIENT) {
        const ops_tensor *places = plan->input_count > 1 ? &plan->inputs[1]->view : NULL;
        return ops_pool_gradient(plan->context, form, x, places, &results[0]);
    }
    if (!plan->twin) {
        const bool has_places = form->divisor == OPS_POOL_PLACES;
        return ops_pool_windows(plan->context, form, x, has_places ? NULL : &results[0],
                                has_places ? &results[0] : NULL);
    }
    const ops_tensor twin = plan_output(plan, 1, buffers);
    HAL_TRY(channels_second(plan, form->rank, &twin, &results[1]));
    const bool is_places = form->divisor == OPS_POOL_PLACES;
    return ops_pool_windows(plan->context, form, x, &results[is_places], &results[!is_places]);
}

static hal_status record_anchor(const ops_fusion_plan *plan, const ops_expression *prologue,
                                const ops_expression *epilogue, hal_buffer *const *buffers)
{
    const ops_array *anchor = plan->anchor;
    if (anchor->operation == OPS_OPERATION_MATMUL) {
        return ops_matmul_record(plan, epilogue, buffers);
    }
    const ops_tensor output = plan_output(plan, 0, buffers), *y = &output;
    const ops_tensor *x = &plan->inputs[0]->view;
    switch (anchor->operation) {
    case OPS_OPERATION_REDUCE:
        return record_reduce(plan, prologue, epilogue, y);
    case OPS_OPERATION_SOFTMAX:
        return ops_softmax(plan->context, anchor->axis, x, y);
    case OPS_OPERATION_LOG_SOFTMAX:
        return ops_log_softmax(plan->context, anchor->axis, x, y);
    case OPS_OPERATION_GATHER:
        return ops_gather(plan->context, anchor->axis, x, &plan->inputs[1]->view, y);
    case OPS_OPERATION_TAKE:
        return ops_take_along_axis(plan->context, anchor->axis, x, &plan->inputs[1]->view, y);
    case OPS_OPERATION_SCATTER:
        return record_scatter(plan, y);
    case OPS_OPERATION_SCAN:
        return ops_scan(plan->context, (ops_scan_kind)anchor->function, anchor->axis, x, y);
    case OPS_OPERATION_ORDER:
        return ops_sort(plan->context, anchor->axis, anchor->function, x, NULL, y);
    case OPS_OPERATION_UNFOLD:
        return ops_unfold(plan->context, anchor->form, x, &plan->inputs[1]->view, y);
    case OPS_OPERATION_DEPTHWISE:
        return record_depthwise(plan, y);
    case OPS_OPERATION_DEPTHWISE_WEIGHTS:
        return record_depthwise_weights(plan, y);
    case OPS_OPERATION_CONVOLUTION:
        return record_convolution(plan, y);
    case OPS_OPERATION_DIRECT:
        return record_direct(plan, y);
    case OPS_OPERATION_POOL:
    case OPS_OPERATION_POOL_GRADIENT:
        return record_pool(plan, buffers);
    case OPS_OPERATION_RESIZE:
        return ops_resize(plan->context, anchor->form, x, y);
    case OPS_OPERATION_ATTENTION:
        return record_attention(plan, y);
    case OPS_OPERATION_DEQUANTISE:
        return record_dequantise(plan, y);
    case OPS_OPERATION_CONCATENATE:
        return record_concatenate(plan, y);
    default:
        return ops_one_hot(plan->context, x, y);
    }
}

hal_status ops_fusion_record(const ops_fusion_plan *plan, hal_buffer *const *buffers)
{
    if (plan->rows) {
        return record_rows(plan, buffers);
    }
    if (!plan->anchor) {
        return record_elementwise(plan, buffers);
    }
    const uint32_t gap =
        plan->anchor->operation == OPS_OPERATION_MATMUL ? OPS_MATMUL_POSITION_INPUTS : 0;
    ops_expression *prologue = NULL, *epilogue = NULL;
    hal_status status = HAL_OK;
    if (plan->has_prologue) {
        status = ops_fusion_cluster_make_expression(&plan->prologue, 0, 0, &prologue);
    }
    if (status == HAL_OK && plan->has_epilogue) {
        status = ops_fusion_cluster_make_expression(&plan->epilogue, gap, 0, &epilogue);
    }
    if (status == HAL_OK) {
        status = record_anchor(plan, prologue, epilogue, buffers);
    }
    ops_expression_destroy(prologue);
    ops_expression_destroy(epilogue);
    return status;
}
