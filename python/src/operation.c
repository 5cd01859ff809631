/* Functions of halyard._core that make arrays: one for each function of ops/array.h, on positional
 * arguments that halyard/ has checked. Shapes and axes are sequences of int. */
#include "core.h"

#include <string.h>

/* ---- Arguments ---- */

int core_sequence(PyObject *sequence, int64_t values[OPS_MAX_RANK])
{
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0) {
        return -1;
    }
    if (count > OPS_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "expected at most %d axes, got %zd", (int)OPS_MAX_RANK,
                     count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        values[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return (int)count;
}

/* Appends the axis of the parts to a shape of complex numbers. False with an exception. */
static bool shape_spread(bool is_complex, int64_t shape[OPS_MAX_RANK], int *rank)
{
    if (is_complex && *rank == OPS_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "expected at most %d axes of complex numbers, got %d",
                     (int)OPS_MAX_RANK - 1, *rank);
        return false;
    }
    if (is_complex && *rank >= 0) {
        shape[(*rank)++] = 2;
    }
    return *rank >= 0;
}

/* Parses (context, dtype, shape). Of complex numbers the shape gets the axis of the parts. */
static bool shaped_parse(PyObject *arguments, const char *format, context_object **context,
                         int *dtype, int64_t shape[OPS_MAX_RANK], int *rank, void *first,
                         void *second, void *third)
{
    PyObject *sequence = NULL;
    if (!PyArg_ParseTuple(arguments, format, core_context_type, context, dtype, &sequence, first,
                          second, third)) {
        return false;
    }
    *rank = core_sequence(sequence, shape);
    return shape_spread(*dtype & CORE_COMPLEX, shape, rank);
}

/* ---- Creation ---- */

static PyObject *operation_from_buffer(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    int dtype, rank;
    int64_t shape[OPS_MAX_RANK];
    Py_buffer buffer;
    if (!shaped_parse(arguments, "O!iOy*", &context, &dtype, shape, &rank, &buffer, NULL, NULL)) {
        return NULL;
    }
    const hal_type type = core_part_type(dtype);
    uint64_t bytes = core_type_bytes((int)type);
    for (int i = 0; i < rank; i++) {
        bytes *= (uint64_t)shape[i];
    }
    PyObject *made = NULL;
    if (bytes != (uint64_t)buffer.len) {
        PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, the shape needs %llu", buffer.len,
                     (unsigned long long)bytes);
    } else {
        made = core_wrap_parts(context,
                               core_from_host(context, type, (uint32_t)rank, shape, buffer.buf),
                               dtype & CORE_COMPLEX);
    }
    PyBuffer_Release(&buffer);
    return made;
}

/* Writes a number to an element. False with an exception; OverflowError if it does not fit. */
static bool element_store(hal_type type, PyObject *number, void *element)
{
    if (type == HAL_TYPE_F32 || type == HAL_TYPE_F64) {
        const double value = PyFloat_AsDouble(number);
        const float narrow = (float)value;
        memcpy(element, type == HAL_TYPE_F32 ? (const void *)&narrow : (const void *)&value,
               core_type_bytes((int)type));
        return !(value == -1 && PyErr_Occurred());
    }
    if (type == HAL_TYPE_BOOL) {
        const int truth = PyObject_IsTrue(number);
        *(uint8_t *)element = truth > 0;
        return truth >= 0;
    }
    if (type == HAL_TYPE_U64) {
        const unsigned long long whole = PyLong_AsUnsignedLongLong(number);
        memcpy(element, &whole, sizeof whole);
        return !PyErr_Occurred();
    }
    const long long whole = PyLong_AsLongLong(number);
    if (whole == -1 && PyErr_Occurred()) {
        return false;
    }
    long long stored = whole;
    switch (type) {
    case HAL_TYPE_I8:
        stored = (int8_t)whole;
        break;
    case HAL_TYPE_U8:
        stored = (uint8_t)whole;
        break;
    case HAL_TYPE_I16:
        stored = (int16_t)whole;
        break;
    case HAL_TYPE_U16:
        stored = (uint16_t)whole;
        break;
    case HAL_TYPE_I32:
        stored = (int32_t)whole;
        break;
    case HAL_TYPE_U32:
        stored = (uint32_t)whole;
        break;
    default:
        break;
    }
    if (stored != whole) {
        PyErr_Format(PyExc_OverflowError, "%lld is out of the range of the dtype", whole);
        return false;
    }
    memcpy(element, &whole, core_type_bytes((int)type)); /* little-endian */
    return true;
}

bool core_number_store(int dtype, PyObject *number, char *element)
{
    const hal_type type = core_part_type(dtype);
    if (!(dtype & CORE_COMPLEX)) {
        return element_store(type, number, element);
    }
    const double parts[2] = {PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number)};
    const float narrow[2] = {(float)parts[0], (float)parts[1]};
    memcpy(element, type == HAL_TYPE_F32 ? (const void *)narrow : (const void *)parts,
           core_type_bytes(dtype));
    return !PyErr_Occurred();
}

static PyObject *operation_from_list(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    int dtype, rank;
    int64_t shape[OPS_MAX_RANK];
    PyObject *list;
    if (!shaped_parse(arguments, "O!iOO", &context, &dtype, shape, &rank, &list, NULL, NULL)) {
        return NULL;
    }
    const Py_ssize_t count = PyList_Size(list);
    const size_t size = core_type_bytes(dtype);
    int64_t expected = 1;
    for (int i = 0; i < rank - (dtype & CORE_COMPLEX ? 1 : 0); i++) {
        expected *= shape[i];
    }
    if (count >= 0 && count != expected) {
        PyErr_Format(PyExc_ValueError, "the shape needs %lld numbers, got %zd", (long long)expected,
                     count);
        return NULL;
    }
    char *elements = count >= 0 ? PyMem_Malloc((size_t)(count + 1) * size) : NULL;
    if (!elements) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    bool stored = true;
    for (Py_ssize_t i = 0; stored && i < count; i++) {
        stored = core_number_store(dtype, PyList_GetItem(list, i), elements + (size_t)i * size);
    }
    PyObject *made = stored ? core_wrap_parts(context,
                                              core_from_host(context, core_part_type(dtype),
                                                             (uint32_t)rank, shape, elements),
                                              dtype & CORE_COMPLEX)
                            : NULL;
    PyMem_Free(elements);
    return made;
}

/* Both parts of a complex number, as a row. Within a recording the host writes no elements. */
static ops_array *complex_row(context_object *context, int dtype, PyObject *number)
{
    const hal_type type = core_part_type(dtype);
    const int64_t two = 2;
    char element[16];
    if (!core_number_store(dtype, number, element)) {
        return NULL;
    }
    if (!context->is_recording) {
        return core_from_host(context, type, 1, &two, element);
    }
    ops_array *re = ops_array_full(context->ops, type, 0, NULL, PyComplex_RealAsDouble(number));
    ops_array *im = ops_array_full(context->ops, type, 0, NULL, PyComplex_ImagAsDouble(number));
    ops_array *made = re && im ? ops_complex_join(re, im) : NULL;
    ops_array_release(re);
    ops_array_release(im);
    return made;
}

static PyObject *operation_full(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    int dtype, rank;
    int64_t shape[OPS_MAX_RANK];
    PyObject *number;
    if (!shaped_parse(arguments, "O!iOO", &context, &dtype, shape, &rank, &number, NULL, NULL)) {
        return NULL;
    }
    if (!(dtype & CORE_COMPLEX)) {
        const double value = PyFloat_AsDouble(number);
        return PyErr_Occurred() ? NULL
                                : core_wrap(context, ops_array_full(context->ops, (hal_type)dtype,
                                                                    (uint32_t)rank, shape, value));
    }
    ops_array *one = complex_row(context, dtype, number);
    ops_array *made = one ? ops_array_broadcast(one, (uint32_t)rank, shape) : NULL;
    ops_array_release(one);
    return PyErr_Occurred() ? NULL : core_wrap_parts(context, made, true);
}

static PyObject *operation_iota(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    int type;
    long long count;
    double start, step;
    if (!PyArg_ParseTuple(arguments, "O!iLdd", core_context_type, &context, &type, &count, &start,
                          &step)) {
        return NULL;
    }
    return core_wrap(context, ops_array_iota(context->ops, (hal_type)type, count, start, step));
}

static PyObject *operation_random(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    int type, is_normal;
    PyObject *sequence;
    unsigned long long seed, stream;
    double first, second;
    int64_t shape[OPS_MAX_RANK];
    if (!PyArg_ParseTuple(arguments, "O!iOKKddp", core_context_type, &context, &type, &sequence,
                          &seed, &stream, &first, &second, &is_normal)) {
        return NULL;
    }
    const int rank = core_sequence(sequence, shape);
    if (rank < 0) {
        return NULL;
    }
    const ops_random_key key = {seed, stream};
    return core_wrap(context,
                     (is_normal ? ops_array_normal : ops_array_uniform)(
                         context->ops, (hal_type)type, (uint32_t)rank, shape, key, first, second));
}

/* ---- Operations ---- */

static PyObject *operation_unary(PyObject *module, PyObject *arguments)
{
    (void)module;
    int function;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "iO!", &function, core_array_type, &x)) {
        return NULL;
    }
    if (x->is_complex && function != OPS_IDENTITY && function != OPS_NEG && function != OPS_ROUND) {
        PyErr_Format(PyExc_TypeError, "%s: expected real numbers, got complex ones",
                     ops_unary_name((ops_unary_function)function));
        return NULL;
    }
    return core_wrap_like(x, ops_array_unary((ops_unary_function)function, x->array));
}

static bool same_context(const array_object *x, const array_object *y)
{
    if (x->context != y->context) {
        PyErr_SetString(PyExc_ValueError,
                        "the arrays are on different devices: move one by to_device");
    }
    return x->context == y->context;
}

static PyObject *operation_binary(PyObject *module, PyObject *arguments)
{
    (void)module;
    int function;
    array_object *x, *y;
    if (!PyArg_ParseTuple(arguments, "iO!O!", &function, core_array_type, &x, core_array_type,
                          &y) ||
        !same_context(x, y)) {
        return NULL;
    }
    if (x->is_complex && core_dtype(x) == core_dtype(y)) {
        return core_complex_binary(x, y, (ops_binary_function)function);
    }
    return core_wrap(x->context,
                     ops_array_binary((ops_binary_function)function, x->array, y->array));
}

static PyObject *operation_where(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *condition, *x, *y;
    if (!PyArg_ParseTuple(arguments, "O!O!O!", core_array_type, &condition, core_array_type, &x,
                          core_array_type, &y) ||
        !same_context(condition, x) || !same_context(x, y)) {
        return NULL;
    }
    ops_array *wide = x->is_complex ? core_spread(condition) : ops_array_retain(condition->array);
    PyObject *made = core_wrap_like(x, ops_array_where(wide, x->array, y->array));
    ops_array_release(wide);
    return made;
}

static PyObject *operation_cast(PyObject *module, PyObject *arguments)
{
    (void)module;
    int type;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "iO!", &type, core_array_type, &x)) {
        return NULL;
    }
    if (x->is_complex && !(type & CORE_COMPLEX)) {
        PyErr_SetString(PyExc_TypeError,
                        "complex numbers do not become real ones: take real(x) or imag(x)");
        return NULL;
    }
    ops_array *parts = ops_array_cast(core_part_type(type), x->array);
    if (x->is_complex == ((type & CORE_COMPLEX) != 0)) {
        return core_wrap_like(x, parts);
    }
    ops_array *made = parts ? ops_complex_join(parts, NULL) : NULL;
    ops_array_release(parts);
    return core_wrap_parts(x->context, made, true);
}

static PyObject *operation_reduce(PyObject *module, PyObject *arguments)
{
    (void)module;
    int reduction, axis, keep;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "iipO!", &reduction, &axis, &keep, core_array_type, &x)) {
        return NULL;
    }
    return core_wrap_like(x, (x->is_complex ? ops_complex_reduce : ops_array_reduce)(
                                 (ops_reduction)reduction, axis, keep, x->array));
}

static PyObject *operation_softmax(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis, is_log;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "ipO!", &axis, &is_log, core_array_type, &x)) {
        return NULL;
    }
    return core_wrap(x->context,
                     (is_log ? ops_array_log_softmax : ops_array_softmax)(axis, x->array));
}

static PyObject *operation_matmul(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x, *y;
    unsigned precision;
    if (!PyArg_ParseTuple(arguments, "O!O!I", core_array_type, &x, core_array_type, &y,
                          &precision) ||
        !same_context(x, y)) {
        return NULL;
    }
    return core_wrap_like(
        x, (x->is_complex ? ops_complex_matmul : ops_array_matmul)(x->array, y->array, precision));
}

/* ---- Views and moves ---- */

static PyObject *operation_slice(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    int axis;
    long long start, count, step;
    if (!PyArg_ParseTuple(arguments, "O!iLLL", core_array_type, &x, &axis, &start, &count, &step)) {
        return NULL;
    }
    return core_wrap_like(x, ops_array_slice(x->array, axis, start, count, step));
}

static PyObject *operation_permute(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    PyObject *sequence;
    int64_t axes[OPS_MAX_RANK];
    int32_t narrow[OPS_MAX_RANK];
    if (!PyArg_ParseTuple(arguments, "O!O", core_array_type, &x, &sequence) ||
        core_sequence(sequence, axes) < 0) {
        return NULL;
    }
    const uint32_t rank = core_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        narrow[i] = (int32_t)axes[i];
    }
    if (x->is_complex) {
        narrow[rank] = (int32_t)rank;
    }
    return core_wrap_like(x, ops_array_permute(x->array, narrow));
}

static PyObject *shaped(PyObject *arguments,
                        ops_array *(*function)(ops_array *, uint32_t, const int64_t *))
{
    array_object *x;
    PyObject *sequence;
    int64_t shape[OPS_MAX_RANK];
    if (!PyArg_ParseTuple(arguments, "O!O", core_array_type, &x, &sequence)) {
        return NULL;
    }
    int rank = core_sequence(sequence, shape);
    return shape_spread(x->is_complex, shape, &rank)
               ? core_wrap_like(x, function(x->array, (uint32_t)rank, shape))
               : NULL;
}

static PyObject *operation_reshape(PyObject *module, PyObject *arguments)
{
    (void)module;
    return shaped(arguments, ops_array_reshape);
}

static PyObject *operation_broadcast(PyObject *module, PyObject *arguments)
{
    (void)module;
    return shaped(arguments, ops_array_broadcast);
}

static PyObject *operation_gather(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis;
    array_object *x, *indices;
    if (!PyArg_ParseTuple(arguments, "iO!O!", &axis, core_array_type, &x, core_array_type,
                          &indices) ||
        !same_context(x, indices)) {
        return NULL;
    }
    return core_wrap_like(x, ops_array_gather(axis, x->array, indices->array));
}

/* Indices of elements of x: of complex numbers for both parts. The caller's reference. */
static ops_array *indices_spread(const array_object *x, const array_object *indices)
{
    if (!x->is_complex) {
        return ops_array_retain(indices->array);
    }
    int64_t shape[OPS_MAX_RANK];
    ops_array *spread = core_spread(indices), *made = NULL;
    const uint32_t rank = ops_array_get_rank(spread);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i + 1 < rank ? ops_array_get_length(spread, (int32_t)i) : 2;
    }
    made = spread ? ops_array_broadcast(spread, rank, shape) : NULL;
    ops_array_release(spread);
    return made;
}

static PyObject *operation_take_along_axis(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis;
    array_object *x, *indices;
    if (!PyArg_ParseTuple(arguments, "iO!O!", &axis, core_array_type, &x, core_array_type,
                          &indices) ||
        !same_context(x, indices)) {
        return NULL;
    }
    ops_array *wide = indices_spread(x, indices);
    PyObject *made = core_wrap_like(x, ops_array_take_along_axis(axis, x->array, wide));
    ops_array_release(wide);
    return made;
}

static PyObject *operation_scatter(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis;
    array_object *x, *indices, *updates;
    if (!PyArg_ParseTuple(arguments, "iO!O!O!", &axis, core_array_type, &x, core_array_type,
                          &indices, core_array_type, &updates) ||
        !same_context(x, indices) || !same_context(x, updates)) {
        return NULL;
    }
    ops_array *wide = indices_spread(x, indices);
    PyObject *made = core_wrap_like(
        x, ops_array_scatter(OPS_SCATTER_ASSIGN, axis, x->array, wide, updates->array));
    ops_array_release(wide);
    return made;
}

static PyObject *operation_scan(PyObject *module, PyObject *arguments)
{
    (void)module;
    int kind, axis;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "iiO!", &kind, &axis, core_array_type, &x)) {
        return NULL;
    }
    return core_wrap_like(x, (x->is_complex ? ops_complex_scan
                                            : ops_array_scan)((ops_scan_kind)kind, axis, x->array));
}

static PyObject *operation_sort(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis, descending, wants_indices;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "ippO!", &axis, &descending, &wants_indices, core_array_type,
                          &x)) {
        return NULL;
    }
    return core_wrap(x->context, (wants_indices ? ops_array_argsort
                                                : ops_array_sort)(axis, descending, -1, x->array));
}

static PyObject *operation_one_hot(PyObject *module, PyObject *arguments)
{
    (void)module;
    int type;
    long long count;
    array_object *indices;
    if (!PyArg_ParseTuple(arguments, "iLO!", &type, &count, core_array_type, &indices)) {
        return NULL;
    }
    return core_wrap(indices->context, ops_array_one_hot((hal_type)type, count, indices->array));
}

static PyObject *operation_copy(PyObject *module, PyObject *object)
{
    (void)module;
    array_object *x = core_array(object);
    return x ? core_wrap_like(x, ops_array_copy(x->array)) : NULL;
}

/* Reads a list of arrays of one device into memory that the caller frees; null with an exception.
 */
static ops_array **arrays_read(PyObject *list, context_object **context, uint32_t *count,
                               bool *is_complex)
{
    const Py_ssize_t length = PyList_Size(list);
    ops_array **arrays = length >= 0 ? PyMem_Malloc((size_t)(length + 1) * sizeof *arrays) : NULL;
    for (Py_ssize_t i = 0; arrays && i < length; i++) {
        array_object *array = core_array(PyList_GetItem(list, i));
        if (array && i > 0 && array->context != *context) {
            PyErr_SetString(PyExc_ValueError, "the arrays are on different devices");
            array = NULL;
        }
        if (!array) {
            PyMem_Free(arrays);
            return NULL;
        }
        *context = array->context;
        *is_complex = array->is_complex;
        arrays[i] = array->array;
    }
    *count = (uint32_t)length;
    return arrays;
}

static PyObject *operation_concatenate(PyObject *module, PyObject *arguments)
{
    (void)module;
    int axis;
    PyObject *list;
    context_object *context = NULL;
    uint32_t count = 0;
    bool is_complex = false;
    if (!PyArg_ParseTuple(arguments, "iO", &axis, &list)) {
        return NULL;
    }
    ops_array **parts = arrays_read(list, &context, &count, &is_complex);
    if (!parts) {
        return NULL;
    }
    PyObject *made =
        core_wrap_parts(context, ops_array_concatenate(axis, parts, count), is_complex);
    PyMem_Free(parts);
    return made;
}

static PyObject *operation_evaluate(PyObject *module, PyObject *list)
{
    (void)module;
    context_object *context = NULL;
    uint32_t count = 0;
    bool is_complex = false;
    ops_array **arrays = arrays_read(list, &context, &count, &is_complex);
    if (!arrays) {
        return NULL;
    }
    const hal_status status = count ? ops_array_evaluate(arrays, count) : HAL_OK;
    PyMem_Free(arrays);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    Py_RETURN_NONE;
}

/* The bits of x as another type of the same size. Computes x. */
static PyObject *operation_bitcast(PyObject *module, PyObject *arguments)
{
    (void)module;
    int type;
    array_object *x;
    if (!PyArg_ParseTuple(arguments, "iO!", &type, core_array_type, &x)) {
        return NULL;
    }
    ops_tensor tensor;
    const hal_status status = ops_array_get_tensor(x->array, &tensor);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    tensor.type = (hal_type)type;
    return core_wrap(x->context, ops_array_from_tensor(x->context->ops, &tensor));
}

/* x takes the elements of y, of its type and shape. */
static PyObject *operation_assign(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x, *y;
    if (!PyArg_ParseTuple(arguments, "O!O!", core_array_type, &x, core_array_type, &y) ||
        !same_context(x, y)) {
        return NULL;
    }
    ops_array *const old = x->array;
    x->array = ops_array_retain(y->array);
    x->is_complex = y->is_complex;
    ops_array_release(old);
    Py_RETURN_NONE;
}

PyMethodDef core_operation_methods[] = {
    {"from_buffer", operation_from_buffer, METH_VARARGS, "(context, type, shape, buffer)"},
    {"from_list", operation_from_list, METH_VARARGS, "(context, type, shape, list of numbers)"},
    {"full", operation_full, METH_VARARGS, "(context, type, shape, value)"},
    {"iota", operation_iota, METH_VARARGS, "(context, type, count, start, step)"},
    {"random", operation_random, METH_VARARGS,
     "(context, type, shape, seed, stream, low or mean, high or deviation, is_normal)"},
    {"unary", operation_unary, METH_VARARGS, "(function, x)"},
    {"binary", operation_binary, METH_VARARGS, "(function, x, y)"},
    {"where", operation_where, METH_VARARGS, "(condition, x, y)"},
    {"cast", operation_cast, METH_VARARGS, "(type, x)"},
    {"reduce", operation_reduce, METH_VARARGS, "(reduction, axis, keep, x)"},
    {"softmax", operation_softmax, METH_VARARGS, "(axis, is_log, x)"},
    {"matmul", operation_matmul, METH_VARARGS, "(x, y, precision)"},
    {"slice", operation_slice, METH_VARARGS, "(x, axis, start, count, step)"},
    {"permute", operation_permute, METH_VARARGS, "(x, axes)"},
    {"reshape", operation_reshape, METH_VARARGS, "(x, shape)"},
    {"broadcast", operation_broadcast, METH_VARARGS, "(x, shape)"},
    {"gather", operation_gather, METH_VARARGS, "(axis, x, indices)"},
    {"take_along_axis", operation_take_along_axis, METH_VARARGS, "(axis, x, indices)"},
    {"scatter", operation_scatter, METH_VARARGS, "(axis, x, indices, updates)"},
    {"scan", operation_scan, METH_VARARGS, "(kind, axis, x)"},
    {"sort", operation_sort, METH_VARARGS, "(axis, descending, wants_indices, x)"},
    {"one_hot", operation_one_hot, METH_VARARGS, "(type, count, indices)"},
    {"copy", operation_copy, METH_O, "(x)"},
    {"concatenate", operation_concatenate, METH_VARARGS, "(axis, list)"},
    {"evaluate", operation_evaluate, METH_O, "(list): records and does not wait"},
    {"bitcast", operation_bitcast, METH_VARARGS, "(type, x)"},
    {"assign", operation_assign, METH_VARARGS, "(x, y): x takes the elements of y"},
    {NULL, NULL, 0, NULL},
};
