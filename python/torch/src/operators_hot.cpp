// The operators that programs call most, without boxing: a call on dense floats of one type takes the
// storages' arrays as they are. All other cases go to the formula of the same operator.
#include <set>

#include "call.h"

namespace halyard
{
namespace
{

template <size_t N> struct Name {
    char text[N];
    constexpr Name(const char (&name)[N])
    {
        std::copy(name, name + N, text);
    }
};

template <Name NAME, class Result, class... Arguments> Result by_formula(Arguments... arguments)
{
    static const SlowPath &path = slow_path(NAME.text);
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
        path.kernel, path.op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), arguments...);
}

bool is_real(const Tensor &x)
{
    return x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
}

// Whether a tensor is a number of the processor, whose value is stored to `number`.
bool is_number(const Tensor &x, double &number)
{
    if (x.dim() != 0 || !x.is_cpu()) {
        return false;
    }
    if (x.scalar_type() == at::kDouble) {
        number = *x.const_data_ptr<double>();
    } else if (x.scalar_type() == at::kLong) {
        number = (double)*x.const_data_ptr<int64_t>();
        return std::abs(number) < 9e15;
    } else {
        return false;
    }
    return true;
}

// f(x, y) in the order of the storages; an empty Array where that is not possible.
Array dense_binary(ops_binary_function f, const Tensor &x, const Tensor &y)
{
    double number;
    if (!is_ours(x) || !is_real(x)) {
        return Array();
    }
    if (is_number(y, number)) {
        const Array a = whole_of(x);
        return a ? binary(f, a, number) : Array();
    }
    if (!is_ours(y) || y.scalar_type() != x.scalar_type() || y.device() != x.device() ||
        x.sizes() != y.sizes() || x.strides() != y.strides()) {
        return Array();
    }
    const Array a = whole_of(x), b = whole_of(y);
    return a && b ? binary(f, a, matched(b, a)) : Array();
}

// Runs `compute` under the lock; false where it made no array, or where ops lacks the case.
template <class Compute> bool is_computed(Compute compute)
{
    try {
        Lock lock;
        return compute();
    } catch (const Unsupported &) { // the formula tells the reason
        return false;
    }
}

template <ops_unary_function F, Name NAME> Tensor unary_of(const Tensor &x)
{
    Tensor result;
    const bool done = is_real(x) && is_computed([&] {
                          const Array a = whole_of(x);
                          result = a ? tensor_like(unary(F, a), x) : Tensor();
                          return (bool)a;
                      });
    return done ? result : by_formula<NAME, Tensor, const Tensor &>(x);
}

template <ops_unary_function F, Name NAME> Tensor &unary_in_place(Tensor &x)
{
    const bool done = is_real(x) && is_computed([&] {
                          const Array a = whole_of(x);
                          if (a) {
                              Cell::of(x)->set(unary(F, a));
                          }
                          return (bool)a;
                      });
    return done ? x : by_formula<NAME, Tensor &, Tensor &>(x);
}

template <ops_binary_function F, Name NAME> Tensor binary_of(const Tensor &x, const Tensor &y)
{
    Tensor result;
    const bool done = is_computed([&] {
        const Array a = dense_binary(F, x, y);
        result = a ? tensor_like(a, x) : Tensor();
        return (bool)a;
    });
    return done ? result : by_formula<NAME, Tensor, const Tensor &, const Tensor &>(x, y);
}

template <ops_binary_function F, Name NAME> Tensor &binary_in_place(Tensor &x, const Tensor &y)
{
    const bool done = is_computed([&] {
        const Array a = dense_binary(F, x, y);
        if (a) {
            Cell::of(x)->set(a);
        }
        return (bool)a;
    });
    return done ? x : by_formula<NAME, Tensor &, Tensor &, const Tensor &>(x, y);
}

bool is_one(const at::Scalar &alpha)
{
    return alpha.isIntegral(false) && alpha.to<int64_t>() == 1;
}

template <ops_binary_function F, Name NAME>
Tensor sum_of(const Tensor &x, const Tensor &y, const at::Scalar &alpha)
{
    Tensor result;
    const bool done = is_one(alpha) && is_computed([&] {
                          const Array a = dense_binary(F, x, y);
                          result = a ? tensor_like(a, x) : Tensor();
                          return (bool)a;
                      });
    return done ? result
                : by_formula<NAME, Tensor, const Tensor &, const Tensor &, const at::Scalar &>(
                      x, y, alpha);
}

template <ops_binary_function F, Name NAME>
Tensor &sum_in_place(Tensor &x, const Tensor &y, const at::Scalar &alpha)
{
    const bool done = is_one(alpha) && is_computed([&] {
                          const Array a = dense_binary(F, x, y);
                          if (a) {
                              Cell::of(x)->set(a);
                          }
                          return (bool)a;
                      });
    return done ? x
                : by_formula<NAME, Tensor &, Tensor &, const Tensor &, const at::Scalar &>(x, y,
                                                                                           alpha);
}

bool are_matrices(const Tensor &a, const Tensor &b)
{
    return is_real(a) && a.scalar_type() == b.scalar_type() && a.dim() == 2 && b.dim() == 2 &&
           a.size(1) == b.size(0) && a.numel() && b.numel() && is_ours(a) && is_ours(b);
}

Tensor mm(const Tensor &a, const Tensor &b)
{
    Tensor result;
    const bool done = are_matrices(a, b) && is_computed([&] {
                          result = tensor_of(matmul(array_of(a), array_of(b)), a.device().index(),
                                             {a.size(0), b.size(1)}, a.scalar_type());
                          return true;
                      });
    return done ? result : by_formula<"mm", Tensor, const Tensor &, const Tensor &>(a, b);
}

Tensor addmm(const Tensor &c, const Tensor &a, const Tensor &b, const at::Scalar &beta,
             const at::Scalar &alpha)
{
    Tensor result;
    const bool fits = are_matrices(a, b) && is_one(beta) && is_one(alpha) && is_ours(c) &&
                      c.scalar_type() == a.scalar_type() && c.dim() == 1 && c.size(0) == b.size(1);
    const bool done =
        fits && is_computed([&] {
            result = tensor_of(matmul(array_of(a), array_of(b)) + array_of(c), a.device().index(),
                               {a.size(0), b.size(1)}, a.scalar_type());
            return true;
        });
    return done ? result
                : by_formula<"addmm", Tensor, const Tensor &, const Tensor &, const Tensor &,
                             const at::Scalar &, const at::Scalar &>(c, a, b, beta, alpha);
}

Tensor threshold_backward(const Tensor &g, const Tensor &x, const at::Scalar &bound)
{
    Tensor result;
    const bool fits = is_real(x) && g.scalar_type() == x.scalar_type() && g.sizes() == x.sizes() &&
                      g.strides() == x.strides();
    const bool done =
        fits && is_computed([&] {
            const Array a = whole_of(g), b = whole_of(x);
            if (a && b) {
                result = tensor_like(where(greater(matched(b, a), bound.toDouble()), a, 0.0), g);
            }
            return result.defined();
        });
    return done ? result
                : by_formula<"threshold_backward", Tensor, const Tensor &, const Tensor &,
                             const at::Scalar &>(g, x, bound);
}

#define HOT_UNARY(X)                                                                          \
    X("neg", NEG)                                                                             \
    X("abs", ABS)                                                                             \
    X("sqrt", SQRT) X("rsqrt", RSQRT) X("reciprocal", RECIPROCAL) X("exp", EXP) X("log", LOG) \
        X("sin", SIN) X("cos", COS) X("tanh", TANH) X("sigmoid", SIGMOID) X("silu", SILU)     \
            X("relu", RELU) X("erf", ERF)

const std::set<std::string> &hot_forms()
{
#define HOT_NAMES(name, F) name, name "_",
    static const auto *forms = new std::set<std::string>{HOT_UNARY(HOT_NAMES) "mul.Tensor",
                                                         "mul_.Tensor",
                                                         "div.Tensor",
                                                         "div_.Tensor",
                                                         "add.Tensor",
                                                         "add_.Tensor",
                                                         "sub.Tensor",
                                                         "sub_.Tensor",
                                                         "mm",
                                                         "addmm",
                                                         "threshold_backward"};
#undef HOT_NAMES
    return *forms;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
#define HOT_FORMS(name, F)                       \
    library.impl(name, unary_of<OPS_##F, name>); \
    library.impl(name "_", unary_in_place<OPS_##F, name "_">);
    HOT_UNARY(HOT_FORMS)
#undef HOT_FORMS
    library.impl("mul.Tensor", binary_of<OPS_MUL, "mul.Tensor">);
    library.impl("mul_.Tensor", binary_in_place<OPS_MUL, "mul_.Tensor">);
    library.impl("div.Tensor", binary_of<OPS_DIV, "div.Tensor">);
    library.impl("div_.Tensor", binary_in_place<OPS_DIV, "div_.Tensor">);
    library.impl("add.Tensor", sum_of<OPS_ADD, "add.Tensor">);
    library.impl("add_.Tensor", sum_in_place<OPS_ADD, "add_.Tensor">);
    library.impl("sub.Tensor", sum_of<OPS_SUB, "sub.Tensor">);
    library.impl("sub_.Tensor", sum_in_place<OPS_SUB, "sub_.Tensor">);
    library.impl("mm", mm);
    library.impl("addmm", addmm);
    library.impl("threshold_backward", threshold_backward);
}

} // namespace

bool is_hot(const std::string &form)
{
    return hot_forms().count(form) > 0;
}

} // namespace halyard
