/* Transfers between the host's matrices and tensors, see operand.h. */
#include "operand.h"

#include "resident.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static hal_type real_type(blas_type type)
{
    return type == BLAS_TYPE_h                            ? HAL_TYPE_F16
           : type == BLAS_TYPE_b                          ? HAL_TYPE_BF16
           : blas_type_real_bytes(type) == sizeof(double) ? HAL_TYPE_F64
                                                          : HAL_TYPE_F32;
}

hal_status blas_operand_multiply(blas_lane *lane, double alpha, const ops_tensor *left,
                                 const ops_tensor *right, double beta, const ops_tensor *result)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_ACCURATE;
    options.alpha = alpha;
    options.beta = beta;
    return ops_gemm(lane->context, &options, left, right, result);
}

ops_tensor blas_operand_part(const ops_tensor *tensor, int64_t row, int64_t rows, int64_t column,
                             int64_t columns)
{
    ops_tensor part = *tensor;
    const uint32_t axis = tensor->rank - 2;
    part.offset += row * tensor->stride[axis] + column * tensor->stride[axis + 1];
    part.shape[axis] = rows;
    part.shape[axis + 1] = columns;
    return part;
}

hal_status blas_operand_create(blas_lane *lane, blas_type type, int64_t count, int64_t rows,
                               int64_t columns, ops_tensor *tensor)
{
    const int64_t shape[3] = {count, columns, rows * blas_type_parts(type)};
    const uint32_t unused = count == 1;
    return ops_tensor_create(lane->context, real_type(type), 3 - unused, shape + unused, tensor);
}

/* A tensor over memory where general matrices are stored as they are; the memory's elements. */
static int64_t stored_view(const blas_matrix *stored, ops_tensor *tensor)
{
    const int64_t reals = blas_type_parts(stored->type),
                  shape[3] = {stored->count, stored->columns, stored->rows * reals};
    const int64_t strides[3] = {stored->stride * reals, stored->leading * reals, 1};
    const uint32_t unused = stored->count == 1;
    *tensor = (ops_tensor){.type = real_type(stored->type), .rank = 3 - unused};
    memcpy(tensor->shape, shape + unused, tensor->rank * sizeof *shape);
    memcpy(tensor->stride, strides + unused, tensor->rank * sizeof *strides);
    return (stored->count - 1) * stored->stride + (stored->columns - 1) * stored->leading +
           stored->rows;
}

/* Makes a buffer of memory of the host. */
static hal_status import(const blas_lane *lane, const void *data, uint64_t bytes, uint32_t access,
                         hal_release_callback release, void *user, hal_buffer **buffer)
{
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)data,
                                      .bytes = bytes,
                                      .access = access};
    return hal_buffer_import(ops_context_get_device(lane->context), &handle, release, user, buffer);
}

hal_status blas_operand_import(blas_lane *lane, const blas_matrix *matrix, uint32_t access,
                               ops_tensor *tensor)
{
    if (!lane->is_in_place || (uintptr_t)matrix->data % blas_type_real_bytes(matrix->type)) {
        return HAL_ERROR_UNSUPPORTED;
    }
    const int64_t elements = stored_view(matrix, tensor);
    return import(lane, matrix->data, (uint64_t)elements * blas_type_bytes(matrix->type), access,
                  NULL, NULL, &tensor->buffer);
}

static void count_moved(blas_lane *lane, const ops_tensor *tensor)
{
    lane->moved_bytes += lane->is_in_place ? 0 : hal_buffer_get_bytes(tensor->buffer);
}

/* What is stored, copied to the device. */
static hal_status load_copy(blas_lane *lane, const blas_matrix *stored, ops_tensor *tensor)
{
    ops_tensor view;
    const int64_t elements = stored_view(stored, &view);
    HAL_TRY(blas_operand_create(lane, stored->type, stored->count, stored->rows, stored->columns,
                                tensor));
    count_moved(lane, tensor);
    const hal_status status =
        ops_tensor_write_strided(lane->context, tensor, stored->data, view.stride,
                                 (uint64_t)elements * blas_type_bytes(stored->type));
    if (status != HAL_OK) {
        ops_tensor_release(tensor);
    }
    return status;
}

/* The matrix as it is stored. */
static blas_matrix stored_matrix(const blas_matrix *matrix)
{
    return matrix->is_transposed ? blas_matrix_transpose(matrix) : *matrix;
}

/* What is stored, as it is. */
static hal_status load_stored(blas_lane *lane, const blas_matrix *matrix, ops_tensor *tensor)
{
    const blas_matrix stored = stored_matrix(matrix);
    HAL_TRY(load_copy(lane, &stored, tensor));
    const ops_tensor loaded = *tensor;
    const uint32_t axis = tensor->rank - 2;
    return matrix->is_transposed ? ops_tensor_transpose(&loaded, axis, axis + 1, tensor) : HAL_OK;
}

/* Passes packed elements, which are freed, on to a tensor. */
static hal_status load_packed(blas_lane *lane, void *packed, size_t bytes, ops_tensor *tensor)
{
    if (lane->is_in_place) {
        const hal_status status =
            import(lane, packed, bytes, HAL_ACCESS_READ_WRITE, free, packed, &tensor->buffer);
        if (status != HAL_OK) {
            free(packed);
        }
        return status;
    }
    ops_tensor made;
    hal_status status =
        ops_tensor_create(lane->context, tensor->type, tensor->rank, tensor->shape, &made);
    if (status == HAL_OK) {
        tensor->buffer = made.buffer;
        count_moved(lane, tensor);
        status = ops_tensor_write(lane->context, tensor, packed, bytes);
        if (status != HAL_OK) {
            ops_tensor_release(tensor);
        }
    }
    free(packed);
    return status;
}

/* Whether an operand's tensor has its elements as they are stored. */
static bool is_stored(const blas_matrix *matrix, blas_number scale, blas_form form)
{
    const bool is_complex = blas_type_is_complex(matrix->type);
    return matrix->structure == BLAS_GENERAL && scale.re == 1 && scale.im == 0 &&
           (!is_complex ||
            (form != BLAS_EXPANDED && !matrix->is_transposed && !matrix->is_conjugated));
}

static hal_status load_new(blas_lane *lane, const blas_matrix *matrix, blas_number scale,
                           blas_form form, ops_tensor *tensor)
{
    if (is_stored(matrix, scale, form)) {
        return load_stored(lane, matrix, tensor);
    }
    const bool is_expanded = blas_type_is_complex(matrix->type) && form == BLAS_EXPANDED;
    blas_matrix made = *matrix; /* as it is stored then */
    made.columns *= is_expanded ? 2 : 1;
    made.leading = made.rows;
    made.stride = made.columns * made.rows;
    const size_t bytes = (size_t)stored_view(&made, tensor) * blas_type_bytes(matrix->type);
    void *packed = blas_memory_create(bytes);
    if (!packed) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    blas_matrix_pack(matrix, scale, is_expanded, packed);
    return load_packed(lane, packed, bytes, tensor);
}

/* The host's own memory as an operand that is only read. */
static hal_status load_imported(blas_lane *lane, const blas_matrix *matrix, ops_tensor *tensor)
{
    const blas_matrix stored = stored_matrix(matrix);
    HAL_TRY(blas_operand_import(lane, &stored, HAL_ACCESS_READ, tensor));
    const ops_tensor loaded = *tensor;
    const uint32_t axis = tensor->rank - 2;
    return matrix->is_transposed ? ops_tensor_transpose(&loaded, axis, axis + 1, tensor) : HAL_OK;
}

/* Loads an operand that may stay on the device. Other lanes may use it once it is kept. */
static hal_status load_resident(blas_lane *lane, const blas_matrix *matrix, blas_number scale,
                                blas_form form, ops_tensor *tensor)
{
    blas_ticket ticket;
    if (blas_resident_find(matrix, scale, form, tensor, &ticket)) {
        return HAL_OK;
    }
    hal_status status = load_new(lane, matrix, scale, form, tensor);
    if (status == HAL_OK && ticket && !lane->is_in_place) {
        status = hal_queue_wait(lane->queue, HAL_WAIT_FOREVER);
        if (status != HAL_OK) {
            ops_tensor_release(tensor);
        }
    }
    if (status == HAL_OK) {
        blas_resident_keep(ticket, tensor);
    } else {
        blas_resident_drop(ticket);
    }
    return status;
}

hal_status blas_operand_load(blas_lane *lane, const blas_matrix *matrix, blas_number scale,
                             blas_form form, bool is_read_only, ops_tensor *tensor)
{
    if (!is_read_only) {
        return load_new(lane, matrix, scale, form, tensor);
    }
    if (is_stored(matrix, scale, form) && load_imported(lane, matrix, tensor) == HAL_OK) {
        return HAL_OK;
    }
    return load_resident(lane, matrix, scale, form, tensor);
}

#define HUGE_PAGE ((size_t)2 << 20)

void *blas_memory_create(size_t bytes)
{
    if (bytes < 2 * HUGE_PAGE) {
        return malloc(bytes);
    }
    const size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, whole);
    if (memory) {
        madvise(memory, whole, MADV_HUGEPAGE);
    }
    return memory;
}

/* Whether the host would compute the call from its C. */
static bool is_read(const blas_call *call)
{
    const blas_kind kind = blas_call_kind(call);
    const blas_number beta = blas_call_beta(call);
    return kind == BLAS_TRMM || kind == BLAS_TRSM || beta.re != 0 || beta.im != 0;
}

/* Elements of a result that was read, column after column, to where the call wants them. */
static void store_elements(const char *packed, const blas_call *call, bool is_transposed)
{
    const blas_type type = blas_call_type(call);
    const blas_kind kind = blas_call_kind(call);
    const char triangle = blas_result_triangle(call);
    const size_t bytes = blas_type_bytes(type);
    for (int64_t j = 0; j < call->n; j++) {
        char *column = (char *)call->c + (size_t)(j * call->ldc) * bytes;
        const int64_t first = triangle == 'L' ? j : 0, last = triangle == 'U' ? j + 1 : call->m;
        if (!is_transposed) {
            memcpy(column + (size_t)first * bytes, packed + (size_t)(j * call->m + first) * bytes,
                   (size_t)(last - first) * bytes);
        } else {
            for (int64_t i = first; i < last; i++) {
                memcpy(column + (size_t)i * bytes, packed + (size_t)(i * call->n + j) * bytes,
                       bytes);
            }
        }
        if (kind == BLAS_HERK || kind == BLAS_HER2K) {
            const blas_number value = blas_number_load(column, type, j);
            blas_number_store(column, type, j, (blas_number){value.re, 0});
        }
    }
}

/* General matrices, which an error may leave written in part. */
static hal_status store_directly(blas_lane *lane, const ops_tensor *tensor, const blas_matrix *c)
{
    ops_tensor view;
    const int64_t elements = stored_view(c, &view);
    return ops_tensor_read_strided(lane->context, tensor, view.stride,
                                   (uint64_t)elements * blas_type_bytes(c->type),
                                   (void *)(uintptr_t)c->data);
}

/* General matrices, which are written when all of them have been read. */
static hal_status store_packed(blas_lane *lane, const ops_tensor *tensor, const blas_matrix *c)
{
    const size_t size = blas_type_bytes(c->type), column = (size_t)c->rows * size;
    const size_t bytes = (size_t)(c->count * c->columns) * column;
    char *packed = blas_memory_create(bytes);
    if (!packed) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = ops_tensor_read(lane->context, tensor, bytes, packed);
    for (int64_t j = 0; j < c->count * c->columns && status == HAL_OK; j++) {
        const int64_t place = j / c->columns * c->stride + j % c->columns * c->leading;
        memcpy((char *)(uintptr_t)c->data + (size_t)place * size, packed + (size_t)j * column,
               column);
    }
    free(packed);
    return status;
}

hal_status blas_operand_store(blas_lane *lane, const ops_tensor *tensor, const blas_call *call,
                              bool is_transposed)
{
    const blas_type type = blas_call_type(call);
    count_moved(lane, tensor);
    if (blas_result_triangle(call) == 0 && !is_transposed) {
        const blas_matrix c = {.count = call->batch,
                               .stride = call->stride_c,
                               .data = call->c,
                               .type = type,
                               .rows = call->m,
                               .columns = call->n,
                               .leading = call->ldc};
        return is_read(call) ? store_packed(lane, tensor, &c) : store_directly(lane, tensor, &c);
    }
    void *mapped;
    if (lane->is_in_place) {
        HAL_TRY(hal_queue_wait(lane->queue, HAL_WAIT_FOREVER));
        if (hal_buffer_map_begin(tensor->buffer, &mapped) == HAL_OK) {
            /* A tensor that is not contiguous is a transposed view. */
            store_elements(mapped, call, is_transposed == !!ops_tensor_is_contiguous(tensor));
            return hal_buffer_map_end(tensor->buffer);
        }
    }
    const size_t bytes = (size_t)call->m * (size_t)call->n * blas_type_bytes(type);
    void *packed = blas_memory_create(bytes);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (packed) {
        status = ops_tensor_read(lane->context, tensor, bytes, packed);
        if (status == HAL_OK) {
            store_elements(packed, call, is_transposed);
        }
        free(packed);
    }
    return status;
}
