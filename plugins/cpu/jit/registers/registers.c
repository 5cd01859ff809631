/* Where the values of a lane program are: registers, slots, the frame. A value that is needed last
 * leaves its register first. */
#include "jit/registers/registers.h"

#include "jit/registers/stream.h"

x86_form jit_form(const jit_state *jit, hal_type type)
{
    const bool half = jit->loop.program->wide && hal_type_size(type) != 8;
    return (x86_form){.length = (uint8_t)(jit->target->length - half)};
}

uint32_t jit_apart_of(const jit_state *jit, const cpu_access *access)
{
    enum { MOST_APART = 4 };
    const cpu_constant_name *apart =
        access->factor[0] == CPU_NONE ? NULL : jit->facts.constants[access->factor[0]];
    const cpu_constant_name *row =
        access->factor[1] == CPU_NONE ? NULL : jit->facts.constants[access->factor[1]];
    const bool is_transposed = row && row->bits == 1; /* steps transpose squares */
    return !apart                                           ? 0
           : apart->bits == 1                               ? 1
           : apart->bits < 2 || apart->bits > MOST_APART    ? 0
           : !jit->target->has_apart_loads || is_transposed ? 0
                                                            : (uint32_t)apart->bits;
}

static jit_entry *entry_of(jit_state *jit, jit_value value)
{
    return &jit->loop.program->values[value];
}

uint32_t jit_items_mask(jit_state *jit, uint32_t part)
{
    const cpu_program *program = jit->lower->program;
    if (program->items % CPU_BLOCK == 0) {
        return 0;
    }
    x86_operand from = x86_memory(JIT_ARENA, (int32_t)program->slot_offset[CPU_SLOT_FULL]);
    from.disp += (int32_t)(part * jit_lanes(jit, jit->loop.program));
    from.index = jit->loop.in_loop ? JIT_LANE : X86_NO_REGISTER;
    jit->target->bool_load(jit, jit->target->mask, from);
    return jit->target->mask;
}

uint32_t jit_pointer_register(jit_state *jit, uint32_t key)
{
    uint32_t base = JIT_SCRATCH;
    for (uint32_t i = 0; i < jit->registers.loop_pointers; i++) {
        if (jit->registers.pointers[i].key == key) {
            base = jit->registers.pointers[i].reg;
        }
    }
    if (base == JIT_SCRATCH) {
        const x86_operand place =
            key & JIT_POINTER_ACCESS
                ? x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * (key & 0xffff)))
                : x86_memory(JIT_SLOTS, (int32_t)(8 * key));
        x86_general(&jit->code, X86_LOAD, true, base, place);
    }
    return base;
}

/* Memory of lanes that are 8, 12 or 16 bytes apart. */
static x86_operand pointed_apart(jit_state *jit, uint32_t base, uint32_t bytes, uint32_t lane)
{
    enum { MOST_SCALE = 8 };
    x86_operand operand = x86_memory(base, 0);
    if (jit->loop.in_loop) {
        operand.index = JIT_LANE;
        operand.scale = MOST_SCALE;
        if (bytes > MOST_SCALE) {
            x86_general(&jit->code, X86_LEA, true, JIT_SCRATCH, operand);
            operand.base = JIT_SCRATCH;
            operand.scale = (uint8_t)(bytes - MOST_SCALE);
        }
    }
    operand.disp = (int32_t)(lane * bytes);
    return operand;
}

x86_operand jit_pointed(jit_state *jit, uint32_t key, uint32_t bytes, uint32_t part)
{
    uint32_t base = jit_pointer_register(jit, key);
    const uint32_t lane = part * jit_lanes(jit, jit->loop.program);
    const jit_access_form form =
        key & JIT_POINTER_ACCESS ? jit->open.pointer_forms[key & 0xffff] : JIT_ACCESS_LINE;
    for (uint32_t row = 0; form != JIT_ACCESS_LINE && row < lane / jit->lower->program->place[0];
         row++) {
        if (base != JIT_SCRATCH) {
            x86_general(&jit->code, X86_STORE, true, base, x86_register(JIT_SCRATCH));
            base = JIT_SCRATCH;
        }
        x86_general(&jit->code, X86_ADD, true, base, jit_skip_of(key & 0xffff));
    }
    if (form == JIT_ACCESS_ROW_ELEMENT) {
        return x86_memory(base, 0);
    }
    if (form == JIT_ACCESS_ROWS_APART) {
        return pointed_apart(jit, base, jit->open.pointer_apart[key & 0xffff] * bytes, lane);
    }
    x86_operand operand = x86_memory(base, (int32_t)(lane * bytes));
    if (jit->loop.in_loop) {
        operand.index = JIT_LANE;
        operand.scale = (uint8_t)bytes;
    }
    return operand;
}

/* The slot of a value's name. */
static x86_operand home_of(jit_state *jit, const jit_entry *entry)
{
    const cpu_name *n = &jit->lower->names[entry->name];
    if (n->view) {
        return jit_pointed(jit, n->slot, n->bytes, entry->part);
    }
    x86_operand operand = x86_memory(JIT_ARENA, (int32_t)jit->lower->program->slot_offset[n->slot]);
    if (!n->uniform) {
        operand.disp += (int32_t)(entry->part * jit_lanes(jit, jit->loop.program) * n->bytes);
    }
    if (!n->uniform && jit->loop.in_loop) {
        operand.index = JIT_LANE;
        operand.scale = n->bytes;
    }
    return operand;
}

/* `apart` has bits of the lane's number in the step of the loop, which choose another part, and
 * bits of the step's. */
static void lane_toggle(jit_state *jit, uint32_t apart)
{
    const uint32_t step = jit_lanes(jit, jit->loop.program) * jit->loop.parts;
    if (jit->loop.in_loop && (apart & ~(step - 1)) != 0) {
        x86_load_immediate(&jit->code, JIT_SCRATCH, apart & ~(step - 1));
        x86_general(&jit->code, X86_XOR, false, JIT_LANE, x86_register(JIT_SCRATCH));
    }
}

x86_operand jit_elsewhere(jit_state *jit, const jit_node *node, uint32_t apart)
{
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), step = lanes * jit->loop.parts;
    jit_entry entry = *entry_of(jit, node->a[0]);
    entry.part = (uint8_t)(entry.part ^ (apart & (step - 1)) / lanes);
    lane_toggle(jit, apart);
    return home_of(jit, &entry);
}

void jit_elsewhere_end(jit_state *jit, uint32_t apart)
{
    lane_toggle(jit, apart);
}

static x86_operand frame_of(jit_state *jit, jit_entry *entry)
{
    if (entry->frame == JIT_NONE) {
        entry->frame = jit->registers.frame_vectors++;
    }
    return x86_memory(X86_RSP, (int32_t)(JIT_FRAME_SPILLS + 64 * entry->frame));
}

static bool has_home(const jit_state *jit, const jit_entry *entry)
{
    return entry->name != JIT_NONE &&
           (entry->kind != JIT_TEMPORARY || entry->keep || !jit->lower->names[entry->name].view);
}

/* Whether a value belongs in a mask register. */
static bool is_mask(const jit_state *jit, const jit_entry *entry)
{
    return entry->type == HAL_TYPE_BOOL && jit->target->masks > 0;
}

static void value_store(jit_state *jit, const jit_entry *entry, x86_operand to)
{
    if (entry->type == HAL_TYPE_BOOL) {
        jit->target->bool_store(jit, entry->reg, to);
    } else {
        x86_vector(&jit->code, X86_MOVDQU32_STORE, jit_form(jit, entry->type), entry->reg, 0, to);
    }
}

/* The block of a uniform value has more lanes than a vector may have. */
void jit_store_home(jit_state *jit, jit_value value)
{
    const jit_entry *entry = entry_of(jit, value);
    const uint32_t lanes = jit_lanes(jit, jit->loop.program);
    x86_operand to = home_of(jit, entry);
    const uint32_t viewed = jit->facts.viewed[entry->name];
    if (viewed != 0 && !jit->loop.is_uniform &&
        jit_stream_takes(jit, &jit->lower->accesses[viewed - 1])) {
        jit_stream_store(jit, jit_form(jit, entry->type), entry->reg, to);
        return;
    }
    for (uint32_t lane = 0; lane < (jit->loop.is_uniform ? (uint32_t)CPU_BLOCK : lanes);
         lane += lanes) {
        value_store(jit, entry, to);
        to.disp += (int32_t)(lanes * hal_type_size(entry->type));
    }
}

void jit_load_home(jit_state *jit, jit_value value, uint32_t reg)
{
    const jit_entry *entry = entry_of(jit, value);
    const x86_operand from = home_of(jit, entry);
    if (entry->type == HAL_TYPE_BOOL) {
        jit->target->bool_load(jit, reg, from);
    } else {
        x86_vector(&jit->code, X86_MOVDQU32, jit_form(jit, entry->type), reg, 0, from);
    }
}

/* Frees a register; the value goes to memory unless it is there. */
static void register_empty(jit_state *jit, jit_value value)
{
    jit_entry *entry = entry_of(jit, value);
    if (!entry->saved && entry->next != JIT_NONE) {
        if (has_home(jit, entry)) {
            jit_store_home(jit, value);
        } else if (entry->type == HAL_TYPE_BOOL) {
            jit->target->bool_spill(jit, entry->reg, frame_of(jit, entry));
        } else {
            value_store(jit, entry, frame_of(jit, entry));
        }
        entry->saved = true;
    }
    entry->reg = JIT_NO_REGISTER;
}

/* A free register, or the one whose value is needed last. */
static uint32_t register_take(jit_state *jit, jit_value value)
{
    const bool mask = is_mask(jit, entry_of(jit, value));
    jit_value *in = mask ? jit->registers.in_mask : jit->registers.in_vector;
    uint32_t *pinned = mask ? &jit->registers.pinned_masks : &jit->registers.pinned_vectors;
    const uint32_t temporaries = 7u << JIT_TEMPORARY_A;
    const uint32_t locked =
        mask ? 0 : jit->registers.locked_vectors | jit->target->reserved | temporaries;
    const uint32_t count = mask ? JIT_MASKS : JIT_VECTORS;
    uint32_t best = JIT_NONE;
    for (uint32_t reg = mask; reg < count; reg++) {
        if ((*pinned | locked) >> reg & 1) {
            continue;
        }
        if (in[reg] == JIT_NONE) {
            best = reg;
            break;
        }
        if (best == JIT_NONE || entry_of(jit, in[reg])->next > entry_of(jit, in[best])->next) {
            best = reg;
        }
    }
    if (best == JIT_NONE) { /* one operation needs more than there are */
        jit->failed = true;
        best = count - 1;
    }
    if (in[best] != JIT_NONE) {
        register_empty(jit, in[best]);
    }
    in[best] = value;
    *pinned |= UINT32_C(1) << best;
    entry_of(jit, value)->reg = (uint8_t)best;
    return best;
}

static void register_pin(jit_state *jit, const jit_entry *entry)
{
    if (is_mask(jit, entry)) {
        jit->registers.pinned_masks |= UINT32_C(1) << entry->reg;
    } else {
        jit->registers.pinned_vectors |= UINT32_C(1) << entry->reg;
    }
}

/* Memory that instructions on whole vectors take; elements of constants are broadcast. */
static x86_operand memory_of(jit_state *jit, jit_entry *entry)
{
    if (entry->kind == JIT_CONSTANT) {
        return x86_constant(&jit->code, entry->bits, hal_type_size(entry->type));
    }
    if (entry->kind == JIT_UNIFORM) {
        x86_operand operand = home_of(jit, entry);
        operand.broadcast = true;
        return operand;
    }
    return has_home(jit, entry) ? home_of(jit, entry) : frame_of(jit, entry);
}

static void value_load(jit_state *jit, jit_value value, uint32_t reg)
{
    jit_entry *entry = entry_of(jit, value);
    x86_code *code = &jit->code;
    const bool wide = hal_type_size(entry->type) == 8;
    if (entry->type == HAL_TYPE_BOOL && entry->kind == JIT_CONSTANT) {
        jit->target->bool_set(jit, reg, entry->bits != 0);
    } else if (entry->type == HAL_TYPE_BOOL) {
        if (has_home(jit, entry)) {
            jit->target->bool_load(jit, reg, home_of(jit, entry));
        } else {
            jit->target->bool_fill(jit, reg, frame_of(jit, entry));
        }
    } else if (entry->kind == JIT_CONSTANT || entry->kind == JIT_UNIFORM) {
        x86_vector(code, wide ? X86_PBROADCASTQ : X86_PBROADCASTD, jit_form(jit, entry->type), reg,
                   0, memory_of(jit, entry));
    } else {
        x86_vector(code, X86_MOVDQU32, jit_form(jit, entry->type), reg, 0, memory_of(jit, entry));
    }
}

uint32_t jit_use(jit_state *jit, const jit_node *node, uint32_t k)
{
    jit_entry *entry = entry_of(jit, node->a[k]);
    if (entry->reg == JIT_NO_REGISTER) {
        const uint32_t reg = register_take(jit, node->a[k]);
        value_load(jit, node->a[k], reg);
    }
    register_pin(jit, entry);
    return entry->reg;
}

/* Whether the other vectors of the step read the operand next, and a register is free for it: it is
 * then broadcast once for all of them. */
static bool is_shared(const jit_state *jit, const jit_node *node, uint32_t k)
{
    const uint32_t temporaries = 7u << JIT_TEMPORARY_A;
    const uint32_t locked = jit->registers.locked_vectors | jit->target->reserved | temporaries;
    const uint32_t next = node->next[k], at = (uint32_t)(node - jit->loop.program->nodes);
    bool is_free = false;
    for (uint32_t reg = 0; reg < JIT_VECTORS && next != JIT_NONE && next < at + jit->loop.parts;
         reg++) {
        is_free = is_free || (jit->registers.in_vector[reg] == JIT_NONE &&
                              !((jit->registers.pinned_vectors | locked) >> reg & 1));
    }
    return is_free;
}

x86_operand jit_source(jit_state *jit, const jit_node *node, uint32_t k)
{
    jit_entry *entry = entry_of(jit, node->a[k]);
    const bool broadcast = entry->kind == JIT_CONSTANT || entry->kind == JIT_UNIFORM;
    if (entry->reg == JIT_NO_REGISTER && entry->type != HAL_TYPE_BOOL &&
        ((broadcast && !is_shared(jit, node, k)) || node->next[k] == JIT_NONE)) {
        return memory_of(jit, entry);
    }
    return x86_register(jit_use(jit, node, k));
}

uint32_t jit_result(jit_state *jit, const jit_node *node)
{
    return register_take(jit, node->d);
}

void jit_register_set(jit_state *jit, jit_value value, uint32_t reg)
{
    jit->registers.in_vector[reg] = value;
    entry_of(jit, value)->reg = (uint8_t)reg;
}

uint32_t jit_result_over(jit_state *jit, const jit_node *node, uint32_t k)
{
    jit_entry *entry = entry_of(jit, node->a[k]);
    bool other = node->next[k] != JIT_NONE || entry->reg == JIT_NO_REGISTER ||
                 (jit->registers.locked_vectors >> entry->reg & 1) != 0;
    for (uint32_t i = 0; i < JIT_OPERANDS; i++) {
        other = other || (i != k && node->a[i] == node->a[k]);
    }
    if (other) {
        return jit_result(jit, node);
    }
    const uint32_t reg = entry->reg;
    entry->reg = JIT_NO_REGISTER;
    jit_register_set(jit, node->d, reg);
    return reg;
}

static void value_forget(jit_state *jit, jit_value value)
{
    jit_entry *entry = entry_of(jit, value);
    if (entry->reg != JIT_NO_REGISTER) {
        jit_value *in = is_mask(jit, entry) ? jit->registers.in_mask : jit->registers.in_vector;
        in[entry->reg] = JIT_NONE;
        entry->reg = JIT_NO_REGISTER;
    }
}

/* Whether a register has an operand that the function at `nodes` expects there and that nothing
 * else needs. */
static bool is_in_place(const jit_state *jit, const jit_node *nodes, uint32_t reg)
{
    const uint32_t k = reg >= JIT_FUNCTION_Y, part = reg - (k ? JIT_FUNCTION_Y : JIT_FUNCTION_X);
    return part < jit->loop.parts && nodes[part].a[k] != JIT_NONE &&
           nodes[part].a[k] == jit->registers.in_vector[reg] && nodes[part].next[k] == JIT_NONE;
}

static void masks_empty(jit_state *jit)
{
    for (uint32_t reg = 1; reg < JIT_MASKS; reg++) {
        if (jit->registers.in_mask[reg] != JIT_NONE) {
            register_empty(jit, jit->registers.in_mask[reg]);
            jit->registers.in_mask[reg] = JIT_NONE;
        }
    }
}

/* All that a function may overwrite goes to memory. */
static void registers_spare(jit_state *jit, const jit_node *nodes)
{
    for (uint32_t reg = 0; reg < JIT_VECTORS; reg++) {
        if (jit->registers.in_vector[reg] != JIT_NONE && !is_in_place(jit, nodes, reg)) {
            jit_register_empty(jit, reg);
        }
    }
    masks_empty(jit);
}

static void argument_place(jit_state *jit, jit_value value, uint32_t reg)
{
    const jit_entry *entry = entry_of(jit, value);
    if (entry->reg == JIT_NO_REGISTER) {
        value_load(jit, value, reg);
    } else if (entry->reg != reg) {
        x86_vector(&jit->code, X86_MOVDQU32, jit_form(jit, entry->type), reg, 0,
                   x86_register(entry->reg));
    }
}

void jit_arguments(jit_state *jit, const jit_node *nodes)
{
    registers_spare(jit, nodes);
    for (uint32_t part = 0; part < jit->loop.parts; part++) {
        if (nodes[part].a[1] != JIT_NONE) {
            argument_place(jit, nodes[part].a[1], JIT_FUNCTION_Y + part);
        }
        argument_place(jit, nodes[part].a[0], JIT_FUNCTION_X + part);
    }
    for (uint32_t reg = JIT_FUNCTION_X; reg < JIT_FUNCTION_Y + JIT_MOST_PARTS; reg++) {
        if (jit->registers.in_vector[reg] != JIT_NONE) {
            entry_of(jit, jit->registers.in_vector[reg])->reg = JIT_NO_REGISTER;
            jit->registers.in_vector[reg] = JIT_NONE;
        }
    }
}

void jit_register_empty(jit_state *jit, uint32_t reg)
{
    if (jit->registers.in_vector[reg] != JIT_NONE) {
        register_empty(jit, jit->registers.in_vector[reg]);
        jit->registers.in_vector[reg] = JIT_NONE;
    }
}

void jit_release(jit_state *jit, const jit_node *node)
{
    for (uint32_t k = JIT_OPERANDS; k-- > 0;) {
        if (node->a[k] != JIT_NONE) {
            entry_of(jit, node->a[k])->next = node->next[k];
        }
    }
    for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
        if (node->a[k] != JIT_NONE && entry_of(jit, node->a[k])->next == JIT_NONE) {
            value_forget(jit, node->a[k]);
        }
    }
    if (node->d != JIT_NONE) {
        jit_entry *entry = entry_of(jit, node->d);
        entry->next = node->next_d;
        if (entry->keep) {
            jit_store_home(jit, node->d);
            entry->saved = true;
        }
        if (entry->next == JIT_NONE) {
            value_forget(jit, node->d);
        }
    }
    jit->registers.pinned_vectors = jit->registers.pinned_masks = 0;
}

void jit_registers_used(const jit_state *jit, uint32_t *vectors, uint32_t *masks)
{
    *vectors = *masks = 0;
    for (uint32_t reg = 0; reg < JIT_VECTORS; reg++) {
        *vectors |= (uint32_t)(jit->registers.in_vector[reg] != JIT_NONE) << reg;
    }
    for (uint32_t reg = 0; reg < JIT_MASKS; reg++) {
        *masks |= (uint32_t)(jit->registers.in_mask[reg] != JIT_NONE) << reg;
    }
}

void jit_registers_lock(jit_state *jit)
{
    uint32_t vectors, masks;
    masks_empty(jit);
    jit_registers_used(jit, &vectors, &masks);
    jit->registers.locked_vectors |= vectors;
}

void jit_registers_restore(jit_state *jit)
{
    for (uint32_t reg = 0; reg < JIT_VECTORS; reg++) {
        if (jit->registers.in_vector[reg] != JIT_NONE &&
            !(jit->registers.locked_vectors >> reg & 1)) {
            value_forget(jit, jit->registers.in_vector[reg]);
        }
    }
    for (uint32_t reg = 0; reg < JIT_MASKS; reg++) {
        if (jit->registers.in_mask[reg] != JIT_NONE) {
            value_forget(jit, jit->registers.in_mask[reg]);
        }
    }
}

void jit_registers_clear(jit_state *jit)
{
    jit->registers.locked_vectors = jit->loop.choice_count = jit->loop.element_end = 0;
    for (uint32_t i = 0; i < JIT_VECTORS; i++) {
        jit->registers.in_vector[i] = JIT_NONE;
    }
    for (uint32_t i = 0; i < JIT_MASKS; i++) {
        jit->registers.in_mask[i] = JIT_NONE;
    }
    jit->registers.pinned_vectors = jit->registers.pinned_masks = 0;
}
