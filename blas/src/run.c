/* A call is checked, then computed on the device, by the host's BLAS, or by plain loops. */
#include "run.h"

#include "decide.h"
#include "forward.h"
#include "host.h"
#include "lane.h"
#include "plain.h"
#include "product.h"
#include "report.h"
#include "resident.h"
#include "summary.h"

#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Below this many operations a call without a host's BLAS is computed by plain loops. */
#define PLAIN_OPERATIONS 1e4

_Atomic(blas_function *) blas_forwards[BLAS_INTERFACE_COUNT][BLAS_ROUTINE_COUNT];
static pthread_once_t forwards_once = PTHREAD_ONCE_INIT;

static void forwards_fill(void)
{
    static const char *const names[BLAS_INTERFACE_COUNT + 1] = {"%s_", "%s_64_", "cblas_%s",
                                                                "cblas_%s_64", "cblas_%s64_"};
    if (!blas_forward_is_on()) {
        return;
    }
    for (int i = 0; i <= BLAS_INTERFACE_COUNT; i++) {
        const bool has_suffix = i % 2 == 1 || i == BLAS_INTERFACE_COUNT;
        const int interface = i == BLAS_INTERFACE_COUNT            ? BLAS_CBLAS_64
                              : !has_suffix && blas_host_is_wide() ? i + 1
                                                                   : i;
        for (int routine = 0; routine < BLAS_ROUTINE_COUNT; routine++) {
            char name[32];
            snprintf(name, sizeof name, names[i], blas_routines[routine].name);
            blas_function *found = blas_function_at(blas_host_symbol(name));
            if (found) {
                atomic_store_explicit(&blas_forwards[interface][routine], found,
                                      memory_order_release);
            }
        }
    }
}

/* Whether the host computes it, whatever the model would say. */
static bool is_for_host(const blas_call *call)
{
    const blas_policy policy = blas_decide_policy();
    return policy != BLAS_ALWAYS && blas_host_has(call) &&
           (policy == BLAS_NEVER || blas_call_operations(call) < BLAS_HOST_OPERATIONS);
}

/* Depends on the shape alone, once the model is measured. */
static bool device_is_faster(const blas_call *call)
{
    if (blas_decide_policy() != BLAS_BY_MODEL) {
        return blas_decide_policy() == BLAS_ALWAYS;
    }
    if (!blas_host_has(call)) {
        return blas_call_operations(call) >= PLAIN_OPERATIONS;
    }
    const bool is_faster =
        blas_decide_is_faster(blas_model_times(call), blas_call_least_length(call));
    if (!is_faster) {
        blas_decide_remember_host(call);
    }
    return is_faster;
}

/* `moved` gets the bytes that were copied. */
static bool device_compute(const blas_call *call, uint64_t *moved)
{
    blas_lane *lane;
    if (blas_lane_acquire(&lane) != HAL_OK) {
        return false;
    }
    hal_status status = blas_product_compute(lane, call);
    if (status == HAL_ERROR_OUT_OF_MEMORY && blas_resident_drop_all()) {
        blas_lane_forget_losses(lane); /* of the first try, which the second one makes again */
        status = blas_product_compute(lane, call);
    }
    *moved = lane->moved_bytes;
    blas_lane_release(lane, status != HAL_OK);
    return status == HAL_OK;
}

/* Whether the device is taken and has computed it. Programs see no floating-point exceptions of
 * what the library computes for itself, and no traps where they asked for these. */
static bool device_try(const blas_call *call, uint64_t *moved)
{
    if (blas_decide_is_for_host(call)) {
        return false;
    }
    fenv_t kept;
    feholdexcept(&kept);
    const bool is_computed = device_is_faster(call) && device_compute(call, moved);
    fesetenv(&kept);
    return is_computed;
}

/* Returns whether the device has computed it. */
static bool call_compute(const blas_call *call, uint64_t *moved)
{
    if ((is_for_host(call) && blas_host_compute(call)) || blas_call_is_empty(call)) {
        return false;
    }
    if (!blas_call_is_scaling(call)) {
        if (device_try(call, moved)) {
            return true;
        }
        blas_resident_remember(call);
    }
    if (!blas_host_compute(call)) {
        blas_plain_compute(call);
    }
    return false;
}

/* The same for operands that stay on the device, some of which the call may write. */
static bool call_compute_resident(const blas_call *call, uint64_t *moved)
{
    const bool on_device = call_compute(call, moved);
    blas_resident_call_writes(call);
    return on_device;
}

void blas_run(const blas_call *call)
{
    pthread_once(&forwards_once, forwards_fill);
    const int invalid = blas_call_check(call);
    if (invalid) {
        blas_report(call, invalid);
        return;
    }
    uint64_t moved = 0;
    if (!blas_summary_is_wanted()) {
        call_compute_resident(call, &moved);
        return;
    }
    const uint64_t start = blas_summary_clock();
    const bool on_device = call_compute_resident(call, &moved);
    blas_summary_add(call, on_device, moved, start);
}
