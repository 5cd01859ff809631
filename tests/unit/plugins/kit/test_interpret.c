/* The reference interpreter: evaluation of fragments, subgroups that are not full, asynchronous
 * copies, and the faults that it finds. test_conformance_table runs the cases of hal-conformance
 * through it, which cover every opcode and type. */

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
static uint64_t result(const char *operation, const char *types, uint64_t a, uint64_t b, uint64_t c)
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

TEST(fragments_are_evaluated)
{
    const op_case cases[] = {
        {"sub f32", "f32 f32", f32(1), f32(-2), 0, f32(3)},
        {"mul f64", "f64 f64", f64(3), f64(-0.5), 0, f64(-1.5)},
        {"fma f32", "f32 f32 f32", f32(0x1.000002p0f), f32(0x1.000002p0f), f32(-0x1.000004p0f),
         f32(0x1p-46f)},
        {"neg f32", "f32", NAN32, 0, 0, NAN32 | 0x80000000},
        {"min f32", "f32 f32", f32(0), f32(-0.0f), 0, f32(-0.0f)},
        {"div i32", "i32 i32", (uint32_t)INT32_MIN, UINT32_MAX, 0, (uint32_t)INT32_MIN},
        {"mulhi i64", "i64 i64", (uint64_t)INT64_MIN, 2, 0, UINT64_MAX},
        {"cast u32", "f64", f64(4294967295.9), 0, 0, UINT32_MAX},
        {"cast u64", "f32", INF32, 0, 0, UINT64_MAX},
        {"cast i64", "f64", f64(-1e300), 0, 0, (uint64_t)INT64_MIN},
        {"bitcast f64", "u64", 0x3ff0000000000000, 0, 0, f64(1)},
        {"narrow f32 f16", "f32", f32(65520), 0, 0, INF32},
        {"narrow i32 i8", "i32", 0x1ff, 0, 0, UINT32_MAX},
        {"select u64", "bool u64 u64", 0, 2, UINT64_MAX, UINT64_MAX},
        {"pow f32", "f32 f32", f32(3), f32(4), 0, f32(81)},
    };
    check_cases(cases, sizeof cases / sizeof cases[0]);
}

/* Runs a kernel of one group on up to four bindings. */
static hal_status run(const char *text, const kit_span *spans, const void *scalars, uint32_t width,
                      kit_problem *problem)
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

TEST(subgroups_shuffle_and_reduce)
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

TEST(asynchronous_copies_arrive_when_waited_for)
{
    uint16_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint32_t y[3] = {0};
    run_well("kernel k\nbinding x u16 read\nbinding y u32 write\nshared s u16 16\n"
             "%0 = constant u32 0\n%4 = constant u32 4\n%8 = constant u32 8\n%9 = constant u32 99\n"
             "%no = constant bool false\n"
             "async_copy 4 s[%0], x[%0]\nasync_commit\nasync_copy 4 s[%4], x[%4]\nasync_commit\n"
             "async_copy 2 s[%8], x[%9] if %no\nasync_wait 1\n"
             "%a = load u32 s[%0 + 3]\nstore y[%0], %a\nasync_wait 0\n"
             "%c = load u32 s[%0 + 7]\nstore y[%0 + 1], %c\nasync_commit\nasync_wait 0\n"
             "%e = load u32 s[%0 + 8]\nstore y[%0 + 2], %e\n",
             (kit_span[]){{x, sizeof x}, {y, sizeof y}}, NULL, 0);
    const uint32_t expected[3] = {4, 8, 0};
    assert_memory_equal(y, expected, sizeof y);
}

/* Of this work-item's newest set, of one that is not committed, and of another work-item. */
TEST(accesses_to_elements_that_are_being_copied_are_found)
{
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"%a = load u32 s[%4 + 3]\n", "s[7], width 1: a copy to it is in flight"},
        {"%a = load u32x4 s[%8 - 4]\n", "s[4], width 4: "},
        {"store s[%4], %4\n", "s[4], width 1: "},
        {"async_wait 0\n%a = atomic add u32 s[%8 + 1], %4\n", "s[9], width 1: "},
        {"async_wait 0\n%i = add u32 %l, %12\n%j = xor u32 %i, %1\nasync_copy 1 s[%i], x[%l]\n"
         "store s[%j], %l\n",
         "work-item 1 0 0: s[12], width 1: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        uint32_t x[8] = {0};
        kit_problem problem;
        snprintf(text, sizeof text,
                 "kernel k\ngroup 2 1 1\nbinding x u32 read\nshared s u32 16\n"
                 "%%l = local_id u32 x\n%%0 = constant u32 0\n%%1 = constant u32 1\n"
                 "%%4 = constant u32 4\n%%8 = constant u32 8\n%%12 = constant u32 12\n"
                 "async_copy 4 s[%%0], x[%%0]\nasync_commit\n"
                 "async_copy 4 s[%%4], x[%%4]\nasync_commit\n"
                 "async_copy 2 s[%%8], x[%%0]\nasync_wait 1\n%s",
                 cases[i].body);
        assert_int_equal(run(text, (kit_span[]){{x, sizeof x}}, NULL, 0, &problem),
                         HAL_ERROR_INVALID_ARGUMENT);
        if (!strstr(problem.text, cases[i].words)) {
            fail_msg("`%s` lacks `%s`", problem.text, cases[i].words);
        }
    }
}

TEST(faults_are_found_and_named)
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
        {"%z = scalar u32 n\n%i = constant u32 1\n%f = for u32 %i, %i, %z\nend\n", "the step is 0"},
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
        if (!strstr(problem.text, cases[i].words)) {
            fail_msg("`%s` lacks `%s`", problem.text, cases[i].words);
        }
    }
}

TEST(work_items_that_part_are_found)
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

UNIT_MAIN(NULL, NULL)
