/* child.c: processes that may crash or hang; child.h says who calls it. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

bool child_start(child *started, child_body body, void *user)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) {
        const int error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return false;
    }
    if (pid == 0) {
        const struct rlimit no_core = {0, 0};
        close(ends[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &no_core);
        body(user, ends[1]);
        close(ends[1]);
        exit(0);
    }
    close(ends[1]);
    *started = (child){.pid = pid, .fd = ends[0]};
    return true;
}

void child_finish(child *ended, char *text, size_t bytes)
{
    int status = 0;
    text[0] = 0;
    close(ended->fd);
    while (waitpid(ended->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        snprintf(text, bytes, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        snprintf(text, bytes, "ended with status %d", WEXITSTATUS(status));
    }
    ended->pid = 0;
}

void child_kill(child *hung)
{
    kill(hung->pid, SIGKILL);
}

bool child_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t done = write(fd, at, bytes);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

bool child_read(int fd, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        const ssize_t done = read(fd, at, bytes);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}
