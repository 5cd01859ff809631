/* The context: a queue, the kernels that were made for it, and the expressions of functions. */
#include "context.h"

#include "compile_ahead.h"
#include "compile_policy.h"
#include "plan_recorder.h"
#include "returns.h"

#include <ops/convolution.h>
#include <ops/index.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The way of convolutions that the variable names. */
static ops_convolution_way convolution_way(void)
{
    const char *text = secure_getenv("HAL_CONVOLUTION");
    return text && strcmp(text, "copied") == 0     ? OPS_CONVOLUTION_COPIED
           : text && strcmp(text, "implicit") == 0 ? OPS_CONVOLUTION_IMPLICIT
           : text && strcmp(text, "direct") == 0   ? OPS_CONVOLUTION_DIRECT
                                                   : OPS_CONVOLUTION_AUTO;
}

/* The order of scatters that the variable names. */
static ops_scatter_order scatter_order(void)
{
    const char *text = secure_getenv("HAL_SCATTER");
    return text && strcmp(text, "unordered") == 0 ? OPS_SCATTER_UNORDERED
           : text && strcmp(text, "atomic") == 0  ? OPS_SCATTER_ATOMIC
                                                  : OPS_SCATTER_ORDERED;
}

/* How products by quantised weights of few rows are computed, which the variable names: without
 * matrix units, by copies, by matrix units, or by tiles of their kernel. */
static ops_quantised_way quantised_way(void)
{
    const char *text = secure_getenv("HAL_QUANTISED");
    if (!text) {
        return (ops_quantised_way){.tiles = 0};
    }
    const bool is_copied = strcmp(text, "copied") == 0;
    if (is_copied || strcmp(text, "lanes") == 0) {
        return (ops_quantised_way){.without_units = 1, .copied = is_copied};
    }
    ops_quantised_way way = {.units = 1};
    const bool has_tiles =
        sscanf(text, "%hhux%hhux%hhux%hhu", &way.tiles, &way.warps_n, &way.warps, &way.ahead) == 4;
    if (has_tiles && way.ahead <= 4) {
        return way;
    }
    return (ops_quantised_way){.units = strcmp(text, "units") == 0};
}

hal_status ops_context_create(hal_queue *queue, ops_context **context)
{
    if (!queue || !context) {
        return ops_invalid("ops_context_create: %s: expected a pointer, got null",
                           queue ? "context" : "queue");
    }
    ops_context *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_context_create: the host has no %zu bytes for a context",
                              sizeof *made);
    }
    made->queue = queue;
    made->device = hal_queue_get_device(queue);
    made->info = hal_device_get_info(made->device);
    made->tuning = ops_tuning_select(made->info);
    made->convolution = (uint32_t)convolution_way();
    made->scatter = (uint32_t)scatter_order();
    made->quantised = quantised_way();
    made->recorder = ops_plan_recorder_create();
    made->compile_policy = ops_compile_policy_create(&made->tuning->compile, made->info,
                                                     hal_device_get_compilers(made->device));
    hal_status status =
        made->recorder && made->compile_policy
            ? ops_kernel_table_init(&made->kernels)
            : hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_context_create: no host memory");
    if (status != HAL_OK) {
        ops_plan_recorder_destroy(made->recorder);
        ops_compile_policy_destroy(made->compile_policy);
        free(made);
        return status;
    }
    *context = made;
    return HAL_OK;
}

void ops_context_destroy(ops_context *context)
{
    if (!context) {
        return;
    }
    if (context->extension) {
        context->extension->destroy(context->extension);
    }
    ops_plan_recorder_destroy(context->recorder);
    ops_compile_ahead_release(&context->ahead);
    ops_compile_policy_destroy(context->compile_policy);
    ops_kernel_table_deinit(&context->kernels);
    free(context->plans);
    ops_scratch_release(&context->scratch);
    ops_returns_unref(context->returns);
    for (uint32_t type = 0; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t i = 0; i < OPS_UNARY_COUNT; i++) {
            ops_expression_destroy(context->unary[i][type]);
        }
        for (uint32_t i = 0; i < OPS_BINARY_COUNT; i++) {
            ops_expression_destroy(context->binary[i][type]);
        }
        for (uint32_t to = 0; to < HAL_TYPE_COUNT; to++) {
            ops_expression_destroy(context->cast[type][to]);
        }
        ops_expression_destroy(context->where[type]);
    }
    free(context);
}

void ops_context_set_convolution(ops_context *context, ops_convolution_way way)
{
    context->convolution = (uint32_t)way <= OPS_CONVOLUTION_DIRECT ? (uint32_t)way : 0;
}

void ops_context_set_scatter(ops_context *context, ops_scatter_order order)
{
    context->scatter = (uint32_t)order < OPS_SCATTER_ORDER_COUNT ? (uint32_t)order : 0;
}

hal_queue *ops_context_get_queue(const ops_context *context)
{
    return context ? context->queue : NULL;
}

hal_device *ops_context_get_device(const ops_context *context)
{
    return context ? context->device : NULL;
}

void ops_context_set_kernels(ops_context *context, ops_kernel_choice choice)
{
    if (context) {
        context->compile_policy->choice = choice;
    }
}
