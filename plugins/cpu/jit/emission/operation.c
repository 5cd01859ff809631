/* The instructions of each operation that instruction sets share; avx512.c and avx2.c have the
 * others. Operands are taken in registers first, then the result's register, then the one operand
 * that may be in memory: taking a register may store another value. */
#include "jit/emission/operation.h"

#include "jit/emission/access.h"
#include "jit/emission/ahead.h"
#include "jit/emission/apart.h"
#include "jit/registers/slow.h"
#include "jit/emission/emit.h"
#include "jit/emission/indexed.h"
#include "jit/registers/registers.h"
#include "jit/registers/stream.h"

#include <stdlib.h>

/* d = op a in one instruction, with an immediate if it has one. */
static void emit_unary(jit_state *jit, const jit_node *node, uint32_t name, hal_type form,
                       uint32_t immediate)
{
    const uint32_t d = jit_result(jit, node);
    emit_immediate(jit, name, form, d, 0, jit_source(jit, node, 0), immediate);
}

static void emit_fma(jit_state *jit, const jit_node *node)
{
    jit_node n = *node;
    const jit_entry *values = jit->loop.program->values;
    if (values[n.a[0]].reg == JIT_NO_REGISTER && values[n.a[1]].reg != JIT_NO_REGISTER &&
        n.a[0] != n.a[1]) {
        n.a[0] = node->a[1];
        n.a[1] = node->a[0];
        n.next[0] = node->next[1];
        n.next[1] = node->next[0];
    }
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, &n, 0);
    if (values[n.a[2]].reg == JIT_NO_REGISTER) {
        const uint32_t b = jit_use(jit, &n, 1), d = jit_result_over(jit, &n, 0);
        register_copy(jit, type, d, a);
        emit(jit, by_size(type, X86_FMADD213PS, X86_FMADD213PD), type, d, b,
             jit_source(jit, &n, 2));
    } else {
        const uint32_t c = jit_use(jit, &n, 2), d = jit_result_over(jit, &n, 2);
        register_copy(jit, type, d, c);
        emit(jit, by_size(type, X86_FMADD231PS, X86_FMADD231PD), type, d, a,
             jit_source(jit, &n, 1));
    }
}

/* The high halves of the products of even lanes, and of odd ones. */
static void emit_mulhi(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t multiply = hal_type_is_signed(type) ? X86_PMULDQ : X86_PMULUDQ;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    emit_immediate(jit, X86_PSRLQ, type, JIT_TEMPORARY_A, 0, x86_register(a), 32);
    emit_immediate(jit, X86_PSRLQ, type, JIT_TEMPORARY_B, 0, x86_register(b), 32);
    emit(jit, multiply, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, x86_register(JIT_TEMPORARY_B));
    emit(jit, multiply, type, d, a, x86_register(b));
    emit_immediate(jit, X86_PSRLQ, type, d, 0, x86_register(d), 32);
    emit(jit, X86_PANDQ, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A,
         x86_constant(&jit->code, UINT64_C(0xffffffff00000000), 8));
    emit(jit, X86_PORD, type, d, d, x86_register(JIT_TEMPORARY_A));
}

/* ---- conversions ---- */

static void emit_f16_bits(jit_state *jit, x86_operand to, uint32_t a, uint32_t mask)
{
    x86_form form = jit_form(jit, HAL_TYPE_F32);
    if (mask != 0 && jit->target->words_store) {
        x86_vector(&jit->code, X86_CVTPS2PH, form, a, 0, x86_register(JIT_TEMPORARY_A));
        jit->target->words_store(jit, JIT_TEMPORARY_A, to, mask);
        return;
    }
    form.mask = (uint8_t)mask;
    x86_vector(&jit->code, X86_CVTPS2PH, form, a, 0, to);
}

static void emit_narrow(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const hal_type value = hal_type_of_value(type);
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    const jit_entry *entry = &jit->loop.program->values[node->a[0]];
    if ((type == HAL_TYPE_F16 && entry->is_f16) || (type == HAL_TYPE_BF16 && entry->is_bf16)) {
        emit(jit, X86_MOVDQU32, HAL_TYPE_F32, d, 0, x86_register(a));
    } else if (type == HAL_TYPE_F16) {
        emit_f16_bits(jit, x86_register(JIT_TEMPORARY_A), a, 0);
        emit(jit, X86_CVTPH2PS, HAL_TYPE_F32, d, 0, x86_register(JIT_TEMPORARY_A));
    } else if (type == HAL_TYPE_BF16) {
        jit->target->emit_bf16_bits(jit, d, a);
        emit_immediate(jit, X86_PSLLD, HAL_TYPE_F32, d, 0, x86_register(d), 16);
    } else if (hal_type_size(type) < hal_type_size(value)) {
        const uint32_t unused = 32 - 8 * hal_type_size(type);
        emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(a), unused);
        emit_immediate(jit, hal_type_is_signed(type) ? X86_PSRAD : X86_PSRLD, value, d, 0,
                       x86_register(d), unused);
    } else if (value == HAL_TYPE_BOOL) {
        jit->target->bool_copy(jit, d, a);
    } else {
        emit(jit, X86_MOVDQU32, value, d, 0, x86_register(a));
    }
}

/* ---- memory ---- */

/* The mask of an access in a register that is not 0: operand k, or the work-items where it has no
 * such operand. `guard`: the operand's register. */
static uint32_t access_mask(jit_state *jit, const jit_node *node, uint32_t k, uint32_t guard)
{
    if (node->a[k] == JIT_NONE) {
        return jit_items_mask(jit, node->part);
    }
    if (guard == 0) {
        jit->target->bool_copy(jit, jit->target->mask, guard);
        return jit->target->mask;
    }
    return guard;
}

/* Elements of 1 or 2 bytes to lanes. */
static void narrow_load(jit_state *jit, uint32_t name, hal_type value, uint32_t d, x86_operand from,
                        uint32_t mask)
{
    x86_form form = jit_form(jit, value);
    if (mask != 0 && jit->target->words_load) {
        jit->target->words_load(jit, JIT_TEMPORARY_A, from, mask);
        from = x86_register(JIT_TEMPORARY_A);
        mask = 0;
    }
    form.mask = (uint8_t)mask;
    form.zeroing = mask != 0;
    x86_vector(&jit->code, name, form, d, 0, from);
}

void jit_memory_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask)
{
    const hal_type value = hal_type_of_value(type);
    switch (type) {
    case HAL_TYPE_BOOL:
        jit->target->bool_load(jit, d, from);
        break;
    case HAL_TYPE_I8:
        narrow_load(jit, X86_PMOVSXBD, value, d, from, mask);
        break;
    case HAL_TYPE_U8:
        narrow_load(jit, X86_PMOVZXBD, value, d, from, mask);
        break;
    case HAL_TYPE_I16:
        narrow_load(jit, X86_PMOVSXWD, value, d, from, mask);
        break;
    case HAL_TYPE_U16:
        narrow_load(jit, X86_PMOVZXWD, value, d, from, mask);
        break;
    case HAL_TYPE_F16:
        narrow_load(jit, X86_CVTPH2PS, value, d, from, mask);
        break;
    case HAL_TYPE_BF16:
        narrow_load(jit, X86_PMOVZXWD, value, d, from, mask);
        emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(d), 16);
        break;
    default:
        if (mask != 0) {
            jit->target->masked_load(jit, value, d, from, mask);
        } else {
            emit(jit, X86_MOVDQU32, value, d, 0, from);
        }
    }
}

/* The bits are in the register of a mask that lasts for one access. */
static void bf16_store(jit_state *jit, uint32_t a, x86_operand to, uint32_t mask, bool is_bf16)
{
    const uint32_t bits = JIT_TEMPORARY_C;
    if (is_bf16 && mask != bits) {
        emit_immediate(jit, X86_PSRLD, HAL_TYPE_F32, bits, 0, x86_register(a), 16);
        jit->target->narrow_store(jit, 2, bits, to, mask);
        return;
    }
    if (mask != bits || !jit->target->words_store) {
        jit->target->emit_bf16_bits(jit, bits, a);
        jit->target->narrow_store(jit, 2, bits, to, mask);
        return;
    }
    const x86_operand saved = x86_memory(X86_RSP, JIT_FRAME_D);
    const x86_form form = {.length = jit->target->length};
    x86_vector(&jit->code, X86_MOVDQU32_STORE, form, mask, 0, saved);
    jit->target->emit_bf16_bits(jit, bits, a);
    emit(jit, X86_MOVDQU32, HAL_TYPE_F32, JIT_TEMPORARY_A, 0, x86_register(bits));
    x86_vector(&jit->code, X86_MOVDQU32, form, mask, 0, saved);
    jit->target->narrow_store(jit, 2, JIT_TEMPORARY_A, to, mask);
}

void jit_memory_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask,
                      bool is_bf16)
{
    const hal_type value = hal_type_of_value(type);
    switch (type) {
    case HAL_TYPE_BOOL:
        jit->target->bool_store(jit, a, to);
        break;
    case HAL_TYPE_I8:
    case HAL_TYPE_U8:
    case HAL_TYPE_I16:
    case HAL_TYPE_U16:
        jit->target->narrow_store(jit, hal_type_size(type), a, to, mask);
        break;
    case HAL_TYPE_F16:
        emit_f16_bits(jit, to, a, mask);
        break;
    case HAL_TYPE_BF16:
        bf16_store(jit, a, to, mask, is_bf16);
        break;
    default:
        if (mask != 0) {
            jit->target->masked_store(jit, value, a, to, mask);
        } else {
            emit(jit, X86_MOVDQU32_STORE, value, a, 0, to);
        }
    }
}

/* Jumps if the pointer of an access is null. */
static void jump_if_null(jit_state *jit, uint32_t pointer, uint32_t label)
{
    uint32_t reg = JIT_SCRATCH;
    for (uint32_t i = 0; i < jit->registers.loop_pointers; i++) {
        reg = jit->registers.pointers[i].key == JIT_POINTER_ACCESS + pointer
                  ? jit->registers.pointers[i].reg
                  : reg;
    }
    if (reg == JIT_SCRATCH) {
        x86_general(&jit->code, X86_LOAD, true, reg,
                    x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    }
    x86_general(&jit->code, X86_TEST, true, reg, x86_register(reg));
    x86_jump_if(&jit->code, X86_EQUAL, label);
}

/* Code after the loop for a value in a register; it begins at `label` and jumps to `back`, where
 * these are not JIT_NONE. */
static void aside_add(jit_state *jit, jit_aside_kind kind, jit_value value, uint32_t reg,
                      uint32_t label, uint32_t back)
{
    if (jit->loop.aside_count == jit->loop.aside_capacity) {
        const uint32_t wanted = jit->loop.aside_capacity == 0 ? 32 : jit->loop.aside_capacity * 2;
        jit_aside *grown = realloc(jit->loop.asides, wanted * sizeof(jit_aside));
        if (!grown) {
            jit->failed = true;
            return;
        }
        jit->loop.asides = grown;
        jit->loop.aside_capacity = wanted;
    }
    jit->loop.asides[jit->loop.aside_count++] = (jit_aside){
        .kind = kind, .value = value, .reg = (uint8_t)reg, .label = label, .back = back};
}

static void aside_emit(jit_state *jit, const jit_aside *aside)
{
    jit_entry *entry = &jit->loop.program->values[aside->value];
    const x86_operand reg = x86_register(aside->reg);
    if (aside->kind == JIT_ASIDE_LOAD) {
        jit_load_home(jit, aside->value, aside->reg);
    } else if (aside->kind == JIT_ASIDE_CLEAR) {
        emit(jit, X86_PXORD, entry->type, aside->reg, aside->reg, reg);
    } else if (entry->kind == JIT_TEMPORARY && !entry->keep) {
        entry->reg = aside->reg;
        jit_store_home(jit, aside->value); /* the step that stores it reads the slot */
    }
}

void jit_asides_emit(jit_state *jit)
{
    x86_code *code = &jit->code;
    const uint32_t after = x86_label(code);
    if (jit->loop.aside_count > 0) {
        x86_jump(code, after);
    }
    for (uint32_t i = 0; i < jit->loop.aside_count && !jit->failed; i++) {
        const jit_aside *aside = &jit->loop.asides[i];
        if (aside->label != JIT_NONE) {
            x86_bind(code, aside->label);
        }
        aside_emit(jit, aside);
        if (aside->back != JIT_NONE) {
            x86_jump(code, aside->back);
        }
    }
    x86_bind(code, after);
    jit->loop.aside_count = 0;
}

/* One element of memory to all lanes. */
static void element_broadcast(jit_state *jit, hal_type type, uint32_t d, x86_operand from)
{
    const hal_type value = hal_type_of_value(type);
    const x86_form form = jit_form(jit, value);
    if (hal_type_size(type) != 2) {
        emit(jit, hal_type_size(type) == 8 ? X86_PBROADCASTQ : X86_PBROADCASTD, value, d, 0, from);
    } else if (type == HAL_TYPE_F16) {
        const x86_form half = {.length = form.length > X86_XMM ? (uint8_t)(form.length - 1)
                                                               : (uint8_t)X86_XMM};
        x86_vector(&jit->code, X86_PBROADCASTW, half, JIT_TEMPORARY_A, 0, from);
        emit(jit, X86_CVTPH2PS, value, d, 0, x86_register(JIT_TEMPORARY_A));
    } else {
        x86_vector(&jit->code, X86_PBROADCASTW, form, d, 0, from);
        emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(d), 16);
        if (type != HAL_TYPE_BF16) {
            emit_immediate(jit, type == HAL_TYPE_I16 ? X86_PSRAD : X86_PSRLD, value, d, 0,
                           x86_register(d), 16);
        }
    }
}

/* Jumps if the guard of an access is false in all lanes. A masked access to a page that is not
 * mapped takes hundreds of cycles, even without lanes: rows beyond the last one often are there. */
static void jump_if_masked(jit_state *jit, const jit_node *node, uint32_t k, uint32_t guard,
                           uint32_t label)
{
    if (node->a[k] != JIT_NONE) {
        jit->target->bool_test(jit, guard);
        x86_jump_if(&jit->code, X86_EQUAL, label);
    }
}

uint32_t jit_loads_count(const jit_state *jit, const jit_program *program, uint32_t first)
{
    const jit_node *node = &program->nodes[first];
    const uint32_t most = jit->target->vectors / 4u;
    uint32_t count = 1;
    while (count < most && first + count < program->node_count &&
           jit_is_vector_load(program, first) && jit_is_vector_load(program, first + count) &&
           jit->open.pointer_forms[node->aux] != JIT_ACCESS_ROWS_APART &&
           node[count].aux == node->aux && node[count].a[0] == node->a[0] &&
           node[count].type == node->type && node[count].part == node->part) {
        count++;
    }
    return count;
}

void jit_loads_emit(jit_state *jit, const jit_node *nodes, uint32_t count)
{
    x86_code *code = &jit->code;
    const uint32_t elsewhere = x86_label(code), none = x86_label(code), after = x86_label(code);
    const bool is_guarded = nodes->a[0] != JIT_NONE;
    const bool is_element = jit->open.pointer_forms[nodes->aux] == JIT_ACCESS_ROW_ELEMENT;
    const bool is_apart = jit->open.pointer_forms[nodes->aux] == JIT_ACCESS_ROWS_APART;
    const uint32_t guard = is_guarded ? jit_use(jit, nodes, 0) : 0;
    const hal_type type = nodes->type;
    uint32_t d[JIT_VECTORS];
    for (uint32_t i = 0; i < count; i++) {
        d[i] = jit_result(jit, &nodes[i]);
    }
    jump_if_null(jit, nodes->aux, elsewhere);
    jump_if_masked(jit, nodes, 0, guard, none);
    const uint32_t mask = is_element ? 0 : access_mask(jit, nodes, 0, guard);
    const x86_operand place =
        jit_pointed(jit, JIT_POINTER_ACCESS + nodes->aux, hal_type_size(type), nodes->part);
    for (uint32_t i = 0; i < count; i++) {
        x86_operand from = place;
        from.disp += nodes[i].distance;
        if (is_apart) {
            jit_apart_load(jit, jit->open.pointer_apart[nodes->aux], d[i], from, mask);
            continue;
        }
        if (!is_element) {
            jit_memory_load(jit, type, d[i], from, mask);
            continue;
        }
        element_broadcast(jit, type, d[i], from);
        if (is_guarded) {
            jit->target->lanes_clear(jit, hal_type_of_value(type), d[i], guard);
        }
    }
    jit_ahead_emit(jit, nodes, count, place);
    x86_bind(code, after);
    for (uint32_t pass = 0; pass < 1u + is_guarded; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            aside_add(jit, pass == 0 ? JIT_ASIDE_LOAD : JIT_ASIDE_CLEAR, nodes[i].d, d[i],
                      i > 0       ? JIT_NONE
                      : pass == 0 ? elsewhere
                                  : none,
                      i + 1 < count ? JIT_NONE : after);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        jit_release(jit, &nodes[i]);
    }
}

/* Whether JIT_SCRATCH has the address of an earlier uniform load, which this one follows with
 * nothing between; the distance from there in bytes. Else this one becomes the first. */
static bool element_follows(jit_state *jit, const jit_node *node, int32_t *distance)
{
    const cpu_access *x = &jit->lower->accesses[node->aux];
    const uint32_t at = (uint32_t)(node - jit->loop.program->nodes);
    const bool is_next = at > 0 && jit->loop.element_end == at && node->a[0] == JIT_NONE;
    jit->loop.element_end = node->a[0] == JIT_NONE ? at + 1 : 0;
    if (is_next) {
        const cpu_access *y = &jit->lower->accesses[jit->loop.element_access];
        const int64_t apart = ((int64_t)x->offset - y->offset) * (int64_t)hal_type_size(x->type);
        *distance = (int32_t)apart;
        if (x->memory == y->memory && x->type == y->type && x->base == y->base &&
            x->index_type == y->index_type && apart == *distance) {
            return true;
        }
    }
    *distance = 0;
    jit->loop.element_access = node->aux;
    return false;
}

/* The element of a uniform load to all lanes. */
static void emit_element(jit_state *jit, const jit_node *node)
{
    const hal_type value = hal_type_of_value(node->type);
    const uint32_t after = x86_label(&jit->code);
    const uint32_t guard = node->a[0] != JIT_NONE ? jit_use(jit, node, 0) : 0;
    const uint32_t d = jit_result(jit, node);
    if (node->a[0] != JIT_NONE) {
        emit(jit, X86_PXORD, value, d, d, x86_register(d));
        jump_if_masked(jit, node, 0, guard, after);
    }
    int32_t distance;
    if (!element_follows(jit, node, &distance)) {
        jit_uniform_emit(jit, &jit->lower->accesses[node->aux]);
    }
    element_broadcast(jit, node->type, d, x86_memory(JIT_SCRATCH, distance));
    x86_bind(&jit->code, after);
}

/* The last lane of the last vector of a row to its element; jumps to `after` at the others. */
static void last_lane_store(jit_state *jit, const jit_node *node, uint32_t a, uint32_t after)
{
    x86_code *code = &jit->code;
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), row = jit->lower->program->place[0];
    const uint32_t step = lanes * jit->loop.parts, part_end = (node->part + 1) * lanes;
    if (part_end % row != 0 && part_end != step) { /* in no step of the loop */
        x86_jump(code, after);
        return;
    }
    if (row > step) {
        x86_general(code, X86_STORE, false, JIT_LANE, x86_register(JIT_SCRATCH));
        x86_and_immediate(code, JIT_SCRATCH, (int32_t)(row - step));
        x86_compare_immediate(code, JIT_SCRATCH, (int32_t)(row - step));
        x86_jump_if(code, X86_NOT_EQUAL, after);
    }
    const uint32_t bytes = hal_type_size(node->type);
    const x86_operand vector = x86_memory(X86_RSP, JIT_FRAME_X);
    const x86_operand lane = x86_memory(X86_RSP, JIT_FRAME_Y);
    x86_operand last = vector;
    last.disp += (int32_t)((jit_lanes(jit, jit->loop.program) - 1) * bytes);
    jit_memory_store(jit, node->type, a, vector, 0, false);
    const x86_operand to =
        jit_pointed(jit, JIT_POINTER_ACCESS + node->aux, bytes, node->part); /* without the lane */
    x86_general(code, X86_STORE, true, JIT_LANE, lane);
    x86_general(code, X86_LOAD, bytes == 8, JIT_LANE, last);
    x86_store_bytes(code, bytes, JIT_LANE, to);
    x86_general(code, X86_LOAD, true, JIT_LANE, lane);
}

static void emit_store(jit_state *jit, const jit_node *node)
{
    const uint32_t elsewhere = x86_label(&jit->code), after = x86_label(&jit->code);
    const uint32_t a = jit_use(jit, node, 0);
    const uint32_t guard = node->a[1] == JIT_NONE ? 0 : jit_use(jit, node, 1);
    jump_if_null(jit, node->aux, elsewhere);
    aside_add(jit, JIT_ASIDE_STORE, node->a[0], a, elsewhere, after);
    if (jit->open.pointer_forms[node->aux] == JIT_ACCESS_ROW_ELEMENT) {
        jump_if_masked(jit, node, 1, guard, after); /* it is the same for all lanes of a row */
        last_lane_store(jit, node, a, after);
    } else {
        jump_if_masked(jit, node, 1, guard, after);
        const uint32_t mask = access_mask(jit, node, 1, guard);
        x86_operand to =
            jit_pointed(jit, JIT_POINTER_ACCESS + node->aux, hal_type_size(node->type), node->part);
        to.disp += node->distance;
        if (jit->open.pointer_forms[node->aux] == JIT_ACCESS_ROWS_APART) {
            jit_pairs_store(jit, a, to, mask);
            x86_bind(&jit->code, after);
            return;
        }
        const cpu_access *access = &jit->lower->accesses[node->access];
        if (mask == 0 && jit->open.pointer_forms[node->aux] == JIT_ACCESS_LINE &&
            node->distance % JIT_LINE_BYTES == 0 && jit_stream_takes(jit, access)) {
            jit_stream_store(jit, jit_form(jit, hal_type_of_value(node->type)), a, to);
            x86_bind(&jit->code, after);
            return;
        }
        jit_memory_store(jit, node->type, a, to, mask,
                         jit->loop.program->values[node->a[0]].is_bf16);
    }
    x86_bind(&jit->code, after);
}

/* ---- lanes that exchange values ---- */

/* d = the lane (own xor apart) of each lane of a vector: words of 16 bytes, the halves of 32 bytes,
 * the halves of 64 bytes. */
static void emit_permutation(jit_state *jit, hal_type type, uint32_t d, x86_operand from,
                             uint32_t apart)
{
    enum { SWAPPED_HALVES = 0x4e }; /* elements 2, 3, 0, 1 */
    const uint32_t words = apart * hal_type_size(type) / 4;
    bool moved = false;
    if ((words & 3) != 0) {
        uint32_t order = 0;
        for (uint32_t i = 0; i < 4; i++) {
            order |= (i ^ (words & 3)) << 2 * i;
        }
        emit_immediate(jit, X86_PSHUFD, type, d, 0, from, order);
        moved = true;
    }
    if ((words & 4) != 0) {
        emit_immediate(jit, X86_PERMQ, type, d, 0, moved ? x86_register(d) : from, SWAPPED_HALVES);
        moved = true;
    }
    if (!moved && (from.is_memory || from.reg != d)) {
        emit(jit, X86_MOVDQU32, type, d, 0, from);
    }
    if ((words & 8) != 0) {
        emit_immediate(jit, X86_SHUFI64X2, type, d, d, x86_register(d), SWAPPED_HALVES);
    }
}

static void emit_exchange(jit_state *jit, const jit_node *node)
{
    if (node->opcode == HAL_IR_SHUFFLE_XOR) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        emit_permutation(jit, node->type, d, x86_register(a), node->aux);
        return;
    }
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), apart = node->aux & ~(lanes - 1);
    const uint32_t d = jit_result(jit, node);
    const x86_operand from = jit_elsewhere(jit, node, apart);
    emit_permutation(jit, node->type, d, from, node->aux & (lanes - 1));
    jit_elsewhere_end(jit, apart);
}

/* ---- all ---- */

static void emit_again(jit_state *jit, const jit_node *node)
{
    const uint32_t a = jit_use(jit, node, 0), rare = jit_use(jit, node, 1);
    const uint32_t x = jit_use(jit, node, 2);
    const uint32_t y = node->a[3] != JIT_NONE ? jit_use(jit, node, 3) : x;
    const uint32_t d = jit_result_over(jit, node, 0);
    jit_slow *slow = jit_slow_add(jit);
    const hal_type type = node->type;
    register_copy(jit, type, d, a);
    jit->target->bool_test(jit, rare);
    if (slow) {
        const uint32_t opcode = node->aux;
        const cpu_action action = cpu_action_operation(opcode, type);
        slow->run = cpu_lanes_find(jit->lower->lanes, &action);
        slow->d = (uint8_t)d;
        slow->x = (uint8_t)x;
        slow->y = (uint8_t)y;
        slow->length = jit_form(jit, type).length;
        jit_registers_used(jit, &slow->vectors, &slow->masks);
        x86_jump_if(&jit->code, X86_NOT_EQUAL, slow->label);
        x86_bind(&jit->code, slow->back);
    }
}

static void emit_float(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    static const uint8_t rounding[] = {ROUND_FLOOR, ROUND_TRUNC, ROUND_RINT};
    switch (node->opcode) {
    case HAL_IR_ADD:
        emit_binary(jit, node, by_size(type, X86_ADDPS, X86_ADDPD));
        break;
    case HAL_IR_SUB:
        emit_binary(jit, node, by_size(type, X86_SUBPS, X86_SUBPD));
        break;
    case HAL_IR_MUL:
        emit_binary(jit, node, by_size(type, X86_MULPS, X86_MULPD));
        break;
    case HAL_IR_DIV:
        emit_binary(jit, node, by_size(type, X86_DIVPS, X86_DIVPD));
        break;
    case HAL_IR_NEG:
    case HAL_IR_ABS: {
        const bool negate = node->opcode == HAL_IR_NEG;
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        const uint32_t sign = UINT32_C(1) << 31;
        const uint64_t sign_wide = UINT64_C(1) << 63;
        emit(jit,
             negate ? by_size(type, X86_PXORD, X86_PXORQ) : by_size(type, X86_PANDD, X86_PANDQ),
             type, d, a,
             constant_of(jit, type, negate ? sign : ~sign, negate ? sign_wide : ~sign_wide));
        break;
    }
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        jit->target->emit_float_least(jit, node);
        break;
    case HAL_IR_FMA:
        emit_fma(jit, node);
        break;
    case HAL_IR_SQRT:
        emit_unary(jit, node, by_size(type, X86_SQRTPS, X86_SQRTPD), type, 0);
        break;
    default:
        emit_unary(jit, node, by_size(type, X86_RNDSCALEPS, X86_RNDSCALEPD), type,
                   rounding[node->opcode - HAL_IR_FLOOR]);
    }
}

static void emit_integer(jit_state *jit, const jit_node *node)
{
    switch (node->opcode) {
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        jit->target->emit_shift(jit, node);
        break;
    case HAL_IR_MULHI:
        emit_mulhi(jit, node);
        break;
    default:
        jit->target->emit_integer(jit, node);
    }
}

/* Nothing between the test and the jump changes flags. */
static void emit_sides(jit_state *jit, const jit_node *node)
{
    const uint32_t far = jit_use(jit, node, 0);
    if (jit->loop.choice_count == JIT_MOST_CHOICES) {
        jit->failed = true;
        return;
    }
    jit_choice *choice = &jit->loop.choices[jit->loop.choice_count++];
    *choice = (jit_choice){.otherwise = x86_label(&jit->code),
                           .join = x86_label(&jit->code),
                           .locked = jit->registers.locked_vectors};
    jit->target->bool_test(jit, far);
    jit_release(jit, node);
    jit_registers_lock(jit);
    x86_jump_if(&jit->code, X86_NOT_EQUAL, choice->otherwise);
}

/* The sides of a choice use the registers that are free at its beginning. */
static void emit_choice(jit_state *jit, const jit_node *node)
{
    jit_choice *choice =
        &jit->loop.choices[jit->loop.choice_count > 0 ? jit->loop.choice_count - 1 : 0];
    switch (node->opcode) {
    case JIT_DECLARE:
        jit_result(jit, node);
        jit_release(jit, node);
        break;
    case JIT_CHOICE:
        emit_sides(jit, node);
        break;
    case JIT_OTHERWISE:
        x86_jump(&jit->code, choice->join);
        jit_registers_restore(jit);
        x86_bind(&jit->code, choice->otherwise);
        break;
    case JIT_JOIN:
        jit_registers_restore(jit);
        x86_bind(&jit->code, choice->join);
        jit->registers.locked_vectors = choice->locked;
        jit->loop.choice_count -= jit->loop.choice_count > 0;
        break;
    default: {
        const uint32_t d = jit_use(jit, node, 0), a = jit_use(jit, node, 1);
        jit->failed =
            jit->failed || !(jit->registers.locked_vectors >> d & 1); /* d has lost its register */
        emit(jit, X86_MOVDQU32, node->type, d, 0, x86_register(a));
        jit_release(jit, node);
    }
    }
}

/* The end of a function: a value to its place. */
static void emit_result(jit_state *jit, const jit_node *node)
{
    const uint32_t to = node->aux + node->part, a = jit_use(jit, node, 0);
    if (a != to) {
        jit_register_empty(jit, to);
        register_copy(jit, node->type, to, a);
    }
    jit->registers.locked_vectors |= UINT32_C(1) << to; /* for the results that follow */
}

bool jit_is_supported(const jit_target *target, uint32_t opcode, hal_type type, hal_type result)
{
    const bool integer = hal_type_is_integer(type), is_float = hal_type_is_float(type);
    switch (opcode) {
    case HAL_IR_DIV:
        return is_float;
    case HAL_IR_REM:
    case HAL_IR_POPCOUNT:
        return false;
    case HAL_IR_MULHI:
        return integer && hal_type_size(type) == 4;
    case HAL_IR_NARROW:
        return type != HAL_TYPE_NONE && result != HAL_TYPE_NONE;
    case HAL_IR_CAST:
        return type != HAL_TYPE_NONE && result != HAL_TYPE_NONE &&
               target->cast_is_supported(type, result);
    case HAL_IR_ADD:
    case HAL_IR_SUB:
    case HAL_IR_MUL:
    case HAL_IR_NEG:
    case HAL_IR_ABS:
    case HAL_IR_MIN:
    case HAL_IR_MAX:
    case HAL_IR_FMA:
    case HAL_IR_SQRT:
    case HAL_IR_FLOOR:
    case HAL_IR_TRUNC:
    case HAL_IR_RINT:
    case HAL_IR_AND:
    case HAL_IR_OR:
    case HAL_IR_XOR:
    case HAL_IR_NOT:
    case HAL_IR_SHL:
    case HAL_IR_SHR:
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
    case HAL_IR_SELECT:
        return true;
    default:
        return hal_ir_is_math(opcode) && is_float;
    }
}

void jit_node_emit(jit_state *jit, const jit_node *node)
{
    const uint32_t opcode = node->opcode;
    if (opcode >= JIT_DECLARE && opcode <= JIT_ASSIGN) {
        emit_choice(jit, node);
        return;
    }
    if (opcode == JIT_RESULT) {
        emit_result(jit, node);
    } else if (opcode == JIT_ELEMENT) {
        emit_element(jit, node);
    } else if (opcode == JIT_AFFINE) {
        jit_affine_emit(jit, node);
    } else if (opcode == JIT_GATHER) {
        jit_gather_emit(jit, node);
    } else if (opcode == JIT_SCATTER) {
        jit_scatter_emit(jit, node);
    } else if (opcode == JIT_STORE) {
        emit_store(jit, node);
    } else if (opcode == JIT_AGAIN) {
        emit_again(jit, node);
    } else if (opcode == HAL_IR_SHUFFLE_XOR || opcode == JIT_EXCHANGE) {
        emit_exchange(jit, node);
    } else if (opcode == JIT_BLEND || opcode == HAL_IR_SELECT) {
        jit->target->emit_select(jit, node);
    } else if (opcode == HAL_IR_NARROW) {
        emit_narrow(jit, node);
    } else if (opcode == HAL_IR_CAST) {
        jit->target->emit_cast(jit, node);
    } else if (opcode == JIT_MOVE || opcode == HAL_IR_BITCAST) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        if (node->type == HAL_TYPE_BOOL) {
            jit->target->bool_copy(jit, d, a);
        } else {
            emit(jit, X86_MOVDQU32, node->type, d, 0, x86_register(a));
        }
    } else if (opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE) {
        jit->target->emit_comparison(jit, node);
    } else if (node->type == HAL_TYPE_BOOL) {
        jit->target->emit_bool(jit, node);
    } else if (hal_type_is_float(node->type)) {
        emit_float(jit, node);
    } else {
        emit_integer(jit, node);
    }
    jit_release(jit, node);
}
