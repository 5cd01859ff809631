/* The cpu plugin apart from its kernels: the table, the device and its variables, memory, queues
 * that wait for one another, fork, batches that threads share, and declined matrix products.
 * hal-conformance checks the commands. */
#include "cpu_fixture.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static hal_plugin_device *open_default(void)
{
    hal_plugin_device *device = NULL;
    assert_int_equal(plugin_open(cpu_plugin(), 0, &device), HAL_OK);
    return device;
}

TEST(test_table)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    assert_string_equal(plugin->name, "cpu");
    assert_int_equal(plugin->size, sizeof(hal_plugin));
    assert_int_equal(strlen(plugin->build_id), 40);
    hal_plugin_create_function create;
    hal_plugin_instance *instance = NULL;
    void *library = dlopen(CPU_PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
    *(void **)&create = dlsym(library, HAL_PLUGIN_CREATE_SYMBOL);
    const hal_host host = {.size = sizeof(host)};
    assert_null(create(HAL_PLUGIN_ABI + (1u << 16), &host, &instance));
    assert_null(create(HAL_PLUGIN_ABI, NULL, &instance));
    dlclose(library);
}

TEST(test_info)
{
    hal_device_info info;
    uint32_t count = 0;
    assert_int_equal(plugin_list(cpu_plugin(), &info, 1, &count), HAL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(info.kind, HAL_DEVICE_CPU);
    assert_true(strncmp(info.id, "cpu:", 4) == 0);
    assert_true(info.memory_bytes > 0);
    assert_int_equal(info.exactness, 15);
    assert_int_equal(info.subgroup_width, CPU_FIXTURE_SUBGROUP);
    assert_int_equal(info.math_f32, (1u << HAL_IR_MATH_COUNT) - 1);
    assert_int_equal(info.math_f64, (1u << HAL_IR_MATH_COUNT) - 1);
    assert_int_equal(info.storage_types, 0x3ffe); /* the types of plugin ABI 1.0 */
}

static void expect_failure(const char *variable, const char *value, hal_status wanted)
{
    hal_plugin_device *device = NULL;
    setenv(variable, value, 1);
    cpu_message[0] = '\0';
    assert_int_equal(plugin_open(cpu_plugin(), 0, &device), wanted);
    assert_null(device);
    assert_non_null(strstr(cpu_message, variable));
    assert_non_null(strstr(cpu_message, value));
    uint32_t count = 0;
    hal_device_info info;
    assert_int_equal(plugin_list(cpu_plugin(), &info, 1, &count), HAL_OK);
    unsetenv(variable);
}

TEST(test_variables)
{
    hal_device_info info;
    hal_plugin_device *device = NULL;
    uint32_t count = 0;
    expect_failure("HAL_CPU_ISA", "mmx", HAL_ERROR_UNSUPPORTED);
    expect_failure("HAL_CPU_JIT", "perhaps", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_THREADS", "0", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_THREADS", "2 or so", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_THREADS", "99999999999999999999", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_STREAM", "-1", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_STREAM", "32 MiB", HAL_ERROR_INVALID_ARGUMENT);
    expect_failure("HAL_CPU_BACKGROUND", "2 ms", HAL_ERROR_INVALID_ARGUMENT);
    setenv("HAL_CPU_THREADS", "3", 1);
    assert_int_equal(plugin_list(cpu_plugin(), &info, 1, &count), HAL_OK);
    assert_int_equal(info.compute_units, 3);
    assert_int_equal(plugin_open(cpu_plugin(), 0, &device), HAL_OK);
    cpu_plugin()->device_close(device);
    unsetenv("HAL_CPU_THREADS");
    assert_int_equal(plugin_open(cpu_plugin(), 1, &device), HAL_ERROR_NOT_FOUND);
}

TEST(test_memory)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    hal_plugin_device *device = open_default();
    const uint64_t sizes[] = {1, 255, 4096, (2 << 20) - 1, 5 << 20};
    uint64_t free_bytes = 0, total = 0;
    assert_int_equal(plugin->memory_info(device, &free_bytes, &total), HAL_OK);
    assert_true(total > 0 && free_bytes <= total);
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < 5; i++) {
            hal_plugin_memory *memory = NULL;
            void *place = NULL;
            assert_int_equal(plugin->memory_allocate(device, kind, sizes[i], &memory), HAL_OK);
            assert_int_equal(plugin->memory_map(device, memory, &place), HAL_OK);
            assert_int_equal((uintptr_t)place % 256, 0);
            memset(place, 1, sizes[i]);
            plugin->memory_free(device, memory);
        }
    }
    hal_plugin_memory *memory = NULL;
    assert_int_equal(plugin->memory_allocate(device, 0, UINT64_C(1) << 60, &memory),
                     HAL_ERROR_OUT_OF_MEMORY);
    assert_null(memory);
    assert_int_equal(plugin->memory_allocate(device, 0, UINT64_MAX, &memory),
                     HAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(plugin->memory_allocate(device, 9, 1, &memory), HAL_ERROR_INVALID_ARGUMENT);
    plugin->memory_free(device, NULL);
    plugin->device_close(device);
}

typedef struct bench {
    hal_plugin_device *device;
    hal_plugin_queue *queue;
    hal_plugin_memory *memory[2];
    uint8_t *place[2];
    uint64_t value;
} bench;

static void set_up(bench *b, uint64_t bytes)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    b->device = open_default();
    b->value = 0;
    assert_int_equal(plugin->queue_create(b->device, &b->queue), HAL_OK);
    for (uint32_t i = 0; i < 2; i++) {
        void *place = NULL;
        assert_int_equal(plugin->memory_allocate(b->device, 0, bytes, &b->memory[i]), HAL_OK);
        plugin->memory_map(b->device, b->memory[i], &place);
        b->place[i] = place;
        for (uint64_t k = 0; k < bytes; k++) {
            b->place[i][k] = (uint8_t)(k * 7 + k / 256 + i);
        }
    }
}

static void tear_down(bench *b)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    plugin->memory_free(b->device, b->memory[0]);
    plugin->memory_free(b->device, b->memory[1]);
    plugin->queue_destroy(b->device, b->queue);
    plugin->device_close(b->device);
}

TEST(test_unknown_command)
{
    bench b;
    set_up(&b, 64);
    const hal_command command = {.kind = 99};
    const hal_batch batch = {.size = sizeof(batch), .command_count = 1, .commands = &command};
    assert_int_equal(cpu_plugin()->submit(b.queue, &batch, NULL, 0, 1), HAL_ERROR_UNSUPPORTED);
    assert_int_equal(cpu_plugin()->wait(b.queue, 1, 1000), HAL_ERROR_TIMEOUT);
    tear_down(&b);
}

static void *submit_later(void *context)
{
    bench *b = context;
    const struct timespec pause = {.tv_nsec = 20000000};
    const hal_batch batch = {.size = sizeof(batch)};
    nanosleep(&pause, NULL);
    cpu_plugin()->submit(b->queue, &batch, NULL, 0, 1);
    return NULL;
}

/* A thread waits for a value that is not yet submitted, and a second queue for the first. */
TEST(test_waits)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    hal_plugin_queue *second = NULL;
    pthread_t thread;
    bench b;
    set_up(&b, 64);
    assert_int_equal(plugin->queue_create(b.device, &second), HAL_OK);
    assert_int_equal(plugin->wait(b.queue, 1, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->wait(b.queue, 1, 2000000), HAL_ERROR_TIMEOUT);
    assert_int_equal(pthread_create(&thread, NULL, submit_later, &b), 0);
    const hal_plugin_wait wait = {.queue = b.queue, .value = 1};
    const hal_batch batch = {.size = sizeof(batch)};
    assert_int_equal(plugin->submit(second, &batch, &wait, 1, 1), HAL_OK);
    assert_int_equal(plugin->wait(b.queue, 1, 0), HAL_OK);
    assert_int_equal(plugin->wait(second, 1, UINT64_MAX), HAL_OK);
    pthread_join(thread, NULL);
    uint64_t nanoseconds = 1;
    assert_int_equal(plugin->queue_elapsed(b.queue, 1, 1, &nanoseconds), HAL_OK);
    assert_int_equal(nanoseconds, 0);
    assert_int_equal(plugin->queue_elapsed(b.queue, 1, 2, &nanoseconds),
                     HAL_ERROR_INVALID_ARGUMENT);
    plugin->queue_destroy(b.device, second);
    tear_down(&b);
}

/* A child gets an error instead of a hang, and may close what it inherited. */
TEST(test_fork)
{
    bench b;
    int result = 0;
    set_up(&b, 64);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const hal_batch batch = {.size = sizeof(batch)};
        const hal_status status = cpu_plugin()->submit(b.queue, &batch, NULL, 0, 1);
        tear_down(&b);
        _exit(status == HAL_ERROR_INVALID_STATE && strstr(cpu_message, "fork") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    tear_down(&b);
}

/* target[i] = source[last - i] + 1 */
static hal_plugin_kernel *turn_round(hal_plugin_device *device, uint32_t last)
{
    hal_plugin_kernel *kernel = NULL;
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("turn_round", &b);
    hal_ir_group_size(b, 64, 1, 1);
    hal_ir_memory_id source = hal_ir_binding(b, "source", HAL_TYPE_U32, HAL_ACCESS_READ);
    hal_ir_memory_id target = hal_ir_binding(b, "target", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value from = hal_ir_sub(b, hal_ir_u32(b, last), i);
    hal_ir_store(b, target, i, hal_ir_add(b, hal_ir_load(b, source, from), hal_ir_u32(b, 1)));
    hal_ir_kernel *ir = cpu_finish(b);
    assert_int_equal(cpu_plugin()->kernel_create(device, ir, &kernel), HAL_OK);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

/* Threads share many dispatches and finish each before they begin the next, which reads what any of
 * them wrote; there is a small one, and a copy, in between. */
static void check_runs(void)
{
    enum { CELLS = 1 << 14, COMMANDS = 200, SMALL = 70, COPY = 150, REPEATS = 3 };
    static hal_command commands[COMMANDS];
    static hal_binding bindings[2 * COMMANDS];
    static uint32_t wanted[2][CELLS];
    bench b;
    setenv("HAL_CPU_THREADS", "3", 1);
    set_up(&b, sizeof(wanted[0]));
    unsetenv("HAL_CPU_THREADS");
    hal_plugin_kernel *all = turn_round(b.device, CELLS - 1), *small = turn_round(b.device, 63);
    for (uint32_t k = 0; k < 2; k++) {
        memcpy(wanted[k], b.place[k], sizeof(wanted[k]));
    }
    for (uint32_t k = 0; k < COMMANDS; k++) {
        commands[k] = (hal_command){.kind = k == COPY ? HAL_COMMAND_COPY : HAL_COMMAND_DISPATCH,
                                    .binding_count = 2,
                                    .binding_first = 2 * k,
                                    .grid = {k == SMALL ? 1 : CELLS / 64, 1, 1},
                                    .kernel = k == SMALL ? small : all};
        for (uint32_t side = 0; side < 2; side++) {
            bindings[2 * k + side] =
                (hal_binding){.memory = b.memory[(k + side) % 2], .length = sizeof(wanted[0])};
        }
    }
    for (uint32_t k = 0; k < REPEATS * COMMANDS; k++) {
        const uint32_t command = k % COMMANDS, last = command == SMALL ? 63 : CELLS - 1;
        for (uint32_t i = 0; i < CELLS && (command == COPY || i <= last); i++) {
            wanted[(k + 1) % 2][i] =
                command == COPY ? wanted[k % 2][i] : wanted[k % 2][last - i] + 1;
        }
    }
    const hal_batch batch = {.size = sizeof(batch),
                             .command_count = COMMANDS,
                             .binding_count = 2 * COMMANDS,
                             .commands = commands,
                             .bindings = bindings};
    for (uint32_t k = 0; k < REPEATS; k++) {
        assert_int_equal(cpu_plugin()->submit(b.queue, &batch, NULL, 0, k + 1), HAL_OK);
    }
    assert_memory_equal(b.place[0], wanted[0], sizeof(wanted[0]));
    assert_memory_equal(b.place[1], wanted[1], sizeof(wanted[1]));
    cpu_plugin()->kernel_destroy(b.device, all);
    cpu_plugin()->kernel_destroy(b.device, small);
    tear_down(&b);
}

/* A new device shares at once; later its choices of threads vary. */
TEST(test_runs)
{
    for (uint32_t k = 0; k < 4; k++) {
        check_runs();
    }
}

/* Descriptions of matrix products that the plugin does not compute: the caller uses another way. */
TEST(test_products_declined)
{
    hal_plugin_device *device = open_default();
    hal_plugin_kernel *kernel = NULL;
    hal_ir_builder *b = NULL;
    uint64_t workspace = 0;
    const hal_gemm_description good = {.size = sizeof good,
                                       .type_a = HAL_TYPE_F32,
                                       .type_b = HAL_TYPE_F32,
                                       .type_c = HAL_TYPE_F32,
                                       .batch = 2,
                                       .m = 7,
                                       .n = 5,
                                       .k = 3,
                                       .lda = 3,
                                       .ldb = 5,
                                       .ldc = 5,
                                       .stride_a = 21,
                                       .stride_b = 15,
                                       .stride_c = 35};
    hal_gemm_description d[5] = {good, good, good, good, good};
    assert_ok(hal_ir_builder_create_fragment("sum", &b));
    hal_ir_value sum = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    sum = hal_ir_add(b, sum, hal_ir_input(b, 4, HAL_TYPE_F32));
    hal_ir_output(b, 0, hal_ir_add(b, sum, hal_ir_input(b, 5, HAL_TYPE_F32)));
    hal_ir_kernel *epilogue = cpu_finish(b);
    d[0].type_a = d[0].type_b = d[0].type_c = HAL_TYPE_I8;
    d[1].type_a = HAL_TYPE_F64;
    d[2].stride_c = 1; /* the batch overlaps in C */
    for (uint32_t i = 3; i < 5; i++) {
        d[i].epilogue = epilogue;
        d[i].input_count = 2;
        d[i].inputs[0] = (hal_gemm_input){.type = HAL_TYPE_F32, .column_stride = 1};
        d[i].inputs[1] = (hal_gemm_input){.type = HAL_TYPE_BF16, .column_stride = 1};
    }
    d[3].inputs[0].row_stride = INT64_C(1) << 40;
    d[4].inputs[0].type = HAL_TYPE_I32;
    for (uint32_t i = 0; i < 5; i++) {
        cpu_message[0] = 0;
        assert_int_equal(cpu_plugin()->gemm(device, &d[i], &kernel, &workspace),
                         i == 4 ? HAL_ERROR_INVALID_ARGUMENT : HAL_ERROR_UNSUPPORTED);
        assert_null(kernel);
        assert_true(cpu_message[0] != 0);
    }
    hal_ir_kernel_destroy(epilogue);
    cpu_plugin()->device_close(device);
}

/* A gigabyte of fills runs after submit has returned; what is submitted later comes after it. */
TEST(test_background)
{
    enum { FILLS = 64, BYTES = 16 << 20 };
    const hal_plugin_entries *plugin = cpu_plugin();
    hal_plugin_memory *memory = NULL;
    hal_plugin_queue *queue = NULL;
    static hal_command commands[FILLS];
    static hal_binding bindings[FILLS];
    static uint8_t patterns[8 * FILLS];
    void *pointer = NULL;
    setenv("HAL_CPU_BACKGROUND", "1", 1);
    hal_plugin_device *device = open_default();
    unsetenv("HAL_CPU_BACKGROUND");
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    assert_int_equal(plugin->memory_allocate(device, HAL_MEMORY_SHARED, BYTES, &memory), HAL_OK);
    assert_int_equal(plugin->memory_map(device, memory, &pointer), HAL_OK);
    for (uint32_t i = 0; i < FILLS; i++) {
        commands[i] = (hal_command){.kind = HAL_COMMAND_FILL,
                                    .flags = HAL_COMMAND_BARRIER,
                                    .binding_count = 1,
                                    .binding_first = i,
                                    .scalar_bytes = 4,
                                    .scalar_first = 8 * i};
        bindings[i] = (hal_binding){.memory = memory, .length = BYTES, .access = HAL_ACCESS_WRITE};
        patterns[8 * i] = (uint8_t)(i + 1);
    }
    const hal_batch all = {.size = sizeof all,
                           .command_count = FILLS,
                           .binding_count = FILLS,
                           .scalar_bytes = sizeof patterns,
                           .commands = commands,
                           .bindings = bindings,
                           .scalars = patterns};
    hal_batch one = all;
    one.command_count = 1;
    assert_int_equal(plugin->submit(queue, &all, NULL, 0, 1), HAL_OK);
    assert_int_equal(plugin->wait(queue, 1, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->submit(queue, &one, NULL, 0, 2), HAL_OK);
    memset(patterns, 0xee, sizeof patterns); /* the plugin has its own copy */
    assert_int_equal(plugin->wait(queue, 2, UINT64_MAX), HAL_OK);
    assert_int_equal(plugin->wait(queue, 1, 0), HAL_OK);
    assert_int_equal(((uint8_t *)pointer)[BYTES - 4], 1);
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    plugin->device_close(device);
}

UNIT_MAIN(NULL, cpu_close_all)
