/* number.h: elements of every type as the host sees them: bits, and values as doubles. Written
 * from ir.h alone, so that the references are independent of hal. */
#ifndef CONFORMANCE_MATH_NUMBER_H
#define CONFORMANCE_MATH_NUMBER_H

#include <hal/ir.h>
#include <stddef.h>
#include <stdint.h>

/* All ones in the width of a type. */
uint64_t number_mask(hal_type type);

/* The bits of one element in an array, zero-extended, and writing them. */
uint64_t number_load(hal_type type, const void *elements, size_t index);
void number_store(hal_type type, void *elements, size_t index, uint64_t bits);

/* Value of the bits of a type. 64-bit integers beyond 2^53 need the long double form. */
double number_value(hal_type type, uint64_t bits);
long double number_long_value(hal_type type, uint64_t bits);

/* Bits of a double's value in a type: floats to nearest even, integers towards zero, saturating,
 * NaN to 0; BOOL: not 0. */
uint64_t number_bits(hal_type type, double value);

/* number_bits and number_value of an array's element. */
void number_put(hal_type type, void *elements, size_t index, double value);
double number_get(hal_type type, const void *elements, size_t index);

/* An integer's value with its sign. Of unsigned 64-bit types the same bits. */
int64_t number_signed(hal_type type, uint64_t bits);

/* Bits of the value type (what LOAD gives) from bits in memory, and back (what STORE does). */
uint64_t number_widen(hal_type type, uint64_t bits);
uint64_t number_narrow(hal_type type, uint64_t bits);

/* The unit roundoff of a float type: half the distance from 1 to the next number. */
double number_roundoff(hal_type type);

float number_f32(uint64_t bits);
double number_f64(uint64_t bits);
uint64_t number_of_f32(float value);
uint64_t number_of_f64(double value);

#endif
