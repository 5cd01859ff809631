/* Matrices of a product, see product.h. */
#include "product.h"

#include <stdarg.h>
#include <stdio.h>

ops_matrix ops_matrix_of(const ops_tensor *tensor, const int64_t shape[3])
{
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(tensor, 3, shape, strides);
    return (ops_matrix){tensor,
                        shape[1],
                        shape[2],
                        shape[1] == 1 ? 1 : strides[1],
                        shape[2] == 1 ? 1 : strides[2],
                        shape[0] == 1 ? 0 : strides[0]};
}

void ops_gemm_tell(ops_gemm_text *text, const char *format, ...)
{
    va_list arguments;
    const uint64_t room = text->bytes - text->length;
    va_start(arguments, format);
    const int wanted = vsnprintf(text->line + text->length, room, format, arguments);
    va_end(arguments);
    if (wanted > 0) {
        text->length += (uint64_t)wanted < room ? (uint64_t)wanted : room - 1;
    }
}
