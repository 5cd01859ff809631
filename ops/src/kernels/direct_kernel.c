/* See direct_kernel.h. Uniform weights are loaded before x, because a processor's loop over lanes
 * ends where a uniform load is between its operations. */
#include "direct_kernel.h"

#include "direct_any.h"

#include "tensor/expression.h"
#include "tensor/indexing.h"

/* Elements of the window along the first axis that are added without a loop. */
typedef struct tap_range {
    int32_t first, end;
} tap_range;

static hal_ir_value add_product(hal_ir_builder *b, hal_ir_value base, hal_ir_value x,
                                uint32_t factor)
{
    return hal_ir_add(b, base, factor == 1 ? x : hal_ir_mul(b, x, hal_ir_u32(b, factor)));
}

static hal_ir_value number_of(ops_direct_emitter *e, uint32_t which)
{
    const ops_direct_key *k = &e->task->key;
    return k->is_general ? e->number[which] : hal_ir_u32(e->b, k->number[which]);
}

static hal_ir_value add_number(ops_direct_emitter *e, hal_ir_value base, hal_ir_value x,
                               uint32_t which)
{
    const ops_direct_key *k = &e->task->key;
    return k->is_general ? hal_ir_add(e->b, base, hal_ir_mul(e->b, x, e->number[which]))
                         : add_product(e->b, base, x, k->number[which]);
}

/* The quotient by a number of the key; *x: the rest. */
static hal_ir_value divide(ops_direct_emitter *e, uint32_t which, hal_ir_value *x)
{
    const ops_direct_key *k = &e->task->key;
    return k->is_general ? ops_direct_any_divide(e, which, x)
                         : ops_divide_by_constant(e->b, k->number[which], x);
}

/* Elements from a channel's first one to a place. */
static int32_t place_offset(const ops_direct_key *k, const int32_t place[OPS_MAX_SPATIAL])
{
    int32_t offset = 0;
    for (uint32_t i = 0; i < k->rank; i++) {
        offset += place[i] % k->axis[i].step * k->axis[i].phase +
                  place[i] / k->axis[i].step * k->axis[i].pitch;
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
    return axis == 0 ? first : (tap_range){0, k->axis[axis].taps};
}

static void emit_weights(ops_direct_emitter *e, tap_range first)
{
    const ops_direct_key *k = &e->task->key;
    int32_t at[OPS_MAX_SPATIAL] = {0}, end[OPS_MAX_SPATIAL] = {1, 1, 1};
    uint32_t count = 0;
    for (uint32_t i = 0; i < k->rank; i++) {
        at[i] = range_of(k, first, i).first;
        end[i] = range_of(k, first, i).end;
    }
    for (int32_t i = at[0]; i < end[0]; i++) {
        for (int32_t j = at[1]; j < end[1]; j++) {
            for (int32_t l = at[2]; l < end[2]; l++) {
                const int32_t offset =
                    i * k->axis[0].w_step + j * k->axis[1].w_step + l * k->axis[2].w_step;
                for (uint32_t r = 0; r < k->results; r++) {
                    e->weight[count++] = hal_ir_load_wide(
                        e->b, e->task->slots[OPS_DIRECT_W], e->w,
                        offset + (int32_t)(r * k->number[OPS_DIRECT_W_RESULT]), 1, HAL_IR_NONE);
                }
            }
        }
    }
}

/* Adds an element of x to the results of those lines whose windows have it: `element` along the
 * line axis for each line, or -1. `number` of the elements before, of one of them along that axis.
 */
static void emit_element(ops_direct_emitter *e, const int32_t *place, const int32_t *element,
                         uint32_t number, uint32_t step)
{
    const ops_direct_key *k = &e->task->key;
    hal_ir_value x = HAL_IR_NONE;
    for (uint32_t t = 0; t < k->lines; t++) {
        if (element[t] < 0) {
            continue;
        }
        if (x == HAL_IR_NONE) { /* a later line is there only if this one is */
            x = hal_ir_load_wide(e->b, e->task->slots[OPS_DIRECT_X], e->x, place_offset(k, place),
                                 1, e->inside[t]);
        }
        for (uint32_t r = 0; r < k->results; r++) {
            const hal_ir_value w =
                e->weight[(number + (uint32_t)element[t] * step) * k->results + r];
            e->sum[r][t] = hal_ir_fma(e->b, x, w, e->sum[r][t]);
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
        const int32_t from = place - k->axis[axis].position - (int32_t)t * k->axis[axis].stride;
        const int32_t number =
            from >= 0 && from % k->axis[axis].apart == 0 ? from / k->axis[axis].apart : -1;
        element[t] = number >= range.first && number < range.end ? number - range.first : -1;
        any |= element[t] >= 0;
    }
    return any;
}

/* The lines of x that the windows reach along the line axis, in order, so that the products of each
 * result are added in the order of its window. `outer` is the element along the axis before it. */
static void emit_lines(ops_direct_emitter *e, tap_range range, int32_t outer, uint32_t number)
{
    const ops_direct_key *k = &e->task->key;
    const uint32_t axis = line_axis(k), last = k->rank - 1;
    const int32_t begin = k->axis[axis].position + range.first * k->axis[axis].apart;
    const int32_t end = k->axis[axis].position + (range.end - 1) * k->axis[axis].apart +
                        (int32_t)(k->lines - 1) * k->axis[axis].stride;
    for (int32_t at = begin; at <= end; at++) {
        int32_t element[OPS_DIRECT_LINES], place[OPS_MAX_SPATIAL] = {0};
        if (!elements_at(k, range, at, element)) {
            continue;
        }
        place[0] =
            k->axis[0].position + outer * k->axis[0].apart; /* of three axes; else replaced */
        place[axis] = at;
        if (last == axis) {
            emit_element(e, place, element, number, 1);
            continue;
        }
        const uint32_t length = (uint32_t)k->axis[last].taps;
        for (uint32_t i = 0; i < length; i++) {
            place[last] = k->axis[last].position + (int32_t)i * k->axis[last].apart;
            emit_element(e, place, element, number + i, length);
        }
    }
}

/* The elements of the window in a range of the first axis, from the indices x and w on. */
static void emit_range(ops_direct_emitter *e, tap_range first)
{
    const ops_direct_key *k = &e->task->key;
    emit_weights(e, first);
    if (k->rank < OPS_MAX_SPATIAL) {
        emit_lines(e, first, 0, 0);
        return;
    }
    const uint32_t volume = (uint32_t)(k->axis[1].taps * k->axis[2].taps);
    for (int32_t i = first.first; i < first.end; i++) {
        emit_lines(e, range_of(k, first, 1), i, (uint32_t)(i - first.first) * volume);
    }
}

/* The window of one channel: whole, or chunks along its first axis by a loop, and the rest. */
static void emit_window(ops_direct_emitter *e, const hal_ir_value *variables)
{
    const ops_direct_key *k = &e->task->key;
    const int32_t length = k->axis[0].taps, chunk = (int32_t)k->chunk;
    const hal_ir_value x = e->x, w = e->w;
    if (chunk < length) {
        const uint32_t of_x =
            (uint32_t)(chunk * k->axis[0].apart / k->axis[0].step) * (uint32_t)k->axis[0].pitch;
        const uint32_t of_w = (uint32_t)(chunk * k->axis[0].w_step);
        const hal_ir_value turn =
            hal_ir_for(e->b, hal_ir_u32(e->b, 0), hal_ir_u32(e->b, (uint32_t)(length / chunk)),
                       hal_ir_u32(e->b, 1));
        e->x = add_product(e->b, x, turn, of_x);
        e->w = add_product(e->b, w, turn, of_w);
        ops_direct_sums_get(e, variables);
        emit_range(e, (tap_range){0, chunk});
        ops_direct_sums_set(e, variables);
        hal_ir_end(e->b);
        e->x = x;
        e->w = w;
    }
    const tap_range rest = {length - (chunk < length ? length % chunk : length), length};
    if (rest.first < rest.end) {
        if (variables) {
            ops_direct_sums_get(e, variables);
        }
        emit_range(e, rest);
        if (variables) {
            ops_direct_sums_set(e, variables);
        }
    }
}

static void emit_sums(ops_direct_emitter *e)
{
    const ops_direct_key *k = &e->task->key;
    const hal_type type = hal_type_of_value(e->task->bindings.types[e->task->slots[OPS_DIRECT_Y]]);
    const hal_ir_value zero = hal_ir_number(e->b, type, 0), x = e->x, w = e->w;
    const uint32_t channels = k->number[OPS_DIRECT_CHANNELS];
    hal_ir_value variables[OPS_DIRECT_RESULTS * OPS_DIRECT_LINES];
    const bool has_loop = k->is_general || channels > 1 || (int32_t)k->chunk < k->axis[0].taps;
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        e->sum[i / k->lines][i % k->lines] = zero;
        variables[i] = has_loop ? hal_ir_var(e->b, zero) : HAL_IR_NONE;
    }
    if (k->is_general || channels > 1) {
        const hal_ir_value channel = hal_ir_for(
            e->b, hal_ir_u32(e->b, 0), number_of(e, OPS_DIRECT_CHANNELS), hal_ir_u32(e->b, 1));
        e->x = add_number(e, x, channel, OPS_DIRECT_X_CHANNEL);
        e->w = add_number(e, w, channel, OPS_DIRECT_W_CHANNEL);
        if (k->is_general) {
            ops_direct_any_window(e, variables);
        } else {
            emit_window(e, variables);
        }
        hal_ir_end(e->b);
    } else {
        emit_window(e, has_loop ? variables : NULL);
    }
    if (has_loop) {
        ops_direct_sums_get(e, variables);
    }
}

/* Indices, of the group's block of results and of the work-item's lane and lines. */
static void emit_place(ops_direct_emitter *e)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value column = hal_ir_global_id(b, 0), row = hal_ir_global_id(b, 1);
    hal_ir_value depth = hal_ir_id(b, HAL_IR_GROUP_ID, 2);
    hal_ir_value block = divide(e, OPS_DIRECT_DEPTH, &depth);
    hal_ir_value group = hal_ir_add(b, divide(e, OPS_DIRECT_BLOCKS, &block), e->first);
    const hal_ir_value image = divide(e, OPS_DIRECT_GROUPS, &group);
    e->x = add_number(e, e->x, image, OPS_DIRECT_X_IMAGE);
    e->x = add_number(e, e->x, group, OPS_DIRECT_X_GROUP);
    e->x = add_number(e, e->x, depth, OPS_DIRECT_X_DEPTH);
    e->x = hal_ir_add(b, add_number(e, e->x, row, OPS_DIRECT_X_ROW), column);
    e->w = add_number(e, e->w, group, OPS_DIRECT_W_GROUP);
    e->w = add_number(e, e->w, block, OPS_DIRECT_W_BLOCK);
    e->y = add_number(e, e->y, image, OPS_DIRECT_Y_IMAGE);
    e->y = add_number(e, e->y, group, OPS_DIRECT_Y_GROUP);
    e->y = add_number(e, e->y, block, OPS_DIRECT_Y_BLOCK);
    e->y = add_number(e, e->y, depth, OPS_DIRECT_Y_DEPTH);
    e->y = add_number(e, e->y, row, OPS_DIRECT_Y_ROW);
    e->y = e->task->key.y_is_near ? hal_ir_add(b, e->y, column)
                                  : add_number(e, e->y, column, OPS_DIRECT_Y_COLUMN);
    e->bias = add_number(e, e->bias, group, OPS_DIRECT_BIAS_GROUP);
    e->bias = add_number(e, e->bias, block, OPS_DIRECT_BIAS_BLOCK);
    const hal_ir_value in_columns = hal_ir_lt(b, column, number_of(e, OPS_DIRECT_COLUMNS));
    for (uint32_t t = 0; t < e->task->key.lines; t++) {
        const hal_ir_value rows = number_of(e, OPS_DIRECT_ROWS + t);
        e->inside[t] = hal_ir_and(b, in_columns, hal_ir_lt(b, row, rows));
    }
    if (e->task->key.is_general) {
        ops_direct_any_place(e, block);
    }
}

/* The indices of a result's first line and of its bias. */
static void place_result(ops_direct_emitter *e, uint32_t r, hal_ir_value *y, hal_ir_value *bias)
{
    const hal_ir_value number = hal_ir_u32(e->b, r);
    *y = r > 0 ? add_number(e, e->y, number, OPS_DIRECT_Y_RESULT) : e->y;
    *bias = r > 0 ? add_number(e, e->bias, number, OPS_DIRECT_BIAS_RESULT) : e->bias;
}

static void emit_result(ops_direct_emitter *e, uint32_t r)
{
    const ops_direct_task *task = e->task;
    const ops_direct_key *k = &task->key;
    const uint32_t *n = k->number;
    hal_ir_value y = e->y, bias = e->bias;
    if (k->is_general) {
        place_result(e, r, &y, &bias);
    }
    if (k->has_bias) {
        bias = hal_ir_load_wide(e->b, task->slots[OPS_DIRECT_BIAS], bias,
                                (int32_t)(r * n[OPS_DIRECT_BIAS_RESULT]), 1, e->has_result[r]);
    }
    for (uint32_t t = 0; t < k->lines; t++) {
        const uint32_t from_y = r * n[OPS_DIRECT_Y_RESULT] + t * n[OPS_DIRECT_Y_LINE];
        hal_ir_value sum = e->sum[r][t], inside = e->inside[t];
        sum = k->has_bias ? hal_ir_add(e->b, sum, bias) : sum;
        if (task->activation) {
            hal_ir_splice(e->b, task->activation->fragment, &sum, 1, &sum, 1);
        }
        y = k->is_general ? y : hal_ir_add(e->b, e->y, hal_ir_u32(e->b, from_y));
        inside = k->is_general ? hal_ir_and(e->b, inside, e->has_result[r]) : inside;
        hal_ir_store_wide(e->b, task->slots[OPS_DIRECT_Y], y, 0, inside, sum);
    }
}

void ops_direct_emit(hal_ir_builder *b, const void *user)
{
    const ops_direct_task *task = user;
    const ops_direct_key *k = &task->key;
    ops_direct_emitter e = {.b = b, .task = task};
    ops_declare_bindings(b, &task->bindings);
    hal_ir_group_size(b, k->lanes, k->rows, 1);
    e.first = hal_ir_scalar_value(b, "first", HAL_TYPE_U32);
    e.x = hal_ir_scalar_value(b, "x", HAL_TYPE_U32);
    e.w = hal_ir_scalar_value(b, "w", HAL_TYPE_U32);
    e.y = hal_ir_scalar_value(b, "y", HAL_TYPE_U32);
    e.bias = hal_ir_scalar_value(b, "bias", HAL_TYPE_U32);
    for (uint32_t r = 0; r < k->results; r++) {
        e.has_result[r] = HAL_IR_NONE;
    }
    if (k->is_general) {
        ops_direct_any_declare(&e);
    }
    emit_place(&e);
    emit_sums(&e);
    for (uint32_t r = 0; r < k->results; r++) {
        emit_result(&e, r);
    }
}
