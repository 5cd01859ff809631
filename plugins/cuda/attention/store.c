/* PTX that divides the sums of a tile by the sums of its weights and stores them. */
#include "attention/parts.h"

#include <stddef.h>

/* Every work-item has two neighbours of each eight columns. Four of them exchange theirs, so that
 * each has all of one eight: as a transposition of 4 x 4 words in two steps. */
enum { WORDS = 4, COLUMNS = 2 * WORDS };

static void write_exchange(kit_text *t, uint32_t low, uint32_t high, uint32_t distance)
{
    kit_text_add(t,
                 "selp.b32 %%x0, %%w%u, %%w%u, %%odd%u;\n"
                 "shfl.sync.bfly.b32 %%x0, %%x0, %u, 0x1f, 0xffffffff;\n"
                 "selp.b32 %%w%u, %%x0, %%w%u, %%odd%u;\n"
                 "selp.b32 %%w%u, %%w%u, %%x0, %%odd%u;\n",
                 low, high, distance, distance, low, low, distance, high, high, distance);
}

/* Two columns of row `r` as a word. */
static void write_word(kit_text *t, const cuda_attention_key *key, uint32_t word, uint32_t eight,
                       uint32_t r)
{
    const uint32_t first = 4 * eight + 2 * r;
    if (8 * eight >= key->e) {
        kit_text_add(t, "mov.b32 %%w%u, 0;\n", word);
        return;
    }
    kit_text_add(t,
                 "mul.rn.f32 %%o%u, %%o%u, %%a%u;\nmul.rn.f32 %%o%u, %%o%u, %%a%u;\n"
                 "cvt.rn.%s.f32 %%w%u, %%o%u, %%o%u;\n",
                 first, first, r, first + 1, first + 1, r,
                 key->type == HAL_TYPE_F16 ? "f16x2" : "bf16x2", word, first + 1, first);
}

/* Row `r` at %at, where predicate %has is true. */
static void write_row(kit_text *t, const cuda_attention_key *key, uint32_t r)
{
    for (uint32_t i = 0; i < key->e / 8u; i += WORDS) {
        for (uint32_t word = 0; word < WORDS; word++) {
            write_word(t, key, word, i + word, r);
        }
        for (uint32_t distance = 1; distance <= 2; distance *= 2) {
            write_exchange(t, 0, distance == 1 ? 1 : 2, distance);
            write_exchange(t, distance == 1 ? 2 : 1, 3, distance);
        }
        kit_text_add(t,
                     "setp.gt.s32 %%p, %%width, %u;\nand.pred %%p, %%p, %%has;\n"
                     "@%%p st.global.v4.b32 [%%at+%u], {%%w0,%%w1,%%w2,%%w3};\n",
                     8 * i, 16 * i);
    }
}

void cuda_attention_write_row_address(kit_text *t)
{
    static const struct {
        const char *index;
        size_t stride;
    } axes[] = {{"%outer", offsetof(cuda_attention_block, y_outer)},
                {"%batch", offsetof(cuda_attention_block, y_batch)},
                {"%own_row", offsetof(cuda_attention_block, y_row)}};
    kit_text_add(t, "ld.param.u64 %%at, [block+%zu];\n", offsetof(cuda_attention_block, y));
    for (uint32_t i = 0; i < 3; i++) {
        kit_text_add(t,
                     "ld.param.u64 %%e0, [block+%zu];\ncvt.u64.u32 %%e1, %s;\n"
                     "mad.lo.s64 %%at, %%e0, %%e1, %%at;\n",
                     axes[i].stride, axes[i].index);
    }
}

/* %at: the work-item's first column in its row; %width: columns of y from there on. */
static void write_address(kit_text *t)
{
    cuda_attention_write_row_address(t);
    kit_text_add(t,
                 "and.b32 %%x0, %%lane, 3;\nmul.lo.u32 %%x0, %%x0, %u;\n"
                 "ld.param.u32 %%width, [block+%zu];\nsub.u32 %%width, %%width, %%x0;\n"
                 "shl.b32 %%x0, %%x0, 1;\ncvt.u64.u32 %%e1, %%x0;\n"
                 "add.u64 %%at, %%at, %%e1;\n",
                 COLUMNS, offsetof(cuda_attention_block, e));
}

void cuda_attention_write_totals(kit_text *t)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t r = i % 2, distance = i / 2 + 1;
        kit_text_add(t,
                     "shfl.sync.bfly.b32 %%a%u, %%sum%u, %u, 0x1f, 0xffffffff;\n"
                     "add.rn.f32 %%sum%u, %%sum%u, %%a%u;\n",
                     r, r, distance, r, r, r);
    }
}

void cuda_attention_write_store(kit_text *t, const cuda_attention_key *key)
{
    cuda_attention_write_totals(t);
    kit_text_add(t, "rcp.approx.ftz.f32 %%a0, %%sum0;\nrcp.approx.ftz.f32 %%a1, %%sum1;\n");
    kit_text_add(t, "{\n.reg .b32 %%w<4>, %%width;\n.reg .b64 %%at;\n\n"
                    ".reg .pred %%has, %%odd<3>;\n"
                    "and.b32 %%x0, %%lane, 1;\nsetp.ne.u32 %%odd1, %%x0, 0;\n"
                    "and.b32 %%x0, %%lane, 2;\nsetp.ne.u32 %%odd2, %%x0, 0;\n");
    write_address(t);
    for (uint32_t r = 0; r < 2; r++) {
        kit_text_add(t, "setp.lt.u32 %%has, %%own_row, %%m;\n");
        write_row(t, key, r);
        if (r == 0) {
            kit_text_add(t,
                         "add.u32 %%own_row, %%own_row, 8;\n"
                         "ld.param.u64 %%e0, [block+%zu];\nshl.b64 %%e0, %%e0, 3;\n"
                         "add.u64 %%at, %%at, %%e0;\n",
                         offsetof(cuda_attention_block, y_row));
        }
    }
    kit_text_add(t, "}\n");
}
