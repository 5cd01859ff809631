/* Whether accesses are in range, for passes that add checks to kernels, see instrument.h: one
 * comparison for an access. What an index is compared with depends on counts and constants alone,
 * so it is computed once, at the begin of the kernel. */
#include "instrument.h"

/* What is compared: index + added < min(max(count, less) - less, most), without signs. The sum
 * wraps: an element before the first one, or beyond what the index can name, becomes at
 * least `most`; 0 stands for no limit. */
typedef struct index_rule {
    uint64_t added, less, most;
} index_rule;

/* Of elements index + offset to index + offset + width - 1, whose index has a type. */
static index_rule index_rule_of(hal_type type, int64_t offset, uint32_t width)
{
    const bool is_signed = hal_type_is_signed(type);
    const uint32_t bits = hal_type_size(type) * 8;
    const uint64_t mask = bits == 64 ? UINT64_MAX : UINT32_MAX;
    if (!is_signed && offset >= 0) {
        return (index_rule){.less = (uint64_t)offset + width - 1};
    }
    const uint64_t first = is_signed ? UINT64_C(1) << (bits - 1) : 0;
    const uint64_t most = (first + (uint64_t)offset) & mask;
    if (most == 0) { /* an I32 and INT32_MIN: every index is before the first element */
        return (index_rule){.less = mask};
    }
    return (index_rule){.added = (uint64_t)offset & mask, .less = width - 1, .most = most};
}

static hal_ir_value count_of(hal_ir_instrumentation *s, hal_ir_count_kind kind, uint32_t memory,
                             hal_type type)
{
    if (kind == HAL_IR_COUNT_ELEMENTS) {
        return hal_ir_element_count(s, memory, type);
    }
    const hal_ir_value count = hal_ir_shadow_count(
        s, kind == HAL_IR_COUNT_WRITTEN ? HAL_IR_SHADOW_WRITTEN : HAL_IR_SHADOW_ACCESSED, memory);
    return type == HAL_TYPE_U64 ? hal_ir_cast(s->b, type, count) : count;
}

static hal_ir_value end_make(hal_ir_instrumentation *s, const hal_ir_index_end *key, hal_type type)
{
    hal_ir_builder *b = s->b;
    if (key->kind == HAL_IR_COUNT_ELEMENTS && hal_ir_is_shared(s->from, key->memory)) {
        const uint64_t count = s->from->memories[key->memory].count;
        const uint64_t end = count > key->less ? count - key->less : 0;
        return hal_ir_constant_of(b, type, key->most > 0 && key->most < end ? key->most : end);
    }
    hal_ir_value end = count_of(s, key->kind, key->memory, type);
    if (key->less > 0) {
        const hal_ir_value less = hal_ir_constant_of(b, type, key->less);
        end = hal_ir_sub(b, hal_ir_max(b, end, less), less);
    }
    return key->most > 0 ? hal_ir_min(b, end, hal_ir_constant_of(b, type, key->most)) : end;
}

/* The end that an index is compared with; kept where `is_first`, before the first record. */
static hal_ir_value end_find(hal_ir_instrumentation *s, hal_ir_index_end key, bool is_first)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        const hal_ir_index_end *end = &s->ends[i];
        if (end->kind == key.kind && end->memory == key.memory && end->is_wide == key.is_wide &&
            end->less == key.less && end->most == key.most) {
            return end->value;
        }
    }
    if (is_first && s->end_count == HAL_IR_MAX_ENDS) {
        return HAL_IR_NONE;
    }
    key.value = end_make(s, &key, key.is_wide ? HAL_TYPE_U64 : HAL_TYPE_U32);
    if (is_first) {
        s->ends[s->end_count++] = key;
    }
    return key.value;
}

static hal_ir_index_end end_key(hal_ir_count_kind kind, uint32_t memory, hal_type type,
                                const index_rule *rule)
{
    return (hal_ir_index_end){.kind = kind,
                              .memory = memory,
                              .is_wide = hal_type_size(type) == 8,
                              .less = rule->less,
                              .most = rule->most};
}

hal_ir_value hal_ir_index_holds(hal_ir_instrumentation *s, hal_ir_count_kind kind, uint32_t memory,
                                hal_ir_value index, int64_t offset, uint32_t width)
{
    hal_ir_builder *b = s->b;
    const hal_type type = hal_ir_type_of(b, index);
    const hal_type plain = hal_type_size(type) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    const index_rule rule = index_rule_of(type, offset, width);
    hal_ir_value at = type == plain ? index : hal_ir_bitcast(b, plain, index);
    if (rule.added > 0) {
        at = hal_ir_add(b, at, hal_ir_constant_of(b, plain, rule.added));
    }
    return hal_ir_lt(b, at, end_find(s, end_key(kind, memory, type, &rule), false));
}

/* Computes the ends of an access. */
static void access_ends(hal_ir_instrumentation *s, uint32_t checks, uint32_t memory,
                        hal_ir_value index, int64_t offset, uint32_t width)
{
    const hal_type type = s->from->records[index].type;
    const index_rule rule = index_rule_of(type, offset, width);
    if (hal_ir_is_shared(s->from, memory)) {
        return; /* constants */
    }
    if (checks & HAL_CHECK_BOUNDS) {
        end_find(s, end_key(HAL_IR_COUNT_ELEMENTS, memory, type, &rule), true);
    }
    if (s->shadow[HAL_IR_SHADOW_WRITTEN][memory] != HAL_IR_NONE) {
        end_find(s, end_key(HAL_IR_COUNT_WRITTEN, memory, type, &rule), true);
    }
    if (s->shadow[HAL_IR_SHADOW_ACCESSED][memory] != HAL_IR_NONE) {
        end_find(s, end_key(HAL_IR_COUNT_ACCESSED, memory, type, &rule), true);
    }
}

void hal_ir_index_ends_make(hal_ir_instrumentation *s, uint32_t checks)
{
    for (uint32_t i = 0; i < s->from->record_count; i++) {
        const hal_ir_record *record = &s->from->records[i];
        switch (record->opcode) {
        case HAL_IR_LOAD:
        case HAL_IR_STORE:
        case HAL_IR_ATOMIC:
            access_ends(s, checks, record->aux, record->a, record->imm, record->width);
            break;
        case HAL_IR_ASYNC_COPY:
            access_ends(s, checks, record->aux, record->a, 0, record->width);
            access_ends(s, checks, (uint32_t)record->imm, record->d, 0, record->width);
            break;
        default:
            break;
        }
    }
}
