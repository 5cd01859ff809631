/* Moving elements by index: gather, concatenate, copies, and tensors made of indices. */
#include "tensor/overlap.h"
#include "tensor/plan_recorder.h"
#include "elementwise.h"
#include "tensor/dispatch.h"

#include <ops/index.h>

#include <math.h>
#include <stdio.h>

/* What the bodies of the kernels need. */
typedef struct body_plan {
    uint8_t slots[3];
    hal_ir_value limit, step, start; /* scalars */
    hal_type storage;                /* of the output */
} body_plan;

/* A kernel over a space with a body of this file: where its views lie, how it is recorded. */
typedef struct task {
    const char *function;
    uint64_t family;
    int64_t reach; /* furthest place that a view walks to outside of the space */
    ops_tensor tensors[2 + 1];
    uint32_t tensor_count;
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan walk;
    body_plan body;
} task;

static hal_status check_indices(const ops_context *context, const char *function,
                                const ops_tensor *indices)
{
    hal_status status = ops_check_tensor(context, function, "indices", indices);
    if (!status && indices->type != HAL_TYPE_I32 && indices->type != HAL_TYPE_I64) {
        status =
            hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: indices are of %s; i32 or i64 is meant",
                           function, hal_type_name(indices->type));
    }
    return status;
}

static hal_status no_overlap(const char *function, const ops_tensor *in, const ops_tensor *out)
{
    return ops_overlap(in, out) ? hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                                 "%s: y overlaps what it is made from", function)
                                : HAL_OK;
}

static hal_status check_gather(const ops_context *context, int32_t given_axis, const ops_tensor *x,
                               const ops_tensor *indices, const ops_tensor *y)
{
    hal_status status = ops_check_tensor(context, "ops_gather", "x", x);
    if (!status) {
        status = check_indices(context, "ops_gather", indices);
    }
    if (!status) {
        status = ops_check_output(context, "ops_gather", "y", y);
    }
    if (status) {
        return status;
    }
    const uint32_t axis = ops_axis_number(given_axis, x->rank);
    int fits = x->rank == y->rank && axis < x->rank && indices->rank == 1 && x->type == y->type;
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = y->shape[i] == (i == axis ? indices->shape[0] : x->shape[i]);
    }
    if (!fits) {
        char text[3][OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_gather: y %s does not fit x %s with axis %d picked by indices "
                              "%s",
                              ops_describe(y, text[0]), ops_describe(x, text[1]), given_axis,
                              ops_describe(indices, text[2]));
    }
    status = no_overlap("ops_gather", x, y);
    return status ? status : no_overlap("ops_gather", indices, y);
}

/* The type that moves elements without looking at them, where the device has it. */
static hal_type carrier(const ops_context *context, hal_type type)
{
    static const hal_type unsigned_of[9] = {0, HAL_TYPE_U8, HAL_TYPE_U16, 0, HAL_TYPE_U32, 0,
                                            0, 0,           HAL_TYPE_U64};
    hal_type plain = unsigned_of[hal_type_size(type)];
    int stored = (context->info->storage_types & HAL_TYPE_BIT(plain)) != 0;
    int computed = (context->info->arithmetic_types & HAL_TYPE_BIT(hal_type_of_value(plain))) != 0;
    return stored && computed ? plain : type;
}

/* Adds a tensor to the task's bindings and space; prepare() works out where it lies. */
static void add(const ops_context *context, task *t, const ops_tensor *tensor, uint32_t access)
{
    uint32_t view = ops_space_add(&t->space, tensor, 0);
    t->body.slots[view] = (uint8_t)ops_bind(context, &t->bindings, tensor, access);
    t->tensors[t->tensor_count++] = *tensor;
}

/* Plans the walk and looks for its kernel; *entry is null when there is none yet. */
static hal_status prepare(ops_context *context, task *t, uint32_t leader, uint32_t reserved,
                          uint32_t widest, uint64_t key[2], ops_entry **entry)
{
    uint64_t starts[OPS_MAX_VIEWS] = {0};
    uint32_t size = 1;
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        uint32_t slot = t->body.slots[i], bytes = hal_type_size(t->bindings.types[slot]);
        t->space.base[i] = ops_base(&t->bindings, slot, &t->tensors[i]);
        starts[i] = t->bindings.ranges[slot].offset / bytes;
        size = bytes > size ? bytes : size;
    }
    uint32_t limit = context->info->max_vector_bytes < 16 ? context->info->max_vector_bytes : 16;
    widest = widest < limit / size ? widest : limit / size;
    ops_space_collapse(&t->space, leader);
    hal_status status = ops_elementwise_plan_init(context, t->function, &t->space, widest, starts,
                                                  reserved, t->reach, &t->walk);
    if (status) {
        return status;
    }
    ops_cache_key signature;
    signature.count = 0;
    ops_cache_key_append(&signature, t->family);
    ops_bindings_key(&t->bindings, t->body.slots, t->tensor_count, &signature);
    ops_elementwise_key(&t->space, &t->walk, &signature);
    *entry = ops_cache_find(context, &signature, key);
    return HAL_OK;
}

static hal_status begin(task *t, const char *name, hal_ir_builder **b, ops_layout_values *values)
{
    hal_status status = hal_ir_builder_create(name, b);
    if (!status) {
        ops_declare_bindings(*b, &t->bindings);
        ops_elementwise_declare(*b, &t->space, &t->walk, values);
    }
    return status;
}

static hal_status finish(ops_context *context, task *t, const uint64_t key[2], hal_ir_builder *b,
                         const ops_layout_values *values, ops_elementwise_body body,
                         ops_entry **entry)
{
    ops_elementwise_emit(b, &t->walk, values, body, &t->body);
    return ops_cache_build(context, key, b, entry);
}

/* An I32 or I64 index as an unsigned number in which negative ones are huge, and *other in the same
 * type, so that both can be compared. */
static hal_ir_value comparable(hal_ir_builder *b, const ops_element_iter *cursor,
                               hal_ir_value index, hal_ir_value *other)
{
    int wide = hal_ir_type_of(b, index) == HAL_TYPE_I64 || cursor->values->type == HAL_TYPE_U64;
    hal_type type = wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    *other = ops_value_cast(b, type, *other);
    return ops_value_cast(b, type, index);
}

/* Views: y, x, indices. */
static void emit_gather(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    const body_plan *p = user;
    hal_ir_value pick = hal_ir_load_wide(b, p->slots[2], cursor->index[2], 0, 1, cursor->guard);
    hal_ir_value limit = p->limit;
    pick = comparable(b, cursor, pick, &limit);
    hal_ir_value guard = hal_ir_and(b, cursor->guard, hal_ir_lt(b, pick, limit));
    hal_ir_value step = hal_ir_mul(b, ops_value_cast(b, cursor->values->type, pick), p->step);
    hal_ir_value place = hal_ir_add(b, cursor->index[1], step);
    hal_ir_value value = hal_ir_load_wide(b, p->slots[1], place, 0, 1, guard);
    hal_ir_store_wide(b, p->slots[0], cursor->index[0], 0, cursor->guard, value);
}

static hal_status run(ops_context *context, task *t, const ops_entry *entry, ops_block *block)
{
    return ops_dispatch(context, entry, t->walk.grid, &t->bindings, block);
}

static hal_status check_parts(const ops_context *context, int32_t given_axis,
                              const ops_tensor *parts, uint32_t part_count, const ops_tensor *y)
{
    hal_status status = ops_check_output(context, "ops_concatenate", "y", y);
    if (status) {
        return status;
    }
    if (!parts && part_count) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_concatenate: parts is null");
    }
    const uint32_t axis = ops_axis_number(given_axis, y->rank);
    int64_t length = 0;
    char text[2][OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < part_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "parts[%u]", i);
        status = ops_check_tensor(context, "ops_concatenate", name, &parts[i]);
        if (status) {
            return status;
        }
        int fits = axis < y->rank && parts[i].rank == y->rank && parts[i].type == y->type;
        for (uint32_t j = 0; fits && j < y->rank; j++) {
            fits = j == axis || parts[i].shape[j] == y->shape[j];
        }
        if (!fits) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_concatenate: %s, %s, does not fit into y %s along axis %d",
                                  name, ops_describe(&parts[i], text[0]), ops_describe(y, text[1]),
                                  given_axis);
        }
        status = no_overlap("ops_concatenate", &parts[i], y);
        if (status) {
            return status;
        }
        length += parts[i].shape[axis];
    }
    if (axis >= y->rank || length != y->shape[axis]) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_concatenate: the parts make %lld along axis %d, y is %s",
                              (long long)length, given_axis, ops_describe(y, text[0]));
    }
    return HAL_OK;
}

/* Views: y, the coordinate. */
static void emit_iota(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    const body_plan *p = user;
    hal_type type = hal_type_of_value(p->storage);
    hal_ir_value i = ops_value_cast(b, type, cursor->index[1]);
    hal_ir_value value = hal_type_is_float(type)
                             ? hal_ir_fma(b, i, p->step, p->start)
                             : hal_ir_add(b, hal_ir_mul(b, i, p->step), p->start);
    hal_ir_store_wide(b, p->slots[0], cursor->index[0], 0, cursor->guard, value);
}

/* A float, or the low bits of a whole number: a negative step of unsigned elements wraps. */
static void put_whole(ops_block *block, hal_type type, double value)
{
    if (hal_type_is_float(type)) {
        ops_put_number(block, type, value);
    } else if (hal_type_size(type) == 8) {
        ops_put_u64(block, (uint64_t)(int64_t)value);
    } else {
        ops_put_u32(block, (uint32_t)(int64_t)value);
    }
}

/* Views: y, indices, the coordinate along the last axis. */
static void emit_one_hot(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    const body_plan *p = user;
    hal_type type = hal_type_of_value(p->storage);
    hal_ir_value pick = hal_ir_load_wide(b, p->slots[1], cursor->index[1], 0, 1, cursor->guard);
    hal_ir_value place = cursor->index[2];
    pick = comparable(b, cursor, pick, &place);
    hal_ir_value hot = hal_ir_eq(b, pick, place);
    if (type != HAL_TYPE_BOOL) {
        hot = hal_ir_select(b, hot, hal_ir_number(b, type, 1), hal_ir_number(b, type, 0));
    }
    hal_ir_store_wide(b, p->slots[0], cursor->index[0], 0, cursor->guard, hot);
}

/* A copy of whole words by the queue itself. False when the tensors are not fit for it. */
static int copy_plain(ops_context *context, const ops_tensor *x, const ops_tensor *y,
                      hal_status *status)
{
    uint64_t size = hal_type_size(x->type),
             bytes = (uint64_t)ops_tensor_get_element_count(x) * size;
    uint64_t from = (uint64_t)x->offset * size, to = (uint64_t)y->offset * size;
    if (!ops_tensor_is_contiguous(x) || !ops_tensor_is_contiguous(y) ||
        (from | to | bytes) % 4 != 0) {
        return 0;
    }
    *status = ops_record_copy(context, (hal_range){x->buffer, from, bytes},
                              (hal_range){y->buffer, to, bytes});
    return 1;
}

/* Views: y, x. */
static void emit_copy(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    const body_plan *p = user;
    hal_ir_value elements[OPS_MAX_WIDTH];
    ops_element_load(b, cursor, 1, p->slots[1], elements);
    ops_element_store(b, cursor, 0, p->slots[0], elements);
}

hal_status ops_gather(ops_context *context, int32_t given_axis, const ops_tensor *x,
                      const ops_tensor *indices, const ops_tensor *y)
{
    hal_status status = check_gather(context, given_axis, x, indices, y);
    if (status || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    const uint32_t axis = ops_axis_number(given_axis, x->rank);
    hal_type type = carrier(context, x->type);
    ops_tensor from = *x, to = *y, picks = *indices;
    from.type = to.type = type;
    /* x stands still along the axis; the picks move along it alone. */
    int64_t axis_stride = x->shape[axis] > 1 ? x->stride[axis] : 0;
    picks.rank = y->rank;
    for (uint32_t i = 0; i < y->rank; i++) {
        picks.shape[i] = i == axis ? indices->shape[0] : 1;
        picks.stride[i] = i == axis ? indices->stride[0] : 0;
    }
    task t = {.reach = 0, .function = "ops_gather", .family = OPS_FAMILY_GATHER};
    ops_space_begin(&t.space, y->rank, y->shape);
    add(context, &t, &to, HAL_ACCESS_WRITE);
    add(context, &t, &from, HAL_ACCESS_READ);
    add(context, &t, &picks, HAL_ACCESS_READ);
    /* x's length at the axis differs from y's, so its stride there was not broadcast away. */
    t.space.stride[1][axis] = 0;

    uint64_t key[2];
    ops_entry *entry;
    int64_t first, end;
    ops_span(&from, &first, &end);
    t.reach = (end - first) + x->shape[axis];
    status = prepare(context, &t, 0, 16, 1, key, &entry);
    if (status) {
        return status;
    }
    if (!entry) {
        hal_ir_builder *b;
        ops_layout_values values;
        status = begin(&t, "gather", &b, &values);
        if (status) {
            return status;
        }
        t.body.limit = hal_ir_scalar_value(b, "limit", values.type);
        t.body.step = hal_ir_scalar_value(b, "step", values.type);
        status = finish(context, &t, key, b, &values, emit_gather, &entry);
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&t.space, &t.walk.layout, &block);
    ops_put_index(&block, t.walk.layout.index64, x->shape[axis]);
    ops_put_index(&block, t.walk.layout.index64, axis_stride);
    return run(context, &t, entry, &block);
}

hal_status ops_concatenate(ops_context *context, int32_t given_axis, const ops_tensor *parts,
                           uint32_t part_count, const ops_tensor *y)
{
    hal_status status = check_parts(context, given_axis, parts, part_count, y);
    const uint32_t axis = status ? UINT32_MAX : ops_axis_number(given_axis, y->rank);
    int64_t start = 0;
    for (uint32_t i = 0; i < part_count && !status; i++) {
        ops_tensor place;
        int64_t length = parts[i].shape[axis];
        status = ops_tensor_slice(y, given_axis, start, length, 1, &place);
        if (!status) {
            status = ops_copy(context, &parts[i], &place);
        }
        start += length;
    }
    return status;
}

hal_status ops_iota(ops_context *context, double start, double step, const ops_tensor *y)
{
    hal_status status = ops_check_output(context, "ops_iota", "y", y);
    if (status) {
        return status;
    }
    if (y->rank != 1 || y->type == HAL_TYPE_BOOL) {
        char text[OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_iota: y is %s; it has rank 1 and any type but bool",
                              ops_describe(y, text));
    }
    int whole =
        start == trunc(start) && step == trunc(step) && fabs(start) < 0x1p63 && fabs(step) < 0x1p63;
    if (!hal_type_is_float(y->type) && !whole) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_iota: start %g and step %g are not whole numbers of 64 bits, y "
                              "is of %s",
                              start, step, hal_type_name(y->type));
    }
    if (y->shape[0] == 0) {
        return HAL_OK;
    }
    task t = {.reach = 0, .function = "ops_iota", .family = OPS_FAMILY_IOTA};
    t.body.storage = y->type;
    ops_space_begin(&t.space, 1, y->shape);
    add(context, &t, y, HAL_ACCESS_WRITE);
    ops_space_add_coordinate(&t.space, 0);
    uint64_t key[2];
    ops_entry *entry;
    status = prepare(context, &t, 0, 32, 1, key, &entry);
    if (status) {
        return status;
    }
    hal_type type = hal_type_of_value(y->type);
    if (!entry) {
        hal_ir_builder *b;
        ops_layout_values values;
        status = begin(&t, "iota", &b, &values);
        if (status) {
            return status;
        }
        t.body.start = hal_ir_scalar_value(b, "start", type);
        t.body.step = hal_ir_scalar_value(b, "step", type);
        status = finish(context, &t, key, b, &values, emit_iota, &entry);
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&t.space, &t.walk.layout, &block);
    put_whole(&block, type, start);
    put_whole(&block, type, step);
    return run(context, &t, entry, &block);
}

hal_status ops_one_hot(ops_context *context, const ops_tensor *indices, const ops_tensor *y)
{
    hal_status status = check_indices(context, "ops_one_hot", indices);
    if (!status) {
        status = ops_check_output(context, "ops_one_hot", "y", y);
    }
    if (status) {
        return status;
    }
    char text[2][OPS_TEXT_BYTES];
    ops_tensor rows = *y, spread = *indices;
    rows.rank = y->rank ? y->rank - 1 : 0;
    if (y->rank != indices->rank + 1 || !ops_same_shape(&rows, indices)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_one_hot: y %s is not of the shape of indices %s with one axis "
                              "more at the end",
                              ops_describe(y, text[0]), ops_describe(indices, text[1]));
    }
    status = no_overlap("ops_one_hot", indices, y);
    if (status || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    spread.shape[spread.rank] = 1;
    spread.stride[spread.rank++] = 0;
    task t = {.reach = 0, .function = "ops_one_hot", .family = OPS_FAMILY_ONE_HOT};
    t.body.storage = y->type;
    ops_space_begin(&t.space, y->rank, y->shape);
    add(context, &t, y, HAL_ACCESS_WRITE);
    add(context, &t, &spread, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, y->rank - 1);
    uint64_t key[2];
    ops_entry *entry;
    status = prepare(context, &t, 0, 0, 1, key, &entry);
    if (status) {
        return status;
    }
    if (!entry) {
        hal_ir_builder *b;
        ops_layout_values values;
        status = begin(&t, "one_hot", &b, &values);
        if (!status) {
            status = finish(context, &t, key, b, &values, emit_one_hot, &entry);
        }
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&t.space, &t.walk.layout, &block);
    return run(context, &t, entry, &block);
}

hal_status ops_copy(ops_context *context, const ops_tensor *x, const ops_tensor *y)
{
    hal_status status = ops_check_tensor(context, "ops_copy", "x", x);
    if (!status) {
        status = ops_check_output(context, "ops_copy", "y", y);
    }
    if (status) {
        return status;
    }
    if (!ops_same_shape(x, y) || x->type != y->type) {
        char text[2][OPS_TEXT_BYTES];
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_copy: x %s and y %s differ in shape or type",
                              ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    status = no_overlap("ops_copy", x, y);
    if (status || ops_tensor_get_element_count(y) == 0 || copy_plain(context, x, y, &status)) {
        return status;
    }
    ops_tensor from = *x, to = *y;
    from.type = to.type = carrier(context, x->type);
    task t = {.reach = 0, .function = "ops_copy", .family = OPS_FAMILY_COPY};
    ops_space_begin(&t.space, y->rank, y->shape);
    add(context, &t, &to, HAL_ACCESS_WRITE);
    add(context, &t, &from, HAL_ACCESS_READ);
    uint64_t key[2];
    ops_entry *entry;
    status = prepare(context, &t, 0, 0, OPS_MAX_WIDTH, key, &entry);
    if (status) {
        return status;
    }
    if (!entry) {
        hal_ir_builder *b;
        ops_layout_values values;
        status = begin(&t, "copy", &b, &values);
        if (!status) {
            status = finish(context, &t, key, b, &values, emit_copy, &entry);
        }
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&t.space, &t.walk.layout, &block);
    return run(context, &t, entry, &block);
}
