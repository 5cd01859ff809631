/* hal_kernel_recall: kernels in the compile cache by what they were built from. */
#include <hal/ir_build.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "ir/internal.h"
#include "mock_device.h"
#include "scratch.h"

static char folder[SCRATCH_BYTES];
static hal_kernel_fingerprint fingerprint;

/* y[i] = x[i] * n + 1, with an array in shared memory. */
static hal_ir_builder *built(void)
{
    hal_ir_builder *b;
    assert_ok(hal_ir_builder_create("times_n", &b));
    hal_ir_group_size(b, 32, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id s = hal_ir_shared(b, "s", HAL_TYPE_F32, 32);
    const hal_ir_value n = hal_ir_scalar_value(b, "n", HAL_TYPE_F32);
    const hal_ir_value i = hal_ir_global_id(b, 0), l = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_store(b, s, l, hal_ir_mul(b, hal_ir_load(b, x, i), n));
    hal_ir_store(b, y, i, hal_ir_add(b, hal_ir_load(b, s, l), hal_ir_f32(b, 1)));
    return b;
}

/* A device whose kernels are not loaded. */
static int reset(void **state)
{
    char command[512];
    fingerprint = (hal_kernel_fingerprint){.hash = {1, 2},
                                           .code = (const void *)(uintptr_t)hal_kernel_recall};
    snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
    assert_int_equal(system(command), 0);
    return device_reset(state);
}

static void create(const hal_kernel_fingerprint *with)
{
    hal_kernel *made;
    hal_ir_builder *b = built();
    assert_ok(hal_kernel_create_built(device, b, with, &made));
    hal_ir_builder_destroy(b);
    hal_kernel_release(made);
}

static hal_kernel *recalled(void)
{
    hal_kernel *found = (hal_kernel *)device;
    assert_ok(hal_kernel_recall(device, &fingerprint, &found));
    return found;
}

TEST_WITH(a_kernel_comes_back_without_being_built, reset, NULL)
{
    assert_null(recalled());
    create(&fingerprint);
    hal_kernel *first = recalled(), *second = recalled(), *other;
    assert_non_null(first);
    assert_ptr_equal(first, second);
    assert_string_equal(hal_kernel_get_name(first), "times_n");

    /* It is the kernel of the IR, so that both share it. */
    hal_ir_builder *b = built();
    assert_ok(hal_kernel_create_built(device, b, NULL, &other));
    assert_ptr_equal(first, other);
    hal_ir_builder_destroy(b);
    hal_kernel_release(other);
    hal_kernel_release(second);

    /* It is complete: its bindings and scalars are checked, and it runs. */
    hal_buffer *x = mock_buffer(device, 128), *y = mock_buffer(device, 128);
    const hal_range ranges[2] = {{x, 0, 128}, {y, 0, 128}};
    const float n = 2;
    assert_ok(hal_queue_dispatch(queue, first, (const uint32_t[3]){1, 1, 1}, ranges, 2, &n, 4));
    assert_int_equal(
        hal_queue_dispatch(queue, first, (const uint32_t[3]){1, 1, 1}, ranges, 2, &n, 2),
        HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_buffer_release(x);
    hal_buffer_release(y);
    hal_kernel_release(first);
}

TEST_WITH(another_fingerprint_is_not_known, reset, NULL)
{
    create(NULL);
    assert_null(recalled());
    create(&fingerprint);
    fingerprint.hash[1] = 3;
    assert_null(recalled());
    fingerprint.hash[1] = 2;
    fingerprint.code = (const void *)(uintptr_t)_assert_true; /* cmocka's, another library */
    assert_null(recalled());
    fingerprint.code = &fingerprint; /* of the test, which may have no build id */
    create(&fingerprint);
    fingerprint.code = (const void *)(uintptr_t)hal_kernel_recall;
    hal_kernel *found = recalled();
    assert_non_null(found);
    hal_kernel_release(found);
}

TEST_WITH(a_changed_device_forgets, reset, NULL)
{
    create(&fingerprint);
    device->info.features ^= 1; /* as the probe of a driver does */
    assert_null(recalled());
    device->info.features ^= 1;
    hal_kernel *found = recalled();
    assert_non_null(found);
    hal_kernel_release(found);
    device->info.kind = HAL_DEVICE_CPU;
    assert_null(recalled());
    device->info.kind = HAL_DEVICE_DISCRETE;
}

TEST_WITH(with_a_dump_or_without_a_cache_kernels_are_built, reset, NULL)
{
    create(&fingerprint);
    setenv("HAL_DUMP", "native", 1);
    assert_null(recalled());
    unsetenv("HAL_DUMP");
    setenv("HAL_CACHE_DIR", "off", 1);
    assert_null(recalled());
    setenv("HAL_CACHE_DIR", folder, 1);
    hal_kernel *found = recalled();
    assert_non_null(found);
    hal_kernel_release(found);
}

TEST_WITH(the_plugin_may_fail, reset, NULL)
{
    hal_kernel *found = (hal_kernel *)device;
    create(&fingerprint);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    assert_int_equal(hal_kernel_recall(device, &fingerprint, &found), HAL_ERROR_INTERNAL);
    assert_null(found);
    assert_int_equal(hal_kernel_recall(device, NULL, &found), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_recall(NULL, &fingerprint, &found), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_recall(device, &fingerprint, NULL), HAL_ERROR_INVALID_ARGUMENT);
}

/* A packed kernel moves as bytes. */
TEST(packed_kernels_move)
{
    hal_ir_builder *b = built();
    hal_ir_kernel *ir;
    assert_ok(hal_ir_builder_finish(b, &ir));
    const size_t bytes = hal_ir_kernel_packed_bytes(ir);
    void *block = malloc(bytes), *moved = malloc(bytes);
    hal_ir_kernel_pack(ir, block);
    memcpy(moved, block, bytes);
    memset(block, 0xff, bytes);
    free(block);
    const hal_ir_kernel *kernel_of = hal_ir_kernel_unpack(moved, bytes);
    assert_non_null(kernel_of);
    uint64_t hashes[2][2];
    hal_ir_hash(ir, hashes[0]);
    hal_ir_hash(kernel_of, hashes[1]);
    assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
    assert_ok(hal_ir_verify(kernel_of));
    assert_null(hal_ir_kernel_unpack(moved, bytes - 8));
    assert_null(hal_ir_kernel_unpack(moved, 8));
    free(moved);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
}

static int begin(void **state)
{
    unsetenv("HAL_DUMP");
    assert_non_null(scratch_folder(folder, "recall"));
    setenv("HAL_CACHE_DIR", folder, 1);
    return device_begin(state);
}

static int finish(void **state)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || device_end(state);
}

UNIT_MAIN(begin, finish)
