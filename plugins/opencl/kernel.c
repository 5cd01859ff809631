/* Kernels: source from IR, the driver's compiler, its binaries in hal's cache, and the kernel
 * objects of each queue. Entries of the plugin's table. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "opencl.h"

#include <kit/clock.h>
#include <kit/native_dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defines the guard of clang's header of OpenCL's functions; types and constants have another.
 * Where the kernel does not compile like that, the driver is asked without it. */
#define NO_HEADER "-D_OPENCL_H_"

/* In the device's list, with all that the IR says of it. */
static hal_plugin_kernel *new_kernel(hal_plugin_device *device, const hal_ir_kernel *ir)
{
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    made->device = device;
    snprintf(made->name, sizeof made->name, "%s", ir->names + ir->name);
    opencl_group_size(ir, made->group);
    made->binding_count = ir->binding_count;
    made->scalar_bytes = ir->scalar_bytes;
    made->argument_bytes = opencl_argument_bytes(ir);
    made->in_buffer = made->argument_bytes > 0 &&
                      ((device->card->quirks & OPENCL_QUIRK_BUFFER_ARGUMENTS) ||
                       made->argument_bytes + 8 * ir->binding_count > device->card->max_parameters);
    pthread_mutex_lock(&device->lock);
    made->next = device->kernels;
    if (made->next != NULL) {
        made->next->previous = made;
    }
    device->kernels = made;
    pthread_mutex_unlock(&device->lock);
    return made;
}

/* A binary that the driver does not take any more is compiled anew. */
static bool load_binary(hal_plugin_kernel *made, const uint64_t key[2], const char *options)
{
    const hal_host *host = opencl_host();
    const opencl_card *card = made->device->card;
    void *data = NULL;
    uint64_t bytes = 0;
    if (host->cache_load(card->info.id, key, &data, &bytes) != HAL_OK) {
        return false;
    }
    const unsigned char *binary = data;
    const size_t length = bytes;
    cl_int error = CL_SUCCESS, taken = CL_SUCCESS;
    made->program = cl.clCreateProgramWithBinary(made->device->context, 1, &card->device, &length,
                                                 &binary, &taken, &error);
    host->release(data);
    if (made->program != NULL && error == CL_SUCCESS && taken == CL_SUCCESS &&
        cl.clBuildProgram(made->program, 1, &card->device, options, NULL, NULL) == CL_SUCCESS) {
        return true;
    }
    if (made->program != NULL) {
        cl.clReleaseProgram(made->program);
        made->program = NULL;
    }
    return false;
}

/* The end of the log says most: what stopped the compiler. */
static hal_status fail_build(const hal_plugin_kernel *made, cl_int error)
{
    enum { SHOWN = 2048 };
    const opencl_card *card = made->device->card;
    size_t bytes = 0;
    char *log = NULL;
    if (cl.clGetProgramBuildInfo(made->program, card->device, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                 &bytes) == CL_SUCCESS) {
        log = calloc(1, bytes + 1);
    }
    if (log != NULL) {
        (void)cl.clGetProgramBuildInfo(made->program, card->device, CL_PROGRAM_BUILD_LOG, bytes,
                                       log, NULL);
    }
    const char *said = log != NULL && log[0] != '\0' ? log : "it gave no reason";
    const hal_status status =
        opencl_fail(error == CL_OUT_OF_HOST_MEMORY ? HAL_ERROR_OUT_OF_MEMORY : HAL_ERROR_COMPILE,
                    "kernel %s: the compiler of %s rejected it: %s (%d): %.*s", made->name,
                    card->info.name, opencl_error_name(error), (int)error, (int)SHOWN, said);
    free(log);
    return status;
}

static hal_status compile(hal_plugin_kernel *made, const char *source, uint64_t bytes,
                          const char *options, bool own_declarations)
{
    const opencl_card *card = made->device->card;
    const size_t length = bytes;
    cl_int error = CL_SUCCESS;
    made->program =
        cl.clCreateProgramWithSource(made->device->context, 1, &source, &length, &error);
    if (made->program == NULL) {
        return opencl_fail_call(error, "kernel %s: clCreateProgramWithSource", made->name);
    }
    error = CL_BUILD_PROGRAM_FAILURE;
    if (own_declarations) {
        char without_header[160];
        snprintf(without_header, sizeof without_header, "%s " NO_HEADER, options);
        error = cl.clBuildProgram(made->program, 1, &card->device, without_header, NULL, NULL);
        if (error != CL_SUCCESS) {
            opencl_host()->log(HAL_LOG_DEBUG, "not compiled without the driver's header");
        }
    }
    if (error != CL_SUCCESS) {
        error = cl.clBuildProgram(made->program, 1, &card->device, options, NULL, NULL);
    }
    return error == CL_SUCCESS ? HAL_OK : fail_build(made, error);
}

static void forget_arguments(opencl_clone *clone)
{
    for (uint32_t i = 0; i < HAL_IR_MAX_BINDINGS; i++) {
        clone->memories[i] = UINT64_MAX;
    }
    clone->has_block = false;
}

static opencl_clone *add_clone(hal_plugin_kernel *kernel, uint64_t queue)
{
    opencl_clone *made = calloc(1, sizeof *made);
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    if (made != NULL) {
        made->kernel = cl.clCreateKernel(kernel->program, kernel->entry, &error);
    }
    if (made == NULL || made->kernel == NULL) {
        free(made);
        opencl_fail_call(error, "kernel %s: clCreateKernel of %s", kernel->name, kernel->entry);
        return NULL;
    }
    atomic_init(&made->queue, queue);
    forget_arguments(made);
    made->next = atomic_load(&kernel->clones);
    while (!atomic_compare_exchange_weak(&kernel->clones, &made->next, made)) {
    }
    return made;
}

static hal_status check_group(hal_plugin_kernel *made)
{
    const opencl_card *card = made->device->card;
    const size_t items = made->group[0] * made->group[1] * made->group[2];
    size_t most = 0;
    const cl_int error =
        cl.clGetKernelWorkGroupInfo(atomic_load(&made->clones)->kernel, card->device,
                                    CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    const bool wrong = (card->quirks & OPENCL_QUIRK_WRONG_GROUP_LIMIT) != 0;
    if (error == CL_SUCCESS && most < items && !wrong) {
        return opencl_fail(HAL_ERROR_UNSUPPORTED,
                           "kernel %s has groups of %zu work-items; %s has registers for %zu of "
                           "this kernel: make the group smaller",
                           made->name, items, card->info.name, most);
    }
    return HAL_OK;
}

static void store_binary(const hal_plugin_kernel *made, const uint64_t key[2])
{
    const opencl_card *card = made->device->card;
    size_t bytes = 0;
    if (cl.clGetProgramInfo(made->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0) {
        return;
    }
    unsigned char *binary = malloc(bytes);
    if (binary != NULL && cl.clGetProgramInfo(made->program, CL_PROGRAM_BINARIES, sizeof binary,
                                              &binary, NULL) == CL_SUCCESS) {
        (void)opencl_host()->cache_store(card->info.id, key, binary, bytes);
    }
    free(binary);
}

static hal_status make(hal_plugin_kernel *made, const char *source, uint64_t bytes,
                       bool own_declarations)
{
    const opencl_card *card = made->device->card;
    char options[128];
    snprintf(options, sizeof options, "-w -cl-std=CL1.2%s",
             card->correct_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, options, strlen(options));
    XXH3_128bits_update(&state, source, bytes);
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    const uint64_t key[2] = {hash.low64, hash.high64};
    const bool known = load_binary(made, key, options);
    hal_status status = known ? HAL_OK : compile(made, source, bytes, options, own_declarations);
    if (status == HAL_OK && add_clone(made, 0) == NULL) {
        status = HAL_ERROR_COMPILE; /* told already */
    }
    if (status == HAL_OK) {
        status = check_group(made);
    }
    if (status == HAL_OK && !known && !(card->quirks & OPENCL_QUIRK_OWN_CACHE)) {
        store_binary(made, key);
    }
    return status;
}

/* HAL_LOG=debug tells the plugin's and the driver's shares. */
static void log_times(const hal_plugin_kernel *made, const uint64_t times[3], uint64_t bytes)
{
    char line[320];
    snprintf(line, sizeof line,
             "kernel %s: %llu bytes of source written in %.3f ms, made by the driver in %.3f ms",
             made->name, (unsigned long long)bytes, (double)(times[1] - times[0]) * 1e-6,
             (double)(times[2] - times[1]) * 1e-6);
    opencl_host()->log(HAL_LOG_DEBUG, line);
}

hal_status opencl_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    kit_text source = {.host = opencl_host()};
    hal_plugin_kernel *made = NULL;
    *kernel = NULL;
    hal_status status = opencl_device_check(device);
    if (status == HAL_OK && (made = new_kernel(device, ir)) == NULL) {
        status =
            opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", ir->names + ir->name);
    }
    uint64_t times[3] = {kit_clock_ns(), 0, 0};
    if (status == HAL_OK) {
        snprintf(made->entry, sizeof made->entry, "hal_%s", made->name);
        status = opencl_lower(device->card, ir, made->in_buffer, &source);
    }
    if (status == HAL_OK) {
        times[1] = kit_clock_ns();
        if (kit_native_dump_begin(opencl_host(), made->name, device->card->info.name)) {
            kit_native_dump_text(opencl_host(), source.data);
        }
        status = make(made, source.data, source.length,
                      (device->card->quirks & OPENCL_QUIRK_OWN_DECLARATIONS) != 0);
    }
    if (status == HAL_OK) {
        times[2] = kit_clock_ns();
        log_times(made, times, source.length);
    }
    kit_text_release(&source);
    if (status != HAL_OK) {
        opencl_kernel_destroy(device, made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

hal_status opencl_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_plugin_kernel **kernel)
{
    *kernel = NULL;
    hal_status status = opencl_device_check(device);
    if (status != HAL_OK) {
        return status;
    }
    if (strcmp(format, "opencl-c") != 0) {
        return opencl_fail(HAL_ERROR_UNSUPPORTED, "opencl: the format \"%s\" is not opencl-c",
                           format);
    }
    hal_plugin_kernel *made = new_kernel(device, signature);
    if (made == NULL) {
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", entry);
    }
    if (snprintf(made->entry, sizeof made->entry, "%s", entry) >= (int)sizeof made->entry) {
        status = opencl_fail(HAL_ERROR_INVALID_ARGUMENT, "opencl: the entry's name %s is too long",
                             entry);
    } else {
        status = make(made, code, bytes, false);
    }
    if (status != HAL_OK) {
        opencl_kernel_destroy(device, made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

void opencl_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    pthread_mutex_lock(&device->lock);
    *(kernel->previous != NULL ? &kernel->previous->next : &device->kernels) = kernel->next;
    if (kernel->next != NULL) {
        kernel->next->previous = kernel->previous;
    }
    pthread_mutex_unlock(&device->lock);
    const bool alive = opencl_device_check(device) == HAL_OK;
    opencl_clone *clone = atomic_load(&kernel->clones);
    while (clone != NULL) {
        opencl_clone *next = clone->next;
        if (alive) {
            cl.clReleaseKernel(clone->kernel);
        }
        free(clone);
        clone = next;
    }
    if (alive && kernel->program != NULL) {
        cl.clReleaseProgram(kernel->program);
    }
    free(kernel);
}

opencl_clone *opencl_kernel_clone(hal_plugin_kernel *kernel, const hal_plugin_queue *queue)
{
    opencl_clone *first = atomic_load_explicit(&kernel->clones, memory_order_acquire);
    for (opencl_clone *clone = first; clone != NULL; clone = clone->next) {
        if (atomic_load_explicit(&clone->queue, memory_order_relaxed) == queue->serial) {
            return clone;
        }
    }
    for (opencl_clone *clone = first; clone != NULL; clone = clone->next) {
        uint64_t nobody = 0;
        if (atomic_compare_exchange_strong(&clone->queue, &nobody, queue->serial)) {
            forget_arguments(clone);
            return clone;
        }
    }
    return add_clone(kernel, queue->serial);
}

void opencl_kernel_leave(hal_plugin_device *device, uint64_t queue)
{
    pthread_mutex_lock(&device->lock);
    for (hal_plugin_kernel *kernel = device->kernels; kernel != NULL; kernel = kernel->next) {
        for (opencl_clone *clone = atomic_load(&kernel->clones); clone; clone = clone->next) {
            uint64_t owner = queue;
            atomic_compare_exchange_strong(&clone->queue, &owner, 0);
        }
    }
    pthread_mutex_unlock(&device->lock);
}
