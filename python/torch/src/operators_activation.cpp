// Activations and losses, each with its derivative. The formulas are those of
// the functions' definitions; arguments are in the order of PyTorch's schemas.
#include <cmath>
#include <limits>

#include <ATen/WrapDimUtils.h>
#include <ATen/core/Reduction.h>

#include "call.h"
#include "index_check.h"

namespace halyard
{
namespace
{

constexpr double SQRT_HALF = 0.70710678118654752440;
constexpr double SQRT_2_OVER_PI = 0.79788456080286535588;
constexpr double INV_SQRT_2_PI = 0.39894228040143267794;
constexpr double TANH_CUBE = 0.044715;
constexpr double LOG_LEAST = -100; // PyTorch's bound of the logarithms of binary_cross_entropy

// The first operand's own type decides: a float argument would promote integers.
void require_float(const Call &c)
{
    if (!c10::isFloatingType(c.tensor(0).scalar_type())) {
        throw Unsupported("an activation of integers");
    }
}

// Number `index` of the arguments in the type of x, which PyTorch truncates for integers.
double number_of_type(const Call &c, size_t index, const Array &x)
{
    const double number = c.number(index);
    if (x.type() == HAL_TYPE_BOOL ||
        (!hal_type_is_float(x.type()) && !hal_type_is_signed(x.type()) && number < 0)) {
        throw Unsupported("a bound that the type lacks");
    }
    return hal_type_is_float(x.type()) ? number : std::trunc(number);
}

// ---- Activations ----

Results relu(const Call &c)
{
    return {unary(OPS_RELU, c[0])};
}

Results threshold_backward(const Call &c)
{
    return {where(greater(c[1], c.number(2)), c[0], 0.0)};
}

Results threshold(const Call &c)
{
    const Array x = c.plain(0);
    const double bound = number_of_type(c, 1, x), value = number_of_type(c, 2, x);
    return {where(less_equal(x, bound), value, x)};
}

Results tanh_backward(const Call &c)
{
    return {c[0] * (1 - square(c[1]))};
}

Results sigmoid_backward(const Call &c)
{
    const Array y = c[1];
    return {c[0] * (1 - y) * y};
}

bool is_tanh_form(const Call &c, size_t index)
{
    const std::string_view form = c.value(index).toStringView();
    TORCH_CHECK(form == "tanh" || form == "none",
                "approximate argument must be either none or tanh.");
    return form == "tanh";
}

// The inner function of the tanh form.
Array gelu_inner(const Array &x)
{
    return (x + square(x) * x * TANH_CUBE) * SQRT_2_OVER_PI;
}

Results gelu(const Call &c)
{
    require_float(c);
    const Array x = c[0];
    if (!is_tanh_form(c, 1)) {
        return {unary(OPS_GELU, x)};
    }
    return {x * 0.5 * (tanh_of(gelu_inner(x)) + 1)};
}

Results gelu_backward(const Call &c)
{
    const Array g = c[0], x = c[1];
    if (!is_tanh_form(c, 2)) {
        const Array below = (unary(OPS_ERF, x * SQRT_HALF) + 1) * 0.5;
        const Array density = exp_of(square(x) * -0.5) * INV_SQRT_2_PI;
        return {g * (below + x * density)};
    }
    const Array t = tanh_of(gelu_inner(x));
    const Array slope = (square(x) * (3 * TANH_CUBE) + 1) * SQRT_2_OVER_PI;
    return {g * ((t + 1) * 0.5 + x * 0.5 * (1 - square(t)) * slope)};
}

Results silu(const Call &c)
{
    require_float(c);
    return {unary(OPS_SILU, c[0])};
}

Results silu_backward(const Call &c)
{
    const Array g = c[0], x = c[1], s = sigmoid(x);
    return {g * s * (x * (1 - s) + 1)};
}

Array softplus_of(const Array &x)
{
    return unary(OPS_SOFTPLUS, x);
}

Results mish(const Call &c)
{
    require_float(c);
    return {c[0] * tanh_of(softplus_of(c[0]))};
}

Results mish_backward(const Call &c)
{
    const Array g = c[0], x = c[1], t = tanh_of(softplus_of(x));
    return {g * (t + x * sigmoid(x) * (1 - square(t)))};
}

Results softplus(const Call &c) // x, beta, threshold
{
    require_float(c);
    const double beta = c.number(1);
    const Array x = c[0], scaled = x * beta;
    return {where(greater(scaled, c.number(2)), x, softplus_of(scaled) / beta)};
}

Results softplus_backward(const Call &c) // g, x, beta, threshold
{
    const Array scaled = c[1] * c.number(2);
    return {where(greater(scaled, c.number(3)), c[0], c[0] * sigmoid(scaled))};
}

Results leaky_relu(const Call &c)
{
    require_float(c);
    const Array x = c[0];
    return {where(greater(x, 0), x, x * c.number(1))};
}

Results leaky_relu_backward(const Call &c) // g, x, slope, is_result
{
    return {where(greater(c[1], 0), c[0], c[0] * c.number(2))};
}

Results elu(const Call &c) // x, alpha, scale, input_scale
{
    require_float(c);
    const Array x = c[0];
    const double alpha = c.number(1), scale = c.number(2), input_scale = c.number(3);
    const Array low = unary(OPS_EXPM1, x * input_scale) * (alpha * scale);
    return {where(greater(x, 0), x * scale, low)};
}

Results elu_backward(const Call &c) // g, alpha, scale, input_scale, is_result, x or y
{
    const double alpha = c.number(1), scale = c.number(2), input_scale = c.number(3);
    const Array g = c[0], x = c[5];
    const Array low = c.flag(4) ? g * input_scale * (x + alpha * scale)
                                : g * (input_scale * alpha * scale) * exp_of(x * input_scale);
    return {where(greater(x, 0), g * scale, low)};
}

Results hardtanh(const Call &c)
{
    const Array x = c.plain(0);
    return {minimum(maximum(x, number_of_type(c, 1, x)), number_of_type(c, 2, x))};
}

Results hardtanh_backward(const Call &c)
{
    const Array x = c[1];
    return {where(both(greater(x, c.number(2)), less(x, c.number(3))), c[0], 0.0)};
}

Array clamped(const Array &x, double low, double high)
{
    return minimum(maximum(x, low), high);
}

Results hardsigmoid(const Call &c)
{
    require_float(c);
    return {clamped(c[0] + 3, 0, 6) / 6};
}

Results hardsigmoid_backward(const Call &c)
{
    const Array x = c[1];
    return {where(both(greater(x, -3), less(x, 3)), c[0] / 6, 0.0)};
}

Results hardswish(const Call &c)
{
    require_float(c);
    return {c[0] * clamped(c[0] + 3, 0, 6) / 6};
}

Results hardswish_backward(const Call &c)
{
    const Array g = c[0], x = c[1];
    const Array middle = g * (x / 3 + 0.5);
    return {where(less_equal(x, -3), 0.0, where(less(x, 3), middle, g))};
}

Results hardshrink(const Call &c)
{
    require_float(c);
    const Array x = c[0];
    const double l = c.number(1);
    return {where(both(greater_equal(x, -l), less_equal(x, l)), 0.0, x)};
}

Results shrink_backward(const Call &c) // of hard and soft: g, x, lambda
{
    const Array x = c[1];
    const double l = c.number(2);
    return {where(both(greater_equal(x, -l), less_equal(x, l)), 0.0, c[0])};
}

double largest_of(ScalarType type)
{
    switch (type) {
    case at::kHalf:
        return std::numeric_limits<c10::Half>::max();
    case at::kBFloat16:
        return std::numeric_limits<c10::BFloat16>::max();
    case at::kFloat:
        return std::numeric_limits<float>::max();
    default:
        return std::numeric_limits<double>::max();
    }
}

Results softshrink(const Call &c)
{
    require_float(c);
    const Array x = c[0];
    const double l = c.number(1), most = largest_of(c.tensor(0).scalar_type());
    TORCH_CHECK(l >= 0 && l <= most, "lambda must be in range [0, ", most, "] for input dtype ",
                c.tensor(0).scalar_type(), ", but found ", l);
    return {where(greater(x, l), x - l, where(less(x, -l), x + l, x * 0))};
}

Results log_sigmoid(const Call &c)
{
    require_float(c);
    const Array result = -softplus_of(-c[0]);
    const int64_t none = 0; // the processor's buffer, which the derivative here does not read
    return {result, Array(ops_array_full(c.context(), result.type(), 1, &none, 0))};
}

Results log_sigmoid_backward(const Call &c)
{
    return {c[0] * sigmoid(-c[1])};
}

Results logit(const Call &c)
{
    require_float(c);
    Array x = c[0];
    if (c.has(1)) {
        const double eps = c.value(1).toDouble();
        x = where(less(x, eps), eps, where(greater(x, 1 - eps), 1 - eps, x));
    }
    return {unary(OPS_LOG, x / (1 - x))};
}

Results logit_backward(const Call &c) // gradient, x, eps
{
    const double eps = c.number_or(2, 0);
    const Array g = c[0], x = c[1], outside = either(less(x, eps), greater(x, 1 - eps));
    return {where(outside, c.has(2) ? 0 : std::nan(""), g / (x * (1 - x)))};
}

// The nearest numbers that float16 has, in the tensor's own type.
Results saturate_to_float16(const Call &c)
{
    return {minimum(maximum(c[0], -65504), 65504)};
}

Results glu(const Call &c)
{
    require_float(c);
    const Array x = c[0];
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.rank());
    if (x.rank() == 0 || x.length(axis) % 2) {
        throw Unsupported("an odd axis");
    }
    const int64_t half = x.length(axis) / 2;
    return {slice(x, axis, 0, half) * sigmoid(slice(x, axis, half, half))};
}

// ---- Losses ----

// The reduction of a loss's elements.
Results reduced_loss(const Array &losses, int64_t reduction)
{
    if (reduction == at::Reduction::None) {
        return {losses};
    }
    if (losses.count() == 0) {
        throw Unsupported("the loss of nothing");
    }
    return {reduce(reduction == at::Reduction::Mean ? OPS_REDUCE_MEAN : OPS_REDUCE_SUM,
                   flatten(losses), 0, false)};
}

// The gradient of a loss's elements from that of the loss.
Array spread_gradient(const Array &g, const Array &x, int64_t reduction)
{
    return reduction == at::Reduction::Mean ? g / (double)x.count() : g;
}

Results mse_loss(const Call &c)
{
    require_float(c);
    return reduced_loss(square(c[0] - c[1]), c.integer(2));
}

Results mse_loss_backward(const Call &c) // g, x, target, reduction
{
    const Array x = c[1], difference = x - c[2];
    return {spread_gradient(c[0], x, c.integer(3)) * 2 * difference};
}

Results smooth_l1_loss(const Call &c,
                       bool is_huber) // x, target, reduction, beta
{
    require_float(c);
    const double beta = c.value(3).toDouble();
    TORCH_CHECK(!is_huber || beta > 0,
                "huber_loss does not support non-positive values for delta.");
    const Array d = unary(OPS_ABS, c[0] - c[1]);
    if (beta == 0) {
        return reduced_loss(is_huber ? d * 0 : d, c.integer(2));
    }
    const Array near = square(d) * (is_huber ? 0.5 : 0.5 / beta);
    const Array far = is_huber ? (d - 0.5 * beta) * beta : d - 0.5 * beta;
    return reduced_loss(where(less(d, beta), near, far), c.integer(2));
}

Results smooth_l1_loss_backward(const Call &c,
                                bool is_huber) // g, x, target, reduction, beta
{
    const double beta = c.value(4).toDouble();
    const Array d = c[1] - c[2], g = spread_gradient(c[0], c[1], c.integer(3));
    const Array sign = unary(OPS_SIGN, d);
    if (beta == 0) {
        return {is_huber ? g * d * 0 : g * sign};
    }
    const Array near = is_huber ? d : d / beta, far = is_huber ? sign * beta : sign;
    return {g * where(less(unary(OPS_ABS, d), beta), near, far)};
}

Array weighted(const Call &c, const Array &x, size_t weight)
{
    return c.has(weight) ? x * c[weight] : x;
}

Results binary_cross_entropy(const Call &c) // x, target, weight, reduction
{
    require_float(c);
    const Array x = c[0], y = c[1];
    const Array log_x = maximum(unary(OPS_LOG, x), LOG_LEAST);
    const Array log_rest = maximum(unary(OPS_LOG1P, -x), LOG_LEAST);
    return reduced_loss(weighted(c, (y - 1) * log_rest - y * log_x, 2), c.integer(3));
}

Results binary_cross_entropy_backward(const Call &c) // g, x, target, weight, reduction
{
    const Array x = c[1], y = c[2], g = spread_gradient(c[0], x, c.integer(4));
    return {weighted(c, g * (x - y) / maximum((1 - x) * x, 1e-12), 3)};
}

Results binary_cross_entropy_with_logits(const Call &c) // x, target, weight, pos_weight, reduction
{
    require_float(c);
    const Array x = c[0], y = c[1], softplus = softplus_of(-x);
    const Array loss =
        c.has(3) ? (1 - y) * x + (y * (c[3] - 1) + 1) * softplus : (1 - y) * x + softplus;
    return reduced_loss(weighted(c, loss, 2), c.integer(4));
}

// Numbers of classes in a type of indices that has -1, which U8 lacks.
Array class_numbers(const Array &target)
{
    const bool is_index = target.type() == HAL_TYPE_I32 || target.type() == HAL_TYPE_I64;
    return is_index ? target : cast(target, HAL_TYPE_I64);
}

// 1 at the class of each row of [n, classes], 0 elsewhere and in ignored rows:
// comparisons, which are part of the kernels that use them.
Array hot_classes(const Call &c, const Array &target, hal_type type, int64_t classes,
                  int64_t ignored)
{
    Array t = flatten(class_numbers(target));
    if (ignored >= 0) {
        t = where(equal(t, (double)ignored), -1.0, t);
    }
    const Array numbers(ops_array_iota(c.context(), t.type(), classes, 0, 1));
    const Array rows = reshape(t, at::DimVector{t.count(), 1});
    return cast(equal(rows, reshape(numbers, at::DimVector{1, classes})), type);
}

void require_classes(const Call &c, size_t target, int64_t classes, size_t ignored)
{
    const Tensor &t = c.tensor(target);
    TORCH_CHECK(c10::isIntegralType(t.scalar_type(), false),
                "nll_loss: target: expected scalar type Long but found ", t.scalar_type());
    const Array numbers = c.plain(target);
    require_indices(where(equal(numbers, (double)c.integer(ignored)), 0.0, numbers), c.device(),
                    classes);
}

struct Classes {
    Array log_probabilities; // [n, classes]
    Array target;            // [n]
};

Classes classes_of(const Call &c, size_t x, size_t target)
{
    Array p = c[x], t = c.plain(target);
    if (p.rank() == 1) {
        p = reshape(p, at::DimVector{1, p.count()});
        t = flatten(t);
    }
    if (p.rank() != 2 || t.rank() != 1 || p.length(0) != t.count() || p.count() == 0) {
        throw Unsupported("shapes of another loss");
    }
    return {p, t};
}

// The loss of x, target, weight, reduction and ignored: `p` has the classes along axis 1, and
// `target` one for each of its other places. Only the class of each place is read: a comparison of
// all would keep arrays of p's size until the loss is read.
Results loss_of_classes(const Call &c, const Array &p, const Array &target)
{
    TORCH_CHECK(!c.has(2) || (c.tensor(2).dim() == 1 && c.tensor(2).numel() == p.length(1)),
                "weight tensor should be defined either for all ", p.length(1),
                " classes or no classes but got weight tensor of shape: ",
                c.has(2) ? c.tensor(2).sizes() : at::IntArrayRef());
    at::DimVector sizes;
    for (int64_t axis = 0; axis < p.rank(); axis++) {
        sizes.push_back(axis == 1 ? 1 : p.length(axis));
    }
    const Array t = reshape(class_numbers(target), sizes);
    const Array ignored = equal(t, (double)c.integer(4));
    const Array weights =
        c.has(2) ? where(ignored, 0.0, reshape(Array(ops_array_gather(0, c[2], flatten(t))), sizes))
                 : 1 - cast(ignored, p.type());
    const Array picked(ops_array_take_along_axis(1, p, t));
    const Array losses = flatten(-where(equal(weights, 0), 0.0, picked * weights));
    const Array total = reduce(OPS_REDUCE_SUM, flatten(weights), 0, false);
    if (c.integer(3) == at::Reduction::None) {
        return {reshape(losses, c.tensor(1).sizes()), scalar_like(total, 0)};
    }
    const Array sum = reduce(OPS_REDUCE_SUM, losses, 0, false);
    return {c.integer(3) == at::Reduction::Mean ? sum / total : sum, total};
}

Results nll_loss(const Call &c) // x, target, weight, reduction, ignored
{
    const Classes k = classes_of(c, 0, 1);
    require_classes(c, 1, k.log_probabilities.length(1), 4);
    return loss_of_classes(c, k.log_probabilities, k.target);
}

Results nll_loss_backward(const Call &c) // g, x, target, weight, reduction, ignored, total
{
    const Classes k = classes_of(c, 1, 2);
    const int64_t classes = k.log_probabilities.length(1);
    require_classes(c, 2, classes, 5);
    Array hot = hot_classes(c, k.target, k.log_probabilities.type(), classes, c.integer(5));
    hot = c.has(3) ? hot * c[3] : hot;
    Array g = c[0];
    if (c.integer(4) == at::Reduction::Mean) {
        g = g / c[6];
    }
    if (g.rank() == 1) {
        g = reshape(g, at::DimVector{g.count(), 1});
    }
    return {reshape(where(equal(hot, 0), 0.0, -hot * g), c.tensor(1).sizes())};
}

Results nll_loss2d(const Call &c) // x, target, weight, reduction, ignored
{
    const Array x = c[0], target = c.plain(1);
    if (x.rank() != 4 || target.rank() != 3 || x.count() == 0) {
        throw Unsupported("shapes of another loss");
    }
    TORCH_CHECK(target.length(0) == x.length(0) && target.length(1) == x.length(2) &&
                    target.length(2) == x.length(3),
                "size mismatch (got input: ", c.tensor(0).sizes(),
                " , target: ", c.tensor(1).sizes());
    require_classes(c, 1, x.length(1), 4);
    return loss_of_classes(c, x, target);
}

Results nll_loss2d_backward(const Call &c) // g, x, target, weight, reduction, ignored, total
{
    const Array x = c[1];
    if (x.rank() != 4 || x.count() == 0) {
        throw Unsupported("shapes of another loss");
    }
    require_classes(c, 2, x.length(1), 5);
    Array g = c[0];
    Array hot = hot_classes(c, c.plain(2), x.type(), x.length(1), c.integer(5));
    hot = c.has(3) ? hot * c[3] : hot;
    g = c.integer(4) == at::Reduction::Mean ? g / c[6] : g;
    g = g.rank() ? reshape(g, at::DimVector{g.count(), 1}) : g;
    const at::DimVector pixels{x.length(0), x.length(2), x.length(3), x.length(1)};
    const int32_t order[] = {0, 3, 1, 2};
    const Array gradient = where(equal(hot, 0), 0.0, -hot * g);
    return {Array(ops_array_permute(reshape(gradient, pixels), order))};
}

#define FORMS(name) name " " name "_ " name ".out"
#define WITH_OUT(name) name " " name ".out"
#define BACKWARD(name) name " " name ".grad_input"

const Operator TABLE[] = {
    {"relu relu_ relu.out", Types::SINGLE, relu, Sharing::ANY},
    {BACKWARD("threshold_backward"), Types::SINGLE, threshold_backward, Sharing::ANY},
    {FORMS("threshold"), Types::PLAIN, threshold, Sharing::ANY},
    {BACKWARD("tanh_backward"), Types::COMMON, tanh_backward},
    {BACKWARD("sigmoid_backward"), Types::COMMON, sigmoid_backward},
    {FORMS("gelu"), Types::COMMON, gelu},
    {BACKWARD("gelu_backward"), Types::COMMON, gelu_backward},
    {FORMS("silu"), Types::COMMON, silu},
    {BACKWARD("silu_backward"), Types::COMMON, silu_backward},
    {FORMS("mish"), Types::COMMON, mish},
    {"mish_backward", Types::COMMON, mish_backward},
    {WITH_OUT("softplus"), Types::COMMON, softplus},
    {BACKWARD("softplus_backward"), Types::COMMON, softplus_backward},
    {FORMS("leaky_relu"), Types::COMMON, leaky_relu},
    {BACKWARD("leaky_relu_backward"), Types::COMMON, leaky_relu_backward},
    {FORMS("elu"), Types::COMMON, elu},
    {BACKWARD("elu_backward"), Types::COMMON, elu_backward},
    {FORMS("hardtanh"), Types::PLAIN, hardtanh},
    {BACKWARD("hardtanh_backward"), Types::SINGLE, hardtanh_backward},
    {FORMS("hardsigmoid"), Types::COMMON, hardsigmoid},
    {BACKWARD("hardsigmoid_backward"), Types::COMMON, hardsigmoid_backward},
    {FORMS("hardswish"), Types::COMMON, hardswish},
    {"hardswish_backward", Types::COMMON, hardswish_backward},
    {WITH_OUT("hardshrink"), Types::SINGLE, hardshrink},
    {BACKWARD("hardshrink_backward"), Types::SINGLE, shrink_backward},
    {WITH_OUT("softshrink"), Types::COMMON, softshrink},
    {BACKWARD("softshrink_backward"), Types::SINGLE, shrink_backward},
    {"log_sigmoid_forward log_sigmoid_forward.output", Types::COMMON, log_sigmoid, Sharing::ANY},
    {BACKWARD("log_sigmoid_backward"), Types::COMMON, log_sigmoid_backward},
    {FORMS("logit"), Types::COMMON, logit},
    {BACKWARD("logit_backward"), Types::COMMON, logit_backward},
    {"_saturate_weight_to_fp16", Types::COMMON, saturate_to_float16},
    {WITH_OUT("glu"), Types::COMMON, glu, Sharing::ANY},

    {WITH_OUT("mse_loss"), Types::COMMON, mse_loss},
    {BACKWARD("mse_loss_backward"), Types::COMMON, mse_loss_backward},
    {WITH_OUT("smooth_l1_loss"), Types::COMMON,
     [](const Call &c) { return smooth_l1_loss(c, false); }},
    {"smooth_l1_loss_backward smooth_l1_loss_backward.grad_input", Types::COMMON,
     [](const Call &c) { return smooth_l1_loss_backward(c, false); }},
    {WITH_OUT("huber_loss"), Types::COMMON, [](const Call &c) { return smooth_l1_loss(c, true); }},
    {"huber_loss_backward huber_loss_backward.out", Types::COMMON,
     [](const Call &c) { return smooth_l1_loss_backward(c, true); }},
    {WITH_OUT("binary_cross_entropy"), Types::COMMON, binary_cross_entropy},
    {BACKWARD("binary_cross_entropy_backward"), Types::COMMON, binary_cross_entropy_backward},
    {"binary_cross_entropy_with_logits", Types::COMMON, binary_cross_entropy_with_logits},
    {"nll_loss_forward nll_loss_forward.output", Types::COMMON, nll_loss, Sharing::ANY},
    {BACKWARD("nll_loss_backward"), Types::COMMON, nll_loss_backward, Sharing::ANY},
    {"nll_loss2d_forward nll_loss2d_forward.output", Types::COMMON, nll_loss2d, Sharing::ANY},
    {BACKWARD("nll_loss2d_backward"), Types::COMMON, nll_loss2d_backward, Sharing::ANY},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE, Sharing::WHOLE);
}

} // namespace
} // namespace halyard
