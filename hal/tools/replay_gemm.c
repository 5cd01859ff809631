/* Matrix products as plain IR, for plugins without an own product. Slow and simple: each work-item
 * computes one element of C. */
#include "replay_kernel.h"

#include <stdbool.h>
#include <stdio.h>

enum { GROUP = 64, GRID_X = 32768 };

/* The builder and shared values. */
typedef struct emitter {
    hal_ir_builder *b;
    const hal_gemm_description *gemm;
    hal_type sum_type, index_type;
    hal_ir_memory_id a, b_matrix, c, inputs[HAL_GEMM_MAX_INPUTS], offsets;
    hal_ir_value alpha, beta;
    hal_ir_value row, column, batch; /* of index_type */
} emitter;

/* The largest element index of any operand; UINT64_MAX for overflow or a negative stride. */
static uint64_t largest_index(const hal_gemm_description *gemm)
{
    const int64_t rows[3] = {gemm->transpose_a ? gemm->k : gemm->m,
                             gemm->transpose_b ? gemm->n : gemm->k, gemm->m};
    const int64_t strides[3] = {gemm->lda, gemm->ldb, gemm->ldc};
    const int64_t batches[3] = {gemm->stride_a, gemm->stride_b, gemm->stride_c};
    uint64_t furthest = 0;
    for (uint32_t i = 0; i < 3 + gemm->input_count; i++) {
        const hal_gemm_input *input = i < 3 ? NULL : &gemm->inputs[i - 3];
        const int64_t parts[3][2] = {
            {input ? gemm->m : rows[i], input ? input->row_stride : strides[i]},
            {gemm->n, input ? input->column_stride : 0},
            {gemm->batch, input ? input->batch_stride : batches[i]}};
        uint64_t sum = 0;
        for (uint32_t p = 0; p < 3; p++) {
            uint64_t product = 0;
            if (parts[p][0] < 0 || parts[p][1] < 0 ||
                __builtin_mul_overflow((uint64_t)parts[p][0], (uint64_t)parts[p][1], &product) ||
                __builtin_add_overflow(sum, product, &sum)) {
                return UINT64_MAX;
            }
        }
        furthest = sum > furthest ? sum : furthest;
    }
    return furthest;
}

static void emit_declarations(emitter *e)
{
    const hal_gemm_description *gemm = e->gemm;
    hal_ir_group_size(e->b, GROUP, 1, 1);
    e->a = hal_ir_binding(e->b, "a", gemm->type_a, HAL_ACCESS_READ);
    e->b_matrix = hal_ir_binding(e->b, "b", gemm->type_b, HAL_ACCESS_READ);
    e->c = hal_ir_binding(e->b, "c", gemm->type_c,
                          gemm->beta_is_zero ? HAL_ACCESS_WRITE : HAL_ACCESS_READ_WRITE);
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "input%u", i);
        e->inputs[i] = hal_ir_binding(e->b, name, gemm->inputs[i].type, HAL_ACCESS_READ);
    }
    if (gemm->type_offsets != HAL_TYPE_NONE) {
        e->offsets = hal_ir_binding(e->b, "offsets", gemm->type_offsets, HAL_ACCESS_READ);
    }
    e->alpha = hal_ir_scalar_value(e->b, "alpha", e->sum_type);
    e->beta = hal_ir_scalar_value(e->b, "beta", e->sum_type);
}

static hal_ir_value index_of(const emitter *e, int64_t number)
{
    return e->index_type == HAL_TYPE_U64 ? hal_ir_u64(e->b, (uint64_t)number)
                                         : hal_ir_u32(e->b, (uint32_t)number);
}

/* The work-item's row, column and batch. Returns whether the element exists. */
static hal_ir_value emit_element(emitter *e, uint64_t count)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->index_type;
    const hal_ir_value x = hal_ir_cast(b, type, hal_ir_id(b, HAL_IR_GROUP_ID, 0));
    const hal_ir_value y = hal_ir_cast(b, type, hal_ir_id(b, HAL_IR_GROUP_ID, 1));
    const hal_ir_value local = hal_ir_cast(b, type, hal_ir_id(b, HAL_IR_LOCAL_ID, 0));
    const hal_ir_value group = hal_ir_add(b, hal_ir_mul(b, y, index_of(e, GRID_X)), x);
    const hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, group, index_of(e, GROUP)), local);
    const hal_ir_value columns = index_of(e, e->gemm->n), rows = index_of(e, e->gemm->m);
    const hal_ir_value line = hal_ir_div(b, item, columns);
    e->column = hal_ir_rem(b, item, columns);
    e->row = hal_ir_rem(b, line, rows);
    e->batch = hal_ir_div(b, line, rows);
    return hal_ir_lt(b, item, index_of(e, (int64_t)count));
}

/* Whether the row belongs to the group that is the batch: each group has a work-item for it. */
static hal_ir_value emit_row_in_group(const emitter *e)
{
    hal_ir_builder *b = e->b;
    const hal_type type = e->gemm->type_offsets;
    const hal_ir_value next = hal_ir_add(b, e->batch, index_of(e, 1));
    const hal_ir_value row = hal_ir_cast(b, type, e->row);
    const hal_ir_value begin = hal_ir_load(b, e->offsets, e->batch);
    const hal_ir_value end = hal_ir_load(b, e->offsets, next);
    return hal_ir_and(b, hal_ir_le(b, begin, row), hal_ir_lt(b, row, end));
}

static hal_ir_value emit_index(const emitter *e, hal_ir_value row, int64_t row_stride,
                               hal_ir_value column, int64_t column_stride, int64_t batch_stride)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value in_row = hal_ir_mul(b, row, index_of(e, row_stride));
    const hal_ir_value in_column = hal_ir_mul(b, column, index_of(e, column_stride));
    const hal_ir_value in_batch = hal_ir_mul(b, e->batch, index_of(e, batch_stride));
    return hal_ir_add(b, hal_ir_add(b, in_row, in_column), in_batch);
}

static hal_ir_value emit_sum(emitter *e)
{
    hal_ir_builder *b = e->b;
    const hal_gemm_description *gemm = e->gemm;
    const hal_ir_value sum = hal_ir_var(b, hal_ir_number(b, e->sum_type, 0));
    const hal_ir_value i = hal_ir_cast(
        b, e->index_type,
        hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, (uint32_t)gemm->k), hal_ir_u32(b, 1)));
    const hal_ir_value at_a = gemm->transpose_a
                                  ? emit_index(e, i, gemm->lda, e->row, 1, gemm->stride_a)
                                  : emit_index(e, e->row, gemm->lda, i, 1, gemm->stride_a);
    const hal_ir_value at_b = gemm->transpose_b
                                  ? emit_index(e, e->column, gemm->ldb, i, 1, gemm->stride_b)
                                  : emit_index(e, i, gemm->ldb, e->column, 1, gemm->stride_b);
    const hal_ir_value x = hal_ir_cast(b, e->sum_type, hal_ir_load(b, e->a, at_a));
    const hal_ir_value y = hal_ir_cast(b, e->sum_type, hal_ir_load(b, e->b_matrix, at_b));
    hal_ir_set(b, sum, hal_ir_fma(b, x, y, hal_ir_get(b, sum)));
    hal_ir_end(b);
    return hal_ir_get(b, sum);
}

/* Applies the epilogue, if there is one. */
static hal_ir_value emit_epilogue(emitter *e, const hal_ir_kernel *epilogue, hal_ir_value value)
{
    hal_ir_value inputs[4 + HAL_GEMM_MAX_INPUTS], output = value;
    if (!epilogue) {
        return value;
    }
    inputs[0] = value;
    inputs[1] = hal_ir_cast(e->b, HAL_TYPE_U32, e->row);
    inputs[2] = hal_ir_cast(e->b, HAL_TYPE_U32, e->column);
    inputs[3] = hal_ir_cast(e->b, HAL_TYPE_U32, e->batch);
    for (uint32_t i = 0; i < e->gemm->input_count; i++) {
        const hal_gemm_input *input = &e->gemm->inputs[i];
        inputs[4 + i] = hal_ir_load(e->b, e->inputs[i],
                                    emit_index(e, e->row, input->row_stride, e->column,
                                               input->column_stride, input->batch_stride));
    }
    hal_ir_splice(e->b, epilogue, inputs, epilogue->input_count, &output, 1);
    return output;
}

hal_status replay_plain_gemm(const hal_gemm_description *gemm, const hal_ir_kernel *epilogue,
                             hal_ir_kernel **ir)
{
    uint32_t grid[3];
    replay_plain_grid(gemm, grid);
    const uint64_t count = (uint64_t)gemm->m * (uint64_t)gemm->n * gemm->batch;
    emitter e = {.gemm = gemm, .sum_type = replay_gemm_accumulator(gemm)};
    *ir = NULL;
    if (!hal_type_is_float(gemm->type_a) || !hal_type_is_float(gemm->type_b) ||
        !hal_type_is_float(gemm->type_c) || gemm->m <= 0 || gemm->n <= 0 || gemm->k < 0 ||
        gemm->k > INT32_MAX || gemm->m > UINT32_MAX || gemm->n > UINT32_MAX || grid[0] == 0 ||
        largest_index(gemm) > UINT64_MAX / 2) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "gemm: expected float types and sizes that a plain kernel supports, "
                              "got %lld x %lld x %lld",
                              (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
    }
    e.index_type =
        largest_index(gemm) > UINT32_MAX || count > UINT32_MAX ? HAL_TYPE_U64 : HAL_TYPE_U32;
    HAL_TRY(hal_ir_builder_create("gemm", &e.b));
    emit_declarations(&e);
    hal_ir_if(e.b, emit_element(&e, count));
    if (gemm->type_offsets != HAL_TYPE_NONE) {
        hal_ir_if(e.b, emit_row_in_group(&e));
    }
    const hal_ir_value at = emit_index(&e, e.row, gemm->ldc, e.column, 1, gemm->stride_c);
    hal_ir_value value = hal_ir_mul(e.b, e.alpha, emit_sum(&e));
    if (!gemm->beta_is_zero) {
        const hal_ir_value old = hal_ir_cast(e.b, e.sum_type, hal_ir_load(e.b, e.c, at));
        value = hal_ir_fma(e.b, e.beta, old, value);
    }
    value = emit_epilogue(&e, epilogue, value);
    hal_ir_store(e.b, e.c, at, hal_ir_cast(e.b, hal_type_of_value(gemm->type_c), value));
    if (gemm->type_offsets != HAL_TYPE_NONE) {
        hal_ir_end(e.b);
    }
    hal_ir_end(e.b);
    hal_status status = hal_ir_builder_finish(e.b, ir);
    hal_ir_builder_destroy(e.b);
    return status;
}

/* Groups in x and y, as one dimension may not suffice; zeros if neither does. */
void replay_plain_grid(const hal_gemm_description *gemm, uint32_t grid[3])
{
    const uint64_t plane = (uint64_t)gemm->m * (uint64_t)gemm->n;
    const uint64_t groups = (plane * gemm->batch + GROUP - 1) / GROUP;
    const uint64_t y = (groups + GRID_X - 1) / GRID_X;
    const bool fits = gemm->m > 0 && gemm->n > 0 &&
                      plane / (uint64_t)gemm->n == (uint64_t)gemm->m && plane < UINT64_C(1) << 40 &&
                      gemm->batch < 1u << 20 && y <= UINT16_MAX;
    grid[0] = fits ? (uint32_t)(groups < GRID_X ? groups : GRID_X) : 0;
    grid[1] = fits ? (uint32_t)y : 0;
    grid[2] = 1;
}

hal_type replay_gemm_accumulator(const hal_gemm_description *gemm)
{
    return gemm->type_a == HAL_TYPE_F64 || gemm->type_b == HAL_TYPE_F64 ? HAL_TYPE_F64
                                                                        : HAL_TYPE_F32;
}
