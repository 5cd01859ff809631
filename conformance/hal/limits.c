/* limits.c: numbers that outgrow a small field on their way to the device: many groups, bindings
 * far inside of a buffer. */
#include <hal/hal.h>
#include <hal/ir_build.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/fixture.h"

#define UNTOUCHED 0xabababab

/* Where a device has fewer the dispatch is refused. */
static void many_groups(case_run *run, const void *parameters)
{
    const uint32_t groups = *(const uint32_t *)parameters;
    const uint32_t count = (groups - 1) * SCALE_GROUP + 1;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, count, 3, 7);
    hal_buffer *y = words_create(run, run->queue, count, 0, 0);
    const hal_range ranges[2] = {range_of(x), range_of(y)};
    const uint32_t grid[3] = {groups, 1, 1};
    const scale_scalars scalars = {count, 2, 1};
    const hal_status status =
        hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars);
    if (run->info->max_grid[0] < groups) {
        case_expect(run, status, HAL_ERROR_INVALID_ARGUMENT, NULL, "too many groups");
        case_unsupported(run, "a grid has at most %u groups", run->info->max_grid[0]);
    }
    case_ok(run, status, "hal_queue_dispatch");
    words_check(run, run->queue, y, count, 7, 14, "the result");
}

typedef struct grid_case {
    uint32_t grid[3], group[3]; /* group: 0 is the most that the device claims */
} grid_case;

/* out[place in the grid and in the group] = place * 3 + 1, from the ids of all dimensions. */
static hal_kernel *places_kernel(case_run *run, const grid_case *tested)
{
    const uint32_t *grid = tested->grid, *group = tested->group;
    hal_ir_builder *b = case_builder(run, "places");
    hal_ir_group_size(b, group[0], group[1], group[2]);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_value place = hal_ir_global_id(b, 2);
    for (uint32_t d = 2; d-- > 0;) {
        place = hal_ir_add(b, hal_ir_mul(b, place, hal_ir_u32(b, grid[d] * group[d])),
                           hal_ir_global_id(b, d));
    }
    const hal_ir_value three = hal_ir_mul(b, place, hal_ir_u32(b, 3));
    hal_ir_store(b, out, place, hal_ir_add(b, three, hal_ir_u32(b, 1)));
    return case_kernel(run, b);
}

static void all_places(case_run *run, const void *parameters)
{
    grid_case tested = *(const grid_case *)parameters;
    uint32_t count = 1;
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t most = run->info->max_group_items;
        if (tested.group[d] == 0) {
            tested.group[d] =
                run->info->max_group_size[d] < most ? run->info->max_group_size[d] : most;
        }
        if (run->info->max_grid[d] < tested.grid[d]) {
            case_unsupported(run, "a grid has at most %u groups in dimension %u",
                             run->info->max_grid[d], d);
        }
        count *= tested.grid[d] * tested.group[d];
    }
    hal_kernel *kernel = places_kernel(run, &tested);
    hal_buffer *out = words_create(run, run->queue, count, 0, 0);
    const hal_range range = range_of(out);
    case_ok(run, hal_queue_dispatch(run->queue, kernel, tested.grid, &range, 1, NULL, 0),
            "hal_queue_dispatch");
    words_check(run, run->queue, out, count, 1, 3, "the result");
}

/* A group of the most work-items in two or in three dimensions. */
static void whole_group(case_run *run, const void *parameters)
{
    const uint32_t *takes_part = parameters; /* z does where it is not 0 */
    grid_case tested = {{3, 2, 2}, {1, 1, 1}};
    uint32_t left = run->info->max_group_items;
    bool grows = true;
    while (grows && left > 1) { /* each dimension in turn doubles */
        grows = false;
        for (uint32_t d = 0; d < 3 && left > 1; d++) {
            if (takes_part[d] != 0 && tested.group[d] * 2 <= run->info->max_group_size[d]) {
                tested.group[d] *= 2;
                left /= 2;
                grows = true;
            }
        }
    }
    all_places(run, &tested);
}

/* More than 2^24 groups, of which the last row writes. */
static void wide_grid(case_run *run, const void *parameters)
{
    enum { WIDTH = 4096, HEIGHT = 4098 };
    const uint32_t grid[3] = {WIDTH, HEIGHT, 1};
    if (run->info->max_grid[0] < WIDTH || run->info->max_grid[1] < HEIGHT) {
        case_unsupported(run, "a grid has at most %u by %u groups", run->info->max_grid[0],
                         run->info->max_grid[1]);
    }
    hal_ir_builder *b = case_builder(run, "last_row");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value x = hal_ir_global_id(b, 0), y = hal_ir_global_id(b, 1);
    hal_ir_store_wide(b, out, x, 0, hal_ir_eq(b, y, hal_ir_u32(b, HEIGHT - 1)),
                      hal_ir_add(b, x, y));
    hal_kernel *kernel = case_kernel(run, b);
    hal_buffer *words = words_create(run, run->queue, WIDTH, 0, 0);
    const hal_range range = range_of(words);
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &range, 1, NULL, 0),
            "hal_queue_dispatch");
    words_check(run, run->queue, words, WIDTH, HEIGHT - 1, 1, "the last row");
}

/* Many groups along the dimensions, of which the last one writes what it knows of its place. */
static void last_group(case_run *run, const void *parameters)
{
    enum { KNOWN = 6 };
    const uint32_t *grid = parameters;
    uint32_t words[KNOWN];
    for (uint32_t d = 0; d < 3; d++) {
        if (run->info->max_grid[d] < grid[d]) {
            case_unsupported(run, "a grid has at most %u groups in dimension %u",
                             run->info->max_grid[d], d);
        }
    }
    hal_ir_builder *b = case_builder(run, "last_group");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value guard = HAL_IR_NONE, known[KNOWN];
    for (uint32_t d = 0; d < 3; d++) {
        known[d] = hal_ir_id(b, HAL_IR_GROUP_ID, d);
        known[3 + d] = hal_ir_id(b, HAL_IR_GROUP_COUNT, d);
        const hal_ir_value is_last = hal_ir_eq(b, known[d], hal_ir_u32(b, grid[d] - 1));
        guard = d == 0 ? is_last : hal_ir_and(b, guard, is_last);
    }
    for (int32_t k = 0; k < KNOWN; k++) {
        hal_ir_store_wide(b, out, zero, k, guard, known[k]);
    }
    hal_kernel *kernel = case_kernel(run, b);
    hal_buffer *out_words = words_create(run, run->queue, KNOWN, 0, 0);
    const hal_range range = range_of(out_words);
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &range, 1, NULL, 0),
            "hal_queue_dispatch");
    case_ok(run, hal_queue_read(run->queue, out_words, 0, sizeof words, words), "hal_queue_read");
    for (uint32_t k = 0; k < KNOWN; k++) {
        const uint32_t expected = k < 3 ? grid[k] - 1 : grid[k - 3];
        case_check(run, words[k] == expected, "%s %u of the last group is %u instead of %u",
                   k < 3 ? "id" : "count", k % 3, words[k], expected);
    }
}

/* Kernels write and read words at offsets that need more and more bits; copies, which are checked
 * elsewhere, bring them out and in. Memory at the low bits of an offset does not change. */
static void far_bindings(case_run *run, const void *parameters)
{
    enum { COUNT = 300, SPACING = 8192 };
    static const uint64_t far[] = {1 << 14, 1 << 16, 1 << 20, 1 << 24, 3 << 24};
    const uint64_t bytes = (UINT64_C(3) << 24) + (1 << 16), low_bytes = 1 << 14;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    hal_buffer *large = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
    case_ok(run, hal_queue_fill(run->queue, range_of(large), UNTOUCHED), "hal_queue_fill");
    const uint32_t grid[3] = {(COUNT + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    for (uint32_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        const hal_range here = {large, far[i] + 256 * i, 4 * COUNT};
        const hal_range next = {large, far[i] + 256 * i + SPACING, 4 * COUNT};
        const hal_range out[2] = {range_of(x), here}, in[2] = {next, range_of(y)};
        const scale_scalars scalars = {COUNT, i + 2, i};
        case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, out, 2, &scalars, sizeof scalars),
                "a kernel that writes there");
        case_ok(run, hal_queue_copy(run->queue, here, next), "hal_queue_copy");
        case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, in, 2, &scalars, sizeof scalars),
                "a kernel that reads there");
        words_check(run, run->queue, y, COUNT, (2 * i + 2) * (i + 2) + i, (i + 2) * (i + 2),
                    "what went far into memory and back");
    }
    uint32_t *low = case_allocate(run, 1, low_bytes);
    case_ok(run, hal_queue_read(run->queue, large, 0, low_bytes, low), "hal_queue_read");
    for (uint32_t i = 0; i < low_bytes / 4; i++) {
        case_check(run, low[i] == UNTOUCHED, "word %u, where no binding was, is 0x%x", i, low[i]);
    }
}

/* A fill and a copy whose length needs more than 24 bits. */
static void long_fill(case_run *run, const void *parameters)
{
    enum { LAST = 1024 };
    const uint64_t bytes = (UINT64_C(1) << 24) + 65536;
    uint32_t words[LAST];
    hal_buffer *x = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
    hal_buffer *y = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
    case_ok(run, hal_queue_fill(run->queue, range_of(x), 1), "hal_queue_fill");
    case_ok(run, hal_queue_fill(run->queue, range_of(x), UNTOUCHED), "hal_queue_fill");
    case_ok(run, hal_queue_copy(run->queue, range_of(x), range_of(y)), "hal_queue_copy");
    case_ok(run, hal_queue_read(run->queue, y, bytes - sizeof words, sizeof words, words), "read");
    for (uint32_t i = 0; i < LAST; i++) {
        case_check(run, words[i] == UNTOUCHED, "%u words before the end there is 0x%x", LAST - i,
                   words[i]);
    }
}

/* The largest claimed allocation, or what of it the device has free and an eighth more. */
static void largest_allocation(case_run *run, const void *parameters)
{
    hal_memory_statistics memory = {0};
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    const uint64_t most = run->info->max_allocation, free_bytes = memory.free_bytes / 9 * 8;
    const uint64_t bytes = (most < free_bytes ? most : free_bytes) & ~UINT64_C(0xffff);
    case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
}

/* Objects that are alive at once: a minimum count, and more where creating one takes little time.
 * A compiler may take its time: its kernels are alike. */
static void many_objects(case_run *run, const void *parameters)
{
    enum { BUFFERS = 1500, LEAST = 300, KERNELS = 1200, BYTES = 64 };
    const double most = 0.5, longest = 3; /* seconds of the processor and of the clock */
    hal_buffer **buffers = case_allocate(run, BUFFERS, sizeof(hal_buffer *));
    for (uint32_t i = 0; i < BUFFERS; i++) {
        buffers[i] = words_create(run, run->queue, BYTES / 4, i, 1);
    }
    for (uint32_t i = 0; i < BUFFERS; i += 7) {
        words_check(run, run->queue, buffers[i], BYTES / 4, i, 1, "one of 1,500 buffers");
    }
    const double begin = child_processor_seconds(), begun = child_now();
    uint32_t count = 0;
    for (; count < KERNELS; count++) {
        const bool is_long = child_now() - begun > longest;
        if (is_long && count < LEAST / 10) {
            case_unsupported(run, "creating a kernel takes %.2f s",
                             (child_now() - begun) / (count + 1));
        }
        if (is_long || (count >= LEAST && child_processor_seconds() - begin > most)) {
            break;
        }
        hal_ir_builder *b = case_builder(run, "one_of_many");
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_value zero = hal_ir_u32(b, 0);
        hal_ir_group_size(b, 1, 1, 1);
        hal_ir_store(b, out, zero, hal_ir_u32(b, count));
        hal_kernel *kernel = case_kernel(run, b);
        const hal_range range = range_of(buffers[count]);
        case_ok(run,
                hal_queue_dispatch(run->queue, kernel, (uint32_t[3]){1, 1, 1}, &range, 1, NULL, 0),
                "hal_queue_dispatch");
    }
    for (uint32_t i = 0; i < count; i++) {
        words_check(run, run->queue, buffers[i], 1, i, 0, "what one of many kernels wrote");
    }
}

void cases_hal_limits(case_list *list)
{
    static const uint32_t groups[] = {65536, 65539, 131073};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        case_add(list, many_groups, &groups[i], sizeof groups[i], "limits/groups(%u)", groups[i]);
    }
    static const grid_case grids[] = {{{1, 65535, 1}, {1, 1, 1}}, {{1, 1, 65535}, {1, 1, 1}},
                                      {{300, 301, 2}, {1, 1, 1}}, {{1, 65539, 1}, {1, 1, 1}},
                                      {{1, 1, 65539}, {1, 1, 1}}, {{3, 257, 259}, {1, 1, 1}}};
    for (uint32_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        case_add(list, all_places, &grids[i], sizeof grids[i], "limits/grid(%ux%ux%u)",
                 grids[i].grid[0], grids[i].grid[1], grids[i].grid[2]);
    }
    static const uint32_t takes_part[2][3] = {{1, 1, 0}, {1, 1, 1}};
    for (uint32_t i = 0; i < 2; i++) {
        case_add(list, whole_group, takes_part[i], sizeof takes_part[i],
                 "limits/group_size(dimensions=%u)", i + 2);
    }
    static const uint32_t many[][3] = {{(1 << 23) + 3, 1, 1},
                                       {1, (1 << 20) + 3, 1},
                                       {1, 1, (1 << 20) + 3},
                                       {257, 1, 259},
                                       {70000, 3, 3}};
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        case_add(list, last_group, many[i], sizeof many[i], "limits/last_group(grid=%ux%ux%u)",
                 many[i][0], many[i][1], many[i][2]);
    }
    case_add(list, wide_grid, NULL, 0, "limits/groups_of_two_dimensions(24_bits)");
    for (uint32_t d = 0; d < 3; d++) {
        grid_case tested = {{3, 2, 2}, {1, 1, 1}};
        tested.group[d] = 0;
        case_add(list, all_places, &tested, sizeof tested, "limits/group_size(dimension=%u)", d);
    }
    case_add(list, far_bindings, NULL, 0, "limits/far_bindings");
    case_add(list, long_fill, NULL, 0, "limits/long_fill");
    case_add(list, largest_allocation, NULL, 0, "limits/largest_allocation");
    case_add(list, many_objects, NULL, 0, "limits/many_objects");
}
