/* Work-items as fibers: all reach a barrier before one leaves it, also in loops and nested calls;
 * groups of any size; no memory is a message. */
#include "../plugin_host.h"

#include <kit/fibers.h>

enum { MOST = 256 };

typedef struct group {
    kit_fibers *fibers;
    uint32_t items, turns;
    uint32_t values[MOST], sums[MOST];
} group;

/* Each turn every work-item adds what its neighbour wrote in the turn before. */
static void body(void *user, uint32_t item)
{
    group *g = user;
    uint32_t own = item + 1;
    for (uint32_t turn = 0; turn < g->turns; turn++) {
        g->values[item] = own;
        kit_fibers_barrier(g->fibers);
        own += g->values[(item + 1) % g->items];
        kit_fibers_barrier(g->fibers);
    }
    g->sums[item] = own;
}

static void expect_group(kit_fibers *fibers, uint32_t items, uint32_t turns)
{
    group g = {.fibers = fibers, .items = items, .turns = turns};
    uint32_t want[MOST], next[MOST];
    kit_fibers_run(fibers, items, body, &g);
    for (uint32_t i = 0; i < items; i++) {
        want[i] = i + 1;
    }
    for (uint32_t turn = 0; turn < turns; turn++) {
        for (uint32_t i = 0; i < items; i++) {
            next[i] = want[i] + want[(i + 1) % items];
        }
        memcpy(want, next, sizeof want);
    }
    assert_memory_equal(g.sums, want, items * sizeof want[0]);
}

TEST(all_reach_a_barrier_before_one_leaves_it)
{
    kit_fibers *fibers = NULL;
    assert_int_equal(kit_fibers_create(plugin_host(), MOST, 64 << 10, &fibers), HAL_OK);
    static const uint32_t sizes[] = {1, 2, 3, 64, MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t turns = 0; turns < 4; turns++) {
            expect_group(fibers, sizes[i], turns);
        }
    }
    kit_fibers_destroy(fibers);
}

TEST(no_memory_is_a_message)
{
    kit_fibers *fibers = NULL;
    assert_int_equal(kit_fibers_create(plugin_host(), MOST, UINT64_C(1) << 52, &fibers),
                     HAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(message, "256 stacks"));
    assert_null(fibers);
    kit_fibers_destroy(NULL);
}

UNIT_MAIN(NULL, NULL)
