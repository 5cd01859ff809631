// Functions that programs call less often: special functions, searches, medians, distances.
#include <cmath>
#include <limits>

#include <ATen/WrapDimUtils.h>

#include "call.h"

namespace halyard
{
namespace
{

constexpr double PI = 3.14159265358979323846;

void require_float(const Call &c)
{
    if (!hal_type_is_float(c.common())) {
        throw Unsupported("integers");
    }
}

Array magnitude(const Array &x)
{
    return unary(OPS_ABS, x);
}

// ---- Elements ----

Results rsub(const Call &c) // x, y, alpha: y - alpha * x
{
    const double alpha = c.number_or(2, 1);
    const Array x = alpha == 1 ? c[0] : c[0] * alpha;
    if (c.common() == HAL_TYPE_BOOL) {
        throw Unsupported("subtraction of bool");
    }
    return {c.is_number(1) ? c.number(1) - x : c[1] - x};
}

Results sinc(const Call &c)
{
    const Array x = c[0], product = x * PI;
    return {where(equal(x, 0), 1.0, unary(OPS_SIN, product) / product)};
}

Results signbit(const Call &c)
{
    const Array x = c.plain(0);
    if (!hal_type_is_float(x.type())) {
        return {hal_type_is_signed(x.type()) ? less(x, 0) : not_equal(x, x)};
    }
    return {either(less(x, 0), both(equal(x, 0), less(1.0 / x, 0)))};
}

Results logaddexp2(const Call &c)
{
    const Array x = c[0], y = c[1], most = maximum(x, y);
    const Array rest = unary(OPS_LOG1P, unary(OPS_EXP2, -magnitude(x - y))) / std::log(2.0);
    return {where(unary(OPS_IS_INFINITE, most), most, most + rest)};
}

Results xlog1py(const Call &c)
{
    const Array x = c[0], y = c[1], product = x * unary(OPS_LOG1P, y);
    return {where(unary(OPS_IS_NAN, y), y, where(equal(x, 0), 0.0, product))};
}

Results entropy(const Call &c) // -x log x
{
    const Array x = c[0];
    const Array value = where(equal(x, 0), 0.0, -x * unary(OPS_LOG, x));
    return {where(less(x, 0), -std::numeric_limits<double>::infinity(), value)};
}

Results angle(const Call &c)
{
    const Array x = c[0];
    return {where(unary(OPS_IS_NAN, x), x, where(less(x, 0), PI, scalar_like(x, 0)))};
}

// The scale is applied as PyTorch does it, so that halves round the same way.
Results round_decimals(const Call &c) // x, decimals
{
    require_float(c);
    const int64_t decimals = c.integer(1);
    const Array x = c[0];
    const double ten = std::pow(10.0, std::abs((double)decimals));
    if (decimals == 0) {
        return {unary(OPS_ROUND, x)};
    }
    return {decimals > 0 ? unary(OPS_ROUND, x * ten) / ten : unary(OPS_ROUND, x / ten) * ten};
}

Results prelu(const Call &c)
{
    const Array x = c[0];
    return {where(greater(x, 0), x, x * c[1])};
}

Results prelu_backward(const Call &c) // g, x, weight
{
    const Array g = c[0], x = c[1], is_positive = greater(x, 0);
    const Array slope = where(is_positive, g, g * c[2]);
    at::DimVector shape; // of both, also where the weight has more axes
    for (int64_t i = 0; i < slope.rank(); i++) {
        shape.push_back(slope.length(i));
    }
    return {slope, broadcast(where(is_positive, 0.0, g * x), shape)};
}

// ---- Sums ----

Array summed(const Array &x, const std::vector<int64_t> &dims, bool keep)
{
    std::vector<int32_t> axes;
    for (const int64_t dim : dims) {
        axes.push_back((int32_t)at::maybe_wrap_dim(dim, x.rank()));
    }
    if (x.rank() == 0) {
        return x;
    }
    return Array(ops_array_reduce_axes(OPS_REDUCE_SUM, axes.empty() ? nullptr : axes.data(),
                                       (uint32_t)axes.size(), keep, x));
}

Results count_nonzero(const Call &c) // x, dims
{
    const std::vector<int64_t> dims = c.integers(1);
    return {summed(cast(c.cast_to(0, HAL_TYPE_BOOL), HAL_TYPE_I64), dims, false)};
}

Results trace(const Call &c)
{
    const Array x = c.plain(0);
    if (x.rank() != 2 || x.count() == 0 || !hal_type_is_float(x.type())) {
        throw Unsupported("a trace of integers or of nothing");
    }
    const int64_t n = std::min(x.length(0), x.length(1)), columns = x.length(1);
    const Array places(ops_array_iota(c.context(), HAL_TYPE_I64, n, 0, (double)(columns + 1)));
    return {reduce(OPS_REDUCE_SUM, Array(ops_array_gather(0, flatten(x), places)), 0, false)};
}

Results cross(const Call &c) // x, y, dim
{
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const int64_t dim = c.integer(2);
    TORCH_CHECK(a.dim() == b.dim(),
                "linalg.cross: inputs must have the same number of dimensions.");
    TORCH_CHECK(a.size(dim) == 3 && b.size(dim) == 3, "linalg.cross: inputs dimension ", dim,
                " must have length 3. Got ", a.size(dim), " and ", b.size(dim));
    require_float(c);
    at::DimVector shape = at::infer_size_dimvector(c.tensor(0).sizes(), c.tensor(1).sizes());
    const int64_t axis = at::maybe_wrap_dim(c.integer(2), (int64_t)shape.size());
    if (shape[(size_t)axis] != 3 || c.tensor(0).numel() == 0 || c.tensor(1).numel() == 0) {
        throw Unsupported("an axis of another length than 3");
    }
    const Array x = broadcast(c[0], shape), y = broadcast(c[1], shape);
    const auto at = [&](const Array &v, int64_t i) { return slice(v, axis, i % 3, 1); };
    std::vector<Array> parts;
    for (int64_t i = 0; i < 3; i++) {
        parts.push_back(at(x, i + 1) * at(y, i + 2) - at(x, i + 2) * at(y, i + 1));
    }
    ops_array *list[3] = {parts[0], parts[1], parts[2]};
    return {Array(ops_array_concatenate((int32_t)axis, list, 3))};
}

Results add_batches(const Call &c) // y, a, b, beta, alpha: the sum of the batches' products
{
    const Array a = c.plain(1), b = c.plain(2);
    if (a.rank() != 3 || b.rank() != 3 || a.length(0) != b.length(0) ||
        a.length(2) != b.length(1) || a.type() != HAL_TYPE_F32 || b.type() != HAL_TYPE_F32 ||
        c.tensor(0).scalar_type() != at::kFloat || a.count() == 0 || b.count() == 0) {
        throw Unsupported("shapes or types that do not fit");
    }
    const Array sum = reduce(OPS_REDUCE_SUM, matmul(a, b), 0, false) * c.number(4);
    const at::DimVector shape{a.length(1), b.length(2)};
    const double beta = c.number(3);
    return {beta == 0 ? sum : broadcast(sum + c.plain(0) * beta, shape)};
}

// ---- Searches: comparisons of all pairs, summed in the kernel that compares ----

constexpr int64_t MOST_PAIRS = int64_t(1) << 26;

Array with_axis(const Array &x, bool at_end)
{
    at::DimVector shape;
    for (int64_t i = 0; i < x.rank(); i++) {
        shape.push_back(x.length(i));
    }
    shape.insert(at_end ? shape.end() : shape.end() - 1, 1);
    return reshape(x, shape);
}

// How many of the sorted elements are below each value, or not above it.
Array places_in(const Array &sorted, const Array &values, bool is_right)
{
    if (sorted.count() == 0 || values.count() == 0) {
        at::DimVector shape;
        for (int64_t i = 0; i < values.rank(); i++) {
            shape.push_back(values.length(i));
        }
        return Array(ops_array_full(values.context(), HAL_TYPE_I32, (uint32_t)shape.size(),
                                    shape.data(), 0));
    }
    if (sorted.rank() == 1 && sorted.type() == values.type()) {
        return Array(ops_array_search_sorted(sorted, values, is_right));
    }
    if (sorted.length(sorted.rank() - 1) * values.count() > MOST_PAIRS) {
        throw Unsupported("a search of very many");
    }
    const Array s = sorted.rank() == 1 ? sorted : with_axis(sorted, false);
    const Array v = with_axis(values, true);
    const Array counted = is_right ? less_equal(s, v) : less(s, v);
    return reduce(OPS_REDUCE_SUM, cast(counted, HAL_TYPE_I32), counted.rank() - 1, false);
}

Results bucketize(const Call &c) // values, boundaries, out_int32, right
{
    TORCH_CHECK(c.tensor(1).dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
                c.tensor(1).dim(), ")");
    if (c.is_number(0)) {
        throw Unsupported("a search for a number");
    }
    const Array places = places_in(c[1], c[0], c.flag(3));
    return {cast(places, c.flag(2) ? HAL_TYPE_I32 : HAL_TYPE_I64)};
}

Results search_sorted(const Call &c) // sorted, values, out_int32, right, side, sorter
{
    Array sorted = c[0];
    const Array values = c[1];
    if (values.rank() == 0 || (sorted.rank() != 1 && sorted.rank() != values.rank())) {
        throw Unsupported("a search for a number");
    }
    if (c.has(5) && sorted.count()) {
        sorted = Array(ops_array_take_along_axis((int32_t)sorted.rank() - 1, sorted, c.plain(5)));
    }
    const auto side = c.value(4).toOptional<std::string_view>();
    const Array places = places_in(sorted, values, c.flag(3) || (side && *side == "right"));
    return {cast(places, c.flag(2) ? HAL_TYPE_I32 : HAL_TYPE_I64)};
}

Results is_in(const Call &c) // elements, tests, assume_unique, invert
{
    if (c.is_number(0) || c.is_number(1)) {
        throw Unsupported("a search for a number");
    }
    const Array x = c[0], tests = flatten(c[1]);
    if (x.count() == 0 || tests.count() == 0 || x.count() * tests.count() > MOST_PAIRS) {
        throw Unsupported("a search in nothing, or of very many");
    }
    const Array hits = cast(equal(with_axis(x, true), tests), HAL_TYPE_I32);
    const Array found = not_equal(reduce(OPS_REDUCE_MAX, hits, x.rank(), false), 0);
    return {c.flag(3) ? logical_not(found) : found};
}

// ---- Orders ----

// The element at place k of the order, along the last axis of [rows, n], and where it was.
Results kth(const Array &x, int64_t axis, int64_t k, bool keep)
{
    const Array order(ops_array_argsort((int32_t)axis, 0, k + 1, x));
    Array place = slice(order, axis, k, 1);
    Array value(ops_array_take_along_axis((int32_t)axis, x, place));
    if (!keep) {
        at::DimVector shape;
        for (int64_t i = 0; i < x.rank(); i++) {
            if (i != axis) {
                shape.push_back(x.length(i));
            }
        }
        value = reshape(value, shape);
        place = reshape(place, shape);
    }
    return {value, cast(place, HAL_TYPE_I64)};
}

Results kth_value(const Call &c) // x, k, dim, keep
{
    const Array x = c.plain(0);
    const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.rank());
    if (x.rank() == 0 || c.integer(1) < 1 || c.integer(1) > x.length(axis) || x.count() == 0) {
        throw Unsupported("a place out of range");
    }
    return kth(x, axis, c.integer(1) - 1, c.flag(3));
}

Results median(const Call &c) // of all elements; NaN if any is
{
    const Array x = flatten(c.plain(0));
    if (x.count() == 0) {
        throw Unsupported("the median of nothing");
    }
    const at::DimVector scalar_shape;
    const Array middle = reshape(kth(x, 0, (x.count() - 1) / 2, false)[0], scalar_shape);
    if (!hal_type_is_float(x.type())) {
        return {middle};
    }
    const Array most = reduce(OPS_REDUCE_MAX, x, 0, false); // NaN if any is
    return {where(unary(OPS_IS_NAN, most), most, middle)};
}

// ---- Distances ----

Results distances(const Call &c) // x [.., m, d], y [.., n, d], p, mode
{
    const Array x = c[0], y = c[1];
    const double p = c.number(2);
    if (x.count() == 0 || y.count() == 0 || x.rank() < 2 || x.rank() != y.rank() ||
        !(p == 1 || p == 2 || std::isinf(p))) {
        throw Unsupported("a distance of another kind");
    }
    at::DimVector rows(c.tensor(0).sizes()), columns(c.tensor(1).sizes());
    rows.insert(rows.end() - 1, 1);
    columns.insert(columns.end() - 2, 1);
    const Array d = magnitude(reshape(x, rows) - reshape(y, columns));
    const int64_t axis = d.rank() - 1;
    if (std::isinf(p)) {
        return {reduce(OPS_REDUCE_MAX, d, axis, false)};
    }
    if (p == 1) {
        return {reduce(OPS_REDUCE_SUM, d, axis, false)};
    }
    return {unary(OPS_SQRT, reduce(OPS_REDUCE_SUM, square(d), axis, false))};
}

Results channel_shuffle(const Call &c) // x [n, channels, ...], groups
{
    const Array x = c.plain(0);
    const int64_t groups = c.integer(1), n = x.length(0), channels = x.length(1);
    if (groups < 1 || x.rank() < 3 || channels % groups || x.count() == 0) {
        throw Unsupported("groups that do not divide the channels");
    }
    const at::DimVector split{n, groups, channels / groups, x.count() / (n * channels)};
    return {reshape(transpose(reshape(x, split), 1, 2), c.tensor(0).sizes())};
}

#define FORMS(name) name " " name "_ " name ".out"

const Operator TABLE[] = {
    {"rsub.Tensor rsub.Scalar", Types::COMMON, rsub},
    {FORMS("sinc"), Types::FLOAT, sinc, Sharing::WHOLE},
    {"signbit signbit.out", Types::PLAIN, signbit, Sharing::WHOLE},
    {"logaddexp2 logaddexp2.out", Types::FLOAT, logaddexp2, Sharing::WHOLE},
    {"special_xlog1py special_xlog1py.out", Types::FLOAT, xlog1py, Sharing::WHOLE},
    {"special_entr special_entr.out", Types::FLOAT, entropy, Sharing::WHOLE},
    {"angle angle.out", Types::FLOAT, angle, Sharing::WHOLE},
    {"round.decimals round_.decimals round.decimals_out", Types::COMMON, round_decimals,
     Sharing::WHOLE},
    {"_prelu_kernel", Types::COMMON, prelu},
    {"_prelu_kernel_backward", Types::COMMON, prelu_backward},
    {"count_nonzero.dim_IntList", Types::PLAIN, count_nonzero},
    {"trace", Types::PLAIN, trace},
    {"linalg_cross linalg_cross.out", Types::SINGLE, cross, Sharing::NONE},
    {"addbmm addbmm_ addbmm.out", Types::PLAIN, add_batches, Sharing::FIRST_WHOLE},
    {"bucketize.Tensor bucketize.Tensor_out", Types::COMPARE, bucketize},
    {"searchsorted.Tensor searchsorted.Tensor_out", Types::COMPARE, search_sorted},
    {"isin.Tensor_Tensor isin.Tensor_Tensor_out", Types::COMPARE, is_in},
    {"kthvalue kthvalue.values", Types::PLAIN, kth_value, Sharing::NONE},
    {"median", Types::PLAIN, median},
    {"_cdist_forward", Types::COMMON, distances},
    {"channel_shuffle native_channel_shuffle", Types::PLAIN, channel_shuffle},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
