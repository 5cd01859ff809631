/* The kit's copy of a kernel: the same after the kernel has gone, in one piece of memory; and
 * nothing where there is none. */

#include "unit.h"
#include <hal/ir_build.h>
#include <kit/kernel_copy.h>
#include <stdlib.h>
#include <string.h>

static int left; /* allocations that are granted */

static void *allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    assert_true(alignment <= 16);
    return left-- > 0 ? malloc(bytes) : NULL;
}

static void release(const hal_host *host, void *memory)
{
    free(memory);
}

static const hal_host the_host = {
    .size = sizeof the_host, .allocate = allocate, .release = release};

/* Bindings, a shared array, scalars, constants and names. */
static hal_ir_kernel *build(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *kernel = NULL;
    assert_int_equal(hal_ir_builder_create("everything", &b), HAL_OK);
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_F32, 64);
    const hal_ir_value scale = hal_ir_scalar_value(b, "scale", HAL_TYPE_F32);
    const hal_ir_value at = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value twice = hal_ir_mul(b, hal_ir_load(b, x, at), hal_ir_f32(b, 2));
    hal_ir_store(b, tile, at, hal_ir_mul(b, twice, scale));
    hal_ir_barrier(b);
    hal_ir_store(b, y, at, hal_ir_load(b, tile, hal_ir_sub(b, hal_ir_u32(b, 63), at)));
    assert_int_equal(hal_ir_builder_finish(b, &kernel), HAL_OK);
    hal_ir_builder_destroy(b);
    return kernel;
}

/* Nothing of it can be read any more, whatever the allocator leaves of freed memory. */
static void wipe(hal_ir_kernel *kernel)
{
    memset((void *)kernel->records, 0xa5, kernel->record_count * sizeof *kernel->records);
    memset((void *)kernel->memories, 0xa5, kernel->memory_count * sizeof *kernel->memories);
    memset((void *)kernel->scalars, 0xa5, kernel->scalar_count * sizeof *kernel->scalars);
    memset((void *)kernel->constants, 0xa5, kernel->constant_count * sizeof *kernel->constants);
    memset((void *)kernel->names, 0xa5, kernel->name_bytes);
    hal_ir_kernel_destroy(kernel);
}

TEST(a_copy_outlives_its_kernel)
{
    char *before = NULL, *after = NULL;
    hal_ir_kernel *kernel = build();
    assert_int_equal(hal_ir_print(kernel, &before), HAL_OK);
    left = 1; /* one piece */
    hal_ir_kernel *copy = kit_kernel_copy(&the_host, kernel);
    assert_non_null(copy);
    wipe(kernel);
    assert_int_equal(hal_ir_print(copy, &after), HAL_OK);
    assert_string_equal(after, before);
    free(before);
    free(after);
    the_host.release(&the_host, copy);
}

TEST(without_memory_there_is_no_copy)
{
    hal_ir_kernel *kernel = build();
    left = 0;
    assert_null(kit_kernel_copy(&the_host, kernel));
    hal_ir_kernel_destroy(kernel);
}

UNIT_MAIN(NULL, NULL)
