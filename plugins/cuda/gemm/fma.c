/* PTX of strict F32 products, see gemm/fma.h: segments, loads, and the loop of multiply-adds. What
 * follows it is gemm/end/fma.c. */
#include "gemm/fma.h"

#include "gemm/end/fma.h"
#include "gemm/producer/fma.h"
#include "gemm/tile/module.h"
#include "gemm/tile/wait.h"
#include "lower/lower.h"

#include <stddef.h>
#include <stdio.h>

/* Labels beyond those of the stages that are loaded before the loop. */
enum { FIRST_SEGMENT = 90, LOOP_SEGMENT, FIRST_OWN_SEGMENT, OWN_SEGMENT };

uint32_t cuda_fma_shared_bytes(const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    return tile->stages * cuda_fma_stage_bytes(key) + cuda_fma_sums_bytes(tile);
}

bool cuda_fma_is_supported(const cuda_gemm_key *key)
{
    return key->tile >= 1 && key->tile <= CUDA_FMA_TILES && key->type == HAL_TYPE_F32 &&
           key->type_c == HAL_TYPE_F32 && cuda_fma_end_is_supported(key);
}

/* The next segment: %tile, its first stage %first and the number of its stages %count. `name`: of
 * the registers %NAME_round and %NAME_stage; without a segment goes to `done`. */
static void write_next_segment(kit_text *t, const char *name, uint32_t number, const char *done)
{
    kit_text_add(t,
                 "setp.ge.u32 %%p, %%%s_round, %%rounds;\n@%%p bra SHARE%u;\n"
                 "mad.lo.u32 %%tile, %%%s_round, %%groups, %%group;\nmov.u32 %%first, 0;\n"
                 "mov.u32 %%count, %%steps;\nadd.u32 %%%s_round, %%%s_round, 1;\n"
                 "bra SEGMENT%u;\nSHARE%u:\n",
                 name, number, name, name, name, number, number);
    kit_text_add(t,
                 "setp.ge.u32 %%p, %%%s_stage, %%share_end;\n@%%p bra %s;\n"
                 "div.u32 %%tile, %%%s_stage, %%steps;\nmul.lo.u32 %%x0, %%tile, %%steps;\n"
                 "sub.u32 %%first, %%%s_stage, %%x0;\n"
                 "mad.lo.u32 %%tile, %%rounds, %%groups, %%tile;\n"
                 "sub.u32 %%count, %%steps, %%first;\nsub.u32 %%x0, %%share_end, %%%s_stage;\n"
                 "min.u32 %%count, %%count, %%x0;\nadd.u32 %%%s_stage, %%%s_stage, %%count;\n"
                 "SEGMENT%u:\n",
                 name, done, name, name, name, name, name, number);
}

/* Begins to load the next segment. Behind the last one its last stage is loaded again and again,
 * which nobody reads, so that the loop has no conditions. `number` makes labels. */
static void write_load_segment(kit_text *t, const cuda_gemm_key *key, uint32_t number)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    char none[16];
    snprintf(none, sizeof none, "NONE%u", number);
    write_next_segment(t, "load", number, none);
    cuda_fma_write_place(t, tile);
    kit_text_add(t, "mul.lo.u32 %%load_k, %%first, %u;\nmov.u32 %%load_left, %%count;\n",
                 tile->depth);
    cuda_fma_load_place(t, &a);
    cuda_fma_load_place(t, &b);
    kit_text_add(t, "bra LOADS%u;\nNONE%u:\nmov.u32 %%load_left, 0x7fffffff;\n", number, number);
    cuda_fma_load_stay(t, &a);
    cuda_fma_load_stay(t, &b);
    kit_text_add(t, "LOADS%u:\n", number);
}

/* Fills the ring except for one stage. */
static void write_first_loads(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    kit_text_add(t, "setp.ge.u32 %%p, %%own_stage, %%share_end;\n"
                    "setp.eq.and.u32 %%p, %%rounds, 0, %%p;\n@%%p bra DONE;\n");
    write_load_segment(t, key, FIRST_SEGMENT);
    for (uint32_t i = 0; i + 1 < tile->stages; i++) {
        kit_text_add(t, "mov.u32 %%stage, %u;\n", i * cuda_fma_stage_bytes(key));
        cuda_fma_load(t, key, &a);
        cuda_fma_load(t, key, &b);
        kit_text_add(t,
                     "cp.async.commit_group;\nadd.u32 %%load_k, %%load_k, %u;\n"
                     "sub.u32 %%load_left, %%load_left, 1;\nsetp.ne.u32 %%p, %%load_left, 0;\n"
                     "@%%p bra FILLED%u;\n",
                     tile->depth, i);
        write_load_segment(t, key, i);
        kit_text_add(t, "FILLED%u:\n", i);
    }
    kit_text_add(t, "mov.u32 %%stage, %u;\nmov.u32 %%slot, 0;\n",
                 (tile->stages - 1) * cuda_fma_stage_bytes(key));
}

/* Reads the rows and columns of a step of k into one of two sets of registers. */
static void write_lines(kit_text *t, const cuda_gemm_key *key, uint32_t step)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    for (uint32_t side = 0; side < 2; side++) {
        const cuda_fma_operand o = cuda_fma_operand_of(key, side == 1);
        const uint32_t thread = side == 0 ? tile->thread_m : tile->thread_n,
                       lanes = side == 0 ? tile->lanes_m : tile->lanes_n;
        const uint32_t within = step % (tile->depth / tile->slices), set = step % 2;
        for (uint32_t i = 0; i < thread; i += 4) {
            const uint32_t r = set * thread + i;
            kit_text_add(t, "ld.shared.v4.f32 {%%%c%u, %%%c%u, %%%c%u, %%%c%u}, [%%%c_lines+%u];\n",
                         o.name, r, o.name, r + 1, o.name, r + 2, o.name, r + 3, o.name,
                         4 * (within * o.pitch + i * lanes));
        }
    }
}

/* Waits for the stage that is read next: the one at %slot. */
static void write_open_stage(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "cp.async.wait_group %u;\nbar.sync 0;\n"
                 "add.u32 %%a_lines, %%slot, %%a_own;\nadd.u32 %%b_lines, %%slot, %%b_own;\n",
                 cuda_fma_tile_of(key)->stages - 2u);
}

/* The next stage of the ring. */
static void write_next_stage(kit_text *t, const cuda_gemm_key *key, const char *stage)
{
    kit_text_add(t,
                 "add.u32 %%%s, %%%s, %u;\nsetp.eq.u32 %%p, %%%s, %u;\n"
                 "selp.u32 %%%s, 0, %%%s, %%p;\n",
                 stage, stage, cuda_fma_stage_bytes(key), stage,
                 cuda_fma_tile_of(key)->stages * cuda_fma_stage_bytes(key), stage, stage);
}

/* A step of k, along the shorter side in alternating directions, so that neighbours share operands
 * and the assembler finds registers in different banks. (An H100, 4096 and 1024 with the tile of
 * 128 x 64: 52.2 and 45.2 TFLOP/s; along the longer side 48.6 and 41.9.) */
static void write_step(kit_text *t, const cuda_fma_tile *tile, uint32_t step)
{
    const uint32_t set = step % 2;
    const bool down = tile->thread_m <= tile->thread_n;
    const uint32_t inner = down ? tile->thread_m : tile->thread_n,
                   outer = down ? tile->thread_n : tile->thread_m;
    for (uint32_t i = 0; i < outer; i++) {
        for (uint32_t j = 0; j < inner; j++) {
            const uint32_t near = i % 2 ? inner - 1 - j : j;
            const uint32_t row = down ? near : i, column = down ? i : near;
            const uint32_t sum = row * tile->thread_n + column;
            kit_text_add(t, "fma.rn.f32 %%f%u, %%a%u, %%b%u, %%f%u;\n", sum,
                         set * tile->thread_m + row, set * tile->thread_n + column, sum);
        }
    }
}

static void write_segment_start(kit_text *t, const cuda_fma_tile *tile, uint32_t number)
{
    write_next_segment(t, "own", number, "DONE");
    kit_text_add(t, "mov.u32 %%own_tile, %%tile;\nmov.u32 %%own_first, %%first;\n"
                    "mov.u32 %%own_count, %%count;\nmov.u32 %%own_left, %%count;\n");
    for (uint32_t i = 0; i < tile->thread_m * tile->thread_n; i++) {
        kit_text_add(t, "mov.f32 %%f%u, 0f00000000;\n", i);
    }
}

/* The stages until loads or sums come to the end of a segment are a loop without other branches,
 * among whose multiply-adds the assembler can move everything else. */
static void write_loop(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    const uint32_t steps = tile->depth / tile->slices;
    kit_text_add(t, "SPAN:\nmin.u32 %%span, %%load_left, %%own_left;\n"
                    "mov.u32 %%span_left, %%span;\nSTAGE:\n");
    for (uint32_t step = 0; step < steps; step++) {
        if (step == 0) {
            cuda_fma_load(t, key, &a);
        }
        if (step == steps / 2) {
            cuda_fma_load(t, key, &b);
        }
        if (step + 1 == steps) {
            kit_text_add(t, "cp.async.commit_group;\nadd.u32 %%load_k, %%load_k, %u;\n",
                         tile->depth);
            write_next_stage(t, key, "stage");
            write_next_stage(t, key, "slot");
            write_open_stage(t, key);
        }
        write_lines(t, key, step + 1);
        write_step(t, tile, step);
    }
    kit_text_add(t, "sub.u32 %%span_left, %%span_left, 1;\nsetp.ne.u32 %%p, %%span_left, 0;\n"
                    "@%%p bra STAGE;\n"
                    "sub.u32 %%own_left, %%own_left, %%span;\n"
                    "sub.u32 %%load_left, %%load_left, %%span;\n"
                    "setp.ne.u32 %%p, %%load_left, 0;\n@%%p bra LOADED;\n");
    write_load_segment(t, key, LOOP_SEGMENT);
    kit_text_add(t, "LOADED:\nsetp.ne.u32 %%p, %%own_left, 0;\n@%%p bra SPAN;\n");
}

/* Where a work-item's rows and columns begin in the tile, and in the first stage. */
static void write_work_item(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    const uint32_t warps = tile->warps_m * tile->warps_n, steps = tile->depth / tile->slices;
    kit_text_add(t,
                 "shr.u32 %%warp, %%thread, 5;\nand.b32 %%lane, %%thread, 31;\n"
                 "shfl.sync.idx.b32 %%warp, %%warp, 0, 31, -1;\n"
                 "div.u32 %%slice, %%warp, %u;\nrem.u32 %%warp, %%warp, %u;\n"
                 "div.u32 %%x0, %%warp, %u;\nrem.u32 %%x1, %%warp, %u;\n",
                 warps, warps, (uint32_t)tile->warps_n, (uint32_t)tile->warps_n);
    kit_text_add(
        t,
        "and.b32 %%x2, %%lane, %u;\nshr.u32 %%x3, %%lane, %u;\n"
        "shl.b32 %%x2, %%x2, 2;\nshl.b32 %%x3, %%x3, 2;\n"
        "mad.lo.u32 %%item_row, %%x0, %u, %%x3;\nmad.lo.u32 %%item_column, %%x1, %u, %%x2;\n",
        tile->lanes_n - 1u, (uint32_t)__builtin_ctz(tile->lanes_n),
        (uint32_t)tile->lanes_m * tile->thread_m, (uint32_t)tile->lanes_n * tile->thread_n);
    kit_text_add(t,
                 "mad.lo.u32 %%a_own, %%item_row, 4, %%base;\n"
                 "mad.lo.u32 %%a_own, %%slice, %u, %%a_own;\n"
                 "mad.lo.u32 %%b_own, %%item_column, 4, %%base;\n"
                 "mad.lo.u32 %%b_own, %%slice, %u, %%b_own;\nadd.u32 %%b_own, %%b_own, %u;\n",
                 steps * a.pitch * 4, steps * b.pitch * 4, tile->depth * a.pitch * 4);
}

/* Nothing of global memory is read before the kernels before this one have ended. */
static void write_start(kit_text *t, const cuda_gemm_key *key)
{
    static const struct {
        const char *name;
        size_t offset;
    } words[] = {{"m", offsetof(cuda_gemm_block, m)},
                 {"n", offsetof(cuda_gemm_block, n)},
                 {"k", offsetof(cuda_gemm_block, fma.k)},
                 {"steps", offsetof(cuda_gemm_block, steps)},
                 {"tiles_m", offsetof(cuda_gemm_block, tiles_m)},
                 {"tiles_n", offsetof(cuda_gemm_block, tiles_n)},
                 {"raster", offsetof(cuda_gemm_block, raster)},
                 {"rounds", offsetof(cuda_gemm_block, fma.rounds)},
                 {"share", offsetof(cuda_gemm_block, fma.share)},
                 {"longer", offsetof(cuda_gemm_block, fma.longer)}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        kit_text_add(t, "ld.param.u32 %%%s, [block+%zu];\n", words[i].name, words[i].offset);
    }
    /* Shares of k go up with %group and wait for those after them: the last group in the grid has
     * the first share. */
    kit_text_add(t,
                 "mov.u32 %%thread, %%tid.x;\nmov.u32 %%base, shared;\n"
                 "mov.u32 %%groups, %%nctaid.x;\nmov.u32 %%x0, %%ctaid.x;\n"
                 "sub.u32 %%group, %%groups, %%x0;\nsub.u32 %%group, %%group, 1;\n"
                 "mul.lo.u32 %%own_stage, %%group, %%share;\nmin.u32 %%x0, %%group, %%longer;\n"
                 "add.u32 %%own_stage, %%own_stage, %%x0;\nmov.u32 %%load_stage, %%own_stage;\n"
                 "add.u32 %%share_end, %%own_stage, %%share;\n"
                 "setp.lt.u32 %%p, %%group, %%longer;\n@%%p add.u32 %%share_end, %%share_end, 1;\n"
                 "mov.u32 %%own_round, 0;\nmov.u32 %%load_round, 0;\nmov.u32 %%load_left, 0;\n");
    write_work_item(t, key);
    const cuda_fma_operand a = cuda_fma_operand_of(key, false), b = cuda_fma_operand_of(key, true);
    cuda_fma_load_begin(t, &a, 0);
    cuda_fma_load_begin(t, &b, a.depth * a.pitch * 4);
    kit_text_add(t, "griddepcontrol.wait;\n");
}

static void write_body(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    write_start(t, key);
    cuda_fma_end_begin(l);
    write_first_loads(t, key);
    write_open_stage(t, key);
    write_lines(t, key, 0);
    write_segment_start(t, tile, FIRST_OWN_SEGMENT);
    write_loop(t, key);
    cuda_fma_end(l, key);
    kit_text_add(t, "NEXT_SEGMENT:\n");
    write_segment_start(t, tile, OWN_SEGMENT);
    kit_text_add(t, "bra SPAN;\nDONE:\nret;\n}\n");
}

static void write_header(const cuda_lowering *l, const cuda_gemm_key *key, kit_text *text)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    kit_text_add(text, ".version 8.0\n.target sm_90\n.address_size 64\n");
    cuda_gemm_write_wait_header(text, key->wait_seconds);
    kit_text_add(text,
                 ".extern .shared .align 16 .b8 shared[];\n"
                 ".visible .entry hal_kernel(.param .align 64 .b8 block[%zu])\n"
                 ".reqntid %u, 1, 1\n.minnctapersm %u\n{\n",
                 offsetof(cuda_gemm_block, inputs) + key->input_count * sizeof(cuda_gemm_input),
                 (uint32_t)CUDA_FMA_THREADS, (uint32_t)tile->groups);
    kit_text_add(text,
                 ".reg .pred %%p, %%done;\n"
                 ".reg .b32 %%thread, %%warp, %%lane, %%slice, %%base, %%group, %%groups;\n"
                 ".reg .b32 %%m, %%n, %%k, %%steps, %%tiles_m, %%tiles_n, %%raster;\n"
                 ".reg .b32 %%rounds, %%share, %%longer, %%share_end;\n"
                 ".reg .b32 %%tile, %%first, %%count, %%row, %%column, %%inner_row, "
                 "%%inner_column, %%batch;\n"
                 ".reg .b32 %%load_round, %%load_stage, %%load_left, %%load_k, "
                 "%%stage, %%bytes, %%span, %%span_left;\n"
                 ".reg .b32 %%own_round, %%own_stage, %%own_left, %%own_tile, %%own_first, "
                 "%%own_count, %%slot;\n"
                 ".reg .b32 %%item_row, %%item_column, %%a_own, %%b_own, %%a_lines, %%b_lines;\n"
                 ".reg .b32 %%x0, %%x1, %%x2, %%x3;\n.reg .b64 %%e0, %%e1;\n"
                 ".reg .f32 %%a<%u>, %%b<%u>;\n",
                 2u * tile->thread_m, 2u * tile->thread_n);
    cuda_write_registers(l, text);
}

hal_status cuda_fma_write(const cuda_gemm_key *key, kit_text *text)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const cuda_gemm_writers writers = {write_body, write_header, tile->thread_m * tile->thread_n};
    return cuda_gemm_module_write(key, &writers, text);
}
