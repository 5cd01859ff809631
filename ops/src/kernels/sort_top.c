/* The first few elements of long lines. Lines are cut into blocks; as many blocks as elements are
 * wanted have them all: those whose first elements come first. Only these are sorted. */
#include "axis_last.h"
#include "bits.h"
#include "index_task.h"
#include "sort_call.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"

#include <ops/index.h>
#include <ops/reduce.h>

enum { LEAST_LENGTH = 512, LEAST_SHARE = 16 };

/* Temporary tensors of a call, [lines, ...]. */
typedef struct top_call {
    const ops_sort_call *sort;
    int64_t count, bits, blocks;  /* elements wanted, logarithm of a block's length, its number */
    ops_tensor keys, firsts;      /* [lines, blocks, length] with keys after the end; of blocks */
    ops_tensor order, chosen;     /* [lines, count]: the blocks, in their order and in that of x */
    ops_tensor candidates, among; /* [lines, count, length]; places of results among them */
} top_call;

bool ops_sort_is_top(const ops_sort_call *c, int64_t count)
{
    const int64_t length = c->x->shape[c->axis];
    return length >= LEAST_LENGTH && count <= length / LEAST_SHARE;
}

/* Views: y, x, and the coordinate along the axis. */
static void emit_keys(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const ops_index_task *t = body->task;
    const ops_sort_key *key = t->form;
    const hal_ir_value inside = hal_ir_lt(b, iter->index[2], body->scalars[0]);
    const hal_ir_value guard = ops_guard_and(b, iter->guard, inside);
    const hal_ir_value x = ops_sort_key_load(b, key, t->slots[1], iter->index[1], guard);
    const hal_ir_value last = ops_index_constant(b, key->type, UINT64_MAX);
    hal_ir_store_wide(b, t->slots[0], iter->index[0], 0, iter->guard,
                      hal_ir_select(b, inside, x, last));
}

static hal_status record_keys(ops_context *context, const top_call *c)
{
    const ops_sort_call *s = c->sort;
    ops_tensor x = *s->x, shape = *s->x;
    shape.shape[s->axis] = c->blocks << c->bits;
    ops_tensor y = ops_axis_last(&shape, s->axis, s->key.type), view = shape;
    x.type = view.type = ops_bits_type(context, x.type);
    y.buffer = c->keys.buffer;
    ops_index_task t = {.function = "ops_sort",
                        .name = "sort_keys",
                        .family = OPS_FAMILY_SORT_KEYS,
                        .form = &s->key,
                        .form_bytes = sizeof s->key,
                        .body = emit_keys,
                        .repeatable = 1,
                        .reach = shape.shape[s->axis] *
                                 (x.stride[s->axis] < 0 ? -x.stride[s->axis] : x.stride[s->axis]),
                        .scalar_names = {"length"}};
    ops_space_begin(&t.space, y.rank, y.shape);
    ops_index_add(context, &t, &y, HAL_ACCESS_WRITE);
    ops_index_add_view(context, &t, &x, &view, HAL_ACCESS_READ);
    ops_space_add_coordinate(&t.space, s->axis);
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    ops_put_index(&block, t.plan.layout.index64, x.shape[s->axis]);
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

/* Views: y, places among candidates, blocks. The block's number on the line and the place in it. */
static void emit_places(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const ops_index_body *body = user;
    const uint8_t *slots = body->task->slots;
    const hal_type type = iter->values->type;
    const hal_ir_value bits = ops_value_cast(b, HAL_TYPE_U32, body->scalars[0]);
    const hal_ir_value one = hal_ir_u32(b, 1);
    hal_ir_value place = hal_ir_load_wide(b, slots[1], iter->index[1], 0, 1, iter->guard);
    place = ops_value_cast(b, HAL_TYPE_U32, place);
    hal_ir_value at = ops_value_cast(b, type, hal_ir_shr(b, place, bits));
    at = hal_ir_add(b, iter->index[2], at);
    hal_ir_value block = hal_ir_load_wide(b, slots[2], at, 0, 1, iter->guard);
    block = hal_ir_shl(b, ops_value_cast(b, HAL_TYPE_U32, block), bits);
    const hal_ir_value mask = hal_ir_sub(b, hal_ir_shl(b, one, bits), one);
    const hal_ir_value found = hal_ir_add(b, block, hal_ir_and(b, place, mask));
    hal_ir_store_wide(b, slots[0], iter->index[0], 0, iter->guard,
                      hal_ir_cast(b, HAL_TYPE_I32, found));
}

static hal_status record_places(ops_context *context, const top_call *c, const ops_tensor *y)
{
    ops_tensor blocks = c->chosen;
    ops_index_task t = {.function = "ops_sort",
                        .name = "sort_top",
                        .family = OPS_FAMILY_SORT_TOP,
                        .body = emit_places,
                        .reach = ops_tensor_get_element_count(&blocks),
                        .scalar_names = {"bits"}};
    ops_space_begin(&t.space, y->rank, y->shape);
    ops_index_add(context, &t, y, HAL_ACCESS_WRITE);
    ops_index_add(context, &t, &c->among, HAL_ACCESS_READ);
    ops_index_add(context, &t, &blocks, HAL_ACCESS_READ);
    t.space.stride[2][1] = 0; /* the place's block replaces the coordinate */
    ops_block block;
    ops_entry *entry;
    HAL_TRY(ops_index_prepare(context, &t, 1, &block, &entry));
    ops_put_index(&block, t.plan.layout.index64, c->bits);
    return ops_dispatch(context, entry, t.plan.grid, &t.bindings, &block);
}

static hal_status create(ops_context *context, hal_type type, uint32_t rank, const int64_t *shape,
                         ops_tensor *made)
{
    *made = (ops_tensor){.type = type, .rank = rank};
    int64_t count = 1;
    for (uint32_t i = rank; i-- > 0; count *= shape[i]) {
        made->shape[i] = shape[i];
        made->stride[i] = count;
    }
    return ops_buffer_create(context, (uint64_t)count * hal_type_size(type), &made->buffer);
}

/* Along axis 1, ascending. */
static hal_status sort_blocks(ops_context *context, const ops_tensor *x, const ops_tensor *values,
                              const ops_tensor *indices)
{
    ops_sort_call c = {.axis = 1, .x = x, .values = values, .indices = indices};
    return ops_sort_whole(context, false, &c);
}

/* All elements of the chosen blocks, and the places of the first ones among them. */
static hal_status record_candidates(ops_context *context, const top_call *c)
{
    const int64_t length = INT64_C(1) << c->bits;
    ops_tensor picks = c->chosen;
    picks.rank = 3;
    picks.shape[2] = length;
    picks.stride[2] = 0;
    HAL_TRY(ops_take_along_axis(context, 1, &c->keys, &picks, &c->candidates));
    ops_tensor *flat = &picks;
    *flat = c->candidates;
    flat->rank = 2;
    flat->shape[1] = c->count * length;
    flat->stride[0] = flat->shape[1];
    flat->stride[1] = 1;
    return sort_blocks(context, flat, NULL, &c->among);
}

static hal_status record_top(ops_context *context, top_call *c, ops_tensor *places)
{
    const int64_t lines = c->sort->lines, count = c->count, length = INT64_C(1) << c->bits;
    const hal_type type = c->sort->key.type;
    const int64_t all[3] = {lines, c->blocks, length}, few[3] = {lines, count, length};
    HAL_TRY(create(context, type, 3, all, &c->keys));
    HAL_TRY(create(context, type, 2, all, &c->firsts));
    HAL_TRY(create(context, HAL_TYPE_I32, 2, few, &c->order));
    HAL_TRY(create(context, HAL_TYPE_I32, 2, few, &c->chosen));
    HAL_TRY(create(context, type, 3, few, &c->candidates));
    HAL_TRY(create(context, HAL_TYPE_I32, 2, few, &c->among));
    HAL_TRY(create(context, HAL_TYPE_I32, 2, few, places));
    HAL_TRY(record_keys(context, c));
    HAL_TRY(ops_reduce(context, OPS_REDUCE_MIN, 2, &c->keys, NULL, &c->firsts));
    HAL_TRY(sort_blocks(context, &c->firsts, NULL, &c->order));
    HAL_TRY(sort_blocks(context, &c->order, &c->chosen, NULL));
    HAL_TRY(record_candidates(context, c));
    return record_places(context, c, places);
}

/* The places' view of a call's results, of which *places has the buffer. */
static void places_view(const ops_sort_call *s, int64_t count, ops_tensor *places)
{
    hal_buffer *buffer = places->buffer;
    ops_tensor shape = *s->x;
    shape.shape[s->axis] = count;
    *places = ops_axis_last(&shape, s->axis, HAL_TYPE_I32);
    places->buffer = buffer;
}

hal_status ops_sort_top(ops_context *context, const ops_sort_call *s, int64_t count,
                        ops_tensor *places)
{
    places->buffer = NULL;
    top_call *c = ops_scratch_take(&context->scratch, "ops_sort", sizeof *c);
    if (!c) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    *c = (top_call){.sort = s, .count = count, .bits = 1};
    while ((INT64_C(4) << (2 * c->bits)) <= s->length / count) {
        c->bits++; /* about the root of length / count: as many blocks as candidates */
    }
    c->blocks = ((s->length - 1) >> c->bits) + 1;
    const hal_status status = record_top(context, c, places);
    hal_buffer *const made[] = {c->keys.buffer,   c->firsts.buffer,     c->order.buffer,
                                c->chosen.buffer, c->candidates.buffer, c->among.buffer};
    for (uint32_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        hal_buffer_release(made[i]);
    }
    ops_scratch_return(&context->scratch, c);
    places_view(s, count, places);
    return status;
}
