/* A kernel's IR for as long as it is wanted: what hal hands to kernel_create is gone when that
 * returns. */
#ifndef KIT_KERNEL_COPY_H
#define KIT_KERNEL_COPY_H

#include <hal/plugin.h>

/* A copy in one piece of memory; null: none.
 * Ownership: the caller's; host->release frees it. Threads: any. */
hal_ir_kernel *kit_kernel_copy(const hal_host *host, const hal_ir_kernel *kernel);

#endif
