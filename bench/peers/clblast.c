/* CLBlast on the device's OpenCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/device_peers.h"
#include "peers/library.h"
#include "peers/raw/opencl_calls.h"

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

typedef struct clblast_peer {
    device_peer base;
    opencl_calls cl;
    int (*sgemm)(int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k,
                 float alpha, cl_mem a, size_t a_offset, size_t lda, cl_mem b, size_t b_offset,
                 size_t ldb, float beta, cl_mem c, size_t c_offset, size_t ldc,
                 cl_command_queue *queue, cl_event *event);
    int (*dgemm)(int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k,
                 double alpha, cl_mem a, size_t a_offset, size_t lda, cl_mem b, size_t b_offset,
                 size_t ldb, double beta, cl_mem c, size_t c_offset, size_t ldc,
                 cl_command_queue *queue, cl_event *event);
    device_matrices matrices;
    cl_mem a, b, c;
} clblast_peer;

static bool takes(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F64;
}

static bool well(clblast_peer *p, int code, const char *call)
{
    return code == 0 || device_peer_fail(&p->base, call, code);
}

static cl_mem make(clblast_peer *p, int64_t count, const void *elements)
{
    const size_t bytes = (size_t)count * hal_type_size(p->matrices.type);
    cl_int code = CL_SUCCESS;
    cl_mem made = p->cl.clCreateBuffer(p->cl.context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (!well(p, code, "clCreateBuffer")) {
        return NULL;
    }
    if (elements && !well(p,
                          p->cl.clEnqueueWriteBuffer(p->cl.queue, made, CL_TRUE, 0, bytes, elements,
                                                     0, NULL, NULL),
                          "clEnqueueWriteBuffer")) {
        p->cl.clReleaseMemObject(made);
        return NULL;
    }
    return made;
}

static bool begin(device_peer *peer, const device_matrices *matrices)
{
    clblast_peer *p = (clblast_peer *)peer;
    const device_matrices *x = matrices;
    p->matrices = *matrices;
    p->a = make(p, x->m * x->k, x->a);
    p->b = !p->a ? NULL : make(p, x->k * x->n, x->b);
    p->c = !p->b ? NULL : make(p, x->m * x->n, NULL);
    return p->c != NULL;
}

static void run(void *user, int calls)
{
    clblast_peer *p = user;
    const size_t m = (size_t)p->matrices.m, n = (size_t)p->matrices.n, k = (size_t)p->matrices.k;
    const size_t lda = p->matrices.transpose_a ? m : k, ldb = p->matrices.transpose_b ? k : n;
    const int order_a = p->matrices.transpose_a ? TRANSPOSED : AS_IT_IS;
    const int order_b = p->matrices.transpose_b ? TRANSPOSED : AS_IT_IS;
    for (int i = 0; i < calls && !p->base.failed; i++) {
        if (p->matrices.type == HAL_TYPE_F64) {
            well(p,
                 p->dgemm(ROW_MAJOR, order_a, order_b, m, n, k, 1.0, p->a, 0, lda, p->b, 0, ldb,
                          0.0, p->c, 0, n, &p->cl.queue, NULL),
                 "CLBlastDgemm");
        } else {
            well(p,
                 p->sgemm(ROW_MAJOR, order_a, order_b, m, n, k, 1.0f, p->a, 0, lda, p->b, 0, ldb,
                          0.0f, p->c, 0, n, &p->cl.queue, NULL),
                 "CLBlastSgemm");
        }
    }
    well(p, p->cl.clFinish(p->cl.queue), "clFinish");
}

static bool read_result(device_peer *peer, void *c)
{
    clblast_peer *p = (clblast_peer *)peer;
    const size_t bytes = (size_t)(p->matrices.m * p->matrices.n) * hal_type_size(p->matrices.type);
    return !peer->failed &&
           well(p,
                p->cl.clEnqueueReadBuffer(p->cl.queue, p->c, CL_TRUE, 0, bytes, c, 0, NULL, NULL),
                "clEnqueueReadBuffer");
}

static void end(device_peer *peer)
{
    clblast_peer *p = (clblast_peer *)peer;
    cl_mem *const memories[] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++) {
        if (*memories[i]) {
            p->cl.clReleaseMemObject(*memories[i]);
        }
        *memories[i] = NULL;
    }
}

static void close_peer(device_peer *peer)
{
    clblast_peer *p = (clblast_peer *)peer;
    opencl_close(&p->cl);
    free(p);
}

static bool load(clblast_peer *p, char *message, size_t bytes)
{
    const library_symbol symbols[] = {{&p->sgemm, "CLBlastSgemm"}, {&p->dgemm, "CLBlastDgemm"}};
    return library_open("libclblast.so.1", symbols, 2, message, bytes);
}

device_peer *peer_clblast_open(const hal_device_info *info, char *message, size_t bytes)
{
    clblast_peer *p = calloc(1, sizeof *p);
    if (!p) {
        snprintf(message, bytes, "out of memory");
        return NULL;
    }
    p->base = (device_peer){.name = "clblast",
                            .takes = takes,
                            .begin = begin,
                            .run = run,
                            .read = read_result,
                            .end = end,
                            .close = close_peer};
    if (!load(p, message, bytes) || !opencl_open(&p->cl, info, message, bytes)) {
        free(p);
        return NULL;
    }
    return &p->base;
}
