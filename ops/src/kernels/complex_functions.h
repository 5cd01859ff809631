/* Functions of complex numbers in terms of their components, composed of operations of the IR.
 * Called while expressions of arrays are built. */
#ifndef OPS_SRC_KERNELS_COMPLEX_FUNCTIONS_H
#define OPS_SRC_KERNELS_COMPLEX_FUNCTIONS_H

#include <ops/complex.h>
#include <ops/pointwise.h>

/* What a quotient needs of its divisor, by numbers after those of functions: x / z is
 * ((x before) inverse) after, where before and after are powers of two. */
enum {
    OPS_COMPLEX_INVERSE = OPS_COMPLEX_UNARY_COUNT,
    OPS_COMPLEX_SCALE, /* before; after */
    OPS_COMPLEX_PAIR_COUNT
};

/* A component of a function, as a node of arrays keeps it: 2 * function + component. */
#define OPS_COMPLEX_PART(function, component) (2u * (uint32_t)(function) + (uint32_t)(component))

/* Both components of a function of x + iy, values of one type, F32 or F64. Errors: sticky in the
 * builder. */
void ops_complex_values(hal_ir_builder *builder, uint32_t function, hal_ir_value x, hal_ir_value y,
                        hal_ir_value parts[2]);

#endif
