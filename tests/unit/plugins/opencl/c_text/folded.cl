#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef struct arguments {
    ulong o0;
    ulong o1;
    ulong o2;
    ulong o3;
} arguments;
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void hal_folded(const __global uchar *restrict b0, __global uchar *restrict b1, __global uchar *restrict b2, __global uchar *restrict b3, const arguments a)
{
    const __global int *const m0 = (const __global int *)(b0 + a.o0);
    __global long *const m1 = (__global long *)(b1 + a.o1);
    __global float *const m2 = (__global float *)(b2 + a.o2);
    __global double *const m3 = (__global double *)(b3 + a.o3);
    const int v9 = m0[0];
    const long v10 = (long)v9;
    const long v11 = v10 < (-2147483648l) ? v10 : (-2147483648l);
    const ulong v12 = (ulong)v9;
    const long v13 = (long)v12;
    const uint v14 = (uint)v9;
    const long v15 = (long)v14;
    const long v16 = (long)((ulong)v11 + (ulong)v13);
    const long v17 = (long)((ulong)v16 + (ulong)v15);
    const long v18 = v17 < 0 ? (long)(0 - (ulong)v17) : v17;
    m1[0] = v18;
    const float v20 = m2[0];
    const float v21 = 0x0p+0f / v20;
    const float v22 = v21 + (-0x0p+0f);
    const float v23 = v22 == as_float(0x7fc00000) ? as_float(as_uint(v22) & as_uint(as_float(0x7fc00000))) : ((v22 > as_float(0x7fc00000)) | (v22 != v22)) ? v22 : as_float(0x7fc00000);
    const float v24 = v23 == as_float(0x7f800000) ? as_float(as_uint(v23) | as_uint(as_float(0x7f800000))) : ((v23 < as_float(0x7f800000)) | (v23 != v23)) ? v23 : as_float(0x7f800000);
    const float v25 = v24 + 0x1p+0f;
    m2[0] = v25;
    const double v27 = (double)v25;
    const double v28 = v27 == (-0x0p+0) ? as_double(as_ulong(v27) | as_ulong((-0x0p+0))) : ((v27 < (-0x0p+0)) | (v27 != v27)) ? v27 : (-0x0p+0);
    const double v29 = v28 + 0x1p-1;
    m3[0] = v29;
}
