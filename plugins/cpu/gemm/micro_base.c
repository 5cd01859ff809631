/* The matrix product's routines for any processor, by the compiler's vectors of 16 bytes: SSE2 on
 * x86-64, Advanced SIMD on aarch64. Reached through cpu_gemm_base. */
#include "gemm/vec.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef float vec_f32 __attribute__((vector_size(16)));
typedef int mask_f32; /* number of elements, from the first */
typedef double vec_f64 __attribute__((vector_size(16)));
typedef int mask_f64;

ALWAYS_INLINE vec_f32 splat_f32(float x)
{
    return (vec_f32){x, x, x, x};
}

ALWAYS_INLINE mask_f32 mask_of_f32(int n)
{
    return n;
}
ALWAYS_INLINE vec_f32 load_f32(const float *p)
{
    vec_f32 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ALWAYS_INLINE void store_f32(float *p, vec_f32 v)
{
    memcpy(p, &v, sizeof v);
}

ALWAYS_INLINE vec_f32 loadm_f32(const float *p, mask_f32 m)
{
    if (m == 4) {
        return load_f32(p);
    }
    return (vec_f32){p[0], m > 1 ? p[1] : 0, m > 2 ? p[2] : 0, 0};
}

ALWAYS_INLINE void storem_f32(float *p, mask_f32 m, vec_f32 v)
{
    if (m == 4) {
        store_f32(p, v);
        return;
    }
    p[0] = v[0];
    if (m > 1) {
        p[1] = v[1];
    }
    if (m > 2) {
        p[2] = v[2];
    }
}

ALWAYS_INLINE vec_f32 fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
#if defined(__aarch64__)
    return (vec_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

ALWAYS_INLINE vec_f32 zip_lo_f32(vec_f32 a, vec_f32 b)
{
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}

ALWAYS_INLINE vec_f32 zip_hi_f32(vec_f32 a, vec_f32 b)
{
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

ALWAYS_INLINE vec_f32 widenm_f32(const void *p, int64_t i, const enum cpu_gemm_type type, int n)
{
    vec_f32 v = {0};
    for (int l = 0; l < n; l++) {
        v[l] = widen_one_f32(p, i + l, type);
    }
    return v;
}

ALWAYS_INLINE vec_f32 widen_f32(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F32) {
        return load_f32((const float *)p + i);
    }
    return widenm_f32(p, i, type, 4);
}

ALWAYS_INLINE void narrowm_f32(void *p, int64_t i, const enum cpu_gemm_type type, int n, vec_f32 v)
{
    for (int l = 0; l < n; l++) {
        narrow_one_f32(p, i + l, type, v[l]);
    }
}

ALWAYS_INLINE void narrow_f32(void *p, int64_t i, const enum cpu_gemm_type type, vec_f32 v)
{
    if (type == CPU_GEMM_F32) {
        store_f32((float *)p + i, v);
    } else {
        narrowm_f32(p, i, type, 4, v);
    }
}

ALWAYS_INLINE vec_f64 splat_f64(double x)
{
    return (vec_f64){x, x};
}

ALWAYS_INLINE mask_f64 mask_of_f64(int n)
{
    return n;
}
ALWAYS_INLINE vec_f64 load_f64(const double *p)
{
    vec_f64 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ALWAYS_INLINE void store_f64(double *p, vec_f64 v)
{
    memcpy(p, &v, sizeof v);
}

ALWAYS_INLINE vec_f64 loadm_f64(const double *p, mask_f64 m)
{
    return m == 2 ? load_f64(p) : (vec_f64){p[0], 0};
}

ALWAYS_INLINE void storem_f64(double *p, mask_f64 m, vec_f64 v)
{
    if (m == 2) {
        store_f64(p, v);
    } else {
        p[0] = v[0];
    }
}

ALWAYS_INLINE vec_f64 fma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
#if defined(__aarch64__)
    return (vec_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

ALWAYS_INLINE vec_f64 zip_lo_f64(vec_f64 a, vec_f64 b)
{
    return __builtin_shufflevector(a, b, 0, 2);
}

ALWAYS_INLINE vec_f64 zip_hi_f64(vec_f64 a, vec_f64 b)
{
    return __builtin_shufflevector(a, b, 1, 3);
}

#if defined(__aarch64__)
#define MR 8 /* 32 registers */
#define NV 3
#else
#define MR 6 /* 16 registers */
#define NV 2
#endif

/* Without streaming stores. */
#define stream_f32 store_f32
#define stream_f64 store_f64
#define stream_fence() ((void)0)

#define HAS_HALVES 0
#define HAS_FAST_MASKED_STORES 0
#define LANES_F32 4
#define TABLE cpu_gemm_base
#include "gemm/micro_both.inl"
