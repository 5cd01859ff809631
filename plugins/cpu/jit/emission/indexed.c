/* Instructions of indices: affine numbers, gathers and scatters. Memory with elements of less than
 * 4 bytes is gathered in words of 4 bytes that begin at multiples of 4, so that none reaches into
 * another page. */
#include "jit/emission/indexed.h"

#include "jit/emission/emit.h"
#include "jit/registers/registers.h"

/* The ids of a vector's lanes in a dimension, by rax. */
static x86_operand ids_of(jit_state *jit, const jit_node *node, uint32_t dimension)
{
    const uint32_t *ids = jit->output->lane_ids + dimension * jit->lower->n;
    x86_operand operand =
        x86_memory(JIT_SCRATCH, (int32_t)(4 * node->part * jit_lanes(jit, jit->loop.program)));
    operand.index = jit->loop.in_loop ? JIT_LANE : X86_NO_REGISTER;
    operand.scale = 4;
    x86_load_immediate(&jit->code, JIT_SCRATCH, (uint64_t)(uintptr_t)ids);
    return operand;
}

void jit_affine_emit(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    uint32_t sum = jit_use(jit, node, 0);
    const uint32_t d = jit_result(jit, node);
    for (uint32_t k = 0; k < 3; k++) {
        if ((node->aux >> k & 1) != 0) {
            emit(jit, X86_PADDD, type, d, sum, ids_of(jit, node, k));
        } else if (node->a[1 + k] != JIT_NONE) {
            emit(jit, X86_MOVDQU32, type, JIT_TEMPORARY_A, 0, ids_of(jit, node, k));
            emit(jit, X86_PMULLD, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A,
                 jit_source(jit, node, 1 + k));
            emit(jit, X86_PADDD, type, d, sum, x86_register(JIT_TEMPORARY_A));
        } else {
            continue;
        }
        sum = d;
    }
    register_copy(jit, type, d, sum);
}

/* A mask that the instruction may change: lanes that are work-items, and active. */
static uint32_t mask_take(jit_state *jit, const jit_node *node, uint32_t active)
{
    const uint32_t mask = jit->target->mask;
    const bool all_items = jit_items_mask(jit, node->part) == 0;
    if (node->a[0] == JIT_NONE && all_items) {
        jit->target->bool_set(jit, mask, true);
    } else if (node->a[0] != JIT_NONE && all_items) {
        jit->target->bool_copy(jit, mask, active);
    } else if (node->a[0] != JIT_NONE) {
        jit->target->bool_both(jit, mask, mask, active);
    }
    return mask;
}

/* An index as a signed number, in its own register or temporary A. */
static uint32_t index_take(jit_state *jit, const jit_node *node, uint32_t index)
{
    const hal_type type = jit->lower->accesses[node->access].index_type;
    if (type != HAL_TYPE_U32) {
        return index;
    }
    emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, index, x86_constant(&jit->code, JIT_FLIPPED, 4));
    return JIT_TEMPORARY_A;
}

static x86_operand element_at(jit_state *jit, const jit_node *node, uint32_t index, uint32_t bytes)
{
    x86_operand operand = x86_memory(jit_pointer_register(jit, JIT_POINTER_ACCESS + node->aux), 0);
    operand.index = (uint8_t)index;
    operand.scale = (uint8_t)bytes;
    return operand;
}

/* From an index of elements in temporary A or another register: the index of its word to temporary
 * B, and by how many bits the element is shifted there to A. */
static void words_find(jit_state *jit, const jit_node *node, uint32_t index, uint32_t free)
{
    const hal_type u32 = HAL_TYPE_U32;
    const uint32_t size = hal_type_size(node->type), bits = size == 2 ? 1 : 2;
    const uint32_t shift = JIT_TEMPORARY_A, word = JIT_TEMPORARY_B;
    emit_immediate(jit, X86_PSRAD, u32, word, 0, x86_register(index), bits);
    emit(jit, X86_PANDD, u32, shift, index, x86_constant(&jit->code, 4 / size - 1, 4));
    if (size == 2) {
        emit_immediate(jit, X86_PSLLD, u32, shift, 0, x86_register(shift), 1);
    }
    emit(jit, X86_PBROADCASTD, u32, free, 0, jit_skip_of(node->aux));
    emit(jit, X86_PADDD, u32, shift, shift, x86_register(free));
    emit_immediate(jit, X86_PSRLD, u32, free, 0, x86_register(shift), 2);
    emit(jit, X86_PADDD, u32, word, word, x86_register(free));
    emit(jit, X86_PANDD, u32, shift, shift, x86_constant(&jit->code, 3, 4));
    emit_immediate(jit, X86_PSLLD, u32, shift, 0, x86_register(shift), 3);
}

/* The element in the low bits of each lane of d as a value. */
static void element_widen(jit_state *jit, hal_type type, uint32_t d)
{
    const hal_type value = hal_type_of_value(type);
    const uint32_t unused = 32 - 8 * hal_type_size(type);
    if (type == HAL_TYPE_F16) {
        jit->target->low_words(jit, JIT_TEMPORARY_A, d);
        emit(jit, X86_CVTPH2PS, value, d, 0, x86_register(JIT_TEMPORARY_A));
        return;
    }
    emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(d), unused);
    if (type != HAL_TYPE_BF16) {
        emit_immediate(jit, hal_type_is_signed(type) ? X86_PSRAD : X86_PSRLD, value, d, 0,
                       x86_register(d), unused);
    }
}

static void indexed_emit(jit_state *jit, uint32_t name, hal_type type, uint32_t reg, uint32_t mask,
                         x86_operand place)
{
    x86_form form = jit_form(jit, type);
    form.mask = jit->code.vex ? 0 : (uint8_t)mask;
    x86_vector_indexed(&jit->code, name, form, reg, mask, place);
}

void jit_gather_emit(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type, value = hal_type_of_value(type);
    const uint32_t size = hal_type_size(type);
    const uint32_t none = x86_label(&jit->code);
    const uint32_t active = node->a[0] != JIT_NONE ? jit_use(jit, node, 0) : 0;
    const uint32_t own = jit_use(jit, node, 1), d = jit_result(jit, node);
    const bool guarded = node->a[0] != JIT_NONE;
    if (guarded) {
        emit(jit, X86_PXORD, value, d, d, x86_register(d));
        jit->target->bool_test(jit, active);
        x86_jump_if(&jit->code, X86_EQUAL, none);
    }
    uint32_t mask = mask_take(jit, node, active), index = index_take(jit, node, own);
    if (size < 4) {
        words_find(jit, node, index, d);
        index = JIT_TEMPORARY_B;
    }
    mask = jit->target->element_mask(jit, value, mask);
    emit(jit, X86_PXORD, value, d, d, x86_register(d));
    indexed_emit(jit, size == 8 ? X86_PGATHERDQ : X86_PGATHERDD, value, d, mask,
                 element_at(jit, node, index, size < 4 ? 4 : size));
    if (size < 4) {
        emit(jit, X86_PSRLVD, value, d, d, x86_register(JIT_TEMPORARY_A));
        element_widen(jit, type, d);
    }
    x86_bind(&jit->code, none);
}

void jit_scatter_emit(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t active = node->a[0] != JIT_NONE ? jit_use(jit, node, 0) : 0;
    const uint32_t own = jit_use(jit, node, 1), a = jit_use(jit, node, 2);
    const uint32_t mask = mask_take(jit, node, active);
    const uint32_t index = index_take(jit, node, own);
    jit->target->scatter(jit, type, a, element_at(jit, node, index, hal_type_size(type)), mask);
}
