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

enum { MAX_JOINED = 16 };

/* Whether the parts have elements, one dtype, one device, and one shape but for the axis; -1: one
 * shape. */
static bool are_joinable(PyObject *const *parts, Py_ssize_t count, long long axis)
{
    if (Py_TYPE(parts[0]) != core_array_type) {
        return false;
    }
    const ops_array *first = ((array_object *)parts[0])->array;
    const int32_t rank = (int32_t)ops_array_get_rank(first);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_pair(parts[0], parts[i])) {
            return false;
        }
        const ops_array *part = ((array_object *)parts[i])->array;
        bool fits =
            (int32_t)ops_array_get_rank(part) == rank && ops_array_get_element_count(part) > 0;
        for (int32_t k = 0; fits && k < rank; k++) {
            fits = k == axis || ops_array_get_length(part, k) == ops_array_get_length(first, k);
        }
        if (!fits) {
            return false;
        }
    }
    return true;
}

typedef enum join_kind { JOIN_AXIS, JOIN_NEW_AXIS, JOIN_FLAT } join_kind;

/* The part as a view with a new axis of length 1, or with one axis. The parts of complex numbers
 * keep theirs. */
static ops_array *part_view(const array_object *part, join_kind kind, int32_t axis)
{
    int64_t shape[OPS_MAX_RANK] = {core_count(part), 2};
    if (kind == JOIN_FLAT) {
        return ops_array_reshape(part->array, part->is_complex ? 2 : 1, shape);
    }
    const int32_t rank = (int32_t)ops_array_get_rank(part->array) + 1;
    for (int32_t k = 0; k < rank; k++) {
        shape[k] = k == axis ? 1 : ops_array_get_length(part->array, k < axis ? k : k - 1);
    }
    return ops_array_reshape(part->array, (uint32_t)rank, shape);
}

/* Null as ops reports. */
static ops_array *parts_join(PyObject *const *parts, Py_ssize_t count, join_kind kind, int32_t axis)
{
    ops_array *arrays[MAX_JOINED];
    bool is_ready = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        const array_object *part = (array_object *)parts[i];
        arrays[i] = kind == JOIN_AXIS ? part->array : part_view(part, kind, axis);
        is_ready = is_ready && arrays[i];
    }
    ops_array *made = is_ready ? ops_array_concatenate(axis, arrays, (uint32_t)count) : NULL;
    for (Py_ssize_t i = 0; kind != JOIN_AXIS && i < count; i++) {
        ops_array_release(arrays[i]);
    }
    return made;
}

/* (arrays, axis, stacks): of a list or tuple; axis None: flat; with stacks True along a new axis */
static PyObject *quick_join(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    PyObject *parts[MAX_JOINED];
    const bool is_list = count == 3 && PyList_CheckExact(arguments[0]);
    const bool is_tuple = count == 3 && PyTuple_CheckExact(arguments[0]);
    const Py_ssize_t part_count = is_list    ? PyList_Size(arguments[0])
                                  : is_tuple ? PyTuple_Size(arguments[0])
                                             : 0;
    if (part_count < 2 || part_count > MAX_JOINED) {
        Py_RETURN_NONE;
    }
    for (Py_ssize_t i = 0; i < part_count; i++) {
        parts[i] = is_list ? PyList_GetItem(arguments[0], i) : PyTuple_GetItem(arguments[0], i);
    }
    const join_kind kind = arguments[2] == Py_True   ? JOIN_NEW_AXIS
                           : arguments[1] == Py_None ? JOIN_FLAT
                                                     : JOIN_AXIS;
    if (Py_TYPE(parts[0]) != core_array_type ||
        !(kind == JOIN_FLAT || PyLong_CheckExact(arguments[1]))) {
        Py_RETURN_NONE;
    }
    array_object *first = (array_object *)parts[0];
    const uint32_t rank =
        kind == JOIN_FLAT ? 1 : core_rank(first) + (kind == JOIN_NEW_AXIS ? 1 : 0);
    int overflow = 0;
    const long long given =
        kind == JOIN_FLAT ? 0 : PyLong_AsLongLongAndOverflow(arguments[1], &overflow);
    const long long axis = given < 0 ? given + rank : given;
    if (overflow || axis < 0 || axis >= rank || rank + first->is_complex > OPS_MAX_RANK ||
        !are_joinable(parts, part_count, kind == JOIN_AXIS ? axis : -1)) {
        Py_RETURN_NONE;
    }
    return core_wrap_like(first, parts_join(parts, part_count, kind, (int32_t)axis));
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
    QUICK(quick_join, "(arrays, axis, stacks):"),
    {NULL, NULL, 0, NULL},
};
