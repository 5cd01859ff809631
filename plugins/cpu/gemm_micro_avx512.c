/* The matrix product's routines for AVX-512 (F, BW, DQ, VL) with FMA and F16C: 32 registers, 24 of
 * them accumulators, masks for the ends. Chosen at run time through cpu_gemm_avx512. */
#include "gemm_vec.h"

#include <immintrin.h>

typedef __m512 vec_f32;
typedef __mmask16 mask_f32;
typedef __m512d vec_f64;
typedef __mmask8 mask_f64;

ALWAYS_INLINE vec_f32 splat_f32(float x)
{
    return _mm512_set1_ps(x);
}
ALWAYS_INLINE vec_f32 load_f32(const float *p)
{
    return _mm512_loadu_ps(p);
}
ALWAYS_INLINE void store_f32(float *p, vec_f32 v)
{
    _mm512_storeu_ps(p, v);
}
ALWAYS_INLINE mask_f32 mask_of_f32(int n)
{
    return (mask_f32)((1u << n) - 1);
}

ALWAYS_INLINE vec_f32 loadm_f32(const float *p, mask_f32 m)
{
    return _mm512_maskz_loadu_ps(m, p);
}

ALWAYS_INLINE void storem_f32(float *p, mask_f32 m, vec_f32 v)
{
    _mm512_mask_storeu_ps(p, m, v);
}

ALWAYS_INLINE vec_f32 fma_f32(vec_f32 a, vec_f32 b, vec_f32 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

ALWAYS_INLINE vec_f32 zip_lo_f32(vec_f32 a, vec_f32 b)
{
    const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, order, b);
}

ALWAYS_INLINE vec_f32 zip_hi_f32(vec_f32 a, vec_f32 b)
{
    const __m512i order =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, order, b);
}

ALWAYS_INLINE vec_f32 of_half(__m256i half, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F16) {
        return _mm512_cvtph_ps(half);
    }
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

ALWAYS_INLINE __m256i to_half(vec_f32 v, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F16) {
        return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    __m512i bits = _mm512_castps_si512(v), one = _mm512_set1_epi32(1);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

ALWAYS_INLINE vec_f32 widen_f32(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F32) {
        return load_f32((const float *)p + i);
    }
    return of_half(_mm256_loadu_si256((const __m256i *)((const uint16_t *)p + i)), type);
}

ALWAYS_INLINE vec_f32 widenm_f32(const void *p, int64_t i, const enum cpu_gemm_type type, int n)
{
    if (type == CPU_GEMM_F32) {
        return loadm_f32((const float *)p + i, mask_of_f32(n));
    }
    return of_half(_mm256_maskz_loadu_epi16(mask_of_f32(n), (const uint16_t *)p + i), type);
}

ALWAYS_INLINE void narrow_f32(void *p, int64_t i, const enum cpu_gemm_type type, vec_f32 v)
{
    if (type == CPU_GEMM_F32) {
        store_f32((float *)p + i, v);
    } else {
        _mm256_storeu_si256((__m256i *)((uint16_t *)p + i), to_half(v, type));
    }
}

ALWAYS_INLINE void narrowm_f32(void *p, int64_t i, const enum cpu_gemm_type type, int n, vec_f32 v)
{
    if (type == CPU_GEMM_F32) {
        storem_f32((float *)p + i, mask_of_f32(n), v);
    } else {
        _mm256_mask_storeu_epi16((uint16_t *)p + i, mask_of_f32(n), to_half(v, type));
    }
}

ALWAYS_INLINE vec_f64 splat_f64(double x)
{
    return _mm512_set1_pd(x);
}
ALWAYS_INLINE vec_f64 load_f64(const double *p)
{
    return _mm512_loadu_pd(p);
}
ALWAYS_INLINE void store_f64(double *p, vec_f64 v)
{
    _mm512_storeu_pd(p, v);
}
ALWAYS_INLINE mask_f64 mask_of_f64(int n)
{
    return (mask_f64)((1u << n) - 1);
}

ALWAYS_INLINE vec_f64 loadm_f64(const double *p, mask_f64 m)
{
    return _mm512_maskz_loadu_pd(m, p);
}

ALWAYS_INLINE void storem_f64(double *p, mask_f64 m, vec_f64 v)
{
    _mm512_mask_storeu_pd(p, m, v);
}

ALWAYS_INLINE vec_f64 fma_f64(vec_f64 a, vec_f64 b, vec_f64 c)
{
    return _mm512_fmadd_pd(a, b, c);
}

ALWAYS_INLINE vec_f64 zip_lo_f64(vec_f64 a, vec_f64 b)
{
    return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
}

ALWAYS_INLINE vec_f64 zip_hi_f64(vec_f64 a, vec_f64 b)
{
    return _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
}

ALWAYS_INLINE vec_f64 widen_f64(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    (void)type;
    return load_f64((const double *)p + i);
}

ALWAYS_INLINE void narrow_f64(void *p, int64_t i, const enum cpu_gemm_type type, vec_f64 v)
{
    (void)type;
    store_f64((double *)p + i, v);
}

ALWAYS_INLINE vec_f64 widenm_f64(const void *p, int64_t i, const enum cpu_gemm_type type, int n)
{
    (void)type;
    return loadm_f64((const double *)p + i, mask_of_f64(n));
}

ALWAYS_INLINE void narrowm_f64(void *p, int64_t i, const enum cpu_gemm_type type, int n, vec_f64 v)
{
    (void)type;
    storem_f64((double *)p + i, mask_of_f64(n), v);
}

#define MR 12
#define NV 2

#define T float
#define LANES 16
#define V(name) name##_f32
#define DISPATCH DISPATCH_F32
#include "gemm_micro.inl"
#include "gemm_pack.inl"
#include "gemm_skinny.inl"
#undef T
#undef LANES
#undef V
#undef DISPATCH

#define T double
#define LANES 8
#define V(name) name##_f64
#define DISPATCH DISPATCH_F64
#include "gemm_micro.inl"
#include "gemm_pack.inl"
#include "gemm_skinny.inl"

const struct cpu_gemm_kernels cpu_gemm_avx512[2] = {
    {MR, NV * 16, 16, strip_f32, copy_f32, transpose_f32, store_to_f32, dot_f32, axpy_f32},
    {MR, NV * 8, 8, strip_f64, copy_f64, transpose_f64, store_to_f64, dot_f64, axpy_f64},
};
