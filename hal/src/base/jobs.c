/* Jobs in the background, see jobs.h. */
#include "jobs.h"

#include "cancel.h"
#include "fork.h"
#include "platform.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compilers of drivers recurse deeply; a thread of a small default stack would overflow. */
#define STACK_BYTES ((size_t)8 << 20)

/* While the process exits no job begins, and exit waits for those that are running: destructors of
 * drivers would pull the compiler away from them. */
static pthread_mutex_t exit_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(exit_lock, HAL_FORK_LEAF)
static pthread_cond_t none_runs = PTHREAD_COND_INITIALIZER;
static uint32_t running; /* jobs of threads, in the process `owner` */
static pid_t owner;      /* a child of fork has none of the threads */
static bool is_exiting;
static bool is_registered;

static void process_exit(void)
{
    pthread_mutex_lock(&exit_lock);
    is_exiting = true;
    while (owner == getpid() && running > 0) {
        pthread_cond_wait(&none_runs, &exit_lock);
    }
    pthread_mutex_unlock(&exit_lock);
}

#ifdef __linux__
/* exit begins with the destructors of its thread's variables, and only then calls the handlers of
 * atexit, of which a compiler registers some while it works: those would come before the handler
 * above. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
    __attribute__((weak));
extern void *__dso_handle;

static void main_thread_exit(void *unused)
{
    (void)unused;
    process_exit();
}

static void main_thread_register(void)
{
    static _Thread_local bool is_known;
    if (!is_known && __cxa_thread_atexit_impl && gettid() == getpid()) {
        __cxa_thread_atexit_impl(main_thread_exit, NULL, &__dso_handle);
    }
    is_known = true;
}
#else
static void main_thread_register(void)
{
}
#endif

static void exit_register(void)
{
    main_thread_register();
    pthread_mutex_lock(&exit_lock);
    if (owner != getpid()) {
        owner = getpid();
        running = 0;
        pthread_cond_init(&none_runs, NULL);
    }
    is_registered = is_registered || atexit(process_exit) == 0;
    pthread_mutex_unlock(&exit_lock);
}

static bool job_may_begin(void)
{
    pthread_mutex_lock(&exit_lock);
    const bool may = !is_exiting && is_registered;
    running += may;
    pthread_mutex_unlock(&exit_lock);
    return may;
}

static void job_has_ended(void)
{
    pthread_mutex_lock(&exit_lock);
    if (--running == 0) {
        pthread_cond_broadcast(&none_runs);
    }
    pthread_mutex_unlock(&exit_lock);
}

/* The caller holds the lock. */
static void job_unlink(hal_jobs *jobs, hal_job *job)
{
    hal_job **at = &jobs->first;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    if (jobs->last == &job->next) {
        jobs->last = at;
    }
}

/* Runs a job that was taken out of the queue. The caller holds the lock, which is free meanwhile.
 */
static void job_run(hal_jobs *jobs, hal_job *job)
{
    job->state = HAL_JOB_RUNNING;
    pthread_mutex_unlock(&jobs->lock);
    job->run(job);
    pthread_mutex_lock(&jobs->lock);
    job->state = HAL_JOB_ENDED;
    pthread_cond_broadcast(&jobs->ended);
}

/* That the last job has ended and that its thread ends become known at once. */
static void *thread_run(void *user)
{
    struct hal_jobs_thread *thread = user;
    hal_jobs *jobs = thread->jobs;
    pthread_mutex_lock(&jobs->lock);
    while (jobs->first && job_may_begin()) {
        hal_job *job = jobs->first;
        job_unlink(jobs, job);
        job_run(jobs, job);
        job_has_ended();
    }
    thread->state = HAL_THREAD_ENDED;
    jobs->live--;
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* Starts a thread, which takes no signals. The caller holds the lock. */
static void thread_start(hal_jobs *jobs)
{
    struct hal_jobs_thread *thread = jobs->threads;
    pthread_attr_t attributes;
    sigset_t all, before;
    while (thread->state == HAL_THREAD_LIVE) {
        thread++;
    }
    if (thread->state == HAL_THREAD_ENDED) { /* it needs the lock no more */
        pthread_join(thread->id, NULL);
        thread->state = HAL_THREAD_NONE;
    }
    if (pthread_attr_init(&attributes) != 0) {
        return;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread->jobs = jobs;
    if (pthread_create(&thread->id, &attributes, thread_run, thread) == 0) {
        thread->state = HAL_THREAD_LIVE;
        jobs->live++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

void hal_jobs_init(hal_jobs *jobs)
{
    const uint32_t others = hal_processor_count() - 1;
    memset(jobs, 0, sizeof *jobs);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->ended, NULL);
    jobs->last = &jobs->first;
    jobs->most = others < HAL_JOBS_THREADS ? others : HAL_JOBS_THREADS;
}

void hal_jobs_deinit(hal_jobs *jobs)
{
    HAL_UNCANCELLED;
    bool is_started[HAL_JOBS_THREADS];
    pthread_mutex_lock(&jobs->lock);
    while (jobs->first) {
        hal_job *job = jobs->first;
        job_unlink(jobs, job);
        job->state = HAL_JOB_ENDED;
    }
    for (uint32_t i = 0; i < HAL_JOBS_THREADS; i++) {
        is_started[i] = jobs->threads[i].state != HAL_THREAD_NONE;
    }
    pthread_mutex_unlock(&jobs->lock);
    for (uint32_t i = 0; i < HAL_JOBS_THREADS; i++) {
        if (is_started[i]) {
            pthread_join(jobs->threads[i].id, NULL);
        }
    }
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->ended);
}

uint32_t hal_jobs_get_most(const hal_jobs *jobs)
{
    return jobs->most;
}

void hal_jobs_add(hal_jobs *jobs, hal_job *job)
{
    HAL_UNCANCELLED;
    exit_register();
    pthread_mutex_lock(&jobs->lock);
    job->state = HAL_JOB_QUEUED;
    job->next = NULL;
    *jobs->last = job;
    jobs->last = &job->next;
    if (jobs->live < jobs->most) {
        thread_start(jobs);
    }
    pthread_mutex_unlock(&jobs->lock);
}

void hal_jobs_help(hal_jobs *jobs, hal_job *job)
{
    pthread_mutex_lock(&jobs->lock);
    if (job->state == HAL_JOB_QUEUED) {
        job_unlink(jobs, job);
        job_run(jobs, job);
    }
    pthread_mutex_unlock(&jobs->lock);
}

void hal_jobs_finish(hal_jobs *jobs, hal_job *job)
{
    HAL_UNCANCELLED;
    hal_jobs_help(jobs, job);
    pthread_mutex_lock(&jobs->lock);
    while (job->state == HAL_JOB_RUNNING) {
        pthread_cond_wait(&jobs->ended, &jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
}

bool hal_jobs_cancel(hal_jobs *jobs, hal_job *job)
{
    pthread_mutex_lock(&jobs->lock);
    const bool is_queued = job->state == HAL_JOB_QUEUED;
    const bool is_running = job->state == HAL_JOB_RUNNING;
    if (is_queued) {
        job_unlink(jobs, job);
        job->state = HAL_JOB_ENDED;
    }
    pthread_mutex_unlock(&jobs->lock);
    return !is_running;
}

void hal_jobs_join(hal_jobs *jobs)
{
    HAL_UNCANCELLED;
    pthread_mutex_lock(&jobs->lock);
    for (uint32_t i = 0; i < HAL_JOBS_THREADS; i++) {
        struct hal_jobs_thread *thread = &jobs->threads[i];
        if (thread->state == HAL_THREAD_ENDED) { /* it needs the lock no more */
            pthread_join(thread->id, NULL);
            thread->state = HAL_THREAD_NONE;
        }
    }
    pthread_mutex_unlock(&jobs->lock);
}
