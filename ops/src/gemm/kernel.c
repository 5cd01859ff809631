/* Builds the portable matrix product, see gemm/kernel.h: scalars, places and the result. */
#include "emitter.h"

static ops_gemm_side side_of(const ops_gemm_operand *operand, hal_ir_memory_id memory,
                             uint32_t block, uint32_t thread, uint32_t strip, uint32_t lanes)
{
    return (ops_gemm_side){.operand = operand,
                           .memory = memory,
                           .block = block,
                           .thread = thread,
                           .strip = strip,
                           .lanes = lanes ? lanes : block / thread};
}

static hal_ir_value tile_origin(ops_gemm_emitter *e, uint32_t dimension, uint32_t block,
                                hal_ir_value first)
{
    hal_ir_value origin = ops_gemm_times(e, hal_ir_id(e->b, HAL_IR_GROUP_ID, dimension), block);
    return first == HAL_IR_NONE ? origin : hal_ir_add(e->b, origin, first);
}

/* The place of the own batch's matrix, and its strides. */
static hal_ir_value declare_place(ops_gemm_emitter *e, uint32_t number, hal_ir_value *strides,
                                  uint32_t stride_count)
{
    hal_ir_value base = ops_scalar(e->b, "base", number, 0, e->type);
    hal_ir_value batch_stride = ops_scalar(e->b, "batch_stride", number, 0, e->type);
    for (uint32_t i = 0; i < stride_count; i++) {
        strides[i] = ops_scalar(e->b, "stride", number, i, e->type);
    }
    return hal_ir_add(e->b, base, hal_ir_mul(e->b, ops_gemm_index(e, e->batch), batch_stride));
}

static void declare_scalars(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    e->alpha = hal_ir_scalar_value(b, "alpha", e->plan->accumulator);
    e->beta = hal_ir_scalar_value(b, "beta", e->plan->accumulator);
    e->m = hal_ir_scalar_value(b, "m", HAL_TYPE_U32);
    e->n = hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    e->k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    hal_ir_value row_first = hal_ir_scalar_value(b, "row_first", HAL_TYPE_U32);
    hal_ir_value batch_first = hal_ir_scalar_value(b, "batch_first", HAL_TYPE_U32);
    e->batch = hal_ir_add(b, batch_first, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
    if (e->plan->parted) {
        hal_ir_value k_all = hal_ir_scalar_value(b, "k_all", HAL_TYPE_U32);
        e->k = hal_ir_min(b, e->k, hal_ir_sub(b, k_all, hal_ir_mul(b, e->batch, e->k)));
    }
    e->a.origin = tile_origin(e, 1, e->tiles->block_m, row_first);
    e->c.origin = tile_origin(e, 0, e->tiles->block_n, HAL_IR_NONE);
    e->a.limit = e->m;
    e->c.limit = e->n;

    hal_ir_value strides[2];
    e->a.base = declare_place(e, 0, &e->a.stride, 1);
    e->c.base = declare_place(e, 1, &e->c.stride, 1);
    e->c_base = declare_place(e, 2, strides, 2);
    e->c_row = strides[0];
    e->c_column = strides[1];
    for (uint32_t i = 0; i < e->plan->input_count; i++) {
        e->input_base[i] = declare_place(e, 3 + i, strides, 2);
        e->input_row[i] = strides[0];
        e->input_column[i] = strides[1];
    }
}

/* Work-items in order: the lanes of a warp, the warps of the block by columns, the slices of k. */
static void place_in_warps(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    uint32_t warp_m = e->a.lanes * e->a.thread, warp_n = e->c.lanes * e->c.thread;
    uint32_t warps_n = e->c.block / warp_n, warp = e->a.lanes * e->c.lanes;
    uint32_t items = warp * warps_n * (e->a.block / warp_m);
    hal_ir_group_size(b, items * t->slices, 1, 1);
    hal_ir_groups_per_unit(b, t->min_groups_per_unit);
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    e->item = t->slices > 1 ? ops_gemm_rest(e, id, items) : id;
    e->slice = t->slices > 1 ? ops_gemm_quotient(e, id, items) : HAL_IR_NONE;

    hal_ir_value lane = ops_gemm_rest(e, e->item, warp);
    hal_ir_value number = ops_gemm_quotient(e, e->item, warp);
    hal_ir_value lane_m = ops_gemm_quotient(e, lane, e->c.lanes);
    hal_ir_value lane_n = ops_gemm_rest(e, lane, e->c.lanes);
    e->a.first = hal_ir_add(b, ops_gemm_times(e, ops_gemm_quotient(e, number, warps_n), warp_m),
                            ops_gemm_times(e, lane_m, e->a.strip));
    e->c.first = hal_ir_add(b, ops_gemm_times(e, ops_gemm_rest(e, number, warps_n), warp_n),
                            ops_gemm_times(e, lane_n, e->c.strip));
}

static void open_sums(ops_gemm_emitter *e)
{
    hal_ir_value zero = hal_ir_number(e->b, e->plan->accumulator, 0);
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->sums[i] = hal_ir_var(e->b, zero);
    }
}

/* One work-item for each place of the block, in two dimensions. */
static void place_in_grid(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    hal_ir_group_size(b, e->c.lanes, e->a.lanes, 1);
    hal_ir_value row = e->a.lanes > 1 ? hal_ir_id(b, HAL_IR_LOCAL_ID, 1) : hal_ir_u32(b, 0);
    e->a.first = ops_gemm_times(e, row, e->a.strip);
    e->c.first = ops_gemm_times(e, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), e->c.strip);
}

static hal_ir_value place_of(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column)
{
    hal_ir_builder *b = e->b;
    hal_ir_value place = hal_ir_add(b, e->c_base, hal_ir_mul(b, ops_gemm_index(e, row), e->c_row));
    hal_ir_value step = ops_gemm_index(e, column);
    step = e->plan->unit_c ? step : hal_ir_mul(b, step, e->c_column);
    return hal_ir_add(b, place, step);
}

/* alpha * sum + beta * old. Without a product the sum plays no part: 0 times an infinite alpha is
 * NaN, and +0 plus -0 loses the sign of C. */
static hal_ir_value scale(ops_gemm_emitter *e, hal_ir_value sum, hal_ir_value old)
{
    if (e->plan->scale_only) {
        return e->plan->beta_is_zero
                   ? hal_ir_number(e->b, e->plan->accumulator, 0)
                   : hal_ir_mul(e->b, e->beta, ops_value_cast(e->b, e->plan->accumulator, old));
    }
    hal_ir_value value = e->alpha == HAL_IR_NONE ? sum : hal_ir_mul(e->b, e->alpha, sum);
    if (e->plan->beta_is_zero) {
        return value;
    }
    return hal_ir_fma(e->b, e->beta, ops_value_cast(e->b, e->plan->accumulator, old), value);
}

static hal_ir_value further_input(ops_gemm_emitter *e, uint32_t number, hal_ir_value row,
                                  hal_ir_value column, hal_ir_value guard,
                                  hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_plan *plan = e->plan;
    if (kept[number] != HAL_IR_NONE) {
        return kept[number];
    }
    hal_ir_value place = e->input_base[number];
    uint32_t by_row = plan->row_step[number], by_column = plan->column_step[number];
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
    hal_ir_value value = hal_ir_load_wide(b, plan->slots[3 + number], place, 0, 1, guard);
    if (by_row == OPS_INNER_ZERO) {
        kept[number] = value; /* the first row was loaded for; when it is none of C's, none is */
    }
    return value;
}

static hal_ir_value finish(ops_gemm_emitter *e, hal_ir_value value, hal_ir_value row,
                           hal_ir_value column, hal_ir_value guard,
                           hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    const ops_gemm_plan *plan = e->plan;
    if (!plan->epilogue) {
        return ops_value_cast(e->b, hal_type_of_value(plan->type_c), value);
    }
    hal_ir_value inputs[OPS_MAX_INPUTS] = {value, plan->swapped ? column : row,
                                           plan->swapped ? row : column, e->batch};
    for (uint32_t i = 0; i < plan->input_count; i++) {
        inputs[4 + i] = further_input(e, i, row, column, guard, kept);
    }
    hal_ir_value output;
    hal_ir_splice(e->b, plan->epilogue->fragment, inputs, plan->epilogue->input_count, &output, 1);
    return output;
}

/* Finishes and stores width_c neighbours of a row. kept[column] are the further inputs that every
 * row of the column shares. */
static void store_strip(ops_gemm_emitter *e, hal_ir_value row, uint32_t row_number,
                        uint32_t column_number, hal_ir_value (*kept)[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_plan *plan = e->plan;
    hal_ir_value values[OPS_MAX_RANK], old = HAL_IR_NONE;
    hal_ir_value column = ops_gemm_own_line(e, &e->c, column_number);
    hal_ir_value guard = HAL_IR_NONE;
    if (!plan->whole) {
        hal_ir_value in_columns = hal_ir_lt(b, column, e->n);
        guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), in_columns);
    }
    hal_ir_value place = place_of(e, row, column);
    if (!plan->beta_is_zero) {
        old = hal_ir_load_wide(b, plan->slots[2], place, 0, plan->width_c, guard);
    }
    for (uint32_t i = 0; i < plan->width_c; i++) {
        hal_ir_value value = e->present[row_number * e->c.thread + column_number + i];
        hal_ir_value c = plan->width_c == 1 || plan->beta_is_zero ? old : hal_ir_extract(b, old, i);
        value = scale(e, value, c);
        values[i] = finish(e, value, row, ops_gemm_plus(e, column, i), guard, kept[i]);
    }
    hal_ir_value result = plan->width_c == 1 ? values[0] : hal_ir_pack(b, plan->width_c, values);
    hal_ir_store_wide(b, plan->slots[2], place, 0, guard, result);
}

void ops_gemm_emit(hal_ir_builder *b, const ops_gemm_plan *plan)
{
    const ops_gemm_tiles *t = &plan->tiles;
    ops_gemm_emitter e = {.b = b, .plan = plan, .tiles = t};
    e.type = plan->wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    e.a = side_of(&plan->a, plan->slots[0], t->block_m, t->thread_m, t->strip_m, t->lanes_m);
    e.c = side_of(&plan->b, plan->slots[1], t->block_n, t->thread_n, t->strip_n, t->lanes_n);
    declare_scalars(&e);
    if (t->stages || t->unroll) {
        place_in_warps(&e);
        open_sums(&e);
        if (t->unroll) {
            ops_gemm_emit_sliced(&e);
        } else if (t->matrix) {
            ops_gemm_emit_matrix(&e);
        } else {
            ops_gemm_emit_staged(&e);
        }
    } else {
        place_in_grid(&e);
        if (!plan->scale_only) {
            open_sums(&e);
            ops_gemm_emit_direct(&e);
        }
        ops_gemm_emit_rows(&e, 0, t->thread_m);
    }
}

void ops_gemm_put(const ops_gemm_plan *plan, const ops_gemm_work *work, ops_block *block)
{
    ops_put_number(block, plan->accumulator, work->alpha);
    ops_put_number(block, plan->accumulator, work->beta);
    const uint32_t counts[6] = {work->m,         work->n,           work->k,
                                work->row_first, work->batch_first, work->k_all};
    for (uint32_t i = 0; i < 5u + plan->parted; i++) {
        ops_put_u32(block, counts[i]);
    }
    const ops_gemm_place *places[3 + OPS_GEMM_MAX_INPUTS] = {&work->a, &work->b, &work->c};
    for (uint32_t i = 0; i < plan->input_count; i++) {
        places[3 + i] = &work->inputs[i];
    }
    for (uint32_t i = 0; i < 3u + plan->input_count; i++) {
        const ops_gemm_place *p = places[i];
        int64_t numbers[4] = {p->base, p->batch_stride, p->row_stride, p->column_stride};
        uint32_t count = 4;
        if (i == 0) {
            numbers[2] = plan->a.k_contiguous ? p->row_stride : p->column_stride;
            count = 3;
        } else if (i == 1) {
            numbers[2] = plan->b.k_contiguous ? p->column_stride : p->row_stride;
            count = 3;
        }
        for (uint32_t j = 0; j < count; j++) {
            ops_put_index(block, plan->wide, numbers[j]);
        }
    }
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
    *sum = e->plan->fused ? hal_ir_fma(e->b, x, y, *sum)
                          : hal_ir_add(e->b, *sum, hal_ir_mul(e->b, x, y));
}

hal_ir_value ops_gemm_address(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line,
                              hal_ir_value k)
{
    hal_ir_value far = s->operand->k_contiguous ? line : k,
                 near = s->operand->k_contiguous ? k : line;
    hal_ir_value place =
        hal_ir_add(e->b, s->base, hal_ir_mul(e->b, ops_gemm_index(e, far), s->stride));
    return hal_ir_add(e->b, place, ops_gemm_index(e, near));
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
        for (uint32_t j = 0; j < e->c.thread; j += e->plan->width_c) {
            store_strip(e, row, i, j, &by_column[j]);
        }
    }
}

void ops_gemm_fetch_element(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column,
                            hal_ir_value guard, ops_gemm_element *element)
{
    const ops_gemm_plan *plan = e->plan;
    *element = (ops_gemm_element){.row = row, .column = column, .guard = guard};
    element->place = place_of(e, row, column);
    element->old = HAL_IR_NONE;
    if (!plan->beta_is_zero) {
        element->old = hal_ir_load_wide(e->b, plan->slots[2], element->place, 0, 1, guard);
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        element->inputs[i] = HAL_IR_NONE;
        element->inputs[i] = further_input(e, i, row, column, guard, element->inputs);
    }
}

void ops_gemm_store_element(ops_gemm_emitter *e, ops_gemm_element *element, hal_ir_value sum)
{
    hal_ir_value value = finish(e, scale(e, sum, element->old), element->row, element->column,
                                element->guard, element->inputs);
    hal_ir_store_wide(e->b, e->plan->slots[2], element->place, 0, element->guard, value);
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
