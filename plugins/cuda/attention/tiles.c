/* PTX that both roles of a kernel of attention have: waits, stages, and the order of the tiles. */
#include "attention/parts.h"

#include "gemm/tile/wait.h"

void cuda_attention_write_wait(kit_text *t, const cuda_attention_key *key, const char *name,
                               const char *barrier, uint32_t offset, const char *parity)
{
    cuda_gemm_write_wait_begin(t, key->wait_seconds, name);
    kit_text_add(t, "mbarrier.try_wait.parity.shared::cta.b64 %%done, [%s+%u], %s;\n", barrier,
                 offset, parity);
    cuda_gemm_write_wait_end(t, key->wait_seconds, name);
}

void cuda_attention_write_next(kit_text *t, const char *slot, const char *parity)
{
    kit_text_add(t,
                 "add.u32 %s, %s, 1;\nsetp.eq.u32 %%p, %s, %u;\n"
                 "selp.u32 %s, 0, %s, %%p;\n@%%p xor.b32 %s, %s, 1;\n",
                 slot, slot, slot, CUDA_ATTENTION_STAGES, slot, slot, parity, parity);
}

/* The first tile: with %round 0, and %group in 0 .. %groups - 1. */
void cuda_attention_write_first_tile(kit_text *t)
{
    kit_text_add(t, "mov.u32 %%round, 0;\nmov.u32 %%tile, %%group;\n");
}

/* Groups take tiles in turn, every other round from the last group to the first, so that each has
 * long and short ones. */
void cuda_attention_write_next_tile(kit_text *t)
{
    kit_text_add(t, "add.u32 %%round, %%round, 1;\nand.b32 %%x0, %%round, 1;\n"
                    "setp.ne.u32 %%p, %%x0, 0;\n"
                    "sub.u32 %%x0, %%groups, %%group;\nsub.u32 %%x0, %%x0, 1;\n"
                    "selp.u32 %%x0, %%x0, %%group, %%p;\n"
                    "mad.lo.u32 %%tile, %%round, %%groups, %%x0;\n");
}

/* The tiles of %section matrices, whose keys and values the L2 holds, come before those of the
 * next ones; among them the longest causal rows come first. */
static void write_matrix(kit_text *t)
{
    kit_text_add(t, "mul.lo.u32 %%x1, %%section, %%row_tiles;\n"
                    "div.u32 %%x0, %%tile, %%x1;\n"
                    "mul.lo.u32 %%x1, %%x0, %%x1;\nsub.u32 %%row, %%tile, %%x1;\n"
                    "mul.lo.u32 %%x0, %%x0, %%section;\n"
                    "sub.u32 %%x1, %%matrices, %%x0;\nmin.u32 %%x1, %%x1, %%section;\n"
                    "div.u32 %%batch, %%row, %%x1;\n"
                    "mul.lo.u32 %%x1, %%batch, %%x1;\nsub.u32 %%x1, %%row, %%x1;\n"
                    "add.u32 %%x0, %%x0, %%x1;\n"
                    "sub.u32 %%row, %%row_tiles, %%batch;\nsub.u32 %%row, %%row, 1;\n"
                    "div.u32 %%outer, %%x0, %%batches;\n"
                    "mul.lo.u32 %%x1, %%outer, %%batches;\nsub.u32 %%batch, %%x0, %%x1;\n");
}

void cuda_attention_write_place(kit_text *t, const cuda_attention_key *key)
{
    const uint32_t rows = cuda_attention_rows(key);
    write_matrix(t);
    kit_text_add(t, "mul.lo.u32 %%row, %%row, %u;\n", rows);
    if (key->causal) { /* the columns of the last row, and one where there is none */
        kit_text_add(t,
                     "add.u32 %%count, %%row, %u;\nadd.u32 %%count, %%count, %%shift;\n"
                     "max.s32 %%count, %%count, 1;\nmin.s32 %%count, %%count, %%n;\n",
                     rows);
    } else {
        kit_text_add(t, "mov.u32 %%count, %%n;\n");
    }
    kit_text_add(t,
                 "add.u32 %%count, %%count, %u;\ndiv.u32 %%count, %%count, %u;\n"
                 "mov.u32 %%begin, 0;\n",
                 key->keys - 1u, key->keys);
    if (key->split > 1) {
        kit_text_add(t,
                     "mul.lo.u32 %%begin, %%count, %%rank;\n"
                     "add.u32 %%count, %%begin, %%count;\n"
                     "div.u32 %%begin, %%begin, %u;\ndiv.u32 %%count, %%count, %u;\n"
                     "sub.u32 %%count, %%count, %%begin;\n",
                     key->split, key->split);
    }
}
