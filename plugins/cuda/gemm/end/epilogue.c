/* PTX of the epilogue, see gemm/end/epilogue.h. A warpgroup writes a box into shared memory, in the
 * swizzle of the tensor map, and one of its threads starts the copy. The boxes of a warpgroup take
 * turns. A box has lines of 128 bytes along C's rows: 64 of them; of a swapped product as many
 * as cuda_gemm_store_rows, and of F32 two boxes next to each other. The last box of a tile may
 * overlap the one before it, with the same values.
 *
 * Layout of the sums (PTX ISA, wgmma m64nNk16 accumulator): work-item `lane` of warp w has rows 16
 * w + lane / 4 and 8 more (or those of cuda_gemm_write_row), and columns 2 (lane mod 4) and the
 * next one of each block of 8. */
#include "gemm/end/epilogue.h"

#include "gemm/end/element.h"
#include "gemm/end/rows.h"
#include "gemm/tile/ring.h"
#include "gemm/tile/sums.h"
#include "lower/convert.h"

#include <stddef.h>

enum {
    BOX_BYTES = 64 * CUDA_GEMM_LINE,
    LOOP_COLUMNS = 64,    /* of the tile, in a box of a loop, */
    MIN_LOOP_RECORDS = 16 /* and of its fragment, at least */
};

/* Columns of the tile whose sums a box takes. */
static uint32_t box_columns(const cuda_gemm_key *key)
{
    return key->swapped ? cuda_gemm_store_rows(key) : cuda_gemm_line(key->type_c);
}

bool cuda_gemm_epilogue_is_supported(const cuda_gemm_key *key)
{
    const uint32_t columns = box_columns(key);
    /* C is read after an overlapping box may have been written. */
    return key->columns >= columns && (!key->reads_c || key->columns % columns == 0) &&
           cuda_gemm_element_is_supported(key, key->columns / 2);
}

/* Whether the two rows of a work-item are neighbours in the rows of C. */
static bool rows_are_neighbours(const cuda_gemm_key *key)
{
    return key->swapped && cuda_gemm_row_step(key) == 1;
}

/* A work-item's place in a box. 32-bit elements, and pairs of 16-bit ones: of its first element.
 * Others of 16 bits are stored as four matrices of 8 x 8, for which each work-item names a row of
 * 16 bytes. */
static void write_place_in_box(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "and.b32 %%x0, %%warp, 3;\n");
    if (hal_type_size(key->type_c) == 2 && rows_are_neighbours(key)) {
        kit_text_add(t, "shl.b32 %%x0, %%x0, 1;\nshr.u32 %%x2, %%lane, 4;\n"
                        "add.u32 %%x2, %%x2, %%x0;\n"
                        "and.b32 %%x1, %%lane, 3;\nshl.b32 %%x1, %%x1, 1;\n"
                        "mad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "shr.u32 %%x0, %%lane, 2;\nand.b32 %%x0, %%x0, 3;\n"
                        "mad.lo.u32 %%box, %%x0, 4, %%box;\n");
    } else if (hal_type_size(key->type_c) == 2 && !key->swapped) {
        kit_text_add(t, "shl.b32 %%x1, %%x0, 4;\nand.b32 %%x2, %%lane, 15;\n");
        if (cuda_gemm_row_step(key) == 1) { /* row 2 i of matrix 0, and the next one of 1 */
            kit_text_add(t, "shr.u32 %%x0, %%x2, 3;\nand.b32 %%x2, %%x2, 7;\n"
                            "mad.lo.u32 %%x2, %%x2, 2, %%x0;\n");
        }
        kit_text_add(t, "add.u32 %%x1, %%x1, %%x2;\nmad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "and.b32 %%x1, %%x1, 7;\nshr.u32 %%x2, %%lane, 4;\n");
    } else if (hal_type_size(key->type_c) == 2) { /* transposed: rows of C are columns of sums */
        kit_text_add(t, "shr.u32 %%x1, %%lane, 4;\nshl.b32 %%x1, %%x1, 3;\n"
                        "and.b32 %%x2, %%lane, 7;\nadd.u32 %%x1, %%x1, %%x2;\n"
                        "mad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "mov.u32 %%x1, %%x2;\nshl.b32 %%x0, %%x0, 1;\nshr.u32 %%x2, %%lane, 3;\n"
                        "and.b32 %%x2, %%x2, 1;\nadd.u32 %%x2, %%x2, %%x0;\n");
    } else if (!key->swapped) {
        kit_text_add(t, "and.b32 %%x1, %%row_of_lane, 63;\nmad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "and.b32 %%x2, %%lane, 1;\nshl.b32 %%x2, %%x2, 3;\n"
                        "add.u32 %%box, %%box, %%x2;\nand.b32 %%x1, %%x1, 7;\n"
                        "and.b32 %%x2, %%lane, 3;\nshr.u32 %%x2, %%x2, 1;\n");
    } else {
        kit_text_add(t,
                     "and.b32 %%x0, %%row_of_lane, 63;\nshr.u32 %%x1, %%x0, 5;\n"
                     "mad.lo.u32 %%box, %%x1, %u, %%box;\n"
                     "and.b32 %%x1, %%lane, 3;\nshl.b32 %%x1, %%x1, 1;\n"
                     "mad.lo.u32 %%box, %%x1, 128, %%box;\n"
                     "and.b32 %%x2, %%x0, 3;\nmad.lo.u32 %%box, %%x2, 4, %%box;\n"
                     "and.b32 %%x2, %%x0, 31;\nshr.u32 %%x2, %%x2, 2;\n",
                     cuda_gemm_store_rows(key) * CUDA_GEMM_LINE);
    }
    kit_text_add(t, "xor.b32 %%swizzle, %%x1, %%x2;\nshl.b32 %%swizzle, %%swizzle, 4;\n");
}

void cuda_gemm_epilogue_begin(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t boxes = cuda_gemm_store_boxes(key);
    cuda_gemm_element_begin(l, key->type);
    kit_text_add(t,
                 ".reg .pred %%stores;\n"
                 ".reg .b32 %%row_of_lane, %%column_of_lane, %%box, %%swizzle, %%row0, %%row1;\n"
                 ".reg .b32 %%next_column, %%first_row, %%box_row, %%box_column, %%room, %%other;\n"
                 ".reg .b32 %%box_at, %%room_before;\n"
                 "and.b32 %%x0, %%thread, 127;\nsetp.eq.u32 %%stores, %%x0, 0;\n"
                 "and.b32 %%column_of_lane, %%lane, 3;\n"
                 "shl.b32 %%column_of_lane, %%column_of_lane, 1;\n"
                 "mad.lo.u32 %%box, %%multiplier, %u, %%base;\nadd.u32 %%box, %%box, %u;\n"
                 "mov.u32 %%room, %%box;\nmov.u32 %%other, %u;\n",
                 boxes * BOX_BYTES, cuda_gemm_store_offset(key), (boxes - 1) * BOX_BYTES);
    cuda_gemm_write_row(t, key);
    kit_text_add(t, "mov.u32 %%row_of_lane, %%x0;\n");
    write_place_in_box(t, key);
    if (key->by_rows) {
        cuda_gemm_rows_begin(t, key);
    }
}

/* One element: column `in_box` of the box that begins `first` columns into the tile, counted from
 * the work-item's first one, in its row 0 or 1. Returns the value to store. */
static cuda_operand write_element(cuda_lowering *l, const cuda_gemm_key *key,
                                  const cuda_gemm_inputs *inputs, uint32_t first, uint32_t in_box,
                                  uint32_t row)
{
    const uint32_t column = first + in_box, pair = in_box / 8, second = in_box % 8;
    const char *row_name = row == 0 ? "%row0" : "%row1";
    const cuda_gemm_place plain = {row_name, "%next_column", "%m", "%n", inputs, pair, second, row},
                          swapped = {"%next_column", row_name, "%n",   "%m",
                                     inputs,         pair,     second, row};
    if (key->reads_c || key->epilogue) {
        kit_text_add(&l->body,
                     "add.u32 %%next_column, %%column_of_lane, %%column;\n"
                     "add.u32 %%next_column, %%next_column, %u;\n",
                     column);
    }
    return cuda_gemm_element(l, key, key->swapped ? &swapped : &plain,
                             cuda_gemm_sum(key, column / 8 * 4 + row * 2 + column % 2));
}

/* A box of 16-bit elements: stores of matrices, each of two blocks of 8 columns of the tile. */
static void write_box_halves(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                             uint32_t first)
{
    for (uint32_t pair = 0; pair < box_columns(key) / 16; pair++) {
        cuda_operand words[4];
        cuda_gemm_inputs_unpack(l, key, inputs, 2 * pair);
        cuda_gemm_inputs_unpack(l, key, inputs, 2 * pair + 1);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t column = 16 * pair + 8 * (i / 2), row = i % 2;
            const cuda_operand low = write_element(l, key, inputs, first, column, row),
                               high = write_element(l, key, inputs, first, column + 1, row);
            words[i] = cuda_fresh(l, CUDA_WORD);
            cuda_pack_halves(l, key->type_c, words[i], low, high);
        }
        if (key->swapped) {
            kit_text_add(&l->body, "add.u32 %%x0, %%swizzle, %%box;\n");
            cuda_emit(l, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%x0+$], {$, $, $, $};",
                      cuda_unsigned(16 * pair * CUDA_GEMM_LINE), words[0], words[1], words[2],
                      words[3]);
        } else {
            kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                         32 * pair);
            cuda_emit(l, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%x0], {$, $, $, $};", words[0],
                      words[1], words[2], words[3]);
        }
    }
}

/* A box of 32-bit elements: a pair of neighbours at once, or each element where neighbours are rows
 * of C. The swizzle exclusive-ors bits 4 to 6 of an address with the line: 8 lines are the same, 4
 * a bit. */
static void write_box_floats(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                             uint32_t first)
{
    const uint32_t step = cuda_gemm_row_step(key);
    for (uint32_t i = 0; i < box_columns(key) / 8 * 2; i++) {
        const uint32_t block = i / 2, row = i % 2, column = 8 * block;
        if (row == 0) {
            cuda_gemm_inputs_unpack(l, key, inputs, block);
        }
        const cuda_operand low = write_element(l, key, inputs, first, column, row),
                           high = write_element(l, key, inputs, first, column + 1, row);
        for (uint32_t j = 0; j < 2 && key->swapped; j++) {
            kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                         (4 * step * row) ^ (16 * j));
            cuda_emit(l, "st.shared.b32 [%x0+$], $;",
                      cuda_unsigned((8 * block + j) * CUDA_GEMM_LINE), j == 0 ? low : high);
        }
        if (!key->swapped) {
            kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                         (32 * block) ^ (row * step % 8 * 16));
            cuda_emit(l, "st.shared.v2.b32 [%x0+$], {$, $};",
                      cuda_unsigned(row * step * CUDA_GEMM_LINE), low, high);
        }
    }
}

/* A box of C where a work-item's rows are neighbours: pairs of both sizes. */
static void write_box_pairs(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            uint32_t first)
{
    for (uint32_t column = 0; column < box_columns(key); column += column % 8 == 0 ? 1 : 7) {
        if (column % 8 == 0) {
            cuda_gemm_inputs_unpack(l, key, inputs, column / 8);
        }
        const cuda_operand low = write_element(l, key, inputs, first, column, 0),
                           high = write_element(l, key, inputs, first, column, 1),
                           at = cuda_unsigned(column * CUDA_GEMM_LINE);
        kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                     16 * (column % 8));
        if (hal_type_size(key->type_c) == 2) {
            const cuda_operand word = cuda_fresh(l, CUDA_WORD);
            cuda_pack_halves(l, key->type_c, word, low, high);
            cuda_emit(l, "st.shared.b32 [%x0+$], $;", at, word);
        } else {
            cuda_emit(l, "st.shared.v2.b32 [%x0+$], {$, $};", at, low, high);
        }
    }
}

/* Boxes of a store: of a swapped product of 32-bit elements two, next to each other. */
static uint32_t box_count(const cuda_gemm_key *key)
{
    return key->swapped && hal_type_size(key->type_c) == 4 ? 2 : 1;
}

static void write_next_room(kit_text *t)
{
    kit_text_add(t, "add.u32 %%box, %%box, %%other;\nadd.u32 %%room, %%room, %%other;\n"
                    "neg.s32 %%other, %%other;\n");
}

/* Of C that is not transposed a box leaves the ends of its lines to the next one. */
static void write_store_rows(kit_text *t, const cuda_gemm_key *key, uint32_t first, uint32_t number)
{
    const bool overlaps = number * box_columns(key) != first;
    cuda_gemm_box box = {.at = "%room",
                         .previous = number > 0 && !overlaps ? "%room_before" : NULL,
                         .row = "%first_row",
                         .column = "%box_column",
                         .rows = "%m",
                         .columns = "%n",
                         .lines = 64,
                         .is_last = first + box_columns(key) == key->columns};
    kit_text_add(t, "bar.sync %%barrier, 128;\nadd.u32 %%box_column, %%column, %u;\n", first);
    kit_text_add(t, "add.u32 %%room_before, %%room, %%other;\n");
    if (key->swapped) {
        box = (cuda_gemm_box){.at = "%box_at",
                              .row = "%box_column",
                              .column = "%box_row",
                              .rows = "%n",
                              .columns = "%m",
                              .lines = cuda_gemm_store_rows(key),
                              .is_last = true};
    }
    for (uint32_t i = 0; i < box_count(key); i++) {
        kit_text_add(t, "add.u32 %%box_at, %%room, %u;\nadd.u32 %%box_row, %%first_row, %u;\n",
                     i * cuda_gemm_store_rows(key) * CUDA_GEMM_LINE,
                     i * cuda_gemm_line(key->type_c));
        box.number = number * box_count(key) + i;
        cuda_gemm_rows_store(t, key, &box);
    }
    write_next_room(t);
}

static void write_store(kit_text *t, const cuda_gemm_key *key, uint32_t first)
{
    const char *place =
        key->swapped ? "{%box_row, %box_column, %batch}" : "{%box_column, %box_row, %batch}";
    kit_text_add(t,
                 "fence.proxy.async.shared::cta;\nbar.sync %%barrier, 128;\n"
                 "add.u32 %%box_column, %%column, %u;\nadd.u64 %%e0, %%maps, %u;\n",
                 first, 2 * CUDA_GEMM_MAP_BYTES);
    for (uint32_t i = 0; i < box_count(key); i++) {
        kit_text_add(t, "add.u32 %%x0, %%room, %u;\nadd.u32 %%box_row, %%first_row, %u;\n",
                     i * cuda_gemm_store_rows(key) * CUDA_GEMM_LINE,
                     i * cuda_gemm_line(key->type_c));
        kit_text_add(t,
                     "@%%stores cp.async.bulk.tensor.3d.global.shared::cta.bulk_group "
                     "[%%e0, %s], [%%x0];\n",
                     place);
    }
    kit_text_add(t, "@%%stores cp.async.bulk.commit_group;\n");
    write_next_room(t);
}

/* Where box `number` begins: the last one may overlap the one before it. */
static uint32_t box_first(const cuda_gemm_key *key, uint32_t number)
{
    const uint32_t columns = box_columns(key), first = number * columns;
    return first + columns <= key->columns ? first : key->columns - columns;
}

void cuda_gemm_epilogue_prepare(cuda_lowering *l, const cuda_gemm_key *key,
                                cuda_gemm_inputs *inputs)
{
    cuda_gemm_inputs_prepare(l, key, inputs, box_columns(key) / 8);
}

/* Box `number`, which begins `first` columns into the tile, and the loads of inputs for the box
 * that begins at `next`. */
static void write_box(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                      uint32_t first, uint32_t next, uint32_t number)
{
    kit_text *t = &l->body;
    cuda_gemm_inputs *loaded = &l->inputs[CUDA_GEMM_INPUTS_OF_BOX];
    cuda_gemm_inputs_box(l, key, inputs, loaded, first, next, box_columns(key) / 8);
    if (!key->by_rows) {
        kit_text_add(t, "@%%stores cp.async.bulk.wait_group.read %u;\n",
                     cuda_gemm_store_boxes(key) - 1);
    }
    if (!key->by_rows || (!key->swapped && number != 1)) {
        /* all have read the box that is written now; a first box of rows reads no other */
        kit_text_add(t, "bar.sync %%barrier, 128;\n");
    }
    if (rows_are_neighbours(key)) {
        write_box_pairs(l, key, loaded, first);
    } else if (hal_type_size(key->type_c) == 2) {
        write_box_halves(l, key, loaded, first);
    } else {
        write_box_floats(l, key, loaded, first);
    }
    if (key->by_rows) {
        write_store_rows(t, key, first, number);
    } else {
        write_store(t, key, first);
    }
}

/* Whether the boxes are a loop. The assembler orders the operations of a long fragment for few
 * registers where they are written for all sums of a wide tile, so that each waits for the one
 * before it; of a single box it does not. That costs more than moving sums, but where two warps of
 * a scheduler fill each other's waits. */
static bool boxes_are_looped(const cuda_gemm_key *key)
{
    return key->epilogue && !key->by_rows && hal_type_size(key->type_c) == 2 &&
           key->epilogue->record_count >= MIN_LOOP_RECORDS && key->columns % LOOP_COLUMNS == 0 &&
           key->columns > LOOP_COLUMNS && box_columns(key) == LOOP_COLUMNS &&
           (key->alternates || key->swapped || key->columns <= 2 * LOOP_COLUMNS);
}

/* Each turn of the loop has the sums of the first box, where those of all others move after it. The
 * end is tested after that, as the assembler would write the first box twice otherwise. */
static void write_loop(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs)
{
    kit_text *t = &l->body;
    cuda_gemm_inputs *start = &l->inputs[CUDA_GEMM_INPUTS_OF_LOOP];
    *start = *inputs;
    kit_text_add(t, ".reg .b32 %%boxes;\nmov.u32 %%boxes, %u;\nBOX:\n.pragma \"nounroll\";\n",
                 key->columns / LOOP_COLUMNS);
    write_box(l, key, inputs, 0, LOOP_COLUMNS, 0);
    kit_text_add(t,
                 "sub.u32 %%boxes, %%boxes, 1;\nsetp.ne.u32 %%last, %%boxes, 0;\n"
                 "add.u32 %%column, %%column, %u;\n",
                 LOOP_COLUMNS);
    cuda_gemm_inputs_advance(l, key, inputs, start, LOOP_COLUMNS);
    for (uint32_t i = 0; i < (key->columns - LOOP_COLUMNS) / 2; i++) {
        cuda_emit(l, "mov.b32 $, $;", cuda_gemm_sum(key, i),
                  cuda_gemm_sum(key, i + LOOP_COLUMNS / 2));
    }
    kit_text_add(t, "@%%last bra BOX;\n");
}

void cuda_gemm_epilogue_tile(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs)
{
    kit_text *t = &l->body;
    const uint32_t columns = box_columns(key);
    cuda_gemm_element_tile(t);
    kit_text_add(t,
                 "add.u32 %%row0, %%row, %%row_of_lane;\nadd.u32 %%row1, %%row0, %u;\n"
                 "shl.b32 %%x0, %s, 6;\nadd.u32 %%first_row, %%row, %%x0;\n"
                 "add.u32 %%barrier, %%multiplier, 1;\n",
                 cuda_gemm_row_step(key), cuda_gemm_band(key));
    cuda_gemm_inputs_begin(l, key, inputs, columns / 8);
    if (boxes_are_looped(key)) {
        write_loop(l, key, inputs);
        return;
    }
    const uint32_t boxes = (key->columns + columns - 1) / columns;
    for (uint32_t i = 0; i < boxes; i++) {
        write_box(l, key, inputs, box_first(key, i),
                  i + 1 < boxes ? box_first(key, i + 1) : UINT32_MAX, i);
    }
}

void cuda_gemm_epilogue_end(kit_text *t, const cuda_gemm_key *key)
{
    if (!key->by_rows) {
        kit_text_add(t, "cp.async.bulk.wait_group.read 0;\n");
    }
}
