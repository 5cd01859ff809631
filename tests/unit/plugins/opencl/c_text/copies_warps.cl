#pragma OPENCL FP_CONTRACT OFF
void copy_async1(__local void *to, const __global void *from, bool guard)
{
    *(__local uchar *)to = guard ? *(const __global uchar *)from : 0;
}
void copy_async2(__local void *to, const __global void *from, bool guard)
{
    *(__local ushort *)to = guard ? *(const __global ushort *)from : 0;
}
void copy_async4(__local void *to, const __global void *from, bool guard)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 : : "r"((uint)(size_t)to), "l"((ulong)from),
                     "r"(guard ? 4u : 0u) : "memory");
}
void copy_async8(__local void *to, const __global void *from, bool guard)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 : : "r"((uint)(size_t)to), "l"((ulong)from),
                     "r"(guard ? 8u : 0u) : "memory");
}
void copy_async16(__local void *to, const __global void *from, bool guard)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"((uint)(size_t)to), "l"((ulong)from),
                     "r"(guard ? 16u : 0u) : "memory");
}
float from_half(ushort half_bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half_bits));
    return value;
}
ushort to_half(float value)
{
    ushort half_bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half_bits) : "f"(value));
    return half_bits;
}
float2 from_half2(ushort2 x)
{
    return (float2)(from_half(x.s0), from_half(x.s1));
}
ushort2 to_half2(float2 x)
{
    return (ushort2)(to_half(x.s0), to_half(x.s1));
}
float4 from_half4(ushort4 x)
{
    return (float4)(from_half(x.s0), from_half(x.s1), from_half(x.s2), from_half(x.s3));
}
ushort4 to_half4(float4 x)
{
    return (ushort4)(to_half(x.s0), to_half(x.s1), to_half(x.s2), to_half(x.s3));
}
float8 from_half8(ushort8 x)
{
    return (float8)(from_half(x.s0), from_half(x.s1), from_half(x.s2), from_half(x.s3), from_half(x.s4), from_half(x.s5), from_half(x.s6), from_half(x.s7));
}
ushort8 to_half8(float8 x)
{
    return (ushort8)(to_half(x.s0), to_half(x.s1), to_half(x.s2), to_half(x.s3), to_half(x.s4), to_half(x.s5), to_half(x.s6), to_half(x.s7));
}
typedef struct arguments {
    ulong o0;
    ulong o1;
    ulong o2;
} arguments;
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void hal_copies(const __global uchar *restrict b0, const __global uchar *restrict b1, __global uchar *restrict b2, const arguments a)
{
    const __global float *const m0 = (const __global float *)(b0 + a.o0);
    const __global ushort *const m1 = (const __global ushort *)(b1 + a.o1);
    __global float *const m2 = (__global float *)(b2 + a.o2);
    __local float m3[256] __attribute__((aligned(16)));
    __local ushort m4[64] __attribute__((aligned(16)));
    const uint v0 = (uint)get_local_id(0);
    const uint v3 = v0 * 4u;
    const uint v4 = v0 * 2u;
    const bool v6 = v0 < 30u;
    copy_async16(m3 + v3, m0 + v3, v6);
    copy_async4(m4 + v4, m1 + v4, 1);
    asm volatile("cp.async.commit_group;" : : : "memory");
    copy_async2(m4 + v0, m1 + v4, v6);
    copy_async4(m3 + 2, m0 + 4, 1);
    asm volatile("cp.async.commit_group;" : : : "memory");
    asm volatile("cp.async.wait_group 1;" : : : "memory");
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float4 v15 = *(const __local float4 *)(m3 + v3);
    *(__global float4 *)(m2 + v3) = v15;
}
