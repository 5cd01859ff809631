/* Barriers and subgroups. A group that uses subgroups has one dimension in SPIR-V, so that lanes
 * are in the order of work-items; quirks.c says for which drivers that holds. */
#include "lower/subgroup.h"

#include "lower/arithmetic.h"
#include "lower/convert.h"

static uint32_t emit_lane_id(lower *l)
{
    spirv_capability(&l->writer, SPV_CAPABILITY_GROUP_NON_UNIFORM);
    return lower_input(l, SPV_BUILT_IN_SUBGROUP_LOCAL_INVOCATION_ID, 1, 0);
}

static uint32_t emit_shuffle_word(lower *l, uint32_t opcode, uint32_t word, uint32_t lane)
{
    spirv_capability(&l->writer, SPV_CAPABILITY_GROUP_NON_UNIFORM);
    spirv_capability(&l->writer, SPV_CAPABILITY_GROUP_NON_UNIFORM_SHUFFLE);
    return RESULT(&l->writer, opcode, lower_int(l, 32), lower_u32(l, SPV_SCOPE_SUBGROUP), word,
                  lane);
}

/* In words of 32 bits, which every device with subgroups can shuffle. */
static uint32_t emit_shuffle(lower *l, uint32_t opcode, hal_type type, uint32_t value,
                             uint32_t lane)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32);
    if (type == HAL_TYPE_BOOL) {
        const uint32_t word = emit_shuffle_word(l, opcode, lower_encode(l, type, value), lane);
        return lower_decode(l, type, word);
    }
    const uint32_t bits = lower_bits(l, type, value);
    if (hal_type_size(type) == 4) {
        return lower_from_bits(l, type, emit_shuffle_word(l, opcode, bits, lane));
    }
    const uint32_t pair = lower_vector(l, u32, 2);
    const uint32_t words = RESULT(w, SPV_OP_BITCAST, pair, bits);
    uint32_t moved[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t word = RESULT(w, SPV_OP_COMPOSITE_EXTRACT, u32, words, i);
        moved[i] = emit_shuffle_word(l, opcode, word, lane);
    }
    const uint32_t joined = RESULT(w, SPV_OP_COMPOSITE_CONSTRUCT, pair, moved[0], moved[1]);
    return lower_from_bits(l, type, RESULT(w, SPV_OP_BITCAST, lower_int(l, 64), joined));
}

static uint32_t emit_combine(lower *l, const hal_ir_record *record, uint32_t a, uint32_t b)
{
    static const uint16_t opcodes[HAL_IR_REDUCE_COUNT] = {[HAL_IR_REDUCE_ADD] = HAL_IR_ADD,
                                                          [HAL_IR_REDUCE_MIN] = HAL_IR_MIN,
                                                          [HAL_IR_REDUCE_MAX] = HAL_IR_MAX};
    return lower_combine(l, opcodes[record->aux], record->type, a, b);
}

/* A butterfly, which is the order of the IR. In a short last subgroup a lane without a partner
 * keeps its value; lane 0 alone has the whole result then, and broadcasts it. */
static uint32_t lower_reduce(lower *l, const hal_ir_record *record)
{
    spirv_writer *w = &l->writer;
    const uint32_t width = l->target->subgroup_width, items = hal_ir_group_items(l->ir);
    const uint32_t u32 = lower_int(l, 32), type = lower_type(l, record->type);
    const bool is_short = items % width != 0;
    uint32_t value = l->ids[record->a], lane = 0, lanes = 0;
    if (is_short) { /* `lanes`: of this subgroup, or more */
        const uint32_t item = lower_input(l, SPV_BUILT_IN_LOCAL_INVOCATION_ID, 3, 0);
        lane = RESULT(w, SPV_OP_BITWISE_AND, u32, item, lower_u32(l, width - 1));
        const uint32_t first = RESULT(w, SPV_OP_I_SUB, u32, item, lane);
        lanes = RESULT(w, SPV_OP_I_SUB, u32, lower_u32(l, items), first);
    }
    for (uint32_t distance = 1; distance < width; distance *= 2) {
        const uint32_t by = lower_u32(l, distance);
        const uint32_t other =
            emit_shuffle(l, SPV_OP_GROUP_NON_UNIFORM_SHUFFLE_XOR, record->type, value, by);
        const uint32_t both = emit_combine(l, record, value, other);
        if (is_short) {
            const uint32_t partner = RESULT(w, SPV_OP_BITWISE_XOR, u32, lane, by);
            const uint32_t there = RESULT(w, SPV_OP_U_LESS_THAN, lower_bool(l), partner, lanes);
            value = lower_select(l, type, there, both, value);
        } else {
            value = both;
        }
    }
    return is_short ? emit_shuffle(l, SPV_OP_GROUP_NON_UNIFORM_SHUFFLE, record->type, value,
                                   lower_u32(l, 0))
                    : value;
}

bool lower_needs_subgroups(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const uint32_t opcode = ir->records[i].opcode;
        if (opcode == HAL_IR_LANE_ID || opcode == HAL_IR_MATRIX_MULTIPLY ||
            (opcode >= HAL_IR_SHUFFLE && opcode <= HAL_IR_SUBGROUP_REDUCE)) {
            return true;
        }
    }
    return false;
}

/* Records from the first to the last access of a kind; none: `first` is UINT32_MAX. An access in a
 * block, which may be in a loop, reaches over all of its outermost block. */
typedef struct reach {
    uint32_t first, last;
} reach;

static void reach_extend(reach *of, uint32_t first, uint32_t last)
{
    of->first = first < of->first ? first : of->first;
    of->last = last;
}

static void find_reaches(const hal_ir_kernel *ir, reach *accesses, reach *stores)
{
    uint32_t depth = 0, open = 0;
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        accesses[i] = stores[i] = (reach){.first = UINT32_MAX};
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const uint32_t opcode = ir->records[i].opcode, memory = ir->records[i].aux;
        if (opcode == HAL_IR_FOR || opcode == HAL_IR_IF) {
            open = depth++ == 0 ? i : open;
        } else if (opcode == HAL_IR_END && --depth == 0) {
            for (uint32_t b = 0; b < ir->binding_count; b++) {
                accesses[b].last = accesses[b].last >= open ? i : accesses[b].last;
                stores[b].last = stores[b].last >= open ? i : stores[b].last;
            }
        } else if ((opcode == HAL_IR_LOAD || opcode == HAL_IR_STORE || opcode == HAL_IR_ATOMIC) &&
                   memory < ir->binding_count) {
            reach_extend(&accesses[memory], depth > 0 ? open : i, i);
            if (opcode != HAL_IR_LOAD) {
                reach_extend(&stores[memory], depth > 0 ? open : i, i);
            }
        }
    }
}

/* Work-items may communicate through a binding that is written on one side of a barrier and
 * accessed on the other; bindings of which one is written do not overlap. */
void lower_find_communication(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    reach accesses[HAL_IR_MAX_BINDINGS], stores[HAL_IR_MAX_BINDINGS];
    find_reaches(ir, accesses, stores);
    l->private_access = 1;
    for (uint32_t i = 0; i < ir->record_count && l->private_access; i++) {
        for (uint32_t b = 0; ir->records[i].opcode == HAL_IR_BARRIER && b < ir->binding_count;
             b++) {
            if ((stores[b].first < i && accesses[b].last > i) ||
                (accesses[b].first < i && stores[b].last > i)) {
                l->private_access = 0;
            }
        }
    }
}

/* Orders accesses to bindings only where work-items communicate through them: drivers may let a
 * barrier that does so wait for loads in flight. */
void lower_barrier(lower *l)
{
    const uint32_t scope = lower_u32(l, SPV_SCOPE_WORKGROUP);
    const uint32_t bindings = l->private_access ? 0 : SPV_SEMANTICS_UNIFORM_MEMORY;
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_CONTROL_BARRIER, scope, scope,
         lower_u32(l, SPV_SEMANTICS_ACQUIRE_RELEASE | SPV_SEMANTICS_WORKGROUP_MEMORY |
                          SPV_SEMANTICS_MAKE_AVAILABLE | SPV_SEMANTICS_MAKE_VISIBLE | bindings));
}

uint32_t lower_subgroup(lower *l, const hal_ir_record *record)
{
    const uint32_t width = l->target->subgroup_width;
    if (width == 0) {
        lower_fail(l, HAL_ERROR_UNSUPPORTED, "expected a device with subgroups");
        return 0;
    }
    switch (record->opcode) {
    case HAL_IR_LANE_ID:
        return emit_lane_id(l);
    case HAL_IR_SHUFFLE: {
        const uint32_t lane = RESULT(&l->writer, SPV_OP_BITWISE_AND, lower_int(l, 32),
                                     l->ids[record->b], lower_u32(l, width - 1));
        return emit_shuffle(l, SPV_OP_GROUP_NON_UNIFORM_SHUFFLE, record->type, l->ids[record->a],
                            lane);
    }
    case HAL_IR_SHUFFLE_XOR:
        return emit_shuffle(l, SPV_OP_GROUP_NON_UNIFORM_SHUFFLE_XOR, record->type,
                            l->ids[record->a], lower_u32(l, (uint32_t)record->imm & (width - 1)));
    default:
        return lower_reduce(l, record);
    }
}
