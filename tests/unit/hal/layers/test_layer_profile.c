/* The profile: its page is complete at every flush, and has transfers, buffers with their labels,
 * groups of calls, and for each command its group, kind and bytes. */
#include "assert_json.h"
#include "mock_fixture.h"
#include "scratch.h"

static mock_state *mock;
static char path[SCRATCH_BYTES];
static char text[1 << 18];
static char *events; /* the JSON in the page */

static int begin(void **state)
{
    const int failed = mock_begin(state);
    mock = mock_find("mock");
    mock_reset(mock);
    return failed || scratch_file(path, "profile") < 0;
}

static int end(void **state)
{
    return remove(path);
}

TEST(files_that_cannot_be_written_are_errors)
{
    hal_device *device;
    setenv("HAL_PROFILE", "/nowhere/page.html", 1);
    assert_fails(hal_device_open("mock", &device), HAL_ERROR_IO, "HAL_PROFILE: \"/nowhere/");
    assert_false(hal_profile_is_on());
}

static void read_page(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_memory_equal(text, "<!DOCTYPE html>", 15);
    events = strstr(text, "id=\"events\">\n");
    assert_non_null(events);
    events += strlen("id=\"events\">\n");
    char *tail = strstr(events, "</script>");
    assert_non_null(tail);
    assert_string_equal(tail, "</script>\n</body>\n</html>\n");
    *tail = 0;
    assert_json(events);
}

/* Events that have all of the words, each event being a line. */
static int count(const char *one, const char *other)
{
    int found = 0;
    for (char *line = events; *line;) {
        char *stop = strchr(line, '\n');
        *stop = 0;
        found += strstr(line, one) && strstr(line, other);
        *stop = '\n';
        line = stop + 1;
    }
    return found;
}

TEST(a_page_has_what_only_it_shows)
{
    setenv("HAL_PROFILE", path, 1);
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *a = mock_buffer(device, 4096), *b = mock_buffer(device, 4096);
    hal_kernel *kernel = mock_kernel(device, 1);
    char bytes[4096] = {1};
    assert_true(hal_profile_is_on());
    hal_buffer_set_label(a, "weights</script>");
    assert_ok(hal_queue_write(queue, a, 0, bytes, sizeof bytes));
    hal_profile_group_begin(queue, "add tanh", "the program \"asks\"");
    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_ok(mock_dispatch(queue, kernel, a, b));
    hal_profile_group_end(queue);
    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    const uint32_t grid[3] = {1, 1, 1};
    const int32_t scalars[2] = {1, 0};
    hal_profile_operations(kernel, grid, &scalars[0], sizeof *scalars, 11, HAL_TYPE_F16, 1);
    hal_profile_operations(kernel, grid, &scalars[1], sizeof *scalars, 1234567, HAL_TYPE_F16, 0);
    assert_ok(mock_dispatch(queue, kernel, a, b));
    assert_ok(hal_queue_read(queue, b, 0, sizeof bytes, bytes));
    hal_kernel_release(kernel);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);

    read_page();
    assert_int_equal(count("\"name\":\"shift\",\"cat\":\"device\"", "\"group\":1"), 2);
    assert_int_equal(count("\"name\":\"shift\",\"cat\":\"device\"", "\"group\":0"), 2);
    assert_int_equal(count("\"name\":\"shift\",\"cat\":\"device\"", "\"bytes\":8192"), 4);
    assert_int_equal(count("\"name\":\"shift\",\"cat\":\"device\"", "\"kind\":\"kernel\""), 4);
    assert_int_equal(count("\"operations\":1234567", "\"unit\":\"add f32\""), 1);
    assert_int_equal(count("\"operations\":11,", ""), 0);
    assert_int_equal(count("\"add tanh\"", "\"detail\":\"the program \\\"asks\\\"\""), 1);
    assert_int_equal(count("\"cat\":\"transfer\"", "\"write\""), 1);
    assert_int_equal(count("\"cat\":\"transfer\"", "\"bytes\":4096"), 2);
    /* Two, and hal's own for the read. */
    const int buffers = count("\"name\":\"create\",\"cat\":\"buffer\"", "\"bytes\":4096");
    assert_in_range(buffers, 2, 3);
    assert_int_equal(count("\"name\":\"label\"", "weights\\u003c/script>"), 1);
    assert_int_equal(count("\"name\":\"release\",\"cat\":\"buffer\"", "\"bytes\":4096"), buffers);
}

UNIT_MAIN(begin, end)
