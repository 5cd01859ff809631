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
kernel void hal_subgroups(
    device float *m0 [[buffer(0)]],
    uint lane [[thread_index_in_simdgroup]],
    uint subgroup [[simdgroup_index_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    const uint item = subgroup * 32u + lane;
    const uint lanes = min(32u, 40u - subgroup * 32u);
    const uint3 l = uint3(item % 10u, item / 10u % 4u, item / 40u);
    (void)l; (void)lanes;
    const uint v0 = l[0];
    const uint v1 = l[1];
    const uint v3 = v1 * 10u;
    const uint v4 = v3 + v0;
    const float v5 = m0[v4];
    const uint v6 = lane;
    const uint v7 = v6 + 10u;
    const float v8 = from_lane(v5, v7 & 31u);
    const float v9 = from_lane(v8, lane ^ (1u & 31u));
    const float v11 = from_lane(v9, lane ^ (17u & 31u));
    const bool v12 = 0x0p+0f < v11;
    float v13 = v9;
    { const float o13 = from_lane(v13, lane ^ (1u & 31u)); v13 = (lane ^ 1u) >= lanes ? v13 : v13 == o13 ? as_type<float>(as_type<uint>(v13) & as_type<uint>(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (2u & 31u)); v13 = (lane ^ 2u) >= lanes ? v13 : v13 == o13 ? as_type<float>(as_type<uint>(v13) & as_type<uint>(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (4u & 31u)); v13 = (lane ^ 4u) >= lanes ? v13 : v13 == o13 ? as_type<float>(as_type<uint>(v13) & as_type<uint>(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (8u & 31u)); v13 = (lane ^ 8u) >= lanes ? v13 : v13 == o13 ? as_type<float>(as_type<uint>(v13) & as_type<uint>(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (16u & 31u)); v13 = (lane ^ 16u) >= lanes ? v13 : v13 == o13 ? as_type<float>(as_type<uint>(v13) & as_type<uint>(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    v13 = from_lane(v13, 0u & 31u);
    const float v14 = v12 ? v13 : v8;
    m0[v4] = v14;
}
