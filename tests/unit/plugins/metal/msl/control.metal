#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
template <typename P, typename T> inline T exchange_equal(P place, T comparand, T value)
{
    T old = comparand;
    while (!atomic_compare_exchange_weak_explicit(place, &old, value, memory_order_relaxed,
                                                  memory_order_relaxed) &&
           old == comparand) {
    }
    return old;
}
struct arguments {
    uint s0;
};
kernel void hal_control(
    device uint *m0 [[buffer(0)]],
    constant arguments &a [[buffer(1)]],
    uint3 l [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    threadgroup uint m1[64] __attribute__((aligned(16)));
    threadgroup half m2[8] __attribute__((aligned(16)));
    const uint v0 = a.s0;
    const uint v1 = l[0];
    uint v4 = 0u;
    for (uint v5 = 0u; v5 < v0; v5 += 1u) {
        const uint v6 = v4;
        const uint v7 = v5 & 1u;
        const bool v8 = v7 != 0u;
        if (v8) {
            const uint v10 = v6 + v5;
            v4 = v10;
        } else {
            const uint v13 = v6 - v5;
            v4 = v13;
        }
    }
    const uint v17 = v4;
    m1[v1 + 32ul] = v17;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    const uint v20 = m1[v1];
    const uint v21 = atomic_fetch_add_explicit((volatile device atomic_uint *)(m0 + v1), v20, memory_order_relaxed);
    const uint v22 = exchange_equal((volatile threadgroup atomic_uint *)(m1 + 0), 1u, v21);
    m0[v1 + 32ul] = v22;
}
