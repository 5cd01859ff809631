// Reductions, softmax, scans and orders.
#include <cmath>

#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>

#include "call.h"

namespace halyard
{
namespace
{

// The axes that a reduction removes, or keeps with length 1, and the shape of
// its result.
struct Axes {
    c10::SmallVector<int32_t, OPS_MAX_RANK> axes;
    at::DimVector shape;
    bool keeps = false; // the reduced axes, with length 1
    int64_t count = 1;  // elements of each result
};

Axes axes_of(const Array &x, at::OptionalIntArrayRef dims, bool keep)
{
    const auto mask = at::native::make_dim_mask(dims, x.rank());
    Axes result;
    result.keeps = keep;
    for (int64_t i = 0; i < x.rank(); i++) {
        if (mask[(size_t)i]) {
            result.axes.push_back((int32_t)i);
            result.count *= x.length(i);
        }
        if (!mask[(size_t)i] || keep) {
            result.shape.push_back(mask[(size_t)i] ? 1 : x.length(i));
        }
    }
    return result;
}

// The axes of a call: none or an empty list means all.
Axes axes_of(const Call &c, const Array &x, size_t dims, size_t keep)
{
    const bool keeps = keep < c.count() && c.flag(keep);
    if (!c.has(dims)) {
        return axes_of(x, at::OptionalIntArrayRef(), keeps);
    }
    if (c.value(dims).isInt()) {
        const int64_t dim = c.integer(dims);
        return axes_of(x, at::IntArrayRef(dim), keeps);
    }
    const std::vector<int64_t> list = c.integers(dims);
    return axes_of(x, at::IntArrayRef(list), keeps);
}

// The same axes, kept with length 1.
Axes kept_axes(const Call &c, const Array &x, size_t dims)
{
    const std::vector<int64_t> list = c.has(dims) ? c.integers(dims) : std::vector<int64_t>();
    return axes_of(x, at::OptionalIntArrayRef(list), true);
}

Axes all_axes(const Array &x)
{
    return axes_of(x, at::OptionalIntArrayRef(), false);
}

Array full_result(const Array &x, hal_type type, const Axes &a, double value)
{
    return Array(
        ops_array_full(x.context(), type, (uint32_t)a.shape.size(), a.shape.data(), value));
}

Array reduced(ops_reduction reduction, const Array &x, const Axes &a)
{
    if (a.axes.empty()) {
        return x;
    }
    if (a.axes.size() == 1) {
        return reduce(reduction, x, a.axes[0], a.keeps);
    }
    if ((int64_t)a.axes.size() == x.rank()) { // one reduction in the place of one for each axis
        return reshape(reduce(reduction, flatten(x), 0, false), a.shape);
    }
    return Array(
        ops_array_reduce_axes(reduction, a.axes.data(), (uint32_t)a.axes.size(), a.keeps, x));
}

// Sums and products of integers are of 64 bits; narrow floats are added in F32.
hal_type sum_type(const Call &c, size_t dtype, hal_type *result)
{
    const ScalarType own = c.tensor(0).scalar_type();
    const ScalarType type = c.dtype_or(dtype, c10::isIntegralType(own, true) ? at::kLong : own);
    *result = type_of(type);
    if (*result == HAL_TYPE_NONE) {
        throw Unsupported("a type that Halyard lacks");
    }
    return hal_type_is_narrow_float(*result) ? (hal_type)HAL_TYPE_F32 : *result;
}

template <ops_reduction R> Results sum(const Call &c, size_t dims, size_t keep, size_t dtype)
{
    hal_type result;
    const hal_type type = sum_type(c, dtype, &result);
    TORCH_CHECK(R != OPS_REDUCE_MEAN || hal_type_is_float(result),
                "mean(): could not infer output dtype. ", c.has(dtype) ? "Optional" : "Input",
                " dtype must be either a floating point or complex dtype. Got: ",
                c.dtype_or(dtype, c.tensor(0).scalar_type()));
    const Array x = c.cast_to(0, type);
    const Axes axes = dims ? axes_of(c, x, dims, keep) : all_axes(x);
    if (R == OPS_REDUCE_MEAN && axes.count == 0) {
        return {full_result(x, result, axes, NAN)};
    }
    return {cast(reduced(R, x, axes), result)};
}

template <ops_reduction R> Results sum_all(const Call &c)
{
    return sum<R>(c, 0, 0, 1);
}
template <ops_reduction R> Results sum_dims(const Call &c)
{
    return sum<R>(c, 1, 2, 3);
}

// Extremes have no BOOL: bytes take their place.
Array orderable(const Call &c)
{
    const Array x = c.plain(0);
    return x.type() == HAL_TYPE_BOOL ? cast(x, HAL_TYPE_I32) : x;
}

Array extreme(const Call &c, ops_reduction r, const Array &x, const Axes &axes)
{
    if (axes.count == 0) {
        throw Unsupported("the extreme of nothing");
    }
    return cast(reduced(r, x, axes), type_of(c.tensor(0).scalar_type()));
}

template <ops_reduction R> Results extreme_dims(const Call &c) // x, dim, keepdim, out
{
    TORCH_CHECK(c.count() < 4 || c.tensor(0).scalar_type() == c.tensor(3).scalar_type(),
                "Expected the dtype for input and out to match, but got ",
                c.tensor(0).scalar_type(), " for input's dtype and ", c.tensor(3).scalar_type(),
                " for out's dtype.");
    const Array x = orderable(c);
    return {extreme(c, R, x, axes_of(c, x, 1, 2))};
}
template <ops_reduction R> Results extreme_all(const Call &c)
{
    const Array x = orderable(c);
    return {extreme(c, R, x, all_axes(x))};
}

template <ops_reduction R> Results index_of(const Call &c)
{
    const Array x = orderable(c);
    const Axes axes =
        c.has(1) ? axes_of(c, x, 1, 2) : axes_of(x, at::OptionalIntArrayRef(), c.flag(2));
    if (axes.count == 0) {
        throw Unsupported("the place of an extreme of nothing");
    }
    if (x.rank() == 0) {
        return {scalar(c.context(), HAL_TYPE_I64, 0)};
    }
    return {cast(reduced(R, x, axes), HAL_TYPE_I64)};
}

// The extreme along one axis and its place.
template <ops_reduction R, ops_reduction PLACE> Results extreme_and_place(const Call &c)
{
    const Array x = orderable(c);
    const Axes axes = axes_of(c, x, 1, 2);
    if (axes.count == 0) {
        throw Unsupported("the extreme of nothing");
    }
    if (x.rank() == 0) {
        return {c.plain(0), scalar(c.context(), HAL_TYPE_I64, 0)};
    }
    return {extreme(c, R, x, axes), cast(reduced(PLACE, x, axes), HAL_TYPE_I64)};
}

template <ops_reduction R> Results truth(const Call &c, size_t dims, size_t keep)
{
    const Array x = cast(c.cast_to(0, HAL_TYPE_BOOL), HAL_TYPE_I32);
    const Axes axes = dims ? axes_of(c, x, dims, keep) : all_axes(x);
    const hal_type type = c.tensor(0).scalar_type() == at::kByte ? HAL_TYPE_U8 : HAL_TYPE_BOOL;
    if (dims && c.value(dims).isIntList() && c.integers(dims).empty()) { // of no axes: each element
        return {cast(x, type)};
    }
    if (x.count() == 0) { // any of nothing is false, all is true
        return {Array(ops_array_full(c.context(), type, (uint32_t)axes.shape.size(),
                                     axes.shape.data(), R == OPS_REDUCE_MIN))};
    }
    return {cast(reduced(R, x, axes), type)};
}

// ---- Variance and norms ----

struct Moments {
    Array mean;
    Array variance;
};

Moments moments(const Call &c)
{
    if (!hal_type_is_float(c.common())) {
        throw Unsupported("the variance of integers");
    }
    const Array x = c[0];
    const Axes axes = axes_of(c, x, 1, 3), kept = kept_axes(c, x, 1);
    const double correction = c.number_or(2, 1);
    const double divisor = std::max(0.0, (double)axes.count - correction);
    if (axes.count == 0) {
        const Array nothing = full_result(x, x.type(), axes, NAN);
        return {nothing, nothing};
    }
    const Array mean = reduced(OPS_REDUCE_MEAN, x, kept);
    const Array total = reduced(OPS_REDUCE_SUM, square(x - mean), kept);
    return {reshape(mean, axes.shape), reshape(total / divisor, axes.shape)};
}

// The norm of an order, of x in place of the call's operand.
Array norm_of(const Call &c, const Array &x)
{
    const Axes axes = c.count() > 2 ? axes_of(c, x, 2, 3) : all_axes(x);
    const double order = c.number_or(1, 2);
    if (axes.count == 0) {
        throw Unsupported("the norm of nothing");
    }
    if (order == 2) {
        return unary(OPS_SQRT, reduced(OPS_REDUCE_SUM, square(x), axes));
    }
    const Array magnitude = unary(OPS_ABS, x);
    if (order == 1) {
        return reduced(OPS_REDUCE_SUM, magnitude, axes);
    }
    if (std::isinf(order)) {
        return reduced(order > 0 ? OPS_REDUCE_MAX : OPS_REDUCE_MIN, magnitude, axes);
    }
    if (order == 0) {
        return reduced(OPS_REDUCE_SUM, cast(not_equal(x, 0), x.type()), axes);
    }
    return power(reduced(OPS_REDUCE_SUM, power(magnitude, order), axes), 1 / order);
}

Results vector_norm(const Call &c)
{
    // Of norm.out argument 4 is the tensor that it writes.
    const bool has_type = c.count() > 4 && c.has(4) && !c.value(4).isTensor();
    const hal_type type = type_of(has_type ? c.value(4).toScalarType() : c.tensor(0).scalar_type());
    if (!hal_type_is_float(c.common()) || !hal_type_is_float(type)) {
        throw Unsupported("a norm of another type");
    }
    if (type != c.common()) {
        const hal_type wide = hal_type_is_narrow_float(type) ? (hal_type)HAL_TYPE_F32 : type;
        return {cast(norm_of(c, c.cast_to(0, wide)), type)};
    }
    return {norm_of(c, c[0])};
}

Results log_sum_exp(const Call &c)
{
    if (!hal_type_is_float(c.common())) {
        throw Unsupported("logsumexp of integers");
    }
    const Array x = c[0];
    const Axes axes = axes_of(c, x, 1, 2);
    const Axes kept = kept_axes(c, x, 1);
    if (axes.count == 0) {
        throw Unsupported("logsumexp of nothing");
    }
    Array most = reduced(OPS_REDUCE_MAX, x, kept);
    most = where(unary(OPS_IS_INFINITE, most), 0.0, most);
    const Array total = reduced(OPS_REDUCE_SUM, exp_of(x - most), kept);
    return {reshape(unary(OPS_LOG, total) + most, axes.shape)};
}

// ---- Softmax ----

// A scalar counts as one row.
Array at_least_one_axis(const Array &x)
{
    return x.rank() ? x : flatten(x);
}

// An axis that PyTorch takes: a conversion to int32_t would make one of others.
int32_t axis_at(const Call &c, size_t index, const Array &x)
{
    return (int32_t)at::maybe_wrap_dim(c.integer(index), x.rank());
}

Results softmax_of(const Call &c, bool is_log)
{
    const Tensor &x = c.tensor(0);
    if (!hal_type_is_float(type_of(x.scalar_type()))) {
        throw Unsupported("softmax of integers");
    }
    if (x.numel() == 0) {
        return {c.plain(0)};
    }
    const bool widens = c.count() > 2 && c.value(2).isBool() && c.flag(2);
    const Array operand = at_least_one_axis(widens ? c.cast_to(0, HAL_TYPE_F32) : c.plain(0));
    const int32_t axis = axis_at(c, 1, operand);
    const Array result(is_log ? ops_array_log_softmax(axis, operand)
                              : ops_array_softmax(axis, operand));
    return {reshape(result, x.sizes())};
}

// Rows of which all elements are -infinity give 0.
Results safe_softmax(const Call &c)
{
    const Array x =
        at_least_one_axis(c.cast_to(0, type_of(c.dtype_or(2, c.tensor(0).scalar_type()))));
    if (x.count() == 0) {
        throw Unsupported("softmax of nothing");
    }
    const int32_t axis = axis_at(c, 1, x);
    const Array most = reduce(OPS_REDUCE_MAX, x, axis, true);
    const Array result(ops_array_softmax(axis, x));
    return {reshape(where(equal(most, -INFINITY), 0.0, result), c.tensor(0).sizes())};
}

Results softmax_backward(const Call &c)
{
    const Array g = at_least_one_axis(c[0]), y = at_least_one_axis(c[1]), gy = g * y;
    const Array x = gy - y * reduce(OPS_REDUCE_SUM, gy, axis_at(c, 2, gy), true);
    const hal_type type = type_of(c.value(3).toScalarType());
    return {cast(reshape(x, c.tensor(0).sizes()), type)};
}

Results log_softmax_backward(const Call &c)
{
    const Array g = at_least_one_axis(c[0]), y = at_least_one_axis(c[1]);
    const Array x = g - exp_of(y) * reduce(OPS_REDUCE_SUM, g, axis_at(c, 2, g), true);
    const hal_type type = type_of(c.value(3).toScalarType());
    return {cast(reshape(x, c.tensor(0).sizes()), type)};
}

// ---- Scans and orders ----

template <ops_scan_kind K> Results scan(const Call &c)
{
    hal_type result;
    const hal_type type = sum_type(c, 2, &result);
    const Array x = c.cast_to(0, type);
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.rank());
    if (x.rank() == 0 || x.count() == 0) {
        return {cast(x, result)};
    }
    return {cast(Array(ops_array_scan(K, (int32_t)axis, x)), result)};
}

Results order(const Array &x, int64_t dim, bool descending, int64_t count)
{
    const int64_t axis = at::maybe_wrap_dim(dim, x.rank());
    if (x.count() == 0 || count == 0) {
        throw Unsupported("the order of nothing");
    }
    if (x.rank() == 0) {
        return {x, scalar(x.context(), HAL_TYPE_I64, 0)};
    }
    const Array places(ops_array_argsort((int32_t)axis, descending, count, x));
    const Array values(ops_array_take_along_axis((int32_t)axis, x, places));
    return {values, cast(places, HAL_TYPE_I64)};
}

// The extremes of every beginning, and where the last of them is.
template <ops_scan_kind K, ops_binary_function REACHES>
Results running_extreme(const Call &c) // x, values, indices, dim
{
    const Array x = c.plain(0);
    if (x.rank() == 0 || x.count() == 0 || x.type() == HAL_TYPE_BOOL) {
        throw Unsupported("a scan of a scalar or of bool");
    }
    const int64_t axis = at::maybe_wrap_dim(c.integer(3), x.rank());
    const Array values(ops_array_scan(K, (int32_t)axis, x));
    at::DimVector along((size_t)x.rank(), 1);
    along[(size_t)axis] = x.length(axis);
    const Array numbers(ops_array_iota(x.context(), HAL_TYPE_I32, x.length(axis), 0, 1));
    Array reaches = binary(REACHES, x, values);
    if (hal_type_is_float(x.type())) {
        reaches = either(reaches, unary(OPS_IS_NAN, x));
    }
    const Array places =
        where(reaches, broadcast(reshape(numbers, along), c.tensor(0).sizes()), 0.0);
    const Array last(ops_array_scan(OPS_SCAN_MAX, (int32_t)axis, places));
    assign(c.tensor(1), values);
    assign(c.tensor(2), cast(last, HAL_TYPE_I64));
    return {};
}

Results sort_stable(const Call &c) // self, stable, dim, descending
{
    return order(c.plain(0), c.integer(2), c.flag(3), -1);
}
Results top(const Call &c) // self, k, dim, largest, sorted
{
    const Array x = c.plain(0);
    TORCH_CHECK(
        c.integer(1) >= 0 &&
            (x.rank() == 0 || c.integer(1) <= x.length(at::maybe_wrap_dim(c.integer(2), x.rank()))),
        "selected index k out of range");
    return order(x, c.integer(2), c.flag(3), c.integer(1));
}

const Operator TABLE[] = {
    {"sum", Types::PLAIN, sum_all<OPS_REDUCE_SUM>},
    {"sum.dim_IntList sum.IntList_out", Types::PLAIN, sum_dims<OPS_REDUCE_SUM>},
    {"mean", Types::PLAIN, sum_all<OPS_REDUCE_MEAN>},
    {"mean.dim mean.out", Types::PLAIN, sum_dims<OPS_REDUCE_MEAN>},
    {"prod", Types::PLAIN, sum_all<OPS_REDUCE_PRODUCT>},
    {"prod.dim_int prod.int_out", Types::PLAIN, sum_dims<OPS_REDUCE_PRODUCT>},
    {"amax amax.out", Types::PLAIN, extreme_dims<OPS_REDUCE_MAX>},
    {"amin amin.out", Types::PLAIN, extreme_dims<OPS_REDUCE_MIN>},
    {"max", Types::PLAIN, extreme_all<OPS_REDUCE_MAX>},
    {"min", Types::PLAIN, extreme_all<OPS_REDUCE_MIN>},
    {"max.dim max.dim_max", Types::PLAIN, extreme_and_place<OPS_REDUCE_MAX, OPS_REDUCE_ARGMAX>,
     Sharing::WHOLE},
    {"min.dim min.dim_min", Types::PLAIN, extreme_and_place<OPS_REDUCE_MIN, OPS_REDUCE_ARGMIN>,
     Sharing::WHOLE},
    {"aminmax aminmax.out", Types::PLAIN,
     [](const Call &c) -> Results { // x, dim, keepdim, min, max
         for (size_t i = 3; i < c.count(); i++) {
             TORCH_CHECK(c.tensor(i).scalar_type() == c.tensor(0).scalar_type(),
                         "Expected out tensor to have dtype ", c.tensor(0).dtype(), ", but got ",
                         c.tensor(i).dtype(), " instead");
         }
         const Array x = orderable(c);
         const Axes axes =
             c.has(1) ? axes_of(c, x, 1, 2) : axes_of(x, at::OptionalIntArrayRef(), c.flag(2));
         return {extreme(c, OPS_REDUCE_MIN, x, axes), extreme(c, OPS_REDUCE_MAX, x, axes)};
     },
     Sharing::WHOLE},
    {"argmax argmax.out", Types::PLAIN, index_of<OPS_REDUCE_ARGMAX>},
    {"argmin argmin.out", Types::PLAIN, index_of<OPS_REDUCE_ARGMIN>},
    {"any any.all_out", Types::PLAIN, [](const Call &c) { return truth<OPS_REDUCE_MAX>(c, 0, 0); }},
    {"any.dim any.out any.dims any.dims_out", Types::PLAIN,
     [](const Call &c) { return truth<OPS_REDUCE_MAX>(c, 1, 2); }},
    {"all all.all_out", Types::PLAIN, [](const Call &c) { return truth<OPS_REDUCE_MIN>(c, 0, 0); }},
    {"all.dim all.out all.dims all.dims_out", Types::PLAIN,
     [](const Call &c) { return truth<OPS_REDUCE_MIN>(c, 1, 2); }},
    {"var.correction var.correction_out", Types::COMMON,
     [](const Call &c) -> Results { return {moments(c).variance}; }},
    {"std.correction std.correction_out", Types::COMMON,
     [](const Call &c) -> Results { return {unary(OPS_SQRT, moments(c).variance)}; }},
    {"var_mean.correction", Types::COMMON,
     [](const Call &c) -> Results {
         const Moments m = moments(c);
         return {m.variance, m.mean};
     }},
    {"std_mean.correction", Types::COMMON,
     [](const Call &c) -> Results {
         const Moments m = moments(c);
         return {unary(OPS_SQRT, m.variance), m.mean};
     }},
    {"linalg_vector_norm linalg_vector_norm.out norm.Scalar norm.ScalarOpt_dim "
     "norm.out",
     Types::COMMON, vector_norm},
    {"nansum nansum.out", Types::PLAIN,
     [](const Call &c) -> Results {
         hal_type result;
         const hal_type type = sum_type(c, 3, &result);
         Array x = c.cast_to(0, type);
         x = hal_type_is_float(type) ? where(unary(OPS_IS_NAN, x), 0.0, x) : x;
         return {cast(reduced(OPS_REDUCE_SUM, x, axes_of(c, x, 1, 2)), result)};
     }},
    {"logsumexp logsumexp.out", Types::COMMON, log_sum_exp},
    {"_softmax _softmax.out", Types::PLAIN, [](const Call &c) { return softmax_of(c, false); }},
    {"_log_softmax _log_softmax.out", Types::PLAIN,
     [](const Call &c) { return softmax_of(c, true); }},
    {"_safe_softmax", Types::PLAIN, safe_softmax},
    {"_softmax_backward_data _softmax_backward_data.out", Types::COMMON, softmax_backward},
    {"_log_softmax_backward_data _log_softmax_backward_data.out", Types::COMMON,
     log_softmax_backward},
    {"cumsum cumsum_ cumsum.out", Types::PLAIN, scan<OPS_SCAN_SUM>, Sharing::WHOLE},
    {"cumprod cumprod_ cumprod.out", Types::PLAIN, scan<OPS_SCAN_PRODUCT>, Sharing::WHOLE},
    {"_cummax_helper", Types::PLAIN, running_extreme<OPS_SCAN_MAX, OPS_GE>},
    {"_cummin_helper", Types::PLAIN, running_extreme<OPS_SCAN_MIN, OPS_LE>},
    {"sort.stable sort.values_stable", Types::PLAIN, sort_stable, Sharing::WHOLE},
    {"topk topk.values", Types::PLAIN, top, Sharing::WHOLE},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
