/* language_cuda.c: PTX as the CUDA plugin writes it. Called through languages.c. */
#include "languages.h"

#include <cuda/lower.h>

#include "language_host.h"

void *language_cuda(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    kit_text text = {.host = &language_host};
    if (cuda_lower(kernel, 80, &text) != HAL_OK || text.failed) {
        snprintf(message, bytes, "%s", language_message);
        kit_text_release(&text);
        return NULL;
    }
    *length = text.length;
    return text.data; /* of the host, so free() takes it */
}
