/* Calls of the library get along with a stack of 64 KiB, except where a driver with a compiler is
 * opened or compiles on the calling thread: the main thread opens OpenCL's and runs each kind of
 * work once before. */
#include "process.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, STACK = 64 << 10, PAINT = 0xa5 };

static process_device opened;

typedef struct small_call {
    void (*run)(int work);
    int work;
} small_call;

static void *small_thread(void *user)
{
    const small_call *call = user;
    call->run(call->work);
    return NULL;
}

/* Bytes of a small stack that a function uses; 0 without a thread. */
static size_t stack_used(void (*run)(int work), int work)
{
    size_t used = 0;
    small_call call = {run, work};
    pthread_t thread;
    pthread_attr_t attributes;
    /* Two pages that stay untouched: a frame that steps over one of them is seen as well. */
    const size_t bytes = STACK + 2 * PAGE;
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 0;
    }
    memset(memory, PAINT, bytes);
    mprotect(memory, PAGE, PROT_NONE);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, memory + 2 * PAGE, STACK) == 0 &&
        pthread_create(&thread, &attributes, small_thread, &call) == 0) {
        pthread_join(thread, NULL);
        size_t unused = 0;
        while (unused < STACK + PAGE && memory[PAGE + unused] == PAINT) {
            unused++;
        }
        used = STACK + PAGE - unused;
    }
    pthread_attr_destroy(&attributes);
    munmap(memory, bytes);
    return used;
}

static void open_run(int unused)
{
    (void)unused;
    opened = process_open();
}

static void work_run(int work)
{
    process_work(&opened, work, 1000);
    process_work(&opened, work, process_large_count());
}

/* Kinds of calls that process_work has not, of which each has frames that others do not have. */
static ops_array *matrix(hal_type type, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    return ops_array_uniform(opened.ops, type, 2, shape, (ops_random_key){3, 4}, 0.5, 1);
}

static ops_array *long_sums(void)
{
    return ops_reduce_sum(ops_exp(matrix(HAL_TYPE_F32, 2, 1 << 20)), 1);
}

static ops_array *normalised_rows(void)
{
    ops_array *x = matrix(HAL_TYPE_F32, 64, 300);
    ops_array *centred = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, x));
    ops_array *squares = ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, ops_mul(centred, centred));
    return ops_div(centred, ops_sqrt(ops_add_scalar(squares, 1e-5)));
}

static ops_array *half_product(void)
{
    return ops_relu(ops_matmul(matrix(HAL_TYPE_BF16, 100, 200), matrix(HAL_TYPE_BF16, 200, 72)));
}

static ops_array *small_product(void)
{
    return ops_matmul(matrix(HAL_TYPE_F64, 5, 300), matrix(HAL_TYPE_F64, 300, 7));
}

static ops_array *levels_product(void)
{
    return ops_array_matmul_by_levels(matrix(HAL_TYPE_F32, 256, 256),
                                      matrix(HAL_TYPE_F32, 256, 256), 2);
}

static ops_array *transposed_copy(void)
{
    return ops_array_copy(ops_array_transpose(matrix(HAL_TYPE_F32, 200, 300), 0, 1));
}

static ops_array *gathered(void)
{
    ops_array *places = ops_array_iota(opened.ops, HAL_TYPE_I32, 50, 0, 1);
    ops_array *parts[2] = {ops_array_gather(0, matrix(HAL_TYPE_F32, 60, 70), places),
                           matrix(HAL_TYPE_F32, 50, 70)};
    return ops_array_concatenate(0, parts, 2);
}

static ops_array *one_hot(void)
{
    return ops_array_one_hot(HAL_TYPE_F32, 20, ops_array_iota(opened.ops, HAL_TYPE_I32, 20, 0, 1));
}

static const struct {
    const char *name;
    ops_array *(*make)(void);
} further[] = {{"sum of long rows", long_sums},       {"normalised rows", normalised_rows},
               {"bf16 product", half_product},        {"small f64 product", small_product},
               {"product by levels", levels_product}, {"transposed copy", transposed_copy},
               {"gather, concatenate", gathered},     {"one_hot", one_hot}};
enum { FURTHER = sizeof further / sizeof further[0] };

static void further_run(int number)
{
    PROCESS_OK(ops_scope_begin(opened.ops));
    ops_array *result = further[number].make();
    PROCESS_OK(result ? ops_array_evaluate(&result, 1) : HAL_ERROR_INTERNAL);
    PROCESS_OK(hal_queue_wait(opened.queue, HAL_WAIT_FOREVER));
    PROCESS_OK(ops_scope_end(opened.ops));
}

static void close_run(int unused)
{
    (void)unused;
    process_close(&opened);
}

static void expect_fits(const char *what, void (*run)(int work), int work)
{
    const size_t used = stack_used(run, work);
    if (used == 0) {
        printf("no thread with a stack of %d bytes\n", STACK);
        exit(PROCESS_SKIP);
    }
    printf("%5.1f KiB: %s\n", (double)used / 1024, what);
    if (used >= STACK) {
        process_fail("%s: the stack was too small", what);
    }
}

int main(void)
{
    const char *backend = getenv("HAL_BACKEND");
    const bool is_opencl = backend && strcmp(backend, "opencl") == 0;
    const bool has_compiler =
        is_opencl ||
        (backend && (strcmp(backend, "vulkan") == 0 || strcmp(backend, "example_c") == 0));
    const bool is_fast = backend && strcmp(backend, "cpu") == 0;
    setenv("HAL_CACHE_DIR", "off", 1);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (is_opencl) {
        open_run(0);
    } else {
        expect_fits("open", open_run, 0);
    }
    for (int work = 0; work < PROCESS_WORKS; work++) {
        if (process_has_work(work) && (!has_compiler || work % 5 == 0)) {
            if (has_compiler) {
                work_run(work);
            }
            expect_fits(process_work_name(work), work_run, work);
        }
    }
    for (int i = 0; i < FURTHER && (is_fast || getenv("PROCESS_ALL")); i++) {
        if (has_compiler) {
            further_run(i);
        }
        expect_fits(further[i].name, further_run, i);
    }
    expect_fits("close", close_run, 0);
    return process_end();
}
