/* Sorting on processors by digits of 8 bits, from the lowest one: a group sorts a block, of which
 * each work-item has a part. Each counts the digits of its part; a digit's elements of earlier
 * work-items come first, so the order is stable.
 *
 * Source: D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2.5 (radix exchange from the
 * lowest digit); M. Zagha, G. E. Blelloch, "Radix sort for vector multiprocessors", 1991. */
#include "sort_lines.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Bindings after x. */
enum { NUMBERS = 1, KEYS = 3, BOUND = 4 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct digit_form {
    ops_sort_key key;
    uint32_t items;       /* of a group: a divisor of DIGITS */
    uint32_t writes_keys; /* a merge follows */
} digit_form;
OPS_KEY_STRUCTURES_END

typedef struct digit_pass {
    digit_form form;
    ops_sort_lines lines;
} digit_pass;

/* A group's block. Lengths and places are U32. */
typedef struct digit_block {
    const digit_pass *pass;
    ops_sort_line_values values;
    hal_type type;                   /* of indices */
    hal_ir_value x;                  /* index of the line's first element in x */
    hal_ir_value first;              /* index of the block's first element in the buffers */
    hal_ir_value start;              /* place of the block on the line */
    hal_ir_value count;              /* elements of the block */
    hal_ir_value part;               /* elements of a work-item */
    hal_ir_value item, from;         /* the work-item, and its first element */
    hal_ir_memory_id counts, totals; /* of digits: for each work-item, and for all */
} digit_block;

static uint32_t pass_count(const ops_sort_key *key)
{
    return (key->bits + DIGIT_BITS - 1u) / DIGIT_BITS;
}

/* The buffer that pass `k` writes: the last one writes the first buffer. */
static uint32_t buffer_of(const digit_block *d, uint32_t k)
{
    return (pass_count(&d->pass->form.key) - 1 - k) & 1;
}

static void emit_begin(hal_ir_builder *b, const digit_pass *p, digit_block *d)
{
    const digit_form *form = &p->form;
    d->pass = p;
    ops_declare_bindings(b, &p->lines.bindings);
    d->counts = hal_ir_shared(b, "counts", HAL_TYPE_U32, DIGITS * form->items);
    d->totals = hal_ir_shared(b, "totals", HAL_TYPE_U32, DIGITS);
    ops_sort_lines_declare(b, &p->lines, &d->values);
    const hal_type type = d->type = d->values.values.type;
    const hal_ir_value blocks = hal_ir_scalar_value(b, "blocks", HAL_TYPE_U32);
    const hal_ir_value length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    const hal_ir_value block = hal_ir_scalar_value(b, "block", HAL_TYPE_U32);
    hal_ir_group_size(b, form->items, 1, 1);
    const hal_ir_value group = ops_value_cast(b, type, ops_index_group(b));
    const hal_ir_value line = hal_ir_div(b, group, ops_value_cast(b, type, blocks));
    hal_ir_value number =
        hal_ir_sub(b, group, hal_ir_mul(b, line, ops_value_cast(b, type, blocks)));
    number = ops_value_cast(b, HAL_TYPE_U32, number);
    d->start = hal_ir_mul(b, number, block);
    d->count = hal_ir_min(b, block, hal_ir_sub(b, length, d->start));
    /* The grid may have more groups than there are blocks. */
    d->count =
        hal_ir_select(b, hal_ir_lt(b, line, d->values.values.total), d->count, hal_ir_u32(b, 0));
    d->x = ops_sort_lines_first(b, &p->lines, &d->values, line);
    d->first = hal_ir_mul(b, line, ops_value_cast(b, type, length));
    d->first = hal_ir_add(b, d->first, ops_value_cast(b, type, d->start));
    const hal_ir_value items = hal_ir_u32(b, form->items);
    d->part = hal_ir_div(b, hal_ir_add(b, d->count, hal_ir_u32(b, form->items - 1)), items);
    d->item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    d->from = hal_ir_mul(b, d->item, d->part);
}

/* The index of an element of the block in the buffers. */
static hal_ir_value buffer_index(hal_ir_builder *b, const digit_block *d, hal_ir_value place)
{
    return hal_ir_add(b, d->first, ops_value_cast(b, d->type, place));
}

/* The key of an element of the block before pass `k`. */
static hal_ir_value emit_load(hal_ir_builder *b, const digit_block *d, uint32_t k,
                              hal_ir_value place, hal_ir_value inside)
{
    const digit_pass *p = d->pass;
    if (k > 0) {
        return hal_ir_load_wide(b, KEYS + buffer_of(d, k - 1), buffer_index(b, d, place), 0, 1,
                                inside);
    }
    const hal_ir_value on_line = hal_ir_add(b, d->start, place);
    const hal_ir_value index = ops_sort_lines_place(b, &p->lines, &d->values, d->x, on_line);
    return ops_sort_key_load(b, &p->form.key, p->lines.x, index, inside);
}

/* The index of a key's digit of pass `k` among the counts. */
static hal_ir_value count_index(hal_ir_builder *b, const digit_block *d, uint32_t k,
                                hal_ir_value key)
{
    const hal_type type = d->pass->form.key.type;
    hal_ir_value digit = hal_ir_shr(b, key, ops_index_constant(b, type, k * DIGIT_BITS));
    digit = hal_ir_and(b, digit, ops_index_constant(b, type, DIGITS - 1));
    const hal_ir_value own = hal_ir_mul(b, d->item, hal_ir_u32(b, DIGITS));
    return hal_ir_add(b, own, ops_value_cast(b, HAL_TYPE_U32, digit));
}

static void emit_counts(hal_ir_builder *b, const digit_block *d, uint32_t k)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const uint32_t items = d->pass->form.items;
    hal_ir_value i = hal_ir_for(b, zero, hal_ir_u32(b, DIGITS * items), hal_ir_u32(b, items));
    hal_ir_store(b, d->counts, hal_ir_add(b, i, d->item), zero);
    hal_ir_end(b);
    hal_ir_barrier(b);
    const hal_ir_value next = hal_ir_var(b, d->from);
    hal_ir_for(b, zero, d->part, one);
    const hal_ir_value place = hal_ir_get(b, next);
    const hal_ir_value inside = hal_ir_lt(b, place, d->count);
    hal_ir_set(b, next, hal_ir_add(b, place, one));
    const hal_ir_value index = count_index(b, d, k, emit_load(b, d, k, place, inside));
    const hal_ir_value count = hal_ir_load_wide(b, d->counts, index, 0, 1, inside);
    hal_ir_store_wide(b, d->counts, index, 0, inside, hal_ir_add(b, count, one));
    hal_ir_end(b);
    hal_ir_barrier(b);
}

/* Counts become the places of the first elements that they count. */
static void emit_places(hal_ir_builder *b, const digit_block *d)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value items = hal_ir_u32(b, d->pass->form.items);
    const hal_ir_value all = hal_ir_u32(b, DIGITS * d->pass->form.items);
    const hal_ir_value digits = hal_ir_u32(b, DIGITS);
    /* Of each digit, among its own: work-items have a digit each. */
    hal_ir_value strip = hal_ir_for(b, zero, digits, items);
    const hal_ir_value sum = hal_ir_var(b, zero);
    hal_ir_value digit = hal_ir_add(b, strip, d->item);
    hal_ir_value row = hal_ir_for(b, zero, all, digits);
    hal_ir_value index = hal_ir_add(b, row, digit);
    const hal_ir_value count = hal_ir_load(b, d->counts, index), before = hal_ir_get(b, sum);
    hal_ir_store(b, d->counts, index, before);
    hal_ir_set(b, sum, hal_ir_add(b, before, count));
    hal_ir_end(b);
    hal_ir_store(b, d->totals, digit, hal_ir_get(b, sum));
    hal_ir_end(b);
    hal_ir_barrier(b);
    /* Of the digits, by one work-item. */
    hal_ir_if(b, hal_ir_eq(b, d->item, zero));
    const hal_ir_value total = hal_ir_var(b, zero);
    hal_ir_value i = hal_ir_for(b, zero, digits, one);
    const hal_ir_value own = hal_ir_load(b, d->totals, i), so_far = hal_ir_get(b, total);
    hal_ir_store(b, d->totals, i, so_far);
    hal_ir_set(b, total, hal_ir_add(b, so_far, own));
    hal_ir_end(b);
    hal_ir_end(b);
    hal_ir_barrier(b);
    strip = hal_ir_for(b, zero, digits, items);
    digit = hal_ir_add(b, strip, d->item);
    const hal_ir_value base = hal_ir_load(b, d->totals, digit);
    row = hal_ir_for(b, zero, all, digits);
    index = hal_ir_add(b, row, digit);
    hal_ir_store(b, d->counts, index, hal_ir_add(b, hal_ir_load(b, d->counts, index), base));
    hal_ir_end(b);
    hal_ir_end(b);
    hal_ir_barrier(b);
}

static void emit_moves(hal_ir_builder *b, const digit_block *d, uint32_t k)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const bool is_last = k + 1 == pass_count(&d->pass->form.key);
    const uint32_t to = buffer_of(d, k);
    const hal_ir_value next = hal_ir_var(b, d->from);
    hal_ir_for(b, zero, d->part, one);
    const hal_ir_value place = hal_ir_get(b, next);
    const hal_ir_value inside = hal_ir_lt(b, place, d->count);
    hal_ir_set(b, next, hal_ir_add(b, place, one));
    const hal_ir_value key = emit_load(b, d, k, place, inside);
    const hal_ir_value number = k == 0 ? hal_ir_add(b, d->start, place)
                                       : hal_ir_load_wide(b, NUMBERS + buffer_of(d, k - 1),
                                                          buffer_index(b, d, place), 0, 1, inside);
    const hal_ir_value index = count_index(b, d, k, key);
    const hal_ir_value target = hal_ir_load_wide(b, d->counts, index, 0, 1, inside);
    hal_ir_store_wide(b, d->counts, index, 0, inside, hal_ir_add(b, target, one));
    const hal_ir_value moved = buffer_index(b, d, target);
    hal_ir_store_wide(b, NUMBERS + to, moved, 0, inside, number);
    if (!is_last || d->pass->form.writes_keys) {
        hal_ir_store_wide(b, KEYS + to, moved, 0, inside, key);
    }
    hal_ir_end(b);
    hal_ir_barrier(b);
}

static void emit_digits(hal_ir_builder *b, const void *user)
{
    const digit_pass *p = user;
    digit_block d;
    emit_begin(b, p, &d);
    for (uint32_t k = 0; k < pass_count(&p->form.key); k++) {
        emit_counts(b, &d, k);
        emit_places(b, &d);
        emit_moves(b, &d, k);
    }
}

int64_t ops_sort_digit_block(const ops_context *context, const ops_sort_call *c)
{
    const int64_t least = context->tuning->sort.min_block, units = context->info->compute_units;
    const int64_t wanted = (units + c->lines - 1) / c->lines; /* blocks of a line */
    int64_t parts = 1;
    while (parts < wanted && c->length / (2 * parts) >= least) {
        parts *= 2;
    }
    return ((c->length + parts - 1) / parts + 7) / 8 * 8; /* merges take steps of 8 */
}

static void pass_begin(const ops_context *context, const ops_sort_call *c, digit_pass *p)
{
    const int64_t count = c->lines * c->length;
    const ops_tensor further[BOUND] = {ops_sort_flat(c->numbers[0], HAL_TYPE_U32, count),
                                       ops_sort_flat(c->numbers[1], HAL_TYPE_U32, count),
                                       ops_sort_flat(c->keys[0], c->key.type, count),
                                       ops_sort_flat(c->keys[1], c->key.type, count)};
    ops_sort_lines_init(context, c, further, BOUND, 3 * sizeof(uint32_t), &p->lines);
}

static hal_status pass_find(ops_context *context, const digit_pass *p, ops_entry **entry)
{
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_SORT_DIGITS);
    ops_cache_key_append(&key, &p->form, sizeof p->form);
    ops_sort_lines_key(&p->lines, &key);
    return ops_cache_get(context, &key, "sort_digits", emit_digits, p, entry);
}

hal_status ops_sort_by_digits(ops_context *context, const ops_sort_call *c)
{
    const ops_sort_tuning *tuning = &context->tuning->sort;
    digit_pass p;
    memset(&p, 0, sizeof p);
    p.form.key = c->key;
    p.form.items = c->block < tuning->min_many_items ? tuning->few_items : tuning->many_items;
    while (p.form.items > 1 && 4u * DIGITS * (p.form.items + 1) > context->info->shared_bytes) {
        p.form.items /= 2; /* of the counts and the totals */
    }
    p.form.writes_keys = c->blocks > 1;
    pass_begin(context, c, &p);
    uint32_t grid[3];
    HAL_TRY(ops_grid_spread(context, "ops_sort", (uint64_t)(c->lines * c->blocks), grid));
    ops_entry *entry;
    HAL_TRY(pass_find(context, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_sort_lines_put(&p.lines, &block);
    ops_put_u32(&block, (uint32_t)c->blocks);
    ops_put_u32(&block, (uint32_t)c->length);
    ops_put_u32(&block, (uint32_t)c->block);
    return ops_dispatch(context, entry, grid, &p.lines.bindings, &block);
}
