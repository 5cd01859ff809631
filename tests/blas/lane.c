/* The wait for the work of a call that computes in the host's memory: a batch of the call that was
 * dropped is an error, whichever call was told. Its layer makes the first submission fail. */
#include "host.h"
#include "lane.h"

#include <stdio.h>
#include <string.h>

static int failures;

const char *blas_host_path(void)
{
    return "";
}

static void expect(bool is_right, const char *what)
{
    if (!is_right) {
        printf("%s: %s\n", what, hal_status_message());
        failures++;
    }
}

/* Records the work of a call, and waits for it. */
static hal_status call_run(blas_lane *lane, hal_buffer *work, bool is_flushed)
{
    hal_queue_fill(lane->queue, (hal_range){work, 0, 4}, 1);
    if (is_flushed) {
        hal_queue_flush(lane->queue, NULL); /* its error is not passed on */
    }
    return blas_lane_wait(lane);
}

int main(int count, char **words)
{
    blas_lane *lane;
    hal_buffer *work = NULL;
    const bool is_flushed = count > 1 && strcmp(words[1], "flushed") == 0;
    if (blas_lane_acquire(&lane) != HAL_OK || !lane->is_in_place ||
        hal_buffer_create(blas_lane_device(), HAL_MEMORY_DEVICE, 64, &work) != HAL_OK ||
        hal_queue_set_batch(lane->queue, 1, 1) != HAL_OK) {
        printf("no lane in place: %s\n", hal_status_message());
        return 1;
    }
    const hal_status lost = call_run(lane, work, is_flushed);
    expect(lost == HAL_ERROR_INTERNAL && strstr(hal_status_message(), "HAL_FAULT"),
           "a batch was dropped, and the wait succeeded");
    expect(call_run(lane, work, is_flushed) == HAL_OK, "the next call failed as well");
    hal_buffer_release(work);
    blas_lane_release(lane, true);
    return failures > 0;
}
