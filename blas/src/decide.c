/* See decide.h. */
#include "decide.h"

#include <stdlib.h>
#include <string.h>

/* The device has to win by this much, for which the model may err. */
#define MARGIN 0.85

static blas_policy chosen;

__attribute__((constructor)) static void policy_choose(void)
{
    const char *text = secure_getenv("HALYARD_BLAS_DECIDE");
    chosen = !text                         ? BLAS_BY_MODEL
             : strcmp(text, "always") == 0 ? BLAS_ALWAYS
             : strcmp(text, "never") == 0  ? BLAS_NEVER
                                           : BLAS_BY_MODEL;
}

blas_policy blas_decide_policy(void)
{
    return chosen;
}

bool blas_decide_is_faster(blas_times times)
{
    return times.device > 0 && times.device < MARGIN * times.host;
}
