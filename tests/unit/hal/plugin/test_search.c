/* The plugin search: empty elements of HAL_PLUGIN_PATH are no folders, and each allocation that
 * fails is OUT_OF_MEMORY with a message, in the search and in the opening of a device. */
#include <stdlib.h>

#include "own_malloc.h"

#include "mock_fixture.h"
#include "plugin/search.h"

static long refused_at = -1, allocations; /* the number of the allocation that fails; -1: none */

#if OWN_MALLOC
static int malloc_is_refused(void)
{
    return allocations++ == refused_at;
}
#endif

/* Lets allocation `number` fail from now on; -1: none. */
static void refuse(long number)
{
    allocations = 0;
    refused_at = number;
}

static hal_status search(hal_strings *paths, hal_strings *files)
{
    *paths = *files = (hal_strings){0};
    const hal_status status = hal_search_paths(paths);
    return status == HAL_OK ? hal_search_files(paths, NULL, files) : status;
}

static void expect_same(const hal_strings *a, const hal_strings *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i], b->items[i]);
    }
}

TEST(empty_elements_are_skipped)
{
    hal_strings paths, files, without, other;
    setenv("HAL_PLUGIN_PATH", "::" TEST_PLUGINS "/mock:::" TEST_PLUGINS "/probed:", 1);
    assert_int_equal(search(&paths, &files), HAL_OK);
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock:" TEST_PLUGINS "/probed", 1);
    assert_int_equal(search(&without, &other), HAL_OK);
    expect_same(&paths, &without);
    expect_same(&files, &other);
    assert_true(files.count > 2);
    hal_strings_free(&paths);
    hal_strings_free(&files);
    hal_strings_free(&without);
    hal_strings_free(&other);
}

TEST(a_failed_allocation_ends_the_search)
{
    hal_strings paths, files, known, known_files;
    if (!OWN_MALLOC) {
        skip();
    }
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock/../mock:" TEST_PLUGINS "/probed", 1);
    assert_int_equal(search(&known, &known_files), HAL_OK);
    long failures = 0;
    for (long n = 0;; n++) {
        hal_status_set(HAL_ERROR_INTERNAL, "older");
        refuse(n);
        const hal_status status = search(&paths, &files);
        const long made = allocations;
        refuse(-1);
        if (status == HAL_OK) {
            expect_same(&paths, &known);
            expect_same(&files, &known_files);
        } else {
            assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
            assert_non_null(strstr(hal_status_message(), "no host memory"));
            failures++;
        }
        hal_strings_free(&paths);
        hal_strings_free(&files);
        if (made <= n) {
            break;
        }
    }
    assert_true(failures > 5);
    hal_strings_free(&known);
    hal_strings_free(&known_files);
}

TEST(a_failed_allocation_opens_no_device)
{
    mock_state *mock = mock_find("mock");
    if (!OWN_MALLOC) {
        skip();
    }
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock/hal_mock.so", 1);
    hal_device_release(mock_open("mock")); /* what is made once */
    long failures = 0;
    for (long n = 0;; n++) {
        hal_device *device = NULL;
        refuse(n);
        const hal_status status = hal_device_open("mock", &device);
        const long made = allocations;
        refuse(-1);
        if (status == HAL_OK) {
            hal_device_release(device);
        } else {
            assert_int_equal(status, HAL_ERROR_OUT_OF_MEMORY);
            if (!strcasestr(hal_status_message(), "memory")) {
                fail_msg("allocation %ld: %s", n, hal_status_message());
            }
            assert_null(device);
            failures++;
        }
        assert_int_equal(mock->live_devices, 0);
        if (made <= n) {
            break;
        }
    }
    assert_true(failures > 5);
}

UNIT_MAIN(NULL, NULL)
