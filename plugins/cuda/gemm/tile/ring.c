/* Geometry of the ring of stages, see gemm/tile/ring.h. */
#include "gemm/tile/ring.h"

#include "gemm/tile/wait.h"

#include <string.h>

enum {
    SHARED_MAX = 227 * 1024, /* bytes of one group */
    MAX_STAGES = 8,
    STORE_ROWS = 64,
    BARRIER_BYTES = 8 * (3 * MAX_STAGES + 4),
    RAW_MAX = 96 * 1024, /* bytes of raw stages: what hides the latency of memory */
    MAX_RAW_STAGES = 4
};

uint32_t cuda_gemm_tile_a_bytes(const cuda_gemm_key *key)
{
    return cuda_gemm_rows(key) * CUDA_GEMM_LINE;
}

/* Boxes along n are whole, so the last one may have columns that are not used. */
uint32_t cuda_gemm_tile_b_bytes(const cuda_gemm_key *key)
{
    const uint32_t line = cuda_gemm_line(key->type);
    return (key->transpose_b ? key->columns : (key->columns + line - 1) / line * line) *
           CUDA_GEMM_LINE;
}

uint32_t cuda_gemm_units_b(const cuda_gemm_key *key)
{
    return cuda_gemm_tile_a_bytes(key) +
           (cuda_gemm_transposes_b(key) ? cuda_gemm_tile_b_bytes(key) : 0);
}

/* A tile of 16-bit elements along n has whole boxes. */
uint32_t cuda_gemm_small_b(const cuda_gemm_key *key)
{
    return cuda_gemm_units_b(key) + (cuda_gemm_transposes_b(key) ? key->columns * CUDA_GEMM_LINE
                                                                 : cuda_gemm_tile_b_bytes(key));
}

uint32_t cuda_gemm_stage_bytes(const cuda_gemm_key *key)
{
    return cuda_gemm_small_b(key) + (cuda_gemm_has_parts(key) ? key->columns * CUDA_GEMM_LINE : 0);
}

uint32_t cuda_gemm_store_rows(const cuda_gemm_key *key)
{
    const uint32_t most = key->swapped && hal_type_size(key->type_c) == 4 ? 32 : STORE_ROWS;
    return key->swapped && key->columns < most ? key->columns : most;
}

uint32_t cuda_gemm_staged_rows(const cuda_gemm_key *key)
{
    return key->swapped ? key->columns : CUDA_GEMM_ROWS;
}

uint32_t cuda_gemm_staged_columns(const cuda_gemm_key *key)
{
    return key->swapped ? CUDA_GEMM_ROWS : key->columns;
}

/* Without bank conflicts as sums are written. */
uint32_t cuda_gemm_staged_pitch(const cuda_gemm_key *key)
{
    return cuda_gemm_staged_columns(key) + (key->swapped ? 4 : 8);
}

uint32_t cuda_gemm_slice_rows(const cuda_gemm_key *key)
{
    return (cuda_gemm_staged_rows(key) + key->split - 1) / key->split;
}

uint32_t cuda_gemm_slice_bytes(const cuda_gemm_key *key)
{
    return cuda_gemm_slice_rows(key) * cuda_gemm_staged_pitch(key) * 4;
}

/* Stages are worth more than a second box where another warpgroup multiplies meanwhile. */
uint32_t cuda_gemm_store_boxes(const cuda_gemm_key *key)
{
    return key->alternates ? 1 : 2;
}

/* Boxes of C, of 64 lines, for each of two warpgroups. */
static uint32_t store_bytes(const cuda_gemm_key *key)
{
    return key->staged ? 0 : 2 * cuda_gemm_store_boxes(key) * STORE_ROWS * CUDA_GEMM_LINE;
}

uint32_t cuda_gemm_raw_bytes(const cuda_gemm_key *key)
{
    return (cuda_gemm_tile_a_bytes(key) + cuda_gemm_tile_b_bytes(key)) / CUDA_GEMM_LINE *
           CUDA_GEMM_RAW_LINE;
}

uint32_t cuda_gemm_raw_stages(const cuda_gemm_key *key)
{
    const uint32_t stages = RAW_MAX / cuda_gemm_raw_bytes(key);
    return stages > MAX_RAW_STAGES ? MAX_RAW_STAGES : stages < 2 ? 2 : stages;
}

uint32_t cuda_gemm_raw_offset(const cuda_gemm_key *key)
{
    return cuda_gemm_barrier_offset(key) + BARRIER_BYTES;
}

/* Bytes of all raw stages. */
static uint32_t raw_room(const cuda_gemm_key *key)
{
    return key->direct ? cuda_gemm_raw_stages(key) * cuda_gemm_raw_bytes(key) : 0;
}

uint32_t cuda_gemm_stages(const cuda_gemm_key *key)
{
    const uint32_t used = CUDA_GEMM_ALIGNMENT + store_bytes(key) + BARRIER_BYTES + raw_room(key);
    const uint32_t room = used < SHARED_MAX ? SHARED_MAX - used : 0;
    const uint32_t stages = room / cuda_gemm_stage_bytes(key);
    return stages < MAX_STAGES ? stages : MAX_STAGES;
}

uint32_t cuda_gemm_shared_bytes(const cuda_gemm_key *key)
{
    return CUDA_GEMM_ALIGNMENT + cuda_gemm_raw_offset(key) + raw_room(key);
}

uint32_t cuda_gemm_store_offset(const cuda_gemm_key *key)
{
    return cuda_gemm_stages(key) * cuda_gemm_stage_bytes(key);
}

uint32_t cuda_gemm_barrier_offset(const cuda_gemm_key *key)
{
    return cuda_gemm_store_offset(key) + store_bytes(key);
}

uint32_t cuda_gemm_empty_barrier(const cuda_gemm_key *key)
{
    return 8 * cuda_gemm_stages(key);
}

uint32_t cuda_gemm_converted_barrier(const cuda_gemm_key *key)
{
    return 16 * cuda_gemm_stages(key);
}

uint32_t cuda_gemm_partial_barrier(const cuda_gemm_key *key)
{
    return 24 * cuda_gemm_stages(key);
}

uint32_t cuda_gemm_drained_barrier(const cuda_gemm_key *key)
{
    return cuda_gemm_partial_barrier(key) + 8;
}

uint32_t cuda_gemm_slices_word(const cuda_gemm_key *key)
{
    return cuda_gemm_drained_barrier(key) + 8;
}

void cuda_gemm_write_wait(kit_text *t, const cuda_gemm_key *key, const char *name,
                          const char *barrier, const char *parity, bool cluster)
{
    cuda_gemm_write_wait_begin(t, key->wait_seconds, name);
    kit_text_add(t, "mbarrier.try_wait.parity%s.shared::cta.b64 %%done, [%s], %s;\n",
                 cluster ? ".relaxed.cluster" : "", barrier, parity);
    cuda_gemm_write_wait_end(t, key->wait_seconds, name);
    if (cluster) {
        kit_text_add(t, "fence.acquire.sync_restrict::shared::cluster.cluster;\n");
    }
}

void cuda_gemm_write_wait_drained(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t, "add.u32 %%x0, %%barriers, %u;\n", cuda_gemm_drained_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_DRAINED_RING", "%x0", "%drained",
                         cuda_gemm_cluster(key) > 1);
    kit_text_add(t, "xor.b32 %%drained, %%drained, 1;\nfence.proxy.async.shared::cta;\n");
}

void cuda_gemm_write_next_slot(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(t,
                 "add.u32 %%slot, %%slot, 1;\n"
                 "setp.eq.u32 %%last, %%slot, %u;\n"
                 "selp.u32 %%slot, 0, %%slot, %%last;\n"
                 "@%%last xor.b32 %%parity, %%parity, 1;\n",
                 cuda_gemm_stages(key));
}

void cuda_gemm_write_release(kit_text *t, const cuda_gemm_key *key, const char *guard)
{
    kit_text_add(t,
                 "shl.b32 %%x0, %%previous, 3;\nadd.u32 %%x0, %%x0, %%barriers;\n"
                 "@%s mbarrier.arrive.shared::cta.b64 _, [%%x0+%u];\n",
                 guard, cuda_gemm_empty_barrier(key));
    if (key->shared != CUDA_GEMM_SHARES_NONE) { /* the other group copies to this one, too */
        kit_text_add(t,
                     "mapa.shared::cluster.u32 %%x0, %%x0, %%other_rank;\n"
                     "@%s fence.release.sync_restrict::shared::cta.cluster;\n"
                     "@%s mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%%x0+%u];\n",
                     guard, guard, cuda_gemm_empty_barrier(key));
    }
}
