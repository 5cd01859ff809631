/* The type halyard.Array: lifetime, properties, operators and the buffer protocol. An operator
 * whose operands have one type and one device, or are an array and a small number, calls ops
 * directly; all others call the hook `binary`. */
#include "core.h"

#include <math.h>
#include <string.h>

PyTypeObject *core_array_type;
core_hooks core_hook;

/* ---- Lifetime ---- */

PyObject *core_wrap(context_object *context, ops_array *array)
{
    return core_wrap_parts(context, array, false);
}

PyObject *core_wrap_like(const array_object *x, ops_array *array)
{
    return core_wrap_parts(x->context, array, x->is_complex);
}

PyObject *core_wrap_parts(context_object *context, ops_array *array, bool is_complex)
{
    if (!array) {
        return core_raise(HAL_ERROR_INVALID_ARGUMENT);
    }
    array_object *made = (array_object *)PyType_GenericAlloc(core_array_type, 0);
    if (!made) {
        ops_array_release(array);
        return NULL;
    }
    made->array = array;
    made->context = context;
    made->is_complex = is_complex;
    Py_INCREF((PyObject *)context);
    return (PyObject *)made;
}

static void array_free(PyObject *object)
{
    array_object *self = (array_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    ops_array_release(self->array);
    Py_XDECREF((PyObject *)self->context);
    PyObject_Free(object);
    Py_DECREF(type);
}

array_object *core_array(PyObject *object)
{
    if (Py_TYPE(object) != core_array_type) {
        PyErr_Format(PyExc_TypeError, "expected a halyard.Array, got %R", Py_TYPE(object));
        return NULL;
    }
    return (array_object *)object;
}

/* ---- Properties ---- */

static PyObject *array_shape(PyObject *object, void *unused)
{
    (void)unused;
    const ops_array *array = ((array_object *)object)->array;
    const uint32_t rank = core_rank((array_object *)object);
    PyObject *shape = PyTuple_New(rank);
    for (uint32_t i = 0; shape && i < rank; i++) {
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(ops_array_get_length(array, (int32_t)i)));
    }
    return shape;
}

static PyObject *array_ndim(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(core_rank((array_object *)object));
}

static PyObject *array_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(core_count((array_object *)object));
}

static PyObject *array_dtype(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *dtype = PyTuple_GetItem(core_hook.dtypes, core_dtype((array_object *)object));
    Py_XINCREF(dtype);
    return dtype;
}

static PyObject *array_device(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *owner = ((array_object *)object)->context->owner;
    owner = owner ? owner : Py_None;
    Py_INCREF(owner);
    return owner;
}

static PyObject *array_context(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *context = (PyObject *)((array_object *)object)->context;
    Py_INCREF((PyObject *)context);
    return context;
}

static PyObject *array_type_number(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(core_dtype((array_object *)object));
}

static PyGetSetDef array_properties[] = {
    {"shape", array_shape, NULL, "Lengths of the axes, a tuple of int.", NULL},
    {"ndim", array_ndim, NULL, "Number of axes.", NULL},
    {"size", array_size, NULL, "Number of elements.", NULL},
    {"dtype", array_dtype, NULL, "Type of the elements, such as halyard.float32.", NULL},
    {"device", array_device, NULL, "The halyard.Device whose memory holds the elements.", NULL},
    {"_context", array_context, NULL, NULL, NULL},
    {"_type", array_type_number, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- Operators ---- */

/* Sets of types, as bits by hal_type. */
#define BIT(TYPE) HAL_TYPE_BIT(HAL_TYPE_##TYPE)
#define FLOATS (BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64))
#define INTEGERS \
    (BIT(I8) | BIT(U8) | BIT(I16) | BIT(U16) | BIT(I32) | BIT(U32) | BIT(I64) | BIT(U64))
#define ANY (FLOATS | INTEGERS | BIT(BOOL))

/* An operator: its name for the hook, the function of ops, the types for which that function is the
 * operator, and whether a scalar operand is converted here. */
typedef struct array_operator {
    const char *name;
    ops_binary_function function;
    uint32_t types;
    bool takes_scalar;
} array_operator;

/* The function of complex numbers, OPS_COMPLEX_BINARY_COUNT without one. */
static ops_complex_binary_function complex_function(ops_binary_function function)
{
    switch (function) {
    case OPS_ADD:
        return OPS_COMPLEX_ADD;
    case OPS_SUB:
        return OPS_COMPLEX_SUB;
    case OPS_MUL:
        return OPS_COMPLEX_MUL;
    case OPS_DIV:
        return OPS_COMPLEX_DIV;
    case OPS_POW:
        return OPS_COMPLEX_POW;
    case OPS_EQ:
        return OPS_COMPLEX_EQ;
    case OPS_NE:
        return OPS_COMPLEX_NE;
    default:
        return OPS_COMPLEX_BINARY_COUNT;
    }
}

PyObject *core_complex_binary(const array_object *x, const array_object *y,
                              ops_binary_function function)
{
    const ops_complex_binary_function complex = complex_function(function);
    if (complex == OPS_COMPLEX_BINARY_COUNT) {
        PyErr_Format(PyExc_TypeError, "%s: expected real numbers, got complex ones",
                     ops_binary_name(function));
        return NULL;
    }
    return core_wrap_parts(x->context, ops_complex_binary(complex, x->array, y->array),
                           complex < OPS_COMPLEX_EQ);
}

/* A number that the type holds exactly: then ops rounds nothing. Floats round as ops does. */
static bool scalar_value(PyObject *number, hal_type type, double *value)
{
    static const double highest[HAL_TYPE_COUNT] = {[HAL_TYPE_I8] = 127,
                                                   [HAL_TYPE_U8] = 255,
                                                   [HAL_TYPE_I16] = 32767,
                                                   [HAL_TYPE_U16] = 65535,
                                                   [HAL_TYPE_I32] = 2147483647,
                                                   [HAL_TYPE_U32] = 4294967295.0,
                                                   [HAL_TYPE_I64] = 9007199254740992.0,
                                                   [HAL_TYPE_U64] = 9007199254740992.0};
    const bool is_float = (FLOATS >> type) & 1;
    if (PyFloat_CheckExact(number)) {
        *value = PyFloat_AsDouble(number);
        return is_float;
    }
    if (!PyLong_CheckExact(number)) {
        return false;
    }
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(number, &overflow);
    *value = (double)whole;
    if (overflow) {
        return false;
    }
    if (is_float) {
        return whole >= -9007199254740992 && whole <= 9007199254740992;
    }
    const bool is_signed = (BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64)) >> type & 1;
    const double most = highest[type];
    return most != 0 && *value <= most && *value >= (is_signed ? -most : 0);
}

static PyObject *operate(const array_operator *operator, PyObject * x, PyObject *y)
{
    const bool is_x = Py_TYPE(x) == core_array_type, is_y = Py_TYPE(y) == core_array_type;
    array_object *const owner = (array_object *)(is_x ? x : y);
    const hal_type type = ops_array_get_type(owner->array);
    if (owner->is_complex) {
        const array_object *const other = (array_object *)y;
        if ((operator->types>> type) & 1 && is_x && is_y &&
            core_dtype(other) == core_dtype(owner) && other->context == owner->context &&
            complex_function(operator->function) != OPS_COMPLEX_BINARY_COUNT) {
            return core_complex_binary(owner, other, operator->function);
        }
    } else if ((operator->types>> type) & 1) {
        ops_array *const left = is_x ? ((array_object *)x)->array : NULL;
        ops_array *const right = is_y ? ((array_object *)y)->array : NULL;
        double value = 0;
        if (is_x && is_y) {
            if (core_dtype((array_object *)y) == (int)type &&
                ((array_object *)y)->context == owner->context) {
                return core_wrap(owner->context, ops_array_binary(operator->function, left, right));
            }
        } else if (operator->takes_scalar && scalar_value(is_x ? y : x, type, &value)) {
            return core_wrap(owner->context,
                             is_x ? ops_array_binary_scalar(operator->function, left, value)
                                  : ops_array_scalar_binary(operator->function, value, right));
        }
    }
    return PyObject_CallFunction(core_hook.binary, "sOO", operator->name, x, y);
}

/* In place: the array takes the elements of `made`; its type and shape stay. */
static PyObject *take_in_place(const char *name, PyObject *x, PyObject *made)
{
    if (!made || made == Py_NotImplemented) {
        return made;
    }
    array_object *self = (array_object *)x, *result = (array_object *)made;
    const uint32_t rank = ops_array_get_rank(self->array);
    bool same = core_dtype(self) == core_dtype(result) &&
                rank == ops_array_get_rank(result->array) && self->context == result->context;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = ops_array_get_length(self->array, (int32_t)i) ==
               ops_array_get_length(result->array, (int32_t)i);
    }
    if (!same) {
        PyErr_Format(PyExc_TypeError,
                     "%s in place: the result has another dtype, shape or device than the array",
                     name);
        Py_DECREF(made);
        return NULL;
    }
    ops_array *const old = self->array;
    self->array = result->array;
    result->array = old;
    Py_DECREF(made);
    Py_INCREF(x);
    return x;
}

#define OPERATOR(name, FUNCTION, TYPES, SCALAR)                                               \
    static const array_operator name##_operator = {#name, OPS_##FUNCTION, (TYPES), (SCALAR)}; \
    static PyObject *operator_##name(PyObject *x, PyObject *y)                                \
    {                                                                                         \
        return operate(&name##_operator, x, y);                                               \
    }
#define ARITHMETIC(name, FUNCTION, TYPES, SCALAR)                        \
    OPERATOR(name, FUNCTION, TYPES, SCALAR)                              \
    static PyObject *in_place_##name(PyObject *x, PyObject *y)           \
    {                                                                    \
        return take_in_place(#name, x, operate(&name##_operator, x, y)); \
    }

ARITHMETIC(add, ADD, FLOATS | INTEGERS, true)
ARITHMETIC(subtract, SUB, FLOATS | INTEGERS, true)
ARITHMETIC(multiply, MUL, FLOATS | INTEGERS, true)
ARITHMETIC(divide, DIV, FLOATS, true)
ARITHMETIC(floor_divide, DIV, 0, false)
ARITHMETIC(remainder, REM, 0, false)
ARITHMETIC(bitwise_and, AND, INTEGERS | BIT(BOOL), false)
ARITHMETIC(bitwise_or, OR, INTEGERS | BIT(BOOL), false)
ARITHMETIC(bitwise_xor, XOR, INTEGERS | BIT(BOOL), false)
ARITHMETIC(bitwise_left_shift, SHL, 0, false)
ARITHMETIC(bitwise_right_shift, SHR, 0, false)
ARITHMETIC(pow, POW, FLOATS, true)
OPERATOR(equal, EQ, ANY, true)
OPERATOR(not_equal, NE, ANY, true)
OPERATOR(less, LT, FLOATS | INTEGERS, true)
OPERATOR(less_equal, LE, FLOATS | INTEGERS, true)
OPERATOR(greater, GT, FLOATS | INTEGERS, true)
OPERATOR(greater_equal, GE, FLOATS | INTEGERS, true)

static PyObject *operator_matmul(PyObject *x, PyObject *y)
{
    if (!core_is_plain_product(x, y)) {
        return PyObject_CallFunction(core_hook.binary, "sOO", "matmul", x, y);
    }
    array_object *left = (array_object *)x, *right = (array_object *)y;
    return core_wrap(left->context, ops_array_matmul(left->array, right->array, HAL_GEMM_STRICT));
}

static PyObject *in_place_matmul(PyObject *x, PyObject *y)
{
    return take_in_place("matmul", x, operator_matmul(x, y));
}

static PyObject *operator_power(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return operator_pow(x, y);
}

static PyObject *in_place_power(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return in_place_pow(x, y);
}

static PyObject *operator_compare(PyObject *x, PyObject *y, int comparison)
{
    switch (comparison) {
    case Py_LT:
        return operator_less(x, y);
    case Py_LE:
        return operator_less_equal(x, y);
    case Py_EQ:
        return operator_equal(x, y);
    case Py_NE:
        return operator_not_equal(x, y);
    case Py_GT:
        return operator_greater(x, y);
    default:
        return operator_greater_equal(x, y);
    }
}

static PyObject *unary(PyObject *object, ops_unary_function function, uint32_t types,
                       const char *name)
{
    array_object *self = (array_object *)object;
    const hal_type type = ops_array_get_type(self->array);
    if (self->is_complex && function == OPS_ABS) {
        return core_wrap(self->context, ops_complex_unary(OPS_COMPLEX_ABS, self->array));
    }
    if (((types >> type) & 1) == 0) {
        PyErr_Format(PyExc_TypeError, "%s: the dtype of the array is not allowed", name);
        return NULL;
    }
    return core_wrap_like(self, ops_array_unary(function, self->array));
}

static PyObject *operator_negative(PyObject *x)
{
    return unary(x, OPS_NEG, FLOATS | INTEGERS, "-x");
}

static PyObject *operator_absolute(PyObject *x)
{
    return unary(x, OPS_ABS, FLOATS | INTEGERS, "abs(x)");
}

static PyObject *operator_invert(PyObject *x)
{
    return unary(x, OPS_NOT, INTEGERS | BIT(BOOL), "~x");
}

static PyObject *operator_positive(PyObject *x)
{
    return unary(x, OPS_IDENTITY, FLOATS | INTEGERS, "+x");
}

/* ---- Values ---- */

bool core_read(array_object *array, void *elements, size_t bytes)
{
    hal_status status = ops_array_evaluate(&array->array, 1);
    if (status == HAL_OK && !core_wait(array->context)) {
        return false;
    }
    status = status == HAL_OK ? ops_array_read(array->array, bytes, elements) : status;
    if (status != HAL_OK) {
        core_raise(status);
    }
    return status == HAL_OK;
}

/* The shape and strides of an exported buffer, and the elements after them. */
typedef struct array_view {
    Py_ssize_t shape[OPS_MAX_RANK], strides[OPS_MAX_RANK];
    _Alignas(16) char elements[];
} array_view;

static int array_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    static const char *const formats[HAL_TYPE_COUNT] = {
        [HAL_TYPE_BOOL] = "?", [HAL_TYPE_I8] = "b",  [HAL_TYPE_U8] = "B",  [HAL_TYPE_I16] = "h",
        [HAL_TYPE_U16] = "H",  [HAL_TYPE_I32] = "i", [HAL_TYPE_U32] = "I", [HAL_TYPE_I64] = "q",
        [HAL_TYPE_U64] = "Q",  [HAL_TYPE_F16] = "e", [HAL_TYPE_F32] = "f", [HAL_TYPE_F64] = "d"};
    array_object *self = (array_object *)object;
    const hal_type type = ops_array_get_type(self->array);
    const char *format = formats[type];
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "the elements of a halyard.Array are read-only");
        return -1;
    }
    if (self->is_complex) {
        format = type == HAL_TYPE_F32 ? "Zf" : "Zd";
    }
    if (!format) {
        PyErr_SetString(PyExc_BufferError, "the dtype has no format in the buffer protocol");
        return -1;
    }
    const size_t size = core_type_bytes(core_dtype(self));
    const size_t bytes = (size_t)core_count(self) * size;
    array_view *memory = PyMem_Malloc(sizeof *memory + bytes);
    if (!memory) {
        PyErr_NoMemory();
        return -1;
    }
    if (!core_read(self, memory->elements, bytes)) {
        PyMem_Free(memory);
        return -1;
    }
    const uint32_t rank = core_rank(self);
    Py_ssize_t stride = (Py_ssize_t)size;
    for (uint32_t i = rank; i-- > 0;) {
        memory->shape[i] = (Py_ssize_t)ops_array_get_length(self->array, (int32_t)i);
        memory->strides[i] = stride;
        stride *= memory->shape[i];
    }
    *view =
        (Py_buffer){.buf = memory->elements,
                    .obj = object,
                    .len = (Py_ssize_t)bytes,
                    .itemsize = (Py_ssize_t)size,
                    .readonly = 1,
                    .ndim = (int)rank,
                    .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
                    .shape = flags & PyBUF_ND ? memory->shape : NULL,
                    .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? memory->strides : NULL,
                    .internal = memory};
    Py_INCREF(object);
    return 0;
}

static void array_release_buffer(PyObject *object, Py_buffer *view)
{
    (void)object;
    PyMem_Free(view->internal);
}

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, array_free},
    {Py_tp_getset, array_properties},
    {Py_tp_richcompare, operator_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_bf_getbuffer, array_get_buffer},
    {Py_bf_releasebuffer, array_release_buffer},
    {Py_nb_add, operator_add},
    {Py_nb_subtract, operator_subtract},
    {Py_nb_multiply, operator_multiply},
    {Py_nb_true_divide, operator_divide},
    {Py_nb_floor_divide, operator_floor_divide},
    {Py_nb_remainder, operator_remainder},
    {Py_nb_power, operator_power},
    {Py_nb_matrix_multiply, operator_matmul},
    {Py_nb_and, operator_bitwise_and},
    {Py_nb_or, operator_bitwise_or},
    {Py_nb_xor, operator_bitwise_xor},
    {Py_nb_lshift, operator_bitwise_left_shift},
    {Py_nb_rshift, operator_bitwise_right_shift},
    {Py_nb_negative, operator_negative},
    {Py_nb_positive, operator_positive},
    {Py_nb_absolute, operator_absolute},
    {Py_nb_invert, operator_invert},
    {Py_nb_inplace_add, in_place_add},
    {Py_nb_inplace_subtract, in_place_subtract},
    {Py_nb_inplace_multiply, in_place_multiply},
    {Py_nb_inplace_true_divide, in_place_divide},
    {Py_nb_inplace_floor_divide, in_place_floor_divide},
    {Py_nb_inplace_remainder, in_place_remainder},
    {Py_nb_inplace_power, in_place_power},
    {Py_nb_inplace_matrix_multiply, in_place_matmul},
    {Py_nb_inplace_and, in_place_bitwise_and},
    {Py_nb_inplace_or, in_place_bitwise_or},
    {Py_nb_inplace_xor, in_place_bitwise_xor},
    {Py_nb_inplace_lshift, in_place_bitwise_left_shift},
    {Py_nb_inplace_rshift, in_place_bitwise_right_shift},
    {Py_tp_doc, "An array on a device. Make one by halyard.asarray; operations are computed late."},
    {0, NULL},
};
static PyType_Spec array_spec = {"halyard.Array", sizeof(array_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

bool core_array_ready(PyObject *module)
{
    core_array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    return core_array_type && PyModule_AddType(module, core_array_type) == 0;
}
