/* Random programs, loops at the limits of their type and functions of small operands, on each
 * instruction set against the reference interpreter. hal-conformance checks every opcode and access
 * on each instruction set; programs find faults in how the lowering combines them. */
#include "cpu_program.h"

#include <math.h>

TEST(loops_end_at_the_limit_of_their_type)
{
    for (uint32_t apart = 0; apart < 2; apart++) {
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("ends", &b);
        hal_ir_group_size(b, 32, 1, 1);
        hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_READ_WRITE);
        hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        hal_ir_value count = hal_ir_var(b, hal_ir_i32(b, 0));
        hal_ir_value start = hal_ir_i32(b, INT32_MAX - 9);
        if (apart) {
            start = hal_ir_sub(b, start, hal_ir_cast(b, HAL_TYPE_I32, i));
        }
        hal_ir_value k = hal_ir_for(b, start, hal_ir_i32(b, INT32_MAX - 4), hal_ir_i32(b, 3));
        hal_ir_set(b, count, hal_ir_xor(b, hal_ir_get(b, count), k));
        hal_ir_end(b);
        hal_ir_for(b, hal_ir_i32(b, 5), hal_ir_i32(b, 5), hal_ir_i32(b, 1));
        hal_ir_set(b, count, hal_ir_i32(b, 77));
        hal_ir_end(b);
        hal_ir_store(b, out, i, hal_ir_get(b, count));
        cpu_buffer buffers[] = {numbers(HAL_TYPE_I32, 32, 3)};
        check(cpu_finish(b), 1, buffers, 1, NULL, "loop at the end");
    }
}

/* Both sums could be computed in the memory that both are stored to; the first one is needed after
 * the second one is known. */
TEST(stores_to_one_place)
{
    enum { ITEMS = 64 };
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("place", &b);
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id both = hal_ir_binding(b, "both", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value item = hal_ir_global_id(b, 0), x = hal_ir_load(b, in, item);
    const hal_ir_value first = hal_ir_add(b, x, hal_ir_u32(b, 1));
    hal_ir_store(b, out, item, first);
    const hal_ir_value second = hal_ir_mul(b, x, x);
    hal_ir_store(b, both, item, hal_ir_sub(b, second, first));
    hal_ir_store(b, out, item, second);
    cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, ITEMS, 3), numbers(HAL_TYPE_U32, ITEMS, 4),
                            numbers(HAL_TYPE_U32, ITEMS, 5)};
    check(cpu_finish(b), 1, buffers, 3, NULL, "two stores to one place");
}

/* A sum over the lanes of a subgroup, and a load whose guard is the same for all. Long programs
 * compute several vectors together. */
static hal_ir_kernel *butterfly_kernel(hal_type type, uint32_t items, uint32_t operations)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("butterfly", &b);
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value item = hal_ir_global_id(b, 0);
    const hal_ir_value some = hal_ir_lt(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_u32(b, 1));
    hal_ir_value sum = hal_ir_load(b, in, item);
    for (uint32_t apart = 1; apart < CPU_FIXTURE_SUBGROUP; apart *= 2) {
        sum = hal_ir_add(b, sum, hal_ir_shuffle_xor(b, sum, apart));
    }
    for (uint32_t i = 0; i < operations; i++) {
        sum = hal_ir_mul(b, sum, hal_ir_number(b, type, 3));
        sum = hal_ir_sub(b, sum, hal_ir_number(b, type, i));
    }
    sum = hal_ir_add(b, sum, hal_ir_load_wide(b, in, item, 0, 1, some));
    hal_ir_store_wide(b, out, item, 0, HAL_IR_NONE, sum);
    return cpu_finish(b);
}

/* Compiled kernels exchange lanes and choose masks without steps; only the last of a group's
 * subgroups may lack lanes, and then steps do it. */
TEST(butterflies)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U32, HAL_TYPE_F64, HAL_TYPE_I64};
    static const uint32_t sizes[] = {16, 48, 64, 256, 24};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), GROUPS = 3 };
    for (uint32_t i = 0; i < 8 * SIZES; i++) {
        const hal_type type = types[i % 4];
        const uint32_t items = sizes[i / 4 % SIZES];
        cpu_trial trial = {.kernel = butterfly_kernel(type, items, i < 4 * SIZES ? 0 : 30),
                           .grid = {GROUPS, 1, 1},
                           .what = "butterfly",
                           .buffer_count = 2};
        trial.buffers[0] = numbers(type, items * GROUPS, i);
        trial.buffers[1] = numbers(type, items * GROUPS, i + 1);
        cpu_trial_check(&trial);
        if (items % CPU_FIXTURE_SUBGROUP == 0) {
            check_no_calls(trial.kernel);
        }
        free(trial.buffers[0].data);
        free(trial.buffers[1].data);
        hal_ir_kernel_destroy((hal_ir_kernel *)trial.kernel);
    }
}

/* Lanes that exchange values in memory: no vector is stored before another one needs its place. */
TEST(exchanges_in_place)
{
    for (uint32_t apart = 1; apart < CPU_FIXTURE_SUBGROUP; apart++) {
        enum { ITEMS = 64 };
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("place", &b);
        hal_ir_group_size(b, ITEMS, 1, 1);
        const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
        const hal_ir_value item = hal_ir_global_id(b, 0), own = hal_ir_load(b, x, item);
        hal_ir_store(b, x, item, hal_ir_shuffle_xor(b, own, apart));
        cpu_buffer buffers[] = {numbers(HAL_TYPE_F32, ITEMS, 3)};
        check(cpu_finish(b), 1, buffers, 1, NULL, "exchange in place");
    }
}

/* Outputs that bypass the caches: from a multiple of a line and not, two that differ in that, the
 * same one twice, and with a guard that the last group does not pass as a whole. */
TEST(streams)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U32, HAL_TYPE_F64, HAL_TYPE_I64};
    static const uint32_t sizes[] = {16, 48, 64, 256, 1024};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), GROUPS = 3 };
    for (uint32_t i = 0; i < 16 * SIZES; i++) {
        const hal_type type = types[i % 4], other = types[i / 4 % 4];
        const uint32_t items = sizes[i / 16], all = items * GROUPS, room = all + 48;
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("streams", &b);
        hal_ir_group_size(b, items, 1, 1);
        const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
        const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_WRITE);
        const hal_ir_memory_id y = hal_ir_binding(b, "y", other, HAL_ACCESS_WRITE);
        const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
        const hal_ir_value base = hal_ir_scalar_value(b, "base", HAL_TYPE_U32);
        const hal_ir_value item = hal_ir_global_id(b, 0);
        const hal_ir_value inside = hal_ir_lt(b, item, count);
        const hal_ir_value to = hal_ir_add(b, item, base);
        hal_ir_value value = hal_ir_load_wide(b, in, item, 0, 1, inside);
        for (uint32_t k = 0; k < (i % 3 ? 1 : 30); k++) { /* one vector, or several together */
            value = hal_ir_add(b, hal_ir_mul(b, value, value), hal_ir_number(b, type, k));
        }
        hal_ir_store_wide(b, x, to, 0, inside, value);
        hal_ir_store_wide(b, y, item, 16, inside, hal_ir_cast(b, other, value));
        hal_ir_store_wide(b, y, item, (int32_t)all + 16 + i % 5, inside,
                          hal_ir_cast(b, other, item));
        hal_ir_kernel *kernel = cpu_finish(b);
        for (uint32_t round = 0; round < 4; round++) {
            const uint32_t scalars[] = {round == 1 ? all - 5 : all, round < 2 ? 0 : round * 8};
            cpu_trial trial = {.kernel = kernel,
                               .grid = {GROUPS, 1, 1},
                               .buffers = {numbers(type, all, i),
                                           numbers(type, room + round % 2, round),
                                           numbers(other, 2 * room, i + round)},
                               .buffer_count = 3,
                               .scalars = scalars,
                               .what = "streams"};
            cpu_trial_check(&trial);
            for (uint32_t k = 0; k < 3; k++) {
                free(trial.buffers[k].data);
            }
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* What needs no rounding, next to what does: signs, the greatest, a choice, a constant, a sum. */
TEST(narrow_values)
{
    static const hal_type types[] = {HAL_TYPE_BF16, HAL_TYPE_F16};
    static const double constants[] = {1.5, 1.0 + 0x1p-20};
    for (uint32_t i = 0; i < 32; i++) {
        const hal_type type = types[i & 1];
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("narrow_values", &b);
        hal_ir_group_size(b, 64, 1, 1);
        const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
        const hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        const hal_ir_value x = hal_ir_load_wide(b, in, id, 0, 1, HAL_IR_NONE);
        const hal_ir_value y = hal_ir_load_wide(b, in, id, 64, 1, HAL_IR_NONE);
        const hal_ir_value c = hal_ir_number(b, HAL_TYPE_F32, constants[i >> 1 & 1]);
        const hal_ir_value z = i & 4 ? hal_ir_add(b, x, y) : hal_ir_abs(b, y);
        hal_ir_value value = hal_ir_max(b, hal_ir_neg(b, x), i & 8 ? c : z);
        value = i & 16 ? hal_ir_select(b, hal_ir_lt(b, x, y), z, value) : value;
        hal_ir_store_wide(b, out, id, 0, HAL_IR_NONE, value);
        cpu_buffer buffers[2] = {numbers(type, 128, i), numbers(type, 64, i + 1)};
        check(cpu_finish(b), 1, buffers, 2, NULL, "narrow values");
    }
}

/* A group at the edge of a grid: the first `nx` work-items of the first `ny` rows are inside. A
 * matrix is transposed, and the rest of the output stays. */
static hal_ir_kernel *edge_kernel(hal_type type, uint32_t wide, uint32_t high)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("edge", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value nx = hal_ir_scalar_value(b, "nx", HAL_TYPE_U32);
    const hal_ir_value ny = hal_ir_scalar_value(b, "ny", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value inside = hal_ir_and(b, hal_ir_lt(b, x, nx), hal_ir_lt(b, y, ny));
    const hal_ir_value from = hal_ir_add(b, hal_ir_mul(b, x, ny), y);
    const hal_ir_value to = hal_ir_add(b, hal_ir_mul(b, y, nx), x);
    hal_ir_value value = hal_ir_load_wide(b, in, from, 0, 1, inside);
    value = hal_ir_add(b, value, hal_ir_load_wide(b, in, y, 0, 1, inside)); /* the same for rows */
    hal_ir_store_wide(b, out, to, 0, inside, value);
    return cpu_finish(b);
}

TEST(edges)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U16, HAL_TYPE_F16, HAL_TYPE_F64};
    static const uint32_t sizes[][2] = {{64, 1}, {16, 16}, {9, 7}, {14, 18}, {1, 33}, {40, 3}};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 4 * SIZES; i++) {
        const uint32_t *size = sizes[i / 4];
        const hal_type type = types[i % 4];
        hal_ir_kernel *kernel = edge_kernel(type, size[0], size[1]);
        for (uint32_t round = 0; round < 6; round++) {
            uint64_t seed = i * 6 + round;
            const struct {
                uint32_t nx, ny;
            } scalars = {round == 0 ? size[0] : 1 + (uint32_t)(cpu_random(&seed) % size[0]),
                         round == 1 ? size[1] : 1 + (uint32_t)(cpu_random(&seed) % size[1])};
            const uint32_t count = scalars.nx * scalars.ny;
            cpu_trial trial = {.kernel = kernel, .grid = {1, 1, 1}, .buffer_count = 2};
            trial.scalars = &scalars;
            trial.what = "edge";
            trial.buffers[0] = numbers(type, count, seed);
            trial.buffers[1] = numbers(type, count, seed + 1);
            cpu_trial_check(&trial);
            free(trial.buffers[0].data);
            free(trial.buffers[1].data);
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* A group of rows that are `stride` apart: neighbours, and an element of each row, are loaded under
 * two guards and without, changed by many operations or few, exchanged over each distance, and
 * stored; the last lane of a row stores an element. Strides may be negative. */
static hal_ir_kernel *rows_kernel(hal_type type, uint32_t wide, uint32_t high, uint32_t operations)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("rows", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id ends = hal_ir_binding(b, "ends", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value nx = hal_ir_scalar_value(b, "nx", HAL_TYPE_U32);
    const hal_ir_value ny = hal_ir_scalar_value(b, "ny", HAL_TYPE_U32);
    const hal_ir_value stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    const hal_ir_value base = hal_ir_scalar_value(b, "base", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value inside = hal_ir_lt(b, y, ny);
    const hal_ir_value all = hal_ir_and(b, inside, hal_ir_lt(b, x, nx));
    const hal_ir_value place = hal_ir_add(b, hal_ir_add(b, hal_ir_mul(b, y, stride), x), base);
    const hal_ir_value first = hal_ir_load_wide(b, in, place, 0, 1, inside);
    const hal_ir_value second = hal_ir_load_wide(b, in, place, (int32_t)wide, 1, all);
    hal_ir_value value = hal_ir_add(b, first, second);
    const hal_ir_value line = hal_ir_mul(b, y, stride);
    const hal_ir_value column = hal_ir_lt(b, x, nx);
    value = hal_ir_add(b, value, hal_ir_load_wide(b, in, hal_ir_add(b, line, base), 0, 1, all));
    value = hal_ir_add(b, value, hal_ir_load_wide(b, in, y, 1, 1, column));
    value = hal_ir_add(b, value, hal_ir_load_wide(b, in, y, 0, 1, HAL_IR_NONE));
    for (uint32_t k = 0; k < operations; k++) {
        value = hal_ir_max(b, hal_ir_add(b, value, second), first);
    }
    hal_ir_store_wide(b, out, place, 0, all, value);
    hal_ir_store_wide(b, out, place, (int32_t)wide, all, hal_ir_add(b, value, first));
    for (uint32_t apart = 1; apart < 16; apart *= 2) {
        value = hal_ir_add(b, value, hal_ir_shuffle_xor(b, value, apart));
    }
    if (type == HAL_TYPE_F32 && operations > 1) { /* vectors of half as many lanes from here on */
        const hal_ir_value whole = hal_ir_cast(b, HAL_TYPE_F64, value);
        value = hal_ir_cast(b, type, hal_ir_mul(b, whole, hal_ir_number(b, HAL_TYPE_F64, 1.5)));
    }
    hal_ir_store_wide(b, ends, y, 1, inside, hal_ir_add(b, value, first));
    return cpu_finish(b);
}

TEST(rows)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_I8, HAL_TYPE_F16, HAL_TYPE_BF16,
                                     HAL_TYPE_F64};
    static const uint32_t sizes[][2] = {{16, 16}, {16, 4}, {32, 3}, {64, 4},
                                        {48, 2},  {64, 1}, {16, 1}};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 2 * TYPES * SIZES; i++) {
        const uint32_t *size = sizes[i / TYPES % SIZES];
        const hal_type type = types[i % TYPES];
        hal_ir_kernel *kernel = rows_kernel(type, size[0], size[1], i < TYPES * SIZES ? 1 : 40);
        for (uint32_t round = 0; round < 4; round++) {
            uint64_t seed = i * 4 + round;
            const uint32_t stride = 2 * size[0] + round;
            const struct {
                uint32_t nx, ny, stride, base;
            } scalars = {round == 0 ? size[0] : (uint32_t)(cpu_random(&seed) % size[0]),
                         round < 2 ? size[1] : 1 + (uint32_t)(cpu_random(&seed) % size[1]),
                         round == 3 ? UINT32_C(0) - stride : stride,
                         round == 3 ? (size[1] - 1) * stride : round};
            const uint32_t count = (size[1] + 1) * stride;
            cpu_trial trial = {.kernel = kernel, .grid = {1, 1, 1}, .buffer_count = 3};
            trial.scalars = &scalars;
            trial.what = "rows";
            for (uint32_t k = 0; k < 3; k++) {
                trial.buffers[k] = numbers(type, k < 2 ? count : size[1] + 1, seed + k);
            }
            cpu_trial_check(&trial);
            for (uint32_t k = 0; k < 3; k++) {
                free(trial.buffers[k].data);
            }
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* Rows whose lanes read and write elements that are `apart` elements from each other, under a guard
 * and without, changed by many operations or few. */
static hal_ir_kernel *apart_kernel(hal_type type, uint32_t wide, uint32_t high, uint32_t apart,
                                   uint32_t operations)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("apart", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id spread = hal_ir_binding(b, "spread", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value nx = hal_ir_scalar_value(b, "nx", HAL_TYPE_U32);
    const hal_ir_value ny = hal_ir_scalar_value(b, "ny", HAL_TYPE_U32);
    const hal_ir_value stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value inside = hal_ir_and(b, hal_ir_lt(b, y, ny), hal_ir_lt(b, x, nx));
    const hal_ir_value lane = hal_ir_mul(b, x, hal_ir_u32(b, apart));
    const hal_ir_value place = hal_ir_add(b, hal_ir_mul(b, y, stride), lane);
    const hal_ir_value first = hal_ir_load_wide(b, in, place, 0, 1, HAL_IR_NONE);
    const hal_ir_value second = hal_ir_load_wide(b, in, place, (int32_t)apart - 1, 1, inside);
    hal_ir_value value = hal_ir_add(b, first, second);
    for (uint32_t k = 0; k < operations; k++) {
        value = hal_ir_max(b, hal_ir_add(b, value, second), first);
    }
    if (type == HAL_TYPE_F32 && operations == 2) { /* vectors of half as many lanes */
        const hal_ir_value whole = hal_ir_cast(b, HAL_TYPE_F64, value);
        value = hal_ir_cast(b, type, hal_ir_mul(b, whole, hal_ir_number(b, HAL_TYPE_F64, 1.5)));
    }
    const hal_ir_value row = hal_ir_mul(b, y, hal_ir_u32(b, wide));
    hal_ir_store_wide(b, out, hal_ir_add(b, row, x), 0, HAL_IR_NONE, value);
    hal_ir_store_wide(b, spread, place, 0, inside, value);
    hal_ir_store_wide(b, spread, place, (int32_t)apart - 1, HAL_IR_NONE, second);
    return cpu_finish(b);
}

TEST(rows_apart)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_I32, HAL_TYPE_BF16};
    static const uint32_t sizes[][2] = {{16, 1}, {16, 7}, {64, 4}, {32, 8}, {48, 2}};
    static const uint32_t operations[] = {0, 2, 40};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), MOST_APART = 5 };
    for (uint32_t i = 0; i < 3 * 3 * SIZES * MOST_APART; i++) {
        const uint32_t *size = sizes[i / 9 % SIZES], apart = 1 + i / 9 / SIZES;
        const hal_type type = types[i % 3];
        hal_ir_kernel *kernel = apart_kernel(type, size[0], size[1], apart, operations[i / 3 % 3]);
        for (uint32_t round = 0; round < 3; round++) {
            uint64_t seed = i * 3 + round;
            const uint32_t stride = apart * size[0] + round;
            const struct {
                uint32_t nx, ny, stride;
            } scalars = {round == 0 ? size[0] : (uint32_t)(cpu_random(&seed) % (size[0] + 1)),
                         round < 2 ? size[1] : (uint32_t)(cpu_random(&seed) % (size[1] + 1)),
                         stride};
            /* The last element that is read is that of the memory. */
            const uint32_t count = stride * (size[1] - 1) + apart * size[0];
            cpu_trial trial = {.kernel = kernel, .grid = {1, 1, 1}, .buffer_count = 3};
            trial.scalars = &scalars;
            trial.what = "rows apart";
            trial.buffers[0] = numbers(type, count, seed);
            trial.buffers[1] = numbers(type, size[0] * size[1], seed + 1);
            trial.buffers[2] = numbers(type, count, seed + 2);
            cpu_trial_check(&trial);
            for (uint32_t k = 0; k < 3; k++) {
                free(trial.buffers[k].data);
            }
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* The sums of rows of 8 chunks, of which the last vectors of a row store one element. */
static hal_ir_kernel *row_sums_kernel(hal_type type, uint32_t wide, uint32_t high)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("row_sums", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id ends = hal_ir_binding(b, "ends", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value rows = hal_ir_scalar_value(b, "rows", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value inside = hal_ir_lt(b, y, rows);
    const hal_ir_value stride = hal_ir_u32(b, 8 * wide + 1);
    const hal_ir_value place = hal_ir_add(b, hal_ir_mul(b, y, stride), x);
    hal_ir_value sum = hal_ir_load_wide(b, in, place, 0, 1, inside);
    for (uint32_t k = 1; k < 8; k++) {
        const hal_ir_value next = hal_ir_load_wide(b, in, place, (int32_t)(k * wide), 1, inside);
        sum = hal_ir_add(b, hal_ir_max(b, sum, next), next);
    }
    for (uint32_t apart = 1; apart < 16; apart *= 2) {
        sum = hal_ir_add(b, sum, hal_ir_shuffle_xor(b, sum, apart));
    }
    hal_ir_store_wide(b, ends, y, 0, inside, sum);
    return cpu_finish(b);
}

TEST(row_sums)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_F64, HAL_TYPE_U32};
    static const uint32_t sizes[][2] = {{16, 16}, {32, 8}, {64, 4}, {64, 1}, {16, 2}};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < 2 * TYPES * SIZES; i++) {
        const uint32_t *size = sizes[i / TYPES % SIZES];
        const uint32_t rows = i < TYPES * SIZES ? size[1] : 1;
        const hal_type type = types[i % TYPES];
        cpu_buffer buffers[] = {numbers(type, size[1] * (8 * size[0] + 1), i),
                                numbers(type, size[1], i + 1)};
        check(row_sums_kernel(type, size[0], size[1]), 1, buffers, 2, &rows, "sums of rows");
    }
}

/* All work-items store a value to one element, and load that. */
TEST(loads_after_stores_to_one_element)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("element", &b);
    hal_ir_group_size(b, 16, 4, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value at = hal_ir_scalar_value(b, "at", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, y, hal_ir_u32(b, 16)), x);
    const hal_ir_value first = hal_ir_load(b, in, at);
    const hal_ir_value next = hal_ir_load(b, in, hal_ir_add(b, first, first));
    hal_ir_store(b, out, at, hal_ir_add(b, first, next));
    const hal_ir_value stored = hal_ir_load(b, out, at);
    hal_ir_store_wide(b, out, item, 64, HAL_IR_NONE, hal_ir_mul(b, stored, stored));
    const uint32_t place = 5;
    cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, 128, 3), numbers(HAL_TYPE_U32, 128, 4)};
    ((uint32_t *)buffers[0].data)[place] = 21;
    check(cpu_finish(b), 1, buffers, 2, &place, "an element that was stored");
}

/* Each work-item swaps two elements that are a group apart, and stores two more: what is read in a
 * loop must not have been written in another one. */
static hal_ir_kernel *swap_kernel(hal_type type, uint32_t items)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("swap", &b);
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id copy = hal_ir_binding(b, "copy", type, HAL_ACCESS_WRITE);
    const hal_ir_value at = hal_ir_scalar_value(b, "at", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_add(b, at, hal_ir_id(b, HAL_IR_LOCAL_ID, 0));
    const int32_t apart = (int32_t)items;
    const hal_ir_value first = hal_ir_load_wide(b, out, x, 0, 1, HAL_IR_NONE);
    const hal_ir_value second = hal_ir_load_wide(b, out, x, apart, 1, HAL_IR_NONE);
    hal_ir_store_wide(b, copy, x, 0, HAL_IR_NONE, first);
    hal_ir_store_wide(b, copy, x, apart, HAL_IR_NONE, second);
    hal_ir_store_wide(b, out, x, apart, HAL_IR_NONE, hal_ir_add(b, first, first));
    hal_ir_store_wide(b, out, x, 0, HAL_IR_NONE, hal_ir_add(b, second, second));
    return cpu_finish(b);
}

TEST(swaps)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_U32, HAL_TYPE_F64};
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t items = 16u << 2 * (i / 4), place = 3;
        const hal_type type = types[i % 4];
        cpu_buffer buffers[] = {numbers(type, 3 * items, i), numbers(type, 3 * items, i + 1)};
        check(swap_kernel(type, items), 1, buffers, 2, &place, "swapped elements");
    }
}

/* A value that is rounded to a type is stored in it, and with bits of `uses` 1 in another one, 2 as
 * it is, 4 after a barrier. The greater one of a constant and a number of the type is rounded. */
static hal_ir_kernel *rounding_kernel(hal_type narrow, hal_type other, uint32_t uses, float least)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("rounding", &b);
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id small = hal_ir_binding(b, "small", narrow, HAL_ACCESS_READ);
    const hal_ir_memory_id first = hal_ir_binding(b, "first", narrow, HAL_ACCESS_WRITE);
    const hal_ir_memory_id second = hal_ir_binding(b, "second", other, HAL_ACCESS_WRITE);
    const hal_ir_memory_id third = hal_ir_binding(b, "third", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id fourth = hal_ir_binding(b, "fourth", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value rounded = hal_ir_narrow(b, narrow, hal_ir_load(b, in, item));
    const hal_ir_value greater = hal_ir_max(b, hal_ir_load(b, small, item), hal_ir_f32(b, least));
    hal_ir_store(b, fourth, item, hal_ir_narrow(b, narrow, greater));
    hal_ir_store(b, first, item, rounded);
    if (uses & 1) {
        hal_ir_store(b, second, item, rounded);
    }
    if (uses & 4) {
        hal_ir_barrier(b);
    }
    if (uses & 2) {
        hal_ir_store(b, third, item, rounded);
    }
    return cpu_finish(b);
}

TEST(rounded_values)
{
    static const float least[] = {0.0f, 0.5f, 1.0001f, 0x1p20f, 0x1p-26f};
    for (uint32_t i = 0; i < 80; i++) {
        const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16};
        const hal_type narrow = types[i & 1], other = types[~i & 1];
        cpu_buffer buffers[] = {numbers(HAL_TYPE_F32, 64, i),     numbers(narrow, 64, i + 1),
                                numbers(narrow, 64, i + 2),       numbers(other, 64, i + 3),
                                numbers(HAL_TYPE_F32, 64, i + 4), numbers(HAL_TYPE_F32, 64, i + 5)};
        check(rounding_kernel(narrow, other, i / 2 % 8, least[i / 16]), 1, buffers, 6, NULL,
              "rounded values");
    }
}

/* Accesses at distances from one index, in two memories, under two guards that are the same for all
 * work-items, by the work-items below a limit. */
static hal_ir_kernel *neighbours_kernel(hal_type type, uint32_t wide, uint32_t high)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("neighbours", &b);
    hal_ir_group_size(b, wide, high, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value limit = hal_ir_scalar_value(b, "limit", HAL_TYPE_U32);
    const hal_ir_value stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    const hal_ir_value on = hal_ir_scalar_value(b, "on", HAL_TYPE_U32);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value guards[] = {hal_ir_lt(b, hal_ir_u32(b, 0), on),
                                   hal_ir_lt(b, hal_ir_u32(b, 1), on)};
    const hal_ir_value place = hal_ir_add(b, hal_ir_mul(b, y, stride), x);
    const int32_t apart = (int32_t)wide;
    hal_ir_if(b, hal_ir_lt(b, x, limit));
    hal_ir_value sum = hal_ir_load_wide(b, in, place, apart, 1, guards[0]);
    for (int32_t k = 0; k < 4; k++) {
        const hal_ir_value guard = guards[(k + 1) % 2];
        sum = hal_ir_add(b, sum, hal_ir_load_wide(b, in, place, (3 - k) * apart, 1, guard));
        sum = hal_ir_add(b, sum, hal_ir_load_wide(b, out, place, k * apart, 1, guard));
        hal_ir_store_wide(b, out, place, (k + 1) * apart, guard, sum);
    }
    hal_ir_end(b);
    return cpu_finish(b);
}

TEST(neighbours)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U8, HAL_TYPE_F16, HAL_TYPE_F64};
    static const uint32_t sizes[][2] = {{64, 1}, {16, 4}, {256, 1}, {20, 1}, {32, 2}};
    enum { TYPES = sizeof(types) / sizeof(types[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t i = 0; i < TYPES * SIZES; i++) {
        const uint32_t *size = sizes[i / TYPES];
        const hal_type type = types[i % TYPES];
        hal_ir_kernel *kernel = neighbours_kernel(type, size[0], size[1]);
        for (uint32_t round = 0; round < 6; round++) {
            const struct {
                uint32_t limit, stride, on;
            } scalars = {round & 1 ? size[0] - 3 : size[0], 5 * size[0] + 7, round / 2};
            const uint32_t count = size[1] * scalars.stride;
            cpu_buffer buffers[] = {numbers(type, count, i), numbers(type, count, i + 1)};
            cpu_trial trial = {.kernel = kernel, .grid = {1, 1, 1}, .buffer_count = 2};
            trial.scalars = &scalars;
            trial.what = "neighbours";
            memcpy(trial.buffers, buffers, sizeof buffers);
            cpu_trial_check(&trial);
            free(trial.buffers[0].data);
            free(trial.buffers[1].data);
        }
        hal_ir_kernel_destroy(kernel);
    }
}

/* Magnitudes below 1, with zeros and denormals. From the third on, each piece of 256 operands has
 * one of another magnitude at its beginning, end or in between, which selects the piece's path. */
static void fill_small(cpu_buffer *buffer, int positive, uint64_t seed)
{
    static const double odd[] = {0.5, 1.0, -3.0, 0x1p17, 1e30, NAN, -0x1p-149, -1.0};
    enum { PIECE = 256 };
    buffer->data = malloc((size_t)buffer->count * hal_type_size(buffer->type));
    for (uint32_t i = 0; i < buffer->count; i++) {
        const uint64_t any = cpu_random(&seed);
        double x = (double)(any >> 11) * 0x1p-53;
        x = any % 7 == 0 ? x * 0x1p-140 : any % 31 == 0 ? 0.0 : x;
        x = positive ? x + 0x1p-100 : any & 1 << 9 ? -x : x;
        const uint32_t piece = i / PIECE, at = piece % 3 == 0 ? 0 : piece % 3 == 1 ? 255 : 100;
        x = piece >= 2 && i % PIECE == at ? odd[piece % 8] : x;
        if (buffer->type == HAL_TYPE_F32) {
            ((float *)buffer->data)[i] = (float)x;
        } else {
            ((double *)buffer->data)[i] = x;
        }
    }
}

/* Functions have separate paths for operands that are all small, or all ordinary: the same bits,
 * also when the second of two calls computes in place. */
static void check_small(uint32_t opcode, hal_type type, int positive)
{
    enum { ITEMS = 1024, GROUPS = 3 };
    char what[96];
    snprintf(what, sizeof(what), "%s of small %s", hal_ir_opcode_name(opcode), hal_type_name(type));
    hal_ir_builder *b = NULL;
    assert_int_equal(hal_ir_builder_create("small", &b), HAL_OK);
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id once = hal_ir_binding(b, "once", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id twice = hal_ir_binding(b, "twice", type, HAL_ACCESS_WRITE);
    const hal_ir_value item = hal_ir_global_id(b, 0);
    const hal_ir_value x = hal_ir_load(b, in, item), y = hal_ir_unary(b, opcode, x);
    hal_ir_store(b, once, item, y);
    hal_ir_store(b, twice, item, hal_ir_unary(b, opcode, hal_ir_neg(b, hal_ir_neg(b, x))));
    cpu_trial trial = {.kernel = cpu_finish(b), .grid = {GROUPS, 1, 1}, .what = what};
    trial.buffer_count = 3;
    for (uint32_t k = 0; k < 3; k++) {
        trial.buffers[k] = (cpu_buffer){.type = type, .count = ITEMS * GROUPS};
        fill_small(&trial.buffers[k], positive, opcode);
    }
    cpu_trial_check(&trial);
    for (uint32_t k = 0; k < 3; k++) {
        free(trial.buffers[k].data);
    }
    hal_ir_kernel_destroy((hal_ir_kernel *)trial.kernel);
}

TEST(small_operands)
{
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        for (int positive = 0; hal_ir_is_math(opcode) && positive < 2; positive++) {
            if (opcode != HAL_IR_POW) {
                check_small(opcode, HAL_TYPE_F32, positive);
                check_small(opcode, HAL_TYPE_F64, positive);
            }
        }
    }
}

/* Rows of a group that are columns of memory, or every second one, whole and clipped by a guard;
 * they are stored as rows that are apart. */
static void check_transposed(hal_type type, const uint32_t size[3], int64_t distance)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("transposed", &b);
    hal_ir_group_size(b, size[0], size[1], size[2]);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value z = hal_ir_id(b, HAL_IR_LOCAL_ID, 2),
                       group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    const hal_ir_value columns = hal_ir_scalar_value(b, "columns", HAL_TYPE_U32);
    const hal_ir_value rows = hal_ir_scalar_value(b, "rows", HAL_TYPE_U32);
    const uint32_t layer = (uint32_t)distance * size[0], pitch = size[0] + 3;
    const uint32_t items = size[1] * size[2] * pitch;
    const hal_ir_value column = hal_ir_add(b, hal_ir_mul(b, group, hal_ir_u32(b, size[0])), x);
    const hal_ir_value guard = hal_ir_and(b, hal_ir_lt(b, column, columns), hal_ir_lt(b, y, rows));
    const hal_ir_value from =
        hal_ir_add(b, hal_ir_add(b, hal_ir_mul(b, x, hal_ir_u32(b, (uint32_t)distance)), y),
                   hal_ir_mul(b, z, hal_ir_u32(b, layer)));
    const hal_ir_value line = hal_ir_add(b, hal_ir_mul(b, z, hal_ir_u32(b, size[1])), y);
    const hal_ir_value to =
        hal_ir_add(b, hal_ir_add(b, hal_ir_mul(b, line, hal_ir_u32(b, pitch)), x),
                   hal_ir_mul(b, group, hal_ir_u32(b, items)));
    const hal_ir_value value = hal_ir_load_wide(b, in, from, 0, 1, guard);
    hal_ir_store(b, out, to, value);
    const uint32_t scalars[] = {size[0] + (size[0] + 1) / 2, size[1] - size[1] / 3};
    const uint32_t count = layer * size[2] + size[1];
    cpu_buffer buffers[] = {numbers(type, (count + 7) / 8 * 8, 7), numbers(type, items * 2 + 8, 9)};
    check(cpu_finish(b), 2, buffers, 2, scalars, hal_type_name(type));
}

TEST(transposed_tiles)
{
    static const uint32_t sizes[][3] = {{16, 16, 1}, {25, 13, 1}, {4, 4, 3},  {5, 7, 2},
                                        {3, 9, 1},   {9, 3, 1},   {32, 32, 1}};
    static const hal_type types[] = {HAL_TYPE_BOOL, HAL_TYPE_I8,   HAL_TYPE_U16,
                                     HAL_TYPE_F16,  HAL_TYPE_BF16, HAL_TYPE_F32,
                                     HAL_TYPE_I32,  HAL_TYPE_F64,  HAL_TYPE_U64};
    for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        for (uint32_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            check_transposed(types[t], sizes[k], 2);
            check_transposed(types[t], sizes[k], 37);
        }
    }
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *wanted = getenv(variable);
    return wanted ? strtoull(wanted, NULL, 10) : otherwise;
}

/* CPU_TEST_PROGRAMS sets their number, CPU_TEST_FIRST the first one. */
TEST(random_programs)
{
    const uint64_t first = number_from("CPU_TEST_FIRST", 0);
    const uint64_t count = number_from("CPU_TEST_PROGRAMS", 200);
    for (uint64_t seed = first; seed < first + count; seed++) {
        check_program(seed, NULL, 0);
    }
}

UNIT_MAIN(NULL, cpu_close_all)
