/* Memory of buffers, with pages on both sides that end a kernel's access: the end of a buffer is
 * the end of a page, except for its alignment. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGNMENT = 256 };

static struct {
    pthread_mutex_t mutex;
    standin_memory *first;
    size_t total;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void memory_list(standin_memory *memory, size_t length, uint64_t options)
{
    memory->length = length;
    memory->options = options;
    atomic_init(&memory->references, 1);
    atomic_init(&memory->released, false);
    pthread_mutex_lock(&all.mutex);
    memory->next = all.first;
    all.first = memory;
    all.total += length;
    pthread_mutex_unlock(&all.mutex);
}

standin_memory *standin_memory_create(size_t length, uint64_t options)
{
    standin_memory *memory = calloc(1, sizeof *memory);
    const size_t pages = (length + PAGE - 1) / PAGE * PAGE;
    if (!memory) {
        return NULL;
    }
    memory->mapped = pages + 2 * (size_t)PAGE;
    memory->mapping = mmap(NULL, memory->mapped, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->mapping == MAP_FAILED ||
        mprotect(memory->mapping + PAGE, pages, PROT_READ | PROT_WRITE) != 0) {
        if (memory->mapping != MAP_FAILED) {
            munmap(memory->mapping, memory->mapped);
        }
        free(memory);
        return NULL;
    }
    const size_t room = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memory->bytes = memory->mapping + PAGE + (pages - room);
    memory_list(memory, length, options);
    return memory;
}

standin_memory *standin_memory_adopt(void *pages, size_t length, uint64_t options)
{
    standin_memory *memory = calloc(1, sizeof *memory);
    if (memory) {
        memory->mapping = memory->bytes = pages;
        memory->mapped = length;
        memory->is_adopted = true;
        memory_list(memory, length, options);
    }
    return memory;
}

void standin_memory_ref(standin_memory *memory)
{
    atomic_fetch_add(&memory->references, 1);
}

void standin_memory_unref(standin_memory *memory)
{
    if (atomic_fetch_sub(&memory->references, 1) != 1) {
        return;
    }
    pthread_mutex_lock(&all.mutex);
    standin_memory **place = &all.first;
    while (*place != memory) {
        place = &(*place)->next;
    }
    *place = memory->next;
    pthread_mutex_unlock(&all.mutex);
    if (!memory->is_adopted) {
        munmap(memory->mapping, memory->mapped);
    }
    free(memory->shadow);
    free(memory);
}

void standin_memory_release(standin_memory *memory)
{
    pthread_mutex_lock(&all.mutex);
    all.total -= memory->length;
    pthread_mutex_unlock(&all.mutex);
    atomic_store(&memory->released, true);
    if (!memory->is_adopted) {
        mprotect(memory->mapping, memory->mapped, PROT_NONE);
    }
    standin_memory_unref(memory);
}

standin_memory *standin_memory_find(uint64_t address)
{
    pthread_mutex_lock(&all.mutex);
    standin_memory *memory = all.first;
    while (memory && !(address >= (uint64_t)(uintptr_t)memory->mapping &&
                               address < (uint64_t)(uintptr_t)memory->mapping + memory->mapped)) {
        memory = memory->next;
    }
    pthread_mutex_unlock(&all.mutex);
    return memory;
}

size_t standin_memory_total(void)
{
    pthread_mutex_lock(&all.mutex);
    const size_t total = all.total;
    pthread_mutex_unlock(&all.mutex);
    return total;
}
