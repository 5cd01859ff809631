/* Compiled code and its form for large outputs. */
#include "jit/encoder/code.h"

#include "jit/encoder/code_memory.h"

#include <stdlib.h>
#include <string.h>

static void patches_release(cpu_stream *stream)
{
    free(stream->patches);
    stream->patches = NULL;
    stream->patch_count = 0;
}

void cpu_code_finish(cpu_code *code, uint64_t least_bytes)
{
    cpu_stream *stream = &code->stream;
    const bool stores = stream->patch_count > 0 && stream->group_bytes > 0 && code->bytes != NULL;
    cpu_stream_patch *kept =
        stores ? realloc(stream->patches, stream->patch_count * sizeof(*kept)) : NULL;
    if (!kept) {
        patches_release(stream);
        return;
    }
    stream->patches = kept;
    stream->least_groups = least_bytes / stream->group_bytes + 1;
}

void cpu_code_release(cpu_code *code)
{
    cpu_code_destroy(atomic_load(&code->stream.code), code->size);
    patches_release(&code->stream);
    cpu_code_destroy(code->bytes, code->size);
    free(code->lane_ids);
}

/* Makes the form for large outputs, once; threads that come together each make one, and one
 * remains. */
static void *stream_code_find(cpu_code *code)
{
    cpu_stream *stream = &code->stream;
    void *found = atomic_load_explicit(&stream->code, memory_order_acquire);
    if (found || atomic_load_explicit(&stream->refused, memory_order_relaxed)) {
        return found;
    }
    uint8_t *bytes = malloc(code->size);
    if (bytes) {
        memcpy(bytes, code->bytes, code->size);
        for (uint32_t i = 0; i < stream->patch_count; i++) {
            bytes[stream->patches[i].at] = stream->patches[i].byte;
        }
        found = cpu_code_create(bytes, code->size);
        free(bytes);
    }
    if (!found) {
        atomic_store_explicit(&stream->refused, true, memory_order_relaxed);
        return NULL;
    }
    void *other = NULL;
    if (!atomic_compare_exchange_strong(&stream->code, &other, found)) {
        cpu_code_destroy(found, code->size);
        found = other;
    }
    return found;
}

/* Whether two bindings of a dispatch share memory: a group that begins again would read what it has
 * written. */
static bool bindings_overlap(const cpu_worker *worker, uint32_t binding_count)
{
    for (uint32_t i = 0; i < binding_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const uintptr_t x = (uintptr_t)worker->memory[i], y = (uintptr_t)worker->memory[k];
            if (x < y + worker->bytes[k] && y < x + worker->bytes[i]) {
                return true;
            }
        }
    }
    return false;
}

cpu_code_function *cpu_code_stream(cpu_code *code, const cpu_worker *worker, uint32_t binding_count)
{
    const uint64_t groups = (uint64_t)worker->grid[0] * worker->grid[1] * (uint64_t)worker->grid[2];
    if (code->stream.patch_count == 0 || groups < code->stream.least_groups ||
        bindings_overlap(worker, binding_count)) {
        return NULL;
    }
    const uintptr_t found = (uintptr_t)stream_code_find(code);
    const uintptr_t group = (uintptr_t)code->group - (uintptr_t)code->bytes;
    return found != 0 ? (cpu_code_function *)(found + group) : NULL;
}

void cpu_code_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}
