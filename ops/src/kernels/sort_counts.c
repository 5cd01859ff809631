/* Sorting short lines on processors: the place of an element is the number of elements before it,
 * which all lanes of a line count together. */
#include "sort_lines.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <string.h>

enum { NUMBERS = 1, GROUP_ITEMS = 256, LEAST_ROW = 16 };

OPS_KEY_STRUCTURES_BEGIN
typedef struct count_form {
    ops_sort_key key;
    uint32_t row, lines; /* work-items of a line, and lines of a group */
} count_form;
OPS_KEY_STRUCTURES_END

typedef struct count_pass {
    count_form form;
    ops_sort_lines lines;
} count_pass;

static void emit_counts(hal_ir_builder *b, const void *user)
{
    const count_pass *p = user;
    const count_form *form = &p->form;
    ops_sort_line_values values;
    ops_declare_bindings(b, &p->lines.bindings);
    const hal_ir_memory_id keys = hal_ir_shared(b, "keys", form->key.type, form->row * form->lines);
    ops_sort_lines_declare(b, &p->lines, &values);
    const hal_type type = values.values.type;
    const hal_ir_value length = hal_ir_scalar_value(b, "length", HAL_TYPE_U32);
    hal_ir_group_size(b, form->row, form->lines, 1);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value row = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    hal_ir_value line = hal_ir_mul(b, ops_value_cast(b, type, ops_index_group(b)),
                                   ops_index_constant(b, type, form->lines));
    line = hal_ir_add(b, line, ops_value_cast(b, type, row));
    const hal_ir_value inside =
        hal_ir_and(b, hal_ir_lt(b, line, values.values.total), hal_ir_lt(b, item, length));
    const hal_ir_value first = ops_sort_lines_first(b, &p->lines, &values, line);
    const hal_ir_value index = ops_sort_lines_place(b, &p->lines, &values, first, item);
    const hal_ir_value key = ops_sort_key_load(b, &form->key, p->lines.x, index, inside);
    const hal_ir_value start = hal_ir_mul(b, row, hal_ir_u32(b, form->row));
    hal_ir_store(b, keys, hal_ir_add(b, start, item), key);
    hal_ir_barrier(b);
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value place = hal_ir_var(b, zero);
    const hal_ir_value i = hal_ir_for(b, zero, length, one);
    const hal_ir_value other = hal_ir_load(b, keys, hal_ir_add(b, start, i));
    const hal_ir_value is_equal_before =
        hal_ir_and(b, hal_ir_eq(b, other, key), hal_ir_lt(b, i, item));
    const hal_ir_value is_before = hal_ir_or(b, hal_ir_lt(b, other, key), is_equal_before);
    const hal_ir_value before = hal_ir_get(b, place);
    hal_ir_set(b, place, hal_ir_select(b, is_before, hal_ir_add(b, before, one), before));
    hal_ir_end(b);
    hal_ir_value target = hal_ir_mul(b, line, ops_value_cast(b, type, length));
    target = hal_ir_add(b, target, ops_value_cast(b, type, hal_ir_get(b, place)));
    hal_ir_store_wide(b, NUMBERS, target, 0, inside, item);
}

int64_t ops_sort_most_counted(const ops_context *context)
{
    return context->tuning->sort.most_counted;
}

hal_status ops_sort_by_counts(ops_context *context, const ops_sort_call *c)
{
    count_pass p;
    memset(&p, 0, sizeof p);
    p.form.key = c->key;
    p.form.row = LEAST_ROW; /* a power of two: few kernels serve all lengths */
    while (p.form.row < c->length) {
        p.form.row *= 2;
    }
    p.form.lines = GROUP_ITEMS / p.form.row;
    const ops_tensor numbers = ops_sort_flat(c->numbers[0], HAL_TYPE_U32, c->lines * c->length);
    ops_sort_lines_init(context, c, &numbers, 1, sizeof(uint32_t), &p.lines);
    uint32_t grid[3];
    const uint64_t groups = ops_ceil_divide((uint64_t)c->lines, p.form.lines);
    HAL_TRY(ops_grid_spread(context, "ops_sort", groups, grid));
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_SORT_COUNTS);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_sort_lines_key(&p.lines, &key);
    ops_entry *entry;
    HAL_TRY(ops_cache_get(context, &key, "sort_counts", emit_counts, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_sort_lines_put(&p.lines, &block);
    ops_put_u32(&block, (uint32_t)c->length);
    return ops_dispatch(context, entry, grid, &p.lines.bindings, &block);
}
