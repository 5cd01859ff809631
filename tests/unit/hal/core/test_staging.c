/* Staging of small writes: however many they are, whether or not the device keeps up, they go
 * through a few chunks of memory, and what is read is what was written. */
#include "mock_fixture.h"

enum { BYTES = 1 << 18, CHUNKS = 4, CHUNK_BYTES = 512 << 10, MOST = 32 << 10 };

static mock_state *mock;
static hal_device *device;
static hal_queue *queue;
static hal_buffer *buffer;

static void write_words(uint64_t offset, uint32_t value)
{
    const uint32_t words[2] = {value, ~value};
    assert_ok(hal_queue_write(queue, buffer, offset, words, sizeof words));
}

static void expect_words(uint64_t offset, uint32_t value)
{
    uint32_t words[2] = {0};
    assert_ok(hal_queue_read(queue, buffer, offset, sizeof words, words));
    assert_int_equal(words[0], value);
    assert_int_equal(words[1], ~value);
}

static int begin(void **state)
{
    mock_reset(mock);
    device = mock_open("mock:0");
    queue = mock_queue(device);
    buffer = mock_buffer(device, BYTES);
    return 0;
}

static int end(void **state)
{
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);
    return 0;
}

TEST_WITH(many_writes_take_a_few_chunks, begin, end)
{
    enum { PLACES = BYTES / 16, WRITES = 20000 };
    for (int round = 0; round < 3; round++) {
        atomic_store(&mock->slow, round == 1);
        for (uint32_t i = 0; i < WRITES; i++) {
            write_words((uint64_t)(i % PLACES) * 16, i + (uint32_t)round);
        }
        for (uint32_t i = WRITES - PLACES; i < WRITES; i += 97) {
            expect_words((uint64_t)(i % PLACES) * 16, i + (uint32_t)round);
        }
    }
    assert_true(mock->calls[MOCK_ALLOCATE] <= 1 + CHUNKS + 1); /* and what is read into */
}

/* A write that is waited for uses the same chunk again. */
TEST_WITH(alone_they_take_one, begin, end)
{
    for (uint32_t i = 0; i < 3 * CHUNK_BYTES / 256; i++) {
        write_words(64, i);
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    }
    assert_int_equal(mock->calls[MOCK_ALLOCATE], 2);
    expect_words(64, 3 * CHUNK_BYTES / 256 - 1);
}

/* A queue that has been waited for holds no memory. */
TEST_WITH(idle_they_take_none, begin, end)
{
    hal_memory_statistics now;
    write_words(0, 1);
    assert_ok(hal_device_get_memory(device, &now));
    assert_int_equal(now.in_use_bytes, BYTES + CHUNK_BYTES);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_device_get_memory(device, &now));
    assert_int_equal(now.in_use_bytes, BYTES);
}

/* All lengths about the limit, and odd ones; next to them nothing changes. */
TEST_WITH(lengths, begin, end)
{
    static const uint64_t sizes[] = {1, 3, 255, 256, 257, 4096, MOST - 1, MOST, MOST + 1, 100000};
    uint8_t *data = malloc(BYTES), *back = malloc(BYTES);
    assert_true(data && back);
    for (uint32_t turn = 0; turn < 40; turn++) {
        const uint64_t bytes = sizes[turn % (sizeof sizes / sizeof sizes[0])],
                       offset = 1 + turn * 5;
        for (uint64_t i = 0; i < bytes; i++) {
            data[i] = (uint8_t)(i * 7 + turn);
        }
        assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 0x5a5a5a5a));
        assert_ok(hal_queue_write(queue, buffer, offset, data, bytes));
        memset(data, 0, bytes); /* the caller's again */
        assert_ok(hal_queue_read(queue, buffer, offset - 1, bytes + 2, back));
        assert_int_equal(back[0], 0x5a);
        assert_int_equal(back[bytes + 1], 0x5a);
        for (uint64_t i = 0; i < bytes; i++) {
            assert_int_equal(back[i + 1], (uint8_t)(i * 7 + turn));
        }
    }
    free(data);
    free(back);
}

/* A write that finds the batch full is of the next one: it is not over when the full one is. */
TEST_WITH(a_full_batch_is_not_the_writes_own, begin, end)
{
    hal_point point;
    assert_ok(hal_queue_set_batch(queue, 1, 1));
    write_words(0, 1);
    assert_ok(hal_queue_flush(queue, &point));
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 4096, 4}, 7));
    write_words(64, 2); /* flushes the fill */
    assert_int_equal(mock->calls[MOCK_SUBMIT], 2);
    point.value++; /* the fill's */
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    write_words(128, 3);
    expect_words(0, 1);
    expect_words(64, 2);
    expect_words(128, 3);
    assert_ok(hal_queue_set_batch(queue, 0, 0));
}

/* Nothing is lost when the first chunk cannot be had, and the next write works. */
TEST_WITH(without_memory, begin, end)
{
    write_words(0, 1); /* the buffer's own memory has been used, the chunk is there */
    hal_queue *other = mock_queue(device);
    const uint32_t word = 5;
    atomic_store(&mock->fail_with, HAL_ERROR_OUT_OF_MEMORY);
    atomic_store(&mock->memory_limit, 1);
    assert_int_equal(hal_queue_write(other, buffer, 0, &word, sizeof word),
                     HAL_ERROR_OUT_OF_MEMORY);
    atomic_store(&mock->memory_limit, UINT64_C(1) << 30);
    expect_words(0, 1);
    assert_ok(hal_queue_write(other, buffer, 0, &word, sizeof word));
    uint32_t back = 0;
    assert_ok(hal_queue_read(other, buffer, 0, sizeof back, &back));
    assert_int_equal(back, word);
    hal_queue_destroy(other);
}

/* Bytes that the mock gives from now on. */
static void leave(uint64_t bytes)
{
    atomic_store(&mock->memory_limit, atomic_load(&mock->memory_bytes) + bytes);
}

/* A device that has no chunk left has 4 bytes, and many times 4 bytes. */
TEST_WITH(a_write_needs_no_more_than_itself, begin, end)
{
    enum { WRITES = 100, ROOM = 4096 };
    for (uint32_t round = 0; round < 2; round++) {
        leave(ROOM);
        atomic_store(&mock->slow, round == 1);
        for (uint32_t i = 0; i < WRITES; i++) {
            write_words(i * 8, i + round);
        }
        for (uint32_t i = 0; i < WRITES; i++) {
            expect_words(i * 8, i + round);
        }
        leave(CHUNK_BYTES); /* one again, once the queue was idle */
        write_words(0, 1);
        hal_memory_statistics now;
        assert_ok(hal_device_get_memory(device, &now));
        assert_int_equal(now.in_use_bytes, BYTES + CHUNK_BYTES);
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        assert_ok(hal_device_trim(device));
    }
    leave(0);
    const uint32_t word = 5;
    assert_fails(hal_queue_write(queue, buffer, 0, &word, sizeof word), HAL_ERROR_OUT_OF_MEMORY,
                 "4 bytes of upload memory requested");
}

/* With room for fewer chunks than there might be, what was written is waited for. */
TEST_WITH(later_chunks_that_cannot_be_had, begin, end)
{
    enum { PIECES = 64, WORDS = MOST / 4 };
    static uint32_t words[WORDS];
    hal_buffer *large = mock_buffer(device, (uint64_t)PIECES * MOST);
    for (uint32_t chunks = 1; chunks < CHUNKS; chunks++) {
        assert_ok(hal_device_trim(device));
        leave(chunks * (uint64_t)CHUNK_BYTES);
        atomic_store(&mock->slow, 1);
        for (uint32_t i = 0; i < PIECES; i++) {
            for (uint32_t w = 0; w < WORDS; w++) {
                words[w] = chunks * PIECES + i;
            }
            assert_ok(hal_queue_write(queue, large, (uint64_t)i * MOST, words, MOST));
        }
        for (uint32_t i = 0; i < PIECES; i++) {
            assert_ok(hal_queue_read(queue, large, (uint64_t)i * MOST, MOST, words));
            for (uint32_t w = 0; w < WORDS; w++) {
                assert_int_equal(words[w], chunks * PIECES + i);
            }
        }
    }
    hal_buffer_release(large);
}

/* Larger ones: what the queue has recorded goes first, where it holds the memory. */
TEST_WITH(large_writes_need_no_more_than_one, begin, end)
{
    enum { WRITES = 20, LARGE = MOST + 4, PLACES = BYTES / LARGE };
    static uint32_t words[LARGE / 4];
    leave(LARGE + 256);
    for (uint32_t i = 0; i < WRITES; i++) {
        words[0] = words[LARGE / 4 - 1] = i;
        assert_ok(hal_queue_write(queue, buffer, (uint64_t)(i % PLACES) * LARGE, words, LARGE));
    }
    for (uint32_t i = WRITES - PLACES; i < WRITES; i++) {
        assert_ok(hal_queue_read(queue, buffer, (uint64_t)(i % PLACES) * LARGE, LARGE, words));
        assert_int_equal(words[0], i);
        assert_int_equal(words[LARGE / 4 - 1], i);
    }
}

/* A batch that is rejected for lack of memory does not fail the allocation of a chunk. */
TEST_WITH(a_dropped_batch_is_told, begin, end)
{
    write_words(0, 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_set_batch(queue, 1, 1));
    write_words(0, 2);
    atomic_store(&mock->fail_with, HAL_ERROR_OUT_OF_MEMORY);
    atomic_store(&mock->fail_in[MOCK_SUBMIT], 1);
    const uint32_t word = 3;
    assert_fails(hal_queue_write(queue, buffer, 0, &word, sizeof word), HAL_ERROR_OUT_OF_MEMORY,
                 "submitting 1 commands");
    expect_words(0, 1);
    write_words(0, 4);
    expect_words(0, 4);
    assert_ok(hal_queue_set_batch(queue, 0, 0));
}

/* Blocks that the host touches are taken again in the order in which they were given back, so that
 * large writes in a loop find one that is idle: no more are made than two rounds have in flight. */
TEST_WITH(large_writes_find_idle_memory, begin, end)
{
    enum { LARGE = 64 << 10, IN_FLIGHT = 40, ROUNDS = 40 };
    static uint8_t data[LARGE];
    hal_point before = {0};
    atomic_store(&mock->slow, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        hal_point point;
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            assert_ok(hal_queue_write(queue, buffer, 0, data, LARGE));
        }
        assert_ok(hal_queue_flush(queue, &point));
        assert_ok(hal_point_wait(before, HAL_WAIT_FOREVER));
        before = point; /* in flight while the next round is written */
    }
    assert_true(mock->calls[MOCK_ALLOCATE] <= 1 + 2 * IN_FLIGHT);
    assert_true(mock->calls[MOCK_WAIT] <= ROUNDS * IN_FLIGHT / 4); /* few ask what is idle */
}

/* Writes and reads `bytes` from an odd offset on, and compares the whole buffer. */
static void expect_round_trip(hal_buffer *large, uint64_t bytes)
{
    enum { BEFORE = 7 };
    uint8_t *sent = malloc(bytes), *seen = calloc(1, bytes + 2);
    assert_true(sent && seen);
    for (uint64_t i = 0; i < bytes; i++) {
        sent[i] = (uint8_t)(i * 2654435761u >> 11);
    }
    assert_ok(hal_queue_fill(queue, (hal_range){large, 0, HAL_WHOLE}, 0x5a5a5a5a));
    assert_ok(hal_queue_write(queue, large, BEFORE, sent, bytes));
    assert_ok(hal_queue_read(queue, large, BEFORE - 1, bytes + 2, seen));
    assert_int_equal(seen[0], 0x5a);
    assert_int_equal(seen[bytes + 1], 0x5a);
    assert_memory_equal(seen + 1, sent, bytes);
    free(sent);
    free(seen);
}

/* Large transfers go through a few pieces of staging memory in each direction, whatever their size,
 * also when the device is late. */
TEST_WITH(large_transfers_take_a_few_pieces, begin, end)
{
    enum { MIB = 1 << 20, PIECES_IN_FLIGHT = 4, MAX_PIECE = 8 * MIB };
    static const uint64_t sizes[] = {MIB - 1, MIB + 1, 5 * MIB + 3, 20 * MIB - 5, 70 * MIB + 1};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const uint64_t bytes = sizes[i / 2];
        hal_buffer *large = mock_buffer(device, (bytes + 16) / 4 * 4);
        atomic_store(&mock->slow, i % 2 == 1);
        expect_round_trip(large, bytes);
        assert_true(mock->memory_bytes <=
                    BYTES + bytes + MIB + 2 * PIECES_IN_FLIGHT * (MAX_PIECE + MIB));
        hal_buffer_release(large);
        hal_device_trim(device);
    }
}

/* A failure in the middle is reported, and the next transfer works. */
TEST_WITH(large_transfers_fail_in_the_middle, begin, end)
{
    enum { LARGE = 20 << 20 };
    hal_buffer *large = mock_buffer(device, LARGE);
    uint8_t *data = calloc(1, LARGE);
    assert_non_null(data);
    for (int entry = 0; entry < 2; entry++) {
        for (int call = 1; call <= 7; call += 2) {
            atomic_store(&mock->slow, 1);
            atomic_store(&mock->fail_with, HAL_ERROR_OUT_OF_MEMORY);
            atomic_store(&mock->fail_in[MOCK_SUBMIT], call);
            const hal_status status = entry ? hal_queue_read(queue, large, 0, LARGE, data)
                                            : hal_queue_write(queue, large, 0, data, LARGE);
            assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
            atomic_store(&mock->fail_in[MOCK_SUBMIT], 0);
            assert_ok(hal_queue_read(queue, large, 0, LARGE, data));
        }
    }
    hal_buffer_release(large);
    free(data);
}

static int find_mock(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    return 0;
}

UNIT_MAIN(find_mock, NULL)
