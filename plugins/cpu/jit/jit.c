/* Compiles a kernel: its facts, then a function of each section. */
#include "jit/jit.h"

#include "jit/encoder/code_dump.h"
#include "jit/encoder/code_memory.h"
#include "jit/emission/slow_emit.h"
#include "jit/emission/line.h"
#include "jit/open.h"
#include "jit/registers/stream.h"
#include "jit/walk.h"
#include "lower/slots.h"
#include "status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint8_t saved_registers[] = {X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};
enum { SAVED_REGISTERS = sizeof(saved_registers) };

/* Returns where the size of the frame is to be written. */
static uint32_t entry_emit(x86_code *code)
{
    for (uint32_t i = 0; i < SAVED_REGISTERS; i++) {
        x86_push(code, saved_registers[i]);
    }
    x86_general(code, X86_STORE, true, X86_RSP, x86_register(JIT_SCRATCH));
    x86_add_immediate(code, X86_RSP, 0);
    const uint32_t at = code->count - 4;
    x86_and_immediate(code, X86_RSP, -64);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, x86_memory(X86_RSP, JIT_FRAME_STACK));
    x86_general(code, X86_STORE, true, X86_RDI, x86_register(JIT_WORKER));
    x86_general(code, X86_LOAD, true, JIT_ARENA,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, arena)));
    x86_general(code, X86_LOAD, true, JIT_SLOTS,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, slots)));
    return at;
}

static void leave_emit(jit_state *jit)
{
    x86_code *code = &jit->code;
    x86_bind(code, jit->leave);
    x86_zero_upper(code);
    x86_general(code, X86_LOAD, true, X86_RSP, x86_memory(X86_RSP, JIT_FRAME_STACK));
    for (uint32_t i = SAVED_REGISTERS; i-- > 0;) {
        x86_pop(code, saved_registers[i]);
    }
    x86_return(code);
}

/* A function of the live drafts of a section. Returns its offset. */
static uint32_t section_emit(jit_walk *walk, uint32_t section, const cpu_step *steps)
{
    jit_state *jit = &walk->state;
    const cpu_draft_list *list = &jit->lower->lists[section];
    const uint32_t offset = jit->code.count;
    jit->slow_count = jit->registers.frame_vectors = 0;
    jit->leave = x86_label(&jit->code);
    for (uint32_t i = 0; i <= list->count; i++) {
        jit->step_labels[i] = JIT_NONE;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const cpu_draft *draft = &list->drafts[i];
        if (draft->live && draft->target != CPU_NONE) {
            uint32_t *label = &jit->step_labels[draft->index + (uint32_t)steps[draft->index].jump];
            *label = *label == JIT_NONE ? x86_label(&jit->code) : *label;
        }
    }
    const uint32_t frame = entry_emit(&jit->code);
    walk->section = section;
    jit->steps = steps;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!list->drafts[i].live) {
            continue;
        }
        walk->draft = &list->drafts[i];
        walk->step = &steps[walk->draft->index];
        walk->action = walk->draft->action;
        if (jit->step_labels[walk->draft->index] != JIT_NONE) {
            jit_all_flush(jit);
            x86_bind(&jit->code, jit->step_labels[walk->draft->index]);
        } else if (walk->draft->fence != jit->open.fence) {
            jit_all_flush(jit);
        }
        jit->open.fence = walk->draft->fence;
        jit_draft_emit(walk);
    }
    leave_emit(jit);
    jit_stream_restart_emit(jit);
    jit_lines_find(jit);
    jit_slow_emit(jit);
    const int32_t size = -(int32_t)(JIT_FRAME_SPILLS + 64 * jit->registers.frame_vectors);
    if (!jit->code.failed) {
        memcpy(jit->code.bytes + frame, &size, sizeof(size));
    }
    return offset;
}

static bool walk_prepare(jit_walk *walk, const cpu_lower *lower)
{
    jit_state *jit = &walk->state;
    const size_t names = lower->name_count + 1, slots = lower->program->slot_count + 1;
    const size_t drafts = lower->lists[CPU_SECTION_DISPATCH].count +
                          (size_t)lower->lists[CPU_SECTION_GROUP].count + 1;
    jit->lower = lower;
    jit->open.generation[JIT_OPEN_UNIFORM] = jit->open.generation[JIT_OPEN_LANES] = 1;
    jit->open.names[JIT_OPEN_UNIFORM] = calloc(names, sizeof(jit_name));
    jit->open.names[JIT_OPEN_LANES] = calloc(names, sizeof(jit_name));
    jit->facts.references = calloc(names, sizeof(uint32_t));
    jit->facts.writers = calloc(names, sizeof(uint32_t));
    jit->facts.chosen = calloc(names, sizeof(uint32_t));
    jit->facts.of_rows = calloc(names, sizeof(bool));
    jit->facts.viewed = calloc(names, sizeof(uint32_t));
    jit->facts.constants = calloc(names, sizeof(*jit->facts.constants));
    jit->open.used_by = calloc(slots, sizeof(uint32_t));
    jit->open.written_by = calloc(slots, sizeof(uint32_t));
    jit->open.stored_by = calloc(slots, sizeof(uint32_t));
    jit->step_labels = calloc(drafts, sizeof(uint32_t));
    if (!jit->open.names[JIT_OPEN_UNIFORM] || !jit->open.names[JIT_OPEN_LANES] ||
        !jit->facts.references || !jit->facts.constants || !jit->open.used_by ||
        !jit->open.written_by || !jit->open.stored_by || !jit->step_labels || !jit->facts.writers ||
        !jit->facts.chosen || !jit->facts.viewed || !jit->facts.of_rows) {
        return false;
    }
    for (uint32_t i = 0; i < lower->constant_count; i++) {
        jit->facts.constants[lower->constants[i].name] = &lower->constants[i];
    }
    jit_stream_begin(jit);
    for (uint32_t section = 0; section < CPU_SECTION_COUNT; section++) {
        for (uint32_t i = 0; i < lower->lists[section].count; i++) {
            const cpu_draft *draft = &lower->lists[section].drafts[i];
            uint32_t read[CPU_REFERENCES], written[CPU_REFERENCES];
            const uint32_t reads = draft->live ? cpu_names_read(lower, draft, read) : 0;
            const uint32_t writes = draft->live ? cpu_names_written(lower, draft, written) : 0;
            for (uint32_t k = 0; k < reads; k++) {
                jit->facts.references[read[k] == CPU_NONE ? lower->name_count : read[k]]++;
            }
            for (uint32_t k = 0; k < writes; k++) {
                const uint32_t name = written[k] == CPU_NONE ? lower->name_count : written[k];
                jit->facts.references[name]++;
                jit->facts.writers[name]++;
                const bool chooses = draft->action.class == CPU_STEP_CHOOSE;
                jit->facts.chosen[name] =
                    jit->facts.writers[name] == 1 && chooses ? 1 + draft->a : 0;
            }
        }
    }
    return true;
}

static void walk_release(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    free(jit->open.names[JIT_OPEN_UNIFORM]);
    free(jit->open.names[JIT_OPEN_LANES]);
    free(jit->facts.references);
    free(jit->facts.writers);
    free(jit->facts.chosen);
    free(jit->facts.viewed);
    free(jit->facts.of_rows);
    free(jit->facts.constants);
    free(jit->open.used_by);
    free(jit->open.written_by);
    free(jit->open.stored_by);
    free(jit->step_labels);
    free(jit->slow_paths);
    free(jit->loop.asides);
    jit_program_release(&jit->open.uniform);
    jit_program_release(&jit->open.lanes);
    x86_code_release(&jit->code);
}

/* The processor's time: other threads of a busy machine do not count. */
static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const char *name_of(const hal_ir_kernel *ir)
{
    return ir->names ? ir->names + ir->name : "";
}

/* Once for the process. */
static void refusal_log(void)
{
    static atomic_bool logged;
    if (!atomic_exchange(&logged, true)) {
        kit_log(HAL_LOG_WARN, "cpu: the system refuses executable memory: kernels are "
                                      "interpreted");
    }
}

/* HAL_LOG=debug: what was compiled, and what is called. */
static void compile_log(const jit_walk *walk, uint64_t nanoseconds)
{
    const jit_state *jit = &walk->state;
    char line[480];
    snprintf(line, sizeof(line),
             "cpu: kernel %s: %s: %u operations, %u calls of steps%s%s, %zu bytes, %llu us",
             name_of(jit->lower->ir), jit->output->bytes ? "compiled" : "not compiled",
             jit->operations, jit->calls, jit->calls > 0 ? ":" : "", walk->called,
             jit->output->size, (unsigned long long)nanoseconds / 1000);
    kit_log(HAL_LOG_DEBUG, line);
}

/* Null: not compiled. By the name, because a table is filled by instructions of its set. */
static const jit_target *target_of(const cpu_lanes *lanes)
{
#if defined(__x86_64__)
    const bool is_avx512 = strcmp(lanes->name, "avx512") == 0;
    return is_avx512 ? &jit_avx512 : strcmp(lanes->name, "avx2") == 0 ? &jit_avx2 : NULL;
#else
    (void)lanes;
    return NULL;
#endif
}

bool cpu_jit_is_possible(const cpu_lanes *lanes)
{
    return target_of(lanes) != NULL;
}

void cpu_jit_compile(const cpu_lower *lower, uint64_t stream_bytes, cpu_code *code)
{
    jit_walk *walk = calloc(1, sizeof(*walk));
    if (!walk) {
        return;
    }
    jit_state *jit = &walk->state;
    const uint64_t start = thread_ns();
    jit->output = code;
    jit->target = target_of(lower->lanes);
    jit->code.vex = jit->target->length != X86_ZMM;
    if (walk_prepare(walk, lower)) {
        const uint32_t dispatch =
            section_emit(walk, CPU_SECTION_DISPATCH, lower->program->dispatch);
        const uint32_t group = section_emit(walk, CPU_SECTION_GROUP, lower->program->group);
        const bool whole = !jit->failed && !jit->open.uniform.failed && !jit->open.lanes.failed;
        if (x86_finish(&jit->code) && whole) {
            code->size = jit->code.count;
            code->bytes = cpu_code_create(jit->code.bytes, jit->code.count);
        }
        if (code->bytes) {
            const uintptr_t base = (uintptr_t)code->bytes;
            code->dispatch = (cpu_code_function *)(base + dispatch);
            code->group = (cpu_code_function *)(base + group);
            cpu_code_dump(name_of(lower->ir), lower->lanes->name, code->bytes, code->size);
        }
    }
    cpu_code_finish(code, stream_bytes);
    if (!code->bytes && code->size > 0) {
        refusal_log();
    }
    compile_log(walk, thread_ns() - start);
    walk_release(walk);
    free(walk);
}
