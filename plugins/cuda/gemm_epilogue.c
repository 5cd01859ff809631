/* PTX of the epilogue, see gemm_epilogue.h. Tiles of C leave in boxes of 64 rows of 128 bytes: a
 * warpgroup writes a box into shared memory, in the swizzle of the tensor map, and one of its
 * threads starts the copy. Two boxes of each warpgroup take turns.
 *
 * Layout of the sums (PTX ISA, wgmma m64nNk16 accumulator): work-item `lane` of warp w has rows
 * 16 w + lane / 4 and 8 more, and columns 2 (lane mod 4) and the next one of each block of 8. */
#include "gemm_epilogue.h"

#include <stddef.h>
#include <stdio.h>

enum {
    BOX_BYTES = CUDA_GEMM_BOX * CUDA_GEMM_STORE_ROW,
    MAX_RECORDS = 96 /* of a fragment that is written for up to 128 elements */
};

static bool input_is_loaded(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F16 || type == HAL_TYPE_BF16 ||
           type == HAL_TYPE_I32 || type == HAL_TYPE_U32;
}

bool cuda_gemm_epilogue_is_supported(const cuda_gemm_key *key)
{
    if (key->epilogue == NULL) {
        return true;
    }
    bool supported = key->epilogue->record_count <= MAX_RECORDS;
    for (uint32_t i = 0; i < key->input_count; i++) {
        supported &= input_is_loaded(key->inputs[i]);
    }
    for (uint32_t i = 0; i < key->epilogue->record_count; i++) {
        const hal_ir_record *r = &key->epilogue->records[i];
        supported &=
            r->opcode != HAL_IR_OUTPUT || key->epilogue->records[r->a].type == HAL_TYPE_F32;
    }
    return supported;
}

static uint32_t box_columns(const cuda_gemm_key *key)
{
    return CUDA_GEMM_STORE_ROW / hal_type_size(key->type_c);
}

/* A work-item's place in a box: 16-bit elements are stored as matrices of 8 x 8, for which each
 * work-item names a row of 16 bytes; F32 as pairs. */
void cuda_gemm_epilogue_begin(cuda_lowering *l, const cuda_gemm_key *key, uint32_t store_offset)
{
    kit_text *t = &l->body;
    kit_text_add(t,
                 ".reg .f32 %%alpha, %%beta;\n"
                 ".reg .pred %%inside, %%stores;\n"
                 ".reg .b32 %%row_of_lane, %%column_of_lane, %%box, %%swizzle, %%row0, %%row1;\n"
                 ".reg .b32 %%next_column, %%box_row, %%box_column, %%room, %%other;\n"
                 ".reg .b64 %%c, %%ldc, %%stride_c, %%line0, %%line1, %%at, %%wide;\n"
                 ".reg .b16 %%half;\n"
                 "ld.param.f32 %%alpha, [block+%zu];\nld.param.f32 %%beta, [block+%zu];\n"
                 "ld.param.u64 %%c, [block+%zu];\ncvta.to.global.u64 %%c, %%c;\n"
                 "ld.param.u64 %%ldc, [block+%zu];\nld.param.u64 %%stride_c, [block+%zu];\n"
                 "and.b32 %%x0, %%thread, 127;\nsetp.eq.u32 %%stores, %%x0, 0;\n"
                 "and.b32 %%x0, %%warp, 3;\nshl.b32 %%x1, %%x0, 4;\n"
                 "shl.b32 %%x2, %%multiplier, 6;\nadd.u32 %%row_of_lane, %%x1, %%x2;\n"
                 "shr.u32 %%x2, %%lane, 2;\nadd.u32 %%row_of_lane, %%row_of_lane, %%x2;\n"
                 "and.b32 %%column_of_lane, %%lane, 3;\n"
                 "shl.b32 %%column_of_lane, %%column_of_lane, 1;\n"
                 "mad.lo.u32 %%box, %%multiplier, %u, %%base;\nadd.u32 %%box, %%box, %u;\n"
                 "mov.u32 %%room, %%box;\nmov.u32 %%other, %u;\n",
                 offsetof(cuda_gemm_block, alpha), offsetof(cuda_gemm_block, beta),
                 offsetof(cuda_gemm_block, c), offsetof(cuda_gemm_block, ldc),
                 offsetof(cuda_gemm_block, stride_c), 2 * BOX_BYTES, store_offset, BOX_BYTES);
    if (hal_type_size(key->type_c) == 2) {
        kit_text_add(t, "and.b32 %%x2, %%lane, 15;\nadd.u32 %%x1, %%x1, %%x2;\n"
                        "mad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "and.b32 %%x1, %%x1, 7;\nshr.u32 %%x2, %%lane, 4;\n"
                        "xor.b32 %%swizzle, %%x1, %%x2;\nshl.b32 %%swizzle, %%swizzle, 4;\n");
    } else {
        kit_text_add(t, "add.u32 %%x1, %%x1, %%x2;\n"
                        "mad.lo.u32 %%box, %%x1, 128, %%box;\n"
                        "and.b32 %%x1, %%lane, 1;\nshl.b32 %%x1, %%x1, 3;\n"
                        "add.u32 %%box, %%box, %%x1;\n"
                        "and.b32 %%x1, %%x2, 7;\nand.b32 %%x2, %%lane, 3;\nshr.u32 %%x2, %%x2, 1;\n"
                        "xor.b32 %%swizzle, %%x1, %%x2;\nshl.b32 %%swizzle, %%swizzle, 4;\n");
    }
}

/* Loads the element at %at as a value, 0 where %inside is false. */
static cuda_operand write_load(cuda_lowering *l, hal_type type)
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

/* Adds beta C to a value, where beta is not 0. */
static void write_old_value(cuda_lowering *l, const cuda_gemm_key *key, cuda_operand value,
                            uint32_t row, uint32_t column)
{
    kit_text_add(&l->body,
                 "setp.lt.u32 %%inside, %%next_column, %%n;\n"
                 "setp.lt.and.u32 %%inside, %%row%u, %%m, %%inside;\n"
                 "setp.neu.and.f32 %%inside, %%beta, 0f00000000, %%inside;\n"
                 "add.u64 %%at, %%line%u, %u;\n",
                 row, row, column * hal_type_size(key->type_c));
    const cuda_operand old = write_load(l, key->type_c);
    cuda_emit(l, "@%inside fma.rn.f32 $, %beta, $, $;", value, old, value);
}

/* A further input of the epilogue at the element's place. */
static cuda_operand write_input(cuda_lowering *l, const cuda_gemm_key *key, uint32_t input,
                                uint32_t row)
{
    const hal_type type = key->inputs[input];
    const size_t place = offsetof(cuda_gemm_block, inputs) + input * sizeof(cuda_gemm_input);
    const cuda_operand address = cuda_fresh(l, CUDA_LONG), stride = cuda_fresh(l, CUDA_LONG);
    static const struct {
        const char *coordinate;
        size_t offset;
    } parts[3] = {{"%row", offsetof(cuda_gemm_input, row_stride)},
                  {"%next_column", offsetof(cuda_gemm_input, column_stride)},
                  {"%batch", offsetof(cuda_gemm_input, batch_stride)}};
    kit_text_add(&l->body,
                 "setp.lt.u32 %%inside, %%next_column, %%n;\n"
                 "setp.lt.and.u32 %%inside, %%row%u, %%m, %%inside;\n",
                 row);
    cuda_emit(l, "ld.param.u64 $, [block+$];", address,
              cuda_unsigned(place + offsetof(cuda_gemm_input, address)));
    for (uint32_t i = 0; i < 3; i++) {
        cuda_emit(l, "ld.param.u64 $, [block+$];", stride, cuda_unsigned(place + parts[i].offset));
        kit_text_add(&l->body, i == 0 ? "cvt.u64.u32 %%wide, %s%u;\n" : "cvt.u64.u32 %%wide, %s;\n",
                     parts[i].coordinate, row);
        cuda_emit(l, "mul.lo.u64 $, $, %wide;", stride, stride);
        cuda_emit(l, "mad.lo.u64 $, $, $, $;", address, stride, cuda_unsigned(hal_type_size(type)),
                  address);
    }
    cuda_emit(l, "cvta.to.global.u64 %at, $;", address);
    return write_load(l, type);
}

/* The record's register is the operand. */
static void define_input(cuda_lowering *l, const cuda_gemm_key *key, uint32_t index,
                         cuda_operand value, uint32_t row)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_operand input = value;
    if (r->aux >= 4) {
        input = write_input(l, key, r->aux - 4, row);
    } else if (r->aux > 0) {
        static const char *const places[4] = {"", "%row", "%next_column", "%batch"};
        input = cuda_fresh(l, CUDA_WORD);
        kit_text_add(&l->body, r->aux == 1 ? "mov.u32 %%r%llu, %s%u;\n" : "mov.u32 %%r%llu, %s;\n",
                     (unsigned long long)input.bits, places[r->aux], row);
    }
    l->numbers[index] = (uint32_t)input.bits;
}

/* The fragment for one element. Returns its result. */
static cuda_operand write_fragment(cuda_lowering *l, const cuda_gemm_key *key, cuda_operand value,
                                   uint32_t row)
{
    cuda_operand result = value;
    for (uint32_t i = 0; i < l->kernel->record_count && l->status == HAL_OK; i++) {
        const hal_ir_record *r = &l->kernel->records[i];
        if (r->opcode == HAL_IR_INPUT) {
            define_input(l, key, i, value, row);
        } else if (r->opcode == HAL_IR_OUTPUT) {
            result = cuda_in_register(l, r->a, 0);
        } else {
            cuda_lower_record(l, i);
        }
    }
    return result;
}

/* One element: column `column` of the tile next to the work-item's first, in its row 0 or 1.
 * Returns the value to store. */
static cuda_operand write_element(cuda_lowering *l, const cuda_gemm_key *key, uint32_t column,
                                  uint32_t row)
{
    const cuda_operand sum = {CUDA_FLOAT, column / 8 * 4 + row * 2 + column % 2};
    const cuda_operand value = cuda_fresh(l, CUDA_FLOAT);
    cuda_emit(l, "mul.rn.f32 $, $, %alpha;", value, sum);
    if (key->reads_c || key->epilogue != NULL) {
        kit_text_add(&l->body,
                     "add.u32 %%next_column, %%column_of_lane, %%column;\n"
                     "add.u32 %%next_column, %%next_column, %u;\n",
                     column);
    }
    if (key->reads_c) {
        write_old_value(l, key, value, row, column);
    }
    return key->epilogue != NULL ? write_fragment(l, key, value, row) : value;
}

/* A box of 64 columns of 16 bits: four stores of matrices, each of two blocks of 8 columns. */
static void write_box_halves(cuda_lowering *l, const cuda_gemm_key *key, uint32_t first)
{
    for (uint32_t pair = 0; pair < 4; pair++) {
        cuda_operand words[4];
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t column = first + 16 * pair + 8 * (i / 2), row = i % 2;
            const cuda_operand low = write_element(l, key, column, row),
                               high = write_element(l, key, column + 1, row);
            words[i] = cuda_fresh(l, CUDA_WORD);
            cuda_pack_halves(l, key->type_c, words[i], low, high);
        }
        kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                     32 * pair);
        cuda_emit(l, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%x0], {$, $, $, $};", words[0],
                  words[1], words[2], words[3]);
    }
}

/* A box of 32 columns of F32. */
static void write_box_floats(cuda_lowering *l, const cuda_gemm_key *key, uint32_t first)
{
    for (uint32_t block = 0; block < 4; block++) {
        for (uint32_t row = 0; row < 2; row++) {
            const uint32_t column = first + 8 * block;
            const cuda_operand low = write_element(l, key, column, row),
                               high = write_element(l, key, column + 1, row);
            kit_text_add(&l->body, "xor.b32 %%x0, %%swizzle, %u;\nadd.u32 %%x0, %%x0, %%box;\n",
                         32 * block);
            cuda_emit(l, "st.shared.v2.f32 [%x0+$], {$, $};",
                      cuda_unsigned(row * 8 * CUDA_GEMM_STORE_ROW), low, high);
        }
    }
}

/* The addresses of the work-item's two rows of C, at its first column of the tile. */
static void write_lines(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "add.u32 %%row0, %%row, %%row_of_lane;\nadd.u32 %%row1, %%row0, 8;\n");
    if (!key->reads_c) {
        return;
    }
    kit_text_add(t, "add.u32 %%x0, %%column, %%column_of_lane;\ncvt.u64.u32 %%wide, %%x0;\n");
    for (uint32_t row = 0; row < 2; row++) {
        kit_text_add(
            t,
            "cvt.u64.u32 %%line%u, %%row%u;\nmad.lo.u64 %%line%u, %%line%u, %%ldc, %%wide;\n"
            "cvt.u64.u32 %%at, %%batch;\nmad.lo.u64 %%line%u, %%at, %%stride_c, %%line%u;\n"
            "mad.lo.u64 %%line%u, %%line%u, %u, %%c;\n",
            row, row, row, row, row, row, row, row, hal_type_size(key->type_c));
    }
}

void cuda_gemm_epilogue_tile(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t columns = box_columns(key);
    write_lines(t, key);
    kit_text_add(t, "shl.b32 %%x0, %%multiplier, 6;\nadd.u32 %%box_row, %%row, %%x0;\n"
                    "add.u32 %%barrier, %%multiplier, 1;\n");
    for (uint32_t first = 0; first < key->columns; first += columns) {
        kit_text_add(t, "@%%stores cp.async.bulk.wait_group.read 1;\nbar.sync %%barrier, 128;\n");
        if (hal_type_size(key->type_c) == 2) {
            write_box_halves(l, key, first);
        } else {
            write_box_floats(l, key, first);
        }
        kit_text_add(t,
                     "fence.proxy.async.shared::cta;\nbar.sync %%barrier, 128;\n"
                     "add.u32 %%box_column, %%column, %u;\n"
                     "add.u64 %%e0, %%maps, %u;\n"
                     "@%%stores cp.async.bulk.tensor.3d.global.shared::cta.bulk_group "
                     "[%%e0, {%%box_column, %%box_row, %%batch}], [%%room];\n"
                     "@%%stores cp.async.bulk.commit_group;\n",
                     first, 2 * CUDA_GEMM_MAP_BYTES);
        kit_text_add(t, "add.u32 %%box, %%box, %%other;\nadd.u32 %%room, %%room, %%other;\n"
                        "neg.s32 %%other, %%other;\n");
    }
}
