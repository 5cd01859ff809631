/* Functions of halyard._core for arrays of complex numbers (ops/complex.h), which Python sees
 * without the axis of their parts. */
#include "core.h"

ops_array *core_spread(const array_object *x)
{
    int64_t shape[OPS_MAX_RANK + 1];
    const uint32_t rank = ops_array_get_rank(x->array);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = ops_array_get_length(x->array, (int32_t)i);
    }
    shape[rank] = 1;
    return ops_array_reshape(x->array, rank + 1, shape);
}

/* The array of complex numbers that a call takes, or null with TypeError. */
static array_object *complex_array(PyObject *object)
{
    array_object *x = core_array(object);
    if (x && !x->is_complex) {
        PyErr_SetString(PyExc_TypeError, "expected an array of complex numbers");
        return NULL;
    }
    return x;
}

static PyObject *complex_unary(PyObject *module, PyObject *arguments)
{
    (void)module;
    int function;
    PyObject *object;
    if (!PyArg_ParseTuple(arguments, "iO", &function, &object)) {
        return NULL;
    }
    array_object *x = complex_array(object);
    return x ? core_wrap_parts(x->context,
                               ops_complex_unary((ops_complex_unary_function)function, x->array),
                               function > OPS_COMPLEX_ANGLE)
             : NULL;
}

static PyObject *complex_test(PyObject *module, PyObject *arguments)
{
    (void)module;
    int test;
    PyObject *object;
    if (!PyArg_ParseTuple(arguments, "iO", &test, &object)) {
        return NULL;
    }
    array_object *x = complex_array(object);
    return x ? core_wrap(x->context, ops_complex_test((ops_unary_function)test, x->array)) : NULL;
}

static PyObject *complex_real(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = complex_array(object);
    return x ? core_wrap(x->context, ops_complex_real(x->array)) : NULL;
}

static PyObject *complex_imag(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = complex_array(object);
    return x ? core_wrap(x->context, ops_complex_imag(x->array)) : NULL;
}

/* (re, im) of one type of floats */
static PyObject *complex_join(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *re, *im;
    if (!PyArg_ParseTuple(arguments, "O!O!", core_array_type, &re, core_array_type, &im)) {
        return NULL;
    }
    if (re->context != im->context || re->is_complex || im->is_complex) {
        PyErr_SetString(PyExc_ValueError, "expected real arrays of one device");
        return NULL;
    }
    return core_wrap_parts(re->context, ops_complex_join(re->array, im->array), true);
}

/* (x) of parts, with a last axis of length 2: the same array as complex numbers */
static PyObject *complex_view(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    return x ? core_wrap_parts(x->context, ops_array_retain(x->array), true) : NULL;
}

PyMethodDef core_complex_methods[] = {
    {"complex_unary", complex_unary, METH_VARARGS, "(function, x)"},
    {"complex_test", complex_test, METH_VARARGS, "(function, x)"},
    {"complex_real", complex_real, METH_O, "(x): a view"},
    {"complex_imag", complex_imag, METH_O, "(x): a view"},
    {"complex_view", complex_view, METH_O, "(parts)"},
    {"complex_join", complex_join, METH_VARARGS, "(re, im)"},
    {NULL, NULL, 0, NULL},
};
