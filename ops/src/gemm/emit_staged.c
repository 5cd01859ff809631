/* The portable GEMM kernel through shared memory: a ring of tiles of A and B that is filled ahead.
 * Both levels are double-buffered: the next tiles are copied to shared memory, asynchronously or
 * through registers, while the present one is multiplied; the lines of the next step are loaded
 * from shared memory while the present step is multiplied, also across tiles, so that one barrier
 * per tile is enough. */
#include "emitter.h"
#include "tiles.h"

#define MAX_ACCESSES 128u /* of a work-item for one tile */

/* One copy of a work-item. */
typedef struct access {
    hal_ir_value from;  /* element of the matrix for k = 0, or its distance from the first access */
    hal_ir_value step;  /* of the tile; UINT32_MAX: outside of the matrix; NONE: never outside */
    uint32_t to;        /* elements from the first access in shared memory */
    hal_ir_value place; /* of any layout: the element of the stage */
    hal_ir_value at;    /* the step of the tile; separable: `from` is the place of the line alone */
} access;

/* The copies and reads of A or B. */
typedef struct stream {
    ops_gemm_side *side;
    uint32_t pitch;          /* of a step of k in shared memory */
    uint32_t begin;          /* element of the stage where the tile begins */
    uint32_t run;            /* accesses that are contiguous in memory */
    uint32_t count;          /* accesses of a work-item */
    hal_ir_value line, step; /* of the tile, where the first access begins */
    hal_ir_value to;         /* element of the stage that the first access writes */
    hal_ir_value inside;     /* with more work-items than accesses: has an access; else NONE */
    access accesses[MAX_ACCESSES];
    hal_ir_value vectors[MAX_ACCESSES];              /* in registers, with 2 stages */
    hal_ir_value place, next[OPS_GEMM_MAX_FRAGMENT]; /* variables: next tile, its first lines */
    hal_ir_value lines[2][OPS_GEMM_MAX_FRAGMENT];    /* of the present and of the next step */
} stream;

typedef struct pipeline {
    ops_gemm_emitter *e;
    hal_ir_memory_id shared;
    uint32_t items;      /* of the group */
    uint32_t stage_size; /* elements */
    uint32_t depth;      /* steps of a tile that one slice multiplies */
    stream a, c;
} pipeline;

/* Elements from step to step of k in a tile of `block` lines. Copies along k write a column, whose
 * elements are padded into different banks. */
static uint32_t step_pitch(uint32_t block, int k_contiguous)
{
    return block + (k_contiguous ? 4u : 0u);
}

/* The distance of an access from the first one, which is the same for all work-items. Kernels that
 * stage through registers compute addresses from it to save a register per access. */
static hal_ir_value access_distance(ops_gemm_emitter *e, const ops_gemm_side *side, uint32_t lines,
                                    uint32_t steps)
{
    uint32_t far = side->operand->k_contiguous ? lines : steps;
    uint32_t near = side->operand->k_contiguous ? steps : lines;
    hal_ir_value way = hal_ir_mul(e->b, ops_gemm_index(e, hal_ir_u32(e->b, far)), side->stride);
    return hal_ir_add(e->b, way, ops_gemm_index(e, hal_ir_u32(e->b, near)));
}

/* Where an access begins for k = 0, or its distance from the first one. */
static hal_ir_value access_from(pipeline *p, const stream *s, const access *a, hal_ir_value line,
                                bool is_first)
{
    ops_gemm_emitter *e = p->e;
    if (!ops_gemm_is_separable(s->side)) {
        return !is_first && e->tiles->stages <= 2
                   ? access_distance(e, s->side, a->to % s->pitch, a->to / s->pitch)
                   : ops_gemm_address(e, s->side, line, a->at);
    }
    return !is_first && a->to % s->pitch == 0 ? s->accesses[0].from
                                              : ops_gemm_line_place(e, s->side, line);
}

/* Access number `ahead` of a work-item. All sizes are powers of two, so lines and steps of the
 * distance add to those of the first access. */
static access place_access(pipeline *p, const stream *s, uint32_t ahead)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const ops_gemm_side *side = s->side;
    uint32_t width = side->operand->width, fast = ahead % s->run * width, slow = ahead / s->run;
    uint32_t lines = side->operand->k_contiguous ? slow % side->block : fast;
    uint32_t steps =
        side->operand->k_contiguous ? fast + slow / side->block * s->run * width : slow;
    hal_ir_value line = hal_ir_add(b, side->origin, ops_gemm_plus(e, s->line, lines));
    hal_ir_value step = ops_gemm_plus(e, s->step, steps);
    access a = {.step = HAL_IR_NONE, .to = steps * s->pitch + lines, .at = step};
    a.from = access_from(p, s, &a, line, ahead == 0);
    if (!e->key->whole || s->inside != HAL_IR_NONE) {
        hal_ir_value guard = hal_ir_lt(b, line, side->limit);
        guard = s->inside == HAL_IR_NONE ? guard : hal_ir_and(b, guard, s->inside);
        a.step = hal_ir_select(b, guard, step, hal_ir_u32(b, UINT32_MAX));
    }
    return a;
}

/* Distributes the accesses of a tile over the work-items. Along k, neighbours take up to 8 steps of
 * a line, then the next line: whole sectors of global memory, and different banks of shared
 * memory. */
static void open_stream(pipeline *p, stream *s, ops_gemm_side *side, uint32_t begin)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    uint32_t width = side->operand->width, depth = e->tiles->block_k;
    uint32_t accesses = side->block * depth / width;
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    s->side = side;
    s->pitch = step_pitch(side->block, side->operand->k_contiguous);
    s->run = !side->operand->k_contiguous ? side->block / width
             : depth < 8                  ? depth / width
             : width < 8                  ? 8 / width
                                          : 1;
    s->count = (accesses + p->items - 1) / p->items;
    s->inside = accesses < p->items ? hal_ir_lt(b, id, hal_ir_u32(b, accesses)) : HAL_IR_NONE;
    hal_ir_value fast = ops_gemm_times(e, ops_gemm_rest(e, id, s->run), width);
    hal_ir_value slow = ops_gemm_quotient(e, id, s->run);
    if (side->operand->k_contiguous) {
        hal_ir_value runs = ops_gemm_quotient(e, slow, side->block);
        s->line = ops_gemm_rest(e, slow, side->block);
        s->step = hal_ir_add(b, fast, ops_gemm_times(e, runs, s->run * width));
    } else {
        s->line = fast;
        s->step = slow;
    }
    s->to = hal_ir_add(b, ops_gemm_times(e, s->step, s->pitch), s->line);
    s->to = ops_gemm_plus(e, s->to, begin);
    s->begin = begin;
    for (uint32_t i = 0; i < s->count; i++) {
        s->accesses[i] = place_access(p, s, i * p->items);
    }
}

/* The same for elements of any layout: neighbours are neighbours along k or along the lines. */
static void open_any_stream(pipeline *p, stream *s, ops_gemm_side *side, uint32_t begin)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t depth = e->tiles->block_k, accesses = side->block * depth;
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), outside = hal_ir_u32(b, UINT32_MAX);
    s->side = side;
    s->pitch = step_pitch(side->block, 1);
    s->count = (accesses + p->items - 1) / p->items;
    s->inside = accesses < p->items ? hal_ir_lt(b, id, hal_ir_u32(b, accesses)) : HAL_IR_NONE;
    s->begin = begin;
    for (uint32_t i = 0; i < s->count; i++) {
        hal_ir_value number = ops_gemm_plus(e, id, i * p->items);
        hal_ir_value in_block = hal_ir_select(b, side->along_k, ops_gemm_quotient(e, number, depth),
                                              ops_gemm_rest(e, number, side->block));
        hal_ir_value step = hal_ir_select(b, side->along_k, ops_gemm_rest(e, number, depth),
                                          ops_gemm_quotient(e, number, side->block));
        hal_ir_value line = hal_ir_add(b, side->origin, in_block);
        hal_ir_value guard = hal_ir_lt(b, line, side->limit);
        guard = s->inside == HAL_IR_NONE ? guard : hal_ir_and(b, guard, s->inside);
        hal_ir_value place = hal_ir_add(b, ops_gemm_times(e, step, s->pitch), in_block);
        hal_ir_value from = ops_gemm_is_separable(side) ? ops_gemm_line_place(e, side, line)
                                                        : ops_gemm_address(e, side, line, step);
        s->accesses[i] = (access){.from = from,
                                  .step = hal_ir_select(b, guard, step, outside),
                                  .place = ops_gemm_plus(e, place, begin),
                                  .at = step};
    }
}

static void open_side(pipeline *p, stream *s, ops_gemm_side *side, uint32_t begin)
{
    if (side->operand->any_layout) {
        open_any_stream(p, s, side, begin);
    } else {
        open_stream(p, s, side, begin);
    }
}

/* The element of a stage that an access writes `a->to` after. */
static hal_ir_value access_place(pipeline *p, const stream *s, const access *a, hal_ir_value stage)
{
    const hal_ir_value place = s->side->operand->any_layout ? a->place : s->to;
    return hal_ir_add(p->e->b, ops_gemm_times(p->e, stage, p->stage_size), place);
}

/* What a stream adds to the places of all accesses of the tile at step k. */
static hal_ir_value tile_distance(pipeline *p, const stream *s, hal_ir_value k)
{
    const ops_gemm_side *side = s->side;
    if (ops_gemm_is_separable(side)) {
        return HAL_IR_NONE;
    }
    hal_ir_value way = ops_gemm_index(p->e, k);
    return side->operand->k_contiguous ? way : hal_ir_mul(p->e->b, way, side->stride);
}

/* The place of a step of k, which an access shares with the one before where their steps are one.
 */
static hal_ir_value step_distance(pipeline *p, const stream *s, uint32_t number, hal_ir_value k,
                                  hal_ir_value before)
{
    const access *a = &s->accesses[number];
    const uint32_t steps = a->to / s->pitch;
    return number > 0 && !s->side->operand->any_layout &&
                   steps == s->accesses[number - 1].to / s->pitch
               ? before
               : ops_gemm_k_place(p->e, s->side, hal_ir_add(p->e->b, k, a->at));
}

static void begin_stream(pipeline *p, stream *s, hal_ir_value k, hal_ir_value stage)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const ops_gemm_side *side = s->side;
    hal_ir_value way = tile_distance(p, s, k);
    hal_ir_value some_k = hal_ir_lt(b, k, e->k);
    hal_ir_value left = hal_ir_select(b, some_k, hal_ir_sub(b, e->k, k), hal_ir_u32(b, 0));
    const bool any = side->operand->any_layout, copies = e->tiles->stages > 2;
    const bool separable = ops_gemm_is_separable(side);
    int some = copies && s->inside != HAL_IR_NONE;
    if (some) {
        hal_ir_if(b, s->inside); /* a copy whose guard fails writes zeros */
    }
    hal_ir_value first = HAL_IR_NONE, to = HAL_IR_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        const access *a = &s->accesses[i];
        way = separable ? step_distance(p, s, i, k, way) : way;
        const bool from_first = i > 0 && !copies && !any && !separable;
        hal_ir_value from = hal_ir_add(b, a->from, from_first ? first : way);
        first = i == 0 ? from : first;
        hal_ir_value guard = a->step == HAL_IR_NONE ? some_k : hal_ir_lt(b, a->step, left);
        if (copies) {
            to = i == 0 || any ? access_place(p, s, a, stage) : to;
            hal_ir_async_copy(b, p->shared, ops_gemm_plus(e, to, a->to), side->memory, from,
                              side->operand->width, guard);
        } else {
            s->vectors[i] = hal_ir_load_wide(b, side->memory, from, 0, side->operand->width, guard);
        }
    }
    if (some) {
        hal_ir_end(b);
    }
}

/* Starts copying the tiles of A and B at step k; elements outside of the matrices are zero. */
static void begin_tile(pipeline *p, hal_ir_value k, hal_ir_value stage)
{
    begin_stream(p, &p->a, k, stage);
    begin_stream(p, &p->c, k, stage);
    if (p->e->tiles->stages > 2) {
        hal_ir_async_commit(p->e->b);
    }
}

/* Stores the vectors in registers to a stage, step by step of k. */
static void put_stream(pipeline *p, stream *s, hal_ir_value stage)
{
    hal_ir_builder *b = p->e->b;
    uint32_t width = s->side->operand->width;
    hal_ir_value to = HAL_IR_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        const access *a = &s->accesses[i];
        uint32_t offset = a->to;
        to = i == 0 || s->side->operand->any_layout ? access_place(p, s, a, stage) : to;
        if (!s->side->operand->k_contiguous || width == 1) {
            hal_ir_store_wide(b, p->shared, to, (int32_t)offset, s->inside, s->vectors[i]);
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_store_wide(b, p->shared, to, (int32_t)(offset + j * s->pitch), s->inside,
                              hal_ir_extract(b, s->vectors[i], j));
        }
    }
}

/* Waits until the next tile is complete in `stage`. */
static void end_tile(pipeline *p, hal_ir_value stage)
{
    if (p->e->tiles->stages > 2) {
        hal_ir_async_wait(p->e->b, p->e->tiles->stages - 2u);
    } else {
        put_stream(p, &p->a, stage);
        put_stream(p, &p->c, stage);
    }
    hal_ir_barrier(p->e->b);
}

/* The index of the work-item's lines in a stage, at the first step of its slice. */
static hal_ir_value stage_lines(pipeline *p, const stream *s, hal_ir_value stage)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_value place = s->side->first;
    if (e->slice != HAL_IR_NONE) {
        place = hal_ir_add(e->b, place, ops_gemm_times(e, e->slice, p->depth * s->pitch));
    }
    return hal_ir_add(e->b, place, ops_gemm_times(e, stage, p->stage_size));
}

/* Vectors are aligned to their size, so the pitch limits their width. */
static void read_lines(pipeline *p, const stream *s, hal_ir_value place, uint32_t step,
                       hal_ir_value *lines)
{
    const ops_gemm_side *side = s->side;
    hal_ir_builder *b = p->e->b;
    uint32_t width = side->strip;
    while (s->pitch % width != 0) {
        width /= 2;
    }
    for (uint32_t i = 0; i < side->thread; i += width) {
        uint32_t offset = s->begin + step * s->pitch + ops_gemm_line_offset(side, i);
        hal_ir_value vector =
            hal_ir_load_wide(b, p->shared, place, (int32_t)offset, width, HAL_IR_NONE);
        for (uint32_t j = 0; j < width; j++) {
            lines[i + j] = width == 1 ? vector : hal_ir_extract(b, vector, j);
        }
    }
}

/* The lines of the next tile's first step and its index are kept in variables, since they are read
 * before the next iteration. */
static void open_next(pipeline *p, stream *s)
{
    hal_ir_value place = stage_lines(p, s, hal_ir_u32(p->e->b, 0));
    read_lines(p, s, place, 0, s->lines[0]);
    s->place = hal_ir_var(p->e->b, place);
    for (uint32_t i = 0; i < s->side->thread; i++) {
        s->next[i] = hal_ir_var(p->e->b, s->lines[0][i]);
    }
}

static hal_ir_value next_stage(pipeline *p, hal_ir_value stage)
{
    hal_ir_builder *b = p->e->b;
    hal_ir_value last = hal_ir_u32(b, p->e->tiles->stages - 1u);
    return hal_ir_select(b, hal_ir_lt(b, stage, last), ops_gemm_plus(p->e, stage, 1),
                         hal_ir_u32(b, 0));
}

static hal_ir_value get_next(pipeline *p, stream *s)
{
    for (uint32_t i = 0; i < s->side->thread; i++) {
        s->lines[0][i] = hal_ir_get(p->e->b, s->next[i]);
    }
    return hal_ir_get(p->e->b, s->place);
}

/* Column by column in alternating directions, so that successive operations share operands. */
static void multiply_step(pipeline *p, uint32_t now)
{
    ops_gemm_emitter *e = p->e;
    for (uint32_t j = 0; j < e->c.thread; j++) {
        for (uint32_t i = 0; i < e->a.thread; i++) {
            uint32_t row = j & 1 ? e->a.thread - 1 - i : i;
            ops_gemm_multiply(e, row, j, p->a.lines[now][row], p->c.lines[now][j]);
        }
    }
}

static void set_next(pipeline *p, const stream *s, hal_ir_value place, const hal_ir_value *lines)
{
    hal_ir_set(p->e->b, s->place, place);
    for (uint32_t i = 0; i < s->side->thread; i++) {
        hal_ir_set(p->e->b, s->next[i], lines[i]);
    }
}

/* Multiplies the present tile, whose lines are read one step ahead, and completes the next one. */
static void multiply_ahead(pipeline *p, hal_ir_value next)
{
    ops_gemm_emitter *e = p->e;
    ops_gemm_get_sums(e);
    hal_ir_value place_a = get_next(p, &p->a), place_c = get_next(p, &p->c);
    for (uint32_t step = 0; step < p->depth; step++) {
        uint32_t now = step & 1, following = step + 1;
        if (following == p->depth) {
            end_tile(p, next);
            following = 0;
            place_a = stage_lines(p, &p->a, next);
            place_c = stage_lines(p, &p->c, next);
        }
        read_lines(p, &p->a, place_a, following, p->a.lines[!now]);
        read_lines(p, &p->c, place_c, following, p->c.lines[!now]);
        multiply_step(p, now);
    }
    set_next(p, &p->a, place_a, p->a.lines[p->depth & 1]);
    set_next(p, &p->c, place_c, p->c.lines[p->depth & 1]);
    ops_gemm_set_sums(e);
}

/* The same in a loop over steps: the text of a general kernel has to compile fast. */
static void multiply_looped(pipeline *p, hal_ir_value stage, hal_ir_value next)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    hal_ir_value place_a = stage_lines(p, &p->a, stage), place_c = stage_lines(p, &p->c, stage);
    hal_ir_value step = hal_ir_for(b, hal_ir_u32(b, 0), e->loops.steps, hal_ir_u32(b, 1));
    ops_gemm_get_sums(e);
    place_a = hal_ir_add(b, place_a, ops_gemm_times(e, step, p->a.pitch));
    place_c = hal_ir_add(b, place_c, ops_gemm_times(e, step, p->c.pitch));
    read_lines(p, &p->a, place_a, 0, p->a.lines[0]);
    read_lines(p, &p->c, place_c, 0, p->c.lines[0]);
    multiply_step(p, 0);
    ops_gemm_set_sums(e);
    hal_ir_end(b);
    end_tile(p, next);
}

static void multiply_tiles(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    const bool is_looped = e->key->in_loops;
    hal_ir_value zero = hal_ir_u32(b, 0);
    for (uint32_t i = 0; i + 1 < t->stages; i++) {
        begin_tile(p, hal_ir_u32(b, i * t->block_k), hal_ir_u32(b, i));
    }
    end_tile(p, zero);
    if (!is_looped) {
        open_next(p, &p->a);
        open_next(p, &p->c);
    }
    hal_ir_value present = hal_ir_var(b, zero);
    hal_ir_value ahead = hal_ir_var(b, hal_ir_u32(b, t->stages - 1u));

    hal_ir_value end = is_looped ? e->any.end : e->k;
    hal_ir_value k = hal_ir_for(b, zero, end, hal_ir_u32(b, t->block_k));
    hal_ir_value filled = hal_ir_get(b, ahead), stage = hal_ir_get(b, present);
    hal_ir_value next = next_stage(p, stage);
    begin_tile(p, ops_gemm_plus(e, k, (t->stages - 1u) * t->block_k), filled);
    hal_ir_set(b, ahead, next_stage(p, filled));
    hal_ir_set(b, present, next);
    if (is_looped) {
        multiply_looped(p, stage, next);
    } else {
        multiply_ahead(p, next);
    }
    hal_ir_end(b);
}

/* A copy of the sum: compilers would otherwise keep sums that are stored together in neighbouring
 * registers, at a cost in every multiplication. Times alpha where that is one, which the result
 * needs anyway; else plus zero. */
static hal_ir_value sum_copy(ops_gemm_emitter *e, hal_ir_value sum)
{
    return e->key->alpha_is_one
               ? hal_ir_mul(e->b, e->alpha, sum)
               : hal_ir_add(e->b, sum, hal_ir_number(e->b, e->key->accumulator, 0));
}

/* The index of the partial sums that slice `source` passes to slice `owner`. Vectors of all
 * work-items are contiguous. */
static hal_ir_value partials_index(pipeline *p, uint32_t owner, hal_ir_value source)
{
    ops_gemm_emitter *e = p->e;
    uint32_t slices = e->tiles->intra_group_split_k, items = p->items / slices;
    uint32_t share = items * e->a.thread / slices * e->c.thread;
    hal_ir_value slot = ops_gemm_times(e, source, share);
    slot = ops_gemm_plus(e, slot, owner * (slices - 1) * share);
    return hal_ir_add(e->b, slot, ops_gemm_times(e, e->item, e->c.strip));
}

static void store_partials(pipeline *p, uint32_t owner)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    uint32_t share = e->a.thread / e->tiles->intra_group_split_k * e->c.thread, strip = e->c.strip;
    uint32_t items = p->items / e->tiles->intra_group_split_k;
    hal_ir_value above = hal_ir_lt(b, hal_ir_u32(b, owner), e->slice);
    hal_ir_value source =
        hal_ir_select(b, above, hal_ir_sub(b, e->slice, hal_ir_u32(b, 1)), e->slice);
    hal_ir_value slot = partials_index(p, owner, source);
    for (uint32_t i = 0; i < share; i += strip) {
        const hal_ir_value *values = &e->present[owner * share + i];
        hal_ir_store_wide(b, p->shared, slot, (int32_t)(i * items), HAL_IR_NONE,
                          strip == 1 ? values[0] : hal_ir_pack(b, strip, values));
    }
}

static void add_partials(pipeline *p, uint32_t owner)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    uint32_t slices = e->tiles->intra_group_split_k, share = e->a.thread / slices * e->c.thread;
    uint32_t items = p->items / slices, strip = e->c.strip;
    for (uint32_t source = 0; source + 1 < slices; source++) {
        hal_ir_value slot = partials_index(p, owner, hal_ir_u32(b, source));
        for (uint32_t i = 0; i < share; i += strip) {
            hal_ir_value vector =
                hal_ir_load_wide(b, p->shared, slot, (int32_t)(i * items), strip, HAL_IR_NONE);
            for (uint32_t j = 0; j < strip; j++) {
                hal_ir_value *sum = &e->present[owner * share + i + j];
                *sum = hal_ir_add(b, *sum, strip == 1 ? vector : hal_ir_extract(b, vector, j));
            }
        }
    }
}

/* Slice i stores the i-th share of every work-item's rows: it adds the other slices' sums to its
 * own in the order of the slices. */
static void sum_slices(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    uint32_t slices = e->tiles->intra_group_split_k, rows = e->a.thread / slices;
    if (e->tiles->stages > 2) {
        hal_ir_async_wait(b, 0);
    }
    hal_ir_barrier(b);
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->present[i] = sum_copy(e, e->present[i]);
    }
    if (e->key->alpha_is_one) {
        e->alpha = HAL_IR_NONE; /* applied by sum_copy */
    }
    for (uint32_t owner = 0; owner < slices; owner++) {
        hal_ir_if(b, hal_ir_ne(b, e->slice, hal_ir_u32(b, owner)));
        store_partials(p, owner);
        hal_ir_end(b);
    }
    hal_ir_barrier(b);
    for (uint32_t owner = 0; owner < slices; owner++) {
        hal_ir_if(b, hal_ir_eq(b, e->slice, hal_ir_u32(b, owner)));
        add_partials(p, owner);
        ops_gemm_emit_rows(e, owner * rows, (owner + 1) * rows);
        hal_ir_end(b);
    }
}

void ops_gemm_emit_staged(ops_gemm_emitter *e)
{
    const ops_gemm_tiles *t = e->tiles;
    pipeline p = {.e = e, .depth = t->block_k / t->intra_group_split_k};
    p.items =
        (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n) * t->intra_group_split_k;
    p.shared = hal_ir_shared(e->b, "tiles", e->key->type_ab, ops_gemm_shared_elements(t));
    open_side(&p, &p.a, &e->a, 0);
    open_side(&p, &p.c, &e->c, t->block_k * p.a.pitch);
    p.stage_size = t->block_k * (p.a.pitch + p.c.pitch);
    multiply_tiles(&p);
    if (e->key->in_loops && t->intra_group_split_k == 1) {
        ops_gemm_emit_looped_rows(e);
        return;
    }
    ops_gemm_get_sums(e);
    if (t->intra_group_split_k > 1) {
        sum_slices(&p);
    } else {
        ops_gemm_emit_rows(e, 0, t->thread_m);
    }
}

uint32_t ops_gemm_shared_elements(const ops_gemm_tiles *t)
{
    uint32_t tile = t->block_k * (step_pitch(t->block_m, 1) + step_pitch(t->block_n, 1));
    /* Each slice keeps its share of the rows and stores the others. */
    uint32_t partials = t->block_m * t->block_n * (t->intra_group_split_k - 1u);
    return t->stages * tile > partials ? t->stages * tile : partials;
}
