/* Moving elements by index: gather, concatenate, copies, and tensors made of indices. */
#include "bits.h"
#include "index_task.h"
#include "joined_copies.h"
#include "tensor/dispatch.h"
#include "tensor/number.h"
#include "tensor/plan_recorder.h"

#include <ops/index.h>

#include <math.h>
#include <stdio.h>

static hal_status check_gather(const ops_context *context, int32_t given_axis, const ops_tensor *x,
                               const ops_tensor *indices, const ops_tensor *y, uint32_t *checked)
{
    hal_status status = ops_check_tensor(context, "ops_gather", "x", x);
    if (status == HAL_OK) {
        status = ops_check_indices(context, "ops_gather", indices);
    }
    if (status == HAL_OK) {
        status = ops_check_output(context, "ops_gather", "y", y);
    }
    if (status == HAL_OK) {
        status = ops_check_axis("ops_gather", "axis", x, given_axis, checked);
    }
    if (status != HAL_OK) {
        return status;
    }
    const uint32_t axis = *checked;
    bool fits = x->rank == y->rank && indices->rank == 1 && x->type == y->type;
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = y->shape[i] == (i == axis ? indices->shape[0] : x->shape[i]);
    }
    if (!fits) {
        char text[3][OPS_TEXT_BYTES];
        return ops_invalid("ops_gather: y: expected x %s with axis %u picked by indices %s, got %s",
                           ops_describe(x, text[0]), axis, ops_describe(indices, text[1]),
                           ops_describe(y, text[2]));
    }
    status = ops_check_apart("ops_gather", "x", x, y);
    return status != HAL_OK ? status : ops_check_apart("ops_gather", "indices", indices, y);
}

static hal_status check_take(const ops_context *context, int32_t given_axis, const ops_tensor *x,
                             const ops_tensor *indices, const ops_tensor *y, uint32_t *checked)
{
    HAL_TRY(ops_check_tensor(context, "ops_take_along_axis", "x", x));
    HAL_TRY(ops_check_indices(context, "ops_take_along_axis", indices));
    HAL_TRY(ops_check_output(context, "ops_take_along_axis", "y", y));
    HAL_TRY(ops_check_axis("ops_take_along_axis", "axis", x, given_axis, checked));
    bool fits = x->rank == y->rank && x->type == y->type && ops_same_shape(indices, y);
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = i == *checked || x->shape[i] == y->shape[i];
    }
    if (!fits) {
        char text[3][OPS_TEXT_BYTES];
        return ops_invalid("ops_take_along_axis: y: expected the type of x %s and the shape of "
                           "indices %s, which differs from that of x at axis %u only, got %s",
                           ops_describe(x, text[0]), ops_describe(indices, text[1]), *checked,
                           ops_describe(y, text[2]));
    }
    HAL_TRY(ops_check_apart("ops_take_along_axis", "x", x, y));
    return ops_check_apart("ops_take_along_axis", "indices", indices, y);
}

/* Views: y, x, indices. Scalars: x's length and stride at the axis. Neighbours have one index. */
static void emit_gather(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const uint8_t *slots = body->task->slots;
    ops_element_iter source = *iter;
    hal_ir_value elements[OPS_MAX_ELEMENTS];
    hal_ir_value pick = hal_ir_load_wide(b, slots[2], iter->index[2], 0, 1, iter->guard);
    hal_ir_value limit = body->scalars[0];
    pick = ops_index_comparable(b, iter, pick, &limit);
    source.guard = ops_guard_and(b, iter->guard, hal_ir_lt(b, pick, limit));
    hal_ir_value step =
        hal_ir_mul(b, ops_value_cast(b, iter->values->type, pick), body->scalars[1]);
    source.index[1] = hal_ir_add(b, iter->index[1], step);
    ops_element_load(b, &source, 1, slots[1], elements);
    ops_element_store(b, iter, 0, slots[0], elements);
}

/* Neighbours of an innermost axis that has one index for all, where each picked line is aligned. A
 * space of one dimension, whose kernel has a tail, gets none. */
static uint32_t gather_width(const ops_tensor *x, const ops_tensor *picks, const ops_tensor *y,
                             uint32_t axis)
{
    const uint32_t last = x->rank - 1;
    const bool is_inner = axis < last && x->stride[last] == 1 && y->stride[last] == 1;
    uint32_t width = is_inner && picks->shape[axis] > 1 ? OPS_MAX_WIDTH : 1;
    while (x->stride[axis] % width != 0 || x->shape[last] % width != 0) {
        width /= 2;
    }
    return width;
}

static hal_status check_parts(const ops_context *context, int32_t given_axis,
                              const ops_tensor *parts, uint32_t part_count, const ops_tensor *y,
                              uint32_t *checked)
{
    hal_status status = ops_check_output(context, "ops_concatenate", "y", y);
    if (status == HAL_OK) {
        status = ops_check_axis("ops_concatenate", "axis", y, given_axis, checked);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (!parts && part_count) {
        return ops_invalid("ops_concatenate: parts: expected a pointer, got null");
    }
    const uint32_t axis = *checked;
    int64_t length = 0;
    char text[2][OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < part_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "parts[%u]", i);
        HAL_TRY(ops_check_tensor(context, "ops_concatenate", name, &parts[i]));
        bool fits = parts[i].rank == y->rank && parts[i].type == y->type;
        for (uint32_t j = 0; fits && j < y->rank; j++) {
            fits = j == axis || parts[i].shape[j] == y->shape[j];
        }
        if (!fits) {
            return ops_invalid("ops_concatenate: %s: expected a part of y %s along axis %u, got %s",
                               name, ops_describe(y, text[0]), axis,
                               ops_describe(&parts[i], text[1]));
        }
        HAL_TRY(ops_check_apart("ops_concatenate", name, &parts[i], y));
        length += parts[i].shape[axis];
    }
    if (length != y->shape[axis]) {
        return ops_invalid(
            "ops_concatenate: y: expected length %lld of the parts along axis %u, got %s",
            (long long)length, axis, ops_describe(y, text[0]));
    }
    return HAL_OK;
}

/* x + y rounded, and exactly what rounding has left of it. Source: D. E. Knuth, "The Art of
 * Computer Programming", volume 2, 4.2.2, theorem B. */
static hal_ir_value sum_with_rest(hal_ir_builder *b, hal_ir_value x, hal_ir_value y,
                                  hal_ir_value *rest)
{
    const hal_ir_value sum = hal_ir_add(b, x, y), from_y = hal_ir_sub(b, sum, x);
    const hal_ir_value lost_x = hal_ir_sub(b, x, hal_ir_sub(b, sum, from_y));
    *rest = hal_ir_add(b, lost_x, hal_ir_sub(b, y, from_y));
    return sum;
}

/* start + i * step in F32 for indices that F32 does not hold, or with a start or step that it does
 * not hold: their rests are scalars, the index is two numbers of at most 24 bits, and products and
 * sums keep what rounding leaves. Views: y, the coordinate. */
static void emit_exact_iota(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const hal_ir_value start = body->scalars[0], step = body->scalars[1];
    const hal_ir_value start_rest = body->scalars[2], step_rest = body->scalars[3];
    const hal_type type = iter->values->type;
    const hal_ir_value index = ops_value_cast(b, type, iter->index[1]);
    hal_ir_value high = hal_ir_shr(b, index, ops_index_constant(b, type, 24));
    hal_ir_value low = hal_ir_and(b, index, ops_index_constant(b, type, 0xffffff));
    high = hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_F32, high), hal_ir_f32(b, 0x1p24f));
    low = hal_ir_cast(b, HAL_TYPE_F32, low);
    const hal_ir_value far = hal_ir_mul(b, high, step), near = hal_ir_mul(b, low, step);
    hal_ir_value rest = hal_ir_fma(b, high, step_rest, hal_ir_mul(b, low, step_rest));
    rest = hal_ir_add(b, rest, start_rest);
    rest = hal_ir_add(b, rest, hal_ir_fma(b, high, step, hal_ir_neg(b, far)));
    rest = hal_ir_add(b, rest, hal_ir_fma(b, low, step, hal_ir_neg(b, near)));
    hal_ir_value lost[2];
    hal_ir_value value = sum_with_rest(b, start, far, &lost[0]);
    value = sum_with_rest(b, value, near, &lost[1]);
    rest = hal_ir_add(b, rest, hal_ir_add(b, lost[0], lost[1]));
    /* Infinity has no rest. */
    const hal_ir_value is_finite = hal_ir_lt(b, hal_ir_abs(b, value), hal_ir_f32(b, INFINITY));
    value = hal_ir_select(b, is_finite, hal_ir_add(b, value, rest), value);
    hal_ir_store_wide(b, body->task->slots[0], iter->index[0], 0, iter->guard, value);
}

/* Views: y, the coordinate. Scalars: start and step. */
static void emit_iota(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const hal_type type = body->task->scalar_type;
    const hal_ir_value start = body->scalars[0], step = body->scalars[1];
    hal_ir_value i = ops_value_cast(b, type, iter->index[1]);
    hal_ir_value value = hal_type_is_float(type) ? hal_ir_fma(b, i, step, start)
                                                 : hal_ir_add(b, hal_ir_mul(b, i, step), start);
    hal_ir_store_wide(b, body->task->slots[0], iter->index[0], 0, iter->guard, value);
}

/* A float, or the low bits of a whole number: a negative step of unsigned elements wraps. */
static void put_whole(ops_block *block, hal_type type, double value)
{
    if (hal_type_is_float(type)) {
        ops_put_number(block, type, value);
    } else {
        ops_put_index(block, hal_type_size(type) == 8, (int64_t)value);
    }
}

/* Views: y, indices, the coordinate along the last axis. */
static void emit_one_hot(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_task *t = ((const ops_index_body *)user)->task;
    const hal_type type = hal_type_of_value(t->storage);
    hal_ir_value pick = hal_ir_load_wide(b, t->slots[1], iter->index[1], 0, 1, iter->guard);
    hal_ir_value place = iter->index[2];
    pick = ops_index_comparable(b, iter, pick, &place);
    hal_ir_value hot = hal_ir_eq(b, pick, place);
    if (type != HAL_TYPE_BOOL) {
        hot = hal_ir_select(b, hot, hal_ir_number(b, type, 1), hal_ir_number(b, type, 0));
    }
    hal_ir_store_wide(b, t->slots[0], iter->index[0], 0, iter->guard, hot);
}

/* Views: y, x. */
static void emit_copy(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const uint8_t *slots = ((const ops_index_body *)user)->task->slots;
    hal_ir_value elements[OPS_MAX_ELEMENTS];
    ops_element_load(b, iter, 1, slots[1], elements);
    ops_element_store(b, iter, 0, slots[0], elements);
}

/* Records a copy of whole words by the queue. False when the tensors are not contiguous words, or a
 * kernel is faster. */
static bool record_word_copy(ops_context *context, const ops_tensor *x, const ops_tensor *y,
                             hal_status *status)
{
    const uint64_t size = hal_type_size(x->type);
    const uint64_t bytes = (uint64_t)ops_tensor_get_element_count(x) * size;
    const uint64_t from = (uint64_t)x->offset * size, to = (uint64_t)y->offset * size;
    if (!ops_tensor_is_contiguous(x) || !ops_tensor_is_contiguous(y) ||
        (from | to | bytes) % 4 != 0 || bytes >= context->tuning->copy.min_kernel_bytes) {
        return false;
    }
    *status = ops_record_copy(context, (hal_range){x->buffer, from, bytes},
                              (hal_range){y->buffer, to, bytes});
    return true;
}

/* Records the copy of the words of contiguous tensors that end within a word by the queue, and
 * leaves the last elements of both tensors. */
static hal_status record_words_before_rest(ops_context *context, ops_tensor *x, ops_tensor *y)
{
    const uint64_t size = hal_type_size(x->type);
    const uint64_t bytes = (uint64_t)ops_tensor_get_element_count(x) * size;
    const uint64_t from = (uint64_t)x->offset * size, to = (uint64_t)y->offset * size;
    const uint64_t words = bytes / 4 * 4;
    if (bytes < context->tuning->copy.min_split_bytes || (from | to) % 4 != 0 ||
        !ops_tensor_is_contiguous(x) || !ops_tensor_is_contiguous(y)) {
        return HAL_OK;
    }
    ops_tensor *const both[2] = {x, y};
    for (uint32_t i = 0; i < 2; i++) {
        both[i]->offset += (int64_t)(words / size);
        both[i]->rank = 1;
        both[i]->shape[0] = (int64_t)((bytes - words) / size);
        both[i]->stride[0] = 1;
    }
    return ops_record_copy(context, (hal_range){x->buffer, from, words},
                           (hal_range){y->buffer, to, words});
}

/* y = the elements of x that `picks`, which is broadcast to y, tells along an axis. */
static hal_status record_picks(ops_context *context, const char *function, const ops_tensor *x,
                               const ops_tensor *picks, const ops_tensor *y, uint32_t axis,
                               uint32_t width)
{
    ops_index_task t = {.function = function,
                        .name = "gather",
                        .family = OPS_FAMILY_GATHER,
                        .body = emit_gather,
                        .repeatable = 1,
                        .indexed = 1,
                        .scalar_names = {"limit", "step"}};
    ops_space_begin(&t.space, y->rank, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_index_add(context, &t, x, HAL_ACCESS_READ);
    ops_index_add(context, &t, picks, HAL_ACCESS_READ);
    t.space.stride[1][axis] = 0; /* the picks replace x's coordinate */
    int64_t first, end;
    ops_span(x, &first, &end);
    t.reach = (end - first) + x->shape[axis];

    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, width, &block, &entry));
    ops_put_index(&block, t.plan.layout.index64, x->shape[axis]);
    ops_put_index(&block, t.plan.layout.index64, x->shape[axis] > 1 ? x->stride[axis] : 0);
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

hal_status ops_gather(ops_context *context, int32_t given_axis, const ops_tensor *x,
                      const ops_tensor *indices, const ops_tensor *y)
{
    uint32_t axis;
    hal_status status = check_gather(context, given_axis, x, indices, y, &axis);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    ops_tensor from = *x, to = *y, picks = *indices;
    from.type = to.type = ops_bits_type(context, x->type);
    picks.rank = y->rank;
    for (uint32_t i = 0; i < y->rank; i++) {
        picks.shape[i] = i == axis ? indices->shape[0] : 1;
        picks.stride[i] = i == axis ? indices->stride[0] : 0;
    }
    return record_picks(context, "ops_gather", &from, &picks, &to, axis,
                        gather_width(&from, &picks, &to, axis));
}

hal_status ops_take_along_axis(ops_context *context, int32_t given_axis, const ops_tensor *x,
                               const ops_tensor *indices, const ops_tensor *y)
{
    uint32_t axis;
    HAL_TRY(check_take(context, given_axis, x, indices, y, &axis));
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    ops_tensor from = *x, to = *y;
    from.type = to.type = ops_bits_type(context, x->type);
    return record_picks(context, "ops_take_along_axis", &from, indices, &to, axis, 1);
}

/* Whether a copy between two tensors is one of words from one buffer to another, and which. */
static bool tensors_join_copies(const ops_tensor *x, const ops_tensor *y, ops_joined_copy *copy)
{
    const uint64_t size = hal_type_size(x->type);
    copy->from = x->buffer;
    copy->bytes = (uint64_t)ops_tensor_get_element_count(x) * size;
    copy->from_offset = (uint64_t)x->offset * size;
    copy->to_offset = (uint64_t)y->offset * size;
    return ops_tensor_is_contiguous(x) && ops_tensor_is_contiguous(y) && x->buffer != y->buffer &&
           copy->bytes > 0 && (copy->from_offset | copy->to_offset | copy->bytes) % 4 == 0;
}

hal_status ops_concatenate(ops_context *context, int32_t given_axis, const ops_tensor *parts,
                           uint32_t part_count, const ops_tensor *y)
{
    uint32_t axis = 0;
    hal_status status = HAL_OK;
    HAL_TRY(check_parts(context, given_axis, parts, part_count, y, &axis));
    ops_joined_copies copies = {.context = context, .to = y->buffer};
    int64_t start = 0;
    for (uint32_t i = 0; i < part_count && status == HAL_OK; i++) {
        ops_tensor place;
        ops_joined_copy copy;
        const int64_t length = parts[i].shape[axis];
        status = ops_tensor_slice(y, given_axis, start, length, 1, &place);
        if (status == HAL_OK && tensors_join_copies(&parts[i], &place, &copy) &&
            copy.bytes <= context->tuning->copy.max_joined_bytes) {
            status = ops_joined_copies_add(&copies, &copy);
        } else if (status == HAL_OK) {
            status = ops_copy(context, &parts[i], &place);
        }
        start += length;
    }
    return status == HAL_OK ? ops_joined_copies_end(&copies) : status;
}

hal_status ops_iota(ops_context *context, double start, double step, const ops_tensor *y)
{
    HAL_TRY(ops_check_output(context, "ops_iota", "y", y));
    if (y->rank != 1 || y->type == HAL_TYPE_BOOL) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("ops_iota: y: expected rank 1 and any type but bool, got %s",
                           ops_describe(y, text));
    }
    const bool is_whole =
        start == trunc(start) && step == trunc(step) && fabs(start) < 0x1p63 && fabs(step) < 0x1p63;
    if (!hal_type_is_float(y->type) && !is_whole) {
        return ops_invalid("ops_iota: start, step: expected whole numbers of 64 bits for %s, got "
                           "start %s and step %s",
                           hal_type_name(y->type), OPS_NUMBER(start, -1), OPS_NUMBER(step, -1));
    }
    if (y->shape[0] == 0) {
        return HAL_OK;
    }
    const hal_type type = hal_type_of_value(y->type);
    const double rest[2] = {start - ops_round_to(type, start), step - ops_round_to(type, step)};
    /* A multiply-add rounds once, if it gets whole operands. */
    const bool is_simple =
        type != HAL_TYPE_F32 || (y->shape[0] <= INT64_C(1) << 24 && rest[0] == 0 && rest[1] == 0);
    ops_index_task t = {
        .function = "ops_iota",
        .name = is_simple ? "iota" : "exact_iota",
        .family = is_simple ? OPS_FAMILY_IOTA : OPS_FAMILY_EXACT_IOTA,
        .body = is_simple ? emit_iota : emit_exact_iota,
        .scalar_names = {"start", "step", is_simple ? NULL : "start_rest", "step_rest"},
        .scalar_type = type};
    ops_space_begin(&t.space, 1, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_space_add_coordinate(&t.space, 0);
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    put_whole(&block, t.scalar_type, start);
    put_whole(&block, t.scalar_type, step);
    for (uint32_t i = 0; i < 2 && !is_simple; i++) {
        ops_put_number(&block, type, rest[i]);
    }
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

hal_status ops_one_hot(ops_context *context, const ops_tensor *indices, const ops_tensor *y)
{
    hal_status status = ops_check_indices(context, "ops_one_hot", indices);
    if (status == HAL_OK) {
        status = ops_check_output(context, "ops_one_hot", "y", y);
    }
    if (status != HAL_OK) {
        return status;
    }
    ops_tensor rows = *y, spread = *indices;
    rows.rank = y->rank ? y->rank - 1 : 0;
    if (y->rank != indices->rank + 1 || !ops_same_shape(&rows, indices)) {
        char text[2][OPS_TEXT_BYTES];
        return ops_invalid(
            "ops_one_hot: y: expected the shape of indices %s and one axis more, got %s",
            ops_describe(indices, text[0]), ops_describe(y, text[1]));
    }
    status = ops_check_apart("ops_one_hot", "indices", indices, y);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    spread.shape[spread.rank] = 1;
    spread.stride[spread.rank++] = 0;
    ops_index_task t = {.function = "ops_one_hot",
                        .name = "one_hot",
                        .family = OPS_FAMILY_ONE_HOT,
                        .body = emit_one_hot,
                        .storage = y->type};
    ops_space_begin(&t.space, y->rank, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_index_add(context, &t, &spread, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, y->rank - 1);
    return ops_index_record(context, &t, 1);
}

hal_status ops_copy(ops_context *context, const ops_tensor *x, const ops_tensor *y)
{
    hal_status status = ops_check_tensor(context, "ops_copy", "x", x);
    if (status == HAL_OK) {
        status = ops_check_output(context, "ops_copy", "y", y);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (!ops_same_shape(x, y) || x->type != y->type) {
        char text[2][OPS_TEXT_BYTES];
        return ops_invalid("ops_copy: y: expected shape and type of x %s, got %s",
                           ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    status = ops_check_apart("ops_copy", "x", x, y);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0 ||
        record_word_copy(context, x, y, &status)) {
        return status;
    }
    ops_tensor from = *x, to = *y;
    HAL_TRY(record_words_before_rest(context, &from, &to));
    from.type = to.type = ops_bits_type(context, x->type);
    ops_index_task t = {.function = "ops_copy",
                        .name = "copy",
                        .family = OPS_FAMILY_COPY,
                        .body = emit_copy,
                        .repeatable = 1,
                        .loaded =
                            hal_type_of_value(from.type) == HAL_TYPE_BOOL ? 0 : UINT32_C(1) << 1};
    ops_space_begin(&t.space, to.rank, to.shape);
    ops_index_add(context, &t, &to, HAL_ACCESS_WRITE);
    ops_index_add(context, &t, &from, HAL_ACCESS_READ);
    return ops_index_record(context, &t, OPS_MAX_WIDTH);
}
