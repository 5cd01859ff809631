/* A plan as text, see describe.h. */
#include "describe.h"

#include "planner.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct line {
    char *text;
    uint64_t bytes, length;
} line;

/* Appends what the line has room for. */
static void HAL_PRINTF(2, 3) line_add(line *l, const char *format, ...)
{
    va_list arguments;
    const uint64_t room = l->bytes - l->length;
    va_start(arguments, format);
    const int wanted = vsnprintf(l->text + l->length, room, format, arguments);
    va_end(arguments);
    if (wanted > 0) {
        l->length += (uint64_t)wanted < room ? (uint64_t)wanted : room - 1;
    }
}

static void add_portable(line *l, const ops_product *product, const ops_gemm_plan *plan)
{
    const ops_gemm_tiles *t = &plan->tile;
    line_add(l, "portable: tile %u x %u x %u, %u x %u for each work-item, %s", t->block_m,
             t->block_n, t->block_k, t->thread_m, t->thread_n,
             t->matrix   ? "matrix units"
             : t->unroll ? "split-K in the group"
             : t->stages ? "staged in shared memory"
                         : "direct");
    if (plan->is_serial) {
        line_add(l, ", parts of %u in k: the device limits loops", plan->split);
    } else if (plan->split) {
        line_add(l, ", split-K in parts of %u: few elements of c", plan->split);
    }
    line_add(l, "%s", plan->is_transposed ? ", as the transposed product" : "");
    if (product->a.columns == 0) {
        line_add(l, "; k or alpha is 0");
    } else if (plan->without) {
        line_add(l, "; no memory for another kernel");
    } else if (plan->native_needs) {
        line_add(l, "; a native kernel needs %s", plan->native_needs);
    } else {
        line_add(l, "; as options.impl says");
    }
}

static void add_native(line *l, const ops_product *product, const ops_gemm_plan *plan)
{
    static const char *const copies[] = {"", ", a copied", ", b copied", ", both copied"};
    const uint32_t copied = plan->copies >> OPS_GEMM_ALIGNS_SHIFT & 3;
    line_add(l, "native: %s, a by %s, b by %s%s", hal_type_name(product->a.tensor->type),
             plan->by_columns & 1 ? "columns" : "rows", plan->by_columns & 2 ? "columns" : "rows",
             copies[copied]);
    if (copied) {
        line_add(l, " (%llu bytes)", (unsigned long long)plan->copied_bytes);
    }
    line_add(l, ", %llu bytes of workspace; the plugin has a kernel for it",
             (unsigned long long)plan->workspace_bytes);
}

static void add_sums(line *l, const ops_gemm_options *options)
{
    const ops_gemm_prepared *prepared = options->prepared;
    line_add(l, "normwise, %u level%s of strassen, %s sums of a, %s of b, %s of c", options->levels,
             options->levels > 1 ? "s" : "", options->a_sums ? "given" : "own",
             prepared && prepared->levels == options->levels ? "prepared" : "own",
             options->c_sums ? "written" : "none");
}

/* The levels of a product of the class NORMWISE. */
static void add_levels(line *l, const ops_context *context, const ops_product *product,
                       const ops_gemm_plan *plan)
{
    const ops_normwise_shape shape = ops_gemm_normwise_shape(product);
    const char *why =
        product->options->levels ? "as options.levels says" : "faster by the cost model";
    const char *plural = plan->levels > 1 ? "s" : "";
    if (plan->path == OPS_GEMM_PATH_LEVELS) {
        line_add(l,
                 "normwise, %u level%s of strassen, %s sums of b, at most %llu bytes of temporary "
                 "memory; %s",
                 plan->levels, plural,
                 shape.b_levels == plan->levels ? "prepared" : "without prepared",
                 (unsigned long long)ops_normwise_workspace(&shape, plan->levels), why);
    } else if (plan->levels) {
        line_add(l, "normwise, %u level%s of strassen within the kernel; %s; ", plan->levels,
                 plural, why);
    } else {
        line_add(l, "normwise, no levels of strassen: %s; accurate, ",
                 plan->without & OPS_GEMM_WITHOUT_LEVELS
                     ? "no memory for them"
                     : ops_normwise_choose(context->info, product->options, &shape).why_not);
    }
}

static void add_exact(line *l, const ops_context *context, const ops_product *product)
{
    const ops_exact_product exact = ops_gemm_exact_product(product);
    const ops_exact_block block = ops_exact_choose_block(context, &exact);
    if (block.bytes == 0) {
        line_add(l, "each element from its row and column: few steps of k");
        return;
    }
    line_add(l,
             "products of bytes for %lld x %lld elements at a time, %llu bytes of temporary memory",
             (long long)block.m, (long long)block.n, (unsigned long long)block.bytes);
}

void ops_gemm_plan_describe(const ops_context *context, const ops_product *product,
                            const ops_gemm_plan *plan, uint64_t bytes, char *text)
{
    static const char *const classes[] = {"strict", "accurate", "fast", "normwise", "exact"};
    line l = {.text = text, .bytes = bytes};
    text[0] = 0;
    line_add(&l, "%lld x %lld x %lld, ", (long long)product->c.rows, (long long)product->c.columns,
             (long long)product->k);
    if (product->has_sums) {
        add_sums(&l, product->options);
        return;
    }
    if (plan->path == OPS_GEMM_PATH_NONE) {
        line_add(&l, "nothing to compute");
        return;
    }
    if (product->precision == HAL_GEMM_NORMWISE) {
        add_levels(&l, context, product, plan);
    } else {
        line_add(&l, "%s, ", classes[product->precision]);
    }
    if (plan->path == OPS_GEMM_PATH_PORTABLE) {
        add_portable(&l, product, plan);
    } else if (plan->path == OPS_GEMM_PATH_NATIVE) {
        add_native(&l, product, plan);
    } else if (plan->path == OPS_GEMM_PATH_EXACT) {
        add_exact(&l, context, product);
    }
}
