/* See planes.h. Rows of x that are contiguous are read once, and all phases of their lanes are
 * written by one kernel; other images are copied phase by phase. */
#include "planes.h"

#include "tensor/bindings.h"
#include "tensor/dispatch.h"
#include "tensor/divisor.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"

#include <ops/index.h>

#include <string.h>

/* Most phases of a line that one kernel copies, and work-items of its groups. */
enum {
    LINE_PHASES = 4,
    GROUP_ITEMS = 512,
    LANES = 16,
    MOST_LANES = 64,
    FEW_ROWS = 4,
    MANY_ROWS = 16
};

/* Numbers of lines and distances; of a phase of a line the elements before its first one in x and
 * in the planes, and how many they are. */
enum {
    DEPTH,
    ROWS,
    X_CHANNEL,
    X_DEPTH,
    X_ROW,
    TO_CHANNEL,
    TO_DEPTH,
    TO_ROW,
    X_FIRST,
    TO_FIRST = X_FIRST + LINE_PHASES,
    COUNT = TO_FIRST + LINE_PHASES,
    NUMBERS = COUNT + LINE_PHASES
};

/* What a kernel is compiled for. In a general kernel the numbers are scalars. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct planes_key {
    uint32_t step, lanes, rows; /* phases of a line; of a group */
    uint32_t is_general;
    uint32_t number[NUMBERS];
} planes_key;
OPS_KEY_STRUCTURES_END

typedef struct planes_task {
    planes_key key;
    ops_bindings bindings;
    uint8_t slots[2];
} planes_task;

void ops_planes_init(const int64_t *padded, ops_planes *planes)
{
    planes->elements = 1;
    for (uint32_t i = 0; i < planes->rank; i++) {
        planes->cells[i] = (padded[i] - 1) / planes->step[i] + 1;
        planes->elements *= planes->cells[i] * planes->step[i];
    }
}

int64_t ops_planes_pitch(const ops_planes *planes, uint32_t axis)
{
    int64_t pitch = 1;
    for (uint32_t i = axis + 1; i < planes->rank; i++) {
        pitch *= planes->cells[i];
    }
    return pitch;
}

int64_t ops_planes_phase(const ops_planes *planes, uint32_t axis)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < planes->rank; i++) {
        elements *= planes->cells[i] * (i > axis ? planes->step[i] : 1);
    }
    return elements;
}

/* Along one axis, the cells of a phase that are in x: the first one, its coordinate in x, and how
 * many. */
typedef struct phase_cells {
    int64_t first, at, count;
} phase_cells;

static phase_cells phase_of(const ops_planes *p, uint32_t axis, int64_t phase)
{
    const int64_t step = p->step[axis], ahead = p->before[axis] - phase;
    phase_cells c = {.first = ahead > 0 ? (ahead + step - 1) / step : 0};
    c.at = c.first * step - ahead;
    c.count = c.at < p->length[axis] ? (p->length[axis] - 1 - c.at) / step + 1 : 0;
    return c;
}

/* An index with what all work-items of a group, and their rows, have: `at` are a channel, a depth
 * and a row, `numbers` their distances. */
static hal_ir_value emit_base(hal_ir_builder *b, const char *name, const hal_ir_value at[3],
                              const hal_ir_value *numbers)
{
    hal_ir_value base = hal_ir_scalar_value(b, name, HAL_TYPE_U32);
    for (uint32_t i = 0; i < 3; i++) {
        base = hal_ir_add(b, base, hal_ir_mul(b, at[i], numbers[i]));
    }
    return base;
}

/* Numbers and, from the group, the channel and the depth. */
static void emit_numbers(hal_ir_builder *b, const planes_key *k, hal_ir_value number[NUMBERS],
                         hal_ir_value at[3])
{
    at[1] = hal_ir_id(b, HAL_IR_GROUP_ID, 2);
    if (k->is_general) {
        const ops_divisor by_depth = ops_divisor_declare(b, 0);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            number[i] = ops_scalar(b, "number", i, 0, HAL_TYPE_U32);
        }
        at[0] = ops_divisor_quotient(b, &by_depth, at[1]);
        at[1] = hal_ir_sub(b, at[1], hal_ir_mul(b, at[0], number[DEPTH]));
    } else {
        for (uint32_t i = 0; i < NUMBERS; i++) {
            number[i] = hal_ir_u32(b, k->number[i]);
        }
        at[0] = ops_divide_by_constant(b, k->number[DEPTH], &at[1]);
    }
}

static void emit_planes(hal_ir_builder *b, const void *user)
{
    const planes_task *t = user;
    const planes_key *k = &t->key;
    hal_ir_value number[NUMBERS], at[3], x_index[LINE_PHASES];
    ops_declare_bindings(b, &t->bindings);
    hal_ir_group_size(b, k->lanes, k->rows, 1);
    const hal_ir_value column = hal_ir_global_id(b, 0);
    emit_numbers(b, k, number, at);
    at[2] = hal_ir_global_id(b, 1);
    const hal_ir_value in_rows = hal_ir_lt(b, at[2], number[ROWS]);
    const hal_ir_value x = emit_base(b, "x", at, number + X_CHANNEL);
    const hal_ir_value to = hal_ir_add(b, emit_base(b, "to", at, number + TO_CHANNEL), column);
    const hal_ir_value in_line =
        hal_ir_add(b, x, k->step == 1 ? column : hal_ir_mul(b, column, hal_ir_u32(b, k->step)));
    for (uint32_t i = 0; i < k->step; i++) {
        x_index[i] = hal_ir_add(b, in_line, number[X_FIRST + i]);
    }
    for (uint32_t i = 0; i < k->step; i++) {
        const hal_ir_value inside = hal_ir_and(b, hal_ir_lt(b, column, number[COUNT + i]), in_rows);
        const hal_ir_value element = hal_ir_load_wide(b, t->slots[0], x_index[i], 0, 1, inside);
        hal_ir_store_wide(b, t->slots[1], hal_ir_add(b, to, number[TO_FIRST + i]), 0, inside,
                          element);
    }
}

/* Lanes of a line of which few are idle, and rows: an even share, or of a general kernel one of few
 * numbers. */
static void group_choose(const ops_context *context, int64_t columns, planes_key *k)
{
    const uint32_t most = context->info->max_group_items < GROUP_ITEMS
                              ? context->info->max_group_items
                              : (uint32_t)GROUP_ITEMS;
    const uint32_t rows = k->number[ROWS];
    uint64_t least = UINT64_MAX;
    for (uint32_t lanes = MOST_LANES; lanes >= LANES; lanes /= 2) {
        const uint64_t all = ops_ceil_divide((uint64_t)columns, lanes) * lanes;
        k->lanes = all < least ? lanes : k->lanes;
        least = all < least ? all : least;
    }
    k->rows = !k->is_general    ? ops_even_share(rows, most / k->lanes)
              : rows > FEW_ROWS ? MANY_ROWS
                                : FEW_ROWS;
}

static void task_append_key(const planes_task *t, ops_cache_key *key)
{
    ops_cache_key_begin(key, OPS_FAMILY_PLANES);
    ops_cache_key_append(key, &t->key, sizeof t->key);
    ops_bindings_key(&t->bindings, t->slots, 2, key);
}

/* Makes a task general: its numbers become scalars. */
static void task_generalise(planes_task *t, ops_block *block)
{
    planes_key *k = &t->key;
    ops_divisor_put(k->number[DEPTH], block);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        ops_put_u32(block, k->number[i]);
    }
    memset(k->number, 0, sizeof k->number);
}

/* Records the kernel of the lines of one phase of the other axes: x and `to` begin at their first
 * lines. */
static hal_status record_lines(ops_context *context, planes_task *t, const ops_tensor *x,
                               const ops_tensor *to, int64_t channels, int64_t columns)
{
    planes_key *k = &t->key;
    const uint32_t rows = k->number[ROWS], depth = k->number[DEPTH];
    const uint64_t elements = (uint64_t)(channels * columns) * rows * depth * k->step;
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    ops_block_begin(&block);
    group_choose(context, columns, k);
    task_append_key(t, &key);
    HAL_TRY(ops_cache_get_special(context, &key, "planes", emit_planes, t,
                                  elements * context->tuning->elementwise.general_lanes_bytes,
                                  &entry));
    if (!entry) {
        k->is_general = 1;
        group_choose(context, columns, k);
        task_generalise(t, &block);
        task_append_key(t, &key);
        HAL_TRY(ops_cache_get(context, &key, "planes", emit_planes, t, &entry));
    }
    ops_put_u32(&block, (uint32_t)ops_base(&t->bindings, t->slots[0], x));
    ops_put_u32(&block, (uint32_t)ops_base(&t->bindings, t->slots[1], to));
    const uint32_t grid[3] = {(uint32_t)ops_ceil_divide((uint64_t)columns, k->lanes),
                              (uint32_t)ops_ceil_divide(rows, k->rows), (uint32_t)channels * depth};
    return ops_dispatch(context, entry, grid, &t->bindings, &block);
}

/* Of one axis the channels are the rows of groups, of two the first axis, of three the second. */
static hal_status copy_lines(ops_context *context, const ops_planes *p, const int64_t *phase,
                             const ops_tensor *x, const ops_tensor *to)
{
    const uint32_t last = p->rank - 1;
    planes_task t;
    ops_tensor from = *x, target = *to;
    memset(&t, 0, sizeof t); /* a part of the key */
    uint32_t *n = t.key.number;
    int64_t columns = 0, channels = x->shape[0];
    t.key.step = (uint32_t)p->step[last];
    n[X_CHANNEL] = (uint32_t)x->stride[0];
    n[TO_CHANNEL] = (uint32_t)p->elements;
    n[DEPTH] = 1;
    n[ROWS] = 1;
    for (uint32_t i = 0; i < last; i++) {
        const phase_cells c = phase_of(p, i, phase[i]);
        const int64_t x_step = x->stride[i + 1] * p->step[i], to_step = ops_planes_pitch(p, i);
        from.offset += c.at * x->stride[i + 1];
        target.offset += phase[i] * ops_planes_phase(p, i) + c.first * to_step;
        const bool is_row = i + 1 == last;
        *(is_row ? &n[ROWS] : &n[DEPTH]) = (uint32_t)c.count;
        *(is_row ? &n[X_ROW] : &n[X_DEPTH]) = (uint32_t)x_step;
        *(is_row ? &n[TO_ROW] : &n[TO_DEPTH]) = (uint32_t)to_step;
    }
    if (last == 0) {
        n[ROWS] = (uint32_t)channels;
        n[X_ROW] = n[X_CHANNEL];
        n[TO_ROW] = n[TO_CHANNEL];
        channels = 1;
    }
    for (uint32_t i = 0; i < t.key.step; i++) {
        const phase_cells c = phase_of(p, last, i);
        n[X_FIRST + i] = (uint32_t)c.at;
        n[TO_FIRST + i] = (uint32_t)(i * ops_planes_phase(p, last) + c.first);
        n[COUNT + i] = (uint32_t)c.count;
        columns = c.count > columns ? c.count : columns;
    }
    if (columns == 0 || n[ROWS] == 0 || n[DEPTH] == 0) {
        return HAL_OK;
    }
    t.slots[0] = (uint8_t)ops_bind(context, &t.bindings, x, HAL_ACCESS_READ);
    t.slots[1] = (uint8_t)ops_bind(context, &t.bindings, to, HAL_ACCESS_WRITE);
    return record_lines(context, &t, &from, &target, channels, columns);
}

/* Copies the elements of one phase of every axis. */
static hal_status copy_phase(ops_context *context, const ops_planes *p, const int64_t *phase,
                             const ops_tensor *x, const ops_tensor *to)
{
    ops_tensor from = *x, target = *x;
    target.buffer = to->buffer;
    target.offset = to->offset;
    target.stride[0] = p->elements;
    for (uint32_t i = 0; i < p->rank; i++) {
        const phase_cells c = phase_of(p, i, phase[i]);
        from.offset += c.at * x->stride[i + 1];
        from.stride[i + 1] = x->stride[i + 1] * p->step[i];
        target.offset += phase[i] * ops_planes_phase(p, i) + c.first * ops_planes_pitch(p, i);
        target.stride[i + 1] = ops_planes_pitch(p, i);
        from.shape[i + 1] = target.shape[i + 1] = c.count;
        if (c.count == 0) {
            return HAL_OK;
        }
    }
    return ops_copy(context, &from, &target);
}

/* Whether lines are contiguous, and indices have 32 bits. */
static bool has_lines(const ops_planes *p, const ops_tensor *x)
{
    bool fits = x->stride[p->rank] == 1 && p->step[p->rank - 1] <= LINE_PHASES;
    for (uint32_t i = 0; i < x->rank; i++) {
        fits = fits && x->stride[i] >= 0;
    }
    int64_t first, end;
    ops_span(x, &first, &end);
    return fits && end - first < INT32_MAX / 2;
}

hal_status ops_planes_copy(ops_context *context, const ops_planes *p, const ops_tensor *x,
                           const ops_tensor *to)
{
    const bool by_lines = has_lines(p, x);
    const uint32_t axes = by_lines ? p->rank - 1 : p->rank;
    int64_t phase[OPS_MAX_SPATIAL] = {0};
    for (bool more = true; more;) {
        HAL_TRY(by_lines ? copy_lines(context, p, phase, x, to)
                         : copy_phase(context, p, phase, x, to));
        more = false;
        for (uint32_t i = axes; i-- > 0 && !more;) {
            more = ++phase[i] < p->step[i];
            phase[i] = more ? phase[i] : 0;
        }
    }
    return HAL_OK;
}
