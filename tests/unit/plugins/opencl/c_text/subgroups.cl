#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
typedef struct arguments {
    ulong o0;
} arguments;
__kernel __attribute__((reqd_work_group_size(40, 1, 1)))
__attribute__((intel_reqd_sub_group_size(16)))
void hal_subgroups(__global uchar *restrict b0, const arguments a)
{
    __global float *const m0 = (__global float *)(b0 + a.o0);
    const uint item = (uint)get_sub_group_id() * 16u + (uint)get_sub_group_local_id();
    const uint i0 = item % 10u, i1 = item / 10u % 4u, i2 = item / 40u;
    const uint v0 = i0;
    const uint v1 = i1;
    const uint v3 = v1 * 10u;
    const uint v4 = v3 + v0;
    const float v5 = m0[v4];
    const uint v6 = (uint)get_sub_group_local_id();
    const uint v7 = v6 + 10u;
    const float v8 = intel_sub_group_shuffle(v5, v7 & 15u);
    const float v9 = intel_sub_group_shuffle_xor(v8, 1u & 15u);
    const float v11 = intel_sub_group_shuffle_xor(v9, 17u & 15u);
    const bool v12 = 0x0p+0f < v11;
    float v13 = v9;
    { const float o13 = intel_sub_group_shuffle_xor(v13, 1u & 15u); v13 = ((uint)get_sub_group_local_id() ^ 1u) >= (uint)get_sub_group_size() ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = intel_sub_group_shuffle_xor(v13, 2u & 15u); v13 = ((uint)get_sub_group_local_id() ^ 2u) >= (uint)get_sub_group_size() ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = intel_sub_group_shuffle_xor(v13, 4u & 15u); v13 = ((uint)get_sub_group_local_id() ^ 4u) >= (uint)get_sub_group_size() ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = intel_sub_group_shuffle_xor(v13, 8u & 15u); v13 = ((uint)get_sub_group_local_id() ^ 8u) >= (uint)get_sub_group_size() ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    v13 = intel_sub_group_shuffle(v13, 0u & 15u);
    const float v14 = v12 ? v13 : v8;
    m0[v4] = v14;
}
