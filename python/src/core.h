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
    PyObject *owner; /* the halyard.Device, or null */
} context_object;

/* A reference to an array. Assignment to elements replaces `array`. */
typedef struct array_object {
    PyObject_HEAD ops_array *array;
    context_object *context; /* a reference */
} array_object;

extern PyTypeObject *core_context_type, *core_array_type;

/* The callbacks of halyard/_operators.py, which the operators call for operands that need
 * conversion. */
typedef struct core_hooks {
    PyObject *binary; /* (name, x, y) */
    PyObject *error;  /* (status, message) -> exception */
    PyObject *dtypes; /* tuple by hal_type */
} core_hooks;
extern core_hooks core_hook;

/* Bytes of an element. */
size_t core_type_bytes(hal_type type);

/* Sets hal's message as an exception of the status, and returns null. */
PyObject *core_raise(hal_status status);

/* Wraps an array, whose reference it takes; null raises hal's message. */
PyObject *core_wrap(context_object *context, ops_array *array);

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

bool core_array_ready(PyObject *module);
bool core_context_ready(PyObject *module);

extern PyMethodDef core_operation_methods[], core_host_methods[], core_dlpack_methods[],
    core_linalg_methods[], core_graph_methods[], core_quick_methods[];

#endif
