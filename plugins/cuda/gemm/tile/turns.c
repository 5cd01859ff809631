/* PTX of warpgroups that take turns, see gemm/tile/turns.h. */
#include "gemm/tile/turns.h"

#include "gemm/tile/ring.h"

enum { FIRST_TURN = 3 /* the epilogue has 1 and 2 */, WORKERS = 32 * CUDA_GEMM_MULTIPLIERS };

/* A is read from shared memory, so that its registers are free for a tile of 256 columns, and C
 * leaves through a tensor map: boxes that are stored by rows need two. Half of a tile of 64 rows is
 * no whole box along m. */
bool cuda_gemm_turns_are_supported(const cuda_gemm_key *key)
{
    return !key->staged && !key->by_rows && !key->direct && !key->flushes && key->split == 1 &&
           !(key->type == HAL_TYPE_F32 && key->transpose_a) &&
           !(cuda_gemm_has_bytes(key) && key->transpose_a) &&
           !(key->shared == CUDA_GEMM_SHARES_A && key->transpose_a);
}

/* Skips %count stages, those of a tile of the other warpgroup. */
static void write_skip(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t stages = cuda_gemm_stages(key);
    kit_text_add(t,
                 "add.u32 %%slot, %%slot, %%count;\ndiv.u32 %%x0, %%slot, %u;\n"
                 "mul.lo.u32 %%x1, %%x0, %u;\nsub.u32 %%slot, %%slot, %%x1;\n"
                 "and.b32 %%x0, %%x0, 1;\nxor.b32 %%parity, %%parity, %%x0;\n",
                 stages, stages);
}

void cuda_gemm_turns_begin(kit_text *t, const cuda_gemm_key *key)
{
    if (!key->alternates) {
        return;
    }
    kit_text_add(t,
                 ".reg .b32 %%turn, %%other_turn;\n"
                 "add.u32 %%turn, %%multiplier, %u;\nsub.u32 %%other_turn, %u, %%turn;\n"
                 "mad.lo.u32 %%tile, %%groups, %%multiplier, %%tile;\n"
                 "mul.lo.u32 %%count, %%steps, %%multiplier;\n",
                 FIRST_TURN, 2 * FIRST_TURN + 1);
    write_skip(t, key);
    kit_text_add(t,
                 "setp.eq.u32 %%p, %%multiplier, 0;\n@%%p bra BEGUN;\n"
                 "bar.arrive %%other_turn, %u;\nBEGUN:\n",
                 WORKERS);
}

void cuda_gemm_turns_wait(kit_text *t, const cuda_gemm_key *key)
{
    if (key->alternates) {
        kit_text_add(t, "bar.sync %%turn, %u;\n", WORKERS);
    }
}

/* Nobody waits for the turn after the last tile. */
void cuda_gemm_turns_pass(kit_text *t, const cuda_gemm_key *key)
{
    if (key->alternates) {
        kit_text_add(t,
                     "add.u32 %%x0, %%tile, %%groups;\nsetp.ge.u32 %%p, %%x0, %%tiles;\n"
                     "@%%p bra PASSED;\nbar.arrive %%other_turn, %u;\nPASSED:\n",
                     WORKERS);
    }
}

/* A loop that ends at once, as nobody arrives at this barrier, whose first phase is never over: the
 * assembler moves half of the epilogue before the release of the other group's stage otherwise. */
void cuda_gemm_turns_released(kit_text *t, const cuda_gemm_key *key)
{
    if (key->alternates && key->shared != CUDA_GEMM_SHARES_NONE) {
        kit_text_add(t, "add.u32 %%x0, %%barriers, %u;\n", cuda_gemm_partial_barrier(key));
        cuda_gemm_write_wait(t, key, "WAIT_RELEASED", "%x0", "1", false);
    }
}

void cuda_gemm_turns_next(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "add.u32 %%tile, %%tile, %%groups;\n");
    if (key->alternates) {
        kit_text_add(t, "add.u32 %%tile, %%tile, %%groups;\n");
        write_skip(t, key);
    }
}
