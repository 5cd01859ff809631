/* The cuda plugin over a driver without a GPU (cuda_mock.h): what the driver is asked to do for
 * batches of every length, points, memory, the compile cache, failures; and what the plugin says
 * where there is no driver or no device. */

#include "../plugin_host.h"
#include <cuda/cuda_plugin.h>

#include "cuda_mock.h"

enum { BYTES = 4096 };

static cuda_mock *mock;
static const hal_plugin *plugin;
static hal_plugin_device *device;
static hal_plugin_queue *queue;
static uint64_t value; /* of the queue's last batch */

static void does(hal_status status)
{
    if (status != HAL_OK) {
        fail_msg("%s: %s", hal_status_name(status), message);
    }
    assert_int_equal(mock->contexts, 0);
}

static void fails(hal_status status, hal_status expected, const char *words)
{
    assert_int_equal(status, expected);
    if (strstr(message, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
    assert_int_equal(mock->contexts, 0);
}

static void open_device(void)
{
    does(plugin->device_open(0, &device));
    does(plugin->queue_create(device, &queue));
    value = 0;
}

static void close_device(void)
{
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    assert_int_equal(mock->contexts, 0);
    assert_int_equal(mock->live_objects, 0);
    assert_int_equal(mock->live_modules, 0);
    assert_int_equal(mock->stale_functions, 0);
}

/* The mock has the name of the driver, so the plugin's own search finds it. Promise 24: neither
 * counting devices nor opening one makes a context on another. */
static int load_mock(void)
{
    void *library = dlopen(CUDA_MOCK_PATH, RTLD_NOW | RTLD_GLOBAL);
    mock = library == NULL ? NULL : dlsym(library, CUDA_MOCK_SYMBOL);
    if (mock == NULL) {
        return -1;
    }
    uint32_t count = 0;
    mock->devices = 2;
    does(plugin->enumerate(NULL, 0, &count));
    for (int i = 0; i < 2; i++) { /* afterwards the objects of the process exist */
        assert_int_equal(mock->retained, i);
        does(plugin->device_open((uint32_t)i, &device));
        does(plugin->queue_create(device, &queue));
        plugin->queue_destroy(device, queue);
        plugin->device_close(device);
    }
    return 0;
}

static int begin(void **state)
{
    if (mock == NULL && load_mock() != 0) {
        return -1;
    }
    memset(mock, 0, sizeof *mock);
    mock->devices = 1;
    mock->memory_limit = UINT64_C(1) << 30;
    unsetenv("HAL_CUDA_POINTS");
    unsetenv("HAL_CUDA_CHAIN");
    open_device();
    return 0;
}

static int end(void **state)
{
    close_device();
    return 0;
}

/* ---- Kernels and batches ---- */

/* out[i] = n + number, in groups of 64. */
static hal_plugin_kernel *kernel_of(int number)
{
    char text[512];
    snprintf(text, sizeof text,
             "kernel add\ngroup 64 1 1\nbinding out u32 write\nscalar n u32\n"
             "%%i = local_id u32 x\n%%n = scalar u32 n\n%%c = constant u32 %d\n"
             "%%s = add u32 %%n, %%c\nstore out[%%i], %%s\n",
             number);
    hal_ir_kernel *ir = ir_parse(text);
    hal_plugin_kernel *kernel = NULL;
    does(plugin->kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static hal_plugin_memory *memory_of(uint32_t kind, uint64_t bytes)
{
    hal_plugin_memory *memory = NULL;
    does(plugin->memory_allocate(device, kind, bytes, &memory));
    return memory;
}

static void *pointer_of(hal_plugin_memory *memory)
{
    void *pointer = NULL;
    does(plugin->memory_map(device, memory, &pointer));
    return pointer;
}

static void submit(const hal_command *commands, uint32_t count, const hal_binding *bindings,
                   uint32_t binding_count, const uint8_t *scalars, uint32_t scalar_bytes)
{
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = count,
                             .binding_count = binding_count,
                             .scalar_bytes = scalar_bytes,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = scalars};
    does(plugin->submit(queue, &batch, NULL, 0, ++value));
}

/* `count` dispatches, number i with the scalar first + i and a grid of i + 1 groups. */
static void dispatch_many(hal_plugin_kernel *kernel, hal_plugin_memory *memory, uint32_t count,
                          uint32_t first)
{
    hal_command *commands = calloc(count, sizeof *commands);
    uint64_t *scalars = calloc(count, sizeof *scalars);
    const hal_binding binding = {.memory = memory, .length = BYTES, .access = HAL_ACCESS_WRITE};
    for (uint32_t i = 0; i < count; i++) {
        scalars[i] = first + i;
        commands[i] = (hal_command){.kind = HAL_COMMAND_DISPATCH,
                                    .binding_count = 1,
                                    .scalar_bytes = 4,
                                    .scalar_first = 8 * i,
                                    .grid = {i + 1, 1, 1},
                                    .kernel = kernel};
    }
    const uint32_t before = mock->launch_count;
    submit(commands, count, &binding, 1, (const uint8_t *)scalars, 8 * count);
    assert_int_equal(mock->launch_count, before + count);
    for (uint32_t i = 0; i < count; i++) {
        const cuda_mock_launch *launch = &mock->launches[before + i];
        uint64_t address = 0;
        uint32_t scalar = 0;
        memcpy(&address, launch->block, 8);
        memcpy(&scalar, launch->block + 8, 4);
        assert_int_equal(launch->bytes, 12);
        assert_int_equal(launch->grid[0], i + 1);
        assert_int_equal(launch->group[0], 64);
        assert_int_equal(scalar, first + i);
        assert_int_not_equal(address, 0);
    }
    free(commands);
    free(scalars);
}

/* ---- Tests ---- */

/* Before the mock is loaded, on machines that have no driver: a sentence, and nothing else. */
TEST(test_no_driver)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver != NULL) {
        dlclose(driver);
        return; /* a machine with the driver: conformance looks at its devices */
    }
    uint32_t count = 0;
    assert_int_equal(plugin->enumerate(NULL, 0, &count), HAL_ERROR_DRIVER_MISSING);
    assert_non_null(strstr(message, "libcuda.so.1"));
    assert_non_null(strstr(message, "install the NVIDIA driver"));
}

TEST_WITH(test_info, begin, end)
{
    hal_device_info info;
    uint32_t count = 0;
    does(plugin->enumerate(&info, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(info.name, "Mock GPU");
    assert_string_equal(info.id, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    assert_string_equal(info.architecture, "sm_90");
    assert_int_equal(info.kind, HAL_DEVICE_DISCRETE);
    assert_int_equal(info.shared_bytes, 232448);
    assert_true(info.abilities & HAL_ABILITY_ASYNC_COPY);
    hal_plugin_device *other = NULL;
    fails(plugin->device_open(1, &other), HAL_ERROR_NOT_FOUND, "expected an index below 1");
}

/* A few dispatches are launched, many are one graph; repeating them sets no node; others set the
 * nodes that differ; fewer use the first nodes of the same graph. */
TEST_WITH(test_chains, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    dispatch_many(kernel, memory, 3, 5);
    assert_int_equal(mock->single_launches, 3);
    assert_int_equal(mock->graph_launches, 0);

    dispatch_many(kernel, memory, 100, 5);
    assert_int_equal(mock->graph_launches, 1);
    assert_int_equal(mock->graphs_built, 1);
    assert_int_equal(mock->early_edges, 127);
    assert_int_equal(mock->nodes_switched, 28);
    const uint32_t set = mock->nodes_set;
    dispatch_many(kernel, memory, 100, 5);
    assert_int_equal(mock->nodes_set, set);
    assert_int_equal(mock->graphs_built, 1);
    assert_int_equal(mock->nodes_switched, 28);

    for (uint32_t i = 1; i < 40; i++) { /* more different batches than chains */
        dispatch_many(kernel, memory, 64 + i, 1000 * i);
    }
    assert_true(mock->graphs_built <= 4);
    dispatch_many(kernel, memory, 1024, 0);
    dispatch_many(kernel, memory, 1500, 0); /* a full chain and another */
    assert_int_equal(mock->single_launches, 3);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* Without memory for a graph the dispatches are launched; without memory for an event no command of
 * the batch starts, and its value is not reached. */
TEST_WITH(test_without_memory, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    mock->graph_result = 2;
    dispatch_many(kernel, memory, 50, 5);
    assert_int_equal(mock->single_launches, 50);
    const hal_binding binding = {.memory = memory, .length = BYTES};
    const hal_command command = {.kind = HAL_COMMAND_FILL, .binding_count = 1, .pattern = 7};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .commands = &command,
                             .bindings = &binding};
    mock->event_result = 2;
    fails(plugin->submit(queue, &batch, NULL, 0, value + 1), HAL_ERROR_OUT_OF_MEMORY,
          "creating an event");
    assert_int_equal(plugin->wait(queue, value + 1, 0), HAL_ERROR_TIMEOUT);
    mock->event_result = mock->graph_result = 0;
    does(plugin->submit(queue, &batch, NULL, 0, ++value));
    does(plugin->wait(queue, value, 0));
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* A repeated batch gets a separate graph, in which no node is disabled or changed; the oldest of
 * them are destroyed. */
TEST_WITH(test_kept_chains, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    for (uint32_t run = 0; run < 30; run++) {
        for (uint32_t again = 0; again < 8; again++) {
            dispatch_many(kernel, memory, 50, 100 * run);
        }
        const uint32_t set = mock->nodes_set, switched = mock->nodes_switched;
        dispatch_many(kernel, memory, 50, 100 * run);
        assert_int_equal(mock->nodes_set, set);
        assert_int_equal(mock->nodes_switched, switched);
        assert_in_range(mock->graphs_built, run + 2, run + 5);
        mock->launch_count = 0;
    }
    dispatch_many(kernel, memory, 50, 0); /* gone, and made again in a chain that there is */
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* A chain drops destroyed kernels, also from disabled nodes. */
TEST_WITH(test_kernels_that_are_gone, begin, end)
{
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    for (int i = 0; i < 12; i++) {
        hal_plugin_kernel *kernel = kernel_of(i);
        dispatch_many(kernel, memory, i % 2 ? 60 : 40, 0);
        plugin->kernel_destroy(device, kernel);
    }
    assert_int_equal(mock->stale_functions, 0);
    plugin->memory_free(device, memory);
}

/* A repeated batch is distinguished from a similar one: with another scalar, and with memory whose
 * description has the address of one that was freed. */
TEST_WITH(test_runs_that_look_alike, begin, end)
{
    enum { COUNT = 20 };
    hal_plugin_kernel *kernel = kernel_of(1);
    for (uint32_t turn = 0; turn < 6; turn++) {
        /* Each turn's memory has another size, so that its address is a new one. */
        hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES << turn);
        for (uint32_t again = 0; again < 3 + turn; again++) {
            dispatch_many(kernel, memory, COUNT, 7);
            dispatch_many(kernel, memory, COUNT, 7);
            dispatch_many(kernel, memory, COUNT, again == turn ? 8 : 9);
            for (uint32_t i = 0; i < 3 * COUNT; i++) {
                uint64_t address = 0;
                memcpy(&address, mock->launches[i].block, 8);
                assert_int_equal(address, memory->address);
            }
            mock->launch_count = 0;
        }
        plugin->memory_free(device, memory);
    }
    plugin->kernel_destroy(device, kernel);
}

/* A loop of 37 dispatches in batches of 1,000, which end somewhere in it: its whole turns come
 * again as the same run, and only what is left at both ends of a batch is set anew. */
TEST_WITH(test_loops, begin, end)
{
    enum { TURN = 37, COUNT = 1000, BATCHES = 40 };
    static hal_command commands[COUNT];
    static uint64_t scalars[COUNT];
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    const hal_binding binding = {.memory = memory, .length = BYTES, .access = HAL_ACCESS_WRITE};
    uint32_t set = 0;
    for (uint32_t at = 0; at < BATCHES * COUNT; at += COUNT) {
        for (uint32_t i = 0; i < COUNT; i++) {
            scalars[i] = (at + i) % TURN;
            commands[i] = (hal_command){.kind = HAL_COMMAND_DISPATCH,
                                        .binding_count = 1,
                                        .scalar_bytes = 4,
                                        .scalar_first = 8 * i,
                                        .grid = {1, 1, 1},
                                        .kernel = kernel};
        }
        set = at == BATCHES / 2 * COUNT ? mock->nodes_set : set;
        mock->launch_count = 0;
        submit(commands, COUNT, &binding, 1, (const uint8_t *)scalars, 8 * COUNT);
        assert_int_equal(mock->launch_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t scalar = 0;
            memcpy(&scalar, mock->launches[i].block + 8, 4);
            assert_int_equal(scalar, (at + i) % TURN);
        }
    }
    assert_in_range(mock->nodes_set - set, 0, BATCHES / 2 * 2 * TURN);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* Never a chain, or always one. */
TEST_WITH(test_chain_variable, begin, end)
{
    static const char *const values[] = {"0", "1"};
    for (int i = 0; i < 2; i++) {
        close_device();
        setenv("HAL_CUDA_CHAIN", values[i], 1);
        open_device();
        hal_plugin_kernel *kernel = kernel_of(1);
        hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
        const uint32_t graphs = mock->graph_launches;
        dispatch_many(kernel, memory, 1, 0);
        dispatch_many(kernel, memory, 50, 0);
        assert_int_equal(mock->graph_launches - graphs, i ? 2 : 0);
        plugin->kernel_destroy(device, kernel);
        plugin->memory_free(device, memory);
    }
    hal_plugin_device *other = NULL;
    setenv("HAL_CUDA_CHAIN", "some", 1);
    fails(plugin->device_open(0, &other), HAL_ERROR_INVALID_ARGUMENT,
          "HAL_CUDA_CHAIN: expected a number from 1, or 0 for never, got some");
    unsetenv("HAL_CUDA_CHAIN");
    setenv("HAL_CUDA_POINTS", "stars", 1);
    fails(plugin->device_open(0, &other), HAL_ERROR_INVALID_ARGUMENT,
          "HAL_CUDA_POINTS: expected counter or events, got stars");
}

/* Every offset and length, patterns that repeat and such that do not. */
TEST_WITH(test_fill_and_copy, begin, end)
{
    static const uint32_t patterns[] = {0x04030201u, 0x7f7f7f7fu, 0};
    hal_plugin_memory *from = memory_of(HAL_MEMORY_SHARED, BYTES);
    hal_plugin_memory *to = memory_of(HAL_MEMORY_DOWNLOAD, BYTES);
    uint8_t *source = pointer_of(from), *target = pointer_of(to);
    for (uint32_t offset = 0; offset < 6; offset++) {
        for (uint32_t length = 0; length < 20; length++) {
            for (uint32_t p = 0; p < 3; p++) {
                const hal_binding bindings[3] = {
                    {.memory = length ? from : NULL, .offset = offset, .length = length},
                    {.memory = length ? from : NULL, .offset = offset, .length = length},
                    {.memory = length ? to : NULL, .offset = 7, .length = length}};
                const hal_command commands[2] = {
                    {.kind = HAL_COMMAND_FILL, .binding_count = 1, .pattern = patterns[p]},
                    {.kind = HAL_COMMAND_COPY, .binding_count = 2, .binding_first = 1}};
                memset(source, 0xee, 64);
                memset(target, 0xee, 64);
                submit(commands, 2, bindings, 3, NULL, 0);
                for (uint32_t i = 0; i < 64; i++) {
                    const uint32_t at = i - offset, copied = i - 7;
                    const uint8_t filled = (uint8_t)(patterns[p] >> 8 * (at % 4)),
                                  moved = (uint8_t)(patterns[p] >> 8 * (copied % 4));
                    assert_int_equal(source[i], at < length ? filled : 0xee);
                    assert_int_equal(target[i], copied < length ? moved : 0xee);
                }
            }
        }
    }
    plugin->memory_free(device, from);
    plugin->memory_free(device, to);
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
    does(plugin->device_open(1, &other));
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

TEST_WITH(test_native, begin, end)
{
    hal_ir_kernel *interface = ir_parse("kernel native\ngroup 64 1 1\nbinding out f32 write\n"
                                        "scalar n u32\n%i = local_id u32 x\n"
                                        "%f = constant f32 1\nstore out[%i], %f\n");
    hal_plugin_kernel *kernel = NULL;
    const char code[] = ".visible .entry mine()";
    does(plugin->kernel_create_native(device, "ptx", code, sizeof code - 1, "mine", interface,
                                      &kernel));
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
    mock->fail_with = mock->hold = 0;
    open_device();
    assert_int_equal(mock->retained, 0);
    mock->live_objects--; /* that of the new context stays */
    close_device();
    open_device();
    assert_int_equal(mock->retained, 0);
}

/* Messages without a device. */
TEST_WITH(test_no_device, begin, end)
{
    uint32_t count = 0;
    mock->devices = 0;
    fails(plugin->enumerate(NULL, 0, &count), HAL_ERROR_NO_DEVICE, "no device");
    mock->devices = 1;
    mock->init_result = 100;
    fails(plugin->enumerate(NULL, 0, &count), HAL_ERROR_NO_DEVICE, "starting the driver");
    mock->init_result = 999;
    fails(plugin->enumerate(NULL, 0, &count), HAL_ERROR_DRIVER_MISSING, "does not start");
    mock->init_result = 0;
}

static int load_plugin(void **state)
{
    plugin = plugin_load(CUDA_PLUGIN_PATH);
    return plugin == NULL;
}

UNIT_MAIN(load_plugin, NULL)
