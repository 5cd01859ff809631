/* Overlaps of views against an enumeration of their bytes: sliced, interleaved, broadcast and
 * backward views of one buffer, of types of equal and of different size. */
#include "ops_fixture.h"

#include "tensor/overlap.h"

enum { MIDDLE = 1 << 13 }; /* views reach 4,544 bytes from their buffer's begin at most */

/* Marks the bytes of a tensor, and returns whether one was marked before. */
static int mark(const ops_tensor *t, uint8_t *bytes)
{
    const int64_t count = ops_tensor_get_element_count(t), size = hal_type_size(t->type);
    int met = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = MIDDLE + place_of(t, t->rank, t->shape, i) * size;
        for (int64_t j = 0; j < size; j++) {
            met |= bytes[first + j];
            bytes[first + j] = 1;
        }
    }
    return met;
}

static ops_tensor random_view(hal_type type)
{
    ops_tensor t = {(hal_buffer *)(uintptr_t)64, type, next_random() % 4, 0, {0}, {0}};
    t.offset = next_random() % 64;
    for (uint32_t i = 0; i < t.rank; i++) {
        t.shape[i] = 1 + next_random() % 6;
        t.stride[i] = (int64_t)(next_random() % 33) - (next_random() % 4 ? 0 : 16);
    }
    return t;
}

static void views_overlap_where_their_bytes_do(void **state)
{
    (void)state;
    const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U8, HAL_TYPE_I16, HAL_TYPE_F64};
    static uint8_t bytes[2 * MIDDLE], own[2 * MIDDLE];
    int overlapping = 0, count = 20000;
    for (int i = 0; i < count; i++) {
        const ops_tensor x = random_view(types[next_random() % 4]);
        ops_tensor y = random_view(types[next_random() % 4]);
        if (i % 2) { /* interleaved: the same strides from another place */
            y = x;
            y.offset += next_random() % 24;
        }
        memset(bytes, 0, sizeof bytes);
        mark(&x, bytes);
        memset(own, 0, sizeof own);
        mark(&y, own);
        int met = 0;
        for (int j = 0; j < 2 * MIDDLE; j++) {
            met |= bytes[j] & own[j];
        }
        if (ops_overlap(&x, &y) != met || ops_overlap(&y, &x) != met) {
            char text[2][OPS_TEXT_BYTES];
            fail_msg("pair %d: %s and %s: the bytes %s", i, ops_describe(&x, text[0]),
                     ops_describe(&y, text[1]), met ? "meet" : "do not meet");
        }
        overlapping += met;
    }
    assert_in_range(overlapping, count / 10, count - count / 10);
}

/* Strides without a common factor: the search is cut off, and says that they overlap. */
static void long_searches_end(void **state)
{
    (void)state;
    const ops_tensor x = {(hal_buffer *)(uintptr_t)64, HAL_TYPE_F32, 3, 0, {1000, 1000, 1000},
                          {3000002, 3000000, 3000004}};
    ops_tensor y = x;
    y.offset = 1;
    assert_false(ops_overlap(&x, &y));
    y.stride[2] = 3000005;
    const int met = ops_overlap(&x, &y);
    assert_true(met == 0 || met == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_overlap_where_their_bytes_do),
                                       cmocka_unit_test(long_searches_end)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
