/* Arrays that grow: contents stay, capacities have a bound, failures change nothing. */

#include "unit.h"
#include "base/array.h"

TEST(contents_stay)
{
    uint64_t *items = NULL;
    uint32_t capacity = 0;
    for (uint64_t count = 0; count < 1000; count++) {
        assert_int_equal(HAL_ARRAY_RESERVE(items, capacity, count + 1), 1);
        assert_true(capacity > count);
        items[count] = count * count;
    }
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(items[i], i * i);
    }
    /* Room that is there is not moved; a large step is made at once. */
    uint64_t *before = items;
    assert_int_equal(HAL_ARRAY_RESERVE(items, capacity, capacity), 1);
    assert_ptr_equal(items, before);
    assert_int_equal(HAL_ARRAY_RESERVE(items, capacity, 100000), 1);
    assert_true(capacity >= 100000);
    free(items);
}

TEST(too_many)
{
    char *items = NULL;
    uint32_t capacity = 0;
    assert_int_equal(HAL_ARRAY_RESERVE(items, capacity, 3), 1);
    char *before = items;
    const uint32_t had = capacity;
    assert_int_equal(HAL_ARRAY_RESERVE(items, capacity, (uint64_t)UINT32_MAX + 1), 0);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, had);
    struct {
        char bytes[UINT64_C(1) << 33];
    } *huge = NULL;
    uint32_t none = 0;
    assert_int_equal(HAL_ARRAY_RESERVE(huge, none, UINT32_MAX), 0);
    assert_null(huge);
    assert_int_equal(none, 0);
    free(items);
}

UNIT_MAIN(NULL, NULL)
