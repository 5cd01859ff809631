/* The compile policy, see compile_policy.h. */
#include "compile_policy.h"

#include <stdlib.h>

ops_compile_policy *ops_compile_policy_create(void)
{
    ops_compile_policy *policy = calloc(1, sizeof *policy);
    if (policy) {
        policy->fast_compile_ns = OPS_FAST_COMPILE_NS;
        policy->eager_plans = OPS_EAGER_PLANS;
    }
    return policy;
}

void ops_compile_policy_destroy(ops_compile_policy *policy)
{
    free(policy);
}

void ops_compile_policy_add_time(ops_compile_policy *policy, uint64_t nanoseconds)
{
    uint64_t *average = &policy->recent_compile_ns;
    /* An outlier, such as a compilation on a busy machine, counts at most four times the average.
     */
    uint64_t usual = *average ? *average : OPS_FAST_COMPILE_NS / 4;
    *average = (3 * usual + (nanoseconds < 4 * usual ? nanoseconds : 4 * usual)) / 4;
}

ops_compile_decision ops_defer_compile(ops_compile_policy *policy, const hal_device_info *info,
                                       const uint64_t key[2], uint32_t kernels, uint64_t bytes)
{
    if (policy->recent_compile_ns < policy->fast_compile_ns) {
        return OPS_COMPILE_NOW;
    }
    if (policy->eager_plans > 0) {
        policy->eager_plans--;
        return OPS_COMPILE_NOW;
    }
    uint32_t rate = info->kind == HAL_DEVICE_CPU || info->kind == HAL_DEVICE_SOFTWARE
                        ? OPS_HOST_BYTES_PER_NS
                        : OPS_DEVICE_BYTES_PER_NS;
    uint64_t cost = (uint64_t)(kernels - 1) * OPS_LAUNCH_NS + 2 * bytes / rate;
    uint32_t at = (uint32_t)key[0] % OPS_DEFERRED_PLANS;
    int is_first = policy->plans[at].key != key[1];
    if (is_first) {
        policy->plans[at].key = key[1];
        policy->plans[at].spent_ns = 0;
    }
    policy->plans[at].spent_ns += cost;
    return policy->plans[at].spent_ns >= policy->recent_compile_ns ? OPS_COMPILE_NOW
           : is_first                                              ? OPS_DEFER_FIRST
                                                                   : OPS_DEFER_AGAIN;
}
