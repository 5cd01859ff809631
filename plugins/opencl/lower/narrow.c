/* Conversions between floats and the narrow floats of memory, as functions in front of a kernel. */
#include "lower/narrow.h"

#include "quirks.h"

#include <kit/c_text.h>

static bool has_memory(const hal_ir_kernel *ir, hal_type type)
{
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        if (ir->memories[i].type == type) {
            return true;
        }
    }
    return false;
}

static bool narrows_to(const hal_ir_kernel *ir, hal_type type)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_NARROW && ir->records[i].aux == (uint32_t)type) {
            return true;
        }
    }
    return false;
}

/* A function for vectors, which applies that of one element to each. */
static void write_vector(kit_text *text, const char *name, const char *from, const char *to,
                         uint32_t width)
{
    kit_text_add(text, "%s%u %s%u(%s%u x)\n{\n    return (%s%u)(", to, width, name, width, from,
                 width, to, width);
    for (uint32_t i = 0; i < width; i++) {
        kit_text_add(text, "%s%s(x.s%u)", i > 0 ? ", " : "", name, i);
    }
    kit_text_add(text, ");\n}\n");
}

/* The words that call the functions for halves. */
static void use_halves(kit_text *text, kit_c_dialect *words)
{
    words->load_f16 = "from_half@N(*(@S ushort@N *)(@P))";
    words->store_f16 = "*(@S ushort@N *)(@P) = to_half@N(@X)";
    words->narrow_f16 = "from_half(to_half(@a))";
    for (uint32_t width = 2; width <= 8; width *= 2) {
        write_vector(text, "from_half", "ushort", "float", width);
        write_vector(text, "to_half", "float", "ushort", width);
    }
}

/* Without branches. */
static void write_halves(kit_text *text)
{
    kit_text_add(
        text, "float from_half(ushort half_bits)\n{\n"
              "    const uint bits = half_bits, sign = (bits & 0x8000u) << 16;\n"
              "    const uint rest = (bits & 0x7fffu) << 13;\n"
              "    const uint finite = as_uint(as_float(rest) * 0x1p112f);\n"
              "    return as_float(sign | (rest >= 0x0f800000u ? 0x7f800000u | rest : finite));\n"
              "}\n"
              "ushort to_half(float value)\n{\n"
              "    const uint bits = as_uint(value), sign = bits >> 16 & 0x8000u;\n"
              "    const uint rest = bits & 0x7fffffffu;\n"
              "    const uint small = as_uint(as_float(rest) + 0.5f) - 0x3f000000u;\n"
              "    const uint normal = (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13;\n"
              "    const uint large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
              "    const uint below = rest < 0x38800000u ? small : normal;\n"
              "    return (ushort)(sign | (rest >= 0x477ff000u ? large : below));\n}\n");
}

/* NVIDIA's vload_half and vstore_half of vectors take every element by itself, and there is no
 * function for BF16. */
static void write_ptx_halves(kit_text *text)
{
    kit_text_add(text, "float from_half(ushort half_bits)\n{\n"
                       "    float value;\n"
                       "    asm(\"cvt.f32.f16 %%0, %%1;\" : \"=f\"(value) : \"h\"(half_bits));\n"
                       "    return value;\n}\n"
                       "ushort to_half(float value)\n{\n"
                       "    ushort half_bits;\n"
                       "    asm(\"cvt.rn.f16.f32 %%0, %%1;\" : \"=h\"(half_bits) : \"f\"(value));\n"
                       "    return half_bits;\n}\n");
}

static void write_ptx_bfloats(kit_text *text, kit_c_dialect *words)
{
    kit_text_add(text, "ushort to_bfloat(float value)\n{\n"
                       "    ushort bits;\n"
                       "    asm(\"cvt.rn.bf16.f32 %%0, %%1;\" : \"=h\"(bits) : \"f\"(value));\n"
                       "    return bits;\n}\n");
    for (uint32_t width = 2; width <= 8; width *= 2) {
        write_vector(text, "to_bfloat", "float", "ushort", width);
    }
    words->store_bf16 = "*(@S ushort@N *)(@P) = to_bfloat@N(@X)";
    words->narrow_bf16 = "@f((uint)to_bfloat(@a) << 16)";
}

/* The device's conversions, which go through memory. */
static void write_narrowing(kit_text *text)
{
    kit_text_add(text, "float narrow_half(float value)\n{\n"
                       "    ushort bits;\n"
                       "    vstore_half_rte(value, 0, (half *)&bits);\n"
                       "    return vload_half(0, (const half *)&bits);\n}\n");
}

void opencl_lower_narrow(const opencl_card *card, const hal_ir_kernel *ir, kit_c_dialect *words,
                         kit_text *text)
{
    const bool narrows = narrows_to(ir, HAL_TYPE_F16);
    const bool ptx = (card->quirks & OPENCL_QUIRK_WARPS) != 0;
    if ((card->quirks & OPENCL_QUIRK_SLOW_HALF || ptx) &&
        (narrows || has_memory(ir, HAL_TYPE_F16))) {
        if (ptx) {
            write_ptx_halves(text);
        } else {
            write_halves(text);
        }
        use_halves(text, words);
    } else if (narrows) {
        write_narrowing(text);
    }
    /* The generation that has matrix units of BF16 also rounds to it. */
    if (ptx && card->info.matrix_types & HAL_TYPE_BIT(HAL_TYPE_BF16) &&
        (narrows_to(ir, HAL_TYPE_BF16) || has_memory(ir, HAL_TYPE_BF16))) {
        write_ptx_bfloats(text, words);
    }
}
