/* Stores that bypass the caches: ordinary stores read memory before they overwrite it. Code has
 * both forms, which differ in some bytes: stream.c makes the second form when a dispatch wants it.
 * Its stores need addresses of whole lines, which each access checks. */
#include "jit/registers/stream.h"

#include <stdlib.h>

/* Whether a group may begin again: no memory is read and written. */
static bool group_repeats(const hal_ir_kernel *ir)
{
    bool writes = false;
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        const uint32_t access = ir->memories[i].access;
        if (hal_ir_is_shared(ir, i)) {
            continue;
        }
        if ((access & HAL_ACCESS_READ) != 0 && (access & HAL_ACCESS_WRITE) != 0) {
            return false;
        }
        writes = writes || (access & HAL_ACCESS_WRITE) != 0;
    }
    return writes;
}

void jit_stream_begin(jit_state *jit)
{
    cpu_stream *stream = &jit->output->stream;
    jit->restart = JIT_NONE;
    if (group_repeats(jit->lower->ir)) {
        stream->patches = calloc(CPU_STREAM_PATCHES, sizeof(cpu_stream_patch));
        jit->streams = stream->patches != NULL;
    }
}

bool jit_stream_takes(const jit_state *jit, const cpu_access *access)
{
    const hal_ir_kernel *ir = jit->lower->ir;
    return jit->streams && !access->shared && hal_type_size(access->type) >= 4 &&
           jit->lower->program->items % CPU_BLOCK == 0 &&
           (ir->memories[access->memory].access & HAL_ACCESS_WRITE) != 0;
}

void jit_stream_give_up(jit_state *jit, const cpu_access *access)
{
    if (jit_stream_takes(jit, access)) {
        jit->streams = false;
        jit->output->stream.patch_count = 0;
    }
}

/* A byte of the code that differs in the second form. */
static void patch_add(jit_state *jit, uint32_t at, uint32_t byte)
{
    cpu_stream *stream = &jit->output->stream;
    if (stream->patch_count == CPU_STREAM_PATCHES) {
        jit->streams = false;
        stream->patch_count = 0;
    }
    if (jit->streams) {
        stream->patches[stream->patch_count++] =
            (cpu_stream_patch){.at = at, .byte = (uint8_t)byte};
    }
}

void jit_stream_check(jit_state *jit, const cpu_access *access, x86_operand pointer)
{
    x86_code *code = &jit->code;
    if (!jit_stream_takes(jit, access)) {
        return;
    }
    jit->output->stream.group_bytes +=
        (uint64_t)jit->lower->program->items * hal_type_size(access->type);
    if (jit->restart == JIT_NONE) {
        jit->restart = x86_label(code);
    }
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, pointer);
    x86_test_immediate(code, JIT_SCRATCH, JIT_LINE_BYTES - 1);
    x86_jump_if(code, X86_OVERFLOW, jit->restart);
    patch_add(jit, code->count - 5, 0x80 | X86_NOT_EQUAL);
}

void jit_stream_store(jit_state *jit, x86_form form, uint32_t a, x86_operand to)
{
    const uint32_t start = jit->code.count;
    x86_vector(&jit->code, X86_MOVUPS_STORE, form, a, 0, to);
    patch_add(jit, x86_opcode_at(&jit->code, start), X86_STREAM_OPCODE);
}

void jit_stream_restart_emit(jit_state *jit)
{
    if (jit->restart != JIT_NONE) {
        x86_bind(&jit->code, jit->restart);
        x86_general(&jit->code, X86_STORE, false, JIT_SCRATCH,
                    x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, restarts)));
        x86_jump(&jit->code, jit->leave);
        jit->restart = JIT_NONE;
    }
}
