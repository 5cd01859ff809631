/* Functions of halyard._core for DLPack's capsules. */
#include "core.h"

#include <stdlib.h>

/* DLManagedTensor, the form before version 1.0, of a consumer that asks for no version. */
typedef struct dlpack_legacy {
    ops_dlpack_tensor tensor;
    void *owner;
    void (*destroy)(struct dlpack_legacy *legacy);
} dlpack_legacy;

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

/* (x, copy, versioned): a capsule. */
static PyObject *dlpack_export(PyObject *module, PyObject *arguments)
{
    (void)module;
    array_object *x;
    int copy, versioned;
    if (!PyArg_ParseTuple(arguments, "O!pp", core_array_type, &x, &copy, &versioned)) {
        return NULL;
    }
    ops_tensor tensor;
    ops_dlpack_managed *managed = NULL;
    hal_status status = ops_array_get_tensor(x->array, &tensor);
    if (status == HAL_OK && !core_wait(x->context)) {
        return NULL;
    }
    status =
        status == HAL_OK ? ops_tensor_to_dlpack(x->context->ops, &tensor, copy, &managed) : status;
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

/* (context, capsule): an array with a copy of the elements. */
static PyObject *dlpack_import(PyObject *module, PyObject *arguments)
{
    (void)module;
    context_object *context;
    PyObject *capsule;
    if (!PyArg_ParseTuple(arguments, "O!O", core_context_type, &context, &capsule)) {
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
    ops_tensor tensor;
    hal_status status =
        ops_tensor_from_dlpack(context->ops, managed ? &managed->tensor : &legacy->tensor, &tensor);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    PyObject *made = core_wrap(context, ops_array_from_tensor(context->ops, &tensor));
    ops_tensor_release(&tensor);
    if (made) {
        PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
        if (managed && managed->destroy) {
            managed->destroy(managed);
        } else if (legacy && legacy->destroy) {
            legacy->destroy(legacy);
        }
    }
    return made;
}

PyMethodDef core_dlpack_methods[] = {
    {"dlpack_export", dlpack_export, METH_VARARGS, "(x, copy, versioned)"},
    {"dlpack_import", dlpack_import, METH_VARARGS, "(context, capsule)"},
    {NULL, NULL, 0, NULL},
};
