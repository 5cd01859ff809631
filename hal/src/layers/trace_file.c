/* Files of timed events in Chrome's "Trace Event Format", see trace_file.h: an array of objects
 * with times in microseconds, alone or in the page of profile.html. */
#include "trace_file.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "plugin/host.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/platform.h"
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
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES 65536u
#define BUFFER_NS 200000000u
#define MEMBER_BYTES 384

/* A file that the events go to: plain, or inside of a page. */
typedef struct trace_sink {
    const char *variable;
    const char *head, *tail; /* text around the events; the tail ends the array */
    int file;                /* negative: not written */
    off_t written;           /* without the tail */
} trace_sink;

static const char page_head[] = {
#include "profile_page.inc"
    , 0};

/* Guards the state below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LEAF)
static trace_sink sinks[] = {
    {.variable = "HAL_TRACE", .head = "[\n", .tail = "\n]\n", .file = -1},
    {.variable = "HAL_PROFILE",
     .head = page_head,
     .tail = "\n]\n</script>\n</body>\n</html>\n",
     .file = -1},
};
enum { SINKS = sizeof sinks / sizeof *sinks };
static bool is_open; /* at least one file */
static bool is_first = true;
static uint64_t written_ns;
static hal_text buffer;
static uint64_t start_ns;
static uint32_t generation; /* of the process that opened the file: a forked child does not write */

static _Atomic uint32_t last_thread;

static void at_exit(void)
{
    if (generation == hal_host_generation()) {
        hal_trace_flush(true);
    }
}

static void string_add(const char *text)
{
    hal_text_add(&buffer, "\"");
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            hal_text_add(&buffer, "\\%c", byte);
        } else if (byte < 0x20 || byte >= 0x7f || byte == '<') { /* '<' would end a page's script */
            hal_text_add(&buffer, "\\u%04x", byte);              /* as Latin-1: always valid */
        } else {
            hal_text_add(&buffer, "%c", byte);
        }
    }
    hal_text_add(&buffer, "\"");
}

/* A member in microseconds. As integers: printf of floats follows the program's locale. */
static void microseconds_add(const char *name, uint64_t nanoseconds)
{
    hal_text_add(&buffer, ",\"%s\":%" PRIu64 ".%03u", name, nanoseconds / 1000,
                 (unsigned)(nanoseconds % 1000));
}

/* Begins an event and takes the lock. Returns 0, without the lock, if nothing is written. */
static bool event_begin(const char *phase, hal_trace_line line, const char *name)
{
    if (generation != hal_host_generation()) {
        return false;
    }
    pthread_mutex_lock(&lock);
    if (!is_open) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    hal_text_add(&buffer, "%s{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":",
                 is_first ? "" : ",\n", phase, line.group, line.number);
    is_first = false;
    string_add(name);
    return true;
}

/* Writes the buffer and the tail, which the next write replaces: the file is always complete. */
static void sink_write(trace_sink *sink, size_t length)
{
    if (sink->file < 0) {
        return;
    }
    hal_text_add(&buffer, "%s", sink->tail);
    if (buffer.failed ||
        !hal_file_write_at(sink->file, buffer.data, buffer.length, sink->written)) {
        hal_log(HAL_LOG_ERROR, "%s: writing stopped: %s", sink->variable,
                buffer.failed ? "no host memory" : strerror(errno));
        close(sink->file);
        sink->file = -1;
    }
    sink->written += (off_t)length;
    buffer.length = length;
}

/* Needs the lock. */
static void buffer_write(void)
{
    HAL_UNCANCELLED;
    const size_t length = buffer.length;
    is_open = false;
    for (int i = 0; i < SINKS; i++) {
        sink_write(&sinks[i], length);
        is_open |= sinks[i].file >= 0;
    }
    written_ns = hal_clock_ns();
    buffer.length = 0;
}

static void event_end(void)
{
    hal_text_add(&buffer, "}");
    if (buffer.length > BUFFER_BYTES) {
        buffer_write();
    }
    pthread_mutex_unlock(&lock);
}

static void members_add(const char *format, va_list arguments)
{
    char members[MEMBER_BYTES];
    const int length = vsnprintf(members, sizeof members, format, arguments);
    if (length > 0 && (size_t)length < sizeof members) {
        hal_text_add(&buffer, ",\"args\":{%s}", members);
    }
}

/* Opens a file that no other process writes, and empties it: `path`, or a name with the number of
 * this process before the suffix. Returns -1 with errno. */
static int file_create(const char *path)
{
    struct stat what;
    int made = hal_file_open(path, O_WRONLY | O_CREAT, 0666);
    if (made >= 0 && fstat(made, &what) == 0 && S_ISREG(what.st_mode) &&
        !hal_file_lock_byte(made, 0)) {
        const char *slash = strrchr(path, '/');
        const char *base = slash ? slash + 1 : path;
        const char *dot = strrchr(base, '.');
        const char *suffix = dot && dot != base ? dot : path + strlen(path);
        hal_text name = {0};
        hal_text_add(&name, "%.*s-%ld%s", (int)(suffix - path), path, (long)getpid(), suffix);
        close(made);
        made = name.failed ? -1 : hal_file_open(name.data, O_WRONLY | O_CREAT, 0666);
        if (made >= 0) {
            hal_file_lock_byte(made, 0);
        }
        hal_text_free(&name);
    }
    if (made >= 0 && ftruncate(made, 0) != 0 && errno != EINVAL) {
        close(made);
        return -1;
    }
    return made;
}

static hal_status sink_open(trace_sink *sink, const char *path)
{
    HAL_UNCANCELLED;
    const size_t length = strlen(sink->head);
    int made = path && path[0] ? file_create(path) : -1;
    if (!path || !path[0]) {
        return HAL_OK;
    }
    if (made < 0 || !hal_file_write_at(made, sink->head, length, 0)) {
        const int error = errno;
        if (made >= 0) {
            close(made);
        }
        return hal_fail(HAL_ERROR_IO, "%s: \"%s\" cannot be written: %s", sink->variable, path,
                        strerror(error));
    }
    sink->file = made;
    sink->written = (off_t)length;
    return HAL_OK;
}

hal_status hal_trace_open(const char *trace, const char *page)
{
    HAL_TRY(sink_open(&sinks[0], trace));
    const hal_status status = sink_open(&sinks[1], page);
    if (status != HAL_OK) {
        close(sinks[0].file);
        sinks[0].file = -1;
        return status;
    }
    is_open = true;
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
    if (event_begin("M", line, line.number ? "thread_name" : "process_name")) {
        hal_text_add(&buffer, ",\"args\":{\"name\":");
        string_add(name);
        hal_text_add(&buffer, "}");
        event_end();
    }
}

void hal_trace_slice(hal_trace_line line, const char *category, const char *name, uint64_t begin_ns,
                     uint64_t end_ns, const char *format, ...)
{
    if (event_begin("X", line, name)) {
        hal_text_add(&buffer, ",\"cat\":\"%s\"", category);
        microseconds_add("ts", begin_ns - start_ns);
        microseconds_add("dur", end_ns - begin_ns);
        va_list arguments;
        va_start(arguments, format);
        members_add(format, arguments);
        va_end(arguments);
        event_end();
    }
}

void hal_trace_instant(hal_trace_line line, const char *category, const char *name,
                       const char *detail, const char *format, ...)
{
    if (event_begin("i", line, name)) {
        hal_text_add(&buffer, ",\"cat\":\"%s\",\"s\":\"t\",\"detail\":", category);
        string_add(detail);
        microseconds_add("ts", hal_clock_ns() - start_ns);
        va_list arguments;
        va_start(arguments, format);
        members_add(format, arguments);
        va_end(arguments);
        event_end();
    }
}

void hal_trace_counter(uint32_t group, const char *name, uint64_t at_ns, const char *format, ...)
{
    if (event_begin("C", (hal_trace_line){group, 0}, name)) {
        microseconds_add("ts", at_ns - start_ns);
        va_list arguments;
        va_start(arguments, format);
        members_add(format, arguments);
        va_end(arguments);
        event_end();
    }
}

void hal_trace_flush(bool now)
{
    pthread_mutex_lock(&lock);
    if (is_open && buffer.length > 0 && (now || hal_clock_ns() - written_ns > BUFFER_NS)) {
        buffer_write();
    }
    pthread_mutex_unlock(&lock);
}
