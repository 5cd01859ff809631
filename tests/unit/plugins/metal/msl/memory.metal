#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
inline float2 from_bf16(ushort2 v) { return as_type<float2>(uint2(v) << 16); }
inline float4 from_bf16(ushort4 v) { return as_type<float4>(uint4(v) << 16); }
kernel void hal_memory(
    device uchar *m0 [[buffer(0)]],
    device char *m1 [[buffer(1)]],
    device ushort *m2 [[buffer(2)]],
    device long *m3 [[buffer(3)]],
    device half *m4 [[buffer(4)]],
    device ushort *m5 [[buffer(5)]],
    device float *m6 [[buffer(6)]],
    uint3 l [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    const uint v0 = l[0];
    const uint v5 = v0 * 4u;
    const int v6 = (int)v0;
    const bool v7 = m0[v0] != 0;
    const bool v8 = v7 != true;
    m0[v0 + 4ul] = (uchar)v8;
    int4 v10 = int4(0); if (v7) { v10 = int4(*(const device char4 *)(m1 + v5)); }
    *(device char4 *)(m1 + v5 + 16ul) = char4(v10);
    const uint v12 = m2[v6 - 1l];
    if (v7) { m2[(long)v0 - 1l] = (ushort)v12; }
    const long2 v14 = *(const device long2 *)(m3 + 0);
    const long v15 = v14.y;
    m3[7] = v15;
    float4 v17 = float4(0); if (v7) { v17 = float4(*(const device half4 *)(m4 + v5)); }
    const float v18 = v8 ? float(*(const device half *)(m4 + v0)) : 0;
    *(device half4 *)(m4 + v5 + 4ul) = half4(v17);
    const float2 v20 = from_bf16(*(const device ushort2 *)(m5 + 2));
    const float v21 = as_type<float>((uint)m5[v0] << 16);
    *(device ushort2 *)(m5 + 4) = ushort2((ushort)(((as_type<uint>(v20.x) & 0x7fffffffu) > 0x7f800000u ? as_type<uint>(v20.x) >> 16 | 0x40u : (as_type<uint>(v20.x) + 0x7fffu + (as_type<uint>(v20.x) >> 16 & 1u)) >> 16)), (ushort)(((as_type<uint>(v20.y) & 0x7fffffffu) > 0x7f800000u ? as_type<uint>(v20.y) >> 16 | 0x40u : (as_type<uint>(v20.y) + 0x7fffu + (as_type<uint>(v20.y) >> 16 & 1u)) >> 16)));
    m5[v0] = (ushort)(((as_type<uint>(v21) & 0x7fffffffu) > 0x7f800000u ? as_type<uint>(v21) >> 16 | 0x40u : (as_type<uint>(v21) + 0x7fffu + (as_type<uint>(v21) >> 16 & 1u)) >> 16));
    const float v24 = v17.w;
    const float4 v25 = float4(v18, v21, v24, v24);
    *(device float4 *)(m6 + v5) = v25;
}
