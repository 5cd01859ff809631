/* A call for which the library measures the device and its host's BLAS (one that computes nothing)
 * leaves the program's floating-point environment as it was: no exception is raised, none is
 * lost, traps stay enabled and do not happen, the direction of rounding stays. Ends with the number
 * of failures. */
#include <fenv.h>
#include <stdbool.h>
#include <stdio.h>

#define ORDER 128

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *);

static int failures;
static double a[ORDER * ORDER], b[ORDER * ORDER], c[ORDER * ORDER];

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("%s\n", what);
        failures++;
    }
}

/* C = A B + C / 3, of enough operations for the device. */
static void product(void)
{
    const int n = ORDER;
    const double alpha = 1, beta = 1.0 / 3;
    dgemm_("N", "T", &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n);
}

int main(void)
{
    for (int i = 0; i < ORDER * ORDER; i++) {
        a[i] = 0.1 * i;
        b[i] = c[i] = 1 - 0.3 * i;
    }
    feclearexcept(FE_ALL_EXCEPT);
    product();
    expect(fetestexcept(FE_ALL_EXCEPT) == 0, "exceptions of the library are seen");
    feraiseexcept(FE_OVERFLOW);
    fesetround(FE_UPWARD);
    product();
    expect(fetestexcept(FE_OVERFLOW) != 0, "an exception of the program is lost");
    expect(fegetround() == FE_UPWARD, "the direction of rounding is lost");
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
#ifdef __GLIBC__
    const int traps = FE_DIVBYZERO | FE_INVALID | FE_INEXACT;
    feenableexcept(traps);
    product();
    expect(fegetexcept() == traps, "traps of the program are lost");
    fedisableexcept(traps);
#endif
    return failures;
}
