/* The shading language of the stand-in: what kernels compute, and that faults of kernels are found.
 * A stand-in that let faults pass would make every other test of tests/metal worthless. */
#include "msl/msl.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n"

enum { ITEMS = 256 };

static float out[1024], in[1024];
static char error[256], messages[2000];

static msl_library *compile_with(const char *source, int fast_math)
{
    const msl_options options = {.language = 300, .fast_math = fast_math};
    msl_text log = {0};
    msl_library *library = msl_compile(source, &options, &log);
    snprintf(messages, sizeof messages, "%s", log.bytes ? log.bytes : "");
    free(log.bytes);
    return library;
}

/* Runs kernel k of the source with out, in as buffers 0 and 1, in groups of so many work-items. */
static int run_in_groups(const char *source, uint32_t groups, uint32_t size, int fast_math)
{
    msl_library *library = compile_with(source, fast_math);
    uint64_t address = 0;
    if (!library) {
        fail_msg("%s", messages);
    }
    msl_grid grid = {.groups = {groups, 1, 1}, .group_size = {size, 1, 1}};
    grid.buffers[0] = (uint64_t)(uintptr_t)out;
    grid.buffers[1] = (uint64_t)(uintptr_t)in;
    memset(out, 0, sizeof out);
    const int status = msl_execute(&library->functions[0], &grid, NULL, NULL, error, &address);
    msl_library_free(library);
    return status;
}

static int run(const char *source)
{
    return run_in_groups(source, 2, ITEMS, 0);
}

static void barriers_order_threadgroup_memory(void **state)
{
    (void)state;
    assert_int_equal(run(HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    uint3 l [[thread_position_in_threadgroup]],\n"
                              "    uint3 g [[threadgroup_position_in_grid]])\n{\n"
                              "    threadgroup float t[256];\n"
                              "    t[l.x] = float(l.x);\n"
                              "    for (uint n = 128; n > 0; n /= 2) {\n"
                              "        threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                              "        if (l.x < n) { t[l.x] += t[l.x + n]; }\n    }\n"
                              "    if (l.x == 0) { o[g.x] = t[0] + float(g.x); }\n}\n"), 0);
    assert_float_equal(out[0], 32640, 0);
    assert_float_equal(out[1], 32641, 0);
}

static void a_missing_barrier_shows(void **state)
{
    (void)state;
    assert_int_equal(run(HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    uint l [[thread_index_in_threadgroup]])\n{\n"
                              "    threadgroup float t[256];\n"
                              "    t[l] = 1.0f;\n"
                              "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                              "    o[l] = t[255 - l];\n"
                              "    t[l] = 2.0f;\n}\n"), 0);
    int wrong = 0;
    for (int i = 0; i < ITEMS; i++) {
        wrong += out[i] != 1.0f;
    }
    assert_true(wrong > 0);
}

static void threadgroup_memory_begins_as_garbage(void **state)
{
    (void)state;
    assert_int_equal(run(HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    uint l [[thread_index_in_threadgroup]])\n{\n"
                              "    threadgroup float t[256];\n    o[l] = t[l];\n}\n"), 0);
    assert_true(out[5] != 0.0f);
}

static void simdgroups_exchange_values(void **state)
{
    (void)state;
    assert_int_equal(run(HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    uint lane [[thread_index_in_simdgroup]],\n"
                              "    uint s [[simdgroup_index_in_threadgroup]],\n"
                              "    uint i [[thread_position_in_grid]])\n{\n"
                              "    const float v = float(lane);\n"
                              "    float r = simd_shuffle(v, ushort((lane + 5) & 31));\n"
                              "    r += 100.0f * simd_shuffle_xor(v, ushort(1));\n"
                              "    r += 10000.0f * simd_sum(1.0f) + float(s);\n"
                              "    o[i] = r;\n}\n"), 0);
    for (int i = 0; i < 2 * ITEMS; i++) {
        const int lane = i % 32;
        const float wanted = (float)((lane + 5) % 32 + 100 * (lane ^ 1) + 320000 + i % ITEMS / 32);
        assert_float_equal(out[i], wanted, 0);
    }
}

static void matrices_multiply(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        in[i] = (float)(i % 7 - 3);
        in[64 + i] = (float)(i % 5);
    }
    const char *source = HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    const device float *x [[buffer(1)]])\n{\n"
                              "    simdgroup_float8x8 a, b, c(0.0f);\n"
                              "    simdgroup_load(a, x, 8);\n    simdgroup_load(b, x + 64, 8);\n"
                              "    simdgroup_multiply_accumulate(c, a, b, c);\n"
                              "    simdgroup_store(c, o, 8);\n}\n";
    assert_int_equal(run_in_groups(source, 1, 32, 0), 0);
    for (int i = 0; i < 64; i++) {
        float sum = 0;
        for (int k = 0; k < 8; k++) {
            sum += in[i / 8 * 8 + k] * in[64 + 8 * k + i % 8];
        }
        assert_float_equal(out[i], sum, 0);
    }
}

static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(run(HEAD "kernel void k(device float *o [[buffer(0)]])\n{\n"
                              "    o[0] = float(half(1.00048828125f));\n"
                              "    o[1] = float(half(1.00146484375f));\n"
                              "    o[2] = float(half(70000.0f));\n"
                              "    o[3] = float(half2(1.5f, 2.5f).y * half(2));\n"
                              "    o[4] = float4(char4(1, -2, 3, 4)).y;\n}\n"), 0);
    const float wanted[] = {1.0f, 1.001953125f, (float)INFINITY, 5.0f, -2.0f};
    assert_memory_equal(out, wanted, sizeof wanted);
}

/* exp is off by up to half of what Metal allows, and by more with fast math; a division is exact
 * only without it. */
static void inexact_functions_are_inexact(void **state)
{
    const char *source = HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    const device float *x [[buffer(1)]],\n"
                              "    uint i [[thread_position_in_grid]])\n{\n"
                              "    o[i] = exp(x[i]);\n    o[i + 256] = x[i] / 3.0f;\n}\n";
    int different[2] = {0}, divided[2] = {0};
    (void)state;
    for (int i = 0; i < ITEMS; i++) {
        in[i] = (float)i / 77.0f;
    }
    for (int fast = 0; fast < 2; fast++) {
        assert_int_equal(run_in_groups(source, 1, ITEMS, fast), 0);
        for (int i = 0; i < ITEMS; i++) {
            different[fast] += out[i] != expf(in[i]);
            divided[fast] += out[i + ITEMS] != in[i] / 3.0f;
            assert_float_equal(out[i] / expf(in[i]), 1, fast ? 3e-6 : 4e-7);
        }
    }
    assert_true(different[0] > 50 && divided[0] == 0 && divided[1] > 20);
}

static void products_and_sums_fuse_unless_told(void **state)
{
    static const char body[] = "kernel void k(device float *o [[buffer(0)]],\n"
                               "    const device float *x [[buffer(1)]])\n{\n"
                               "    o[0] = x[0] * x[0] - x[1];\n}\n";
    char source[1000];
    (void)state;
    in[0] = 1.00012207f;
    in[1] = in[0] * in[0];
    snprintf(source, sizeof source, "%s%s", HEAD, body);
    assert_int_equal(run_in_groups(source, 1, 1, 0), 0);
    assert_true(out[0] == 0.0f);
    snprintf(source, sizeof source, "#include <metal_stdlib>\nusing namespace metal;\n%s", body);
    assert_int_equal(run_in_groups(source, 1, 1, 0), 0);
    assert_true(out[0] != 0.0f);
}

static void denormals_are_flushed_on_demand(void **state)
{
    const char *source = HEAD "kernel void k(device float *o [[buffer(0)]],\n"
                              "    const device float *x [[buffer(1)]])\n{\n"
                              "    o[0] = x[0] * 0.5f;\n    o[1] = x[1];\n}\n";
    (void)state;
    in[0] = 0x1p-126f;
    in[1] = 0x1p-130f;
    assert_int_equal(run_in_groups(source, 1, 1, 0), 0);
    assert_true(out[0] == 0x1p-127f && out[1] == 0x1p-130f);
    setenv("METAL_STANDIN_FLUSH", "1", 1);
    assert_int_equal(run_in_groups(source, 1, 1, 0), 0);
    unsetenv("METAL_STANDIN_FLUSH");
    assert_true(out[0] == 0.0f && out[1] == 0x1p-130f);
}

static void expect_fault(const char *body, const char *words)
{
    char source[2000];
    snprintf(source, sizeof source, "%skernel void k(device float *o [[buffer(0)]],\n"
                                    "    uint i [[thread_position_in_threadgroup]])\n{\n%s}\n",
             HEAD, body);
    assert_int_equal(run(source), -1);
    assert_non_null(strstr(error, words));
}

static void faults_of_kernels_are_found(void **state)
{
    (void)state;
    expect_fault("    o[i + 0x10000000u] = 1.0f;\n", "an access of memory");
    expect_fault("    if (i & 1) { threadgroup_barrier(mem_flags::mem_none); }\n    o[i] = 1.0f;\n",
                 "not reached by all");
    expect_fault("    if (i & 1) { o[i] = simd_sum(1.0f); }\n"
                 "    else { threadgroup_barrier(mem_flags::mem_none); }\n", "by some lanes only");
    expect_fault("    threadgroup float t[16];\n    for (uint n = 0; n < 9000; n++) {\n"
                 "        t[n] = float(n);\n    }\n    o[i] = t[i];\n", "an access of memory");
    /* The executor still works. */
    halves_round_to_nearest_even(NULL);
}

static void expect_rejected(const char *body, const char *words)
{
    char source[2000];
    snprintf(source, sizeof source, "%s%s", HEAD, body);
    assert_null(compile_with(source, 0));
    assert_non_null(strstr(messages, words));
}

static void wrong_texts_are_rejected(void **state)
{
    (void)state;
    expect_rejected("kernel void k(device float *o [[buffer(0)]])\n"
                    "{ threadgroup float *p = o; *p = 1; }\n", "__local");
    expect_rejected("kernel void k(const device float *o [[buffer(0)]]) { o[0] = 1; }\n", "const");
    expect_rejected("kernel void k(device float *o [[buffer(0)]]) { double d = 1; o[0] = d; }\n",
                    "double");
    expect_rejected("kernel void k(device long *o [[buffer(0)]]) { o[0] = simd_sum(o[1]); }\n",
                    "64-bit");
    expect_rejected("kernel void k(device float *o [[buffer(99)]]) { o[0] = 1; }\n", "index");
    expect_rejected("kernel void k(uint i [[thread_position_on_moon]]) {}\n", "attribute");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_order_threadgroup_memory),
        cmocka_unit_test(a_missing_barrier_shows),
        cmocka_unit_test(threadgroup_memory_begins_as_garbage),
        cmocka_unit_test(simdgroups_exchange_values),
        cmocka_unit_test(matrices_multiply),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(inexact_functions_are_inexact),
        cmocka_unit_test(products_and_sums_fuse_unless_told),
        cmocka_unit_test(denormals_are_flushed_on_demand),
        cmocka_unit_test(faults_of_kernels_are_found),
        cmocka_unit_test(wrong_texts_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
