/* Rows that load every second to fourth element of memory, or store every second one. */
#include "jit/emission/apart.h"

#include "jit/emission/emit.h"
#include "jit/registers/registers.h"

enum { MOST_LANES = 16 };

/* All lanes take every second element: of a vector from the first one, and one that ends with the
 * last one, so that nothing after it is read. */
static void pairs_load(jit_state *jit, uint32_t d, x86_operand from)
{
    const uint32_t lanes = jit_lanes(jit, jit->loop.program);
    uint32_t order[MOST_LANES];
    x86_operand last = from;
    for (uint32_t i = 0; i < lanes; i++) {
        order[i] = 2 * i + (i >= lanes / 2);
    }
    last.disp += (int32_t)(4 * (lanes - 1));
    emit(jit, X86_MOVDQU32, HAL_TYPE_U32, d, 0, x86_words(&jit->code, order, lanes));
    emit(jit, X86_MOVDQU32, HAL_TYPE_U32, JIT_TEMPORARY_A, 0, from);
    emit(jit, X86_PERMI2D, HAL_TYPE_U32, d, JIT_TEMPORARY_A, last);
}

/* JIT_SCRATCH and an index of each lane, in JIT_TEMPORARY_A, for elements `apart` from `to` on. The
 * mask of the access is a copy of `mask`, which it loses. */
static x86_operand lanes_apart(jit_state *jit, uint32_t apart, x86_operand to, uint32_t mask)
{
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), taken = jit->target->mask;
    uint32_t places[MOST_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        places[i] = apart * i;
    }
    x86_general(&jit->code, X86_LEA, true, JIT_SCRATCH, to);
    if (mask == 0) {
        jit->target->bool_set(jit, taken, true);
    } else {
        jit->target->bool_copy(jit, taken, mask);
    }
    x86_operand elements = x86_memory(JIT_SCRATCH, 0);
    elements.index = JIT_TEMPORARY_A;
    elements.scale = 4;
    emit(jit, X86_MOVDQU32, HAL_TYPE_U32, JIT_TEMPORARY_A, 0, x86_words(&jit->code, places, lanes));
    return elements;
}

void jit_apart_load(jit_state *jit, uint32_t apart, uint32_t d, x86_operand from, uint32_t mask)
{
    const uint32_t taken = jit->target->mask;
    const uint32_t some = x86_label(&jit->code), done = x86_label(&jit->code);
    if (apart == 2) {
        if (mask != 0) {
            jit->target->bool_test(jit, mask);
            x86_jump_if(&jit->code, X86_ABOVE_EQUAL, some);
        }
        pairs_load(jit, d, from);
        if (mask == 0) {
            return;
        }
        x86_jump(&jit->code, done);
    }
    x86_bind(&jit->code, some);
    const x86_operand elements = lanes_apart(jit, apart, from, mask);
    x86_form form = jit_form(jit, HAL_TYPE_U32);
    form.mask = (uint8_t)taken;
    emit(jit, X86_PXORD, HAL_TYPE_U32, d, d, x86_register(d));
    x86_vector_indexed(&jit->code, X86_PGATHERDD, form, d, taken, elements);
    x86_bind(&jit->code, done);
}

/* All lanes store every second element: each half of the lanes, spread over a vector, whose other
 * elements stay as they are. */
static void pairs_store(jit_state *jit, uint32_t a, x86_operand to)
{
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), taken = jit->target->mask;
    const uint32_t even = 0x5555;
    uint32_t order[MOST_LANES];
    x86_mask_move(&jit->code, taken, x86_words(&jit->code, &even, 1));
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = 0; i < lanes; i++) {
            order[i] = (half * lanes + i) / 2;
        }
        emit(jit, X86_MOVDQU32, HAL_TYPE_U32, JIT_TEMPORARY_A, 0,
             x86_words(&jit->code, order, lanes));
        emit(jit, X86_PERMI2D, HAL_TYPE_U32, JIT_TEMPORARY_A, a, x86_register(a));
        jit->target->masked_store(jit, HAL_TYPE_U32, JIT_TEMPORARY_A, to, taken);
        to.disp += (int32_t)(4 * lanes);
    }
}

void jit_pairs_store(jit_state *jit, uint32_t a, x86_operand to, uint32_t mask)
{
    const uint32_t some = x86_label(&jit->code), done = x86_label(&jit->code);
    if (mask != 0) {
        jit->target->bool_test(jit, mask);
        x86_jump_if(&jit->code, X86_ABOVE_EQUAL, some);
    }
    pairs_store(jit, a, to);
    if (mask != 0) {
        x86_jump(&jit->code, done);
        x86_bind(&jit->code, some);
        const x86_operand elements = lanes_apart(jit, 2, to, mask);
        jit->target->scatter(jit, HAL_TYPE_U32, a, elements, jit->target->mask);
        x86_bind(&jit->code, done);
    }
}
