/* Matrix products: the public functions. A product is checked, planned, and then described or
 * recorded. */
#include "gemm.h"

#include "check.h"
#include "config.h"
#include "describe.h"
#include "planner.h"
#include "record.h"

#include <ops/normwise.h>
#include <stdio.h>

hal_status ops_gemm(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                    const ops_tensor *b, const ops_tensor *c)
{
    HAL_TRY(ops_gemm_resolve(&options, &b));
    return ops_gemm_run(context, options, a, b, c);
}

hal_status ops_gemm_describe(ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                             uint64_t bytes, char *text)
{
    ops_product product;
    ops_gemm_plan plan;
    if (!text || bytes == 0) {
        return ops_invalid("ops_gemm_describe: text: expected memory for a line, got %s",
                           text ? "0 bytes" : "null");
    }
    text[0] = 0;
    HAL_TRY(ops_gemm_resolve(&options, &b));
    HAL_TRY(ops_gemm_check(context, options, a, b, c, &product));
    HAL_TRY(ops_gemm_plan_find(context, &product, &plan));
    ops_gemm_plan_describe(context, &product, &plan, bytes, text);
    return HAL_OK;
}

hal_status ops_gemm_get_config(ops_context *context, const ops_gemm_options *options,
                               const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                               uint32_t rank, uint64_t bytes, char *config)
{
    ops_product product;
    ops_gemm_plan plan;
    char text[OPS_GEMM_CONFIG_BYTES];
    if (!config || bytes == 0 || rank == 0) {
        return ops_invalid("ops_gemm_get_config: %s", rank == 0
                                                          ? "rank: expected at least 1, got 0"
                                                          : "config: expected memory for text");
    }
    config[0] = 0;
    HAL_TRY(ops_gemm_resolve(&options, &b));
    HAL_TRY(ops_gemm_check(context, options, a, b, c, &product));
    HAL_TRY(ops_gemm_plan_make_ranked(context, &product, rank, &plan));
    ops_gemm_config_print(&plan.tile, plan.split, text);
    snprintf(config, bytes, "%s", text);
    return HAL_OK;
}

bool ops_gemm_is_native(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                        const ops_tensor *b, const ops_tensor *c)
{
    ops_product product;
    ops_gemm_plan plan;
    if (!c->buffer) {
        ops_product_init(&product, options, a, b, c);
    } else if (ops_gemm_check(context, options, a, b, c, &product) != HAL_OK) {
        return false;
    }
    return ops_gemm_plan_find(context, &product, &plan) == HAL_OK &&
           plan.path == OPS_GEMM_PATH_NATIVE;
}

hal_status ops_gemm_choose_levels(ops_context *context, const ops_gemm_options *options,
                                  hal_type type, int64_t m, int64_t n, int64_t k, uint32_t *levels)
{
    if (!context || !options || !levels) {
        return ops_invalid("ops_gemm_choose_levels: %s: expected a pointer, got null",
                           !context   ? "context"
                           : !options ? "options"
                                      : "levels");
    }
    *levels = 0;
    HAL_TRY(ops_gemm_check_options(options));
    if (options->precision == HAL_GEMM_NORMWISE) {
        const ops_normwise_shape shape = {.type = type,
                                          .batch = 1,
                                          .m = m,
                                          .n = n,
                                          .k = k,
                                          .b_levels =
                                              options->prepared ? options->prepared->levels : 0,
                                          .max_workspace = options->max_workspace};
        *levels = ops_normwise_choose(context->info, options, &shape).apart;
    }
    return HAL_OK;
}
