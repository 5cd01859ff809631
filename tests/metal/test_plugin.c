/* The metal plugin through hal's interface on the stand-in: batches of two queues that wait for
 * each other, and what a program meets when the device is lost, has no memory, or after fork. */
#include <hal/hal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Buffers are large enough for blit encoders; kernels change the first COUNT words of them. */
enum { COUNT = 2048, WORDS = 1 << 18, BYTES = 4 * WORDS, ROUNDS = 30, GROUP = 64 };

typedef struct fixture {
    hal_device *device;
    hal_queue *queues[2];
    hal_kernel *kernel;
    hal_buffer *buffers[2];
} fixture;

#define CHECK(call) check_ok((call), #call)

static void check_ok(hal_status status, const char *call)
{
    if (status != HAL_OK) {
        fail_msg("%s: %s: %s", call, hal_status_name(status), hal_status_message());
    }
}

/* target[i] += source[i] + by */
static hal_kernel *make_kernel(hal_device *device)
{
    hal_ir_builder *b;
    hal_ir_kernel *ir;
    hal_kernel *kernel;
    CHECK(hal_ir_builder_create("accumulate", &b));
    hal_ir_group_size(b, GROUP, 1, 1);
    const hal_ir_memory_id source = hal_ir_binding(b, "source", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id target =
        hal_ir_binding(b, "target", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value by = hal_ir_scalar_value(b, "by", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value sum = hal_ir_add(b, hal_ir_load(b, target, i), hal_ir_load(b, source, i));
    hal_ir_store(b, target, i, hal_ir_add(b, sum, by));
    CHECK(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    CHECK(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static void open_fixture(fixture *f)
{
    CHECK(hal_device_open("metal", &f->device));
    f->kernel = make_kernel(f->device);
    for (int i = 0; i < 2; i++) {
        CHECK(hal_queue_create(f->device, &f->queues[i]));
        CHECK(hal_buffer_create(f->device, HAL_MEMORY_DEVICE, BYTES, &f->buffers[i]));
    }
}

static void close_fixture(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        hal_buffer_release(f->buffers[i]);
        hal_queue_destroy(f->queues[i]);
    }
    hal_kernel_release(f->kernel);
    hal_device_release(f->device);
}

static hal_status accumulate(fixture *f, int queue, int source, uint32_t by)
{
    const uint32_t grid[3] = {COUNT / GROUP, 1, 1};
    const hal_range ranges[2] = {{f->buffers[source], 0, HAL_WHOLE},
                                 {f->buffers[1 - source], 0, HAL_WHOLE}};
    return hal_queue_dispatch(f->queues[queue], f->kernel, grid, ranges, 2, &by, sizeof by);
}

/* What both buffers hold: at the beginning, and after it. */
typedef struct expected {
    uint32_t head[2], tail[2];
} expected;

/* Two batches on one queue, which only a fence orders; then the other queue waits for them. */
static void run_round(fixture *f, expected *e, uint32_t round)
{
    const int queue = (int)(round & 1);
    const hal_range left = {f->buffers[0], 0, HAL_WHOLE}, right = {f->buffers[1], 0, HAL_WHOLE};
    hal_point point;
    CHECK(accumulate(f, queue, 0, round));
    e->head[1] += e->head[0] + round;
    CHECK(hal_queue_flush(f->queues[queue], NULL));
    if (round % 7 == 3) {
        CHECK(hal_queue_copy(f->queues[queue], right, left));
        e->head[0] = e->head[1];
        e->tail[0] = e->tail[1];
    }
    CHECK(accumulate(f, queue, 1, 1));
    e->head[0] += e->head[1] + 1;
    CHECK(accumulate(f, queue, 0, 3)); /* in the same encoder: a barrier orders them */
    e->head[1] += e->head[0] + 3;
    if (round % 5 == 4) {
        CHECK(hal_queue_fill(f->queues[queue], right, 0x01010101u * (round & 255)));
        e->head[1] = e->tail[1] = 0x01010101u * (round & 255);
    }
    CHECK(hal_queue_flush(f->queues[queue], &point));
    CHECK(hal_queue_wait_point(f->queues[1 - queue], point));
}

static void queues_wait_for_each_other(void **state)
{
    static uint32_t words[WORDS];
    const uint64_t half = BYTES / 2;
    fixture f;
    expected e = {{0x05050505, 0x07070707}, {0x05050505, 0x07070707}};
    (void)state;
    open_fixture(&f);
    for (int i = 0; i < 2; i++) {
        CHECK(hal_queue_fill(f.queues[0], (hal_range){f.buffers[i], 0, HAL_WHOLE}, e.head[i]));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        run_round(&f, &e, round);
    }
    hal_queue *last = f.queues[ROUNDS & 1];
    for (int i = 0; i < 2; i++) {
        CHECK(hal_queue_read(last, f.buffers[i], 0, BYTES, words));
        for (int k = 0; k < WORDS; k++) {
            assert_int_equal(words[k], k < COUNT ? e.head[i] : e.tail[i]);
        }
    }
    CHECK(hal_queue_fill(last, (hal_range){f.buffers[1], half, half}, 0x09090909));
    CHECK(hal_queue_copy(last, (hal_range){f.buffers[1], half, half},
                         (hal_range){f.buffers[0], 0, half}));
    CHECK(hal_queue_read(last, f.buffers[0], 0, BYTES, words));
    assert_int_equal(words[5], 0x09090909);
    assert_int_equal(words[WORDS - 1], e.tail[0]);
    close_fixture(&f);
}

static void expect_lost(const char *code, const char *words)
{
    uint32_t number;
    fixture f;
    open_fixture(&f);
    CHECK(hal_queue_fill(f.queues[0], (hal_range){f.buffers[0], 0, HAL_WHOLE}, 0));
    CHECK(hal_queue_wait(f.queues[0], HAL_WAIT_FOREVER));
    setenv("METAL_STANDIN_FAIL", "1", 1);
    setenv("METAL_STANDIN_FAIL_CODE", code, 1);
    CHECK(accumulate(&f, 0, 0, 1));
    assert_int_equal(hal_queue_wait(f.queues[0], HAL_WAIT_FOREVER), HAL_ERROR_DEVICE_LOST);
    if (!strstr(hal_status_message(), words)) {
        fail_msg("'%s' is not in '%s'", words, hal_status_message());
    }
    unsetenv("METAL_STANDIN_FAIL");
    /* Lost for good; a point of the other queue that waits for it is no dead end. */
    assert_int_equal(hal_queue_read(f.queues[0], f.buffers[0], 0, 4, &number),
                     HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_queue_wait(f.queues[1], HAL_WAIT_FOREVER) == HAL_OK ||
                         hal_queue_wait(f.queues[1], HAL_WAIT_FOREVER) == HAL_ERROR_DEVICE_LOST,
                     1);
    close_fixture(&f);
    queues_wait_for_each_other(NULL);
}

static void lost_devices_are_errors(void **state)
{
    (void)state;
    expect_lost("11", "METAL_STANDIN_FAIL");
}

static void memory_ends_as_an_error(void **state)
{
    fixture f;
    hal_buffer *buffers[64] = {0}, *more;
    uint32_t count = 0;
    (void)state;
    setenv("METAL_STANDIN_MEMORY", "67108864", 1);
    open_fixture(&f);
    hal_status status = HAL_OK;
    while (status == HAL_OK && count < 64) {
        status = hal_buffer_create(f.device, HAL_MEMORY_DEVICE, 4 << 20, &buffers[count]);
        count += status == HAL_OK;
    }
    assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
    assert_true(count >= 8 && count <= 16);
    CHECK(hal_queue_fill(f.queues[0], (hal_range){buffers[0], 0, HAL_WHOLE}, 1));
    CHECK(hal_queue_wait(f.queues[0], HAL_WAIT_FOREVER));
    hal_buffer_release(buffers[--count]);
    CHECK(hal_buffer_create(f.device, HAL_MEMORY_DEVICE, 4 << 20, &more));
    hal_buffer_release(more);
    while (count > 0) {
        hal_buffer_release(buffers[--count]);
    }
    close_fixture(&f);
    unsetenv("METAL_STANDIN_MEMORY");
}

/* In a child the device answers with an error, at once, and its objects can be released. */
static void a_child_gets_errors(void **state)
{
    fixture f;
    int result;
    (void)state;
    open_fixture(&f);
    CHECK(hal_queue_fill(f.queues[0], (hal_range){f.buffers[0], 0, HAL_WHOLE}, 1));
    const pid_t child = fork();
    if (child == 0) {
        uint32_t number;
        const hal_status status = hal_queue_read(f.queues[0], f.buffers[0], 0, 4, &number);
        close_fixture(&f);
        _exit(status == HAL_OK ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    CHECK(hal_queue_wait(f.queues[0], HAL_WAIT_FOREVER));
    close_fixture(&f);
}

int main(void)
{
    unsetenv("METAL_STANDIN_STRICT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_wait_for_each_other),
        cmocka_unit_test(lost_devices_are_errors),
        cmocka_unit_test(memory_ends_as_an_error),
        cmocka_unit_test(a_child_gets_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
