/* Kernels: IR made runnable on a device.
 *
 * hal verifies the IR, rewrites what the device lacks, and lets the plugin make a kernel of it:
 * once for each device and hash; the same kernel asked for again is the same object. */
#ifndef HAL_KERNEL_H
#define HAL_KERNEL_H

#include <hal/device.h>
#include <hal/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_kernel hal_kernel;

/* Makes a kernel, or gives one more reference to the one there is. All compiling is done when it
 * returns: call it ahead of time to prepare a program's kernels.
 * Ownership: the caller's reference; `ir` may be destroyed after the call. Threads: any.
 * Errors: INVALID_ARGUMENT for null, INVALID_IR, UNSUPPORTED with what the kernel needs and the
 * device lacks, COMPILE with the driver's log, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create(hal_device *device, const hal_ir_kernel *ir,
                                     HAL_OUT hal_kernel **kernel);

/* Makes a kernel of native code of a format that the device's plugin declares. `signature` has the
 * bindings, scalars and group size of the code, and no records.
 * Ownership: the caller's reference; code and signature may be freed. Threads: any.
 * Errors: UNSUPPORTED for a format that the plugin does not take (the message lists those it
 * takes), INVALID_ARGUMENT, INVALID_IR for the signature, COMPILE, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create_native(hal_device *device, const char *format,
                                            const void *code, uint64_t bytes, const char *entry,
                                            const hal_ir_kernel *signature,
                                            HAL_OUT hal_kernel **kernel);

/* The plugin's own matrix product, where it has one for this description; see types.h for its
 * bindings and scalars. *workspace_bytes is the size of binding 3, 0 when it needs none.
 * Ownership: the caller's reference; description and epilogue may go after the call. Threads: any.
 * Errors: UNSUPPORTED when the plugin has none or declines, INVALID_ARGUMENT, INVALID_IR for the
 * epilogue, COMPILE, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_kernel_create_gemm(hal_device *device,
                                          const hal_gemm_description *description,
                                          HAL_OUT hal_kernel **kernel,
                                          HAL_OUT uint64_t *workspace_bytes);

/* One more reference. Returns `kernel`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null gives null. */
HAL_API hal_kernel *hal_kernel_retain(hal_kernel *kernel);

/* Gives a reference back. Null is allowed. Work that is recorded keeps kernels alive.
 * Threads: any. Errors: none. */
HAL_API void hal_kernel_release(hal_kernel *kernel);

/* The name that the kernel was built with.
 * Ownership: the kernel's. Threads: any. Errors: none; null gives "". */
HAL_API const char *hal_kernel_get_name(const hal_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
