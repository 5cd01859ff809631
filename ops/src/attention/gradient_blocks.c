/* The gradients of attention by blocks of rows, see gradient_blocks.h. Rows are complete, so that a
 * softmax gives their weights. Blocks add to dk and dv in one order. */
#include "gradient_blocks.h"

#include "score_blocks.h"

#include <ops/gemm.h>
#include <ops/index.h>
#include <ops/pointwise.h>
#include <ops/reduce.h>

#include "tensor/allocation.h"
#include "tensor/expression.h"

/* Sums of that many queries at least, and of heads of that many elements at most, are transposed:
 * products with few and long rows read the changes by rows, which others copy first. Longer heads
 * amortise the copy. */
#define LEAST_TURNED_QUERIES 256
#define MOST_TURNED_HEAD 64

typedef struct gradient_blocks {
    ops_attention_blocks blocks;
    ops_expression *change; /* w (g - delta), the epilogue of g */
    ops_tensor dk, dv; /* the results, or other memory with their shapes: F32 for narrow floats,
                             * or transposed */
} gradient_blocks;

/* Inputs of an epilogue: g, row, column and batch; then w and delta. */
static hal_ir_value change_emit(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    (void)user;
    return hal_ir_mul(b, in[4], hal_ir_sub(b, in[0], in[5]));
}

static hal_status change_make(gradient_blocks *g)
{
    const hal_type type = g->blocks.call->accumulator;
    const hal_type types[] = {type, HAL_TYPE_U32, HAL_TYPE_U32, HAL_TYPE_U32, type, type};
    return ops_expression_make("attention_change", types, sizeof types / sizeof types[0],
                               change_emit, NULL, &g->change);
}

/* ---- Sums of several blocks ---- */

/* Whether one product computes each element of the gradient of k or v. */
static bool is_one_product(const gradient_blocks *g, const ops_tensor *result)
{
    const int64_t *all = g->blocks.call->q.shape;
    return g->blocks.rows >= g->blocks.call->rows &&
           result->shape[OPS_ATTENTION_OUTER] == all[OPS_ATTENTION_OUTER] &&
           result->shape[OPS_ATTENTION_BATCH] == all[OPS_ATTENTION_BATCH];
}

/* Whether sums have transposed matrices. */
static bool suits_turned(const gradient_blocks *g, const ops_tensor *result)
{
    const int64_t *all = g->blocks.call->q.shape, *own = result->shape;
    const int64_t sharing = all[OPS_ATTENTION_OUTER] / own[OPS_ATTENTION_OUTER] *
                            (all[OPS_ATTENTION_BATCH] / own[OPS_ATTENTION_BATCH]);
    return own[OPS_ATTENTION_COLUMN] > 0 && own[OPS_ATTENTION_COLUMN] <= MOST_TURNED_HEAD &&
           own[OPS_ATTENTION_COLUMN] < own[OPS_ATTENTION_ROW] &&
           all[OPS_ATTENTION_ROW] * sharing >= LEAST_TURNED_QUERIES;
}

/* Memory for sums that are rounded or transposed at the end. */
static hal_status sums_make(const gradient_blocks *g, const ops_tensor *result, ops_tensor *sums)
{
    const bool is_turned = suits_turned(g, result);
    *sums = *result;
    if (!is_turned && (result->type == g->blocks.call->accumulator || is_one_product(g, result))) {
        hal_buffer_retain(sums->buffer);
        return HAL_OK;
    }
    *sums = ops_row_major(result);
    if (is_turned) {
        sums->stride[OPS_ATTENTION_ROW] = 1;
        sums->stride[OPS_ATTENTION_COLUMN] = sums->shape[OPS_ATTENTION_ROW];
    }
    sums->offset = 0;
    sums->type = g->blocks.call->accumulator;
    sums->buffer = NULL;
    return ops_buffer_create(
        g->blocks.context, (uint64_t)ops_tensor_get_element_count(sums) * hal_type_size(sums->type),
        &sums->buffer);
}

static hal_status sums_round(const gradient_blocks *g, const ops_tensor *sums,
                             const ops_tensor *result)
{
    return sums->buffer == result->buffer ? HAL_OK
           : sums->type == result->type   ? ops_copy(g->blocks.context, sums, result)
                                          : ops_cast(g->blocks.context, sums, result);
}

/* Whether nothing was added to the sums of a block: the last rows come first. */
static bool is_first(const gradient_blocks *g, const ops_attention_block *at,
                     const ops_tensor *sums)
{
    return (sums->shape[OPS_ATTENTION_OUTER] > 1 || at->outer == 0) &&
           (sums->shape[OPS_ATTENTION_BATCH] > 1 || at->batch == 0) &&
           at->row + at->row_count == g->blocks.call->rows;
}

/* One matrix of a batch. */
static ops_tensor matrix_of(const ops_tensor *x, int64_t i)
{
    ops_tensor made = *x;
    made.offset += i * x->stride[0];
    made.shape[0] = 1;
    return made;
}

/* Matrices whose rows follow each other as one matrix. */
static ops_tensor rows_of(const ops_tensor *x)
{
    ops_tensor made = *x;
    made.shape[1] *= made.shape[0];
    made.shape[0] = 1;
    return made;
}

static bool rows_follow(const ops_tensor *x)
{
    return x->stride[0] == x->shape[1] * x->stride[1];
}

/* c = alpha a^T b + beta c, by the transposed product where c is transposed. */
static hal_status product_add(const gradient_blocks *g, const ops_gemm_options *options,
                              const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    ops_tensor a_turned, c_turned;
    if (c->stride[1] != 1 || c->stride[2] == 1) {
        HAL_TRY(ops_tensor_transpose(a, 1, 2, &a_turned));
        return ops_gemm(g->blocks.context, options, &a_turned, b, c);
    }
    HAL_TRY(ops_tensor_transpose(b, 1, 2, &a_turned));
    HAL_TRY(ops_tensor_transpose(c, 1, 2, &c_turned));
    return ops_gemm(g->blocks.context, options, &a_turned, a, &c_turned);
}

/* Adds alpha changes^T x: a batch, or where matrices share the sums one after the other. */
static hal_status sums_add(const gradient_blocks *g, const ops_attention_block *at, double alpha,
                           const ops_tensor *changes, const ops_tensor *x, const ops_tensor *sums)
{
    const ops_tensor c = ops_attention_block_matrices(sums, at, 0, at->columns);
    const bool shares = c.shape[0] < at->batch_count;
    const bool merges = shares && rows_follow(changes) && rows_follow(x);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = g->blocks.call->options.precision;
    options.alpha = alpha;
    options.beta = is_first(g, at, sums) ? 0 : 1;
    for (int64_t i = 0; i < (shares && !merges ? at->batch_count : 1); i++) {
        const ops_tensor a = merges ? rows_of(changes) : shares ? matrix_of(changes, i) : *changes;
        const ops_tensor b = merges ? rows_of(x) : shares ? matrix_of(x, i) : *x;
        HAL_TRY(product_add(g, &options, &a, &b, &c));
        options.beta = 1;
    }
    return HAL_OK;
}

/* ---- Blocks ---- */

/* The weights, of the sums' type in the place of the scores, and rounded in `weights` where the
 * types differ. */
static hal_status block_weigh(const gradient_blocks *g, const ops_attention_block *at,
                              const ops_tensor *scores, const ops_tensor *weights)
{
    HAL_TRY(ops_attention_block_score(&g->blocks, at, scores));
    HAL_TRY(ops_softmax(g->blocks.context, 2, scores, scores));
    return scores->type == weights->type ? HAL_OK : ops_cast(g->blocks.context, scores, weights);
}

/* The changes w (dy v^T - delta). They have other memory than w: a native kernel requires it. */
static hal_status block_change(const gradient_blocks *g, const ops_attention_block *at,
                               const ops_tensor *scores, const ops_tensor *dy,
                               const ops_tensor *changes)
{
    const ops_attention_call *call = g->blocks.call;
    const ops_tensor v = ops_attention_block_matrices(&call->v, at, 0, at->columns);
    const ops_tensor inputs[2] = {
        *scores, ops_attention_block_matrices(&call->delta, at, at->row, at->row_count)};
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ops_tensor transposed;
    HAL_TRY(ops_tensor_transpose(&v, 1, 2, &transposed));
    options.precision = call->options.precision;
    options.epilogue = g->change;
    options.inputs = inputs;
    options.input_count = 2;
    return ops_gemm(g->blocks.context, &options, dy, &transposed, changes);
}

static hal_status block_record(const ops_attention_block *at, const void *user)
{
    const gradient_blocks *g = user;
    const ops_attention_call *call = g->blocks.call;
    const ops_tensor scores = ops_attention_block_of(at, call->accumulator, g->blocks.scores);
    const ops_tensor rounded = ops_attention_block_of(at, call->type, g->blocks.weights);
    const ops_tensor q = ops_attention_block_matrices(&call->q, at, at->row, at->row_count);
    const ops_tensor dy = ops_attention_block_matrices(&call->dy, at, at->row, at->row_count);
    const ops_tensor dq = ops_attention_block_matrices(&call->dq, at, at->row, at->row_count);
    const ops_tensor k = ops_attention_block_matrices(&call->k, at, 0, at->columns);
    const ops_tensor *weights = call->type == call->accumulator ? &scores : &rounded;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = call->options.precision;
    options.alpha = call->options.scale;
    HAL_TRY(block_weigh(g, at, &scores, weights));
    HAL_TRY(sums_add(g, at, 1, weights, &dy, &g->dv));
    if (call->q.shape[OPS_ATTENTION_COLUMN] == 0) {
        return HAL_OK;
    }
    HAL_TRY(block_change(g, at, &scores, &dy, &rounded));
    HAL_TRY(ops_gemm(g->blocks.context, &options, &rounded, &k, &dq));
    return sums_add(g, at, call->options.scale, &rounded, &q, &g->dk);
}

hal_status ops_attention_gradient_blocks_record(const ops_attention_call *call)
{
    gradient_blocks g = {.change = NULL};
    HAL_TRY(ops_attention_blocks_make(call, call->context->tuning->attention.block_bytes, true,
                                      &g.blocks));
    hal_status status = change_make(&g);
    status = status == HAL_OK ? sums_make(&g, &call->dk, &g.dk) : status;
    status = status == HAL_OK ? sums_make(&g, &call->dv, &g.dv) : status;
    status = status == HAL_OK ? ops_attention_blocks_each(&g.blocks, block_record, &g) : status;
    status = status == HAL_OK ? sums_round(&g, &g.dk, &call->dk) : status;
    status = status == HAL_OK ? sums_round(&g, &g.dv, &call->dv) : status;
    ops_expression_destroy(g.change);
    hal_buffer_release(g.dk.buffer);
    hal_buffer_release(g.dv.buffer);
    ops_attention_blocks_release(&g.blocks);
    return status;
}
