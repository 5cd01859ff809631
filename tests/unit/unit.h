/* cmocka with tests that register themselves, and assertions about statuses. Included by all unit
 * tests:
 *
 *     TEST(points_are_reached_in_order)
 *     {
 *         ...
 *     }
 *     UNIT_MAIN(set_up_the_group, tear_down_the_group)      null: none */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hal/status.h>

typedef struct unit_list {
    struct CMUnitTest tests[64];
    size_t count;
} unit_list;

static inline unit_list *unit_tests(void)
{
    static unit_list list;
    return &list;
}

static inline void unit_add(struct CMUnitTest test)
{
    unit_list *list = unit_tests();
    if (list->count < sizeof list->tests / sizeof *list->tests) {
        list->tests[list->count] = test;
    }
    list->count++; /* beyond the array: UNIT_MAIN reports it */
}

/* Defines a test; tests run in the order of their definitions. TEST_WITH adds its set-up and
 * tear-down, of which either may be null. */
#define TEST_WITH(name, set_up, tear_down)                                                        \
    static void name(void **state);                                                               \
    __attribute__((constructor)) static void name##_register(void)                                \
    {                                                                                             \
        unit_add((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down));    \
    }                                                                                             \
    static void name(void **state)
#define TEST(name) TEST_WITH(name, NULL, NULL)

#define UNIT_MAIN(set_up, tear_down)                                                              \
    int main(void)                                                                                \
    {                                                                                             \
        const unit_list *list = unit_tests();                                                     \
        const size_t limit = sizeof list->tests / sizeof *list->tests;                            \
        return list->count > limit ? 1                                                            \
                                   : _cmocka_run_group_tests(__FILE__, list->tests, list->count,  \
                                                             set_up, tear_down);                  \
    }

/* A call that has to succeed. */
#define assert_ok(call)                                                                           \
    do {                                                                                          \
        if ((call) != HAL_OK) {                                                                   \
            fail_msg("%s: %s", #call, hal_status_message());                                      \
        }                                                                                         \
    } while (0)

/* The message of the thread's last failure contains these words. */
#define assert_message(words)                                                                     \
    do {                                                                                          \
        if (!strstr(hal_status_message(), words)) {                                               \
            fail_msg("\"%s\" is not in \"%s\"", words, hal_status_message());                     \
        }                                                                                         \
    } while (0)

/* A call that has to fail: with this status, and words in its message. */
#define assert_fails(call, status, words)                                                         \
    do {                                                                                          \
        assert_int_equal(call, status);                                                           \
        assert_message(words);                                                                    \
    } while (0)

#endif
