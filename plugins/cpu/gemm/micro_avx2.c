/* The matrix product's routines for AVX2 with FMA and F16C: 16 registers, 12 of them accumulators.
 * Chosen at run time through cpu_gemm_avx2. */
#include "gemm/vec.h"

#include <immintrin.h>

typedef __m256 vec_f32;
typedef __m256i mask_f32;
typedef __m256d vec_f64;
typedef __m256i mask_f64;

#define stream_fence _mm_sfence
#define splat_f32 _mm256_set1_ps
#define load_f32 _mm256_loadu_ps
#define store_f32 _mm256_storeu_ps
#define stream_f32 _mm256_stream_ps
#define loadm_f32 _mm256_maskload_ps
#define storem_f32 _mm256_maskstore_ps
#define fma_f32 _mm256_fmadd_ps

#define splat_f64 _mm256_set1_pd
#define load_f64 _mm256_loadu_pd
#define store_f64 _mm256_storeu_pd
#define stream_f64 _mm256_stream_pd
#define loadm_f64 _mm256_maskload_pd
#define storem_f64 _mm256_maskstore_pd
#define fma_f64 _mm256_fmadd_pd

ALWAYS_INLINE mask_f32 mask_of_f32(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

ALWAYS_INLINE mask_f64 mask_of_f64(int n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

ALWAYS_INLINE vec_f32 zip_lo_f32(vec_f32 a, vec_f32 b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}

ALWAYS_INLINE vec_f32 zip_hi_f32(vec_f32 a, vec_f32 b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

ALWAYS_INLINE vec_f32 of_half(__m128i half, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F16) {
        return _mm256_cvtph_ps(half);
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

ALWAYS_INLINE __m128i to_half(vec_f32 v, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F16) {
        return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    __m256i bits = _mm256_castps_si256(v), one = _mm256_set1_epi32(1);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    up = _mm256_blendv_epi8(up, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    up = _mm256_srli_epi32(up, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1));
}

ALWAYS_INLINE vec_f32 widen_f32(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    if (type == CPU_GEMM_F32) {
        return load_f32((const float *)p + i);
    }
    return of_half(_mm_loadu_si128((const __m128i *)((const uint16_t *)p + i)), type);
}

ALWAYS_INLINE vec_f32 widenm_f32(const void *p, int64_t i, const enum cpu_gemm_type type, int n)
{
    if (type == CPU_GEMM_F32) {
        return loadm_f32((const float *)p + i, mask_of_f32(n));
    }
    uint16_t part[8] = {0};
    for (int l = 0; l < n; l++) {
        part[l] = ((const uint16_t *)p)[i + l];
    }
    return of_half(_mm_loadu_si128((const __m128i *)part), type);
}

ALWAYS_INLINE void narrow_f32(void *p, int64_t i, const enum cpu_gemm_type type, vec_f32 v)
{
    if (type == CPU_GEMM_F32) {
        store_f32((float *)p + i, v);
    } else {
        _mm_storeu_si128((__m128i *)((uint16_t *)p + i), to_half(v, type));
    }
}

ALWAYS_INLINE void narrowm_f32(void *p, int64_t i, const enum cpu_gemm_type type, int n, vec_f32 v)
{
    if (type == CPU_GEMM_F32) {
        storem_f32((float *)p + i, mask_of_f32(n), v);
        return;
    }
    uint16_t part[8];
    _mm_storeu_si128((__m128i *)part, to_half(v, type));
    for (int l = 0; l < n; l++) {
        ((uint16_t *)p)[i + l] = part[l];
    }
}

ALWAYS_INLINE vec_f64 zip_lo_f64(vec_f64 a, vec_f64 b)
{
    return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x20);
}

ALWAYS_INLINE vec_f64 zip_hi_f64(vec_f64 a, vec_f64 b)
{
    return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x31);
}

#define MR 6
#define NV 2
#define HAS_HALVES 0
#define HAS_FAST_MASKED_STORES 0
#define LANES_F32 8
#define TABLE cpu_gemm_avx2
#include "gemm/micro_both.inl"
