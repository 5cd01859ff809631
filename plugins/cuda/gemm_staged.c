/* PTX of the staged epilogue, see gemm_staged.h. The tile of C lies by rows in shared memory, over
 * the stages of the ring. Each group of a cluster stores a slice of its rows, and sends the slices
 * of the others to them. The sums of the groups, which have a part of k each, are added in the
 * order of their ranks, so that the bits do not depend on time. */
#include "gemm_staged.h"

#include "gemm_element.h"
#include "gemm_ring.h"

enum {
    WORKERS = 32 * CUDA_GEMM_MULTIPLIERS,
    MAX_UNROLL = 4 /* pieces whose loads are in flight */
};

/* Pieces of one slice: neighbours of one row, of `width` elements. */
static uint32_t piece_count(const cuda_gemm_key *key)
{
    return cuda_gemm_slice_rows(key) * cuda_gemm_staged_columns(key) / key->width;
}

static uint32_t unroll(const cuda_gemm_key *key)
{
    uint32_t copies = 1;
    while (copies < MAX_UNROLL && 2 * copies * WORKERS <= piece_count(key)) {
        copies *= 2;
    }
    return copies;
}

bool cuda_gemm_staged_is_supported(const cuda_gemm_key *key)
{
    return (key->width == 1 || key->width == 4) && key->split >= 1 &&
           key->split <= CUDA_GEMM_MAX_SPLIT &&
           key->split * cuda_gemm_slice_bytes(key) <= cuda_gemm_store_offset(key) &&
           cuda_gemm_element_is_supported(key, unroll(key) * key->width);
}

/* Where the slice of each rank's sums is: the own one in the tile, the others in the order of their
 * ranks after the ring. */
static void write_slice_places(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t bytes = cuda_gemm_slice_bytes(key), others = cuda_gemm_store_offset(key);
    for (uint32_t i = 0; i < key->split; i++) {
        kit_text_add(t,
                     "mad.lo.u32 %%slice%u, %%rank, %u, %%base;\n"
                     "setp.eq.u32 %%p, %%rank, %u;\n@!%%p add.u32 %%slice%u, %%base, %u;\n"
                     "setp.lt.u32 %%p, %%rank, %u;\n@%%p sub.u32 %%slice%u, %%slice%u, %u;\n",
                     i, bytes, i, i, others + i * bytes, i, i, i, bytes);
    }
}

void cuda_gemm_staged_begin(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    cuda_gemm_element_begin(l);
    kit_text_add(t,
                 ".reg .b32 %%spot, %%worker, %%piece, %%part_parity, %%slice<%u>;\n"
                 ".reg .b32 %%tile_row<%u>, %%tile_column<%u>, %%c_row, %%c_column, %%c_first;\n"
                 ".reg .pred %%more<%u>, %%sends;\n"
                 "sub.u32 %%worker, %%thread, 128;\nmov.u32 %%part_parity, 0;\n"
                 "setp.eq.u32 %%sends, %%worker, 0;\n",
                 CUDA_GEMM_MAX_SPLIT, MAX_UNROLL, MAX_UNROLL, MAX_UNROLL);
    cuda_gemm_write_row(t, key);
    kit_text_add(t,
                 "and.b32 %%x1, %%lane, 3;\nshl.b32 %%x1, %%x1, 1;\n"
                 "mad.lo.u32 %%spot, %%x%u, %u, %%x%u;\nmad.lo.u32 %%spot, %%spot, 4, %%base;\n",
                 key->swapped ? 1 : 0, cuda_gemm_staged_pitch(key), key->swapped ? 0 : 1);
    write_slice_places(t, key);
}

/* Writes the sums of this group. The ring is free when both warpgroups have read it. */
static void write_sums(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t p = cuda_gemm_staged_pitch(key), step = cuda_gemm_row_step(key);
    kit_text_add(t, "bar.sync 1, %u;\n", WORKERS);
    for (uint32_t i = 0; i < key->columns / 2; i += 2) {
        const uint32_t column = i / 4 * 8, row = i / 2 % 2 * step;
        if (key->swapped) {
            kit_text_add(t,
                         "st.shared.f32 [%%spot+%u], %%f%u;\nst.shared.f32 [%%spot+%u], %%f%u;\n",
                         4 * (column * p + row), i, 4 * ((column + 1) * p + row), i + 1);
        } else {
            kit_text_add(t, "st.shared.v2.f32 [%%spot+%u], {%%f%u, %%f%u};\n",
                         4 * (row * p + column), i, i + 1);
        }
    }
    kit_text_add(t, "fence.proxy.async.shared::cta;\nbar.sync 1, %u;\n", WORKERS);
}

/* One thread sends the slices of the others. Their bytes arrive at the barrier `partial` of their
 * group, which expects one slice of each other group. */
static void write_exchange(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t bytes = cuda_gemm_slice_bytes(key), partial = cuda_gemm_partial_barrier(key);
    kit_text_add(t,
                 "add.u32 %%barrier, %%barriers, %u;\n@!%%sends bra SENT;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%barrier], %u;\n",
                 partial, (key->split - 1) * bytes);
    for (uint32_t i = 0; i < key->split; i++) {
        /* x1: where group i has the slice of this rank, see write_slice_places */
        kit_text_add(t,
                     "mad.lo.u32 %%x1, %%rank, %u, %%base;\nadd.u32 %%x1, %%x1, %u;\n"
                     "setp.gt.u32 %%p, %%rank, %u;\n@%%p sub.u32 %%x1, %%x1, %u;\n"
                     "mapa.shared::cluster.u32 %%x1, %%x1, %u;\n"
                     "mapa.shared::cluster.u32 %%x2, %%barrier, %u;\n"
                     "add.u32 %%x0, %%base, %u;\nsetp.ne.u32 %%p, %%rank, %u;\n"
                     "@%%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                     "[%%x1], [%%x0], %u, [%%x2];\n",
                     bytes, cuda_gemm_store_offset(key), i, bytes, i, i, i * bytes, i, bytes);
    }
    kit_text_add(t, "SENT:\n");
    cuda_gemm_write_wait(t, "WAIT_PARTS", "%barrier", "%part_parity", true);
    kit_text_add(t, "xor.b32 %%part_parity, %%part_parity, 1;\n");
}

/* Tells each group of the cluster, once for each warp, that its slice was read. */
static void write_drained(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t barrier = cuda_gemm_drained_barrier(key);
    kit_text_add(t, "fence.proxy.async.shared::cta;\nbar.warp.sync 0xffffffff;\n");
    for (uint32_t i = 0; i < key->split && key->split > 1; i++) {
        kit_text_add(t,
                     "add.u32 %%x0, %%barriers, %u;\nmapa.shared::cluster.u32 %%x0, %%x0, %u;\n"
                     "@%%leads mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%%x0];\n",
                     barrier, i);
    }
    if (key->split == 1) {
        kit_text_add(t, "@%%leads mbarrier.arrive.shared::cta.b64 _, [%%barriers+%u];\n", barrier);
    }
}

/* Where piece `copy` of a turn is in the tile, and whether there is one. */
static void write_piece_place(kit_text *t, const cuda_gemm_key *key, uint32_t copy)
{
    const uint32_t in_row = cuda_gemm_staged_columns(key) / key->width;
    kit_text_add(t,
                 "add.u32 %%x0, %%piece, %u;\n"
                 "setp.lt.u32 %%more%u, %%x0, %u;\n"
                 "div.u32 %%x2, %%x0, %u;\n"
                 "mul.lo.u32 %%x1, %%x2, %u;\nsub.u32 %%x1, %%x0, %%x1;\n"
                 "mul.lo.u32 %%tile_column%u, %%x1, %u;\n"
                 "mad.lo.u32 %%tile_row%u, %%rank, %u, %%x2;\n"
                 "setp.lt.and.u32 %%more%u, %%tile_row%u, %u, %%more%u;\n"
                 "mad.lo.u32 %%x0, %%x2, %u, %%tile_column%u;\nshl.b32 %%x0, %%x0, 2;\n",
                 copy * WORKERS, copy, piece_count(key), in_row, in_row, copy, key->width, copy,
                 cuda_gemm_slice_rows(key), copy, copy, cuda_gemm_staged_rows(key), copy,
                 cuda_gemm_staged_pitch(key), copy);
}

/* Loads the sums of all groups for the piece at %x0 of the slices, and adds them. Returns the first
 * of `width` registers. */
static cuda_operand write_piece_sums(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy)
{
    cuda_operand parts[CUDA_GEMM_MAX_SPLIT][4];
    for (uint32_t i = 0; i < key->split; i++) {
        for (uint32_t j = 0; j < key->width; j++) {
            parts[i][j] = cuda_fresh(l, CUDA_FLOAT);
        }
        kit_text_add(&l->body, "add.u32 %%x1, %%slice%u, %%x0;\n@%%more%u ", i, copy);
        if (key->width == 4) {
            cuda_emit(l, "ld.shared.v4.f32 {$, $, $, $}, [%x1];", parts[i][0], parts[i][1],
                      parts[i][2], parts[i][3]);
        } else {
            cuda_emit(l, "ld.shared.f32 $, [%x1];", parts[i][0]);
        }
    }
    for (uint32_t i = 1; i < key->split; i++) {
        for (uint32_t j = 0; j < key->width; j++) {
            cuda_emit(l, "add.rn.f32 $, $, $;", parts[0][j], parts[0][j], parts[i][j]);
        }
    }
    return parts[0][0];
}

static void write_piece_store(cuda_lowering *l, const cuda_gemm_key *key,
                              const cuda_operand values[4])
{
    cuda_operand words[2] = {{0, 0}, {0, 0}};
    const bool halves = hal_type_size(key->type_c) == 2;
    for (uint32_t i = 0; i < (key->width + 1u) / 2 && halves; i++) {
        words[i] = cuda_fresh(l, CUDA_WORD);
        cuda_pack_halves(l, key->type_c, words[i], values[2 * i],
                         key->width == 1 ? cuda_text("") : values[2 * i + 1]);
    }
    if (key->width == 1 && halves) {
        cuda_emit(l, "cvt.u16.u32 %half, $;", words[0]);
        kit_text_add(&l->body, "@%%inside st.global.b16 [%%at], %%half;\n");
    } else if (key->width == 1) {
        cuda_emit(l, "@%inside st.global.f32 [%at], $;", values[0]);
    } else if (halves) {
        cuda_emit(l, "@%inside st.global.v2.b32 [%at], {$, $};", words[0], words[1]);
    } else {
        cuda_emit(l, "@%inside st.global.v4.f32 [%at], {$, $, $, $};", values[0], values[1],
                  values[2], values[3]);
    }
}

/* The elements of a piece. With pieces of 4, the rows of C are multiples of 4. */
static void write_piece(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                        cuda_operand first)
{
    kit_text *t = &l->body;
    const cuda_gemm_place place = {"%c_row", "%c_column", key->swapped ? "%n" : "%m",
                                   key->swapped ? "%m" : "%n"};
    cuda_operand values[4];
    kit_text_add(t, "add.u32 %%c_row, %s, %%tile_row%u;\nadd.u32 %%c_first, %s, %%tile_column%u;\n",
                 key->swapped ? "%column" : "%row", copy, key->swapped ? "%row" : "%column", copy);
    for (uint32_t i = 0; i < key->width; i++) {
        kit_text_add(t, "add.u32 %%c_column, %%c_first, %u;\n", i);
        values[i] = cuda_gemm_element(l, key, &place, (cuda_operand){CUDA_FLOAT, first.bits + i});
    }
    kit_text_add(t, "mov.u32 %%c_column, %%c_first;\n");
    cuda_gemm_element_inside(t, &place);
    kit_text_add(t, "and.pred %%inside, %%inside, %%more%u;\n", copy);
    cuda_gemm_element_address(t, key, &place);
    write_piece_store(l, key, values);
}

void cuda_gemm_staged_tile(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t copies = unroll(key);
    cuda_operand sums[MAX_UNROLL];
    cuda_gemm_element_tile(t);
    write_sums(t, key);
    if (key->split > 1) {
        write_exchange(t, key);
    }
    kit_text_add(t, "mov.u32 %%piece, %%worker;\nSTORE_PIECES:\n");
    for (uint32_t i = 0; i < copies; i++) {
        write_piece_place(t, key, i);
        sums[i] = write_piece_sums(l, key, i);
    }
    for (uint32_t i = 0; i < copies; i++) {
        write_piece(l, key, i, sums[i]);
    }
    kit_text_add(t,
                 "add.u32 %%piece, %%piece, %u;\nsetp.lt.u32 %%p, %%piece, %u;\n"
                 "@%%p bra STORE_PIECES;\n",
                 copies * WORKERS, piece_count(key));
    write_drained(t, key);
}

void cuda_gemm_staged_end(kit_text *t, const cuda_gemm_key *key)
{
    if (key->split == 1) {
        return;
    }
    /* %part_parity is that of the tile that would be next. */
    kit_text_add(t,
                 "xor.b32 %%part_parity, %%part_parity, 1;\nadd.u32 %%barrier, %%barriers, %u;\n",
                 cuda_gemm_drained_barrier(key));
    cuda_gemm_write_wait(t, "WAIT_DRAINED", "%barrier", "%part_parity", true);
}
