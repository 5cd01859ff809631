/* Fences of the OpenCL plugin, with a loader that counts the user events which nobody completed
 * (opencl_mock.c): a driver keeps the context of such an event for ever. */
#include "../plugin_host.h"

static const hal_plugin_entries *plugin;
static hal_plugin_device *device;
static const int *lost;

static int begin(void **state)
{
    void *loader = dlopen(OPENCL_MOCK_PATH, RTLD_NOW | RTLD_LOCAL);
    (void)state;
    lost = loader ? dlsym(loader, "mock_user_lost") : NULL;
    plugin = lost ? plugin_load(OPENCL_PLUGIN_PATH) : NULL;
    hal_device_info infos[4];
    uint32_t count = 0;
    return !plugin || plugin_list(plugin, infos, 4, &count) != HAL_OK ||
           plugin_open(plugin, 0, &device) != HAL_OK;
}

static int end(void **state)
{
    (void)state;
    plugin->device_close(device);
    return 0;
}

static hal_plugin_fence *fence_new(void)
{
    hal_plugin_fence *fence = NULL;
    assert_int_equal(plugin->fence_create(device, HAL_HANDLE_NATIVE, &fence), HAL_OK);
    return fence;
}

/* The event of a fence that nobody raised ends with its last reference. */
TEST(fences_that_nobody_raised_end)
{
    hal_plugin_fence *fence = fence_new(), *same = NULL;
    uint64_t handle = 0;
    plugin->fence_destroy(device, fence);
    assert_int_equal(*lost, 0);
    fence = fence_new();
    assert_int_equal(plugin->fence_export(device, fence, HAL_HANDLE_NATIVE, &handle), HAL_OK);
    assert_int_equal(plugin->fence_import(device, HAL_HANDLE_NATIVE, handle, &same), HAL_OK);
    plugin->fence_destroy(device, fence);
    plugin->fence_destroy(device, same);
    assert_int_equal(*lost, 0);
}

TEST(fences_are_raised)
{
    const hal_batch nothing = {.size = sizeof nothing};
    hal_plugin_queue *queue = NULL;
    hal_plugin_fence *fence = fence_new();
    const hal_plugin_wait wait = {.fence = fence, .value = 1, .kind = HAL_WAIT_FENCE};
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    assert_int_equal(plugin->queue_signal_fence(queue, fence, 2), HAL_ERROR_UNSUPPORTED);
    assert_int_equal(plugin->queue_signal_fence(queue, fence, 1), HAL_OK);
    assert_int_equal(plugin->submit(queue, &nothing, &wait, 1, 1), HAL_OK);
    assert_int_equal(plugin->wait(queue, 1, UINT64_MAX), HAL_OK);
    plugin->fence_destroy(device, fence);
    plugin->queue_destroy(device, queue);
    assert_int_equal(*lost, 0);
}

UNIT_MAIN(begin, end)
