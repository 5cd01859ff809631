/* PTX of sums that are added through device memory, see gemm/end/partial.h.
 *
 * The memory has words, of tiles, and then the sums of groups as blocks of 8 columns. In a block
 * each work-item has the 4 sums of its registers next to each other, so that a warp writes and
 * reads whole lines. */
#include "gemm/end/partial.h"

#include "gemm/end/element.h"
#include "gemm/tile/ring.h"
#include "gemm/tile/sums.h"
#include "gemm/tile/wait.h"

#include <stddef.h>
#include <stdio.h>

enum {
    WORKERS = 32 * CUDA_GEMM_MULTIPLIERS,
    BLOCK_BYTES = 16 * WORKERS,
    MAX_COPIES = 4, /* blocks whose loads are in flight */
    MAX_LOADS = 16, /* in flight: blocks times parts */
    /* wider tiles lack registers: of three-term products, of F32 whose A goes through registers */
    MAX_PARTS_COLUMNS = 64,
    MAX_FLOAT_COLUMNS = 240
};

/* The word of a tile: groups that have begun, have written their sums, and have gone on after they
 * waited; from bit SLICES on the slices of groups that do not wait. */
enum { WRITTEN = 5, LEFT = 10, SLICES = 16, COUNT = 31 };

static uint32_t block_count(const cuda_gemm_key *key)
{
    return key->columns / CUDA_GEMM_BLOCK_COLUMNS;
}

bool cuda_gemm_partial_is_supported(const cuda_gemm_key *key)
{
    const uint32_t most = cuda_gemm_has_parts(key)                        ? MAX_PARTS_COLUMNS
                          : key->type == HAL_TYPE_F32 && key->transpose_a ? MAX_FLOAT_COLUMNS
                                                                          : CUDA_GEMM_MAX_COLUMNS;
    return key->split >= 2 && key->split <= CUDA_GEMM_MAX_PARTS && key->split <= block_count(key) &&
           key->columns <= most && !key->direct;
}

uint32_t cuda_gemm_partial_blocks(const cuda_gemm_key *key)
{
    return (block_count(key) + key->split - 1) / key->split;
}

void cuda_gemm_partial_begin(kit_text *t)
{
    kit_text_add(t,
                 ".reg .b64 %%state, %%sums, %%part_bytes;\n"
                 ".reg .b32 %%word, %%place, %%slices, %%slice, %%own_bit, %%own_part, %%block;\n"
                 ".reg .b32 %%first_block, %%end_block;\n"
                 ".reg .pred %%first, %%waits, %%keeps, %%sends, %%own;\n");
}

/* The tile's number among those of all matrices, and the address of its word. */
static void write_state(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "ld.param.u32 %%place, [block+%zu];\nmul.lo.u32 %%x0, %%place, %%part;\n"
                 "sub.u32 %%x0, %%tile, %%x0;\nmad.lo.u32 %%place, %%x0, %u, %%pair;\n"
                 "ld.param.u64 %%state, [block+%zu];\ncvta.to.global.u64 %%state, %%state;\n"
                 "mad.wide.u32 %%state, %%place, 4, %%state;\n"
                 "setp.eq.u32 %%first, %%thread, 128;\n",
                 offsetof(cuda_gemm_block, places), cuda_gemm_pairs(key),
                 offsetof(cuda_gemm_block, parts));
}

void cuda_gemm_partial_begin_tile(kit_text *t, const cuda_gemm_key *key)
{
    write_state(t, key);
    kit_text_add(t, "@%%first red.relaxed.gpu.global.add.u32 [%%state], 1;\n");
}

/* The last stage that was filled is before %slot; when it is emptied, the sums are there. */
void cuda_gemm_partial_ask(kit_text *t, const cuda_gemm_key *key)
{
    write_state(t, key);
    kit_text_add(t,
                 "setp.eq.u32 %%p, %%slot, 0;\nselp.u32 %%x2, %u, %%slot, %%p;\n"
                 "shl.b32 %%x2, %%x2, 3;\nadd.u32 %%x2, %%x2, %%barriers;\n"
                 "xor.b32 %%x3, %%parity, 1;\nselp.u32 %%x3, %%parity, %%x3, %%p;\n"
                 "ASK:\nld.relaxed.gpu.global.u32 %%x1, [%%state];\nand.b32 %%x1, %%x1, %u;\n"
                 "setp.eq.u32 %%done, %%x1, %u;\n@%%done bra ASKED;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 %%done, [%%x2+%u], %%x3;\n"
                 "@!%%done bra ASK;\nASKED:\nst.shared.u32 [%%barriers+%u], %%x1;\n"
                 "mbarrier.arrive.shared::cta.b64 _, [%%barriers+%u];\n",
                 cuda_gemm_stages(key), COUNT, key->split, cuda_gemm_empty_barrier(key) - 8,
                 cuda_gemm_slices_word(key), cuda_gemm_partial_barrier(key));
}

/* Blocks of slice %slice. */
static void write_slice_blocks(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "mul.lo.u32 %%first_block, %%slice, %u;\n"
                 "add.u32 %%end_block, %%first_block, %u;\n"
                 "div.u32 %%first_block, %%first_block, %u;\n"
                 "div.u32 %%end_block, %%end_block, %u;\n",
                 block_count(key), block_count(key), key->split, key->split);
}

/* Access to a work-item's four sums of a block in shared memory, of which %x0 is the place. */
static void write_shared_block(cuda_lowering *l, const cuda_gemm_key *key, const char *guard,
                               bool loads, const cuda_operand values[4])
{
    const uint32_t pitch = cuda_gemm_staged_pitch(key), step = cuda_gemm_row_step(key);
    const char *access = loads ? "ld.shared" : "st.shared";
    for (uint32_t j = 0; j < 4; j += key->swapped ? 1 : 2) {
        const uint32_t row = j / 2 * step, column = j % 2;
        const cuda_operand at =
            cuda_unsigned(4 * (key->swapped ? column * pitch + row : row * pitch + column));
        kit_text_add(&l->body, "@%s %s", guard, access);
        if (key->swapped && loads) {
            cuda_emit(l, ".b32 $, [%x0+$];", values[j], at);
        } else if (key->swapped) {
            cuda_emit(l, ".b32 [%x0+$], $;", at, values[j]);
        } else if (loads) {
            cuda_emit(l, ".v2.b32 {$, $}, [%x0+$];", values[j], values[j + 1], at);
        } else {
            cuda_emit(l, ".v2.b32 [%x0+$], {$, $};", at, values[j], values[j + 1]);
        }
    }
}

static uint32_t shared_block_bytes(const cuda_gemm_key *key)
{
    return 4 * CUDA_GEMM_BLOCK_COLUMNS * (key->swapped ? cuda_gemm_staged_pitch(key) : 1);
}

/* Writes the sums: a group that waits keeps those of its slice. */
static void write_sums(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    kit_text_add(t,
                 "mov.u32 %%slice, %%part;\n"
                 "ld.param.u64 %%sums, [block+%zu];\ncvta.to.global.u64 %%sums, %%sums;\n"
                 "add.u64 %%sums, %%sums, %u;\nmad.wide.u32 %%sums, %%worker, 16, %%sums;\n"
                 "mad.lo.u32 %%x0, %%tile, %u, %%pair;\nmad.wide.u32 %%e0, %%x0, %u, %%sums;\n",
                 offsetof(cuda_gemm_block, parts), 4 * CUDA_GEMM_STATES, cuda_gemm_pairs(key),
                 cuda_gemm_sum_bytes(key));
    write_slice_blocks(t, key);
    for (uint32_t i = 0; i < block_count(key); i++) {
        cuda_operand values[4];
        for (uint32_t j = 0; j < 4; j++) {
            values[j] = cuda_gemm_sum(key, 4 * i + j);
        }
        kit_text_add(t,
                     "setp.le.and.u32 %%keeps, %%first_block, %u, %%waits;\n"
                     "setp.gt.and.u32 %%keeps, %%end_block, %u, %%keeps;\n"
                     "add.u32 %%x0, %%spot, %u;\n",
                     i, i, i * shared_block_bytes(key));
        cuda_emit(l, "@!%keeps st.global.v4.b32 [%e0+$], {$, $, $, $};",
                  cuda_unsigned(i * BLOCK_BYTES), values[0], values[1], values[2], values[3]);
        write_shared_block(l, key, "%keeps", false, values);
    }
}

/* One work-item tells the word that the sums are written. A group that waits adds its slice, and
 * the first of those also the slices of groups that do not; the last of a tile for which none
 * waits adds all. */
static void write_join(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t all = (1u << key->split) - 1;
    kit_text_add(t,
                 "mov.u32 %%own_bit, 1;\nshl.b32 %%own_bit, %%own_bit, %%part;\n"
                 "@%%waits bra TELL;\n"
                 "shl.b32 %%x1, %%own_bit, %u;\nadd.u32 %%x1, %%x1, %u;\n"
                 "fence.acq_rel.gpu;\n"
                 "atom.relaxed.gpu.global.add.u32 %%word, [%%state], %%x1;\n"
                 "fence.acq_rel.gpu;\n"
                 "add.u32 %%word, %%word, %%x1;\nshr.u32 %%slices, %%word, %u;\n"
                 "shr.u32 %%x0, %%word, %u;\nand.b32 %%x0, %%x0, %u;\n"
                 "setp.eq.u32 %%p, %%slices, %u;\nsetp.eq.and.u32 %%p, %%x0, %u, %%p;\n"
                 "selp.u32 %%slices, %%slices, 0, %%p;\n"
                 "@%%p st.relaxed.gpu.global.u32 [%%state], 0;\nbra TOLD;\n",
                 SLICES, 1 << WRITTEN, SLICES, WRITTEN, COUNT, all, key->split);
    kit_text_add(t, "TELL:\nfence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%%state], %u;\n",
                 1 << WRITTEN);
    cuda_gemm_write_wait_begin(t, key->wait_seconds, "WAIT_WRITTEN");
    kit_text_add(t,
                 "ld.relaxed.gpu.global.u32 %%word, [%%state];\n"
                 "shr.u32 %%x0, %%word, %u;\nand.b32 %%x0, %%x0, %u;\n"
                 "setp.eq.u32 %%done, %%x0, %u;\n",
                 WRITTEN, COUNT, key->split);
    cuda_gemm_write_wait_end(t, key->wait_seconds, "WAIT_WRITTEN");
    kit_text_add(t,
                 "fence.acq_rel.gpu;\nshr.u32 %%x0, %%word, %u;\nnot.b32 %%x1, %%x0;\nsub.u32 "
                 "%%x2, 0, %%x1;\n"
                 "and.b32 %%x1, %%x1, %%x2;\nsetp.eq.u32 %%p, %%x1, %%own_bit;\n"
                 "mov.u32 %%slices, %%own_bit;\n@%%p or.b32 %%slices, %%slices, %%x0;\n"
                 "TOLD:\nst.shared.u32 [%%barriers+%u], %%slices;\n",
                 SLICES, cuda_gemm_slices_word(key));
}

void cuda_gemm_partial_exchange(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    write_state(t, key);
    kit_text_add(t, "add.u32 %%barrier, %%barriers, %u;\n", cuda_gemm_partial_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_ASKED", "%barrier", "%parity_of_tile", false);
    kit_text_add(t,
                 "bar.sync 1, %u;\nld.shared.u32 %%x0, [%%barriers+%u];\n"
                 "setp.eq.u32 %%waits, %%x0, %u;\n",
                 WORKERS, cuda_gemm_slices_word(key), key->split);
    write_sums(l, key);
    kit_text_add(t, "bar.sync 1, %u;\n@!%%first bra JOINED;\n", WORKERS);
    write_join(t, key);
    kit_text_add(t,
                 "JOINED:\nbar.sync 1, %u;\nld.shared.u32 %%slices, [%%barriers+%u];\n"
                 "mad.wide.u32 %%sums, %%place, %u, %%sums;\n"
                 "ld.param.u32 %%x0, [block+%zu];\nmul.wide.u32 %%part_bytes, %%x0, %u;\n",
                 WORKERS, cuda_gemm_slices_word(key), cuda_gemm_sum_bytes(key),
                 offsetof(cuda_gemm_block, places),
                 cuda_gemm_pairs(key) * cuda_gemm_sum_bytes(key));
}

/* Those that waited count themselves, and the last one leaves the word 0. %word is still that of
 * the end of the wait. */
void cuda_gemm_partial_end_tile(kit_text *t)
{
    kit_text_add(t,
                 "and.pred %%p, %%first, %%waits;\n"
                 "shr.u32 %%x0, %%word, %u;\npopc.b32 %%x0, %%x0;\n"
                 "@%%p atom.relaxed.gpu.global.add.u32 %%x1, [%%state], %u;\n"
                 "shr.u32 %%x1, %%x1, %u;\nand.b32 %%x1, %%x1, %u;\nadd.u32 %%x0, %%x0, %%x1;\n"
                 "add.u32 %%x0, %%x0, 1;\nshr.u32 %%x1, %%word, %u;\nand.b32 %%x1, %%x1, %u;\n"
                 "setp.eq.and.u32 %%p, %%x0, %%x1, %%p;\n"
                 "@%%p st.relaxed.gpu.global.u32 [%%state], 0;\n",
                 SLICES, 1 << LEFT, LEFT, COUNT, WRITTEN, COUNT);
}

/* Loads a block's sums of all parts: what this group kept from shared memory. */
static void write_block_loads(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                              cuda_operand parts[CUDA_GEMM_MAX_PARTS][4])
{
    kit_text_add(&l->body,
                 "add.u32 %%x1, %%block, %u;\nsetp.lt.u32 %%more%u, %%x1, %%end_block;\n"
                 "mad.wide.u32 %%e0, %%x1, %u, %%sums;\nmad.lo.u32 %%x0, %%x1, %u, %%spot;\n",
                 copy, copy, BLOCK_BYTES, shared_block_bytes(key));
    for (uint32_t i = 0; i < key->split; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            parts[i][j] = cuda_fresh(l, cuda_gemm_sum_class(key));
        }
        kit_text_add(&l->body,
                     "setp.eq.and.u32 %%own, %%own_part, %u, %%more%u;\n"
                     "setp.ne.and.u32 %%sends, %%own_part, %u, %%more%u;\n",
                     i, copy, i, copy);
        write_shared_block(l, key, "%own", true, parts[i]);
        cuda_emit(l, "@%sends ld.global.v4.b32 {$, $, $, $}, [%e0];", parts[i][0], parts[i][1],
                  parts[i][2], parts[i][3]);
        if (i + 1 < key->split) {
            kit_text_add(&l->body, "add.u64 %%e0, %%e0, %%part_bytes;\n");
        }
    }
}

/* Adds them, and stores the sums where gemm/end/staged.c has those of a tile. */
static void write_block_sums(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                             cuda_operand parts[CUDA_GEMM_MAX_PARTS][4])
{
    char guard[16];
    for (uint32_t i = 1; i < key->split; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            cuda_gemm_sum_add(l, key, parts[0][j], parts[i][j]);
        }
    }
    kit_text_add(&l->body, "add.u32 %%x0, %%block, %u;\nmad.lo.u32 %%x0, %%x0, %u, %%spot;\n", copy,
                 shared_block_bytes(key));
    snprintf(guard, sizeof guard, "%%more%u", copy);
    write_shared_block(l, key, guard, false, parts[0]);
}

void cuda_gemm_partial_add(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    uint32_t copies = MAX_LOADS / key->split;
    copies = copies > MAX_COPIES ? MAX_COPIES : copies;
    copies = copies > cuda_gemm_partial_blocks(key) ? cuda_gemm_partial_blocks(key) : copies;
    cuda_operand parts[MAX_COPIES][CUDA_GEMM_MAX_PARTS][4];
    kit_text_add(t, "brev.b32 %%slice, %%slices;\nclz.b32 %%slice, %%slice;\n"
                    "sub.u32 %%x0, %%slices, 1;\nand.b32 %%slices, %%slices, %%x0;\n");
    write_slice_blocks(t, key);
    kit_text_add(t,
                 "setp.eq.and.u32 %%p, %%slice, %%part, %%waits;\n"
                 "selp.u32 %%own_part, %%part, %u, %%p;\nmov.u32 %%block, %%first_block;\n"
                 "ADD_BLOCKS:\n",
                 CUDA_GEMM_MAX_PARTS);
    for (uint32_t i = 0; i < copies; i++) {
        write_block_loads(l, key, i, parts[i]);
    }
    for (uint32_t i = 0; i < copies; i++) {
        write_block_sums(l, key, i, parts[i]);
    }
    kit_text_add(t,
                 "add.u32 %%block, %%block, %u;\nsetp.lt.u32 %%p, %%block, %%end_block;\n"
                 "@%%p bra ADD_BLOCKS;\nbar.sync 1, %u;\n",
                 copies, WORKERS);
}
