/* The compile policy, see compile_policy.h. */
#include "compile_policy.h"

#include <stdlib.h>
#include <string.h>

/* What a plan has cost whose kernels cannot be compiled. */
#define FAILED UINT64_MAX

/* Processors that are counted: threads that compile in the background, and the program's. */
enum { MOST_PROCESSORS = 8 };

/* The share of a kernel's price that it has while a compiler has nothing to do. */
enum { IDLE_SHARE = 8 };

ops_compile_policy *ops_compile_policy_create(const ops_compile_tuning *tuning,
                                              const hal_device_info *info, uint32_t compilers)
{
    ops_compile_policy *policy = calloc(1, sizeof *policy);
    if (policy) {
        policy->tuning = tuning;
        policy->eager_plans = tuning->eager_plans;
        policy->expected_ns =
            info->item_vector_bytes > 0 ? tuning->expected_by_vectors_ns : tuning->expected_ns;
        policy->least_compile_ns = policy->expected_ns;
        policy->compile_ns = policy->expected_ns ? policy->expected_ns : tuning->guessed_ns;
        policy->compilers = compilers;
        policy->processors = compilers < MOST_PROCESSORS ? 1 + compilers : MOST_PROCESSORS;
    }
    return policy;
}

void ops_compile_policy_destroy(ops_compile_policy *policy)
{
    free(policy);
}

void ops_compile_policy_add_time(ops_compile_policy *policy, uint64_t nanoseconds,
                                 bool is_compilation)
{
    uint64_t *average = &policy->recent_compile_ns;
    if (is_compilation) {
        /* A kernel that exists under another key takes no time: it says nothing. */
        const bool counts = 16 * nanoseconds >= policy->compile_ns;
        policy->compile_ns =
            policy->compile_ns ? (3 * policy->compile_ns + nanoseconds) / 4 : nanoseconds;
        if (policy->expected_ns == 0 && counts &&
            (policy->least_compile_ns == 0 || nanoseconds < policy->least_compile_ns)) {
            policy->least_compile_ns = nanoseconds;
        }
    }
    /* An outlier, such as a compilation on a busy machine, counts at most four times the average.
     */
    uint64_t usual = *average ? *average : policy->tuning->fast_ns / 4;
    *average = (3 * usual + (nanoseconds < 4 * usual ? nanoseconds : 4 * usual)) / 4;
}

static uint32_t plan_slot(const uint64_t key[2])
{
    return (uint32_t)key[0] % OPS_DEFERRED_PLANS;
}

bool ops_compile_policy_is_slow(const ops_compile_policy *policy)
{
    return policy->least_compile_ns >= policy->tuning->fast_ns;
}

bool ops_compile_policy_generalises(const ops_compile_policy *policy)
{
    if (policy->choice == OPS_KERNELS_GENERAL || policy->choice == OPS_KERNELS_SPECIAL) {
        return policy->choice == OPS_KERNELS_GENERAL;
    }
    const uint64_t least_ns =
        policy->least_compile_ns ? policy->least_compile_ns : policy->tuning->guessed_ns;
    return least_ns >= policy->tuning->general_from_ns && !policy->specialises;
}

/* Whether a shape has had a call before; remembers it. */
static bool shape_returns(ops_compile_policy *policy, const uint64_t key[2], uint64_t cost_ns)
{
    const uint64_t shape = key[0] ^ cost_ns * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t *last = &policy->shapes[(shape ^ shape >> 32) % OPS_SEEN_SHAPES];
    const bool returns = *last == shape;
    *last = shape;
    return returns;
}

bool ops_compile_policy_charge(ops_compile_policy *policy, const uint64_t key[2], uint64_t cost_ns,
                               bool *is_first)
{
    const uint32_t at = plan_slot(key);
    const bool returns = shape_returns(policy, key, cost_ns);
    *is_first = policy->plans[at].key != key[1];
    if (*is_first) {
        policy->plans[at].key = key[1];
        policy->plans[at].spent_ns = 0;
    }
    policy->plans[at].spent_ns += cost_ns;
    return policy->requests ||
           (!*is_first && ops_compile_policy_is_due(policy, policy->plans[at].spent_ns,
                                                    returns ? 1 : OPS_SHARED_PRICES));
}

/* The price of a compilation that takes that long. */
static uint64_t background_price(const ops_compile_policy *policy, uint64_t nanoseconds)
{
    const bool is_idle = policy->pending < policy->compilers;
    return nanoseconds / policy->processors / (is_idle ? IDLE_SHARE : 1);
}

bool ops_compile_policy_is_due(const ops_compile_policy *policy, uint64_t spent_ns,
                               uint32_t kernels)
{
    const uint64_t whole = kernels * policy->compile_ns;
    const uint64_t price =
        ops_compile_policy_is_slow(policy) ? background_price(policy, whole) : whole;
    return spent_ns >= price && policy->choice != OPS_KERNELS_GENERAL;
}

void ops_compile_policy_forget(ops_compile_policy *policy, const uint64_t key[2])
{
    const uint32_t at = plan_slot(key);
    if (policy->plans[at].key == key[1]) {
        policy->plans[at].spent_ns = 0;
    }
}

void ops_compile_policy_fail(ops_compile_policy *policy, const uint64_t plan[2])
{
    const uint32_t at = plan_slot(plan);
    if (policy->plans[at].key == plan[1]) {
        policy->plans[at].spent_ns = FAILED;
    }
}

uint64_t ops_compile_policy_general_ns(const ops_compile_policy *policy, uint64_t bytes)
{
    return policy->tuning->general_ns + bytes / policy->tuning->bytes_per_ns;
}

ops_compile_decision ops_defer_compile(ops_compile_policy *policy, const uint64_t key[2],
                                       uint32_t kernels, uint64_t bytes)
{
    if (policy->recent_compile_ns < policy->tuning->fast_ns) {
        return OPS_COMPILE_NOW;
    }
    if (policy->eager_plans > 0) {
        policy->eager_plans--;
        policy->counts_eager = true;
        return OPS_COMPILE_NOW;
    }
    const uint64_t cost =
        (kernels - 1) * policy->tuning->launch_ns + 2 * bytes / policy->tuning->bytes_per_ns;
    uint32_t at = plan_slot(key);
    bool is_first = policy->plans[at].key != key[1];
    if (is_first) {
        policy->plans[at].key = key[1];
        policy->plans[at].spent_ns = 0;
    }
    if (policy->plans[at].spent_ns == FAILED) {
        return OPS_DEFER_AGAIN;
    }
    policy->plans[at].spent_ns += cost;
    const bool has_background = ops_compile_policy_is_slow(policy) && policy->processors > 1;
    if (is_first || !has_background) {
        return policy->plans[at].spent_ns >= policy->recent_compile_ns ? OPS_COMPILE_NOW
               : is_first                                              ? OPS_DEFER_FIRST
                                                                       : OPS_DEFER_AGAIN;
    }
    return policy->plans[at].spent_ns >= background_price(policy, policy->recent_compile_ns)
               ? OPS_DEFER_REQUESTED
               : OPS_DEFER_AGAIN;
}

void ops_compile_policy_end_eager(ops_compile_policy *policy, bool has_compiled)
{
    policy->eager_plans += policy->counts_eager && !has_compiled;
    policy->counts_eager = false;
}

void ops_compile_policy_begin_refusing(ops_compile_policy *policy, ops_missing_kernels missing)
{
    policy->missing = missing;
    policy->has_refused = false;
}

bool ops_compile_policy_end_refusing(ops_compile_policy *policy)
{
    policy->missing = OPS_MISSING_COMPILED;
    return policy->has_refused;
}

hal_status ops_compile_policy_refuse(ops_compile_policy *policy)
{
    policy->has_refused = true;
    return HAL_ERROR_NOT_FOUND;
}
