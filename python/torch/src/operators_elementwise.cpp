// Operators of one element each: functions, arithmetic, comparisons, choice,
// and in-place updates.
#include <cmath>
#include <limits>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "call.h"

namespace halyard
{
namespace
{

constexpr double INFINITE = std::numeric_limits<double>::infinity();

template <ops_unary_function F> Results function(const Call &c)
{
    return {unary(F, c[0])};
}

// PyTorch's shapes must broadcast; its message says which do not.
void check_shapes(const Call &c)
{
    if (!c.is_number(0) && !c.is_number(1)) {
        at::infer_size_dimvector(c.tensor(0).sizes(), c.tensor(1).sizes());
    }
}

Array binary_of(const Call &c, ops_binary_function f, size_t x = 0, size_t y = 1)
{
    if (c.is_number(y) && !c.is_number(x)) {
        return binary(f, c[x], c.number(y));
    }
    if (c.is_number(x) && !c.is_number(y)) {
        return binary(f, c.number(x), c[y]);
    }
    return binary(f, c[x], c[y]);
}

template <ops_binary_function F> Results arithmetic(const Call &c)
{
    check_shapes(c);
    return {binary_of(c, F)};
}

// Of BOOL: or, and.
template <ops_binary_function F, ops_binary_function OF_BOOL> Results logic_or(const Call &c)
{
    check_shapes(c);
    return {binary_of(c, c.common() == HAL_TYPE_BOOL ? OF_BOOL : F)};
}

template <ops_binary_function F> Results add_scaled(const Call &c)
{
    check_shapes(c);
    if (c.common() == HAL_TYPE_BOOL) {
        if (F == OPS_SUB) {
            throw Unsupported("subtraction of bool");
        }
        return {binary_of(c, OPS_OR)};
    }
    const double alpha = c.number_or(2, 1);
    if (alpha == 1) {
        return {binary_of(c, F)};
    }
    if (c.is_number(1)) {
        return {binary(F, c[0], c.number(1) * alpha)};
    }
    return {binary(F, c[0], c[1] * alpha)};
}

Array as_bool(const Call &c, size_t index)
{
    if (c.is_number(index)) {
        return scalar(c.context(), HAL_TYPE_BOOL, c.number(index) != 0);
    }
    return c.cast_to(index, HAL_TYPE_BOOL);
}

template <ops_binary_function F> Results logical(const Call &c)
{
    return {binary(F, as_bool(c, 0), as_bool(c, 1))};
}

template <ops_unary_function F, bool IS_CONSTANT_OF_INTEGERS> Results rounding(const Call &c)
{
    const Array x = c[0];
    return {hal_type_is_float(x.type()) ? unary(F, x) : x};
}

// ---- Division ----

Array floor_quotient(const Array &x, const Array &y)
{
    if (hal_type_is_float(x.type())) { // exact where x / y rounds up to a whole number
        const Array remainder = binary(OPS_REM, x, y);
        const Array adjusts =
            both(not_equal(remainder, 0), not_equal(less(remainder, 0), less(y, 0)));
        const Array quotient = (x - remainder) / y;
        const Array lower = where(adjusts, quotient - 1, quotient);
        const Array rounded = unary(OPS_FLOOR, lower);
        const Array nearest = where(greater(lower - rounded, 0.5), rounded + 1, rounded);
        return where(equal(y, 0), x / y, nearest);
    }
    const Array quotient = x / y, remainder = x - quotient * y;
    if (!hal_type_is_signed(x.type())) {
        return quotient;
    }
    const Array adjusts = both(not_equal(remainder, 0), not_equal(less(remainder, 0), less(y, 0)));
    return where(adjusts, quotient - 1, quotient);
}

// The processor raises an error where a divisor is zero.
void require_divisor(const Call &c)
{
    const hal_type type = c.common();
    if (hal_type_is_float(type)) {
        return;
    }
    if (!c.is_number(1) || c.number(1) == 0) {
        throw Unsupported("division of integers by a tensor");
    }
    const int bits = 8 * (int)hal_type_size(type) - hal_type_is_signed(type);
    const double above = std::min(std::ldexp(1.0, bits), 9007199254740993.0), n = c.number(1);
    if (n >= above || n < (hal_type_is_signed(type) ? -above : 0)) {
        throw Unsupported("division of integers by a number that the type lacks, or of 54 bits");
    }
}

Results floor_divide(const Call &c)
{
    require_divisor(c);
    return {floor_quotient(c[0], c[1])};
}

Results divide_by_mode(const Call &c)
{
    const auto rounding = c.value(2).toOptional<std::string_view>();
    const bool is_float = hal_type_is_float(c.common());
    if (!rounding) {
        if (!is_float) {
            throw Unsupported("true division of integers by mode");
        }
        return {c[0] / c[1]};
    }
    if (*rounding == "floor") {
        return floor_divide(c);
    }
    require_divisor(c);
    const Array quotient = c[0] / c[1]; // of integers towards zero
    return {is_float ? unary(OPS_TRUNC, quotient) : quotient};
}

Results remainder(const Call &c)
{
    if (!hal_type_is_float(c.common()) && !c.is_number(1)) {
        throw Unsupported("remainder of integers");
    }
    if (c.is_number(1) && c.number(1) == 0 && !hal_type_is_float(c.common())) {
        throw Unsupported("remainder by zero");
    }
    const Array y = c[1], r = binary(OPS_REM, c[0], y);
    if (!hal_type_is_float(r.type()) && !hal_type_is_signed(r.type())) {
        return {r};
    }
    return {where(both(not_equal(r, 0), not_equal(less(r, 0), less(y, 0))), r + y, r)};
}

Results fmod(const Call &c)
{
    if (!hal_type_is_float(c.common())) {
        throw Unsupported("fmod of integers");
    }
    return {binary_of(c, OPS_REM)};
}

// ---- Powers and hyperbolic functions ----

Results ldexp(const Call &c)
{
    return {c[0] * unary(OPS_EXP2, c[1])};
}

Results pow(const Call &c)
{
    if (!hal_type_is_float(c.common())) {
        if (c.is_number(1) && c.number(1) == 2) {
            return {square(c[0])};
        }
        throw Unsupported("powers of integers");
    }
    if (c.is_number(1)) {
        const double exponent = c.number(1);
        const Array x = c[0];
        if (exponent == 2) {
            return {square(x)};
        }
        if (exponent == 0.5) {
            return {unary(OPS_SQRT, x)};
        }
        if (exponent == 3) {
            return {square(x) * x};
        }
        if (exponent == 1) {
            return {x};
        }
        if (exponent == -1) {
            return {unary(OPS_RECIPROCAL, x)};
        }
        if (exponent == -0.5) {
            return {unary(OPS_RSQRT, x)};
        }
    }
    return {binary_of(c, OPS_POW)};
}

Results asinh(const Call &c)
{
    const Array x = c[0], m = unary(OPS_ABS, x), m2 = square(m);
    const Array small = unary(OPS_LOG1P, m + m2 / (unary(OPS_SQRT, m2 + 1) + 1));
    const Array large = unary(OPS_LOG, m) + std::log(2.0); // where the square would overflow
    const Array value = where(greater(m, 1e9), large, small);
    return {where(less(x, 0), -value, where(equal(x, 0), x, value))};
}

Results acosh(const Call &c)
{
    const Array x = c[0], t = x - 1;
    const Array small = unary(OPS_LOG1P, t + unary(OPS_SQRT, t * 2 + square(t)));
    return {where(greater(x, 1e9), unary(OPS_LOG, x) + std::log(2.0), small)};
}

Results atanh(const Call &c)
{
    const Array x = c[0], m = unary(OPS_ABS, x);
    const Array value = unary(OPS_LOG1P, m * 2 / (1 - m)) * 0.5;
    return {where(less(x, 0), -value, value)};
}

Results hypot(const Call &c)
{
    const Array x = unary(OPS_ABS, c[0]), y = unary(OPS_ABS, c[1]);
    const Array most = maximum(x, y), least = minimum(x, y), ratio = least / most;
    const Array value = most * unary(OPS_SQRT, square(ratio) + 1);
    const Array is_infinite = either(equal(x, INFINITE), equal(y, INFINITE));
    return {where(is_infinite, INFINITE, where(equal(most, 0), most, value))};
}

Results xlogy(const Call &c)
{
    const Array x = c[0], y = c[1], product = x * unary(OPS_LOG, y);
    return {where(unary(OPS_IS_NAN, y), y, where(equal(x, 0), 0.0, product))};
}

// log(exp(x) + exp(y)) without overflow.
Results logaddexp(const Call &c)
{
    const Array x = c[0], y = c[1], most = maximum(x, y);
    const Array value = most + unary(OPS_LOG1P, exp_of(-unary(OPS_ABS, x - y)));
    return {where(unary(OPS_IS_INFINITE, most), most, value)};
}

Results fractional(const Call &c)
{
    const Array x = c[0];
    return {x - unary(OPS_TRUNC, x)};
}

Results sign(const Call &c)
{
    if (c.common() == HAL_TYPE_BOOL) {
        return {c[0]};
    }
    const Array x = c[0]; // NaN gives 0
    return {where(unary(OPS_IS_NAN, hal_type_is_float(x.type()) ? x : cast(x, HAL_TYPE_F32)), 0.0,
                  unary(OPS_SIGN, x))};
}

Results rounded(const Call &c)
{
    const Array x = c[0];
    return {hal_type_is_float(x.type()) ? unary(OPS_ROUND, x) : x};
}

Results is_infinity(const Call &c, double infinity)
{
    const Array x = c.plain(0);
    return {hal_type_is_float(x.type()) ? equal(x, infinity) : not_equal(x, x)};
}

Results is_nan(const Call &c)
{
    const Array x = c.plain(0);
    return {hal_type_is_float(x.type()) ? unary(OPS_IS_NAN, x) : not_equal(x, x)};
}

// ---- Bounds ----

// A bound is a number or a tensor, or is missing. NaN passes; PyTorch's order
// of the bounds.
Array bounded(const Call &c, const Array &x, ops_binary_function f, size_t bound)
{
    if (!c.has(bound)) {
        return x;
    }
    return c.is_number(bound) ? binary(f, x, c.number(bound)) : binary(f, x, c[bound]);
}

Results clamp(const Call &c)
{
    return {bounded(c, bounded(c, c[0], OPS_MAXIMUM, 1), OPS_MINIMUM, 2)};
}

template <ops_binary_function F> Results clamp_once(const Call &c)
{
    return {bounded(c, c[0], F, 1)};
}

Results clamp_scalars(const Call &c)
{
    // A float bound of integers changes the type, which the common type has only
    // for one bound.
    if (!hal_type_is_float(c.common()) && c.has(2) && c.value(2).isDouble()) {
        throw Unsupported("float bounds of integers");
    }
    return clamp(c);
}

template <ops_binary_function F> Results extreme_without_nan(const Call &c)
{
    const Array x = c[0], y = c[1];
    if (!hal_type_is_float(x.type())) {
        return {binary(F, x, y)};
    }
    return {where(unary(OPS_IS_NAN, x), y, where(unary(OPS_IS_NAN, y), x, binary(F, x, y)))};
}

template <ops_binary_function F, ops_binary_function OF_BOOL> Results extreme(const Call &c)
{
    check_shapes(c);
    return {binary(c.common() == HAL_TYPE_BOOL ? OF_BOOL : F, c[0], c[1])};
}

Results replace_nan(const Call &c)
{
    if (!hal_type_is_float(type_of(c.tensor(0).scalar_type()))) {
        return {c.plain(0)}; // whose common type with the new values may be a float
    }
    const Array x = c[0];
    double highest = 3.4028234663852886e38;
    switch (c.common()) {
    case HAL_TYPE_F64:
        highest = std::numeric_limits<double>::max();
        break;
    case HAL_TYPE_F16:
        highest = 65504;
        break;
    case HAL_TYPE_BF16:
        highest = 3.3895313892515355e38;
        break;
    default:
        break;
    }
    const double nan = c.has(1) ? c.value(1).toDouble() : 0;
    const double above = c.has(2) ? c.value(2).toDouble() : highest;
    const double below = c.has(3) ? c.value(3).toDouble() : -highest;
    const Array finite = where(equal(x, INFINITE), above, where(equal(x, -INFINITE), below, x));
    return {where(unary(OPS_IS_NAN, x), nan, finite)};
}

// ---- Choice ----

Results choose(const Call &c)
{
    // The condition has no part in the common type.
    at::native::ResultTypeState state;
    const ScalarType type = at::result_type(c.tensor(1), c.tensor(2));
    if (type_of(type) == HAL_TYPE_NONE) {
        throw Unsupported("a type that Halyard lacks");
    }
    const hal_type t = type_of(type);
    at::infer_size(at::infer_size(c.tensor(0).sizes(), c.tensor(1).sizes()), c.tensor(2).sizes());
    const auto operand = [&](size_t i) {
        return c.is_number(i) ? scalar(c.context(), t, c.number(i)) : c.cast_to(i, t);
    };
    const Array condition = as_bool(c, 0), x = operand(1), y = operand(2);
    const Array chosen = where(condition, x, y);
    return {chosen};
}

Results masked_fill(const Call &c)
{
    const Array x = c.plain(0);
    TORCH_CHECK(!c.value(2).isTensor() || c.tensor(2).dim() == 0,
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
                c.tensor(2).dim(), " dimension(s).");
    const double number = c.number(2);
    if (hal_type_is_integer(x.type()) && number != std::trunc(number)) {
        throw Unsupported("a fraction for integers");
    }
    return {where(as_bool(c, 1), number, x)};
}

Results masked_fill_in_place(const Call &c) // whose number is read before
{
    at::assert_no_partial_overlap(c.tensor(0), c.tensor(1));
    return masked_fill(c);
}

Results fill(const Call &c)
{
    const Tensor &x = c.tensor(0);
    return {Array(ops_array_full(c.context(), type_of(x.scalar_type()), (uint32_t)x.dim(),
                                 x.sizes().data(), c.count() > 1 ? c.number(1) : 0))};
}

Results fill_tensor(const Call &c)
{
    if (c.is_number(1)) {
        return fill(c);
    }
    const Array value = c.plain(1);
    TORCH_CHECK(value.rank() == 0,
                "fill_ only supports 0-dimension value tensor but got tensor with ", value.rank(),
                " dimensions.");
    return {broadcast(value, c.tensor(0).sizes())};
}

// ---- x + value * a o b, and between two values ----

template <ops_binary_function F> Results add_combined(const Call &c)
{
    if (F == OPS_DIV && !hal_type_is_float(c.common())) {
        throw Unsupported("addcdiv of integers");
    }
    const double factor = c.number_or(3, 1);
    const Array combined = binary(F, c[1], c[2]);
    return {c[0] + (factor == 1 ? combined : combined * factor)};
}

// PyTorch's formula, which is exact at both ends.
Results interpolate(const Call &c)
{
    const Array x = c[0], end = c[1], span = end - x;
    if (c.is_number(2)) {
        const double w = c.number(2);
        return {std::abs(w) < 0.5 ? x + span * w : end - span * (1 - w)};
    }
    const Array w = c[2];
    return {where(less(unary(OPS_ABS, w), 0.5), x + w * span, end - span * (1 - w))};
}

template <ops_binary_function F> Results compare(const Call &c)
{
    check_shapes(c);
    return {binary_of(c, F)};
}

// What clone and a cast of the type do.
Results bitwise(const Call &c, ops_binary_function f)
{
    check_shapes(c);
    if (hal_type_is_float(c.common())) {
        throw Unsupported("bits of floats");
    }
    return {binary_of(c, f)};
}

Results heaviside(const Call &c)
{
    const Array x = c[0];
    return {where(equal(x, 0), c[1], cast(greater(x, 0), x.type()))};
}

Results copysign(const Call &c)
{
    const Array y = c[1], magnitude = unary(OPS_ABS, c[0]);
    // 1 / -0 is below 0.
    const Array is_negative = either(less(y, 0), both(equal(y, 0), less(1.0 / y, 0)));
    return {where(is_negative, -magnitude, magnitude)};
}

Results negative(const Call &c)
{
    if (c.common() == HAL_TYPE_BOOL) {
        throw Unsupported("the negative of bool");
    }
    return {-c[0]};
}

Results absolute(const Call &c)
{
    return {c.common() == HAL_TYPE_BOOL || hal_type_kind_of(c.common()) == HAL_TYPE_KIND_UNSIGNED
                ? c[0]
                : unary(OPS_ABS, c[0])};
}

#define FORMS(name) name " " name "_ " name ".out"
#define TENSOR_FORMS(name) name ".Tensor " name "_.Tensor " name ".out"
#define COMPARISON(name)                                                                       \
    name ".Tensor " name ".Scalar " name "_.Tensor " name "_.Scalar " name ".Tensor_out " name \
         ".Scalar_out"
#define BITWISE(name)                                                                          \
    name ".Tensor " name ".Scalar " name "_.Tensor " name "_.Scalar " name ".Tensor_out " name \
         ".Scalar_out"

const Operator TABLE[] = {
    {FORMS("neg"), Types::SINGLE, negative},
    {FORMS("abs"), Types::SINGLE, absolute},
    {FORMS("sgn"), Types::SINGLE, sign},
    {FORMS("sign"), Types::SINGLE, sign},
    {FORMS("bitwise_not"), Types::SINGLE, function<OPS_NOT>},
    {FORMS("logical_not"), Types::PLAIN,
     [](const Call &c) -> Results { return {logical_not(as_bool(c, 0))}; }},
    {FORMS("sqrt"), Types::SINGLE_FLOAT, function<OPS_SQRT>},
    {FORMS("rsqrt"), Types::SINGLE_FLOAT, function<OPS_RSQRT>},
    {FORMS("reciprocal"), Types::SINGLE_FLOAT, function<OPS_RECIPROCAL>},
    {FORMS("exp"), Types::SINGLE_FLOAT, function<OPS_EXP>},
    {FORMS("exp2"), Types::SINGLE_FLOAT, function<OPS_EXP2>},
    {FORMS("expm1"), Types::SINGLE_FLOAT, function<OPS_EXPM1>},
    {FORMS("log"), Types::SINGLE_FLOAT, function<OPS_LOG>},
    {FORMS("log2"), Types::SINGLE_FLOAT, function<OPS_LOG2>},
    {FORMS("log10"), Types::SINGLE_FLOAT, function<OPS_LOG10>},
    {FORMS("log1p"), Types::SINGLE_FLOAT, function<OPS_LOG1P>},
    {FORMS("sin"), Types::SINGLE_FLOAT, function<OPS_SIN>},
    {FORMS("cos"), Types::SINGLE_FLOAT, function<OPS_COS>},
    {FORMS("tan"), Types::FLOAT, function<OPS_TAN>},
    {FORMS("asin"), Types::SINGLE_FLOAT, function<OPS_ASIN>},
    {FORMS("acos"), Types::SINGLE_FLOAT, function<OPS_ACOS>},
    {FORMS("atan"), Types::SINGLE_FLOAT, function<OPS_ATAN>},
    {FORMS("sinh"), Types::SINGLE_FLOAT, function<OPS_SINH>},
    {FORMS("cosh"), Types::SINGLE_FLOAT, function<OPS_COSH>},
    {FORMS("tanh"), Types::SINGLE_FLOAT, function<OPS_TANH>},
    {FORMS("asinh"), Types::FLOAT, asinh},
    {FORMS("acosh"), Types::FLOAT, acosh},
    {FORMS("atanh"), Types::FLOAT, atanh},
    {FORMS("erf"), Types::FLOAT, function<OPS_ERF>},
    {FORMS("sigmoid"), Types::SINGLE_FLOAT, function<OPS_SIGMOID>},
    {FORMS("floor"), Types::SINGLE, rounding<OPS_FLOOR, true>},
    {FORMS("ceil"), Types::SINGLE, rounding<OPS_CEIL, true>},
    {FORMS("trunc"), Types::SINGLE, rounding<OPS_TRUNC, true>},
    {FORMS("round"), Types::SINGLE, rounded},
    {FORMS("frac"), Types::COMMON, fractional},
    {"isnan", Types::PLAIN, is_nan},
    {"isposinf.out isposinf", Types::PLAIN,
     [](const Call &c) -> Results { return is_infinity(c, INFINITE); }},
    {"isneginf.out isneginf", Types::PLAIN,
     [](const Call &c) -> Results { return is_infinity(c, -INFINITE); }},
    {FORMS("nan_to_num"), Types::SINGLE, replace_nan},

    {TENSOR_FORMS("add"), Types::COMMON, add_scaled<OPS_ADD>},
    {TENSOR_FORMS("sub"), Types::COMMON, add_scaled<OPS_SUB>},
    {TENSOR_FORMS("mul"), Types::COMMON, logic_or<OPS_MUL, OPS_AND>},
    {TENSOR_FORMS("div"), Types::FLOAT, arithmetic<OPS_DIV>},
    {"div.Tensor_mode div_.Tensor_mode div.out_mode", Types::COMMON, divide_by_mode},
    {"floor_divide floor_divide_.Tensor floor_divide.out", Types::COMMON, floor_divide},
    {"remainder.Tensor remainder_.Tensor remainder.Tensor_out", Types::COMMON, remainder},
    {"fmod.Tensor fmod_.Tensor fmod.Tensor_out", Types::COMMON, fmod},
    {"pow.Tensor_Scalar pow_.Scalar pow.Tensor_Scalar_out pow.Tensor_Tensor "
     "pow_.Tensor "
     "pow.Tensor_Tensor_out pow.Scalar pow.Scalar_out",
     Types::COMMON, pow},
    {"ldexp.Tensor ldexp_ ldexp.out", Types::FLOAT, ldexp, Sharing::FIRST_WHOLE},
    {FORMS("atan2"), Types::FLOAT, arithmetic<OPS_ATAN2>},
    {FORMS("hypot"), Types::FLOAT, hypot},
    {"xlogy.Tensor xlogy_.Tensor xlogy.OutTensor", Types::FLOAT, xlogy},
    {"logaddexp logaddexp.out", Types::FLOAT, logaddexp},
    {FORMS("heaviside"), Types::SINGLE, heaviside},
    {TENSOR_FORMS("copysign"), Types::FLOAT, copysign},
    {"maximum maximum.out", Types::SINGLE, extreme<OPS_MAXIMUM, OPS_OR>},
    {"minimum minimum.out", Types::SINGLE, extreme<OPS_MINIMUM, OPS_AND>},
    {"fmax fmax.out", Types::SINGLE, extreme_without_nan<OPS_MAXIMUM>},
    {"fmin fmin.out", Types::SINGLE, extreme_without_nan<OPS_MINIMUM>},
    {FORMS("clamp"), Types::SINGLE, clamp_scalars},
    {"clamp.Tensor clamp_.Tensor clamp.Tensor_out", Types::SINGLE, clamp},
    {"clamp_min clamp_min_ clamp_min.out clamp_min.Tensor clamp_min_.Tensor "
     "clamp_min.Tensor_out",
     Types::SINGLE, clamp_once<OPS_MAXIMUM>},
    {"clamp_max clamp_max_ clamp_max.out clamp_max.Tensor clamp_max_.Tensor "
     "clamp_max.Tensor_out",
     Types::SINGLE, clamp_once<OPS_MINIMUM>},

    {COMPARISON("eq"), Types::COMPARE, compare<OPS_EQ>},
    {COMPARISON("ne"), Types::COMPARE, compare<OPS_NE>},
    {COMPARISON("lt"), Types::COMPARE, compare<OPS_LT>},
    {COMPARISON("le"), Types::COMPARE, compare<OPS_LE>},
    {COMPARISON("gt"), Types::COMPARE, compare<OPS_GT>},
    {COMPARISON("ge"), Types::COMPARE, compare<OPS_GE>},
    {BITWISE("bitwise_and"), Types::SINGLE,
     [](const Call &c) -> Results { return bitwise(c, OPS_AND); }},
    {BITWISE("bitwise_or"), Types::SINGLE,
     [](const Call &c) -> Results { return bitwise(c, OPS_OR); }},
    {BITWISE("bitwise_xor"), Types::SINGLE,
     [](const Call &c) -> Results { return bitwise(c, OPS_XOR); }},
    {FORMS("logical_and"), Types::PLAIN, logical<OPS_AND>},
    {FORMS("logical_or"), Types::PLAIN, logical<OPS_OR>},
    {FORMS("logical_xor"), Types::PLAIN, logical<OPS_XOR>},

    {"where.self where.self_out", Types::PLAIN, choose},
    {"masked_fill.Scalar masked_fill.Tensor", Types::PLAIN, masked_fill},
    {"masked_fill_.Scalar masked_fill_.Tensor", Types::PLAIN, masked_fill_in_place, Sharing::ANY},
    {"fill_.Scalar zero_", Types::PLAIN, fill},
    {"fill_.Tensor", Types::PLAIN, fill_tensor, Sharing::ANY},
    {FORMS("addcmul"), Types::COMMON, add_combined<OPS_MUL>},
    {FORMS("addcdiv"), Types::COMMON, add_combined<OPS_DIV>},
    {"lerp.Scalar lerp_.Scalar lerp.Scalar_out lerp.Tensor lerp_.Tensor "
     "lerp.Tensor_out",
     Types::COMMON, interpolate},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE, Sharing::WHOLE);
}

} // namespace
} // namespace halyard
