/* Factorisations of small matrices for halyard/linalg.py, on the host in double precision: LU with
 * partial pivoting, Cholesky, Householder QR, and Jacobi's methods for eigenvalues of symmetric
 * matrices and for singular values.
 *
 * Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, sections 3.4, 4.2, 5.2,
 * 8.5 and 8.6. */
#include "core.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_SWEEPS 60

/* ---- Factorisations of one row-major matrix ---- */

/* P a = L U in place; rows[i] is the row of P a from which row i came. Returns the sign of P, or 0
 * if a pivot is 0. */
static double lu_factor(double *a, int64_t n, int64_t *rows)
{
    double sign = 1;
    bool singular = false;
    for (int64_t i = 0; i < n; i++) {
        rows[i] = i;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        }
        if (pivot != k) {
            for (int64_t j = 0; j < n; j++) {
                const double swap = a[k * n + j];
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
            const double factor = a[i * n + k] /= a[k * n + k];
            for (int64_t j = k + 1; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
        }
    }
    return singular ? 0 : sign;
}

/* x [n, m] = the solution of L U x = P b. */
static void lu_solve(const double *a, int64_t n, const int64_t *rows, const double *b, int64_t m,
                     double *x)
{
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

/* a = L L^T, of which the lower triangle of a is read; L replaces a. False if a is not positive
 * definite. */
static bool cholesky_factor(double *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            if (i == j && !(sum > 0)) {
                return false;
            }
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
        memset(a + j * n + j + 1, 0, (size_t)(n - j - 1) * sizeof *a);
    }
    return true;
}

/* a [n, m] = Q R by reflections: R replaces a, and q [n, n] is Q. */
static void qr_factor(double *a, int64_t n, int64_t m, double *q, double *v)
{
    memset(q, 0, (size_t)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++) {
        q[i * n + i] = 1;
    }
    for (int64_t k = 0; k < m && k < n; k++) {
        double norm = 0;
        for (int64_t i = k; i < n; i++) {
            v[i] = a[i * m + k];
            norm = hypot(norm, v[i]);
        }
        if (norm == 0) {
            continue;
        }
        double square = 0;
        for (int64_t i = k; i < n; i++) { /* scaled: squares of tiny numbers would be 0 */
            v[i] /= norm;
            v[i] += i > k ? 0 : v[i] < 0 ? -1 : 1;
            square += v[i] * v[i];
        }
        for (int64_t j = k; j < m; j++) {
            double sum = 0;
            for (int64_t i = k; i < n; i++) {
                sum += v[i] * a[i * m + j];
            }
            for (int64_t i = k; i < n; i++) {
                a[i * m + j] -= 2 * sum / square * v[i];
            }
        }
        for (int64_t r = 0; r < n; r++) {
            double sum = 0;
            for (int64_t i = k; i < n; i++) {
                sum += q[r * n + i] * v[i];
            }
            for (int64_t i = k; i < n; i++) {
                q[r * n + i] -= 2 * sum / square * v[i];
            }
        }
        for (int64_t i = k + 1; i < n; i++) {
            a[i * m + k] = 0;
        }
    }
}

/* Rotates columns p and q of a matrix of `rows` rows and `width` columns. */
static void rotate_columns(double *a, int64_t rows, int64_t width, int64_t p, int64_t q, double c,
                           double s)
{
    for (int64_t i = 0; i < rows; i++) {
        const double x = a[i * width + p], y = a[i * width + q];
        a[i * width + p] = c * x - s * y;
        a[i * width + q] = s * x + c * y;
    }
}

/* The rotation that makes the product of two columns 0: of the squares alpha and beta, and the
 * product gamma. */
static void jacobi_rotation(double alpha, double beta, double gamma, double *c, double *s)
{
    const double zeta = (beta - alpha) / (2 * gamma);
    const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta));
    *c = 1 / sqrt(1 + t * t);
    *s = *c * t;
}

/* Eigenvalues of a symmetric matrix into its diagonal, eigenvectors into the columns of v. */
static void eigh_factor(double *a, int64_t n, double *v)
{
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        v[i * n + i] = 1;
        for (int64_t j = 0; j < i; j++) {
            a[j * n + i] = a[i * n + j];
        }
    }
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        bool rotated = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                const double gamma = a[p * n + q];
                if (fabs(gamma) <=
                    DBL_EPSILON / 4 * sqrt(fabs(a[p * n + p])) * sqrt(fabs(a[q * n + q]))) {
                    continue;
                }
                double c, s;
                rotated = true;
                jacobi_rotation(a[p * n + p], a[q * n + q], gamma, &c, &s);
                rotate_columns(a, n, n, p, q, c, s);
                for (int64_t j = 0; j < n; j++) { /* rows p and q */
                    const double x = a[p * n + j], y = a[q * n + j];
                    a[p * n + j] = c * x - s * y;
                    a[q * n + j] = s * x + c * y;
                }
                a[p * n + q] = a[q * n + p] = 0;
                rotate_columns(v, n, n, p, q, c, s);
            }
        }
        if (!rotated) {
            return;
        }
    }
}

static void swap_columns(double *a, int64_t rows, int64_t width, int64_t p, int64_t q)
{
    for (int64_t i = 0; i < rows; i++) {
        const double swap = a[i * width + p];
        a[i * width + p] = a[i * width + q];
        a[i * width + q] = swap;
    }
}

static double column_norm(const double *a, int64_t rows, int64_t width, int64_t column)
{
    double norm = 0;
    for (int64_t i = 0; i < rows; i++) {
        norm = hypot(norm, a[i * width + column]);
    }
    return norm;
}

/* Makes all columns of a [n, m] orthogonal to each other, by rotations that v collects. */
static void columns_orthogonalize(double *a, int64_t n, int64_t m, double *v)
{
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        bool rotated = false;
        for (int64_t p = 0; p < m; p++) {
            for (int64_t q = p + 1; q < m; q++) {
                double alpha = 0, beta = 0, gamma = 0, c, s;
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[i * m + p], y = a[i * m + q];
                    alpha += x * x;
                    beta += y * y;
                    gamma += x * y;
                }
                if (fabs(gamma) <= DBL_EPSILON * sqrt(alpha) * sqrt(beta)) {
                    continue;
                }
                rotated = true;
                jacobi_rotation(alpha, beta, gamma, &c, &s);
                rotate_columns(a, n, m, p, q, c, s);
                rotate_columns(v, m, m, p, q, c, s);
            }
        }
        if (!rotated) {
            return;
        }
    }
}

/* One-sided: a [n, m], n >= m, becomes U S in its columns, in descending order, and v [m, m] is V.
 * The matrix is scaled by a power of two, so that squares neither overflow nor vanish. */
static void svd_factor(double *a, int64_t n, int64_t m, double *v)
{
    double most = 0;
    int exponent = 0;
    for (int64_t i = 0; i < n * m; i++) {
        most = fabs(a[i]) > most ? fabs(a[i]) : most;
    }
    frexp(most, &exponent);
    for (int64_t i = 0; i < n * m; i++) {
        a[i] = ldexp(a[i], -exponent);
    }
    memset(v, 0, (size_t)(m * m) * sizeof *v);
    for (int64_t i = 0; i < m; i++) {
        v[i * m + i] = 1;
    }
    columns_orthogonalize(a, n, m, v);
    for (int64_t i = 0; i < m; i++) {
        int64_t greatest = i;
        for (int64_t j = i + 1; j < m; j++) {
            greatest = column_norm(a, n, m, j) > column_norm(a, n, m, greatest) ? j : greatest;
        }
        swap_columns(a, n, m, i, greatest);
        swap_columns(v, m, m, i, greatest);
    }
    for (int64_t i = 0; i < n * m; i++) {
        a[i] = ldexp(a[i], exponent);
    }
}

/* ---- Calls on stacks of matrices ---- */

/* A stack [count, n, m] as doubles, in memory that the caller frees; null with an exception. */
static double *stack_read(array_object *x, int64_t shape[3])
{
    const hal_type type = ops_array_get_type(x->array);
    const int64_t count = ops_array_get_element_count(x->array);
    for (int i = 0; i < 3; i++) {
        shape[i] = ops_array_get_length(x->array, i);
    }
    double *values = PyMem_Malloc((size_t)(count + 1) * sizeof *values);
    if (!values) {
        return (double *)(void *)PyErr_NoMemory();
    }
    /* Narrow elements are read to the upper half, from which they are widened. */
    const size_t size = core_type_bytes((int)type);
    char *elements = (char *)values + (size_t)count * (sizeof *values - size);
    if (!core_read(x, elements, (size_t)count * size)) {
        PyMem_Free(values);
        return NULL;
    }
    for (int64_t i = 0; i < count && type == HAL_TYPE_F32; i++) {
        float narrow;
        memcpy(&narrow, elements + (size_t)i * size, sizeof narrow);
        values[i] = (double)narrow;
    }
    return values;
}

/* An array of x's type with these values, which are freed. */
static PyObject *stack_wrap(array_object *x, int64_t count, int64_t rows, int64_t columns,
                            double *values)
{
    const hal_type type = ops_array_get_type(x->array);
    const int64_t shape[3] = {count, rows, columns};
    float *narrow = (float *)(void *)values;
    for (int64_t i = 0; i < count * rows * columns && type == HAL_TYPE_F32; i++) {
        const float value = (float)values[i];
        memcpy(narrow + i, &value, sizeof value);
    }
    PyObject *made =
        core_wrap(x->context, ops_array_from_host(x->context->ops, type, 3, shape, values));
    PyMem_Free(values);
    return made;
}

static double *doubles(int64_t count)
{
    double *made = PyMem_Calloc((size_t)count + 1, sizeof *made);
    return made ? made : (double *)(void *)PyErr_NoMemory();
}

/* (x [count, n, n]): signs [count, 1, 1] and logarithms of the determinants. */
static PyObject *linalg_slogdet(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    if (!a) {
        return NULL;
    }
    const int64_t n = shape[1];
    double *signs = doubles(shape[0]), *logarithms = doubles(shape[0]);
    int64_t *rows = (int64_t *)(void *)doubles(n);
    for (int64_t i = 0; signs && logarithms && rows && i < shape[0]; i++) {
        double *const one = a + i * n * n;
        signs[i] = lu_factor(one, n, rows);
        for (int64_t k = 0; k < n; k++) {
            signs[i] *= one[k * n + k] < 0 ? -1 : 1;
            logarithms[i] += log(fabs(one[k * n + k]));
        }
        logarithms[i] = signs[i] == 0 ? -HUGE_VAL : logarithms[i];
    }
    PyMem_Free(a);
    PyMem_Free(rows);
    if (!signs || !logarithms || !rows) {
        PyMem_Free(signs);
        PyMem_Free(logarithms);
        return NULL;
    }
    PyObject *first = stack_wrap(x, shape[0], 1, 1, signs);
    PyObject *second = stack_wrap(x, shape[0], 1, 1, logarithms);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, n], b [count, n, m]): the solutions of x y = b. */
static PyObject *linalg_solve(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x, *y;
    if (!PyArg_ParseTuple(arguments, "O!O!", core_array_type, &x, core_array_type, &y)) {
        return NULL;
    }
    int64_t shape[3], other[3];
    double *a = stack_read(x, shape), *b = a ? stack_read(y, other) : NULL;
    double *solution = b ? doubles(other[0] * other[1] * other[2]) : NULL;
    int64_t *rows = solution ? (int64_t *)(void *)doubles(shape[1]) : NULL;
    bool singular = false;
    const int64_t n = shape[1], m = b ? other[2] : 0;
    for (int64_t i = 0; rows && i < shape[0] && !singular; i++) {
        singular = lu_factor(a + i * n * n, n, rows) == 0;
        if (!singular) {
            lu_solve(a + i * n * n, n, rows, b + i * n * m, m, solution + i * n * m);
        }
    }
    if (singular) {
        PyErr_SetString(PyExc_ValueError, "a matrix is singular");
    }
    PyMem_Free(a);
    PyMem_Free(b);
    if (!rows || singular) {
        PyMem_Free(rows);
        PyMem_Free(solution);
        return NULL;
    }
    PyMem_Free(rows);
    return stack_wrap(y, other[0], other[1], other[2], solution);
}

/* (x [count, n, n]): the lower triangles of x = L L^T. */
static PyObject *linalg_cholesky(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    bool definite = true;
    for (int64_t i = 0; a && i < shape[0] && definite; i++) {
        definite = cholesky_factor(a + i * shape[1] * shape[1], shape[1]);
    }
    if (a && !definite) {
        PyErr_SetString(PyExc_ValueError, "a matrix is not positive definite");
        PyMem_Free(a);
        return NULL;
    }
    return a ? stack_wrap(x, shape[0], shape[1], shape[1], a) : NULL;
}

/* (x [count, n, m]): Q [count, n, n] and R [count, n, m]. */
static PyObject *linalg_qr(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0, m = a ? shape[2] : 0;
    double *q = a ? doubles(shape[0] * n * n) : NULL, *v = q ? doubles(n) : NULL;
    if (!v) {
        PyMem_Free(a);
        PyMem_Free(q);
        return NULL;
    }
    for (int64_t i = 0; i < shape[0]; i++) {
        qr_factor(a + i * n * m, n, m, q + i * n * n, v);
    }
    PyMem_Free(v);
    PyObject *first = stack_wrap(x, shape[0], n, n, q), *second = stack_wrap(x, shape[0], n, m, a);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, n] symmetric): eigenvalues [count, 1, n] and eigenvectors, not in order. */
static PyObject *linalg_eigh(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0;
    double *values = a ? doubles(shape[0] * n) : NULL;
    double *vectors = values ? doubles(shape[0] * n * n) : NULL;
    for (int64_t i = 0; vectors && i < shape[0]; i++) {
        eigh_factor(a + i * n * n, n, vectors + i * n * n);
        for (int64_t k = 0; k < n; k++) {
            values[i * n + k] = a[i * n * n + k * n + k];
        }
    }
    PyMem_Free(a);
    if (!vectors) {
        PyMem_Free(values);
        return NULL;
    }
    PyObject *first = stack_wrap(x, shape[0], 1, n, values);
    PyObject *second = stack_wrap(x, shape[0], n, n, vectors);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, m], n >= m): U S [count, n, m] and V [count, m, m], in descending order. */
static PyObject *linalg_svd(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0, m = a ? shape[2] : 0;
    double *v = a ? doubles(shape[0] * m * m) : NULL;
    if (!v) {
        PyMem_Free(a);
        return NULL;
    }
    for (int64_t i = 0; i < shape[0]; i++) {
        svd_factor(a + i * n * m, n, m, v + i * m * m);
    }
    PyObject *first = stack_wrap(x, shape[0], n, m, a), *second = stack_wrap(x, shape[0], m, m, v);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

PyMethodDef core_linalg_methods[] = {
    {"slogdet", linalg_slogdet, METH_O, "(x): signs, logarithms"},
    {"solve", linalg_solve, METH_VARARGS, "(x, b)"},
    {"cholesky", linalg_cholesky, METH_O, "(x): L"},
    {"qr", linalg_qr, METH_O, "(x): Q, R"},
    {"eigh", linalg_eigh, METH_O, "(x): eigenvalues, eigenvectors"},
    {"svd", linalg_svd, METH_O, "(x): U S, V"},
    {NULL, NULL, 0, NULL},
};
