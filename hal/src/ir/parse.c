/* Reads IR text into a kernel, by the syntax column of the opcode table, through a raw builder that
 * checks every record as it comes. Safe on any bytes. */
#include "internal.h"
#include "text.h"
#include "base/status.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The names of values, by open addressing: where the name lies in the text, and its record. */
typedef struct value_name {
    uint32_t length; /* 0: free */
    hal_ir_value value;
    const char *name;
} value_name;

typedef struct parser {
    hal_ir_reader reader;
    hal_ir_builder *builder;
    value_name *names;
    uint32_t name_slots, name_count;
    uint32_t *lines; /* of each record */
    uint32_t line_capacity;
    int has_scalar_bytes;
} parser;

static int parse_head(parser *p)
{
    char word[HAL_IR_WORD_BYTES], name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_ir_reader_line(reader);
    if (!hal_ir_reader_word(reader, "`kernel` or `fragment`", 0, word)) {
        return 0;
    }
    const int fragment = strcmp(word, "fragment") == 0;
    if (!fragment && strcmp(word, "kernel") != 0) {
        return hal_ir_reader_fail(reader, "expected `kernel` or `fragment`, not `%s`", word);
    }
    if (!hal_ir_reader_word(reader, "a name", 0, name) || !hal_ir_reader_end(reader)) {
        return 0;
    }
    const hal_status status =
        hal_ir_builder_create_raw(name, fragment ? HAL_IR_FRAGMENT : 0, &p->builder);
    return status == HAL_OK || hal_ir_reader_fail(reader, "%s", hal_status_message());
}

/* The name behind a %, as it lies in the text. */
static int take_name(parser *p, const char **name, uint32_t *length)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(&p->reader, "the name of a value", 0, word)) {
        return 0;
    }
    *name = p->reader.text + p->reader.token;
    *length = (uint32_t)strlen(word);
    return 1;
}

/* The slot that has the name, or the free one where it belongs; null while there is no table. */
static value_name *slot_of(parser *p, const char *name, uint32_t length)
{
    if (p->name_slots == 0) {
        return NULL;
    }
    uint32_t slot = (uint32_t)XXH3_64bits(name, length) & (p->name_slots - 1);
    while (p->names[slot].length != 0 &&
           (p->names[slot].length != length || memcmp(p->names[slot].name, name, length) != 0)) {
        slot = (slot + 1) & (p->name_slots - 1);
    }
    return &p->names[slot];
}

static int parse_operand(parser *p, hal_ir_value *value)
{
    const char *name = NULL;
    uint32_t length = 0;
    if (!hal_ir_reader_expect(&p->reader, '%') || !take_name(p, &name, &length)) {
        return 0;
    }
    const value_name *slot = slot_of(p, name, length);
    if (slot == NULL || slot->length == 0) {
        return hal_ir_reader_fail(&p->reader, "%%%.*s is not defined above", (int)length, name);
    }
    *value = slot->value;
    return 1;
}

static int parse_guard(parser *p, hal_ir_record *record)
{
    char word[HAL_IR_WORD_BYTES];
    if (hal_ir_reader_at_end(&p->reader)) {
        return 1;
    }
    if (!hal_ir_reader_word(&p->reader, "`if` and a guard", 0, word)) {
        return 0;
    }
    if (strcmp(word, "if") != 0) {
        return hal_ir_reader_fail(&p->reader, "expected `if` and a guard, not `%s`", word);
    }
    return parse_operand(p, &record->b);
}

/* One to four operands. */
static int parse_list(parser *p, hal_ir_record *record)
{
    hal_ir_value *operands[4] = {&record->a, &record->b, &record->c, &record->d};
    for (int i = 0; i < 4; i++) {
        if (!parse_operand(p, operands[i])) {
            return 0;
        }
        if (!hal_ir_reader_accept(&p->reader, ',')) {
            break;
        }
    }
    return !p->reader.failed;
}

static int take_builder_error(parser *p)
{
    return hal_ir_builder_get_status(p->builder) == HAL_OK ||
           hal_ir_reader_fail(&p->reader, "%s", hal_status_message());
}

static int find_declared(parser *p, int scalar, uint32_t *number)
{
    char word[HAL_IR_WORD_BYTES];
    const hal_ir_kernel *view = hal_ir_builder_view(p->builder);
    const uint32_t count = scalar ? view->scalar_count : view->memory_count;
    if (!hal_ir_reader_word(&p->reader, scalar ? "a scalar" : "a memory", 0, word)) {
        return 0;
    }
    for (*number = 0; *number < count; (*number)++) {
        const uint32_t name = scalar ? view->scalars[*number].name : view->memories[*number].name;
        if (strcmp(view->names + name, word) == 0) {
            return 1;
        }
    }
    return hal_ir_reader_fail(&p->reader, "no %s `%s` is declared",
                              scalar ? "scalar" : "binding or shared array", word);
}

static int parse_name_of(parser *p, const char *what, const char *const *names, uint32_t *number)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(&p->reader, what, 0, word)) {
        return 0;
    }
    for (*number = 0; names[*number] != NULL; (*number)++) {
        if (strcmp(names[*number], word) == 0) {
            return 1;
        }
    }
    return hal_ir_reader_fail(&p->reader, "`%s` is not %s", word, what);
}

/* memory[%index], or with an offset: memory[%index + 4] */
static int parse_place(parser *p, hal_ir_value *index, uint32_t *memory, int32_t *offset)
{
    hal_ir_reader *reader = &p->reader;
    if (!find_declared(p, 0, memory) || !hal_ir_reader_expect(reader, '[') ||
        !parse_operand(p, index)) {
        return 0;
    }
    const int minus = offset != NULL && hal_ir_reader_accept(reader, '-');
    if (minus || (offset != NULL && hal_ir_reader_accept(reader, '+'))) {
        uint64_t number = 0;
        const uint64_t limit = minus ? UINT64_C(1) << 31 : INT32_MAX;
        if (!hal_ir_reader_unsigned(reader, "an offset", limit, &number)) {
            return 0;
        }
        *offset = (int32_t)(minus ? 0 - (int64_t)number : (int64_t)number);
    }
    return hal_ir_reader_expect(reader, ']');
}

static int parse_part(parser *p, hal_ir_record *record, char part)
{
    hal_ir_reader *reader = &p->reader;
    uint64_t number = 0;
    int64_t signed_number = 0;
    uint32_t width = 0;
    hal_type type = HAL_TYPE_NONE;
    switch (part) {
    case 'a':
        return parse_operand(p, &record->a);
    case 'b':
        return parse_operand(p, &record->b);
    case 'c':
        return parse_operand(p, &record->c);
    case 'd':
        return !hal_ir_reader_accept(reader, ',') ? !reader->failed
                                                  : parse_operand(p, &record->d);
    case 'g':
        return parse_guard(p, record);
    case 'p':
        return parse_list(p, record);
    case 'T':
        if (!hal_ir_reader_type(reader, &record->type, &width)) {
            return 0;
        }
        record->width = (uint8_t)width;
        return width != 0 || hal_ir_reader_fail(reader, "a vector has 2, 4 or 8 elements");
    case 'k':
        if (!hal_ir_reader_constant(reader, record->type, &number)) {
            return 0;
        }
        record->aux = hal_ir_pool(p->builder, number);
        return take_builder_error(p);
    case 's':
        return find_declared(p, 1, &record->aux);
    case 'x':
        return parse_name_of(p, "a dimension", hal_ir_dimension_names, &record->aux);
    case 'R':
        return parse_name_of(p, "a reduction", hal_ir_reduction_names, &record->aux);
    case 'A':
        return parse_name_of(p, "a kind of atomic", hal_ir_atomic_names, &record->flags);
    case 'n':
        if (!hal_ir_reader_unsigned(reader, "a number", HAL_IR_MAX_FRAGMENT_VALUES - 1, &number)) {
            return 0;
        }
        record->aux = (uint32_t)number;
        hal_ir_count_fragment(p->builder, record->opcode, record->aux);
        return 1;
    case 'i':
        if (!hal_ir_reader_signed(reader, "a number", &signed_number)) {
            return 0;
        }
        record->imm = (int32_t)signed_number;
        return 1;
    case 'W':
        if (!hal_ir_reader_unsigned(reader, "a width", 8, &number)) {
            return 0;
        }
        record->width = (uint8_t)number;
        return 1;
    case 'S':
        if (!hal_ir_reader_type(reader, &type, NULL)) {
            return 0;
        }
        record->aux = type;
        return 1;
    case 'F':
        return !hal_ir_reader_accept(reader, '.') ||
               parse_name_of(p, "fast", (const char *const[]){"", "fast", NULL}, &record->flags);
    case 'M':
        return parse_place(p, &record->a, &record->aux, &record->imm);
    case 'N':
        return parse_place(p, &record->a, &record->aux, NULL);
    case 'B':
        return parse_place(p, &record->d, (uint32_t *)&record->imm, NULL);
    case ',':
        return hal_ir_reader_expect(reader, ',');
    default:
        return 1;
    }
}

static int out_of_memory(parser *p)
{
    hal_ir_builder_fail(p->builder, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    return take_builder_error(p);
}

static int note_line(parser *p, uint32_t record)
{
    if (record >= p->line_capacity) {
        const uint32_t larger = p->line_capacity == 0 ? 64 : 2 * p->line_capacity;
        uint32_t *lines = realloc(p->lines, larger * sizeof *lines);
        if (lines == NULL) {
            return out_of_memory(p);
        }
        p->lines = lines;
        p->line_capacity = larger;
    }
    p->lines[record] = p->reader.line;
    return 1;
}

static int define(parser *p, const char *name, uint32_t length, hal_ir_value value)
{
    if (p->name_slots == 0 || p->name_count >= p->name_slots / 2) {
        const uint32_t old_slots = p->name_slots;
        value_name *old = p->names;
        const uint32_t larger = old_slots == 0 ? 64 : 2 * old_slots;
        value_name *fresh = calloc(larger, sizeof *fresh);
        if (fresh == NULL) {
            return out_of_memory(p);
        }
        p->names = fresh;
        p->name_slots = larger;
        for (uint32_t i = 0; i < old_slots; i++) {
            if (old[i].length != 0) {
                *slot_of(p, old[i].name, old[i].length) = old[i];
            }
        }
        free(old);
    }
    value_name *slot = slot_of(p, name, length);
    if (slot->length != 0) {
        p->reader.token = (size_t)(name - p->reader.text);
        return hal_ir_reader_fail(&p->reader, "%%%.*s is defined twice", (int)length, name);
    }
    *slot = (value_name){length, value, name};
    p->name_count++;
    return 1;
}

static int parse_record(parser *p, const char *opcode, const char *name, uint32_t name_length)
{
    hal_ir_reader *reader = &p->reader;
    const uint32_t number = hal_ir_builder_view(p->builder)->record_count;
    uint32_t code = 0;
    while (code < HAL_IR_OPCODE_COUNT && (hal_ir_info_of(code) == NULL ||
                                          strcmp(hal_ir_opcode_name(code), opcode) != 0)) {
        code++;
    }
    if (code == HAL_IR_OPCODE_COUNT) {
        return hal_ir_reader_fail(reader, "there is no opcode or declaration `%s`", opcode);
    }
    const hal_ir_info *info = hal_ir_info_of(code);
    const int has_value = info->result != '-' && info->result != 's' && info->result != 'w';
    if (has_value && name == NULL) {
        return hal_ir_reader_fail(reader, "the value of %s needs a name: %%name = %s", opcode,
                                  opcode);
    }
    if (!has_value && name != NULL) {
        return hal_ir_reader_fail(reader, "%s gives no value", opcode);
    }
    hal_ir_record record = hal_ir_blank(code);
    for (const char *s = info->syntax; *s != 0; s++) {
        if (!parse_part(p, &record, *s)) {
            return 0;
        }
    }
    if (!note_line(p, number)) {
        return 0;
    }
    const hal_ir_value value = hal_ir_append(p->builder, record);
    return take_builder_error(p) && (name == NULL || define(p, name, name_length, value));
}

static int parse_group(parser *p)
{
    uint64_t size[3];
    for (int i = 0; i < 3; i++) {
        if (!hal_ir_reader_unsigned(&p->reader, "a group size", UINT32_MAX, &size[i])) {
            return 0;
        }
    }
    hal_ir_group_size(p->builder, (uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]);
    return take_builder_error(p);
}

static int parse_memory(parser *p, int shared)
{
    static const char *const accesses[] = {"read", "write", "read_write", NULL};
    char name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_type type = HAL_TYPE_NONE;
    if (!hal_ir_reader_word(reader, "a name", 0, name) ||
        !hal_ir_reader_type(reader, &type, NULL)) {
        return 0;
    }
    if (shared) {
        uint64_t count = 0;
        if (!hal_ir_reader_unsigned(reader, "a count of elements", UINT32_MAX, &count)) {
            return 0;
        }
        hal_ir_shared(p->builder, name, type, (uint32_t)count);
    } else {
        uint32_t access = 0;
        if (!parse_name_of(p, "an access", accesses, &access)) {
            return 0;
        }
        hal_ir_binding(p->builder, name, type, HAL_ACCESS_READ + access);
    }
    return take_builder_error(p);
}

/* The offset may be left out: then the scalar lies as in a C struct. */
static int parse_scalar(parser *p)
{
    char name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_type type = HAL_TYPE_NONE;
    uint64_t offset = 0;
    if (!hal_ir_reader_word(reader, "a name", 0, name) ||
        !hal_ir_reader_type(reader, &type, NULL)) {
        return 0;
    }
    const hal_ir_kernel *view = hal_ir_builder_view(p->builder);
    if (!hal_ir_reader_at_end(reader)) {
        if (!hal_ir_reader_unsigned(reader, "an offset", HAL_IR_MAX_SCALAR_BYTES, &offset)) {
            return 0;
        }
    } else if (view->scalar_count > 0) {
        const hal_ir_scalar *last = &view->scalars[view->scalar_count - 1];
        const uint32_t bytes = hal_type_size(type);
        offset = last->offset + hal_type_size(last->type);
        offset = (offset + bytes - 1) / bytes * bytes;
    }
    hal_ir_declare_scalar(p->builder, name, type, (uint32_t)offset);
    if (!take_builder_error(p)) {
        return 0;
    }
    if (!p->has_scalar_bytes) {
        hal_ir_set_scalar_bytes(p->builder,
                                hal_ir_scalar_block(view->scalars, view->scalar_count));
    }
    return 1;
}

/* 1 or 0, or -1 when the word begins no declaration. */
static int parse_declaration(parser *p, const char *word)
{
    uint64_t number = 0;
    hal_ir_reader *reader = &p->reader;
    if (strcmp(word, "group") == 0) {
        return parse_group(p);
    }
    if (strcmp(word, "groups_per_unit") == 0) {
        if (!hal_ir_reader_unsigned(reader, "groups_per_unit", UINT32_MAX, &number)) {
            return 0;
        }
        hal_ir_groups_per_unit(p->builder, (uint32_t)number);
        return take_builder_error(p);
    }
    if (strcmp(word, "binding") == 0 || strcmp(word, "shared") == 0) {
        return parse_memory(p, word[0] == 's');
    }
    if (strcmp(word, "scalar") == 0) {
        return parse_scalar(p);
    }
    if (strcmp(word, "scalar_bytes") == 0) {
        if (!hal_ir_reader_unsigned(reader, "scalar_bytes", HAL_IR_MAX_SCALAR_BYTES, &number)) {
            return 0;
        }
        p->has_scalar_bytes = 1;
        hal_ir_set_scalar_bytes(p->builder, (uint32_t)number);
        return 1;
    }
    return -1;
}

/* A declaration or a record. */
static int parse_line(parser *p)
{
    char word[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    if (hal_ir_reader_accept(reader, '%')) {
        const char *name = NULL;
        uint32_t length = 0;
        return take_name(p, &name, &length) && hal_ir_reader_expect(reader, '=') &&
               hal_ir_reader_word(reader, "an opcode", 0, word) &&
               parse_record(p, word, name, length);
    }
    if (!hal_ir_reader_word(reader, "a declaration or a record", 0, word)) {
        return 0;
    }
    const int declared = parse_declaration(p, word);
    return declared >= 0 ? declared : parse_record(p, word, NULL, 0);
}

static hal_status parse(parser *p, hal_ir_kernel **kernel)
{
    int good = parse_head(p);
    while (good && hal_ir_reader_line(&p->reader)) {
        good = parse_line(p) && hal_ir_reader_end(&p->reader);
    }
    if (!good) {
        const hal_status status =
            p->builder == NULL ? HAL_OK : hal_ir_builder_get_status(p->builder);
        return hal_fail(status == HAL_ERROR_OUT_OF_MEMORY ? status : HAL_ERROR_INVALID_IR,
                        "IR text, %s", p->reader.problem.text);
    }
    hal_status status = hal_ir_builder_finish(p->builder, kernel);
    const uint32_t wrong = hal_ir_builder_wrong_record(p->builder);
    if (status == HAL_ERROR_INVALID_IR) {
        hal_fail(status, "IR text, line %u, column 1: %s",
                 wrong == HAL_IR_NONE ? p->reader.line : p->lines[wrong], hal_status_message());
    }
    return status;
}

hal_status hal_ir_parse(const char *text, size_t bytes, hal_ir_kernel **kernel)
{
    if (kernel == NULL || (text == NULL && bytes > 0)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "parsing IR: `%s` is null",
                        kernel == NULL ? "kernel" : "text");
    }
    *kernel = NULL;
    parser p = {.reader = {.text = text, .bytes = bytes, .line = 1}};
    const hal_status status = parse(&p, kernel);
    hal_ir_builder_destroy(p.builder);
    free(p.names);
    free(p.lines);
    return status;
}
