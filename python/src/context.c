/* The type _core.Context: an open device, its queue and its ops_context. */
#include "core.h"

#include <string.h>

PyTypeObject *core_context_type;

PyObject *core_raise(hal_status status)
{
    const char *message = hal_status_message();
    if (!core_hook.error) {
        PyErr_SetString(PyExc_RuntimeError, message);
        return NULL;
    }
    PyObject *exception = PyObject_CallFunction(core_hook.error, "is", (int)status, message);
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

ops_array *core_from_host(context_object *context, hal_type type, uint32_t rank,
                          const int64_t *shape, const void *elements)
{
    if (context->is_recording) {
        hal_status_set(HAL_ERROR_INVALID_STATE,
                       "compile: the function makes an array of a list, a large int or other "
                       "elements of the host, which cannot be recorded; make it before");
        return NULL;
    }
    return ops_array_from_host(context->ops, type, rank, shape, elements);
}

bool core_wait(context_object *context)
{
    hal_point point;
    hal_status status = hal_queue_flush(context->queue, &point);
    while (status == HAL_OK) {
        Py_BEGIN_ALLOW_THREADS status = hal_point_wait(point, 20u * 1000u * 1000u);
        Py_END_ALLOW_THREADS if (status != HAL_ERROR_TIMEOUT)
        {
            break;
        }
        status = HAL_OK;
        if (PyErr_CheckSignals() != 0) {
            return false;
        }
    }
    if (status != HAL_OK) {
        core_raise(status);
    }
    return status == HAL_OK;
}

/* Whether a frame is of a module of the package. */
static bool frame_is_own(PyObject *frame)
{
    PyObject *globals = PyObject_GetAttrString(frame, "f_globals");
    PyObject *name = globals ? PyMapping_GetItemString(globals, "__name__") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const bool is_own = text && strncmp(text, "halyard.", strlen("halyard.")) == 0;
    Py_XDECREF(name);
    Py_XDECREF(globals);
    return is_own;
}

/* The innermost frame outside of the package. The text belongs to the frame's code. */
static ops_site frame_site(void *user)
{
    (void)user;
    ops_site site = {NULL, 0};
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame && frame != Py_None && !site.file) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        PyObject *name = PyObject_GetAttrString(code, "co_filename");
        const char *file = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        if (file && !frame_is_own(frame)) {
            site = (ops_site){file, (uint32_t)PyFrame_GetLineNumber((PyFrameObject *)frame)};
        }
        Py_XDECREF(name);
        Py_DECREF(code);
        PyObject *caller = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return site;
}

static PyObject *context_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    (void)names;
    const char *selection = NULL;
    if (!PyArg_ParseTuple(arguments, "z", &selection)) {
        return NULL;
    }
    context_object *self = (context_object *)PyType_GenericAlloc(type, 0);
    if (!self) {
        return NULL;
    }
    hal_status status = HAL_OK;
    Py_BEGIN_ALLOW_THREADS status = hal_device_open(selection, &self->device);
    Py_END_ALLOW_THREADS status =
        status == HAL_OK ? hal_queue_create(self->device, &self->queue) : status;
    status = status == HAL_OK ? ops_context_create(self->queue, &self->ops) : status;
    if (status != HAL_OK) {
        Py_DECREF(self);
        return core_raise(status);
    }
    ops_context_set_site_function(self->ops, frame_site, NULL);
    return (PyObject *)self;
}

static void context_free(PyObject *object)
{
    context_object *self = (context_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    ops_context_destroy(self->ops);
    hal_queue_destroy(self->queue);
    hal_device_release(self->device);
    Py_XDECREF(self->owner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *context_wait(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (!core_wait((context_object *)object)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *context_flush(PyObject *object, PyObject *unused)
{
    (void)unused;
    const hal_status status = hal_queue_flush(((context_object *)object)->queue, NULL);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    Py_RETURN_NONE;
}

static PyObject *context_info(PyObject *object, PyObject *unused)
{
    (void)unused;
    const context_object *self = (context_object *)object;
    const hal_device_info *info = hal_device_get_info(self->device);
    return Py_BuildValue("{s:s,s:I,s:s,s:I,s:s,s:s,s:K,s:I,s:I,s:I,s:s}", "plugin",
                         hal_device_get_plugin_name(self->device), "index",
                         (unsigned)hal_device_get_index(self->device), "name", info->name, "kind",
                         (unsigned)info->kind, "driver", info->driver, "architecture",
                         info->architecture, "memory_bytes", (unsigned long long)info->memory_bytes,
                         "storage_types", (unsigned)info->storage_types, "arithmetic_types",
                         (unsigned)info->arithmetic_types, "features", (unsigned)info->features,
                         "quirks", hal_device_get_quirks(self->device));
}

static PyObject *context_memory(PyObject *object, PyObject *unused)
{
    (void)unused;
    hal_memory_statistics memory;
    const hal_status status = hal_device_get_memory(((context_object *)object)->device, &memory);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "total_bytes",
                         (unsigned long long)memory.total_bytes, "free_bytes",
                         (unsigned long long)memory.free_bytes, "in_use_bytes",
                         (unsigned long long)memory.in_use_bytes, "pooled_bytes",
                         (unsigned long long)memory.pooled_bytes, "imported_bytes",
                         (unsigned long long)memory.imported_bytes, "copied_bytes",
                         (unsigned long long)memory.copied_bytes);
}

static PyObject *context_statistics(PyObject *object, PyObject *unused)
{
    (void)unused;
    ops_array_statistics counts = {.size = sizeof counts};
    const hal_status status = ops_context_get_statistics(((context_object *)object)->ops, &counts);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "recorded", (unsigned long long)counts.recorded,
        "evaluated", (unsigned long long)counts.evaluated, "dropped",
        (unsigned long long)counts.dropped, "kernels", (unsigned long long)counts.kernels,
        "compiled", (unsigned long long)counts.compiled, "arrays",
        (unsigned long long)counts.arrays, "deferred", (unsigned long long)counts.deferred);
}

static PyObject *context_set_owner(PyObject *object, PyObject *owner)
{
    context_object *self = (context_object *)object;
    Py_INCREF(owner);
    Py_XDECREF(self->owner);
    self->owner = owner;
    Py_RETURN_NONE;
}

static PyMethodDef context_methods[] = {
    {"wait", context_wait, METH_NOARGS, "Waits for all work of the queue."},
    {"flush", context_flush, METH_NOARGS, "Submits what is recorded."},
    {"info", context_info, METH_NOARGS, "The properties of the device."},
    {"memory", context_memory, METH_NOARGS, "The device's memory in bytes."},
    {"statistics", context_statistics, METH_NOARGS, "Counters of arrays and kernels."},
    {"set_owner", context_set_owner, METH_O, "Sets the halyard.Device of the context."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_free},
    {Py_tp_methods, context_methods},
    {Py_tp_doc, "Context(selection): an open device and its queue."},
    {0, NULL},
};
static PyType_Spec context_spec = {"halyard._core.Context", sizeof(context_object), 0,
                                   Py_TPFLAGS_DEFAULT, context_slots};

bool core_context_ready(PyObject *module)
{
    core_context_type = (PyTypeObject *)PyType_FromSpec(&context_spec);
    return core_context_type && PyModule_AddType(module, core_context_type) == 0;
}
