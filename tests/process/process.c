/* See process.h. */
#include "process.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static int failures;

void process_ok(hal_status status, const char *call, const char *file, int line)
{
    if (status != HAL_OK) {
        printf("%s:%d: %s: %s: %s\n", file, line, call, hal_status_name(status),
               hal_status_message());
        exit(1);
    }
}

void process_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    failures++;
}

int process_end(void)
{
    return failures > 0;
}

process_device process_open(void)
{
    process_device opened = {0};
    PROCESS_OK(hal_device_open(NULL, &opened.device));
    PROCESS_OK(hal_queue_create(opened.device, &opened.queue));
    PROCESS_OK(ops_context_create(opened.queue, &opened.ops));
    return opened;
}

void process_close(process_device *opened)
{
    ops_context_destroy(opened->ops);
    hal_queue_destroy(opened->queue);
    hal_device_release(opened->device);
    *opened = (process_device){0};
}

/* Operands of a kind of work, between 0.5 and 2.1. */
typedef struct work_operands {
    ops_context *ops;
    ops_array *a, *b, *square;
    int64_t count;
} work_operands;

static ops_array *add(const work_operands *w)
{
    return ops_add(ops_mul(w->a, w->b), w->b);
}

static ops_array *divide(const work_operands *w)
{
    return ops_div(w->a, w->b);
}

static ops_array *square_root(const work_operands *w)
{
    return ops_sqrt(w->a);
}

static ops_array *exponential(const work_operands *w)
{
    return ops_exp(w->a);
}

static ops_array *logarithm(const work_operands *w)
{
    return ops_log(w->a);
}

static ops_array *sine(const work_operands *w)
{
    return ops_sin(w->a);
}

static ops_array *hyperbolic(const work_operands *w)
{
    return ops_tanh(ops_relu(ops_sub(w->a, w->b)));
}

static ops_array *power(const work_operands *w)
{
    return ops_pow(w->a, w->b);
}

static ops_array *product(const work_operands *w)
{
    return ops_matmul(w->square, w->square);
}

static ops_array *softmax(const work_operands *w)
{
    return ops_array_softmax(1, w->square);
}

static ops_array *sum(const work_operands *w)
{
    return ops_reduce_sum(w->a, 0);
}

static ops_array *maximum(const work_operands *w)
{
    return ops_reduce_max(w->a, 0);
}

static ops_array *narrow(const work_operands *w)
{
    return ops_array_cast(HAL_TYPE_F32, ops_array_cast(HAL_TYPE_BF16, w->a));
}

static ops_array *integers(const work_operands *w)
{
    return ops_array_cast(HAL_TYPE_F32, ops_array_cast(HAL_TYPE_I32, w->a));
}

static ops_array *random_numbers(const work_operands *w)
{
    return ops_array_normal(w->ops, HAL_TYPE_F32, 1, &w->count, (ops_random_key){1, 2}, 0, 1);
}

/* Constants with fractions, which kernels in text spell. */
static ops_array *constants(const work_operands *w)
{
    return ops_add_scalar(ops_mul_scalar(w->a, 0.7), -1.3);
}

static const struct {
    const char *name;
    ops_array *(*make)(const work_operands *operands);
} works[PROCESS_WORKS] = {{"a * b + b", add},
                          {"a / b", divide},
                          {"sqrt", square_root},
                          {"exp", exponential},
                          {"log", logarithm},
                          {"sin", sine},
                          {"tanh(relu(a - b))", hyperbolic},
                          {"pow", power},
                          {"matmul", product},
                          {"softmax", softmax},
                          {"sum", sum},
                          {"max", maximum},
                          {"cast to bf16", narrow},
                          {"cast to i32", integers},
                          {"normal", random_numbers},
                          {"a * 0.7 - 1.3", constants}};

const char *process_work_name(int work)
{
    return works[work].name;
}

static bool backend_is(const char *name)
{
    const char *backend = getenv("HAL_BACKEND");
    return backend && strcmp(backend, name) == 0;
}

bool process_has_work(int work)
{
    const bool is_slow = backend_is("opencl") || backend_is("example_c") || backend_is("template");
    return !is_slow || work % 5 == 0 || getenv("PROCESS_ALL");
}

int64_t process_large_count(void)
{
    return backend_is("template") ? 3000 : 1 << 18;
}

static ops_array *operand(ops_context *ops, uint32_t rank, const int64_t *shape, int64_t count,
                          int period, float least)
{
    float *numbers = malloc((size_t)count * sizeof(float));
    if (!numbers) {
        PROCESS_OK(HAL_ERROR_OUT_OF_MEMORY);
    }
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = least + (float)(i % period) / 64; /* exact */
    }
    ops_array *made = ops_array_from_host(ops, HAL_TYPE_F32, rank, shape, numbers);
    free(numbers);
    return made;
}

static uint64_t hash_bytes(const uint8_t *bytes, size_t count)
{
    uint64_t hash = UINT64_C(1469598103934665603);
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static uint64_t result_hash(ops_array *result)
{
    const size_t bytes = sizeof(float) * (size_t)ops_array_get_element_count(result);
    uint8_t *data = malloc(bytes);
    if (!data) {
        PROCESS_OK(HAL_ERROR_OUT_OF_MEMORY);
    }
    PROCESS_OK(ops_array_read(result, bytes, data));
    const uint64_t hash = hash_bytes(data, bytes);
    free(data);
    return hash;
}

uint64_t process_work(const process_device *opened, int work, int64_t count)
{
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= count && side < 300) {
        side++;
    }
    const int64_t square[2] = {side, side};
    PROCESS_OK(ops_scope_begin(opened->ops));
    const work_operands operands = {.ops = opened->ops,
                                    .a = operand(opened->ops, 1, &count, count, 97, 0.5F),
                                    .b = operand(opened->ops, 1, &count, count, 31, 1),
                                    .square =
                                        operand(opened->ops, 2, square, side * side, 89, 0.5F),
                                    .count = count};
    ops_array *result = works[work].make(&operands);
    if (!result) {
        printf("%s: %s\n", works[work].name, hal_status_message());
        exit(1);
    }
    const uint64_t hash = result_hash(result);
    PROCESS_OK(ops_scope_end(opened->ops));
    return hash;
}
