/* The portable GEMM kernel on matrix units: tiles of A and B pass through a ring in shared memory,
 * in the layout of global memory, by asynchronous copies of 4 to 16 bytes, or with 2 stages through
 * registers. A warp of 32 lanes reads the words of MATRIX_MULTIPLY, 8 along k per step, and
 * multiplies 16 x 8 tiles.
 *
 * Rows and columns of the lanes are those of gemm/kernel.c, so that results are stored as in other
 * kernels; where a lane would store element by element, sums go through shared memory first. A lane
 * has neighbouring columns: where a B of F32 or halves is stored by rows, one read of 4 columns
 * serves 4 tiles of columns. Where an A of halves is stored by columns, a lane has neighbouring
 * rows.
 *
 * Lines of halves that are no multiples of words are read by elements, through registers. Accesses
 * beyond the last line read that one again, as their results are not stored; beyond k they are 0.
 *
 * F32 values are split into parts of 11 bits of mantissa. Three terms, small x big + big x small
 * + big x big, are as accurate as F32. Units may truncate as they add, so sums can be flushed:
 * those of one tile start at zero and are added to the accumulators in F32. */
#include "emitter.h"
#include "kernel.h"

#define WORDS 8u     /* along k of a step */
#define MAX_WORDS 4u /* of an access */
#define MAX_ACCESSES 32u
#define MAX_TILES 16u /* of 16 rows or 8 columns, of a warp */

/* The copies and reads of A or B. A tile has `far` rows of `near` contiguous words: of 4 bytes,
 * with F64 of 8. */
typedef struct stream {
    ops_gemm_side *side;
    uint32_t pack; /* elements of a word */
    int by_halves; /* the matrix is read by halves, two for each word; else by words */
    uint32_t far, near, pitch;
    uint32_t begin;                  /* word of the stage where the tile begins */
    uint32_t words;                  /* of a copy: 1, 2 or 4 */
    uint32_t count;                  /* copies of a work-item */
    hal_ir_value to;                 /* word of the stage that the first copy writes */
    hal_ir_value from[MAX_ACCESSES]; /* word or half of the matrix for k = 0 */
    hal_ir_value step[MAX_ACCESSES]; /* of k, within the tile */
    hal_ir_value second; /* by halves across k, or separable along k: from the first half to the
                            second */
    hal_ir_value hop;    /* from copy to copy; NONE: each has a place of its own, `from` */
    hal_ir_value at;     /* of the last copy */
    hal_ir_value first;  /* word of the stage where the lane's reads begin */
    hal_ir_value offset, target; /* of the tile that is copied: added to `from`; first word */
    hal_ir_value loaded[MAX_ACCESSES * MAX_WORDS]; /* variables: the next tile, in registers */
} stream;

typedef struct pipeline {
    ops_gemm_emitter *e;
    hal_ir_memory_id shared;
    uint32_t items, stage_size, steps, rows, columns; /* tiles of the warp */
    hal_type type;                                    /* of memory */
    hal_ir_value g, t;
    hal_ir_value k;          /* where the tile that is copied begins */
    hal_ir_value some, left; /* of the tile that is copied: has steps of k; their number */
    hal_ir_value full;       /* it has all of its steps */
    int unguarded;           /* accesses are emitted for such a tile */
    stream a, b;
    hal_ir_value words_a[2][MAX_TILES][4], words_b[2][MAX_TILES][2]; /* of this step and the next */
    hal_ir_value next_a[MAX_TILES][4], next_b[MAX_TILES][2];         /* variables */
    hal_ir_value parts_a[2][MAX_TILES][4], parts_b[2][MAX_TILES][2]; /* big and small */
    hal_ir_value fresh[OPS_GEMM_MAX_SUMS];
} pipeline;

/* Elements of a word. */
static uint32_t pack_of(hal_type type)
{
    return hal_type_size(type) == 2 ? 2 : 1;
}

/* Padding that keeps a warp's reads in different banks of shared memory; those of F64 are of half a
 * warp, in half as many banks. */
static uint32_t pitch_of(uint32_t near, hal_type type, int k_contiguous)
{
    return near + (k_contiguous || type != HAL_TYPE_F32 ? 4u : 8u);
}

/* The line of an access, at most the last one where it may lie beyond. `lines` are read at once. */
static hal_ir_value existing_line(pipeline *p, const stream *s, hal_ir_value line, uint32_t lines)
{
    hal_ir_builder *b = p->e->b;
    return p->e->key->whole
               ? line
               : hal_ir_min(b, line, hal_ir_sub(b, s->side->limit, hal_ir_u32(b, lines)));
}

/* Elements of a separable operand as words of the matrix: all places are multiples of them. */
static hal_ir_value separable_words(pipeline *p, const stream *s, hal_ir_value elements)
{
    if (s->by_halves || s->pack == 1) {
        return elements;
    }
    const uint32_t shift = (uint32_t)__builtin_ctz(s->pack);
    return hal_ir_shr(p->e->b, elements, ops_gemm_index(p->e, hal_ir_u32(p->e->b, shift)));
}

/* The same for a separable operand: without k, which each tile adds. */
static void place_separable_copies(pipeline *p, stream *s, hal_ir_value first,
                                   hal_ir_value elements)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t apart = p->items * s->words / s->near;
    hal_ir_value place = HAL_IR_NONE;
    s->hop = HAL_IR_NONE;
    if (!s->side->operand->k_contiguous) {
        const uint32_t lines = s->by_halves ? 1 : s->words * s->pack;
        hal_ir_value line = hal_ir_add(b, s->side->origin, elements);
        line = existing_line(p, s, line, lines);
        place = ops_gemm_digits_place(b, &s->side->line_place, line);
        if (s->by_halves) {
            hal_ir_value next = hal_ir_min(b, ops_gemm_plus(e, line, 1),
                                           hal_ir_sub(b, s->side->limit, hal_ir_u32(b, 1)));
            s->second = hal_ir_sub(b, ops_gemm_digits_place(b, &s->side->line_place, next), place);
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        hal_ir_value far = ops_gemm_plus(e, first, i * apart);
        s->step[i] = s->side->operand->k_contiguous ? elements : far;
        if (s->side->operand->k_contiguous) {
            far = existing_line(p, s, hal_ir_add(b, s->side->origin, far), 1);
            place = ops_gemm_digits_place(b, &s->side->line_place, far);
        }
        s->from[i] = hal_ir_add(b, s->side->base, separable_words(p, s, place));
    }
}

/* The copies of a work-item, which are whole rows of the tile apart. */
static void place_copies(pipeline *p, stream *s)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t run = s->near / s->words;
    const int k_contiguous = s->side->operand->k_contiguous;
    hal_ir_value near = ops_gemm_times(e, ops_gemm_rest(e, e->item, run), s->words);
    hal_ir_value first = ops_gemm_quotient(e, e->item, run);
    hal_ir_value elements = ops_gemm_times(e, near, s->pack), column = near;
    s->to = ops_gemm_plus(e, hal_ir_add(b, ops_gemm_times(e, first, s->pitch), near), s->begin);
    if (ops_gemm_is_separable(s->side)) {
        place_separable_copies(p, s, first, elements);
        return;
    }
    if (k_contiguous) {
        column = s->by_halves ? elements : near;
    } else {
        const uint32_t lines = s->by_halves ? 1 : s->words * s->pack;
        column = existing_line(p, s, hal_ir_add(b, s->side->origin, elements), lines);
        if (s->by_halves) {
            hal_ir_value both = hal_ir_lt(b, ops_gemm_plus(e, column, 1), s->side->limit);
            s->second = hal_ir_select(b, both, hal_ir_u32(b, 1), hal_ir_u32(b, 0));
            s->second = ops_gemm_index(e, s->second);
        } else {
            column = ops_gemm_quotient(e, column, s->pack);
        }
    }
    const uint32_t apart = p->items / run;
    s->hop = HAL_IR_NONE;
    if ((!k_contiguous || e->key->whole) && s->words < MAX_WORDS) { /* saves registers */
        s->hop = hal_ir_mul(b, s->side->stride, ops_gemm_index(e, hal_ir_u32(b, apart)));
    }
    for (uint32_t i = 0; i < s->count; i++) {
        hal_ir_value far = ops_gemm_plus(e, first, i * apart), row = far;
        s->step[i] = k_contiguous ? elements : far;
        if (k_contiguous) {
            row = existing_line(p, s, hal_ir_add(b, s->side->origin, far), 1);
        }
        s->from[i] =
            hal_ir_add(b, s->side->base, hal_ir_mul(b, ops_gemm_index(e, row), s->side->stride));
        s->from[i] = hal_ir_add(b, s->from[i], ops_gemm_index(e, column));
    }
}

static void open_stream(pipeline *p, stream *s, ops_gemm_side *side, const ops_gemm_operand *o,
                        uint32_t begin)
{
    ops_gemm_emitter *e = p->e;
    const uint32_t depth = e->tiles->block_k;
    s->side = side;
    s->pack = pack_of(e->key->type_ab);
    s->by_halves = o->width < s->pack;
    s->words = s->by_halves ? 1 : o->width / s->pack;
    s->far = o->k_contiguous ? side->block : depth;
    s->near = (o->k_contiguous ? depth : side->block) / s->pack;
    s->pitch = pitch_of(s->near, e->key->type_ab, o->k_contiguous);
    s->begin = begin;
    s->count = s->far * s->near / s->words / p->items;
    place_copies(p, s);
}

/* Computes where the lane's reads of a stage begin: its first row of A, its first columns of B. */
static void place_reads(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t warp_n = e->c.lanes * e->c.thread;
    hal_ir_value warp = ops_gemm_quotient(e, e->item, HAL_IR_MATRIX_LANES);
    hal_ir_value column = ops_gemm_times(e, ops_gemm_rest(e, warp, e->c.block / warp_n), warp_n);
    if (e->key->a.k_contiguous) {
        p->a.first = hal_ir_add(b, ops_gemm_times(e, e->a.first, p->a.pitch), p->t);
    } else {
        hal_ir_value row = ops_gemm_times(e, p->t, p->a.pack);
        p->a.first = hal_ir_add(b, ops_gemm_times(e, row, p->a.pitch),
                                ops_gemm_quotient(e, e->a.first, p->a.pack));
    }
    if (e->key->b.k_contiguous) {
        column = hal_ir_add(b, column, p->g);
        p->b.first = hal_ir_add(b, ops_gemm_times(e, column, p->b.pitch), p->t);
    } else {
        column = hal_ir_add(b, column, ops_gemm_times(e, p->g, e->c.strip / 2));
        hal_ir_value row = ops_gemm_times(e, p->t, p->b.pack);
        p->b.first = hal_ir_add(b, ops_gemm_times(e, row, p->b.pitch),
                                ops_gemm_quotient(e, column, p->b.pack));
    }
}

/* The place of the step of k that a copy of the tile begins with, in words. */
static hal_ir_value separable_step(pipeline *p, const stream *s, uint32_t number)
{
    hal_ir_value k = hal_ir_add(p->e->b, p->k, s->step[number]);
    return separable_words(p, s, ops_gemm_k_place(p->e, s->side, k));
}

/* The distance of the tile at step k. Copies across k have distances of their own. */
static void place_separable_tile(pipeline *p, stream *s)
{
    hal_ir_builder *b = p->e->b;
    if (!s->side->operand->k_contiguous) {
        return;
    }
    s->offset = separable_step(p, s, 0);
    if (s->by_halves) {
        hal_ir_value next = hal_ir_add(b, p->k, ops_gemm_plus(p->e, s->step[0], 1));
        s->second = hal_ir_sub(b, ops_gemm_k_place(p->e, s->side, next), s->offset);
    }
}

/* Computes source and target of the tile at step k. */
static void place_tile(pipeline *p, hal_ir_value k, hal_ir_value stage)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    stream *streams[2] = {&p->a, &p->b};
    p->k = k;
    p->some = hal_ir_lt(b, k, e->k);
    p->left = hal_ir_select(b, p->some, hal_ir_sub(b, e->k, k), hal_ir_u32(b, 0));
    p->full = hal_ir_ge(b, p->left, hal_ir_u32(b, e->tiles->block_k));
    for (uint32_t i = 0; i < 2; i++) {
        stream *s = streams[i];
        if (ops_gemm_is_separable(s->side)) {
            place_separable_tile(p, s);
        } else {
            s->offset = s->side->operand->k_contiguous
                            ? ops_gemm_index(e, ops_gemm_quotient(e, k, s->by_halves ? 1 : s->pack))
                            : hal_ir_mul(b, ops_gemm_index(e, k), s->side->stride);
        }
        s->target = hal_ir_add(b, ops_gemm_times(e, stage, p->stage_size), s->to);
    }
}

/* Splits an F32 word into the rounded part that the unit uses (it ignores lower bits) and the
 * remainder; others are used as they are. Rounding a NaN would carry into its sign; with three
 * terms the remainder is NaN. */
static void split_word(pipeline *p, hal_ir_value bits, hal_ir_value *big, hal_ir_value *small)
{
    hal_ir_builder *b = p->e->b;
    *big = *small = bits;
    if (p->type != HAL_TYPE_F32) {
        return;
    }
    hal_ir_value x = hal_ir_bitcast(b, HAL_TYPE_F32, bits);
    *big = hal_ir_add(b, bits, hal_ir_u32(b, 0x1000));
    if (p->e->tiles->matrix == 1) {
        *big = hal_ir_select(b, hal_ir_eq(b, x, x), *big, bits);
        return;
    }
    hal_ir_value counted = hal_ir_and(b, *big, hal_ir_u32(b, 0xffffe000u));
    *small =
        hal_ir_bitcast(b, HAL_TYPE_U32, hal_ir_sub(b, x, hal_ir_bitcast(b, HAL_TYPE_F32, counted)));
}

/* Whether k of the work-item's words, or of their second halves, is in the tile. */
static hal_ir_value access_guard(pipeline *p, stream *s, uint32_t number, uint32_t half)
{
    hal_ir_builder *b = p->e->b;
    const uint32_t later = s->side->operand->k_contiguous ? half : 0;
    return p->unguarded       ? HAL_IR_NONE
           : p->e->key->whole ? p->some
                              : hal_ir_lt(b, ops_gemm_plus(p->e, s->step[number], later), p->left);
}

static hal_ir_value access_source(pipeline *p, stream *s, uint32_t number)
{
    hal_ir_builder *b = p->e->b;
    if (ops_gemm_is_separable(s->side) && !s->side->operand->k_contiguous) {
        return hal_ir_add(b, s->from[number], separable_step(p, s, number));
    }
    s->at = number > 0 && s->hop != HAL_IR_NONE ? hal_ir_add(b, s->at, s->hop)
                                                : hal_ir_add(b, s->from[number], s->offset);
    return s->at;
}

static hal_ir_value access_target(pipeline *p, stream *s, uint32_t number)
{
    const uint32_t apart = p->items * s->words / s->near * s->pitch;
    return ops_gemm_plus(p->e, s->target, number * apart);
}

static void copy_access(pipeline *p, stream *s, uint32_t number)
{
    hal_ir_builder *b = p->e->b;
    hal_ir_async_copy(b, p->shared, access_target(p, s, number), s->side->memory,
                      access_source(p, s, number), s->words, access_guard(p, s, number, 0));
}

static void keep_loaded(pipeline *p, hal_ir_value *variable, hal_ir_value word, bool is_first)
{
    if (is_first) {
        *variable = hal_ir_var(p->e->b, word);
    } else {
        hal_ir_set(p->e->b, *variable, word);
    }
}

/* Halves stay apart until they are stored, since a word would wait for both. */
static void load_halves(pipeline *p, stream *s, uint32_t number, bool is_first)
{
    hal_ir_builder *b = p->e->b;
    const int k_contiguous = s->side->operand->k_contiguous;
    const bool by_second = !k_contiguous || ops_gemm_is_separable(s->side);
    hal_ir_value from = access_source(p, s, number);
    for (uint32_t half = 0; half < 2; half++) {
        hal_ir_value at = half && by_second ? hal_ir_add(b, from, s->second) : from;
        hal_ir_value x = hal_ir_load_wide(b, s->side->memory, at, half && !by_second, 1,
                                          access_guard(p, s, number, half));
        keep_loaded(p, &s->loaded[2 * number + half], x, is_first);
    }
}

/* Loads the tile into the registers of the work-items; zeros beyond the matrix. */
static void load_tile(pipeline *p, stream *s, bool is_first)
{
    hal_ir_builder *b = p->e->b;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->by_halves) {
            load_halves(p, s, i, is_first);
            continue;
        }
        hal_ir_value all = hal_ir_load_wide(b, s->side->memory, access_source(p, s, i), 0, s->words,
                                            access_guard(p, s, i, 0));
        for (uint32_t w = 0; w < s->words; w++) {
            hal_ir_value word = s->words == 1 ? all : hal_ir_extract(b, all, w);
            keep_loaded(p, &s->loaded[s->words * i + w], word, is_first);
        }
    }
}

/* Loads the next tile, without guards where that has all of its steps of k. */
static void load_next_tile(pipeline *p)
{
    hal_ir_builder *b = p->e->b;
    if (p->e->key->whole) {
        load_tile(p, &p->a, 0);
        load_tile(p, &p->b, 0);
        return;
    }
    hal_ir_if(b, p->full);
    p->unguarded = 1;
    load_tile(p, &p->a, 0);
    load_tile(p, &p->b, 0);
    p->unguarded = 0;
    hal_ir_else(b);
    load_tile(p, &p->a, 0);
    load_tile(p, &p->b, 0);
    hal_ir_end(b);
}

static void store_tile(pipeline *p, stream *s)
{
    hal_ir_builder *b = p->e->b;
    for (uint32_t i = 0; i < s->count; i++) {
        hal_ir_value words[MAX_WORDS];
        for (uint32_t w = 0; w < s->words && !s->by_halves; w++) {
            words[w] = hal_ir_get(b, s->loaded[s->words * i + w]);
        }
        if (s->by_halves) {
            hal_ir_value high =
                hal_ir_shl(b, hal_ir_get(b, s->loaded[2 * i + 1]), hal_ir_u32(b, 16));
            words[0] = hal_ir_or(b, hal_ir_get(b, s->loaded[2 * i]), high);
        }
        hal_ir_store_wide(b, p->shared, access_target(p, s, i), 0, HAL_IR_NONE,
                          s->words == 1 ? words[0] : hal_ir_pack(b, s->words, words));
    }
}

/* Issues a part of the tile's copies, which are spread between the multiplications. */
static void copy_part(pipeline *p, uint32_t part, uint32_t parts)
{
    const uint32_t count = p->a.count + p->b.count;
    for (uint32_t i = 0; i < count; i++) {
        if (i * parts / count == part) {
            copy_access(p, i < p->a.count ? &p->a : &p->b, i < p->a.count ? i : i - p->a.count);
        }
    }
    if (part + 1 == parts) {
        hal_ir_async_commit(p->e->b);
    }
}

/* Waits until the next tile is complete and all work-items have read the present one. */
static void await_tile(pipeline *p)
{
    hal_ir_async_wait(p->e->b, p->e->tiles->stages - 2u);
    hal_ir_barrier(p->e->b);
}

static hal_ir_value read_word(pipeline *p, hal_ir_value place, uint32_t offset)
{
    hal_ir_builder *b = p->e->b;
    hal_ir_value read = hal_ir_load_wide(b, p->shared, place, (int32_t)offset, 1, HAL_IR_NONE);
    return p->type == HAL_TYPE_F32 ? hal_ir_bitcast(b, HAL_TYPE_U32, read) : read;
}

/* Words along k of two lines from the words across k of two rows. */
static void turn_pairs(pipeline *p, hal_ir_value first, hal_ir_value second, hal_ir_value *low,
                       hal_ir_value *high)
{
    hal_ir_builder *b = p->e->b;
    hal_ir_value half = hal_ir_u32(b, 16);
    *low = hal_ir_or(b, hal_ir_and(b, first, hal_ir_u32(b, 0xffff)), hal_ir_shl(b, second, half));
    *high =
        hal_ir_or(b, hal_ir_shr(b, first, half), hal_ir_and(b, second, hal_ir_u32(b, 0xffff0000u)));
}

/* Halves stored by columns: the lane's rows of each 16 are neighbours. */
static void read_a_pairs(pipeline *p, hal_ir_value place, uint32_t step, uint32_t now)
{
    for (uint32_t i = 0; i < p->rows; i++) {
        for (uint32_t n = 0; n < 2; n++) {
            hal_ir_value rows[2];
            for (uint32_t r = 0; r < 2; r++) {
                const uint32_t row = 2 * (step * WORDS + 4 * n) + r;
                rows[r] = read_word(p, place, p->a.begin + row * p->a.pitch + 8 * i);
            }
            turn_pairs(p, rows[0], rows[1], &p->words_a[now][i][2 * n],
                       &p->words_a[now][i][2 * n + 1]);
        }
    }
}

/* Loads rows g and g + 8 of each 16, words t and t + 4. */
static void read_a(pipeline *p, hal_ir_value place, uint32_t step, uint32_t now)
{
    const uint32_t pitch = p->a.pitch;
    if (!p->e->key->a.k_contiguous && p->a.pack == 2) {
        read_a_pairs(p, place, step, now);
        return;
    }
    for (uint32_t i = 0; i < p->rows; i++) {
        for (uint32_t n = 0; n < 4; n++) {
            const uint32_t row = 16 * i + n % 2 * 8, along = step * WORDS + n / 2 * 4;
            const uint32_t offset =
                p->e->key->a.k_contiguous ? row * pitch + along : along * pitch + row;
            p->words_a[now][i][n] = read_word(p, place, p->a.begin + offset);
        }
    }
}

/* Halves stored by rows: transposes 4 columns of two neighbouring rows into words along k. */
static void read_b_pairs(pipeline *p, hal_ir_value place, uint32_t step, uint32_t now)
{
    hal_ir_builder *b = p->e->b;
    for (uint32_t j = 0; j < p->columns; j += 4) {
        for (uint32_t n = 0; n < 2; n++) {
            hal_ir_value rows[2];
            for (uint32_t r = 0; r < 2; r++) {
                const uint32_t row = 2 * (step * WORDS + 4 * n) + r;
                const uint32_t offset = p->b.begin + row * p->b.pitch + 4 * j;
                rows[r] = hal_ir_load_wide(b, p->shared, place, (int32_t)offset, 2, HAL_IR_NONE);
            }
            for (uint32_t q = 0; q < 2; q++) {
                turn_pairs(p, hal_ir_extract(b, rows[0], q), hal_ir_extract(b, rows[1], q),
                           &p->words_b[now][j + 2 * q][n], &p->words_b[now][j + 2 * q + 1][n]);
            }
        }
    }
}

/* F32 stored by rows: loads 4 neighbouring columns at once, one for each of 4 tiles. */
static void read_b_columns(pipeline *p, hal_ir_value place, uint32_t step, uint32_t now)
{
    hal_ir_builder *b = p->e->b;
    for (uint32_t j = 0; j < p->columns; j += 4) {
        for (uint32_t n = 0; n < 2; n++) {
            const uint32_t offset = p->b.begin + (step * WORDS + 4 * n) * p->b.pitch + 8 * j;
            hal_ir_value four =
                hal_ir_load_wide(b, p->shared, place, (int32_t)offset, 4, HAL_IR_NONE);
            for (uint32_t q = 0; q < 4; q++) {
                p->words_b[now][j + q][n] =
                    hal_ir_bitcast(b, HAL_TYPE_U32, hal_ir_extract(b, four, q));
            }
        }
    }
}

static void read_b(pipeline *p, hal_ir_value place, uint32_t step, uint32_t now)
{
    if (!p->e->key->b.k_contiguous && p->b.pack == 2) {
        read_b_pairs(p, place, step, now);
        return;
    }
    if (!p->e->key->b.k_contiguous && p->type == HAL_TYPE_F32) {
        read_b_columns(p, place, step, now);
        return;
    }
    for (uint32_t j = 0; j < p->columns; j++) {
        for (uint32_t n = 0; n < 2; n++) {
            const uint32_t column = 8 * j, along = step * WORDS + 4 * n;
            const uint32_t offset = p->e->key->b.k_contiguous ? column * p->b.pitch + along
                                                              : along * p->b.pitch + column;
            p->words_b[now][j][n] = read_word(p, place, p->b.begin + offset);
        }
    }
}

static void read_step(pipeline *p, hal_ir_value stage, uint32_t step, uint32_t into)
{
    hal_ir_builder *b = p->e->b;
    hal_ir_value begin = ops_gemm_times(p->e, stage, p->stage_size);
    read_a(p, hal_ir_add(b, begin, p->a.first), step, into);
    read_b(p, hal_ir_add(b, begin, p->b.first), step, into);
}

/* Words that are read before the next iteration are kept in variables. */
static void carry_words(pipeline *p,
                        void (*carry)(pipeline *p, hal_ir_value *variable, hal_ir_value *word),
                        uint32_t now)
{
    for (uint32_t i = 0; i < 4 * p->rows; i++) {
        carry(p, &p->next_a[i / 4][i % 4], &p->words_a[now][i / 4][i % 4]);
    }
    for (uint32_t i = 0; i < 2 * p->columns; i++) {
        carry(p, &p->next_b[i / 2][i % 2], &p->words_b[now][i / 2][i % 2]);
    }
}

static void open_word(pipeline *p, hal_ir_value *variable, hal_ir_value *word)
{
    *variable = hal_ir_var(p->e->b, *word);
}

static void get_word(pipeline *p, hal_ir_value *variable, hal_ir_value *word)
{
    *word = hal_ir_get(p->e->b, *variable);
}

static void split_words(pipeline *p, uint32_t now)
{
    for (uint32_t i = 0; i < 4 * p->rows; i++) {
        split_word(p, p->words_a[now][i / 4][i % 4], &p->parts_a[0][i / 4][i % 4],
                   &p->parts_a[1][i / 4][i % 4]);
    }
    for (uint32_t i = 0; i < 2 * p->columns; i++) {
        split_word(p, p->words_b[now][i / 2][i % 2], &p->parts_b[0][i / 2][i % 2],
                   &p->parts_b[1][i / 2][i % 2]);
    }
}

/* Indices of the work-item's sums in a 16 x 8 tile: two columns of two rows. */
static void tile_sums(const pipeline *p, uint32_t row, uint32_t column, uint32_t sums[4])
{
    const uint32_t each = p->e->c.strip / 2; /* tiles of columns that lie in one another */
    const uint32_t first = column / each * p->e->c.strip + column % each;
    for (uint32_t i = 0; i < 4; i++) {
        sums[i] = (2 * row + i / 2) * p->e->c.thread + first + i % 2 * each;
    }
}

static void multiply_tile_step(pipeline *p, hal_type type, uint32_t row, uint32_t column,
                               const hal_ir_value *a, const hal_ir_value *b)
{
    hal_ir_builder *builder = p->e->b;
    uint32_t sums[4];
    hal_ir_value c[4];
    tile_sums(p, row, column, sums);
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = p->fresh[sums[i]];
    }
    hal_ir_value product =
        hal_ir_matrix_multiply(builder, type, hal_ir_pack(builder, 4, a),
                               hal_ir_pack(builder, 2, b), hal_ir_pack(builder, 4, c));
    for (uint32_t i = 0; i < 4; i++) {
        p->fresh[sums[i]] = hal_ir_extract(builder, product, i);
    }
}

static void multiply_step(pipeline *p, uint32_t now)
{
    const hal_type type = p->e->key->type_ab;
    const uint32_t terms = p->e->tiles->matrix;
    split_words(p, now);
    for (uint32_t j = 0; j < p->columns; j++) {
        for (uint32_t i = 0; i < p->rows; i++) {
            const uint32_t row = j & 1 ? p->rows - 1 - i : i;
            if (terms == 3) {
                multiply_tile_step(p, type, row, j, p->parts_a[1][row], p->parts_b[0][j]);
                multiply_tile_step(p, type, row, j, p->parts_a[0][row], p->parts_b[1][j]);
            }
            multiply_tile_step(p, type, row, j, p->parts_a[0][row], p->parts_b[0][j]);
        }
    }
}

static void begin_sums(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_value zero = hal_ir_number(e->b, e->key->accumulator, 0);
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        p->fresh[i] = e->tiles->flush ? zero : e->present[i];
    }
}

static void end_sums(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    for (uint32_t i = 0; i < e->a.thread * e->c.thread; i++) {
        e->present[i] =
            e->tiles->flush ? hal_ir_add(e->b, e->present[i], p->fresh[i]) : p->fresh[i];
    }
}

/* The words of each step are read while the previous step is multiplied, also across tiles. One
 * barrier per tile: after it the present tile is read and its stage may be overwritten. */
static void multiply_tile(pipeline *p, hal_ir_value stage, hal_ir_value next)
{
    begin_sums(p);
    for (uint32_t step = 0; step < p->steps; step++) {
        if (step + 1 < p->steps) {
            read_step(p, stage, step + 1, ~step & 1);
            copy_part(p, step, p->steps - 1);
        } else {
            await_tile(p);
            read_step(p, next, 0, ~step & 1);
        }
        multiply_step(p, step & 1);
    }
    end_sums(p);
}

static void set_word(pipeline *p, hal_ir_value *variable, hal_ir_value *word)
{
    hal_ir_set(p->e->b, *variable, *word);
}

static void multiply_tiles(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t stages = e->tiles->stages, depth = e->tiles->block_k;
    hal_ir_value zero = hal_ir_u32(b, 0), last = hal_ir_u32(b, stages - 1);
    for (uint32_t i = 0; i + 1 < stages; i++) {
        place_tile(p, hal_ir_u32(b, i * depth), hal_ir_u32(b, i));
        copy_part(p, 0, 1);
    }
    await_tile(p);
    read_step(p, zero, 0, 0);
    carry_words(p, open_word, 0);
    hal_ir_value present = hal_ir_var(b, zero), filled = hal_ir_var(b, last);
    hal_ir_value k = hal_ir_for(b, zero, e->k, hal_ir_u32(b, depth));
    hal_ir_value stage = hal_ir_get(b, present);
    hal_ir_value next =
        hal_ir_select(b, hal_ir_lt(b, stage, last), ops_gemm_plus(e, stage, 1), zero);
    place_tile(p, ops_gemm_plus(e, k, (stages - 1) * depth), hal_ir_get(b, filled));
    hal_ir_set(b, filled, stage);
    hal_ir_set(b, present, next);
    ops_gemm_get_sums(e);
    carry_words(p, get_word, 0);
    multiply_tile(p, stage, next);
    carry_words(p, set_word, p->steps & 1);
    ops_gemm_set_sums(e);
    hal_ir_end(b);
}

/* The same through registers: the next tile is loaded before the barrier after which the present
 * one is multiplied, so that no compiler moves the loads to their stores. One barrier per tile: the
 * stage that is stored was read before the previous one. */
static void multiply_tiles_in_registers(pipeline *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    hal_ir_value zero = hal_ir_u32(b, 0), depth = hal_ir_u32(b, e->tiles->block_k);
    place_tile(p, zero, zero);
    load_tile(p, &p->a, 1);
    load_tile(p, &p->b, 1);
    hal_ir_value filled = hal_ir_var(b, zero);
    hal_ir_value k = hal_ir_for(b, zero, e->k, depth);
    hal_ir_value stage = hal_ir_get(b, filled);
    hal_ir_set(b, filled, hal_ir_xor(b, stage, hal_ir_u32(b, 1)));
    hal_ir_value next = hal_ir_add(b, k, depth);
    if (e->key->whole) { /* after the last tile loads that one again, without a guard */
        next = hal_ir_min(b, next, hal_ir_sub(b, e->k, depth));
    }
    place_tile(p, next, stage);
    p->some = e->key->whole ? HAL_IR_NONE : p->some;
    store_tile(p, &p->a);
    store_tile(p, &p->b);
    load_next_tile(p);
    hal_ir_barrier(b);
    ops_gemm_get_sums(e);
    begin_sums(p);
    read_step(p, stage, 0, 0);
    for (uint32_t step = 0; step < p->steps; step++) {
        if (step + 1 < p->steps) {
            read_step(p, stage, step + 1, ~step & 1);
        }
        multiply_step(p, step & 1);
    }
    end_sums(p);
    ops_gemm_set_sums(e);
    hal_ir_end(b);
}

uint32_t ops_gemm_matrix_bytes(const ops_gemm_kernel_key *key)
{
    const ops_gemm_tiles *t = &key->tiles;
    const uint32_t pack = pack_of(key->type_ab), depth = t->block_k;
    uint32_t words = 0;
    for (int i = 0; i < 2; i++) {
        const int k_contiguous = i ? key->b.k_contiguous : key->a.k_contiguous;
        const uint32_t lines = i ? t->block_n : t->block_m;
        const uint32_t far = k_contiguous ? lines : depth,
                       near = (k_contiguous ? depth : lines) / pack;
        words += far * pitch_of(near, key->type_ab, k_contiguous);
    }
    return pack * hal_type_size(key->type_ab) * t->stages * words;
}

void ops_gemm_emit_matrix(ops_gemm_emitter *e)
{
    const ops_gemm_tiles *t = e->tiles;
    const uint32_t pack = pack_of(e->key->type_ab);
    pipeline p = {.e = e, .steps = t->block_k / (WORDS * pack)};
    p.items = (uint32_t)(t->block_m / t->thread_m) * (t->block_n / t->thread_n);
    p.rows = t->thread_m / 2u;
    p.columns = t->thread_n / 2u;
    p.type = pack == 1 ? e->key->type_ab : (hal_type)HAL_TYPE_U32;
    p.shared =
        hal_ir_shared(e->b, "tiles", p.type, ops_gemm_matrix_bytes(e->key) / hal_type_size(p.type));
    hal_ir_value lane = ops_gemm_rest(e, e->item, HAL_IR_MATRIX_LANES);
    p.g = ops_gemm_quotient(e, lane, 4);
    p.t = ops_gemm_rest(e, lane, 4);
    open_stream(&p, &p.a, &e->a, &e->key->a, 0);
    open_stream(&p, &p.b, &e->c, &e->key->b, p.a.far * p.a.pitch);
    p.stage_size = p.b.begin + p.b.far * p.b.pitch;
    place_reads(&p);
    if (t->stages > 2) {
        multiply_tiles(&p);
    } else {
        multiply_tiles_in_registers(&p);
    }
    ops_gemm_get_sums(e);
    if (ops_gemm_exchanges_sums(e->key, ops_gemm_matrix_bytes(e->key))) {
        const ops_gemm_exchange exchange = {e, p.shared, p.type, p.g, p.t};
        ops_gemm_store_exchanged(&exchange);
    } else {
        ops_gemm_emit_rows(e, 0, t->thread_m);
    }
}
