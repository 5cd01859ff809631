/* pointwise.c: every function of the op library on every storage type it takes, casts between all
 * storage types, select and fill: corner values and random ones, an odd number of elements. */
#include <math.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"
#include "ops/functions.h"
#include "ops/fixture.h"

#define ELEMENTS 1733
#define EVERY 65536 /* numbers of 16 bits */

typedef struct function_case {
    int function;
    hal_type type;
    bool binary;
    bool every; /* on every number of the type, of 16 bits */
} function_case;

typedef struct type_pair {
    hal_type from, to;
} type_pair;

static const double corners[] = {
    0.0,  -0.0,      1.0,       -1.0,     0.5,   -0.5,  1.5,  2.5,   -2.5,    3.0,
    7.0,  -8.0,      31.0,      32.0,     33.0,  100.0, 127., -128., 128.0,   255.0,
    256., 32767.,    -32768.,   65504.,   1e-3,  -1e-3, 1e-7, 1e-8,  -6e-8,   1e-40,
    1e4,  2.0e9,     -2.2e9,    1e10,     -1e19, 2e19,  88.5, -88.5, -103.97, 709.7,
    0.1,  0.3333333, 3.1415927, 0.999999, 1e38,  -1e38, 1e300};
enum { CORNERS = sizeof corners / sizeof corners[0] };

/* Corners first: `phase` 0 goes through them fast, 1 slowly, for as many pairs as possible. */
static void fill_operand(operand *o, random_state *random, unsigned phase)
{
    for (size_t i = 0; i < o->count; i++) {
        uint64_t bits = random_bits(random, o->type);
        const size_t corner = phase == 0 ? i % CORNERS : i / 29 % CORNERS;
        if (i < o->count * 3 / 4) {
            bits = number_bits(o->type, corners[corner]);
            if (i % 53 == 5 + phase) {
                bits = number_bits(o->type, phase == 0 ? -(double)INFINITY : (double)NAN);
            } else if (i % 59 == 7 + phase) {
                bits = number_bits(o->type, phase == 0 ? (double)NAN : (double)INFINITY);
            }
        } else if (hal_type_is_float(o->type) && i % 2 == 0) {
            bits = number_bits(o->type, random_between(random, -12.0, 12.0));
        }
        number_store(o->type, o->elements, i, bits);
    }
}

/* With the operands of the worst element. */
static void report(case_run *run, const comparison *found, const operand *x, const operand *y)
{
    char text[512];
    comparison_text(found, text, sizeof text);
    case_fail(run, "%s; of %.17g and %.17g", text, operand_get(x, found->worst_index),
              operand_get(y, found->worst_index));
}

static void judge_bits(case_run *run, const function_case *tested, const operand *x,
                       const operand *y, const operand *z)
{
    uint8_t *expected = case_allocate(run, z->count, 8);
    for (size_t i = 0; i < z->count; i++) {
        const uint64_t a = number_load(x->type, x->elements, i);
        const uint64_t b = number_load(y->type, y->elements, i);
        number_store(
            z->type, expected, i,
            tested->binary
                ? function_binary_bits((ops_binary_function)tested->function, tested->type, a, b)
                : function_unary_bits((ops_unary_function)tested->function, tested->type, a));
    }
    comparison found;
    if (!compare_bits(z->type, z->elements, expected, z->count, false, &found)) {
        report(run, &found, x, y);
    }
}

/* gelu and silu are x times a factor that is off by a few units in its last place, and by a part of
 * the smallest number where it is that small. Below zero gelu's factor is a difference of nearly
 * equal numbers: its error is that of erf, `units` of the roundoff. */
static void judge_product(case_run *run, double units, const operand *x, const operand *z,
                          const long double *expected)
{
    double *bounds = case_allocate(run, z->count, sizeof *bounds);
    const hal_type value = hal_type_of_value(z->type);
    const double u = number_roundoff(value), out = number_roundoff(z->type);
    const double smallest = value == HAL_TYPE_F64 ? 0x1p-1074 : 0x1p-149;
    const double smallest_out = hal_type_is_narrow_float(z->type)
                                    ? ldexp(1.0, hal_type_float_format(z->type).least)
                                    : smallest;
    for (size_t i = 0; i < z->count; i++) {
        const double size = fabs((double)expected[i]), far = fabs(operand_get(x, i));
        bounds[i] =
            units * u * far + (10.0 * u + out) * size + (1.0 + far) * smallest + smallest_out;
        bounds[i] = isfinite(bounds[i]) ? bounds[i] : 0.0;
    }
    operand_check_bounds(run, z, expected, bounds, "result");
}

static void judge_function(case_run *run, const function_case *tested, const operand *x,
                           const operand *y, const operand *z)
{
    if (!hal_type_is_float(tested->type)) {
        judge_bits(run, tested, x, y, z);
        return;
    }
    long double *expected = case_allocate(run, z->count, sizeof *expected);
    for (size_t i = 0; i < z->count; i++) {
        const long double a = (long double)operand_get(x, i), b = (long double)operand_get(y, i);
        expected[i] = tested->binary ? function_binary((ops_binary_function)tested->function,
                                                       tested->type, a, b)
                                     : function_unary((ops_unary_function)tested->function, a);
        if (ops_may_flush(run, tested->type, a) || ops_may_flush(run, tested->type, expected[i]) ||
            (tested->binary && ops_may_flush(run, tested->type, b))) {
            expected[i] = number_long_value(z->type, number_load(z->type, z->elements, i));
        }
    }
    if (!tested->binary && (tested->function == OPS_GELU || tested->function == OPS_SILU)) {
        judge_product(run, tested->function == OPS_GELU ? 20.0 : 0.0, x, z, expected);
        return;
    }
    const double bound =
        z->type == HAL_TYPE_BOOL ? 0.0
        : tested->binary
            ? function_binary_bound(run, (ops_binary_function)tested->function, tested->type)
            : function_unary_bound(run, (ops_unary_function)tested->function, tested->type);
    comparison found;
    if (!compare_ulps(z->type, z->elements, expected, z->count, bound, &found)) {
        report(run, &found, x, y);
    }
}

static void run_function(case_run *run, const void *parameters)
{
    const function_case *tested = parameters;
    const int64_t shape[1] = {tested->every ? EVERY : ELEMENTS};
    const bool gives_bool = tested->binary
                                ? function_binary_gives_bool((ops_binary_function)tested->function)
                                : function_unary_gives_bool((ops_unary_function)tested->function);
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = operand_create(run, tested->type, 1, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, tested->type, 1, shape, LAYOUT_PLAIN);
    operand z = operand_create(run, gives_bool ? (hal_type)HAL_TYPE_BOOL : tested->type, 1, shape,
                               LAYOUT_PLAIN);
    fill_operand(&x, &random, 0);
    fill_operand(&y, &random, 1);
    for (size_t i = 0; tested->every && i < x.count; i++) {
        number_store(x.type, x.elements, i, i);
    }
    operand_upload(run, &x);
    operand_upload(run, &y);
    operand_poison(run, &z);
    if (tested->binary) {
        case_ok(run,
                ops_binary(run->ops, (ops_binary_function)tested->function, &x.tensor, &y.tensor,
                           &z.tensor),
                "ops_binary");
    } else {
        case_ok(run,
                ops_unary(run->ops, (ops_unary_function)tested->function, &x.tensor, &z.tensor),
                "ops_unary");
    }
    operand_download(run, &z, "result");
    judge_function(run, tested, &x, &y, &z);
}

/* A double that rounds to a narrow float as the element does: where a 64-bit integer has more bits,
 * the neighbour whose last bit is 1. */
static double odd_double(hal_type type, uint64_t bits)
{
    const long double exact = number_long_value(type, bits);
    double value = (double)exact;
    if ((long double)value != exact && (number_of_f64(value) & 1) == 0) {
        value = nextafter(value, exact > (long double)value ? INFINITY : -INFINITY);
    }
    return value;
}

/* CAST to the value type, then STORE to memory; floats saturate to small integers too. There is one
 * rounding to narrow floats. */
static uint64_t cast_bits(hal_type from, hal_type to, uint64_t bits)
{
    const hal_type value_from = hal_type_of_value(from), value_to = hal_type_of_value(to);
    if (hal_type_is_narrow_float(to) && (hal_type_is_integer(from) || from == HAL_TYPE_F64)) {
        return number_bits(to, from == HAL_TYPE_F64 ? number_f64(bits) : odd_double(from, bits));
    }
    if (hal_type_is_float(from) && hal_type_is_integer(to)) {
        return number_bits(to, number_value(from, bits));
    }
    uint64_t value = number_widen(from, bits);
    if (value_from != value_to) {
        value = ir_convert(value_from, value_to, value);
    }
    return number_narrow(to, value);
}

/* Numbers so close to halfway between two of a narrow float that F32 is halfway: rounding two times
 * gives another result than rounding once. */
static void fill_traps(operand *x, hal_type to, random_state *random)
{
    const bool is_float = x->type == HAL_TYPE_F64;
    const int half = hal_type_float_format(to).digits; /* bits below the first one */
    for (size_t i = 0; i < ELEMENTS / 2; i++) {
        const uint64_t odd = random_below(random, 256) << 1 | 1;
        const uint64_t first = UINT64_C(1) << half | (odd & ((UINT64_C(1) << half) - 1));
        const int64_t side = (int64_t)random_below(random, 3) - 1;
        if (is_float) {
            const int exponent = (int)random_below(random, 24) - 12;
            const double value = ldexp((double)first + (double)side * 0x1p-36, exponent);
            number_put(x->type, x->elements, i, random_below(random, 2) != 0 ? value : -value);
            continue;
        }
        const int width = 8 * (int)hal_type_size(x->type);
        const int shift = (int)random_below(random, (uint32_t)(width - half - 1));
        const uint64_t value = (first << shift) + (uint64_t)side;
        number_store(x->type, x->elements, i, random_below(random, 2) != 0 ? value : 0 - value);
    }
}

static void run_cast(case_run *run, const void *parameters)
{
    const type_pair *tested = parameters;
    const int64_t shape[1] = {ELEMENTS};
    random_state random = {run->seed};
    case_claim_storage(run, tested->from);
    case_claim_storage(run, tested->to);
    case_claim_arithmetic(run, tested->from);
    case_claim_arithmetic(run, tested->to);
    uint8_t *expected = case_allocate(run, ELEMENTS, 8);
    operand x = operand_create(run, tested->from, 1, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, tested->to, 1, shape, LAYOUT_PLAIN);
    fill_operand(&x, &random, 0);
    if (hal_type_is_narrow_float(tested->to) &&
        (tested->from == HAL_TYPE_F64 ||
         (hal_type_is_integer(tested->from) && hal_type_size(tested->from) >= 4))) {
        fill_traps(&x, tested->to, &random);
    }
    operand_upload(run, &x);
    operand_poison(run, &y);
    case_ok(run, ops_cast(run->ops, &x.tensor, &y.tensor), "ops_cast");
    operand_download(run, &y, "result");
    for (size_t i = 0; i < ELEMENTS; i++) {
        const uint64_t bits = number_load(x.type, x.elements, i);
        number_store(y.type, expected, i, cast_bits(tested->from, tested->to, bits));
        if (ops_may_flush(run, x.type, number_long_value(x.type, bits)) ||
            ops_may_flush(run, y.type, (long double)number_get(y.type, expected, i))) {
            number_store(y.type, expected, i, number_load(y.type, y.elements, i));
        }
    }
    comparison found;
    if (!compare_bits(y.type, y.elements, expected, ELEMENTS, true, &found)) {
        char text[512];
        comparison_text(&found, text, sizeof text);
        case_fail(run, "%s; of %.17g", text, operand_get(&x, found.worst_index));
    }
}

static void run_where(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[2] = {23, 31};
    random_state random = {run->seed};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    uint8_t *expected = case_allocate(run, 23 * 31, 8);
    operand condition = operand_create(run, HAL_TYPE_BOOL, 2, shape, LAYOUT_PLAIN);
    operand x = operand_create(run, type, 2, shape, LAYOUT_PERMUTED);
    operand y = operand_create(run, type, 2, shape, LAYOUT_BROADCAST);
    operand z = operand_create(run, type, 2, shape, LAYOUT_PLAIN);
    operand_fill(&condition, &random, 0.0, 2.0);
    fill_operand(&x, &random, 0);
    fill_operand(&y, &random, 1);
    operand_upload(run, &condition);
    operand_upload(run, &x);
    operand_upload(run, &y);
    operand_poison(run, &z);
    case_ok(run, ops_where(run->ops, &condition.tensor, &x.tensor, &y.tensor, &z.tensor),
            "ops_where");
    operand_download(run, &z, "result");
    for (size_t i = 0; i < z.count; i++) {
        const operand *from = condition.elements[i] != 0 ? &x : &y;
        number_store(type, expected, i, number_load(type, from->elements, i));
    }
    operand_check_bits(run, &z, expected, true, "result");
}

static void run_fill(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[2] = {7, 13};
    const double values[] = {0.0, 1.0, 42.0, 0.1, 2.75, 3.5};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        uint8_t expected[7 * 13 * 8];
        for (size_t i = 0; i < 7 * 13; i++) {
            const double value = hal_type_is_integer(type) ? rint(values[k]) : values[k];
            number_store(type, expected, i, number_bits(type, value));
        }
        operand y = operand_create(run, type, 2, shape, k == 2 ? LAYOUT_STRIDED : LAYOUT_PLAIN);
        operand_poison(run, &y);
        case_ok(run, ops_fill(run->ops, values[k], &y.tensor), "ops_fill");
        operand_download(run, &y, "result");
        operand_check_bits(run, &y, expected, true, "fill");
    }
}

/* Functions of one value on every number of 16 bits. */
static void add_every(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16};
    for (int f = 0; f < (int)OPS_UNARY_COUNT; f++) {
        for (int t = 0; t < 2; t++) {
            const function_case tested = {f, types[t], false, true};
            if ((function_unary_types((ops_unary_function)f) & HAL_TYPE_BIT(types[t])) != 0) {
                case_add(list, run_function, &tested, sizeof tested,
                         "ops/every(function=%s,type=%s)", ops_unary_name((ops_unary_function)f),
                         hal_type_name(types[t]));
            }
        }
    }
}

void cases_ops_pointwise(case_list *list)
{
    add_every(list);
    for (int binary = 0; binary < 2; binary++) {
        const int count = binary != 0 ? (int)OPS_BINARY_COUNT : (int)OPS_UNARY_COUNT;
        for (int f = 0; f < count; f++) {
            const uint32_t types = binary != 0 ? function_binary_types((ops_binary_function)f)
                                               : function_unary_types((ops_unary_function)f);
            const char *name = binary != 0 ? ops_binary_name((ops_binary_function)f)
                                           : ops_unary_name((ops_unary_function)f);
            for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
                if ((types & HAL_TYPE_BIT(type)) != 0) {
                    const function_case tested = {f, type, binary != 0, false};
                    case_add(list, run_function, &tested, sizeof tested,
                             "ops/%s(type=%s,seed=%llu)", name, hal_type_name(type),
                             (unsigned long long)list->seed);
                    case_covers(list, type, CASE_BINDING, "ops %s", name);
                }
            }
        }
    }
    for (hal_type from = HAL_TYPE_BOOL; from < HAL_TYPE_COUNT; from++) {
        for (hal_type to = HAL_TYPE_BOOL; to < HAL_TYPE_COUNT; to++) {
            const type_pair tested = {from, to};
            case_add(list, run_cast, &tested, sizeof tested, "ops/cast(from=%s,to=%s,seed=%llu)",
                     hal_type_name(from), hal_type_name(to), (unsigned long long)list->seed);
            case_covers(list, to, CASE_BINDING, "ops cast from %s", hal_type_name(from));
        }
        case_add(list, run_where, &from, sizeof from, "ops/where(type=%s)", hal_type_name(from));
        case_covers(list, from, CASE_BINDING, "ops where");
        case_add(list, run_fill, &from, sizeof from, "ops/fill(type=%s)", hal_type_name(from));
        case_covers(list, from, CASE_BINDING, "ops fill");
    }
}
