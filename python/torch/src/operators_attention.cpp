// Attention as one call with one gradient, which computes the weights again: memory grows with the
// lengths, not with their product. As on PyTorch's own devices the gradient has no gradient.
#include <cmath>

#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include "call.h"
#include "view.h"

namespace halyard
{
namespace
{

// Rows times columns up to which the gradient of narrow floats has scores of F32.
constexpr int64_t MOST_WIDE_SCORES = int64_t(1) << 18;

// Tensors of torch.func have no storage, and PyTorch no rule of vmap for this call.
bool is_attended(const Tensor &x, ScalarType type, int64_t rank)
{
    return x.has_storage() && x.dim() == rank && x.scalar_type() == type && x.numel() > 0;
}

bool is_fused(const Tensor &q, const Tensor &k, const Tensor &v, const std::optional<Tensor> &mask,
              double dropout, bool is_causal, bool shares_heads)
{
    const ScalarType type = q.scalar_type();
    const int64_t rank = q.dim();
    const bool fits =
        rank >= 3 && rank <= 4 && c10::isFloatingType(type) && is_attended(q, type, rank) &&
        is_attended(k, type, rank) && is_attended(v, type, rank) && q.size(-1) == k.size(-1) &&
        k.sizes().slice(0, (size_t)rank - 1) == v.sizes().slice(0, (size_t)rank - 1) &&
        k.sizes().slice(0, (size_t)rank - 2) == q.sizes().slice(0, (size_t)rank - 2);
    if (!fits || dropout > 0 || shares_heads || !at::globalContext().userEnabledOverrideableSDP()) {
        return false;
    }
    return !(mask && mask->defined() && mask->requires_grad()) &&
           !(is_causal && q.size(-2) != k.size(-2));
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

// Row numbers [n, 1] and column numbers [n].
Array may_attend_before(ops_context *context, int64_t n)
{
    const Array i(ops_array_iota(context, HAL_TYPE_I32, n, 0, 1));
    return less_equal(i, reshape(i, at::DimVector{n, 1}));
}

// What is added to the scores of each row.
struct Mask {
    Array bias;     // [..., rows, columns], or empty
    Array is_empty; // [..., rows, 1]: rows without any key, whose result is 0
};

Mask mask_of(const std::optional<Tensor> &mask, const Tensor &q, const Tensor &k, bool is_causal)
{
    Mask result;
    if (!mask || !mask->defined()) {
        return result;
    }
    at::DimVector shape(q.sizes());
    shape.back() = k.size(-2);
    result.bias = broadcast(cast(array_of(*mask), type_of(q.scalar_type())), shape);
    // Of one row where all have the same.
    const bool has_rows = is_causal || (mask->dim() > 1 && mask->size(-2) > 1);
    const Array rows = has_rows ? result.bias : slice(result.bias, q.dim() - 2, 0, 1);
    const Array seen =
        is_causal ? where(may_attend_before(rows.context(), k.size(-2)), rows, -INFINITY) : rows;
    result.is_empty = equal(reduce(OPS_REDUCE_MAX, seen, q.dim() - 1, true), -(double)INFINITY);
    return result;
}

// With all leading axes as one.
Array batch_of(const Array &x)
{
    const int64_t rows = x.length(x.rank() - 2), columns = x.length(x.rank() - 1);
    return reshape(x, at::DimVector{x.count() / (rows * columns), rows, columns});
}

// A tensor whose axes have the order in memory of those of another one.
Tensor tensor_ordered_as(const Array &x, const Tensor &like)
{
    at::DimVector sizes;
    for (int64_t i = 0; i < x.rank(); i++) {
        sizes.push_back(x.length(i));
    }
    const std::vector<int64_t> strides = at::infer_dense_strides(sizes, like.strides());
    const int64_t device = like.device().index();
    Tensor result =
        tensor_of(in_order_of_strides(x, strides), device, sizes, scalar_type_of(x.type()));
    result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return result;
}

using Forward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

// The kernels leave NaN in the rows without any key.
Forward attention(const Tensor &q, const Tensor &k, const Tensor &v,
                  const std::optional<Tensor> &mask, double, bool is_causal, bool,
                  std::optional<double> scale)
{
    Lock lock;
    const Mask m = mask_of(mask, q, k, is_causal);
    const double factor = scale_of(q, scale);
    const bool is_positive = factor > 0; // which ops requires; of 0 it takes its own
    const Array own = array_of(q);
    Array y(ops_array_scaled_attention(is_positive ? own : own * factor, array_of(k), array_of(v),
                                       m.bias, is_causal, precision_of(own.type()),
                                       is_positive ? factor : 1));
    y = m.bias ? where(m.is_empty, 0.0, y) : y;
    // The other results are of kernels that keep more for the gradient.
    const Tensor none = empty_tensor(q.device().index(), {0}, at::kFloat);
    return {tensor_ordered_as(y, q), none, none, none, q.size(-2), k.size(-2), none, none, none};
}

// Of shapes that the forward pass has accepted, and its result's.
void check_attention(const Tensor &g, const Tensor &q, const Tensor &k, const Tensor &v)
{
    const auto leading = [](const Tensor &x) { return x.sizes().slice(0, (size_t)x.dim() - 2); };
    const bool fits = q.dim() > 2 && k.dim() == q.dim() && v.dim() == q.dim() &&
                      leading(k) == leading(q) && leading(v) == leading(q) &&
                      k.size(-1) == q.size(-1) && v.size(-2) == k.size(-2);
    TORCH_CHECK(fits,
                "attention_backward: expected query [..., rows, width], key [..., columns, "
                "width] and value [..., columns, result], got ",
                q.sizes(), ", ", k.sizes(), " and ", v.sizes());
    at::DimVector shape(q.sizes());
    shape.back() = v.size(-1);
    TORCH_CHECK(g.sizes() == at::IntArrayRef(shape),
                "attention_backward: grad_out: expected shape ", at::IntArrayRef(shape), ", got ",
                g.sizes());
}

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Gradients attention_backward(const Tensor &g, const Tensor &q, const Tensor &k, const Tensor &v,
                             const Tensor &mask, std::array<bool, 4> wanted, const Tensor &,
                             const Tensor &, const Tensor &, const Tensor &, c10::SymInt,
                             c10::SymInt, double, bool is_causal, const Tensor &, const Tensor &,
                             std::optional<double> scale)
{
    Lock lock;
    check_attention(g, q, k, v);
    const double factor = scale_of(q, scale);
    const hal_type type = type_of(q.scalar_type());
    const bool widens =
        hal_type_is_narrow_float(type) && q.size(-2) * k.size(-2) < MOST_WIDE_SCORES;
    const auto operand = [&](const Tensor &x) {
        return batch_of(cast(array_of(x), widens ? (hal_type)HAL_TYPE_F32 : type));
    };
    const Array Q = operand(q), K = operand(k), V = operand(v), G = operand(g);
    const auto turned = [](const Array &x) { return transpose(x, 1, 2); };
    const Mask m = mask_of(mask, q, k, is_causal);
    Array scores = matmul(Q, turned(K)) * factor;
    scores = m.bias ? scores + cast(batch_of(m.bias), scores.type()) : scores;
    if (is_causal) {
        scores = where(may_attend_before(Q.context(), k.size(-2)), scores, -INFINITY);
    }
    Array weights(ops_array_softmax(2, scores));
    if (m.bias) {
        at::DimVector shape(q.sizes());
        shape.back() = 1;
        weights = where(batch_of(broadcast(m.is_empty, shape)), 0.0, weights);
    }
    const Array slopes = matmul(G, turned(V));
    const Array total = reduce(OPS_REDUCE_SUM, weights * slopes, 2, true);
    const Array d = weights * (slopes - total) * factor;
    const auto given = [&](bool is_wanted, const Array &x, const Tensor &like) {
        return is_wanted ? tensor_ordered_as(reshape(cast(x, type), like.sizes()), like) : Tensor();
    };
    return {given(wanted[0], matmul(d, K), q), given(wanted[1], matmul(turned(d), Q), k),
            given(wanted[2], matmul(turned(weights), G), v), Tensor()};
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
