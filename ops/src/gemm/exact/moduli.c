/* Constants of the moduli, see moduli.h. */
#include "moduli.h"

#include <string.h>

#define DIGIT_BITS 16u

/* The largest numbers up to 256 without common factors, so that residues are bytes. */
static const uint16_t values[OPS_EXACT_MODULI] = {256, 255, 253, 251, 247, 241, 239, 233,
                                                  229, 227, 223, 217, 211, 199, 197, 193};

static void digits_multiply(uint16_t *digits, uint32_t factor)
{
    uint32_t carry = 0;
    for (uint32_t i = 0; i < OPS_EXACT_DIGITS; i++) {
        carry += digits[i] * factor;
        digits[i] = (uint16_t)carry;
        carry >>= DIGIT_BITS;
    }
}

/* Replaces a number by its quotient and returns the remainder. */
static uint32_t digits_divide(uint16_t *digits, uint32_t divisor)
{
    uint32_t rest = 0;
    for (uint32_t i = OPS_EXACT_DIGITS; i-- > 0;) {
        rest = rest << DIGIT_BITS | digits[i];
        digits[i] = (uint16_t)(rest / divisor);
        rest %= divisor;
    }
    return rest;
}

void ops_exact_moduli_init(ops_exact_moduli *moduli)
{
    memset(moduli, 0, sizeof *moduli);
    moduli->product[0] = 1;
    for (uint32_t i = 0; i < OPS_EXACT_MODULI; i++) {
        digits_multiply(moduli->product, values[i]);
    }
    for (uint32_t i = 0; i < OPS_EXACT_MODULI; i++) {
        ops_exact_modulus *m = &moduli->of[i];
        uint16_t rest[OPS_EXACT_DIGITS];
        m->p = values[i];
        m->fraction = ((1u << OPS_EXACT_FRACTION_BITS) + m->p / 2) / m->p;
        memcpy(m->quotient, moduli->product, sizeof rest);
        digits_divide(m->quotient, m->p);
        memcpy(rest, m->quotient, sizeof rest);
        const uint32_t residue = digits_divide(rest, m->p);
        for (m->inverse = 1; m->inverse * residue % m->p != 1; m->inverse++) {
        }
    }
}
