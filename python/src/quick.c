/* Functions of halyard._core that the functions of halyard/ try first: for arrays of floats, or of
 * one type, and plain arguments. They return None where the general way in Python is needed, which
 * also raises the errors. */
#include "core.h"

#include <string.h>

#define BIT(TYPE) HAL_TYPE_BIT(HAL_TYPE_##TYPE)
#define FLOATS (BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64))

static ops_array *float_array(PyObject *object)
{
    if (Py_TYPE(object) != core_array_type) {
        return NULL;
    }
    ops_array *array = ((array_object *)object)->array;
    const bool is_complex = ((array_object *)object)->is_complex;
    return !is_complex && (FLOATS >> ops_array_get_type(array)) & 1 ? array : NULL;
}

static bool is_pair(PyObject *x, PyObject *y)
{
    return Py_TYPE(x) == core_array_type && Py_TYPE(y) == core_array_type &&
           ((array_object *)x)->context == ((array_object *)y)->context &&
           core_dtype((array_object *)x) == core_dtype((array_object *)y);
}

/* (function, x), x of floats */
static PyObject *quick_unary(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    ops_array *x = count == 2 ? float_array(arguments[1]) : NULL;
    if (!x) {
        Py_RETURN_NONE;
    }
    const long function = PyLong_AsLong(arguments[0]);
    return core_wrap(((array_object *)arguments[1])->context,
                     ops_array_unary((ops_unary_function)function, x));
}

/* (function, x, y), both of one type of floats */
static PyObject *quick_binary(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !float_array(arguments[1]) || !is_pair(arguments[1], arguments[2])) {
        Py_RETURN_NONE;
    }
    array_object *x = (array_object *)arguments[1], *y = (array_object *)arguments[2];
    const long function = PyLong_AsLong(arguments[0]);
    return core_wrap(x->context,
                     ops_array_binary((ops_binary_function)function, x->array, y->array));
}

/* (condition, x, y): bool and two of one type */
static PyObject *quick_where(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || Py_TYPE(arguments[0]) != core_array_type ||
        !is_pair(arguments[1], arguments[2])) {
        Py_RETURN_NONE;
    }
    array_object *c = (array_object *)arguments[0], *x = (array_object *)arguments[1];
    if (ops_array_get_type(c->array) != HAL_TYPE_BOOL || c->context != x->context ||
        x->is_complex) {
        Py_RETURN_NONE;
    }
    return core_wrap(x->context,
                     ops_array_where(c->array, x->array, ((array_object *)arguments[2])->array));
}

/* All axes at once, as one; keepdims makes the shape of ones again. */
static ops_array *reduce_all(ops_reduction reduction, bool keeps, ops_array *x, uint32_t rank)
{
    int64_t shape[OPS_MAX_RANK];
    const int64_t size = ops_array_get_element_count(x);
    ops_array *flat = ops_array_reshape(x, 1, &size);
    ops_array *made = ops_array_reduce(reduction, 0, false, flat);
    ops_array_release(flat);
    if (!keeps || !made) {
        return made;
    }
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = 1;
    }
    ops_array *shaped = ops_array_reshape(made, rank, shape);
    ops_array_release(made);
    return shaped;
}

/* (reduction, x, axis, keepdims), x of floats, one axis or None for all */
static PyObject *quick_reduce(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    ops_array *x = count == 4 ? float_array(arguments[1]) : NULL;
    const uint32_t rank = x ? ops_array_get_rank(x) : 0;
    const bool is_all = count == 4 && arguments[2] == Py_None;
    if (rank == 0 || ops_array_get_element_count(x) == 0 ||
        !(is_all || PyLong_CheckExact(arguments[2]))) {
        Py_RETURN_NONE;
    }
    const ops_reduction reduction = (ops_reduction)PyLong_AsLong(arguments[0]);
    const bool keeps = arguments[3] == Py_True;
    context_object *context = ((array_object *)arguments[1])->context;
    if (is_all && rank > 1) {
        return core_wrap(context, reduce_all(reduction, keeps, x, rank));
    }
    int overflow = 0;
    const long long given = is_all ? 0 : PyLong_AsLongLongAndOverflow(arguments[2], &overflow);
    const long long axis = given < 0 ? given + rank : given;
    if (overflow || axis < 0 || axis >= rank || !(keeps || arguments[3] == Py_False)) {
        Py_RETURN_NONE;
    }
    return core_wrap(context, ops_array_reduce(reduction, (int32_t)axis, keeps, x));
}

bool core_is_plain_product(PyObject *x, PyObject *y)
{
    if (!float_array(x) || !is_pair(x, y)) {
        return false;
    }
    const ops_array *left = ((array_object *)x)->array, *right = ((array_object *)y)->array;
    return ops_array_get_rank(left) == 2 && ops_array_get_rank(right) == 2 &&
           ops_array_get_length(left, 1) == ops_array_get_length(right, 0) &&
           ops_array_get_element_count(left) > 0 && ops_array_get_element_count(right) > 0;
}

/* (x), a matrix: its transpose */
static PyObject *quick_transpose(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    static const int32_t axes[3] = {1, 0, 2}; /* the last one of complex numbers */
    if (count != 1 || Py_TYPE(arguments[0]) != core_array_type ||
        core_rank((array_object *)arguments[0]) != 2) {
        Py_RETURN_NONE;
    }
    array_object *x = (array_object *)arguments[0];
    return core_wrap_like(x, ops_array_permute(x->array, axes));
}

#define QUICK(name, text)                                                        \
    {                                                                            \
#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text " or None" \
    }

PyMethodDef core_quick_methods[] = {
    QUICK(quick_unary, "(function, x):"),
    QUICK(quick_binary, "(function, x, y):"),
    QUICK(quick_where, "(condition, x, y):"),
    QUICK(quick_reduce, "(reduction, x, axis, keepdims):"),
    QUICK(quick_transpose, "(x):"),
    {NULL, NULL, 0, NULL},
};
