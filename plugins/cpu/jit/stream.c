/* Code whose stores bypass the caches, see stream.h. */
#include "jit/stream.h"

#include "jit/code_memory.h"
#include "cpu_plugin.h"

#include <stdlib.h>
#include <string.h>

void cpu_stream_finish(cpu_kernel *kernel)
{
    cpu_stream *stream = &kernel->stream;
    const bool stores = stream->patch_count > 0 && stream->group_bytes > 0 && kernel->code != NULL;
    cpu_stream_patch *kept =
        stores ? realloc(stream->patches, stream->patch_count * sizeof(*kept)) : NULL;
    if (!kept) {
        cpu_stream_destroy(kernel);
        stream->patch_count = 0;
        return;
    }
    stream->patches = kept;
    stream->least_groups = stream->least_bytes / stream->group_bytes + 1;
}

void cpu_stream_destroy(cpu_kernel *kernel)
{
    cpu_code_destroy(atomic_load(&kernel->stream.code), kernel->code_bytes);
    free(kernel->stream.patches);
    kernel->stream.patches = NULL;
}

/* Makes the second form, once; threads that come together each make one, and one remains. */
static void *code_find(cpu_kernel *kernel)
{
    cpu_stream *stream = &kernel->stream;
    void *code = atomic_load_explicit(&stream->code, memory_order_acquire);
    if (code || atomic_load_explicit(&stream->refused, memory_order_relaxed)) {
        return code;
    }
    uint8_t *bytes = malloc(kernel->code_bytes);
    if (bytes) {
        memcpy(bytes, kernel->code, kernel->code_bytes);
        for (uint32_t i = 0; i < stream->patch_count; i++) {
            bytes[stream->patches[i].at] = stream->patches[i].byte;
        }
        code = cpu_code_create(bytes, kernel->code_bytes);
        free(bytes);
    }
    if (!code) {
        atomic_store_explicit(&stream->refused, true, memory_order_relaxed);
        return NULL;
    }
    void *other = NULL;
    if (!atomic_compare_exchange_strong(&stream->code, &other, code)) {
        cpu_code_destroy(code, kernel->code_bytes);
        code = other;
    }
    return code;
}

/* Whether two bindings of a dispatch share memory: a group that begins again would read what it has
 * written. */
static bool bindings_overlap(const cpu_worker *worker, const cpu_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const uintptr_t x = (uintptr_t)worker->memory[i], y = (uintptr_t)worker->memory[k];
            if (x < y + worker->bytes[k] && y < x + worker->bytes[i]) {
                return true;
            }
        }
    }
    return false;
}

void cpu_stream_choose(cpu_worker *worker, const cpu_kernel *kernel)
{
    const uint64_t groups = (uint64_t)worker->grid[0] * worker->grid[1] * (uint64_t)worker->grid[2];
    worker->stream_code = NULL;
    if (groups >= kernel->stream.least_groups && !bindings_overlap(worker, kernel)) {
        const uintptr_t code = (uintptr_t)code_find((cpu_kernel *)kernel);
        if (code != 0) {
            const uintptr_t group = (uintptr_t)kernel->group_code - (uintptr_t)kernel->code;
            worker->stream_code = (void (*)(cpu_worker *))(code + group);
        }
    }
}

void cpu_stream_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}
