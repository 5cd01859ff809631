/* A kernel as C: a function that runs work-items of a group. The kit writes the statements in this
 * file's dialect; names of types and functions that C lacks are macros before them. */
#include "example_c.h"

#include <kit/c_text.h>

static const kit_c_dialect dialect = {
    .value_types = {[HAL_TYPE_BOOL] = "bool",
                    [HAL_TYPE_I32] = "int",
                    [HAL_TYPE_U32] = "uint",
                    [HAL_TYPE_I64] = "long",
                    [HAL_TYPE_U64] = "ulong",
                    [HAL_TYPE_F32] = "float",
                    [HAL_TYPE_F64] = "double"},
    .memory_types = {[HAL_TYPE_BOOL] = "uchar",
                     [HAL_TYPE_I8] = "schar",
                     [HAL_TYPE_U8] = "uchar",
                     [HAL_TYPE_I16] = "short",
                     [HAL_TYPE_U16] = "ushort",
                     [HAL_TYPE_I32] = "int",
                     [HAL_TYPE_U32] = "uint",
                     [HAL_TYPE_I64] = "long",
                     [HAL_TYPE_U64] = "ulong",
                     [HAL_TYPE_F32] = "float",
                     [HAL_TYPE_F64] = "double"},
    .global = "",
    .shared = "",
    .bit_cast = {"as_", "("},
    .vector = {"make_", "("},
    .convert = "convert_",
    .elements = {"[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]"},
    /* The work-items of a group run on one thread, which has the array for itself. */
    .shared_array = {"static _Thread_local ", " __attribute__((aligned(16)))"},
    .scalar = "s@i",
    .local_id = "l@i",
    .group_id = "group[@i]",
    .group_count = "grid[@i]",
    .barrier = {"barrier(fibers);", "barrier(fibers);"},
    .fma = "fma(@a, @b, @c)",
    .multiply_high = "mul_hi(@a, @b)",
    .remainder = "fmod(@a, @b)",
    .atomic = {"atomic_@o((@T *)(@P), @c)", "atomic_@o((@T *)(@P), @c)"},
    .compare_exchange = {"atomic_exchange_equal((@T *)(@P), @d, @c)",
                         "atomic_exchange_equal((@T *)(@P), @d, @c)"},
    .atomic_names = {[HAL_IR_ATOMIC_ADD] = "add",
                     [HAL_IR_ATOMIC_MIN] = "min",
                     [HAL_IR_ATOMIC_MAX] = "max",
                     [HAL_IR_ATOMIC_AND] = "and",
                     [HAL_IR_ATOMIC_OR] = "or",
                     [HAL_IR_ATOMIC_XOR] = "xor",
                     [HAL_IR_ATOMIC_EXCHANGE] = "exchange",
                     [HAL_IR_ATOMIC_COMPARE_EXCHANGE] = "exchange_equal"},
};

static const char types[] =
    "typedef _Bool bool;\n"
    "typedef signed char schar;\ntypedef unsigned char uchar;\ntypedef unsigned short ushort;\n"
    "typedef unsigned int uint;\ntypedef unsigned long ulong;\n"
    "#define true ((bool)1)\n#define false ((bool)0)\n"
    "#define BITS(from, to) static inline to as_##to##_##from(from x) \\\n"
    "    { to y; __builtin_memcpy(&y, &x, sizeof y); return y; }\n"
    "BITS(float, int) BITS(float, uint) BITS(int, int) BITS(int, uint) BITS(uint, int)\n"
    "BITS(uint, uint) BITS(int, float) BITS(uint, float) BITS(float, float)\n"
    "BITS(double, long) BITS(double, ulong) BITS(long, long) BITS(long, ulong)\n"
    "BITS(ulong, long) BITS(ulong, ulong) BITS(long, double) BITS(ulong, double)\n"
    "BITS(double, double)\n"
    "#define AS32(to, x) _Generic((x), float: as_##to##_float, int: as_##to##_int, \\\n"
    "    uint: as_##to##_uint)(x)\n"
    "#define AS64(to, x) _Generic((x), double: as_##to##_double, long: as_##to##_long, \\\n"
    "    ulong: as_##to##_ulong)(x)\n"
    "#define as_int(x) AS32(int, x)\n#define as_uint(x) AS32(uint, x)\n"
    "#define as_float(x) AS32(float, x)\n#define as_long(x) AS64(long, x)\n"
    "#define as_ulong(x) AS64(ulong, x)\n#define as_double(x) AS64(double, x)\n";

/* Vectors of gcc, in memory with the alignment of their elements. */
static const char vectors[] =
    "#define VECTOR(type, width) typedef type type##width \\\n"
    "    __attribute__((vector_size(sizeof(type) * width), aligned(sizeof(type))));\n"
    "#define VECTORS(type) VECTOR(type, 2) VECTOR(type, 4) VECTOR(type, 8) \\\n"
    "    static inline type##8 make_##type##8(type##4 a, type##4 b) \\\n"
    "    { return (type##8){a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]}; }\n"
    "VECTORS(schar) VECTORS(uchar) VECTORS(short) VECTORS(ushort) VECTORS(int) VECTORS(uint)\n"
    "VECTORS(long) VECTORS(ulong) VECTORS(float) VECTORS(double)\n";

static const char functions[] =
    "#define BY_FLOAT(name, x) _Generic((x), float: __builtin_##name##f, \\\n"
    "    double: __builtin_##name)\n"
    "#define sqrt(x) BY_FLOAT(sqrt, x)(x)\n#define floor(x) BY_FLOAT(floor, x)(x)\n"
    "#define trunc(x) BY_FLOAT(trunc, x)(x)\n#define rint(x) BY_FLOAT(rint, x)(x)\n"
    "#define fmod(x, y) BY_FLOAT(fmod, x)(x, y)\n#define fma(x, y, z) BY_FLOAT(fma, x)(x, y, z)\n"
    "#define popcount(x) _Generic((x), int: __builtin_popcount((uint)(x)), \\\n"
    "    uint: __builtin_popcount((uint)(x)), long: (long)__builtin_popcountl((ulong)(x)), \\\n"
    "    ulong: (ulong)__builtin_popcountl((ulong)(x)))\n"
    "#define mul_hi(x, y) _Generic((x), int: (int)((long)(x) * (long)(y) >> 32), \\\n"
    "    uint: (uint)((ulong)(x) * (ulong)(y) >> 32), \\\n"
    "    long: (long)((__int128)(x) * (__int128)(y) >> 64), \\\n"
    "    ulong: (ulong)((unsigned __int128)(ulong)(x) * (unsigned __int128)(ulong)(y) >> 64))\n"
    "#define atomic_add(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)\n"
    "#define atomic_and(p, x) __atomic_fetch_and(p, x, __ATOMIC_RELAXED)\n"
    "#define atomic_or(p, x) __atomic_fetch_or(p, x, __ATOMIC_RELAXED)\n"
    "#define atomic_xor(p, x) __atomic_fetch_xor(p, x, __ATOMIC_RELAXED)\n"
    "#define atomic_exchange(p, x) __atomic_exchange_n(p, x, __ATOMIC_RELAXED)\n"
    "#define atomic_exchange_equal(p, e, x) ({ __typeof__(*(p)) old_ = (e); \\\n"
    "    __atomic_compare_exchange_n(p, &old_, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); old_; "
    "})\n"
    "#define ATOMIC_WHERE(p, x, relation) ({ __typeof__(p) p_ = (p); __typeof__(*p_) x_ = (x); \\\n"
    "    __typeof__(*p_) old_ = __atomic_load_n(p_, __ATOMIC_RELAXED); \\\n"
    "    while (x_ relation old_ && !__atomic_compare_exchange_n(p_, &old_, x_, 0, \\\n"
    "        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} old_; })\n"
    "#define atomic_min(p, x) ATOMIC_WHERE(p, x, <)\n"
    "#define atomic_max(p, x) ATOMIC_WHERE(p, x, >)\n";

#define PARAMETERS                                                                       \
    "void *const *bindings, const uchar *scalars, const uint *grid, const uint *group, " \
    "%s, void (*barrier)(void *), void *fibers"

/* make_float4(a, b, c, d) and convert_int4(x), of each type. */
static void write_makers(kit_text *text)
{
    static const char *const names[] = {"schar", "uchar", "short", "ushort", "int",
                                        "uint",  "long",  "ulong", "float",  "double"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (uint32_t width = 2; width <= 4; width *= 2) {
            kit_text_add(text,
                         "#define make_%s%u(...) ((%s%u){__VA_ARGS__})\n"
                         "#define convert_%s%u(x) __builtin_convertvector(x, %s%u)\n",
                         names[i], width, names[i], width, names[i], width, names[i], width);
        }
    }
}

/* The names that the statements use: m0, ..., s0, .... */
static void write_places(const hal_ir_kernel *ir, kit_text *text)
{
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const char *type = dialect.memory_types[ir->memories[i].type];
        kit_text_add(text, "    %s *const m%u = (%s *)bindings[%u];\n", type, i, type, i);
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const char *type = dialect.memory_types[ir->scalars[i].type];
        kit_text_add(text, "    const %s s%u = *(const %s *)(scalars + %u);\n", type, i, type,
                     ir->scalars[i].offset);
    }
}

hal_status example_lower(const hal_ir_kernel *ir, kit_text *text)
{
    kit_text_add(text, "%s%s%s", types, vectors, functions);
    write_makers(text);
    kit_text_add(text, "static inline void work_item(" PARAMETERS ")\n{\n",
                 "const uint l0, const uint l1, const uint l2");
    write_places(ir, text);
    const hal_status status = kit_c_lower(kit_host(), &dialect, ir, text);
    kit_text_add(text, "}\nvoid hal_run(" PARAMETERS ")\n{\n", "uint first, uint end");
    kit_text_add(text,
                 "    for (uint i = first; i < end; i++) {\n"
                 "        work_item(bindings, scalars, grid, group, i %% %uu, i / %uu %% %uu, "
                 "i / %uu, barrier, fibers);\n    }\n}\n",
                 ir->group_size[0], ir->group_size[0], ir->group_size[1],
                 ir->group_size[0] * ir->group_size[1]);
    return status == HAL_OK && text->failed
               ? example_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory for its text",
                              ir->names + ir->name)
               : status;
}
