/* Counts of blas/src/estimate.c: what the host copies of complex operands, and what is read. Ends
 * with the number of failures. */
#include "estimate.h"

#include "resident.h"

#include <stdio.h>

bool blas_resident_is_known(const blas_matrix *matrix)
{
    return !matrix->data; /* an operand that stays on the device */
}

static int failures;

static void expect(double got, double wanted, const char *what)
{
    if (got != wanted) {
        printf("%s: %g bytes, expected %g\n", what, got, wanted);
        failures++;
    }
}

int main(void)
{
    static const float one[2] = {1, 0}, zero[2] = {0, 0}, complex_beta[2] = {0, 1};
    static const float elements[2];
    blas_call call = {.routine = BLAS_ROUTINE_cgemm,
                      .transa = 'N',
                      .transb = 'N',
                      .m = 30,
                      .n = 20,
                      .k = 10,
                      .lda = 30,
                      .ldb = 10,
                      .ldc = 30,
                      .batch = 1,
                      .alpha = one,
                      .beta = zero,
                      .a = elements,
                      .b = elements};
    const double a = 30 * 10 * 8, b = 10 * 20 * 8, c = 30 * 20 * 8;
    blas_estimate made = blas_estimate_of(&call, true);
    expect(made.expanded_bytes, 2 * a, "a complex A, expanded");
    expect(made.packed_bytes, 0, "a complex B as it is");
    expect(made.download_bytes, 0, "a result in place");
    expect(made.uploads + made.downloads, 0, "transfers of what is in place");
    expect(made.host_bytes, c, "the largest matrix of the host, C");
    expect(made.device_bytes, c, "the largest matrix of the device, C");
    call.k = 40;
    call.ldb = 40;
    made = blas_estimate_of(&call, true);
    expect(made.host_bytes, 4 * a, "the largest matrix of the host, A");
    expect(made.device_bytes, 8 * a, "the largest matrix of the device, A");
    call.k = call.ldb = 10;
    call.beta = complex_beta;
    made = blas_estimate_of(&call, true);
    expect(made.packed_bytes, c, "a C that the host scales");
    expect(made.download_bytes, c, "a C that is copied back");
    call.a = NULL;
    call.beta = zero;
    made = blas_estimate_of(&call, false);
    expect(made.upload_bytes, b, "an A that stays on the device, and a B");
    expect(made.expanded_bytes, 0, "an A that stays on the device, expanded");
    expect(made.uploads, 1, "transfers to the device");
    expect(made.downloads, 1, "transfers from the device");
    return failures;
}
