/* The C exchange table of DLPack 1.3: functions that libraries call instead of Python's methods. It
 * is a capsule on the type halyard.Array, as __dlpack_c_exchange_api__. Callers hold Python's lock,
 * which `allocate` takes itself.
 *
 * Source: the DLPack specification, https://dmlc.github.io/dlpack/latest/c_api.html. */
#include "core.h"

#include <ops/dlpack.h>
#include <string.h>

/* DLPackExchangeAPIHeader and DLPackExchangeAPI. */
typedef struct exchange_header {
    uint32_t major, minor;
    struct exchange_header *previous;
} exchange_header;

typedef struct exchange_table {
    exchange_header header;
    int (*allocate)(ops_dlpack_tensor *prototype, ops_dlpack_managed **made, void *user,
                    void (*report)(void *user, const char *kind, const char *message));
    int (*from_object)(void *object, ops_dlpack_managed **made);
    int (*to_object)(ops_dlpack_managed *managed, void **object);
    int (*view_object)(void *object, ops_dlpack_tensor *view); /* null: not offered */
    int (*get_stream)(int32_t kind, int32_t index, void **stream);
} exchange_table;

/* The context of a device in DLPack's terms: a reference, or null with an exception. */
static context_object *context_find(int32_t kind, int32_t index)
{
    PyObject *module = PyImport_ImportModule("halyard._device");
    PyObject *context =
        module ? PyObject_CallMethod(module, "dlpack_context", "ii", (int)kind, (int)index) : NULL;
    Py_XDECREF(module);
    if (context && !PyObject_TypeCheck(context, core_context_type)) {
        Py_CLEAR(context);
        PyErr_SetString(PyExc_TypeError, "expected a context");
    }
    return (context_object *)context;
}

/* New memory of a type and shape. */
static hal_status table_make(context_object *context, const ops_dlpack_tensor *prototype,
                             ops_dlpack_managed **made)
{
    const bool is_complex = prototype->type.code == OPS_DLPACK_COMPLEX;
    ops_dlpack_type type = prototype->type;
    int64_t shape[OPS_MAX_RANK];
    uint32_t rank = (uint32_t)prototype->rank;
    if (is_complex) {
        type = ops_dlpack_type_of(type.bits == 64 ? HAL_TYPE_F32 : HAL_TYPE_F64);
    }
    if (prototype->rank < 0 || rank + is_complex > OPS_MAX_RANK) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "DLPack: expected at most %d axes, got %d",
                              (int)OPS_MAX_RANK - is_complex, (int)prototype->rank);
    }
    memcpy(shape, prototype->shape, rank * sizeof *shape);
    if (is_complex) {
        shape[rank++] = 2;
    }
    ops_tensor tensor;
    hal_status status =
        ops_tensor_create(context->ops, ops_dlpack_get_type(type), rank, shape, &tensor);
    if (status != HAL_OK) {
        return status;
    }
    status = ops_tensor_to_dlpack_stream(context->ops, &tensor, OPS_DLPACK_NO_STREAM, made);
    ops_tensor_release(&tensor);
    if (status == HAL_OK && is_complex) {
        status = ops_dlpack_join_parts(*made);
    }
    if (status == HAL_OK) {
        (*made)->flags = 0; /* nothing else has this memory */
    }
    return status;
}

static int table_allocate(ops_dlpack_tensor *prototype, ops_dlpack_managed **made, void *user,
                          void (*report)(void *user, const char *kind, const char *message))
{
    const PyGILState_STATE lock = PyGILState_Ensure();
    context_object *context = context_find(prototype->device.kind, prototype->device.index);
    const bool found = context != NULL;
    const hal_status status = found ? table_make(context, prototype, made) : HAL_ERROR_NOT_FOUND;
    PyErr_Clear();
    Py_XDECREF((PyObject *)context);
    PyGILState_Release(lock);
    if (status != HAL_OK) {
        report(user, "BufferError", found ? hal_status_message() : "halyard has no such device");
        return -1;
    }
    return 0;
}

/* The array's memory, which was computed before for a processor; on a GPU the work is on the stream
 * of table_stream. */
static int table_from_object(void *object, ops_dlpack_managed **made)
{
    array_object *x = core_array(object);
    return x && core_export(x, made) ? 0 : -1;
}

static int table_to_object(ops_dlpack_managed *managed, void **object)
{
    const ops_dlpack_device device = managed->tensor.device;
    context_object *context = context_find(device.kind, device.index);
    *object = context ? core_import(context, managed) : NULL;
    Py_XDECREF((PyObject *)context);
    return *object ? 0 : -1;
}

static int table_stream(int32_t kind, int32_t index, void **stream)
{
    *stream = NULL;
    if (kind != OPS_DLPACK_GPU) {
        return 0;
    }
    context_object *context = context_find(kind, index);
    int64_t number = 0;
    if (!context) {
        return -1;
    }
    const hal_status status = ops_dlpack_get_stream(context->ops, &number);
    Py_DECREF((PyObject *)context);
    if (status != HAL_OK) {
        core_raise(status);
        return -1;
    }
    *stream = (void *)(uintptr_t)number;
    return 0;
}

PyObject *core_exchange_table(void)
{
    static exchange_table table = {
        .header = {OPS_DLPACK_MAJOR, OPS_DLPACK_MINOR, NULL},
        .allocate = table_allocate,
        .from_object = table_from_object,
        .to_object = table_to_object,
        .get_stream = table_stream,
    };
    return PyCapsule_New(&table, "dlpack_exchange_api", NULL);
}
