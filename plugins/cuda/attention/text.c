/* PTX of attention on warpgroup units, see attention/text.h: the roles of the warpgroups.
 *
 * A warpgroup starts the scores of a tile of keys, then the product of the weights of the tile
 * before with its values, and computes the softmax of the scores meanwhile (J. Shah and others,
 * "FlashAttention-3", 2024). */
#include "attention/text.h"

#include "attention/parts.h"
#include "gemm/tile/wait.h"

#include <stddef.h>

static void write_release(kit_text *t, const char *slot, uint32_t offset)
{
    kit_text_add(t,
                 "shl.b32 %%x0, %s, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n"
                 "@%%leads mbarrier.arrive.shared::cta.b64 _, [%%x0+%u];\n",
                 slot, offset);
}

static void write_wait_stage(kit_text *t, const cuda_attention_key *key, const char *name,
                             const char *slot, uint32_t offset, const char *parity)
{
    kit_text_add(t, "shl.b32 %%barrier, %s, 3;\nadd.u32 %%barrier, %%barriers, %%barrier;\n", slot);
    cuda_attention_write_wait(t, key, name, "%barrier", offset, parity);
}

/* ---- The warpgroups that multiply ---- */

/* %own_row: the work-item's first row; its limits are columns, see softmax.c. */
static void write_rows(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t,
                 "mad.lo.u32 %%x1, %%multiplier, %u, %%row;\n"
                 "and.b32 %%x0, %%warp, 3;\nmad.lo.u32 %%own_row, %%x0, 16, %%x1;\n"
                 "shr.u32 %%x0, %%lane, 2;\nadd.u32 %%own_row, %%own_row, %%x0;\n"
                 "and.b32 %%x0, %%lane, 3;\nshl.b32 %%x0, %%x0, 1;\n",
                 CUDA_ATTENTION_BAND);
    if (!key->causal) {
        kit_text_add(t, "mov.u32 %%least, %%n;\nsub.u32 %%limit0, %%n, %%x0;\n"
                        "mov.u32 %%limit1, %%limit0;\n");
        return;
    }
    kit_text_add(t, "add.u32 %%least, %%x1, %%shift;\nadd.u32 %%least, %%least, 1;\n"
                    "min.s32 %%least, %%least, %%n;\n"
                    "add.u32 %%limit0, %%own_row, %%shift;\nadd.u32 %%limit1, %%limit0, 9;\n"
                    "add.u32 %%limit0, %%limit0, 1;\n");
    for (uint32_t r = 0; r < 2; r++) {
        kit_text_add(t, "min.s32 %%limit%u, %%limit%u, %%n;\nsub.u32 %%limit%u, %%limit%u, %%x0;\n",
                     r, r, r, r);
    }
}

/* The scores and weights of the last tile of keys. */
static void write_first(kit_text *t, const cuda_attention_key *key)
{
    for (uint32_t r = 0; r < 2; r++) {
        kit_text_add(t, "mov.b32 %%top%u, 0xff800000;\nmov.b32 %%sum%u, 0;\n", r, r);
    }
    cuda_attention_write_wait(t, key, "WAIT_Q", "%barriers", CUDA_ATTENTION_Q_FULL, "%q_parity");
    kit_text_add(t,
                 "xor.b32 %%q_parity, %%q_parity, 1;\n"
                 "add.u32 %%first_key, %%begin, %%count;\nsub.u32 %%first_key, %%first_key, 1;\n"
                 "mul.lo.u32 %%first_key, %%first_key, %u;\n",
                 key->keys);
    write_wait_stage(t, key, "WAIT_FIRST_K", "%slot", CUDA_ATTENTION_K_FULL, "%parity");
    cuda_attention_write_scores(t, key);
    kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
    write_release(t, "%slot", CUDA_ATTENTION_K_EMPTY);
    cuda_attention_softmax_tile(t, key, "FIRST");
    cuda_attention_write_weights(t, key);
    kit_text_add(t, "mov.u32 %%step, 1;\nsetp.eq.u32 %%p, %%count, 1;\n"
                    "mov.u32 %%v_slot, %%slot;\nmov.u32 %%v_parity, %%parity;\n"
                    "@%%p bra.uni LAST;\n");
}

/* The scores of a tile, and the result of the tile after it, which came before. */
static void write_step(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, "STEP:\nsub.u32 %%first_key, %%first_key, %u;\n", key->keys);
    cuda_attention_write_next(t, "%slot", "%parity");
    write_wait_stage(t, key, "WAIT_K", "%slot", CUDA_ATTENTION_K_FULL, "%parity");
    cuda_attention_write_scores(t, key);
    write_wait_stage(t, key, "WAIT_V", "%v_slot", CUDA_ATTENTION_V_FULL, "%v_parity");
    kit_text_add(t, "setp.ne.u32 %%adds, %%step, 1;\n");
    cuda_attention_write_result(t, key, "%adds");
    kit_text_add(t, "wgmma.wait_group.sync.aligned 1;\n");
    write_release(t, "%slot", CUDA_ATTENTION_K_EMPTY);
    cuda_attention_softmax_tile(t, key, "STEP");
    cuda_attention_softmax_hold(t, key);
    kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
    write_release(t, "%v_slot", CUDA_ATTENTION_V_EMPTY);
    cuda_attention_write_rescale(t, key);
    cuda_attention_write_weights(t, key);
    kit_text_add(t, "mov.u32 %%v_slot, %%slot;\nmov.u32 %%v_parity, %%parity;\n"
                    "add.u32 %%step, %%step, 1;\nsetp.lt.u32 %%p, %%step, %%count;\n"
                    "@%%p bra.uni STEP;\n");
}

static void write_last(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, "LAST:\n@%%leads mbarrier.arrive.shared::cta.b64 _, [%%barriers+%u];\n",
                 CUDA_ATTENTION_Q_EMPTY);
    write_wait_stage(t, key, "WAIT_LAST_V", "%v_slot", CUDA_ATTENTION_V_FULL, "%v_parity");
    kit_text_add(t, "setp.ne.u32 %%adds, %%count, 1;\n");
    cuda_attention_write_result(t, key, "%adds");
    kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
    write_release(t, "%v_slot", CUDA_ATTENTION_V_EMPTY);
    cuda_attention_write_next(t, "%slot", "%parity");
}

static void write_consumer(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t,
                 "MULTIPLY:\n.reg .b32 %%v_slot, %%v_parity, %%step, %%own_row;\n"
                 "setmaxnreg.inc.sync.aligned.u32 %u;\n"
                 "sub.u32 %%multiplier, %%warpgroup, 1;\nsetp.eq.u32 %%leads, %%lane, 0;\n"
                 "setp.eq.u32 %%true, 0, 0;\nsetp.ne.u32 %%false, 0, 0;\n"
                 "mov.u32 %%slot, 0;\nmov.u32 %%parity, 0;\nmov.u32 %%q_parity, 0;\n",
                 cuda_attention_registers(key));
    cuda_attention_multiply_begin(t, key);
    cuda_attention_softmax_begin(t);
    cuda_attention_write_first_tile(t);
    kit_text_add(t, "MULTIPLY_TILE:\nsetp.ge.u32 %%p, %%tile, %%tiles;\n"
                    "@%%p bra.uni MULTIPLIED;\n");
    cuda_attention_write_place(t, key);
    write_rows(t, key);
    write_first(t, key);
    write_step(t, key);
    write_last(t, key);
    if (key->split > 1) {
        cuda_attention_write_split(t, key);
    } else {
        cuda_attention_write_store(t, key);
    }
    cuda_attention_write_next_tile(t);
    kit_text_add(t, "bra.uni MULTIPLY_TILE;\nMULTIPLIED:\nDONE:\nret;\n}\n");
}

/* ---- The module ---- */

static void write_barriers(kit_text *t, const cuda_attention_key *key)
{
    const uint32_t warps = 4u * key->warpgroups;
    for (uint32_t at = 0; at < CUDA_ATTENTION_BARRIER_BYTES; at += 8) {
        const bool is_empty = at == CUDA_ATTENTION_Q_EMPTY ||
                              (at >= CUDA_ATTENTION_K_EMPTY && at < CUDA_ATTENTION_V_FULL) ||
                              at >= CUDA_ATTENTION_V_EMPTY;
        kit_text_add(t, "mbarrier.init.shared::cta.b64 [%%barriers+%u], %u;\n", at,
                     is_empty ? warps : 1);
    }
}

/* Nothing of global memory is read before the kernels before this one have ended. */
static void write_start(kit_text *t, const cuda_attention_key *key)
{
    static const struct {
        const char *name;
        size_t offset;
    } words[] = {{"m", offsetof(cuda_attention_block, m)},
                 {"n", offsetof(cuda_attention_block, n)},
                 {"shift", offsetof(cuda_attention_block, shift)},
                 {"row_tiles", offsetof(cuda_attention_block, row_tiles)},
                 {"batches", offsetof(cuda_attention_block, batches)},
                 {"tiles", offsetof(cuda_attention_block, tiles)},
                 {"matrices", offsetof(cuda_attention_block, matrices)},
                 {"section", offsetof(cuda_attention_block, section)},
                 {"has_k_batch", offsetof(cuda_attention_block, k_batch)},
                 {"has_k_outer", offsetof(cuda_attention_block, k_outer)},
                 {"has_v_batch", offsetof(cuda_attention_block, v_batch)},
                 {"has_v_outer", offsetof(cuda_attention_block, v_outer)}};
    kit_text_add(t,
                 "mov.u32 %%thread, %%tid.x;\n%s"
                 "shr.u32 %%warp, %%thread, 5;\nand.b32 %%lane, %%thread, 31;\n"
                 "shr.u32 %%warpgroup, %%thread, 7;\n"
                 "mov.u32 %%base, shared;\nadd.u32 %%base, %%base, %u;\n"
                 "and.b32 %%base, %%base, %u;\nadd.u32 %%barriers, %%base, %u;\n"
                 "mov.b64 %%maps, block;\ncvta.param.u64 %%maps, %%maps;\n"
                 "setp.ne.u32 %%p, %%thread, 0;\n@%%p bra READY;\n",
                 key->split > 1 ? "mov.u32 %group, %clusterid.x;\nmov.u32 %groups, %nclusterid.x;\n"
                                  "mov.u32 %rank, %cluster_ctarank;\n"
                                : "mov.u32 %group, %ctaid.x;\nmov.u32 %groups, %nctaid.x;\n",
                 CUDA_ATTENTION_ALIGNMENT - 1, ~(uint32_t)(CUDA_ATTENTION_ALIGNMENT - 1),
                 cuda_attention_barriers(key));
    for (uint32_t i = 0; i < 3; i++) {
        kit_text_add(t, "prefetch.tensormap [%%maps+%u];\n", i * CUDA_ATTENTION_MAP_BYTES);
    }
    write_barriers(t, key);
    kit_text_add(t, "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n"
                    "READY:\nbar.sync 0;\ngriddepcontrol.wait;\n");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        kit_text_add(t, "ld.param.u32 %%%s, [block+%zu];\n", words[i].name, words[i].offset);
    }
    kit_text_add(t,
                 "ld.param.f32 %%scale, [block+%zu];\n"
                 "setp.ne.u32 %%p, %%warpgroup, 0;\n@%%p bra.uni MULTIPLY;\n",
                 offsetof(cuda_attention_block, scale));
}

static void write_header(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, ".version 8.0\n.target sm_90a\n.address_size 64\n");
    cuda_gemm_write_wait_header(t, key->wait_seconds);
    kit_text_add(t,
                 ".extern .shared .align 1024 .b8 shared[];\n"
                 ".visible .entry hal_kernel(.param .align 64 .b8 block[%zu])\n"
                 ".reqntid %u, 1, 1\n.minnctapersm %u\n",
                 sizeof(cuda_attention_block), cuda_attention_threads(key),
                 key->warpgroups == 1 ? 2 : 1);
    if (key->split > 1) {
        kit_text_add(t, ".reqnctapercluster %u, 1, 1\n", key->split);
    }
    kit_text_add(t,
                 "{\n.reg .pred %%p, %%done, %%adds, %%leads, %%true, %%false;\n"
                 ".reg .b32 %%thread, %%warp, %%lane, %%warpgroup, %%multiplier;\n"
                 ".reg .b32 %%group, %%groups, %%round, %%tile, %%tiles, %%row_tiles, %%batches;\n"
                 ".reg .b32 %%matrices, %%section;\n"
                 ".reg .b32 %%m, %%n, %%shift;\n"
                 ".reg .b32 %%has_k_batch, %%has_k_outer, %%has_v_batch, %%has_v_outer;\n"
                 ".reg .b32 %%base, %%barriers, %%barrier, %%slot, %%parity, %%q_parity;\n"
                 ".reg .b32 %%row, %%batch, %%outer, %%count, %%begin, %%first_key, %%rank;\n"
                 ".reg .b32 %%x0, %%x1;\n"
                 ".reg .b64 %%maps, %%e0;\n.reg .f32 %%scale;\n");
}

hal_status cuda_attention_write(const cuda_attention_key *key, kit_text *text)
{
    write_header(text, key);
    write_start(text, key);
    cuda_attention_write_producer(text, key);
    write_consumer(text, key);
    return text->failed ? text->host->fail(text->host, HAL_ERROR_OUT_OF_MEMORY,
                                           "cuda: no host memory for the PTX of attention")
                        : HAL_OK;
}
