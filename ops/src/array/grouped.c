/* Public call of products of groups of rows as arrays. */
#include "matmul.h"

#include "deferred.h"
#include "gemm/check.h"
#include "gemm/grouped.h"
#include "gemm/product.h"

#include <stdlib.h>
#include <string.h>

static hal_status check_types(const char *function, const ops_array *a, const ops_array *b,
                              const ops_array *offsets)
{
    const hal_type type = a->view.type;
    if (type != b->view.type || !(hal_type_is_float(type) || hal_type_is_integer(type))) {
        return ops_invalid("%s: a, b: expected one type of floats or integers, got %s and %s",
                           function, hal_type_name(type), hal_type_name(b->view.type));
    }
    const hal_type of_offsets = offsets ? offsets->view.type : HAL_TYPE_I32;
    return of_offsets == HAL_TYPE_I32 || of_offsets == HAL_TYPE_I64
               ? HAL_OK
               : ops_invalid("%s: offsets: expected i32 or i64, got %s", function,
                             hal_type_name(of_offsets));
}

static hal_status check_shapes(const char *function, const ops_array *a, const ops_array *b,
                               const ops_array *offsets)
{
    const ops_tensor *x = &a->view, *y = &b->view;
    char text[2][OPS_TEXT_BYTES];
    if (x->rank != 2 || y->rank != 3 || x->shape[1] != y->shape[1]) {
        return ops_invalid("%s: a, b: expected shapes [rows, k] and [groups, k, n], got %s and %s",
                           function, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (y->shape[0] > OPS_GEMM_MAX_GROUPS) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED, "%s: b: expected up to %u groups, got %s",
                              function, OPS_GEMM_MAX_GROUPS, ops_describe(y, text[1]));
    }
    if (offsets && (offsets->view.rank != 1 || offsets->view.shape[0] != y->shape[0] + 1)) {
        return ops_invalid("%s: offsets: expected shape [%lld], one more than b has groups, got %s",
                           function, (long long)y->shape[0] + 1,
                           ops_describe(&offsets->view, text[0]));
    }
    return HAL_OK;
}

/* The host's offsets, copied; the caller frees them. */
static ops_grouped_form *form_make(const char *function, int64_t count, const int64_t *offsets)
{
    ops_grouped_form *form = malloc(sizeof *form + (size_t)count * sizeof *offsets);
    if (!form) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: the host has no memory for %lld offsets",
                       function, (long long)count);
        return NULL;
    }
    form->count = count;
    if (count) {
        memcpy(form->offsets, offsets, (size_t)count * sizeof *offsets);
    }
    return form;
}

ops_array *ops_array_matmul_grouped(ops_array *a, ops_array *b, ops_array *offsets,
                                    const int64_t *host_offsets, uint32_t precision)
{
    const char *function = "ops_array_matmul_grouped";
    ops_array *const operands[3] = {a, b, offsets};
    const uint32_t count = offsets ? 3 : 2;
    ops_result result;
    if (!ops_check_operands(function, operands, count) || check_types(function, a, b, offsets) ||
        check_shapes(function, a, b, offsets)) {
        return NULL;
    }
    const int64_t groups = b->view.shape[0], rows = a->view.shape[0];
    if (!offsets && !host_offsets) {
        ops_invalid("%s: offsets, host_offsets: expected one of them, got null for both", function);
        return NULL;
    }
    if (precision > HAL_GEMM_NORMWISE) {
        ops_invalid(
            "%s: precision: expected HAL_GEMM_STRICT, _ACCURATE, _FAST or _NORMWISE, got %u",
            function, precision);
        return NULL;
    }
    if (host_offsets && ops_gemm_grouped_check_host(function, groups, rows, host_offsets)) {
        return NULL;
    }
    ops_grouped_form *form = form_make(function, host_offsets ? groups + 1 : 0, host_offsets);
    if (!form) {
        return NULL;
    }
    ops_result_like(a, &result);
    result.type =
        hal_type_is_integer(a->view.type) ? ops_gemm_accumulator(a->view.type) : a->view.type;
    ops_result_own_shape(&result)[1] = b->view.shape[2];
    result.form = form;
    result.form_bytes = (uint32_t)(sizeof *form + (size_t)form->count * sizeof *form->offsets);
    ops_array *node =
        ops_defer(function, OPS_OPERATION_MATMUL,
                  ops_matmul_function(precision, 0) | OPS_MATMUL_GROUPED, operands, count, &result);
    free(form);
    return node;
}
