/* language_metal.c: Metal Shading Language as the metal plugin writes it. Called through
 * languages.c. */
#include "languages.h"

#include <metal/lower/lower.h>
#include <kit/host.h>

#include "language_host.h"

void *language_metal(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    kit_text text = {.host = &language_host};
    kit_host_enter(&language_host);
    const hal_status status = metal_lower(kernel, 0, &text);
    if (status != HAL_OK) {
        snprintf(message, bytes, "%s", language_message);
        kit_text_release(&text);
        return NULL;
    }
    *length = text.length;
    return text.data; /* of the host, so free() takes it */
}
