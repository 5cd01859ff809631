/* Matrix products. */
#include "operators.h"

/* The product of arrays of any rank, with the axes before the last two broadcast as NumPy does. */
static ops_array *multiply(ops_array *a, ops_array *b)
{
    int64_t x[ONNX_MAX_RANK], y[ONNX_MAX_RANK], result[ONNX_MAX_RANK];
    const uint32_t rank = ops_array_get_rank(a) > ops_array_get_rank(b) ? ops_array_get_rank(a)
                                                                        : ops_array_get_rank(b);
    if (rank <= 2) {
        return ops_matmul(a, b);
    }
    a = onnx_rank(a, rank);
    b = onnx_rank(b, rank);
    onnx_shape(a, x);
    onnx_shape(b, y);
    int64_t batches = 1;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        result[i] = x[i] = y[i] = x[i] == 1 ? y[i] : x[i];
        batches *= result[i];
    }
    result[rank - 2] = x[rank - 2];
    result[rank - 1] = y[rank - 1];
    a = ops_array_broadcast(a, rank, x);
    b = ops_array_broadcast(b, rank, y);
    a = ops_array_reshape(a, 3, (int64_t[]){batches, x[rank - 2], x[rank - 1]});
    b = ops_array_reshape(b, 3, (int64_t[]){batches, y[rank - 2], y[rank - 1]});
    return ops_array_reshape(ops_matmul(a, b), rank, result);
}

/* As NumPy: vectors are a row on the left and a column on the right. Integers are multiplied in
 * F64, which holds the products of the standard's cases. */
static ops_array *matmul(ops_array *a, ops_array *b)
{
    int64_t shape[ONNX_MAX_RANK], kept[ONNX_MAX_RANK];
    const bool row = ops_array_get_rank(a) == 1, column = ops_array_get_rank(b) == 1;
    a = row ? ops_array_reshape(a, 2, (int64_t[]){1, -1}) : a;
    b = column ? ops_array_reshape(b, 2, (int64_t[]){-1, 1}) : b;
    ops_array *y = multiply(a, b);
    const uint32_t rank = onnx_shape(y, shape);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!(row && i == rank - 2) && !(column && i == rank - 1)) {
            kept[count++] = shape[i];
        }
    }
    return row || column ? ops_array_reshape(y, count, kept) : y;
}

static void map_matmul(onnx_call *c)
{
    const hal_type type = ops_array_get_type(c->x[0]);
    if (hal_type_is_float(type)) {
        c->y[0] = matmul(c->x[0], c->x[1]);
        return;
    }
    ops_array *a = ops_array_cast(HAL_TYPE_F64, c->x[0]);
    ops_array *b = ops_array_cast(HAL_TYPE_F64, c->x[1]);
    c->y[0] = ops_array_cast(type, matmul(a, b));
}

static void map_gemm(onnx_call *c)
{
    ops_array *a = c->x[0], *b = c->x[1];
    a = onnx_integer(c, "transA", 0) ? ops_array_transpose(a, 0, 1) : a;
    b = onnx_integer(c, "transB", 0) ? ops_array_transpose(b, 0, 1) : b;
    ops_array *y = ops_mul_scalar(ops_matmul(a, b), onnx_number(c, "alpha", 1));
    if (c->node->input_count > 2 && c->x[2]) {
        y = ops_add(y, ops_mul_scalar(c->x[2], onnx_number(c, "beta", 1)));
    }
    c->y[0] = y;
}

/* x - zero point in I32, along an axis where there are several zero points. */
static ops_array *shifted(const onnx_call *c, uint32_t x, uint32_t zero, bool by_row)
{
    ops_array *value = ops_array_cast(HAL_TYPE_I32, c->x[x]);
    ops_array *point = c->node->input_count > zero ? c->x[zero] : NULL;
    if (!point) {
        return value;
    }
    point = ops_array_cast(HAL_TYPE_I32, point);
    if (by_row && ops_array_get_rank(point) == 1 && ops_array_get_length(point, 0) > 1) {
        point = ops_array_reshape(point, 2, (int64_t[]){-1, 1});
    }
    return ops_sub(value, point);
}

static void map_matmul_integer(onnx_call *c)
{
    c->y[0] = matmul(shifted(c, 0, 2, true), shifted(c, 1, 3, false));
}

const onnx_operator onnx_matrix_operators[] = {
    {"MatMul", map_matmul},
    {"Gemm", map_gemm},
    {"MatMulInteger", map_matmul_integer},
    {NULL, NULL},
};
