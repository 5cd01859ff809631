/* The general portable GEMM kernel without staging: that of every block, layout, number of slices,
 * steps and parts of intra-group split-K (emit_intra_group.c), which are scalars, with the same
 * order of additions, and of products with few steps of k (emit_direct.c), which have one slice. A
 * work-item has neighbouring rows and columns, whose elements it reads one by one.
 *
 * The group is `slices` times the work-items of a block, which are numbered row by row. The partial
 * sum of an element is at row * pitch + item * COLUMNS + column of shared memory, with the row and
 * column within the work-item's. */
#include "emitter.h"

enum { COLUMNS = OPS_GEMM_ANY_COLUMNS };

typedef struct slices_emitter {
    ops_gemm_emitter *e;
    uint32_t items, pitch; /* of the group; of a row of the block in shared memory */
    hal_ir_memory_id shared;
    hal_ir_value id, slice; /* of the work-item */
    hal_ir_value column[COLUMNS], row[OPS_GEMM_MAX_FRAGMENT];
    hal_ir_value in_columns[COLUMNS];
} slices_emitter;

/* Quotient and remainder of a division by a scalar. */
static hal_ir_value split(ops_gemm_emitter *e, hal_ir_value x, hal_ir_value by, hal_ir_value *rest)
{
    hal_ir_value quotient = hal_ir_div(e->b, x, by);
    *rest = hal_ir_sub(e->b, x, hal_ir_mul(e->b, quotient, by));
    return quotient;
}

/* Rows beyond the last read the last one, and their results are not stored. */
static void place_work_item(slices_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    s->id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value lane_row, lane_column, item;
    hal_ir_value place = ops_gemm_times(e, s->id, COLUMNS);
    s->slice = split(e, place, e->any.width, &item);
    lane_row = split(e, item, e->any.block_n, &lane_column);
    lane_row = ops_gemm_times(e, lane_row, e->a.thread);
    lane_row = hal_ir_add(b, e->a.origin, lane_row);
    for (uint32_t j = 0; j < COLUMNS; j++) {
        s->column[j] = hal_ir_add(b, e->c.origin, ops_gemm_plus(e, lane_column, j));
        s->in_columns[j] = hal_ir_lt(b, s->column[j], e->n);
    }
    for (uint32_t i = 0; i < e->a.thread; i++) {
        hal_ir_value last = hal_ir_sub(b, e->m, hal_ir_u32(b, 1));
        s->row[i] = hal_ir_min(b, ops_gemm_plus(e, lane_row, i), last);
    }
}

static void multiply_step(slices_emitter *s, hal_ir_value at)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    hal_ir_value columns[COLUMNS], inside = hal_ir_lt(b, at, e->k);
    ops_gemm_get_sums(e);
    for (uint32_t j = 0; j < COLUMNS; j++) {
        hal_ir_value place = ops_gemm_address(e, &e->c, s->column[j], at);
        if (e->key->reduce_partials) {
            place = hal_ir_add(b, place, ops_gemm_near(e, &e->a, s->row[0]));
        }
        columns[j] =
            hal_ir_load_wide(b, e->c.memory, place, 0, 1, hal_ir_and(b, s->in_columns[j], inside));
    }
    for (uint32_t i = 0; i < e->a.thread; i++) {
        hal_ir_value value = HAL_IR_NONE;
        if (!e->key->reduce_partials) {
            value = hal_ir_load_wide(b, e->a.memory, ops_gemm_address(e, &e->a, s->row[i], at), 0,
                                     1, inside);
        }
        for (uint32_t j = 0; j < COLUMNS; j++) {
            if (e->key->reduce_partials) {
                e->present[j] = hal_ir_add(b, e->present[j], columns[j]);
            } else {
                ops_gemm_multiply(e, i, j, value, columns[j]);
            }
        }
    }
    ops_gemm_set_sums(e);
}

static void emit_k_loop(slices_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    hal_ir_value zero = hal_ir_u32(b, 0);
    hal_ir_value turn = hal_ir_for(b, zero, e->any.end, e->any.stride);
    hal_ir_value own = hal_ir_add(b, turn, hal_ir_mul(b, s->slice, e->any.steps));
    hal_ir_value step = hal_ir_for(b, zero, e->any.steps, hal_ir_u32(b, 1));
    multiply_step(s, hal_ir_add(b, own, step));
    hal_ir_end(b);
    hal_ir_end(b);
    ops_gemm_get_sums(e);
    for (uint32_t i = 0; i < e->a.thread; i++) {
        hal_ir_value place = ops_gemm_plus(e, ops_gemm_times(e, s->id, COLUMNS), i * s->pitch);
        hal_ir_store_wide(b, s->shared, place, 0, HAL_IR_NONE,
                          hal_ir_pack(b, COLUMNS, &e->present[i * COLUMNS]));
    }
    hal_ir_barrier(b);
}

/* Adds 2^pairs elements of shared memory pairwise, in place. */
static void sum_pairs(slices_emitter *s, hal_ir_value place, hal_ir_value distance,
                      hal_ir_value pairs, hal_ir_value guard)
{
    hal_ir_builder *b = s->e->b;
    hal_ir_value one = hal_ir_u32(b, 1), zero = hal_ir_u32(b, 0);
    hal_ir_value level = hal_ir_for(b, zero, pairs, one);
    hal_ir_value left = hal_ir_sub(b, hal_ir_sub(b, pairs, level), one);
    hal_ir_value i = hal_ir_for(b, zero, hal_ir_shl(b, one, left), one);
    hal_ir_value to = hal_ir_add(b, place, hal_ir_mul(b, i, distance));
    hal_ir_value from = hal_ir_add(b, to, hal_ir_mul(b, i, distance));
    hal_ir_value x = hal_ir_load_wide(b, s->shared, from, 0, 1, guard);
    hal_ir_value y = hal_ir_load_wide(b, s->shared, hal_ir_add(b, from, distance), 0, 1, guard);
    hal_ir_store_wide(b, s->shared, to, 0, guard, hal_ir_add(b, x, y));
    hal_ir_end(b);
    hal_ir_end(b);
}

/* Part p of an element adds slices p, p + parts, ... and overwrites slice p. */
static void reduce_to_parts(slices_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    hal_ir_value in_row = hal_ir_mul(b, e->any.parts, e->any.width), rest;
    hal_ir_value all = ops_gemm_times(e, in_row, e->a.thread);
    hal_ir_value at = hal_ir_for(b, hal_ir_u32(b, 0), all, hal_ir_u32(b, s->items));
    hal_ir_value number = hal_ir_add(b, at, s->id), row = split(e, number, in_row, &rest);
    hal_ir_value place = hal_ir_add(b, ops_gemm_times(e, row, s->pitch), rest);
    sum_pairs(s, place, in_row, e->any.first_pairs, hal_ir_lt(b, number, all));
    hal_ir_end(b);
    hal_ir_barrier(b);
}

static void store_results(slices_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    hal_ir_value all = ops_gemm_times(e, e->any.width, e->a.thread), rest, in_lane;
    hal_ir_value at = hal_ir_for(b, hal_ir_u32(b, 0), all, hal_ir_u32(b, s->items));
    hal_ir_value number = hal_ir_add(b, at, s->id);
    hal_ir_value row = split(e, number, e->any.width, &rest);
    hal_ir_value place = hal_ir_add(b, ops_gemm_times(e, row, s->pitch), rest);
    hal_ir_value is_element = hal_ir_lt(b, number, all);
    hal_ir_value lane = split(e, rest, e->any.block_n, &in_lane);
    row = hal_ir_add(b, row, ops_gemm_times(e, lane, e->a.thread));
    row = hal_ir_add(b, e->a.origin, row);
    hal_ir_value column = hal_ir_add(b, e->c.origin, in_lane);
    hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), hal_ir_lt(b, column, e->n));
    guard = hal_ir_and(b, guard, is_element);
    sum_pairs(s, place, e->any.width, e->any.last_pairs, is_element);
    ops_gemm_element element;
    ops_gemm_fetch_element(e, row, column, guard, &element);
    ops_gemm_store_element(e, &element, hal_ir_load_wide(b, s->shared, place, 0, 1, is_element));
    hal_ir_end(b);
}

void ops_gemm_emit_any_slices(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    slices_emitter s = {.e = e, .items = e->tiles->lanes_n};
    s.pitch = s.items * COLUMNS;
    hal_ir_group_size(b, s.items, 1, 1);
    s.shared = hal_ir_shared(b, "partials", e->key->accumulator, s.pitch * e->a.thread);
    place_work_item(&s);
    for (uint32_t i = 0; i < e->a.thread * COLUMNS; i++) {
        e->sums[i] = hal_ir_var(b, hal_ir_number(b, e->key->accumulator, 0));
    }
    emit_k_loop(&s);
    reduce_to_parts(&s);
    store_results(&s);
}
