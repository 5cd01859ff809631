/* Results that are read at once are computed into host-readable memory, without a copy, on devices
 * whose kernels can write it; another use moves them to device memory. The mock plugin logs its
 * commands. */
#include "mock_fixture.h"

#include "ops_arrays.h"
#include "array/execute.h"
#include "ops_device.h"

enum { SMALL = 32, LARGEST = OPS_DIRECT_READ_BYTES / sizeof(float), LARGE = LARGEST + 1 };

typedef struct place {
    hal_device *device;
    hal_queue *queue;
    ops_context *context;
    ops_array *x;
    float numbers[LARGE], got[LARGE];
} place;

static mock_state *mock;

static int begin(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    mock->infos[0].features = HAL_FEATURE_ZERO_COPY;
    mock->infos[2].features = HAL_FEATURE_ZERO_COPY | HAL_FEATURE_MAP_DEVICE;
    mock->device_count = 3;
    return 0;
}

static place *open_place(const char *selection, int64_t count)
{
    static place opened;
    mock_reset(mock);
    opened = (place){.device = mock_open(selection)};
    opened.queue = mock_queue(opened.device);
    assert_int_equal(ops_context_create(opened.queue, &opened.context), HAL_OK);
    test_tune(opened.context)->compile.fast_ns = UINT64_MAX; /* kernels are made at once */
    for (int i = 0; i < LARGE; i++) {
        opened.numbers[i] = (float)(i % 101) - 37;
    }
    opened.x = ops_array_from_host(opened.context, HAL_TYPE_F32, 1, &count, opened.numbers);
    assert_non_null(opened.x);
    assert_int_equal(hal_queue_wait(opened.queue, HAL_WAIT_FOREVER), HAL_OK);
    return &opened;
}

static void close_place(place *p)
{
    ops_array_release(p->x);
    ops_context_destroy(p->context);
    hal_queue_destroy(p->queue);
    hal_device_release(p->device);
    mock_is_clean(mock);
}

/* Commands of a kind that were submitted since the log was cleared, after a wait. */
static uint32_t count(place *p, uint16_t kind)
{
    uint32_t found = 0;
    assert_int_equal(hal_queue_wait(p->queue, HAL_WAIT_FOREVER), HAL_OK);
    for (uint32_t i = 0; i < mock->logged_count; i++) {
        found += mock->logged[i].command.kind == kind;
    }
    return found;
}

static uint32_t copies(place *p)
{
    const uint32_t found = count(p, HAL_COMMAND_COPY);
    mock->logged_count = 0;
    return found;
}

/* Reads y, which has to be x times a factor, element by element. */
static void read_is(place *p, ops_array *y, float factor)
{
    const int64_t elements = ops_array_get_element_count(y);
    memset(p->got, 0x7f, sizeof p->got);
    if (ops_array_read(y, (uint64_t)elements * sizeof(float), p->got) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    for (int64_t i = 0; i < elements; i++) {
        if (p->got[i] != factor * p->numbers[i]) {
            fail_msg("element %d is %g", (int)i, (double)p->got[i]);
        }
    }
}

/* Copies for an operation whose result is in memory of a kind. */
static uint32_t copies_of_read(const char *selection, int64_t elements, uint32_t kind)
{
    place *p = open_place(selection, elements);
    ops_array *y = ops_neg(p->x);
    copies(p);
    read_is(p, y, -1);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), kind);
    assert_int_equal(count(p, HAL_COMMAND_DISPATCH), 1);
    const uint32_t found = copies(p);
    read_is(p, y, -1); /* once more, from that memory */
    ops_array_release(y);
    y = ops_neg(p->x); /* in the same place */
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_OK);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DEVICE);
    ops_array_release(y);
    close_place(p);
    return found;
}

static void small_results_are_computed_where_the_host_reads(void **state)
{
    const uint32_t device = HAL_MEMORY_DEVICE, download = HAL_MEMORY_DOWNLOAD;
    assert_int_equal(copies_of_read("mock:0", SMALL, download), 0);
    assert_int_equal(copies_of_read("mock:0", LARGEST, download), 0);
    assert_int_equal(copies_of_read("mock:0", LARGE, device), 1);
    assert_int_equal(copies_of_read("mock:1", SMALL, device), 1); /* kernels get a copy */
    assert_int_equal(copies_of_read("mock:2", SMALL, device), 0); /* all its memory is mapped */
}

static void what_is_used_later_moves_once(void **state)
{
    place *p = open_place("mock:0", SMALL);
    ops_array *y = ops_neg(p->x);
    read_is(p, y, -1);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DOWNLOAD);
    copies(p);
    for (int i = 0; i < 3; i++) {
        ops_array *z = ops_add(y, y);
        assert_int_equal(ops_array_evaluate(&z, 1), HAL_OK);
        assert_int_equal(copies(p), i == 0);
        assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DEVICE);
        read_is(p, z, -2);
        copies(p);
        ops_array_release(z);
    }
    read_is(p, y, -1);
    ops_array_release(y);
    close_place(p);
}

/* Arrays without elements are not copied. */
static void nothing_is_moved_of_nothing(void **state)
{
    place *p = open_place("mock:0", 0);
    ops_array *y = ops_neg(p->x);
    copies(p);
    read_is(p, y, -1);
    ops_array *z = ops_add(y, y);
    assert_int_equal(ops_array_evaluate(&z, 1), HAL_OK);
    assert_int_equal(copies(p), 0);
    release_all(y, z);
    close_place(p);
}

/* Results with deferred users, or shown by a view whose array is held, stay on the device. */
static void what_has_other_uses_stays_on_the_device(void **state)
{
    const int64_t shape[2] = {4, SMALL / 4};
    place *p = open_place("mock:0", SMALL);
    ops_array *y = ops_neg(p->x), *z = ops_add(y, y);
    read_is(p, y, -1);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DEVICE);
    read_is(p, z, -2);
    release_all(y, z);
    y = ops_neg(p->x);
    z = ops_array_reshape(y, 2, shape);
    read_is(p, z, -1);
    assert_int_equal(hal_buffer_get_kind(z->view.buffer), HAL_MEMORY_DEVICE);
    release_all(y, z);
    close_place(p);
}

static void views_are_read_and_moved_too(void **state)
{
    const int64_t shape[2] = {4, SMALL / 4}, flat = SMALL;
    place *p = open_place("mock:0", SMALL);
    ops_array *y = ops_neg(p->x), *view = ops_array_reshape(y, 2, shape);
    ops_array_release(y);
    copies(p);
    read_is(p, view, -1);
    assert_int_equal(copies(p), 0);
    ops_array *again = ops_array_reshape(view, 1, &flat), *z = ops_add(again, p->x);
    read_is(p, z, 0);
    assert_int_equal(copies(p), 1);
    assert_int_equal(hal_buffer_get_kind(again->view.buffer), HAL_MEMORY_DEVICE);
    read_is(p, view, -1);
    read_is(p, again, -1);
    release_all(view, again, z);
    close_place(p);
}

/* Other results of the same kernel stay in device memory. */
static void further_results_are_the_devices(void **state)
{
    place *p = open_place("mock:0", SMALL);
    ops_array *inner = ops_neg(p->x), *y = ops_add(inner, inner);
    copies(p);
    read_is(p, y, -2);
    assert_int_equal(count(p, HAL_COMMAND_DISPATCH), 1);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DOWNLOAD);
    assert_int_equal(inner->state, OPS_NODE_MEMORY);
    assert_int_equal(hal_buffer_get_kind(inner->view.buffer), HAL_MEMORY_DEVICE);
    release_all(inner, y);
    close_place(p);
}

/* A graph would repeat the copy at every launch. */
static void graphs_copy_nothing(void **state)
{
    place *p = open_place("mock:0", SMALL);
    ops_array *y = ops_neg(p->x), *sums[2] = {NULL, NULL};
    ops_graph *graph = NULL;
    read_is(p, y, -1);
    assert_int_equal(ops_graph_begin(p->context), HAL_OK);
    ops_array *sum = ops_add(y, ops_add(y, p->x));
    assert_int_equal(ops_graph_end(p->context, &y, 1, &sum, 1, &graph), HAL_OK);
    ops_array_release(sum);
    copies(p);
    assert_int_equal(ops_graph_launch(graph, &y, 1, &sums[0], 1), HAL_OK);
    assert_int_equal(ops_graph_launch(graph, &p->x, 1, &sums[1], 1), HAL_OK);
    assert_int_equal(copies(p), 0);
    read_is(p, sums[0], -1);
    read_is(p, sums[1], 3);
    ops_graph_destroy(graph);
    release_all(sums[0], sums[1], y);
    close_place(p);
}

/* A failure leaves the array unchanged, and the next call succeeds. */
static void failures_lose_nothing(void **state)
{
    place *p = open_place("mock:0", SMALL);
    ops_array *y = ops_neg(p->x);
    read_is(p, y, -1);
    ops_array *z = ops_add(y, y);
    hal_device_trim(p->device);
    atomic_store(&mock->fail_with, HAL_ERROR_INTERNAL);
    atomic_store(&mock->fail_in[MOCK_ALLOCATE], 1);
    assert_fails(ops_array_evaluate(&z, 1), HAL_ERROR_INTERNAL, "told to fail");
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DOWNLOAD);
    read_is(p, y, -1);
    read_is(p, z, -2);
    assert_int_equal(hal_buffer_get_kind(y->view.buffer), HAL_MEMORY_DEVICE);
    ops_array_release(y);
    y = ops_neg(z);
    hal_device_trim(p->device);
    atomic_store(&mock->fail_in[MOCK_ALLOCATE], 1);
    assert_fails(ops_array_read(y, SMALL * sizeof(float), p->got), HAL_ERROR_INTERNAL,
                 "told to fail");
    assert_int_equal(y->state, OPS_NODE_DEFERRED);
    read_is(p, y, 2);
    release_all(y, z);
    close_place(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_results_are_computed_where_the_host_reads),
        cmocka_unit_test(what_is_used_later_moves_once),
        cmocka_unit_test(nothing_is_moved_of_nothing),
        cmocka_unit_test(what_has_other_uses_stays_on_the_device),
        cmocka_unit_test(views_are_read_and_moved_too),
        cmocka_unit_test(further_results_are_the_devices),
        cmocka_unit_test(graphs_copy_nothing),
        cmocka_unit_test(failures_lose_nothing),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
