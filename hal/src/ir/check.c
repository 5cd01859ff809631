/* The type rules and the scope rule of the IR, by the table of ir/info.c. Called by the builder for
 * each record as it is made and by the verifier for kernels that come from elsewhere. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the check of one record carries around. */
typedef struct check {
    const hal_ir_kernel *kernel;
    uint32_t count; /* records that exist */
    const hal_ir_record *record;
    const hal_ir_info *info;
    hal_type common; /* type of the T operands; NONE before the first */
    hal_ir_problem *problem;
} check;

/* Kernels and fragments differ in what may stand in them. */
static int check_place(check *c)
{
    const int fragment = (c->kernel->flags & HAL_IR_FRAGMENT) != 0;
    if (fragment && !(c->info->traits & HAL_IR_TRAIT_FRAGMENT)) {
        return hal_ir_complain(c->problem,
                               "not allowed in a fragment, which is an expression only");
    }
    if (!fragment && (c->info->traits & HAL_IR_TRAIT_NO_KERNEL)) {
        return hal_ir_complain(c->problem, "only fragments have inputs and outputs");
    }
    return 1;
}

static int check_number(check *c, const char *field, uint32_t value, uint32_t limit)
{
    if (value >= limit) {
        return hal_ir_complain(c->problem, "%s %u is out of range, there are %u", field, value,
                               limit);
    }
    return 1;
}

/* Whether memory `aux` may be touched in this way. */
static int check_memory(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    if (!check_number(c, "memory", c->record->aux, kernel->memory_count)) {
        return 0;
    }
    const hal_ir_memory *memory = &kernel->memories[c->record->aux];
    if ((c->info->traits & HAL_IR_TRAIT_READS) && !(memory->access & HAL_ACCESS_READ)) {
        return hal_ir_complain(c->problem, "binding %s is declared for writing only",
                               kernel->names + memory->name);
    }
    if ((c->info->traits & HAL_IR_TRAIT_WRITES) && !(memory->access & HAL_ACCESS_WRITE)) {
        return hal_ir_complain(c->problem, "binding %s is declared for reading only",
                               kernel->names + memory->name);
    }
    if (c->record->opcode == HAL_IR_ATOMIC && !(c->info->types & HAL_TYPE_BIT(memory->type))) {
        return hal_ir_complain(c->problem, "atomics take memory of i32, u32, i64, u64; %s has %s",
                               kernel->names + memory->name, hal_type_name(memory->type));
    }
    return 1;
}

/* aux, imm and flags: used ones in range, unused ones 0. */
static int check_fields(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    int uses_aux = 0, uses_imm = 0, uses_flags = 0;
    for (const char *s = c->info->syntax; *s != 0; s++) {
        uses_aux |= strchr("ksxnSRMN", *s) != NULL;
        uses_imm |= strchr("iMB", *s) != NULL;
        uses_flags |= strchr("AF", *s) != NULL;
        int good = 1;
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
            return 0;
        }
    }
    if ((!uses_aux && record->aux != 0) || (!uses_imm && record->imm != 0) ||
        (!uses_flags && record->flags != 0)) {
        return hal_ir_complain(c->problem, "an unused field (%s) is not 0",
                               !uses_aux && record->aux != 0   ? "aux"
                               : !uses_imm && record->imm != 0 ? "imm"
                                                               : "flags");
    }
    return 1;
}

static hal_ir_value operand_of(const hal_ir_record *record, uint32_t slot)
{
    return slot == 0 ? record->a : slot == 1 ? record->b : slot == 2 ? record->c : record->d;
}

static int check_stored(check *c, uint32_t slot, const hal_ir_record *made)
{
    const hal_type memory = c->kernel->memories[c->record->aux].type;
    if (made->type != hal_type_of_value(memory)) {
        return hal_ir_complain(c->problem, "operand %c has type %s, memory of %s takes %s",
                               'a' + slot, hal_type_name(made->type), hal_type_name(memory),
                               hal_type_name(hal_type_of_value(memory)));
    }
    return 1;
}

static int check_common(check *c, uint32_t slot, hal_type type)
{
    if (!(c->info->types & HAL_TYPE_BIT(type))) {
        return hal_ir_complain(c->problem, "operand %c has type %s, which %s does not take",
                               'a' + slot, hal_type_name(type), c->info->name);
    }
    if (c->common != HAL_TYPE_NONE && c->common != type) {
        return hal_ir_complain(c->problem, "operands have types %s and %s, they must be the same",
                               hal_type_name(c->common), hal_type_name(type));
    }
    c->common = type;
    return 1;
}

static int check_expected(check *c, uint32_t slot, hal_type type, hal_type expected,
                          const char *why)
{
    return type == expected ||
           hal_ir_complain(c->problem, "operand %c has type %s, %s takes %s", 'a' + slot,
                           hal_type_name(type), why, hal_type_name(expected));
}

static int check_scalar_operand(check *c, uint32_t slot, char rule)
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
               hal_ir_complain(c->problem, "operand %c has type %s, an index is an integer",
                               'a' + slot, hal_type_name(type));
    case 'v':
        return check_expected(c, slot, type, records[c->record->a].type, "this var");
    default: /* 'M' */
        return check_expected(c, slot, type,
                              hal_type_of_value(c->kernel->memories[c->record->aux].type),
                              "this memory");
    }
}

static int check_operand(check *c, uint32_t slot)
{
    const hal_ir_record *record = c->record;
    const hal_ir_value value = operand_of(record, slot);
    char rule = c->info->operands[slot];
    if (rule == 'm') {
        rule = record->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE ? 'M' : '-';
    }
    if (rule == '-') {
        return value == HAL_IR_NONE ||
               hal_ir_complain(c->problem, "operand %c is not used and must be none", 'a' + slot);
    }
    if (value == HAL_IR_NONE) {
        return rule == 'g' || rule == 'P' ||
               hal_ir_complain(c->problem, "operand %c is missing", 'a' + slot);
    }
    if (value >= c->count) {
        return hal_ir_complain(c->problem, "operand %c is %%%u, which comes no earlier",
                               'a' + slot, value);
    }
    const hal_ir_record *made = &c->kernel->records[value];
    const int is_var = made->opcode == HAL_IR_VAR;
    if (rule == 'V') {
        return is_var || hal_ir_complain(c->problem, "operand %c (%%%u) is %s, not a var",
                                         'a' + slot, value, hal_ir_opcode_name(made->opcode));
    }
    if (is_var || made->type == HAL_TYPE_NONE) {
        return hal_ir_complain(c->problem, "operand %c (%%%u) is %s, which is no value%s",
                               'a' + slot, value, hal_ir_opcode_name(made->opcode),
                               is_var ? "; read it with get" : "");
    }
    if (rule == 'P') {
        return 1; /* check_pack looks at all of them together */
    }
    if (rule == 'S') {
        return check_stored(c, slot, made);
    }
    if (rule == 'W') {
        return made->width > 1 || hal_ir_complain(c->problem, "operand %c (%%%u) is no vector",
                                                  'a' + slot, value);
    }
    if (made->width != 1) {
        return hal_ir_complain(c->problem,
                               "operand %c (%%%u) is a vector; take its elements with extract",
                               'a' + slot, value);
    }
    return check_scalar_operand(c, slot, rule);
}

static int is_width(uint32_t width, int vector)
{
    return (width == 1 && !vector) || width == 2 || width == 4 || width == 8;
}

/* Two or four scalars of one type, or two vectors of width 4. */
static int check_pack(check *c, hal_type *type)
{
    const hal_ir_record *records = c->kernel->records;
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(c->record, operands);
    const uint32_t width = c->record->width;
    const uint32_t expected = width == 4 ? 4 : 2;
    if (!is_width(width, 1)) {
        return hal_ir_complain(c->problem, "width %u is not 2, 4 or 8", width);
    }
    for (uint32_t i = 0; i < expected; i++) {
        if (count != expected || operand_of(c->record, i) == HAL_IR_NONE) {
            return hal_ir_complain(c->problem, "a pack of width %u has operands a to %c", width,
                                   'a' + expected - 1);
        }
        const hal_ir_record *made = &records[operands[i]];
        if (made->width != (width == 8 ? 4 : 1) || made->type != records[operands[0]].type) {
            return hal_ir_complain(c->problem, "a pack of width %u takes %u %s of one type", width,
                                   expected, width == 8 ? "vectors of width 4" : "scalars");
        }
    }
    *type = records[operands[0]].type;
    return 1;
}

static int result_of(check *c, hal_type *type, uint32_t *width)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    *type = HAL_TYPE_NONE;
    *width = 1;
    switch (c->info->result) {
    case 'T':
        *type = c->common;
        return 1;
    case 'b':
        *type = HAL_TYPE_BOOL;
        return 1;
    case 'u':
        *type = HAL_TYPE_U32;
        return 1;
    case 'f':
        *type = HAL_TYPE_F32;
        *width = 4;
        return 1;
    case 'v':
    case 'e':
        *type = kernel->records[record->a].type;
        return 1;
    case 'p':
        *width = record->width;
        return check_pack(c, type);
    case 'm':
        *type = hal_type_of_value(kernel->memories[record->aux].type);
        *width = record->opcode == HAL_IR_ATOMIC ? 1 : record->width;
        return is_width(*width, 0) ||
               hal_ir_complain(c->problem, "width %u is not 1, 2, 4 or 8", *width);
    case '=':
        *type = record->type;
        return (hal_type_is_value(*type) && (c->info->types & HAL_TYPE_BIT(*type))) ||
               hal_ir_complain(c->problem, "the result cannot be of type %s",
                               *type < HAL_TYPE_COUNT ? hal_type_name(*type) : "?");
    case 's':
        *width = kernel->records[record->c].width;
        return 1;
    case 'w':
        *width = record->width;
        return is_width(*width, 0) ||
               hal_ir_complain(c->problem, "width %u is not 1, 2, 4 or 8", *width);
    default:
        *width = 0;
        return 1;
    }
}

/* Tiles of one shape, in groups of whole subgroups. */
static int check_matrices(check *c)
{
    static const struct {
        hal_type type;
        uint8_t width;
    } tiles[3] = {{HAL_TYPE_U32, 4}, {HAL_TYPE_U32, 2}, {HAL_TYPE_F32, 4}};
    const hal_type type = (hal_type)c->record->aux;
    for (uint32_t slot = 0; slot < 3; slot++) {
        const hal_ir_record *made = &c->kernel->records[operand_of(c->record, slot)];
        if (made->type != tiles[slot].type || made->width != tiles[slot].width) {
            return hal_ir_complain(c->problem, "operand %c is %s of width %u, a tile has %s of %u",
                                   'a' + slot, hal_type_name(made->type), made->width,
                                   hal_type_name(tiles[slot].type), tiles[slot].width);
        }
    }
    if (!(HAL_TYPES_MATRIX & HAL_TYPE_BIT(type))) {
        return hal_ir_complain(c->problem, "matrices are of f16, bf16 or f32, not %s",
                               hal_type_name(type));
    }
    return hal_ir_group_items(c->kernel) % HAL_IR_MATRIX_LANES == 0 ||
           hal_ir_complain(c->problem, "a group of %u work-items has a subgroup of less than %u",
                           hal_ir_group_items(c->kernel), HAL_IR_MATRIX_LANES);
}

/* Rules of single opcodes that the table has no letter for. */
static int check_specifics(check *c)
{
    const hal_ir_kernel *kernel = c->kernel;
    const hal_ir_record *record = c->record;
    switch (record->opcode) {
    case HAL_IR_SCALAR:
        return record->type == kernel->scalars[record->aux].type ||
               hal_ir_complain(c->problem, "scalar %s has type %s",
                               kernel->names + kernel->scalars[record->aux].name,
                               hal_type_name(kernel->scalars[record->aux].type));
    case HAL_IR_CONSTANT: {
        const uint32_t bits = record->type == HAL_TYPE_BOOL ? 1 : 8 * hal_type_size(record->type);
        return bits == 64 || kernel->constants[record->aux] >> bits == 0 ||
               hal_ir_complain(c->problem, "the constant has bits beyond its type %s",
                               hal_type_name(record->type));
    }
    case HAL_IR_BITCAST:
        return hal_type_size(record->type) == hal_type_size(c->common) ||
               hal_ir_complain(c->problem, "%s and %s differ in size", hal_type_name(c->common),
                               hal_type_name(record->type));
    case HAL_IR_NARROW:
        return hal_type_of_value((hal_type)record->aux) == c->common ||
               hal_ir_complain(c->problem, "memory of %s takes %s, not %s",
                               hal_type_name((hal_type)record->aux),
                               hal_type_name(hal_type_of_value((hal_type)record->aux)),
                               hal_type_name(c->common));
    case HAL_IR_EXTRACT: {
        const uint32_t width = kernel->records[record->a].width;
        return (record->imm >= 0 && (uint32_t)record->imm < width) ||
               hal_ir_complain(c->problem, "element %d of a vector of width %u", record->imm,
                               width);
    }
    case HAL_IR_SHUFFLE_XOR:
        return (record->imm >= 0 && record->imm < 128) ||
               hal_ir_complain(c->problem, "mask %d is not in 0..127", record->imm);
    case HAL_IR_MATRIX_MULTIPLY:
        return check_matrices(c);
    case HAL_IR_ASYNC_WAIT:
        return record->imm >= 0 || hal_ir_complain(c->problem, "a count of %d", record->imm);
    case HAL_IR_ASYNC_COPY: {
        const uint32_t source = (uint32_t)record->imm;
        if (!hal_ir_is_shared(kernel, record->aux) || source >= kernel->binding_count ||
            kernel->memories[source].type != kernel->memories[record->aux].type ||
            !(kernel->memories[source].access & HAL_ACCESS_READ)) {
            return hal_ir_complain(c->problem, "copies go from a binding that is read to a shared "
                                               "array of the same type");
        }
        return 1;
    }
    default:
        return 1;
    }
}

int hal_ir_complain(hal_ir_problem *problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return 0;
}

int hal_ir_check_record(const hal_ir_kernel *kernel, uint32_t count, const hal_ir_record *record,
                        hal_type *type, uint32_t *width, hal_ir_problem *problem)
{
    check c = {kernel, count, record, hal_ir_info_of(record->opcode), HAL_TYPE_NONE, problem};
    if (c.info == NULL) {
        return hal_ir_complain(problem, "there is no opcode %u", record->opcode);
    }
    if (!check_place(&c) || !check_fields(&c)) {
        return 0;
    }
    for (uint32_t slot = 0; slot < 4; slot++) {
        if (!check_operand(&c, slot)) {
            return 0;
        }
    }
    return result_of(&c, type, width) && check_specifics(&c);
}

int hal_ir_scope_pass(hal_ir_scope *scope, const hal_ir_record *records, uint32_t index,
                      hal_ir_place *place, hal_ir_problem *problem)
{
    const uint32_t opcode = records[index].opcode;
    if (hal_ir_closes_block(opcode)) {
        if (scope->depth == 0) {
            return hal_ir_complain(problem, "there is no open block");
        }
        const uint32_t opener = records[scope->opener[scope->depth]].opcode;
        if (opcode == HAL_IR_ELSE && opener != HAL_IR_IF) {
            return hal_ir_complain(problem, "the innermost open block is of %s, not of if",
                                   hal_ir_opcode_name(opener));
        }
        scope->depth--;
    }
    if (hal_ir_opens_block(opcode)) {
        if (scope->depth == HAL_IR_MAX_DEPTH) {
            return hal_ir_complain(problem, "more than %u blocks inside one another",
                                   HAL_IR_MAX_DEPTH);
        }
        scope->depth++;
        scope->block[scope->depth] = ++scope->blocks;
        scope->opener[scope->depth] = index;
    }
    *place = (hal_ir_place){scope->block[scope->depth], scope->depth};
    return 1;
}

int hal_ir_scope_sees(const hal_ir_scope *scope, hal_ir_place place)
{
    return place.depth <= scope->depth && scope->block[place.depth] == place.block;
}
