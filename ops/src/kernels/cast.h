/* Conversions of values to what memory of a type holds. */
#ifndef OPS_SRC_KERNELS_CAST_H
#define OPS_SRC_KERNELS_CAST_H

#include <hal/hal.h>

/* x as a value of what memory of `storage` holds. Integers saturate. A value for a narrow float is
 * an F32 that rounds to the same bits as x itself when it is stored or narrowed. */
hal_ir_value ops_cast_value(hal_ir_builder *b, hal_type storage, hal_ir_value x);

#endif
