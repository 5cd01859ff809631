/* Sums of matrix units that pass through shared memory before they are stored, see emitter.h. */
#include "emitter.h"

/* Sums of a warp in shared memory: one word more than a row has, so that neighbouring rows begin in
 * different banks. */
static uint32_t exchange_pitch(const ops_gemm_tiles *t)
{
    return (uint32_t)t->lanes_n * t->thread_n + 1;
}

/* Whether warps exchange their sums before they store them: where a lane's neighbours cannot be
 * stored at once, it is the lanes that have to have neighbours. */
int ops_gemm_exchanges_sums(const ops_gemm_kernel_key *key, uint32_t bytes)
{
    const ops_gemm_tiles *t = &key->tiles;
    const uint32_t warp_n = (uint32_t)t->lanes_n * t->thread_n;
    const uint32_t words = (uint32_t)t->block_m * (t->block_n / warp_n) * exchange_pitch(t);
    return key->width_c == 1 && hal_type_size(key->accumulator) * words <= bytes;
}

/* Writes the sums of this work-item, which the ring no longer needs room for. */
static void write_sums(const ops_gemm_exchange *p, hal_ir_value begin)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t pitch = exchange_pitch(e->tiles);
    hal_ir_value row = ops_gemm_times(e, p->g, e->a.strip * pitch);
    hal_ir_value own =
        hal_ir_add(b, hal_ir_add(b, begin, row), ops_gemm_times(e, p->t, e->c.strip));
    if (e->tiles->stages > 2) { /* zeros beyond k may be in flight */
        hal_ir_async_wait(b, 0);
    }
    hal_ir_barrier(b);
    for (uint32_t i = 0; i < e->a.thread; i++) {
        for (uint32_t j = 0; j < e->c.thread; j++) {
            hal_ir_value sum = e->present[i * e->c.thread + j];
            sum = p->type == HAL_TYPE_U32 ? hal_ir_bitcast(b, HAL_TYPE_U32, sum) : sum;
            const uint32_t offset =
                ops_gemm_line_offset(&e->a, i) * pitch + ops_gemm_line_offset(&e->c, j);
            hal_ir_store_wide(b, p->shared, own, (int32_t)offset, HAL_IR_NONE, sum);
        }
    }
    hal_ir_barrier(b);
}

/* Stores the tile of a warp: neighbouring lanes have neighbours of C in memory. */
void ops_gemm_store_exchanged(const ops_gemm_exchange *p)
{
    ops_gemm_emitter *e = p->e;
    hal_ir_builder *b = e->b;
    const uint32_t warp_m = e->a.lanes * e->a.thread, warp_n = e->c.lanes * e->c.thread;
    const uint32_t warps_n = e->c.block / warp_n, pitch = exchange_pitch(e->tiles);
    const uint32_t lanes = HAL_IR_MATRIX_LANES, length = e->key->unit_c ? warp_n : warp_m;
    hal_ir_value warp = ops_gemm_quotient(e, e->item, lanes),
                 lane = ops_gemm_rest(e, e->item, lanes);
    hal_ir_value begin = ops_gemm_times(e, warp, warp_m * pitch);
    hal_ir_value far = ops_gemm_quotient(e, lane, length < lanes ? length : lanes);
    hal_ir_value near = ops_gemm_rest(e, lane, length < lanes ? length : lanes);
    hal_ir_value row = e->key->unit_c ? far : near, column = e->key->unit_c ? near : far;
    write_sums(p, begin);
    begin = hal_ir_add(b, begin, hal_ir_add(b, ops_gemm_times(e, row, pitch), column));
    row = hal_ir_add(b, row, ops_gemm_times(e, ops_gemm_quotient(e, warp, warps_n), warp_m));
    row = hal_ir_add(b, row, e->a.origin);
    column = hal_ir_add(b, column, ops_gemm_times(e, ops_gemm_rest(e, warp, warps_n), warp_n));
    column = hal_ir_add(b, column, e->c.origin);
    for (uint32_t i = 0; i < warp_m * warp_n; i += lanes) {
        const uint32_t further[2] = {i / length, i % length};
        const uint32_t down = further[e->key->unit_c ? 0 : 1], across = further[e->key->unit_c];
        ops_gemm_element element;
        hal_ir_value at[2] = {ops_gemm_plus(e, row, down), ops_gemm_plus(e, column, across)};
        hal_ir_value guard = HAL_IR_NONE;
        if (!e->key->whole) {
            guard = hal_ir_and(b, hal_ir_lt(b, at[0], e->m), hal_ir_lt(b, at[1], e->n));
        }
        ops_gemm_fetch_element(e, at[0], at[1], guard, &element);
        hal_ir_value sum =
            hal_ir_load_wide(b, p->shared, begin, (int32_t)(down * pitch + across), 1, HAL_IR_NONE);
        ops_gemm_store_element(
            e, &element, p->type == HAL_TYPE_U32 ? hal_ir_bitcast(b, HAL_TYPE_F32, sum) : sum);
    }
}
