/* General kernels of direct convolutions, for any lengths, steps, distances and numbers of
 * channels: these are scalars. The products of a result are added in the order of the kernel of one
 * shape: those of a channel in the order of the window. */
#include "direct_any.h"

/* Whether weights of unrolled axes are neighbours in order. */
static bool has_near_weights(const ops_direct_key *k)
{
    int32_t step = 1;
    bool is_near = k->unrolled < k->rank;
    for (uint32_t i = k->rank; i-- > k->unrolled;) {
        is_near = is_near && (k->axis[i].w_step == step || k->axis[i].taps == 1);
        step *= k->axis[i].taps;
    }
    return is_near;
}

/* Numbers that others are divided by. */
static const uint8_t divisors[] = {OPS_DIRECT_DEPTH, OPS_DIRECT_BLOCKS, OPS_DIRECT_GROUPS};
enum { DIVISORS = sizeof divisors };

hal_ir_value ops_direct_any_divide(ops_direct_emitter *e, uint32_t which, hal_ir_value *x)
{
    const ops_divisor *divisor = &e->divisor[0];
    for (uint32_t i = 0; i < DIVISORS; i++) {
        divisor = divisors[i] == which ? &e->divisor[i] : divisor;
    }
    const hal_ir_value quotient = ops_divisor_quotient(e->b, divisor, *x);
    *x = hal_ir_sub(e->b, *x, hal_ir_mul(e->b, quotient, e->number[which]));
    return quotient;
}

void ops_direct_generalise(ops_direct_key *k, uint32_t outputs, ops_block *block)
{
    const ops_direct_axis *last = &k->axis[k->rank - 1];
    k->x_is_near = k->unrolled < k->rank && last->apart == 1 && last->step == 1 && last->pitch == 1;
    k->w_is_near = has_near_weights(k);
    k->y_is_near = k->number[OPS_DIRECT_Y_COLUMN] == 1;
    k->chunk = 0;
    for (uint32_t i = 0; i < DIVISORS; i++) {
        ops_divisor_put(k->number[divisors[i]], block);
    }
    for (uint32_t i = 0; i < OPS_DIRECT_NUMBERS; i++) {
        ops_put_u32(block, k->number[i]);
        k->number[i] = 0;
    }
    ops_put_u32(block, outputs);
    for (uint32_t i = 0; i < k->rank; i++) {
        const ops_direct_axis *axis = &k->axis[i];
        const int32_t numbers[] = {axis->taps,  axis->position, axis->apart, axis->step,
                                   axis->phase, axis->pitch,    axis->w_step};
        for (uint32_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
            ops_put_u32(block, (uint32_t)numbers[j]);
        }
        ops_divisor_put((uint32_t)axis->step, block);
        k->axis[i] = (ops_direct_axis){.taps = i < k->unrolled ? 0 : axis->taps};
    }
}

void ops_direct_any_declare(ops_direct_emitter *e)
{
    static const char *const names[] = {"taps",  "position", "apart", "step",
                                        "phase", "pitch",    "w_step"};
    hal_ir_builder *b = e->b;
    for (uint32_t i = 0; i < DIVISORS; i++) {
        e->divisor[i] = ops_divisor_declare(b, i);
    }
    for (uint32_t i = 0; i < OPS_DIRECT_NUMBERS; i++) {
        e->number[i] = ops_scalar(b, "number", i, 0, HAL_TYPE_U32);
    }
    e->outputs = hal_ir_scalar_value(b, "outputs", HAL_TYPE_U32);
    for (uint32_t i = 0; i < e->task->key.rank; i++) {
        hal_ir_value *const values[] = {&e->axis[i].taps,  &e->axis[i].position, &e->axis[i].apart,
                                        &e->axis[i].step,  &e->axis[i].phase,    &e->axis[i].pitch,
                                        &e->axis[i].w_step};
        for (uint32_t j = 0; j < sizeof values / sizeof *values; j++) {
            *values[j] = ops_scalar(b, names[j], i, 0, HAL_TYPE_U32);
        }
        e->axis[i].by_step = ops_divisor_declare(b, DIVISORS + i);
    }
}

/* Elements from a channel's first one to an element of the window along an axis. */
static hal_ir_value offset_of_x(ops_direct_emitter *e, uint32_t axis, hal_ir_value tap)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value step = e->axis[axis].step;
    const hal_ir_value at =
        hal_ir_add(b, e->axis[axis].position, hal_ir_mul(b, tap, e->axis[axis].apart));
    const hal_ir_value cell = ops_divisor_quotient(b, &e->axis[axis].by_step, at);
    const hal_ir_value phase = hal_ir_sub(b, at, hal_ir_mul(b, cell, step));
    return hal_ir_add(b, hal_ir_mul(b, phase, e->axis[axis].phase),
                      hal_ir_mul(b, cell, e->axis[axis].pitch));
}

/* How many elements of the window along an axis have no loop. */
static uint32_t taps_of(const ops_direct_key *k, uint32_t axis)
{
    return axis < k->rank && axis >= k->unrolled ? (uint32_t)k->axis[axis].taps : 1;
}

/* The place and the weight of each element that has no loop, from the first ones of a channel. */
static void offsets_emit(ops_direct_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_direct_key *k = &e->task->key;
    const hal_ir_value zero = hal_ir_u32(b, 0);
    uint32_t count = 1;
    e->tap_x[0] = e->tap_w[0] = zero;
    for (uint32_t i = k->rank; i-- > k->unrolled;) { /* those of later axes are there */
        const uint32_t taps = taps_of(k, i);
        for (uint32_t j = taps; j-- > 0;) {
            const hal_ir_value tap = hal_ir_u32(b, j);
            const hal_ir_value x = offset_of_x(e, i, tap);
            const hal_ir_value w = hal_ir_mul(b, tap, e->axis[i].w_step);
            for (uint32_t n = 0; n < count; n++) {
                e->tap_x[j * count + n] = hal_ir_add(b, e->tap_x[n], x);
                e->tap_w[j * count + n] = hal_ir_add(b, e->tap_w[n], w);
            }
        }
        count *= taps;
    }
}

void ops_direct_any_place(ops_direct_emitter *e, hal_ir_value block)
{
    hal_ir_builder *b = e->b;
    const ops_direct_key *k = &e->task->key;
    const hal_ir_value first = hal_ir_mul(b, block, hal_ir_u32(b, k->results));
    for (uint32_t r = 0; r < k->results; r++) {
        const hal_ir_value number = hal_ir_u32(b, r);
        e->has_result[r] = hal_ir_lt(b, hal_ir_add(b, first, number), e->outputs);
        e->of_w[r] =
            hal_ir_select(b, e->has_result[r],
                          hal_ir_mul(b, number, e->number[OPS_DIRECT_W_RESULT]), hal_ir_u32(b, 0));
    }
    offsets_emit(e);
}

/* Of an element: how many before it in its line are in order in x. */
static uint32_t near_of(const ops_direct_key *k, uint32_t number)
{
    return k->x_is_near ? number % taps_of(k, k->rank - 1) : 0;
}

/* Adds the elements that have no loop. Indices and weights, which all work-items share, come before
 * the products, since a processor's loop over lanes ends where there is one between them. */
static void elements_emit(ops_direct_emitter *e, const hal_ir_value *variables)
{
    hal_ir_builder *b = e->b;
    const ops_direct_key *k = &e->task->key;
    const uint32_t count = taps_of(k, 0) * taps_of(k, 1) * taps_of(k, 2);
    hal_ir_value x[OPS_DIRECT_TAPS], first[OPS_DIRECT_RESULTS];
    for (uint32_t n = 0; n < count; n++) {
        x[n] = near_of(k, n) > 0 ? x[n - 1] : hal_ir_add(b, e->x, e->tap_x[n]);
    }
    for (uint32_t r = 0; r < k->results; r++) {
        first[r] = hal_ir_add(b, e->w, e->of_w[r]);
    }
    for (uint32_t n = 0; n < count * k->results; n++) {
        const hal_ir_value from = first[n % k->results], tap = e->tap_w[n / k->results];
        e->weight[n] = hal_ir_load_wide(
            b, e->task->slots[OPS_DIRECT_W], k->w_is_near ? from : hal_ir_add(b, from, tap),
            k->w_is_near ? (int32_t)(n / k->results) : 0, 1, HAL_IR_NONE);
    }
    ops_direct_sums_get(e, variables);
    for (uint32_t n = 0; n < count; n++) {
        const hal_ir_value element = hal_ir_load_wide(b, e->task->slots[OPS_DIRECT_X], x[n],
                                                      (int32_t)near_of(k, n), 1, e->inside[0]);
        for (uint32_t r = 0; r < k->results; r++) {
            e->sum[r][0] = hal_ir_fma(b, element, e->weight[n * k->results + r], e->sum[r][0]);
        }
    }
    ops_direct_sums_set(e, variables);
}

void ops_direct_any_window(ops_direct_emitter *e, const hal_ir_value *variables)
{
    hal_ir_builder *b = e->b;
    const ops_direct_key *k = &e->task->key;
    for (uint32_t i = 0; i < k->unrolled; i++) {
        const hal_ir_value tap = hal_ir_for(b, hal_ir_u32(b, 0), e->axis[i].taps, hal_ir_u32(b, 1));
        e->x = hal_ir_add(b, e->x, offset_of_x(e, i, tap));
        e->w = hal_ir_add(b, e->w, hal_ir_mul(b, tap, e->axis[i].w_step));
    }
    elements_emit(e, variables);
    for (uint32_t i = 0; i < k->unrolled; i++) {
        hal_ir_end(b);
    }
}
