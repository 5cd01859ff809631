/* Functions of halyard._core that compute on the host, because ops has no such operation: elements
 * as Python numbers, positions of nonzero elements, sorting, searching, inverse of an index. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* Reads an array into memory that the caller frees; null with an exception. */
static void *elements_read(array_object *x)
{
    const size_t bytes = (size_t)ops_array_get_element_count(x->array) *
                         core_type_bytes(ops_array_get_type(x->array));
    void *elements = PyMem_Malloc(bytes + 1);
    if (!elements) {
        return PyErr_NoMemory();
    }
    if (!core_read(x, elements, bytes)) {
        PyMem_Free(elements);
        return NULL;
    }
    return elements;
}

static PyObject *element_load(hal_type type, const void *element)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
    } value;
    memcpy(&value, element, core_type_bytes(type));
    switch (type) {
    case HAL_TYPE_BOOL:
        return PyBool_FromLong(value.u8);
    case HAL_TYPE_I8:
        return PyLong_FromLong(value.i8);
    case HAL_TYPE_U8:
        return PyLong_FromLong(value.u8);
    case HAL_TYPE_I16:
        return PyLong_FromLong(value.i16);
    case HAL_TYPE_U16:
        return PyLong_FromLong(value.u16);
    case HAL_TYPE_I32:
        return PyLong_FromLong(value.i32);
    case HAL_TYPE_U32:
        return PyLong_FromUnsignedLong(value.u32);
    case HAL_TYPE_I64:
        return PyLong_FromLongLong(value.i64);
    case HAL_TYPE_U64:
        return PyLong_FromUnsignedLongLong(value.u64);
    case HAL_TYPE_F32:
        return PyFloat_FromDouble((double)value.f32);
    case HAL_TYPE_F64:
        return PyFloat_FromDouble(value.f64);
    default:
        PyErr_SetString(PyExc_TypeError, "cast narrow floats to float32 first");
        return NULL;
    }
}

static PyObject *host_values(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    char *elements = x ? elements_read(x) : NULL;
    if (!elements) {
        return NULL;
    }
    const hal_type type = ops_array_get_type(x->array);
    const size_t size = core_type_bytes(type);
    const int64_t count = ops_array_get_element_count(x->array);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *number = element_load(type, elements + (size_t)i * size);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) {
            Py_CLEAR(list);
        }
    }
    PyMem_Free(elements);
    return list;
}

static PyObject *host_item(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    char element[8];
    if (!x || !core_read(x, element, core_type_bytes(ops_array_get_type(x->array)))) {
        return NULL;
    }
    return element_load(ops_array_get_type(x->array), element);
}

static PyObject *indices_wrap(context_object *context, uint32_t rank, const int64_t *shape,
                              int64_t *indices)
{
    PyObject *made =
        core_wrap(context, ops_array_from_host(context->ops, HAL_TYPE_I64, rank, shape, indices));
    PyMem_Free(indices);
    return made;
}

/* Positions of true elements in row-major order, of a BOOL array: I64 of rank 1. */
static PyObject *host_nonzero(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    uint8_t *mask = x ? elements_read(x) : NULL;
    if (!mask) {
        return NULL;
    }
    const int64_t count = ops_array_get_element_count(x->array);
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        found += mask[i] != 0;
    }
    int64_t *indices = PyMem_Malloc((size_t)(found + 1) * sizeof *indices);
    if (!indices) {
        PyMem_Free(mask);
        return PyErr_NoMemory();
    }
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        indices[at] = i;
        at += mask[i] != 0;
    }
    PyMem_Free(mask);
    return indices_wrap(x->context, 1, &found, indices);
}

/* ---- Order ---- */

/* A number whose unsigned order is that of the element: -0 equals 0, NaN comes last. */
static uint64_t order_key(hal_type type, const void *element)
{
    const uint64_t top = UINT64_C(1) << 63;
    double value = 0;
    int64_t whole = 0;
    float narrow;
    switch (type) {
    case HAL_TYPE_BOOL:
    case HAL_TYPE_U8:
        return *(const uint8_t *)element;
    case HAL_TYPE_U16:
        return *(const uint16_t *)element;
    case HAL_TYPE_U32:
        return *(const uint32_t *)element;
    case HAL_TYPE_U64:
        return *(const uint64_t *)element;
    case HAL_TYPE_I8:
        whole = *(const int8_t *)element;
        return (uint64_t)whole ^ top;
    case HAL_TYPE_I16:
        whole = *(const int16_t *)element;
        return (uint64_t)whole ^ top;
    case HAL_TYPE_I32:
        whole = *(const int32_t *)element;
        return (uint64_t)whole ^ top;
    case HAL_TYPE_I64:
        whole = *(const int64_t *)element;
        return (uint64_t)whole ^ top;
    case HAL_TYPE_F32:
        memcpy(&narrow, element, sizeof narrow);
        value = (double)narrow;
        break;
    default:
        memcpy(&value, element, sizeof value);
        break;
    }
    if (value != value) {
        return UINT64_MAX;
    }
    uint64_t bits;
    value += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits & top ? ~bits : bits | top;
}

typedef struct order_entry {
    uint64_t key;
    int64_t index;
} order_entry;

/* Stable merge sort, bottom-up; the result is in `entries`. */
static void entries_sort(order_entry *entries, order_entry *scratch, int64_t count)
{
    order_entry *from = entries, *to = scratch;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            const int64_t middle = low + width < count ? low + width : count;
            const int64_t high = low + 2 * width < count ? low + 2 * width : count;
            int64_t left = low, right = middle;
            for (int64_t i = low; i < high; i++) {
                const bool is_left =
                    left < middle && (right >= high || from[left].key <= from[right].key);
                to[i] = from[is_left ? left++ : right++];
            }
        }
        order_entry *const swap = from;
        from = to;
        to = swap;
    }
    if (from != entries) {
        memcpy(entries, from, (size_t)count * sizeof *entries);
    }
}

/* (x [rows, n], descending): the stable order of each row, I64 of x's shape. */
static PyObject *host_argsort(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    int descending;
    if (!PyArg_ParseTuple(arguments, "O!p", core_array_type, &x, &descending)) {
        return NULL;
    }
    const int64_t shape[2] = {ops_array_get_length(x->array, 0), ops_array_get_length(x->array, 1)};
    const hal_type type = ops_array_get_type(x->array);
    const size_t size = core_type_bytes(type);
    char *elements = elements_read(x);
    const int64_t count = shape[0] * shape[1];
    int64_t *order = PyMem_Malloc((size_t)(count + 1) * sizeof *order);
    order_entry *entries = PyMem_Malloc((size_t)(2 * shape[1] + 1) * sizeof *entries);
    if (!elements || !order || !entries) {
        PyMem_Free(elements);
        PyMem_Free(order);
        PyMem_Free(entries);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (int64_t row = 0; row < shape[0]; row++) {
        for (int64_t i = 0; i < shape[1]; i++) {
            const uint64_t key = order_key(type, elements + (size_t)(row * shape[1] + i) * size);
            entries[i] = (order_entry){descending ? ~key : key, i};
        }
        entries_sort(entries, entries + shape[1], shape[1]);
        for (int64_t i = 0; i < shape[1]; i++) {
            order[row * shape[1] + i] = entries[i].index;
        }
    }
    PyMem_Free(elements);
    PyMem_Free(entries);
    return indices_wrap(x->context, 2, shape, order);
}

/* (sorted [n], values [m] of the same type, right): the place of each value in `sorted`. */
static PyObject *host_searchsorted(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x, *values;
    int right;
    if (!PyArg_ParseTuple(arguments, "O!O!p", core_array_type, &x, core_array_type, &values,
                          &right)) {
        return NULL;
    }
    const hal_type type = ops_array_get_type(x->array);
    const size_t size = core_type_bytes(type);
    const int64_t length = ops_array_get_element_count(x->array);
    const int64_t count = ops_array_get_element_count(values->array);
    char *sorted = elements_read(x), *wanted = sorted ? elements_read(values) : NULL;
    int64_t *places = wanted ? PyMem_Malloc((size_t)(count + 1) * sizeof *places) : NULL;
    for (int64_t i = 0; places && i < count; i++) {
        const uint64_t key = order_key(type, wanted + (size_t)i * size);
        int64_t low = 0, high = length;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            const uint64_t other = order_key(type, sorted + (size_t)middle * size);
            if (other < key || (right && other == key)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        places[i] = low;
    }
    PyMem_Free(sorted);
    PyMem_Free(wanted);
    if (!places) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return indices_wrap(x->context, 1, &count, places);
}

/* (indices I64 of rank 1, n): I64 [n] with the last k where indices[k] is i, or -1. */
static PyObject *host_inverse(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    long long length;
    if (!PyArg_ParseTuple(arguments, "O!L", core_array_type, &x, &length)) {
        return NULL;
    }
    int64_t *indices = elements_read(x);
    int64_t *inverse = indices ? PyMem_Malloc((size_t)(length + 1) * sizeof *inverse) : NULL;
    if (!inverse) {
        PyMem_Free(indices);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    memset(inverse, 0xff, (size_t)length * sizeof *inverse);
    for (int64_t k = 0; k < ops_array_get_element_count(x->array); k++) {
        if (indices[k] < 0 || indices[k] >= length) {
            PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for %lld elements",
                         (long long)indices[k], length);
            break;
        }
        inverse[indices[k]] = k;
    }
    PyMem_Free(indices);
    if (PyErr_Occurred()) {
        PyMem_Free(inverse);
        return NULL;
    }
    const int64_t count = length;
    return indices_wrap(x->context, 1, &count, inverse);
}

PyMethodDef core_host_methods[] = {
    {"values", host_values, METH_O, "(x): the elements as a list of Python numbers"},
    {"item", host_item, METH_O, "(x): the one element as a Python number"},
    {"nonzero", host_nonzero, METH_O, "(x): flat positions of true elements"},
    {"argsort", host_argsort, METH_VARARGS, "(x, descending)"},
    {"searchsorted", host_searchsorted, METH_VARARGS, "(sorted, values, right)"},
    {"inverse", host_inverse, METH_VARARGS, "(indices, length)"},
    {NULL, NULL, 0, NULL},
};
