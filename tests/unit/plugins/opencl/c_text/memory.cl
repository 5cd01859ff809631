#pragma OPENCL FP_CONTRACT OFF
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
    float4 v17 = (float4)(0); if (v7) { v17 = vload_half4(0, (const __global half *)(m4 + v5)); }
    const float v18 = v8 ? vload_half(0, (const __global half *)(m4 + v0)) : 0;
    vstore_half4_rte(v17, 0, (__global half *)(m4 + v5 + 4ul));
    const float2 v20 = as_float2(convert_uint2(*(const __global ushort2 *)(m5 + 2)) << 16);
    const float v21 = as_float((uint)m5[v0] << 16);
    *(__global ushort2 *)(m5 + 4) = (ushort2)((ushort)(((as_uint(v20.s0) & 0x7fffffffu) > 0x7f800000u ? as_uint(v20.s0) >> 16 | 0x40u : (as_uint(v20.s0) + 0x7fffu + (as_uint(v20.s0) >> 16 & 1u)) >> 16)), (ushort)(((as_uint(v20.s1) & 0x7fffffffu) > 0x7f800000u ? as_uint(v20.s1) >> 16 | 0x40u : (as_uint(v20.s1) + 0x7fffu + (as_uint(v20.s1) >> 16 & 1u)) >> 16)));
    m5[v0] = (ushort)(((as_uint(v21) & 0x7fffffffu) > 0x7f800000u ? as_uint(v21) >> 16 | 0x40u : (as_uint(v21) + 0x7fffu + (as_uint(v21) >> 16 & 1u)) >> 16));
    const float v24 = v17.s3;
    const float4 v25 = (float4)(v18, v21, v24, v24);
    *(__global float4 *)(m6 + v5) = v25;
}
