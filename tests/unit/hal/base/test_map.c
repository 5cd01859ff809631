/* The hash table: against an array, under random puts and takes, and with equal hashes. */

#include "unit.h"
#include "base/map.h"

enum { KEYS = 700 };
static char objects[KEYS][16];

TEST(random_puts_and_takes)
{
    hal_map map = {0};
    void *values[KEYS] = {0};
    uint32_t count = 0, seed = 1;
    assert_null(hal_map_get(&map, hal_map_key(objects[0])));
    assert_null(hal_map_take(&map, hal_map_key(objects[0])));
    for (uint32_t step = 0; step < 40000; step++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t i = (seed >> 8) % KEYS;
        const uint64_t key = i % 2 ? hal_map_key(objects[i]) : i; /* addresses and small numbers */
        /* It grows at first and then nearly empties. */
        if ((seed >> 28) < (step < 20000 ? 11 : 5)) {
            void *value = objects[(seed >> 4) % KEYS];
            assert_int_equal(hal_map_put(&map, key, value), 1);
            count += !values[i];
            values[i] = value;
        } else {
            assert_ptr_equal(hal_map_take(&map, key), values[i]);
            count -= values[i] != NULL;
            values[i] = NULL;
        }
        assert_int_equal(map.count, count);
        const uint32_t look = (seed >> 12) % KEYS;
        assert_ptr_equal(hal_map_get(&map, look % 2 ? hal_map_key(objects[look]) : look),
                         values[look]);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(hal_map_get(&map, i % 2 ? hal_map_key(objects[i]) : i), values[i]);
    }
    hal_map_free(&map);
    assert_int_equal(map.count, 0);
}

static bool is_address(const void *value, const void *wanted)
{
    return value == wanted;
}

/* Values of one key are kept apart by the match, whatever is removed between them. */
TEST(equal_hashes)
{
    enum { EACH = 100 };
    hal_map map = {0};
    for (uint32_t i = 0; i < EACH; i++) {
        assert_int_equal(hal_map_add(&map, 7, objects[i]), 1);
        assert_int_equal(hal_map_add(&map, 8, objects[EACH + i]), 1);
    }
    assert_int_equal(map.count, 2 * EACH);
    for (uint32_t i = 0; i < EACH; i += 2) {
        assert_int_equal(hal_map_remove(&map, 7, objects[i]), 1);
        assert_int_equal(hal_map_remove(&map, 7, objects[i]), 0);
        assert_int_equal(hal_map_remove(&map, 7, objects[EACH + i]), 0); /* of another key */
    }
    for (uint32_t i = 0; i < EACH; i++) {
        assert_ptr_equal(hal_map_find(&map, 7, is_address, objects[i]), i % 2 ? objects[i] : NULL);
        assert_ptr_equal(hal_map_find(&map, 8, is_address, objects[EACH + i]), objects[EACH + i]);
    }
    assert_int_equal(map.count, EACH + EACH / 2);
    hal_map_free(&map);
}

UNIT_MAIN(NULL, NULL)
