/* PTX of the thread that copies tiles of q, k and v to shared memory. Keys come from the last tile
 * to the first, as causal rows mask the last ones. */
#include "attention/parts.h"

static void write_expect(kit_text *t, uint32_t offset, uint32_t bytes)
{
    kit_text_add(t, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%barrier+%u], %u;\n", offset,
                 bytes);
}

/* Copies the boxes of a tile to %target: map `map`, rows from register `row` on. */
static void write_boxes(kit_text *t, uint32_t map, uint32_t head, uint32_t rows, uint32_t full,
                        const char *row, const char *batch, const char *outer)
{
    kit_text_add(t, "add.u64 %%e0, %%maps, %u;\nadd.u32 %%x1, %%barrier, %u;\n",
                 map * CUDA_ATTENTION_MAP_BYTES, full);
    for (uint32_t i = 0; i < cuda_attention_boxes(head); i++) {
        kit_text_add(t,
                     "add.u32 %%x0, %%target, %u;\n"
                     "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%%x0], [%%e0, {%u, %s, %s, %s}], [%%x1];\n",
                     i * rows * CUDA_ATTENTION_LINE, i * CUDA_ATTENTION_LINE_LENGTH, row, batch,
                     outer);
    }
}

static void write_queries(kit_text *t, const cuda_attention_key *key)
{
    const uint32_t rows = cuda_attention_rows(key);
    cuda_attention_write_wait(t, key, "COPY_WAIT_Q", "%barriers", CUDA_ATTENTION_Q_EMPTY,
                              "%q_parity");
    kit_text_add(t, "xor.b32 %%q_parity, %%q_parity, 1;\n"
                    "mov.u32 %%barrier, %%barriers;\nmov.u32 %%target, %%base;\n");
    write_expect(t, CUDA_ATTENTION_Q_FULL, cuda_attention_tile_bytes(rows, key->d));
    write_boxes(t, 0, key->d, rows, CUDA_ATTENTION_Q_FULL, "%row", "%batch", "%outer");
}

/* One tile of keys (map 1) or values (map 2) to stage %slot. */
static void write_stage(kit_text *t, const cuda_attention_key *key, uint32_t map)
{
    const bool is_k = map == 1;
    const uint32_t head = is_k ? key->d : key->e;
    const uint32_t bytes = cuda_attention_tile_bytes(key->keys, head);
    const uint32_t full = is_k ? CUDA_ATTENTION_K_FULL : CUDA_ATTENTION_V_FULL;
    cuda_attention_write_wait(t, key, is_k ? "COPY_WAIT_K" : "COPY_WAIT_V", "%barrier",
                              is_k ? CUDA_ATTENTION_K_EMPTY : CUDA_ATTENTION_V_EMPTY, "%parity");
    write_expect(t, full, bytes);
    kit_text_add(t, "mad.lo.u32 %%target, %%slot, %u, %%base;\nadd.u32 %%target, %%target, %u;\n",
                 bytes, is_k ? cuda_attention_k(key) : cuda_attention_v(key));
    write_boxes(t, map, head, key->keys, full, "%first_key", is_k ? "%k_batch" : "%v_batch",
                is_k ? "%k_outer" : "%v_outer");
}

void cuda_attention_write_producer(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t,
                 ".reg .b32 %%target, %%k_batch, %%k_outer, %%v_batch, %%v_outer;\n"
                 "setmaxnreg.dec.sync.aligned.u32 %u;\n"
                 "setp.ne.u32 %%p, %%thread, 0;\n@%%p bra DONE;\n"
                 "mov.u32 %%slot, 0;\nmov.u32 %%parity, 1;\nmov.u32 %%q_parity, 1;\n",
                 cuda_attention_copy_registers(key));
    cuda_attention_write_first_tile(t);
    kit_text_add(t, "COPY_TILE:\nsetp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra DONE;\n");
    cuda_attention_write_place(t, key);
    kit_text_add(t, "mul.lo.u32 %%k_batch, %%batch, %%has_k_batch;\n"
                    "mul.lo.u32 %%k_outer, %%outer, %%has_k_outer;\n"
                    "mul.lo.u32 %%v_batch, %%batch, %%has_v_batch;\n"
                    "mul.lo.u32 %%v_outer, %%outer, %%has_v_outer;\n");
    write_queries(t, key);
    kit_text_add(
        t,
        "COPY_KEYS:\nsub.u32 %%count, %%count, 1;\nadd.u32 %%first_key, %%begin, %%count;\n"
        "mul.lo.u32 %%first_key, %%first_key, %u;\n"
        "shl.b32 %%barrier, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%barrier;\n",
        key->keys);
    write_stage(t, key, 1);
    write_stage(t, key, 2);
    cuda_attention_write_next(t, "%slot", "%parity");
    kit_text_add(t, "setp.ne.u32 %%p, %%count, 0;\n@%%p bra COPY_KEYS;\n");
    cuda_attention_write_next_tile(t);
    kit_text_add(t, "bra COPY_TILE;\n");
}
