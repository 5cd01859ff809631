/* indirect.c: dispatches whose grid is in memory: the groups that run, what GROUP_COUNT says, and
 * the order with what writes the grid. */
#include <hal/queue.h>
#include <stdio.h>

#include "case/cases.h"
#include "hal/fixture.h"

typedef struct grid_case {
    uint32_t grid[3];
    uint32_t offset; /* bytes of the grid in its buffer */
} grid_case;

enum { ITEMS = 4, MOST_WORDS = 1 << 16, UNTOUCHED = 0x77777777, FACTOR = 1000 };

static void claim_indirect(case_run *run)
{
    case_claim(run, (run->info->features & HAL_FEATURE_INDIRECT) != 0, "grids in memory");
}

/* out[g * ITEMS + i] = 1 + i + FACTOR * x + FACTOR^2 * y + z for group g = (z * Y + y) * X + x. */
static hal_kernel *places_kernel(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "places");
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_value id[3], count[3];
    for (uint32_t d = 0; d < 3; d++) {
        id[d] = hal_ir_id(b, HAL_IR_GROUP_ID, d);
        count[d] = hal_ir_id(b, HAL_IR_GROUP_COUNT, d);
    }
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), factor = hal_ir_u32(b, FACTOR);
    const hal_ir_value layer = hal_ir_add(b, hal_ir_mul(b, id[2], count[1]), id[1]);
    const hal_ir_value group = hal_ir_add(b, hal_ir_mul(b, layer, count[0]), id[0]);
    const hal_ir_value row = hal_ir_add(b, hal_ir_mul(b, id[1], factor), id[0]);
    const hal_ir_value place = hal_ir_add(b, hal_ir_mul(b, row, factor), id[2]);
    hal_ir_store(b, out, hal_ir_add(b, hal_ir_mul(b, group, hal_ir_u32(b, ITEMS)), i),
                 hal_ir_add(b, place, hal_ir_add(b, i, hal_ir_u32(b, 1))));
    return case_kernel(run, b);
}

static uint32_t place_word(const uint32_t grid[3], uint32_t word)
{
    const uint64_t group = word / ITEMS;
    if (group >= (uint64_t)grid[0] * grid[1] * grid[2]) {
        return UNTOUCHED;
    }
    const uint32_t x = (uint32_t)(group % grid[0]), y = (uint32_t)(group / grid[0] % grid[1]),
                   z = (uint32_t)(group / grid[0] / grid[1]);
    return (y * FACTOR + x) * FACTOR + z + word % ITEMS + 1;
}

static hal_status dispatch(const case_run *run, hal_kernel *kernel, hal_buffer *grid,
                           uint32_t offset, hal_buffer *out)
{
    const hal_range ranges[1] = {range_of(out)};
    return hal_queue_dispatch_indirect(run->queue, kernel, (hal_range){grid, offset, 12}, NULL,
                                       ranges, 1, NULL, 0);
}

static void places_check(case_run *run, hal_buffer *out, const uint32_t grid[3], const char *what)
{
    const size_t before = run->object_count;
    uint32_t *got = case_allocate(run, MOST_WORDS, 4);
    case_ok(run, hal_queue_read(run->queue, out, 0, 4 * MOST_WORDS, got), "hal_queue_read");
    for (uint32_t i = 0; i < MOST_WORDS; i++) {
        const uint32_t expected = place_word(grid, i);
        case_check(run, got[i] == expected, "%s of %u x %u x %u: word %u is %u instead of %u", what,
                   grid[0], grid[1], grid[2], i, got[i], expected);
    }
    case_release(run, before);
}

static void grid_runs(case_run *run, const void *parameters)
{
    const grid_case *tested = parameters;
    claim_indirect(run);
    hal_kernel *kernel = places_kernel(run);
    hal_buffer *out = words_create(run, run->queue, MOST_WORDS, UNTOUCHED, 0);
    hal_buffer *grid = words_create(run, run->queue, 1024, 3, 1);
    case_ok(run, hal_queue_write(run->queue, grid, tested->offset, tested->grid, 12),
            "hal_queue_write");
    case_ok(run, dispatch(run, kernel, grid, tested->offset, out), "hal_queue_dispatch_indirect");
    places_check(run, out, tested->grid, "a grid");
}

/* A kernel, a copy and a fill write the grid before each dispatch, in one batch. */
static void written_before(case_run *run, const void *parameters)
{
    enum { ROUNDS = 24 };
    claim_indirect(run);
    hal_kernel *kernel = places_kernel(run), *writer = scale_kernel(run, run->device);
    hal_buffer *out = words_create(run, run->queue, MOST_WORDS, UNTOUCHED, 0);
    hal_buffer *ones = words_create(run, run->queue, 3, 1, 0);
    hal_buffer *other = words_create(run, run->queue, 3, 1, 0);
    hal_buffer *grid = words_create(run, run->queue, 3, 1, 0);
    hal_buffer *const outs[3] = {out, words_create(run, run->queue, MOST_WORDS, UNTOUCHED, 0),
                                 words_create(run, run->queue, MOST_WORDS, UNTOUCHED, 0)};
    case_ok(run, hal_queue_set_batch(run->queue, 4096, 4096), "hal_queue_set_batch");
    for (uint32_t i = 0; i < ROUNDS; i++) {
        scale_dispatch(run, run->queue, writer, ones, grid, 3, i % 3 + 1, 0);
        case_ok(run, dispatch(run, kernel, grid, 0, outs[0]), "hal_queue_dispatch_indirect");
        case_ok(run, hal_queue_fill(run->queue, range_of(other), i % 4 + 2), "hal_queue_fill");
        case_ok(run, hal_queue_copy(run->queue, range_of(other), range_of(grid)), "hal_queue_copy");
        case_ok(run, dispatch(run, kernel, grid, 0, outs[1]), "hal_queue_dispatch_indirect");
        case_ok(run, hal_queue_fill(run->queue, range_of(grid), i % 5 + 1), "hal_queue_fill");
        case_ok(run, dispatch(run, kernel, grid, 0, outs[2]), "hal_queue_dispatch_indirect");
        case_ok(run, hal_queue_fill(run->queue, range_of(grid), 1), "hal_queue_fill");
        if (i + 1 < ROUNDS) {
            for (int k = 0; k < 3; k++) {
                case_ok(run, hal_queue_fill(run->queue, range_of(outs[k]), UNTOUCHED),
                        "hal_queue_fill");
            }
        }
    }
    const uint32_t last = ROUNDS - 1;
    const uint32_t sides[3] = {last % 3 + 1, last % 4 + 2, last % 5 + 1};
    static const char *const whats[3] = {"a grid by a kernel", "a grid by a copy",
                                         "a grid by a fill"};
    for (int k = 0; k < 3; k++) {
        places_check(run, outs[k], (const uint32_t[3]){sides[k], sides[k], sides[k]}, whats[k]);
    }
}

/* The grid is one more binding than the device's most. */
static void most_bindings(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->max_bindings;
    const uint32_t count = most < HAL_IR_MAX_BINDINGS ? most : HAL_IR_MAX_BINDINGS;
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    hal_ir_memory_id bindings[HAL_IR_MAX_BINDINGS];
    claim_indirect(run);
    hal_ir_builder *b = case_builder(run, "bindings");
    hal_ir_group_size(b, 1, 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%u", i);
        bindings[i] = hal_ir_binding(b, name, HAL_TYPE_U32, HAL_ACCESS_WRITE);
        ranges[i] = range_of(words_create(run, run->queue, 4, UNTOUCHED, 0));
    }
    const hal_ir_value group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    for (uint32_t i = 0; i < count; i++) {
        hal_ir_store(b, bindings[i], group, hal_ir_add(b, group, hal_ir_u32(b, 10 * i)));
    }
    hal_kernel *kernel = case_kernel(run, b);
    static const uint32_t three[3] = {3, 1, 1};
    hal_buffer *grid = words_create(run, run->queue, 3, 0, 0);
    case_ok(run, hal_queue_write(run->queue, grid, 0, three, sizeof three), "hal_queue_write");
    case_ok(run,
            hal_queue_dispatch_indirect(run->queue, kernel, range_of(grid), three, ranges, count,
                                        NULL, 0),
            "hal_queue_dispatch_indirect");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t got[4];
        case_ok(run, hal_queue_read(run->queue, ranges[i].buffer, 0, sizeof got, got),
                "hal_queue_read");
        case_check(run,
                   got[0] == 10 * i && got[1] == 10 * i + 1 && got[2] == 10 * i + 2 &&
                       got[3] == UNTOUCHED,
                   "binding %u has %u %u %u %u", i, got[0], got[1], got[2], got[3]);
    }
}

static void release_graph(void *graph)
{
    hal_graph_destroy(graph);
}

/* Launched with another grid in the slot. */
static void in_graph(case_run *run, const void *parameters)
{
    static const uint32_t recorded[3] = {2, 2, 1}, launched[3] = {5, 3, 2};
    claim_indirect(run);
    hal_kernel *kernel = places_kernel(run);
    hal_buffer *out = words_create(run, run->queue, MOST_WORDS, UNTOUCHED, 0);
    hal_buffer *first = words_create(run, run->queue, 3, 0, 0);
    hal_buffer *second = words_create(run, run->queue, 3, 0, 0);
    case_ok(run, hal_queue_write(run->queue, first, 0, recorded, 12), "hal_queue_write");
    case_ok(run, hal_queue_write(run->queue, second, 0, launched, 12), "hal_queue_write");
    hal_graph *graph = NULL;
    case_ok(run, dispatch(run, kernel, first, 0, out), "hal_queue_dispatch_indirect");
    places_check(run, out, recorded, "a grid");
    case_ok(run, hal_graph_begin(run->queue), "hal_graph_begin");
    case_ok(run, dispatch(run, kernel, first, 0, out), "hal_queue_dispatch_indirect");
    case_ok(run, hal_graph_end(run->queue, &first, 1, &graph), "hal_graph_end");
    case_own(run, release_graph, graph);
    case_ok(run, hal_graph_launch(run->queue, graph, &second, 1), "hal_graph_launch");
    places_check(run, out, launched, "a launched grid");
}

static void refusals(case_run *run, const void *parameters)
{
    static const uint32_t none[3] = {1, 0, 1};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    const uint32_t large[3] = {1, run->info->max_grid[1], 1};
    claim_indirect(run);
    hal_kernel *kernel = places_kernel(run);
    hal_buffer *out = words_create(run, run->queue, 64, UNTOUCHED, 0);
    hal_buffer *grid = words_create(run, run->queue, 8, 1, 0);
    const hal_range ranges[1] = {range_of(out)};
    case_ok(run,
            hal_queue_dispatch_indirect(run->queue, kernel, (hal_range){grid, 4, 12}, large, ranges,
                                        1, NULL, 0),
            "the largest grid of the device");
    case_ok(run, hal_queue_fill(run->queue, range_of(out), UNTOUCHED), "hal_queue_fill");
    const struct {
        const char *what;
        hal_range grid;
        const uint32_t *most;
    } tried[] = {
        {"no buffer", {NULL, 0, 12}, NULL},        {"an odd offset", {grid, 2, 12}, NULL},
        {"a long range", {grid, 0, 16}, NULL},     {"a short range", {grid, 0, 8}, NULL},
        {"a range beyond", {grid, 24, 12}, NULL},  {"an empty largest grid", {grid, 0, 12}, none},
        {"the written buffer", {out, 0, 12}, NULL}};
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        case_expect(run,
                    hal_queue_dispatch_indirect(run->queue, kernel, tried[i].grid, tried[i].most,
                                                ranges, 1, NULL, 0),
                    wrong, NULL, tried[i].what);
    }
    words_check(run, run->queue, out, 64, UNTOUCHED, 0, "the output");
}

void cases_hal_indirect(case_list *list)
{
    static const grid_case grids[] = {{{1, 1, 1}, 0},    {{7, 1, 1}, 4},    {{1, 7, 1}, 20},
                                      {{1, 1, 7}, 8},    {{5, 4, 3}, 100},  {{300, 9, 5}, 4000},
                                      {{4096, 1, 1}, 0}, {{0, 5, 5}, 0},    {{5, 0, 5}, 12},
                                      {{5, 5, 0}, 16},   {{1, 300, 40}, 0}, {{0, 0, 0}, 4084}};
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        const grid_case *one = &grids[i];
        case_add(list, grid_runs, one, sizeof *one, "indirect/grid(%ux%ux%u,offset=%u)",
                 one->grid[0], one->grid[1], one->grid[2], one->offset);
    }
    case_add(list, written_before, NULL, 0, "indirect/written_before");
    case_add(list, most_bindings, NULL, 0, "indirect/most_bindings");
    case_add(list, in_graph, NULL, 0, "indirect/graph");
    case_add(list, refusals, NULL, 0, "indirect/refusals");
}
