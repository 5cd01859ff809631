/* Random draws as expressions of uniform numbers. */
#include "compose.h"

#include <ops/draw.h>

static hal_status check_weights(const char *function, const ops_array *x)
{
    const hal_type type = x->view.type;
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F64
               ? HAL_OK
               : ops_invalid("%s: expected f32 or f64, got %s", function, hal_type_name(type));
}

static ops_array *uniform_like(const ops_array *x, ops_random_key key)
{
    return ops_array_uniform(x->owner->context, x->view.type, x->view.rank, x->view.shape, key, 0,
                             1);
}

ops_array *ops_array_bernoulli(ops_random_key key, ops_array *p)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_bernoulli", &p, 1);
    if (!arrays) {
        return NULL;
    }
    const bool fits = check_weights("ops_array_bernoulli: p", p) == HAL_OK;
    return ops_compose_end(arrays, fits ? ops_lt(uniform_like(p, key), p) : NULL);
}

ops_array *ops_array_exponential(ops_context *context, hal_type type, uint32_t rank,
                                 const int64_t *shape, ops_random_key key, double rate)
{
    if (!(rate > 0)) {
        ops_invalid("ops_array_exponential: rate: expected a number above 0, got one that is not");
        return NULL;
    }
    ops_array *u = ops_array_uniform(context, type, rank, shape, key, 0, 1);
    ops_arrays *arrays = u ? ops_compose_begin("ops_array_exponential", &u, 1) : NULL;
    ops_array *y = NULL;
    if (arrays) {
        ops_array *logarithm = ops_array_unary(OPS_LOG1P, ops_neg(u));
        y = ops_compose_end(arrays, ops_div_scalar(ops_neg(logarithm), rate));
    }
    ops_array_release(u);
    return y;
}

/* log(weight) + Gumbel: the greatest is drawn. Uniform numbers of 0 would give -infinity. */
static ops_array *gumbel_scores(ops_random_key key, ops_array *weights)
{
    ops_array *u = uniform_like(weights, key);
    u = ops_maximum_scalar(u, 1e-30);
    return ops_sub(ops_log(weights), ops_log(ops_neg(ops_log(u))));
}

static ops_array *multinomial(ops_random_key key, int64_t count, bool replaces, ops_array *weights)
{
    const char *function = "ops_array_multinomial";
    const uint32_t rank = weights->view.rank;
    char text[OPS_TEXT_BYTES];
    const int64_t n = rank == 1 || rank == 2 ? weights->view.shape[rank - 1] : 0;
    if (check_weights("ops_array_multinomial: weights", weights)) {
        return NULL;
    }
    if (n < 1 || n > INT32_MAX || count < 0 || (!replaces && count > n)) {
        ops_invalid(
            "%s: weights, count: expected rank 1 or 2 with weights along the last axis, and "
            "at most as many draws without replacement, got %s and %lld",
            function, ops_describe(&weights->view, text), (long long)count);
        return NULL;
    }
    if (!replaces) {
        return ops_array_argsort(-1, 1, count, gumbel_scores(key, weights));
    }
    int64_t shape[3] = {1, count, n};
    shape[0] = rank == 2 ? weights->view.shape[0] : 1;
    const int64_t line[3] = {shape[0], 1, n};
    weights = ops_array_reshape(weights, 3, line);
    weights = weights ? ops_array_broadcast(weights, 3, shape) : NULL;
    ops_array *places =
        weights ? ops_array_reduce(OPS_REDUCE_ARGMAX, 2, 0, gumbel_scores(key, weights)) : NULL;
    return places ? ops_array_reshape(places, rank, rank == 2 ? shape : shape + 1) : NULL;
}

ops_array *ops_array_multinomial(ops_random_key key, int64_t count, int replace, ops_array *weights)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_multinomial", &weights, 1);
    return arrays ? ops_compose_end(arrays, multinomial(key, count, replace != 0, weights)) : NULL;
}

ops_array *ops_array_permutation(ops_context *context, ops_random_key key, int64_t n)
{
    ops_tensor tensor;
    if (ops_tensor_create(context, HAL_TYPE_I32, 1, &n, &tensor)) {
        return NULL;
    }
    ops_array *made = ops_random_permutation(context, key, &tensor)
                          ? NULL
                          : ops_array_from_tensor(context, &tensor);
    ops_tensor_release(&tensor);
    return made;
}
