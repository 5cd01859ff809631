/* A rank of a communicator over MPI, for ranks.sh: what the ranks compute, and what they are told
 * when one of them fails. Rank 1 is the one that fails. usage: ranks sums|many
 * GROUPS|abort|disagree|late MS|leave|exit|kill MS|solo MS: milliseconds that the ranks wait for
 * one another, of which a late one takes three times as many. */
#include <hal/hal.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Numbers of elements: whole work-groups and not, within one message and two, in one step and two,
 * several pieces and a rest. */
static const uint32_t counts[] = {1, 255, 256, 1000, 1700, 2100, 20000, 100001, 1500007};
enum { MOST = 1500007 };

typedef struct rank_state {
    hal_device *device;
    hal_queue *queue;
    hal_comm *comm;
    hal_buffer *buffer;
    hal_comm_status is;
} rank_state;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, hal_status_message());
    return 1;
}

static hal_status rank_sum(const rank_state *on, hal_comm *comm, uint64_t count, uint32_t kind)
{
    const hal_collective sum = {.kind = kind, .type = HAL_TYPE_F32};
    const hal_range all = {on->buffer, 0, HAL_WHOLE};
    const hal_status status = hal_queue_collective(on->queue, comm, &sum, all, all, count);
    return status == HAL_OK ? hal_queue_wait(on->queue, HAL_WAIT_FOREVER) : status;
}

/* Continues a hash of sums whose bits depend on the order of the additions. */
static hal_status sum_hash(const rank_state *on, uint32_t count, float *values, uint64_t *hash)
{
    for (uint32_t i = 0; i < count; i++) {
        values[i] = (float)((i * 2654435761u + on->is.rank * 40503u) % 100003u) * 1e-3f /
                    (float)(1 + (i + on->is.rank) % 7);
    }
    hal_status status = hal_queue_write(on->queue, on->buffer, 0, values, count * sizeof *values);
    if (status == HAL_OK) {
        status = rank_sum(on, on->comm, count, HAL_COLLECTIVE_ALL_REDUCE);
    }
    if (status == HAL_OK) {
        status = hal_queue_read(on->queue, on->buffer, 0, count * sizeof *values, values);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        *hash = (*hash ^ bits) * UINT64_C(1099511628211);
    }
    return status;
}

static int sums(const rank_state *on)
{
    float *values = malloc(MOST * sizeof *values);
    uint64_t hash = UINT64_C(14695981039346656037);
    hal_status status = values ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; status == HAL_OK && i < sizeof counts / sizeof *counts; i++) {
        status = sum_hash(on, counts[i], values, &hash);
    }
    free(values);
    if (status != HAL_OK) {
        return fail("the sums");
    }
    printf("%s %u %016llx\n", on->is.backend, on->is.count, (unsigned long long)hash);
    return 0;
}

static uint64_t resident_kib(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const int found = file && fscanf(file, "%*u %llu", &pages) == 1;
    if (file) {
        fclose(file);
    }
    return found ? pages * 4 : 0;
}

/* Communicators that are divided and left again: memory does not grow with their number. */
static int many(const rank_state *on, uint32_t comms)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < comms; i++) {
        hal_comm *part = NULL;
        const int32_t color = (int32_t)((on->is.rank + i) % 2), key = -(int32_t)on->is.rank;
        if (hal_comm_split(&on->comm, 1, &color, &key, &part) != HAL_OK ||
            rank_sum(on, part, 3, HAL_COLLECTIVE_ALL_REDUCE) != HAL_OK) {
            return fail("many");
        }
        hal_comm_destroy(part);
        before = i == comms / 4 ? resident_kib() : before;
    }
    const uint64_t after = resident_kib();
    if (after > before + 2048) {
        fprintf(stderr, "many: %llu KiB in use, and %llu KiB after more communicators\n",
                (unsigned long long)before, (unsigned long long)after);
        return 1;
    }
    return 0;
}

static void pause_ms(long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Repeats sums until they fail, which has to be with this status and text. */
static int expect(const rank_state *on, hal_status status, const char *text)
{
    hal_status got = HAL_OK;
    hal_comm_status is;
    while (got == HAL_OK) {
        got = rank_sum(on, on->comm, 5000, HAL_COLLECTIVE_ALL_REDUCE);
    }
    if (got != status || !strstr(hal_status_message(), text)) {
        fprintf(stderr, "rank %u: expected %s with \"%s\", got %s: %s\n", on->is.rank,
                hal_status_name(status), text, hal_status_name(got), hal_status_message());
        return 1;
    }
    if (hal_comm_get_status(on->comm, &is) != HAL_OK || is.status != status ||
        rank_sum(on, on->comm, 5, HAL_COLLECTIVE_ALL_REDUCE) != status) {
        return fail("the state after the failure");
    }
    return 0;
}

/* Rank 1 ends the communicator by what `how` says; the others have to be told, within `limit_ms` of
 * its last call. */
static int failure(rank_state *on, const char *how, long limit_ms)
{
    const int is_one = on->is.rank == 1;
    if (is_one && rank_sum(on, on->comm, 5000, HAL_COLLECTIVE_ALL_REDUCE) != HAL_OK) {
        return fail("a sum before the failure");
    }
    if (strcmp(how, "abort") == 0) {
        if (is_one) {
            hal_comm_abort(on->comm, "enough");
        }
        return expect(on, HAL_ERROR_INVALID_STATE, "rank 1 of 3: enough");
    }
    if (strcmp(how, "disagree") == 0) {
        if (is_one && rank_sum(on, on->comm, 4000, HAL_COLLECTIVE_ALL_REDUCE) == HAL_OK) {
            return fail("a sum of another length");
        }
        return expect(on, HAL_ERROR_INVALID_ARGUMENT, "expected the same collective");
    }
    if (!is_one) {
        return strcmp(how, "leave") == 0
                   ? expect(on, HAL_ERROR_INVALID_STATE, "rank 1 of 3: it left the communicator")
               : strcmp(how, "exit") == 0
                   ? expect(on, HAL_ERROR_INVALID_STATE, "rank 1 of 3: its process ended")
                   : expect(on, HAL_ERROR_TIMEOUT, "rank 1 of 3: it did not reach step");
    }
    if (strcmp(how, "leave") == 0) {
        hal_comm_destroy(on->comm);
        on->comm = NULL;
    } else if (strcmp(how, "exit") == 0) {
        exit(0);
    } else if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else {
        pause_ms(3 * limit_ms);
    }
    return 0;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "sums";
    const int is_late = strcmp(what, "late") == 0 || strcmp(what, "kill") == 0;
    const long number = count > 2 ? atol(arguments[2]) : 0;
    const long limit_ms = is_late && number > 0 ? number : 20000;
    rank_state on = {0};
    int failed = 0;
    if (hal_device_open("cpu", &on.device) != HAL_OK ||
        hal_queue_create(on.device, &on.queue) != HAL_OK ||
        hal_buffer_create(on.device, HAL_MEMORY_DEVICE, MOST * sizeof(float), &on.buffer) !=
            HAL_OK ||
        hal_queue_fill(on.queue, (hal_range){on.buffer, 0, HAL_WHOLE}, 0) != HAL_OK) {
        return fail("the device");
    }
    const hal_status status =
        hal_comm_create_from_environment(on.device, (uint64_t)limit_ms * 1000000, &on.comm);
    if (strcmp(what, "solo") == 0) {
        printf("%s\n", status == HAL_OK ? "created" : hal_status_message());
        failed = status != HAL_ERROR_UNSUPPORTED;
    } else if (status != HAL_OK || hal_comm_get_status(on.comm, &on.is) != HAL_OK) {
        failed = fail("the communicator");
    } else {
        failed = strcmp(what, "sums") == 0   ? sums(&on)
                 : strcmp(what, "many") == 0 ? many(&on, number > 0 ? (uint32_t)number : 1000)
                                             : failure(&on, what, limit_ms);
    }
    hal_comm_destroy(on.comm);
    hal_buffer_release(on.buffer);
    hal_queue_destroy(on.queue);
    hal_device_release(on.device);
    return failed;
}
