/* Calls of steps, and the addresses of contiguous accesses. Code for the usual case: the whole
 * group is active and the index does not wrap; everything else calls the step, which knows all
 * cases. */
#include "jit/emission/access.h"

#include "jit/registers/slow.h"
#include "jit/registers/registers.h"
#include "jit/registers/stream.h"

void jit_call_step(jit_state *jit, const cpu_draft *draft)
{
    const cpu_step *step = jit_step_of(jit, draft);
    x86_code *code = &jit->code;
    x86_zero_upper(code);
    x86_general(code, X86_STORE, true, JIT_WORKER, x86_register(X86_RDI));
    x86_load_immediate(code, X86_RSI, (uint64_t)(uintptr_t)step);
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)step->run);
    x86_call(code, JIT_SCRATCH);
}

x86_operand jit_block(const jit_state *jit, uint32_t slot)
{
    return x86_memory(JIT_ARENA, (int32_t)jit->lower->program->slot_offset[slot]);
}

static x86_operand slot_pointer(uint32_t slot)
{
    return x86_memory(JIT_SLOTS, (int32_t)(8 * slot));
}

static x86_operand frame_pointer(uint32_t pointer)
{
    return x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer));
}

/* A uniform index, as the interpreter reads it, to a register. */
static void index_load(jit_state *jit, uint32_t slot, hal_type type, uint32_t reg)
{
    const x86_operand from = jit_block(jit, slot);
    if (type == HAL_TYPE_I32) {
        x86_general(&jit->code, X86_SIGN_EXTEND, true, reg, from);
    } else {
        x86_general(&jit->code, X86_LOAD, hal_type_size(type) == 8, reg, from);
    }
}

static void mask_require_full(jit_state *jit, uint32_t slot, uint32_t otherwise)
{
    if (slot != CPU_NONE) {
        x86_general(&jit->code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(slot));
        x86_general(&jit->code, X86_CMP, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
        x86_jump_if(&jit->code, X86_NOT_EQUAL, otherwise);
    }
}

static uint32_t shift_of(hal_type type)
{
    const uint32_t size = hal_type_size(type);
    return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

int64_t jit_greatest_index(hal_type type)
{
    return type == HAL_TYPE_I32 ? INT32_MAX : type == HAL_TYPE_U32 ? UINT32_MAX : INT64_MAX;
}

static int64_t offset_bytes(const cpu_access *access)
{
    return (int64_t)access->offset * (int64_t)hal_type_size(access->type);
}

bool jit_line_is_supported(const cpu_access *access)
{
    const int64_t offset = offset_bytes(access);
    return access->run == 1 && access->width == 1 && offset <= INT32_MAX && offset >= INT32_MIN;
}

/* The address of the first element, in JIT_SCRATCH, by rcx and rdx. Jumps where the index wraps
 * around. */
static void line_address_emit(jit_state *jit, const cpu_access *access, uint32_t otherwise)
{
    x86_code *code = &jit->code;
    const uint32_t items = jit->lower->program->items, shift = shift_of(access->type);
    const int64_t offset = offset_bytes(access);
    index_load(jit, access->base, access->index_type, JIT_SCRATCH);
    x86_load_immediate(code, X86_RCX, (uint64_t)(jit_greatest_index(access->index_type) - items));
    x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_register(X86_RCX));
    x86_jump_if(code, X86_GREATER, otherwise);
    x86_general(code, X86_LOAD, true, X86_RDX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    if (shift != 0) {
        x86_shift_left(code, JIT_SCRATCH, shift);
    }
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RDX, (int32_t)(8 * access->memory)));
    if (offset != 0) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)offset);
    }
}

bool jit_access_emit(jit_state *jit, const cpu_draft *draft, uint32_t pointer, bool calls)
{
    const cpu_step *step = jit_step_of(jit, draft);
    const cpu_access *access = step->access;
    const uint32_t items = jit->lower->program->items;
    if (!jit_line_is_supported(access)) {
        return false;
    }
    if (items % CPU_BLOCK != 0 &&
        (pointer == JIT_NONE || access->type == HAL_TYPE_BOOL ||
         hal_type_size(access->type) < jit->target->mask_from)) { /* no mask of the work-items */
        return false;
    }
    x86_code *code = &jit->code;
    jit_slow *slow = jit_slow_add(jit);
    if (!slow) {
        return false;
    }
    slow->draft = calls ? draft : NULL;
    slow->pointer = pointer == JIT_NONE ? (uint32_t)JIT_VIEW_POINTER : pointer;
    if (pointer != JIT_NONE) {
        jit->open.pointer_forms[pointer] = JIT_ACCESS_LINE;
    }
    const uint32_t otherwise = slow->label, back = slow->back;
    mask_require_full(jit, step->mask, otherwise);
    mask_require_full(jit, access->guard, otherwise);
    line_address_emit(jit, access, otherwise);
    if (pointer == JIT_NONE) {
        x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(access->values[0]));
    }
    x86_general(code, X86_STORE, true, JIT_SCRATCH, frame_pointer(slow->pointer));
    x86_bind(code, back);
    jit_stream_check(jit, access,
                     pointer == JIT_NONE ? slot_pointer(access->values[0])
                                         : frame_pointer(pointer));
    return true;
}

/* The guard of an access: the condition that chose it, if it has one. */
static uint32_t guard_of(const jit_state *jit, const cpu_access *access, bool *is_chosen)
{
    const uint32_t guard = access->guard;
    *is_chosen = guard != CPU_NONE && jit->facts.chosen[guard] != 0;
    return *is_chosen ? jit->facts.chosen[guard] - 1 : guard;
}

static bool is_written_once(const jit_state *jit, uint32_t name)
{
    return name == CPU_NONE || jit->facts.writers[name] <= 1;
}

/* Whether an access has the leader's address except for its offset, if names that are written once
 * have kept their values. In rows the guard is up to the loop. */
static bool leader_is_near(const jit_state *jit, const cpu_draft *draft, jit_access_form form)
{
    const jit_leader *leader = &jit->open.leader;
    const cpu_access *x = &jit->lower->accesses[draft->access], *y = &leader->access;
    bool x_is_chosen, y_is_chosen;
    const uint32_t x_guard = guard_of(jit, x, &x_is_chosen),
                   y_guard = guard_of(jit, y, &y_is_chosen);
    bool near = leader->known && leader->form == form && form != JIT_ACCESS_ROW_ELEMENT &&
                form != JIT_ACCESS_NONE && x->memory == y->memory && x->type == y->type &&
                x->index_type == y->index_type && x->base == y->base && x->index == CPU_NONE &&
                y->index == CPU_NONE && x->width == 1 && y->width == 1 && x->run == y->run &&
                draft->mask == leader->mask && is_written_once(jit, draft->mask) &&
                is_written_once(jit, x->base);
    for (uint32_t k = 0; k < 3; k++) {
        near = near && x->factor[k] == y->factor[k] && is_written_once(jit, x->factor[k]);
    }
    const bool has_mask = form == JIT_ACCESS_ROWS || form == JIT_ACCESS_ROWS_APART;
    return near && (has_mask || (x_guard == y_guard && x_is_chosen == y_is_chosen &&
                                 is_written_once(jit, x_guard)));
}

void jit_leader_set(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool is_view,
                    uint32_t pointer)
{
    jit->open.leader = (jit_leader){.known = true,
                                    .is_view = is_view,
                                    .form = form,
                                    .mask = draft->mask,
                                    .pointer = pointer,
                                    .access = jit->lower->accesses[draft->access]};
}

bool jit_follow_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool calls,
                     jit_place *place)
{
    const cpu_step *step = jit_step_of(jit, draft);
    const jit_leader *leader = &jit->open.leader;
    const bool is_view = !place;
    if (!leader_is_near(jit, draft, form) || leader->is_view != is_view) {
        return false;
    }
    const int64_t distance = ((int64_t)step->access->offset - leader->access.offset) *
                             (int64_t)hal_type_size(step->access->type);
    if (distance > INT32_MAX || distance < INT32_MIN) {
        return false;
    }
    if (!is_view) {
        *place = (jit_place){.pointer = leader->pointer, .distance = (int32_t)distance};
    }
    jit_slow *slow = calls ? jit_slow_add(jit) : NULL;
    if (!slow) {
        return !calls;
    }
    x86_code *code = &jit->code;
    slow->draft = draft;
    const uint32_t back = slow->back;
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, frame_pointer(leader->pointer));
    x86_general(code, X86_TEST, true, JIT_SCRATCH, x86_register(JIT_SCRATCH));
    x86_jump_if(code, X86_EQUAL, slow->label);
    if (is_view) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)distance);
        x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->access->values[0]));
    }
    x86_bind(code, back);
    if (is_view) {
        jit_stream_check(jit, step->access, slot_pointer(step->access->values[0]));
    }
    return true;
}

/* A value that is known when compiling. */
static bool name_is(const jit_state *jit, uint32_t name, uint64_t bits)
{
    return name != CPU_NONE && jit->facts.constants[name] &&
           jit->facts.constants[name]->bits == bits;
}

/* A group of up to this many work-items and one dimension is a row too if it has a guard: one that
 * ends within the group is as likely as not. */
enum { MOST_ROW = 64 };

/* Rows of whole vectors, whose number is a power of two as that of vectors computed together. */
jit_access_form jit_access_form_of(const jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    const uint32_t *place = jit->lower->program->place, size = hal_type_size(access->type);
    const int64_t offset = (int64_t)access->offset * (int64_t)size;
    if (access->width != 1 || offset > INT32_MAX || offset < INT32_MIN) {
        return JIT_ACCESS_NONE;
    }
    const jit_access_form otherwise = access->run == 1 ? JIT_ACCESS_LINE : JIT_ACCESS_NONE;
    const bool is_guarded = access->guard != CPU_NONE && !jit->facts.chosen[access->guard];
    if (access->run == 1 && (place[1] != 1 || place[0] > MOST_ROW || !is_guarded)) {
        return otherwise;
    }
    if (access->index != CPU_NONE || place[0] % CPU_BLOCK != 0 || place[2] != 1 ||
        (place[0] & (place[0] - 1)) != 0 || hal_type_size(access->index_type) != 4 ||
        access->type == HAL_TYPE_BOOL) {
        return otherwise;
    }
    if (name_is(jit, access->factor[0], 1)) {
        const bool has_mask = access->guard == CPU_NONE || size >= jit->target->mask_from;
        return has_mask ? JIT_ACCESS_ROWS : otherwise;
    }
    const uint32_t apart = size == 4 ? jit_apart_of(jit, access) : 0;
    if (apart == 2 || (apart > 2 && !draft->stores)) {
        return JIT_ACCESS_ROWS_APART;
    }
    return name_is(jit, access->factor[0], 0) && size > 1 ? JIT_ACCESS_ROW_ELEMENT
                                                          : JIT_ACCESS_NONE;
}

void jit_private_emit(jit_state *jit, uint32_t slot)
{
    x86_general(&jit->code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(slot + 1));
    x86_general(&jit->code, X86_STORE, true, JIT_SCRATCH, slot_pointer(slot));
}

/* With a factor below MOST_FACTOR the last of CPU_MAX_ITEMS indices is less than 2^31 more than
 * the first. */
enum { MOST_FACTOR = 1 << 20, MOST_BASE = 1 << 30 };

bool jit_guard_is_in_loop(const jit_state *jit, const cpu_access *access, jit_access_form form,
                          bool loads)
{
    return access->guard != CPU_NONE &&
           (form == JIT_ACCESS_ROWS || form == JIT_ACCESS_ROWS_APART ||
            (form == JIT_ACCESS_ROW_ELEMENT && (loads || (jit->facts.of_rows[access->guard] &&
                                                          is_written_once(jit, access->guard)))));
}

void jit_rows_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, uint32_t pointer,
                   bool calls)
{
    const cpu_step *step = jit_step_of(jit, draft);
    const cpu_access *access = step->access, *names = &jit->lower->accesses[draft->access];
    const uint32_t shift = shift_of(access->type);
    const uint32_t apart = form == JIT_ACCESS_ROW_ELEMENT ? 0 : jit_apart_of(jit, names);
    const uint32_t row = apart * jit->lower->program->place[0];
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    x86_code *code = &jit->code;
    jit_slow *slow = jit_slow_add(jit);
    if (!slow) {
        return;
    }
    slow->draft = calls ? draft : NULL;
    slow->pointer = pointer;
    jit->open.pointer_forms[pointer] = form;
    jit->open.pointer_apart[pointer] = (uint8_t)apart;
    const uint32_t otherwise = slow->label, back = slow->back;
    mask_require_full(jit, step->mask, otherwise);
    if (!jit_guard_is_in_loop(jit, names, form, calls)) {
        mask_require_full(jit, access->guard, otherwise);
    }
    index_load(jit, access->factor[1], HAL_TYPE_U32, X86_RDX);
    x86_compare_immediate(code, X86_RDX, MOST_FACTOR);
    x86_jump_if(code, X86_ABOVE_EQUAL, otherwise);
    index_load(jit, access->base, access->index_type, JIT_SCRATCH);
    x86_compare_immediate(code, JIT_SCRATCH, MOST_BASE);
    x86_jump_if(code, X86_ABOVE_EQUAL, otherwise);
    x86_add_immediate(code, X86_RDX, -(int32_t)row);
    x86_general(code, X86_LOAD, true, X86_RCX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    if (shift != 0) {
        x86_shift_left(code, X86_RDX, shift);
        x86_shift_left(code, JIT_SCRATCH, shift);
    }
    x86_general(code, X86_STORE, true, X86_RDX, jit_skip_of(pointer));
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RCX, (int32_t)(8 * access->memory)));
    if (offset != 0) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)offset);
    }
    x86_general(code, X86_STORE, true, JIT_SCRATCH,
                x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    x86_bind(code, back);
}

bool jit_uniform_is_supported(const cpu_access *access)
{
    const int64_t offset = offset_bytes(access);
    return access->width == 1 && offset <= INT32_MAX && offset >= INT32_MIN &&
           hal_type_size(access->type) > 1;
}

void jit_uniform_emit(jit_state *jit, const cpu_access *access)
{
    const uint32_t shift = shift_of(access->type);
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    x86_code *code = &jit->code;
    index_load(jit, jit->lower->names[access->base].slot, access->index_type, JIT_SCRATCH);
    if (shift != 0) {
        x86_shift_left(code, JIT_SCRATCH, shift);
    }
    x86_general(code, X86_LOAD, true, X86_RCX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RCX, (int32_t)(8 * access->memory)));
    if (offset != 0) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)offset);
    }
}

void jit_choose_emit(jit_state *jit, const cpu_draft *draft)
{
    const cpu_step *step = jit_step_of(jit, draft);
    x86_code *code = &jit->code;
    const uint32_t condition = draft->a;
    if (jit->open.chosen_last == 1 + condition) {
        x86_general(code, X86_LOAD, true, JIT_SCRATCH, frame_pointer(JIT_CHOSEN_POINTER));
        x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
        return;
    }
    jit->open.chosen_last = is_written_once(jit, condition) ? 1 + condition : 0;
    const uint32_t chosen = x86_label(code);
    x86_general(code, X86_LOAD, false, X86_RCX, jit_block(jit, step->a));
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
    x86_general(code, X86_TEST, false, X86_RCX, x86_register(X86_RCX));
    x86_jump_if(code, X86_NOT_EQUAL, chosen);
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_EMPTY));
    x86_bind(code, chosen);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
    x86_general(code, X86_STORE, true, JIT_SCRATCH, frame_pointer(JIT_CHOSEN_POINTER));
}

/* The longest vector that divides `bytes`, a multiple of 16. */
static x86_form mask_form(const jit_state *jit, uint32_t bytes)
{
    uint32_t length = jit->target->length;
    while (bytes % (16u << length) != 0) {
        length--;
    }
    return (x86_form){.length = (uint8_t)length};
}

/* d = a and b, in its private buffer. */
static void masks_combine(jit_state *jit, const cpu_step *step)
{
    x86_code *code = &jit->code;
    const uint32_t items = jit->lower->program->items;
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(step->a));
    x86_general(code, X86_LOAD, true, X86_RCX, slot_pointer(step->b));
    x86_general(code, X86_LOAD, true, X86_RDX, slot_pointer(step->d + 1));
    x86_general(code, X86_STORE, true, X86_RDX, slot_pointer(step->d));
    const x86_form form = mask_form(jit, items);
    for (uint32_t at = 0; at < items; at += 16u << form.length) {
        const int32_t disp = (int32_t)at;
        x86_vector(code, X86_MOVDQU32, form, 0, 0, x86_memory(JIT_SCRATCH, disp));
        x86_vector(code, X86_PANDD, form, 0, 0, x86_memory(X86_RCX, disp));
        x86_vector(code, X86_MOVDQU32_STORE, form, 0, 0, x86_memory(X86_RDX, disp));
    }
}

bool jit_both_emit(jit_state *jit, const cpu_draft *draft)
{
    const cpu_step *step = jit_step_of(jit, draft);
    x86_code *code = &jit->code;
    const bool has_code = jit->lower->program->items % CPU_BLOCK == 0;
    jit_slow *slow = has_code ? NULL : jit_slow_add(jit);
    if (!slow && !has_code) {
        return false;
    }
    const uint32_t otherwise = has_code ? x86_label(code) : slow->label;
    const uint32_t back = has_code ? x86_label(code) : slow->back;
    if (slow) {
        slow->draft = draft;
    }
    mask_require_full(jit, step->a, otherwise);
    mask_require_full(jit, step->b, otherwise);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
    if (has_code) {
        x86_jump(code, back);
        x86_bind(code, otherwise);
        masks_combine(jit, step);
    }
    x86_bind(code, back);
    return true;
}

/* How much less and more than its base an affine index is; false: not known. */
static bool access_reach(const jit_state *jit, const cpu_draft *draft, int32_t reach[2])
{
    const cpu_access *names = &jit->lower->accesses[draft->access];
    const uint32_t *place = jit->lower->program->place;
    int64_t least = 0, greatest = 0;
    for (uint32_t k = 0; k < 3; k++) {
        if (place[k] == 1) {
            continue;
        }
        const cpu_constant_name *factor =
            names->factor[k] == CPU_NONE ? NULL : jit->facts.constants[names->factor[k]];
        if (!factor) {
            return false;
        }
        const int64_t span = (int64_t)(int32_t)(uint32_t)factor->bits * (place[k] - 1);
        least += span < 0 ? span : 0;
        greatest += span > 0 ? span : 0;
    }
    reach[0] = (int32_t)least;
    reach[1] = (int32_t)greatest;
    return least == reach[0] && greatest == reach[1];
}

void jit_of_rows_note(jit_state *jit, const cpu_draft *draft)
{
    bool of_rows = draft->action.class == CPU_STEP_CHOOSE;
    if (draft->access != CPU_NONE) {
        of_rows = jit->lower->accesses[draft->access].index == CPU_NONE &&
                  name_is(jit, jit->lower->accesses[draft->access].factor[0], 0);
    } else if (draft->action.class == CPU_STEP_BOTH) {
        of_rows = jit->facts.of_rows[draft->a] && jit->facts.of_rows[draft->b] &&
                  is_written_once(jit, draft->a) && is_written_once(jit, draft->b);
    }
    jit->facts.of_rows[draft->d] = of_rows;
}

/* The masks of the first lanes of a group: that of n lanes begins n bytes before `zeros`. */
#define TRUE_16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define TRUE_128 TRUE_16, TRUE_16, TRUE_16, TRUE_16, TRUE_16, TRUE_16, TRUE_16, TRUE_16
static const struct {
    uint8_t ones[CPU_MAX_ITEMS], zeros[CPU_MAX_ITEMS + CPU_BLOCK];
} first_lanes = {
    .ones = {TRUE_128, TRUE_128, TRUE_128, TRUE_128, TRUE_128, TRUE_128, TRUE_128, TRUE_128}};

/* The lanes that have indices below a bound. */
typedef enum bound_shape {
    BOUND_ANY,
    BOUND_LANES,  /* the first of the group */
    BOUND_ROWS,   /* the first rows */
    BOUND_COLUMNS /* the first of each row */
} bound_shape;

/* An affine index may grow by 1 from work-item to work-item of the whole group, or of its rows of
 * whole vectors, or from row to row. */
static bound_shape bound_shape_of(const jit_state *jit, const cpu_draft *draft)
{
    const uint32_t *place = jit->lower->program->place;
    const cpu_access *access = &jit->lower->accesses[draft->access];
    const uint32_t *factor = access->factor;
    const bool has_rows = place[0] % CPU_BLOCK == 0 && (place[0] & (place[0] - 1)) == 0;
    if (access->run) {
        return BOUND_LANES;
    }
    if (place[2] != 1 || place[1] == 1) {
        return BOUND_ANY;
    }
    if (has_rows && name_is(jit, factor[0], 1) && name_is(jit, factor[1], 0)) {
        return BOUND_COLUMNS;
    }
    return name_is(jit, factor[0], 0) && name_is(jit, factor[1], 1) ? BOUND_ROWS : BOUND_ANY;
}

/* Fills the private buffer of a mask with the row at rcx. */
static void rows_fill(jit_state *jit, uint32_t slot)
{
    x86_code *code = &jit->code;
    const uint32_t *place = jit->lower->program->place;
    const x86_form form = mask_form(jit, place[0]);
    const uint32_t bytes = 16u << form.length;
    x86_general(code, X86_LOAD, true, X86_RDX, slot_pointer(slot + 1));
    for (uint32_t at = 0; at < place[0]; at += bytes) {
        x86_vector(code, X86_MOVDQU32, form, 0, 0, x86_memory(X86_RCX, (int32_t)at));
        for (uint32_t row = 0; row < place[1]; row++) {
            x86_vector(code, X86_MOVDQU32_STORE, form, 0, 0,
                       x86_memory(X86_RDX, (int32_t)(row * place[0] + at)));
        }
    }
    x86_general(code, X86_STORE, true, X86_RDX, x86_register(X86_RCX));
}

/* The first lanes, rows or lanes of rows are below the bound in rax, or none; rsi has the last
 * index. */
static void first_lanes_emit(jit_state *jit, const cpu_step *step, bound_shape shape)
{
    x86_code *code = &jit->code;
    const uint32_t *place = jit->lower->program->place;
    const uint32_t chosen = x86_label(code);
    const uint32_t extent = shape == BOUND_LANES  ? jit->lower->program->items
                            : shape == BOUND_ROWS ? place[1]
                                                  : place[0];
    const int32_t last = (int32_t)extent - 1;
    x86_general(code, X86_SUB, true, JIT_SCRATCH, x86_register(X86_RSI));
    x86_add_immediate(code, JIT_SCRATCH, last + (step->aux != 0));
    x86_general(code, X86_LOAD, true, X86_RCX, slot_pointer(CPU_SLOT_EMPTY));
    x86_compare_immediate(code, JIT_SCRATCH, 0);
    x86_jump_if(code, X86_LESS_EQUAL, chosen);
    if (shape == BOUND_ROWS) {
        x86_multiply_immediate(code, JIT_SCRATCH, (int32_t)place[0]);
    }
    x86_load_immediate(code, X86_RCX, (uint64_t)(uintptr_t)first_lanes.zeros);
    x86_general(code, X86_SUB, true, X86_RCX, x86_register(JIT_SCRATCH));
    if (shape == BOUND_COLUMNS) {
        rows_fill(jit, step->d);
    }
    x86_bind(code, chosen);
    x86_general(code, X86_STORE, true, X86_RCX, slot_pointer(step->d));
}

bool jit_bound_emit(jit_state *jit, const cpu_draft *draft)
{
    const cpu_step *step = jit_step_of(jit, draft);
    const cpu_access *access = step->access;
    const hal_type type = access->index_type;
    const bool within = draft->action.class == CPU_STEP_WITHIN;
    int32_t reach[2];
    if (access->index != CPU_NONE || hal_type_size(type) != 4 || !access_reach(jit, draft, reach)) {
        return false;
    }
    x86_code *code = &jit->code;
    jit_slow *slow = jit_slow_add(jit);
    if (!slow) {
        return false;
    }
    slow->draft = draft;
    const uint32_t otherwise = slow->label, back = slow->back;
    index_load(jit, step->a, type, JIT_SCRATCH);
    index_load(jit, access->base, type, X86_RDX);
    x86_general(code, X86_LEA, true, X86_RSI, x86_memory(X86_RDX, reach[1]));
    x86_load_immediate(code, X86_RCX, (uint64_t)jit_greatest_index(type));
    x86_general(code, X86_CMP, true, X86_RSI, x86_register(X86_RCX));
    x86_jump_if(code, X86_GREATER, otherwise);
    if (reach[0] < 0) {
        x86_add_immediate(code, X86_RDX, reach[0]);
        x86_load_immediate(code, X86_RCX, type == HAL_TYPE_I32 ? (uint64_t)(int64_t)INT32_MIN : 0);
        x86_general(code, X86_CMP, true, X86_RDX, x86_register(X86_RCX));
        x86_jump_if(code, X86_LESS, otherwise);
    }
    const bound_shape shape = within ? bound_shape_of(jit, draft) : BOUND_ANY;
    const uint32_t some = shape != BOUND_ANY ? x86_label(code) : otherwise;
    /* index < bound: greatest < bound; bound < index: bound < least; or equal where aux is 1. */
    x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_register(within ? X86_RSI : X86_RDX));
    x86_jump_if(code,
                within ? (step->aux ? X86_LESS : X86_LESS_EQUAL)
                       : (step->aux ? X86_GREATER : X86_GREATER_EQUAL),
                some);
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
    x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
    if (shape != BOUND_ANY) {
        x86_jump(code, back);
        x86_bind(code, some);
        first_lanes_emit(jit, step, shape);
    }
    x86_bind(code, back);
    return true;
}

bool jit_accesses_differ(const jit_state *jit, const cpu_access *x, const cpu_access *y)
{
    bool same = x->index == CPU_NONE && y->index == CPU_NONE && x->base == y->base &&
                x->index_type == y->index_type && jit->facts.writers[x->base] <= 1;
    for (uint32_t k = 0; k < 3 && same; k++) {
        same = x->factor[k] == y->factor[k] && jit->facts.writers[x->factor[k]] <= 1;
    }
    return same && x->width == 1 && y->width == 1 && x->offset != y->offset;
}
