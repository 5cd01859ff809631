/* Groups that are not full and conditions that steps decide for a whole group, on each instruction
 * set against the reference interpreter. */
#include "cpu_fixture.h"

/* The last vector of a group may lack work-items, whose elements would be beyond the memory. */
TEST(partial_groups)
{
    static const hal_type types[] = {HAL_TYPE_U8,   HAL_TYPE_I16, HAL_TYPE_F16,
                                     HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_U64};
    static const uint32_t sizes[] = {1, 5, 17, 33, 60, 205, 255};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 2 * TYPES * SIZES; i++) {
        const hal_type type = types[i % TYPES], other = i < TYPES * SIZES ? type : HAL_TYPE_F32;
        const uint32_t items = sizes[i / TYPES % SIZES], groups = 2;
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("partial", &b);
        hal_ir_group_size(b, items, 1, 1);
        const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
        const hal_ir_memory_id y = hal_ir_binding(b, "y", other, HAL_ACCESS_READ_WRITE);
        const hal_ir_value item = hal_ir_global_id(b, 0), from = hal_ir_load(b, x, item);
        const hal_ir_value old = hal_ir_load(b, y, item);
        hal_ir_value value = hal_ir_cast(b, hal_type_of_value(other), from);
        for (uint32_t k = 0; k < (i % 2 ? 40 : 1); k++) { /* several vectors together, or one */
            value = hal_ir_max(b, hal_ir_add(b, value, old), old);
        }
        hal_ir_store(b, y, item, value);
        cpu_buffer buffers[] = {numbers(type, items * groups, i),
                                numbers(other, items * groups, i + 1)};
        check(cpu_finish(b), groups, buffers, 2, NULL, "partial group");
    }
}

/* A grid whose last group is not full, over memory that ends with the last element, with a guard
 * for that and perhaps another one that is the same for all. `sum` is read as well. */
static hal_ir_kernel *tail_kernel(hal_type type, uint32_t items, uint32_t form)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("tail", &b);
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id sum = hal_ir_binding(b, "sum", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    const hal_ir_value item = hal_ir_global_id(b, 0);
    hal_ir_value inside = hal_ir_lt(b, item, count);
    if (form & 1) {
        inside = hal_ir_and(b, inside, hal_ir_eq(b, hal_ir_u32(b, 5), hal_ir_u32(b, 5)));
    }
    if (form & 2) {
        const hal_ir_value some = hal_ir_lt(b, hal_ir_u32(b, 3), count);
        inside = hal_ir_and(b, some, inside);
    }
    const hal_ir_value value = hal_ir_load_wide(b, x, item, 0, 1, inside);
    const hal_ir_value again = hal_ir_load_wide(b, x, item, 0, 1, inside);
    const hal_ir_value old = hal_ir_load_wide(b, sum, item, 0, 1, inside);
    hal_ir_store_wide(b, y, item, 0, inside, hal_ir_max(b, value, again));
    hal_ir_store_wide(b, sum, item, 0, inside, hal_ir_add(b, value, old));
    return cpu_finish(b);
}

TEST(tails)
{
    static const hal_type types[] = {HAL_TYPE_U8,  HAL_TYPE_I8,   HAL_TYPE_U16, HAL_TYPE_I16,
                                     HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_I32,
                                     HAL_TYPE_F64, HAL_TYPE_U64};
    static const uint32_t sizes[] = {16, 48, 256, 1024, 33, 100};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 4 * TYPES * SIZES; i++) {
        const hal_type type = types[i % TYPES];
        const uint32_t items = sizes[i / TYPES % SIZES], groups = 2;
        hal_ir_kernel *kernel = tail_kernel(type, items, i / (TYPES * SIZES));
        for (uint32_t round = 0; round < 4; round++) {
            uint64_t seed = i * 4 + round;
            const uint32_t some = (uint32_t)(cpu_random(&seed) % (items - 1));
            const uint32_t count = round == 3 ? 3 : items + 1 + some;
            cpu_trial trial = {.kernel = kernel,
                               .grid = {groups, 1, 1},
                               .buffers = {numbers(type, count, i), numbers(type, count, round),
                                           numbers(type, count, i + round)},
                               .buffer_count = 3,
                               .scalars = &count,
                               .what = "tail"};
            cpu_trial_check(&trial);
            for (uint32_t k = 0; k < 3; k++) {
                free(trial.buffers[k].data);
            }
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* The work-items whose index, which grows by `factor`, is below a bound or equal to it add to what
 * is stored. */
static hal_ir_kernel *bound_kernel(hal_type type, uint32_t items, uint32_t factor, int even)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("bound", &b);
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value first = hal_ir_scalar_value(b, "first", type);
    const hal_ir_value bound = hal_ir_scalar_value(b, "bound", type);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value scaled = hal_ir_mul(b, item, hal_ir_u32(b, factor));
    const hal_ir_value index = hal_ir_add(b, first, hal_ir_cast(b, type, scaled));
    const hal_ir_value inside = even ? hal_ir_le(b, index, bound) : hal_ir_lt(b, index, bound);
    const hal_ir_value x = hal_ir_load(b, out, item);
    const hal_ir_value y = hal_ir_add(b, x, hal_ir_u32(b, 77));
    hal_ir_store(b, out, item, hal_ir_select(b, inside, y, x));
    return cpu_finish(b);
}

TEST(bounds_of_lanes)
{
    static const int32_t bounds[] = {-5, 0, 100, 101, 117, 131, 163, 164, 165, 500};
    enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };
    for (uint32_t i = 0; i < 16; i++) {
        const hal_type type = i & 1 ? HAL_TYPE_I32 : HAL_TYPE_U32;
        const uint32_t items = i & 2 ? 64 : 50;
        for (uint32_t k = 0; k < BOUNDS; k++) {
            const int32_t scalars[] = {100, bounds[k]};
            cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, items, i)};
            check(bound_kernel(type, items, 1 + (i >> 2 & 1), i >> 3), 1, buffers, 1, scalars,
                  "lanes below a bound");
        }
    }
}

/* Indices as numbers, elements that are the same for all work-items, under a condition that is, and
 * the first rows of a group of rows of any length. */
static hal_ir_kernel *numbers_kernel(hal_type type, uint32_t wide, uint32_t high)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("numbers", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value rows = hal_ir_scalar_value(b, "rows", HAL_TYPE_U32);
    const hal_ir_value stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    const hal_ir_value odd = hal_ir_eq(b, group, hal_ir_u32(b, 1));
    const hal_ir_value line = hal_ir_add(b, hal_ir_mul(b, y, hal_ir_u32(b, wide)), x);
    const hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, group, hal_ir_u32(b, wide * high)), line);
    const hal_ir_value affine = hal_ir_add(
        b, hal_ir_mul(b, x, hal_ir_u32(b, 3)),
        hal_ir_add(b, hal_ir_mul(b, y, stride), hal_ir_mul(b, group, hal_ir_u32(b, 100))));
    hal_ir_value value = hal_ir_cast(b, HAL_TYPE_F32, affine);
    const hal_ir_value element = hal_ir_load_wide(b, in, group, 1, 1, odd);
    value = hal_ir_add(b, value, hal_ir_cast(b, HAL_TYPE_F32, element));
    value = hal_ir_add(b, value, hal_ir_cast(b, HAL_TYPE_F32, hal_ir_load(b, in, group)));
    hal_ir_store_wide(b, out, item, 0, hal_ir_lt(b, y, rows), value);
    return cpu_finish(b);
}

TEST(numbers_of_indices)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_U16,
                                     HAL_TYPE_I16, HAL_TYPE_F64, HAL_TYPE_I32};
    static const uint32_t sizes[][2] = {{4, 16}, {64, 1}, {16, 4}, {48, 3}, {2, 8}};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < TYPES * SIZES; i++) {
        const uint32_t *size = sizes[i / TYPES];
        hal_ir_kernel *kernel = numbers_kernel(types[i % TYPES], size[0], size[1]);
        for (uint32_t rows = 0; rows <= size[1]; rows++) {
            const uint32_t scalars[] = {rows, 7 + i};
            cpu_trial trial = {.kernel = kernel,
                               .grid = {3, 1, 1},
                               .buffers = {numbers(types[i % TYPES], 4, i),
                                           numbers(HAL_TYPE_F32, 3 * size[0] * size[1], rows)},
                               .buffer_count = 2,
                               .scalars = scalars,
                               .what = "numbers of indices"};
            cpu_trial_check(&trial);
            free(trial.buffers[0].data);
            free(trial.buffers[1].data);
        }
        check_no_calls(kernel);
        hal_ir_kernel_destroy(kernel);
    }
}

/* Elements at indices from memory or in short rows, by the work-items below a limit: the others
 * have indices that are nowhere. Signed indices are around the middle of the memory. */
static hal_ir_kernel *gather_kernel(hal_type type, hal_type index_type, const uint32_t size[2],
                                    uint32_t count)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("gather", &b);
    hal_ir_group_size(b, size[0], size[1], 1);
    const hal_type value = hal_type_of_value(type);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id from = hal_ir_binding(b, "from", index_type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", value, HAL_ACCESS_WRITE);
    const hal_ir_value limit = hal_ir_scalar_value(b, "limit", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, y, hal_ir_u32(b, size[0])), x);
    const int32_t middle = index_type == HAL_TYPE_I32 ? (int32_t)count / 2 : 0;
    const hal_ir_value inside = hal_ir_lt(b, item, limit), index = hal_ir_load(b, from, item);
    const hal_ir_value first = hal_ir_load_wide(b, in, index, middle, 1, inside);
    const hal_ir_value rows =
        hal_ir_add(b, hal_ir_mul(b, x, limit), hal_ir_and(b, y, hal_ir_u32(b, 3)));
    const hal_ir_value second = hal_ir_load_wide(b, in, rows, 0, 1, HAL_IR_NONE);
    hal_ir_store(b, out, item, hal_ir_max(b, first, second));
    return cpu_finish(b);
}

static const hal_type gathered_types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_U16, HAL_TYPE_I16,
                                          HAL_TYPE_U8,  HAL_TYPE_I8,   HAL_TYPE_F32, HAL_TYPE_U32,
                                          HAL_TYPE_F64, HAL_TYPE_I64};
enum { GATHERED_TYPES = sizeof(gathered_types) / sizeof(gathered_types[0]) };

/* The memory begins and ends at any element: of a narrow type, in the middle of a word. */
TEST(gathers)
{
    static const uint32_t sizes[][2] = {{64, 1}, {100, 1}, {5, 1}, {3, 20}, {2, 32}, {16, 4}};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 2 * GATHERED_TYPES * SIZES; i++) {
        const hal_type type = gathered_types[i % GATHERED_TYPES];
        const hal_type index_type = i & 1 ? HAL_TYPE_I32 : HAL_TYPE_U32;
        const uint32_t *size = sizes[i / GATHERED_TYPES % SIZES], items = size[0] * size[1];
        for (uint32_t round = 0; round < 4; round++) {
            uint64_t seed = i * 4 + round;
            const uint32_t limit = round == 0 ? items : (uint32_t)(cpu_random(&seed) % items);
            const uint32_t count = size[0] * limit + 5 + round;
            hal_ir_kernel *kernel = gather_kernel(type, index_type, size, count);
            cpu_buffer indices = numbers(index_type, items, i);
            for (uint32_t k = 0; k < items; k++) {
                const uint32_t at = (uint32_t)(cpu_random(&seed) % count);
                ((uint32_t *)indices.data)[k] = k >= limit                   ? 0x7fffff00 + k * 8
                                                : index_type == HAL_TYPE_I32 ? at - count / 2
                                                                             : at;
            }
            if (size[0] < 4) { /* else steps copy the rows */
                check_no_calls(kernel);
            }
            cpu_buffer buffers[] = {numbers(type, count, i), indices,
                                    numbers(hal_type_of_value(type), items, i + 1)};
            check(kernel, 1, buffers, 3, &limit, "gather");
        }
    }
}

/* Each work-item below a limit changes an element that no other one does. */
TEST(scatters)
{
    static const uint32_t sizes[] = {64, 100, 5, 256};
    for (uint32_t i = 0; i < GATHERED_TYPES * 4 * 2; i++) {
        const hal_type type = gathered_types[i % GATHERED_TYPES];
        const uint32_t items = sizes[i / GATHERED_TYPES % 4], apart = i & 1 ? 3 : 7;
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("scatter", &b);
        hal_ir_group_size(b, items, 1, 1);
        const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
        const hal_ir_memory_id to = hal_ir_binding(b, "to", HAL_TYPE_U32, HAL_ACCESS_READ);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
        const hal_ir_value limit = hal_ir_scalar_value(b, "limit", HAL_TYPE_U32);
        const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        const hal_ir_value inside = hal_ir_lt(b, item, limit), index = hal_ir_load(b, to, item);
        const hal_ir_value x = hal_ir_load(b, in, item);
        const hal_ir_value y = hal_ir_load_wide(b, out, index, 0, 1, inside);
        hal_ir_store_wide(b, out, index, 0, inside, hal_ir_add(b, x, y));
        if (i & 1) { /* another element of the work-item, after the first */
            hal_ir_store_wide(b, out, index, 1, inside, hal_ir_sub(b, x, y));
        }
        hal_ir_kernel *kernel = cpu_finish(b);
        uint32_t limits[] = {items, items / 2, 1};
        for (uint32_t round = 0; round < 3; round++) {
            const uint32_t count = apart * limits[round];
            cpu_buffer indices = numbers(HAL_TYPE_U32, items, i);
            for (uint32_t k = 0; k < items; k++) { /* each once, in another order */
                const uint32_t at = (k * 37 + 11) % limits[round];
                ((uint32_t *)indices.data)[k] =
                    k < limits[round] ? (limits[round] % 37 == 0 ? k : at) * apart : 0xfffffff0 + k;
            }
            cpu_trial trial = {
                .kernel = kernel,
                .grid = {1, 1, 1},
                .buffers = {numbers(type, items, i), indices, numbers(type, count, i + round)},
                .buffer_count = 3,
                .scalars = &limits[round],
                .what = "scatter"};
            cpu_trial_check(&trial);
            for (uint32_t k = 0; k < 3; k++) {
                free(trial.buffers[k].data);
            }
        }
        hal_ir_kernel_destroy(kernel);
    }
}

UNIT_MAIN(NULL, cpu_close_all)
