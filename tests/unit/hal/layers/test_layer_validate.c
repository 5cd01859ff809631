/* The validate layer over the mock plugin: each kind of finding is provoked once, and its words
 * name the call, the objects and what to do; what is right has none. */
#include "mock_fixture.h"

#include "layers/validate_state.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static mock_state *mock;
static char last_line[2048];

static void keep_line(void *user, hal_log_level level, const char *message)
{
    (void)user;
    if (level == HAL_LOG_ERROR && strncmp(message, "validate: ", 10) == 0) {
        snprintf(last_line, sizeof last_line, "%s", message);
    }
}

/* What was said since the last look has all of these words, and was one finding. */
static void found(uint64_t before, const char *first, const char *second)
{
    if (hal_validate_get_finding_count() != before + 1) {
        fail_msg("%u findings, the last one: %s",
                 (unsigned)(hal_validate_get_finding_count() - before), last_line);
    }
    if (!strstr(last_line, first) || !strstr(last_line, second)) {
        fail_msg("\"%s\" and \"%s\" are not in \"%s\"", first, second, last_line);
    }
    last_line[0] = 0;
}

#define assert_found(call, first, second)                         \
    do {                                                          \
        const uint64_t before = hal_validate_get_finding_count(); \
        call;                                                     \
        found(before, first, second);                             \
    } while (0)

#define assert_silent(call)                                         \
    do {                                                            \
        const uint64_t before = hal_validate_get_finding_count();   \
        call;                                                       \
        if (hal_validate_get_finding_count() != before) {           \
            fail_msg("a finding where all is well: %s", last_line); \
        }                                                           \
    } while (0)

static hal_buffer *labelled(hal_device *device, const char *label, uint64_t bytes)
{
    hal_buffer *buffer = mock_buffer(device, bytes);
    hal_buffer_set_label(buffer, label);
    return buffer;
}

static hal_buffer *filled(hal_device *device, hal_queue *queue, const char *label, uint64_t bytes)
{
    hal_buffer *buffer = labelled(device, label, bytes);
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 7));
    return buffer;
}

static hal_graph *graph_of_one(hal_queue *queue, hal_kernel *kernel, hal_buffer *in,
                               hal_buffer *out)
{
    hal_graph *graph = NULL;
    hal_buffer *slots[] = {in, out};
    assert_ok(hal_graph_begin(queue));
    assert_ok(mock_dispatch(queue, kernel, in, out));
    assert_ok(hal_graph_end(queue, slots, 2, &graph));
    return graph;
}

TEST(right_programs_have_no_findings)
{
    const uint64_t before = hal_validate_get_finding_count();
    hal_device *device = mock_open("mock"), *other = mock_open("mock:1");
    hal_queue *one = mock_queue(device), *two = mock_queue(device), *far = mock_queue(other);
    hal_kernel *kernel = mock_kernel(device, 1), *same = mock_kernel(device, 1);
    int32_t data[1024] = {0};
    hal_buffer *a = mock_buffer(device, sizeof data), *b = mock_buffer(device, sizeof data);
    hal_buffer *c = mock_buffer(other, sizeof data);
    assert_ok(hal_queue_write(one, a, 0, data, sizeof data));
    for (int i = 0; i < 3; i++) { /* by points, there and back */
        hal_point point;
        assert_ok(mock_dispatch(one, kernel, a, b));
        assert_ok(hal_queue_flush(one, &point));
        assert_ok(hal_queue_wait_point(two, point));
        assert_ok(mock_dispatch(two, kernel, b, a));
        assert_ok(hal_queue_flush(two, &point));
        assert_ok(hal_queue_wait_point(one, point));
    }
    assert_ok(hal_queue_transfer(one, a, 0, far, c, 0, sizeof data));
    assert_ok(hal_queue_read(far, c, 0, sizeof data, data));
    assert_ok(hal_queue_read(two, b, 0, sizeof data, data));
    hal_graph *graph = graph_of_one(one, kernel, a, b);
    hal_buffer_release(a);
    hal_buffer_release(b); /* the graph keeps both */
    assert_ok(hal_graph_launch(one, graph, NULL, 0));
    hal_device_release(device);
    hal_kernel_release(kernel);
    hal_kernel_release(same);
    hal_queue_destroy(two);
    hal_graph_destroy(graph);
    hal_queue_destroy(one);
    hal_buffer_release(c);
    hal_queue_destroy(far);
    hal_device_release(other);
    if (hal_validate_get_finding_count() != before) {
        fail_msg("a finding where all is well: %s", last_line);
    }
    mock_is_clean(mock);
}

static hal_buffer *shared(hal_device *device, hal_queue *queue, uint64_t bytes)
{
    hal_buffer *buffer = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_SHARED, bytes, &buffer));
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 7));
    return buffer;
}

/* What a queue waits for may be reached by then, and the host may read and write memory itself: who
 * comes after that comes after what was waited for. */
TEST(what_the_host_does_at_once)
{
    hal_device *device = mock_open("mock");
    hal_queue *one = mock_queue(device), *two = mock_queue(device), *three = mock_queue(device);
    hal_buffer *a = shared(device, one, 64), *b = shared(device, one, 64);
    uint32_t word = 1;
    void *seen;
    hal_point point;
    assert_ok(hal_queue_flush(one, &point));
    /* Nothing uses the memory any more: so it is known that the point is reached. */
    assert_silent(assert_int_equal(hal_queue_write(one, a, 0, &word, sizeof word), HAL_OK));
    assert_ok(hal_queue_wait_point(two, point));
    assert_silent(assert_int_equal(hal_queue_write(two, a, 0, &word, sizeof word), HAL_OK));
    assert_ok(hal_queue_flush(two, &point));
    assert_ok(hal_queue_wait_point(three, point));
    assert_silent(hal_queue_fill(three, (hal_range){a, 0, HAL_WHOLE}, 0));
    assert_silent(assert_int_equal(hal_queue_read(two, b, 0, sizeof word, &word), HAL_OK));
    assert_silent(assert_int_equal(hal_buffer_map_begin(b, &seen), HAL_OK));
    assert_ok(hal_buffer_map_end(b));
    hal_queue_destroy(three);
    hal_queue_destroy(two);
    hal_queue_destroy(one);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_device_release(device);
    mock_is_clean(mock);
}

TEST(use_after_release)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device), *gone = mock_queue(device);
    hal_kernel *kernel = mock_kernel(device, 2), *late = mock_kernel(device, 3);
    hal_buffer *a = filled(device, queue, "kept", 256), *b = filled(device, queue, "given up", 256);
    hal_graph *graph = graph_of_one(queue, late, a, b);
    hal_point point;
    assert_ok(hal_queue_fill(gone, (hal_range){a, 0, 4}, 0));
    assert_ok(hal_queue_wait(gone, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_flush(gone, &point));
    hal_buffer_release(b);
    hal_kernel_release(late); /* the graph keeps both, and the program has no reference any more */
    hal_queue_destroy(gone);

    assert_found(assert_fails(mock_dispatch(queue, kernel, a, b), HAL_ERROR_INVALID_STATE,
                              "buffer \"given up\": used after its release"),
                 "validate: hal_queue_dispatch: buffer \"given up\"", "used after its release");
    assert_silent(mock_dispatch(queue, kernel, a, b)); /* the same place is told once */
    assert_found(assert_int_equal(mock_dispatch(queue, late, a, a), HAL_ERROR_INVALID_STATE),
                 "hal_queue_dispatch: kernel shift", "used after its release");
    assert_found(assert_int_equal(hal_queue_flush(gone, NULL), HAL_ERROR_INVALID_STATE),
                 "hal_queue_flush: queue ", "used after its release");
    assert_found(assert_int_equal(hal_point_wait(point, 0), HAL_ERROR_INVALID_STATE),
                 "hal_point_wait: queue ", "used after its release");
    hal_graph_destroy(graph);
    assert_found(assert_int_equal(hal_graph_launch(queue, graph, NULL, 0), HAL_ERROR_INVALID_STATE),
                 "hal_graph_launch: graph ", "used after its release");
    assert_found(assert_int_equal(hal_buffer_get_bytes(b), 0),
                 "hal_buffer_get_bytes: buffer \"given up\"", "used after its release");
    hal_buffer_release(a);
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
    assert_found(assert_int_equal(hal_device_trim(device), HAL_ERROR_INVALID_STATE),
                 "hal_device_trim: device mock:0", "used after its release");
    assert_found(assert_int_equal(hal_device_trim((hal_device *)&mock), HAL_ERROR_INVALID_ARGUMENT),
                 "hal_device_trim: expected a device", "unknown address");
    mock_is_clean(mock);
}

TEST(too_many_releases)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_kernel *kernel = mock_kernel(device, 4);
    hal_buffer *a = filled(device, queue, "twice", 256);
    hal_graph *graph = graph_of_one(queue, kernel, a, filled(device, queue, "left", 256));
    assert_ptr_equal(hal_buffer_retain(a), a);
    assert_silent(hal_buffer_release(a));
    assert_silent(hal_buffer_release(a));
    /* The program must not release the graph's own reference. */
    assert_found(hal_buffer_release(a), "hal_buffer_release: buffer \"twice\"",
                 "released more often than created and retained");
    assert_silent(hal_kernel_release(kernel));
    assert_found(hal_kernel_release(kernel), "hal_kernel_release: kernel shift",
                 "released more often");
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    hal_graph_destroy(graph);
    assert_found(hal_graph_destroy(graph), "hal_graph_destroy: graph", "used after its release");
    hal_device_release(device);
    assert_found(hal_device_release(device), "hal_device_release: device mock:0",
                 "released more often");
    hal_queue_destroy(queue);
    assert_found(hal_queue_destroy(queue), "hal_queue_destroy: queue", "used after its release");
}

TEST(what_nobody_wrote)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_kernel *kernel = mock_kernel(device, 5);
    hal_buffer *empty = labelled(device, "empty", 256), *out = labelled(device, "out", 256);
    uint8_t data[256];
    assert_found(assert_int_equal(mock_dispatch(queue, kernel, empty, out), HAL_OK),
                 "kernel shift, binding 0 (\"in\"), buffer \"empty\": command 1",
                 "reads bytes 0 to 256, and none was ever written");
    assert_silent(hal_queue_read(queue, out, 0, sizeof data, data)); /* the kernel wrote it */
    hal_buffer *half = labelled(device, "half", 256);
    hal_queue_fill(queue, (hal_range){half, 0, 128}, 0);
    hal_queue_fill(queue, (hal_range){half, 192, 64}, 0);
    assert_silent(mock_dispatch(queue, kernel, half, out)); /* it may read but the written part */
    const uint32_t grid[3] = {1, 1, 1};
    const int32_t scalar = 0;
    const hal_range between[2] = {{half, 128, 64}, {out, 0, 256}}; /* its neighbours are written */
    assert_found(hal_queue_dispatch(queue, kernel, grid, between, 2, &scalar, sizeof scalar),
                 "binding 0 (\"in\"), buffer \"half\"", "reads bytes 128 to 192, and none");
    hal_buffer_release(half);
    half = labelled(device, "another half", 256);
    hal_queue_fill(queue, (hal_range){half, 0, 128}, 0);
    assert_found(hal_queue_copy(queue, (hal_range){half, 64, 128}, (hal_range){out, 0, 128}),
                 "hal_queue_copy: copy, source, buffer \"another half\"",
                 "byte 128 was never written");
    hal_buffer *hole = labelled(device, "hole", 256);
    hal_queue_fill(queue, (hal_range){hole, 0, 252}, 0);
    assert_found(hal_queue_read(queue, hole, 0, sizeof data, data),
                 "hal_queue_read: ", "byte 252 was never written");
    hal_buffer_release(hole);
    hole = labelled(device, "anew", 256); /* the same memory, and nothing of the old owner's */
    assert_found(hal_queue_read(queue, hole, 0, 4, data), "buffer \"anew\"",
                 "byte 0 was never written");
    hal_buffer *buffers[] = {empty, out, half, hole};
    for (uint32_t i = 0; i < 4; i++) {
        hal_buffer_release(buffers[i]);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

/* Their descriptions leave the quarantine some day. */
static void no_use_of_queues_that_are_gone(void)
{
    for (const hal_object *object = hal_validate_first(); object; object = object->next) {
        const hal_buffer_facts *facts =
            object->kind == HAL_OBJECT_BUFFER ? object->known.buffer : NULL;
        for (uint32_t i = 0; facts && i < facts->access_count; i++) {
            assert_false(facts->accesses[i].queue->retired);
        }
    }
}

TEST(missing_waits)
{
    hal_device *device = mock_open("mock");
    hal_queue *one = mock_queue(device), *two = mock_queue(device), *three = mock_queue(device);
    hal_kernel *kernel = mock_kernel(device, 6);
    hal_buffer *a = filled(device, one, "a", 256), *b = labelled(device, "b", 256);
    hal_point point, of_two;
    assert_found(mock_dispatch(two, kernel, a, b), "binding 0 (\"in\"), buffer \"a\": command 1",
                 "command 1 (fill) of batch 1 of queue");
    hal_queue_wait(two, HAL_WAIT_FOREVER);
    hal_queue_wait(one, HAL_WAIT_FOREVER);
    assert_silent(mock_dispatch(two, kernel, a, b)); /* the host has waited */
    assert_silent(mock_dispatch(one, kernel, a, labelled(device, "c", 256))); /* both only read */
    hal_queue_flush(two, &of_two);
    hal_queue_wait_point(three, of_two);
    hal_queue_fill(three, (hal_range){b, 0, 128}, 3);
    hal_queue_flush(three, &point);
    /* What three waited for, one has waited for with it; half of the buffer was left alone. */
    hal_queue_wait_point(one, point);
    assert_silent(hal_queue_fill(one, (hal_range){b, 0, 256}, 4));
    hal_queue_flush(one, &point);
    assert_found(hal_queue_fill(three, (hal_range){b, 128, 128}, 5), "fill, target, buffer \"b\"",
                 "without order between them; let the queue wait for the other's point");
    /* A batch that failed has touched nothing. */
    hal_buffer *d = labelled(device, "d", 256);
    hal_queue_wait(one, HAL_WAIT_FOREVER);
    hal_queue_wait(three, HAL_WAIT_FOREVER);
    hal_queue_fill(one, (hal_range){a, 0, 256}, 4);
    hal_queue_flush(one, NULL);
    hal_queue_fill(one, (hal_range){d, 0, 256}, 4);
    atomic_store(&mock->fail_in[MOCK_SUBMIT], 1);
    assert_int_equal(hal_queue_flush(one, NULL), HAL_ERROR_INTERNAL);
    assert_silent(hal_queue_fill(two, (hal_range){d, 0, 256}, 4));
    /* And later ones keep their waits. */
    hal_queue_wait(two, HAL_WAIT_FOREVER);
    hal_queue_fill(one, (hal_range){d, 0, 128}, 4);
    hal_queue_flush(one, &point);
    hal_queue_fill(one, (hal_range){d, 128, 128}, 4);
    hal_queue_flush(one, NULL);
    hal_queue_wait_point(two, point);
    assert_silent(hal_queue_fill(two, (hal_range){d, 0, 128}, 4));
    assert_found(hal_queue_fill(two, (hal_range){d, 128, 128}, 4), "fill, target, buffer \"d\"",
                 "without order between them");
    hal_queue_wait(one, HAL_WAIT_FOREVER);
    hal_queue_wait(two, HAL_WAIT_FOREVER);
    /* Nor is there anything to wait for of a queue that is gone. */
    hal_queue_fill(three, (hal_range){a, 0, 256}, 4);
    hal_queue_destroy(three);
    no_use_of_queues_that_are_gone();
    assert_silent(hal_queue_fill(two, (hal_range){a, 0, 256}, 4));
    hal_queue_destroy(one);
    hal_queue_destroy(two);
    hal_kernel_release(kernel);
    hal_buffer_release(d);
    hal_buffer_release(a);
    hal_buffer_release(b);
}

TEST(mapped_buffers)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *up = NULL, *out = labelled(device, "target", 256);
    void *view = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 256, &up));
    hal_buffer_set_label(up, "upload");
    assert_silent(hal_buffer_map_begin(up, &view));
    assert_silent(hal_buffer_map_end(up));
    const hal_range from = {up, 0, 256}, to = {out, 0, 256};
    assert_silent(hal_queue_copy(queue, from, to));
    assert_found(hal_buffer_map_begin(up, &view), "hal_buffer_map_begin: buffer \"upload\"",
                 "mapped while command 1 (copy) of batch 1");
    assert_found(hal_queue_flush(queue, NULL), "hal_queue_flush: buffer \"upload\"",
                 "submitted while it is mapped; call hal_buffer_map_end first");
    hal_buffer_map_end(up);
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    assert_silent(hal_buffer_map_begin(up, &view));
    assert_silent(hal_buffer_map_end(up));
    hal_buffer_release(up);
    hal_buffer_release(out);
    hal_queue_destroy(queue);
}

TEST(products_too_large)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    const hal_gemm_description gemm = {
        .size = sizeof gemm, .type_a = HAL_TYPE_F32, .type_b = HAL_TYPE_F32, .type_c = HAL_TYPE_F32,
        .beta_is_zero = 1, .batch = 2, .m = 4, .n = 3, .k = 5, .lda = 8, .ldb = 3, .ldc = 3,
        .stride_a = 40, .stride_b = 0, .stride_c = 12, .transpose_b = 0};
    hal_kernel *kernel = NULL;
    uint64_t workspace = 0;
    assert_ok(hal_kernel_create_gemm(device, &gemm, &kernel, &workspace));
    /* The last element of A is that of row 3, column 4 of matrix 1; those of C are 24. */
    const uint64_t a_bytes = (40 + 3 * 8 + 5) * 4, b_bytes = 15 * 4, c_bytes = 24 * 4;
    hal_buffer *a = filled(device, queue, "A", 512), *b = filled(device, queue, "B", 512);
    hal_buffer *c = labelled(device, "C", 512), *w = labelled(device, "W", workspace);
    const double scalars[2] = {1, 0};
    const uint32_t grid[3] = {1, 1, 1};
    hal_range ranges[4] = {{a, 0, a_bytes}, {b, 0, b_bytes}, {c, 0, c_bytes}, {w, 0, HAL_WHOLE}};
    assert_silent(assert_int_equal(hal_queue_dispatch(queue, kernel, grid, ranges, 4, scalars, 16),
                                   HAL_OK));
    static const char *const words[] = {"(\"a\"), buffer \"A\"", "(\"b\"), buffer \"B\"",
                                        "(\"c\"), buffer \"C\""};
    for (uint32_t i = 0; i < 3; i++) {
        ranges[i].length -= 4;
        assert_found(assert_int_equal(
                         hal_queue_dispatch(queue, kernel, grid, ranges, 4, scalars, 16),
                         HAL_ERROR_INVALID_ARGUMENT),
                     words[i], "bytes of the description");
        ranges[i].length += 4;
    }
    hal_buffer *all[] = {a, b, c, w};
    for (uint32_t i = 0; i < 4; i++) {
        hal_buffer_release(all[i]);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
}

/* A product of two groups also reads three offsets. */
TEST(products_of_groups_with_few_offsets)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    const hal_gemm_description gemm = {
        .size = sizeof gemm, .type_a = HAL_TYPE_F32, .type_b = HAL_TYPE_F32, .type_c = HAL_TYPE_F32,
        .beta_is_zero = 1, .type_offsets = HAL_TYPE_I64, .batch = 2, .m = 4, .n = 3, .k = 5,
        .lda = 5, .ldb = 3, .ldc = 3, .stride_b = 15};
    hal_kernel *kernel = NULL;
    uint64_t workspace = 0;
    assert_ok(hal_kernel_create_gemm(device, &gemm, &kernel, &workspace));
    hal_buffer *in = filled(device, queue, "in", 512), *at = filled(device, queue, "at", 64);
    hal_buffer *c = labelled(device, "C", 512), *w = labelled(device, "W", workspace);
    const double scalars[2] = {1, 0};
    const uint32_t grid[3] = {1, 1, 1};
    hal_range ranges[5] = {
        {in, 0, 80}, {in, 0, 120}, {c, 0, 48}, {w, 0, HAL_WHOLE}, {at, 0, 24}};
    assert_silent(assert_int_equal(hal_queue_dispatch(queue, kernel, grid, ranges, 5, scalars, 16),
                                   HAL_OK));
    ranges[4].length = 20;
    assert_found(
        assert_int_equal(hal_queue_dispatch(queue, kernel, grid, ranges, 5, scalars, 16),
                         HAL_ERROR_INVALID_ARGUMENT),
        "(\"offsets\"), buffer \"at\"",
        "expected at least the 24 bytes of the description, got 20");
    hal_buffer *all[] = {in, at, c, w};
    for (uint32_t i = 0; i < 4; i++) {
        hal_buffer_release(all[i]);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
}

TEST(attention_has_room)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_attention_description description = mock_attention();
    hal_kernel *kernel = NULL;
    assert_ok(hal_kernel_create_attention(device, &description, &kernel));
    /* Two matrices of queries and of the result, one of keys and of values. */
    const uint64_t bytes[4] = {2 * 5 * 8 * 4, 7 * 8 * 4, 7 * 8 * 4, 2 * 5 * 8 * 4};
    static const char *const names[4] = {"q", "k", "v", "y"};
    const double scale = 1;
    const uint32_t grid[3] = {1, 1, 1};
    hal_buffer *buffers[4];
    hal_range ranges[4];
    for (uint32_t i = 0; i < 4; i++) {
        buffers[i] = i < 3 ? filled(device, queue, names[i], 512) : labelled(device, "y", 512);
        ranges[i] = (hal_range){buffers[i], 0, bytes[i]};
    }
    assert_silent(assert_int_equal(
        hal_queue_dispatch(queue, kernel, grid, ranges, 4, &scale, sizeof scale), HAL_OK));
    for (uint32_t i = 0; i < 4; i++) {
        char words[32];
        snprintf(words, sizeof words, "attention, binding %u (\"%s\")", i, names[i]);
        ranges[i].length -= 4;
        assert_found(assert_int_equal(
                         hal_queue_dispatch(queue, kernel, grid, ranges, 4, &scale, sizeof scale),
                         HAL_ERROR_INVALID_ARGUMENT),
                     words, "bytes of the description");
        ranges[i].length += 4;
    }
    for (uint32_t i = 0; i < 4; i++) {
        hal_buffer_release(buffers[i]);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
}

static void *wait_for_ever(void *queue)
{
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    return NULL;
}

TEST(two_threads)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *a = labelled(device, "a", 256);
    pthread_t thread;
    hal_queue_fill(queue, (hal_range){a, 0, 256}, 1);
    atomic_store(&mock->hold, 1);
    const uint32_t waits = atomic_load(&mock->calls[MOCK_WAIT]);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, queue), 0);
    while (atomic_load(&mock->calls[MOCK_WAIT]) == waits) {
        usleep(100);
    }
    assert_found(assert_fails(hal_queue_fill(queue, (hal_range){a, 0, 256}, 2),
                              HAL_ERROR_INVALID_STATE, "got another one in hal_queue_wait"),
                 "hal_queue_fill: queue", "expected one thread at a time on a queue");
    atomic_store(&mock->hold, 0);
    pthread_join(thread, NULL);
    assert_silent(assert_int_equal(hal_queue_fill(queue, (hal_range){a, 0, 256}, 2), HAL_OK));
    hal_buffer_release(a);
    hal_queue_destroy(queue);
}

/* The quarantine is bounded, and what has left it is still told from what is alive. */
TEST(quarantine_is_bounded)
{
    hal_device *device = mock_open("mock");
    hal_buffer *first = mock_buffer(device, 64);
    hal_buffer_release(first);
    for (uint32_t i = 0; i < 20000; i++) {
        hal_buffer_release(mock_buffer(device, 64));
    }
    uint32_t left = 0;
    for (const hal_object *object = hal_validate_first(); object; object = object->next) {
        left += object->kind == HAL_OBJECT_BUFFER && object->references > 0;
    }
    assert_true(left < 16);
    hal_device_release(device);
}

/* A plugin's report is a finding: the same words once. */
TEST(plugins_report)
{
    assert_non_null(mock->host);
    assert_int_equal(mock->host->flags, HAL_HOST_VALIDATE);
    assert_found(mock->host->report(mock->host, "kernel k: instruction 3 went astray"),
                 "validate: kernel k: instruction 3", "astray");
    assert_silent(mock->host->report(mock->host, "kernel k: instruction 3 went astray"));
}

/* At exit what is left is told, on standard error, though HAL_LOG is not set. */
TEST(leaks_at_exit)
{
    int ends[2];
    char text[4096] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        hal_log_set_callback(NULL, NULL, 0);
        hal_device *device = mock_open("mock");
        labelled(device, "weights", 4096);
        hal_buffer_release(labelled(device, "fine", 64));
        hal_queue *queue = mock_queue(device);
        (void)queue;
        exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    if (!strstr(text,
                "validate: at exit: mock:0: expected all objects to be released, got 3 left: ") ||
        !strstr(text, "buffer \"weights\" of 4096 bytes") || strstr(text, "fine")) {
        fail_msg("%s", text);
    }
}

static int begin(void **state)
{
    setenv("HAL_LAYERS", "validate", 1);
    unsetenv("HAL_LOG");
    hal_log_set_callback(keep_line, NULL, 0);
    const int failed = mock_begin(state);
    mock = mock_find("mock");
    mock_reset(mock);
    mock->infos[0].features |= HAL_FEATURE_GROUPED_PRODUCTS;
    return failed;
}

UNIT_MAIN(begin, NULL)
