/* Prints kernels as text by the syntax column of the opcode table. The parser reads the text back;
 * docs/ir.md describes it. */
#include "internal.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void print_head(hal_text *text, const hal_ir_kernel *kernel)
{
    static const char *const access[] = {"", "read", "write", "read_write"};
    const char *names = kernel->names;
    const bool fragment = (kernel->flags & HAL_IR_FRAGMENT) != 0;
    hal_text_add(text, "%s %s\n", fragment ? "fragment" : "kernel", names + kernel->name);
    if (fragment) {
        return;
    }
    hal_text_add(text, "group %u %u %u\n", kernel->group_size[0], kernel->group_size[1],
                 kernel->group_size[2]);
    if (kernel->groups_per_unit != 0) {
        hal_text_add(text, "groups_per_unit %u\n", kernel->groups_per_unit);
    }
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        const char *type = hal_type_name(memory->type);
        if (hal_ir_is_shared(kernel, i)) {
            hal_text_add(text, "shared %s %s %u\n", names + memory->name, type, memory->count);
        } else {
            hal_text_add(text, "binding %s %s %s\n", names + memory->name, type,
                         access[memory->access]);
        }
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        const hal_ir_scalar *scalar = &kernel->scalars[i];
        hal_text_add(text, "scalar %s %s %u\n", names + scalar->name, hal_type_name(scalar->type),
                     scalar->offset);
    }
    if (kernel->scalar_bytes != hal_ir_scalar_block(kernel->scalars, kernel->scalar_count)) {
        hal_text_add(text, "scalar_bytes %u\n", kernel->scalar_bytes);
    }
}

/* Multiples of 0.25 below a million as decimals, other numbers as hexadecimal floats, NaN with its
 * bits: exact and independent of the locale. */
static void print_float(hal_text *text, uint64_t bits, int mantissa_bits, int exponent_bits)
{
    static const char *const quarters[4] = {"0", "25", "5", "75"};
    const uint64_t one = 1;
    const uint64_t mantissa = bits & ((one << mantissa_bits) - 1);
    const int limit = (1 << exponent_bits) - 1;
    const int biased = (int)(bits >> mantissa_bits) & limit;
    const char *sign = bits >> (mantissa_bits + exponent_bits) ? "-" : "";
    if (biased == limit && mantissa != 0) {
        hal_text_add(text, "nan:0x%llx", (unsigned long long)bits);
        return;
    }
    if (biased == limit) {
        hal_text_add(text, "%sinf", sign);
        return;
    }
    const int exponent = (biased == 0 ? 1 : biased) - limit / 2;
    const uint64_t whole = biased == 0 ? mantissa : mantissa | one << mantissa_bits;
    const int shift = mantissa_bits - exponent - 2; /* the value is whole / 2^shift quarters */
    if (whole == 0 || (shift >= 0 && shift < 63 && (whole & ((one << shift) - 1)) == 0 &&
                       whole >> shift < 4000000)) {
        const uint64_t count = whole == 0 ? 0 : whole >> shift;
        hal_text_add(text, "%s%llu.%s", sign, (unsigned long long)(count / 4),
                     quarters[count % 4]);
        return;
    }
    hal_text_add(text, "%s0x%d.%0*llxp%+d", sign, biased == 0 ? 0 : 1, (mantissa_bits + 3) / 4,
                 (unsigned long long)(mantissa << (mantissa_bits % 4 ? 1 : 0)), exponent);
}

static void print_constant(hal_text *text, hal_type type, uint64_t bits)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        hal_text_add(text, "%s", bits ? "true" : "false");
        break;
    case HAL_TYPE_I32:
        hal_text_add(text, "%d", (int32_t)(uint32_t)bits);
        break;
    case HAL_TYPE_I64:
        hal_text_add(text, "%lld", (long long)bits);
        break;
    case HAL_TYPE_F32:
        print_float(text, bits, 23, 8);
        break;
    case HAL_TYPE_F64:
        print_float(text, bits, 52, 11);
        break;
    default:
        hal_text_add(text, "%llu", (unsigned long long)bits);
        break;
    }
}

/* memory[%index + offset] */
static void print_memory_operand(hal_text *text, const char *memory, hal_ir_value index,
                                 int32_t offset)
{
    hal_text_add(text, "%s[%%%u", memory, index);
    if (offset != 0) {
        hal_text_add(text, " %c %u", offset < 0 ? '-' : '+',
                     offset < 0 ? 0 - (uint32_t)offset : (uint32_t)offset);
    }
    hal_text_add(text, "]");
}

static void print_part(hal_text *text, const hal_ir_kernel *kernel, const hal_ir_record *record,
                       char part)
{
    const char *names = kernel->names;
    hal_ir_value operands[4];
    switch (part) {
    case 'a':
    case 'b':
    case 'c':
        hal_text_add(text, "%%%u", part == 'a' ? record->a : part == 'b' ? record->b : record->c);
        break;
    case 'd':
        if (record->d != HAL_IR_NONE) {
            hal_text_add(text, ", %%%u", record->d);
        }
        break;
    case 'g':
        if (record->b != HAL_IR_NONE) {
            hal_text_add(text, " if %%%u", record->b);
        }
        break;
    case 'p':
        for (uint32_t i = 0, n = hal_ir_operands(record, operands); i < n; i++) {
            hal_text_add(text, "%s%%%u", i == 0 ? "" : ", ", operands[i]);
        }
        break;
    case 'T':
        hal_text_add(text, "%s", hal_type_name(record->type));
        if (record->width > 1) {
            hal_text_add(text, "x%u", record->width);
        }
        break;
    case 'k':
        print_constant(text, record->type, kernel->constants[record->aux]);
        break;
    case 's':
        hal_text_add(text, "%s", names + kernel->scalars[record->aux].name);
        break;
    case 'x':
        hal_text_add(text, "%s", hal_ir_dimension_names[record->aux]);
        break;
    case 'n':
        hal_text_add(text, "%u", record->aux);
        break;
    case 'i':
        hal_text_add(text, "%d", record->imm);
        break;
    case 'W':
        hal_text_add(text, "%u", record->width);
        break;
    case 'S':
        hal_text_add(text, "%s", hal_type_name((hal_type)record->aux));
        break;
    case 'R':
        hal_text_add(text, "%s", hal_ir_reduction_names[record->aux]);
        break;
    case 'A':
        hal_text_add(text, "%s", hal_ir_atomic_names[record->flags]);
        break;
    case 'F':
        hal_text_add(text, "%s", record->flags & HAL_IR_FAST ? ".fast" : "");
        break;
    case 'M':
        print_memory_operand(text, names + kernel->memories[record->aux].name, record->a,
                             record->imm);
        break;
    case 'N':
        print_memory_operand(text, names + kernel->memories[record->aux].name, record->a, 0);
        break;
    case 'B':
        print_memory_operand(text, names + kernel->memories[record->imm].name, record->d, 0);
        break;
    case ',':
        hal_text_add(text, ", ");
        break;
    default:
        hal_text_add(text, " ");
        break;
    }
}

void hal_ir_print_record(hal_text *text, const hal_ir_kernel *kernel, uint32_t index)
{
    const hal_ir_record *record = &kernel->records[index];
    const hal_ir_info *info = hal_ir_info_of(record->opcode);
    if (record->type != HAL_TYPE_NONE) {
        hal_text_add(text, "%%%u = ", index);
    }
    hal_text_add(text, "%s", info->name);
    if (info->syntax[0] != 0 && info->syntax[0] != 'F') {
        hal_text_add(text, " ");
    }
    for (const char *s = info->syntax; *s != 0; s++) {
        print_part(text, kernel, record, *s);
    }
}

hal_status hal_ir_print(const hal_ir_kernel *kernel, char **text)
{
    if (!text || !kernel) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_print: %s: expected a valid pointer, got null",
                        !text ? "text" : "kernel");
    }
    *text = NULL;
    HAL_TRY(hal_ir_verify(kernel));
    hal_text out = {0};
    uint32_t depth = 1;
    print_head(&out, kernel);
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const uint32_t opcode = kernel->records[i].opcode;
        depth -= hal_ir_closes_block(opcode) ? 1 : 0;
        for (uint32_t k = 0; k < depth; k++) {
            hal_text_add(&out, "  ");
        }
        hal_ir_print_record(&out, kernel, i);
        hal_text_add(&out, "\n");
        depth += hal_ir_opens_block(opcode) ? 1 : 0;
    }
    if (out.failed) {
        hal_text_free(&out);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_print: kernel %s: no host memory",
                        kernel->names + kernel->name);
    }
    *text = out.data;
    return HAL_OK;
}
