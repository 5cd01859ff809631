/* The table from addresses: against an array, under random puts and takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "base/pointer_map.h"

enum { KEYS = 700 };
static char objects[KEYS][16];

static void random_puts_and_takes(void **state)
{
    (void)state;
    hal_pointer_map map = {0};
    void *values[KEYS] = {0};
    uint32_t count = 0, seed = 1;
    assert_null(hal_pointer_map_get(&map, objects[0]));
    assert_null(hal_pointer_map_take(&map, objects[0]));
    for (uint32_t step = 0; step < 40000; step++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t i = (seed >> 8) % KEYS;
        /* It grows at first and then nearly empties. */
        if ((seed >> 28) < (step < 20000 ? 11 : 5)) {
            void *value = objects[(seed >> 4) % KEYS];
            assert_int_equal(hal_pointer_map_put(&map, objects[i], value), 1);
            count += values[i] == NULL;
            values[i] = value;
        } else {
            assert_ptr_equal(hal_pointer_map_take(&map, objects[i]), values[i]);
            count -= values[i] != NULL;
            values[i] = NULL;
        }
        assert_int_equal(map.count, count);
        const uint32_t look = (seed >> 12) % KEYS;
        assert_ptr_equal(hal_pointer_map_get(&map, objects[look]), values[look]);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(hal_pointer_map_get(&map, objects[i]), values[i]);
    }
    hal_pointer_map_free(&map);
    assert_int_equal(map.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_puts_and_takes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
