/* PTX of the sums of a tile, see gemm/tile/sums.h.
 *
 * 16-bit types: both operands are read from shared memory, in either layout. 8-bit types: so are B
 * and an A along k; an A across k goes through registers (gemm/tile/bytes.h). F32: the units
 * multiply TF32, take shared memory along k only, and drop the low 13 bits of what they read. So an
 * A across k goes through registers, where either layout does. In products of one term the copies
 * to shared memory round both operands (see gemm/gemm.c). Three-term products write x as big +
 * small: the unit truncates x to big; small is x - big, rounded, made in registers for A and by the
 * converting warps for B. The sum of big big, small big and big small has an error of at most 2^-19
 * of each term.
 *
 * Registers of A (PTX ISA, wgmma m64nNk8 of .tf32): work-item `lane` of warp w has rows 16 w + lane
 * / 4 and 8 more, and k of lane mod 4 and 4 more. Across k other rows of the tile take these
 * places, see cuda_gemm_write_row, so that a warp reads without bank conflicts. */
#include "gemm/tile/sums.h"

#include "gemm/tile/bytes.h"
#include "gemm/tile/ring.h"
#include "gemm/tile/turns.h"

#include <stdio.h>

enum {
    STEP_BYTES = 32, /* of k in one wgmma */
    STEPS = CUDA_GEMM_LINE / STEP_BYTES,
    A_REGISTERS = 4,                                 /* of one step */
    CONVERT_LOADS = 4,                               /* of 16 bytes, of a converting work-item */
    BAND_BYTES = CUDA_GEMM_ROWS / 2 * CUDA_GEMM_LINE /* of A, of one warpgroup */
};

/* Matrix descriptors: bits 16 to 29 the distance of boxes, 32 to 45 that of groups of eight rows,
 * both in units of 16 bytes; bit 62: the 128-byte swizzle. (PTX ISA, matrix descriptor format.) */
static const uint64_t DESCRIPTOR_K = UINT64_C(1) << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;
static const uint64_t DESCRIPTOR_MN = UINT64_C(512) << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;

/* An A of F32 across k is read by rows 0, 1, 2, 3 and 16, 17, 18, 19 of each half of 32 rows at
 * once, which lie in different banks. */
static bool rows_are_mixed(const cuda_gemm_key *key)
{
    return key->type == HAL_TYPE_F32 && key->transpose_a;
}

/* An A of bytes across k: the pairs of neighbours that a transposing load gives are two rows of a
 * work-item. */
static bool rows_are_pairs(const cuda_gemm_key *key)
{
    return cuda_gemm_has_bytes(key) && key->transpose_a;
}

uint32_t cuda_gemm_row_step(const cuda_gemm_key *key)
{
    return rows_are_mixed(key) ? 4 : rows_are_pairs(key) ? 1 : 8;
}

void cuda_gemm_write_row(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "shl.b32 %%x0, %s, 6;\nand.b32 %%x1, %%warp, 3;\n"
                 "shr.u32 %%x2, %%lane, 2;\n",
                 cuda_gemm_band(key));
    if (rows_are_mixed(key)) {
        kit_text_add(t, "shr.u32 %%x3, %%x1, 1;\nmad.lo.u32 %%x0, %%x3, 32, %%x0;\n"
                        "and.b32 %%x3, %%x1, 1;\nmad.lo.u32 %%x0, %%x3, 8, %%x0;\n"
                        "shr.u32 %%x3, %%x2, 2;\nmad.lo.u32 %%x0, %%x3, 16, %%x0;\n"
                        "and.b32 %%x2, %%x2, 3;\nadd.u32 %%x0, %%x0, %%x2;\n");
    } else if (rows_are_pairs(key)) {
        kit_text_add(t, "mad.lo.u32 %%x0, %%x1, 16, %%x0;\nmad.lo.u32 %%x0, %%x2, 2, %%x0;\n");
    } else {
        kit_text_add(t, "mad.lo.u32 %%x0, %%x1, 16, %%x0;\nadd.u32 %%x0, %%x0, %%x2;\n");
    }
}

uint32_t cuda_gemm_sum_registers(const cuda_gemm_key *key)
{
    return key->flushes ? key->columns : key->columns / 2;
}

uint32_t cuda_gemm_sum_class(const cuda_gemm_key *key)
{
    return cuda_gemm_is_integer(key) ? CUDA_WORD : CUDA_FLOAT;
}

cuda_operand cuda_gemm_sum(const cuda_gemm_key *key, uint32_t number)
{
    return (cuda_operand){cuda_gemm_sum_class(key), number};
}

void cuda_gemm_sum_add(cuda_lowering *l, const cuda_gemm_key *key, cuda_operand sum,
                       cuda_operand part)
{
    cuda_emit(l, cuda_gemm_is_integer(key) ? "add.u32 $, $, $;" : "add.rn.f32 $, $, $;", sum, sum,
              part);
}

/* Sums of a stage that are flushed follow those of the tile. */
static uint32_t first_register(const cuda_gemm_key *key)
{
    return key->flushes ? key->columns / 2 : 0;
}

static void write_sum_list(kit_text *t, const cuda_gemm_key *key)
{
    const char letter = cuda_gemm_is_integer(key) ? 'r' : 'f';
    for (uint32_t i = 0; i < key->columns / 2; i++) {
        kit_text_add(t, "%s%%%c%u", i == 0 ? "{" : ",", letter, first_register(key) + i);
    }
    kit_text_add(t, "}");
}

/* The descriptor of the tile at %x0. In a cluster the address has the group's rank in high bits. */
static void write_descriptor(kit_text *t, const char *name, bool along_k)
{
    kit_text_add(t,
                 "and.b32 %%x0, %%x0, 0x3ffff;\nshr.u32 %%x0, %%x0, 4;\ncvt.u64.u32 %s, "
                 "%%x0;\nor.b64 %s, %s, %llu;\n",
                 name, name, name, (unsigned long long)(along_k ? DESCRIPTOR_K : DESCRIPTOR_MN));
}

/* Writes: %x0 is where the warpgroup's rows of A are in the stage. */
static void write_band(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "mad.lo.u32 %%x0, %s, %u, %%stage;\n", cuda_gemm_band(key), BAND_BYTES);
}

/* Adds the sums of the last stages to the sums of the tile, and releases stage %previous. The other
 * warpgroup keeps the units busy. */
static void write_flush(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
    cuda_gemm_write_release(t, key, "%leads");
    for (uint32_t i = 0; i < key->columns / 2; i++) {
        kit_text_add(t, "add.rn.f32 %%f%u, %%f%u, %%f%u;\n", i, i, key->columns / 2 + i);
    }
}

/* The instruction up to the sums. */
static void write_instruction(kit_text *t, const cuda_gemm_key *key)
{
    static const char *const names[HAL_TYPE_COUNT] = {
        [HAL_TYPE_F16] = "k16.f32.f16.f16",  [HAL_TYPE_BF16] = "k16.f32.bf16.bf16",
        [HAL_TYPE_F32] = "k8.f32.tf32.tf32", [HAL_TYPE_F8_E4M3] = "k32.f32.e4m3.e4m3",
        [HAL_TYPE_I8] = "k32.s32.s8.s8",     [HAL_TYPE_U8] = "k32.s32.u8.u8"};
    kit_text_add(t, "wgmma.mma_async.sync.aligned.m64n%u%s ", key->columns, names[key->type]);
    write_sum_list(t, key);
}

/* What follows the operands: factors of floats, and the layouts of 16-bit types. */
static void write_instruction_end(kit_text *t, const cuda_gemm_key *key, const char *adds)
{
    kit_text_add(t, ", %s%s", adds, cuda_gemm_is_integer(key) ? "" : ", 1, 1");
    if (hal_type_size(key->type) == 2) {
        kit_text_add(t, ", %u, %u", key->transpose_a, !key->transpose_b);
    }
    kit_text_add(t, ";\n");
}

/* Waits until the converting warps have written what they make of stage %slot. */
static void write_wait_converted(kit_text *t, const cuda_gemm_key *key, const char *name)
{
    if (cuda_gemm_converts(key)) {
        kit_text_add(t,
                     "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n"
                     "add.u32 %%x0, %%x0, %u;\n",
                     cuda_gemm_converted_barrier(key));
        cuda_gemm_write_wait(t, key, name, "%x0", "%parity", false);
    }
}

/* ---- 16-bit types, and 8-bit types whose A is along k ---- */

/* Whether the units read B along k. */
static bool b_is_along_k(const cuda_gemm_key *key)
{
    return key->transpose_b || cuda_gemm_transposes_b(key);
}

static void write_multiply(kit_text *t, const cuda_gemm_key *key, uint32_t step)
{
    /* Sixteen elements of k are 32 bytes of a line, or sixteen lines; both in units of 16 bytes. */
    const uint32_t along_k = STEP_BYTES / 16, across_k = STEP_BYTES / 2 * CUDA_GEMM_LINE / 16;
    kit_text_add(t, "add.u64 %%e2, %%e0, %u;\nadd.u64 %%e3, %%e1, %u;\n",
                 step * (key->transpose_a ? across_k : along_k),
                 step * (b_is_along_k(key) ? along_k : across_k));
    write_instruction(t, key);
    kit_text_add(t, ", %%e2, %%e3");
    write_instruction_end(t, key, step == 0 ? "%adds" : "%true");
}

/* A stage is released when the wgmma after its own has been issued. */
static void write_stage_narrow(kit_text *t, const cuda_gemm_key *key)
{
    write_wait_converted(t, key, "WAIT_CONVERTED");
    write_band(t, key);
    write_descriptor(t, "%e0", !key->transpose_a);
    kit_text_add(t, "add.u32 %%x0, %%stage, %u;\n", cuda_gemm_units_b(key));
    write_descriptor(t, "%e1", b_is_along_k(key));
    kit_text_add(t, "setp.ne.u32 %%adds, %s, 0;\nwgmma.fence.sync.aligned;\n",
                 key->flushes ? "0" : "%step");
    for (uint32_t i = 0; i < STEPS; i++) {
        write_multiply(t, key, i);
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\n");
    if (key->flushes) {
        kit_text_add(t, "mov.u32 %%previous, %%slot;\n");
        write_flush(t, key);
    } else {
        kit_text_add(t, "wgmma.wait_group.sync.aligned 1;\nand.pred %%p, %%adds, %%leads;\n");
        cuda_gemm_write_release(t, key, "%p");
        kit_text_add(t, "mov.u32 %%previous, %%slot;\n");
    }
}

/* ---- F32, and 8-bit types whose A is across k ---- */

/* Steps of a stage whose registers of A are loaded at once: all, but of wide tiles, whose steps are
 * long enough to hide the loads of the other half. */
static uint32_t group_steps(const cuda_gemm_key *key)
{
    return cuda_gemm_has_parts(key) || key->columns <= 128 ? STEPS : STEPS / 2;
}

/* Whether the units read A from shared memory alone. */
static bool a_is_shared(const cuda_gemm_key *key)
{
    return cuda_gemm_rounds(key) && !key->transpose_a;
}

/* Where a work-item's elements of A are in a stage, except for the step: rows of a warp along k, or
 * boxes of 32 rows across k. %swizzle_a is the swizzled part. */
static void write_place_of_a(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 ".reg .b32 %%place_a, %%swizzle_a, %%a<%u>, %%small<%u>;\n"
                 "and.b32 %%x0, %%warp, 3;\nshr.u32 %%x1, %%lane, 2;\nand.b32 %%x2, %%lane, 3;\n",
                 2 * group_steps(key) * A_REGISTERS, 2 * group_steps(key) * A_REGISTERS);
    if (cuda_gemm_has_bytes(key)) {
        cuda_gemm_bytes_begin(t);
    } else if (key->transpose_a) {
        kit_text_add(t, "shl.b32 %%place_a, %%multiplier, 1;\nshr.u32 %%x3, %%x0, 1;\n"
                        "add.u32 %%place_a, %%place_a, %%x3;\nshl.b32 %%place_a, %%place_a, 12;\n"
                        "mad.lo.u32 %%place_a, %%x2, 128, %%place_a;\n"
                        "and.b32 %%x3, %%x1, 3;\nmad.lo.u32 %%place_a, %%x3, 4, %%place_a;\n"
                        "and.b32 %%x0, %%x0, 1;\nshl.b32 %%x0, %%x0, 1;\n"
                        "shr.u32 %%x1, %%x1, 2;\nmad.lo.u32 %%x0, %%x1, 4, %%x0;\n"
                        "xor.b32 %%swizzle_a, %%x0, %%x2;\n"
                        "shl.b32 %%swizzle_a, %%swizzle_a, 4;\n");
    } else {
        kit_text_add(t, "shl.b32 %%place_a, %%multiplier, 6;\nmad.lo.u32 %%place_a, %%x0, 16, "
                        "%%place_a;\n"
                        "add.u32 %%place_a, %%place_a, %%x1;\nshl.b32 %%place_a, %%place_a, 7;\n"
                        "mad.lo.u32 %%place_a, %%x2, 4, %%place_a;\n"
                        "shl.b32 %%swizzle_a, %%x1, 4;\n");
    }
}

/* Loads A for step `step` of a stage into registers `first` and on. */
static void write_load_a(kit_text *t, const cuda_gemm_key *key, uint32_t step, uint32_t first)
{
    if (cuda_gemm_has_bytes(key)) {
        cuda_gemm_bytes_load(t, "%at0", step, first);
        return;
    }
    for (uint32_t i = 0; i < 2 && !key->transpose_a; i++) { /* k, then 4 more */
        kit_text_add(t,
                     "xor.b32 %%x0, %%swizzle_a, %u;\nadd.u32 %%x0, %%x0, %%at0;\n"
                     "ld.shared.b32 %%a%u, [%%x0];\nld.shared.b32 %%a%u, [%%x0+1024];\n",
                     32 * step + 16 * i, first + 2 * i, first + 2 * i + 1);
    }
    for (uint32_t i = 0; i < 4 && key->transpose_a; i++) { /* row, the next one; the same 4 k on */
        kit_text_add(t, "ld.shared.b32 %%a%u, [%%at%u+%u];\n", first + i, i,
                     1024 * step + 512 * (i / 2));
    }
}

/* The parts of A. */
static void write_split_a(kit_text *t, uint32_t a)
{
    kit_text_add(t,
                 "and.b32 %%x0, %%a%u, 0xffffe000;\nsub.rn.f32 %%small%u, %%a%u, %%x0;\n"
                 "add.u32 %%small%u, %%small%u, 0x1000;\n",
                 a, a, a, a, a);
}

/* Multiplies A, the text of four registers or a descriptor, by B. */
static void write_term(kit_text *t, const cuda_gemm_key *key, const char *a, const char *b,
                       const char *adds)
{
    write_instruction(t, key);
    kit_text_add(t, ", %s, %s", a, b);
    write_instruction_end(t, key, adds);
}

static void write_register_term(kit_text *t, const cuda_gemm_key *key, const char *name,
                                uint32_t first, const char *b, const char *adds)
{
    char a[64];
    snprintf(a, sizeof a, "{%%%s%u,%%%s%u,%%%s%u,%%%s%u}", name, first, name, first + 1, name,
             first + 2, name, first + 3);
    write_term(t, key, a, b, adds);
}

/* The terms of one step. The unit truncates A to its big part as well where it reads shared memory,
 * which is faster than registers. */
static void write_step(kit_text *t, const cuda_gemm_key *key, uint32_t step, uint32_t first,
                       const char *adds)
{
    const uint32_t offset = step * STEP_BYTES / 16;
    kit_text_add(t, "add.u64 %%e2, %%e0, %u;\n", offset);
    if (!cuda_gemm_has_parts(key)) {
        write_register_term(t, key, "a", first, "%e2", adds);
        return;
    }
    kit_text_add(t, "add.u64 %%e3, %%e1, %u;\n", offset);
    if (key->transpose_a) {
        write_register_term(t, key, "a", first, "%e2", adds);
        write_register_term(t, key, "small", first, "%e2", "%true");
        write_register_term(t, key, "a", first, "%e3", "%true");
    } else {
        kit_text_add(t, "add.u64 %%e5, %%e4, %u;\n", offset);
        write_term(t, key, "%e5", "%e2", adds);
        write_register_term(t, key, "small", first, "%e2", "%true");
        write_term(t, key, "%e5", "%e3", "%true");
    }
}

/* A group of steps; the units work on the group before while the registers of A are loaded. */
static void write_group(kit_text *t, const cuda_gemm_key *key, uint32_t step_first, uint32_t first,
                        const char *adds)
{
    const uint32_t count = group_steps(key);
    for (uint32_t i = 0; i < count; i++) {
        write_load_a(t, key, step_first + i, first + i * A_REGISTERS);
    }
    for (uint32_t i = 0; i < count * A_REGISTERS && cuda_gemm_has_parts(key); i++) {
        write_split_a(t, first + i);
    }
    kit_text_add(t, "wgmma.fence.sync.aligned;\n");
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t step = step_first + i;
        write_step(t, key, step, first + i * A_REGISTERS, step == 0 ? adds : "%true");
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n");
}

static void write_release_before(kit_text *t, const cuda_gemm_key *key, const char *adds)
{
    kit_text_add(t, "and.pred %%p, %s, %%leads;\n", adds);
    cuda_gemm_write_release(t, key, "%p");
}

/* One-term products of an A along k, which is read from shared memory. */
static void write_stage_shared(kit_text *t, const cuda_gemm_key *key, const char *adds)
{
    write_band(t, key);
    write_descriptor(t, "%e4", true);
    kit_text_add(t, "wgmma.fence.sync.aligned;\n");
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t offset = step * STEP_BYTES / 16;
        kit_text_add(t, "add.u64 %%e2, %%e0, %u;\nadd.u64 %%e5, %%e4, %u;\n", offset, offset);
        write_term(t, key, "%e5", "%e2", step == 0 ? adds : "%true");
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n");
    write_release_before(t, key, adds);
    kit_text_add(t, "mov.u32 %%previous, %%slot;\n");
}

/* A stage. `adds`: to the sums of the stages before it, whose last one is released. */
static void write_stage_loaded(kit_text *t, const cuda_gemm_key *key, const char *adds,
                               const char *wait_name, uint32_t set)
{
    const uint32_t steps = group_steps(key);
    write_wait_converted(t, key, wait_name);
    kit_text_add(t, "add.u32 %%x0, %%stage, %u;\n", cuda_gemm_units_b(key));
    write_descriptor(t, "%e0", true);
    if (a_is_shared(key)) {
        write_stage_shared(t, key, adds);
        return;
    }
    if (cuda_gemm_has_parts(key)) {
        kit_text_add(t, "add.u32 %%x0, %%stage, %u;\n", cuda_gemm_small_b(key));
        write_descriptor(t, "%e1", true);
        write_band(t, key);
        write_descriptor(t, "%e4", true);
    }
    kit_text_add(t, "add.u32 %%at0, %%stage, %%place_a;\n");
    for (uint32_t i = 4; i-- > 0 && rows_are_mixed(key);) { /* 4 rows are 16 bytes, 4 of k a bit */
        kit_text_add(t, "xor.b32 %%x0, %%swizzle_a, %u;\nadd.u32 %%at%u, %%at0, %%x0;\n",
                     16 * (i % 2) + 64 * (i / 2), i);
    }
    for (uint32_t step = 0; step < STEPS; step += steps) {
        write_group(t, key, step, (steps == STEPS ? set : step / steps) * steps * A_REGISTERS,
                    adds);
        if (step == 0) {
            write_release_before(t, key, adds);
        }
    }
    kit_text_add(t, "mov.u32 %%previous, %%slot;\n");
}

/* ---- All ---- */

/* Whether the stages are those of write_stage_loaded. */
static bool stages_are_loaded(const cuda_gemm_key *key)
{
    return key->type == HAL_TYPE_F32 || rows_are_pairs(key);
}

void cuda_gemm_sums_begin(kit_text *t, const cuda_gemm_key *key)
{
    if (stages_are_loaded(key)) {
        write_place_of_a(t, key);
    }
}

static void write_wait_full(kit_text *t, const cuda_gemm_key *key, const char *name)
{
    kit_text_add(t, "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n");
    cuda_gemm_write_wait(t, key, name, "%x0", "%parity", false);
    kit_text_add(t, "mad.lo.u32 %%stage, %%slot, %u, %%base;\n", cuda_gemm_stage_bytes(key));
}

/* The next step, at `label` where there is one. */
static void write_next_step(kit_text *t, const char *condition, const char *label)
{
    kit_text_add(t,
                 "add.u32 %%step, %%step, 1;\n"
                 "setp.%s.u32 %%p, %%step, %%count;\n@%%p bra %s;\n",
                 condition, label);
}

/* The sums of two stages are flushed, or of the last one. */
static void write_pairs(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "setp.ne.u32 %%adds, 0, 0;\nMULTIPLY_STEP:\n");
    write_wait_full(t, key, "WAIT_FULL");
    write_stage_loaded(t, key, "%adds", "WAIT_CONVERTED", 0);
    cuda_gemm_write_next_slot(t, key);
    write_next_step(t, "eq", "FLUSH");
    write_wait_full(t, key, "WAIT_SECOND");
    write_stage_loaded(t, key, "%true", "WAIT_SECOND_CONVERTED", 1);
    cuda_gemm_write_next_slot(t, key);
    kit_text_add(t, "add.u32 %%step, %%step, 1;\nFLUSH:\n");
    write_flush(t, key);
    kit_text_add(t, "setp.lt.u32 %%p, %%step, %%count;\n@%%p bra MULTIPLY_STEP;\n");
}

static void write_stages(kit_text *t, const cuda_gemm_key *key)
{
    const bool pairs = stages_are_loaded(key) && group_steps(key) == STEPS && !a_is_shared(key);
    kit_text_add(t, "MULTIPLY_STEP:\n");
    write_wait_full(t, key, "WAIT_FULL");
    if (stages_are_loaded(key)) {
        kit_text_add(t, "setp.ne.u32 %%adds, %%step, 0;\n");
        write_stage_loaded(t, key, "%adds", "WAIT_CONVERTED", 0);
    } else {
        write_stage_narrow(t, key);
    }
    cuda_gemm_write_next_slot(t, key);
    if (pairs) { /* the registers of A take turns */
        write_next_step(t, "eq", "MULTIPLIED_STEPS");
        write_wait_full(t, key, "WAIT_SECOND");
        write_stage_loaded(t, key, "%true", "WAIT_SECOND_CONVERTED", 1);
        cuda_gemm_write_next_slot(t, key);
    }
    write_next_step(t, "lt", "MULTIPLY_STEP");
    if (pairs) {
        kit_text_add(t, "MULTIPLIED_STEPS:\n");
    }
    cuda_gemm_turns_pass(t, key);
    if (!key->flushes) {
        kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
        cuda_gemm_write_release(t, key, "%leads");
    }
    cuda_gemm_turns_released(t, key);
}

void cuda_gemm_sums_tile(kit_text *t, const cuda_gemm_key *key)
{
    for (uint32_t i = 0; key->flushes && i < key->columns / 2; i++) {
        kit_text_add(t, "mov.f32 %%f%u, 0f00000000;\n", i);
    }
    kit_text_add(t, "mov.u32 %%step, 0;\nmov.u32 %%previous, 0;\n");
    if (key->flushes && stages_are_loaded(key)) {
        write_pairs(t, key);
    } else {
        write_stages(t, key);
    }
}

/* %f`at` becomes its small part. Rounding adds half of a unit; the units drop the bits below. */
static void write_small(kit_text *t, uint32_t at)
{
    kit_text_add(t,
                 "mov.b32 %%x0, %%f%u;\nand.b32 %%x0, %%x0, 0xffffe000;\n"
                 "sub.rn.f32 %%f%u, %%f%u, %%x0;\nmov.b32 %%x0, %%f%u;\n"
                 "add.u32 %%x0, %%x0, 0x1000;\nmov.b32 %%f%u, %%x0;\n",
                 at, at, at, at, at);
}

/* The small parts of a B along k: an element's small part has its place in the other tile. A turn's
 * loads are in flight together. */
static void write_small_tile(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t bytes = cuda_gemm_tile_b_bytes(key), stride = CUDA_GEMM_CONVERTERS * 32 * 16;
    kit_text_add(t,
                 "sub.u32 %%x1, %%thread, 32;\nshl.b32 %%x1, %%x1, 4;\n"
                 "setp.lt.u32 %%p, %%x1, %u;\n"
                 "add.u32 %%stage, %%stage, %u;\nadd.u32 %%stage, %%stage, %%x1;\n",
                 bytes % stride, cuda_gemm_tile_a_bytes(key));
    for (uint32_t first = 0; first < bytes; first += CONVERT_LOADS * stride) {
        for (uint32_t i = 0; i < CONVERT_LOADS && first + i * stride < bytes; i++) {
            kit_text_add(t, "%sld.shared.v4.f32 {%%f%u,%%f%u,%%f%u,%%f%u}, [%%stage+%u];\n",
                         first + (i + 1) * stride > bytes ? "@%p " : "", 4 * i, 4 * i + 1,
                         4 * i + 2, 4 * i + 3, first + i * stride);
        }
        for (uint32_t i = 0; i < CONVERT_LOADS && first + i * stride < bytes; i++) {
            for (uint32_t j = 0; j < 4; j++) {
                write_small(t, 4 * i + j);
            }
            kit_text_add(t, "%sst.shared.v4.f32 [%%stage+%u], {%%f%u,%%f%u,%%f%u,%%f%u};\n",
                         first + (i + 1) * stride > bytes ? "@%p " : "", first + i * stride + bytes,
                         4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
        }
    }
}

/* A B along n is written along k, and its small parts. A warp takes eight columns in turn, as 8
 * columns x 4 elements of k at once: without bank conflicts as it writes. */
static void write_transposed_tile(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t line = cuda_gemm_line(HAL_TYPE_F32), pieces = CUDA_GEMM_LINE / 16;
    kit_text_add(t,
                 ".reg .b32 %%eight, %%in, %%other_in, %%out;\n"
                 "shr.u32 %%x1, %%lane, 2;\nand.b32 %%x2, %%lane, 3;\n"
                 "sub.u32 %%eight, %%warp, 1;\n"
                 "TURN_EIGHT:\n"
                 "setp.ge.u32 %%p, %%eight, %u;\n@%%p bra TURNED;\n"
                 /* in: box, row of k, and the swizzled piece of the line */
                 "shr.u32 %%x0, %%eight, 2;\nmad.lo.u32 %%in, %%x0, %u, %%stage;\n"
                 "mad.lo.u32 %%in, %%x2, 128, %%in;\n"
                 "and.b32 %%x0, %%x1, 3;\nmad.lo.u32 %%in, %%x0, 4, %%in;\n"
                 "and.b32 %%x0, %%eight, 3;\nshl.b32 %%x0, %%x0, 1;\nshr.u32 %%x3, %%x1, 2;\n"
                 "add.u32 %%x0, %%x0, %%x3;\nxor.b32 %%x0, %%x0, %%x2;\nshl.b32 %%x0, %%x0, 4;\n"
                 "xor.b32 %%x3, %%x0, 64;\nadd.u32 %%other_in, %%in, %%x3;\n"
                 "add.u32 %%in, %%in, %%x0;\n"
                 "mad.lo.u32 %%out, %%eight, 1024, %%stage;\n"
                 "mad.lo.u32 %%out, %%x1, 128, %%out;\nmad.lo.u32 %%out, %%x2, 4, %%out;\n"
                 "shl.b32 %%x3, %%x1, 4;\n",
                 key->columns / 8, line * CUDA_GEMM_LINE);
    for (uint32_t i = 0; i < pieces; i++) {
        kit_text_add(t, "ld.shared.f32 %%f%u, [%%%s+%u];\n", i, i % 2 == 0 ? "in" : "other_in",
                     cuda_gemm_tile_a_bytes(key) + 4 * i * CUDA_GEMM_LINE);
    }
    for (uint32_t i = 0; i < pieces; i++) {
        kit_text_add(t,
                     "xor.b32 %%at0, %%x3, %u;\nadd.u32 %%at0, %%at0, %%out;\n"
                     "st.shared.f32 [%%at0+%u], %%f%u;\n",
                     16 * i, cuda_gemm_units_b(key), i);
        if (cuda_gemm_has_parts(key)) {
            write_small(t, i);
            kit_text_add(t, "st.shared.f32 [%%at0+%u], %%f%u;\n", cuda_gemm_small_b(key), i);
        }
    }
    kit_text_add(t, "add.u32 %%eight, %%eight, %u;\nbra TURN_EIGHT;\nTURNED:\n",
                 CUDA_GEMM_CONVERTERS);
}

void cuda_gemm_convert_tile(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "mov.u32 %%step, 0;\n"
                    "CONVERT_STEP:\n"
                    "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%x0;\n");
    cuda_gemm_write_wait(t, key, "WAIT_RAW", "%barrier", "%parity", false);
    kit_text_add(t, "mad.lo.u32 %%stage, %%slot, %u, %%base;\n", cuda_gemm_stage_bytes(key));
    if (cuda_gemm_has_bytes(key)) {
        cuda_gemm_bytes_convert(t, key);
    } else if (cuda_gemm_transposes_b(key)) {
        write_transposed_tile(t, key);
    } else {
        write_small_tile(t, key);
    }
    kit_text_add(t,
                 "fence.proxy.async.shared::cta;\nbar.warp.sync 0xffffffff;\n"
                 "setp.eq.u32 %%p, %%lane, 0;\n"
                 "@%%p mbarrier.arrive.shared::cta.b64 _, [%%barrier+%u];\n",
                 cuda_gemm_converted_barrier(key));
    cuda_gemm_write_next_slot(t, key);
    kit_text_add(t, "add.u32 %%step, %%step, 1;\n"
                    "setp.lt.u32 %%p, %%step, %%count;\n@%%p bra CONVERT_STEP;\n");
}
