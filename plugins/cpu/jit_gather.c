/* Accesses whose elements are neither contiguous nor in rows: gathers, and scatters where the
 * instruction set has them. Memory with elements of less than 4 bytes is gathered in words of 4
 * bytes that begin at multiples of 4, so that none reaches into another page; a scatter of them
 * calls its step. Called by jit.c and jit_operation.c. */
#include "jit_emit.h"

/* Shorter rows are gathered: steps transpose the others in squares. */
enum { LEAST_ROW = 4 };

/* Of an unsigned index the highest bit is flipped, which makes it signed, and the pointer is ahead
 * by as many elements. */
#define FLIPPED (UINT32_C(1) << 31)

/* Whether the work-items of a row may be neighbours in memory: rows that follow each other are one
 * then, which steps find out. */
static bool may_be_contiguous(const jit_state *jit, const cpu_access *access)
{
    const cpu_constant_name *factor = jit->constants[access->factor[0]];
    return factor != NULL && factor->bits == 1;
}

static bool is_supported(const jit_state *jit, const cpu_draft *draft, const cpu_access *access)
{
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    return draft->access != CPU_NONE && access->width == 1 &&
           hal_type_size(access->index_type) == 4 && access->type != HAL_TYPE_BOOL &&
           offset <= INT32_MAX && offset >= INT32_MIN &&
           (access->index != CPU_NONE ||
            (jit->lower->kernel->place[0] < LEAST_ROW && !may_be_contiguous(jit, access) &&
             jit_access_form_of(jit, draft) == JIT_ACCESS_NONE));
}

bool jit_gather_is_wanted(const jit_state *jit, const cpu_draft *draft)
{
    return is_supported(jit, draft, &jit->lower->accesses[draft->access]);
}

bool jit_scatter_is_wanted(const jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    return jit->target->scatters && hal_type_size(access->type) >= 4 &&
           is_supported(jit, draft, access);
}

/* Before the loop: the address of index 0, and of narrow elements its distance from a multiple of 4
 * in the place of the skip. */
static uint32_t pointer_emit(jit_state *jit, const cpu_access *access)
{
    x86_code *code = &jit->code;
    const uint32_t pointer = jit->pointer_count++;
    const int64_t size = (int64_t)hal_type_size(access->type);
    const int64_t ahead =
        access->offset * size +
        (access->index_type == HAL_TYPE_U32 ? (int64_t)FLIPPED * size : INT64_C(0));
    jit->pointer_forms[pointer] = JIT_ACCESS_LANES;
    x86_general(code, X86_LOAD, true, X86_RDX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)ahead);
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RDX, (int32_t)(8 * access->memory)));
    if (size < 4) {
        x86_general(code, X86_STORE, true, JIT_SCRATCH, x86_register(X86_RDX));
        x86_and_immediate(code, X86_RDX, 3);
        x86_general(code, X86_STORE, true, X86_RDX, jit_skip_of(pointer));
        x86_and_immediate(code, JIT_SCRATCH, -4);
    }
    x86_general(code, X86_STORE, true, JIT_SCRATCH,
                x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    return pointer;
}

/* The work-items that access memory; JIT_NONE: all. */
static jit_value active_value(jit_state *jit, const cpu_draft *draft)
{
    const uint32_t guard = jit->lower->accesses[draft->access].guard, mask = draft->step.mask;
    const jit_value x =
        guard == CPU_NONE ? JIT_NONE : jit_value_of(jit, JIT_OPEN_LANES, guard, HAL_TYPE_BOOL);
    const jit_value y =
        mask == CPU_NONE ? JIT_NONE : jit_value_of(jit, JIT_OPEN_LANES, mask, HAL_TYPE_BOOL);
    return x == JIT_NONE   ? y
           : y == JIT_NONE ? x
                           : jit_operation(&jit->lanes, HAL_IR_AND, HAL_TYPE_BOOL, HAL_TYPE_BOOL, x,
                                           y, JIT_NONE);
}

static jit_value index_value(jit_state *jit, const cpu_access *access)
{
    return access->index == CPU_NONE
               ? jit_affine_value(jit, access)
               : jit_value_of(jit, JIT_OPEN_LANES, access->index, access->index_type);
}

/* The node that was appended last accesses memory at a pointer. */
static void place_set(jit_state *jit, const cpu_draft *draft, uint32_t pointer)
{
    jit_last(&jit->lanes)->aux = pointer;
    jit_last(&jit->lanes)->access = draft->access;
}

void jit_gather_append(jit_state *jit, const cpu_draft *draft, const cpu_step *step)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    const uint32_t name = access->values[0];
    const bool is_view = jit->lower->names[name].view;
    if (jit->writes_memory || jit->pointer_count >= JIT_LOOP_POINTERS ||
        jit_slot_is(jit->posted_by, jit, name) ||
        (is_view && jit_slot_is(jit->used_by, jit, name))) {
        jit_all_flush(jit);
    }
    if (is_view) {
        jit_own_room_emit(jit, step->access->values[0]);
    }
    const uint32_t pointer = pointer_emit(jit, access);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    const jit_value index = index_value(jit, access), active = active_value(jit, draft);
    const jit_value d = jit_operation(&jit->lanes, JIT_GATHER, access->type,
                                      hal_type_of_value(access->type), active, index, JIT_NONE);
    place_set(jit, draft, pointer);
    const bool writes_memory = jit->writes_memory;
    jit_name_define(jit, JIT_OPEN_LANES, name, d);
    jit->writes_memory = writes_memory; /* its slot is no view of memory */
}

void jit_scatter_append(jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    if (jit->pointer_count >= JIT_LOOP_POINTERS) {
        jit_all_flush(jit);
    }
    const uint32_t pointer = pointer_emit(jit, access);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    const jit_value value = jit_value_of(jit, JIT_OPEN_LANES, access->values[0], access->type);
    const jit_value index = index_value(jit, access), active = active_value(jit, draft);
    jit_operation(&jit->lanes, JIT_SCATTER, access->type, HAL_TYPE_NONE, active, index, value);
    place_set(jit, draft, pointer);
    jit->writes_memory = true;
}

/* ---- instructions ---- */

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
    emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, index, x86_constant(&jit->code, FLIPPED, 4));
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
    indexed_emit(jit, is_wide(type) ? X86_PSCATTERDQ : X86_PSCATTERDD, type, a, mask,
                 element_at(jit, node, index, hal_type_size(type)));
}
