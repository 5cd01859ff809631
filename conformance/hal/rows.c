/* rows.c: copies of rows with pitches: every shape copies what it names and nothing next to it. */
#include <hal/queue.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

/* Counts of words. */
typedef struct rows_case {
    const char *name;
    uint32_t row, rows, slices;
    uint32_t source_first, source_pitch, source_slice;
    uint32_t target_first, target_pitch, target_slice;
} rows_case;

static const rows_case shapes[] = {
    {"plane", 3, 5, 1, 0, 7, 0, 0, 5, 0},
    {"one_row", 9, 1, 1, 2, 0, 0, 5, 0, 0},
    {"one_word", 1, 300, 1, 1, 2, 0, 3, 5, 0},
    {"gather", 4, 33, 1, 5, 11, 0, 1, 4, 0},
    {"scatter", 4, 33, 1, 5, 4, 0, 1, 11, 0},
    {"all", 8, 6, 4, 0, 8, 48, 3, 8, 48},
    {"whole_slices", 8, 6, 4, 0, 8, 50, 3, 8, 48},
    {"box", 3, 4, 5, 2, 5, 23, 1, 7, 29},
    {"packed_from_box", 3, 4, 5, 2, 5, 20, 1, 3, 12},
    {"packed_to_box", 3, 4, 5, 1, 3, 12, 2, 5, 21},
    {"tight_slices", 3, 4, 5, 0, 5, 18, 0, 4, 15},
    {"one_row_slices", 6, 1, 7, 0, 6, 10, 0, 9, 13},
    {"odd_tails", 5, 7, 2, 3, 7, 50, 1, 6, 43},
    {"one_row_far_slices", 3, 1, 5, 0, 3, 40, 0, 3, 50},
    {"many_rows", 1, 140000, 1, 0, 1, 0, 0, 2, 0},
    {"many_slices", 1, 2, 70001, 0, 2, 5, 0, 3, 7},
    {"wide_rows", 4500001, 2, 1, 1, 4500003, 0, 2, 4500002, 0},
    {"equal_gaps", 5, 9, 1, 1, 8, 0, 2, 8, 0},
    {"slices_of_equal_gaps", 4, 3, 5, 1, 7, 25, 2, 7, 27},
    {"long_rows", 70001, 3, 2, 1, 70003, 210010, 3, 70002, 210013},
};

static uint64_t words_of(const rows_case *shape, uint32_t first, uint32_t pitch, uint32_t slice)
{
    return (uint64_t)first + (uint64_t)(shape->slices - 1) * slice +
           (uint64_t)(shape->rows - 1) * pitch + shape->row;
}

static hal_row_copy copy_of(const rows_case *shape, hal_buffer *source, hal_buffer *target)
{
    return (hal_row_copy){.source = source,
                          .target = target,
                          .source_offset = 4 * (uint64_t)shape->source_first,
                          .target_offset = 4 * (uint64_t)shape->target_first,
                          .source_pitch = 4 * (uint64_t)shape->source_pitch,
                          .target_pitch = 4 * (uint64_t)shape->target_pitch,
                          .source_slice = 4 * (uint64_t)shape->source_slice,
                          .target_slice = 4 * (uint64_t)shape->target_slice,
                          .row_bytes = 4 * (uint64_t)shape->row,
                          .rows = shape->rows,
                          .slices = shape->slices};
}

/* The target's words were BEFORE; those that are not copied still are. */
enum { BEFORE = 0x0badcafe, AFTER_END = 5 };

static void target_check(case_run *run, const rows_case *shape, const uint32_t *source,
                         hal_buffer *target, uint64_t count)
{
    uint32_t *expected = case_allocate(run, count, 4), *got = case_allocate(run, count, 4);
    for (uint64_t i = 0; i < count; i++) {
        expected[i] = BEFORE;
    }
    for (uint32_t s = 0; s < shape->slices; s++) {
        for (uint32_t r = 0; r < shape->rows; r++) {
            memcpy(expected + shape->target_first + (uint64_t)s * shape->target_slice +
                       (uint64_t)r * shape->target_pitch,
                   source + shape->source_first + (uint64_t)s * shape->source_slice +
                       (uint64_t)r * shape->source_pitch,
                   4 * (size_t)shape->row);
        }
    }
    case_ok(run, hal_queue_read(run->queue, target, 0, 4 * count, got), "hal_queue_read");
    for (uint64_t i = 0; i < count; i++) {
        case_check(run, got[i] == expected[i], "word %llu of the target is 0x%x instead of 0x%x",
                   (unsigned long long)i, got[i], expected[i]);
    }
}

/* Between a write of the source and a read of the target, which they have to be ordered with. */
static void rows_copied(case_run *run, const rows_case *shape, hal_memory_kind from,
                        hal_memory_kind to)
{
    const uint64_t source_count =
        words_of(shape, shape->source_first, shape->source_pitch, shape->source_slice);
    const uint64_t target_count =
        words_of(shape, shape->target_first, shape->target_pitch, shape->target_slice) + AFTER_END;
    uint32_t *words = case_allocate(run, source_count, 4);
    for (uint64_t i = 0; i < source_count; i++) {
        words[i] = (uint32_t)(i * 7 + 3);
    }
    hal_buffer *source = case_buffer(run, run->device, from, 4 * source_count);
    hal_buffer *target = case_buffer(run, run->device, to, 4 * target_count);
    const hal_row_copy copy = copy_of(shape, source, target);
    case_ok(run, hal_queue_write(run->queue, source, 0, words, 4 * source_count),
            "hal_queue_write");
    case_ok(run, hal_queue_fill(run->queue, range_of(target), BEFORE), "hal_queue_fill");
    case_ok(run, hal_queue_copy_rows(run->queue, &copy), "hal_queue_copy_rows");
    target_check(run, shape, words, target, target_count);
}

static void shape_copied(case_run *run, const void *parameters)
{
    rows_copied(run, parameters, HAL_MEMORY_DEVICE, HAL_MEMORY_DEVICE);
}

static void kinds_copied(case_run *run, const void *parameters)
{
    static const hal_memory_kind kinds[] = {HAL_MEMORY_DEVICE, HAL_MEMORY_UPLOAD,
                                            HAL_MEMORY_DOWNLOAD, HAL_MEMORY_SHARED};
    for (int i = 0; i < 16; i++) {
        const size_t before = run->object_count;
        rows_copied(run, &shapes[7], kinds[i / 4], kinds[i % 4]);
        case_release(run, before);
    }
}

/* One half of each row into the other half would overlap as ranges; the halves of a buffer do
 * not. */
static void one_buffer(case_run *run, const void *parameters)
{
    enum { COUNT = 400 };
    hal_buffer *buffer = words_create(run, run->queue, COUNT, 5, 3);
    hal_row_copy copy = {.source = buffer,
                         .target = buffer,
                         .target_offset = 4 * COUNT / 2,
                         .source_pitch = 40,
                         .target_pitch = 40,
                         .row_bytes = 40,
                         .rows = 20,
                         .slices = 1};
    case_ok(run, hal_queue_copy_rows(run->queue, &copy), "hal_queue_copy_rows");
    words_check(run, run->queue, buffer, COUNT / 2, 5, 3, "the source");
    uint32_t half[COUNT / 2];
    case_ok(run, hal_queue_read(run->queue, buffer, 2 * COUNT, sizeof half, half),
            "hal_queue_read");
    for (uint32_t i = 0; i < COUNT / 2; i++) {
        case_check(run, half[i] == i * 3 + 5, "word %u of the target is %u", i, half[i]);
    }
}

static void release_buffer(void *buffer)
{
    hal_buffer_release(buffer);
}

static void release_graph(void *graph)
{
    hal_graph_destroy(graph);
}

/* Numbers beyond 2^28 bytes: two slices of two rows, whose places a short count confuses. */
#define WIDE ((UINT64_C(1) << 28) + 4)

typedef struct wide_case {
    const char *name;
    uint64_t source_pitch, target_pitch, source_slice, target_slice;
} wide_case;

static uint64_t wide_place(uint64_t pitch, uint64_t slice, uint32_t number)
{
    return number / 2 * slice + number % 2 * pitch;
}

static hal_buffer *wide_buffer(case_run *run, uint64_t pitch, uint64_t slice)
{
    hal_buffer *buffer = NULL;
    if (hal_buffer_create(run->device, HAL_MEMORY_DEVICE, pitch + slice + 4, &buffer) != HAL_OK) {
        case_unsupported(run, "no memory for rows that are 256 MiB apart");
    }
    case_own(run, release_buffer, buffer); /* most of it is never touched */
    return buffer;
}

static void wide_copied(case_run *run, const void *parameters)
{
    const wide_case *wide = parameters;
    const uint32_t first = (uint32_t)run->seed;
    hal_buffer *source = wide_buffer(run, wide->source_pitch, wide->source_slice);
    hal_buffer *target = wide_buffer(run, wide->target_pitch, wide->target_slice);
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t at = wide_place(wide->source_pitch, wide->source_slice, i);
        case_ok(run, hal_queue_fill(run->queue, (hal_range){source, at, 4}, first + i),
                "hal_queue_fill");
    }
    const hal_row_copy copy = {.source = source,
                               .target = target,
                               .source_pitch = wide->source_pitch,
                               .target_pitch = wide->target_pitch,
                               .source_slice = wide->source_slice,
                               .target_slice = wide->target_slice,
                               .row_bytes = 4,
                               .rows = 2,
                               .slices = 2};
    case_ok(run, hal_queue_copy_rows(run->queue, &copy), "hal_queue_copy_rows");
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = 0;
        const uint64_t at = wide_place(wide->target_pitch, wide->target_slice, i);
        case_ok(run, hal_queue_read(run->queue, target, at, 4, &word), "hal_queue_read");
        case_check(run, word == first + i, "row %u is %u instead of %u", i, word, first + i);
    }
    case_release(run, 0);
    hal_device_trim(run->device);
}

/* Commands of the same batch before and after see what they have to. */
static void in_batch(case_run *run, const void *parameters)
{
    enum { COUNT = 240, ROW = 8, PITCH = 24 };
    const uint32_t turns = 3;
    hal_buffer *source = words_create(run, run->queue, COUNT, 0, 0);
    hal_buffer *target = words_create(run, run->queue, COUNT, 0, 0);
    hal_buffer *seen = words_create(run, run->queue, COUNT, 0, 0);
    const hal_row_copy copy = {.source = source,
                               .target = target,
                               .source_pitch = 4 * PITCH,
                               .target_pitch = 4 * PITCH,
                               .row_bytes = 4 * ROW,
                               .rows = COUNT / PITCH,
                               .slices = 1};
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t turn = 0; turn < turns; turn++) {
        const hal_range kept = {seen, 4 * (uint64_t)turn * ROW, 4 * ROW};
        case_ok(run, hal_queue_fill(run->queue, range_of(source), 7 + turn), "hal_queue_fill");
        case_ok(run, hal_queue_copy_rows(run->queue, &copy), "hal_queue_copy_rows");
        case_ok(run, hal_queue_copy(run->queue, (hal_range){target, 0, 4 * ROW}, kept),
                "hal_queue_copy");
        case_ok(run, hal_queue_fill(run->queue, range_of(target), 99), "hal_queue_fill");
    }
    for (uint32_t turn = 0; turn < turns; turn++) {
        uint32_t words[ROW];
        case_ok(run, hal_queue_read(run->queue, seen, sizeof words * turn, sizeof words, words),
                "hal_queue_read");
        for (uint32_t i = 0; i < ROW; i++) {
            case_check(run, words[i] == 7 + turn, "turn %u copied %u instead of %u", turn, words[i],
                       7 + turn);
        }
    }
    words_check(run, run->queue, target, COUNT, 99, 0, "the target after the last fill");
}

/* Launched with another target. */
static void in_graph(case_run *run, const void *parameters)
{
    const rows_case *shape = &shapes[7];
    const uint64_t count =
        words_of(shape, shape->target_first, shape->target_pitch, shape->target_slice) + AFTER_END;
    const uint32_t source_count =
        (uint32_t)words_of(shape, shape->source_first, shape->source_pitch, shape->source_slice);
    uint32_t *words = case_allocate(run, source_count, 4);
    for (uint32_t i = 0; i < source_count; i++) {
        words[i] = i * 7 + 3;
    }
    hal_buffer *source = words_create(run, run->queue, source_count, 3, 7);
    hal_buffer *recorded = words_create(run, run->queue, (uint32_t)count, BEFORE, 0);
    hal_buffer *other = words_create(run, run->queue, (uint32_t)count, BEFORE, 0);
    const hal_row_copy copy = copy_of(shape, source, recorded);
    hal_graph *graph = NULL;
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    case_ok(run, hal_queue_copy_rows(run->queue, &copy), "hal_queue_copy_rows");
    case_ok(run, hal_graph_end(run->queue, &recorded, 1, &graph), "hal_graph_end");
    case_own(run, release_graph, graph);
    case_ok(run, hal_graph_launch(run->queue, graph, &other, 1), "hal_graph_launch");
    target_check(run, shape, words, other, count);
    words_check(run, run->queue, recorded, (uint32_t)count, BEFORE, 0, "the recorded target");
}

/* Each wrong argument has a message, and nothing is copied. */
static void refusals(case_run *run, const void *parameters)
{
    enum { COUNT = 256 };
    hal_buffer *source = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *target = words_create(run, run->queue, COUNT, 9, 0);
    const hal_row_copy right = {.source = source,
                                .target = target,
                                .source_pitch = 32,
                                .target_pitch = 32,
                                .source_slice = 128,
                                .target_slice = 128,
                                .row_bytes = 16,
                                .rows = 4,
                                .slices = 2};
    hal_row_copy wrong[12];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        wrong[i] = right;
    }
    wrong[0].source = NULL;
    wrong[1].target = NULL;
    wrong[2].source_offset = 2;
    wrong[3].target_pitch = 33;
    wrong[4].row_bytes = 18;
    wrong[5].source_slice = 130;
    wrong[6].source_pitch = 12;
    wrong[7].target_slice = 108;
    wrong[8].slices = 9;
    wrong[9].source_pitch = UINT64_MAX - 3;
    wrong[10].target = source;
    wrong[11].rows = UINT32_MAX;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "wrong copy %zu", i);
        case_expect(run, hal_queue_copy_rows(run->queue, &wrong[i]), HAL_ERROR_INVALID_ARGUMENT,
                    "hal_queue_copy_rows", what);
    }
    case_expect(run, hal_queue_copy_rows(run->queue, NULL), HAL_ERROR_INVALID_ARGUMENT, "copy",
                "a null copy");
    for (int i = 0; i < 3; i++) {
        hal_row_copy none = right;
        none.rows = i == 0 ? 0 : none.rows;
        none.slices = i == 1 ? 0 : none.slices;
        none.row_bytes = i == 2 ? 0 : none.row_bytes;
        case_ok(run, hal_queue_copy_rows(run->queue, &none), "a copy of nothing");
    }
    words_check(run, run->queue, target, COUNT, 9, 0, "the target");
    words_check(run, run->queue, source, COUNT, 1, 1, "the source");
}

void cases_hal_rows(case_list *list)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        case_add(list, shape_copied, &shapes[i], sizeof shapes[i], "rows/%s", shapes[i].name);
    }
    case_add(list, kinds_copied, NULL, 0, "rows/kinds");
    case_add(list, one_buffer, NULL, 0, "rows/one_buffer");
    static const wide_case wide[] = {{"source_pitch", WIDE, 8, 2 * WIDE, 24},
                                     {"target_pitch", 8, WIDE, 24, 2 * WIDE},
                                     {"source_slice", 8, 12, WIDE, 28},
                                     {"target_slice", 8, 12, 24, WIDE}};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        case_add(list, wide_copied, &wide[i], sizeof wide[i], "rows/wide(%s)", wide[i].name);
    }
    case_add(list, in_batch, NULL, 0, "rows/in_batch");
    case_add(list, in_graph, NULL, 0, "rows/graph");
    case_add(list, refusals, NULL, 0, "rows/refusals");
}
