/* The type rules and the scope rule of the IR, by the table of ir/info.c. */
#include "internal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* The state of the check of one record. */
typedef struct check {
    const hal_ir_kernel *kernel;
    uint32_t count; /* records that exist */
    const hal_ir_record *record;
    const hal_ir_info *info;
    hal_type common; /* type of the T operands; NONE before the first */
    hal_ir_problem *problem;
} check;

static bool check_allowed(check *c)
{
    const bool fragment = (c->kernel->flags & HAL_IR_FRAGMENT) != 0;
    if (fragment && !(c->info->traits & HAL_IR_TRAIT_FRAGMENT)) {
        return hal_ir_reject(c->problem, "not allowed in a fragment, which is an expression");
    }
    if (!fragment && (c->info->traits & HAL_IR_TRAIT_NO_KERNEL)) {
        return hal_ir_reject(c->problem, "only fragments have inputs and outputs");
    }
    return true;
}

static bool check_number(check *c, const char *field, uint32_t value, uint32_t limit)
{
    if (value >= limit) {
        return hal_ir_reject(c->problem, "%s: expected less than %u, got %u", field, limit, value);
    }
    return true;
}

/* Memory `aux` allows the access and has a type for it. */
static bool check_memory(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    if (!check_number(c, "memory", c->record->aux, kernel->memory_count)) {
        return false;
    }
    const hal_ir_memory *memory = &kernel->memories[c->record->aux];
    if ((c->info->traits & HAL_IR_TRAIT_READS) && !(memory->access & HAL_ACCESS_READ)) {
        return hal_ir_reject(c->problem,
                             "binding %s: expected HAL_ACCESS_READ, got a write-only binding",
                             kernel->names + memory->name);
    }
    if ((c->info->traits & HAL_IR_TRAIT_WRITES) && !(memory->access & HAL_ACCESS_WRITE)) {
        return hal_ir_reject(c->problem,
                             "binding %s: expected HAL_ACCESS_WRITE, got a read-only binding",
                             kernel->names + memory->name);
    }
    if (c->record->opcode == HAL_IR_ATOMIC && !(c->info->types & HAL_TYPE_BIT(memory->type))) {
        return hal_ir_reject(c->problem, "memory %s: expected i32, u32, i64 or u64, got %s",
                             kernel->names + memory->name, hal_type_name(memory->type));
    }
    return true;
}

/* The bit of a letter of a syntax; 0 of other characters. */
static inline uint64_t letter_bit(char letter)
{
    return (uint64_t)(letter >> 6 & 1) << (letter & 63);
}

/* aux, imm and flags: used ones in range, unused ones 0. */
static bool check_fields(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    uint64_t letters = 0;
    for (const char *s = c->info->syntax; *s != 0; s++) {
        bool good = true;
        letters |= letter_bit(*s);
        switch (*s) {
        case 'k':
            good = check_number(c, "constant", record->aux, kernel->constant_count);
            break;
        case 's':
            good = check_number(c, "scalar", record->aux, kernel->scalar_count);
            break;
        case 'x':
            good = check_number(c, "dimension", record->aux, 3);
            break;
        case 'n':
            good = check_number(c, "number", record->aux,
                                record->opcode == HAL_IR_INPUT ? kernel->input_count
                                                               : kernel->output_count);
            break;
        case 'R':
            good = check_number(c, "reduction", record->aux, HAL_IR_REDUCE_COUNT);
            break;
        case 'A':
            good = check_number(c, "kind of atomic", record->flags, HAL_IR_ATOMIC_COUNT);
            break;
        case 'F':
            good = check_number(c, "flags", record->flags, HAL_IR_FAST + 1);
            break;
        case 'S':
            good = record->aux != HAL_TYPE_NONE &&
                   check_number(c, "storage type", record->aux, HAL_TYPE_COUNT);
            break;
        case 'M':
        case 'N':
            good = check_memory(c);
            break;
        default:
            break;
        }
        if (!good) {
            return false;
        }
    }
    const bool uses_aux =
        (letters & (letter_bit('k') | letter_bit('s') | letter_bit('x') | letter_bit('n') |
                    letter_bit('S') | letter_bit('R') | letter_bit('M') | letter_bit('N'))) != 0;
    const bool uses_imm = (letters & (letter_bit('i') | letter_bit('M') | letter_bit('B'))) != 0;
    const bool uses_flags = (letters & (letter_bit('A') | letter_bit('F'))) != 0;
    if ((!uses_aux && record->aux != 0) || (!uses_imm && record->imm != 0) ||
        (!uses_flags && record->flags != 0)) {
        return hal_ir_reject(c->problem, "%s: expected 0 in an unused field",
                             !uses_aux && record->aux != 0   ? "aux"
                             : !uses_imm && record->imm != 0 ? "imm"
                                                             : "flags");
    }
    return true;
}

static hal_ir_value operand_of(const hal_ir_record *record, uint32_t slot)
{
    return slot == 0 ? record->a : slot == 1 ? record->b : slot == 2 ? record->c : record->d;
}

static bool check_stored(check *c, uint32_t slot, const hal_ir_record *made)
{
    const hal_type memory = c->kernel->memories[c->record->aux].type;
    if (made->type != hal_type_of_value(memory)) {
        return hal_ir_reject(c->problem, "operand %c: expected %s for memory of %s, got %s",
                             'a' + slot, hal_type_name(hal_type_of_value(memory)),
                             hal_type_name(memory), hal_type_name(made->type));
    }
    return true;
}

static bool check_common(check *c, uint32_t slot, hal_type type)
{
    if (!(c->info->types & HAL_TYPE_BIT(type))) {
        return hal_ir_reject(c->problem, "operand %c: expected a type that %s takes, got %s",
                             'a' + slot, c->info->name, hal_type_name(type));
    }
    if (c->common != HAL_TYPE_NONE && c->common != type) {
        return hal_ir_reject(c->problem, "operand %c: expected %s as the others, got %s",
                             'a' + slot, hal_type_name(c->common), hal_type_name(type));
    }
    c->common = type;
    return true;
}

static bool check_expected(check *c, uint32_t slot, hal_type type, hal_type expected,
                           const char *what)
{
    return type == expected ||
           hal_ir_reject(c->problem, "operand %c: expected %s for %s, got %s", 'a' + slot,
                         hal_type_name(expected), what, hal_type_name(type));
}

static bool check_scalar_operand(check *c, uint32_t slot, char rule)
{
    const hal_ir_record *records = c->kernel->records;
    const hal_type type = records[operand_of(c->record, slot)].type;
    switch (rule) {
    case 'T':
        return check_common(c, slot, type);
    case 'B':
    case 'g':
        return check_expected(c, slot, type, HAL_TYPE_BOOL,
                              rule == 'g' ? "a guard" : "a condition");
    case 'U':
        return check_expected(c, slot, type, HAL_TYPE_U32, "a lane");
    case 'I':
        return hal_type_is_integer(type) ||
               hal_ir_reject(c->problem, "operand %c: expected an integer index, got %s",
                             'a' + slot, hal_type_name(type));
    case 'v':
        return check_expected(c, slot, type, records[c->record->a].type, "this var");
    default: /* 'M' */
        return check_expected(c, slot, type,
                              hal_type_of_value(c->kernel->memories[c->record->aux].type),
                              "this memory");
    }
}

static bool check_operand(check *c, uint32_t slot)
{
    const hal_ir_record *record = c->record;
    const hal_ir_value value = operand_of(record, slot);
    char rule = c->info->operands[slot];
    if (rule == 'm') {
        rule = record->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE ? 'M' : '-';
    }
    if (rule == '-') {
        return value == HAL_IR_NONE ||
               hal_ir_reject(c->problem, "operand %c: expected none, got %%%u", 'a' + slot, value);
    }
    if (value == HAL_IR_NONE) {
        return rule == 'g' || rule == 'P' ||
               hal_ir_reject(c->problem, "operand %c: expected a value, got none", 'a' + slot);
    }
    if (value >= c->count) {
        return hal_ir_reject(c->problem, "operand %c: expected an earlier record, got %%%u",
                             'a' + slot, value);
    }
    const hal_ir_record *made = &c->kernel->records[value];
    const bool is_var = made->opcode == HAL_IR_VAR;
    if (rule == 'V') {
        return is_var || hal_ir_reject(c->problem, "operand %c: expected a var, got %%%u (%s)",
                                       'a' + slot, value, hal_ir_opcode_name(made->opcode));
    }
    if (is_var || made->type == HAL_TYPE_NONE) {
        return hal_ir_reject(c->problem, "operand %c: expected a value, got %%%u (%s)%s",
                             'a' + slot, value, hal_ir_opcode_name(made->opcode),
                             is_var ? "; read it with get" : "");
    }
    if (rule == 'P') {
        return true; /* checked by check_pack */
    }
    if (rule == 'S') {
        return check_stored(c, slot, made);
    }
    if (rule == 'W') {
        return made->width > 1 ||
               hal_ir_reject(c->problem, "operand %c: expected a vector, got the scalar %%%u",
                             'a' + slot, value);
    }
    if (made->width != 1) {
        return hal_ir_reject(c->problem,
                             "operand %c: expected a scalar, got the vector %%%u; take its "
                             "elements with extract",
                             'a' + slot, value);
    }
    return check_scalar_operand(c, slot, rule);
}

static bool is_width(uint32_t width, bool vector)
{
    return (width == 1 && !vector) || width == 2 || width == 4 || width == 8;
}

/* Two or four scalars of one type, or two vectors of width 4. */
static bool check_pack(check *c, hal_type *type)
{
    const hal_ir_record *records = c->kernel->records;
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(c->record, operands);
    const uint32_t width = c->record->width;
    const uint32_t expected = width == 4 ? 4 : 2;
    if (!is_width(width, 1)) {
        return hal_ir_reject(c->problem, "width: expected 2, 4 or 8, got %u", width);
    }
    for (uint32_t i = 0; i < expected; i++) {
        if (count != expected || operand_of(c->record, i) == HAL_IR_NONE) {
            return hal_ir_reject(c->problem, "operands: expected a to %c for width %u",
                                 'a' + expected - 1, width);
        }
        const hal_ir_record *made = &records[operands[i]];
        if (made->width != (width == 8 ? 4 : 1) || made->type != records[operands[0]].type) {
            return hal_ir_reject(c->problem, "operands: expected %u %s of one type for width %u",
                                 expected, width == 8 ? "vectors of width 4" : "scalars", width);
        }
    }
    *type = records[operands[0]].type;
    return true;
}

static bool result_of(check *c, hal_type *type, uint32_t *width)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    *type = HAL_TYPE_NONE;
    *width = 1;
    switch (c->info->result) {
    case 'T':
        *type = c->common;
        return true;
    case 'b':
        *type = HAL_TYPE_BOOL;
        return true;
    case 'u':
        *type = HAL_TYPE_U32;
        return true;
    case 'f':
        *type = record->aux == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
        *width = 4;
        return true;
    case 'v':
    case 'e':
        *type = kernel->records[record->a].type;
        return true;
    case 'p':
        *width = record->width;
        return check_pack(c, type);
    case 'm':
        *type = hal_type_of_value(kernel->memories[record->aux].type);
        *width = record->opcode == HAL_IR_ATOMIC ? 1 : record->width;
        return is_width(*width, 0) ||
               hal_ir_reject(c->problem, "width: expected 1, 2, 4 or 8, got %u", *width);
    case '=':
        *type = record->type;
        return (hal_type_is_value(*type) && (c->info->types & HAL_TYPE_BIT(*type))) ||
               hal_ir_reject(c->problem, "result: expected a type that %s can have, got %s",
                             c->info->name, *type < HAL_TYPE_COUNT ? hal_type_name(*type) : "?");
    case 's':
        *width = kernel->records[record->c].width;
        return true;
    case 'w':
        *width = record->width;
        return is_width(*width, 0) ||
               hal_ir_reject(c->problem, "width: expected 1, 2, 4 or 8, got %u", *width);
    default:
        *width = 0;
        return true;
    }
}

/* Tiles have fixed shapes. */
static bool check_matrices(check *c)
{
    const hal_type type = (hal_type)c->record->aux;
    const bool is_f64 = type == HAL_TYPE_F64;
    const hal_type word = is_f64 ? HAL_TYPE_F64 : HAL_TYPE_U32;
    const struct {
        hal_type type;
        uint8_t width;
    } tiles[3] = {{word, 4}, {word, 2}, {is_f64 ? HAL_TYPE_F64 : HAL_TYPE_F32, 4}};
    for (uint32_t slot = 0; slot < 3; slot++) {
        const hal_ir_record *made = &c->kernel->records[operand_of(c->record, slot)];
        if (made->type != tiles[slot].type || made->width != tiles[slot].width) {
            return hal_ir_reject(c->problem,
                                 "operand %c: expected %s of width %u, got %s of width %u",
                                 'a' + slot, hal_type_name(tiles[slot].type), tiles[slot].width,
                                 hal_type_name(made->type), made->width);
        }
    }
    return (HAL_TYPES_MATRIX & HAL_TYPE_BIT(type)) ||
           hal_ir_reject(c->problem, "type: expected f16, bf16, f32 or f64, got %s",
                         hal_type_name(type));
}

/* The step of a FOR, where it is constant. */
static bool check_step(check *c)
{
    const hal_ir_record *step = &c->kernel->records[c->record->c];
    if (step->opcode != HAL_IR_CONSTANT) {
        return true;
    }
    const uint64_t bits = c->kernel->constants[step->aux];
    return !(bits == 0 || (step->type == HAL_TYPE_I32 && bits > INT32_MAX)) ||
           hal_ir_reject(c->problem, "step: expected more than 0");
}

/* Rules of single opcodes that no letter of the table expresses. */
static bool check_opcode_rules(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    switch (record->opcode) {
    case HAL_IR_SCALAR:
        return record->type == kernel->scalars[record->aux].type ||
               hal_ir_reject(c->problem, "scalar %s: expected its type, %s, got %s",
                             kernel->names + kernel->scalars[record->aux].name,
                             hal_type_name(kernel->scalars[record->aux].type),
                             hal_type_name(record->type));
    case HAL_IR_CONSTANT: {
        const uint32_t bits = record->type == HAL_TYPE_BOOL ? 1 : 8 * hal_type_size(record->type);
        return bits == 64 || kernel->constants[record->aux] >> bits == 0 ||
               hal_ir_reject(c->problem, "constant: expected %u bits for %s, got 0x%llx", bits,
                             hal_type_name(record->type),
                             (unsigned long long)kernel->constants[record->aux]);
    }
    case HAL_IR_BITCAST:
        return hal_type_size(record->type) == hal_type_size(c->common) ||
               hal_ir_reject(c->problem, "result: expected a type of the size of %s, got %s",
                             hal_type_name(c->common), hal_type_name(record->type));
    case HAL_IR_NARROW:
        return hal_type_of_value((hal_type)record->aux) == c->common ||
               hal_ir_reject(c->problem, "operand a: expected %s for memory of %s, got %s",
                             hal_type_name(hal_type_of_value((hal_type)record->aux)),
                             hal_type_name((hal_type)record->aux), hal_type_name(c->common));
    case HAL_IR_EXTRACT: {
        const uint32_t width = kernel->records[record->a].width;
        return (record->imm >= 0 && (uint32_t)record->imm < width) ||
               hal_ir_reject(c->problem, "element: expected 0 to %u, got %d", width - 1,
                             record->imm);
    }
    case HAL_IR_SHUFFLE_XOR:
        return (record->imm >= 0 && record->imm < 128) ||
               hal_ir_reject(c->problem, "mask: expected 0 to 127, got %d", record->imm);
    case HAL_IR_FOR:
        return check_step(c);
    case HAL_IR_MATRIX_MULTIPLY:
        return check_matrices(c);
    case HAL_IR_ASYNC_WAIT:
        return record->imm >= 0 ||
               hal_ir_reject(c->problem, "sets: expected 0 or more, got %d", record->imm);
    case HAL_IR_ASYNC_COPY: {
        const uint32_t source = (uint32_t)record->imm;
        if (!hal_ir_is_shared(kernel, record->aux) || source >= kernel->binding_count ||
            kernel->memories[source].type != kernel->memories[record->aux].type ||
            !(kernel->memories[source].access & HAL_ACCESS_READ)) {
            return hal_ir_reject(c->problem, "memories: expected a binding that is read and a "
                                             "shared array of its type");
        }
        return true;
    }
    default:
        return true;
    }
}

bool hal_ir_reject(hal_ir_problem *problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return false;
}

bool hal_ir_check_record(const hal_ir_kernel *kernel, uint32_t count, const hal_ir_record *record,
                         hal_type *type, uint32_t *width, hal_ir_problem *problem)
{
    check c = {kernel, count, record, hal_ir_info_of(record->opcode), HAL_TYPE_NONE, problem};
    if (!c.info) {
        return hal_ir_reject(problem, "opcode: expected one of HAL_IR_*, got %u", record->opcode);
    }
    if (!check_allowed(&c) || !check_fields(&c)) {
        return false;
    }
    for (uint32_t slot = 0; slot < 4; slot++) {
        if (!check_operand(&c, slot)) {
            return false;
        }
    }
    return result_of(&c, type, width) && check_opcode_rules(&c);
}

bool hal_ir_scope_pass(hal_ir_scope *scope, const hal_ir_record *records, uint32_t index,
                       hal_ir_place *place, hal_ir_problem *problem)
{
    const uint32_t opcode = records[index].opcode;
    if (hal_ir_closes_block(opcode)) {
        if (scope->depth == 0) {
            return hal_ir_reject(problem, "expected an open block");
        }
        const uint32_t opener = records[scope->opener[scope->depth]].opcode;
        if (opcode == HAL_IR_ELSE && opener != HAL_IR_IF) {
            return hal_ir_reject(problem, "expected an if as innermost open block, got a %s",
                                 hal_ir_opcode_name(opener));
        }
        scope->depth--;
    }
    if (hal_ir_opens_block(opcode)) {
        if (scope->depth == HAL_IR_MAX_DEPTH) {
            return hal_ir_reject(problem, "expected at most %u nested blocks", HAL_IR_MAX_DEPTH);
        }
        scope->depth++;
        scope->block[scope->depth] = ++scope->blocks;
        scope->opener[scope->depth] = index;
    }
    *place = (hal_ir_place){scope->block[scope->depth], scope->depth};
    return true;
}

bool hal_ir_scope_check(const hal_ir_scope *scope, const hal_ir_record *records,
                        const hal_ir_place *places, uint32_t count, const hal_ir_record *record,
                        hal_ir_problem *problem)
{
    hal_ir_value operands[4];
    const uint32_t operand_count = hal_ir_operands(record, operands);
    for (uint32_t i = 0; i < operand_count; i++) {
        if (operands[i] >= count) {
            continue; /* hal_ir_check_record rejects it */
        }
        const hal_ir_place place = places[operands[i]];
        if (place.depth > scope->depth || scope->block[place.depth] != place.block) {
            return hal_ir_reject(problem,
                                 "operand %%%u (%s): expected a value of an open block, got one "
                                 "of a block that has ended; carry it out in a var",
                                 operands[i], hal_ir_opcode_name(records[operands[i]].opcode));
        }
    }
    return true;
}
