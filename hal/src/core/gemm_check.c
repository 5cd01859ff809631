/* Checks of the description of a matrix product. */
#include "gemm_check.h"

#include "base/number.h"
#include "base/sized.h"
#include "base/status.h"

#include <hal/ir_build.h>

static hal_status fail_field(const char *field, const char *expected, int64_t value)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "hal_kernel_create_gemm: description.%s: expected %s, got %lld", field,
                    expected, (long long)value);
}

static hal_status check_sizes(const hal_gemm_description *gemm)
{
    if (gemm->m <= 0) {
        return fail_field("m", "at least 1", gemm->m);
    }
    if (gemm->n <= 0) {
        return fail_field("n", "at least 1", gemm->n);
    }
    if (gemm->k < 0) {
        return fail_field("k", "at least 0", gemm->k);
    }
    return gemm->batch == 0 ? fail_field("batch", "at least 1", 0) : HAL_OK;
}

static hal_status check_strides(const hal_gemm_description *gemm)
{
    static const char expected[] = "at least the number of columns of the matrix";
    if (gemm->lda < (gemm->transpose_a ? gemm->m : gemm->k)) {
        return fail_field("lda", expected, gemm->lda);
    }
    if (gemm->ldb < (gemm->transpose_b ? gemm->k : gemm->n)) {
        return fail_field("ldb", expected, gemm->ldb);
    }
    return gemm->ldc < gemm->n ? fail_field("ldc", expected, gemm->ldc) : HAL_OK;
}

static hal_status check_options(const hal_gemm_description *gemm)
{
    const struct {
        const char *name;
        uint32_t value;
    } flags[] = {{"transpose_a", gemm->transpose_a},
                 {"transpose_b", gemm->transpose_b},
                 {"beta_is_zero", gemm->beta_is_zero}},
      types[] = {{"type_a", gemm->type_a}, {"type_b", gemm->type_b}, {"type_c", gemm->type_c}};
    for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (flags[i].value > 1) {
            return fail_field(flags[i].name, "0 or 1", flags[i].value);
        }
    }
    if (gemm->precision > HAL_GEMM_FAST) {
        return fail_field("precision", "HAL_GEMM_STRICT, _ACCURATE or _FAST", gemm->precision);
    }
    if (gemm->levels > HAL_GEMM_MAX_LEVELS) {
        return fail_field("levels", "at most HAL_GEMM_MAX_LEVELS", gemm->levels);
    }
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (hal_type_size(types[i].value) == 0) {
            return fail_field(types[i].name, "one of HAL_TYPE_*", types[i].value);
        }
    }
    return HAL_OK;
}

/* The matrices of A and C are one, which the groups divide. */
static hal_status check_groups(const hal_gemm_description *gemm)
{
    if (gemm->type_offsets == HAL_TYPE_NONE) {
        return HAL_OK;
    }
    if (gemm->type_offsets != HAL_TYPE_I32 && gemm->type_offsets != HAL_TYPE_I64) {
        return fail_field("type_offsets", "HAL_TYPE_I32, HAL_TYPE_I64 or none", gemm->type_offsets);
    }
    if (gemm->levels != 0) {
        return fail_field("levels", "0 with groups of rows", gemm->levels);
    }
    return gemm->stride_a != 0 || gemm->stride_c != 0
               ? fail_field(gemm->stride_a != 0 ? "stride_a" : "stride_c", "0 with groups of rows",
                            gemm->stride_a != 0 ? gemm->stride_a : gemm->stride_c)
               : HAL_OK;
}

static hal_status check_epilogue(const hal_gemm_description *gemm)
{
    if (gemm->input_count > HAL_GEMM_MAX_INPUTS) {
        return fail_field("input_count", "at most HAL_GEMM_MAX_INPUTS", gemm->input_count);
    }
    if (!gemm->epilogue) {
        return gemm->input_count > 0
                   ? fail_field("input_count", "0 without an epilogue", gemm->input_count)
                   : HAL_OK;
    }
    HAL_TRY(hal_ir_verify(gemm->epilogue));
    if (!(gemm->epilogue->flags & HAL_IR_FRAGMENT) || gemm->epilogue->output_count != 1 ||
        gemm->epilogue->input_count > 4 + gemm->input_count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_gemm: description.epilogue: expected a fragment of 1 "
                        "output and at most %u inputs, got %s of %u and %u",
                        4 + gemm->input_count,
                        gemm->epilogue->flags & HAL_IR_FRAGMENT ? "one" : "a kernel",
                        gemm->epilogue->output_count, gemm->epilogue->input_count);
    }
    return HAL_OK;
}

hal_status hal_gemm_check(const hal_gemm_description *given, hal_gemm_description *checked)
{
    if (!hal_sized_take(checked, sizeof *checked, given, HAL_GEMM_DESCRIPTION_LEAST_BYTES)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_gemm: description.size: expected "
                        "sizeof(hal_gemm_description), which is %zu in this hal, or a larger one "
                        "with zeros in the fields that this hal does not know, got %u",
                        sizeof *checked, given->size);
    }
    hal_status status = check_sizes(checked);
    if (status == HAL_OK) {
        status = check_strides(checked);
    }
    if (status == HAL_OK) {
        status = check_options(checked);
    }
    if (status == HAL_OK) {
        status = check_groups(checked);
    }
    return status == HAL_OK ? check_epilogue(checked) : status;
}
