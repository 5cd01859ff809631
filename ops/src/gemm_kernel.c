/* Builds the portable matrix product, see gemm_kernel.h. */
#include "gemm_kernel.h"

#define MAX_ACCUMULATORS 128u
#define MAX_FRAGMENT 64u /* rows, columns or steps of k that a work-item holds at once */
#define MAX_VECTORS 32u  /* accesses of a work-item to stage one tile */

/* One of A and B while its loads are emitted. Lines are rows of A, columns of B. */
typedef struct side {
    const ops_gemm_operand *operand;
    hal_ir_memory_id memory, shared;
    uint32_t block, threads, thread, strip; /* lines */
    uint32_t pitch;                         /* of a step of k in shared memory */
    hal_ir_value base, stride;              /* of the dimension that is not contiguous */
    hal_ir_value limit, origin, lane;       /* lines in all, first of the block, own place */
    hal_ir_value line[MAX_FRAGMENT];        /* direct: where the lines begin */
} side;

typedef struct emitter {
    hal_ir_builder *b;
    const ops_gemm_plan *plan;
    const ops_gemm_tiles *tiles;
    hal_type type; /* of indices */
    hal_ir_value alpha, beta, m, n, k, batch;
    hal_ir_value item; /* the work-item's number in its group */
    side a, c;         /* A, and B, whose lines are C's columns */
    hal_ir_value c_base, c_row, c_column;
    hal_ir_value input_base[OPS_GEMM_MAX_INPUTS], input_row[OPS_GEMM_MAX_INPUTS],
        input_column[OPS_GEMM_MAX_INPUTS];
    hal_ir_value sums[MAX_ACCUMULATORS];    /* variables */
    hal_ir_value present[MAX_ACCUMULATORS]; /* their values inside a loop body */
} emitter;

static void declare_scalars(emitter *e);
static hal_ir_value declare_place(emitter *e, uint32_t number, hal_ir_value *strides,
                                  uint32_t stride_count);
static void place_work_item(emitter *e);
static hal_ir_value tile_origin(emitter *e, uint32_t dimension, uint32_t block, hal_ir_value first);
static void open_sums(emitter *e);
static void get_sums(emitter *e);
static void set_sums(emitter *e);
static void multiply(emitter *e, uint32_t row, uint32_t column, hal_ir_value x, hal_ir_value y);
static void emit_staged(emitter *e);
static uint32_t tile_vectors(const emitter *e, const side *s);
static void fetch_tile(emitter *e, side *s, hal_ir_value k, hal_ir_value *vectors);
static void vector_place(emitter *e, const side *s, uint32_t number, hal_ir_value *line,
                         hal_ir_value *step, hal_ir_value *inside);
static void put_tile(emitter *e, side *s, hal_ir_value start, const hal_ir_value *vectors);
static void multiply_tile(emitter *e, hal_ir_value buffer);
static void read_fragment(emitter *e, const side *s, hal_ir_value start, uint32_t step,
                          hal_ir_value *fragment);
static void emit_direct(emitter *e);
static void place_lines(emitter *e, side *s, int clamped);
static void direct_steps(emitter *e, hal_ir_value k, uint32_t steps);
static void read_lines(emitter *e, const side *s, uint32_t line, uint32_t lines, hal_ir_value k,
                       uint32_t steps, hal_ir_value guard, hal_ir_value *values);
static hal_ir_value address(emitter *e, const side *s, hal_ir_value line, hal_ir_value k);
static hal_ir_value own_line(emitter *e, const side *s, uint32_t number);
static void emit_result(emitter *e);
static void store_strip(emitter *e, hal_ir_value row, uint32_t row_number, uint32_t column_number,
                        hal_ir_value (*kept)[OPS_GEMM_MAX_INPUTS]);
static hal_ir_value finish(emitter *e, hal_ir_value value, hal_ir_value row, hal_ir_value column,
                           hal_ir_value guard, hal_ir_value kept[OPS_GEMM_MAX_INPUTS]);
static hal_ir_value further_input(emitter *e, uint32_t number, hal_ir_value row,
                                  hal_ir_value column, hal_ir_value guard,
                                  hal_ir_value kept[OPS_GEMM_MAX_INPUTS]);
static hal_ir_value index_of(emitter *e, hal_ir_value x);
static hal_ir_value plus(emitter *e, hal_ir_value x, uint32_t y);
static hal_ir_value times(emitter *e, hal_ir_value x, uint32_t y);
static uint32_t log2_of(uint32_t power);

void ops_gemm_emit(hal_ir_builder *b, const ops_gemm_plan *plan)
{
    const ops_gemm_tiles *t = &plan->tiles;
    emitter e = {.b = b, .plan = plan, .tiles = t};
    e.type = plan->wide ? HAL_TYPE_U64 : HAL_TYPE_U32;
    e.a = (side){.operand = &plan->a,
                 .memory = plan->slots[0],
                 .block = t->block_m,
                 .threads = t->block_m / t->thread_m,
                 .thread = t->thread_m,
                 .strip = t->strip_m,
                 .pitch = t->block_m + 4u};
    e.c = (side){.operand = &plan->b,
                 .memory = plan->slots[1],
                 .block = t->block_n,
                 .threads = t->block_n / t->thread_n,
                 .thread = t->thread_n,
                 .strip = t->strip_n,
                 .pitch = t->block_n + 4u};
    hal_ir_group_size(b, e.c.threads, e.a.threads, 1);
    if (t->staged) {
        e.a.shared = hal_ir_shared(b, "tile_a", plan->type_ab, 2u * t->block_k * e.a.pitch);
        e.c.shared = hal_ir_shared(b, "tile_b", plan->type_ab, 2u * t->block_k * e.c.pitch);
    }
    declare_scalars(&e);
    place_work_item(&e);
    open_sums(&e);
    if (t->staged) {
        emit_staged(&e);
    } else {
        emit_direct(&e);
    }
    emit_result(&e);
}

void ops_gemm_put(const ops_gemm_plan *plan, const ops_gemm_work *work, ops_block *block)
{
    ops_put_number(block, plan->accumulator, work->alpha);
    ops_put_number(block, plan->accumulator, work->beta);
    const uint32_t counts[5] = {work->m, work->n, work->k, work->row_first, work->batch_first};
    for (uint32_t i = 0; i < 5; i++) {
        ops_put_u32(block, counts[i]);
    }
    const ops_gemm_place *places[3 + OPS_GEMM_MAX_INPUTS] = {&work->a, &work->b, &work->c};
    for (uint32_t i = 0; i < plan->input_count; i++) {
        places[3 + i] = &work->inputs[i];
    }
    for (uint32_t i = 0; i < 3u + plan->input_count; i++) {
        const ops_gemm_place *p = places[i];
        int64_t numbers[4] = {p->base, p->batch_stride, p->row_stride, p->column_stride};
        uint32_t count = 4;
        if (i == 0) {
            numbers[2] = plan->a.along_k ? p->row_stride : p->column_stride;
            count = 3;
        } else if (i == 1) {
            numbers[2] = plan->b.along_k ? p->column_stride : p->row_stride;
            count = 3;
        }
        for (uint32_t j = 0; j < count; j++) {
            ops_put_index(block, plan->wide, numbers[j]);
        }
    }
}

static void declare_scalars(emitter *e)
{
    hal_ir_builder *b = e->b;
    e->alpha = hal_ir_scalar_value(b, "alpha", e->plan->accumulator);
    e->beta = hal_ir_scalar_value(b, "beta", e->plan->accumulator);
    e->m = hal_ir_scalar_value(b, "m", HAL_TYPE_U32);
    e->n = hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    e->k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    hal_ir_value row_first = hal_ir_scalar_value(b, "row_first", HAL_TYPE_U32);
    hal_ir_value batch_first = hal_ir_scalar_value(b, "batch_first", HAL_TYPE_U32);
    e->batch = hal_ir_add(b, batch_first, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
    e->a.origin = tile_origin(e, 1, e->tiles->block_m, row_first);
    e->c.origin = tile_origin(e, 0, e->tiles->block_n, HAL_IR_NONE);
    e->a.limit = e->m;
    e->c.limit = e->n;

    hal_ir_value strides[2];
    e->a.base = declare_place(e, 0, &e->a.stride, 1);
    e->c.base = declare_place(e, 1, &e->c.stride, 1);
    e->c_base = declare_place(e, 2, strides, 2);
    e->c_row = strides[0];
    e->c_column = strides[1];
    for (uint32_t i = 0; i < e->plan->input_count; i++) {
        e->input_base[i] = declare_place(e, 3 + i, strides, 2);
        e->input_row[i] = strides[0];
        e->input_column[i] = strides[1];
    }
}

/* The place of the own batch's matrix, and its strides. */
static hal_ir_value declare_place(emitter *e, uint32_t number, hal_ir_value *strides,
                                  uint32_t stride_count)
{
    hal_ir_value base = ops_scalar(e->b, "base", number, 0, e->type);
    hal_ir_value batch_stride = ops_scalar(e->b, "batch_stride", number, 0, e->type);
    for (uint32_t i = 0; i < stride_count; i++) {
        strides[i] = ops_scalar(e->b, "stride", number, i, e->type);
    }
    return hal_ir_add(e->b, base, hal_ir_mul(e->b, index_of(e, e->batch), batch_stride));
}

static hal_ir_value tile_origin(emitter *e, uint32_t dimension, uint32_t block, hal_ir_value first)
{
    hal_ir_value origin = times(e, hal_ir_id(e->b, HAL_IR_GROUP_ID, dimension), block);
    return first == HAL_IR_NONE ? origin : hal_ir_add(e->b, origin, first);
}

static void place_work_item(emitter *e)
{
    hal_ir_builder *b = e->b;
    e->c.lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    e->a.lane = e->a.threads > 1 ? hal_ir_id(b, HAL_IR_LOCAL_ID, 1) : hal_ir_u32(b, 0);
    e->item = hal_ir_add(b, times(e, e->a.lane, e->c.threads), e->c.lane);
}

static void open_sums(emitter *e)
{
    hal_ir_value zero = hal_ir_number(e->b, e->plan->accumulator, 0);
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->sums[i] = hal_ir_var(e->b, zero);
    }
}

static void get_sums(emitter *e)
{
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->present[i] = hal_ir_get(e->b, e->sums[i]);
    }
}

static void set_sums(emitter *e)
{
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        hal_ir_set(e->b, e->sums[i], e->present[i]);
    }
}

static void multiply(emitter *e, uint32_t row, uint32_t column, hal_ir_value x, hal_ir_value y)
{
    hal_ir_value *sum = &e->present[row * e->c.thread + column];
    *sum = hal_ir_fma(e->b, x, y, *sum);
}

/* ---- Through shared memory ---- */

/* The next tile travels from global memory to registers while the present one is multiplied, and
 * on to the other half of shared memory after that: one barrier for each tile. */
static void emit_staged(emitter *e)
{
    hal_ir_builder *b = e->b;
    uint32_t depth = e->tiles->block_k;
    hal_ir_value next_a[MAX_VECTORS], next_c[MAX_VECTORS], zero = hal_ir_u32(b, 0);
    fetch_tile(e, &e->a, zero, next_a);
    fetch_tile(e, &e->c, zero, next_c);
    put_tile(e, &e->a, zero, next_a);
    put_tile(e, &e->c, zero, next_c);
    hal_ir_barrier(b);

    hal_ir_value k = hal_ir_for(b, zero, e->k, hal_ir_u32(b, depth));
    hal_ir_value number = hal_ir_shr(b, k, hal_ir_u32(b, log2_of(depth)));
    hal_ir_value buffer = hal_ir_and(b, number, hal_ir_u32(b, 1));
    hal_ir_value other = hal_ir_xor(b, buffer, hal_ir_u32(b, 1));
    hal_ir_value next = plus(e, k, depth);
    fetch_tile(e, &e->a, next, next_a);
    fetch_tile(e, &e->c, next, next_c);
    get_sums(e);
    multiply_tile(e, buffer);
    set_sums(e);
    put_tile(e, &e->a, times(e, other, depth * e->a.pitch), next_a);
    put_tile(e, &e->c, times(e, other, depth * e->c.pitch), next_c);
    hal_ir_barrier(b);
    hal_ir_end(b);
}

/* Accesses of the whole group to stage a tile. */
static uint32_t tile_vectors(const emitter *e, const side *s)
{
    return s->block * e->tiles->block_k / s->operand->width;
}

/* Loads a work-item's share of the tile at step k; what lies outside of the matrix is zero. */
static void fetch_tile(emitter *e, side *s, hal_ir_value k, hal_ir_value *vectors)
{
    hal_ir_builder *b = e->b;
    uint32_t items = e->a.threads * e->c.threads, count = tile_vectors(e, s);
    for (uint32_t i = 0; i * items < count; i++) {
        hal_ir_value line, step, inside;
        vector_place(e, s, i, &line, &step, &inside);
        line = hal_ir_add(b, s->origin, line);
        step = hal_ir_add(b, k, step);
        hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, line, s->limit), hal_ir_lt(b, step, e->k));
        guard = inside == HAL_IR_NONE ? guard : hal_ir_and(b, guard, inside);
        vectors[i] =
            hal_ir_load_wide(b, s->memory, address(e, s, line, step), 0, s->operand->width, guard);
    }
}

/* Which line and step of the tile the work-item's access `number` begins at; `inside` is a guard
 * where there are more work-items than accesses. */
static void vector_place(emitter *e, const side *s, uint32_t number, hal_ir_value *line,
                         hal_ir_value *step, hal_ir_value *inside)
{
    hal_ir_builder *b = e->b;
    uint32_t items = e->a.threads * e->c.threads, count = tile_vectors(e, s);
    uint32_t row = (s->operand->along_k ? e->tiles->block_k : s->block) / s->operand->width;
    hal_ir_value index = number ? plus(e, e->item, number * items) : e->item;
    hal_ir_value slow = hal_ir_shr(b, index, hal_ir_u32(b, log2_of(row)));
    hal_ir_value fast = hal_ir_and(b, index, hal_ir_u32(b, row - 1));
    fast = times(e, fast, s->operand->width);
    *line = s->operand->along_k ? slow : fast;
    *step = s->operand->along_k ? fast : slow;
    *inside =
        (number + 1) * items > count ? hal_ir_lt(b, index, hal_ir_u32(b, count)) : HAL_IR_NONE;
}

/* Writes what was fetched to shared memory, step by step of k, from element `start` on. */
static void put_tile(emitter *e, side *s, hal_ir_value start, const hal_ir_value *vectors)
{
    hal_ir_builder *b = e->b;
    uint32_t items = e->a.threads * e->c.threads, count = tile_vectors(e, s);
    uint32_t width = s->operand->width;
    for (uint32_t i = 0; i * items < count; i++) {
        hal_ir_value line, step, inside;
        vector_place(e, s, i, &line, &step, &inside);
        hal_ir_value place = hal_ir_add(b, start, hal_ir_add(b, times(e, step, s->pitch), line));
        if (!s->operand->along_k || width == 1) {
            hal_ir_store_wide(b, s->shared, place, 0, inside, vectors[i]);
            continue;
        }
        for (uint32_t j = 0; j < width; j++) {
            hal_ir_store_wide(b, s->shared, place, (int32_t)(j * s->pitch), inside,
                              hal_ir_extract(b, vectors[i], j));
        }
    }
}

/* Multiplies the tile in half `buffer` of shared memory. The next fragments are read before the
 * present ones are multiplied. */
static void multiply_tile(emitter *e, hal_ir_value buffer)
{
    uint32_t depth = e->tiles->block_k;
    hal_ir_value rows[2][MAX_FRAGMENT], columns[2][MAX_FRAGMENT];
    hal_ir_value start_a = times(e, buffer, depth * e->a.pitch);
    hal_ir_value start_c = times(e, buffer, depth * e->c.pitch);
    read_fragment(e, &e->a, start_a, 0, rows[0]);
    read_fragment(e, &e->c, start_c, 0, columns[0]);
    for (uint32_t step = 0; step < depth; step++) {
        uint32_t now = step & 1;
        if (step + 1 < depth) {
            read_fragment(e, &e->a, start_a, step + 1, rows[!now]);
            read_fragment(e, &e->c, start_c, step + 1, columns[!now]);
        }
        for (uint32_t i = 0; i < e->a.thread; i++) {
            for (uint32_t j = 0; j < e->c.thread; j++) {
                /* To and fro, so that neighbours share an operand. */
                uint32_t column = i & 1 ? e->c.thread - 1 - j : j;
                multiply(e, i, column, rows[now][i], columns[now][column]);
            }
        }
    }
}

/* The work-item's lines at one step of the tile. */
static void read_fragment(emitter *e, const side *s, hal_ir_value start, uint32_t step,
                          hal_ir_value *fragment)
{
    hal_ir_builder *b = e->b;
    hal_ir_value place = hal_ir_add(b, start, times(e, s->lane, s->strip));
    for (uint32_t i = 0; i < s->thread / s->strip; i++) {
        uint32_t offset = step * s->pitch + i * s->threads * s->strip;
        hal_ir_value vector =
            hal_ir_load_wide(b, s->shared, place, (int32_t)offset, s->strip, HAL_IR_NONE);
        for (uint32_t j = 0; j < s->strip; j++) {
            fragment[i * s->strip + j] = s->strip == 1 ? vector : hal_ir_extract(b, vector, j);
        }
    }
}

/* ---- Directly from memory ---- */

static void emit_direct(emitter *e)
{
    hal_ir_builder *b = e->b;
    uint32_t depth = e->tiles->block_k;
    place_lines(e, &e->a, 1);
    place_lines(e, &e->c, 0);
    hal_ir_value rest = hal_ir_and(b, e->k, hal_ir_u32(b, depth - 1));
    hal_ir_value whole = hal_ir_sub(b, e->k, rest);
    hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), whole, hal_ir_u32(b, depth));
    direct_steps(e, k, depth);
    hal_ir_end(b);
    k = hal_ir_for(b, whole, e->k, hal_ir_u32(b, 1));
    direct_steps(e, k, 1);
    hal_ir_end(b);
}

/* Where the work-item's lines begin. Rows beyond the last are read as if they were the last (their
 * results go nowhere), columns are guarded: a clamped place would hide that they are neighbours. */
static void place_lines(emitter *e, side *s, int clamped)
{
    hal_ir_builder *b = e->b;
    uint32_t group = s->operand->along_k ? 1 : s->operand->width;
    for (uint32_t i = 0; i < s->thread; i++) {
        uint32_t first = i / group * group;
        if (i != first) {
            s->line[i] = HAL_IR_NONE;
            continue;
        }
        hal_ir_value line = own_line(e, s, i);
        if (clamped) {
            hal_ir_value last = hal_ir_sub(b, s->limit, hal_ir_u32(b, group));
            line = hal_ir_min(b, line, last);
        }
        s->line[i] = address(e, s, line, hal_ir_u32(b, 0));
    }
}

static void direct_steps(emitter *e, hal_ir_value k, uint32_t steps)
{
    hal_ir_value rows[MAX_FRAGMENT], columns[MAX_FRAGMENT];
    get_sums(e);
    for (uint32_t j = 0; j < e->c.thread; j++) {
        hal_ir_value guard = hal_ir_lt(e->b, own_line(e, &e->c, j), e->n);
        read_lines(e, &e->c, j, 1, k, steps, guard, columns + j * steps);
    }
    uint32_t group = e->a.operand->along_k ? 1 : e->a.operand->width;
    for (uint32_t i = 0; i < e->a.thread; i += group) {
        read_lines(e, &e->a, i, group, k, steps, HAL_IR_NONE, rows);
        for (uint32_t step = 0; step < steps; step++) {
            for (uint32_t r = 0; r < group; r++) {
                for (uint32_t j = 0; j < e->c.thread; j++) {
                    multiply(e, i + r, j, rows[r * steps + step], columns[j * steps + step]);
                }
            }
        }
    }
    set_sums(e);
}

/* values[line * steps + step] of neighbouring lines, over steps of k from k on. */
static void read_lines(emitter *e, const side *s, uint32_t line, uint32_t lines, hal_ir_value k,
                       uint32_t steps, hal_ir_value guard, hal_ir_value *values)
{
    hal_ir_builder *b = e->b;
    uint32_t width = s->operand->width;
    if (s->operand->along_k) {
        width = width < steps ? width : steps;
        hal_ir_value place = hal_ir_add(b, s->line[line], index_of(e, k));
        for (uint32_t step = 0; step < steps; step += width) {
            hal_ir_value vector =
                hal_ir_load_wide(b, s->memory, place, (int32_t)step, width, guard);
            for (uint32_t i = 0; i < width; i++) {
                values[step + i] = width == 1 ? vector : hal_ir_extract(b, vector, i);
            }
        }
        return;
    }
    for (uint32_t step = 0; step < steps; step++) {
        hal_ir_value row = hal_ir_mul(b, index_of(e, plus(e, k, step)), s->stride);
        hal_ir_value place = hal_ir_add(b, s->line[line], row);
        uint32_t wide = lines == 1 ? 1 : width;
        hal_ir_value vector = hal_ir_load_wide(b, s->memory, place, 0, wide, guard);
        for (uint32_t i = 0; i < lines; i++) {
            values[i * steps + step] = wide == 1 ? vector : hal_ir_extract(b, vector, i);
        }
    }
}

static hal_ir_value address(emitter *e, const side *s, hal_ir_value line, hal_ir_value k)
{
    hal_ir_value far = s->operand->along_k ? line : k, near = s->operand->along_k ? k : line;
    hal_ir_value place = hal_ir_add(e->b, s->base, hal_ir_mul(e->b, index_of(e, far), s->stride));
    return hal_ir_add(e->b, place, index_of(e, near));
}

/* The matrix's line that is the work-item's line `number`. */
static hal_ir_value own_line(emitter *e, const side *s, uint32_t number)
{
    hal_ir_value line = hal_ir_add(e->b, s->origin, times(e, s->lane, s->strip));
    uint32_t offset = number / s->strip * s->threads * s->strip + number % s->strip;
    return plus(e, line, offset);
}

/* ---- The result ---- */

static void emit_result(emitter *e)
{
    hal_ir_value by_column[MAX_FRAGMENT][OPS_GEMM_MAX_INPUTS];
    for (uint32_t j = 0; j < e->c.thread; j++) {
        for (uint32_t i = 0; i < OPS_GEMM_MAX_INPUTS; i++) {
            by_column[j][i] = HAL_IR_NONE;
        }
    }
    get_sums(e);
    for (uint32_t i = 0; i < e->a.thread; i++) {
        hal_ir_value row = own_line(e, &e->a, i);
        for (uint32_t j = 0; j < e->c.thread; j += e->plan->width_c) {
            store_strip(e, row, i, j, &by_column[j]);
        }
    }
}

/* Finishes and stores width_c neighbours of a row. kept[column] are the further inputs that every
 * row of the column shares. */
static void store_strip(emitter *e, hal_ir_value row, uint32_t row_number, uint32_t column_number,
                        hal_ir_value (*kept)[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_plan *plan = e->plan;
    hal_ir_value values[OPS_MAX_RANK], old = HAL_IR_NONE;
    hal_ir_value column = own_line(e, &e->c, column_number);
    hal_ir_value in_columns = hal_ir_lt(b, column, e->n);
    hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), in_columns);
    hal_ir_value place = hal_ir_add(b, e->c_base, hal_ir_mul(b, index_of(e, row), e->c_row));
    hal_ir_value step = index_of(e, column);
    step = plan->unit_c ? step : hal_ir_mul(b, step, e->c_column);
    place = hal_ir_add(b, place, step);
    if (!plan->beta_is_zero) {
        old = hal_ir_load_wide(b, plan->slots[2], place, 0, plan->width_c, guard);
    }
    for (uint32_t i = 0; i < plan->width_c; i++) {
        hal_ir_value value = e->present[row_number * e->c.thread + column_number + i];
        value = hal_ir_mul(b, e->alpha, value);
        if (!plan->beta_is_zero) {
            hal_ir_value c = plan->width_c == 1 ? old : hal_ir_extract(b, old, i);
            c = ops_value_cast(b, plan->accumulator, c);
            value = hal_ir_fma(b, e->beta, c, value);
        }
        values[i] = finish(e, value, row, plus(e, column, i), guard, kept[i]);
    }
    hal_ir_value result = plan->width_c == 1 ? values[0] : hal_ir_pack(b, plan->width_c, values);
    hal_ir_store_wide(b, plan->slots[2], place, 0, guard, result);
}

static hal_ir_value finish(emitter *e, hal_ir_value value, hal_ir_value row, hal_ir_value column,
                           hal_ir_value guard, hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    const ops_gemm_plan *plan = e->plan;
    if (!plan->epilogue) {
        return ops_value_cast(e->b, hal_type_of_value(plan->type_c), value);
    }
    hal_ir_value inputs[OPS_MAX_INPUTS] = {value, plan->swapped ? column : row,
                                           plan->swapped ? row : column, e->batch};
    for (uint32_t i = 0; i < plan->input_count; i++) {
        inputs[4 + i] = further_input(e, i, row, column, guard, kept);
    }
    hal_ir_value output;
    hal_ir_splice(e->b, plan->epilogue->fragment, inputs, 4u + plan->input_count, &output, 1);
    return output;
}

static hal_ir_value further_input(emitter *e, uint32_t number, hal_ir_value row,
                                  hal_ir_value column, hal_ir_value guard,
                                  hal_ir_value kept[OPS_GEMM_MAX_INPUTS])
{
    hal_ir_builder *b = e->b;
    const ops_gemm_plan *plan = e->plan;
    if (kept[number] != HAL_IR_NONE) {
        return kept[number];
    }
    hal_ir_value place = e->input_base[number];
    uint32_t by_row = plan->row_step[number], by_column = plan->column_step[number];
    if (by_row != OPS_INNER_ZERO) {
        hal_ir_value step = index_of(e, row);
        step = by_row == OPS_INNER_ONE ? step : hal_ir_mul(b, step, e->input_row[number]);
        place = hal_ir_add(b, place, step);
    } else {
        guard = hal_ir_lt(b, column, e->n); /* one load for all rows, the last ones too */
    }
    if (by_column != OPS_INNER_ZERO) {
        hal_ir_value step = index_of(e, column);
        step = by_column == OPS_INNER_ONE ? step : hal_ir_mul(b, step, e->input_column[number]);
        place = hal_ir_add(b, place, step);
    }
    hal_ir_value value = hal_ir_load_wide(b, plan->slots[3 + number], place, 0, 1, guard);
    if (by_row == OPS_INNER_ZERO) {
        kept[number] = value;
    }
    return value;
}

static hal_ir_value index_of(emitter *e, hal_ir_value x)
{
    return ops_value_cast(e->b, e->type, x);
}

static hal_ir_value plus(emitter *e, hal_ir_value x, uint32_t y)
{
    return y == 0 ? x : hal_ir_add(e->b, x, hal_ir_u32(e->b, y));
}

static hal_ir_value times(emitter *e, hal_ir_value x, uint32_t y)
{
    return y == 1 ? x : hal_ir_mul(e->b, x, hal_ir_u32(e->b, y));
}

static uint32_t log2_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}
