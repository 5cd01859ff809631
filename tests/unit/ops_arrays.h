/* Helpers of the tests of arrays, with every fixture. Included by test_ops_array*.c and
 * test_ops_gemm_split_arrays.c. */
#ifndef TESTS_UNIT_OPS_ARRAYS_H
#define TESTS_UNIT_OPS_ARRAYS_H

#include "unit.h"
#include "array/node.h"
#include "tensor/context.h"
#include <ops/graph.h>
#include <string.h>

#define release_all(...)                              \
    arrays_release((ops_array *const[]){__VA_ARGS__}, \
                   sizeof((ops_array *const[]){__VA_ARGS__}) / sizeof(ops_array *))

static inline void arrays_release(ops_array *const *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ops_array_release(arrays[i]);
    }
}

static inline ops_array_statistics statistics_of(ops_context *context)
{
    ops_array_statistics s = {.size = sizeof s};
    assert_int_equal(ops_context_get_statistics(context, &s), HAL_OK);
    return s;
}

/* The array; fails the test with hal's message for null. */
static inline ops_array *made(ops_array *array)
{
    if (!array) {
        fail_msg("%s", hal_status_message());
    }
    return array;
}

/* Expects null, and words in the message. */
#define nothing(array, words)                                                       \
    do {                                                                            \
        if ((array) || !strstr(hal_status_message(), (words))) {            \
            fail_msg("%s: '%s' lacks '%s'", #array, hal_status_message(), (words)); \
        }                                                                           \
    } while (0)

#endif
