/* PTX of bytes across k, see gemm/tile/bytes.h.
 *
 * The units take words of four elements of k. A transposing load (ldmatrix) moves pairs of bytes:
 * of 32 lines of k x 16 bytes, as four matrices of 8 lines x 8 pairs, each work-item gets the same
 * pair of two lines of each matrix. Work-item t of four is to have k = 4 t to 4 t + 3 and 16 more:
 * the first two of these from one matrix, the last two from the next one. Permutations of bytes
 * (prmt) make words of the first and of the second of each pair. For t of 2 and 3 the two matrices
 * change places, so that the lines of a matrix are eight different ones modulo 8, which the swizzle
 * has in different banks. */
#include "gemm/tile/bytes.h"

#include "gemm/tile/ring.h"

enum {
    STEP_BYTES = 32, /* of k in one wgmma: elements */
    STEPS = CUDA_GEMM_LINE / STEP_BYTES,
    REGISTERS = 4 /* of one step */
};

/* Writes: %x0 is the line of k that a work-item names to a transposing load. */
static void write_line_of_bytes(kit_text *t)
{
    kit_text_add(t, "shr.u32 %%x0, %%lane, 3;\nand.b32 %%x1, %%lane, 7;\n"
                    "shr.u32 %%x2, %%x1, 2;\nxor.b32 %%x2, %%x2, %%x0;\nand.b32 %%x2, %%x2, 1;\n"
                    "shl.b32 %%x2, %%x2, 1;\nand.b32 %%x3, %%x1, 1;\nor.b32 %%x2, %%x2, %%x3;\n"
                    "shr.u32 %%x1, %%x1, 1;\nmad.lo.u32 %%x2, %%x1, 4, %%x2;\n"
                    "shr.u32 %%x0, %%x0, 1;\nmad.lo.u32 %%x0, %%x0, 16, %%x2;\n");
}

/* Writes: %even_bytes and %odd_bytes choose the first and the second of each pair, in the order of
 * k, from the words of two matrices. */
static void write_choices_of_bytes(kit_text *t)
{
    kit_text_add(t, ".reg .b32 %%even_bytes, %%odd_bytes;\n"
                    "and.b32 %%x1, %%lane, 2;\nsetp.ne.u32 %%p, %%x1, 0;\n"
                    "selp.u32 %%even_bytes, 0x2064, 0x6420, %%p;\n"
                    "selp.u32 %%odd_bytes, 0x3175, 0x7531, %%p;\n");
}

void cuda_gemm_bytes_load(kit_text *t, const char *from, uint32_t step, uint32_t first)
{
    kit_text_add(t,
                 "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%%x0, %%x1, %%x2, %%x3}, "
                 "[%s+%u];\n",
                 from, step * STEP_BYTES * CUDA_GEMM_LINE);
    for (uint32_t i = 0; i < REGISTERS; i++) {
        kit_text_add(t, "prmt.b32 %%a%u, %%x%u, %%x%u, %%%s_bytes;\n", first + i, i / 2 * 2,
                     i / 2 * 2 + 1, i % 2 == 0 ? "even" : "odd");
    }
}

void cuda_gemm_bytes_begin(kit_text *t)
{
    write_line_of_bytes(t);
    kit_text_add(t, "shl.b32 %%place_a, %%x0, 7;\nand.b32 %%x0, %%x0, 7;\n"
                    "and.b32 %%x1, %%warp, 3;\nmad.lo.u32 %%x1, %%multiplier, 4, %%x1;\n"
                    "xor.b32 %%x0, %%x0, %%x1;\nmad.lo.u32 %%place_a, %%x0, 16, %%place_a;\n");
    write_choices_of_bytes(t);
}

/* Of a pair of columns the second one is stored first from the fifth pair on, so that the columns
 * of a matrix are eight different ones modulo 8. */
void cuda_gemm_bytes_convert(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "{\n");
    write_choices_of_bytes(t);
    kit_text_add(t,
                 ".reg .b32 %%sixteen, %%line, %%in, %%out, %%spot, %%a<%u>;\n"
                 "and.b32 %%x1, %%lane, 16;\nsetp.ne.u32 %%p, %%x1, 0;\n"
                 "mov.u32 %%x1, %%even_bytes;\n@%%p mov.u32 %%even_bytes, %%odd_bytes;\n"
                 "@%%p mov.u32 %%odd_bytes, %%x1;\n",
                 STEPS * REGISTERS);
    write_line_of_bytes(t);
    kit_text_add(t,
                 "mov.u32 %%line, %%x0;\n"
                 /* out: of column 2 i or the next one, and the swizzled piece of its line */
                 "and.b32 %%x0, %%lane, 7;\nshr.u32 %%x1, %%lane, 3;\n"
                 "shr.u32 %%x2, %%x0, 2;\nxor.b32 %%x2, %%x2, %%x1;\nand.b32 %%x2, %%x2, 1;\n"
                 "mad.lo.u32 %%x0, %%x0, 2, %%x2;\nmad.lo.u32 %%out, %%x0, 128, %%stage;\n"
                 "shr.u32 %%x1, %%x1, 1;\nand.b32 %%x0, %%x0, 7;\nxor.b32 %%spot, %%x0, %%x1;\n"
                 "shl.b32 %%spot, %%spot, 4;\n"
                 "sub.u32 %%sixteen, %%warp, 1;\n"
                 "TURN_BYTES:\n"
                 "setp.ge.u32 %%p, %%sixteen, %u;\n@%%p bra TURNED_BYTES;\n"
                 "shr.u32 %%x0, %%sixteen, 3;\nmad.lo.u32 %%in, %%x0, %u, %%stage;\n"
                 "mad.lo.u32 %%in, %%line, 128, %%in;\n"
                 "xor.b32 %%x0, %%sixteen, %%line;\nand.b32 %%x0, %%x0, 7;\n"
                 "mad.lo.u32 %%in, %%x0, 16, %%in;\nadd.u32 %%in, %%in, %u;\n"
                 "mad.lo.u32 %%at0, %%sixteen, %u, %%out;\n",
                 key->columns / 16, CUDA_GEMM_LINE * CUDA_GEMM_LINE, cuda_gemm_tile_a_bytes(key),
                 16 * CUDA_GEMM_LINE);
    for (uint32_t step = 0; step < STEPS; step++) {
        cuda_gemm_bytes_load(t, "%in", step, step * REGISTERS);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t first = step * REGISTERS;
        kit_text_add(t,
                     "xor.b32 %%x0, %%spot, %u;\nadd.u32 %%x0, %%x0, %%at0;\n"
                     "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%%x0+%u], {%%a%u, %%a%u, %%a%u, "
                     "%%a%u};\n",
                     step * STEP_BYTES, cuda_gemm_units_b(key), first, first + 1, first + 2,
                     first + 3);
    }
    kit_text_add(t, "add.u32 %%sixteen, %%sixteen, %u;\nbra TURN_BYTES;\nTURNED_BYTES:\n}\n",
                 CUDA_GEMM_CONVERTERS);
}
