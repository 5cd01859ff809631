/* Rows in groups, each of which has a B, in the portable kernels of products. Group i has the rows
 * from offset i on up to offset i + 1, which are in the device's memory: the grid cannot depend on
 * them. It has rows / block + groups tiles of rows, of which tile offset / block + i is the first
 * of group i: the first tiles ascend and leave room for all of a group, since
 * floor((o + m) / block) + 1 >= floor(o / block) + ceil(m / block). A work-group finds its group by
 * bisection, and has no steps of k where its tile is beyond the group's rows. */
#include "emitter.h"

typedef struct groups_emitter {
    ops_gemm_emitter *e;
    hal_ir_value count, block;
    hal_ir_value base, stride; /* of the offsets */
} groups_emitter;

/* Offset number `number`, at most the rows: no tile leaves the matrices, whatever is in memory. */
static hal_ir_value offset_load(groups_emitter *g, hal_ir_value number)
{
    hal_ir_builder *b = g->e->b;
    hal_ir_value way = hal_ir_mul(b, ops_gemm_index(g->e, number), g->stride);
    hal_ir_value offset = hal_ir_load(b, g->e->key->offset_slot, hal_ir_add(b, g->base, way));
    return hal_ir_min(b, ops_value_cast(b, HAL_TYPE_U32, offset), g->e->m);
}

static hal_ir_value first_tile(groups_emitter *g, hal_ir_value number, hal_ir_value offset)
{
    hal_ir_builder *b = g->e->b;
    return hal_ir_add(b, hal_ir_div(b, offset, g->block), number);
}

/* The last group whose first tile is `tile` or before it; 0 if there is none. */
static hal_ir_value group_search(groups_emitter *g, hal_ir_value tile, hal_ir_value steps)
{
    hal_ir_builder *b = g->e->b;
    hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    hal_ir_value low = hal_ir_var(b, zero), high = hal_ir_var(b, g->count);
    hal_ir_for(b, zero, steps, one);
    hal_ir_value from = hal_ir_get(b, low), to = hal_ir_get(b, high);
    hal_ir_value middle = hal_ir_shr(b, hal_ir_add(b, from, to), one);
    hal_ir_value first = first_tile(g, middle, offset_load(g, middle));
    hal_ir_value is_later = hal_ir_le(b, first, tile);
    hal_ir_set(b, low, hal_ir_select(b, is_later, middle, from));
    hal_ir_set(b, high, hal_ir_select(b, is_later, to, middle));
    hal_ir_end(b);
    return hal_ir_get(b, low);
}

void ops_gemm_find_group(ops_gemm_emitter *e, hal_ir_value tile)
{
    hal_ir_builder *b = e->b;
    groups_emitter g = {.e = e};
    g.count = hal_ir_scalar_value(b, "groups", HAL_TYPE_U32);
    hal_ir_value steps = hal_ir_scalar_value(b, "group_steps", HAL_TYPE_U32);
    g.block = hal_ir_scalar_value(b, "group_block", HAL_TYPE_U32);
    g.base = hal_ir_scalar_value(b, "offset_base", e->type);
    g.stride = hal_ir_scalar_value(b, "offset_stride", e->type);
    hal_ir_value group = group_search(&g, tile, steps);
    hal_ir_value begin = offset_load(&g, group);
    hal_ir_value end = offset_load(&g, ops_gemm_plus(e, group, 1));
    hal_ir_value first = first_tile(&g, group, begin);
    hal_ir_value row = hal_ir_mul(b, hal_ir_sub(b, tile, first), g.block);
    row = hal_ir_add(b, begin, row);
    hal_ir_value has_rows = hal_ir_and(b, hal_ir_le(b, first, tile), hal_ir_lt(b, row, end));
    /* Without rows: a tile after the last row, so that reads of existing rows stay allowed. */
    e->a.origin = hal_ir_select(b, has_rows, row, e->m);
    e->k = hal_ir_select(b, has_rows, e->k, hal_ir_u32(b, 0));
    e->m = hal_ir_select(b, has_rows, end, e->m);
    e->batch = group;
}
