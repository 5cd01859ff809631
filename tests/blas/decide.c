/* The margin of blas/src/decide.c: thin calls have to win by more than thick ones. Ends with the
 * number of failures. */
#include "decide.h"

#include "resident.h"
#include "shape.h"

#include <math.h>
#include <stdio.h>

bool blas_resident_is_on(void)
{
    return false;
}

static int failures;

static void expect_margin(int64_t least, double wanted)
{
    if (fabs(blas_decide_margin(least) - wanted) > 1e-9) {
        printf("margin of %d: %g, expected %g\n", (int)least, blas_decide_margin(least), wanted);
        failures++;
    }
}

/* A call whose device takes `share` of the host's time. */
static void expect_faster(const blas_call *call, double share, bool wanted)
{
    const blas_times times = {.device = share * 1000, .host = 1000};
    if (blas_decide_is_faster(times, blas_call_least_length(call)) != wanted) {
        printf("%dx%dx%d at %g of the host's time: expected %s\n", (int)call->m, (int)call->n,
               (int)call->k, share, wanted ? "the device" : "the host");
        failures++;
    }
}

int main(void)
{
    expect_margin(1, 0.4);
    expect_margin(48, 0.4);
    expect_margin(120, 0.625);
    expect_margin(192, 0.85);
    expect_margin(100000, 0.85);
    const blas_call square = {.routine = BLAS_ROUTINE_sgemm, .m = 192, .n = 500, .k = 300};
    const blas_call thin_m = {.routine = BLAS_ROUTINE_sgemm, .m = 48, .n = 500, .k = 300};
    const blas_call thin_n = {.routine = BLAS_ROUTINE_cgemm, .m = 1729, .n = 25, .k = 702};
    const blas_call thin_k = {.routine = BLAS_ROUTINE_ssyr2k, .m = 387, .n = 387, .k = 19};
    const blas_call without_k = {.routine = BLAS_ROUTINE_chemm, .m = 300, .n = 200};
    expect_faster(&square, 0.84, true);
    expect_faster(&square, 0.86, false);
    expect_faster(&without_k, 0.84, true);
    const blas_call *thin[] = {&thin_m, &thin_n, &thin_k};
    for (int i = 0; i < 3; i++) {
        expect_faster(thin[i], 0.39, true);
        expect_faster(thin[i], 0.41, false);
    }
    expect_faster(&square, 0, false); /* no device */
    return failures;
}
