/* Failures of the driver, with a message. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct error_row {
    cl_int error;
    hal_status status;
    const char *name;
} error_row;

/* After an error of a running command the device is lost. */
#define NAMED(error, status)  \
    {                         \
        error, status, #error \
    }
static const error_row errors[] = {
    NAMED(CL_DEVICE_NOT_FOUND, HAL_ERROR_NO_DEVICE),
    NAMED(CL_DEVICE_NOT_AVAILABLE, HAL_ERROR_DEVICE_LOST),
    NAMED(CL_COMPILER_NOT_AVAILABLE, HAL_ERROR_UNSUPPORTED),
    NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE, HAL_ERROR_OUT_OF_MEMORY),
    NAMED(CL_OUT_OF_RESOURCES, HAL_ERROR_DEVICE_LOST),
    NAMED(CL_OUT_OF_HOST_MEMORY, HAL_ERROR_OUT_OF_MEMORY),
    NAMED(CL_BUILD_PROGRAM_FAILURE, HAL_ERROR_COMPILE),
    NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, HAL_ERROR_DEVICE_LOST),
    NAMED(CL_COMPILE_PROGRAM_FAILURE, HAL_ERROR_COMPILE),
    NAMED(CL_LINK_PROGRAM_FAILURE, HAL_ERROR_COMPILE),
    NAMED(CL_INVALID_VALUE, HAL_ERROR_INTERNAL),
    NAMED(CL_INVALID_CONTEXT, HAL_ERROR_DEVICE_LOST),
    NAMED(CL_INVALID_COMMAND_QUEUE, HAL_ERROR_DEVICE_LOST),
    NAMED(CL_INVALID_MEM_OBJECT, HAL_ERROR_INTERNAL),
    NAMED(CL_INVALID_BINARY, HAL_ERROR_COMPILE),
    NAMED(CL_INVALID_BUILD_OPTIONS, HAL_ERROR_COMPILE),
    NAMED(CL_INVALID_PROGRAM_EXECUTABLE, HAL_ERROR_COMPILE),
    NAMED(CL_INVALID_KERNEL_NAME, HAL_ERROR_NOT_FOUND),
    NAMED(CL_INVALID_KERNEL_ARGS, HAL_ERROR_INTERNAL),
    NAMED(CL_INVALID_ARG_INDEX, HAL_ERROR_INVALID_ARGUMENT),
    NAMED(CL_INVALID_ARG_VALUE, HAL_ERROR_INVALID_ARGUMENT),
    NAMED(CL_INVALID_ARG_SIZE, HAL_ERROR_INVALID_ARGUMENT),
    NAMED(CL_INVALID_WORK_GROUP_SIZE, HAL_ERROR_UNSUPPORTED),
    NAMED(CL_INVALID_WORK_ITEM_SIZE, HAL_ERROR_UNSUPPORTED),
    NAMED(CL_INVALID_GLOBAL_WORK_SIZE, HAL_ERROR_UNSUPPORTED),
    NAMED(CL_INVALID_BUFFER_SIZE, HAL_ERROR_OUT_OF_MEMORY),
    NAMED(CL_PLATFORM_NOT_FOUND_KHR, HAL_ERROR_DRIVER_MISSING),
};
#undef NAMED

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

const char *opencl_error_name(cl_int error)
{
    return find_error(error)->name;
}

hal_status opencl_fail_result(cl_int error, const char *format, ...)
{
    const error_row *row = find_error(error);
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return kit_fail(row->status, "%s: %s (%d)", message, row->name, (int)error);
}
