/* Kernels: IR compiled for a device.
 *
 * hal verifies the IR, legalises operations that the device lacks, and lets the plugin compile it.
 * Equal IR on one device is compiled once: the second call returns the same object. */
#ifndef HAL_KERNEL_H
#define HAL_KERNEL_H

#include <hal/device.h>
#include <hal/ir.h>
#include <hal/ir_build.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_kernel hal_kernel;

/* Identifies a kernel by what it is built from, without its IR. */
typedef struct hal_kernel_fingerprint {
    uint64_t hash[2]; /* of all that decides the IR but the device and the code that builds it */
    const void *code; /* an address in the library or program that builds it */
} hal_kernel_fingerprint;

/* Creates a kernel, or returns a new reference to the existing one. Compilation is complete when it
 * returns, so a program may prepare its kernels ahead of time.
 * Ownership: the caller's reference; `ir` may be destroyed after the call. Threads: any.
 * Errors: INVALID_ARGUMENT for null, INVALID_IR, UNSUPPORTED with the limit or feature that
 * the device lacks, COMPILE with the driver's log, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create(hal_device *device, const hal_ir_kernel *ir,
                                     HAL_OUT hal_kernel **kernel);

/* hal_ir_builder_finish and hal_kernel_create in one: what was built is checked once and not
 * copied. The builder is then only to be destroyed. `fingerprint`: null, or the one by which
 * hal_kernel_recall finds the kernel.
 * Ownership: the caller's reference. Threads: the builder's. Errors: those of both. */
HAL_API hal_status hal_kernel_create_built(hal_device *device, hal_ir_builder *builder,
                                           const hal_kernel_fingerprint *fingerprint,
                                           HAL_OUT hal_kernel **kernel);

/* hal_kernel_create_built without a wait for the compiler: the kernel is checked and legalised in
 * the call, and compiled by a thread in the background, while the program records.
 * hal_device_get_compilers threads compile for a device; they end when there is nothing left to
 * compile. What needs the kernel waits for it: hal_kernel_wait,
 * hal_kernel_get_native, hal_kernel_create of an equal one, and the flush or wait of a queue that
 * submits a batch with it. A batch is not submitted for its length while it has such kernels.
 *
 * An error of the compiler comes from that call, with the status and message of
 * hal_kernel_create_built. A batch with such a kernel is dropped, as one that a plugin has
 * rejected. A later dispatch of the kernel compiles it once more and returns its error.
 *
 * With layers, and on one processor, the kernel is compiled within the call.
 * Ownership: the caller's reference. It may be released at any time: a kernel that no recorded work
 * uses is not compiled any more, or destroyed when it is.
 * Threads: the builder's. Errors: those of hal_kernel_create_built, except as told. */
HAL_API hal_status hal_kernel_create_ahead(hal_device *device, hal_ir_builder *builder,
                                           const hal_kernel_fingerprint *fingerprint,
                                           HAL_OUT hal_kernel **kernel);

/* Returns how many threads compile kernels in the background at most: one less than the process
 * has processors, up to 15. With layers they have nothing to do.
 * Threads: any. Errors: none; null returns 0. */
HAL_API uint32_t hal_device_get_compilers(hal_device *device);

/* Returns when the kernel is compiled.
 * Threads: any. Errors: INVALID_ARGUMENT for null, those of the compilation. */
HAL_API hal_status hal_kernel_wait(hal_kernel *kernel);

/* Returns how many nanoseconds the compilation of a kernel took, or to load it from the compile
 * cache: at least 1. 0 while it has not ended, well or not. Does not wait.
 * Threads: any. Errors: none; null returns 0. */
HAL_API uint64_t hal_kernel_get_compile_ns(const hal_kernel *kernel);

/* Writes what hal and the driver know of a kernel to `report`, after a wait for its compilation.
 * Ownership: the report is the caller's. Threads: any.
 * Errors: INVALID_ARGUMENT for null, those of the compilation, DEVICE_LOST. Where the plugin tells
 * nothing, `known` is 0. */
HAL_API hal_status hal_kernel_get_report(hal_kernel *kernel, HAL_OUT hal_kernel_report *report);

/* Creates the kernel of a fingerprint that hal_kernel_create_built had before, here or in another
 * process, from the compile cache: nothing is built. `*kernel` is null, and the status OK, where it
 * is not known: without a compile cache, while a layer listens or HAL_DUMP is set, on processors,
 * where the device or the code of hal or of the builder has changed, and where the linker gave
 * them no build id (-Wl,--build-id).
 * Ownership: the caller's reference. Threads: any.
 * Errors: INVALID_ARGUMENT for null, those of hal_kernel_create. */
HAL_API hal_status hal_kernel_recall(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                                     HAL_OUT hal_kernel **kernel);

/* Creates `count` kernels as hal_kernel_create does, several at a time: the threads of
 * hal_kernel_create_ahead share the work. kernels[i] is null where one cannot be created; the
 * others are created. The status is that of the first that cannot. `fingerprints`: null, or
 * `count` by which hal_kernel_recall finds the kernels.
 * Ownership: the caller's reference for each; `irs` may be destroyed after the call. Threads: any.
 * Errors: INVALID_ARGUMENT for null, those of hal_kernel_create. */
HAL_API hal_status hal_kernel_create_all(hal_device *device, const hal_ir_kernel *const *irs,
                                         const hal_kernel_fingerprint *fingerprints, uint32_t count,
                                         HAL_OUT hal_kernel **kernels);

/* Creates a kernel from native code in a format that the device's plugin declares. `signature` has
 * the bindings, scalars and group size of the code, and no records.
 * Ownership: the caller's reference; code and signature may be freed. Threads: any.
 * Errors: UNSUPPORTED for a format that the plugin does not accept (the message lists those it
 * accepts), INVALID_ARGUMENT, INVALID_IR for the signature, COMPILE, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create_native(hal_device *device, const char *format,
                                            const void *code, uint64_t bytes, const char *entry,
                                            const hal_ir_kernel *signature,
                                            HAL_OUT hal_kernel **kernel);

/* Creates the plugin's native matrix product for a description; types.h describes its bindings and
 * scalars. `workspace_bytes` receives the size of binding 3, 0 if it is not needed.
 * Ownership: the caller's reference; description and epilogue may be freed. Threads: any.
 * Errors: UNSUPPORTED if the plugin has no matrix product or declines the description,
 * INVALID_ARGUMENT, INVALID_IR for the epilogue, COMPILE, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create_gemm(hal_device *device,
                                          const hal_gemm_description *description,
                                          HAL_OUT hal_kernel **kernel,
                                          HAL_OUT uint64_t *workspace_bytes);

/* hal_kernel_create_gemm without a wait for the compiler, as hal_kernel_create_ahead; where the
 * plugin cannot tell the workspace before, the kernel is compiled within the call.
 * Ownership: the caller's reference; description and epilogue may be freed. Threads: any.
 * Errors: those of hal_kernel_create_gemm, except as told. */
HAL_API hal_status hal_kernel_create_gemm_ahead(hal_device *device,
                                                const hal_gemm_description *description,
                                                HAL_OUT hal_kernel **kernel,
                                                HAL_OUT uint64_t *workspace_bytes);

/* Estimates the time of the kernel that hal_kernel_create_gemm creates for a description without an
 * epilogue. `nanoseconds` receives 0 where the plugin has the kernel and no estimate.
 * Threads: any.
 * Errors: UNSUPPORTED as hal_kernel_create_gemm, and perhaps where the kernel takes longer than
 * `most_ns`, above 0; INVALID_ARGUMENT. */
HAL_API hal_status hal_gemm_estimate(hal_device *device, const hal_gemm_description *description,
                                     double most_ns, HAL_OUT double *nanoseconds);

/* Creates the plugin's attention for a description; types.h describes its bindings and scalars.
 * Ownership: the caller's reference; the description may be freed. Threads: any.
 * Errors: UNSUPPORTED if the plugin has no attention or declines the description,
 * INVALID_ARGUMENT, COMPILE, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create_attention(hal_device *device,
                                               const hal_attention_description *description,
                                               HAL_OUT hal_kernel **kernel);

/* Adds a reference. Returns `kernel`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null returns null. */
HAL_API hal_kernel *hal_kernel_retain(hal_kernel *kernel);

/* Releases a reference. Null is allowed. Recorded work keeps kernels alive.
 * Threads: any. Errors: none. */
HAL_API void hal_kernel_release(hal_kernel *kernel);

/* Returns the name that the kernel was built with.
 * Ownership: the kernel's. Threads: any. Errors: none; null returns "". */
HAL_API const char *hal_kernel_get_name(const hal_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
