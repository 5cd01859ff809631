/* The routines of gemm/pair_kernels.h: packing and the emulation by AVX-512 (F, BW, DQ, VL), and
 * products by AMX. Without AMX in the compiler there is the emulation. */
#include "gemm/pair_kernels.h"
#include "gemm/vec.h"
#include "gemm/words.h"

#include <immintrin.h>
#include <pthread.h>

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__linux__)
#define HAS_AMX 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { DEPTH = 32 };

/* `rows` rows of up to 32 elements, neighbours of each paired. */
ALWAYS_INLINE void words_along(__m512i words[TILE], const uint16_t *from, int64_t ld, int rows,
                               int elements)
{
    const __mmask32 mask = elements == 32 ? ~(__mmask32)0 : ((__mmask32)1 << elements) - 1;
    for (int r = 0; r < TILE; r++) {
        words[r] =
            r < rows ? _mm512_maskz_loadu_epi16(mask, from + r * ld) : _mm512_setzero_si512();
    }
}

/* Pairs of rows, up to 32 rows of up to 16 elements. */
ALWAYS_INLINE void words_across(__m512i words[TILE], const uint16_t *from, int64_t ld, int rows,
                                int elements)
{
    const __mmask16 mask = (__mmask16)((1u << elements) - 1);
    for (int r = 0; r < TILE; r++) {
        __m512i low = _mm512_setzero_si512(), high = low;
        if (2 * r < rows) {
            low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + 2 * r * ld));
        }
        if (2 * r + 1 < rows) {
            high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + (2 * r + 1) * ld));
        }
        words[r] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    }
}

/* Stores a tile; keeps the least magnitude minus one, of which zero is the largest. */
ALWAYS_INLINE __m512i tile_store(char *to, const __m512i words[TILE], __m512i smallest)
{
    const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
    for (int r = 0; r < TILE; r++) {
        const __m512i size = _mm512_and_si512(words[r], magnitude);
        smallest = _mm512_min_epu16(smallest, _mm512_sub_epi16(size, one));
        _mm512_store_si512(to + r * 64, words[r]);
    }
    return smallest;
}

static uint32_t least_exponent(__m512i smallest)
{
    const __m256i half =
        _mm256_min_epu16(_mm512_castsi512_si256(smallest), _mm512_extracti64x4_epi64(smallest, 1));
    const __m128i quarter =
        _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    const uint32_t found = (uint16_t)_mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
    return (found + 1) >> 7;
}

/* Rows of a tile are those of the source if `turned` is not set. */
ALWAYS_INLINE uint32_t panel_pack(char *panel, const struct cpu_pairs_source *s, const bool along,
                                  const bool turned)
{
    const uint16_t *data = s->data;
    __m512i words[TILE], smallest = _mm512_set1_epi16(-1);
    for (int64_t k = 0; k < s->k; k += DEPTH) {
        const int elements = least(s->k - k, DEPTH);
        for (int first = 0; first < CPU_PAIRS_SIDE; first += TILE, panel += HALF) {
            const int count = s->count > first ? least(s->count - first, TILE) : 0;
            if (along) {
                words_along(words, data + first * s->ld + k, s->ld, count, elements);
            } else {
                words_across(words, data + k * s->ld + first, s->ld, elements, count);
            }
            if (turned) {
                words_transpose(words);
            }
            smallest = tile_store(panel, words, smallest);
        }
    }
    return least_exponent(smallest);
}

uint32_t cpu_pairs_pack_a(void *panel, const struct cpu_pairs_source *source)
{
    return source->k_contiguous ? panel_pack(panel, source, true, false)
                                : panel_pack(panel, source, false, true);
}

uint32_t cpu_pairs_pack_b(void *panel, const struct cpu_pairs_source *source)
{
    return source->k_contiguous ? panel_pack(panel, source, true, true)
                                : panel_pack(panel, source, false, false);
}

enum { EMULATED_ROWS = 4 };

/* Four rows of a tile of sums, one block of k. */
ALWAYS_INLINE void rows_emulate(float *sums, const char *a, const char *b, bool first)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    __m512 even[EMULATED_ROWS], odd[EMULATED_ROWS];
    UNROLL
    for (int r = 0; r < EMULATED_ROWS; r++) {
        even[r] = odd[r] = _mm512_setzero_ps();
    }
    for (int p = 0; p < TILE; p++) {
        const __m512i bs = _mm512_load_si512(b + p * 64);
        const __m512 b_even = _mm512_castsi512_ps(_mm512_slli_epi32(bs, 16));
        const __m512 b_odd = _mm512_castsi512_ps(_mm512_and_si512(bs, upper));
        UNROLL
        for (int r = 0; r < EMULATED_ROWS; r++) {
            uint32_t pair;
            memcpy(&pair, a + r * 64 + p * 4, sizeof pair);
            even[r] = _mm512_fmadd_ps(_mm512_set1_ps(f32_of_bits(pair << 16)), b_even, even[r]);
            odd[r] = _mm512_fmadd_ps(_mm512_set1_ps(f32_of_bits(pair & 0xffff0000)), b_odd, odd[r]);
        }
    }
    UNROLL
    for (int r = 0; r < EMULATED_ROWS; r++) {
        const __m512 before = first ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * TILE);
        _mm512_store_ps(sums + r * TILE, _mm512_add_ps(before, _mm512_add_ps(even[r], odd[r])));
    }
}

static void panels_emulate(const struct cpu_pairs_product *product)
{
    const int down = product->rows > TILE ? 2 : 1, across = product->cols > TILE ? 2 : 1;
    for (int64_t k = 0; k < product->k; k += DEPTH) {
        const char *a = (const char *)product->a + k / DEPTH * CPU_PAIRS_BLOCK_BYTES;
        const char *b = (const char *)product->b + k / DEPTH * CPU_PAIRS_BLOCK_BYTES;
        for (int i = 0; i < down; i++) {
            for (int j = 0; j < across; j++) {
                float *sums = (float *)product->sums + (2 * i + j) * TILE * TILE;
                for (int r = 0; r < TILE; r += EMULATED_ROWS) {
                    rows_emulate(sums + r * TILE, a + i * HALF + r * 64, b + j * HALF,
                                 product->first && k == 0);
                }
            }
        }
    }
}

#ifdef HAS_AMX
/* All eight tiles have 16 rows of 64 bytes. The table is constant: GCC does not know that the
 * instruction reads it. */
static void tiles_begin(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1,
                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
    _tile_loadconfig(&config);
}

static void tiles_end(void)
{
    _tile_release();
}

/* Tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B. */
ALWAYS_INLINE void tiles_multiply_as(const struct cpu_pairs_product *p, const bool rows,
                                     const bool cols)
{
    const char *a = p->a, *b = p->b;
    char *sums = (char *)p->sums;
    if (p->first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, 64);
        if (cols) {
            _tile_loadd(1, sums + HALF, 64);
        }
        if (rows) {
            _tile_loadd(2, sums + 2 * HALF, 64);
        }
        if (rows && cols) {
            _tile_loadd(3, sums + 3 * HALF, 64);
        }
    }
    for (int64_t k = p->k; k > 0; k -= DEPTH) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (cols) {
            _tile_loadd(7, b + HALF, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (rows) {
            _tile_loadd(5, a + HALF, 64);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (rows && cols) {
            _tile_dpbf16ps(3, 5, 7);
        }
        a += CPU_PAIRS_BLOCK_BYTES;
        b += CPU_PAIRS_BLOCK_BYTES;
    }
    _tile_stored(0, sums, 64);
    if (cols) {
        _tile_stored(1, sums + HALF, 64);
    }
    if (rows) {
        _tile_stored(2, sums + 2 * HALF, 64);
    }
    if (rows && cols) {
        _tile_stored(3, sums + 3 * HALF, 64);
    }
}

static void tiles_multiply(const struct cpu_pairs_product *product)
{
    const bool rows = product->rows > TILE, cols = product->cols > TILE;
    if (rows && cols) {
        tiles_multiply_as(product, true, true);
    } else if (rows) {
        tiles_multiply_as(product, true, false);
    } else if (cols) {
        tiles_multiply_as(product, false, true);
    } else {
        tiles_multiply_as(product, false, false);
    }
}

static const struct cpu_pairs_kernels amx = {DEPTH,          cpu_pairs_pack_a, cpu_pairs_pack_b,
                                             tiles_multiply, panels_emulate,   tiles_begin,
                                             tiles_end};
static const struct cpu_pairs_kernels *amx_or_null;

/* The processor's bits, the registers that the system saves, and the permission of the process. */
static void amx_find(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILEDATA = 18 };
    const unsigned bf16 = 1u << 22, tile = 1u << 24, os_saves = 1u << 27, states = 3u << 17;
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & bf16) == 0 || (d & tile) == 0 ||
        !__get_cpuid(1, &a, &b, &c, &d) || (c & os_saves) == 0) {
        return;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & states) == states &&
        syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA) == 0) {
        amx_or_null = &amx;
    }
}

const struct cpu_pairs_kernels *cpu_pairs_amx(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, amx_find);
    return amx_or_null;
}
#else
const struct cpu_pairs_kernels *cpu_pairs_amx(void)
{
    return NULL;
}
#endif

static void nothing_begin(void)
{
}

static void nothing_end(void)
{
}

const struct cpu_pairs_kernels cpu_pairs_amx_emulated = {
    DEPTH,          cpu_pairs_pack_a, cpu_pairs_pack_b, panels_emulate,
    panels_emulate, nothing_begin,    nothing_end};
