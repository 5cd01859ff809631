/* languages.h: the plugins' lowerings without their devices, for those plugins that are built. Each
 * has a file language_*.c. write.c calls them. */
#ifndef TESTS_KERNELS_LANGUAGES_H
#define TESTS_KERNELS_LANGUAGES_H

#include <hal/ir.h>
#include <stddef.h>

typedef struct language {
    const char *name;
    const char *suffix; /* of the files */
    /* Writes a kernel as malloc'ed bytes. Null with a sentence. */
    void *(*lower)(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
} language;

/* All that this build has; `count` receives their number. */
const language *languages(size_t *count);

/* Those of the plugins; which ones this build has is known to languages.c alone. */
void *language_opencl(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
void *language_metal(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
void *language_vulkan(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
void *language_cuda(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
void *language_cuda_75(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);
void *language_cuda_90(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes);

#endif
