/* Results in the memory of operands that end with them, and products that are computed because they
 * hold memory that nothing else needs. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <stdlib.h>

enum { ELEMENTS = 1 << 18, FEW = 12, SIDE = 512, PRODUCTS = 40 };

static ops_array *numbers(int64_t count, uint64_t seed)
{
    ops_array *x = made(
        ops_array_uniform(test_context, HAL_TYPE_F32, 1, &count, (ops_random_key){7, seed}, 0, 4));
    ok(ops_array_evaluate(&x, 1));
    return x;
}

/* x / 2 + 1; the caller's reference to x ends. */
static ops_array *halved(ops_array *x)
{
    ops_array *half = made(ops_array_binary_scalar(OPS_MUL, x, 0.5));
    ops_array *y = made(ops_array_binary_scalar(OPS_ADD, half, 1));
    release_all(x, half);
    return y;
}

static void expect_halves(ops_array *y, const float *of, int64_t count)
{
    float *got = malloc((size_t)count * sizeof *got);
    assert_non_null(got);
    ok(ops_array_read(y, (uint64_t)count * sizeof *got, got));
    for (int64_t i = 0; i < count; i++) {
        assert_true(got[i] == of[i] * 0.5f + 1);
    }
    free(got);
}

static float *values_of(ops_array *x, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    ok(ops_array_read(x, (uint64_t)count * sizeof *values, values));
    return values;
}

/* ---- One result ---- */

static void a_result_takes_the_memory_of_its_operand(void **state)
{
    ops_array *x = numbers(ELEMENTS, 1);
    float *before = values_of(x, ELEMENTS);
    const hal_buffer *buffer = x->view.buffer;
    for (int turn = 0; turn < 2; turn++) { /* the second one replays */
        x = halved(x);
        ok(ops_array_evaluate(&x, 1));
        assert_ptr_equal(x->view.buffer, buffer);
        expect_halves(x, before, ELEMENTS);
        free(before);
        before = values_of(x, ELEMENTS);
    }
    free(before);
    ops_array_release(x);
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

/* What else may read an operand, and has its values later. */
static ops_array *reference(ops_array *x)
{
    return ops_array_retain(x);
}
static ops_array *deferred_use(ops_array *x)
{
    return made(ops_array_binary_scalar(OPS_MUL, x, 1));
}
/* Read next to x itself, as the same elements. */
static ops_array *same_view(ops_array *x)
{
    const int64_t count = ELEMENTS;
    return made(ops_array_reshape(x, 1, &count));
}
static ops_array *view_in_memory(ops_array *x)
{
    ops_array *view = made(ops_array_slice(x, 0, 0, ELEMENTS, 1));
    ok(ops_array_evaluate(&view, 1));
    return view;
}
static ops_array *deferred_view(ops_array *x)
{
    return made(ops_array_slice(x, 0, 0, ELEMENTS, 1));
}

static void operands_that_are_needed_keep_their_memory(void **state)
{
    ops_array *(*const others[])(ops_array *) = {reference, deferred_use, same_view, view_in_memory,
                                                 deferred_view};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        ops_array *x = numbers(ELEMENTS, k);
        float *before = values_of(x, ELEMENTS);
        const hal_buffer *buffer = x->view.buffer;
        ops_array *other = others[k](x), *y = halved(x);
        ok(ops_array_evaluate(&y, 1));
        assert_ptr_not_equal(y->view.buffer, buffer);
        expect_halves(y, before, ELEMENTS);
        float *after = values_of(other, ELEMENTS);
        assert_memory_equal(before, after, ELEMENTS * sizeof *before);
        free(before);
        free(after);
        release_all(other, y);
    }
}

/* An operand and a view of the same elements are one input of a kernel; uses of the operand by
 * other work count all the same. */
static void operands_that_are_read_twice_keep_their_memory(void **state)
{
    ops_array *x = numbers(ELEMENTS, 1), *view = same_view(x);
    float *before = values_of(x, ELEMENTS);
    ops_array *later = deferred_use(x), *y = made(ops_sub(x, view));
    release_all(x, view);
    ok(ops_array_evaluate(&y, 1));
    float *after = values_of(later, ELEMENTS), *zeros = values_of(y, ELEMENTS);
    assert_memory_equal(before, after, ELEMENTS * sizeof *before);
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(zeros[i] == 0);
    }
    free(before);
    free(after);
    free(zeros);
    release_all(later, y);
}

/* A scope may need a node again, which is then computed of its operands once more. */
static void nodes_of_a_scope_can_be_computed_again(void **state)
{
    ops_array *x = numbers(ELEMENTS, 3);
    float *before = values_of(x, ELEMENTS);
    ok(ops_scope_begin(test_context));
    ops_array *half = made(ops_array_binary_scalar(OPS_MUL, x, 0.5));
    ops_array *y = ops_array_keep(made(ops_array_binary_scalar(OPS_ADD, half, 1)));
    ops_array_release(x);
    ok(ops_array_evaluate(&y, 1));
    ops_array *z = ops_array_keep(made(ops_array_binary_scalar(OPS_ADD, half, 1)));
    expect_halves(z, before, ELEMENTS);
    ok(ops_scope_end(test_context));
    expect_halves(y, before, ELEMENTS);
    free(before);
    release_all(y, z);
}

/* Small operands, and those of another type or order, are not taken. */
static void other_operands_are_only_read(void **state)
{
    ops_array *x = numbers(ELEMENTS - 1, 1);
    float *before = values_of(x, ELEMENTS - 1);
    const hal_buffer *buffer = ops_array_retain(x)->view.buffer;
    ops_array *y = halved(x);
    ops_array_release(x);
    ok(ops_array_evaluate(&y, 1));
    assert_ptr_not_equal(y->view.buffer, buffer);
    expect_halves(y, before, ELEMENTS - 1);
    free(before);
    ops_array_release(y);

    const int64_t square[2] = {SIDE, SIDE};
    x = numbers(SIDE * SIDE, 2);
    ops_array *a = made(ops_array_reshape(x, 2, square)), *b = numbers(SIDE * SIDE, 3);
    ops_array *c = made(ops_array_reshape(b, 2, square)), *d = made(ops_array_transpose(c, 0, 1));
    before = values_of(a, SIDE * SIDE);
    float *turned = values_of(d, SIDE * SIDE);
    y = made(ops_sub(a, d));
    release_all(x, a, b, c, d);
    ok(ops_array_evaluate(&y, 1));
    float *after = values_of(y, SIDE * SIDE);
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        assert_true(after[i] == before[i] - turned[i]);
    }
    free(before);
    free(turned);
    free(after);
    ops_array_release(y);
}

/* ---- Joined results ---- */

typedef struct weights {
    ops_array *p[FEW], *m[FEW], *g[FEW];
} weights;

static void weights_open(weights *w)
{
    for (uint32_t i = 0; i < FEW; i++) {
        w->p[i] = numbers(100 + 7 * i, i);
        w->m[i] = numbers(100 + 7 * i, 100 + i);
        w->g[i] = numbers(100 + 7 * i, 200 + i);
    }
}

static void replace(ops_array **x, ops_array *value)
{
    ops_array_release(*x);
    *x = value;
}

static void weights_step(weights *w)
{
    ops_array *all[2 * FEW];
    for (uint32_t i = 0; i < FEW; i++) {
        ops_array *kept = made(ops_array_binary_scalar(OPS_MUL, w->m[i], 0.9));
        replace(&w->m[i], made(ops_add(kept, w->g[i])));
        ops_array_release(kept);
        replace(&w->p[i], made(ops_sub(w->p[i], w->m[i])));
        all[i] = w->m[i];
        all[FEW + i] = w->p[i];
    }
    ok(ops_array_evaluate(all, 2 * FEW));
}

static void expect_same(ops_array *x, ops_array *y)
{
    const int64_t count = ops_array_get_element_count(x);
    float *a = values_of(x, count), *b = values_of(y, count);
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    free(a);
    free(b);
}

static void joined_results_take_the_memory_of_those_before(void **state)
{
    static weights joined, alone;
    weights_open(&joined);
    weights_open(&alone);
    const hal_buffer *buffer = NULL;
    ops_array *view = NULL, *same = NULL;
    for (int step = 0; step < 6; step++) {
        if (step == 4) { /* a view of one of them: all keep their memory */
            view = made(ops_array_slice(joined.p[3], 0, 1, 5, 1));
            ok(ops_array_evaluate(&view, 1));
            same = made(ops_array_slice(alone.p[3], 0, 1, 5, 1));
            ok(ops_array_evaluate(&same, 1));
        }
        weights_step(&joined);
        ops_context_set_fusion(test_context, 0);
        weights_step(&alone);
        ops_context_set_fusion(test_context, 1);
        const bool is_in_place = joined.p[0]->view.buffer == buffer;
        assert_int_equal(is_in_place, step > 0 && step != 4);
        assert_ptr_equal(joined.m[FEW - 1]->view.buffer, joined.p[0]->view.buffer);
        buffer = joined.p[0]->view.buffer;
        for (uint32_t i = 0; i < FEW; i++) {
            expect_same(joined.p[i], alone.p[i]);
            expect_same(joined.m[i], alone.m[i]);
        }
    }
    expect_same(view, same);
    release_all(view, same);
    arrays_release((ops_array **)&joined, 3 * FEW);
    arrays_release((ops_array **)&alone, 3 * FEW);
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

/* ---- Products that wait ---- */

/* Products whose results are held, of operands that are or are not. Returns those that wait. */
static uint64_t products_make(ops_array **products, ops_array **operands)
{
    const int64_t square[2] = {SIDE, SIDE};
    ops_array *y = made(
        ops_array_uniform(test_context, HAL_TYPE_F32, 2, square, (ops_random_key){7, 99}, -1, 1));
    ok(ops_array_evaluate(&y, 1));
    for (uint32_t i = 0; i < PRODUCTS; i++) {
        ops_array *x = made(ops_array_uniform(test_context, HAL_TYPE_F32, 2, square,
                                              (ops_random_key){7, i}, -1, 1));
        ok(ops_array_evaluate(&x, 1));
        products[i] = made(ops_matmul(x, y));
        if (operands) {
            operands[i] = x;
        } else {
            ops_array_release(x);
        }
    }
    ops_array_release(y);
    return statistics_of(test_context).deferred;
}

static void products_that_alone_hold_memory_do_not_wait(void **state)
{
    ops_array *held[PRODUCTS], *operands[PRODUCTS], *free_to_end[PRODUCTS];
    assert_int_equal(products_make(held, operands), PRODUCTS);
    ok(ops_array_evaluate(held, PRODUCTS));
    const uint64_t deferred = products_make(free_to_end, NULL);
    assert_true(deferred > 0 && deferred <= OPS_WAITING_ANCHORS);
    for (uint32_t i = 0; i < PRODUCTS; i += 13) {
        expect_same(free_to_end[i], held[i]);
    }
    arrays_release(held, PRODUCTS);
    arrays_release(operands, PRODUCTS);
    arrays_release(free_to_end, PRODUCTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_takes_the_memory_of_its_operand),
        cmocka_unit_test(operands_that_are_needed_keep_their_memory),
        cmocka_unit_test(operands_that_are_read_twice_keep_their_memory),
        cmocka_unit_test(nodes_of_a_scope_can_be_computed_again),
        cmocka_unit_test(other_operands_are_only_read),
        cmocka_unit_test(joined_results_take_the_memory_of_those_before),
        cmocka_unit_test(products_that_alone_hold_memory_do_not_wait),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
