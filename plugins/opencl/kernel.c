/* Kernels: IR is lowered to source, the driver compiles it, and hal's cache keeps the binaries; and
 * the kernel objects of each queue. Entries of the plugin's table. */
#include "kernel.h"

#include "lower/lower.h"
#include "quirks.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <kit/clock.h>
#include <kit/native_dump.h>
#include <kit/process_state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defines the include guard of clang's header of OpenCL functions; types and constants have another
 * one. A kernel that does not compile with it is compiled without it. */
#define NO_HEADER "-D_OPENCL_H_"

/* A kernel in the list of the device, without a program. */
static hal_plugin_kernel *kernel_allocate(hal_plugin_device *device, const hal_ir_kernel *ir)
{
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (!made) {
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
    if (made->next) {
        made->next->previous = made;
    }
    device->kernels = made;
    pthread_mutex_unlock(&device->lock);
    return made;
}

/* False where there is no binary, or the driver rejects it. */
static bool program_load(hal_plugin_kernel *made, const uint64_t key[2], const char *options)
{
    const hal_host *host = kit_host();
    const opencl_card *card = made->device->card;
    void *data = NULL;
    uint64_t bytes = 0;
    if (host->cache_load(host, card->info.id, key, &data, &bytes) != HAL_OK) {
        return false;
    }
    const unsigned char *binary = data;
    const size_t length = bytes;
    cl_int error = CL_SUCCESS, taken = CL_SUCCESS;
    made->program = cl.clCreateProgramWithBinary(made->device->context, 1, &card->device, &length,
                                                 &binary, &taken, &error);
    host->release(host, data);
    if (made->program && error == CL_SUCCESS && taken == CL_SUCCESS &&
        cl.clBuildProgram(made->program, 1, &card->device, options, NULL, NULL) == CL_SUCCESS) {
        return true;
    }
    if (made->program) {
        cl.clReleaseProgram(made->program);
        made->program = NULL;
    }
    return false;
}

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
    if (log) {
        (void)cl.clGetProgramBuildInfo(made->program, card->device, CL_PROGRAM_BUILD_LOG, bytes,
                                       log, NULL);
    }
    const char *said = log && log[0] != '\0' ? log : "it gave no reason";
    const hal_status status =
        kit_fail(error == CL_OUT_OF_HOST_MEMORY ? HAL_ERROR_OUT_OF_MEMORY : HAL_ERROR_COMPILE,
                 "kernel %s: the compiler of %s rejected it: %s (%d): %.*s", made->name,
                 card->info.name, opencl_error_name(error), (int)error, (int)SHOWN, said);
    free(log);
    return status;
}

static hal_status program_compile(hal_plugin_kernel *made, const char *source, uint64_t bytes,
                                  const char *options, bool own_declarations)
{
    const opencl_card *card = made->device->card;
    const size_t length = bytes;
    cl_int error = CL_SUCCESS;
    made->program =
        cl.clCreateProgramWithSource(made->device->context, 1, &source, &length, &error);
    if (!made->program) {
        return opencl_fail_result(error, "kernel %s: clCreateProgramWithSource", made->name);
    }
    error = CL_BUILD_PROGRAM_FAILURE;
    if (own_declarations) {
        char without_header[160];
        snprintf(without_header, sizeof without_header, "%s " NO_HEADER, options);
        error = cl.clBuildProgram(made->program, 1, &card->device, without_header, NULL, NULL);
        if (error != CL_SUCCESS) {
            kit_log(HAL_LOG_DEBUG, "a kernel did not compile without the driver's header");
        }
    }
    if (error != CL_SUCCESS) {
        error = cl.clBuildProgram(made->program, 1, &card->device, options, NULL, NULL);
    }
    return error == CL_SUCCESS ? HAL_OK : fail_build(made, error);
}

static void clone_forget_arguments(opencl_clone *clone)
{
    for (uint32_t i = 0; i < HAL_IR_MAX_BINDINGS; i++) {
        clone->memories[i] = UINT64_MAX;
    }
    clone->has_block = false;
}

static opencl_clone *clone_add(hal_plugin_kernel *kernel, uint64_t queue)
{
    opencl_clone *made = calloc(1, sizeof *made);
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    if (made) {
        made->kernel = cl.clCreateKernel(kernel->program, kernel->entry, &error);
    }
    if (!made || !made->kernel) {
        free(made);
        opencl_fail_result(error, "kernel %s: clCreateKernel of %s", kernel->name, kernel->entry);
        return NULL;
    }
    atomic_init(&made->queue, queue);
    clone_forget_arguments(made);
    made->next = atomic_load(&kernel->clones);
    while (!atomic_compare_exchange_weak(&kernel->clones, &made->next, made)) {
    }
    return made;
}

static hal_status kernel_check_group(hal_plugin_kernel *made)
{
    const opencl_card *card = made->device->card;
    const size_t items = made->group[0] * made->group[1] * made->group[2];
    size_t most = 0;
    const cl_int error =
        cl.clGetKernelWorkGroupInfo(atomic_load(&made->clones)->kernel, card->device,
                                    CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    const bool wrong = (card->quirks & OPENCL_QUIRK_WRONG_GROUP_LIMIT) != 0;
    if (error == CL_SUCCESS && most < items && !wrong) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: group: expected at most %zu work-items, for which %s has "
                        "registers, got %zu",
                        made->name, most, card->info.name, items);
    }
    return HAL_OK;
}

static void program_store(const hal_plugin_kernel *made, const uint64_t key[2])
{
    const opencl_card *card = made->device->card;
    size_t bytes = 0;
    if (cl.clGetProgramInfo(made->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0) {
        return;
    }
    unsigned char *binary = malloc(bytes);
    if (binary && cl.clGetProgramInfo(made->program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                                      NULL) == CL_SUCCESS) {
        (void)kit_host()->cache_store(kit_host(), card->info.id, key, binary, bytes);
    }
    free(binary);
}

static hal_status kernel_build(hal_plugin_kernel *made, const char *source, uint64_t bytes,
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
    kit_numbers_keep(); /* NVIDIA's compiler draws some */
    const bool known = program_load(made, key, options);
    hal_status status =
        known ? HAL_OK : program_compile(made, source, bytes, options, own_declarations);
    if (status == HAL_OK && !clone_add(made, 0)) {
        status = HAL_ERROR_COMPILE; /* the host has the message */
    }
    if (status == HAL_OK) {
        status = kernel_check_group(made);
    }
    if (status == HAL_OK && !known && !(card->quirks & OPENCL_QUIRK_OWN_CACHE)) {
        program_store(made, key);
    }
    kit_numbers_restore();
    return status;
}

static void log_times(const hal_plugin_kernel *made, const uint64_t times[3], uint64_t bytes)
{
    char line[320];
    snprintf(
        line, sizeof line,
        "kernel %s: %llu bytes of source lowered in %llu us, compiled by the driver in %llu us",
        made->name, (unsigned long long)bytes, (unsigned long long)(times[1] - times[0]) / 1000,
        (unsigned long long)(times[2] - times[1]) / 1000);
    kit_log(HAL_LOG_DEBUG, line);
}

hal_status opencl_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    kit_text source = {.host = kit_host()};
    hal_plugin_kernel *made = NULL;
    *kernel = NULL;
    hal_status status = opencl_device_check(device);
    if (status == HAL_OK && !(made = kernel_allocate(device, ir))) {
        status =
            kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", ir->names + ir->name);
    }
    uint64_t times[3] = {kit_clock_ns(), 0, 0};
    if (status == HAL_OK) {
        snprintf(made->entry, sizeof made->entry, "hal_%s", made->name);
        status = opencl_lower(device->card, ir, made->in_buffer, &source);
    }
    if (status == HAL_OK) {
        times[1] = kit_clock_ns();
        if (kit_native_dump_begin(kit_host(), made->name, device->card->info.name)) {
            kit_native_dump_text(kit_host(), source.data);
        }
        status = kernel_build(made, source.data, source.length,
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
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel)
{
    *kernel = NULL;
    HAL_TRY(opencl_device_check(device));
    hal_status status = HAL_OK;
    if (strcmp(format, "opencl-c") != 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "opencl: kernel_create_native: format: expected opencl-c, got %s", format);
    }
    hal_plugin_kernel *made = kernel_allocate(device, interface);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", entry);
    }
    if (snprintf(made->entry, sizeof made->entry, "%s", entry) >= (int)sizeof made->entry) {
        status =
            kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                     "opencl: kernel_create_native: entry: expected at most %zu characters, got %s",
                     sizeof made->entry - 1, entry);
    } else {
        status = kernel_build(made, code, bytes, false);
    }
    if (status != HAL_OK) {
        opencl_kernel_destroy(device, made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

/* The program's binary may be text of the driver's own. */
hal_status opencl_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report)
{
    cl_kernel of = atomic_load(&kernel->clones)->kernel;
    size_t code = 0;
    cl_ulong shared = 0, spilled = 0;
    cl_device_id card = device->card->device;
    if (cl.clGetProgramInfo(kernel->program, CL_PROGRAM_BINARY_SIZES, sizeof code, &code, NULL) ==
            CL_SUCCESS &&
        code > 0) {
        report->known |= HAL_REPORT_CODE;
        report->code_bytes = code;
    }
    if (cl.clGetKernelWorkGroupInfo(of, card, CL_KERNEL_LOCAL_MEM_SIZE, sizeof shared, &shared,
                                    NULL) == CL_SUCCESS) {
        report->known |= HAL_REPORT_SHARED;
        report->shared_bytes = shared;
    }
    if (cl.clGetKernelWorkGroupInfo(of, card, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof spilled, &spilled,
                                    NULL) == CL_SUCCESS) {
        report->known |= HAL_REPORT_SPILLS;
        report->spilled_bytes = spilled;
    }
    return HAL_OK;
}

void opencl_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (!kernel) {
        return;
    }
    pthread_mutex_lock(&device->lock);
    *(kernel->previous ? &kernel->previous->next : &device->kernels) = kernel->next;
    if (kernel->next) {
        kernel->next->previous = kernel->previous;
    }
    pthread_mutex_unlock(&device->lock);
    const bool alive = opencl_device_check(device) == HAL_OK;
    opencl_clone *clone = atomic_load(&kernel->clones);
    while (clone) {
        opencl_clone *next = clone->next;
        if (alive) {
            cl.clReleaseKernel(clone->kernel);
        }
        free(clone);
        clone = next;
    }
    if (alive && kernel->program) {
        cl.clReleaseProgram(kernel->program);
    }
    free(kernel);
}

opencl_clone *opencl_kernel_clone(hal_plugin_kernel *kernel, uint64_t queue)
{
    opencl_clone *first = atomic_load_explicit(&kernel->clones, memory_order_acquire);
    for (opencl_clone *clone = first; clone != NULL; clone = clone->next) {
        if (atomic_load_explicit(&clone->queue, memory_order_relaxed) == queue) {
            return clone;
        }
    }
    for (opencl_clone *clone = first; clone != NULL; clone = clone->next) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&clone->queue, &none, queue)) {
            clone_forget_arguments(clone);
            return clone;
        }
    }
    return clone_add(kernel, queue);
}

void opencl_kernel_release_clones(hal_plugin_device *device, uint64_t queue)
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

uint32_t opencl_kernel_arguments(const hal_batch *batch, const hal_command *command,
                                 uint8_t block[OPENCL_ARGUMENT_BYTES])
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    const hal_plugin_kernel *kernel = command->kernel;
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        memcpy(block + 8 * i, &bindings[i].offset, 8);
    }
    const uint32_t filled = 8 * kernel->binding_count + kernel->scalar_bytes;
    memcpy(block + 8 * kernel->binding_count, batch->scalars + command->scalar_first,
           kernel->scalar_bytes);
    if (filled < kernel->argument_bytes) {
        memset(block + filled, 0, kernel->argument_bytes - filled);
    }
    return kernel->argument_bytes;
}
