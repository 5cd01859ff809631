/* Complex arrays: reductions, running sums and products, matrix products. */
#include "complex_parts.h"

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

static ops_array *product_reduce(ops_array *x, uint32_t axis, bool keep_axis)
{
    ops_array *made = product_along(x, axis);
    int64_t shape[OPS_MAX_RANK];
    uint32_t rank = 0;
    if (!made || keep_axis) {
        return made;
    }
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (i != axis) {
            shape[rank++] = x->view.shape[i];
        }
    }
    return ops_array_reshape(made, rank, shape);
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
        made = reduction == OPS_REDUCE_PRODUCT
                   ? product_reduce(x, along, keep_axis != 0)
                   : ops_array_reduce(reduction, (int32_t)along, keep_axis, x);
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

ops_array *ops_complex_matmul(ops_array *a, ops_array *b, uint32_t precision)
{
    ops_array *const operands[2] = {a, b};
    ops_arrays *arrays = ops_compose_begin("ops_complex_matmul", operands, 2);
    ops_array *made = NULL;
    if (!arrays) {
        return NULL;
    }
    if (check_product(a, b) == HAL_OK) {
        const bool has_batch = a->view.rank == 4;
        const int64_t *lengths = a->view.shape + has_batch;
        ops_array *rows = as_matrix(has_batch, lengths[0], 2 * lengths[1], a);
        ops_array *product = ops_array_matmul(rows, as_real_factor(b), precision);
        if (product) {
            int64_t shape[OPS_MAX_RANK];
            const uint32_t rank = ops_compose_shape(product, shape);
            shape[rank - 1] /= 2;
            shape[rank] = 2;
            made = ops_array_reshape(product, rank + 1, shape);
        }
    }
    return ops_compose_end(arrays, made);
}
