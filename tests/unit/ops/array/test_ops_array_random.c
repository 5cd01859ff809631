/* Random programs of arrays in F32, F16 and BF16: casts, elementwise calls, reductions, views and
 * parts, of which some are kept, read in between or changed. Every bit is that of the same program
 * without fusion. Values stay between -1 and 1, so that there is no NaN. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { PROGRAMS = 150, POOL = 8, ROWS = 4, COLUMNS = 6, MOST_ELEMENTS = 256 };

typedef struct random_program {
    uint32_t random;
    ops_array *pool[POOL]; /* one reference each */
} random_program;

/* The last values of the pool, and of arrays that were read in between. */
typedef struct random_values {
    size_t bytes;
    uint8_t values[64 * MOST_ELEMENTS * sizeof(double)];
} random_values;

static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32};

static uint32_t below(random_program *p, uint32_t limit)
{
    p->random = p->random * 1664525u + 1013904223u;
    return (p->random >> 8) % limit;
}

static ops_array *random_elementwise(random_program *p, ops_array *x)
{
    ops_array *y = p->pool[below(p, POOL)];
    switch (below(p, 5)) {
    case 0:
        return ops_neg(x);
    case 1:
        return ops_relu(x);
    case 2:
        return ops_square(x);
    case 3:
        y = ops_array_cast(ops_array_get_type(x), y);
        return ops_mul(x, y); /* null where shapes do not fit */
    default:
        y = ops_array_cast(ops_array_get_type(x), y);
        y = ops_sub(x, y);
        return y ? ops_array_binary_scalar(OPS_MUL, y, 0.5) : NULL;
    }
}

static ops_array *random_view(random_program *p, ops_array *x)
{
    const int32_t axis = (int32_t)below(p, x->view.rank);
    const int64_t length = x->view.shape[axis];
    const int64_t pairs[2] = {ops_array_get_element_count(x) / 2, 2};
    switch (below(p, 4)) {
    case 0:
        return ops_array_transpose(x, 0, (int32_t)x->view.rank - 1);
    case 1:
        return ops_array_slice(x, axis, length - 1, (length + 1) / 2, -1);
    case 2:
        return ops_array_reshape(x, 2, pairs); /* null for an odd number of elements */
    default:
        return ops_array_reshape(x, 1, (int64_t[]){-1});
    }
}

static ops_array *random_result(random_program *p, ops_array *x)
{
    const int32_t axis = (int32_t)below(p, x->view.rank);
    switch (below(p, 8)) {
    case 0:
    case 1:
    case 2:
        return ops_array_cast(types[below(p, 4)], x);
    case 3:
        return ops_array_reduce(below(p, 2) ? OPS_REDUCE_MEAN : OPS_REDUCE_MAX, axis, 1, x);
    case 4:
        return random_view(p, x);
    case 5:
        return ops_array_concatenate(axis, (ops_array *[]){x, x}, 2);
    default:
        return random_elementwise(p, x);
    }
}

static void values_add(random_values *v, ops_array *x)
{
    const size_t bytes =
        (size_t)ops_array_get_element_count(x) * hal_type_size(ops_array_get_type(x));
    if (v->bytes + bytes <= sizeof v->values) {
        ok(ops_array_read(x, bytes, v->values + v->bytes));
        v->bytes += bytes;
    }
}

static void program_run(uint32_t seed, random_values *v)
{
    random_program p = {.random = seed};
    v->bytes = 0;
    for (uint32_t i = 0; i < POOL; i++) {
        ops_array *x =
            made(ops_array_uniform(test_context, HAL_TYPE_F32, 2, (int64_t[]){ROWS, COLUMNS},
                                   (ops_random_key){seed, i}, -1, 1));
        p.pool[i] = made(ops_array_cast(types[below(&p, 4)], x));
        ops_array_release(x);
    }
    const uint32_t steps = 10 + below(&p, 40);
    for (uint32_t i = 0; i < steps; i++) {
        ok(ops_scope_begin(test_context));
        ops_array *x = p.pool[below(&p, POOL)], *y = random_result(&p, x);
        if (y && ops_array_get_element_count(y) <= MOST_ELEMENTS) {
            ops_array **old = &p.pool[below(&p, POOL)];
            y = ops_array_keep(y);
            ops_array_release(*old);
            *old = y;
            if (below(&p, 12) == 0) {
                values_add(v, y);
            }
        }
        ok(ops_scope_end(test_context));
    }
    for (uint32_t i = 0; i < POOL; i++) {
        values_add(v, p.pool[i]);
        ops_array_release(p.pool[i]);
    }
}

static void fusion_changes_no_bit(void **state)
{
    static random_values got[2];
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        for (int fusion = 0; fusion < 2; fusion++) {
            ops_context_set_fusion(test_context, fusion);
            program_run(seed, &got[fusion]);
        }
        if (got[0].bytes != got[1].bytes ||
            memcmp(got[0].values, got[1].values, got[0].bytes) != 0) {
            fail_msg("program %u has other bits with fusion", seed);
        }
        assert_true(got[0].bytes > 0);
    }
    assert_int_equal(statistics_of(test_context).arrays, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fusion_changes_no_bit)};
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
