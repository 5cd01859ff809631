#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
template <typename T> inline T from_lane(T v, uint lane)
{
    return simd_shuffle(v, ushort(lane));
}
inline ulong from_lane(ulong v, uint lane)
{
    return ulong(from_lane(uint(v >> 32), lane)) << 32 | from_lane(uint(v), lane);
}
inline long from_lane(long v, uint lane) { return long(from_lane(ulong(v), lane)); }
enum { HALVES = 10, WORDS = 12 };
inline float2 pair_of(uint word, bool half_type)
{
    return half_type ? float2(as_type<half2>(word))
                     : as_type<float2>(uint2(word << 16, word & 0xffff0000u));
}
inline simdgroup_float8x8 matrix_of(float2 v)
{
    simdgroup_float8x8 made;
    made.thread_elements()[0] = v.x;
    made.thread_elements()[1] = v.y;
    return made;
}
inline float2 words_of(uint low, uint high, uint first, uint second, bool upper)
{
    const uint2 l = uint2(from_lane(low, first), from_lane(low, second));
    const uint2 h = uint2(from_lane(high, first), from_lane(high, second));
    return as_type<float2>((upper ? h : l) & 0xffffe000u);
}
template <int type> inline float4 multiply_matrices(uint4 a, uint2 b, float4 c, uint lane)
{
    const uint row = (lane >> 2 & 4u) + (lane >> 1 & 3u);
    const uint column = (lane >> 1 & 4u) + ((lane & 1u) << 1);
    const uint from = row * 4u + (column >> 1);
    const uint back = (lane & 0x11u) | (lane >> 1 & 6u) | (lane << 2 & 8u);
    simdgroup_float8x8 top = matrix_of(float2(from_lane(c.x, from), from_lane(c.y, from)));
    simdgroup_float8x8 bottom = matrix_of(float2(from_lane(c.z, from), from_lane(c.w, from)));
    if (type == WORDS) {
        const uint at = row * 4u + (column & 3u);
        const uint down = column * 4u + (row & 3u);
        const simdgroup_float8x8 right =
            matrix_of(words_of(b.x, b.y, down, down + 4u, row >= 4u));
        simdgroup_multiply_accumulate(
            top, matrix_of(words_of(a.x, a.z, at, at + 1u, column >= 4u)), right, top);
        simdgroup_multiply_accumulate(
            bottom, matrix_of(words_of(a.y, a.w, at, at + 1u, column >= 4u)), right, bottom);
    } else {
        const bool is_half = type == HALVES;
        const uint down = column * 4u + (row >> 1);
        for (uint step = 0u; step < 2u; step++) {
            const float2 left = pair_of(from_lane(step == 0u ? b.x : b.y, down), is_half);
            const float2 next =
                pair_of(from_lane(step == 0u ? b.x : b.y, down + 4u), is_half);
            const simdgroup_float8x8 right = matrix_of(
                (row & 1u) != 0u ? float2(left.y, next.y) : float2(left.x, next.x));
            const uint high = from_lane(step == 0u ? a.x : a.z, from);
            const uint low = from_lane(step == 0u ? a.y : a.w, from);
            simdgroup_multiply_accumulate(top, matrix_of(pair_of(high, is_half)), right, top);
            simdgroup_multiply_accumulate(bottom, matrix_of(pair_of(low, is_half)), right,
                                          bottom);
        }
    }
    const float4 sums = float4(top.thread_elements()[0], top.thread_elements()[1],
                               bottom.thread_elements()[0], bottom.thread_elements()[1]);
    return float4(from_lane(sums.x, back), from_lane(sums.y, back), from_lane(sums.z, back),
                  from_lane(sums.w, back));
}
kernel void hal_matrix(
    const device uint *m0 [[buffer(0)]],
    const device uint *m1 [[buffer(1)]],
    device float *m2 [[buffer(2)]],
    uint lane [[thread_index_in_simdgroup]],
    uint subgroup [[simdgroup_index_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    const uint item = subgroup * 32u + lane;
    const uint lanes = min(32u, 64u - subgroup * 32u);
    const uint3 l = uint3(item % 64u, item / 64u % 1u, item / 64u);
    (void)l; (void)lanes;
    const uint v0 = l[0];
    const uint v2 = v0 * 4u;
    const uint4 v3 = *(const device uint4 *)(m0 + v2);
    const uint2 v4 = *(const device uint2 *)(m1 + v2);
    const float4 v5 = *(const device float4 *)(m2 + v2);
    const float4 v6 = multiply_matrices<10>(v3, v4, v5, lane);
    const float4 v7 = multiply_matrices<11>(v3, v4, v6, lane);
    const float4 v8 = multiply_matrices<12>(v3, v4, v7, lane);
    *(device float4 *)(m2 + v2) = v8;
}
