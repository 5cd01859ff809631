/* Random kernels and their run on each instruction set: for test_cpu_programs and the fuzz target
 * fuzz_cpu_programs. */
#ifndef TESTS_UNIT_PLUGINS_CPU_CPU_PROGRAM_H
#define TESTS_UNIT_PLUGINS_CPU_CPU_PROGRAM_H

#include "cpu_fixture.h"

enum { POOL = 400, VARIABLES = 12, ITEMS_MOST = 256, GROUPS_OF_ALL = 3, CELLS = 4 };

/* Elements that are read, and of each region of `place` that is written. */
enum { INPUTS = 2048, REGION = ITEMS_MOST * GROUPS_OF_ALL * 3 + 16 };

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
    hal_ir_memory_id from, place; /* of `type` */
    hal_type type;
    hal_ir_value item;          /* in the grid */
    hal_ir_value id[2], group;  /* in the group, of the group */
    uint32_t wide, items, last; /* of a row, of a group; the last one of the grid */
    uint32_t budget, depth;
    int subgroups;          /* whole ones only */
    int reads_work;         /* `work` is read as well as written */
    const uint8_t *choices; /* taken first, two bytes each; then choices are random */
    size_t choice_bytes;
} program;

static void block(program *p, uint32_t statements);

static void keep(program *p, hal_ir_value value)
{
    if (p->count < POOL) {
        p->pool[p->count++] = value;
    }
}

static uint32_t pick(program *p, uint32_t count)
{
    if (p->choice_bytes >= 2) {
        const uint32_t choice = p->choices[0] | (uint32_t)p->choices[1] << 8;
        p->choices += 2;
        p->choice_bytes -= 2;
        return choice % count;
    }
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

/* Not NaN, whose bits are not specified. */
static hal_ir_value number(program *p, hal_ir_value x)
{
    return hal_ir_select(p->b, hal_ir_eq(p->b, x, x), x, hal_ir_f32(p->b, 1.0f));
}

static hal_ir_value function(program *p, hal_type type)
{
    const uint32_t opcode = HAL_IR_MATH_FIRST + pick(p, HAL_IR_MATH_COUNT);
    return opcode == HAL_IR_POW ? hal_ir_binary(p->b, opcode, some(p, type), some(p, type))
                                : hal_ir_unary(p->b, opcode, some(p, type));
}

static void arithmetic(program *p)
{
    static const uint32_t integer[] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL,  HAL_IR_AND, HAL_IR_XOR,
                                       HAL_IR_SHL, HAL_IR_SHR, HAL_IR_DIV,  HAL_IR_REM, HAL_IR_MIN,
                                       HAL_IR_OR,  HAL_IR_MAX, HAL_IR_MULHI};
    static const uint32_t integer_unary[] = {HAL_IR_NEG, HAL_IR_ABS, HAL_IR_NOT};
    static const uint32_t real_unary[] = {HAL_IR_NEG, HAL_IR_ABS, HAL_IR_FLOOR, HAL_IR_RINT};
    static const uint32_t real[] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL, HAL_IR_MIN, HAL_IR_MAX};
    const hal_type type = some_type(p);
    hal_ir_value value;
    switch (pick(p, 11)) {
    case 10:
        value = function(p, pick(p, 3) ? HAL_TYPE_F32 : HAL_TYPE_F64);
        break;
    case 9: {
        static const hal_type narrow[] = {HAL_TYPE_F16, HAL_TYPE_BF16};
        value = hal_ir_narrow(p->b, narrow[pick(p, 2)], some(p, HAL_TYPE_F32));
        break;
    }
    case 8:
        value = hal_type_is_float(type)
                    ? hal_ir_unary(p->b, real_unary[pick(p, 4)], some(p, type))
                    : hal_ir_unary(p->b, integer_unary[pick(p, 3)], some(p, type));
        break;
    case 0:
        value = hal_ir_select(p->b, condition(p), some(p, type), some(p, type));
        break;
    case 1:
        value = hal_ir_cast(p->b, type, some(p, some_type(p)));
        break;
    case 2:
        value = hal_ir_type_of(p->b, some(p, type)) == HAL_TYPE_F32
                    ? hal_ir_bitcast(p->b, HAL_TYPE_U32, number(p, some(p, HAL_TYPE_F32)))
                    : hal_ir_bitcast(p->b, HAL_TYPE_I32, some(p, HAL_TYPE_U32));
        break;
    default:
        value = hal_type_is_float(type)
                    ? hal_ir_binary(p->b, real[pick(p, 5)], some(p, type), some(p, type))
                    : hal_ir_binary(p->b, integer[pick(p, 13)], some(p, type), some(p, type));
        if (hal_type_is_float(type) && pick(p, 3) == 0) {
            value = hal_ir_fma(p->b, value, some(p, type), some(p, type));
        }
    }
    keep(p, value);
}

/* A butterfly, of which reductions have several in a row. */
static void exchange(program *p)
{
    const hal_type type = some_type(p);
    hal_ir_value value = some(p, type);
    const uint32_t first = pick(p, CPU_FIXTURE_SUBGROUP), rounds = 1 + pick(p, 3);
    for (uint32_t i = 0; i < rounds; i++) {
        const uint32_t apart = first << i & (CPU_FIXTURE_SUBGROUP - 1);
        value = hal_ir_add(p->b, value, hal_ir_shuffle_xor(p->b, value, apart));
        keep(p, value);
    }
}

/* Cell `k` of the work-item in `work`, which no other work-item accesses. */
static hal_ir_value cell(program *p, uint32_t k)
{
    return hal_ir_add(p->b, hal_ir_mul(p->b, p->item, hal_ir_u32(p->b, CELLS)),
                      hal_ir_u32(p->b, k));
}

/* The same in all work-items. */
static hal_ir_value uniform_condition(program *p)
{
    const hal_ir_value x = pick(p, 3) ? p->group : hal_ir_u32(p->b, pick(p, 3));
    const hal_ir_value y = hal_ir_u32(p->b, pick(p, 3));
    return pick(p, 2) ? hal_ir_lt(p->b, x, y) : hal_ir_eq(p->b, x, y);
}

/* True for the first work-items of a group, of its rows or of the grid, which steps find out. */
static hal_ir_value bound(program *p)
{
    const uint32_t way = pick(p, 3);
    const hal_ir_value index = way == 0 ? p->item : p->id[way - 1];
    const hal_ir_value end = hal_ir_u32(p->b, pick(p, way == 0 ? 3 * p->items : p->items) + 1);
    return pick(p, 5) ? hal_ir_lt(p->b, index, end) : hal_ir_lt(p->b, end, index);
}

static hal_ir_value guard_of(program *p)
{
    hal_ir_builder *b = p->b;
    switch (pick(p, 8)) {
    case 0:
    case 1:
        return condition(p);
    case 2:
    case 3:
        return bound(p);
    case 4:
        return hal_ir_and(b, bound(p), uniform_condition(p));
    case 5:
        return pick(p, 2) ? hal_ir_and(b, bound(p), bound(p)) : uniform_condition(p);
    default:
        return HAL_IR_NONE;
    }
}

/* An index below INPUTS: affine in the ids of the work-item, or not. */
static hal_ir_value index_of(program *p)
{
    hal_ir_builder *b = p->b;
    const hal_ir_value x = hal_ir_mul(b, p->id[0], hal_ir_u32(b, pick(p, 4)));
    const hal_ir_value y = hal_ir_mul(b, p->id[1], hal_ir_u32(b, pick(p, 41)));
    hal_ir_value sum = hal_ir_add(b, x, y);
    switch (pick(p, 5)) {
    case 0:
        sum = hal_ir_add(b, sum, p->group);
        break;
    case 1:
        sum = hal_ir_sub(b, hal_ir_u32(b, INPUTS - 10), sum);
        break;
    case 2:
        sum = hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, INPUTS / 2 - 1));
        break;
    case 3:
        return hal_ir_add(b, p->group, hal_ir_u32(b, pick(p, 9)));
    default:
        break;
    }
    return pick(p, 5)   ? sum
           : pick(p, 2) ? hal_ir_cast(b, HAL_TYPE_I32, sum)
                        : hal_ir_cast(b, HAL_TYPE_U64, sum);
}

/* The element of the work-item in region `k`, which no other work-item accesses. */
static hal_ir_value place_of(program *p, uint32_t k)
{
    hal_ir_builder *b = p->b;
    switch (k) {
    case 1:
        return hal_ir_sub(b, hal_ir_u32(b, p->last), p->item);
    case 2:
        return hal_ir_xor(b, p->item, hal_ir_u32(b, 1));
    case 3:
        return hal_ir_mul(b, p->item, hal_ir_u32(b, 3));
    default:
        return p->item;
    }
}

/* Loads and stores of the type that programs differ in. */
static void touch_type(program *p, hal_ir_value guard)
{
    hal_ir_builder *b = p->b;
    const uint32_t k = pick(p, CELLS), way = pick(p, 4);
    if (way < 2) {
        keep(p, hal_ir_load_wide(b, p->from, index_of(p), (int32_t)pick(p, 9), 1, guard));
    } else if (way == 2 && p->reads_work) {
        keep(p, hal_ir_load_wide(b, p->place, place_of(p, k), (int32_t)(REGION * k), 1, guard));
    } else {
        const hal_type value = hal_type_of_value(p->type);
        hal_ir_value x = value == HAL_TYPE_BOOL ? condition(p) : some(p, value);
        hal_ir_store_wide(b, p->place, place_of(p, k), (int32_t)(REGION * k), guard, x);
    }
}

static void touch_memory(program *p)
{
    hal_ir_builder *b = p->b;
    const hal_ir_value guard = guard_of(p);
    hal_ir_value any = hal_ir_and(b, some(p, HAL_TYPE_U32), hal_ir_u32(b, 127));
    switch (pick(p, 9)) {
    case 6:
    case 7:
        touch_type(p, guard);
        break;
    case 8:
        keep(p, hal_ir_load_wide(b, p->in, index_of(p), (int32_t)pick(p, 9), 1, guard));
        break;
    case 0:
        keep(p, hal_ir_load_wide(b, p->in, any, 0, 1, guard));
        break;
    case 1:
        keep(p, hal_ir_load_wide(b, p->floats, p->item, (int32_t)pick(p, 9), 1, guard));
        break;
    case 2:
        keep(p, p->reads_work ? hal_ir_load_wide(b, p->work, cell(p, pick(p, CELLS)), 0, 1, guard)
                              : hal_ir_load_wide(b, p->floats, p->item, 1, 1, guard));
        break;
    case 3:
        if (p->reads_work) {
            hal_ir_value pair = hal_ir_load_wide(b, p->work, cell(p, 0), 2, 2, guard);
            keep(p, hal_ir_extract(b, pair, 1));
        }
        break;
    case 4:
        hal_ir_store_wide(b, p->work, cell(p, pick(p, CELLS)), 0, guard, some(p, HAL_TYPE_F32));
        break;
    default:
        hal_ir_store_wide(b, p->out, p->item,
                          (int32_t)(ITEMS_MOST * GROUPS_OF_ALL * pick(p, CELLS)), guard,
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
    const uint32_t kind = pick(p, 21);
    if (kind == 20 && p->depth == 0 && p->subgroups) {
        exchange(p);
    } else if (kind < 8) {
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

/* What programs begin with: memories, ids, some values and variables. */
static void prepare(program *p)
{
    hal_ir_builder *b = p->b;
    const uint32_t access = p->reads_work ? HAL_ACCESS_READ_WRITE : HAL_ACCESS_WRITE;
    p->in = hal_ir_binding(b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
    p->floats = hal_ir_binding(b, "floats", HAL_TYPE_F32, HAL_ACCESS_READ);
    p->out = hal_ir_binding(b, "out", HAL_TYPE_U32, access);
    p->work = hal_ir_binding(b, "work", HAL_TYPE_F32, access);
    p->from = hal_ir_binding(b, "from", p->type, HAL_ACCESS_READ);
    p->place = hal_ir_binding(b, "place", p->type, access);
    keep(p, hal_ir_scalar_value(b, "s", HAL_TYPE_U32));
    keep(p, hal_ir_scalar_value(b, "f", HAL_TYPE_F32));
    p->id[0] = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    p->id[1] = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    p->group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    keep(p, p->id[0]);
    keep(p, p->group);
    const hal_ir_value row = hal_ir_mul(b, p->id[1], hal_ir_u32(b, p->wide));
    p->item = hal_ir_add(b, hal_ir_mul(b, p->group, hal_ir_u32(b, p->items)),
                         hal_ir_add(b, row, p->id[0]));
    keep(p, p->item);
    keep(p, hal_ir_load(b, p->in, p->item));
    keep(p, hal_ir_load(b, p->floats, p->item));
    for (uint32_t v = 0; v < 4; v++) {
        p->variable_types[v] = v % 2 ? HAL_TYPE_F32 : HAL_TYPE_U32;
        p->variables[v] = hal_ir_var(b, some(p, p->variable_types[v]));
    }
    p->variable_count = 4;
}

/* The program of a seed, on every instruction set. The choices may be null. */
static void check_program(uint64_t seed, const uint8_t *choices, size_t choice_bytes)
{
    static const uint32_t sizes[][2] = {{64, 1}, {16, 1}, {100, 1}, {33, 1}, {1, 1},
                                        {48, 1}, {4, 16}, {7, 9},   {16, 4}, {32, 8},
                                        {5, 3},  {24, 2}, {2, 1},   {256, 1}};
    static const hal_type types[] = {HAL_TYPE_F16,  HAL_TYPE_U8,  HAL_TYPE_BF16, HAL_TYPE_I16,
                                     HAL_TYPE_F32,  HAL_TYPE_I8,  HAL_TYPE_U16,  HAL_TYPE_F64,
                                     HAL_TYPE_BOOL, HAL_TYPE_U32, HAL_TYPE_U64};
    const uint32_t *size = sizes[seed % (sizeof(sizes) / sizeof(sizes[0]))];
    program p = {
        .state = seed * 977 + 13, .budget = 150, .choices = choices, .choice_bytes = choice_bytes};
    char what[64];
    snprintf(what, sizeof(what), "program %llu", (unsigned long long)seed);
    p.wide = size[0];
    p.items = size[0] * size[1];
    p.last = p.items * GROUPS_OF_ALL - 1;
    p.type = types[seed % (sizeof(types) / sizeof(types[0]))];
    p.subgroups = p.items % CPU_FIXTURE_SUBGROUP == 0;
    p.reads_work = seed % 3 != 2;
    hal_ir_builder_create("program", &p.b);
    hal_ir_group_size(p.b, size[0], size[1], 1);
    prepare(&p);
    block(&p, 60);
    for (uint32_t v = 0; v < 4; v++) {
        hal_ir_value value = hal_ir_get(p.b, p.variables[v]);
        if (v % 2) {
            hal_ir_store(p.b, p.work, cell(&p, v), value);
        } else {
            hal_ir_store_wide(p.b, p.out, p.item, (int32_t)(ITEMS_MOST * GROUPS_OF_ALL * v),
                              HAL_IR_NONE, value);
        }
    }
    const struct {
        uint32_t s;
        float f;
    } scalars = {(uint32_t)seed % 5, 1.5f};
    cpu_buffer buffers[] = {numbers(HAL_TYPE_U32, INPUTS, seed),
                            numbers(HAL_TYPE_F32, INPUTS, seed + 1),
                            numbers(HAL_TYPE_U32, ITEMS_MOST * GROUPS_OF_ALL * CELLS, seed + 2),
                            numbers(HAL_TYPE_F32, ITEMS_MOST * GROUPS_OF_ALL * CELLS, seed + 3),
                            numbers(p.type, INPUTS, seed + 4),
                            numbers(p.type, REGION * CELLS, seed + 5)};
    check(cpu_finish(p.b), GROUPS_OF_ALL, buffers, 6, &scalars, what);
}

#endif
