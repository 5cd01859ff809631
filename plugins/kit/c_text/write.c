/* Writes numbers, literals, names, types and expanded patterns. */
#include <kit/c_text/state.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char *write_number(char *at, uint64_t number)
{
    char digits[24];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    *at = 0;
    return at;
}

/* Where the exponent begins and ends in the bits of a float. */
typedef struct float_format {
    uint32_t fraction_bits, exponent_mask;
    int32_t bias;
} float_format;

/* The number of a float's bits in hexadecimal, as %a writes it in the locale "C". No arithmetic of
 * floats: it would raise exceptions that a program may have unmasked. */
static char *write_float(char *at, uint64_t bits, float_format format)
{
    static const char digits[] = "0123456789abcdef";
    const uint32_t exponent = (uint32_t)(bits >> format.fraction_bits) & format.exponent_mask;
    const uint64_t one = UINT64_C(1) << format.fraction_bits;
    uint64_t fraction = bits & (one - 1);
    int32_t power = exponent > 0 ? (int32_t)exponent - format.bias : 0;
    if (exponent == 0 && fraction > 0) { /* a denormal number */
        power = 1 - format.bias;
        for (; fraction < one; power--) {
            fraction <<= 1;
        }
        fraction &= one - 1;
    }
    *at++ = '0';
    *at++ = 'x';
    *at++ = exponent > 0 || bits << (63 - format.fraction_bits) << 1 != 0 ? '1' : '0';
    if (fraction > 0) {
        *at++ = '.';
    }
    for (fraction <<= 64 - format.fraction_bits; fraction > 0; fraction <<= 4) {
        *at++ = digits[fraction >> 60];
    }
    *at++ = 'p';
    *at++ = power < 0 ? '-' : '+';
    return write_number(at, (uint64_t)(power < 0 ? -power : power));
}

/* A literal of a float that is a number, or the cast of its bits. */
static void write_float_literal(const kit_c_state *state, hal_type type, uint64_t bits,
                                char name[40])
{
    const bool is_f32 = type == HAL_TYPE_F32;
    const float_format format =
        is_f32 ? (float_format){23, 0xff, 127} : (float_format){52, 0x7ff, 1023};
    const bool is_negative = bits >> (is_f32 ? 31 : 63) & 1;
    const char *const *bit_cast = state->dialect->bit_cast;
    if ((bits >> format.fraction_bits & format.exponent_mask) == format.exponent_mask) {
        snprintf(name, 40, "%s%s%s0x%llx)", bit_cast[0], state->dialect->value_types[type],
                 bit_cast[1], (unsigned long long)bits);
        return;
    }
    char *at = name;
    if (is_negative) {
        *at++ = '(';
        *at++ = '-';
    }
    at = write_float(at, bits, format);
    strcpy(at, is_f32 ? "f" : "");
    strcat(at, is_negative ? ")" : "");
}

/* Literals of negative numbers are parenthesised. */
void kit_c_literal(const kit_c_state *state, hal_ir_value value, char name[40])
{
    const hal_ir_record *record = &state->ir->records[value];
    const uint64_t bits = state->ir->constants[record->aux];
    const int64_t number = record->type == HAL_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    const bool wide = record->type == HAL_TYPE_I64;
    switch (record->type) {
    case HAL_TYPE_BOOL:
        strcpy(name, bits ? "true" : "false");
        return;
    case HAL_TYPE_I32:
    case HAL_TYPE_I64:
        if (number == (wide ? INT64_MIN : INT32_MIN)) {
            strcpy(name, wide ? "(-0x7fffffffffffffffl - 1l)" : "(-0x7fffffff - 1)");
        } else {
            snprintf(name, 40, number < 0 ? "(%lld%s)" : "%lld%s", (long long)number,
                     wide ? "l" : "");
        }
        return;
    case HAL_TYPE_U32:
    case HAL_TYPE_U64:
        strcpy(write_number(name, bits), record->type == HAL_TYPE_U64 ? "ul" : "u");
        return;
    default:
        write_float_literal(state, record->type,
                            record->type == HAL_TYPE_F32 ? (uint32_t)bits : bits, name);
        return;
    }
}

static hal_type unsigned_of(hal_type type)
{
    switch (hal_type_size(type)) {
    case 4:
        return HAL_TYPE_U32;
    case 8:
        return HAL_TYPE_U64;
    default:
        return type;
    }
}

static void expand_letter(kit_c_state *state, char letter, const kit_c_words *words)
{
    const kit_c_dialect *dialect = state->dialect;
    const hal_type types[4] = {words->type, unsigned_of(words->type), words->from,
                               unsigned_of(words->from)};
    switch (letter) {
    case 'a':
    case 'b':
    case 'c':
    case 'd':
        kit_c_put(state, words->operands[letter - 'a']);
        break;
    case 'T':
    case 'U':
        kit_c_put(state, dialect->value_types[types[letter == 'U']]);
        break;
    case 'A':
    case 'V':
        kit_c_put(state, dialect->value_types[types[2 + (letter == 'V')]]);
        break;
    case 'f':
    case 'u':
        kit_c_put(state, dialect->bit_cast[0]);
        kit_c_put(state, dialect->value_types[types[letter == 'f' ? 0 : 3]]);
        kit_c_put(state, dialect->bit_cast[1]);
        break;
    case 's':
        kit_c_put(state, words->from == HAL_TYPE_F32 ? "f" : "");
        break;
    case 'm':
        kit_c_put_number(state, 8 * hal_type_size(words->from) - 1);
        break;
    case 'i':
        kit_c_put_number(state, words->aux);
        break;
    case 'k':
        kit_c_put_number(state, (uint32_t)words->imm);
        break;
    case 'N':
        if (words->width > 1) {
            kit_c_put_number(state, words->width);
        }
        break;
    default:
        kit_c_put(state, letter == 'P'   ? words->place
                         : letter == 'S' ? words->space
                         : letter == 'M' ? words->element
                         : letter == 'X' ? words->value
                                         : words->operation);
        break;
    }
}

void kit_c_put(kit_c_state *state, const char *bytes)
{
    kit_text_append(state->text, bytes, strlen(bytes));
}

void kit_c_put_number(kit_c_state *state, uint64_t number)
{
    char digits[24];
    kit_text_append(state->text, digits, (uint64_t)(write_number(digits, number) - digits));
}

void kit_c_new_line(kit_c_state *state)
{
    static const char blanks[] = "                                ";
    const uint32_t wanted = 4 * state->depth;
    kit_text_append(state->text, blanks, wanted < sizeof blanks ? wanted : sizeof blanks - 1);
}

void kit_c_put_type(kit_c_state *state, hal_type type, uint32_t width)
{
    if (width == 1) {
        kit_c_put(state, state->dialect->value_types[type]);
        return;
    }
    kit_c_put(state, type == HAL_TYPE_BOOL ? state->dialect->memory_types[type]
                                           : state->dialect->value_types[type]);
    kit_c_put_number(state, width);
}

void kit_c_declare(kit_c_state *state, hal_ir_value value, const char *qualifier)
{
    const hal_ir_record *record = &state->ir->records[value];
    kit_c_new_line(state);
    kit_c_put(state, qualifier);
    kit_c_put_type(state, record->type, record->width);
    kit_c_put(state, " v");
    kit_c_put_number(state, value);
    kit_c_put(state, " = ");
}

void kit_c_name(const kit_c_state *state, hal_ir_value value, char name[40])
{
    const hal_ir_record *record = &state->ir->records[value];
    if (record->opcode == HAL_IR_CONSTANT && !kit_c_is_hidden(state, value)) {
        kit_c_literal(state, value, name);
        return;
    }
    name[0] = 'v';
    *write_number(name + 1, value) = 0;
}

void kit_c_expand(kit_c_state *state, const char *pattern, const kit_c_words *words)
{
    while (*pattern) {
        const char *end = strchr(pattern, '@');
        if (!end) {
            kit_c_put(state, pattern);
            return;
        }
        kit_text_append(state->text, pattern, (uint64_t)(end - pattern));
        expand_letter(state, end[1], words);
        pattern = end + 2 + (end[1] == 'f' || end[1] == 'u');
    }
}
