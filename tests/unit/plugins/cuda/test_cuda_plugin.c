/* The cuda plugin over a driver without a GPU (cuda_mock.h): what the driver is asked to do for
 * batches of every length, points, memory, the compile cache, failures; and what the plugin says
 * where there is no driver or no device. */

#include "cuda_fixture.h"
#include <sys/wait.h>
#include <unistd.h>

/* Before the mock is loaded, on machines that have no driver: a sentence, and nothing else. */
TEST(test_no_driver)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver) {
        dlclose(driver);
        return; /* a machine with the driver: conformance looks at its devices */
    }
    uint32_t count = 0;
    assert_int_equal(plugin_list(plugin, NULL, 0, &count), HAL_ERROR_DRIVER_MISSING);
    assert_non_null(strstr(message, "libcuda.so.1"));
    assert_non_null(strstr(message, "install the NVIDIA driver"));
}

TEST_WITH(test_info, begin, end)
{
    hal_device_info info;
    uint32_t count = 0;
    does(plugin_list(plugin, &info, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(info.name, "Mock GPU");
    assert_string_equal(info.id, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_string_equal(info.architecture, "sm_90");
    assert_int_equal(info.kind, HAL_DEVICE_DISCRETE);
    assert_int_equal(info.shared_bytes, 232448);
    assert_true(info.features & HAL_FEATURE_ASYNC_COPY);
    assert_true(info.features & HAL_FEATURE_VIRTUAL_MEMORY);
    hal_plugin_device *other = NULL;
    fails(plugin_open(plugin, 1, &other), HAL_ERROR_NOT_FOUND, "id: expected that of a device");
}

/* Every offset and length, patterns that repeat and such that do not, of each size. */
TEST_WITH(test_fill_and_copy, begin, end)
{
    static const uint8_t patterns[][16] = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        {127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127},
        {0}};
    static const uint16_t sizes[] = {4, 1, 2, 8, 16};
    hal_plugin_memory *from = memory_of(HAL_MEMORY_SHARED, BYTES);
    hal_plugin_memory *to = memory_of(HAL_MEMORY_DOWNLOAD, BYTES);
    uint8_t *source = pointer_of(from), *target = pointer_of(to);
    for (uint32_t at = 0; at < 5 * 6 * 20 * 3; at++) {
        const uint32_t bytes = sizes[at % 5];
        const uint32_t step = bytes > 4 ? bytes : 1;
        const uint32_t offset = at / 5 % 6 * step, length = at / 30 % 20 * step, p = at / 600;
        const hal_binding bindings[3] = {
            {.memory = length ? from : NULL, .offset = offset, .length = length},
            {.memory = length ? from : NULL, .offset = offset, .length = length},
            {.memory = length ? to : NULL, .offset = 7, .length = length}};
        const hal_command commands[2] = {
            {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = (uint16_t)bytes},
            {.kind = HAL_COMMAND_COPY, .binding_count = 2, .binding_first = 1}};
        memset(source, 0xee, 512);
        memset(target, 0xee, 512);
        submit(commands, 2, bindings, 3, patterns[p], 16);
        for (uint32_t i = 0; i < 512; i++) {
            const uint32_t filled = i - offset, copied = i - 7;
            assert_int_equal(source[i], filled < length ? patterns[p][filled % bytes] : 0xee);
            assert_int_equal(target[i], copied < length ? patterns[p][copied % bytes] : 0xee);
        }
    }
    plugin->memory_free(device, from);
    plugin->memory_free(device, to);
}

/* Rows of planes and boxes, and one row for each slice whose pitch is beyond what the driver's copy
 * of rows takes; what is between the rows stays. */
TEST_WITH(test_copy_rows, begin, end)
{
    static const hal_plugin_copy_rows copies[] = {
        {.row_bytes = 4, .source_pitch = 4, .target_pitch = 4, .rows = 1, .slices = 1},
        {.row_bytes = 12, .source_pitch = 12, .target_pitch = 20, .rows = 7, .slices = 1},
        {.row_bytes = 12, .source_pitch = 32, .target_pitch = 12, .rows = 7, .slices = 1},
        {.row_bytes = 8,
         .source_pitch = 16,
         .target_pitch = 12,
         .source_slice = 100,
         .target_slice = 64,
         .rows = 5,
         .slices = 4},
        {.row_bytes = 8,
         .source_pitch = UINT64_C(1) << 33,
         .target_pitch = 12,
         .source_slice = 24,
         .target_slice = 16,
         .rows = 1,
         .slices = 9}};
    enum { SOURCE = 12, TARGET = 20, SIZE = 512 };
    hal_plugin_memory *from = memory_of(HAL_MEMORY_SHARED, BYTES);
    hal_plugin_memory *to = memory_of(HAL_MEMORY_DOWNLOAD, BYTES);
    uint8_t *source = pointer_of(from), *target = pointer_of(to), expected[SIZE];
    for (uint32_t i = 0; i < SIZE; i++) {
        source[i] = (uint8_t)(i * 7 + 1);
    }
    for (size_t at = 0; at < sizeof copies / sizeof copies[0]; at++) {
        const hal_plugin_copy_rows *rows = &copies[at];
        const hal_binding bindings[2] = {
            {.memory = from, .offset = SOURCE, .length = SIZE - SOURCE},
            {.memory = to, .offset = TARGET, .length = SIZE - TARGET}};
        const hal_command command = {
            .kind = HAL_COMMAND_COPY_ROWS, .binding_count = 2, .scalar_bytes = sizeof *rows};
        memset(target, 0xee, SIZE);
        memset(expected, 0xee, SIZE);
        for (uint32_t s = 0; s < rows->slices; s++) {
            for (uint32_t r = 0; r < rows->rows; r++) {
                memcpy(expected + TARGET + s * rows->target_slice + r * rows->target_pitch,
                       source + SOURCE + s * rows->source_slice + r * rows->source_pitch,
                       rows->row_bytes);
            }
        }
        submit(&command, 1, bindings, 2, (const uint8_t *)rows, sizeof *rows);
        assert_memory_equal(target, expected, SIZE);
    }
    plugin->memory_free(device, from);
    plugin->memory_free(device, to);
}

/* Memory of the host is registered for the time of the import; addresses of others stay theirs. */
TEST_WITH(test_external, begin, end)
{
    static _Alignas(64) uint8_t bytes[256];
    hal_external_info info = {.size = sizeof info};
    does(plugin->external_info(device, &info));
    assert_int_equal(info.import_kinds, HAL_HANDLE_BIT(HAL_HANDLE_HOST) |
                                            HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) |
                                            HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD));
    for (uint32_t kind = HAL_HANDLE_HOST; kind <= HAL_HANDLE_NATIVE; kind++) {
        hal_memory_handle handle = {.size = sizeof handle,
                                    .kind = kind,
                                    .handle = (uint64_t)(uintptr_t)bytes,
                                    .offset = 64,
                                    .bytes = 128,
                                    .access = HAL_ACCESS_READ_WRITE};
        hal_plugin_memory *memory = NULL;
        uint32_t objects = mock->live_objects;
        does(plugin->memory_import(device, &handle, &memory));
        assert_int_equal(mock->live_objects, objects + (kind == HAL_HANDLE_HOST));
        const hal_binding binding = {.memory = memory, .offset = 16, .length = 8};
        const hal_command fill = {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = 4};
        static const uint8_t pattern[8] = {1, 2, 3, 4};
        memset(bytes, 0, sizeof bytes);
        submit(&fill, 1, &binding, 1, pattern, 8);
        assert_memory_equal(bytes + 80, "\1\2\3\4\1\2\3\4", 8);
        assert_int_equal(bytes[79] + bytes[88], 0);
        hal_memory_handle out = {.size = sizeof out};
        does(plugin->memory_export(device, memory, HAL_HANDLE_NATIVE, &out));
        assert_int_equal(out.handle, (uint64_t)(uintptr_t)bytes + 64);
        objects = mock->live_objects;
        plugin->memory_free(device, memory);
        assert_int_equal(mock->live_objects, objects - (kind == HAL_HANDLE_HOST));
        handle.offset = 4;
        if (kind == HAL_HANDLE_NATIVE) {
            fails(plugin->memory_import(device, &handle, &memory), HAL_ERROR_UNSUPPORTED,
                  "multiple of 16");
        }
    }
}

/* Of the whole allocation, where the exporter tells its size; what fails leaves nothing. */
TEST_WITH(test_external_descriptor, begin, end)
{
    hal_memory_handle handle = {.size = sizeof handle,
                                .kind = HAL_HANDLE_OPAQUE_FD,
                                .handle = 41,
                                .offset = 256,
                                .bytes = 1024,
                                .memory = 65536,
                                .access = HAL_ACCESS_READ_WRITE};
    hal_plugin_memory *memory = NULL;
    const uint32_t objects = mock->live_objects;
    mock->descriptor = 41;
    does(plugin->memory_import(device, &handle, &memory));
    assert_int_equal(mock->shared_bytes, 65536);
    plugin->memory_free(device, memory);
    handle.memory = 0;
    does(plugin->memory_import(device, &handle, &memory));
    assert_int_equal(mock->shared_bytes, 1280);
    plugin->memory_free(device, memory);
    handle.handle = 42;
    fails(plugin->memory_import(device, &handle, &memory), HAL_ERROR_UNSUPPORTED, "descriptor 42");
    assert_int_equal(mock->live_objects, objects);
}

/* The driver registers a page once: imports of the same pages share it, until the last one ends. */
TEST_WITH(test_external_pages, begin, end)
{
    static _Alignas(4096) uint8_t pages[3 * 4096];
    const uint32_t objects = mock->live_objects;
    hal_memory_handle handle = {.size = sizeof handle,
                                .kind = HAL_HANDLE_HOST,
                                .handle = (uint64_t)(uintptr_t)pages,
                                .bytes = 8192,
                                .access = HAL_ACCESS_READ_WRITE};
    hal_plugin_memory *first = NULL, *second = NULL, *third = NULL;
    does(plugin->memory_import(device, &handle, &first));
    handle.offset = 4096 + 64;
    handle.bytes = 128;
    does(plugin->memory_import(device, &handle, &second));
    handle.offset = 4096;
    handle.bytes = 4096 + 16;
    fails(plugin->memory_import(device, &handle, &third), HAL_ERROR_UNSUPPORTED,
          "of which no other import holds a part");
    plugin->memory_free(device, first);
    assert_int_equal(mock->live_objects, objects + 1);
    plugin->memory_free(device, second);
    assert_int_equal(mock->live_objects, objects);
    does(plugin->memory_import(device, &handle, &third));
    plugin->memory_free(device, third);
    assert_int_equal(mock->live_objects, objects);
}

/* Memory that another library pinned stays pinned. */
TEST_WITH(test_external_pinned, begin, end)
{
    hal_plugin_memory *owner = NULL, *memory = NULL;
    void *pinned = NULL;
    does(plugin->memory_allocate(device, HAL_MEMORY_SHARED, 1 << 20, &owner));
    does(plugin->memory_map(device, owner, &pinned));
    const uint32_t objects = mock->live_objects;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uint64_t)(uintptr_t)pinned,
                                      .offset = 256,
                                      .bytes = 512,
                                      .access = HAL_ACCESS_READ};
    does(plugin->memory_import(device, &handle, &memory));
    assert_int_equal(mock->live_objects, objects);
    plugin->memory_free(device, memory);
    assert_int_equal(mock->live_objects, objects);
    plugin->memory_free(device, owner);
}

/* Pages that cannot be written are registered as such, where the driver can. */
TEST_WITH(test_external_read_only, begin, end)
{
    static _Alignas(4096) uint8_t pages[4096];
    const uint32_t objects = mock->live_objects;
    hal_memory_handle handle = {.size = sizeof handle,
                                .kind = HAL_HANDLE_HOST,
                                .handle = (uint64_t)(uintptr_t)pages,
                                .bytes = 4096,
                                .access = HAL_ACCESS_READ};
    hal_plugin_memory *memory = NULL, *other = NULL;
    mock->read_only_pages = 1;
    does(plugin->memory_import(device, &handle, &memory));
    handle.access = HAL_ACCESS_READ_WRITE;
    fails(plugin->memory_import(device, &handle, &other), HAL_ERROR_UNSUPPORTED, "only reads");
    plugin->memory_free(device, memory);
    handle.access = HAL_ACCESS_READ;
    mock->read_only_pages = 2;
    fails(plugin->memory_import(device, &handle, &other), HAL_ERROR_UNSUPPORTED,
          "no memory that the process cannot write");
    assert_int_equal(mock->live_objects, objects);
}

TEST_WITH(test_native_handles, begin, end)
{
    uint64_t stream = 0, context = 0;
    does(plugin->queue_handle(queue, "CUstream", &stream));
    does(plugin->device_handle(device, "CUcontext", &context));
    assert_true(stream != 0 && context != 0);
    fails(plugin->device_handle(device, "CUstream", &context), HAL_ERROR_UNSUPPORTED,
          "expected one of CUcontext, CUdevice");
}

/* On the caller's stream, which stays; order with it by an event, which does not. */
TEST_WITH(test_native_queues, begin, end)
{
    uint64_t stream = 0;
    hal_plugin_queue *other = NULL;
    does(plugin->queue_handle(queue, "CUstream", &stream));
    submit(NULL, 0, NULL, 0, NULL, 0);
    const uint32_t objects = mock->live_objects, waits = mock->event_waits;
    does(plugin->queue_import(device, "CUstream", stream, &other));
    uint64_t same = 0;
    does(plugin->queue_handle(other, "CUstream", &same));
    assert_int_equal(same, stream);
    does(plugin->queue_wait_native(other, "CUstream", stream));
    does(plugin->queue_block_native(other, "CUstream", stream));
    assert_int_equal(mock->event_waits, waits + 2);
    fails(plugin->queue_wait_native(other, "CUevent", stream), HAL_ERROR_UNSUPPORTED,
          "expected one of CUstream");
    fails(plugin->queue_import(device, "CUevent", stream, &other), HAL_ERROR_UNSUPPORTED,
          "expected one of CUstream");
    plugin->queue_destroy(device, other);
    assert_int_equal(mock->live_objects, objects);
    submit(NULL, 0, NULL, 0, NULL, 0);
    does(plugin->wait(queue, value, UINT64_MAX));
}

/* Timeline semaphores by a descriptor, which the driver owns afterwards, or by themselves. */
TEST_WITH(test_fences, begin, end)
{
    uint32_t imports = 0, exports = 0;
    hal_plugin_fence *fence = NULL, *same = NULL;
    submit(NULL, 0, NULL, 0, NULL, 0);
    const uint32_t objects = mock->live_objects;
    does(plugin->fence_info(device, &imports, &exports));
    assert_int_equal(imports,
                     HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) | HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD));
    assert_int_equal(exports, 0);
    assert_null(plugin->fence_create);
    mock->descriptor = 43;
    fails(plugin->fence_import(device, HAL_HANDLE_OPAQUE_FD, 44, &fence), HAL_ERROR_UNSUPPORTED,
          "descriptor 44");
    does(plugin->fence_import(device, HAL_HANDLE_OPAQUE_FD, 43, &fence));
    does(plugin->fence_import(device, HAL_HANDLE_NATIVE, (uint64_t)(uintptr_t)mock, &same));
    does(plugin->queue_signal_fence(queue, fence, 5));
    assert_int_equal(mock->semaphore_value, 5);
    const hal_batch empty = {.size = sizeof empty};
    const hal_plugin_wait wait = {.fence = same, .value = 4, .kind = HAL_WAIT_FENCE};
    does(plugin->submit(queue, &empty, &wait, 1, ++value));
    assert_int_equal(mock->semaphore_awaited, 4);
    does(plugin->wait(queue, value, UINT64_MAX));
    const int synchronized = mock->event_synchronized;
    plugin->fence_destroy(device, same);
    assert_int_equal(mock->event_synchronized, synchronized);
    plugin->fence_destroy(device, fence); /* its last value may be on its way */
    assert_int_equal(mock->event_synchronized, synchronized + 1);
    assert_int_equal(mock->live_objects, objects + 1); /* the event of the second batch */
}

/* Parts of reserved addresses get memory each, and lose it; what fails changes nothing. */
TEST_WITH(test_virtual_memory, begin, end)
{
    uint64_t part = 0;
    hal_plugin_memory *memory = NULL;
    submit(NULL, 0, NULL, 0, NULL, 0);
    const uint32_t objects = mock->live_objects;
    mock->physical_left = 5;
    does(plugin->part_bytes(device, &part));
    assert_int_equal(part, 2 << 20);
    does(plugin->memory_reserve(device, 16 * part, &memory));
    assert_int_equal(mock->physical_left, 5);
    does(plugin->memory_commit(device, memory, 2 * part, 3 * part));
    assert_int_equal(mock->physical_left, 2);
    fails(plugin->memory_commit(device, memory, 8 * part, 3 * part), HAL_ERROR_OUT_OF_MEMORY,
          "giving memory to");
    assert_int_equal(mock->physical_left, 2);
    assert_int_equal(mock->mapped, 3);
    does(plugin->memory_protect(device, memory, 2 * part, part, HAL_ACCESS_READ));
    does(plugin->memory_decommit(device, memory, 3 * part, part));
    assert_int_equal(mock->physical_left, 3);
    plugin->memory_free(device, memory); /* with the memory that it has */
    assert_int_equal(mock->physical_left, 5);
    assert_int_equal(mock->mapped, 0);
    assert_int_equal(mock->live_objects, objects);
}

/* With the counter and with events alone. */
TEST_WITH(test_points, begin, end)
{
    for (int events = 0; events < 2; events++) {
        close_device();
        mock->no_writes = events;
        open_device();
        for (uint32_t i = 0; i < 3000; i++) { /* more than events are kept */
            submit(NULL, 0, NULL, 0, NULL, 0);
        }
        does(plugin->wait(queue, value, UINT64_MAX));
        mock->hold = 1;
        submit(NULL, 0, NULL, 0, NULL, 0);
        does(plugin->wait(queue, value - 1, 0));
        assert_int_equal(plugin->wait(queue, value, 0), HAL_ERROR_TIMEOUT);
        assert_int_equal(plugin->wait(queue, value, 2000000), HAL_ERROR_TIMEOUT);
        mock->hold = 0;
        submit(NULL, 0, NULL, 0, NULL, 0);
        does(plugin->wait(queue, value, UINT64_MAX));
        does(plugin->wait(queue, 17, 0));
        uint64_t time = 0;
        mock->late_event = 3; /* the counter tells of a batch before its event is there */
        does(plugin->queue_elapsed(queue, value - 10, value, &time));
        assert_int_equal(time, 10 * 1000000);
        assert_int_equal(mock->late_event, 0);
        fails(plugin->queue_elapsed(queue, 17, value, &time), HAL_ERROR_INVALID_ARGUMENT,
              "expected reached ones among the last 1024");
    }
}

/* Batches that hal asks no time of have other events, at the same places. */
TEST_WITH(test_untimed_batches, begin, end)
{
    enum { EVENTS = 1024 };
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    const hal_batch older = {.size = offsetof(hal_batch, flags), .flags = HAL_BATCH_UNTIMED};
    uint64_t time = 0;
    for (int i = 0; i < EVENTS + 1; i++) {
        does(plugin->submit(queue, &untimed, NULL, 0, ++value));
    }
    for (int i = 0; i < EVENTS - 2; i++) {
        does(plugin->submit(queue, &older, NULL, 0, ++value));
    }
    does(plugin->submit(queue, &untimed, NULL, 0, ++value));
    does(plugin->submit(queue, &older, NULL, 0, ++value));
    does(plugin->wait(queue, value, UINT64_MAX));
    does(plugin->queue_elapsed(queue, value - 2, value, &time));
    assert_int_equal(time, 2 * 1000000);
    fails(plugin->queue_elapsed(queue, value - 1, value, &time), HAL_ERROR_INVALID_ARGUMENT,
          "without HAL_BATCH_UNTIMED");
    fails(plugin->queue_elapsed(queue, value - 2, value - 1, &time), HAL_ERROR_INVALID_ARGUMENT,
          "without HAL_BATCH_UNTIMED");
}

/* A busy queue counts one batch in 16, and the last one when it is waited for. */
TEST_WITH(test_busy_queues_count_rarely, begin, end)
{
    enum { BATCHES = 64, EACH = 16 };
    submit(NULL, 0, NULL, 0, NULL, 0);
    does(plugin->wait(queue, value, UINT64_MAX));
    int writes = mock->writes;
    submit(NULL, 0, NULL, 0, NULL, 0);
    assert_int_equal(mock->writes, writes + 1); /* it was idle */
    does(plugin->wait(queue, value, UINT64_MAX));
    assert_int_equal(mock->writes, writes + 1);
    mock->hold = 1;
    writes = mock->writes;
    for (int i = 0; i < BATCHES + EACH / 2; i++) {
        submit(NULL, 0, NULL, 0, NULL, 0);
    }
    assert_true(mock->writes - writes <= 1 + BATCHES / EACH);
    writes = mock->writes;
    assert_int_equal(plugin->wait(queue, value, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->wait(queue, value - 1, 1000000), HAL_ERROR_TIMEOUT);
    assert_int_equal(mock->writes, writes);
    assert_int_equal(plugin->wait(queue, value, 1000000), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->wait(queue, value, 1000000), HAL_ERROR_TIMEOUT);
    assert_int_equal(mock->writes, writes + 1);
    mock->hold = 0;
    does(plugin->wait(queue, value - BATCHES, UINT64_MAX));
    does(plugin->wait(queue, value - 1, UINT64_MAX));
    does(plugin->wait(queue, value, UINT64_MAX));
}

/* So does a queue that is idle at each batch, where nobody waits for the batches: writes would keep
 * it slower than the program. */
TEST_WITH(test_batches_without_waits_count_rarely, begin, end)
{
    enum { BATCHES = 64, EACH = 16 };
    const int writes = mock->writes;
    for (int i = 0; i < BATCHES; i++) {
        submit(NULL, 0, NULL, 0, NULL, 0);
        does(plugin->wait(queue, value, 0));
    }
    assert_in_range(mock->writes - writes, BATCHES / EACH, 1 + BATCHES / EACH);
    does(plugin->wait(queue, value, UINT64_MAX));
    for (int i = 0; i < BATCHES; i++) { /* each is waited for */
        const int before = mock->writes;
        submit(NULL, 0, NULL, 0, NULL, 0);
        assert_int_equal(mock->writes, before + 1);
        does(plugin->wait(queue, value, UINT64_MAX));
        assert_int_equal(mock->writes, before + 1);
    }
}

/* A counter that a wait asked for, which ended by the event, is written before the queue's memory
 * and stream serve another queue. */
TEST_WITH(test_late_counters, begin, end)
{
    for (int i = 0; i < 3; i++) { /* of which the last one has no counter */
        submit(NULL, 0, NULL, 0, NULL, 0);
    }
    mock->late_writes = 1;
    does(plugin->wait(queue, value, UINT64_MAX));
    assert_int_equal(mock->late_writes, 2);
    plugin->queue_destroy(device, queue);
    assert_int_equal(mock->late_writes, 1);
    mock->late_writes = 0;
    does(plugin->queue_create(device, &queue));
}

/* One queue waits for another by its event. */
TEST_WITH(test_waits, begin, end)
{
    hal_plugin_queue *other = NULL;
    does(plugin->queue_create(device, &other));
    const hal_batch batch = {.size = sizeof batch};
    mock->hold = 1;
    does(plugin->submit(other, &batch, NULL, 0, 1));
    const hal_plugin_wait wait = {.queue = other, .value = 1};
    does(plugin->submit(queue, &batch, &wait, 1, ++value));
    mock->hold = 0;
    plugin->queue_destroy(device, other);
}

/* Device 0 copies into memory of device 1 after the work of that one's queue. */
static hal_status copy_to_other(hal_plugin_memory *from, hal_plugin_memory *to, uint64_t offset,
                                const hal_plugin_wait *wait)
{
    const hal_binding bindings[2] = {{.memory = from, .offset = 3, .length = 1000},
                                     {.memory = to, .offset = offset, .length = 1000}};
    const hal_command command = {.kind = HAL_COMMAND_COPY, .binding_count = 2};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 2,
                             .commands = &command,
                             .bindings = bindings};
    return plugin->submit(queue, &batch, wait, 1, value + 1);
}

TEST_WITH(test_peers, begin, end)
{
    hal_plugin_device *other = NULL;
    hal_plugin_queue *their_queue = NULL;
    hal_plugin_memory *theirs = NULL, *theirs_mapped = NULL;
    hal_plugin_memory *mine = memory_of(HAL_MEMORY_DEVICE, BYTES);
    const hal_batch nothing = {.size = sizeof nothing};
    mock->devices = 2;
    does(plugin_open(plugin, 1, &other));
    does(plugin->queue_create(other, &their_queue));
    for (int access = 1; access >= 0; access--) { /* copies work without access too */
        mock->no_peers = !access;
        assert_int_equal(plugin->device_can_access_peer(device, other), 1);
        assert_int_equal(plugin->device_can_access_peer(device, other), 1);
        assert_int_equal(plugin->device_can_access_peer(other, device), 1);
        assert_int_equal(mock->peers_enabled, 2);
    }
    does(plugin->memory_allocate(other, HAL_MEMORY_DEVICE, BYTES, &theirs));
    does(plugin->memory_allocate(other, HAL_MEMORY_DOWNLOAD, BYTES, &theirs_mapped));
    mock->hold = 1;
    does(plugin->submit(their_queue, &nothing, NULL, 0, 1));
    const hal_plugin_wait wait = {.queue = their_queue, .value = 1};
    uint8_t *source = (uint8_t *)(uintptr_t)mine->address; /* the mock's memory is the host's */
    const uint8_t *target = (const uint8_t *)(uintptr_t)theirs->address;
    for (int i = 0; i < BYTES; i++) {
        source[i] = (uint8_t)(i * 7);
    }
    does(copy_to_other(mine, theirs, 5, &wait));
    value++;
    assert_int_equal(mock->peer_copies, 1);
    assert_int_equal(mock->foreign_waits, 1);
    assert_memory_equal(target + 5, source + 3, 1000);
    does(copy_to_other(mine, theirs_mapped, 6, &wait));
    value++;
    assert_int_equal(mock->peer_copies, 1);
    assert_memory_equal((uint8_t *)pointer_of(theirs_mapped) + 6, source + 3, 1000);
    mock->hold = 0;
    does(plugin->submit(queue, &nothing, NULL, 0, ++value));
    does(plugin->wait(queue, value, UINT64_MAX));
    mock->fail_with = 700;
    fails(copy_to_other(mine, theirs, 5, &wait), HAL_ERROR_DEVICE_LOST,
          "copying 1000 bytes from device 0 to device 1");
    mock->fail_with = 0;
    plugin->memory_free(other, theirs);
    plugin->memory_free(other, theirs_mapped);
    plugin->memory_free(device, mine);
    plugin->queue_destroy(other, their_queue);
    plugin->device_close(other);
}

/* Promise 10: what the cache holds is not linked again. */
TEST_WITH(test_cache, begin, end)
{
    free(host_cache()->data);
    host_cache()->data = NULL;
    plugin->kernel_destroy(device, kernel_of(1));
    assert_int_equal(mock->linked, 1);
    assert_string_equal(host_cache()->id, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    plugin->kernel_destroy(device, kernel_of(1));
    assert_int_equal(mock->linked, 1);
    plugin->kernel_destroy(device, kernel_of(2));
    assert_int_equal(mock->linked, 2);
    memset(host_cache()->data, 'x', host_cache()->bytes - 1); /* the driver rejects it */
    plugin->kernel_destroy(device, kernel_of(2));
    assert_int_equal(mock->linked, 3);
}

/* Assembled at the default level, sums of matrices of f64 were wrong. */
TEST_WITH(test_matrices_of_f64_are_assembled_simply, begin, end)
{
    static const char *const kernels[] = {
        "kernel matrices\ngroup 32 1 1\nbinding d f64 read_write\n%l = local_id u32 x\n"
        "%n = constant u32 4\n%e = mul u32 %l, %n\n%a = load f64x4 d[%e]\n"
        "%b = load f64x2 d[%e]\n%s = matrix_multiply f64 f64x4 %a, %b, %a\nstore d[%e], %s\n",
        "kernel matrices\ngroup 32 1 1\nbinding d u32 read\nbinding y f32 read_write\n"
        "%l = local_id u32 x\n%n = constant u32 4\n%e = mul u32 %l, %n\n"
        "%a = load u32x4 d[%e]\n%b = load u32x2 d[%e]\n%c = load f32x4 y[%e]\n"
        "%s = matrix_multiply f32 f32x4 %a, %b, %c\nstore y[%e], %s\n"};
    for (uint32_t i = 0; i < 2; i++) {
        hal_ir_kernel *ir = ir_parse(kernels[i]);
        hal_plugin_kernel *kernel = NULL;
        does(plugin->kernel_create(device, ir, &kernel));
        assert_int_equal(mock->assembler_level, i == 0 ? 2 : 4);
        plugin->kernel_destroy(device, kernel);
        hal_ir_kernel_destroy(ir);
    }
}

TEST_WITH(test_native, begin_early, end)
{
    hal_ir_kernel *interface = ir_parse("kernel native\ngroup 64 1 1\nbinding out f32 write\n"
                                        "scalar n u32\n%i = local_id u32 x\n"
                                        "%f = constant f32 1\nstore out[%i], %f\n");
    hal_plugin_kernel *kernel = NULL;
    const char code[] = ".visible .entry mine()";
    does(plugin->kernel_create_native(device, "ptx", code, sizeof code - 1, "mine", interface,
                                      &kernel));
    hal_kernel_report report = {.size = sizeof report};
    does(plugin->kernel_report(device, kernel, &report));
    assert_int_equal(report.registers, 40);
    assert_int_equal(report.spilled_bytes, 16);
    assert_int_equal(report.known, HAL_REPORT_REGISTERS | HAL_REPORT_SPILLS | HAL_REPORT_SHARED);
    assert_null(plugin->clocks_read);
    hal_quirk quirk = {.size = sizeof quirk}, none = {.size = sizeof none};
    does(plugin->device_quirk(device, 0, &quirk));
    assert_string_equal(quirk.name, "linked_registers");
    does(plugin->device_quirk(device, 4, &none));
    assert_null(none.name);
    /* It does not wait for what is in front of it: a chain with it in starts nothing early. */
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    dispatch_many(kernel, memory, 50, 5);
    assert_int_equal(mock->graph_launches, 1);
    assert_int_equal(mock->early_edges, 0);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
    fails(plugin->kernel_create_native(device, "spirv", code, sizeof code - 1, "mine", interface,
                                       &kernel),
          HAL_ERROR_UNSUPPORTED, "expected ptx or cubin, got spirv");
    fails(plugin->kernel_create_native(device, "ptx", "nothing", 7, "mine", interface, &kernel),
          HAL_ERROR_COMPILE, "line 1: no entry");
    hal_ir_kernel_destroy(interface);
}

/* Small pieces of mapped memory come out of one slab, do not overlap, and go back. */
TEST_WITH(test_pinned, begin, end)
{
    enum { PIECES = 200 };
    hal_plugin_memory *pieces[PIECES];
    const int objects = mock->live_objects;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PIECES; i++) {
            const uint64_t bytes = (uint64_t)(i * 37 % 20000) + 1;
            pieces[i] = memory_of(HAL_MEMORY_UPLOAD, bytes);
            memset(pointer_of(pieces[i]), i, bytes);
        }
        for (int i = 0; i < PIECES; i++) {
            const uint8_t *bytes = pointer_of(pieces[i]);
            const int last = i * 37 % 20000;
            assert_int_equal(bytes[0], i);
            assert_int_equal(bytes[last], i);
        }
        for (int i = round % 2; i < PIECES; i += 2) {
            plugin->memory_free(device, pieces[i]);
        }
        for (int i = !(round % 2); i < PIECES; i += 2) {
            plugin->memory_free(device, pieces[i]);
        }
        assert_int_equal(mock->live_objects, objects);
    }
    hal_plugin_memory *large = memory_of(HAL_MEMORY_SHARED, 1 << 20);
    assert_int_equal(mock->live_objects, objects + 1);
    plugin->memory_free(device, large);
}

TEST_WITH(test_out_of_memory, begin, end)
{
    hal_plugin_memory *memory = NULL;
    fails(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, UINT64_C(1) << 31, &memory),
          HAL_ERROR_OUT_OF_MEMORY, "allocating 2147483648 bytes of device memory");
}

/* A fault of a kernel comes to light at the launch or the wait after it. */
TEST_WITH(test_fault, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    mock->hold = 1;
    submit(NULL, 0, NULL, 0, NULL, 0);
    mock->fail_with = 700;
    fails(plugin->wait(queue, value, UINT64_MAX), HAL_ERROR_DEVICE_LOST,
          "CUDA_ERROR_ILLEGAL_ADDRESS");
    const hal_binding binding = {.memory = memory, .length = BYTES};
    const uint64_t scalar = 0;
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 1,
                                 .scalar_bytes = 4,
                                 .grid = {1, 1, 1},
                                 .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .scalar_bytes = 8,
                             .commands = &command,
                             .bindings = &binding,
                             .scalars = (const uint8_t *)&scalar};
    fails(plugin->submit(queue, &batch, NULL, 0, value + 1), HAL_ERROR_DEVICE_LOST,
          "launching a kernel of 1 x 1 x 1 groups");
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
    mock->retained = 0;
    mock->live_objects++; /* the slab, made before the test, goes with the context */
    close_device();
    assert_int_equal(mock->retained, -1);
    hal_plugin_device *again = NULL;
    fails(plugin_open(plugin, 0, &again), HAL_ERROR_DEVICE_LOST, "start the program again");
    assert_null(again);
    mock->fail_with = mock->hold = 0;
    open_device();
    assert_int_equal(mock->retained, 0);
    mock->live_objects--; /* that of the new context stays */
    close_device();
    open_device();
    assert_int_equal(mock->retained, 0);
}

/* Two devices have one context: it is given up by the second, whose queue has memory in it. */
TEST_WITH(test_fault_of_two, begin, end)
{
    hal_plugin_device *other = NULL, *again = NULL;
    hal_plugin_queue *their_queue = NULL;
    does(plugin_open(plugin, 0, &other));
    does(plugin->queue_create(other, &their_queue));
    mock->fail_with = 700;
    mock->retained = 0;
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    assert_int_equal(mock->retained, 0);
    fails(plugin_open(plugin, 0, &again), HAL_ERROR_DEVICE_LOST, "start the program again");
    plugin->queue_destroy(other, their_queue);
    mock->live_objects++; /* the slab, made before the test, goes with the context */
    plugin->device_close(other);
    assert_int_equal(mock->retained, -1);
    mock->fail_with = 0;
    open_device();
    mock->live_objects--;
}

/* hal.faults: submit accepts the batch, and the context ends while it runs. */
TEST_WITH(test_fail_next, begin, end)
{
    const hal_batch nothing = {.size = sizeof nothing};
    does(plugin->submit(queue, &nothing, NULL, 0, ++value));
    plugin->queue_fail_next(queue);
    does(plugin->wait(queue, value, UINT64_MAX));
    does(plugin->submit(queue, &nothing, NULL, 0, ++value));
    fails(plugin->wait(queue, value, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "waiting for a batch");
    fails(plugin->wait(queue, value, 0), HAL_ERROR_DEVICE_LOST, "waiting for a batch");
    mock->fail_with = 0;
}

/* Messages without a device. */
TEST_WITH(test_no_device, begin, end)
{
    uint32_t count = 0;
    mock->devices = 0;
    fails(plugin_list(plugin, NULL, 0, &count), HAL_ERROR_NO_DEVICE, "no device");
    mock->devices = 1;
    mock->init_result = 100;
    fails(plugin_list(plugin, NULL, 0, &count), HAL_ERROR_NO_DEVICE, "starting the driver");
    mock->init_result = 999;
    fails(plugin_list(plugin, NULL, 0, &count), HAL_ERROR_DRIVER_MISSING, "does not start");
    mock->init_result = 0;
}

/* The driver does not work in a child of a process that has started it. */
TEST_WITH(test_fork, begin, end)
{
    const pid_t child = fork();
    if (child == 0) {
        hal_plugin_device *other = NULL;
        uint32_t count = 0;
        alarm(60);
        const bool is_refused = plugin_open(plugin, 0, &other) == HAL_ERROR_INVALID_STATE &&
                                plugin_list(plugin, NULL, 0, &count) == HAL_ERROR_INVALID_STATE;
        _exit(is_refused ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

UNIT_MAIN(load_plugin, NULL)
