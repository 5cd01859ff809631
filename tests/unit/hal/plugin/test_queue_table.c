/* What plugins say of their queues from any thread: reached values, and why work failed. */
#include "unit.h"
#include "plugin/host.h"
#include "plugin/queue_table.h"

#include <hal/status.h>
#include <string.h>

static char places[2];
#define QUEUE(i) ((hal_plugin_queue *)(void *)&places[i])

TEST(reached_values_only_rise)
{
    const hal_host *host = hal_host_services();
    _Atomic uint64_t reached = 100;
    hal_queue_table_add(QUEUE(0), &reached, 100);
    host->queue_reached(host, QUEUE(0), 3);
    assert_int_equal(reached, 103);
    host->queue_reached(host, QUEUE(0), 2);
    host->queue_reached(host, QUEUE(1), 9); /* an unknown queue */
    assert_int_equal(reached, 103);
    hal_queue_table_remove(QUEUE(0));
    host->queue_reached(host, QUEUE(0), 4);
    assert_int_equal(reached, 103);
}

TEST(the_first_sentence_is_that_of_the_failure)
{
    const hal_host *host = hal_host_services();
    _Atomic uint64_t reached = 0;
    hal_queue_table_add(QUEUE(0), &reached, 0);
    host->queue_failed(host, QUEUE(0), "the chip is on fire");
    host->queue_failed(host, QUEUE(0), "later");
    host->queue_failed(host, QUEUE(1), "of nobody");
    hal_host_clear_error();
    hal_host_take_queue_message(QUEUE(0));
    assert_int_equal(hal_host_failed(HAL_ERROR_DEVICE_LOST, "waiting"), HAL_ERROR_DEVICE_LOST);
    assert_string_equal(hal_status_message(), "waiting: the chip is on fire");

    /* The call's own sentence wins. */
    (host->fail)(host, HAL_ERROR_DEVICE_LOST, "my own words");
    hal_host_take_queue_message(QUEUE(0));
    hal_host_failed(HAL_ERROR_DEVICE_LOST, "waiting");
    assert_string_equal(hal_status_message(), "waiting: my own words");

    hal_queue_table_remove(QUEUE(0));
    hal_host_take_queue_message(QUEUE(0));
    hal_host_failed(HAL_ERROR_DEVICE_LOST, "waiting");
    assert_string_equal(hal_status_message(), "waiting: HAL_ERROR_DEVICE_LOST");
}

UNIT_MAIN(NULL, NULL)
