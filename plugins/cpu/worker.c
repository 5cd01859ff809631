/* A worker: one thread's arena and slots for running the groups of a kernel. */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

/* Lays the slots out for a kernel and fills in what never changes. Programs with many small kernels
 * call this for each dispatch. */
static void worker_bind(cpu_worker *worker, const cpu_executable *executable)
{
    const cpu_program *program = &executable->program;
    uint8_t *const arena = worker->arena;
    void **const slots = worker->slots;
    const size_t *const offsets = program->slot_offset;
    const uint32_t count = program->slot_count;
    worker->executable = executable->number;
    worker->items = program->items;
    memcpy(worker->place, program->place, sizeof(worker->place));
    memcpy(arena, program->image, program->image_bytes);
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = arena + offsets[i];
    }
    for (uint32_t i = program->binding_count; i < program->memory_count; i++) {
        worker->memory[i] = arena + program->shared_offset[i - program->binding_count];
        worker->bytes[i] = executable->check ? cpu_check_bytes(executable->check, i) : 0;
    }
}

static void steps_run(cpu_worker *worker, const cpu_step *steps)
{
    const cpu_step *step = steps;
    while (step) {
        step = step->run(worker, step);
    }
}

bool cpu_worker_reserve(cpu_worker *worker, size_t arena_bytes, uint32_t slot_count,
                        uint32_t memory_count)
{
    const size_t lanes = CPU_MAX_ITEMS * (sizeof(int64_t) + 1);
    uint8_t *arena = NULL;
    void **slots = calloc(slot_count + 1, sizeof(void *));
    void **memory = calloc(memory_count + 1, sizeof(void *));
    uint64_t *sizes = calloc(memory_count + 1, sizeof(uint64_t));
    int64_t *index = malloc(lanes);
    const size_t bytes = (arena_bytes / CPU_ALIGNMENT + 1) * CPU_ALIGNMENT;
    void *aligned = NULL;
    if (posix_memalign(&aligned, 4096, bytes) == 0) {
        arena = aligned;
        memset(arena, 0, bytes);
    }
    if (!arena || !slots || !memory || !sizes || !index) {
        free(arena);
        free(slots);
        free(memory);
        free(sizes);
        free(index);
        return false;
    }
    cpu_worker_release(worker);
    worker->arena = arena;
    worker->arena_bytes = bytes;
    worker->slots = slots;
    worker->memory = memory;
    worker->bytes = sizes;
    worker->index = index;
    worker->chosen = (uint8_t *)(index + CPU_MAX_ITEMS);
    return true;
}

void cpu_worker_release(cpu_worker *worker)
{
    free(worker->arena);
    free(worker->slots);
    free(worker->memory);
    free(worker->bytes);
    free(worker->index);
    memset(worker, 0, sizeof(*worker));
}

void cpu_worker_begin(cpu_worker *worker, const cpu_executable *executable, void *const *bindings,
                      const uint64_t *bytes, const uint8_t *scalars, const uint32_t grid[3])
{
    const uint32_t binding_count = executable->program.binding_count;
    if (worker->executable != executable->number) {
        worker_bind(worker, executable);
    }
    for (uint32_t i = 0; i < binding_count; i++) {
        worker->memory[i] = bindings[i];
        worker->bytes[i] = bytes ? bytes[i] : 0;
    }
    worker->check = executable->check;
    for (uint32_t i = 0; i < 3; i++) {
        worker->grid[i] = grid[i];
        worker->group[i] = 0;
    }
    worker->scalars = scalars;
    worker->stream_code = NULL;
    if (executable->code.stream.patch_count > 0) {
        cpu_code *code = (cpu_code *)&executable->code; /* which keeps the form when it is made */
        worker->stream_code = cpu_code_stream(code, worker, binding_count);
    }
    if (executable->code.dispatch) {
        executable->code.dispatch(worker);
    } else {
        steps_run(worker, executable->program.dispatch);
    }
}

static void group_run(cpu_worker *worker, const cpu_executable *executable)
{
    if (worker->stream_code) {
        worker->restarts = 0;
        worker->stream_code(worker);
        if (worker->restarts == 0) {
            return;
        }
        worker->stream_code = NULL;
    }
    if (executable->code.group) {
        executable->code.group(worker);
    } else {
        steps_run(worker, executable->program.group);
    }
}

void cpu_worker_groups(cpu_worker *worker, const cpu_executable *executable, uint64_t first,
                       uint64_t count)
{
    const uint64_t row = first / worker->grid[0];
    worker->group[0] = (uint32_t)(first % worker->grid[0]);
    worker->group[1] = (uint32_t)(row % worker->grid[1]);
    worker->group[2] = (uint32_t)(row / worker->grid[1]);
    const bool streams = worker->stream_code != NULL;
    for (uint64_t i = 0; i < count; i++) {
        group_run(worker, executable);
        if (++worker->group[0] == worker->grid[0]) {
            worker->group[0] = 0;
            if (++worker->group[1] == worker->grid[1]) {
                worker->group[1] = 0;
                worker->group[2]++;
            }
        }
    }
    if (streams) {
        cpu_code_fence();
    }
}
