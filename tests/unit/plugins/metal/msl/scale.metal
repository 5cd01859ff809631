#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
struct arguments {
    float s0;
    uint s1;
};
kernel void hal_scale(
    device float *m0 [[buffer(0)]],
    const device float *m1 [[buffer(1)]],
    constant arguments &a [[buffer(2)]],
    uint3 l [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    const float v0 = a.s0;
    const uint v1 = a.s1;
    const uint v2 = g[0];
    const uint v3 = l[0];
    const uint v4 = 0u;
    const uint v6 = v2 * 64u;
    const uint v7 = v6 + v3;
    const uint v8 = v7 + v4;
    const bool v9 = v8 < v1;
    const float v10 = v9 ? m1[v8] : 0;
    const float v11 = v0 * v10;
    if (v9) { m0[v8] = v11; }
}
