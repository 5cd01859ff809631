/* corpus.h: every kernel that the op library makes for a fixed list of shapes, types and layouts,
 * without any device. What compiles them for somebody's hardware takes them from here. */
#ifndef TESTS_KERNELS_CORPUS_H
#define TESTS_KERNELS_CORPUS_H

#include <hal/ir.h>
#include <stdbool.h>
#include <stddef.h>

/* Receives a kernel, legalised for the device. `name` says which operation on what, in letters,
 * digits and underscores, and is another one for each kernel. Both are valid during the call. */
typedef void (*corpus_visit)(void *user, const char *name, const hal_ir_kernel *kernel);

/* Makes the kernels for one of the recorder's devices (full, single, narrow, subgroups, weak,
 * copies, matrices; recorder.c says what they claim): all, or some of every family. False with a
 * sentence. */
bool corpus_make(const char *device, bool all, corpus_visit visit, void *user, char *message,
                 size_t bytes);

#endif
