/* The fault layer: what HAL_FAULT names fails with a plugin's status and a sentence, once or from
 * then on, and nothing else does. */
#include "mock_fixture.h"

static mock_state *mock;

static void opening_fails(const char *layers, const char *faults, const char *words)
{
    hal_device *device = NULL;
    setenv("HAL_LAYERS", layers, 1);
    setenv("HAL_FAULT", faults, 1);
    assert_fails(hal_device_open("mock", &device), HAL_ERROR_INVALID_ARGUMENT, words);
    assert_null(device);
}

/* Before any device is open the variables are read again at each call. */
TEST(what_cannot_be_read_is_refused)
{
    opening_fails("speed", "", "HAL_LAYERS: expected a list of validate and fault, got \"speed\"");
    opening_fails("fault,faul", "wait:1", "got \"faul\"");
    static const char *const wrong[] = {"",         "wait",    "wait:",   "wait:0",  "wait:-1",
                                        "pray:1",   "wait:1x", "wait:1,,submit:1",
                                        "wait: 1", ":1",      "waiting:1"};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        opening_fails("fault", wrong[i], "KIND:N");
    }
}

/* Promise 13: a device that is lost stays lost, and everything can be destroyed. */
TEST(named_calls_fail)
{
    setenv("HAL_LAYERS", " fault,", 1);
    setenv("HAL_FAULT", "allocation:3,compile:2,submit:2,wait:4,lost:11+", 1);
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *a = mock_buffer(device, 4096), *b = mock_buffer(device, 8192);

    /* The third allocation fails, the pool trims and asks again: nobody sees it. */
    hal_buffer *c = mock_buffer(device, 1 << 20);
    assert_int_equal(mock->calls[MOCK_ALLOCATE], 3);

    hal_kernel *kernel = mock_kernel(device, 1), *none = NULL;
    hal_ir_kernel *ir = mock_ir(2);
    const uint32_t made = mock->calls[MOCK_KERNEL];
    assert_fails(hal_kernel_create(device, ir, &none), HAL_ERROR_COMPILE,
                 "call 2 of its kind fails by HAL_FAULT=compile:2");
    assert_int_equal(mock->calls[MOCK_KERNEL], made); /* the plugin was not asked */
    assert_ok(hal_kernel_create(device, ir, &none));
    hal_kernel_release(none);
    hal_ir_kernel_destroy(ir);

    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER)); /* submit 1, wait 1 */
    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_fails(hal_queue_flush(queue, NULL), HAL_ERROR_INTERNAL, "submitting 1 commands");
    for (int i = 2; i <= 3; i++) { /* submit 3 was an empty batch in the place of the second */
        assert_ok(mock_dispatch(queue, kernel, a, b));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER)); /* 4 and 5, 2 and 3 */
    }
    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_fails(hal_queue_wait(queue, HAL_WAIT_FOREVER), HAL_ERROR_INTERNAL, "wait:4");

    /* Six submits and four waits have been asked for: the device is lost, and stays so. */
    assert_fails(hal_queue_wait(queue, HAL_WAIT_FOREVER), HAL_ERROR_DEVICE_LOST, "lost:11+");
    assert_fails(hal_queue_wait(queue, HAL_WAIT_FOREVER), HAL_ERROR_DEVICE_LOST,
                 "was lost earlier");
    assert_fails(mock_dispatch(queue, kernel, a, b), HAL_ERROR_DEVICE_LOST, "was lost earlier");
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_buffer_release(c);
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);
}

static int begin(void **state)
{
    const int failed = mock_begin(state);
    mock = mock_find("mock");
    mock_reset(mock);
    return failed;
}

UNIT_MAIN(begin, NULL)
