#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
inline uint multiply_high(uint a, uint b) { return mulhi(a, b); }
inline int multiply_high(int a, int b) { return mulhi(a, b); }
inline ulong multiply_high(ulong a, ulong b)
{
    const ulong a0 = a & 0xfffffffful, a1 = a >> 32;
    const ulong b0 = b & 0xfffffffful, b1 = b >> 32;
    const ulong middle = a1 * b0 + (a0 * b0 >> 32);
    const ulong low = a0 * b1 + (middle & 0xfffffffful);
    return a1 * b1 + (middle >> 32) + (low >> 32);
}
inline long multiply_high(long a, long b)
{
    const ulong high = multiply_high(ulong(a), ulong(b));
    return long(high - (a < 0 ? ulong(b) : 0ul) - (b < 0 ? ulong(a) : 0ul));
}
inline float remainder_of(float x, float y)
{
    const uint sign = as_type<uint>(x) & 0x80000000u;
    uint a = as_type<uint>(x) & 0x7fffffffu, b = as_type<uint>(y) & 0x7fffffffu;
    if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) {
        return as_type<float>(0x7fc00000u);
    }
    if (a < b) {
        return x;
    }
    int i = int(a >> 23), j = int(b >> 23);
    a = i > 0 ? (a & 0x7fffffu) | 0x800000u : a << (clz(a) - 8u);
    i = i > 0 ? i : 9 - int(clz(as_type<uint>(x) & 0x7fffffffu));
    j = j > 0 ? j : 9 - int(clz(b));
    b = b >= 0x800000u ? (b & 0x7fffffu) | 0x800000u : b << (clz(b) - 8u);
    a = a >= b ? a - b : a;
    for (; i - j >= 8; i -= 8) {
        a = (a << 8) % b;
    }
    a = (a << uint(i - j)) % b;
    if (a == 0u) {
        return as_type<float>(sign);
    }
    const int shift = int(clz(a)) - 8;
    j -= shift;
    a <<= uint(shift);
    const uint bits = j > 0 ? a - 0x800000u + (uint(j) << 23) : a >> uint(1 - j);
    return as_type<float>(sign | bits);
}
kernel void hal_numbers(
    device float *m0 [[buffer(0)]],
    device int *m1 [[buffer(1)]],
    device ulong *m2 [[buffer(2)]],
    uint3 l [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 n [[threadgroups_per_grid]])
{
    const float v7 = m0[0];
    const float v8 = v7 == as_type<float>(0xff800000) ? as_type<float>(as_type<uint>(v7) | as_type<uint>(as_type<float>(0xff800000))) : ((v7 < as_type<float>(0xff800000)) | (v7 != v7)) ? v7 : as_type<float>(0xff800000);
    const float v9 = v8 == as_type<float>(0x7fc00000) ? as_type<float>(as_type<uint>(v8) & as_type<uint>(as_type<float>(0x7fc00000))) : ((v8 > as_type<float>(0x7fc00000)) | (v8 != v8)) ? v8 : as_type<float>(0x7fc00000);
    const float v10 = as_type<float>(as_type<uint>(v9) ^ (uint)1 << 31);
    const float v11 = as_type<float>(as_type<uint>(v10) & ~((uint)1 << 31));
    const float v12 = fma(v11, v7, (-0x1p-1f));
    const float v13 = remainder_of(v12, v7);
    const float v14 = as_type<float>(((as_type<uint>(v13) & 0x7fffffffu) > 0x7f800000u ? as_type<uint>(v13) >> 16 | 0x40u : (as_type<uint>(v13) + 0x7fffu + (as_type<uint>(v13) >> 16 & 1u)) >> 16) << 16);
    const int v15 = v14 >= 0x1p31f ? 0x7fffffff : v14 <= -0x1p31f ? -0x7fffffff - 1 : (int)(((v14 > -0x1p31f) & (v14 < 0x1p31f)) ? v14 : 0);
    const int v16 = (-7) == 0 ? 0 : (-7) == -1 ? (int)(0 - (uint)v15) : v15 / ((((-7) == 0) | ((-7) == -1)) ? 1 : (-7));
    const int v17 = ((v15 == 0) | (v15 == -1)) ? 0 : v16 % (((v15 == 0) | (v15 == -1)) ? 1 : v15);
    const int v18 = (int)((uint)v17 << (v15 & 31));
    const int v19 = v18 >> ((-0x7fffffff - 1) & 31);
    const int v20 = multiply_high(v19, v15);
    const int v21 = v20 < 0 ? (int)(0 - (uint)v20) : v20;
    const int v22 = v21 < v15 ? v21 : v15;
    m1[0] = v22;
    const uint v24 = as_type<uint>(v14);
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
