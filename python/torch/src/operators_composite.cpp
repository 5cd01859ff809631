// Operators that PyTorch composes itself, where its way does not suit the device.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_reshape_from_tensor_native.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>
#include <ATen/ops/kaiser_window.h>
#include <ATen/ops/linalg_vander.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/special_i0e.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/vander_native.h>
#include <torch/library.h>

#include "cell.h"
#include "fallback.h"

namespace halyard
{
namespace
{

// kaiser_window has no kernel for other devices, and no tensor that would choose the fallback. The Bessel
// functions are scaled by their exponentials, so that a large beta does not overflow.
template <typename... Arguments>
Tensor kaiser_window(int64_t length, Arguments... arguments, std::optional<at::ScalarType> type,
                     std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                     std::optional<bool>)
{
    note_fallback("aten::kaiser_window", "a window is made once");
    const std::tuple<Arguments...> given(arguments...);
    bool is_periodic = true;
    double beta = 12;
    if constexpr (sizeof...(Arguments) > 0) {
        is_periodic = std::get<0>(given);
    }
    if constexpr (sizeof...(Arguments) > 1) {
        beta = std::get<1>(given);
    }
    // Checks the arguments; right where the window has a single value or none.
    const Tensor plain = at::kaiser_window(length, is_periodic, 1.0, type, layout, at::kCPU, false);
    if (length < 2 || std::isnan(beta)) {
        return plain.to(*device);
    }
    const int64_t intervals = is_periodic ? length : length - 1;
    const Tensor position =
        at::linspace(-1, 1, intervals + 1, at::TensorOptions(at::kDouble)).slice(0, 0, length);
    Tensor values = position.eq(0);
    if (!std::isinf(beta)) {
        const Tensor argument = (1 - position.square()).clamp_min(0).sqrt() * beta;
        const Tensor most = at::full({}, beta, at::TensorOptions(at::kDouble));
        values = at::special_i0e(argument) / at::special_i0e(most) *
                 (argument.abs() - std::abs(beta)).exp();
    }
    return values.to(plain.scalar_type()).to(*device);
}

// PyTorch's way writes into what its gradient needs.
Tensor vander(const Tensor &x, std::optional<int64_t> count, bool is_increasing)
{
    if (x.dim() != 1 || count.value_or(x.size(0)) < 2 || !x.requires_grad()) {
        return at::native::vander(x, count, is_increasing);
    }
    const Tensor powers = at::linalg_vander(x, count.value_or(x.size(0)));
    return is_increasing ? powers : powers.flip(1);
}

// The processor's kernel does not find the shape of a copy of the target.
Tensor &stack_into(at::TensorList tensors, int64_t axis, Tensor &out)
{
    return at::stack_out(out, tensors, axis);
}

// PyTorch's way reads the shape in the memory of its tensor.
Tensor reshape_from_tensor(const Tensor &x, const Tensor &shape)
{
    return at::native::_reshape_from_tensor(x, shape.cpu());
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library)
{
    library.impl("vander", vander);
    library.impl("_reshape_from_tensor", reshape_from_tensor);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("vander", vander);
    library.impl("_reshape_from_tensor", reshape_from_tensor);
    library.impl("_stack.out", stack_into);
    library.impl("kaiser_window", kaiser_window<>);
    library.impl("kaiser_window.periodic", kaiser_window<bool>);
    library.impl("kaiser_window.beta", kaiser_window<bool, double>);
}

} // namespace
} // namespace halyard
