/* arguments.c: wrong arguments of recorded commands: each has its status and a message, and
 * nothing is touched. */
#include <hal/queue.h>

#include "case/cases.h"
#include "hal/fixture.h"

#define COUNT 600u

/* Arguments of a dispatch, one of which a case makes wrong. */
typedef struct attempt {
    hal_queue *queue;
    hal_kernel *kernel;
    uint32_t grid[3];
    hal_range ranges[2];
    uint32_t range_count;
    scale_scalars scalars;
    const void *scalar_data;
    uint32_t scalar_bytes;
} attempt;

typedef enum spoiled {
    NULL_KERNEL,
    NULL_RANGES,
    FEW_RANGES,
    MANY_RANGES,
    NULL_BUFFER,
    MISALIGNED,
    BEYOND_END,
    OVERFLOWING,
    OFFSET_BEYOND,
    OVERLAP,
    FEW_SCALARS,
    MANY_SCALARS,
    NULL_SCALARS,
    WIDE_GRID,
    NULL_GRID,
    SPOILED_COUNT
} spoiled;

static const char *const names[SPOILED_COUNT] = {
    "null_kernel",       "null_bindings",
    "too_few_bindings",  "too_many_bindings",
    "null_buffer",       "misaligned_offset",
    "length_beyond_end", "offset_plus_length_overflows",
    "offset_beyond_end", "overlap_with_written",
    "too_few_scalars",   "too_many_scalars",
    "null_scalars",      "grid_too_wide",
    "null_grid"};

static void spoil(const case_run *run, attempt *a, spoiled what)
{
    switch (what) {
    case NULL_KERNEL:
        a->kernel = NULL;
        break;
    case FEW_RANGES:
        a->range_count = 1;
        break;
    case MANY_RANGES:
        a->range_count = HAL_IR_MAX_BINDINGS + 1;
        break;
    case NULL_BUFFER:
        a->ranges[1].buffer = NULL;
        a->ranges[1].length = 64;
        break;
    case MISALIGNED:
        a->ranges[0].offset = run->info->binding_alignment > 1 ? 1 : 4 * COUNT + 1;
        a->ranges[0].length = 64;
        break;
    case BEYOND_END:
        a->ranges[1].length = 4 * COUNT + 1;
        break;
    case OVERFLOWING:
        a->ranges[1].offset = 256;
        a->ranges[1].length = UINT64_MAX - 100;
        break;
    case OFFSET_BEYOND:
        a->ranges[1].offset = 1 << 20;
        break;
    case OVERLAP:
        a->ranges[0] = a->ranges[1];
        break;
    case FEW_SCALARS:
        a->scalar_bytes = 4;
        break;
    case MANY_SCALARS:
        a->scalar_bytes = HAL_IR_MAX_SCALAR_BYTES + 4;
        break;
    case NULL_SCALARS:
        a->scalar_data = NULL;
        break;
    case WIDE_GRID:
        a->grid[0] = run->info->max_grid[0];
        if (a->grid[0] < UINT32_MAX) {
            a->grid[0]++;
        } else {
            a->range_count = 1; /* no grid is too wide for this device */
        }
        break;
    default:
        break;
    }
}

static void spoil_dispatch(case_run *run, const void *parameters)
{
    const spoiled what = (spoiled) * (const int *)parameters;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *out = words_create(run, run->queue, COUNT, 5, 3);
    attempt a = {.queue = run->queue,
                 .kernel = kernel,
                 .grid = {2, 1, 1},
                 .ranges = {range_of(x), range_of(out)},
                 .range_count = 2,
                 .scalars = {COUNT, 2, 2},
                 .scalar_bytes = sizeof a.scalars};
    a.scalar_data = &a.scalars;
    spoil(run, &a, what);
    const hal_status status = hal_queue_dispatch(
        a.queue, a.kernel, what == NULL_GRID ? NULL : a.grid, what == NULL_RANGES ? NULL : a.ranges,
        a.range_count, a.scalar_data, a.scalar_bytes);
    case_expect(run, status, HAL_ERROR_INVALID_ARGUMENT, NULL, names[what]);
    words_check(run, run->queue, out, COUNT, 5, 3, "the output after a refused dispatch");
    /* The queue can still be used. */
    scale_dispatch(run, run->queue, kernel, x, out, COUNT, 1, 0);
    words_check(run, run->queue, out, COUNT, 1, 1, "the output after a right dispatch");
}

static void refuse_copies(case_run *run, const void *parameters)
{
    hal_buffer *x = words_create(run, run->queue, 64, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 64, 2, 2);
    const struct {
        const char *what;
        hal_range source, target;
    } wrong[] = {
        {"lengths that differ", {x, 0, 32}, {y, 0, 64}},
        {"a source beyond its end", {x, 0, 260}, {y, 0, 260}},
        {"an odd offset", {x, 2, 32}, {y, 0, 32}},
        {"an odd length", {x, 0, 31}, {y, 0, 31}},
        {"ranges that overlap", {x, 0, 64}, {x, 32, 64}},
        {"a null source", {NULL, 0, 64}, {y, 0, 64}},
        {"a null target", {x, 0, 64}, {NULL, 0, 64}},
        {"an offset that overflows", {x, UINT64_MAX - 3, 64}, {y, 0, 64}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        case_expect(run, hal_queue_copy(run->queue, wrong[i].source, wrong[i].target),
                    HAL_ERROR_INVALID_ARGUMENT, NULL, wrong[i].what);
    }
    words_check(run, run->queue, y, 64, 2, 2, "the target after refused copies");
}

static void refuse_fills(case_run *run, const void *parameters)
{
    hal_buffer *x = words_create(run, run->queue, 64, 1, 1);
    const struct {
        const char *what;
        hal_range target;
    } wrong[] = {
        {"a null buffer", {NULL, 0, 64}},
        {"an odd offset", {x, 1, 8}},
        {"an odd length", {x, 0, 7}},
        {"a range beyond the end", {x, 252, 8}},
        {"an offset beyond the end", {x, 512, 4}},
        {"a length that overflows", {x, 8, UINT64_MAX - 7}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        case_expect(run, hal_queue_fill(run->queue, wrong[i].target, 0xffffffff),
                    HAL_ERROR_INVALID_ARGUMENT, NULL, wrong[i].what);
    }
    words_check(run, run->queue, x, 64, 1, 1, "the buffer after refused fills");
}

static void refuse_host(case_run *run, const void *parameters)
{
    uint8_t data[300] = {0};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    hal_buffer *x = words_create(run, run->queue, 64, 1, 1);
    case_expect(run, hal_queue_write(run->queue, x, 0, data, 257), wrong, NULL,
                "a write beyond the end");
    case_expect(run, hal_queue_write(run->queue, x, UINT64_MAX, data, 2), wrong, NULL,
                "a write at an offset that overflows");
    case_expect(run, hal_queue_write(run->queue, x, 0, NULL, 4), wrong, NULL, "null data");
    case_expect(run, hal_queue_write(run->queue, NULL, 0, data, 4), wrong, NULL, "a write to null");
    case_expect(run, hal_queue_read(run->queue, x, 200, 57, data), wrong, NULL,
                "a read beyond the end");
    case_expect(run, hal_queue_read(run->queue, x, 0, 4, NULL), wrong, NULL, "a read to null");
    case_ok(run, hal_queue_write(run->queue, x, 256, data, 0), "a write of nothing");
    case_ok(run, hal_queue_read(run->queue, x, 256, 0, data), "a read of nothing");
    words_check(run, run->queue, x, 64, 1, 1, "the buffer after refused writes");
}

/* Two bindings that only read may be the same memory. */
static void same_memory_read(case_run *run, const void *parameters)
{
    hal_buffer *x = words_create(run, run->queue, COUNT, 3, 2);
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    hal_ir_builder *b = case_builder(run, "twice");
    hal_ir_group_size(b, SCALE_GROUP, 1, 1);
    const hal_ir_memory_id one = hal_ir_binding(b, "one", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id two = hal_ir_binding(b, "two", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id sum = hal_ir_binding(b, "sum", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, hal_ir_u32(b, COUNT));
    hal_ir_store_wide(b, sum, i, 0, guard,
                      hal_ir_add(b, hal_ir_load_wide(b, one, i, 0, 1, guard),
                                 hal_ir_load_wide(b, two, i, 0, 1, guard)));
    const hal_range ranges[3] = {range_of(x), range_of(x), range_of(out)};
    const uint32_t grid[3] = {(COUNT + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    case_ok(run, hal_queue_dispatch(run->queue, case_kernel(run, b), grid, ranges, 3, NULL, 0),
            "hal_queue_dispatch");
    words_check(run, run->queue, out, COUNT, 6, 4, "the sum");
}

/* A kernel that touches only the first of its bindings; the others have no length. */
static void empty_binding(case_run *run, const void *parameters)
{
    hal_ir_builder *b = case_builder(run, "first_only");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value wanted = hal_ir_scalar_value(b, "wanted", HAL_TYPE_U32);
    const hal_ir_value guard = hal_ir_ne(b, wanted, hal_ir_u32(b, 0));
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value loaded = hal_ir_load_wide(b, x, zero, 0, 1, guard);
    hal_ir_store(b, out, zero, hal_ir_add(b, loaded, hal_ir_u32(b, 41)));
    hal_kernel *kernel = case_kernel(run, b);
    hal_buffer *empty = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 0);
    hal_buffer *y = words_create(run, run->queue, 1, 0, 0);
    const uint32_t grid[3] = {1, 1, 1}, none = 0;
    const hal_range ranges[3] = {range_of(y), range_of(empty), {NULL, 0, 0}};
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, ranges, 3, &none, sizeof none),
            "a dispatch with bindings of no length");
    words_check(run, run->queue, y, 1, 41, 0, "what the kernel wrote");
}

void cases_hal_arguments(case_list *list)
{
    for (int what = 0; what < SPOILED_COUNT; what++) {
        case_add(list, spoil_dispatch, &what, sizeof what, "arguments/dispatch(%s)", names[what]);
    }
    case_add(list, refuse_copies, NULL, 0, "arguments/copy");
    case_add(list, refuse_fills, NULL, 0, "arguments/fill");
    case_add(list, refuse_host, NULL, 0, "arguments/write_and_read");
    case_add(list, same_memory_read, NULL, 0, "arguments/same_memory_read_twice");
    case_add(list, empty_binding, NULL, 0, "arguments/empty_binding");
}
