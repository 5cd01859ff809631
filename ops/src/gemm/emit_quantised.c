/* The portable GEMM kernel of few rows whose B is quantised: it is bound by the bytes of B, and so
 * reads them as they are and decodes them in registers.
 *
 * A work-item has all rows of the block and 4 columns, and takes 8 steps of k at once: a unit. Its
 * weights are words of 4 bytes, neighbours along k or along the columns, that neighbouring
 * work-items read side by side; the words of `unroll` units are in flight. Slices of k are other
 * work-items, whose sums are added in shared memory in an order that depends on the tiles alone.
 *
 * An integer of 4 or 8 bits becomes a float without a conversion: it replaces low bits of the
 * mantissa of a power of two, which is subtracted again, exactly. */
#include "emitter.h"
#include "quantised_decode.h"

enum { COLUMNS = OPS_GEMM_QUANTISED_COLUMNS, STEPS = OPS_GEMM_QUANTISED_STEPS };
enum { MAX_UNROLL = 4, MAX_WORDS = 8, MAX_ROWS = OPS_GEMM_QUANTISED_ROWS, POSITIONS = 5 };

/* A power of two whose mantissa has the unit in its last place, OPS_GEMM_QUANTISED_MAGIC. */
#define MAGIC_EXPONENT 23

/* What is loaded of a unit before it is multiplied. */
typedef struct unit {
    hal_ir_value k, inside;        /* first step; whether it is in the matrix, or HAL_IR_NONE */
    hal_ir_value turn;             /* first step of the work-item's first unit of the turn */
    uint32_t ahead;                /* steps from there to k: loads share an address */
    hal_ir_value words[MAX_WORDS]; /* k_contiguous: column by column; else step by step */
    hal_ir_value scales[COLUMNS], zeros[COLUMNS];
} unit;

/* A matrix of scales or zeros, of one element for each block of k and column. */
typedef struct block_matrix {
    hal_ir_memory_id memory;
    hal_ir_value base, stride_k, stride_n;
} block_matrix;

typedef struct quantised_emitter {
    ops_gemm_emitter *e;
    const ops_gemm_quantisation *form;
    uint32_t items, slices, bits;
    hal_ir_memory_id shared;
    hal_ir_value slice, column[COLUMNS], row[MAX_ROWS], in_columns[COLUMNS];
    hal_ir_value zero, block_shift;
    hal_ir_value magic; /* the bits of 2^23, in a register: an operation takes one constant */
    hal_ir_value offset[POSITIONS]; /* of integers at bit 4 * i: what is subtracted */
    block_matrix scales, zeros;
    unit units[MAX_UNROLL];
} quantised_emitter;

static hal_ir_value multiply_add(ops_gemm_emitter *e, hal_ir_value x, hal_ir_value y,
                                 hal_ir_value z)
{
    return e->key->fused ? hal_ir_fma(e->b, x, y, z) : hal_ir_add(e->b, hal_ir_mul(e->b, x, y), z);
}

static hal_ir_value block_load(quantised_emitter *q, const block_matrix *m, hal_ir_value k,
                               uint32_t column, hal_ir_value guard)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value place = hal_ir_mul(b, ops_gemm_index(e, q->column[column]), m->stride_n);
    if (q->form->is_blocked) {
        hal_ir_value block = ops_gemm_index(e, hal_ir_shr(b, k, q->block_shift));
        place = hal_ir_add(b, place, hal_ir_mul(b, block, m->stride_k));
    }
    place = hal_ir_add(b, m->base, place);
    return hal_ir_load_wide(b, m->memory, place, 0, 1,
                            ops_guard_and(b, guard, q->in_columns[column]));
}

static void load_scales(quantised_emitter *q, hal_ir_value k, hal_ir_value guard, unit *u)
{
    hal_ir_builder *b = q->e->b;
    for (uint32_t j = 0; j < COLUMNS; j++) {
        hal_ir_value scale = block_load(q, &q->scales, k, j, guard);
        u->scales[j] = q->form->scales_are_exponents ? ops_quantised_exponent(b, scale) : scale;
        if (q->form->has_zeros) {
            u->zeros[j] = ops_value_cast(b, HAL_TYPE_F32, block_load(q, &q->zeros, k, j, guard));
        }
    }
}

/* The place of a word or byte of B: `line` is a column, `k` a step, both in elements. */
static hal_ir_value word_place(quantised_emitter *q, hal_ir_value line, hal_ir_value k,
                               uint32_t element_bytes)
{
    ops_gemm_emitter *e = q->e;
    const int along = e->c.operand->k_contiguous;
    hal_ir_value row = q->bits == 4 ? ops_gemm_quotient(e, k, 2) : k;
    row = along ? ops_gemm_quotient(e, row, element_bytes) : row;
    line = along ? line : ops_gemm_quotient(e, line, element_bytes);
    return ops_gemm_address(e, &e->c, line, row);
}

/* The words of a unit, vectors where they are neighbours. */
static void load_words(quantised_emitter *q, unit *u)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t packed = 8 / q->bits; /* steps of k in a byte */
    if (e->c.operand->k_contiguous) {
        const uint32_t count = STEPS / packed / 4;
        for (uint32_t j = 0; j < COLUMNS; j++) {
            hal_ir_value guard = ops_guard_and(b, u->inside, q->in_columns[j]);
            hal_ir_value place = word_place(q, q->column[j], u->turn, 4);
            hal_ir_value words = hal_ir_load_wide(b, e->c.memory, place,
                                                  (int32_t)(u->ahead * q->bits / 32), count, guard);
            for (uint32_t i = 0; i < count; i++) {
                u->words[j * count + i] = count == 1 ? words : hal_ir_extract(b, words, i);
            }
        }
        return;
    }
    for (uint32_t i = 0; i < STEPS / packed; i++) {
        hal_ir_value k = ops_gemm_plus(e, u->k, i * packed);
        hal_ir_value guard = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, k, e->k);
        guard = ops_guard_and(b, guard, q->in_columns[0]);
        u->words[i] =
            hal_ir_load_wide(b, e->c.memory, word_place(q, q->column[0], k, 4), 0, 1, guard);
    }
}

/* The same words byte by byte, for a B whose lines are no multiples of words. */
static void load_bytes(quantised_emitter *q, unit *u)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t packed = 8 / q->bits, along = e->c.operand->k_contiguous;
    const uint32_t words = COLUMNS * STEPS / packed / 4, of_column = STEPS / packed / 4;
    for (uint32_t w = 0; w < words; w++) {
        u->words[w] = HAL_IR_NONE;
        for (uint32_t byte = 0; byte < 4; byte++) {
            const uint32_t j = along ? w / of_column : byte;
            const uint32_t step = packed * (along ? w % of_column * 4 + byte : w);
            hal_ir_value k = ops_gemm_plus(e, u->k, step);
            hal_ir_value guard = ops_guard_and(b, hal_ir_lt(b, k, e->k), q->in_columns[j]);
            hal_ir_value x =
                hal_ir_load_wide(b, e->c.memory, word_place(q, q->column[j], k, 1), 0, 1, guard);
            x = hal_ir_shl(b, x, hal_ir_u32(b, 8 * byte));
            u->words[w] = byte ? hal_ir_or(b, u->words[w], x) : x;
        }
    }
}

/* The word of a column and step, and the bit where the element begins. */
static hal_ir_value find_word(quantised_emitter *q, const unit *u, uint32_t column, uint32_t step,
                              uint32_t *bit)
{
    const uint32_t packed = 8 / q->bits;
    if (q->e->c.operand->k_contiguous) {
        const uint32_t of_word = 32 / q->bits;
        *bit = step % of_word * q->bits;
        return u->words[column * (STEPS / of_word) + step / of_word];
    }
    *bit = column * 8 + step % packed * q->bits;
    return u->words[step / packed];
}

/* An integer less its zero point. */
static hal_ir_value decode_integer(quantised_emitter *q, hal_ir_value word, uint32_t bit)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t below = q->bits == 8 ? 16 : 12; /* that the second half is moved down */
    const uint32_t mask = (1u << q->bits) - 1;
    if (ops_quantised_half(q->form->format)) { /* plus half of the range */
        word = hal_ir_xor(b, word, hal_ir_u32(b, q->bits == 8 ? 0x80808080u : 0x88888888u));
    }
    if (bit + q->bits > MAGIC_EXPONENT) {
        word = hal_ir_shr(b, word, hal_ir_u32(b, below));
        bit -= below;
    }
    word = hal_ir_and(b, word, hal_ir_u32(b, mask << bit));
    word = hal_ir_or(b, word, q->magic);
    hal_ir_value x = hal_ir_bitcast(b, HAL_TYPE_F32, word);
    return bit == 0
               ? hal_ir_add(b, x, q->offset[0])
               : multiply_add(e, x, hal_ir_f32(b, 1.0f / (float)(1u << bit)), q->offset[bit / 4]);
}

static hal_ir_value decode(quantised_emitter *q, const unit *u, uint32_t column, uint32_t step)
{
    uint32_t bit;
    hal_ir_value word = find_word(q, u, column, step, &bit);
    hal_ir_value x =
        ops_quantised_is_float(q->form->format)
            ? ops_quantised_float(q->e->b, q->form->format, q->form->has_denormals, word, bit)
            : decode_integer(q, word, bit);
    return q->form->has_zeros ? hal_ir_sub(q->e->b, x, u->zeros[column]) : x;
}

/* The steps of a row of A; zeros beyond the last one. */
static void load_row(quantised_emitter *q, const unit *u, uint32_t row, hal_ir_value *values)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t width = e->a.operand->width;
    for (uint32_t i = 0; i < STEPS; i += width) {
        hal_ir_value k = ops_gemm_plus(e, u->k, i);
        hal_ir_value guard = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, k, e->k);
        const uint32_t ahead = e->a.operand->k_contiguous ? u->ahead + i : 0;
        hal_ir_value from = e->a.operand->k_contiguous ? u->turn : k;
        hal_ir_value place = ops_gemm_address(e, &e->a, q->row[row], from);
        hal_ir_value x = hal_ir_load_wide(b, e->a.memory, place, (int32_t)ahead, width, guard);
        for (uint32_t j = 0; j < width; j++) {
            values[i + j] = width == 1 ? x : hal_ir_extract(b, x, j);
        }
    }
}

/* With blocks the sum of a unit is scaled before it is added; else the sums are, at the end. */
static void multiply_unit(quantised_emitter *q, const unit *u)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_value rows[MAX_ROWS][STEPS];
    for (uint32_t i = 0; i < e->a.thread; i++) {
        load_row(q, u, i, rows[i]);
    }
    for (uint32_t j = 0; j < COLUMNS; j++) {
        hal_ir_value weights[STEPS];
        for (uint32_t s = 0; s < STEPS; s++) {
            weights[s] = decode(q, u, j, s);
        }
        for (uint32_t i = 0; i < e->a.thread; i++) {
            hal_ir_value *sum = &e->present[i * COLUMNS + j], part = *sum;
            for (uint32_t s = 0; s < STEPS; s++) {
                part = s == 0 && q->form->is_blocked
                           ? hal_ir_mul(e->b, rows[i][s], weights[s])
                           : multiply_add(e, rows[i][s], weights[s], part);
            }
            *sum = q->form->is_blocked ? multiply_add(e, part, u->scales[j], *sum) : part;
        }
    }
}

static void emit_k_loop(quantised_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t unroll = e->tiles->unroll, stride = q->slices * STEPS;
    unit whole = {0};
    if (!q->form->is_blocked) {
        load_scales(q, HAL_IR_NONE, HAL_IR_NONE, &whole);
    }
    hal_ir_value own = ops_gemm_times(e, q->slice, STEPS);
    hal_ir_value turn = hal_ir_for(b, hal_ir_u32(b, 0), e->k, hal_ir_u32(b, stride * unroll));
    for (uint32_t i = 0; i < unroll; i++) {
        unit *u = &q->units[i];
        *u = whole;
        u->turn = hal_ir_add(b, turn, own);
        u->ahead = i * stride;
        u->k = ops_gemm_plus(e, u->turn, u->ahead);
        u->inside = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, u->k, e->k);
        if (q->form->by_words) {
            load_words(q, u);
        } else {
            load_bytes(q, u);
        }
        if (q->form->is_blocked) {
            load_scales(q, u->k, u->inside, u);
        }
    }
    ops_gemm_get_sums(e);
    for (uint32_t i = 0; i < unroll; i++) {
        multiply_unit(q, &q->units[i]);
    }
    ops_gemm_set_sums(e);
    hal_ir_end(b);
    ops_gemm_get_sums(e);
    for (uint32_t i = 0; !q->form->is_blocked && i < e->a.thread * COLUMNS; i++) {
        e->present[i] = hal_ir_mul(b, e->present[i], whole.scales[i % COLUMNS]);
    }
}

/* Element (row, column) of the block, of slice s, is at (s * rows + row) * block_n + column. */
static void store_partials(quantised_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t rows = e->a.thread, width = e->tiles->block_n;
    hal_ir_value place = ops_gemm_times(e, q->slice, rows * width);
    place = hal_ir_add(b, place, e->c.first);
    for (uint32_t i = 0; i < rows; i++) {
        hal_ir_store_wide(b, q->shared, place, (int32_t)(i * width), HAL_IR_NONE,
                          hal_ir_pack(b, COLUMNS, &e->present[i * COLUMNS]));
    }
    hal_ir_barrier(b);
}

/* Adds `count` elements, `distance` apart, from `place` on. */
static hal_ir_value sum_shared(quantised_emitter *q, hal_ir_value place, uint32_t distance,
                               uint32_t count)
{
    hal_ir_builder *b = q->e->b;
    hal_ir_value sum = hal_ir_load(b, q->shared, place);
    for (uint32_t i = 1; i < count; i++) {
        hal_ir_value x =
            hal_ir_load_wide(b, q->shared, place, (int32_t)(i * distance), 1, HAL_IR_NONE);
        sum = hal_ir_add(b, sum, x);
    }
    return sum;
}

/* Work-items add the slices of an element in parts, which one of them adds then. */
static void store_results(quantised_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t width = e->tiles->block_n, outputs = e->a.thread * width;
    uint32_t parts = 1;
    while (2 * parts * outputs <= q->items && parts < q->slices) {
        parts *= 2;
    }
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    if (parts > 1) {
        const uint32_t distance = parts * outputs;
        if (distance < q->items) {
            hal_ir_if(b, hal_ir_lt(b, id, hal_ir_u32(b, distance)));
        }
        hal_ir_store(b, q->shared, id, sum_shared(q, id, distance, q->slices / parts));
        if (distance < q->items) {
            hal_ir_end(b);
        }
        hal_ir_barrier(b);
    }
    for (uint32_t first = 0; first < outputs; first += q->items) {
        hal_ir_value number = ops_gemm_plus(e, id, first);
        hal_ir_value row = hal_ir_add(b, e->a.origin, ops_gemm_quotient(e, number, width));
        hal_ir_value column = hal_ir_add(b, e->c.origin, ops_gemm_rest(e, number, width));
        hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), hal_ir_lt(b, column, e->n));
        if (outputs < q->items) {
            hal_ir_if(b, hal_ir_lt(b, id, hal_ir_u32(b, outputs)));
        }
        ops_gemm_element element;
        ops_gemm_fetch_element(e, row, column, guard, &element);
        ops_gemm_store_element(e, &element,
                               sum_shared(q, number, outputs, parts > 1 ? parts : q->slices));
        if (outputs < q->items) {
            hal_ir_end(b);
        }
    }
}

/* Neighbours in a group are neighbours in memory: slices of k, or columns. Rows beyond the last
 * read the last one, and their results are not stored. */
static void place_work_item(quantised_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t lanes = e->tiles->lanes_n;
    hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), lane;
    hal_ir_group_size(b, q->items, 1, 1);
    hal_ir_groups_per_unit(b, e->tiles->min_groups_per_unit);
    if (e->c.operand->k_contiguous) {
        q->slice = ops_gemm_rest(e, id, q->slices);
        lane = ops_gemm_quotient(e, id, q->slices);
    } else {
        lane = ops_gemm_rest(e, id, lanes);
        q->slice = ops_gemm_quotient(e, id, lanes);
    }
    e->c.first = ops_gemm_times(e, lane, COLUMNS);
    for (uint32_t j = 0; j < COLUMNS; j++) {
        q->column[j] = ops_gemm_plus(e, hal_ir_add(b, e->c.origin, e->c.first), j);
        q->in_columns[j] = hal_ir_lt(b, q->column[j], e->n);
    }
    for (uint32_t i = 0; i < e->a.thread; i++) {
        hal_ir_value last = hal_ir_sub(b, e->m, hal_ir_u32(b, 1));
        q->row[i] = hal_ir_min(b, ops_gemm_plus(e, e->a.origin, i), last);
    }
}

static void declare_block_matrix(ops_gemm_emitter *e, uint32_t number, uint32_t slot,
                                 block_matrix *m)
{
    hal_ir_value strides[2];
    m->memory = slot;
    m->base = ops_gemm_declare_matrix(e, number, strides, 2);
    m->stride_k = strides[0];
    m->stride_n = strides[1];
}

/* What is subtracted of the integers at each bit of a word: the power of two whose mantissa they
 * were put into, half of the range of signed ones, and the zero point. */
static void declare_offsets(quantised_emitter *q)
{
    hal_ir_builder *b = q->e->b;
    const int half = (int)ops_quantised_half(q->form->format);
    for (int i = 0; i < POSITIONS; i++) {
        hal_ir_value power = hal_ir_f32(b, (float)((1 << (MAGIC_EXPONENT - 4 * i)) + half));
        q->offset[i] = hal_ir_neg(b, hal_ir_add(b, power, q->zero));
    }
}

void ops_gemm_emit_quantised(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    quantised_emitter q = {.e = e, .form = &e->key->quantisation};
    const uint32_t first = 3u + e->key->input_count;
    q.slices = t->intra_group_split_k;
    q.items = q.slices * t->lanes_n;
    q.bits = ops_quantised_bits(q.form->format);
    q.zero = hal_ir_scalar_value(b, "zero", HAL_TYPE_F32);
    q.block_shift = hal_ir_scalar_value(b, "block_shift", HAL_TYPE_U32);
    q.magic = hal_ir_scalar_value(b, "magic", HAL_TYPE_U32);
    declare_block_matrix(e, first, q.form->scale_slot, &q.scales);
    if (q.form->has_zeros) {
        declare_block_matrix(e, first + 1, q.form->zero_slot, &q.zeros);
    }
    q.shared = hal_ir_shared(b, "partials", HAL_TYPE_F32, q.items * t->block_m * COLUMNS);
    declare_offsets(&q);
    place_work_item(&q);
    for (uint32_t i = 0; i < e->a.thread * COLUMNS; i++) {
        e->sums[i] = hal_ir_var(b, hal_ir_f32(b, 0));
    }
    emit_k_loop(&q);
    store_partials(&q);
    store_results(&q);
}
