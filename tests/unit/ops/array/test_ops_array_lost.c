/* Arrays whose batch was dropped: the flush tells it once, and every use of them tells it again
 * until they are released, while all other arrays go on. Each test makes the mock plugin refuse a
 * batch. */
#include <hal/ir_build.h>

#include "mock_fixture.h"

#include "ops_arrays.h"

#include <ops/comm.h>

#define LOST "was lost when its batch failed: "
#define COUNT 8

static mock_state *mock;
static hal_device *device;
static hal_queue *queue;
static ops_context *context;
static const int64_t shape[1] = {COUNT};

static void place_open(const char *selection)
{
    mock_reset(mock);
    device = mock_open(selection);
    queue = mock_queue(device);
    assert_ok(ops_context_create(queue, &context));
}

static void place_close(void)
{
    assert_int_equal(statistics_of(context).arrays, 0);
    assert_int_equal(statistics_of(context).deferred, 0);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

static int begin(void **state)
{
    place_open("mock");
    return 0;
}

static int end(void **state)
{
    place_close();
    mock_is_clean(mock);
    return 0;
}

static void next_batch_fails(void)
{
    atomic_store(&mock->fail_with, HAL_ERROR_OUT_OF_MEMORY);
    atomic_store(&mock->fail_in[MOCK_SUBMIT], 1);
}

/* 1, 2, 3, ... */
static ops_array *numbers(void)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)(i + 1);
    }
    return made(ops_array_from_host(context, HAL_TYPE_F32, 1, shape, values));
}

static ops_array *evaluated(ops_array *x)
{
    made(x);
    assert_ok(ops_array_evaluate(&x, 1));
    return x;
}

static void has(ops_array *x, float first)
{
    float got[COUNT] = {0};
    const int64_t count = ops_array_get_element_count(x);
    assert_ok(ops_array_read(x, (uint64_t)count * sizeof *got, got));
    assert_true(got[0] == first);
}

#define says(words)                                                                        \
    do {                                                                                   \
        if (!strstr(hal_status_message(), LOST) || !strstr(hal_status_message(), words)) { \
            fail_msg("'%s' lacks '%s' or '%s'", hal_status_message(), LOST, words);        \
        }                                                                                  \
    } while (0)

#define refuses(call, words)                               \
    do {                                                   \
        hal_status_set(HAL_OK, "an earlier error");        \
        assert_int_equal((call), HAL_ERROR_INVALID_STATE); \
        says(words);                                       \
    } while (0)

#define refuses_array(call, words)                  \
    do {                                            \
        hal_status_set(HAL_OK, "an earlier error"); \
        assert_null(call);                          \
        says(words);                                \
    } while (0)

/* Every call that takes an array. */
static void is_lost(ops_array *x, const char *words)
{
    float got[COUNT];
    ops_tensor tensor, base;
    ops_graph *graph = NULL;
    const int32_t axes[1] = {0};
    const int64_t length = ops_array_get_element_count(x), pair[2] = {1, length};
    ops_array *other = numbers(), *index = made(ops_array_iota(context, HAL_TYPE_I32, 2, 0, 1));
    for (int again = 0; again < 2; again++) {
        refuses(ops_array_read(x, (uint64_t)length * sizeof *got, got), words);
        refuses(ops_array_evaluate(&x, 1), words);
        refuses(ops_array_get_tensor(x, &tensor), words);
        refuses(ops_array_take_buffer(x, &tensor), words);
        refuses_array(ops_neg(x), words);
        refuses_array(ops_add(other, x), words);
        refuses_array(ops_add_scalar(x, 1), words);
        refuses_array(ops_reduce_sum(x, 0), words);
        refuses_array(ops_array_copy(x), words);
        refuses_array(ops_array_slice(x, 0, 0, 1, 1), words);
        refuses_array(ops_array_permute(x, axes), words);
        refuses_array(ops_array_reshape(x, 2, pair), words);
        refuses_array(ops_array_gather(0, x, index), words);
        refuses_array(ops_array_concatenate(0, (ops_array *const[]){other, x}, 2), words);
        refuses_array(ops_array_reduce_each(OPS_REDUCE_SUM, OPS_SQUARE, &x, 1), words);
        assert_ok(ops_array_describe(x, &base));
        assert_ok(ops_tensor_slice(&base, 0, 0, 1, 1, &tensor));
        ops_array *one = made(ops_array_slice(other, 0, 0, 1, 1));
        refuses_array(ops_array_update(x, &tensor, one), words);
        refuses_array(ops_array_update(one, &tensor, x), words);
        assert_ok(ops_graph_begin(context));
        ops_array *y = made(ops_neg(other));
        refuses(ops_graph_end(context, &x, 1, &y, 1, &graph), words);
        release_all(one, y);
    }
    assert_false(ops_array_is_sole_holder(x));
    has(other, 1);
    release_all(other, index);
}

TEST_WITH(an_evaluated_array_is_lost, begin, end)
{
    ops_array *x = evaluated(numbers()), *before = evaluated(ops_neg(x));
    ops_array *y = made(ops_exp(x)), *other = made(ops_abs(x));
    next_batch_fails();
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(y, "got one (exp), which");
    has(before, -1);
    has(other, 1);
    release_all(x, y, before, other);
}

TEST_WITH(a_read_array_is_lost, begin, end)
{
    float got[COUNT];
    ops_array *x = evaluated(numbers()), *y = made(ops_square(x)), *other = made(ops_abs(x));
    next_batch_fails();
    assert_int_equal(ops_array_read(y, sizeof got, got), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(y, "got one (square), which");
    has(other, 1);
    has(x, 1);
    release_all(x, y, other);
}

/* The program's own flush tells its failure to the program. */
TEST_WITH(a_flush_of_the_queue_loses_what_it_should_have_computed, begin, end)
{
    ops_array *before = evaluated(numbers());
    ops_array *x = numbers(), *later = made(ops_neg(x)), *last = made(ops_exp(later));
    ops_array *view = made(ops_array_slice(x, 0, 2, 3, 1)), *apart = made(ops_neg(before));
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(x, "got one (data), which");
    is_lost(later, "got one (neg), whose source (data)");
    is_lost(last, "got one (exp), whose source (data)");
    is_lost(view, "got one (data), which");
    has(apart, -1);
    has(before, 1);
    ops_array *again = numbers();
    has(again, 1);
    release_all(before, x, later, last, view, apart, again);
}

TEST_WITH(the_message_names_places_of_the_program, begin, end)
{
    float got[COUNT];
    ops_array *x = evaluated(numbers());
    ops_sites *sites = &ops_arrays_of(context)->sites;
    sites->now = ops_sites_number(sites, (ops_site){"src/model.py", 12});
    ops_array *y = made(ops_exp(x));
    sites->now = ops_sites_number(sites, (ops_site){"src/model.py", 13});
    ops_array *z = made(ops_reduce_sum(y, 0));
    next_batch_fails();
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_ERROR_OUT_OF_MEMORY);
    refuses(ops_array_read(y, sizeof got, got), "got one (exp, model.py:12), which");
    refuses(ops_array_read(z, 4, got),
            "got one (reduce, model.py:13), whose source (exp, model.py:12)");
    release_all(x, y, z);
}

/* The message is that of the first failure, and the queue can be used after each. */
TEST_WITH(losses_keep_their_causes, begin, end)
{
    enum { LOSSES = 7 };
    ops_array *lost[LOSSES], *kept[LOSSES];
    for (int i = 0; i < LOSSES; i++) {
        kept[i] = evaluated(numbers());
        lost[i] = numbers();
        next_batch_fails();
        assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < LOSSES; i++) {
        is_lost(lost[i], "got one (data), which");
        is_lost(lost[i], "submitting 1 commands");
        has(kept[i], 1);
    }
    arrays_release(lost, LOSSES);
    arrays_release(kept, LOSSES);
}

/* A context that makes no call between several losses finds all of them. */
TEST_WITH(an_idle_context_finds_all_losses, begin, end)
{
    enum { LOSSES = 7 };
    hal_buffer *buffer = mock_buffer(device, 64);
    ops_array *before = evaluated(numbers()), *x = numbers();
    for (int i = 0; i < LOSSES; i++) {
        assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1));
        next_batch_fails();
        assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    }
    is_lost(x, "got one (data), which");
    is_lost(x, "submitting 2 commands"); /* the first */
    has(before, 1);
    release_all(before, x);
    hal_buffer_release(buffer);
}

TEST_WITH(a_recorded_array_is_submitted_by_the_next_flush, begin, end)
{
    ops_array *x = evaluated(numbers()), *y = made(ops_neg(x)), *none = NULL;
    const uint32_t submissions = atomic_load(&mock->calls[MOCK_SUBMIT]);
    assert_ok(ops_array_record(&y, 1));
    assert_ok(ops_array_record(&y, 0));
    assert_int_equal(ops_array_record(&none, 1), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(atomic_load(&mock->calls[MOCK_SUBMIT]), submissions);
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(y, "the mock was told to fail");
    has(x, 1);
    release_all(x, y);
}

/* A kernel of the batch is compiled in the background, and fails. */
TEST_WITH(a_batch_without_its_kernel_is_lost, begin, end)
{
    hal_ir_builder *b = NULL;
    hal_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create("missing", &b));
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_i32(b, 1));
    hal_buffer *buffer = mock_buffer(device, 256);
    const hal_range range = {buffer, 0, HAL_WHOLE};
    ops_array *before = evaluated(numbers()), *x = numbers();
    atomic_store(&mock->fail_with, HAL_ERROR_COMPILE);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    assert_ok(hal_kernel_create_ahead(device, b, NULL, &kernel));
    assert_ok(hal_queue_dispatch(queue, kernel, (uint32_t[3]){1, 1, 1}, &range, 1, NULL, 0));
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_COMPILE);
    is_lost(x, "the mock was told to fail");
    has(before, 1);
    release_all(before, x);
    hal_kernel_release(kernel);
    hal_ir_builder_destroy(b);
    hal_buffer_release(buffer);
}

TEST_WITH(an_update_in_place_is_lost, begin, end)
{
    ops_tensor all, part;
    ops_array *x = evaluated(numbers()), *value = made(ops_array_scalar(context, HAL_TYPE_F32, 9));
    assert_ok(ops_array_describe(x, &all));
    assert_ok(ops_tensor_slice(&all, 0, 1, 2, 1, &part));
    ops_array *y = made(ops_array_update(x, &part, value));
    ops_array_release(x); /* its memory becomes that of y */
    next_batch_fails();
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(y, "got one (update), which");
    /* What replaces all elements needs none of them. */
    ops_array *again = numbers(), *whole = made(ops_array_update(y, &all, again));
    has(whole, 1);
    release_all(y, value, again, whole);
}

TEST_WITH(a_deferred_update_of_all_elements_survives, begin, end)
{
    ops_tensor all, part;
    ops_array *x = evaluated(numbers()), *lost = numbers();
    assert_ok(ops_array_describe(lost, &all));
    assert_ok(ops_tensor_slice(&all, 0, 1, 2, 1, &part));
    ops_array *two = made(ops_array_slice(x, 0, 0, 2, 1)), *value = made(ops_neg(x));
    ops_array *whole = made(ops_array_update(lost, &all, value));
    ops_array *some = made(ops_array_update(lost, &part, two));
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    has(whole, -1);
    is_lost(some, "got one (update), whose source (data)");
    release_all(x, lost, two, value, whole, some);
}

/* A joined call shares buffers and makes up for a lack of memory, also for that of a submission. */
TEST_WITH(joined_arrays_are_lost, begin, end)
{
    enum { MANY = 12 };
    ops_array *x[MANY], *y[MANY], *apart = evaluated(numbers());
    for (int i = 0; i < MANY; i++) {
        x[i] = numbers();
        y[i] = made(ops_neg(x[i]));
    }
    next_batch_fails();
    const hal_status status = ops_array_evaluate(y, MANY);
    assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < MANY; i++) {
        is_lost(y[i], "got one (neg)");
        is_lost(x[i], "got one (data), which");
    }
    has(apart, 1);
    arrays_release(x, MANY);
    arrays_release(y, MANY);
    ops_array_release(apart);
}

/* The limit of a batch's commands is reached within the call. */
TEST_WITH(a_full_batch_is_lost, begin, end)
{
    enum { MANY = 12 };
    ops_array *x[MANY], *y[MANY], *apart = evaluated(numbers());
    float got[COUNT];
    for (int n = 1; n < 4; n++) {
        for (int i = 0; i < MANY; i++) {
            x[i] = numbers();
            y[i] = made(ops_neg(x[i]));
        }
        assert_ok(hal_queue_flush(queue, NULL));
        assert_ok(hal_queue_set_batch(queue, 2, 2));
        atomic_store(&mock->fail_with, HAL_ERROR_OUT_OF_MEMORY);
        atomic_store(&mock->fail_in[MOCK_SUBMIT], n);
        const hal_status evaluation = ops_array_evaluate(y, MANY);
        assert_true(evaluation != HAL_OK || atomic_load(&mock->fail_in[MOCK_SUBMIT]) > 0);
        assert_true(evaluation != HAL_OK || n > 1);
        atomic_store(&mock->fail_in[MOCK_SUBMIT], 0);
        for (int i = 0; i < MANY; i++) {
            const hal_status status = ops_array_read(y[i], sizeof got, got);
            if (status == HAL_OK) {
                assert_true(got[0] == -1);
            } else {
                is_lost(y[i], "got one (neg)");
            }
        }
        assert_ok(hal_queue_set_batch(queue, 0, 0));
        arrays_release(x, MANY);
        arrays_release(y, MANY);
    }
    has(apart, 1);
    ops_array_release(apart);
}

/* Constants are kept between calls, but not those of a lost batch. */
TEST_WITH(lost_constants_are_filled_again, begin, end)
{
    ops_array *x = evaluated(numbers());
    ops_array *one = made(ops_array_scalar(context, HAL_TYPE_F32, 1)),
              *places = made(ops_array_iota(context, HAL_TYPE_F32, COUNT, 5, 1));
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    ops_array *again = made(ops_array_scalar(context, HAL_TYPE_F32, 1)),
              *sum = made(ops_add(x, again)),
              *places_again = made(ops_array_iota(context, HAL_TYPE_F32, COUNT, 5, 1));
    float got;
    refuses(ops_array_read(one, sizeof got, &got), "got one (full), which");
    refuses_array(ops_neg(one), "got one (full), which");
    is_lost(places, "got one (data), which");
    has(sum, 2);
    has(places_again, 5);
    /* A constant of a batch that ran is not lost with the batch that uses it. */
    ops_array *used = made(ops_array_scalar(context, HAL_TYPE_F32, 1)), *y = made(ops_add(x, used));
    next_batch_fails();
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_ERROR_OUT_OF_MEMORY);
    has(used, 1);
    release_all(x, one, places, again, sum, places_again, used, y);
}

TEST_WITH(a_launch_of_a_graph_is_lost, begin, end)
{
    ops_graph *graph = NULL;
    ops_array *x = evaluated(numbers()), *out[1], *y;
    assert_ok(ops_graph_begin(context));
    y = made(ops_neg(x));
    assert_ok(ops_graph_end(context, &x, 1, &y, 1, &graph));
    ops_array_release(y);
    assert_ok(ops_graph_launch(graph, &x, 1, out, 1));
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    is_lost(out[0], "got one (data), which");
    refuses(ops_graph_launch(graph, out, 1, &y, 1), "ops_graph_launch: operand 0");
    ops_array_release(out[0]);
    assert_ok(ops_graph_launch(graph, &x, 1, out, 1));
    has(out[0], -1);
    release_all(x, out[0]);
    ops_graph_destroy(graph);
}

TEST_WITH(a_lost_array_aborts_a_collective, begin, end)
{
    hal_comm *comm = NULL;
    ops_array *x = numbers(), *sum = NULL;
    assert_ok(hal_comm_create_local(&device, 1, 0, &comm));
    next_batch_fails();
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    refuses(ops_array_all_reduce(comm, OPS_REDUCE_SUM, &x, 1, NULL, &sum), "got one (data), which");
    hal_comm_destroy(comm);
    ops_array_release(x);
}

/* ---- Batches that are dropped after their flush ---- */

typedef struct late {
    hal_device *device;
    hal_queue *queue;
    hal_buffer *buffer;
} late;

/* The context's next batches wait for a device that does not begin. */
static late late_begin(void)
{
    late l = {.device = mock_open("mock:1")};
    hal_point point;
    l.queue = mock_queue(l.device);
    l.buffer = mock_buffer(l.device, 64);
    atomic_store(&mock->hold, 1);
    assert_ok(hal_queue_fill(l.queue, (hal_range){l.buffer, 0, 4}, 1));
    assert_ok(hal_queue_flush(l.queue, &point));
    assert_ok(hal_queue_wait_point(queue, point));
    return l;
}

/* It begins, and the batch that waits fails. */
static void late_fail(late *l)
{
    next_batch_fails();
    atomic_store(&mock->hold, 0);
    assert_ok(hal_queue_wait(l->queue, HAL_WAIT_FOREVER));
}

static void late_end(late *l)
{
    hal_buffer_release(l->buffer);
    hal_queue_destroy(l->queue);
    hal_device_release(l->device);
}

TEST_WITH(a_batch_that_was_held_is_lost, begin, end)
{
    float got[COUNT];
    ops_array *before = evaluated(numbers());
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    late l = late_begin();
    ops_array *x = evaluated(numbers()), *y = evaluated(ops_neg(x)), *z = made(ops_exp(y));
    late_fail(&l);
    refuses(ops_array_read(x, sizeof got, got), "got one (data), which");
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    assert_ok(hal_queue_flush(queue, NULL));
    is_lost(x, "got one (data), which");
    is_lost(y, "got one (neg), which");
    is_lost(z, "got one (exp), whose source (neg)");
    has(before, 1);
    release_all(before, x, y, z);
    late_end(&l);
}

TEST_WITH(a_graph_that_reads_a_batch_that_was_held_is_lost, begin, end)
{
    ops_graph *graph = NULL, *other = NULL;
    ops_array *before = evaluated(numbers()), *y, *out[1];
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    late l = late_begin();
    ops_array *x = evaluated(numbers());
    assert_ok(ops_graph_begin(context));
    y = made(ops_add(x, before));
    assert_ok(ops_graph_end(context, &before, 1, &y, 1, &graph));
    ops_array_release(y);
    late_fail(&l);
    refuses(ops_graph_launch(graph, &before, 1, out, 1), "ops_graph_launch: graph: ");
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    refuses(ops_graph_launch(graph, &before, 1, out, 1), "ops_graph_launch: graph: ");
    assert_ok(ops_graph_begin(context));
    y = made(ops_neg(before));
    assert_ok(ops_graph_end(context, &before, 1, &y, 1, &other));
    assert_ok(ops_graph_launch(other, &before, 1, out, 1));
    has(out[0], -1);
    release_all(before, x, y, out[0]);
    ops_graph_destroy(graph);
    ops_graph_destroy(other);
    late_end(&l);
}

/* What another queue copies of a batch that is dropped later. */
TEST_WITH(a_batch_that_waits_for_a_lost_one_is_lost, begin, end)
{
    hal_queue *next = mock_queue(device);
    ops_context *second = NULL;
    ops_tensor from, to;
    hal_point point;
    float got[COUNT];
    assert_ok(ops_context_create(next, &second));
    ops_array *kept = made(ops_array_from_host(second, HAL_TYPE_F32, 1, shape, got));
    assert_ok(ops_array_evaluate(&kept, 1));
    late l = late_begin();
    ops_array *x = evaluated(numbers());
    assert_ok(ops_array_get_tensor(x, &from));
    assert_ok(hal_queue_flush(queue, &point));
    assert_ok(hal_queue_wait_point(next, point));
    assert_ok(ops_tensor_create(second, HAL_TYPE_F32, 1, shape, &to));
    assert_ok(ops_copy(second, &from, &to));
    ops_array *y = made(ops_array_from_tensor(second, &to));
    ops_tensor_release(&to);
    assert_ok(ops_array_evaluate(&y, 1));
    assert_ok(hal_queue_flush(next, NULL));
    late_fail(&l);
    refuses(ops_array_read(y, sizeof got, got), "it waited for another queue: ");
    assert_ok(ops_array_read(kept, sizeof got, got));
    /* Its points from now on do not depend on the loss, which its program has seen. */
    ops_array *later = made(ops_neg(kept));
    assert_ok(ops_array_evaluate(&later, 1));
    assert_ok(hal_queue_flush(next, &point));
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    assert_ok(hal_queue_wait_point(queue, point));
    ops_array *after = evaluated(numbers());
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(*hal_queue_get_loss_count(queue), 1);
    has(after, 1);
    release_all(x, y, kept, later, after);
    late_end(&l);
    ops_context_destroy(second);
    hal_queue_destroy(next);
}

/* `to` waits for all of `from`, and runs a batch. */
static void queue_exchange(hal_queue *from, hal_queue *to, hal_buffer *buffer)
{
    hal_point point;
    assert_ok(hal_queue_flush(from, &point));
    assert_ok(hal_queue_wait_point(to, point));
    assert_ok(hal_queue_fill(to, (hal_range){buffer, 0, 4}, 1));
    assert_ok(hal_queue_flush(to, NULL));
}

/* Queues wait for each other, and the program asks for no losses: it gets the error. */
TEST_WITH(queues_that_wait_for_each_other_lose_what_was_flushed, begin, end)
{
    hal_queue *next = mock_queue(device), *third = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 64);
    ops_array *before = evaluated(numbers());
    late l = late_begin();
    ops_array *x = evaluated(numbers());
    queue_exchange(queue, next, buffer);
    late_fail(&l);
    /* Until the error is told, each point depends on the loss. */
    queue_exchange(next, third, buffer);
    assert_int_equal(*hal_queue_get_loss_count(next), 1);
    assert_int_equal(*hal_queue_get_loss_count(third), 1);
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 4; i++) {
        queue_exchange(next, queue, buffer);
        queue_exchange(queue, next, buffer);
        queue_exchange(third, next, buffer);
        queue_exchange(next, third, buffer);
    }
    assert_int_equal(*hal_queue_get_loss_count(queue), 2); /* it waited for an old point */
    assert_in_range(*hal_queue_get_loss_count(next), 1, 2);
    assert_int_equal(*hal_queue_get_loss_count(third), 1);
    is_lost(x, "got one (data), which");
    has(before, 1);
    release_all(x, before);
    hal_buffer_release(buffer);
    late_end(&l);
    hal_queue_destroy(next);
    hal_queue_destroy(third);
}

/* The wait is called when the point is reached, and before what it is for is recorded. */
TEST_WITH(a_batch_that_waits_for_a_lost_one_that_was_reached_is_lost, begin, end)
{
    hal_queue *next = mock_queue(device);
    ops_context *second = NULL;
    hal_point point;
    float got[COUNT] = {0};
    assert_ok(ops_context_create(next, &second));
    late l = late_begin();
    ops_array *x = evaluated(numbers());
    assert_ok(hal_queue_flush(queue, &point));
    late_fail(&l);
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_wait_point(next, point));
    ops_array *y = made(ops_array_from_host(second, HAL_TYPE_F32, 1, shape, got));
    assert_ok(ops_array_evaluate(&y, 1));
    assert_ok(hal_queue_flush(next, NULL));
    refuses(ops_array_read(y, sizeof got, got), "it waited for another queue: ");
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    release_all(x, y);
    late_end(&l);
    ops_context_destroy(second);
    hal_queue_destroy(next);
}

/* Its point is valid when the queue is destroyed and its memory is used for another. */
TEST_WITH(a_batch_that_waits_for_a_destroyed_queue_is_lost, begin, end)
{
    hal_queue *old = mock_queue(device), *next = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_point point;
    hal_loss loss;
    late l = late_begin();
    ops_array *x = evaluated(numbers());
    queue_exchange(queue, old, buffer);
    assert_ok(hal_queue_flush(old, &point));
    late_fail(&l);
    hal_queue_destroy(old);
    hal_queue *again = mock_queue(device);
    assert_ptr_equal(again, old);
    assert_int_equal(*hal_queue_get_loss_count(again), 0);
    assert_ok(hal_queue_wait_point(next, point));
    assert_ok(hal_queue_fill(next, (hal_range){buffer, 0, 4}, 1));
    assert_ok(hal_queue_flush(next, NULL));
    assert_ok(hal_queue_get_loss(next, 0, &loss));
    assert_int_equal(loss.count, 1);
    assert_int_equal(loss.status, HAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(loss.message, "it waited for another queue: "));
    queue_exchange(again, next, buffer); /* the point of another life */
    assert_int_equal(*hal_queue_get_loss_count(next), 1);
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
    ops_array_release(x);
    hal_buffer_release(buffer);
    late_end(&l);
    hal_queue_destroy(again);
    hal_queue_destroy(next);
}

/* In the order of its axes in memory. */
TEST_WITH(a_lost_array_of_another_order_is_replaced, begin, end)
{
    static const int32_t axes[2] = {1, 0};
    static const int64_t wide[2] = {2, COUNT / 2};
    ops_tensor all;
    float values[COUNT], got[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)i;
    }
    for (int is_deferred = 0; is_deferred < 2; is_deferred++) {
        ops_array *x = made(ops_array_from_host(context, HAL_TYPE_F32, 2, wide, values));
        ops_array *turned = made(ops_array_permute(x, axes));
        ops_array *kept = evaluated(ops_exp(turned));
        assert_ok(hal_queue_flush(queue, NULL));
        ops_array *lost = made(ops_neg(turned));
        assert_ok(ops_array_get_tensor(lost, &all)); /* recorded, not flushed */
        assert_int_equal(all.stride[0], 1);
        assert_ok(ops_array_describe(lost, &all));
        ops_array *whole = is_deferred ? made(ops_array_update(lost, &all, kept)) : NULL;
        next_batch_fails();
        assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY);
        whole = whole ? whole : made(ops_array_update(lost, &all, kept));
        assert_ok(ops_array_read(whole, sizeof got, got));
        refuses(ops_array_read(lost, sizeof got, got), "got one (neg), which");
        assert_true(got[0] == 1);
        assert_float_equal(got[1], 54.59815f, 1e-3f); /* exp(4) */
        release_all(x, turned, lost, kept, whole);
    }
}

static int group_begin(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    return 0;
}

UNIT_MAIN(group_begin, NULL)
