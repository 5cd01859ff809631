/* A copy of a kernel's IR: the argument of kernel_create is valid during the call only. */
#ifndef PLUGINS_KIT_KERNEL_COPY_H
#define PLUGINS_KIT_KERNEL_COPY_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A copy in one piece of memory; null: none.
 * Ownership: the caller's; host->release frees it. Threads: any. */
hal_ir_kernel *kit_kernel_copy(const hal_host *host, const hal_ir_kernel *kernel);

#ifdef __cplusplus
}
#endif

#endif
