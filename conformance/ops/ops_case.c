/* ops_case.c: operands of the op library's cases; ops_case.h says who calls it. */
#include "ops/ops_case.h"

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

/* The element of the zone in which a logical element lies. */
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

static bool upload_memory(case_run *run, operand *o, bool poison)
{
    const uint32_t size = hal_type_size(o->type);
    const uint64_t bytes = o->zone.bytes, lead = o->zone.offset;
    const int64_t start = o->tensor.offset;
    uint8_t *memory = malloc(bytes + 2);
    if (memory == NULL) {
        return case_fail(run, "the host has no memory");
    }
    /* Poison is canary in the phase of its address, as zone_create puts it. */
    canary_fill(memory, bytes + 2);
    const uint8_t *data = memory + lead % 2;
    red_zone zone;
    o->zone.offset = 0;
    o->tensor.offset = start;
    for (size_t i = 0; i < o->count && !poison; i++) {
        memcpy(memory + lead % 2 + place_of(o, i) * size, o->elements + i * size, size);
    }
    /* Where an axis is stretched, several elements lie in one place: all have its value. */
    for (size_t i = 0; i < o->count && !poison; i++) {
        memcpy(o->elements + i * size, memory + lead % 2 + place_of(o, i) * size, size);
    }
    const bool well = zone_create_at(run, &zone, lead, bytes, data);
    free(memory);
    o->zone = zone;
    o->tensor.buffer = zone.buffer;
    o->tensor.offset = start + (int64_t)(zone.offset / size);
    return well;
}

const char *layout_name(operand_layout layout)
{
    static const char *const names[LAYOUT_COUNT] = {"plain",   "offset",   "permuted",
                                                    "strided", "reversed", "broadcast"};
    return names[layout];
}

bool operand_create(case_run *run, operand *made, hal_type type, uint32_t rank,
                    const int64_t *shape, operand_layout layout)
{
    size_t memory_count;
    *made = (operand){.type = type, .count = 1};
    for (uint32_t i = 0; i < rank; i++) {
        made->count *= (size_t)shape[i];
    }
    lay_out(made, rank, shape, layout, &memory_count);
    made->zone.bytes = memory_count * hal_type_size(type);
    made->elements = calloc(made->count + 1, 8);
    return made->elements != NULL || case_fail(run, "the host has no memory");
}

void operand_fill(operand *filled, random_state *random, double low, double high)
{
    random_fill(random, filled->type, low, high, filled->elements, filled->count);
}

bool operand_upload(case_run *run, operand *uploaded)
{
    return upload_memory(run, uploaded, false);
}

bool operand_poison(case_run *run, operand *poisoned)
{
    return upload_memory(run, poisoned, true);
}

bool operand_download(case_run *run, operand *downloaded, const char *what)
{
    const uint32_t size = hal_type_size(downloaded->type);
    const size_t memory_count = downloaded->zone.bytes / size;
    uint8_t *memory = calloc(memory_count + 1, size), *used = calloc(memory_count + 1, 1);
    bool well = memory != NULL && used != NULL ? zone_read(run, &downloaded->zone, memory, what)
                                               : case_fail(run, "the host has no memory");
    for (size_t i = 0; well && i < downloaded->count; i++) {
        const size_t place = place_of(downloaded, i);
        used[place] = 1;
        memcpy(downloaded->elements + i * size, memory + place * size, size);
    }
    uint8_t untouched[8 + 2];
    for (size_t i = 0; well && i < memory_count; i++) {
        /* Gaps hold canary in the phase of their address. */
        canary_fill(untouched, sizeof untouched);
        const uint8_t *expected = untouched + (i * size + downloaded->zone.offset) % 2;
        if (used[i] == 0 && memcmp(memory + i * size, expected, size) != 0) {
            well = case_fail(
                run, "%s: element %zu, which lies between its elements, was written to", what, i);
        }
    }
    free(memory);
    free(used);
    return well;
}

void operand_release(operand *released)
{
    zone_release(&released->zone);
    free(released->elements);
    released->elements = NULL;
}

bool ops_may_flush(const case_run *run, hal_type type, long double value)
{
    const long double smallest = type == HAL_TYPE_F64 ? 0x1p-1022L : 0x1p-126L;
    return hal_type_is_float(type) && (run->info->exactness & HAL_EXACT_DENORMALS) == 0 &&
           value != 0.0L && fabsl(value) < smallest;
}

bool ops_report(case_run *run, const comparison *found, const char *what)
{
    char text[512];
    comparison_text(found, text, sizeof text);
    return case_fail(run, "%s: %s", what, text);
}
