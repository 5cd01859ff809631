// Dense layers: linear and its gradient as one call each, where PyTorch composes a view, a product and
// a sum, and as many nodes of autograd.
#include <ATen/ops/linear_native.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "cell.h"

namespace halyard
{
namespace
{

using OptionalTensor = std::optional<Tensor>;

bool is_matrix_type(at::ScalarType type)
{
    return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

// Rows of x: its last axis is that of the weights' columns, and nothing is empty.
bool are_rows(const Tensor &x, const Tensor &weight, int64_t axis)
{
    return is_ours(x) && is_ours(weight) && is_matrix_type(x.scalar_type()) &&
           x.scalar_type() == weight.scalar_type() && x.device() == weight.device() &&
           weight.dim() == 2 && x.dim() > 0 && x.size(-1) == weight.size(axis) && x.numel() &&
           weight.numel();
}

Array as_rows(const Tensor &x)
{
    const Array array = array_of(x);
    const int64_t columns = x.size(-1), shape[2] = {x.numel() / columns, columns};
    return x.dim() == 2 ? array : reshape(array, 2, shape);
}

bool is_bias(const OptionalTensor &bias, const Tensor &weight)
{
    return !bias || !bias->defined() ||
           (is_ours(*bias) && bias->scalar_type() == weight.scalar_type() &&
            bias->device() == weight.device() && bias->dim() == 1 &&
            bias->size(0) == weight.size(0));
}

Tensor linear(const Tensor &x, const Tensor &weight, const OptionalTensor &bias)
{
    if (are_rows(x, weight, 1) && is_bias(bias, weight)) {
        try {
            Lock lock;
            Array y = matmul(as_rows(x), transpose(array_of(weight), 0, 1));
            if (bias && bias->defined()) {
                y = y + array_of(*bias);
            }
            at::DimVector sizes(x.sizes());
            sizes.back() = weight.size(0);
            return tensor_of(std::move(y), x.device().index(), sizes, x.scalar_type());
        } catch (const Unsupported &) { // PyTorch's operators tell the reason
        }
    }
    return at::native::linear(x, weight, bias);
}

struct Gradients {
    Tensor x, weight, bias;
};

// The sum of all rows, which narrow floats add in F32.
Array sum_of_rows(const Array &g)
{
    const bool is_narrow = hal_type_is_narrow_float(g.type());
    const Array wide = is_narrow ? cast(g, HAL_TYPE_F32) : g;
    return cast(reduce(OPS_REDUCE_SUM, wide, 0, false), g.type());
}

Gradients dense_gradients(const Tensor &x, const Tensor &grad, const Tensor &weight,
                          std::array<bool, 3> wanted)
{
    Lock lock;
    const int64_t device = x.device().index();
    const at::ScalarType type = x.scalar_type();
    const Array g = as_rows(grad);
    Gradients result;
    if (wanted[0]) {
        result.x = tensor_of(matmul(g, array_of(weight)), device, x.sizes(), type);
    }
    if (wanted[1]) {
        result.weight =
            tensor_of(matmul(transpose(g, 0, 1), as_rows(x)), device, weight.sizes(), type);
    }
    if (wanted[2]) {
        result.bias = tensor_of(sum_of_rows(g), device, grad.sizes().slice(grad.dim() - 1), type);
    }
    return result;
}

Tensor rows_of(const Tensor &x)
{
    return x.dim() == 1 ? x.unsqueeze(0) : x.flatten(0, -2);
}

// The same by PyTorch's operators, of other types and of nothing.
Gradients composed_gradients(const Tensor &x, const Tensor &grad, const Tensor &weight,
                             std::array<bool, 3> wanted)
{
    const Tensor g = rows_of(grad);
    Gradients result;
    if (wanted[0]) {
        result.x = at::matmul(grad, weight);
    }
    if (wanted[1]) {
        result.weight = at::matmul(g.t(), rows_of(x));
    }
    if (wanted[2]) {
        result.bias = g.sum(0);
    }
    return result;
}

void check_gradient(const Tensor &x, const Tensor &grad, const Tensor &weight)
{
    TORCH_CHECK(x.dim() > 0 && weight.dim() == 2 && x.size(-1) == weight.size(1),
                "linear_backward: expected a matrix of weights for rows of ", x.sizes(), ", got ",
                weight.sizes());
    at::DimVector sizes(x.sizes());
    sizes.back() = weight.size(0);
    TORCH_CHECK(grad.sizes() == at::IntArrayRef(sizes),
                "linear_backward: expected a gradient of shape ", at::IntArrayRef(sizes), ", got ",
                grad.sizes());
}

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor &x, const Tensor &grad,
                                                   const Tensor &weight, std::array<bool, 3> wanted)
{
    check_gradient(x, grad, weight);
    if (are_rows(x, weight, 1) && are_rows(grad, weight, 0)) {
        try {
            Gradients result = dense_gradients(x, grad, weight, wanted);
            return {std::move(result.x), std::move(result.weight), std::move(result.bias)};
        } catch (const Unsupported &) {
        }
    }
    Gradients result = composed_gradients(x, grad, weight, wanted);
    return {std::move(result.x), std::move(result.weight), std::move(result.bias)};
}

// What PyTorch's gradient of linear allows. It differentiates the composition in other cases, which
// complex numbers are.
bool has_gradient(const Tensor &x, const Tensor &weight, const OptionalTensor &bias)
{
    return !x.is_complex() && !weight.is_complex() && weight.dim() == 2 &&
           (!bias || !bias->defined() ||
            (bias->dim() == 1 && bias->sym_size(0) == weight.sym_size(0)));
}

// The generated kernel with the gradient is that of any device with a kernel of its own.
Tensor linear_with_gradient(c10::DispatchKeySet keys, const Tensor &x, const Tensor &weight,
                            const OptionalTensor &bias)
{
    if (!has_gradient(x, weight, bias)) {
        return at::native::linear(x, weight, bias);
    }
    return at::_ops::linear::redispatch(
        (keys & c10::after_autograd_keyset) |
            c10::DispatchKeySet(c10::DispatchKey::AutogradNestedTensor),
        x, weight, bias);
}

// Of a batch by vmap, for which PyTorch has no rule.
std::tuple<Tensor, Tensor, Tensor> batched_backward(const Tensor &x, const Tensor &grad,
                                                    const Tensor &weight,
                                                    std::array<bool, 3> wanted)
{
    Gradients result = composed_gradients(x, grad, weight, wanted);
    return {std::move(result.x), std::move(result.weight), std::move(result.bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("linear", linear);
    library.impl("linear_backward", linear_backward);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library)
{
    library.impl("linear", linear_with_gradient);
}

TORCH_LIBRARY_IMPL(aten, FuncTorchBatched, library)
{
    library.impl("linear_backward", batched_backward);
}

} // namespace
} // namespace halyard
