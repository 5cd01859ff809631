/* Factorisations of one row-major matrix, for linalg.c, which includes this file twice: with NUMBER
 * double and double complex, NAME(f) the name of a function, and ABS, REAL and CONJ. Matrices are
 * passed as doubles, complex ones as pairs. */

/* x / |x|, 1 of 0. */
static NUMBER NAME(phase)(NUMBER x)
{
    return x == 0 ? (NUMBER)1 : x / ABS(x);
}

/* P a = L U in place; rows[i] is the row of P a from which row i came. Returns the sign of P, or 0
 * if a pivot is 0. */
static double NAME(lu_factor)(double *matrix, int64_t n, int64_t *rows)
{
    NUMBER *a = (NUMBER *)(void *)matrix;
    double sign = 1;
    bool singular = false;
    for (int64_t i = 0; i < n; i++) {
        rows[i] = i;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            pivot = ABS(a[i * n + k]) > ABS(a[pivot * n + k]) ? i : pivot;
        }
        if (pivot != k) {
            for (int64_t j = 0; j < n; j++) {
                const NUMBER swap = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = swap;
            }
            const int64_t row = rows[k];
            rows[k] = rows[pivot];
            rows[pivot] = row;
            sign = -sign;
        }
        if (a[k * n + k] == 0) {
            singular = true;
            continue;
        }
        for (int64_t i = k + 1; i < n; i++) {
            const NUMBER factor = a[i * n + k] /= a[k * n + k];
            for (int64_t j = k + 1; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
        }
    }
    return singular ? 0 : sign;
}

/* Of the factors of lu_factor: multiplies *sign by the phases of the pivots; returns the sum of
 * the logarithms of their sizes. */
static double NAME(lu_logarithm)(const double *matrix, int64_t n, double *sign)
{
    const NUMBER *a = (const NUMBER *)(const void *)matrix;
    NUMBER *product = (NUMBER *)(void *)sign;
    double logarithm = 0;
    for (int64_t k = 0; k < n; k++) {
        *product *= NAME(phase)(a[k * n + k]);
        logarithm += log(ABS(a[k * n + k]));
    }
    return logarithm;
}

/* x [n, m] = the solution of L U x = P b. */
static void NAME(lu_solve)(const double *matrix, int64_t n, const int64_t *rows,
                           const double *right, int64_t m, double *solution)
{
    const NUMBER *a = (const NUMBER *)(const void *)matrix;
    const NUMBER *b = (const NUMBER *)(const void *)right;
    NUMBER *x = (NUMBER *)(void *)solution;
    for (int64_t i = 0; i < n; i++) {
        memcpy(x + i * m, b + rows[i] * m, (size_t)m * sizeof *x);
        for (int64_t k = 0; k < i; k++) {
            for (int64_t j = 0; j < m; j++) {
                x[i * m + j] -= a[i * n + k] * x[k * m + j];
            }
        }
    }
    for (int64_t i = n; i-- > 0;) {
        for (int64_t k = i + 1; k < n; k++) {
            for (int64_t j = 0; j < m; j++) {
                x[i * m + j] -= a[i * n + k] * x[k * m + j];
            }
        }
        for (int64_t j = 0; j < m; j++) {
            x[i * m + j] /= a[i * n + i];
        }
    }
}

/* a = L L^H, of which the lower triangle of a is read; L replaces a. False if a is not positive
 * definite. */
static bool NAME(cholesky_factor)(double *matrix, int64_t n)
{
    NUMBER *a = (NUMBER *)(void *)matrix;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            NUMBER sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) {
                sum -= a[i * n + k] * CONJ(a[j * n + k]);
            }
            if (i == j && !(REAL(sum) > 0)) {
                return false;
            }
            a[i * n + j] = i == j ? (NUMBER)sqrt(REAL(sum)) : sum / a[j * n + j];
        }
        memset(a + j * n + j + 1, 0, (size_t)(n - j - 1) * sizeof *a);
    }
    return true;
}

/* The reflection I - 2 v v^H / |v|^2 that makes elements k + 1 to n of column k of a [n, m] zero.
 * v / its norm, so that squares of tiny numbers are not 0. Returns |v|^2, or 0 if they are zero. */
static double NAME(reflection)(const NUMBER *a, int64_t n, int64_t m, int64_t k, NUMBER *v)
{
    double norm = 0, square = 0;
    for (int64_t i = k; i < n; i++) {
        v[i] = a[i * m + k];
        norm = hypot(norm, ABS(v[i]));
    }
    for (int64_t i = k; i < n && norm > 0; i++) {
        v[i] /= norm;
        v[i] += i > k ? 0 : NAME(phase)(v[i]);
        square += REAL(v[i] * CONJ(v[i]));
    }
    return square;
}

/* a [n, m] = Q R by reflections: R replaces a, and q [n, n] is Q. */
static void NAME(qr_factor)(double *matrix, int64_t n, int64_t m, double *unitary, double *scratch)
{
    NUMBER *a = (NUMBER *)(void *)matrix, *q = (NUMBER *)(void *)unitary;
    NUMBER *v = (NUMBER *)(void *)scratch;
    memset(q, 0, (size_t)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++) {
        q[i * n + i] = 1;
    }
    for (int64_t k = 0; k < m && k < n; k++) {
        const double square = NAME(reflection)(a, n, m, k, v);
        for (int64_t j = k; j < m && square > 0; j++) {
            NUMBER sum = 0;
            for (int64_t i = k; i < n; i++) {
                sum += CONJ(v[i]) * a[i * m + j];
            }
            for (int64_t i = k; i < n; i++) {
                a[i * m + j] -= 2 * sum / square * v[i];
            }
        }
        for (int64_t r = 0; r < n && square > 0; r++) {
            NUMBER sum = 0;
            for (int64_t i = k; i < n; i++) {
                sum += q[r * n + i] * v[i];
            }
            for (int64_t i = k; i < n; i++) {
                q[r * n + i] -= 2 * sum / square * CONJ(v[i]);
            }
        }
        for (int64_t i = k + 1; i < n; i++) {
            a[i * m + k] = 0;
        }
    }
}

/* Rotates columns p and q, which is divided by `turn` first, of a matrix of `rows` rows and `width`
 * columns. */
static void NAME(rotate_columns)(NUMBER *a, int64_t rows, int64_t width, int64_t p, int64_t q,
                                 double c, double s, NUMBER turn)
{
    for (int64_t i = 0; i < rows; i++) {
        const NUMBER x = a[i * width + p], y = a[i * width + q] * CONJ(turn);
        a[i * width + p] = c * x - s * y;
        a[i * width + q] = s * x + c * y;
    }
}

/* One rotation of eigh_factor. */
static void NAME(eigh_rotate)(NUMBER *a, int64_t n, NUMBER *v, int64_t p, int64_t q)
{
    const NUMBER turn = NAME(phase)(a[p * n + q]);
    double c, s;
    jacobi_rotation(REAL(a[p * n + p]), REAL(a[q * n + q]), ABS(a[p * n + q]), &c, &s);
    NAME(rotate_columns)(a, n, n, p, q, c, s, turn);
    for (int64_t j = 0; j < n; j++) { /* rows p and q */
        const NUMBER x = a[p * n + j], y = a[q * n + j] * turn;
        a[p * n + j] = c * x - s * y;
        a[q * n + j] = s * x + c * y;
    }
    a[p * n + q] = a[q * n + p] = 0;
    NAME(rotate_columns)(v, n, n, p, q, c, s, turn);
}

/* Eigenvalues of a Hermitian matrix into `values`, eigenvectors into the columns of v. */
static void NAME(eigh_factor)(double *matrix, int64_t n, double *values, double *vectors)
{
    NUMBER *a = (NUMBER *)(void *)matrix, *v = (NUMBER *)(void *)vectors;
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        v[i * n + i] = 1;
        a[i * n + i] = REAL(a[i * n + i]);
        for (int64_t j = 0; j < i; j++) {
            a[j * n + i] = CONJ(a[i * n + j]);
        }
    }
    bool rotated = true;
    for (int sweep = 0; sweep < MAX_SWEEPS && rotated; sweep++) {
        rotated = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                const double first = ABS(a[p * n + p]), second = ABS(a[q * n + q]);
                if (ABS(a[p * n + q]) > DBL_EPSILON / 4 * sqrt(first) * sqrt(second)) {
                    NAME(eigh_rotate)(a, n, v, p, q);
                    rotated = true;
                }
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = REAL(a[i * n + i]);
    }
}

static void NAME(swap_columns)(NUMBER *a, int64_t rows, int64_t width, int64_t p, int64_t q)
{
    for (int64_t i = 0; i < rows; i++) {
        const NUMBER swap = a[i * width + p];
        a[i * width + p] = a[i * width + q];
        a[i * width + q] = swap;
    }
}

static double NAME(column_norm)(const NUMBER *a, int64_t rows, int64_t width, int64_t column)
{
    double norm = 0;
    for (int64_t i = 0; i < rows; i++) {
        norm = hypot(norm, ABS(a[i * width + column]));
    }
    return norm;
}

/* Makes all columns of a [n, m] orthogonal to each other, by rotations that v collects. */
static void NAME(columns_orthogonalize)(NUMBER *a, int64_t n, int64_t m, NUMBER *v)
{
    bool rotated = true;
    for (int sweep = 0; sweep < MAX_SWEEPS && rotated; sweep++) {
        rotated = false;
        for (int64_t p = 0; p < m; p++) {
            for (int64_t q = p + 1; q < m; q++) {
                double alpha = 0, beta = 0, c, s;
                NUMBER gamma = 0;
                for (int64_t i = 0; i < n; i++) {
                    const NUMBER x = a[i * m + p], y = a[i * m + q];
                    alpha += REAL(x * CONJ(x));
                    beta += REAL(y * CONJ(y));
                    gamma += CONJ(x) * y;
                }
                if (ABS(gamma) <= DBL_EPSILON * sqrt(alpha) * sqrt(beta)) {
                    continue;
                }
                rotated = true;
                jacobi_rotation(alpha, beta, ABS(gamma), &c, &s);
                NAME(rotate_columns)(a, n, m, p, q, c, s, NAME(phase)(gamma));
                NAME(rotate_columns)(v, m, m, p, q, c, s, NAME(phase)(gamma));
            }
        }
    }
}

/* One-sided: a [n, m], n >= m, becomes U S in its columns, in descending order, and v [m, m] is V.
 * The matrix is scaled by a power of two, so that squares neither overflow nor vanish. */
static void NAME(svd_factor)(double *matrix, int64_t n, int64_t m, double *right)
{
    NUMBER *a = (NUMBER *)(void *)matrix, *v = (NUMBER *)(void *)right;
    const int64_t count = n * m * (int64_t)(sizeof *a / sizeof *matrix);
    double most = 0;
    int exponent = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fabs(matrix[i]) > most ? fabs(matrix[i]) : most;
    }
    frexp(most, &exponent);
    for (int64_t i = 0; i < count; i++) {
        matrix[i] = ldexp(matrix[i], -exponent);
    }
    memset(v, 0, (size_t)(m * m) * sizeof *v);
    for (int64_t i = 0; i < m; i++) {
        v[i * m + i] = 1;
    }
    NAME(columns_orthogonalize)(a, n, m, v);
    for (int64_t i = 0; i < m; i++) {
        int64_t greatest = i;
        for (int64_t j = i + 1; j < m; j++) {
            greatest =
                NAME(column_norm)(a, n, m, j) > NAME(column_norm)(a, n, m, greatest) ? j : greatest;
        }
        NAME(swap_columns)(a, n, m, i, greatest);
        NAME(swap_columns)(v, m, m, i, greatest);
    }
    for (int64_t i = 0; i < count; i++) {
        matrix[i] = ldexp(matrix[i], exponent);
    }
}
