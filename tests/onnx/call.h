/* A call of one ONNX operator: its operands as arrays, its attributes, and what it gives. Every
 * mapping in operators.h works on this. */
#ifndef TESTS_ONNX_CALL_H
#define TESTS_ONNX_CALL_H

#include "case.h"

#include <ops/ops.h>

enum { ONNX_MAX_OPERANDS = 32 };

typedef struct onnx_call {
    ops_context *context;
    const onnx_case *item;
    const onnx_node *node;
    ops_array **values;              /* of the case, by their numbers */
    uint32_t version;                /* of the operator set */
    ops_array *x[ONNX_MAX_OPERANDS]; /* inputs; null: left out */
    ops_array *y[ONNX_MAX_OPERANDS]; /* outputs */
    char skipped[160];               /* why the call is not covered; empty if it is */
} onnx_call;

/* The mapping of an operator sets call->y, or says why it cannot. */
typedef void (*onnx_mapping)(onnx_call *call);

/* Attributes with their defaults. The last one copies at most `most` whole numbers and returns how
 * many there are, or -1 without the attribute. */
const onnx_attribute *onnx_find(const onnx_call *call, const char *name);
int64_t onnx_integer(const onnx_call *call, const char *name, int64_t otherwise);
double onnx_number(const onnx_call *call, const char *name, double otherwise);
const char *onnx_text(const onnx_call *call, const char *name, const char *otherwise);
int32_t onnx_integers(const onnx_call *call, const char *name, int64_t *values, int32_t most);

/* Values of an I32 or I64 array on the host; returns how many, or -1 and skips the call. */
int32_t onnx_host_integers(onnx_call *call, ops_array *x, int64_t *values, int32_t most);

/* The first element of an array as a double. */
double onnx_host_number(onnx_call *call, ops_array *x, double otherwise);

/* Marks the call as not covered. */
void onnx_skip(onnx_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An array of whole numbers (I64, rank 1); an element of type and value, rank 0. */
ops_array *onnx_vector(const onnx_call *call, const int64_t *values, int64_t count);

/* An axis below 0 counts from the end. */
int32_t onnx_axis(const ops_array *x, int64_t axis);

/* The shape of an array; returns the rank. */
uint32_t onnx_shape(const ops_array *x, int64_t shape[ONNX_MAX_RANK]);

/* x as rank `rank` with axes of length 1 in front. */
ops_array *onnx_rank(ops_array *x, uint32_t rank);

/* F32 for narrow floats, else the type: what sums are accumulated in. */
hal_type onnx_wide(const ops_array *x);

#endif
