/* cuBLAS in the device's primary context. F32 is multiplied in F32, in the fast class as TF32; F16
 * and BF16 accumulate in F32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/device_peers.h"
#include "peers/library.h"
#include "peers/raw/cuda_calls.h"

/* The library's numbers: of types, of the way to compute, of the choice of algorithm. */
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum {
    COMPUTE_32F = 68,
    COMPUTE_32F_PEDANTIC = 69,
    COMPUTE_64F = 70,
    COMPUTE_32F_FAST_TF32 = 77,
    DEFAULT_ALGORITHM = -1
};

typedef struct cublas_peer {
    device_peer base;
    cuda_calls cuda;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*gemm)(void *handle, int a_transposed, int b_transposed, int m, int n, int k,
                const void *alpha, const void *a, int type_a, int lda, const void *b, int type_b,
                int ldb, const void *beta, void *c, int type_c, int ldc, int compute,
                int algorithm);
    int (*batched)(void *handle, int a_transposed, int b_transposed, int m, int n, int k,
                   const void *alpha, const void *a, int type_a, int lda, long long stride_a,
                   const void *b, int type_b, int ldb, long long stride_b, const void *beta,
                   void *c, int type_c, int ldc, long long stride_c, int count, int compute,
                   int algorithm);
    void *handle;
    device_matrices matrices;
    uint64_t a, b, c;
} cublas_peer;

static bool takes(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F64 || type == HAL_TYPE_F16 ||
           type == HAL_TYPE_BF16;
}

static bool well(cublas_peer *p, int code, const char *call)
{
    return code == 0 || device_peer_fail(&p->base, call, code);
}

static bool make(cublas_peer *p, int64_t count, const void *elements, uint64_t *memory)
{
    const size_t bytes = (size_t)count * hal_type_size(p->matrices.type);
    return well(p, p->cuda.allocate(memory, bytes), "cuMemAlloc") &&
           (!elements || well(p, p->cuda.to_device(*memory, elements, bytes), "cuMemcpyHtoD"));
}

static bool begin(device_peer *peer, const device_matrices *matrices)
{
    cublas_peer *p = (cublas_peer *)peer;
    p->matrices = *matrices;
    return make(p, matrices->batch * matrices->m * matrices->k, matrices->a, &p->a) &&
           make(p, matrices->batch * matrices->k * matrices->n, matrices->b, &p->b) &&
           make(p, matrices->batch * matrices->m * matrices->n, NULL, &p->c);
}

/* The library's matrices are column-major: what it sees are the transposed ones, and C' = B' A'. */
static void run(void *user, int calls)
{
    cublas_peer *p = user;
    const int m = (int)p->matrices.m, n = (int)p->matrices.n, k = (int)p->matrices.k;
    const bool transpose_a = p->matrices.transpose_a, transpose_b = p->matrices.transpose_b;
    const bool wide = p->matrices.type == HAL_TYPE_F64;
    const int type = wide                                ? R_64F
                     : p->matrices.type == HAL_TYPE_F16  ? R_16F
                     : p->matrices.type == HAL_TYPE_BF16 ? R_16BF
                                                         : R_32F;
    const int compute_f32 = p->matrices.fast ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F_PEDANTIC;
    const int compute = wide ? COMPUTE_64F : type == R_32F ? compute_f32 : COMPUTE_32F;
    const double one_wide = 1.0, zero_wide = 0.0;
    const float one_f32 = 1.0f, zero_f32 = 0.0f;
    const void *one = wide ? (const void *)&one_wide : &one_f32,
               *zero = wide ? (const void *)&zero_wide : &zero_f32;
    const void *a = (const void *)(uintptr_t)p->a, *b = (const void *)(uintptr_t)p->b;
    void *c = (void *)(uintptr_t)p->c;
    const int lda = transpose_a ? m : k, ldb = transpose_b ? k : n;
    for (int i = 0; i < calls && !p->base.failed; i++) {
        if (p->matrices.batch == 1) {
            well(p,
                 p->gemm(p->handle, transpose_b, transpose_a, n, m, k, one, b, type, ldb, a, type,
                         lda, zero, c, type, n, compute, DEFAULT_ALGORITHM),
                 "cublasGemmEx");
        } else {
            well(p,
                 p->batched(p->handle, transpose_b, transpose_a, n, m, k, one, b, type, ldb,
                            (long long)n * k, a, type, lda, (long long)m * k, zero, c, type, n,
                            (long long)m * n, (int)p->matrices.batch, compute, DEFAULT_ALGORITHM),
                 "cublasGemmStridedBatchedEx");
        }
    }
    well(p, p->cuda.stream_wait(p->cuda.stream), "cuStreamSynchronize");
}

static bool read_result(device_peer *peer, void *c)
{
    cublas_peer *p = (cublas_peer *)peer;
    const size_t count = (size_t)(p->matrices.batch * p->matrices.m * p->matrices.n),
                 bytes = count * hal_type_size(p->matrices.type);
    return !peer->failed && well(p, p->cuda.to_host(c, p->c, bytes), "cuMemcpyDtoH");
}

static void end(device_peer *peer)
{
    cublas_peer *p = (cublas_peer *)peer;
    uint64_t *const memories[] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++) {
        if (*memories[i] != 0) {
            p->cuda.release(*memories[i]);
        }
        *memories[i] = 0;
    }
}

static void close_peer(device_peer *peer)
{
    cublas_peer *p = (cublas_peer *)peer;
    if (p->handle) {
        p->destroy(p->handle);
    }
    cuda_close(&p->cuda);
    free(p);
}

static bool load(cublas_peer *p, char *message, size_t bytes)
{
    const library_symbol symbols[] = {{&p->create, "cublasCreate_v2"},
                                      {&p->destroy, "cublasDestroy_v2"},
                                      {&p->set_stream, "cublasSetStream_v2"},
                                      {&p->gemm, "cublasGemmEx"},
                                      {&p->batched, "cublasGemmStridedBatchedEx"}};
    return library_open("libcublas.so.13 libcublas.so.12 libcublas.so.11 libcublas.so", symbols,
                        sizeof symbols / sizeof symbols[0], message, bytes);
}

device_peer *peer_cublas_open(const hal_device_info *info, char *message, size_t bytes)
{
    cublas_peer *p = calloc(1, sizeof *p);
    if (!p) {
        snprintf(message, bytes, "out of memory");
        return NULL;
    }
    p->base = (device_peer){.name = "cublas",
                            .has_batches = true,
                            .takes = takes,
                            .begin = begin,
                            .run = run,
                            .read = read_result,
                            .end = end,
                            .close = close_peer};
    if (!load(p, message, bytes) || !cuda_open(&p->cuda, info, message, bytes)) {
        free(p);
        return NULL;
    }
    if (!well(p, p->create(&p->handle), "cublasCreate") ||
        !well(p, p->set_stream(p->handle, p->cuda.stream), "cublasSetStream")) {
        snprintf(message, bytes, "%s", p->base.message);
        close_peer(&p->base);
        return NULL;
    }
    return &p->base;
}
