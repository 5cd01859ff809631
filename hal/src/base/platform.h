/* What glibc and macOS do differently. Only this file, file.c and the check of ELF files ask which
 * system hal is on. */
#ifndef HAL_SRC_BASE_PLATFORM_H
#define HAL_SRC_BASE_PLATFORM_H

#include "cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#if defined __APPLE__
#include <crt_externs.h>
#include <unistd.h>
#include <xlocale.h>

/* Reserves memory for a file. Returns 0 or an errno. */
static inline int hal_file_reserve(int file, uint64_t bytes)
{
    return ftruncate(file, (off_t)bytes) == 0 ? 0 : errno;
}

/* Locks of shared memory do not exist: the end of another process is found by time limits only. */
static inline bool hal_file_lock_byte(int file, uint64_t offset)
{
    (void)file;
    (void)offset;
    return true;
}

static inline bool hal_file_is_byte_locked(int file, uint64_t offset)
{
    (void)file;
    (void)offset;
    return true;
}

/* Memory of other processes cannot be read. */
static inline int hal_process_read(int64_t process, const struct iovec *to,
                                   const struct iovec *from, uint32_t count)
{
    (void)process;
    (void)to;
    (void)from;
    (void)count;
    return ENOSYS;
}

/* Whether the process has the rights of another user than the one who started it. */
static inline bool hal_process_is_secure(void)
{
    return issetugid();
}

/* A pipe whose ends child processes do not get. Returns 0 or an errno. */
static inline int hal_pipe(int ends[2])
{
    if (pipe(ends) != 0) {
        return errno;
    }
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

static inline char **hal_environment(void)
{
    return *_NSGetEnviron();
}

static inline char *secure_getenv(const char *name)
{
    return issetugid() ? NULL : (getenv)(name);
}

static inline void hal_condition_init(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

/* Processors that this thread may use. */
static inline uint32_t hal_processor_count(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

/* Waits for at most `timeout_ns`. 0, or an error of pthread_cond_timedwait. */
static inline int hal_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                     uint64_t timeout_ns)
{
    HAL_UNCANCELLED;
    const struct timespec time = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                  .tv_nsec = (long)(timeout_ns % 1000000000u)};
    return pthread_cond_timedwait_relative_np(condition, lock, &time);
}
#else
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

static inline int hal_file_reserve(int file, uint64_t bytes)
{
    int error;
    while ((error = posix_fallocate(file, 0, (off_t)bytes)) == EINTR) {
    }
    return error;
}

static inline struct flock hal_file_byte(uint64_t offset)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
}

/* Locks a byte until the file is closed, at the latest when the process ends. Returns 0 when
 * another open file has it locked. */
static inline bool hal_file_lock_byte(int file, uint64_t offset)
{
    struct flock lock = hal_file_byte(offset);
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

/* Whether another open file has the byte locked. */
static inline bool hal_file_is_byte_locked(int file, uint64_t offset)
{
    struct flock lock = hal_file_byte(offset);
    return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Copies `count` pieces of memory out of another process. Returns 0 or an errno. */
static inline int hal_process_read(int64_t process, const struct iovec *to,
                                   const struct iovec *from, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += from[i].iov_len;
    }
    const ssize_t copied = process_vm_readv((pid_t)process, to, count, from, count, 0);
    return copied < 0 ? errno : (size_t)copied == bytes ? 0 : EFAULT;
}

static inline char **hal_environment(void)
{
    return environ;
}

static inline bool hal_process_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

static inline int hal_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
}

static inline uint32_t hal_processor_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static inline void hal_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static inline int hal_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                     uint64_t timeout_ns)
{
    HAL_UNCANCELLED;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const uint64_t nanoseconds = (uint64_t)end.tv_nsec + timeout_ns % 1000000000u;
    end.tv_sec += (time_t)(timeout_ns / 1000000000u + nanoseconds / 1000000000u);
    end.tv_nsec = (long)(nanoseconds % 1000000000u);
    return pthread_cond_timedwait(condition, lock, &end);
}
#endif

/* Sleeps, or less if a signal comes. */
static inline void hal_pause_ns(long nanoseconds)
{
    HAL_UNCANCELLED;
    const struct timespec time = {.tv_sec = 0, .tv_nsec = nanoseconds};
    nanosleep(&time, NULL);
}

#endif
