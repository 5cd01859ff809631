#pragma OPENCL FP_CONTRACT OFF
#define TYPED __attribute__((overloadable))
uint TYPED from_lane(uint value, uint lane, uint warp)
{
    uint result;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
                 : "=r"(result) : "r"(value), "r"(lane), "r"(warp));
    return result;
}
int TYPED from_lane(int value, uint lane, uint warp)
{
    return as_int(from_lane(as_uint(value), lane, warp));
}
float TYPED from_lane(float value, uint lane, uint warp)
{
    return as_float(from_lane(as_uint(value), lane, warp));
}
bool TYPED from_lane(bool value, uint lane, uint warp)
{
    return from_lane((uint)value, lane, warp) != 0u;
}
ulong TYPED from_lane(ulong value, uint lane, uint warp)
{
    const uint low = from_lane((uint)value, lane, warp);
    return (ulong)from_lane((uint)(value >> 32), lane, warp) << 32 | low;
}
long TYPED from_lane(long value, uint lane, uint warp)
{
    return as_long(from_lane(as_ulong(value), lane, warp));
}
#ifdef cl_khr_fp64
double TYPED from_lane(double value, uint lane, uint warp)
{
    return as_double(from_lane(as_ulong(value), lane, warp));
}
#endif
float4 multiply_matrices_10(uint4 a, uint2 b, float4 c)
{
    float x, y, z, w;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                 : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3),
                   "r"(b.s0), "r"(b.s1),
                   "f"(c.s0), "f"(c.s1), "f"(c.s2), "f"(c.s3));
    return (float4)(x, y, z, w);
}
float4 multiply_matrices_12(uint4 a, uint2 b, float4 c)
{
    float x, y, z, w;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                 : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3),
                   "r"(b.s0), "r"(b.s1),
                   "f"(c.s0), "f"(c.s1), "f"(c.s2), "f"(c.s3));
    return (float4)(x, y, z, w);
}
typedef struct arguments {
    ulong o0;
    ulong o1;
    ulong o2;
} arguments;
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void hal_matrices(const __global uchar *restrict b0, const __global uchar *restrict b1, __global uchar *restrict b2, const arguments a)
{
    const __global uint *const m0 = (const __global uint *)(b0 + a.o0);
    const __global uint *const m1 = (const __global uint *)(b1 + a.o1);
    __global float *const m2 = (__global float *)(b2 + a.o2);
    const uint item = (uint)get_local_id(0), lane = item & 31u;
    const uint lanes = 32u, warp = 0xffffffffu;
    const uint i0 = item % 32u, i1 = item / 32u % 1u, i2 = item / 32u;
    const uint v0 = i0;
    const uint v3 = v0 * 2u;
    const uint v4 = v0 * 4u;
    const uint4 v5 = *(const __global uint4 *)(m0 + v4);
    const uint2 v6 = *(const __global uint2 *)(m1 + v3);
    const float4 v7 = *(const __global float4 *)(m2 + v4);
    const float4 v8 = multiply_matrices_10(v5, v6, v7);
    const float4 v9 = multiply_matrices_12(v5, v6, v8);
    *(__global float4 *)(m2 + v4) = v9;
}
