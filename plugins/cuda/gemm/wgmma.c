/* PTX of the persistent wgmma kernel, see gemm/wgmma.h: the roles of its warpgroups. The ring of
 * stages is gemm/tile/ring.c, the sums are gemm/tile/sums.c, turns gemm/tile/turns.c, epilogues
 * gemm/end/epilogue.c and gemm/end/staged.c. */
#include "gemm/wgmma.h"

#include "gemm/producer/direct.h"
#include "gemm/end/epilogue.h"
#include "gemm/tile/module.h"
#include "gemm/end/partial.h"
#include "gemm/tile/ring.h"
#include "gemm/end/staged.h"
#include "gemm/tile/sums.h"
#include "gemm/tile/turns.h"
#include "gemm/tile/wait.h"
#include "lower/lower.h"

#include <stddef.h>
#include <stdlib.h>

enum { MIN_STAGES = 3 /* of a ring that hides the latency of copies */ };

/* The halves of a tile are whole boxes, and whole groups of eight lines. */
static bool shared_is_supported(const cuda_gemm_key *key)
{
    const uint32_t line = cuda_gemm_line(key->type);
    return key->shared == CUDA_GEMM_SHARES_A
               ? !key->transpose_a || cuda_gemm_rows(key) % (2 * line) == 0
               : key->shared != CUDA_GEMM_SHARES_B || key->transpose_b ||
                     key->columns % (2 * line) == 0;
}

/* Types of A, B and C. Sums of integers are of 32 bits, which an epilogue turns into others. */
static bool types_are_supported(const cuda_gemm_key *key)
{
    const hal_type c = key->type_c;
    switch (key->type) {
    case HAL_TYPE_F16:
    case HAL_TYPE_BF16:
    case HAL_TYPE_F32:
        return c == key->type || c == HAL_TYPE_F32;
    case HAL_TYPE_F8_E4M3:
        return c == HAL_TYPE_F32;
    case HAL_TYPE_I8:
    case HAL_TYPE_U8:
        return c == hal_type_of_value(key->type) ||
               (key->epilogue && !key->reads_c &&
                (c == HAL_TYPE_F16 || c == HAL_TYPE_BF16 || hal_type_size(c) == 4));
    default:
        return false;
    }
}

bool cuda_gemm_is_supported(const cuda_gemm_key *key)
{
    return types_are_supported(key) && key->columns % 16 == 0 && key->columns > 0 &&
           cuda_gemm_stages(key) >= MIN_STAGES &&
           key->columns <= (key->flushes ? 128 : CUDA_GEMM_MAX_COLUMNS) &&
           (key->split == 1 || key->staged) && shared_is_supported(key) &&
           (!key->direct || cuda_gemm_direct_is_supported(key)) &&
           (!key->alternates || cuda_gemm_turns_are_supported(key)) &&
           (key->staged ? cuda_gemm_staged_is_supported(key)
                        : cuda_gemm_epilogue_is_supported(key));
}

/* Where tile `tile` lies: `row`, `column` of C, and `batch`. */
static void write_tile_place(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "mul.lo.u32 %%x0, %%tiles_m, %%tiles_n;\n"
                    "div.u32 %%batch, %%tile, %%x0;\n"
                    "mul.lo.u32 %%x1, %%batch, %%x0;\n"
                    "sub.u32 %%x1, %%tile, %%x1;\n");
    if (key->in_memory) { /* all tiles of a part of k, then those of the next one */
        kit_text_add(t,
                     "ld.param.u32 %%x2, [block+%zu];\ndiv.u32 %%part, %%batch, %%x2;\n"
                     "mul.lo.u32 %%x2, %%part, %%x2;\nsub.u32 %%batch, %%batch, %%x2;\n",
                     offsetof(cuda_gemm_block, batch));
    }
    cuda_gemm_module_order(t);
    if (key->shared != CUDA_GEMM_SHARES_NONE) { /* the places are those of pairs */
        const char *name = key->shared == CUDA_GEMM_SHARES_A ? "%x0" : "%x1";
        kit_text_add(t, "mad.lo.u32 %s, %s, 2, %%pair;\n", name, name);
    }
    kit_text_add(t, "mul.lo.u32 %%row, %%x1, %u;\nmul.lo.u32 %%column, %%x0, %u;\n",
                 cuda_gemm_rows(key), key->columns);
}

/* The stages of k that this group sums: all, or its part of them. */
static void write_stage_range(kit_text *t, const cuda_gemm_key *key)
{
    if (key->split == 1) {
        kit_text_add(t, "mov.u32 %%depth, 0;\nmov.u32 %%count, %%steps;\n");
        return;
    }
    kit_text_add(t,
                 "mul.lo.u32 %%x0, %%steps, %%part;\ndiv.u32 %%x0, %%x0, %u;\n"
                 "add.u32 %%x1, %%part, 1;\n"
                 "mul.lo.u32 %%x1, %%steps, %%x1;\ndiv.u32 %%x1, %%x1, %u;\n"
                 "sub.u32 %%count, %%x1, %%x0;\nmul.lo.u32 %%depth, %%x0, %u;\n",
                 key->split, key->split, cuda_gemm_line(key->type));
}

/* Copies a box to the stage, or with `both` to the stages of both groups of the cluster. */
static void write_copy(kit_text *t, uint32_t offset, uint32_t map, const char *inner,
                       const char *outer, const char *batch, bool both)
{
    kit_text_add(t,
                 "add.u32 %%x0, %%stage, %u;\n%s"
                 "add.u64 %%e0, %%maps, %u;\n"
                 "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes%s "
                 "[%%x0], [%%e0, {%s, %s, %s}], [%%barrier]%s;\n",
                 offset, both ? "add.u32 %x0, %x0, %own_bytes;\n" : "", map * CUDA_GEMM_MAP_BYTES,
                 both ? ".multicast::cluster" : "", inner, outer, batch, both ? ", %both" : "");
}

/* Copies the tile of an operand whose rows or columns begin at register `first`, or this group's
 * half of it. */
static void write_operand_copy(kit_text *t, const cuda_gemm_key *key, uint32_t map, bool along_k,
                               uint32_t offset, uint32_t length, const char *first,
                               const char *batch)
{
    const uint32_t line = cuda_gemm_line(key->type);
    const bool both = key->shared == (map == 0 ? CUDA_GEMM_SHARES_A : CUDA_GEMM_SHARES_B);
    kit_text_add(t, both ? "add.u32 %%x1, %s, %%own_half;\n" : "mov.u32 %%x1, %s;\n", first);
    if (along_k) {
        write_copy(t, offset, map, "%depth", "%x1", batch, both);
        return;
    }
    for (uint32_t i = 0; i < length / (both ? 2 : 1); i += line) {
        write_copy(t, offset + i * CUDA_GEMM_LINE, map, "%x1", "%depth", batch, both);
        kit_text_add(t, "add.u32 %%x1, %%x1, %u;\n", line);
    }
}

/* All warps of the producer's warpgroup copy and store, where no tensor maps describe A and B. */
static void write_direct_producer(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "setmaxnreg.dec.sync.aligned.u32 88;\n"
                    "mov.u32 %%slot, 0;\nmov.u32 %%parity, 1;\nmov.u32 %%drained, 1;\n"
                    "mov.u32 %%tile, %%first_tile;\n"
                    "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra DONE;\n");
    cuda_gemm_direct_begin(t, key);
    write_tile_place(t, key);
    write_stage_range(t, key);
    kit_text_add(t, "mov.u32 %%step, 0;\n"
                    "sub.u32 %%ended, %%tiles, %%tile;\nsub.u32 %%ended, %%ended, 1;\n"
                    "div.u32 %%ended, %%ended, %%groups;\nadd.u32 %%ended, %%ended, 1;\n"
                    "mul.lo.u32 %%ended, %%ended, %%count;\n"
                    "LOAD_STEP:\nsetp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra LOADED;\n");
    cuda_gemm_direct_load(t, key);
    kit_text_add(t,
                 "add.u32 %%depth, %%depth, %u;\nadd.u32 %%step, %%step, 1;\n"
                 "setp.lt.u32 %%p, %%step, %%count;\n@%%p bra LOADED;\n"
                 "add.u32 %%tile, %%tile, %%groups;\n"
                 "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra LOADED;\n",
                 cuda_gemm_line(key->type));
    write_tile_place(t, key);
    write_stage_range(t, key);
    kit_text_add(t, "mov.u32 %%step, 0;\nLOADED:\n");
    cuda_gemm_direct_store(t, key, "LOAD_STEP");
    kit_text_add(t, "sub.u32 %%ended, %%ended, 1;\nsetp.ne.u32 %%p, %%ended, 0;\n"
                    "@%%p bra LOAD_STEP;\nbra DONE;\n");
}

/* Waits until both groups of a pair have read all stages. The shared memory of a group that ended
 * may be another's, and the other group of the pair arrives at its barriers. */
static void write_wait_emptied(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "mov.u32 %%step, 0;\nWAIT_STAGE:\n"
                 "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%x0;\n"
                 "add.u32 %%x1, %%barrier, %u;\n",
                 cuda_gemm_empty_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_EMPTIED", "%x1", "%parity", true);
    cuda_gemm_write_next_slot(t, key);
    kit_text_add(t,
                 "add.u32 %%step, %%step, 1;\nsetp.lt.u32 %%p, %%step, %u;\n"
                 "@%%p bra WAIT_STAGE;\n",
                 cuda_gemm_stages(key));
}

/* One thread of the producer's warpgroup copies. Three of its warps convert B. */
static void write_producer(kit_text *t, const cuda_gemm_key *key)
{
    if (key->in_memory) {
        cuda_gemm_partial_begin(t);
    }
    kit_text_add(t, "setmaxnreg.dec.sync.aligned.u32 40;\n"
                    "mov.u32 %%slot, 0;\nmov.u32 %%tile, %%first_tile;\n");
    if (cuda_gemm_converts(key)) {
        kit_text_add(t, "setp.lt.u32 %%p, %%thread, 32;\n@%%p bra COPY;\nmov.u32 %%parity, 0;\n"
                        "CONVERT_TILE:\n"
                        "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra DONE;\n");
        if (key->in_memory) {
            write_tile_place(t, key);
        }
        write_stage_range(t, key);
        cuda_gemm_convert_tile(t, key);
        kit_text_add(t, "add.u32 %%tile, %%tile, %%groups;\nbra CONVERT_TILE;\nCOPY:\n");
    }
    kit_text_add(t, "setp.ne.u32 %%p, %%thread, 0;\n@%%p bra DONE;\n"
                    "mov.u32 %%parity, 1;\nmov.u32 %%drained, 1;\n"
                    "COPY_TILE:\n"
                    "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra COPIED;\n");
    write_tile_place(t, key);
    write_stage_range(t, key);
    if (key->staged) {
        cuda_gemm_write_wait_drained(t, key);
    }
    kit_text_add(t, "mul.lo.u32 %%batch_a, %%batch, %%batched_a;\n"
                    "mul.lo.u32 %%batch_b, %%batch, %%batched_b;\n"
                    "mov.u32 %%step, 0;\n"
                    "COPY_STEP:\n"
                    "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%x0;\n");
    kit_text_add(t, "add.u32 %%x1, %%barrier, %u;\n", cuda_gemm_empty_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_EMPTY", "%x1", "%parity", false);
    kit_text_add(t,
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%barrier], %u;\n"
                 "mad.lo.u32 %%stage, %%slot, %u, %%base;\n",
                 cuda_gemm_tile_a_bytes(key) + cuda_gemm_tile_b_bytes(key),
                 cuda_gemm_stage_bytes(key));
    write_operand_copy(t, key, 0, !key->transpose_a, 0, cuda_gemm_rows(key), "%row", "%batch_a");
    write_operand_copy(t, key, 1, key->transpose_b, cuda_gemm_tile_a_bytes(key), key->columns,
                       "%column", "%batch_b");
    cuda_gemm_write_next_slot(t, key);
    kit_text_add(t,
                 "add.u32 %%depth, %%depth, %u;\nadd.u32 %%step, %%step, 1;\n"
                 "setp.lt.u32 %%p, %%step, %%count;\n@%%p bra COPY_STEP;\n",
                 cuda_gemm_line(key->type));
    if (key->in_memory) {
        cuda_gemm_partial_ask(t, key);
    }
    kit_text_add(t, "add.u32 %%tile, %%tile, %%groups;\nbra COPY_TILE;\nCOPIED:\n");
    if (key->shared != CUDA_GEMM_SHARES_NONE) {
        write_wait_emptied(t, key);
    }
    kit_text_add(t, "bra DONE;\n");
}

static void write_consumer(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    cuda_gemm_inputs *inputs = &l->inputs[CUDA_GEMM_INPUTS_OF_TILE];
    kit_text_add(t,
                 "MULTIPLY:\nsetmaxnreg.inc.sync.aligned.u32 %u;\n"
                 "sub.u32 %%multiplier, %%warpgroup, 1;\n"
                 "setp.eq.u32 %%leads, %%lane, 0;\n"
                 "setp.eq.u32 %%true, 0, 0;\n"
                 "mov.u32 %%slot, 0;\nmov.u32 %%parity, 0;\nmov.u32 %%tile, %%first_tile;\n",
                 key->direct ? 208 : 232);
    cuda_gemm_turns_begin(t, key);
    cuda_gemm_sums_begin(t, key);
    if (key->staged) {
        cuda_gemm_staged_begin(l, key);
    } else {
        cuda_gemm_epilogue_begin(l, key);
    }
    kit_text_add(t, "MULTIPLY_TILE:\n"
                    "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra MULTIPLIED;\n");
    write_tile_place(t, key);
    write_stage_range(t, key);
    if (key->in_memory) {
        cuda_gemm_partial_begin_tile(t, key);
    }
    if (!key->staged) {
        cuda_gemm_epilogue_prepare(l, key, inputs);
    }
    cuda_gemm_turns_wait(t, key);
    cuda_gemm_sums_tile(t, key);
    if (key->staged) {
        cuda_gemm_staged_tile(l, key);
    } else {
        cuda_gemm_epilogue_tile(l, key, inputs);
    }
    cuda_gemm_turns_next(t, key);
    kit_text_add(t, "bra MULTIPLY_TILE;\nMULTIPLIED:\n");
    if (key->staged) {
        cuda_gemm_staged_end(t, key);
    } else {
        cuda_gemm_epilogue_end(t, key);
    }
    kit_text_add(t, "DONE:\nret;\n}\n");
}

static void write_barrier(kit_text *t, uint32_t offset, uint32_t arrivals)
{
    kit_text_add(t, "mbarrier.init.shared::cta.b64 [%%barriers+%u], %u;\n", offset, arrivals);
}

static void write_barriers(kit_text *t, const cuda_gemm_key *key)
{
    for (uint32_t i = 0; i < cuda_gemm_stages(key); i++) {
        write_barrier(t, 8 * i, cuda_gemm_full_arrivals(key));
        write_barrier(t, cuda_gemm_empty_barrier(key) + 8 * i, cuda_gemm_empty_arrivals(key));
        write_barrier(t, cuda_gemm_converted_barrier(key) + 8 * i, CUDA_GEMM_CONVERTERS);
    }
    write_barrier(t, cuda_gemm_partial_barrier(key), key->in_memory ? 1 : key->split);
    write_barrier(t, cuda_gemm_drained_barrier(key), cuda_gemm_staged_arrivals(key));
}

/* Pairs are neighbours: %pair is 0 or 1, %part the part of k. A group copies its half of the common
 * tile to both. */
static void write_ranks(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t half =
        (key->shared == CUDA_GEMM_SHARES_A ? cuda_gemm_rows(key) : key->columns) / 2;
    if (key->shared == CUDA_GEMM_SHARES_NONE) {
        kit_text_add(t, "mov.u32 %%pair, 0;\nmov.u32 %%part, %%rank;\n");
        return;
    }
    kit_text_add(t,
                 ".reg .b32 %%other_rank, %%own_half, %%own_bytes;\n.reg .b16 %%both;\n"
                 "and.b32 %%pair, %%rank, 1;\nshr.u32 %%part, %%rank, 1;\n"
                 "xor.b32 %%other_rank, %%rank, 1;\nmul.lo.u32 %%own_half, %%pair, %u;\n"
                 "mul.lo.u32 %%own_bytes, %%own_half, %u;\n"
                 "and.b32 %%x0, %%rank, 6;\nshl.b32 %%x0, 3, %%x0;\ncvt.u16.u32 %%both, %%x0;\n",
                 half, CUDA_GEMM_LINE);
}

/* The barriers are there before any warp of the cluster continues; nothing of global memory is read
 * before the kernels before this one have ended. */
static void write_start(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "mov.u32 %%thread, %%tid.x;\n"
                 "shr.u32 %%warp, %%thread, 5;\nand.b32 %%lane, %%thread, 31;\n"
                 "shr.u32 %%warpgroup, %%thread, 7;\n"
                 "mov.u32 %%base, shared;\nadd.u32 %%base, %%base, %u;\n"
                 "and.b32 %%base, %%base, %u;\n"
                 "add.u32 %%barriers, %%base, %u;\n",
                 CUDA_GEMM_ALIGNMENT - 1, ~(uint32_t)(CUDA_GEMM_ALIGNMENT - 1),
                 cuda_gemm_barrier_offset(key));
    kit_text_add(t,
                 cuda_gemm_cluster(key) > 1
                     ? "mov.u32 %%first_tile, %%clusterid.x;\nmov.u32 %%groups, %%nclusterid.x;\n"
                       "mov.u32 %%rank, %%cluster_ctarank;\n"
                     : "mov.u32 %%first_tile, %%ctaid.x;\nmov.u32 %%groups, %%nctaid.x;\n"
                       "mov.u32 %%rank, 0;\n");
    write_ranks(t, key);
    kit_text_add(t, "setp.ne.u32 %%p, %%thread, 0;\n@%%p bra READY;\n");
    kit_text_add(t, "mov.b64 %%maps, block;\ncvta.param.u64 %%maps, %%maps;\n");
    for (uint32_t i = 0; i < 3; i++) {
        if (cuda_gemm_is_mapped(key, i)) {
            kit_text_add(t, "prefetch.tensormap [%%maps+%u];\n", i * CUDA_GEMM_MAP_BYTES);
        }
    }
    write_barriers(t, key);
    kit_text_add(t, "fence.mbarrier_init.release.cluster;\n"
                    "fence.proxy.async.shared::cta;\nREADY:\n");
    kit_text_add(t, cuda_gemm_cluster(key) > 1
                        ? "bar.warp.sync 0xffffffff;\nbarrier.cluster.arrive.relaxed.aligned;\n"
                          "barrier.cluster.wait.acquire.aligned;\n"
                        : "bar.sync 0;\n");
    kit_text_add(t, "griddepcontrol.wait;\n"
                    "mov.b64 %%maps, block;\ncvta.param.u64 %%maps, %%maps;\n");
    static const struct {
        const char *name;
        size_t offset;
    } words[] = {{"m", offsetof(cuda_gemm_block, m)},
                 {"n", offsetof(cuda_gemm_block, n)},
                 {"steps", offsetof(cuda_gemm_block, steps)},
                 {"tiles_m", offsetof(cuda_gemm_block, tiles_m)},
                 {"tiles_n", offsetof(cuda_gemm_block, tiles_n)},
                 {"tiles", offsetof(cuda_gemm_block, tiles)},
                 {"raster", offsetof(cuda_gemm_block, raster)},
                 {"batched_a", offsetof(cuda_gemm_block, batched_a)},
                 {"batched_b", offsetof(cuda_gemm_block, batched_b)}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        kit_text_add(t, "ld.param.u32 %%%s, [block+%zu];\n", words[i].name, words[i].offset);
    }
    kit_text_add(t, "setp.ne.u32 %%p, %%warpgroup, 0;\n@%%p bra MULTIPLY;\n");
}

static void write_header(const cuda_lowering *l, const cuda_gemm_key *key, kit_text *text)
{
    kit_text_add(text, ".version %s\n.target sm_90a\n.address_size 64\n",
                 cuda_gemm_cluster(key) > 1 ? "8.6" : "8.0");
    cuda_gemm_write_wait_header(text, key->wait_seconds);
    kit_text_add(text,
                 ".extern .shared .align 1024 .b8 shared[];\n"
                 ".visible .entry hal_kernel(.param .align 64 .b8 block[%zu])\n"
                 ".reqntid %u, 1, 1\n.minnctapersm 1\n",
                 offsetof(cuda_gemm_block, inputs) + key->input_count * sizeof(cuda_gemm_input),
                 CUDA_GEMM_THREADS);
    if (cuda_gemm_cluster(key) > 1) {
        kit_text_add(text, ".reqnctapercluster %u, 1, 1\n", cuda_gemm_cluster(key));
    }
    kit_text_add(text,
                 "{\n"
                 ".reg .pred %%p, %%done, %%last, %%adds, %%leads, %%true;\n"
                 ".reg .b32 %%thread, %%groups, %%warp, %%lane, %%warpgroup, %%multiplier;\n"
                 ".reg .b32 %%rank, %%part, %%pair, %%first_tile, %%count, %%drained;\n"
                 ".reg .b32 %%base, %%barriers, %%barrier, %%stage, %%slot, %%parity, %%previous;\n"
                 ".reg .b32 %%m, %%n, %%steps, %%tiles_m, %%tiles_n, %%tiles, %%raster;\n"
                 ".reg .b32 %%batched_a, %%batched_b, %%batch_a, %%batch_b;\n"
                 ".reg .b32 %%tile, %%row, %%column, %%batch, %%step, %%depth;\n"
                 ".reg .b32 %%x0, %%x1, %%x2, %%x3, %%at<4>;\n"
                 ".reg .b64 %%maps, %%e0, %%e1, %%e2, %%e3, %%e4, %%e5;\n");
    cuda_write_registers(l, text);
}

static void write_body(cuda_lowering *l, const cuda_gemm_key *key)
{
    l->inputs = calloc(CUDA_GEMM_INPUT_SETS, sizeof *l->inputs);
    if (!l->inputs) {
        l->status = l->body.host->fail(l->body.host, HAL_ERROR_OUT_OF_MEMORY,
                                       "cuda: no host memory for the inputs of an epilogue");
        return;
    }
    write_start(&l->body, key);
    if (key->direct) {
        write_direct_producer(&l->body, key);
    } else {
        write_producer(&l->body, key);
    }
    write_consumer(l, key);
    free(l->inputs);
    l->inputs = NULL;
}

hal_status cuda_gemm_write(const cuda_gemm_key *key, kit_text *text)
{
    const cuda_gemm_writers writers = {write_body, write_header, cuda_gemm_sum_registers(key)};
    return cuda_gemm_module_write(key, &writers, text);
}
