/* Horizontal fusion: plans of equal form over arrays of different shapes are few kernels, with the
 * bits of one kernel each; what cannot be joined is computed as usual; arrays that share a buffer
 * behave like others. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { TENSORS = 150, MOST = 4096 };

static ops_array_statistics statistics(void)
{
    return statistics_of(test_context);
}

static int64_t length_of(uint32_t i)
{
    static const int64_t odd[] = {1, 10, 3, 64, 257, 1000, 1024, 4093};
    return i % 9 < 8 ? odd[i % 9] : 11 + i;
}

static ops_array *numbers(hal_type type, int64_t count, uint64_t seed)
{
    return made(ops_array_uniform(test_context, type, 1, &count, (ops_random_key){5, seed}, 0, 4));
}

/* ---- An optimizer ---- */

typedef struct model {
    ops_array *p[TENSORS], *m[TENSORS], *v[TENSORS], *g[TENSORS];
} model;

static void model_open(model *x)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        x->p[i] = numbers(HAL_TYPE_F32, length_of(i), i);
        x->g[i] = numbers(HAL_TYPE_F32, length_of(i), 1000 + i);
        x->m[i] = numbers(HAL_TYPE_F32, length_of(i), 2000 + i);
        x->v[i] = numbers(HAL_TYPE_F32, length_of(i), 3000 + i);
    }
}

static void model_close(model *x)
{
    arrays_release(x->p, TENSORS);
    arrays_release(x->m, TENSORS);
    arrays_release(x->v, TENSORS);
    arrays_release(x->g, TENSORS);
}

static void replace(ops_array **x, ops_array *value, bool updates)
{
    ops_tensor all;
    if (updates) {
        ok(ops_array_describe(*x, &all));
        value = ops_array_update(*x, &all, value);
    }
    value = ops_array_keep(made(value));
    ops_array_release(*x);
    *x = value;
}

/* A step of Adam. `updates`: by updates of all elements instead of other arrays. */
static void model_step(model *x, int step, bool updates)
{
    ops_array *all[3 * TENSORS];
    ok(ops_scope_begin(test_context));
    for (uint32_t i = 0; i < TENSORS; i++) {
        ops_array *g = x->g[i];
        ops_array *m = ops_add(ops_array_binary_scalar(OPS_MUL, x->m[i], 0.9),
                               ops_array_binary_scalar(OPS_MUL, g, 0.1));
        ops_array *v = ops_add(ops_array_binary_scalar(OPS_MUL, x->v[i], 0.99),
                               ops_array_binary_scalar(OPS_MUL, ops_square(g), 0.01));
        ops_array *d = ops_array_binary_scalar(OPS_ADD, ops_sqrt(v), 1e-3);
        ops_array *p =
            ops_sub(x->p[i], ops_div(ops_array_binary_scalar(OPS_MUL, m, 1e-2 / (step + 1)), d));
        replace(&x->p[i], p, updates);
        replace(&x->m[i], m, updates);
        replace(&x->v[i], v, updates);
        all[i] = x->m[i]; /* those that others are computed of come first */
        all[TENSORS + i] = x->v[i];
        all[2 * TENSORS + i] = x->p[i];
    }
    ok(ops_array_evaluate(all, 3 * TENSORS));
    ok(ops_scope_end(test_context));
}

static void expect_same(ops_array *const *x, ops_array *const *y, uint32_t count)
{
    static float got[2][MOST];
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bytes =
            (uint64_t)ops_array_get_element_count(x[i]) * hal_type_size(ops_array_get_type(x[i]));
        ok(ops_array_read(x[i], bytes, got[0]));
        ok(ops_array_read(y[i], bytes, got[1]));
        assert_memory_equal(got[0], got[1], bytes);
    }
}

/* `most`: inputs of at most that many bytes are copied, by kernels unless it is 0; `kernels` at
 * most in each step. */
static void expect_adam(uint32_t most, uint32_t kernels, bool updates)
{
    static model joined, alone;
    const uint32_t before_most = test_tune(test_context)->elementwise.max_joined_copy;
    const uint64_t before_bytes = test_tune(test_context)->copy.max_joined_bytes;
    test_tune(test_context)->elementwise.max_joined_copy = most;
    test_tune(test_context)->copy.max_joined_bytes = most;
    model_open(&joined);
    model_open(&alone);
    for (int step = 0; step < 3; step++) {
        const ops_array_statistics before = statistics();
        model_step(&joined, step, updates);
        if (step > 0 && statistics().kernels - before.kernels > kernels) {
            fail_msg("step %d: %llu kernels", step,
                     (unsigned long long)(statistics().kernels - before.kernels));
        }
        ops_context_set_fusion(test_context, 0);
        model_step(&alone, step, updates);
        ops_context_set_fusion(test_context, 1);
    }
    expect_same(joined.p, alone.p, TENSORS);
    expect_same(joined.m, alone.m, TENSORS);
    expect_same(joined.v, alone.v, TENSORS);
    model_close(&joined);
    model_close(&alone);
    test_tune(test_context)->elementwise.max_joined_copy = before_most;
    test_tune(test_context)->copy.max_joined_bytes = before_bytes;
}

static void an_optimizer_is_few_kernels(void **state)
{
    expect_adam(0, test_context->info->kind == HAL_DEVICE_CPU ? 1 : 8, false);
}

/* Gradients of 1,000 elements and more have bindings of their own, among which groups choose. */
static void larger_inputs_are_bound(void **state)
{
    expect_adam(3000, test_context->info->kind == HAL_DEVICE_CPU ? 5 : 12, false);
}

static void updates_of_all_elements_are_joined(void **state)
{
    expect_adam(0, test_context->info->kind == HAL_DEVICE_CPU ? 3 : 24, true);
}

/* ---- Other programs ---- */

enum { FEW = 12 };

typedef ops_array *(*program)(ops_array *x, uint32_t i);

static ops_array *clipped(ops_array *x, uint32_t i)
{
    (void)i;
    return ops_minimum(ops_array_binary_scalar(OPS_MUL, x, 0.5), ops_square(x));
}
/* A factor for each tensor: arrays of one element. */
static ops_array *scaled(ops_array *x, uint32_t i)
{
    const int64_t one = 1;
    ops_array *s = ops_array_copy(ops_array_full(test_context, ops_array_get_type(x), 1, &one, i));
    return made(ops_array_evaluate(&s, 1) ? NULL : ops_mul(x, s));
}
static ops_array *compared(ops_array *x, uint32_t i)
{
    (void)i;
    return ops_array_binary_scalar(OPS_LT, x, 2);
}
/* Transposed: computed as usual. */
static ops_array *reordered(ops_array *x, uint32_t i)
{
    (void)i;
    const int64_t count = ops_array_get_element_count(x), shape[2] = {count, 2};
    ops_array *wide = ops_array_broadcast(ops_array_reshape(x, 2, (int64_t[]){count, 1}), 2, shape);
    return ops_neg(ops_array_transpose(ops_array_copy(wide), 0, 1));
}
/* Sums are computed first. */
static ops_array *normalised(ops_array *x, uint32_t i)
{
    (void)i;
    return ops_div(ops_square(x), ops_array_reduce(OPS_REDUCE_SUM, 0, 1, ops_array_copy(x)));
}

typedef struct other_program {
    program make;
    hal_type type;
    uint32_t kernels; /* of the cpu's, at most; 0: any number */
} other_program;

static const other_program programs[] = {
    {clipped, HAL_TYPE_F32, 1},   {clipped, HAL_TYPE_F16, 1},    {clipped, HAL_TYPE_BF16, 1},
    {clipped, HAL_TYPE_F64, 1},   {scaled, HAL_TYPE_F32, 25},    {compared, HAL_TYPE_F32, 1},
    {reordered, HAL_TYPE_F32, 0}, {normalised, HAL_TYPE_F32, 0}, {clipped, HAL_TYPE_I32, 1},
};

static void program_run(const other_program *p, ops_array *const *x, ops_array **y)
{
    ok(ops_scope_begin(test_context));
    for (uint32_t i = 0; i < FEW; i++) {
        y[i] = ops_array_keep(made(p->make(x[i], i)));
    }
    ok(ops_array_evaluate(y, FEW));
    ok(ops_scope_end(test_context));
}

static void programs_have_the_same_bits(void **state)
{
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
        ops_array *x[FEW], *y[FEW], *z[FEW];
        for (uint32_t i = 0; i < FEW; i++) {
            x[i] = numbers(programs[k].type, length_of(i) % 2000, i);
        }
        const uint64_t before = statistics().kernels;
        program_run(&programs[k], x, y);
        const uint64_t kernels = statistics().kernels - before;
        if (test_context->info->kind == HAL_DEVICE_CPU && programs[k].kernels &&
            kernels > programs[k].kernels) {
            fail_msg("program %zu: %llu kernels", k, (unsigned long long)kernels);
        }
        ops_context_set_fusion(test_context, 0);
        program_run(&programs[k], x, z);
        ops_context_set_fusion(test_context, 1);
        expect_same(y, z, FEW);
        arrays_release(x, FEW);
        arrays_release(y, FEW);
        arrays_release(z, FEW);
    }
}

/* Empty arrays, arrays twice in the list, arrays that others of the list are computed of. */
static void lists_may_have_anything(void **state)
{
    ops_array *x[FEW], *all[3 * FEW + 1];
    const int64_t none = 0;
    for (uint32_t i = 0; i < FEW; i++) {
        x[i] = numbers(HAL_TYPE_F32, 100 + i, i);
        all[i] = made(ops_square(x[i]));
        all[FEW + i] = made(ops_neg(all[i]));
        all[2 * FEW + i] = all[FEW + i];
    }
    ops_array *empty = made(ops_array_full(test_context, HAL_TYPE_F32, 1, &none, 1));
    all[3 * FEW] = made(ops_exp(empty));
    const uint64_t before = statistics().kernels;
    ok(ops_array_evaluate(all, 3 * FEW + 1));
    assert_true(statistics().kernels - before <= 2);
    for (uint32_t i = 0; i < FEW; i++) {
        float values[3][128];
        const uint64_t bytes = (100 + i) * sizeof(float);
        ok(ops_array_read(x[i], bytes, values[0]));
        ok(ops_array_read(all[i], bytes, values[1]));
        ok(ops_array_read(all[FEW + i], bytes, values[2]));
        for (uint32_t k = 0; k < 100 + i; k++) {
            const float square = values[0][k] * values[0][k];
            assert_true(values[1][k] == square && values[2][k] == -square);
        }
    }
    arrays_release(x, FEW);
    arrays_release(all, 2 * FEW);
    release_all(all[3 * FEW], empty);
    assert_int_equal(statistics().arrays, 0);
}

/* ---- Shared buffers ---- */

static void squares_make(ops_array **y)
{
    ok(ops_scope_begin(test_context));
    for (uint32_t i = 0; i < FEW; i++) {
        const int64_t count = 8 + i;
        y[i] = ops_array_keep(
            ops_square(made(ops_array_iota(test_context, HAL_TYPE_F32, count, i, 1))));
    }
    ok(ops_array_evaluate(y, FEW));
    ok(ops_scope_end(test_context));
}

static void expect_squares(ops_array *y, uint32_t i)
{
    float got[8 + FEW];
    ok(ops_array_read(y, (8 + i) * sizeof *got, got));
    for (uint32_t k = 0; k < 8 + i; k++) {
        assert_true(got[k] == (float)((i + k) * (i + k)));
    }
}

/* Views, updates, taking the buffer, and graphs of arrays that share one. */
static void arrays_that_share_a_buffer_are_like_others(void **state)
{
    ops_array *y[FEW];
    ops_tensor taken, part;
    squares_make(y);
    assert_ptr_equal(y[3]->view.buffer, y[4]->view.buffer);
    assert_int_equal(ops_array_is_sole_holder(y[3]), 0);
    ok(ops_array_take_buffer(y[3], &taken));
    assert_int_equal(hal_buffer_get_bytes(taken.buffer), 11 * sizeof(float));
    ops_tensor_release(&taken);
    /* An update of a part leaves the others as they are. */
    ok(ops_array_describe(y[4], &part));
    ok(ops_tensor_slice(&part, 0, 0, 2, 1, &part));
    ops_array *zero = made(ops_array_scalar(test_context, HAL_TYPE_F32, 0));
    ops_array *updated = made(ops_array_update(y[4], &part, zero));
    ops_array_release(y[4]);
    float got[14];
    ok(ops_array_read(updated, 12 * sizeof *got, got));
    assert_true(got[0] == 0 && got[1] == 0 && got[2] == 36);
    ops_array *view = made(ops_array_slice(y[5], 0, 1, 2, 1)), *sum = made(ops_add(view, view));
    ok(ops_array_read(sum, 2 * sizeof *got, got));
    assert_true(got[0] == 72 && got[1] == 98);
    /* An input of a graph fills its buffer. */
    ops_graph *graph;
    ok(ops_graph_begin(test_context));
    ops_array *output = made(ops_neg(y[6]));
    ok(ops_graph_end(test_context, &y[6], 1, &output, 1, &graph));
    ops_array *result;
    ok(ops_graph_launch(graph, &y[6], 1, &result, 1));
    ok(ops_array_read(result, sizeof got, got));
    assert_true(got[0] == -36 && got[1] == -49);
    ops_graph_destroy(graph);
    release_all(zero, updated, view, sum, output, result);
    for (uint32_t i = 0; i < FEW; i++) {
        if (i != 3 && i != 4) {
            expect_squares(y[i], i);
            ops_array_release(y[i]);
        }
    }
    assert_int_equal(statistics().arrays, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_optimizer_is_few_kernels),
        cmocka_unit_test(larger_inputs_are_bound),
        cmocka_unit_test(updates_of_all_elements_are_joined),
        cmocka_unit_test(programs_have_the_same_bits),
        cmocka_unit_test(lists_may_have_anything),
        cmocka_unit_test(arrays_that_share_a_buffer_are_like_others),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
