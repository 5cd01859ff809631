/* Transcendental functions as routines that all kernels call: one for each function, type and
 * number of vectors that are computed together. They are made at their first use and last as long
 * as the process. */
#include "jit/emission/function.h"

#include "jit/emission/slow_emit.h"
#include "jit/emission/operation.h"
#include "jit/registers/registers.h"
#include "jit/emission/routine.h"

#include <kit/fork.h>
#include <pthread.h>
#include <string.h>

/* By instruction set; by type: f32 in whole vectors and in half ones, f64; by the logarithm of the
 * number of vectors. */
enum { TARGETS = 2, FORMS = 3, PART_FORMS = 4 };

static pthread_mutex_t routines_lock = PTHREAD_MUTEX_INITIALIZER;
static void *routines[TARGETS][HAL_IR_MATH_COUNT][FORMS][PART_FORMS];

static void routines_reset(void)
{
    memset(routines, 0, sizeof(routines));
}
KIT_FORK_RESET(routines_lock, routines_reset)

static void operands_place(jit_state *jit, jit_value x, jit_value y)
{
    for (uint32_t part = 0; part < jit->loop.parts; part++) {
        jit_register_set(jit, x * jit->loop.parts + part, JIT_FUNCTION_X + part);
        if (y != JIT_NONE) {
            jit_register_set(jit, y * jit->loop.parts + part, JIT_FUNCTION_Y + part);
        }
    }
}

static void routine_body(jit_state *jit, uint32_t opcode, hal_type type)
{
    jit_program *program = jit->loop.program;
    const bool binary = opcode == HAL_IR_POW;
    const jit_value x = jit_named(program, JIT_TEMPORARY, type, JIT_NONE);
    const jit_value y =
        binary ? jit_named(program, JIT_TEMPORARY, type, JIT_NONE) : (jit_value)JIT_NONE;
    const jit_value d = jit_math(program, opcode, type, x, y, opcode);
    jit_operation(program, JIT_RESULT, type, HAL_TYPE_NONE, d, JIT_NONE, JIT_NONE);
    jit_last(program)->aux = JIT_FUNCTION_X;
    if (jit->loop.parts > 1) {
        jit_program_unroll(program, jit->loop.parts, false);
    }
    if (program->failed) {
        return;
    }
    jit_program_finish(program);
    jit_registers_clear(jit);
    operands_place(jit, x, y);
    for (uint32_t i = 0; i < program->node_count; i++) {
        jit_node_emit(jit, &program->nodes[i]);
    }
}

/* What a routine computes. */
typedef struct function_form {
    uint32_t opcode, parts;
    hal_type type;
} function_form;

/* Called like a C function, with rsp 8 below a multiple of 64. */
static void routine_emit(jit_state *jit, const void *what)
{
    const function_form *form = what;
    x86_code *code = &jit->code;
    jit->loop.parts = form->parts;
    x86_add_immediate(code, X86_RSP, 0);
    const uint32_t at = code->count - 4;
    routine_body(jit, form->opcode, form->type);
    const int32_t size = JIT_FRAME_SPILLS + 64 * (int32_t)jit->registers.frame_vectors + 56;
    x86_add_immediate(code, X86_RSP, size);
    x86_return(code);
    jit_slow_emit(jit);
    if (!code->failed) {
        const int32_t down = -size;
        memcpy(code->bytes + at, &down, sizeof(down));
    }
}

static void *routine_find(const jit_state *caller, uint32_t opcode, hal_type type, bool wide,
                          uint32_t parts)
{
    const uint32_t target = caller->target == &jit_avx512;
    const uint32_t form = type == HAL_TYPE_F64 ? 2 : wide ? 1 : 0;
    const uint32_t part_form = parts == 8 ? 3 : parts == 4 ? 2 : parts == 2 ? 1 : 0;
    pthread_mutex_lock(&routines_lock);
    void **place = &routines[target][hal_ir_math_index(opcode)][form][part_form];
    if (!*place) {
        const function_form what = {opcode, parts, type};
        *place = jit_routine_make(caller, wide, routine_emit, &what);
    }
    void *found = *place;
    pthread_mutex_unlock(&routines_lock);
    return found;
}

void jit_function_emit(jit_state *jit, const jit_node *nodes)
{
    void *routine =
        routine_find(jit, nodes->aux, nodes->type, jit->loop.program->wide, jit->loop.parts);
    jit->failed = jit->failed || !routine;
    jit_arguments(jit, nodes);
    x86_load_immediate(&jit->code, JIT_SCRATCH, (uint64_t)(uintptr_t)routine);
    x86_call(&jit->code, JIT_SCRATCH);
    for (uint32_t part = 0; part < jit->loop.parts; part++) {
        jit_register_set(jit, nodes[part].d, JIT_FUNCTION_X + part);
    }
    for (uint32_t part = 0; part < jit->loop.parts; part++) {
        jit_release(jit, &nodes[part]);
    }
}
