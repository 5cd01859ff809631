/* The extension halyard._core: arrays of ops for Python, by CPython's limited API of 3.11, so that
 * one file serves every later version. */
#include "core.h"

size_t core_type_bytes(int dtype)
{
#define BYTES(NAME, number, since, name, bytes, ...) [HAL_TYPE_##NAME] = (bytes),
    static const uint8_t sizes[HAL_TYPE_COUNT] = {HAL_TYPE_TABLE(BYTES)};
#undef BYTES
    const hal_type type = core_part_type(dtype);
    return type < HAL_TYPE_COUNT ? (size_t)sizes[type] << (dtype & CORE_COMPLEX ? 1 : 0) : 0;
}

static PyObject *module_set_hooks(PyObject *module, PyObject *arguments)
{
    (void)module;
    core_hooks hooks;
    if (!PyArg_ParseTuple(arguments, "OOO!", &hooks.binary, &hooks.error, &PyTuple_Type,
                          &hooks.dtypes)) {
        return NULL;
    }
    Py_INCREF(hooks.binary);
    Py_INCREF(hooks.error);
    Py_INCREF(hooks.dtypes);
    core_hook = hooks;
    Py_RETURN_NONE;
}

/* What hal's registry finds: a list of plugins, each with its devices. */
static PyObject *module_registry(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    hal_registry_report *report = NULL;
    hal_status status = HAL_OK;
    Py_BEGIN_ALLOW_THREADS status = hal_registry_report_create(&report);
    Py_END_ALLOW_THREADS if (status != HAL_OK)
    {
        return core_raise(status);
    }
    PyObject *plugins = PyList_New(0);
    for (uint32_t i = 0; plugins && i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        PyObject *devices = PyList_New(0);
        for (uint32_t j = 0; devices && j < plugin->device_count; j++) {
            const hal_device_info *info = &plugin->devices[j];
            PyObject *device =
                Py_BuildValue("{s:s,s:s,s:I,s:s,s:K}", "name", info->name, "driver", info->driver,
                              "kind", (unsigned)info->kind, "id", info->id, "memory_bytes",
                              (unsigned long long)info->memory_bytes);
            if (!device || PyList_Append(devices, device) != 0) {
                Py_CLEAR(devices);
            }
            Py_XDECREF(device);
        }
        PyObject *entry = devices ? Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:N}", "path", plugin->path,
                                                  "name", plugin->name, "version", plugin->version,
                                                  "status", hal_status_name(plugin->status),
                                                  "message", plugin->message, "devices", devices)
                                  : NULL;
        if (!entry || PyList_Append(plugins, entry) != 0) {
            Py_CLEAR(plugins);
        }
        Py_XDECREF(entry);
    }
    PyObject *result =
        plugins ? Py_BuildValue("{s:N,s:s}", "plugins", plugins, "choice", report->choice) : NULL;
    hal_registry_report_destroy(report);
    return result;
}

/* (selection): the quirks of a device's driver that its plugin knows, a list of dicts. */
static PyObject *module_quirks(PyObject *module, PyObject *selection)
{
    (void)module;
    PyObject *text = PyUnicode_AsUTF8String(selection);
    const char *name = text ? PyBytes_AsString(text) : NULL;
    if (!name) {
        Py_XDECREF(text);
        return NULL;
    }
    hal_device *device = NULL;
    hal_status status = HAL_OK;
    Py_BEGIN_ALLOW_THREADS status = hal_device_open(name, &device);
    Py_END_ALLOW_THREADS Py_DECREF(text);
    if (status != HAL_OK) {
        return core_raise(status);
    }
    PyObject *quirks = PyList_New(0);
    hal_quirk quirk = {.size = sizeof quirk};
    for (uint32_t i = 0; quirks && hal_device_get_quirk(device, i, &quirk) == HAL_OK; i++) {
        PyObject *entry =
            Py_BuildValue("{s:s,s:N,s:s}", "name", quirk.name, "active",
                          PyBool_FromLong((long)quirk.is_active), "reason", quirk.reason);
        if (!entry || PyList_Append(quirks, entry) != 0) {
            Py_CLEAR(quirks);
        }
        Py_XDECREF(entry);
    }
    hal_device_release(device);
    return quirks;
}

static PyMethodDef module_methods[] = {
    {"set_hooks", module_set_hooks, METH_VARARGS, "(binary, error, dtypes)"},
    {"registry", module_registry, METH_NOARGS, "What hal's registry finds."},
    {"quirks", module_quirks, METH_O, "(selection): what the plugin knows of the driver."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                        "halyard._core",
                                        "Arrays of Halyard; use the module halyard.",
                                        -1,
                                        module_methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

/* Adds a dictionary of names and numbers. */
static bool module_add_functions(PyObject *module, const char *name, unsigned count,
                                 const char *(*name_of)(unsigned))
{
    PyObject *names = PyDict_New();
    for (unsigned i = 0; names && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(i);
        if (!number || PyDict_SetItemString(names, name_of(i), number) != 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(number);
    }
    const bool added = names && PyModule_AddObjectRef(module, name, names) == 0;
    Py_XDECREF(names);
    return added;
}

static const char *unary_name(unsigned function)
{
    return ops_unary_name((ops_unary_function)function);
}

static const char *binary_name(unsigned function)
{
    return ops_binary_name((ops_binary_function)function);
}

static const char *complex_name(unsigned function)
{
    return ops_complex_unary_name((ops_complex_unary_function)function);
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&module_definition);
    if (!module || !core_context_ready(module) || !core_array_ready(module) ||
        PyModule_AddFunctions(module, core_operation_methods) != 0 ||
        PyModule_AddFunctions(module, core_host_methods) != 0 ||
        PyModule_AddFunctions(module, core_linalg_methods) != 0 ||
        PyModule_AddFunctions(module, core_dlpack_methods) != 0 ||
        PyModule_AddFunctions(module, core_graph_methods) != 0 ||
        PyModule_AddFunctions(module, core_quick_methods) != 0 ||
        PyModule_AddFunctions(module, core_number_methods) != 0 ||
        PyModule_AddFunctions(module, core_key_methods) != 0 ||
        PyModule_AddIntConstant(module, "MAX_RANK", OPS_MAX_RANK) != 0 ||
        PyModule_AddFunctions(module, core_complex_methods) != 0 ||
        !module_add_functions(module, "UNARY", OPS_UNARY_COUNT, unary_name) ||
        !module_add_functions(module, "BINARY", OPS_BINARY_COUNT, binary_name) ||
        !module_add_functions(module, "COMPLEX", OPS_COMPLEX_UNARY_COUNT, complex_name)) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
