/* The portable GEMM kernel with intra-group split-K, for products that are bound by the latency of
 * loads because they have few rows, columns or elements. Work-items read their lines of A and B
 * from global memory, each the steps of k of its slice, with many loads in flight and no barrier.
 * The partial sums of the slices are added in shared memory, in an order that depends on the tiles
 * alone. C and the epilogue's further inputs are loaded before the first multiplication.
 *
 * The same kernel reduces the partial sums of split-K (key.reduce_partials): they are read as
 * lines of B and added instead of multiplied. */
#include "emitter.h"
#include "tiles.h"

#define MAX_VALUES 192u /* elements of one operand that a work-item has in flight */
#define MAX_SHARED_SUMS 256u
#define MAX_RESULTS 32u /* of a work-item: the sums of the largest tiles of tiles.c */

/* An element of C that the work-item stores. */
typedef struct result {
    hal_ir_value number; /* in the block: local id + i * items */
    hal_ir_value row_in_block, column_in_block;
    ops_gemm_element element;
} result;

typedef struct split_emitter {
    ops_gemm_emitter *e;
    hal_ir_memory_id shared;
    uint32_t items;   /* of the group */
    uint32_t outputs; /* elements of the block */
    uint32_t parts;   /* partial sums of an element that its storing work-item adds */
    uint32_t pitch;   /* of a row of the block in shared memory */
    uint32_t stride;  /* steps of k that all slices take at once */
    hal_ir_value slice;
    hal_ir_value guard[OPS_GEMM_MAX_FRAGMENT]; /* of columns; none: no guard */
    result results[MAX_RESULTS];
    uint32_t result_count;
} split_emitter;

/* Elements from row to row in shared memory: rows of work-items write to different halves of the 32
 * banks. */
static uint32_t row_pitch(const ops_gemm_tiles *t)
{
    return (uint32_t)t->intra_group_split_k * t->block_n + (t->lanes_m > 1 ? 16u / t->strip_m : 0u);
}

uint32_t ops_gemm_intra_group_parts(const ops_gemm_tiles *t)
{
    const uint32_t count = t->intra_group_split_k;
    const uint32_t items = (uint32_t)t->lanes_m * t->lanes_n * count;
    const uint32_t outputs = (uint32_t)t->block_m * t->block_n;
    uint32_t parts = 1;
    while (2 * parts * outputs <= items && parts * parts < count) {
        parts *= 2;
    }
    return parts > 1 ? parts : count;
}

/* Finds the elements of C that the work-item stores, and loads what they need apart from the
 * sum. */
static void place_results(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    const hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    s->result_count = s->outputs < s->items ? 1 : s->outputs / s->items;
    for (uint32_t i = 0; i < s->result_count; i++) {
        result *r = &s->results[i];
        r->number = ops_gemm_plus(e, id, i * s->items);
        r->row_in_block = ops_gemm_quotient(e, r->number, e->tiles->block_n);
        r->column_in_block = ops_gemm_rest(e, r->number, e->tiles->block_n);
        hal_ir_value row = hal_ir_add(b, e->a.origin, r->row_in_block);
        hal_ir_value column = hal_ir_add(b, e->c.origin, r->column_in_block);
        hal_ir_value guard = HAL_IR_NONE;
        if (!e->key->whole) {
            hal_ir_value in_rows = hal_ir_lt(b, row, e->m);
            guard = hal_ir_and(b, in_rows, hal_ir_lt(b, column, e->n));
        }
        if (s->outputs < s->items) {
            guard =
                ops_guard_and(s->e->b, guard, hal_ir_lt(b, r->number, hal_ir_u32(b, s->outputs)));
        }
        ops_gemm_fetch_element(e, row, column, guard, &r->element);
    }
}

/* Computes where the work-item's lines begin. Rows beyond the last read the last one, and their
 * results are not stored. Columns are guarded. */
static void place_side(split_emitter *s, ops_gemm_side *side, int clamped)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    uint32_t group = side->operand->k_contiguous ? 1 : side->operand->width;
    for (uint32_t i = 0; i < side->thread; i += group) {
        hal_ir_value line = ops_gemm_own_line(e, side, i);
        if (clamped) {
            line = hal_ir_min(b, line, hal_ir_sub(b, side->limit, hal_ir_u32(b, group)));
        }
        side->line[i] = ops_gemm_address(e, side, line, hal_ir_u32(b, 0));
    }
}

/* Adds the offset of the work-item's row, of which it has one, to its lines of partial sums. */
static void place_partials(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    hal_ir_value row = ops_gemm_own_line(e, &e->a, 0);
    if (!e->key->whole) {
        row = hal_ir_min(b, row, hal_ir_sub(b, e->m, hal_ir_u32(b, 1)));
    }
    hal_ir_value way = hal_ir_mul(b, ops_gemm_index(e, row), e->a.stride);
    for (uint32_t i = 0; i < e->c.thread; i += e->c.operand->width) {
        e->c.line[i] = hal_ir_add(b, e->c.line[i], way);
    }
}

static void place_lines(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    place_side(s, &e->c, 0);
    if (e->key->reduce_partials) {
        place_partials(s);
    } else {
        place_side(s, &e->a, !e->key->whole);
    }
    for (uint32_t j = 0; j < e->c.thread; j++) {
        hal_ir_value column = ops_gemm_own_line(e, &e->c, j);
        s->guard[j] = e->key->whole ? HAL_IR_NONE : hal_ir_lt(e->b, column, e->n);
    }
}

/* values[line * block_k + step] of the work-item's lines, over the steps from k + ahead on. */
static void read_side(split_emitter *s, const ops_gemm_side *side, hal_ir_value k, uint32_t ahead,
                      const hal_ir_value *line_guard, hal_ir_value *values)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    const uint32_t depth = e->tiles->block_k, width = side->operand->width;
    const int along = side->operand->k_contiguous;
    const uint32_t lines = along ? 1 : width, steps = along ? width : 1;
    for (uint32_t step = 0; step < depth; step += steps) {
        hal_ir_value at = ops_gemm_plus(e, k, ahead + step);
        hal_ir_value inside = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, at, e->k);
        hal_ir_value way = ops_gemm_index(e, along ? k : at);
        way = along ? way : hal_ir_mul(b, way, side->stride);
        for (uint32_t line = 0; line < side->thread; line += lines) {
            hal_ir_value guard =
                line_guard ? ops_guard_and(s->e->b, line_guard[line], inside) : inside;
            hal_ir_value place = hal_ir_add(b, side->line[line], way);
            hal_ir_value vector = hal_ir_load_wide(
                b, side->memory, place, along ? (int32_t)(ahead + step) : 0, width, guard);
            for (uint32_t i = 0; i < width; i++) {
                values[along ? line * depth + step + i : (line + i) * depth + step] =
                    width == 1 ? vector : hal_ir_extract(b, vector, i);
            }
        }
    }
}

/* Column by column in alternating directions, so that successive operations share operands. */
static void multiply_step(split_emitter *s, const hal_ir_value *rows, const hal_ir_value *columns,
                          uint32_t step)
{
    ops_gemm_emitter *e = s->e;
    const uint32_t depth = e->tiles->block_k;
    for (uint32_t j = 0; j < e->c.thread; j++) {
        for (uint32_t i = 0; i < e->a.thread; i++) {
            uint32_t row = j & 1 ? e->a.thread - 1 - i : i;
            ops_gemm_multiply(e, row, j, rows[row * depth + step], columns[j * depth + step]);
        }
    }
}

/* Adds one partial sum of each element. */
static void add_step(split_emitter *s, const hal_ir_value *columns)
{
    ops_gemm_emitter *e = s->e;
    for (uint32_t j = 0; j < e->c.thread; j++) {
        e->present[j] = hal_ir_add(e->b, e->present[j], columns[j]);
    }
}

/* The loop over k. All loads of a turn precede its first multiplication. */
static void emit_k_loop(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    hal_ir_value rows[MAX_VALUES], columns[MAX_VALUES];
    uint32_t row_values = e->a.thread * t->block_k, column_values = e->c.thread * t->block_k;
    hal_ir_value own = ops_gemm_times(e, s->slice, t->block_k);
    hal_ir_value turn = hal_ir_for(b, hal_ir_u32(b, 0), e->k, hal_ir_u32(b, s->stride * t->unroll));
    hal_ir_value k = hal_ir_add(b, turn, own);
    for (uint32_t u = 0; u < t->unroll; u++) {
        read_side(s, &e->c, k, u * s->stride, s->guard, columns + u * column_values);
        if (!e->key->reduce_partials) {
            read_side(s, &e->a, k, u * s->stride, NULL, rows + u * row_values);
        }
    }
    ops_gemm_get_sums(e);
    for (uint32_t u = 0; u < t->unroll; u++) {
        for (uint32_t step = 0; step < t->block_k; step++) {
            if (e->key->reduce_partials) {
                add_step(s, columns + u * column_values);
            } else {
                multiply_step(s, rows + u * row_values, columns + u * column_values, step);
            }
        }
    }
    ops_gemm_set_sums(e);
    hal_ir_end(b);
    ops_gemm_get_sums(e);
}

/* Stores the sums of the slice: element (row, slice, column) is at row * pitch + slice * block_n +
 * column of shared memory. */
static void store_partials(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    const uint32_t strip = e->c.strip;
    hal_ir_value place = ops_gemm_times(e, e->a.first, s->pitch);
    place = hal_ir_add(b, place, ops_gemm_times(e, s->slice, e->tiles->block_n));
    place = hal_ir_add(b, place, e->c.first);
    for (uint32_t i = 0; i < e->a.thread; i++) {
        const hal_ir_value *sums = &e->present[i * e->c.thread];
        int32_t offset = (int32_t)(ops_gemm_line_offset(&e->a, i) * s->pitch);
        hal_ir_store_wide(b, s->shared, place, offset, HAL_IR_NONE,
                          strip == 1 ? sums[0] : hal_ir_pack(b, strip, sums));
    }
    hal_ir_barrier(b);
}

/* Adds `count` elements of shared memory pairwise. */
static hal_ir_value sum_shared(split_emitter *s, hal_ir_value place, uint32_t distance,
                               uint32_t count)
{
    hal_ir_builder *b = s->e->b;
    hal_ir_value sums[MAX_SHARED_SUMS];
    for (uint32_t i = 0; i < count; i++) {
        sums[i] = hal_ir_load_wide(b, s->shared, place, (int32_t)(i * distance), 1, HAL_IR_NONE);
    }
    for (; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            sums[i] = hal_ir_add(b, sums[2 * i], sums[2 * i + 1]);
        }
    }
    return sums[0];
}

/* The first round: part p of an element adds slices p, p + parts, ... and overwrites slice p, which
 * no other work-item reads. */
static void reduce_to_parts(split_emitter *s)
{
    ops_gemm_emitter *e = s->e;
    hal_ir_builder *b = e->b;
    const uint32_t columns = e->tiles->block_n;
    const hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const int some = s->parts * s->outputs < s->items;
    if (some) {
        hal_ir_if(b, hal_ir_lt(b, id, hal_ir_u32(b, s->parts * s->outputs)));
    }
    hal_ir_value in_row = ops_gemm_rest(e, id, s->parts * columns);
    hal_ir_value row = ops_gemm_quotient(e, id, s->parts * columns);
    hal_ir_value place = hal_ir_add(b, ops_gemm_times(e, row, s->pitch), in_row);
    hal_ir_value sum =
        sum_shared(s, place, s->parts * columns, e->tiles->intra_group_split_k / s->parts);
    hal_ir_store(b, s->shared, place, sum);
    if (some) {
        hal_ir_end(b);
    }
    hal_ir_barrier(b);
}

uint32_t ops_gemm_intra_group_elements(const ops_gemm_tiles *t)
{
    return t->block_m * row_pitch(t);
}

void ops_gemm_emit_intra_group(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    split_emitter s = {.e = e};
    s.items = (uint32_t)t->lanes_m * t->lanes_n * t->intra_group_split_k;
    s.outputs = (uint32_t)t->block_m * t->block_n;
    s.pitch = row_pitch(t);
    s.stride = (uint32_t)t->intra_group_split_k * t->block_k;
    s.slice = e->slice == HAL_IR_NONE ? hal_ir_u32(b, 0) : e->slice;
    s.parts = ops_gemm_intra_group_parts(t);
    s.shared = hal_ir_shared(b, "partials", e->key->accumulator, ops_gemm_intra_group_elements(t));
    place_results(&s);
    place_lines(&s);
    emit_k_loop(&s);
    store_partials(&s);
    if (s.parts < t->intra_group_split_k) {
        reduce_to_parts(&s);
    }
    if (s.outputs < s.items) {
        hal_ir_if(b, hal_ir_lt(b, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, s.outputs)));
    }
    for (uint32_t i = 0; i < s.result_count; i++) {
        result *r = &s.results[i];
        hal_ir_value place =
            hal_ir_add(b, ops_gemm_times(e, r->row_in_block, s.pitch), r->column_in_block);
        ops_gemm_store_element(e, &r->element, sum_shared(&s, place, t->block_n, s.parts));
    }
    if (s.outputs < s.items) {
        hal_ir_end(b);
    }
}
