/* Pooling by windows, see pool.h: each work-item combines the windows of a tile of results
 * (pool_tile.h). Maxima of a line of x are those of all windows that have it; sums are added in the
 * order of the window. */
#include "pool.h"

#include "functions.h"
#include "pool_tile.h"

/* The results of one place so far, of all neighbours, and the places of maxima. */
typedef struct pool_results {
    hal_ir_value value[OPS_MAX_WIDTH], place[OPS_MAX_WIDTH];
    bool has_any;
} pool_results;

static bool is_maximum(const ops_pool_tile *f)
{
    return f->divisor == OPS_POOL_MAXIMA || f->divisor == OPS_POOL_PLACES;
}

/* Combines one more element of each window with what precedes it. Of equal maxima the first one
 * stays, of several NaN the last one. */
static void combine(const ops_pool_emitter *e, const hal_ir_value *x, const hal_ir_value *places,
                    pool_results *results)
{
    hal_ir_builder *b = e->b;
    const uint32_t divisor = e->tile->divisor;
    for (uint32_t i = 0; i < e->iter->width; i++) {
        hal_ir_value *value = &results->value[i];
        if (!results->has_any) {
            *value = x[i];
            results->place[i] = places[i];
        } else if (divisor == OPS_POOL_PLACES) {
            const bool is_float = hal_type_is_float(hal_ir_type_of(b, x[i]));
            hal_ir_value is_better = hal_ir_lt(b, *value, x[i]);
            is_better = is_float ? hal_ir_or(b, is_better, hal_ir_ne(b, x[i], x[i])) : is_better;
            *value = hal_ir_select(b, is_better, x[i], *value);
            results->place[i] = hal_ir_select(b, is_better, places[i], results->place[i]);
        } else {
            *value = divisor == OPS_POOL_MAXIMA ? ops_binary_value(b, OPS_MAXIMUM, *value, x[i])
                                                : hal_ir_add(b, *value, x[i]);
        }
    }
    results->has_any = true;
}

/* What the outer axes add to the place of an element of a line, in the type of indices. */
static hal_ir_value line_place(const ops_pool_emitter *e, uint32_t line)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->iter->values->type;
    hal_ir_value place = ops_index_constant(b, type, 0);
    hal_ir_value scale = ops_pool_scalar(e, ops_pool_last(e), OPS_POOL_LENGTH);
    for (uint32_t i = ops_pool_last(e); i-- > 0; line /= e->tile->axis[i].sources) {
        const hal_ir_value number = e->number[i][line % e->tile->axis[i].sources];
        place = hal_ir_add(b, place, hal_ir_mul(b, scale, ops_value_cast(b, type, number)));
        scale = hal_ir_mul(b, scale, ops_pool_scalar(e, i, OPS_POOL_LENGTH));
    }
    return place;
}

/* Combines what a line has with the results of windows that have it. */
static void merge_line(const ops_pool_emitter *e, uint32_t line, const pool_results *parts,
                       pool_results *results)
{
    hal_ir_builder *b = e->b;
    const uint32_t last = ops_pool_last(e), tile = e->tile->axis[last].tile;
    const hal_type type = e->iter->values->type;
    const bool has_places = e->tile->divisor == OPS_POOL_PLACES;
    const hal_ir_value base = has_places ? line_place(e, line) : HAL_IR_NONE;
    for (uint32_t k = 0; k < tile; k++) {
        hal_ir_value places[OPS_MAX_WIDTH] = {0};
        for (uint32_t i = 0; has_places && i < e->iter->width; i++) {
            places[i] = hal_ir_add(b, base, ops_value_cast(b, type, parts[k].place[i]));
        }
        for (uint32_t outer = 0; outer < e->results / tile; outer++) {
            if (ops_pool_has(e->tile, last, outer, line)) {
                combine(e, parts[k].value, places, &results[outer * tile + k]);
            }
        }
    }
}

/* Loads a line of sources, and combines it: of maxima along the line first. */
static void emit_line(const ops_pool_emitter *e, uint32_t line, pool_results *results)
{
    const ops_pool_tile *f = e->tile;
    const uint32_t last = ops_pool_last(e), tile = f->axis[last].tile;
    const hal_ir_value index = ops_pool_line(e, OPS_POOL_FROM, OPS_POOL_STEP, line);
    const hal_ir_value guard = ops_pool_line_guard(e, line);
    pool_results parts[OPS_POOL_RESULTS] = {0};
    for (uint32_t s = 0; s < f->axis[last].sources; s++) {
        hal_ir_value x[OPS_MAX_WIDTH], places[OPS_MAX_WIDTH];
        ops_pool_load(e, OPS_POOL_FROM, OPS_POOL_STEP, index, s,
                      ops_guard_and(e->b, guard, e->is_in[last][s]), x);
        for (uint32_t i = 0; i < e->iter->width; i++) {
            places[i] = e->number[last][s];
        }
        for (uint32_t r = 0; r < (is_maximum(f) ? tile : e->results); r++) {
            const bool has = is_maximum(f)
                                 ? ops_pool_line_has(f, r, s)
                                 : ops_pool_has(f, f->rank, r, line * f->axis[last].sources + s);
            if (has) {
                combine(e, x, places, is_maximum(f) ? &parts[r] : &results[r]);
            }
        }
    }
    if (is_maximum(f)) {
        merge_line(e, line, parts, results);
    }
}

/* Whether any window of the tile has elements of a line. */
static bool line_is_used(const ops_pool_emitter *e, uint32_t line)
{
    const uint32_t last = ops_pool_last(e), outer = e->results / e->tile->axis[last].tile;
    bool is_used = false;
    for (uint32_t r = 0; r < outer; r++) {
        is_used = is_used || ops_pool_has(e->tile, last, r, line);
    }
    return is_used;
}

/* The number of a result along an axis. */
static hal_ir_value result_along(const ops_pool_emitter *e, uint32_t axis, uint32_t result)
{
    for (uint32_t i = e->tile->rank; --i > axis;) {
        result /= e->tile->axis[i].tile;
    }
    return ops_pool_result(e, axis, result % e->tile->axis[axis].tile);
}

/* The sum over the window of a result, over the elements that count. */
static hal_ir_value emit_average(const ops_pool_emitter *e, uint32_t result, hal_ir_value sum)
{
    double known = 1;
    const hal_type type = hal_ir_type_of(e->b, sum);
    hal_ir_value counted = HAL_IR_NONE;
    for (uint32_t i = 0; i < e->tile->rank; i++) {
        const ops_pool_axis *a = &e->tile->axis[i];
        if (!a->is_counted) {
            known *= (double)a->window;
            continue;
        }
        const hal_ir_value count = ops_pool_count(e, i, result_along(e, i, result), type);
        counted = counted == HAL_IR_NONE ? count : hal_ir_mul(e->b, counted, count);
    }
    if (counted == HAL_IR_NONE) {
        return ops_pool_divide(e->b, sum, known);
    }
    counted = hal_ir_mul(e->b, counted, hal_ir_number(e->b, type, known));
    return ops_binary_value(e->b, OPS_DIV, sum, counted);
}

/* The first element of a result's window along an axis, from the start of x on, I32. */
static hal_ir_value window_start(const ops_pool_emitter *e, uint32_t axis, uint32_t result)
{
    hal_ir_builder *b = e->b;
    const ops_pool_axis *a = &e->tile->axis[axis];
    const hal_ir_value stride = hal_ir_u32(b, a->stride);
    const hal_ir_value start = hal_ir_mul(b, result_along(e, axis, result), stride);
    return hal_ir_add(b, hal_ir_bitcast(b, HAL_TYPE_I32, start), hal_ir_i32(b, a->first));
}

/* Whether a window has elements of x, HAL_IR_NONE if all have. */
static hal_ir_value has_elements(const ops_pool_emitter *e, uint32_t result)
{
    hal_ir_builder *b = e->b;
    hal_ir_value all = HAL_IR_NONE;
    for (uint32_t i = 0; i < e->tile->rank; i++) {
        const ops_pool_axis *a = &e->tile->axis[i];
        if (!a->may_miss) {
            continue;
        }
        const hal_ir_value length =
            ops_value_cast(b, HAL_TYPE_I32, ops_pool_scalar(e, i, OPS_POOL_LENGTH));
        const hal_ir_value start = window_start(e, i, result);
        const hal_ir_value first = ops_pool_first_inside(b, start, a->dilation);
        const hal_ir_value reach = hal_ir_i32(b, (int32_t)((a->window - 1) * a->dilation));
        all = ops_guard_and(b, all, hal_ir_lt(b, first, length));
        all = ops_guard_and(b, all, hal_ir_le(b, first, hal_ir_add(b, start, reach)));
    }
    return all;
}

/* The place of a window without elements: where its first one would be, which no gradient takes. */
static hal_ir_value missing_place(const ops_pool_emitter *e, uint32_t result)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->iter->values->type;
    hal_ir_value place = ops_index_constant(b, type, 0), scale = ops_index_constant(b, type, 1);
    for (uint32_t i = e->tile->rank; i-- > 0;) {
        const hal_ir_value start = window_start(e, i, result);
        const hal_ir_value first = ops_pool_first_inside(b, start, e->tile->axis[i].dilation);
        const hal_ir_value along = ops_value_cast(b, type, hal_ir_bitcast(b, HAL_TYPE_U32, first));
        place = hal_ir_add(b, place, hal_ir_mul(b, scale, along));
        scale = hal_ir_mul(b, scale, ops_pool_scalar(e, i, OPS_POOL_LENGTH));
    }
    return place;
}

/* The maxima or averages of a work-item. */
static void emit_values(const ops_pool_emitter *e, const pool_results *results,
                        hal_ir_value values[][OPS_MAX_WIDTH])
{
    hal_ir_builder *b = e->b;
    const hal_type type = hal_ir_type_of(b, results[0].value[0]);
    const hal_ir_value least = hal_ir_number(b, type, e->tile->least);
    for (uint32_t r = 0; r < e->results; r++) {
        const bool is_max = is_maximum(e->tile);
        const hal_ir_value has = is_max ? has_elements(e, r) : HAL_IR_NONE;
        for (uint32_t i = 0; i < e->iter->width; i++) {
            const hal_ir_value value = results[r].value[i];
            values[r][i] = !is_max              ? emit_average(e, r, value)
                           : has == HAL_IR_NONE ? value
                                                : hal_ir_select(b, has, value, least);
        }
    }
}

/* The places of a work-item, I64. */
static void emit_places(const ops_pool_emitter *e, const pool_results *results,
                        hal_ir_value values[][OPS_MAX_WIDTH])
{
    hal_ir_builder *b = e->b;
    for (uint32_t r = 0; r < e->results; r++) {
        const hal_ir_value has = has_elements(e, r);
        const hal_ir_value other = has == HAL_IR_NONE ? HAL_IR_NONE : missing_place(e, r);
        for (uint32_t i = 0; i < e->iter->width; i++) {
            hal_ir_value place = results[r].place[i];
            place = has == HAL_IR_NONE ? place : hal_ir_select(b, has, place, other);
            values[r][i] = ops_value_cast(b, HAL_TYPE_I64, place);
        }
    }
}

static void emit_pool(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    ops_pool_emitter e;
    pool_results results[OPS_POOL_RESULTS] = {0};
    hal_ir_value values[OPS_POOL_RESULTS][OPS_MAX_WIDTH];
    ops_pool_emit_sources(b, iter, user, &e);
    for (uint32_t line = 0; line < e.lines; line++) {
        if (line_is_used(&e, line)) {
            emit_line(&e, line, results);
        }
    }
    const bool has_places = e.tile->divisor == OPS_POOL_PLACES;
    if (!has_places || e.tile->has_both) {
        emit_values(&e, results, values);
        ops_pool_store(&e, OPS_POOL_TO, values);
    }
    if (has_places) {
        emit_places(&e, results, values);
        ops_pool_store(&e, e.tile->has_both ? OPS_POOL_PLACES_TO : OPS_POOL_TO, values);
    }
}

hal_status ops_pool_windows(ops_context *context, const ops_pool_form *form, const ops_tensor *x,
                            const ops_tensor *y, const ops_tensor *places)
{
    if (y && places && !ops_same_strides(y, places)) {
        HAL_TRY(ops_pool_windows(context, form, x, y, NULL));
        return ops_pool_windows(context, form, x, NULL, places);
    }
    ops_pool_form own = *form;
    own.divisor = places                             ? OPS_POOL_PLACES
                  : form->divisor == OPS_POOL_PLACES ? OPS_POOL_MAXIMA
                                                     : form->divisor;
    const ops_pool_call call = {.function = "ops_pool",
                                .name = "pool",
                                .family = OPS_FAMILY_POOL,
                                .body = emit_pool,
                                .form = &own,
                                .from = x,
                                .to = y ? y : places,
                                .places_to = y ? places : NULL};
    return ops_pool_record(context, &call);
}
