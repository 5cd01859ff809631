/* Memory of the cuda plugin to and from DLPack's structures, over a driver without a GPU
 * (cuda_mock.h): addresses, the order of streams without waits of the host, lifetime. */
#include "unit.h"

#include <dlfcn.h>
#include <hal/hal.h>
#include <ops/dlpack.h>
#include <ops/ops.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_mock.h"

enum { WORDS = 64 };

static cuda_mock *cuda;
static hal_device *device;
static hal_queue *queue, *consumer;
static ops_context *context;
static int released;

static void count_release(void *user)
{
    ++*(int *)user;
}

static int begin(void **state)
{
    memset(cuda, 0, sizeof *cuda);
    cuda->devices = 2;
    cuda->memory_limit = UINT64_C(1) << 30;
    released = 0;
    assert_ok(hal_device_open("cuda:1", &device));
    assert_ok(hal_queue_create(device, &queue));
    assert_ok(hal_queue_create(device, &consumer));
    assert_ok(ops_context_create(queue, &context));
    return 0;
}

static int end(void **state)
{
    ops_context_destroy(context);
    hal_queue_destroy(consumer);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

static ops_dlpack_tensor source_of(uint32_t *words, int64_t *shape)
{
    return (ops_dlpack_tensor){.data = words,
                               .device = {OPS_DLPACK_GPU, 1},
                               .rank = 1,
                               .type = {1, 32, 1},
                               .shape = shape};
}

TEST_WITH(memory_of_the_device_is_shared, begin, end)
{
    static _Alignas(256) uint32_t words[WORDS];
    int64_t shape[1] = {WORDS - 1};
    ops_dlpack_tensor source = source_of(words + 1, shape);
    ops_tensor tensor;
    hal_memory_statistics before, after;
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = 100 + i;
    }
    assert_ok(hal_device_get_memory(device, &before));
    assert_ok(ops_tensor_share_dlpack(context, &source, 0, count_release, &released, &tensor));
    assert_ok(hal_device_get_memory(device, &after));
    assert_int_equal(after.copied_bytes, before.copied_bytes);
    uint32_t seen[WORDS] = {0};
    assert_ok(ops_tensor_read(context, &tensor, sizeof seen - 4, seen));
    assert_memory_equal(seen, words + 1, sizeof seen - 4);
    ops_tensor_release(&tensor);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(released, 1);
    source.device.index = 0;
    if (ops_tensor_share_dlpack(context, &source, 0, NULL, NULL, &tensor) !=
        HAL_ERROR_UNSUPPORTED) {
        fail_msg("memory of another device was taken");
    }
}

/* The consumer's stream waits for an event of the queue, and the memory's next use for one of the
 * consumer's stream; the host waits for nothing. */
TEST_WITH(exports_have_an_order_with_a_stream, begin, end)
{
    const uint32_t words[WORDS] = {7};
    const int64_t shape[1] = {WORDS};
    ops_tensor tensor;
    uint64_t stream = 0;
    int64_t own = 0;
    ops_dlpack_managed *managed = NULL;
    assert_ok(hal_queue_get_native(consumer, "CUstream", &stream));
    assert_ok(ops_dlpack_get_stream(context, &own));
    assert_true(own > 2 && (uint64_t)own != stream);
    assert_ok(ops_tensor_from_host(context, HAL_TYPE_U32, 1, shape, words, &tensor));
    assert_ok(ops_tensor_to_dlpack_stream(context, &tensor, (int64_t)stream, &managed));
    managed->destroy(managed); /* what is made once is there now */
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    int waits = cuda->event_waits;
    cuda->hold = 1;
    assert_ok(hal_queue_fill(queue, (hal_range){tensor.buffer, 0, 8}, 3));
    assert_ok(ops_tensor_to_dlpack_stream(context, &tensor, (int64_t)stream, &managed));
    assert_int_equal(cuda->event_waits, waits + 1);
    assert_int_equal(managed->tensor.device.kind, OPS_DLPACK_GPU);
    assert_int_equal(managed->tensor.device.index, 1);
    assert_int_equal(managed->flags, OPS_DLPACK_READ_ONLY);
    hal_memory_handle handle = {.size = sizeof handle};
    assert_ok(hal_buffer_export(tensor.buffer, HAL_HANDLE_NATIVE, &handle));
    assert_int_equal((uint64_t)(uintptr_t)managed->tensor.data, handle.handle + handle.offset);
    ops_tensor_release(&tensor);
    waits = cuda->event_waits;
    managed->destroy(managed);
    assert_true(cuda->event_waits > waits);
    cuda->hold = 0;
    assert_ok(ops_tensor_from_host(context, HAL_TYPE_U32, 1, shape, words, &tensor));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    waits = cuda->event_waits;
    assert_ok(ops_tensor_to_dlpack_stream(context, &tensor, OPS_DLPACK_NO_STREAM, &managed));
    managed->destroy(managed);
    assert_ok(ops_tensor_to_dlpack(context, &tensor, 0, &managed));
    managed->destroy(managed);
    assert_int_equal(cuda->event_waits, waits);
    ops_tensor_release(&tensor);
}

static int group_begin(void **state)
{
    setenv("HAL_PLUGIN_PATH", CUDA_PLUGIN_PATH, 1);
    setenv("HAL_CACHE_DIR", "off", 1);
    void *library = dlopen(CUDA_MOCK_PATH, RTLD_NOW | RTLD_GLOBAL);
    cuda = library ? dlsym(library, CUDA_MOCK_SYMBOL) : NULL;
    return cuda ? 0 : -1;
}

UNIT_MAIN(group_begin, NULL)
