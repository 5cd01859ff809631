/* Checks of the description of attention. */
#include "attention_check.h"

#include "base/sized.h"
#include "base/status.h"

#include <hal/ir_types.h>

static hal_status fail_field(const char *field, const char *expected, int64_t value)
{
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "hal_kernel_create_attention: description.%s: expected %s, got %lld", field,
                    expected, (long long)value);
}

static hal_status check_options(const hal_attention_description *d)
{
    if (!hal_type_is_float(d->type)) {
        return fail_field("type", "a float type", d->type);
    }
    if (d->causal > 1) {
        return fail_field("causal", "0 or 1", d->causal);
    }
    return d->precision > HAL_GEMM_FAST
               ? fail_field("precision", "HAL_GEMM_STRICT, _ACCURATE or _FAST", d->precision)
               : HAL_OK;
}

static hal_status check_sizes(const hal_attention_description *d)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"m", d->m}, {"n", d->n},         {"d", d->d},
                 {"e", d->e}, {"batch", d->batch}, {"outer", d->outer}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value < 1 || sizes[i].value > INT32_MAX) {
            return fail_field(sizes[i].name, "1 to 2^31 - 1", sizes[i].value);
        }
    }
    return HAL_OK;
}

static hal_status check_strides(const hal_attention_description *d)
{
    const struct {
        const char *name;
        const hal_attention_strides *of;
    } all[] = {{"q", &d->q}, {"k", &d->k}, {"v", &d->v}, {"y", &d->y}};
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
        const hal_attention_strides *of = all[i].of;
        const int64_t least = of->row < of->batch ? of->row : of->batch;
        if (least < 0 || of->outer < 0) {
            return fail_field(all[i].name, "strides of at least 0", least < 0 ? least : of->outer);
        }
    }
    return HAL_OK;
}

hal_status hal_attention_check(const hal_attention_description *given,
                               hal_attention_description *checked)
{
    if (!hal_sized_take(checked, sizeof *checked, given, HAL_ATTENTION_DESCRIPTION_LEAST_BYTES)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_kernel_create_attention: description.size: expected "
                        "sizeof(hal_attention_description), which is %zu in this hal, or a larger "
                        "one with zeros in the fields that this hal does not know, got %u",
                        sizeof *checked, given->size);
    }
    HAL_TRY(check_options(checked));
    HAL_TRY(check_sizes(checked));
    return check_strides(checked);
}
