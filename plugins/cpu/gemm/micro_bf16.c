/* The routines of gemm/pair_kernels.h by the dot products of AVX512_BF16, and their emulation by
 * AVX-512 (F, BW, DQ, VL). Without AVX512_BF16 in the compiler there is the emulation. */
#include "gemm/panels.h"

#include <cpuid.h>

enum { DEPTH = 32 };
enum { CLASS_DENORMAL = 0x20 }; /* of vfpclassps */

static const __m512i zeros[2];

ALWAYS_INLINE __m512i pair_emulate(__m512i sums, __m512i a, __m512i b)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(a, upper));
    const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
    const __m512 one = _mm512_fmadd_ps(odd, _mm512_castsi512_ps(_mm512_and_si512(b, upper)),
                                       _mm512_castsi512_ps(sums));
    return _mm512_castps_si512(
        _mm512_fmadd_ps(even, _mm512_castsi512_ps(_mm512_slli_epi32(b, 16)), one));
}

static void panels_emulate(const struct cpu_pairs_product *product)
{
    panels_multiply(product, DEPTH, zeros, pair_emulate);
}

static void nothing_begin(void)
{
}

static void nothing_end(void)
{
}

const struct cpu_pairs_kernels cpu_pairs_bf16_emulated = {
    DEPTH,          cpu_pairs_pack_a, cpu_pairs_pack_b, panels_emulate,
    panels_emulate, nothing_begin,    nothing_end};

#ifdef __AVX512BF16__
ALWAYS_INLINE __m512i pair_dot(__m512i sums, __m512i a, __m512i b)
{
    return _mm512_castps_si512(
        _mm512_dpbf16_ps(_mm512_castsi512_ps(sums), (__m512bh)a, (__m512bh)b));
}

static void panels_dot(const struct cpu_pairs_product *product)
{
    panels_multiply(product, DEPTH, zeros, pair_dot);
}

static const struct cpu_pairs_kernels bf16 = {DEPTH,      cpu_pairs_pack_a, cpu_pairs_pack_b,
                                              panels_dot, panels_emulate,   nothing_begin,
                                              nothing_end};

const struct cpu_pairs_kernels *cpu_pairs_bf16(void)
{
    const unsigned avx512_bf16 = 1u << 5;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avx512_bf16) != 0 ? &bf16 : NULL;
}

/* The conversion takes denormal numbers for zero: a vector with one is rounded by integers. */
ALWAYS_INLINE __m256i round_vector(__m512 v)
{
    if (_mm512_fpclass_ps_mask(v, CLASS_DENORMAL) == 0) {
        return (__m256i)_mm512_cvtneps_pbh(v);
    }
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

/* The elements of a mask. */
ALWAYS_INLINE void store_vector(uint16_t *to, const float *from, __mmask16 mask, __m512 alpha,
                                __m512 beta, const bool adds)
{
    __m512 value = _mm512_mul_ps(alpha, _mm512_maskz_loadu_ps(mask, from));
    if (adds) {
        const __m512i old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, to));
        value = _mm512_fmadd_ps(beta, _mm512_castsi512_ps(_mm512_slli_epi32(old, 16)), value);
    }
    _mm256_mask_storeu_epi16(to, mask, round_vector(value));
}

static void store_rows(void *dst, int64_t ldd, enum cpu_gemm_type type, const void *src,
                       int64_t lds, int64_t rows, int64_t cols, double alpha, double beta)
{
    const __m512 va = _mm512_set1_ps((float)alpha), vb = _mm512_set1_ps((float)beta);
    const int64_t whole = cols & -16;
    const __mmask16 rest = (__mmask16)((1u << (cols - whole)) - 1);
    (void)type;
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *to = (uint16_t *)dst + r * ldd;
        const float *from = (const float *)src + r * lds;
        for (int64_t c = 0; c < whole; c += 16) {
            if (beta != 0) {
                store_vector(to + c, from + c, 0xffff, va, vb, true);
            } else {
                store_vector(to + c, from + c, 0xffff, va, vb, false);
            }
        }
        if (rest != 0 && beta != 0) {
            store_vector(to + whole, from + whole, rest, va, vb, true);
        } else if (rest != 0) {
            store_vector(to + whole, from + whole, rest, va, vb, false);
        }
    }
}

cpu_gemm_store *cpu_bf16_store(void)
{
    return cpu_pairs_bf16() ? store_rows : NULL;
}

bool cpu_pairs_bf16_is_fast(void)
{
    unsigned highest, b, c, d;
    return __get_cpuid(0, &highest, &b, &c, &d) && b == signature_AMD_ebx;
}
#else
const struct cpu_pairs_kernels *cpu_pairs_bf16(void)
{
    return NULL;
}

cpu_gemm_store *cpu_bf16_store(void)
{
    return NULL;
}

bool cpu_pairs_bf16_is_fast(void)
{
    return false;
}
#endif
