/* Operands of calls, their elements, and copies with every element in place; see matrix.h. */
#include "matrix.h"

#include "half.h"

#include <string.h>

static blas_matrix general(const blas_call *call, const void *data, int64_t leading, int64_t rows,
                           int64_t columns, char transposition)
{
    return (blas_matrix){.count = 1,
                         .data = data,
                         .type = blas_call_operands(call),
                         .structure = BLAS_GENERAL,
                         .rows = rows,
                         .columns = columns,
                         .leading = leading,
                         .is_transposed = transposition != 'N',
                         .is_conjugated = transposition == 'C'};
}

/* The operand of a batch; one matrix serves all products where they are no elements apart. */
static void repeat(blas_matrix *matrix, int64_t count, int64_t stride)
{
    matrix->count = stride == 0 ? 1 : count;
    matrix->stride = stride;
}

/* A of the routines with a side. */
static blas_matrix structured(const blas_call *call, blas_structure structure)
{
    const int64_t order = call->side == 'L' ? call->m : call->n;
    const char transposition = structure == BLAS_TRIANGULAR ? call->transa : 'N';
    blas_matrix made = general(call, call->a, call->lda, order, order, transposition);
    made.structure = structure;
    made.is_upper = call->uplo == 'U';
    made.is_unit = call->diag == 'U';
    return made;
}

static blas_factors with_side(const blas_call *call, blas_structure structure, const void *b,
                              int64_t leading)
{
    const blas_matrix a = structured(call, structure);
    const blas_matrix other = general(call, b, leading, call->m, call->n, 'N');
    const bool is_left = call->side == 'L';
    return (blas_factors){is_left ? a : other, is_left ? other : a, blas_call_alpha(call)};
}

/* op(left) op(right)^T, or ^H. */
static blas_factors update(const blas_call *call, bool is_hermitian, bool is_second, bool is_rank_2)
{
    const blas_matrix a = general(call, call->a, call->lda, call->n, call->k, call->transa);
    const blas_matrix b =
        is_rank_2 ? general(call, call->b, call->ldb, call->n, call->k, call->transa) : a;
    blas_factors made = {is_second ? b : a, blas_matrix_transpose(is_second ? &a : &b),
                         blas_call_alpha(call)};
    if (is_hermitian) {
        made.y.is_conjugated = !made.y.is_conjugated;
        made.alpha.im = is_second ? -made.alpha.im : made.alpha.im;
    }
    return made;
}

int blas_factors_count(const blas_call *call)
{
    const blas_kind kind = blas_call_kind(call);
    return kind == BLAS_SYR2K || kind == BLAS_HER2K ? 2 : 1;
}

blas_factors blas_factors_of(const blas_call *call, int which)
{
    const blas_kind kind = blas_call_kind(call);
    switch (kind) {
    case BLAS_SYMM:
        return with_side(call, BLAS_SYMMETRIC, call->b, call->ldb);
    case BLAS_HEMM:
        return with_side(call, BLAS_HERMITIAN, call->b, call->ldb);
    case BLAS_TRMM:
    case BLAS_TRSM:
        return with_side(call, BLAS_TRIANGULAR, call->c, call->ldc);
    case BLAS_SYRK:
        return update(call, false, false, false);
    case BLAS_HERK:
        return update(call, true, false, false);
    case BLAS_SYR2K:
        return update(call, false, which == 1, true);
    case BLAS_HER2K:
        return update(call, true, which == 1, true);
    case BLAS_GEMM:
    case BLAS_GEMMT:
        break;
    }
    blas_factors made = {general(call, call->a, call->lda, call->m, call->k, call->transa),
                         general(call, call->b, call->ldb, call->k, call->n, call->transb),
                         blas_call_alpha(call)};
    repeat(&made.x, call->batch, call->stride_a);
    repeat(&made.y, call->batch, call->stride_b);
    return made;
}

char blas_result_triangle(const blas_call *call)
{
    switch (blas_call_kind(call)) {
    case BLAS_GEMMT:
    case BLAS_SYRK:
    case BLAS_HERK:
    case BLAS_SYR2K:
    case BLAS_HER2K:
        return call->uplo;
    default:
        return 0;
    }
}

blas_matrix blas_matrix_transpose(const blas_matrix *matrix)
{
    blas_matrix made = *matrix;
    made.rows = matrix->columns;
    made.columns = matrix->rows;
    made.is_transposed = !matrix->is_transposed;
    return made;
}

bool blas_matrix_is_lower(const blas_matrix *matrix)
{
    return matrix->is_upper == matrix->is_transposed;
}

blas_matrix blas_matrix_diagonal_block(const blas_matrix *matrix, int64_t first, int64_t count)
{
    blas_matrix made = *matrix;
    made.rows = made.columns = count;
    made.data = (const char *)matrix->data +
                (size_t)(first * (matrix->leading + 1)) * blas_type_bytes(matrix->type);
    return made;
}

blas_number blas_number_load(const void *data, blas_type type, int64_t index)
{
    switch (type) {
    case BLAS_TYPE_s:
        return (blas_number){(double)((const float *)data)[index], 0};
    case BLAS_TYPE_d:
        return (blas_number){((const double *)data)[index], 0};
    case BLAS_TYPE_c:
        return (blas_number){(double)((const float *)data)[2 * index],
                             (double)((const float *)data)[2 * index + 1]};
    case BLAS_TYPE_h:
        return (blas_number){blas_f16_load(((const uint16_t *)data)[index]), 0};
    case BLAS_TYPE_b:
        return (blas_number){blas_bf16_load(((const uint16_t *)data)[index]), 0};
    case BLAS_TYPE_z:
        break;
    }
    return (blas_number){((const double *)data)[2 * index], ((const double *)data)[2 * index + 1]};
}

void blas_number_store(void *data, blas_type type, int64_t index, blas_number value)
{
    switch (type) {
    case BLAS_TYPE_s:
        ((float *)data)[index] = (float)value.re;
        break;
    case BLAS_TYPE_d:
        ((double *)data)[index] = value.re;
        break;
    case BLAS_TYPE_c:
        ((float *)data)[2 * index] = (float)value.re;
        ((float *)data)[2 * index + 1] = (float)value.im;
        break;
    case BLAS_TYPE_h:
        ((uint16_t *)data)[index] = blas_f16_store(value.re);
        break;
    case BLAS_TYPE_b:
        ((uint16_t *)data)[index] = blas_bf16_store(value.re);
        break;
    case BLAS_TYPE_z:
        ((double *)data)[2 * index] = value.re;
        ((double *)data)[2 * index + 1] = value.im;
        break;
    }
}

blas_number blas_number_multiply(blas_number x, blas_number y)
{
    return (blas_number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* Where an element of op(A) is stored, and how it is meant. */
typedef struct element_place {
    int64_t index;
    bool is_conjugated, is_zero, is_one, is_real;
} element_place;

static element_place place_of(const blas_matrix *matrix, int64_t row, int64_t column)
{
    element_place place = {.is_conjugated = matrix->is_conjugated};
    int64_t r = matrix->is_transposed ? column : row, c = matrix->is_transposed ? row : column;
    if (matrix->structure != BLAS_GENERAL && r != c && (r < c) != matrix->is_upper) {
        const int64_t kept = r;
        r = c;
        c = kept;
        place.is_zero = matrix->structure == BLAS_TRIANGULAR;
        place.is_conjugated ^= matrix->structure == BLAS_HERMITIAN;
    }
    place.is_one = r == c && matrix->structure == BLAS_TRIANGULAR && matrix->is_unit;
    place.is_real = r == c && matrix->structure == BLAS_HERMITIAN;
    place.index = r + c * matrix->leading;
    return place;
}

blas_number blas_matrix_get(const blas_matrix *matrix, int64_t row, int64_t column)
{
    const element_place place = place_of(matrix, row, column);
    if (place.is_zero || place.is_one) {
        return (blas_number){place.is_one ? 1 : 0, 0};
    }
    blas_number value = blas_number_load(matrix->data, matrix->type, place.index);
    value.im = place.is_real ? 0 : place.is_conjugated ? -value.im : value.im;
    return value;
}

/* Copies elements that are `step` apart. */
static void copy_line(const blas_matrix *matrix, const element_place *place, int64_t step,
                      int64_t count, void *target)
{
    const size_t bytes = blas_type_bytes(matrix->type);
    if (place->is_zero) {
        memset(target, 0, (size_t)count * bytes);
        return;
    }
    const char *source = (const char *)matrix->data + (size_t)place->index * bytes;
    if (step == 1) {
        memcpy(target, source, (size_t)count * bytes);
    } else if (bytes == sizeof(float)) {
        for (int64_t i = 0; i < count; i++) {
            ((float *)target)[i] = ((const float *)source)[i * step];
        }
    } else if (bytes == sizeof(double)) {
        for (int64_t i = 0; i < count; i++) { /* also complex ones of two floats */
            memcpy((char *)target + i * 8, source + i * step * 8, 8);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            memcpy((char *)target + i * (int64_t)bytes, source + i * step * (int64_t)bytes, bytes);
        }
    }
    if (place->is_conjugated && blas_type_is_complex(matrix->type)) {
        for (int64_t i = 0; i < count; i++) {
            if (matrix->type == BLAS_TYPE_c) {
                ((float *)target)[2 * i + 1] *= -1;
            } else {
                ((double *)target)[2 * i + 1] *= -1;
            }
        }
    }
}

/* Elements of a column from one row on that are stored in one line. */
static void copy_part(const blas_matrix *matrix, int64_t column, int64_t first, int64_t count,
                      char *target)
{
    if (count <= 0) {
        return;
    }
    const element_place place = place_of(matrix, first, column);
    const element_place next = place_of(matrix, first + (count > 1), column);
    copy_line(matrix, &place, count > 1 ? next.index - place.index : 1, count,
              target + (size_t)first * blas_type_bytes(matrix->type));
}

static void copy_column(const blas_matrix *matrix, int64_t column, char *target)
{
    if (matrix->structure == BLAS_GENERAL) {
        copy_part(matrix, column, 0, matrix->rows, target);
        return;
    }
    copy_part(matrix, column, 0, column, target);
    copy_part(matrix, column, column + 1, matrix->rows - column - 1, target);
    blas_number_store(target, matrix->type, column, blas_matrix_get(matrix, column, column));
}

/* Times a complex number, in double precision. */
static void scale_pairs_f32(blas_number scale, int64_t count, float *line)
{
    for (int64_t i = 0; i < count; i++) {
        const double re = (double)line[2 * i], im = (double)line[2 * i + 1];
        line[2 * i] = (float)(re * scale.re - im * scale.im);
        line[2 * i + 1] = (float)(re * scale.im + im * scale.re);
    }
}

static void scale_pairs_f64(blas_number scale, int64_t count, double *line)
{
    for (int64_t i = 0; i < count; i++) {
        const double re = line[2 * i], im = line[2 * i + 1];
        line[2 * i] = re * scale.re - im * scale.im;
        line[2 * i + 1] = re * scale.im + im * scale.re;
    }
}

static void scale_line(blas_type type, blas_number scale, int64_t count, void *line)
{
    if (scale.re == 1 && scale.im == 0) {
        return;
    }
    if (type == BLAS_TYPE_c) {
        scale_pairs_f32(scale, count, line);
    } else if (type == BLAS_TYPE_z) {
        scale_pairs_f64(scale, count, line);
    } else {
        for (int64_t i = 0; i < count; i++) {
            const blas_number value = blas_number_load(line, type, i);
            blas_number_store(line, type, i, blas_number_multiply(value, scale));
        }
    }
}

/* A complex line times i. */
static void multiply_by_i(blas_type type, int64_t count, const void *line, void *target)
{
    if (type == BLAS_TYPE_c) {
        for (int64_t i = 0; i < count; i++) {
            ((float *)target)[2 * i] = -((const float *)line)[2 * i + 1];
            ((float *)target)[2 * i + 1] = ((const float *)line)[2 * i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            ((double *)target)[2 * i] = -((const double *)line)[2 * i + 1];
            ((double *)target)[2 * i + 1] = ((const double *)line)[2 * i];
        }
    }
}

/* Returns where the next one goes. */
static char *pack_one(const blas_matrix *matrix, blas_number scale, bool is_expanded, char *at)
{
    const size_t line = (size_t)matrix->rows * blas_type_bytes(matrix->type);
    for (int64_t column = 0; column < matrix->columns; column++) {
        copy_column(matrix, column, at);
        scale_line(matrix->type, scale, matrix->rows, at);
        if (!is_expanded) {
            at += line;
            continue;
        }
        multiply_by_i(matrix->type, matrix->rows, at, at + line);
        at += 2 * line;
    }
    return at;
}

void blas_matrix_pack(const blas_matrix *matrix, blas_number scale, bool is_expanded, void *target)
{
    blas_matrix one = *matrix;
    const size_t bytes = (size_t)matrix->stride * blas_type_bytes(matrix->type);
    for (int64_t i = 0; i < matrix->count; i++) {
        target = pack_one(&one, scale, is_expanded, target);
        one.data = (const char *)one.data + bytes;
    }
}
