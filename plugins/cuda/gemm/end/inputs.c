/* PTX of the further inputs of a box or a piece of C, see gemm/end/inputs.h. */
#include "gemm/end/inputs.h"

#include "gemm/tile/sums.h"
#include "lower/convert.h"

#include <stddef.h>

enum {
    /* Inputs that are loaded a box ahead, and before the sums: their registers are taken longer. */
    MAX_AHEAD = 4,
    MAX_EARLY = 2,
    /* Layouts whose pairs may be words. */
    PACKED_LAYOUTS = CUDA_GEMM_INPUT_PAIRS | CUDA_GEMM_INPUT_FOURS
};

/* ---- Layouts ---- */

/* C is stored by rows, and so the strides are those of C. */
static uint8_t piece_layout(const cuda_gemm_key *key, const hal_gemm_input *input)
{
    const uint8_t rows = input->row_stride == 0 ? CUDA_GEMM_INPUT_SAME_ROWS : 0;
    if (key->width != 4) {
        return 0;
    }
    if (input->column_stride == 0) {
        return CUDA_GEMM_INPUT_SAME_COLUMNS | rows;
    }
    return input->column_stride == 1 && (input->row_stride | input->batch_stride) % 4 == 0
               ? CUDA_GEMM_INPUT_FOURS | rows
               : 0;
}

/* Rows and columns are those of a tile: C's columns and rows where C is stored transposed. */
uint8_t cuda_gemm_input_layout(const cuda_gemm_key *key, const hal_gemm_input *input,
                               int64_t columns)
{
    const int64_t down = key->swapped ? input->column_stride : input->row_stride,
                  along = key->swapped ? input->row_stride : input->column_stride;
    const bool pairs = along == 1 && (columns | input->batch_stride) % 2 == 0;
    if (!key->epilogue) {
        return 0;
    }
    if (key->staged) {
        return piece_layout(key, input);
    }
    if (down == 0) {
        return CUDA_GEMM_INPUT_SAME_ROWS | (pairs ? CUDA_GEMM_INPUT_PAIRS : 0);
    }
    return along == 0 ? CUDA_GEMM_INPUT_SAME_COLUMNS : 0;
}

static bool same_rows(const cuda_gemm_key *key, uint32_t input)
{
    return key->layouts[input] & CUDA_GEMM_INPUT_SAME_ROWS;
}

static bool is_ahead(const cuda_gemm_key *key, uint32_t input)
{
    return key->input_count <= MAX_AHEAD && same_rows(key, input);
}

/* Not where registers also hold a second set of sums, or A. */
static bool is_early(const cuda_gemm_key *key, uint32_t input)
{
    return key->input_count <= MAX_EARLY && !key->flushes &&
           !(key->type == HAL_TYPE_F32 && key->transpose_a) &&
           key->layouts[input] & (CUDA_GEMM_INPUT_SAME_ROWS | CUDA_GEMM_INPUT_SAME_COLUMNS);
}

/* ---- Addresses ---- */

static size_t parameter(uint32_t input, size_t field)
{
    return offsetof(cuda_gemm_block, inputs) + input * sizeof(cuda_gemm_input) + field;
}

/* The stride from one column of the tile to the next, or from one row to the next. */
static size_t tile_stride(const cuda_gemm_key *key, bool along)
{
    return (key->swapped != 0) == along ? offsetof(cuda_gemm_input, row_stride)
                                        : offsetof(cuda_gemm_input, column_stride);
}

/* The address of the input's matrix, and the bytes of a stride. */
static void write_base(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                       uint32_t input, size_t stride)
{
    const cuda_operand base = cuda_fresh(l, CUDA_LONG), step = cuda_fresh(l, CUDA_LONG),
                       size = cuda_unsigned(hal_type_size(key->inputs[input]));
    cuda_emit(l, "ld.param.u64 $, [block+$];", base,
              cuda_unsigned(parameter(input, offsetof(cuda_gemm_input, address))));
    cuda_emit(l, "ld.param.u64 $, [block+$];", step,
              cuda_unsigned(parameter(input, offsetof(cuda_gemm_input, batch_stride))));
    kit_text_add(&l->body, "cvt.u64.u32 %%wide, %%batch;\n");
    cuda_emit(l, "mul.lo.u64 $, $, %wide;", step, step);
    cuda_emit(l, "mad.lo.u64 $, $, $, $;", base, step, size, base);
    cuda_emit(l, "cvta.to.global.u64 $, $;", base, base);
    cuda_emit(l, "ld.param.u64 $, [block+$];", step, cuda_unsigned(parameter(input, stride)));
    cuda_emit(l, "mul.lo.u64 $, $, $;", step, step, size);
    inputs->of[input].address = base;
    inputs->of[input].step = step;
}

/* The address of the work-item's first column, in all rows. */
static void write_same_rows(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            uint32_t input)
{
    const cuda_gemm_input_state *in = &inputs->of[input];
    write_base(l, key, inputs, input, tile_stride(key, true));
    kit_text_add(&l->body,
                 "add.u32 %%x0, %%column, %%column_of_lane;\ncvt.u64.u32 %%wide, %%x0;\n");
    cuda_emit(l, "mad.lo.u64 $, $, %wide, $;", in->address, in->step, in->address);
}

/* Sets %inside, and %wide to row 0 or 1 of the work-item. */
static void write_row(cuda_lowering *l, const cuda_gemm_key *key, uint32_t row)
{
    kit_text_add(&l->body,
                 "add.u32 %%x0, %%row, %%row_of_lane;\nadd.u32 %%x0, %%x0, %u;\n"
                 "setp.lt.u32 %%inside, %%x0, %%m;\ncvt.u64.u32 %%wide, %%x0;\n",
                 row * cuda_gemm_row_step(key));
}

/* ---- Loads ---- */

cuda_operand cuda_gemm_load(cuda_lowering *l, hal_type type)
{
    const cuda_operand value = cuda_fresh(l, cuda_class(hal_type_of_value(type)));
    if (hal_type_size(type) == 2) {
        const cuda_operand word = cuda_fresh(l, CUDA_WORD);
        kit_text_add(&l->body, "mov.b16 %%half, 0;\n@%%inside ld.global.b16 %%half, [%%at];\n");
        cuda_emit(l, "cvt.u32.u16 $, %half;", word);
        cuda_unpack_half(l, type, value, word, 0);
        return value;
    }
    cuda_emit(l, "mov.b32 $, 0;", value);
    cuda_emit(l, "@%inside ld.global.b32 $, [%at];", value);
    return value;
}

static void write_same_columns(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                               uint32_t input)
{
    cuda_gemm_input_state *in = &inputs->of[input];
    write_base(l, key, inputs, input, tile_stride(key, false));
    for (uint32_t i = 0; i < 2; i++) {
        write_row(l, key, i);
        cuda_emit(l, "mad.lo.u64 %at, $, %wide, $;", in->step, in->address);
        in->rows[i] = cuda_gemm_load(l, key->inputs[input]);
    }
}

/* `count` words at an address, 0 where %inside is false. */
static void write_words(cuda_lowering *l, uint32_t class, uint32_t count, cuda_operand address,
                        uint32_t offset, cuda_operand *words)
{
    for (uint32_t i = 0; i < count; i++) {
        words[i] = cuda_fresh(l, class);
        cuda_emit(l, "mov.b32 $, 0;", words[i]);
    }
    const cuda_operand at = cuda_unsigned(offset);
    if (count == 1) {
        cuda_emit(l, "@%inside ld.global.b32 $, [$+$];", words[0], address, at);
    } else if (count == 2) {
        cuda_emit(l, "@%inside ld.global.v2.b32 {$, $}, [$+$];", words[0], words[1], address, at);
    } else {
        cuda_emit(l, "@%inside ld.global.v4.b32 {$, $, $, $}, [$+$];", words[0], words[1], words[2],
                  words[3], address, at);
    }
}

/* Neighbours at an address, `pairs` of them: with one access. */
static void write_pairs(cuda_lowering *l, hal_type type, uint32_t count, cuda_operand address,
                        uint32_t offset, cuda_gemm_pair *pairs)
{
    const bool halves = hal_type_size(type) == 2;
    cuda_operand words[4];
    write_words(l, halves ? CUDA_WORD : cuda_class(hal_type_of_value(type)),
                halves ? count : 2 * count, address, offset, words);
    for (uint32_t i = 0; i < count; i++) {
        pairs[i] = halves ? (cuda_gemm_pair){.is_packed = true, .word = words[i]}
                          : (cuda_gemm_pair){.values = {words[2 * i], words[2 * i + 1]}};
    }
}

/* Pairs of a box, of an input that is not the same in all columns. */
static void write_box(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                      uint32_t input, uint32_t first, uint32_t count)
{
    cuda_gemm_input_state *in = &inputs->of[input];
    const hal_type type = key->inputs[input];
    for (uint32_t p = 0; p < count; p++) {
        const uint32_t column = first + 8 * p;
        kit_text_add(&l->body,
                     "add.u32 %%x0, %%column, %%column_of_lane;\nadd.u32 %%x0, %%x0, %u;\n"
                     "setp.lt.u32 %%inside, %%x0, %%n;\n",
                     column);
        if (key->layouts[input] & CUDA_GEMM_INPUT_PAIRS) {
            write_pairs(l, type, 1, in->address, column * hal_type_size(type), &in->pairs[p]);
            continue;
        }
        cuda_gemm_pair *pair = &in->pairs[p];
        pair->is_packed = false;
        for (uint32_t j = 0; j < 2; j++) {
            cuda_emit(l, "mad.lo.u64 %at, $, $, $;", in->step, cuda_unsigned(column + j),
                      in->address);
            pair->values[j] = cuda_gemm_load(l, type);
            kit_text_add(&l->body, "add.u32 %%x0, %%x0, 1;\nsetp.lt.u32 %%inside, %%x0, %%n;\n");
        }
    }
}

/* ---- A tile that leaves in boxes ---- */

static void write_tile(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                       uint32_t count, bool early)
{
    for (uint32_t i = 0; i < key->input_count; i++) {
        if (key->layouts[i] == 0 || is_early(key, i) != early) {
            continue;
        }
        if (same_rows(key, i)) {
            write_same_rows(l, key, inputs, i);
        } else {
            write_same_columns(l, key, inputs, i);
        }
        if (is_ahead(key, i)) {
            write_box(l, key, inputs, i, 0, count);
        }
    }
}

void cuda_gemm_inputs_prepare(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                              uint32_t count)
{
    write_tile(l, key, inputs, count, true);
}

void cuda_gemm_inputs_begin(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            uint32_t count)
{
    write_tile(l, key, inputs, count, false);
}

void cuda_gemm_inputs_box(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                          cuda_gemm_inputs *loaded, uint32_t first, uint32_t next, uint32_t count)
{
    *loaded = *inputs;
    for (uint32_t i = 0; i < key->input_count; i++) {
        if (key->layouts[i] == 0 || key->layouts[i] & CUDA_GEMM_INPUT_SAME_COLUMNS) {
            continue;
        }
        if (!is_ahead(key, i)) {
            write_box(l, key, loaded, i, first, count);
        } else if (next != UINT32_MAX) {
            write_box(l, key, inputs, i, next, count);
        }
    }
}

static void write_pair_move(cuda_lowering *l, const cuda_gemm_pair *to, const cuda_gemm_pair *from)
{
    if (from->is_packed) {
        cuda_emit(l, "mov.b32 $, $;", to->word, from->word);
        return;
    }
    for (uint32_t j = 0; j < 2; j++) {
        cuda_emit(l, "mov.b32 $, $;", to->values[j], from->values[j]);
    }
}

void cuda_gemm_inputs_advance(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                              const cuda_gemm_inputs *start, uint32_t columns)
{
    for (uint32_t i = 0; i < key->input_count; i++) {
        const cuda_gemm_input_state *in = &inputs->of[i];
        if (key->layouts[i] == 0 || key->layouts[i] & CUDA_GEMM_INPUT_SAME_COLUMNS) {
            continue;
        }
        cuda_emit(l, "mad.lo.u64 $, $, $, $;", in->address, in->step, cuda_unsigned(columns),
                  in->address);
        for (uint32_t p = 0; p < columns / 8 && is_ahead(key, i); p++) {
            write_pair_move(l, &start->of[i].pairs[p], &in->pairs[p]);
        }
    }
    *inputs = *start;
}

/* ---- A tile that is stored by rows ---- */

void cuda_gemm_inputs_begin_pieces(cuda_lowering *l, const cuda_gemm_key *key,
                                   cuda_gemm_inputs *inputs)
{
    for (uint32_t i = 0; i < key->input_count; i++) {
        if (key->layouts[i] != 0) {
            write_base(l, key, inputs, i, offsetof(cuda_gemm_input, row_stride));
        }
    }
}

void cuda_gemm_inputs_piece(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            const char *row, const char *column)
{
    for (uint32_t i = 0; i < key->input_count; i++) {
        cuda_gemm_input_state *in = &inputs->of[i];
        if (key->layouts[i] == 0) {
            continue;
        }
        cuda_emit(l, "mov.b64 %at, $;", in->address);
        if (!same_rows(key, i)) {
            kit_text_add(&l->body, "cvt.u64.u32 %%wide, %s;\n", row);
            cuda_emit(l, "mad.lo.u64 %at, %wide, $, %at;", in->step);
        }
        if (key->layouts[i] & CUDA_GEMM_INPUT_FOURS) {
            kit_text_add(&l->body, "cvt.u64.u32 %%wide, %s;\nmad.lo.u64 %%at, %%wide, %u, %%at;\n",
                         column, hal_type_size(key->inputs[i]));
            write_pairs(l, key->inputs[i], 2, cuda_text("%at"), 0, in->pairs);
        } else {
            const cuda_operand value = cuda_gemm_load(l, key->inputs[i]);
            in->pairs[0] = in->pairs[1] = (cuda_gemm_pair){.values = {value, value}};
        }
    }
}

/* ---- Values ---- */

void cuda_gemm_inputs_unpack(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                             uint32_t pair)
{
    for (uint32_t i = 0; i < key->input_count; i++) {
        cuda_gemm_pair *p = &inputs->of[i].pairs[pair];
        for (uint32_t j = 0; j < 2 && key->layouts[i] & PACKED_LAYOUTS && p->is_packed; j++) {
            p->values[j] = cuda_fresh(l, CUDA_FLOAT);
            cuda_unpack_half(l, key->inputs[i], p->values[j], p->word, j);
        }
    }
}

cuda_operand cuda_gemm_input_value(const cuda_gemm_key *key, const cuda_gemm_inputs *inputs,
                                   uint32_t input, uint32_t row, uint32_t pair, uint32_t second)
{
    const cuda_gemm_input_state *in = &inputs->of[input];
    return !key->staged && key->layouts[input] == CUDA_GEMM_INPUT_SAME_COLUMNS
               ? in->rows[row]
               : in->pairs[pair].values[second];
}
