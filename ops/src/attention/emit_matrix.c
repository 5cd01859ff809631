/* Attention on matrix units: a subgroup has rows of the group's tile, and the accumulators of their
 * scores are, rounded, the first operand of the next product, as in T. Dao, "FlashAttention-2",
 * 2023. The words of a head take the places that a lane reads at once: in both operands of the
 * scores, and in the columns of the result, so that lanes store neighbours. */
#include "emitter.h"

#include <math.h>

#define LANES HAL_IR_MATRIX_LANES
#define CHUNK 16u /* words that a row's 4 lanes read at once: two steps of 8 */

static void matrix_begin(ops_attention_emitter *e)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value lane = hal_ir_rem(b, e->item, hal_ir_u32(b, LANES));
    e->subgroup = hal_ir_div(b, e->item, hal_ir_u32(b, LANES));
    e->lane_row = hal_ir_div(b, lane, hal_ir_u32(b, 4));
    e->lane_column = hal_ir_rem(b, lane, hal_ir_u32(b, 4));
    e->rows = 2u * e->form->row_tiles;
    e->columns = e->form->keys / 4u;
}

/* The work-item's first row. */
static hal_ir_value own_row(const ops_attention_emitter *e)
{
    return hal_ir_add(e->b, ops_attention_times(e, e->subgroup, 16u * e->form->row_tiles),
                      e->lane_row);
}

static hal_ir_value matrix_row(const ops_attention_emitter *e, uint32_t i)
{
    return ops_attention_plus(e, own_row(e), 8 * i);
}

static hal_ir_value matrix_column(const ops_attention_emitter *e, uint32_t j)
{
    return ops_attention_plus(e, ops_attention_times(e, e->lane_column, 2), j / 2 * 8 + j % 2);
}

/* ---- Copies ---- */

/* A word of two elements, zeros beyond the tensor. */
static hal_ir_value load_elements(const ops_attention_emitter *e, const ops_attention_side *side,
                                  hal_ir_value row, hal_ir_value column)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value is_row = hal_ir_lt(b, row, side->rows);
    const hal_ir_value at = ops_attention_place(e, side, row, column);
    hal_ir_value half[2];
    for (uint32_t i = 0; i < 2; i++) {
        const hal_ir_value has = hal_ir_lt(b, ops_attention_plus(e, column, i), side->width);
        half[i] = hal_ir_load_wide(b, side->memory, at, (int32_t)i, 1, hal_ir_and(b, is_row, has));
    }
    return hal_ir_or(b, half[0], hal_ir_shl(b, half[1], hal_ir_u32(b, 16)));
}

static void copy_elements(ops_attention_emitter *e, const ops_attention_tile *tile,
                          hal_ir_value first)
{
    hal_ir_builder *b = e->b;
    const uint32_t per = tile->width / 2, items = LANES * e->form->subgroups;
    for (uint32_t i = 0; i < tile->rows * per / items; i++) {
        const hal_ir_value number = ops_attention_plus(e, e->item, i * items);
        const hal_ir_value row = hal_ir_div(b, number, hal_ir_u32(b, per));
        const hal_ir_value word = hal_ir_rem(b, number, hal_ir_u32(b, per));
        const hal_ir_value place = hal_ir_add(b, ops_attention_times(e, row, tile->pitch), word);
        const hal_ir_value value = load_elements(e, tile->side, hal_ir_add(b, first, row),
                                                 ops_attention_times(e, word, 2));
        hal_ir_store(b, e->shared, ops_attention_tile_place(e, tile, place), value);
    }
}

static void matrix_copy(ops_attention_emitter *e, const ops_attention_tile *tile,
                        hal_ir_value first)
{
    if (!e->form->vectors) {
        copy_elements(e, tile, first);
        return;
    }
    hal_ir_builder *b = e->b;
    const ops_attention_side *side = tile->side;
    const uint32_t per = tile->width / 8, items = LANES * e->form->subgroups;
    const uint32_t apart = items % per == 0 ? items / per : 0; /* rows; 0: not the same columns */
    hal_ir_value at = HAL_IR_NONE, hop = HAL_IR_NONE;
    for (uint32_t i = 0; i < tile->rows * per / items; i++) {
        const hal_ir_value number = apart ? e->item : ops_attention_plus(e, e->item, i * items);
        const hal_ir_value vector = hal_ir_rem(b, number, hal_ir_u32(b, per));
        const hal_ir_value row =
            ops_attention_plus(e, hal_ir_div(b, number, hal_ir_u32(b, per)), i * apart);
        const hal_ir_value from = hal_ir_add(b, first, row);
        const hal_ir_value word = ops_attention_times(e, vector, 4);
        const hal_ir_value has = hal_ir_lt(b, ops_attention_times(e, vector, 8), side->width);
        const hal_ir_value place = hal_ir_add(b, ops_attention_times(e, row, tile->pitch), word);
        if (i == 0 || !apart) {
            at = ops_attention_place(e, side, from, word);
            hop = hal_ir_mul(b, side->stride, ops_index_constant(b, e->index, apart));
        } else {
            at = hal_ir_add(b, at, hop);
        }
        hal_ir_async_copy(b, e->shared, ops_attention_tile_place(e, tile, place), side->memory, at,
                          4, hal_ir_and(b, hal_ir_lt(b, from, side->rows), has));
    }
}

/* ---- Products ---- */

/* Loads the words of the lane's rows straight into registers. */
static void matrix_keep(ops_attention_emitter *e, ops_attention_rows *rows, hal_ir_value first)
{
    hal_ir_builder *b = e->b;
    const ops_attention_side *side = rows->tile.side;
    rows->are_kept = true;
    for (uint32_t i = 0; i < e->rows; i++) {
        const hal_ir_value row = hal_ir_add(b, first, matrix_row(e, i));
        for (uint32_t c = 0; c < rows->tile.width / 2 / CHUNK; c++) {
            const hal_ir_value word =
                ops_attention_plus(e, ops_attention_times(e, e->lane_column, 4), c * CHUNK);
            if (e->form->vectors) {
                const hal_ir_value has =
                    hal_ir_and(b, hal_ir_lt(b, row, side->rows),
                               hal_ir_lt(b, ops_attention_times(e, word, 2), side->width));
                const hal_ir_value four = hal_ir_load_wide(
                    b, side->memory, ops_attention_place(e, side, row, word), 0, 4, has);
                for (uint32_t n = 0; n < 4; n++) {
                    rows->words[i][c][n] = hal_ir_extract(b, four, n);
                }
                continue;
            }
            for (uint32_t n = 0; n < 4; n++) {
                const hal_ir_value column =
                    ops_attention_times(e, ops_attention_plus(e, word, n), 2);
                rows->words[i][c][n] = load_elements(e, side, row, column);
            }
        }
    }
}

/* The words of row `row` of a tile, of which the lane reads 4. */
static void read_chunk(ops_attention_emitter *e, hal_ir_value place, uint32_t offset,
                       hal_ir_value words[4])
{
    const hal_ir_value four =
        hal_ir_load_wide(e->b, e->shared, place, (int32_t)offset, 4, HAL_IR_NONE);
    for (uint32_t n = 0; n < 4; n++) {
        words[n] = hal_ir_extract(e->b, four, n);
    }
}

static void multiply_tile(ops_attention_emitter *e, hal_ir_value *first, hal_ir_value *second,
                          const hal_ir_value a[4], const hal_ir_value b_words[2])
{
    hal_ir_builder *b = e->b;
    const hal_ir_value c[4] = {first[0], first[1], second[0], second[1]};
    const hal_ir_value product = hal_ir_matrix_multiply(
        b, e->form->type, hal_ir_pack(b, 4, a), hal_ir_pack(b, 2, b_words), hal_ir_pack(b, 4, c));
    first[0] = hal_ir_extract(b, product, 0);
    first[1] = hal_ir_extract(b, product, 1);
    second[0] = hal_ir_extract(b, product, 2);
    second[1] = hal_ir_extract(b, product, 3);
}

static void matrix_multiply(ops_attention_emitter *e, const ops_attention_rows *rows,
                            const ops_attention_tile *tile, ops_attention_scores *scores)
{
    hal_ir_builder *b = e->b;
    const uint32_t tiles = e->columns / 2;
    const hal_ir_value along = ops_attention_times(e, e->lane_column, 4);
    hal_ir_value own[OPS_ATTENTION_MAX_ROWS][4], other[OPS_ATTENTION_MAX_COLUMNS / 2][4];
    hal_ir_value from = HAL_IR_NONE;
    if (!rows->are_kept) {
        from = hal_ir_add(b, ops_attention_times(e, own_row(e), rows->tile.pitch), along);
        from = ops_attention_tile_place(e, &rows->tile, from);
    }
    hal_ir_value place = hal_ir_add(b, ops_attention_times(e, e->lane_row, tile->pitch), along);
    place = ops_attention_tile_place(e, tile, place);
    for (uint32_t i = 0; i < e->rows * e->columns; i++) {
        scores->of[i / e->columns][i % e->columns] = hal_ir_f32(b, 0);
    }
    for (uint32_t c = 0; c < tile->width / 2 / CHUNK; c++) {
        for (uint32_t i = 0; i < e->rows && !rows->are_kept; i++) {
            read_chunk(e, from, 8 * i * rows->tile.pitch + c * CHUNK, own[i]);
        }
        for (uint32_t j = 0; j < tiles; j++) {
            read_chunk(e, place, 8 * j * tile->pitch + c * CHUNK, other[j]);
        }
        for (uint32_t n = 0; n < 4 * tiles * (e->rows / 2) / 2; n++) {
            const uint32_t half = n / (tiles * (e->rows / 2)), j = n / (e->rows / 2) % tiles;
            const uint32_t i = n % (e->rows / 2) * 2;
            const hal_ir_value *low = rows->are_kept ? rows->words[i][c] : own[i];
            const hal_ir_value *high = rows->are_kept ? rows->words[i + 1][c] : own[i + 1];
            const hal_ir_value a[4] = {low[2 * half], high[2 * half], low[2 * half + 1],
                                       high[2 * half + 1]};
            multiply_tile(e, &scores->of[i][2 * j], &scores->of[i + 1][2 * j], a,
                          &other[j][2 * half]);
        }
    }
}

static hal_ir_value matrix_combine(ops_attention_emitter *e, uint32_t kind, hal_ir_value x)
{
    for (uint32_t distance = 1; distance <= 2; distance *= 2) {
        x = hal_ir_binary(e->b, kind, x, hal_ir_shuffle_xor(e->b, x, distance));
    }
    return x;
}

/* A number that is an f16, as its bits: 2^-112 times as large, it has them below those of an f32's
 * fraction. Denormals of a device that flushes them become 0. Powers are finite and not negative,
 * but for NaN, with which the whole row is NaN. */
static hal_ir_value half_bits(ops_attention_emitter *e, hal_ir_value x)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value size = e->has_signs ? hal_ir_abs(b, x) : x;
    const hal_ir_value small =
        hal_ir_bitcast(b, HAL_TYPE_U32, hal_ir_mul(b, size, hal_ir_f32(b, 0x1p-112f)));
    hal_ir_value half = hal_ir_shr(b, small, hal_ir_u32(b, 13));
    if (!e->has_signs) {
        return half;
    }
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    const hal_ir_value sign =
        hal_ir_and(b, hal_ir_shr(b, bits, hal_ir_u32(b, 16)), hal_ir_u32(b, 0x8000));
    const hal_ir_value special =
        hal_ir_select(b, hal_ir_eq(b, size, size), hal_ir_u32(b, 0x7c00), hal_ir_u32(b, 0x7e00));
    half = hal_ir_select(b, hal_ir_lt(b, size, hal_ir_f32(b, INFINITY)), half, special);
    return hal_ir_or(b, half, sign);
}

/* Two scores as a word. */
static hal_ir_value pack_scores(ops_attention_emitter *e, hal_ir_value low, hal_ir_value high)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->form->type;
    low = hal_ir_narrow(b, type, low);
    high = hal_ir_narrow(b, type, high);
    if (type == HAL_TYPE_F16) {
        return hal_ir_or(b, half_bits(e, low),
                         hal_ir_shl(b, half_bits(e, high), hal_ir_u32(b, 16)));
    }
    low = hal_ir_bitcast(b, HAL_TYPE_U32, low);
    high = hal_ir_bitcast(b, HAL_TYPE_U32, high);
    return hal_ir_or(b, hal_ir_shr(b, low, hal_ir_u32(b, 16)),
                     hal_ir_and(b, high, hal_ir_u32(b, 0xffff0000u)));
}

/* Words that a lane reads of a row at once; it has twice as many tiles of columns. */
static uint32_t read_words(uint32_t width)
{
    return width % 64 == 0 ? 4 : 2;
}

/* Reads the second operand for 16 keys of a tile: words of two keys each, for 2 w tiles of columns,
 * the first 8 keys and the others. */
static void read_keys(ops_attention_emitter *e, const ops_attention_tile *tile, hal_ir_value place,
                      uint32_t offset, hal_ir_value words[8][2])
{
    hal_ir_builder *b = e->b;
    const uint32_t w = read_words(tile->width);
    const hal_ir_value sixteen = hal_ir_u32(b, 16);
    for (uint32_t n = 0; n < 2; n++) {
        hal_ir_value rows[2];
        for (uint32_t key = 0; key < 2; key++) {
            rows[key] =
                hal_ir_load_wide(b, e->shared, place,
                                 (int32_t)(offset + (8 * n + key) * tile->pitch), w, HAL_IR_NONE);
        }
        for (uint32_t q = 0; q < w; q++) {
            const hal_ir_value x = hal_ir_extract(b, rows[0], q), y = hal_ir_extract(b, rows[1], q);
            words[2 * q][n] =
                hal_ir_or(b, hal_ir_and(b, x, hal_ir_u32(b, 0xffff)), hal_ir_shl(b, y, sixteen));
            words[2 * q + 1][n] = hal_ir_or(b, hal_ir_shr(b, x, sixteen),
                                            hal_ir_and(b, y, hal_ir_u32(b, 0xffff0000u)));
        }
    }
}

static void matrix_accumulate(ops_attention_emitter *e, const ops_attention_scores *scores,
                              const ops_attention_tile *tile, const ops_attention_result *result)
{
    hal_ir_builder *b = e->b;
    const uint32_t w = read_words(tile->width), chunks = tile->width / (16 * w);
    hal_ir_value place = ops_attention_times(e, e->lane_column, 2 * tile->pitch);
    place = hal_ir_add(b, place, ops_attention_times(e, e->lane_row, w));
    place = ops_attention_tile_place(e, tile, place);
    hal_ir_value sums[OPS_ATTENTION_MAX_ROWS][OPS_ATTENTION_MAX_RESULT], words[8][2];
    for (uint32_t i = 0; i < e->rows; i++) {
        for (uint32_t j = 0; j < tile->width / 4; j++) {
            sums[i][j] = hal_ir_get(b, result->of[i][j]);
        }
    }
    for (uint32_t step = 0; step < e->columns / 4; step++) {
        hal_ir_value a[OPS_ATTENTION_MAX_ROWS / 2][4];
        for (uint32_t n = 0; n < 2 * e->rows; n++) {
            const hal_ir_value *pair = &scores->of[n / 4 * 2 + n % 2][4 * step + n % 4 / 2 * 2];
            a[n / 4][n % 4] = pack_scores(e, pair[0], pair[1]);
        }
        for (uint32_t c = 0; c < chunks; c++) {
            read_keys(e, tile, place, 16 * step * tile->pitch + c * 8 * w, words);
            for (uint32_t n = 0; n < w * e->rows; n++) {
                const uint32_t i = n % (e->rows / 2) * 2, j = n / (e->rows / 2);
                const uint32_t at = 2 * (c * 2 * w + j);
                multiply_tile(e, &sums[i][at], &sums[i + 1][at], a[i / 2], words[j]);
            }
        }
    }
    for (uint32_t i = 0; i < e->rows; i++) {
        for (uint32_t j = 0; j < tile->width / 4; j++) {
            hal_ir_set(b, result->of[i][j], sums[i][j]);
        }
    }
}

/* ---- Results ---- */

/* Of a chunk of columns the lane has 4 w neighbours: those of its even and of its odd columns. */
static void matrix_store(ops_attention_emitter *e, const ops_attention_result *result,
                         const ops_attention_side *side, const hal_ir_value *factors)
{
    hal_ir_builder *b = e->b;
    const uint32_t w = read_words(result->width), width = e->form->vectors ? 2 * w : 1;
    for (uint32_t i = 0; i < e->rows; i++) {
        const hal_ir_value row = hal_ir_add(b, e->first_row, matrix_row(e, i));
        const hal_ir_value is_row = hal_ir_lt(b, row, side->rows);
        for (uint32_t n = 0; n < result->width / 4; n += width) {
            const uint32_t chunk = n / (4 * w), within = n % (4 * w);
            const hal_ir_value column = ops_attention_plus(
                e, ops_attention_times(e, e->lane_column, 4 * w), chunk * 16 * w + within);
            const hal_ir_value has = hal_ir_and(b, is_row, hal_ir_lt(b, column, side->width));
            hal_ir_value parts[8];
            for (uint32_t k = 0; k < width; k++) {
                const uint32_t q = within + k, tile = chunk * 2 * w + q % (2 * w);
                const hal_ir_value sum = hal_ir_get(b, result->of[i][2 * tile + q / (2 * w)]);
                parts[k] = hal_ir_mul(b, sum, factors[i]);
            }
            const hal_ir_value value = width == 1 ? parts[0] : hal_ir_pack(b, width, parts);
            hal_ir_store_wide(b, side->memory, ops_attention_place(e, side, row, column), 0, has,
                              value);
        }
    }
}

const ops_attention_unit ops_attention_matrix = {.begin = matrix_begin,
                                                 .row = matrix_row,
                                                 .column = matrix_column,
                                                 .copy = matrix_copy,
                                                 .keep = matrix_keep,
                                                 .multiply = matrix_multiply,
                                                 .combine = matrix_combine,
                                                 .accumulate = matrix_accumulate,
                                                 .store = matrix_store};
