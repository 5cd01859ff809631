/* Kernels of the op library that the compile cache has: their IR is built once, also for another
 * context or process. */
#include "ops_mock_place.h"
#include "scratch.h"

#include "tensor/context.h"
#include "tensor/kernel_cache.h"

#include <hal/ir_build.h>

static char folder[SCRATCH_BYTES];
static int emitted;

static void emit(hal_ir_builder *b, const void *user)
{
    const uint32_t *number = user;
    emitted++;
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_u32(b, *number));
}

static hal_kernel *kernel_get(ops_context *of, uint32_t number)
{
    ops_cache_key key;
    ops_entry *entry;
    ops_cache_key_begin(&key, OPS_FAMILY_FILL);
    ops_cache_key_append(&key, &number, sizeof number);
    assert_ok(ops_cache_get(of, &key, "numbers", emit, &number, &entry));
    assert_ok(hal_kernel_wait(entry->kernel)); /* then the compile cache has it */
    return entry->kernel;
}

static void kernels_are_built_once(void **state)
{
    ops_context *other;
    emitted = 0;
    hal_kernel *kernel = kernel_get(context, 7);
    assert_int_equal(emitted, 1);
    assert_ptr_equal(kernel_get(context, 7), kernel);

    assert_ok(ops_context_create(queue, &other)); /* it has no kernels */
    assert_ptr_equal(kernel_get(other, 7), kernel);
    assert_int_equal(emitted, 1);
    kernel_get(other, 8);
    assert_int_equal(emitted, 2);
    ops_context_destroy(other);
}

/* The folder has what the test before this one built, with another device and context. */
static void later_devices_build_nothing(void **state)
{
    emitted = 0;
    assert_string_equal(hal_kernel_get_name(kernel_get(context, 7)), "numbers");
    assert_int_equal(emitted, 0);
}

static void without_a_cache_kernels_are_built(void **state)
{
    setenv("HAL_CACHE_DIR", "off", 1);
    emitted = 0;
    kernel_get(context, 7);
    assert_int_equal(emitted, 1);
    setenv("HAL_CACHE_DIR", folder, 1);
}

static int begin(void **state)
{
    setenv("HAL_CACHE_DIR", scratch_folder(folder, "ops-recall"), 1);
    return 0;
}

static int finish(void **state)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_MOCK(kernels_are_built_once),
        OVER_MOCK(later_devices_build_nothing),
        OVER_MOCK(without_a_cache_kernels_are_built),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
