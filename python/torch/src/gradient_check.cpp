#include "gradient_check.h"

#include <map>

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Pool.h>

namespace halyard
{
namespace
{

std::string text_of(at::IntArrayRef shape)
{
    return c10::str("shape ", shape);
}

} // namespace

void Operands::fail(size_t index, const std::string &expected) const
{
    TORCH_CHECK(false, schema_.name(), ": ", schema_.arguments()[index].name(), ": expected ",
                expected, ", got ",
                c.has(index) ? text_of(c.tensor(index).sizes()) : std::string("nothing"));
}

void Operands::require(size_t index) const
{
    if (!c.has(index)) {
        fail(index, "a tensor");
    }
}

void Operands::require_shape(size_t index, at::IntArrayRef shape) const
{
    if (c.has(index) && c.tensor(index).sizes() != shape) {
        fail(index, text_of(shape));
    }
}

void Operands::require_like(size_t index, size_t other) const
{
    require_shape(index, c.tensor(other).sizes());
}

void Operands::require_count(size_t index, int64_t count) const
{
    if (c.has(index) && c.tensor(index).numel() != count) {
        fail(index, c10::str(count, " elements"));
    }
}

void Operands::require_expandable(size_t index, size_t other) const
{
    if (c.has(index) && !at::is_expandable_to(c.tensor(index).sizes(), c.tensor(other).sizes())) {
        fail(index, "a shape that expands to " + text_of(c.tensor(other).sizes()));
    }
}

namespace
{

// ---- Losses ----

void check_softmax(const Operands &o) // g, y
{
    o.require_like(0, 1);
}

void check_binary_cross_entropy(const Operands &o) // g, x, target, weight
{
    for (const size_t index : {0, 2, 3}) {
        o.require_expandable(index, 1);
    }
}

// g, x, target, weight, reduction, ignored, total: x is [n, classes, pixels...] or [classes].
void check_classes(const Operands &o)
{
    const at::IntArrayRef sizes = o.c.tensor(1).sizes();
    TORCH_CHECK(!sizes.empty(), "nll_loss: expected a tensor with classes, got a number");
    at::DimVector elements(sizes);
    elements.erase(sizes.size() > 1 ? elements.begin() + 1 : elements.begin());
    TORCH_CHECK(c10::isIntegralType(o.c.tensor(2).scalar_type(), false),
                "nll_loss: target: expected integers, got ", o.c.tensor(2).scalar_type());
    if (sizes.size() == 1) {
        o.require_count(2, 1);
    } else {
        o.require_shape(2, elements);
    }
    if (sizes.size() > 1 && o.c.integer(4) == at::Reduction::None) {
        o.require_shape(0, elements);
    } else {
        o.require_count(0, 1);
    }
    o.require_count(3, sizes[sizes.size() > 1 ? 1 : 0]);
    o.require_count(6, 1);
}

void check_embedding(const Operands &o) // g, indices: [indices..., width]
{
    const Tensor &g = o.c.tensor(0);
    TORCH_CHECK(g.dim() > 0, "embedding_dense_backward: expected rows as a gradient, got a number");
    o.require_count(0, o.c.tensor(1).numel() * g.size(-1));
}

// ---- Normalisations ----

void check_layer_norm(const Operands &o) // g, x, shape, mean, rstd, weight, bias
{
    const std::vector<int64_t> inner = o.c.integers(2);
    const int64_t n = c10::multiply_integers(inner);
    o.require_like(0, 1);
    for (const size_t index : {3, 4}) {
        o.require_count(index, n > 0 ? o.c.tensor(1).numel() / n : 0);
    }
    for (const size_t index : {5, 6}) {
        o.require_shape(index, inner);
    }
}

void check_group_norm(const Operands &o) // g, x, mean, rstd, weight, n, channels, inner, groups
{
    o.require_like(0, 1);
    o.require_count(1, o.c.integer(5) * o.c.integer(6) * o.c.integer(7));
    for (const size_t index : {2, 3}) {
        o.require_count(index, o.c.integer(5) * o.c.integer(8));
    }
    o.require_count(4, o.c.integer(6));
}

// g, x, weight, running_mean, running_var, save_mean, save_rstd, train
void check_batch_norm(const Operands &o)
{
    const Tensor &x = o.c.tensor(1);
    TORCH_CHECK(x.dim() > 1, "batch_norm_backward: input: expected channels, got ",
                x.sizes());
    o.require_like(0, 1);
    const bool trains = o.c.flag(7);
    for (const size_t index : {2, 3, 4, 5, 6}) {
        if (index < 5 || trains) {
            o.require_shape(index, x.sizes()[1]);
        }
    }
    for (const size_t index : {trains ? 5 : 3, trains ? 6 : 4}) {
        o.require(index);
    }
}

// ---- Poolings ----

// g has the leading axes of x.
template <int AXES> void check_adaptive(const Operands &o) // g, x, places
{
    const Tensor &g = o.c.tensor(0), &x = o.c.tensor(1);
    TORCH_CHECK(x.dim() >= AXES && g.dim() == x.dim(),
                "adaptive pooling's gradient: expected tensors of the same axes, got ", g.sizes(),
                " and ", x.sizes());
    at::DimVector shape(g.sizes());
    std::copy_n(x.sizes().begin(), x.dim() - AXES, shape.begin());
    o.require_shape(0, shape);
    if (o.c.count() > 2) {
        o.require_like(2, 0);
    }
}

// g, x, kernel, stride, padding, then of maxima dilation, rounds_up and places, of means rounds_up:
// g has a number for each window.
template <int AXES, bool IS_MAX> void check_pool(const Operands &o)
{
    const Tensor &x = o.c.tensor(1);
    const auto kernel = o.c.expanded(2, AXES, 1), padding = o.c.expanded(4, AXES, 0);
    const auto stride = o.c.integers(3).empty() ? kernel : o.c.expanded(3, AXES, 1);
    const auto dilation = IS_MAX ? o.c.expanded(5, AXES, 1) : std::vector<int64_t>(AXES, 1);
    TORCH_CHECK(x.dim() == AXES + 1 || x.dim() == AXES + 2, "pooling's gradient: input: expected ",
                AXES, " axes after channels, got ", x.sizes());
    at::DimVector shape(x.sizes());
    for (int k = 0; k < AXES; k++) {
        int64_t &n = shape[(size_t)(x.dim() - AXES + k)];
        n = at::native::pooling_output_shape<int64_t>(n, kernel[k], padding[k], stride[k],
                                                      dilation[k], o.c.flag(IS_MAX ? 6 : 5));
    }
    o.require_shape(0, shape);
    if (IS_MAX) {
        o.require_like(7, 0);
    }
}

// ---- Cells of recurrent networks ----

void check_lstm_cell(const Operands &o) // grad_hy, grad_cy, cx, cy, values
{
    const Tensor &cx = o.c.tensor(2);
    TORCH_CHECK(cx.dim() == 2, "_thnn_fused_lstm_cell_backward_impl: cx: expected a matrix, got ",
                cx.sizes());
    for (const size_t index : {0, 1, 3}) {
        o.require_like(index, 2);
    }
    o.require_shape(4, {cx.size(0), 4 * cx.size(1)});
}

void check_gru_cell(const Operands &o) // grad_hy, values
{
    const Tensor &g = o.c.tensor(0);
    TORCH_CHECK(g.dim() == 2, "_thnn_fused_gru_cell_backward: grad_hy: expected a matrix, got ",
                g.sizes());
    o.require_shape(1, {g.size(0), 5 * g.size(1)});
}

void check_weight_norm(const Operands &o) // grad_w, saved_v, saved_g, saved_norms, dim
{
    const Tensor &v = o.c.tensor(1);
    const int64_t dim = at::maybe_wrap_dim(o.c.integer(4), v.dim());
    at::DimVector shape((size_t)v.dim(), 1);
    shape[(size_t)dim] = v.size(dim);
    o.require_like(0, 1);
    o.require_shape(2, shape);
    o.require_shape(3, shape);
}

// ---- Convolutions ----

// g, x, weight, stride, padding, dilation, is_transposed, output_padding, groups
void check_convolution(const Operands &o)
{
    const Tensor &x = o.c.tensor(1), &w = o.c.tensor(2);
    const auto stride = o.c.integers(3), padding = o.c.integers(4), dilation = o.c.integers(5);
    const bool is_transposed = o.c.flag(6);
    const auto more = o.c.integers(7);
    const int64_t groups = o.c.integer(8);
    const size_t axes = stride.size();
    const bool fits = axes > 0 && padding.size() == axes && dilation.size() == axes &&
                      more.size() == axes && groups > 0 &&
                      *std::min_element(stride.begin(), stride.end()) > 0;
    TORCH_CHECK(fits && x.dim() == (int64_t)axes + 2 && w.dim() == x.dim(),
                "convolution_backward: expected input and weight with two more axes than stride, "
                "padding, dilation and output_padding have numbers, which are positive, got ",
                x.sizes(), ", ", w.sizes(), " and ", at::IntArrayRef(stride));
    TORCH_CHECK(x.size(1) == (is_transposed ? w.size(0) : w.size(1) * groups),
                "convolution_backward: input: expected the channels of a weight of shape ",
                w.sizes(), " in ", groups, " groups, got shape ", x.sizes());
    at::DimVector shape{x.size(0), is_transposed ? w.size(1) * groups : w.size(0)};
    for (size_t k = 0; k < axes; k++) {
        const int64_t n = x.size((int64_t)k + 2);
        const int64_t reach = dilation[k] * (w.size((int64_t)k + 2) - 1) + 1;
        shape.push_back(is_transposed ? (n - 1) * stride[k] - 2 * padding[k] + reach + more[k]
                                      : (n + 2 * padding[k] - reach) / stride[k] + 1);
    }
    o.require_shape(0, shape);
}

} // namespace

ShapeRule shape_rule_of(const std::string &name)
{
    static const std::map<std::string, ShapeRule> rules = {
        {"aten::_softmax_backward_data", check_softmax},
        {"aten::_log_softmax_backward_data", check_softmax},
        {"aten::binary_cross_entropy_backward", check_binary_cross_entropy},
        {"aten::nll_loss_backward", check_classes},
        {"aten::nll_loss2d_backward", check_classes},
        {"aten::embedding_dense_backward", check_embedding},
        {"aten::native_layer_norm_backward", check_layer_norm},
        {"aten::_weight_norm_interface_backward", check_weight_norm},
        {"aten::native_group_norm_backward", check_group_norm},
        {"aten::native_batch_norm_backward", check_batch_norm},
        {"aten::batch_norm_backward", check_batch_norm},
        {"aten::_adaptive_avg_pool2d_backward", check_adaptive<2>},
        {"aten::_adaptive_avg_pool3d_backward", check_adaptive<3>},
        {"aten::adaptive_max_pool2d_backward", check_adaptive<2>},
        {"aten::adaptive_max_pool3d_backward", check_adaptive<3>},
        {"aten::max_pool2d_with_indices_backward", check_pool<2, true>},
        {"aten::max_pool3d_with_indices_backward", check_pool<3, true>},
        {"aten::avg_pool2d_backward", check_pool<2, false>},
        {"aten::avg_pool3d_backward", check_pool<3, false>},
        {"aten::_thnn_fused_lstm_cell_backward_impl", check_lstm_cell},
        {"aten::_thnn_fused_gru_cell_backward", check_gru_cell},
        {"aten::convolution_backward_overrideable", check_convolution},
    };
    const auto found = rules.find(name);
    return found == rules.end() ? nullptr : found->second;
}

} // namespace halyard
