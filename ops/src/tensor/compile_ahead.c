/* Kernels in the background, see compile_ahead.h. */
#include "compile_ahead.h"

#include "compile_policy.h"
#include "message.h"

#include <hal/hal.h>

bool ops_compile_ahead_pays(const ops_context *context)
{
    return ops_compile_policy_is_slow(context->compile_policy);
}

void ops_compile_ahead_follow(ops_context *context, hal_kernel *kernel)
{
    ops_compile_ahead *ahead = &context->ahead;
    if (ops_compile_ahead_has_room(context) && hal_kernel_get_compile_ns(kernel) == 0) {
        ahead->kernels[ahead->count++] = (ops_ahead_kernel){.kernel = hal_kernel_retain(kernel)};
        context->compile_policy->pending = ahead->count;
    }
}

hal_status ops_compile_ahead_create_gemm(ops_context *context,
                                         const hal_gemm_description *description,
                                         hal_kernel **kernel, uint64_t *workspace_bytes)
{
    if (!ops_compile_ahead_pays(context)) {
        return hal_kernel_create_gemm(context->device, description, kernel, workspace_bytes);
    }
    HAL_TRY(hal_kernel_create_gemm_ahead(context->device, description, kernel, workspace_bytes));
    ops_compile_ahead_follow(context, *kernel);
    return HAL_OK;
}

bool ops_compile_ahead_has_room(const ops_context *context)
{
    return context->ahead.count < OPS_AHEAD_KERNELS;
}

bool ops_compile_ahead_request(ops_context *context, const uint64_t hash[2], hal_kernel *kernel)
{
    const ops_compile_policy *policy = context->compile_policy;
    ops_compile_ahead *ahead = &context->ahead;
    if (!ops_compile_ahead_has_room(context)) {
        return false;
    }
    ahead->kernels[ahead->count++] =
        (ops_ahead_kernel){.kernel = kernel,
                           .hash = {hash[0], hash[1]},
                           .plan = {policy->plan[0], policy->plan[1]},
                           .is_requested = true,
                           .is_deferred = policy->missing == OPS_MISSING_REQUESTED};
    ahead->requested++;
    context->compile_policy->pending = ahead->count;
    return true;
}

bool ops_compile_ahead_is_requested(const ops_context *context, const uint64_t hash[2],
                                    const uint64_t plan[2])
{
    const bool any = plan[0] == 0 && plan[1] == 0;
    const ops_compile_ahead *ahead = &context->ahead;
    for (uint32_t i = 0; ahead->requested > 0 && i < ahead->count; i++) {
        const ops_ahead_kernel *one = &ahead->kernels[i];
        if (one->is_requested && one->hash[0] == hash[0] && one->hash[1] == hash[1] &&
            (any || (one->plan[0] == plan[0] && one->plan[1] == plan[1]))) {
            return true;
        }
    }
    return false;
}

bool ops_compile_ahead_is_awaited(const ops_context *context, const uint64_t plan[2])
{
    const ops_compile_ahead *ahead = &context->ahead;
    for (uint32_t i = 0; ahead->requested > 0 && i < ahead->count; i++) {
        const ops_ahead_kernel *one = &ahead->kernels[i];
        if (one->is_requested && one->plan[0] == plan[0] && one->plan[1] == plan[1]) {
            return true;
        }
    }
    return false;
}

/* Takes the reference of a requested kernel that is compiled, well or not. */
static hal_status requested_insert(ops_context *context, const ops_ahead_kernel *one)
{
    ops_entry *entry = ops_kernel_table_slot(&context->kernels, one->hash);
    ops_message message;
    ops_message_save(&message);
    if (hal_kernel_wait(one->kernel) != HAL_OK) {
        hal_log_write(HAL_LOG_WARN, "a kernel could not be compiled in the background; others "
                                    "compute in its place: %s",
                      hal_status_message());
        ops_message_restore(&message);
        if (one->is_deferred) {
            ops_compile_policy_fail(context->compile_policy, one->plan);
        } else {
            ops_compile_policy_forget(context->compile_policy, one->hash);
        }
    } else if (!entry->key[1]) {
        return ops_kernel_table_insert(&context->kernels, one->hash, one->kernel, 0, &entry);
    }
    hal_kernel_release(one->kernel);
    return HAL_OK;
}

hal_status ops_compile_ahead_collect(ops_context *context)
{
    ops_compile_ahead *ahead = &context->ahead;
    hal_status status = HAL_OK;
    uint32_t left = 0;
    for (uint32_t i = 0; i < ahead->count; i++) {
        const ops_ahead_kernel one = ahead->kernels[i];
        const uint64_t nanoseconds = hal_kernel_get_compile_ns(one.kernel);
        if (nanoseconds == 0 || status != HAL_OK) {
            ahead->kernels[left++] = one;
            continue;
        }
        ops_compile_policy_add_time(context->compile_policy, nanoseconds, true);
        if (one.is_requested) {
            ahead->requested--;
            status = requested_insert(context, &one);
        } else {
            hal_kernel_release(one.kernel);
        }
    }
    ahead->count = left;
    context->compile_policy->pending = left;
    return status;
}

hal_status ops_compile_ahead_wait(ops_context *context)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < context->ahead.count && status == HAL_OK; i++) {
        const ops_ahead_kernel *one = &context->ahead.kernels[i];
        status = one->is_requested ? HAL_OK : hal_kernel_wait(one->kernel);
    }
    return status != HAL_OK ? status : ops_compile_ahead_collect(context);
}

void ops_compile_ahead_release(ops_compile_ahead *ahead)
{
    while (ahead->count > 0) {
        hal_kernel_release(ahead->kernels[--ahead->count].kernel);
    }
}
