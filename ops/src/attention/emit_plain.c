/* Attention by single products: work-item (x, y) of a group has rows y, y + lanes, ... and columns
 * x, x + lanes, ... of scores and results. Scores reach the next product through shared memory.
 */
#include "emitter.h"

static uint32_t lanes_of(const ops_attention_emitter *e)
{
    return e->form->side_lanes;
}

static void plain_begin(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    e->lane_column = hal_ir_rem(b, e->item, hal_ir_u32(b, lanes_of(e)));
    e->lane_row = hal_ir_div(b, e->item, hal_ir_u32(b, lanes_of(e)));
    e->rows = e->form->rows / lanes_of(e);
    e->columns = e->form->keys / lanes_of(e);
}

static hal_ir_value plain_row(const ops_attention_emitter *e, uint32_t i)
{
    return ops_attention_plus(e, e->lane_row, i * lanes_of(e));
}

static hal_ir_value plain_column(const ops_attention_emitter *e, uint32_t j)
{
    return ops_attention_plus(e, e->lane_column, j * lanes_of(e));
}

static void plain_copy(ops_attention_emitter *e, const ops_attention_tile *tile, hal_ir_value first)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *side = tile->side;
    const uint32_t items = lanes_of(e) * lanes_of(e);
    const hal_ir_value number =
        hal_ir_for(b, e->item, hal_ir_u32(b, tile->rows * tile->width), hal_ir_u32(b, items));
    const hal_ir_value row = hal_ir_div(b, number, hal_ir_u32(b, tile->width));
    const hal_ir_value column = hal_ir_rem(b, number, hal_ir_u32(b, tile->width));
    const hal_ir_value from = hal_ir_add(b, first, row);
    const hal_ir_value has =
        hal_ir_and(b, hal_ir_lt(b, from, side->rows), hal_ir_lt(b, column, side->width));
    const hal_ir_value value =
        hal_ir_load_wide(b, side->memory, ops_attention_place(e, side, from, column), 0, 1, has);
    const hal_ir_value place = hal_ir_add(b, ops_attention_times(e, row, tile->pitch), column);
    hal_ir_store(b, e->shared, ops_attention_tile_place(e, tile, place), value);
    hal_ir_end(b);
}

static void plain_keep(ops_attention_emitter *e, ops_attention_rows *rows, hal_ir_value first)
{
    rows->are_kept = false;
    plain_copy(e, &rows->tile, first);
}

/* Variables of scores, from 0. */
static void open_scores(ops_attention_emitter *e, ops_attention_scores *sums)
{
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        sums->of[n / e->columns][n % e->columns] =
            hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, 0));
    }
}

static void plain_multiply(ops_attention_emitter *e, const ops_attention_rows *rows,
                           const ops_attention_tile *tile, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const uint32_t lanes = lanes_of(e);
    hal_ir_value own[OPS_ATTENTION_MAX_ROWS], other[OPS_ATTENTION_MAX_COLUMNS];
    ops_attention_scores sums;
    open_scores(e, &sums);
    const hal_ir_value row = ops_attention_tile_place(
        e, &rows->tile, ops_attention_times(e, e->lane_row, rows->tile.pitch));
    const hal_ir_value column =
        ops_attention_tile_place(e, tile, ops_attention_times(e, e->lane_column, tile->pitch));
    const hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), tile->side->width, hal_ir_u32(b, 1));
    for (uint32_t i = 0; i < e->rows; i++) {
        own[i] = hal_ir_load_wide(b, e->shared, hal_ir_add(b, row, k),
                                  (int32_t)(i * lanes * rows->tile.pitch), 1, HAL_IR_NONE);
    }
    for (uint32_t j = 0; j < e->columns; j++) {
        other[j] = hal_ir_load_wide(b, e->shared, hal_ir_add(b, column, k),
                                    (int32_t)(j * lanes * tile->pitch), 1, HAL_IR_NONE);
    }
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        hal_ir_set(b, sums.of[i][j],
                   ops_attention_fma(e, own[i], other[j], hal_ir_get(b, sums.of[i][j])));
    }
    hal_ir_end(b);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        scores->of[n / e->columns][n % e->columns] =
            hal_ir_get(b, sums.of[n / e->columns][n % e->columns]);
    }
}

static hal_ir_value plain_combine(ops_attention_emitter *e, uint32_t kind, hal_ir_value x)
{
    for (uint32_t distance = 1; distance < lanes_of(e); distance *= 2) {
        x = hal_ir_binary(e->b, kind, x, hal_ir_shuffle_xor(e->b, x, distance));
    }
    return x;
}

/* The scores in shared memory, for all work-items of their rows. */
static void share_scores(ops_attention_emitter *e, const ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const uint32_t lanes = lanes_of(e), pitch = ops_attention_plain_pitch(e->form->keys);
    const hal_ir_value own =
        hal_ir_add(b, ops_attention_times(e, e->lane_row, pitch), e->lane_column);
    for (uint32_t n = 0; n < e->rows * e->columns; n++) {
        const uint32_t i = n / e->columns, j = n % e->columns;
        hal_ir_value score = scores->of[i][j];
        if (hal_type_is_narrow_float(e->form->type)) {
            score = hal_ir_narrow(b, e->form->type, score);
        }
        hal_ir_store_wide(b, e->shared, own,
                          (int32_t)(e->scores_begin + i * lanes * pitch + j * lanes), HAL_IR_NONE,
                          score);
    }
}

static void plain_accumulate(ops_attention_emitter *e, const ops_attention_scores *scores,
                             const ops_attention_tile *tile, const ops_attention_result *result)
{
    hal_ir_builder *b = e->b;
    const uint32_t lanes = lanes_of(e), pitch = ops_attention_plain_pitch(e->form->keys);
    hal_ir_value weights[OPS_ATTENTION_MAX_ROWS];
    hal_ir_barrier(b); /* others may read the scores before */
    share_scores(e, scores);
    hal_ir_barrier(b);
    const hal_ir_value key =
        hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, e->form->keys), hal_ir_u32(b, 1));
    const hal_ir_value row = hal_ir_add(b, ops_attention_times(e, e->lane_row, pitch), key);
    const hal_ir_value at = ops_attention_tile_place(
        e, tile, hal_ir_add(b, ops_attention_times(e, key, tile->pitch), e->lane_column));
    for (uint32_t i = 0; i < e->rows; i++) {
        weights[i] = hal_ir_load_wide(
            b, e->shared, row, (int32_t)(e->scores_begin + i * lanes * pitch), 1, HAL_IR_NONE);
    }
    for (uint32_t j = 0; j < tile->width / lanes; j++) {
        const hal_ir_value x =
            hal_ir_load_wide(b, e->shared, at, (int32_t)(j * lanes), 1, HAL_IR_NONE);
        for (uint32_t i = 0; i < e->rows; i++) {
            hal_ir_set(b, result->of[i][j],
                       ops_attention_fma(e, weights[i], x, hal_ir_get(b, result->of[i][j])));
        }
    }
    hal_ir_end(b);
}

static void plain_store(ops_attention_emitter *e, const ops_attention_result *result,
                        const ops_attention_side *side, const hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    for (uint32_t i = 0; i < e->rows; i++) {
        const hal_ir_value row = hal_ir_add(b, e->first_row, plain_row(e, i));
        for (uint32_t j = 0; j < result->width / lanes_of(e); j++) {
            const hal_ir_value column = plain_column(e, j);
            const hal_ir_value has =
                hal_ir_and(b, hal_ir_lt(b, row, side->rows), hal_ir_lt(b, column, side->width));
            const hal_ir_value value = hal_ir_mul(b, hal_ir_get(b, result->of[i][j]), factors[i]);
            hal_ir_store_wide(b, side->memory, ops_attention_place(e, side, row, column), 0, has,
                              value);
        }
    }
}

const ops_attention_unit ops_attention_plain = {.begin = plain_begin,
                                                .row = plain_row,
                                                .column = plain_column,
                                                .copy = plain_copy,
                                                .keep = plain_keep,
                                                .multiply = plain_multiply,
                                                .combine = plain_combine,
                                                .accumulate = plain_accumulate,
                                                .store = plain_store};
