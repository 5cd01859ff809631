/* Sorting long lines on GPUs by digits, from the lowest one, of as few bits as keys have. For each
 * digit: groups count the digits of their tiles; a scan over all digits and tiles gives where the
 * elements of each go; groups sort their tiles in shared memory, and write runs of equal digits.
 *
 * Source: N. Satish, M. Harris, M. Garland, "Designing efficient sorting algorithms for manycore
 * GPUs", 2009. */
#include "axis_last.h"
#include "sort_lines.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <ops/scan.h>
#include <string.h>

enum {
    MOST_DIGIT_BITS = 8,
    PART_BITS = 4, /* of a digit, by which a tile is sorted at once */
    PARTS = 1 << PART_BITS,
    MOST_ITEMS = 256,
    MOST_ELEMENTS = 8 /* of a work-item */
};

/* Bindings after x. */
enum { COUNTS = 1, NUMBERS_TO = 2, KEYS_TO = 3 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct radix_form {
    ops_sort_key key;
    uint32_t items, elements; /* of a group, and of each of its work-items */
    uint32_t digit_bits;
    uint32_t is_bounded; /* keys above a bound count as the bound */
    uint32_t moves;      /* else it counts */
    uint32_t has_numbers, writes_keys;
    uint32_t reserved;
} radix_form;
OPS_KEY_STRUCTURES_END

typedef struct radix_pass {
    radix_form form;
    ops_sort_lines lines;
    uint8_t numbers_from; /* binding, with has_numbers */
} radix_pass;

/* A group's tile. Places on the line are U32. */
typedef struct radix_tile {
    const radix_pass *pass;
    ops_sort_line_values values;
    hal_type type; /* of indices */
    hal_ir_value item;
    hal_ir_value x;            /* index of the line's first element in x */
    hal_ir_value line, inside; /* BOOL: there is such a tile */
    hal_ir_value first, count; /* the tile's place on the line, and its elements */
    hal_ir_value length, tiles, tile, shift, bound;
} radix_tile;

static void emit_tile(hal_ir_builder *b, const radix_pass *p, radix_tile *t)
{
    const radix_form *form = &p->form;
    t->pass = p;
    ops_sort_lines_declare(b, &p->lines, &t->values);
    const hal_type type = t->type = t->values.values.type;
    t->length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    t->tiles = hal_ir_scalar_value(b, "tiles", HAL_TYPE_U32);
    t->shift = hal_ir_scalar_value(b, "shift", HAL_TYPE_U32);
    t->bound = hal_ir_scalar_value(b, "bound", HAL_TYPE_U32);
    hal_ir_group_size(b, form->items, 1, 1);
    const hal_ir_value group = ops_value_cast(b, type, ops_index_group(b));
    const hal_ir_value tiles = ops_value_cast(b, type, t->tiles);
    t->item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    t->line = hal_ir_div(b, group, tiles);
    t->tile = ops_value_cast(b, HAL_TYPE_U32, hal_ir_sub(b, group, hal_ir_mul(b, t->line, tiles)));
    t->inside = hal_ir_lt(b, t->line, t->values.values.total);
    const hal_ir_value elements = hal_ir_u32(b, form->items * form->elements);
    t->first = hal_ir_mul(b, t->tile, elements);
    t->count = hal_ir_min(b, elements, hal_ir_sub(b, t->length, t->first));
    t->count = hal_ir_select(b, t->inside, t->count, hal_ir_u32(b, 0));
    t->x = ops_sort_lines_first(b, &p->lines, &t->values, t->line);
}

/* The key of the tile's element `place`. */
static hal_ir_value emit_key(hal_ir_builder *b, const radix_tile *t, hal_ir_value place,
                             hal_ir_value inside)
{
    const radix_form *form = &t->pass->form;
    const hal_ir_value index =
        ops_sort_lines_place(b, &t->pass->lines, &t->values, t->x, hal_ir_add(b, t->first, place));
    if (!form->is_bounded) {
        return ops_sort_key_load(b, &form->key, t->pass->lines.x, index, inside);
    }
    const hal_ir_value x = hal_ir_load_wide(b, t->pass->lines.x, index, 0, 1, inside);
    const hal_type wide = hal_type_size(hal_ir_type_of(b, x)) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const hal_ir_value bound = ops_value_cast(b, wide, t->bound);
    return ops_value_cast(b, HAL_TYPE_U32, hal_ir_min(b, ops_value_cast(b, wide, x), bound));
}

/* `bits` bits of a key from bit `from` of the digit on. */
static hal_ir_value emit_digit(hal_ir_builder *b, const radix_tile *t, hal_ir_value key,
                               uint32_t from, uint32_t bits)
{
    const hal_type type = t->pass->form.key.type;
    /* One after the other: the sum may be the bits of the type in the last digit. */
    key = hal_ir_shr(b, key, ops_value_cast(b, type, t->shift));
    key = from ? hal_ir_shr(b, key, ops_index_constant(b, type, from)) : key;
    key = hal_ir_and(b, key, ops_index_constant(b, type, (UINT64_C(1) << bits) - 1));
    return ops_value_cast(b, HAL_TYPE_U32, key);
}

/* The index of a digit's count of the tile in [lines, digits, tiles]. */
static hal_ir_value emit_count_index(hal_ir_builder *b, const radix_tile *t, hal_ir_value digit)
{
    const hal_type type = t->type;
    const uint64_t digits = UINT64_C(1) << t->pass->form.digit_bits;
    hal_ir_value index = hal_ir_mul(b, t->line, ops_index_constant(b, type, digits));
    index = hal_ir_add(b, index, ops_value_cast(b, type, digit));
    index = hal_ir_mul(b, index, ops_value_cast(b, type, t->tiles));
    return hal_ir_add(b, index, ops_value_cast(b, type, t->tile));
}

static void emit_counting(hal_ir_builder *b, const radix_tile *t)
{
    const radix_form *form = &t->pass->form;
    const uint32_t digits = UINT32_C(1) << form->digit_bits;
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_memory_id counts = hal_ir_shared(b, "counts", HAL_TYPE_U32, digits);
    const hal_ir_value has_digit = hal_ir_lt(b, t->item, hal_ir_u32(b, digits));
    hal_ir_store_wide(b, counts, t->item, 0, has_digit, zero);
    hal_ir_barrier(b);
    for (uint32_t e = 0; e < form->elements; e++) {
        const hal_ir_value place = hal_ir_add(b, t->item, hal_ir_u32(b, e * form->items));
        const hal_ir_value inside = hal_ir_lt(b, place, t->count);
        const hal_ir_value digit =
            emit_digit(b, t, emit_key(b, t, place, inside), 0, form->digit_bits);
        hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, counts, digit, inside, one, HAL_IR_NONE);
    }
    hal_ir_barrier(b);
    const hal_ir_value count = hal_ir_load_wide(b, counts, t->item, 0, 1, has_digit);
    hal_ir_store_wide(b, COUNTS, emit_count_index(b, t, t->item), 0,
                      hal_ir_and(b, t->inside, has_digit), count);
}

/* The shared memory of a group that moves. */
typedef struct radix_memory {
    hal_ir_memory_id keys, numbers, counts, sums, offsets;
} radix_memory;

/* The sum of the values of earlier work-items. Ends with a barrier. */
static hal_ir_value emit_sum_before(hal_ir_builder *b, const radix_tile *t, hal_ir_memory_id sums,
                                    hal_ir_value value)
{
    const uint32_t items = t->pass->form.items;
    const hal_ir_value own = value;
    uint32_t half = 0; /* of the memory that holds the newest sums */
    hal_ir_store(b, sums, t->item, value);
    hal_ir_barrier(b);
    for (uint32_t distance = 1; distance < items; distance *= 2, half ^= 1) {
        const hal_ir_value is_later = hal_ir_le(b, hal_ir_u32(b, distance), t->item);
        const hal_ir_value other =
            hal_ir_load_wide(b, sums, hal_ir_sub(b, t->item, hal_ir_u32(b, distance)),
                             (int32_t)(half * items), 1, is_later);
        value = hal_ir_add(b, value, other); /* 0 without the guard */
        hal_ir_store_wide(b, sums, t->item, (int32_t)((half ^ 1) * items), HAL_IR_NONE, value);
        hal_ir_barrier(b);
    }
    return hal_ir_sub(b, value, own);
}

/* Each work-item's share of the counts, [parts, items], becomes the sums of all before them. */
static void emit_count_sums(hal_ir_builder *b, const radix_tile *t, const radix_memory *memory)
{
    hal_ir_value counts[PARTS], sum = hal_ir_u32(b, 0);
    const hal_ir_value first = hal_ir_mul(b, t->item, hal_ir_u32(b, PARTS));
    for (uint32_t i = 0; i < PARTS; i++) {
        counts[i] = hal_ir_load_wide(b, memory->counts, first, (int32_t)i, 1, HAL_IR_NONE);
        sum = hal_ir_add(b, sum, counts[i]);
    }
    hal_ir_value before = emit_sum_before(b, t, memory->sums, sum);
    for (uint32_t i = 0; i < PARTS; i++) {
        hal_ir_store_wide(b, memory->counts, first, (int32_t)i, HAL_IR_NONE, before);
        before = hal_ir_add(b, before, counts[i]);
    }
    hal_ir_barrier(b);
}

/* Sorts the tile by a part of the digit. Work-items have neighbours, so the order is stable. */
static void emit_split(hal_ir_builder *b, const radix_tile *t, const radix_memory *memory,
                       uint32_t from, uint32_t bits)
{
    const radix_form *form = &t->pass->form;
    const hal_ir_value items = hal_ir_u32(b, form->items), one = hal_ir_u32(b, 1);
    const hal_ir_value first = hal_ir_mul(b, t->item, hal_ir_u32(b, form->elements));
    hal_ir_value keys[MOST_ELEMENTS], numbers[MOST_ELEMENTS], at[MOST_ELEMENTS],
        ranks[MOST_ELEMENTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        hal_ir_store_wide(b, memory->counts, t->item, (int32_t)(i * form->items), HAL_IR_NONE,
                          hal_ir_u32(b, 0));
    }
    for (uint32_t e = 0; e < form->elements; e++) {
        keys[e] = hal_ir_load_wide(b, memory->keys, first, (int32_t)e, 1, HAL_IR_NONE);
        numbers[e] = hal_ir_load_wide(b, memory->numbers, first, (int32_t)e, 1, HAL_IR_NONE);
        at[e] = hal_ir_mul(b, emit_digit(b, t, keys[e], from, bits), items);
        at[e] = hal_ir_add(b, at[e], t->item);
        ranks[e] = hal_ir_load(b, memory->counts, at[e]);
        hal_ir_store(b, memory->counts, at[e], hal_ir_add(b, ranks[e], one));
    }
    hal_ir_barrier(b);
    emit_count_sums(b, t, memory);
    for (uint32_t e = 0; e < form->elements; e++) {
        const hal_ir_value to = hal_ir_add(b, hal_ir_load(b, memory->counts, at[e]), ranks[e]);
        hal_ir_store(b, memory->keys, to, keys[e]);
        hal_ir_store(b, memory->numbers, to, numbers[e]);
    }
    hal_ir_barrier(b);
}

/* For each digit: what added to an element's place in the sorted tile gives that on the line. */
static void emit_offsets(hal_ir_builder *b, const radix_tile *t, const radix_memory *memory)
{
    const uint32_t digits = UINT32_C(1) << t->pass->form.digit_bits;
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value has_digit =
        hal_ir_and(b, t->inside, hal_ir_lt(b, t->item, hal_ir_u32(b, digits)));
    const hal_ir_value index = emit_count_index(b, t, t->item);
    const hal_ir_value is_later =
        hal_ir_or(b, hal_ir_ne(b, t->item, zero), hal_ir_ne(b, t->tile, zero));
    const hal_ir_value before =
        hal_ir_load_wide(b, COUNTS, hal_ir_sub(b, index, ops_index_constant(b, t->type, 1)), 0, 1,
                         hal_ir_and(b, has_digit, is_later));
    const hal_ir_value up_to = hal_ir_load_wide(b, COUNTS, index, 0, 1, has_digit);
    const hal_ir_value start = emit_sum_before(b, t, memory->sums, hal_ir_sub(b, up_to, before));
    hal_ir_store_wide(b, memory->offsets, t->item, 0, has_digit, hal_ir_sub(b, before, start));
    hal_ir_barrier(b);
}

static void emit_moving(hal_ir_builder *b, const radix_tile *t)
{
    const radix_pass *p = t->pass;
    const radix_form *form = &p->form;
    const uint32_t elements = form->items * form->elements;
    const radix_memory memory = {
        hal_ir_shared(b, "keys", form->key.type, elements),
        hal_ir_shared(b, "numbers", HAL_TYPE_U32, elements),
        hal_ir_shared(b, "counts", HAL_TYPE_U32, PARTS * form->items),
        hal_ir_shared(b, "sums", HAL_TYPE_U32, 2 * form->items),
        hal_ir_shared(b, "offsets", HAL_TYPE_U32, UINT32_C(1) << form->digit_bits)};
    const hal_ir_value beyond = ops_index_constant(b, form->key.type, UINT64_MAX);
    hal_ir_value line = hal_ir_mul(b, t->line, ops_value_cast(b, t->type, t->length));
    const hal_ir_value from = hal_ir_add(b, line, ops_value_cast(b, t->type, t->first));
    for (uint32_t e = 0; e < form->elements; e++) {
        const hal_ir_value place = hal_ir_add(b, t->item, hal_ir_u32(b, e * form->items));
        const hal_ir_value inside = hal_ir_lt(b, place, t->count);
        const hal_ir_value key = emit_key(b, t, place, inside);
        hal_ir_value number = hal_ir_add(b, t->first, place);
        if (form->has_numbers) {
            const hal_ir_value index = hal_ir_add(b, from, ops_value_cast(b, t->type, place));
            number = hal_ir_load_wide(b, p->numbers_from, index, 0, 1, inside);
        }
        hal_ir_store(b, memory.keys, place, hal_ir_select(b, inside, key, beyond));
        hal_ir_store(b, memory.numbers, place, number);
    }
    hal_ir_barrier(b);
    for (uint32_t bit = 0; bit < form->digit_bits; bit += PART_BITS) {
        const uint32_t rest = form->digit_bits - bit;
        emit_split(b, t, &memory, bit, rest < PART_BITS ? rest : PART_BITS);
    }
    emit_offsets(b, t, &memory);
    for (uint32_t e = 0; e < form->elements; e++) {
        const hal_ir_value place = hal_ir_add(b, t->item, hal_ir_u32(b, e * form->items));
        const hal_ir_value inside = hal_ir_lt(b, place, t->count);
        const hal_ir_value key = hal_ir_load(b, memory.keys, place);
        const hal_ir_value digit = emit_digit(b, t, key, 0, form->digit_bits);
        hal_ir_value to = hal_ir_load_wide(b, memory.offsets, digit, 0, 1, inside);
        to = ops_value_cast(b, t->type, hal_ir_add(b, to, place));
        to = hal_ir_add(b, line, to);
        hal_ir_store_wide(b, NUMBERS_TO, to, 0, inside, hal_ir_load(b, memory.numbers, place));
        if (form->writes_keys) {
            hal_ir_store_wide(b, KEYS_TO, to, 0, inside, key);
        }
    }
}

static void emit_radix(hal_ir_builder *b, const void *user)
{
    const radix_pass *p = user;
    radix_tile t;
    ops_declare_bindings(b, &p->lines.bindings);
    emit_tile(b, p, &t);
    if (p->form.moves) {
        emit_moving(b, &t);
    } else {
        emit_counting(b, &t);
    }
}

/* The passes of a call. */
typedef struct radix_call {
    const ops_sort_call *sort; /* of the call, and of keys that a pass has written */
    uint32_t items, elements, passes, digit_bits;
    int64_t tiles;
    ops_tensor counts; /* [lines, digits * tiles] */
} radix_call;

static uint32_t shared_bytes(const ops_sort_key *key, uint32_t items, uint32_t elements)
{
    const uint32_t tile = items * elements * (hal_type_size(key->type) + 4u);
    return tile + (PARTS + 2u) * items * 4u + (4u << MOST_DIGIT_BITS);
}

/* Chooses groups and digits. False where the device has too little for a group. */
static bool radix_choose(const ops_context *context, const ops_sort_call *c, radix_call *r)
{
    const hal_device_info *info = context->info;
    uint32_t most_bits = MOST_DIGIT_BITS;
    r->sort = c;
    r->items = MOST_ITEMS;
    while (r->items > info->max_group_items || r->items > info->max_group_size[0]) {
        r->items /= 2;
        most_bits--;
    }
    r->elements = MOST_ELEMENTS;
    while (r->elements > 2 && shared_bytes(&c->key, r->items, r->elements) > info->shared_bytes) {
        r->elements /= 2;
    }
    if (r->items < 64 || shared_bytes(&c->key, r->items, r->elements) > info->shared_bytes) {
        return false;
    }
    r->passes = (c->key.bits + most_bits - 1) / most_bits;
    r->digit_bits = (c->key.bits + r->passes - 1) / r->passes;
    const int64_t tile = (int64_t)r->items * r->elements;
    r->tiles = (c->length + tile - 1) / tile;
    return r->tiles <= INT32_MAX >> r->digit_bits;
}

/* Describes the kernel that counts, or that moves, of pass `k`. */
static void pass_begin(const ops_context *context, const radix_call *r, uint32_t k, bool moves,
                       radix_pass *p)
{
    const ops_sort_call *first = r->sort;
    const int64_t count = first->lines * first->length;
    const uint32_t to = (r->passes - 1 - k) & 1, last = k + 1 == r->passes;
    ops_tensor flat = ops_sort_flat(first->keys[to ^ 1], first->key.type, count);
    ops_sort_call later = *first;
    memset(p, 0, sizeof *p);
    p->form = (radix_form){.key = first->key,
                           .items = r->items,
                           .elements = r->elements,
                           .digit_bits = r->digit_bits,
                           .is_bounded = k == 0 && first->bound > 0,
                           .moves = moves,
                           .has_numbers = moves && k > 0,
                           .writes_keys = moves && (!last || first->writes_keys)};
    if (k > 0) { /* keys as they were written */
        flat.rank = 2;
        flat.shape[0] = first->lines;
        flat.shape[1] = flat.stride[0] = first->length;
        flat.stride[1] = 1;
        later.x = &flat;
        later.axis = 1;
        later.places = ops_axis_last(&flat, 1, HAL_TYPE_I32);
        p->form.key = (ops_sort_key){.type = first->key.type,
                                     .bits = (uint8_t)(8 * hal_type_size(first->key.type))};
    }
    ops_tensor further[4] = {r->counts, ops_sort_flat(first->numbers[to], HAL_TYPE_U32, count)};
    uint32_t bound = moves ? 2 : 1;
    if (p->form.writes_keys) {
        further[bound++] = ops_sort_flat(first->keys[to], first->key.type, count);
    }
    p->numbers_from = (uint8_t)(1 + bound);
    if (p->form.has_numbers) {
        further[bound++] = ops_sort_flat(first->numbers[to ^ 1], HAL_TYPE_U32, count);
    }
    ops_sort_lines_init(context, &later, further, bound, 4 * sizeof(uint32_t), &p->lines);
}

static hal_status pass_find(ops_context *context, const radix_pass *p, ops_entry **entry)
{
    const char *name = p->form.moves ? "sort_radix_move" : "sort_radix_count";
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_SORT_RADIX);
    ops_cache_key_append(&key, &p->form, sizeof p->form);
    ops_sort_lines_key(&p->lines, &key);
    return ops_cache_get(context, &key, name, emit_radix, p, entry);
}

static hal_status record_kernel(ops_context *context, const radix_call *r, uint32_t k, bool moves)
{
    const ops_sort_call *first = r->sort;
    radix_pass p;
    pass_begin(context, r, k, moves, &p);
    uint32_t grid[3];
    HAL_TRY(ops_grid_spread(context, "ops_sort", (uint64_t)(first->lines * r->tiles), grid));
    ops_entry *entry;
    HAL_TRY(pass_find(context, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_sort_lines_put(&p.lines, &block);
    ops_put_u32(&block, (uint32_t)first->length);
    ops_put_u32(&block, (uint32_t)r->tiles);
    ops_put_u32(&block, k * r->digit_bits);
    ops_put_u32(&block, (uint32_t)first->bound);
    return ops_dispatch(context, entry, grid, &p.lines.bindings, &block);
}

bool ops_sort_is_by_radix(const ops_context *context, const ops_sort_call *c, uint32_t merges)
{
    radix_call r;
    return !context->tuning->sort.by_digits && radix_choose(context, c, &r) &&
           merges > r.passes + 1;
}

hal_status ops_sort_by_radix(ops_context *context, const ops_sort_call *c)
{
    radix_call r = {0};
    if (!radix_choose(context, c, &r)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED, "ops_sort: the device has no room for a tile");
    }
    const int64_t shape[2] = {c->lines, r.tiles << r.digit_bits};
    r.counts = (ops_tensor){
        .type = HAL_TYPE_U32, .rank = 2, .shape = {shape[0], shape[1]}, .stride = {shape[1], 1}};
    HAL_TRY(ops_buffer_create(context, (uint64_t)(shape[0] * shape[1]) * 4, &r.counts.buffer));
    hal_status status = HAL_OK;
    for (uint32_t k = 0; k < r.passes && status == HAL_OK; k++) {
        status = record_kernel(context, &r, k, false);
        if (status == HAL_OK) {
            status = ops_scan(context, OPS_SCAN_SUM, 1, &r.counts, &r.counts);
        }
        if (status == HAL_OK) {
            status = record_kernel(context, &r, k, true);
        }
    }
    hal_buffer_release(r.counts.buffer);
    return status;
}
