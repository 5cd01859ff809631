/* The start of a communicator of processes: a rank that is killed anywhere in it does not block the
 * next job of the same name; interrupted calls are repeated; a system without shared memory is told
 * as such. Calls of the C library that the start makes are counted here. */
#include "unit.h"

#include "comm/mailbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS UINT64_C(2000000000)

static int dies_at = -1; /* number of the step before which the process is killed */
static int steps, interruptions;
static bool has_no_memory;

static void step(void)
{
    if (steps++ == dies_at) {
        raise(SIGKILL);
    }
}

HAL_API int posix_fallocate(int file, off_t offset, off_t bytes)
{
    int (*real)(int, off_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
    step();
    const int error = interruptions > 0 ? EINTR : real(file, offset, bytes);
    interruptions -= interruptions > 0;
    step();
    return error;
}

HAL_API int linkat(int from, const char *path, int to, const char *name, int flags)
{
    int (*real)(int, const char *, int, const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    step();
    const int error = real(from, path, to, name, flags);
    step();
    return error;
}

HAL_API void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *(*real)(void *, size_t, int, int, int, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    if (file >= 0) {
        step();
    }
    void *memory = real(at, bytes, protection, flags, file, offset);
    if (file >= 0) {
        step();
    }
    return memory;
}

HAL_API int fcntl(int file, int what, ...)
{
    int (*real)(int, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    va_list arguments;
    va_start(arguments, what);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    step();
    const int result = real(file, what, argument);
    step();
    return result;
}

HAL_API int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "open");
    va_list arguments;
    va_start(arguments, flags);
    const int mode = va_arg(arguments, int);
    va_end(arguments);
    if (has_no_memory) {
        errno = ENOENT;
        return -1;
    }
    return real(path, flags, mode);
}

HAL_API int shm_open(const char *name, int flags, mode_t mode)
{
    int (*real)(const char *, int, mode_t);
    *(void **)&real = dlsym(RTLD_NEXT, "shm_open");
    if (has_no_memory) {
        errno = ENOENT;
        return -1;
    }
    return real(name, flags, mode);
}

static hal_comm_id id_make(void)
{
    hal_comm_id id;
    assert_ok(hal_comm_id_create(&id));
    return id;
}

static void both_ranks_start(const hal_comm_id *id)
{
    hal_mailbox *ranks[2];
    for (uint32_t r = 0; r < 2; r++) {
        assert_ok(hal_mailbox_open(id, r, 2, 1, LIMIT_NS, "test", &ranks[r]));
    }
    for (uint32_t r = 0; r < 2; r++) {
        assert_ok(hal_mailbox_wait_joined(ranks[r], LIMIT_NS, "test"));
        hal_mailbox_close(ranks[r], r);
    }
}

TEST(a_killed_start_does_not_block_the_name)
{
    int last = 0;
    for (int at = 0; at <= last; at++) {
        const hal_comm_id id = id_make();
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            hal_mailbox *mailbox;
            steps = 0;
            dies_at = at;
            hal_mailbox_open(&id, 0, 2, 1, LIMIT_NS, "test", &mailbox);
            dies_at = -1;
            if (write(ends[1], &steps, sizeof steps) == sizeof steps) {
                raise(SIGKILL); /* after the start */
            }
            _exit(1);
        }
        close(ends[1]);
        int made = 0;
        last = read(ends[0], &made, sizeof made) == sizeof made ? last : at + 1;
        close(ends[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        both_ranks_start(&id);
    }
    assert_true(last >= 8);
}

TEST(interrupted_reservations_are_repeated)
{
    const hal_comm_id id = id_make();
    interruptions = 3;
    both_ranks_start(&id);
    assert_int_equal(interruptions, 0);
}

TEST(a_system_without_shared_memory_is_unsupported)
{
    const hal_comm_id id = id_make();
    hal_mailbox *mailbox;
    has_no_memory = true;
    const hal_status status = hal_mailbox_open(&id, 0, 2, 1, LIMIT_NS, "test", &mailbox);
    has_no_memory = false;
    assert_int_equal(status, HAL_ERROR_UNSUPPORTED);
}

UNIT_MAIN(NULL, NULL)
