/* Functions of halyard._core that compute on the host, because ops has no such operation: elements
 * as Python numbers, positions of nonzero elements, binary search. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* Reads an array into memory that the caller frees; null with an exception. */
static void *elements_read(array_object *x)
{
    const size_t bytes = (size_t)core_count(x) * core_type_bytes(core_dtype(x));
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

static PyObject *element_load(int dtype, const void *element)
{
    const hal_type type = core_part_type(dtype);
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
    if (dtype & CORE_COMPLEX) {
        float narrow[2];
        double parts[2];
        memcpy(narrow, element, sizeof narrow);
        if (type == HAL_TYPE_F64) {
            memcpy(parts, element, sizeof parts);
        } else {
            parts[0] = (double)narrow[0];
            parts[1] = (double)narrow[1];
        }
        return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    memcpy(&value, element, core_type_bytes((int)type));
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
    const int dtype = core_dtype(x);
    const size_t size = core_type_bytes(dtype);
    const int64_t count = core_count(x);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *number = element_load(dtype, elements + (size_t)i * size);
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
    char element[16];
    if (!x || !core_read(x, element, core_type_bytes(core_dtype(x)))) {
        return NULL;
    }
    return element_load(core_dtype(x), element);
}

static PyObject *indices_wrap(context_object *context, uint32_t rank, const int64_t *shape,
                              int64_t *indices)
{
    PyObject *made =
        core_wrap(context, core_from_host(context, HAL_TYPE_I64, rank, shape, indices));
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
    const size_t size = core_type_bytes((int)type);
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

PyMethodDef core_host_methods[] = {
    {"values", host_values, METH_O, "(x): the elements as a list of Python numbers"},
    {"item", host_item, METH_O, "(x): the one element as a Python number"},
    {"nonzero", host_nonzero, METH_O, "(x): flat positions of true elements"},
    {"searchsorted", host_searchsorted, METH_VARARGS, "(sorted, values, right)"},
    {NULL, NULL, 0, NULL},
};
