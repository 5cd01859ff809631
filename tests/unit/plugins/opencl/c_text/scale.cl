#pragma OPENCL FP_CONTRACT OFF
typedef struct arguments {
    ulong o0;
    ulong o1;
    float s0;
    uint s1;
} arguments;
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void hal_scale(__global uchar *restrict b0, const __global uchar *restrict b1, const arguments a)
{
    __global float *const m0 = (__global float *)(b0 + a.o0);
    const __global float *const m1 = (const __global float *)(b1 + a.o1);
    const float v0 = a.s0;
    const uint v1 = a.s1;
    const uint v2 = (uint)get_group_id(0);
    const uint v3 = (uint)get_local_id(0);
    const uint v4 = 0u;
    const uint v6 = v2 * 64u;
    const uint v7 = v6 + v3;
    const uint v8 = v7 + v4;
    const bool v9 = v8 < v1;
    const float v10 = v9 ? m1[v8] : 0;
    const float v11 = v0 * v10;
    if (v9) { m0[v8] = v11; }
}
