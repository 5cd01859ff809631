/* See probe_constants.h. One kernel for a type: each question is an operation of an element of x
 * and a constant, and has its own part of the output. */
#include "probe_constants.h"

#include <hal/ir_build.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, MOST_QUESTIONS = 96 };

/* The first operand, the second one, or both, are the constant; or it is the third one. */
typedef enum question_form {
    CONSTANT_LEFT,
    CONSTANT_RIGHT,
    CONSTANT_ALONE,
    CONSTANT_ADDED
} question_form;

typedef struct question {
    uint8_t opcode, form;
    bool widened; /* x has 32 bits in memory */
    uint64_t constant;
} question;

typedef struct questions {
    hal_type type;
    uint32_t count;
    question asked[MOST_QUESTIONS];
    uint64_t x[LANES]; /* bits, as constants are */
} questions;

static bool is_signed(hal_type type)
{
    return type == HAL_TYPE_I32 || type == HAL_TYPE_I64;
}

/* ---- Numbers as bits ---- */

static uint64_t float_bits(hal_type type, double value)
{
    uint64_t bits = 0;
    const float narrow = (float)value;
    if (type == HAL_TYPE_F64) {
        memcpy(&bits, &value, 8);
    } else {
        memcpy(&bits, &narrow, 4);
    }
    return bits;
}

static double float_value(hal_type type, uint64_t bits)
{
    double value;
    float narrow;
    memcpy(&value, &bits, 8);
    memcpy(&narrow, &bits, 4);
    return type == HAL_TYPE_F64 ? value : (double)narrow;
}

/* Extended to 64 bits. */
static uint64_t integer_of(hal_type type, uint64_t bits)
{
    if (hal_type_size(type) == 8) {
        return bits;
    }
    return is_signed(type) ? (uint64_t)(int64_t)(int32_t)(uint32_t)bits : (uint32_t)bits;
}

/* ---- The right answers ---- */

static double extremum(double a, double b, bool is_max)
{
    if (isnan(a) || isnan(b)) {
        return NAN;
    }
    if (a == b) { /* zeros */
        return (signbit(a) != 0) == is_max ? b : a;
    }
    return (a > b) == is_max ? a : b;
}

/* Products, sums and quotients of two F32 that are computed in F64 round rightly to F32. */
static double float_answer(hal_type type, uint32_t opcode, double a, double b, double c)
{
    switch (opcode) {
    case HAL_IR_ADD:
        return a + b;
    case HAL_IR_SUB:
        return a - b;
    case HAL_IR_MUL:
        return a * b;
    case HAL_IR_DIV:
        return a / b;
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return extremum(a, b, opcode == HAL_IR_MAX);
    case HAL_IR_FMA:
        return type == HAL_TYPE_F64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
    case HAL_IR_FLOOR:
        return floor(a);
    case HAL_IR_TRUNC:
        return trunc(a);
    case HAL_IR_RINT:
        return rint(a);
    default: /* LT */
        return a < b;
    }
}

static bool integer_less(hal_type type, uint64_t a, uint64_t b)
{
    return is_signed(type) ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t integer_divide(hal_type type, uint64_t a, uint64_t b, bool remains)
{
    if (b == 0) {
        return 0;
    }
    if (!is_signed(type)) {
        return remains ? a % b : a / b;
    }
    if (b == UINT64_MAX) { /* the least one has no opposite */
        return remains ? 0 : 0 - a;
    }
    return (uint64_t)(remains ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static uint64_t integer_answer(hal_type type, uint32_t opcode, uint64_t a, uint64_t b)
{
    switch (opcode) {
    case HAL_IR_DIV:
    case HAL_IR_REM:
        return integer_divide(type, a, b, opcode == HAL_IR_REM);
    case HAL_IR_MIN:
        return integer_less(type, a, b) ? a : b;
    case HAL_IR_EQ:
        return a == b;
    case HAL_IR_LT:
        return integer_less(type, a, b);
    default: /* LE */
        return !integer_less(type, b, a);
    }
}

/* Bits of the right answer for an element. */
static uint64_t right_answer(const questions *q, const question *of, uint64_t x)
{
    const bool left = of->form == CONSTANT_LEFT || of->form == CONSTANT_ALONE;
    const bool right = of->form == CONSTANT_RIGHT || of->form == CONSTANT_ALONE;
    const uint64_t a = left ? of->constant : x, b = right ? of->constant : x;
    if (!hal_type_is_float(q->type)) {
        const uint64_t answer =
            integer_answer(q->type, of->opcode, integer_of(q->type, a), integer_of(q->type, b));
        return hal_type_size(q->type) == 8 ? answer : (uint32_t)answer;
    }
    const uint64_t c = of->form == CONSTANT_ADDED ? of->constant : x;
    return float_bits(q->type, float_answer(q->type, of->opcode, float_value(q->type, a),
                                            float_value(q->type, b), float_value(q->type, c)));
}

/* A NaN may be any; what the device does not claim to be exact may be near. */
static bool is_right(const probe *p, const questions *q, const question *of, uint64_t wanted,
                     uint64_t got)
{
    if (wanted == got) {
        return true;
    }
    if (!hal_type_is_float(q->type)) {
        return false;
    }
    const double a = float_value(q->type, wanted), b = float_value(q->type, got);
    const double least = q->type == HAL_TYPE_F64 ? DBL_MIN : (double)FLT_MIN;
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    if (!(p->info->exactness & HAL_EXACT_DENORMALS) && a != 0 && fabs(a) <= least) {
        return fabs(b) <= least;
    }
    return of->opcode == HAL_IR_DIV && !(p->info->exactness & HAL_EXACT_DIVIDE) && a != 0 &&
           isfinite(a) && fabs(a - b) <= 1e-6 * fabs(a);
}

/* ---- The kernel ---- */

static hal_ir_value constant_of(hal_ir_builder *b, hal_type type, uint64_t bits)
{
    switch (type) {
    case HAL_TYPE_F32:
        return hal_ir_f32(b, (float)float_value(type, bits));
    case HAL_TYPE_F64:
        return hal_ir_f64(b, float_value(type, bits));
    case HAL_TYPE_I32:
        return hal_ir_i32(b, (int32_t)(uint32_t)bits);
    case HAL_TYPE_U32:
        return hal_ir_u32(b, (uint32_t)bits);
    case HAL_TYPE_I64:
        return hal_ir_i64(b, (int64_t)bits);
    default:
        return hal_ir_u64(b, bits);
    }
}

static hal_ir_value question_build(hal_ir_builder *b, const questions *q, const question *of,
                                   hal_ir_value x)
{
    const hal_ir_value c = constant_of(b, q->type, of->constant);
    const hal_ir_value left = of->form == CONSTANT_LEFT || of->form == CONSTANT_ALONE ? c : x;
    const hal_ir_value right = of->form == CONSTANT_RIGHT ? c : x;
    if (of->opcode == HAL_IR_FMA) {
        return hal_ir_fma(b, left, right, of->form == CONSTANT_ADDED ? c : x);
    }
    if (of->form == CONSTANT_ALONE) {
        return hal_ir_unary(b, of->opcode, c);
    }
    const hal_ir_value made = hal_ir_binary(b, of->opcode, left, right);
    return of->opcode >= HAL_IR_EQ ? hal_ir_cast(b, q->type, made) : made;
}

static hal_status kernel_build(const questions *q, hal_ir_kernel **ir)
{
    hal_ir_builder *b = NULL;
    hal_status status = hal_ir_builder_create("constants", &b);
    if (status != HAL_OK) {
        return status;
    }
    const hal_type narrow = is_signed(q->type) ? HAL_TYPE_I32 : HAL_TYPE_U32;
    hal_ir_group_size(b, LANES, 1, 1);
    const hal_ir_memory_id x_memory = hal_ir_binding(b, "x", q->type, HAL_ACCESS_READ);
    const hal_ir_memory_id narrow_memory = hal_ir_binding(b, "narrow", narrow, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", q->type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value x = hal_ir_load(b, x_memory, i);
    const hal_ir_value small = hal_ir_load(b, narrow_memory, i);
    for (uint32_t k = 0; k < q->count; k++) {
        const hal_ir_value operand = q->asked[k].widened ? hal_ir_cast(b, q->type, small) : x;
        hal_ir_store_wide(b, out, i, (int32_t)(k * LANES), HAL_IR_NONE,
                          question_build(b, q, &q->asked[k], operand));
    }
    status = hal_ir_builder_finish(b, ir);
    hal_ir_builder_destroy(b);
    return status;
}

/* The low bits of each element, packed as elements of `bytes`. */
static void elements_write(uint8_t *to, uint32_t bytes, const uint64_t *from)
{
    for (uint32_t i = 0; i < LANES; i++) {
        memcpy(to + (size_t)i * bytes, &from[i], bytes);
    }
}

static void answers_check(probe *p, const questions *q, const uint8_t *out)
{
    const uint32_t bytes = hal_type_size(q->type);
    for (uint32_t k = 0; k < q->count; k++) {
        const question *of = &q->asked[k];
        for (uint32_t i = 0; i < LANES; i++) {
            const uint64_t x =
                of->widened ? integer_of(is_signed(q->type) ? HAL_TYPE_I32 : HAL_TYPE_U32, q->x[i])
                            : q->x[i];
            const uint64_t wanted = right_answer(q, of, x);
            uint64_t got = 0;
            memcpy(&got, out + ((size_t)k * LANES + i) * bytes, bytes);
            if (!is_right(p, q, of, wanted, got)) {
                probe_wrong(p,
                            "%s %s of 0x%llx%s with the constant 0x%llx as %s operand is 0x%llx "
                            "instead of 0x%llx",
                            hal_ir_opcode_name(of->opcode), hal_type_name(q->type),
                            (unsigned long long)x, of->widened ? ", widened," : "",
                            (unsigned long long)of->constant,
                            of->form == CONSTANT_RIGHT   ? "second"
                            : of->form == CONSTANT_ADDED ? "third"
                                                         : "first",
                            (unsigned long long)got, (unsigned long long)wanted);
            }
        }
    }
}

static hal_status questions_ask(probe *p, questions *q)
{
    const uint32_t bytes = hal_type_size(q->type);
    const uint64_t out_bytes = (uint64_t)q->count * LANES * bytes;
    uint8_t x[LANES * 8], narrow[LANES * 4];
    uint8_t *out = malloc(out_bytes);
    hal_ir_kernel *ir = NULL;
    hal_status status = out ? kernel_build(q, &ir) : HAL_ERROR_OUT_OF_MEMORY;
    if (status == HAL_OK) {
        memset(out, 0x5a, out_bytes); /* what a kernel that stores nothing leaves */
        elements_write(x, bytes, q->x);
        elements_write(narrow, 4, q->x);
        const probe_data data[3] = {
            {x, LANES * (uint64_t)bytes}, {narrow, sizeof narrow}, {out, out_bytes}};
        status = probe_run_ir(p, ir, 1, 3, data);
    }
    if (status == HAL_OK) {
        answers_check(p, q, out);
    }
    free(out);
    return status;
}

/* ---- The questions ---- */

static void question_add(questions *q, uint32_t opcode, question_form form, bool widened,
                         uint64_t constant)
{
    if (q->count < MOST_QUESTIONS) {
        q->asked[q->count++] = (question){.opcode = (uint8_t)opcode,
                                          .form = (uint8_t)form,
                                          .widened = widened,
                                          .constant = constant};
    }
}

static void question_add_both(questions *q, uint32_t opcode, bool widened, uint64_t constant)
{
    question_add(q, opcode, CONSTANT_LEFT, widened, constant);
    question_add(q, opcode, CONSTANT_RIGHT, widened, constant);
}

/* The questions are few, since drivers compile them: values that compilers have rules for. */
static hal_status ask_floats(probe *p, hal_type type)
{
    static const uint8_t binary[] = {HAL_IR_ADD, HAL_IR_SUB, HAL_IR_MUL, HAL_IR_DIV,
                                     HAL_IR_MIN, HAL_IR_MAX, HAL_IR_LT};
    static const uint8_t unary[] = {HAL_IR_FLOOR, HAL_IR_TRUNC, HAL_IR_RINT};
    const bool wide = type == HAL_TYPE_F64;
    const double most = wide ? DBL_MAX : (double)FLT_MAX, least = wide ? DBL_MIN : (double)FLT_MIN;
    const double constants[] = {0, -0.0, 1, INFINITY, NAN};
    const double integral[] = {INFINITY, NAN, most, -0.0};
    const double x[LANES] = {0, -0.0, 1, -1.5, 3, INFINITY, -INFINITY, NAN, -1, most, -most, least};
    questions *q = calloc(1, sizeof *q);
    if (!q) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    q->type = type;
    for (int i = 0; i < LANES; i++) {
        q->x[i] = float_bits(type, x[i]);
    }
    for (size_t k = 0; k < sizeof constants / sizeof constants[0]; k++) {
        for (size_t i = 0; i < sizeof binary; i++) {
            question_add_both(q, binary[i], false, float_bits(type, constants[k]));
        }
    }
    for (size_t k = 0; k < sizeof integral / sizeof integral[0]; k++) {
        for (size_t i = 0; i < sizeof unary; i++) {
            question_add(q, unary[i], CONSTANT_ALONE, false, float_bits(type, integral[k]));
        }
    }
    for (int i = 0; i < 2 && (p->info->exactness & HAL_EXACT_FMA); i++) {
        question_add(q, HAL_IR_FMA, CONSTANT_RIGHT, false, float_bits(type, i == 0 ? 0 : -0.0));
        question_add(q, HAL_IR_FMA, CONSTANT_ADDED, false, float_bits(type, i == 0 ? 0 : -0.0));
    }
    const hal_status status = questions_ask(p, q);
    free(q);
    return status;
}

/* Integers of 64 bits are widened ones, as rules of compilers look through that. */
static hal_status ask_integers(probe *p, hal_type type)
{
    static const uint8_t opcodes[] = {HAL_IR_DIV, HAL_IR_REM, HAL_IR_MIN,
                                      HAL_IR_EQ,  HAL_IR_LT,  HAL_IR_LE};
    const bool is_long = hal_type_size(type) == 8;
    const uint64_t top = is_long ? UINT64_C(1) << 63 : UINT64_C(1) << 31, all = 2 * top - 1;
    const uint64_t constants[] = {0, all, 7, top};
    const uint64_t x[LANES] = {0,   1,       all,     5,        0 - UINT64_C(7),   100, 7,  10,
                               top, top - 1, top + 1, 12345678, 0 - UINT64_C(100), 3,   64, 99};
    questions *q = calloc(1, sizeof *q);
    if (!q) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    q->type = type;
    for (int i = 0; i < LANES; i++) {
        q->x[i] = is_long ? x[i] : (uint32_t)x[i];
    }
    for (size_t k = 0; k < sizeof constants / sizeof constants[0]; k++) {
        for (size_t i = 0; i < sizeof opcodes; i++) {
            question_add_both(q, opcodes[i], is_long, constants[k]);
        }
    }
    const hal_status status = questions_ask(p, q);
    free(q);
    return status;
}

hal_status probe_constants_f32(probe *p)
{
    return ask_floats(p, HAL_TYPE_F32);
}

hal_status probe_constants_f64(probe *p)
{
    return ask_floats(p, HAL_TYPE_F64);
}

hal_status probe_constants_i32(probe *p)
{
    const hal_status status = ask_integers(p, HAL_TYPE_I32);
    return status == HAL_OK ? ask_integers(p, HAL_TYPE_U32) : status;
}

hal_status probe_constants_i64(probe *p)
{
    const hal_status status = ask_integers(p, HAL_TYPE_I64);
    return status == HAL_OK ? ask_integers(p, HAL_TYPE_U64) : status;
}
