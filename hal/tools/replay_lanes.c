/* Rewrites subgroup operations through shared memory, for devices whose subgroups have another
 * number of lanes. */
#include "replay_kernel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The new kernel, with arrays for the largest possible result. */
typedef struct rewrite {
    const hal_ir_kernel *from;
    uint32_t lanes, items;
    hal_ir_record *records;
    uint32_t count;
    hal_ir_value *values; /* of the old records */
    hal_ir_memory *memories;
    uint32_t memory_count;
    uint64_t *constants;
    uint32_t constant_count;
    char *names;
    uint32_t name_bytes;
    hal_ir_value item, lane, base;     /* u32 */
    uint32_t exchange[HAL_TYPE_COUNT]; /* shared array of a type + 1; 0: none yet */
} rewrite;

enum { MAX_LANES = 128, MAX_RECORDS = 128, MAX_CONSTANTS = 32 }; /* per replaced record */

static const hal_ir_value NONE = HAL_IR_NONE;

static bool is_lane_operation(uint32_t opcode)
{
    return opcode == HAL_IR_LANE_ID || opcode == HAL_IR_SHUFFLE || opcode == HAL_IR_SHUFFLE_XOR ||
           opcode == HAL_IR_SUBGROUP_REDUCE;
}

/* Allocates the arrays and copies the declarations. */
static bool rewrite_begin(rewrite *r)
{
    enum { NAME_ROOM = HAL_TYPE_COUNT * 24 };
    const hal_ir_kernel *from = r->from;
    uint64_t replaced = 1;
    for (uint32_t i = 0; i < from->record_count; i++) {
        replaced += is_lane_operation(from->records[i].opcode);
    }
    r->records = malloc((from->record_count + replaced * MAX_RECORDS) * sizeof *r->records);
    r->values = malloc((from->record_count + 1) * sizeof *r->values);
    r->memories = malloc((from->memory_count + HAL_TYPE_COUNT) * sizeof *r->memories);
    r->constants = malloc((from->constant_count + replaced * MAX_CONSTANTS) * sizeof *r->constants);
    r->names = malloc(from->name_bytes + NAME_ROOM);
    if (!r->records || !r->values || !r->memories || !r->constants || !r->names) {
        return false;
    }
    if (from->memory_count > 0) {
        memcpy(r->memories, from->memories, from->memory_count * sizeof *r->memories);
    }
    if (from->constant_count > 0) {
        memcpy(r->constants, from->constants, from->constant_count * sizeof *r->constants);
    }
    memcpy(r->names, from->names, from->name_bytes);
    r->memory_count = from->memory_count;
    r->constant_count = from->constant_count;
    r->name_bytes = from->name_bytes;
    return true;
}

static hal_ir_value emit(rewrite *r, hal_ir_record record)
{
    r->records[r->count] = record;
    return r->count++;
}

/* A record without a fourth operand, of width 1. */
static hal_ir_value emit_scalar(rewrite *r, uint16_t opcode, hal_type type, hal_ir_value a,
                                hal_ir_value b, hal_ir_value c, uint32_t aux)
{
    return emit(r, (hal_ir_record){.opcode = opcode,
                                   .type = type,
                                   .width = 1,
                                   .a = a,
                                   .b = b,
                                   .c = c,
                                   .d = NONE,
                                   .aux = aux});
}

static hal_ir_value emit_constant(rewrite *r, uint32_t number)
{
    r->constants[r->constant_count] = number;
    return emit_scalar(r, HAL_IR_CONSTANT, HAL_TYPE_U32, NONE, NONE, NONE, r->constant_count++);
}

static hal_ir_value emit_binary(rewrite *r, uint16_t opcode, hal_type type, hal_ir_value a,
                                hal_ir_value b)
{
    return emit_scalar(r, opcode, type, a, b, NONE, 0);
}

/* The work-item's index in its group, its lane, and the index of its subgroup's first work-item. */
static void emit_indices(rewrite *r)
{
    uint32_t stride = 1;
    r->item = emit_constant(r, 0);
    for (uint32_t i = 0; i < 3; i++) {
        const hal_ir_value id = emit_scalar(r, HAL_IR_LOCAL_ID, HAL_TYPE_U32, NONE, NONE, NONE, i);
        const hal_ir_value part =
            emit_binary(r, HAL_IR_MUL, HAL_TYPE_U32, id, emit_constant(r, stride));
        r->item = emit_binary(r, HAL_IR_ADD, HAL_TYPE_U32, r->item, part);
        stride *= r->from->group_size[i];
    }
    r->lane = emit_binary(r, HAL_IR_AND, HAL_TYPE_U32, r->item, emit_constant(r, r->lanes - 1));
    r->base = emit_binary(r, HAL_IR_SUB, HAL_TYPE_U32, r->item, r->lane);
}

/* The shared array for values of a type. The verifier rejects its name if the kernel has it
 * already. */
static uint32_t exchange_memory(rewrite *r, hal_type type)
{
    if (!r->exchange[type]) {
        const int length = snprintf(r->names + r->name_bytes, 24, "replay_lanes_%u", type);
        r->memories[r->memory_count] = (hal_ir_memory){.name = r->name_bytes,
                                                       .count = r->items,
                                                       .type = type,
                                                       .access = HAL_ACCESS_READ_WRITE};
        r->name_bytes += (uint32_t)length + 1;
        r->exchange[type] = ++r->memory_count;
    }
    return r->exchange[type] - 1;
}

/* Selects by whether the group has a work-item. */
static hal_ir_value emit_if_exists(rewrite *r, hal_type type, hal_ir_value item, hal_ir_value yes,
                                   hal_ir_value no)
{
    const hal_ir_value there =
        emit_binary(r, HAL_IR_LT, HAL_TYPE_BOOL, item, emit_constant(r, r->items));
    return emit_scalar(r, HAL_IR_SELECT, type, there, yes, no, 0);
}

/* The value x of work-item `source` of the group; the own value if it does not exist. */
static hal_ir_value emit_exchange(rewrite *r, hal_type type, hal_ir_value x, hal_ir_value source)
{
    const hal_ir_record barrier = {
        .opcode = HAL_IR_BARRIER, .a = NONE, .b = NONE, .c = NONE, .d = NONE};
    const uint32_t memory = exchange_memory(r, type);
    if (r->items % r->lanes != 0) {
        source = emit_if_exists(r, HAL_TYPE_U32, source, source, r->item);
    }
    emit_scalar(r, HAL_IR_STORE, HAL_TYPE_NONE, r->item, NONE, x, memory);
    emit(r, barrier);
    const hal_ir_value loaded = emit_scalar(r, HAL_IR_LOAD, type, source, NONE, NONE, memory);
    emit(r, barrier); /* the next exchange writes where this one reads */
    return loaded;
}

static hal_ir_value emit_lane_xor(rewrite *r, uint32_t mask)
{
    const hal_ir_value other =
        emit_binary(r, HAL_IR_XOR, HAL_TYPE_U32, r->lane, emit_constant(r, mask & (r->lanes - 1)));
    return emit_binary(r, HAL_IR_ADD, HAL_TYPE_U32, r->base, other);
}

/* A butterfly without lanes that a short subgroup lacks. */
static hal_ir_value emit_reduction(rewrite *r, const hal_ir_record *record, hal_ir_value x)
{
    static const uint16_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    for (uint32_t mask = 1; mask < r->lanes; mask *= 2) {
        const hal_ir_value source = emit_lane_xor(r, mask);
        const hal_ir_value other = emit_exchange(r, record->type, x, source);
        const hal_ir_value both = emit_binary(r, opcodes[record->aux], record->type, x, other);
        if (r->items % r->lanes == 0) {
            x = both;
            continue;
        }
        x = emit_if_exists(r, record->type, source, both, x);
    }
    return x;
}

static hal_ir_value emit_lane_operation(rewrite *r, const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_LANE_ID:
        return r->lane;
    case HAL_IR_SHUFFLE: {
        const hal_ir_value lane =
            emit_binary(r, HAL_IR_AND, HAL_TYPE_U32, record->b, emit_constant(r, r->lanes - 1));
        return emit_exchange(r, record->type, record->a,
                             emit_binary(r, HAL_IR_ADD, HAL_TYPE_U32, r->base, lane));
    }
    case HAL_IR_SHUFFLE_XOR:
        return emit_exchange(r, record->type, record->a, emit_lane_xor(r, (uint32_t)record->imm));
    default:
        return emit_reduction(r, record, record->a);
    }
}

bool replay_lanes_fit(const hal_ir_kernel *ir, uint32_t from, uint32_t to)
{
    const uint32_t least = from < to ? from : to;
    for (uint32_t i = 0; from != to && i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if (is_lane_operation(record->opcode) &&
            (record->opcode != HAL_IR_SHUFFLE_XOR || (uint32_t)record->imm >= least)) {
            return false;
        }
    }
    return true;
}

hal_status replay_fix_lanes(const hal_ir_kernel *ir, uint32_t lanes, hal_ir_kernel **fixed)
{
    rewrite r = {.from = ir, .lanes = lanes, .items = hal_ir_group_items(ir)};
    hal_status status = HAL_OK;
    *fixed = NULL;
    if (lanes == 0 || lanes > MAX_LANES || (lanes & (lanes - 1)) != 0) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "lanes: expected a power of two up to %d, got %u", MAX_LANES, lanes);
    }
    if (rewrite_begin(&r)) {
        emit_indices(&r);
        for (uint32_t i = 0; i < ir->record_count; i++) {
            hal_ir_record record = ir->records[i];
            hal_ir_value *operands[4] = {&record.a, &record.b, &record.c, &record.d};
            for (uint32_t k = 0; k < 4; k++) {
                *operands[k] = *operands[k] == NONE ? NONE : r.values[*operands[k]];
            }
            r.values[i] = is_lane_operation(record.opcode) ? emit_lane_operation(&r, &record)
                                                           : emit(&r, record);
        }
        hal_ir_kernel made = *ir;
        made.records = r.records;
        made.record_count = r.count;
        made.memories = r.memories;
        made.memory_count = r.memory_count;
        made.constants = r.constants;
        made.constant_count = r.constant_count;
        made.names = r.names;
        made.name_bytes = r.name_bytes;
        status = hal_ir_verify(&made);
        status = status == HAL_OK ? hal_ir_kernel_copy(&made, fixed) : status;
    } else {
        status = hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory to rewrite a kernel");
    }
    free(r.records);
    free(r.values);
    free(r.memories);
    free(r.constants);
    free(r.names);
    return status;
}
