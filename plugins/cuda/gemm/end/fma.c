/* PTX of the end of a tile of strict F32 products, see gemm/end/fma.h. The sums go to shared
 * memory, by rows, so that what follows are short loops over pieces of rows, and the registers of
 * the sums do not have to suit it: work-items take pieces in turn, 256 at a time. */
#include "gemm/end/fma.h"

#include "gemm/end/element.h"
#include "gemm/producer/fma.h"
#include "gemm/tile/module.h"
#include "gemm/tile/wait.h"

#include <stddef.h>
#include <stdio.h>

enum {
    MAX_UNROLL = 8,       /* pieces of sums whose loads are in flight */
    MAX_STORE_UNROLL = 4, /* pieces of C */
    PAD = 4               /* elements between rows: of neighbours in different banks */
};

/* Elements from row to row, and bytes of the sums of a slice. */
static uint32_t sums_pitch(const cuda_fma_tile *tile)
{
    return tile->columns + PAD;
}

static uint32_t slice_bytes(const cuda_fma_tile *tile)
{
    return tile->rows * sums_pitch(tile) * 4;
}

uint32_t cuda_fma_sums_bytes(const cuda_fma_tile *tile)
{
    return tile->slices * slice_bytes(tile);
}

/* Pieces of a work-item, of that many elements; at most `most` of them at once. */
static uint32_t piece_count(const cuda_fma_tile *tile, uint32_t width)
{
    return (uint32_t)tile->rows * tile->columns / width / CUDA_FMA_THREADS;
}

static uint32_t unroll(const cuda_fma_tile *tile, uint32_t width, uint32_t most)
{
    const uint32_t count = piece_count(tile, width);
    return count < most ? count : most;
}

/* Bytes of shared memory from one piece of a work-item to the next, which has the same columns. */
static uint32_t piece_step(const cuda_fma_tile *tile, uint32_t width)
{
    return CUDA_FMA_THREADS / (tile->columns / width) * sums_pitch(tile) * 4;
}

bool cuda_fma_end_is_supported(const cuda_gemm_key *key)
{
    return (key->width == 1 || key->width == 4) &&
           cuda_gemm_element_is_supported(
               key, unroll(cuda_fma_tile_of(key), key->width, MAX_STORE_UNROLL) * key->width);
}

void cuda_fma_end_begin(cuda_lowering *l)
{
    cuda_gemm_element_begin(l, HAL_TYPE_F32);
    kit_text_add(&l->body,
                 ".reg .f32 %%one, %%sum, %%v<%u>;\n"
                 ".reg .b32 %%other, %%end, %%spot, %%sums, %%turn, %%piece_row, %%piece_column, "
                 "%%c_row, %%c_column, %%c_first;\n"
                 ".reg .b64 %%partials, %%flags, %%place, %%flag;\n.reg .pred %%stored;\n"
                 "ld.param.f32 %%one, [block+%zu];\n",
                 4 * MAX_UNROLL, offsetof(cuda_gemm_block, fma.one));
}

void cuda_fma_write_place(kit_text *t, const cuda_fma_tile *tile)
{
    kit_text_add(t, "mul.lo.u32 %%x0, %%tiles_m, %%tiles_n;\n"
                    "div.u32 %%batch, %%tile, %%x0;\n"
                    "mul.lo.u32 %%x1, %%batch, %%x0;\n"
                    "sub.u32 %%x1, %%tile, %%x1;\n");
    cuda_gemm_module_order(t);
    kit_text_add(t,
                 "mul.lo.u32 %%row, %%x1, %u;\nsub.u32 %%x1, %%m, %u;\n"
                 "min.u32 %%inner_row, %%row, %%x1;\n"
                 "mul.lo.u32 %%column, %%x0, %u;\nsub.u32 %%x1, %%n, %u;\n"
                 "min.u32 %%inner_column, %%column, %%x1;\n",
                 (uint32_t)tile->rows, (uint32_t)tile->rows, (uint32_t)tile->columns,
                 (uint32_t)tile->columns);
}

/* Writes the sums behind the stages, which are filled again already. They are copied first, by a
 * multiplication by 1: four sums that are stored at once would need neighbouring registers, at a
 * cost in every multiplication. */
static void write_sums(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const uint32_t pitch = sums_pitch(tile);
    kit_text_add(t,
                 "add.u32 %%sums, %%base, %u;\n"
                 "mad.lo.u32 %%spot, %%item_row, %u, %%item_column;\n"
                 "mad.lo.u32 %%spot, %%spot, 4, %%sums;\n"
                 "mad.lo.u32 %%spot, %%slice, %u, %%spot;\n",
                 tile->stages * cuda_fma_stage_bytes(key), pitch, slice_bytes(tile));
    for (uint32_t i = 0; i < tile->thread_m; i++) {
        for (uint32_t j = 0; j < tile->thread_n; j += 4) {
            for (uint32_t q = 0; q < 4; q++) {
                kit_text_add(t, "mul.rn.f32 %%v%u, %%f%u, %%one;\n", q, i * tile->thread_n + j + q);
            }
            const uint32_t row = i / 4 * 4 * tile->lanes_m + i % 4;
            kit_text_add(t, "st.shared.v4.f32 [%%spot+%u], {%%v0, %%v1, %%v2, %%v3};\n",
                         4 * (row * pitch + j * tile->lanes_n));
        }
    }
    kit_text_add(t, "bar.sync 0;\n");
}

/* A loop over the work-item's pieces: %spot is the first one of a turn, of `copies`. */
static void write_pass_begin(kit_text *t, const cuda_fma_tile *tile, uint32_t width,
                             const char *label)
{
    const uint32_t in_row = tile->columns / width;
    kit_text_add(
        t,
        "shr.u32 %%piece_row, %%thread, %u;\nand.b32 %%piece_column, %%thread, %u;\n"
        "mul.lo.u32 %%piece_column, %%piece_column, %u;\n"
        "mad.lo.u32 %%spot, %%piece_row, %u, %%piece_column;\n"
        "mad.lo.u32 %%spot, %%spot, 4, %%sums;\nmov.u32 %%turn, 0;\n%s:\n.pragma \"nounroll\";\n",
        (uint32_t)__builtin_ctz(in_row), in_row - 1, width, sums_pitch(tile), label);
}

static void write_pass_end(kit_text *t, const cuda_fma_tile *tile, uint32_t width, uint32_t copies,
                           const char *label)
{
    kit_text_add(t,
                 "add.u32 %%spot, %%spot, %u;\nadd.u32 %%turn, %%turn, %u;\n"
                 "setp.lt.u32 %%p, %%turn, %u;\n@%%p bra %s;\n",
                 copies * piece_step(tile, width), copies, piece_count(tile, width), label);
}

static void write_access(kit_text *t, const char *instruction, const char *address, uint32_t offset,
                         uint32_t first)
{
    char values[64];
    snprintf(values, sizeof values, "{%%v%u, %%v%u, %%v%u, %%v%u}", first, first + 1, first + 2,
             first + 3);
    if (instruction[0] == 'l') {
        kit_text_add(t, "%s.v4.f32 %s, [%s+%u];\n", instruction, values, address, offset);
    } else {
        kit_text_add(t, "%s.v4.f32 [%s+%u], %s;\n", instruction, address, offset, values);
    }
}

static void write_add(kit_text *t, uint32_t to, uint32_t from)
{
    for (uint32_t q = 0; q < 4; q++) {
        kit_text_add(t, "add.rn.f32 %%v%u, %%v%u, %%v%u;\n", to + q, to + q, from + q);
    }
}

/* Adds the sums of the slices in their order to those of the first one. */
static void write_slices(kit_text *t, const cuda_fma_tile *tile)
{
    const uint32_t copies = unroll(tile, 4, MAX_UNROLL / 2), step = piece_step(tile, 4);
    write_pass_begin(t, tile, 4, "ADD_SLICES");
    for (uint32_t i = 0; i < copies; i++) {
        write_access(t, "ld.shared", "%spot", i * step, 4 * i);
        for (uint32_t s = 1; s < tile->slices; s++) {
            write_access(t, "ld.shared", "%spot", i * step + s * slice_bytes(tile), 4 * copies);
            write_add(t, 4 * i, 4 * copies);
        }
        write_access(t, "st.shared", "%spot", i * step, 4 * i);
    }
    write_pass_end(t, tile, 4, copies, "ADD_SLICES");
}

/* %place: of the sums of group `group` for this work-item; %flag: of its flag. */
static void write_group_places(kit_text *t, const cuda_gemm_key *key, const char *group)
{
    kit_text_add(t,
                 "ld.param.u64 %%partials, [block+%zu];\ncvta.to.global.u64 %%partials, "
                 "%%partials;\n"
                 "mul.wide.u32 %%place, %s, %u;\nadd.u64 %%place, %%place, %%partials;\n"
                 "mul.wide.u32 %%e0, %%thread, 16;\nadd.u64 %%place, %%place, %%e0;\n",
                 offsetof(cuda_gemm_block, fma.partials), group, cuda_fma_partial_bytes(key));
}

static void write_flag_place(kit_text *t, const char *group)
{
    kit_text_add(t,
                 "ld.param.u64 %%flags, [block+%zu];\ncvta.to.global.u64 %%flags, %%flags;\n"
                 "mul.wide.u32 %%flag, %s, 4;\nadd.u64 %%flag, %%flag, %%flags;\n",
                 offsetof(cuda_gemm_block, fma.flags), group);
}

/* A share that begins inside a tile: the sums go to the workspace. */
static void write_partials(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const uint32_t copies = unroll(tile, 4, MAX_UNROLL), bytes = CUDA_FMA_THREADS * 16;
    kit_text_add(t, "setp.eq.u32 %%p, %%own_first, 0;\n@%%p bra TILE_BEGINS;\n");
    write_group_places(t, key, "%group");
    write_flag_place(t, "%group");
    write_pass_begin(t, tile, 4, "LEAVE_PARTIALS");
    for (uint32_t i = 0; i < copies; i++) {
        write_access(t, "ld.shared", "%spot", i * piece_step(tile, 4), 4 * i);
    }
    for (uint32_t i = 0; i < copies; i++) {
        write_access(t, "st.global", "%place", i * bytes, 4 * i);
    }
    kit_text_add(t, "add.u64 %%place, %%place, %u;\n", copies * bytes);
    write_pass_end(t, tile, 4, copies, "LEAVE_PARTIALS");
    kit_text_add(t, "membar.gl;\nbar.sync 0;\nmov.u32 %%x0, 1;\n"
                    "setp.ne.u32 %%p, %%thread, 0;\n"
                    "@!%%p st.release.gpu.global.u32 [%%flag], %%x0;\n"
                    "bra NEXT_SEGMENT;\nTILE_BEGINS:\n");
}

/* %x0: the first stage of the share of group %other, counted from the first shared tile. */
static void write_share_begin(kit_text *t)
{
    kit_text_add(t, "mul.lo.u32 %%x0, %%other, %%share;\nmin.u32 %%x1, %%other, %%longer;\n"
                    "add.u32 %%x0, %%x0, %%x1;\n");
}

/* A work-item for each of the other groups waits for its flag and clears it. */
static void write_await_partials(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "add.u32 %%x0, %%own_first, %%own_count;\nsetp.ge.u32 %%p, %%x0, %%steps;\n"
                    "@%%p bra TILE_ENDS;\n"
                    "mul.lo.u32 %%x0, %%rounds, %%groups;\nsub.u32 %%x0, %%own_tile, %%x0;\n"
                    "add.u32 %%x0, %%x0, 1;\nmul.lo.u32 %%end, %%x0, %%steps;\n"
                    "add.u32 %%other, %%group, 1;\nadd.u32 %%other, %%other, %%thread;\n");
    write_share_begin(t);
    kit_text_add(t, "setp.ge.u32 %%p, %%x0, %%end;\n@%%p bra FLAGGED;\n");
    write_flag_place(t, "%other");
    cuda_gemm_write_wait_begin(t, key->wait_seconds, "WAIT_FLAG");
    kit_text_add(t, "ld.acquire.gpu.global.u32 %%x0, [%%flag];\nsetp.ne.u32 %%done, %%x0, 0;\n");
    cuda_gemm_write_wait_end(t, key->wait_seconds, "WAIT_FLAG");
    kit_text_add(t, "mov.u32 %%x0, 0;\nst.relaxed.gpu.global.u32 [%%flag], %%x0;\n"
                    "FLAGGED:\nbar.sync 0;\n");
}

/* The tile's first stages: adds what the groups with the other stages have summed, in the order of
 * k. */
static void write_add_partials(kit_text *t, const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const uint32_t copies = unroll(tile, 4, MAX_UNROLL), bytes = CUDA_FMA_THREADS * 16;
    write_await_partials(t, key);
    kit_text_add(t, "add.u32 %%other, %%group, 1;\nOTHER_GROUP:\n");
    write_share_begin(t);
    kit_text_add(t, "setp.ge.u32 %%p, %%x0, %%end;\n@%%p bra TILE_ENDS;\n");
    write_group_places(t, key, "%other");
    write_pass_begin(t, tile, 4, "ADD_PARTIALS");
    for (uint32_t i = 0; i < copies; i++) {
        write_access(t, "ld.global.cg", "%place", i * bytes, 4 * i);
    }
    for (uint32_t i = 0; i < copies; i++) {
        for (uint32_t q = 0; q < 4; q++) {
            const uint32_t at = i * piece_step(tile, 4) + 4 * q;
            kit_text_add(t, "ld.shared.f32 %%sum, [%%spot+%u];\n", at);
            kit_text_add(t, "add.rn.f32 %%v%u, %%sum, %%v%u;\n", 4 * i + q, 4 * i + q);
        }
        write_access(t, "st.shared", "%spot", i * piece_step(tile, 4), 4 * i);
    }
    kit_text_add(t, "add.u64 %%place, %%place, %u;\n", copies * bytes);
    write_pass_end(t, tile, 4, copies, "ADD_PARTIALS");
    kit_text_add(t, "add.u32 %%other, %%other, 1;\nbra OTHER_GROUP;\nTILE_ENDS:\n");
}

/* A piece of C; elements before the tile's own place belong to another tile. */
static void write_store(cuda_lowering *l, const cuda_gemm_key *key, const cuda_operand *sums)
{
    kit_text *t = &l->body;
    const cuda_gemm_place place = {"%c_row", "%c_column", "%m", "%n", NULL, 0, 0, 0};
    cuda_operand values[4];
    for (uint32_t q = 0; q < key->width; q++) {
        kit_text_add(t, "add.u32 %%c_column, %%c_first, %u;\n", q);
        values[q] = cuda_gemm_element(l, key, &place, sums[q]);
    }
    kit_text_add(t, "mov.u32 %%c_column, %%c_first;\n"
                    "setp.ge.u32 %%stored, %%c_row, %%row;\n"
                    "setp.ge.and.u32 %%stored, %%c_first, %%column, %%stored;\n");
    cuda_gemm_element_address(t, key, &place);
    if (key->width == 4) {
        cuda_emit(l, "@%stored st.global.v4.f32 [%at], {$, $, $, $};", values[0], values[1],
                  values[2], values[3]);
    } else {
        cuda_emit(l, "@%stored st.global.f32 [%at], $;", values[0]);
    }
}

static void write_tile(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    const uint32_t copies = unroll(tile, key->width, MAX_STORE_UNROLL);
    kit_text_add(t, "bar.sync 0;\nmov.u32 %%tile, %%own_tile;\n");
    cuda_fma_write_place(t, tile);
    cuda_gemm_element_tile(t);
    write_pass_begin(t, tile, key->width, "STORE_PIECES");
    kit_text_add(t, "add.u32 %%c_first, %%inner_column, %%piece_column;\n"
                    "add.u32 %%c_row, %%inner_row, %%piece_row;\n");
    kit_text_add(t, "mad.lo.u32 %%c_row, %%turn, %u, %%c_row;\n",
                 CUDA_FMA_THREADS / (tile->columns / key->width));
    cuda_operand sums[MAX_STORE_UNROLL * 4];
    for (uint32_t i = 0; i < copies * key->width; i++) {
        sums[i] = cuda_fresh(l, CUDA_FLOAT);
        cuda_emit(
            l, "ld.shared.f32 $, [%spot+$];", sums[i],
            cuda_unsigned(i / key->width * piece_step(tile, key->width) + i % key->width * 4));
    }
    for (uint32_t i = 0; i < copies; i++) {
        write_store(l, key, &sums[i * key->width]);
        kit_text_add(t, "add.u32 %%c_row, %%c_row, %u;\n",
                     CUDA_FMA_THREADS / (tile->columns / key->width));
    }
    write_pass_end(t, tile, key->width, copies, "STORE_PIECES");
}

void cuda_fma_end(cuda_lowering *l, const cuda_gemm_key *key)
{
    kit_text *t = &l->body;
    write_sums(t, key);
    if (cuda_fma_tile_of(key)->slices > 1) {
        write_slices(t, cuda_fma_tile_of(key));
    }
    write_partials(t, key);
    write_add_partials(t, key);
    write_tile(l, key);
}
