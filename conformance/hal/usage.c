/* usage.c: what the process has of memory and of things that are few. */
#include "hal/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "case/child.h"
#include "hal/files.h"

/* Bytes first, then numbers; 0: unknown. */
enum { HEAP, RESIDENT, DESCRIPTORS, THREADS, MAPPINGS, FILES, KEYS, CHILDREN, TIMERS, KINDS };
enum { FIRST_NUMBER = DESCRIPTORS };

static const char *const kind_names[KINDS] = {"bytes of malloc",   "resident bytes",  "descriptors",
                                              "threads",           "mappings",        "files",
                                              "thread-local keys", "child processes", "timers"};

typedef struct usage {
    uint64_t of[KINDS];
} usage;

uint64_t usage_resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1) {
        pages = 0;
    }
    if (file) {
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What malloc has given out in all arenas. */
static uint64_t heap_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 now = mallinfo2();
    return (uint64_t)now.uordblks + now.hblkhd;
#else
    return 0;
#endif
}

static uint64_t folder_entries(const char *path)
{
    uint64_t count = 0;
    DIR *folder = path ? opendir(path) : NULL;
    while (folder && readdir(folder)) {
        count++;
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

static uint64_t file_lines(const char *path, char end)
{
    uint64_t count = 0;
    FILE *file = fopen(path, "re");
    for (int c; file && (c = getc(file)) != EOF;) {
        count += c == end;
    }
    if (file) {
        fclose(file);
    }
    return count;
}

/* Children that live or were not waited for, of all threads. */
static uint64_t children(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "/proc/self/task/%s/children", entry->d_name);
        count += entry->d_name[0] == '.' ? 0 : file_lines(path, ' ');
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

/* The number of the lowest key that is free. */
static uint64_t keys(void)
{
    pthread_key_t key = 0;
    if (pthread_key_create(&key, NULL) == 0) {
        pthread_key_delete(key);
    }
    return (uint64_t)key;
}

static usage usage_read(files *seen)
{
    usage now = {{0}};
    now.of[DESCRIPTORS] = folder_entries("/proc/self/fd");
    now.of[THREADS] = folder_entries("/proc/self/task");
    now.of[MAPPINGS] = file_lines("/proc/self/maps", '\n');
    now.of[FILES] = files_seen(seen);
    now.of[KEYS] = keys();
    now.of[CHILDREN] = children();
    now.of[TIMERS] = file_lines("/proc/self/timers", '\n');
    now.of[RESIDENT] = usage_resident_bytes();
    now.of[HEAP] = heap_bytes();
    return now;
}

/* What a round of `turns` turns may add: tables grow, pages are taken whole, and a driver's threads
 * keep some of what they do meanwhile. */
static uint64_t allowance(const usage_turns *tested, uint32_t turns, int kind)
{
    const uint64_t slack = kind == RESIDENT ? 65536 : tested->has_driver ? 32768 : 256;
    if (kind >= FIRST_NUMBER) {
        return turns / 2;
    }
    return tested->bytes == UINT64_MAX ? UINT64_MAX : turns * tested->bytes + slack;
}

/* The turns of a round; how many. */
static uint32_t run_turns(case_run *run, const usage_turns *tested)
{
    enum { LEAST_TURNS = 8 };
    const uint32_t least = tested->least > 0 ? tested->least : LEAST_TURNS;
    const double most = 0.25; /* processor seconds, also of compilers in other processes */
    const double longest = 3; /* seconds, for drivers that sleep */
    const double begin = child_processor_seconds(), begun = child_now();
    uint32_t turns = 0;
    while (turns < tested->turns && (turns < least || (child_processor_seconds() - begin < most &&
                                                       child_now() - begun < longest))) {
        tested->turn(run, tested->user);
        turns++;
    }
    if (tested->finish) {
        tested->finish(run, tested->user);
    }
    return turns;
}

/* Whether files come as quickly while the plugin does nothing: then they are those of other
 * processes. */
static bool files_of_others(files *seen, double round_seconds, uint64_t grown)
{
    const double seconds = round_seconds < 5 ? 2 * round_seconds : 10;
    const uint64_t before = files_seen(seen);
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)}, NULL);
    return (files_seen(seen) - before) * 4 >= grown;
}

void usage_check(case_run *run, const usage_turns *tested)
{
    enum { ROUNDS = 5, LEAST_ROUNDS = 3 };
    const uint32_t rounds = tested->rounds > 0 ? tested->rounds : ROUNDS;
    const double longest_of_all = 25, start = child_now();
    files *seen = case_allocate(run, 1, sizeof *seen);
    uint64_t grown[KINDS];
    bool grows[KINDS], any = true;
    double round_seconds = 0;
#ifdef CASE_SANITIZED
    const bool is_sanitized = true; /* sanitizers keep released memory */
#else
    const bool is_sanitized = false;
#endif
    memset(seen, 0, sizeof *seen); /* resident from now on */
    memset(grows, 1, sizeof grows);
    memset(grown, 0xff, sizeof grown);
    for (uint32_t round = 0;
         round < rounds && any && (round < LEAST_ROUNDS || child_now() - start <= longest_of_all);
         round++) {
        const double begun = child_now();
        const usage before = usage_read(seen);
        const uint32_t turns = run_turns(run, tested);
        const usage after = usage_read(seen);
        round_seconds = child_now() - begun;
        any = false;
        for (int i = 0; i < KINDS; i++) {
            const uint64_t more = after.of[i] > before.of[i] ? after.of[i] - before.of[i] : 0;
            const uint64_t allowed = allowance(tested, turns, i);
            grows[i] =
                grows[i] && !is_sanitized && allowed < UINT64_MAX && more >= allowed && more > 0;
            grown[i] = more < grown[i] ? more : grown[i];
            any = any || grows[i];
        }
    }
    if (grows[FILES]) {
        grows[FILES] = !files_of_others(seen, round_seconds, grown[FILES]);
    }
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    case_check(run, file >= 0, "after many %s no file can be opened: %s", tested->name,
               strerror(errno));
    close(file);
    for (int i = 0; i < KINDS; i++) {
        case_check(run, !grows[i],
                   "in each of %u rounds of up to %u %s the process had more %s, by %llu or more",
                   rounds, tested->turns, tested->name, kind_names[i],
                   (unsigned long long)grown[i]);
    }
}
