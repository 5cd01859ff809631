/* Lines of PTX, registers and immediates. Numbers are written without printf: a large kernel has
 * thousands of lines, and its lowering may take two milliseconds. */
#include "lower/text.h"

#include <stdarg.h>
#include <string.h>

enum { LINE_BYTES = 256, MAX_OPERAND_BYTES = 40 };

static const char class_letters[CUDA_CLASSES] = {
    [CUDA_PREDICATE] = 'p', [CUDA_HALF] = 'h',  [CUDA_WORD] = 'r',
    [CUDA_LONG] = 'l',      [CUDA_FLOAT] = 'f', [CUDA_DOUBLE] = 'd',
};

static uint32_t write_decimal(char *text, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (uint32_t i = 0; i < count; i++) {
        text[i] = digits[count - 1 - i];
    }
    return count;
}

static uint32_t write_hexadecimal(char *text, uint64_t number, uint32_t digits)
{
    text[0] = '0';
    text[1] = 'x';
    for (uint32_t i = 0; i < digits; i++) {
        text[2 + i] = "0123456789ABCDEF"[number >> (4 * (digits - 1 - i)) & 15];
    }
    return 2 + digits;
}

static uint32_t write_operand(char *text, cuda_operand operand)
{
    uint32_t length = 0;
    switch (operand.kind) {
    case CUDA_INTEGER:
        if ((int64_t)operand.bits >= 0) {
            return write_decimal(text, operand.bits);
        }
        if ((int64_t)operand.bits == INT64_MIN) { /* its negation overflows */
            return write_hexadecimal(text, operand.bits, 16);
        }
        text[length++] = '-';
        return length + write_decimal(text + length, 0 - operand.bits);
    case CUDA_UNSIGNED:
        length = write_decimal(text, operand.bits);
        if (operand.bits > INT64_MAX) {
            text[length++] = 'U';
        }
        return length;
    case CUDA_FLOAT_BITS:
        length = write_hexadecimal(text, operand.bits, 8);
        text[1] = 'f';
        return length;
    case CUDA_DOUBLE_BITS:
        length = write_hexadecimal(text, operand.bits, 16);
        text[1] = 'd';
        return length;
    default:
        text[length++] = '%';
        text[length++] = class_letters[operand.kind];
        return length + write_decimal(text + length, operand.bits);
    }
}

static cuda_operand immediate(hal_type type, uint64_t bits)
{
    switch (type) {
    case HAL_TYPE_F32:
        return (cuda_operand){CUDA_FLOAT_BITS, bits};
    case HAL_TYPE_F64:
        return (cuda_operand){CUDA_DOUBLE_BITS, bits};
    case HAL_TYPE_I32:
        return cuda_integer((int32_t)(uint32_t)bits);
    case HAL_TYPE_I64:
        return cuda_integer((int64_t)bits);
    default:
        return cuda_unsigned(bits);
    }
}

void cuda_emit(cuda_lowering *l, const char *pattern, ...)
{
    char line[LINE_BYTES];
    uint32_t length = 0;
    va_list operands;
    va_start(operands, pattern);
    for (const char *c = pattern; *c; c++) {
        if (length > LINE_BYTES - MAX_OPERAND_BYTES) {
            kit_text_append(&l->body, line, length);
            length = 0;
        }
        if (*c == '$') {
            const cuda_operand operand = va_arg(operands, cuda_operand);
            if (operand.kind == CUDA_TEXT) {
                kit_text_append(&l->body, line, length);
                length = 0;
                const char *text = (const char *)(uintptr_t)operand.bits;
                kit_text_append(&l->body, text, strlen(text));
            } else {
                length += write_operand(line + length, operand);
            }
        } else {
            line[length++] = *c;
        }
    }
    va_end(operands);
    line[length++] = '\n';
    kit_text_append(&l->body, line, length);
}

void cuda_emit_guard(cuda_lowering *l, cuda_operand predicate)
{
    char text[MAX_OPERAND_BYTES];
    uint32_t length = 0;
    text[length++] = '@';
    length += write_operand(text + length, predicate);
    text[length++] = ' ';
    kit_text_append(&l->body, text, length);
}

cuda_operand cuda_text(const char *text)
{
    return (cuda_operand){CUDA_TEXT, (uintptr_t)text};
}

cuda_operand cuda_integer(int64_t number)
{
    return (cuda_operand){CUDA_INTEGER, (uint64_t)number};
}

cuda_operand cuda_unsigned(uint64_t number)
{
    return (cuda_operand){CUDA_UNSIGNED, number};
}

uint32_t cuda_class(hal_type type)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return CUDA_PREDICATE;
    case HAL_TYPE_F32:
        return CUDA_FLOAT;
    case HAL_TYPE_F64:
        return CUDA_DOUBLE;
    default:
        return hal_type_size(type) == 8 ? CUDA_LONG : CUDA_WORD;
    }
}

cuda_operand cuda_fresh(cuda_lowering *l, uint32_t class)
{
    return (cuda_operand){class, l->used[class]++};
}

cuda_operand cuda_define(cuda_lowering *l, uint32_t record)
{
    const hal_ir_record *r = &l->kernel->records[record];
    const uint32_t class = cuda_class(r->type);
    l->numbers[record] = l->used[class];
    l->used[class] += r->width;
    return (cuda_operand){class, l->numbers[record]};
}

bool cuda_is_alias(const hal_ir_kernel *kernel, const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_PACK:
    case HAL_IR_EXTRACT:
        return true;
    case HAL_IR_CAST: {
        const hal_type from = kernel->records[record->a].type, to = record->type;
        return from == to || (hal_type_is_integer(from) && hal_type_is_integer(to) &&
                              hal_type_size(from) == hal_type_size(to));
    }
    case HAL_IR_BITCAST:
        return cuda_class(kernel->records[record->a].type) == cuda_class(record->type);
    default:
        return false;
    }
}

/* An element of a value: a register or an immediate. */
static cuda_operand element_operand(const cuda_lowering *l, hal_ir_value value, uint32_t element)
{
    const hal_ir_record *r = &l->kernel->records[value];
    if (r->opcode == HAL_IR_PACK) {
        const hal_ir_value parts[4] = {r->a, r->b, r->c, r->d};
        const uint32_t each = l->kernel->records[r->a].width;
        return element_operand(l, parts[element / each], element % each);
    }
    if (r->opcode == HAL_IR_EXTRACT) {
        return element_operand(l, r->a, (uint32_t)r->imm);
    }
    if (cuda_is_alias(l->kernel, r)) {
        return element_operand(l, r->a, element);
    }
    if (r->opcode == HAL_IR_CONSTANT && r->type != HAL_TYPE_BOOL) {
        return immediate(r->type, l->kernel->constants[r->aux]);
    }
    return (cuda_operand){cuda_class(r->type), l->numbers[value] + element};
}

cuda_operand cuda_value(const cuda_lowering *l, hal_ir_value value)
{
    return element_operand(l, value, 0);
}

cuda_operand cuda_in_register(cuda_lowering *l, hal_ir_value value, uint32_t element)
{
    const cuda_operand operand = element_operand(l, value, element);
    if (operand.kind < CUDA_CLASSES) {
        return operand;
    }
    const hal_type type = l->kernel->records[value].type;
    const cuda_operand made = cuda_fresh(l, cuda_class(type));
    cuda_emit(l, "mov$ $, $;", cuda_bits(type), made, operand);
    return made;
}

cuda_operand cuda_type(hal_type type)
{
    static const char *const names[HAL_TYPE_COUNT] = {
        [HAL_TYPE_NONE] = "",    [HAL_TYPE_BOOL] = ".pred", [HAL_TYPE_I8] = ".s8",
        [HAL_TYPE_U8] = ".u8",   [HAL_TYPE_I16] = ".s16",   [HAL_TYPE_U16] = ".u16",
        [HAL_TYPE_I32] = ".s32", [HAL_TYPE_U32] = ".u32",   [HAL_TYPE_I64] = ".s64",
        [HAL_TYPE_U64] = ".u64", [HAL_TYPE_F16] = ".f16",   [HAL_TYPE_BF16] = ".b16",
        [HAL_TYPE_F32] = ".f32", [HAL_TYPE_F64] = ".f64",
    };
    return cuda_text(names[type]);
}

cuda_operand cuda_bits(hal_type type)
{
    return cuda_text(type == HAL_TYPE_BOOL ? ".pred" : hal_type_size(type) == 8 ? ".b64" : ".b32");
}
