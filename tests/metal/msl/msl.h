/* Metal Shading Language on the host's processor, for the stand-in framework of tests/metal: scan.c
 * rewrites a source as C++ for OpenCL, compile.c makes a shared object of it with clang, execute.c
 * runs grids of work-items, math.c has the inexact functions. */
#ifndef TESTS_METAL_MSL_MSL_H
#define TESTS_METAL_MSL_MSL_H

#include <stddef.h>
#include <stdint.h>

enum { MSL_BUFFERS = 31, MSL_MAX_THREADS = 1024, MSL_THREADGROUP_BYTES = 32768, MSL_SIMD = 32 };

/* A parameter of a kernel with [[buffer(n)]] or [[threadgroup(n)]]. */
typedef enum msl_space { MSL_DEVICE, MSL_CONSTANT, MSL_THREADGROUP } msl_space;
typedef struct msl_parameter {
    msl_space space;
    uint32_t index;
    int is_const, is_reference;
    uint32_t size, alignment; /* of what it points to, bytes; known once compiled */
} msl_parameter;

typedef struct msl_function {
    char name[256];
    uint32_t parameter_count, max_threads; /* 0: not declared */
    msl_parameter parameters[2 * MSL_BUFFERS];
    uint32_t threadgroup_bytes; /* of the arrays that the body declares */
    void (*entry)(const void *item);
    int needs_coroutines;
} msl_function;

typedef struct msl_options {
    int fast_math;
    uint32_t language; /* 300 is Metal 3.0 */
    int watch;         /* every access of memory calls the executor */
} msl_options;

typedef struct msl_text {
    char *bytes;
    size_t count, capacity;
} msl_text;

typedef struct msl_scanned {
    msl_text text;
    msl_function *functions;
    uint32_t function_count;
    int contract_off; /* a pragma turns the fusion of products and sums off */
    char error[256];
} msl_scanned;

typedef struct msl_library {
    void *object;
    msl_function *functions;
    uint32_t function_count;
} msl_library;

/* One dispatch. With threads set, the grid is that many work-items and the last groups may be
 * smaller. */
typedef struct msl_grid {
    uint32_t groups[3], group_size[3], threads[3];
    uint64_t buffers[MSL_BUFFERS];
    uint32_t threadgroup_bytes[MSL_BUFFERS];
} msl_grid;

/* Called for each access of device memory by a library compiled with watch. */
typedef void msl_watcher(void *context, uint64_t address, uint32_t size, int writes, int is_atomic);

/* scan.c. Returns 0, or -1 with an error; free with msl_scanned_free in both cases. */
int msl_scan(const char *source, msl_scanned *scanned);
void msl_scanned_free(msl_scanned *scanned);
void msl_text_add(msl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* compile.c. Returns null with the compiler's messages in log; warnings are put there too. */
msl_library *msl_compile(const char *source, const msl_options *options, msl_text *log);
void msl_library_free(msl_library *library);

/* execute.c: runs a grid on the calling thread, one grid at a time in the process. Returns 0, or -1
 * with a sentence in error and the address of the fault, 0 when it is not one of memory. */
int msl_execute(const msl_function *function, const msl_grid *grid, msl_watcher *watcher,
                void *context, char error[256], uint64_t *address);

#endif
