/* cases_network.c: a step of training of the digits example, and its reading of the classes. */
#include <network.h>

#include "corpus_cases.h"

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
}
