/* What the programs of tests/process share. Each program shows one promise to the process that
 * hosts the library. It prints what is wrong and ends with 1, or with 77 if the machine lacks
 * what it needs. The device is that of HAL_BACKEND. */
#ifndef TESTS_PROCESS_PROCESS_H
#define TESTS_PROCESS_PROCESS_H

#include <ops/ops.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct process_device {
    hal_device *device;
    hal_queue *queue;
    ops_context *ops;
} process_device;

enum { PROCESS_SKIP = 77 };

/* Ends the program with the library's message unless the status is HAL_OK. */
#define PROCESS_OK(expression) process_ok((expression), #expression, __FILE__, __LINE__)
void process_ok(hal_status status, const char *call, const char *file, int line);

/* Counts and prints a failure, as printf does; process_end returns the program's status. */
__attribute__((format(printf, 1, 2))) void process_fail(const char *format, ...);
int process_end(void);

process_device process_open(void);
void process_close(process_device *opened);

/* Work of many kinds: pointwise, transcendental, reductions, matrix products, random numbers. */
enum { PROCESS_WORKS = 16 };
const char *process_work_name(int work);

/* Whether a kind of work is part of this run: on devices that compile or interpret slowly, only
 * some are unless PROCESS_ALL is set. */
bool process_has_work(int work);

/* Elements that take several threads; fewer on devices that interpret. */
int64_t process_large_count(void);

/* Runs a kind of work over `count` elements; all operands and results are finite. Returns a hash
 * of the result's bits. */
uint64_t process_work(const process_device *opened, int work, int64_t count);

#endif
