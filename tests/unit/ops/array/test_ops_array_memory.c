/* Memory of loops over arrays: no malloc once they are warm, and constant memory over millions of
 * operations. */
#include "ops_arrays.h"
#include "ops_fixture.h"
#include "own_malloc.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic uint64_t allocations;

#if OWN_MALLOC
static int malloc_is_refused(void)
{
    allocations++;
    return 0;
}
#endif

static ops_array *weights, *bias, *input;

static void one_loop(ops_array **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *sum = ops_add(ops_matmul(*state, weights), bias);
    ops_array *next = ops_add(ops_mul(ops_sigmoid(sum), ops_tanh(sum)), input);
    ops_array *half = ops_array_scalar(test_context, HAL_TYPE_F32, 0.5);
    ops_array *norm = ops_sqrt(ops_array_reduce(OPS_REDUCE_SUM, 1, 1, ops_square(next)));
    next = ops_array_keep(ops_mul(ops_div(next, norm), half));
    ok(ops_scope_end(test_context));
    assert_non_null(next);
    ops_array_release(*state);
    *state = next;
}

static void open_arrays(void)
{
    const int64_t square[2] = {8, 8}, row[2] = {1, 8};
    weights =
        ops_array_uniform(test_context, HAL_TYPE_F32, 2, square, (ops_random_key){1, 1}, -1, 1);
    bias = ops_array_uniform(test_context, HAL_TYPE_F32, 2, row, (ops_random_key){1, 2}, -1, 1);
    input = ops_array_uniform(test_context, HAL_TYPE_F32, 2, row, (ops_random_key){1, 3}, -1, 1);
    assert_non_null(input);
}

static void close_arrays(void)
{
    release_all(weights, bias, input);
}

static void warm_loops_do_not_allocate(void **state)
{
    open_arrays();
    for (int fusion = 0; fusion < 2; fusion++) {
        ops_context_set_fusion(test_context, fusion);
        ops_array *x = ops_array_retain(input);
        float got[8];
        for (int i = 0; i < 3000; i++) {
            one_loop(&x);
        }
        ok(ops_array_read(x, sizeof got, got));
        uint64_t before = allocations;
        for (int i = 0; i < 3000; i++) {
            one_loop(&x);
        }
        ok(ops_array_read(x, sizeof got, got));
        assert_int_equal(allocations, before);
        ops_array_release(x);
    }
#if OWN_MALLOC
    assert_true(allocations > 0); /* they are counted at all */
#endif
    close_arrays();
}

static uint64_t resident_bytes(void)
{
    unsigned long long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void chain(ops_array **x, int operations)
{
    for (int i = 0; i < operations; i++) {
        ops_array *t = ops_array_unary(i % 3 ? OPS_NEG : OPS_ABS, *x);
        assert_non_null(t);
        ops_array_release(*x);
        *x = t;
    }
}

static void ten_million_operations_take_no_memory(void **state)
{
    const int operations = OWN_MALLOC ? 10000000 : 300000;
    const int64_t shape[1] = {16};
    ops_array *x = ops_array_full(test_context, HAL_TYPE_F32, 1, shape, 1);
    chain(&x, operations / 10);
    const uint64_t bytes = resident_bytes(), before = statistics_of(test_context).recorded;
    chain(&x, operations);
    const ops_array_statistics after = statistics_of(test_context);
    assert_true(resident_bytes() < bytes + (1u << 20));
    assert_int_equal(after.recorded, before + (uint64_t)operations);
    assert_true(after.deferred <= 65 && after.arrays <= 70);
    ops_array_release(x);
}

/* Numbers of few digits are the usual ones; each in one element that is filled once. */
static void usual_constants_are_filled_once(void **state)
{
    static const double values[] = {0,  1,  2,    3,   4,  8,  0.5, 0.25,
                                    -1, -2, -0.5, 0.1, 10, 64, 256, 1e-8};
    enum { COUNT = sizeof values / sizeof *values };
    hal_buffer *first[COUNT];
    ops_array *arrays[2][COUNT];
    int kept = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < COUNT; i++) {
            arrays[pass][i] =
                ops_array_keep(ops_array_scalar(test_context, HAL_TYPE_F32, values[i]));
            ops_tensor tensor;
            ok(ops_array_get_tensor(arrays[pass][i], &tensor));
            if (pass == 0) {
                first[i] = tensor.buffer; /* in use until the end, so that no other gets it */
            } else {
                kept += tensor.buffer == first[i];
            }
        }
    }
    for (int i = 0; i < 2 * COUNT; i++) {
        ops_array_release(arrays[i / COUNT][i % COUNT]);
    }
    assert_true(kept >= COUNT - 2); /* the table has one place for each hash */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_constants_are_filled_once),
        cmocka_unit_test(warm_loops_do_not_allocate),
        cmocka_unit_test(ten_million_operations_take_no_memory),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
