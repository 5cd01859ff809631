#pragma OPENCL FP_CONTRACT OFF
typedef struct arguments {
    ulong o0;
    ulong o1;
    uint s0;
} arguments;
__attribute__((noinline)) void work_item(__global uchar *restrict b0, const __global uchar *restrict b1, const arguments a, uint l0, uint l1, uint l2, uint g0, uint g1, uint g2, uint n0, uint n1, uint n2)
{
    __global ushort *const m0 = (__global ushort *)(b0 + a.o0);
    const __global ushort *const m1 = (const __global ushort *)(b1 + a.o1);
    const uint v0 = a.s0;
    const uint v1 = g0;
    const uint v2 = n0;
    const uint v3 = l1;
    const uint v4 = v3 * v2;
    const uint v5 = v4 + v1;
    const bool v6 = v5 < v0;
    const float v7 = v6 ? as_float((uint)m1[v5] << 16) : 0;
    const float v8 = v7 + v7;
    if (v6) { vstore_half_rte(v8, 0, (__global half *)(m0 + v5)); }
}
__kernel __attribute__((reqd_work_group_size(1, 8, 1)))
void hal_rows(__global uchar *restrict b0, const __global uchar *restrict b1, const arguments a)
{
    work_item(b0, b1, a, get_local_id(0), get_local_id(1), get_local_id(2), get_group_id(0), get_group_id(1), get_group_id(2), get_num_groups(0), get_num_groups(1), get_num_groups(2));
}
