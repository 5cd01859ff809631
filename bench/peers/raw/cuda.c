/* The CUDA driver's own calls. One stream of the primary context, kernels from PTX, a graph
 * captured from the stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/raw/cuda_calls.h"
#include "peers/raw/apis.h"

typedef struct raw_cuda_device {
    raw_device base;
    cuda_calls cuda;
    void *module, *empty, *bound, *step, *graph, *executable;
    uint64_t x, y, source, target;
    unsigned turn; /* which of x and y the next step reads */
    uint64_t copy_bytes;
    void *host; /* RAW_READ_MOST bytes, page-locked */
} raw_cuda_device;

static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                           ".visible .entry empty()\n{\n\tret;\n}\n"
                           ".visible .entry bound(.param .u64 x, .param .u64 y)\n{\n\tret;\n}\n"
                           ".visible .entry step(.param .u64 x, .param .u64 y)\n{\n"
                           "\t.reg .u32 %r<5>;\n\t.reg .u64 %d<6>;\n"
                           "\tld.param.u64 %d0, [x];\n\tld.param.u64 %d1, [y];\n"
                           "\tcvta.to.global.u64 %d0, %d0;\n\tcvta.to.global.u64 %d1, %d1;\n"
                           "\tmov.u32 %r0, %ctaid.x;\n\tmov.u32 %r1, %ntid.x;\n"
                           "\tmov.u32 %r2, %tid.x;\n\tmad.lo.u32 %r0, %r0, %r1, %r2;\n"
                           "\tmul.wide.u32 %d2, %r0, 4;\n\tadd.u64 %d3, %d0, %d2;\n"
                           "\tadd.u64 %d4, %d1, %d2;\n\tld.global.u32 %r3, [%d3];\n"
                           "\tmad.lo.u32 %r4, %r3, 3, %r0;\n\tst.global.u32 [%d4], %r4;\n"
                           "\tret;\n}\n";

static bool well(raw_cuda_device *d, int code, const char *call)
{
    return code == 0 || raw_fail(&d->base, call, code);
}

static bool make_kernels(raw_cuda_device *d)
{
    const cuda_calls *cuda = &d->cuda;
    return well(d, cuda->module_load(&d->module, text), "cuModuleLoadData") &&
           well(d, cuda->module_function(&d->empty, d->module, "empty"), "cuModuleGetFunction") &&
           well(d, cuda->module_function(&d->bound, d->module, "bound"), "cuModuleGetFunction") &&
           well(d, cuda->module_function(&d->step, d->module, "step"), "cuModuleGetFunction") &&
           well(d, cuda->allocate(&d->x, RAW_READ_MOST), "cuMemAlloc") &&
           well(d, cuda->allocate(&d->y, RAW_READ_MOST), "cuMemAlloc") &&
           well(d, cuda->host_allocate(&d->host, RAW_READ_MOST), "cuMemAllocHost");
}

static bool launch(raw_cuda_device *d, void *function, void **arguments)
{
    return well(d, d->cuda.launch(function, 1, 1, 1, 1, 1, 1, 0, d->cuda.stream, arguments, NULL),
                "cuLaunchKernel");
}

static bool make_graph(raw_cuda_device *d)
{
    enum { RELAXED = 2 };
    const cuda_calls *cuda = &d->cuda;
    if (!well(d, cuda->capture_begin(cuda->stream, RELAXED), "cuStreamBeginCapture")) {
        return false;
    }
    for (int i = 0; i < RAW_GRAPH_COMMANDS && launch(d, d->empty, NULL); i++) {
    }
    return well(d, cuda->capture_end(cuda->stream, &d->graph), "cuStreamEndCapture") &&
           !d->base.failed &&
           well(d, cuda->graph_instantiate(&d->executable, d->graph, 0),
                "cuGraphInstantiateWithFlags");
}

static bool make(raw_device *device)
{
    raw_cuda_device *d = (raw_cuda_device *)device;
    return make_kernels(d) && make_graph(d);
}

static void release(raw_cuda_device *d, uint64_t *memory)
{
    if (*memory != 0) {
        d->cuda.release(*memory);
    }
    *memory = 0;
}

static void close_device(raw_device *device)
{
    raw_cuda_device *d = (raw_cuda_device *)device;
    const cuda_calls *cuda = &d->cuda;
    cuda->stream_wait(cuda->stream);
    if (d->executable) {
        cuda->executable_destroy(d->executable);
    }
    if (d->graph) {
        cuda->graph_destroy(d->graph);
    }
    release(d, &d->x);
    release(d, &d->y);
    release(d, &d->source);
    release(d, &d->target);
    if (d->host) {
        cuda->host_release(d->host);
    }
    if (d->module) {
        cuda->module_unload(d->module);
    }
    cuda_close(&d->cuda);
    free(d);
}

static bool open_device(raw_device *device, const hal_device_info *info, char *message,
                        size_t bytes)
{
    raw_cuda_device *d = (raw_cuda_device *)device;
    return cuda_open(&d->cuda, info, message, bytes);
}

static bool finish(raw_cuda_device *d)
{
    return well(d, d->cuda.stream_wait(d->cuda.stream), "cuStreamSynchronize");
}

static void run_empty(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls && launch(d, d->empty, NULL); i++) {
    }
    finish(d);
}

static void run_bound(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        void *arguments[2] = {&d->x, &d->y};
        if (!launch(d, d->bound, arguments)) {
            break;
        }
    }
    finish(d);
}

static void run_step(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++, d->turn ^= 1) {
        void *arguments[2] = {d->turn ? &d->y : &d->x, d->turn ? &d->x : &d->y};
        if (!well(d,
                  d->cuda.launch(d->step, RAW_STEP_WORDS / RAW_STEP_GROUP, 1, 1, RAW_STEP_GROUP, 1,
                                 1, 0, d->cuda.stream, arguments, NULL),
                  "cuLaunchKernel")) {
            break;
        }
    }
    finish(d);
}

static bool step_words(raw_device *device, int calls, uint32_t words[])
{
    raw_cuda_device *d = (raw_cuda_device *)device;
    const size_t bytes = RAW_STEP_WORDS * sizeof *words;
    memset(words, 0, bytes);
    if (!well(d, d->cuda.to_device(d->turn ? d->y : d->x, words, bytes), "cuMemcpyHtoD")) {
        return false;
    }
    run_step(d, calls);
    return !d->base.failed &&
           well(d, d->cuda.to_host(words, d->turn ? d->y : d->x, bytes), "cuMemcpyDtoH");
}

static void run_alone(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls && launch(d, d->empty, NULL) && finish(d); i++) {
    }
}

/* Into page-locked memory, to which the driver copies directly. */
static void run_alone_read(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!launch(d, d->empty, NULL) ||
            !well(d, d->cuda.to_host_ordered(d->host, d->y, d->base.read_bytes, d->cuda.stream),
                  "cuMemcpyDtoHAsync") ||
            !finish(d)) {
            break;
        }
    }
}

static void run_graph(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d, d->cuda.graph_launch(d->executable, d->cuda.stream), "cuGraphLaunch")) {
            break;
        }
    }
    finish(d);
}

static void run_allocate(void *user, int calls)
{
    raw_cuda_device *d = user;
    uint64_t memory = 0;
    for (int i = 0; i < calls; i++) {
        if (!well(d, d->cuda.allocate(&memory, RAW_ALLOCATION), "cuMemAlloc") ||
            !well(d, d->cuda.release(memory), "cuMemFree")) {
            break;
        }
    }
}

static void run_allocate_ordered(void *user, int calls)
{
    raw_cuda_device *d = user;
    void *stream = d->cuda.stream;
    uint64_t memory = 0;
    for (int i = 0; i < calls; i++) {
        if (!well(d, d->cuda.allocate_ordered(&memory, RAW_ALLOCATION, stream),
                  "cuMemAllocAsync") ||
            !well(d, d->cuda.release_ordered(memory, stream), "cuMemFreeAsync")) {
            break;
        }
    }
    finish(d);
}

static void run_copy(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d, d->cuda.copy(d->target, d->source, (size_t)d->copy_bytes, d->cuda.stream),
                  "cuMemcpyDtoDAsync")) {
            break;
        }
    }
    finish(d);
}

static bool make_copy(raw_device *device, uint64_t bytes)
{
    raw_cuda_device *d = (raw_cuda_device *)device;
    const cuda_calls *cuda = &d->cuda;
    uint32_t mark = 0x5eed5eedu, found = 0;
    const uint64_t last = bytes - sizeof mark;
    d->copy_bytes = bytes;
    release(d, &d->source);
    release(d, &d->target);
    if (!well(d, cuda->allocate(&d->source, (size_t)bytes), "cuMemAlloc") ||
        !well(d, cuda->allocate(&d->target, (size_t)bytes), "cuMemAlloc") ||
        !well(d, cuda->to_device(d->source + last, &mark, sizeof mark), "cuMemcpyHtoD")) {
        return false;
    }
    run_copy(d, 1);
    return well(d, cuda->to_host(&found, d->target + last, sizeof found), "cuMemcpyDtoH") &&
           (found == mark || raw_fail(&d->base, "cuMemcpyDtoDAsync, whose bytes are wrong,", 0));
}

/* The driver has read ordinary memory when the call returns. */
static void run_write(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d,
                  d->cuda.to_device_ordered(d->target, d->base.host, d->base.host_bytes,
                                            d->cuda.stream),
                  "cuMemcpyHtoDAsync")) {
            break;
        }
    }
    well(d, d->cuda.stream_wait(d->cuda.stream), "cuStreamSynchronize");
}

static void run_read(void *user, int calls)
{
    raw_cuda_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d, d->cuda.to_host(d->base.host, d->target, d->base.host_bytes),
                  "cuMemcpyDtoH")) {
            break;
        }
    }
}

const raw_api raw_cuda = {.plugin = "cuda",
                          .device_bytes = sizeof(raw_cuda_device),
                          .open = open_device,
                          .make = make,
                          .close = close_device,
                          .empty = run_empty,
                          .bound = run_bound,
                          .step = run_step,
                          .step_words = step_words,
                          .alone = run_alone,
                          .alone_read = run_alone_read,
                          .graph = run_graph,
                          .allocate = run_allocate,
                          .allocate_ordered = run_allocate_ordered,
                          .copy = run_copy,
                          .write = run_write,
                          .read = run_read,
                          .make_copy = make_copy};
