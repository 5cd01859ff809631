/* Kernels that are compiled in the background: hal_kernel_create_ahead and what waits for it. */
#include <dirent.h>
#include <hal/ir_build.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mock_device.h"

static hal_buffer *in, *out;
static int threads; /* of the process, without those that compile */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static int thread_count(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        count += task->d_name[0] != '.';
    }
    if (tasks) {
        closedir(tasks);
    }
    return count;
}

/* The builder of the kernel of mock_ir. */
static hal_ir_builder *built(int32_t number)
{
    hal_ir_builder *b = NULL;
    assert_ok(hal_ir_builder_create("shift", &b));
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id from = hal_ir_binding(b, "in", HAL_TYPE_I32, HAL_ACCESS_READ);
    const hal_ir_memory_id to = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_WRITE);
    hal_ir_scalar_value(b, "unused", HAL_TYPE_I32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_store(b, to, i, hal_ir_add(b, hal_ir_load(b, from, i), hal_ir_i32(b, number)));
    return b;
}

static hal_kernel *ahead(int32_t number)
{
    hal_ir_builder *b = built(number);
    hal_kernel *made = NULL;
    assert_ok(hal_kernel_create_ahead(device, b, NULL, &made));
    hal_ir_builder_destroy(b);
    return made;
}

/* The plugin has been asked for that many kernels since the test began. */
static void compiles_await(uint32_t count)
{
    while (atomic_load(&mock->calls[MOCK_KERNEL]) < count) {
        pause_ms(1);
    }
}

static void *thread_end(void *argument)
{
    *(pid_t *)argument = gettid();
    return NULL;
}

/* A thread is in /proc for a moment after it was joined. */
static void thread_await_gone(pid_t thread)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", (int)thread);
    while (access(path, F_OK) == 0) {
        pause_ms(1);
    }
}

static void thread_count_await(int count)
{
    while (thread_count() != count) {
        pause_ms(1);
    }
}

static int ahead_begin(void **state)
{
    pthread_t first; /* checkers of threads have one of their own from then on */
    pid_t number = 0;
    device_begin(state);
    if (pthread_create(&first, NULL, thread_end, &number) == 0) {
        pthread_join(first, NULL);
        thread_await_gone(number);
    }
    threads = thread_count();
    in = mock_buffer(device, 256);
    out = mock_buffer(device, 256);
    return 0;
}

static int ahead_end(void **state)
{
    hal_buffer_release(in);
    hal_buffer_release(out);
    return device_end(state);
}

static bool has_threads(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

DEVICE_TEST(work_is_recorded_while_kernels_are_compiled)
{
    if (!has_threads()) {
        skip();
    }
    hal_kernel *made[3];
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    for (int i = 0; i < 3; i++) {
        made[i] = ahead(100 + i);
        assert_string_equal(hal_kernel_get_name(made[i]), "shift");
        assert_int_equal(hal_kernel_get_compile_ns(made[i]), 0);
        assert_ok(mock_dispatch(queue, made[i], in, out));
    }
    compiles_await(1);
    assert_true(thread_count() > threads);
    assert_int_equal(mock->logged_count, 0);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(atomic_load(&mock->calls[MOCK_KERNEL]), 3);
    assert_int_equal(mock->logged_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_non_null(mock->logged[i].command.kernel);
        assert_true(hal_kernel_get_compile_ns(made[i]) > 0);
        assert_true(i == 0 || mock->logged[i].command.kernel != mock->logged[0].command.kernel);
        hal_kernel_release(made[i]);
    }
    thread_count_await(threads); /* the process is left as found */
}

/* A batch that waits for compilers takes more commands than the first batch after a wait does. */
DEVICE_TEST(a_long_batch_does_not_wait)
{
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    hal_kernel *made = ahead(110);
    for (int i = 0; i < 100; i++) {
        assert_ok(mock_dispatch(queue, made, in, out));
    }
    assert_int_equal(mock->logged_count, 0);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, 100);
    hal_kernel_release(made);
}

DEVICE_TEST(an_error_comes_from_the_flush)
{
    char expected[512];
    hal_kernel *made = NULL;
    hal_ir_builder *b = built(120);
    atomic_store(&mock->fail_with, HAL_ERROR_COMPILE);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    assert_int_equal(hal_kernel_create_built(device, b, NULL, &made), HAL_ERROR_COMPILE);
    snprintf(expected, sizeof expected, "%s", hal_status_message());
    hal_ir_builder_destroy(b);
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    made = ahead(120);
    hal_point point;
    assert_ok(mock_dispatch(queue, made, in, out));
    assert_ok(mock_dispatch(queue, kernel, in, out));
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    assert_int_equal(hal_queue_flush(queue, &point), HAL_ERROR_COMPILE);
    assert_string_equal(hal_status_message(), expected);
    assert_int_equal(mock->logged_count, 0); /* the batch is dropped */
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));

    /* The next dispatch compiles it once more, and has its error. */
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    assert_int_equal(mock_dispatch(queue, made, in, out), HAL_ERROR_COMPILE);
    assert_string_equal(hal_status_message(), expected);
    assert_int_equal(hal_kernel_wait(made), HAL_ERROR_COMPILE);
    assert_ok(mock_dispatch(queue, made, in, out));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, 1);
    assert_ok(hal_kernel_wait(made));
    hal_kernel_release(made);
}

DEVICE_TEST(an_equal_kernel_waits_for_it)
{
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    hal_kernel *made = ahead(130), *second = ahead(130), *again = NULL;
    assert_ptr_equal(made, second);
    compiles_await(1);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    again = mock_kernel(device, 130);
    assert_ptr_equal(made, again);
    assert_true(hal_kernel_get_compile_ns(again) > 0);
    assert_int_equal(atomic_load(&mock->calls[MOCK_KERNEL]), 1);
    hal_kernel_release(made);
    hal_kernel_release(second);
    hal_kernel_release(again);
}

static void *create_in_thread(void *unused)
{
    hal_kernel *made = NULL;
    hal_ir_builder *b = built(135);
    hal_kernel_create_built(device, b, NULL, &made);
    hal_ir_builder_destroy(b);
    return made;
}

static void *end_stall(void *unused)
{
    pause_ms(10);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    return NULL;
}

/* Another thread compiles the kernel within its call, and may fail. */
static void wait_for_a_call(hal_status expected)
{
    pthread_t creates, ends;
    void *other = NULL;
    atomic_store(&mock->calls[MOCK_KERNEL], 0);
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    assert_int_equal(pthread_create(&creates, NULL, create_in_thread, NULL), 0);
    compiles_await(1);
    hal_kernel *made = ahead(135);
    assert_ok(mock_dispatch(queue, made, in, out));
    assert_int_equal(pthread_create(&ends, NULL, end_stall, NULL), 0);
    assert_int_equal(hal_queue_wait(queue, HAL_WAIT_FOREVER), expected);
    assert_int_equal(mock_dispatch(queue, made, in, out), expected);
    pthread_join(ends, NULL);
    pthread_join(creates, &other);
    hal_kernel_release(made);
    hal_kernel_release(other);
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
}

DEVICE_TEST(a_kernel_that_another_call_compiles)
{
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->fail_with, HAL_ERROR_COMPILE);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    wait_for_a_call(HAL_ERROR_COMPILE);
    wait_for_a_call(HAL_OK);
}

/* One thread compiles; what is queued and released is not compiled at all. */
DEVICE_TEST(released_kernels_are_not_compiled)
{
    if (!has_threads()) {
        skip();
    }
    hal_kernel *made[20];
    const int live = atomic_load(&mock->live_kernels);
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    for (int i = 0; i < 20; i++) {
        made[i] = ahead(140 + i);
    }
    compiles_await(1);
    for (int i = 0; i < 20; i++) {
        hal_kernel_release(made[i]);
    }
    assert_true(atomic_load(&mock->calls[MOCK_KERNEL]) <= 7);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    hal_kernel *last = ahead(170);
    assert_ok(hal_kernel_wait(last));
    assert_ok(mock_dispatch(queue, last, in, out));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_kernel_release(last);
    assert_true(atomic_load(&mock->calls[MOCK_KERNEL]) <= 8);
    /* Those that were being compiled: threads end without more jobs. */
    while (thread_count() != threads || atomic_load(&mock->live_kernels) != live) {
        pause_ms(1);
        assert_ok(mock_dispatch(queue, kernel, in, out));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    }
}

/* Recorded work keeps a kernel that is not compiled yet. */
DEVICE_TEST(recorded_work_keeps_the_kernel)
{
    hal_kernel *made = ahead(180);
    assert_ok(mock_dispatch(queue, made, in, out));
    hal_kernel_release(made);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, 1);
    assert_non_null(mock->logged[0].command.kernel);
}

DEVICE_TEST(a_graph_waits_at_its_launch)
{
    hal_graph *graph = NULL;
    hal_kernel *made = ahead(190);
    assert_ok(hal_graph_begin(queue));
    assert_ok(mock_dispatch(queue, made, in, out));
    assert_ok(hal_graph_end(queue, NULL, 0, &graph));
    hal_kernel_release(made);
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, 1);
    assert_non_null(mock->logged[0].command.kernel);
    hal_graph_destroy(graph);
}

DEVICE_TEST(products_are_compiled_ahead_too)
{
    hal_gemm_description product = mock_product();
    hal_kernel *made = NULL;
    uint64_t workspace = 0;
    product.m = 2000;
    assert_int_equal(hal_kernel_create_gemm_ahead(device, &product, &made, &workspace),
                     HAL_ERROR_UNSUPPORTED);
    assert_null(made);
    product.m = 4;
    assert_ok(hal_kernel_create_gemm(device, &product, &made, &workspace));
    assert_ok(hal_kernel_wait(made)); /* of one that was compiled within the call */
    assert_true(hal_kernel_get_compile_ns(made) > 0);
    hal_kernel_release(made);
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    assert_ok(hal_kernel_create_gemm_ahead(device, &product, &made, &workspace));
    assert_int_equal(workspace, 4096);
    assert_int_equal(hal_kernel_get_compile_ns(made), 0);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    assert_ok(hal_kernel_wait(made));
    hal_kernel_release(made);
}

static void *unstall(void *argument)
{
    (void)argument;
    pause_ms(50);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    return NULL;
}

/* As a destructor of what a compiler has created while it works. */
static void compiler_end(void)
{
    if (atomic_load(&mock->stall[MOCK_KERNEL])) {
        _exit(2);
    }
}

/* A child has none of the threads, also at its exit. A process that exits waits for what its own
 * threads compile, before anything is destroyed that they have created. */
DEVICE_TEST(fork_and_exit_meet_threads)
{
#ifdef HAL_TEST_NO_FORK
    skip();
#endif
    if (!has_threads()) {
        skip();
    }
    atomic_store(&mock->stall[MOCK_KERNEL], 1);
    hal_kernel *made = ahead(200);
    compiles_await(1);
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        alarm(30);
        hal_kernel_release(made);
        device = mock_open("mock");
        mock->calls[MOCK_KERNEL] = 0;
        made = ahead(201);
        compiles_await(1);
        if (atexit(compiler_end) != 0 || pthread_create(&thread, NULL, unstall, NULL) != 0) {
            _exit(1);
        }
        exit(0);
    }
    int status = -1;
    const pid_t ended = waitpid(child, &status, 0);
    atomic_store(&mock->stall[MOCK_KERNEL], 0);
    assert_ok(hal_kernel_wait(made));
    hal_kernel_release(made);
    assert_int_equal(ended, child);
    assert_int_equal(status, 0);
}

DEVICE_TEST(compilers_are_other_processors)
{
    const long others = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    const uint32_t compilers = hal_device_get_compilers(device);
    assert_true(compilers <= 15 && compilers <= (uint32_t)others);
    assert_int_equal(hal_device_get_compilers(NULL), 0);
}

UNIT_MAIN(ahead_begin, ahead_end)
