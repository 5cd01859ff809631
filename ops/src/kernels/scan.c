/* Scans along an axis. A line of the axis is scanned by one work-item, or by a group that shares
 * it. Few long lines are cut into parts: a first kernel computes the total of each part, a second
 * one scans the totals, and a third one scans the parts, each beginning with what precedes it. */
#include "fold.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"
#include "tensor/loop_limit.h"
#include "tensor/overlap.h"

#include <ops/scan.h>

/* Elements that a work-item loads before it combines them. */
enum { ITEM_ELEMENTS = 4 };

/* Views of the space, and the numbers of their bindings. */
enum { VIEW_X, VIEW_Y, VIEW_COUNT };

/* What the kernel depends on besides layout and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct scan_form {
    uint8_t kind;
    hal_type type;       /* of values */
    uint8_t shares_line; /* a group scans a line, or its part, together */
    uint8_t only_totals; /* of parts, instead of elements */
    uint8_t has_carry;   /* elements follow those of an earlier part */
    uint8_t reserved[3];
    uint32_t items; /* of a group; a power of two if a line is shared */
} scan_form;
OPS_KEY_STRUCTURES_END

/* One kernel. `partial`: the totals of all parts, or those of each part and all before it, [parts,
 * lines]. */
typedef struct scan_pass {
    scan_form form;
    ops_space space;
    ops_axis axis;
    ops_layout layout;
    ops_bindings bindings;
    uint8_t slots[VIEW_COUNT];
    uint8_t partial; /* its binding */
    uint32_t grid[3];
} scan_pass;

/* How lines are cut. */
typedef struct scan_parts {
    int64_t lines, count, length; /* all parts except the last one have the length */
    uint32_t items;
    bool shares_line;
} scan_parts;

/* The scalars of the kernel, and its place in the work. */
typedef struct scan_place {
    hal_ir_value number, lines;     /* the part's place in `partial`, and those of one part */
    hal_ir_value inside;            /* BOOL: there is such a line and part */
    hal_ir_value first, end;        /* U32, on the axis */
    hal_ir_value index[VIEW_COUNT]; /* of the line's first element */
    hal_ir_value strides[VIEW_COUNT];
    hal_type index_type;
} scan_place;

static hal_ir_value combine(hal_ir_builder *b, uint32_t kind, hal_ir_value x, hal_ir_value y)
{
    static const uint32_t opcodes[OPS_SCAN_KIND_COUNT] = {
        [OPS_SCAN_SUM] = HAL_IR_ADD,
        [OPS_SCAN_PRODUCT] = HAL_IR_MUL,
        [OPS_SCAN_MAX] = HAL_IR_MAX,
        [OPS_SCAN_MIN] = HAL_IR_MIN,
    };
    return hal_ir_binary(b, opcodes[kind], x, y);
}

/* What leaves every value as it is: of float sums -0, which keeps the sign of a zero. */
static hal_ir_value neutral(hal_ir_builder *b, uint32_t kind, hal_type type)
{
    switch (kind) {
    case OPS_SCAN_SUM:
        return hal_ir_number(b, type, hal_type_is_float(type) ? -0.0 : 0.0);
    case OPS_SCAN_PRODUCT:
        return hal_ir_number(b, type, 1);
    default:
        return ops_fold_identity(b, kind == OPS_SCAN_MAX ? OPS_REDUCE_MAX : OPS_REDUCE_MIN, type)
            .value;
    }
}

/* Declares the scalars in the order of pass_put. */
static void emit_place(hal_ir_builder *b, const scan_pass *p, scan_place *place)
{
    const scan_form *form = &p->form;
    ops_layout_values values;
    ops_layout_declare(b, &p->space, &p->layout, &values);
    ops_axis_declare(b, &p->axis, &p->layout, place->strides);
    const hal_type type = place->index_type = values.type;
    const hal_ir_value parts = hal_ir_scalar_value(b, "parts", type);
    const hal_ir_value length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    const hal_ir_value part_length = hal_ir_scalar_value(b, "part_length", HAL_TYPE_U32);
    hal_ir_group_size(b, form->items, 1, 1);
    hal_ir_value number = ops_value_cast(b, type, ops_index_group(b));
    if (!form->shares_line) {
        number = hal_ir_mul(b, number, ops_index_constant(b, type, form->items));
        number = hal_ir_add(b, number, ops_value_cast(b, type, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    }
    place->inside = hal_ir_lt(b, number, hal_ir_mul(b, values.total, parts));
    place->number = number;
    place->lines = values.total;
    const hal_ir_value part = hal_ir_div(b, number, values.total);
    const hal_ir_value line = hal_ir_sub(b, number, hal_ir_mul(b, part, values.total));
    for (uint32_t view = 0; view < VIEW_COUNT; view++) {
        place->index[view] = values.base[view];
    }
    ops_layout_offset(b, &p->layout, &values, line, p->layout.rank, place->index);
    /* Work-items without a part have none of its elements. */
    const hal_ir_value in_line = hal_ir_cast(b, HAL_TYPE_U32, part);
    place->first = hal_ir_select(b, place->inside, hal_ir_mul(b, in_line, part_length), length);
    const hal_ir_value rest = hal_ir_sub(b, length, place->first);
    place->end = hal_ir_add(b, place->first, hal_ir_min(b, rest, part_length));
}

/* The elements from number k on, with the neutral value beyond the part; *guards: which exist. */
static void emit_loads(hal_ir_builder *b, const scan_pass *p, const scan_place *place,
                       hal_ir_value k, hal_ir_value *values, hal_ir_value *places,
                       hal_ir_value *guards)
{
    const hal_ir_value none = neutral(b, p->form.kind, p->form.type);
    for (uint32_t j = 0; j < ITEM_ELEMENTS; j++) {
        places[j] = j ? hal_ir_add(b, k, hal_ir_u32(b, j)) : k;
        guards[j] = hal_ir_lt(b, places[j], place->end);
        const hal_ir_value index = ops_axis_place(b, &p->axis, place->strides, place->index_type,
                                                  VIEW_X, place->index[VIEW_X], places[j]);
        values[j] = hal_ir_load_wide(b, p->slots[VIEW_X], index, 0, 1, guards[j]);
    }
    for (uint32_t j = 0; j < ITEM_ELEMENTS; j++) {
        values[j] = hal_ir_select(b, guards[j], values[j], none);
    }
}

static void emit_stores(hal_ir_builder *b, const scan_pass *p, const scan_place *place,
                        const hal_ir_value *values, const hal_ir_value *places,
                        const hal_ir_value *guards)
{
    for (uint32_t j = 0; j < ITEM_ELEMENTS && !p->form.only_totals; j++) {
        const hal_ir_value index = ops_axis_place(b, &p->axis, place->strides, place->index_type,
                                                  VIEW_Y, place->index[VIEW_Y], places[j]);
        hal_ir_store_wide(b, p->slots[VIEW_Y], index, 0, guards[j], values[j]);
    }
}

/* A work-item walks along its part. */
static void emit_walk(hal_ir_builder *b, const scan_pass *p, const scan_place *place,
                      hal_ir_value carry)
{
    hal_ir_value values[ITEM_ELEMENTS], places[ITEM_ELEMENTS], guards[ITEM_ELEMENTS];
    const hal_ir_value step = hal_ir_u32(b, ITEM_ELEMENTS);
    const hal_ir_value k = hal_ir_for(b, place->first, place->end, step);
    emit_loads(b, p, place, k, values, places, guards);
    hal_ir_value sum = hal_ir_get(b, carry);
    for (uint32_t j = 0; j < ITEM_ELEMENTS; j++) {
        values[j] = sum = combine(b, p->form.kind, sum, values[j]);
    }
    hal_ir_set(b, carry, sum);
    emit_stores(b, p, place, values, places, guards);
    hal_ir_end(b);
}

/* The combination of the values of all work-items before this one, and of all. */
static hal_ir_value emit_group_scan(hal_ir_builder *b, const scan_pass *p, hal_ir_memory_id shared,
                                    hal_ir_value item, hal_ir_value value, hal_ir_value *all)
{
    const uint32_t items = p->form.items;
    uint32_t half = 0; /* of the shared memory that holds the newest values */
    hal_ir_store(b, shared, item, value);
    hal_ir_barrier(b);
    for (uint32_t distance = 1; distance < items; distance *= 2, half ^= 1) {
        const hal_ir_value is_later = hal_ir_le(b, hal_ir_u32(b, distance), item);
        const hal_ir_value other =
            hal_ir_load_wide(b, shared, hal_ir_sub(b, item, hal_ir_u32(b, distance)),
                             (int32_t)(half * items), 1, is_later);
        value = hal_ir_select(b, is_later, combine(b, p->form.kind, other, value), value);
        hal_ir_store_wide(b, shared, item, (int32_t)((half ^ 1) * items), HAL_IR_NONE, value);
        hal_ir_barrier(b);
    }
    const hal_ir_value is_later = hal_ir_lt(b, hal_ir_u32(b, 0), item);
    const hal_ir_value before = hal_ir_load_wide(b, shared, hal_ir_sub(b, item, hal_ir_u32(b, 1)),
                                                 (int32_t)(half * items), 1, is_later);
    *all = hal_ir_load_wide(b, shared, hal_ir_u32(b, items - 1), (int32_t)(half * items), 1,
                            HAL_IR_NONE);
    hal_ir_barrier(b);
    return hal_ir_select(b, is_later, before, neutral(b, p->form.kind, p->form.type));
}

/* A group walks along its part in steps that its work-items share. */
static void emit_shared_walk(hal_ir_builder *b, const scan_pass *p, const scan_place *place,
                             hal_ir_memory_id shared, hal_ir_value carry)
{
    hal_ir_value values[ITEM_ELEMENTS], places[ITEM_ELEMENTS], guards[ITEM_ELEMENTS], all;
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value own = hal_ir_mul(b, item, hal_ir_u32(b, ITEM_ELEMENTS));
    const hal_ir_value step = hal_ir_u32(b, p->form.items * ITEM_ELEMENTS);
    const hal_ir_value k = hal_ir_for(b, place->first, place->end, step);
    emit_loads(b, p, place, hal_ir_add(b, k, own), values, places, guards);
    for (uint32_t j = 1; j < ITEM_ELEMENTS; j++) {
        values[j] = combine(b, p->form.kind, values[j - 1], values[j]);
    }
    hal_ir_value before = emit_group_scan(b, p, shared, item, values[ITEM_ELEMENTS - 1], &all);
    const hal_ir_value earlier = hal_ir_get(b, carry);
    before = combine(b, p->form.kind, earlier, before);
    for (uint32_t j = 0; j < ITEM_ELEMENTS; j++) {
        values[j] = combine(b, p->form.kind, before, values[j]);
    }
    hal_ir_set(b, carry, combine(b, p->form.kind, earlier, all));
    emit_stores(b, p, place, values, places, guards);
    hal_ir_end(b);
}

static void emit_scan(hal_ir_builder *b, const void *user)
{
    const scan_pass *p = user;
    const scan_form *form = &p->form;
    scan_place place;
    ops_declare_bindings(b, &p->bindings);
    const hal_ir_memory_id shared =
        form->shares_line ? hal_ir_shared(b, "values", form->type, 2 * form->items) : 0;
    emit_place(b, p, &place);
    const hal_ir_value none = neutral(b, form->kind, form->type);
    hal_ir_value start = none;
    if (form->has_carry) { /* of the part before */
        const hal_ir_value has_one =
            hal_ir_and(b, place.inside, hal_ir_le(b, place.lines, place.number));
        start = hal_ir_load_wide(b, p->partial, hal_ir_sub(b, place.number, place.lines), 0, 1,
                                 has_one);
        start = hal_ir_select(b, has_one, start, none);
    }
    const hal_ir_value carry = hal_ir_var(b, start);
    if (form->shares_line) {
        emit_shared_walk(b, p, &place, shared, carry);
    } else {
        emit_walk(b, p, &place, carry);
    }
    if (form->only_totals) {
        hal_ir_value stores = place.inside;
        if (form->shares_line) {
            const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
            stores = hal_ir_and(b, stores, hal_ir_eq(b, item, hal_ir_u32(b, 0)));
        }
        hal_ir_store_wide(b, p->partial, place.number, 0, stores, hal_ir_get(b, carry));
    }
}

/* Fewest groups, or work-items, that keep a device busy, from which lines are not cut. */
static scan_parts parts_choose(const ops_context *context, const ops_tensor *x, uint32_t axis)
{
    const ops_scan_tuning *tuning = &context->tuning->scan;
    const hal_device_info *info = context->info;
    const int64_t length = x->shape[axis];
    scan_parts parts = {.lines = ops_tensor_get_element_count(x) / length,
                        .items = ops_group_items(info)};
    const int64_t unit_items = (int64_t)info->compute_units * tuning->unit_items;
    bool has_neighbours = false; /* lines that are contiguous in memory next to each other */
    for (uint32_t i = 0; i < x->rank; i++) {
        has_neighbours |= i != axis && x->stride[i] == 1 && x->shape[i] >= parts.items / 4;
    }
    parts.shares_line = tuning->shares_lines && length > tuning->min_shared_length &&
                        !(has_neighbours && parts.lines >= unit_items / tuning->busy_share);
    while (parts.shares_line && (parts.items & (parts.items - 1)) != 0) {
        parts.items &= parts.items - 1;
    }
    while (parts.shares_line && parts.items / 2 * ITEM_ELEMENTS >= length) {
        parts.items /= 2; /* no idle ones on short lines */
    }
    const int64_t step = ITEM_ELEMENTS * (parts.shares_line ? (int64_t)parts.items : 1);
    const int64_t enough = parts.shares_line ? unit_items / parts.items : unit_items;
    const int64_t least = parts.shares_line ? step : tuning->min_part_length;
    int64_t count = (enough + parts.lines - 1) / parts.lines;
    count = count < length / least ? count : length / least;
    count = count > 1 ? count : 1;
    /* A loop takes as many steps as the device allows. */
    const int64_t longest = ops_loop_limit(context, 0, 0);
    const int64_t needed = longest < length / step ? (length - 1) / (longest * step) + 1 : 1;
    count = count > needed ? count : needed;
    parts.length = ((length + count - 1) / count + step - 1) / step * step;
    parts.count = (length + parts.length - 1) / parts.length;
    return parts;
}

/* Plans and records one kernel: of the totals of x's parts to `partial`, or of its elements to y,
 * after those of `partial` if there are several parts. */
static hal_status record_pass(ops_context *context, uint32_t kind, uint32_t axis,
                              const ops_tensor *x, const ops_tensor *y, const scan_parts *parts,
                              const ops_tensor *partial, bool only_totals)
{
    scan_pass p = {.form = {.kind = (uint8_t)kind,
                            .type = hal_type_of_value(x->type),
                            .shares_line = parts->shares_line,
                            .only_totals = only_totals,
                            .has_carry = partial && !only_totals,
                            .items = parts->items}};
    ops_space_begin(&p.space, x->rank, x->shape);
    ops_space_add(&p.space, x, 0);
    ops_space_add(&p.space, y, 0);
    ops_axis_take(&p.space, axis, &p.axis);
    p.slots[VIEW_X] = (uint8_t)ops_bind(context, &p.bindings, x, HAL_ACCESS_READ);
    if (!only_totals) {
        p.slots[VIEW_Y] = (uint8_t)ops_bind(context, &p.bindings, y, HAL_ACCESS_WRITE);
    }
    if (partial) {
        p.partial = (uint8_t)ops_bind(context, &p.bindings, partial,
                                      only_totals ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
    }
    p.space.base[VIEW_X] = ops_base(&p.bindings, p.slots[VIEW_X], x);
    p.space.base[VIEW_Y] = only_totals ? 0 : ops_base(&p.bindings, p.slots[VIEW_Y], y);
    ops_space_collapse(&p.space, VIEW_X);
    ops_layout_choose(context, &p.space, 4 * sizeof(uint64_t), ops_axis_reach(&p.axis, VIEW_COUNT),
                      &p.layout);
    const uint64_t all = (uint64_t)parts->lines * (uint64_t)parts->count;
    HAL_TRY(ops_grid_spread(context, "ops_scan",
                            parts->shares_line ? all : ops_ceil_divide(all, parts->items), p.grid));
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_SCAN);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_cache_key_append(&key, &p.partial, sizeof p.partial);
    ops_bindings_key(&p.bindings, p.slots, VIEW_COUNT, &key);
    ops_layout_key(&p.space, &p.layout, &key);
    ops_cache_key_append(&key, p.axis.step, VIEW_COUNT);
    ops_entry *entry;
    HAL_TRY(ops_cache_get(context, &key, "scan", emit_scan, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&p.space, &p.layout, &block);
    ops_axis_put(&p.axis, &p.layout, &block);
    ops_put_index(&block, p.layout.index64, parts->count);
    ops_put_u32(&block, (uint32_t)p.axis.length);
    ops_put_u32(&block, (uint32_t)parts->length);
    return ops_dispatch(context, entry, p.grid, &p.bindings, &block);
}

static hal_status record_scan(ops_context *context, uint32_t kind, uint32_t axis,
                              const ops_tensor *x, const ops_tensor *y);

/* The three kernels of lines in parts. */
static hal_status record_parts(ops_context *context, uint32_t kind, uint32_t axis,
                               const ops_tensor *x, const ops_tensor *y, const scan_parts *parts)
{
    ops_tensor partial = {.type = hal_type_of_value(x->type),
                          .rank = 2,
                          .shape = {parts->count, parts->lines},
                          .stride = {parts->lines, 1}};
    const uint64_t count = (uint64_t)parts->count * (uint64_t)parts->lines;
    HAL_TRY(ops_buffer_create(context, count * hal_type_size(partial.type), &partial.buffer));
    hal_status status = record_pass(context, kind, axis, x, y, parts, &partial, true);
    if (status == HAL_OK) {
        status = record_scan(context, kind, 0, &partial, &partial);
    }
    if (status == HAL_OK) {
        status = record_pass(context, kind, axis, x, y, parts, &partial, false);
    }
    hal_buffer_release(partial.buffer);
    return status;
}

static hal_status record_scan(ops_context *context, uint32_t kind, uint32_t axis,
                              const ops_tensor *x, const ops_tensor *y)
{
    const scan_parts parts = parts_choose(context, x, axis);
    return parts.count == 1 ? record_pass(context, kind, axis, x, y, &parts, NULL, false)
                            : record_parts(context, kind, axis, x, y, &parts);
}

static hal_status check_scan(const ops_context *context, ops_scan_kind kind, int32_t given_axis,
                             const ops_tensor *x, const ops_tensor *y, uint32_t *axis)
{
    char text[2][OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, "ops_scan", "x", x));
    HAL_TRY(ops_check_output(context, "ops_scan", "y", y));
    if ((uint32_t)kind >= OPS_SCAN_KIND_COUNT) {
        return ops_invalid("ops_scan: kind: expected an ops_scan_kind, got %d", (int)kind);
    }
    HAL_TRY(ops_check_axis("ops_scan", "axis", x, given_axis, axis));
    if (x->type == HAL_TYPE_BOOL) {
        return ops_invalid("ops_scan: x: expected numbers, got bool; cast it first");
    }
    if (!ops_same_shape(x, y) || hal_type_of_value(x->type) != hal_type_of_value(y->type)) {
        return ops_invalid("ops_scan: y: expected the shape of x %s and a type of its arithmetic, "
                           "got %s",
                           ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (x->shape[*axis] > INT32_MAX) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_scan: x: expected at most 2^31 - 1 elements along axis %u, got "
                              "%s",
                              *axis, ops_describe(x, text[0]));
    }
    if (ops_overlap(x, y) && !ops_same_view(x, y)) {
        return ops_invalid("ops_scan: y: expected x or memory that x does not use, got an overlap");
    }
    return HAL_OK;
}

hal_status ops_scan(ops_context *context, ops_scan_kind kind, int32_t axis, const ops_tensor *x,
                    const ops_tensor *y)
{
    uint32_t checked;
    HAL_TRY(check_scan(context, kind, axis, x, y, &checked));
    return ops_tensor_get_element_count(x) ? record_scan(context, kind, checked, x, y) : HAL_OK;
}
