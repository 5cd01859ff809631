/* The planner of products, see planner.h. */
#include "planner.h"

#include <stdio.h>

#include "native.h"
#include "portable.h"

ops_normwise_shape ops_gemm_normwise_shape(const ops_product *product)
{
    const hal_type type = product->a.tensor->type;
    const ops_gemm_options *options = product->options;
    return (ops_normwise_shape){.type = type == product->c.tensor->type ? type : HAL_TYPE_NONE,
                                .batch = product->batch,
                                .m = product->c.rows,
                                .n = product->c.columns,
                                .k = product->a.columns,
                                .b_levels = options->prepared ? options->prepared->levels : 0,
                                .max_workspace = options->max_workspace};
}

/* The matrices of a batch, also where all products share one. */
static ops_tensor batch_view(const ops_product *product, const ops_matrix *matrix)
{
    ops_tensor view = ops_matrix_view(matrix, product->batch);
    view.shape[0] = product->batch;
    return view;
}

ops_exact_product ops_gemm_exact_product(const ops_product *product)
{
    const ops_gemm_options *options = product->options;
    return (ops_exact_product){.a = batch_view(product, &product->a),
                               .b = batch_view(product, &product->b),
                               .c = batch_view(product, &product->c),
                               .alpha = options->alpha,
                               .beta = options->beta,
                               .impl = options->impl,
                               .max_workspace = options->max_workspace};
}

/* Plans a product of another class than NORMWISE whose matrices have contiguous rows or columns:
 * the plugin's kernel where it is not slower than the portable one. */
static hal_status plan_ordinary(ops_context *context, const ops_product *product, uint32_t without,
                                ops_gemm_plan *plan)
{
    const ops_gemm_impl impl = product->options->impl;
    if (impl == OPS_GEMM_PORTABLE || product->a.columns == 0) {
        return ops_gemm_portable_plan(context, product, without, 1, plan);
    }
    if (impl == OPS_GEMM_NATIVE) {
        return ops_gemm_native_plan(context, product, 0, 0, plan);
    }
    ops_gemm_plan native = *plan;
    const hal_status portable = ops_gemm_portable_plan(context, product, without, 1, plan);
    if (without & OPS_GEMM_WITHOUT_PLUGIN) {
        return portable;
    }
    const double portable_ns = portable == HAL_OK ? plan->ns : 0;
    const hal_status status = ops_gemm_native_plan(context, product, 0, portable_ns, &native);
    if (status != HAL_ERROR_UNSUPPORTED) {
        *plan = native;
        return status;
    }
    plan->native_needs = native.native_needs;
    return portable == HAL_OK ? HAL_OK : ops_gemm_portable_plan(context, product, without, 1, plan);
}

/* Plans levels of Strassen's algorithm; UNSUPPORTED where there are none. */
static hal_status plan_levels(ops_context *context, const ops_product *product,
                              const ops_product *accurate, ops_gemm_plan *plan)
{
    const ops_gemm_options *options = product->options;
    const ops_normwise_shape shape = ops_gemm_normwise_shape(product);
    const ops_normwise_levels levels = ops_normwise_choose(context->info, options, &shape);
    for (uint32_t l = levels.inside; l > 0; l = options->levels ? 0 : l - 1) {
        if (ops_gemm_native_plan(context, accurate, l, 0, plan) == HAL_OK) {
            return HAL_OK;
        }
    }
    plan->levels = levels.apart;
    if (levels.apart == 0) {
        return HAL_ERROR_UNSUPPORTED;
    }
    plan->path = OPS_GEMM_PATH_LEVELS;
    plan->spares = OPS_GEMM_WITHOUT_LEVELS;
    return HAL_OK;
}

static hal_status plan_choose(ops_context *context, const ops_product *product, uint32_t without,
                              ops_gemm_plan *plan)
{
    ops_product contiguous;
    ops_tensor layouts[3];
    *plan = (ops_gemm_plan){.path = OPS_GEMM_PATH_NONE, .without = without};
    if (product->c.rows == 0 || product->c.columns == 0 || product->batch == 0) {
        return HAL_OK;
    }
    if (product->has_sums) {
        plan->path = OPS_GEMM_PATH_LEVELS;
        plan->levels = product->options->levels;
        return HAL_OK;
    }
    if (product->precision == HAL_GEMM_EXACT) {
        plan->path = OPS_GEMM_PATH_EXACT;
        return HAL_OK;
    }
    ops_product_copy(&contiguous, product);
    const uint32_t copies = ops_product_make_contiguous(&contiguous, layouts);
    if (product->precision == HAL_GEMM_NORMWISE) {
        contiguous.precision = HAL_GEMM_ACCURATE;
        plan->copies = copies;
        if (!(without & OPS_GEMM_WITHOUT_LEVELS) &&
            plan_levels(context, product, &contiguous, plan) == HAL_OK) {
            return HAL_OK;
        }
        *plan = (ops_gemm_plan){.path = OPS_GEMM_PATH_NONE, .without = without};
    }
    plan->copies = copies;
    return plan_ordinary(context, &contiguous, without, plan);
}

/* What a plugin says that declines is no failure where another kernel is planned. */
hal_status ops_gemm_plan_make(ops_context *context, const ops_product *product, uint32_t without,
                              ops_gemm_plan *plan)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", hal_status_message());
    const hal_status status = plan_choose(context, product, without, plan);
    return status == HAL_OK ? hal_status_set(HAL_OK, "%s", message) : status;
}

hal_status ops_gemm_plan_make_ranked(ops_context *context, const ops_product *product,
                                     uint32_t rank, ops_gemm_plan *plan)
{
    ops_product contiguous;
    ops_tensor layouts[3];
    if (product->precision == HAL_GEMM_EXACT) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_get_config: options.precision: expected another class than "
                              "HAL_GEMM_EXACT, which has no configs");
    }
    ops_product_copy(&contiguous, product);
    *plan = (ops_gemm_plan){.path = OPS_GEMM_PATH_PORTABLE};
    plan->copies = ops_product_make_contiguous(&contiguous, layouts);
    contiguous.precision =
        product->precision == HAL_GEMM_NORMWISE ? (uint32_t)HAL_GEMM_ACCURATE : product->precision;
    return ops_gemm_portable_plan(context, &contiguous, 0, rank, plan);
}
