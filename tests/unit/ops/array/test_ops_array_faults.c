/* Arrays while the device or the host fails: each call of the mock plugin in turn, then each
 * malloc. The next call computes what failed, with the same bits, and everything can be
 * released. */
#include "mock_fixture.h"

#include "ops_arrays.h"
#include "ops_device.h"
#include "own_malloc.h"
#include "tensor/compile_policy.h"

static _Thread_local int malloc_fails_in; /* the n-th call from now on; 0: none */

#if OWN_MALLOC
static int malloc_is_refused(void)
{
    return malloc_fails_in > 0 && --malloc_fails_in == 0;
}
#endif

enum { ROWS = 5, COLUMNS = 6, RESULTS = 6 };

typedef struct place {
    hal_device *device;
    hal_queue *queue;
    ops_context *context;
} place;

typedef struct values {
    float all[RESULTS][ROWS * COLUMNS];
} values;

static mock_state *mock;

static place open_place(const char *selection)
{
    place p = {.device = mock_open(selection)};
    p.queue = mock_queue(p.device);
    assert_int_equal(ops_context_create(p.queue, &p.context), HAL_OK);
    return p;
}

static void close_place(place *p)
{
    const ops_array_statistics s = statistics_of(p->context);
    assert_int_equal(s.arrays, 0);
    assert_int_equal(s.deferred, 0);
    ops_context_destroy(p->context);
    hal_queue_destroy(p->queue);
    hal_device_release(p->device);
}

/* Before calls that may fail. */
static void forget_messages(void)
{
    hal_status_set(HAL_OK, "an earlier failure");
}

/* A failed call has set its own message. */
static void has_said_why(hal_status status)
{
    assert_int_not_equal(status, HAL_OK);
    assert_string_not_equal(hal_status_message(), "an earlier failure");
}

/* Rows computed into their places of a result: parts of a concatenation, and an update. */
static void make_parts(ops_array *x, ops_array **joined, ops_array **updated)
{
    ops_array *parts[2] = {ops_neg(ops_array_slice(x, 0, 0, 2, 1)),
                           ops_exp(ops_array_slice(ops_abs(x), 0, 2, ROWS - 2, 1))};
    ops_tensor all, rows;
    *joined = ops_array_concatenate(0, parts, 2);
    if (x) {
        assert_int_equal(ops_array_describe(x, &all), HAL_OK);
        assert_int_equal(ops_tensor_slice(&all, 0, 1, 2, 2, &rows), HAL_OK);
        *updated = ops_array_update(ops_square(x), &rows, ops_tanh(parts[0]));
    }
}

/* Arrays of every kind of operation; null where a call failed. */
static void make(ops_context *context, ops_array *all[RESULTS])
{
    static const int64_t shape[2] = {ROWS, COLUMNS}, square[2] = {COLUMNS, COLUMNS};
    static float a[ROWS * COLUMNS], w[COLUMNS * COLUMNS];
    for (int i = 0; i < COLUMNS * COLUMNS; i++) {
        a[i % (ROWS * COLUMNS)] = (float)((i * 7) % 11) / 8 - 0.5f;
        w[i] = (float)((i * 5) % 13) / 16 - 0.25f;
    }
    memset(all, 0, RESULTS * sizeof *all);
    if (ops_scope_begin(context) != HAL_OK) {
        return;
    }
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 2, shape, a);
    ops_array *m = ops_array_from_host(context, HAL_TYPE_F32, 2, square, w);
    /* The mock's products do nothing. */
    const int has_products =
        strncmp(hal_device_get_info(ops_context_get_device(context))->name, "Mock", 4) != 0;
    ops_array *product = has_products ? ops_matmul(x, m) : ops_mul(x, ops_reduce_sum(m, 0)),
              *sum = ops_array_reduce(OPS_REDUCE_SUM, 1, 1, ops_abs(x));
    all[0] = ops_tanh(ops_add(product, ops_array_scalar(context, HAL_TYPE_F32, 0.25)));
    all[1] = ops_div(ops_array_softmax(0, x), sum);
    all[2] = ops_array_reshape(ops_array_transpose(ops_neg(all[1]), 0, 1), 2, shape);
    all[3] = ops_array_where(ops_gt(x, product), all[0],
                             ops_array_slice(x, 1, COLUMNS - 1, COLUMNS, -1));
    make_parts(x, &all[4], &all[5]);
    for (int i = 0; i < RESULTS; i++) {
        ops_array_keep(all[i]);
    }
    assert_int_equal(ops_scope_end(context), HAL_OK);
}

/* Makes and reads all arrays and repeats failed calls, which have to succeed then, unless the batch
 * was lost. Returns the number of failed calls. */
static int run(place *p, values *got)
{
    ops_array *arrays[RESULTS];
    int failures = 0, lacks = 0;
    forget_messages();
    make(p->context, arrays);
    for (int i = 0; i < RESULTS; i++) {
        lacks += !arrays[i];
    }
    if (lacks) {
        has_said_why(HAL_ERROR_INTERNAL);
        arrays_release(arrays, RESULTS);
        failures++;
        make(p->context, arrays);
    }
    for (int i = 0; i < RESULTS; i++) {
        forget_messages();
        hal_status status = ops_array_read(arrays[i], sizeof got->all[i], got->all[i]);
        if (status) {
            has_said_why(status);
            failures++;
            status = ops_array_read(arrays[i], sizeof got->all[i], got->all[i]);
        }
        if (status && !strstr(hal_status_message(), "was lost when its batch failed")) {
            fail_msg("result %d: %s", i, hal_status_message());
        }
    }
    arrays_release(arrays, RESULTS);
    return failures;
}

static void each_call_of_the_device_fails(void **state)
{
    static const enum mock_entry entries[] = {MOCK_ALLOCATE, MOCK_KERNEL};
    values want, got;
    mock_reset(mock);
    place p = open_place("mock");
    assert_int_equal(run(&p, &want), 0);
    close_place(&p);
    for (int e = 0; e < 2; e++) {
        int failures = 0;
        for (int n = 1; n < 200; n++) {
            mock_reset(mock);
            p = open_place("mock");
            atomic_store(&mock->fail_with, e ? HAL_ERROR_INTERNAL : HAL_ERROR_OUT_OF_MEMORY);
            atomic_store(&mock->fail_in[entries[e]], n);
            failures += run(&p, &got);
            assert_memory_equal(&got, &want, sizeof want);
            const int was_reached = atomic_load(&mock->fail_in[entries[e]]) <= 0;
            close_place(&p);
            mock_is_clean(mock);
            if (!was_reached) {
                break;
            }
        }
        assert_true(failures > 0 || entries[e] == MOCK_ALLOCATE);
    }
}

/* Memory runs out during an evaluation; later the rest is computed. */
static void memory_ends(void **state)
{
    enum { ELEMENTS = 1 << 20, COUNT = 40 };
    const int64_t shape[1] = {ELEMENTS};
    ops_array *arrays[COUNT];
    float got[4];
    mock_reset(mock);
    place p = open_place("mock");
    ops_array *x = ops_array_full(p.context, HAL_TYPE_F32, 1, shape, 2);
    for (int i = 0; i < COUNT; i++) {
        ops_array *number = ops_array_scalar(p.context, HAL_TYPE_F32, i);
        arrays[i] = ops_mul(x, number);
        assert_non_null(arrays[i]);
        ops_array_release(number);
    }
    atomic_store(&mock->memory_limit, atomic_load(&mock->memory_bytes) + (UINT64_C(32) << 20));
    forget_messages();
    hal_status status = ops_array_evaluate(arrays, COUNT);
    assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
    has_said_why(status);
    const ops_array_statistics s = statistics_of(p.context);
    assert_true(s.evaluated + s.deferred == COUNT && s.deferred > 0);
    atomic_store(&mock->memory_limit, UINT64_C(1) << 30);
    assert_int_equal(ops_array_evaluate(arrays, COUNT), HAL_OK);
    for (int i = 0; i < COUNT; i++) {
        ops_array *part = ops_array_slice(arrays[i], 0, 100, 4, 7);
        assert_int_equal(ops_array_read(part, sizeof got, got), HAL_OK);
        assert_true(got[3] == 2.0f * (float)i);
        release_all(part, arrays[i]);
    }
    ops_array_release(x);
    close_place(&p);
    mock_is_clean(mock);
}

/* A lost device: calls fail with a message, and everything can be released. */
static void the_device_is_lost(void **state)
{
    static const enum mock_entry entries[] = {MOCK_SUBMIT, MOCK_WAIT};
    for (int e = 0; e < 2; e++) {
        for (int n = 1; n < 6; n++) {
            ops_array *arrays[RESULTS];
            float got[ROWS * COLUMNS];
            mock_reset(mock);
            place p = open_place("mock");
            atomic_store(&mock->fail_with, HAL_ERROR_DEVICE_LOST);
            atomic_store(&mock->fail_in[entries[e]], n);
            make(p.context, arrays);
            for (int i = 0; i < RESULTS; i++) {
                forget_messages();
                hal_status status = ops_array_read(arrays[i], sizeof got, got);
                if (status) {
                    has_said_why(status);
                }
                ops_array_release(arrays[i]);
            }
            ops_graph *graph = NULL;
            ops_array *x = ops_array_scalar(p.context, HAL_TYPE_F32, 1), *y = NULL;
            if (ops_graph_begin(p.context) == HAL_OK) {
                y = ops_neg(x);
                ops_graph_end(p.context, NULL, 0, &y, 1, &graph);
            }
            release_all(x, y);
            ops_graph_destroy(graph);
            close_place(&p);
            mock_is_clean(mock);
        }
    }
}

/* A graph's begin, end and launch while each allocation, kernel or batch fails. */
static int run_graph(place *p, float got[ROWS * COLUMNS])
{
    ops_array *arrays[RESULTS], *outputs[1] = {NULL};
    ops_graph *graph = NULL;
    static const int64_t shape[2] = {ROWS, COLUMNS};
    float data[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        data[i] = (float)i / 16;
    }
    forget_messages();
    make(p->context, arrays);
    ops_array *x = ops_array_from_host(p->context, HAL_TYPE_F32, 2, shape, data);
    hal_status status = x && arrays[0] ? ops_graph_begin(p->context) : HAL_ERROR_INTERNAL;
    if (!status && (status = ops_scope_begin(p->context)) != HAL_OK) {
        ops_graph_end(p->context, NULL, 0, NULL, 0, &graph); /* drops the recording */
    } else if (!status) {
        ops_array *y = ops_array_keep(ops_add(ops_exp(ops_reduce_sum(x, 0)), arrays[0]));
        assert_int_equal(ops_scope_end(p->context), HAL_OK);
        status = y ? HAL_OK : HAL_ERROR_INTERNAL;
        /* An end without outputs drops the recording. */
        hal_status ended = ops_graph_end(p->context, &x, 1, &y, y ? 1 : 0, &graph);
        status = status ? status : ended;
        ops_array_release(y);
    }
    if (!status) {
        status = ops_graph_launch(graph, &x, 1, outputs, 1);
    }
    if (!status) {
        status = ops_array_read(outputs[0], ROWS * COLUMNS * sizeof *got, got);
    }
    if (status) {
        has_said_why(status);
    }
    ops_array_release(outputs[0]);
    ops_graph_destroy(graph);
    arrays_release(arrays, RESULTS);
    ops_array_release(x);
    return status != HAL_OK;
}

static void graphs_fail(void **state)
{
    static const enum mock_entry entries[] = {MOCK_ALLOCATE, MOCK_KERNEL};
    float want[ROWS * COLUMNS], got[ROWS * COLUMNS];
    mock_reset(mock);
    place p = open_place("mock");
    assert_int_equal(run_graph(&p, want), 0);
    close_place(&p);
    for (int e = 0; e < 2; e++) {
        for (int n = 1; n < 200; n++) {
            mock_reset(mock);
            p = open_place("mock");
            atomic_store(&mock->fail_with, e ? HAL_ERROR_INTERNAL : HAL_ERROR_OUT_OF_MEMORY);
            atomic_store(&mock->fail_in[entries[e]], n);
            run_graph(&p, got);
            const int was_reached = atomic_load(&mock->fail_in[entries[e]]) <= 0;
            atomic_store(&mock->fail_in[entries[e]], 0);
            assert_int_equal(run_graph(&p, got), 0); /* the queue can be used on */
            assert_memory_equal(got, want, sizeof want);
            close_place(&p);
            mock_is_clean(mock);
            if (!was_reached) {
                break;
            }
        }
    }
}

/* Each malloc of the thread in turn. What was recorded in a batch that could not be handed over is
 * lost (hal_queue_flush), so that here all is arrays anew. */
static void each_malloc_fails(void **state)
{
    values want, got;
    float step[ROWS * COLUMNS], want_step[ROWS * COLUMNS];
    if (!OWN_MALLOC) {
        skip();
    }
    place p = open_place("cpu");
    assert_int_equal(run(&p, &want), 0);
    assert_int_equal(run_graph(&p, want_step), 0);
    close_place(&p);
    for (int n = 1, is_over = 0; !is_over; n += 1 + n / 100) {
        p = open_place("cpu");
        malloc_fails_in = n;
        run(&p, &got);
        run_graph(&p, step);
        is_over = malloc_fails_in > 0;
        malloc_fails_in = 0;
        assert_int_equal(run(&p, &got), 0);
        assert_memory_equal(&got, &want, sizeof want);
        assert_int_equal(run_graph(&p, step), 0);
        assert_memory_equal(step, want_step, sizeof step);
        close_place(&p);
    }
}

/* Kernels respect the device's limit of bindings. */
static void few_bindings(void **state)
{
    enum { LEAVES = 14, LENGTH = 6 };
    static const int64_t shape[2] = {2, 3};
    ops_array *leaves[LEAVES];
    float data[LENGTH], got[LENGTH], want[LENGTH] = {0};
    mock_reset(mock);
    place p = open_place("mock");
    hal_device_info info = *p.context->info;
    info.max_bindings = 6;
    test_set_device(p.context, &info);
    for (int i = 0; i < LEAVES; i++) {
        for (int k = 0; k < LENGTH; k++) {
            data[k] = (float)(i * k % 7);
            want[k] += data[k];
        }
        leaves[i] = ops_array_from_host(p.context, HAL_TYPE_F32, 2, shape, data);
    }
    assert_int_equal(ops_scope_begin(p.context), HAL_OK);
    ops_array *sum = leaves[0];
    for (int i = 1; i < LEAVES; i++) {
        sum = ops_add(sum, leaves[i]);
    }
    ops_array *rows = ops_array_reduce(OPS_REDUCE_SUM, 1, 1, sum);
    for (int i = 0; i < LEAVES; i++) {
        rows = ops_add(rows, ops_array_slice(leaves[i], 1, 0, 1, 1));
    }
    if (ops_array_read(sum, sizeof got, got) || ops_array_read(rows, 8, data)) {
        fail_msg("%s", hal_status_message());
    }
    assert_memory_equal(got, want, sizeof want);
    assert_true(data[0] == want[0] + want[1] + want[2] + want[0]);
    assert_int_equal(ops_scope_end(p.context), HAL_OK);
    for (uint32_t i = 0; i < mock->logged_count; i++) {
        assert_true(mock->logged[i].command.binding_count <= 6);
    }
    arrays_release(leaves, LEAVES);
    close_place(&p);
}

/* Too few bindings for any kernel are an error. */
static void too_few_bindings(void **state)
{
    static const int64_t shape[2] = {2, 3};
    float data[6] = {0};
    mock_reset(mock);
    for (uint32_t bindings = 0; bindings < 3; bindings++) {
        place p = open_place("mock");
        hal_device_info info = *p.context->info;
        info.max_bindings = bindings;
        test_set_device(p.context, &info);
        assert_int_equal(ops_scope_begin(p.context), HAL_OK);
        ops_array *x = ops_array_from_host(p.context, HAL_TYPE_F32, 2, shape, data);
        ops_array *e = ops_exp(x), *sum = ops_add(e, x);
        ops_array *y = ops_array_where(ops_gt(x, e), sum, ops_array_transpose(x, 0, 1));
        ops_array *const results[] = {e, sum, y, ops_reduce_sum(x, 1), ops_array_softmax(0, x)};
        for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
            if (!results[i] || ops_array_read(results[i], i == 3 ? 8 : 24, data) != HAL_OK) {
                assert_true(hal_status_message()[0] != 0);
            } else {
                assert_true(bindings > 1 || i >= 3); /* hal itself refuses these */
            }
        }
        ops_scope_end(p.context);
        close_place(&p);
    }
}

/* An array that waits is computed early to free memory. If that fails, whoever reads it is told. */
static void work_that_waits_fails_no_other_call(void **state)
{
    enum { MANY = 1 << 18, OTHERS = 40 };
    static const float many[MANY], few[4] = {1, 2, 3, 4};
    ops_array *others[OTHERS];
    float sum = 1;
    place p = open_place("mock:0");
    /* Kernels are compiled at once: in the background they fail when a thread comes to it. */
    p.context->compile_policy->least_compile_ns = 0;
    ops_array *x = ops_array_from_host(p.context, HAL_TYPE_F32, 1, (int64_t[]){MANY}, many);
    ops_array *y = ops_array_from_host(p.context, HAL_TYPE_F32, 1, (int64_t[]){4}, few);
    ops_array *waits = ops_array_reduce(OPS_REDUCE_SUM, 0, 0, x);
    ops_array_release(x);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = ops_array_reduce(OPS_REDUCE_SUM, 0, 0, y);
        assert_non_null(others[i]);
    }
    assert_int_equal(atomic_load(&mock->fail_in[MOCK_KERNEL]), 0); /* it was tried */
    assert_int_equal(ops_array_read(waits, sizeof sum, &sum), HAL_OK);
    assert_true(sum == 0);
    assert_int_equal(ops_array_read(others[OTHERS - 1], sizeof sum, &sum), HAL_OK);
    assert_true(sum == 10);
    ops_array_release(y);
    ops_array_release(waits);
    arrays_release(others, OTHERS);
    close_place(&p);
}

static int begin(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_the_device_fails),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(the_device_is_lost),
        cmocka_unit_test(graphs_fail),
        cmocka_unit_test(few_bindings),
        cmocka_unit_test(too_few_bindings),
        cmocka_unit_test(work_that_waits_fails_no_other_call),
        cmocka_unit_test(each_malloc_fails),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
