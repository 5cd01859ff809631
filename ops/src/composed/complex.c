/* Complex arrays: functions, arithmetic and comparisons. Parts are real arrays whose last axis has
 * length 1; a result is the concatenation of its parts, into which one kernel computes both. A call
 * on a result that is not computed yet takes its parts, so that chains stay in one kernel. */
#include "complex_parts.h"

#include "kernels/complex_functions.h"

#include <string.h>

hal_status ops_complex_check(const char *function, const char *argument, const ops_array *x)
{
    const ops_tensor *view = &x->view;
    if ((view->type == HAL_TYPE_F32 || view->type == HAL_TYPE_F64) && view->rank > 0 &&
        view->shape[view->rank - 1] == 2) {
        return HAL_OK;
    }
    char text[OPS_TEXT_BYTES];
    return ops_invalid("%s: %s: expected f32 or f64 with a last axis of length 2, the real and the "
                       "imaginary part, got %s",
                       function, argument, ops_describe(view, text));
}

/* ---- Parts ---- */

static bool is_joined(const ops_array *x)
{
    return x->state == OPS_NODE_DEFERRED && x->operation == OPS_OPERATION_CONCATENATE &&
           x->function == OPS_CONCATENATE_PARTS;
}

static ops_array *part_of(ops_array *x, uint32_t number)
{
    return is_joined(x) ? x->operands[number] : ops_array_slice(x, -1, number, 1, 1);
}

ops_complex_parts ops_complex_split(ops_array *x)
{
    ops_complex_parts parts = {NULL, NULL};
    if (x) {
        parts.re = part_of(x, 0);
        parts.im = part_of(x, 1);
    }
    return parts;
}

/* An elementwise array that nothing else reads: such a part is computed into the result. */
static ops_array *part_alone(ops_array *part)
{
    return !part || (ops_node_is_elementwise(part) && part->uses == 0)
               ? part
               : ops_array_unary(OPS_IDENTITY, part);
}

ops_array *ops_complex_join_parts(ops_complex_parts parts)
{
    ops_array *const both[2] = {part_alone(parts.re), part_alone(parts.im)};
    ops_result result;
    if (!both[0] || !both[1]) {
        return NULL;
    }
    ops_result_like(both[0], &result);
    result.axis = result.rank - 1;
    ops_result_own_shape(&result)[result.axis] = 2;
    return ops_defer("ops_complex_join", OPS_OPERATION_CONCATENATE, OPS_CONCATENATE_PARTS, both, 2,
                     &result);
}

/* A view without the last axis, which has length 1. */
static ops_array *axis_drop(ops_array *x)
{
    return x ? ops_array_reshape(x, x->view.rank - 1, x->view.shape) : NULL;
}

static ops_array *axis_add(ops_array *x)
{
    int64_t shape[OPS_MAX_RANK];
    if (!x) {
        return NULL;
    }
    if (x->view.rank == OPS_MAX_RANK) {
        ops_invalid("ops_complex_join: re: expected a rank below %u, got %u", OPS_MAX_RANK,
                    x->view.rank);
        return NULL;
    }
    const uint32_t rank = ops_compose_shape(x, shape);
    shape[rank] = 1;
    return ops_array_reshape(x, rank + 1, shape);
}

/* The lengths to which the shapes of x and y stretch; false, and an error, if they do not fit. */
static bool common_shape(const char *function, const ops_array *x, const ops_array *y,
                         int64_t shape[OPS_MAX_RANK], uint32_t *rank)
{
    const ops_tensor *a = &x->view, *b = &y->view;
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 1; i <= *rank; i++) { /* from the last axis on */
        const int64_t one = i <= a->rank ? a->shape[a->rank - i] : 1;
        const int64_t other = i <= b->rank ? b->shape[b->rank - i] : 1;
        if (one != other && one != 1 && other != 1) {
            char text[2][OPS_TEXT_BYTES];
            ops_invalid("%s: operands: expected equal lengths or 1 along each axis, counted from "
                        "the last, got %s and %s",
                        function, ops_describe(a, text[0]), ops_describe(b, text[1]));
            return false;
        }
        shape[*rank - i] = one == 1 ? other : one;
    }
    return true;
}

/* x in a shape: itself, or a view. */
static ops_array *stretch(ops_array *x, uint32_t rank, const int64_t *shape)
{
    const bool has_shape =
        x && x->view.rank == rank && memcmp(x->view.shape, shape, rank * sizeof *shape) == 0;
    return has_shape ? x : ops_array_broadcast(x, rank, shape);
}

static ops_complex_parts stretch_parts(ops_complex_parts x, uint32_t rank, const int64_t *shape)
{
    return (ops_complex_parts){stretch(x.re, rank, shape), stretch(x.im, rank, shape)};
}

/* ---- Functions of parts ---- */

static ops_array *component(uint32_t function, uint32_t number, ops_complex_parts x)
{
    ops_array *const operands[2] = {x.re, x.im};
    ops_result result;
    if (!x.re || !x.im) {
        return NULL;
    }
    ops_result_like(x.re, &result);
    return ops_defer("ops_complex_unary", OPS_OPERATION_COMPLEX, OPS_COMPLEX_PART(function, number),
                     operands, 2, &result);
}

static ops_complex_parts function_parts(uint32_t function, ops_complex_parts x)
{
    return (ops_complex_parts){component(function, 0, x), component(function, 1, x)};
}

ops_complex_parts ops_complex_multiply_parts(ops_complex_parts x, ops_complex_parts y)
{
    return (ops_complex_parts){
        ops_sub(ops_mul(x.re, y.re), ops_mul(x.im, y.im)),
        ops_add(ops_mul(x.re, y.im), ops_mul(x.im, y.re)),
    };
}

static ops_complex_parts divide_parts(ops_complex_parts x, ops_complex_parts y)
{
    const ops_complex_parts inverse = function_parts(OPS_COMPLEX_INVERSE, y);
    const ops_complex_parts scale = function_parts(OPS_COMPLEX_SCALE, y);
    const ops_complex_parts before = {ops_mul(x.re, scale.re), ops_mul(x.im, scale.re)};
    const ops_complex_parts after = ops_complex_multiply_parts(before, inverse);
    return (ops_complex_parts){ops_mul(after.re, scale.im), ops_mul(after.im, scale.im)};
}

static ops_array *is_zero(ops_complex_parts x)
{
    return ops_array_binary(OPS_AND, ops_array_binary_scalar(OPS_EQ, x.re, 0),
                            ops_array_binary_scalar(OPS_EQ, x.im, 0));
}

/* exp(y log(x)), and what that gives no number for. */
static ops_complex_parts power_parts(ops_complex_parts x, ops_complex_parts y)
{
    const ops_complex_parts turn =
        ops_complex_multiply_parts(y, function_parts(OPS_COMPLEX_LOG, x));
    const ops_complex_parts power = function_parts(OPS_COMPLEX_EXP, turn);
    ops_array *vanishes =
        ops_array_binary(OPS_AND, is_zero(x), ops_array_binary_scalar(OPS_GT, y.re, 0));
    ops_array *is_one = is_zero(y), *zero = ops_compose_scalar(x.re, 0);
    ops_array *one = ops_compose_scalar(x.re, 1);
    return (ops_complex_parts){
        ops_array_where(is_one, one, ops_array_where(vanishes, zero, power.re)),
        ops_array_where(is_one, zero, ops_array_where(vanishes, zero, power.im)),
    };
}

static ops_array *combine(ops_complex_binary_function function, ops_array *x, ops_array *y)
{
    ops_complex_parts a = ops_complex_split(x), b = ops_complex_split(y);
    int64_t shape[OPS_MAX_RANK];
    uint32_t rank;
    if (!a.re || !a.im || !b.re || !b.im ||
        !common_shape("ops_complex_binary", a.re, b.re, shape, &rank)) {
        return NULL;
    }
    /* Sums of pairs in memory are those of real arrays, whose elements are neighbours. */
    if ((function == OPS_COMPLEX_ADD || function == OPS_COMPLEX_SUB) && !is_joined(x) &&
        !is_joined(y)) {
        return ops_array_binary(function == OPS_COMPLEX_ADD ? OPS_ADD : OPS_SUB, x, y);
    }
    /* Functions of an operand in the shape of the result are part of its kernel. */
    a = stretch_parts(a, rank, shape);
    b = stretch_parts(b, rank, shape);
    switch (function) {
    case OPS_COMPLEX_MUL:
        return ops_complex_join_parts(ops_complex_multiply_parts(a, b));
    case OPS_COMPLEX_DIV:
        return ops_complex_join_parts(divide_parts(a, b));
    case OPS_COMPLEX_POW:
        return ops_complex_join_parts(power_parts(a, b));
    case OPS_COMPLEX_EQ:
        return axis_drop(ops_array_binary(OPS_AND, ops_eq(a.re, b.re), ops_eq(a.im, b.im)));
    case OPS_COMPLEX_NE:
        return axis_drop(ops_array_binary(OPS_OR, ops_ne(a.re, b.re), ops_ne(a.im, b.im)));
    default: {
        const ops_binary_function real = function == OPS_COMPLEX_ADD ? OPS_ADD : OPS_SUB;
        return ops_complex_join_parts((ops_complex_parts){ops_array_binary(real, a.re, b.re),
                                                          ops_array_binary(real, a.im, b.im)});
    }
    }
}

/* ---- Public calls ---- */

ops_array *ops_complex_join(ops_array *re, ops_array *im)
{
    ops_array *const operands[2] = {re, im};
    ops_arrays *arrays = ops_compose_begin("ops_complex_join", operands, im ? 2 : 1);
    if (!arrays) {
        return NULL;
    }
    ops_array *made = NULL;
    char text[2][OPS_TEXT_BYTES];
    const hal_type type = re->view.type;
    if ((type != HAL_TYPE_F32 && type != HAL_TYPE_F64) || (im && im->view.type != type)) {
        ops_invalid("ops_complex_join: re and im: expected f32 or f64 both, got %s and %s",
                    ops_describe(&re->view, text[0]),
                    im ? ops_describe(&im->view, text[1]) : "null");
    } else {
        ops_array *zero = ops_compose_scalar(re, 0);
        ops_array *other = axis_add(im ? im : zero), *first = axis_add(re);
        int64_t shape[OPS_MAX_RANK];
        uint32_t rank;
        if (first && other && common_shape("ops_complex_join", first, other, shape, &rank)) {
            made = ops_complex_join_parts(
                stretch_parts((ops_complex_parts){first, other}, rank, shape));
        }
    }
    return ops_compose_end(arrays, made);
}

/* A part as a real array. */
static ops_array *part_take(const char *function, ops_array *x, uint32_t number)
{
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    if (!arrays) {
        return NULL;
    }
    return ops_compose_end(
        arrays, ops_complex_check(function, "x", x) ? NULL : axis_drop(part_of(x, number)));
}

ops_array *ops_complex_real(ops_array *x)
{
    return part_take("ops_complex_real", x, 0);
}

ops_array *ops_complex_imag(ops_array *x)
{
    return part_take("ops_complex_imag", x, 1);
}

ops_array *ops_complex_unary(ops_complex_unary_function function, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_complex_unary", &x, 1);
    if (!arrays) {
        return NULL;
    }
    ops_array *made = NULL;
    if ((uint32_t)function >= OPS_COMPLEX_UNARY_COUNT) {
        ops_invalid("ops_complex_unary: function: expected an ops_complex_unary_function, got %d",
                    (int)function);
    } else if (ops_complex_check("ops_complex_unary", "x", x) == HAL_OK) {
        const ops_complex_parts parts = ops_complex_split(x);
        made = function <= OPS_COMPLEX_ANGLE
                   ? axis_drop(component(function, 0, parts))
                   : ops_complex_join_parts(function_parts(function, parts));
    }
    return ops_compose_end(arrays, made);
}

ops_array *ops_complex_binary(ops_complex_binary_function function, ops_array *x, ops_array *y)
{
    ops_array *const operands[2] = {x, y};
    ops_arrays *arrays = ops_compose_begin("ops_complex_binary", operands, 2);
    if (!arrays) {
        return NULL;
    }
    ops_array *made = NULL;
    if ((uint32_t)function >= OPS_COMPLEX_BINARY_COUNT) {
        ops_invalid("ops_complex_binary: function: expected an ops_complex_binary_function, got %d",
                    (int)function);
    } else if (ops_complex_check("ops_complex_binary", "x", x) == HAL_OK &&
               ops_complex_check("ops_complex_binary", "y", y) == HAL_OK) {
        made = combine(function, x, y);
    }
    return ops_compose_end(arrays, made);
}

ops_array *ops_complex_test(ops_unary_function test, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_complex_test", &x, 1);
    if (!arrays) {
        return NULL;
    }
    ops_array *made = NULL;
    if (test != OPS_IS_NAN && test != OPS_IS_INFINITE && test != OPS_IS_FINITE) {
        ops_invalid("ops_complex_test: test: expected OPS_IS_NAN, _INFINITE or _FINITE, got %d",
                    (int)test);
    } else if (ops_complex_check("ops_complex_test", "x", x) == HAL_OK) {
        const ops_complex_parts parts = ops_complex_split(x);
        made = axis_drop(ops_array_binary(test == OPS_IS_FINITE ? OPS_AND : OPS_OR,
                                          ops_array_unary(test, parts.re),
                                          ops_array_unary(test, parts.im)));
    }
    return ops_compose_end(arrays, made);
}

/* ---- Names ---- */

static const char *const unary_names[OPS_COMPLEX_UNARY_COUNT] = {
    [OPS_COMPLEX_ABS] = "abs",     [OPS_COMPLEX_ANGLE] = "angle", [OPS_COMPLEX_CONJ] = "conj",
    [OPS_COMPLEX_SIGN] = "sign",   [OPS_COMPLEX_SQRT] = "sqrt",   [OPS_COMPLEX_EXP] = "exp",
    [OPS_COMPLEX_EXPM1] = "expm1", [OPS_COMPLEX_LOG] = "log",     [OPS_COMPLEX_LOG2] = "log2",
    [OPS_COMPLEX_LOG10] = "log10", [OPS_COMPLEX_LOG1P] = "log1p", [OPS_COMPLEX_SIN] = "sin",
    [OPS_COMPLEX_COS] = "cos",     [OPS_COMPLEX_TAN] = "tan",     [OPS_COMPLEX_SINH] = "sinh",
    [OPS_COMPLEX_COSH] = "cosh",   [OPS_COMPLEX_TANH] = "tanh",   [OPS_COMPLEX_ASIN] = "asin",
    [OPS_COMPLEX_ACOS] = "acos",   [OPS_COMPLEX_ATAN] = "atan",   [OPS_COMPLEX_ASINH] = "asinh",
    [OPS_COMPLEX_ACOSH] = "acosh", [OPS_COMPLEX_ATANH] = "atanh",
};

static const char *const binary_names[OPS_COMPLEX_BINARY_COUNT] = {
    [OPS_COMPLEX_ADD] = "add", [OPS_COMPLEX_SUB] = "sub", [OPS_COMPLEX_MUL] = "mul",
    [OPS_COMPLEX_DIV] = "div", [OPS_COMPLEX_POW] = "pow", [OPS_COMPLEX_EQ] = "eq",
    [OPS_COMPLEX_NE] = "ne",
};

const char *ops_complex_unary_name(ops_complex_unary_function function)
{
    return (uint32_t)function < OPS_COMPLEX_UNARY_COUNT ? unary_names[function] : NULL;
}

const char *ops_complex_binary_name(ops_complex_binary_function function)
{
    return (uint32_t)function < OPS_COMPLEX_BINARY_COUNT ? binary_names[function] : NULL;
}
