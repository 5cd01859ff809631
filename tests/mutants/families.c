/* families.c: faults of one pattern that the kernels of a family of operators have: what a compiler
 * may get wrong where single operations are right. */
#include "edit.h"

static bool has_opcode(const wrap_ir *ir, hal_ir_value value, uint16_t opcode)
{
    return value < ir->ir.record_count && ir->records[value].opcode == opcode;
}

/* ---- Indexing ---- */

/* An index beyond the axis takes element 0: the comparison with the axis' length is left out. */
static uint32_t gather_beyond(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    const hal_ir_value index = ir->records[i].a;
    if (edit_type_of(ir, index) != HAL_TYPE_U64) {
        return i;
    }
    const hal_ir_value zero = NUMBER(HAL_TYPE_U64, 0);
    const hal_ir_value kept = SELECT(HAL_TYPE_U64, i, index, zero);
    const hal_ir_value yes = COMPARE(EQ, zero, zero);
    for (uint32_t k = yes + 1; k < ir->ir.record_count; k++) {
        hal_ir_record *record = &ir->records[k];
        record->a = record->a == index ? kept : record->a;
        record->a = record->a == i ? yes : record->a;
        record->b = record->b == i ? yes : record->b;
    }
    return yes;
}

/* The updates of an axis are stored in the reverse order. */
static uint32_t scatter_reversed(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    const hal_ir_value one = NUMBER(HAL_TYPE_U32, 1);
    const hal_ir_value last = OPERATE(SUB, HAL_TYPE_U32, ir->records[i].b, one);
    return edit_replace(ir, i, OPERATE(SUB, HAL_TYPE_U32, last, i));
}

/* Of a 64-bit atomic addition only the low word is added. */
static uint32_t scatter_low_word(wrap_ir *ir, uint32_t i)
{
    if (edit_type_of(ir, ir->records[i].c) != HAL_TYPE_U64) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value mask = NUMBER(HAL_TYPE_U64, UINT32_MAX);
    const hal_ir_value low = OPERATE(AND, HAL_TYPE_U64, ir->records[i + 1].c, mask);
    ir->records[at].c = low;
    return at;
}

/* The last one of several atomic operations stays. */
static uint32_t scatter_exchanged(wrap_ir *ir, uint32_t i)
{
    ir->records[i].flags = HAL_IR_ATOMIC_EXCHANGE;
    return i;
}

static uint32_t scatter_direct(wrap_ir *ir, uint32_t i)
{
    return scatter_exchanged(ir, i);
}

/* An element begins as if it were 0. */
static uint32_t scatter_own_lost(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value code = ir->records[i].c;
    if (edit_type_of(ir, code) != HAL_TYPE_U32) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value zero = NUMBER(HAL_TYPE_U32, 0);
    ir->records[at].c = zero;
    return at;
}

/* A negative sum or member is taken for a positive one. */
static uint32_t scatter_unsigned(wrap_ir *ir, uint32_t i)
{
    for (uint32_t k = i + 1; k < ir->ir.record_count; k++) {
        hal_ir_record *choice = &ir->records[k];
        choice->b = choice->opcode == HAL_IR_SELECT && choice->b == i ? choice->c : choice->b;
    }
    return i;
}

/* ---- Scans, order, reductions ---- */

/* What a scan carries to the next elements lacks the last of those before. */
static uint32_t scan_carried(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value value = ir->records[i].b;
    if (has_opcode(ir, value, HAL_IR_ADD) || has_opcode(ir, value, HAL_IR_MUL)) {
        ir->records[i].b = ir->records[value].a;
    }
    return i;
}

/* Equal elements are sorted in the reverse of their order: i < own is own < i. */
static uint32_t sort_unstable(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *less = &ir->records[i];
    if (has_opcode(ir, less->a, HAL_IR_FOR)) {
        const hal_ir_value turn = less->a;
        less->a = less->b;
        less->b = turn;
    }
    return i;
}

/* The place of a maximum is that of any equal one: the comparison of places is left out. */
static uint32_t argmax_any(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *either = &ir->records[i];
    if (has_opcode(ir, either->b, HAL_IR_AND) &&
        has_opcode(ir, ir->records[either->b].b, HAL_IR_LT)) {
        either->b = either->a;
    }
    return i;
}

/* ---- Rows ---- */

/* The number that a norm adds under its root is left out. */
static uint32_t norm_epsilon(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *root = &ir->records[i];
    if (has_opcode(ir, root->a, HAL_IR_ADD)) {
        root->a = ir->records[root->a].a;
    }
    return i;
}

/* The maximum of a row is not subtracted before the exponential. */
static uint32_t softmax_maximum(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *power = &ir->records[i];
    if (has_opcode(ir, power->a, HAL_IR_SUB)) {
        power->a = ir->records[power->a].a;
    }
    return i;
}

/* The squares of a variance are those of the numbers, not of their distances from the mean. */
static uint32_t variance_mean(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *square = &ir->records[i];
    if (square->a == square->b && has_opcode(ir, square->a, HAL_IR_SUB)) {
        square->a = square->b = ir->records[square->a].a;
    }
    return i;
}

/* Sums of attention keep their scale when a greater score comes: the difference of the old and the
 * new maximum is 0. */
static uint32_t attention_rescaled(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *difference = &ir->records[i];
    if (has_opcode(ir, difference->a, HAL_IR_GET) && has_opcode(ir, difference->b, HAL_IR_NEG)) {
        difference->a = ir->records[difference->b].a;
    }
    return i;
}

/* ---- Convolution, pooling, resizing ---- */

/* Of two neighbours with shares a x + b y the second one counts for the first. */
static uint32_t resize_neighbour(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *sum = &ir->records[i];
    if (has_opcode(ir, sum->a, HAL_IR_MUL) && has_opcode(ir, sum->b, HAL_IR_MUL)) {
        const hal_ir_record *first = &ir->records[sum->a];
        hal_ir_record *second = &ir->records[sum->b];
        if (has_opcode(ir, first->a, HAL_IR_LOAD) && has_opcode(ir, first->b, HAL_IR_LOAD) &&
            has_opcode(ir, second->a, HAL_IR_LOAD) && has_opcode(ir, second->b, HAL_IR_LOAD)) {
            second->a = first->a;
        }
    }
    return i;
}

/* Padding is 0 whatever number it is to be. */
static uint32_t unfold_padding(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *choice = &ir->records[i];
    if (has_opcode(ir, choice->b, HAL_IR_LOAD) && has_opcode(ir, choice->c, HAL_IR_LOAD)) {
        choice->c = choice->b; /* a load of 0, as its guard is false */
    }
    return i;
}

/* The first product of a window is taken with the second weight. */
static uint32_t depthwise_first(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *product = &ir->records[i];
    if (has_opcode(ir, product->c, HAL_IR_MUL)) {
        ir->records[product->c].b = product->b;
    }
    return i;
}

/* A sum of four elements of memory lacks the last one. */
static uint32_t pool_fourth(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *sum = &ir->records[i];
    if (has_opcode(ir, sum->b, HAL_IR_LOAD) && has_opcode(ir, sum->a, HAL_IR_ADD) &&
        has_opcode(ir, ir->records[sum->a].b, HAL_IR_LOAD) &&
        has_opcode(ir, ir->records[sum->a].a, HAL_IR_ADD) &&
        has_opcode(ir, ir->records[ir->records[sum->a].a].b, HAL_IR_LOAD)) {
        edit_replace(ir, i, sum->a);
    }
    return i;
}

/* ---- Recurrent layers, loops ---- */

/* A variable that is set after an inner loop keeps its first value. */
static uint32_t recurrent_carried(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *set = &ir->records[i];
    if (!has_opcode(ir, set->b, HAL_IR_ADD) || !has_opcode(ir, ir->records[set->b].b, HAL_IR_MUL)) {
        return i;
    }
    const hal_ir_value variable = set->a;
    hal_ir_record get = edit_record(HAL_IR_GET, edit_type_of(ir, variable));
    get.a = variable;
    const hal_ir_value before = wrap_ir_insert(ir, i, get);
    ir->records[i + 1].b = before;
    return i + 1;
}

/* The cell of an LSTM forgets nothing: the state is added as it is, not times the gate. */
static uint32_t lstm_forget(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *sum = &ir->records[i];
    const hal_ir_value product = sum->a;
    if (has_opcode(ir, product, HAL_IR_MUL) && has_opcode(ir, sum->b, HAL_IR_MUL) &&
        has_opcode(ir, ir->records[product].b, HAL_IR_GET)) {
        sum->a = ir->records[product].b;
    }
    return i;
}

/* Of two integers one is chosen, whatever the BOOL in memory is. */
static uint32_t loop_choice(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *choice = &ir->records[i];
    if (has_opcode(ir, choice->a, HAL_IR_LOAD) && edit_type_of(ir, choice->a) == HAL_TYPE_BOOL) {
        choice->c = choice->b;
    }
    return i;
}

/* ---- Types ---- */

/* Sums of products of I64 are kept in 32 bits. */
static uint32_t integer_sums(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value sum = ir->records[i].c;
    if (edit_type_of(ir, sum) != HAL_TYPE_I64) {
        return i;
    }
    uint32_t at = i;
    const hal_ir_value bits = NUMBER(HAL_TYPE_I64, 32);
    const hal_ir_value high = OPERATE(SHL, HAL_TYPE_I64, sum, bits);
    const hal_ir_value low = OPERATE(SHR, HAL_TYPE_I64, high, bits);
    ir->records[at].c = low;
    return at;
}

/* a d + b c next to a c - b d is taken for 2 a d. */
static uint32_t complex_cross(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *sum = &ir->records[i];
    const bool are_products =
        has_opcode(ir, sum->a, HAL_IR_MUL) && has_opcode(ir, sum->b, HAL_IR_MUL);
    for (uint32_t k = 0; k < i && are_products; k++) {
        const hal_ir_record *other = &ir->records[k];
        if (other->opcode == HAL_IR_SUB && has_opcode(ir, other->a, HAL_IR_MUL) &&
            has_opcode(ir, other->b, HAL_IR_MUL) &&
            ir->records[other->a].a == ir->records[sum->a].a &&
            ir->records[other->b].b == ir->records[sum->a].b) {
            sum->b = sum->a;
            break;
        }
    }
    return i;
}

/* Quantised weights: the second block of a column has the scale of the first one. */
static uint32_t quantised_block(wrap_ir *ir, uint32_t i)
{
    if (!has_opcode(ir, ir->records[i].b, HAL_IR_SCALAR)) {
        return i;
    }
    uint32_t at = i + 1;
    const hal_ir_value one = NUMBER(HAL_TYPE_U32, 1);
    const hal_ir_value is_second = COMPARE(EQ, i, one);
    const hal_ir_value zero = NUMBER(HAL_TYPE_U32, 0);
    return edit_replace(ir, i, SELECT(HAL_TYPE_U32, is_second, zero, i));
}

/* Of windows in an image, the last place of a line counts to the next one. */
static uint32_t window_line(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value one = wrap_ir_constant(ir, i++, HAL_TYPE_U32, 1);
    const hal_ir_value next =
        wrap_ir_operation(ir, i, HAL_IR_ADD, HAL_TYPE_U32, ir->records[i].a, one);
    ir->records[++i].a = next;
    return i;
}

/* ---- Groups of rows ---- */

/* The bisection for a tile's group ends one group early where the tile is the group's first. */
static uint32_t group_first_tile(wrap_ir *ir, uint32_t i)
{
    ir->records[i].opcode = HAL_IR_LT;
    return i;
}

/* ---- Products of F64 by integers ---- */

/* The magnitudes of an element's terms are taken to be enough for its bound. */
static uint32_t exact_unchecked(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *enough = &ir->records[i];
    if (has_opcode(ir, enough->a, HAL_IR_SCALAR) && edit_type_of(ir, enough->a) == HAL_TYPE_I32) {
        enough->b = enough->a;
    }
    return i;
}

/* The carry that a carry makes is lost. */
static uint32_t exact_carry(wrap_ir *ir, uint32_t i)
{
    if (has_opcode(ir, ir->records[i].a, HAL_IR_LT) &&
        has_opcode(ir, ir->records[i].b, HAL_IR_LT)) {
        ir->records[i].b = ir->records[i].a;
    }
    return i;
}

/* ---- Random numbers ---- */

/* A number from random bits has 23 of them, not 24. */
static uint32_t random_bits(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *shift = &ir->records[i];
    if (!has_opcode(ir, shift->b, HAL_IR_CONSTANT) ||
        ir->constants[ir->records[shift->b].aux] != 8) {
        return i;
    }
    uint32_t at = i + 1;
    const hal_ir_value mask = NUMBER(HAL_TYPE_U32, 0xfffffe);
    return edit_replace(ir, i, OPERATE(AND, HAL_TYPE_U32, i, mask));
}

#define MUTANT(fault, name_of_kernel, code, of_type)                                        \
    {                                                                                       \
        .name = #fault, .record = fault, .kernel = name_of_kernel, .opcode = HAL_IR_##code, \
        .type = HAL_TYPE_##of_type,                                                         \
    }
const mutant mutants_families[] = {MUTANT(gather_beyond, "gather", LT, NONE),
                                   MUTANT(scatter_reversed, "scatter_in_turn", FOR, NONE),
                                   MUTANT(scatter_low_word, "scatter_sum", ATOMIC, NONE),
                                   MUTANT(scatter_exchanged, "scatter_most", ATOMIC, NONE),
                                   MUTANT(scatter_direct, "scatter_direct", ATOMIC, NONE),
                                   MUTANT(scatter_own_lost, "scatter_begin", STORE, NONE),
                                   MUTANT(scatter_unsigned, "scatter_end", NEG, U64),
                                   MUTANT(scan_carried, "scan", SET, NONE),
                                   MUTANT(sort_unstable, "sort_counts", LT, NONE),
                                   MUTANT(argmax_any, "reduce", OR, NONE),
                                   MUTANT(norm_epsilon, "rows", RSQRT, NONE),
                                   MUTANT(softmax_maximum, "softmax", EXP, NONE),
                                   MUTANT(variance_mean, "rows", MUL, NONE),
                                   MUTANT(attention_rescaled, "attention", ADD, NONE),
                                   MUTANT(resize_neighbour, "chain", ADD, F64),
                                   MUTANT(lstm_forget, "lstm", ADD, NONE),
                                   MUTANT(quantised_block, "gemm_quantised", SHR, U32),
                                   MUTANT(unfold_padding, "unfold", SELECT, NONE),
                                   MUTANT(depthwise_first, "depthwise", FMA, NONE),
                                   MUTANT(window_line, "gemm", MULHI, NONE),
                                   MUTANT(pool_fourth, "chain", ADD, F32),
                                   MUTANT(recurrent_carried, "gru", SET, NONE),
                                   MUTANT(loop_choice, "chain", SELECT, I32),
                                   MUTANT(integer_sums, "gemm", STORE, NONE),
                                   MUTANT(group_first_tile, "gemm_grouped", LE, NONE),
                                   MUTANT(exact_unchecked, "exact_finish", LE, NONE),
                                   MUTANT(exact_carry, "exact_finish", OR, BOOL),
                                   MUTANT(complex_cross, "chain", ADD, NONE),
                                   MUTANT(random_bits, "random_uniform", SHR, U32),
                                   {.name = NULL}};
