/* The matrix product's routines for AVX-512 (F, BW, DQ, VL) with FMA and F16C: 32 registers, 24 of
 * them accumulators, masks for the ends. Chosen at run time through cpu_gemm_avx512. */
#include "gemm/vec.h"

#include <immintrin.h>

typedef __m512 vec_f32;
typedef __mmask16 mask_f32;
typedef __m512d vec_f64;
typedef __mmask8 mask_f64;

#define stream_fence _mm_sfence
#define splat_f32 _mm512_set1_ps
#define load_f32 _mm512_loadu_ps
#define store_f32 _mm512_storeu_ps
#define stream_f32 _mm512_stream_ps
#define loadm_f32(p, m) _mm512_maskz_loadu_ps(m, p)
#define storem_f32 _mm512_mask_storeu_ps
#define fma_f32 _mm512_fmadd_ps
#define mask_of_f32(n) ((mask_f32)((1u << (n)) - 1))

#define splat_f64 _mm512_set1_pd
#define load_f64 _mm512_loadu_pd
#define store_f64 _mm512_storeu_pd
#define stream_f64 _mm512_stream_pd
#define loadm_f64(p, m) _mm512_maskz_loadu_pd(m, p)
#define storem_f64 _mm512_mask_storeu_pd
#define fma_f64 _mm512_fmadd_pd
#define mask_of_f64(n) ((mask_f64)((1u << (n)) - 1))

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

ALWAYS_INLINE vec_f64 zip_lo_f64(vec_f64 a, vec_f64 b)
{
    return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
}

ALWAYS_INLINE vec_f64 zip_hi_f64(vec_f64 a, vec_f64 b)
{
    return _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
}

typedef __m256 half_vec_f32;
typedef __mmask8 half_mask_f32;
typedef __m256d half_vec_f64;
typedef __mmask8 half_mask_f64;

#define half_splat_f32 _mm256_set1_ps
#define half_load_f32 _mm256_loadu_ps
#define half_store_f32 _mm256_storeu_ps
#define half_stream_f32 _mm256_stream_ps
#define half_loadm_f32(p, m) _mm256_maskz_loadu_ps(m, p)
#define half_storem_f32 _mm256_mask_storeu_ps
#define half_fma_f32 _mm256_fmadd_ps
#define half_mask_of_f32(n) ((half_mask_f32)((1u << (n)) - 1))

#define half_splat_f64 _mm256_set1_pd
#define half_load_f64 _mm256_loadu_pd
#define half_store_f64 _mm256_storeu_pd
#define half_stream_f64 _mm256_stream_pd
#define half_loadm_f64(p, m) _mm256_maskz_loadu_pd(m, p)
#define half_storem_f64 _mm256_mask_storeu_pd
#define half_fma_f64 _mm256_fmadd_pd
#define half_mask_of_f64(n) ((half_mask_f64)((1u << (n)) - 1))

#define MR 12
#define NV 2
#define HAS_HALVES 1
#define HAS_FAST_MASKED_STORES 1
#define LANES_F32 16
#define TABLE cpu_gemm_avx512
#include "gemm/micro_both.inl"
