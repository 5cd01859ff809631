/* Prepared B of matrix products, see prepare.h. */
#include "prepare.h"

#include "normwise/normwise.h"
#include "native.h"
#include "tensor/allocation.h"

#include <ops/index.h>

#include <stdlib.h>

/* Bytes to which the sums are aligned; at least what devices ask of bindings. */
#define SUMS_ALIGNMENT 256u

static hal_status check_prepare(const ops_context *context, const char *function,
                                const ops_gemm_prepare_options *options, const ops_tensor *b)
{
    char text[OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, function, "b", b));
    HAL_TRY(ops_check_size(function, "options", options->size, sizeof *options));
    if (!hal_type_is_float(b->type) || b->rank < 2 || b->rank > 3 ||
        b->shape[b->rank - 1] > INT32_MAX || b->shape[b->rank - 2] > INT32_MAX) {
        return ops_invalid("%s: b: expected floats of shape [k, n] or [batch, k, n] with lengths "
                           "up to 2^31 - 1, got %s",
                           function, ops_describe(b, text));
    }
    if (options->precision > HAL_GEMM_EXACT || options->rows < 0) {
        return ops_invalid("%s: options: expected a hal_gemm_precision and rows of at least 0, got "
                           "%u and %lld",
                           function, options->precision, (long long)options->rows);
    }
    if (options->levels > HAL_GEMM_MAX_LEVELS) {
        return ops_invalid("%s: options.levels: expected at most %u, got %u", function,
                           HAL_GEMM_MAX_LEVELS, options->levels);
    }
    return HAL_OK;
}

/* In a graph in recording the copy would be one of its commands, so that the object would have no
 * contents before a launch. Writes are refused there, also those of 0 bytes. */
static hal_status check_not_recording(const ops_context *context, const char *function,
                                      hal_buffer *buffer)
{
    const hal_status status = hal_queue_write(context->queue, buffer, 0, NULL, 0);
    return status == HAL_ERROR_INVALID_STATE
               ? hal_status_set(status,
                                "%s: b: expected a call outside of the recording of a graph, got "
                                "one inside; prepare before the recording begins",
                                function)
               : status;
}

/* In the order of B, or by rows. On a GPU lines are aligned as native kernels may ask for. */
static ops_tensor copy_layout(const ops_context *context, const ops_tensor *b, int64_t rows_of_a)
{
    const int64_t rows = b->shape[b->rank - 2], columns = b->shape[b->rank - 1];
    const int64_t many_rows = context->tuning->gemm.many_rows;
    const bool prefers_rows = many_rows > 0 && rows_of_a >= many_rows;
    const int by_columns =
        !prefers_rows && b->stride[b->rank - 1] != 1 && b->stride[b->rank - 2] == 1;
    const int64_t length = by_columns ? rows : columns, lines = by_columns ? columns : rows;
    const int64_t line = context->info->kind == HAL_DEVICE_CPU || length == 1
                             ? length
                             : ops_gemm_copied_line(b->type, length);
    ops_tensor copy = *b;
    copy.buffer = NULL;
    copy.offset = 0;
    copy.stride[b->rank - 1] = by_columns ? line : 1;
    copy.stride[b->rank - 2] = by_columns ? 1 : line;
    if (b->rank == 3) {
        copy.stride[0] = line * lines;
    }
    return copy;
}

/* Of a copy's layout. */
static uint64_t copy_bytes(const ops_tensor *copy)
{
    int64_t elements = ops_tensor_get_element_count(copy) > 0;
    for (uint32_t i = 0; i < copy->rank && elements; i++) {
        const int64_t extent = copy->shape[i] * copy->stride[i];
        elements = extent > elements ? extent : elements;
    }
    return (uint64_t)elements * hal_type_size(copy->type);
}

/* The first element of the sums after a copy. */
static int64_t sums_offset(const ops_tensor *copy)
{
    const uint64_t bytes =
        (copy_bytes(copy) + SUMS_ALIGNMENT - 1) / SUMS_ALIGNMENT * SUMS_ALIGNMENT;
    return (int64_t)(bytes / hal_type_size(copy->type));
}

static uint64_t prepared_bytes(const ops_tensor *copy, uint32_t levels)
{
    if (levels == 0) {
        return copy_bytes(copy);
    }
    const ops_tensor sums = ops_normwise_sums_layout(levels, copy);
    return ((uint64_t)sums_offset(copy) + (uint64_t)ops_tensor_get_element_count(&sums)) *
           hal_type_size(copy->type);
}

/* A function of the layout of the copy, the options and the device. */
static uint32_t choose_levels(ops_context *context, const ops_gemm_prepare_options *options,
                              const ops_tensor *b)
{
    const int64_t *shape = b->shape + b->rank - 2;
    const ops_normwise_shape product = {.type = b->type,
                                        .batch = b->rank == 3 ? b->shape[0] : 1,
                                        .m = options->rows ? options->rows : shape[0],
                                        .n = shape[1],
                                        .k = shape[0]};
    const uint32_t forced = options->levels;
    if (options->precision != HAL_GEMM_NORMWISE) {
        return 0;
    }
    const uint32_t native = forced ? 0 : ops_normwise_choose_inside(context->info, &product);
    if (native && ops_gemm_native_has_levels(context, product.type, product.m, product.n, product.k,
                                             native)) {
        return 0; /* a kernel of the plugin forms the sums while it packs B */
    }
    uint32_t best = ops_normwise_choose_prepared(context->info, &product, forced);
    while (best && options->max_bytes && prepared_bytes(b, best) > options->max_bytes) {
        best--;
    }
    return best;
}

/* `prepared` is set; the caller releases its buffer. */
static hal_status prepared_make(ops_context *context, const char *function,
                                const ops_gemm_prepare_options *options, const ops_tensor *b,
                                ops_gemm_prepared *prepared)
{
    static const ops_gemm_prepare_options defaults = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    options = options ? options : &defaults;
    HAL_TRY(check_prepare(context, function, options, b));
    ops_tensor copy = copy_layout(context, b, options->rows);
    const uint32_t levels = choose_levels(context, options, &copy);
    const uint64_t bytes = prepared_bytes(&copy, levels);
    if (options->max_bytes && bytes > options->max_bytes) {
        return ops_invalid("%s: options.max_bytes: expected at least the %llu bytes of a copy of "
                           "b, got %llu",
                           function, (unsigned long long)bytes,
                           (unsigned long long)options->max_bytes);
    }
    HAL_TRY(ops_buffer_create(context, bytes ? bytes : 4, &copy.buffer));
    *prepared = (ops_gemm_prepared){.b = copy, .levels = levels};
    if (levels) {
        prepared->sums = ops_normwise_sums_layout(levels, &copy);
        prepared->sums.buffer = copy.buffer;
        prepared->sums.offset = sums_offset(&copy);
    }
    hal_status status = check_not_recording(context, function, copy.buffer);
    if (status == HAL_OK && bytes) {
        status = ops_copy(context, b, &prepared->b);
    }
    if (status == HAL_OK && levels) {
        status = ops_normwise_prepare(context, levels, &prepared->b, &prepared->sums);
    }
    if (status != HAL_OK) {
        hal_buffer_release(copy.buffer);
    }
    return status;
}

hal_status ops_prepared_create(ops_context *context, const char *function,
                               const ops_gemm_prepare_options *options, const ops_tensor *b,
                               ops_gemm_prepared **prepared)
{
    if (!prepared) {
        return ops_invalid("%s: prepared: expected memory for a pointer, got null", function);
    }
    *prepared = NULL;
    ops_gemm_prepared *made = malloc(sizeof *made);
    if (!made) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: the host has no memory for an object",
                              function);
    }
    const hal_status status = prepared_make(context, function, options, b, made);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *prepared = made;
    return HAL_OK;
}

hal_status ops_gemm_prepare(ops_context *context, const ops_gemm_prepare_options *options,
                            const ops_tensor *b, ops_gemm_prepared **prepared)
{
    return ops_prepared_create(context, "ops_gemm_prepare", options, b, prepared);
}

void ops_gemm_prepared_destroy(ops_gemm_prepared *prepared)
{
    if (prepared) {
        hal_buffer_release(prepared->b.buffer);
        free(prepared);
    }
}

uint64_t ops_gemm_prepared_get_bytes(const ops_gemm_prepared *prepared)
{
    return prepared ? prepared_bytes(&prepared->b, prepared->levels) : 0;
}

uint32_t ops_gemm_prepared_get_levels(const ops_gemm_prepared *prepared)
{
    return prepared ? prepared->levels : 0;
}
