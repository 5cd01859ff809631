/* See direct_kernel.h. Uniform weights are loaded before x, because a processor's loop over lanes
 * ends where a uniform load is between its operations. */
#include "direct_kernel.h"

#include "tensor/expression.h"
#include "tensor/indexing.h"

/* Elements of the window along the first axis that are added without a loop. */
typedef struct tap_range {
    int32_t first, end;
} tap_range;

/* What a work-item needs at the same time. */
typedef struct direct_state {
    const ops_direct_task *task;
    hal_ir_value x, w, y, bias;            /* indices of its first elements */
    hal_ir_value inside[OPS_DIRECT_LINES]; /* whether it has a line */
    hal_ir_value sum[OPS_DIRECT_RESULTS][OPS_DIRECT_LINES];
    hal_ir_value weight[OPS_DIRECT_WEIGHTS];
} direct_state;

static hal_ir_value add_product(hal_ir_builder *b, hal_ir_value base, hal_ir_value x,
                                uint32_t factor)
{
    return hal_ir_add(b, base, factor == 1 ? x : hal_ir_mul(b, x, hal_ir_u32(b, factor)));
}

/* Elements from a channel's first one to a place. */
static int32_t place_offset(const ops_direct_key *k, const int32_t place[OPS_MAX_SPATIAL])
{
    int32_t offset = 0;
    for (uint32_t i = 0; i < k->rank; i++) {
        offset += place[i] % k->step[i] * k->phase[i] + place[i] / k->step[i] * k->pitch[i];
    }
    return offset;
}

/* The axis along which a work-item has several lines. */
static uint32_t line_axis(const ops_direct_key *k)
{
    return k->rank > 1 ? k->rank - 2 : 0;
}

/* Axes whose elements precede those of the line axis: of three the first one, which may have a
 * loop. Its range, or that of the line axis. */
static tap_range range_of(const ops_direct_key *k, tap_range first, uint32_t axis)
{
    return axis == 0 ? first : (tap_range){0, k->window[axis]};
}

static void emit_weights(hal_ir_builder *b, direct_state *s, tap_range first)
{
    const ops_direct_key *k = &s->task->key;
    int32_t at[OPS_MAX_SPATIAL] = {0}, end[OPS_MAX_SPATIAL] = {1, 1, 1};
    uint32_t count = 0;
    for (uint32_t i = 0; i < k->rank; i++) {
        at[i] = range_of(k, first, i).first;
        end[i] = range_of(k, first, i).end;
    }
    for (int32_t i = at[0]; i < end[0]; i++) {
        for (int32_t j = at[1]; j < end[1]; j++) {
            for (int32_t l = at[2]; l < end[2]; l++) {
                const int32_t offset = i * k->w_step[0] + j * k->w_step[1] + l * k->w_step[2];
                for (uint32_t r = 0; r < k->results; r++) {
                    s->weight[count++] =
                        hal_ir_load_wide(b, s->task->slots[OPS_DIRECT_W], s->w,
                                         offset + (int32_t)r * k->w_result, 1, HAL_IR_NONE);
                }
            }
        }
    }
}

/* Adds an element of x to the results of those lines whose windows have it: `element` along the
 * line axis for each line, or -1. `number` of the elements before, of one of them along that axis.
 */
static void emit_element(hal_ir_builder *b, direct_state *s, const int32_t *place,
                         const int32_t *element, uint32_t number, uint32_t step)
{
    const ops_direct_key *k = &s->task->key;
    hal_ir_value x = HAL_IR_NONE;
    for (uint32_t t = 0; t < k->lines; t++) {
        if (element[t] < 0) {
            continue;
        }
        if (x == HAL_IR_NONE) { /* a later line is there only if this one is */
            x = hal_ir_load_wide(b, s->task->slots[OPS_DIRECT_X], s->x, place_offset(k, place), 1,
                                 s->inside[t]);
        }
        for (uint32_t r = 0; r < k->results; r++) {
            const hal_ir_value w =
                s->weight[(number + (uint32_t)element[t] * step) * k->results + r];
            s->sum[r][t] = hal_ir_fma(b, x, w, s->sum[r][t]);
        }
    }
}

/* Which element of the window along the line axis each line has at a place; false: none. */
static bool elements_at(const ops_direct_key *k, tap_range range, int32_t place,
                        int32_t element[OPS_DIRECT_LINES])
{
    const uint32_t axis = line_axis(k);
    bool any = false;
    for (uint32_t t = 0; t < k->lines; t++) {
        const int32_t from = place - k->position[axis] - (int32_t)t * k->stride[axis];
        const int32_t number = from >= 0 && from % k->apart[axis] == 0 ? from / k->apart[axis] : -1;
        element[t] = number >= range.first && number < range.end ? number - range.first : -1;
        any |= element[t] >= 0;
    }
    return any;
}

/* The lines of x that the windows reach along the line axis, in order, so that the products of each
 * result are added in the order of its window. `outer` is the element along the axis before it. */
static void emit_lines(hal_ir_builder *b, direct_state *s, tap_range range, int32_t outer,
                       uint32_t number)
{
    const ops_direct_key *k = &s->task->key;
    const uint32_t axis = line_axis(k), last = k->rank - 1;
    const int32_t begin = k->position[axis] + range.first * k->apart[axis];
    const int32_t end = k->position[axis] + (range.end - 1) * k->apart[axis] +
                        (int32_t)(k->lines - 1) * k->stride[axis];
    for (int32_t at = begin; at <= end; at++) {
        int32_t element[OPS_DIRECT_LINES], place[OPS_MAX_SPATIAL] = {0};
        if (!elements_at(k, range, at, element)) {
            continue;
        }
        place[0] = k->position[0] + outer * k->apart[0]; /* of three axes; else replaced */
        place[axis] = at;
        if (last == axis) {
            emit_element(b, s, place, element, number, 1);
            continue;
        }
        const uint32_t length = (uint32_t)k->window[last];
        for (uint32_t i = 0; i < length; i++) {
            place[last] = k->position[last] + (int32_t)i * k->apart[last];
            emit_element(b, s, place, element, number + i, length);
        }
    }
}

/* The elements of the window in a range of the first axis, from the indices x and w on. */
static void emit_range(hal_ir_builder *b, direct_state *s, tap_range first)
{
    const ops_direct_key *k = &s->task->key;
    emit_weights(b, s, first);
    if (k->rank < OPS_MAX_SPATIAL) {
        emit_lines(b, s, first, 0, 0);
        return;
    }
    const uint32_t volume = (uint32_t)(k->window[1] * k->window[2]);
    for (int32_t i = first.first; i < first.end; i++) {
        emit_lines(b, s, range_of(k, first, 1), i, (uint32_t)(i - first.first) * volume);
    }
}

static void sums_get(hal_ir_builder *b, direct_state *s, const hal_ir_value *variables)
{
    const ops_direct_key *k = &s->task->key;
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        s->sum[i / k->lines][i % k->lines] = hal_ir_get(b, variables[i]);
    }
}

static void sums_set(hal_ir_builder *b, const direct_state *s, const hal_ir_value *variables)
{
    const ops_direct_key *k = &s->task->key;
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        hal_ir_set(b, variables[i], s->sum[i / k->lines][i % k->lines]);
    }
}

/* The window of one channel: whole, or chunks along its first axis by a loop, and the rest. */
static void emit_window(hal_ir_builder *b, direct_state *s, const hal_ir_value *variables)
{
    const ops_direct_key *k = &s->task->key;
    const int32_t length = k->window[0], chunk = (int32_t)k->chunk;
    const hal_ir_value x = s->x, w = s->w;
    if (chunk < length) {
        const uint32_t of_x = (uint32_t)(chunk * k->apart[0] / k->step[0]) * (uint32_t)k->pitch[0];
        const uint32_t of_w = (uint32_t)(chunk * k->w_step[0]);
        const hal_ir_value turn = hal_ir_for(
            b, hal_ir_u32(b, 0), hal_ir_u32(b, (uint32_t)(length / chunk)), hal_ir_u32(b, 1));
        s->x = add_product(b, x, turn, of_x);
        s->w = add_product(b, w, turn, of_w);
        sums_get(b, s, variables);
        emit_range(b, s, (tap_range){0, chunk});
        sums_set(b, s, variables);
        hal_ir_end(b);
        s->x = x;
        s->w = w;
    }
    const tap_range rest = {length - (chunk < length ? length % chunk : length), length};
    if (rest.first < rest.end) {
        if (variables) {
            sums_get(b, s, variables);
        }
        emit_range(b, s, rest);
        if (variables) {
            sums_set(b, s, variables);
        }
    }
}

static void emit_sums(hal_ir_builder *b, direct_state *s)
{
    const ops_direct_key *k = &s->task->key;
    const hal_type type = hal_type_of_value(s->task->bindings.types[s->task->slots[OPS_DIRECT_Y]]);
    const hal_ir_value zero = hal_ir_number(b, type, 0), x = s->x, w = s->w;
    hal_ir_value variables[OPS_DIRECT_RESULTS * OPS_DIRECT_LINES];
    const bool has_loop = k->channels > 1 || (int32_t)k->chunk < k->window[0];
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        s->sum[i / k->lines][i % k->lines] = zero;
        variables[i] = has_loop ? hal_ir_var(b, zero) : HAL_IR_NONE;
    }
    if (k->channels > 1) {
        const hal_ir_value channel =
            hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, k->channels), hal_ir_u32(b, 1));
        s->x = add_product(b, x, channel, k->x_channel);
        s->w = add_product(b, w, channel, k->w_channel);
        emit_window(b, s, variables);
        hal_ir_end(b);
    } else {
        emit_window(b, s, has_loop ? variables : NULL);
    }
    if (has_loop) {
        sums_get(b, s, variables);
    }
}

/* Indices, of the group's block of results and of the work-item's lane and lines. */
static void emit_place(hal_ir_builder *b, direct_state *s)
{
    const ops_direct_key *k = &s->task->key;
    const hal_ir_value column = hal_ir_global_id(b, 0), row = hal_ir_global_id(b, 1);
    const hal_ir_value first = hal_ir_scalar_value(b, "first", HAL_TYPE_U32);
    hal_ir_value depth = hal_ir_id(b, HAL_IR_GROUP_ID, 2);
    hal_ir_value block = ops_divide_by_constant(b, k->depth, &depth);
    hal_ir_value group = hal_ir_add(b, ops_divide_by_constant(b, k->blocks, &block), first);
    const hal_ir_value image = ops_divide_by_constant(b, k->groups, &group);
    s->x = add_product(b, hal_ir_scalar_value(b, "x", HAL_TYPE_U32), image, k->x_image);
    s->x = add_product(b, add_product(b, s->x, group, k->x_group), depth, k->x_depth);
    s->x = hal_ir_add(b, add_product(b, s->x, row, k->x_row), column);
    s->w = add_product(b, hal_ir_scalar_value(b, "w", HAL_TYPE_U32), group, k->w_group);
    s->w = add_product(b, s->w, block, k->w_block);
    s->y = add_product(b, hal_ir_scalar_value(b, "y", HAL_TYPE_U32), image, k->y_image);
    s->y = add_product(b, add_product(b, s->y, group, k->y_group), block, k->y_block);
    s->y = add_product(b, s->y, depth, k->y_depth);
    s->y = add_product(b, s->y, row, k->y_line * k->lines);
    s->y = add_product(b, s->y, column, k->y_column);
    s->bias = add_product(b, hal_ir_scalar_value(b, "bias", HAL_TYPE_U32), group, k->bias_group);
    s->bias = add_product(b, s->bias, block, k->bias_block);
    const hal_ir_value in_columns = hal_ir_lt(b, column, hal_ir_u32(b, k->columns));
    for (uint32_t t = 0; t < k->lines; t++) {
        s->inside[t] = hal_ir_and(b, in_columns, hal_ir_lt(b, row, hal_ir_u32(b, k->row_count[t])));
    }
}

void ops_direct_emit(hal_ir_builder *b, const void *user)
{
    const ops_direct_task *task = user;
    const ops_direct_key *k = &task->key;
    direct_state s = {.task = task};
    ops_declare_bindings(b, &task->bindings);
    hal_ir_group_size(b, k->lanes, k->rows, 1);
    emit_place(b, &s);
    emit_sums(b, &s);
    for (uint32_t r = 0; r < k->results; r++) {
        hal_ir_value bias = HAL_IR_NONE;
        if (k->has_bias) {
            bias = hal_ir_load_wide(b, task->slots[OPS_DIRECT_BIAS], s.bias,
                                    (int32_t)(r * k->bias_result), 1, HAL_IR_NONE);
        }
        for (uint32_t t = 0; t < k->lines; t++) {
            hal_ir_value sum = s.sum[r][t];
            sum = bias == HAL_IR_NONE ? sum : hal_ir_add(b, sum, bias);
            if (task->activation) {
                hal_ir_splice(b, task->activation->fragment, &sum, 1, &sum, 1);
            }
            const hal_ir_value at =
                hal_ir_add(b, s.y, hal_ir_u32(b, r * k->y_result + t * k->y_line));
            hal_ir_store_wide(b, task->slots[OPS_DIRECT_Y], at, 0, s.inside[t], sum);
        }
    }
}
