/* The model of time: square products of a few orders, transfers, and copies are measured; times of
 * other calls follow by interpolation over the number of operations. See model.h. */
#include "model.h"

#include "estimate.h"
#include "host.h"
#include "lane.h"
#include "matrix.h"
#include "shape.h"
#include "store.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const int64_t orders[BLAS_MODEL_POINTS] = {32, 128, 512, 1024};

/* Columns of thin products, and their order otherwise. */
static const int64_t thin_columns[BLAS_MODEL_THIN] = {4, 16};
#define THIN_ORDER 1024

/* A longer measurement ends a curve. */
#define CURVE_SECONDS 0.05
#define TRANSFER_BYTES (16u << 20)
#define PACKED_ORDER 1024
#define PACKED_BYTES ((size_t)PACKED_ORDER * PACKED_ORDER * sizeof(double))

/* A measurement is repeated this often at least, then up to this time, since others may use the
 * machine: the least time counts. */
#define MIN_TURNS 3
#define MAX_TURNS 20
#define TURNS_SECONDS 0.05

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_known, is_usable;
static blas_measurements known;

/* The parent may have been measuring. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, reset_in_child);
}

/* What a measurement repeats. */
typedef struct trial {
    blas_lane *lane;
    ops_tensor a, b, c; /* on the device */
    void *memory;       /* of the host: three matrices */
    size_t bytes;       /* of each */
    blas_call call;
    clockid_t clock;
} trial;

/* Nanoseconds. Where device and host are the same processors, time of these counts, all threads
 * together: others who use the machine then change nothing. */
static double now(const trial *t)
{
    struct timespec time;
    clock_gettime(t->clock, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static hal_status device_product(trial *t)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_ACCURATE;
    HAL_TRY(ops_gemm(t->lane->context, &options, &t->a, &t->b, &t->c));
    return hal_queue_wait(t->lane->queue, HAL_WAIT_FOREVER);
}

static hal_status host_product(trial *t)
{
    return blas_host_compute(&t->call) ? HAL_OK : HAL_ERROR_UNSUPPORTED;
}

static hal_status upload(trial *t)
{
    HAL_TRY(hal_queue_write(t->lane->queue, t->a.buffer, 0, t->memory, t->bytes));
    return hal_queue_wait(t->lane->queue, HAL_WAIT_FOREVER);
}

static hal_status download(trial *t)
{
    return hal_queue_read(t->lane->queue, t->a.buffer, 0, t->bytes, t->memory);
}

/* Calls pack into memory that they allocate, whose pages the kernel may have to make. */
static hal_status pack_matrix(trial *t, blas_type type, blas_structure structure, bool is_expanded)
{
    const blas_matrix matrix = {.data = t->memory,
                                .count = 1,
                                .type = type,
                                .structure = structure,
                                .rows = PACKED_ORDER,
                                .columns = PACKED_ORDER,
                                .leading = PACKED_ORDER};
    void *packed = malloc(PACKED_BYTES * (is_expanded ? 2 : 1));
    if (!packed) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    blas_matrix_pack(&matrix, (blas_number){1, 0}, is_expanded, packed);
    free(packed);
    return HAL_OK;
}

static hal_status pack(trial *t)
{
    return pack_matrix(t, BLAS_TYPE_d, BLAS_SYMMETRIC, false);
}

static hal_status expand(trial *t)
{
    return pack_matrix(t, BLAS_TYPE_c, BLAS_GENERAL, true);
}

static hal_status time_action(hal_status (*action)(trial *), trial *t, uint64_t *nanoseconds)
{
    const double start = now(t);
    HAL_TRY(action(t));
    const double taken = now(t) - start;
    *nanoseconds = taken < (double)*nanoseconds ? (uint64_t)taken + 1 : *nanoseconds;
    return HAL_OK;
}

/* The least times of two actions, which alternate; the first turn may compile. */
static hal_status measure(hal_status (*first)(trial *), hal_status (*second)(trial *), trial *t,
                          uint64_t *first_time, uint64_t *second_time)
{
    const double start = now(t);
    *first_time = *second_time = UINT64_MAX;
    for (int turn = 0;
         turn < MIN_TURNS || (turn < MAX_TURNS && now(t) - start < 1e9 * TURNS_SECONDS); turn++) {
        HAL_TRY(time_action(first, t, first_time));
        HAL_TRY(time_action(second, t, second_time));
    }
    return HAL_OK;
}

/* The host's memory holds zeros, which take the same time as other numbers. */
static hal_status trial_create(trial *t, hal_type type, int64_t order)
{
    const int64_t shape[2] = {order, order};
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->a));
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->b));
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->c));
    HAL_TRY(ops_fill(t->lane->context, 0, &t->a));
    HAL_TRY(ops_fill(t->lane->context, 0, &t->b));
    t->bytes = (size_t)hal_buffer_get_bytes(t->a.buffer);
    t->memory = calloc(3, t->bytes);
    return t->memory ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

static void trial_destroy(trial *t)
{
    ops_tensor_release(&t->a);
    ops_tensor_release(&t->b);
    ops_tensor_release(&t->c);
    free(t->memory);
    t->memory = NULL;
}

/* A square matrix times one with `columns` columns. */
static hal_status measure_product(trial *t, bool is_double, int64_t n, int64_t columns,
                                  uint64_t *device, uint64_t *host)
{
    static const double double_one = 1, double_zero;
    static const float single_one = 1, single_zero;
    HAL_TRY(trial_create(t, is_double ? HAL_TYPE_F64 : HAL_TYPE_F32, n));
    t->a.shape[0] = t->c.shape[0] = columns;
    char *memory = t->memory;
    t->call = (blas_call){.routine = is_double ? BLAS_ROUTINE_dgemm : BLAS_ROUTINE_sgemm,
                          .transa = 'N',
                          .transb = 'N',
                          .m = n,
                          .n = columns,
                          .k = n,
                          .lda = n,
                          .ldb = n,
                          .ldc = n,
                          .batch = 1,
                          .alpha = is_double ? (const void *)&double_one : &single_one,
                          .beta = is_double ? (const void *)&double_zero : &single_zero,
                          .a = memory,
                          .b = memory + t->bytes,
                          .c = memory + 2 * t->bytes};
    return measure(device_product, host_product, t, device, host);
}

/* Both curves of a type end where one takes long. */
static hal_status measure_curves(trial *t, bool is_double, blas_measurements *made)
{
    for (int point = 0; point < BLAS_MODEL_POINTS; point++) {
        const hal_status status =
            measure_product(t, is_double, orders[point], orders[point],
                            &made->device[is_double][point], &made->host[is_double][point]);
        trial_destroy(t);
        HAL_TRY(status);
        const uint64_t device = made->device[is_double][point], host = made->host[is_double][point];
        if ((double)(device > host ? device : host) > 1e9 * CURVE_SECONDS) {
            break;
        }
    }
    for (int i = 0; i < BLAS_MODEL_THIN; i++) {
        const hal_status status =
            measure_product(t, is_double, THIN_ORDER, thin_columns[i],
                            &made->device_thin[is_double][i], &made->host_thin[is_double][i]);
        trial_destroy(t);
        HAL_TRY(status);
    }
    return HAL_OK;
}

static hal_status measure_transfers(trial *t, blas_measurements *made)
{
    const int64_t order = 2048; /* of f32: TRANSFER_BYTES */
    hal_status status = trial_create(t, HAL_TYPE_F32, order);
    if (status == HAL_OK) {
        status = measure(upload, download, t, &made->upload, &made->download);
    }
    if (status == HAL_OK) {
        status = measure(pack, expand, t, &made->pack, &made->expand);
    }
    trial_destroy(t);
    return status;
}

/* A device without f64 has no times of it. */
static hal_status measure_all(blas_measurements *made)
{
    trial t = {0};
    HAL_TRY(blas_lane_acquire(&t.lane));
    const hal_device_info *info = hal_device_get_info(ops_context_get_device(t.lane->context));
    t.clock = info->kind == HAL_DEVICE_CPU ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    *made = (blas_measurements){0};
    hal_status status = measure_transfers(&t, made);
    if (status == HAL_OK) {
        status = measure_curves(&t, false, made);
    }
    if (status == HAL_OK && measure_curves(&t, true, made) != HAL_OK) {
        made->device[1][0] = 0;
    }
    blas_lane_release(t.lane, status != HAL_OK);
    return status;
}

/* Of one type: a smaller product takes no longer than a larger one. Measured times may say so,
 * since threads of a host's BLAS that wait for each other take time of processors. */
static void curve_order(uint64_t *curve, int points)
{
    for (int point = points - 1; point > 0; point--) {
        if (curve[point] > 0 && curve[point - 1] > curve[point]) {
            curve[point - 1] = curve[point];
        }
    }
}

static void curves_order(blas_measurements *m)
{
    for (int type = 0; type < 2; type++) {
        curve_order(m->device[type], BLAS_MODEL_POINTS);
        curve_order(m->host[type], BLAS_MODEL_POINTS);
        curve_order(m->device_thin[type], BLAS_MODEL_THIN);
        curve_order(m->host_thin[type], BLAS_MODEL_THIN);
    }
}

/* Under the lock. */
static void model_load(void)
{
    hal_device *device = *blas_host_path() ? blas_lane_device() : NULL;
    is_known = true;
    if (!device) {
        return;
    }
    is_usable = blas_store_read(device, &known);
    if (!is_usable && measure_all(&known) == HAL_OK) {
        is_usable = true;
        blas_store_write(device, &known);
    }
    curves_order(&known);
}

/* A line through the logarithms of the two nearest points; below the first its time, above the last
 * its rate. */
static double curve_at(const uint64_t curve[BLAS_MODEL_POINTS], double operations)
{
    double x0 = 0, y0 = 0;
    for (int point = 0; point < BLAS_MODEL_POINTS && curve[point]; point++) {
        const double n = (double)orders[point], y = (double)curve[point], x = 2 * n * n * n;
        if (operations <= x) {
            return point == 0 ? y : y0 * pow(operations / x0, log(y / y0) / log(x / x0));
        }
        x0 = x;
        y0 = y;
    }
    return x0 > 0 ? y0 * operations / x0 : 0;
}

/* The time of a thin product with `columns` columns, interpolated linearly between the logarithms
 * of the measured ones. */
static double thin_at(const uint64_t thin[BLAS_MODEL_THIN], double columns)
{
    const double first = (double)thin_columns[0], last = (double)thin_columns[1];
    const double share = columns <= first  ? 0
                         : columns >= last ? 1
                                           : log(columns / first) / log(last / first);
    return (double)thin[0] * pow((double)thin[1] / (double)thin[0], share);
}

/* Products of a number of operations each, or the time of reading the largest operand, if that is
 * longer. */
static double products_at(const uint64_t curve[BLAS_MODEL_POINTS], double operations, double count,
                          double thin, double operand_matrices)
{
    const double computed = count * curve_at(curve, operations / count);
    const double read = thin * operand_matrices;
    return computed > read ? computed : read;
}

/* Null: nothing is known of the type. */
static const blas_measurements *model_get(bool is_double)
{
    pthread_mutex_lock(&lock);
    if (!is_known) {
        model_load();
    }
    const blas_measurements *m = is_usable ? &known : NULL;
    pthread_mutex_unlock(&lock);
    return m && m->device[is_double][0] ? m : NULL;
}

blas_times blas_model_times(const blas_call *call)
{
    const bool is_double = blas_type_real_bytes(blas_call_type(call)) == sizeof(double);
    const blas_measurements *m = model_get(is_double);
    if (!m) {
        return (blas_times){0, 0};
    }
    const blas_estimate e = blas_estimate_of(call, blas_lane_is_in_place());
    blas_times times;
    const double thin =
        (double)THIN_ORDER * THIN_ORDER * (is_double ? sizeof(double) : sizeof(float));
    const double columns = (double)(call->m < call->n ? call->m : call->n);
    const double expanded = blas_type_is_complex(blas_call_type(call)) ? 2 * columns : columns;
    times.device =
        products_at(m->device[is_double], e.operations, e.launches,
                    thin_at(m->device_thin[is_double], expanded), e.device_bytes / thin) +
        (double)m->upload * e.upload_bytes / TRANSFER_BYTES +
        (double)m->download * e.download_bytes / TRANSFER_BYTES +
        (double)m->pack * e.packed_bytes / PACKED_BYTES +
        (double)m->expand * e.expanded_bytes / (2 * PACKED_BYTES);
    const bool is_3m =
        call->routine == BLAS_ROUTINE_cgemm3m || call->routine == BLAS_ROUTINE_zgemm3m;
    times.host = products_at(m->host[is_double], blas_call_operations(call) * (is_3m ? 0.75 : 1),
                             (double)call->batch, thin_at(m->host_thin[is_double], columns),
                             e.host_bytes / thin);
    return times;
}

/* A panel's rate over that of products, and nanoseconds of its launches and waits. */
#define PANEL_RATE 0.15
#define PANEL_NANOSECONDS 5e5

blas_times blas_model_factoring_times(const blas_factoring *call)
{
    const bool is_double = call->type == BLAS_TYPE_d;
    const blas_measurements *m = model_get(is_double);
    if (!m) {
        return (blas_times){0, 0};
    }
    const blas_factoring_estimate e = blas_factoring_estimate_of(call);
    const double largest = 2.0 * orders[BLAS_MODEL_POINTS - 1] * orders[BLAS_MODEL_POINTS - 1] *
                           orders[BLAS_MODEL_POINTS - 1];
    const double host = curve_at(m->host[is_double], largest) / largest; /* of an operation */
    blas_times times = {.host = host * e.operations};
    times.device = products_at(m->device[is_double], e.operations, e.panels, 0, 0) +
                   host / PANEL_RATE * e.panel_operations + PANEL_NANOSECONDS * e.panels +
                   1.5 * e.bytes * (double)(m->upload + m->download) / TRANSFER_BYTES;
    return times;
}
