/* Counts of calls, see estimate.h. They follow product.c, solve.c and operand.c. */
#include "estimate.h"

#include "matrix.h"
#include "resident.h"
#include "shape.h"

#include <math.h>

/* Rows and columns that a device computes together at least. */
#define TILE 16.0

int64_t blas_panel(int64_t order)
{
    const int64_t eighth = (order / 8 + 31) / 32 * 32;
    return eighth < 64 ? 64 : eighth > 256 ? 256 : eighth;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* An operand; expanded ones are twice as large. One that stays on the device costs nothing. `host`
 * and `device` get its bytes there if it is the largest of its product so far. */
static void add_operand(blas_estimate *made, const blas_matrix *matrix, bool is_expanded,
                        bool is_in_place, double *host, double *device)
{
    const bool is_complex = blas_type_is_complex(matrix->type);
    const double stored = (double)matrix->count * (double)matrix->rows * (double)matrix->columns *
                          (double)blas_type_bytes(matrix->type);
    const double bytes = stored * (is_expanded && is_complex ? 2 : 1);
    *host = larger(*host, stored);
    *device = larger(*device, bytes);
    if (blas_resident_is_known(matrix)) {
        return;
    }
    const bool is_copied = matrix->structure == BLAS_GENERAL &&
                           (!is_complex || (!is_expanded && !matrix->is_transposed));
    made->upload_bytes += is_in_place ? 0 : bytes;
    made->uploads += is_in_place ? 0 : 1;
    *(is_expanded && is_complex ? &made->expanded_bytes : &made->packed_bytes) +=
        is_copied ? 0 : bytes;
}

/* How many times the operations of a batch of small products take, in whole tiles. */
static double tile_share(const blas_call *call)
{
    const double m = (double)call->m, n = (double)call->n;
    return ceil(m / TILE) * ceil(n / TILE) * TILE * TILE / (m * n);
}

static void add_solution(blas_estimate *made, const blas_call *call)
{
    const double order = (double)(call->side == 'L' ? call->m : call->n);
    const double others = (double)(call->side == 'L' ? call->n : call->m);
    const double each = blas_type_is_complex(blas_call_type(call)) ? 8 : 2;
    const double blocks = order / BLAS_BLOCK + 1;
    made->operations += each * order * others * (order / 2 + 3 * BLAS_BLOCK);
    made->launches += 5 * blocks;
    made->packed_bytes += order * BLAS_BLOCK * 256; /* the inverses, which are slow */
}

blas_estimate blas_estimate_of(const blas_call *call, bool is_in_place)
{
    const blas_kind kind = blas_call_kind(call);
    const blas_number beta = blas_call_beta(call);
    const size_t size = blas_type_bytes(blas_call_type(call));
    const double result = (double)call->batch * (double)call->m * (double)call->n * (double)size;
    const bool is_triangle = blas_result_triangle(call) != 0;
    const bool is_scaled = beta.im != 0; /* by the host, in a copy */
    const bool is_copied = !is_in_place || is_triangle || is_scaled || kind >= BLAS_TRMM;
    blas_estimate made = {.download_bytes = is_copied ? result : 0,
                          .packed_bytes = (is_triangle ? result : 0) + (is_scaled ? result : 0)};
    made.upload_bytes = !is_copied || (beta.re == 0 && beta.im == 0) ? 0 : result;
    made.uploads = made.upload_bytes > 0;
    made.downloads = made.download_bytes > 0;
    for (int which = 0; which < blas_factors_count(call); which++) {
        const blas_factors factors = blas_factors_of(call, which);
        double host = result, device = result;
        add_operand(&made, &factors.y, false, is_in_place, &host, &device);
        add_operand(&made, &factors.x, true, is_in_place, &host, &device);
        made.host_bytes += host;
        made.device_bytes += device;
    }
    if (kind == BLAS_TRSM) {
        add_solution(&made, call);
        return made;
    }
    made.operations = blas_call_operations(call) * (call->batch > 1 ? tile_share(call) : 1);
    made.launches = blas_factors_count(call);
    if (is_triangle || kind == BLAS_TRMM) {
        const int64_t order = call->side == 'L' ? call->m : call->n;
        const int64_t panel = blas_panel(order);
        made.operations *= 1 + (double)panel / (double)(order > panel ? order : panel);
        made.launches *= (double)(order / panel + 1);
    }
    return made;
}

#define PANEL_TRIANGLES 256
#define PANEL_REFLECTORS 128

int64_t blas_factoring_panel(const blas_factoring *call)
{
    return call->kind == BLAS_GETRF || call->kind == BLAS_POTRF ? PANEL_TRIANGLES
                                                                : PANEL_REFLECTORS;
}

blas_factoring_estimate blas_factoring_estimate_of(const blas_factoring *call)
{
    const double m = (double)call->m, n = (double)call->n;
    const bool has_k = call->kind == BLAS_ORGQR || call->kind == BLAS_ORMQR;
    const double k = has_k ? (double)call->k : m < n ? m : n;
    const double width = (double)blas_factoring_panel(call);
    const double each = blas_type_is_complex(call->type) ? 4 : 1;
    const double panel = width * (m * k - k * k / 2); /* of a number of operations for each pair */
    blas_factoring_estimate e = {.panels = k / width + 1};
    e.bytes = m * n * (double)blas_type_bytes(call->type);
    switch (call->kind) {
    case BLAS_GETRF:
    case BLAS_GESV:
        e.operations = 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3;
        e.panel_operations = panel;
        break;
    case BLAS_POTRF:
        e.operations = n * n * n / 3;
        e.panel_operations = n * width * width / 3;
        break;
    case BLAS_GEQRF:
        e.operations = 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
        e.panel_operations = 3 * panel;
        break;
    case BLAS_ORMQR:
        e.operations = 4 * m * n * k - 2 * n * k * k;
        e.bytes += m * k * (double)blas_type_bytes(call->type); /* the reflectors */
        e.panel_operations = panel;
        break;
    default:
        e.operations = 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
        e.panel_operations = panel;
        break;
    }
    e.operations *= each;
    e.panel_operations *= each;
    return e;
}
