/* Kernels: IR is lowered to PTX, the driver's assembler makes machine code of it, and the compile
 * cache keeps the machine code; and kernels from native code. Entries of the plugin's table. */
#include "kernel.h"

#include "lower/lower.h"
#include "memory.h"
#include "capability.h"

#include <kit/hash.h>
#include <kit/native_dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 1024, MAX_LOGGED = 300 };
enum { SIMPLE_LEVEL = 2 }; /* of the assembler, below its default */

/* Sets what a launch needs. The parameter block ends with the last scalar, as C's would. */
static void kernel_set_layout(hal_plugin_device *device, hal_plugin_kernel *kernel,
                              const hal_ir_kernel *ir)
{
    cuda_layout layout;
    cuda_layout_of(ir, &layout);
    kernel->serial = atomic_fetch_add(&device->kernels, 1) + 1;
    memcpy(kernel->group, ir->group_size, sizeof kernel->group);
    kernel->binding_count = ir->binding_count;
    kernel->parameter_bytes = layout.parameter_bytes;
    kernel->scalar_bytes = layout.parameter_bytes - layout.scalars;
    kernel->dynamic_shared = layout.dynamic_shared;
}

void cuda_kernel_hash(const hal_ir_kernel *ir, uint64_t key[2])
{
    key[0] = 0x243f6a8885a308d3;
    key[1] = 0x13198a2e03707344;
    kit_hash_add(key, ir->group_size, sizeof ir->group_size);
    const uint32_t counts[6] = {ir->record_count, ir->memory_count,    ir->binding_count,
                                ir->scalar_bytes, ir->groups_per_unit, ir->constant_count};
    kit_hash_add(key, counts, sizeof counts);
    kit_hash_add(key, ir->records, ir->record_count * sizeof *ir->records);
    kit_hash_add(key, ir->constants, ir->constant_count * sizeof *ir->constants);
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        const uint32_t words[3] = {ir->memories[i].count, ir->memories[i].type,
                                   ir->memories[i].access};
        kit_hash_add(key, words, sizeof words);
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const uint32_t words[2] = {ir->scalars[i].offset, ir->scalars[i].type};
        kit_hash_add(key, words, sizeof words);
    }
}

/* Fails with the assembler's log, where it has one, as its result alone does not say why. */
static hal_status compile_fail(cuda_result result, const char *attempt, const char *log)
{
    const hal_status status = cuda_check(result, "%s", attempt);
    if (status == HAL_ERROR_OUT_OF_MEMORY || status == HAL_ERROR_DEVICE_LOST || log[0] == 0) {
        return status;
    }
    return kit_fail(HAL_ERROR_COMPILE, "cuda: %s: %.*s", attempt, (int)MAX_LOGGED, log);
}

static bool function_has_clusters(cuda_function function)
{
    bool found = false;
    for (int i = CUDA_FUNCTION_CLUSTER_WIDTH; i <= CUDA_FUNCTION_CLUSTER_DEPTH && !found; i++) {
        int groups = 0; /* drivers that do not know clusters do not know the attribute */
        found = cuda_functions()->cuFuncGetAttribute(&groups, i, function) == 0 && groups > 1;
    }
    return found;
}

static hal_status kernel_find_entry(hal_plugin_kernel *kernel, const char *entry)
{
    const cuda_driver *cu = cuda_functions();
    hal_status status =
        cuda_check(cu->cuModuleGetFunction(&kernel->function, kernel->module, entry),
                   "finding the entry %.100s", entry);
    if (status == HAL_OK && kernel->dynamic_shared > 0) {
        status =
            cuda_check(cu->cuFuncSetAttribute(kernel->function, CUDA_FUNCTION_MAX_DYNAMIC_SHARED,
                                              (int)kernel->dynamic_shared),
                       "asking for %u bytes of shared memory", kernel->dynamic_shared);
    }
    kernel->in_clusters = status == HAL_OK && function_has_clusters(kernel->function);
    return status;
}

static hal_status kernel_load_module(hal_plugin_kernel *kernel, const void *image,
                                     const char *entry)
{
    char log[LOG_BYTES] = "";
    const int options[2] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)sizeof log};
    const cuda_result result =
        cuda_functions()->cuModuleLoadDataEx(&kernel->module, image, 2, options, values);
    if (result != 0) {
        return compile_fail(result, "loading machine code", log);
    }
    const hal_status status = kernel_find_entry(kernel, entry);
    if (status != HAL_OK) {
        cuda_functions()->cuModuleUnload(kernel->module);
        kernel->module = NULL;
    }
    return status;
}

static hal_status kernel_assemble(const kit_text *text, const hal_plugin_device *device,
                                  const cuda_kernel_source *source, hal_plugin_kernel *kernel)
{
    const cuda_driver *cu = cuda_functions();
    char log[LOG_BYTES] = "";
    const int options[3] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES,
                            CUDA_JIT_OPTIMIZATION_LEVEL};
    void *values[3] = {log, (void *)(uintptr_t)sizeof log, (void *)(uintptr_t)SIMPLE_LEVEL};
    cuda_linker linker = NULL;
    void *cubin = NULL;
    size_t bytes = 0;
    cuda_result result =
        cu->cuLinkCreate_v2(source->assembles_simply ? 3 : 2, options, values, &linker);
    if (result == 0) {
        result = cu->cuLinkAddData_v2(linker, CUDA_INPUT_PTX, text->data, text->length + 1,
                                      CUDA_ENTRY, 0, NULL, NULL);
    }
    if (result == 0) {
        result = cu->cuLinkComplete(linker, &cubin, &bytes);
    }
    hal_status status = HAL_OK;
    if (result != 0) {
        status = compile_fail(result, "assembling a kernel", log);
    } else {
        status = kernel_load_module(kernel, cubin, CUDA_ENTRY);
    }
    if (status == HAL_OK) {
        kit_host()->cache_store(kit_host(), device->id, source->key, cubin, bytes);
    }
    if (linker) {
        cu->cuLinkDestroy(linker);
    }
    return status;
}

hal_status cuda_kernel_compile(hal_plugin_device *device, const cuda_kernel_source *source,
                               hal_plugin_kernel *kernel)
{
    const hal_host *host = kit_host();
    uint64_t bytes = 0;
    void *cubin = NULL;
    if (!source->loads_text &&
        host->cache_load(host, device->id, source->key, &cubin, &bytes) == HAL_OK) {
        /* Code that the driver rejects is made again. */
        const hal_status status = kernel_load_module(kernel, cubin, CUDA_ENTRY);
        host->release(host, cubin);
        if (status == HAL_OK) {
            return status;
        }
    }
    kit_text text = {.host = host};
    hal_status status = source->write(source->what, device, &text);
    if (status == HAL_OK) {
        if (kit_native_dump_begin(host, source->name, device->id)) {
            kit_native_dump_text(host, text.data);
        }
        status = source->loads_text ? kernel_load_module(kernel, text.data, CUDA_ENTRY)
                                    : kernel_assemble(&text, device, source, kernel);
    }
    kit_text_release(&text);
    return status;
}

static hal_status ir_write(const void *what, const hal_plugin_device *device, kit_text *text)
{
    return cuda_lower(what, device->capability, text);
}

/* At its default level the driver's assembler (CUDA 13.0, sm_90) moves an mma of F64 from the end
 * of a loop to its beginning without waiting for the sum that the one before it writes there: one
 * of 8 columns of a product was wrong. The levels below it wait. */
static bool has_f64_matrices(const hal_ir_kernel *ir)
{
    bool found = false;
    for (uint32_t i = 0; i < ir->record_count && !found; i++) {
        const hal_ir_record *r = &ir->records[i];
        found = r->opcode == HAL_IR_MATRIX_MULTIPLY && r->aux == HAL_TYPE_F64;
    }
    return found;
}

hal_status cuda_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel)
{
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    *kernel = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a kernel");
    }
    kernel_set_layout(device, made, ir);
    made->waits_itself = (device->features & CUDA_FEATURE_EARLY_START) != 0;
    hal_status status = cuda_context_push(device);
    if (status == HAL_OK) {
        cuda_kernel_source source = {.name = ir->names + ir->name,
                                     .write = ir_write,
                                     .what = ir,
                                     .assembles_simply = has_f64_matrices(ir)};
        cuda_kernel_hash(ir, source.key);
        status = cuda_kernel_compile(device, &source, made);
        cuda_context_pop();
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

/* The entry's parameters are the addresses of the bindings, then the scalars. */
hal_status cuda_kernel_create_native(hal_plugin_device *device, const char *format,
                                     const void *code, uint64_t bytes, const char *entry,
                                     const hal_ir_kernel *interface, hal_plugin_kernel **kernel)
{
    *kernel = NULL;
    if (strcmp(format, "ptx") != 0 && strcmp(format, "cubin") != 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "cuda: kernel_create_native: format: expected ptx or cubin, got %.40s",
                        format);
    }
    if (!entry || entry[0] == 0) {
        return kit_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "cuda: kernel_create_native: entry: expected the name of a function, got none");
    }
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    char *image = malloc(bytes + 1); /* PTX ends with a null byte */
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (!made || !image) {
        status = kit_fail(status, "cuda: no host memory for a kernel");
    } else {
        memcpy(image, code, bytes);
        image[bytes] = 0;
        kernel_set_layout(device, made, interface);
        status = cuda_context_push(device);
        if (status == HAL_OK) {
            status = kernel_load_module(made, image, entry);
            cuda_context_pop();
        }
    }
    free(image);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

/* The driver's local memory of a thread has what does not fit into registers, and arrays of the
 * kernel. */
hal_status cuda_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                              hal_kernel_report *report)
{
    const cuda_driver *cu = cuda_functions();
    int registers = 0, local = 0, shared = 0;
    HAL_TRY(cuda_context_push(device));
    cuda_result result =
        cu->cuFuncGetAttribute(&registers, CUDA_FUNCTION_REGISTERS, kernel->function);
    if (result == 0) {
        result = cu->cuFuncGetAttribute(&local, CUDA_FUNCTION_LOCAL_BYTES, kernel->function);
    }
    if (result == 0) {
        result = cu->cuFuncGetAttribute(&shared, CUDA_FUNCTION_SHARED_BYTES, kernel->function);
    }
    cuda_context_pop();
    HAL_TRY(cuda_check(result, "reading the attributes of a kernel"));
    report->known = HAL_REPORT_REGISTERS | HAL_REPORT_SPILLS | HAL_REPORT_SHARED;
    report->registers = (uint32_t)registers;
    report->spilled_bytes = (uint64_t)local;
    report->shared_bytes = (uint64_t)shared + kernel->dynamic_shared;
    return HAL_OK;
}

void cuda_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (!kernel) {
        return;
    }
    pthread_rwlock_wrlock(&device->unloading);
    device->destroyed++;
    if (!kernel->gemm && !kernel->attention && cuda_context_push(device) == HAL_OK) {
        device->unloads++;
        cuda_functions()->cuModuleUnload(kernel->module);
        cuda_context_pop();
    }
    pthread_rwlock_unlock(&device->unloading);
    free(kernel->gemm);
    free(kernel->attention);
    free(kernel);
}

void cuda_kernel_arguments(const hal_plugin_queue *queue, const hal_batch *batch,
                           const hal_command *command, cuda_arguments *arguments)
{
    const hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = batch->bindings + command->binding_first;
    uint8_t *block = arguments->block;
    arguments->parameters = arguments->extra = NULL;
    if (kernel->write) {
        /* The driver places a block that is aligned to 64 bytes by itself; a launch buffer would
         * have to begin with the padding. */
        arguments->bytes = kernel->write(kernel, queue, batch, command, block);
        arguments->list[0] = block;
        arguments->parameters = arguments->list;
        return;
    }
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        const cuda_address address =
            bindings[i].memory != NULL ? bindings[i].memory->address + bindings[i].offset : 0;
        memcpy(block + 8 * i, &address, 8);
    }
    memcpy(block + 8 * kernel->binding_count, batch->scalars + command->scalar_first,
           kernel->scalar_bytes);
    arguments->bytes = kernel->parameter_bytes;
    void *list[5] = {CUDA_LAUNCH_BUFFER, block, CUDA_LAUNCH_SIZE, &arguments->bytes,
                     CUDA_LAUNCH_END};
    memcpy(arguments->list, list, sizeof list);
    arguments->extra = arguments->list;
}

void cuda_kernel_grid(const hal_command *command, uint32_t grid[3])
{
    const hal_plugin_kernel *kernel = command->kernel;
    memcpy(grid, command->grid, 3 * sizeof grid[0]);
    if (kernel->groups > 0) {
        grid[0] = kernel->groups;
    }
}
