// Fused attention for long sequences: its memory grows with the lengths, not with their product. Short
// ones stay PyTorch's expression, whose weights are kept for the gradient; the gradient of long ones
// computes the weights again.
#include <cmath>

#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include "call.h"

namespace halyard
{
namespace
{

constexpr int64_t LEAST_SCORES = int64_t(1) << 18; // rows times columns from which on it is fused

bool is_fused(const Tensor &q, const Tensor &k, const Tensor &v, const std::optional<Tensor> &mask,
              double dropout, bool is_causal, bool shares_heads)
{
    const ScalarType type = q.scalar_type();
    const bool fits = q.dim() >= 3 && q.dim() <= 4 && k.dim() == q.dim() && v.dim() == q.dim() &&
                      k.scalar_type() == type && v.scalar_type() == type &&
                      c10::isFloatingType(type);
    if (!fits || dropout > 0 || shares_heads || q.numel() == 0 || k.numel() == 0) {
        return false;
    }
    const int64_t rows = q.size(-2), columns = k.size(-2);
    const bool has_mask = mask && mask->defined();
    // PyTorch's expression knows a mask or the causal form, not both.
    const bool is_alone = has_mask && is_causal;
    return (is_alone || rows * columns >= LEAST_SCORES) && !(has_mask && mask->requires_grad()) &&
           !(is_causal && rows != columns);
}

int64_t choose(const Tensor &q, const Tensor &k, const Tensor &v, const std::optional<Tensor> &mask,
               double dropout, bool is_causal, std::optional<double>, bool shares_heads)
{
    return (int64_t)(is_fused(q, k, v, mask, dropout, is_causal, shares_heads)
                         ? sdp::SDPBackend::overrideable
                         : sdp::SDPBackend::math);
}

double scale_of(const Tensor &q, std::optional<double> scale)
{
    return scale ? *scale : 1 / std::sqrt((double)q.size(-1));
}

Array mask_of(const Tensor &mask, const Array &q)
{
    return cast(array_of(mask), q.type());
}

// With all leading axes as one.
Array batch_of(const Tensor &x)
{
    const int64_t rows = x.size(-2), columns = x.size(-1);
    return reshape(array_of(x), at::DimVector{x.numel() / (rows * columns), rows, columns});
}

using Forward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Forward attention(const Tensor &q, const Tensor &k, const Tensor &v,
                  const std::optional<Tensor> &mask, double, bool is_causal, bool,
                  std::optional<double> scale)
{
    Lock lock;
    const int64_t device = q.device().index();
    // ops divides by the square root of the depth.
    const double factor = scale_of(q, scale) * std::sqrt((double)q.size(-1));
    const Array own = array_of(q), x = factor == 1 ? own : own * factor;
    const Array bias = mask && mask->defined() ? mask_of(*mask, own) : Array();
    const Array y(
        ops_array_attention(x, array_of(k), array_of(v), bias, is_causal, precision_of(x.type())));
    const auto none = [&] { return empty_tensor(device, {0}, at::kLong); };
    return {tensor_of(y, device),
            empty_tensor(device, {0}, at::kFloat),
            none(),
            none(),
            q.size(-2),
            k.size(-2),
            none(),
            none(),
            empty_tensor(device, {0}, q.scalar_type())};
}

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Gradients attention_backward(const Tensor &g, const Tensor &q, const Tensor &k, const Tensor &v,
                             const Tensor &mask, std::array<bool, 4>, const Tensor &,
                             const Tensor &, const Tensor &, const Tensor &, c10::SymInt,
                             c10::SymInt, double, bool is_causal, const Tensor &, const Tensor &,
                             std::optional<double> scale)
{
    Lock lock;
    const int64_t device = q.device().index();
    const double factor = scale_of(q, scale);
    const Array Q = batch_of(q), K = batch_of(k), V = batch_of(v), G = batch_of(g);
    const auto turned = [](const Array &x) { return transpose(x, 1, 2); };
    Array scores = matmul(Q, turned(K)) * factor;
    if (mask.defined()) {
        at::DimVector shape(q.sizes().slice(0, (size_t)q.dim() - 1));
        shape.push_back(k.size(-2));
        scores = scores + reshape(broadcast(mask_of(mask, Q), shape),
                                  at::DimVector{Q.length(0), Q.length(1), K.length(1)});
    }
    if (is_causal) {
        const int64_t n = q.size(-2);
        const Array i(ops_array_iota(Q.context(), HAL_TYPE_I32, n, 0, 1));
        scores = where(less_equal(i, reshape(i, at::DimVector{n, 1})), scores, -INFINITY);
    }
    const Array weights(ops_array_softmax(2, scores));
    const Array slopes = matmul(G, turned(V));
    const Array total = reduce(OPS_REDUCE_SUM, weights * slopes, 2, true);
    const Array d = weights * (slopes - total) * factor;
    const auto given = [&](const Array &x, const Tensor &like) {
        return tensor_of(reshape(x, like.sizes()), device);
    };
    return {given(matmul(d, K), q), given(matmul(turned(d), Q), k),
            given(matmul(turned(weights), G), v), Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("_scaled_dot_product_fused_attention_overrideable", attention);
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

} // namespace
} // namespace halyard

namespace at::native
{
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &halyard::choose)
}
