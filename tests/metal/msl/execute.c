/* Runs grids of work-items on the calling thread. Kernels with barriers or simdgroup operations run
 * as coroutines, one stack for each work-item of a group; others are called one after another.
 * Groups run from the last to the first, and work-items in an order that changes at each barrier,
 * so that what depends on an order shows. Memory that no buffer has ends a grid, by SIGSEGV. */
#undef _FORTIFY_SOURCE
#include "msl.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#else
#include <xmmintrin.h>
#endif

enum { STACK_BYTES = 128 * 1024, PAGE = 4096, MAX_ARRAYS = 64, LANE_BYTES = 16 };

/* include/metal_stdlib has the same. */
typedef struct item_state {
    uint32_t position[4], local_position[4], group[4], group_size[4], groups[4], grid[4];
    uint32_t index, lane, simdgroup, simdgroup_width, simdgroups, unused;
    uint64_t buffers[MSL_BUFFERS];
    uint64_t threadgroups[MSL_BUFFERS];
} item_state;

typedef enum progress { READY, FINISHED, AT_BARRIER, AT_SIMDGROUP } progress;

typedef struct work_item {
    item_state state;
    progress progress;
    const void *site; /* of the call that waits */
#ifdef __x86_64__
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    uint32_t gathers; /* done, to alternate between two places */
} work_item;

typedef struct exchange {
    unsigned char lanes[2][MSL_SIMD * LANE_BYTES];
    uint32_t active;
} exchange;

static struct {
    pthread_mutex_t mutex;
    work_item *items;
    exchange exchanges[MSL_MAX_THREADS / MSL_SIMD];
    unsigned char *stacks, *shared, *shared_start;
    uint32_t stack_count;
    const msl_function *function;
    work_item *current;
    uint32_t item_count, round;
    unsigned char *arrays[MAX_ARRAYS];
    uint32_t shared_used, shared_size;
    msl_watcher *watcher;
    void *watcher_context;
    char *error;
    uint64_t fault;
#ifdef __x86_64__
    void *main_stack;
#else
    ucontext_t main_context;
#endif
    sigjmp_buf escape;
    volatile sig_atomic_t executing;
    pthread_t thread;
    struct sigaction before[2];
} x = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void fail(const char *sentence)
{
    snprintf(x.error, 256, "%s", sentence);
    siglongjmp(x.escape, 1);
}

/* -- switching ------------------------------------------------------------------------------- */
void msl_leave(void);

static void item_main(void)
{
    for (;;) {
        x.function->entry(&x.current->state);
        x.current->progress = FINISHED;
        msl_leave();
    }
}

#ifdef __x86_64__
void msl_switch(void **save, void *load);
__asm__(".text\n.hidden msl_switch\n.globl msl_switch\n.type msl_switch,@function\nmsl_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n    popq %r15\n"
        "    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n    ret\n"
        ".size msl_switch,.-msl_switch\n");

static void prepare(work_item *item, unsigned char *stack)
{
    void **top = (void **)(void *)(stack + STACK_BYTES);
    void (*const start)(void) = item_main;
    *--top = NULL; /* as if item_main had been called: 8 bytes off a multiple of 16 */
    memcpy(--top, &start, sizeof start);
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    item->stack_pointer = top;
}

static void enter(work_item *item)
{
    x.current = item;
    msl_switch(&x.main_stack, item->stack_pointer);
}

void msl_leave(void)
{
    msl_switch(&x.current->stack_pointer, x.main_stack);
}
#else
static void prepare(work_item *item, unsigned char *stack)
{
    getcontext(&item->context);
    item->context.uc_stack.ss_sp = stack;
    item->context.uc_stack.ss_size = STACK_BYTES;
    item->context.uc_link = NULL;
    makecontext(&item->context, item_main, 0);
}

static void enter(work_item *item)
{
    x.current = item;
    swapcontext(&x.main_context, &item->context);
}

void msl_leave(void)
{
    swapcontext(&x.current->context, &x.main_context);
}
#endif

/* -- what kernels call ----------------------------------------------------------------------- */
void msl_barrier(uint32_t flags);
void msl_barrier(uint32_t flags)
{
    (void)flags;
    x.current->progress = AT_BARRIER;
    x.current->site = __builtin_return_address(0);
    msl_leave();
}

void msl_simdgroup_barrier(void);
void msl_simdgroup_barrier(void)
{
    x.current->progress = AT_SIMDGROUP;
    x.current->site = __builtin_return_address(0);
    msl_leave();
}

const void *msl_gather(const void *value, uint32_t size);
const void *msl_gather(const void *value, uint32_t size)
{
    work_item *item = x.current;
    exchange *e = &x.exchanges[item->state.simdgroup];
    unsigned char *lanes = e->lanes[item->gathers++ & 1];
    memcpy(lanes + LANE_BYTES * item->state.lane, value, size < LANE_BYTES ? size : LANE_BYTES);
    item->progress = AT_SIMDGROUP;
    item->site = __builtin_return_address(0);
    msl_leave();
    return lanes;
}

uint32_t msl_active(void);
uint32_t msl_active(void)
{
    return x.exchanges[x.current->state.simdgroup].active;
}

uint32_t msl_lane(void);
uint32_t msl_lane(void)
{
    return x.current->state.lane;
}

static unsigned char *shared_array(uint32_t size)
{
    unsigned char *array = x.shared_start + x.shared_used;
    x.shared_used += (size + 15) / 16 * 16;
    if (x.shared_used > x.shared_size) {
        fail("threadgroup memory: the arrays of the kernel take more than the pipeline has");
    }
    return array;
}

void *msl_threadgroup_array(uint32_t number, uint32_t size);
void *msl_threadgroup_array(uint32_t number, uint32_t size)
{
    if (number >= MAX_ARRAYS) {
        fail("threadgroup memory: more arrays than the stand-in has places for");
    }
    if (!x.arrays[number]) {
        x.arrays[number] = shared_array(size);
    }
    return x.arrays[number];
}

static void watch(const volatile void *place, uint32_t size, int writes, int is_atomic)
{
    const unsigned char *address = (const unsigned char *)(uintptr_t)place;
    const int is_shared = address >= x.shared && address < x.shared + 2 * MSL_THREADGROUP_BYTES;
    const int is_stack = x.stacks && address >= x.stacks &&
                         address < x.stacks + (size_t)MSL_MAX_THREADS * STACK_BYTES;
    if (x.executing && x.watcher && !is_shared && !is_stack) {
        x.watcher(x.watcher_context, (uint64_t)(uintptr_t)place, size, writes, is_atomic);
    }
}

void msl_atomic(const volatile void *place, uint32_t size);
void msl_atomic(const volatile void *place, uint32_t size)
{
    watch(place, size, 1, 1);
}

#define WATCHED(bytes)                                                      \
    void __tsan_read##bytes(void *p);                                       \
    void __tsan_read##bytes(void *p) { watch(p, bytes, 0, 0); }             \
    void __tsan_write##bytes(void *p);                                      \
    void __tsan_write##bytes(void *p) { watch(p, bytes, 1, 0); }            \
    void __tsan_unaligned_read##bytes(void *p);                             \
    void __tsan_unaligned_read##bytes(void *p) { watch(p, bytes, 0, 0); }   \
    void __tsan_unaligned_write##bytes(void *p);                            \
    void __tsan_unaligned_write##bytes(void *p) { watch(p, bytes, 1, 0); }  \
    void __tsan_read_write##bytes(void *p);                                 \
    void __tsan_read_write##bytes(void *p) { watch(p, bytes, 1, 0); }       \
    void __tsan_unaligned_read_write##bytes(void *p);                       \
    void __tsan_unaligned_read_write##bytes(void *p) { watch(p, bytes, 1, 0); }
WATCHED(1) WATCHED(2) WATCHED(4) WATCHED(8) WATCHED(16)

void __tsan_init(void);
void __tsan_init(void)
{
}

void *__tsan_memcpy(void *to, const void *from, size_t count);
void *__tsan_memcpy(void *to, const void *from, size_t count)
{
    watch(from, (uint32_t)count, 0, 0);
    watch(to, (uint32_t)count, 1, 0);
    return memcpy(to, from, count);
}

void *__tsan_memset(void *to, int value, size_t count);
void *__tsan_memset(void *to, int value, size_t count)
{
    watch(to, (uint32_t)count, 1, 0);
    return memset(to, value, count);
}

/* -- groups ---------------------------------------------------------------------------------- */
/* All unfinished lanes have to be at the same call; the values of the others are a pattern. */
static void meet(uint32_t first, uint32_t last)
{
    exchange *e = &x.exchanges[x.items[first].state.simdgroup];
    const void *site = NULL;
    uint32_t active = 0, gathers = 0;
    for (uint32_t i = first; i < last; i++) {
        const work_item *item = &x.items[i];
        if (item->progress == FINISHED) {
            continue;
        }
        if (item->progress != AT_SIMDGROUP || (site && site != item->site)) {
            fail("a simdgroup operation is reached by some lanes only");
        }
        site = item->site;
        gathers = item->gathers;
        active |= 1u << item->state.lane;
    }
    e->active = active;
    for (uint32_t lane = 0; lane < MSL_SIMD; lane++) {
        if (!(active >> lane & 1)) {
            memset(e->lanes[(gathers - 1) & 1] + LANE_BYTES * lane, 0xcd, LANE_BYTES);
        }
    }
    for (uint32_t i = first; i < last; i++) {
        if (x.items[i].progress == AT_SIMDGROUP) {
            x.items[i].progress = READY;
        }
    }
}

/* Until all of its lanes are finished or at a barrier of the group. */
static void run_simdgroup(uint32_t first, uint32_t last)
{
    for (;;) {
        int waits = 0;
        for (uint32_t i = first; i < last; i++) {
            work_item *item = &x.items[x.round & 1 ? last - 1 - (i - first) : i];
            if (item->progress == READY) {
                enter(item);
            }
            waits |= item->progress == AT_SIMDGROUP;
        }
        if (!waits) {
            return;
        }
        meet(first, last);
    }
}

static void run_coroutines(void)
{
    const uint32_t simdgroups = (x.item_count + MSL_SIMD - 1) / MSL_SIMD;
    for (x.round = 0;; x.round++) {
        for (uint32_t i = 0; i < simdgroups; i++) {
            const uint32_t s = x.round & 1 ? simdgroups - 1 - i : i;
            const uint32_t end = (s + 1) * MSL_SIMD;
            run_simdgroup(s * MSL_SIMD, end < x.item_count ? end : x.item_count);
        }
        uint32_t finished = 0;
        const void *site = NULL;
        for (uint32_t i = 0; i < x.item_count; i++) {
            work_item *item = &x.items[i];
            finished += item->progress == FINISHED;
            if (item->progress == AT_BARRIER && site && item->site != site) {
                fail("work-items of a group are at different barriers");
            }
            site = item->progress == AT_BARRIER ? item->site : site;
        }
        if (finished == x.item_count) {
            return;
        }
        if (finished > 0) {
            fail("a threadgroup barrier is not reached by all work-items of the group");
        }
        for (uint32_t i = 0; i < x.item_count; i++) {
            x.items[i].progress = READY;
        }
    }
}

static void clear_shared(const msl_grid *grid)
{
    x.shared_used = 0;
    memset(x.arrays, 0, sizeof x.arrays);
    memset(x.shared_start, 0xcd, x.shared_size);
    for (uint32_t i = 0; i < MSL_BUFFERS; i++) {
        x.items[0].state.threadgroups[i] =
            grid->threadgroup_bytes[i] > 0
                ? (uint64_t)(uintptr_t)shared_array(grid->threadgroup_bytes[i])
                : 0;
    }
}

/* Fills in the places of the work-items of a group; position 0 has what all of them share. */
static void place_items(const msl_grid *grid, const uint32_t group[3])
{
    uint32_t size[3], at[3];
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t full = grid->group_size[d];
        const uint32_t total = grid->threads[d] > 0 ? grid->threads[d] : full * grid->groups[d];
        size[d] = total - group[d] * full < full ? total - group[d] * full : full;
    }
    x.item_count = size[0] * size[1] * size[2];
    clear_shared(grid);
    const item_state shared = x.items[0].state;
    uint32_t index = 0;
    for (at[2] = 0; at[2] < size[2]; at[2]++) {
        for (at[1] = 0; at[1] < size[1]; at[1]++) {
            for (at[0] = 0; at[0] < size[0]; at[0]++, index++) {
                item_state *state = &x.items[index].state;
                *state = shared;
                for (uint32_t d = 0; d < 3; d++) {
                    state->local_position[d] = at[d];
                    state->group[d] = group[d];
                    state->group_size[d] = size[d];
                    state->position[d] = group[d] * grid->group_size[d] + at[d];
                }
                state->index = index;
                state->lane = index % MSL_SIMD;
                state->simdgroup = index / MSL_SIMD;
                state->simdgroups = (x.item_count + MSL_SIMD - 1) / MSL_SIMD;
            }
        }
    }
}

static void run_group(const msl_grid *grid, const uint32_t group[3])
{
    place_items(grid, group);
    if (!x.function->needs_coroutines) {
        for (uint32_t i = 0; i < x.item_count; i++) {
            x.current = &x.items[i];
            x.function->entry(&x.items[i].state);
        }
        return;
    }
    for (; x.stack_count < x.item_count; x.stack_count++) {
        unsigned char *stack = x.stacks + (size_t)x.stack_count * STACK_BYTES;
        mprotect(stack, PAGE, PROT_NONE);
    }
    for (uint32_t i = 0; i < x.item_count; i++) {
        prepare(&x.items[i], x.stacks + (size_t)i * STACK_BYTES);
        x.items[i].progress = READY;
        x.items[i].gathers = 0;
    }
    run_coroutines();
}

static void run_grid(const msl_grid *grid)
{
    item_state *first = &x.items[0].state;
    memset(first, 0, sizeof *first);
    memcpy(first->buffers, grid->buffers, sizeof first->buffers);
    for (uint32_t d = 0; d < 3; d++) {
        first->groups[d] = grid->groups[d];
        first->grid[d] =
            grid->threads[d] > 0 ? grid->threads[d] : grid->groups[d] * grid->group_size[d];
    }
    first->simdgroup_width = MSL_SIMD;
    uint32_t group[3];
    for (group[2] = grid->groups[2]; group[2]-- > 0;) {
        for (group[1] = grid->groups[1]; group[1]-- > 0;) {
            for (group[0] = grid->groups[0]; group[0]-- > 0;) {
                run_group(grid, group);
            }
        }
    }
}

/* -- faults ---------------------------------------------------------------------------------- */
static void on_fault(int number, siginfo_t *info, void *context)
{
    if (x.executing && pthread_equal(pthread_self(), x.thread)) {
        x.fault = (uint64_t)(uintptr_t)info->si_addr;
        snprintf(x.error, 256, "an access of memory that no resource of the command has");
        siglongjmp(x.escape, 1);
    }
    /* Not a kernel's: the default action, or the handler of before, takes the repeated fault. */
    (void)context;
    sigaction(number, &x.before[number == SIGBUS], NULL);
}

/* Kernels compute without denormals where METAL_STANDIN_FLUSH is set, as Apple's GPUs may. Returns
 * what to put back. */
static uint32_t flush_denormals(void)
{
    uint32_t before = 0;
#ifdef __x86_64__
    before = _mm_getcsr();
    if (getenv("METAL_STANDIN_FLUSH")) {
        _mm_setcsr(before | 0x8040); /* flush results to zero, take operands as zero */
    }
#endif
    return before;
}

static void restore_denormals(uint32_t before)
{
#ifdef __x86_64__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

static int set_up(void)
{
    if (x.items) {
        return 0;
    }
    const size_t stacks = (size_t)MSL_MAX_THREADS * STACK_BYTES;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    x.stacks = mmap(NULL, stacks, PROT_READ | PROT_WRITE, flags, -1, 0);
    x.shared = mmap(NULL, 2 * MSL_THREADGROUP_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    x.items = calloc(MSL_MAX_THREADS, sizeof *x.items);
    if (x.stacks == MAP_FAILED || x.shared == MAP_FAILED || !x.items) {
        return -1;
    }
    /* Past the end of threadgroup memory there is none. */
    mprotect(x.shared + MSL_THREADGROUP_BYTES, MSL_THREADGROUP_BYTES, PROT_NONE);
    return 0;
}

static void install(int number, struct sigaction *before)
{
    const struct sigaction action = {.sa_sigaction = on_fault,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(number, &action, before);
}

/* Commands run in a thread of their own, so that a program that compares its handlers meanwhile
 * would see them change. Those that are tested so start with this library preloaded, and have the
 * handlers from their start. Opening a device must not set them. */
__attribute__((constructor)) static void install_at_start(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded && strstr(preloaded, "MetalStandin")) {
        install(SIGSEGV, &x.before[0]);
        install(SIGBUS, &x.before[1]);
    }
}

/* The handler runs on another stack, because a kernel's may be what overflowed. Programs that
 * have set handlers since get them back. */
static void catch_faults(stack_t *old, struct sigaction handlers[2])
{
    static unsigned char stack[64 * 1024];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, old);
    install(SIGSEGV, &handlers[0]);
    install(SIGBUS, &handlers[1]);
    x.thread = pthread_self();
    x.executing = 1;
}

static void stop_catching(const stack_t *old, const struct sigaction handlers[2])
{
    x.executing = 0;
    sigaction(SIGSEGV, &handlers[0], NULL);
    sigaction(SIGBUS, &handlers[1], NULL);
    sigaltstack(old, NULL);
}

int msl_execute(const msl_function *function, const msl_grid *grid, msl_watcher *watcher,
                void *context, char error[256], uint64_t *address)
{
    pthread_mutex_lock(&x.mutex);
    error[0] = 0;
    volatile int status = set_up();
    if (status == 0) {
        stack_t old;
        struct sigaction handlers[2];
        uint32_t dynamic = 0;
        for (uint32_t i = 0; i < MSL_BUFFERS; i++) {
            dynamic += (grid->threadgroup_bytes[i] + 15) / 16 * 16;
        }
        x.function = function;
        x.error = error;
        x.fault = 0;
        x.watcher = watcher;
        x.watcher_context = context;
        x.shared_size = function->threadgroup_bytes + dynamic;
        x.shared_start = x.shared + MSL_THREADGROUP_BYTES - x.shared_size;
        catch_faults(&old, handlers);
        const uint32_t mode = flush_denormals();
        if (x.shared_size > MSL_THREADGROUP_BYTES) {
            snprintf(error, 256, "threadgroup memory: %u bytes, more than the device has",
                     x.shared_size);
            status = -1;
        } else if (sigsetjmp(x.escape, 1) == 0) {
            run_grid(grid);
        } else {
            status = -1;
        }
        restore_denormals(mode);
        stop_catching(&old, handlers);
        *address = x.fault;
    } else {
        snprintf(error, 256, "the stand-in has no memory for stacks");
    }
    pthread_mutex_unlock(&x.mutex);
    return status;
}
