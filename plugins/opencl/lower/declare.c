/* Declarations of the functions that kernels call, for drivers whose header of all functions takes
 * most of the compile time. */
#include "lower/declare.h"

void opencl_lower_declarations(kit_text *text)
{
    kit_text_add(text,
                 "#define PURE __attribute__((overloadable, const))\n"
                 "size_t PURE get_local_id(uint);\n"
                 "size_t PURE get_group_id(uint);\n"
                 "size_t PURE get_num_groups(uint);\n"
                 "void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);\n"
                 "#define FLOATS(type) type PURE sqrt(type); type PURE floor(type); \\\n"
                 "    type PURE trunc(type); type PURE rint(type); \\\n"
                 "    type PURE fmod(type, type); type PURE fma(type, type, type);\n"
                 "FLOATS(float)\n"
                 "#ifdef cl_khr_fp64\n"
                 "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                 "FLOATS(double)\n"
                 "#endif\n"
                 "int PURE mul_hi(int, int);\n"
                 "uint PURE mul_hi(uint, uint);\n"
                 "long PURE mul_hi(long, long);\n"
                 "ulong PURE mul_hi(ulong, ulong);\n");
    kit_text_add(
        text, "#define PLACED(name, type, place) \\\n"
              "    type __attribute__((overloadable)) name(volatile place type *, type);\n"
              "#define TYPED(name, type) PLACED(name, type, __global) PLACED(name, type, __local)\n"
              "#define NARROW(name) TYPED(name, int) TYPED(name, uint)\n"
              "#define WIDE(name) TYPED(name, long) TYPED(name, ulong)\n"
              "NARROW(atomic_add) NARROW(atomic_min) NARROW(atomic_max) NARROW(atomic_and)\n"
              "NARROW(atomic_or) NARROW(atomic_xor) NARROW(atomic_xchg)\n"
              "WIDE(atom_add) WIDE(atom_min) WIDE(atom_max) WIDE(atom_and)\n"
              "WIDE(atom_or) WIDE(atom_xor) WIDE(atom_xchg)\n"
              "#undef PLACED\n"
              "#define PLACED(name, type, place) \\\n"
              "    type __attribute__((overloadable)) name(volatile place type *, type, type);\n"
              "NARROW(atomic_cmpxchg) WIDE(atom_cmpxchg)\n");
    kit_text_add(text,
                 "#define CONVERT(to, from) to PURE convert_##to(from);\n"
                 "#define BOTH(n, narrow, wide) \\\n"
                 "    CONVERT(wide##n, narrow##n) CONVERT(narrow##n, wide##n)\n"
                 "#define WIDTH(n) BOTH(n, char, int) BOTH(n, uchar, uint) BOTH(n, short, int) \\\n"
                 "    BOTH(n, ushort, uint)\n"
                 "WIDTH(2) WIDTH(4) WIDTH(8)\n");
}
