/* Parses IR text into a kernel by the syntax column of the opcode table. A raw builder checks each
 * record. Safe on any bytes. */
#include "internal.h"
#include "text.h"
#include "base/array.h"
#include "base/map.h"
#include "base/status.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The name of a value; points into the text. */
typedef struct value_name {
    const char *name;
    uint32_t length;
    hal_ir_value value;
} value_name;

typedef struct parser {
    hal_ir_reader reader;
    hal_ir_builder *builder;
    value_name *names;
    uint32_t name_count, name_capacity;
    hal_map name_of; /* index + 1 in `names`, by hash of the name */
    uint32_t *lines; /* of each record */
    uint32_t line_capacity;
    bool has_scalar_bytes;
} parser;

static bool parse_head(parser *p)
{
    char word[HAL_IR_WORD_BYTES], name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_ir_reader_line(reader);
    if (!hal_ir_reader_word(reader, "`kernel` or `fragment`", 0, word)) {
        return false;
    }
    const bool fragment = strcmp(word, "fragment") == 0;
    if (!fragment && strcmp(word, "kernel") != 0) {
        return hal_ir_reader_fail(reader, "expected `kernel` or `fragment`, got `%s`", word);
    }
    if (!hal_ir_reader_word(reader, "a name", 0, name) || !hal_ir_reader_end(reader)) {
        return false;
    }
    const hal_status status =
        hal_ir_builder_create_raw(name, fragment ? HAL_IR_FRAGMENT : 0, &p->builder);
    return status == HAL_OK || hal_ir_reader_fail(reader, "%s", hal_status_message());
}

/* The name after a %. */
static bool parse_value_name(parser *p, const char **name, uint32_t *length)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(&p->reader, "the name of a value", 0, word)) {
        return false;
    }
    *name = p->reader.text + p->reader.token;
    *length = (uint32_t)strlen(word);
    return true;
}

typedef struct wanted_name {
    const value_name *names;
    const char *name;
    uint32_t length;
} wanted_name;

static bool name_matches(const void *index, const void *wanted)
{
    const wanted_name *w = wanted;
    const value_name *name = &w->names[(uintptr_t)index - 1];
    return name->length == w->length && memcmp(name->name, w->name, w->length) == 0;
}

/* The value of a name; null if it has none. */
static const value_name *name_find(const parser *p, const char *name, uint32_t length)
{
    const wanted_name wanted = {p->names, name, length};
    const uintptr_t index =
        (uintptr_t)hal_map_find(&p->name_of, XXH3_64bits(name, length), name_matches, &wanted);
    return index ? &p->names[index - 1] : NULL;
}

static bool parse_operand(parser *p, hal_ir_value *value)
{
    const char *name = NULL;
    uint32_t length = 0;
    if (!hal_ir_reader_expect(&p->reader, '%') || !parse_value_name(p, &name, &length)) {
        return false;
    }
    const value_name *found = name_find(p, name, length);
    if (!found) {
        return hal_ir_reader_fail(&p->reader, "expected a value that is defined above, got %%%.*s",
                                  (int)length, name);
    }
    *value = found->value;
    return true;
}

static bool parse_guard(parser *p, hal_ir_record *record)
{
    char word[HAL_IR_WORD_BYTES];
    if (hal_ir_reader_at_end(&p->reader)) {
        return true;
    }
    if (!hal_ir_reader_word(&p->reader, "`if` and a guard", 0, word)) {
        return false;
    }
    if (strcmp(word, "if") != 0) {
        return hal_ir_reader_fail(&p->reader, "expected `if` and a guard, got `%s`", word);
    }
    return parse_operand(p, &record->b);
}

/* One to four operands. */
static bool parse_operands(parser *p, hal_ir_record *record)
{
    hal_ir_value *operands[4] = {&record->a, &record->b, &record->c, &record->d};
    for (int i = 0; i < 4; i++) {
        if (!parse_operand(p, operands[i])) {
            return false;
        }
        if (!hal_ir_reader_accept(&p->reader, ',')) {
            break;
        }
    }
    return !p->reader.failed;
}

/* Reports the builder's error at the present token. */
static bool check_builder(parser *p)
{
    return hal_ir_builder_get_status(p->builder) == HAL_OK ||
           hal_ir_reader_fail(&p->reader, "%s", hal_status_message());
}

static bool parse_declared_name(parser *p, bool scalar, uint32_t *number)
{
    char word[HAL_IR_WORD_BYTES];
    const hal_ir_kernel *view = hal_ir_builder_view(p->builder);
    const uint32_t count = scalar ? view->scalar_count : view->memory_count;
    if (!hal_ir_reader_word(&p->reader, scalar ? "a scalar" : "a memory", 0, word)) {
        return false;
    }
    for (*number = 0; *number < count; (*number)++) {
        const uint32_t name = scalar ? view->scalars[*number].name : view->memories[*number].name;
        if (strcmp(view->names + name, word) == 0) {
            return true;
        }
    }
    return hal_ir_reader_fail(&p->reader, "expected a declared %s, got `%s`",
                              scalar ? "scalar" : "binding or shared array", word);
}

static bool parse_keyword(parser *p, const char *what, const char *const *names, uint32_t *number)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(&p->reader, what, 0, word)) {
        return false;
    }
    for (*number = 0; names[*number] != NULL; (*number)++) {
        if (strcmp(names[*number], word) == 0) {
            return true;
        }
    }
    return hal_ir_reader_fail(&p->reader, "expected %s, got `%s`", what, word);
}

/* memory[%index], or with an offset: memory[%index + 4] */
static bool parse_memory_operand(parser *p, hal_ir_value *index, uint32_t *memory, int32_t *offset)
{
    hal_ir_reader *reader = &p->reader;
    if (!parse_declared_name(p, 0, memory) || !hal_ir_reader_expect(reader, '[') ||
        !parse_operand(p, index)) {
        return false;
    }
    const bool minus = offset && hal_ir_reader_accept(reader, '-');
    if (minus || (offset && hal_ir_reader_accept(reader, '+'))) {
        uint64_t number = 0;
        const uint64_t limit = minus ? UINT64_C(1) << 31 : INT32_MAX;
        if (!hal_ir_reader_unsigned(reader, "an offset", limit, &number)) {
            return false;
        }
        *offset = (int32_t)(minus ? 0 - (int64_t)number : (int64_t)number);
    }
    return hal_ir_reader_expect(reader, ']');
}

static bool parse_part(parser *p, hal_ir_record *record, char part)
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
        return parse_operands(p, record);
    case 'T':
        if (!hal_ir_reader_type(reader, &record->type, &width)) {
            return false;
        }
        record->width = (uint8_t)width;
        return width != 0 || hal_ir_reader_fail(reader, "width: expected 2, 4 or 8, got 0");
    case 'k':
        if (!hal_ir_reader_constant(reader, record->type, &number)) {
            return false;
        }
        record->aux = hal_ir_pool(p->builder, number);
        return check_builder(p);
    case 's':
        return parse_declared_name(p, 1, &record->aux);
    case 'x':
        return parse_keyword(p, "a dimension", hal_ir_dimension_names, &record->aux);
    case 'R':
        return parse_keyword(p, "a reduction", hal_ir_reduction_names, &record->aux);
    case 'A':
        return parse_keyword(p, "a kind of atomic", hal_ir_atomic_names, &record->flags);
    case 'n':
        if (!hal_ir_reader_unsigned(reader, "a number", HAL_IR_MAX_FRAGMENT_VALUES - 1, &number)) {
            return false;
        }
        record->aux = (uint32_t)number;
        hal_ir_count_fragment(p->builder, record->opcode, record->aux);
        return true;
    case 'i':
        if (!hal_ir_reader_signed(reader, "a number", &signed_number)) {
            return false;
        }
        record->imm = (int32_t)signed_number;
        return true;
    case 'W':
        if (!hal_ir_reader_unsigned(reader, "a width", 8, &number)) {
            return false;
        }
        record->width = (uint8_t)number;
        return true;
    case 'S':
        if (!hal_ir_reader_type(reader, &type, NULL)) {
            return false;
        }
        record->aux = type;
        return true;
    case 'F':
        return !hal_ir_reader_accept(reader, '.') ||
               parse_keyword(p, "fast", (const char *const[]){"", "fast", NULL}, &record->flags);
    case 'M':
        return parse_memory_operand(p, &record->a, &record->aux, &record->imm);
    case 'N':
        return parse_memory_operand(p, &record->a, &record->aux, NULL);
    case 'B':
        return parse_memory_operand(p, &record->d, (uint32_t *)&record->imm, NULL);
    case ',':
        return hal_ir_reader_expect(reader, ',');
    default:
        return true;
    }
}

static bool out_of_memory(parser *p)
{
    hal_ir_builder_fail(p->builder, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    return check_builder(p);
}

static bool add_line(parser *p, uint32_t record)
{
    if (!HAL_ARRAY_RESERVE(p->lines, p->line_capacity, (uint64_t)record + 1)) {
        return out_of_memory(p);
    }
    p->lines[record] = p->reader.line;
    return true;
}

static bool name_define(parser *p, const char *name, uint32_t length, hal_ir_value value)
{
    if (name_find(p, name, length)) {
        p->reader.token = (size_t)(name - p->reader.text);
        return hal_ir_reader_fail(&p->reader, "expected a new name, got %%%.*s", (int)length, name);
    }
    if (!HAL_ARRAY_RESERVE(p->names, p->name_capacity, (uint64_t)p->name_count + 1) ||
        !hal_map_add(&p->name_of, XXH3_64bits(name, length),
                     (void *)((uintptr_t)p->name_count + 1))) {
        return out_of_memory(p);
    }
    p->names[p->name_count++] = (value_name){name, length, value};
    return true;
}

static bool parse_record(parser *p, const char *opcode, const char *name, uint32_t name_length)
{
    hal_ir_reader *reader = &p->reader;
    const uint32_t number = hal_ir_builder_view(p->builder)->record_count;
    uint32_t code = 0;
    while (code < HAL_IR_OPCODE_COUNT &&
           (!hal_ir_info_of(code) || strcmp(hal_ir_opcode_name(code), opcode) != 0)) {
        code++;
    }
    if (code == HAL_IR_OPCODE_COUNT) {
        return hal_ir_reader_fail(reader, "expected an opcode or a declaration, got `%s`", opcode);
    }
    const hal_ir_info *info = hal_ir_info_of(code);
    const bool has_value = info->result != '-' && info->result != 's' && info->result != 'w';
    if (has_value && !name) {
        return hal_ir_reader_fail(reader, "expected a name for the value: %%name = %s", opcode);
    }
    if (!has_value && name) {
        return hal_ir_reader_fail(reader, "expected no name, as %s has no value", opcode);
    }
    hal_ir_record record = hal_ir_record_blank(code);
    for (const char *s = info->syntax; *s != 0; s++) {
        if (!parse_part(p, &record, *s)) {
            return false;
        }
    }
    if (!add_line(p, number)) {
        return false;
    }
    const hal_ir_value value = hal_ir_append(p->builder, record);
    return check_builder(p) && (!name || name_define(p, name, name_length, value));
}

static bool parse_group(parser *p)
{
    uint64_t size[3];
    for (int i = 0; i < 3; i++) {
        if (!hal_ir_reader_unsigned(&p->reader, "a group size", UINT32_MAX, &size[i])) {
            return false;
        }
    }
    hal_ir_group_size(p->builder, (uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]);
    return check_builder(p);
}

static bool parse_memory(parser *p, bool shared)
{
    static const char *const accesses[] = {"read", "write", "read_write", NULL};
    char name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_type type = HAL_TYPE_NONE;
    if (!hal_ir_reader_word(reader, "a name", 0, name) ||
        !hal_ir_reader_type(reader, &type, NULL)) {
        return false;
    }
    if (shared) {
        uint64_t count = 0;
        if (!hal_ir_reader_unsigned(reader, "a count of elements", UINT32_MAX, &count)) {
            return false;
        }
        hal_ir_shared(p->builder, name, type, (uint32_t)count);
    } else {
        uint32_t access = 0;
        if (!parse_keyword(p, "an access", accesses, &access)) {
            return false;
        }
        hal_ir_binding(p->builder, name, type, HAL_ACCESS_READ + access);
    }
    return check_builder(p);
}

/* Without an offset the scalar is placed as in a C struct. */
static bool parse_scalar(parser *p)
{
    char name[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    hal_type type = HAL_TYPE_NONE;
    uint64_t offset = 0;
    if (!hal_ir_reader_word(reader, "a name", 0, name) ||
        !hal_ir_reader_type(reader, &type, NULL)) {
        return false;
    }
    const hal_ir_kernel *view = hal_ir_builder_view(p->builder);
    if (!hal_ir_reader_at_end(reader)) {
        if (!hal_ir_reader_unsigned(reader, "an offset", HAL_IR_MAX_SCALAR_BYTES, &offset)) {
            return false;
        }
    } else if (view->scalar_count > 0) {
        const hal_ir_scalar *last = &view->scalars[view->scalar_count - 1];
        const uint32_t bytes = hal_type_size(type);
        offset = last->offset + hal_type_size(last->type);
        offset = (offset + bytes - 1) / bytes * bytes;
    }
    hal_ir_declare_scalar(p->builder, name, type, (uint32_t)offset);
    if (!check_builder(p)) {
        return false;
    }
    if (!p->has_scalar_bytes) {
        hal_ir_set_scalar_bytes(p->builder,
                                hal_ir_scalar_block(view->scalars, view->scalar_count));
    }
    return true;
}

/* 1 or 0; -1 if the word does not begin a declaration. */
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
        return check_builder(p);
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
static bool parse_line(parser *p)
{
    char word[HAL_IR_WORD_BYTES];
    hal_ir_reader *reader = &p->reader;
    if (hal_ir_reader_accept(reader, '%')) {
        const char *name = NULL;
        uint32_t length = 0;
        return parse_value_name(p, &name, &length) && hal_ir_reader_expect(reader, '=') &&
               hal_ir_reader_word(reader, "an opcode", 0, word) &&
               parse_record(p, word, name, length);
    }
    if (!hal_ir_reader_word(reader, "a declaration or a record", 0, word)) {
        return false;
    }
    const int declared = parse_declaration(p, word);
    return declared >= 0 ? declared != 0 : parse_record(p, word, NULL, 0);
}

static hal_status parse_kernel(parser *p, hal_ir_kernel **kernel)
{
    bool good = parse_head(p);
    while (good && hal_ir_reader_line(&p->reader)) {
        good = parse_line(p) && hal_ir_reader_end(&p->reader);
    }
    if (!good) {
        const hal_status status = !p->builder ? HAL_OK : hal_ir_builder_get_status(p->builder);
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
    if (!kernel || (!text && bytes > 0)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_parse: %s: expected a valid pointer, got null",
                        !kernel ? "kernel" : "text");
    }
    *kernel = NULL;
    parser p = {.reader = {.text = text, .bytes = bytes, .line = 1}};
    const hal_status status = parse_kernel(&p, kernel);
    hal_ir_builder_destroy(p.builder);
    hal_map_free(&p.name_of);
    free(p.names);
    free(p.lines);
    return status;
}
