/* The portable GEMM kernel of few rows whose quantised B matrix units multiply: the transposed
 * product, of 16 columns of B and 8 rows of A at a time.
 *
 * A lane reads the packed numbers of its columns from global memory to registers, up to 16 bytes
 * along k at once, some turns ahead. A table in shared memory, one for each lane so that no banks
 * collide, has the word of two elements that a byte decodes to; of formats of 8 bits the number
 * twice. Rows of A are in shared memory in the order in which lanes read them: all of k where that
 * fits, so that warps do not wait for each other, else stages of some turns, the next one copied
 * while the present one is multiplied. Warps take columns and slices of k, whose sums are added in
 * shared memory.
 *
 * The 4 lanes t of a column have neighbouring runs of k, which steps of 16 take in fours: words t
 * and t + 4 of a step are not neighbours in k but of one lane, in A and B alike. A chunk, of all
 * four runs, is in one block of scales: its sums start at zero, are scaled and then added. Where
 * the 16 bytes of a lane are a block, the 4 lanes exchange words, which makes 4 chunks of them. */
#include "emitter.h"
#include "quantised_decode.h"

#include <string.h>

enum { LANES = HAL_IR_MATRIX_LANES, CODES = 256, ROWS = 8, COLUMNS = 16 };
enum { MAX_TILES = 2, MAX_ROW_TILES = 8, MAX_UNROLL = 8, EXCHANGED = 4 };
enum { MAX_LINES = 2 * MAX_TILES, UNIT = 8 }; /* steps of k in 16 bytes of A */

/* A variable, and its value in the present turn. */
typedef struct carried {
    hal_ir_value variable, value;
} carried;

/* What a lane loads of B for a chunk, line by line. */
typedef struct chunk {
    carried words[MAX_LINES][4], scales[MAX_LINES];
} chunk;

typedef struct units_emitter {
    ops_gemm_emitter *e;
    const ops_gemm_quantisation *form;
    uint32_t bits, items, slices, warps_n, tiles, row_tiles, unroll;
    uint32_t words;            /* that a lane reads of B at once */
    uint32_t run, steps, turn; /* steps of k of a lane and a chunk, of a chunk, and of a turn */
    uint32_t stage, ahead;     /* steps of A in shared memory at once; turns that B is ahead */
    uint32_t neighbours;       /* chunks of a slice that follow each other: EXCHANGED, or 1 */
    uint32_t rows_n;           /* of A in a tile in shared memory, up to ROWS */
    uint32_t units, copies;    /* of A in a turn: of a tile; that a work-item copies */
    uint32_t unit_words;       /* of A, of UNIT steps of k */
    hal_ir_memory_id table, rows;
    hal_ir_value id, lane, slice, zero, block_shift;
    hal_ir_value first;            /* step of k of the lane's first run of the turn 0 */
    hal_ir_value line[MAX_LINES];  /* B's first word of it */
    hal_ir_value in_n[MAX_LINES];  /* whether there is such a column, or HAL_IR_NONE */
    hal_ir_value scale[MAX_LINES]; /* place of the column's first scale */
    hal_ir_value scale_stride, source, source_k, source_row, target, last;
    chunk loaded[OPS_GEMM_QUANTISED_AHEAD][MAX_UNROLL];
} units_emitter;

static uint32_t log2_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* Units of 16 bytes of A are numbered by pairs of steps, lanes t and g, further pairs, chunks, and
 * then tiles of rows. The step of k, and the place in shared memory, of the bits of a number below
 * the tiles of rows. */
static uint32_t unit_k(const units_emitter *q, uint32_t number)
{
    const uint32_t pairs = q->run / UNIT, low = pairs > 1 ? 2 : 1, lines = 4 * q->rows_n;
    const uint32_t t = number / low % 4, high = number / (lines * low) % (pairs / low);
    return number / (lines * pairs) * q->steps + t * q->run + (number % low + high * low) * UNIT;
}

static uint32_t unit_target(const units_emitter *q, uint32_t number)
{
    const uint32_t pairs = q->run / UNIT, low = pairs > 1 ? 2 : 1, lines = 4 * q->rows_n;
    const uint32_t t = number / low % 4, g = number / (4 * low) % q->rows_n;
    const uint32_t high = number / (lines * low) % (pairs / low);
    const uint32_t pair = number / (lines * pairs) * pairs + number % low + high * low;
    return 4 * (pair * q->row_tiles * lines + 4 * g + t);
}

/* A function of numbers that is linear in their bits, of a value of `count` bits. */
static hal_ir_value of_bits(const units_emitter *q, hal_ir_value number, uint32_t count,
                            uint32_t (*function)(const units_emitter *q, uint32_t number))
{
    ops_gemm_emitter *e = q->e;
    hal_ir_value sum = HAL_IR_NONE;
    for (uint32_t bit = 0; bit < count;) {
        const uint32_t first = bit, weight = function(q, 1u << bit);
        while (++bit < count && function(q, 1u << bit) == weight << (bit - first)) {
        }
        if (weight != 0) {
            hal_ir_value field = ops_gemm_quotient(e, number, 1u << first);
            field = ops_gemm_times(e, ops_gemm_rest(e, field, 1u << (bit - first)), weight);
            sum = sum == HAL_IR_NONE ? field : hal_ir_add(e->b, sum, field);
        }
    }
    return sum == HAL_IR_NONE ? hal_ir_u32(e->b, 0) : sum;
}

static uint32_t unit_row(const units_emitter *q, uint32_t number)
{
    return number / (q->run / UNIT > 1 ? 8 : 4) % q->rows_n;
}

static void place_copies(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    const uint32_t bits = log2_of(q->items < q->units ? q->items : q->units);
    q->source_k = of_bits(q, q->id, bits, unit_k);
    q->source_row = hal_ir_add(e->b, e->a.origin, of_bits(q, q->id, bits, unit_row));
    q->target = of_bits(q, q->id, bits, unit_target);
}

/* The words of a unit whose elements are loaded one by one. */
static hal_ir_value load_unit(units_emitter *q, hal_ir_value row, hal_ir_value k,
                              hal_ir_value guard)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value words[4];
    for (uint32_t i = 0; i < UNIT; i++) {
        hal_ir_value step = ops_gemm_plus(e, k, i);
        hal_ir_value x = hal_ir_load_wide(b, e->a.memory, ops_gemm_address(e, &e->a, row, step), 0,
                                          1, ops_guard_and(b, guard, hal_ir_lt(b, step, e->k)));
        x = hal_ir_cast(b, HAL_TYPE_U32, x);
        words[i / 2] = i % 2 ? hal_ir_or(b, words[i / 2], hal_ir_shl(b, x, hal_ir_u32(b, 16))) : x;
    }
    return hal_ir_pack(b, 4, words);
}

/* Copies the rows of a turn to their place in shared memory. */
static void copy_turn(units_emitter *q, hal_ir_value turn, hal_ir_value to)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t of_tile = q->units < q->items ? 1 : q->units / q->items; /* of a work-item */
    hal_ir_value k = hal_ir_add(b, turn, q->source_k), target = hal_ir_add(b, q->target, to);
    if (q->units < q->items) {
        hal_ir_if(b, hal_ir_lt(b, q->id, hal_ir_u32(b, q->units)));
    }
    for (uint32_t i = 0; i < q->copies; i++) {
        const uint32_t number = i % of_tile * q->items, tile = i / of_tile;
        hal_ir_value row = ops_gemm_plus(e, q->source_row, tile * ROWS);
        hal_ir_value step = ops_gemm_plus(e, k, unit_k(q, number));
        hal_ir_value place =
            ops_gemm_plus(e, target, unit_target(q, number) + tile * 16 * q->rows_n);
        hal_ir_value guard = hal_ir_lt(b, row, e->m);
        if (e->a.operand->width == 1) {
            hal_ir_store_wide(b, q->rows, place, 0, HAL_IR_NONE, load_unit(q, row, step, guard));
            continue;
        }
        guard = e->key->whole ? guard : ops_guard_and(b, guard, hal_ir_lt(b, step, e->k));
        hal_ir_value from = ops_gemm_address(e, &e->a, row, ops_gemm_quotient(e, step, 2));
        hal_ir_async_copy(b, q->rows, place, e->a.memory, from, 4, guard);
    }
    if (q->units < q->items) {
        hal_ir_end(b);
    }
}

/* The end of the stage that begins at a step. */
static hal_ir_value stage_end(units_emitter *q, hal_ir_value first)
{
    hal_ir_builder *b = q->e->b;
    return hal_ir_min(b, ops_gemm_plus(q->e, first, q->stage), q->e->k);
}

/* Words of A in shared memory from a turn to another one. */
static hal_ir_value words_between(units_emitter *q, hal_ir_value first, hal_ir_value k)
{
    hal_ir_value units = ops_gemm_quotient(q->e, hal_ir_sub(q->e->b, k, first), UNIT);
    return ops_gemm_times(q->e, units, q->unit_words);
}

/* Copies the rows of the stage that begins at a step, if it does. */
static void copy_stage(units_emitter *q, hal_ir_value first, hal_ir_value to)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value k = hal_ir_for(b, first, stage_end(q, first), hal_ir_u32(b, q->turn));
    hal_ir_value distance = words_between(q, first, k);
    copy_turn(q, k, hal_ir_add(b, to, distance));
    hal_ir_end(b);
    hal_ir_async_commit(b);
}

static hal_ir_value block_scale(units_emitter *q, uint32_t line, hal_ir_value k, hal_ir_value guard)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value place = q->scale[line];
    if (q->form->is_blocked) {
        hal_ir_value block = ops_gemm_index(e, hal_ir_shr(b, k, q->block_shift));
        place = hal_ir_add(b, place, hal_ir_mul(b, block, q->scale_stride));
    }
    return hal_ir_load_wide(b, q->form->scale_slot, place, 0, 1, guard);
}

/* Loads of a turn, which take words and scales of one chunk or, to be exchanged, of several. */
static uint32_t loads(const units_emitter *q)
{
    return q->unroll / q->neighbours;
}

/* Loads a turn's packed numbers, and the scales of their blocks. */
static void load_turn(units_emitter *q, hal_ir_value turn, chunk *chunks)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t of_word = 32 / q->bits, lines = 2 * q->tiles;
    turn = e->key->whole ? hal_ir_min(b, turn, q->last) : turn;
    hal_ir_value first = hal_ir_add(b, turn, q->first);
    hal_ir_value place = ops_gemm_index(e, ops_gemm_quotient(e, turn, of_word));
    for (uint32_t u = 0; u < loads(q); u++) {
        const uint32_t ahead = u * q->slices * q->neighbours * q->steps;
        hal_ir_value k = ops_gemm_plus(e, first, ahead);
        hal_ir_value inside = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, k, e->k);
        for (uint32_t i = 0; i < lines; i++) {
            chunk *c = &chunks[u];
            hal_ir_value guard = ops_guard_and(b, inside, q->in_n[i]);
            hal_ir_value words = hal_ir_load_wide(b, e->c.memory, hal_ir_add(b, q->line[i], place),
                                                  (int32_t)(ahead / of_word), q->words, guard);
            for (uint32_t w = 0; w < q->words; w++) {
                c->words[i][w].value = q->words == 1 ? words : hal_ir_extract(b, words, w);
            }
            if (q->form->is_blocked) {
                c->scales[i].value = block_scale(q, i, k, guard);
            }
        }
    }
}

/* What is loaded of a turn, for each of its values. */
static void each_loaded(units_emitter *q, chunk *chunks,
                        void (*visit)(units_emitter *q, carried *c))
{
    for (uint32_t u = 0; u < loads(q); u++) {
        for (uint32_t i = 0; i < 2 * q->tiles; i++) {
            for (uint32_t w = 0; w < q->words; w++) {
                visit(q, &chunks[u].words[i][w]);
            }
            if (q->form->is_blocked) {
                visit(q, &chunks[u].scales[i]);
            }
        }
    }
}

static void open_carried(units_emitter *q, carried *c)
{
    c->variable = hal_ir_var(q->e->b, c->value);
}

static void get_carried(units_emitter *q, carried *c)
{
    c->value = hal_ir_get(q->e->b, c->variable);
}

static void set_carried(units_emitter *q, carried *c)
{
    hal_ir_set(q->e->b, c->variable, c->value);
}

/* Gives variables the values of others. */
static void move_values(units_emitter *q, chunk *to, const chunk *from)
{
    for (uint32_t u = 0; u < loads(q); u++) {
        for (uint32_t i = 0; i < 2 * q->tiles; i++) {
            for (uint32_t w = 0; w < q->words; w++) {
                to[u].words[i][w].value = from[u].words[i][w].value;
            }
            to[u].scales[i].value = from[u].scales[i].value;
        }
    }
}

/* Takes the words of a lane from its neighbour whose number differs by a bit, for those of their
 * pairs that it has not: transposes 2 x 2 words. */
static void exchange(units_emitter *q, hal_ir_value is_high, uint32_t bit, carried *low,
                     carried *high)
{
    hal_ir_builder *b = q->e->b;
    hal_ir_value sent = hal_ir_select(b, is_high, low->value, high->value);
    hal_ir_value taken = hal_ir_shuffle_xor(b, sent, bit);
    low->value = hal_ir_select(b, is_high, taken, low->value);
    high->value = hal_ir_select(b, is_high, high->value, taken);
}

/* The chunks of 4 lanes with a block each: word t of each lane, and its scales. */
static void exchange_lanes(units_emitter *q, const chunk *loaded, chunk *chunks)
{
    hal_ir_builder *b = q->e->b;
    hal_ir_value bit[2], of_column = hal_ir_and(b, q->lane, hal_ir_u32(b, LANES - EXCHANGED));
    for (uint32_t i = 0; i < 2; i++) {
        hal_ir_value set = hal_ir_and(b, q->lane, hal_ir_u32(b, 1u << i));
        bit[i] = hal_ir_ne(b, set, hal_ir_u32(b, 0));
    }
    for (uint32_t line = 0; line < 2 * q->tiles; line++) {
        carried w[EXCHANGED];
        for (uint32_t i = 0; i < EXCHANGED; i++) {
            w[i] = loaded->words[line][i];
        }
        exchange(q, bit[1], 2, &w[0], &w[2]);
        exchange(q, bit[1], 2, &w[1], &w[3]);
        exchange(q, bit[0], 1, &w[0], &w[1]);
        exchange(q, bit[0], 1, &w[2], &w[3]);
        for (uint32_t i = 0; i < EXCHANGED; i++) {
            hal_ir_value lane = ops_gemm_plus(q->e, of_column, i);
            chunks[i].words[line][0] = w[i];
            chunks[i].scales[line].value = hal_ir_shuffle(b, loaded->scales[line].value, lane);
        }
    }
}

/* The number of an element that begins at `bit` of a word. */
static hal_ir_value decode(units_emitter *q, hal_ir_value word, uint32_t bit)
{
    hal_ir_builder *b = q->e->b;
    const uint32_t format = q->form->format, half = ops_quantised_half(format);
    if (ops_quantised_is_float(format)) {
        return ops_quantised_float(b, format, q->form->has_denormals, word, bit);
    }
    hal_ir_value x = hal_ir_shr(b, word, hal_ir_u32(b, bit));
    x = hal_ir_xor(b, ops_gemm_rest(q->e, x, 1u << q->bits), hal_ir_u32(b, half));
    x = hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_F32, x), hal_ir_f32(b, (float)half));
    return hal_ir_sub(b, x, q->zero);
}

/* Work-items write what bytes decode to: entry `code` of lane l is at 32 * code + l. Neighbours
 * begin with other lanes, so that no banks collide. */
static void write_table(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    enum { WIDTH = 4, PLACES = LANES / WIDTH };
    for (uint32_t first = 0; first < CODES; first += q->items) {
        const uint32_t share = q->items > CODES ? q->items / CODES : 1; /* work-items of an entry */
        hal_ir_value number = ops_gemm_plus(e, q->id, first);
        hal_ir_value code = ops_gemm_rest(e, number, CODES);
        hal_ir_value part = ops_gemm_times(e, ops_gemm_quotient(e, number, CODES), PLACES / share);
        hal_ir_value pair[2];
        for (uint32_t i = 0; i < 2; i++) {
            pair[i] = q->bits == 8 && i ? pair[0] : decode(q, code, i * q->bits);
        }
        hal_ir_value word = ops_quantised_pair(b, e->key->type_ab, pair);
        hal_ir_value words[WIDTH] = {word, word, word, word};
        word = hal_ir_pack(b, WIDTH, words);
        for (uint32_t i = 0; i < PLACES / share; i++) {
            hal_ir_value place = hal_ir_add(b, ops_gemm_plus(e, code, i), part);
            place = ops_gemm_times(e, ops_gemm_rest(e, place, PLACES), WIDTH);
            place = hal_ir_add(b, ops_gemm_times(e, code, LANES), place);
            hal_ir_store_wide(b, q->table, place, 0, HAL_IR_NONE, word);
        }
    }
}

/* The table's entry for a byte of a word. */
static hal_ir_value look_up(units_emitter *q, hal_ir_value word, uint32_t byte)
{
    hal_ir_builder *b = q->e->b;
    const uint32_t up = log2_of(LANES), bit = 8 * byte;
    word = bit < up ? hal_ir_shl(b, word, hal_ir_u32(b, up - bit))
                    : hal_ir_shr(b, word, hal_ir_u32(b, bit - up));
    word = hal_ir_and(b, word, hal_ir_u32(b, (CODES - 1) << up));
    return hal_ir_load(b, q->table, hal_ir_add(b, word, q->lane));
}

/* The word of steps 4 s + 2 i and the next one of a line's run. */
static hal_ir_value line_word(units_emitter *q, const carried *words, uint32_t s, uint32_t i)
{
    hal_ir_builder *b = q->e->b;
    if (q->bits == 4) {
        return look_up(q, words[s / 2].value, s % 2 * 2 + i);
    }
    hal_ir_value low = look_up(q, words[s].value, 2 * i);
    hal_ir_value high = look_up(q, words[s].value, 2 * i + 1);
    return hal_ir_or(b, hal_ir_and(b, low, hal_ir_u32(b, 0xffff)),
                     hal_ir_shl(b, high, hal_ir_u32(b, 16)));
}

static void multiply_pair(units_emitter *q, const chunk *c, uint32_t pair, hal_ir_value place,
                          uint32_t number, hal_ir_value (*fresh)[MAX_ROW_TILES])
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value x[MAX_ROW_TILES];
    for (uint32_t r = 0; r < q->row_tiles; r++) {
        const uint32_t offset = (number * q->row_tiles + r) * 16 * q->rows_n;
        x[r] = hal_ir_load_wide(b, q->rows, place, (int32_t)offset, 4, HAL_IR_NONE);
    }
    for (uint32_t h = 0; h < 2; h++) {
        for (uint32_t tile = 0; tile < q->tiles; tile++) {
            hal_ir_value a[4];
            for (uint32_t i = 0; i < 4; i++) {
                a[i] = line_word(q, c->words[2 * tile + i % 2], 2 * pair + h, i / 2);
            }
            hal_ir_value weights = hal_ir_pack(b, 4, a);
            for (uint32_t r = 0; r < q->row_tiles; r++) {
                const hal_ir_value words[2] = {hal_ir_extract(b, x[r], 2 * h),
                                               hal_ir_extract(b, x[r], 2 * h + 1)};
                fresh[tile][r] = hal_ir_matrix_multiply(b, e->key->type_ab, weights,
                                                        hal_ir_pack(b, 2, words), fresh[tile][r]);
            }
        }
    }
}

/* The lane's sum i of a tile: of column g, or g + 8 for i > 1, and row 2 t + i % 2. */
static uint32_t sum_number(const units_emitter *q, uint32_t tile, uint32_t r, uint32_t i)
{
    return (tile * q->row_tiles + r) * 4 + i;
}

/* Adds the sums of a chunk, of blocks by their scales. */
static void add_chunk(units_emitter *q, const chunk *c, hal_ir_value (*fresh)[MAX_ROW_TILES])
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    for (uint32_t tile = 0; tile < q->tiles; tile++) {
        hal_ir_value scales[2] = {HAL_IR_NONE, HAL_IR_NONE};
        for (uint32_t i = 0; i < 2 && q->form->is_blocked; i++) {
            hal_ir_value scale = c->scales[2 * tile + i].value;
            scales[i] = q->form->scales_are_exponents ? ops_quantised_exponent(b, scale) : scale;
        }
        for (uint32_t r = 0; r < q->row_tiles; r++) {
            for (uint32_t i = 0; i < 4; i++) {
                hal_ir_value *sum = &e->present[sum_number(q, tile, r, i)];
                hal_ir_value part = hal_ir_extract(b, fresh[tile][r], i);
                *sum = !q->form->is_blocked ? part
                       : e->key->fused      ? hal_ir_fma(b, part, scales[i / 2], *sum)
                                       : hal_ir_add(b, *sum, hal_ir_mul(b, part, scales[i / 2]));
            }
        }
    }
}

static void multiply_chunk(units_emitter *q, const chunk *c, uint32_t number, hal_ir_value place)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t pairs = q->run / UNIT;
    hal_ir_value fresh[MAX_TILES][MAX_ROW_TILES], zeros[4];
    zeros[0] = zeros[1] = zeros[2] = zeros[3] = hal_ir_f32(b, 0);
    for (uint32_t tile = 0; tile < q->tiles; tile++) {
        for (uint32_t r = 0; r < q->row_tiles; r++) {
            const hal_ir_value *sums = &e->present[sum_number(q, tile, r, 0)];
            fresh[tile][r] = hal_ir_pack(b, 4, q->form->is_blocked ? zeros : sums);
        }
    }
    for (uint32_t pair = 0; pair < pairs; pair++) {
        multiply_pair(q, c, pair, place, number * pairs + pair, fresh);
    }
    add_chunk(q, c, fresh);
}

/* Multiplies a turn whose rows are at `place`. */
static void multiply_turn(units_emitter *q, const chunk *loaded, hal_ir_value place)
{
    for (uint32_t u = 0; u < loads(q); u++) {
        const uint32_t first = u * q->slices * q->neighbours;
        chunk chunks[EXCHANGED];
        chunks[0] = loaded[u];
        if (q->neighbours > 1) {
            exchange_lanes(q, &loaded[u], chunks);
        }
        for (uint32_t i = 0; i < q->neighbours; i++) {
            multiply_chunk(q, &chunks[i], first + i, place);
        }
    }
}

/* A turn: takes the present numbers, moves the ones ahead on, and loads the last of those. */
static void emit_turn(units_emitter *q, hal_ir_value k, hal_ir_value place)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t count = q->tiles * q->row_tiles * 4;
    chunk now[MAX_UNROLL], next[MAX_UNROLL];
    for (uint32_t d = 0; d < q->ahead; d++) {
        each_loaded(q, q->loaded[d], get_carried);
    }
    memcpy(now, q->loaded[0], sizeof now);
    load_turn(q, ops_gemm_plus(e, k, q->ahead * q->turn), next);
    for (uint32_t d = 0; d < q->ahead; d++) {
        move_values(q, q->loaded[d], d + 1 < q->ahead ? q->loaded[d + 1] : next);
        each_loaded(q, q->loaded[d], set_carried);
    }
    for (uint32_t i = 0; i < count; i++) {
        e->present[i] = hal_ir_get(b, e->sums[i]);
    }
    multiply_turn(q, now, place);
    for (uint32_t i = 0; i < count; i++) {
        hal_ir_set(b, e->sums[i], e->present[i]);
    }
}

/* The turns of the stage that begins at a step, whose rows are at `half`. */
static void emit_stage(units_emitter *q, hal_ir_value first, hal_ir_value end, hal_ir_value half)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t chunk_words = q->steps / UNIT * q->unit_words;
    hal_ir_value own = ops_gemm_times(e, q->slice, q->neighbours * chunk_words);
    own = hal_ir_add(b, own, ops_gemm_times(e, ops_gemm_rest(e, q->lane, 4 * q->rows_n), 4));
    own = hal_ir_add(b, own, half);
    hal_ir_value k = hal_ir_for(b, first, end, hal_ir_u32(b, q->turn));
    hal_ir_value distance = words_between(q, first, k);
    emit_turn(q, k, hal_ir_add(b, own, distance));
    hal_ir_end(b);
}

static void emit_k_loop(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t count = q->tiles * q->row_tiles * 4;
    hal_ir_value zero = hal_ir_u32(b, 0);
    for (uint32_t d = 0; d < q->ahead; d++) {
        load_turn(q, hal_ir_u32(b, d * q->turn), q->loaded[d]);
        each_loaded(q, q->loaded[d], open_carried);
    }
    copy_stage(q, zero, zero);
    write_table(q);
    for (uint32_t i = 0; i < count; i++) {
        e->sums[i] = hal_ir_var(b, hal_ir_f32(b, 0));
    }
    if (e->key->unit_has_all) {
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
        emit_stage(q, zero, e->k, zero);
        hal_ir_barrier(b); /* before sums are written over the table */
    } else {
        hal_ir_value present = hal_ir_var(b, zero);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
        hal_ir_value first = hal_ir_for(b, zero, e->k, hal_ir_u32(b, q->stage));
        hal_ir_value half = hal_ir_get(b, present);
        hal_ir_value other = hal_ir_sub(b, hal_ir_u32(b, q->stage / UNIT * q->unit_words), half);
        hal_ir_set(b, present, other);
        copy_stage(q, ops_gemm_plus(e, first, q->stage), other);
        emit_stage(q, first, stage_end(q, first), half);
        hal_ir_async_wait(b, 0);
        hal_ir_barrier(b);
        hal_ir_end(b);
    }
    for (uint32_t i = 0; i < count; i++) {
        e->present[i] = hal_ir_get(b, e->sums[i]);
    }
}

/* Sums that are not scaled block by block, all at once. */
static void scale_sums(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    for (uint32_t line = 0; line < 2 * q->tiles; line++) {
        hal_ir_value scale = block_scale(q, line, HAL_IR_NONE, q->in_n[line]);
        scale = q->form->scales_are_exponents ? ops_quantised_exponent(e->b, scale) : scale;
        for (uint32_t i = 0; i < 2 * q->row_tiles; i++) {
            hal_ir_value *sum = &e->present[sum_number(q, line / 2, i / 2, line % 2 * 2 + i % 2)];
            *sum = hal_ir_mul(e->b, *sum, scale);
        }
    }
}

/* Element (row, column) of the block, of slice s, is at (s * rows + row) * block_n + column. */
static void store_partials(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t width = e->tiles->block_n, rows = q->row_tiles * ROWS;
    hal_ir_value t = ops_gemm_rest(e, q->lane, 4);
    hal_ir_value place = ops_gemm_times(e, q->slice, rows * width);
    place = hal_ir_add(b, place, ops_gemm_times(e, t, 2 * width));
    place = hal_ir_add(b, place, e->c.first);
    for (uint32_t i = 0; i < q->tiles * q->row_tiles * 4; i++) {
        const uint32_t tile = i / 4 / q->row_tiles, r = i / 4 % q->row_tiles;
        const uint32_t offset = (r * ROWS + i % 2) * width + tile * COLUMNS + i % 4 / 2 * 8;
        hal_ir_store_wide(b, q->table, place, (int32_t)offset, HAL_IR_NONE,
                          hal_ir_bitcast(b, HAL_TYPE_U32, e->present[i]));
    }
    hal_ir_barrier(b);
}

/* Adds the slices of an element. */
static hal_ir_value add_slices(units_emitter *q, hal_ir_value number, uint32_t distance)
{
    hal_ir_builder *b = q->e->b;
    hal_ir_value sum = HAL_IR_NONE;
    for (uint32_t s = 0; s < q->slices; s++) {
        hal_ir_value x =
            hal_ir_load_wide(b, q->table, number, (int32_t)(s * distance), 1, HAL_IR_NONE);
        x = hal_ir_bitcast(b, HAL_TYPE_F32, x);
        sum = s ? hal_ir_add(b, sum, x) : x;
    }
    return sum;
}

static void store_results(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    const uint32_t width = e->tiles->block_n, outputs = q->row_tiles * ROWS * width;
    for (uint32_t first = 0; first < outputs; first += q->items) {
        hal_ir_value number = ops_gemm_plus(e, q->id, first);
        hal_ir_value row = hal_ir_add(b, e->a.origin, ops_gemm_quotient(e, number, width));
        hal_ir_value column = hal_ir_add(b, e->c.origin, ops_gemm_rest(e, number, width));
        hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, row, e->m), hal_ir_lt(b, column, e->n));
        if (outputs < q->items) {
            guard = hal_ir_and(b, guard, hal_ir_lt(b, number, hal_ir_u32(b, outputs)));
        }
        hal_ir_if(b, guard);
        ops_gemm_element element;
        ops_gemm_fetch_element(e, row, column, HAL_IR_NONE, &element);
        ops_gemm_store_element(e, &element, add_slices(q, number, outputs));
        hal_ir_end(b);
    }
}

static void place_warp(units_emitter *q)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_group_size(b, q->items, 1, 1);
    hal_ir_groups_per_unit(b, e->tiles->min_groups_per_unit);
    q->id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    q->lane = hal_ir_id(b, HAL_IR_LANE_ID, 0);
    hal_ir_value warp = ops_gemm_quotient(e, q->id, LANES);
    hal_ir_value g = ops_gemm_quotient(e, q->lane, 4), t = ops_gemm_rest(e, q->lane, 4);
    q->slice = ops_gemm_rest(e, warp, q->slices);
    q->first = hal_ir_add(b, ops_gemm_times(e, q->slice, q->neighbours * q->steps),
                          ops_gemm_times(e, t, q->neighbours * q->run));
    e->c.first = ops_gemm_times(e, ops_gemm_quotient(e, warp, q->slices), q->tiles * COLUMNS);
    e->c.first = hal_ir_add(b, e->c.first, g);
    hal_ir_value along = ops_gemm_quotient(e, q->first, 32 / q->bits);
    for (uint32_t i = 0; i < 2 * q->tiles; i++) {
        hal_ir_value column = ops_gemm_plus(e, hal_ir_add(b, e->c.origin, e->c.first), 8 * i);
        q->in_n[i] = e->key->whole ? HAL_IR_NONE : hal_ir_lt(b, column, e->n);
        q->line[i] = ops_gemm_address(e, &e->c, column, along);
        q->scale[i] = column;
    }
    q->last = hal_ir_sub(b, e->k, hal_ir_u32(b, q->turn));
}

static void place_scales(units_emitter *q, uint32_t number)
{
    ops_gemm_emitter *e = q->e;
    hal_ir_builder *b = e->b;
    hal_ir_value strides[2];
    hal_ir_value base = ops_gemm_declare_matrix(e, number, strides, 2);
    q->scale_stride = strides[0];
    for (uint32_t i = 0; i < 2 * q->tiles; i++) {
        hal_ir_value column = hal_ir_mul(b, ops_gemm_index(e, q->scale[i]), strides[1]);
        q->scale[i] = hal_ir_add(b, base, column);
    }
}

void ops_gemm_emit_quantised_units(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    const ops_gemm_tiles *t = e->tiles;
    units_emitter q = {.e = e, .form = &e->key->quantisation, .words = e->key->unit_words};
    q.bits = ops_quantised_bits(q.form->format);
    q.slices = t->intra_group_split_k;
    q.tiles = t->thread_n / 2u;
    q.row_tiles = t->block_m / ROWS;
    q.unroll = t->unroll;
    q.warps_n = t->block_n / (q.tiles * COLUMNS);
    q.items = q.slices * q.warps_n * LANES;
    q.neighbours = e->key->unit_exchanged ? EXCHANGED : 1;
    q.run = q.words * 32 / q.bits / q.neighbours;
    q.steps = 4 * q.run;
    q.turn = q.steps * q.slices * q.unroll;
    q.stage = q.turn * e->key->unit_turns;
    q.ahead = e->key->unit_ahead;
    q.rows_n = e->key->unit_rows;
    q.units = q.turn / UNIT * q.rows_n;
    q.copies = q.units < q.items ? 1 : q.units * q.row_tiles / q.items;
    q.unit_words = q.row_tiles * q.rows_n * 4;
    q.zero = hal_ir_scalar_value(b, "zero", HAL_TYPE_F32);
    q.block_shift = hal_ir_scalar_value(b, "block_shift", HAL_TYPE_U32);
    hal_ir_scalar_value(b, "magic", HAL_TYPE_U32);
    const uint32_t partials = q.slices * t->block_n * t->block_m, entries = CODES * LANES;
    q.table = hal_ir_shared(b, "table", HAL_TYPE_U32, partials > entries ? partials : entries);
    q.rows = hal_ir_shared(b, "rows", HAL_TYPE_U32,
                           (e->key->unit_has_all ? 1 : 2) * q.stage / UNIT * q.unit_words);
    place_warp(&q);
    place_scales(&q, 3u + e->key->input_count);
    place_copies(&q);
    emit_k_loop(&q);
    if (!q.form->is_blocked) {
        scale_sums(&q);
    }
    store_partials(&q);
    store_results(&q);
}
