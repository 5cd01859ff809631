/* The cpu plugin's control flow, variables and subgroups: branches and loops that work-items take
 * together and apart, nested; and programs made at random, which hold the lowering to account where
 * nobody thought of it. Judged by the reference interpreter, on each instruction set. */
#include "cpu_fixture.h"

enum { MEMORY = 4096 };

enum { POOL = 400, VARIABLES = 12, ITEMS_MOST = 100, CELLS = 4 };

/* A program under construction: values in scope, newest last. */
typedef struct program {
    hal_ir_builder *b;
    uint64_t state;
    hal_ir_value pool[POOL];
    uint32_t count;
    hal_ir_value variables[VARIABLES];
    hal_type variable_types[VARIABLES];
    uint32_t variable_count;
    hal_ir_memory_id in, floats, out, work;
    hal_ir_value item; /* in the grid */
    uint32_t budget, depth;
} program;

static void block(program *p, uint32_t statements);

static cpu_buffer numbers(hal_type type, uint32_t count, uint64_t seed)
{
    cpu_buffer buffer = {.type = type, .count = count};
    uint32_t *words = calloc(count, hal_type_size(type));
    for (uint32_t i = 0; i < count * hal_type_size(type) / 4; i++) {
        const uint64_t any = cpu_random(&seed);
        const float f = (float)(int64_t)(any % 2001 - 1000) / 64.0f;
        words[i] = (uint32_t)any;
        if (type == HAL_TYPE_F32) {
            memcpy(&words[i], &f, sizeof(f));
        }
    }
    buffer.data = words;
    return buffer;
}

static void check(hal_ir_kernel *kernel, uint32_t groups, cpu_buffer *buffers, uint32_t count,
                  const void *scalars, const char *what)
{
    cpu_trial trial = {.kernel = kernel, .grid = {groups, 1, 1}, .buffer_count = count};
    trial.scalars = scalars;
    trial.what = what;
    memcpy(trial.buffers, buffers, count * sizeof(*buffers));
    cpu_check(&trial);
    for (uint32_t i = 0; i < count; i++) {
        free(buffers[i].data);
    }
    hal_ir_kernel_destroy(kernel);
}

/* Loops whose bounds, start and step are each item's own, around one another and a branch. */
static void test_nested_divergence(void **state)
{
    static const uint32_t groups[] = {64, 100, 7, 256};
    for (uint32_t s = 0; s < 4; s++) {
        hal_ir_builder *b = NULL;
        hal_ir_builder_create("nested", &b);
        hal_ir_group_size(b, groups[s], 1, 1);
        hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
        hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
        hal_ir_value i = hal_ir_global_id(b, 0), x = hal_ir_load(b, in, i);
        hal_ir_value count = hal_ir_var(b, hal_ir_u32(b, 0));
        hal_ir_value limit = hal_ir_and(b, x, hal_ir_u32(b, 7));
        hal_ir_value start = hal_ir_and(b, hal_ir_shr(b, x, hal_ir_u32(b, 3)), hal_ir_u32(b, 3));
        hal_ir_value step = hal_ir_add(b, hal_ir_u32(b, 1), hal_ir_and(b, i, hal_ir_u32(b, 1)));
        hal_ir_value outer = hal_ir_for(b, start, limit, step);
        hal_ir_value inner = hal_ir_for(b, hal_ir_u32(b, 0), outer, hal_ir_u32(b, 1));
        hal_ir_if(b, hal_ir_eq(b, hal_ir_and(b, hal_ir_add(b, inner, i), hal_ir_u32(b, 1)),
                               hal_ir_u32(b, 0)));
        hal_ir_set(b, count, hal_ir_add(b, hal_ir_get(b, count), hal_ir_mul(b, inner, x)));
        hal_ir_else(b);
        hal_ir_set(b, count, hal_ir_xor(b, hal_ir_get(b, count), outer));
        hal_ir_store(b, out, i, hal_ir_get(b, count));
        hal_ir_end(b);
        hal_ir_end(b);
        hal_ir_set(b, count, hal_ir_add(b, hal_ir_get(b, count), hal_ir_u32(b, 1)));
        hal_ir_end(b);
        hal_ir_store_wide(b, out, i, (int32_t)(3 * groups[s]), HAL_IR_NONE, hal_ir_get(b, count));
        cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, MEMORY, 1), numbers(HAL_TYPE_U32, MEMORY, 2)};
        check(cpu_finish(b), 3, buffers, 2, NULL, "nested divergence");
    }
}

/* A loop that ends at the very end of its type. */
static void test_loop_at_the_end(void **state)
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

/* Shared memory, barriers in a uniform loop: the sum of a group by halves. */
static void test_block_sum(void **state)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("sum", &b);
    hal_ir_group_size(b, 256, 1, 1);
    hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_F32, 256);
    hal_ir_value rounds = hal_ir_scalar_value(b, "rounds", HAL_TYPE_U32);
    hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_store(b, tile, i, hal_ir_load(b, in, hal_ir_global_id(b, 0)));
    hal_ir_value half = hal_ir_var(b, hal_ir_u32(b, 128));
    hal_ir_for(b, hal_ir_u32(b, 0), rounds, hal_ir_u32(b, 1));
    hal_ir_barrier(b);
    hal_ir_value width = hal_ir_get(b, half);
    hal_ir_if(b, hal_ir_lt(b, i, width));
    hal_ir_value sum =
        hal_ir_add(b, hal_ir_load(b, tile, i), hal_ir_load(b, tile, hal_ir_add(b, i, width)));
    hal_ir_store(b, tile, i, sum);
    hal_ir_end(b);
    hal_ir_set(b, half, hal_ir_shr(b, width, hal_ir_u32(b, 1)));
    hal_ir_end(b);
    hal_ir_barrier(b);
    hal_ir_if(b, hal_ir_eq(b, i, hal_ir_u32(b, 0)));
    hal_ir_store(b, out, hal_ir_id(b, HAL_IR_GROUP_ID, 0), hal_ir_load(b, tile, i));
    hal_ir_end(b);
    const uint32_t scalars[] = {8};
    cpu_buffer buffers[] = {numbers(HAL_TYPE_F32, 2048, 4), numbers(HAL_TYPE_F32, 8, 5)};
    check(cpu_finish(b), 8, buffers, 2, scalars, "block sum");
}

static void check_subgroup(hal_type type, uint32_t items)
{
    hal_ir_builder *b = NULL;
    char what[64];
    snprintf(what, sizeof(what), "subgroups of %s, %u items", hal_type_name(type), items);
    hal_ir_builder_create("subgroups", &b);
    hal_ir_group_size(b, items, 1, 1);
    hal_ir_memory_id in = hal_ir_binding(b, "in", type, HAL_ACCESS_READ);
    hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    hal_ir_value i = hal_ir_global_id(b, 0), x = hal_ir_load(b, in, i);
    hal_ir_value lane = hal_ir_id(b, HAL_IR_LANE_ID, 0);
    hal_ir_value from = hal_ir_mul(b, lane, hal_ir_u32(b, 5));
    hal_ir_store(b, out, i, hal_ir_shuffle(b, x, from));
    hal_ir_store_wide(b, out, i, MEMORY / 8, HAL_IR_NONE, hal_ir_shuffle(b, x, hal_ir_u32(b, 3)));
    hal_ir_store_wide(b, out, i, MEMORY / 4, HAL_IR_NONE, hal_ir_shuffle_xor(b, x, 6));
    for (uint32_t kind = 0; kind < HAL_IR_REDUCE_COUNT; kind++) {
        hal_ir_store_wide(b, out, i, (int32_t)(MEMORY * (3 + kind) / 8), HAL_IR_NONE,
                          hal_ir_subgroup_reduce(b, kind, x));
    }
    cpu_buffer buffers[] = {numbers(type, MEMORY / 8, 6), numbers(type, MEMORY, 7)};
    check(cpu_finish(b), 1, buffers, 2, NULL, what);
}

static void test_subgroups(void **state)
{
    static const hal_type types[] = {HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64,
                                     HAL_TYPE_U64, HAL_TYPE_F32, HAL_TYPE_F64};
    for (uint32_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        check_subgroup(types[t], 64);
        check_subgroup(types[t], 16);
        check_subgroup(types[t], 23);
        check_subgroup(types[t], 3);
    }
}

/* Variables that swap, are read after a change, or get the value of one another. */
static void test_variables(void **state)
{
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("variables", &b);
    hal_ir_group_size(b, 64, 1, 1);
    hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    hal_ir_value i = hal_ir_global_id(b, 0), x = hal_ir_load(b, in, i);
    hal_ir_value p = hal_ir_var(b, x), q = hal_ir_var(b, hal_ir_f32(b, 2.0f));
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 5), hal_ir_u32(b, 1));
    hal_ir_value old_p = hal_ir_get(b, p), old_q = hal_ir_get(b, q);
    hal_ir_set(b, p, hal_ir_add(b, old_q, x));
    hal_ir_set(b, q, hal_ir_sub(b, old_p, old_q));
    hal_ir_value sum = hal_ir_add(b, hal_ir_get(b, p), old_p);
    hal_ir_set(b, q, hal_ir_add(b, hal_ir_get(b, q), sum));
    hal_ir_set(b, p, hal_ir_mul(b, sum, hal_ir_f32(b, 0.5f)));
    hal_ir_set(b, q, hal_ir_add(b, sum, hal_ir_get(b, q)));
    hal_ir_end(b);
    hal_ir_value before = hal_ir_get(b, p), seen = hal_ir_load(b, out, i);
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 3), hal_ir_u32(b, 1));
    hal_ir_set(b, q, hal_ir_add(b, hal_ir_get(b, q), hal_ir_add(b, before, seen)));
    hal_ir_set(b, p, hal_ir_mul(b, hal_ir_get(b, p), hal_ir_f32(b, 2.0f)));
    hal_ir_store(b, out, i, hal_ir_get(b, p));
    hal_ir_end(b);
    hal_ir_store_wide(b, out, i, 128, HAL_IR_NONE, hal_ir_get(b, q));
    cpu_buffer buffers[] = {numbers(HAL_TYPE_F32, 128, 8), numbers(HAL_TYPE_F32, 256, 9)};
    check(cpu_finish(b), 2, buffers, 2, NULL, "variables");
}

static void keep(program *p, hal_ir_value value)
{
    if (p->count < POOL) {
        p->pool[p->count++] = value;
    }
}

static uint32_t pick(program *p, uint32_t count)
{
    return (uint32_t)(cpu_random(&p->state) % count);
}

static hal_ir_value some(program *p, hal_type type)
{
    for (uint32_t tries = 0; tries < 40; tries++) {
        /* Mostly new ones, sometimes any: both short and long lives are wanted. */
        const uint32_t recent = pick(p, 3) ? (p->count < 8 ? p->count : 8) : p->count;
        hal_ir_value value = p->pool[p->count - 1 - pick(p, recent)];
        if (hal_ir_type_of(p->b, value) == type) {
            return value;
        }
    }
    return hal_ir_number(p->b, type, pick(p, 9) + 1);
}

static hal_type some_type(program *p)
{
    static const hal_type types[] = {HAL_TYPE_U32, HAL_TYPE_U32, HAL_TYPE_F32, HAL_TYPE_F32,
                                     HAL_TYPE_I32, HAL_TYPE_U64, HAL_TYPE_F64};
    return types[pick(p, sizeof(types) / sizeof(types[0]))];
}

static hal_ir_value condition(program *p)
{
    static const uint32_t opcodes[] = {HAL_IR_LT, HAL_IR_LE, HAL_IR_EQ, HAL_IR_NE};
    const hal_type type = some_type(p);
    hal_ir_value c = hal_ir_binary(p->b, opcodes[pick(p, 4)], some(p, type), some(p, type));
    if (pick(p, 4) == 0) {
        const hal_type other = some_type(p);
        c = hal_ir_binary(p->b, pick(p, 2) ? HAL_IR_AND : HAL_IR_OR, c,
                          hal_ir_lt(p->b, some(p, other), some(p, other)));
    }
    return c;
}

static void arithmetic(program *p)
{
    static const uint32_t integer[] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL, HAL_IR_AND, HAL_IR_XOR,
                                       HAL_IR_SHL, HAL_IR_SHR, HAL_IR_DIV, HAL_IR_REM, HAL_IR_MIN};
    static const uint32_t real[] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL, HAL_IR_MIN, HAL_IR_MAX};
    const hal_type type = some_type(p);
    hal_ir_value value;
    switch (pick(p, 8)) {
    case 0:
        value = hal_ir_select(p->b, condition(p), some(p, type), some(p, type));
        break;
    case 1:
        value = hal_ir_cast(p->b, type, some(p, some_type(p)));
        break;
    case 2:
        value = hal_ir_type_of(p->b, some(p, type)) == HAL_TYPE_F32
                    ? hal_ir_bitcast(p->b, HAL_TYPE_U32, some(p, HAL_TYPE_F32))
                    : hal_ir_bitcast(p->b, HAL_TYPE_I32, some(p, HAL_TYPE_U32));
        break;
    default:
        value = hal_type_is_float(type)
                    ? hal_ir_binary(p->b, real[pick(p, 5)], some(p, type), some(p, type))
                    : hal_ir_binary(p->b, integer[pick(p, 10)], some(p, type), some(p, type));
        if (hal_type_is_float(type) && pick(p, 3) == 0) {
            value = hal_ir_fma(p->b, value, some(p, type), some(p, type));
        }
    }
    keep(p, value);
}

/* The work-item's own cell `k` of `work` or `out`, which nobody else touches. */
static hal_ir_value cell(program *p, uint32_t k)
{
    return hal_ir_add(p->b, hal_ir_mul(p->b, p->item, hal_ir_u32(p->b, CELLS)),
                      hal_ir_u32(p->b, k));
}

static void touch_memory(program *p)
{
    hal_ir_builder *b = p->b;
    const hal_ir_value guard = pick(p, 2) ? condition(p) : HAL_IR_NONE;
    hal_ir_value any = hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, 127));
    switch (pick(p, 6)) {
    case 0:
        keep(p, hal_ir_load_wide(b, p->in, any, 0, 1, guard));
        break;
    case 1:
        keep(p, hal_ir_load_wide(b, p->floats, p->item, (int32_t)pick(p, 9), 1, guard));
        break;
    case 2:
        keep(p, hal_ir_load_wide(b, p->work, cell(p, pick(p, CELLS)), 0, 1, guard));
        break;
    case 3: {
        hal_ir_value pair = hal_ir_load_wide(b, p->work, cell(p, 0), 2, 2, guard);
        keep(p, hal_ir_extract(b, pair, 1));
        break;
    }
    case 4:
        hal_ir_store_wide(b, p->work, cell(p, pick(p, CELLS)), 0, guard, some(p, HAL_TYPE_F32));
        break;
    default:
        hal_ir_store_wide(b, p->out, p->item, (int32_t)(ITEMS_MOST * 3 * pick(p, CELLS)), guard,
                          some(p, HAL_TYPE_U32));
    }
}

static void scope(program *p, uint32_t statements)
{
    const uint32_t count = p->count, variables = p->variable_count;
    p->depth++;
    block(p, statements);
    p->depth--;
    p->count = count;
    p->variable_count = variables;
}

static void loop(program *p)
{
    hal_ir_builder *b = p->b;
    hal_ir_value end = pick(p, 2) ? hal_ir_u32(b, pick(p, 4))
                                  : hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, 3));
    hal_ir_value start =
        pick(p, 4) ? hal_ir_u32(b, 0) : hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, 1));
    hal_ir_value step = pick(p, 4)
                            ? hal_ir_u32(b, 1)
                            : hal_ir_or(b, hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, 2)),
                                        hal_ir_u32(b, 1));
    const uint32_t count = p->count;
    keep(p, hal_ir_for(b, start, end, step));
    scope(p, 1 + pick(p, 6));
    p->count = count;
    hal_ir_end(b);
}

static void statement(program *p)
{
    hal_ir_builder *b = p->b;
    const uint32_t v = p->variable_count ? pick(p, p->variable_count) : 0;
    const uint32_t kind = pick(p, 20);
    if (kind < 8) {
        arithmetic(p);
    } else if (kind < 11) {
        touch_memory(p);
    } else if (kind == 11 && p->variable_count < VARIABLES) {
        const hal_type type = some_type(p);
        p->variables[p->variable_count] = hal_ir_var(b, some(p, type));
        p->variable_types[p->variable_count++] = type;
    } else if (kind < 15 && p->variable_count) {
        keep(p, hal_ir_get(b, p->variables[v]));
    } else if (kind < 18 && p->variable_count) {
        hal_ir_set(b, p->variables[v], some(p, p->variable_types[v]));
    } else if (kind == 18 && p->depth < 4) {
        hal_ir_if(b, condition(p));
        scope(p, 1 + pick(p, 6));
        if (pick(p, 2)) {
            hal_ir_else(b);
            scope(p, 1 + pick(p, 6));
        }
        hal_ir_end(b);
    } else if (p->depth < 4) {
        loop(p);
    }
}

static void block(program *p, uint32_t statements)
{
    for (uint32_t i = 0; i < statements && p->budget > 0; i++) {
        p->budget--;
        statement(p);
    }
}

static void check_program(uint64_t seed)
{
    static const uint32_t sizes[] = {64, 16, 100, 33, 1, 48};
    program p = {.state = seed * 977 + 13, .budget = 150};
    char what[64];
    snprintf(what, sizeof(what), "program %llu", (unsigned long long)seed);
    hal_ir_builder_create("program", &p.b);
    hal_ir_group_size(p.b, sizes[seed % 6], 1, 1);
    p.in = hal_ir_binding(p.b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
    p.floats = hal_ir_binding(p.b, "floats", HAL_TYPE_F32, HAL_ACCESS_READ);
    p.out = hal_ir_binding(p.b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    p.work = hal_ir_binding(p.b, "work", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    keep(&p, hal_ir_scalar_value(p.b, "s", HAL_TYPE_U32));
    keep(&p, hal_ir_scalar_value(p.b, "f", HAL_TYPE_F32));
    keep(&p, hal_ir_id(p.b, HAL_IR_LOCAL_ID, 0));
    keep(&p, hal_ir_id(p.b, HAL_IR_GROUP_ID, 0));
    p.item = hal_ir_global_id(p.b, 0);
    keep(&p, p.item);
    keep(&p, hal_ir_load(p.b, p.in, p.item));
    keep(&p, hal_ir_load(p.b, p.floats, p.item));
    for (uint32_t v = 0; v < 4; v++) {
        p.variable_types[v] = v % 2 ? HAL_TYPE_F32 : HAL_TYPE_U32;
        p.variables[v] = hal_ir_var(p.b, some(&p, p.variable_types[v]));
    }
    p.variable_count = 4;
    block(&p, 60);
    for (uint32_t v = 0; v < 4; v++) {
        hal_ir_value value = hal_ir_get(p.b, p.variables[v]);
        if (v % 2) {
            hal_ir_store(p.b, p.work, cell(&p, v), value);
        } else {
            hal_ir_store_wide(p.b, p.out, p.item, (int32_t)(ITEMS_MOST * 3 * v), HAL_IR_NONE,
                              value);
        }
    }
    const struct {
        uint32_t s;
        float f;
    } scalars = {(uint32_t)seed % 5, 1.5f};
    cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, 512, seed), numbers(HAL_TYPE_F32, 512, seed + 1),
                            numbers(HAL_TYPE_U32, ITEMS_MOST * 3 * CELLS, seed + 2),
                            numbers(HAL_TYPE_F32, ITEMS_MOST * 3 * CELLS, seed + 3)};
    check(cpu_finish(p.b), 3, buffers, 4, &scalars, what);
}

/* CPU_TEST_PROGRAMS asks for more than a few hundred. */
static void test_programs(void **state)
{
    const char *wanted = getenv("CPU_TEST_PROGRAMS");
    const uint64_t count = wanted != NULL ? strtoull(wanted, NULL, 10) : 200;
    for (uint64_t seed = 0; seed < count; seed++) {
        check_program(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_divergence), cmocka_unit_test(test_loop_at_the_end),
        cmocka_unit_test(test_block_sum),         cmocka_unit_test(test_subgroups),
        cmocka_unit_test(test_variables),         cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests_name("cpu control", tests, NULL, cpu_close_all);
}
