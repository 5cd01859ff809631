/* Work-items as fibers, see fibers.h. */
#include "fibers.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

struct kit_fibers {
    const hal_host *host;
    uint32_t most_items, items;
    uint32_t present; /* the fiber that runs */
    uint64_t stack_bytes;
    uint8_t *stacks;
    kit_fiber_body body;
    void *user;
    ucontext_t caller;
    ucontext_t contexts[];
};

/* makecontext passes ints: the pointer goes in two halves. */
static void fiber_enter(uint32_t low, uint32_t high)
{
    kit_fibers *f = (kit_fibers *)(uintptr_t)((uint64_t)high << 32 | low);
    f->body(f->user, f->present);
}

/* Each fiber ends in the next one's start or resumption, the last one in the caller. */
static void fiber_prepare(kit_fibers *f, uint32_t item)
{
    const uint64_t address = (uintptr_t)f;
    ucontext_t *context = &f->contexts[item];
    getcontext(context);
    context->uc_stack.ss_sp = f->stacks + item * f->stack_bytes;
    context->uc_stack.ss_size = f->stack_bytes;
    context->uc_link = &f->caller;
    makecontext(context, (void (*)(void))fiber_enter, 2, (uint32_t)address,
                (uint32_t)(address >> 32));
}

hal_status kit_fibers_create(const hal_host *host, uint32_t most_items, uint64_t stack_bytes,
                             kit_fibers **fibers)
{
    char message[128];
    kit_fibers *f = host->allocate(host, sizeof *f + most_items * sizeof f->contexts[0], 64);
    void *stacks = !f ? MAP_FAILED
                      : mmap(NULL, most_items * stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        host->release(host, f);
        snprintf(message, sizeof message,
                 "kit_fibers_create: no host memory for %u stacks of %llu bytes", most_items,
                 (unsigned long long)stack_bytes);
        return host->fail(host, HAL_ERROR_OUT_OF_MEMORY, message);
    }
    memset(f, 0, sizeof *f);
    f->host = host;
    f->most_items = most_items;
    f->stack_bytes = stack_bytes;
    f->stacks = stacks;
    *fibers = f;
    return HAL_OK;
}

void kit_fibers_destroy(kit_fibers *f)
{
    if (f) {
        munmap(f->stacks, f->most_items * f->stack_bytes);
        f->host->release(f->host, f);
    }
}

void kit_fibers_run(kit_fibers *f, uint32_t items, kit_fiber_body body, void *user)
{
    f->items = items;
    f->body = body;
    f->user = user;
    for (uint32_t i = 0; i < items; i++) {
        fiber_prepare(f, i);
    }
    /* A fiber comes back here when it ends. The others are then at the barrier before their end, or
     * not begun, since all reach the same barriers. */
    for (uint32_t i = 0; i < items; i++) {
        f->present = i;
        swapcontext(&f->caller, &f->contexts[i]);
    }
}

void kit_fibers_barrier(kit_fibers *f)
{
    const uint32_t item = f->present;
    f->present = item + 1 < f->items ? item + 1 : 0;
    if (f->present != item) {
        swapcontext(&f->contexts[item], &f->contexts[f->present]);
    }
}
