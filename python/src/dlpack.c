/* Functions of halyard._core for DLPack's capsules. */
#include "core.h"

#include <stdlib.h>

/* DLManagedTensor, the form before version 1.0, of a consumer that asks for no version. */
typedef struct dlpack_legacy {
    ops_dlpack_tensor tensor;
    void *owner;
    void (*destroy)(struct dlpack_legacy *legacy);
} dlpack_legacy;

/* How an import treats the memory of the exporter. */
enum { IMPORT_SHARES = 0, IMPORT_COPIES = 1 };

static void legacy_destroy(dlpack_legacy *legacy)
{
    ops_dlpack_managed *managed = legacy->owner;
    managed->destroy(managed);
    free(legacy);
}

/* A consumer renames a capsule that it has taken. */
static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        ops_dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        managed->destroy(managed);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        dlpack_legacy *legacy = PyCapsule_GetPointer(capsule, "dltensor");
        legacy->destroy(legacy);
    }
}

/* (x, copy, versioned, stream): a capsule. With a stream, a number, the host does not wait. */
static PyObject *dlpack_export(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    int copy, versioned;
    PyObject *number;
    if (!PyArg_ParseTuple(arguments, "O!ppO", core_array_type, &x, &copy, &versioned, &number)) {
        return NULL;
    }
    const bool has_stream = number != Py_None;
    const long long stream = has_stream ? PyLong_AsLongLong(number) : 0;
    if (PyErr_Occurred()) {
        return NULL;
    }
    ops_tensor tensor;
    ops_context *ops = x->context->ops;
    ops_dlpack_managed *managed = NULL;
    hal_status status = ops_array_get_tensor(x->array, &tensor);
    if (status == HAL_OK && !has_stream && !core_wait(x->context)) {
        return NULL;
    }
    if (status == HAL_OK) {
        status = has_stream ? ops_tensor_to_dlpack_stream(ops, &tensor, stream, &managed)
                            : ops_tensor_to_dlpack(ops, &tensor, copy, &managed);
    }
    if (status == HAL_OK && x->is_complex) {
        status = ops_dlpack_join_parts(managed);
        if (status != HAL_OK) {
            managed->destroy(managed);
        }
    }
    if (status != HAL_OK) {
        return core_raise(status);
    }
    if (versioned) {
        PyObject *capsule = PyCapsule_New(managed, "dltensor_versioned", capsule_free);
        if (!capsule) {
            managed->destroy(managed);
        }
        return capsule;
    }
    dlpack_legacy *legacy = malloc(sizeof *legacy);
    PyObject *capsule = NULL;
    if (legacy) {
        *legacy = (dlpack_legacy){managed->tensor, managed, legacy_destroy};
        capsule = PyCapsule_New(legacy, "dltensor", capsule_free);
    }
    if (!capsule) {
        free(legacy);
        managed->destroy(managed);
        return legacy ? NULL : PyErr_NoMemory();
    }
    return capsule;
}

static void managed_release(void *user)
{
    ops_dlpack_managed *managed = user;
    if (managed->destroy) {
        managed->destroy(managed);
    }
}

static void legacy_release(void *user)
{
    dlpack_legacy *legacy = user;
    if (legacy->destroy) {
        legacy->destroy(legacy);
    }
}

/* The tensor of an import, which is shared or copied as `copy` says; `release` was called or will
 * be. What is shared is never written: arrays are values. */
static hal_status tensor_import(context_object *context, const ops_dlpack_tensor *source, int copy,
                                hal_release_callback release, void *user, ops_tensor *tensor)
{
    hal_status status = HAL_ERROR_UNSUPPORTED;
    if (copy != IMPORT_COPIES) {
        status = ops_tensor_share_dlpack(context->ops, source, OPS_DLPACK_READ_ONLY, release, user,
                                         tensor);
    }
    if (status == HAL_ERROR_UNSUPPORTED && copy != IMPORT_SHARES) {
        status = ops_tensor_from_dlpack(context->ops, source, tensor);
        if (status == HAL_OK) {
            release(user);
        }
    }
    return status;
}

/* (context, capsule, copy): an array of the elements; `copy` is 0 (never), 1 (always) or 2 (if the
 * memory cannot be shared). */
static PyObject *dlpack_import(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    PyObject *capsule;
    int copy;
    if (!PyArg_ParseTuple(arguments, "O!Oi", core_context_type, &context, &capsule, &copy)) {
        return NULL;
    }
    const bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    void *pointer = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
    if (!pointer) {
        return NULL;
    }
    ops_dlpack_managed *managed = versioned ? pointer : NULL;
    dlpack_legacy *legacy = versioned ? NULL : pointer;
    if (managed && managed->major != OPS_DLPACK_MAJOR) {
        PyErr_Format(PyExc_BufferError, "expected version %u of DLPack, got %u", OPS_DLPACK_MAJOR,
                     managed->major);
        return NULL;
    }
    const ops_dlpack_tensor *source = managed ? &managed->tensor : &legacy->tensor;
    const bool is_complex = source->type.code == OPS_DLPACK_COMPLEX; /* an import may end it */
    ops_tensor tensor;
    const hal_status status = tensor_import(
        context, source, copy, managed ? managed_release : legacy_release, pointer, &tensor);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
    PyObject *made =
        core_wrap_parts(context, ops_array_from_tensor(context->ops, &tensor), is_complex);
    ops_tensor_release(&tensor);
    return made;
}

bool core_export(array_object *x, ops_dlpack_managed **managed)
{
    ops_context *ops = x->context->ops;
    ops_tensor tensor;
    hal_status status = ops_array_get_tensor(x->array, &tensor);
    const bool has_stream = ops_dlpack_device_of(ops).kind == OPS_DLPACK_GPU;
    if (status == HAL_OK && !has_stream && !core_wait(x->context)) {
        return false;
    }
    if (status == HAL_OK) {
        status = has_stream
                     ? ops_tensor_to_dlpack_stream(ops, &tensor, OPS_DLPACK_NO_STREAM, managed)
                     : ops_tensor_to_dlpack(ops, &tensor, 0, managed);
    }
    if (status == HAL_OK && x->is_complex) {
        status = ops_dlpack_join_parts(*managed);
        if (status != HAL_OK) {
            (*managed)->destroy(*managed);
        }
    }
    if (status != HAL_OK) {
        core_raise(status);
    }
    return status == HAL_OK;
}

PyObject *core_import(context_object *context, ops_dlpack_managed *managed)
{
    const bool is_complex = managed->tensor.type.code == OPS_DLPACK_COMPLEX;
    ops_tensor tensor;
    const hal_status status =
        tensor_import(context, &managed->tensor, 2, managed_release, managed, &tensor);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    PyObject *made =
        core_wrap_parts(context, ops_array_from_tensor(context->ops, &tensor), is_complex);
    ops_tensor_release(&tensor);
    return made;
}

/* (): the exchange table */
static PyObject *dlpack_table(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return core_exchange_table();
}

/* (context): (kind, index) of its memory in DLPack's terms, and the number of its stream. */
static PyObject *dlpack_device(PyObject *module, PyObject *object)
{
    (void)module;
    if (!PyObject_TypeCheck(object, core_context_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a context");
        return NULL;
    }
    ops_context *ops = ((context_object *)object)->ops;
    const ops_dlpack_device device = ops_dlpack_device_of(ops);
    int64_t stream = 0;
    const hal_status status = ops_dlpack_get_stream(ops, &stream);
    return status == HAL_OK
               ? Py_BuildValue("iiL", (int)device.kind, (int)device.index, (long long)stream)
               : core_raise(status);
}

PyMethodDef core_dlpack_methods[] = {
    {"dlpack_export", dlpack_export, METH_VARARGS, "(x, copy, versioned, stream)"},
    {"dlpack_device", dlpack_device, METH_O, "(context): kind, index, stream"},
    {"dlpack_table", dlpack_table, METH_NOARGS, "(): a capsule"},
    {"dlpack_import", dlpack_import, METH_VARARGS, "(context, capsule, copy)"},
    {NULL, NULL, 0, NULL},
};
