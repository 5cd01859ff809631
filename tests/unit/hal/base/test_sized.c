/* Promise 6: structures that begin with their size are taken from minor 0's size on, after hal's
 * have grown and when those of a program are longer; anything else is refused. */
#include "unit.h"
#include <hal/ir_build.h>
#include <hal/plugin.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"

/* A structure over three minors. */
typedef struct first {
    uint32_t size, one;
} first;
typedef struct second {
    uint32_t size, one, two;
} second;
typedef struct third {
    uint32_t size, one, two, three;
} third;

/* A separate allocation, so that a sanitizer sees reads beyond it. */
static void *block_of(const void *what, size_t bytes)
{
    void *block = malloc(bytes);
    assert_non_null(block);
    return memcpy(block, what, bytes);
}

TEST(a_shorter_one_is_filled_up_with_zeros)
{
    struct {
        first old;
        uint32_t after; /* is not read */
    } given = {{sizeof(first), 7}, 8};
    second own;
    memset(&own, 0xa5, sizeof own);
    assert_true(hal_sized_take(&own, sizeof own, &given.old, sizeof(first)));
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.one, 7);
    assert_int_equal(own.two, 0);
}

TEST(a_longer_one_is_taken_when_its_rest_is_zeros)
{
    third *later = block_of(&(third){sizeof *later, 7, 8, 0}, sizeof *later);
    second own;
    assert_true(hal_sized_take(&own, sizeof own, later, sizeof(first)));
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.two, 8);
    later->three = UINT32_C(1) << 24; /* in its last byte alone */
    assert_false(hal_sized_take(&own, sizeof own, later, sizeof(first)));
    free(later);
}

TEST(sizes_that_cannot_be_are_refused)
{
    static const uint32_t sizes[] = {0, 4, sizeof(first) - 1, HAL_SIZED_MAX_BYTES + 1, UINT32_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        second own, *given = block_of(&(second){sizes[s], 7, 8}, sizeof *given);
        assert_false(hal_sized_take(&own, sizeof own, given, sizeof(first)));
        free(given);
    }
}

/* A kernel as a program of minor 0 writes it, and with sizes and versions that cannot be. */
TEST(kernels_of_minor_0_are_read)
{
    hal_ir_kernel *copy = NULL, kernel = {.size = (uint32_t)HAL_IR_KERNEL_LEAST_BYTES,
                                          .version = HAL_IR_LEAST_VERSION,
                                          .group_size = {1, 1, 1},
                                          .name_bytes = 2,
                                          .names = "k"};
    assert_ok(hal_ir_verify(&kernel));
    assert_ok(hal_ir_kernel_copy(&kernel, &copy));
    assert_int_equal(copy->size, sizeof *copy);
    hal_ir_kernel_destroy(copy);
    kernel.version = HAL_IR_VERSION + 1;
    assert_int_equal(hal_ir_verify(&kernel), HAL_ERROR_INVALID_IR);
    kernel.version = HAL_IR_LEAST_VERSION - 1;
    assert_int_equal(hal_ir_verify(&kernel), HAL_ERROR_INVALID_IR);
    kernel.version = HAL_IR_LEAST_VERSION;
    kernel.size--;
    assert_int_equal(hal_ir_verify(&kernel), HAL_ERROR_INVALID_IR);
    assert_int_equal(hal_ir_kernel_copy(&kernel, &copy), HAL_ERROR_INVALID_IR);
    assert_null(copy);
}

UNIT_MAIN(NULL, NULL)
