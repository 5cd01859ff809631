/* The sides of a bisection, see replay_side.h. */
#include "replay_side.h"

#include <hal/hal.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a side answers; the message follows, then the contents of bindings. */
typedef struct side_answer {
    int32_t status;
    uint32_t message_bytes;
    uint32_t lanes;
} side_answer;

static bool send_all(int channel, const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    while (bytes > 0) {
        const ssize_t sent = send(channel, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        at += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? (uint64_t)sent : 0;
    }
    return true;
}

static bool receive_all(int channel, void *data, uint64_t bytes)
{
    uint8_t *at = data;
    while (bytes > 0) {
        const ssize_t got = recv(channel, at, bytes, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

/* ---- The process of a side ---- */

static bool answer_send(int channel, hal_status status, uint32_t lanes)
{
    const char *message = status == HAL_OK ? "" : hal_status_message();
    const side_answer answer = {status, (uint32_t)strlen(message), lanes};
    return send_all(channel, &answer, sizeof answer) &&
           send_all(channel, message, answer.message_bytes);
}

static hal_status kernel_parse(hal_device *device, const replay_work *work, hal_kernel **kernel)
{
    hal_ir_kernel *ir = NULL;
    HAL_TRY(hal_ir_parse(work->ir, work->ir_bytes, &ir));
    const hal_status status = hal_kernel_create(device, ir, kernel);
    hal_ir_kernel_destroy(ir);
    return status;
}

static hal_status work_record(hal_queue *queue, const replay_work *work, hal_kernel *kernel,
                              const hal_range *ranges)
{
    switch (work->kind) {
    case HAL_COMMAND_COPY:
        return hal_queue_transfer(queue, ranges[0].buffer, 0, queue, ranges[1].buffer, 0,
                                  work->bytes[0]);
    case HAL_COMMAND_FILL:
        return hal_queue_fill_pattern(queue, ranges[0], work->scalars, work->scalar_bytes);
    default:
        return hal_queue_dispatch(queue, kernel, work->grid, ranges, work->binding_count,
                                  work->scalars, work->scalar_bytes);
    }
}

/* Runs the command; `data` has the contents of bindings before and after. */
static hal_status work_run(hal_queue *queue, hal_device *device, const replay_work *work,
                           uint8_t *const *data)
{
    hal_range ranges[REPLAY_SIDE_BINDINGS] = {{0}};
    hal_kernel *kernel = NULL;
    hal_status status =
        work->kind == HAL_COMMAND_DISPATCH ? kernel_parse(device, work, &kernel) : HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < work->binding_count; i++) {
        hal_buffer *buffer = NULL;
        if (work->bytes[i] > 0) {
            status = hal_buffer_create(device, HAL_MEMORY_DEVICE, work->bytes[i], &buffer);
            ranges[i] = (hal_range){buffer, 0, work->bytes[i]};
        }
        if (status == HAL_OK && buffer) {
            status = hal_queue_write(queue, buffer, 0, data[i], work->bytes[i]);
        }
    }
    status = status == HAL_OK ? work_record(queue, work, kernel, ranges) : status;
    for (uint32_t i = 0; i < work->binding_count; i++) {
        if (status == HAL_OK && ranges[i].buffer && (work->access[i] & HAL_ACCESS_WRITE)) {
            status = hal_queue_read(queue, ranges[i].buffer, 0, work->bytes[i], data[i]);
        }
        hal_buffer_release(ranges[i].buffer);
    }
    hal_kernel_release(kernel);
    return status;
}

/* Receives a command, runs it and answers. Returns 0 at the end of the channel. */
static bool work_serve(int channel, hal_device *device, hal_queue *queue)
{
    replay_work work;
    uint8_t *data[REPLAY_SIDE_BINDINGS] = {0};
    if (!receive_all(channel, &work, sizeof work) || work.binding_count > REPLAY_SIDE_BINDINGS) {
        return false;
    }
    char *ir = malloc((size_t)work.ir_bytes + 1);
    uint8_t *scalars = malloc((size_t)work.scalar_bytes + 1);
    bool well = ir && scalars && receive_all(channel, ir, work.ir_bytes) &&
                receive_all(channel, scalars, work.scalar_bytes);
    for (uint32_t i = 0; well && i < work.binding_count; i++) {
        data[i] = malloc(work.bytes[i] + 1);
        well = data[i] && receive_all(channel, data[i], work.bytes[i]);
    }
    work.ir = ir;
    work.scalars = scalars;
    well = well && answer_send(channel, work_run(queue, device, &work, data), 0);
    for (uint32_t i = 0; i < work.binding_count; i++) {
        well = well && send_all(channel, data[i], work.bytes[i]);
        free(data[i]);
    }
    free(ir);
    free(scalars);
    return well;
}

int replay_side_serve(int channel, const char *selection)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    hal_status status = hal_device_open(selection, &device);
    status = status == HAL_OK ? hal_queue_create(device, &queue) : status;
    const uint32_t width = status == HAL_OK ? hal_device_get_info(device)->subgroup_width : 0;
    bool well = answer_send(channel, status, width ? width : HAL_IR_EMULATED_SUBGROUP);
    while (well && status == HAL_OK) {
        well = work_serve(channel, device, queue);
    }
    hal_queue_destroy(queue);
    hal_device_release(device);
    return status == HAL_OK ? 0 : 2;
}

/* ---- The other end ---- */

static hal_status answer_receive(replay_side *side, side_answer *answer)
{
    char message[4096] = "";
    const bool well = receive_all(side->channel, answer, sizeof *answer) &&
                      answer->message_bytes < sizeof message &&
                      receive_all(side->channel, message, answer->message_bytes);
    if (!well) {
        return hal_status_set(HAL_ERROR_DEVICE_LOST, "%s: its process has ended", side->words);
    }
    return answer->status == HAL_OK
               ? HAL_OK
               : hal_status_set(answer->status, "%s: %s", side->words, message);
}

/* Becomes the process of a side. */
static _Noreturn void side_become(const char *words, int channel)
{
    char number[16], copy[1024];
    const char *program = "/proc/self/exe", *selection = "";
    snprintf(number, sizeof number, "%d", channel);
    snprintf(copy, sizeof copy, "%s", words);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strchr(word, '=')) {
            putenv(word);
        } else if (strchr(word, '/')) {
            program = word;
        } else {
            selection = word;
        }
    }
    execl(program, "hal-replay", "--serve", number, selection, (char *)NULL);
    _exit(2);
}

hal_status replay_side_start(replay_side *side, const char *words)
{
    int ends[2];
    side_answer answer;
    *side = (replay_side){.words = words, .channel = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return hal_status_set(HAL_ERROR_INTERNAL, "%s: no channel: %s", words, strerror(errno));
    }
    fflush(NULL);
    side->process = fork();
    if (side->process == 0) {
        side_become(words, dup(ends[1])); /* the copy stays open in the program */
    }
    close(ends[1]);
    side->channel = ends[0];
    HAL_TRY(answer_receive(side, &answer));
    side->lanes = answer.lanes;
    return HAL_OK;
}

hal_status replay_side_run(replay_side *side, const replay_work *work,
                           uint8_t *const results[REPLAY_SIDE_BINDINGS])
{
    side_answer answer;
    bool well = send_all(side->channel, work, sizeof *work) &&
                send_all(side->channel, work->ir, work->ir_bytes) &&
                send_all(side->channel, work->scalars, work->scalar_bytes);
    for (uint32_t i = 0; well && i < work->binding_count; i++) {
        well = send_all(side->channel, work->data[i], work->bytes[i]);
    }
    const hal_status status = answer_receive(side, &answer);
    for (uint32_t i = 0; status != HAL_ERROR_DEVICE_LOST && i < work->binding_count; i++) {
        if (!receive_all(side->channel, results[i], work->bytes[i])) {
            return hal_status_set(HAL_ERROR_DEVICE_LOST, "%s: its process has ended", side->words);
        }
    }
    return status;
}

void replay_side_end(replay_side *side)
{
    if (side->channel >= 0) {
        close(side->channel);
    }
    if (side->process > 0) {
        waitpid(side->process, NULL, 0);
    }
}
