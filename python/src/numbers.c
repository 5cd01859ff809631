/* Arrays of Python's numbers, of nested lists of them, and of buffers; as in quick.c, what is
 * unusual is left to Python. The numbers are collected first: their kinds choose the dtype. */
#include "core.h"

#include <string.h>

typedef struct number_list {
    int64_t shape[OPS_MAX_RANK];
    int rank;
    size_t count;
    PyObject **items; /* borrowed: nothing runs Python's code until they are read */
    bool has_float, has_int;
} number_list;

/* Its elements are read into memory of this many pointers at most. */
#define MAX_COUNT ((size_t)1 << 24)

static Py_ssize_t list_length(PyObject *object)
{
    return PyList_CheckExact(object)    ? PyList_Size(object)
           : PyTuple_CheckExact(object) ? PyTuple_Size(object)
                                        : -1;
}

static PyObject *list_item(PyObject *object, Py_ssize_t index)
{
    return PyList_CheckExact(object) ? PyList_GetItem(object, index)
                                     : PyTuple_GetItem(object, index);
}

/* The lengths of the first list of each depth. False if the general way is needed. */
static bool shape_find(PyObject *object, number_list *list)
{
    list->count = 1;
    for (Py_ssize_t length; (length = list_length(object)) >= 0; object = list_item(object, 0)) {
        if (length == 0 || list->rank == OPS_MAX_RANK || (size_t)length > MAX_COUNT / list->count) {
            return false;
        }
        list->shape[list->rank++] = length;
        list->count *= (size_t)length;
    }
    return true;
}

static bool numbers_collect(PyObject *object, int depth, number_list *list)
{
    if (depth == list->rank) {
        list->has_float |= PyFloat_CheckExact(object);
        list->has_int |= PyLong_CheckExact(object);
        list->items[list->count++] = object;
        return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object);
    }
    const Py_ssize_t length = list->shape[depth];
    if (list_length(object) != length) {
        return false;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        if (!numbers_collect(list_item(object, i), depth + 1, list)) {
            return false;
        }
    }
    return true;
}

/* Null without an exception if a number does not fit. */
static ops_array *array_make(context_object *context, hal_type type, const number_list *list)
{
    const size_t size = core_type_bytes((int)type);
    char *elements = PyMem_Malloc(list->count * size);
    bool is_stored = elements;
    for (size_t i = 0; is_stored && i < list->count; i++) {
        is_stored = core_number_store((int)type, list->items[i], elements + i * size);
    }
    ops_array *made =
        is_stored ? core_from_host(context, type, (uint32_t)list->rank, list->shape, elements)
                  : NULL;
    PyMem_Free(elements);
    PyErr_Clear();
    return made;
}

/* The type of a buffer's elements, of its format; HAL_TYPE_COUNT: another one. */
static hal_type buffer_type(const Py_buffer *buffer)
{
    static const hal_type whole[2][4] = {{HAL_TYPE_I8, HAL_TYPE_I16, HAL_TYPE_I32, HAL_TYPE_I64},
                                         {HAL_TYPE_U8, HAL_TYPE_U16, HAL_TYPE_U32, HAL_TYPE_U64}};
    const char letter = buffer->format && !buffer->format[1] ? buffer->format[0] : 0;
    const bool is_signed = letter && strchr("bhilqn", letter);
    switch (letter) {
    case 'f':
        return HAL_TYPE_F32;
    case 'd':
        return HAL_TYPE_F64;
    case '?':
        return HAL_TYPE_BOOL;
    default:
        break;
    }
    for (int i = 0; letter && strchr("bhilqnBHILQN", letter) && i < 4; i++) {
        if (buffer->itemsize == (Py_ssize_t)1 << i) {
            return whole[!is_signed][i];
        }
    }
    return HAL_TYPE_COUNT;
}

/* Null without an exception if the general way is needed. */
static ops_array *buffer_read(context_object *context, PyObject *object, PyObject *dtype)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(object, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return NULL;
    }
    int64_t shape[OPS_MAX_RANK];
    const hal_type type = buffer_type(&buffer);
    ops_array *made = NULL;
    const bool fits = dtype == Py_None || (hal_type)PyLong_AsLong(dtype) == type;
    if (type != HAL_TYPE_COUNT && fits && buffer.ndim <= (int)OPS_MAX_RANK) {
        for (int i = 0; i < buffer.ndim; i++) {
            shape[i] = buffer.shape[i];
        }
        made = core_from_host(context, type, (uint32_t)buffer.ndim, shape, buffer.buf);
    }
    PyBuffer_Release(&buffer);
    return made;
}

/* (context, object, dtype or None): of floats, ints and bools that fit the dtype, or its buffer */
static PyObject *quick_numbers(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    number_list list = {.rank = 0};
    if (count != 3 || Py_TYPE(arguments[0]) != core_context_type) {
        Py_RETURN_NONE;
    }
    context_object *context = (context_object *)arguments[0];
    const bool is_number =
        PyFloat_Check(arguments[1]) || PyLong_Check(arguments[1]) || PyComplex_Check(arguments[1]);
    if (!is_number && PyObject_CheckBuffer(arguments[1])) {
        ops_array *read = buffer_read(context, arguments[1], arguments[2]);
        return read ? core_wrap(context, read) : Py_NewRef(Py_None);
    }
    if (!shape_find(arguments[1], &list)) {
        Py_RETURN_NONE;
    }
    list.items = PyMem_Malloc(list.count * sizeof *list.items);
    list.count = 0;
    ops_array *made = NULL;
    if (list.items && numbers_collect(arguments[1], 0, &list)) {
        const long dtype = arguments[2] != Py_None ? PyLong_AsLong(arguments[2])
                           : list.has_float        ? HAL_TYPE_F32
                           : list.has_int          ? HAL_TYPE_I64
                                                   : HAL_TYPE_BOOL;
        const bool is_float = dtype == HAL_TYPE_F32 || dtype == HAL_TYPE_F64;
        const bool is_whole = dtype >= 0 && !(dtype & CORE_COMPLEX) && dtype != HAL_TYPE_F16 &&
                              dtype != HAL_TYPE_BF16 && !list.has_float;
        made = is_float || is_whole ? array_make(context, (hal_type)dtype, &list) : NULL;
    }
    PyMem_Free(list.items);
    if (!made) {
        Py_RETURN_NONE;
    }
    return core_wrap(context, made);
}

PyMethodDef core_number_methods[] = {
    {"quick_numbers", (PyCFunction)(void (*)(void))quick_numbers, METH_FASTCALL,
     "(context, object, dtype or None): or None"},
    {NULL, NULL, 0, NULL},
};
