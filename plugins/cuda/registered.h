/* Memory of the host that others own, registered with the driver for as long as an import of it
 * lives. The driver registers a page once in a process, so imports of the same pages share it. */
#ifndef PLUGINS_CUDA_REGISTERED_H
#define PLUGINS_CUDA_REGISTERED_H

#include "status.h"

#include "driver.h"

#include <stdbool.h>

typedef struct cuda_registration cuda_registration;

/* Makes bytes from pointer on accessible to kernels of the current context: *address is where they
 * see them. *registration is null when someone else had registered or
 * allocated the memory with the driver. Threads: any. UNSUPPORTED: the driver registers no memory
 * that the process cannot write, or an earlier import holds a part of the pages. */
hal_status cuda_register(void *pointer, uint64_t bytes, bool reads_only,
                         cuda_registration **registration, cuda_address *address);

/* Ends the share of one cuda_register; null is ignored. A context is current. */
void cuda_unregister(cuda_registration *registration);

#endif
