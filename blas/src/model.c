/* The model of time: square products of a few orders, transfers, and copies are measured; times of
 * other calls follow by interpolation over the number of operations. See model.h. */
#include "model.h"

#include "estimate.h"
#include "host.h"
#include "lane.h"
#include "measure.h"
#include "shape.h"

#include <math.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_known, is_usable;
static blas_measurements known;
static double penalties[BLAS_KINDS][BLAS_STANDARD_TYPES]; /* factors of the device's times */

/* The parent may have been measuring. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, reset_in_child);
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

/* A line through the logarithms of the two nearest points; below the first its time, above the last
 * its rate. */
static double curve_at(const uint64_t curve[BLAS_MODEL_POINTS], double operations)
{
    double x0 = 0, y0 = 0;
    for (int point = 0; point < BLAS_MODEL_POINTS && curve[point]; point++) {
        const double n = (double)blas_measure_orders[point], y = (double)curve[point],
                     x = 2 * n * n * n;
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
    const double first = (double)blas_measure_columns[0], last = (double)blas_measure_columns[1];
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

/* Some transfers of this many bytes together. */
static double transfers_at(uint64_t least, uint64_t full, double count, double bytes)
{
    const double rest = full > least ? (double)(full - least) : 0;
    return (double)least * count + rest * bytes / (double)BLAS_TRANSFER_BYTES;
}

/* What the measured products, transfers and copies say of a call. */
static blas_times times_of(const blas_measurements *m, const blas_call *call)
{
    const bool is_double = blas_type_real_bytes(blas_call_type(call)) == sizeof(double);
    const blas_estimate e = blas_estimate_of(call, blas_lane_is_in_place());
    blas_times times;
    const double thin =
        (double)BLAS_THIN_ORDER * BLAS_THIN_ORDER * (is_double ? sizeof(double) : sizeof(float));
    const double columns = (double)(call->m < call->n ? call->m : call->n);
    const double expanded = blas_type_is_complex(blas_call_type(call)) ? 2 * columns : columns;
    times.device =
        products_at(m->device[is_double], e.operations, e.launches,
                    thin_at(m->device_thin[is_double], expanded), e.device_bytes / thin) +
        transfers_at(m->least_upload, m->upload, e.uploads, e.upload_bytes) +
        transfers_at(m->least_download, m->download, e.downloads, e.download_bytes) +
        (double)m->pack * e.packed_bytes / (double)BLAS_PACKED_BYTES +
        (double)m->expand * e.expanded_bytes / (double)(2 * BLAS_PACKED_BYTES);
    const bool is_3m =
        call->routine == BLAS_ROUTINE_cgemm3m || call->routine == BLAS_ROUTINE_zgemm3m;
    times.host = products_at(m->host[is_double], blas_call_operations(call) * (is_3m ? 0.75 : 1),
                             (double)call->batch, thin_at(m->host_thin[is_double], columns),
                             e.host_bytes / thin);
    return times;
}

/* How many times as long as the model says the device takes for a call that was measured, next to
 * the host. Never less than 1: one call is no reason to take others. */
static double penalty_of(uint64_t device, uint64_t host, blas_times said)
{
    return device == 0 || host == 0
               ? 1
               : fmax(1, (double)device / (double)host * (said.host / said.device));
}

/* One call of each kind and type was measured: others of it are expected to err alike. Under the
 * lock. */
static void penalties_make(void)
{
    static char memory[1]; /* an operand that nobody has used */
    for (int kind = 0; kind < BLAS_KINDS; kind++) {
        for (int type = 0; type < BLAS_STANDARD_TYPES; type++) {
            const bool is_double = blas_type_real_bytes((blas_type)type) == sizeof(double);
            blas_call call;
            penalties[kind][type] = 1;
            if (known.device[is_double][0] &&
                blas_measure_call((blas_kind)kind, (blas_type)type, memory, &call)) {
                penalties[kind][type] =
                    penalty_of(known.device_calls[kind][type], known.host_calls[kind][type],
                               times_of(&known, &call));
            }
        }
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
    if (!is_usable && blas_measure_all(&known) == HAL_OK) {
        is_usable = true;
        blas_store_write(device, &known);
    }
    curves_order(&known);
    penalties_make();
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
    const blas_type type = blas_call_type(call);
    const blas_measurements *m = model_get(blas_type_real_bytes(type) == sizeof(double));
    if (!m) {
        return (blas_times){0, 0};
    }
    blas_times times = times_of(m, call);
    times.device *= type < BLAS_STANDARD_TYPES ? penalties[blas_call_kind(call)][type] : 1;
    return times;
}

/* A panel's rate over that of products, and nanoseconds of its launches and waits. */
#define PANEL_RATE 0.15
#define PANEL_NANOSECONDS 5e5

blas_times blas_model_factoring_times(const blas_factoring *call)
{
    const bool is_double = blas_type_real_bytes(call->type) == sizeof(double);
    const blas_measurements *m = model_get(is_double);
    if (!m) {
        return (blas_times){0, 0};
    }
    const blas_factoring_estimate e = blas_factoring_estimate_of(call);
    const double order = (double)blas_measure_orders[BLAS_MODEL_POINTS - 1];
    const double largest = 2 * order * order * order;
    const double host = curve_at(m->host[is_double], largest) / largest; /* of an operation */
    blas_times times = {.host = host * e.operations};
    times.device = products_at(m->device[is_double], e.operations, e.panels, 0, 0) +
                   host / PANEL_RATE * e.panel_operations + PANEL_NANOSECONDS * e.panels +
                   1.5 * e.bytes * (double)(m->upload + m->download) / (double)BLAS_TRANSFER_BYTES;
    return times;
}
