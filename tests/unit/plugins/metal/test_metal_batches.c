/* The metal plugin over a shim that writes down its calls (mock_shim.h): what a batch becomes, and
 * what is reported when the system has no memory or a batch fails. */

#include "../plugin_host.h"
#include "mock_shim.h"
#include <kit/plugin.h>
#include <metal/commands.h>
#include <metal/kernel.h>
#include <metal/memory.h>
#include <metal/point.h>
#include <metal/status.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fixture {
    const hal_plugin_entries *plugin;
    hal_plugin_device *device;
    hal_plugin_queue *queue;
    hal_plugin_memory *a, *b;
    hal_plugin_kernel *kernel;
    int objects; /* references before */
} fixture;

static const char kernel_text[] = "kernel twice\ngroup 64 1 1\nbinding x f32 read\n"
                                  "binding y f32 write\nscalar n u32\n"
                                  "%i = local_id u32 x\n%n = scalar u32 n\n%c = lt bool %i, %n\n"
                                  "%v = load f32 x[%i] if %c\n%s = add f32 %v, %v\n"
                                  "store y[%i], %s if %c\n";

static hal_status kernel_make(fixture *f, const char *text, hal_plugin_kernel **kernel)
{
    hal_ir_kernel *ir = ir_parse(text);
    const hal_status status = f->plugin->kernel_create(f->device, ir, kernel);
    hal_ir_kernel_destroy(ir);
    return status;
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    uint32_t count = 0;
    *state = f;
    mock_reset();
    free(host_cache()->data);
    *host_cache() = (host_entry){0};
    message[0] = '\0';
    static hal_plugin_entries entries;
    assert_true(plugin_create(&entries, hal_plugin_create, plugin_host()));
    f->plugin = &entries;
    assert_int_equal(plugin_list(f->plugin, NULL, 0, &count), HAL_OK);
    f->objects = mock.objects;
    assert_int_equal(plugin_open(f->plugin, 0, &f->device), HAL_OK);
    assert_int_equal(f->plugin->memory_allocate(f->device, HAL_MEMORY_DEVICE, 4096, &f->a), HAL_OK);
    assert_int_equal(f->plugin->memory_allocate(f->device, HAL_MEMORY_SHARED, 4096, &f->b), HAL_OK);
    assert_int_equal(f->plugin->queue_create(f->device, &f->queue), HAL_OK);
    assert_int_equal(kernel_make(f, kernel_text, &f->kernel), HAL_OK);
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    f->plugin->kernel_destroy(f->device, f->kernel);
    f->plugin->queue_destroy(f->device, f->queue);
    f->plugin->memory_free(f->device, f->a);
    f->plugin->memory_free(f->device, f->b);
    f->plugin->device_close(f->device);
    assert_int_equal(mock.objects, f->objects);
    f->plugin->instance_destroy(f->plugin->instance);
    free(f);
    return 0;
}

enum { DISPATCH = HAL_COMMAND_DISPATCH, COPY = HAL_COMMAND_COPY, FILL = HAL_COMMAND_FILL };

/* Commands on the first `bytes` of a (source) and b (target). */
static hal_status submit(fixture *f, const hal_command *commands, uint32_t count, uint64_t bytes,
                         uint64_t value)
{
    const hal_binding bindings[3] = {
        {.memory = f->a, .length = bytes, .access = HAL_ACCESS_READ},
        {.memory = f->b, .length = bytes, .access = HAL_ACCESS_WRITE},
        {.memory = f->a, .offset = 20, .length = 12, .access = HAL_ACCESS_READ}}; /* a grid */
    const uint8_t scalars[16] = {64, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7}; /* a fill from 8 on */
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = count,
                             .binding_count = 3,
                             .scalar_bytes = sizeof scalars,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = scalars};
    mock.calls[0] = '\0';
    return f->plugin->submit(f->queue, &batch, NULL, 0, value);
}

static hal_command dispatch_of(fixture *f, uint16_t flags)
{
    return (hal_command){.kind = DISPATCH,
                         .flags = flags,
                         .binding_count = 2,
                         .scalar_bytes = 4,
                         .grid = {7, 1, 1},
                         .kernel = f->kernel};
}

TEST_WITH(dispatches_share_an_encoder, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command commands[3] = {dispatch_of(f, HAL_COMMAND_BARRIER), dispatch_of(f, 0),
                                     dispatch_of(f, HAL_COMMAND_BARRIER)};
    assert_int_equal(submit(f, commands, 3, 4096, 1), HAL_OK);
    assert_string_equal(
        mock.calls, "compute; pipeline; buffer 0 B+0; buffer 1 C+0; bytes 2 4; dispatch 7 of 64; "
                    "bytes 2 4; dispatch 7 of 64; "
                    "barrier; bytes 2 4; dispatch 7 of 64; end; signal 1; commit\n");
    assert_int_equal(submit(f, commands, 1, 4096, 2), HAL_OK);
    assert_non_null(strstr(mock.calls, "compute after fence; pipeline; buffer 0"));
}

TEST_WITH(grids_are_in_memory, set_up, tear_down)
{
    fixture *f = *state;
    hal_command command = dispatch_of(f, HAL_COMMAND_INDIRECT);
    command.binding_count = 3;
    assert_int_equal(submit(f, &command, 1, 4096, 1), HAL_OK);
    assert_string_equal(mock.calls,
                        "compute; pipeline; buffer 0 B+0; buffer 1 C+0; bytes 2 4; dispatch B+20 "
                        "of 64; end; signal 1; commit\n");
}

TEST_WITH(unused_bindings_have_a_buffer, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command command = dispatch_of(f, 0);
    assert_int_equal(submit(f, &command, 1, 0, 1), HAL_OK);
    assert_non_null(strstr(mock.calls, "buffer 0 A+0; buffer 1 A+0; "));
}

TEST_WITH(copies_and_fills_take_the_blit_encoder, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command commands[] = {
        {.kind = COPY, .binding_count = 2},
        {.kind = FILL,
         .binding_first = 1,
         .binding_count = 1,
         .scalar_bytes = 4,
         .scalar_first = 8},
        {.kind = COPY, .flags = HAL_COMMAND_BARRIER, .binding_count = 2}};
    assert_int_equal(submit(f, commands, 3, 64, 1), HAL_OK);
    assert_string_equal(mock.calls, "blit; copy B+0 C+0 64; fill C+0 64 with 7; end; "
                                    "blit after fence; copy B+0 C+0 64; end; signal 1; commit\n");
}

/* macOS copies multiples of four bytes, and fills with one byte. */
TEST_WITH(kernels_do_what_blits_do_not, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command copy = {.kind = COPY, .binding_count = 2};
    const hal_command fill = {
        .kind = FILL, .binding_first = 1, .binding_count = 1, .scalar_bytes = 4};
    assert_int_equal(submit(f, &copy, 1, 63, 1), HAL_OK);
    assert_non_null(strstr(mock.calls, "compute; pipeline; buffer 0 B+0; buffer 1 C+0; bytes 2 40; "
                                       "dispatch 1 of 256; end; "));
    assert_int_equal(submit(f, &fill, 1, 4096, 2), HAL_OK);
    assert_non_null(strstr(mock.calls, "buffer 1 C+0; bytes 2 40; dispatch 4 of 256; end; "));
}

TEST_WITH(small_copies_stay_in_a_compute_encoder, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command commands[] = {
        dispatch_of(f, 0), {.kind = COPY, .binding_count = 2}, dispatch_of(f, HAL_COMMAND_BARRIER)};
    assert_int_equal(submit(f, commands, 3, 64, 1), HAL_OK);
    assert_null(strstr(mock.calls, "blit"));
    assert_non_null(strstr(mock.calls, "barrier; pipeline; "));
}

TEST_WITH(queues_wait_for_each_other, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_queue *other = NULL;
    const hal_batch empty = {.size = sizeof empty};
    mock.progress = METAL_RUNNING;
    assert_int_equal(f->plugin->queue_create(f->device, &other), HAL_OK);
    assert_int_equal(f->plugin->submit(f->queue, &empty, NULL, 0, 1), HAL_OK);
    const hal_plugin_wait waits[2] = {{.queue = f->queue, .value = 1},
                                      {.queue = other, .value = 0}};
    mock.calls[0] = '\0';
    assert_int_equal(f->plugin->submit(other, &empty, waits, 2, 1), HAL_OK);
    assert_string_equal(mock.calls, "await 1; signal 1; commit\n");
    assert_int_equal(f->plugin->wait(other, 1, 1000), HAL_ERROR_TIMEOUT);
    mock.progress = METAL_DONE;
    assert_int_equal(f->plugin->wait(other, 1, UINT64_MAX), HAL_OK);
    f->plugin->queue_destroy(f->device, other);
}

TEST_WITH(many_batches_are_in_flight, set_up, tear_down)
{
    fixture *f = *state;
    uint64_t elapsed = 0;
    for (uint64_t value = 1; value <= 3 * METAL_IN_FLIGHT; value++) {
        assert_int_equal(submit(f, NULL, 0, 0, value), HAL_OK);
    }
    assert_int_equal(mock.commits, 3 * METAL_IN_FLIGHT);
    assert_int_equal(f->plugin->wait(f->queue, 3 * METAL_IN_FLIGHT, UINT64_MAX), HAL_OK);
    assert_int_equal(f->plugin->queue_elapsed(f->queue, 5, 105, &elapsed), HAL_OK);
    assert_in_range(elapsed, 99999000, 100001000);
    assert_int_equal(f->plugin->queue_elapsed(f->queue, 0, 105, &elapsed),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(f->plugin->wait(f->queue, 3 * METAL_IN_FLIGHT + 1, 0), HAL_ERROR_TIMEOUT);
}

/* The failed one never sets its event; the other must not be waited for in vain. */
TEST_WITH(a_failed_batch_releases_its_followers, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_queue *other = NULL;
    const hal_batch empty = {.size = sizeof empty};
    const hal_plugin_wait wait = {.queue = f->queue, .value = 1};
    assert_int_equal(f->plugin->queue_create(f->device, &other), HAL_OK);
    mock.progress = METAL_RUNNING;
    assert_int_equal(f->plugin->submit(f->queue, &empty, NULL, 0, 1), HAL_OK);
    assert_int_equal(f->plugin->submit(other, &empty, &wait, 1, 1), HAL_OK);
    mock.progress = METAL_FAILED;
    assert_int_equal(f->plugin->wait(other, 1, UINT64_MAX), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(metal_shim_event_value(other->event), 1);
    assert_int_equal(f->plugin->wait(f->queue, 1, UINT64_MAX), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(metal_shim_event_value(f->queue->event), 1);
    f->plugin->queue_destroy(f->device, other);
}

TEST_WITH(a_failed_batch_loses_the_device, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_memory *more = NULL;
    assert_int_equal(submit(f, NULL, 0, 0, 1), HAL_OK);
    assert_int_equal(f->plugin->wait(f->queue, 1, UINT64_MAX), HAL_OK);
    assert_int_equal(submit(f, NULL, 0, 0, 2), HAL_OK);
    mock.progress = METAL_FAILED;
    mock.error_code = 3;
    assert_int_equal(f->plugin->wait(f->queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST);
    assert_non_null(strstr(message, "page fault"));
    assert_int_equal(f->plugin->wait(f->queue, 1, UINT64_MAX), HAL_OK);
    assert_int_equal(f->plugin->wait(f->queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(submit(f, NULL, 0, 0, 3), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(f->plugin->memory_allocate(f->device, HAL_MEMORY_DEVICE, 64, &more),
                     HAL_ERROR_DEVICE_LOST);
}

TEST_WITH(failed_submits_run_nothing, set_up, tear_down)
{
    fixture *f = *state;
    const hal_command command = dispatch_of(f, 0);
    mock.no_commands = 1;
    assert_int_equal(submit(f, &command, 1, 64, 1), HAL_ERROR_OUT_OF_MEMORY);
    mock.no_commands = 0;
    mock.no_encoder = 1;
    assert_int_equal(submit(f, &command, 1, 64, 1), HAL_ERROR_OUT_OF_MEMORY);
    mock.no_encoder = 0;
    const hal_command unknown[2] = {command, {.kind = 9}};
    assert_int_equal(submit(f, unknown, 2, 64, 1), HAL_ERROR_UNSUPPORTED);
    assert_int_equal(mock.commits, 0);
    assert_int_equal(submit(f, &command, 1, 64, 1), HAL_OK);
    assert_non_null(strstr(mock.calls, "compute; ")); /* the fence was never updated */
}

TEST_WITH(memory_has_a_limit, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_memory *memory = NULL;
    uint64_t free_bytes = 0, total = 0;
    assert_int_equal(f->plugin->memory_info(f->device, &free_bytes, &total), HAL_OK);
    assert_int_equal(total, UINT64_C(1) << 30);
    assert_int_equal(free_bytes, total - mock.allocated);
    assert_int_equal(
        f->plugin->memory_allocate(f->device, HAL_MEMORY_DEVICE, (UINT64_C(1) << 29) + 1, &memory),
        HAL_ERROR_OUT_OF_MEMORY);
    mock.allocated += UINT64_C(1) << 30;
    assert_int_equal(f->plugin->memory_allocate(f->device, HAL_MEMORY_DEVICE, 64, &memory),
                     HAL_ERROR_OUT_OF_MEMORY);
    mock.allocated -= UINT64_C(1) << 30;
    mock.no_buffer = 1;
    assert_int_equal(f->plugin->memory_allocate(f->device, HAL_MEMORY_DEVICE, 64, &memory),
                     HAL_ERROR_OUT_OF_MEMORY);
    assert_null(memory);
}

TEST_WITH(discrete_devices_have_private_memory, set_up, tear_down)
{
    fixture *f = *state;
    hal_device_info infos[3];
    hal_plugin_device *device = NULL;
    hal_plugin_memory *memory = NULL;
    void *pointer = NULL;
    uint32_t count = 0;
    assert_int_equal(plugin_list(f->plugin, infos, 3, &count), HAL_OK);
    assert_int_equal(count, 2); /* the third belongs to no known family */
    assert_int_equal(infos[0].kind, HAL_DEVICE_INTEGRATED);
    assert_int_equal(infos[0].subgroup_width, 32);
    assert_string_equal(infos[0].id, "registry:1000");
    assert_int_equal(infos[1].kind, HAL_DEVICE_DISCRETE);
    assert_int_equal(infos[1].subgroup_width, 0);
    assert_int_equal(infos[1].features & HAL_FEATURE_ZERO_COPY, 0);
    assert_int_equal(plugin_open(f->plugin, 1, &device), HAL_OK);
    assert_int_equal(f->plugin->memory_allocate(device, HAL_MEMORY_DEVICE, 64, &memory), HAL_OK);
    assert_int_equal(f->plugin->memory_map(device, memory, &pointer), HAL_ERROR_UNSUPPORTED);
    f->plugin->memory_free(device, memory);
    assert_int_equal(f->plugin->memory_allocate(device, HAL_MEMORY_UPLOAD, 64, &memory), HAL_OK);
    assert_int_equal(f->plugin->memory_map(device, memory, &pointer), HAL_OK);
    f->plugin->memory_free(device, memory);
    f->plugin->device_close(device);
    assert_int_equal(plugin_open(f->plugin, 2, &device), HAL_ERROR_NOT_FOUND);
}

TEST_WITH(binaries_go_to_the_cache, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_kernel *kernel = NULL;
    assert_int_equal(mock.archives_written, 1);
    assert_int_equal(host_cache()->bytes, 6);
    assert_int_equal(kernel_make(f, kernel_text, &kernel), HAL_OK);
    assert_int_equal(mock.archives_used, 1);
    assert_int_equal(mock.archives_written, 1);
    f->plugin->kernel_destroy(f->device, kernel);
    memcpy(host_cache()->data, "broken", 6);
    assert_int_equal(kernel_make(f, kernel_text, &kernel), HAL_OK);
    assert_int_equal(mock.archives_used, 1);
    assert_int_equal(mock.archives_written, 2);
    f->plugin->kernel_destroy(f->device, kernel);
}

TEST_WITH(what_a_kernel_lacks_is_told, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_kernel *kernel = NULL;
    static const char lanes[] = "kernel lanes\ngroup 64 1 1\nbinding x u32 write\n"
                                "%i = lane_id u32\nstore x[%i], %i\n";
    mock.max_group_items = 32;
    assert_int_equal(kernel_make(f, kernel_text, &kernel), HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "expected at most 32 work-items"));
    mock.max_group_items = 1024;
    mock.subgroup_width = 16;
    assert_int_equal(kernel_make(f, lanes, &kernel), HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "expected 32 lanes, got 16"));
    hal_ir_kernel *ir = ir_parse(kernel_text);
    assert_int_equal(f->plugin->kernel_create_native(f->device, "ptx", "", 0, "k", ir, &kernel),
                     HAL_ERROR_UNSUPPORTED);
    assert_int_equal(f->plugin->kernel_create_native(f->device, "msl", "void", 4, "k", ir, &kernel),
                     HAL_ERROR_COMPILE);
    assert_non_null(strstr(message, "no kernel"));
    assert_int_equal(
        f->plugin->kernel_create_native(f->device, "msl", "kernel void k()", 15, "k", ir, &kernel),
        HAL_OK);
    f->plugin->kernel_destroy(f->device, kernel);
    hal_ir_kernel_destroy(ir);
}

TEST_WITH(a_child_of_fork_is_refused, set_up, tear_down)
{
    fixture *f = *state;
    const pid_t child = fork();
    if (child == 0) {
        hal_plugin_device *device = NULL;
        const int refused = submit(f, NULL, 0, 0, 1) == HAL_ERROR_INVALID_STATE &&
                            f->plugin->wait(f->queue, 1, 0) == HAL_ERROR_INVALID_STATE &&
                            plugin_open(f->plugin, 0, &device) == HAL_ERROR_INVALID_STATE;
        f->plugin->queue_destroy(f->device, f->queue);
        _exit(refused ? 0 : 1);
    }
    int result = 1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

TEST_WITH(unknown_quirks_are_refused, set_up, tear_down)
{
    fixture *f = *state;
    hal_plugin_device *device = NULL;
    setenv("HAL_METAL_QUIRKS", "slow_half,other", 1);
    assert_int_equal(plugin_open(f->plugin, 0, &device), HAL_ERROR_INVALID_ARGUMENT);
    unsetenv("HAL_METAL_QUIRKS");
    assert_non_null(strstr(message, "in_order"));
}

UNIT_MAIN(NULL, NULL)
