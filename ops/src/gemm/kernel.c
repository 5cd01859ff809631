/* Builds the portable GEMM kernel, see gemm/kernel.h: scalars, positions of work-items, results. */
#include "kernel.h"

#include "emitter.h"

static ops_gemm_side side_make(const ops_gemm_operand *operand, hal_ir_memory_id memory,
                               uint32_t block, uint32_t thread, uint32_t strip, uint32_t lanes)
{
    return (ops_gemm_side){.operand = operand,
                           .memory = memory,
                           .block = block,
                           .thread = thread,
                           .strip = strip,
                           .lanes = lanes ? lanes : block / thread};
}

/* The first line of the group's block; with any_slices `any` are the lines of a block. */
static hal_ir_value tile_origin(ops_gemm_emitter *e, uint32_t dimension, uint32_t block,
                                hal_ir_value any)
{
    hal_ir_value group = hal_ir_id(e->b, HAL_IR_GROUP_ID, dimension);
    return e->tiles->any_slices ? hal_ir_mul(e->b, group, any) : ops_gemm_times(e, group, block);
}

/* Declares the scalars of A or B. */
static void declare_operand(ops_gemm_emitter *e, ops_gemm_side *side, uint32_t number)
{
    const ops_gemm_operand *o = side->operand;
    hal_ir_value strides[2] = {HAL_IR_NONE, HAL_IR_NONE};
    if (o->line_digits) {
        side->base = ops_gemm_declare_matrix(e, number, strides, 0);
        ops_gemm_declare_digits(e->b, number, 0, o->line_digits, !o->any_layout && !o->k_contiguous,
                                e->type, &side->line_place);
        ops_gemm_declare_digits(e->b, number, 1, o->k_digits, o->k_contiguous, e->type,
                                &side->k_place);
        return;
    }
    side->base = ops_gemm_declare_matrix(e, number, strides, 1u + o->any_layout);
    side->stride = strides[0];
    side->near = strides[1];
}

/* Zeros fill k up to a multiple of the turn, a power of two. */
static void declare_turn(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    hal_ir_value turn = hal_ir_scalar_value(b, "turn", HAL_TYPE_U32);
    hal_ir_value less = hal_ir_sub(b, turn, hal_ir_u32(b, 1));
    hal_ir_value rest = hal_ir_and(b, hal_ir_sub(b, hal_ir_u32(b, 0), e->k), less);
    e->any.end = hal_ir_add(b, e->k, rest);
}

static hal_ir_value declare_flag(ops_gemm_emitter *e, const char *name)
{
    hal_ir_value flag = hal_ir_scalar_value(e->b, name, HAL_TYPE_U32);
    return hal_ir_ne(e->b, flag, hal_ir_u32(e->b, 0));
}

static void declare_slices(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    e->any.block_m = hal_ir_scalar_value(b, "block_m", HAL_TYPE_U32);
    e->any.block_n = hal_ir_scalar_value(b, "block_n", HAL_TYPE_U32);
    e->any.width = hal_ir_scalar_value(b, "width", HAL_TYPE_U32);
    e->any.steps = hal_ir_scalar_value(b, "steps", HAL_TYPE_U32);
    e->any.stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    declare_turn(e);
    e->any.parts = hal_ir_scalar_value(b, "parts", HAL_TYPE_U32);
    e->any.first_pairs = hal_ir_scalar_value(b, "first_pairs", HAL_TYPE_U32);
    e->any.last_pairs = hal_ir_scalar_value(b, "last_pairs", HAL_TYPE_U32);
}

static void declare_scalars(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    e->alpha = hal_ir_scalar_value(b, "alpha", e->key->accumulator);
    e->beta = hal_ir_scalar_value(b, "beta", e->key->accumulator);
    e->m = hal_ir_scalar_value(b, "m", HAL_TYPE_U32);
    e->n = hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    e->k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    hal_ir_value row_first = hal_ir_scalar_value(b, "row_first", HAL_TYPE_U32);
    hal_ir_value batch_first = hal_ir_scalar_value(b, "batch_first", HAL_TYPE_U32);
    e->batch = hal_ir_add(b, batch_first, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
    if (e->key->grouped) {
        ops_gemm_find_group(e, hal_ir_add(b, row_first, hal_ir_id(b, HAL_IR_GROUP_ID, 1)));
    }
    if (e->key->split_k) {
        hal_ir_value k_all = hal_ir_scalar_value(b, "k_all", HAL_TYPE_U32);
        hal_ir_value part = hal_ir_scalar_value(b, "part", HAL_TYPE_U32);
        e->k_first = hal_ir_mul(b, e->batch, part);
        e->k = hal_ir_min(b, e->k, hal_ir_sub(b, k_all, e->k_first));
    }
    if (e->tiles->any_slices) {
        declare_slices(e);
    }
    if (e->key->in_loops) {
        e->loops.steps = hal_ir_scalar_value(b, "steps", HAL_TYPE_U32);
        e->loops.rows = hal_ir_scalar_value(b, "rows", HAL_TYPE_U32);
        e->loops.strips = hal_ir_scalar_value(b, "strips", HAL_TYPE_U32);
    }
    if (e->key->in_loops && e->tiles->stages > 0) {
        declare_turn(e);
        e->a.along_k = declare_flag(e, "a_along_k");
        e->c.along_k = declare_flag(e, "b_along_k");
    }
    if (!e->key->grouped) {
        e->a.origin = tile_origin(e, 1, e->tiles->block_m, e->any.block_m);
        e->a.origin = hal_ir_add(b, e->a.origin, row_first);
    }
    e->c.origin = tile_origin(e, 0, e->tiles->block_n, e->any.block_n);
    e->a.limit = e->m;
    e->c.limit = e->n;

    hal_ir_value strides[2];
    declare_operand(e, &e->a, 0);
    declare_operand(e, &e->c, 1);
    e->c_base = ops_gemm_declare_matrix(e, 2, strides, 2);
    e->c_row = strides[0];
    e->c_column = strides[1];
    if (e->key->c_digits) {
        ops_gemm_declare_digits(b, 2, 0, e->key->c_digits, e->key->unit_c, e->type, &e->c_place);
    }
    for (uint32_t i = 0; i < e->key->input_count; i++) {
        e->input_base[i] = ops_gemm_declare_matrix(e, 3 + i, strides, 2);
        e->input_row[i] = strides[0];
        e->input_column[i] = strides[1];
    }
}

/* Work-items are numbered by lanes of a warp, then warps of the block by columns, then slices of
 * k. */
static void place_in_warps(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    uint32_t warp_m = e->a.lanes * e->a.thread, warp_n = e->c.lanes * e->c.thread;
    uint32_t warps_n = e->c.block / warp_n, warp = e->a.lanes * e->c.lanes;
    uint32_t items = warp * warps_n * (e->a.block / warp_m);
    hal_ir_group_size(b, items * t->intra_group_split_k, 1, 1);
    hal_ir_groups_per_unit(b, t->min_groups_per_unit);
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    e->item = t->intra_group_split_k > 1 ? ops_gemm_rest(e, id, items) : id;
    e->slice = t->intra_group_split_k > 1 ? ops_gemm_quotient(e, id, items) : HAL_IR_NONE;

    hal_ir_value lane = ops_gemm_rest(e, e->item, warp);
    hal_ir_value number = ops_gemm_quotient(e, e->item, warp);
    hal_ir_value lane_m = ops_gemm_quotient(e, lane, e->c.lanes);
    hal_ir_value lane_n = ops_gemm_rest(e, lane, e->c.lanes);
    e->a.first = hal_ir_add(b, ops_gemm_times(e, ops_gemm_quotient(e, number, warps_n), warp_m),
                            ops_gemm_times(e, lane_m, e->a.strip));
    e->c.first = hal_ir_add(b, ops_gemm_times(e, ops_gemm_rest(e, number, warps_n), warp_n),
                            ops_gemm_times(e, lane_n, e->c.strip));
}

static void declare_sums(ops_gemm_emitter *e)
{
    hal_ir_value zero = hal_ir_number(e->b, e->key->accumulator, 0);
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->sums[i] = hal_ir_var(e->b, zero);
    }
}

/* A two-dimensional group. */
static void place_in_grid(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    hal_ir_group_size(b, e->c.lanes, e->a.lanes, 1);
    hal_ir_value row = e->a.lanes > 1 ? hal_ir_id(b, HAL_IR_LOCAL_ID, 1) : hal_ir_u32(b, 0);
    e->a.first = ops_gemm_times(e, row, e->a.strip);
    e->c.first = ops_gemm_times(e, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), e->c.strip);
}

void ops_gemm_emit(hal_ir_builder *b, const ops_gemm_kernel_key *key)
{
    const ops_gemm_tiles *t = &key->tiles;
    ops_gemm_emitter e = {.b = b, .key = key, .tiles = t, .k_first = HAL_IR_NONE};
    e.type = key->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    e.a = side_make(&key->a, key->slots[0], t->block_m, t->thread_m, t->strip_m, t->lanes_m);
    e.c = side_make(&key->b, key->slots[1], t->block_n, t->thread_n, t->strip_n, t->lanes_n);
    declare_scalars(&e);
    if (key->unit_words) {
        ops_gemm_emit_quantised_units(&e);
    } else if (key->quantisation.format) {
        ops_gemm_emit_quantised(&e);
    } else if (t->any_slices) {
        ops_gemm_emit_any_slices(&e);
    } else if (t->stages || t->unroll) {
        place_in_warps(&e);
        declare_sums(&e);
        if (t->unroll) {
            ops_gemm_emit_intra_group(&e);
        } else if (t->matrix) {
            ops_gemm_emit_matrix(&e);
        } else {
            ops_gemm_emit_staged(&e);
        }
    } else {
        place_in_grid(&e);
        if (!key->scale_only) {
            declare_sums(&e);
            ops_gemm_emit_direct(&e);
        }
        if (key->in_loops) {
            ops_gemm_emit_looped_rows(&e);
        } else {
            ops_gemm_emit_rows(&e, 0, t->thread_m);
        }
    }
}

static void put_numbers(ops_block *block, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ops_put_u32(block, numbers[i]);
    }
}

/* Puts where a matrix is. A and B have one stride, or the stride of k and that of lines. */
static void put_place(const ops_gemm_kernel_key *key, const ops_gemm_work *work, uint32_t number,
                      ops_block *block)
{
    const ops_gemm_place *p = number == 0   ? &work->a
                              : number == 1 ? &work->b
                              : number == 2 ? &work->c
                                            : &work->inputs[number - 3];
    const ops_gemm_operand *operand = number == 0 ? &key->a : &key->b;
    const bool is_operand = number < 2;
    /* A's rows are its lines, B's columns are. */
    const bool by_columns = is_operand && (number == 1) == operand->k_contiguous;
    const int64_t numbers[4] = {p->base, p->batch_stride,
                                by_columns ? p->column_stride : p->row_stride,
                                by_columns ? p->row_stride : p->column_stride};
    const bool is_separable = is_operand && operand->line_digits > 0;
    const uint32_t count = is_separable ? 2 : is_operand && !operand->any_layout ? 3 : 4;
    for (uint32_t i = 0; i < count; i++) {
        ops_put_index(block, key->index64, numbers[i]);
    }
    if (is_separable) {
        ops_gemm_put_digits(block, key->index64, operand->line_digits, &p->separable->line);
        ops_gemm_put_digits(block, key->index64, operand->k_digits, &p->separable->k);
    } else if (number == 2 && key->c_digits) {
        ops_gemm_put_digits(block, key->index64, key->c_digits, &p->separable->line);
    }
}

static void put_matrix(const ops_gemm_kernel_key *key, const ops_gemm_place *p, ops_block *block)
{
    ops_put_index(block, key->index64, p->base);
    ops_put_index(block, key->index64, p->batch_stride);
    ops_put_index(block, key->index64, p->row_stride);
    ops_put_index(block, key->index64, p->column_stride);
}

/* Scalars, since compilers unroll loops of few iterations. */
static void put_loops(const ops_gemm_kernel_key *key, ops_block *block)
{
    const ops_gemm_tiles *t = &key->tiles;
    const uint32_t numbers[] = {(uint32_t)t->block_k / t->intra_group_split_k, t->thread_m,
                                (uint32_t)t->thread_n / key->width_c};
    put_numbers(block, numbers, 3);
}

void ops_gemm_put(const ops_gemm_kernel_key *key, const ops_gemm_work *work, ops_block *block)
{
    ops_put_number(block, key->accumulator, work->alpha);
    ops_put_number(block, key->accumulator, work->beta);
    const uint32_t counts[7] = {work->m,           work->n,     work->k,   work->row_first,
                                work->batch_first, work->k_all, work->part};
    put_numbers(block, counts, 5);
    if (key->grouped) {
        const ops_gemm_groups *g = &work->groups;
        put_numbers(block, (const uint32_t[]){g->count, g->steps, g->block}, 3);
        ops_put_index(block, key->index64, g->offsets.base);
        ops_put_index(block, key->index64, g->offsets.column_stride);
    }
    put_numbers(block, counts + 5, key->split_k ? 2 : 0);
    const ops_gemm_slices *s = &work->slices;
    if (key->tiles.any_slices) {
        const uint32_t numbers[] = {s->block_m, s->block_n, s->width,       s->steps,     s->stride,
                                    s->turn,    s->parts,   s->first_pairs, s->last_pairs};
        put_numbers(block, numbers, sizeof numbers / sizeof *numbers);
    }
    if (key->in_loops) {
        put_loops(key, block);
    }
    if (key->in_loops && key->tiles.stages > 0) {
        put_numbers(block, (const uint32_t[]){s->turn, s->a_along_k, s->b_along_k}, 3);
    }
    for (uint32_t i = 0; i < 3u + key->input_count; i++) {
        put_place(key, work, i, block);
    }
    if (key->quantisation.format) {
        ops_put_number(block, HAL_TYPE_F32, work->zero);
        ops_put_u32(block, work->block_shift);
        ops_put_u32(block, OPS_GEMM_QUANTISED_MAGIC);
        put_matrix(key, &work->scales, block);
        if (key->quantisation.has_zeros) {
            put_matrix(key, &work->zeros, block);
        }
    }
}
