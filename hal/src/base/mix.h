/* Numbers to places of a table. */
#ifndef HAL_SRC_BASE_MIX_H
#define HAL_SRC_BASE_MIX_H

#include <stdint.h>

/* Multiplicative hash of a number, e.g. of an address, which differs in about bits 4 to 40. The
 * upper bits of the result depend on all bits of the number: shift right. */
static inline uint64_t hal_mix(uint64_t number)
{
    return (number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
