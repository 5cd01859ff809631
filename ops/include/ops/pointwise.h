/* Pointwise expressions: one kernel for any formula over broadcast, strided tensors.
 *
 * An expression is a fragment of IR, built with hal_ir_builder_create_fragment: inputs have the
 * value types of the tensors (narrow floats as F32, I8 as I32, ...), outputs are rounded to the
 * output tensor's type. The same object is a kernel (ops_pointwise), the prologue or epilogue of a
 * reduction, and the epilogue of a matrix product. Its results have the same bits in all of these,
 * except that the sign of a NaN may differ.
 *
 *     hal_ir_builder *b;                       // relu(x * y + x), then sigmoid
 *     hal_ir_builder_create_fragment("chain", &b);
 *     hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32), y = hal_ir_input(b, 1, HAL_TYPE_F32);
 *     hal_ir_value r = ops_unary_value(b, OPS_RELU, hal_ir_fma(b, x, y, x));
 *     hal_ir_output(b, 0, ops_unary_value(b, OPS_SIGMOID, r));
 *     ops_expression *chain;
 *     ops_expression_create(b, &chain);        // checks, and ends the builder
 */
#ifndef OPS_POINTWISE_H
#define OPS_POINTWISE_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of an expression. */
#define OPS_MAX_INPUTS 16u
#define OPS_MAX_OUTPUTS 8u

typedef struct ops_expression ops_expression;

/* Functions of one value. The float ones take F32 and F64; NEG, ABS, SIGN, SQUARE and RELU integers
 * too; NOT takes BOOL and integers; the IS_ ones give BOOL. */
typedef enum ops_unary_function {
    OPS_IDENTITY, /* the value itself */
    OPS_NEG,
    OPS_ABS,
    OPS_SIGN, /* -1, 0 or 1, as in NumPy: -0 gives 0, NaN passes */
    OPS_SQUARE,
    OPS_RELU,       /* max(x, 0); NaN passes */
    OPS_NOT,        /* bitwise; BOOL: logical */
    OPS_SQRT,       /* NaN below 0 */
    OPS_RSQRT,      /* 1 / sqrt(x) */
    OPS_RECIPROCAL, /* 1 / x */
    OPS_EXP,
    OPS_EXP2,
    OPS_EXPM1, /* exp(x) - 1, exact near 0 */
    OPS_LOG,
    OPS_LOG2,
    OPS_LOG10,
    OPS_LOG1P, /* log(1 + x), exact near 0 */
    OPS_SIN,   /* of radians, as all angles */
    OPS_COS,
    OPS_TAN,
    OPS_ASIN, /* NaN beyond 1, as ACOS */
    OPS_ACOS,
    OPS_ATAN,
    OPS_SINH,
    OPS_COSH,
    OPS_TANH,
    OPS_ERF,
    OPS_SIGMOID,  /* 1 / (1 + exp(-x)) */
    OPS_SILU,     /* x sigmoid(x) */
    OPS_GELU,     /* x (1 + erf(x / sqrt 2)) / 2 */
    OPS_SOFTPLUS, /* log(1 + exp(x)), without overflow */
    OPS_FLOOR,
    OPS_CEIL,
    OPS_TRUNC, /* towards zero */
    OPS_ROUND, /* to nearest even */
    OPS_IS_NAN,
    OPS_IS_INFINITE,
    OPS_IS_FINITE,
    OPS_UNARY_COUNT
} ops_unary_function;

/* Functions of two values of one type. Comparisons give BOOL; AND, OR, XOR take BOOL and integers;
 * POW, ATAN2 floats; SHL, SHR integers. Special cases as in the IR (ir.h). */
typedef enum ops_binary_function {
    OPS_ADD,
    OPS_SUB, /* integers wrap, as ADD and MUL */
    OPS_MUL,
    OPS_DIV,     /* integers: towards zero, x / 0 = 0 */
    OPS_REM,     /* sign of x; floats as C's fmod */
    OPS_MINIMUM, /* NaN if either is NaN */
    OPS_MAXIMUM,
    OPS_POW,   /* as C's pow */
    OPS_ATAN2, /* as C's atan2: x over y */
    OPS_AND,
    OPS_OR,
    OPS_XOR,
    OPS_SHL, /* count modulo the width, as SHR */
    OPS_SHR, /* arithmetic for signed types */
    OPS_EQ,
    OPS_NE, /* true with NaN, the others false */
    OPS_LT,
    OPS_LE,
    OPS_GT,
    OPS_GE,
    OPS_BINARY_COUNT
} ops_binary_function;

/* Adds a function to the kernel or fragment of a builder.
 * Threads: the builder's. Errors: sticky in the builder, INVALID_IR for a type the function does
 * not take. */
HAL_API hal_ir_value ops_unary_value(hal_ir_builder *builder, ops_unary_function function,
                                     hal_ir_value x);
HAL_API hal_ir_value ops_binary_value(hal_ir_builder *builder, ops_binary_function function,
                                      hal_ir_value x, hal_ir_value y);

/* As ops_unary_value, for a result that is stored as `type`: the form that arrays and ops_unary
 * use. On a device without its own version of them, exp, tanh, sigmoid and gelu of narrow floats
 * have fewer operations. Errors in units in the last place of `type`, with the rounding: exp, tanh
 * and sigmoid at most 0.75; gelu as in docs/conformance.md. `info`: of the device that executes it.
 * Threads: the builder's. Errors: as ops_unary_value. */
HAL_API hal_ir_value ops_unary_rounded(hal_ir_builder *builder, const hal_device_info *info,
                                       ops_unary_function function, hal_type type, hal_ir_value x);

/* The name of a function, such as "sigmoid"; null for an invalid number.
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *ops_unary_name(ops_unary_function function);
HAL_API const char *ops_binary_name(ops_binary_function function);

/* Finishes a fragment's builder, which is destroyed in any case, and keeps it as an expression.
 * Ownership: the caller's, until ops_expression_destroy. Threads: the builder's.
 * Errors: the builder's; UNSUPPORTED above OPS_MAX_INPUTS or OPS_MAX_OUTPUTS; INVALID_ARGUMENT for
 * a builder of a kernel; OUT_OF_MEMORY. */
HAL_API hal_status ops_expression_create(hal_ir_builder *builder,
                                         HAL_OUT ops_expression **expression);

/* Frees an expression; null is allowed. Recorded work remains valid.
 * Threads: any, when no other thread uses it. Errors: none. */
HAL_API void ops_expression_destroy(ops_expression *expression);

/* The fragment of an expression.
 * Ownership: the expression's. Threads: any. Errors: none; null gives null. */
HAL_API const hal_ir_kernel *ops_expression_get_fragment(const ops_expression *expression);

/* outputs = expression(inputs), element by element. The outputs have one shape, to which every
 * input is broadcast. An output may be the same view as an input; other overlaps are refused.
 * Disjoint slices of one tensor do not overlap.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT for counts, types and shapes that do not fit, with the shapes;
 * UNSUPPORTED for types that the device lacks; those of kernels and dispatches. */
HAL_API hal_status ops_pointwise(ops_context *context, const ops_expression *expression,
                                 const ops_tensor *inputs, uint32_t input_count,
                                 HAL_OUT const ops_tensor *outputs, uint32_t output_count);

/* y = f(x) and z = f(x, y); operands of one value type, the result of that or of BOOL. A type that
 * differs from the result's in storage only (F16 and F32, say) is converted at the store. Functions
 * of narrow floats, and those of arrays, may have shorter forms than ops_unary_value: the error is
 * at most 2 units in the last place, except for gelu, silu, erf and tan (docs/conformance.md).
 * Threads: the queue's. Errors: as ops_pointwise. */
HAL_API hal_status ops_unary(ops_context *context, ops_unary_function function, const ops_tensor *x,
                             HAL_OUT const ops_tensor *y);
HAL_API hal_status ops_binary(ops_context *context, ops_binary_function function,
                              const ops_tensor *x, const ops_tensor *y,
                              HAL_OUT const ops_tensor *z);

/* ops_where: out = condition ? x : y. ops_cast: y = x in y's type (as CAST in ir.h), rounded
 * once. ops_fill: every element of y = value, rounded to y's type: to nearest even, integers
 * saturate, and NaN is 0 in them.
 * Threads: the queue's. Errors: as ops_pointwise. */
HAL_API hal_status ops_where(ops_context *context, const ops_tensor *condition, const ops_tensor *x,
                             const ops_tensor *y, HAL_OUT const ops_tensor *out);
HAL_API hal_status ops_cast(ops_context *context, const ops_tensor *x, HAL_OUT const ops_tensor *y);
HAL_API hal_status ops_fill(ops_context *context, double value, HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
