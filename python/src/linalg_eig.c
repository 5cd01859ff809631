/* Eigenvalues by the shifted QR iteration on a Hessenberg matrix, whose Schur form gives the
 * eigenvectors.
 *
 * Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, sections 7.4 to 7.6. */
#include "linalg_eig.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_STEPS 60 /* for each eigenvalue */

/* |re| + |im|: what sizes are compared by. */
static double size_of(double complex x)
{
    return fabs(creal(x)) + fabs(cimag(x));
}

/* Rows p and p + 1 of columns `from` to n become those of the rotation [c s; -conj(s) c]. */
static void rows_rotate(double complex *a, int64_t n, int64_t p, int64_t from, double c,
                        double complex s)
{
    for (int64_t j = from; j < n; j++) {
        const double complex x = a[p * n + j], y = a[(p + 1) * n + j];
        a[p * n + j] = c * x + s * y;
        a[(p + 1) * n + j] = c * y - conj(s) * x;
    }
}

/* Columns p and p + 1 of rows 0 to `end`, by the inverse of that rotation. */
static void columns_rotate(double complex *a, int64_t n, int64_t p, int64_t end, double c,
                           double complex s)
{
    for (int64_t i = 0; i < end; i++) {
        const double complex x = a[i * n + p], y = a[i * n + p + 1];
        a[i * n + p] = c * x + conj(s) * y;
        a[i * n + p + 1] = c * y - s * x;
    }
}

/* The rotation that makes y 0 next to x. */
static void rotation_of(double complex x, double complex y, double *c, double complex *s)
{
    const double norm = hypot(cabs(x), cabs(y));
    if (norm == 0) {
        *c = 1;
        *s = 0;
        return;
    }
    *c = cabs(x) / norm;
    *s = (x == 0 ? 1 : x / cabs(x)) * conj(y) / norm;
}

/* a = Q H Q^H with zeros below the subdiagonal of H, by rotations of neighbouring rows. */
static void hessenberg_reduce(double complex *a, int64_t n, double complex *q)
{
    memset(q, 0, (size_t)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++) {
        q[i * n + i] = 1;
    }
    for (int64_t k = 0; k + 2 < n; k++) {
        for (int64_t p = n - 2; p > k; p--) {
            double c;
            double complex s;
            rotation_of(a[p * n + k], a[(p + 1) * n + k], &c, &s);
            rows_rotate(a, n, p, k, c, s);
            a[(p + 1) * n + k] = 0;
            columns_rotate(a, n, p, n, c, s);
            columns_rotate(q, n, p, n, c, s);
        }
    }
}

/* The eigenvalue of the last two rows and columns of a block that is nearer to its last element. */
static double complex shift_of(const double complex *a, int64_t n, int64_t last)
{
    const double complex w = a[(last - 1) * n + last - 1], z = a[last * n + last];
    const double complex product = a[(last - 1) * n + last] * a[last * n + last - 1];
    const double complex half = (w - z) / 2, root = csqrt(half * half + product);
    const double complex sum = cabs(half + root) > cabs(half - root) ? half + root : half - root;
    return sum == 0 ? z : z - product / sum;
}

/* One step of the iteration on rows and columns `first` to `last`. */
static void schur_step(double complex *a, int64_t n, int64_t first, int64_t last,
                       double complex shift, double complex *q)
{
    double c;
    double complex s;
    double complex x = a[first * n + first] - shift, y = a[(first + 1) * n + first];
    for (int64_t p = first; p < last; p++) {
        rotation_of(x, y, &c, &s);
        rows_rotate(a, n, p, p > first ? p - 1 : first, c, s);
        columns_rotate(a, n, p, p + 3 < last + 1 ? p + 3 : last + 1, c, s);
        columns_rotate(q, n, p, n, c, s);
        if (p > first) {
            a[(p + 1) * n + p - 1] = 0;
        }
        if (p + 1 < last) {
            x = a[(p + 1) * n + p];
            y = a[(p + 2) * n + p];
        }
    }
}

/* H becomes upper triangular. */
static bool schur_iterate(double complex *a, int64_t n, double complex *q)
{
    int64_t last = n - 1;
    for (int steps = 0; last > 0;) {
        int64_t first = last;
        while (first > 0) { /* the block that ends at `last` */
            double complex *below = a + first * n + first - 1;
            const double next =
                size_of(a[first * n + first]) + size_of(a[(first - 1) * n + first - 1]);
            if (size_of(*below) <= DBL_EPSILON * next || size_of(*below) < DBL_MIN) {
                *below = 0;
                break;
            }
            first--;
        }
        if (first == last) {
            last--;
            steps = 0;
            continue;
        }
        if (steps++ == MAX_STEPS) {
            return false;
        }
        /* Every tenth shift is another one, which ends cycles. */
        const double complex shift = steps % 10 == 0
                                         ? a[last * n + last] + size_of(a[last * n + last - 1])
                                         : shift_of(a, n, last);
        schur_step(a, n, first, last, shift, q);
    }
    return true;
}

/* Eigenvectors of the triangular t by substitution, then of q t q^H; each of length 1. */
static void vectors_solve(const double complex *t, int64_t n, const double complex *q,
                          double complex *x, double complex *vectors)
{
    double most = 0;
    for (int64_t i = 0; i < n * n; i++) {
        most = size_of(t[i]) > most ? size_of(t[i]) : most;
    }
    const double least = most > 0 ? DBL_EPSILON * most : 1;
    for (int64_t k = 0; k < n; k++) {
        double norm = 0;
        x[k] = 1;
        for (int64_t i = k; i-- > 0;) {
            double complex sum = 0, gap = t[i * n + i] - t[k * n + k];
            for (int64_t j = i + 1; j <= k; j++) {
                sum += t[i * n + j] * x[j];
            }
            x[i] = -sum / (size_of(gap) < least ? least : gap);
        }
        for (int64_t i = 0; i < n; i++) {
            double complex sum = 0;
            for (int64_t j = 0; j <= k; j++) {
                sum += q[i * n + j] * x[j];
            }
            vectors[i * n + k] = sum;
            norm = hypot(norm, cabs(sum));
        }
        for (int64_t i = 0; i < n; i++) {
            vectors[i * n + k] /= norm;
        }
    }
}

bool linalg_eig_factor(double complex *a, int64_t n, double complex *values,
                       double complex *vectors, double complex *scratch)
{
    double complex *q = scratch;
    hessenberg_reduce(a, n, q);
    if (!schur_iterate(a, n, q)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = a[i * n + i];
    }
    vectors_solve(a, n, q, scratch + n * n, vectors);
    return true;
}
