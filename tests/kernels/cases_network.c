/* cases_network.c: a step of training of the digits example, and its reading of the classes. */
#include <network.h>

#include "corpus_cases.h"

/* A convolution and its gradient by the weights, whose products read windows in the image. */
static void convolution(corpus *c, hal_type type, uint32_t precision)
{
    enum { N = 8, C = 64, H = 16, O = 128, K = 3 };
    static const int64_t x_shape[] = {N, C, H, H}, w_shape[] = {O, C, K, K},
                         y_shape[] = {N, O, H, H}, window[] = {K, K};
    const ops_convolution_options o = {
        .size = sizeof o, .precision = precision, .before = {1, 1}, .after = {1, 1}};
    corpus_case(c, "convolution_%s", hal_type_name(type));
    const ops_tensor x = corpus_tensor(c, type, 4, x_shape), w = corpus_tensor(c, type, 4, w_shape);
    const ops_tensor y = corpus_tensor(c, type, 4, y_shape);
    if (c->failed) {
        return;
    }
    ops_context_set_convolution(c->ops, OPS_CONVOLUTION_IMPLICIT);
    corpus_did(c, ops_scope_begin(c->ops));
    ops_array *image = ops_array_from_tensor(c->ops, &x);
    ops_array *computed[2] = {
        ops_array_convolution(&o, image, ops_array_from_tensor(c->ops, &w), NULL),
        ops_array_convolution_weights(&o, image, ops_array_from_tensor(c->ops, &y), window)};
    corpus_did(c, computed[0] && computed[1] ? ops_array_evaluate(computed, 2)
                                             : HAL_ERROR_INVALID_ARGUMENT);
    corpus_did(c, ops_scope_end(c->ops));
}

void cases_network(corpus *c)
{
    static const int64_t widths[] = {64, 256, 128, 10};
    enum { BATCH = 64 };
    network net = {0};
    corpus_case(c, "digits");
    const ops_tensor input = corpus_matrix(c, HAL_TYPE_F32, BATCH, widths[0]);
    const ops_tensor target = corpus_matrix(c, HAL_TYPE_F32, BATCH, widths[3]);
    const ops_tensor rate = corpus_vector(c, HAL_TYPE_F32, 1);
    const ops_tensor classes = corpus_vector(c, HAL_TYPE_I32, BATCH);
    if (!c->failed) {
        corpus_did(c, network_create(c->ops, widths, 3, BATCH, 0.9, 1e-4, 1, &net));
    }
    if (!c->failed) {
        corpus_did(c, network_train(&net, &input, &target, &rate));
        corpus_did(c, network_forward(&net, &input));
        corpus_did(c,
                   ops_reduce(c->ops, OPS_REDUCE_ARGMAX, 1, network_output(&net), NULL, &classes));
    }
    network_destroy(&net);
    convolution(c, HAL_TYPE_F32, HAL_GEMM_STRICT);
    convolution(c, HAL_TYPE_BF16, HAL_GEMM_ACCURATE);
}
