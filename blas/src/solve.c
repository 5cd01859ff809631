/* Triangular systems by products, see solve.h. The unknowns are rows: X R = B with R = op(A)^T, or
 * op(A) for the right side, in row-major tensors. */
#include "solve.h"

#include "estimate.h"
#include "operand.h"

#include <math.h>
#include <stdlib.h>

typedef struct solver {
    blas_lane *lane;
    blas_matrix a; /* its columns are rows of the tensor `triangle` */
    ops_tensor triangle, inverses, unknowns, scratch;
    int64_t order, parts;
    bool is_forward; /* the first unknowns are solved first */
} solver;

static blas_number reciprocal(blas_number x)
{
    const double scale = x.re * x.re + x.im * x.im;
    return x.im == 0 ? (blas_number){1 / x.re, 0} : (blas_number){x.re / scale, -x.im / scale};
}

/* Subtracts `factor` times the elements from first to last of a column. */
static void subtract_column(blas_number *x, const blas_number *column, blas_number factor,
                            int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        x[i].re -= factor.re * column[i].re - factor.im * column[i].im;
        x[i].im -= factor.re * column[i].im + factor.im * column[i].re;
    }
}

/* The inverse of a triangle on the diagonal, column-major, by substitution for each unit vector;
 * `elements` has room for the triangle. False: it is not finite. */
static bool invert(const blas_matrix *block, blas_number *elements, blas_number *inverse)
{
    const int64_t n = block->rows;
    const bool is_lower = blas_matrix_is_lower(block);
    bool is_finite = true;
    for (int64_t i = 0; i < n * n; i++) {
        elements[i] = blas_matrix_get(block, i % n, i / n);
        inverse[i] = (blas_number){i % n == i / n ? 1 : 0, 0};
    }
    for (int64_t j = 0; j < n; j++) {
        blas_number *x = inverse + j * n;
        for (int64_t step = 0; step < (is_lower ? n - j : j + 1); step++) {
            const int64_t i = is_lower ? j + step : j - step;
            const blas_number *column = elements + i * n;
            x[i] = blas_number_multiply(x[i], reciprocal(column[i]));
            subtract_column(x, column, x[i], is_lower ? i + 1 : 0, is_lower ? n : i);
            is_finite = is_finite && isfinite(x[i].re) && isfinite(x[i].im);
        }
    }
    return is_finite;
}

/* The inverses of all blocks of the diagonal in one tensor, one after the other. */
static hal_status inverses_create(solver *s)
{
    const int64_t blocks = (s->order + BLAS_BLOCK - 1) / BLAS_BLOCK;
    const blas_type type = s->a.type;
    blas_number *inverse = malloc(2 * sizeof *inverse * BLAS_BLOCK * BLAS_BLOCK);
    void *all = calloc((size_t)blocks * BLAS_BLOCK * BLAS_BLOCK, blas_type_bytes(type));
    hal_status status = inverse && all ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    for (int64_t b = 0; status == HAL_OK && b < blocks; b++) {
        const int64_t first = b * BLAS_BLOCK;
        const int64_t n = s->order - first < BLAS_BLOCK ? s->order - first : BLAS_BLOCK;
        const blas_matrix block = blas_matrix_diagonal_block(&s->a, first, n);
        if (!invert(&block, inverse + BLAS_BLOCK * BLAS_BLOCK, inverse)) {
            status = HAL_ERROR_UNSUPPORTED;
        }
        for (int64_t at = 0; at < n * n; at++) {
            blas_number_store(all, type, (first + at / n) * BLAS_BLOCK + at % n, inverse[at]);
        }
    }
    if (status == HAL_OK) {
        const blas_matrix stored = {.count = 1,
                                    .data = all,
                                    .type = type,
                                    .rows = BLAS_BLOCK,
                                    .columns = blocks * BLAS_BLOCK,
                                    .leading = BLAS_BLOCK};
        status = blas_operand_load(s->lane, &stored, (blas_number){1, 0}, BLAS_EXPANDED, false,
                                   &s->inverses);
    }
    free(inverse);
    free(all);
    return status;
}

/* A range of unknowns in every row. */
static ops_tensor unknowns_part(const solver *s, int64_t first, int64_t count)
{
    return blas_operand_part(&s->unknowns, 0, s->unknowns.shape[0], s->parts * first,
                             s->parts * count);
}

static ops_tensor triangle_part(const solver *s, int64_t row, int64_t rows, int64_t column,
                                int64_t columns)
{
    return blas_operand_part(&s->triangle, s->parts * row, s->parts * rows, s->parts * column,
                             s->parts * columns);
}

/* x = b R^-1, then x += (b - x R) R^-1, for a block R of the diagonal. */
static hal_status solve_block(const solver *s, int64_t first, int64_t count)
{
    const int64_t f = s->parts;
    const ops_tensor b = unknowns_part(s, first, count);
    const ops_tensor x = blas_operand_part(&s->scratch, 0, s->scratch.shape[0], 0, f * count);
    const ops_tensor inverse = blas_operand_part(&s->inverses, f * first, f * count, 0, f * count);
    const ops_tensor block = triangle_part(s, first, count, first, count);
    HAL_TRY(blas_operand_multiply(s->lane, 1, &b, &inverse, 0, &x));
    HAL_TRY(blas_operand_multiply(s->lane, -1, &x, &block, 1, &b));
    HAL_TRY(blas_operand_multiply(s->lane, 1, &b, &inverse, 1, &x));
    return ops_copy(s->lane->context, &x, &b);
}

/* Solves `count` unknowns from `first` on, from which the ones before are subtracted already. */
static hal_status solve_range(const solver *s, int64_t first, int64_t count)
{
    if (count <= BLAS_BLOCK) {
        return solve_block(s, first, count);
    }
    const int64_t blocks = (count + BLAS_BLOCK - 1) / BLAS_BLOCK;
    const int64_t half = blocks / 2 * BLAS_BLOCK; /* multiples of BLAS_BLOCK, as the inverses are */
    const int64_t middle = first + half, rest = count - half;
    const int64_t known = s->is_forward ? first : middle, known_count = s->is_forward ? half : rest;
    const int64_t other = s->is_forward ? middle : first, other_count = s->is_forward ? rest : half;
    HAL_TRY(solve_range(s, known, known_count));
    const ops_tensor x = unknowns_part(s, known, known_count);
    const ops_tensor b = unknowns_part(s, other, other_count);
    const ops_tensor r = triangle_part(s, known, known_count, other, other_count);
    HAL_TRY(blas_operand_multiply(s->lane, -1, &x, &r, 1, &b));
    return solve_range(s, other, other_count);
}

/* Solves for the unknowns in their place; `stays`: the triangle may stay on the device. */
static hal_status solve_loaded(solver *s, bool stays)
{
    const int64_t rows = s->unknowns.shape[0];
    const int64_t width = s->order < BLAS_BLOCK ? s->order : BLAS_BLOCK;
    HAL_TRY(
        blas_operand_load(s->lane, &s->a, (blas_number){1, 0}, BLAS_EXPANDED, stays, &s->triangle));
    HAL_TRY(inverses_create(s));
    HAL_TRY(blas_operand_create(s->lane, s->a.type, 1, width, rows, &s->scratch));
    return solve_range(s, 0, s->order);
}

static solver solver_of(blas_lane *lane, const blas_matrix *a)
{
    return (solver){.lane = lane,
                    .a = *a,
                    .order = a->rows,
                    .parts = blas_type_parts(a->type),
                    .is_forward = blas_matrix_is_lower(a)};
}

static void solver_free(solver *s)
{
    ops_tensor_release(&s->triangle);
    ops_tensor_release(&s->inverses);
    ops_tensor_release(&s->scratch);
}

hal_status blas_solve_in_place(blas_lane *lane, const blas_matrix *triangle,
                               const ops_tensor *unknowns)
{
    solver s = solver_of(lane, triangle);
    s.unknowns = *unknowns;
    const hal_status status = solve_loaded(&s, false);
    solver_free(&s);
    return status;
}

hal_status blas_solve_compute(blas_lane *lane, const blas_call *call)
{
    const bool is_left = call->side == 'L';
    const blas_factors factors = blas_factors_of(call, 0);
    const blas_matrix right = blas_matrix_transpose(&factors.y);
    const blas_matrix turned = blas_matrix_transpose(&factors.x);
    solver s = solver_of(lane, is_left ? &factors.x : &right);
    hal_status status = blas_operand_load(lane, is_left ? &factors.y : &turned, factors.alpha,
                                          BLAS_PAIRS, false, &s.unknowns);
    if (status == HAL_OK) {
        status = solve_loaded(&s, true);
    }
    if (status == HAL_OK) {
        status = blas_operand_store(lane, &s.unknowns, call, !is_left);
    }
    solver_free(&s);
    ops_tensor_release(&s.unknowns);
    return status;
}
