/* Loads, stores and atomics. A binding is an address, from which each access makes a pointer. A
 * guard is a branch around the access. */
#include "lower/memory.h"

#include "lower/block.h"
#include "lower/convert.h"
#include "lower/shared.h"

enum { MAX_PIECES = 8 };

/* The labels after and before the branch around an access; `merge` is 0 without a guard. */
typedef struct guarded {
    uint32_t merge, before;
} guarded;

/* An access of a record in parts of one class. */
typedef struct plan {
    const hal_ir_record *record;
    hal_type type;
    uint32_t class, parts;
    lower_access access;
    uint32_t address; /* of a binding */
} plan;

/* base + index * size, which accesses with the same index share, + imm * size. */
static uint32_t address_of(lower *l, const hal_ir_record *record)
{
    spirv_writer *w = &l->writer;
    const uint32_t u64 = lower_int(l, 64);
    const uint32_t size = hal_type_size(l->ir->memories[record->aux].type);
    lower_address *known =
        &l->addresses[(record->a * 31 + record->aux) * 0x9e3779b1u >> 26 & (LOWER_ADDRESSES - 1)];
    if (known->id == 0 || known->memory != record->aux || known->index != record->a ||
        known->depth > l->depth || l->open_blocks[known->depth] != known->block) {
        const hal_type type = l->ir->records[record->a].type;
        const uint32_t index = lower_cast(l, type, HAL_TYPE_I64, l->ids[record->a]);
        const uint32_t bytes =
            size == 1 ? index : RESULT(w, SPV_OP_I_MUL, u64, index, lower_u64(l, size));
        *known = (lower_address){
            .memory = record->aux,
            .index = record->a,
            .depth = l->depth,
            .block = l->open_blocks[l->depth],
            .id = RESULT(w, SPV_OP_I_ADD, u64, l->bindings[record->aux], bytes),
        };
    }
    if (record->imm == 0) {
        return known->id;
    }
    const uint64_t distance = (uint64_t)((int64_t)record->imm * (int64_t)size);
    return RESULT(w, SPV_OP_I_ADD, u64, known->id, lower_u64(l, distance));
}

static void require_small_access(lower *l, uint32_t bytes, int shared)
{
    if (!shared) {
        spirv_capability(&l->writer,
                         bytes == 1 ? SPV_CAPABILITY_STORAGE_8 : SPV_CAPABILITY_STORAGE_16);
    } else if (l->views) {
        spirv_capability(&l->writer, bytes == 1 ? SPV_CAPABILITY_WORKGROUP_LAYOUT_8
                                                : SPV_CAPABILITY_WORKGROUP_LAYOUT_16);
    } else {
        spirv_capability(&l->writer, bytes == 1 ? SPV_CAPABILITY_INT8 : SPV_CAPABILITY_INT16);
    }
}

static lower_access access_of(lower *l, hal_type type, uint32_t width)
{
    const uint32_t bytes = hal_type_size(type), all = bytes * width;
    lower_access access = {.count = width, .bytes = bytes};
    if (bytes >= 4) {
        access.type = lower_type(l, type);
    } else {
        access.bytes = all >= 4 ? 4 : all;
        access.count = all >= 4 ? all / 4 : 1;
        access.type = lower_int(l, 8 * access.bytes);
    }
    return access;
}

static plan plan_access(lower *l, const hal_ir_record *record, uint32_t width)
{
    const int shared = hal_ir_is_shared(l->ir, record->aux);
    plan p = {.record = record, .type = l->ir->memories[record->aux].type};
    if (shared) {
        p.class = lower_shared_class(l, record->aux, width);
    } else {
        while (2u << p.class <= width) {
            p.class ++;
        }
        p.address = address_of(l, record);
    }
    p.parts = width >> p.class;
    p.access = access_of(l, p.type, 1u << p.class);
    if (p.access.bytes < 4) {
        require_small_access(l, p.access.bytes, shared);
    }
    return p;
}

static guarded guard_begin(lower *l, const hal_ir_record *record)
{
    guarded guard = {0, l->label};
    if (record->b != HAL_IR_NONE) {
        const uint32_t yes = spirv_id(&l->writer);
        guard.merge = spirv_id(&l->writer);
        lower_branch_if(l, l->ids[record->b], yes, guard.merge, guard.merge);
        lower_label(l, yes);
    }
    return guard;
}

static uint32_t pointer_to(lower *l, const plan *p, uint32_t part)
{
    if (hal_ir_is_shared(l->ir, p->record->aux)) {
        return lower_shared_pointer(l, p->record, p->class, part, &p->access);
    }
    const uint32_t type = lower_vector(l, p->access.type, p->access.count);
    return RESULT(&l->writer, SPV_OP_CONVERT_U_TO_PTR,
                  lower_pointer(l, SPV_STORAGE_PHYSICAL_STORAGE_BUFFER, type), p->address);
}

/* The memory operands of a load or store. Returns their count. */
static uint32_t memory_operands(const lower *l, const plan *p, uint32_t operands[2])
{
    const uint32_t memory = p->record->aux;
    if (hal_ir_is_shared(l->ir, memory)) {
        operands[0] = SPV_ACCESS_NON_PRIVATE;
        return 1;
    }
    const bool is_communicated =
        !l->private_access && (l->ir->memories[memory].access & HAL_ACCESS_WRITE) != 0;
    operands[0] = SPV_ACCESS_ALIGNED | (is_communicated ? (uint32_t)SPV_ACCESS_NON_PRIVATE : 0);
    operands[1] = hal_type_size(p->type) << p->class;
    return 2;
}

static void emit_load_part(lower *l, const plan *p, uint32_t part, uint32_t *pieces)
{
    spirv_writer *w = &l->writer;
    const lower_access *access = &p->access;
    uint32_t operands[3] = {pointer_to(l, p, part)};
    const uint32_t count = 1 + memory_operands(l, p, operands + 1);
    const uint32_t all =
        spirv_result(w, SPV_OP_LOAD, lower_vector(l, access->type, access->count), operands, count);
    for (uint32_t i = 0; i < access->count; i++) {
        pieces[i] =
            access->count == 1 ? all : RESULT(w, SPV_OP_COMPOSITE_EXTRACT, access->type, all, i);
        if (access->bytes < 4) {
            pieces[i] = RESULT(w, SPV_OP_U_CONVERT, lower_int(l, 32), pieces[i]);
        }
    }
}

/* Returns the label of the block with the access. */
static uint32_t guard_end(lower *l, const guarded *guard)
{
    const uint32_t inside = l->label;
    if (guard->merge != 0) {
        lower_branch(l, guard->merge);
        lower_label(l, guard->merge);
    }
    return inside;
}

static uint32_t zero_of(lower *l, hal_type type)
{
    return hal_type_size(type) < 4 ? lower_u32(l, 0) : lower_constant(l, type, 0);
}

/* The piece that has an element, and the bit at which the element starts. */
static uint32_t piece_of(const plan *p, uint32_t element, uint32_t *shift)
{
    const uint32_t each = p->access.bytes / hal_type_size(p->type); /* elements of a piece */
    *shift = each <= 1 ? 0 : element % each * 8 * hal_type_size(p->type);
    return each <= 1 ? element : element / each;
}

static uint32_t piece_element(lower *l, const plan *p, const uint32_t *pieces, uint32_t element)
{
    uint32_t by = 0, piece = pieces[piece_of(p, element, &by)];
    if (by == 16 && hal_type_size(p->type) == 2) {
        return lower_decode_high(l, p->type, piece);
    }
    if (by > 0) {
        piece = RESULT(&l->writer, SPV_OP_SHIFT_RIGHT_LOGICAL, lower_int(l, 32), piece,
                       lower_u32(l, by));
    }
    return lower_decode(l, p->type, piece);
}

static void lower_load(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    const plan p = plan_access(l, record, record->width);
    const uint32_t count = p.parts * p.access.count;
    uint32_t pieces[MAX_PIECES] = {0};
    const guarded guard = guard_begin(l, record);
    for (uint32_t part = 0; part < p.parts; part++) {
        emit_load_part(l, &p, part, pieces + part * p.access.count);
    }
    const uint32_t inside = guard_end(l, &guard);
    if (guard.merge != 0) {
        const uint32_t zero = zero_of(l, p.type);
        const uint32_t type = p.access.bytes < 4 ? lower_int(l, 32) : p.access.type;
        for (uint32_t i = 0; i < count; i++) {
            pieces[i] = lower_phi(l, type, pieces[i], inside, zero, guard.before);
        }
    }
    if (record->width == 1) {
        l->ids[index] = piece_element(l, &p, pieces, 0);
        return;
    }
    l->ids[index] = l->part_count;
    for (uint32_t i = 0; i < record->width; i++) {
        l->parts[l->part_count++] = piece_element(l, &p, pieces, i);
    }
}

/* The pieces of one part, from the values of its elements. */
static void pack_elements(lower *l, const plan *p, const uint32_t *values, uint32_t *pieces)
{
    const uint32_t u32 = lower_int(l, 32);
    const int in_pairs = hal_type_size(p->type) == 2 && p->access.bytes == 4;
    for (uint32_t i = 0; i < 1u << p->class; i += in_pairs ? 2 : 1) {
        uint32_t by = 0, *piece = &pieces[piece_of(p, i, &by)];
        if (in_pairs) {
            *piece = lower_encode_pair(l, p->type, values[i], values[i + 1]);
            continue;
        }
        const uint32_t element = lower_encode(l, p->type, values[i]);
        if (by == 0) {
            *piece = element;
            continue;
        }
        const uint32_t up =
            RESULT(&l->writer, SPV_OP_SHIFT_LEFT_LOGICAL, u32, element, lower_u32(l, by));
        *piece = RESULT(&l->writer, SPV_OP_BITWISE_OR, u32, *piece, up);
    }
}

static void emit_store_part(lower *l, const plan *p, uint32_t part, const uint32_t *pieces)
{
    spirv_writer *w = &l->writer;
    const lower_access *access = &p->access;
    uint32_t operands[4] = {pointer_to(l, p, part), pieces[0]};
    if (access->count > 1) {
        operands[1] =
            spirv_result(w, SPV_OP_COMPOSITE_CONSTRUCT,
                         lower_vector(l, access->type, access->count), pieces, access->count);
    } else if (access->bytes < 4) {
        operands[1] = RESULT(w, SPV_OP_U_CONVERT, access->type, pieces[0]);
    }
    spirv_emit(w, SPIRV_BODY, SPV_OP_STORE, operands, 2 + memory_operands(l, p, operands + 2));
}

/* The stored value is computed before the branch. */
static void lower_store(lower *l, const hal_ir_record *record)
{
    const plan p = plan_access(l, record, record->width);
    const uint32_t *values = record->width == 1 ? &l->ids[record->c] : &l->parts[l->ids[record->c]];
    uint32_t pieces[MAX_PIECES] = {0};
    for (uint32_t part = 0; part < p.parts; part++) {
        pack_elements(l, &p, values + (part << p.class), pieces + part * p.access.count);
    }
    const guarded guard = guard_begin(l, record);
    for (uint32_t part = 0; part < p.parts; part++) {
        emit_store_part(l, &p, part, pieces + part * p.access.count);
    }
    guard_end(l, &guard);
}

static uint32_t lower_atomic(lower *l, const hal_ir_record *record)
{
    static const uint16_t signed_opcodes[HAL_IR_ATOMIC_COUNT] = {
        [HAL_IR_ATOMIC_ADD] = SPV_OP_ATOMIC_I_ADD,
        [HAL_IR_ATOMIC_MIN] = SPV_OP_ATOMIC_S_MIN,
        [HAL_IR_ATOMIC_MAX] = SPV_OP_ATOMIC_S_MAX,
        [HAL_IR_ATOMIC_AND] = SPV_OP_ATOMIC_AND,
        [HAL_IR_ATOMIC_OR] = SPV_OP_ATOMIC_OR,
        [HAL_IR_ATOMIC_XOR] = SPV_OP_ATOMIC_XOR,
        [HAL_IR_ATOMIC_EXCHANGE] = SPV_OP_ATOMIC_EXCHANGE,
        [HAL_IR_ATOMIC_COMPARE_EXCHANGE] = SPV_OP_ATOMIC_COMPARE_EXCHANGE,
    };
    spirv_writer *w = &l->writer;
    const plan p = plan_access(l, record, 1);
    const uint32_t type = lower_type(l, record->type), kind = record->flags;
    const int shared = hal_ir_is_shared(l->ir, record->aux);
    const uint32_t scope = lower_u32(l, shared ? SPV_SCOPE_WORKGROUP : SPV_SCOPE_QUEUE_FAMILY);
    const uint32_t relaxed = lower_u32(l, 0);
    uint32_t opcode = signed_opcodes[kind];
    if (!hal_type_is_signed(record->type)) {
        opcode = kind == HAL_IR_ATOMIC_MIN   ? SPV_OP_ATOMIC_U_MIN
                 : kind == HAL_IR_ATOMIC_MAX ? SPV_OP_ATOMIC_U_MAX
                                             : opcode;
    }
    if (hal_type_size(record->type) == 8) {
        spirv_capability(w, SPV_CAPABILITY_INT64_ATOMICS);
    }
    const guarded guard = guard_begin(l, record);
    const uint32_t place = pointer_to(l, &p, 0);
    const uint32_t value = l->ids[record->c];
    const uint32_t old =
        kind == HAL_IR_ATOMIC_COMPARE_EXCHANGE
            ? RESULT(w, opcode, type, place, scope, relaxed, relaxed, value, l->ids[record->d])
            : RESULT(w, opcode, type, place, scope, relaxed, value);
    const uint32_t inside = guard_end(l, &guard);
    return guard.merge == 0
               ? old
               : lower_phi(l, type, old, inside, zero_of(l, record->type), guard.before);
}

void lower_memory(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    if (record->opcode == HAL_IR_LOAD) {
        lower_load(l, index);
    } else if (record->opcode == HAL_IR_STORE) {
        lower_store(l, record);
    } else {
        l->ids[index] = lower_atomic(l, record);
    }
}
