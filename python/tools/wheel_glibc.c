/* Functions that the compiler's glibc has and the older one that a wheel is linked for lacks, for
 * the files of the wheel. wheel_glibc.py puts them next to the symbols of that glibc. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 2.30 */
pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* 2.33; before, a program had these four in itself */
int fstatat(int folder, const char *restrict path, struct stat *restrict status, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, status, flags);
}

int stat(const char *restrict path, struct stat *restrict status)
{
    return fstatat(AT_FDCWD, path, status, 0);
}

int lstat(const char *restrict path, struct stat *restrict status)
{
    return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *status)
{
    return (int)syscall(SYS_fstat, file, status);
}

/* 2.33; the numbers of the older function are 32 bits wide */
struct mallinfo2 mallinfo2(void)
{
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const struct mallinfo now = mallinfo();
    return (struct mallinfo2){
        .arena = (unsigned)now.arena,
        .ordblks = (unsigned)now.ordblks,
        .smblks = (unsigned)now.smblks,
        .hblks = (unsigned)now.hblks,
        .hblkhd = (unsigned)now.hblkhd,
        .usmblks = (unsigned)now.usmblks,
        .fsmblks = (unsigned)now.fsmblks,
        .uordblks = (unsigned)now.uordblks,
        .fordblks = (unsigned)now.fordblks,
        .keepcost = (unsigned)now.keepcost,
    };
}
