/* Helpers of the emitters of the portable GEMM kernel, see emitter.h: sums, addresses and
 * results. */
#include "emitter.h"

#include <string.h>

/* The index of an element in C. */
static hal_ir_value c_index(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column)
{
    hal_ir_builder *b = e->b;
    hal_ir_value place = hal_ir_add(b, e->c_base, hal_ir_mul(b, ops_gemm_index(e, row), e->c_row));
    if (e->key->c_digits) {
        return hal_ir_add(b, place, ops_gemm_digits_place(b, &e->c_place, column));
    }
    hal_ir_value step = ops_gemm_index(e, column);
    step = e->key->unit_c ? step : hal_ir_mul(b, step, e->c_column);
    return hal_ir_add(b, place, step);
}

static hal_ir_value multiply_add(ops_gemm_emitter *e, hal_ir_value x, hal_ir_value y,
                                 hal_ir_value z, bool fused)
{
    return fused ? hal_ir_fma(e->b, x, y, z) : hal_ir_add(e->b, z, hal_ir_mul(e->b, x, y));
}

/* alpha * sum + beta * old. With k = 0 the sum is left out: 0 times an infinite alpha is NaN, and
 * +0 plus -0 loses the sign of C. */
static hal_ir_value scaled_sum(ops_gemm_emitter *e, hal_ir_value sum, hal_ir_value old)
{
    if (e->key->scale_only) {
        return e->key->beta_is_zero
                   ? hal_ir_number(e->b, e->key->accumulator, 0)
                   : hal_ir_mul(e->b, e->beta, ops_value_cast(e->b, e->key->accumulator, old));
    }
    hal_ir_value value = e->alpha == HAL_IR_NONE ? sum : hal_ir_mul(e->b, e->alpha, sum);
    if (e->key->beta_is_zero) {
        return value;
    }
    return multiply_add(e, e->beta, ops_value_cast(e->b, e->key->accumulator, old), value,
                        hal_type_is_float(e->key->accumulator));
}

/* Loads a further input, unless `kept` has it: those that do not step by rows are loaded once. */
static hal_ir_value further_input(ops_gemm_emitter *e, uint32_t number, hal_ir_value row,
                                  hal_ir_value column, hal_ir_value guard,
                                  hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_kernel_key *key = e->key;
    if (kept[number] != HAL_IR_NONE) {
        return kept[number];
    }
    hal_ir_value place = e->input_base[number];
    uint32_t by_row = key->row_step[number], by_column = key->column_step[number];
    if (by_row != OPS_INNER_ZERO) {
        hal_ir_value step = ops_gemm_index(e, row);
        step = by_row == OPS_INNER_ONE ? step : hal_ir_mul(b, step, e->input_row[number]);
        place = hal_ir_add(b, place, step);
    }
    if (by_column != OPS_INNER_ZERO) {
        hal_ir_value step = ops_gemm_index(e, column);
        step = by_column == OPS_INNER_ONE ? step : hal_ir_mul(b, step, e->input_column[number]);
        place = hal_ir_add(b, place, step);
    }
    hal_ir_value value = hal_ir_load_wide(b, key->slots[3 + number], place, 0, 1, guard);
    if (by_row == OPS_INNER_ZERO) {
        kept[number] = value; /* when the guard fails for the first row, it does for all */
    }
    return value;
}

static hal_ir_value apply_epilogue(ops_gemm_emitter *e, hal_ir_value value, hal_ir_value row,
                                   hal_ir_value column, hal_ir_value guard,
                                   hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    const ops_gemm_kernel_key *key = e->key;
    if (!key->epilogue) {
        return ops_value_cast(e->b, hal_type_of_value(key->type_c), value);
    }
    hal_ir_value inputs[OPS_MAX_INPUTS] = {value, key->swapped ? column : row,
                                           key->swapped ? row : column, e->batch};
    for (uint32_t i = 0; i < key->input_count; i++) {
        inputs[4 + i] = further_input(e, i, row, column, guard, kept);
    }
    hal_ir_value output;
    hal_ir_splice(e->b, key->epilogue->fragment, inputs, key->epilogue->input_count, &output, 1);
    return output;
}

/* Stores width_c neighbours of a row from their sums. kept[i] are the further inputs of column i
 * that all rows share. */
static void store_strip(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column,
                        const hal_ir_value *sums, hal_ir_value (*kept)[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_kernel_key *key = e->key;
    hal_ir_value values[OPS_MAX_RANK], old = HAL_IR_NONE;
    hal_ir_value guard = HAL_IR_NONE;
    if (!key->whole) {
        hal_ir_value in_columns = hal_ir_lt(b, column, e->n);
        guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), in_columns);
    }
    hal_ir_value place = c_index(e, row, column);
    if (!key->beta_is_zero) {
        old = hal_ir_load_wide(b, key->slots[2], place, 0, key->width_c, guard);
    }
    for (uint32_t i = 0; i < key->width_c; i++) {
        hal_ir_value c = key->width_c == 1 || key->beta_is_zero ? old : hal_ir_extract(b, old, i);
        hal_ir_value value = scaled_sum(e, sums[i], c);
        values[i] = apply_epilogue(e, value, row, ops_gemm_plus(e, column, i), guard, kept[i]);
    }
    hal_ir_value result = key->width_c == 1 ? values[0] : hal_ir_pack(b, key->width_c, values);
    hal_ir_store_wide(b, key->slots[2], place, 0, guard, result);
}

void ops_gemm_get_sums(ops_gemm_emitter *e)
{
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->present[i] = hal_ir_get(e->b, e->sums[i]);
    }
}

void ops_gemm_set_sums(ops_gemm_emitter *e)
{
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        hal_ir_set(e->b, e->sums[i], e->present[i]);
    }
}

void ops_gemm_multiply(ops_gemm_emitter *e, uint32_t row, uint32_t column, hal_ir_value x,
                       hal_ir_value y)
{
    hal_ir_value *sum = &e->present[row * e->c.thread + column];
    *sum = multiply_add(e, x, y, *sum, e->key->fused);
}

hal_ir_value ops_gemm_declare_matrix(ops_gemm_emitter *e, uint32_t number, hal_ir_value *strides,
                                     uint32_t stride_count)
{
    hal_ir_value base = ops_scalar(e->b, "base", number, 0, e->type);
    hal_ir_value batch_stride = ops_scalar(e->b, "batch_stride", number, 0, e->type);
    for (uint32_t i = 0; i < stride_count; i++) {
        strides[i] = ops_scalar(e->b, "stride", number, i, e->type);
    }
    return hal_ir_add(e->b, base, hal_ir_mul(e->b, ops_gemm_index(e, e->batch), batch_stride));
}

hal_ir_value ops_gemm_near(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value number)
{
    hal_ir_value way = ops_gemm_index(e, number);
    return s->near == HAL_IR_NONE ? way : hal_ir_mul(e->b, way, s->near);
}

hal_ir_value ops_gemm_address(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line,
                              hal_ir_value k)
{
    hal_ir_value far = s->operand->k_contiguous ? line : k,
                 near = s->operand->k_contiguous ? k : line;
    hal_ir_value place =
        hal_ir_add(e->b, s->base, hal_ir_mul(e->b, ops_gemm_index(e, far), s->stride));
    return hal_ir_add(e->b, place, ops_gemm_near(e, s, near));
}

hal_ir_value ops_gemm_line_place(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line)
{
    return hal_ir_add(e->b, s->base, ops_gemm_digits_place(e->b, &s->line_place, line));
}

hal_ir_value ops_gemm_k_place(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value k)
{
    k = e->k_first == HAL_IR_NONE ? k : hal_ir_add(e->b, e->k_first, k);
    return ops_gemm_digits_place(e->b, &s->k_place, k);
}

uint32_t ops_gemm_line_offset(const ops_gemm_side *s, uint32_t number)
{
    return number / s->strip * s->lanes * s->strip + number % s->strip;
}

hal_ir_value ops_gemm_own_line(ops_gemm_emitter *e, const ops_gemm_side *s, uint32_t number)
{
    hal_ir_value line = hal_ir_add(e->b, s->origin, s->first);
    return ops_gemm_plus(e, line, ops_gemm_line_offset(s, number));
}

void ops_gemm_emit_rows(ops_gemm_emitter *e, uint32_t first, uint32_t last)
{
    hal_ir_value by_column[OPS_GEMM_MAX_FRAGMENT][OPS_GEMM_MAX_INPUTS];
    for (uint32_t j = 0; j < e->c.thread; j++) {
        for (uint32_t i = 0; i < OPS_GEMM_MAX_INPUTS; i++) {
            by_column[j][i] = HAL_IR_NONE;
        }
    }
    for (uint32_t i = first; i < last; i++) {
        hal_ir_value row = ops_gemm_own_line(e, &e->a, i);
        for (uint32_t j = 0; j < e->c.thread; j += e->key->width_c) {
            store_strip(e, row, ops_gemm_own_line(e, &e->c, j), &e->present[i * e->c.thread + j],
                        &by_column[j]);
        }
    }
}

/* The line of the matrix that is line `number` of the work-item, a value. */
static hal_ir_value line_at(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value number)
{
    hal_ir_value strip = ops_gemm_quotient(e, number, s->strip);
    hal_ir_value line = ops_gemm_times(e, strip, s->lanes * s->strip);
    line = hal_ir_add(e->b, line, ops_gemm_rest(e, number, s->strip));
    return hal_ir_add(e->b, ops_gemm_own_line(e, s, 0), line);
}

/* Moves `count` sums to the places `distance` before theirs. */
static void shift_sums(ops_gemm_emitter *e, uint32_t distance, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hal_ir_set(e->b, e->sums[i], hal_ir_get(e->b, e->sums[i + distance]));
    }
}

void ops_gemm_emit_looped_rows(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const uint32_t width = e->key->width_c, columns = e->c.thread;
    hal_ir_value sums[OPS_MAX_RANK], kept[OPS_MAX_RANK][OPS_GEMM_MAX_INPUTS];
    hal_ir_value row = line_at(e, &e->a, hal_ir_for(b, zero, e->loops.rows, one));
    hal_ir_value strip = hal_ir_for(b, zero, e->loops.strips, one);
    for (uint32_t i = 0; i < width; i++) {
        sums[i] = hal_ir_get(b, e->sums[i]);
    }
    memset(kept, 0xff, sizeof kept); /* HAL_IR_NONE */
    store_strip(e, row, line_at(e, &e->c, ops_gemm_times(e, strip, width)), sums, kept);
    shift_sums(e, width, columns - width);
    hal_ir_end(b);
    shift_sums(e, columns, (e->a.thread - 1u) * columns);
    hal_ir_end(b);
}

void ops_gemm_fetch_element(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column,
                            hal_ir_value guard, ops_gemm_element *element)
{
    const ops_gemm_kernel_key *key = e->key;
    *element = (ops_gemm_element){.row = row, .column = column, .guard = guard};
    element->place = c_index(e, row, column);
    element->old = HAL_IR_NONE;
    if (!key->beta_is_zero) {
        element->old = hal_ir_load_wide(e->b, key->slots[2], element->place, 0, 1, guard);
    }
    for (uint32_t i = 0; i < key->input_count; i++) {
        element->inputs[i] = HAL_IR_NONE;
        element->inputs[i] = further_input(e, i, row, column, guard, element->inputs);
    }
}

void ops_gemm_store_element(ops_gemm_emitter *e, ops_gemm_element *element, hal_ir_value sum)
{
    hal_ir_value value = apply_epilogue(e, scaled_sum(e, sum, element->old), element->row,
                                        element->column, element->guard, element->inputs);
    hal_ir_store_wide(e->b, e->key->slots[2], element->place, 0, element->guard, value);
}

hal_ir_value ops_gemm_index(ops_gemm_emitter *e, hal_ir_value x)
{
    return ops_value_cast(e->b, e->type, x);
}

hal_ir_value ops_gemm_plus(ops_gemm_emitter *e, hal_ir_value x, uint32_t y)
{
    return y == 0 ? x : hal_ir_add(e->b, x, hal_ir_u32(e->b, y));
}

hal_ir_value ops_gemm_times(ops_gemm_emitter *e, hal_ir_value x, uint32_t y)
{
    return y == 1 ? x : hal_ir_mul(e->b, x, hal_ir_u32(e->b, y));
}

hal_ir_value ops_gemm_quotient(ops_gemm_emitter *e, hal_ir_value x, uint32_t power)
{
    return hal_ir_shr(e->b, x, hal_ir_u32(e->b, (uint32_t)__builtin_ctz(power)));
}

hal_ir_value ops_gemm_rest(ops_gemm_emitter *e, hal_ir_value x, uint32_t power)
{
    return hal_ir_and(e->b, x, hal_ir_u32(e->b, power - 1));
}
