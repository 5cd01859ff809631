/* Prefetches: the processor's own prefetchers do not keep up with loops whose loads are many
 * operations apart, or read rows at several places of one memory in turns. Other loops need no
 * help, and would spend time on it. */
#include "jit/emission/ahead.h"

#include "jit/registers/registers.h"

/* Bytes that a loop reads between a prefetch and the load of the same place. */
enum { AHEAD = 2048 };

static x86_operand ahead_of(uint32_t pointer)
{
    return x86_memory(X86_RSP, (int32_t)(JIT_FRAME_AHEADS + 8 * pointer));
}

/* Pointers in rows of the memory that a load reads. */
static uint32_t streams_count(const jit_state *jit, const jit_program *program,
                              const jit_node *load)
{
    const uint32_t memory = jit->lower->accesses[load->access].memory;
    uint64_t found = 0; /* pointers, as bits */
    for (uint32_t i = 0; i < program->node_count; i++) {
        const jit_node *node = &program->nodes[i];
        if (node->opcode == JIT_LOAD && jit->open.pointer_forms[node->aux] == JIT_ACCESS_ROWS &&
            jit->lower->accesses[node->access].memory == memory) {
            found |= UINT64_C(1) << node->aux;
        }
    }
    return (uint32_t)__builtin_popcountll(found);
}

static bool is_ahead(const jit_state *jit, const jit_node *node)
{
    const jit_access_form form = jit->open.pointer_forms[node->aux];
    return jit->loop.in_loop && !jit->lower->accesses[node->access].shared &&
           (form == JIT_ACCESS_ROWS
                ? jit->loop.is_long || streams_count(jit, jit->loop.program, node) > 1
                : form == JIT_ACCESS_LINE && jit->loop.is_long);
}

/* Bytes of a row that the loads at a pointer read. */
static uint32_t row_bytes(const jit_state *jit, const jit_program *program, const jit_node *load)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const jit_node *node = &program->nodes[i];
        if (node->opcode == JIT_LOAD && node->aux == load->aux && node->part == load->part) {
            bytes += jit->lower->program->place[0] * hal_type_size(node->type);
        }
    }
    return bytes;
}

void jit_ahead_begin(jit_state *jit, const jit_program *program)
{
    x86_code *code = &jit->code;
    uint64_t done = 0; /* pointers, as bits */
    for (uint32_t i = 0; i < program->node_count; i++) {
        const jit_node *node = &program->nodes[i];
        if (node->opcode != JIT_LOAD || (done >> node->aux & 1) || !is_ahead(jit, node) ||
            jit->open.pointer_forms[node->aux] != JIT_ACCESS_ROWS) {
            continue;
        }
        done |= UINT64_C(1) << node->aux;
        const uint32_t *place = jit->lower->program->place;
        const uint32_t row = place[0] * hal_type_size(node->type);
        const uint32_t streams = streams_count(jit, program, node);
        /* Pieces that are read in turns follow each other: the next turn begins after all. */
        const uint32_t turn = streams > 1 ? streams * place[1] : 1;
        uint32_t shift = 0;
        while (row_bytes(jit, program, node) << shift < AHEAD || UINT32_C(1) << shift < turn) {
            shift++;
        }
        x86_general(code, X86_LOAD, true, JIT_SCRATCH, jit_skip_of(node->aux));
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)row);
        x86_shift_left(code, JIT_SCRATCH, shift);
        x86_general(code, X86_STORE, true, JIT_SCRATCH, ahead_of(node->aux));
    }
}

void jit_ahead_emit(jit_state *jit, const jit_node *loads, uint32_t count, x86_operand place)
{
    x86_code *code = &jit->code;
    if (!is_ahead(jit, loads)) {
        return;
    }
    int32_t last = INT32_MIN / 2;
    if (jit->open.pointer_forms[loads->aux] == JIT_ACCESS_LINE) {
        if (place.disp % JIT_LINE_BYTES != 0) { /* another vector of the line asks for it */
            return;
        }
        place.disp += AHEAD;
    } else {
        if (place.base != JIT_SCRATCH) {
            x86_general(code, X86_STORE, true, place.base, x86_register(JIT_SCRATCH));
            place.base = JIT_SCRATCH;
        }
        x86_general(code, X86_ADD, true, JIT_SCRATCH, ahead_of(loads->aux));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (loads[i].distance < last || loads[i].distance >= last + JIT_LINE_BYTES) {
            x86_operand from = place;
            last = loads[i].distance;
            from.disp += last;
            x86_prefetch(code, from);
        }
    }
}
