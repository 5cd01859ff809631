/* Operands that stay on the device, if HALYARD_BLAS_RESIDENT asks for it, until they are written or
 * others need the memory that HALYARD_BLAS_RESIDENT_LIMIT gives them.
 * Used by operand.c for what it loads, by run.c and by the model. */
#ifndef BLAS_SRC_RESIDENT_H
#define BLAS_SRC_RESIDENT_H

#include "matrix.h"

#include <ops/ops.h>

/* Number of an operand that is being loaded; 0: it will not stay. */
typedef uint64_t blas_ticket;

/* Whether operands stay at all. Threads: any. */
bool blas_resident_is_on(void);

/* Finds an operand in the form that blas_operand_load gives it. If it is not kept yet, `ticket` is
 * for blas_resident_keep, and writes are noticed from here on: load the operand after the call.
 * Ownership: a reference for the caller. Threads: any. */
bool blas_resident_find(const blas_matrix *matrix, blas_number scale, blas_form form,
                        HAL_OUT ops_tensor *tensor, HAL_OUT blas_ticket *ticket);

/* Keeps a loaded operand, unless it was written meanwhile. The device has finished loading it.
 * Ownership: takes a reference. Threads: any. */
void blas_resident_keep(blas_ticket ticket, const ops_tensor *tensor);

/* Drops the operand of a ticket that could not be loaded. Threads: any. */
void blas_resident_drop(blas_ticket ticket);

/* Drops all operands, to make room on the device. False: there were none. Threads: any. */
bool blas_resident_drop_all(void);

/* Whether an operand was used before and is as it was then, so that it is worth a place on the
 * device or has one. Threads: any. */
bool blas_resident_is_known(const blas_matrix *matrix);

/* Remembers the operands of a call that the host computes, for the next one. Threads: any. */
void blas_resident_remember(const blas_call *call);

/* Drops operands in memory that the call writes. Threads: any. */
void blas_resident_call_writes(const blas_call *call);

/* Exported: `bytes` from `data` on were written, by what the kernel cannot see, or with
 * HALYARD_BLAS_RESIDENT=told by anything but a routine of the library. Threads: any. */
__attribute__((visibility("default"))) void halyard_blas_written(const void *data, size_t bytes);

#endif
