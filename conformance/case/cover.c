/* cover.c: the table of what the cases cover. */
#include "case/cover.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A row with the types that it needs in one kind of memory. */
typedef struct cover_row {
    char name[28];
    uint8_t memory;
    uint32_t types;
    unsigned counts[HAL_TYPE_COUNT];
} cover_row;

typedef struct cover_table {
    cover_row *rows;
    size_t count;
} cover_table;

/* Opcodes that compute one value from others, work-item by work-item: the types of their operands;
 * 0 for the others. */
#define IS_ELEMENTWISE(CLASS)                           \
    (HAL_IR_CLASS_##CLASS == HAL_IR_CLASS_ARITHMETIC || \
     HAL_IR_CLASS_##CLASS == HAL_IR_CLASS_BITS ||       \
     HAL_IR_CLASS_##CLASS == HAL_IR_CLASS_COMPARISON || HAL_IR_CLASS_##CLASS == HAL_IR_CLASS_MATH)
#define ROW(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, letters, result) \
    [number] = {IS_ELEMENTWISE(CLASS) ? HAL_TYPES_##TYPES : 0, letters},
static const struct {
    uint32_t types;
    const char *letters; /* one for each of a, b, c, d; - where there is no operand */
} elementwise[HAL_IR_OPCODE_COUNT] = {HAL_IR_OPCODE_TABLE(ROW)};
#undef ROW

static const char *const atomic_rows[HAL_IR_ATOMIC_COUNT] = {
    "atomic add", "atomic min", "atomic max",      "atomic and",
    "atomic or",  "atomic xor", "atomic exchange", "atomic compare"};

static void add_row(cover_table *table, uint8_t memory, uint32_t types, const char *format, ...)
{
    cover_row *rows = realloc(table->rows, (table->count + 1) * sizeof *rows);
    if (!rows) {
        return;
    }
    table->rows = rows;
    cover_row *added = &rows[table->count++];
    *added = (cover_row){.memory = memory, .types = types};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(added->name, sizeof added->name, format, arguments);
    va_end(arguments);
}

static void require_values(cover_table *table)
{
    add_row(table, CASE_VALUES, HAL_TYPES_VALUES, "constant");
    add_row(table, CASE_VALUES, HAL_TYPES_NUMBERS, "scalar");
    for (uint32_t opcode = HAL_IR_LOCAL_ID; opcode <= HAL_IR_LANE_ID; opcode++) {
        add_row(table, CASE_VALUES, HAL_TYPE_BIT(HAL_TYPE_U32), "%s", hal_ir_opcode_name(opcode));
    }
    for (uint32_t opcode = HAL_IR_ADD; opcode < HAL_IR_OPCODE_COUNT; opcode++) {
        if (cover_types_of(opcode) != 0) {
            add_row(table, CASE_VALUES, cover_types_of(opcode), "%s", hal_ir_opcode_name(opcode));
        }
    }
}

static void require_conversions(cover_table *table)
{
    for (hal_type from = HAL_TYPE_BOOL; from < HAL_TYPE_COUNT; from++) {
        if ((HAL_TYPES_VALUES & HAL_TYPE_BIT(from)) == 0) {
            continue;
        }
        add_row(table, CASE_VALUES, HAL_TYPES_VALUES & ~HAL_TYPE_BIT(from), "cast from %s",
                hal_type_name(from));
        uint32_t same_size = 0;
        for (hal_type to = HAL_TYPE_I32; to < HAL_TYPE_COUNT; to++) {
            if (to != from && (HAL_TYPES_NUMBERS & HAL_TYPE_BIT(to)) != 0 &&
                hal_type_size(to) == hal_type_size(from)) {
                same_size |= HAL_TYPE_BIT(to);
            }
        }
        if (same_size != 0) {
            add_row(table, CASE_VALUES, same_size, "bitcast from %s", hal_type_name(from));
        }
    }
    add_row(table, CASE_VALUES, HAL_STORAGE_TYPES & ~HAL_TYPES_VALUES, "narrow");
    for (unsigned width = 2; width <= 8; width *= 2) {
        add_row(table, CASE_VALUES, HAL_TYPES_VALUES, "pack x%u", width);
        add_row(table, CASE_VALUES, HAL_TYPES_VALUES, "extract x%u", width);
    }
}

static void require_control(cover_table *table)
{
    static const char *const reductions[HAL_IR_REDUCE_COUNT] = {"add", "min", "max"};
    add_row(table, CASE_VALUES, HAL_TYPES_VALUES, "var get set");
    add_row(table, CASE_VALUES, HAL_TYPES_COUNTERS, "for");
    add_row(table, CASE_VALUES, HAL_TYPES_BOOL, "if");
    add_row(table, CASE_VALUES, HAL_TYPES_BOOL, "else");
    add_row(table, CASE_VALUES, HAL_TYPES_NUMBERS, "shuffle");
    add_row(table, CASE_VALUES, HAL_TYPES_NUMBERS, "shuffle_xor");
    for (unsigned kind = 0; kind < HAL_IR_REDUCE_COUNT; kind++) {
        add_row(table, CASE_VALUES, HAL_TYPES_NUMBERS, "subgroup %s", reductions[kind]);
    }
    add_row(table, CASE_VALUES, HAL_TYPES_MATRIX, "matrix_multiply");
}

static void require_memory(cover_table *table)
{
    for (uint8_t memory = CASE_BINDING; memory <= CASE_SHARED; memory++) {
        for (unsigned width = 1; width <= 8; width *= 2) {
            add_row(table, memory, HAL_STORAGE_TYPES, "load x%u", width);
            add_row(table, memory, HAL_STORAGE_TYPES, "load x%u guarded", width);
            add_row(table, memory, HAL_STORAGE_TYPES, "store x%u", width);
            add_row(table, memory, HAL_STORAGE_TYPES, "store x%u guarded", width);
        }
        for (unsigned kind = 0; kind < HAL_IR_ATOMIC_COUNT; kind++) {
            add_row(table, memory, HAL_TYPES_INTEGERS, "%s", atomic_rows[kind]);
        }
    }
    add_row(table, CASE_SHARED, HAL_STORAGE_TYPES, "barrier");
    add_row(table, CASE_SHARED, HAL_STORAGE_TYPES, "async_copy");
}

static void require_ops(cover_table *table)
{
    const uint32_t floats = HAL_STORAGE_FLOATS;
    const uint32_t numbers = HAL_STORAGE_NUMBERS;
    for (int f = 0; f < OPS_UNARY_COUNT; f++) {
        add_row(table, CASE_BINDING, floats & ~(f == OPS_NOT ? floats : 0), "ops %s",
                ops_unary_name((ops_unary_function)f));
    }
    for (int f = 0; f < OPS_BINARY_COUNT; f++) {
        const bool bits = f == OPS_AND || f == OPS_OR || f == OPS_XOR;
        const bool shifts = f == OPS_SHL || f == OPS_SHR;
        const bool only_floats = f == OPS_POW || f == OPS_ATAN2;
        const uint32_t types = bits          ? (HAL_STORAGE_TYPES & ~floats)
                               : shifts      ? (numbers & ~floats)
                               : only_floats ? floats
                                             : numbers;
        add_row(table, CASE_BINDING, types, "ops %s", ops_binary_name((ops_binary_function)f));
    }
    static const char *const reductions[OPS_REDUCTION_COUNT] = {"sum",    "mean",    "max",   "min",
                                                                "argmax", "product", "argmin"};
    for (int r = 0; r < OPS_REDUCTION_COUNT; r++) {
        add_row(table, CASE_BINDING, r == OPS_REDUCE_MEAN ? floats : numbers, "ops %s",
                reductions[r]);
    }
    add_row(table, CASE_BINDING, floats, "ops softmax");
    add_row(table, CASE_BINDING, floats, "ops log_softmax");
    add_row(table, CASE_BINDING, floats, "ops attention");
    add_row(table, CASE_BINDING, floats, "ops gemm portable");
    add_row(table, CASE_BINDING, floats, "ops gemm native");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops gather");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops concatenate");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops copy");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops one_hot");
    add_row(table, CASE_BINDING, numbers, "ops iota");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops fill");
    add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops where");
    for (hal_type from = HAL_TYPE_BOOL; from < HAL_TYPE_COUNT; from++) {
        add_row(table, CASE_BINDING, HAL_STORAGE_TYPES, "ops cast from %s", hal_type_name(from));
    }
}

static cover_table required_rows(void)
{
    cover_table table = {0};
    require_values(&table);
    require_conversions(&table);
    require_control(&table);
    require_memory(&table);
    require_ops(&table);
    return table;
}

static void count_cases(cover_table *table, const case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t j = 0; j < list->entries[i].cover_count; j++) {
            const case_cover *cover = &list->entries[i].covers[j];
            for (size_t k = 0; k < table->count; k++) {
                cover_row *row = &table->rows[k];
                if (row->memory == cover->memory && strcmp(row->name, cover->row) == 0) {
                    row->counts[cover->type]++;
                }
            }
        }
    }
}

static size_t print_rows(FILE *file, const cover_table *table, uint8_t memory, bool of_ops)
{
    size_t empty = 0;
    fprintf(file, "%-24s", "");
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        fprintf(file, "%8s", hal_type_name(type));
    }
    fputc('\n', file);
    for (size_t i = 0; i < table->count; i++) {
        const cover_row *row = &table->rows[i];
        if (row->memory != memory || (strncmp(row->name, "ops ", 4) == 0) != of_ops ||
            row->types == 0) {
            continue;
        }
        fprintf(file, "%-24s", row->name);
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            const bool wanted = (row->types & HAL_TYPE_BIT(type)) != 0;
            if (!wanted) {
                fprintf(file, "%8s", ".");
            } else if (row->counts[type] == 0) {
                fprintf(file, "%8s", "EMPTY");
            } else {
                fprintf(file, "%8u", row->counts[type]);
            }
            empty += wanted && row->counts[type] == 0;
        }
        fputc('\n', file);
    }
    return empty;
}

uint32_t cover_types_of(uint32_t opcode)
{
    return opcode < HAL_IR_OPCODE_COUNT ? elementwise[opcode].types : 0;
}

unsigned cover_operands_of(uint32_t opcode)
{
    const char *letters = cover_types_of(opcode) != 0 ? elementwise[opcode].letters : "";
    return (unsigned)strcspn(letters, "-");
}

void cover_each_cell(void (*visit)(void *user, const case_cover *cell), void *user)
{
    cover_table table = required_rows();
    for (size_t i = 0; i < table.count; i++) {
        const cover_row *row = &table.rows[i];
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            if ((row->types & HAL_TYPE_BIT(type)) != 0) {
                case_cover cell = {.type = type, .memory = row->memory};
                memcpy(cell.row, row->name, sizeof cell.row);
                visit(user, &cell);
            }
        }
    }
    free(table.rows);
}

size_t cover_print(FILE *file, const case_list *list)
{
    cover_table table = required_rows();
    count_cases(&table, list);
    fprintf(file, "Cases that cover each cell; '.': the row has no such type.\n");
    fprintf(file, "\nValues\n");
    size_t empty = print_rows(file, &table, CASE_VALUES, false);
    fprintf(file, "\nMemory: bindings\n");
    empty += print_rows(file, &table, CASE_BINDING, false);
    fprintf(file, "\nMemory: shared\n");
    empty += print_rows(file, &table, CASE_SHARED, false);
    fprintf(file, "\nOperators\n");
    empty += print_rows(file, &table, CASE_BINDING, true);
    fprintf(file, "\n%zu empty cells\n", empty);
    free(table.rows);
    return empty;
}
