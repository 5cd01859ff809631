/* Checks of the arguments of products, see check.h. */
#include "check.h"

#include "normwise/normwise.h"
#include "tensor/overlap.h"

/* A zero-initialised structure, which means the plain product. */
static bool options_are_zero(const ops_gemm_options *o)
{
    return o->size == 0 && o->precision == 0 && o->impl == OPS_GEMM_ANY && o->alpha == 0 &&
           o->beta == 0 && !o->epilogue && !o->inputs && o->input_count == 0 &&
           o->max_workspace == 0 && !o->prepared && o->levels == 0 && !o->a_sums && !o->c_sums &&
           !o->config;
}

hal_status ops_gemm_check_options(const ops_gemm_options *options)
{
    HAL_TRY(ops_check_size("ops_gemm", "options", options->size, sizeof(ops_gemm_options)));
    if (options->levels > HAL_GEMM_MAX_LEVELS) {
        return ops_invalid("ops_gemm: options.levels: expected at most %u, got %u",
                           HAL_GEMM_MAX_LEVELS, options->levels);
    }
    if (options->config && options->impl != OPS_GEMM_PORTABLE) {
        return ops_invalid("ops_gemm: options.config: expected null without OPS_GEMM_PORTABLE, "
                           "got %s",
                           options->config);
    }
    if (options->precision > HAL_GEMM_EXACT || (uint32_t)options->impl > OPS_GEMM_NATIVE) {
        const bool is_precision = options->precision > HAL_GEMM_EXACT;
        return ops_invalid("ops_gemm: options.%s: expected %s, got %u",
                           is_precision ? "precision" : "impl",
                           is_precision ? "HAL_GEMM_STRICT, _ACCURATE, _FAST, _NORMWISE or "
                                          "_EXACT"
                                        : "OPS_GEMM_ANY, _PORTABLE or _NATIVE",
                           is_precision ? options->precision : (uint32_t)options->impl);
    }
    return HAL_OK;
}

static hal_status check_types(const ops_gemm_options *options, const ops_tensor *a,
                              const ops_tensor *b, const ops_tensor *c)
{
    const bool is_float = hal_type_is_float(a->type), is_integer = hal_type_is_integer(a->type);
    const hal_type wide = is_float ? (hal_type)HAL_TYPE_F32 : ops_gemm_accumulator(a->type);
    if (a->type != b->type || !(is_float || is_integer) ||
        (c->type != a->type && c->type != wide && !(is_integer && options->epilogue))) {
        return ops_invalid("ops_gemm: a, b, c: expected one type of floats or integers, or %s for "
                           "c, got %s, %s and %s",
                           is_integer ? "that of the sums or the epilogue" : "f32",
                           hal_type_name(a->type), hal_type_name(b->type), hal_type_name(c->type));
    }
    return HAL_OK;
}

/* The factors are numbers of the accumulator's type. */
static hal_status check_factors(const ops_gemm_options *options, hal_type type)
{
    const double factors[2] = {options->alpha, options->beta};
    const hal_type sum = ops_gemm_accumulator(type);
    for (uint32_t i = 0; i < 2 && hal_type_is_integer(type); i++) {
        if (ops_round_to(sum, factors[i]) != factors[i]) {
            return ops_invalid(
                "ops_gemm: options.%s: expected a whole number that %s holds, got a fraction or a "
                "larger number",
                i == 0 ? "alpha" : "beta", hal_type_name(sum));
        }
    }
    return HAL_OK;
}

/* What products of the class EXACT take. */
static hal_status check_exact(const ops_gemm_options *options, const ops_tensor *a,
                              const ops_tensor *c)
{
    if (options->precision != HAL_GEMM_EXACT || hal_type_is_integer(a->type)) {
        return HAL_OK;
    }
    if (a->type != HAL_TYPE_F64 || c->type != HAL_TYPE_F64) {
        return ops_invalid("ops_gemm: a, b, c: expected f64 with HAL_GEMM_EXACT, got %s, %s and %s",
                           hal_type_name(a->type), hal_type_name(a->type), hal_type_name(c->type));
    }
    if (options->epilogue || options->config) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm: options.%s: expected null with HAL_GEMM_EXACT, got %s",
                              options->epilogue ? "epilogue" : "config",
                              options->epilogue ? "one; compute it by ops_pointwise"
                                                : options->config);
    }
    return HAL_OK;
}

static hal_status check_shapes(const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    const ops_tensor *all[3] = {a, b, c};
    bool fits = true;
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

/* `shape`, of `rank`, is what the further inputs are broadcast to: that of C, or of groups. */
static hal_status check_epilogue(const ops_context *context, const ops_gemm_options *options,
                                 hal_type accumulator, const ops_tensor *c, uint32_t rank,
                                 const int64_t *shape)
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
    const bool has_inputs = count ? e->input_count == 4 + count : e->input_count <= 4;
    if (e->output_count != 1 || count > OPS_GEMM_MAX_INPUTS || !has_inputs ||
        (count && !options->inputs)) {
        return ops_invalid("ops_gemm: options.epilogue: expected %s4 + options.input_count (%u) "
                           "inputs and 1 output, got %u and %u",
                           count ? "" : "at most ", count, e->input_count, e->output_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *input = &options->inputs[i];
        HAL_TRY(ops_check_tensor(context, "ops_gemm", "options.inputs", input));
        HAL_TRY(ops_check_broadcast("ops_gemm", "options.inputs", input, rank, shape));
        if (ops_overlap(input, c) && !ops_same_view(input, c)) {
            return ops_invalid("ops_gemm: options.inputs[%u]: expected c itself or other memory, "
                               "got an overlap with c",
                               i);
        }
    }
    return check_epilogue_types(options, accumulator, c);
}

hal_status ops_gemm_check_matrices(const ops_context *context, const ops_gemm_options *options,
                                   const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    HAL_TRY(ops_check_tensor(context, "ops_gemm", "a", a));
    HAL_TRY(ops_check_output(context, "ops_gemm", "c", c));
    HAL_TRY(check_types(options, a, b, c));
    HAL_TRY(check_exact(options, a, c));
    HAL_TRY(check_factors(options, a->type));
    HAL_TRY(check_shapes(a, b, c));
    if (ops_overlap(a, c) || ops_overlap(b, c)) {
        return ops_invalid("ops_gemm: c: expected memory that %s does not use, got an overlap",
                           ops_overlap(a, c) ? "a" : "b");
    }
    return check_epilogue(context, options, ops_gemm_accumulator(a->type), c, c->rank, c->shape);
}

hal_status ops_gemm_check_groups(const ops_context *context, const ops_gemm_options *options,
                                 const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    HAL_TRY(ops_check_tensor(context, "ops_gemm_grouped", "a", a));
    HAL_TRY(ops_check_tensor(context, "ops_gemm_grouped", "b", b));
    HAL_TRY(ops_check_output(context, "ops_gemm_grouped", "c", c));
    HAL_TRY(check_types(options, a, b, c));
    HAL_TRY(check_factors(options, a->type));
    char text[3][OPS_TEXT_BYTES];
    if (a->rank != 2 || b->rank != 3 || c->rank != 2 || a->shape[1] != b->shape[1] ||
        a->shape[0] != c->shape[0] || b->shape[2] != c->shape[1]) {
        return ops_invalid("ops_gemm_grouped: a, b, c: expected shapes [rows, k], [groups, k, n] "
                           "and [rows, n], got %s, %s and %s",
                           ops_describe(a, text[0]), ops_describe(b, text[1]),
                           ops_describe(c, text[2]));
    }
    if (a->shape[0] > INT32_MAX || a->shape[1] > INT32_MAX || b->shape[2] > INT32_MAX ||
        b->shape[0] > OPS_GEMM_MAX_GROUPS) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_grouped: shape: expected lengths up to 2^31 - 1 and up to "
                              "%u groups, got %s and %s",
                              OPS_GEMM_MAX_GROUPS, ops_describe(a, text[0]),
                              ops_describe(b, text[1]));
    }
    if (ops_overlap(a, c) || ops_overlap(b, c)) {
        return ops_invalid(
            "ops_gemm_grouped: c: expected memory that %s does not use, got an overlap",
            ops_overlap(a, c) ? "a" : "b");
    }
    const int64_t shape[3] = {b->shape[0], c->shape[0], c->shape[1]};
    return check_epilogue(context, options, ops_gemm_accumulator(a->type), c, 3, shape);
}

/* The matrices of a product with sums: all lengths are known, A or C may have no tensor. */
static void product_init_sums(ops_product *product, const ops_gemm_options *options,
                              const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                              const ops_tensor *like)
{
    product->options = options;
    product->precision = HAL_GEMM_NORMWISE;
    product->accumulator = ops_gemm_accumulator(b->type);
    product->batch = 1;
    product->k = b->shape[0];
    product->has_sums = true;
    product->offsets = NULL;
    product->a = (ops_matrix){.tensor = a, .rows = like->shape[0], .columns = b->shape[0]};
    product->b = (ops_matrix){.tensor = b, .rows = b->shape[0], .columns = b->shape[1]};
    product->c = (ops_matrix){.tensor = c, .rows = like->shape[0], .columns = like->shape[1]};
}

hal_status ops_gemm_resolve(const ops_gemm_options **options, const ops_tensor **b)
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

hal_status ops_gemm_check(const ops_context *context, const ops_gemm_options *options,
                          const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                          ops_product *product)
{
    if (options->size == sizeof *options && (options->a_sums || options->c_sums)) {
        ops_tensor like;
        HAL_TRY(ops_gemm_check_options(options));
        HAL_TRY(ops_normwise_check(context, options, a, b, c, &like));
        const ops_tensor *y = c ? c : &like;
        HAL_TRY(check_epilogue(context, options, b->type, y, y->rank, y->shape));
        product_init_sums(product, options, a, b, c, &like);
        return ops_normwise_takes(context->info, options)
                   ? HAL_OK
                   : hal_status_set(HAL_ERROR_UNSUPPORTED,
                                    "ops_gemm: options.epilogue: expected one that reads no index, "
                                    "with few inputs, for sums, got another");
    }
    HAL_TRY(ops_gemm_check_options(options));
    HAL_TRY(ops_check_tensor(context, "ops_gemm", options->prepared ? "options.prepared" : "b", b));
    HAL_TRY(ops_gemm_check_matrices(context, options, a, b, c));
    ops_product_init(product, options, a, b, c);
    return HAL_OK;
}
