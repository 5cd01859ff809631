#define PURE __attribute__((overloadable, const))
size_t PURE get_local_id(uint);
size_t PURE get_group_id(uint);
size_t PURE get_num_groups(uint);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
#define FLOATS(type) type PURE sqrt(type); type PURE floor(type); \
    type PURE trunc(type); type PURE rint(type); \
    type PURE fmod(type, type); type PURE fma(type, type, type);
FLOATS(float)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
FLOATS(double)
#endif
int PURE mul_hi(int, int);
uint PURE mul_hi(uint, uint);
long PURE mul_hi(long, long);
ulong PURE mul_hi(ulong, ulong);
#define PLACED(name, type, place) \
    type __attribute__((overloadable)) name(volatile place type *, type);
#define TYPED(name, type) PLACED(name, type, __global) PLACED(name, type, __local)
#define NARROW(name) TYPED(name, int) TYPED(name, uint)
#define WIDE(name) TYPED(name, long) TYPED(name, ulong)
NARROW(atomic_add) NARROW(atomic_min) NARROW(atomic_max) NARROW(atomic_and)
NARROW(atomic_or) NARROW(atomic_xor) NARROW(atomic_xchg)
WIDE(atom_add) WIDE(atom_min) WIDE(atom_max) WIDE(atom_and)
WIDE(atom_or) WIDE(atom_xor) WIDE(atom_xchg)
#undef PLACED
#define PLACED(name, type, place) \
    type __attribute__((overloadable)) name(volatile place type *, type, type);
NARROW(atomic_cmpxchg) WIDE(atom_cmpxchg)
#define CONVERT(to, from) to PURE convert_##to(from);
#define BOTH(n, narrow, wide) \
    CONVERT(wide##n, narrow##n) CONVERT(narrow##n, wide##n)
#define WIDTH(n) BOTH(n, char, int) BOTH(n, uchar, uint) BOTH(n, short, int) \
    BOTH(n, ushort, uint)
WIDTH(2) WIDTH(4) WIDTH(8)
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
