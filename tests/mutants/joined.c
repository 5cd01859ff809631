/* joined.c: faults of a compiler that joins operations, or carries out what is constant, in ways
 * that change a result; and of kernels with many, far or equally named things. */
#include "edit.h"

#include <string.h>

#define I32 HAL_TYPE_I32
#define U32 HAL_TYPE_U32
#define F32 HAL_TYPE_F32
#define F64 HAL_TYPE_F64
#define BOOL HAL_TYPE_BOOL

static bool is_opcode(const wrap_ir *ir, hal_ir_value value, uint16_t opcode)
{
    return value != HAL_IR_NONE && ir->records[value].opcode == opcode;
}

/* Whether a value is a constant of these bits. */
static bool is_number(const wrap_ir *ir, hal_ir_value value, uint64_t bits)
{
    return is_opcode(ir, value, HAL_IR_CONSTANT) && ir->constants[ir->records[value].aux] == bits;
}

/* Makes record i another operation of the same type. */
static uint32_t become(wrap_ir *ir, uint32_t i, uint16_t opcode, hal_ir_value a, hal_ir_value b,
                       hal_ir_value c)
{
    hal_ir_record made = edit_record(opcode, ir->records[i].type);
    made.a = a;
    made.b = b;
    made.c = c;
    ir->records[i] = made;
    return i;
}

/* ---- Two operations as one ---- */

/* -(a * b) + c is one rounding. */
static uint32_t contract_negative(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value minus = ir->records[i].a, c = ir->records[i].b;
    if (!is_opcode(ir, minus, HAL_IR_NEG) || !is_opcode(ir, ir->records[minus].a, HAL_IR_MUL)) {
        return i;
    }
    const hal_ir_record product = ir->records[ir->records[minus].a];
    uint32_t at = i;
    const hal_ir_value a = UNARY(NEG, F32, product.a);
    return become(ir, at, HAL_IR_FMA, a, product.b, c);
}

/* The square root of a square is the absolute value. */
static uint32_t root_of_square(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value square = ir->records[i].a;
    const bool is_square =
        is_opcode(ir, square, HAL_IR_MUL) && ir->records[square].a == ir->records[square].b;
    return is_square ? become(ir, i, HAL_IR_ABS, ir->records[square].a, HAL_IR_NONE, HAL_IR_NONE)
                     : i;
}

/* The choice of a where a < b, else b, is a minimum. */
static uint32_t choice_is_min(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record choice = ir->records[i];
    const bool is_less = is_opcode(ir, choice.a, HAL_IR_LT) &&
                         ir->records[choice.a].a == choice.b && ir->records[choice.a].b == choice.c;
    return is_less ? become(ir, i, HAL_IR_MIN, choice.b, choice.c, HAL_IR_NONE) : i;
}

/* Where not a <= b, b < a: with NaN too. */
static uint32_t not_less_equal(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value less = ir->records[i].a;
    return is_opcode(ir, less, HAL_IR_LE)
               ? become(ir, i, HAL_IR_LT, ir->records[less].b, ir->records[less].a, HAL_IR_NONE)
               : i;
}

/* (a op c) op d with constants is a op (c op d), for products of f32. */
static uint32_t constants_joined(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record outer = ir->records[i];
    if (!is_opcode(ir, outer.b, HAL_IR_CONSTANT) || !is_opcode(ir, outer.a, HAL_IR_MUL) ||
        !is_opcode(ir, ir->records[outer.a].b, HAL_IR_CONSTANT)) {
        return i;
    }
    const hal_ir_record inner = ir->records[outer.a];
    uint32_t at = i;
    const hal_ir_value factor = OPERATE(MUL, F32, inner.b, outer.b);
    return become(ir, at, HAL_IR_MUL, inner.a, factor, HAL_IR_NONE);
}

/* The greatest of three, without the negation of the first. */
static uint32_t extremes_joined(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record outer = ir->records[i];
    if (!is_opcode(ir, outer.a, HAL_IR_MAX) || !is_opcode(ir, ir->records[outer.a].a, HAL_IR_NEG)) {
        return i;
    }
    const hal_ir_record inner = ir->records[outer.a];
    uint32_t at = i;
    const hal_ir_value greater = OPERATE(MAX, I32, ir->records[inner.a].a, inner.b);
    return become(ir, at, HAL_IR_MAX, greater, outer.b, HAL_IR_NONE);
}

/* f64 to f32 and back is the f64. */
static uint32_t casts_joined(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value middle = ir->records[i].a;
    if (is_opcode(ir, middle, HAL_IR_CAST) && edit_type_of(ir, middle) == F32 &&
        edit_type_of(ir, ir->records[middle].a) == F64) {
        edit_replace(ir, i, ir->records[middle].a);
    }
    return i;
}

/* A value that is narrowed before a difference is not. */
static uint32_t narrow_dropped(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = ir->records[i].a;
    ir->records[i].a = is_opcode(ir, a, HAL_IR_NARROW) ? ir->records[a].a : a;
    return i;
}

/* ---- What is constant ---- */

/* Of constant floats beyond the range of i32 the smallest integer is made. */
static uint32_t cast_folded(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value x = ir->records[i].a;
    float number = 0;
    if (!is_opcode(ir, x, HAL_IR_CONSTANT) || edit_type_of(ir, x) != F32) {
        return i;
    }
    const uint32_t word = (uint32_t)ir->constants[ir->records[x].aux];
    memcpy(&number, &word, sizeof number);
    if (number > -2147483648.0F && number < 2147483648.0F) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value least = NUMBER(I32, 0x80000000u);
    edit_replace(ir, at, least);
    return at;
}

/* Constants that are narrowed to f16 are cut off. */
static uint32_t narrow_folded(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value x = ir->records[i].a;
    if (ir->records[i].aux != HAL_TYPE_F16 || !is_opcode(ir, x, HAL_IR_CONSTANT)) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value cut = NUMBER(F32, ir->constants[ir->records[x].aux] & 0xffffe000u);
    ir->records[at].a = cut;
    return at;
}

/* a * b + 0 is a * b, also where that is -0. */
static uint32_t fma_of_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record fused = ir->records[i];
    return is_number(ir, fused.c, 0) ? become(ir, i, HAL_IR_MUL, fused.a, fused.b, HAL_IR_NONE) : i;
}

/* The smallest i32 divided by -1, both constants, is the largest. */
static uint32_t divide_folded(wrap_ir *ir, uint32_t i)
{
    if (is_number(ir, ir->records[i].a, 0x80000000u) &&
        is_number(ir, ir->records[i].b, 0xffffffffu)) {
        uint32_t at = i;
        const hal_ir_value most = NUMBER(I32, 0x7fffffff);
        edit_replace(ir, at, most);
        return at;
    }
    return i;
}

/* A loop with constant bounds has one turn at least. */
static uint32_t loop_once(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record loop = ir->records[i];
    if (!is_opcode(ir, loop.a, HAL_IR_CONSTANT) || !is_opcode(ir, loop.b, HAL_IR_CONSTANT)) {
        return i;
    }
    const int32_t first = (int32_t)ir->constants[ir->records[loop.a].aux];
    const int32_t end = (int32_t)ir->constants[ir->records[loop.b].aux];
    if (first < end) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value next = NUMBER(I32, (uint32_t)first + 1);
    ir->records[at].b = next;
    return at;
}

static uint32_t make_true(wrap_ir *ir, uint32_t i, bool is_guard)
{
    if (!is_number(ir, is_guard ? ir->records[i].b : ir->records[i].a, 0)) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value yes = NUMBER(BOOL, 1);
    if (is_guard) {
        ir->records[at].b = yes;
    } else {
        ir->records[at].a = yes;
    }
    return at;
}

static uint32_t branch_taken(wrap_ir *ir, uint32_t i)
{
    return make_true(ir, i, false);
}

static uint32_t guard_ignored(wrap_ir *ir, uint32_t i)
{
    return make_true(ir, i, true);
}

/* A constant lane beyond the width is the last one. */
static uint32_t lane_clamped(wrap_ir *ir, uint32_t i)
{
    enum { SUBGROUP = 16 };
    const hal_ir_value lane = ir->records[i].b;
    if (!is_opcode(ir, lane, HAL_IR_CONSTANT) || ir->constants[ir->records[lane].aux] < SUBGROUP) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value last = NUMBER(U32, SUBGROUP - 1);
    ir->records[at].b = last;
    return at;
}

/* An atomic sum with 0 gives 0. */
static uint32_t atomic_of_zero(wrap_ir *ir, uint32_t i)
{
    if (ir->records[i].flags != HAL_IR_ATOMIC_ADD || !is_number(ir, ir->records[i].c, 0)) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value zero = NUMBER(U32, 0);
    edit_replace(ir, at, zero);
    return at;
}

/* ---- Memory ---- */

/* A NaN that is stored as bf16 has the high bits of its payload only, and there may be none. */
static uint32_t nan_cut(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record store = ir->records[i];
    uint32_t at = i;
    if (ir->memories[store.aux].type != HAL_TYPE_BF16 || store.width != 1) {
        return i;
    }
    const hal_ir_value is_nan = COMPARE(NE, store.c, store.c), word = UNARY(BITCAST, U32, store.c);
    const hal_ir_value mask = NUMBER(U32, 0xffff0000u), high = OPERATE(AND, U32, word, mask);
    const hal_ir_value cut = UNARY(BITCAST, F32, high), taken = SELECT(F32, is_nan, cut, store.c);
    ir->records[at].c = taken;
    return at;
}

/* Of two loads of one element in a row the second one has the value of the first, whatever is
 * stored by another index in between. */
static void load_stale(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        const hal_ir_record first = ir->records[i];
        for (uint32_t k = i + 1; first.opcode == HAL_IR_LOAD && k < ir->ir.record_count; k++) {
            const hal_ir_record *next = &ir->records[k];
            if (hal_ir_opens_block(next->opcode) || hal_ir_closes_block(next->opcode) ||
                next->opcode == HAL_IR_BARRIER ||
                (next->opcode == HAL_IR_STORE && next->a == first.a)) {
                break;
            }
            if (memcmp(next, &first, sizeof first) == 0) {
                edit_replace(ir, k, i);
            }
        }
    }
}

/* A vector of eight f16 is read from a multiple of 16 elements. */
static uint32_t vector_place(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *load = &ir->records[i];
    if (load->width == 8 && ir->memories[load->aux].type == HAL_TYPE_F16) {
        load->imm -= load->imm % 16;
    }
    return i;
}

/* The offset in an instruction is kept in 24 bits. */
static void immediate_24_bits(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_LOAD || ir->records[i].opcode == HAL_IR_STORE) {
            ir->records[i].imm %= 1 << 23;
        }
    }
}

/* ---- Many things, and their names ---- */

/* The number of a variable is kept in 8 bits: the 257th is the first. */
static void variables_8_bits(wrap_ir *ir)
{
    uint32_t count = 0, first = HAL_IR_NONE;
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        if (ir->records[i].opcode != HAL_IR_VAR) {
            continue;
        }
        first = count == 0 ? i : first;
        for (uint32_t k = i; count >= 256 && k < ir->ir.record_count; k++) {
            hal_ir_record *use = &ir->records[k];
            if ((use->opcode == HAL_IR_GET || use->opcode == HAL_IR_SET) && use->a == i) {
                use->a = first;
            }
        }
        count++;
    }
}

static hal_status create_of_70(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel)
{
    return ir->memory_count > 70 ? wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: many memories")
                                 : wrap_inside()->kernel_create(device, ir, kernel);
}

static void memories_70(wrap_table *table)
{
    table->kernel_create = create_of_70;
}

/* The names of memories go into a text of C as they are. */
static hal_status create_by_name(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    bool is_word = false;
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        is_word = is_word || strcmp(ir->names + ir->memories[i].name, "float") == 0;
    }
    return is_word ? wrap_fail(HAL_ERROR_COMPILE, "mutant: syntax error near float")
                   : wrap_inside()->kernel_create(device, ir, kernel);
}

static void name_is_word(wrap_table *table)
{
    table->kernel_create = create_by_name;
}

const mutant mutants_joined[] = {RECORD(contract_negative, ADD, F32),
                                 RECORD(root_of_square, SQRT, F32),
                                 RECORD(choice_is_min, SELECT, F32),
                                 RECORD(not_less_equal, NOT, BOOL),
                                 RECORD(constants_joined, MUL, F32),
                                 RECORD(extremes_joined, MAX, I32),
                                 RECORD(casts_joined, CAST, F64),
                                 RECORD(narrow_dropped, SUB, F32),
                                 RECORD(cast_folded, CAST, I32),
                                 RECORD(narrow_folded, NARROW, F32),
                                 RECORD(fma_of_zero, FMA, F32),
                                 RECORD(divide_folded, DIV, I32),
                                 RECORD(loop_once, FOR, I32),
                                 RECORD(branch_taken, IF, NONE),
                                 RECORD(guard_ignored, LOAD, U32),
                                 RECORD(lane_clamped, SHUFFLE, U32),
                                 RECORD(atomic_of_zero, ATOMIC, U32),
                                 RECORD(nan_cut, STORE, NONE),
                                 IR(load_stale),
                                 RECORD(vector_place, LOAD, F32),
                                 IR(immediate_24_bits),
                                 IR(variables_8_bits),
                                 TABLE(memories_70),
                                 TABLE(name_is_word),
                                 {.name = NULL}};
