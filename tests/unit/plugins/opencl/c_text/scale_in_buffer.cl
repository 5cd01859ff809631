#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void hal_scale(__global uchar *restrict b0, const __global uchar *restrict b1, const __global uchar *restrict block, const ulong place)
{
    __global float *const m0 = (__global float *)(b0 + *(const __global ulong *)(block + place + 0));
    const __global float *const m1 = (const __global float *)(b1 + *(const __global ulong *)(block + place + 8));
    const float s0 = *(const __global float *)(block + place + 16);
    const uint s1 = *(const __global uint *)(block + place + 20);
    const float v0 = s0;
    const uint v1 = s1;
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
