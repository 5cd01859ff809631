/* The reference interpreter: what every opcode gives, corner by corner, and what it refuses. Since
 * other engines are judged by it, the expected values here are written out by hand. */

#include "unit.h"
#include <hal/ir_build.h>
#include <kit/interpret.h>
#include <kit/interpret_value.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t i32(int32_t value)
{
    return (uint32_t)value;
}

static uint64_t i64(int64_t value)
{
    return (uint64_t)value;
}

#define NAN32 UINT64_C(0x7fc00000)
#define INF32 UINT64_C(0x7f800000)

static hal_ir_kernel *read_text(const char *text)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse(text, strlen(text), &kernel) != HAL_OK) {
        fail_msg("%s\n%s", hal_status_message(), text);
    }
    return kernel;
}

/* The result of one operation, written as in text with its operands left out. */
static uint64_t result(const char *operation, const char *types, uint64_t a, uint64_t b,
                       uint64_t c)
{
    char text[512], type[3][8] = {"", "", ""};
    const int count = sscanf(types, "%7s %7s %7s", type[0], type[1], type[2]);
    const uint64_t inputs[3] = {a, b, c};
    uint64_t output = 0;
    int length = snprintf(text, sizeof text, "fragment f\n");
    for (int i = 0; i < count; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%%%d = input %s %d\n", i,
                           type[i], i);
    }
    snprintf(text + length, sizeof text - (size_t)length, "%%r = %s %%0%s%s\noutput 0, %%r\n",
             operation, count > 1 ? ", %1" : "", count > 2 ? ", %2" : "");
    hal_ir_kernel *fragment = read_text(text);
    assert_int_equal(kit_evaluate(fragment, inputs, &output), HAL_OK);
    hal_ir_kernel_destroy(fragment);
    return output;
}

typedef struct op_case {
    const char *operation, *types;
    uint64_t a, b, c, expected;
} op_case;

static void check_cases(const op_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const op_case *k = &cases[i];
        const uint64_t got = result(k->operation, k->types, k->a, k->b, k->c);
        if (got != k->expected) {
            fail_msg("%s (%s) of 0x%llx 0x%llx 0x%llx: 0x%llx, expected 0x%llx", k->operation,
                     k->types, (unsigned long long)k->a, (unsigned long long)k->b,
                     (unsigned long long)k->c, (unsigned long long)got,
                     (unsigned long long)k->expected);
        }
    }
}
#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof(cases)[0])

static void floats_compute_as_ieee_says(void **state)
{
    const op_case cases[] = {
        {"add f32", "f32 f32", f32(1), f32(0x1p-24f), 0, f32(1)},
        {"add f32", "f32 f32", f32(1), f32(0x1.8p-23f), 0, f32(1 + 0x1p-22f)},
        {"sub f64", "f64 f64", f64(1), f64(0x1p-53), 0, f64(1 - 0x1p-53)},
        {"mul f32", "f32 f32", f32(3), f32(-0.5f), 0, f32(-1.5f)},
        {"mul f32", "f32 f32", f32(0x1p-100f), f32(0x1p-45f), 0, f32(0x1p-145f)},
        {"div f32", "f32 f32", f32(1), f32(3), 0, 0x3eaaaaab},
        {"div f32", "f32 f32", f32(1), f32(-0.0f), 0, f32(-INFINITY)},
        {"div f64", "f64 f64", f64(1), f64(3), 0, 0x3fd5555555555555},
        {"rem f32", "f32 f32", f32(-7.5f), f32(2), 0, f32(-1.5f)},
        {"rem f64", "f64 f64", f64(7.5), f64(-2), 0, f64(1.5)},
        {"neg f32", "f32", NAN32, 0, 0, NAN32 | 0x80000000},
        {"neg f64", "f64", f64(0), 0, 0, f64(-0.0)},
        {"abs f32", "f32", NAN32 | 0x80000000, 0, 0, NAN32},
        {"abs f64", "f64", f64(-2), 0, 0, f64(2)},
        {"min f32", "f32 f32", f32(0), f32(-0.0f), 0, f32(-0.0f)},
        {"min f32", "f32 f32", f32(-0.0f), f32(0), 0, f32(-0.0f)},
        {"max f32", "f32 f32", f32(0), f32(-0.0f), 0, f32(0)},
        {"max f64", "f64 f64", f64(-0.0), f64(0), 0, f64(0)},
        {"min f32", "f32 f32", NAN32, f32(1), 0, NAN32},
        {"max f32", "f32 f32", f32(1), NAN32, 0, NAN32},
        {"max f64", "f64 f64", f64(-3), f64(2), 0, f64(2)},
        {"min f64", "f64 f64", f64(-3), f64(2), 0, f64(-3)},
        {"fma f32", "f32 f32 f32", f32(0x1.000002p0f), f32(0x1.000002p0f), f32(-0x1.000004p0f),
         f32(0x1p-46f)},
        {"fma f64", "f64 f64 f64", f64(3), f64(4), f64(5), f64(17)},
        {"sqrt f32", "f32", f32(2), 0, 0, 0x3fb504f3},
        {"sqrt f32", "f32", f32(-0.0f), 0, 0, f32(-0.0f)},
        {"sqrt f64", "f64", f64(2), 0, 0, 0x3ff6a09e667f3bcd},
        {"floor f32", "f32", f32(-1.5f), 0, 0, f32(-2)},
        {"trunc f32", "f32", f32(-1.5f), 0, 0, f32(-1)},
        {"rint f32", "f32", f32(2.5f), 0, 0, f32(2)},
        {"rint f64", "f64", f64(-0.4), 0, 0, f64(-0.0)},
        {"floor f64", "f64", f64(1.5), 0, 0, f64(1)},
        {"trunc f64", "f64", f64(1.5), 0, 0, f64(1)},
    };
    CHECK(cases);
}

static void integers_wrap_and_never_trap(void **state)
{
    const op_case cases[] = {
        {"add i32", "i32 i32", i32(INT32_MAX), 1, 0, i32(INT32_MIN)},
        {"sub u32", "u32 u32", 0, 1, 0, UINT32_MAX},
        {"mul i32", "i32 i32", i32(-3), i32(5), 0, i32(-15)},
        {"mul u64", "u64 u64", UINT64_MAX, 2, 0, UINT64_MAX - 1},
        {"add i64", "i64 i64", INT64_MAX, 1, 0, i64(INT64_MIN)},
        {"div i32", "i32 i32", i32(-7), 2, 0, i32(-3)},
        {"rem i32", "i32 i32", i32(-7), 2, 0, i32(-1)},
        {"div i32", "i32 i32", i32(5), 0, 0, 0},
        {"rem u32", "u32 u32", 5, 0, 0, 0},
        {"div i32", "i32 i32", i32(INT32_MIN), i32(-1), 0, i32(INT32_MIN)},
        {"rem i32", "i32 i32", i32(INT32_MIN), i32(-1), 0, 0},
        {"div i64", "i64 i64", i64(INT64_MIN), i64(-1), 0, i64(INT64_MIN)},
        {"rem i64", "i64 i64", i64(-9), i64(4), 0, i64(-1)},
        {"div u32", "u32 u32", UINT32_MAX, 2, 0, INT32_MAX},
        {"div u64", "u64 u64", UINT64_MAX, 2, 0, INT64_MAX},
        {"rem u64", "u64 u64", 17, 5, 0, 2},
        {"neg u32", "u32", 1, 0, 0, UINT32_MAX},
        {"neg i64", "i64", 5, 0, 0, i64(-5)},
        {"abs i32", "i32", i32(INT32_MIN), 0, 0, i32(INT32_MIN)},
        {"abs i32", "i32", i32(-4), 0, 0, 4},
        {"abs u32", "u32", UINT32_MAX, 0, 0, UINT32_MAX},
        {"abs i64", "i64", i64(-4), 0, 0, 4},
        {"min i32", "i32 i32", i32(-1), 1, 0, i32(-1)},
        {"min u32", "u32 u32", UINT32_MAX, 1, 0, 1},
        {"max i64", "i64 i64", i64(-1), 1, 0, 1},
        {"max u64", "u64 u64", UINT64_MAX, 1, 0, UINT64_MAX},
        {"mulhi i32", "i32 i32", i32(-1), 1, 0, i32(-1)},
        {"mulhi u32", "u32 u32", UINT32_MAX, UINT32_MAX, 0, UINT32_MAX - 1},
        {"mulhi i64", "i64 i64", i64(-1), i64(-1), 0, 0},
        {"mulhi i64", "i64 i64", i64(INT64_MIN), 2, 0, i64(-1)},
        {"mulhi u64", "u64 u64", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1},
        {"and u32", "u32 u32", 12, 10, 0, 8},
        {"or i64", "i64 i64", 12, 10, 0, 14},
        {"xor u64", "u64 u64", 12, 10, 0, 6},
        {"not u32", "u32", 0, 0, 0, UINT32_MAX},
        {"not i64", "i64", 0, 0, 0, UINT64_MAX},
        {"not bool", "bool", 0, 0, 0, 1},
        {"not bool", "bool", 1, 0, 0, 0},
        {"and bool", "bool bool", 1, 0, 0, 0},
        {"or bool", "bool bool", 1, 0, 0, 1},
        {"xor bool", "bool bool", 1, 1, 0, 0},
        {"shl u32", "u32 u32", 1, 33, 0, 2},
        {"shl i32", "i32 i32", 1, i32(-1), 0, i32(INT32_MIN)},
        {"shl u64", "u64 u64", 1, 65, 0, 2},
        {"shr i32", "i32 i32", i32(-8), 1, 0, i32(-4)},
        {"shr u32", "u32 u32", 0x80000000, 31, 0, 1},
        {"shr i64", "i64 i64", i64(-8), 65, 0, i64(-4)},
        {"shr u64", "u64 u64", UINT64_MAX, 63, 0, 1},
    };
    CHECK(cases);
}

static void comparisons_and_select(void **state)
{
    const op_case cases[] = {
        {"eq bool", "f32 f32", f32(0), f32(-0.0f), 0, 1},
        {"eq bool", "f32 f32", NAN32, NAN32, 0, 0},
        {"ne bool", "f32 f32", NAN32, NAN32, 0, 1},
        {"lt bool", "f32 f32", f32(-1), f32(1), 0, 1},
        {"lt bool", "f32 f32", f32(1), NAN32, 0, 0},
        {"le bool", "f64 f64", f64(1), f64(1), 0, 1},
        {"ne bool", "f64 f64", f64(1), f64(1), 0, 0},
        {"lt bool", "i32 i32", i32(-1), 0, 0, 1},
        {"lt bool", "u32 u32", UINT32_MAX, 0, 0, 0},
        {"le bool", "i64 i64", i64(-1), i64(-1), 0, 1},
        {"le bool", "u64 u64", UINT64_MAX, 1, 0, 0},
        {"eq bool", "bool bool", 1, 1, 0, 1},
        {"ne bool", "i32 i32", 1, 1, 0, 0},
        {"select f32", "bool f32 f32", 1, f32(2), f32(3), f32(2)},
        {"select u64", "bool u64 u64", 0, 2, UINT64_MAX, UINT64_MAX},
        {"select bool", "bool bool bool", 0, 1, 0, 0},
    };
    CHECK(cases);
}

static void conversions_round_once_and_saturate(void **state)
{
    const op_case cases[] = {
        {"cast i32", "f32", f32(-2.9f), 0, 0, i32(-2)},
        {"cast i32", "f32", f32(3e9f), 0, 0, INT32_MAX},
        {"cast i32", "f32", f32(-INFINITY), 0, 0, i32(INT32_MIN)},
        {"cast i32", "f32", NAN32, 0, 0, 0},
        {"cast u32", "f32", f32(-1), 0, 0, 0},
        {"cast u32", "f64", f64(4294967295.9), 0, 0, UINT32_MAX},
        {"cast i64", "f64", f64(-1e300), 0, 0, i64(INT64_MIN)},
        {"cast i64", "f32", NAN32, 0, 0, 0},
        {"cast u64", "f64", f64(0x1p63), 0, 0, UINT64_C(1) << 63},
        {"cast u64", "f32", INF32, 0, 0, UINT64_MAX},
        {"cast bool", "f32", NAN32, 0, 0, 1},
        {"cast bool", "f32", f32(-0.0f), 0, 0, 0},
        {"cast bool", "u64", UINT64_C(1) << 40, 0, 0, 1},
        {"cast f32", "i32", i32(-16777217), 0, 0, f32(-16777216)},
        {"cast f32", "u64", UINT64_MAX, 0, 0, f32(0x1p64f)},
        {"cast f32", "i64", i64(INT64_MIN), 0, 0, f32(-0x1p63f)},
        {"cast f64", "u64", UINT64_MAX, 0, 0, f64(0x1p64)},
        {"cast f64", "u32", UINT32_MAX, 0, 0, f64(4294967295.0)},
        {"cast f32", "f64", f64(1 + 0x1p-24 + 0x1p-50), 0, 0, f32(1 + 0x1p-23f)},
        {"cast f64", "f32", f32(0.1f), 0, 0, f64(0.1f)},
        {"cast f32", "bool", 1, 0, 0, f32(1)},
        {"cast i64", "i32", i32(-5), 0, 0, i64(-5)},
        {"cast i64", "u32", UINT32_MAX, 0, 0, UINT32_MAX},
        {"cast u32", "i64", i64(-5), 0, 0, UINT32_MAX - 4},
        {"cast u64", "i32", i32(-1), 0, 0, UINT64_MAX},
        {"bitcast u32", "f32", f32(1), 0, 0, 0x3f800000},
        {"bitcast f64", "u64", 0x3ff0000000000000, 0, 0, f64(1)},
        {"narrow f32 f16", "f32", f32(1 + 0x1p-11f), 0, 0, f32(1)},
        {"narrow f32 f16", "f32", f32(1 + 0x1.8p-10f), 0, 0, f32(1 + 0x1p-9f)},
        {"narrow f32 f16", "f32", f32(65519.996f), 0, 0, f32(65504)},
        {"narrow f32 f16", "f32", f32(65520), 0, 0, INF32},
        {"narrow f32 f16", "f32", f32(0x1p-25f), 0, 0, 0},
        {"narrow f32 f16", "f32", f32(-0x1.000002p-25f), 0, 0, f32(-0x1p-24f)},
        {"narrow f32 f16", "f32", f32(0x1.ff8p-15f), 0, 0, f32(0x1.ff8p-15f)},
        {"narrow f32 f16", "f32", f32(0x1.ffcp-15f), 0, 0, f32(0x1p-14f)},
        {"narrow f32 bf16", "f32", f32(1 + 0x1p-8f), 0, 0, f32(1)},
        {"narrow f32 bf16", "f32", f32(1 + 0x1.8p-7f), 0, 0, f32(1 + 0x1p-6f)},
        {"narrow f32 bf16", "f32", 0x7f7fffff, 0, 0, INF32},
        {"narrow f32 bf16", "f32", 0x7f800001, 0, 0, 0x7fc00000},
        {"narrow i32 i8", "i32", 0x1ff, 0, 0, i32(-1)},
        {"narrow u32 u16", "u32", 0x12345, 0, 0, 0x2345},
    };
    CHECK(cases);
}

static void halves_read_back_as_they_were(void **state)
{
    /* Every half that is no NaN, and every bfloat: its f32 narrows to itself. */
    static const char text[] = "kernel k\ngroup 256 1 1\nbinding h f16 read\nbinding b bf16 read\n"
                               "binding oh f16 write\nbinding ob bf16 write\n"
                               "%l = local_id u32 x\n%g = group_id u32 x\n"
                               "%s = constant u32 256\n%m = mul u32 %g, %s\n%i = add u32 %m, %l\n"
                               "%x = load f32 h[%i]\nstore oh[%i], %x\n"
                               "%y = load f32 b[%i]\nstore ob[%i], %y\n";
    hal_ir_kernel *kernel = read_text(text);
    uint16_t *in = malloc(65536 * 2), *halves = calloc(65536, 2), *bfloats = calloc(65536, 2);
    for (uint32_t i = 0; i < 65536; i++) {
        in[i] = (uint16_t)i;
    }
    const kit_span spans[4] = {{in, 131072}, {in, 131072}, {halves, 131072}, {bfloats, 131072}};
    kit_problem problem;
    const kit_dispatch d = {.kernel = kernel, .grid = {256, 1, 1}, .bindings = spans};
    assert_int_equal(kit_interpret(&d, &problem), HAL_OK);
    for (uint32_t i = 0; i < 65536; i++) {
        const int nan_half = (i & 0x7fff) > 0x7c00, nan_bfloat = (i & 0x7fff) > 0x7f80;
        assert_int_equal(halves[i], nan_half ? i | 0x200 : i);
        assert_int_equal(bfloats[i], nan_bfloat ? i | 0x40 : i);
    }
    free(in);
    free(halves);
    free(bfloats);
    hal_ir_kernel_destroy(kernel);
}

static void transcendental_functions_are_close(void **state)
{
    static const struct {
        const char *name;
        double x, expected;
    } cases[] = {
        {"exp", 1.5, 4.4816890703380648},     {"exp2", 1.5, 2.8284271247461901},
        {"expm1", 0.5, 0.64872127070012815},  {"log", 1.5, 0.40546510810816438},
        {"log2", 1.5, 0.58496250072115619},   {"log1p", 0.5, 0.40546510810816438},
        {"sin", 1.5, 0.99749498660405445},    {"cos", 1.5, 0.070737201667702909},
        {"tan", 1.5, 14.101419947171719},     {"atan", 1.5, 0.98279372324732907},
        {"tanh", 1.5, 0.90514825364486644},   {"erf", 1.5, 0.96610514647531073},
        {"rsqrt", 1.5, 0.81649658092772603},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char operation[32];
        snprintf(operation, sizeof operation, "%s f32", cases[i].name);
        const uint32_t low = (uint32_t)result(operation, "f32", f32((float)cases[i].x), 0, 0);
        float narrow;
        memcpy(&narrow, &low, sizeof narrow);
        assert_true(fabs(narrow / cases[i].expected - 1) < 1e-6);
        snprintf(operation, sizeof operation, "%s.fast f64", cases[i].name);
        const uint64_t bits = result(operation, "f64", f64(cases[i].x), 0, 0);
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        assert_true(fabs(wide / cases[i].expected - 1) < 1e-14);
    }
    assert_int_equal(result("pow f32", "f32 f32", f32(3), f32(4), 0), f32(81));
    assert_in_range(result("pow f64", "f64 f64", f64(2), f64(0.5), 0), 0x3ff6a09e667f3bcb,
                    0x3ff6a09e667f3bcf);
}

/* Runs a kernel of one group on up to four bindings. */
static hal_status run(const char *text, const kit_span *spans, const void *scalars,
                      uint32_t width, kit_problem *problem)
{
    hal_ir_kernel *kernel = read_text(text);
    const kit_dispatch d = {.kernel = kernel,
                            .grid = {1, 1, 1},
                            .subgroup_width = width,
                            .bindings = spans,
                            .scalars = scalars};
    const hal_status status = kit_interpret(&d, problem);
    hal_ir_kernel_destroy(kernel);
    return status;
}

static void run_well(const char *text, const kit_span *spans, const void *scalars, uint32_t width)
{
    kit_problem problem;
    if (run(text, spans, scalars, width, &problem) != HAL_OK) {
        fail_msg("%s", problem.text);
    }
}

static void memory_of_every_type_widens_and_narrows(void **state)
{
    static const struct {
        const char *type, *value;
        uint8_t in[8], out[8]; /* of an increment by one */
        size_t bytes;
    } cases[] = {
        {"i8", "i32", {0xff}, {0x00}, 1},
        {"u8", "u32", {0xff}, {0x00}, 1},
        {"i16", "i32", {0xfe, 0xff}, {0xff, 0xff}, 2},
        {"u16", "u32", {0xff, 0xff}, {0x00, 0x00}, 2},
        {"i32", "i32", {0xff, 0xff, 0xff, 0xff}, {0}, 4},
        {"u32", "u32", {0xff, 0, 0, 0}, {0, 1}, 4},
        {"i64", "i64", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0}, 8},
        {"u64", "u64", {0, 0, 0, 0, 1, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0}, 8},
        {"f16", "f32", {0x00, 0x3c}, {0x00, 0x40}, 2},
        {"bf16", "f32", {0x80, 0x3f}, {0x00, 0x40}, 2},
        {"f32", "f32", {0, 0, 0x80, 0x3f}, {0, 0, 0x00, 0x40}, 4},
        {"f64", "f64", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {0, 0, 0, 0, 0, 0, 0x00, 0x40}, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        uint8_t in[8], out[8] = {0};
        snprintf(text, sizeof text,
                 "kernel k\nbinding x %s read\nbinding y %s write\nshared s %s 4\n"
                 "%%0 = constant u32 0\n%%1 = constant %s %s\n%%2 = load %s x[%%0]\n"
                 "store s[%%0 + 3], %%2\n%%3 = load %s s[%%0 + 3]\n%%4 = add %s %%3, %%1\n"
                 "store y[%%0], %%4\n",
                 cases[i].type, cases[i].type, cases[i].type, cases[i].value,
                 cases[i].value[0] == 'f' ? "1.0" : "1", cases[i].value, cases[i].value,
                 cases[i].value);
        memcpy(in, cases[i].in, 8);
        run_well(text, (kit_span[]){{in, cases[i].bytes}, {out, cases[i].bytes}}, NULL, 0);
        assert_memory_equal(out, cases[i].out, 8);
    }
    uint8_t flags[2] = {7, 0}, out[2] = {9, 9};
    run_well("kernel k\nbinding x bool read\nbinding y bool write\n%0 = constant u32 0\n"
             "%1 = load boolx2 x[%0]\nstore y[%0], %1\n",
             (kit_span[]){{flags, 2}, {out, 2}}, NULL, 0);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 0);
}

static void vectors_guards_and_offsets(void **state)
{
    uint32_t x[16], y[16] = {0};
    for (uint32_t i = 0; i < 16; i++) {
        x[i] = i;
    }
    run_well("kernel k\nbinding x u32 read\nbinding y u32 write\n"
             "%i = constant i32 4\n%yes = constant bool true\n%no = constant bool false\n"
             "%far = constant i64 9000000000\n"
             "%v = load u32x8 x[%i + 4] if %yes\n%e = extract u32 %v, 7\n%f = extract u32 %v, 0\n"
             "%p = pack u32x2 %e, %f\nstore y[%i - 4], %p\n"
             "%q = load u32x4 x[%i]\n%r = load u32x4 x[%far] if %no\n%w = pack u32x8 %q, %r\n"
             "store y[%i + 4], %w\nstore y[%far], %w if %no\n",
             (kit_span[]){{x, sizeof x}, {y, sizeof y}}, NULL, 0);
    const uint32_t expected[16] = {15, 8, 0, 0, 0, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0};
    assert_memory_equal(y, expected, sizeof y);
}

static void ids_and_scalars(void **state)
{
    const struct {
        uint32_t n;
        double a;
    } scalars = {7, 2.5};
    static const char text[] =
        "kernel k\ngroup 2 3 2\nbinding y u32 write\nscalar n u32\nscalar a f64\n"
        "%lx = local_id u32 x\n%ly = local_id u32 y\n%lz = local_id u32 z\n"
        "%gx = group_id u32 x\n%gy = group_id u32 y\n%cx = group_count u32 x\n"
        "%cy = group_count u32 y\n%lane = lane_id u32\n%n = scalar u32 n\n%a = scalar f64 a\n"
        "%c2 = constant u32 2\n%c3 = constant u32 3\n%c12 = constant u32 12\n"
        "%g0 = mul u32 %gy, %cx\n%g = add u32 %g0, %gx\n"
        "%i0 = mul u32 %lz, %c3\n%i1 = add u32 %i0, %ly\n%i2 = mul u32 %i1, %c2\n"
        "%i3 = add u32 %i2, %lx\n%i4 = mul u32 %g, %c12\n%i = add u32 %i3, %i4\n"
        "%b = cast u32 %a\n%s0 = add u32 %lane, %n\n%s1 = add u32 %s0, %b\n"
        "%s2 = mul u32 %s1, %cy\nstore y[%i], %s2\n";
    hal_ir_kernel *kernel = read_text(text);
    uint32_t y[48] = {0};
    kit_problem problem;
    const kit_span span = {y, sizeof y};
    const kit_dispatch d = {.kernel = kernel,
                            .grid = {2, 2, 1},
                            .subgroup_width = 8,
                            .bindings = &span,
                            .scalars = &scalars};
    assert_int_equal(kit_interpret(&d, &problem), HAL_OK);
    for (uint32_t i = 0; i < 48; i++) {
        assert_int_equal(y[i], (i % 12 % 8 + 7 + 2) * 2);
    }
    hal_ir_kernel_destroy(kernel);
}

static void loops_branches_and_variables(void **state)
{
    /* Collatz steps of 1 + the work-item's number, counted with a bounded loop. */
    uint32_t y[16] = {0};
    run_well("kernel k\ngroup 16 1 1\nbinding y u32 write\n"
             "%l = local_id u32 x\n%0 = constant u32 0\n%1 = constant u32 1\n%2 = constant u32 2\n"
             "%3 = constant u32 3\n%100 = constant u32 100\n"
             "%first = add u32 %l, %1\n%v = var u32 %first\n%count = var u32 %0\n"
             "%i = for u32 %0, %100, %1\n"
             "%x = get u32 %v\n%going = ne bool %x, %1\n"
             "if %going\n"
             "%odd = and u32 %x, %1\n%is_odd = ne bool %odd, %0\n"
             "if %is_odd\n%t = mul u32 %x, %3\n%t1 = add u32 %t, %1\nset %v, %t1\n"
             "else\n%h = div u32 %x, %2\nset %v, %h\nend\n"
             "%c = get u32 %count\n%c1 = add u32 %c, %1\nset %count, %c1\n"
             "end\nend\n"
             "%r = get u32 %count\nstore y[%l], %r\n",
             (kit_span[]){{y, sizeof y}}, NULL, 0);
    const uint32_t steps[16] = {0, 1, 7, 2, 5, 8, 16, 3, 19, 6, 14, 9, 9, 17, 17, 4};
    assert_memory_equal(y, steps, sizeof y);

    int32_t z[4] = {0};
    run_well("kernel k\nbinding z i32 read_write\n%a = constant i32 -3\n%b = constant i32 4\n"
             "%s = constant i32 3\n%o = constant i32 1\n"
             "%i = for i32 %a, %b, %s\n%old = load i32 z[%o]\n%new = add i32 %old, %i\n"
             "store z[%o], %new\nend\n%j = for i32 %b, %a, %s\nstore z[%o], %j\nend\n",
             (kit_span[]){{z, sizeof z}}, NULL, 0);
    assert_int_equal(z[1], -3 + 0 + 3);
}

static void barriers_hold_a_group_together(void **state)
{
    /* A reversal through shared memory in each of three rounds of a uniform loop. */
    uint32_t y[64];
    for (uint32_t i = 0; i < 64; i++) {
        y[i] = i * i;
    }
    run_well("kernel k\ngroup 64 1 1\nbinding y u32 read_write\nshared s u32 64\n"
             "%l = local_id u32 x\n%0 = constant u32 0\n%1 = constant u32 1\n%3 = constant u32 3\n"
             "%63 = constant u32 63\n%m = sub u32 %63, %l\n"
             "%r = for u32 %0, %3, %1\n%x = load u32 y[%l]\nstore s[%l], %x\nbarrier\n"
             "%z = load u32 s[%m]\nstore y[%l], %z\nbarrier\nend\n",
             (kit_span[]){{y, sizeof y}}, NULL, 0);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(y[i], (63 - i) * (63 - i));
    }
}

static uint64_t stored_bits(hal_type type, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return kit_to_storage(type, bits);
}

/* The tiles of a lane are numbers that say where they are: words of two halves, or one float. */
static void matrices_are_multiplied(void **state)
{
    static const char text[] =
        "kernel k\ngroup 32 1 1\nbinding a u32 read\nbinding b u32 read\nbinding c f32 read\n"
        "binding y f32 write\n%%l = local_id u32 x\n%%4 = constant u32 4\n%%2 = constant u32 2\n"
        "%%i = mul u32 %%l, %%4\n%%j = mul u32 %%l, %%2\n%%u = load u32x4 a[%%i]\n"
        "%%v = load u32x2 b[%%j]\n%%w = load f32x4 c[%%i]\n"
        "%%r = matrix_multiply %s f32x4 %%u, %%v, %%w\nstore y[%%i], %%r\n";
    static const struct {
        const char *name;
        hal_type type;
    } types[3] = {{"f16", HAL_TYPE_F16}, {"bf16", HAL_TYPE_BF16}, {"f32", HAL_TYPE_F32}};
    for (int n = 0; n < 3; n++) {
        const uint32_t each = n == 2 ? 1 : 2;
        uint32_t a[128] = {0}, b[64] = {0};
        float c[128], y[128];
        char kernel[1024];
        snprintf(kernel, sizeof kernel, text, types[n].name);
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t g = lane / 4, t = lane % 4;
            for (uint32_t i = 0; i < 4; i++) {
                for (uint32_t e = 0; e < each; e++) { /* A is row + 1, but for k = 3: 2 */
                    const uint32_t k = (t + i / 2 * 4) * each + e;
                    const float value = k == 3 ? 2.0f : (float)(g + i % 2 * 8 + 1);
                    a[4 * lane + i] |= (uint32_t)stored_bits(types[n].type, value) << 16 * e;
                }
                c[4 * lane + i] = 0.5f;
            }
            for (uint32_t i = 0; i < 2; i++) {
                for (uint32_t e = 0; e < each; e++) { /* B is column - 3, but for k = 3: 4 */
                    const uint32_t k = (t + i * 4) * each + e;
                    const float value = k == 3 ? 4.0f : (float)g - 3.0f;
                    b[2 * lane + i] |= (uint32_t)stored_bits(types[n].type, value) << 16 * e;
                }
            }
        }
        run_well(kernel,
                 (kit_span[]){{a, sizeof a}, {b, sizeof b}, {c, sizeof c}, {y, sizeof y}}, NULL,
                 32);
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t lane = i / 4, row = lane / 4 + i % 4 / 2 * 8,
                           column = lane % 4 * 2 + i % 2;
            const float expected =
                (float)(8 * each - 1) * (float)(row + 1) * ((float)column - 3.0f) + 8.5f;
            assert_true(y[i] == expected);
        }
    }
}

static void subgroups_shuffle_and_reduce(void **state)
{
    enum { ITEMS = 44, WIDTH = 16 }; /* the last subgroup has 12 lanes */
    uint32_t y[4 * ITEMS];
    float sums[ITEMS];
    run_well("kernel k\ngroup 44 1 1\nbinding y u32 write\nbinding f f32 write\n"
             "%l = local_id u32 x\n%44 = constant i32 44\n%1 = constant u32 1\n"
             "%n = lane_id u32\n%next = add u32 %n, %1\n"
             "%a = shuffle u32 %l, %next\n%b = shuffle_xor u32 %l, 2\n"
             "%c = subgroup_reduce max u32 %l\n%d = subgroup_reduce min u32 %l\n"
             "store y[%l], %a\nstore y[%l + 44], %b\nstore y[%l + 88], %c\nstore y[%l + 132], %d\n"
             "%x = cast f32 %l\n%t = constant f32 0.1\n%z = mul f32 %x, %t\n"
             "%s = subgroup_reduce add f32 %z\nstore f[%l], %s\n",
             (kit_span[]){{y, sizeof y}, {sums, sizeof sums}}, NULL, WIDTH);
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t first = i / WIDTH * WIDTH;
        const uint32_t last = first + WIDTH < ITEMS ? first + WIDTH : ITEMS;
        const uint32_t next = first + (i % WIDTH + 1) % WIDTH;
        if (next < last) {
            assert_int_equal(y[i], next);
        }
        assert_int_equal(y[ITEMS + i], i ^ 2);
        assert_int_equal(y[2 * ITEMS + i], last - 1);
        assert_int_equal(y[3 * ITEMS + i], first);
        float tree[WIDTH];
        uint32_t count = last - first;
        for (uint32_t k = 0; k < count; k++) {
            tree[k] = (float)(first + k) * 0.1f;
        }
        while (count > 1) { /* neighbours in pairs */
            for (uint32_t k = 0; k < count / 2; k++) {
                tree[k] = tree[2 * k] + tree[2 * k + 1];
            }
            tree[count / 2] = tree[count - 1];
            count = (count + 1) / 2;
        }
        assert_memory_equal(&sums[i], &tree[0], sizeof sums[i]);
    }
}

static void atomics_of_every_kind(void **state)
{
    static const struct {
        const char *kind;
        uint32_t start, end;
    } cases[] = {{"add", 100, 100 + 28}, {"min", 100, 0},  {"max", 3, 7},
                 {"and", 0xff, 0},       {"or", 8, 8 | 7}, {"xor", 8, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        uint32_t x[2] = {0, cases[i].start};
        snprintf(text, sizeof text,
                 "kernel k\ngroup 8 1 1\nbinding x u32 read_write\n%%0 = constant u32 0\n"
                 "%%l = local_id u32 x\n%%o = atomic %s u32 x[%%0 + 1], %%l\n",
                 cases[i].kind);
        run_well(text, (kit_span[]){{x, sizeof x}}, NULL, 0);
        assert_int_equal(x[1], cases[i].end);
    }
    int64_t x[2] = {5, -1};
    run_well("kernel k\nbinding x i64 read_write\n%0 = constant u32 0\n%n = constant i64 -9\n"
             "%5 = constant i64 5\n%no = constant bool false\n"
             "%a = atomic exchange i64 x[%0], %n\n"
             "%b = atomic compare_exchange i64 x[%0 + 1], %a, %5\n"
             "%c = atomic compare_exchange i64 x[%0 + 1], %a, %b\n"
             "%d = atomic min i64 x[%0 + 1], %n if %no\n%e = atomic add i64 x[%0], %d\n",
             (kit_span[]){{x, sizeof x}}, NULL, 0);
    assert_int_equal(x[0], -9);
    assert_int_equal(x[1], 5);
}

static void asynchronous_copies_arrive_when_waited_for(void **state)
{
    uint16_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint32_t y[6] = {0};
    run_well("kernel k\nbinding x u16 read\nbinding y u32 write\nshared s u16 16\n"
             "%0 = constant u32 0\n%4 = constant u32 4\n%8 = constant u32 8\n%9 = constant u32 99\n"
             "%no = constant bool false\n"
             "async_copy 4 s[%0], x[%0]\nasync_commit\nasync_copy 4 s[%4], x[%4]\nasync_commit\n"
             "async_copy 2 s[%8], x[%9] if %no\nasync_wait 1\n"
             "%a = load u32 s[%0 + 3]\nstore y[%0], %a\n"
             "%b = load u32 s[%0 + 4]\nstore y[%0 + 1], %b\nasync_wait 0\n"
             "%c = load u32 s[%0 + 7]\nstore y[%0 + 2], %c\n"
             "%d = load u32 s[%0 + 8]\nstore y[%0 + 3], %d\nasync_commit\nasync_wait 0\n"
             "%e = load u32 s[%0 + 8]\nstore y[%0 + 4], %e\n",
             (kit_span[]){{x, sizeof x}, {y, sizeof y}}, NULL, 0);
    const uint32_t expected[6] = {4, 0xa5a5, 8, 0xa5a5, 0, 0};
    assert_memory_equal(y, expected, sizeof y);
}

static void faults_are_found_and_named(void **state)
{
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"%i = constant u32 4\n%x = load u32 x[%i]\n",
         "kernel k, record 1, group 0 0 0, work-item 0 0 0: x[4 + 0], width 1, is outside of its"},
        {"%i = constant i32 -1\n%x = load u32 x[%i]\n", "x[-1 + 0]"},
        {"%i = constant u32 0\n%x = load u32 x[%i - 1]\n", "x[0 - 1]"},
        {"%i = constant u64 18446744073709551615\n%x = load u32 x[%i + 1]\n", "is outside"},
        {"%i = constant i64 9223372036854775807\n%x = load u32 x[%i + 1]\n", "is outside"},
        {"%i = constant u32 2\n%x = load u32x4 x[%i]\n", "width 4, is outside"},
        {"%i = constant u32 1\n%x = load u32x2 x[%i]\n", "x[1] is not aligned to the width 2"},
        {"%i = constant u32 0\n%x = load u32x8 x[%i]\n", "width 8, is outside"},
        {"%i = constant u32 8\nstore s[%i], %i\n", "s[8 + 0], width 1, is outside of its 8"},
        {"%i = constant u32 8\n%x = atomic add u32 s[%i], %i\n", "s[8 + 0]"},
        {"%i = constant u32 8\nasync_copy 1 s[%i], x[%i]\n", "s[8 + 0]"},
        {"%i = constant u32 7\nasync_copy 1 s[%i], x[%i]\n", "x[7 + 0]"},
        {"%z = scalar u32 n\n%i = constant u32 1\n%f = for u32 %i, %i, %z\nend\n",
         "the step is 0"},
        {"%z = constant u32 4294967290\n%e = constant u32 4294967295\n%i = constant u32 10\n"
         "%f = for u32 %z, %e, %i\nend\n",
         "beyond its type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        uint32_t x[4] = {0};
        const uint32_t n = 0;
        kit_problem problem;
        snprintf(text, sizeof text,
                 "kernel k\nbinding x u32 read\nshared s u32 8\nscalar n u32\n%s", cases[i].body);
        assert_int_equal(run(text, (kit_span[]){{x, sizeof x}}, &n, 0, &problem),
                         HAL_ERROR_INVALID_ARGUMENT);
        if (strstr(problem.text, cases[i].words) == NULL) {
            fail_msg("`%s` lacks `%s`", problem.text, cases[i].words);
        }
    }
}

static void work_items_that_part_are_found(void **state)
{
    /* The verifier refuses this; an engine that is handed it all the same has to say so. */
    hal_ir_kernel *kernel = read_text("kernel k\ngroup 4 1 1\n%l = local_id u32 x\n"
                                      "%2 = constant u32 2\n%c = lt bool %l, %2\nif %c\n"
                                      "async_commit\nend\n");
    ((hal_ir_record *)(uintptr_t)kernel->records)[4].opcode = HAL_IR_BARRIER;
    kit_problem problem;
    const kit_dispatch d = {.kernel = kernel, .grid = {1, 1, 1}};
    assert_int_equal(kit_interpret(&d, &problem), HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(problem.text, "work-item 2 0 0: stands here while another"));
    hal_ir_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_compute_as_ieee_says),
        cmocka_unit_test(integers_wrap_and_never_trap),
        cmocka_unit_test(comparisons_and_select),
        cmocka_unit_test(conversions_round_once_and_saturate),
        cmocka_unit_test(halves_read_back_as_they_were),
        cmocka_unit_test(transcendental_functions_are_close),
        cmocka_unit_test(memory_of_every_type_widens_and_narrows),
        cmocka_unit_test(vectors_guards_and_offsets),
        cmocka_unit_test(ids_and_scalars),
        cmocka_unit_test(loops_branches_and_variables),
        cmocka_unit_test(barriers_hold_a_group_together),
        cmocka_unit_test(subgroups_shuffle_and_reduce),
        cmocka_unit_test(matrices_are_multiplied),
        cmocka_unit_test(atomics_of_every_kind),
        cmocka_unit_test(asynchronous_copies_arrive_when_waited_for),
        cmocka_unit_test(faults_are_found_and_named),
        cmocka_unit_test(work_items_that_part_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
