/* languages.c: the table of languages; languages.h says who calls it. */
#include "languages.h"

#include <hal/ir_build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *language_ir(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);

static const language known[] = {
    {"ir", "txt", language_ir},
#ifdef KERNELS_OPENCL
    {"opencl", "cl", language_opencl},
#endif
#ifdef KERNELS_METAL
    {"msl", "metal", language_metal},
#endif
#ifdef KERNELS_VULKAN
    {"spirv", "spv", language_vulkan},
#endif
#ifdef KERNELS_CUDA
    {"ptx", "ptx", language_cuda},
    {"ptx75", "ptx", language_cuda_75},
    {"ptx90", "ptx", language_cuda_90},
#endif
};

const language *languages(size_t *count)
{
    *count = sizeof known / sizeof known[0];
    return known;
}

/* The text form, which must read back as the same kernel. */
static void *language_ir(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    char *text = NULL;
    hal_ir_kernel *again = NULL;
    hal_status status = hal_ir_print(kernel, &text);
    if (status == HAL_OK) {
        status = hal_ir_parse(text, strlen(text), &again);
    }
    hal_ir_kernel_destroy(again);
    if (status != HAL_OK) {
        snprintf(message, bytes, "%s: %s", hal_status_name(status), hal_status_message());
        free(text);
        return NULL;
    }
    *length = strlen(text);
    return text;
}
