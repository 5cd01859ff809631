/* Random draws: frequencies within five deviations of what they have to be, equal draws of equal
 * keys, no array left, bad arguments. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <math.h>
#include <ops/draw.h>

enum { DRAWS = 4096 };

static const ops_random_key key = {7, 3};

/* Of `draws` with a probability p, `got` have to be within five standard deviations. */
static void likely(uint32_t got, double draws, double p)
{
    const double away = fabs((double)got - draws * p), deviation = sqrt(draws * p * (1 - p));
    if (!(away <= 5 * deviation)) {
        fail_msg("%u of %d draws with probability %g", got, (int)draws, p);
    }
}

static void bernoulli_has_its_probability(void **state)
{
    const int64_t shape[1] = {DRAWS};
    uint8_t first[DRAWS], second[DRAWS];
    uint32_t count = 0;
    const uint64_t arrays = statistics_of(test_context).arrays;
    ok(ops_scope_begin(test_context));
    ops_array *p = made(ops_array_full(test_context, HAL_TYPE_F32, 1, shape, 0.3));
    ok(ops_array_read(made(ops_array_bernoulli(key, p)), DRAWS, first));
    ok(ops_array_read(made(ops_array_bernoulli(key, p)), DRAWS, second));
    ok(ops_scope_end(test_context));
    assert_memory_equal(first, second, DRAWS);
    for (uint32_t i = 0; i < DRAWS; i++) {
        count += first[i];
    }
    likely(count, DRAWS, 0.3);
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void exponential_has_its_rate(void **state)
{
    const int64_t shape[1] = {DRAWS};
    float numbers[DRAWS];
    uint32_t below = 0;
    const uint64_t arrays = statistics_of(test_context).arrays;
    ops_array *x = made(ops_array_exponential(test_context, HAL_TYPE_F32, 1, shape, key, 2));
    ok(ops_array_read(x, sizeof numbers, numbers));
    ops_array_release(x);
    for (uint32_t i = 0; i < DRAWS; i++) {
        assert_true(numbers[i] >= 0 && isfinite(numbers[i]));
        below += numbers[i] < 0.5F;
    }
    likely(below, DRAWS, 1 - exp(-1.0));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void categories_have_their_weights(void **state)
{
    static const float weights[2][4] = {{1, 0, 3, 4}, {0, 0, 5, 0}};
    int32_t drawn[2][DRAWS], once[2][4];
    uint32_t counts[4] = {0};
    ok(ops_scope_begin(test_context));
    ops_array *w = ops_array_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){2, 4}, weights);
    ok(ops_array_read(made(ops_array_multinomial(key, DRAWS, 1, w)), sizeof drawn, drawn));
    ok(ops_array_read(made(ops_array_multinomial(key, 4, 0, w)), sizeof once, once));
    ok(ops_scope_end(test_context));
    for (uint32_t i = 0; i < DRAWS; i++) {
        assert_in_range(drawn[0][i], 0, 3);
        assert_int_equal(drawn[1][i], 2);
        counts[drawn[0][i]]++;
    }
    assert_int_equal(counts[1], 0);
    likely(counts[0], DRAWS, 1.0 / 8);
    likely(counts[2], DRAWS, 3.0 / 8);
    likely(counts[3], DRAWS, 4.0 / 8);
    assert_int_equal(once[0][3], 1);
    assert_int_equal(once[1][0], 2);
    assert_int_equal(once[0][0] + once[0][1] + once[0][2], 5);
}

static void permutations_have_all_numbers(void **state)
{
    int32_t numbers[100];
    uint8_t seen[100] = {0};
    ops_array *x = made(ops_array_permutation(test_context, key, 100));
    ok(ops_array_read(x, sizeof numbers, numbers));
    ops_array_release(x);
    for (uint32_t i = 0; i < 100; i++) {
        assert_in_range(numbers[i], 0, 99);
        assert_int_equal(seen[numbers[i]]++, 0);
    }
}

static void wrong_calls_are_refused(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *i = made(ops_array_iota(test_context, HAL_TYPE_I32, 4, 0, 1));
    ops_array *w = made(ops_array_iota(test_context, HAL_TYPE_F32, 4, 0, 1));
    nothing(ops_array_bernoulli(key, i), "p: expected f32 or f64, got i32");
    nothing(ops_array_multinomial(key, 5, 0, w), "weights, count");
    nothing(ops_array_multinomial(key, 5, 1, i), "weights: expected f32 or f64");
    nothing(ops_array_exponential(test_context, HAL_TYPE_F32, 0, NULL, key, 0), "rate");
    nothing(ops_array_permutation(test_context, key, -1), "expected at least 0");
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bernoulli_has_its_probability), cmocka_unit_test(exponential_has_its_rate),
        cmocka_unit_test(categories_have_their_weights),
        cmocka_unit_test(permutations_have_all_numbers), cmocka_unit_test(wrong_calls_are_refused)};
    return RUN_ON_ALL(tests);
}
