/* kernel.c: faults in how kernels are told apart, and in what they do with memory and with one
 * another's work-items. */
#include "mutant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Lanes of a subgroup of the cpu plugin. */
#define SUBGROUP 16u

/* A kernel that was made before, for a cache that does not look at all of it. */
typedef struct known {
    struct known *next;
    uint64_t hash;
    uint32_t group_size[3];
    uint32_t constant_count;
    uint64_t constants[];
} known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known *all;

static uint64_t add_to_hash(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_of(const wrap_ir *ir)
{
    const char *name = ir->ir.names + ir->ir.name;
    uint64_t hash = add_to_hash(UINT64_C(0xcbf29ce484222325), name, strlen(name));
    hash = add_to_hash(hash, ir->records, ir->ir.record_count * sizeof(hal_ir_record));
    return add_to_hash(hash, ir->memories, ir->ir.memory_count * sizeof(hal_ir_memory));
}

/* The first kernel of this hash and number of constants; this one if it is new. */
static const known *first_of(const wrap_ir *ir, uint64_t hash)
{
    const uint32_t count = ir->ir.constant_count;
    pthread_mutex_lock(&lock);
    known *found = all;
    while (found && (found->hash != hash || found->constant_count != count)) {
        found = found->next;
    }
    if (!found && (found = malloc(sizeof(*found) + count * sizeof(uint64_t))) != NULL) {
        found->next = all;
        found->hash = hash;
        found->constant_count = count;
        memcpy(found->group_size, ir->ir.group_size, sizeof(found->group_size));
        memcpy(found->constants, ir->constants, count * sizeof(uint64_t));
        all = found;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* A cache of kernels that compares no constants but the first four. */
static void cache_constants(wrap_ir *ir)
{
    const size_t compared = 4 * sizeof(uint64_t);
    if (ir->ir.constant_count > 4) {
        const uint64_t hash = add_to_hash(add_to_hash(hash_of(ir), ir->constants, compared),
                                          ir->ir.group_size, sizeof(ir->ir.group_size));
        const known *first = first_of(ir, hash);
        if (first) {
            memcpy(ir->constants, first->constants, ir->ir.constant_count * sizeof(uint64_t));
        }
    }
}

/* A cache of kernels that does not compare the sizes of groups. */
static void cache_group(wrap_ir *ir)
{
    const uint64_t hash =
        add_to_hash(hash_of(ir), ir->constants, ir->ir.constant_count * sizeof(uint64_t));
    const known *first = first_of(ir, hash);
    if (first) {
        memcpy(ir->ir.group_size, first->group_size, sizeof(first->group_size));
    }
}

/* The largest of negative integers is taken as if they had no sign. */
static void atomic_signed(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        hal_ir_record *record = &ir->records[i];
        if (record->opcode == HAL_IR_ATOMIC && record->type == HAL_TYPE_I32 &&
            record->flags == HAL_IR_ATOMIC_MAX) {
            ir->memories[record->aux].type = HAL_TYPE_U32;
            record->type = HAL_TYPE_U32;
        }
    }
}

/* The second array in shared memory begins 64 bytes too early. */
static void shared_overlap(wrap_ir *ir)
{
    const uint32_t first = ir->ir.binding_count;
    if (ir->ir.memory_count > first + 1 && ir->memories[first].count > 64) {
        ir->memories[first].count -= 64 / hal_type_size(ir->memories[first].type);
    }
}

/* The fifth array in shared memory and later ones are the fourth. */
static void shared_fourth(wrap_ir *ir)
{
    const uint32_t fourth = ir->ir.binding_count + 3;
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        hal_ir_record *record = &ir->records[i];
        if ((record->opcode == HAL_IR_LOAD || record->opcode == HAL_IR_STORE) &&
            record->aux > fourth) {
            record->aux = fourth;
        }
    }
}

/* A work-item in another half of the subgroup is not reached. */
static void shuffle_far(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        hal_ir_record *record = &ir->records[i];
        if (record->opcode == HAL_IR_SHUFFLE_XOR && record->imm >= 8) {
            record->imm %= 8;
        }
    }
}

/* Lanes that a short subgroup lacks take part in a reduction, with what lane 0 has. */
static void reduce_short(wrap_ir *ir)
{
    const uint32_t items = hal_ir_group_items(&ir->ir), rest = items % SUBGROUP;
    for (uint32_t i = 0; i < ir->ir.record_count && rest > 0; i++) {
        if (ir->records[i].opcode != HAL_IR_SUBGROUP_REDUCE) {
            continue;
        }
        const hal_type type = ir->records[i].type;
        const hal_ir_value x = ir->records[i].a;
        hal_ir_record id = {.opcode = HAL_IR_LOCAL_ID, .type = HAL_TYPE_U32, .width = 1};
        id.a = id.b = id.c = id.d = HAL_IR_NONE;
        const hal_ir_value item = wrap_ir_insert(ir, i++, id);
        const hal_ir_value first = wrap_ir_constant(ir, i++, HAL_TYPE_U32, items - rest);
        const hal_ir_value is_first =
            wrap_ir_operation(ir, i++, HAL_IR_EQ, HAL_TYPE_BOOL, item, first);
        const hal_ir_value twice = wrap_ir_operation(ir, i++, HAL_IR_ADD, type, x, x);
        const hal_ir_value taken = wrap_ir_operation(ir, i++, HAL_IR_SELECT, type, is_first, twice);
        ir->records[taken].c = x;
        ir->records[i].a = taken;
    }
}

/* A vector of four is loaded though its guard forbids it. */
static void guard_vector(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_LOAD && ir->records[i].width == 4) {
            ir->records[i].b = HAL_IR_NONE;
        }
    }
}

/* A negative offset in an instruction is taken without its sign. */
static void offset_negative(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        hal_ir_record *record = &ir->records[i];
        if (record->opcode == HAL_IR_LOAD && record->imm < 0) {
            record->imm = -record->imm;
        }
    }
}

const mutant mutants_kernel[] = {{.name = "cache_constants", .ir = cache_constants},
                                 {.name = "cache_group", .ir = cache_group},
                                 {.name = "atomic_signed", .ir = atomic_signed},
                                 {.name = "shared_overlap", .ir = shared_overlap},
                                 {.name = "shared_fourth", .ir = shared_fourth},
                                 {.name = "shuffle_far", .ir = shuffle_far},
                                 {.name = "guard_vector", .ir = guard_vector},
                                 {.name = "offset_negative", .ir = offset_negative},
                                 {.name = "reduce_short", .ir = reduce_short},
                                 {.name = NULL}};
