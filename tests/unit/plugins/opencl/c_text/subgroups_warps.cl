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
typedef struct arguments {
    ulong o0;
} arguments;
__kernel __attribute__((reqd_work_group_size(40, 1, 1)))
void hal_subgroups(__global uchar *restrict b0, const arguments a)
{
    __global float *const m0 = (__global float *)(b0 + a.o0);
    const uint item = (uint)get_local_id(0), lane = item & 31u;
    const uint lanes = item - lane + 32u <= 40u ? 32u : 8u;
    const uint warp = lanes == 32u ? 0xffffffffu : 0xffu;
    const uint i0 = item % 10u, i1 = item / 10u % 4u, i2 = item / 40u;
    const uint v0 = i0;
    const uint v1 = i1;
    const uint v3 = v1 * 10u;
    const uint v4 = v3 + v0;
    const float v5 = m0[v4];
    const uint v6 = lane;
    const uint v7 = v6 + 10u;
    const float v8 = from_lane(v5, v7 & 31u, warp);
    const float v9 = from_lane(v8, lane ^ (1u & 31u), warp);
    const float v11 = from_lane(v9, lane ^ (17u & 31u), warp);
    const bool v12 = 0x0p+0f < v11;
    float v13 = v9;
    { const float o13 = from_lane(v13, lane ^ (1u & 31u), warp); v13 = (lane ^ 1u) >= lanes ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (2u & 31u), warp); v13 = (lane ^ 2u) >= lanes ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (4u & 31u), warp); v13 = (lane ^ 4u) >= lanes ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (8u & 31u), warp); v13 = (lane ^ 8u) >= lanes ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    { const float o13 = from_lane(v13, lane ^ (16u & 31u), warp); v13 = (lane ^ 16u) >= lanes ? v13 : v13 == o13 ? as_float(as_uint(v13) & as_uint(o13)) : ((v13 > o13) | (v13 != v13)) ? v13 : o13; }
    v13 = from_lane(v13, 0u & 31u, warp);
    const float v14 = v12 ? v13 : v8;
    m0[v4] = v14;
}
