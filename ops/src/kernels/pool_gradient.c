/* The gradient of pooling, see pool.h: each work-item adds what the windows of its elements give
 * (pool_tile.h). An element at p, counted from the start of the padding, is in window p / stride
 * and in those before it that reach it. */
#include "pool.h"

#include "functions.h"
#include "pool_tile.h"

/* The number of an element of the tile among those of its channel, in the type of indices. */
static hal_ir_value own_place(const ops_pool_emitter *e, uint32_t result)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->iter->values->type;
    hal_ir_value place = HAL_IR_NONE, scale = HAL_IR_NONE;
    for (uint32_t i = e->tile->rank; i-- > 0; result /= e->tile->axis[i].tile) {
        const hal_ir_value length = ops_pool_scalar(e, i, OPS_POOL_RESULT_LENGTH);
        hal_ir_value along = ops_pool_result(e, i, result % e->tile->axis[i].tile);
        along = ops_value_cast(b, type, along);
        along = scale == HAL_IR_NONE ? along : hal_ir_mul(b, along, scale);
        place = place == HAL_IR_NONE ? along : hal_ir_add(b, place, along);
        scale = scale == HAL_IR_NONE ? length : hal_ir_mul(b, scale, length);
    }
    return place;
}

/* Places in the type of indices, of which all bits are set for those that do not fit it. */
static void narrow_places(const ops_pool_emitter *e, hal_ir_value *places)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->iter->values->type;
    for (uint32_t i = 0; i < e->iter->width; i++) {
        const hal_ir_value narrow = hal_ir_cast(b, type, places[i]);
        const hal_ir_value fits = hal_ir_eq(b, hal_ir_cast(b, HAL_TYPE_I64, narrow), places[i]);
        places[i] = hal_ir_select(b, fits, narrow, ops_index_constant(b, type, UINT64_MAX));
    }
}

/* What averages count along each axis, of each window, in the type of sums; HAL_IR_NONE along axes
 * of which all windows count the same. */
typedef struct window_counts {
    hal_ir_value of[OPS_MAX_SPATIAL][OPS_POOL_SOURCES];
} window_counts;

static void emit_counts(const ops_pool_emitter *e, hal_type type, window_counts *counts)
{
    for (uint32_t i = 0; i < e->tile->rank; i++) {
        const ops_pool_axis *a = &e->tile->axis[i];
        for (uint32_t s = 0; s < a->sources; s++) {
            counts->of[i][s] =
                a->is_counted ? ops_pool_count(e, i, e->number[i][s], type) : HAL_IR_NONE;
        }
    }
}

/* The elements that the average of a window counts along such axes; HAL_IR_NONE: there are none. */
static hal_ir_value emit_counted(const ops_pool_emitter *e, const window_counts *counts,
                                 uint32_t line, uint32_t source)
{
    hal_ir_value counted = HAL_IR_NONE;
    for (uint32_t i = e->tile->rank; i-- > 0;) {
        const bool is_last = i == ops_pool_last(e);
        const uint32_t sources = e->tile->axis[i].sources;
        const hal_ir_value count = counts->of[i][is_last ? source : line % sources];
        line /= is_last ? 1 : sources;
        counted = counted == HAL_IR_NONE ? count
                  : count == HAL_IR_NONE ? counted
                                         : hal_ir_mul(e->b, counted, count);
    }
    return counted;
}

/* Divides sums by what averages count along the other axes. */
static void divide_sums(const ops_pool_emitter *e, hal_ir_value sums[][OPS_MAX_WIDTH])
{
    double known = 1;
    for (uint32_t i = 0; i < e->tile->rank; i++) {
        known *= e->tile->axis[i].is_counted ? 1 : (double)e->tile->axis[i].window;
    }
    for (uint32_t r = 0; r < e->results; r++) {
        for (uint32_t i = 0; i < e->iter->width; i++) {
            sums[r][i] = ops_pool_divide(e->b, sums[r][i], known);
        }
    }
}

/* Adds what one window gives to the sums of the elements that it has. */
static void add_window(const ops_pool_emitter *e, uint32_t window, const hal_ir_value *given,
                       const hal_ir_value *places, const hal_ir_value *own,
                       hal_ir_value sums[][OPS_MAX_WIDTH])
{
    hal_ir_builder *b = e->b;
    for (uint32_t r = 0; r < e->results; r++) {
        if (!ops_pool_has(e->tile, e->tile->rank, r, window)) {
            continue;
        }
        for (uint32_t i = 0; i < e->iter->width; i++) {
            const hal_ir_value sum = hal_ir_add(b, sums[r][i], given[i]);
            sums[r][i] =
                places ? hal_ir_select(b, hal_ir_eq(b, places[i], own[r]), sum, sums[r][i]) : sum;
        }
    }
}

/* The windows of a line: beyond their axis they give 0. */
static void emit_line(const ops_pool_emitter *e, const window_counts *counts, uint32_t line,
                      const hal_ir_value *own, hal_ir_value sums[][OPS_MAX_WIDTH])
{
    hal_ir_builder *b = e->b;
    const uint32_t last = ops_pool_last(e), windows = e->tile->axis[last].sources;
    const bool has_places = e->tile->divisor == OPS_POOL_PLACES;
    const hal_ir_value index = ops_pool_line(e, OPS_POOL_FROM, OPS_POOL_STEP, line);
    const hal_ir_value line_guard = ops_pool_line_guard(e, line);
    const hal_ir_value at = has_places
                                ? ops_pool_line(e, OPS_POOL_PLACES_FROM, OPS_POOL_PLACE_STEP, line)
                                : HAL_IR_NONE;
    for (uint32_t s = 0; s < windows; s++) {
        const hal_ir_value guard = ops_guard_and(b, line_guard, e->is_in[last][s]);
        hal_ir_value dy[OPS_MAX_WIDTH], places[OPS_MAX_WIDTH];
        ops_pool_load(e, OPS_POOL_FROM, OPS_POOL_STEP, index, s, guard, dy);
        if (has_places) {
            ops_pool_load(e, OPS_POOL_PLACES_FROM, OPS_POOL_PLACE_STEP, at, s, guard, places);
            narrow_places(e, places);
        } else {
            const hal_ir_value counted = emit_counted(e, counts, line, s);
            for (uint32_t i = 0; i < e->iter->width && counted != HAL_IR_NONE; i++) {
                dy[i] = ops_binary_value(b, OPS_DIV, dy[i], counted);
            }
        }
        add_window(e, line * windows + s, dy, has_places ? places : NULL, own, sums);
    }
}

static void emit_gradient(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const hal_type type = hal_type_of_value(body->task->storage);
    ops_pool_emitter e;
    hal_ir_value sums[OPS_POOL_RESULTS][OPS_MAX_WIDTH], own[OPS_POOL_RESULTS];
    ops_pool_emit_sources(b, iter, body, &e);
    for (uint32_t r = 0; r < e.results; r++) {
        own[r] = e.tile->divisor == OPS_POOL_PLACES ? own_place(&e, r) : HAL_IR_NONE;
        for (uint32_t i = 0; i < iter->width; i++) {
            sums[r][i] = hal_ir_number(b, type, 0);
        }
    }
    window_counts counts;
    emit_counts(&e, type, &counts);
    for (uint32_t line = 0; line < e.lines; line++) {
        emit_line(&e, &counts, line, own, sums);
    }
    if (e.tile->divisor != OPS_POOL_PLACES) {
        divide_sums(&e, sums);
    }
    ops_pool_store(&e, OPS_POOL_TO, sums);
}

int64_t ops_pool_windows_of_element(const ops_pool_form *form)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < form->rank && count <= OPS_POOL_ELEMENTS; i++) {
        const int64_t reach = (form->window[i] - 1) * form->dilation[i] + 1;
        count *= (reach + form->stride[i] - 1) / form->stride[i];
    }
    return count;
}

hal_status ops_pool_gradient(ops_context *context, const ops_pool_form *form, const ops_tensor *dy,
                             const ops_tensor *places, const ops_tensor *dx)
{
    const ops_pool_call call = {.function = "ops_pool_gradient",
                                .name = "pool_gradient",
                                .family = OPS_FAMILY_POOL_GRADIENT,
                                .is_gradient = true,
                                .body = emit_gradient,
                                .form = form,
                                .from = dy,
                                .places = places,
                                .to = dx};
    return ops_pool_record(context, &call);
}
