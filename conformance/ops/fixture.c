/* fixture.c: operands of the op library's cases. */
#include "ops/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void lay_out(operand *made, uint32_t rank, const int64_t *shape, operand_layout layout,
                    size_t *memory_count)
{
    ops_tensor *tensor = &made->tensor;
    *tensor = (ops_tensor){.type = made->type, .rank = rank};
    int64_t stride = layout == LAYOUT_STRIDED ? 2 : 1;
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t axis = layout == LAYOUT_PERMUTED ? i : rank - 1 - i;
        tensor->shape[axis] = shape[axis];
        tensor->stride[axis] = stride;
        if (layout == LAYOUT_BROADCAST && axis == 0) {
            tensor->stride[axis] = 0;
        } else {
            stride *= shape[axis] > 0 ? shape[axis] : 1;
        }
    }
    *memory_count = made->count == 0 ? 0 : (size_t)stride;
    if (layout == LAYOUT_REVERSED && rank > 0 && shape[rank - 1] > 0) {
        tensor->offset = (shape[rank - 1] - 1) * tensor->stride[rank - 1];
        tensor->stride[rank - 1] = -tensor->stride[rank - 1];
    }
    made->zone.offset = layout == LAYOUT_OFFSET ? hal_type_size(made->type) : 0; /* the lead */
}

/* The index of a logical element in its zone. */
static size_t place_of(const operand *o, size_t index)
{
    const int64_t base = (int64_t)(o->zone.offset / hal_type_size(o->type));
    int64_t place = o->tensor.offset - base;
    for (uint32_t i = o->tensor.rank; i-- > 0;) {
        const size_t length = (size_t)o->tensor.shape[i];
        place += (int64_t)(index % length) * o->tensor.stride[i];
        index /= length;
    }
    return (size_t)place;
}

static void upload_memory(case_run *run, operand *o, bool poison)
{
    const uint32_t size = hal_type_size(o->type);
    const uint64_t bytes = o->zone.bytes, lead = o->zone.offset;
    const int64_t start = o->tensor.offset;
    uint8_t *memory = case_allocate(run, bytes + 2, 1);
    /* Poison is canary in the phase of its address, as zone_create puts it. */
    canary_fill(memory, bytes + 2);
    uint8_t *data = memory + lead % 2;
    o->zone.offset = 0;
    for (size_t i = 0; i < o->count && !poison; i++) {
        memcpy(data + place_of(o, i) * size, o->elements + i * size, size);
    }
    /* Elements of a stretched axis share memory: all have the value of the last one. */
    for (size_t i = 0; i < o->count && !poison; i++) {
        memcpy(o->elements + i * size, data + place_of(o, i) * size, size);
    }
    o->zone = zone_create_at(run, lead, bytes, data);
    o->tensor.buffer = o->zone.buffer;
    o->tensor.offset = start + (int64_t)(o->zone.offset / size);
}

const char *layout_name(operand_layout layout)
{
    static const char *const names[LAYOUT_COUNT] = {"plain",   "offset",   "permuted",
                                                    "strided", "reversed", "broadcast"};
    return names[layout];
}

operand operand_create(case_run *run, hal_type type, uint32_t rank, const int64_t *shape,
                       operand_layout layout)
{
    size_t memory_count;
    operand made = {.type = type, .count = 1};
    for (uint32_t i = 0; i < rank; i++) {
        made.count *= (size_t)shape[i];
    }
    lay_out(&made, rank, shape, layout, &memory_count);
    made.zone.bytes = memory_count * hal_type_size(type);
    made.elements = case_allocate(run, made.count + 1, 8);
    return made;
}

void operand_fill(operand *filled, random_state *random, double low, double high)
{
    random_fill(random, filled->type, low, high, filled->elements, filled->count);
}

void operand_upload(case_run *run, operand *uploaded)
{
    upload_memory(run, uploaded, false);
}

void operand_poison(case_run *run, operand *poisoned)
{
    upload_memory(run, poisoned, true);
}

void operand_download(case_run *run, operand *downloaded, const char *what)
{
    const uint32_t size = hal_type_size(downloaded->type);
    const size_t memory_count = downloaded->zone.bytes / size;
    uint8_t *memory = case_allocate(run, memory_count + 1, size);
    uint8_t *used = case_allocate(run, memory_count + 1, 1);
    zone_read(run, &downloaded->zone, memory, what);
    for (size_t i = 0; i < downloaded->count; i++) {
        const size_t place = place_of(downloaded, i);
        used[place] = 1;
        memcpy(downloaded->elements + i * size, memory + place * size, size);
    }
    uint8_t untouched[8 + 2];
    canary_fill(untouched, sizeof untouched);
    for (size_t i = 0; i < memory_count; i++) {
        /* Gaps hold canary in the phase of their address. */
        const uint8_t *expected = untouched + (i * size + downloaded->zone.offset) % 2;
        case_check(run, used[i] != 0 || memcmp(memory + i * size, expected, size) == 0,
                   "%s: memory at %zu, between its elements, was written to", what, i);
    }
}

void operand_check_bits(case_run *run, const operand *o, const void *expected, bool any_nan,
                        const char *what)
{
    comparison found;
    if (!compare_bits(o->type, o->elements, expected, o->count, any_nan, &found)) {
        case_report(run, &found, what);
    }
}

void operand_check_bounds(case_run *run, const operand *o, const long double *expected,
                          const double *bounds, const char *what)
{
    comparison found;
    if (!compare_bounds(o->type, o->elements, expected, bounds, o->count, &found)) {
        case_report(run, &found, what);
    }
}

static void release_tensor(void *object)
{
    ops_tensor_release(object);
    free(object);
}

void case_own_tensor(case_run *run, ops_tensor tensor)
{
    ops_tensor *owned = malloc(sizeof *owned);
    case_check(run, owned != NULL, "the host has no memory");
    *owned = tensor;
    case_own(run, release_tensor, owned);
}

ops_tensor case_tensor(case_run *run, hal_type type, uint32_t rank, const int64_t *shape)
{
    ops_tensor made = {0};
    case_ok(run, ops_tensor_create(run->ops, type, rank, shape, &made), "ops_tensor_create");
    case_own_tensor(run, made);
    return made;
}

hal_ir_builder *expression_begin(case_run *run)
{
    hal_ir_builder *builder = NULL;
    case_ok(run, hal_ir_builder_create_fragment("expression", &builder),
            "hal_ir_builder_create_fragment");
    return builder;
}

static void release_expression(void *object)
{
    ops_expression_destroy(object);
}

ops_expression *expression_finish(case_run *run, hal_ir_builder *builder)
{
    ops_expression *made = NULL;
    case_ok(run, ops_expression_create(builder, &made), "ops_expression_create");
    case_own(run, release_expression, made);
    return made;
}

const ops_expression *expression_add_input(case_run *run)
{
    hal_ir_builder *b = expression_begin(run);
    hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    hal_ir_output(b, 0, hal_ir_add(b, x, hal_ir_input(b, 4, HAL_TYPE_F32)));
    return expression_finish(run, b);
}

bool ops_may_flush(const case_run *run, hal_type type, long double value)
{
    const long double smallest = type == HAL_TYPE_F64 ? 0x1p-1022L : 0x1p-126L;
    return hal_type_is_float(type) && (run->info->exactness & HAL_EXACT_DENORMALS) == 0 &&
           value != 0.0L && fabsl(value) < smallest;
}

hal_status read_claimed(const case_run *run, ops_array *array, uint64_t bytes, void *elements)
{
    const hal_status status = ops_array_read(array, bytes, elements);
    return !array && run->lacking ? HAL_ERROR_UNSUPPORTED : status;
}
