/* graph.c: kept batches, launched again with other memory in their slots. */
#include <hal/graph.h>

#include "case/cases.h"
#include "hal/fixture.h"

#define COUNT 300u

static void release_graph(void *graph)
{
    hal_graph_destroy(graph);
}

/* Ends the recording of a graph, which the case owns. */
static hal_graph *graph_end(case_run *run, hal_buffer *const *slots, uint32_t count)
{
    hal_graph *graph = NULL;
    case_ok(run, hal_graph_end(run->queue, slots, count, &graph), "hal_graph_end");
    case_own(run, release_graph, graph);
    return graph;
}

/* x -> y -> x, kept once and launched 40 times. */
static void launch_often(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    uint32_t start = 1, step = 1;
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, 1);
    scale_dispatch(run, run->queue, kernel, y, x, COUNT, 5, 2);
    hal_graph *graph = graph_end(run, NULL, 0);
    case_check(run, hal_graph_get_command_count(graph) == 2, "%u commands instead of 2",
               hal_graph_get_command_count(graph));
    words_check(run, run->queue, x, COUNT, 1, 1, "x before a launch");
    for (int i = 0; i < 40; i++) {
        case_ok(run, hal_graph_launch(run->queue, graph, NULL, 0), "hal_graph_launch");
        start = (start * 3 + 1) * 5 + 2;
        step *= 15;
    }
    words_check(run, run->queue, x, COUNT, start, step, "x after 40 launches");
}

static void slots(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 9, 0);
    hal_buffer *x2 = words_create(run, run->queue, COUNT + 50, 100, 2);
    hal_buffer *y2 = words_create(run, run->queue, COUNT, 9, 0);
    hal_buffer *const replaced[2] = {x, y}, *const both[2] = {x2, y2}, *const one[2] = {NULL, y2};
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 2, 0);
    hal_graph *graph = graph_end(run, replaced, 2);
    case_ok(run, hal_graph_launch(run->queue, graph, both, 2), "both slots replaced");
    words_check(run, run->queue, y2, COUNT, 200, 4, "the replaced target");
    words_check(run, run->queue, y, COUNT, 9, 0, "the recorded target");
    case_ok(run, hal_graph_launch(run->queue, graph, one, 2), "one slot replaced");
    words_check(run, run->queue, y2, COUNT, 2, 2, "the replaced target");
    case_ok(run, hal_graph_launch(run->queue, graph, NULL, 0), "no slot replaced");
    words_check(run, run->queue, y, COUNT, 2, 2, "the recorded target");
}

static void states(case_run *run, const void *parameters)
{
    const hal_status state = HAL_ERROR_INVALID_STATE;
    hal_graph *graph = NULL;
    hal_point point;
    uint32_t word = 0;
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    case_expect(run, hal_graph_end(run->queue, NULL, 0, &graph), state, NULL,
                "an end without a begin");
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    case_expect(run, hal_graph_begin(run->queue), state, NULL, "a second begin");
    case_expect(run, hal_queue_write(run->queue, x, 0, &word, 4), state, NULL,
                "a write while recording");
    case_expect(run, hal_queue_read(run->queue, x, 0, 4, &word), state, NULL,
                "a read while recording");
    case_expect(run, hal_queue_flush(run->queue, &point), state, NULL, "a flush while recording");
    case_expect(run, hal_queue_wait(run->queue, 0), state, NULL, "a wait while recording");
    graph_end(run, NULL, 0);
    words_check(run, run->queue, x, COUNT, 1, 1, "the buffer");
}

static void refusals(case_run *run, const void *parameters)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    hal_graph *graph = NULL;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 7, 0);
    hal_buffer *small = words_create(run, run->queue, COUNT - 1, 7, 0);
    hal_buffer *const unused[1] = {small}, *const used[1] = {y}, *const overlapping[1] = {x};
    case_expect(run, hal_graph_begin(NULL), wrong, NULL, "a null queue");
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 1, 0);
    case_expect(run, hal_graph_end(run->queue, unused, 1, &graph), wrong, NULL,
                "a slot that no command uses");
    case_ok(run, hal_graph_begin(run->queue), "a begin after the recording was dropped");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 1, 0);
    graph = graph_end(run, used, 1);
    case_expect(run, hal_graph_launch(run->queue, graph, unused, 1), wrong, NULL,
                "a buffer smaller than the slot's");
    case_expect(run, hal_graph_launch(run->queue, graph, used, 7), wrong, NULL,
                "more buffers than slots");
    case_expect(run, hal_graph_launch(run->queue, graph, overlapping, 1), wrong, NULL,
                "a buffer that the command reads too");
    case_expect(run, hal_graph_launch(run->queue, NULL, NULL, 0), wrong, NULL, "a null graph");
    case_expect(run, hal_graph_launch(NULL, graph, NULL, 0), wrong, NULL, "a null queue");
    words_check(run, run->queue, y, COUNT, 7, 0, "the target after refused launches");
    case_check(run, hal_graph_get_command_count(NULL) == 0, "a null graph has commands");
    hal_graph_destroy(NULL);
}

/* Buffers and kernel are released before the launch; new ones must not reuse their memory. */
static void keeps_alive(case_run *run, const void *parameters)
{
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    const size_t objects = run->object_count;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 4, 3);
    hal_buffer *middle = words_create(run, run->queue, COUNT, 0, 0);
    hal_graph *graph = NULL;
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, middle, COUNT, 2, 1);
    scale_dispatch(run, run->queue, kernel, middle, y, COUNT, 3, 1);
    case_ok(run, hal_graph_end(run->queue, NULL, 0, &graph), "hal_graph_end");
    case_release(run, objects);
    case_own(run, release_graph, graph);
    for (int i = 0; i < 8; i++) {
        hal_buffer *other = words_create(run, run->queue, COUNT, 0xdead, 0);
        case_ok(run, hal_graph_launch(run->queue, graph, NULL, 0), "hal_graph_launch");
        words_check(run, run->queue, y, COUNT, 28, 18, "the result");
        words_check(run, run->queue, other, COUNT, 0xdead, 0, "another buffer");
        case_release(run, objects + 1);
    }
}

static void other_queue(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 4, 3);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    hal_queue *other = case_queue(run, run->device);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 2, 1);
    hal_graph *graph = graph_end(run, NULL, 0);
    case_ok(run, hal_graph_launch(other, graph, NULL, 0), "a launch on another queue");
    words_check(run, other, y, COUNT, 9, 6, "the result");
}

static void empty_graph(case_run *run, const void *parameters)
{
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    hal_graph *graph = graph_end(run, NULL, 0);
    case_check(run, hal_graph_get_command_count(graph) == 0, "commands in an empty graph");
    case_ok(run, hal_graph_launch(run->queue, graph, NULL, 0), "a launch of nothing");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static void copies_and_fills(case_run *run, const void *parameters)
{
    uint32_t words[COUNT];
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    const hal_range head = {x, 0, 4 * 100}, into = {y, 4 * 200, 4 * 100};
    const hal_range part = {y, 4 * 100, 4 * 100};
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 10, 0);
    case_ok(run, hal_queue_copy(run->queue, head, into), "copy");
    case_ok(run, hal_queue_fill(run->queue, part, 5), "fill");
    hal_graph *graph = graph_end(run, NULL, 0);
    case_check(run, hal_graph_get_command_count(graph) == 3, "%u commands instead of 3",
               hal_graph_get_command_count(graph));
    case_ok(run, hal_graph_launch(run->queue, graph, NULL, 0), "hal_graph_launch");
    case_ok(run, hal_queue_read(run->queue, y, 0, sizeof words, words), "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t expected = i < 100 ? (i + 1) * 10 : i < 200 ? 5 : i - 200 + 1;
        case_check(run, words[i] == expected, "word %u is %u instead of %u", i, words[i], expected);
    }
}

void cases_hal_graph(case_list *list)
{
    case_add(list, launch_often, NULL, 0, "graph/launch_often");
    case_add(list, slots, NULL, 0, "graph/slots");
    case_add(list, states, NULL, 0, "graph/states");
    case_add(list, refusals, NULL, 0, "graph/refusals");
    case_add(list, keeps_alive, NULL, 0, "graph/keeps_alive");
    case_add(list, other_queue, NULL, 0, "graph/other_queue");
    case_add(list, empty_graph, NULL, 0, "graph/empty");
    case_add(list, copies_and_fills, NULL, 0, "graph/copies_and_fills");
}
