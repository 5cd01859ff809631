/* Kernels: the object, its entries, and the arguments of its dispatches. */
#ifndef PLUGINS_OPENCL_KERNEL_H
#define PLUGINS_OPENCL_KERNEL_H

#include "device.h"

/* Offsets of the bindings, 8 bytes each, then the scalars. */
enum { OPENCL_ARGUMENT_BYTES = HAL_IR_MAX_BINDINGS * 8 + HAL_IR_MAX_SCALAR_BYTES };

/* A kernel object of one queue, since setting arguments is not thread-safe, with its arguments. */
typedef struct opencl_clone {
    struct opencl_clone *next;
    cl_kernel kernel;
    _Atomic uint64_t queue;                 /* serial; 0: free for another queue */
    uint64_t memories[HAL_IR_MAX_BINDINGS]; /* serials; UINT64_MAX: not set */
    bool has_block;
    uint8_t block[OPENCL_ARGUMENT_BYTES];
} opencl_clone;

struct hal_plugin_kernel {
    hal_plugin_device *device;
    hal_plugin_kernel *previous, *next; /* of the device */
    cl_program program;
    char entry[HAL_IR_MAX_NAME + 8];
    char name[HAL_IR_MAX_NAME + 1];
    size_t group[3];
    uint32_t binding_count, scalar_bytes;
    uint32_t argument_bytes; /* of the block, in the layout of the device's compiler; 0: none */
    bool in_buffer;          /* the block is in a buffer */
    _Atomic(opencl_clone *) clones;
};

hal_status opencl_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
hal_status opencl_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
hal_status opencl_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report);
void opencl_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
/* The kernel object of the queue with a serial number; null after a failure, whose message the host
 * has. */
opencl_clone *opencl_kernel_clone(hal_plugin_kernel *kernel, uint64_t queue);
/* Writes the block of offsets and scalars of a dispatch. Returns its bytes. */
uint32_t opencl_kernel_arguments(const hal_batch *batch, const hal_command *command,
                                 uint8_t block[OPENCL_ARGUMENT_BYTES]);
/* Frees the clones of a queue for other queues. */
void opencl_kernel_release_clones(hal_plugin_device *device, uint64_t queue);

#endif
