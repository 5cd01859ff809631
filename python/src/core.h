/* What the files of the extension halyard._core share: the context of a device, arrays, errors. */
#ifndef PYTHON_SRC_CORE_H
#define PYTHON_SRC_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <ops/ops.h>
#include <stdbool.h>

/* A device with its queue. All calls keep Python's lock except waits, so that one thread at a time
 * uses the queue. */
typedef struct context_object {
    PyObject_HEAD hal_device *device;
    hal_queue *queue;
    ops_context *ops;
    PyObject *owner;   /* the halyard.Device, or null */
    bool is_recording; /* a graph */
} context_object;

/* A reference to an array. Assignment to elements replaces `array`. That of complex numbers has a
 * last axis of length 2 (ops/complex.h), which Python does not see. */
typedef struct array_object {
    PyObject_HEAD ops_array *array;
    context_object *context; /* a reference */
    bool is_complex;
} array_object;

/* The number of a dtype: a hal_type, with this bit for complex numbers of such parts. */
#define CORE_COMPLEX 32

static inline hal_type core_part_type(int dtype)
{
    return (hal_type)(dtype & ~CORE_COMPLEX);
}

static inline int core_dtype(const array_object *x)
{
    return (int)ops_array_get_type(x->array) | (x->is_complex ? CORE_COMPLEX : 0);
}

/* Axes, and elements, that Python sees. */
static inline uint32_t core_rank(const array_object *x)
{
    return ops_array_get_rank(x->array) - x->is_complex;
}

static inline int64_t core_count(const array_object *x)
{
    return ops_array_get_element_count(x->array) >> x->is_complex;
}

extern PyTypeObject *core_context_type, *core_array_type;

/* The callbacks of halyard/_operators.py, which the operators call for operands that need
 * conversion. */
typedef struct core_hooks {
    PyObject *binary; /* (name, x, y) */
    PyObject *error;  /* (status, message) -> exception */
    PyObject *dtypes; /* tuple by hal_type */
} core_hooks;
extern core_hooks core_hook;

/* Bytes of an element of a dtype. */
size_t core_type_bytes(int dtype);

/* Writes a number to an element of a dtype. False with an exception; OverflowError if it does not
 * fit. */
bool core_number_store(int dtype, PyObject *number, char *element);

/* A function of two arrays of complex numbers of one dtype; TypeError if there is none. */
PyObject *core_complex_binary(const array_object *x, const array_object *y,
                              ops_binary_function function);

/* Sets hal's message as an exception of the status, and returns null. */
PyObject *core_raise(hal_status status);

/* An array of elements in host memory, the caller's reference. Null as ops reports, and within a
 * recording, which has no elements of the host. */
ops_array *core_from_host(context_object *context, hal_type type, uint32_t rank,
                          const int64_t *shape, const void *elements);

/* Wraps an array, whose reference it takes; null raises hal's message. */
PyObject *core_wrap(context_object *context, ops_array *array);

/* The same for an array of complex numbers where `is_complex` is set, and for one of x's kind. */
PyObject *core_wrap_parts(context_object *context, ops_array *array, bool is_complex);
PyObject *core_wrap_like(const array_object *x, ops_array *array);

/* A view with a last axis of length 1, for operations with arrays of complex numbers. The caller's
 * reference; null as ops reports. */
ops_array *core_spread(const array_object *x);

/* The array of a Python object, or null with TypeError. */
array_object *core_array(PyObject *object);

/* Reads a sequence of int: at most OPS_MAX_RANK values. Returns the count, or -1 with an
 * exception. */
int core_sequence(PyObject *sequence, int64_t values[OPS_MAX_RANK]);

/* Whether the operands are two matrices of one type of floats and one device that fit. */
bool core_is_plain_product(PyObject *x, PyObject *y);

/* Flushes and waits for the queue. Signals are handled every 20 ms. False with an exception. */
bool core_wait(context_object *context);

/* Computes the array and reads its elements. False with an exception. */
bool core_read(array_object *array, void *elements, size_t bytes);

/* The elements of x in DLPack's terms, in its memory; on a GPU the work on them is on the context's
 * stream, elsewhere it has ended. False with an exception. */
struct ops_dlpack_managed;
bool core_export(array_object *x, struct ops_dlpack_managed **managed);

/* An array of a tensor of others, which it takes, and shares where it can. Null with an exception,
 * and then the tensor stays the caller's. */
PyObject *core_import(context_object *context, struct ops_dlpack_managed *managed);

/* The capsule of __dlpack_c_exchange_api__. */
PyObject *core_exchange_table(void);

bool core_array_ready(PyObject *module);
bool core_context_ready(PyObject *module);

extern PyMethodDef core_operation_methods[], core_host_methods[], core_dlpack_methods[],
    core_linalg_methods[], core_graph_methods[], core_quick_methods[], core_key_methods[],
    core_complex_methods[], core_number_methods[];

#endif
