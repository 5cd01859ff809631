/* Views of deferred arrays: computed in the kernel of what reads them, stored where something else
 * needs them, with the same bits as without fusion. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { MOST = 4096 };

static uint64_t kernels(void)
{
    return statistics_of(test_context).kernels;
}

static ops_array *ramp(uint32_t rank, const int64_t *shape)
{
    return made(
        ops_array_uniform(test_context, HAL_TYPE_F32, rank, shape, (ops_random_key){3, 4}, -1, 1));
}

static const int64_t matrix_shape[2] = {6, 8}, flat_shape[1] = {48}, cube_shape[3] = {2, 3, 8};
static const int64_t wide_shape[3] = {5, 6, 8};
static const int32_t rotation[3] = {2, 0, 1};

/* Programs of one input [6, 8]; each has to be the number of kernels that its row tells. */
static ops_array *tanh_of_reshape(ops_array *x)
{
    return ops_tanh(ops_array_reshape(ops_square(x), 1, flat_shape));
}
static ops_array *tanh_of_transpose(ops_array *x)
{
    return ops_tanh(ops_array_transpose(ops_square(x), 0, 1));
}
static ops_array *tanh_of_slice(ops_array *x)
{
    return ops_tanh(ops_array_slice(ops_square(x), 1, 6, 3, -2));
}
static ops_array *tanh_of_broadcast(ops_array *x)
{
    return ops_tanh(ops_array_broadcast(ops_square(x), 3, wide_shape));
}
static ops_array *tanh_of_permute(ops_array *x)
{
    return ops_tanh(ops_array_permute(ops_array_reshape(ops_square(x), 3, cube_shape), rotation));
}
static ops_array *views_of_views(ops_array *x)
{
    ops_array *y = ops_array_slice(ops_array_transpose(ops_square(x), 0, 1), 0, 1, 4, 2);
    y = ops_array_slice(ops_exp(ops_array_transpose(ops_neg(y), 0, 1)), 0, 5, 6, -1);
    return ops_add(y, ops_array_slice(ops_array_slice(ops_cos(x), 1, 1, 5, 1), 1, 0, 4, 1));
}
static ops_array *bias_before_reshape(ops_array *x)
{
    ops_array *row = ops_array_slice(x, 0, 2, 1, 1);
    return ops_tanh(ops_array_reshape(ops_add(x, row), 3, cube_shape));
}
static ops_array *view_used_twice(ops_array *x)
{
    ops_array *half = ops_array_slice(ops_exp(x), 1, 2, 4, 1);
    return ops_mul(half, ops_sigmoid(half));
}
static ops_array *halves(ops_array *x)
{
    ops_array *y = ops_exp(x);
    return ops_sub(ops_array_slice(y, 1, 0, 4, 1), ops_array_slice(y, 1, 4, 4, 1));
}
static ops_array *sum_of_reshape(ops_array *x)
{
    return ops_reduce_sum(ops_array_reshape(ops_square(x), 3, cube_shape), 2);
}
static ops_array *sum_of_transpose(ops_array *x)
{
    return ops_reduce_sum(ops_array_transpose(ops_square(x), 0, 1), 0);
}
static ops_array *sum_of_slice(ops_array *x)
{
    return ops_reduce_sum(ops_neg(ops_array_slice(ops_square(x), 1, 1, 5, 1)), 1);
}
static ops_array *rows_of_reshape(ops_array *x)
{
    ops_array *y = ops_array_reshape(ops_square(x), 3, cube_shape);
    y = ops_sub(y, ops_array_reduce(OPS_REDUCE_MEAN, 2, 1, y));
    return ops_div(y, ops_array_reduce(OPS_REDUCE_MAX, 2, 1, ops_abs(y)));
}
static ops_array *row_across_axes(ops_array *x) /* no strides: the sum is stored */
{
    return ops_tanh(ops_array_reshape(ops_add(x, ops_array_slice(x, 1, 0, 1, 1)), 1, flat_shape));
}
static ops_array *normalised_reshape(ops_array *x) /* the rows are a kernel by themselves */
{
    ops_array *e = ops_exp(ops_sub(x, ops_array_reduce(OPS_REDUCE_MAX, 1, 1, x)));
    e = ops_div(e, ops_array_reduce(OPS_REDUCE_SUM, 1, 1, e));
    return ops_tanh(ops_array_reshape(e, 1, flat_shape));
}

static ops_array *view_in_epilogue(ops_array *x)
{
    return ops_add(ops_matmul(x, ops_array_transpose(x, 0, 1)),
                   ops_array_slice(ops_exp(x), 1, 1, 6, 1));
}

typedef struct view_program {
    ops_array *(*make)(ops_array *x);
    uint32_t kernels;
} view_program;

static const view_program programs[] = {
    {tanh_of_reshape, 1}, {tanh_of_transpose, 1}, {tanh_of_slice, 1},       {tanh_of_broadcast, 1},
    {tanh_of_permute, 1}, {views_of_views, 1},    {bias_before_reshape, 1}, {view_used_twice, 1},
    {halves, 1},          {sum_of_reshape, 1},    {sum_of_transpose, 1},    {sum_of_slice, 1},
    {rows_of_reshape, 1}, {row_across_axes, 2},   {normalised_reshape, 2},  {view_in_epilogue, 1},
};

static uint64_t program_run(const view_program *program, ops_array *x, int fusion, float *got)
{
    ops_context_set_fusion(test_context, fusion);
    const uint64_t before = kernels();
    ok(ops_scope_begin(test_context));
    ops_array *y = made(program->make(x));
    const uint64_t bytes = (uint64_t)ops_array_get_element_count(y) * sizeof(float);
    assert_true(bytes <= MOST * sizeof(float));
    ok(ops_array_evaluate(&y, 1));
    const uint64_t count = kernels() - before;
    ok(ops_array_read(y, bytes, got));
    ok(ops_scope_end(test_context));
    ops_context_set_fusion(test_context, 1);
    return count;
}

static void views_stay_in_the_kernel(void **state)
{
    static float got[2][MOST];
    ops_array *x = ramp(2, matrix_shape);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        memset(got, 0, sizeof got);
        const uint64_t count = program_run(&programs[i], x, 1, got[0]);
        if (count != programs[i].kernels) {
            fail_msg("program %zu: %llu kernels", i, (unsigned long long)count);
        }
        program_run(&programs[i], x, 0, got[1]);
        assert_memory_equal(got[0], got[1], sizeof got[0]);
        program_run(&programs[i], x, 1, got[0]); /* replayed */
        assert_memory_equal(got[0], got[1], sizeof got[0]);
    }
    ops_array_release(x);
}

/* Equal programs but for the view are different kernels. */
static void views_are_told_apart(void **state)
{
    static const int64_t shape[1] = {64};
    ops_array *x = ramp(1, shape);
    float all[64], got[8];
    ok(ops_array_read(x, sizeof all, all));
    for (int64_t start = 0; start < 8; start++) {
        for (int64_t step = 1; step < 4; step++) {
            ok(ops_scope_begin(test_context));
            ok(ops_array_read(ops_neg(ops_array_slice(ops_neg(x), 0, start, 8, step)), sizeof got,
                              got));
            ok(ops_scope_end(test_context));
            for (int64_t i = 0; i < 8; i++) {
                assert_true(got[i] == all[start + i * step]);
            }
        }
    }
    ops_array_release(x);
}

/* The source of a view, or the view itself, that the caller holds. */
static void held_sources_are_stored(void **state)
{
    ops_array *x = ramp(2, matrix_shape);
    float all[48], got[48];
    ok(ops_array_read(x, sizeof all, all));
    /* The elements of a reshape are those of its source: one kernel stores both. */
    uint64_t before = kernels();
    ops_array *y = ops_square(x), *flat = ops_array_reshape(y, 1, flat_shape), *z = ops_neg(flat);
    ok(ops_array_evaluate(&z, 1));
    assert_int_equal(kernels(), before + 1);
    assert_int_equal(y->state, OPS_NODE_MEMORY);
    ok(ops_array_read(flat, sizeof got, got));
    for (int i = 0; i < 48; i++) {
        assert_true(got[i] == all[i] * all[i]);
    }
    ok(ops_array_read(z, sizeof got, got));
    for (int i = 0; i < 48; i++) {
        assert_true(got[i] == -(all[i] * all[i]));
    }
    release_all(y, flat, z);
    /* A transposition as well. */
    before = kernels();
    y = ops_square(x);
    ops_array *across = ops_array_transpose(y, 0, 1);
    z = ops_neg(across);
    ok(ops_array_evaluate(&z, 1));
    assert_int_equal(kernels(), before + 1);
    assert_int_equal(y->state, OPS_NODE_MEMORY);
    ok(ops_array_read(across, sizeof got, got));
    for (int i = 0; i < 48; i++) {
        assert_true(got[i] == all[i % 6 * 8 + i / 6] * all[i % 6 * 8 + i / 6]);
    }
    release_all(y, across, z);
    /* Of a slice, all of the source is stored first. */
    before = kernels();
    y = ops_square(x);
    ops_array *part = ops_array_slice(y, 0, 1, 2, 1);
    z = ops_neg(part);
    ok(ops_array_evaluate(&z, 1));
    assert_int_equal(kernels(), before + 2);
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < 48; i++) {
        assert_true(got[i] == all[i] * all[i]);
    }
    ok(ops_array_read(z, 16 * sizeof *got, got));
    for (int i = 0; i < 16; i++) {
        assert_true(got[i] == -(all[8 + i] * all[8 + i]));
    }
    release_all(y, part, z, x);
}

/* A view that a scope holds is computed again if it is read later, and stored then. */
static void scoped_views_are_computed_again(void **state)
{
    ops_array *x = ramp(2, matrix_shape);
    float all[48], got[48];
    ok(ops_array_read(x, sizeof all, all));
    ok(ops_scope_begin(test_context));
    const uint64_t before = kernels();
    ops_array *part = ops_array_slice(ops_square(x), 0, 1, 2, 1);
    ok(ops_array_read(ops_neg(part), 16 * sizeof *got, got));
    assert_int_equal(kernels(), before + 1);
    assert_int_equal(part->state, OPS_NODE_DEFERRED);
    ok(ops_array_read(ops_abs(part), 16 * sizeof *got, got));
    assert_int_equal(kernels(), before + 3);
    ok(ops_array_read(part, 16 * sizeof *got, got));
    assert_int_equal(kernels(), before + 3);
    for (int i = 0; i < 16; i++) {
        assert_true(got[i] == all[8 + i] * all[8 + i]);
    }
    ok(ops_scope_end(test_context));
    ops_array_release(x);
}

/* An LSTM step: a product with the sum of all gates as its epilogue, and one kernel of the gates,
 * which are slices of it. */
static void lstm_step_is_two_kernels(void **state)
{
    static const int64_t h_shape[2] = {3, 8}, u_shape[2] = {8, 32}, gate_shape[2] = {3, 32};
    static float got[2][2][24];
    ops_array *h = ramp(2, h_shape), *c = ramp(2, h_shape), *u = ramp(2, u_shape);
    ops_array *x = ramp(2, gate_shape), *bias = ramp(1, &u_shape[1]);
    for (int fusion = 0; fusion < 2; fusion++) {
        ops_context_set_fusion(test_context, fusion);
        const uint64_t before = kernels();
        ok(ops_scope_begin(test_context));
        ops_array *z = ops_add(ops_add(ops_matmul(h, u), x), bias), *gate[4];
        for (int i = 0; i < 4; i++) {
            gate[i] = ops_array_slice(z, 1, 8 * i, 8, 1);
        }
        ops_array *state_ = ops_add(ops_mul(ops_sigmoid(gate[0]), c),
                                    ops_mul(ops_sigmoid(gate[1]), ops_tanh(gate[2])));
        ops_array *next[2] = {ops_array_keep(state_), NULL};
        next[1] = ops_array_keep(ops_mul(ops_sigmoid(gate[3]), ops_tanh(state_)));
        ok(ops_scope_end(test_context));
        ok(ops_array_evaluate(next, 2));
        if (fusion) {
            assert_int_equal(kernels(), before + 2);
        }
        for (int i = 0; i < 2; i++) {
            ok(ops_array_read(next[i], sizeof got[fusion][i], got[fusion][i]));
            ops_array_release(next[i]);
        }
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    release_all(h, c, u, x, bias);
}

/* Chains of operations and views stay within the limits of kernels and of the host's stack. */
static void long_chains_of_views_end(void **state)
{
    ops_array *x = ramp(2, matrix_shape), *held[600];
    static float got[2][48];
    for (int hold = 0; hold < 2; hold++) {
        for (int fusion = 0; fusion < 2; fusion++) {
            ops_context_set_fusion(test_context, fusion);
            ok(ops_scope_begin(test_context));
            ops_array *y = x;
            uint32_t count = 0;
            for (int i = 0; i < 300; i++) {
                y = made(ops_array_transpose(ops_sin(y), 0, 1));
                held[count++] = hold ? ops_array_retain(y) : NULL;
                y = made(ops_array_reshape(ops_neg(y), 1, flat_shape));
                y = made(ops_array_reshape(y, 2, matrix_shape));
                held[count++] = hold ? ops_array_retain(y) : NULL;
            }
            ok(ops_array_read(y, sizeof got[fusion], got[fusion]));
            for (uint32_t i = 0; i < count; i++) {
                ops_array_release(held[i]);
            }
            ok(ops_scope_end(test_context));
        }
        assert_memory_equal(got[0], got[1], sizeof got[0]);
    }
    ops_array_release(x);
}

/* A number and a row that each step of a loop makes again are one input of its kernel each. */
static ops_array *loop_of(ops_array *x, ops_array *row, uint32_t turns)
{
    ops_array *y = ops_array_retain(x);
    for (uint32_t i = 0; i < turns; i++) {
        ops_array *half = made(ops_array_binary_scalar(OPS_MUL, y, 0.5));
        ops_array *view = made(ops_array_broadcast(row, 2, matrix_shape));
        ops_array *sum = made(ops_add(half, view));
        release_all(y, half, view);
        y = sum;
    }
    return y;
}

static void operands_that_are_made_again_are_one_leaf(void **state)
{
    static float got[2][2][48];
    const uint32_t turns = OPS_CLUSTER_OPERATIONS / 2 - 1;
    ops_array *x = ramp(2, matrix_shape), *row = ramp(1, matrix_shape + 1);
    ok(ops_array_evaluate((ops_array *[]){x, row}, 2));
    for (int fusion = 0; fusion < 2; fusion++) {
        ops_context_set_fusion(test_context, fusion);
        const uint64_t before = kernels();
        ops_array *y = loop_of(x, row, turns);
        ok(ops_array_read(y, sizeof got[0][fusion], got[0][fusion]));
        assert_int_equal(kernels() - before, fusion ? 1 : 2 * turns);
        ops_array_release(y);
        /* The same within a view. */
        const uint64_t middle = kernels();
        y = loop_of(x, row, turns);
        ops_array *turned = made(ops_array_transpose(y, 0, 1)), *z = made(ops_neg(turned));
        release_all(y, turned);
        ok(ops_array_evaluate(&z, 1));
        assert_int_equal(kernels() - middle, fusion ? 1 : 2 * turns + 1);
        ok(ops_array_read(z, sizeof got[1][fusion], got[1][fusion]));
        ops_array_release(z);
    }
    assert_memory_equal(got[0][0], got[0][1], sizeof got[0][0]);
    assert_memory_equal(got[1][0], got[1][1], sizeof got[1][0]);
    release_all(x, row);
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

/* Casts to a larger type are made again by each kernel that reads them, as themselves or as a view,
 * of what is stored in the smaller one. */
static void wider_casts_are_not_stored(void **state)
{
    enum { ROWS = 6, COLUMNS = 8, STEPS = 2 };
    float sums[2][ROWS], twice[2][ROWS * COLUMNS], wide[2][ROWS * COLUMNS];
    for (int fused = 0; fused < 2; fused++) {
        ops_context_set_fusion(test_context, fused);
        for (int step = 0; step < STEPS; step++) { /* x is in memory, or deferred and held */
            ok(ops_scope_begin(test_context));
            ops_array *x = ops_array_keep(ops_array_cast(HAL_TYPE_F16, ramp(2, matrix_shape)));
            ok(step ? HAL_OK : ops_array_evaluate(&x, 1));
            const uint64_t before = kernels();
            ops_array *cast = ops_array_cast(HAL_TYPE_F32, x);
            ops_array *view = ops_array_reshape(cast, 3, cube_shape);
            ops_array *sum = ops_array_reduce(OPS_REDUCE_SUM, 1, 0, ops_neg(cast));
            ops_array *total = ops_array_reduce(OPS_REDUCE_SUM, 2, 0, view);
            ops_array *y = ops_add(cast, cast);
            ok(ops_array_evaluate((ops_array *[]){sum, total, y}, 3));
            if (fused) {
                assert_int_equal(kernels() - before, 3 + step);
                assert_int_equal(cast->state, OPS_NODE_DEFERRED);
            }
            ok(ops_array_read(total, sizeof sums[fused], sums[fused]));
            ok(ops_array_read(y, sizeof twice[fused], twice[fused]));
            ok(ops_array_read(cast, sizeof wide[fused], wide[fused])); /* stored when asked for */
            ok(ops_scope_end(test_context));
            ops_array_release(x);
        }
    }
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    assert_memory_equal(twice[0], twice[1], sizeof twice[0]);
    assert_memory_equal(wide[0], wide[1], sizeof wide[0]);
}

/* Once its operand is stored, such a cast is one operation, however many that took. */
static void remade_casts_count_as_one(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *x = ops_array_cast(HAL_TYPE_F16, ramp(2, matrix_shape));
    for (uint32_t i = 0; i < OPS_CLUSTER_OPERATIONS - 4; i++) {
        x = ops_neg(x);
    }
    x = ops_array_keep(x);
    ops_array *y = ops_array_cast(HAL_TYPE_F32, x);
    ok(ops_array_evaluate(&x, 1));
    const uint64_t before = kernels();
    for (int i = 0; i < 8; i++) {
        y = ops_sin(y);
    }
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(kernels() - before, 1);
    ok(ops_scope_end(test_context));
    ops_array_release(x);
}

/* A kernel that waits takes the operand of a reduction with it: what it is computed of starts. */
static void early_starts_leave_prologues(void **state)
{
    enum { MEANS = 9 };
    ok(ops_scope_begin(test_context));
    ops_array *x = ramp(2, matrix_shape), *y = x;
    ok(ops_array_evaluate(&x, 1));
    const uint64_t before = kernels();
    for (int i = 0; i < MEANS; i++) {
        y = ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, ops_square(y));
        y = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, 0, 1, y));
    }
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(kernels() - before, 2 * MEANS + 1);
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_stay_in_the_kernel),
        cmocka_unit_test(views_are_told_apart),
        cmocka_unit_test(held_sources_are_stored),
        cmocka_unit_test(scoped_views_are_computed_again),
        cmocka_unit_test(lstm_step_is_two_kernels),
        cmocka_unit_test(long_chains_of_views_end),
        cmocka_unit_test(operands_that_are_made_again_are_one_leaf),
        cmocka_unit_test(wider_casts_are_not_stored),
        cmocka_unit_test(remade_casts_count_as_one),
        cmocka_unit_test(early_starts_leave_prologues),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
