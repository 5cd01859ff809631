/* HAL_DUMP=batch and hal-replay: work of every kind is recorded on the cpu plugin and on the mock,
 * and run again on both and on a plugin that spoils what one kernel writes. */
#include "assert_json.h"
#include "mock_fixture.h"
#include "scratch.h"

#include <glob.h>
#include <hal/dump.h>
#include <ops/ops.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 3000 };

static char folder[SCRATCH_BYTES];
static char output[1 << 18];
static char file_of[4][256]; /* of the queues on cpu, mock:0 and mock:1 */
static uint32_t files;

/* ---- What is recorded ---- */

/* y[i] = x[i] + more for even i, so that odd elements keep what was there. */
static hal_kernel *every_other(hal_device *device, const char *name, float more)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create(name, &b));
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_mul(b, hal_ir_global_id(b, 0), hal_ir_u32(b, 2));
    hal_ir_if(b, hal_ir_lt(b, i, hal_ir_scalar_value(b, "count", HAL_TYPE_U32)));
    hal_ir_store(b, y, i, hal_ir_add(b, hal_ir_load(b, x, i), hal_ir_f32(b, more)));
    hal_ir_end(b);
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    assert_ok(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static void run_every_other(hal_queue *queue, hal_kernel *kernel, hal_buffer *x, hal_buffer *y)
{
    const uint32_t count = COUNT, grid[3] = {(COUNT / 2 + 63) / 64, 1, 1};
    const hal_range bindings[2] = {{x, 0, HAL_WHOLE}, {y, 0, HAL_WHOLE}};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &count, sizeof count));
}

static void write_numbers(hal_queue *queue, hal_buffer *buffer, float first)
{
    float numbers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = first + (float)i * 0.37f;
    }
    assert_ok(hal_queue_write(queue, buffer, 0, numbers, sizeof numbers));
}

/* Copies, fills, memory that the host maps and changes between batches, buffers that come back from
 * the pool and from the device, a graph, odd bytes. */
static void record_commands(hal_device *device, hal_queue *queue)
{
    hal_kernel *plain = every_other(device, "plain", 1),
               *spoiled = every_other(device, "spoiled", 2);
    hal_buffer *x = mock_buffer(device, COUNT * 4), *y = mock_buffer(device, COUNT * 4);
    hal_buffer *mapped = NULL, *released = mock_buffer(device, 1 << 20);
    assert_ok(hal_buffer_create(device, HAL_MEMORY_SHARED, COUNT * 4, &mapped));
    assert_ok(hal_queue_fill(queue, (hal_range){released, 0, HAL_WHOLE}, 0x3f800000));
    write_numbers(queue, x, 1.0f);
    run_every_other(queue, plain, x, y);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    for (int round = 0; round < 3; round++) {
        float *view = NULL;
        assert_ok(hal_buffer_map_begin(mapped, (void **)&view));
        for (int i = 0; i < COUNT; i++) {
            view[i] = round == 2 ? 0.0f : (float)(i * (round + 1)); /* zeros are news, too */
        }
        assert_ok(hal_buffer_map_end(mapped));
        run_every_other(queue, spoiled, mapped, y);
        run_every_other(queue, plain, y, x);
        assert_ok(hal_queue_copy(queue, (hal_range){x, 64, 256}, (hal_range){mapped, 0, 256}));
        assert_ok(hal_queue_transfer(queue, x, 3, queue, y, 5, 77));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    }
    run_every_other(queue, plain, y, x); /* a batch that reads what the spoiled kernel wrote */
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_graph *graph = NULL;
    assert_ok(hal_graph_begin(queue));
    run_every_other(queue, plain, x, y);
    run_every_other(queue, plain, y, mapped);
    assert_ok(hal_graph_end(queue, &x, 1, &graph));
    for (int i = 0; i < 2; i++) {
        assert_ok(hal_graph_launch(queue, graph, i ? &released : NULL, i ? 1 : 0));
    }
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_graph_destroy(graph);
    hal_buffer_release(released);
    assert_ok(hal_device_trim(
        device)); /* its memory is freed, and perhaps comes back under its address */
    released = mock_buffer(device, 1 << 20);
    run_every_other(queue, plain, x, released);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    for (int i = 0; i < 8; i++) { /* kernels come and go, perhaps under the same address */
        hal_kernel *brief = every_other(device, "brief", 3.0f + (float)i);
        run_every_other(queue, brief, x, y);
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        hal_kernel_release(brief);
    }
    hal_buffer *const all[] = {x, y, mapped, released};
    for (int i = 0; i < 4; i++) {
        hal_buffer_release(all[i]);
    }
    hal_kernel_release(plain);
    hal_kernel_release(spoiled);
}

static ops_tensor random_tensor(ops_context *context, hal_type type, int64_t rows, int64_t columns)
{
    ops_tensor made;
    const int64_t shape[2] = {rows, columns};
    const uint32_t size = hal_type_size(type);
    uint8_t *bytes = malloc((size_t)(rows * columns) * size);
    for (int64_t i = 0; i < rows * columns; i++) {
        const float value = (float)((i * 7919) % 41 - 20) * 0.25f;
        const double wide = (double)value;
        uint32_t bits;
        memcpy(&bits, &value, 4);
        const uint16_t half = (uint16_t)(bits >> 16);
        memcpy(bytes + i * size,
               size == 8   ? (const void *)&wide
               : size == 4 ? (const void *)&value
                           : &half,
               size);
    }
    assert_ok(ops_tensor_from_host(context, type, 2, shape, bytes, &made));
    free(bytes);
    return made;
}

/* max(value + column + input, 0) */
static ops_expression *make_epilogue(void)
{
    hal_ir_builder *b = NULL;
    ops_expression *made = NULL;
    hal_ir_value in[5];
    assert_ok(hal_ir_builder_create_fragment("bias", &b));
    for (uint32_t i = 0; i < 5; i++) {
        in[i] = hal_ir_input(b, i, i == 0 || i == 4 ? HAL_TYPE_F32 : HAL_TYPE_U32);
    }
    const hal_ir_value column = hal_ir_cast(b, HAL_TYPE_F32, in[2]);
    const hal_ir_value sum = hal_ir_add(b, hal_ir_add(b, in[0], column), in[4]);
    hal_ir_output(b, 0, hal_ir_max(b, sum, hal_ir_f32(b, 0.0f)));
    assert_ok(ops_expression_create(b, &made));
    return made;
}

/* The plugin's own product of groups of rows, whose offsets are in memory. */
static void record_groups(ops_context *context, ops_expression *epilogue, hal_type type)
{
    enum { GROUPS = 4 };
    const int32_t at[GROUPS + 1] = {1, 20, 20, 33, 36};
    const int64_t shape_b[3] = {GROUPS, 18, 21}, count[1] = {GROUPS + 1};
    ops_tensor a = random_tensor(context, type, 37, 18), c = random_tensor(context, type, 37, 21);
    ops_tensor bias = random_tensor(context, HAL_TYPE_F32, 37, 21), b, offsets;
    const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                      .alpha = 2,
                                      .beta = -3,
                                      .impl = OPS_GEMM_NATIVE,
                                      .epilogue = epilogue,
                                      .inputs = &bias,
                                      .input_count = epilogue ? 1 : 0};
    assert_ok(ops_tensor_create(context, type, 3, shape_b, &b));
    assert_ok(ops_random_uniform(context, (ops_random_key){3, 0}, -1, 1, &b));
    assert_ok(ops_tensor_from_host(context, HAL_TYPE_I32, 1, count, at, &offsets));
    assert_ok(ops_gemm_grouped(context, &options, &a, &b, &offsets, NULL, &c));
    ops_tensor *const all[] = {&a, &b, &c, &bias, &offsets};
    for (int i = 0; i < 5; i++) {
        ops_tensor_release(all[i]);
    }
}

/* The plugin's own products with beta, an epilogue and other types; reductions with the plugin's
 * subgroups; a gather, which moves floats as whole numbers. */
static void record_operations(hal_queue *queue)
{
    static const hal_type types[3] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_BF16};
    ops_context *context = NULL;
    assert_ok(ops_context_create(queue, &context));
    for (int t = 0; t < 3; t++) {
        ops_tensor a = random_tensor(context, types[t], 37, 18);
        ops_tensor b = random_tensor(context, types[t], 18, 21);
        ops_tensor c = random_tensor(context, types[t], 37, 21);
        ops_tensor bias = random_tensor(context, HAL_TYPE_F32, 37, 21);
        ops_expression *epilogue = types[t] == HAL_TYPE_F64 ? NULL : make_epilogue();
        ops_gemm_options options = {
            .size = sizeof(ops_gemm_options), .alpha = 2, .beta = -3, .impl = OPS_GEMM_NATIVE};
        assert_ok(ops_gemm(context, &options, &a, &b, &c));
        options = (ops_gemm_options){.size = sizeof(ops_gemm_options),
                                     .alpha = 1,
                                     .impl = OPS_GEMM_NATIVE,
                                     .epilogue = epilogue,
                                     .inputs = &bias,
                                     .input_count = epilogue ? 1 : 0};
        assert_ok(ops_gemm(context, &options, &a, &b, &c));
        record_groups(context, epilogue, types[t]);
        const int64_t row[2] = {1, 21};
        ops_tensor sums, turned = b;
        assert_ok(ops_tensor_create(context, types[t], 2, row, &sums));
        assert_ok(ops_reduce(context, OPS_REDUCE_SUM, 0, &c, NULL, &sums));
        assert_ok(ops_softmax(context, 1, &c, &c));
        turned.shape[0] = 21; /* b's columns as rows */
        turned.shape[1] = 18;
        turned.stride[0] = 1;
        turned.stride[1] = 21;
        ops_tensor copy;
        assert_ok(ops_tensor_create(context, types[t], 2, turned.shape, &copy));
        assert_ok(ops_copy(context, &turned, &copy));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        ops_expression_destroy(epilogue);
        ops_tensor *const all[] = {&a, &b, &c, &bias, &sums, &copy};
        for (int i = 0; i < 6; i++) {
            ops_tensor_release(all[i]);
        }
    }
    ops_context_destroy(context);
}

/* The file that came since the last call. */
static void find_file(void)
{
    char pattern[300];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.batch", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, files + 1);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int known = 0;
        for (uint32_t k = 0; k < files; k++) {
            known |= strcmp(file_of[k], found.gl_pathv[i]) == 0;
        }
        if (!known) {
            snprintf(file_of[files], sizeof file_of[files], "%s", found.gl_pathv[i]);
        }
    }
    files++;
    globfree(&found);
}

TEST(a_word_that_is_not_known_is_an_error)
{
    hal_device *device = NULL;
    setenv("HAL_DUMP", "batches,native", 1);
    assert_fails(hal_device_open("cpu", &device), HAL_ERROR_INVALID_ARGUMENT,
                 "HAL_DUMP: expected a list of ir, native, batch, calls and "
                 "unfused, got \"batches\"");
    assert_null(device);
}

TEST(a_folder_that_is_not_there_is_an_error)
{
    hal_device *device = NULL;
    setenv("HAL_DUMP", "batch", 1);
    setenv("HAL_DUMP_DIR", "/nowhere/at_all", 1);
    assert_fails(hal_device_open("cpu", &device), HAL_ERROR_IO, "/nowhere/at_all/halyard-");
    assert_null(device);
    setenv("HAL_DUMP_DIR", folder, 1);
}

TEST(work_is_recorded)
{
    mock_state *mock = mock_find("mock");
    hal_device *cpu = mock_open("cpu"), *device = mock_open("mock:0"), *other = mock_open("mock:1");
    hal_queue *on_cpu = mock_queue(cpu), *queue = mock_queue(device), *second = mock_queue(other);
    record_commands(cpu, on_cpu);
    record_operations(on_cpu);
    find_file();
    record_commands(device, queue);
    find_file();

    /* A batch that hal holds until the cpu is done; a copy into another device's memory. */
    hal_kernel *kernel = mock_kernel(other, 5);
    hal_buffer *a = mock_buffer(other, 4096), *b = mock_buffer(other, 4096);
    hal_buffer *far = mock_buffer(device, 4096), *on_host = mock_buffer(cpu, 4096);
    hal_point point;
    assert_ok(hal_queue_fill(on_cpu, (hal_range){on_host, 0, HAL_WHOLE}, 7));
    assert_ok(hal_queue_flush(on_cpu, &point));
    assert_ok(hal_queue_wait_point(second, point));
    assert_ok(hal_queue_fill(second, (hal_range){a, 0, HAL_WHOLE}, 3));
    assert_ok(mock_dispatch(second, kernel, a, b));
    assert_ok(hal_queue_wait(second, HAL_WAIT_FOREVER));
    find_file();
    mock->reach = 1;
    assert_ok(hal_queue_transfer(second, b, 4, queue, far, 8, 1000));
    int32_t number = 0;
    assert_ok(hal_queue_read(queue, far, 8, sizeof number, &number));
    assert_int_equal(number, 3 + 5);

    /* The plugin does not take this one: it is in the file all the same. */
    mock->fail_in[MOCK_SUBMIT] = 2; /* the first is the layer's own look at the memory */
    assert_ok(mock_dispatch(second, kernel, a, b));
    assert_int_equal(hal_queue_flush(second, NULL), HAL_ERROR_INTERNAL);
    hal_buffer *const buffers[] = {a, b, far, on_host};
    for (int i = 0; i < 4; i++) {
        hal_buffer_release(buffers[i]);
    }
    hal_kernel_release(kernel);
    hal_queue *const queues[] = {on_cpu, queue, second};
    hal_device *const devices[] = {cpu, device, other};
    for (int i = 0; i < 3; i++) {
        hal_queue_destroy(queues[i]);
        hal_device_release(devices[i]);
    }
    mock_is_clean(mock);
}

/* ---- Replaying ---- */

/* Runs the program; its exit status. What it prints is in `output`. */
static int replay(const char *file, const char *arguments)
{
    char command[1024];
    snprintf(command, sizeof command,
             "HAL_DUMP= HAL_PLUGIN_PATH='" TEST_PLUGINS "/mock:" TEST_PLUGINS
             "/spoiled:" TEMPLATE_FOLDER "' " EMULATOR " '" HAL_REPLAY "' '%s' %s 2>&1",
             file, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    const int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 2) {
        fail_msg("hal-replay ended badly: %s", output);
    }
    return WEXITSTATUS(status);
}

static void expect(int wanted, int is_there, const char *words)
{
    if (wanted != is_there || !strstr(output, words)) {
        fail_msg("ended with %d, not %d, or \"%s\" is not in:\n%s", is_there, wanted, words,
                 output);
    }
}

TEST(the_same_device_gives_the_same_bits)
{
    expect(0, replay(file_of[0], "--device cpu --ulps 0"), "within the bound: 0, different: 0");
    expect(0, replay(file_of[1], "--device mock --ulps 0"), "within the bound: 0, different: 0");
    expect(0, replay(file_of[0], "--device cpu --ulps 0 --free-running"), "different: 0");
}

/* This one has no own product. */
TEST(another_device_stays_within_the_bound)
{
    expect(0, replay(file_of[0], "--device template"), "different: 0; batches not run: 0");
    expect(0, replay(file_of[1], "--device cpu --ulps 0"), "different: 0; batches not run: 0");
}

TEST(held_and_failed_batches_are_there)
{
    expect(0, replay(file_of[2], "--device cpu --ulps 0"), "failed on the recorded device");
    expect(0, replay(file_of[2], "--list"), "ended: HAL_ERROR_INTERNAL");
    expect(0, replay(file_of[0], "--list"), "is freed");
    expect(0, replay(file_of[0], "--list"), "gemm, the plugin's matrix product");
    assert_non_null(strstr(output, ", the plugin's product of groups of rows"));
}

TEST(a_spoiled_kernel_is_named)
{
    expect(1, replay(file_of[0], "--device spoiled"), "command 0, spoiled: y (memory ");
    assert_non_null(strstr(output, "1 of 1 f32 differ"));
    assert_non_null(strstr(output, "element 0 is 3 here, 2 was recorded"));
    assert_null(strstr(output, "batch 5,")); /* it does not spread to what reads it */
    expect(1, replay(file_of[0], "--device spoiled --free-running"), "spoiled: y");
    assert_non_null(strstr(output, "batch 5,"));
    /* With a bound so wide, nothing is wrong. */
    expect(0, replay(file_of[0], "--device spoiled --tolerance 1"), "different: 0");
}

TEST(json_names_it_too)
{
    char path[300], arguments[400];
    snprintf(path, sizeof path, "%s/report.json", folder);
    snprintf(arguments, sizeof arguments, "--device spoiled --json '%s'", path);
    assert_int_equal(replay(file_of[0], arguments), 1);
    FILE *json = fopen(path, "r");
    assert_non_null(json);
    output[fread(output, 1, sizeof output - 1, json)] = 0;
    fclose(json);
    unlink(path);
    expect(1, 1, "\"kernel\": \"spoiled\", \"binding\": \"y\"");
    expect(1, 1, "\"here\": 3, \"recorded\": 2");
    assert_json(output);
}

/* Every length of the front of a file, many of the rest; and bytes that are no file. */
TEST(cut_and_foreign_files_are_refused)
{
    static char bytes[1 << 16];
    char path[300];
    snprintf(path, sizeof path, "%s/cut", folder);
    FILE *whole = fopen(file_of[2], "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, whole);
    fclose(whole);
    for (size_t length = 0; length < size; length += length < 40 ? 8 : 997) {
        FILE *cut = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, length, cut), length);
        fclose(cut);
        const int status = replay(path, "--device mock");
        expect(status, status,
               length < 16   ? "which begins with HALBATCH"
               : status == 2 ? "hal-replay: "
                             : "batches: ");
    }
    bytes[8] = 9;
    FILE *newer = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, newer), size);
    fclose(newer);
    expect(2, replay(path, "--device mock"), "expected version 3, got 9");
    unlink(path);
    expect(2, replay(path, ""), "expected a readable file");
    expect(2, replay(folder, ""), "expected a regular file");
}

static void *run_thread(void *argument)
{
    hal_device *device = argument;
    hal_queue *queue = NULL;
    hal_buffer *x = NULL, *y = NULL;
    assert_ok(hal_queue_create(device, &queue));
    hal_kernel *kernel = every_other(device, "shared", 0.5f);
    for (int i = 0; i < 8; i++) {
        assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, COUNT * 4, &x));
        assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, COUNT * 4, &y));
        write_numbers(queue, x, (float)i);
        run_every_other(queue, kernel, x, y);
        assert_ok(hal_queue_flush(queue, NULL));
        hal_buffer_release(x);
        hal_buffer_release(y);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    return NULL;
}

/* Each has its own file, and the pool reuses memory between them. */
TEST(queues_of_several_threads_are_recorded)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    hal_device *device = mock_open("cpu");
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, device), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    hal_device_release(device);
    char pattern[300];
    glob_t found;
    uint32_t more = 0;
    snprintf(pattern, sizeof pattern, "%s/*.batch", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (strcmp(path, file_of[0]) && strcmp(path, file_of[1]) && strcmp(path, file_of[2])) {
            expect(0, replay(path, "--device cpu --ulps 0"), "different: 0; batches not run: 0");
            unlink(path);
            more++;
        }
    }
    globfree(&found);
    assert_int_equal(more, THREADS);
}

TEST(wrong_usage_is_told)
{
    static const char *const wrong[] = {"--ulps",    "--ulps x", "--tolerance -1",
                                        "--wrong 1", "second",   "--tolerance 1x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect(2, replay(file_of[0], wrong[i]), "Exit status: 0");
    }
    expect(2, replay(file_of[0], "--device nobody"),
           "expected the name of a plugin, got \"nobody\"");
}

static int begin(void **state)
{
    const int failed = mock_begin(state);
    mock_reset(mock_find("mock"));
    return failed || !scratch_folder(folder, "dump");
}

static int end(void **state)
{
    for (uint32_t i = 0; i < files; i++) {
        unlink(file_of[i]);
    }
    return rmdir(folder);
}

UNIT_MAIN(begin, end)
