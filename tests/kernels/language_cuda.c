/* language_cuda.c: PTX as the CUDA plugin writes it: for cards before 8.0, before 9.0, and newer
 * ones. Called through languages.c. */
#include "languages.h"

#include <cuda/lower/lower.h>

#include "language_host.h"

static void *lower(const hal_ir_kernel *kernel, uint32_t sm, size_t *length, char *message,
                   size_t bytes)
{
    kit_text text = {.host = &language_host};
    if (cuda_lower(kernel, sm, &text) != HAL_OK || text.failed) {
        snprintf(message, bytes, "%s", language_message);
        kit_text_release(&text);
        return NULL;
    }
    *length = text.length;
    return text.data; /* of the host, so free() takes it */
}

void *language_cuda(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    return lower(kernel, 80, length, message, bytes);
}

void *language_cuda_75(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    return lower(kernel, 75, length, message, bytes);
}

void *language_cuda_90(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    return lower(kernel, 90, length, message, bytes);
}
