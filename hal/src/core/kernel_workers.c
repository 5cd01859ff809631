/* Creation of several kernels at a time, by threads that live within the call, so exit and fork
 * meet none. */
#include "device.h"
#include "fingerprint.h"

#include "base/cancel.h"
#include "base/platform.h"
#include "base/status.h"

#include <hal/kernel.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

/* Compilers of drivers have parts that one thread at a time may enter, so more gain little. */
enum { MAX_HELPERS = 7 };

typedef struct kernel_workers {
    hal_device *device;
    const hal_ir_kernel *const *irs;
    const hal_kernel_fingerprint *fingerprints; /* or null */
    hal_kernel **kernels;
    uint32_t count;
    _Atomic uint32_t next;
} kernel_workers;

static hal_status worker_create(const kernel_workers *workers, uint32_t i)
{
    return hal_kernel_create_with(workers->device, workers->irs[i],
                                  workers->fingerprints ? &workers->fingerprints[i] : NULL,
                                  &workers->kernels[i]);
}

/* Creates kernels while there are any that no member has taken. */
static void *worker_run(void *user)
{
    kernel_workers *workers = user;
    uint32_t i;
    while ((i = atomic_fetch_add(&workers->next, 1)) < workers->count) {
        if (worker_create(workers, i) != HAL_OK) {
            workers->kernels[i] = NULL;
        }
    }
    return NULL;
}

/* Helpers take no signals. */
static void workers_run(kernel_workers *workers)
{
    HAL_UNCANCELLED;
    pthread_t helpers[MAX_HELPERS];
    sigset_t all, before;
    const uint32_t others = hal_processor_count() - 1;
    uint32_t wanted = workers->count - 1 < MAX_HELPERS ? workers->count - 1 : MAX_HELPERS,
             started = 0;
    wanted = wanted < others ? wanted : others;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted && pthread_create(&helpers[started], NULL, worker_run, workers) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    worker_run(workers);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(helpers[i], NULL);
    }
}

hal_status hal_kernel_create_all(hal_device *device, const hal_ir_kernel *const *irs,
                                 const hal_kernel_fingerprint *fingerprints, uint32_t count,
                                 hal_kernel **kernels)
{
    kernel_workers workers = {.device = device,
                              .irs = irs,
                              .fingerprints = fingerprints,
                              .kernels = kernels,
                              .count = count};
    hal_status status = HAL_OK;
    if (count == 0) {
        return HAL_OK;
    }
    if (!irs || !kernels) {
        return hal_null_argument("hal_kernel_create_all", !irs ? "irs" : "kernels");
    }
    memset(kernels, 0, count * sizeof *kernels);
    workers_run(&workers);
    /* Once more, so that the caller's thread has the message. */
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        if (!kernels[i]) {
            status = worker_create(&workers, i);
        }
    }
    return status;
}
