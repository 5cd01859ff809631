/* PTX of the softmax of a tile in registers: the greatest score of a row so far, weights relative
 * to it, and their sum (M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax",
 * 2018). Scores are scaled by log2(e), weights are powers of two. A row without any column so far
 * has -infinity as its greatest score, and its weights are relative to 0. */
#include "attention/parts.h"

#define MINUS_INFINITY "0fFF800000"

/* %least: columns that all rows of the warpgroup have. %limit0, %limit1: columns of the two rows of
 * a work-item, less its first column of a tile. */
void cuda_attention_softmax_begin(kit_text *t)
{
    kit_text_add(t, ".reg .f32 %%top<2>, %%sum<2>, %%factor<2>, %%base_of<2>, %%a<4>, %%f0;\n"
                    ".reg .b32 %%least, %%limit<2>, %%until<2>;\n"
                    "mov.b32 %%f0, 0;\n");
}

/* Takes the scores of columns that a row does not have to -infinity. */
static void write_mask(kit_text *t, const cuda_attention_key *key, const char *name)
{
    kit_text_add(t,
                 "add.u32 %%x0, %%first_key, %u;\nsetp.le.s32 %%p, %%x0, %%least;\n"
                 "@%%p bra.uni UNMASKED_%s;\n"
                 "sub.u32 %%until0, %%limit0, %%first_key;\n"
                 "sub.u32 %%until1, %%limit1, %%first_key;\n",
                 key->keys, name);
    for (uint32_t i = 0; i < key->keys / 2u; i++) {
        kit_text_add(t,
                     "setp.gt.s32 %%p, %%until%u, %u;\n"
                     "selp.f32 %%s%u, %%s%u, " MINUS_INFINITY ", %%p;\n",
                     i % 4 / 2, i / 4 * 8 + i % 2, i, i);
    }
    kit_text_add(t, "UNMASKED_%s:\n", name);
}

/* Of row r: %a(r) is the greatest score of the tile, of all lanes of the row. */
static void write_greatest(kit_text *t, const cuda_attention_key *key)
{
    for (uint32_t i = 0; i < key->keys / 2u; i++) { /* two chains a row */
        const uint32_t chain = i % 4;
        if (i < 4) {
            kit_text_add(t, "mov.f32 %%a%u, %%s%u;\n", chain, i);
        } else {
            kit_text_add(t, "max.f32 %%a%u, %%a%u, %%s%u;\n", chain, chain, i);
        }
    }
    kit_text_add(t, "max.f32 %%a0, %%a0, %%a1;\nmax.f32 %%a1, %%a2, %%a3;\n");
    for (uint32_t distance = 1; distance <= 2; distance *= 2) {
        for (uint32_t r = 0; r < 2; r++) {
            kit_text_add(t,
                         "shfl.sync.bfly.b32 %%a%u, %%a%u, %u, 0x1f, 0xffffffff;\n"
                         "max.f32 %%a%u, %%a%u, %%a%u;\n",
                         2 + r, r, distance, r, r, 2 + r);
        }
    }
}

/* What weights are relative to, and the factor of the sums of the tiles before. */
static void write_factors(kit_text *t)
{
    for (uint32_t r = 0; r < 2; r++) {
        kit_text_add(t,
                     "mul.rn.f32 %%a%u, %%a%u, %%scale;\nmax.f32 %%a%u, %%a%u, %%top%u;\n"
                     "setp.neu.f32 %%p, %%a%u, " MINUS_INFINITY ";\n"
                     "selp.f32 %%base_of%u, %%a%u, %%f0, %%p;\n"
                     "sub.rn.f32 %%factor%u, %%top%u, %%base_of%u;\n"
                     "ex2.approx.ftz.f32 %%factor%u, %%factor%u;\n"
                     "mov.f32 %%top%u, %%a%u;\nneg.f32 %%base_of%u, %%base_of%u;\n"
                     "mul.rn.f32 %%sum%u, %%sum%u, %%factor%u;\n",
                     r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r);
    }
}

/* Turns %s into weights and adds them to the sums. */
void cuda_attention_softmax_tile(kit_text *t, const cuda_attention_key *key, const char *name)
{
    write_mask(t, key, name);
    write_greatest(t, key);
    write_factors(t);
    for (uint32_t i = 0; i < key->keys / 2u; i++) {
        kit_text_add(t,
                     "fma.rn.f32 %%s%u, %%s%u, %%scale, %%base_of%u;\n"
                     "ex2.approx.ftz.f32 %%s%u, %%s%u;\n",
                     i, i, i % 4 / 2, i, i);
        if (i < 4) {
            kit_text_add(t, "mov.f32 %%a%u, %%s%u;\n", i, i);
        } else {
            kit_text_add(t, "add.rn.f32 %%a%u, %%a%u, %%s%u;\n", i % 4, i % 4, i);
        }
    }
    for (uint32_t r = 0; r < 2; r++) {
        kit_text_add(t, "add.rn.f32 %%a%u, %%a%u, %%a%u;\nadd.rn.f32 %%sum%u, %%sum%u, %%a%u;\n",
                     2 * r, 2 * r, 2 * r + 1, r, r, 2 * r);
    }
}

/* A wait for what is over (the phase before a barrier's first), whose address depends on the sums,
 * which are not negative: without it the assembler moves the wait for the product with v, which
 * follows, to before the powers, which are to be computed meanwhile. */
void cuda_attention_softmax_hold(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, "add.rn.f32 %%a0, %%sum0, %%sum1;\nsetp.lt.f32 %%p, %%a0, %%f0;\n"
                    "selp.u32 %%x0, 8, 0, %%p;\nadd.u32 %%x0, %%barriers, %%x0;\n");
    cuda_attention_write_wait(t, key, "HOLD", "%x0", CUDA_ATTENTION_HOLD, "1");
}

/* The weights as the first operand of the product with v: the registers of two columns, in order,
 * are those of its fragment. */
void cuda_attention_write_weights(kit_text *t, const cuda_attention_key *key)
{
    for (uint32_t i = 0; i < key->keys / 4u; i++) {
        kit_text_add(t, "cvt.rn.%s.f32 %%p%u, %%s%u, %%s%u;\n",
                     key->type == HAL_TYPE_F16 ? "f16x2" : "bf16x2", i, 2 * i + 1, 2 * i);
    }
}

/* Where the greatest score of no row of the warp has changed, factors are 1. */
void cuda_attention_write_rescale(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, "setp.neu.f32 %%p, %%factor0, 0f3F800000;\n"
                    "setp.neu.or.f32 %%p, %%factor1, 0f3F800000, %%p;\n"
                    "vote.sync.any.pred %%p, %%p, 0xffffffff;\n@!%%p bra.uni UNCHANGED;\n");
    for (uint32_t i = 0; i < key->e / 2u; i++) {
        kit_text_add(t, "mul.rn.f32 %%o%u, %%o%u, %%factor%u;\n", i, i, i % 4 / 2);
    }
    kit_text_add(t, "UNCHANGED:\n");
}
