/* Philox 4x32 with 10 rounds: four random words from a counter and a key, on the host and in IR.
 *
 * Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel Random Numbers: As Easy as
 * 1, 2, 3", SC 2011. */
#ifndef OPS_SRC_KERNELS_PHILOX_H
#define OPS_SRC_KERNELS_PHILOX_H

#include <hal/hal.h>

/* words = the block of a counter (four words) under a key (two). */
void ops_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* The same in a kernel, all values U32. */
void ops_philox_emit(hal_ir_builder *b, const hal_ir_value counter[4], const hal_ir_value key[2],
                     hal_ir_value words[4]);

#endif
