#pragma OPENCL FP_CONTRACT OFF
float from_half(ushort half_bits)
{
    const uint bits = half_bits, sign = (bits & 0x8000u) << 16;
    const uint rest = (bits & 0x7fffu) << 13;
    const uint finite = as_uint(as_float(rest) * 0x1p112f);
    return as_float(sign | (rest >= 0x0f800000u ? 0x7f800000u | rest : finite));
}
ushort to_half(float value)
{
    const uint bits = as_uint(value), sign = bits >> 16 & 0x8000u;
    const uint rest = bits & 0x7fffffffu;
    const uint small = as_uint(as_float(rest) + 0.5f) - 0x3f000000u;
    const uint normal = (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13;
    const uint large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint below = rest < 0x38800000u ? small : normal;
    return (ushort)(sign | (rest >= 0x477ff000u ? large : below));
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
    ulong o3;
    ulong o4;
    ulong o5;
    ulong o6;
} arguments;
__kernel __attribute__((reqd_work_group_size(4, 2, 1)))
void hal_memory(__global uchar *restrict b0, __global uchar *restrict b1, __global uchar *restrict b2, __global uchar *restrict b3, __global uchar *restrict b4, __global uchar *restrict b5, __global uchar *restrict b6, const arguments a)
{
    __global uchar *const m0 = (__global uchar *)(b0 + a.o0);
    __global char *const m1 = (__global char *)(b1 + a.o1);
    __global ushort *const m2 = (__global ushort *)(b2 + a.o2);
    __global long *const m3 = (__global long *)(b3 + a.o3);
    __global ushort *const m4 = (__global ushort *)(b4 + a.o4);
    __global ushort *const m5 = (__global ushort *)(b5 + a.o5);
    __global float *const m6 = (__global float *)(b6 + a.o6);
    const uint v0 = (uint)get_local_id(0);
    const uint v5 = v0 * 4u;
    const int v6 = (int)v0;
    const bool v7 = m0[v0] != 0;
    const bool v8 = v7 != true;
    m0[v0 + 4ul] = (uchar)v8;
    int4 v10 = (int4)(0); if (v7) { v10 = convert_int4(*(const __global char4 *)(m1 + v5)); }
    *(__global char4 *)(m1 + v5 + 16ul) = convert_char4(v10);
    const uint v12 = m2[v6 - 1l];
    if (v7) { m2[(long)v0 - 1l] = (ushort)v12; }
    const long2 v14 = *(const __global long2 *)(m3 + 0);
    const long v15 = v14.s1;
    m3[7] = v15;
    float4 v17 = (float4)(0); if (v7) { v17 = from_half4(*(const __global ushort4 *)(m4 + v5)); }
    const float v18 = v8 ? from_half(*(const __global ushort *)(m4 + v0)) : 0;
    *(__global ushort4 *)(m4 + v5 + 4ul) = to_half4(v17);
    const float2 v20 = as_float2(convert_uint2(*(const __global ushort2 *)(m5 + 2)) << 16);
    const float v21 = as_float((uint)m5[v0] << 16);
    *(__global ushort2 *)(m5 + 4) = (ushort2)((ushort)(((as_uint(v20.s0) & 0x7fffffffu) > 0x7f800000u ? as_uint(v20.s0) >> 16 | 0x40u : (as_uint(v20.s0) + 0x7fffu + (as_uint(v20.s0) >> 16 & 1u)) >> 16)), (ushort)(((as_uint(v20.s1) & 0x7fffffffu) > 0x7f800000u ? as_uint(v20.s1) >> 16 | 0x40u : (as_uint(v20.s1) + 0x7fffu + (as_uint(v20.s1) >> 16 & 1u)) >> 16)));
    m5[v0] = (ushort)(((as_uint(v21) & 0x7fffffffu) > 0x7f800000u ? as_uint(v21) >> 16 | 0x40u : (as_uint(v21) + 0x7fffu + (as_uint(v21) >> 16 & 1u)) >> 16));
    const float v24 = v17.s3;
    const float4 v25 = (float4)(v18, v21, v24, v24);
    *(__global float4 *)(m6 + v5) = v25;
}
