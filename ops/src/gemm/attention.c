/* Attention by blocks of rows, see ops/attention.h: the scores of a block, their softmax, and the
 * product with the values. The blocks use one buffer in turn, which on a processor stays in its
 * cache. */
#include "attention.h"

#include <ops/gemm.h>
#include <ops/index.h>
#include <ops/reduce.h>

#include "tensor/allocation.h"
#include "tensor/context.h"
#include "tensor/expression.h"
#include "tensor/overlap.h"

#include <math.h>

/* The axes of all tensors. */
enum { OUTER, BATCH, ROW, COLUMN, RANK };

/* Rows of a block at least, and what others are a multiple of. */
#define LEAST_ROWS 32

/* Causal blocks have multiples of an eighth of the columns: few shapes. */
#define CAUSAL_PARTS 8
#define LEAST_CAUSAL_PART 64

typedef struct attention {
    ops_context *context;
    ops_attention_options options;
    hal_type type, accumulator;
    ops_tensor q, k, v, y, mask, limits;
    int64_t rows, columns;           /* m, n */
    int64_t block_batch, block_rows; /* of a block */
    ops_expression *epilogue;        /* of the scores; null: none */
    hal_buffer *scores, *weights;    /* the same where the types are */
} attention;

/* ---- Arguments ---- */

/* The tensor with leading axes of length 1. */
static ops_tensor with_all_axes(const ops_tensor *tensor)
{
    ops_tensor made = *tensor;
    const uint32_t missing = RANK - tensor->rank;
    made.rank = RANK;
    for (uint32_t i = 0; i < RANK; i++) {
        made.shape[i] = i < missing ? 1 : tensor->shape[i - missing];
        made.stride[i] = i < missing ? 0 : tensor->stride[i - missing];
    }
    return made;
}

static hal_status refuse_shapes(const char *function, const ops_tensor *q, const ops_tensor *k,
                                const ops_tensor *v)
{
    char text[3][OPS_TEXT_BYTES];
    return ops_invalid(
        "%s: k, v: expected floats of the type of q, [..., n, d] and [..., n, e] for "
        "q [..., m, d], with at most two leading axes, those of q or of length 1, "
        "got q %s, k %s, v %s",
        function, ops_describe(q, text[0]), ops_describe(k, text[1]), ops_describe(v, text[2]));
}

static bool leading_axes_fit(const ops_tensor *x, const ops_tensor *q)
{
    return (x->shape[OUTER] == q->shape[OUTER] || x->shape[OUTER] == 1) &&
           (x->shape[BATCH] == q->shape[BATCH] || x->shape[BATCH] == 1);
}

static hal_status check_mask(const char *function, const ops_tensor *mask, hal_type type,
                             uint32_t rank, const int64_t *shape)
{
    if (mask->type != HAL_TYPE_BOOL &&
        (!hal_type_is_float(mask->type) || hal_type_of_value(mask->type) != type)) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: mask: expected bool, or floats that are %s as values, got %s",
                           function, hal_type_name(type), ops_describe(mask, text));
    }
    return ops_check_broadcast(function, "mask", mask, rank, shape);
}

hal_status ops_attention_describe(const char *function, const ops_tensor *q, const ops_tensor *k,
                                  const ops_tensor *v, const ops_tensor *mask, ops_tensor *y)
{
    const ops_tensor *all[3] = {q, k, v};
    for (uint32_t i = 0; i < 3; i++) {
        if (all[i]->rank < 2 || all[i]->rank > RANK || all[i]->rank > q->rank ||
            all[i]->type != q->type || !hal_type_is_float(q->type)) {
            return refuse_shapes(function, q, k, v);
        }
    }
    const ops_tensor wide_q = with_all_axes(q), wide_k = with_all_axes(k),
                     wide_v = with_all_axes(v);
    if (wide_v.shape[ROW] != wide_k.shape[ROW] || wide_k.shape[COLUMN] != wide_q.shape[COLUMN] ||
        !leading_axes_fit(&wide_k, &wide_q) || !leading_axes_fit(&wide_v, &wide_q) ||
        wide_q.shape[ROW] > INT32_MAX || wide_k.shape[ROW] > INT32_MAX) {
        return refuse_shapes(function, q, k, v);
    }
    *y = *q;
    y->buffer = NULL;
    y->shape[q->rank - 1] = wide_k.shape[ROW];
    if (mask) {
        HAL_TRY(check_mask(function, mask, hal_type_of_value(q->type), q->rank, y->shape));
    }
    y->shape[q->rank - 1] = wide_v.shape[COLUMN];
    *y = ops_row_major(y);
    return HAL_OK;
}

/* Memory that is written is not read. */
static hal_status check_overlap(const attention *a, const ops_tensor *const inputs[3],
                                const ops_tensor *y)
{
    static const char *const names[4] = {"q", "k", "v", "options.mask"};
    for (uint32_t i = 0; i < 4; i++) {
        const ops_tensor *x = i < 3 ? inputs[i] : a->options.mask;
        if (x && ops_overlap(x, y)) {
            return ops_invalid("ops_attention: y: expected memory that %s does not use, got an "
                               "overlap",
                               names[i]);
        }
    }
    return HAL_OK;
}

static hal_status check_memory(const attention *a, const ops_tensor *const inputs[3],
                               const ops_tensor *y, const ops_tensor *result)
{
    static const char *const names[4] = {"q", "k", "v", "options.mask"};
    char text[2][OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < 4; i++) {
        const ops_tensor *x = i < 3 ? inputs[i] : a->options.mask;
        if (x) {
            HAL_TRY(ops_check_tensor(a->context, "ops_attention", names[i], x));
        }
    }
    HAL_TRY(ops_check_output(a->context, "ops_attention", "y", y));
    if (y->type != result->type || !ops_same_shape(y, result)) {
        return ops_invalid("ops_attention: y: expected %s, got %s", ops_describe(result, text[0]),
                           ops_describe(y, text[1]));
    }
    return check_overlap(a, inputs, y);
}

static hal_status check_call(attention *a, const ops_attention_options *options,
                             const ops_tensor *const inputs[3], const ops_tensor *y)
{
    static const char function[] = "ops_attention";
    ops_tensor result;
    if (options) {
        HAL_TRY(ops_check_size(function, "options", options->size, sizeof *options));
        a->options = *options;
    }
    HAL_TRY(ops_attention_describe(function, inputs[0], inputs[1], inputs[2], a->options.mask,
                                   &result));
    HAL_TRY(check_memory(a, inputs, y, &result));
    a->type = y->type;
    a->accumulator = hal_type_of_value(y->type);
    a->q = with_all_axes(inputs[0]);
    a->k = with_all_axes(inputs[1]);
    a->v = with_all_axes(inputs[2]);
    a->y = with_all_axes(y);
    a->rows = a->q.shape[ROW];
    a->columns = a->k.shape[ROW];
    if (a->options.scale == 0) {
        a->options.scale = 1 / sqrt((double)a->q.shape[COLUMN]);
    }
    const int64_t shape[RANK] = {a->y.shape[OUTER], a->y.shape[BATCH], a->rows, a->columns};
    return a->options.mask ? ops_tensor_broadcast(a->options.mask, RANK, shape, &a->mask) : HAL_OK;
}

/* ---- The epilogue of the scores ---- */

/* Inputs of a product's epilogue: the score, row, column and batch; then the mask, and the last
 * column of a row. */
static hal_status epilogue_make(attention *a)
{
    hal_ir_builder *b;
    const bool has_mask = a->options.mask != NULL;
    if (!has_mask && !a->options.causal) {
        return HAL_OK;
    }
    HAL_TRY(hal_ir_builder_create_fragment("scores", &b));
    const hal_ir_value least = hal_ir_number(b, a->accumulator, -INFINITY);
    hal_ir_value score = hal_ir_input(b, 0, a->accumulator);
    hal_ir_input(b, 1, HAL_TYPE_U32);
    const hal_ir_value column = hal_ir_input(b, 2, HAL_TYPE_U32);
    hal_ir_input(b, 3, HAL_TYPE_U32);
    if (has_mask) {
        const hal_ir_value mask = hal_ir_input(b, 4, hal_type_of_value(a->mask.type));
        score = a->mask.type == HAL_TYPE_BOOL ? hal_ir_select(b, mask, score, least)
                                              : hal_ir_add(b, score, mask);
    }
    if (a->options.causal) {
        const hal_ir_value limit = hal_ir_input(b, has_mask ? 5 : 4, HAL_TYPE_I32);
        const hal_ir_value is_seen = hal_ir_le(b, hal_ir_cast(b, HAL_TYPE_I32, column), limit);
        score = hal_ir_select(b, is_seen, score, least);
    }
    hal_ir_output(b, 0, score);
    return ops_expression_create(b, &a->epilogue);
}

/* The last column that each row has. */
static hal_status limits_make(attention *a)
{
    if (!a->options.causal) {
        return HAL_OK;
    }
    a->limits = (ops_tensor){.type = HAL_TYPE_I32, .rank = 1, .shape = {a->rows}, .stride = {1}};
    HAL_TRY(ops_buffer_create(a->context, (uint64_t)a->rows * sizeof(int32_t), &a->limits.buffer));
    return ops_iota(a->context, (double)(a->columns - a->rows), 1, &a->limits);
}

/* ---- Blocks ---- */

/* Rows of a block at most: causal ones of several blocks skip columns. */
static uint64_t causal_rows(const attention *a)
{
    const int64_t part = (a->rows / CAUSAL_PARTS + LEAST_ROWS - 1) / LEAST_ROWS * LEAST_ROWS;
    return (uint64_t)(a->options.causal && part > 0 && part < a->rows ? part : a->rows);
}

static hal_status blocks_make(attention *a)
{
    const uint64_t most =
        a->options.max_workspace ? a->options.max_workspace : a->context->tuning->attention_bytes;
    const uint32_t size = hal_type_size(a->accumulator);
    const uint32_t both = size + (a->type == a->accumulator ? 0 : hal_type_size(a->type));
    const uint64_t columns = a->columns > 0 ? (uint64_t)a->columns : 1;
    uint64_t rows = most / (columns * both);
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows;
    const uint64_t part = causal_rows(a);
    rows = rows < part * (uint64_t)a->y.shape[BATCH] ? rows : part * (uint64_t)a->y.shape[BATCH];
    const uint64_t block = rows < part ? rows - rows % LEAST_ROWS : part;
    a->block_rows = (int64_t)block;
    const uint64_t batch = rows / (uint64_t)a->block_rows;
    a->block_batch = batch < (uint64_t)a->y.shape[BATCH] ? (int64_t)batch : a->y.shape[BATCH];
    const uint64_t elements = (uint64_t)a->block_batch * (uint64_t)a->block_rows * columns;
    HAL_TRY(ops_buffer_create(a->context, elements * size, &a->scores));
    if (a->type == a->accumulator) {
        a->weights = hal_buffer_retain(a->scores);
        return HAL_OK;
    }
    return ops_buffer_create(a->context, elements * hal_type_size(a->type), &a->weights);
}

/* A part of a tensor as a batch of matrices. An axis along which it is broadcast has length 1. */
typedef struct block {
    int64_t outer, batch, batch_count, row, row_count, columns;
} block;

static ops_tensor matrices(const ops_tensor *x, const block *at, int64_t first_row, int64_t rows)
{
    const bool has_batch = x->shape[BATCH] > 1;
    ops_tensor made = *x;
    made.rank = RANK - 1;
    made.offset += (x->shape[OUTER] > 1 ? at->outer * x->stride[OUTER] : 0) +
                   (has_batch ? at->batch * x->stride[BATCH] : 0) + first_row * x->stride[ROW];
    for (uint32_t i = 0; i < made.rank; i++) {
        made.shape[i] = x->shape[i + 1];
        made.stride[i] = x->stride[i + 1];
    }
    made.shape[0] = has_batch ? at->batch_count : 1;
    made.shape[1] = rows;
    return made;
}

static ops_tensor of_scores(const block *at, hal_type type, hal_buffer *buffer)
{
    return (ops_tensor){.buffer = buffer,
                        .type = type,
                        .rank = RANK - 1,
                        .shape = {at->batch_count, at->row_count, at->columns},
                        .stride = {at->row_count * at->columns, at->columns, 1}};
}

static hal_status block_score(const attention *a, const block *at, const ops_tensor *scores)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    const ops_tensor q = matrices(&a->q, at, at->row, at->row_count);
    ops_tensor k = matrices(&a->k, at, 0, at->columns), inputs[2], transposed;
    HAL_TRY(ops_tensor_transpose(&k, 1, 2, &transposed));
    options.precision = a->options.precision;
    options.alpha = a->options.scale;
    options.epilogue = a->epilogue;
    options.inputs = inputs;
    if (a->options.mask) {
        inputs[options.input_count] = matrices(&a->mask, at, at->row, at->row_count);
        inputs[options.input_count++].shape[2] = at->columns;
    }
    if (a->options.causal) {
        inputs[options.input_count] = a->limits;
        inputs[options.input_count].rank = 2;
        inputs[options.input_count].offset = at->row;
        inputs[options.input_count].shape[0] = at->row_count;
        inputs[options.input_count].shape[1] = inputs[options.input_count].stride[1] = 1;
        options.input_count++;
    }
    return ops_gemm(a->context, &options, &q, &transposed, scores);
}

static hal_status block_record(const attention *a, const block *at)
{
    const ops_tensor scores = of_scores(at, a->accumulator, a->scores);
    const ops_tensor weights = of_scores(at, a->type, a->weights);
    const ops_tensor v = matrices(&a->v, at, 0, at->columns);
    const ops_tensor y = matrices(&a->y, at, at->row, at->row_count);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = a->options.precision;
    HAL_TRY(block_score(a, at, &scores));
    HAL_TRY(ops_softmax(a->context, 2, &scores, &weights));
    return ops_gemm(a->context, &options, &weights, &v, &y);
}

/* Columns of a block whose last row is `end` - 1. */
static int64_t columns_of(const attention *a, int64_t end)
{
    const int64_t seen = end + a->columns - a->rows;
    int64_t part = (a->columns + CAUSAL_PARTS - 1) / CAUSAL_PARTS;
    part = part < LEAST_CAUSAL_PART ? LEAST_CAUSAL_PART : part;
    if (!a->options.causal || seen >= a->columns) {
        return a->columns;
    }
    const int64_t columns = seen < 1 ? part : (seen + part - 1) / part * part;
    return columns < a->columns ? columns : a->columns;
}

static hal_status blocks_record(const attention *a)
{
    hal_status status = HAL_OK;
    const int64_t batch = a->y.shape[BATCH];
    block at;
    for (at.outer = 0; at.outer < a->y.shape[OUTER]; at.outer++) {
        for (at.batch = 0; at.batch < batch; at.batch += a->block_batch) {
            const int64_t left = batch - at.batch;
            at.batch_count = left < a->block_batch ? left : a->block_batch;
            for (at.row = 0; at.row < a->rows && status == HAL_OK; at.row += a->block_rows) {
                const int64_t rest = a->rows - at.row;
                at.row_count = rest < a->block_rows ? rest : a->block_rows;
                at.columns = columns_of(a, at.row + at.row_count);
                status = block_record(a, &at);
            }
        }
    }
    return status;
}

hal_status ops_attention(ops_context *context, const ops_attention_options *options,
                         const ops_tensor *q, const ops_tensor *k, const ops_tensor *v,
                         const ops_tensor *y)
{
    attention a = {.context = context, .options = OPS_ATTENTION_OPTIONS_DEFAULT};
    if (!context || !q || !k || !v || !y) {
        return ops_invalid("ops_attention: %s: expected a pointer, got null", !context ? "context"
                                                                              : !q     ? "q"
                                                                              : !k     ? "k"
                                                                              : !v     ? "v"
                                                                                       : "y");
    }
    const ops_tensor *const inputs[3] = {q, k, v};
    HAL_TRY(check_call(&a, options, inputs, y));
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    if (a.columns == 0) {
        return ops_fill(context, 0, y);
    }
    hal_status status = epilogue_make(&a);
    status = status == HAL_OK ? limits_make(&a) : status;
    status = status == HAL_OK ? blocks_make(&a) : status;
    status = status == HAL_OK ? blocks_record(&a) : status;
    ops_expression_destroy(a.epilogue);
    hal_buffer_release(a.limits.buffer);
    hal_buffer_release(a.scores);
    hal_buffer_release(a.weights);
    return status;
}
