/* Records products, see record.h. */
#include "record.h"

#include "cache.h"
#include "check.h"
#include "describe.h"
#include "native.h"
#include "planner.h"
#include "portable.h"
#include "tensor/message.h"

#include <ops/index.h>

/* Makes the copies of operands whose bits are set, or of C the memory where beta is 0. */
static hal_status copies_make(ops_context *context, const ops_product *product, uint32_t copies,
                              ops_tensor made[3])
{
    const ops_tensor *const from[3] = {product->a.tensor, product->b.tensor, product->c.tensor};
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 3 && status == HAL_OK; i++) {
        if (copies >> i & 1) {
            status =
                ops_tensor_create(context, from[i]->type, from[i]->rank, from[i]->shape, &made[i]);
            if (status == HAL_OK && (i < 2 || product->options->beta != 0)) {
                status = ops_copy(context, from[i], &made[i]);
            }
        }
    }
    return status;
}

/* Records a plan of one implementation, with copies of matrices without contiguous lines. */
static hal_status record_ordinary(ops_context *context, const ops_product *product,
                                  const ops_gemm_plan *plan)
{
    const uint32_t copies =
        plan->copies & (OPS_GEMM_COPIES_A | OPS_GEMM_COPIES_B | OPS_GEMM_COPIES_C);
    const ops_product *keep = plan->without || copies || plan->levels ? NULL : product;
    ops_product contiguous;
    ops_tensor layouts[3] = {{0}, {0}, {0}};
    ops_product_copy(&contiguous, product);
    if (product->precision == HAL_GEMM_NORMWISE) {
        contiguous.precision = HAL_GEMM_ACCURATE;
    }
    ops_product_make_contiguous(&contiguous, layouts);
    hal_status status = copies_make(context, product, copies, layouts);
    if (status == HAL_OK) {
        status = plan->path == OPS_GEMM_PATH_NATIVE
                     ? ops_gemm_native_record(context, &contiguous, plan, keep)
                     : ops_gemm_portable_record(context, &contiguous, plan, keep);
    }
    if (status == HAL_OK && copies & OPS_GEMM_COPIES_C) {
        status = ops_copy(context, &layouts[2], product->c.tensor);
    }
    for (uint32_t i = 0; i < 3; i++) {
        ops_tensor_release(&layouts[i]);
    }
    return status;
}

/* Records levels of Strassen's algorithm in kernels of their own. */
static hal_status record_levels(ops_context *context, const ops_product *product,
                                const ops_gemm_plan *plan, bool *c_is_written)
{
    const ops_gemm_options *options = product->options;
    const ops_gemm_prepared *prepared = options->prepared;
    const bool has_b_sums = prepared && prepared->levels == plan->levels;
    const ops_normwise_product by_levels = {.multiply = ops_gemm_run,
                                            .levels = plan->levels,
                                            .options = options,
                                            .a = product->a.tensor,
                                            .b = product->b.tensor,
                                            .c = product->c.tensor,
                                            .a_sums = options->a_sums,
                                            .b_sums = has_b_sums ? &prepared->sums : NULL,
                                            .c_sums = options->c_sums};
    return ops_normwise_multiply(context, &by_levels, c_is_written);
}

static hal_status record_exact(ops_context *context, const ops_product *product)
{
    ops_exact_product exact = ops_gemm_exact_product(product);
    exact.multiply = ops_gemm_run;
    return ops_exact_multiply(context, &exact);
}

hal_status ops_gemm_plan_find(ops_context *context, const ops_product *product, ops_gemm_plan *plan)
{
    uint64_t key[2];
    if (product->has_sums || product->options->config || product->batch == 0) {
        return ops_gemm_plan_make(context, product, 0, plan);
    }
    ops_gemm_cache_key(context, product, key);
    const ops_gemm_plan *found = ops_gemm_cache_find(context, product, key);
    if (found) {
        *plan = *found;
        return HAL_OK;
    }
    HAL_TRY(ops_gemm_plan_make(context, product, 0, plan));
    ops_gemm_cache_insert(context, product, key, plan);
    return HAL_OK;
}

static hal_status product_record(ops_context *context, const ops_product *product,
                                 ops_gemm_plan *plan)
{
    ops_message message;
    bool has_failed = false; /* a plan; the next one has less memory */
    ops_message_save(&message);
    HAL_TRY(ops_gemm_plan_find(context, product, plan));
    for (;;) {
        bool c_is_written = false;
        const hal_status status = plan->path == OPS_GEMM_PATH_NONE ? HAL_OK
                                  : plan->path == OPS_GEMM_PATH_LEVELS
                                      ? record_levels(context, product, plan, &c_is_written)
                                  : plan->path == OPS_GEMM_PATH_EXACT
                                      ? record_exact(context, product)
                                      : record_ordinary(context, product, plan);
        if (status == HAL_OK && has_failed) {
            ops_message_restore(&message);
        }
        if (status != HAL_ERROR_OUT_OF_MEMORY || c_is_written || !plan->spares) {
            return status;
        }
        has_failed = true;
        HAL_TRY(ops_gemm_plan_make(context, product, plan->without | plan->spares, plan));
    }
}

hal_status ops_gemm_run(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                        const ops_tensor *b, const ops_tensor *c)
{
    const bool logs = hal_log_is_enabled(HAL_LOG_DEBUG); /* the cache has no line to log */
    hal_status status;
    if (!logs && ops_gemm_cache_replay(context, options, a, b, c, &status)) {
        return status;
    }
    ops_product product;
    ops_gemm_plan plan;
    HAL_TRY(ops_gemm_check(context, options, a, b, c, &product));
    HAL_TRY(product_record(context, &product, &plan));
    if (logs) {
        char text[OPS_GEMM_LINE_LENGTH];
        ops_gemm_plan_describe(context, &product, &plan, sizeof text, text);
        hal_log_write(HAL_LOG_DEBUG, "ops_gemm: %s", text);
    }
    return HAL_OK;
}
