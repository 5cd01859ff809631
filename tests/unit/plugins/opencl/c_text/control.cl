#pragma OPENCL FP_CONTRACT OFF
typedef struct arguments {
    ulong o0;
    uint s0;
} arguments;
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void hal_control(__global uchar *restrict b0, const arguments a)
{
    __global uint *const m0 = (__global uint *)(b0 + a.o0);
    __local uint m1[64] __attribute__((aligned(16)));
    __local ushort m2[8] __attribute__((aligned(16)));
    const uint v0 = a.s0;
    const uint v1 = (uint)get_local_id(0);
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
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const uint v20 = m1[v1];
    const uint v21 = atomic_add((volatile __global uint *)(m0 + v1), v20);
    const uint v22 = atomic_cmpxchg((volatile __local uint *)(m1 + 0), 1u, v21);
    m0[v1 + 32ul] = v22;
}
