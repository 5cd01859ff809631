/* fences.c: order by fences that hal does not know to be one. Two fences have the same timeline of
 * the driver, and the memory has two buffers, so that hal itself orders nothing. */
#include <hal/hal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "case/cases.h"
#include "hal/alias.h"

enum { COUNT = 4096, TURNS = 5 };

typedef struct fence_case {
    alias work;
    hal_fence *raised, *awaited;
} fence_case;

static const char before_fence[] = "what work before the fence wrote";

static void fence_destroy(void *fence)
{
    hal_fence_destroy(fence);
}

static void fence_own(case_run *run, hal_fence *fence)
{
    case_own(run, fence_destroy, fence);
}

static hal_external_info kinds_of(case_run *run)
{
    hal_external_info info = {0};
    case_ok(run, hal_device_get_external(run->device, &info), "hal_device_get_external");
    return info;
}

/* A second fence of the timeline of the first. */
static hal_fence *fence_again(case_run *run, hal_fence *fence, hal_handle_kind kind)
{
    uint64_t handle = 0;
    hal_fence *again = NULL;
    case_ok(run, hal_fence_export(fence, kind, &handle), "hal_fence_export");
    case_ok(run, hal_fence_import(run->device, kind, handle, &again), "hal_fence_import");
    fence_own(run, again);
    return again;
}

static void fences_make(case_run *run, fence_case *is, hal_handle_kind kind)
{
    case_ok(run, hal_fence_create(run->device, kind, &is->raised), "hal_fence_create");
    fence_own(run, is->raised);
    is->awaited = fence_again(run, is->raised, kind);
}

static void fence_begin(case_run *run, fence_case *is, hal_handle_kind kind)
{
    case_claim(run, (kinds_of(run).fence_exports & HAL_HANDLE_BIT(kind)) != 0,
               "fences of this kind");
    *is = (fence_case){0};
    fences_make(run, is, kind);
    alias_begin(run, &is->work);
}

/* A new fence for each turn, as some have one value only. */
static void order(case_run *run, const void *parameters)
{
    const hal_handle_kind kind = *(const hal_handle_kind *)parameters;
    fence_case is;
    fence_begin(run, &is, kind);
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        alias_submit(run, &is.work, is.work.other);
        case_ok(run, hal_queue_signal_fence(is.work.other, is.raised, 1), "hal_queue_signal_fence");
        case_ok(run, hal_queue_wait_fence(run->queue, is.awaited, 1), "hal_queue_wait_fence");
        if (turn == TURNS) { /* a wait without commands comes after the fence, too */
            case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        }
        alias_check(run, &is.work, run->queue, turn, before_fence);
        fences_make(run, &is, kind);
    }
}

/* A value beyond 32 bits, by steps that each driver allows. */
static void far_values(case_run *run, const fence_case *is)
{
    enum { STEPS = 3 };
    uint64_t value = 10u * TURNS;
    for (int i = 0; i < STEPS; i++) {
        value += INT32_MAX - 1000;
        case_ok(run, hal_queue_signal_fence(is->work.other, is->raised, value),
                "hal_queue_signal_fence");
        case_ok(run, hal_queue_wait_fence(run->queue, is->awaited, value), "hal_queue_wait_fence");
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    }
    alias_submit(run, &is->work, is->work.other);
    case_ok(run, hal_queue_signal_fence(is->work.other, is->raised, value + 10),
            "hal_queue_signal_fence");
    case_ok(run, hal_queue_wait_fence(run->queue, is->awaited, value + 6), "hal_queue_wait_fence");
    alias_check(run, &is->work, run->queue, TURNS + 1, before_fence);
}

/* One fence, whose values rise; queues that wait for several. */
static void rising(case_run *run, const void *parameters)
{
    const hal_handle_kind kind = *(const hal_handle_kind *)parameters;
    fence_case is;
    fence_begin(run, &is, kind);
    case_ok(run, hal_queue_signal_fence(is.work.other, is.raised, 1), "hal_queue_signal_fence");
    const hal_status status = hal_queue_signal_fence(is.work.other, is.raised, 5);
    case_claim(run, status != HAL_ERROR_UNSUPPORTED, "fences of several values");
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        alias_submit(run, &is.work, is.work.other);
        case_ok(run, hal_queue_signal_fence(is.work.other, is.raised, 10u * turn),
                "hal_queue_signal_fence");
        case_ok(run, hal_queue_wait_fence(run->queue, is.awaited, 10u * turn - 4),
                "hal_queue_wait_fence");
        alias_check(run, &is.work, run->queue, turn, before_fence);
    }
    far_values(run, &is);
    hal_fence *second = NULL;
    case_ok(run, hal_fence_create(run->device, kind, &second), "hal_fence_create");
    fence_own(run, second);
    hal_fence *const awaited = fence_again(run, second, kind);
    case_ok(run, hal_queue_wait_fence(run->queue, is.awaited, 1), "hal_queue_wait_fence");
    alias_submit(run, &is.work, is.work.other);
    case_ok(run, hal_queue_signal_fence(is.work.other, second, 1), "hal_queue_signal_fence");
    case_ok(run, hal_queue_wait_fence(run->queue, awaited, 1), "hal_queue_wait_fence");
    alias_check(run, &is.work, run->queue, TURNS + 2, before_fence);
}

/* Fences are destroyed while batches name them: the values still come. */
static void destroyed(case_run *run, const void *parameters)
{
    const hal_handle_kind kind = *(const hal_handle_kind *)parameters;
    fence_case is;
    fence_begin(run, &is, kind);
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        hal_fence *raised = NULL, *awaited = NULL;
        uint64_t handle = 0;
        case_ok(run, hal_fence_create(run->device, kind, &raised), "hal_fence_create");
        case_ok(run, hal_fence_export(raised, kind, &handle), "hal_fence_export");
        case_ok(run, hal_fence_import(run->device, kind, handle, &awaited), "hal_fence_import");
        alias_submit(run, &is.work, is.work.other);
        case_ok(run, hal_queue_signal_fence(is.work.other, raised, 1), "hal_queue_signal_fence");
        hal_fence_destroy(raised);
        case_ok(run, hal_queue_wait_fence(run->queue, awaited, 1), "hal_queue_wait_fence");
        hal_fence_destroy(awaited);
        alias_check(run, &is.work, run->queue, turn, before_fence);
    }
}

/* Counters in the host's memory are on every device. */
static void host(case_run *run, const void *parameters)
{
    static _Atomic uint64_t counter;
    hal_fence *fence = NULL;
    hal_point point = {0};
    atomic_store(&counter, 3);
    case_ok(run,
            hal_fence_import(run->device, HAL_HANDLE_HOST, (uint64_t)(uintptr_t)&counter, &fence),
            "hal_fence_import");
    fence_own(run, fence);
    hal_buffer *buffer = words_create(run, run->queue, COUNT, 0, 1);
    case_ok(run, hal_queue_wait_fence(run->queue, fence, 3), "hal_queue_wait_fence");
    case_ok(run, hal_queue_signal_fence(run->queue, fence, 4), "hal_queue_signal_fence");
    case_ok(run, hal_queue_wait_fence(run->queue, fence, 5), "hal_queue_wait_fence");
    case_ok(run, hal_queue_fill(run->queue, range_of(buffer), 7), "fill");
    case_ok(run, hal_queue_signal_fence(run->queue, fence, 6), "hal_queue_signal_fence");
    case_ok(run, hal_queue_flush(run->queue, &point), "hal_queue_flush");
    for (uint32_t i = 0; i < 1000 && atomic_load(&counter) < 4; i++) {
        case_expect(run, hal_point_wait(point, 1000000), HAL_ERROR_TIMEOUT, NULL,
                    "a point after the fence");
    }
    case_check(run, atomic_load(&counter) == 4, "the counter is %llu and not 4",
               (unsigned long long)atomic_load(&counter));
    atomic_store(&counter, 5);
    words_check(run, run->queue, buffer, COUNT, 7, 0, "what came after the fence");
    case_check(run, atomic_load(&counter) == 6, "the counter is %llu and not 6",
               (unsigned long long)atomic_load(&counter));
}

static void arguments(case_run *run, const void *parameters)
{
    static uint64_t counter;
    const hal_status lacks = HAL_ERROR_UNSUPPORTED, wrong = HAL_ERROR_INVALID_ARGUMENT;
    const hal_external_info info = kinds_of(run);
    hal_fence *fence = NULL;
    uint64_t handle = (uint64_t)(uintptr_t)&counter;
    case_check(run, (info.fence_imports & HAL_HANDLE_BIT(HAL_HANDLE_HOST)) != 0,
               "counters of the host are not listed");
    case_expect(run, hal_fence_import(run->device, HAL_HANDLE_HOST, handle + 4, &fence), wrong,
                "multiple of 8", "a misaligned counter");
    case_expect(run, hal_fence_import(run->device, HAL_HANDLE_DMA_BUF, 1, &fence), wrong, "kind",
                "a fence of memory");
    case_expect(run, hal_fence_create(run->device, HAL_HANDLE_HOST, &fence), lacks, "kind",
                "a new counter of the host");
    if (info.fence_imports & HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD)) {
        int pipes[2];
        case_check(run, pipe(pipes) == 0, "no pipe");
        case_expect(run,
                    hal_fence_import(run->device, HAL_HANDLE_OPAQUE_FD, (uint64_t)pipes[0], &fence),
                    lacks, "descriptor", "a descriptor of something else");
        case_check(run, close(pipes[0]) == 0 && close(pipes[1]) == 0,
                   "a descriptor that was refused was closed");
    }
    case_ok(run, hal_fence_import(run->device, HAL_HANDLE_HOST, handle, &fence),
            "hal_fence_import");
    fence_own(run, fence);
    case_expect(run, hal_fence_export(fence, HAL_HANDLE_NATIVE, &handle), lacks, "kind",
                "the native handle of a counter");
    case_expect(run, hal_queue_wait_fence(run->queue, NULL, 1), wrong, "fence", "no fence");
    case_expect(run, hal_queue_signal_fence(run->queue, NULL, 1), wrong, "fence", "no fence");
}

void cases_hal_fences(case_list *list)
{
    static const struct {
        const char *name;
        hal_handle_kind kind;
    } kinds[] = {{"native", HAL_HANDLE_NATIVE}, {"opaque_fd", HAL_HANDLE_OPAQUE_FD}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const hal_handle_kind *kind = &kinds[i].kind;
        case_add(list, order, kind, sizeof *kind, "fences/order(kind=%s)", kinds[i].name);
        case_add(list, rising, kind, sizeof *kind, "fences/rising(kind=%s)", kinds[i].name);
        case_add(list, destroyed, kind, sizeof *kind, "fences/destroyed(kind=%s)", kinds[i].name);
    }
    case_add(list, host, NULL, 0, "fences/host");
    case_add(list, arguments, NULL, 0, "fences/arguments");
}
