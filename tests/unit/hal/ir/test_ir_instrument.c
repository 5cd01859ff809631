/* What checks add to a kernel: a comparison, which most accesses share nothing else with, and one
 * piece of code that writes the reports of all places of a block. */
#include "ir_fixture.h"

#include "ir/instrument.h"

#include <stdio.h>

enum { LOADS = 12 };

/* A kernel that sums loads of elements that are `stride` apart; `count` of them. */
static hal_ir_kernel *sum_kernel(uint32_t count, const char *load)
{
    char text[4096];
    int end = snprintf(text, sizeof text,
                       "kernel k\ngroup 64 1 1\nbinding x f32 read\nbinding y f32 write\n"
                       "scalar n u32\n"
                       "%%n = scalar u32 n\n%%l = local_id u32 x\n%%in = lt bool %%l, %%n\n"
                       "%%i0 = mul u32 %%l, %%n\n");
    for (uint32_t i = 0; i < count; i++) {
        end += snprintf(text + end, sizeof text - (size_t)end, "%%i%u = add u32 %%i%u, %%n\n",
                        i + 1, i);
        end += snprintf(text + end, sizeof text - (size_t)end, load, i, i + 1);
        end += snprintf(text + end, sizeof text - (size_t)end,
                        i == 0 ? "%%s%u = sqrt f32 %%v%u\n" : "%%s%u = add f32 %%v%u, %%s%u\n", i,
                        i, i - 1);
    }
    snprintf(text + end, sizeof text - (size_t)end, "store y[%%l], %%s%u if %%in\n", count - 1);
    return ir_read(text);
}

/* Records of the opcode, or all of them, of a kernel with checks. */
static uint32_t checked_count_on(const hal_device_info *device, hal_ir_kernel *kernel,
                                 uint32_t checks, int opcode)
{
    hal_ir_instrumented made;
    uint32_t count = 0;
    assert_ok(hal_ir_instrument(kernel, checks, device, &made));
    assert_non_null(made.kernel);
    for (uint32_t i = 0; i < made.kernel->record_count; i++) {
        count += opcode < 0 || made.kernel->records[i].opcode == (uint32_t)opcode;
    }
    hal_ir_instrumented_free(&made);
    return count;
}

static uint32_t checked_count(hal_ir_kernel *kernel, uint32_t checks, int opcode)
{
    const hal_device_info device = ir_device();
    return checked_count_on(&device, kernel, checks, opcode);
}

/* A device that counts iterations of all loops of a kernel gets no more loops in a kernel that has
 * some. */
TEST(iterations_of_a_device_are_left_to_the_kernel)
{
    static const char text[] = "kernel k\ngroup 64 1 1\nbinding x f32 read\n"
                               "binding y f32 write\nscalar n u32\n%n = scalar u32 n\n"
                               "%l = local_id u32 x\n%c0 = constant u32 0\n%c1 = constant u32 1\n"
                               "%k = for u32 %c0, %n, %c1\n  %a = load f32 x[%k]\n"
                               "  %b = load f32 x[%l]\n  %s = add f32 %a, %b\n"
                               "  store y[%l], %s\nend\n";
    hal_ir_kernel *kernel = ir_read(text);
    hal_device_info device = ir_device();
    assert_int_equal(checked_count_on(&device, kernel, HAL_CHECK_BOUNDS, HAL_IR_FOR), 2);
    device.max_loop_iterations = 65535;
    assert_int_equal(checked_count_on(&device, kernel, HAL_CHECK_BOUNDS, HAL_IR_FOR), 1);
    hal_ir_kernel_destroy(kernel);
}

/* Reports of many loads are as much code as those of two. */
TEST(reports_of_a_block_share_their_code)
{
    static const uint32_t checks[] = {HAL_CHECK_BOUNDS, HAL_CHECK_INIT,
                                      HAL_CHECK_BOUNDS | HAL_CHECK_INIT};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        hal_ir_kernel *few = sum_kernel(2, "%%v%u = load f32 x[%%i%u] if %%in\n"),
                      *many = sum_kernel(LOADS / 2, "%%v%u = load f32 x[%%i%u] if %%in\n");
        const int opcodes[] = {HAL_IR_ATOMIC, HAL_IR_IF, HAL_IR_FOR};
        for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++) {
            assert_true(checked_count(few, checks[i], opcodes[k]) > 0);
            assert_int_equal(checked_count(many, checks[i], opcodes[k]),
                             checked_count(few, checks[i], opcodes[k]));
        }
        hal_ir_kernel_destroy(few);
        hal_ir_kernel_destroy(many);
    }
}

/* Records that one more load adds for bounds: four where it is right, the others in the code that
 * writes the report, most of which there is once, as there is what indices are compared with. */
TEST(one_more_access_adds_few_records)
{
    static const char *const loads[] = {"%%v%u = load f32 x[%%i%u] if %%in\n",
                                        "%%v%u = load f32 x[%%i%u + 3] if %%in\n",
                                        "%%v%u = load f32 x[%%i%u - 3] if %%in\n"};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        hal_ir_kernel *few = sum_kernel(3, loads[i]), *many = sum_kernel(LOADS, loads[i]);
        const uint32_t own = (many->record_count - few->record_count) / (LOADS - 3);
        const uint32_t more =
            checked_count(many, HAL_CHECK_BOUNDS, -1) - checked_count(few, HAL_CHECK_BOUNDS, -1);
        assert_true(more <= (LOADS - 3) * (own + 11 + (i == 2)));
        assert_int_equal(checked_count(many, HAL_CHECK_BOUNDS, HAL_IR_SUB),
                         checked_count(few, HAL_CHECK_BOUNDS, HAL_IR_SUB));
        hal_ir_kernel_destroy(few);
        hal_ir_kernel_destroy(many);
    }
}

UNIT_MAIN(NULL, NULL)
