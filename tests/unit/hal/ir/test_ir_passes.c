/* The legaliser's passes are skipped where they have nothing to do: a kernel that needs none costs
 * fewer allocations than one that is rebuilt, and is copied. */
#include "ir_fixture.h"
#include "own_malloc.h"

#include "ir/legalise.h"

#include <stdio.h>

#if OWN_MALLOC
static long allocations;

static int malloc_is_refused(void)
{
    allocations++;
    return 0;
}

/* Allocations of hal_ir_legalise, and the records that it keeps. */
static long legalise(const char *body, uint32_t *kept)
{
    char text[512];
    hal_device_info device = ir_device();
    device.max_vector_bytes = 8;
    snprintf(text, sizeof text,
             "kernel k\ngroup 64 1 1\nbinding x f32 read\nbinding y f32 write\n"
             "%%l = local_id u32 x\n%%i = mul u32 %%l, %%l\n%%x = load f32 x[%%l]\n%s",
             body);
    hal_ir_kernel *kernel = ir_read(text), *legal = NULL;
    allocations = 0;
    assert_ok(hal_ir_legalise(kernel, &device, &legal));
    const long made = allocations;
    *kept = legal->record_count;
    hal_ir_kernel_destroy(kernel);
    hal_ir_kernel_destroy(legal);
    return made;
}

TEST(passes_without_work_are_skipped)
{
    uint32_t kept[4];
    const long plain = legalise("%a = sqrt f32 %x\nstore y[%i], %a\n", &kept[0]);
    const long dead = legalise("%a = sqrt f32 %x\n%b = sqrt f32 %a\nstore y[%i], %a\n", &kept[1]);
    const long expanded = legalise("%a = exp f32 %x\nstore y[%i], %a\n", &kept[2]);
    const long lowered = legalise("%a = load f32x4 x[%i]\n%b = extract f32 %a, 0\n"
                                  "store y[%i], %b\n",
                                  &kept[3]);
    assert_int_equal(kept[1], kept[0]);
    assert_int_equal(dead, plain); /* records are dropped in place */
    assert_true(plain < expanded);
    assert_true(plain < lowered);
}
#else
TEST(passes_without_work_are_skipped)
{
    skip(); /* allocations are the sanitizer's */
}
#endif

UNIT_MAIN(NULL, NULL)
