/* Loads of rows that take every second to fourth element of memory. */
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

void jit_apart_load(jit_state *jit, uint32_t apart, uint32_t d, x86_operand from, uint32_t mask)
{
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), taken = jit->target->mask;
    const uint32_t some = x86_label(&jit->code), done = x86_label(&jit->code);
    uint32_t places[MOST_LANES];
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
    for (uint32_t i = 0; i < lanes; i++) {
        places[i] = apart * i;
    }
    x86_general(&jit->code, X86_LEA, true, JIT_SCRATCH, from);
    if (mask == 0) {
        jit->target->bool_set(jit, taken, true);
    } else {
        jit->target->bool_copy(jit, taken, mask);
    }
    x86_operand elements = x86_memory(JIT_SCRATCH, 0);
    elements.index = JIT_TEMPORARY_A;
    elements.scale = 4;
    x86_form form = jit_form(jit, HAL_TYPE_U32);
    form.mask = (uint8_t)taken;
    emit(jit, X86_MOVDQU32, HAL_TYPE_U32, JIT_TEMPORARY_A, 0, x86_words(&jit->code, places, lanes));
    emit(jit, X86_PXORD, HAL_TYPE_U32, d, d, x86_register(d));
    x86_vector_indexed(&jit->code, X86_PGATHERDD, form, d, taken, elements);
    x86_bind(&jit->code, done);
}
