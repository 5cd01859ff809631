// Fused steps of optimizers, and the scaling of gradients in mixed precision. Arrays are deferred, so
// the steps of many parameters become few kernels without a kernel for each optimizer.
#include <cmath>

#include <ATen/ops/_foreach_norm_native.h>

#include "call.h"

namespace halyard
{
namespace
{

// The hyper-parameters of a step: numbers, or a tensor on the device for the rate.
struct Settings {
    Array rate; // empty: `rate_number`
    double rate_number = 0;
    Array grad_scale, found_inf; // empty where there is no GradScaler
};

Array optional_array(const Call &c, size_t index)
{
    return c.has(index) ? array_of(c.tensor(index)) : Array();
}

Settings settings_of(const Call &c, size_t rate, size_t grad_scale)
{
    Settings s;
    if (c.is_number(rate)) {
        s.rate_number = c.number(rate);
    } else {
        s.rate = c.plain(rate);
    }
    s.grad_scale = optional_array(c, grad_scale);
    s.found_inf = optional_array(c, grad_scale + 1);
    return s;
}

// Keeps the old value where the gradients have an infinity.
void update(const Tensor &target, const Array &old, const Array &value, const Settings &s)
{
    assign(target,
           s.found_inf ? where(not_equal(s.found_inf, 0), old, cast(value, old.type())) : value);
}

hal_type wide_type(const Array &x)
{
    return hal_type_is_narrow_float(x.type()) ? (hal_type)HAL_TYPE_F32 : x.type();
}

Array rate_like(const Settings &s, const Array &x)
{
    return s.rate ? cast(s.rate, x.type()) : scalar_like(x, s.rate_number);
}

// The gradient of one parameter, without the scale. PyTorch writes it back to the gradient.
Array gradient_of(const Tensor &gradient, hal_type type, const Settings &s)
{
    Array g = cast(array_of(gradient), type);
    if (s.grad_scale) {
        g = g / cast(s.grad_scale, type);
        assign(gradient, g);
    }
    return g;
}

// Computes arrays of one element that every parameter has: together they take a kernel or two, while
// each by itself would be a kernel before that of its parameter.
void evaluate_together(const std::vector<Array> &arrays)
{
    const std::vector<ops_array *> list(arrays.begin(), arrays.end());
    if (!list.empty()) {
        check(ops_array_record(list.data(), (uint32_t)list.size()));
    }
}

// 1 - beta1^step, sqrt(1 - beta2^step) and the rate in the type of each parameter, in turns.
std::vector<Array> adam_corrections(const Call &c, const std::vector<Tensor> &params,
                                    const std::vector<Tensor> &steps, const Settings &s,
                                    double beta1, double beta2)
{
    std::vector<Array> corrections;
    for (size_t i = 0; i < params.size(); i++) {
        const Array step = cast(array_of(steps[i]), wide_type(array_of(params[i])));
        const Array rate = rate_like(s, step);
        corrections.push_back(rate / (1 - power(scalar_like(step, beta1), step)));
        corrections.push_back(unary(OPS_SQRT, 1 - power(scalar_like(step, beta2), step)));
    }
    if (!device_at(c.device()).records_graph) {
        evaluate_together(corrections);
    }
    return corrections;
}

// params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, weight_decay, eps,
// amsgrad, maximize, grad_scale, found_inf
Results adam(const Call &c, bool is_decoupled)
{
    const auto params = c.value(0).toTensorVector(), grads = c.value(1).toTensorVector();
    const auto averages = c.value(2).toTensorVector(), squares = c.value(3).toTensorVector();
    const auto largest = c.value(4).toTensorVector(), steps = c.value(5).toTensorVector();
    const Settings s = settings_of(c, 6, 13);
    const double beta1 = c.number(7), beta2 = c.number(8), decay = c.number(9), eps = c.number(10);
    const bool keeps_largest = c.flag(11), is_maximum = c.flag(12);
    const std::vector<Array> corrections = adam_corrections(c, params, steps, s, beta1, beta2);
    for (size_t i = 0; i < params.size(); i++) {
        const Array old = array_of(params[i]);
        const hal_type type = wide_type(old);
        Array p = cast(old, type), g = gradient_of(grads[i], type, s);
        g = is_maximum ? -g : g;
        if (decay != 0 && is_decoupled) {
            p = s.rate ? p - p * (rate_like(s, p) * decay) : p - p * (s.rate_number * decay);
        } else if (decay != 0) {
            g = g + p * decay;
        }
        const Array old_m = array_of(averages[i]), old_v = array_of(squares[i]);
        const Array m = cast(old_m, type) * beta1 + g * (1 - beta1);
        const Array v = cast(old_v, type) * beta2 + square(g) * (1 - beta2);
        Array bound = v;
        if (keeps_largest) {
            const Array old_largest = array_of(largest[i]);
            bound = maximum(cast(old_largest, type), v);
            update(largest[i], old_largest, bound, s);
        }
        const Array divisor = unary(OPS_SQRT, bound) / corrections[2 * i + 1] + eps;
        update(params[i], old, p - m * corrections[2 * i] / divisor, s);
        update(averages[i], old_m, m, s);
        update(squares[i], old_v, v, s);
    }
    return {};
}

// params, grads, momentum_buffers, weight_decay, momentum, lr, dampening, nesterov, maximize,
// is_first_step, grad_scale, found_inf
Results sgd(const Call &c)
{
    const auto params = c.value(0).toTensorVector(), grads = c.value(1).toTensorVector();
    const auto buffers = c.value(2).toTensorVector();
    const Settings s = settings_of(c, 5, 10);
    const double decay = c.number(3), momentum = c.number(4), dampening = c.number(6);
    const bool is_nesterov = c.flag(7), is_maximum = c.flag(8), is_first = c.flag(9);
    for (size_t i = 0; i < params.size(); i++) {
        const Array old = array_of(params[i]);
        const hal_type type = wide_type(old);
        const Array p = cast(old, type);
        Array g = gradient_of(grads[i], type, s);
        g = is_maximum ? -g : g;
        g = decay != 0 ? g + p * decay : g;
        if (momentum != 0) {
            const Array old_buffer = array_of(buffers[i]);
            const Array buffer =
                is_first ? g : cast(old_buffer, type) * momentum + g * (1 - dampening);
            update(buffers[i], old_buffer, buffer, s);
            g = is_nesterov ? g + buffer * momentum : buffer;
        }
        update(params[i], old, p - g * rate_like(s, p), s);
    }
    return {};
}

// params, grads, state_sums, steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf
Results adagrad(const Call &c)
{
    const auto params = c.value(0).toTensorVector(), grads = c.value(1).toTensorVector();
    const auto sums = c.value(2).toTensorVector(), steps = c.value(3).toTensorVector();
    const Settings s = settings_of(c, 4, 9);
    const double rate_decay = c.number(5), decay = c.number(6), eps = c.number(7);
    const bool is_maximum = c.flag(8), records_graph = device_at(c.device()).records_graph;
    std::vector<Array> rates;
    for (size_t i = 0; i < params.size(); i++) {
        const Array step = cast(array_of(steps[i]), wide_type(array_of(params[i])));
        rates.push_back(rate_like(s, step) / ((step - 1) * rate_decay + 1));
    }
    if (!records_graph) {
        evaluate_together(rates);
    }
    for (size_t i = 0; i < params.size(); i++) {
        const Array old = array_of(params[i]), old_sum = array_of(sums[i]);
        const hal_type type = wide_type(old);
        const Array p = cast(old, type);
        Array g = gradient_of(grads[i], type, s);
        g = is_maximum ? -g : g;
        g = decay != 0 ? g + p * decay : g;
        const Array sum = cast(old_sum, type) + square(g);
        update(params[i], old, p - g * rates[i] / (unary(OPS_SQRT, sum) + eps), s);
        update(sums[i], old_sum, sum, s);
    }
    return {};
}

// ---- Norms of many gradients ----

// The norms as one array, by kernels that all tensors share; an empty Array where that is not possible.
Array norms_of(at::TensorList tensors, double order)
{
    const Tensor &first = tensors[0];
    std::vector<Array> arrays;
    std::vector<ops_array *> list;
    for (const Tensor &t : tensors) {
        if (!is_ours(t) || t.device() != first.device() || t.scalar_type() != first.scalar_type() ||
            !is_plain(t) || t.numel() == 0 || !hal_type_is_float(type_of(t.scalar_type()))) {
            return Array();
        }
        const Array whole = whole_of(t);
        arrays.push_back(whole ? whole : array_of(t));
        list.push_back(arrays.back());
    }
    if (device_at(first.device().index()).records_graph || mode() != Mode::FUSED ||
        (order != 1 && order != 2 && order != INFINITY)) {
        return Array();
    }
    const Array sums(ops_array_reduce_each(order == INFINITY ? OPS_REDUCE_MAX : OPS_REDUCE_SUM,
                                           order == 2 ? OPS_SQUARE : OPS_ABS, list.data(),
                                           (uint32_t)list.size()));
    return cast(order == 2 ? unary(OPS_SQRT, sums) : sums, type_of(first.scalar_type()));
}

// As on PyTorch's own devices the norms are parts of one tensor.
std::vector<Tensor> foreach_norm(at::TensorList tensors, const at::Scalar &order,
                                 std::optional<ScalarType> dtype)
{
    Tensor all;
    if (tensors.size() > 1 && !order.isComplex() &&
        (!dtype || *dtype == tensors[0].scalar_type())) {
        try {
            Lock lock;
            Array norms = norms_of(tensors, order.toDouble());
            all = norms ? tensor_of(std::move(norms), tensors[0].device().index()) : Tensor();
        } catch (const Unsupported &) { // each by itself
        }
    }
    return all.defined() ? all.unbind()
                         : at::native::foreach_tensor_norm_slow(tensors, order, dtype);
}

// ---- Gradients in mixed precision ----

Results unscale(const Call &c) // gradients, found_inf, inv_scale
{
    Array found = c.plain(1);
    for (const Tensor &gradient : c.value(0).toTensorVector()) {
        const Array g = array_of(gradient);
        if (g.count() == 0) {
            continue;
        }
        const Array wide = cast(g, wide_type(g));
        const Array bad = cast(logical_not(unary(OPS_IS_FINITE, flatten(wide))), found.type());
        const at::DimVector shape(c.tensor(1).sizes());
        found = maximum(found, reshape(reduce(OPS_REDUCE_MAX, bad, 0, false), shape));
        assign(gradient, wide * cast(c.plain(2), wide.type()));
    }
    assign(c.tensor(1), found);
    return {};
}

// scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval
Results update_scale(const Call &c)
{
    const Array scale = c.plain(0), tracker = c.plain(1);
    const Array found = not_equal(c.plain(2), 0);
    const Array grown = tracker + 1;
    const Array is_due = equal(grown, (double)c.integer(5));
    const Array larger = scale * c.value(3).toDouble();
    const Array next = where(both(is_due, unary(OPS_IS_FINITE, larger)), larger, scale);
    assign(c.tensor(1), where(either(found, is_due), 0.0, grown));
    return {where(found, scale * c.value(4).toDouble(), next)};
}

const Operator TABLE[] = {
    {"_fused_adam_ _fused_adam_.tensor_lr", Types::PLAIN,
     [](const Call &c) { return adam(c, false); }},
    {"_fused_adamw_ _fused_adamw_.tensor_lr", Types::PLAIN,
     [](const Call &c) { return adam(c, true); }},
    {"_fused_sgd_ _fused_sgd_.tensor_lr", Types::PLAIN, sgd},
    {"_fused_adagrad_ _fused_adagrad_.tensor_lr", Types::PLAIN, adagrad},
    {"_amp_foreach_non_finite_check_and_unscale_", Types::PLAIN, unscale},
    {"_amp_update_scale_", Types::PLAIN, update_scale},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
    library.impl("_foreach_norm.Scalar", foreach_norm);
}

} // namespace
} // namespace halyard
