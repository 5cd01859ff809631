/* The kernels of a context, see kernel_cache.h. */
#include "kernel_cache.h"

#include "compile_ahead.h"
#include "compile_policy.h"
#include "kernel_log.h"
#include "plan_recorder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *key, uint64_t hash[2])
{
    ops_cache_key_hash(key, hash);
    ops_entry *entry = ops_kernel_table_slot(&context->kernels, hash);
    if (!entry->key[1]) {
        return NULL;
    }
    entry->was_used = 1;
    return entry;
}

hal_status ops_cache_insert(ops_context *context, const uint64_t hash[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry)
{
    return ops_kernel_table_insert(&context->kernels, hash, kernel, workspace_bytes, entry);
}

/* What a kernel is built from. */
typedef struct kernel_source {
    const char *name;
    ops_kernel_emit emit;
    const void *user;
} kernel_source;

static hal_status source_begin(const kernel_source *source, hal_ir_builder **builder)
{
    HAL_TRY(hal_ir_builder_create(source->name, builder));
    source->emit(*builder, source->user);
    return HAL_OK;
}

static hal_status source_build(const kernel_source *source, hal_ir_kernel **ir)
{
    hal_ir_builder *builder;
    HAL_TRY(source_begin(source, &builder));
    const hal_status status = hal_ir_builder_finish(builder, ir);
    hal_ir_builder_destroy(builder);
    return status;
}

/* The log's line of a new kernel, whose IR is built for it once more. */
static void kernel_log(const kernel_source *source, bool is_recalled)
{
    hal_ir_kernel *ir;
    if (hal_log_is_enabled(HAL_LOG_DEBUG) && source_build(source, &ir) == HAL_OK) {
        ops_kernel_log(ir, is_recalled);
        hal_ir_kernel_destroy(ir);
    }
}

/* A key has all that the kernel depends on, except for the device and the code of this library. */
static hal_kernel_fingerprint fingerprint_of(const uint64_t key[2])
{
    return (hal_kernel_fingerprint){.hash = {key[0], key[1]},
                                    .code = (const void *)(uintptr_t)ops_cache_get};
}

/* Finds a kernel that an earlier process built, or leaves *kernel null. */
static hal_status cache_recall(ops_context *context, const uint64_t key[2], hal_kernel **kernel)
{
    const hal_kernel_fingerprint fingerprint = fingerprint_of(key);
    const uint64_t begin = now_ns();
    const hal_status status = hal_kernel_recall(context->device, &fingerprint, kernel);
    if (*kernel) {
        ops_compile_policy_add_time(context->compile_policy, now_ns() - begin, false);
    }
    return status;
}

/* Builds and compiles a kernel, in the background where compilations are slow. */
static hal_status cache_build(ops_context *context, const uint64_t hash[2],
                              const kernel_source *source, hal_kernel **kernel)
{
    const hal_kernel_fingerprint fingerprint = fingerprint_of(hash);
    hal_ir_builder *builder;
    const uint64_t begin = now_ns();
    kernel_log(source, false);
    HAL_TRY(source_begin(source, &builder));
    const hal_status status =
        ops_compile_ahead_pays(context)
            ? hal_kernel_create_ahead(context->device, builder, &fingerprint, kernel)
            : hal_kernel_create_built(context->device, builder, &fingerprint, kernel);
    hal_ir_builder_destroy(builder);
    if (status != HAL_OK || hal_kernel_get_compile_ns(*kernel) > 0) {
        ops_compile_policy_add_time(context->compile_policy, now_ns() - begin, true);
    }
    return status;
}

/* Finds a kernel that an earlier process built, and inserts it. *entry is null without one. */
static hal_status cache_insert_recalled(ops_context *context, const uint64_t hash[2],
                                        const kernel_source *source, ops_entry **entry)
{
    hal_kernel *kernel = NULL;
    *entry = NULL;
    HAL_TRY(cache_recall(context, hash, &kernel));
    if (!kernel) {
        return HAL_OK;
    }
    kernel_log(source, true);
    return ops_cache_insert(context, hash, kernel, 0, entry);
}

/* Has a kernel made in the background, for the plan that is being recorded, or at once where there
 * is no room. *entry is null while it is not compiled. Plans that need one kernel request it each,
 * and hal compiles it once. */
static hal_status cache_request(ops_context *context, const uint64_t hash[2],
                                const kernel_source *source, ops_entry **entry)
{
    hal_kernel *kernel = NULL;
    HAL_TRY(cache_build(context, hash, source, &kernel));
    return hal_kernel_get_compile_ns(kernel) == 0 &&
                   ops_compile_ahead_request(context, hash, kernel)
               ? HAL_OK
               : ops_cache_insert(context, hash, kernel, 0, entry);
}

/* A kernel that is not to be compiled within the call. */
static hal_status cache_refuse(ops_context *context, const uint64_t hash[2],
                               const kernel_source *source, ops_entry **entry)
{
    ops_compile_policy *policy = context->compile_policy;
    if (policy->missing == OPS_MISSING_REQUESTED && ops_compile_ahead_has_room(context)) {
        HAL_TRY(cache_request(context, hash, source, entry));
    }
    return *entry ? HAL_OK : ops_compile_policy_refuse(policy);
}

static hal_status cache_get(ops_context *context, const ops_cache_key *key,
                            const kernel_source *source, ops_entry **entry)
{
    uint64_t hash[2];
    *entry = ops_cache_find(context, key, hash);
    if (*entry) {
        return HAL_OK;
    }
    HAL_TRY(ops_compile_ahead_collect(context));
    HAL_TRY(cache_insert_recalled(context, hash, source, entry));
    if (*entry) {
        return HAL_OK;
    }
    if (context->compile_policy->missing != OPS_MISSING_COMPILED) {
        return cache_refuse(context, hash, source, entry);
    }
    hal_kernel *kernel = NULL;
    HAL_TRY(cache_build(context, hash, source, &kernel));
    ops_compile_ahead_follow(context, kernel);
    return ops_cache_insert(context, hash, kernel, 0, entry);
}

hal_status ops_cache_get(ops_context *context, const ops_cache_key *key, const char *name,
                         ops_kernel_emit emit, const void *user, ops_entry **entry)
{
    return cache_get(context, key, &(kernel_source){name, emit, user}, entry);
}

hal_status ops_cache_get_special(ops_context *context, const ops_cache_key *key, const char *name,
                                 ops_kernel_emit emit, const void *user, uint64_t bytes,
                                 ops_entry **entry)
{
    const kernel_source source = {name, emit, user};
    ops_compile_policy *policy = context->compile_policy;
    if (!ops_compile_policy_generalises(policy)) {
        return cache_get(context, key, &source, entry);
    }
    uint64_t hash[2];
    *entry = ops_cache_find(context, key, hash);
    if (*entry) {
        return HAL_OK;
    }
    if (context->ahead.count > 0) {
        HAL_TRY(ops_compile_ahead_collect(context));
        *entry = ops_cache_find(context, key, hash);
        if (*entry) {
            return HAL_OK;
        }
    }
    const uint64_t cost = ops_compile_policy_general_ns(policy, bytes);
    bool is_first;
    const bool pays = ops_compile_policy_charge(policy, hash, cost, &is_first);
    if (is_first) {
        HAL_TRY(cache_insert_recalled(context, hash, &source, entry));
    }
    static const uint64_t any_plan[2];
    if (!*entry && pays && policy->missing == OPS_MISSING_COMPILED &&
        !ops_compile_ahead_is_requested(context, hash,
                                        policy->requests ? policy->plan : any_plan)) {
        HAL_TRY(cache_request(context, hash, &source, entry));
    }
    if (!*entry) {
        ops_plan_recorder_add_general(context->recorder, cost);
    }
    return HAL_OK;
}
