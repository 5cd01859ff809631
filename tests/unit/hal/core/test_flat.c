/* Promises 22 and 25 on a real device, the cpu plugin with its worker threads: a process that opens
 * and closes a thousand times, or allocates and frees a hundred thousand times, stays as large as
 * it was; the child of a fork is told. */

#include "unit.h"
#include <hal/hal.h>
#include <malloc.h>
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sizes say something where neither a sanitizer nor an emulator has a hand in them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HAL_TEST_EMULATED)
enum { OWN_MALLOC = 0, ALLOCATIONS = 2000 };
#else
enum { OWN_MALLOC = 1, ALLOCATIONS = 100000 };
#endif

/* The program's argument: a few cycles show a leak, a thousand show its absence. */
static int cycles = 40;

/* What the process holds at the moment: bytes of malloc, and pages that are in memory. */
typedef struct footprint {
    size_t allocated, resident;
} footprint;

static footprint measure(void)
{
    footprint now = {mallinfo2().uordblks, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &now.resident), 1);
    fclose(file);
    now.resident *= (size_t)sysconf(_SC_PAGESIZE);
    return now;
}

/* Work that leaves the process as large as it was: growth in one round may be the C library's own
 * (what malloc keeps for a thread and the arenas of threads that met count as allocated), a leak
 * grows in each of ten. */
static void must_be_flat(void (*work)(void *context, int times), void *context, int times)
{
    size_t grown = 0, wider = 0;
    for (int round = 0; round < 10; round++) {
        const footprint before = measure();
        work(context, times);
        const footprint after = measure();
        grown = after.allocated > before.allocated ? after.allocated - before.allocated : 0;
        wider = after.resident > before.resident ? after.resident - before.resident : 0;
        if (!OWN_MALLOC || (grown < 4096 + (size_t)times && wider <= 4u << 20)) {
            return;
        }
    }
    fail_msg("%d times, and in each of ten rounds more is allocated (at last %zu bytes) or "
             "resident (%zu)",
             times, grown, wider);
}

/* One use of the device, from opening to closing. */
static void use_once(void)
{
    static const int64_t shape[2] = {3, 4};
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    float numbers[12] = {0};
    assert_ok(hal_device_open("cpu", &device));
    assert_ok(hal_queue_create(device, &queue));
    assert_ok(ops_context_create(queue, &context));
    assert_ok(ops_scope_begin(context));
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 2, shape, numbers);
    assert_ok(ops_array_read(ops_exp(x), sizeof numbers, numbers));
    assert_true(numbers[11] == 1);
    assert_ok(ops_scope_end(context));
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

static void use(void *context, int times)
{
    (void)context;
    for (int i = 0; i < times; i++) {
        use_once();
    }
}

static void opening_and_closing(void **state)
{
    use(NULL, cycles / 4);
    must_be_flat(use, NULL, cycles);
}

static void allocate(void *device, int times)
{
    for (int i = 0; i < times; i++) {
        hal_buffer *buffer = NULL;
        const uint64_t bytes = 4u << (i % 14);
        assert_ok(hal_buffer_create(device, (uint32_t)i % HAL_MEMORY_KIND_COUNT, bytes, &buffer));
        hal_buffer_release(buffer);
        if (i % 1000 == 999) {
            assert_ok(hal_device_trim(device));
        }
    }
}

static void allocating_and_freeing(void **state)
{
    hal_device *device = NULL;
    assert_ok(hal_device_open("cpu", &device));
    allocate(device, ALLOCATIONS / 10);
    must_be_flat(allocate, device, ALLOCATIONS);
    hal_device_release(device);
}

/* In the child of a fork the pool's threads are missing: all answers so, and can be let go. */
#if !defined(__SANITIZE_THREAD__) && !defined(HAL_TEST_EMULATED)
static void forked_children_are_told(void **state)
{
    static const int64_t shape[1] = {4};
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    float numbers[4] = {1, 2, 3, 4};
    assert_ok(hal_device_open("cpu", &device));
    assert_ok(hal_queue_create(device, &queue));
    assert_ok(ops_context_create(queue, &context));
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 1, shape, numbers);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = hal_queue_wait(queue, HAL_WAIT_FOREVER) != HAL_ERROR_INVALID_STATE;
        wrong |= (!strstr(hal_status_message(), "forked")) << 1;
        wrong |= (ops_array_read(ops_exp(x), sizeof numbers, numbers) == HAL_OK) << 2;
        wrong |= (!strstr(hal_status_message(), "forked")) << 3;
        ops_array_release(x);
        ops_context_destroy(context);
        hal_queue_destroy(queue);
        hal_device_release(device);
        hal_device *own = NULL;
        wrong |= (hal_device_open("cpu", &own) != HAL_OK) << 4;
        hal_device_release(own);
        if (!wrong) {
            use_once(); /* its own device works */
        }
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(ops_array_read(ops_exp(x), sizeof numbers, numbers));
    ops_array_release(x);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
}
#endif

int main(int argc, char **argv)
{
    cycles = argc > 1 ? atoi(argv[1]) : cycles;
    const struct CMUnitTest tests[] = {
/* Neither the thread sanitizer nor an emulator allows threads after a fork in a process with
 * threads. */
#if !defined(__SANITIZE_THREAD__) && !defined(HAL_TEST_EMULATED)
        cmocka_unit_test(forked_children_are_told),
#endif
        cmocka_unit_test(opening_and_closing),
        cmocka_unit_test(allocating_and_freeing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
