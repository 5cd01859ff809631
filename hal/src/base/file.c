/* Reading and writing of files, see file.h. */
#include "file.h"

#include "cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3

/* SIGXFSZ while it is blocked for the thread. */
typedef struct size_signal {
    sigset_t signals;
    sigset_t mask; /* before */
    bool was_pending;
} size_signal;

static size_signal size_signal_block(void)
{
    size_signal blocked;
    sigset_t pending;
    sigemptyset(&blocked.signals);
    sigaddset(&blocked.signals, SIGXFSZ);
    sigpending(&pending);
    blocked.was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &blocked.signals, &blocked.mask);
    return blocked;
}

/* Takes the signal of a write, which is sent to the thread, but none of the program's. Keeps
 * errno. */
static void size_signal_unblock(const size_signal *blocked, int error)
{
    if (error == EFBIG && !blocked->was_pending) {
#if defined __APPLE__
        int got;
        sigset_t pending;
        if (sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1) {
            sigwait(&blocked->signals, &got);
        }
#else
        const struct timespec now = {0};
        while (sigtimedwait(&blocked->signals, NULL, &now) < 0 && errno == EINTR) {
        }
#endif
    }
    pthread_sigmask(SIG_SETMASK, &blocked->mask, NULL);
    errno = error;
}

/* A negative offset: at the file's position. */
static bool bytes_write(int file, const char *at, uint64_t bytes, off_t offset)
{
    HAL_UNCANCELLED;
    const size_signal blocked = size_signal_block();
    int error = 0;
    while (bytes > 0 && error == 0) {
        const ssize_t written =
            offset < 0 ? write(file, at, bytes) : pwrite(file, at, bytes, offset);
        if (written > 0) {
            at += written;
            bytes -= (uint64_t)written;
            offset += offset < 0 ? 0 : (off_t)written;
        } else if (written == 0) {
            error = ENOSPC;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    size_signal_unblock(&blocked, error);
    return error == 0;
}

/* A descriptor above 2 in place of one that may not be. */
static int move_up(int file)
{
    if (file < 0 || file >= FIRST_DESCRIPTOR) {
        return file;
    }
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    const int error = errno;
    close(file);
    errno = error;
    return moved;
}

int hal_file_open(const char *path, int flags, mode_t mode)
{
    HAL_UNCANCELLED;
    return move_up(open(path, flags | O_CLOEXEC, mode));
}

int hal_file_create_unique(char *name)
{
    HAL_UNCANCELLED;
    return move_up(mkostemp(name, O_CLOEXEC));
}

bool hal_file_read(int file, void *data, uint64_t bytes)
{
    HAL_UNCANCELLED;
    char *at = data;
    while (bytes > 0) {
        const ssize_t got = read(file, at, bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        bytes -= (uint64_t)got;
    }
    return true;
}

bool hal_file_write(int file, const void *data, uint64_t bytes)
{
    return bytes_write(file, data, bytes, -1);
}

bool hal_file_write_at(int file, const void *data, uint64_t bytes, off_t offset)
{
    return bytes_write(file, data, bytes, offset);
}
