/* Creation of kernels: IR is verified and legalised, then looked up by its hash and compiled once
 * per device. */
#include "attention_check.h"
#include "gemm_check.h"
#include "hooks.h"
#include "kernel_cache.h"
#include "fingerprint.h"

#include "base/list.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"
#include "base/text.h"
#include "ir/internal.h"
#include "ir/legalise.h"

#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* HAL_DUMP=ir logs kernels before and after legalising. */
static void dump_ir(const char *what, const hal_ir_kernel *ir)
{
    const char *variable = secure_getenv("HAL_DUMP");
    char *text = NULL;
    if (!variable || !hal_list_has(variable, "ir") || hal_ir_print(ir, &text) != HAL_OK) {
        return;
    }
    char *whole = NULL;
    const size_t bytes = strlen(what) + strlen(text) + 16;
    if ((whole = malloc(bytes)) != NULL) {
        stpcpy(stpcpy(stpcpy(stpcpy(whole, "IR "), what), ":\n"), text);
        hal_log_dump(whole);
    }
    free(whole);
    free(text);
}

static hal_status fail_limit(const char *function, const hal_device *device,
                             const hal_ir_kernel *ir, const char *what, uint64_t limit,
                             uint64_t value)
{
    return hal_fail(HAL_ERROR_UNSUPPORTED,
                    "%s: kernel %s: expected at most %llu %s on %s:%u, got %llu", function,
                    ir->names + ir->name, (unsigned long long)limit, what, device->plugin->name,
                    device->index, (unsigned long long)value);
}

/* The same of what a layer takes a part of. */
static hal_status fail_limit_shared(const char *function, const hal_device *device,
                                    const hal_ir_kernel *ir, const char *what, uint64_t limit,
                                    uint64_t value)
{
    if (!device->limited_by) {
        return fail_limit(function, device, ir, what, limit, value);
    }
    return hal_fail(HAL_ERROR_UNSUPPORTED,
                    "%s: kernel %s: expected at most %llu %s on %s:%u, of which %s takes the "
                    "others, got %llu",
                    function, ir->names + ir->name, (unsigned long long)limit, what,
                    device->plugin->name, device->index, device->limited_by,
                    (unsigned long long)value);
}

static hal_status check_limits(const char *function, const hal_device *device,
                               const hal_ir_kernel *ir)
{
    static const char *const dimensions[] = {"work-items in dimension 0 of a group",
                                             "work-items in dimension 1 of a group",
                                             "work-items in dimension 2 of a group"};
    const hal_device_info *info = &device->info;
    uint64_t items = 1;
    for (uint32_t i = 0; i < 3; i++) {
        items *= ir->group_size[i];
        if (ir->group_size[i] > info->max_group_size[i]) {
            return fail_limit(function, device, ir, dimensions[i], info->max_group_size[i],
                              ir->group_size[i]);
        }
    }
    if (items > info->max_group_items) {
        return fail_limit(function, device, ir, "work-items in a group", info->max_group_items,
                          items);
    }
    uint64_t shared = 0;
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        const uint64_t size = hal_type_size(ir->memories[i].type);
        shared = (shared + 15) & ~UINT64_C(15);
        shared += size * ir->memories[i].count;
    }
    if (shared > info->shared_bytes) {
        return fail_limit_shared(function, device, ir, "bytes of shared memory", info->shared_bytes,
                                 shared);
    }
    const uint64_t iterations = hal_ir_loop_iterations(ir);
    if (info->max_loop_iterations != 0 && iterations > info->max_loop_iterations) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: kernel %s: expected loops of at most %u iterations in total on %s:%u, "
                        "as its driver ends longer ones early, got %llu; divide the work among "
                        "several dispatches or more work-items",
                        function, ir->names + ir->name, info->max_loop_iterations,
                        device->plugin->name, device->index, (unsigned long long)iterations);
    }
    return ir->binding_count > info->max_bindings
               ? fail_limit_shared(function, device, ir, "bindings", info->max_bindings,
                                   ir->binding_count)
               : HAL_OK;
}

/* How a kernel is created. */
typedef struct creation {
    const char *function;                      /* the public one, for messages */
    const char *argument;                      /* of it, which is the kernel */
    const hal_kernel_fingerprint *fingerprint; /* its key in the compile cache, or null */
    bool is_ahead;                             /* not compiled within the call */
} creation;

/* Layers see compilations on the thread that asks for them, and in order. */
static bool device_compiles_ahead(const hal_device *device)
{
    return hal_kernel_cache_get_threads(device->kernels) > 0 &&
           !hal_hooks_on(HAL_HOOK_EVENTS | HAL_HOOK_CALLS | HAL_HOOK_BATCHES);
}

/* Stores the fingerprint of a kernel that is there, built now or before for another one. Kernels
 * that are compiled ahead have theirs stored after that. */
static void creation_store(const creation *how, hal_device *device, const hal_ir_kernel *legal,
                           const hal_kernel *kernel)
{
    if (how->fingerprint) {
        hal_fingerprint_store(device, how->fingerprint, legal, kernel->key);
    }
}

/* Takes `legal`. */
static hal_status kernel_create_legal(const creation *how, hal_device *device,
                                      const hal_ir_kernel *ir, hal_ir_kernel *legal,
                                      hal_kernel **kernel)
{
    uint64_t key[2];
    hal_status status = check_limits(how->function, device, legal);
    hal_ir_hash(legal, key);
    if (status == HAL_OK && how->is_ahead && device_compiles_ahead(device)) {
        hal_kernel_ahead *ahead = hal_kernel_ahead_create(legal, how->fingerprint);
        return ahead ? hal_kernel_cache_get_ahead(device->kernels, key, ahead, kernel)
                     : HAL_ERROR_OUT_OF_MEMORY;
    }
    if (status == HAL_OK) {
        status = hal_kernel_cache_get(device->kernels, key,
                                      &(hal_kernel_source){.ir = legal, .built = ir}, kernel);
    }
    if (status == HAL_OK) {
        creation_store(how, device, legal, *kernel);
    }
    hal_ir_kernel_destroy(legal);
    return status;
}

/* A kernel that was found may be one that is compiled ahead. Takes the reference. */
static hal_status kernel_found(const creation *how, hal_device *device, const hal_ir_kernel *ir,
                               hal_kernel **kernel)
{
    hal_ir_kernel *legal = NULL;
    if (how->fingerprint && hal_ir_legalise(ir, &device->info, &legal) == HAL_OK) {
        creation_store(how, device, legal, *kernel);
        hal_ir_kernel_destroy(legal);
    }
    const hal_status status = how->is_ahead ? HAL_OK : hal_kernel_cache_await(*kernel);
    if (status != HAL_OK) {
        hal_kernel_unref(*kernel);
        *kernel = NULL;
    }
    return status;
}

/* Of a verified kernel. */
static hal_status kernel_create_verified(const creation *how, hal_device *device,
                                         const hal_ir_kernel *ir, hal_kernel **kernel)
{
    if (ir->flags & HAL_IR_FRAGMENT) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: %s: expected a kernel, got fragment %s",
                        how->function, how->argument, ir->names + ir->name);
    }
    uint64_t source[2];
    hal_ir_hash(ir, source);
    if ((*kernel = hal_kernel_cache_find_source(device->kernels, source)) != NULL) {
        return kernel_found(how, device, ir, kernel);
    }
    dump_ir("as built", ir);
    hal_ir_kernel *legal = NULL;
    if (device->limited_by) { /* names the layer, which the legaliser does not know */
        HAL_TRY(check_limits(how->function, device, ir));
    }
    HAL_TRY(hal_ir_legalise(ir, &device->info, &legal));
    dump_ir("legalised", legal);
    const hal_status status = kernel_create_legal(how, device, ir, legal, kernel);
    if (status == HAL_OK) {
        hal_kernel_cache_add_source(device->kernels, *kernel, source);
    }
    return status;
}

static hal_status kernel_create(const creation *how, hal_device *device, const hal_ir_kernel *ir,
                                hal_kernel **kernel)
{
    if (!kernel || !ir) {
        return hal_null_argument("hal_kernel_create", kernel ? "ir" : "kernel");
    }
    *kernel = NULL;
    hal_status status = hal_device_check(device, "hal_kernel_create");
    if (status == HAL_OK) {
        status = hal_ir_verify(ir);
    }
    return status == HAL_OK ? kernel_create_verified(how, device, ir, kernel) : status;
}

static hal_status kernel_create_built(const creation *how, hal_device *device,
                                      hal_ir_builder *builder, hal_kernel **kernel)
{
    if (!kernel || !builder) {
        return hal_null_argument(how->function, kernel ? "builder" : "kernel");
    }
    *kernel = NULL;
    hal_status status = hal_device_check(device, how->function);
    if (status == HAL_OK) {
        status = hal_ir_builder_end(builder, how->function);
    }
    return status == HAL_OK
               ? kernel_create_verified(how, device, hal_ir_builder_view(builder), kernel)
               : status;
}

static hal_status kernel_recall(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                                hal_kernel **kernel)
{
    if (!kernel || !fingerprint) {
        return hal_null_argument("hal_kernel_recall", kernel ? "fingerprint" : "kernel");
    }
    *kernel = NULL;
    hal_fingerprint_kernel found;
    hal_status status = hal_device_check(device, "hal_kernel_recall");
    if (status == HAL_OK && hal_fingerprint_find(device, fingerprint, &found)) {
        status =
            hal_kernel_cache_get(device->kernels, found.key,
                                 &(hal_kernel_source){.ir = found.ir, .built = found.ir}, kernel);
        hal_fingerprint_release(&found);
    }
    return status;
}

static hal_status check_native(const hal_device *device, const char *format, uint64_t bytes,
                               const hal_ir_kernel *signature)
{
    hal_status status = hal_device_check(device, "hal_kernel_create_native");
    if (status != HAL_OK || (status = hal_ir_verify(signature)) != HAL_OK) {
        return status;
    }
    if (bytes == 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_native: bytes: expected at least 1, got 0");
    }
    if ((signature->flags & HAL_IR_FRAGMENT) || signature->record_count > 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_native: signature: expected a kernel without records, "
                        "got %s with %u",
                        signature->flags & HAL_IR_FRAGMENT ? "a fragment" : "one",
                        signature->record_count);
    }
    const char *formats = device->plugin->formats ? device->plugin->formats : "";
    if (!device->plugin->kernel_create_native || !hal_list_has(formats, format)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_kernel_create_native: format: expected one that %s:%u accepts "
                        "(%s), got \"%s\"",
                        device->plugin->name, device->index, formats[0] ? formats : "none", format);
    }
    return check_limits("hal_kernel_create_native", device, signature);
}

static hal_status kernel_create_native(hal_device *device, const char *format, const void *code,
                                       uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_kernel **kernel)
{
    if (!kernel || !format || !code || !entry || !signature) {
        return hal_null_argument("hal_kernel_create_native", !kernel   ? "kernel"
                                                             : !format ? "format"
                                                             : !code   ? "code"
                                                             : !entry  ? "entry"
                                                                       : "signature");
    }
    *kernel = NULL;
    HAL_TRY(check_native(device, format, bytes, signature));
    uint64_t parts[6];
    hal_ir_hash(signature, parts);
    parts[2] = XXH3_64bits(format, strlen(format));
    parts[3] = XXH3_64bits(entry, strlen(entry));
    const XXH128_hash_t hash = XXH3_128bits(code, bytes);
    parts[4] = hash.low64;
    parts[5] = hash.high64;
    const XXH128_hash_t key = XXH3_128bits(parts, sizeof parts);
    return hal_kernel_cache_get(
        device->kernels, (const uint64_t[2]){key.low64, key.high64},
        &(hal_kernel_source){
            .ir = signature, .format = format, .code = code, .bytes = bytes, .entry = entry},
        kernel);
}

/* The plugin says at once whether it has the product. Takes the epilogue. */
static hal_status kernel_create_gemm_ahead(hal_device *device, const hal_gemm_description *legal,
                                           hal_ir_kernel *epilogue, hal_kernel **kernel,
                                           uint64_t *workspace_bytes)
{
    hal_host_clear_error();
    const hal_status status =
        device->plugin->gemm_workspace(device->handle, legal, workspace_bytes);
    if (status != HAL_OK) {
        hal_ir_kernel_destroy(epilogue);
        return hal_device_failed(device, status, "creating kernel gemm");
    }
    hal_kernel_ahead *ahead = hal_kernel_ahead_create_gemm(legal, epilogue);
    return ahead ? hal_kernel_cache_get_ahead(device->kernels, NULL, ahead, kernel)
                 : HAL_ERROR_OUT_OF_MEMORY;
}

/* Checks a description, and whether the device's plugin takes such ones. */
static hal_status gemm_take(const char *function, hal_device *device,
                            const hal_gemm_description *given, hal_gemm_description *legal)
{
    HAL_TRY(hal_device_check(device, function));
    HAL_TRY(hal_gemm_check(given, legal));
    if (!device->plugin->gemm) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "%s: the plugin of %s:%u has no matrix product",
                        function, device->plugin->name, device->index);
    }
    return legal->type_offsets != HAL_TYPE_NONE &&
                   !(device->info.features & HAL_FEATURE_GROUPED_PRODUCTS)
               ? hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: description.type_offsets: expected none, since the plugin of %s:%u "
                          "has no products of groups of rows, got %u",
                          function, device->plugin->name, device->index,
                          (unsigned)legal->type_offsets)
               : HAL_OK;
}

static hal_status kernel_create_gemm(const creation *how, hal_device *device,
                                     const hal_gemm_description *description, hal_kernel **kernel,
                                     uint64_t *workspace_bytes)
{
    if (!kernel || !description || !workspace_bytes) {
        return hal_null_argument(how->function, !kernel        ? "kernel"
                                                : !description ? "description"
                                                               : "workspace_bytes");
    }
    *kernel = NULL;
    *workspace_bytes = 0;
    hal_gemm_description legal;
    HAL_TRY(gemm_take(how->function, device, description, &legal));
    hal_ir_kernel *epilogue = NULL;
    if (legal.epilogue) {
        HAL_TRY(hal_ir_legalise(legal.epilogue, &device->info, &epilogue));
        legal.epilogue = epilogue;
    }
    if (how->is_ahead && device->plugin->gemm_workspace && device_compiles_ahead(device)) {
        return kernel_create_gemm_ahead(device, &legal, epilogue, kernel, workspace_bytes);
    }
    const hal_kernel_source source = {
        .gemm = &legal, .built = description->epilogue, .workspace_bytes = workspace_bytes};
    /* Kernels of descriptions are not shared. */
    const hal_status status = hal_kernel_cache_get(device->kernels, NULL, &source, kernel);
    hal_ir_kernel_destroy(epilogue);
    return status;
}

static hal_status gemm_estimate(hal_device *device, const hal_gemm_description *description,
                                double most_ns, double *nanoseconds)
{
    if (!description || !nanoseconds) {
        return hal_null_argument("hal_gemm_estimate", !description ? "description" : "nanoseconds");
    }
    *nanoseconds = 0;
    hal_gemm_description legal;
    HAL_TRY(gemm_take("hal_gemm_estimate", device, description, &legal));
    legal.epilogue = NULL;
    legal.input_count = 0;
    return device->plugin->gemm_estimate
               ? device->plugin->gemm_estimate(device->handle, &legal, most_ns, nanoseconds)
               : HAL_OK;
}

static hal_status kernel_create_attention(hal_device *device,
                                          const hal_attention_description *description,
                                          hal_kernel **kernel)
{
    if (!kernel || !description) {
        return hal_null_argument("hal_kernel_create_attention", !kernel ? "kernel" : "description");
    }
    *kernel = NULL;
    hal_attention_description legal;
    HAL_TRY(hal_device_check(device, "hal_kernel_create_attention"));
    HAL_TRY(hal_attention_check(description, &legal));
    if (!device->plugin->attention) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_kernel_create_attention: the plugin of %s:%u has no attention",
                        device->plugin->name, device->index);
    }
    return hal_kernel_cache_get(device->kernels, NULL, &(hal_kernel_source){.attention = &legal},
                                kernel);
}

static hal_status report_created(hal_status status, hal_kernel **kernel)
{
    if (status == HAL_OK) {
        hal_hook_created(HAL_OBJECT_KERNEL, *kernel, (*kernel)->device, (*kernel)->names, 0);
    }
    return status;
}

static hal_status kernel_create_reported(const creation *how, hal_device *device,
                                         const hal_ir_kernel *ir, hal_kernel **kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, how->function);
    return status == HAL_OK ? report_created(kernel_create(how, device, ir, kernel), kernel)
                            : status;
}

static const creation plain = {.function = "hal_kernel_create", .argument = "ir"};

hal_status hal_kernel_create(hal_device *device, const hal_ir_kernel *ir, hal_kernel **kernel)
{
    return kernel_create_reported(&plain, device, ir, kernel);
}

/* Of kernels that are compiled ahead: those that fail become null. */
static void kernels_await(hal_kernel **kernels, uint32_t count)
{
    hal_kernel_cache *cache = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (kernels[i]) {
            cache = kernels[i]->device->kernels;
            hal_kernel_cache_help(kernels[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (kernels[i] && hal_kernel_cache_await(kernels[i]) != HAL_OK) {
            hal_kernel_release(kernels[i]);
            kernels[i] = NULL;
        }
    }
    if (cache) {
        hal_kernel_cache_join(cache);
    }
}

hal_status hal_kernel_create_all(hal_device *device, const hal_ir_kernel *const *irs,
                                 const hal_kernel_fingerprint *fingerprints, uint32_t count,
                                 hal_kernel **kernels)
{
    creation how = plain;
    hal_status status = HAL_OK;
    if (count == 0) {
        return HAL_OK;
    }
    if (!irs || !kernels) {
        return hal_null_argument("hal_kernel_create_all", !irs ? "irs" : "kernels");
    }
    how.is_ahead = true;
    for (uint32_t i = 0; i < count; i++) {
        how.fingerprint = fingerprints ? &fingerprints[i] : NULL;
        kernels[i] = NULL;
        if (kernel_create_reported(&how, device, irs[i], &kernels[i]) != HAL_OK) {
            kernels[i] = NULL;
        }
    }
    kernels_await(kernels, count);
    /* Once more, so that the caller has the message of the first one. */
    how.is_ahead = false;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        how.fingerprint = fingerprints ? &fingerprints[i] : NULL;
        if (!kernels[i]) {
            status = kernel_create_reported(&how, device, irs[i], &kernels[i]);
        }
    }
    return status;
}

hal_status hal_kernel_create_built(hal_device *device, hal_ir_builder *builder,
                                   const hal_kernel_fingerprint *fingerprint, hal_kernel **kernel)
{
    const creation how = {
        .function = "hal_kernel_create_built", .argument = "builder", .fingerprint = fingerprint};
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, how.function);
    if (status == HAL_OK) {
        status = report_created(kernel_create_built(&how, device, builder, kernel), kernel);
    }
    return status;
}

hal_status hal_kernel_create_ahead(hal_device *device, hal_ir_builder *builder,
                                   const hal_kernel_fingerprint *fingerprint, hal_kernel **kernel)
{
    const creation how = {.function = "hal_kernel_create_ahead",
                          .argument = "builder",
                          .fingerprint = fingerprint,
                          .is_ahead = true};
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, how.function);
    if (status == HAL_OK) {
        status = report_created(kernel_create_built(&how, device, builder, kernel), kernel);
    }
    return status;
}

uint32_t hal_device_get_compilers(hal_device *device)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_device_get_compilers");
    return device && status == HAL_OK ? hal_kernel_cache_get_threads(device->kernels) : 0;
}

hal_status hal_kernel_wait(hal_kernel *kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_KERNEL, kernel, "hal_kernel_wait");
    if (status == HAL_OK && !kernel) {
        return hal_null_argument("hal_kernel_wait", "kernel");
    }
    return status == HAL_OK ? hal_kernel_cache_await(kernel) : status;
}

uint64_t hal_kernel_get_compile_ns(const hal_kernel *kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_KERNEL, kernel, "hal_kernel_get_compile_ns");
    return kernel && status == HAL_OK ? hal_kernel_cache_compile_ns(kernel) : 0;
}

hal_status hal_kernel_get_report(hal_kernel *kernel, hal_kernel_report *report)
{
    static const char function[] = "hal_kernel_get_report";
    HAL_TRY(hal_hook_use(HAL_OBJECT_KERNEL, kernel, function));
    if (!kernel || !report) {
        return hal_null_argument(function, kernel ? "report" : "kernel");
    }
    hal_device *device = kernel->device;
    HAL_TRY(hal_device_check(device, function));
    HAL_TRY(hal_kernel_cache_await(kernel));
    hal_kernel_report own = {.size = sizeof own};
    if (device->plugin->kernel_report) {
        hal_host_clear_error();
        const hal_status status =
            device->plugin->kernel_report(device->handle, kernel->handle, &own);
        if (status != HAL_OK) {
            return hal_device_failed(device, status, "%s", function);
        }
    }
    own.size = sizeof own;
    own.from_cache = kernel->from_cache;
    own.compile_ns = hal_kernel_cache_compile_ns(kernel);
    *report = own;
    return HAL_OK;
}

hal_status hal_kernel_recall(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                             hal_kernel **kernel)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_recall");
    if (status == HAL_OK) {
        status = kernel_recall(device, fingerprint, kernel);
    }
    return status == HAL_OK && *kernel ? report_created(status, kernel) : status;
}

hal_status hal_kernel_create_native(hal_device *device, const char *format, const void *code,
                                    uint64_t bytes, const char *entry,
                                    const hal_ir_kernel *signature, hal_kernel **kernel)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_create_native");
    if (status == HAL_OK) {
        status = kernel_create_native(device, format, code, bytes, entry, signature, kernel);
        status = report_created(status, kernel);
    }
    return status;
}

static hal_status gemm_create(const creation *how, hal_device *device,
                              const hal_gemm_description *description, hal_kernel **kernel,
                              uint64_t *workspace_bytes)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, how->function);
    if (status == HAL_OK) {
        status = kernel_create_gemm(how, device, description, kernel, workspace_bytes);
        status = report_created(status, kernel);
    }
    if (status == HAL_OK) {
        hal_hook_gemm_created(*kernel, description, *workspace_bytes);
    }
    return status;
}

hal_status hal_kernel_create_gemm(hal_device *device, const hal_gemm_description *description,
                                  hal_kernel **kernel, uint64_t *workspace_bytes)
{
    return gemm_create(&(creation){.function = "hal_kernel_create_gemm"}, device, description,
                       kernel, workspace_bytes);
}

hal_status hal_kernel_create_gemm_ahead(hal_device *device, const hal_gemm_description *description,
                                        hal_kernel **kernel, uint64_t *workspace_bytes)
{
    return gemm_create(&(creation){.function = "hal_kernel_create_gemm_ahead", .is_ahead = true},
                       device, description, kernel, workspace_bytes);
}

hal_status hal_kernel_create_attention(hal_device *device,
                                       const hal_attention_description *description,
                                       hal_kernel **kernel)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_create_attention");
    if (status == HAL_OK) {
        status = kernel_create_attention(device, description, kernel);
        status = report_created(status, kernel);
    }
    if (status == HAL_OK) {
        hal_hook_attention_created(*kernel, description);
    }
    return status;
}

hal_kernel *hal_kernel_retain(hal_kernel *kernel)
{
    return hal_hook_retain(HAL_OBJECT_KERNEL, kernel, "hal_kernel_retain") == HAL_OK
               ? hal_kernel_ref(kernel)
               : kernel;
}

void hal_kernel_release(hal_kernel *kernel)
{
    if (hal_hook_release(HAL_OBJECT_KERNEL, kernel, "hal_kernel_release") == HAL_OK) {
        hal_kernel_unref(kernel);
    }
}

hal_status hal_gemm_estimate(hal_device *device, const hal_gemm_description *description,
                             double most_ns, double *nanoseconds)
{
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_gemm_estimate"));
    return gemm_estimate(device, description, most_ns, nanoseconds);
}
