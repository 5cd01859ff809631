/* Complex arrays: reductions, running sums and products, matrix products. */
#include "complex_parts.h"

#include <string.h>

static ops_array *multiply(ops_array *x, ops_array *y)
{
    return ops_complex_join_parts(
        ops_complex_multiply_parts(ops_complex_split(x), ops_complex_split(y)));
}

/* 1 in the shape of x with length 1 along an axis. */
static ops_array *ones_along(ops_array *x, uint32_t axis)
{
    int64_t shape[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(x, shape);
    shape[axis] = shape[rank - 1] = 1;
    ops_array *one = ops_compose_scalar(x, 1), *zero = ops_compose_scalar(x, 0);
    return one && zero
               ? ops_complex_join_parts((ops_complex_parts){ops_array_broadcast(one, rank, shape),
                                                            ops_array_broadcast(zero, rank, shape)})
               : NULL;
}

/* The product along an axis, which stays with length 1: the first half times the second, and so on;
 * what an odd length leaves over is multiplied at the end. */
static ops_array *product_along(ops_array *x, uint32_t axis)
{
    ops_array *rest = NULL;
    if (x->view.shape[axis] == 0) {
        return ones_along(x, axis);
    }
    while (x && x->view.shape[axis] > 1) {
        const int64_t length = x->view.shape[axis], half = length / 2;
        if (length % 2) {
            ops_array *last = ops_compose_slice(x, axis, length - 1, 1, 1);
            rest = rest ? multiply(rest, last) : last;
            if (!rest) {
                return NULL;
            }
        }
        x = multiply(ops_compose_slice(x, axis, 0, half, 1),
                     ops_compose_slice(x, axis, half, half, 1));
    }
    return rest && x ? multiply(x, rest) : x;
}

/* Each element times what is 1, 2, 4, ... places before it. */
static ops_array *products_along(ops_array *x, uint32_t axis)
{
    const int64_t length = x->view.shape[axis];
    for (int64_t step = 1; x && step < length; step *= 2) {
        ops_array *const parts[2] = {
            ops_compose_slice(x, axis, 0, step, 1),
            multiply(ops_compose_slice(x, axis, step, length - step, 1),
                     ops_compose_slice(x, axis, 0, length - step, 1)),
        };
        x = parts[0] && parts[1] ? ops_array_concatenate((int32_t)axis, parts, 2) : NULL;
    }
    return x;
}

/* Checks x, and an axis of it that is not the one of the parts. */
static hal_status check_along(const char *function, int32_t axis, const ops_array *x,
                              uint32_t *along)
{
    HAL_TRY(ops_complex_check(function, "x", x));
    ops_tensor elements = x->view;
    elements.rank--;
    return ops_check_axis(function, "axis", &elements, axis, along);
}

/* x without an axis, which has length 1. */
static ops_array *axis_drop(ops_array *x, uint32_t axis)
{
    int64_t shape[OPS_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (i != axis) {
            shape[rank++] = x->view.shape[i];
        }
    }
    return ops_array_reshape(x, rank, shape);
}

static ops_array *product_reduce(ops_array *x, uint32_t axis, bool keep_axis)
{
    ops_array *made = product_along(x, axis);
    return made && !keep_axis ? axis_drop(made, axis) : made;
}

/* Numbers that are summed side by side, and how many there have to be along an axis for that. */
enum { SIDE_SUMS = 16, MIN_SIDE_AXIS = 64 };

/* The sum along an axis whose numbers are neighbours in memory, which stays with length 1: first of
 * those that are SIDE_SUMS apart, by lines of pairs, then of these sums and of the rest. */
static ops_array *sum_neighbours(ops_array *x, uint32_t axis)
{
    int64_t shape[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(x, shape);
    const int64_t length = shape[axis], whole = length / SIDE_SUMS * SIDE_SUMS;
    ops_array *main = ops_compose_slice(x, axis, 0, whole, 1);
    shape[axis] = whole / SIDE_SUMS;
    shape[axis + 1] = 2 * (int64_t)SIDE_SUMS;
    main = main ? ops_array_reshape(main, rank, shape) : NULL;
    main = main ? ops_array_reduce(OPS_REDUCE_SUM, (int32_t)axis, 1, main) : NULL;
    shape[axis] = SIDE_SUMS;
    shape[axis + 1] = 2;
    main = main ? ops_array_reshape(main, rank, shape) : NULL;
    if (main && whole < length) {
        ops_array *const parts[2] = {main, ops_compose_slice(x, axis, whole, length - whole, 1)};
        main = parts[1] ? ops_array_concatenate((int32_t)axis, parts, 2) : NULL;
    }
    return main ? ops_array_reduce(OPS_REDUCE_SUM, (int32_t)axis, 1, main) : NULL;
}

/* Whether the numbers along an axis are neighbours, and many. */
static bool are_neighbours(const ops_array *x, uint32_t axis)
{
    const ops_tensor *view = &x->view;
    return axis + 2 == view->rank && view->shape[axis] >= MIN_SIDE_AXIS &&
           view->stride[axis + 1] == 1 && view->stride[axis] == 2;
}

/* The sum or mean along an axis. */
static ops_array *sum_reduce(ops_reduction reduction, ops_array *x, uint32_t axis, bool keep_axis)
{
    if (!are_neighbours(x, axis)) {
        return ops_array_reduce(reduction, (int32_t)axis, keep_axis, x);
    }
    ops_array *sum = sum_neighbours(x, axis);
    if (sum && reduction == OPS_REDUCE_MEAN) {
        sum = ops_array_binary_scalar(OPS_DIV, sum, (double)x->view.shape[axis]);
    }
    return sum && !keep_axis ? axis_drop(sum, axis) : sum;
}

ops_array *ops_complex_reduce(ops_reduction reduction, int32_t axis, int keep_axis, ops_array *x)
{
    const char *function = "ops_complex_reduce";
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    ops_array *made = NULL;
    uint32_t along;
    if (!arrays) {
        return NULL;
    }
    if (reduction != OPS_REDUCE_SUM && reduction != OPS_REDUCE_MEAN &&
        reduction != OPS_REDUCE_PRODUCT) {
        ops_invalid("%s: reduction: expected OPS_REDUCE_SUM, _MEAN or _PRODUCT, got %d", function,
                    (int)reduction);
    } else if (check_along(function, axis, x, &along) == HAL_OK) {
        made = reduction == OPS_REDUCE_PRODUCT ? product_reduce(x, along, keep_axis != 0)
                                               : sum_reduce(reduction, x, along, keep_axis != 0);
    }
    return ops_compose_end(arrays, made);
}

ops_array *ops_complex_scan(ops_scan_kind kind, int32_t axis, ops_array *x)
{
    const char *function = "ops_complex_scan";
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    ops_array *made = NULL;
    uint32_t along;
    if (!arrays) {
        return NULL;
    }
    if (kind != OPS_SCAN_SUM && kind != OPS_SCAN_PRODUCT) {
        ops_invalid("%s: kind: expected OPS_SCAN_SUM or _PRODUCT, got %d", function, (int)kind);
    } else if (check_along(function, axis, x, &along) == HAL_OK) {
        made = kind == OPS_SCAN_SUM ? ops_array_scan(kind, (int32_t)along, x)
                                    : products_along(x, along);
    }
    return ops_compose_end(arrays, made);
}

/* ---- Matrix products ---- */

/* Checks [m, k] and [k, n] with their batch axes and the axes of the parts. */
static hal_status check_product(const ops_array *a, const ops_array *b)
{
    const char *function = "ops_complex_matmul";
    HAL_TRY(ops_complex_check(function, "a", a));
    HAL_TRY(ops_complex_check(function, "b", b));
    const ops_tensor *x = &a->view, *y = &b->view;
    if (x->rank >= 3 && x->rank <= 4 && y->rank >= 3 && y->rank <= 4 &&
        x->shape[x->rank - 2] == y->shape[y->rank - 3]) {
        return HAL_OK;
    }
    char text[2][OPS_TEXT_BYTES];
    return ops_invalid("%s: a and b: expected [m, k, 2] and [k, n, 2], each with an optional batch "
                       "axis in front, got %s and %s",
                       function, ops_describe(x, text[0]), ops_describe(y, text[1]));
}

/* x with its axes after the batch axis, if any, joined to two. */
static ops_array *as_matrix(bool has_batch, int64_t rows, int64_t columns, ops_array *x)
{
    if (!x) {
        return NULL;
    }
    const int64_t shape[3] = {x->view.shape[0], rows, columns};
    return ops_array_reshape(x, has_batch ? 3 : 2, has_batch ? shape : shape + 1);
}

/* b [k, n, 2] as a real matrix [2 k, 2 n], in which a row of b is followed by i times that row: so
 * that products with it are those of complex numbers. */
static ops_array *as_real_factor(ops_array *b)
{
    int64_t shape[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(b, shape);
    const bool has_batch = rank == 4;
    const int64_t k = shape[rank - 3], n = shape[rank - 2];
    shape[rank - 2] = 1;
    shape[rank - 1] = n;
    shape[rank] = 2;
    ops_array *row = ops_array_reshape(b, rank + 1, shape);
    ops_array *signs = ops_array_iota(b->owner->context, b->view.type, 2, -1, 2);
    ops_array *turned = row ? ops_mul(ops_array_slice(row, -1, 1, 2, -1), signs) : NULL;
    ops_array *const parts[2] = {row, turned};
    return turned ? as_matrix(has_batch, 2 * k, 2 * n, ops_array_concatenate(-3, parts, 2)) : NULL;
}

/* a b by a copy of b, see as_real_factor: [m, n, 2]. */
static ops_array *multiply_by_factor(ops_array *a, ops_array *b, uint32_t precision)
{
    const bool has_batch = a->view.rank == 4;
    const int64_t *lengths = a->view.shape + has_batch;
    int64_t shape[OPS_MAX_RANK];
    ops_array *rows = as_matrix(has_batch, lengths[0], 2 * lengths[1], a);
    ops_array *product = ops_array_matmul(rows, as_real_factor(b), precision);
    if (!product) {
        return NULL;
    }
    const uint32_t rank = ops_compose_shape(product, shape);
    shape[rank - 1] /= 2;
    shape[rank] = 2;
    return ops_array_reshape(product, rank + 1, shape);
}

/* a b by a copy of a as real rows [2 m, k], of the real parts and of the imaginary ones, times b as
 * it is, [k, 2 n]; then the four products of parts are added. */
static ops_array *multiply_by_rows(ops_array *a, ops_array *b, uint32_t precision)
{
    const bool has_batch = a->view.rank == 4;
    const uint32_t first = has_batch ? 1 : 0;
    const int64_t m = a->view.shape[first], k = a->view.shape[first + 1];
    const int64_t n = b->view.shape[b->view.rank - 2];
    const int32_t plain[3] = {2, 0, 1}, batched[4] = {0, 3, 1, 2};
    int64_t shape[OPS_MAX_RANK];
    ops_array *rows =
        as_matrix(has_batch, 2 * m, k, ops_array_permute(a, has_batch ? batched : plain));
    ops_array *product =
        ops_array_matmul(rows, as_matrix(b->view.rank == 4, k, 2 * n, b), precision);
    if (!product) {
        return NULL;
    }
    const uint32_t axis = ops_compose_shape(product, shape) - 2;
    const int64_t lengths[4] = {2, m, n, 2};
    memcpy(shape + axis, lengths, sizeof lengths);
    product = ops_array_reshape(product, axis + 4, shape);
    ops_array *of[2] = {NULL, NULL}; /* the products of a's real and of its imaginary parts */
    shape[axis] = m;
    shape[axis + 1] = n;
    shape[axis + 2] = 2;
    for (uint32_t i = 0; product && i < 2; i++) {
        of[i] = ops_compose_slice(product, axis, i, 1, 1);
        of[i] = of[i] ? ops_array_reshape(of[i], axis + 3, shape) : NULL;
    }
    const ops_complex_parts re = ops_complex_split(of[0]), im = ops_complex_split(of[1]);
    return ops_complex_join_parts(
        (ops_complex_parts){ops_sub(re.re, im.im), ops_add(re.im, im.re)});
}

/* Whether the second way moves fewer bytes: of a [m, k] and b [k, n] the first one reads b and
 * writes it twice. */
static bool rows_are_fewer(const ops_array *a, const ops_array *b)
{
    const double m = (double)a->view.shape[a->view.rank - 3];
    const double k = (double)a->view.shape[a->view.rank - 2];
    const double n = (double)b->view.shape[b->view.rank - 2];
    return 4 * m * k + 8 * m * n < 6 * k * n;
}

ops_array *ops_complex_matmul(ops_array *a, ops_array *b, uint32_t precision)
{
    ops_array *const operands[2] = {a, b};
    ops_arrays *arrays = ops_compose_begin("ops_complex_matmul", operands, 2);
    ops_array *made = NULL;
    if (!arrays) {
        return NULL;
    }
    if (check_product(a, b) == HAL_OK) {
        made = rows_are_fewer(a, b) ? multiply_by_rows(a, b, precision)
                                    : multiply_by_factor(a, b, precision);
    }
    return ops_compose_end(arrays, made);
}
