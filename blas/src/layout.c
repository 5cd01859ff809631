/* The C interface's calls in the Fortran interface's form, see layout.h. */
#include "layout.h"

#include "report.h"

/* An alpha of her2k, which the transposed call conjugates. */
static void conjugate_alpha(blas_call *call)
{
    const blas_number alpha = blas_call_alpha(call);
    if (blas_type_real_bytes(blas_call_type(call)) == sizeof(double)) {
        call->scalar[0] = alpha.re;
        call->scalar[1] = -alpha.im;
    } else {
        float *single = (float *)call->scalar;
        single[0] = (float)alpha.re;
        single[1] = -(float)alpha.im;
    }
    call->alpha = call->scalar;
}

bool blas_layout_begin(int layout, blas_call *call)
{
    if (layout != BLAS_ROW_MAJOR && layout != BLAS_COLUMN_MAJOR) {
        blas_report_cblas(call, 1);
        return false;
    }
    const int invalid =
        blas_layout_invalid_letter(call, blas_call_kind(call), blas_call_type(call));
    if (invalid > 0) {
        blas_report_cblas(call, invalid + 1);
        return false;
    }
    if (layout == BLAS_ROW_MAJOR) {
        call->is_row_major = true;
        if (blas_call_kind(call) == BLAS_HER2K) {
            conjugate_alpha(call);
        }
        blas_layout_transpose(call, blas_call_kind(call));
    }
    return true;
}
