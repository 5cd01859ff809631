/* Arrays and several threads: releases from any thread while the context's thread makes and
 * computes arrays, and a context that passes from one thread to the next. Meant for the thread
 * sanitizer. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 300, SLOTS = 64 };

/* Arrays on their way to the threads that release them. */
static _Atomic(ops_array *) slots[SLOTS];
static _Atomic int is_over;

static void *release_what_comes(void *seed)
{
    uint32_t at = (uint32_t)(uintptr_t)seed;
    bool is_last = false;
    while (!is_last) {
        is_last = atomic_load(&is_over) != 0;
        for (uint32_t i = 0; i < SLOTS; i++) {
            at = (at + 7) % SLOTS;
            ops_array_release(atomic_exchange(&slots[at], NULL));
        }
    }
    return NULL;
}

/* Passes a reference to the other threads; releases it where nobody took the one before. */
static void pass(ops_array *array, uint32_t number)
{
    ops_array_release(atomic_exchange(&slots[number % SLOTS], array));
}

static void any_thread_releases(void **state)
{
    static const int64_t shape[2] = {3, 5};
    const uint64_t before = statistics_of(test_context).arrays;
    pthread_t threads[THREADS];
    float host[15] = {1, 2, 3}, got[15];
    atomic_store(&is_over, 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, release_what_comes, (void *)i), 0);
    }
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, shape, host));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ok(ops_scope_begin(test_context));
        ops_array *y = made(ops_mul(x, x)), *z = made(ops_tanh(y));
        for (uint32_t i = 0; i < 4; i++) { /* several references of one array */
            pass(ops_array_retain(y), 3 * round + i);
        }
        pass(ops_array_retain(ops_array_transpose(z, 0, 1)), 5 * round);
        ops_array_keep(z);
        ok(ops_scope_end(test_context));
        if (round % 8 == 0) {
            ok(ops_array_read(z, sizeof got, got));
            assert_true(fabsf(got[0] - tanhf(1)) < 1e-6F);
        }
        pass(z, 7 * round);
    }
    atomic_store(&is_over, 1);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        ops_array_release(atomic_exchange(&slots[i], NULL));
    }
    ops_array_release(x);
    ok(ops_context_set_thread(test_context)); /* removes what is left */
    assert_int_equal(statistics_of(test_context).arrays, before);
}

/* A release elsewhere takes effect with the next call of the context's thread, not before. */
static void *release_once(void *array)
{
    ops_array_release(array);
    return NULL;
}

static void in_another_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void releases_wait_for_the_context(void **state)
{
    float one = 1;
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 0, NULL, &one));
    const uint64_t before = statistics_of(test_context).arrays;
    in_another_thread(release_once, ops_array_retain(x));
    assert_int_equal(x->references, 2);
    ops_array *y = made(ops_neg(x));
    assert_int_equal(x->references, 1);
    in_another_thread(release_once, y);
    assert_int_equal(statistics_of(test_context).arrays, before + 1);
    ok(ops_array_evaluate(&x, 1));
    assert_int_equal(statistics_of(test_context).arrays, before);
    ok(ops_scope_begin(test_context)); /* the scope's reference */
    y = made(ops_neg(x));
    in_another_thread(release_once, y);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, before);
    ops_array_release(x);
}

/* What autograd does: the backward pass runs in a thread of its own. */
static void *backward(void *array)
{
    ops_array *x = array, *y;
    float got = 0;
    bool failed = ops_context_set_thread(test_context) || ops_scope_begin(test_context);
    y = failed ? NULL : ops_mul_scalar(ops_mul(x, x), 2);
    failed = failed || ops_array_read(y, sizeof got, &got) || ops_scope_end(test_context);
    ops_array_release(x); /* at once: the context is this thread's */
    return failed || got != 18 || statistics_of(test_context).arrays != 0 ? array : NULL;
}

static void a_context_passes_between_threads(void **state)
{
    const uint64_t before = statistics_of(test_context).arrays;
    assert_int_equal(before, 0);
    for (int round = 0; round < 5; round++) {
        const float three = 3;
        pthread_t thread;
        void *failed;
        ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 0, NULL, &three));
        assert_int_equal(pthread_create(&thread, NULL, backward, x), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        ok(ops_context_set_thread(test_context));
    }
    refused(ops_context_set_thread(NULL), HAL_ERROR_INVALID_ARGUMENT, "expected a context");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_thread_releases),
        cmocka_unit_test(releases_wait_for_the_context),
        cmocka_unit_test(a_context_passes_between_threads),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
