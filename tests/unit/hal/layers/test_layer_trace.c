/* The trace layer: its file is JSON at every flush, and has what was recorded, submitted, run,
 * allocated and compiled. */
#include "assert_json.h"
#include "mock_fixture.h"
#include "scratch.h"

#include <pthread.h>

static mock_state *mock;
static char path[SCRATCH_BYTES];
static char text[1 << 18];

TEST(files_that_cannot_be_written_are_errors)
{
    hal_device *device;
    setenv("HAL_TRACE", "/nowhere/trace.json", 1);
    assert_fails(hal_device_open("mock", &device), HAL_ERROR_IO, "/nowhere/trace.json");
}

static void *use_from_another_thread(void *queue)
{
    return (void *)(intptr_t)hal_queue_wait(queue, HAL_WAIT_FOREVER);
}

static int end(void **state)
{
    return remove(path);
}

static void read_file(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_json(text);
}

/* Events that have all of the words, each event being a line. */
static int count(const char *one, const char *other)
{
    int found = 0;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        *end = 0;
        found += strstr(line, one) && strstr(line, other);
        *end = '\n';
        line = end + 1;
    }
    return found;
}

TEST(what_is_done_is_written)
{
    setenv("HAL_TRACE", path, 1);
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *a = mock_buffer(device, 4096), *b = mock_buffer(device, 4096);
    hal_kernel *kernel = mock_kernel(device, 1);
    hal_graph *graph;
    for (int i = 0; i < 300; i++) { /* more than are kept waiting */
        assert_ok(mock_dispatch(queue, kernel, a, b));
    }
    assert_ok(hal_queue_fill(queue, (hal_range){a, 0, HAL_WHOLE}, 7));
    assert_ok(hal_queue_copy(queue, (hal_range){a, 0, HAL_WHOLE}, (hal_range){b, 0, HAL_WHOLE}));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_graph_begin(queue));
    for (int i = 0; i < 3; i++) {
        assert_ok(mock_dispatch(queue, kernel, a, b));
    }
    assert_ok(hal_graph_end(queue, NULL, 0, &graph));
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    atomic_store(&mock->fail_in[MOCK_SUBMIT], 1);
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_INTERNAL);
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    pthread_t thread;
    void *answer;
    assert_int_equal(pthread_create(&thread, NULL, use_from_another_thread, queue), 0);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ok((intptr_t)answer);
    hal_graph_destroy(graph);
    hal_kernel_release(kernel);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);

    read_file();
    assert_int_equal(count("\"open\"", "\"device\""), 1);
    assert_int_equal(count("\"close\"", "\"device\""), 1);
    assert_int_equal(count("\"shift\"", "\"cat\":\"compile\""), 1);
    assert_int_equal(count("\"allocate\"", "\"bytes\":4096"), 2);
    assert_int_equal(count("\"free\"", "\"bytes\":4096"), 2);
    assert_int_equal(count("\"name\":\"shift\"", "\"cat\":\"record\""), 300);
    assert_int_equal(count("\"name\":\"shift\"", "\"cat\":\"device\""), 300);
    assert_int_equal(count("\"name\":\"fill\"", "\"cat\":\"device\""), 1);
    assert_int_equal(count("\"name\":\"copy\"", "\"cat\":\"device\""), 1);
    assert_int_equal(count("\"shift and 2 more\"", "\"cat\":\"device\""), 1);
    assert_int_equal(count("\"flush\"", "\"cat\":\"flush\""), 304); /* one for the failed one */
    assert_int_equal(count("\"flush\"", "\"cat\":\"flush failed\""), 1);
    assert_int_equal(count("\"name\":\"memory\"", "\"in use\":8192,\"pooled\":0"), 306);
    assert_int_equal(count("\"thread_name\"", "thread 2"), 1);
    assert_int_equal(count("\"thread_name\"", "queue 1"), 1);
    assert_int_equal(count("\"process_name\"", "mock:0 Mock device 0"), 1);
}

static int begin(void **state)
{
    const int failed = mock_begin(state);
    mock = mock_find("mock");
    mock_reset(mock);
    return failed || scratch_file(path, "trace") < 0;
}

/* A slice per rank and step of a collective, on the line of the rank's queue. */
TEST(collectives_are_written)
{
    enum { RANKS = 2 };
    static const hal_collective what = {.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32};
    hal_device *device = mock_open("mock");
    hal_device *devices[RANKS] = {device, device};
    hal_queue *queues[RANKS];
    hal_buffer *buffers[RANKS];
    hal_comm *groups[RANKS];
    assert_ok(hal_comm_create_local(devices, RANKS, 0, groups));
    for (int i = 0; i < RANKS; i++) {
        queues[i] = mock_queue(device);
        buffers[i] = mock_buffer(device, 64);
        const hal_range whole = {buffers[i], 0, HAL_WHOLE};
        assert_ok(hal_queue_collective(queues[i], groups[i], &what, whole, whole, 16));
    }
    for (int i = 0; i < RANKS; i++) {
        assert_ok(hal_queue_wait(queues[i], HAL_WAIT_FOREVER));
        hal_comm_destroy(groups[i]);
        hal_buffer_release(buffers[i]);
        hal_queue_destroy(queues[i]);
    }
    hal_device_release(device);
    read_file();
    assert_int_equal(count("\"collective\"", "\"broadcast\""), RANKS);
    assert_int_equal(count("\"collective\"", "\"backend\":\"host\""), RANKS);
}

UNIT_MAIN(begin, end)
