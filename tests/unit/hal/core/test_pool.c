/* The pool: classes, reuse in order of points, out of memory, statistics. */
#include "mock_device.h"

#include <hal/memory_peaks.h>
#include <pthread.h>
#include <time.h>

static hal_memory_statistics memory_now(void)
{
    hal_memory_statistics now;
    assert_ok(hal_device_get_memory(device, &now));
    return now;
}

static hal_memory_peaks peaks_now(void)
{
    hal_memory_peaks now;
    assert_ok(hal_device_get_memory_peaks(device, &now));
    return now;
}

static void touch(hal_queue *on, hal_buffer *buffer)
{
    assert_ok(hal_queue_fill(on, (hal_range){buffer, 0, 4}, 1));
}

static int reset(void **state)
{
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    hal_device_trim(device);
    mock_reset(mock);
    return 0;
}

TEST_WITH(released_memory_comes_back_without_the_driver, reset, NULL)
{
    hal_buffer_release(mock_buffer(device, 4 << 20));
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    for (int i = 0; i < 1000; i++) {
        hal_buffer *buffer = mock_buffer(device, (4 << 20) - i * 10);
        touch(queue, buffer);
        hal_buffer_release(buffer);
    }
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before);
    assert_int_equal(memory_now().in_use_bytes, 0);
    assert_int_equal(memory_now().pooled_bytes, 4 << 20);
    assert_true(memory_now().reuse_count >= 1000);
}

TEST_WITH(peaks_are_counted_from_their_reset, reset, NULL)
{
    hal_buffer *first = mock_buffer(device, 8u << 20), *second = mock_buffer(device, 4u << 20);
    hal_buffer_release(first);
    assert_ok(hal_device_reset_memory_peaks(device));
    assert_int_equal(peaks_now().in_use_bytes, 4u << 20);
    assert_int_equal(peaks_now().held_bytes, 12u << 20);
    first = mock_buffer(device, 8u << 20); /* from the pool */
    assert_int_equal(peaks_now().in_use_bytes, 12u << 20);
    assert_int_equal(peaks_now().held_bytes, 12u << 20);
    hal_buffer_release(second);
    second = mock_buffer(device, 1u << 20); /* a part of what was released */
    assert_int_equal(memory_now().in_use_bytes, 9u << 20);
    assert_int_equal(memory_now().pooled_bytes, 3u << 20);
    hal_buffer_release(second);
    hal_buffer_release(first);
    hal_device_trim(device);
    first = mock_buffer(device, 14u << 20);
    hal_buffer_release(first);
    assert_int_equal(peaks_now().in_use_bytes, 14u << 20);
    assert_int_equal(peaks_now().held_bytes, 14u << 20);
}

TEST_WITH(the_best_fit_is_taken, reset, NULL)
{
    static const uint64_t sizes[] = {10u << 20, 8u << 20, 12u << 20};
    hal_buffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = mock_buffer(device, sizes[i]);
    }
    for (int i = 0; i < 3; i++) {
        hal_buffer_release(buffers[i]);
    }
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    hal_buffer *seven = mock_buffer(device, 7u << 20), *eight = mock_buffer(device, 8u << 20);
    hal_buffer *large = mock_buffer(device, 12u << 20);
    assert_int_equal(memory_now().in_use_bytes, 27u << 20);
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before);
    hal_buffer_release(seven);
    hal_buffer_release(eight);
    hal_buffer_release(large);
    /* A block that is not divided and more than half as large again is not wasted. */
    hal_device_trim(device);
    hal_buffer_release(mock_buffer(device, 512u << 10));
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before + 1);
    hal_buffer *small = mock_buffer(device, 128u << 10);
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before + 2);
    hal_buffer_release(small);
}

TEST_WITH(parts_of_blocks_are_joined_again, reset, NULL)
{
    enum { PARTS = 5 };
    static const int order[PARTS] = {3, 1, 4, 2, 0};
    hal_buffer_release(mock_buffer(device, PARTS * (3u << 20)));
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    hal_buffer *parts[PARTS];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < PARTS; i++) {
            parts[i] = mock_buffer(device, 3u << 20);
            touch(queue, parts[i]);
        }
        for (int i = 0; i < PARTS; i++) {
            hal_buffer_release(parts[order[i]]);
        }
        hal_buffer *whole = mock_buffer(device, PARTS * (3u << 20));
        touch(queue, whole);
        hal_buffer_release(whole);
    }
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before);
    assert_ok(hal_queue_flush(queue, NULL));
    for (uint32_t i = 0; i + 1 < PARTS; i++) {
        const hal_binding *at = &mock->logged[i].bindings[0];
        const hal_binding *next = &mock->logged[i + 1].bindings[0];
        assert_ptr_equal(at->memory, next->memory);
        assert_int_equal(next->offset - at->offset, 3u << 20);
    }
}

/* Joined, they would make one queue wait for the other. */
TEST_WITH(parts_that_two_queues_use_stay_apart_until_both_are_idle, reset, NULL)
{
    hal_buffer_release(mock_buffer(device, 8u << 20));
    hal_queue *other = mock_queue(device);
    hal_buffer *first = mock_buffer(device, 4u << 20), *second = mock_buffer(device, 4u << 20);
    mock->hold = 1;
    touch(queue, first);
    touch(other, second);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ok(hal_queue_flush(other, NULL));
    hal_buffer_release(first);
    hal_buffer_release(second);
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    hal_buffer *whole = mock_buffer(device, 8u << 20);
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before + 1);
    hal_buffer_release(whole);
    mock->hold = 0;
    hal_queue_destroy(other);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_device_trim(device));
    assert_int_equal(mock->live_memories, 0);
}

/* Many small idle blocks are given up for a large one, which serves both. */
TEST_WITH(small_idle_blocks_make_room_for_a_large_one, reset, NULL)
{
    hal_buffer *small[16];
    for (int i = 0; i < 16; i++) {
        small[i] = mock_buffer(device, 2u << 20);
    }
    for (int i = 0; i < 16; i++) {
        hal_buffer_release(small[i]);
    }
    hal_buffer *large = mock_buffer(device, 24u << 20);
    assert_int_equal(memory_now().in_use_bytes, 24u << 20);
    assert_int_equal(memory_now().pooled_bytes, 8u << 20);
    hal_buffer_release(large);
}

TEST_WITH(little_is_wasted, reset, NULL)
{
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 28; bytes = bytes * 5 / 4 + 1) {
        hal_device_trim(device);
        hal_buffer *buffer = mock_buffer(device, bytes);
        const uint64_t held = memory_now().in_use_bytes;
        assert_true(held >= bytes && held % 256 == 0);
        assert_true(held <= bytes * 5 / 4 + 256 && held < bytes + (2u << 20));
        hal_buffer_release(buffer);
    }
}

TEST_WITH(another_queue_waits_for_the_last_use, reset, NULL)
{
    hal_queue *other = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 1 << 20);
    mock->hold = 1;
    touch(queue, buffer);
    hal_buffer_release(buffer);
    hal_point first;
    hal_point second;
    hal_queue_flush(queue, &first);
    buffer = mock_buffer(device, 1 << 20);
    touch(other, buffer);
    hal_queue_flush(other, &second);
    assert_ptr_equal(mock->logged[0].bindings[0].memory, mock->logged[1].bindings[0].memory);
    mock->hold = 0;
    /* The mock runs a queue only after its waits: reaching the second means the first is. */
    assert_ok(hal_point_wait(second, HAL_WAIT_FOREVER));
    assert_ok(hal_point_wait(first, 0));
    hal_buffer_release(buffer);
    hal_queue_destroy(other);
}

TEST_WITH(work_not_yet_flushed_is_never_waited_for, reset, NULL)
{
    hal_queue *other = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 1 << 20);
    touch(queue, buffer);
    hal_buffer_release(buffer);
    buffer = mock_buffer(device, 1 << 20); /* the same block, as this thread used it last */
    touch(other, buffer);                  /* but the other queue cannot wait for that */
    hal_point point;
    assert_ok(hal_queue_flush(other, &point));
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ptr_not_equal(mock->logged[0].bindings[0].memory, mock->logged[1].bindings[0].memory);
    hal_buffer_release(buffer);
    hal_queue_destroy(other);
}

TEST_WITH(mapping_never_meets_work_in_flight, reset, NULL)
{
    hal_buffer *buffer = NULL;
    hal_buffer *target = mock_buffer(device, 4096);
    void *pointer = NULL;
    mock->hold = 1;
    void *seen[8];
    for (int i = 0; i < 8; i++) {
        assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 4096, &buffer));
        assert_ok(hal_buffer_map_begin(buffer, &pointer));
        assert_fails(hal_buffer_map_begin(buffer, &pointer), HAL_ERROR_INVALID_STATE,
                     "is mapped already");
        assert_null(pointer);
        assert_ok(hal_buffer_map_end(buffer));
        assert_ok(hal_buffer_map_begin(buffer, &pointer));
        seen[i] = pointer;
        memset(pointer, i, 4096);
        assert_ok(hal_buffer_map_end(buffer));
        assert_fails(hal_buffer_map_end(buffer), HAL_ERROR_INVALID_STATE, "is not mapped");
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(seen[i], seen[j]);
        }
        assert_ok(hal_queue_copy(queue, (hal_range){buffer, 0, 512},
                                 (hal_range){target, (uint64_t)i * 512, 512}));
        hal_buffer_release(buffer);
    }
    mock->hold = 0;
    uint8_t bytes[4096];
    assert_ok(hal_queue_read(queue, target, 0, sizeof bytes, bytes));
    for (int i = 0; i < 4096; i++) {
        assert_int_equal(bytes[i], i / 512);
    }
    assert_fails(hal_buffer_map_begin(target, &pointer), HAL_ERROR_UNSUPPORTED,
                 "expected a kind that mock:0 maps, got HAL_MEMORY_DEVICE");
    hal_buffer_release(target);
}

/* Promise 22. */
TEST_WITH(out_of_memory_trims_and_tries_again, reset, NULL)
{
    mock->memory_limit = UINT64_C(256) << 20;
    hal_buffer *one = mock_buffer(device, 100 << 20);
    hal_buffer *other = mock_buffer(device, 150 << 20);
    touch(queue, one);
    mock->hold = 1;
    touch(queue, other);
    hal_queue_flush(queue, NULL);
    mock->hold = 0;
    hal_buffer_release(one);
    hal_buffer_release(other);
    hal_buffer *large = NULL;
    assert_fails(hal_buffer_create(device, HAL_MEMORY_KIND_COUNT, 8, &large),
                 HAL_ERROR_INVALID_ARGUMENT, "kind");
    char before[256];
    snprintf(before, sizeof before, "%s", hal_status_message());
    large = mock_buffer(device, 200 << 20);            /* waits for the two and frees them */
    assert_string_equal(hal_status_message(), before); /* the first attempt failed */
    hal_buffer *more = NULL;
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    assert_fails(hal_buffer_create(device, HAL_MEMORY_DEVICE, 100 << 20, &more),
                 HAL_ERROR_OUT_OF_MEMORY,
                 "104857600 bytes of device memory requested, 58720256 of");
    assert_null(more);
    hal_buffer_release(large);
    more = mock_buffer(device, 240 << 20);
    hal_buffer_release(more);
}

/* A rejected batch has used nothing: its memory is free. */
TEST_WITH(a_dropped_batch_holds_no_memory, reset, NULL)
{
    mock->memory_limit = UINT64_C(256) << 20;
    hal_buffer *one = mock_buffer(device, 100 << 20);
    touch(queue, one);
    mock->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    mock->fail_in[MOCK_SUBMIT] = 1;
    assert_fails(hal_queue_flush(queue, NULL), HAL_ERROR_OUT_OF_MEMORY, "submitting 1 commands");
    hal_buffer_release(one);
    one = mock_buffer(device, 200 << 20);
    hal_buffer_release(one);
}

/* Much that two queues have in flight does not keep a third from the memory that it uses again. */
TEST_WITH(queues_that_lag_cost_others_no_memory, reset, NULL)
{
    enum { LARGE = 64 << 10, LAGGING = 100, WRITES = 1000 };
    static uint8_t data[LARGE];
    hal_queue *others[2] = {mock_queue(device), mock_queue(device)};
    hal_buffer *buffer = mock_buffer(device, LARGE);
    hal_buffer *target = mock_buffer(device, LARGE);
    for (int i = 0; i < 2; i++) {
        assert_ok(hal_queue_set_batch(others[i], LAGGING, LAGGING));
    }
    for (int i = 0; i < 2 * LAGGING; i++) {
        assert_ok(hal_queue_write(others[i % 2], target, 0, data, LARGE));
    }
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    for (int i = 0; i < WRITES; i++) {
        assert_ok(hal_queue_write(queue, buffer, 0, data, LARGE));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    }
    assert_int_equal(mock->calls[MOCK_ALLOCATE], before + 1);
    hal_buffer_release(buffer);
    hal_buffer_release(target);
    hal_queue_destroy(others[0]);
    hal_queue_destroy(others[1]);
}

static _Atomic int progress;

static void *create_large(void *argument)
{
    hal_buffer *large = NULL;
    const hal_status status = hal_buffer_create(device, HAL_MEMORY_DEVICE, 200 << 20, &large);
    hal_buffer_release(large);
    return status == HAL_OK ? NULL : argument;
}

static void *create_small(void *argument)
{
    hal_buffer *small = NULL;
    if (hal_buffer_create(device, HAL_MEMORY_DEVICE, 4096, &small) != HAL_OK) {
        return argument;
    }
    hal_buffer_release(small);
    progress = 1;
    return NULL;
}

/* A thread without memory waits for the device; other threads allocate and release meanwhile. */
TEST_WITH(a_trim_that_waits_stalls_no_other_thread, reset, NULL)
{
    (void)state;
    enum { PATIENCE_MS = 60000 }; /* which only a failure takes */
    const struct timespec millisecond = {.tv_nsec = 1000000};
    mock->memory_limit = UINT64_C(256) << 20;
    hal_buffer *busy = mock_buffer(device, 100 << 20);
    mock->hold = 1;
    touch(queue, busy);
    assert_ok(hal_queue_flush(queue, NULL));
    hal_buffer_release(busy);
    pthread_t threads[2];
    void *results[2];
    progress = 0;
    assert_int_equal(pthread_create(&threads[0], NULL, create_large, &progress), 0);
    while (mock->calls[MOCK_WAIT] == 0) {
        nanosleep(&millisecond, NULL);
    }
    assert_int_equal(pthread_create(&threads[1], NULL, create_small, &progress), 0);
    for (int i = 0; i < PATIENCE_MS && !progress; i++) {
        nanosleep(&millisecond, NULL);
    }
    const int progress_while_waiting = progress;
    mock->hold = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &results[i]);
        assert_null(results[i]);
    }
    assert_int_equal(progress_while_waiting, 1);
}

/* It could not be divided, so all of it would be in use. */
TEST_WITH(a_block_of_two_queues_serves_no_small_request, reset, NULL)
{
    hal_queue *other = mock_queue(device);
    hal_buffer *large = mock_buffer(device, 256u << 20);
    mock->hold = 1;
    touch(queue, large);
    touch(other, large);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ok(hal_queue_flush(other, NULL));
    hal_buffer_release(large);
    hal_buffer *small = mock_buffer(device, 1u << 20);
    assert_true(memory_now().in_use_bytes <= 2u << 20);
    mock->hold = 0;
    hal_queue_destroy(other);
    hal_buffer_release(small);
}

/* Their neighbour is in use, so the driver does not get them back. */
TEST_WITH(blocks_that_a_trim_has_joined_serve_the_request, reset, NULL)
{
    hal_queue *other = mock_queue(device);
    hal_buffer *parts[3], *wide = NULL;
    hal_buffer_release(mock_buffer(device, 64u << 20));
    for (uint32_t i = 0; i < 3; i++) {
        parts[i] = mock_buffer(device, (i < 2 ? 24u : 16u) << 20);
    }
    touch(queue, parts[0]);
    touch(other, parts[1]);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ok(hal_queue_flush(other, NULL));
    hal_buffer_release(parts[0]);
    hal_buffer_release(parts[1]);
    mock->memory_limit = 80u << 20;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, 48u << 20, &wide));
    hal_buffer_release(wide);
    hal_buffer_release(parts[2]);
    hal_queue_destroy(other);
}

TEST_WITH(exact_sizes_are_tried_when_memory_is_short, reset, NULL)
{
    mock->memory_limit = (1 << 20) + 300000;
    hal_buffer *buffer = mock_buffer(device, (1 << 20) + 299000);
    hal_buffer_release(buffer);
}

TEST_WITH(the_pool_keeps_a_part_of_the_memory_at_most, reset, NULL)
{
    hal_buffer *buffers[9];
    for (int i = 0; i < 9; i++) {
        buffers[i] = mock_buffer(device, 100 << 20);
    }
    for (int i = 0; i < 9; i++) {
        hal_buffer_release(buffers[i]);
        assert_true(memory_now().pooled_bytes <= 512u << 20);
    }
}

/* Makes six blocks of which the first MiB is in use and 99 MiB are in the pool. */
static void divide_six_blocks(hal_buffer *in_use[6], hal_buffer *pooled[6])
{
    for (int i = 0; i < 6; i++) {
        pooled[i] = mock_buffer(device, 100u << 20);
    }
    for (int i = 0; i < 6; i++) {
        hal_buffer_release(pooled[i]);
        in_use[i] = mock_buffer(device, 1u << 20);
        pooled[i] = mock_buffer(device, 99u << 20);
    }
    for (int i = 0; i < 6; i++) {
        hal_buffer_release(pooled[i]);
    }
}

/* What cannot be freed is more than the pool keeps: it trims again when there is much more. */
TEST_WITH(a_pool_that_stays_large_is_not_trimmed_at_each_release, reset, NULL)
{
    hal_buffer *in_use[6], *parts[6], *upload[2];
    divide_six_blocks(in_use, parts);
    assert_int_equal(memory_now().pooled_bytes, 594u << 20); /* the limit is 512 */
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 16u << 20, &upload[0]));
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 60u << 20, &upload[1]));
    hal_buffer_release(upload[0]);
    assert_int_equal(memory_now().pooled_bytes, 610u << 20);
    hal_buffer_release(upload[1]);
    assert_int_equal(memory_now().pooled_bytes, 594u << 20);
    /* Below the limit in between, the next release above it trims. */
    parts[0] = mock_buffer(device, 99u << 20);
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 8u << 20, &upload[0]));
    hal_buffer_release(upload[0]);
    assert_int_equal(memory_now().pooled_bytes, 503u << 20);
    hal_buffer_release(parts[0]);
    assert_int_equal(memory_now().pooled_bytes, 594u << 20);
    for (int i = 0; i < 6; i++) {
        hal_buffer_release(in_use[i]);
    }
}

/* A small request gets a part of a larger allocation; where that has no room, what it needs. */
TEST_WITH(the_exact_size_is_tried_before_the_pool_is_trimmed, reset, NULL)
{
    hal_buffer *large = mock_buffer(device, 512u << 20), *upload = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 1u << 20, &upload));
    hal_buffer_release(upload);
    mock->memory_limit = 520u << 20;
    hal_buffer *small = mock_buffer(device, 2u << 20);
    assert_int_equal(memory_now().in_use_bytes, 514u << 20);
    assert_int_equal(memory_now().pooled_bytes, 1u << 20);
    hal_buffer_release(small);
    hal_buffer_release(large);
}

TEST_WITH(trimming_gives_all_back, reset, NULL)
{
    for (int i = 1; i < 40; i++) {
        hal_buffer_release(mock_buffer(device, (uint64_t)i * 77777));
    }
    assert_true(memory_now().pooled_bytes > 0);
    assert_ok(hal_device_trim(device));
    assert_int_equal(memory_now().pooled_bytes, 0);
    assert_int_equal(mock->live_memories, 0);
}

/* By each queue for itself, also after it was destroyed and used again. */
TEST_WITH(copies_of_all_queues_are_counted, reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 4096);
    char bytes[4096] = {0};
    const uint64_t before = memory_now().copied_bytes;
    for (int i = 0; i < 3; i++) {
        hal_queue *other = mock_queue(device);
        assert_ok(hal_queue_write(other, buffer, 0, bytes, 100));
        assert_ok(hal_queue_write(queue, buffer, 0, bytes, 1000));
        assert_ok(hal_queue_read(other, buffer, 8, 24, bytes));
        assert_int_equal(memory_now().copied_bytes - before, (uint64_t)(i + 1) * 1124);
        hal_queue_destroy(other);
        assert_int_equal(memory_now().copied_bytes - before, (uint64_t)(i + 1) * 1124);
    }
    hal_buffer_release(buffer);
}

/* Promise 22: 100,000 calls. */
TEST_WITH(processes_do_not_grow, reset, NULL)
{
    hal_buffer *source = mock_buffer(device, 1000);
    for (int i = 0; i < 100000; i++) {
        hal_buffer *buffer = mock_buffer(device, 1000 + (uint64_t)(i % 50) * 100);
        assert_ok(
            hal_queue_copy(queue, (hal_range){source, 0, 1000}, (hal_range){buffer, 0, 1000}));
        hal_buffer_release(buffer);
    }
    assert_true(mock->live_memories < 60);
    hal_buffer_release(source);
}

UNIT_MAIN(device_begin, device_end)
