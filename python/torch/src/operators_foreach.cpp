// Operations on lists of tensors, of which torch.optim makes its steps. Lists of dense floats of one
// device and type take the storages' arrays as they are, under one lock and without a call of
// PyTorch's dispatcher for each tensor. All other lists go to PyTorch's loops over their tensors.
#include <cmath>
#include <type_traits>

#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_clamp_min_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_maximum_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_reciprocal_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sub_native.h>

#include "call.h"

namespace halyard
{
namespace
{

using at::TensorList;

constexpr size_t MAX_LISTS = 2; // besides the list that the operation is called on

// What an operation is called with: lists, and a number for all tensors or one for each.
struct Operands {
    TensorList lists[MAX_LISTS];
    size_t list_count = 0;
    double number = 1;
    at::ArrayRef<at::Scalar> numbers;
    Tensor shared; // of one element, for all tensors
    bool fits = true;

    void add(TensorList list)
    {
        lists[list_count++] = list;
    }
    void add(const at::Scalar &scalar)
    {
        fits = fits && !scalar.isComplex();
        number = fits ? scalar.toDouble() : 1;
    }
    void add(at::ArrayRef<at::Scalar> scalars)
    {
        numbers = scalars;
        for (const at::Scalar &scalar : scalars) {
            fits = fits && !scalar.isComplex();
        }
    }
    void add(const Tensor &tensor)
    {
        shared = tensor;
    }
    double number_of(size_t i) const
    {
        return numbers.empty() ? number : numbers[i].toDouble();
    }
};

// Whether a tensor is a dense float that has the storage for itself.
bool is_dense(const Tensor &x)
{
    return is_ours(x) && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble) &&
           x.storage_offset() == 0 && x.numel() > 0 && x.is_non_overlapping_and_dense() &&
           Cell::of(x)->bytes == (size_t)x.numel() * x.itemsize();
}

bool is_dense_like(const Tensor &y, const Tensor &x)
{
    return is_dense(y) && y.scalar_type() == x.scalar_type() && y.device() == x.device() &&
           y.sizes() == x.sizes() && y.strides() == x.strides();
}

bool lists_fit(TensorList self, const Operands &operands)
{
    bool fits = operands.fits && !self.empty() &&
                (operands.numbers.empty() || operands.numbers.size() == self.size());
    for (size_t k = 0; k < operands.list_count; k++) {
        fits = fits && operands.lists[k].size() == self.size();
    }
    const Tensor &shared = operands.shared;
    fits = fits && (!shared.defined() || (shared.dim() == 0 && is_dense(shared) &&
                                          shared.scalar_type() == self[0].scalar_type() &&
                                          shared.device() == self[0].device()));
    for (size_t i = 0; fits && i < self.size(); i++) {
        fits = is_dense(self[i]) && self[i].scalar_type() == self[0].scalar_type() &&
               self[i].device() == self[0].device();
        for (size_t k = 0; fits && k < operands.list_count; k++) {
            fits = is_dense_like(operands.lists[k][i], self[i]);
        }
    }
    return fits;
}

Array stored(const Tensor &x)
{
    return Array::retained(Cell::of(x)->as(type_of(x.scalar_type())));
}

// ---- Formulas: of an element of each list, the same as those of single tensors ----

using Formula = Array (*)(const Array &x, const Array *y, double number);

template <ops_unary_function F> Array function(const Array &x, const Array *, double)
{
    return unary(F, x);
}

template <ops_binary_function F> Array with_number(const Array &x, const Array *, double number)
{
    return binary(F, x, number);
}

template <ops_binary_function F> Array with_list(const Array &x, const Array *y, double alpha)
{
    return binary(F, x, alpha == 1 ? *y : *y * alpha);
}

template <ops_binary_function F> Array add_combined(const Array &x, const Array *y, double factor)
{
    const Array combined = binary(F, y[0], y[1]);
    return x + (factor == 1 ? combined : combined * factor);
}

Array interpolate(const Array &x, const Array *end, double weight)
{
    const Array span = *end - x;
    return std::abs(weight) < 0.5 ? x + span * weight : *end - span * (1 - weight);
}

// ---- Calls ----

Array compute(Formula formula, TensorList self, const Operands &operands, size_t i)
{
    const Array x = stored(self[i]);
    Array y[MAX_LISTS];
    for (size_t k = 0; k < operands.list_count; k++) {
        y[k] = matched(stored(operands.lists[k][i]), x);
    }
    if (operands.shared.defined()) {
        y[0] = array_of(operands.shared);
    }
    return formula(x, y, operands.number_of(i));
}

// Computes a result for each tensor, and passes it to `take`. Returns false where the first one
// cannot be computed, and then nothing was done.
template <class Take>
bool compute_each(Formula formula, TensorList self, const Operands &operands, Take take)
{
    size_t i = 0;
    try {
        Lock lock;
        if (!lists_fit(self, operands)) {
            return false;
        }
        for (; i < self.size(); i++) {
            take(self[i], compute(formula, self, operands, i));
        }
    } catch (const Unsupported &unsupported) {
        TORCH_CHECK(i == 0, unsupported.reason);
        return false;
    }
    return true;
}

// The operation whose loop over single tensors is SLOW.
template <Formula FORMULA, auto SLOW> struct Each;
template <Formula FORMULA, class... Arguments, void (*SLOW)(TensorList, Arguments...)>
struct Each<FORMULA, SLOW> {
    static void call(TensorList self, Arguments... arguments)
    {
        Operands operands;
        (operands.add(arguments), ...);
        if (!compute_each(FORMULA, self, operands, [](const Tensor &target, Array array) {
                Cell::of(target)->set(std::move(array));
            })) {
            SLOW(self, arguments...);
        }
    }
};
template <Formula FORMULA, class... Arguments,
          std::vector<Tensor> (*SLOW)(TensorList, Arguments...)>
struct Each<FORMULA, SLOW> {
    static std::vector<Tensor> call(TensorList self, Arguments... arguments)
    {
        Operands operands;
        (operands.add(arguments), ...);
        std::vector<Tensor> results;
        results.reserve(self.size());
        const bool done = compute_each(FORMULA, self, operands, [&](const Tensor &x, Array array) {
            results.push_back(tensor_like(std::move(array), x));
        });
        return done ? results : SLOW(self, arguments...);
    }
};

// PyTorch's names are foreach_tensor_<kind>_slow, and the same with an underscore in place.
#define FOREACH(form, overload, formula, kind)                                    \
    library.impl("_foreach_" form overload,                                       \
                 Each<formula, &at::native::foreach_tensor_##kind##_slow>::call); \
    library.impl("_foreach_" form "_" overload,                                   \
                 Each<formula, &at::native::foreach_tensor_##kind##_slow_>::call);
#define FOREACH_BINARY(form, name, F)                                      \
    FOREACH(form, ".Scalar", with_number<F>, name##_scalar_kernel)         \
    FOREACH(form, ".ScalarList", with_number<F>, name##_scalarlist_kernel) \
    FOREACH(form, ".List", with_list<F>, name##_list_kernel)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    FOREACH_BINARY("add", add, OPS_ADD)
    FOREACH_BINARY("sub", sub, OPS_SUB)
    FOREACH_BINARY("mul", mul, OPS_MUL)
    FOREACH_BINARY("div", div, OPS_DIV)
    FOREACH("mul", ".Tensor", with_list<OPS_MUL>, mul_tensor_kernel)
    FOREACH("div", ".Tensor", with_list<OPS_DIV>, div_tensor_kernel)
    FOREACH("maximum", ".List", with_list<OPS_MAXIMUM>, clamp_min_list_kernel)
    FOREACH("addcmul", ".Scalar", add_combined<OPS_MUL>, addcmul_scalar)
    FOREACH("addcmul", ".ScalarList", add_combined<OPS_MUL>, addcmul_scalarlist)
    FOREACH("addcdiv", ".Scalar", add_combined<OPS_DIV>, addcdiv_scalar)
    FOREACH("addcdiv", ".ScalarList", add_combined<OPS_DIV>, addcdiv_scalarlist)
    FOREACH("lerp", ".Scalar", interpolate, lerp_list_kernel)
    FOREACH("neg", "", function<OPS_NEG>, neg)
    FOREACH("sqrt", "", function<OPS_SQRT>, sqrt)
    FOREACH("reciprocal", "", function<OPS_RECIPROCAL>, reciprocal)
}

} // namespace
} // namespace halyard
