/* Kernels: verified, legalised and made once for each device and hash. Called by programs through
 * hal/kernel.h and by queue.c. */
#include "kernel.h"

#include "device.h"
#include "hooks.h"
#include "ir/legalise.h"
#include "base/log.h"
#include "queue.h"
#include "base/sized.h"
#include "base/status.h"
#include "base/text.h"

#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The program has a reference when a kernel was made. */
static hal_status made_for_program(hal_status status, hal_kernel **kernel)
{
    if (status == HAL_OK) {
        hal_hook_created(HAL_OBJECT_KERNEL, *kernel, (*kernel)->device, (*kernel)->names, 0);
    }
    return status;
}

/* A kernel that is known by its source has been made; one more reference to it. */
static hal_kernel *find_source(hal_kernel_table *table, const uint64_t built_of[2])
{
    pthread_mutex_lock(&table->lock);
    hal_kernel *kernel = table->sources[built_of[0] % HAL_KERNEL_BUCKETS];
    while (kernel && (kernel->source[0] != built_of[0] || kernel->source[1] != built_of[1])) {
        kernel = kernel->next_source;
    }
    hal_kernel_ref(kernel);
    pthread_mutex_unlock(&table->lock);
    return kernel;
}

/* HAL_DUMP=ir shows both sides of the legaliser in the log. */
static void dump(const char *what, const hal_ir_kernel *ir)
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

static hal_status check_limits(const hal_device *device, const hal_ir_kernel *ir)
{
    const hal_device_info *info = &device->info;
    const char *name = ir->names + ir->name;
    uint64_t items = 1;
    for (uint32_t i = 0; i < 3; i++) {
        items *= ir->group_size[i];
        if (ir->group_size[i] > info->max_group_size[i]) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s: groups of %u work-items in dimension %u, %s:%u has at most "
                            "%u",
                            name, ir->group_size[i], i, device->plugin->name, device->index,
                            info->max_group_size[i]);
        }
    }
    if (items > info->max_group_items) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: groups of %llu work-items, %s:%u has at most %u", name,
                        (unsigned long long)items, device->plugin->name, device->index,
                        info->max_group_items);
    }
    uint64_t shared = 0;
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        const uint64_t size = hal_type_size(ir->memories[i].type);
        shared = (shared + 15) & ~UINT64_C(15);
        shared += size * ir->memories[i].count;
    }
    if (shared > info->shared_bytes) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: %llu bytes of shared memory, %s:%u has %u", name,
                        (unsigned long long)shared, device->plugin->name, device->index,
                        info->shared_bytes);
    }
    if (ir->binding_count > info->max_bindings) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "kernel %s: %u bindings, %s:%u has at most %u", name,
                        ir->binding_count, device->plugin->name, device->index,
                        info->max_bindings);
    }
    return HAL_OK;
}

static hal_kernel *find(hal_kernel_table *table, const uint64_t key[2])
{
    hal_kernel *kernel = table->buckets[key[0] % HAL_KERNEL_BUCKETS];
    while (kernel && (kernel->key[0] != key[0] || kernel->key[1] != key[1])) {
        kernel = kernel->next;
    }
    return kernel;
}

static hal_status describe_gemm(hal_kernel *kernel, const hal_gemm_description *gemm)
{
    static const char names[] = "gemm\0a\0b\0c\0workspace";
    enum { NAMED = 4, INPUT_BYTES = 8 };
    kernel->names = malloc(sizeof names + HAL_GEMM_MAX_INPUTS * INPUT_BYTES);
    if (!kernel->names) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel's names");
    }
    memcpy(kernel->names, names, sizeof names);
    char *at = kernel->names + sizeof names;
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        const char number[] = {(char)('0' + i / 10), (char)('0' + i % 10), 0};
        at = stpcpy(stpcpy(at, "input"), number) + 1;
        kernel->access[NAMED + i] = HAL_ACCESS_READ;
    }
    kernel->access[0] = HAL_ACCESS_READ;
    kernel->access[1] = HAL_ACCESS_READ;
    kernel->access[2] = gemm->beta_is_zero ? HAL_ACCESS_WRITE : HAL_ACCESS_READ_WRITE;
    kernel->access[3] = HAL_ACCESS_READ_WRITE;
    kernel->binding_count = NAMED + gemm->input_count;
    kernel->scalar_bytes = 2 * sizeof(double);
    return HAL_OK;
}

static hal_status describe_ir(hal_kernel *kernel, const hal_ir_kernel *ir)
{
    size_t bytes = strlen(ir->names + ir->name) + 1;
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        kernel->access[i] = ir->memories[i].access;
        bytes += strlen(ir->names + ir->memories[i].name) + 1;
    }
    kernel->binding_count = ir->binding_count;
    kernel->scalar_bytes = ir->scalar_bytes;
    kernel->names = malloc(bytes);
    if (!kernel->names) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel's names");
    }
    char *at = stpcpy(kernel->names, ir->names + ir->name) + 1;
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        at = stpcpy(at, ir->names + ir->memories[i].name) + 1;
    }
    return HAL_OK;
}

static void free_kernel(hal_kernel *kernel)
{
    if (kernel->handle) {
        kernel->device->plugin->kernel_destroy(kernel->device->handle, kernel->handle);
    }
    hal_fence_set_destroy(&kernel->uses);
    free(kernel->message);
    free(kernel->names);
    hal_hook_retire(HAL_OBJECT_KERNEL, kernel, sizeof *kernel, free);
}

/* A kernel that has everything but the plugin's part. */
static hal_kernel *new_kernel(hal_device *device, const hal_kernel_source *made_of)
{
    hal_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
        return NULL;
    }
    atomic_init(&kernel->references, 1);
    hal_fence_set_init(&kernel->uses);
    kernel->device = device;
    const hal_status status = made_of->gemm ? describe_gemm(kernel, made_of->gemm)
                                            : describe_ir(kernel, made_of->ir);
    if (status != HAL_OK) {
        free_kernel(kernel);
        return NULL;
    }
    hal_device_ref(device);
    return kernel;
}

static hal_status make(hal_kernel *kernel, const hal_kernel_source *made_of)
{
    hal_device *device = kernel->device;
    const hal_plugin *plugin = device->plugin;
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    hal_event event = {
        .kind = HAL_EVENT_COMPILE, .device = device, .kernel = kernel, .source = made_of};
    hal_status status = hal_event_begin(&event);
    if (status != HAL_OK) {
        ; /* refused by a layer */
    } else if (made_of->gemm) {
        status = plugin->gemm(device->handle, made_of->gemm, &kernel->handle,
                              made_of->workspace_bytes);
    } else if (made_of->code) {
        status = plugin->kernel_create_native(device->handle, made_of->format, made_of->code,
                                              made_of->bytes, made_of->entry, made_of->ir,
                                              &kernel->handle);
    } else {
        status = plugin->kernel_create(device->handle, made_of->ir, &kernel->handle);
    }
    status = hal_host_made(status, kernel->handle);
    hal_event_end(&event, status);
    hal_cache_enter(outer);
    if (status != HAL_OK) {
        kernel->handle = NULL;
        return hal_device_failed(device, status, "making kernel %s", kernel->names);
    }
    return HAL_OK;
}

/* Needs the table's lock. */
static void unlink_from_table(hal_kernel *kernel)
{
    hal_kernel_table *table = &kernel->device->kernels;
    hal_kernel **at = &table->buckets[kernel->key[0] % HAL_KERNEL_BUCKETS];
    while (*at && *at != kernel) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = kernel->next;
    }
    at = &table->sources[kernel->source[0] % HAL_KERNEL_BUCKETS];
    while (*at && *at != kernel) {
        at = &(*at)->next_source;
    }
    if (*at) {
        *at = kernel->next_source;
    }
}

/* Others who ask for a kernel that is being made wait until it is. */
static hal_status find_or_make(hal_device *device, const uint64_t key[2],
                               const hal_kernel_source *made_of, hal_kernel **kernel)
{
    hal_kernel_table *table = &device->kernels;
    pthread_mutex_lock(&table->lock);
    hal_kernel *found = find(table, key);
    if (found) {
        hal_kernel_ref(found);
        while (!found->made) {
            pthread_cond_wait(&table->made, &table->lock);
        }
        pthread_mutex_unlock(&table->lock);
        const hal_status status =
            found->status == HAL_OK ? HAL_OK : hal_fail(found->status, "%s", found->message);
        if (status == HAL_OK) {
            *kernel = found;
        } else {
            hal_kernel_unref(found);
        }
        return status;
    }
    hal_kernel *made = new_kernel(device, made_of);
    if (!made) {
        pthread_mutex_unlock(&table->lock);
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->key[0] = key[0];
    made->key[1] = key[1];
    made->next = table->buckets[key[0] % HAL_KERNEL_BUCKETS];
    table->buckets[key[0] % HAL_KERNEL_BUCKETS] = made;
    pthread_mutex_unlock(&table->lock);

    const hal_status status = make(made, made_of);
    char *message = status == HAL_OK ? NULL : strdup(hal_status_message());
    pthread_mutex_lock(&table->lock);
    made->made = 1;
    made->status = status;
    made->message = message;
    if (status != HAL_OK) {
        unlink_from_table(made); /* asked for again, it is tried again */
    }
    pthread_cond_broadcast(&table->made);
    pthread_mutex_unlock(&table->lock);
    if (status == HAL_OK) {
        *kernel = made;
    } else {
        hal_kernel_unref(made);
    }
    return status;
}

static void note_source(hal_kernel *kernel, const uint64_t built_of[2])
{
    hal_kernel_table *table = &kernel->device->kernels;
    pthread_mutex_lock(&table->lock);
    if (kernel->source[0] == 0 && kernel->source[1] == 0) {
        kernel->source[0] = built_of[0];
        kernel->source[1] = built_of[1];
        kernel->next_source = table->sources[built_of[0] % HAL_KERNEL_BUCKETS];
        table->sources[built_of[0] % HAL_KERNEL_BUCKETS] = kernel;
    }
    pthread_mutex_unlock(&table->lock);
}

static hal_status create(hal_device *device, const hal_ir_kernel *ir, hal_kernel **kernel)
{
    if (!kernel || !ir) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_kernel_create: %s is null",
                        kernel ? "ir" : "kernel");
    }
    *kernel = NULL;
    hal_status status = hal_device_check(device, "hal_kernel_create");
    if (status == HAL_OK) {
        status = hal_ir_verify(ir);
    }
    if (status == HAL_OK && (ir->flags & HAL_IR_FRAGMENT)) {
        status = hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                          "hal_kernel_create: %s is a fragment, which is no kernel of its own",
                          ir->names + ir->name);
    }
    if (status != HAL_OK) {
        return status;
    }
    uint64_t key[2];
    uint64_t built_of[2];
    hal_ir_hash(ir, built_of);
    if ((*kernel = find_source(&device->kernels, built_of)) != NULL) {
        return HAL_OK;
    }
    dump("as built", ir);
    hal_ir_kernel *legal = NULL;
    status = hal_ir_legalise(ir, &device->info, &legal);
    if (status != HAL_OK) {
        return status;
    }
    dump("legalised", legal);
    status = check_limits(device, legal);
    if (status == HAL_OK) {
        hal_ir_hash(legal, key);
        status = find_or_make(device, key, &(hal_kernel_source){.ir = legal, .built = ir}, kernel);
    }
    if (status == HAL_OK) {
        note_source(*kernel, built_of);
    }
    hal_ir_kernel_destroy(legal);
    return status;
}

static hal_status create_native(hal_device *device, const char *format, const void *code,
                                uint64_t bytes, const char *entry, const hal_ir_kernel *signature,
                                hal_kernel **kernel)
{
    if (!kernel || !format || !code || !entry || !signature) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_kernel_create_native: %s is null",
                        !kernel   ? "kernel"
                        : !format ? "format"
                        : !code   ? "code"
                        : !entry  ? "entry"
                                  : "signature");
    }
    *kernel = NULL;
    hal_status status = hal_device_check(device, "hal_kernel_create_native");
    if (status != HAL_OK || (status = hal_ir_verify(signature)) != HAL_OK) {
        return status;
    }
    if (bytes == 0 || (signature->flags & HAL_IR_FRAGMENT) || signature->record_count > 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_kernel_create_native: %s",
                        bytes == 0 ? "bytes is 0"
                                   : "signature is not a kernel without records");
    }
    const char *formats = device->plugin->formats ? device->plugin->formats : "";
    if (!device->plugin->kernel_create_native || !hal_list_has(formats, format)) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_kernel_create_native: %s:%u does not take the format \"%s\"; it takes "
                        "%s%s",
                        device->plugin->name, device->index, format, formats[0] ? "" : "none",
                        formats);
    }
    status = check_limits(device, signature);
    if (status != HAL_OK) {
        return status;
    }
    uint64_t parts[8];
    hal_ir_hash(signature, parts);
    parts[2] = XXH3_64bits(format, strlen(format));
    parts[3] = XXH3_64bits(entry, strlen(entry));
    const XXH128_hash_t hash = XXH3_128bits(code, bytes);
    parts[4] = hash.low64;
    parts[5] = hash.high64;
    const XXH128_hash_t all = XXH3_128bits(parts, 6 * sizeof *parts);
    return find_or_make(device, (const uint64_t[2]){all.low64, all.high64},
                        &(hal_kernel_source){.ir = signature, .format = format, .code = code,
                                             .bytes = bytes, .entry = entry},
                        kernel);
}

static hal_status check_gemm_epilogue(const hal_gemm_description *gemm)
{
    const hal_status status = hal_ir_verify(gemm->epilogue);
    if (status != HAL_OK) {
        return status;
    }
    if (!(gemm->epilogue->flags & HAL_IR_FRAGMENT) || gemm->epilogue->output_count != 1 ||
        gemm->epilogue->input_count > 4 + gemm->input_count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_gemm: epilogue is not a fragment of one output and at "
                        "most %u inputs",
                        4 + gemm->input_count);
    }
    return HAL_OK;
}

static hal_status check_gemm(const hal_gemm_description *gemm)
{
    const char *wrong = NULL;
    const int64_t columns_a = gemm->transpose_a ? gemm->m : gemm->k;
    const int64_t columns_b = gemm->transpose_b ? gemm->k : gemm->n;
    if (gemm->m <= 0 || gemm->n <= 0 || gemm->k < 0) {
        wrong = "m and n are not above 0 or k is below 0";
    } else if (gemm->batch == 0) {
        wrong = "batch is 0";
    } else if (gemm->lda < columns_a || gemm->ldb < columns_b || gemm->ldc < gemm->n) {
        wrong = "a leading dimension is smaller than the matrix has columns";
    } else if (gemm->transpose_a > 1 || gemm->transpose_b > 1 || gemm->beta_is_zero > 1 ||
               gemm->precision > HAL_GEMM_FAST) {
        wrong = "transpose_a, transpose_b, beta_is_zero or precision is out of range";
    } else if (hal_type_size(gemm->type_a) == 0 || hal_type_size(gemm->type_b) == 0 ||
               hal_type_size(gemm->type_c) == 0) {
        wrong = "a type is none";
    } else if (gemm->input_count > HAL_GEMM_MAX_INPUTS) {
        wrong = "input_count is above HAL_GEMM_MAX_INPUTS";
    } else if (gemm->input_count > 0 && !gemm->epilogue) {
        wrong = "there are inputs and no epilogue";
    }
    if (wrong) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_kernel_create_gemm: description: %s",
                        wrong);
    }
    return gemm->epilogue ? check_gemm_epilogue(gemm) : HAL_OK;
}

/* The program's description, as one of hal's own minor. */
static hal_status take_gemm(hal_gemm_description *own, const hal_gemm_description *given)
{
    if (!hal_sized_take(own, sizeof *own, given, HAL_GEMM_DESCRIPTION_BYTES_1_0)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_gemm: description: size, %u, is not "
                        "sizeof(hal_gemm_description), %zu here, or there is something behind it "
                        "that this hal does not know",
                        given->size, sizeof *own);
    }
    return check_gemm(own);
}

static hal_status create_gemm(hal_device *device, const hal_gemm_description *description,
                              hal_kernel **kernel, uint64_t *workspace_bytes)
{
    if (!kernel || !description || !workspace_bytes) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_kernel_create_gemm: %s is null",
                        !kernel        ? "kernel"
                        : !description ? "description"
                                       : "workspace_bytes");
    }
    *kernel = NULL;
    *workspace_bytes = 0;
    hal_status status = hal_device_check(device, "hal_kernel_create_gemm");
    hal_gemm_description legal;
    if (status == HAL_OK) {
        status = take_gemm(&legal, description);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (!device->plugin->gemm) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_kernel_create_gemm: %s:%u has no matrix product of its own",
                        device->plugin->name, device->index);
    }
    hal_ir_kernel *epilogue = NULL;
    if (legal.epilogue) {
        status = hal_ir_legalise(legal.epilogue, &device->info, &epilogue);
        if (status != HAL_OK) {
            return status;
        }
        legal.epilogue = epilogue;
    }
    const hal_kernel_source made_of = {
        .gemm = &legal, .built = description->epilogue, .workspace_bytes = workspace_bytes};
    hal_kernel *made = new_kernel(device, &made_of);
    status = made ? make(made, &made_of) : HAL_ERROR_OUT_OF_MEMORY;
    if (status == HAL_OK) {
        *kernel = made;
    } else if (made) {
        hal_device *owner = made->device;
        free_kernel(made);
        hal_device_unref(owner);
    }
    hal_ir_kernel_destroy(epilogue);
    return status;
}

hal_status hal_kernel_create(hal_device *device, const hal_ir_kernel *ir, hal_kernel **kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_create");
    return status == HAL_OK ? made_for_program(create(device, ir, kernel), kernel) : status;
}

hal_status hal_kernel_create_native(hal_device *device, const char *format, const void *code,
                                    uint64_t bytes, const char *entry,
                                    const hal_ir_kernel *signature, hal_kernel **kernel)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_create_native");
    if (status == HAL_OK) {
        status = create_native(device, format, code, bytes, entry, signature, kernel);
        status = made_for_program(status, kernel);
    }
    return status;
}

hal_status hal_kernel_create_gemm(hal_device *device, const hal_gemm_description *description,
                                  hal_kernel **kernel, uint64_t *workspace_bytes)
{
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_kernel_create_gemm");
    if (status == HAL_OK) {
        status = create_gemm(device, description, kernel, workspace_bytes);
        status = made_for_program(status, kernel);
    }
    if (status == HAL_OK) {
        hal_hook_gemm_created(*kernel, description, *workspace_bytes);
    }
    return status;
}

hal_kernel *hal_kernel_retain(hal_kernel *kernel)
{
    if (hal_hook_retain(HAL_OBJECT_KERNEL, kernel, "hal_kernel_retain") != HAL_OK) {
        return kernel;
    }
    return hal_kernel_ref(kernel);
}

void hal_kernel_release(hal_kernel *kernel)
{
    if (hal_hook_release(HAL_OBJECT_KERNEL, kernel, "hal_kernel_release") != HAL_OK) {
        return;
    }
    hal_kernel_unref(kernel);
}

hal_kernel *hal_kernel_ref(hal_kernel *kernel)
{
    if (kernel) {
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
    }
    return kernel;
}

void hal_kernel_unref(hal_kernel *kernel)
{
    if (!kernel || hal_device_is_after_fork(kernel->device)) {
        return;
    }
    uint32_t count = atomic_load_explicit(&kernel->references, memory_order_relaxed);
    while (count > 1) {
        if (atomic_compare_exchange_weak_explicit(&kernel->references, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            return;
        }
    }
    hal_device *device = kernel->device;
    hal_kernel_table *table = &device->kernels;
    pthread_mutex_lock(&table->lock);
    const int last = atomic_fetch_sub(&kernel->references, 1) == 1;
    if (last) {
        unlink_from_table(kernel);
        kernel->next = table->retired;
        table->retired = kernel;
        atomic_fetch_add(&table->retired_count, 1);
    }
    pthread_mutex_unlock(&table->lock);
    if (last) {
        hal_kernel_sweep(device);
        hal_device_unref(device);
    }
}

const char *hal_kernel_get_name(const hal_kernel *kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_KERNEL, kernel, "hal_kernel_get_name");
    return kernel && status == HAL_OK ? kernel->names : "";
}

void hal_kernel_table_begin(hal_kernel_table *table)
{
    pthread_mutex_init(&table->lock, NULL);
    pthread_cond_init(&table->made, NULL);
}

void hal_kernel_table_end(hal_device *device)
{
    hal_kernel_table *table = &device->kernels;
    while (table->retired) {
        hal_kernel *kernel = table->retired;
        table->retired = kernel->next;
        free_kernel(kernel);
    }
    pthread_mutex_destroy(&table->lock);
    pthread_cond_destroy(&table->made);
}

void hal_kernel_sweep(hal_device *device)
{
    hal_kernel_table *table = &device->kernels;
    if (atomic_load_explicit(&table->retired_count, memory_order_relaxed) == 0) {
        return;
    }
    hal_kernel *over = NULL;
    pthread_mutex_lock(&table->lock);
    for (hal_kernel **at = &table->retired; *at;) {
        hal_kernel *kernel = *at;
        if (hal_fence_set_pending(&kernel->uses, 1) > 0) {
            at = &kernel->next;
            continue;
        }
        *at = kernel->next;
        kernel->next = over;
        over = kernel;
        atomic_fetch_sub(&table->retired_count, 1);
    }
    pthread_mutex_unlock(&table->lock);
    while (over) {
        hal_kernel *next = over->next;
        free_kernel(over);
        over = next;
    }
}

const char *hal_kernel_binding_name(const hal_kernel *kernel, uint32_t binding)
{
    const char *name = kernel->names;
    for (uint32_t i = 0; i <= binding; i++) {
        name += strlen(name) + 1;
    }
    return name;
}

hal_status hal_kernel_note_use(hal_kernel *kernel, hal_queue *queue)
{
    pthread_mutex_lock(&kernel->uses.lock);
    const hal_status status = hal_fence_set_add(&kernel->uses, queue, hal_queue_next_value(queue));
    pthread_mutex_unlock(&kernel->uses.lock);
    if (status == HAL_OK) {
        atomic_store_explicit(&kernel->stamp, queue->serial, memory_order_relaxed);
    }
    return status;
}
