/* The functions that the text of kernels calls, where Metal's library has none with hal's
 * definition. */
#include "lower/functions.h"

/* Eight elements, which Metal's vectors do not have. */
static const char wide_vectors[] =
    "template <typename T> struct alignas(sizeof(T) < 4 ? 8 * sizeof(T) : 16) vec8 {\n"
    "    T x, y, z, w, s4, s5, s6, s7;\n"
    "    vec8() {}\n"
    "    vec8(T v) : x(v), y(v), z(v), w(v), s4(v), s5(v), s6(v), s7(v) {}\n"
    "    vec8(T a, T b, T c, T d, T e, T f, T g, T h)\n"
    "        : x(a), y(b), z(c), w(d), s4(e), s5(f), s6(g), s7(h) {}\n"
    "    vec8(vec<T, 4> a, vec<T, 4> b)\n"
    "        : x(a.x), y(a.y), z(a.z), w(a.w), s4(b.x), s5(b.y), s6(b.z), s7(b.w) {}\n"
    "    template <typename U> explicit vec8(vec8<U> v)\n"
    "        : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)),\n"
    "          s4(T(v.s4)), s5(T(v.s5)), s6(T(v.s6)), s7(T(v.s7)) {}\n"
    "};\n"
    "typedef vec8<uchar> uchar8;\ntypedef vec8<char> char8;\n"
    "typedef vec8<ushort> ushort8;\ntypedef vec8<short> short8;\n"
    "typedef vec8<uint> uint8;\ntypedef vec8<int> int8;\n"
    "typedef vec8<ulong> ulong8;\ntypedef vec8<long> long8;\n"
    "typedef vec8<half> half8;\ntypedef vec8<float> float8;\n";

static const char bf16_vectors[] =
    "inline float2 from_bf16(ushort2 v) { return as_type<float2>(uint2(v) << 16); }\n"
    "inline float4 from_bf16(ushort4 v) { return as_type<float4>(uint4(v) << 16); }\n";

static const char wide_bf16[] =
    "inline float8 from_bf16(ushort8 v)\n{\n"
    "    return float8(from_bf16(ushort4(v.x, v.y, v.z, v.w)),\n"
    "                  from_bf16(ushort4(v.s4, v.s5, v.s6, v.s7)));\n}\n";

/* Of 64 bits by four products of 32 bits. */
static const char multiply_high[] =
    "inline uint multiply_high(uint a, uint b) { return mulhi(a, b); }\n"
    "inline int multiply_high(int a, int b) { return mulhi(a, b); }\n"
    "inline ulong multiply_high(ulong a, ulong b)\n{\n"
    "    const ulong a0 = a & 0xfffffffful, a1 = a >> 32;\n"
    "    const ulong b0 = b & 0xfffffffful, b1 = b >> 32;\n"
    "    const ulong middle = a1 * b0 + (a0 * b0 >> 32);\n"
    "    const ulong low = a0 * b1 + (middle & 0xfffffffful);\n"
    "    return a1 * b1 + (middle >> 32) + (low >> 32);\n}\n"
    "inline long multiply_high(long a, long b)\n{\n"
    "    const ulong high = multiply_high(ulong(a), ulong(b));\n"
    "    return long(high - (a < 0 ? ulong(b) : 0ul) - (b < 0 ? ulong(a) : 0ul));\n}\n";

/* Metal defines fmod as x - y * trunc(x / y). This is C's: a long division of the integers, eight
 * bits of the quotient a step, with normalised denormals. */
static const char remainder_of[] =
    "inline float remainder_of(float x, float y)\n{\n"
    "    const uint sign = as_type<uint>(x) & 0x80000000u;\n"
    "    uint a = as_type<uint>(x) & 0x7fffffffu, b = as_type<uint>(y) & 0x7fffffffu;\n"
    "    if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) {\n"
    "        return as_type<float>(0x7fc00000u);\n    }\n"
    "    if (a < b) {\n        return x;\n    }\n"
    "    int i = int(a >> 23), j = int(b >> 23);\n"
    "    a = i > 0 ? (a & 0x7fffffu) | 0x800000u : a << (clz(a) - 8u);\n"
    "    i = i > 0 ? i : 9 - int(clz(as_type<uint>(x) & 0x7fffffffu));\n"
    "    j = j > 0 ? j : 9 - int(clz(b));\n"
    "    b = b >= 0x800000u ? (b & 0x7fffffu) | 0x800000u : b << (clz(b) - 8u);\n"
    "    a = a >= b ? a - b : a;\n"
    "    for (; i - j >= 8; i -= 8) {\n        a = (a << 8) % b;\n    }\n"
    "    a = (a << uint(i - j)) % b;\n"
    "    if (a == 0u) {\n        return as_type<float>(sign);\n    }\n"
    "    const int shift = int(clz(a)) - 8;\n"
    "    j -= shift;\n"
    "    a <<= uint(shift);\n"
    "    const uint bits = j > 0 ? a - 0x800000u + (uint(j) << 23) : a >> uint(1 - j);\n"
    "    return as_type<float>(sign | bits);\n}\n";

/* Metal has the weak form only, which may fail without a reason. */
static const char exchange_equal[] =
    "template <typename P, typename T> inline T exchange_equal(P place, T comparand, T value)\n{\n"
    "    T old = comparand;\n"
    "    while (!atomic_compare_exchange_weak_explicit(place, &old, value, memory_order_relaxed,\n"
    "                                                  memory_order_relaxed) &&\n"
    "           old == comparand) {\n    }\n"
    "    return old;\n}\n";

static const char subgroups[] =
    "template <typename T> inline T from_lane(T v, uint lane)\n"
    "{\n    return simd_shuffle(v, ushort(lane));\n}\n"
    "inline ulong from_lane(ulong v, uint lane)\n{\n"
    "    return ulong(from_lane(uint(v >> 32), lane)) << 32 | from_lane(uint(v), lane);\n}\n"
    "inline long from_lane(long v, uint lane) { return long(from_lane(ulong(v), lane)); }\n";

/* MATRIX_MULTIPLY on 8 x 8 matrices of f32, which hold the elements of every type exactly. Lane L
 * of a simdgroup matrix has row (L / 4 & 4) + L / 2 % 4, columns 4 (L / 8 % 2) + 2 (L % 2) and the
 * next one; lanes exchange elements between that and the IR's layout (hal/ir.h). */
static const char matrices[] =
    "inline float2 pair_of(uint word, bool half_type)\n{\n"
    "    return half_type ? float2(as_type<half2>(word))\n"
    "                     : as_type<float2>(uint2(word << 16, word & 0xffff0000u));\n}\n"
    "inline simdgroup_float8x8 matrix_of(float2 v)\n{\n"
    "    simdgroup_float8x8 made;\n"
    "    made.thread_elements()[0] = v.x;\n"
    "    made.thread_elements()[1] = v.y;\n"
    "    return made;\n}\n"
    "inline float2 words_of(uint low, uint high, uint first, uint second, bool upper)\n{\n"
    "    const uint2 l = uint2(from_lane(low, first), from_lane(low, second));\n"
    "    const uint2 h = uint2(from_lane(high, first), from_lane(high, second));\n"
    "    return as_type<float2>((upper ? h : l) & 0xffffe000u);\n}\n"
    "template <int type> inline float4 multiply_matrices(uint4 a, uint2 b, float4 c, uint "
    "lane)\n{\n"
    "    const uint row = (lane >> 2 & 4u) + (lane >> 1 & 3u);\n"
    "    const uint column = (lane >> 1 & 4u) + ((lane & 1u) << 1);\n"
    "    const uint from = row * 4u + (column >> 1);\n"
    "    const uint back = (lane & 0x11u) | (lane >> 1 & 6u) | (lane << 2 & 8u);\n"
    "    simdgroup_float8x8 top = matrix_of(float2(from_lane(c.x, from), from_lane(c.y, from)));\n"
    "    simdgroup_float8x8 bottom = matrix_of(float2(from_lane(c.z, from), from_lane(c.w, "
    "from)));\n"
    "    if (type == WORDS) {\n"
    "        const uint at = row * 4u + (column & 3u);\n"
    "        const uint down = column * 4u + (row & 3u);\n"
    "        const simdgroup_float8x8 right =\n"
    "            matrix_of(words_of(b.x, b.y, down, down + 4u, row >= 4u));\n"
    "        simdgroup_multiply_accumulate(\n"
    "            top, matrix_of(words_of(a.x, a.z, at, at + 1u, column >= 4u)), right, top);\n"
    "        simdgroup_multiply_accumulate(\n"
    "            bottom, matrix_of(words_of(a.y, a.w, at, at + 1u, column >= 4u)), right, "
    "bottom);\n"
    "    } else {\n"
    "        const bool is_half = type == HALVES;\n"
    "        const uint down = column * 4u + (row >> 1);\n"
    "        for (uint step = 0u; step < 2u; step++) {\n"
    "            const float2 left = pair_of(from_lane(step == 0u ? b.x : b.y, down), is_half);\n"
    "            const float2 next =\n"
    "                pair_of(from_lane(step == 0u ? b.x : b.y, down + 4u), is_half);\n"
    "            const simdgroup_float8x8 right = matrix_of(\n"
    "                (row & 1u) != 0u ? float2(left.y, next.y) : float2(left.x, next.x));\n"
    "            const uint high = from_lane(step == 0u ? a.x : a.z, from);\n"
    "            const uint low = from_lane(step == 0u ? a.y : a.w, from);\n"
    "            simdgroup_multiply_accumulate(top, matrix_of(pair_of(high, is_half)), right, "
    "top);\n"
    "            simdgroup_multiply_accumulate(bottom, matrix_of(pair_of(low, is_half)), right,\n"
    "                                          bottom);\n"
    "        }\n"
    "    }\n"
    "    const float4 sums = float4(top.thread_elements()[0], top.thread_elements()[1],\n"
    "                               bottom.thread_elements()[0], bottom.thread_elements()[1]);\n"
    "    return float4(from_lane(sums.x, back), from_lane(sums.y, back), from_lane(sums.z, back),\n"
    "                  from_lane(sums.w, back));\n}\n";

/* Conversions of halves by integers, for devices whose own round otherwise or flush denormals. */
static const char slow_half[] =
    "inline float from_half(half v)\n{\n"
    "    const uint bits = as_type<ushort>(v), sign = (bits & 0x8000u) << 16;\n"
    "    const uint rest = bits & 0x7fffu;\n"
    "    const uint small = as_type<uint>(float(rest) * 0x1p-24f);\n"
    "    const uint large = rest >= 0x7c00u ? 0x7f800000u | rest << 13\n"
    "                                       : (rest << 13) + 0x38000000u;\n"
    "    return as_type<float>(sign | (rest < 0x400u ? small : large));\n}\n"
    "inline half to_half(float v)\n{\n"
    "    const uint bits = as_type<uint>(v), sign = bits >> 16 & 0x8000u;\n"
    "    const uint rest = bits & 0x7fffffffu;\n"
    "    const uint small = as_type<uint>(as_type<float>(rest) + 0.5f) - 0x3f000000u;\n"
    "    const uint normal = (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13;\n"
    "    const uint large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
    "    const uint below = rest < 0x38800000u ? small : normal;\n"
    "    return as_type<half>(ushort(sign | (rest >= 0x477ff000u ? large : below)));\n}\n"
    "inline float2 from_half(half2 v) { return float2(from_half(v.x), from_half(v.y)); }\n"
    "inline half2 to_half(float2 v) { return half2(to_half(v.x), to_half(v.y)); }\n"
    "inline float4 from_half(half4 v) { return float4(from_half(v.xy), from_half(v.zw)); }\n"
    "inline half4 to_half(float4 v) { return half4(to_half(v.xy), to_half(v.zw)); }\n";

static const char slow_wide_half[] =
    "inline float8 from_half(half8 v)\n{\n"
    "    return float8(from_half(half4(v.x, v.y, v.z, v.w)),\n"
    "                  from_half(half4(v.s4, v.s5, v.s6, v.s7)));\n}\n"
    "inline half8 to_half(float8 v)\n{\n"
    "    return half8(to_half(float4(v.x, v.y, v.z, v.w)),\n"
    "                 to_half(float4(v.s4, v.s5, v.s6, v.s7)));\n}\n";

static void add_text(kit_text *text, bool wanted, const char *source)
{
    if (wanted) {
        kit_text_add(text, "%s", source);
    }
}

void metal_lower_slow_half(kit_text *text)
{
    kit_text_add(text, "%s", slow_half);
}

void metal_lower_functions(uint32_t used, bool has_slow_half, kit_text *text)
{
    const bool wide = (used & METAL_WIDE_VECTORS) != 0;
    const bool bf16 = (used & METAL_BF16_VECTORS) != 0;
    add_text(text, wide, wide_vectors);
    add_text(text, wide && has_slow_half, slow_wide_half);
    add_text(text, bf16, bf16_vectors);
    add_text(text, bf16 && wide, wide_bf16);
    add_text(text, (used & METAL_MULTIPLY_HIGH) != 0, multiply_high);
    add_text(text, (used & METAL_REMAINDER) != 0, remainder_of);
    add_text(text, (used & METAL_EXCHANGE_EQUAL) != 0, exchange_equal);
    add_text(text, (used & METAL_SUBGROUPS) != 0, subgroups);
    if (used & METAL_MATRICES) {
        kit_text_add(text, "enum { HALVES = %d, WORDS = %d };\n%s", HAL_TYPE_F16, HAL_TYPE_F32,
                     matrices);
    }
}
