/* Times all_reduce of f32 between processes: hal by the backend of HAL_COMM_TRANSPORT,
 * MPI_Allreduce on host memory, and the copies that a reduction through memory needs at least. They
 * take turns; a time is the median of the slowest rank's. usage: mpirun -n N rates [BYTES...] */
#include <hal/hal.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS = 3, ROUNDS = 15, SLOT = 2 << 20 };

typedef struct rates {
    hal_device *device;
    hal_queue *queue;
    hal_comm *comm;
    hal_buffer *send, *recv;
    float *host_send, *host_recv;
    char *slot;
    uint64_t count;
    uint32_t ranks;
} rates;

static int by_hal(rates *r)
{
    const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_F32};
    const hal_range send = {r->send, 0, HAL_WHOLE}, recv = {r->recv, 0, HAL_WHOLE};
    return hal_queue_collective(r->queue, r->comm, &sum, send, recv, r->count) == HAL_OK &&
           hal_queue_wait(r->queue, HAL_WAIT_FOREVER) == HAL_OK;
}

static int by_mpi(rates *r)
{
    return MPI_Allreduce(r->host_send, r->host_recv, (int)r->count, MPI_FLOAT, MPI_SUM,
                         MPI_COMM_WORLD) == MPI_SUCCESS;
}

/* Each rank publishes its contribution and receives 2 (N - 1) / N of it. */
static int by_copies(rates *r)
{
    const uint64_t out = r->count * sizeof(float), in = out * 2 * (r->ranks - 1) / r->ranks;
    for (uint64_t done = 0; done < out; done += SLOT) {
        memcpy(r->slot, (char *)r->host_send + done, out - done < SLOT ? out - done : SLOT);
    }
    for (uint64_t done = 0; done < in; done += SLOT) {
        memcpy((char *)r->host_recv + done % out, r->slot,
               in - done < SLOT          ? in - done
               : out - done % out < SLOT ? out - done % out
                                         : SLOT);
    }
    return 1;
}

static int (*const variants[VARIANTS])(rates *r) = {by_hal, by_mpi, by_copies};

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Seconds of a call: the median over rounds of the slowest rank. */
static int measure(rates *r, double seconds[VARIANTS])
{
    const int calls = r->count < 100000 ? 100 : 4;
    double times[VARIANTS][ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        for (int v = 0; v < VARIANTS; v++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            for (int i = 0; i < calls; i++) {
                if (!variants[v](r)) {
                    fprintf(stderr, "rates: %s\n", hal_status_message());
                    return 0;
                }
            }
            double own = (MPI_Wtime() - begin) / calls, slowest = 0;
            MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            times[v][round < 0 ? 0 : round] = slowest;
        }
    }
    for (int v = 0; v < VARIANTS; v++) {
        qsort(times[v], ROUNDS, sizeof(double), compare);
        seconds[v] = times[v][ROUNDS / 2];
    }
    return 1;
}

static int measure_size(rates *r, uint64_t bytes, const char *backend, int is_first)
{
    double seconds[VARIANTS];
    float last = 0;
    r->count = (bytes + 3) / 4;
    const uint64_t all = r->count * sizeof(float);
    r->host_send = malloc(all);
    r->host_recv = calloc(1, all);
    int good = r->host_send && r->host_recv &&
               hal_buffer_create(r->device, HAL_MEMORY_DEVICE, all, &r->send) == HAL_OK &&
               hal_buffer_create(r->device, HAL_MEMORY_DEVICE, all, &r->recv) == HAL_OK;
    for (uint64_t i = 0; good && i < r->count; i++) {
        r->host_send[i] = 1.0f;
    }
    good = good && hal_queue_write(r->queue, r->send, 0, r->host_send, all) == HAL_OK &&
           measure(r, seconds) &&
           hal_queue_read(r->queue, r->recv, all - sizeof last, sizeof last, &last) == HAL_OK &&
           last == (float)r->ranks;
    if (good && is_first) {
        printf("%10llu  %-7s %9.2f us   MPI_Allreduce %9.2f us, ratio %.2f   copies %9.2f us, "
               "ratio %.2f\n",
               (unsigned long long)all, backend, seconds[0] * 1e6, seconds[1] * 1e6,
               seconds[1] / seconds[0], seconds[2] * 1e6, seconds[2] / seconds[0]);
        fflush(stdout);
    }
    hal_buffer_release(r->send);
    hal_buffer_release(r->recv);
    free(r->host_send);
    free(r->host_recv);
    r->send = r->recv = NULL;
    return good;
}

int main(int count, char **arguments)
{
    static const uint64_t usual[] = {4, 4096, 65536, 1 << 20, 16 << 20};
    rates r = {.slot = calloc(1, SLOT)};
    hal_comm_status is = {0};
    int level = 0, good = 0;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &level);
    good = r.slot && hal_device_open("cpu", &r.device) == HAL_OK &&
           hal_queue_create(r.device, &r.queue) == HAL_OK &&
           hal_comm_create_from_environment(r.device, 0, &r.comm) == HAL_OK &&
           hal_comm_get_status(r.comm, &is) == HAL_OK;
    r.ranks = is.count;
    for (int i = 0; good && i < (count > 1 ? count - 1 : 5); i++) {
        const uint64_t bytes = count > 1 ? strtoull(arguments[i + 1], NULL, 10) : usual[i];
        good = measure_size(&r, bytes, is.backend, is.rank == 0);
    }
    if (!good) {
        fprintf(stderr, "rates: %s\n", hal_status_message());
    }
    hal_comm_destroy(r.comm);
    hal_queue_destroy(r.queue);
    hal_device_release(r.device);
    free(r.slot);
    MPI_Finalize();
    return !good;
}
