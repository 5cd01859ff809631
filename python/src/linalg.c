/* Factorisations of small matrices, real and complex, for halyard/linalg.py, on the host in double
 * precision: LU with partial pivoting, Cholesky, Householder QR, and Jacobi's methods for
 * eigenvalues of Hermitian matrices and for singular values.
 *
 * Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, sections 3.4, 4.2, 5.2,
 * 8.5 and 8.6. */
#include "core.h"
#include "linalg_eig.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_SWEEPS 60

/* ---- Factorisations of one matrix ---- */

/* The rotation that makes the product of two columns 0: of the squares alpha and beta, and the
 * product gamma. */
static void jacobi_rotation(double alpha, double beta, double gamma, double *c, double *s)
{
    const double zeta = (beta - alpha) / (2 * gamma);
    const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta));
    *c = 1 / sqrt(1 + t * t);
    *s = *c * t;
}

#define NUMBER double
#define NAME(function) function##_real
#define ABS(x) fabs(x)
#define REAL(x) (x)
#define CONJ(x) (x)
#include "linalg_factor.inl"
#undef NUMBER
#undef NAME
#undef ABS
#undef REAL
#undef CONJ

#define NUMBER double complex
#define NAME(function) function##_complex
#define ABS(x) cabs(x)
#define REAL(x) creal(x)
#define CONJ(x) conj(x)
#include "linalg_factor.inl"
#undef NUMBER
#undef NAME
#undef ABS
#undef REAL
#undef CONJ

/* The function of a matrix of x's numbers. */
#define FACTOR(x, function) ((x)->is_complex ? function##_complex : function##_real)

/* ---- Calls on stacks of matrices ---- */

/* Doubles of a number. */
static int64_t width_of(const array_object *x)
{
    return x->is_complex ? 2 : 1;
}

/* A stack [count, n, m] as doubles, complex numbers as pairs, in memory that the caller frees; null
 * with an exception. */
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

/* An array of the type of x's parts with these values, which are freed. */
static PyObject *stack_wrap(const array_object *x, bool is_complex, int64_t count, int64_t rows,
                            int64_t columns, double *values)
{
    const hal_type type = ops_array_get_type(x->array);
    const int64_t shape[4] = {count, rows, columns, 2};
    const int64_t doubles = count * rows * columns * (is_complex ? 2 : 1);
    float *narrow = (float *)(void *)values;
    for (int64_t i = 0; i < doubles && type == HAL_TYPE_F32; i++) {
        const float value = (float)values[i];
        memcpy(narrow + i, &value, sizeof value);
    }
    PyObject *made = core_wrap_parts(
        x->context, core_from_host(x->context, type, is_complex ? 4 : 3, shape, values),
        is_complex);
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
    const int64_t n = shape[1], width = width_of(x);
    double *signs = doubles(shape[0] * width), *logarithms = doubles(shape[0]);
    int64_t *rows = (int64_t *)(void *)doubles(n);
    for (int64_t i = 0; signs && logarithms && rows && i < shape[0]; i++) {
        double *const one = a + i * n * n * width, *const sign = signs + i * width;
        *sign = FACTOR(x, lu_factor)(one, n, rows);
        logarithms[i] = *sign == 0 ? -HUGE_VAL : FACTOR(x, lu_logarithm)(one, n, sign);
    }
    PyMem_Free(a);
    PyMem_Free(rows);
    if (!signs || !logarithms || !rows) {
        PyMem_Free(signs);
        PyMem_Free(logarithms);
        return NULL;
    }
    PyObject *first = stack_wrap(x, x->is_complex, shape[0], 1, 1, signs);
    PyObject *second = stack_wrap(x, false, shape[0], 1, 1, logarithms);
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
    const int64_t width = width_of(x);
    double *a = stack_read(x, shape), *b = a ? stack_read(y, other) : NULL;
    double *solution = b ? doubles(other[0] * other[1] * other[2] * width) : NULL;
    int64_t *rows = solution ? (int64_t *)(void *)doubles(shape[1]) : NULL;
    bool singular = false;
    const int64_t n = shape[1], m = b ? other[2] : 0;
    for (int64_t i = 0; rows && i < shape[0] && !singular; i++) {
        double *const one = a + i * n * n * width;
        singular = FACTOR(x, lu_factor)(one, n, rows) == 0;
        if (!singular) {
            FACTOR(x, lu_solve)
            (one, n, rows, b + i * n * m * width, m, solution + i * n * m * width);
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
    return stack_wrap(y, y->is_complex, other[0], other[1], other[2], solution);
}

/* (x [count, n, n]): the lower triangles of x = L L^H. */
static PyObject *linalg_cholesky(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    bool definite = true;
    for (int64_t i = 0; a && i < shape[0] && definite; i++) {
        definite = FACTOR(x, cholesky_factor)(a + i * shape[1] * shape[1] * width_of(x), shape[1]);
    }
    if (a && !definite) {
        PyErr_SetString(PyExc_ValueError, "a matrix is not positive definite");
        PyMem_Free(a);
        return NULL;
    }
    return a ? stack_wrap(x, x->is_complex, shape[0], shape[1], shape[1], a) : NULL;
}

/* (x [count, n, m]): Q [count, n, n] and R [count, n, m]. */
static PyObject *linalg_qr(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0, m = a ? shape[2] : 0, width = x ? width_of(x) : 0;
    double *q = a ? doubles(shape[0] * n * n * width) : NULL, *v = q ? doubles(n * width) : NULL;
    if (!v) {
        PyMem_Free(a);
        PyMem_Free(q);
        return NULL;
    }
    for (int64_t i = 0; i < shape[0]; i++) {
        FACTOR(x, qr_factor)(a + i * n * m * width, n, m, q + i * n * n * width, v);
    }
    PyMem_Free(v);
    PyObject *first = stack_wrap(x, x->is_complex, shape[0], n, n, q);
    PyObject *second = stack_wrap(x, x->is_complex, shape[0], n, m, a);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, n] Hermitian): eigenvalues [count, 1, n], real, and eigenvectors, not in order. */
static PyObject *linalg_eigh(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0, width = x ? width_of(x) : 0;
    double *values = a ? doubles(shape[0] * n) : NULL;
    double *vectors = values ? doubles(shape[0] * n * n * width) : NULL;
    for (int64_t i = 0; vectors && i < shape[0]; i++) {
        FACTOR(x, eigh_factor)
        (a + i * n * n * width, n, values + i * n, vectors + i * n * n * width);
    }
    PyMem_Free(a);
    if (!vectors) {
        PyMem_Free(values);
        return NULL;
    }
    PyObject *first = stack_wrap(x, false, shape[0], 1, n, values);
    PyObject *second = stack_wrap(x, x->is_complex, shape[0], n, n, vectors);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, n] complex): eigenvalues [count, 1, n] and eigenvectors, not in order. */
static PyObject *linalg_eig(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x && x->is_complex ? stack_read(x, shape) : NULL;
    if (!a) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected complex numbers");
    }
    const int64_t n = shape[1];
    double *values = doubles(2 * shape[0] * n), *vectors = doubles(2 * shape[0] * n * n);
    double *scratch = doubles(2 * n * n + 2 * n);
    const bool has_memory = values && vectors && scratch;
    bool converged = true;
    for (int64_t i = 0; has_memory && converged && i < shape[0]; i++) {
        converged = linalg_eig_factor((double complex *)(void *)(a + 2 * i * n * n), n,
                                      (double complex *)(void *)(values + 2 * i * n),
                                      (double complex *)(void *)(vectors + 2 * i * n * n),
                                      (double complex *)(void *)scratch);
    }
    PyMem_Free(a);
    PyMem_Free(scratch);
    if (!has_memory || !converged) {
        PyMem_Free(values);
        PyMem_Free(vectors);
        if (has_memory) {
            PyErr_SetString(PyExc_ValueError, "eigenvalues were not found: the matrix has NaN or "
                                              "infinities");
        }
        return NULL;
    }
    PyObject *first = stack_wrap(x, true, shape[0], 1, n, values);
    PyObject *second = stack_wrap(x, true, shape[0], n, n, vectors);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

/* (x [count, n, m], n >= m): U S [count, n, m] and V [count, m, m], in descending order. */
static PyObject *linalg_svd(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    int64_t shape[3];
    double *a = x ? stack_read(x, shape) : NULL;
    const int64_t n = a ? shape[1] : 0, m = a ? shape[2] : 0, width = x ? width_of(x) : 0;
    double *v = a ? doubles(shape[0] * m * m * width) : NULL;
    if (!v) {
        PyMem_Free(a);
        return NULL;
    }
    for (int64_t i = 0; i < shape[0]; i++) {
        FACTOR(x, svd_factor)(a + i * n * m * width, n, m, v + i * m * m * width);
    }
    PyObject *first = stack_wrap(x, x->is_complex, shape[0], n, m, a);
    PyObject *second = stack_wrap(x, x->is_complex, shape[0], m, m, v);
    return first && second ? Py_BuildValue("NN", first, second) : NULL;
}

PyMethodDef core_linalg_methods[] = {
    {"slogdet", linalg_slogdet, METH_O, "(x): signs, logarithms"},
    {"solve", linalg_solve, METH_VARARGS, "(x, b)"},
    {"cholesky", linalg_cholesky, METH_O, "(x): L"},
    {"qr", linalg_qr, METH_O, "(x): Q, R"},
    {"eigh", linalg_eigh, METH_O, "(x): eigenvalues, eigenvectors"},
    {"eig", linalg_eig, METH_O, "(x): eigenvalues, eigenvectors"},
    {"svd", linalg_svd, METH_O, "(x): U S, V"},
    {NULL, NULL, 0, NULL},
};
