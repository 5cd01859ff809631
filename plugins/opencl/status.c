/* The host's services, and failing with a sentence. Called by every file of the plugin. */
#include "opencl.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct error_row {
    cl_int error;
    hal_status status;
    const char *name;
} error_row;

/* Errors of a command that ran, or that finds the device gone, cost the device. */
static const error_row errors[] = {
    {CL_DEVICE_NOT_FOUND, HAL_ERROR_NO_DEVICE, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, HAL_ERROR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, HAL_ERROR_UNSUPPORTED, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, HAL_ERROR_OUT_OF_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, HAL_ERROR_DEVICE_LOST, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, HAL_ERROR_OUT_OF_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_BUILD_PROGRAM_FAILURE, HAL_ERROR_COMPILE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, HAL_ERROR_DEVICE_LOST,
     "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {CL_COMPILE_PROGRAM_FAILURE, HAL_ERROR_COMPILE, "CL_COMPILE_PROGRAM_FAILURE"},
    {CL_LINK_PROGRAM_FAILURE, HAL_ERROR_COMPILE, "CL_LINK_PROGRAM_FAILURE"},
    {CL_INVALID_VALUE, HAL_ERROR_INTERNAL, "CL_INVALID_VALUE"},
    {CL_INVALID_CONTEXT, HAL_ERROR_DEVICE_LOST, "CL_INVALID_CONTEXT"},
    {CL_INVALID_COMMAND_QUEUE, HAL_ERROR_DEVICE_LOST, "CL_INVALID_COMMAND_QUEUE"},
    {CL_INVALID_MEM_OBJECT, HAL_ERROR_INTERNAL, "CL_INVALID_MEM_OBJECT"},
    {CL_INVALID_BINARY, HAL_ERROR_COMPILE, "CL_INVALID_BINARY"},
    {CL_INVALID_BUILD_OPTIONS, HAL_ERROR_COMPILE, "CL_INVALID_BUILD_OPTIONS"},
    {CL_INVALID_PROGRAM_EXECUTABLE, HAL_ERROR_COMPILE, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {CL_INVALID_KERNEL_NAME, HAL_ERROR_NOT_FOUND, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_KERNEL_ARGS, HAL_ERROR_INTERNAL, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_ARG_INDEX, HAL_ERROR_INVALID_ARGUMENT, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_VALUE, HAL_ERROR_INVALID_ARGUMENT, "CL_INVALID_ARG_VALUE"},
    {CL_INVALID_ARG_SIZE, HAL_ERROR_INVALID_ARGUMENT, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_WORK_GROUP_SIZE, HAL_ERROR_UNSUPPORTED, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_WORK_ITEM_SIZE, HAL_ERROR_UNSUPPORTED, "CL_INVALID_WORK_ITEM_SIZE"},
    {CL_INVALID_GLOBAL_WORK_SIZE, HAL_ERROR_UNSUPPORTED, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {CL_INVALID_BUFFER_SIZE, HAL_ERROR_OUT_OF_MEMORY, "CL_INVALID_BUFFER_SIZE"},
    {CL_PLATFORM_NOT_FOUND_KHR, HAL_ERROR_DRIVER_MISSING, "CL_PLATFORM_NOT_FOUND_KHR"},
};

static const hal_host *the_host;

static const error_row *find_error(cl_int error)
{
    static const error_row unknown = {0, HAL_ERROR_INTERNAL, "an unknown error"};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].error == error) {
            return &errors[i];
        }
    }
    return &unknown;
}

void opencl_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *opencl_host(void)
{
    return the_host;
}

const char *opencl_error_name(cl_int error)
{
    return find_error(error)->name;
}

hal_status opencl_fail(hal_status status, const char *format, ...)
{
    char message[3072]; /* a compiler's log is in some */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return the_host != NULL ? the_host->fail(status, message) : status;
}

hal_status opencl_fail_call(cl_int error, const char *format, ...)
{
    const error_row *row = find_error(error);
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return opencl_fail(row->status, "%s: %s (%d)", message, row->name, (int)error);
}
