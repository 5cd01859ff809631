/* cases_attention.c: attention by one kernel, in every type, and what is compiled in. */
#include <ops/attention.h>

#include "corpus_cases.h"

typedef struct attention_shape {
    int64_t heads, m, n, d, e;
    int causal;
} attention_shape;

static void attention(corpus *c, hal_type type, const attention_shape *s)
{
    corpus_case(c, "attention_%s_%lld_%lld_%s", hal_type_name(type), (long long)s->m,
                (long long)s->d, s->causal ? "causal" : "all");
    const ops_tensor q = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->d});
    const ops_tensor k = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->d});
    const ops_tensor v = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->e});
    const ops_tensor y = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->e});
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = s->causal;
    options.precision = HAL_GEMM_FAST;
    options.form = OPS_ATTENTION_KERNEL;
    if (!c->failed) {
        const hal_status status = ops_attention(c->ops, &options, &q, &k, &v, &y);
        corpus_did(c, status == HAL_ERROR_UNSUPPORTED ? HAL_OK : status);
    }
}

static void gradients(corpus *c, hal_type type, const attention_shape *s)
{
    corpus_case(c, "gradients_%s_%lld_%lld_%s", hal_type_name(type), (long long)s->m,
                (long long)s->d, s->causal ? "causal" : "all");
    const ops_tensor q = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->d});
    const ops_tensor k = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->d});
    const ops_tensor v = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->e});
    const ops_tensor y = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->e});
    const ops_tensor dy = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->e});
    const ops_tensor dq = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->m, s->d});
    const ops_tensor dk = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->d});
    const ops_tensor dv = corpus_tensor(c, type, 3, (int64_t[]){s->heads, s->n, s->e});
    const ops_tensor *const inputs[3] = {&q, &k, &v}, *const gradients[3] = {&dq, &dk, &dv};
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = s->causal;
    options.precision = HAL_GEMM_FAST;
    if (!c->failed) {
        const hal_status status =
            ops_attention_gradients(c->ops, &options, inputs, &y, &dy, gradients);
        corpus_did(c, status == HAL_ERROR_UNSUPPORTED ? HAL_OK : status);
    }
}

void cases_attention(corpus *c)
{
    static const attention_shape shapes[] = {{32, 1500, 1500, 128, 128, 0},
                                             {48, 512, 512, 64, 64, 1},
                                             {4, 70, 100, 96, 33, 0},
                                             {8, 512, 512, 256, 256, 0},
                                             {1, 64, 4096, 128, 128, 1}};
    static const hal_type types[] = {HAL_TYPE_BF16, HAL_TYPE_F16, HAL_TYPE_F32};
    for (int t = 0; t < 3; t++) {
        for (int s = 0; s < (c->all ? 5 : 2) && !c->failed; s++) {
            attention(c, types[t], &shapes[s]);
            gradients(c, types[t], &shapes[s]);
        }
    }
}
