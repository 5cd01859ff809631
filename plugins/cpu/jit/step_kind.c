/* What the function of a step does: the tables of lanes the other way round. */
#include "jit/step_kind.h"

#include <pthread.h>
#include <stdlib.h>

static const hal_type value_types[CPU_TYPE_COUNT] = {
    [CPU_BOOL] = HAL_TYPE_BOOL, [CPU_I32] = HAL_TYPE_I32, [CPU_U32] = HAL_TYPE_U32,
    [CPU_I64] = HAL_TYPE_I64,   [CPU_U64] = HAL_TYPE_U64, [CPU_F32] = HAL_TYPE_F32,
    [CPU_F64] = HAL_TYPE_F64};

static uint32_t place_of(cpu_run *run)
{
    const uint64_t address = (uint64_t)(uintptr_t)run;
    return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CPU_STEP_KINDS;
}

static void kind_add(cpu_step_kinds *kinds, cpu_run *run, cpu_step_class class, uint32_t opcode,
                     hal_type type, hal_type result)
{
    if (!run) {
        return;
    }
    uint32_t place = place_of(run);
    while (kinds->kinds[place].run && kinds->kinds[place].run != run) {
        place = (place + 1) % CPU_STEP_KINDS;
    }
    kinds->kinds[place] = (cpu_step_kind){
        .run = run, .class = class, .opcode = (uint16_t)opcode, .type = type, .result = result};
}

static hal_type result_of(uint32_t opcode, hal_type type)
{
    return opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE ? (hal_type)HAL_TYPE_BOOL : type;
}

static void operations_add(cpu_step_kinds *kinds, const cpu_lanes *lanes, uint32_t t)
{
    const hal_type type = value_types[t];
    for (uint32_t opcode = 0; opcode < HAL_IR_OPCODE_COUNT; opcode++) {
        const hal_type result = result_of(opcode, type);
        kind_add(kinds, lanes->unary[opcode][t], CPU_STEP_OPERATION, opcode, type, result);
        for (uint32_t form = 0; form < CPU_BINARY_FORMS; form++) {
            kind_add(kinds, lanes->binary[opcode][t][form], CPU_STEP_OPERATION, opcode, type,
                     result);
        }
    }
    for (uint32_t form = 0; form < CPU_TERNARY_FORMS; form++) {
        kind_add(kinds, lanes->ternary[0][t][form], CPU_STEP_OPERATION, HAL_IR_FMA, type, type);
        kind_add(kinds, lanes->ternary[1][t][form], CPU_STEP_OPERATION, HAL_IR_SELECT, type, type);
    }
    for (uint32_t to = 0; to < CPU_TYPE_COUNT; to++) {
        kind_add(kinds, lanes->cast[t][to], CPU_STEP_OPERATION, HAL_IR_CAST, type, value_types[to]);
    }
    kind_add(kinds, lanes->spread[t], CPU_STEP_MOVE, 0, type, type);
    kind_add(kinds, lanes->copy[t], CPU_STEP_MOVE, 0, type, type);
    kind_add(kinds, lanes->blend[t], CPU_STEP_BLEND, 0, type, type);
    kind_add(kinds, lanes->scalar[t], CPU_STEP_OPERATION, HAL_IR_SCALAR, type, type);
    kind_add(kinds, lanes->shuffle_xor[t], CPU_STEP_EXCHANGE, HAL_IR_SHUFFLE_XOR, type, type);
    kind_add(kinds, lanes->affine[t], CPU_STEP_PURE, 0, type, type);
    kind_add(kinds, lanes->within[t], CPU_STEP_BOUND, 0, type, HAL_TYPE_BOOL);
    kind_add(kinds, lanes->beyond[t], CPU_STEP_BOUND, 0, type, HAL_TYPE_BOOL);
}

static void memory_add(cpu_step_kinds *kinds, const cpu_lanes *lanes, hal_type type)
{
    const hal_type value = hal_type_of_value(type);
    kind_add(kinds, lanes->narrow[type], CPU_STEP_OPERATION, HAL_IR_NARROW, type, value);
    kind_add(kinds, lanes->load[type], CPU_STEP_LOAD, 0, type, value);
    kind_add(kinds, lanes->store[type], CPU_STEP_STORE, 0, type, value);
    kind_add(kinds, lanes->load_uniform[type], CPU_STEP_OPERATION, HAL_IR_LOAD, type, value);
}

static void kinds_fill(cpu_step_kinds *kinds, const cpu_lanes *lanes)
{
    kinds->lanes = lanes;
    for (uint32_t t = 0; t < CPU_TYPE_COUNT; t++) {
        operations_add(kinds, lanes, t);
    }
    for (hal_type type = 0; type < HAL_TYPE_COUNT; type++) {
        memory_add(kinds, lanes, type);
    }
    const hal_type u32 = HAL_TYPE_U32, none = HAL_TYPE_BOOL;
    kind_add(kinds, lanes->group_id, CPU_STEP_OPERATION, HAL_IR_GROUP_ID, u32, u32);
    kind_add(kinds, lanes->group_count, CPU_STEP_OPERATION, HAL_IR_GROUP_COUNT, u32, u32);
    kind_add(kinds, lanes->both, CPU_STEP_PURE, 0, none, none);
    kind_add(kinds, lanes->choose, CPU_STEP_PURE, 0, none, none);
}

const cpu_step_kinds *cpu_step_kinds_of(const cpu_lanes *lanes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cpu_step_kinds *tables[4];
    const cpu_step_kinds *found = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < 4 && !found; i++) {
        if (!tables[i] && (tables[i] = calloc(1, sizeof(cpu_step_kinds))) != NULL) {
            kinds_fill(tables[i], lanes);
        }
        found = tables[i] && tables[i]->lanes == lanes ? tables[i] : NULL;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

cpu_step_kind cpu_step_kind_find(const cpu_step_kinds *kinds, cpu_run *run)
{
    uint32_t place = place_of(run);
    while (kinds->kinds[place].run) {
        if (kinds->kinds[place].run == run) {
            return kinds->kinds[place];
        }
        place = (place + 1) % CPU_STEP_KINDS;
    }
    return (cpu_step_kind){.class = CPU_STEP_OTHER};
}
