/* Sums of blocks as arguments of products: their checks, and tensors for them. */
#include "normwise.h"

#include "tensor/overlap.h"

#include <ops/normwise.h>

/* Checks sums of a rows x columns matrix: an argument of ops_gemm. */
static hal_status check_sums(const ops_context *context, const char *argument,
                             const ops_tensor *sums, const ops_tensor *matrix, uint32_t levels,
                             bool is_written)
{
    HAL_TRY(is_written ? ops_check_output(context, "ops_gemm", argument, sums)
                       : ops_check_tensor(context, "ops_gemm", argument, sums));
    const ops_tensor layout = ops_normwise_sums_layout(levels, matrix);
    const int64_t rest = (matrix->shape[0] | matrix->shape[1]) & ((1 << levels) - 1);
    char text[2][OPS_TEXT_BYTES];
    return sums->type == matrix->type && ops_same_shape(sums, &layout) && rest == 0
               ? HAL_OK
               : ops_invalid("ops_gemm: %s: expected %s%s, got %s", argument,
                             ops_describe(&layout, text[0]),
                             rest ? " of a matrix whose lengths are multiples of 2^levels" : "",
                             ops_describe(sums, text[1]));
}

/* A matrix by rows, without a buffer. */
static ops_tensor matrix_like(hal_type type, int64_t rows, int64_t columns)
{
    return (ops_tensor){NULL, type, 2, 0, {rows, columns}, {columns, 1}};
}

static hal_status check_overlaps(const ops_gemm_options *options, const ops_tensor *a,
                                 const ops_tensor *b, const ops_tensor *c)
{
    const ops_tensor *const outputs[2] = {c, options->c_sums};
    for (uint32_t i = 0; i < 2; i++) {
        if (!outputs[i]) {
            continue;
        }
        bool meets = ops_overlap(a ? a : options->a_sums, outputs[i]) ||
                     ops_overlap(b, outputs[i]) || (i == 1 && c && ops_overlap(c, outputs[i]));
        for (uint32_t k = 0; k < options->input_count; k++) {
            const ops_tensor *input = &options->inputs[k];
            meets = meets || (i == 1 && ops_overlap(input, outputs[i]));
        }
        if (meets) {
            return ops_invalid("ops_gemm: %s: expected memory that no other argument uses, got an "
                               "overlap",
                               i ? "options.c_sums" : "c");
        }
    }
    return HAL_OK;
}

hal_status ops_normwise_check(const ops_context *context, const ops_gemm_options *options,
                              const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                              ops_tensor *like)
{
    const ops_tensor *a_sums = options->a_sums, *c_sums = options->c_sums;
    const ops_tensor *const matrices[3] = {a, b, c};
    static const char *const names[3] = {"a", "b", "c"};
    if (options->precision != HAL_GEMM_NORMWISE || options->levels == 0 || !a == !a_sums ||
        (!c && (!c_sums || options->beta != 0))) {
        return ops_invalid("ops_gemm: options.a_sums, options.c_sums: expected HAL_GEMM_NORMWISE "
                           "with levels, a or its sums, and c or its sums with a beta of 0, got "
                           "others");
    }
    for (uint32_t i = 0; i < 3; i++) {
        const ops_tensor *t = matrices[i];
        if (!t && i != 1) {
            continue;
        }
        HAL_TRY(i == 2 ? ops_check_output(context, "ops_gemm", names[i], t)
                       : ops_check_tensor(context, "ops_gemm", names[i], t));
        if (t->rank != 2 || (t->type != HAL_TYPE_F32 && t->type != HAL_TYPE_F64) ||
            t->type != b->type) {
            char text[OPS_TEXT_BYTES];
            return ops_invalid("ops_gemm: %s: expected a matrix of f32 or f64, of one type with "
                               "the others, for sums, got %s",
                               names[i], ops_describe(t, text));
        }
    }
    const int64_t m = a ? a->shape[0] : a_sums->rank == 3 ? a_sums->shape[1] << options->levels : 0;
    const ops_tensor like_a = matrix_like(b->type, m, b->shape[0]);
    *like = matrix_like(b->type, m, b->shape[1]);
    if ((a && !ops_same_shape(a, &like_a)) || (c && !ops_same_shape(c, like))) {
        char text[3][OPS_TEXT_BYTES];
        return ops_invalid("ops_gemm: a, b, c: expected shapes [m, k], [k, n] and [m, n], got %s, "
                           "%s and %s",
                           ops_describe(a ? a : a_sums, text[0]), ops_describe(b, text[1]),
                           ops_describe(c ? c : c_sums, text[2]));
    }
    if (b->shape[1] & ((1 << options->levels) - 1)) {
        return ops_invalid("ops_gemm: b: expected a multiple of 2^levels columns for sums of a or "
                           "c, got %lld",
                           (long long)b->shape[1]);
    }
    if (a_sums) {
        HAL_TRY(check_sums(context, "options.a_sums", a_sums, &like_a, options->levels, false));
    }
    if (c_sums) {
        HAL_TRY(check_sums(context, "options.c_sums", c_sums, like, options->levels, true));
    }
    return check_overlaps(options, a, b, c);
}

hal_status ops_gemm_sums_create(ops_context *context, hal_type type, uint32_t levels, int64_t rows,
                                int64_t columns, ops_tensor *sums)
{
    const int64_t rest = (rows | columns) & ((INT64_C(1) << levels % 8) - 1);
    if (levels < 1 || levels > HAL_GEMM_MAX_LEVELS || rows < 0 || columns < 0 || rest) {
        return ops_invalid("ops_gemm_sums_create: levels, rows, columns: expected 1 to %u levels "
                           "and multiples of 2^levels, got %u, %lld and %lld",
                           HAL_GEMM_MAX_LEVELS, levels, (long long)rows, (long long)columns);
    }
    const ops_tensor matrix = matrix_like(type, rows, columns);
    const ops_tensor layout = ops_normwise_sums_layout(levels, &matrix);
    return ops_tensor_create(context, type, 3, layout.shape, sums);
}
