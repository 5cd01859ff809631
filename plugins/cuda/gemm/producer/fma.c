/* PTX of the loads of strict F32 products, see gemm/producer/fma.h. */
#include "gemm/producer/fma.h"

#include <stddef.h>

enum {
    STEPS = 8 /* of k that the lanes of a warp have along k: a sector of 32 bytes in each line */
};

cuda_fma_operand cuda_fma_operand_of(const cuda_gemm_key *key, bool is_b)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    cuda_fma_operand o = {.name = is_b ? 'b' : 'a',
                          .along_k = is_b ? key->transpose_b : !key->transpose_a,
                          .lines = is_b ? tile->columns : tile->rows,
                          .depth = tile->depth,
                          .across = 1};
    o.width = o.along_k ? 1 : is_b ? key->width_b : key->width_a;
    o.pitch = o.lines + (o.along_k ? 4 : 0); /* neighbouring steps in different banks */
    if (o.along_k) {
        o.pass = CUDA_FMA_THREADS / STEPS;
        o.passes = o.lines / o.pass;
        o.jump = STEPS;
        o.across = o.depth / STEPS;
    } else {
        o.pass = CUDA_FMA_THREADS / (o.lines / o.width);
        o.passes = o.depth / o.pass;
    }
    return o;
}

uint32_t cuda_fma_stage_bytes(const cuda_gemm_key *key)
{
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    return a.depth * (a.pitch + b.pitch) * 4;
}

static uint32_t logarithm(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* %a_line and %a_step: of the work-item's first access. */
static void write_first_access(kit_text *t, const cuda_fma_operand *o)
{
    const char n = o->name;
    if (o->along_k) {
        kit_text_add(t, "and.b32 %%%c_step, %%thread, %u;\nshr.u32 %%%c_line, %%thread, %u;\n", n,
                     STEPS - 1, n, logarithm(STEPS));
    } else {
        const uint32_t threads = o->lines / o->width;
        kit_text_add(t,
                     "and.b32 %%%c_line, %%thread, %u;\nshr.u32 %%%c_step, %%thread, %u;\n"
                     "mul.lo.u32 %%%c_line, %%%c_line, %u;\n",
                     n, threads - 1, n, logarithm(threads), n, n, o->width);
    }
}

void cuda_fma_load_begin(kit_text *t, const cuda_fma_operand *o, uint32_t offset)
{
    const char n = o->name;
    const bool is_a = n == 'a';
    kit_text_add(t,
                 ".reg .b32 %%%c_line, %%%c_step, %%%c_spot, %%%c_to, %%ld%c;\n"
                 ".reg .b64 %%%c_from, %%%c_at, %%%c_pass, %%%c_next, %%%c_base, %%stride_%c;\n",
                 n, n, n, n, n, n, n, n, n, n, n);
    kit_text_add(
        t, "ld.param.u32 %%ld%c, [block+%zu];\nld.param.u64 %%stride_%c, [block+%zu];\n", n,
        is_a ? offsetof(cuda_gemm_block, fma.lda) : offsetof(cuda_gemm_block, fma.ldb), n,
        is_a ? offsetof(cuda_gemm_block, fma.stride_a) : offsetof(cuda_gemm_block, fma.stride_b));
    kit_text_add(
        t, "ld.param.u64 %%%c_base, [block+%zu];\ncvta.to.global.u64 %%%c_base, %%%c_base;\n", n,
        is_a ? offsetof(cuda_gemm_block, fma.a) : offsetof(cuda_gemm_block, fma.b), n, n);
    write_first_access(t, o);
    kit_text_add(t,
                 "mad.lo.u32 %%%c_spot, %%%c_step, %u, %%%c_line;\n"
                 "mad.lo.u32 %%%c_spot, %%%c_spot, 4, %%base;\nadd.u32 %%%c_spot, %%%c_spot, %u;\n"
                 "mul.wide.u32 %%%c_pass, %%ld%c, %u;\n",
                 n, n, o->pitch, n, n, n, n, n, offset, n, n, o->pass * 4);
    if (o->along_k) {
        kit_text_add(t, "mov.u64 %%%c_next, %u;\n", n, o->depth * 4);
    } else {
        kit_text_add(t, "mul.wide.u32 %%%c_next, %%ld%c, %u;\n", n, n, o->depth * 4);
    }
}

void cuda_fma_load_place(kit_text *t, const cuda_fma_operand *o)
{
    const char n = o->name;
    kit_text_add(t,
                 "add.u32 %%x0, %%%s, %%%c_line;\nadd.u32 %%x1, %%load_k, %%%c_step;\n"
                 "mul.wide.u32 %%e0, %%%s, %%ld%c;\ncvt.u64.u32 %%e1, %%%s;\n"
                 "add.u64 %%e0, %%e0, %%e1;\ncvt.u64.u32 %%e1, %%batch;\n"
                 "mad.lo.u64 %%e0, %%e1, %%stride_%c, %%e0;\nshl.b64 %%e0, %%e0, 2;\n"
                 "add.u64 %%%c_from, %%%c_base, %%e0;\n",
                 n == 'a' ? "inner_row" : "inner_column", n, n, o->along_k ? "x0" : "x1", n,
                 o->along_k ? "x1" : "x0", n, n, n);
}

/* Access i; %p is whether it is within a ragged k. */
static void write_access(kit_text *t, const cuda_gemm_key *key, const cuda_fma_operand *o,
                         uint32_t i)
{
    const char n = o->name;
    const uint32_t pass = i / o->across, jump = i % o->across * o->jump, bytes = 4 * o->width;
    const uint32_t to = o->along_k ? jump * o->pitch + pass * o->pass : pass * o->pass * o->pitch;
    if (key->ragged) {
        kit_text_add(t, "selp.u32 %%bytes, %u, 0, %%p;\n", bytes);
    }
    kit_text_add(t, "cp.async.%s.shared.global [%%%c_to+%u], [%%%c_at+%u], %u%s;\n",
                 bytes == 16 ? "cg" : "ca", n, 4 * to, n, 4 * jump, bytes,
                 key->ragged ? ", %bytes" : "");
}

void cuda_fma_load(kit_text *t, const cuda_gemm_key *key, const cuda_fma_operand *o)
{
    const char n = o->name;
    kit_text_add(t, "add.u32 %%%c_to, %%%c_spot, %%stage;\nmov.u64 %%%c_at, %%%c_from;\n", n, n, n,
                 n);
    if (key->ragged) { /* steps from the work-item's first one to the end of k */
        kit_text_add(t, "sub.u32 %%x0, %%k, %%load_k;\nsub.u32 %%x0, %%x0, %%%c_step;\n", n);
    }
    for (uint32_t i = 0; i < o->passes * o->across; i++) {
        const uint32_t pass = i / o->across;
        if (pass > 0 && i % o->across == 0) {
            kit_text_add(t, "add.u64 %%%c_at, %%%c_at, %%%c_pass;\n", n, n, n);
        }
        if (key->ragged) {
            kit_text_add(t, "setp.gt.s32 %%p, %%x0, %u;\n",
                         o->along_k ? i % o->across * o->jump : pass * o->pass);
        }
        write_access(t, key, o, i);
    }
    kit_text_add(t, "add.u64 %%%c_from, %%%c_from, %%%c_next;\n", n, n, n);
}

void cuda_fma_load_stay(kit_text *t, const cuda_fma_operand *o)
{
    const char n = o->name;
    kit_text_add(t, "sub.u64 %%%c_from, %%%c_from, %%%c_next;\nmov.u64 %%%c_next, 0;\n", n, n, n,
                 n);
}
