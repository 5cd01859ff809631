/* Places of cumulative maxima, search, counts, and selections whose counts reach the host. */
#include "compose.h"

#include <ops/statistics.h>
#include <string.h>

static ops_array *scan_places(ops_scan_kind kind, int32_t given_axis, ops_array *x)
{
    const char *function = "ops_array_scan_places";
    uint32_t axis;
    int64_t shape[OPS_MAX_RANK];
    if (ops_check_short_axis(function, given_axis, x, &axis)) {
        return NULL;
    }
    if (kind != OPS_SCAN_MAX && kind != OPS_SCAN_MIN) {
        ops_invalid("%s: kind: expected OPS_SCAN_MAX or OPS_SCAN_MIN, got %d", function, (int)kind);
        return NULL;
    }
    ops_array *best = ops_array_scan(kind, given_axis, x);
    ops_array *is_best = ops_eq(x, best);
    if (hal_type_is_float(x->view.type)) {
        is_best = ops_array_binary(OPS_OR, is_best, ops_ne(x, x));
    }
    for (uint32_t i = 0; i < x->view.rank; i++) {
        shape[i] = i == axis ? x->view.shape[i] : 1;
    }
    ops_array *place = ops_array_iota(x->owner->context, HAL_TYPE_I32, shape[axis], 0, 1);
    place = place ? ops_array_reshape(place, x->view.rank, shape) : NULL;
    place = ops_array_where(is_best, place, ops_compose_scalar(place, 0));
    return ops_array_scan(OPS_SCAN_MAX, given_axis, place);
}

ops_array *ops_array_scan_places(ops_scan_kind kind, int32_t axis, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_scan_places", &x, 1);
    return arrays ? ops_compose_end(arrays, scan_places(kind, axis, x)) : NULL;
}

/* Whether the element of the sorted line counts for a value. NaN is greater than all. */
static ops_array *counts_for(ops_array *element, ops_array *value, bool right)
{
    ops_array *before = right ? ops_le(element, value) : ops_lt(element, value);
    if (!hal_type_is_float(value->view.type)) {
        return before;
    }
    ops_array *is_number = right ? NULL : ops_eq(element, element);
    ops_array *after_all = ops_ne(value, value);
    after_all = right ? after_all : ops_array_binary(OPS_AND, after_all, is_number);
    return ops_array_binary(OPS_OR, before, after_all);
}

/* The count is built from its highest bit on: with `step` more, all those elements still count. */
static ops_array *search_sorted(ops_array *sorted, ops_array *values, bool right)
{
    char text[2][OPS_TEXT_BYTES];
    const int64_t length = sorted->view.rank == 1 ? sorted->view.shape[0] : INT64_MAX;
    if (length > INT32_MAX / 2 || values->view.type != sorted->view.type ||
        values->view.type == HAL_TYPE_BOOL) {
        ops_invalid("ops_array_search_sorted: sorted: expected rank 1, at most 2^30 numbers, and "
                    "values of its type, got %s and %s",
                    ops_describe(&sorted->view, text[0]), ops_describe(&values->view, text[1]));
        return NULL;
    }
    ops_context *context = sorted->owner->context;
    const int64_t count = ops_array_get_element_count(values);
    ops_array *flat = ops_array_reshape(values, 1, &count);
    ops_array *found = ops_array_full(context, HAL_TYPE_I32, 1, &count, 0);
    int64_t step = 1;
    while (step <= length / 2) {
        step *= 2;
    }
    for (; found && flat && step > 0 && length > 0; step /= 2) {
        ops_array *next = ops_add_scalar(found, (double)step);
        ops_array *element = ops_array_gather(0, sorted, ops_add_scalar(next, -1));
        ops_array *fits = ops_le(next, ops_compose_scalar(next, (double)length));
        ops_array *counts = element ? counts_for(element, flat, right) : NULL;
        found = ops_array_where(ops_array_binary(OPS_AND, fits, counts), next, found);
    }
    return found ? ops_array_reshape(found, values->view.rank, values->view.shape) : NULL;
}

ops_array *ops_array_search_sorted(ops_array *sorted, ops_array *values, int right)
{
    ops_array *const operands[2] = {sorted, values};
    ops_arrays *arrays = ops_compose_begin("ops_array_search_sorted", operands, 2);
    return arrays ? ops_compose_end(arrays, search_sorted(sorted, values, right != 0)) : NULL;
}

static ops_array *bin_count(int64_t count, ops_array *x, ops_array *weights)
{
    char text[2][OPS_TEXT_BYTES];
    const hal_type type = x->view.type;
    if ((type != HAL_TYPE_I32 && type != HAL_TYPE_I64) || count < 0 || count > INT32_MAX ||
        (weights && !ops_same_shape(&weights->view, &x->view))) {
        ops_invalid("ops_array_bin_count: x, weights: expected i32 or i64, weights of the same "
                    "shape, and a count from 0 to 2^31 - 1, got %s, %s and %lld",
                    ops_describe(&x->view, text[0]),
                    weights ? ops_describe(&weights->view, text[1]) : "none", (long long)count);
        return NULL;
    }
    ops_context *context = x->owner->context;
    const int64_t elements = ops_array_get_element_count(x);
    const hal_type result = weights ? weights->view.type : (hal_type)HAL_TYPE_I64;
    ops_array *zeros = ops_array_full(context, result, 1, &count, 0);
    ops_array *added = weights ? ops_array_reshape(weights, 1, &elements)
                               : ops_array_full(context, result, 1, &elements, 1);
    return ops_array_scatter(OPS_SCATTER_ADD, 0, zeros, ops_array_reshape(x, 1, &elements), added);
}

ops_array *ops_array_bin_count(int64_t count, ops_array *x, ops_array *weights)
{
    ops_array *const operands[2] = {x, weights};
    ops_arrays *arrays = ops_compose_begin("ops_array_bin_count", operands, weights ? 2 : 1);
    return arrays ? ops_compose_end(arrays, bin_count(count, x, weights)) : NULL;
}

/* The places (I64, rank 1) of true elements of a mask of rank 1 in their order: each writes its
 * place to the one that the count of those before it gives. Waits for the count. */
static ops_array *places_of(ops_array *mask)
{
    ops_context *context = mask->owner->context;
    const int64_t length = mask->view.shape[0];
    int32_t count = 0;
    if (length == 0) {
        return ops_array_full(context, HAL_TYPE_I64, 1, &length, 0);
    }
    if (length > INT32_MAX) {
        ops_invalid("%s: expected at most 2^31 - 1 elements, got %lld", "ops_array_nonzero",
                    (long long)length);
        return NULL;
    }
    ops_array *ends = ops_array_scan(OPS_SCAN_SUM, 0, ops_compose_cast(HAL_TYPE_I32, mask));
    ops_array *last = ends ? ops_array_slice(ends, 0, length - 1, 1, 1) : NULL;
    if (!last || ops_array_evaluate(&ends, 1) || ops_array_read(last, sizeof count, &count)) {
        return NULL;
    }
    const int64_t total = count;
    ops_array *target = ops_add_scalar(ends, -1);
    target = ops_array_where(mask, target, ops_compose_scalar(target, -1));
    ops_array *zeros = ops_array_full(context, HAL_TYPE_I64, 1, &total, 0);
    ops_array *place = ops_array_iota(context, HAL_TYPE_I64, length, 0, 1);
    return ops_array_scatter(OPS_SCATTER_ASSIGN, 0, zeros, target, place);
}

/* Whether each element differs from 0, in rank 1. */
static ops_array *flat_mask(ops_array *x)
{
    const int64_t count = ops_array_get_element_count(x);
    if (x->view.type != HAL_TYPE_BOOL) {
        x = ops_ne(x, ops_compose_scalar(x, 0));
    }
    return x ? ops_array_reshape(x, 1, &count) : NULL;
}

static ops_array *nonzero(ops_array *x)
{
    const uint32_t rank = x->view.rank;
    ops_array *columns[OPS_MAX_RANK], *mask = flat_mask(x);
    ops_array *places = mask ? places_of(mask) : NULL;
    if (!places || rank == 0) {
        const int64_t none[2] = {places ? places->view.shape[0] : 0, 0};
        return places ? ops_array_full(x->owner->context, HAL_TYPE_I64, 2, none, 0) : NULL;
    }
    const int64_t column[2] = {places->view.shape[0], 1};
    for (uint32_t i = rank; places && i-- > 0;) {
        ops_array *length = ops_compose_scalar(places, (double)(i ? x->view.shape[i] : 1));
        columns[i] = i ? ops_rem(places, length) : places;
        columns[i] = columns[i] ? ops_array_reshape(columns[i], 2, column) : NULL;
        places = ops_div(places, length);
        places = columns[i] ? places : NULL;
    }
    return places ? ops_array_concatenate(1, columns, rank) : NULL;
}

ops_array *ops_array_nonzero(ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_nonzero", &x, 1);
    return arrays ? ops_compose_end(arrays, nonzero(x)) : NULL;
}

static ops_array *masked_select(ops_array *x, ops_array *mask)
{
    char text[2][OPS_TEXT_BYTES];
    const int64_t count = ops_array_get_element_count(x);
    if (mask->view.type != HAL_TYPE_BOOL || !ops_same_shape(&x->view, &mask->view)) {
        ops_invalid("ops_array_masked_select: mask: expected bool in the shape of x %s, got %s",
                    ops_describe(&x->view, text[0]), ops_describe(&mask->view, text[1]));
        return NULL;
    }
    ops_array *flat = flat_mask(mask), *places = flat ? places_of(flat) : NULL;
    return places ? ops_array_gather(0, ops_array_reshape(x, 1, &count), places) : NULL;
}

ops_array *ops_array_masked_select(ops_array *x, ops_array *mask)
{
    ops_array *const operands[2] = {x, mask};
    ops_arrays *arrays = ops_compose_begin("ops_array_masked_select", operands, 2);
    return arrays ? ops_compose_end(arrays, masked_select(x, mask)) : NULL;
}

/* Writes the results: different elements, inverse and counts. */
static void unique(ops_array *x, bool wants_inverse, bool wants_counts, ops_array *results[3])
{
    ops_context *context = x->owner->context;
    const int64_t length = ops_array_get_element_count(x);
    ops_array *flat = ops_array_reshape(x, 1, &length);
    ops_array *order = flat ? ops_array_argsort(0, 0, -1, flat) : NULL;
    ops_array *sorted = order ? ops_array_gather(0, flat, order) : NULL;
    if (!sorted || length == 0) {
        const int64_t none = 0;
        results[0] = length == 0 ? flat : NULL;
        results[1] = ops_array_full(context, HAL_TYPE_I64, x->view.rank, x->view.shape, 0);
        results[2] = ops_array_full(context, HAL_TYPE_I64, 1, &none, 0);
        return;
    }
    ops_array *parts[2] = {ops_array_full(context, HAL_TYPE_BOOL, 1, (int64_t[]){1}, 1),
                           ops_ne(ops_array_slice(sorted, 0, 1, length - 1, 1),
                                  ops_array_slice(sorted, 0, 0, length - 1, 1))};
    ops_array *is_first = ops_array_concatenate(0, parts, 2);
    ops_array *places = is_first ? places_of(is_first) : NULL;
    results[0] = places ? ops_array_gather(0, sorted, places) : NULL;
    if (!results[0] || (!wants_inverse && !wants_counts)) {
        return;
    }
    const int64_t total = places->view.shape[0];
    ops_array *group = ops_array_scan(OPS_SCAN_SUM, 0, ops_compose_cast(HAL_TYPE_I64, is_first));
    group = ops_add_scalar(group, -1);
    ops_array *zeros = ops_array_full(context, HAL_TYPE_I64, 1, &length, 0);
    ops_array *inverse = ops_array_scatter(OPS_SCATTER_ASSIGN, 0, zeros, order, group);
    results[1] = inverse ? ops_array_reshape(inverse, x->view.rank, x->view.shape) : NULL;
    results[2] = wants_counts ? bin_count(total, group, NULL) : NULL;
}

ops_array *ops_array_unique(ops_array *x, ops_array **inverse, ops_array **counts)
{
    ops_array *results[3] = {NULL, NULL, NULL};
    ops_arrays *arrays = ops_compose_begin("ops_array_unique", &x, 1);
    if (arrays && x->view.type == HAL_TYPE_BOOL) {
        ops_invalid("ops_array_unique: x: expected numbers, got bool");
        ops_compose_end(arrays, NULL);
    } else if (arrays) {
        unique(x, inverse != NULL, counts != NULL, results);
        const bool is_made = results[0] && (!inverse || results[1]) && (!counts || results[2]);
        results[0] = is_made ? results[0] : NULL;
        results[1] = is_made && inverse ? results[1] : NULL;
        results[2] = is_made && counts ? results[2] : NULL;
        ops_compose_end_all(arrays, results, 3);
    }
    if (inverse) {
        *inverse = results[1];
    }
    if (counts) {
        *counts = results[2];
    }
    return results[0];
}
