/* Factorisations: who computes them, and their entry points. */
#include "decide.h"
#include "entry.h"
#include "factor.h"
#include "forward.h"
#include "host.h"
#include "matrix.h"
#include "resident.h"
#include "summary.h"

#include <fenv.h>
#include <stdio.h>

/* Below this order a factorisation is the host's, and no device is opened for it. */
#define LEAST_ORDER 512

static bool has_functions(const blas_factoring *call)
{
    return blas_lapack_find(call->kind, call->type, call->is_64) &&
           (!blas_lapack_has_reflectors(call->kind) ||
            blas_lapack_find(BLAS_LARFT, call->type, call->is_64));
}

/* Whether the arguments are right and there is something to compute, of ormqr from the left: the
 * host tells or computes the others. */
static bool is_valid(const blas_factoring *call)
{
    const char adjoint = blas_type_is_complex(call->type) ? 'C' : 'T';
    return call->m > 0 && call->n > 0 && call->lda >= call->m && call->m <= INT32_MAX &&
           (call->kind != BLAS_POTRF || call->uplo == 'U' || call->uplo == 'L') &&
           (call->kind != BLAS_ORGQR ||
            (call->k > 0 && call->k <= call->n && call->n <= call->m)) &&
           (call->kind != BLAS_ORMQR ||
            (call->side == 'L' && (call->trans == 'N' || call->trans == adjoint) && call->k > 0 &&
             call->k <= call->m && call->ldv >= call->m)) &&
           (!blas_lapack_has_reflectors(call->kind) || call->work_length >= call->n);
}

/* Tells operands that stay on the device of a matrix that is about to be written, if it is one. */
static void tell_written(blas_type type, const void *a, int64_t m, int64_t n, int64_t lda)
{
    if (m > 0 && n > 0 && lda >= m) {
        halyard_blas_written(a,
                             ((size_t)(n - 1) * (size_t)lda + (size_t)m) * blas_type_bytes(type));
    }
}

static int64_t least_length(const blas_factoring *call)
{
    return call->m < call->n ? call->m : call->n;
}

/* Whether the device may compute it, of a call that is worth the question. */
static bool is_for_device(const blas_factoring *call)
{
    return blas_decide_policy() != BLAS_NEVER &&
           (blas_decide_policy() == BLAS_ALWAYS || least_length(call) >= LEAST_ORDER) &&
           has_functions(call) && (call->is_64 || !blas_host_is_wide());
}

static bool device_is_faster(const blas_factoring *call)
{
    return blas_decide_policy() == BLAS_ALWAYS ||
           (!blas_lane_is_in_place() &&
            blas_decide_is_faster(blas_model_factoring_times(call), least_length(call)));
}

static bool device_compute(const blas_factoring *call, int64_t *info, uint64_t *moved)
{
    blas_lane *lane;
    if (blas_lane_acquire(&lane) != HAL_OK) {
        return false;
    }
    hal_status status = blas_factor_compute(lane, call, info);
    if (status == HAL_ERROR_OUT_OF_MEMORY && blas_resident_drop_all()) {
        status = blas_factor_compute(lane, call, info);
    }
    *moved = lane->moved_bytes;
    blas_lane_release(lane, status != HAL_OK);
    return status == HAL_OK;
}

/* LAPACK returns the optimal length in work[0]; the device needs no more than the minimum. */
static void work_set(const blas_factoring *call)
{
    blas_number_store(call->work, call->type, 0, (blas_number){(double)call->n, 0});
}

/* Computes a call on the device if that is right, possible and faster; false: nothing was changed,
 * and the host's function is to be called. *info is LAPACK's; *moved gets the bytes that were
 * copied. */
static bool factoring_run(const blas_factoring *call, int64_t *info, uint64_t *moved)
{
    if (call->work_length == -1) {
        return false;
    }
    tell_written(call->type, call->a, call->m, call->n, call->lda);
    if (!is_valid(call) || !is_for_device(call)) {
        return false;
    }
    fenv_t kept;
    feholdexcept(&kept);
    const bool is_computed = device_is_faster(call) && device_compute(call, info, moved);
    fesetenv(&kept);
    if (is_computed && call->work) {
        work_set(call);
    }
    return is_computed;
}

/* The host's function for a small call, which gets the program's own arguments; null: it takes
 * factoring_run. */
static inline blas_function *forward_find(blas_factoring_kind kind, blas_type type, bool is_64,
                                          int64_t order)
{
    return order < LEAST_ORDER && blas_forward_is_on() ? blas_lapack_find(kind, type, is_64) : NULL;
}

/* The host's function for a call that it computes; null, with a line of text: it has none. */
static blas_function *host_function(blas_factoring_kind kind, blas_type type, bool is_64)
{
    blas_function *function = blas_lapack_find(kind, type, is_64);
    if (!function) {
        fprintf(stderr, "halyard blas: %c%s: no LAPACK has it; nothing is computed\n", "sdcz"[type],
                blas_lapack_name(kind, type));
    }
    return function;
}

/* ---- Entry points ---- */

/* Programs declare these functions themselves. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define INTEGER int32_t
#define IS_64 false
#define ENTRY(name) name##_
#include "factorings.inl"
#undef INTEGER
#undef IS_64
#undef ENTRY

#define INTEGER int64_t
#define IS_64 true
#define ENTRY(name) name##_64_
#include "factorings.inl"
