/* Hazards: which commands carry the mark that they come after all before them. */
#include "core/hazard.h"
#include "core/pool.h"
#include "mock_device.h" /* has a variable called device */

/* The marks of all commands flushed since, as a text of '|' (after) and '.'. */
static void expect_marks(const char *marks)
{
    assert_ok(hal_queue_flush(queue, NULL));
    char seen[MOCK_LOGGED + 1] = {0};
    for (uint32_t i = 0; i < mock->logged_count; i++) {
        seen[i] = mock->logged[i].command.flags & HAL_COMMAND_BARRIER ? '|' : '.';
    }
    assert_string_equal(seen, marks);
    mock->logged_count = 0;
}

DEVICE_TEST(independent_work_may_overlap)
{
    hal_buffer *buffers[8];
    for (int i = 0; i < 8; i++) {
        buffers[i] = mock_buffer(device, 1024);
    }
    for (int i = 0; i < 8; i += 2) {
        assert_ok(mock_dispatch(queue, kernel, buffers[i], buffers[i + 1]));
    }
    expect_marks("....");
    /* Reading together is no conflict. */
    for (int i = 1; i < 4; i++) {
        assert_ok(mock_dispatch(queue, kernel, buffers[0], buffers[i]));
    }
    expect_marks("...");
    for (int i = 0; i < 8; i++) {
        hal_buffer_release(buffers[i]);
    }
}

DEVICE_TEST(each_kind_of_conflict_is_marked)
{
    hal_buffer *a = mock_buffer(device, 1024);
    hal_buffer *b = mock_buffer(device, 1024);
    hal_buffer *c = mock_buffer(device, 1024);
    mock_dispatch(queue, kernel, a, b);
    mock_dispatch(queue, kernel, b, c); /* read after write */
    mock_dispatch(queue, kernel, a, b); /* write after read */
    mock_dispatch(queue, kernel, c, b); /* write after write */
    mock_dispatch(queue, kernel, c, a);
    expect_marks(".|||.");
    mock_dispatch(queue, kernel, b, c); /* what was flushed before needs no mark */
    expect_marks(".");
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_buffer_release(c);
}

DEVICE_TEST(ranges_count_not_buffers)
{
    hal_buffer *a = mock_buffer(device, 1024);
    assert_ok(hal_queue_fill(queue, (hal_range){a, 0, 512}, 1));
    assert_ok(hal_queue_fill(queue, (hal_range){a, 512, 512}, 2));
    assert_ok(hal_queue_fill(queue, (hal_range){a, 508, 4}, 3));
    assert_ok(hal_queue_copy(queue, (hal_range){a, 512, 64}, (hal_range){a, 576, 64}));
    assert_ok(hal_queue_copy(queue, (hal_range){a, 576, 4}, (hal_range){a, 0, 4}));
    expect_marks("..|.|");
    hal_buffer_release(a);
}

/* Buffers in the place of a larger one: their memory is known by where it is. */
DEVICE_TEST(parts_of_memory_used_again_are_marked)
{
    enum { BYTES = 4 << 20 };
    hal_buffer *whole = mock_buffer(device, BYTES);
    hal_queue_fill(queue, (hal_range){whole, 0, HAL_WHOLE}, 1);
    hal_buffer_release(whole);
    hal_buffer *first = mock_buffer(device, BYTES / 2), *second = mock_buffer(device, BYTES / 2);
    hal_queue_fill(queue, (hal_range){second, 0, HAL_WHOLE}, 2);
    hal_queue_fill(queue, (hal_range){first, 0, HAL_WHOLE}, 3);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ptr_equal(mock->logged[0].bindings[0].memory, mock->logged[1].bindings[0].memory);
    assert_int_equal(mock->logged[1].bindings[0].offset, BYTES / 2);
    expect_marks(".|.");
    hal_buffer_release(first);
    hal_buffer_release(second);
}

DEVICE_TEST(memory_used_again_is_marked)
{
    hal_buffer *a = mock_buffer(device, 1024);
    hal_queue_fill(queue, (hal_range){a, 0, HAL_WHOLE}, 1);
    hal_buffer_release(a);
    hal_buffer *b = mock_buffer(device, 1024);
    hal_queue_fill(queue, (hal_range){b, 0, HAL_WHOLE}, 2);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ptr_equal(mock->logged[0].bindings[0].memory, mock->logged[1].bindings[0].memory);
    expect_marks(".|");
    hal_buffer_release(b);
}

DEVICE_TEST(a_full_list_forces_a_barrier)
{
    enum { COUNT = HAL_HAZARD_RANGES + 2 };
    hal_buffer *buffers[COUNT];
    char marks[COUNT + 1] = {0};
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = mock_buffer(device, 256);
        assert_ok(hal_queue_fill(queue, (hal_range){buffers[i], 0, HAL_WHOLE}, 1));
        marks[i] = i == HAL_HAZARD_RANGES ? '|' : '.';
    }
    expect_marks(marks);
    for (int i = 0; i < COUNT; i++) {
        hal_buffer_release(buffers[i]);
    }
}

/* A pair conflicts by the plain rule, told by looking at every earlier command since the last
 * mark, and the commands that hal marks are a superset of those. */
DEVICE_TEST(no_conflict_is_missed)
{
    enum { COMMANDS = 300, BUFFERS = 5 };
    static struct {
        int buffer;
        uint64_t begin, end;
    } ranges[COMMANDS];
    hal_buffer *buffers[BUFFERS];
    uint32_t random = 12345;
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = mock_buffer(device, 4096);
    }
    for (int i = 0; i < COMMANDS; i++) {
        random = random * 1664525u + 1013904223u;
        ranges[i].buffer = (int)(random >> 8) % BUFFERS;
        ranges[i].begin = (random >> 16) % 900 * 4;
        ranges[i].end = ranges[i].begin + 4 + (random >> 11) % 30 * 4;
        const hal_range range = {buffers[ranges[i].buffer], ranges[i].begin,
                                 ranges[i].end - ranges[i].begin};
        assert_ok(hal_queue_fill(queue, range, 0));
    }
    assert_ok(hal_queue_flush(queue, NULL));
    int last = 0;
    int marks = 0;
    for (int i = 0; i < COMMANDS; i++) {
        const int after = mock->logged[i].command.flags & HAL_COMMAND_BARRIER;
        if (after) {
            last = i;
            marks++;
        }
        for (int j = last; j < i; j++) {
            assert_false(ranges[i].buffer == ranges[j].buffer &&
                         ranges[i].begin < ranges[j].end && ranges[j].begin < ranges[i].end);
        }
    }
    assert_true(marks > 0 && marks < COMMANDS / 4);
    for (int i = 0; i < BUFFERS; i++) {
        hal_buffer_release(buffers[i]);
    }
}

static int touch(hal_hazards *hazards, const hal_memory *memory, uint64_t begin, uint32_t access)
{
    *hal_hazards_next(hazards) = (hal_hazard_range){memory, begin, begin + 4, access};
    return hal_hazards_note(hazards, 1);
}

DEVICE_TEST(forced_hazards_mark_the_next_command)
{
    static hal_hazards hazards;
    static hal_memory memory;
    assert_int_equal(touch(&hazards, &memory, 0, HAL_ACCESS_READ), 0);
    assert_int_equal(touch(&hazards, &memory, 0, HAL_ACCESS_READ), 0);
    hal_hazards_force(&hazards);
    assert_int_equal(hal_hazards_note(&hazards, 0), 0);
    assert_int_equal(touch(&hazards, &memory, 0, HAL_ACCESS_READ), 1);
    assert_int_equal(touch(&hazards, &memory, 0, HAL_ACCESS_READ), 0);
}

/* One range at a time next to a plain list, for as long as the ranges move through their room. */
TEST(random_ranges_are_marked_as_a_plain_list_says)
{
    enum { BLOCKS = 40, STEPS = 100000 };
    static hal_hazards hazards;
    static hal_memory blocks[BLOCKS];
    hal_hazard_range known[HAL_HAZARD_RANGES];
    uint32_t count = 0, random = 1;
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525u + 1013904223u;
        const hal_memory *memory = &blocks[(random >> 8) % (step / 1000 % BLOCKS + 1)];
        const uint64_t begin = (random >> 16) % 6;
        const uint32_t access = random >> 28 == 0 ? HAL_ACCESS_WRITE : HAL_ACCESS_READ;
        int expected = count == HAL_HAZARD_RANGES;
        for (uint32_t i = 0; i < count; i++) {
            expected |= known[i].memory == memory && known[i].begin < begin + 4 &&
                        begin < known[i].end && ((known[i].access | access) & HAL_ACCESS_WRITE);
        }
        count = expected ? 0 : count;
        known[count++] = (hal_hazard_range){memory, begin, begin + 4, access};
        assert_int_equal(touch(&hazards, memory, begin, access), expected);
    }
}

static int begin(void **state)
{
    device_begin(state);
    return hal_queue_set_batch(queue, HAL_QUEUE_BATCH_COMMANDS, 0) != HAL_OK;
}

UNIT_MAIN(begin, device_end)
