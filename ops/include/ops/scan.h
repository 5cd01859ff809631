/* Scans: the sum, product, maximum or minimum of every beginning of an axis. */
#ifndef OPS_SCAN_H
#define OPS_SCAN_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_scan_kind {
    OPS_SCAN_SUM,
    OPS_SCAN_PRODUCT,
    OPS_SCAN_MAX, /* NaN from the first NaN on */
    OPS_SCAN_MIN, /* NaN from the first NaN on */
    OPS_SCAN_KIND_COUNT
} ops_scan_kind;

/* y[k] = x[0] o ... o x[k] along `axis`. y has x's shape and a type of the same arithmetic (F16 and
 * F32, I8 and I32), and may be x. x is not BOOL. An axis has at most 2^31 - 1 elements. From the
 * end of an axis: give views with negative strides.
 *
 * Narrow floats are accumulated in F32 and rounded once per element; integers wrap. Each element is
 * the result of k operations whose order depends on shape, strides and the device's limits alone,
 * so a sum has |y' - y| <= k u (|x[0]| + ... + |x[k]|) + v |y|, with u the unit roundoff of the
 * arithmetic and v that of y's type.
 * Source: G. E. Blelloch, "Prefix sums and their applications", 1990; inside a group
 * W. D. Hillis and G. L. Steele, "Data parallel algorithms", 1986.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, UNSUPPORTED for a longer axis,
 * OUT_OF_MEMORY, those of kernels and dispatches. */
HAL_API hal_status ops_scan(ops_context *context, ops_scan_kind kind, int32_t axis,
                            const ops_tensor *x, HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
