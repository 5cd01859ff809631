/* Memory that one process exports as a descriptor is another process's memory: the second one,
 * which is forked before any device is opened, imports it and writes; both see all writes.
 * devices: lavapipe */
#include "process.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 4096, BYTES = 4 * COUNT, LIMIT_SECONDS = 60 };

static void words_expect(const uint32_t *words, uint32_t start, const char *what)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        if (words[i] != start + i) {
            process_fail("%s: word %u is %u instead of %u", what, i, words[i], start + i);
            return;
        }
    }
}

static void words_put(uint32_t *words, uint32_t start)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        words[i] = start + i;
    }
}

/* Sends or receives a handle with its descriptor. */
static int handle_pass(int channel, hal_memory_handle *handle, int sends)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {handle, sizeof *handle};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int descriptor = (int)handle->handle;
    if (sends) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
        return sendmsg(channel, &message, 0) == sizeof *handle;
    }
    if (recvmsg(channel, &message, 0) != sizeof *handle || !CMSG_FIRSTHDR(&message)) {
        return 0;
    }
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    handle->handle = (uint64_t)descriptor;
    return 1;
}

static int importer(int channel)
{
    static uint32_t words[COUNT];
    hal_memory_handle handle = {0};
    hal_buffer *buffer = NULL;
    alarm(LIMIT_SECONDS);
    if (!handle_pass(channel, &handle, 0)) {
        return 0; /* the other process exports nothing */
    }
    process_device opened = process_open();
    PROCESS_OK(hal_buffer_import(opened.device, &handle, NULL, NULL, &buffer));
    PROCESS_OK(hal_queue_read(opened.queue, buffer, 0, BYTES, words));
    words_expect(words, 100, "what the exporter wrote");
    words_put(words, 7000);
    PROCESS_OK(hal_queue_write(opened.queue, buffer, 0, words, BYTES));
    PROCESS_OK(hal_queue_wait(opened.queue, HAL_WAIT_FOREVER));
    hal_buffer_release(buffer);
    process_close(&opened);
    return process_end();
}

static int exporter(int channel, pid_t child)
{
    static uint32_t words[COUNT];
    hal_memory_handle handle = {.size = sizeof handle};
    hal_buffer *buffer = NULL;
    process_device opened = process_open();
    const hal_status status =
        hal_buffer_create_shareable(opened.device, HAL_HANDLE_OPAQUE_FD, BYTES, &buffer);
    if (status == HAL_ERROR_UNSUPPORTED) {
        close(channel);
        waitpid(child, NULL, 0);
        return PROCESS_SKIP;
    }
    PROCESS_OK(status);
    words_put(words, 100);
    PROCESS_OK(hal_queue_write(opened.queue, buffer, 0, words, BYTES));
    PROCESS_OK(hal_queue_wait(opened.queue, HAL_WAIT_FOREVER));
    PROCESS_OK(hal_buffer_export(buffer, HAL_HANDLE_OPAQUE_FD, &handle));
    if (!handle_pass(channel, &handle, 1)) {
        process_fail("the handle was not sent");
    }
    close((int)handle.handle);
    close(channel);
    int ended = 0;
    waitpid(child, &ended, 0);
    if (ended != 0) {
        process_fail("the importer ended with 0x%x", ended);
    }
    PROCESS_OK(hal_queue_read(opened.queue, buffer, 0, BYTES, words));
    words_expect(words, 7000, "what the importer wrote");
    hal_buffer_release(buffer);
    process_close(&opened);
    return process_end();
}

int main(void)
{
    int channel[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel) != 0) {
        return 1;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) {
        return 1;
    }
    close(channel[child == 0 ? 0 : 1]);
    return child == 0 ? importer(channel[1]) : exporter(channel[0], child);
}
