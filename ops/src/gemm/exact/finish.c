/* Elements of C of the class EXACT, see finish.h. */
#include "finish.h"

#include "lines.h"
#include "operand.h"

#include "tensor/dispatch.h"
#include "tensor/divisor.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"

/* Twice the bias and the bits of a significand, of a product. */
#define PRODUCT_BIAS 2150

/* Less twice the bits of whole numbers: the exponent of their products' unit, see lines.h. */
#define UNIT_BIAS 2044

/* The high words of a NaN and of infinities; their low words are 0. */
#define NAN_HIGH 0x7ff80000u
#define PLUS_HIGH 0x7ff00000u
#define MINUS_HIGH 0xfff00000u

/* What is known of infinities and NaNs among the terms of a sum. */
enum { HAS_NAN = 1, HAS_PLUS = 2, HAS_MINUS = 4 };

enum { VIEW_A, VIEW_B, VIEW_C, VIEW_A_CLASSES, VIEW_B_CLASSES, VIEW_SUMS, VIEWS };

OPS_KEY_STRUCTURES_BEGIN
typedef struct finish_form {
    uint32_t items;
    uint8_t index64;
    uint8_t has_sums;
    uint8_t scales; /* alpha is not 1, or C is read */
    uint8_t reads_c;
    uint8_t slots[VIEWS];
    uint8_t padding[2];
} finish_form;
OPS_KEY_STRUCTURES_END

typedef struct finish_pass {
    finish_form form;
    ops_bindings bindings;
    ops_exact_operand operands[3];
} finish_pass;

/* An element of C in a kernel. */
typedef struct element {
    hal_ir_value item, a_line, b_line; /* numbers in the batch */
    hal_ir_value a_index, b_index, c_index;
} element;

/* A sum of products in a kernel: variables. */
typedef struct exact_sum {
    hal_ir_value exponent; /* the largest of the terms: the sum of two classes; 0: none */
    hal_ir_value specials; /* HAS_NAN and so on */
    hal_ir_value limb[4];  /* in two's complement */
} exact_sum;

static exact_sum sum_begin(hal_ir_builder *b)
{
    exact_sum sum;
    const hal_ir_value zero = hal_ir_u32(b, 0);
    sum.exponent = hal_ir_var(b, zero);
    sum.specials = hal_ir_var(b, zero);
    for (uint32_t i = 0; i < 4; i++) {
        sum.limb[i] = hal_ir_var(b, zero);
    }
    return sum;
}

/* Takes account of a term before any is added. */
static void sum_expect(hal_ir_builder *b, const exact_sum *sum, ops_f64_words x, ops_f64_words y)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), infinity = hal_ir_u32(b, OPS_F64_INFINITY);
    const hal_ir_value x_class = ops_f64_class(b, x), y_class = ops_f64_class(b, y);
    const hal_ir_value least = hal_ir_min(b, x_class, y_class);
    const hal_ir_value most = hal_ir_max(b, x_class, y_class);
    const hal_ir_value is_zero = hal_ir_eq(b, least, zero);
    const hal_ir_value both = hal_ir_add(b, x_class, y_class);
    const hal_ir_value exponent = hal_ir_select(b, is_zero, zero, both);
    hal_ir_set(b, sum->exponent, hal_ir_max(b, hal_ir_get(b, sum->exponent), exponent));
    const hal_ir_value is_special = hal_ir_ge(b, most, infinity);
    const hal_ir_value has_nan = hal_ir_lt(b, infinity, most);
    const hal_ir_value is_nan = hal_ir_or(b, has_nan, is_zero);
    const hal_ir_value signs = hal_ir_xor(b, x.high, y.high);
    const hal_ir_value negative = hal_ir_ne(b, hal_ir_shr(b, signs, hal_ir_u32(b, 31)), zero);
    const hal_ir_value minus = hal_ir_u32(b, HAS_MINUS), plus = hal_ir_u32(b, HAS_PLUS);
    hal_ir_value found = hal_ir_select(b, negative, minus, plus);
    found = hal_ir_select(b, is_nan, hal_ir_u32(b, HAS_NAN), found);
    found = hal_ir_select(b, is_special, found, zero);
    hal_ir_set(b, sum->specials, hal_ir_or(b, hal_ir_get(b, sum->specials), found));
}

/* The same of finite numbers. */
static void sum_expect_finite(hal_ir_builder *b, const exact_sum *sum, ops_f64_words x,
                              ops_f64_words y)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value x_bits = hal_ir_or(b, hal_ir_shl(b, x.high, one), x.low);
    const hal_ir_value y_bits = hal_ir_or(b, hal_ir_shl(b, y.high, one), y.low);
    const hal_ir_value is_zero = hal_ir_eq(b, hal_ir_min(b, x_bits, y_bits), zero);
    const hal_ir_value x_exponent = ops_f64_exponent(b, x), y_exponent = ops_f64_exponent(b, y);
    const hal_ir_value both = hal_ir_add(b, x_exponent, y_exponent);
    const hal_ir_value exponent = hal_ir_select(b, is_zero, zero, both);
    hal_ir_set(b, sum->exponent, hal_ir_max(b, hal_ir_get(b, sum->exponent), exponent));
}

/* Adds a term, truncated towards zero to a unit that is 2^-6 of the last bit of a product with the
 * largest exponent. */
static void sum_add(hal_ir_builder *b, const exact_sum *sum, ops_f64_words x, ops_f64_words y)
{
    const hal_ir_value x_exponent = ops_f64_exponent(b, x), y_exponent = ops_f64_exponent(b, y);
    const hal_ir_value exponent = hal_ir_add(b, x_exponent, y_exponent);
    const hal_ir_value largest = hal_ir_max(b, hal_ir_get(b, sum->exponent), exponent);
    const ops_u128 product = ops_f64_multiply(b, x, y);
    const ops_u128 term = ops_u128_shift_right(b, product, hal_ir_sub(b, largest, exponent));
    const ops_f64_words signs = {x.low, hal_ir_xor(b, x.high, y.high)};
    ops_u128 all;
    for (uint32_t i = 0; i < 4; i++) {
        all.limb[i] = hal_ir_get(b, sum->limb[i]);
    }
    all = ops_u128_add_signed(b, all, term, ops_f64_sign_mask(b, signs));
    for (uint32_t i = 0; i < 4; i++) {
        hal_ir_set(b, sum->limb[i], all.limb[i]);
    }
}

static ops_f64_words sum_round(hal_ir_builder *b, const exact_sum *sum)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), specials = hal_ir_get(b, sum->specials);
    const hal_ir_value largest = hal_ir_cast(b, HAL_TYPE_I32, hal_ir_get(b, sum->exponent));
    ops_u128 all;
    for (uint32_t i = 0; i < 4; i++) {
        all.limb[i] = hal_ir_get(b, sum->limb[i]);
    }
    ops_f64_words y =
        ops_u128_round(b, all, hal_ir_sub(b, largest, hal_ir_i32(b, PRODUCT_BIAS + 6)));
    const hal_ir_value is_plus = hal_ir_eq(b, specials, hal_ir_u32(b, HAS_PLUS));
    const hal_ir_value is_minus = hal_ir_eq(b, specials, hal_ir_u32(b, HAS_MINUS));
    hal_ir_value high = hal_ir_u32(b, NAN_HIGH);
    high = hal_ir_select(b, is_plus, hal_ir_u32(b, PLUS_HIGH), high);
    high = hal_ir_select(b, is_minus, hal_ir_u32(b, MINUS_HIGH), high);
    const hal_ir_value is_number = hal_ir_eq(b, specials, zero);
    y.low = hal_ir_select(b, is_number, y.low, zero);
    y.high = hal_ir_select(b, is_number, y.high, high);
    return y;
}

/* What is done with each term of a sum. */
typedef void (*sum_take)(hal_ir_builder *b, const exact_sum *sum, ops_f64_words x, ops_f64_words y);

/* Takes the terms of an element of steps first to end - 1. */
static void emit_terms(hal_ir_builder *b, const ops_exact_place places[3], const element *e,
                       hal_ir_value first, hal_ir_value end, const exact_sum *sum, sum_take take)
{
    const hal_ir_value step = hal_ir_for(b, first, end, hal_ir_u32(b, 1));
    const hal_ir_value a_index = ops_exact_step_index(b, &places[VIEW_A], e->a_index, step);
    const hal_ir_value b_index = ops_exact_step_index(b, &places[VIEW_B], e->b_index, step);
    const ops_f64_words x = ops_exact_load(b, &places[VIEW_A], a_index, HAL_IR_NONE);
    const ops_f64_words y = ops_exact_load(b, &places[VIEW_B], b_index, HAL_IR_NONE);
    take(b, sum, x, y);
    hal_ir_end(b);
}

/* The number with the residues r (P / p)^-1 of sums, in two's complement. Its magnitude is at most
 * P / 4, so that the fractions' sum is next to the multiple of P to subtract. */
static ops_u128 emit_recombine(hal_ir_builder *b, hal_ir_memory_id sums, hal_ir_value item,
                               hal_ir_value plane)
{
    enum { MULTIPLE = 1 << 29 }; /* above the magnitude of a sum */
    ops_exact_moduli moduli;
    hal_ir_value digits[OPS_EXACT_DIGITS], fraction = HAL_IR_NONE;
    ops_exact_moduli_init(&moduli);
    for (uint32_t j = 0; j < OPS_EXACT_MODULI; j++) {
        const ops_exact_modulus *m = &moduli.of[j];
        const uint32_t offset = (MULTIPLE + m->p - 1) / m->p * m->p;
        const hal_ir_value sum = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_load(b, sums, item));
        hal_ir_value residue = hal_ir_add(b, sum, hal_ir_u32(b, offset));
        ops_divide_by_constant(b, m->p, &residue);
        const hal_ir_value part = hal_ir_mul(b, residue, hal_ir_u32(b, m->fraction));
        fraction = j == 0 ? part : hal_ir_add(b, fraction, part);
        for (uint32_t d = 0; d < OPS_EXACT_DIGITS; d++) {
            const hal_ir_value term = hal_ir_mul(b, residue, hal_ir_u32(b, m->quotient[d]));
            digits[d] = j == 0 ? term : hal_ir_add(b, digits[d], term);
        }
        item = hal_ir_add(b, item, plane);
    }
    const hal_ir_value half = hal_ir_u32(b, 1u << (OPS_EXACT_FRACTION_BITS - 1));
    const hal_ir_value multiple =
        hal_ir_shr(b, hal_ir_add(b, fraction, half), hal_ir_u32(b, OPS_EXACT_FRACTION_BITS));
    const hal_ir_value low = hal_ir_i32(b, 0xffff), shift = hal_ir_i32(b, 16);
    hal_ir_value carry = hal_ir_i32(b, 0);
    for (uint32_t d = 0; d < OPS_EXACT_DIGITS; d++) { /* carries are signed */
        const hal_ir_value less = hal_ir_mul(b, multiple, hal_ir_u32(b, moduli.product[d]));
        const hal_ir_value digit = hal_ir_sub(b, digits[d], less);
        carry = hal_ir_add(b, carry, hal_ir_cast(b, HAL_TYPE_I32, digit));
        digits[d] = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_and(b, carry, low));
        carry = hal_ir_shr(b, carry, shift);
    }
    ops_u128 x;
    for (uint32_t i = 0; i < 4; i++) {
        const hal_ir_value upper = hal_ir_shl(b, digits[2 * i + 1], hal_ir_u32(b, 16));
        x.limb[i] = hal_ir_or(b, digits[2 * i], upper);
    }
    return x;
}

/* What is known of a line. */
static void emit_known(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value line,
                       hal_ir_value known[OPS_EXACT_LINE_WORDS])
{
    const hal_ir_value index = hal_ir_mul(b, line, hal_ir_u32(b, OPS_EXACT_LINE_WORDS));
    for (uint32_t i = 0; i < OPS_EXACT_LINE_WORDS; i++) {
        known[i] = hal_ir_load_wide(b, memory, index, (int32_t)i, 1, HAL_IR_NONE);
    }
}

/* The element of the sums of residues, with the classes of its lines. */
static ops_f64_words emit_from_sums(hal_ir_builder *b, hal_ir_memory_id sums, const element *e,
                                    hal_ir_value plane, hal_ir_value classes, hal_ir_value bits)
{
    const ops_u128 x = emit_recombine(b, sums, e->item, plane);
    const hal_ir_value unit = hal_ir_shl(b, bits, hal_ir_i32(b, 1));
    const hal_ir_value scale = hal_ir_cast(b, HAL_TYPE_I32, classes);
    const hal_ir_value exponent = hal_ir_sub(b, scale, hal_ir_i32(b, UNIT_BIAS));
    return ops_u128_round(b, x, hal_ir_sub(b, exponent, unit));
}

/* The element of all steps of its lines, of which nothing is known. */
static ops_f64_words emit_plain(hal_ir_builder *b, const ops_exact_place places[3],
                                const element *e, hal_ir_value k)
{
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const exact_sum sum = sum_begin(b);
    emit_terms(b, places, e, zero, k, &sum, sum_expect);
    emit_terms(b, places, e, zero, k, &sum, sum_add);
    return sum_round(b, &sum);
}

/* The element of the operands: of finite lines from the steps where both have numbers that are not
 * 0; of those with an infinity, which all are infinite or NaN, from the kinds of all terms; with a
 * NaN, from none. */
static ops_f64_words emit_from_operands(hal_ir_builder *b, const ops_exact_place places[3],
                                        const element *e, hal_ir_value k,
                                        const hal_ir_value x[OPS_EXACT_LINE_WORDS],
                                        const hal_ir_value y[OPS_EXACT_LINE_WORDS])
{
    const hal_ir_value zero = hal_ir_u32(b, 0), infinity = hal_ir_u32(b, OPS_F64_INFINITY);
    const hal_ir_value most = hal_ir_max(b, x[OPS_EXACT_LINE_CLASS], y[OPS_EXACT_LINE_CLASS]);
    const hal_ir_value is_nan = hal_ir_eq(b, most, hal_ir_u32(b, OPS_F64_NAN));
    const hal_ir_value is_infinite = hal_ir_eq(b, most, infinity);
    const hal_ir_value is_finite = hal_ir_lt(b, most, infinity);
    hal_ir_value end = hal_ir_min(b, x[OPS_EXACT_LINE_END], y[OPS_EXACT_LINE_END]);
    const hal_ir_value rest = hal_ir_min(b, x[OPS_EXACT_LINE_REST], y[OPS_EXACT_LINE_REST]);
    const hal_ir_value first = hal_ir_sub(b, k, rest);
    const exact_sum sum = sum_begin(b);
    end = hal_ir_select(b, is_finite, end, zero);
    emit_terms(b, places, e, zero, hal_ir_select(b, is_infinite, k, zero), &sum, sum_expect);
    emit_terms(b, places, e, first, end, &sum, sum_expect_finite);
    emit_terms(b, places, e, first, end, &sum, sum_add);
    ops_f64_words made = sum_round(b, &sum);
    made.high = hal_ir_select(b, is_nan, hal_ir_u32(b, NAN_HIGH), made.high);
    return made;
}

/* The element from the sums, where those of the magnitudes show that this is within the bound, else
 * from the operands. */
static ops_f64_words emit_checked(hal_ir_builder *b, const finish_form *form,
                                  const ops_exact_place places[3], const element *e, hal_ir_value k,
                                  hal_ir_value plane)
{
    const hal_ir_value bits = hal_ir_scalar_value(b, "bits", HAL_TYPE_I32);
    const hal_ir_value enough = hal_ir_scalar_value(b, "enough", HAL_TYPE_I32);
    const hal_ir_value zero = hal_ir_u32(b, 0), infinity = hal_ir_u32(b, OPS_F64_INFINITY);
    const hal_ir_memory_id sums = form->slots[VIEW_SUMS];
    hal_ir_value row[OPS_EXACT_LINE_WORDS], column[OPS_EXACT_LINE_WORDS];
    emit_known(b, form->slots[VIEW_A_CLASSES], e->a_line, row);
    emit_known(b, form->slots[VIEW_B_CLASSES], e->b_line, column);
    const hal_ir_value first = row[OPS_EXACT_LINE_CLASS], second = column[OPS_EXACT_LINE_CLASS];
    const hal_ir_value is_zero = hal_ir_eq(b, hal_ir_min(b, first, second), zero);
    const hal_ir_value is_finite = hal_ir_lt(b, hal_ir_max(b, first, second), infinity);
    const hal_ir_value last = hal_ir_mul(b, plane, hal_ir_u32(b, OPS_EXACT_MODULI));
    const hal_ir_value magnitudes = hal_ir_load(b, sums, hal_ir_add(b, e->item, last));
    hal_ir_value holds = hal_ir_or(b, hal_ir_ge(b, magnitudes, enough), is_zero);
    holds = hal_ir_and(b, holds, is_finite);
    const hal_ir_value low = hal_ir_var(b, zero), high = hal_ir_var(b, zero);
    hal_ir_if(b, holds);
    const hal_ir_value classes = hal_ir_add(b, first, second);
    ops_f64_words y = emit_from_sums(b, sums, e, plane, classes, bits);
    hal_ir_set(b, low, y.low);
    hal_ir_set(b, high, y.high);
    hal_ir_else(b);
    y = emit_from_operands(b, places, e, k, row, column);
    hal_ir_set(b, low, y.low);
    hal_ir_set(b, high, y.high);
    hal_ir_end(b);
    y.low = hal_ir_get(b, low);
    y.high = hal_ir_get(b, high);
    return y;
}

/* alpha x + beta C, rounded once. */
static ops_f64_words emit_scaled(hal_ir_builder *b, const finish_form *form,
                                 const ops_exact_place *c, hal_ir_value c_index, ops_f64_words x)
{
    ops_f64_words factors[2], terms[2] = {x, x};
    for (uint32_t i = 0; i < 2; i++) {
        factors[i].low = ops_scalar(b, "factor", i, 0, HAL_TYPE_U32);
        factors[i].high = ops_scalar(b, "factor", i, 1, HAL_TYPE_U32);
    }
    if (form->reads_c) {
        terms[1] = ops_exact_load(b, c, c_index, HAL_IR_NONE);
    }
    const exact_sum sum = sum_begin(b);
    for (uint32_t i = 0; i <= form->reads_c; i++) {
        sum_expect(b, &sum, factors[i], terms[i]);
    }
    for (uint32_t i = 0; i <= form->reads_c; i++) {
        sum_add(b, &sum, factors[i], terms[i]);
    }
    return sum_round(b, &sum);
}

static void emit_finish(hal_ir_builder *b, const void *user)
{
    const finish_pass *p = user;
    const finish_form *form = &p->form;
    ops_exact_place places[3];
    hal_ir_group_size(b, form->items, 1, 1);
    ops_declare_bindings(b, &p->bindings);
    for (uint32_t i = 0; i < 3; i++) {
        places[i] = ops_exact_operand_declare(b, &p->operands[i], form->index64, i);
    }
    const hal_ir_value total = hal_ir_scalar_value(b, "total", HAL_TYPE_U32);
    const hal_ir_value m = hal_ir_scalar_value(b, "m", HAL_TYPE_U32);
    const ops_divisor of_m = ops_divisor_declare(b, 0);
    const hal_ir_value n = hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    const ops_divisor of_n = ops_divisor_declare(b, 1);
    const hal_ir_value k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    element e;
    e.item = hal_ir_mul(b, ops_index_group(b), hal_ir_u32(b, form->items));
    e.item = hal_ir_add(b, e.item, hal_ir_id(b, HAL_IR_LOCAL_ID, 0));
    hal_ir_if(b, hal_ir_lt(b, e.item, total));
    e.a_line = ops_divisor_quotient(b, &of_n, e.item);
    const hal_ir_value column = hal_ir_sub(b, e.item, hal_ir_mul(b, e.a_line, n));
    const hal_ir_value batch = ops_divisor_quotient(b, &of_m, e.a_line);
    const hal_ir_value row = hal_ir_sub(b, e.a_line, hal_ir_mul(b, batch, m));
    e.b_line = hal_ir_add(b, hal_ir_mul(b, batch, n), column);
    e.a_index = ops_exact_line_index(b, &places[VIEW_A], batch, row);
    e.b_index = ops_exact_line_index(b, &places[VIEW_B], batch, column);
    e.c_index = ops_exact_line_index(b, &places[VIEW_C], batch, row);
    e.c_index = ops_exact_step_index(b, &places[VIEW_C], e.c_index, column);
    ops_f64_words y =
        form->has_sums ? emit_checked(b, form, places, &e, k, total) : emit_plain(b, places, &e, k);
    if (form->scales) {
        y = emit_scaled(b, form, &places[VIEW_C], e.c_index, y);
    }
    ops_exact_store(b, &places[VIEW_C], e.c_index, y);
    hal_ir_end(b);
}

static void pass_begin(const ops_context *context, const ops_exact_finish *f, finish_pass *p)
{
    const ops_tensor *const tensors[3] = {&f->a, &f->b, &f->c};
    const int64_t *shape = f->c.shape;
    memset(p, 0, sizeof *p);
    p->form.items = ops_group_items(context->info);
    p->form.reads_c = f->beta != 0;
    p->form.scales = f->alpha != 1 || f->beta != 0;
    p->form.has_sums = f->sums != NULL;
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t access = i < 2             ? HAL_ACCESS_READ
                                : p->form.reads_c ? HAL_ACCESS_READ_WRITE
                                                  : HAL_ACCESS_WRITE;
        ops_exact_operand_bind(context, &p->bindings, tensors[i], access, &p->operands[i]);
        p->form.slots[i] = p->operands[i].slot;
    }
    if (f->sums) {
        const int64_t elements = OPS_EXACT_PLANES * shape[0] * shape[1] * shape[2];
        const int64_t a_words = OPS_EXACT_LINE_WORDS * shape[0] * shape[1];
        const int64_t b_words = OPS_EXACT_LINE_WORDS * shape[0] * shape[2];
        const ops_tensor more[3] = {{f->a_classes, HAL_TYPE_U32, 1, 0, {a_words}, {1}},
                                    {f->b_classes, HAL_TYPE_U32, 1, 0, {b_words}, {1}},
                                    {f->sums, HAL_TYPE_I32, 1, 0, {elements}, {1}}};
        for (uint32_t i = 0; i < 3; i++) {
            p->form.slots[3 + i] =
                (uint8_t)ops_bind(context, &p->bindings, &more[i], HAL_ACCESS_READ);
        }
    }
    ops_bindings_merge(&p->bindings, p->form.slots, VIEWS);
    for (uint32_t i = 0; i < 3; i++) {
        p->operands[i].slot = p->form.slots[i];
    }
    p->form.index64 = ops_exact_needs_index64(&p->bindings);
}

static void put_bits(double value, ops_block *block)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    ops_put_u32(block, (uint32_t)bits);
    ops_put_u32(block, (uint32_t)(bits >> 32));
}

static void pass_put(const ops_exact_finish *f, const finish_pass *p, ops_block *block)
{
    const int64_t *shape = f->c.shape;
    ops_block_begin(block);
    for (uint32_t i = 0; i < 3; i++) {
        ops_exact_operand_put(&p->bindings, &p->operands[i], p->form.index64, block);
    }
    ops_put_u32(block, (uint32_t)(shape[0] * shape[1] * shape[2]));
    ops_put_u32(block, (uint32_t)shape[1]);
    ops_divisor_put((uint32_t)shape[1], block);
    ops_put_u32(block, (uint32_t)shape[2]);
    ops_divisor_put((uint32_t)shape[2], block);
    ops_put_u32(block, (uint32_t)f->a.shape[2]);
    if (p->form.has_sums) {
        /* Truncation changes an element by 2 k 2^bits units at most, and (k - 1) u |A||B| of the
         * bound is left for it: enough is |A||B| >= 2^(55 + bits) units. */
        ops_put_u32(block, f->bits);
        ops_put_u32(block, 1u << (55 + 2 * OPS_EXACT_MAGNITUDE_BITS - f->bits));
    }
    if (p->form.scales) {
        put_bits(f->alpha, block);
        put_bits(f->beta, block);
    }
}

hal_status ops_exact_finish_record(ops_context *context, const ops_exact_finish *finish)
{
    finish_pass p;
    const int64_t *shape = finish->c.shape;
    pass_begin(context, finish, &p);
    const uint64_t total = (uint64_t)(shape[0] * shape[1] * shape[2]);
    uint32_t grid[3];
    HAL_TRY(ops_grid_spread(context, "ops_gemm", ops_ceil_divide(total, p.form.items), grid));
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    ops_cache_key_begin(&key, OPS_FAMILY_EXACT_FINISH);
    ops_cache_key_append(&key, &p.form, sizeof p.form);
    ops_bindings_key(&p.bindings, p.form.slots, VIEWS, &key);
    HAL_TRY(ops_cache_get(context, &key, "exact_finish", emit_finish, &p, &entry));
    pass_put(finish, &p, &block);
    return ops_dispatch(context, entry, grid, &p.bindings, &block);
}
