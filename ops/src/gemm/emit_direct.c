/* The portable GEMM kernel without shared memory: work-items read A and B from global memory. */
#include "emitter.h"

/* Computes where the work-item's lines begin. Lines beyond the last read the last one, and their
 * results are not stored. A single column is guarded instead (`clamped` 0): compilers do not see
 * through the clamp that neighbouring work-items read neighbours. */
static void place_lines(ops_gemm_emitter *e, ops_gemm_side *s, int clamped)
{
    hal_ir_builder *b = e->b;
    uint32_t group = s->operand->k_contiguous ? 1 : s->operand->width;
    for (uint32_t i = 0; i < s->thread; i++) {
        uint32_t first = i / group * group;
        if (i != first) {
            s->line[i] = HAL_IR_NONE;
            continue;
        }
        hal_ir_value line = ops_gemm_own_line(e, s, i);
        if (clamped && !e->key->whole) {
            hal_ir_value last = hal_ir_sub(b, s->limit, hal_ir_u32(b, group));
            line = hal_ir_min(b, line, last);
        }
        s->line[i] = ops_gemm_address(e, s, line, hal_ir_u32(b, 0));
    }
}

/* Loads values[line * steps + step] of neighbouring lines, for steps of k from k on. */
static void read_lines(ops_gemm_emitter *e, const ops_gemm_side *s, uint32_t line, uint32_t lines,
                       hal_ir_value k, uint32_t steps, hal_ir_value guard, hal_ir_value *values)
{
    hal_ir_builder *b = e->b;
    uint32_t width = s->operand->width;
    if (s->operand->k_contiguous) {
        width = width < steps ? width : steps;
        hal_ir_value place = hal_ir_add(b, s->line[line], ops_gemm_index(e, k));
        for (uint32_t step = 0; step < steps; step += width) {
            hal_ir_value vector =
                hal_ir_load_wide(b, s->memory, place, (int32_t)step, width, guard);
            for (uint32_t i = 0; i < width; i++) {
                values[step + i] = width == 1 ? vector : hal_ir_extract(b, vector, i);
            }
        }
        return;
    }
    for (uint32_t step = 0; step < steps; step++) {
        hal_ir_value row = hal_ir_mul(b, ops_gemm_index(e, ops_gemm_plus(e, k, step)), s->stride);
        hal_ir_value place = hal_ir_add(b, s->line[line], row);
        uint32_t wide = lines == 1 ? 1 : width;
        hal_ir_value vector = hal_ir_load_wide(b, s->memory, place, 0, wide, guard);
        for (uint32_t i = 0; i < lines; i++) {
            values[i * steps + step] = wide == 1 ? vector : hal_ir_extract(b, vector, i);
        }
    }
}

static void multiply_steps(ops_gemm_emitter *e, hal_ir_value k, uint32_t steps)
{
    hal_ir_value rows[OPS_GEMM_MAX_FRAGMENT], columns[OPS_GEMM_MAX_FRAGMENT];
    ops_gemm_get_sums(e);
    uint32_t group = e->c.operand->k_contiguous ? 1 : e->c.operand->width;
    for (uint32_t j = 0; j < e->c.thread; j += group) {
        hal_ir_value guard = HAL_IR_NONE;
        if (!e->key->whole && e->c.thread == 1) {
            guard = hal_ir_lt(e->b, ops_gemm_own_line(e, &e->c, j), e->n);
        }
        read_lines(e, &e->c, j, group, k, steps, guard, columns + j * steps);
    }
    group = e->a.operand->k_contiguous ? 1 : e->a.operand->width;
    for (uint32_t i = 0; i < e->a.thread; i += group) {
        read_lines(e, &e->a, i, group, k, steps, HAL_IR_NONE, rows);
        for (uint32_t step = 0; step < steps; step++) {
            for (uint32_t r = 0; r < group; r++) {
                for (uint32_t j = 0; j < e->c.thread; j++) {
                    ops_gemm_multiply(e, i + r, j, rows[r * steps + step],
                                      columns[j * steps + step]);
                }
            }
        }
    }
    ops_gemm_set_sums(e);
}

void ops_gemm_emit_direct(ops_gemm_emitter *e)
{
    hal_ir_builder *b = e->b;
    uint32_t depth = e->key->in_loops ? 1 : e->tiles->block_k;
    place_lines(e, &e->a, 1);
    place_lines(e, &e->c, e->c.thread > 1);
    hal_ir_value rest = hal_ir_and(b, e->k, hal_ir_u32(b, depth - 1));
    hal_ir_value whole = hal_ir_sub(b, e->k, rest);
    hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), whole, hal_ir_u32(b, depth));
    multiply_steps(e, k, depth);
    hal_ir_end(b);
    if (depth > 1) {
        k = hal_ir_for(b, whole, e->k, hal_ir_u32(b, 1));
        multiply_steps(e, k, 1);
        hal_ir_end(b);
    }
    ops_gemm_get_sums(e);
}
