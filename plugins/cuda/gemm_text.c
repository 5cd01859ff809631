/* PTX of the persistent wgmma kernel, see gemm_text.h. The epilogue is written by gemm_epilogue.c.
 *
 * Stages: tile of A, then tile of B, both in the 128-byte swizzle. An operand that is contiguous
 * along k has rows of 128 bytes along k; one that is contiguous along m or n consists of boxes of
 * 64 columns, each CUDA_GEMM_DEPTH rows long. Barriers: `full` of a stage completes when its bytes
 * have arrived, `empty` when all eight multiplying warps have read it. */
#include "gemm_text.h"

#include "gemm_epilogue.h"
#include "lower_state.h"

#include <stddef.h>

enum {
    SHARED_MAX = 227 * 1024, /* bytes of one group */
    SHARED_ALIGNMENT = 1024, /* of the swizzle */
    MULTIPLIERS = 8,         /* warps */
    STEP_ELEMENTS = 16       /* of k in one wgmma */
};

/* Matrix descriptors: bits 16 to 29 the distance of boxes, 32 to 45 that of groups of eight rows,
 * both in units of 16 bytes; bit 62: the 128-byte swizzle. (PTX ISA, matrix descriptor format.) */
static const uint64_t DESCRIPTOR_K = UINT64_C(1) << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;
static const uint64_t DESCRIPTOR_MN = UINT64_C(512) << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;

static uint32_t tile_a_bytes(void)
{
    return CUDA_GEMM_ROWS * CUDA_GEMM_DEPTH * 2;
}

static uint32_t stage_bytes(const cuda_gemm_key *key)
{
    return tile_a_bytes() + key->columns * CUDA_GEMM_DEPTH * 2;
}

/* Two boxes of C for each of two warpgroups. */
static uint32_t store_bytes(void)
{
    return 4 * CUDA_GEMM_BOX * CUDA_GEMM_STORE_ROW;
}

uint32_t cuda_gemm_stages(const cuda_gemm_key *key)
{
    const uint32_t room = SHARED_MAX - SHARED_ALIGNMENT - store_bytes() - 256;
    const uint32_t stages = room / stage_bytes(key);
    return stages < 8 ? stages : 8;
}

uint32_t cuda_gemm_shared_bytes(const cuda_gemm_key *key)
{
    const uint32_t stages = cuda_gemm_stages(key);
    return SHARED_ALIGNMENT + stages * stage_bytes(key) + store_bytes() + 16 * stages;
}

bool cuda_gemm_is_supported(const cuda_gemm_key *key)
{
    const bool halves = key->type == HAL_TYPE_F16 || key->type == HAL_TYPE_BF16;
    const bool result = key->type_c == key->type || key->type_c == HAL_TYPE_F32;
    return halves && result && key->columns % 64 == 0 && key->columns > 0 &&
           key->columns <= (key->flushes ? 128 : CUDA_GEMM_MAX_COLUMNS) &&
           cuda_gemm_epilogue_is_supported(key);
}

static void write_wait(kit_text *t, const char *name, const char *barrier, const char *parity)
{
    kit_text_add(t,
                 "%s:\nmbarrier.try_wait.parity.shared::cta.b64 %%done, [%s], %s;\n"
                 "@!%%done bra %s;\n",
                 name, barrier, parity, name);
}

/* The next stage of the ring; the parity changes at its end. */
static void write_next_slot(kit_text *t, uint32_t stages)
{
    kit_text_add(t,
                 "add.u32 %%slot, %%slot, 1;\n"
                 "setp.eq.u32 %%last, %%slot, %u;\n"
                 "selp.u32 %%slot, 0, %%slot, %%last;\n"
                 "@%%last xor.b32 %%parity, %%parity, 1;\n",
                 stages);
}

/* Where tile `tile` lies: `row`, `column` of C, and `batch`. Tiles go down `raster` rows, then one
 * column on, so that tiles of one wave share rows of A and columns of B in the L2. */
static void write_tile_place(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "mul.lo.u32 %%x0, %%tiles_m, %%tiles_n;\n"
                 "div.u32 %%batch, %%tile, %%x0;\n"
                 "mul.lo.u32 %%x1, %%batch, %%x0;\n"
                 "sub.u32 %%x1, %%tile, %%x1;\n"
                 "mul.lo.u32 %%x0, %%raster, %%tiles_n;\n"
                 "div.u32 %%x2, %%x1, %%x0;\n"
                 "mul.lo.u32 %%x3, %%x2, %%x0;\n"
                 "sub.u32 %%x1, %%x1, %%x3;\n"
                 "mul.lo.u32 %%x2, %%x2, %%raster;\n"
                 "sub.u32 %%x3, %%tiles_m, %%x2;\n"
                 "min.u32 %%x3, %%x3, %%raster;\n"
                 "div.u32 %%x0, %%x1, %%x3;\n"
                 "mul.lo.u32 %%x3, %%x0, %%x3;\n"
                 "sub.u32 %%x1, %%x1, %%x3;\n"
                 "add.u32 %%x1, %%x1, %%x2;\n"
                 "mul.lo.u32 %%row, %%x1, %u;\n"
                 "mul.lo.u32 %%column, %%x0, %u;\n",
                 CUDA_GEMM_ROWS, key->columns);
}

static void write_copy(kit_text *t, uint32_t offset, uint32_t map, const char *inner,
                       const char *outer, const char *batch)
{
    kit_text_add(t,
                 "add.u32 %%x0, %%stage, %u;\n"
                 "add.u64 %%e0, %%maps, %u;\n"
                 "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%%x0], [%%e0, {%s, %s, %s}], [%%barrier];\n",
                 offset, map * CUDA_GEMM_MAP_BYTES, inner, outer, batch);
}

/* Copies the tile of an operand whose rows or columns begin at register `first`. */
static void write_operand_copy(kit_text *t, uint32_t map, bool along_k, uint32_t offset,
                               uint32_t length, const char *first, const char *batch)
{
    if (along_k) {
        write_copy(t, offset, map, "%depth", first, batch);
        return;
    }
    kit_text_add(t, "mov.u32 %%x1, %s;\n", first);
    for (uint32_t i = 0; i < length; i += CUDA_GEMM_BOX) {
        write_copy(t, offset + i * CUDA_GEMM_DEPTH * 2, map, "%x1", "%depth", batch);
        kit_text_add(t, "add.u32 %%x1, %%x1, %u;\n", CUDA_GEMM_BOX);
    }
}

static void write_producer(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t stages = cuda_gemm_stages(key);
    kit_text_add(t, "setmaxnreg.dec.sync.aligned.u32 40;\n"
                    "setp.ne.u32 %%p, %%thread, 0;\n"
                    "@%%p bra DONE;\n"
                    "mov.u32 %%slot, 0;\nmov.u32 %%parity, 1;\nmov.u32 %%tile, %%ctaid.x;\n"
                    "COPY_TILE:\n"
                    "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra DONE;\n");
    write_tile_place(t, key);
    kit_text_add(t, "mul.lo.u32 %%batch_a, %%batch, %%batched_a;\n"
                    "mul.lo.u32 %%batch_b, %%batch, %%batched_b;\n"
                    "mov.u32 %%step, 0;\nmov.u32 %%depth, 0;\n"
                    "COPY_STEP:\n"
                    "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%x0;\n");
    kit_text_add(t, "add.u32 %%x1, %%barrier, %u;\n", 8 * stages);
    write_wait(t, "WAIT_EMPTY", "%x1", "%parity");
    kit_text_add(t,
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%barrier], %u;\n"
                 "mad.lo.u32 %%stage, %%slot, %u, %%base;\n",
                 stage_bytes(key), stage_bytes(key));
    write_operand_copy(t, 0, !key->transpose_a, 0, CUDA_GEMM_ROWS, "%row", "%batch_a");
    write_operand_copy(t, 1, key->transpose_b, tile_a_bytes(), key->columns, "%column", "%batch_b");
    write_next_slot(t, stages);
    kit_text_add(t,
                 "add.u32 %%depth, %%depth, %u;\nadd.u32 %%step, %%step, 1;\n"
                 "setp.lt.u32 %%p, %%step, %%steps;\n@%%p bra COPY_STEP;\n"
                 "add.u32 %%tile, %%tile, %%groups;\nbra COPY_TILE;\n",
                 CUDA_GEMM_DEPTH);
}

static void write_multiply(kit_text *t, const cuda_gemm_key *key, uint32_t step)
{
    /* Sixteen elements of k are 32 bytes of a row, or sixteen rows of 128 bytes. */
    const uint32_t along_k = STEP_ELEMENTS * 2 / 16, across_k = STEP_ELEMENTS * 128 / 16;
    const char *type = key->type == HAL_TYPE_F16 ? "f16" : "bf16";
    const uint32_t first = key->flushes ? key->columns / 2 : 0;
    kit_text_add(t, "add.u64 %%e2, %%e0, %u;\nadd.u64 %%e3, %%e1, %u;\n",
                 step * (key->transpose_a ? across_k : along_k),
                 step * (key->transpose_b ? along_k : across_k));
    kit_text_add(t, "wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {", key->columns, type, type);
    for (uint32_t i = 0; i < key->columns / 2; i++) {
        kit_text_add(t, i == 0 ? "%%f%u" : ",%%f%u", first + i);
    }
    kit_text_add(t, "}, %%e2, %%e3, %s, 1, 1, %u, %u;\n", step == 0 ? "%adds" : "%true",
                 key->transpose_a, !key->transpose_b);
}

/* Tells the producer that this warp has read stage `previous`. */
static void write_release(kit_text *t, const cuda_gemm_key *key, const char *guard)
{
    kit_text_add(t,
                 "shl.b32 %%x0, %%previous, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n"
                 "@%s mbarrier.arrive.shared::cta.b64 _, [%%x0+%u];\n",
                 guard, 8 * cuda_gemm_stages(key));
}

/* Adds the sums of a stage to the sums of the tile, which begin as 0. The other warpgroup keeps the
 * units busy meanwhile. */
static void write_flush(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\nmov.u32 %%previous, %%slot;\n");
    write_release(t, key, "%leads");
    for (uint32_t i = 0; i < key->columns / 2; i++) {
        kit_text_add(t, "add.rn.f32 %%f%u, %%f%u, %%f%u;\n", i, i, key->columns / 2 + i);
    }
}

/* The sums of a tile. A stage is released when the wgmma after its own has been issued. */
static void write_sums(kit_text *t, const cuda_gemm_key *key)
{
    for (uint32_t i = 0; key->flushes && i < key->columns / 2; i++) {
        kit_text_add(t, "mov.f32 %%f%u, 0f00000000;\n", i);
    }
    kit_text_add(t, "mov.u32 %%step, 0;\nmov.u32 %%previous, 0;\n"
                    "MULTIPLY_STEP:\n"
                    "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n");
    write_wait(t, "WAIT_FULL", "%x0", "%parity");
    kit_text_add(t,
                 "mad.lo.u32 %%stage, %%slot, %u, %%base;\n"
                 "mad.lo.u32 %%x0, %%multiplier, %u, %%stage;\n"
                 "shr.u32 %%x0, %%x0, 4;\ncvt.u64.u32 %%e0, %%x0;\n"
                 "or.b64 %%e0, %%e0, %llu;\n"
                 "add.u32 %%x0, %%stage, %u;\n"
                 "shr.u32 %%x0, %%x0, 4;\ncvt.u64.u32 %%e1, %%x0;\n"
                 "or.b64 %%e1, %%e1, %llu;\n"
                 "setp.ne.u32 %%adds, %s, 0;\n"
                 "wgmma.fence.sync.aligned;\n",
                 stage_bytes(key), CUDA_GEMM_BOX * CUDA_GEMM_DEPTH * 2,
                 (unsigned long long)(key->transpose_a ? DESCRIPTOR_MN : DESCRIPTOR_K),
                 tile_a_bytes(),
                 (unsigned long long)(key->transpose_b ? DESCRIPTOR_K : DESCRIPTOR_MN),
                 key->flushes ? "0" : "%step");
    for (uint32_t i = 0; i < CUDA_GEMM_DEPTH / STEP_ELEMENTS; i++) {
        write_multiply(t, key, i);
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\n");
    if (key->flushes) {
        write_flush(t, key);
    } else {
        kit_text_add(t, "wgmma.wait_group.sync.aligned 1;\nand.pred %%p, %%adds, %%leads;\n");
        write_release(t, key, "%p");
        kit_text_add(t, "mov.u32 %%previous, %%slot;\n");
    }
    write_next_slot(t, cuda_gemm_stages(key));
    kit_text_add(t, "add.u32 %%step, %%step, 1;\n"
                    "setp.lt.u32 %%p, %%step, %%steps;\n@%%p bra MULTIPLY_STEP;\n");
    if (!key->flushes) {
        kit_text_add(t, "wgmma.wait_group.sync.aligned 0;\n");
        write_release(t, key, "%leads");
    }
}

static void write_consumer(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    kit_text_add(t, "MULTIPLY:\nsetmaxnreg.inc.sync.aligned.u32 232;\n"
                    "sub.u32 %%multiplier, %%warpgroup, 1;\n"
                    "setp.eq.u32 %%leads, %%lane, 0;\n"
                    "setp.eq.u32 %%true, 0, 0;\n"
                    "mov.u32 %%slot, 0;\nmov.u32 %%parity, 0;\nmov.u32 %%tile, %%ctaid.x;\n");
    cuda_gemm_epilogue_begin(l, key, cuda_gemm_stages(key) * stage_bytes(key));
    kit_text_add(t, "MULTIPLY_TILE:\n"
                    "setp.ge.u32 %%p, %%tile, %%tiles;\n@%%p bra MULTIPLIED;\n");
    write_tile_place(t, key);
    write_sums(t, key);
    cuda_gemm_epilogue_tile(l, key);
    kit_text_add(t, "add.u32 %%tile, %%tile, %%groups;\nbra MULTIPLY_TILE;\n"
                    "MULTIPLIED:\ncp.async.bulk.wait_group.read 0;\n"
                    "DONE:\nret;\n}\n");
}

/* The barriers are there before any warp goes on; nothing of global memory is read before the
 * kernels before this one have ended. */
static void write_start(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t stages = cuda_gemm_stages(key);
    kit_text_add(t,
                 "mov.u32 %%thread, %%tid.x;\nmov.u32 %%groups, %%nctaid.x;\n"
                 "shr.u32 %%warp, %%thread, 5;\nand.b32 %%lane, %%thread, 31;\n"
                 "shr.u32 %%warpgroup, %%thread, 7;\n"
                 "mov.u32 %%base, shared;\nadd.u32 %%base, %%base, %u;\n"
                 "and.b32 %%base, %%base, %u;\n"
                 "add.u32 %%barriers, %%base, %u;\n"
                 "setp.ne.u32 %%p, %%thread, 0;\n@%%p bra READY;\n",
                 SHARED_ALIGNMENT - 1, ~(uint32_t)(SHARED_ALIGNMENT - 1),
                 stages * stage_bytes(key) + store_bytes());
    for (uint32_t i = 0; i < stages; i++) {
        kit_text_add(t,
                     "mbarrier.init.shared::cta.b64 [%%barriers+%u], 1;\n"
                     "mbarrier.init.shared::cta.b64 [%%barriers+%u], %u;\n",
                     8 * i, 8 * (stages + i), MULTIPLIERS);
    }
    kit_text_add(t, "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
                    "READY:\nbar.sync 0;\ngriddepcontrol.wait;\n"
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
    kit_text_add(text,
                 ".version 8.0\n.target sm_90a\n.address_size 64\n"
                 ".extern .shared .align 1024 .b8 shared[];\n"
                 ".visible .entry hal_kernel(.param .align 64 .b8 block[%zu])\n"
                 ".reqntid %u, 1, 1\n.minnctapersm 1\n{\n"
                 ".reg .pred %%p, %%done, %%last, %%adds, %%leads, %%true;\n"
                 ".reg .b32 %%thread, %%groups, %%warp, %%lane, %%warpgroup, %%multiplier;\n"
                 ".reg .b32 %%base, %%barriers, %%barrier, %%stage, %%slot, %%parity, %%previous;\n"
                 ".reg .b32 %%m, %%n, %%steps, %%tiles_m, %%tiles_n, %%tiles, %%raster;\n"
                 ".reg .b32 %%batched_a, %%batched_b, %%batch_a, %%batch_b;\n"
                 ".reg .b32 %%tile, %%row, %%column, %%batch, %%step, %%depth;\n"
                 ".reg .b32 %%x0, %%x1, %%x2, %%x3;\n"
                 ".reg .b64 %%maps, %%e0, %%e1, %%e2, %%e3;\n",
                 offsetof(cuda_gemm_block, inputs) + key->input_count * sizeof(cuda_gemm_input),
                 CUDA_GEMM_THREADS);
    cuda_write_registers(l, text);
}

hal_status cuda_gemm_write(const cuda_gemm_key *key, kit_text *text)
{
    cuda_lowering l = {
        .kernel = key->epilogue, .quirks = cuda_quirks(90), .body = {.host = text->host}};
    void *scratch = NULL;
    hal_status status = key->epilogue != NULL ? cuda_lowering_init(&l, &scratch) : HAL_OK;
    if (status != HAL_OK) {
        return status;
    }
    /* The sums are %f0 and on; those of a stage follow. */
    l.used[CUDA_FLOAT] = key->flushes ? key->columns : key->columns / 2;
    write_start(&l.body, key);
    write_producer(&l.body, key);
    write_consumer(&l, key);
    status = l.status;
    if (status == HAL_OK) {
        write_header(&l, key, text);
        kit_text_append(text, l.body.data, l.body.length);
        if (text->failed || l.body.failed) {
            status = text->host->fail(HAL_ERROR_OUT_OF_MEMORY,
                                      "cuda: no host memory for the PTX of a matrix product");
        }
    }
    kit_text_release(&l.body);
    text->host->release(scratch);
    return status;
}
