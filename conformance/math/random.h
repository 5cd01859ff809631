/* random.h: the generator of every random input, so that a seed and a case's name give the same
 * data on every machine. */
#ifndef CONFORMANCE_MATH_RANDOM_H
#define CONFORMANCE_MATH_RANDOM_H

#include <hal/ir.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64. Source: G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014. */
typedef struct random_state {
    uint64_t state;
} random_state;

/* A seed for one case: different for every name, equal for equal names. */
uint64_t random_seed_of(uint64_t seed, const char *name);

uint64_t random_next(random_state *random);
uint64_t random_below(random_state *random, uint64_t limit); /* 0 .. limit - 1 */
double random_between(random_state *random, double low, double high);

/* Bits of one element: any number of the type's range; floats of all magnitudes, no NaN. */
uint64_t random_bits(random_state *random, hal_type type);

/* Fills elements of a type with numbers in [low, high); integers with whole ones. */
void random_fill(random_state *random, hal_type type, double low, double high, void *elements,
                 size_t count);

#endif
