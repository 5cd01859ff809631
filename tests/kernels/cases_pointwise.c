/* cases_pointwise.c: functions on their types, and one chain in the layouts that make other
 * kernels; random numbers too. */
#include "corpus_cases.h"

#include <stdio.h>

enum { LENGTH = 1 << 20 };

static hal_status make_chain(hal_type type, ops_expression **expression)
{
    hal_ir_builder *b = NULL;
    const hal_status status = hal_ir_builder_create_fragment("chain", &b);
    if (status != HAL_OK) {
        return status;
    }
    const hal_ir_value x = hal_ir_input(b, 0, type), y = hal_ir_input(b, 1, type);
    const hal_ir_value r = ops_unary_value(b, OPS_RELU, hal_ir_fma(b, x, y, x));
    hal_ir_output(b, 0, ops_unary_value(b, OPS_SIGMOID, r));
    return ops_expression_create(b, expression);
}

static void chain(corpus *c, const char *layout, hal_type type, const ops_tensor *x,
                  const ops_tensor *y, const ops_tensor *z)
{
    ops_expression *expression = NULL;
    const ops_tensor inputs[2] = {*x, *y};
    snprintf(c->label, sizeof c->label, "chain_%s_%s", layout, hal_type_name(type));
    c->made = 0;
    if (!c->failed) {
        corpus_did(c, make_chain(hal_type_of_value(type), &expression));
    }
    if (!c->failed) {
        corpus_did(c, ops_pointwise(c->ops, expression, inputs, 2, z, 1));
    }
    ops_expression_destroy(expression);
}

/* sigmoid(relu(x y + x)) contiguous, unaligned, broadcast, transposed, of gigabytes, with gaps, and
 * in every float type. */
static void chains(corpus *c)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F64};
    for (int t = 0; t < (c->all ? 4 : 3) && !c->failed; t++) {
        const hal_type type = types[t];
        if (!corpus_computes(c, type)) {
            continue;
        }
        corpus_case(c, "tensors");
        ops_tensor x = corpus_vector(c, type, LENGTH + 1), y = x, z = x;
        x.shape[0] = y.shape[0] = z.shape[0] = LENGTH;
        chain(c, "contiguous", type, &x, &y, &z);
        y.offset = 1;
        z = corpus_vector(c, type, LENGTH);
        chain(c, "unaligned", type, &x, &y, &z);
        ops_tensor square = corpus_matrix(c, type, 1024, 1024), turned = square;
        const ops_tensor row = corpus_vector(c, type, 1024);
        const ops_tensor column = corpus_matrix(c, type, 1024, 1);
        const ops_tensor result = corpus_matrix(c, type, 1024, 1024);
        corpus_did(c, ops_tensor_transpose(&square, 0, 1, &turned));
        chain(c, "row", type, &square, &row, &result);
        chain(c, "column", type, &square, &column, &result);
        chain(c, "transposed", type, &square, &turned, &result);
    }
    ops_tensor holes = corpus_vector(c, HAL_TYPE_F32, 3 * LENGTH), view = holes;
    const ops_tensor huge = corpus_matrix(c, HAL_TYPE_F32, INT64_C(1) << 20, INT64_C(1) << 14);
    const ops_tensor z = corpus_vector(c, HAL_TYPE_F32, LENGTH);
    corpus_did(c, ops_tensor_slice(&holes, 0, 0, LENGTH, 3, &view));
    chain(c, "holes", HAL_TYPE_F32, &view, &z, &z);
    chain(c, "huge", HAL_TYPE_F32, &huge, &huge, &huge);
}

static void random_numbers(corpus *c)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_F64, HAL_TYPE_U32};
    const ops_random_key key = {.seed = 1};
    for (int t = 0; t < (c->all ? 4 : 1) && !c->failed; t++) {
        if (!corpus_computes(c, types[t])) {
            continue;
        }
        corpus_case(c, "random_%s", hal_type_name(types[t]));
        const ops_tensor y = corpus_vector(c, types[t], LENGTH);
        corpus_did(c, ops_random_uniform(c->ops, key, 0.0, 1.0, &y));
        if (hal_type_is_float(types[t])) {
            corpus_did(c, ops_random_normal(c->ops, key, 0.0, 1.0, &y));
        }
    }
}

/* Every function that accepts the type. */
static void functions(corpus *c, hal_type type)
{
    for (int f = 0; f < OPS_UNARY_COUNT && !c->failed; f++) {
        corpus_case(c, "%s_%s", ops_unary_name((ops_unary_function)f), hal_type_name(type));
        const bool asks = f >= OPS_IS_NAN;
        const ops_tensor x = corpus_vector(c, type, LENGTH);
        const ops_tensor y = corpus_vector(c, asks ? (hal_type)HAL_TYPE_BOOL : type, LENGTH);
        const hal_status status = ops_unary(c->ops, (ops_unary_function)f, &x, &y);
        if (status != HAL_ERROR_INVALID_IR && status != HAL_ERROR_INVALID_ARGUMENT) {
            corpus_did(c, status);
        }
    }
    for (int f = 0; f < OPS_BINARY_COUNT && !c->failed; f++) {
        corpus_case(c, "%s_%s", ops_binary_name((ops_binary_function)f), hal_type_name(type));
        const ops_tensor x = corpus_vector(c, type, LENGTH), y = corpus_vector(c, type, LENGTH);
        const ops_tensor z = corpus_vector(c, f >= OPS_EQ ? (hal_type)HAL_TYPE_BOOL : type, LENGTH);
        const hal_status status = ops_binary(c->ops, (ops_binary_function)f, &x, &y, &z);
        if (status != HAL_ERROR_INVALID_IR && status != HAL_ERROR_INVALID_ARGUMENT) {
            corpus_did(c, status);
        }
    }
}

/* From F32 to every type and back, a choice, and a constant. */
static void conversions(corpus *c)
{
    for (int type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT && !c->failed; type++) {
        if (!corpus_computes(c, (hal_type)type)) {
            continue;
        }
        corpus_case(c, "cast_f32_%s", hal_type_name((hal_type)type));
        const ops_tensor x = corpus_vector(c, HAL_TYPE_F32, LENGTH);
        const ops_tensor y = corpus_vector(c, (hal_type)type, LENGTH);
        corpus_did(c, ops_cast(c->ops, &x, &y));
        corpus_did(c, ops_cast(c->ops, &y, &x));
        corpus_did(c, ops_fill(c->ops, 1.0, &y));
        const ops_tensor condition = corpus_vector(c, HAL_TYPE_BOOL, LENGTH);
        corpus_did(c, ops_where(c->ops, &condition, &y, &y, &y));
    }
}

void cases_pointwise(corpus *c)
{
    chains(c);
    random_numbers(c);
    if (c->all) {
        functions(c, HAL_TYPE_F32);
        functions(c, HAL_TYPE_I32);
        functions(c, HAL_TYPE_U64);
        conversions(c);
        if (corpus_computes(c, HAL_TYPE_F64)) {
            functions(c, HAL_TYPE_F64);
        }
    }
}
