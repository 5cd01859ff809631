/* See pool_tile.h. */
#include "pool_tile.h"

#include "functions.h"
#include "spatial.h"
#include "tensor/dispatch.h"

#include <string.h>

/* Results of a source-to-result table, the elements of all windows of a work-item, at most: each is
 * emitted. */
enum { MOST_ELEMENTS = 512 };

/* Whether a result of one axis has a source. */
static bool axis_has(const ops_pool_axis *a, uint32_t result, uint32_t source)
{
    const int64_t element =
        a->origin + (int64_t)result * a->of_result + (int64_t)source * a->of_source;
    return a->is_divided ||
           (element >= 0 && element % a->dilation == 0 && element / a->dilation < a->window);
}

bool ops_pool_has(const ops_pool_tile *tile, uint32_t axes, uint32_t result, uint32_t source)
{
    bool has = true;
    for (uint32_t i = axes; i-- > 0;) {
        const ops_pool_axis *a = &tile->axis[i];
        has = has && axis_has(a, result % a->tile, source % a->sources);
        result /= a->tile;
        source /= a->sources;
    }
    return has;
}

bool ops_pool_line_has(const ops_pool_tile *tile, uint32_t result, uint32_t source)
{
    return axis_has(&tile->axis[tile->rank - 1], result, source);
}

hal_ir_value ops_pool_scalar(const ops_pool_emitter *e, uint32_t axis, uint32_t scalar)
{
    return e->body->scalars[axis * OPS_POOL_AXIS_SCALARS + scalar];
}

static hal_ir_value length_of(const ops_pool_emitter *e, uint32_t axis, uint32_t scalar)
{
    return ops_value_cast(e->b, HAL_TYPE_U32, ops_pool_scalar(e, axis, scalar));
}

/* The work-item's coordinate along an axis, U32. */
static hal_ir_value coordinate_of(const ops_pool_emitter *e, uint32_t axis)
{
    const uint32_t views = e->body->task->tensor_count;
    return ops_value_cast(e->b, HAL_TYPE_U32, e->iter->index[views + axis]);
}

/* The windows of a gradient that may have the work-item's element, in ascending order. */
static void emit_divided(ops_pool_emitter *e, uint32_t axis)
{
    hal_ir_builder *b = e->b;
    const ops_pool_axis *a = &e->tile->axis[axis];
    const uint32_t reach = (a->window - 1) * a->dilation + 1;
    hal_ir_value rest = hal_ir_add(b, coordinate_of(e, axis), hal_ir_u32(b, (uint32_t)a->first));
    const hal_ir_value last = ops_divide_by_constant(b, a->stride, &rest);
    for (uint32_t s = 0; s < a->sources; s++) {
        const uint32_t back = a->sources - 1 - s;
        hal_ir_value element = hal_ir_add(b, rest, hal_ir_u32(b, back * a->stride));
        e->number[axis][s] = hal_ir_sub(b, last, hal_ir_u32(b, back)); /* wraps below 0 */
        hal_ir_value is_in = hal_ir_lt(b, element, hal_ir_u32(b, reach));
        if (a->dilation > 1) {
            ops_divide_by_constant(b, a->dilation, &element);
            is_in = hal_ir_and(b, is_in, hal_ir_eq(b, element, hal_ir_u32(b, 0)));
        }
        e->is_in[axis][s] = is_in;
    }
}

hal_ir_value ops_pool_first_inside(hal_ir_builder *b, hal_ir_value x, uint32_t dilation)
{
    const hal_ir_value zero = hal_ir_i32(b, 0);
    if (dilation == 1) {
        return hal_ir_max(b, x, zero);
    }
    hal_ir_value below = hal_ir_max(b, hal_ir_sub(b, zero, x), zero);
    below = hal_ir_add(b, below, hal_ir_i32(b, (int32_t)dilation - 1));
    hal_ir_value rest = hal_ir_bitcast(b, HAL_TYPE_U32, below);
    ops_divide_by_constant(b, dilation, &rest);
    below = hal_ir_sub(b, below, hal_ir_bitcast(b, HAL_TYPE_I32, rest));
    return hal_ir_add(b, x, below);
}

/* Sources beyond x are the nearest element of the window: that alters no maximum, and no place. */
static void emit_clamped(ops_pool_emitter *e, uint32_t axis)
{
    hal_ir_builder *b = e->b;
    const ops_pool_axis *a = &e->tile->axis[axis];
    const hal_ir_value zero = hal_ir_i32(b, 0), one = hal_ir_i32(b, 1);
    hal_ir_value length = length_of(e, axis, OPS_POOL_LENGTH);
    length = hal_ir_bitcast(b, HAL_TYPE_I32, length);
    const hal_ir_value last = hal_ir_sub(b, length, one);
    const hal_ir_value start = hal_ir_bitcast(b, HAL_TYPE_I32, e->number[axis][0]);
    const hal_ir_value low = a->dilation > 1 ? ops_pool_first_inside(b, start, a->dilation) : zero;
    hal_ir_value high = last;
    if (a->dilation > 1) {
        hal_ir_value rest = hal_ir_max(b, hal_ir_sub(b, last, start), zero);
        rest = hal_ir_bitcast(b, HAL_TYPE_U32, rest);
        ops_divide_by_constant(b, a->dilation, &rest);
        high = hal_ir_sub(b, last, hal_ir_bitcast(b, HAL_TYPE_I32, rest));
    }
    for (uint32_t s = 0; s < a->sources; s++) {
        hal_ir_value number = hal_ir_bitcast(b, HAL_TYPE_I32, e->number[axis][s]);
        number = hal_ir_min(b, hal_ir_max(b, number, low), high);
        if (a->may_miss) {
            number = hal_ir_min(b, hal_ir_max(b, number, zero), last);
        }
        e->number[axis][s] = hal_ir_bitcast(b, HAL_TYPE_U32, number);
    }
}

static void emit_axis(ops_pool_emitter *e, uint32_t axis)
{
    hal_ir_builder *b = e->b;
    const ops_pool_axis *a = &e->tile->axis[axis];
    const hal_ir_value length = length_of(e, axis, OPS_POOL_LENGTH);
    if (a->is_divided) {
        emit_divided(e, axis);
    } else {
        hal_ir_value first = hal_ir_mul(b, coordinate_of(e, axis), hal_ir_u32(b, a->advance));
        first = hal_ir_add(b, first, hal_ir_u32(b, (uint32_t)a->first));
        for (uint32_t s = 0; s < a->sources; s++) {
            e->number[axis][s] = hal_ir_add(b, first, hal_ir_u32(b, s * a->pitch));
            e->is_in[axis][s] = HAL_IR_NONE;
        }
    }
    if (a->is_clamped) {
        emit_clamped(e, axis);
        return;
    }
    for (uint32_t s = 0; s < a->sources && a->is_tested; s++) {
        const hal_ir_value is_in = hal_ir_lt(b, e->number[axis][s], length);
        e->is_in[axis][s] = ops_guard_and(b, e->is_in[axis][s], is_in);
    }
}

void ops_pool_emit_sources(hal_ir_builder *b, const ops_element_iter *iter,
                           const ops_index_body *body, ops_pool_emitter *e)
{
    const ops_pool_tile *tile = body->task->form;
    e->b = b;
    e->iter = iter;
    e->body = body;
    e->tile = tile;
    e->results = e->lines = 1;
    for (uint32_t i = 0; i < tile->rank; i++) {
        e->results *= tile->axis[i].tile;
        e->lines *= i + 1 < tile->rank ? tile->axis[i].sources : 1;
        emit_axis(e, i);
    }
}

/* Whether the view of sources moves along an axis; else their numbers are multiplied. */
static bool moves_along(const ops_pool_axis *a)
{
    return !a->is_clamped && !a->is_divided;
}

static hal_ir_value index_along(const ops_pool_emitter *e, uint32_t axis, uint32_t scalar,
                                uint32_t source, hal_ir_value index)
{
    const ops_pool_axis *a = &e->tile->axis[axis];
    const hal_type type = e->iter->values->type;
    const hal_ir_value step = ops_pool_scalar(e, axis, scalar);
    if (moves_along(a) && source == 0) {
        return index;
    }
    const hal_ir_value count = moves_along(a) ? ops_index_constant(e->b, type, source * a->pitch)
                                              : ops_value_cast(e->b, type, e->number[axis][source]);
    return hal_ir_add(e->b, index, hal_ir_mul(e->b, step, count));
}

/* Whether sources of a line are loaded at constant distances from its index. */
static bool line_is_near(const ops_pool_emitter *e)
{
    const ops_pool_axis *a = &e->tile->axis[ops_pool_last(e)];
    return a->is_unit && moves_along(a) && e->iter->width == 1;
}

hal_ir_value ops_pool_line(const ops_pool_emitter *e, uint32_t view, uint32_t scalar, uint32_t line)
{
    hal_ir_builder *b = e->b;
    hal_ir_value index = e->iter->index[view];
    for (uint32_t i = ops_pool_last(e); i-- > 0; line /= e->tile->axis[i].sources) {
        index = index_along(e, i, scalar, line % e->tile->axis[i].sources, index);
    }
    if (line_is_near(e) && hal_ir_type_of(b, index) == HAL_TYPE_U32) { /* it may be below 0 */
        index = hal_ir_cast(b, HAL_TYPE_I64, hal_ir_bitcast(b, HAL_TYPE_I32, index));
    }
    return index;
}

hal_ir_value ops_pool_line_guard(const ops_pool_emitter *e, uint32_t line)
{
    hal_ir_value guard = e->iter->guard;
    for (uint32_t i = ops_pool_last(e); i-- > 0; line /= e->tile->axis[i].sources) {
        guard = ops_guard_and(e->b, guard, e->is_in[i][line % e->tile->axis[i].sources]);
    }
    return guard;
}

void ops_pool_load(const ops_pool_emitter *e, uint32_t view, uint32_t scalar, hal_ir_value line,
                   uint32_t source, hal_ir_value guard, hal_ir_value *elements)
{
    const uint32_t last = ops_pool_last(e), width = e->iter->width;
    const uint32_t memory = e->body->task->slots[view];
    if (line_is_near(e)) {
        elements[0] = hal_ir_load_wide(e->b, memory, line, (int32_t)source, 1, guard);
        return;
    }
    const hal_ir_value index = index_along(e, last, scalar, source, line);
    ops_neighbours_load(e->b, memory, index, width, guard, elements);
}

hal_ir_value ops_pool_result(const ops_pool_emitter *e, uint32_t axis, uint32_t result)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value tile = hal_ir_u32(b, e->tile->axis[axis].tile);
    return hal_ir_add(b, hal_ir_mul(b, coordinate_of(e, axis), tile), hal_ir_u32(b, result));
}

/* ceil((end - start) / dilation), 0 if that is negative. */
static hal_ir_value elements_before(hal_ir_builder *b, hal_ir_value start, hal_ir_value end,
                                    uint32_t dilation)
{
    hal_ir_value more = hal_ir_add(b, hal_ir_sub(b, end, start), hal_ir_u32(b, dilation - 1));
    more = ops_divide_by_constant(b, dilation, &more);
    return hal_ir_select(b, hal_ir_lt(b, start, end), more, hal_ir_u32(b, 0));
}

hal_ir_value ops_pool_count(const ops_pool_emitter *e, uint32_t axis, hal_ir_value number,
                            hal_type type)
{
    hal_ir_builder *b = e->b;
    const ops_pool_axis *a = &e->tile->axis[axis];
    const bool is_gradient = e->body->task->family == OPS_FAMILY_POOL_GRADIENT;
    const hal_ir_value start = hal_ir_mul(b, number, hal_ir_u32(b, a->stride));
    const hal_ir_value low = hal_ir_u32(b, (uint32_t)a->low);
    const hal_ir_value length =
        length_of(e, axis, is_gradient ? OPS_POOL_RESULT_LENGTH : OPS_POOL_LENGTH);
    const hal_ir_value high = hal_ir_add(b, length, hal_ir_u32(b, (uint32_t)a->high));
    hal_ir_value count = elements_before(b, start, high, a->dilation);
    count = hal_ir_min(b, count, hal_ir_u32(b, a->window));
    count = hal_ir_sub(b, count, elements_before(b, start, low, a->dilation));
    count = is_gradient ? hal_ir_max(b, count, hal_ir_u32(b, 1)) : count;
    return hal_ir_cast(b, type, count);
}

hal_ir_value ops_pool_divide(hal_ir_builder *b, hal_ir_value x, double count)
{
    const hal_type type = hal_ir_type_of(b, x);
    return count == 1 ? x
           : ops_pool_divides_exactly(count)
               ? hal_ir_mul(b, x, hal_ir_number(b, type, 1 / count))
               : ops_binary_value(b, OPS_DIV, x, hal_ir_number(b, type, count));
}

/* The index and the guard of a result in the output. */
static hal_ir_value result_index(const ops_pool_emitter *e, uint32_t view, uint32_t result,
                                 hal_ir_value *guard)
{
    hal_ir_builder *b = e->b;
    hal_ir_value index = e->iter->index[view];
    *guard = e->iter->guard;
    for (uint32_t i = e->tile->rank; i-- > 0; result /= e->tile->axis[i].tile) {
        const ops_pool_axis *a = &e->tile->axis[i];
        const uint32_t r = result % a->tile;
        if (r == 0) {
            continue;
        }
        const hal_ir_value count = ops_index_constant(b, e->iter->values->type, r);
        const hal_ir_value step = ops_pool_scalar(e, i, OPS_POOL_TO_STEP);
        index = hal_ir_add(b, index, hal_ir_mul(b, step, count));
        if (a->is_ragged) {
            const hal_ir_value length = length_of(e, i, OPS_POOL_RESULT_LENGTH);
            *guard = ops_guard_and(b, *guard, hal_ir_lt(b, ops_pool_result(e, i, r), length));
        }
    }
    return index;
}

void ops_pool_store(const ops_pool_emitter *e, uint32_t view, hal_ir_value values[][OPS_MAX_WIDTH])
{
    const uint32_t memory = e->body->task->slots[view];
    const uint32_t joined = e->tile->is_joined ? e->tile->axis[ops_pool_last(e)].tile : 1;
    hal_ir_value guard;
    for (uint32_t r = 0; r < e->results; r += joined) {
        const hal_ir_value index = result_index(e, view, r, &guard);
        hal_ir_value together[OPS_POOL_RESULTS];
        for (uint32_t i = 0; i < joined; i++) {
            together[i] = values[r + i][0];
        }
        ops_neighbours_store(e->b, memory, index, joined > 1 ? joined : e->iter->width, guard,
                             joined > 1 ? together : values[r]);
    }
}

/* One axis of a tile of this many results. */
static ops_pool_axis axis_of(const ops_pool_call *call, uint32_t i, uint32_t tile)
{
    const ops_pool_form *form = call->form;
    const int64_t window = form->window[i], stride = form->stride[i], before = form->before[i];
    const int64_t dilation = form->dilation[i], reach = (window - 1) * dilation;
    const bool counts = form->divisor == OPS_POOL_COUNTED;
    ops_pool_axis a = {.window = (uint32_t)window,
                       .stride = (uint32_t)stride,
                       .dilation = (uint32_t)dilation,
                       .tile = tile,
                       .low = (int32_t)(counts ? 0 : before),
                       .high = (int32_t)(counts ? before + form->counted[i] : before)};
    if (!call->is_gradient) {
        a.pitch = tile == 1 ? a.dilation : 1;
        a.sources = tile == 1 ? a.window : (uint32_t)((tile - 1) * stride + reach + 1);
        a.advance = (uint32_t)(tile * stride);
        a.first = (int32_t)-before;
        a.of_result = (int32_t)-stride;
        a.of_source = (int32_t)a.pitch;
        return a;
    }
    a.pitch = 1;
    a.is_divided = tile % stride != 0;
    if (a.is_divided) {
        a.sources = (uint32_t)((reach + stride) / stride);
        a.first = (int32_t)before;
        return a;
    }
    const int64_t phase = before % stride, lowest = -((reach - phase) / stride);
    a.sources = (uint32_t)((phase + tile - 1) / stride - lowest + 1);
    a.advance = (uint32_t)(tile / stride);
    a.first = (int32_t)((before - phase) / stride + lowest);
    a.origin = (int32_t)(phase - lowest * stride);
    a.of_result = 1;
    a.of_source = (int32_t)-stride;
    return a;
}

/* What a result costs, in instructions about: a load with its index, and the division of averages'
 * gradients, for each of its share of sources, and a store. */
static double cost_of(const ops_pool_call *call, const uint32_t *tile, uint32_t width)
{
    enum { LOAD = 6, STORE = 4, DIVISION = 12, COMPARISON = 2 };
    const double source = !call->is_gradient ? 0 : call->places ? COMPARISON : DIVISION;
    double share = 1;
    for (uint32_t i = 0; i < call->form->rank; i++) {
        share *= (double)axis_of(call, i, tile[i]).sources / tile[i];
    }
    return share * ((double)LOAD / width + source) + (double)STORE / width;
}

/* Whether the results of a tile along the last axis, which are neighbours, are aligned vectors. */
static bool are_joined(const ops_context *context, const ops_tensor *to, uint32_t tile)
{
    const uint32_t last = to->rank - 1;
    bool fits = tile > 1 && (tile & (tile - 1)) == 0 && to->stride[last] == 1 &&
                tile <= ops_elementwise_widest(context, hal_type_size(to->type)) &&
                to->shape[last] % tile == 0 && to->offset % tile == 0;
    for (uint32_t i = 0; i < last; i++) {
        fits = fits && (to->stride[i] % tile == 0 || to->shape[i] == 1);
    }
    return fits;
}

/* Whether a device is busy with, and a kernel is short with, tiles of this many results. */
static bool tile_fits(const ops_context *context, const ops_pool_call *call, const uint32_t *tile,
                      uint32_t width)
{
    enum { GROUPS_OF_UNIT = 4, MOST_ALONG = 8 };
    const int64_t busy = (int64_t)context->info->compute_units * GROUPS_OF_UNIT *
                         (int64_t)ops_group_items(context->info);
    const ops_pool_form *form = call->form;
    const bool has_channels_last = call->to->shape[1] > 1 && call->to->stride[1] == 1;
    int64_t results = 1, elements = 1;
    bool fits = true;
    for (uint32_t i = 0; i < form->rank; i++) {
        const int64_t step = form->stride[i];
        const bool is_inner = !has_channels_last && call->to->stride[i + 2] == 1;
        const ops_pool_axis a = axis_of(call, i, tile[i]);
        results *= tile[i];
        elements *= call->is_gradient ? a.sources : a.window;
        const bool is_long = tile[i] > call->to->shape[i + 2] || a.sources > OPS_POOL_SOURCES;
        /* Lanes that store several neighbours write parts of sectors, of two halves at most. */
        const bool is_apart =
            is_inner &&
            (tile[i] > step || (tile[i] > 2 && !are_joined(context, call->to, tile[i])));
        const bool is_spread = !call->is_gradient && (a.dilation > 1 || is_inner);
        fits =
            fits && (tile[i] == 1 || !(is_long || is_apart || is_spread || tile[i] > MOST_ALONG));
    }
    elements *= call->is_gradient ? 1 : results;
    return fits && results * width <= OPS_POOL_RESULTS && elements <= MOST_ELEMENTS &&
           (results == 1 || ops_tensor_get_element_count(call->to) >= busy * results * width);
}

/* Grows a tile for as long as results cost less. Returns the cost. */
static double tile_grow(const ops_context *context, const ops_pool_call *call, uint32_t width,
                        uint32_t *tile)
{
    const double min_gain = 0.95;
    double cost = cost_of(call, tile, width);
    for (uint32_t best = 0; best < call->form->rank;) {
        double least = cost * min_gain;
        uint32_t grown = 1;
        best = call->form->rank;
        for (uint32_t i = 0; i < call->form->rank; i++) {
            uint32_t next[OPS_MAX_SPATIAL];
            memcpy(next, tile, sizeof next);
            next[i] = call->is_gradient && tile[i] == 1 && call->form->stride[i] > 1
                          ? (uint32_t)call->form->stride[i]
                          : 2 * tile[i];
            if (tile_fits(context, call, next, width) && cost_of(call, next, width) < least) {
                least = cost_of(call, next, width);
                best = i;
                grown = next[i];
            }
        }
        if (best < call->form->rank) {
            tile[best] = grown;
            cost = least;
        }
    }
    return cost;
}

/* The tile and the width of which a result costs least. */
static uint32_t tile_choose(const ops_context *context, const ops_pool_call *call, uint32_t widest,
                            uint32_t *tile)
{
    uint32_t chosen = widest;
    double least = 0;
    for (uint32_t width = widest; width > 0; width /= 2) {
        uint32_t grown[OPS_MAX_SPATIAL] = {1, 1, 1};
        const double cost = tile_grow(context, call, width, grown);
        if (width == widest || cost < least) {
            least = cost;
            chosen = width;
            memcpy(tile, grown, sizeof grown);
        }
    }
    return chosen;
}

/* What depends on the lengths of an axis. */
static void axis_finish(const ops_pool_call *call, uint32_t i, ops_pool_axis *a)
{
    const ops_pool_form *form = call->form;
    const int64_t length = call->from->shape[i + 2], results = call->to->shape[i + 2];
    const int64_t groups = (results + a->tile - 1) / a->tile;
    const int64_t end = a->first + (groups - 1) * a->advance + (a->sources - 1) * (int64_t)a->pitch;
    const bool is_max = form->divisor == OPS_POOL_MAXIMA || form->divisor == OPS_POOL_PLACES;
    const int64_t windows = call->is_gradient ? length : results;
    const int64_t along = call->is_gradient ? results : length;
    const int64_t start = (windows - 1) * form->stride[i];
    a->is_tested = a->is_divided || a->first < 0 || end >= length;
    a->is_clamped = !call->is_gradient && is_max && a->is_tested;
    a->is_ragged = results % a->tile != 0;
    a->may_miss = a->is_clamped && (a->dilation > 1 || start - form->before[i] >= length);
    a->is_counted =
        (form->divisor == OPS_POOL_COUNTED || form->divisor == OPS_POOL_INSIDE) &&
        (a->low > 0 || start + (a->window - 1) * (int64_t)a->dilation >= along + a->high);
    a->is_unit = call->from->stride[i + 2] * a->pitch == 1 &&
                 (!call->places || call->places->stride[i + 2] == 1);
}

/* Adds a tensor of sources, from the first one of each tile on. */
static void add_sources(ops_context *context, const ops_pool_tile *tile, const ops_tensor *space,
                        const ops_tensor *from, ops_index_task *t)
{
    int64_t first, end;
    ops_tensor view = ops_spatial_view(space, from);
    ops_span(from, &first, &end);
    int64_t reach = end - first;
    for (uint32_t i = 0; i < tile->rank; i++) {
        const ops_pool_axis *a = &tile->axis[i];
        const int64_t step = from->stride[i + 2], sources = (int64_t)a->sources * a->pitch;
        if (moves_along(a)) {
            view.stride[i + 2] = step * a->advance;
            view.offset += step * a->first;
        }
        reach += (sources + (a->first < 0 ? -a->first : a->first)) * (step < 0 ? -step : step);
    }
    t->reach = reach > t->reach ? reach : t->reach;
    ops_index_add_view(context, t, from, &view, HAL_ACCESS_READ);
}

/* Neighbours along channels, if all tensors have them and stay aligned. */
static uint32_t widest_of(const ops_context *context, const ops_pool_call *call)
{
    const ops_tensor *const tensors[] = {call->from, call->places};
    uint32_t widest = ops_spatial_widest(context, call->from, call->to);
    if (call->places_to) {
        widest = ops_spatial_widest(context, call->from, call->places_to);
    }
    for (uint32_t k = 0; k < 2 && tensors[k]; k++) {
        const uint32_t most = ops_spatial_widest(context, tensors[k], call->to);
        widest = most < widest ? most : widest;
        for (uint32_t i = 0; i < call->form->rank; i++) {
            widest = ops_spatial_aligned(widest, tensors[k]->stride[i + 2]);
            widest = ops_spatial_aligned(widest, call->to->stride[i + 2]);
        }
    }
    return widest;
}

/* How far the last result of a tile is from its first one, which the view of results has. */
static int64_t reach_of_results(const ops_tensor *to, uint32_t rank, const uint32_t *tile)
{
    int64_t reach = 0;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t step = to->stride[i + 2];
        reach += (tile[i] - 1) * (step < 0 ? -step : step);
    }
    return reach;
}

hal_status ops_pool_record(ops_context *context, const ops_pool_call *call)
{
    static const char *const names[OPS_MAX_SPATIAL * OPS_POOL_AXIS_SCALARS] = {
        "step0",   "place0",   "to0",   "length0", "results0", "step1",   "place1",  "to1",
        "length1", "results1", "step2", "place2",  "to2",      "length2", "results2"};
    const ops_pool_form *form = call->form;
    const uint32_t count = form->rank * OPS_POOL_AXIS_SCALARS;
    int64_t scalars[OPS_MAX_SPATIAL * OPS_POOL_AXIS_SCALARS] = {0}, volume = 1;
    uint32_t tile[OPS_MAX_SPATIAL];
    ops_pool_tile f = {.rank = form->rank,
                       .divisor = form->divisor,
                       .has_both = call->places_to != NULL,
                       .least = form->least};
    ops_index_task t = {.function = call->function,
                        .name = call->name,
                        .family = call->family,
                        .body = call->body,
                        .form = &f,
                        .form_bytes = sizeof f,
                        .storage = call->to->type,
                        .repeatable = 1};
    if (ops_tensor_get_element_count(call->to) == 0) {
        return HAL_OK;
    }
    const uint32_t widest = tile_choose(context, call, widest_of(context, call), tile);
    ops_tensor to = *call->to;
    f.is_joined = widest == 1 && are_joined(context, &to, tile[form->rank - 1]);
    for (uint32_t i = 0; i < form->rank; i++) {
        int64_t *scalar = scalars + i * OPS_POOL_AXIS_SCALARS;
        f.axis[i] = axis_of(call, i, tile[i]);
        axis_finish(call, i, &f.axis[i]);
        scalar[OPS_POOL_STEP] = call->from->stride[i + 2];
        scalar[OPS_POOL_PLACE_STEP] = call->places ? call->places->stride[i + 2] : 0;
        scalar[OPS_POOL_TO_STEP] = to.stride[i + 2];
        scalar[OPS_POOL_LENGTH] = call->from->shape[i + 2];
        scalar[OPS_POOL_RESULT_LENGTH] = to.shape[i + 2];
        volume *= call->is_gradient ? to.shape[i + 2] : call->from->shape[i + 2];
        to.shape[i + 2] = (to.shape[i + 2] + tile[i] - 1) / tile[i];
        to.stride[i + 2] *= tile[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        t.scalar_names[i] = names[i];
    }
    t.reach = reach_of_results(call->to, form->rank, tile);
    t.reach = volume > t.reach ? volume : t.reach;
    ops_space_begin(&t.space, to.rank, to.shape);
    ops_index_add_view(context, &t, call->to, &to, HAL_ACCESS_WRITE);
    add_sources(context, &f, &to, call->from, &t);
    if (call->places) {
        add_sources(context, &f, &to, call->places, &t);
    }
    if (call->places_to) {
        ops_tensor second = *call->places_to;
        memcpy(second.shape, to.shape, sizeof second.shape);
        memcpy(second.stride, to.stride, sizeof second.stride);
        ops_index_add_view(context, &t, call->places_to, &second, HAL_ACCESS_WRITE);
    }
    for (uint32_t i = 0; i < form->rank; i++) {
        ops_space_add_coordinate(&t.space, i + 2);
    }
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, widest, &block, &entry));
    for (uint32_t i = 0; i < count; i++) {
        ops_put_index(&block, t.plan.layout.index64, scalars[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}
