/* Matrix products with their operands on the host, and calls that multiply them on a device. */
#ifndef BENCH_SUITES_GEMM_PRODUCT_H
#define BENCH_SUITES_GEMM_PRODUCT_H

#include "harness/bench.h"

typedef struct gemm_product {
    bench_state *bench;
    hal_type type;
    bool is_fast;                  /* its classes are: operands may be rounded */
    bool transpose_a, transpose_b; /* A is stored as k x m, B as n x k */
    int64_t batch;                 /* products, of matrices one after the other */
    int64_t m, n, k;
    void *a, *b, *c;           /* on the host, as they are stored, for peers and checks */
    void *bias;                /* n numbers */
    struct gemm_check *checks; /* the elements of C that are checked */
} gemm_product;

/* The operands on a device; the tensors A and B may be transposed views. */
typedef struct gemm_operands {
    ops_tensor a, b, c;
    ops_tensor bias;           /* of --epilogue, a number for each column of C */
    ops_expression *bias_gelu; /* gelu(value + bias), without --epilogue null */
} gemm_operands;

/* A call of ops_gemm: a device with its operands, and the options. */
typedef struct gemm_call {
    const gemm_product *product;
    ops_context *ops;
    hal_queue *queue;
    const gemm_operands *operands;
    hal_gemm_precision precision;
    uint32_t levels;
    ops_gemm_impl impl;
    char config[96];   /* a portable kernel, as ops_gemm_get_config names it; empty: the choice */
    bool has_epilogue; /* bias_gelu of the operands, which are floats */
    bool failed;       /* nothing more is measured */
} gemm_call;

/* m, n and k of 1 to `largest` with uniform logarithms, and one of three layouts: neither operand
 * transposed, A or B. */
void gemm_product_draw(uint64_t *state, int64_t largest, gemm_product *product);

/* "gemm 12x34x56", with the batch before the sizes, and the layout after them if an operand is
 * transposed: n or t for A and for B. */
void gemm_product_name(const gemm_product *product, char *name, size_t bytes);

/* Allocates the operands on the host and fills A and B with random numbers. False after a printed
 * failure. */
bool gemm_product_fill(gemm_product *product);
void gemm_product_free(gemm_product *product);

/* Of C: that of A and B, or of sums of integers. */
hal_type gemm_product_type_c(const gemm_product *product);

/* Of C on the host. */
size_t gemm_product_c_bytes(const gemm_product *product);

/* Copies A and B to a device, and makes a C. False after a printed failure. */
bool gemm_operands_make(const gemm_product *product, ops_context *ops, gemm_operands *operands);
void gemm_operands_release(gemm_operands *operands);

/* Multiplies `calls` times and waits: a measure_function over a gemm_call. */
void gemm_call_run(void *call, int calls);

/* Sets the config of the portable kernel with the rank-th least estimated time, from 1 on. Returns
 * whether there is one. */
bool gemm_call_set_config(gemm_call *call, uint32_t rank);

/* The line of ops_gemm_describe about a call; an empty one where it fails. */
void gemm_call_describe(const gemm_call *call, size_t bytes, char *text);

/* Multiplies and reads C. UNSUPPORTED where the device has no such call. `times_ms`: null, or
 * receives the times of the first and a second product, each with its wait, on an idle queue. */
hal_status gemm_call_try(const gemm_call *call, double times_ms[2]);

/* Whether the host's C, which a call or a peer computed, is the product: at elements spread over
 * it, within the bound of the class. Peers may round partial sums to the type of C. False after a
 * printed failure. */
bool gemm_call_check(const gemm_call *call, const char *who);
bool gemm_peer_check(const gemm_product *product, const char *who);

#endif
