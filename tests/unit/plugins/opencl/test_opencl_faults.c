/* What the OpenCL plugin says when something is wrong: each case in a child process with a loader
 * that goes wrong in one way (opencl_mock.c), so that no driver is needed. */
#include "../plugin_host.h"
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child leaves for its parent. */
typedef struct outcome {
    hal_status status;
    uint32_t stored, loaded; /* entries of the cache */
    int events, flushes;     /* of the loader */
    int line;                /* of the first check of a queue that failed; 0: none */
    char message[sizeof message];
    char architecture[64];
} outcome;

static outcome *told;
/* Ends a child. */
static _Noreturn void tell(hal_status status)
{
    told->status = status;
    told->stored = host_cache()->stores;
    told->loaded = host_cache()->loads;
    memcpy(told->message, message, sizeof message);
    _exit(0);
}

/* A kernel with its memory and queue. */
typedef struct used {
    const hal_plugin_entries *plugin;
    hal_plugin_device *device;
    hal_plugin_memory *memory;
    hal_plugin_kernel *kernel;
    hal_plugin_queue *queue;
    hal_ir_kernel *ir;
} used;

static bool is_own(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "own") == 0;
}

/* Lists, opens, allocates, makes a kernel and a queue, up to the first failure. */
static hal_status used_create(const hal_plugin_entries *plugin, used *made)
{
    static const char text[] = "kernel twice\ngroup 64 1 1\nbinding x u32 read_write\n"
                               "scalar n u32\n%n = scalar u32 n\n%i = local_id u32 x\n"
                               "%g = lt bool %i, %n\n%v = load u32 x[%i] if %g\n"
                               "%w = add u32 %v, %v\nstore x[%i], %w if %g\n";
    hal_device_info infos[4];
    uint32_t count = 0;
    *made = (used){.plugin = plugin};
    setenv("MOCK_OPENCL_CHANGED", "own", 1);
    setenv("MOCK_OPENCL_REMOVED", "own", 1);
    srand(1);
    hal_status status = plugin_list(plugin, infos, 4, &count);
    if (secure_getenv("MOCK_OPENCL_OF_DRIVER") || !is_own("MOCK_OPENCL_CHANGED") ||
        !is_own("MOCK_OPENCL_REMOVED")) {
        snprintf(message, sizeof message, "a driver has changed the environment");
        status = HAL_ERROR_INTERNAL;
    }
    if (status == HAL_OK) {
        memcpy(told->architecture, infos[0].architecture, sizeof told->architecture);
    }
    status = status == HAL_OK ? plugin_open(plugin, 0, &made->device) : status;
    status = status == HAL_OK
                 ? plugin->memory_allocate(made->device, HAL_MEMORY_DEVICE, 256, &made->memory)
                 : status;
    status = status == HAL_OK ? hal_ir_parse(text, strlen(text), &made->ir) : status;
    status =
        status == HAL_OK ? plugin->kernel_create(made->device, made->ir, &made->kernel) : status;
    const int number = rand();
    srand(1);
    status = number == rand() ? status : HAL_ERROR_INTERNAL; /* a driver has drawn one */
    return status == HAL_OK ? plugin->queue_create(made->device, &made->queue) : status;
}

/* Submits `count` dispatches of the kernel as the batch of a value. */
static hal_status dispatch(const used *u, hal_plugin_queue *queue, uint64_t value, uint32_t count,
                           const hal_plugin_wait *wait)
{
    const uint32_t n = 64;
    const hal_binding binding = {
        .memory = u->memory, .length = 256, .access = HAL_ACCESS_READ_WRITE};
    hal_command commands[2];
    for (uint32_t i = 0; i < count; i++) {
        commands[i] = (hal_command){
            .binding_count = 1, .scalar_bytes = 4, .grid = {1, 1, 1}, .kernel = u->kernel};
    }
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = count,
                             .binding_count = 1,
                             .scalar_bytes = 4,
                             .commands = commands,
                             .bindings = &binding,
                             .scalars = (const uint8_t *)&n,
                             .flags = HAL_BATCH_UNTIMED};
    return u->plugin->submit(queue, &batch, wait, wait != NULL, value);
}

static hal_status used_submit(const used *u, uint64_t value)
{
    return dispatch(u, u->queue, value, 1, NULL);
}

/* Creates all, runs the kernel and waits, up to the first failure. The late mode is set before the
 * kernel runs; in two of them the kernel is made again. */
static hal_status use(const hal_plugin_entries *plugin, const char *late_mode)
{
    used u;
    hal_status status = used_create(plugin, &u);
    if (status != HAL_OK) {
        return status;
    }
    if (late_mode) {
        setenv("MOCK_OPENCL", late_mode, 1);
    }
    if (late_mode && (strcmp(late_mode, "again") == 0 || strcmp(late_mode, "stale_binary") == 0)) {
        plugin->kernel_destroy(u.device, u.kernel);
        status = plugin->kernel_create(u.device, u.ir, &u.kernel);
        if (status != HAL_OK) {
            return status;
        }
    }
    status = used_submit(&u, 1);
    if (status == HAL_OK) {
        const int slow = late_mode && strcmp(late_mode, "slow") == 0;
        status = plugin->wait(u.queue, 1, slow ? 2000000 : UINT64_MAX);
    }
    if (status == HAL_OK) {
        plugin->queue_destroy(u.device, u.queue);
        plugin->kernel_destroy(u.device, u.kernel);
        plugin->memory_free(u.device, u.memory);
        plugin->device_close(u.device);
    }
    return status;
}

enum { BATCHES = 3000 };

/* Submits many batches, and waits for all of them, or looks at the newest now and then. */
static hal_status use_many(const hal_plugin_entries *plugin, int looks)
{
    used u;
    hal_status status = used_create(plugin, &u);
    for (uint64_t value = 1; value <= BATCHES && status == HAL_OK; value++) {
        status = used_submit(&u, value);
        if (status == HAL_OK && looks && value % 100 == 0) {
            status = plugin->wait(u.queue, value, 0);
        }
    }
    status = status == HAL_OK ? plugin->wait(u.queue, BATCHES, UINT64_MAX) : status;
    return status == HAL_OK ? plugin->wait(u.queue, 1, 0) : status;
}

/* Runs a child with a loader (null: none that opens) in a mode from the start and one for later. */
static void run(const char *loader, const char *mode, const char *late_mode)
{
    memset(told, 0, sizeof *told);
    told->status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("MOCK_OPENCL", mode, 1);
        const int ready = !loader || dlopen(loader, RTLD_NOW | RTLD_LOCAL) != NULL;
        const hal_plugin_entries *plugin = ready ? plugin_load(OPENCL_PLUGIN_PATH) : NULL;
        tell(plugin ? use(plugin, late_mode) : -2);
    }
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state));
}

/* Returns the events that the loader created for many batches in a child. */
static int count_events(int looks)
{
    memset(told, 0, sizeof *told);
    told->status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("MOCK_OPENCL", "", 1);
        void *loader = dlopen(OPENCL_MOCK_PATH, RTLD_NOW | RTLD_LOCAL);
        const int *events = loader ? dlsym(loader, "mock_event_count") : NULL;
        const int *flushes = loader ? dlsym(loader, "mock_flush_count") : NULL;
        const hal_plugin_entries *plugin = events ? plugin_load(OPENCL_PLUGIN_PATH) : NULL;
        const hal_status status = plugin ? use_many(plugin, looks) : -2;
        told->events = events ? *events : 0;
        told->flushes = flushes ? *flushes : 0;
        tell(status);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(told->status, HAL_OK);
    return told->events;
}

/* What the loader counts, see opencl_mock.c. */
typedef struct mock {
    int *mock_event_count, *mock_query_count, *mock_finish_count, *mock_block_count,
        *mock_binary_count, *mock_unflushed_count, *mock_room, *mock_fill_count, *mock_copy_count,
        *mock_short_pitch;
    size_t (*mock_fills)[3], (*mock_copies)[3];
} mock;

static int mock_find(void *loader, mock *found)
{
#define FIND(name) (found->name = dlsym(loader, #name)) != NULL
    return loader && FIND(mock_event_count) && FIND(mock_query_count) && FIND(mock_finish_count) &&
           FIND(mock_binary_count) && FIND(mock_block_count) && FIND(mock_unflushed_count) &&
           FIND(mock_room) && FIND(mock_fill_count) && FIND(mock_fills) && FIND(mock_copy_count) &&
           FIND(mock_short_pitch) && FIND(mock_copies);
#undef FIND
}

/* Runs a check of queues in a child, which returns the line that failed. */
static void run_check(const char *quirks, int (*check)(const used *u, const mock *counts))
{
    memset(told, 0, sizeof *told);
    told->line = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("MOCK_OPENCL", "", 1);
        setenv("HAL_OPENCL_QUIRKS", quirks, 1);
        mock counts;
        used u;
        const int ready = mock_find(dlopen(OPENCL_MOCK_PATH, RTLD_NOW | RTLD_LOCAL), &counts);
        const hal_plugin_entries *plugin = ready ? plugin_load(OPENCL_PLUGIN_PATH) : NULL;
        const hal_status status = plugin ? used_create(plugin, &u) : -2;
        told->line = status == HAL_OK ? check(&u, &counts) : -1;
        tell(status);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (told->line != 0) {
        fail_msg("the check in line %d fails, with \"%s\"", told->line, told->message);
    }
}

#define CHECK(condition)     \
    do {                     \
        if (!(condition)) {  \
            return __LINE__; \
        }                    \
    } while (0)

/* A process lists devices and is forked; the copy opens one. */
static void run_forked(void)
{
    memset(told, 0, sizeof *told);
    told->status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hal_device_info infos[4];
        uint32_t count = 0;
        setenv("MOCK_OPENCL", "", 1);
        const int ready = dlopen(OPENCL_MOCK_PATH, RTLD_NOW | RTLD_LOCAL) != NULL;
        const hal_plugin_entries *plugin = ready ? plugin_load(OPENCL_PLUGIN_PATH) : NULL;
        const int listed = plugin && plugin_list(plugin, infos, 4, &count) == HAL_OK;
        const pid_t copy = listed ? fork() : -1;
        if (copy == 0) {
            hal_plugin_device *device = NULL;
            tell(plugin_open(plugin, 0, &device));
        } else if (copy > 0) {
            waitpid(copy, NULL, 0);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void expect(hal_status status, const char *first, const char *second)
{
    if (told->status != status || !strstr(told->message, first) || !strstr(told->message, second)) {
        fail_msg("status %d, message \"%s\"; expected status %d, \"%s\" and \"%s\"", told->status,
                 told->message, status, first, second);
    }
}

TEST(nothing_is_wrong)
{
    run(OPENCL_MOCK_PATH, "", NULL);
    assert_int_equal(told->status, HAL_OK);
    assert_int_equal(told->stored, 1);
    assert_int_equal(told->loaded, 0);
    run(OPENCL_MOCK_PATH, "", "again");
    assert_int_equal(told->status, HAL_OK);
    assert_int_equal(told->stored, 1);
    assert_int_equal(told->loaded, 1);
    run(OPENCL_MOCK_PATH, "", "stale_binary"); /* it is compiled again */
    assert_int_equal(told->status, HAL_OK);
    assert_int_equal(told->stored, 2);
}

/* What does not fit loses its first words, as the last ones name the processor. */
TEST(a_long_architecture)
{
    run(OPENCL_MOCK_PATH, "", NULL);
    assert_string_equal(told->architecture, "OpenCL 1.2 mock");
    run(OPENCL_MOCK_PATH, "long_version", NULL);
    assert_string_equal(told->architecture,
                        "3.0 mock of a processor whose name is more than has room.");
}

/* The search path of libraries is read when a program starts. */
TEST(no_loader)
{
    memset(told, 0, sizeof *told);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        setenv("LD_LIBRARY_PATH", OPENCL_NO_LOADER, 1);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_opencl_faults", "no_loader", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    assert_int_equal(fscanf(said, "%d %2047[^\n]", &told->status, told->message), 2);
    fclose(said);
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect(HAL_ERROR_LIBRARY_MISSING, "libOpenCL.so.1", "install the package");
}

static int tell_without_loader(void)
{
    static outcome unused;
    told = &unused;
    const hal_plugin_entries *plugin = plugin_load(OPENCL_PLUGIN_PATH);
    const hal_status status = plugin ? use(plugin, NULL) : -2;
    printf("%d %s\n", status, message);
    return 0;
}

TEST(a_loader_that_is_too_old)
{
    run(OPENCL_OLD_PATH, "", NULL);
    expect(HAL_ERROR_TOO_OLD, "the OpenCL loader", "clGetDeviceIDs");
}

TEST(no_driver_and_no_device)
{
    run(OPENCL_MOCK_PATH, "no_platform", NULL);
    expect(HAL_ERROR_DRIVER_MISSING, "no driver is registered", ".icd");
    run(OPENCL_MOCK_PATH, "no_device", NULL);
    expect(HAL_ERROR_NO_DEVICE, "no usable device", "clinfo");
}

/* Promise 25: drivers have threads as soon as devices are listed, which a copy has not. */
TEST(a_forked_process)
{
    run_forked();
    expect(HAL_ERROR_INVALID_STATE, "opencl", "child of a process");
}

TEST(devices_that_lack_something)
{
    static const char *const lacking[][2] = {
        {"version", "Mock card is below OpenCL 1.2"},
        {"embedded", "Mock card has no 64-bit integers"},
        {"no_compiler", "Mock card has no compiler"},
        {"not_available", "Mock card is not available"},
        {"big_endian", "Mock card is big-endian"},
    };
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        run(OPENCL_MOCK_PATH, lacking[i][0], NULL);
        expect(HAL_ERROR_NO_DEVICE, lacking[i][1], "clinfo");
    }
}

TEST(kernels_that_are_not_taken)
{
    run(OPENCL_MOCK_PATH, "reject", NULL);
    expect(HAL_ERROR_COMPILE, "kernel twice", "line 7: the mock takes no kernel");
    run(OPENCL_MOCK_PATH, "registers", NULL);
    expect(HAL_ERROR_UNSUPPORTED, "kernel twice: group: expected at most 32 work-items", "got 64");
}

/* Only devices that are known for it are asked to leave out the header of all functions, and again
 * with it where they do not take that. */
TEST(kernels_without_a_header)
{
    run(OPENCL_MOCK_PATH, "no_header", NULL);
    assert_int_equal(told->status, HAL_ERROR_COMPILE);
    setenv("HAL_OPENCL_QUIRKS", "own_declarations", 1);
    run(OPENCL_MOCK_PATH, "no_header", NULL);
    assert_int_equal(told->status, HAL_OK);
    run(OPENCL_MOCK_PATH, "header", NULL);
    assert_int_equal(told->status, HAL_OK);
    run(OPENCL_MOCK_PATH, "reject", NULL);
    expect(HAL_ERROR_COMPILE, "kernel twice", "line 7: the mock takes no kernel");
    unsetenv("HAL_OPENCL_QUIRKS");
}

/* As every variable of hal and its plugins: what cannot be followed is told. */
TEST(a_quirk_that_is_none)
{
    static const char *const lists[] = {"shadow,-own_cash", "own_cash", ",", "-"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        setenv("HAL_OPENCL_QUIRKS", lists[i], 1);
        run(OPENCL_MOCK_PATH, "", NULL);
        expect(HAL_ERROR_INVALID_ARGUMENT, lists[i], "the names are shadow, buffer_arguments");
    }
    setenv("HAL_OPENCL_QUIRKS", "shadow,-own_cache", 1);
    run(OPENCL_MOCK_PATH, "", NULL);
    assert_int_equal(told->status, HAL_OK);
    setenv("HAL_OPENCL_QUIRKS", "", 1);
    run(OPENCL_MOCK_PATH, "", NULL);
    assert_int_equal(told->status, HAL_OK);
    unsetenv("HAL_OPENCL_QUIRKS");
}

TEST(out_of_memory)
{
    run(OPENCL_MOCK_PATH, "memory", NULL);
    expect(HAL_ERROR_OUT_OF_MEMORY, "Mock card: allocating 256 bytes",
           "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    run(OPENCL_MOCK_PATH, "context", NULL);
    expect(HAL_ERROR_OUT_OF_MEMORY, "Mock card: clCreateContext", "CL_OUT_OF_HOST_MEMORY");
}

TEST(a_device_that_is_lost)
{
    run(OPENCL_MOCK_PATH, "", "lost");
    expect(HAL_ERROR_DEVICE_LOST, "Mock card: a command failed while it ran",
           "CL_OUT_OF_RESOURCES");
    run(OPENCL_MOCK_PATH, "", "enqueue");
    expect(HAL_ERROR_DEVICE_LOST, "clEnqueueNDRangeKernel of twice", "CL_OUT_OF_RESOURCES");
}

TEST(a_wait_with_a_limit)
{
    run(OPENCL_MOCK_PATH, "", "slow");
    assert_int_equal(told->status, HAL_ERROR_TIMEOUT);
}

/* Drivers take microseconds for an event. Where nobody can ask for times, few batches have one. */
TEST(few_events_without_profiling)
{
    assert_true(count_events(0) >= BATCHES);
    setenv("HAL_OPENCL_QUIRKS", "no_profiling", 1);
    assert_in_range(count_events(0), BATCHES / 64, BATCHES / 8);
    assert_in_range(count_events(1), BATCHES / 64, BATCHES / 8);
    unsetenv("HAL_OPENCL_QUIRKS");
}

/* A driver that starts commands without a flush gets none with a batch. */
TEST(few_flushes_of_eager_drivers)
{
    count_events(0);
    assert_true(told->flushes >= BATCHES);
    setenv("HAL_OPENCL_QUIRKS", "no_profiling,eager", 1);
    count_events(0);
    assert_in_range(told->flushes, 0, 10);
    unsetenv("HAL_OPENCL_QUIRKS");
}

/* The marker of a look lies after a batch that may have ended long ago: it gets a moment. */
static int look_at_the_newest(const used *u, const mock *counts)
{
    setenv("MOCK_OPENCL", "soon", 1);
    CHECK(used_submit(u, 1) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 1, 0) == HAL_OK);
    CHECK(used_submit(u, 2) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 2, 1000) == HAL_OK);
    setenv("MOCK_OPENCL", "slow", 1);
    CHECK(used_submit(u, 3) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 3, 0) == HAL_ERROR_TIMEOUT);
    const int events = *counts->mock_event_count, queries = *counts->mock_query_count;
    CHECK(u->plugin->wait(u->queue, 3, 0) == HAL_ERROR_TIMEOUT);
    CHECK(*counts->mock_event_count == events);
    CHECK(*counts->mock_query_count == queries + 1);
    return 0;
}

/* Where each wait needs an event, a look must not have to wait for that of a new marker. */
static int look_at_an_event(const used *u, const mock *counts)
{
    CHECK(used_submit(u, 1) == HAL_OK);
    CHECK(*counts->mock_event_count == 1);
    CHECK(u->plugin->wait(u->queue, 1, 0) == HAL_OK);
    CHECK(used_submit(u, 2) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 2, UINT64_MAX) == HAL_OK);
    CHECK(*counts->mock_event_count == 2);
    return 0;
}

TEST(a_look_at_the_newest_batch)
{
    run_check("no_profiling", look_at_the_newest);
    run_check("no_profiling,event_wait", look_at_an_event);
}

/* Submits batches from a value on. Returns the events that they had, -1 for a failure. */
static int events_of(const used *u, const mock *counts, uint64_t value, uint64_t count)
{
    const int before = *counts->mock_event_count;
    for (uint64_t i = 0; i < count; i++) {
        if (used_submit(u, value + i) != HAL_OK) {
            return -1;
        }
    }
    return *counts->mock_event_count - before;
}

/* A program that waits for batches other than the newest wants the later ones to run meanwhile. */
static int wait_inside(const used *u, const mock *counts, uint64_t timeout_ns)
{
    for (uint64_t value = 1; value <= 10; value += 2) {
        CHECK(events_of(u, counts, value, 2) == 0);
        CHECK(u->plugin->wait(u->queue, value + 1, UINT64_MAX) == HAL_OK);
        CHECK(u->plugin->wait(u->queue, value, timeout_ns) == HAL_OK);
    }
    CHECK(events_of(u, counts, 11, 2) == 0);
    CHECK(u->plugin->wait(u->queue, 11, timeout_ns) == HAL_OK);
    CHECK(events_of(u, counts, 13, 4) == 4);
    const int finishes = *counts->mock_finish_count;
    CHECK(u->plugin->wait(u->queue, 15, UINT64_MAX) == HAL_OK);
    CHECK(*counts->mock_finish_count == finishes);
    return 0;
}

static int wait_inside_without_limit(const used *u, const mock *counts)
{
    return wait_inside(u, counts, UINT64_MAX);
}

static int look_inside(const used *u, const mock *counts)
{
    return wait_inside(u, counts, 0);
}

/* The next mark is too late as well, unless it has ended. */
static int look_before_a_mark(const used *u, const mock *counts)
{
    CHECK(events_of(u, counts, 1, 16) == 1);
    CHECK(u->plugin->wait(u->queue, 14, 0) == HAL_OK);
    CHECK(events_of(u, counts, 17, 15) == 0);
    CHECK(events_of(u, counts, 32, 1) == 1);
    setenv("MOCK_OPENCL", "slow", 1);
    CHECK(u->plugin->wait(u->queue, 30, 0) == HAL_ERROR_TIMEOUT);
    CHECK(events_of(u, counts, 33, 4) == 4);
    return 0;
}

static int follow_inside(const used *u, const mock *counts)
{
    hal_plugin_queue *other = NULL;
    CHECK(u->plugin->queue_create(u->device, &other) == HAL_OK);
    hal_plugin_wait wait = {.queue = u->queue, .value = 2};
    CHECK(events_of(u, counts, 1, 2) == 0);
    CHECK(dispatch(u, other, 1, 1, &wait) == HAL_OK);
    CHECK(events_of(u, counts, 3, 2) == 0);
    wait.value = 3;
    CHECK(dispatch(u, other, 2, 1, &wait) == HAL_OK);
    CHECK(events_of(u, counts, 5, 4) == 4);
    return 0;
}

TEST(a_wait_for_a_batch_that_is_not_the_newest)
{
    run_check("no_profiling", wait_inside_without_limit);
    run_check("no_profiling", look_inside);
    run_check("no_profiling", look_before_a_mark);
    run_check("no_profiling", follow_inside);
}

/* Of a queue whose work does not end, all marks are in use some time. */
static int many_looks(const used *u, const mock *counts)
{
    setenv("MOCK_OPENCL", "slow", 1);
    for (uint64_t value = 1; value <= 1100; value++) {
        CHECK(used_submit(u, value) == HAL_OK);
        const int blocks = *counts->mock_block_count;
        CHECK(u->plugin->wait(u->queue, value, value % 2) == HAL_ERROR_TIMEOUT);
        CHECK(*counts->mock_block_count == blocks);
    }
    setenv("MOCK_OPENCL", "", 1);
    CHECK(u->plugin->wait(u->queue, 1100, 0) == HAL_OK);
    return 0;
}

/* Copies get a marker when more follows, unless a look has placed one. */
static int one_marker(const used *u, const mock *counts)
{
    const hal_binding binding = {.memory = u->memory, .length = 256, .access = HAL_ACCESS_WRITE};
    const uint8_t pattern[8] = {0};
    const hal_command fill = {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = 4};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .scalar_bytes = sizeof pattern,
                             .commands = &fill,
                             .bindings = &binding,
                             .scalars = pattern};
    CHECK(u->plugin->submit(u->queue, &batch, NULL, 0, 1) == HAL_OK);
    CHECK(events_of(u, counts, 2, 1) == 1);
    setenv("MOCK_OPENCL", "slow", 1);
    CHECK(u->plugin->submit(u->queue, &batch, NULL, 0, 3) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 3, 0) == HAL_ERROR_TIMEOUT);
    CHECK(events_of(u, counts, 4, 1) == 0);
    return 0;
}

TEST(a_look_when_all_marks_are_in_use)
{
    run_check("no_profiling", many_looks);
    run_check("no_profiling", one_marker);
}

/* Each kept event is asked before it is released. */
static int lost_before_the_end(const used *u, const mock *counts)
{
    CHECK(events_of(u, counts, 1, 18) >= 1);
    setenv("MOCK_OPENCL", "lost", 1);
    CHECK(u->plugin->wait(u->queue, 18, UINT64_MAX) == HAL_ERROR_DEVICE_LOST);
    CHECK(strstr(message, "CL_OUT_OF_RESOURCES") != NULL);
    setenv("MOCK_OPENCL", "", 1);
    CHECK(u->plugin->wait(u->queue, 17, 0) == HAL_ERROR_DEVICE_LOST);
    CHECK(used_submit(u, 19) == HAL_ERROR_DEVICE_LOST);
    return 0;
}

static int lost_at_the_end(const used *u, const mock *counts)
{
    CHECK(events_of(u, counts, 1, 1) == 0);
    setenv("MOCK_OPENCL", "finish", 1);
    CHECK(u->plugin->wait(u->queue, 1, UINT64_MAX) == HAL_ERROR_DEVICE_LOST);
    return 0;
}

TEST(a_device_that_is_lost_without_profiling)
{
    run_check("no_profiling", lost_before_the_end);
    run_check("no_profiling", lost_at_the_end);
    run_check("no_profiling,event_wait", lost_before_the_end);
}

/* After a submit that may have run something the device cannot be used (QUEUE-3). */
static int refused_in_part(const used *u, const mock *counts)
{
    *counts->mock_room = 0;
    CHECK(dispatch(u, u->queue, 1, 2, NULL) == HAL_ERROR_OUT_OF_MEMORY);
    CHECK(*counts->mock_finish_count == 0);
    *counts->mock_room = -1;
    CHECK(dispatch(u, u->queue, 1, 2, NULL) == HAL_OK);
    *counts->mock_room = 1;
    CHECK(dispatch(u, u->queue, 2, 2, NULL) == HAL_ERROR_DEVICE_LOST);
    CHECK(strstr(message, "CL_OUT_OF_HOST_MEMORY") != NULL);
    CHECK(*counts->mock_finish_count == 1); /* the first command has ended */
    *counts->mock_room = -1;
    CHECK(used_submit(u, 2) == HAL_ERROR_DEVICE_LOST);
    return 0;
}

TEST(a_submit_that_is_refused_in_part)
{
    run_check("", refused_in_part);
    run_check("no_profiling", refused_in_part);
}

/* OpenCL wants a flush of events before another queue waits for them. */
static int follow_an_eager_queue(const used *u, const mock *counts)
{
    hal_plugin_queue *other = NULL;
    CHECK(u->plugin->queue_create(u->device, &other) == HAL_OK);
    const hal_plugin_wait wait = {.queue = u->queue, .value = 16};
    setenv("MOCK_OPENCL", "slow", 1);
    CHECK(events_of(u, counts, 1, 16) == 1);
    CHECK(dispatch(u, other, 1, 1, &wait) == HAL_OK);
    CHECK(*counts->mock_unflushed_count == 0);
    return 0;
}

TEST(a_queue_that_follows_an_eager_one)
{
    run_check("no_profiling,eager", follow_an_eager_queue);
}

static hal_status fill(const used *u, uint64_t value, uint64_t offset, uint64_t length,
                       uint32_t bytes)
{
    const uint8_t pattern[16] = {1};
    const hal_binding binding = {
        .memory = u->memory, .offset = offset, .length = length, .access = HAL_ACCESS_WRITE};
    const hal_command command = {
        .kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = bytes};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .scalar_bytes = bytes,
                             .commands = &command,
                             .bindings = &binding,
                             .scalars = pattern,
                             .flags = HAL_BATCH_UNTIMED};
    return u->plugin->submit(u->queue, &batch, NULL, 0, value);
}

/* Parts follow one another, and neither begins or ends beyond what the driver counts. */
static int fill_far_inside(const used *u, const mock *counts)
{
    const uint64_t first = (UINT64_C(1) << 32) + 12, length = (UINT64_C(1) << 31) + 8;
    CHECK(fill(u, 1, (UINT64_C(1) << 31) - 5, 4, 1) == HAL_OK); /* reaches 2^31 - 1 */
    CHECK(*counts->mock_fill_count == 1);
    CHECK(counts->mock_fills[0][1] == (UINT64_C(1) << 31) - 5);
    CHECK(fill(u, 2, first, length, 2) == HAL_OK);
    uint64_t at = first;
    for (int i = 1; i < *counts->mock_fill_count; i++) {
        const size_t *part = counts->mock_fills[i];
        CHECK(part[0] % 4096 == 0);
        CHECK(part[0] + part[1] == at);
        CHECK(part[1] + part[2] <= UINT64_C(1) << 31);
        at += part[2];
    }
    CHECK(*counts->mock_fill_count == 4);
    CHECK(at == first + length);
    return 0;
}

TEST(fills_beyond_what_a_driver_counts)
{
    run_check("wrong_fills", fill_far_inside);
}

/* Rows that the driver does not copy as a rectangle are copied one by one. */
static int copy_refused_rows(const used *u, const mock *counts)
{
    const hal_plugin_copy_rows rows = {.row_bytes = 4,
                                       .source_pitch = 100,
                                       .target_pitch = 8,
                                       .source_slice = 1000,
                                       .target_slice = 16,
                                       .rows = 2,
                                       .slices = 2};
    const hal_binding bindings[2] = {
        {.memory = u->memory, .offset = 4, .length = 1104, .access = HAL_ACCESS_READ},
        {.memory = u->memory, .offset = 4096, .length = 28, .access = HAL_ACCESS_WRITE}};
    const hal_command command = {
        .kind = HAL_COMMAND_COPY_ROWS, .binding_count = 2, .scalar_bytes = sizeof rows};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 2,
                             .scalar_bytes = sizeof rows,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)&rows,
                             .flags = HAL_BATCH_UNTIMED};
    static const size_t wanted[4][3] = {
        {4, 4096, 4}, {104, 4104, 4}, {1004, 4112, 4}, {1104, 4120, 4}};
    CHECK(u->plugin->submit(u->queue, &batch, NULL, 0, 1) == HAL_OK);
    CHECK(*counts->mock_copy_count == 0);
    *counts->mock_short_pitch = 1;
    CHECK(u->plugin->submit(u->queue, &batch, NULL, 0, 2) == HAL_OK);
    CHECK(*counts->mock_copy_count == 4);
    CHECK(memcmp(counts->mock_copies, wanted, sizeof wanted) == 0);
    return 0;
}

TEST(rows_that_a_driver_refuses)
{
    run_check("", copy_refused_rows);
}

static int wait_by_event(const used *u, const mock *counts)
{
    CHECK(used_submit(u, 1) == HAL_OK);
    CHECK(u->plugin->wait(u->queue, 1, UINT64_MAX) == HAL_OK);
    CHECK(*counts->mock_finish_count == 0 && *counts->mock_query_count > 0);
    return 0;
}

/* Some drivers' clFinish returns too early, or not while another thread submits. */
TEST(drivers_whose_queues_are_not_waited_for)
{
    static const char *const platforms[] = {"Portable Computing Language", "rusticl"};
    for (size_t i = 0; i < sizeof platforms / sizeof platforms[0]; i++) {
        setenv("MOCK_PLATFORM", platforms[i], 1);
        run_check("", wait_by_event);
    }
    unsetenv("MOCK_PLATFORM");
}

static int begin(void **state)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told == MAP_FAILED;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "no_loader") == 0) {
        return tell_without_loader();
    }
    const unit_list *list = unit_tests();
    return _cmocka_run_group_tests(__FILE__, list->tests, list->count, begin, NULL);
}
