/* Measured rates and latencies of a device, see hal/peaks.h: the best of several turns of each
 * kernel of peak_kernels.h, of copies and transfers, and of the plugin's own products. */
#include "peaks.h"

#include "base/clock.h"
#include "base/status.h"
#include "core/device.h"
#include "peak_kernels.h"

#include <stdlib.h>
#include <string.h>

enum { TURNS = 5, LAUNCHES = 256 };

/* A turn is repeated until it takes this long. */
#define LEAST_NS 3000000.0

/* A thing to time: records itself once on the queue. */
typedef struct task {
    hal_queue *queue;
    hal_status (*record)(const struct task *task);
    const hal_peak_kernel *kernel;
    hal_range ranges[4];
    uint32_t range_count;
    const void *scalars;
    uint32_t scalar_bytes;
    void *host;
} task;

static hal_status record_kernel(const task *t)
{
    return hal_queue_dispatch(t->queue, t->kernel->kernel, t->kernel->grid, t->ranges,
                              t->range_count, t->scalars, t->scalar_bytes);
}

static hal_status record_copy(const task *t)
{
    return hal_queue_copy(t->queue, t->ranges[0], t->ranges[1]);
}

static hal_status record_write(const task *t)
{
    return hal_queue_write(t->queue, t->ranges[0].buffer, 0, t->host, t->ranges[0].length);
}

static hal_status record_read(const task *t)
{
    return hal_queue_read(t->queue, t->ranges[0].buffer, 0, t->ranges[0].length, t->host);
}

static hal_status record_and_wait(const task *t)
{
    HAL_TRY(record_kernel(t));
    return hal_queue_wait(t->queue, HAL_WAIT_FOREVER);
}

/* Records a task `count` times and waits. */
static hal_status turn_time(const task *t, uint32_t count, double *nanoseconds)
{
    const uint64_t begin = hal_clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        HAL_TRY(t->record(t));
    }
    HAL_TRY(hal_queue_wait(t->queue, HAL_WAIT_FOREVER));
    *nanoseconds = (double)(hal_clock_ns() - begin);
    return HAL_OK;
}

/* The least time of one task, of turns that are long enough. */
static hal_status task_time(const task *t, double *nanoseconds)
{
    double best = 0, took = 0;
    uint32_t count = 1;
    HAL_TRY(turn_time(t, 1, &took)); /* the first use compiles and allocates */
    HAL_TRY(turn_time(t, 1, &took));
    while (took < LEAST_NS && count < 65536) {
        count *= 2;
        HAL_TRY(turn_time(t, count, &took));
    }
    best = took;
    for (int i = 0; i < TURNS; i++) {
        HAL_TRY(turn_time(t, count, &took));
        best = took < best ? took : best;
    }
    *nanoseconds = best / count;
    return HAL_OK;
}

typedef struct measurement {
    hal_device *device;
    hal_queue *queue;
    hal_buffer *buffers[3];
    uint64_t bytes; /* of each buffer */
    void *host;
    hal_device_peaks peaks;
} measurement;

static hal_range whole(const measurement *m, uint32_t buffer)
{
    return (hal_range){m->buffers[buffer], 0, m->bytes};
}

/* What a device lacks is no failure: its rate stays 0. */
static hal_status unless_unsupported(hal_status status)
{
    return status == HAL_ERROR_UNSUPPORTED || status == HAL_ERROR_OUT_OF_MEMORY ? HAL_OK : status;
}

static void keep_larger(double *rate, double operations, double nanoseconds)
{
    const double value = nanoseconds > 0 ? operations / nanoseconds * 1e9 : 0;
    *rate = value > *rate ? value : *rate;
}

/* Times a kernel over the buffers and releases it. */
static hal_status measure_kernel(measurement *m, hal_status made, hal_peak_kernel *kernel,
                                 uint32_t buffers, double *rate)
{
    double nanoseconds = 0;
    if (made != HAL_OK) {
        return unless_unsupported(made);
    }
    const task t = {.queue = m->queue,
                    .record = record_kernel,
                    .kernel = kernel,
                    .ranges = {whole(m, 0), whole(m, 1)},
                    .range_count = buffers};
    const hal_status status = task_time(&t, &nanoseconds);
    keep_larger(rate, kernel->operations, nanoseconds);
    hal_kernel_release(kernel->kernel);
    return status;
}

static hal_status measure_memory(measurement *m)
{
    hal_peak_kernel kernel;
    double nanoseconds = 0;
    const task copy = {
        .queue = m->queue, .record = record_copy, .ranges = {whole(m, 0), whole(m, 1)}};
    HAL_TRY(task_time(&copy, &nanoseconds));
    keep_larger(&m->peaks.copy, 2.0 * (double)m->bytes, nanoseconds);
    const hal_status made = hal_peak_copy(m->device, m->bytes, &kernel);
    HAL_TRY(measure_kernel(m, made, &kernel, 2, &m->peaks.copy));

    task transfer = {
        .queue = m->queue, .record = record_write, .ranges = {whole(m, 0)}, .host = m->host};
    HAL_TRY(task_time(&transfer, &nanoseconds));
    keep_larger(&m->peaks.upload, (double)m->bytes, nanoseconds);
    transfer.record = record_read;
    HAL_TRY(task_time(&transfer, &nanoseconds));
    keep_larger(&m->peaks.download, (double)m->bytes, nanoseconds);
    transfer.ranges[0].length = 4;
    return task_time(&transfer, &m->peaks.transfer_ns);
}

static hal_status measure_launches(measurement *m)
{
    hal_peak_kernel kernel;
    HAL_TRY(hal_peak_empty(m->device, &kernel));
    task t = {.queue = m->queue,
              .record = record_kernel,
              .kernel = &kernel,
              .ranges = {whole(m, 0)},
              .range_count = 1};
    hal_status status = task_time(&t, &m->peaks.launch_ns);
    t.record = record_and_wait;
    if (status == HAL_OK) {
        status = task_time(&t, &m->peaks.wait_ns);
    }
    hal_kernel_release(kernel.kernel);
    return status;
}

/* The plugin's own product of n x n matrices, as large as the buffers and 4096 allow. */
static hal_status measure_product(measurement *m, hal_type type, uint8_t precision, double *rate)
{
    static const double factors[2] = {1, 0};
    const hal_device_info *info = hal_device_get_info(m->device);
    const bool is_large = info->kind == HAL_DEVICE_DISCRETE || info->kind == HAL_DEVICE_INTEGRATED;
    int64_t n = is_large ? 4096 : 512;
    while ((uint64_t)(n * n) * hal_type_size(type) > m->bytes) {
        n /= 2;
    }
    const hal_gemm_description description = {.size = sizeof description,
                                              .type_a = type,
                                              .type_b = type,
                                              .type_c = type,
                                              .beta_is_zero = 1,
                                              .precision = precision,
                                              .batch = 1,
                                              .m = n,
                                              .n = n,
                                              .k = n,
                                              .lda = n,
                                              .ldb = n,
                                              .ldc = n};
    hal_peak_kernel kernel = {.grid = {1, 1, 1}, .operations = 2.0 * (double)(n * n * n)};
    uint64_t workspace = 0;
    double nanoseconds = 0;
    hal_buffer *scratch = NULL;
    hal_status status = hal_kernel_create_gemm(m->device, &description, &kernel.kernel, &workspace);
    if (status != HAL_OK) {
        return unless_unsupported(status);
    }
    if (workspace > 0) {
        status = hal_buffer_create(m->device, HAL_MEMORY_DEVICE, workspace, &scratch);
    }
    if (status == HAL_OK) {
        const task t = {.queue = m->queue,
                        .record = record_kernel,
                        .kernel = &kernel,
                        .ranges = {whole(m, 0), whole(m, 1), whole(m, 2), {scratch, 0, workspace}},
                        .range_count = 4,
                        .scalars = factors,
                        .scalar_bytes = sizeof factors};
        status = task_time(&t, &nanoseconds);
        keep_larger(rate, kernel.operations, nanoseconds);
    }
    hal_buffer_release(scratch);
    hal_kernel_release(kernel.kernel);
    return unless_unsupported(status);
}

static hal_status measure_arithmetic(measurement *m)
{
    hal_device_peaks *peaks = &m->peaks;
    const struct {
        hal_type type;
        uint8_t precision;
        hal_status (*make)(hal_device *device, hal_type type, hal_peak_kernel *made);
        double *rate;
    } rows[] = {{HAL_TYPE_F32, HAL_GEMM_STRICT, hal_peak_multiply_add, &peaks->add_f32},
                {HAL_TYPE_F64, HAL_GEMM_STRICT, hal_peak_multiply_add, &peaks->add_f64},
                {HAL_TYPE_F16, HAL_GEMM_FAST, hal_peak_matrix, &peaks->matrix_f16},
                {HAL_TYPE_BF16, HAL_GEMM_FAST, hal_peak_matrix, &peaks->matrix_bf16},
                {HAL_TYPE_F32, HAL_GEMM_FAST, hal_peak_matrix, &peaks->matrix_f32},
                {HAL_TYPE_F64, HAL_GEMM_STRICT, hal_peak_matrix, &peaks->matrix_f64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hal_peak_kernel kernel;
        const hal_status made = rows[i].make(m->device, rows[i].type, &kernel);
        HAL_TRY(measure_kernel(m, made, &kernel, 1, rows[i].rate));
        HAL_TRY(measure_product(m, rows[i].type, rows[i].precision, rows[i].rate));
    }
    return HAL_OK;
}

/* Zeros: products of them are as fast, and no operation meets NaN or a denormal. */
static hal_status measurement_begin(measurement *m)
{
    const hal_device_info *info = hal_device_get_info(m->device);
    const bool is_large = info->kind == HAL_DEVICE_DISCRETE || info->kind == HAL_DEVICE_INTEGRATED;
    m->bytes = UINT64_C(1) << (is_large ? 28 : 26);
    while (m->bytes > info->max_allocation || m->bytes > info->max_binding ||
           m->bytes > info->memory_bytes / 16) {
        m->bytes /= 2;
    }
    m->peaks.size = sizeof m->peaks;
    m->host = calloc(1, m->bytes);
    if (!m->host) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_device_get_peaks: no host memory");
    }
    HAL_TRY(hal_queue_create(m->device, &m->queue));
    for (int i = 0; i < 3; i++) {
        HAL_TRY(hal_buffer_create(m->device, HAL_MEMORY_DEVICE, m->bytes, &m->buffers[i]));
        HAL_TRY(hal_queue_fill(m->queue, (hal_range){m->buffers[i], 0, m->bytes}, 0));
    }
    return hal_queue_wait(m->queue, HAL_WAIT_FOREVER);
}

static hal_status peaks_measure(hal_device *device, hal_device_peaks *peaks)
{
    measurement m = {.device = device};
    hal_status status = measurement_begin(&m);
    if (status == HAL_OK) {
        status = measure_memory(&m);
    }
    if (status == HAL_OK) {
        status = measure_launches(&m);
    }
    if (status == HAL_OK) {
        status = measure_arithmetic(&m);
    }
    for (int i = 0; i < 3; i++) {
        hal_buffer_release(m.buffers[i]);
    }
    hal_queue_destroy(m.queue);
    free(m.host);
    *peaks = m.peaks;
    return status;
}

/* Of the entry in the device's part of the compile cache. */
static const uint64_t entry_key[2] = {UINT64_C(0x736b616570), sizeof(hal_device_peaks)};

bool hal_peaks_find(hal_device *device, hal_device_peaks *peaks)
{
    void *data = NULL;
    uint64_t bytes = 0;
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    const hal_status status = hal_cache_load(device->info.id, entry_key, &data, &bytes);
    hal_cache_enter(outer);
    const bool is_there = status == HAL_OK && bytes == sizeof *peaks;
    if (is_there) {
        memcpy(peaks, data, sizeof *peaks);
    }
    free(data);
    return is_there;
}

hal_status hal_device_get_peaks(hal_device *device, int measure, hal_device_peaks *peaks)
{
    hal_device_peaks found = {.size = sizeof found};
    if (!peaks || !device) {
        return hal_null_argument("hal_device_get_peaks", peaks ? "device" : "peaks");
    }
    HAL_TRY(hal_device_check(device, "hal_device_get_peaks"));
    if (!measure && !hal_peaks_find(device, &found)) {
        return hal_fail(HAL_ERROR_NOT_FOUND,
                        "hal_device_get_peaks: none are kept for %s:%u; hal-info --peaks measures "
                        "them",
                        device->plugin->name, device->index);
    }
    if (measure) {
        HAL_TRY(peaks_measure(device, &found));
        const hal_cache_scope *outer = hal_cache_enter(&device->cache);
        hal_cache_store(device->info.id, entry_key, &found, sizeof found);
        hal_cache_enter(outer);
    }
    const uint32_t size = peaks->size;
    memcpy(peaks, &found, size < sizeof found ? size : sizeof found);
    peaks->size = size;
    return HAL_OK;
}
