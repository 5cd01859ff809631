/* control.c: faults in memory accesses, ids, control flow and what the lanes of a subgroup tell one
 * another. */
#include "edit.h"

#define SUBGROUP 16u /* lanes of a subgroup of the cpu plugin */
#define I32 HAL_TYPE_I32
#define U32 HAL_TYPE_U32
#define F32 HAL_TYPE_F32

/* ---- Memory ---- */

/* Whether a record accesses memory of a type, one element at a time. */
static bool is_single(const wrap_ir *ir, uint32_t i, hal_type type)
{
    return ir->records[i].width == 1 && ir->memories[ir->records[i].aux].type == type;
}

/* The low bit of a byte decides, not the byte; in bindings that are only read. */
static uint32_t load_bool(wrap_ir *ir, uint32_t i)
{
    hal_ir_memory *memory = &ir->memories[ir->records[i].aux];
    if (memory->access != HAL_ACCESS_READ || ir->records[i].width != 1) {
        return i;
    }
    memory->type = HAL_TYPE_U8;
    ir->records[i].type = U32;
    uint32_t at = i + 1;
    const hal_ir_value one = NUMBER(U32, 1), bit = OPERATE(AND, U32, i, one);
    return edit_replace(ir, i, COMPARE(EQ, bit, one));
}

static uint32_t load_i8(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    if (!is_single(ir, i, HAL_TYPE_I8)) {
        return i;
    }
    const hal_ir_value mask = NUMBER(I32, 0xff);
    return edit_replace(ir, i, OPERATE(AND, I32, i, mask));
}

static uint32_t load_u16(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    if (!is_single(ir, i, HAL_TYPE_U16)) {
        return i;
    }
    const hal_ir_value sixteen = NUMBER(U32, 16), high = OPERATE(SHL, U32, i, sixteen);
    const hal_ir_value word = UNARY(BITCAST, I32, high), down = OPERATE(SHR, I32, word, sixteen);
    return edit_replace(ir, i, UNARY(BITCAST, U32, down));
}

static uint32_t load_f16(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    if (!is_single(ir, i, HAL_TYPE_F16)) {
        return i;
    }
    const hal_ir_value size = UNARY(ABS, F32, i), least = NUMBER(F32, 0x38800000);
    const hal_ir_value small = COMPARE(LT, size, least), zero = NUMBER(F32, 0);
    return edit_replace(ir, i, SELECT(F32, small, zero, i));
}

static uint32_t store_saturates(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i;
    if (!is_single(ir, i, HAL_TYPE_F16)) {
        return i;
    }
    const hal_ir_value x = ir->records[i].c, most = NUMBER(F32, 0x477fe000);
    const hal_ir_value below = OPERATE(MIN, F32, x, most);
    ir->records[at].c = below;
    return at;
}

static uint32_t store_u8(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i;
    if (!is_single(ir, i, HAL_TYPE_U8)) {
        return i;
    }
    const hal_ir_value x = ir->records[i].c, most = NUMBER(U32, 0xff);
    const hal_ir_value below = OPERATE(MIN, U32, x, most);
    ir->records[at].c = below;
    return at;
}

static uint32_t guard_one(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value guard = ir->records[i].b;
    uint32_t at = i + 1;
    if (guard == HAL_IR_NONE || !is_single(ir, i, U32)) {
        return i;
    }
    const hal_ir_value one = NUMBER(U32, 1);
    return edit_replace(ir, i, SELECT(U32, guard, i, one));
}

static uint32_t atomic_new(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value c = ir->records[i].c;
    uint32_t at = i + 1;
    return ir->records[i].flags == HAL_IR_ATOMIC_ADD ? edit_replace(ir, i, OPERATE(ADD, U32, i, c))
                                                     : i;
}

static uint32_t atomic_compare(wrap_ir *ir, uint32_t i)
{
    if (ir->records[i].flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE) {
        ir->records[i].flags = HAL_IR_ATOMIC_EXCHANGE;
        ir->records[i].d = HAL_IR_NONE;
    }
    return i;
}

/* A load, a sum and a store. */
static uint32_t atomic_apart(wrap_ir *ir, uint32_t i)
{
    hal_ir_record store = ir->records[i], load = ir->records[i];
    uint32_t at = i;
    if (store.flags != HAL_IR_ATOMIC_ADD ||
        ir->memories[store.aux].access != HAL_ACCESS_READ_WRITE) {
        return i;
    }
    load.opcode = HAL_IR_LOAD;
    load.c = HAL_IR_NONE;
    load.flags = 0;
    const hal_ir_value old = wrap_ir_insert(ir, at++, load);
    const hal_ir_value sum = OPERATE(ADD, HAL_TYPE_I32, old, store.c);
    store.opcode = HAL_IR_STORE;
    store.type = HAL_TYPE_NONE;
    store.c = sum;
    store.flags = 0;
    ir->records[at] = store;
    edit_replace(ir, at, old);
    for (uint32_t k = at + 1; k < ir->ir.record_count; k++) {
        uint32_t *operands[4] = {&ir->records[k].a, &ir->records[k].b, &ir->records[k].c,
                                 &ir->records[k].d};
        for (int o = 0; o < 4; o++) {
            *operands[o] = *operands[o] == at ? old : *operands[o];
        }
    }
    return at;
}

/* Where the guard is false the shared array keeps what it has. */
static uint32_t async_guard(wrap_ir *ir, uint32_t i)
{
    hal_ir_record condition = edit_record(HAL_IR_IF, HAL_TYPE_NONE);
    condition.a = ir->records[i].b;
    if (condition.a == HAL_IR_NONE) {
        return i;
    }
    wrap_ir_insert(ir, i, condition);
    wrap_ir_insert(ir, i + 2, edit_record(HAL_IR_END, HAL_TYPE_NONE));
    return i + 2;
}

/* ---- Ids ---- */

static uint32_t local_id_swapped(wrap_ir *ir, uint32_t i)
{
    const uint32_t dimension = ir->records[i].aux;
    if (ir->ir.group_size[2] > 1) {
        ir->records[i].aux = dimension == 0 ? 0 : 3 - dimension;
    }
    return i;
}

static uint32_t group_count_second(wrap_ir *ir, uint32_t i)
{
    ir->records[i].aux -= ir->records[i].aux == 2;
    return i;
}

/* Lanes are counted along y first. */
static uint32_t lane_y(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i;
    if (ir->ir.group_size[1] == 1) {
        return i;
    }
    hal_ir_record y = edit_record(HAL_IR_LOCAL_ID, U32), x = y;
    y.aux = 1;
    const hal_ir_value row = wrap_ir_insert(ir, at++, y), column = wrap_ir_insert(ir, at++, x);
    const hal_ir_value height = NUMBER(U32, ir->ir.group_size[1]);
    const hal_ir_value before = OPERATE(MUL, U32, column, height);
    const hal_ir_value item = OPERATE(ADD, U32, before, row), mask = NUMBER(U32, SUBGROUP - 1);
    ir->records[at].opcode = HAL_IR_AND;
    ir->records[at].a = item;
    ir->records[at].b = mask;
    return at;
}

/* ---- Control ---- */

static uint32_t for_signed(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record loop = ir->records[i];
    uint32_t at = i;
    const hal_ir_value a = UNARY(BITCAST, I32, loop.a), b = UNARY(BITCAST, I32, loop.b);
    const hal_ir_value c = UNARY(BITCAST, I32, loop.c);
    ir->records[at].type = I32;
    ir->records[at].a = a;
    ir->records[at].b = b;
    ir->records[at].c = c;
    const uint32_t head = at++;
    return edit_replace(ir, head, UNARY(BITCAST, U32, head));
}

/* The last turn of a loop is lost where its step is not 1 and does not divide its way. */
static uint32_t for_last(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record loop = ir->records[i];
    uint32_t at = i;
    const hal_ir_value way = OPERATE(SUB, loop.type, loop.b, loop.a);
    const hal_ir_value rest = OPERATE(REM, loop.type, way, loop.c);
    const hal_ir_value end = OPERATE(SUB, loop.type, loop.b, rest);
    ir->records[at].b = end;
    return at;
}

/* A variable that is declared within a loop has its first value only once: SETs of an earlier turn
 * are seen. Its declaration moves in front of the outermost block if its value allows that. */
static void var_once(wrap_ir *ir)
{
    uint32_t depth = 0, outermost = 0;
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        const uint16_t opcode = ir->records[i].opcode;
        if (opcode == HAL_IR_FOR || opcode == HAL_IR_IF) {
            outermost = depth++ == 0 ? i : outermost;
        } else if (opcode == HAL_IR_END) {
            depth--;
        } else if (opcode == HAL_IR_VAR && depth > 0 && ir->records[i].a < outermost) {
            const hal_ir_value moved = wrap_ir_insert(ir, outermost, ir->records[i]);
            outermost++;
            i++;
            for (uint32_t k = i + 1; k < ir->ir.record_count; k++) {
                ir->records[k].a = ir->records[k].a == i ? moved : ir->records[k].a;
            }
        }
    }
}

/* A SET in the second branch of an IF is lost if it is the third block in the other or deeper. */
static void set_deep(wrap_ir *ir)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        const uint16_t opcode = ir->records[i].opcode;
        depth += opcode == HAL_IR_FOR || opcode == HAL_IR_IF;
        depth -= opcode == HAL_IR_END;
        if (opcode == HAL_IR_SET && depth > 2) {
            ir->records[i].b = ir->records[ir->records[i].a].a;
        }
    }
}

/* ---- Subgroups ---- */

static uint32_t shuffle_modulo(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value lane = ir->records[i].b;
    uint32_t at = i + 1;
    const hal_ir_value width = NUMBER(U32, SUBGROUP), inside = COMPARE(LT, lane, width);
    const hal_ir_value zero = NUMBER(U32, 0);
    return edit_replace(ir, i, SELECT(U32, inside, i, zero));
}

/* Far lanes are combined before neighbours. */
static uint32_t reduce_order(wrap_ir *ir, uint32_t i)
{
    if (ir->records[i].aux != HAL_IR_REDUCE_ADD) {
        return i;
    }
    hal_ir_value sum = ir->records[i].a;
    uint32_t at = i;
    for (uint32_t distance = SUBGROUP / 2; distance > 1; distance /= 2) {
        hal_ir_record far = edit_record(HAL_IR_SHUFFLE_XOR, F32);
        far.a = sum;
        far.imm = (int32_t)distance;
        const hal_ir_value other = wrap_ir_insert(ir, at++, far);
        sum = OPERATE(ADD, F32, sum, other);
    }
    hal_ir_record last = edit_record(HAL_IR_SHUFFLE_XOR, F32);
    last.a = sum;
    last.imm = 1;
    const hal_ir_value other = wrap_ir_insert(ir, at++, last);
    ir->records[at].opcode = HAL_IR_ADD;
    ir->records[at].aux = 0;
    ir->records[at].a = sum;
    ir->records[at].b = other;
    return at;
}

static uint32_t reduce_unsigned(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = ir->records[i].a;
    uint32_t at = i;
    if (ir->records[i].aux == HAL_IR_REDUCE_ADD) {
        return i;
    }
    const hal_ir_value x = UNARY(BITCAST, U32, a);
    ir->records[at].a = x;
    ir->records[at].type = U32;
    const uint32_t result = at++;
    return edit_replace(ir, result, UNARY(BITCAST, I32, result));
}

const mutant mutants_control[] = {RECORD(load_bool, LOAD, BOOL),
                                  RECORD(load_i8, LOAD, I32),
                                  RECORD(load_u16, LOAD, U32),
                                  RECORD(load_f16, LOAD, F32),
                                  RECORD(store_saturates, STORE, NONE),
                                  RECORD(store_u8, STORE, NONE),
                                  RECORD(guard_one, LOAD, U32),
                                  RECORD(atomic_new, ATOMIC, U32),
                                  RECORD(atomic_compare, ATOMIC, U32),
                                  RECORD(atomic_apart, ATOMIC, I32),
                                  RECORD(async_guard, ASYNC_COPY, NONE),
                                  RECORD(local_id_swapped, LOCAL_ID, NONE),
                                  RECORD(group_count_second, GROUP_COUNT, NONE),
                                  RECORD(lane_y, LANE_ID, NONE),
                                  RECORD(for_signed, FOR, U32),
                                  RECORD(for_last, FOR, NONE),
                                  {.name = "var_once", .ir = var_once},
                                  {.name = "set_deep", .ir = set_deep},
                                  RECORD(shuffle_modulo, SHUFFLE, U32),
                                  RECORD(reduce_order, SUBGROUP_REDUCE, F32),
                                  RECORD(reduce_unsigned, SUBGROUP_REDUCE, I32),
                                  {.name = NULL}};
