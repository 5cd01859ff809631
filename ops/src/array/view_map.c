/* View maps, see view_map.h. A place in memory of the base is a number in the mixed radix of its
 * axes. Each axis of the view steps along one digit; while no digit leaves its range, digits give
 * the element of x. */
#include "view_map.h"

#include <string.h>

/* One or several axes of the base along which x steps evenly. */
typedef struct map_digit {
    int64_t size, base, x; /* length; strides of the base and of x */
    int64_t low, high;     /* values that the view reaches */
} map_digit;

/* The digits of the base, the one of the largest stride first, joined where x allows it. */
static uint32_t list_digits(const ops_tensor *base, const int64_t *x, map_digit *digits)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < base->rank; i++) {
        if (base->shape[i] == 1) {
            continue;
        }
        uint32_t place = count++;
        for (; place > 0 && digits[place - 1].base < base->stride[i]; place--) {
            digits[place] = digits[place - 1];
        }
        digits[place] = (map_digit){base->shape[i], base->stride[i], x[i], 0, 0};
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        map_digit *outer = kept ? &digits[kept - 1] : NULL;
        if (outer && outer->x == digits[i].x * digits[i].size) {
            *outer = (map_digit){outer->size * digits[i].size, digits[i].base, digits[i].x, 0, 0};
        } else {
            digits[kept++] = digits[i];
        }
    }
    return kept;
}

bool ops_view_map(const ops_tensor *base, const ops_tensor *view, const ops_tensor *x,
                  ops_tensor *mapped)
{
    map_digit digits[OPS_MAX_RANK];
    int64_t strides[OPS_MAX_RANK], rest = view->offset;
    if (ops_tensor_get_element_count(base) == 0 || ops_tensor_get_element_count(view) == 0) {
        return false;
    }
    *mapped = *view;
    mapped->type = x->type;
    mapped->buffer = x->buffer;
    mapped->offset = x->offset;
    if (ops_same_shape(x, base) && ops_same_strides(x, base)) {
        mapped->offset += view->offset;
        return true;
    }
    ops_broadcast_strides(x, base->rank, base->shape, strides);
    const uint32_t count = list_digits(base, strides, digits);
    for (uint32_t k = 0; k < count; k++) {
        digits[k].low = digits[k].high = rest / digits[k].base;
        rest %= digits[k].base;
        mapped->offset += digits[k].low * digits[k].x;
    }
    for (uint32_t i = 0; i < view->rank; i++) {
        mapped->stride[i] = 0;
        if (view->shape[i] == 1 || view->stride[i] == 0) {
            continue;
        }
        uint32_t k = 0; /* an outer digit: inner ones have too few values for its steps */
        while (k < count && view->stride[i] % digits[k].base != 0) {
            k++;
        }
        if (k == count) {
            return false;
        }
        const int64_t step = view->stride[i] / digits[k].base;
        *(step < 0 ? &digits[k].low : &digits[k].high) += (view->shape[i] - 1) * step;
        mapped->stride[i] = step * digits[k].x;
    }
    bool fits = true;
    for (uint32_t k = 0; k < count; k++) {
        fits = fits && digits[k].low >= 0 && digits[k].high < digits[k].size;
    }
    return fits;
}
