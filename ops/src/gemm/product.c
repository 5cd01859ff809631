/* Matrices of a product, see product.h. */
#include "product.h"

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
