/* scalar_reader.h: hal/ir_math.h as plain C scalars, in a form in which a loop over one of its
 * functions vectorises: composed functions compute both paths of a rare condition. */
#ifndef CONFORMANCE_MATH_SCALAR_READER_H
#define CONFORMANCE_MATH_SCALAR_READER_H

#define MATH_RARE_F32(result, condition, function, x)                                              \
    ((result) = (condition) ? function(m, x) : (result))
#define MATH_RARE2_F32(result, condition, function, x, y) \
    ((result) = (condition) ? function(m, x, y) : (result))

#include <hal/ir_math_scalar.h>

#endif
