/* The cpu plugin's memory: every storage type, width and way to reach elements, with and without
 * guards and masks, in bindings and in shared memory, against the reference interpreter. */
#include "cpu_fixture.h"

/* How the element of a work-item follows from its places. */
typedef enum pattern {
    NEIGHBOURS,
    REVERSED,
    STRIDED,
    BROADCAST,
    ROWS,     /* of the group's second dimension, a scalar apart */
    COLUMNS,  /* transposed */
    FROM_ROW, /* quotient and remainder of a place */
    SCATTERED,
    BY_VALUE, /* neighbours, but the index is computed in lanes */
    PATTERNS
} pattern;

typedef enum guard_kind {
    NO_GUARD,
    EDGE,
    FLIPPED_EDGE,
    TWO_EDGES,
    ODD_ITEMS,
    NOBODY,
    GUARDS
} guard_kind;

typedef struct shape {
    uint32_t group[3], groups;
} shape;

static const shape shapes[] = {{{64, 1, 1}, 3}, {{256, 1, 1}, 2}, {{37, 1, 1}, 3}, {{8, 8, 1}, 2},
                               {{16, 3, 2}, 2}, {{1, 1, 1}, 5},   {{5, 7, 1}, 2},  {{1, 32, 2}, 2}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

typedef struct build {
    hal_ir_builder *b;
    const shape *shape;
    uint32_t items, total;
    hal_ir_value place[3], group, linear, stride, edge;
} build;

static hal_ir_value u32(build *m, uint32_t value)
{
    return hal_ir_u32(m->b, value);
}

/* An index below the number of work-items of the grid, times `width`. */
static hal_ir_value index_of(build *m, pattern p, uint32_t width)
{
    hal_ir_builder *b = m->b;
    const hal_ir_value first = hal_ir_mul(b, m->group, u32(m, m->items));
    const uint32_t *g = m->shape->group;
    hal_ir_value in_group = m->linear, index;
    switch (p) {
    case REVERSED:
        in_group = hal_ir_sub(b, u32(m, m->items - 1), m->linear);
        break;
    case BROADCAST:
        in_group = u32(m, m->items / 2);
        break;
    case ROWS: { /* the scalar `stride` is the length of a row, which the plugin does not know */
        hal_ir_value y = hal_ir_add(b, m->place[1], hal_ir_mul(b, m->place[2], u32(m, g[1])));
        in_group = hal_ir_add(b, hal_ir_mul(b, y, m->stride), m->place[0]);
        break;
    }
    case COLUMNS: {
        hal_ir_value x = hal_ir_mul(b, m->place[0], u32(m, g[1] * g[2]));
        in_group = hal_ir_add(b, x, hal_ir_mul(b, m->place[1], u32(m, g[2])));
        in_group = hal_ir_add(b, in_group, m->place[2]);
        break;
    }
    case FROM_ROW:
        if (g[0] % 8 == 0 && g[1] == 1) {
            hal_ir_value row = hal_ir_shr(b, m->place[0], u32(m, 3));
            hal_ir_value column = hal_ir_and(b, m->place[0], u32(m, 7));
            in_group = hal_ir_mul(b, column, u32(m, g[0] / 8));
            in_group = hal_ir_add(b, in_group, row);
        }
        break;
    case SCATTERED:
        in_group = hal_ir_mul(b, m->linear, u32(m, 7));
        in_group = hal_ir_rem(b, hal_ir_add(b, in_group, u32(m, 3)), u32(m, m->items));
        break;
    case BY_VALUE:
        in_group = hal_ir_xor(b, hal_ir_xor(b, m->linear, u32(m, 5)), u32(m, 5));
        break;
    default:
        break;
    }
    index = hal_ir_add(b, first, in_group);
    if (p == STRIDED) { /* every other element: buffers are twice as long as they need to be */
        index = hal_ir_mul(b, index, u32(m, 2));
    }
    return width == 1 ? index : hal_ir_mul(b, index, u32(m, width));
}

static hal_ir_value guard_of(build *m, guard_kind g)
{
    hal_ir_builder *b = m->b;
    hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, m->group, u32(m, m->items)), m->linear);
    switch (g) {
    case EDGE:
        return hal_ir_lt(b, item, m->edge);
    case FLIPPED_EDGE:
        return hal_ir_le(b, m->edge, item);
    case TWO_EDGES:
        return hal_ir_and(b, hal_ir_lt(b, item, m->edge),
                          hal_ir_lt(b, u32(m, 3), hal_ir_add(b, m->place[0], m->place[1])));
    case ODD_ITEMS:
        return hal_ir_eq(b, hal_ir_and(b, hal_ir_xor(b, item, u32(m, 2)), u32(m, 1)), u32(m, 1));
    case NOBODY:
        return hal_ir_lt(b, m->edge, m->stride);
    default:
        return HAL_IR_NONE;
    }
}

static void begin(build *m, const shape *s)
{
    hal_ir_builder *b = NULL;
    assert_int_equal(hal_ir_builder_create("memory", &b), HAL_OK);
    hal_ir_group_size(b, s->group[0], s->group[1], s->group[2]);
    m->b = b;
    m->shape = s;
    m->items = s->group[0] * s->group[1] * s->group[2];
    m->total = m->items * s->groups;
}

/* After the bindings: the places and the scalars {stride, edge}. */
static void begin_places(build *m)
{
    hal_ir_builder *b = m->b;
    const uint32_t *g = m->shape->group;
    m->stride = hal_ir_scalar_value(b, "stride", HAL_TYPE_U32);
    m->edge = hal_ir_scalar_value(b, "edge", HAL_TYPE_U32);
    for (uint32_t k = 0; k < 3; k++) {
        m->place[k] = hal_ir_id(b, HAL_IR_LOCAL_ID, k);
    }
    m->group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    m->linear = m->place[0];
    if (g[1] > 1 || g[2] > 1) {
        hal_ir_value y = hal_ir_add(b, m->place[1], hal_ir_mul(b, m->place[2], u32(m, g[1])));
        m->linear = hal_ir_add(b, hal_ir_mul(b, y, u32(m, g[0])), m->linear);
    }
}

static cpu_buffer buffer_of(hal_type type, uint32_t count, uint64_t seed)
{
    cpu_buffer buffer = {.type = type, .count = count};
    uint8_t *bytes = malloc((size_t)count * hal_type_size(type));
    for (size_t i = 0; i < (size_t)count * hal_type_size(type); i++) {
        const uint8_t any = (uint8_t)cpu_random(&seed);
        bytes[i] = type == HAL_TYPE_BOOL ? any & 1 : any;
    }
    buffer.data = bytes;
    return buffer;
}

static void run(build *m, cpu_trial *trial, const char *what)
{
    const uint32_t scalars[2] = {m->shape->group[0], m->total - m->total / 3};
    hal_ir_kernel *kernel = cpu_finish(m->b);
    trial->kernel = kernel;
    trial->what = what;
    trial->scalars = scalars;
    trial->grid[0] = m->shape->groups;
    trial->grid[1] = trial->grid[2] = 1;
    cpu_check(trial);
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        free(trial->buffers[i].data);
    }
    hal_ir_kernel_destroy(kernel);
}

/* out[to(i)] = in[from(i)] where the guards allow. */
static void check_copy(const shape *s, hal_type type, uint32_t width, pattern from, pattern to,
                       guard_kind g)
{
    char what[128];
    build m;
    cpu_trial trial = {.buffer_count = 2};
    snprintf(what, sizeof(what), "%s x %u, pattern %d to %d, guard %d, group %u %u %u",
             hal_type_name(type), width, (int)from, (int)to, (int)g, s->group[0], s->group[1],
             s->group[2]);
    begin(&m, s);
    hal_ir_memory_id in = hal_ir_binding(m.b, "in", type, HAL_ACCESS_READ);
    hal_ir_memory_id out = hal_ir_binding(m.b, "out", type, HAL_ACCESS_READ_WRITE);
    begin_places(&m);
    hal_ir_value guard = guard_of(&m, g);
    hal_ir_value v =
        hal_ir_load_wide(m.b, in, index_of(&m, from, width), (int32_t)width, width, guard);
    hal_ir_store_wide(m.b, out, index_of(&m, to, width), (int32_t)width, guard, v);
    trial.buffers[0] = buffer_of(type, (2 * m.total + 2) * width, 1);
    trial.buffers[1] = buffer_of(type, (2 * m.total + 2) * width, 2);
    run(&m, &trial, what);
}

static void test_copies(void **state)
{
    const uint32_t types = cpu_storage_types();
    for (uint32_t type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t width = 1; width <= (types & HAL_TYPE_BIT(type) ? 8u : 0u); width *= 2) {
            for (uint32_t s = 0; s < SHAPES; s++) {
                const pattern p = (pattern)((type + width + s) % PATTERNS);
                const guard_kind g = (guard_kind)((type + s) % GUARDS);
                check_copy(&shapes[s], (hal_type)type, width, p, NEIGHBOURS, g);
                check_copy(&shapes[s], (hal_type)type, width, NEIGHBOURS, p == BROADCAST ? ROWS : p,
                           g);
            }
        }
    }
}

static void test_patterns(void **state)
{
    for (uint32_t s = 0; s < SHAPES; s++) {
        for (pattern p = 0; p < PATTERNS; p++) {
            for (guard_kind g = 0; g < GUARDS; g++) {
                check_copy(&shapes[s], HAL_TYPE_F32, 1, p, NEIGHBOURS, g);
                check_copy(&shapes[s], HAL_TYPE_U64, 2, p, ROWS, g);
                check_copy(&shapes[s], HAL_TYPE_I8, 1, NEIGHBOURS, p == BROADCAST ? COLUMNS : p, g);
            }
        }
    }
}

/* Every work-item writes the same element: the last one stays, under guards too. */
static void test_same_place(void **state)
{
    for (guard_kind g = 0; g < GUARDS; g++) {
        for (uint32_t s = 0; s < SHAPES; s++) {
            build m;
            cpu_trial trial = {.buffer_count = 1};
            begin(&m, &shapes[s]);
            hal_ir_memory_id out = hal_ir_binding(m.b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
            begin_places(&m);
            hal_ir_value guard = guard_of(&m, g);
            hal_ir_store_wide(m.b, out, m.group, 0, guard, m.linear);
            hal_ir_store_wide(m.b, out, m.group, (int32_t)shapes[s].groups, guard, m.group);
            trial.buffers[0] = buffer_of(HAL_TYPE_U32, 2 * shapes[s].groups, 3);
            run(&m, &trial, "same place");
        }
    }
}

/* Through shared memory: written one way, read another after a barrier, written over and read
 * again, so that nothing of the first reading may be a view of it. */
static void check_shared(const shape *s, hal_type type, uint32_t width, pattern p)
{
    char what[96];
    build m;
    cpu_trial trial = {.buffer_count = 2};
    snprintf(what, sizeof(what), "shared %s x %u, pattern %d, group %u %u %u", hal_type_name(type),
             width, (int)p, s->group[0], s->group[1], s->group[2]);
    begin(&m, s);
    hal_ir_builder *b = m.b;
    hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    hal_ir_memory_id tile = hal_ir_shared(b, "tile", type, 2 * m.items * width);
    begin_places(&m);
    hal_ir_value at = index_of(&m, NEIGHBOURS, width);
    m.group = hal_ir_u32(b, 0);
    hal_ir_value mine = index_of(&m, NEIGHBOURS, width), other = index_of(&m, p, width);
    hal_ir_store_wide(b, tile, mine, 0, HAL_IR_NONE,
                      hal_ir_load_wide(b, in, at, 0, width, HAL_IR_NONE));
    if (p == STRIDED) {
        hal_ir_store_wide(b, tile, mine, (int32_t)(m.items * width), HAL_IR_NONE,
                          hal_ir_load_wide(b, in, at, 0, width, HAL_IR_NONE));
    }
    hal_ir_barrier(b);
    hal_ir_value first = hal_ir_load_wide(b, tile, other, 0, width, HAL_IR_NONE);
    hal_ir_barrier(b);
    hal_ir_store_wide(b, tile, mine, 0, HAL_IR_NONE,
                      hal_ir_load_wide(b, in, at, 0, width, guard_of(&m, ODD_ITEMS)));
    hal_ir_barrier(b);
    hal_ir_value second = hal_ir_load_wide(b, tile, mine, 0, width, HAL_IR_NONE);
    hal_ir_store_wide(b, out, at, 0, HAL_IR_NONE, first);
    hal_ir_store_wide(b, out, at, (int32_t)(m.total * width), HAL_IR_NONE, second);
    trial.buffers[0] = buffer_of(type, m.total * width, 5);
    trial.buffers[1] = buffer_of(type, 2 * m.total * width, 6);
    run(&m, &trial, what);
}

static void test_shared(void **state)
{
    const uint32_t types = cpu_storage_types();
    for (uint32_t type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t width = 1; width <= (types & HAL_TYPE_BIT(type) ? 8u : 0u); width *= 2) {
            for (uint32_t s = 0; s < SHAPES; s++) {
                check_shared(&shapes[s], (hal_type)type, width, (pattern)((type + s) % PATTERNS));
            }
        }
    }
    for (pattern p = 0; p < PATTERNS; p++) {
        for (uint32_t s = 0; s < SHAPES; s++) {
            check_shared(&shapes[s], HAL_TYPE_F32, 1, p);
        }
    }
}

/* Memory that is read and written in place, at its own and at its neighbour's element. */
static void test_in_place(void **state)
{
    for (uint32_t s = 0; s < SHAPES; s++) {
        for (uint32_t order = 0; order < 16; order++) {
            build m;
            cpu_trial trial = {.buffer_count = 2};
            begin(&m, &shapes[s]);
            hal_ir_builder *b = m.b;
            hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
            hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
            begin_places(&m);
            hal_ir_value i = index_of(&m, NEIGHBOURS, 1);
            hal_ir_value a = hal_ir_load(b, x, i);
            hal_ir_value c = hal_ir_load(b, y, i);
            hal_ir_value sum = hal_ir_add(b, a, c);
            hal_ir_value product = hal_ir_mul(b, a, sum);
            if (order & 1) {
                hal_ir_store(b, x, i, sum);
                hal_ir_store(b, y, i, product);
            } else {
                hal_ir_store(b, y, i, product);
                hal_ir_store(b, x, i, sum);
            }
            hal_ir_value again = hal_ir_load(b, x, i);
            if (order & 2) {
                hal_ir_store(b, x, i, product);
            }
            hal_ir_value late = order & 4 ? sum : order & 8 ? c : a;
            hal_ir_store_wide(b, y, i, (int32_t)m.total, HAL_IR_NONE, hal_ir_add(b, again, late));
            hal_ir_value fresh = hal_ir_mul(b, late, late);
            hal_ir_store(b, x, i, fresh);
            hal_ir_store(b, x, i, hal_ir_add(b, late, late));
            hal_ir_store_wide(b, y, i, (int32_t)(2 * m.total), HAL_IR_NONE,
                              hal_ir_sub(b, fresh, late));
            trial.buffers[0] = buffer_of(HAL_TYPE_F32, m.total, 7);
            trial.buffers[1] = buffer_of(HAL_TYPE_F32, 3 * m.total, 8);
            run(&m, &trial, "in place");
        }
    }
}

/* Work-items that a branch or a guard leaves out have indices far outside of all memory. */
static void test_left_out(void **state)
{
    for (uint32_t s = 0; s < SHAPES; s++) {
        for (guard_kind g = EDGE; g <= NOBODY; g++) {
            build m;
            cpu_trial trial = {.buffer_count = 2};
            begin(&m, &shapes[s]);
            hal_ir_builder *b = m.b;
            hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_F64, HAL_ACCESS_READ);
            hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F64, HAL_ACCESS_READ_WRITE);
            begin_places(&m);
            hal_ir_value i = index_of(&m, NEIGHBOURS, 1), inside = guard_of(&m, g);
            hal_ir_value far = hal_ir_u32(b, 0xf0000000);
            hal_ir_value wild = hal_ir_select(b, inside, i, hal_ir_add(b, far, i));
            hal_ir_value guarded = hal_ir_load_wide(b, in, wild, 0, 1, inside);
            hal_ir_store_wide(b, out, wild, (int32_t)m.total, inside, guarded);
            hal_ir_if(b, inside);
            hal_ir_store(b, out, wild, hal_ir_load(b, in, wild));
            hal_ir_if(b, hal_ir_eq(b, m.group, hal_ir_u32(b, 1)));
            hal_ir_store(b, out, i, hal_ir_f64(b, 3.0));
            hal_ir_end(b);
            hal_ir_end(b);
            trial.buffers[0] = buffer_of(HAL_TYPE_F64, m.total, 16);
            trial.buffers[1] = buffer_of(HAL_TYPE_F64, 2 * m.total, 17);
            run(&m, &trial, "left out");
        }
    }
}

/* Each kind of atomic, on one element for all work-items, on one each, and in shared memory. */
static void check_atomic(const shape *s, hal_type type, uint32_t kind, uint32_t spread,
                         guard_kind g)
{
    char what[96];
    build m;
    cpu_trial trial = {.buffer_count = 3};
    snprintf(what, sizeof(what), "atomic %u of %s, spread %u, guard %d, group %u", kind,
             hal_type_name(type), spread, (int)g, s->group[0]);
    begin(&m, s);
    hal_ir_builder *b = m.b;
    hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    hal_ir_memory_id cells = hal_ir_binding(b, "cells", type, HAL_ACCESS_READ_WRITE);
    hal_ir_memory_id old = hal_ir_binding(b, "old", type, HAL_ACCESS_WRITE);
    hal_ir_memory_id tile = hal_ir_shared(b, "tile", type, m.items);
    begin_places(&m);
    hal_ir_value i = index_of(&m, NEIGHBOURS, 1), x = hal_ir_load(b, in, i);
    hal_ir_value first = hal_ir_mul(b, m.group, u32(&m, m.items));
    hal_ir_value slot = hal_ir_rem(b, m.linear, u32(&m, spread));
    hal_ir_value comparand =
        kind == HAL_IR_ATOMIC_COMPARE_EXCHANGE ? hal_ir_number(b, type, 3) : HAL_IR_NONE;
    hal_ir_value guard = guard_of(&m, g);
    hal_ir_store(b, tile, m.linear, hal_ir_load(b, cells, i));
    hal_ir_barrier(b);
    hal_ir_value was =
        hal_ir_atomic(b, kind, cells, hal_ir_add(b, first, slot), guard, x, comparand);
    hal_ir_value here =
        hal_ir_atomic(b, kind, tile, slot, guard, hal_ir_number(b, type, 5), comparand);
    hal_ir_barrier(b);
    hal_ir_store(b, old, i, hal_ir_add(b, was, here));
    hal_ir_store_wide(b, old, i, (int32_t)m.total, HAL_IR_NONE, hal_ir_load(b, tile, m.linear));
    trial.buffers[0] = buffer_of(type, m.total, 9);
    trial.buffers[1] = buffer_of(type, m.total, 10);
    trial.buffers[2] = buffer_of(type, 2 * m.total, 11);
    memset(trial.buffers[1].data, 0, hal_type_size(type) * 2);
    run(&m, &trial, what);
}

/* The interpreter lets one work-item after the other run up to the barrier, in the lanes' order. */
static void test_atomics(void **state)
{
    static const hal_type types[] = {HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64, HAL_TYPE_U64};
    for (uint32_t t = 0; t < 4; t++) {
        for (uint32_t kind = 0; kind < HAL_IR_ATOMIC_COUNT; kind++) {
            check_atomic(&shapes[0], types[t], kind, 1, NO_GUARD);
            check_atomic(&shapes[0], types[t], kind, 1000, EDGE);
            check_atomic(&shapes[2], types[t], kind, 5, ODD_ITEMS);
            check_atomic(&shapes[3], types[t], kind, 3, NO_GUARD);
        }
    }
}

/* The sum over all groups, which run on several threads. */
static void test_atomic_sum(void **state)
{
    enum { GROUPS = 4096 };
    for (uint32_t set = 0; set < CPU_SETS; set++) {
        hal_plugin_device *device = cpu_open(set);
        hal_ir_builder *b = NULL;
        if (device == NULL) {
            continue;
        }
        hal_ir_builder_create("sum", &b);
        hal_ir_group_size(b, 64, 1, 1);
        hal_ir_memory_id cells = hal_ir_binding(b, "cells", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
        hal_ir_value x = hal_ir_global_id(b, 0);
        hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, cells, hal_ir_u32(b, 0), HAL_IR_NONE, x, HAL_IR_NONE);
        hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, cells, hal_ir_u32(b, 1), HAL_IR_NONE, x, HAL_IR_NONE);
        hal_ir_kernel *kernel = cpu_finish(b);
        uint32_t zero[2] = {0, 0}, found[2];
        void *results[] = {found};
        const cpu_trial trial = {.kernel = kernel,
                                 .grid = {GROUPS, 1, 1},
                                 .buffers = {{HAL_TYPE_U32, 2, zero}},
                                 .buffer_count = 1,
                                 .what = "sum"};
        cpu_run_on(device, &trial, results);
        assert_int_equal(found[0], (uint32_t)(GROUPS * 64ull * (GROUPS * 64 - 1) / 2));
        assert_int_equal(found[1], GROUPS * 64 - 1);
        hal_ir_kernel_destroy(kernel);
    }
}

static void test_async_copy(void **state)
{
    for (uint32_t s = 0; s < SHAPES; s++) {
        for (guard_kind g = 0; g < GUARDS; g++) {
            build m;
            cpu_trial trial = {.buffer_count = 2};
            begin(&m, &shapes[s]);
            hal_ir_builder *b = m.b;
            hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_F32, HAL_ACCESS_READ);
            hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_WRITE);
            hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_F32, 4 * m.items);
            begin_places(&m);
            hal_ir_value i = index_of(&m, NEIGHBOURS, 4), guard = guard_of(&m, g);
            hal_ir_value mine = hal_ir_mul(b, m.linear, u32(&m, 4));
            hal_ir_async_copy(b, tile, mine, in, i, 4, guard);
            hal_ir_async_commit(b);
            hal_ir_async_wait(b, 0);
            hal_ir_barrier(b);
            hal_ir_value other = hal_ir_sub(b, u32(&m, 4 * m.items - 4), mine);
            hal_ir_store_wide(b, out, i, 0, HAL_IR_NONE,
                              hal_ir_load_wide(b, tile, other, 0, 4, HAL_IR_NONE));
            trial.buffers[0] = buffer_of(HAL_TYPE_F32, 4 * m.total, 12);
            trial.buffers[1] = buffer_of(HAL_TYPE_F32, 4 * m.total, 13);
            run(&m, &trial, "asynchronous copy");
        }
    }
}

/* Arithmetic of 32-bit indices that wraps around on its way to an element. */
static void test_wrapping_index(void **state)
{
    for (uint32_t s = 0; s < SHAPES; s++) {
        build m;
        cpu_trial trial = {.buffer_count = 2};
        begin(&m, &shapes[s]);
        hal_ir_builder *b = m.b;
        hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_I32, HAL_ACCESS_READ);
        hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_WRITE);
        begin_places(&m);
        hal_ir_value i = index_of(&m, NEIGHBOURS, 1);
        hal_ir_value half = u32(&m, m.items / 2);
        hal_ir_value wrapped = hal_ir_sub(b, m.linear, half); /* below 0 for the first half */
        hal_ir_value positive = hal_ir_lt(b, wrapped, u32(&m, m.items));
        hal_ir_value v = hal_ir_load_wide(b, in, wrapped, 0, 1, positive);
        hal_ir_value negative = hal_ir_cast(b, HAL_TYPE_I32, wrapped);
        hal_ir_value w = hal_ir_load_wide(b, in, negative, (int32_t)m.items, 1, HAL_IR_NONE);
        hal_ir_store(b, out, i, hal_ir_add(b, v, w));
        hal_ir_store_wide(b, out, i, (int32_t)m.total, HAL_IR_NONE, negative);
        trial.buffers[0] = buffer_of(HAL_TYPE_I32, 3 * m.total, 14);
        trial.buffers[1] = buffer_of(HAL_TYPE_I32, 2 * m.total, 15);
        run(&m, &trial, "wrapping index");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_same_place),     cmocka_unit_test(test_shared),
        cmocka_unit_test(test_in_place),       cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_atomic_sum),     cmocka_unit_test(test_async_copy),
        cmocka_unit_test(test_wrapping_index), cmocka_unit_test(test_left_out),
    };
    return cmocka_run_group_tests_name("cpu memory", tests, NULL, cpu_close_all);
}
