/* cases_reduce.c: reductions and softmax along long and short axes. */
#include "corpus_cases.h"

static const char *const names[OPS_REDUCTION_COUNT] = {"sum",    "mean",    "max",   "min",
                                                       "argmax", "product", "argmin"};

static void reduce(corpus *c, ops_reduction kind, hal_type type, const int64_t shape[2],
                   uint32_t axis)
{
    corpus_case(c, "%s_%s_%lldx%lld_axis%u", names[kind], hal_type_name(type), (long long)shape[0],
                (long long)shape[1], axis);
    const ops_tensor x = corpus_tensor(c, type, 2, shape);
    const ops_tensor y = corpus_vector(
        c, kind == OPS_REDUCE_ARGMAX || kind == OPS_REDUCE_ARGMIN ? (hal_type)HAL_TYPE_I32 : type,
        shape[1 - axis]);
    corpus_did(c, ops_reduce(c->ops, kind, axis, &x, NULL, &y));
}

static void softmax(corpus *c, hal_type type, const int64_t shape[2], uint32_t axis)
{
    corpus_case(c, "softmax_%s_%lldx%lld_axis%u", hal_type_name(type), (long long)shape[0],
                (long long)shape[1], axis);
    const ops_tensor x = corpus_tensor(c, type, 2, shape);
    corpus_did(c, ops_softmax(c->ops, axis, &x, &x));
    corpus_did(c, ops_log_softmax(c->ops, axis, &x, &x));
}

void cases_reduce(corpus *c)
{
    static const int64_t shapes[][2] = {{4096, 4096}, {1, 1 << 24}, {1 << 18, 64}, {100, 37}};
    static const int64_t in_shared_memory[][2] = {{600, 8192}, {2048, 50257}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_I32, HAL_TYPE_F64};
    for (int t = 0; t < (c->all ? 4 : 1); t++) {
        for (int s = 0; s < (c->all ? 4 : 2) && corpus_computes(c, types[t]); s++) {
            for (uint32_t axis = 0; axis < 2; axis++) {
                for (int kind = 0; kind < OPS_REDUCTION_COUNT && !c->failed; kind++) {
                    if (shapes[s][axis] > 1 &&
                        (kind != OPS_REDUCE_MEAN || hal_type_is_float(types[t]))) {
                        reduce(c, (ops_reduction)kind, types[t], shapes[s], axis);
                    }
                }
                if (shapes[s][axis] > 1 && hal_type_is_float(types[t]) && !c->failed) {
                    softmax(c, types[t], shapes[s], axis);
                }
            }
        }
        for (uint32_t axis = 0; axis < 2 && corpus_computes(c, types[t]); axis++) {
            if (hal_type_is_float(types[t]) && !c->failed) {
                softmax(c, types[t], in_shared_memory[axis], axis);
            }
        }
    }
}
