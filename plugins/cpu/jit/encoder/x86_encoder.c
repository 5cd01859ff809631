/* The encoder of x86-64 instructions, see x86_encoder.h. Intel's manual, volume 2, describes the
 * formats. */
#include "jit/encoder/x86_encoder.h"

#include <kit/hash.h>
#include <stdlib.h>
#include <string.h>

typedef struct vector_row {
    uint8_t map, prefix, w, opcode;
    int8_t extension;
    uint8_t tuple, immediate, vex;
} vector_row;

enum { X86_VEX_WORDS = 8 }; /* of a constant */

#define VECTOR_ROW(NAME, map, prefix, w, opcode, extension, tuple, immediate, vex) \
    [X86_##NAME] = {map, prefix, w, opcode, extension, X86_TUPLE_##tuple, immediate, X86_VEX_##vex},
static const vector_row vector_rows[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(VECTOR_ROW)};

static void *array_grow(x86_code *code, void *array, uint32_t count, uint32_t *capacity,
                        size_t size)
{
    if (count < *capacity) {
        return array;
    }
    const uint32_t wanted = *capacity == 0 ? 256 : *capacity * 2;
    void *grown = realloc(array, wanted * size);
    if (!grown) {
        code->failed = true;
        return array;
    }
    *capacity = wanted;
    return grown;
}

static void byte_put(x86_code *code, uint32_t byte)
{
    if (code->count >= code->capacity) {
        code->bytes = array_grow(code, code->bytes, code->count, &code->capacity, 1);
        if (code->failed) {
            return;
        }
    }
    code->bytes[code->count++] = (uint8_t)byte;
}

static void word_put(x86_code *code, uint32_t word)
{
    for (uint32_t k = 0; k < 4; k++) {
        byte_put(code, word >> 8 * k & 0xff);
    }
}

static void fixup_add(x86_code *code, uint32_t target, bool pool)
{
    code->fixups =
        array_grow(code, code->fixups, code->fixup_count, &code->fixup_capacity, sizeof(x86_fixup));
    if (!code->failed) {
        code->fixups[code->fixup_count++] =
            (x86_fixup){.at = code->count, .target = target, .pool = pool};
    }
    word_put(code, 0);
}

void x86_code_release(x86_code *code)
{
    free(code->bytes);
    free(code->labels);
    free(code->fixups);
    free(code->pool);
    free(code->pool_next);
    memset(code, 0, sizeof(*code));
}

/* The first word of a constant in the pool, or UINT32_MAX. */
static uint32_t pool_find(const x86_code *code, uint32_t head, const uint32_t *value,
                          uint32_t words)
{
    for (uint32_t i = head; i != 0; i = code->pool_next[i - 1]) {
        if (i - 1 + words <= code->pool_count &&
            memcmp(code->pool + i - 1, value, words * sizeof(uint32_t)) == 0) {
            return i - 1;
        }
    }
    return UINT32_MAX;
}

static void pool_put(x86_code *code, uint32_t word, uint32_t next)
{
    code->pool = array_grow(code, code->pool, code->pool_count, &code->pool_capacity, 4);
    code->pool_next =
        array_grow(code, code->pool_next, code->pool_count, &code->pool_next_capacity, 4);
    if (!code->failed) {
        code->pool_next[code->pool_count] = next;
        code->pool[code->pool_count++] = word;
    }
}

x86_operand x86_words(x86_code *code, const uint32_t *value, uint32_t words)
{
    const uint64_t first = value[0] | (uint64_t)value[words > 1] << 32;
    uint32_t *head = &code->pool_heads[kit_mix(first) >> 54];
    uint32_t at = pool_find(code, *head, value, words);
    if (at == UINT32_MAX) {
        at = code->pool_count;
        for (uint32_t k = 0; k < words; k++) {
            pool_put(code, value[k], k == 0 ? *head : 0);
        }
        *head = code->failed ? *head : at + 1;
    }
    return x86_memory(X86_POOL, (int32_t)(4 * at));
}

x86_operand x86_constant(x86_code *code, uint64_t bits, uint32_t bytes)
{
    const uint32_t low = (uint32_t)bits, high = bytes == 4 ? low : (uint32_t)(bits >> 32);
    const uint32_t value[X86_VEX_WORDS] = {low, high, low, high, low, high, low, high};
    x86_operand operand = x86_words(code, value, code->vex ? (uint32_t)X86_VEX_WORDS : bytes / 4);
    operand.broadcast = true;
    return operand;
}

/* The byte after the opcode, and what follows it; `unit`: the scale of a displacement of one
 * byte. */
static void operand_put(x86_code *code, uint32_t reg, const x86_operand *operand, uint32_t unit)
{
    const uint32_t field = (reg & 7) << 3;
    if (!operand->is_memory) {
        byte_put(code, 0xc0 | field | (operand->reg & 7));
        return;
    }
    if (operand->base == X86_POOL) {
        byte_put(code, field | 5);
        fixup_add(code, (uint32_t)operand->disp, true);
        return;
    }
    const uint32_t base = operand->base & 7;
    const bool indexed = operand->index != X86_NO_REGISTER || base == X86_RSP;
    const int32_t scaled = operand->disp / (int32_t)unit;
    const bool one_byte = operand->disp % (int32_t)unit == 0 && scaled >= -128 && scaled <= 127;
    const uint32_t mode = operand->disp == 0 && base != X86_RBP ? 0 : one_byte ? 1 : 2;
    byte_put(code, mode << 6 | field | (indexed ? 4 : base));
    if (indexed) {
        const uint32_t scale = operand->scale == 8   ? 3
                               : operand->scale == 4 ? 2
                               : operand->scale == 2 ? 1
                                                     : 0;
        const uint32_t index = operand->index == X86_NO_REGISTER ? 4 : operand->index & 7;
        byte_put(code, scale << 6 | index << 3 | base);
    }
    if (mode == 1) {
        byte_put(code, (uint32_t)scaled & 0xff);
    } else if (mode == 2) {
        word_put(code, (uint32_t)operand->disp);
    }
}

/* The high bit of a register number that a prefix holds: of the base and of the index. */
static uint32_t base_high(const x86_operand *operand)
{
    if (!operand->is_memory) {
        return operand->reg >> 3 & 1;
    }
    return operand->base == X86_POOL ? 0 : operand->base >> 3 & 1;
}

static uint32_t index_high(const x86_operand *operand)
{
    if (!operand->is_memory) {
        return operand->reg >> 4 & 1; /* the fifth bit of a vector register */
    }
    return operand->index == X86_NO_REGISTER ? 0 : operand->index >> 3 & 1;
}

static uint32_t tuple_bytes(const vector_row *row, uint32_t length, bool broadcast)
{
    const uint32_t vector = 16u << length, element = row->w ? 8 : 4;
    switch (row->tuple) {
    case X86_TUPLE_HALF_FULL:
        return broadcast ? element : vector / 2;
    case X86_TUPLE_FULL:
        return broadcast ? element : vector;
    case X86_TUPLE_HALF:
        return vector / 2;
    case X86_TUPLE_QUARTER:
        return vector / 4;
    case X86_TUPLE_SCALAR:
        return element;
    case X86_TUPLE_WORD:
        return 2;
    default:
        return vector;
    }
}

/* Returns how a displacement of one byte is scaled. */
static uint32_t vex_vector_put(x86_code *code, const vector_row *row, x86_form form, uint32_t reg,
                               uint32_t second, const x86_operand *operand)
{
    if (row->vex == X86_VEX_NO || form.mask != 0 || form.length == X86_ZMM ||
        (reg | second | (operand->is_memory ? 0u : operand->reg)) > 15) {
        code->failed = true;
    }
    byte_put(code, 0xc4);
    byte_put(code, (~reg >> 3 & 1) << 7 | (~index_high(operand) & 1) << 6 |
                       (~base_high(operand) & 1) << 5 | row->map);
    byte_put(code, (uint32_t)(row->vex == X86_VEX_W1) << 7 | (~second & 15) << 3 |
                       (uint32_t)form.length << 2 | row->prefix);
    return 1;
}

static uint32_t evex_put(x86_code *code, const vector_row *row, x86_form form, uint32_t reg,
                         uint32_t second, const x86_operand *operand)
{
    const bool broadcast = operand->is_memory && operand->broadcast &&
                           (row->tuple == X86_TUPLE_FULL || row->tuple == X86_TUPLE_HALF_FULL);
    code->failed = code->failed || row->vex == X86_VEX_V0;
    byte_put(code, 0x62);
    byte_put(code, (~reg >> 3 & 1) << 7 | (~index_high(operand) & 1) << 6 |
                       (~base_high(operand) & 1) << 5 | (~reg >> 4 & 1) << 4 | row->map);
    byte_put(code, (uint32_t)row->w << 7 | (~second & 15) << 3 | 4 | row->prefix);
    byte_put(code, (uint32_t)form.zeroing << 7 | (uint32_t)form.length << 5 |
                       (uint32_t)broadcast << 4 | (~second >> 4 & 1) << 3 | form.mask);
    return tuple_bytes(row, form.length, broadcast);
}

void x86_vector(x86_code *code, uint32_t name, x86_form form, uint32_t reg, uint32_t second,
                x86_operand operand)
{
    const vector_row *row = &vector_rows[name];
    if (row->extension >= 0) { /* the destination is the second operand */
        second = reg;
        reg = (uint32_t)row->extension;
    }
    const uint32_t unit = code->vex ? vex_vector_put(code, row, form, reg, second, &operand)
                                    : evex_put(code, row, form, reg, second, &operand);
    byte_put(code, row->opcode);
    operand_put(code, reg, &operand, unit);
    if (row->immediate) {
        if (operand.is_memory && operand.base == X86_POOL && !code->failed) {
            memset(code->bytes + code->count - 4, 0xff, 4); /* counts from after the immediate */
        }
        byte_put(code, form.immediate);
    }
}

void x86_vector_indexed(x86_code *code, uint32_t name, x86_form form, uint32_t reg, uint32_t mask,
                        x86_operand operand)
{
    /* With EVEX the place of the second operand has the high bit of the index. */
    x86_vector(code, name, form, reg, code->vex ? mask : operand.index & 16u, operand);
}

/* A VEX prefix; registers are masks, the base of memory any register. */
static void vex_put(x86_code *code, uint32_t length, uint32_t prefix, uint32_t second,
                    const x86_operand *operand)
{
    byte_put(code, 0xc4);
    byte_put(code, 0x80 | (~index_high(operand) & 1) << 6 | (~base_high(operand) & 1) << 5 | 1);
    byte_put(code, (~second & 15) << 3 | length << 2 | prefix);
}

void x86_mask_binary(x86_code *code, uint32_t opcode, uint32_t d, uint32_t a, uint32_t b)
{
    const x86_operand operand = x86_register(b);
    vex_put(code, 1, 0, a, &operand);
    byte_put(code, opcode);
    operand_put(code, d, &operand, 1);
}

void x86_mask_not(x86_code *code, uint32_t d, uint32_t a)
{
    const x86_operand operand = x86_register(a);
    vex_put(code, 0, 0, 0, &operand);
    byte_put(code, 0x44);
    operand_put(code, d, &operand, 1);
}

void x86_mask_move(x86_code *code, uint32_t d, x86_operand a)
{
    vex_put(code, 0, 0, 0, &a);
    byte_put(code, 0x90);
    operand_put(code, d, &a, 1);
}

void x86_mask_store(x86_code *code, x86_operand to, uint32_t a)
{
    vex_put(code, 0, 0, 0, &to);
    byte_put(code, 0x91);
    operand_put(code, a, &to, 1);
}

void x86_mask_test(x86_code *code, uint32_t a, uint32_t bytes)
{
    const x86_operand operand = x86_register(a);
    vex_put(code, 0, bytes == 1 ? 1 : 0, 0, &operand);
    byte_put(code, 0x98);
    operand_put(code, a, &operand, 1);
}

void x86_zero_upper(x86_code *code)
{
    byte_put(code, 0xc5);
    byte_put(code, 0xf8);
    byte_put(code, 0x77);
}

void x86_general(x86_code *code, uint32_t opcode, bool wide, uint32_t reg, x86_operand operand)
{
    const uint32_t index = operand.is_memory ? index_high(&operand) : 0;
    const uint32_t rex =
        (uint32_t)wide << 3 | (reg >> 3 & 1) << 2 | index << 1 | base_high(&operand);
    if (rex != 0) {
        byte_put(code, 0x40 | rex);
    }
    byte_put(code, opcode);
    operand_put(code, reg, &operand, 1);
}

void x86_prefetch(x86_code *code, x86_operand from)
{
    const uint32_t rex = index_high(&from) << 1 | base_high(&from);
    if (rex != 0) {
        byte_put(code, 0x40 | rex);
    }
    byte_put(code, 0x0f);
    byte_put(code, 0x18);
    operand_put(code, 1, &from, 1);
}

void x86_store_bytes(x86_code *code, uint32_t bytes, uint32_t reg, x86_operand to)
{
    if (bytes == 2) {
        byte_put(code, 0x66);
    }
    x86_general(code, X86_STORE, bytes == 8, reg, to);
}

/* An instruction with an immediate of 32 bits on a register of 64. */
static void immediate_put(x86_code *code, uint32_t extension, uint32_t reg, int32_t value)
{
    x86_general(code, 0x81, true, extension, x86_register(reg));
    word_put(code, (uint32_t)value);
}

void x86_add_immediate(x86_code *code, uint32_t reg, int32_t value)
{
    immediate_put(code, 0, reg, value);
}

void x86_and_immediate(x86_code *code, uint32_t reg, int32_t value)
{
    immediate_put(code, 4, reg, value);
}

void x86_test_immediate(x86_code *code, uint32_t reg, int32_t value)
{
    x86_general(code, 0xf7, true, 0, x86_register(reg));
    word_put(code, (uint32_t)value);
}

void x86_compare_immediate(x86_code *code, uint32_t reg, int32_t value)
{
    immediate_put(code, 7, reg, value);
}

void x86_shift_left(x86_code *code, uint32_t reg, uint32_t count)
{
    x86_general(code, 0xc1, true, 4, x86_register(reg));
    byte_put(code, count);
}

void x86_multiply_immediate(x86_code *code, uint32_t reg, int32_t value)
{
    x86_general(code, 0x69, true, reg, x86_register(reg));
    word_put(code, (uint32_t)value);
}

void x86_load_immediate(x86_code *code, uint32_t reg, uint64_t value)
{
    if (value <= UINT32_MAX) {
        if (reg >= 8) {
            byte_put(code, 0x41);
        }
        byte_put(code, 0xb8 | (reg & 7));
        word_put(code, (uint32_t)value);
        return;
    }
    byte_put(code, 0x48 | reg >> 3);
    byte_put(code, 0xb8 | (reg & 7));
    word_put(code, (uint32_t)value);
    word_put(code, (uint32_t)(value >> 32));
}

void x86_call(x86_code *code, uint32_t reg)
{
    x86_general(code, 0xff, false, 2, x86_register(reg));
}

void x86_push(x86_code *code, uint32_t reg)
{
    if (reg >= 8) {
        byte_put(code, 0x41);
    }
    byte_put(code, 0x50 | (reg & 7));
}

void x86_pop(x86_code *code, uint32_t reg)
{
    if (reg >= 8) {
        byte_put(code, 0x41);
    }
    byte_put(code, 0x58 | (reg & 7));
}

void x86_return(x86_code *code)
{
    byte_put(code, 0xc3);
}

uint32_t x86_label(x86_code *code)
{
    code->labels =
        array_grow(code, code->labels, code->label_count, &code->label_capacity, sizeof(uint32_t));
    if (code->failed) {
        return 0;
    }
    code->labels[code->label_count] = UINT32_MAX;
    return code->label_count++;
}

void x86_bind(x86_code *code, uint32_t label)
{
    if (!code->failed) {
        code->labels[label] = code->count;
    }
}

void x86_jump(x86_code *code, uint32_t label)
{
    byte_put(code, 0xe9);
    fixup_add(code, label, false);
}

void x86_jump_if(x86_code *code, uint32_t condition, uint32_t label)
{
    byte_put(code, 0x0f);
    byte_put(code, 0x80 | condition);
    fixup_add(code, label, false);
}

void x86_call_label(x86_code *code, uint32_t label)
{
    byte_put(code, 0xe8);
    fixup_add(code, label, false);
}

/* A displacement counts from the end of its instruction; an immediate may follow it. */
bool x86_finish(x86_code *code)
{
    while (code->count % (code->vex ? 32 : 8) != 0 && !code->failed) {
        byte_put(code, 0xcc); /* no constant is in two lines of the cache */
    }
    const uint32_t pool = code->count;
    for (uint32_t i = 0; i < code->pool_count && !code->failed; i++) {
        word_put(code, code->pool[i]);
    }
    for (uint32_t i = 0; i < code->fixup_count && !code->failed; i++) {
        const x86_fixup *fixup = &code->fixups[i];
        uint32_t target = pool + fixup->target;
        if (!fixup->pool) {
            target = code->labels[fixup->target];
        }
        uint32_t distance;
        memcpy(&distance, code->bytes + fixup->at, 4);
        distance += target - (fixup->at + 4);
        memcpy(code->bytes + fixup->at, &distance, 4);
    }
    return !code->failed;
}
