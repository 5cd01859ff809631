/* Makes a kernel over tiles from the fragment of an epilogue, and runs it. The groups cover a tile;
 * each work-item loads its element and the inputs, executes the fragment, and stores the
 * element. */
#include "gemm/epilogue.h"

#include "status.h"

#include <stdlib.h>
#include <string.h>

/* The scalars of the kernel: the piece of a tile that it runs over. */
typedef struct place {
    uint32_t row, col, batch, ld;
} place;
enum { SCALARS = sizeof(place) / sizeof(uint32_t) };

/* Groups along one side of a tile: `count` of `size`, from `first` on. */
typedef struct span {
    uint32_t first, size, count;
} span;

/* A part of a tile that pieces of one size cover. */
typedef struct part {
    span rows, cols;
} part;
enum { MAX_PARTS = 20 };

/* The kernel under construction. */
typedef struct draft {
    hal_ir_kernel ir;
    hal_ir_record *records;
    uint64_t *constants;
    hal_ir_memory memories[1 + HAL_GEMM_MAX_INPUTS];
    hal_ir_scalar scalars[SCALARS];
} draft;

enum { GROUP_ROWS = 16 }; /* at most */

/* What a tile can hold in the place of its sums. */
static bool has_output(hal_type sums, hal_type output)
{
    return output == sums || (hal_type_is_integer(sums) && output == HAL_TYPE_F32);
}

/* Checks the types of the fragment, and that indices within a tile have 32 bits. */
static hal_status epilogue_check(const hal_gemm_description *description, hal_type type)
{
    const hal_ir_kernel *fragment = description->epilogue;
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        const hal_ir_record *record = &fragment->records[i];
        if (record->opcode == HAL_IR_INPUT) {
            const hal_type given =
                record->aux == 0  ? type
                : record->aux < 4 ? (hal_type)HAL_TYPE_U32
                                  : hal_type_of_value(description->inputs[record->aux - 4].type);
            if (record->type != given) {
                return cpu_fail(HAL_ERROR_INVALID_ARGUMENT,
                                "gemm: epilogue: input %u: expected type %u, got %u", record->aux,
                                (unsigned)given, (unsigned)record->type);
            }
        }
        if (record->opcode == HAL_IR_OUTPUT &&
            !has_output(type, fragment->records[record->a].type)) {
            return cpu_fail(HAL_ERROR_UNSUPPORTED,
                            "gemm: epilogue: output: expected the accumulator's type %u%s, got %u",
                            (unsigned)type, hal_type_is_integer(type) ? " or f32" : "",
                            (unsigned)fragment->records[record->a].type);
        }
    }
    const int64_t most = UINT32_MAX / 2 / CPU_EPILOGUE_SIDE;
    for (uint32_t i = 0; i < description->input_count; i++) {
        const hal_gemm_input *input = &description->inputs[i];
        if (input->row_stride < 0 || input->row_stride > most || input->column_stride < 0 ||
            input->column_stride > most || input->batch_stride < 0) {
            return cpu_fail(HAL_ERROR_UNSUPPORTED,
                            "gemm: epilogue: strides of input %u: expected 0 to %lld", i,
                            (long long)most);
        }
    }
    if (description->ldc > most) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED,
                        "gemm: ldc: expected at most %lld with an epilogue, got %lld",
                        (long long)most, (long long)description->ldc);
    }
    return HAL_OK;
}

/* Groups of `most`, or the one of the rest. Its count is 0 if that is empty. */
static span span_cut(uint32_t length, uint32_t most, bool is_rest)
{
    const uint32_t whole = length / most, rest = length % most;
    return is_rest ? (span){whole * most, rest, rest > 0} : (span){0, most, whole};
}

/* A few hundred lanes amortise the cost of a step; more exceed the first cache. */
static uint32_t most_cols(uint32_t rows)
{
    return rows <= 2 ? 512 : rows <= 4 ? 256 : rows <= 8 ? 128 : 64;
}

/* Cuts rows into pieces whose columns are powers of two. A compiled piece is one group. */
static uint32_t rows_cut(const cpu_epilogue *epilogue, span rows, uint32_t cols, part *parts)
{
    const uint32_t most = most_cols(rows.size);
    uint32_t count = 0, first = 0, size = most;
    while (first < cols) {
        const uint32_t left = cols - first;
        while (size > left) {
            size /= 2;
        }
        const uint32_t groups = epilogue->compiles ? 1 : left / size;
        parts[count++] = (part){rows, {first, size, groups}};
        first += size * groups;
    }
    return count;
}

/* Cuts a tile of any size. */
static uint32_t any_tile_cut(const cpu_epilogue *epilogue, uint32_t rows, uint32_t cols,
                             part parts[MAX_PARTS])
{
    uint32_t count = 0;
    if (epilogue->compiles && cols > 1) {
        return rows_cut(epilogue, (span){0, 1, rows}, cols, parts);
    }
    for (int i = 0; i < 2; i++) {
        const span whole = span_cut(rows, GROUP_ROWS, false);
        const span rest = {whole.size * whole.count, 1, rows % GROUP_ROWS};
        const span down = i == 0 ? whole : rest;
        count += down.count > 0 ? rows_cut(epilogue, down, cols, parts + count) : 0;
    }
    return count;
}

/* Cuts a tile. Returns the number of parts. A compiled piece is a row, so that its memory is
 * contiguous. The interpreter takes some rows at a time, and so do tiles of a single column. */
static uint32_t tile_cut(const cpu_epilogue *epilogue, uint32_t rows, uint32_t cols,
                         part parts[MAX_PARTS])
{
    uint32_t count = 0;
    if (epilogue->has_any_tiles) {
        return any_tile_cut(epilogue, rows, cols, parts);
    }
    if (epilogue->compiles && cols > 1) {
        parts[count++] = (part){{0, 1, rows}, {0, cols, 1}};
        return count;
    }
    for (int i = 0; i < 4; i++) {
        const span down = span_cut(rows, GROUP_ROWS, i / 2);
        const span across = span_cut(cols, most_cols(down.size), i % 2);
        if (down.count > 0 && across.count > 0) {
            parts[count++] = (part){down, across};
        }
    }
    return count;
}

static const cpu_epilogue_piece *find_piece(const cpu_epilogue *epilogue, uint32_t cols,
                                            uint32_t rows)
{
    for (uint32_t i = 0; i < epilogue->piece_count; i++) {
        const cpu_epilogue_piece *piece = &epilogue->pieces[i];
        if (piece->cols == cols && piece->rows == rows) {
            return piece;
        }
    }
    return NULL;
}

static void declare(draft *d, const cpu_epilogue *epilogue, const hal_ir_kernel *fragment)
{
    static const char names[] = "gemm_epilogue";
    d->memories[0] = (hal_ir_memory){.type = epilogue->type, .access = HAL_ACCESS_READ_WRITE};
    for (uint32_t i = 0; i < epilogue->input_count; i++) {
        d->memories[1 + i] =
            (hal_ir_memory){.type = epilogue->inputs[i].type, .access = HAL_ACCESS_READ};
    }
    for (uint32_t i = 0; i < SCALARS; i++) {
        d->scalars[i] = (hal_ir_scalar){.offset = (uint16_t)(4 * i), .type = HAL_TYPE_U32};
    }
    if (fragment->constant_count > 0) {
        memcpy(d->constants, fragment->constants, fragment->constant_count * sizeof(uint64_t));
    }
    d->ir = (hal_ir_kernel){.size = sizeof(hal_ir_kernel),
                            .version = HAL_IR_VERSION,
                            .group_size = {d->ir.group_size[0], d->ir.group_size[1], 1},
                            .memory_count = 1 + epilogue->input_count,
                            .binding_count = 1 + epilogue->input_count,
                            .scalar_count = SCALARS,
                            .scalar_bytes = sizeof(place),
                            .constant_count = fragment->constant_count,
                            .name_bytes = sizeof(names),
                            .records = d->records,
                            .memories = d->memories,
                            .scalars = d->scalars,
                            .constants = d->constants,
                            .names = names};
}

static hal_ir_value emit(draft *d, uint16_t opcode, hal_type type, hal_ir_value a, hal_ir_value b)
{
    d->records[d->ir.record_count] = (hal_ir_record){.opcode = opcode,
                                                     .type = type,
                                                     .width = type != HAL_TYPE_NONE,
                                                     .a = a,
                                                     .b = b,
                                                     .c = HAL_IR_NONE,
                                                     .d = HAL_IR_NONE};
    return d->ir.record_count++;
}

static hal_ir_value number(draft *d, uint64_t bits)
{
    const hal_ir_value value = emit(d, HAL_IR_CONSTANT, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE);
    d->records[value].aux = d->ir.constant_count;
    d->constants[d->ir.constant_count++] = bits;
    return value;
}

static hal_ir_value load(draft *d, uint32_t memory, hal_ir_value index)
{
    const hal_ir_value value =
        emit(d, HAL_IR_LOAD, hal_type_of_value(d->memories[memory].type), index, HAL_IR_NONE);
    d->records[value].aux = memory;
    return value;
}

/* The address of an element of an input, relative to that of the tile's first element. */
static hal_ir_value input_index(draft *d, const hal_gemm_input *input, hal_ir_value row,
                                hal_ir_value col)
{
    const int64_t strides[2] = {input->row_stride, input->column_stride};
    const hal_ir_value at[2] = {row, col};
    hal_ir_value index = HAL_IR_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        if (strides[i] == 0) {
            continue;
        }
        const hal_ir_value term = strides[i] == 1 ? at[i]
                                                  : emit(d, HAL_IR_MUL, HAL_TYPE_U32, at[i],
                                                         number(d, (uint64_t)strides[i]));
        index = index == HAL_IR_NONE ? term : emit(d, HAL_IR_ADD, HAL_TYPE_U32, index, term);
    }
    return index == HAL_IR_NONE ? number(d, 0) : index;
}

static hal_ir_value id(draft *d, uint16_t opcode, uint32_t axis)
{
    const hal_ir_value value = emit(d, opcode, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE);
    d->records[value].aux = axis;
    return value;
}

/* The column (axis 0) or row of a work-item within its part of the tile. Short forms where there is
 * one group along the axis, or groups have one work-item along it. */
static hal_ir_value position(draft *d, uint32_t axis, bool is_one_group)
{
    const uint32_t size = d->ir.group_size[axis];
    if (is_one_group) {
        return id(d, HAL_IR_LOCAL_ID, axis);
    }
    const hal_ir_value group = id(d, HAL_IR_GROUP_ID, axis);
    if (size == 1) {
        return group;
    }
    const hal_ir_value start = emit(d, HAL_IR_MUL, HAL_TYPE_U32, group, number(d, size));
    return emit(d, HAL_IR_ADD, HAL_TYPE_U32, start, id(d, HAL_IR_LOCAL_ID, axis));
}

/* The position of a work-item, its element's index in the tile, and the inputs of the fragment. */
static void place_records(draft *d, const cpu_epilogue *epilogue, hal_ir_value *index,
                          hal_ir_value *given)
{
    hal_ir_value at[2], scalars[SCALARS];
    for (uint32_t i = 0; i < SCALARS; i++) {
        scalars[i] = emit(d, HAL_IR_SCALAR, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE);
        d->records[scalars[i]].aux = i;
    }
    at[0] = position(d, 0, epilogue->compiles);
    at[1] = position(d, 1, false);
    const hal_ir_value line = emit(d, HAL_IR_MUL, HAL_TYPE_U32, at[1], scalars[3]);
    *index = emit(d, HAL_IR_ADD, HAL_TYPE_U32, line, at[0]);
    given[0] = load(d, 0, *index);
    given[1] = emit(d, HAL_IR_ADD, HAL_TYPE_U32, scalars[0], at[1]);
    given[2] = emit(d, HAL_IR_ADD, HAL_TYPE_U32, scalars[1], at[0]);
    given[3] = scalars[2];
    for (uint32_t i = 0; i < epilogue->input_count; i++) {
        const hal_ir_value where = input_index(d, &epilogue->inputs[i], at[1], at[0]);
        given[4 + i] = load(d, 1 + i, where);
    }
}

static void write_records(draft *d, const cpu_epilogue *epilogue, const hal_ir_kernel *fragment,
                          hal_ir_value *values)
{
    hal_ir_value index, given[4 + HAL_GEMM_MAX_INPUTS];
    place_records(d, epilogue, &index, given);
    hal_ir_value result = given[0];
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        hal_ir_record record = fragment->records[i];
        if (record.opcode == HAL_IR_INPUT) {
            values[i] = given[record.aux];
            continue;
        }
        uint32_t *operands[4] = {&record.a, &record.b, &record.c, &record.d};
        for (uint32_t k = 0; k < 4; k++) {
            *operands[k] = *operands[k] == HAL_IR_NONE ? HAL_IR_NONE : values[*operands[k]];
        }
        if (record.opcode == HAL_IR_OUTPUT) {
            result = record.a;
            continue;
        }
        values[i] = d->ir.record_count;
        d->records[d->ir.record_count++] = record;
    }
    if (d->records[result].type != epilogue->type) {
        result = emit(d, HAL_IR_BITCAST, epilogue->type, result, HAL_IR_NONE);
    }
    const hal_ir_value store = emit(d, HAL_IR_STORE, HAL_TYPE_NONE, index, HAL_IR_NONE);
    d->records[store].c = result;
    d->records[store].width = 1;
}

static hal_status make_piece(cpu_epilogue *epilogue, const hal_ir_kernel *fragment,
                             const cpu_executable_options *options, uint32_t cols, uint32_t rows)
{
    enum { OWN_RECORDS = 64, PER_INPUT = 12 };
    const size_t records =
        fragment->record_count + OWN_RECORDS + (size_t)PER_INPUT * epilogue->input_count;
    draft d = {.records = calloc(records, sizeof(hal_ir_record)),
               .constants = calloc(records + fragment->constant_count, sizeof(uint64_t))};
    hal_ir_value *values = calloc((size_t)fragment->record_count + 1, sizeof(hal_ir_value));
    cpu_executable *executable = NULL;
    hal_status status = HAL_OK;
    if (!d.records || !d.constants || !values || epilogue->piece_count == CPU_EPILOGUE_PIECES) {
        status =
            cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "gemm: no host memory for an epilogue of %u records",
                     fragment->record_count);
    } else {
        d.ir.group_size[0] = cols;
        d.ir.group_size[1] = rows;
        declare(&d, epilogue, fragment);
        write_records(&d, epilogue, fragment, values);
        status = cpu_executable_create(&d.ir, options, &executable);
    }
    if (status == HAL_OK) {
        const cpu_program *program = &executable->program;
        epilogue->pieces[epilogue->piece_count++] = (cpu_epilogue_piece){cols, rows, executable};
        if (epilogue->arena_bytes < program->arena_bytes) {
            epilogue->arena_bytes = program->arena_bytes;
        }
        if (epilogue->slot_count < program->slot_count) {
            epilogue->slot_count = program->slot_count;
        }
        epilogue->memory_count = program->memory_count;
    }
    free(d.records);
    free(d.constants);
    free(values);
    return status;
}

static void run_piece(const cpu_epilogue *epilogue, cpu_worker *worker, void *const *inputs,
                      const cpu_epilogue_tile *tile, span rows, span cols)
{
    const cpu_epilogue_piece *piece = find_piece(epilogue, cols.size, rows.size);
    const int64_t row = tile->row + rows.first, col = tile->col + cols.first;
    const place here = {.row = (uint32_t)row,
                        .col = (uint32_t)col,
                        .batch = (uint32_t)tile->batch,
                        .ld = (uint32_t)tile->ld};
    const uint32_t grid[3] = {cols.count, rows.count, 1};
    const int64_t into = rows.first * tile->ld + cols.first;
    void *memory[1 + HAL_GEMM_MAX_INPUTS] = {(char *)tile->tile +
                                             into * (int64_t)hal_type_size(epilogue->type)};
    for (uint32_t i = 0; i < epilogue->input_count; i++) {
        const hal_gemm_input *input = &epilogue->inputs[i];
        const int64_t first = row * input->row_stride + col * input->column_stride +
                              tile->batch * input->batch_stride;
        memory[1 + i] = (char *)inputs[i] + first * (int64_t)hal_type_size(input->type);
    }
    cpu_worker_begin(worker, piece->executable, memory, NULL, (const uint8_t *)&here, grid);
    cpu_worker_groups(worker, piece->executable, 0, (uint64_t)grid[0] * grid[1]);
}

static hal_type sums_type(hal_type type)
{
    return hal_type_is_integer(type) || type == HAL_TYPE_F64 ? hal_type_of_value(type)
                                                             : (hal_type)HAL_TYPE_F32;
}

/* All pieces that rows_cut makes: of whole groups of rows, and of one row. */
int cpu_epilogue_any_shapes(int64_t cols, struct cpu_gemm_shape shapes[CPU_EPILOGUE_ANY_SHAPES])
{
    int count = 0;
    for (int i = 0; i < CPU_EPILOGUE_ANY_SHAPES && (1 << i) <= cols; i++) {
        shapes[count++] = (struct cpu_gemm_shape){GROUP_ROWS + 1, 1 << i};
    }
    return count;
}

hal_status cpu_epilogue_make(cpu_epilogue *epilogue, const hal_gemm_description *description,
                             const cpu_executable_options *options,
                             const struct cpu_gemm_shape *shapes, int shape_count)
{
    memset(epilogue, 0, sizeof(*epilogue));
    epilogue->compiles = options->compiles;
    epilogue->has_any_tiles = description->type_offsets != HAL_TYPE_NONE;
    epilogue->type = sums_type(description->type_a);
    epilogue->input_count = description->input_count;
    memcpy(epilogue->inputs, description->inputs, sizeof(epilogue->inputs));
    hal_status status = epilogue_check(description, epilogue->type);
    for (int i = 0; i < shape_count; i++) {
        part parts[MAX_PARTS];
        const uint32_t count =
            tile_cut(epilogue, (uint32_t)shapes[i].rows, (uint32_t)shapes[i].cols, parts);
        for (uint32_t k = 0; k < count && status == HAL_OK; k++) {
            const uint32_t cols = parts[k].cols.size, rows = parts[k].rows.size;
            if (!find_piece(epilogue, cols, rows)) {
                status = make_piece(epilogue, description->epilogue, options, cols, rows);
            }
        }
    }
    return status;
}

void cpu_epilogue_release(cpu_epilogue *epilogue)
{
    for (uint32_t i = 0; i < epilogue->piece_count; i++) {
        cpu_executable_destroy(epilogue->pieces[i].executable);
    }
}

void cpu_epilogue_run(const cpu_epilogue *epilogue, cpu_worker *worker, void *const *inputs,
                      const cpu_epilogue_tile *tile)
{
    part parts[MAX_PARTS];
    const uint32_t count = tile_cut(epilogue, tile->rows, tile->cols, parts);
    for (uint32_t i = 0; i < count; i++) {
        run_piece(epilogue, worker, inputs, tile, parts[i].rows, parts[i].cols);
    }
}
