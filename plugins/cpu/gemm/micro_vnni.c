/* The routines of gemm/pair_kernels.h for bytes, by the dot products of AVX512_VNNI, of which one
 * operand is unsigned and the other signed. A is packed with its sign bits inverted: this adds 128
 * to signed numbers and takes 128 from unsigned ones. Sums begin with what this adds to them, the
 * products of a row of zeros of A, with the other sign. */
#include "gemm/panels.h"

#include <cpuid.h>

enum { DEPTH = 64, NO_EXPONENT = 0xffff };

/* `rows` rows of up to 64 bytes. */
ALWAYS_INLINE void fours_along(__m512i words[TILE], const uint8_t *from, int64_t ld, int rows,
                               int bytes)
{
    const __mmask64 mask = bytes == 64 ? ~(__mmask64)0 : ((__mmask64)1 << bytes) - 1;
    for (int r = 0; r < TILE; r++) {
        words[r] = r < rows ? _mm512_maskz_loadu_epi8(mask, from + r * ld) : _mm512_setzero_si512();
    }
}

/* Fours of rows, up to 64 rows of up to 16 bytes. */
ALWAYS_INLINE void fours_across(__m512i words[TILE], const uint8_t *from, int64_t ld, int rows,
                                int bytes)
{
    const __mmask16 mask = (__mmask16)((1u << bytes) - 1);
    for (int r = 0; r < TILE; r++) {
        words[r] = _mm512_setzero_si512();
        UNROLL
        for (int i = 0; i < 4; i++) {
            if (4 * r + i < rows) {
                const __m128i row = _mm_maskz_loadu_epi8(mask, from + (4 * r + i) * ld);
                const __m512i wide = _mm512_cvtepu8_epi32(row);
                words[r] = _mm512_or_si512(words[r], _mm512_slli_epi32(wide, 8 * (unsigned)i));
            }
        }
    }
}

/* Rows of a tile are those of the source if `turned` is not set. */
ALWAYS_INLINE void panel_pack(char *panel, const struct cpu_pairs_source *s, const bool along,
                              const bool turned, __m512i inverted)
{
    const uint8_t *data = s->data;
    __m512i words[TILE];
    for (int64_t k = 0; k < s->k; k += DEPTH) {
        const int bytes = least(s->k - k, DEPTH);
        for (int first = 0; first < CPU_PAIRS_SIDE; first += TILE, panel += HALF) {
            const int count = s->count > first ? least(s->count - first, TILE) : 0;
            if (along) {
                fours_along(words, data + first * s->ld + k, s->ld, count, bytes);
            } else {
                fours_across(words, data + k * s->ld + first, s->ld, bytes, count);
            }
            if (turned) {
                words_transpose(words);
            }
            for (int r = 0; r < TILE; r++) {
                _mm512_store_si512(panel + r * CPU_PAIRS_LINE_BYTES,
                                   _mm512_xor_si512(words[r], inverted));
            }
        }
    }
}

static uint32_t pack_a(void *panel, const struct cpu_pairs_source *source)
{
    const __m512i signs = _mm512_set1_epi8((char)0x80);
    if (source->k_contiguous) {
        panel_pack(panel, source, true, false, signs);
    } else {
        panel_pack(panel, source, false, true, signs);
    }
    return NO_EXPONENT;
}

static uint32_t pack_b(void *panel, const struct cpu_pairs_source *source)
{
    if (source->k_contiguous) {
        panel_pack(panel, source, true, true, _mm512_setzero_si512());
    } else {
        panel_pack(panel, source, false, false, _mm512_setzero_si512());
    }
    return NO_EXPONENT;
}

ALWAYS_INLINE __m512i signed_dot(__m512i sums, __m512i a, __m512i b)
{
    return _mm512_dpbusd_epi32(sums, a, b);
}

ALWAYS_INLINE __m512i unsigned_dot(__m512i sums, __m512i a, __m512i b)
{
    return _mm512_dpbusd_epi32(sums, b, a);
}

/* With what the sums of each row begin. */
ALWAYS_INLINE void begin_find(const struct cpu_pairs_product *p, __m512i begin[2], words_add *dot)
{
    const __m512i zeros = _mm512_set1_epi8((char)0x80);
    const char *b = p->b;
    __m512i even[2], odd[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        even[i] = odd[i] = _mm512_setzero_si512();
    }
    for (int64_t k = 0; k < p->k; k += DEPTH, b += CPU_PAIRS_BLOCK_BYTES) {
        const int words = words_of(p->k - k, DEPTH);
        for (int word = 0; word < words; word += 2) {
            UNROLL
            for (int i = 0; i < 2; i++) {
                const char *at = b + i * HALF + word * CPU_PAIRS_LINE_BYTES;
                even[i] = dot(even[i], zeros, _mm512_load_si512(at));
                odd[i] = dot(odd[i], zeros, _mm512_load_si512(at + CPU_PAIRS_LINE_BYTES));
            }
        }
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        begin[i] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_add_epi32(even[i], odd[i]));
    }
}

static void multiply_signed(const struct cpu_pairs_product *product)
{
    __m512i begin[2];
    begin_find(product, begin, signed_dot);
    panels_multiply(product, DEPTH, begin, signed_dot);
}

static void multiply_unsigned(const struct cpu_pairs_product *product)
{
    __m512i begin[2];
    begin_find(product, begin, unsigned_dot);
    panels_multiply(product, DEPTH, begin, unsigned_dot);
}

static void nothing(void)
{
}

const struct cpu_pairs_kernels *cpu_pairs_vnni(enum cpu_gemm_type type)
{
    static const struct cpu_pairs_kernels of_signed = {
        DEPTH, pack_a, pack_b, multiply_signed, multiply_signed, nothing, nothing};
    static const struct cpu_pairs_kernels of_unsigned = {
        DEPTH, pack_a, pack_b, multiply_unsigned, multiply_unsigned, nothing, nothing};
    const unsigned avx512_vnni = 1u << 11;
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (c & avx512_vnni) == 0) {
        return NULL;
    }
    return type == CPU_GEMM_I8 ? &of_signed : type == CPU_GEMM_U8 ? &of_unsigned : NULL;
}

void cpu_vnni_store(void *dst, int64_t ldd, enum cpu_gemm_type type, const void *src, int64_t lds,
                    int64_t rows, int64_t cols, double alpha, double beta)
{
    const uint32_t by = (uint32_t)(int64_t)alpha, more = (uint32_t)(int64_t)beta;
    (void)type;
    for (int64_t r = 0; r < rows; r++) {
        uint32_t *to = (uint32_t *)dst + r * ldd;
        const uint32_t *from = (const uint32_t *)src + r * lds;
        for (int64_t c = 0; c < cols; c++) {
            to[c] = more == 0 ? by * from[c] : by * from[c] + more * to[c];
        }
    }
}
