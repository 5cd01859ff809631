/* child.c: processes that may crash, hang, print or fork. */
#include "case/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined __linux__
#include <sys/prctl.h>
#endif

int child_unnamed_file(void)
{
#if defined __linux__
    return memfd_create("conformance", MFD_CLOEXEC);
#else
    FILE *file = tmpfile();
    const int copy = file ? dup(fileno(file)) : -1;
    if (file) {
        fclose(file);
    }
    return copy;
#endif
}

/* In the child: whether its output is caught, and how much of it has been told. */
static bool catching;
static off_t told;

/* Output of the child goes to standard error, apart from the program's own output. */
static void catch_output(void)
{
    const int file = child_unnamed_file();
    if (dup2(file >= 0 ? file : STDERR_FILENO, STDOUT_FILENO) < 0) {
        close(STDOUT_FILENO);
    }
    if (file >= 0) {
        close(file);
    }
    catching = file >= 0;
    told = 0;
}

static void describe_end(const child *ended, int status, char *text, size_t bytes)
{
    if (WIFSIGNALED(status)) {
        snprintf(text, bytes, "ended by signal %d (%s)%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)),
                 WTERMSIG(status) != SIGKILL || ended->killed
                     ? ""
                     : ", which hal-conformance did not send: the machine may be out of memory");
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        snprintf(text, bytes, "ended with status %d", WEXITSTATUS(status));
    }
}

/* The terminal's interrupt reaches the parent only; elsewhere than on Linux a child outlives a
 * parent that was killed until its own time limit. */
static void die_with_parent(void)
{
#if defined __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

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
        setpgid(0, 0);
        die_with_parent();
        setrlimit(RLIMIT_CORE, &no_core);
        catch_output();
        body(user, ends[1]);
        close(ends[1]);
        exit(0);
    }
    setpgid(pid, pid); /* parent and child both call it; the first one wins */
    close(ends[1]);
    *started = (child){.pid = pid, .fd = ends[0]};
    return true;
}

void child_printed(char *text, size_t bytes)
{
    char part[4096];
    ssize_t got;
    size_t kept = 0;
    fflush(stdout);
    while (catching && (got = pread(STDOUT_FILENO, part, sizeof part, told)) > 0) {
        const size_t more = (size_t)got < bytes - 1 - kept ? (size_t)got : bytes - 1 - kept;
        memcpy(text + kept, part, more);
        kept += more;
        told += got;
        child_write(STDERR_FILENO, part, (size_t)got);
    }
    text[kept] = 0;
}

bool child_has_ended(child *ended, char *text, size_t bytes)
{
    int status = 0;
    text[0] = 0;
    const pid_t pid = waitpid(ended->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return false;
    }
    kill(-ended->pid, SIGKILL);
    describe_end(ended, status, text, bytes);
    ended->pid = 0;
    return true;
}

void child_close(child *ended)
{
    close(ended->fd);
    ended->fd = -1;
}

void child_finish(child *ended, double seconds, char *text, size_t bytes)
{
    const double deadline = child_now() + seconds;
    while (!child_has_ended(ended, text, bytes)) {
        if (!ended->killed && child_now() > deadline) {
            child_kill(ended);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    child_close(ended);
}

void child_kill(child *hung)
{
    hung->killed = true;
    kill(-hung->pid, SIGKILL);
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

/* Reads once, and waits where there is nothing to read. False at the end of the file and after
 * errors. */
static bool read_part(int fd, char **at, size_t *bytes)
{
    const ssize_t done = read(fd, *at, *bytes);
    if (done <= 0) {
        return done < 0 && errno == EINTR;
    }
    *at += done;
    *bytes -= (size_t)done;
    return true;
}

bool child_read(int fd, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0 && read_part(fd, &at, &bytes)) {
    }
    return bytes == 0;
}

bool child_read_within(int fd, double seconds, void *data, size_t bytes)
{
    const double deadline = child_now() + seconds;
    char *at = data;
    while (bytes > 0) {
        struct pollfd file = {.fd = fd, .events = POLLIN};
        const double left = deadline - child_now();
        if (left <= 0) {
            return false;
        }
        if (poll(&file, 1, (int)(left < 1.0 ? left * 1000 + 1 : 1000)) > 0 &&
            !read_part(fd, &at, &bytes)) {
            return false;
        }
    }
    return true;
}

double child_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double seconds_of(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

double child_processor_seconds(void)
{
    return seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
}
