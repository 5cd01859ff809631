/* Matrix products: checks of arguments, copies of operands with unsuitable strides, and the choice
 * of the implementation. */
#include "tensor/overlap.h"
#include "tensor/plan_recorder.h"
#include "normwise.h"
#include "prepare.h"
#include "product.h"
#include "product_cache.h"

#include <ops/index.h>

#include <stdlib.h>

enum { LINE_BYTES = 512 };

/* Temporary copies of A, B or C. */
typedef struct gemm_copies {
    ops_tensor tensors[3];
    uint32_t count;
} gemm_copies;

/* A zero-initialised structure, which means the plain product. */
static int options_are_zero(const ops_gemm_options *o)
{
    return o->size == 0 && o->precision == 0 && o->impl == OPS_GEMM_ANY && o->alpha == 0 &&
           o->beta == 0 && !o->epilogue && !o->inputs && o->input_count == 0 &&
           o->max_workspace == 0 && !o->prepared && o->levels == 0 && !o->a_sums && !o->c_sums &&
           o->candidate == 0;
}

static hal_status check_options(const ops_gemm_options *options)
{
    hal_status status =
        ops_check_size("ops_gemm", "options", options->size, sizeof(ops_gemm_options));
    if (status) {
        return status;
    }
    if (options->levels > HAL_GEMM_MAX_LEVELS) {
        return ops_invalid("ops_gemm: options.levels: expected at most %u, got %u",
                           HAL_GEMM_MAX_LEVELS, options->levels);
    }
    if (options->candidate > UINT8_MAX ||
        (options->candidate > 0 && options->impl == OPS_GEMM_ANY)) {
        return ops_invalid("ops_gemm: options.candidate: expected at most 255 and OPS_GEMM_NATIVE "
                           "or _PORTABLE, or 0, got %u",
                           options->candidate);
    }
    if (options->precision > HAL_GEMM_NORMWISE || (uint32_t)options->impl > OPS_GEMM_NATIVE) {
        const int is_precision = options->precision > HAL_GEMM_NORMWISE;
        return ops_invalid("ops_gemm: options.%s: expected %s, got %u",
                           is_precision ? "precision" : "impl",
                           is_precision ? "HAL_GEMM_STRICT, _ACCURATE, _FAST or _NORMWISE"
                                        : "OPS_GEMM_ANY, _PORTABLE or _NATIVE",
                           is_precision ? options->precision : (uint32_t)options->impl);
    }
    return HAL_OK;
}

static hal_status check_types(const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    if (!hal_type_is_float(a->type) || a->type != b->type ||
        (c->type != a->type && c->type != HAL_TYPE_F32)) {
        return ops_invalid(
            "ops_gemm: a, b, c: expected one float type, or f32 for c, got %s, %s and %s",
            hal_type_name(a->type), hal_type_name(b->type), hal_type_name(c->type));
    }
    return HAL_OK;
}

static hal_status check_shapes(const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    const ops_tensor *all[3] = {a, b, c};
    int fits = 1;
    for (uint32_t i = 0; i < 3; i++) {
        fits = fits && (all[i]->rank == 2 || all[i]->rank == 3);
    }
    if (fits) {
        const int64_t *sa = a->shape + a->rank - 2, *sb = b->shape + b->rank - 2,
                      *sc = c->shape + c->rank - 2;
        int64_t batch = c->rank == 3 ? c->shape[0] : 1;
        fits = sa[1] == sb[0] && sc[0] == sa[0] && sc[1] == sb[1] &&
               (a->rank == 2 || a->shape[0] == batch || a->shape[0] == 1) &&
               (b->rank == 2 || b->shape[0] == batch || b->shape[0] == 1);
    }
    char text[3][OPS_TEXT_BYTES];
    if (!fits) {
        return ops_invalid("ops_gemm: a, b, c: expected shapes [m, k], [k, n] and [m, n], with or "
                           "without a leading batch, got %s, %s and %s",
                           ops_describe(a, text[0]), ops_describe(b, text[1]),
                           ops_describe(c, text[2]));
    }
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < all[i]->rank; j++) {
            if (all[i]->shape[j] > INT32_MAX) {
                return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                      "ops_gemm: shape: expected lengths up to 2^31 - 1, got %s",
                                      ops_describe(all[i], text[0]));
            }
        }
    }
    return HAL_OK;
}

static hal_status check_epilogue_types(const ops_gemm_options *options, hal_type accumulator,
                                       const ops_tensor *c)
{
    const ops_expression *e = options->epilogue;
    hal_type wanted[4] = {accumulator, HAL_TYPE_U32, HAL_TYPE_U32, HAL_TYPE_U32};
    for (uint32_t i = 0; i < e->input_count; i++) {
        hal_type type = i < 4 ? wanted[i] : hal_type_of_value(options->inputs[i - 4].type);
        if (e->inputs[i] != type) {
            return ops_invalid("ops_gemm: options.epilogue: expected %s for input %u, got %s",
                               hal_type_name(type), i, hal_type_name(e->inputs[i]));
        }
    }
    if (e->outputs[0] != hal_type_of_value(c->type)) {
        return ops_invalid("ops_gemm: options.epilogue: expected output %s, as c has, got %s",
                           hal_type_name(c->type), hal_type_name(e->outputs[0]));
    }
    return HAL_OK;
}

static hal_status check_epilogue(const ops_context *context, const ops_gemm_options *options,
                                 hal_type accumulator, const ops_tensor *c)
{
    uint32_t count = options->input_count;
    const ops_expression *e = options->epilogue;
    if (!e) {
        return count == 0
                   ? HAL_OK
                   : ops_invalid(
                         "ops_gemm: options.input_count: expected 0 without an epilogue, got %u",
                         count);
    }
    const int has_inputs = count ? e->input_count == 4 + count : e->input_count <= 4;
    if (e->output_count != 1 || count > OPS_GEMM_MAX_INPUTS || !has_inputs ||
        (count && !options->inputs)) {
        return ops_invalid("ops_gemm: options.epilogue: expected %s4 + options.input_count (%u) "
                           "inputs and 1 output, got %u and %u",
                           count ? "" : "at most ", count, e->input_count, e->output_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *input = &options->inputs[i];
        hal_status status = ops_check_tensor(context, "ops_gemm", "options.inputs", input);
        if (!status) {
            status = ops_check_broadcast("ops_gemm", "options.inputs", input, c->rank, c->shape);
        }
        if (!status && ops_overlap(input, c) && !ops_same_view(input, c)) {
            status = ops_invalid("ops_gemm: options.inputs[%u]: expected c itself or other memory, "
                                 "got an overlap with c",
                                 i);
        }
        if (status) {
            return status;
        }
    }
    return check_epilogue_types(options, accumulator, c);
}

static hal_type accumulator_of(hal_type type)
{
    return type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
}

static hal_status check_tensors(const ops_context *context, const ops_gemm_options *options,
                                const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    hal_status status = check_options(options);
    if (!status) {
        status = ops_check_tensor(context, "ops_gemm", "a", a);
    }
    if (!status) {
        status =
            ops_check_tensor(context, "ops_gemm", options->prepared ? "options.prepared" : "b", b);
    }
    if (!status) {
        status = ops_check_output(context, "ops_gemm", "c", c);
    }
    if (!status) {
        status = check_types(a, b, c);
    }
    if (!status) {
        status = check_shapes(a, b, c);
    }
    if (!status && (ops_overlap(a, c) || ops_overlap(b, c))) {
        status = ops_invalid("ops_gemm: c: expected memory that %s does not use, got an overlap",
                             ops_overlap(a, c) ? "a" : "b");
    }
    return status ? status : check_epilogue(context, options, accumulator_of(a->type), c);
}

static void product_init(const ops_gemm_options *options, const ops_tensor *a, const ops_tensor *b,
                         const ops_tensor *c, ops_product *product)
{
    int64_t batch = c->rank == 3 ? c->shape[0] : 1;
    int64_t m = c->shape[c->rank - 2], n = c->shape[c->rank - 1], k = a->shape[a->rank - 1];
    const int64_t shape_a[3] = {batch, m, k}, shape_b[3] = {batch, k, n},
                  shape_c[3] = {batch, m, n};
    product->options = options;
    product->text = NULL;
    product->is_dry = 0;
    product->levels = 0;
    product->batch = (uint32_t)batch;
    product->accumulator = accumulator_of(a->type);
    product->a = ops_matrix_of(a, shape_a);
    product->b = ops_matrix_of(b, shape_b);
    product->c = ops_matrix_of(c, shape_c);
    for (uint32_t i = 0; i < options->input_count; i++) {
        product->inputs[i] = ops_matrix_of(&options->inputs[i], shape_c);
    }
}

static int has_unit_stride(const ops_matrix *matrix)
{
    return matrix->row_stride == 1 || matrix->column_stride == 1;
}

/* Replaces a matrix whose rows and columns are both strided by a contiguous one; `copy`: with its
 * elements. */
static hal_status matrix_make_contiguous(ops_context *context, ops_matrix *matrix, int copy,
                                         gemm_copies *made)
{
    if (has_unit_stride(matrix)) {
        return HAL_OK;
    }
    const ops_tensor *from = matrix->tensor;
    ops_tensor *temporary = &made->tensors[made->count];
    hal_status status = ops_tensor_create(context, from->type, from->rank, from->shape, temporary);
    if (status) {
        return status;
    }
    made->count++;
    status = copy ? ops_copy(context, from, temporary) : HAL_OK;
    int64_t batch = from->rank == 3 ? from->shape[0] : 1;
    const int64_t shape[3] = {batch, matrix->rows, matrix->columns};
    *matrix = ops_matrix_of(temporary, shape);
    return status;
}

static hal_status product_make_contiguous(ops_context *context, ops_product *product,
                                          gemm_copies *made)
{
    const int copies = !product->is_dry;
    hal_status status = matrix_make_contiguous(context, &product->a, copies, made);
    if (!status) {
        status = matrix_make_contiguous(context, &product->b, copies, made);
    }
    return status ? status
                  : matrix_make_contiguous(context, &product->c,
                                           copies && product->options->beta != 0, made);
}

static void copies_release(gemm_copies *made)
{
    for (uint32_t i = 0; i < made->count; i++) {
        ops_tensor_release(&made->tensors[i]);
    }
}

static hal_status product_record(ops_context *context, const ops_product *product)
{
    ops_gemm_impl impl = product->options->impl;
    if (product->levels) {
        return ops_gemm_native(context, product);
    }
    if (impl == OPS_GEMM_PORTABLE || product->a.columns == 0) {
        return ops_gemm_portable(context, product);
    }
    hal_status status = ops_gemm_native(context, product);
    return status == HAL_ERROR_UNSUPPORTED && impl == OPS_GEMM_ANY
               ? ops_gemm_portable(context, product)
               : status;
}

/* A product of checked tensors with at least one element; with levels, by the plugin's kernel, or
 * UNSUPPORTED. */
static hal_status checked_multiply(ops_context *context, const ops_gemm_options *options,
                                   uint32_t levels, const ops_tensor *a, const ops_tensor *b,
                                   const ops_tensor *c, ops_gemm_text *text, int is_dry)
{
    static const char *const classes[] = {"strict", "accurate", "fast"};
    ops_product product;
    ops_tensor unread[2];
    gemm_copies made;
    const int was_open = is_dry && ops_plan_recorder_pause(context->recorder);
    int lacked_memory = 0;
    made.count = 0;
    if (options->alpha == 0) { /* as in BLAS, A and B are not read: the product has k = 0 */
        unread[0] = *a;
        unread[1] = *b;
        unread[0].shape[a->rank - 1] = unread[1].shape[b->rank - 2] = 0;
        a = &unread[0];
        b = &unread[1];
    }
    product_init(options, a, b, c, &product);
    product.text = text;
    product.is_dry = is_dry;
    product.lacked_memory = &lacked_memory;
    product.levels = levels;
    hal_status status = product_make_contiguous(context, &product, &made);
    if (text && !levels) {
        ops_gemm_tell(text, "%s, ", classes[options->precision]);
    }
    if (!status) {
        status = product_record(context, &product);
    }
    if (!status && product.c.tensor != c && !is_dry) {
        status = ops_copy(context, product.c.tensor, c);
    }
    copies_release(&made);
    if (was_open) {
        ops_plan_recorder_resume(context->recorder, was_open);
    }
    return status;
}

/* The levels of a kernel of the plugin that forms the sums of blocks while it reads and writes
 * them; 0: none. With sums of B, or the portable kernel asked for, it is not looked for. */
static uint32_t native_levels(ops_context *context, const ops_gemm_options *accurate,
                              uint32_t forced, const ops_normwise_shape *shape, const ops_tensor *a,
                              const ops_tensor *b, const ops_tensor *c)
{
    if (accurate->impl == OPS_GEMM_PORTABLE || accurate->alpha == 0 || shape->b_levels) {
        return 0;
    }
    uint32_t levels = forced ? forced : ops_normwise_choose_native(context->info, shape);
    while (levels && checked_multiply(context, accurate, levels, a, b, c, NULL, 1) != HAL_OK) {
        levels = forced ? 0 : levels - 1;
    }
    return levels;
}

static int levels_are_possible(const ops_context *context, const ops_gemm_options *options)
{
    return options->alpha != 0 && ops_normwise_takes(context->info, options);
}

/* The levels as kernels of their own; 0: none. */
static uint32_t own_levels(const ops_context *context, const ops_gemm_options *options,
                           const ops_normwise_shape *shape)
{
    if (!levels_are_possible(context, options)) {
        return 0;
    }
    const uint32_t forced = options->levels;
    return !forced                              ? ops_normwise_choose(context->info, shape)
           : ops_normwise_allows(shape, forced) ? forced
                                                : 0;
}

/* By levels of Strassen's algorithm where they are faster, else as a product of the class ACCURATE,
 * which is also what a lack of memory leads to while C is not written. */
static hal_status normwise_multiply(ops_context *context, const ops_gemm_options *options,
                                    const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                                    ops_gemm_text *text, int is_dry)
{
    const ops_gemm_prepared *prepared = options->prepared;
    const ops_normwise_shape shape = {.type = a->type == c->type ? a->type : HAL_TYPE_NONE,
                                      .batch = c->rank == 3 ? c->shape[0] : 1,
                                      .m = c->shape[c->rank - 2],
                                      .n = c->shape[c->rank - 1],
                                      .k = a->shape[a->rank - 1],
                                      .b_levels = prepared ? prepared->levels : 0,
                                      .max_workspace = options->max_workspace};
    ops_gemm_options accurate = *options;
    accurate.precision = HAL_GEMM_ACCURATE;
    const uint32_t forced = options->levels;
    const char *why = forced ? "as options.levels says" : "faster by the cost model";
    uint32_t levels = native_levels(context, &accurate, forced, &shape, a, b, c);
    if (levels) {
        if (text) {
            ops_gemm_tell(text, "normwise, %u level%s of strassen within the kernel; %s; ", levels,
                          levels > 1 ? "s" : "", why);
        }
        const hal_status status =
            checked_multiply(context, &accurate, levels, a, b, c, text, is_dry);
        if (status != HAL_ERROR_OUT_OF_MEMORY) {
            return status;
        }
        if (text) {
            ops_gemm_tell(text, "; no memory for them: ");
        }
        return checked_multiply(context, &accurate, 0, a, b, c, text, is_dry);
    }
    levels = own_levels(context, options, &shape);
    if (text && levels) {
        const uint64_t workspace = ops_normwise_workspace(&shape, levels);
        ops_gemm_tell(text,
                      "normwise, %u level%s of strassen, %s sums of b, at most %llu bytes of "
                      "temporary memory; %s",
                      levels, levels > 1 ? "s" : "",
                      shape.b_levels == levels ? "prepared" : "without prepared",
                      (unsigned long long)workspace, why);
    } else if (text) {
        ops_gemm_tell(text, "normwise, no levels of strassen: %s; ",
                      !levels_are_possible(context, options) ? "the epilogue or alpha excludes them"
                      : forced ? "type, batch, lengths or max_workspace exclude them"
                               : "not faster by the cost model, or beyond max_workspace");
    }
    if (levels && !is_dry) {
        const ops_normwise_product product = {.levels = levels,
                                              .options = options,
                                              .a = a,
                                              .b = b,
                                              .c = c,
                                              .b_sums = shape.b_levels == levels ? &prepared->sums
                                                                                 : NULL};
        int c_is_written;
        const hal_status status = ops_normwise_multiply(context, &product, &c_is_written);
        if (status != HAL_ERROR_OUT_OF_MEMORY || c_is_written) {
            return status;
        }
        if (text) {
            ops_gemm_tell(text, "; no memory for them: ");
        }
    }
    return levels && is_dry ? HAL_OK
                            : checked_multiply(context, &accurate, 0, a, b, c, text, is_dry);
}

/* Checks sums of a rows x columns matrix: an argument of ops_gemm. */
static hal_status check_sums(const ops_context *context, const char *argument,
                             const ops_tensor *sums, const ops_tensor *matrix, uint32_t levels,
                             int is_written)
{
    const hal_status status = is_written ? ops_check_output(context, "ops_gemm", argument, sums)
                                         : ops_check_tensor(context, "ops_gemm", argument, sums);
    if (status) {
        return status;
    }
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

/* A matrix without buffer. */
static ops_tensor matrix_like(hal_type type, int64_t rows, int64_t columns)
{
    return (ops_tensor){NULL, type, 2, 0, {rows, columns}, {columns, 1}};
}

static hal_status check_sums_overlaps(const ops_gemm_options *options, const ops_tensor *a,
                                      const ops_tensor *b, const ops_tensor *c)
{
    const ops_tensor *const outputs[2] = {c, options->c_sums};
    for (uint32_t i = 0; i < 2; i++) {
        if (!outputs[i]) {
            continue;
        }
        int meets = ops_overlap(a ? a : options->a_sums, outputs[i]) ||
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

/* Checks a product with options.a_sums or options.c_sums. `like`: receives C's type and shape. */
static hal_status check_sums_product(const ops_context *context, const ops_gemm_options *options,
                                     const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                                     ops_tensor *like)
{
    const ops_tensor *a_sums = options->a_sums, *c_sums = options->c_sums;
    const ops_tensor *const matrices[3] = {a, b, c};
    static const char *const names[3] = {"a", "b", "c"};
    hal_status status = check_options(options);
    if (!status && (options->precision != HAL_GEMM_NORMWISE || options->levels == 0 ||
                    !a == !a_sums || (!c && (!c_sums || options->beta != 0)))) {
        status = ops_invalid("ops_gemm: options.a_sums, options.c_sums: expected HAL_GEMM_NORMWISE "
                             "with levels, a or its sums, and c or its sums with a beta of 0, got "
                             "others");
    }
    for (uint32_t i = 0; i < 3 && !status; i++) {
        const ops_tensor *t = matrices[i];
        if (!t && i != 1) {
            continue;
        }
        status = i == 2 ? ops_check_output(context, "ops_gemm", names[i], t)
                        : ops_check_tensor(context, "ops_gemm", names[i], t);
        if (!status && (t->rank != 2 || (t->type != HAL_TYPE_F32 && t->type != HAL_TYPE_F64) ||
                        t->type != b->type)) {
            char text[OPS_TEXT_BYTES];
            status = ops_invalid("ops_gemm: %s: expected a matrix of f32 or f64, of one type with "
                                 "the others, for sums, got %s",
                                 names[i], ops_describe(t, text));
        }
    }
    if (status) {
        return status;
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
        status = check_sums(context, "options.a_sums", a_sums, &like_a, options->levels, 0);
    }
    if (!status && c_sums) {
        status = check_sums(context, "options.c_sums", c_sums, like, options->levels, 1);
    }
    if (!status) {
        status = check_sums_overlaps(options, a, b, c);
    }
    if (!status) {
        status = check_epilogue(context, options, b->type, c ? c : like);
    }
    return !status && !ops_normwise_takes(context->info, options)
               ? hal_status_set(
                     HAL_ERROR_UNSUPPORTED,
                     "ops_gemm: options.epilogue: expected one that reads no index, with "
                     "few inputs, for sums, got another")
               : status;
}

/* A product that reads sums of A, or writes those of C. */
static hal_status sums_multiply(ops_context *context, const ops_gemm_options *options,
                                const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                                ops_gemm_text *text, int is_dry)
{
    const ops_gemm_prepared *prepared = options->prepared;
    ops_tensor like;
    int c_is_written;
    const hal_status status = check_sums_product(context, options, a, b, c, &like);
    if (status) {
        return status;
    }
    const int has_b = prepared && prepared->levels == options->levels;
    if (text) {
        ops_gemm_tell(
            text,
            "%lld x %lld x %lld, normwise, %u level%s of strassen, %s sums of a, %s of b, "
            "%s of c",
            (long long)like.shape[0], (long long)like.shape[1], (long long)b->shape[0],
            options->levels, options->levels > 1 ? "s" : "", options->a_sums ? "given" : "own",
            has_b ? "prepared" : "own", options->c_sums ? "written" : "none");
    }
    if (is_dry || ops_tensor_get_element_count(&like) == 0) {
        return HAL_OK;
    }
    const ops_normwise_product product = {.levels = options->levels,
                                          .options = options,
                                          .a = a,
                                          .b = b,
                                          .c = c,
                                          .a_sums = options->a_sums,
                                          .b_sums = has_b ? &prepared->sums : NULL,
                                          .c_sums = options->c_sums};
    return ops_normwise_multiply(context, &product, &c_is_written);
}

/* A product whose arguments have not been checked. */
static hal_status unchecked_multiply(ops_context *context, const ops_gemm_options *options,
                                     const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                                     ops_gemm_text *text, int is_dry)
{
    if (options->size == sizeof *options && (options->a_sums || options->c_sums)) {
        return sums_multiply(context, options, a, b, c, text, is_dry);
    }
    hal_status status = check_tensors(context, options, a, b, c);
    if (!status && text) {
        const int64_t *shape = c->shape + c->rank - 2;
        ops_gemm_tell(text, "%lld x %lld x %lld, ", (long long)shape[0], (long long)shape[1],
                      (long long)a->shape[a->rank - 1]);
    }
    if (!status && ops_tensor_get_element_count(c) == 0) {
        if (text) {
            ops_gemm_tell(text, "nothing to compute");
        }
        return HAL_OK;
    }
    if (status) {
        return status;
    }
    return options->precision == HAL_GEMM_NORMWISE
               ? normwise_multiply(context, options, a, b, c, text, is_dry)
               : checked_multiply(context, options, 0, a, b, c, text, is_dry);
}

/* The caller's options or the plain product; B becomes the prepared one. */
static hal_status product_resolve(const ops_gemm_options **options, const ops_tensor **b)
{
    static const ops_gemm_options plain = OPS_GEMM_OPTIONS_DEFAULT;
    if (!*options || ((*options)->size == 0 && options_are_zero(*options))) {
        *options = &plain;
    }
    if ((*options)->size != sizeof plain || !(*options)->prepared) {
        return HAL_OK;
    }
    if (*b) {
        return ops_invalid(
            "ops_gemm: b: expected null with options.prepared, got a tensor; one of them is B");
    }
    *b = &(*options)->prepared->b;
    return HAL_OK;
}

hal_status ops_gemm(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                    const ops_tensor *b, const ops_tensor *c)
{
    char line[LINE_BYTES];
    const int logs = hal_log_is_enabled(HAL_LOG_DEBUG); /* the cache has no line to log */
    hal_status status = product_resolve(&options, &b);
    if (status || (!logs && ops_product_cache_record(context, options, a, b, c, &status))) {
        return status;
    }
    if (!logs) {
        return unchecked_multiply(context, options, a, b, c, NULL, 0);
    }
    ops_gemm_text text = {.line = line, .bytes = sizeof line};
    line[0] = 0;
    status = unchecked_multiply(context, options, a, b, c, &text, 0);
    if (!status) {
        hal_log_write(HAL_LOG_DEBUG, "ops_gemm: %s", line);
    }
    return status;
}

hal_status ops_gemm_describe(ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                             uint64_t bytes, char *text)
{
    if (!text || bytes == 0) {
        return ops_invalid("ops_gemm_describe: text: expected memory for a line, got %s",
                           text ? "0 bytes" : "null");
    }
    ops_gemm_text line = {.line = text, .bytes = bytes};
    text[0] = 0;
    const hal_status status = product_resolve(&options, &b);
    return status ? status : unchecked_multiply(context, options, a, b, c, &line, 1);
}

int ops_gemm_is_native(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                       const ops_tensor *b, const ops_tensor *c)
{
    ops_product product;
    gemm_copies made = {.count = 0};
    int lacked_memory = 0;
    if ((c->buffer && check_tensors(context, options, a, b, c)) ||
        ops_tensor_get_element_count(c) == 0) {
        return 0;
    }
    const int was_open = ops_plan_recorder_pause(context->recorder);
    product_init(options, a, b, c, &product);
    product.is_dry = 1;
    product.lacked_memory = &lacked_memory;
    const int is_native = options->impl != OPS_GEMM_PORTABLE && product.a.columns > 0 &&
                          product_make_contiguous(context, &product, &made) == HAL_OK &&
                          ops_gemm_native(context, &product) == HAL_OK;
    copies_release(&made);
    ops_plan_recorder_resume(context->recorder, was_open);
    return is_native;
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
    const hal_status status = check_options(options);
    if (!status && options->precision == HAL_GEMM_NORMWISE) {
        const ops_normwise_shape shape = {.type = type,
                                          .batch = 1,
                                          .m = m,
                                          .n = n,
                                          .k = k,
                                          .b_levels =
                                              options->prepared ? options->prepared->levels : 0,
                                          .max_workspace = options->max_workspace};
        *levels = own_levels(context, options, &shape);
    }
    return status;
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
