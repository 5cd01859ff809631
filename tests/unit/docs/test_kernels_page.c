/* docs/kernels.md: its code compiles, its kernels do what it says of them, and the messages that it
 * lists are those that the library gives. */

#include "ir_fixture.h"
#include <kit/interpret.h>
#include <math.h>
#include <stdio.h>

#include "kernels_page.h"

/* Runs a kernel and frees it. */
static void run(hal_ir_kernel *kernel, uint32_t groups, const kit_span *spans,
                const void *scalars)
{
    kit_problem problem;
    const kit_dispatch d = {
        .kernel = kernel, .grid = {groups, 1, 1}, .bindings = spans, .scalars = scalars};
    if (kit_interpret(&d, &problem) != HAL_OK) {
        fail_msg("%s", problem.text);
    }
    hal_ir_kernel_destroy(kernel);
}

static char *read_page(void)
{
    FILE *file = fopen(KERNELS_PAGE, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_in_range(fread(text, 1, 65535, file), 1, 65534);
    fclose(file);
    return text;
}

TEST(scaling)
{
    hal_ir_kernel *kernel = NULL;
    float x[100], y[100] = {0};
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i;
    }
    assert_ok(build_scale(&kernel));
    char *text = NULL, *page = read_page();
    assert_ok(hal_ir_print(kernel, &text));
    if (!strstr(page, text)) {
        fail_msg("the page does not show\n%s", text);
    }
    free(text);
    free(page);
    const struct {
        uint32_t n;
        float alpha;
    } scalars = {90, 2.0f};
    run(kernel, 2, (kit_span[]){{x, sizeof x}, {y, sizeof y}}, &scalars);
    for (int i = 0; i < 100; i++) {
        assert_true(y[i] == (i < 90 ? 2.0f * (float)i : 0));
    }
}

TEST(pointwise_kernels)
{
    hal_ir_builder *b = ir_kernel_begin();
    float x[64], y[64], sum[64];
    for (int i = 0; i < 64; i++) {
        x[i] = (float)i - 20;
        y[i] = 0.5f;
        sum[i] = -1;
    }
    const uint32_t n = 50;
    vector_add(b);
    run(ir_finish(b), 1, (kit_span[]){{x, sizeof x}, {y, sizeof y}, {sum, sizeof sum}}, &n);
    for (uint32_t i = 0; i < 64; i++) {
        assert_true(sum[i] == (i < n ? x[i] + y[i] : -1));
    }
    b = ir_kernel_begin();
    polynomial(b, HAL_TYPE_F32, (const double[]){2, -1, 3}, 3);
    run(ir_finish(b), 1, (kit_span[]){{x, sizeof x}, {y, sizeof y}}, NULL);
    for (int i = 0; i < 64; i++) {
        assert_true(y[i] == (2 * x[i] - 1) * x[i] + 3);
    }
    b = ir_kernel_begin();
    float wide[256];
    for (int i = 0; i < 256; i++) {
        wide[i] = (float)(i - 100);
    }
    relu_in_fours(b);
    run(ir_finish(b), 1, (kit_span[]){{wide, sizeof wide}}, NULL);
    for (int i = 0; i < 256; i++) {
        assert_true(wide[i] == (i < 100 ? 0 : (float)(i - 100)));
    }
    hal_ir_kernel *swish = NULL;
    assert_ok(build_swish(&swish));
    b = ir_kernel_begin();
    apply(b, swish);
    hal_ir_kernel_destroy(swish);
    run(ir_finish(b), 1, (kit_span[]){{x, sizeof x}}, NULL);
    assert_true(fabsf(x[21] - 0.7310586f) < 1e-6f);
}

TEST(sums_and_blocks)
{
    hal_ir_builder *b = ir_kernel_begin();
    float x[192], y[192] = {0}, sums[3];
    for (int i = 0; i < 192; i++) {
        x[i] = (float)(i * i % 17);
    }
    row_sums(b);
    const uint32_t shape[2] = {3, 64};
    run(ir_finish(b), 1, (kit_span[]){{x, sizeof x}, {sums, sizeof sums}}, shape);
    float expected[3] = {0};
    for (int i = 0; i < 192; i++) {
        expected[i / 64] += x[i];
    }
    assert_memory_equal(sums, expected, sizeof sums);
    b = ir_kernel_begin();
    reverse_blocks(b);
    run(ir_finish(b), 3, (kit_span[]){{x, sizeof x}, {y, sizeof y}}, NULL);
    for (int i = 0; i < 192; i++) {
        assert_true(y[i] == x[i / 64 * 64 + 63 - i % 64]);
    }
    const uint32_t n = 180;
    for (int i = 180; i < 192; i++) {
        expected[2] -= x[i];
    }
    b = ir_kernel_begin();
    memset(sums, 0, sizeof sums);
    block_sums(b);
    run(ir_finish(b), 3, (kit_span[]){{x, sizeof x}, {sums, sizeof sums}}, &n);
    assert_memory_equal(sums, expected, sizeof sums);
    b = ir_kernel_begin();
    memset(sums, 0, sizeof sums);
    block_sums_by_subgroups(b, 64, HAL_IR_EMULATED_SUBGROUP);
    run(ir_finish(b), 3, (kit_span[]){{x, sizeof x}, {sums, sizeof sums}}, &n);
    assert_memory_equal(sums, expected, sizeof sums);
}

TEST(counting)
{
    hal_ir_builder *b = ir_kernel_begin();
    uint8_t bytes[128];
    uint32_t counts[256] = {0};
    for (int i = 0; i < 128; i++) {
        bytes[i] = (uint8_t)(i % 3);
    }
    const uint32_t n = 100;
    histogram(b);
    run(ir_finish(b), 2, (kit_span[]){{bytes, sizeof bytes}, {counts, sizeof counts}}, &n);
    assert_int_equal(counts[0], 34);
    assert_int_equal(counts[1], 33);
    assert_int_equal(counts[2], 33);
    assert_int_equal(counts[3], 0);
}

/* Makes mistake number `which` of the page's table. */
static void mistake(hal_ir_builder *b, int which)
{
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_I32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_I32, HAL_ACCESS_WRITE);
    const hal_ir_value u = hal_ir_u32(b, 1);
    const hal_ir_value var = hal_ir_var(b, u);
    const hal_ir_value f = hal_ir_f32(b, 1);
    const hal_ir_value local = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value v;
    hal_ir_group_size(b, 64, 1, 1);
    switch (which) {
    case 0:
        hal_ir_add(b, f, u);
        break;
    case 1:
        hal_ir_if(b, u);
        break;
    case 2:
        hal_ir_sqrt(b, u);
        break;
    case 3:
        hal_ir_load(b, x, f);
        break;
    case 4:
        hal_ir_store(b, y, u, f);
        break;
    case 5:
        hal_ir_store(b, x, u, hal_ir_i32(b, 1));
        break;
    case 6:
        v = hal_ir_for(b, u, u, u);
        hal_ir_end(b);
        hal_ir_neg(b, v);
        break;
    case 7:
        hal_ir_neg(b, var);
        break;
    case 8:
        hal_ir_neg(b, hal_ir_load_wide(b, x, u, 0, 2, HAL_IR_NONE));
        break;
    case 9:
        hal_ir_if(b, hal_ir_bool(b, 1));
        break;
    case 10:
        hal_ir_end(b);
        break;
    case 11:
        hal_ir_if(b, hal_ir_lt(b, local, u));
        hal_ir_barrier(b);
        hal_ir_end(b);
        break;
    case 12:
        hal_ir_shared(b, "s", HAL_TYPE_F32, 1);
        hal_ir_binding(b, "z", HAL_TYPE_F32, HAL_ACCESS_READ);
        break;
    case 13:
        hal_ir_shared(b, "x", HAL_TYPE_F32, 1);
        break;
    default:
        hal_ir_load(b, 5, u);
        break;
    }
}

TEST(messages_are_as_the_page_says)
{
    char *page = read_page();
    char *row = strstr(page, "| the mistake | the message |");
    assert_non_null(row);
    row = strchr(strchr(row, '\n') + 1, '\n') + 1; /* after the line under the head */
    int which = 0;
    for (; row[0] == '|'; which++) {
        char *end = strchr(row, '\n');
        *end = 0;
        char *message = strstr(row, "| `"); /* the cell of the message is the last one */
        for (char *next = message; next != NULL; next = strstr(next + 1, "| `")) {
            message = next;
        }
        assert_non_null(message);
        message += 3;
        *strchr(message, '`') = 0;
        hal_ir_builder *b = ir_kernel_begin();
        hal_ir_kernel *kernel = NULL;
        mistake(b, which);
        assert_int_not_equal(hal_ir_builder_finish(b, &kernel), HAL_OK);
        hal_ir_builder_destroy(b);
        assert_message(message);
        row = end + 1;
    }
    assert_int_equal(which, 15);
    free(page);
}

UNIT_MAIN(NULL, NULL)
