/* language_opencl.c: OpenCL C as the OpenCL plugin writes it. Called through languages.c. */
#include "languages.h"

#include <opencl/lower/lower.h>
#include <kit/host.h>

#include "language_host.h"

void *language_opencl(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    const opencl_card card = {.info = {.subgroup_width = OPENCL_SUBGROUP_WIDTH}};
    kit_text text = {.host = &language_host};
    kit_host_enter(&language_host);
    const hal_status status = opencl_lower(&card, kernel, false, &text);
    if (status != HAL_OK) {
        snprintf(message, bytes, "%s", language_message);
        kit_text_release(&text);
        return NULL;
    }
    *length = text.length;
    return text.data; /* of the host, so free() takes it */
}
