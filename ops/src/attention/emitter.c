/* Helpers of the emitters, see emitter.h. */
#include "emitter.h"

/* Rows that are read along the head begin 16 banks apart, rows that are read two by two 4. */
uint32_t ops_attention_matrix_pitch(uint32_t width, bool by_keys)
{
    const uint32_t words = width / 2;
    return by_keys ? words + 4 : words % 32 == 0 ? words + 16 : words;
}

/* Odd, so that neighbouring rows begin in different banks. */
uint32_t ops_attention_plain_pitch(uint32_t width)
{
    return width + 1;
}

hal_ir_value ops_attention_place(const ops_attention_emitter *e, const ops_attention_side *side,
                                 hal_ir_value row, hal_ir_value column)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value far = hal_ir_mul(b, ops_value_cast(b, e->index, row), side->stride);
    return hal_ir_add(b, hal_ir_add(b, side->base, far), ops_value_cast(b, e->index, column));
}

hal_ir_value ops_attention_fma(const ops_attention_emitter *e, hal_ir_value x, hal_ir_value y,
                               hal_ir_value z)
{
    return e->form->fused ? hal_ir_fma(e->b, x, y, z) : hal_ir_add(e->b, hal_ir_mul(e->b, x, y), z);
}

void ops_attention_result_open(ops_attention_emitter *e, ops_attention_result *result,
                               uint32_t width)
{
    result->width = width;
    result->columns = e->form->matrix ? width / 4 : width / e->form->side_lanes;
    for (uint32_t n = 0; n < e->rows * result->columns; n++) {
        result->of[n / result->columns][n % result->columns] =
            hal_ir_var(e->b, hal_ir_number(e->b, e->accumulator, 0));
    }
}

void ops_attention_result_scale(ops_attention_emitter *e, const ops_attention_result *result,
                                const hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    for (uint32_t n = 0; n < e->rows * result->columns; n++) {
        const hal_ir_value sum = result->of[n / result->columns][n % result->columns];
        hal_ir_set(b, sum, hal_ir_mul(b, hal_ir_get(b, sum), factors[n / result->columns]));
    }
}

ops_attention_tile ops_attention_tile_reserve(const ops_attention_form *form, uint32_t rows,
                                              uint32_t width, bool by_keys, uint32_t *total)
{
    const uint32_t pitch = form->matrix ? ops_attention_matrix_pitch(width, by_keys)
                                        : ops_attention_plain_pitch(width);
    const ops_attention_tile tile = {
        .begin = *total, .pitch = pitch, .rows = rows, .width = width, .stage = HAL_IR_NONE};
    *total += rows * pitch;
    return tile;
}

hal_ir_value ops_attention_key_end(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    if (!e->form->causal) {
        return e->keys;
    }
    const hal_ir_value rows = ops_attention_plus(e, e->first_row, e->form->rows);
    hal_ir_value end = hal_ir_add(b, hal_ir_cast(b, HAL_TYPE_I32, rows), e->shift);
    end = hal_ir_max(b, end, hal_ir_i32(b, 0));
    return hal_ir_min(b, hal_ir_cast(b, HAL_TYPE_U32, end), e->keys);
}
