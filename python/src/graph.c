/* Functions of halyard._core for recorded steps (ops/graph.h) and for kernels that Python builds
 * (halyard/_kernel.py). Both are capsules. */
#include "core.h"

#include <hal/ir_build.h>
#include <ops/graph.h>
#include <string.h>

enum { MOST_ARRAYS = 64 };

/* Reads a sequence of at most MOST_ARRAYS arrays of one context. Returns the count, or -1 with an
 * exception. */
static int arrays_take(PyObject *sequence, const context_object *context,
                       ops_array *arrays[MOST_ARRAYS])
{
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count > MOST_ARRAYS) {
        PyErr_Format(PyExc_ValueError, "expected at most %d arrays, got %zd", (int)MOST_ARRAYS,
                     count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        array_object *array = item ? core_array(item) : NULL;
        Py_XDECREF(item); /* the sequence has it */
        if (!array) {
            return -1;
        }
        if (array->context != context) {
            PyErr_SetString(PyExc_ValueError, "expected arrays of one device");
            return -1;
        }
        arrays[i] = array->array;
    }
    return (int)count;
}

/* Wraps arrays, whose references it takes, in a tuple. */
static PyObject *arrays_wrap(context_object *context, ops_array *const *arrays, int count)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *array = made ? core_wrap(context, arrays[i]) : NULL;
        if (!made) {
            ops_array_release(arrays[i]);
        } else if (!array) {
            Py_CLEAR(made);
        } else {
            PyTuple_SetItem(made, i, array);
        }
    }
    return made;
}

/* What a capsule keeps with its context, which is destroyed after it. */
typedef struct kept_object {
    context_object *context;
    ops_graph *graph;
    hal_kernel *kernel;
} kept_object;

static void kept_free(PyObject *capsule)
{
    kept_object *kept = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    ops_graph_destroy(kept->graph);
    hal_kernel_release(kept->kernel);
    Py_DECREF((PyObject *)kept->context);
    PyMem_Free(kept);
}

static PyObject *kept_wrap(const char *name, context_object *context, ops_graph *graph,
                           hal_kernel *kernel)
{
    kept_object *kept = PyMem_Malloc(sizeof *kept);
    PyObject *capsule = kept ? PyCapsule_New(kept, name, kept_free) : PyErr_NoMemory();
    if (!capsule) {
        PyMem_Free(kept);
        ops_graph_destroy(graph);
        hal_kernel_release(kernel);
        return NULL;
    }
    *kept = (kept_object){context, graph, kernel};
    Py_INCREF((PyObject *)context);
    return capsule;
}

/* ---- Graphs ---- */

static PyObject *graph_begin(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    if (!PyArg_ParseTuple(arguments, "O!", core_context_type, &context)) {
        return NULL;
    }
    const hal_status status = ops_graph_begin(context->ops);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    context->is_recording = true;
    Py_RETURN_NONE;
}

/* (context, inputs, outputs): the graph. */
static PyObject *graph_end(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    PyObject *inputs, *outputs;
    ops_array *from[MOST_ARRAYS], *to[MOST_ARRAYS];
    if (!PyArg_ParseTuple(arguments, "O!OO", core_context_type, &context, &inputs, &outputs)) {
        return NULL;
    }
    const int input_count = arrays_take(inputs, context, from);
    const int output_count = input_count < 0 ? -1 : arrays_take(outputs, context, to);
    ops_graph *graph = NULL;
    const hal_status status =
        ops_graph_end(context->ops, from, output_count < 0 ? 0 : (uint32_t)input_count, to,
                      output_count < 0 ? 0 : (uint32_t)output_count, &graph);
    context->is_recording = false;
    if (output_count < 0) { /* the recording is dropped */
        ops_graph_destroy(graph);
        return NULL;
    }
    return status == HAL_OK ? kept_wrap("halyard.graph", context, graph, NULL) : core_raise(status);
}

/* (graph, inputs, output_count): a tuple of arrays. */
static PyObject *graph_launch(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *capsule, *inputs;
    int output_count;
    ops_array *from[MOST_ARRAYS], *to[MOST_ARRAYS];
    if (!PyArg_ParseTuple(arguments, "OOi", &capsule, &inputs, &output_count)) {
        return NULL;
    }
    const kept_object *kept = PyCapsule_GetPointer(capsule, "halyard.graph");
    const int count = kept ? arrays_take(inputs, kept->context, from) : -1;
    if (count < 0) {
        return NULL;
    }
    const hal_status status =
        ops_graph_launch(kept->graph, from, (uint32_t)count, to, (uint32_t)output_count);
    return status == HAL_OK ? arrays_wrap(kept->context, to, output_count) : core_raise(status);
}

/* ---- Kernels ---- */

/* (context, address of a hal_ir_builder): the kernel. */
static PyObject *kernel_create(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    unsigned long long address;
    hal_kernel *kernel = NULL;
    if (!PyArg_ParseTuple(arguments, "O!K", core_context_type, &context, &address)) {
        return NULL;
    }
    hal_status status = HAL_OK;
    hal_ir_builder *builder = (hal_ir_builder *)(uintptr_t)address;
    Py_BEGIN_ALLOW_THREADS status =
        hal_kernel_create_built(context->device, builder, NULL, &kernel);
    Py_END_ALLOW_THREADS return status == HAL_OK
        ? kept_wrap("halyard.kernel", context, NULL, kernel)
        : core_raise(status);
}

/* The range of an array's elements, which are row-major from the start of its buffer. */
static hal_status input_range(ops_array **array, hal_range *range, ops_array **copy)
{
    ops_tensor tensor;
    HAL_TRY(ops_array_get_tensor(*array, &tensor));
    int64_t next = 1;
    bool is_plain = tensor.offset == 0;
    for (uint32_t i = tensor.rank; i-- > 0;) {
        is_plain = is_plain && (tensor.shape[i] == 1 || tensor.stride[i] == next);
        next *= tensor.shape[i];
    }
    if (!is_plain) {
        *copy = ops_array_copy(*array);
        HAL_TRY(ops_array_get_tensor(*copy, &tensor));
    }
    const uint64_t bytes = (uint64_t)next * core_type_bytes((int)tensor.type);
    *range = bytes ? (hal_range){tensor.buffer, 0, bytes} : (hal_range){0};
    return HAL_OK;
}

/* One argument of a dispatch: an array that is read, or (type, shape) of one that is made. */
typedef struct binding_state {
    ops_array *copy;   /* of an input that is a view */
    ops_tensor tensor; /* of an output; without a buffer for an input */
    hal_range range;
} binding_state;

static bool binding_take(context_object *context, PyObject *item, binding_state *binding)
{
    hal_status status = HAL_OK;
    if (Py_TYPE(item) == core_array_type) {
        array_object *array = (array_object *)item;
        status = array->context == context
                     ? input_range(&array->array, &binding->range, &binding->copy)
                     : hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                      "Kernel: expected arrays of the kernel's device");
    } else {
        int type;
        PyObject *sequence;
        int64_t shape[OPS_MAX_RANK];
        if (!PyArg_ParseTuple(item, "iO", &type, &sequence)) {
            return false;
        }
        const int rank = core_sequence(sequence, shape);
        if (rank < 0) {
            return false;
        }
        status = ops_tensor_create(context->ops, (hal_type)type, (uint32_t)rank, shape,
                                   &binding->tensor);
        binding->range = (hal_range){binding->tensor.buffer, 0, HAL_WHOLE};
    }
    if (status != HAL_OK) {
        core_raise(status);
    }
    return status == HAL_OK;
}

/* Records the dispatch and wraps what it writes. */
static PyObject *kernel_dispatch(const kept_object *kept, const uint32_t grid[3],
                                 const binding_state *bindings, uint32_t count,
                                 const Py_buffer *scalars)
{
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    ops_array *made[HAL_IR_MAX_BINDINGS];
    int made_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        ranges[i] = bindings[i].range;
    }
    const hal_status status = hal_queue_dispatch(kept->context->queue, kept->kernel, grid, ranges,
                                                 count, scalars->buf, (uint32_t)scalars->len);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (bindings[i].tensor.buffer) {
            made[made_count++] = ops_array_from_tensor(kept->context->ops, &bindings[i].tensor);
        }
    }
    return arrays_wrap(kept->context, made, made_count);
}

/* (kernel, (x, y, z) groups, bindings, scalars): a tuple of the arrays that were made. */
static PyObject *kernel_run(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *capsule, *list, *made = NULL;
    Py_buffer scalars;
    unsigned grid[3];
    binding_state bindings[HAL_IR_MAX_BINDINGS];
    if (!PyArg_ParseTuple(arguments, "O(III)O!y*", &capsule, &grid[0], &grid[1], &grid[2],
                          &PyTuple_Type, &list, &scalars)) {
        return NULL;
    }
    memset(bindings, 0, sizeof bindings);
    const kept_object *kept = PyCapsule_GetPointer(capsule, "halyard.kernel");
    const Py_ssize_t count = PyTuple_Size(list);
    bool taken = kept && count <= (Py_ssize_t)HAL_IR_MAX_BINDINGS;
    for (Py_ssize_t i = 0; taken && i < count; i++) {
        taken = binding_take(kept->context, PyTuple_GetItem(list, i), &bindings[i]);
    }
    if (taken) {
        made = kernel_dispatch(kept, grid, bindings, (uint32_t)count, &scalars);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "Kernel: too many bindings");
    }
    for (Py_ssize_t i = 0; i < count && i < (Py_ssize_t)HAL_IR_MAX_BINDINGS; i++) {
        ops_array_release(bindings[i].copy);
        ops_tensor_release(&bindings[i].tensor);
    }
    PyBuffer_Release(&scalars);
    return made;
}

PyMethodDef core_graph_methods[] = {
    {"graph_begin", graph_begin, METH_VARARGS, "(context)"},
    {"graph_end", graph_end, METH_VARARGS, "(context, inputs, outputs): a graph"},
    {"graph_launch", graph_launch, METH_VARARGS, "(graph, inputs, output_count)"},
    {"kernel_create", kernel_create, METH_VARARGS, "(context, builder): a kernel"},
    {"kernel_run", kernel_run, METH_VARARGS, "(kernel, groups, bindings, scalars)"},
    {NULL, NULL, 0, NULL},
};
