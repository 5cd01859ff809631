/* matrix.h: one matrix product on the device and in long double on the host; for gemm.c. */
#ifndef CONFORMANCE_OPS_MATRIX_H
#define CONFORMANCE_OPS_MATRIX_H

#include "ops/fixture.h"

typedef enum product_epilogue {
    EPILOGUE_NONE,
    EPILOGUE_BIAS_RELU,  /* relu(value + bias of the column) */
    EPILOGUE_INDICES,    /* value + row + 2 column + 4 batch */
    EPILOGUE_TWO_INPUTS, /* value * (an input for each element) - (an input for each row) */
    EPILOGUE_RESIDUAL,   /* value + bias of the column + an input for each element, of A's type */
    EPILOGUE_COUNT
} product_epilogue;

typedef struct product {
    hal_type type, type_c;
    int m, n, k, batch;
    bool transpose_a, transpose_b, transpose_c; /* stored transposed */
    bool shared_a, shared_b;                    /* one matrix for the whole batch */
    int padding;                                /* elements between rows, and between matrices */
    double alpha, beta;
    product_epilogue epilogue;
    ops_gemm_impl impl;
    uint32_t precision;
} product;

const char *product_epilogue_name(product_epilogue epilogue);

/* Computes and judges the product, of small whole numbers or of random ones in [-1, 1). */
void product_run(case_run *run, const product *tested, bool whole);

#endif
