/* Casts that wrap: through I64, whose low bits a cast to a smaller integer keeps. */
#include "compose.h"

static ops_array *cast_wrapping(hal_type type, ops_array *x)
{
    const bool is_float = hal_type_is_float(x->view.type);
    if (!is_float || !hal_type_is_integer(type)) {
        return ops_array_cast(type, x);
    }
    ops_array *wide = ops_array_cast(HAL_TYPE_I64, x);
    if (type != HAL_TYPE_U64) {
        return wide ? ops_compose_cast(type, wide) : NULL;
    }
    /* I64 has no numbers from 2^63 on, and U64 none below 0. */
    ops_array *is_negative = ops_lt(x, ops_compose_scalar(x, 0));
    return ops_array_where(is_negative, ops_array_cast(type, wide), ops_array_cast(type, x));
}

ops_array *ops_array_cast_wrapping(hal_type type, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_cast_wrapping", &x, 1);
    if (arrays && ops_check_type("ops_array_cast_wrapping", arrays, type)) {
        return ops_compose_end(arrays, NULL);
    }
    return arrays ? ops_compose_end(arrays, cast_wrapping(type, x)) : NULL;
}
