/* Products of quantised weights that are written as floats and multiplied by ops_gemm, see
 * quantised.h. On processors few rows take a piece of the columns at a time, whose copy stays in
 * the caches. */
#include "quantised.h"

#include "record.h"
#include "tensor/allocation.h"
#include "tensor/expression.h"

#include <ops/index.h>

/* Multiples of which the columns of a piece are, so that its C begins aligned; of weights that are
 * stored by rows more, since short rows are written slowly. */
enum { COLUMN_INPUT = 2, COLUMNS = 64, ROW_COLUMNS = 256 };

ops_tensor ops_quantised_layout(const ops_quantised_weights *w, hal_type type)
{
    const ops_tensor *values = &w->values;
    ops_tensor b = {.type = type, .rank = values->rank};
    const uint32_t rank = b.rank;
    const bool by_columns = values->stride[rank - 2] == 1 && values->stride[rank - 1] != 1;
    b.shape[0] = w->batch;
    b.shape[rank - 2] = w->k;
    b.shape[rank - 1] = w->n;
    b.stride[0] = w->k * w->n;
    b.stride[rank - 2] = by_columns ? 1 : w->n;
    b.stride[rank - 1] = by_columns ? w->k : 1;
    return b;
}

int64_t ops_quantised_copied_columns(const ops_context *context, const ops_quantised_copied *call)
{
    const ops_gemm_tuning *tuning = &context->tuning->gemm;
    const ops_quantised_weights *w = call->weights;
    const ops_expression *epilogue = call->options->epilogue;
    const int64_t rows = call->c->shape[call->c->rank - 2];
    const int64_t column = w->batch * w->k * (int64_t)hal_type_size(call->a->type);
    if (tuning->quantised_piece_bytes == 0 || rows > tuning->quantised_piece_rows || column == 0 ||
        (epilogue && ops_expression_reads(epilogue, COLUMN_INPUT, COLUMN_INPUT))) {
        return w->n;
    }
    const ops_tensor b = ops_quantised_layout(w, call->a->type);
    const int64_t multiple = b.stride[b.rank - 2] == 1 ? COLUMNS : ROW_COLUMNS;
    const int64_t most = tuning->quantised_piece_bytes / column / multiple * multiple;
    const int64_t columns = most > multiple ? most : multiple;
    return columns < w->n ? columns : w->n;
}

/* Columns of a tensor, or what it broadcasts along them. */
static ops_tensor slice_columns(const ops_tensor *t, int64_t first, int64_t count)
{
    ops_tensor slice = *t;
    if (t->rank > 0 && t->shape[t->rank - 1] > 1) {
        slice.offset += first * t->stride[t->rank - 1];
        slice.shape[t->rank - 1] = count;
    }
    return slice;
}

/* Whether B has the even steps of k before the odd ones, with A in the same order: two numbers of a
 * byte, which are neighbours along k, are written to two contiguous rows. */
static bool call_has_halves(const ops_context *context, const ops_quantised_copied *call,
                            const ops_tensor *b)
{
    return call->weights->bits == 4 && call->weights->k > 0 && b->stride[b->rank - 2] == 1 &&
           context->tuning->gemm.quantised_piece_bytes > 0 &&
           call->c->shape[call->c->rank - 2] <= context->tuning->gemm.quantised_piece_rows;
}

/* A copy of A whose even columns are before the odd ones. */
static hal_status copy_halves(ops_context *context, const ops_tensor *a, ops_tensor *copy)
{
    const uint32_t rank = a->rank;
    ops_tensor from = *a, to;
    from.rank = rank + 1;
    from.shape[rank - 1] = 2;
    from.shape[rank] = a->shape[rank - 1] / 2;
    from.stride[rank] = 2 * a->stride[rank - 1];
    HAL_TRY(ops_tensor_create(context, a->type, from.rank, from.shape, &to));
    const hal_status status = ops_copy(context, &from, &to);
    if (status != HAL_OK) {
        ops_tensor_release(&to);
        return status;
    }
    *copy = to;
    copy->rank = rank;
    copy->shape[rank - 1] = a->shape[rank - 1];
    copy->stride[rank - 1] = 1;
    return HAL_OK;
}

/* Columns `first` to `first + count - 1`; b has their copy. */
static hal_status multiply_piece(ops_context *context, const ops_quantised_copied *call,
                                 const ops_tensor *a, int64_t first, int64_t count, bool has_halves,
                                 const ops_tensor *whole)
{
    ops_quantised_weights w = *call->weights;
    ops_quantised given = *w.given;
    ops_gemm_options options = *call->options;
    ops_tensor zeros, inputs[OPS_GEMM_MAX_INPUTS], b = *whole;
    const uint32_t row = b.rank - 2, column = b.rank - 1;
    b.shape[column] = w.n = count;
    w.values = slice_columns(&w.values, first, count);
    given.scales = slice_columns(&given.scales, first, count);
    if (given.zeros) {
        zeros = slice_columns(given.zeros, first, count);
        given.zeros = &zeros;
    }
    w.given = &given;
    for (uint32_t i = 0; i < options.input_count; i++) {
        inputs[i] = slice_columns(&options.inputs[i], first, count);
    }
    options.inputs = options.input_count ? inputs : NULL;
    if (has_halves) {
        ops_tensor halves[2] = {b, b};
        halves[0].shape[row] = halves[1].shape[row] = w.k / 2;
        halves[1].offset += w.k / 2 * b.stride[row];
        HAL_TRY(ops_quantised_write_parts(context, &w, halves));
    } else {
        HAL_TRY(ops_quantised_write(context, &w, &b));
    }
    const ops_tensor c = slice_columns(call->c, first, count);
    return ops_gemm_run(context, &options, a, &b, &c);
}

hal_status ops_quantised_copied_run(ops_context *context, const ops_quantised_copied *call)
{
    const ops_quantised_weights *w = call->weights;
    const int64_t columns = ops_quantised_copied_columns(context, call);
    ops_quantised_weights piece = *w;
    piece.n = columns;
    ops_tensor b = ops_quantised_layout(&piece, call->a->type), a = *call->a;
    const uint64_t bytes = (uint64_t)ops_tensor_get_element_count(&b) * hal_type_size(b.type);
    const bool has_halves = call_has_halves(context, call, &b);
    HAL_TRY(ops_buffer_create(context, bytes ? bytes : 4, &b.buffer));
    hal_status status = has_halves ? copy_halves(context, call->a, &a) : HAL_OK;
    const bool has_copy = has_halves && status == HAL_OK;
    int64_t first = 0;
    do {
        const int64_t count = w->n - first < columns ? w->n - first : columns;
        status = status == HAL_OK ? multiply_piece(context, call, &a, first, count, has_halves, &b)
                                  : status;
        first += columns;
    } while (first < w->n && status == HAL_OK);
    if (has_copy) {
        ops_tensor_release(&a);
    }
    ops_tensor_release(&b);
    return status;
}
