/* Counts of calls for each routine, see summary.h. */
#include "summary.h"

#include "host.h"
#include "model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct routine_counts {
    uint64_t calls, device_calls;
    uint64_t moved_bytes;            /* between the host's memory and the device */
    uint64_t device_time, host_time; /* nanoseconds of calls there */
    uint64_t instead_time;           /* that the host would have taken for those on the device */
    bool is_instead_known;
} routine_counts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the routines, then of the factorisations by kind and type. */
#define FACTORINGS (BLAS_STANDARD_TYPES * BLAS_FACTORING_COUNT)
static routine_counts counts[BLAS_ROUTINE_COUNT + FACTORINGS];
static bool is_wanted;

/* A child counts its own calls. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(counts, 0, sizeof counts);
}

__attribute__((constructor)) static void summary_begin(void)
{
    const char *text = secure_getenv("HALYARD_BLAS_LOG");
    is_wanted = text && strcmp(text, "summary") == 0;
    pthread_atfork(NULL, NULL, reset_in_child);
}

bool blas_summary_is_wanted(void)
{
    return is_wanted;
}

uint64_t blas_summary_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* `instead` is 0 where it is not known. */
static void count_add(routine_counts *c, bool on_device, uint64_t moved, uint64_t start,
                      double instead)
{
    const uint64_t taken = blas_summary_clock() - start;
    pthread_mutex_lock(&lock);
    c->calls++;
    c->device_calls += on_device;
    c->moved_bytes += moved;
    *(on_device ? &c->device_time : &c->host_time) += taken;
    c->instead_time += (uint64_t)instead;
    c->is_instead_known = c->is_instead_known || instead > 0;
    pthread_mutex_unlock(&lock);
}

void blas_summary_add(const blas_call *call, bool on_device, uint64_t moved, uint64_t start)
{
    count_add(&counts[call->routine], on_device, moved, start,
              on_device ? blas_model_times(call).host : 0);
}

void blas_summary_add_factoring(const blas_factoring *call, bool on_device, uint64_t moved,
                                uint64_t start)
{
    const int row = BLAS_ROUTINE_COUNT + BLAS_STANDARD_TYPES * (int)call->kind + (int)call->type;
    count_add(&counts[row], on_device, moved, start,
              on_device ? blas_model_factoring_times(call).host : 0);
}

static const char *row_name(int row, char text[16])
{
    if (row < BLAS_ROUTINE_COUNT) {
        return blas_routines[row].name;
    }
    const int factoring = row - BLAS_ROUTINE_COUNT;
    const int type = factoring % BLAS_STANDARD_TYPES;
    snprintf(
        text, 16, "%c%s", "sdcz"[type],
        blas_lapack_name((blas_factoring_kind)(factoring / BLAS_STANDARD_TYPES), (blas_type)type));
    return text;
}

/* Seconds with three decimals, which no locale changes. */
static const char *seconds(uint64_t nanoseconds, char text[32])
{
    const unsigned long long thousandths = (nanoseconds + 500000) / 1000000;
    snprintf(text, 32, "%llu.%03llu", thousandths / 1000, thousandths % 1000);
    return text;
}

__attribute__((destructor)) static void summary_print(void)
{
    uint64_t calls = 0;
    for (int i = 0; i < BLAS_ROUTINE_COUNT + FACTORINGS; i++) {
        calls += counts[i].calls;
    }
    if (!is_wanted || calls == 0) {
        return;
    }
    fprintf(stderr, "halyard blas: host %s\n%-10s %10s %10s %10s %12s %12s %12s\n",
            *blas_host_path() ? blas_host_path() : "none", "routine", "calls", "on device",
            "MB moved", "s on device", "host instead", "s on host");
    for (int i = 0; i < BLAS_ROUTINE_COUNT + FACTORINGS; i++) {
        const routine_counts *c = &counts[i];
        char text[3][32], name[16];
        if (c->calls == 0) {
            continue;
        }
        fprintf(stderr, "%-10s %10llu %10llu %10llu %12s %12s %12s\n", row_name(i, name),
                (unsigned long long)c->calls, (unsigned long long)c->device_calls,
                (unsigned long long)(c->moved_bytes / 1000000), seconds(c->device_time, text[0]),
                c->is_instead_known ? seconds(c->instead_time, text[1]) : "-",
                seconds(c->host_time, text[2]));
    }
}
