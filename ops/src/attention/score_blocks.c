/* Blocks of rows of scores, see score_blocks.h. */
#include "score_blocks.h"

#include <ops/gemm.h>
#include <ops/index.h>

#include "tensor/allocation.h"
#include "tensor/expression.h"

#include <math.h>

/* Rows of a block at least, and what others are a multiple of. */
#define LEAST_ROWS 32

/* Causal blocks have multiples of an eighth of the columns: few shapes. */
#define CAUSAL_PARTS 8
#define LEAST_CAUSAL_PART 64

/* ---- The epilogue of the scores ---- */

/* Inputs of a product's epilogue: the score, row, column and batch; then the mask, and the last
 * column of a row. */
static hal_status epilogue_make(ops_attention_blocks *a)
{
    hal_ir_builder *b;
    const bool has_mask = a->call->options.mask != NULL;
    if (!has_mask && !a->call->options.causal) {
        return HAL_OK;
    }
    HAL_TRY(hal_ir_builder_create_fragment("scores", &b));
    const hal_ir_value least = hal_ir_number(b, a->call->accumulator, -INFINITY);
    hal_ir_value score = hal_ir_input(b, 0, a->call->accumulator);
    hal_ir_input(b, 1, HAL_TYPE_U32);
    const hal_ir_value column = hal_ir_input(b, 2, HAL_TYPE_U32);
    hal_ir_input(b, 3, HAL_TYPE_U32);
    if (has_mask) {
        const hal_ir_value mask = hal_ir_input(b, 4, hal_type_of_value(a->call->mask.type));
        score = a->call->mask.type == HAL_TYPE_BOOL ? hal_ir_select(b, mask, score, least)
                                                    : hal_ir_add(b, score, mask);
    }
    if (a->call->options.causal) {
        const hal_ir_value limit = hal_ir_input(b, has_mask ? 5 : 4, HAL_TYPE_I32);
        const hal_ir_value is_seen = hal_ir_le(b, hal_ir_cast(b, HAL_TYPE_I32, column), limit);
        score = hal_ir_select(b, is_seen, score, least);
    }
    hal_ir_output(b, 0, score);
    return ops_expression_create(b, &a->epilogue);
}

/* The last column that each row has. */
static hal_status limits_make(ops_attention_blocks *a)
{
    if (!a->call->options.causal) {
        return HAL_OK;
    }
    a->limits =
        (ops_tensor){.type = HAL_TYPE_I32, .rank = 1, .shape = {a->call->rows}, .stride = {1}};
    HAL_TRY(ops_buffer_create(a->context, (uint64_t)a->call->rows * sizeof(int32_t),
                              &a->limits.buffer));
    return ops_iota(a->context, (double)(a->call->columns - a->call->rows), 1, &a->limits);
}

/* ---- Sizes ---- */

/* Rows of a block at most: causal ones of several blocks skip columns. */
static uint64_t causal_rows(const ops_attention_blocks *a)
{
    const int64_t part = (a->call->rows / CAUSAL_PARTS + LEAST_ROWS - 1) / LEAST_ROWS * LEAST_ROWS;
    return (uint64_t)(a->call->options.causal && part > 0 && part < a->call->rows ? part
                                                                                  : a->call->rows);
}

static hal_status memory_make(ops_attention_blocks *a, uint64_t bytes, bool has_both)
{
    const uint64_t most = a->call->options.max_workspace ? a->call->options.max_workspace : bytes;
    const uint32_t size = hal_type_size(a->call->accumulator);
    const uint32_t both = size + (has_both ? hal_type_size(a->call->type) : 0);
    const uint64_t columns = a->call->columns > 0 ? (uint64_t)a->call->columns : 1;
    uint64_t rows = most / (columns * both);
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows;
    const uint64_t part = causal_rows(a);
    rows = rows < part * (uint64_t)a->call->y.shape[OPS_ATTENTION_BATCH]
               ? rows
               : part * (uint64_t)a->call->y.shape[OPS_ATTENTION_BATCH];
    const uint64_t block = rows < part ? rows - rows % LEAST_ROWS : part;
    a->rows = (int64_t)block;
    const uint64_t batch = rows / (uint64_t)a->rows;
    a->batch = batch < (uint64_t)a->call->y.shape[OPS_ATTENTION_BATCH]
                   ? (int64_t)batch
                   : a->call->y.shape[OPS_ATTENTION_BATCH];
    const uint64_t elements = (uint64_t)a->batch * (uint64_t)a->rows * columns;
    HAL_TRY(ops_buffer_create(a->context, elements * size, &a->scores));
    if (!has_both) {
        a->weights = hal_buffer_retain(a->scores);
        return HAL_OK;
    }
    return ops_buffer_create(a->context, elements * hal_type_size(a->call->type), &a->weights);
}

void ops_attention_blocks_release(ops_attention_blocks *a)
{
    ops_expression_destroy(a->epilogue);
    hal_buffer_release(a->limits.buffer);
    hal_buffer_release(a->scores);
    hal_buffer_release(a->weights);
    *a = (ops_attention_blocks){0};
}

hal_status ops_attention_blocks_make(const ops_attention_call *call, uint64_t bytes, bool has_both,
                                     ops_attention_blocks *blocks)
{
    *blocks = (ops_attention_blocks){.call = call, .context = call->context};
    hal_status status = epilogue_make(blocks);
    status = status == HAL_OK ? limits_make(blocks) : status;
    status = status == HAL_OK ? memory_make(blocks, bytes, has_both) : status;
    if (status != HAL_OK) {
        ops_attention_blocks_release(blocks);
    }
    return status;
}

/* ---- Parts of tensors ---- */

ops_tensor ops_attention_block_matrices(const ops_tensor *x, const ops_attention_block *at,
                                        int64_t first_row, int64_t rows)
{
    const bool has_batch = x->shape[OPS_ATTENTION_BATCH] > 1;
    ops_tensor made = *x;
    made.rank = OPS_ATTENTION_RANK - 1;
    made.offset +=
        (x->shape[OPS_ATTENTION_OUTER] > 1 ? at->outer * x->stride[OPS_ATTENTION_OUTER] : 0) +
        (has_batch ? at->batch * x->stride[OPS_ATTENTION_BATCH] : 0) +
        first_row * x->stride[OPS_ATTENTION_ROW];
    for (uint32_t i = 0; i < made.rank; i++) {
        made.shape[i] = x->shape[i + 1];
        made.stride[i] = x->stride[i + 1];
    }
    made.shape[0] = has_batch ? at->batch_count : 1;
    made.shape[1] = rows;
    return made;
}

ops_tensor ops_attention_block_of(const ops_attention_block *at, hal_type type, hal_buffer *buffer)
{
    return (ops_tensor){.buffer = buffer,
                        .type = type,
                        .rank = OPS_ATTENTION_RANK - 1,
                        .shape = {at->batch_count, at->row_count, at->columns},
                        .stride = {at->row_count * at->columns, at->columns, 1}};
}

hal_status ops_attention_block_score(const ops_attention_blocks *a, const ops_attention_block *at,
                                     const ops_tensor *scores)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    const ops_tensor q = ops_attention_block_matrices(&a->call->q, at, at->row, at->row_count);
    ops_tensor k = ops_attention_block_matrices(&a->call->k, at, 0, at->columns), inputs[2],
               transposed;
    HAL_TRY(ops_tensor_transpose(&k, 1, 2, &transposed));
    options.precision = a->call->options.precision;
    options.alpha = a->call->options.scale;
    options.epilogue = a->epilogue;
    options.inputs = inputs;
    if (a->call->options.mask) {
        inputs[options.input_count] =
            ops_attention_block_matrices(&a->call->mask, at, at->row, at->row_count);
        inputs[options.input_count++].shape[2] = at->columns;
    }
    if (a->call->options.causal) {
        inputs[options.input_count] = a->limits;
        inputs[options.input_count].rank = 2;
        inputs[options.input_count].offset = at->row;
        inputs[options.input_count].shape[0] = at->row_count;
        inputs[options.input_count].shape[1] = inputs[options.input_count].stride[1] = 1;
        options.input_count++;
    }
    return ops_gemm(a->context, &options, &q, &transposed, scores);
}

/* Columns of a block whose last row is `end` - 1. */
static int64_t columns_of(const ops_attention_blocks *a, int64_t end)
{
    const int64_t seen = end + a->call->columns - a->call->rows;
    int64_t part = (a->call->columns + CAUSAL_PARTS - 1) / CAUSAL_PARTS;
    part = part < LEAST_CAUSAL_PART ? LEAST_CAUSAL_PART : part;
    if (!a->call->options.causal || seen >= a->call->columns) {
        return a->call->columns;
    }
    const int64_t columns = seen < 1 ? part : (seen + part - 1) / part * part;
    return columns < a->call->columns ? columns : a->call->columns;
}

/* ---- Walk ---- */

hal_status ops_attention_blocks_each(const ops_attention_blocks *a,
                                     hal_status (*each)(const ops_attention_block *at,
                                                        const void *user),
                                     const void *user)
{
    hal_status status = HAL_OK;
    const int64_t batch = a->call->y.shape[OPS_ATTENTION_BATCH];
    const int64_t last = (a->call->rows - 1) / a->rows * a->rows;
    ops_attention_block at;
    for (at.outer = 0; at.outer < a->call->y.shape[OPS_ATTENTION_OUTER]; at.outer++) {
        for (at.batch = 0; at.batch < batch; at.batch += a->batch) {
            const int64_t left = batch - at.batch;
            at.batch_count = left < a->batch ? left : a->batch;
            for (at.row = last; at.row >= 0 && status == HAL_OK; at.row -= a->rows) {
                const int64_t rest = a->call->rows - at.row;
                at.row_count = rest < a->rows ? rest : a->rows;
                at.columns = columns_of(a, at.row + at.row_count);
                status = each(&at, user);
            }
        }
    }
    return status;
}
