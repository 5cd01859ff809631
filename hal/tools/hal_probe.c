/* hal-probe: known-answer kernels for what drivers get wrong. libhalyard starts it in a process of
 * its own, as a driver may crash or hang (src/plugin/probe.c):
 *
 *     hal-probe DEVICE FEATURE...
 *
 * Writes "begin FEATURE" before a test and "right FEATURE", "wrong FEATURE reason" or, without
 * memory, "unknown FEATURE" after it, and "done" at the end; nothing about features that it does
 * not know, or that the device does not claim in this process. What else is written to standard
 * output, by drivers, goes to standard error. Exits with 0, with 1 where the device cannot be
 * opened or is lost, and with 2 without memory or files. */
#include "probe_constants.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LANES = 256, TEXT_BYTES = 2048 };

/* A sum, an exchange of neighbours and a rotation over two subgroups. */
static hal_status probe_subgroups(probe *p)
{
    const uint32_t width = p->info->subgroup_width, room = p->info->max_group_size[0];
    const uint32_t group = 2 * width <= room ? 2 * width : width;
    uint32_t out[3 * MOST_LANES] = {0};
    char text[TEXT_BYTES];
    snprintf(text, sizeof text,
             "kernel subgroups\ngroup %u 1 1\nbinding out u32 write\n"
             "%%i = local_id u32 x\n%%l = lane_id u32\n%%a = constant u32 2654435761\n"
             "%%one = constant u32 1\n%%v = mul u32 %%i, %%a\n"
             "%%r = subgroup_reduce add u32 %%v\nstore out[%%i], %%r\n"
             "%%x = shuffle_xor u32 %%v, 1\nstore out[%%i + %u], %%x\n"
             "%%n = add u32 %%l, %%one\n%%s = shuffle u32 %%v, %%n\nstore out[%%i + %u], %%s\n",
             group, group, 2 * group);
    const hal_status status =
        probe_run(p, text, 1, 1, &(probe_data){out, 3ull * group * sizeof out[0]});
    for (uint32_t i = 0; status == HAL_OK && i < group; i++) {
        const uint32_t lane = i % width, first = i - lane, factor = 2654435761u;
        const uint32_t sum = (first * width + width * (width - 1) / 2) * factor;
        const uint32_t other = (first + (lane ^ 1) % width) * factor;
        const uint32_t next = (first + (lane + 1) % width) * factor;
        if (out[i] != sum || out[group + i] != other || out[2 * group + i] != next) {
            probe_wrong(p, "work-item %u has sum %u, neighbour %u, next %u; expected %u, %u, %u", i,
                        out[i], out[group + i], out[2 * group + i], sum, other, next);
        }
    }
    return status;
}

/* The bits of a small whole number in a type of floats. */
static uint64_t matrix_bits(hal_type type, int number)
{
    static const uint32_t halves[] = {0, 0x3c00, 0x4000, 0x4200};
    const float value = (float)number;
    const double wide = number;
    uint32_t bits;
    uint64_t wide_bits;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&wide_bits, &wide, sizeof wide_bits);
    return type == HAL_TYPE_F64    ? wide_bits
           : type == HAL_TYPE_F32  ? bits
           : type == HAL_TYPE_BF16 ? bits >> 16
                                   : halves[abs(number)] | (number < 0 ? 0x8000u : 0);
}

static double matrix_number(const void *bits, hal_type type)
{
    float single;
    double number;
    if (type == HAL_TYPE_F64) {
        memcpy(&number, bits, sizeof number);
        return number;
    }
    memcpy(&single, bits, sizeof single);
    return (double)single;
}

static int matrix_a(uint32_t row, uint32_t k)
{
    return (int)((row * 3 + k * 5) % 7) - 3;
}

static int matrix_b(uint32_t k, uint32_t column)
{
    return (int)((k * 2 + column * 3) % 5) - 2;
}

/* A word of A (row) or of B (column): one f32 or f64, or two neighbours in k. */
static uint64_t matrix_word(hal_type type, bool is_b, uint32_t line, uint32_t word)
{
    if (hal_type_size(type) >= 4) {
        return matrix_bits(type, is_b ? matrix_b(word, line) : matrix_a(line, word));
    }
    const uint32_t k = 2 * word;
    const uint64_t low = matrix_bits(type, is_b ? matrix_b(k, line) : matrix_a(line, k));
    const uint64_t high = matrix_bits(type, is_b ? matrix_b(k + 1, line) : matrix_a(line, k + 1));
    return low | high << 16;
}

/* What the lane has of C before the product. */
static int matrix_c(uint32_t lane, uint32_t element)
{
    return (int)(lane + 2 * element);
}

static hal_status matrix_run(probe *p, hal_type type, uint32_t bytes, const void *a, const void *b,
                             const void *c, void *out)
{
    enum { LANES = HAL_IR_MATRIX_LANES };
    const char *word = type == HAL_TYPE_F64 ? "f64" : "u32",
               *sum = type == HAL_TYPE_F64 ? "f64" : "f32";
    char text[TEXT_BYTES];
    snprintf(text, sizeof text,
             "kernel matrix\ngroup 32 1 1\nbinding a %s read\nbinding b %s read\n"
             "binding c %s read\nbinding out %s write\n%%i = local_id u32 x\n"
             "%%two = constant u32 2\n%%four = constant u32 4\n%%i2 = mul u32 %%i, %%two\n"
             "%%i4 = mul u32 %%i, %%four\n%%a = load %sx4 a[%%i4]\n%%b = load %sx2 b[%%i2]\n"
             "%%c = load %sx4 c[%%i4]\n%%r = matrix_multiply %s %sx4 %%a, %%b, %%c\n"
             "store out[%%i4], %%r\n",
             word, word, sum, sum, word, word, sum, hal_type_name(type), sum);
    const probe_data data[PROBE_BUFFERS] = {{(void *)(uintptr_t)a, 4ull * LANES * bytes},
                                            {(void *)(uintptr_t)b, 2ull * LANES * bytes},
                                            {(void *)(uintptr_t)c, 4ull * LANES * bytes},
                                            {out, 4ull * LANES * bytes}};
    return probe_run(p, text, 1, PROBE_BUFFERS, data);
}

/* One product of whole numbers; docs/ir.md says which lane has which element. */
static hal_status probe_matrix(probe *p, hal_type type)
{
    enum { LANES = HAL_IR_MATRIX_LANES, MOST = 8 };
    const bool is_f64 = type == HAL_TYPE_F64;
    const uint32_t depth = hal_type_size(type) == 2 ? 16 : 8, bytes = is_f64 ? 8 : 4;
    const hal_type sum_type = is_f64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
    unsigned char a[4 * LANES * MOST], b[2 * LANES * MOST], c[4 * LANES * MOST],
        out[4 * LANES * MOST] = {0};
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t g = lane / 4, t = lane % 4;
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t word = matrix_word(type, 0, g + 8 * (i % 2), t + 4 * (i / 2));
            const uint64_t sum = matrix_bits(sum_type, matrix_c(lane, i));
            memcpy(a + (4 * lane + i) * bytes, &word, bytes);
            memcpy(c + (4 * lane + i) * bytes, &sum, bytes);
        }
        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t word = matrix_word(type, 1, g, t + 4 * i);
            memcpy(b + (2 * lane + i) * bytes, &word, bytes);
        }
    }
    const hal_status status = matrix_run(p, type, bytes, a, b, c, out);
    for (uint32_t i = 0; status == HAL_OK && i < 4 * LANES; i++) {
        const uint32_t lane = i / 4, row = lane / 4 + 8 * (i % 4 / 2);
        const uint32_t column = 2 * (lane % 4) + i % 2;
        int sum = matrix_c(lane, i % 4);
        for (uint32_t k = 0; k < depth; k++) {
            sum += matrix_a(row, k) * matrix_b(k, column);
        }
        const uint64_t bits = matrix_bits(sum_type, sum);
        if (memcmp(out + i * bytes, &bits, bytes) != 0) {
            probe_wrong(p, "row %u, column %u is %g instead of %d", row, column,
                        matrix_number(out + i * bytes, sum_type), sum);
        }
    }
    return status;
}

static hal_status probe_matrix_f16(probe *p)
{
    return probe_matrix(p, HAL_TYPE_F16);
}

static hal_status probe_matrix_bf16(probe *p)
{
    return probe_matrix(p, HAL_TYPE_BF16);
}

static hal_status probe_matrix_f32(probe *p)
{
    return probe_matrix(p, HAL_TYPE_F32);
}

static hal_status probe_matrix_f64(probe *p)
{
    return probe_matrix(p, HAL_TYPE_F64);
}

/* A sum that carries into the high half, and a maximum, of all work-items. */
static hal_status probe_atomic_64(probe *p)
{
    enum { GROUP = 64, GROUPS = 4 };
    static const char text[] =
        "kernel atomics\ngroup 64 1 1\nbinding cells u64 read_write\n%i = local_id u32 x\n"
        "%zero = constant u32 0\n%one = constant u32 1\n%a = constant u64 0x9e3779b97f4a7c15\n"
        "%w = cast u64 %i\n%v = mul u64 %w, %a\n%o = atomic add u64 cells[%zero], %v\n"
        "%m = atomic max u64 cells[%one], %v\n";
    uint64_t cells[2] = {0, 0}, sum = 0, most = 0;
    for (uint64_t i = 0; i < GROUP; i++) {
        const uint64_t value = i * UINT64_C(0x9e3779b97f4a7c15);
        sum += GROUPS * value;
        most = value > most ? value : most;
    }
    const hal_status status = probe_run(p, text, GROUPS, 1, &(probe_data){cells, sizeof cells});
    if (status == HAL_OK && (cells[0] != sum || cells[1] != most)) {
        probe_wrong(p, "sum %llx and maximum %llx; expected %llx and %llx",
                    (unsigned long long)cells[0], (unsigned long long)cells[1],
                    (unsigned long long)sum, (unsigned long long)most);
    }
    return status;
}

/* Stores that round, to even too, and beyond the range; loads. */
static hal_status probe_storage_f16(probe *p)
{
    enum { COUNT = 8 };
    static const char text[] =
        "kernel halves\ngroup 8 1 1\nbinding x f32 read\nbinding y f16 write\n"
        "binding h f16 read\nbinding z f32 write\n%i = local_id u32 x\n%x = load f32 x[%i]\n"
        "store y[%i], %x\n%h = load f32 h[%i]\nstore z[%i], %h\n";
    static const uint16_t bits[COUNT] = {0x3c00, 0xc100, 0x7bff, 0x7c00,
                                         0x3c00, 0x3c02, 0x2e66, 0x0400};
    static const float loaded[COUNT] = {1,       -2.5f, 65504, 0, 1, 1 + 0x1p-9f, 0.0999755859375f,
                                        0x1p-14f};
    float x[COUNT] = {1, -2.5f, 65504, 65520, 1 + 0x1p-11f, 1 + 0x3p-11f, 0.1f, 0x1p-14f};
    float z[COUNT] = {0};
    uint16_t y[COUNT] = {0}, h[COUNT];
    memcpy(h, bits, sizeof h);
    h[3] = 0;
    const probe_data data[PROBE_BUFFERS] = {
        {x, sizeof x}, {y, sizeof y}, {h, sizeof h}, {z, sizeof z}};
    const hal_status status = probe_run(p, text, 1, PROBE_BUFFERS, data);
    for (uint32_t i = 0; status == HAL_OK && i < COUNT; i++) {
        if (y[i] != bits[i] || memcmp(&z[i], &loaded[i], sizeof z[i]) != 0) {
            probe_wrong(p, "%a is stored as 0x%04x instead of 0x%04x, 0x%04x is loaded as %a",
                        (double)x[i], y[i], bits[i], h[i], (double)z[i]);
        }
    }
    return status;
}

static uint64_t host_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The time between two batches is not longer than the host's. */
static hal_status probe_timestamps(probe *p)
{
    hal_buffer *buffer = NULL;
    hal_point points[2] = {{0}};
    uint64_t device_ns = 0;
    hal_status status = hal_buffer_create(p->device, HAL_MEMORY_DEVICE, 1 << 20, &buffer);
    const uint64_t begin = host_time();
    for (uint32_t i = 0; status == HAL_OK && i < 2; i++) {
        status = hal_queue_fill(p->queue, (hal_range){buffer, 0, HAL_WHOLE}, i);
        if (status == HAL_OK) {
            status = hal_queue_flush(p->queue, &points[i]);
        }
    }
    if (status == HAL_OK) {
        status = hal_queue_wait(p->queue, HAL_WAIT_FOREVER);
    }
    const uint64_t host_ns = host_time() - begin;
    if (status == HAL_OK) {
        status = hal_point_get_elapsed(points[0], points[1], &device_ns);
    }
    if (status == HAL_OK && device_ns > host_ns + host_ns / 4 + 1000000) {
        probe_wrong(p, "%llu ns between two batches that took the host %llu ns",
                    (unsigned long long)device_ns, (unsigned long long)host_ns);
    }
    hal_buffer_release(buffer);
    return status;
}

typedef struct probe_test {
    const char *name;
    hal_status (*run)(probe *p);
    size_t field; /* of hal_device_info */
    uint32_t bits;
} probe_test;

#define TEST(name, field, bits)                                     \
    {                                                               \
#name, probe_##name, offsetof(hal_device_info, field), bits \
    }
static const probe_test tests[] = {
    TEST(subgroups, subgroup_width, UINT32_MAX),
    TEST(matrix_f16, matrix_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    TEST(matrix_bf16, matrix_types, HAL_TYPE_BIT(HAL_TYPE_BF16)),
    TEST(matrix_f32, matrix_types, HAL_TYPE_BIT(HAL_TYPE_F32)),
    TEST(matrix_f64, matrix_types, HAL_TYPE_BIT(HAL_TYPE_F64)),
    TEST(atomic_64, features, HAL_FEATURE_ATOMIC_64),
    TEST(storage_f16, storage_types, HAL_TYPE_BIT(HAL_TYPE_F16)),
    TEST(timestamps, features, HAL_FEATURE_TIMESTAMPS),
    TEST(constants_f32, arithmetic_types, HAL_TYPE_BIT(HAL_TYPE_F32)),
    TEST(constants_f64, arithmetic_types, HAL_TYPE_BIT(HAL_TYPE_F64)),
    TEST(constants_i32, arithmetic_types, HAL_TYPE_BIT(HAL_TYPE_I32)),
    TEST(constants_i64, arithmetic_types, HAL_TYPE_BIT(HAL_TYPE_I64)),
};

/* A claimed feature that answers with an error is wrong, unless memory was short. */
static void test_run(probe *p, const probe_test *test)
{
    uint32_t claimed;
    memcpy(&claimed, (const char *)p->info + test->field, sizeof claimed);
    if ((claimed & test->bits) == 0) {
        return;
    }
    fprintf(p->answers, "begin %s\n", test->name);
    fflush(p->answers);
    p->reason[0] = 0;
    const hal_status status = test->run(p);
    if (status != HAL_OK) {
        probe_wrong(p, "%.200s", hal_status_message());
    }
    fprintf(p->answers, "%s %s %s\n",
            status == HAL_ERROR_OUT_OF_MEMORY ? "unknown"
            : p->reason[0]                    ? "wrong"
                                              : "right",
            test->name, p->reason);
    fflush(p->answers);
    if (status == HAL_ERROR_DEVICE_LOST) {
        _exit(1); /* the other tests need another process */
    }
}

/* Standard output, which from now on is standard error. Null on errors. */
static FILE *answers_open(void)
{
    const int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    FILE *answers = kept >= 0 ? fdopen(kept, "w") : NULL;
    return answers && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? answers : NULL;
}

int main(int argc, char **argv)
{
    probe p = {.answers = answers_open()};
    hal_status status =
        p.answers && argc > 1 ? hal_device_open(argv[1], &p.device) : HAL_ERROR_OUT_OF_MEMORY;
    if (status == HAL_OK) {
        status = hal_queue_create(p.device, &p.queue);
    }
    if (status != HAL_OK) {
        _exit(status == HAL_ERROR_OUT_OF_MEMORY ? 2 : 1);
    }
    p.info = hal_device_get_info(p.device);
    for (int i = 2; i < argc; i++) {
        for (size_t k = 0; k < sizeof tests / sizeof tests[0]; k++) {
            if (strcmp(argv[i], tests[k].name) == 0) {
                test_run(&p, &tests[k]);
            }
        }
    }
    fprintf(p.answers, "done\n");
    fflush(p.answers);
    _exit(0); /* without the destructors of drivers, which judge nothing */
}
