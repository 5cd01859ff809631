/* The moduli of products of the class EXACT, and what recombines residues: the Chinese remainder
 * theorem. With P the product of all moduli p and w = (P / p)^-1 mod p, a number X is the sum of
 * (w X mod p) (P / p) less a multiple of P. */
#ifndef OPS_SRC_GEMM_EXACT_MODULI_H
#define OPS_SRC_GEMM_EXACT_MODULI_H

#include <stdint.h>

#define OPS_EXACT_MODULI 16u

/* Digits of 16 bits, the least significant first; P has 126 bits. */
#define OPS_EXACT_DIGITS 8u

/* Of fractions: those of P / p below are rounded to so many bits. */
#define OPS_EXACT_FRACTION_BITS 24u

typedef struct ops_exact_modulus {
    uint32_t p;
    uint32_t inverse;                    /* w */
    uint32_t fraction;                   /* 2^OPS_EXACT_FRACTION_BITS / p, rounded */
    uint16_t quotient[OPS_EXACT_DIGITS]; /* P / p */
} ops_exact_modulus;

typedef struct ops_exact_moduli {
    ops_exact_modulus of[OPS_EXACT_MODULI];
    uint16_t product[OPS_EXACT_DIGITS]; /* P */
} ops_exact_moduli;

void ops_exact_moduli_init(ops_exact_moduli *moduli);

#endif
