/* Jobs in the background: a queue in order of arrival, and threads that exist only while it has
 * jobs. Used for kernels that are compiled ahead. */
#ifndef HAL_SRC_BASE_JOBS_H
#define HAL_SRC_BASE_JOBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* With the driver of an H200, 15 threads assembled 32 kernels 8.4 times as fast as one thread. */
enum { HAL_JOBS_THREADS = 15 };

typedef enum hal_job_state {
    HAL_JOB_ENDED, /* or never added */
    HAL_JOB_QUEUED,
    HAL_JOB_RUNNING
} hal_job_state;

/* A part of the object that it works on. */
typedef struct hal_job hal_job;
struct hal_job {
    hal_job *next;
    void (*run)(hal_job *job);
    hal_job_state state; /* guarded by the lock of the jobs */
};

typedef struct hal_jobs {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a job has */
    hal_job *first;
    hal_job **last;
    uint32_t live; /* threads that take jobs */
    uint32_t most; /* of these */
    struct hal_jobs_thread {
        struct hal_jobs *jobs;
        pthread_t id;
        enum { HAL_THREAD_NONE, HAL_THREAD_LIVE, HAL_THREAD_ENDED } state;
    } threads[HAL_JOBS_THREADS];
} hal_jobs;

/* At most one thread less than the process has processors takes jobs. */
void hal_jobs_init(hal_jobs *jobs);

/* Drops queued jobs, waits for the one that each thread runs, and ends the threads. */
void hal_jobs_deinit(hal_jobs *jobs);

/* The most threads that take jobs. Without any, a job is run by hal_jobs_finish. */
uint32_t hal_jobs_get_most(const hal_jobs *jobs);

/* Adds a job that is not queued or running. Threads: any. */
void hal_jobs_add(hal_jobs *jobs, hal_job *job);

/* Runs the job where no thread has begun it. Threads: any. */
void hal_jobs_help(hal_jobs *jobs, hal_job *job);

/* Returns when the job has ended, and runs it where no thread has begun it. Threads: any. */
void hal_jobs_finish(hal_jobs *jobs, hal_job *job);

/* Takes a job out of the queue. Returns false if it is running. Threads: any. */
bool hal_jobs_cancel(hal_jobs *jobs, hal_job *job);

/* Joins threads that found no more jobs: there are none left after the last job has ended and a
 * thread has called this. Threads: any. */
void hal_jobs_join(hal_jobs *jobs);

#endif
