/* Sums of products that matrix products are compared with. */
#ifndef TESTS_UNIT_PLUGINS_CPU_CPU_SUM_H
#define TESTS_UNIT_PLUGINS_CPU_CPU_SUM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Sums over every eighth number, in loops that compilers turn into vectors. */
enum { LANES = 8 };

typedef struct lane_sums {
    double sum[LANES], size[LANES];
    double error[LANES]; /* the roundings of products and sums */
} lane_sums;

/* x = high + low, with 26 bits each at most (Dekker, A floating-point technique for extending the
 * available precision, 1971). */
static double high_part(double x)
{
    const double scaled = x * 0x1.000002p27;
    return scaled - (scaled - x);
}

static void lanes_add(lane_sums *restrict sums, const double *x, const double *y)
{
    for (int i = 0; i < LANES; i++) {
        const double product = x[i] * y[i];
        sums->sum[i] += product;
        sums->size[i] += fabs(product);
    }
}

static void lanes_add_exactly(lane_sums *restrict sums, const double *x, const double *y)
{
    for (int i = 0; i < LANES; i++) {
        const double product = x[i] * y[i], old = sums->sum[i], sum = old + product;
        const double xh = high_part(x[i]), xl = x[i] - xh, yh = high_part(y[i]), yl = y[i] - yh;
        const double taken = sum - old;
        sums->error[i] += ((xh * yh - product) + xh * yl + xl * yh) + xl * yl;
        sums->error[i] += (old - (sum - taken)) + (product - taken);
        sums->sum[i] = sum;
        sums->size[i] += fabs(product);
    }
}

/* The sum of products, and of their sizes. Products of numbers narrower than f64 are exact. */
static long double cpu_sum_of_products(const double *a, const double *b, int64_t count, bool is_f64,
                                       double *size)
{
    void (*add)(lane_sums *, const double *, const double *) =
        is_f64 ? lanes_add_exactly : lanes_add;
    const int64_t whole = count / LANES * LANES;
    double x[LANES] = {0}, y[LANES] = {0};
    lane_sums sums = {.sum = {0}};
    for (int64_t k = 0; k < whole; k += LANES) {
        add(&sums, a + k, b + k);
    }
    memcpy(x, a + whole, (size_t)(count - whole) * sizeof *x);
    memcpy(y, b + whole, (size_t)(count - whole) * sizeof *y);
    add(&sums, x, y);
    long double sum = 0, error = 0;
    *size = 0;
    for (int i = 0; i < LANES; i++) {
        sum += sums.sum[i];
        error += sums.error[i];
        *size += sums.size[i];
    }
    return isfinite(sum) ? sum + error : sum;
}

#endif
