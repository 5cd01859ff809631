/* PTX of the staged epilogue, see gemm/end/staged.h. The tile of C lies by rows in shared memory,
 * over the stages of the ring. Each of the groups that share a tile stores a slice of its rows: it
 * reads the sums of all groups through distributed shared memory, which have a part of k each, and
 * adds them in the order of the parts, so that the bits do not depend on time. */
#include "gemm/end/staged.h"

#include "gemm/end/element.h"
#include "gemm/end/partial.h"
#include "gemm/tile/ring.h"
#include "gemm/tile/sums.h"
#include "lower/convert.h"

#include <stdio.h>

enum {
    WORKERS = 32 * CUDA_GEMM_MULTIPLIERS,
    MAX_UNROLL = CUDA_GEMM_INPUT_SETS, /* pieces whose loads are in flight */
    MAX_LOADS = 8,                     /* in flight: pieces times the parts of k that are added */
    /* of three-term products that split k: wider ones lack a register for the number of a part */
    MAX_SPLIT_COLUMNS = 96
};

/* Pieces of one slice: neighbours of one row, of `width` elements. */
static uint32_t piece_count(const cuda_gemm_key *key)
{
    if (key->in_memory) {
        return CUDA_GEMM_ROWS * CUDA_GEMM_BLOCK_COLUMNS * cuda_gemm_partial_blocks(key) /
               key->width;
    }
    return cuda_gemm_slice_rows(key) * cuda_gemm_staged_columns(key) / key->width;
}

/* Of pieces of `parts` loads each. */
static uint32_t unroll(const cuda_gemm_key *key, uint32_t parts)
{
    uint32_t copies = 1;
    while (copies < MAX_UNROLL && 2 * copies * WORKERS <= piece_count(key) &&
           2 * copies * parts <= MAX_LOADS) {
        copies *= 2;
    }
    return copies;
}

bool cuda_gemm_staged_is_supported(const cuda_gemm_key *key)
{
    return (key->width == 1 || key->width == 4) && key->split >= 1 &&
           cuda_gemm_cluster(key) <= CUDA_GEMM_MAX_CLUSTER &&
           (key->split == 1 || !cuda_gemm_has_parts(key) || key->columns <= MAX_SPLIT_COLUMNS) &&
           key->split * cuda_gemm_slice_bytes(key) <= cuda_gemm_store_offset(key) &&
           (!key->in_memory || cuda_gemm_partial_is_supported(key)) &&
           cuda_gemm_element_is_supported(key, unroll(key, 1) * key->width);
}

/* Where this group's slice of each part's sums is: the part's groups are `pairs` ranks apart. */
static void write_slice_places(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t bytes = cuda_gemm_slice_bytes(key);
    kit_text_add(t, "mad.lo.u32 %%own_slice, %%part, %u, %%base;\n", bytes);
    for (uint32_t i = 0; i < key->split; i++) {
        kit_text_add(t,
                     "add.u32 %%x0, %%pair, %u;\nmapa.shared::cluster.u32 %%slice%u, %%own_slice, "
                     "%%x0;\n",
                     i * cuda_gemm_pairs(key), i);
    }
}

void cuda_gemm_staged_begin(cuda_lowering *l, const cuda_gemm_key *key)
{
    cuda_gemm_element_begin(l, key->type);
    kit_text_add(&l->body,
                 ".reg .b32 %%spot, %%worker, %%piece, %%parity_of_tile;\n"
                 ".reg .b32 %%own_slice, %%slice<%u>;\n"
                 ".reg .b32 %%tile_row<%u>, %%tile_column<%u>, %%c_row, %%c_column, %%c_first;\n"
                 ".reg .pred %%more<%u>;\n"
                 "mov.u32 %%parity_of_tile, 0;\n",
                 CUDA_GEMM_MAX_CLUSTER, MAX_UNROLL, MAX_UNROLL, MAX_UNROLL);
}

/* Where a work-item's sums are in the tile. Computed for each tile: the sums of k take the
 * registers. */
static void write_spot(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "sub.u32 %%worker, %%thread, 128;\n");
    cuda_gemm_write_row(t, key);
    kit_text_add(t,
                 "and.b32 %%x1, %%lane, 3;\nshl.b32 %%x1, %%x1, 1;\n"
                 "mad.lo.u32 %%spot, %%x%u, %u, %%x%u;\nmad.lo.u32 %%spot, %%spot, 4, %%base;\n",
                 key->swapped ? 1 : 0, cuda_gemm_staged_pitch(key), key->swapped ? 0 : 1);
}

/* Writes the sums of this group. The ring is free when both warpgroups have read it. */
static void write_sums(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t p = cuda_gemm_staged_pitch(key), step = cuda_gemm_row_step(key);
    write_spot(t, key);
    kit_text_add(t, "bar.sync 1, %u;\n", WORKERS);
    for (uint32_t i = 0; i < key->columns / 2; i += 2) {
        const uint32_t column = i / 4 * 8, row = i / 2 % 2 * step;
        if (key->swapped) {
            cuda_emit(l, "st.shared.b32 [%spot+$], $;", cuda_unsigned(4 * (column * p + row)),
                      cuda_gemm_sum(key, i));
            cuda_emit(l, "st.shared.b32 [%spot+$], $;", cuda_unsigned(4 * ((column + 1) * p + row)),
                      cuda_gemm_sum(key, i + 1));
        } else {
            cuda_emit(l, "st.shared.v2.b32 [%spot+$], {$, $};",
                      cuda_unsigned(4 * (row * p + column)), cuda_gemm_sum(key, i),
                      cuda_gemm_sum(key, i + 1));
        }
    }
    kit_text_add(t, "fence.proxy.async.shared::cta;\nbar.sync 1, %u;\n", WORKERS);
}

/* One work-item for each group that shares the tile arrives there, on behalf of this group. */
static void write_arrive(kit_text *t, const cuda_gemm_key *key, const char *label, uint32_t barrier,
                         const char *fence, const char *arrive)
{
    kit_text_add(t,
                 "setp.ge.u32 %%p, %%worker, %u;\n@%%p bra %s;\n"
                 "mad.lo.u32 %%x0, %%worker, %u, %%pair;\nadd.u32 %%x1, %%barriers, %u;\n"
                 "mapa.shared::cluster.u32 %%x1, %%x1, %%x0;\n%s"
                 "mbarrier.arrive.%s.cluster.shared::cluster.b64 _, [%%x1];\n%s:\n",
                 key->split, label, cuda_gemm_pairs(key), barrier, fence, arrive, label);
}

/* Waits until all groups that share the tile have written their sums. */
static void write_exchange(kit_text *t, const cuda_gemm_key *key)
{
    write_arrive(t, key, "WRITTEN", cuda_gemm_partial_barrier(key),
                 "fence.release.sync_restrict::shared::cta.cluster;\n", "relaxed");
    kit_text_add(t, "add.u32 %%barrier, %%barriers, %u;\n", cuda_gemm_partial_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_PARTS", "%barrier", "%parity_of_tile", true);
}

/* Tells this group and the one that copies to it, once for each warp, that C was written from the
 * tile. */
static void write_drained(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t barrier = cuda_gemm_drained_barrier(key);
    kit_text_add(t,
                 "fence.proxy.async.shared::cta;\nbar.warp.sync 0xffffffff;\n"
                 "@%%leads mbarrier.arrive.shared::cta.b64 _, [%%barriers+%u];\n",
                 barrier);
    if (key->shared != CUDA_GEMM_SHARES_NONE) {
        kit_text_add(t,
                     "add.u32 %%x0, %%barriers, %u;\n"
                     "mapa.shared::cluster.u32 %%x0, %%x0, %%other_rank;\n"
                     "@%%leads fence.release.sync_restrict::shared::cta.cluster;\n"
                     "@%%leads mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%%x0];\n",
                     barrier);
    }
}

/* The same of a slice of whole columns of the tile, see gemm/end/partial.c. The slice is in its
 * place in the tile. */
static void write_column_piece_place(kit_text *t, const cuda_gemm_key *key, uint32_t copy)
{
    const uint32_t in_row =
        (key->swapped ? CUDA_GEMM_ROWS : CUDA_GEMM_BLOCK_COLUMNS * cuda_gemm_partial_blocks(key)) /
        key->width;
    kit_text_add(t,
                 "add.u32 %%x0, %%piece, %u;\nsetp.lt.u32 %%more%u, %%x0, %u;\n"
                 "div.u32 %%x2, %%x0, %u;\nmul.lo.u32 %%x1, %%x2, %u;\n"
                 "sub.u32 %%x1, %%x0, %%x1;\nmul.lo.u32 %%x1, %%x1, %u;\n"
                 "mad.lo.u32 %%x%u, %%first_block, %u, %%x%u;\n"
                 "mul.lo.u32 %%x3, %%end_block, %u;\n"
                 "setp.lt.and.u32 %%more%u, %%x%u, %%x3, %%more%u;\n"
                 "mov.u32 %%tile_row%u, %%x2;\nmov.u32 %%tile_column%u, %%x1;\n"
                 "mad.lo.u32 %%x0, %%x2, %u, %%x1;\nshl.b32 %%x0, %%x0, 2;\n",
                 copy * WORKERS, copy, piece_count(key), in_row, in_row, key->width,
                 key->swapped ? 2 : 1, CUDA_GEMM_BLOCK_COLUMNS, key->swapped ? 2 : 1,
                 CUDA_GEMM_BLOCK_COLUMNS, copy, key->swapped ? 2 : 1, copy, copy, copy,
                 cuda_gemm_staged_pitch(key));
}

/* Where piece `copy` of a turn is in the tile, and whether there is one. */
static void write_piece_place(kit_text *t, const cuda_gemm_key *key, uint32_t copy)
{
    if (key->in_memory) {
        write_column_piece_place(t, key, copy);
        return;
    }
    const uint32_t in_row = cuda_gemm_staged_columns(key) / key->width;
    kit_text_add(t,
                 "add.u32 %%x0, %%piece, %u;\n"
                 "setp.lt.u32 %%more%u, %%x0, %u;\n"
                 "div.u32 %%x2, %%x0, %u;\n"
                 "mul.lo.u32 %%x1, %%x2, %u;\nsub.u32 %%x1, %%x0, %%x1;\n"
                 "mul.lo.u32 %%tile_column%u, %%x1, %u;\n"
                 "mad.lo.u32 %%tile_row%u, %%part, %u, %%x2;\n"
                 "setp.lt.and.u32 %%more%u, %%tile_row%u, %u, %%more%u;\n"
                 "mad.lo.u32 %%x0, %%x2, %u, %%tile_column%u;\nshl.b32 %%x0, %%x0, 2;\n",
                 copy * WORKERS, copy, piece_count(key), in_row, in_row, copy, key->width, copy,
                 cuda_gemm_slice_rows(key), copy, copy, cuda_gemm_staged_rows(key), copy,
                 cuda_gemm_staged_pitch(key), copy);
}

/* Loads a piece at %x0 of a slice. Returns the first of `width` registers. */
static cuda_operand write_piece_load(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                                     const char *slice, const char *space)
{
    cuda_operand values[4];
    for (uint32_t j = 0; j < key->width; j++) {
        values[j] = cuda_fresh(l, cuda_gemm_sum_class(key));
    }
    kit_text_add(&l->body, "add.u32 %%x1, %s, %%x0;\n@%%more%u ld.%s", slice, copy, space);
    if (key->width == 4) {
        cuda_emit(l, ".v4.b32 {$, $, $, $}, [%x1];", values[0], values[1], values[2], values[3]);
    } else {
        cuda_emit(l, ".b32 $, [%x1];", values[0]);
    }
    return values[0];
}

/* The sums of all groups for the piece at %x0 of the slices replace this group's. */
static void write_piece_sum(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                            const cuda_operand *parts)
{
    cuda_operand sums[4];
    for (uint32_t j = 0; j < key->width; j++) {
        sums[j] = parts[0];
        sums[j].bits += j;
        for (uint32_t i = 1; i < key->split; i++) {
            cuda_gemm_sum_add(l, key, sums[j], (cuda_operand){parts[i].kind, parts[i].bits + j});
        }
    }
    kit_text_add(&l->body, "add.u32 %%x1, %%own_slice, %%x0;\n@%%more%u st.shared", copy);
    if (key->width == 4) {
        cuda_emit(l, ".v4.b32 [%x1], {$, $, $, $};", sums[0], sums[1], sums[2], sums[3]);
    } else {
        cuda_emit(l, ".b32 [%x1], $;", sums[0]);
    }
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
        cuda_emit(l, "@%inside st.global.b32 [%at], $;", values[0]);
    } else if (halves) {
        cuda_emit(l, "@%inside st.global.v2.b32 [%at], {$, $};", words[0], words[1]);
    } else {
        cuda_emit(l, "@%inside st.global.v4.b32 [%at], {$, $, $, $};", values[0], values[1],
                  values[2], values[3]);
    }
}

static cuda_gemm_place place_of_pieces(const cuda_gemm_key *key)
{
    return (cuda_gemm_place){.row = "%c_row",
                             .column = "%c_column",
                             .rows = key->swapped ? "%n" : "%m",
                             .columns = key->swapped ? "%m" : "%n"};
}

/* Row and first column in C of piece `copy` of a turn. */
static void write_place_in_c(kit_text *t, const cuda_gemm_key *key, uint32_t copy)
{
    kit_text_add(t,
                 "add.u32 %%c_row, %s, %%tile_row%u;\nadd.u32 %%c_first, %s, %%tile_column%u;\n"
                 "mov.u32 %%c_column, %%c_first;\n",
                 key->swapped ? "%column" : "%row", copy, key->swapped ? "%row" : "%column", copy);
}

/* Loads the further inputs of a piece, while its sums are loaded. */
static void write_piece_inputs(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                               cuda_gemm_inputs *inputs)
{
    const cuda_gemm_place place = place_of_pieces(key);
    if (key->input_count > 0) {
        write_place_in_c(&l->body, key, copy);
        cuda_gemm_element_inside(&l->body, &place);
        cuda_gemm_inputs_piece(l, key, inputs, "%c_row", "%c_column");
    }
}

/* The elements of a piece. With pieces of 4, the rows of C are multiples of 4. */
static void write_piece(cuda_lowering *l, const cuda_gemm_key *key, uint32_t copy,
                        cuda_operand first, cuda_gemm_inputs *inputs)
{
    kit_text *t = &l->body;
    cuda_gemm_place place = place_of_pieces(key);
    cuda_operand values[4];
    place.inputs = inputs;
    write_place_in_c(t, key, copy);
    for (uint32_t i = 0; i < (key->width + 1u) / 2; i++) {
        cuda_gemm_inputs_unpack(l, key, inputs, i);
    }
    for (uint32_t i = 0; i < key->width; i++) {
        kit_text_add(t, "add.u32 %%c_column, %%c_first, %u;\n", i);
        place.pair = i / 2;
        place.second = i % 2;
        values[i] = cuda_gemm_element(l, key, &place, (cuda_operand){first.kind, first.bits + i});
    }
    kit_text_add(t, "mov.u32 %%c_column, %%c_first;\n");
    cuda_gemm_element_inside(t, &place);
    kit_text_add(t, "and.pred %%inside, %%inside, %%more%u;\n", copy);
    cuda_gemm_element_address(t, key, &place);
    write_piece_store(l, key, values);
}

/* A loop over the pieces of this group's slice, several at once. */
static void write_loop_begin(kit_text *t, const char *label)
{
    kit_text_add(t, "mov.u32 %%piece, %%worker;\n%s:\n", label);
}

static void write_loop_end(kit_text *t, const cuda_gemm_key *key, uint32_t copies,
                           const char *label)
{
    kit_text_add(t, "add.u32 %%piece, %%piece, %u;\nsetp.lt.u32 %%p, %%piece, %u;\n@%%p bra %s;\n",
                 copies * WORKERS, piece_count(key), label);
}

/* Adds the sums of the groups that share the tile. The others may go on before this group writes C:
 * the fence for that waits for the device's memory, and so comes before there are writes. */
static void write_parts(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t copies = unroll(key, key->split);
    char slice[16];
    write_exchange(t, key);
    write_slice_places(t, key);
    write_loop_begin(t, "ADD_PARTS");
    cuda_operand parts[MAX_UNROLL][CUDA_GEMM_MAX_CLUSTER];
    for (uint32_t copy = 0; copy < copies; copy++) {
        write_piece_place(t, key, copy);
        for (uint32_t i = 0; i < key->split; i++) {
            snprintf(slice, sizeof slice, "%%slice%u", i);
            parts[copy][i] = write_piece_load(l, key, copy, slice, "shared::cluster");
        }
    }
    for (uint32_t copy = 0; copy < copies; copy++) {
        write_piece_place(t, key, copy);
        write_piece_sum(l, key, copy, parts[copy]);
    }
    write_loop_end(t, key, copies, "ADD_PARTS");
    kit_text_add(t, "bar.sync 1, %u;\n", WORKERS);
    write_arrive(t, key, "READ", cuda_gemm_drained_barrier(key), "", "release");
}

void cuda_gemm_staged_tile(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const uint32_t copies = unroll(key, 1);
    cuda_operand sums[MAX_UNROLL];
    cuda_gemm_inputs *inputs = l->inputs; /* one for each copy */
    cuda_gemm_element_tile(t);
    if (key->in_memory) {
        write_spot(t, key);
        cuda_gemm_partial_exchange(l, key);
        kit_text_add(t, "mov.u32 %%own_slice, %%base;\nNEXT_SLICE:\n"
                        "setp.eq.u32 %%p, %%slices, 0;\n@%%p bra SLICES_STORED;\n");
        cuda_gemm_partial_add(l, key);
    } else if (key->split > 1) {
        write_sums(l, key);
        write_parts(l, key);
    } else {
        write_sums(l, key);
        kit_text_add(t, "mov.u32 %%own_slice, %%base;\n");
    }
    cuda_gemm_inputs_begin_pieces(l, key, &inputs[0]);
    write_loop_begin(t, "STORE_PIECES");
    for (uint32_t i = 0; i < copies; i++) {
        write_piece_place(t, key, i);
        sums[i] = write_piece_load(l, key, i, "%own_slice", "shared");
        inputs[i] = inputs[0];
        write_piece_inputs(l, key, i, &inputs[i]);
    }
    for (uint32_t i = 0; i < copies; i++) {
        write_piece(l, key, i, sums[i], &inputs[i]);
    }
    write_loop_end(t, key, copies, "STORE_PIECES");
    if (key->in_memory) {
        kit_text_add(t, "bra NEXT_SLICE;\nSLICES_STORED:\n");
        cuda_gemm_partial_end_tile(t);
    }
    write_drained(t, key);
    kit_text_add(t, "xor.b32 %%parity_of_tile, %%parity_of_tile, 1;\n");
}

uint32_t cuda_gemm_staged_arrivals(const cuda_gemm_key *key)
{
    const uint32_t readers = key->split > 1 && !key->in_memory ? key->split : 0;
    return readers + CUDA_GEMM_MULTIPLIERS * cuda_gemm_pairs(key);
}

void cuda_gemm_staged_end(kit_text *t, const cuda_gemm_key *key)
{
    if (cuda_gemm_cluster(key) == 1) {
        return;
    }
    /* %parity_of_tile is that of the tile that would be next. */
    kit_text_add(t,
                 "xor.b32 %%parity_of_tile, %%parity_of_tile, 1;\n"
                 "add.u32 %%barrier, %%barriers, %u;\n",
                 cuda_gemm_drained_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_DRAINED", "%barrier", "%parity_of_tile", true);
}
