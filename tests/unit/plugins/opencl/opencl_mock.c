/* A libOpenCL.so.1 with one device that runs nothing, and that goes wrong in the way that
 * MOCK_OPENCL names when a function is called; with MOCK_OLD defined it lacks most functions.
 * MOCK_PLATFORM names its platform. test_opencl_faults loads it in place of the real one. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { PARAMETER_BYTES = 1024, GROUP = 256 };

/* Objects are addresses of these, of no further use. */
static __attribute__((unused)) char platform_object, device_object, context_object, queue_object,
    buffer_object, program_object, kernel_object, event_object;

static int mode(const char *name)
{
    const char *now = getenv("MOCK_OPENCL");
    return now && strcmp(now, name) == 0;
}

static cl_int give(const void *value, size_t bytes, size_t room, void *out, size_t *size)
{
    if (size) {
        *size = bytes;
    }
    if (out && room < bytes) {
        return CL_INVALID_VALUE;
    }
    if (out) {
        memcpy(out, value, bytes);
    }
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t room, void *out, size_t *size)
{
    return give(text, strlen(text) + 1, room, out, size);
}

static __attribute__((unused)) void *object(char *made, cl_int status, cl_int *error)
{
    if (error) {
        *error = status;
    }
    return status == CL_SUCCESS ? made : NULL;
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    *count = mode("no_platform") ? 0 : 1;
    if (room > 0 && platforms) {
        platforms[0] = (cl_platform_id)&platform_object;
    }
    return mode("no_platform") ? -1001 : CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room, void *out,
                         size_t *size)
{
    const char *name = getenv("MOCK_PLATFORM");
    (void)platform, (void)what;
    return give_text(name ? name : "Mock", room, out, size);
}

#ifndef MOCK_OLD
cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                      cl_device_id *devices, cl_uint *count)
{
    (void)platform, (void)type, (void)room;
    setenv("MOCK_OPENCL_OF_DRIVER", "1", 1); /* as PoCL does for libraries that it uses */
    setenv("MOCK_OPENCL_CHANGED", "other", 1);
    unsetenv("MOCK_OPENCL_REMOVED");
    *count = 1;
    devices[0] = (cl_device_id)&device_object;
    return mode("no_device") ? CL_DEVICE_NOT_FOUND : CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *out,
                       size_t *size)
{
    const cl_bool yes = CL_TRUE, no = CL_FALSE;
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    const cl_device_fp_config f32 = CL_FP_FMA | CL_FP_DENORM;
    const cl_uint units = 4;
    const cl_ulong memory = 1 << 20;
    const size_t group = GROUP, parameters = PARAMETER_BYTES, sizes[3] = {GROUP, GROUP, GROUP};
    switch (what) {
    case CL_DEVICE_NAME:
        return give_text("Mock card", room, out, size);
    case CL_DEVICE_VERSION:
        return give_text(mode("version")        ? "OpenCL 1.1 mock"
                         : mode("long_version") ? "OpenCL 3.0 mock of a processor whose name is "
                                                  "more than has room."
                                                : "OpenCL 1.2 mock",
                         room, out, size);
    case CL_DEVICE_PROFILE:
        return give_text(mode("embedded") ? "EMBEDDED_PROFILE" : "FULL_PROFILE", room, out, size);
    case CL_DEVICE_EXTENSIONS:
    case CL_DRIVER_VERSION:
        return give_text("", room, out, size);
    case CL_DEVICE_TYPE:
        return give(&type, sizeof type, room, out, size);
    case CL_DEVICE_SINGLE_FP_CONFIG:
        return give(&f32, sizeof f32, room, out, size);
    case CL_DEVICE_COMPILER_AVAILABLE:
        return give(mode("no_compiler") ? &no : &yes, sizeof yes, room, out, size);
    case CL_DEVICE_AVAILABLE:
        return give(mode("not_available") ? &no : &yes, sizeof yes, room, out, size);
    case CL_DEVICE_ENDIAN_LITTLE:
        return give(mode("big_endian") ? &no : &yes, sizeof yes, room, out, size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return give(&yes, sizeof yes, room, out, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return give(&units, sizeof units, room, out, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return give(&memory, sizeof memory, room, out, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return give(&group, sizeof group, room, out, size);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        return give(&parameters, sizeof parameters, room, out, size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return give(sizes, sizeof sizes, room, out, size);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_context clCreateContext(const cl_context_properties *wanted, cl_uint count,
                           const cl_device_id *devices,
                           void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                           void *context, cl_int *error)
{
    (void)wanted, (void)count, (void)devices, (void)notify, (void)context;
    return object(&context_object, mode("context") ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS, error);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties wanted, cl_int *error)
{
    (void)context, (void)device, (void)wanted;
    return object(&queue_object, CL_SUCCESS, error);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                      cl_int *error)
{
    (void)context, (void)flags, (void)bytes, (void)host;
    return object(&buffer_object, mode("memory") ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS,
                  error);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **sources,
                                     const size_t *lengths, cl_int *error)
{
    (void)context, (void)count, (void)sources, (void)lengths;
    return object(&program_object, CL_SUCCESS, error);
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                     const size_t *lengths, const unsigned char **binaries,
                                     cl_int *status, cl_int *error)
{
    (void)context, (void)count, (void)devices, (void)lengths, (void)binaries;
    *status = mode("stale_binary") ? CL_INVALID_BINARY : CL_SUCCESS;
    return object(&program_object, *status, error);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                      const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                      void *context)
{
    const int no_header = strstr(options, "-D_OPENCL_H_") != NULL;
    (void)program, (void)count, (void)devices, (void)notify, (void)context;
    (void)rand(); /* as NVIDIA's compiler does */
    return mode("reject") || (mode("header") && no_header) || (mode("no_header") && !no_header)
               ? CL_BUILD_PROGRAM_FAILURE
               : CL_SUCCESS;
}

int mock_binary_count; /* times that a program was asked for its binary, or its size */

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t room, void *out,
                        size_t *size)
{
    const size_t bytes = 4;
    mock_binary_count++;
    if (what == CL_PROGRAM_BINARY_SIZES) {
        return give(&bytes, sizeof bytes, room, out, size);
    }
    memcpy(*(unsigned char **)out, "bits", bytes);
    return CL_SUCCESS;
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what,
                             size_t room, void *out, size_t *size)
{
    (void)program, (void)device, (void)what;
    return give_text("line 7: the mock takes no kernel", room, out, size);
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    (void)program, (void)name;
    return object(&kernel_object, mode("entry") ? CL_INVALID_KERNEL_NAME : CL_SUCCESS, error);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    (void)kernel, (void)index, (void)bytes, (void)value;
    return CL_SUCCESS;
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                cl_kernel_work_group_info what, size_t room, void *out,
                                size_t *size)
{
    const size_t most = mode("registers") ? 32 : GROUP;
    (void)kernel, (void)device, (void)what;
    return give(&most, sizeof most, room, out, size);
}

/* Events that were created and asked, flushes, calls of clFinish, waits for events that had not
 * ended, and barriers for events that were not flushed. */
int mock_event_count, mock_query_count, mock_flush_count, mock_finish_count, mock_block_count,
    mock_unflushed_count;
int mock_fill_count;
size_t mock_part_origin, mock_fills[8][3]; /* origin of the part, offset in it, bytes */
size_t mock_copies[8][3];                  /* from, to, bytes */
int mock_copy_count, mock_short_pitch;     /* rectangles are refused */
int mock_room = -1;                        /* calls until one lacks memory; -1: none does */

static int newest_queries; /* of the newest event */
static int unflushed;      /* whether it was created since the last flush */

/* Whatever is enqueued gives an event that is over, or that failed. */
static cl_int enqueue(cl_event *event)
{
    if (mock_room == 0) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    mock_room -= mock_room > 0;
    if (event) {
        *event = (cl_event)&event_object;
        mock_event_count++;
        newest_queries = 0;
        unflushed = 1;
    }
    return mode("enqueue") ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint count, const cl_event *waits, cl_event *event)
{
    (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local;
    (void)count, (void)waits;
    return enqueue(event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset,
                           size_t bytes, void *data, cl_uint count, const cl_event *waits,
                           cl_event *event)
{
    (void)queue, (void)buffer, (void)wait, (void)offset, (void)bytes, (void)data, (void)count;
    return enqueue(event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset,
                            size_t bytes, const void *data, cl_uint count, const cl_event *waits,
                            cl_event *event)
{
    (void)queue, (void)buffer, (void)wait, (void)offset, (void)bytes, (void)data, (void)count;
    return enqueue(event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem target, size_t from,
                           size_t to, size_t bytes, cl_uint count, const cl_event *waits,
                           cl_event *event)
{
    (void)queue, (void)source, (void)target, (void)count;
    if (mock_copy_count < 8) {
        mock_copies[mock_copy_count][0] = from;
        mock_copies[mock_copy_count][1] = to;
        mock_copies[mock_copy_count][2] = bytes;
    }
    mock_copy_count++;
    return enqueue(event);
}

cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem target,
                               const size_t *from, const size_t *to, const size_t *region,
                               size_t source_row, size_t source_slice, size_t target_row,
                               size_t target_slice, cl_uint count, const cl_event *waits,
                               cl_event *event)
{
    (void)queue, (void)source, (void)target, (void)from, (void)to, (void)region;
    (void)source_row, (void)source_slice, (void)target_row, (void)target_slice;
    (void)count, (void)waits;
    return mock_short_pitch ? CL_INVALID_VALUE : enqueue(event);
}

cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                         const void *region, cl_int *error)
{
    (void)flags, (void)type;
    mock_part_origin = ((const cl_buffer_region *)region)->origin;
    *error = CL_SUCCESS;
    return buffer;
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t size,
                           size_t offset, size_t bytes, cl_uint count, const cl_event *waits,
                           cl_event *event)
{
    (void)queue, (void)buffer, (void)pattern, (void)size, (void)count;
    if (mock_fill_count < 8) {
        mock_fills[mock_fill_count][0] = mock_part_origin;
        mock_fills[mock_fill_count][1] = offset;
        mock_fills[mock_fill_count++][2] = bytes;
    }
    return enqueue(event);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool wait, cl_map_flags flags,
                         size_t offset, size_t bytes, cl_uint count, const cl_event *waits,
                         cl_event *event, cl_int *error)
{
    (void)queue, (void)buffer, (void)wait, (void)flags, (void)offset, (void)bytes, (void)count;
    (void)waits, (void)event;
    return object(&buffer_object, CL_OUT_OF_RESOURCES, error);
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *data, cl_uint count,
                               const cl_event *waits, cl_event *event)
{
    (void)queue, (void)buffer, (void)data, (void)count, (void)waits;
    return enqueue(event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *waits,
                                   cl_event *event)
{
    (void)queue, (void)count, (void)waits;
    return enqueue(event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *waits,
                                    cl_event *event)
{
    (void)queue, (void)count, (void)waits;
    mock_unflushed_count += unflushed;
    return enqueue(event);
}

/* The newest user event, and how many lost their last reference without a status. */
static char user_object;
static cl_int user_references, user_state;
int mock_user_lost;

cl_event clCreateUserEvent(cl_context context, cl_int *error)
{
    (void)context;
    *error = CL_SUCCESS;
    user_references = 1;
    user_state = CL_SUBMITTED;
    return (cl_event)&user_object;
}

cl_int clSetUserEventStatus(cl_event event, cl_int status)
{
    (void)event;
    user_state = status;
    return CL_SUCCESS;
}

cl_int clRetainEvent(cl_event event)
{
    user_references += event == (cl_event)&user_object;
    return CL_SUCCESS;
}

cl_int clReleaseEvent(cl_event event)
{
    if (event == (cl_event)&user_object && --user_references == 0) {
        mock_user_lost += user_state > CL_COMPLETE;
    }
    return CL_SUCCESS;
}

cl_int clSetEventCallback(cl_event event, cl_int state,
                          void(CL_CALLBACK *call)(cl_event event, cl_int state, void *user),
                          void *user)
{
    call(event, state, user);
    return CL_SUCCESS;
}

cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    (void)count, (void)events;
    mock_block_count += mode("slow");
    return mode("lost") ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t room, void *out, size_t *size)
{
    const cl_context context = (cl_context)&context_object;
    const cl_command_type type =
        event == (cl_event)&user_object ? CL_COMMAND_USER : CL_COMMAND_MARKER;
    if (what == CL_EVENT_CONTEXT) {
        return give(&context, sizeof context, room, out, size);
    }
    if (what == CL_EVENT_COMMAND_TYPE) {
        return give(&type, sizeof type, room, out, size);
    }
    if (event == (cl_event)&user_object) {
        return what == CL_EVENT_REFERENCE_COUNT
                   ? give(&user_references, sizeof user_references, room, out, size)
                   : give(&user_state, sizeof user_state, room, out, size);
    }
    const cl_int state = mode("lost")                          ? CL_OUT_OF_RESOURCES
                         : mode("slow")                        ? CL_RUNNING
                         : mode("soon") && newest_queries == 0 ? CL_RUNNING
                                                               : CL_COMPLETE;
    newest_queries++;
    mock_query_count++;
    return give(&state, sizeof state, room, out, size);
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t room, void *out,
                               size_t *size)
{
    const cl_ulong time = 1000;
    (void)event, (void)what;
    return give(&time, sizeof time, room, out, size);
}

/* Nothing is counted. */
#define DONE(name, type)    \
    cl_int name(type thing) \
    {                       \
        (void)thing;        \
        return CL_SUCCESS;  \
    }
DONE(clReleaseContext, cl_context)
DONE(clReleaseCommandQueue, cl_command_queue)
DONE(clRetainCommandQueue, cl_command_queue)
DONE(clReleaseMemObject, cl_mem)
DONE(clRetainMemObject, cl_mem)
DONE(clReleaseProgram, cl_program)
DONE(clReleaseKernel, cl_kernel)

/* No queue of another library is one of the mock's. */
cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t room,
                             void *out, size_t *size)
{
    (void)queue, (void)what, (void)room, (void)out, (void)size;
    return CL_INVALID_COMMAND_QUEUE;
}

cl_int clFlush(cl_command_queue queue)
{
    (void)queue;
    mock_flush_count++;
    unflushed = 0;
    return CL_SUCCESS;
}

cl_int clFinish(cl_command_queue queue)
{
    (void)queue;
    mock_finish_count++;
    return mode("finish") ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}
#endif
