/* Keys of ints, slices, None and one ellipsis: x[key], and x[key] = value in the memory of x. The
 * functions return None for other keys, for keys that take nothing or are wrong, and where the
 * value needs conversion: halyard/_index.py does those, and raises the errors. */
#include "core.h"

#include <string.h>

#define BIT(TYPE) HAL_TYPE_BIT(HAL_TYPE_##TYPE)
#define FLOATS (BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64))
#define NEW_AXIS UINT32_MAX

typedef struct key_slice {
    int64_t start, count, step;
    int32_t axis;
} key_slice;

typedef struct key_parts {
    key_slice slices[OPS_MAX_RANK]; /* of axes that are not whole */
    uint32_t slice_count;
    uint32_t axis_count;         /* of x that the parts so far take */
    uint32_t rank;               /* of the result */
    uint32_t from[OPS_MAX_RANK]; /* the axis of x of each of the result's, or NEW_AXIS */
    int64_t shape[OPS_MAX_RANK]; /* of the result */
    bool has_other_axes;         /* than x: some are dropped or new */
} key_parts;

static bool key_push(key_parts *key, uint32_t from, int64_t length)
{
    if (key->rank == OPS_MAX_RANK || length == 0) {
        return false;
    }
    key->from[key->rank] = from;
    key->shape[key->rank++] = length;
    return true;
}

static bool key_add_int(key_parts *key, PyObject *part, int64_t length)
{
    int overflow = 0;
    const long long given = PyLong_AsLongLongAndOverflow(part, &overflow);
    const long long index = given < 0 ? given + length : given;
    if (overflow || index < 0 || index >= length) {
        return false;
    }
    key->slices[key->slice_count++] = (key_slice){index, 1, 1, (int32_t)key->axis_count++};
    key->has_other_axes = true;
    return true;
}

static bool key_add_slice(key_parts *key, PyObject *part, int64_t length)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(part, &start, &stop, &step) != 0) {
        PyErr_Clear();
        return false;
    }
    const Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)length, &start, &stop, step);
    if (count != length || step != 1) {
        key->slices[key->slice_count++] = (key_slice){start, count, step, (int32_t)key->axis_count};
    }
    return key_push(key, key->axis_count++, count);
}

static bool key_add_whole(key_parts *key, const array_object *x, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int64_t length = ops_array_get_length(x->array, (int32_t)key->axis_count);
        if (!key_push(key, key->axis_count++, length)) {
            return false;
        }
    }
    return true;
}

static bool key_add(key_parts *key, PyObject *part, const array_object *x, uint32_t hidden)
{
    if (part == Py_None) {
        key->has_other_axes = true;
        return key_push(key, NEW_AXIS, 1);
    }
    if (part == Py_Ellipsis) {
        return key_add_whole(key, x, hidden);
    }
    if (key->axis_count >= core_rank(x)) {
        return false;
    }
    const int64_t length = ops_array_get_length(x->array, (int32_t)key->axis_count);
    return PyLong_CheckExact(part) ? key_add_int(key, part, length)
                                   : PySlice_Check(part) && key_add_slice(key, part, length);
}

static bool key_parse(const array_object *x, PyObject *object, key_parts *key)
{
    const bool is_tuple = PyTuple_CheckExact(object);
    const Py_ssize_t count = is_tuple ? PyTuple_Size(object) : 1;
    uint32_t taken = 0, ellipses = 0;
    *key = (key_parts){.rank = 0};
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = is_tuple ? PyTuple_GetItem(object, i) : object;
        ellipses += part == Py_Ellipsis;
        taken += part != Py_Ellipsis && part != Py_None;
    }
    const uint32_t rank = core_rank(x);
    if (ellipses > 1 || taken > rank || count > 3 * OPS_MAX_RANK) {
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = is_tuple ? PyTuple_GetItem(object, i) : object;
        if (!key_add(key, part, x, rank - taken)) {
            return false;
        }
    }
    /* The parts of complex numbers are a last axis that keys do not see. */
    return (ellipses == 1 || key_add_whole(key, x, rank - taken)) &&
           (!x->is_complex || key_push(key, rank, 2));
}

/* (x, key): a view, if the key takes less than all */
static PyObject *key_get(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    key_parts key;
    if (count != 2 || Py_TYPE(arguments[0]) != core_array_type ||
        !key_parse((array_object *)arguments[0], arguments[1], &key) ||
        !(key.slice_count > 0 || key.has_other_axes)) {
        Py_RETURN_NONE;
    }
    array_object *x = (array_object *)arguments[0];
    ops_array *made = ops_array_retain(x->array);
    for (uint32_t i = 0; made && i < key.slice_count; i++) {
        const key_slice *s = &key.slices[i];
        ops_array *whole = made;
        made = ops_array_slice(whole, s->axis, s->start, s->count, s->step);
        ops_array_release(whole);
    }
    if (made && key.has_other_axes) {
        ops_array *part = made;
        made = ops_array_reshape(part, key.rank, key.shape);
        ops_array_release(part);
    }
    return core_wrap_like(x, made);
}

/* The elements of x that the key takes, with the axes of the result. */
static hal_status key_view(const array_object *x, const key_parts *key, ops_tensor *view)
{
    ops_tensor part;
    hal_status status = ops_array_describe(x->array, &part);
    for (uint32_t i = 0; status == HAL_OK && i < key->slice_count; i++) {
        const key_slice *s = &key->slices[i];
        const ops_tensor whole = part;
        status = ops_tensor_slice(&whole, s->axis, s->start, s->count, s->step, &part);
    }
    *view = part;
    view->rank = key->rank;
    for (uint32_t i = 0; i < key->rank; i++) {
        view->shape[i] = key->shape[i];
        view->stride[i] = key->from[i] == NEW_AXIS ? 1 : part.stride[key->from[i]];
    }
    return status;
}

/* An array for a value that goes into x without a check; null where Python has to look. The
 * caller's reference. */
static ops_array *value_array(const array_object *x, PyObject *value, const key_parts *key)
{
    if (Py_TYPE(value) == core_array_type) {
        const array_object *given = (array_object *)value;
        const bool fits = given->context == x->context && core_dtype(given) == core_dtype(x) &&
                          ops_array_get_rank(given->array) <= key->rank;
        return fits ? ops_array_retain(given->array) : NULL;
    }
    const hal_type type = ops_array_get_type(x->array);
    if (x->is_complex || !((FLOATS >> type) & 1) ||
        !(PyFloat_CheckExact(value) || PyLong_CheckExact(value))) {
        return NULL;
    }
    const double number = PyFloat_AsDouble(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    return ops_array_scalar(x->context->ops, type, number);
}

/* (x, key, value): True if it was done */
static PyObject *key_set(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    key_parts key;
    if (count != 3 || Py_TYPE(arguments[0]) != core_array_type ||
        !key_parse((array_object *)arguments[0], arguments[1], &key)) {
        Py_RETURN_NONE;
    }
    array_object *x = (array_object *)arguments[0];
    ops_array *value = value_array(x, arguments[2], &key);
    if (!value) {
        Py_RETURN_NONE;
    }
    ops_tensor view;
    ops_array *updated = NULL;
    const hal_status status = key_view(x, &key, &view);
    if (status == HAL_OK) {
        updated = ops_array_update(x->array, &view, value);
    }
    ops_array_release(value);
    if (!updated) {
        return core_raise(status == HAL_OK ? HAL_ERROR_INVALID_ARGUMENT : status);
    }
    ops_array_release(x->array);
    x->array = updated;
    Py_RETURN_TRUE;
}

PyMethodDef core_key_methods[] = {
    {"key_get", (PyCFunction)(void (*)(void))key_get, METH_FASTCALL, "(x, key): a view or None"},
    {"key_set", (PyCFunction)(void (*)(void))key_set, METH_FASTCALL, "(x, key, value) or None"},
    {NULL, NULL, 0, NULL},
};
