/* Files of timed events, see trace_file.h. The format is that of Chrome's "Trace Event Format": an
 * array of objects, whose times are microseconds. */
#include "trace_file.h"

#include "base/clock.h"
#include "plugin/host.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GATHERED_BYTES 65536u
#define GATHERED_NS 200000000u
#define MEMBER_BYTES 384

/* Under the lock; `file` is below 0 when nothing is written (any more). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static off_t written;
static uint64_t written_ns;
static hal_text gathered;
static uint64_t start_ns;
static uint32_t generation; /* of the process that opened it: a forked child writes nothing */

static _Atomic uint32_t last_thread;

static void at_exit(void)
{
    if (generation == hal_host_generation()) {
        hal_trace_flush(1);
    }
}

static void add_string(const char *text)
{
    hal_text_add(&gathered, "\"");
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            hal_text_add(&gathered, "\\%c", byte);
        } else if (byte < 0x20 || byte >= 0x7f) {
            hal_text_add(&gathered, "\\u%04x", byte); /* taken for Latin 1: always valid */
        } else {
            hal_text_add(&gathered, "%c", byte);
        }
    }
    hal_text_add(&gathered, "\"");
}

/* Takes the lock when the event will be written. */
static int begin_event(const char *phase, hal_trace_line line, const char *name)
{
    if (generation != hal_host_generation()) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    if (file < 0) {
        pthread_mutex_unlock(&lock);
        return 0;
    }
    hal_text_add(&gathered, "%s{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":",
                 written + (off_t)gathered.length > 2 ? ",\n" : "", phase, line.group, line.number);
    add_string(name);
    return 1;
}

/* Puts the array's end behind each part; the next part begins in its place. Needs the lock. */
static void write_out(void)
{
    const size_t length = gathered.length;
    hal_text_add(&gathered, "\n]\n");
    const char *at = gathered.data;
    off_t offset = written;
    size_t left = gathered.failed ? 0 : gathered.length;
    ssize_t wrote = 1;
    while (left > 0 && (wrote = pwrite(file, at, left, offset)) > 0) {
        at += wrote;
        offset += wrote;
        left -= (size_t)wrote;
    }
    if (gathered.failed || left > 0) {
        hal_log(HAL_LOG_ERROR, "HAL_TRACE: writing stopped: %s",
                gathered.failed ? "no host memory" : strerror(errno));
        close(file);
        file = -1;
    }
    written += (off_t)length;
    written_ns = hal_clock_ns();
    gathered.length = 0;
}

static void end_event(void)
{
    hal_text_add(&gathered, "}");
    if (gathered.length > GATHERED_BYTES) {
        write_out();
    }
    pthread_mutex_unlock(&lock);
}

static void add_members(const char *format, va_list arguments)
{
    char members[MEMBER_BYTES];
    const int length = vsnprintf(members, sizeof members, format, arguments);
    if (length > 0 && (size_t)length < sizeof members) {
        hal_text_add(&gathered, ",\"args\":{%s}", members);
    }
}

hal_status hal_trace_open(const char *path)
{
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || pwrite(file, "[\n", 2, 0) != 2) {
        const int error = errno;
        if (file >= 0) {
            close(file);
        }
        file = -1;
        return hal_fail(HAL_ERROR_IO, "HAL_TRACE: \"%s\" cannot be written: %s", path,
                        strerror(error));
    }
    written = 2;
    start_ns = hal_clock_ns();
    generation = hal_host_generation();
    atexit(at_exit);
    hal_trace_name((hal_trace_line){HAL_TRACE_HOST, 0}, "host");
    return HAL_OK;
}

hal_trace_line hal_trace_thread(void)
{
    static _Thread_local uint32_t number;
    if (!number) {
        number = atomic_fetch_add(&last_thread, 1) + 1;
        char name[32];
        snprintf(name, sizeof name, "thread %" PRIu32, number);
        hal_trace_name((hal_trace_line){HAL_TRACE_HOST, number}, name);
    }
    return (hal_trace_line){HAL_TRACE_HOST, number};
}

void hal_trace_name(hal_trace_line line, const char *name)
{
    if (begin_event("M", line, line.number ? "thread_name" : "process_name")) {
        hal_text_add(&gathered, ",\"args\":{\"name\":");
        add_string(name);
        hal_text_add(&gathered, "}");
        end_event();
    }
}

void hal_trace_slice(hal_trace_line line, const char *category, const char *name,
                     uint64_t begin_ns, uint64_t end_ns, const char *format, ...)
{
    if (begin_event("X", line, name)) {
        hal_text_add(&gathered, ",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", category,
                     (double)(begin_ns - start_ns) / 1000, (double)(end_ns - begin_ns) / 1000);
        va_list arguments;
        va_start(arguments, format);
        add_members(format, arguments);
        va_end(arguments);
        end_event();
    }
}

void hal_trace_counter(uint32_t group, const char *name, uint64_t at_ns, const char *format, ...)
{
    if (begin_event("C", (hal_trace_line){group, 0}, name)) {
        hal_text_add(&gathered, ",\"ts\":%.3f", (double)(at_ns - start_ns) / 1000);
        va_list arguments;
        va_start(arguments, format);
        add_members(format, arguments);
        va_end(arguments);
        end_event();
    }
}

void hal_trace_flush(int now)
{
    pthread_mutex_lock(&lock);
    if (file >= 0 && gathered.length > 0 &&
        (now || hal_clock_ns() - written_ns > GATHERED_NS)) {
        write_out();
    }
    pthread_mutex_unlock(&lock);
}
