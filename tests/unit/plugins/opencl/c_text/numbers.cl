#pragma OPENCL FP_CONTRACT OFF
typedef struct arguments {
    ulong o0;
    ulong o1;
    ulong o2;
} arguments;
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void hal_numbers(__global uchar *restrict b0, __global uchar *restrict b1, __global uchar *restrict b2, const arguments a)
{
    __global float *const m0 = (__global float *)(b0 + a.o0);
    __global int *const m1 = (__global int *)(b1 + a.o1);
    __global ulong *const m2 = (__global ulong *)(b2 + a.o2);
    const float v7 = m0[0];
    const float v8 = v7 == as_float(0xff800000) ? as_float(as_uint(v7) | as_uint(as_float(0xff800000))) : ((v7 < as_float(0xff800000)) | (v7 != v7)) ? v7 : as_float(0xff800000);
    const float v9 = v8 == as_float(0x7fc00000) ? as_float(as_uint(v8) & as_uint(as_float(0x7fc00000))) : ((v8 > as_float(0x7fc00000)) | (v8 != v8)) ? v8 : as_float(0x7fc00000);
    const float v10 = as_float(as_uint(v9) ^ (uint)1 << 31);
    const float v11 = as_float(as_uint(v10) & ~((uint)1 << 31));
    const float v12 = fma(v11, v7, (-0x1p-1f));
    const float v13 = fmod(v12, v7);
    const float v14 = as_float(((as_uint(v13) & 0x7fffffffu) > 0x7f800000u ? as_uint(v13) >> 16 | 0x40u : (as_uint(v13) + 0x7fffu + (as_uint(v13) >> 16 & 1u)) >> 16) << 16);
    const int v15 = v14 >= 0x1p31f ? 0x7fffffff : v14 <= -0x1p31f ? -0x7fffffff - 1 : (int)(((v14 > -0x1p31f) & (v14 < 0x1p31f)) ? v14 : 0);
    const int v16 = (-7) == 0 ? 0 : (-7) == -1 ? (int)(0 - (uint)v15) : v15 / ((((-7) == 0) | ((-7) == -1)) ? 1 : (-7));
    const int v17 = ((v15 == 0) | (v15 == -1)) ? 0 : v16 % (((v15 == 0) | (v15 == -1)) ? 1 : v15);
    const int v18 = (int)((uint)v17 << (v15 & 31));
    const int v19 = v18 >> ((-0x7fffffff - 1) & 31);
    const int v20 = mul_hi(v19, v15);
    const int v21 = v20 < 0 ? (int)(0 - (uint)v20) : v20;
    const int v22 = v21 < v15 ? v21 : v15;
    m1[0] = v22;
    const uint v24 = as_uint(v14);
    const ulong v25 = (ulong)v24;
    const ulong v26 = 18446744073709551615ul == 0 ? 0 : v25 / (18446744073709551615ul == 0 ? 1 : 18446744073709551615ul);
    const float v27 = (float)v26;
    const ulong v28 = v27 >= 0x1p64f ? 0xfffffffffffffffful : (ulong)(((v27 > 0) & (v27 < 0x1p64f)) ? v27 : 0);
    const ulong v29 = ~v28;
    m2[0] = v29;
    const bool v31 = v27 != 0;
    const float v32 = v31 ? v27 : v7;
    const float v33 = rint(v32);
    m0[0] = v33;
}
