/* A call is checked, then computed on the device, by the host's BLAS, or by plain loops. */
#include "run.h"

#include "host.h"
#include "lane.h"
#include "plain.h"
#include "product.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* Below this many operations a call without a host's BLAS is computed by plain loops. */
#define PLAIN_OPERATIONS 1e4

typedef enum decision { DECIDE_ALWAYS, DECIDE_NEVER } decision;

static decision decision_of_environment(void)
{
    const char *text = secure_getenv("HALYARD_BLAS_DECIDE");
    return text && strcmp(text, "never") == 0 ? DECIDE_NEVER : DECIDE_ALWAYS;
}

static bool device_compute(const blas_call *call)
{
    blas_lane *lane;
    if (blas_lane_acquire(&lane) != HAL_OK) {
        return false;
    }
    const hal_status status = blas_product_compute(lane, call);
    blas_lane_release(lane, status != HAL_OK);
    return status == HAL_OK;
}

void blas_run(const blas_call *call)
{
    const int invalid = blas_call_check(call);
    if (invalid) {
        blas_report(call, invalid);
        return;
    }
    if (blas_call_is_empty(call)) {
        return;
    }
    if (blas_call_is_scaling(call)) {
        blas_plain_scale(call);
        return;
    }
    const decision decided = decision_of_environment();
    if (decided == DECIDE_ALWAYS && device_compute(call)) {
        return;
    }
    if (blas_host_compute(call)) {
        return;
    }
    const bool is_small = blas_call_operations(call) < PLAIN_OPERATIONS;
    if (is_small || decided == DECIDE_ALWAYS || !device_compute(call)) {
        blas_plain_compute(call);
    }
}
