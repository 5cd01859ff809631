/* The pool's threads. A call opens: its number goes into `call`, with room for this many helpers. A
 * helper joins by a compare-and-swap that counts it, so after the caller closes the call it knows
 * exactly which helpers it has to wait for. Idle helpers look for a call for a while and then sleep
 * on a futex. */
#include "threads/pool.h"

#include "threads/placement.h"

#include <kit/clock.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RELAX_TURNS = 256 };
/* Stacks of helpers, and the part of a limited address space that they may take. */
enum { STACK_BYTES = 1 << 20, STACKS_DIVISOR = 4 };
/* How long an idle helper looks for the next call, and how long a caller yields before it sleeps.
 * A caller wakes sleeping helpers by a system call, so helpers outlast the pauses of a program that
 * prepares its next batch. */
enum { LOOK_NS = 1000000, YIELD_NS = 50000 };

/* `call`: the number of the call, the helpers that may join, and those that did. */
enum { JOINED_BITS = 16, ROOM_BITS = 16, CALL_SHIFT = JOINED_BITS + ROOM_BITS };

struct cpu_thread_pool {
    _Alignas(64) _Atomic uint64_t call;
    _Alignas(64) _Atomic uint32_t left; /* helpers that have left the open call */
    _Atomic uint32_t caller_sleeps;
    _Alignas(64) _Atomic uint32_t wake; /* futex of idle helpers; changes with every call */
    _Atomic uint32_t sleepers;          /* helpers that sleep or are about to */
    _Atomic bool ends;
    _Atomic uint32_t entered;                   /* helpers that have begun */
    _Alignas(64) cpu_thread_function *function; /* of the open call, as `context` */
    void *context;
    pthread_mutex_t lock;
    cpu_placement placement;
    uint32_t count; /* helpers */
    pthread_t helpers[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static uint32_t joined_of(uint64_t call)
{
    return call & ((UINT64_C(1) << JOINED_BITS) - 1);
}

static uint32_t room_of(uint64_t call)
{
    return call >> JOINED_BITS & ((UINT64_C(1) << ROOM_BITS) - 1);
}

void cpu_wait_turn(uint32_t turn)
{
    if (turn < RELAX_TURNS) {
        cpu_relax();
    } else {
        sched_yield();
    }
}

/* Joins the open call, unless there is none, it is full, or this helper was part of it. */
static bool call_join(cpu_thread_pool *pool, uint64_t *joined_call)
{
    uint64_t call = atomic_load_explicit(&pool->call, memory_order_acquire);
    while (joined_of(call) < room_of(call) && call >> CALL_SHIFT != *joined_call) {
        if (atomic_compare_exchange_weak_explicit(&pool->call, &call, call + 1,
                                                  memory_order_acquire, memory_order_acquire)) {
            *joined_call = call >> CALL_SHIFT;
            return true;
        }
    }
    return false;
}

static void call_leave(cpu_thread_pool *pool)
{
    atomic_fetch_add(&pool->left, 1);
    if (atomic_load(&pool->caller_sleeps) != 0) {
        futex_wake(&pool->left, 1);
    }
}

/* Looks for a call for a while. Returns whether the helper joined one. */
static bool call_look_for(cpu_thread_pool *pool, uint64_t *joined_call)
{
    uint64_t start = 0;
    for (uint32_t turn = 0;; turn++) {
        const bool joined = call_join(pool, joined_call);
        if (joined || atomic_load_explicit(&pool->ends, memory_order_relaxed)) {
            return joined;
        }
        cpu_wait_turn(turn);
        if (turn == RELAX_TURNS) {
            start = kit_clock_ns();
        } else if (turn > RELAX_TURNS && kit_clock_ns() - start > LOOK_NS) {
            return false;
        }
    }
}

static void *helper_main(void *argument)
{
    cpu_thread_pool *pool = argument;
    const uint32_t number = atomic_fetch_add(&pool->entered, 1) + 1;
    uint64_t joined_call = 0;
    cpu_placement_enter(&pool->placement);
    for (;;) {
        /* `wake` is read before `ends`: a pool that ends after that look changes `wake`. */
        const uint32_t wake = atomic_load(&pool->wake);
        if (atomic_load(&pool->ends)) {
            return NULL;
        }
        if (call_look_for(pool, &joined_call)) {
            pool->function(pool->context, number);
            call_leave(pool);
            continue;
        }
        atomic_fetch_add(&pool->sleepers, 1);
        futex_wait(&pool->wake, wake);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
}

/* Wakes sleeping helpers where those that are awake do not fill the call. */
static void helpers_wake(cpu_thread_pool *pool, uint32_t wanted)
{
    atomic_fetch_add(&pool->wake, 1);
    const uint32_t sleepers = atomic_load(&pool->sleepers);
    const uint32_t awake = pool->count - sleepers;
    if (sleepers > 0 && wanted > awake) {
        futex_wake(&pool->wake, wanted - awake);
    }
}

static void helpers_wait(cpu_thread_pool *pool, uint32_t joined)
{
    uint64_t start = 0;
    uint32_t left = 0;
    for (uint32_t turn = 0; (left = atomic_load(&pool->left)) < joined; turn++) {
        if (turn == RELAX_TURNS) {
            start = kit_clock_ns();
        } else if (turn > RELAX_TURNS && kit_clock_ns() - start > YIELD_NS) {
            atomic_store(&pool->caller_sleeps, 1);
            while ((left = atomic_load(&pool->left)) < joined) {
                futex_wait(&pool->left, left);
            }
            atomic_store(&pool->caller_sleeps, 0);
            return;
        }
        cpu_wait_turn(turn);
    }
}

/* Helpers whose stacks take a part of a limited address space; the rest is for the program. */
static uint32_t helpers_fit(uint32_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return wanted;
    }
    const uint64_t most = limit.rlim_cur / STACKS_DIVISOR / STACK_BYTES;
    return most < wanted ? (uint32_t)most : wanted;
}

/* The signals of the program are for its own threads. */
static void helpers_start(cpu_thread_pool *pool, uint32_t wanted)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    const bool is_small = pthread_attr_init(&attributes) == 0 &&
                          pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    while (pool->count < wanted &&
           pthread_create(&pool->helpers[pool->count], is_small ? &attributes : NULL, helper_main,
                          pool) == 0) {
        pool->count++;
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

cpu_thread_pool *cpu_thread_pool_create(uint32_t threads)
{
    void *memory = NULL;
    const size_t bytes = sizeof(cpu_thread_pool) + threads * sizeof(pthread_t);
    if (posix_memalign(&memory, _Alignof(cpu_thread_pool), bytes) != 0) {
        return NULL;
    }
    cpu_thread_pool *pool = memset(memory, 0, bytes);
    pthread_mutex_init(&pool->lock, NULL);
    cpu_placement_init(&pool->placement, threads);
    helpers_start(pool, helpers_fit(threads - 1));
    return pool;
}

void cpu_thread_pool_destroy(cpu_thread_pool *pool)
{
    atomic_store(&pool->ends, true);
    atomic_fetch_add(&pool->wake, 1);
    futex_wake(&pool->wake, INT_MAX);
    for (uint32_t i = 0; i < pool->count; i++) {
        pthread_join(pool->helpers[i], NULL);
    }
    pthread_mutex_destroy(&pool->lock);
    cpu_placement_release(&pool->placement);
    free(pool);
}

uint32_t cpu_thread_pool_size(const cpu_thread_pool *pool)
{
    return pool->count + 1;
}

/* Threads of the pool that a call of this many threads wants. */
static uint32_t helpers_wanted(const cpu_thread_pool *pool, uint32_t threads)
{
    return threads - 1 < pool->count ? threads - 1 : pool->count;
}

/* A call with helpers. The caller holds the lock. */
static void call_run(cpu_thread_pool *pool, uint32_t wanted, cpu_thread_function *function,
                     void *context)
{
    const uint64_t closed = atomic_load_explicit(&pool->call, memory_order_relaxed);
    const uint64_t number = (closed >> CALL_SHIFT) + 1;
    cpu_placement_avoid_caller(&pool->placement);
    pool->function = function;
    pool->context = context;
    atomic_store_explicit(&pool->left, 0, memory_order_relaxed);
    atomic_store(&pool->call, number << CALL_SHIFT | (uint64_t)wanted << JOINED_BITS);
    helpers_wake(pool, wanted);
    function(context, 0);
    helpers_wait(pool, joined_of(atomic_exchange(&pool->call, number << CALL_SHIFT)));
}

void cpu_thread_pool_run(cpu_thread_pool *pool, uint32_t threads, cpu_thread_function *function,
                         void *context)
{
    const uint32_t wanted = helpers_wanted(pool, threads);
    if (wanted == 0) {
        function(context, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    call_run(pool, wanted, function, context);
    pthread_mutex_unlock(&pool->lock);
}

void cpu_thread_pool_run_now(cpu_thread_pool *pool, uint32_t threads, cpu_thread_function *function,
                             void *context)
{
    const uint32_t wanted = helpers_wanted(pool, threads);
    if (wanted == 0 || pthread_mutex_trylock(&pool->lock) != 0) {
        function(context, 0);
        return;
    }
    call_run(pool, wanted, function, context);
    pthread_mutex_unlock(&pool->lock);
}
