/* See decide.h. */
#include "decide.h"

#include "resident.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The device has to win by this much, for which the model may err: least where a call is as thick
 * as those that were measured (model.h), most where it is thin, and linear between them. */
enum { THIN_LENGTH = 48, THICK_LENGTH = 192 };
#define THIN_MARGIN 0.4
#define THICK_MARGIN 0.85

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

double blas_decide_margin(int64_t least)
{
    const double share = (double)(least - THIN_LENGTH) / (THICK_LENGTH - THIN_LENGTH);
    return least <= THIN_LENGTH    ? THIN_MARGIN
           : least >= THICK_LENGTH ? THICK_MARGIN
                                   : THIN_MARGIN + share * (THICK_MARGIN - THIN_MARGIN);
}

bool blas_decide_is_faster(blas_times times, int64_t least)
{
    return times.device > 0 && times.device < blas_decide_margin(least) * times.host;
}

/* Keys of calls; a newer one takes the place of another. 0: none. */
#define KEYS 256
static _Atomic uint64_t keys[KEYS];

static uint64_t key_mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0x9e3779b97f4a7c15u; /* of the golden ratio */
    return key ^ key >> 32;
}

/* Of all that blas_estimate_of counts. */
static uint64_t key_of(const blas_call *call)
{
    const blas_number beta = blas_call_beta(call);
    const char letters[8] = {call->side, call->uplo,   call->transa, call->transb,
                             call->diag, beta.re != 0, beta.im != 0, 0};
    uint64_t key;
    memcpy(&key, letters, sizeof key);
    key = key_mix(key, (uint64_t)call->routine);
    key = key_mix(key, (uint64_t)call->m);
    key = key_mix(key, (uint64_t)call->n);
    key = key_mix(key, (uint64_t)call->k);
    return key_mix(key, (uint64_t)call->batch) | 1;
}

void blas_decide_remember_host(const blas_call *call)
{
    const uint64_t key = key_of(call);
    if (!blas_resident_is_on()) {
        atomic_store_explicit(&keys[key >> 32 & (KEYS - 1)], key, memory_order_relaxed);
    }
}

bool blas_decide_is_for_host(const blas_call *call)
{
    const uint64_t key = key_of(call);
    return atomic_load_explicit(&keys[key >> 32 & (KEYS - 1)], memory_order_relaxed) == key;
}
