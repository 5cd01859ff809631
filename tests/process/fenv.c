/* Promise 26: kernels run in the default floating-point environment whatever the program's is, when
 * the device is opened, when kernels are compiled and when they run; the program's environment and
 * its flags stay as they are.
 * run: open   (the environment is set before the device is opened) */
#include "process.h"

#include <fenv.h>
#include <string.h>
#if defined __x86_64__
#include <xmmintrin.h>
#endif

enum { FLUSHES, UPWARD, TOWARD_ZERO, ENVIRONMENTS };
static const char *const names[ENVIRONMENTS] = {"denormals as zeros", "rounding upward",
                                                "rounding toward zero"};

static void environment_set(int which)
{
    if (which == UPWARD) {
        fesetround(FE_UPWARD);
    } else if (which == TOWARD_ZERO) {
        fesetround(FE_TOWARDZERO);
    } else {
#if defined __x86_64__
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    }
}

static unsigned state(void)
{
#if defined __x86_64__
    return _mm_getcsr();
#else
    return (unsigned)fegetround() << 8 | (unsigned)fetestexcept(FE_ALL_EXCEPT);
#endif
}

/* Halves denormal numbers: what is flushed becomes 0. */
static uint64_t flushed(const process_device *opened, int64_t count)
{
    uint32_t *bits = malloc((size_t)count * sizeof(uint32_t));
    uint64_t zeros = 0;
    for (int64_t i = 0; bits && i < count; i++) {
        bits[i] = 0x400000 | (uint32_t)i % 0x3fffff;
    }
    PROCESS_OK(ops_scope_begin(opened->ops));
    ops_array *x = ops_array_from_host(opened->ops, HAL_TYPE_F32, 1, &count, bits);
    PROCESS_OK(ops_array_read(ops_mul_scalar(x, 0.5), (uint64_t)count * 4, bits));
    PROCESS_OK(ops_scope_end(opened->ops));
    for (int64_t i = 0; i < count; i++) {
        zeros += bits[i] == 0;
    }
    free(bits);
    return zeros;
}

/* The text of a kernel with the constants 0.7, rounded to f32, and 2.5, rounded to i32; `parsed`:
 * of text with the decimal number 0.7. To be freed. */
static char *constants_text(bool parsed)
{
    hal_ir_builder *builder = NULL;
    hal_ir_kernel *kernel = NULL;
    char *text = NULL;
    PROCESS_OK(hal_ir_builder_create("constants", &builder));
    hal_ir_group_size(builder, 1, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(builder, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_number(builder, HAL_TYPE_I32, 2.5);
    hal_ir_store(builder, y, i, hal_ir_number(builder, HAL_TYPE_F32, parsed ? 0.5 : 0.7));
    PROCESS_OK(hal_ir_builder_finish(builder, &kernel));
    PROCESS_OK(hal_ir_print(kernel, &text));
    hal_ir_kernel_destroy(kernel);
    if (parsed) {
        char *number = strstr(text, "0.5");
        if (!number) {
            process_fail("no 0.5 in the text:\n%s", text);
            return text;
        }
        number[2] = '7';
        PROCESS_OK(hal_ir_parse(text, strlen(text), &kernel));
        free(text);
        PROCESS_OK(hal_ir_print(kernel, &text));
        hal_ir_kernel_destroy(kernel);
    }
    return text;
}

static void constants_check(int which)
{
    fenv_t usual;
    fegetenv(&usual);
    for (int parsed = 0; parsed < 2; parsed++) {
        char *expected = constants_text(parsed);
        environment_set(which);
        char *text = constants_text(parsed);
        fesetenv(&usual);
        if (strcmp(text, expected) != 0) {
            process_fail("%s: other constants: %s", names[which], text);
        }
        free(text);
        free(expected);
    }
}

int main(int argc, char **argv)
{
    const int64_t sizes[2] = {1000, process_large_count()};
    const bool at_open = argc > 1 && strcmp(argv[1], "open") == 0;
    fenv_t usual;
    fegetenv(&usual);
    setenv("HAL_CACHE_DIR", "off", 1);
    process_device opened = process_open();
    uint64_t expected[2][PROCESS_WORKS], zeros[2];
    for (int i = 0; i < 2; i++) {
        zeros[i] = flushed(&opened, sizes[i]);
        for (int k = 0; k < PROCESS_WORKS; k++) {
            expected[i][k] = process_has_work(k) ? process_work(&opened, k, sizes[i]) : 0;
        }
    }
    for (int which = 0; which < ENVIRONMENTS; which++) {
        constants_check(which);
        if (at_open) { /* threads and kernels of the device are made under the environment */
            process_close(&opened);
            environment_set(which);
            opened = process_open();
        }
        for (int i = 0; i < 2; i++) {
            feclearexcept(FE_ALL_EXCEPT);
            environment_set(which);
            if (flushed(&opened, sizes[i]) != zeros[i]) {
                process_fail("%s: other denormal numbers become 0", names[which]);
            }
            for (int k = 0; k < PROCESS_WORKS; k++) {
                if (process_has_work(k) && process_work(&opened, k, sizes[i]) != expected[i][k]) {
                    process_fail("%s: %s of %d elements: other bits", names[which],
                                 process_work_name(k), (int)sizes[i]);
                }
            }
            fesetenv(&usual);
        }
        environment_set(which);
        feclearexcept(FE_ALL_EXCEPT);
        const unsigned before = state();
        PROCESS_OK(hal_queue_wait(opened.queue, HAL_WAIT_FOREVER));
        if (state() != before) {
            process_fail("%s: a wait changed the environment from %04x to %04x", names[which],
                         before, state());
        }
        fesetenv(&usual);
    }
    process_close(&opened);
    return process_end();
}
