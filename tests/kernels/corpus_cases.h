/* corpus_cases.h: what the families of cases (cases_*.c) share: a context on a recording device and
 * tensors that last for one case. corpus.c calls them and hands on what they make. */
#ifndef TESTS_KERNELS_CORPUS_CASES_H
#define TESTS_KERNELS_CORPUS_CASES_H

#include <ops/ops.h>

#include "corpus.h"

#define CORPUS_TENSORS 64

typedef struct corpus {
    ops_context *ops;
    const hal_device_info *info;
    bool all;       /* or some of every family */
    char label[64]; /* of the case in flight */
    int made;       /* kernels of that case so far */
    ops_tensor tensors[CORPUS_TENSORS];
    int tensor_count;
    corpus_visit visit;
    void *user;
    bool failed; /* message says how; nothing is done any more */
    char *message;
    size_t bytes;
} corpus;

/* Begins a case and frees the tensors of the one before. */
void corpus_case(corpus *c, const char *format, ...) HAL_PRINTF(2, 3);

/* A tensor of the case; `type` may be one that only storage has. */
ops_tensor corpus_tensor(corpus *c, hal_type type, uint32_t rank, const int64_t *shape);
ops_tensor corpus_vector(corpus *c, hal_type type, int64_t length);
ops_tensor corpus_matrix(corpus *c, hal_type type, int64_t rows, int64_t columns);

/* A failed call ends the corpus with its sentence. */
void corpus_did(corpus *c, hal_status status);

/* Whether the device computes with values of a type. */
bool corpus_computes(const corpus *c, hal_type type);

/* The families. */
void cases_pointwise(corpus *c);
void cases_reduce(corpus *c);
void cases_gemm(corpus *c);
void cases_index(corpus *c);
void cases_network(corpus *c);
void cases_attention(corpus *c);

#endif
