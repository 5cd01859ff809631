/* Status names and per-thread messages. */

#include "unit.h"
#include <pthread.h>
#include <string.h>

#include "base/status.h"

TEST(every_status_has_its_own_name)
{
    for (hal_status i = 0; i < HAL_STATUS_COUNT; i++) {
        assert_non_null(hal_status_name(i));
        assert_memory_equal(hal_status_name(i), "HAL_", 4);
        assert_string_not_equal(hal_status_name(i), "HAL_STATUS_?");
        for (hal_status j = 0; j < i; j++) {
            assert_string_not_equal(hal_status_name(i), hal_status_name(j));
        }
    }
    assert_string_equal(hal_status_name(HAL_OK), "HAL_OK");
    assert_string_equal(hal_status_name(HAL_ERROR_TIMEOUT), "HAL_ERROR_TIMEOUT");
}

TEST(numbers_that_are_no_status_have_a_name_too)
{
    assert_string_equal(hal_status_name(-1), "HAL_STATUS_?");
    assert_string_equal(hal_status_name(HAL_STATUS_COUNT), "HAL_STATUS_?");
    assert_string_equal(hal_status_name(INT32_MIN), "HAL_STATUS_?");
}

TEST(fail_keeps_the_sentence_and_gives_the_status)
{
    assert_int_equal(hal_fail(HAL_ERROR_IO, "reading %s: line %d", "x", 7), HAL_ERROR_IO);
    assert_string_equal(hal_status_message(), "reading x: line 7");
    hal_fail(HAL_ERROR_IO, "loading: %s", hal_status_message());
    assert_string_equal(hal_status_message(), "loading: reading x: line 7");
}

TEST(long_sentences_end_in_dots)
{
    char text[3 * HAL_MESSAGE_BYTES];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    hal_fail(HAL_ERROR_IO, "%s", text);
    const char *message = hal_status_message();
    assert_int_equal(strlen(message), HAL_MESSAGE_BYTES - 1);
    assert_string_equal(message + HAL_MESSAGE_BYTES - 4, "...");
}

static void *fail_elsewhere(void *argument)
{
    (void)argument;
    const int empty = hal_status_message()[0] == 0;
    hal_fail(HAL_ERROR_TIMEOUT, "elsewhere");
    return empty && strcmp(hal_status_message(), "elsewhere") == 0 ? argument : NULL;
}

TEST(messages_are_per_thread)
{
    pthread_t thread;
    void *result = NULL;
    int token = 0;
    hal_fail(HAL_ERROR_IO, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &token), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &token);
    assert_string_equal(hal_status_message(), "here");
}

UNIT_MAIN(NULL, NULL)
