/* Sorts of whole lines. Elements become unsigned keys of the same order, and each key goes with
 * its place on the axis, so no two are equal and the order is stable. Groups sort blocks by a
 * network in shared memory; then runs are merged pairwise, a few results by each work-item, until
 * one run is left; then elements are picked by their places. Long lines are sorted by digits where
 * that takes fewer passes (sort_radix.c). */
#include "tensor/allocation.h"
#include "tensor/dispatch.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"
#include "tensor/overlap.h"

#include "axis_last.h"
#include "bits.h"
#include "fold.h"
#include "sort_call.h"

#include <ops/index.h>
#include <ops/pointwise.h>
#include <ops/sort.h>

#include <string.h>

enum {
    MOST_SHARED = 1024, /* elements of a group's shared memory */
    MERGED_ELEMENTS = 8 /* results of a work-item; divides a block of a longer axis */
};

/* Views of the space of lines, and the bindings of the kernels. */
enum { VIEW_X, VIEW_PLACES, VIEW_COUNT };
enum { FROM_KEYS, FROM_PLACES, TO_PLACES, TO_KEYS };

/* What the kernels depend on besides layout and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct block_form {
    ops_sort_key key;
    uint32_t items;       /* of a group */
    uint32_t block_bits;  /* logarithm of a block's elements */
    uint32_t shared_bits; /* the same of all blocks of a group */
    uint32_t writes_keys; /* a merge follows */
} block_form;

typedef struct merge_form {
    hal_type key;
    uint8_t writes_keys; /* another merge follows */
    uint8_t index64;     /* indices have 64 bits */
    uint8_t reserved;
    uint32_t items; /* of a group */
} merge_form;
OPS_KEY_STRUCTURES_END

typedef struct merge_pass {
    merge_form form;
    ops_bindings bindings;
} merge_pass;

typedef struct block_pass {
    block_form form;
    ops_space space;
    ops_axis axis;
    ops_layout layout;
    ops_bindings bindings;
    uint8_t slots[VIEW_COUNT], keys;
    uint32_t grid[3];
} block_pass;

/* A key and its place; both in one kind of memory. */
typedef struct pair {
    hal_ir_value key, place;
} pair;

typedef struct pair_memory {
    hal_ir_memory_id keys, places;
} pair_memory;

static pair pair_load(hal_ir_builder *b, pair_memory memory, hal_ir_value index, hal_ir_value guard)
{
    return (pair){hal_ir_load_wide(b, memory.keys, index, 0, 1, guard),
                  hal_ir_load_wide(b, memory.places, index, 0, 1, guard)};
}

static hal_ir_value pair_less(hal_ir_builder *b, pair x, pair y)
{
    const hal_ir_value places = hal_ir_lt(b, x.place, y.place);
    return hal_ir_or(b, hal_ir_lt(b, x.key, y.key),
                     hal_ir_and(b, hal_ir_eq(b, x.key, y.key), places));
}

static pair pair_select(hal_ir_builder *b, hal_ir_value condition, pair x, pair y)
{
    return (pair){hal_ir_select(b, condition, x.key, y.key),
                  hal_ir_select(b, condition, x.place, y.place)};
}

/* Compares elements whose numbers differ in one bit, and exchanges them. */
static void emit_exchange(hal_ir_builder *b, const block_form *form, pair_memory shared,
                          hal_ir_value number, hal_ir_value stage, hal_ir_value bit)
{
    const hal_ir_value one = hal_ir_u32(b, 1), step = hal_ir_shl(b, one, bit);
    const hal_ir_value inside = hal_ir_and(b, number, hal_ir_sub(b, step, one));
    hal_ir_value low = hal_ir_shl(b, hal_ir_shr(b, number, bit), hal_ir_add(b, bit, one));
    low = hal_ir_or(b, low, inside);
    const hal_ir_value high = hal_ir_add(b, low, step);
    /* Sequences of a stage go up and down in turn; the last one of a block goes up. */
    const hal_ir_value in_block =
        hal_ir_and(b, low, hal_ir_u32(b, (UINT32_C(1) << form->block_bits) - 1));
    const hal_ir_value turn = hal_ir_shr(b, in_block, hal_ir_add(b, stage, one));
    const hal_ir_value goes_up = hal_ir_eq(b, hal_ir_and(b, turn, one), hal_ir_u32(b, 0));
    const pair x = pair_load(b, shared, low, HAL_IR_NONE);
    const pair y = pair_load(b, shared, high, HAL_IR_NONE);
    const hal_ir_value exchanges = hal_ir_eq(b, pair_less(b, y, x), goes_up);
    const pair first = pair_select(b, exchanges, y, x), second = pair_select(b, exchanges, x, y);
    hal_ir_store(b, shared.keys, low, first.key);
    hal_ir_store(b, shared.places, low, first.place);
    hal_ir_store(b, shared.keys, high, second.key);
    hal_ir_store(b, shared.places, high, second.place);
}

static void emit_network(hal_ir_builder *b, const block_form *form, pair_memory shared,
                         hal_ir_value item)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const uint32_t pairs = UINT32_C(1) << (form->shared_bits - 1);
    const hal_ir_value stage = hal_ir_for(b, zero, hal_ir_u32(b, form->block_bits), one);
    const hal_ir_value step = hal_ir_for(b, zero, hal_ir_add(b, stage, one), one);
    const hal_ir_value bit = hal_ir_sub(b, stage, step);
    for (uint32_t first = 0; first < pairs; first += form->items) {
        emit_exchange(b, form, shared, hal_ir_add(b, item, hal_ir_u32(b, first)), stage, bit);
    }
    hal_ir_barrier(b);
    hal_ir_end(b);
    hal_ir_end(b);
}

/* An element of the group's blocks: where it is on the axis and in memory. */
typedef struct block_element {
    hal_ir_value number;        /* in shared memory */
    hal_ir_value place, inside; /* on the axis; BOOL */
    hal_ir_value index[VIEW_COUNT];
} block_element;

/* The scalars of the kernel of blocks. */
typedef struct block_scalars {
    ops_layout_values values;
    hal_ir_value strides[VIEW_COUNT];
    hal_ir_value blocks, length; /* of a line, U32 */
} block_scalars;

static void emit_element(hal_ir_builder *b, const block_pass *p, const block_scalars *s,
                         hal_ir_value number, block_element *e)
{
    const block_form *form = &p->form;
    const hal_type type = s->values.type;
    const uint32_t blocks_bits = form->shared_bits - form->block_bits;
    hal_ir_value block = ops_value_cast(b, type, ops_index_group(b));
    if (blocks_bits) {
        block = hal_ir_mul(b, block, ops_index_constant(b, type, UINT64_C(1) << blocks_bits));
        const hal_ir_value own = hal_ir_shr(b, number, hal_ir_u32(b, form->block_bits));
        block = hal_ir_add(b, block, ops_value_cast(b, type, own));
    }
    const hal_ir_value blocks = ops_value_cast(b, type, s->blocks);
    const hal_ir_value line = hal_ir_div(b, block, blocks);
    const hal_ir_value in_line = hal_ir_sub(b, block, hal_ir_mul(b, line, blocks));
    const hal_ir_value before =
        hal_ir_shl(b, hal_ir_cast(b, HAL_TYPE_U32, in_line), hal_ir_u32(b, form->block_bits));
    const hal_ir_value mask = hal_ir_u32(b, (UINT32_C(1) << form->block_bits) - 1);
    e->number = number;
    e->place = hal_ir_add(b, before, hal_ir_and(b, number, mask));
    e->inside =
        hal_ir_and(b, hal_ir_lt(b, line, s->values.total), hal_ir_lt(b, e->place, s->length));
    for (uint32_t view = 0; view < VIEW_COUNT; view++) {
        e->index[view] = s->values.base[view];
    }
    ops_layout_offset(b, &p->layout, &s->values, line, p->layout.rank, e->index);
    for (uint32_t view = 0; view < VIEW_COUNT; view++) {
        e->index[view] =
            ops_axis_place(b, &p->axis, s->strides, type, view, e->index[view], e->place);
    }
}

static void emit_blocks(hal_ir_builder *b, const void *user)
{
    const block_pass *p = user;
    const block_form *form = &p->form;
    const uint32_t elements = UINT32_C(1) << form->shared_bits;
    block_scalars s;
    block_element e;
    ops_declare_bindings(b, &p->bindings);
    const pair_memory shared = {hal_ir_shared(b, "keys", form->key.type, elements),
                                hal_ir_shared(b, "places", HAL_TYPE_U32, elements)};
    ops_layout_declare(b, &p->space, &p->layout, &s.values);
    ops_axis_declare(b, &p->axis, &p->layout, s.strides);
    s.blocks = hal_ir_scalar_value(b, "blocks", HAL_TYPE_U32);
    s.length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    hal_ir_group_size(b, form->items, 1, 1);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value end = hal_ir_u32(b, elements), step = hal_ir_u32(b, form->items);
    const hal_ir_value beyond = ops_index_constant(b, form->key.type, UINT64_MAX);

    hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), end, step);
    emit_element(b, p, &s, hal_ir_add(b, k, item), &e);
    const hal_ir_value key =
        ops_sort_key_load(b, &form->key, p->slots[VIEW_X], e.index[VIEW_X], e.inside);
    hal_ir_store(b, shared.keys, e.number, hal_ir_select(b, e.inside, key, beyond));
    hal_ir_store(b, shared.places, e.number, e.place);
    hal_ir_end(b);
    hal_ir_barrier(b);
    emit_network(b, form, shared, item);
    k = hal_ir_for(b, hal_ir_u32(b, 0), end, step);
    emit_element(b, p, &s, hal_ir_add(b, k, item), &e);
    const pair sorted = pair_load(b, shared, e.number, HAL_IR_NONE);
    hal_ir_store_wide(b, p->slots[VIEW_PLACES], e.index[VIEW_PLACES], 0, e.inside, sorted.place);
    if (form->writes_keys) {
        hal_ir_store_wide(b, p->keys, e.index[VIEW_PLACES], 0, e.inside, sorted.key);
    }
    hal_ir_end(b);
}

/* The scalars of a merge, and the runs that a work-item merges. `first` is the index of the line's
 * first element; places and lengths on the axis are U32. */
typedef struct merge_part {
    hal_type type; /* of indices */
    hal_ir_value inside, first;
    hal_ir_value x_start, x_length, y_start, y_length;
    hal_ir_value before; /* results of earlier work-items */
    hal_ir_value length, steps;
} merge_part;

static hal_ir_value merge_index(hal_ir_builder *b, const merge_part *m, hal_ir_value place)
{
    return hal_ir_add(b, m->first, ops_value_cast(b, m->type, place));
}

static void emit_merge_part(hal_ir_builder *b, const merge_form *form, merge_part *m)
{
    const hal_type type = m->type = form->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const hal_ir_value lines = hal_ir_scalar_value(b, "lines", type);
    const hal_ir_value chunks = hal_ir_scalar_value(b, "chunks", HAL_TYPE_U32);
    const hal_ir_value width = hal_ir_scalar_value(b, "width", HAL_TYPE_U32);
    m->length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    m->steps = hal_ir_scalar_value(b, "steps", HAL_TYPE_U32);
    hal_ir_group_size(b, form->items, 1, 1);
    hal_ir_value number = ops_value_cast(b, type, ops_index_group(b));
    number = hal_ir_mul(b, number, ops_index_constant(b, type, form->items));
    number = hal_ir_add(b, number, ops_value_cast(b, type, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    const hal_ir_value of_line = ops_value_cast(b, type, chunks);
    const hal_ir_value line = hal_ir_div(b, number, of_line);
    hal_ir_value chunk = hal_ir_sub(b, number, hal_ir_mul(b, line, of_line));
    chunk = ops_value_cast(b, HAL_TYPE_U32, chunk);
    m->inside = hal_ir_lt(b, line, lines);
    m->first = hal_ir_mul(b, line, ops_value_cast(b, type, m->length));
    const hal_ir_value place = hal_ir_mul(b, chunk, hal_ir_u32(b, MERGED_ELEMENTS));
    const hal_ir_value both = hal_ir_add(b, width, width);
    m->x_start = hal_ir_sub(b, place, hal_ir_rem(b, place, both));
    m->before = hal_ir_sub(b, place, m->x_start);
    m->x_length = hal_ir_min(b, width, hal_ir_sub(b, m->length, m->x_start));
    m->y_start = hal_ir_add(b, m->x_start, m->x_length);
    m->y_length = hal_ir_min(b, width, hal_ir_sub(b, m->length, m->y_start));
}

/* How many of the results before this work-item's are of x. */
static hal_ir_value emit_merge_search(hal_ir_builder *b, const merge_part *m, pair_memory from)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value rest = hal_ir_sub(b, m->before, hal_ir_min(b, m->before, m->y_length));
    const hal_ir_value least = hal_ir_var(b, rest);
    const hal_ir_value most = hal_ir_var(b, hal_ir_min(b, m->before, m->x_length));
    hal_ir_for(b, zero, m->steps, one);
    const hal_ir_value low = hal_ir_get(b, least), high = hal_ir_get(b, most);
    const hal_ir_value active = hal_ir_and(b, m->inside, hal_ir_lt(b, low, high));
    const hal_ir_value middle = hal_ir_shr(b, hal_ir_add(b, low, high), one);
    const hal_ir_value other = hal_ir_sub(b, hal_ir_sub(b, m->before, one), middle);
    const pair x = pair_load(b, from, merge_index(b, m, hal_ir_add(b, m->x_start, middle)), active);
    const pair y = pair_load(b, from, merge_index(b, m, hal_ir_add(b, m->y_start, other)), active);
    const hal_ir_value is_before = pair_less(b, x, y);
    const hal_ir_value up = hal_ir_and(b, active, is_before);
    const hal_ir_value down = hal_ir_and(b, active, hal_ir_not(b, is_before));
    hal_ir_set(b, least, hal_ir_select(b, up, hal_ir_add(b, middle, one), low));
    hal_ir_set(b, most, hal_ir_select(b, down, middle, high));
    hal_ir_end(b);
    return hal_ir_get(b, least);
}

static void emit_merge(hal_ir_builder *b, const void *user)
{
    const merge_pass *p = user;
    const merge_form *form = &p->form;
    const pair_memory from = {FROM_KEYS, FROM_PLACES};
    const hal_ir_value one = hal_ir_u32(b, 1);
    merge_part m;
    ops_declare_bindings(b, &p->bindings);
    emit_merge_part(b, form, &m);
    hal_ir_value x_taken = emit_merge_search(b, &m, from);
    hal_ir_value y_taken = hal_ir_sub(b, m.before, x_taken);
    hal_ir_value has_x = hal_ir_and(b, m.inside, hal_ir_lt(b, x_taken, m.x_length));
    hal_ir_value has_y = hal_ir_and(b, m.inside, hal_ir_lt(b, y_taken, m.y_length));
    pair x = pair_load(b, from, merge_index(b, &m, hal_ir_add(b, m.x_start, x_taken)), has_x);
    pair y = pair_load(b, from, merge_index(b, &m, hal_ir_add(b, m.y_start, y_taken)), has_y);
    for (uint32_t i = 0; i < MERGED_ELEMENTS; i++) {
        const hal_ir_value is_less = hal_ir_or(b, hal_ir_not(b, has_y), pair_less(b, x, y));
        const hal_ir_value takes_x = hal_ir_and(b, has_x, is_less);
        const pair next = pair_select(b, takes_x, x, y);
        const hal_ir_value place =
            hal_ir_add(b, hal_ir_add(b, m.x_start, m.before), hal_ir_u32(b, i));
        const hal_ir_value stores = hal_ir_and(b, m.inside, hal_ir_lt(b, place, m.length));
        const hal_ir_value index = merge_index(b, &m, place);
        hal_ir_store_wide(b, TO_PLACES, index, 0, stores, next.place);
        if (form->writes_keys) {
            hal_ir_store_wide(b, TO_KEYS, index, 0, stores, next.key);
        }
        x_taken = hal_ir_select(b, takes_x, hal_ir_add(b, x_taken, one), x_taken);
        y_taken = hal_ir_select(b, takes_x, y_taken, hal_ir_add(b, y_taken, one));
        has_x = hal_ir_and(b, m.inside, hal_ir_lt(b, x_taken, m.x_length));
        has_y = hal_ir_and(b, m.inside, hal_ir_lt(b, y_taken, m.y_length));
        const hal_ir_value from_x = hal_ir_add(b, m.x_start, x_taken);
        const hal_ir_value from_y = hal_ir_add(b, m.y_start, y_taken);
        const pair loaded =
            pair_load(b, from, merge_index(b, &m, hal_ir_select(b, takes_x, from_x, from_y)),
                      hal_ir_select(b, takes_x, has_x, has_y));
        x = pair_select(b, takes_x, loaded, x);
        y = pair_select(b, takes_x, y, loaded);
    }
}

static uint32_t logarithm(uint64_t x) /* rounded up */
{
    return x > 1 ? 64 - (uint32_t)__builtin_clzll(x - 1) : 0;
}

/* The form of the network's groups. */
static void form_choose(const ops_context *context, const ops_sort_call *c, block_form *form)
{
    const hal_device_info *info = context->info;
    *form = (block_form){.key = c->key};
    uint32_t most = logarithm(MOST_SHARED);
    while (((hal_type_size(c->key.type) + 4u) << most) > info->shared_bytes) {
        most--;
    }
    const uint32_t needed = logarithm((uint64_t)c->length);
    form->block_bits = needed < 1 ? 1 : needed < most ? needed : most;
    form->shared_bits = needed < most ? most : form->block_bits;
    const uint32_t pairs = UINT32_C(1) << (form->shared_bits - 1);
    form->items = UINT32_C(1) << (31 - __builtin_clz(ops_group_items(info)));
    form->items = form->items < pairs ? form->items : pairs;
}

static void call_init(const ops_context *context, bool descending, ops_sort_call *c)
{
    block_form form;
    ops_sort_key_choose(context, c->x->type, descending, &c->key);
    c->length = c->x->shape[c->axis];
    c->lines = ops_tensor_get_element_count(c->x) / c->length;
    if (context->tuning->sort.by_digits) {
        c->block = ops_sort_digit_block(context, c);
    } else {
        form_choose(context, c, &form);
        c->block = INT64_C(1) << form.block_bits;
    }
    c->blocks = (int64_t)ops_ceil_divide((uint64_t)c->length, (uint64_t)c->block);
    c->by_radix = ops_sort_is_by_radix(context, c, logarithm((uint64_t)c->blocks));
}

/* The temporary buffers, of which passes need two each. */
static hal_status create_buffers(ops_context *context, ops_sort_call *c)
{
    const uint64_t count = (uint64_t)(c->lines * c->length);
    const bool passes = c->blocks > 1 || (context->tuning->sort.by_digits &&
                                          c->length > ops_sort_most_counted(context));
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 2 && status == HAL_OK && (i == 0 || passes); i++) {
        status = ops_buffer_create(context, count * 4, &c->numbers[i]);
        if (status == HAL_OK && passes) {
            status = ops_buffer_create(context, count * hal_type_size(c->key.type), &c->keys[i]);
        }
    }
    return status;
}

static hal_status record_blocks(ops_context *context, const ops_sort_call *c)
{
    block_pass p;
    memset(&p, 0, sizeof p);
    form_choose(context, c, &p.form);
    p.form.writes_keys = c->blocks > 1;
    const int64_t count = c->lines * c->length;
    ops_tensor x = *c->x;
    x.type = ops_bits_type(context, x.type);
    ops_space_begin(&p.space, x.rank, x.shape);
    ops_space_add(&p.space, &x, 0);
    ops_space_add(&p.space, &c->places, 0);
    ops_axis_take(&p.space, c->axis, &p.axis);
    const ops_tensor numbers = ops_sort_flat(c->numbers[0], HAL_TYPE_U32, count);
    p.slots[VIEW_X] = (uint8_t)ops_bind(context, &p.bindings, &x, HAL_ACCESS_READ);
    p.slots[VIEW_PLACES] = (uint8_t)ops_bind(context, &p.bindings, &numbers, HAL_ACCESS_WRITE);
    if (p.form.writes_keys) {
        const ops_tensor keys = ops_sort_flat(c->keys[0], p.form.key.type, count);
        p.keys = (uint8_t)ops_bind(context, &p.bindings, &keys, HAL_ACCESS_WRITE);
    }
    p.space.base[VIEW_X] = ops_base(&p.bindings, p.slots[VIEW_X], &x);
    ops_space_collapse(&p.space, VIEW_PLACES);
    ops_layout_choose(context, &p.space, 2 * sizeof(uint32_t), ops_axis_reach(&p.axis, VIEW_COUNT),
                      &p.layout);
    const uint32_t shared_blocks = UINT32_C(1) << (p.form.shared_bits - p.form.block_bits);
    const uint64_t groups = ops_ceil_divide((uint64_t)(c->lines * c->blocks), shared_blocks);
    HAL_TRY(ops_grid_spread(context, "ops_sort", groups, p.grid));
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_SORT);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_bindings_key(&p.bindings, p.slots, VIEW_COUNT, &key);
    ops_layout_key(&p.space, &p.layout, &key);
    ops_cache_key_append(&key, p.axis.step, VIEW_COUNT);
    ops_entry *entry;
    HAL_TRY(ops_cache_get(context, &key, "sort_blocks", emit_blocks, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&p.space, &p.layout, &block);
    ops_axis_put(&p.axis, &p.layout, &block);
    ops_put_u32(&block, (uint32_t)c->blocks);
    ops_put_u32(&block, (uint32_t)c->length);
    return ops_dispatch(context, entry, p.grid, &p.bindings, &block);
}

/* Merges runs of `width` elements from the buffers `from` to the others. */
static hal_status record_merge(ops_context *context, const ops_sort_call *c, int64_t width,
                               uint32_t from)
{
    const int64_t count = c->lines * c->length;
    const uint32_t to = 1 - from;
    merge_pass p = {.form = {.key = c->key.type,
                             .writes_keys = 2 * width < c->length,
                             .index64 = count >= context->tuning->index32_limit,
                             .items = ops_group_items(context->info)}};
    const ops_tensor memory[] = {[FROM_KEYS] = ops_sort_flat(c->keys[from], p.form.key, count),
                                 [FROM_PLACES] =
                                     ops_sort_flat(c->numbers[from], HAL_TYPE_U32, count),
                                 [TO_PLACES] = ops_sort_flat(c->numbers[to], HAL_TYPE_U32, count),
                                 [TO_KEYS] = ops_sort_flat(c->keys[to], p.form.key, count)};
    uint8_t slots[4];
    const uint32_t bound = p.form.writes_keys ? 4 : 3;
    for (uint32_t i = 0; i < bound; i++) {
        const uint32_t access = i < TO_PLACES ? HAL_ACCESS_READ : HAL_ACCESS_WRITE;
        slots[i] = (uint8_t)ops_bind(context, &p.bindings, &memory[i], access);
    }
    const uint64_t chunks = ops_ceil_divide((uint64_t)c->length, MERGED_ELEMENTS);
    const uint64_t groups = ops_ceil_divide((uint64_t)c->lines * chunks, p.form.items);
    uint32_t grid[3];
    HAL_TRY(ops_grid_spread(context, "ops_sort", groups, grid));
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_MERGE);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_bindings_key(&p.bindings, slots, bound, &key);
    ops_entry *entry;
    HAL_TRY(ops_cache_get(context, &key, "sort_merge", emit_merge, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_put_index(&block, p.form.index64, c->lines);
    ops_put_u32(&block, (uint32_t)chunks);
    ops_put_u32(&block, (uint32_t)width);
    ops_put_u32(&block, (uint32_t)c->length);
    ops_put_u32(&block, logarithm((uint64_t)width) + 1);
    return ops_dispatch(context, entry, grid, &p.bindings, &block);
}

/* Sorts to c->places. */
static hal_status record_places(ops_context *context, ops_sort_call *c)
{
    if (c->by_radix) {
        c->places.buffer = c->numbers[0];
        return ops_sort_by_radix(context, c);
    }
    hal_status status = !context->tuning->sort.by_digits ? record_blocks(context, c)
                        : c->length <= ops_sort_most_counted(context)
                            ? ops_sort_by_counts(context, c)
                            : ops_sort_by_digits(context, c);
    uint32_t from = 0;
    for (int64_t width = c->block; status == HAL_OK && width < c->length; width *= 2, from ^= 1) {
        status = record_merge(context, c, width, from);
    }
    c->places.buffer = c->numbers[from];
    return status;
}

/* Picks the values, by way of temporary memory if they replace x. */
static hal_status record_values(ops_context *context, const ops_sort_call *c,
                                const ops_tensor *places)
{
    const int32_t axis = (int32_t)c->axis;
    if (!ops_overlap(c->x, c->values)) {
        return ops_take_along_axis(context, axis, c->x, places, c->values);
    }
    ops_tensor sorted = ops_row_major(c->values);
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(&sorted) * hal_type_size(sorted.type);
    sorted.offset = 0;
    HAL_TRY(ops_buffer_create(context, bytes, &sorted.buffer));
    hal_status status = ops_take_along_axis(context, axis, c->x, places, &sorted);
    if (status == HAL_OK) {
        status = ops_copy(context, &sorted, c->values);
    }
    hal_buffer_release(sorted.buffer);
    return status;
}

hal_status ops_sort_results(ops_context *context, const ops_sort_call *c)
{
    ops_tensor places = c->places;
    const ops_tensor *like = c->values ? c->values : c->indices;
    places.shape[c->axis] = like->shape[c->axis];
    if (c->values) {
        HAL_TRY(record_values(context, c, &places));
    }
    return !c->indices                        ? HAL_OK
           : c->indices->type == HAL_TYPE_I32 ? ops_copy(context, &places, c->indices)
                                              : ops_cast(context, &places, c->indices);
}

static void release_buffers(ops_sort_call *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        hal_buffer_release(c->keys[i]);
        hal_buffer_release(c->numbers[i]);
    }
}

hal_status ops_sort_whole(ops_context *context, bool descending, ops_sort_call *c)
{
    call_init(context, descending, c);
    hal_status status = create_buffers(context, c);
    c->places = ops_axis_last(c->x, c->axis, HAL_TYPE_I32);
    if (status == HAL_OK) {
        status = record_places(context, c);
    }
    if (status == HAL_OK) {
        status = ops_sort_results(context, c);
    }
    release_buffers(c);
    return status;
}

hal_status ops_sort_bounded(ops_context *context, uint32_t axis, int64_t bound,
                            const ops_tensor *indices, ops_tensor *keys, ops_tensor *places)
{
    ops_sort_call c = {.axis = axis, .x = indices, .bound = bound, .writes_keys = true};
    keys->buffer = places->buffer = NULL;
    if (bound < 1 || bound >= UINT32_MAX) {
        return HAL_OK;
    }
    call_init(context, false, &c);
    c.key = (ops_sort_key){.type = HAL_TYPE_U32, .bits = (uint8_t)logarithm((uint64_t)bound + 1)};
    if (!ops_sort_is_by_radix(context, &c, logarithm((uint64_t)c.blocks))) {
        return HAL_OK;
    }
    *places = c.places = ops_axis_last(indices, axis, HAL_TYPE_I32);
    *keys = ops_axis_last(indices, axis, HAL_TYPE_U32);
    hal_status status = create_buffers(context, &c);
    if (status == HAL_OK) {
        status = ops_sort_by_radix(context, &c);
    }
    if (status == HAL_OK) {
        keys->buffer = hal_buffer_retain(c.keys[0]);
        places->buffer = hal_buffer_retain(c.numbers[0]);
    }
    release_buffers(&c);
    return status;
}
