/* Comparisons of views: whether tensors share memory, see overlap.h. */
#include "overlap.h"

#include <stdlib.h>

/* Elements that are looked at before two views count as overlapping. Views of one tensor take a few
 * per axis; strides that are no multiples of each other may take many. */
#define MAX_STEPS 4096u

/* stride * i with a whole number i from low to high. */
typedef struct term {
    int64_t stride, low, high;
} term;

/* Whether terms can add up to a distance. */
typedef struct search {
    term terms[2 * OPS_MAX_RANK + 1];
    uint32_t count, steps;
} search;

static int64_t floor_divide(int64_t x, int64_t y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t greatest_divisor(int64_t x, int64_t y)
{
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* Adds stride * [low, high]; terms of one stride become one. */
static void search_add(search *s, int64_t stride, int64_t low, int64_t high)
{
    if (stride == 0 || (low == 0 && high == 0)) {
        return;
    }
    if (stride < 0) {
        const int64_t turned = -high;
        stride = -stride;
        high = -low;
        low = turned;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->terms[i].stride == stride) {
            s->terms[i].low += low;
            s->terms[i].high += high;
            return;
        }
    }
    uint32_t i = s->count++;
    for (; i > 0 && s->terms[i - 1].stride < stride; i--) {
        s->terms[i] = s->terms[i - 1];
    }
    s->terms[i] = (term){stride, low, high};
}

/* Whether terms `at` and finer ones can add up to `distance`: for each multiple of the coarsest
 * stride that leaves what the others can reach. True where that takes too many steps. */
static bool search_reaches(search *s, uint32_t at, int64_t distance)
{
    if (at == s->count) {
        return distance == 0;
    }
    int64_t low = 0, high = 0, divisor = s->terms[at].stride;
    for (uint32_t i = at + 1; i < s->count; i++) {
        low += s->terms[i].stride * s->terms[i].low;
        high += s->terms[i].stride * s->terms[i].high;
        divisor = greatest_divisor(divisor, s->terms[i].stride);
    }
    if (distance % divisor != 0) {
        return false;
    }
    const term *t = &s->terms[at];
    int64_t first = -floor_divide(high - distance, t->stride);
    int64_t last = floor_divide(distance - low, t->stride);
    first = first > t->low ? first : t->low;
    last = last < t->high ? last : t->high;
    for (int64_t i = first; i <= last; i++) {
        if (++s->steps > MAX_STEPS || search_reaches(s, at + 1, distance - i * t->stride)) {
            return true;
        }
    }
    return false;
}

bool ops_elements_overlap(const ops_tensor *tensor)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) {
            return false;
        }
        left |= tensor->shape[i] > 1 ? 1u << i : 0;
    }
    int64_t span = 1;
    while (left) {
        uint32_t finest = (uint32_t)__builtin_ctz(left);
        for (uint32_t i = finest + 1; i < tensor->rank; i++) {
            if ((left >> i & 1) && llabs(tensor->stride[i]) < llabs(tensor->stride[finest])) {
                finest = i;
            }
        }
        if (llabs(tensor->stride[finest]) < span) {
            return true;
        }
        span += (tensor->shape[finest] - 1) * llabs(tensor->stride[finest]);
        left &= ~(1u << finest);
    }
    return false;
}

bool ops_same_view(const ops_tensor *x, const ops_tensor *y)
{
    if (x->buffer != y->buffer || x->type != y->type || x->offset != y->offset ||
        x->rank > y->rank) {
        return false;
    }
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(x, y->rank, y->shape, strides);
    for (uint32_t i = 0; i < y->rank; i++) {
        if (y->shape[i] > 1 && strides[i] != y->stride[i]) {
            return false;
        }
    }
    return true;
}

hal_range ops_tensor_range(const ops_tensor *tensor)
{
    int64_t first, end;
    const uint64_t size = hal_type_size(tensor->type);
    if (ops_tensor_get_element_count(tensor) == 0) {
        return (hal_range){NULL, 0, 0};
    }
    ops_span(tensor, &first, &end);
    return (hal_range){tensor->buffer, (uint64_t)first * size, (uint64_t)(end - first) * size};
}

bool ops_spans_meet(const ops_tensor *x, const ops_tensor *y)
{
    if (!x->buffer || x->buffer != y->buffer || ops_tensor_get_element_count(x) == 0 ||
        ops_tensor_get_element_count(y) == 0) {
        return false;
    }
    int64_t first[2], end[2];
    ops_span(x, &first[0], &end[0]);
    ops_span(y, &first[1], &end[1]);
    int64_t size[2] = {hal_type_size(x->type), hal_type_size(y->type)};
    return first[0] * size[0] < end[1] * size[1] && first[1] * size[1] < end[0] * size[0];
}

/* Elements share memory where x's coordinates times its strides, less y's times its, add up to y's
 * offset less x's. Where element sizes differ, all of it is in bytes, with a byte of each. */
bool ops_overlap(const ops_tensor *x, const ops_tensor *y)
{
    if (!ops_spans_meet(x, y)) {
        return false;
    }
    int64_t size_x = hal_type_size(x->type), size_y = hal_type_size(y->type);
    if (size_x == size_y) {
        size_x = size_y = 1;
    }
    search s = {.count = 0, .steps = 0};
    search_add(&s, 1, 1 - size_y, size_x - 1);
    for (uint32_t i = 0; i < x->rank; i++) {
        search_add(&s, x->stride[i] * size_x, 0, x->shape[i] - 1);
    }
    for (uint32_t i = 0; i < y->rank; i++) {
        search_add(&s, y->stride[i] * size_y, 1 - y->shape[i], 0);
    }
    return search_reaches(&s, 0, y->offset * size_y - x->offset * size_x);
}
