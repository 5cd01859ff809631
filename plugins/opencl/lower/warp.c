/* Subgroups, matrix units and asynchronous copies of NVIDIA's GPUs, whose driver takes PTX in
 * OpenCL C and has no extension of OpenCL for them. Warps are filled in the order of work-items,
 * and the IR spreads matrices over lanes as mma.sync does. */
#include "lower/warp.h"

#include "card.h"

static const char shuffles[] =
    "#define TYPED __attribute__((overloadable))\n"
    "uint TYPED from_lane(uint value, uint lane, uint warp)\n{\n"
    "    uint result;\n"
    "    asm volatile(\"shfl.sync.idx.b32 %0, %1, %2, 31, %3;\"\n"
    "                 : \"=r\"(result) : \"r\"(value), \"r\"(lane), \"r\"(warp));\n"
    "    return result;\n}\n"
    "int TYPED from_lane(int value, uint lane, uint warp)\n{\n"
    "    return as_int(from_lane(as_uint(value), lane, warp));\n}\n"
    "float TYPED from_lane(float value, uint lane, uint warp)\n{\n"
    "    return as_float(from_lane(as_uint(value), lane, warp));\n}\n"
    "bool TYPED from_lane(bool value, uint lane, uint warp)\n{\n"
    "    return from_lane((uint)value, lane, warp) != 0u;\n}\n"
    "ulong TYPED from_lane(ulong value, uint lane, uint warp)\n{\n"
    "    const uint low = from_lane((uint)value, lane, warp);\n"
    "    return (ulong)from_lane((uint)(value >> 32), lane, warp) << 32 | low;\n}\n"
    "long TYPED from_lane(long value, uint lane, uint warp)\n{\n"
    "    return as_long(from_lane(as_ulong(value), lane, warp));\n}\n"
    "#ifdef cl_khr_fp64\n"
    "double TYPED from_lane(double value, uint lane, uint warp)\n{\n"
    "    return as_double(from_lane(as_ulong(value), lane, warp));\n}\n"
    "#endif\n";

static bool has_opcode(const hal_ir_kernel *ir, uint32_t opcode, hal_type aux)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].opcode == opcode && ir->records[i].aux == aux) {
            return true;
        }
    }
    return false;
}

static void write_matrix(hal_type type, const char *shape, kit_text *text)
{
    kit_text_add(
        text,
        "float4 multiply_matrices_%u(uint4 a, uint2 b, float4 c)\n{\n"
        "    float x, y, z, w;\n"
        "    asm volatile(\"mma.sync.aligned.%s {%%0, %%1, %%2, %%3}, \"\n"
        "                 \"{%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%10, %%11, %%12, %%13};\"\n"
        "                 : \"=f\"(x), \"=f\"(y), \"=f\"(z), \"=f\"(w)\n"
        "                 : \"r\"(a.s0), \"r\"(a.s1), \"r\"(a.s2), \"r\"(a.s3),\n"
        "                   \"r\"(b.s0), \"r\"(b.s1),\n"
        "                   \"f\"(c.s0), \"f\"(c.s1), \"f\"(c.s2), \"f\"(c.s3));\n"
        "    return (float4)(x, y, z, w);\n}\n",
        (unsigned)type, shape);
}

void opencl_lower_warps(const hal_ir_kernel *ir, kit_c_dialect *words, kit_text *text)
{
    static const char *const shapes[HAL_TYPE_COUNT] = {
        [HAL_TYPE_F16] = "m16n8k16.row.col.f32.f16.f16.f32",
        [HAL_TYPE_BF16] = "m16n8k16.row.col.f32.bf16.bf16.f32",
        [HAL_TYPE_F32] = "m16n8k8.row.col.f32.tf32.tf32.f32",
    };
    words->local_id = "i@i";
    words->lane_id = "lane";
    words->lane_count = "lanes";
    words->shuffle = "from_lane(@a, @b & 31u, warp)";
    words->shuffle_xor = "from_lane(@a, lane ^ (@ku & 31u), warp)";
    words->matrix_multiply = "multiply_matrices_@i(@a, @b, @c)";
    kit_text_add(text, "%s", shuffles);
    for (hal_type type = 0; type < HAL_TYPE_COUNT; type++) {
        if (shapes[type] && has_opcode(ir, HAL_IR_MATRIX_MULTIPLY, type)) {
            write_matrix(type, shapes[type], text);
        }
    }
}

/* A copy of one or two bytes is a load and a store. `memory` keeps accesses to shared memory on
 * their side of a copy and of a wait. */
void opencl_lower_copies(kit_c_dialect *words, kit_text *text)
{
    static const char *const small[] = {"uchar", "ushort"};
    for (uint32_t i = 0; i < 2; i++) {
        kit_text_add(text,
                     "void copy_async%u(__local void *to, const __global void *from, bool guard)\n"
                     "{\n    *(__local %s *)to = guard ? *(const __global %s *)from : 0;\n}\n",
                     1u << i, small[i], small[i]);
    }
    for (uint32_t bytes = 4; bytes <= 16; bytes *= 2) {
        kit_text_add(text,
                     "void copy_async%u(__local void *to, const __global void *from, bool guard)\n"
                     "{\n    asm volatile(\"cp.async.%s.shared.global [%%0], [%%1], %u, %%2;\"\n"
                     "                 : : \"r\"((uint)(size_t)to), \"l\"((ulong)from),\n"
                     "                     \"r\"(guard ? %uu : 0u) : \"memory\");\n}\n",
                     bytes, bytes == 16 ? "cg" : "ca", bytes, bytes);
    }
    words->async_copy = "copy_async";
    words->async_commit = "asm volatile(\"cp.async.commit_group;\" : : : \"memory\");";
    words->async_wait = "asm volatile(\"cp.async.wait_group @k;\" : : : \"memory\");";
}

void opencl_lower_lanes(const hal_ir_kernel *ir, kit_text *text)
{
    const uint32_t items = hal_ir_group_items(ir), last = items % OPENCL_WARP_WIDTH;
    kit_text_add(text, "    const uint item = (uint)get_local_id(0), lane = item & 31u;\n");
    if (last == 0) {
        kit_text_add(text, "    const uint lanes = 32u, warp = 0xffffffffu;\n");
    } else {
        kit_text_add(text,
                     "    const uint lanes = item - lane + 32u <= %uu ? 32u : %uu;\n"
                     "    const uint warp = lanes == 32u ? 0xffffffffu : 0x%xu;\n",
                     items, last, (1u << last) - 1u);
    }
}
