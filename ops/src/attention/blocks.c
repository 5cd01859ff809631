/* Attention by blocks of rows, see blocks.h. */
#include "blocks.h"

#include "score_blocks.h"

#include <ops/gemm.h>
#include <ops/reduce.h>

static hal_status block_record(const ops_attention_block *at, const void *user)
{
    const ops_attention_blocks *a = user;
    const ops_attention_call *call = a->call;
    const ops_tensor scores = ops_attention_block_of(at, call->accumulator, a->scores);
    const ops_tensor weights = ops_attention_block_of(at, call->type, a->weights);
    const ops_tensor v = ops_attention_block_matrices(&call->v, at, 0, at->columns);
    const ops_tensor y = ops_attention_block_matrices(&call->y, at, at->row, at->row_count);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = call->options.precision;
    HAL_TRY(ops_attention_block_score(a, at, &scores));
    HAL_TRY(ops_softmax(a->context, 2, &scores, &weights));
    return ops_gemm(a->context, &options, &weights, &v, &y);
}

hal_status ops_attention_blocks_record(const ops_attention_call *call)
{
    ops_attention_blocks blocks;
    HAL_TRY(ops_attention_blocks_make(call, call->context->tuning->attention.block_bytes,
                                      call->type != call->accumulator, &blocks));
    const hal_status status = ops_attention_blocks_each(&blocks, block_record, &blocks);
    ops_attention_blocks_release(&blocks);
    return status;
}
