/* The IR builder: creation, declarations, constants and ids, and hal_ir_append, through which every
 * record is added. The operations are in ir/build_ops.c.
 *
 * Constants, scalars, ids and inputs can be used in any block: each is made once, and finish moves
 * it to the kernel's front. */
#include "internal.h"
#include "position.h"
#include "base/array.h"
#include "base/map.h"
#include "base/status.h"

#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hal_ir_builder {
    hal_ir_kernel view; /* points into the arrays below; finish copies it */
    hal_ir_record *records;
    hal_ir_place *places;       /* of each record */
    hal_ir_position position;   /* of the records that follow */
    hal_ir_position *positions; /* of each record; null: none is known */
    hal_ir_memory *memories;
    hal_ir_scalar *scalars;
    uint64_t *constants;
    char *names;
    hal_map constant_of; /* index + 1 in `constants`, by bits */
    hal_map leading_of;  /* index + 1 of each leading record, by opcode, type and aux */
    uint32_t record_capacity, place_capacity, memory_capacity, scalar_capacity;
    uint32_t constant_capacity, name_capacity, position_capacity;
    hal_ir_scope scope;
    uint32_t wrong_record;
    bool raw;
    bool finished;
    hal_status status;
    char message[HAL_MESSAGE_BYTES];
};

/* Room for one more item of an array of the builder. Errors: sticky. */
#define RESERVE(b, items, capacity, count) \
    (HAL_ARRAY_RESERVE((b)->items, (b)->capacity, (uint64_t)(count)) || builder_out_of_memory(b))

static bool builder_out_of_memory(hal_ir_builder *b)
{
    hal_ir_builder_fail(b, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    return false;
}

/* Maps hold indices as pointers; null means none. */
static bool index_add(hal_ir_builder *b, hal_map *map, uint64_t key, uint32_t index)
{
    return hal_map_add(map, key, (void *)((uintptr_t)index + 1)) || builder_out_of_memory(b);
}

static uint32_t index_find(const hal_map *map, uint64_t key)
{
    const uintptr_t found = (uintptr_t)hal_map_get(map, key);
    return found ? (uint32_t)(found - 1) : HAL_IR_NONE;
}

static bool add_name(hal_ir_builder *b, const char *name, uint32_t *offset)
{
    const uint32_t bytes = (uint32_t)strlen(name) + 1;
    if (!RESERVE(b, names, name_capacity, b->view.name_bytes + bytes)) {
        return false;
    }
    b->view.names = b->names;
    *offset = b->view.name_bytes;
    memcpy(b->names + *offset, name, bytes);
    b->view.name_bytes += bytes;
    return true;
}

/* Moves the leading records to the front and renumbers operands. */
static bool order_records(hal_ir_builder *b)
{
    const uint32_t count = b->view.record_count;
    hal_ir_record *ordered = malloc((count + 1) * sizeof *ordered);
    hal_ir_position *positions = calloc(count + 1, sizeof *positions);
    uint32_t *renamed = malloc((count + 1) * sizeof *renamed);
    if (!ordered || !positions || !renamed) {
        free(ordered);
        free(positions);
        free(renamed);
        return false;
    }
    uint32_t next = 0;
    for (int front = 1; front >= 0; front--) {
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t traits = hal_ir_info_of(b->records[i].opcode)->traits;
            if (((traits & HAL_IR_TRAIT_LEADING) != 0) != front) {
                continue;
            }
            ordered[next] = b->records[i];
            positions[next] = b->positions ? b->positions[i] : positions[next];
            hal_ir_record_rename(&ordered[next], renamed);
            renamed[i] = next++;
        }
    }
    free(renamed);
    free(b->records);
    if (b->positions) {
        free(b->positions);
        b->positions = positions;
    } else {
        free(positions);
    }
    b->records = ordered;
    b->record_capacity = count;
    b->view.records = ordered;
    return true;
}

/* Adds the name of a memory or scalar. Errors: another one has it. */
static bool declare_name(hal_ir_builder *b, const char *what, const char *name, uint32_t *offset)
{
    if (!name || !hal_ir_is_name(name)) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "%s: name: expected a letter or _, then letters, digits and _, got "
                            "\"%.*s\"",
                            what, (int)HAL_IR_MAX_NAME, !name ? "(null)" : name);
        return false;
    }
    const hal_ir_kernel *view = &b->view;
    bool taken = false;
    for (uint32_t i = 0; i < view->memory_count; i++) {
        taken |= strcmp(b->names + b->memories[i].name, name) == 0;
    }
    for (uint32_t i = 0; i < view->scalar_count; i++) {
        taken |= strcmp(b->names + b->scalars[i].name, name) == 0;
    }
    if (taken) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "%s: name: expected one that no binding, shared array or scalar has, "
                            "got %s",
                            what, name);
        return false;
    }
    return add_name(b, name, offset);
}

static hal_ir_memory_id add_memory(hal_ir_builder *b, const char *what, const char *name,
                                   hal_ir_memory memory)
{
    if (b->view.flags & HAL_IR_FRAGMENT) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "%s: expected a kernel, got a fragment, which has no memory", what);
        return HAL_IR_NONE;
    }
    if (!declare_name(b, what, name, &memory.name)) {
        return HAL_IR_NONE;
    }
    if (memory.type == HAL_TYPE_NONE || memory.type >= HAL_TYPE_COUNT) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "%s %s: type: expected one of HAL_TYPE_*, got %u", what, name,
                            memory.type);
        return HAL_IR_NONE;
    }
    if (!RESERVE(b, memories, memory_capacity, b->view.memory_count + 1)) {
        return HAL_IR_NONE;
    }
    b->view.memories = b->memories;
    b->memories[b->view.memory_count] = memory;
    return b->view.memory_count++;
}

/* A leading record: constant, scalar, id or input. Made once. */
static hal_ir_value append_leading(hal_ir_builder *b, const hal_ir_record *record)
{
    if (!hal_ir_builder_is_usable(b)) {
        return HAL_IR_NONE;
    }
    const uint64_t key =
        (uint64_t)record->opcode << 40 | (uint64_t)record->type << 32 | record->aux;
    const hal_ir_value made = index_find(&b->leading_of, key);
    if (made != HAL_IR_NONE) {
        return made;
    }
    const hal_ir_value value = hal_ir_append(b, *record);
    if (value == HAL_IR_NONE || !index_add(b, &b->leading_of, key, value)) {
        return HAL_IR_NONE;
    }
    b->places[value] = (hal_ir_place){0, 0};
    return value;
}

/* Appends a checked record and moves the scope past it. */
static hal_ir_value add_record(hal_ir_builder *b, const hal_ir_record *record)
{
    const uint32_t index = b->view.record_count;
    if (index >= HAL_IR_MAX_RECORDS) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_IR, "expected at most %u records",
                            HAL_IR_MAX_RECORDS);
        return HAL_IR_NONE;
    }
    if (!RESERVE(b, records, record_capacity, index + 1) ||
        !RESERVE(b, places, place_capacity, index + 1)) {
        return HAL_IR_NONE;
    }
    b->view.records = b->records;
    b->records[index] = *record;
    if (b->positions) {
        if (!RESERVE(b, positions, position_capacity, index + 1)) {
            return HAL_IR_NONE;
        }
        b->positions[index] = b->position;
    }
    hal_ir_problem problem;
    if (!hal_ir_scope_pass(&b->scope, b->records, index, &b->places[index], &problem)) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_IR, "%s: %s", hal_ir_opcode_name(record->opcode),
                            problem.text);
        return HAL_IR_NONE;
    }
    b->view.record_count++;
    return index;
}

hal_status hal_ir_builder_create_raw(const char *name, uint32_t flags, hal_ir_builder **builder)
{
    if (!builder) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_builder_create: builder: expected a valid pointer, got "
                        "null");
    }
    *builder = NULL;
    if (!name || !hal_ir_is_name(name)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_builder_create: name: expected a letter or _, then letters, digits "
                        "and _, got \"%.*s\"",
                        (int)HAL_IR_MAX_NAME, !name ? "(null)" : name);
    }
    hal_ir_builder *b = calloc(1, sizeof *b);
    if (!b) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_builder_create: %s: no host memory", name);
    }
    b->raw = true;
    b->wrong_record = HAL_IR_NONE;
    b->view = (hal_ir_kernel){
        .size = sizeof b->view, .version = HAL_IR_VERSION, .flags = flags, .group_size = {1, 1, 1}};
    if (!add_name(b, name, &b->view.name)) {
        hal_ir_builder_destroy(b);
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    *builder = b;
    return HAL_OK;
}

static hal_status builder_create(const char *name, uint32_t flags, hal_ir_builder **builder)
{
    const hal_status status = hal_ir_builder_create_raw(name, flags, builder);
    if (status == HAL_OK) {
        (*builder)->raw = 0;
    }
    return status;
}

hal_status hal_ir_builder_create(const char *name, hal_ir_builder **builder)
{
    return builder_create(name, 0, builder);
}

hal_status hal_ir_builder_create_fragment(const char *name, hal_ir_builder **builder)
{
    return builder_create(name, HAL_IR_FRAGMENT, builder);
}

void hal_ir_builder_destroy(hal_ir_builder *builder)
{
    if (!builder) {
        return;
    }
    free(builder->records);
    free(builder->places);
    free(builder->positions);
    free(builder->memories);
    free(builder->scalars);
    free(builder->constants);
    free(builder->names);
    hal_map_free(&builder->constant_of);
    hal_map_free(&builder->leading_of);
    free(builder);
}

/* Brings the records into their order. Errors: the first one of earlier calls, INVALID_STATE. */
static hal_status builder_close(hal_ir_builder *builder, const char *function)
{
    if (builder->status != HAL_OK) {
        return hal_fail(builder->status, "%s", builder->message);
    }
    if (builder->finished) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "%s: builder: expected one that was not finished, got that of kernel %s",
                        function, builder->names + builder->view.name);
    }
    builder->finished = true;
    if (builder->scope.depth > 0) {
        const uint32_t opener = builder->scope.opener[builder->scope.depth];
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "%s: expected an end",
                            hal_ir_opcode_name(builder->records[opener].opcode));
        return builder->status;
    }
    if (!builder->raw && !order_records(builder)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory",
                        builder->names + builder->view.name);
    }
    if (builder->positions) {
        hal_ir_positions_keep(&builder->view, builder->positions);
    }
    return HAL_OK;
}

hal_status hal_ir_builder_end(hal_ir_builder *builder, const char *function)
{
    const hal_status status = builder_close(builder, function);
    return status == HAL_OK ? hal_ir_verify_appended(&builder->view, &builder->wrong_record)
                            : status;
}

hal_status hal_ir_builder_finish(hal_ir_builder *builder, hal_ir_kernel **kernel)
{
    if (kernel) {
        *kernel = NULL;
    }
    if (!kernel || !builder) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_builder_finish: %s: expected a valid pointer, got null",
                        !kernel ? "kernel" : "builder");
    }
    const hal_status status = hal_ir_builder_end(builder, "hal_ir_builder_finish");
    return status == HAL_OK ? hal_ir_kernel_copy(&builder->view, kernel) : status;
}

hal_status hal_ir_builder_finish_unverified(hal_ir_builder *builder, hal_ir_kernel **kernel)
{
    const hal_status status = builder_close(builder, "hal_ir_builder_finish");
    return status == HAL_OK ? hal_ir_kernel_copy(&builder->view, kernel) : status;
}

bool hal_ir_builder_is_usable(hal_ir_builder *builder)
{
    if (!builder) {
        hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_ir: builder: expected a valid pointer, got null");
        return false;
    }
    if (builder->finished && builder->status == HAL_OK) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_STATE,
                            "builder: expected one that was not finished");
    }
    return builder->status == HAL_OK;
}

hal_status hal_ir_builder_get_status(const hal_ir_builder *builder)
{
    return !builder ? HAL_ERROR_INVALID_ARGUMENT : builder->status;
}

void hal_ir_builder_fail(hal_ir_builder *builder, hal_status status, const char *format, ...)
{
    char text[HAL_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const bool fragment = (builder->view.flags & HAL_IR_FRAGMENT) != 0;
    hal_fail(status, "%s %s, record %u: %s", fragment ? "fragment" : "kernel",
             builder->names + builder->view.name, builder->view.record_count, text);
    if (builder->status == HAL_OK) {
        builder->status = status;
        memcpy(builder->message, hal_status_message(), strlen(hal_status_message()) + 1);
    }
}

uint32_t hal_ir_builder_wrong_record(const hal_ir_builder *builder)
{
    return builder->wrong_record;
}

void hal_ir_set_position(hal_ir_builder *builder, const char *file, uint32_t line)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return;
    }
    const uint32_t count = builder->view.record_count;
    if (!builder->positions) {
        if (!RESERVE(builder, positions, position_capacity, count + 1)) {
            return;
        }
        memset(builder->positions, 0, (count + 1) * sizeof *builder->positions);
    }
    builder->position = (hal_ir_position){file, line};
}

const hal_ir_kernel *hal_ir_builder_view(const hal_ir_builder *builder)
{
    return &builder->view;
}

void hal_ir_group_size(hal_ir_builder *builder, uint32_t x, uint32_t y, uint32_t z)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return;
    }
    if (x == 0 || y == 0 || z == 0) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "group size: expected 1 or more, got %u x %u x %u", x, y, z);
        return;
    }
    builder->view.group_size[0] = x;
    builder->view.group_size[1] = y;
    builder->view.group_size[2] = z;
}

void hal_ir_groups_per_unit(hal_ir_builder *builder, uint32_t groups)
{
    if (hal_ir_builder_is_usable(builder)) {
        builder->view.groups_per_unit = groups;
    }
}

hal_ir_memory_id hal_ir_binding(hal_ir_builder *builder, const char *name, hal_type type,
                                uint32_t access)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    if (access < HAL_ACCESS_READ || access > HAL_ACCESS_READ_WRITE) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "binding %s: access: expected one of HAL_ACCESS_*, got %u",
                            !name ? "(null)" : name, access);
        return HAL_IR_NONE;
    }
    const hal_ir_kernel *view = &builder->view;
    if (view->memory_count > view->binding_count || view->binding_count == HAL_IR_MAX_BINDINGS) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "binding %s: expected at most %u bindings, declared before shared "
                            "arrays",
                            !name ? "(null)" : name, HAL_IR_MAX_BINDINGS);
        return HAL_IR_NONE;
    }
    const hal_ir_memory_id id = add_memory(
        builder, "binding", name, (hal_ir_memory){.type = type, .access = (uint8_t)access});
    builder->view.binding_count += id != HAL_IR_NONE;
    return id;
}

hal_ir_memory_id hal_ir_shared(hal_ir_builder *builder, const char *name, hal_type type,
                               uint32_t count)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    const uint32_t arrays = builder->view.memory_count - builder->view.binding_count;
    if (count == 0 || arrays == HAL_IR_MAX_SHARED) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "shared array %s: expected 1 or more elements and at most %u arrays, "
                            "got %u elements after %u arrays",
                            !name ? "(null)" : name, HAL_IR_MAX_SHARED, count, arrays);
        return HAL_IR_NONE;
    }
    return add_memory(
        builder, "shared array", name,
        (hal_ir_memory){.type = type, .access = HAL_ACCESS_READ_WRITE, .count = count});
}

hal_ir_value hal_ir_scalar_value(hal_ir_builder *builder, const char *name, hal_type type)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    const hal_ir_kernel *view = &builder->view;
    uint32_t end = 0;
    if (view->scalar_count > 0) {
        const hal_ir_scalar *last = &builder->scalars[view->scalar_count - 1];
        end = last->offset + hal_type_size(last->type);
    }
    const uint32_t bytes = hal_type_size(type);
    const uint32_t offset = bytes == 0 ? 0 : (end + bytes - 1) / bytes * bytes;
    const uint32_t number = hal_ir_declare_scalar(builder, name, type, offset);
    if (number == HAL_IR_NONE) {
        return HAL_IR_NONE;
    }
    hal_ir_set_scalar_bytes(builder, hal_ir_scalar_block(builder->scalars, view->scalar_count));
    hal_ir_record record = hal_ir_record_blank(HAL_IR_SCALAR);
    record.type = type;
    record.aux = number;
    return append_leading(builder, &record);
}

uint32_t hal_ir_declare_scalar(hal_ir_builder *builder, const char *name, hal_type type,
                               uint32_t offset)
{
    hal_ir_kernel *view = &builder->view;
    uint32_t name_offset = 0;
    if (builder->status != HAL_OK || !declare_name(builder, "scalar", name, &name_offset)) {
        return HAL_IR_NONE;
    }
    const uint32_t bytes = hal_type_size(type);
    if (type < HAL_TYPE_I32 || hal_type_of_value(type) != type) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "scalar %s: type: expected i32, u32, i64, u64, f32 or f64, got %s",
                            name, type < HAL_TYPE_COUNT ? hal_type_name(type) : "?");
        return HAL_IR_NONE;
    }
    if (offset > HAL_IR_MAX_SCALAR_BYTES - bytes) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "scalar %s: expected at most %u bytes of scalars", name,
                            HAL_IR_MAX_SCALAR_BYTES);
        return HAL_IR_NONE;
    }
    if (!RESERVE(builder, scalars, scalar_capacity, view->scalar_count + 1)) {
        return HAL_IR_NONE;
    }
    view->scalars = builder->scalars;
    builder->scalars[view->scalar_count] =
        (hal_ir_scalar){.name = name_offset, .offset = (uint16_t)offset, .type = type};
    return view->scalar_count++;
}

void hal_ir_set_scalar_bytes(hal_ir_builder *builder, uint32_t bytes)
{
    builder->view.scalar_bytes = bytes;
}

uint32_t hal_ir_scalar_block(const hal_ir_scalar *scalars, uint32_t count)
{
    uint32_t end = 0;
    uint32_t largest = 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = hal_type_size(scalars[i].type);
        end = scalars[i].offset + bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return (end + largest - 1) / largest * largest;
}

uint32_t hal_ir_pool(hal_ir_builder *builder, uint64_t bits)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    hal_ir_kernel *view = &builder->view;
    const uint32_t made = index_find(&builder->constant_of, bits), next = view->constant_count;
    if (made != HAL_IR_NONE) {
        return made;
    }
    if (!RESERVE(builder, constants, constant_capacity, next + 1) ||
        !index_add(builder, &builder->constant_of, bits, next)) {
        return HAL_IR_NONE;
    }
    view->constants = builder->constants;
    builder->constants[view->constant_count++] = bits;
    return next;
}

hal_ir_value hal_ir_constant_of(hal_ir_builder *builder, hal_type type, uint64_t bits)
{
    hal_ir_record record = hal_ir_record_blank(HAL_IR_CONSTANT);
    record.type = type;
    record.aux = hal_ir_pool(builder, bits);
    return record.aux == HAL_IR_NONE ? HAL_IR_NONE : append_leading(builder, &record);
}

hal_ir_value hal_ir_f32(hal_ir_builder *builder, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hal_ir_constant_of(builder, HAL_TYPE_F32, bits);
}

hal_ir_value hal_ir_f64(hal_ir_builder *builder, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hal_ir_constant_of(builder, HAL_TYPE_F64, bits);
}

hal_ir_value hal_ir_i32(hal_ir_builder *builder, int32_t value)
{
    return hal_ir_constant_of(builder, HAL_TYPE_I32, (uint32_t)value);
}

hal_ir_value hal_ir_u32(hal_ir_builder *builder, uint32_t value)
{
    return hal_ir_constant_of(builder, HAL_TYPE_U32, value);
}

hal_ir_value hal_ir_i64(hal_ir_builder *builder, int64_t value)
{
    return hal_ir_constant_of(builder, HAL_TYPE_I64, (uint64_t)value);
}

hal_ir_value hal_ir_u64(hal_ir_builder *builder, uint64_t value)
{
    return hal_ir_constant_of(builder, HAL_TYPE_U64, value);
}

hal_ir_value hal_ir_bool(hal_ir_builder *builder, int value)
{
    return hal_ir_constant_of(builder, HAL_TYPE_BOOL, value != 0);
}

/* Not inlined: the compiler may move conversions across fesetenv. */
static __attribute__((noinline)) hal_ir_value number_round(hal_ir_builder *builder, hal_type type,
                                                           double value)
{
    const double whole = rint(value);
    switch (type) {
    case HAL_TYPE_F32:
        return hal_ir_f32(builder, (float)value);
    case HAL_TYPE_F64:
        return hal_ir_f64(builder, value);
    case HAL_TYPE_BOOL:
        return hal_ir_bool(builder, value != 0);
    case HAL_TYPE_I32:
        return hal_ir_i32(builder, !(whole > -0x1p31) ? (whole != whole ? 0 : INT32_MIN)
                                   : whole >= 0x1p31  ? INT32_MAX
                                                      : (int32_t)whole);
    case HAL_TYPE_U32:
        return hal_ir_u32(builder, !(whole > 0)      ? 0
                                   : whole >= 0x1p32 ? UINT32_MAX
                                                     : (uint32_t)whole);
    case HAL_TYPE_I64:
        return hal_ir_i64(builder, !(whole > -0x1p63) ? (whole != whole ? 0 : INT64_MIN)
                                   : whole >= 0x1p63  ? INT64_MAX
                                                      : (int64_t)whole);
    case HAL_TYPE_U64:
        return hal_ir_u64(builder, !(whole > 0)      ? 0
                                   : whole >= 0x1p64 ? UINT64_MAX
                                                     : (uint64_t)whole);
    default:
        if (hal_ir_builder_is_usable(builder)) {
            hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                                "number: type: expected bool, i32, u32, i64, u64, f32 or f64, got "
                                "%s",
                                type < HAL_TYPE_COUNT ? hal_type_name(type) : "?");
        }
        return HAL_IR_NONE;
    }
}

hal_ir_value hal_ir_number(hal_ir_builder *builder, hal_type type, double value)
{
    fenv_t environment;
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    const hal_ir_value made = number_round(builder, type, value);
    fesetenv(&environment);
    return made;
}

hal_ir_value hal_ir_id(hal_ir_builder *builder, uint32_t opcode, uint32_t dimension)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    if (opcode < HAL_IR_LOCAL_ID || opcode > HAL_IR_LANE_ID) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT, "opcode: expected an id, got %u",
                            opcode);
        return HAL_IR_NONE;
    }
    hal_ir_record record = hal_ir_record_blank(opcode);
    record.aux = opcode == HAL_IR_LANE_ID ? 0 : dimension;
    return append_leading(builder, &record);
}

hal_ir_value hal_ir_input(hal_ir_builder *builder, uint32_t number, hal_type type)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    if (!(builder->view.flags & HAL_IR_FRAGMENT) || number >= HAL_IR_MAX_FRAGMENT_VALUES) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "input: expected a fragment and a number below %u, got number %u",
                            HAL_IR_MAX_FRAGMENT_VALUES, number);
        return HAL_IR_NONE;
    }
    hal_ir_count_fragment(builder, HAL_IR_INPUT, number);
    hal_ir_record record = hal_ir_record_blank(HAL_IR_INPUT);
    record.type = type;
    record.aux = number;
    return append_leading(builder, &record);
}

void hal_ir_output(hal_ir_builder *builder, uint32_t number, hal_ir_value value)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return;
    }
    if (!(builder->view.flags & HAL_IR_FRAGMENT) || number >= HAL_IR_MAX_FRAGMENT_VALUES) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "output: expected a fragment and a number below %u, got number %u",
                            HAL_IR_MAX_FRAGMENT_VALUES, number);
        return;
    }
    hal_ir_count_fragment(builder, HAL_IR_OUTPUT, number);
    hal_ir_record record = hal_ir_record_blank(HAL_IR_OUTPUT);
    record.aux = number;
    record.a = value;
    hal_ir_append(builder, record);
}

void hal_ir_count_fragment(hal_ir_builder *builder, uint32_t opcode, uint32_t number)
{
    uint32_t *count =
        opcode == HAL_IR_INPUT ? &builder->view.input_count : &builder->view.output_count;
    *count = number >= *count ? number + 1 : *count;
}

hal_type hal_ir_type_of(const hal_ir_builder *builder, hal_ir_value value)
{
    if (!builder || value >= builder->view.record_count) {
        return HAL_TYPE_NONE;
    }
    return builder->records[value].type;
}

hal_ir_value hal_ir_append(hal_ir_builder *builder, hal_ir_record record)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    const hal_ir_kernel *view = &builder->view;
    hal_ir_problem problem;
    hal_type type;
    uint32_t width;
    if (!hal_ir_scope_check(&builder->scope, builder->records, builder->places, view->record_count,
                            &record, &problem) ||
        !hal_ir_check_record(view, view->record_count, &record, &type, &width, &problem)) {
        const char *name = hal_ir_opcode_name(record.opcode);
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "%s: %s", !name ? "?" : name,
                            problem.text);
        return HAL_IR_NONE;
    }
    if ((record.type != HAL_TYPE_NONE && record.type != type) ||
        (record.width != 0 && record.width != width)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                            "%s: result: expected %s of width %u, got %s of width %u",
                            hal_ir_opcode_name(record.opcode), hal_type_name(type), width,
                            record.type < HAL_TYPE_COUNT ? hal_type_name(record.type) : "?",
                            record.width);
        return HAL_IR_NONE;
    }
    record.type = type;
    record.width = (uint8_t)width;
    return add_record(builder, &record);
}

hal_ir_value hal_ir_append_copy(hal_ir_builder *builder, const hal_ir_record *record)
{
    return hal_ir_builder_is_usable(builder) ? add_record(builder, record) : HAL_IR_NONE;
}
