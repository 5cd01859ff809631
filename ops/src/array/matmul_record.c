/* Recording of matrix products, see matmul_record.h. */
#include "matmul_record.h"

#include "gemm/gemm.h"
#include "gemm/grouped.h"
#include "matmul.h"
#include "tensor/allocation.h"
#include "tensor/compile_policy.h"

/* The views of the epilogue's further inputs. */
static void plan_epilogue_views(const ops_fusion_plan *plan, ops_tensor *views)
{
    for (uint32_t i = plan->epilogue_first; i < plan->input_count; i++) {
        views[i - plan->epilogue_first] = ops_fusion_plan_input(plan, i);
    }
}

/* The product by itself, which the epilogue reads. */
static hal_status product_create(const ops_fusion_plan *plan, ops_tensor *product)
{
    *product = plan->anchor->view;
    product->buffer = NULL;
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(product) * hal_type_size(product->type);
    return ops_buffer_create(plan->context, bytes ? bytes : 4, &product->buffer);
}

/* The product by an ordinary B, or of groups by one each. */
static hal_status product_record(const ops_fusion_plan *plan, const ops_gemm_options *options,
                                 const ops_tensor *a, const ops_tensor *b, const ops_tensor *y)
{
    const ops_array *anchor = plan->anchor;
    if (!ops_node_is_grouped(anchor)) {
        return ops_gemm(plan->context, options, a, b, y);
    }
    const ops_grouped_form *groups = anchor->form;
    return ops_gemm_grouped(plan->context, options, a, b,
                            anchor->operand_count > 2 ? &plan->inputs[2]->view : NULL,
                            groups->count ? groups->offsets : NULL, y);
}

/* Whether the product is computed by another implementation with the epilogue than without, and so
 * in another order of additions, or takes none. */
static bool epilogue_changes_product(const ops_fusion_plan *plan, const ops_gemm_options *options,
                                     const ops_tensor *y)
{
    const ops_tensor *a = &plan->inputs[0]->view, *b = &plan->inputs[1]->view;
    ops_gemm_options plain = *options;
    ops_tensor product = plan->anchor->view;
    if (options->epilogue && options->precision == HAL_GEMM_EXACT) {
        return true;
    }
    if (options->epilogue && ops_node_is_grouped(plan->anchor)) {
        const ops_grouped_form *groups = plan->anchor->form;
        return ops_gemm_grouped_epilogue_changes(
            plan->context, options, a, b,
            plan->anchor->operand_count > 2 ? &plan->inputs[2]->view : NULL,
            groups->count ? groups->offsets : NULL, y, &product);
    }
    if (!options->epilogue || options->precision == HAL_GEMM_NORMWISE || options->prepared ||
        ops_gemm_is_native(plan->context, options, a, b, y)) {
        return false;
    }
    product.buffer = NULL; /* its layout alone is asked about */
    plain.epilogue = NULL;
    plain.input_count = 0;
    return ops_gemm_is_native(plan->context, &plain, a, b, &product);
}

/* The product, then its epilogue, which may be a new kernel: while those are refused, the product
 * is not recorded either, as it would be once more in a kernel for each operation. Where they are
 * requested, both are compiled now, for the same reason. */
static hal_status record_apart(const ops_fusion_plan *plan, const ops_gemm_options *options,
                               const ops_tensor *y)
{
    ops_gemm_options plain = *options;
    ops_tensor inputs[OPS_CLUSTER_LEAVES];
    ops_expression *expression = NULL;
    ops_compile_policy *policy = plan->context->compile_policy;
    if (policy->missing == OPS_MISSING_REFUSED) {
        return ops_compile_policy_refuse(policy);
    }
    policy->missing = OPS_MISSING_COMPILED;
    HAL_TRY(product_create(plan, &inputs[0]));
    const uint32_t count = 1 + options->input_count;
    plan_epilogue_views(plan, inputs + 1);
    plain.epilogue = NULL;
    plain.input_count = 0;
    hal_status status = ops_fusion_cluster_make_expression(&plan->epilogue, 0, 1, &expression);
    if (status == HAL_OK) {
        status = product_record(plan, &plain, &plan->inputs[0]->view, &plan->inputs[1]->view,
                                &inputs[0]);
    }
    if (status == HAL_OK) {
        status = ops_pointwise(plan->context, expression, inputs, count, y, 1);
    }
    ops_expression_destroy(expression);
    ops_tensor_release(&inputs[0]);
    return status;
}

hal_status ops_matmul_weights(const ops_fusion_plan *plan, uint32_t first, ops_tensor *zeros,
                              ops_quantised *weights)
{
    const bool has_zeros = plan->anchor->operand_count > first + 2;
    *zeros = has_zeros ? plan->inputs[first + 2]->view : (ops_tensor){0};
    return ops_quantised_form_weights(plan->anchor->form, &plan->inputs[first]->view,
                                      &plan->inputs[first + 1]->view, has_zeros ? zeros : NULL,
                                      weights)
               ? HAL_OK
               : ops_invalid("ops_array_evaluate: %s: expected weights whose strides it takes",
                             ops_node_operation_name(plan->anchor));
}

/* A product whose weights are not written to memory. */
static hal_status record_quantised(const ops_fusion_plan *plan, const ops_gemm_options *options,
                                   const ops_tensor *y)
{
    ops_quantised weights;
    ops_tensor zeros;
    HAL_TRY(ops_matmul_weights(plan, 1, &zeros, &weights));
    return ops_gemm_quantised(plan->context, options, &plan->inputs[0]->view, &weights, y);
}

hal_status ops_matmul_record(const ops_fusion_plan *plan, const ops_expression *epilogue,
                             hal_buffer *const *buffers)
{
    ops_tensor inputs[OPS_CLUSTER_LEAVES], y = plan->outputs[0]->view, y_sums;
    plan_epilogue_views(plan, inputs);
    const uint32_t stored = ops_fusion_plan_stored_count(plan);
    const ops_tensor *a = &plan->inputs[0]->view, *b = &plan->inputs[1]->view;
    ops_gemm_options options = ops_matmul_options(plan->anchor);
    options.epilogue = epilogue;
    options.inputs = inputs;
    options.input_count = plan->input_count - plan->epilogue_first;
    y.buffer = stored ? buffers[0] : NULL;
    if (plan->anchor->form && !ops_node_is_grouped(plan->anchor)) {
        return record_quantised(plan, &options, &y);
    }
    if (plan->writes) {
        y_sums = plan->writes->array.view;
        y_sums.buffer = buffers[stored];
        options.levels = plan->writes->levels;
        options.c_sums = &y_sums;
    }
    if (plan->reads) {
        options.levels = plan->reads->levels;
        options.a_sums = a;
        a = NULL;
    }
    if (epilogue_changes_product(plan, &options, &y)) {
        return record_apart(plan, &options, &y);
    }
    return product_record(plan, &options, a, options.prepared ? NULL : b, stored ? &y : NULL);
}
