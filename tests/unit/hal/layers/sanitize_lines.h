/* A device and a queue under the sanitize layer, and the lines of its first findings. */
#ifndef TESTS_UNIT_HAL_LAYERS_SANITIZE_LINES_H
#define TESTS_UNIT_HAL_LAYERS_SANITIZE_LINES_H

#include <hal/hal.h>
#include <stdio.h>

static char lines[4][2048];
static uint32_t line_count;
static hal_device *device;
static hal_queue *queue;

static void keep_line(void *user, hal_log_level level, const char *text)
{
    (void)user;
    if (level == HAL_LOG_ERROR && line_count < 4) {
        snprintf(lines[line_count++], sizeof lines[0], "%s", text);
    }
}

#endif
