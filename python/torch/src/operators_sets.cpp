// Medians, modes, sets, histograms and repetitions. Results whose sizes depend on values read them.
#include <cmath>
#include <limits>

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>

#include "call.h"

namespace halyard
{
namespace
{

using Shape = at::DimVector;

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr int64_t MOST_PAIRS = int64_t(1) << 26;

Array numbers(ops_context *context, hal_type type, int64_t count)
{
    if (count == 0) {
        return Array(ops_array_full(context, type, 1, &count, 0));
    }
    return Array(ops_array_iota(context, type, count, 0, 1));
}

Array full(ops_context *context, hal_type type, const Shape &shape, double value)
{
    return Array(ops_array_full(context, type, (uint32_t)shape.size(), shape.data(), value));
}

Shape shape_of(const Array &x)
{
    Shape shape;
    for (int64_t i = 0; i < x.rank(); i++) {
        shape.push_back(x.length(i));
    }
    return shape;
}

template <class T> T read_number(const Array &x)
{
    T value;
    check(ops_array_read(x, sizeof value, &value));
    return value;
}

Array sum_of(const Array &x, int64_t axis)
{
    return reduce(OPS_REDUCE_SUM, x, axis, false);
}

// ---- Medians ----

// The element of each row at a place of the ascending order, and its index; `place` has length 1 at
// the axis.
Results at_place(const Call &c, const Array &x, int64_t axis, const Array &place, bool keep)
{
    const Array order(ops_array_argsort((int32_t)axis, 0, -1, x));
    Array index(ops_array_take_along_axis((int32_t)axis, order, place));
    Array value(ops_array_take_along_axis((int32_t)axis, x, index));
    Shape shape = shape_of(place);
    if (c.tensor(0).dim() == 0) {
        shape.clear();
    } else if (!keep) {
        shape.erase(shape.begin() + axis);
    }
    return {reshape(value, shape), cast(reshape(index, shape), HAL_TYPE_I64)};
}

// x, dim, keep. The lower one of two medians; NaN if the row has one, or of the numbers alone.
Results median(const Call &c, bool leaves_nan)
{
    const Array own = c.plain(0), x = own.rank() ? own : flatten(own);
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.rank());
    if (x.count() == 0) {
        throw Unsupported("the median of nothing");
    }
    Shape shape = shape_of(x);
    shape[(size_t)axis] = 1;
    const int64_t middle = (x.length(axis) - 1) / 2, last = x.length(axis) - 1;
    Array place = full(c.context(), HAL_TYPE_I32, shape, (double)middle);
    if (hal_type_is_float(x.type())) {
        const Array nans =
            reduce(OPS_REDUCE_SUM, cast(unary(OPS_IS_NAN, x), HAL_TYPE_I32), axis, true);
        const Array valid = (double)(last + 1) - nans; // NaN is last in the order
        place = leaves_nan ? where(greater(valid, 0), (maximum(valid, 1) - 1) / 2, 0.0)
                           : where(greater(nans, 0), valid, place);
    }
    return at_place(c, x, axis, place, c.flag(2));
}

Results median_without_nan(const Call &c) // of all elements
{
    const Array x = flatten(c.plain(0));
    if (x.count() == 0 || !hal_type_is_float(x.type())) {
        throw Unsupported("the median of nothing or of integers");
    }
    const Array valid = sum_of(cast(logical_not(unary(OPS_IS_NAN, x)), HAL_TYPE_I32), 0);
    const Array place = reshape(maximum(valid - 1, 0) / 2, Shape{1});
    const Array order(ops_array_sort(0, 0, -1, x));
    return {reshape(Array(ops_array_take_along_axis(0, order, place)), Shape())};
}

// x, dim, keep: the most frequent number, the least of several, and the last index where it is. NaN
// is equal to nothing, not once to itself. It is the mode where it comes first and no number is
// twice in the row, as after a sort by <, which leaves it there.
Results mode(const Call &c)
{
    const Array own = c.plain(0), x = own.rank() ? own : flatten(own);
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.rank()), last = x.rank() - 1;
    const int64_t n = x.count() ? x.length(axis) : 0;
    if (x.count() == 0 || x.count() * n > MOST_PAIRS || x.type() == HAL_TYPE_BOOL) {
        throw Unsupported("the mode of nothing, of very many, or of bool");
    }
    const Array rows = transpose(x, axis, last);
    Shape across = shape_of(rows), along = across, shape = across;
    across.push_back(1);
    along.insert(along.end() - 1, 1);
    shape.back() = 1;
    const Array same = equal(reshape(rows, across), reshape(rows, along));
    const Array counts = sum_of(cast(same, HAL_TYPE_I32), last + 1);
    const Array most = reduce(OPS_REDUCE_MAX, counts, last, true);
    const Array largest = hal_type_is_float(rows.type()) // of the numbers, not NaN
                              ? scalar_like(rows, INFINITY)
                              : reduce(OPS_REDUCE_MAX, rows, last, true);
    const Array least =
        reduce(OPS_REDUCE_MIN, where(equal(counts, most), rows, largest), last, true);
    const Array first = slice(rows, last, 0, 1);
    const Array value =
        where(both(not_equal(first, first), logical_not(greater(most, 1))), first, least);
    const Array places = numbers(c.context(), HAL_TYPE_I32, n);
    const Array index = reduce(OPS_REDUCE_MAX, where(equal(rows, value), places, 0.0), last, true);
    Shape result(c.tensor(0).sizes());
    if (!result.empty()) {
        result[(size_t)axis] = 1;
        if (!c.flag(2)) {
            result.erase(result.begin() + axis);
        }
    }
    return {reshape(transpose(value, axis, last), result),
            cast(reshape(transpose(index, axis, last), result), HAL_TYPE_I64)};
}

// ---- Sets ----

Array none_of(const Call &c, hal_type type)
{
    return full(c.context(), type, Shape{0}, 0);
}

Results unique(const Call &c) // x, sorted, with the inverse, with counts
{
    const Array x = c.plain(0);
    if (x.count() == 0) {
        return {none_of(c, x.type()), none_of(c, HAL_TYPE_I64), none_of(c, HAL_TYPE_I64)};
    }
    ops_array *inverse = nullptr, *counts = nullptr;
    const Array values(ops_array_unique(flatten(x), c.flag(2) ? &inverse : nullptr,
                                        c.flag(3) ? &counts : nullptr));
    return {values,
            inverse ? reshape(Array(inverse), c.tensor(0).sizes()) : none_of(c, HAL_TYPE_I64),
            counts ? Array(counts) : none_of(c, HAL_TYPE_I64)};
}

Results unique_runs(const Call &c) // x, with the inverse, with counts, dim
{
    const Array x = flatten(c.plain(0));
    if (c.has(3) && c.tensor(0).dim() != 1) {
        throw Unsupported("runs of slices");
    }
    const int64_t n = x.count();
    if (n == 0) {
        return {none_of(c, x.type()), none_of(c, HAL_TYPE_I64), none_of(c, HAL_TYPE_I64)};
    }
    const Array before = Array(ops_array_roll(0, 1, x));
    const Array is_first = equal(numbers(c.context(), HAL_TYPE_I32, n), 0);
    const Array begins = either(is_first, not_equal(x, before));
    const Array starts = flatten(Array(ops_array_nonzero(begins)));
    Array inverse = none_of(c, HAL_TYPE_I64), counts = none_of(c, HAL_TYPE_I64);
    if (c.flag(1)) {
        const Array run(ops_array_scan(OPS_SCAN_SUM, 0, cast(begins, HAL_TYPE_I64)));
        inverse = reshape(run - 1, c.tensor(0).sizes());
    }
    if (c.flag(2)) {
        const Array end = full(c.context(), HAL_TYPE_I64, Shape{1}, (double)n);
        ops_array *parts[2] = {starts, end};
        const Array ends(ops_array_concatenate(0, parts, 2));
        counts = slice(ends, 0, 1, starts.count()) - starts;
    }
    return {Array(ops_array_gather(0, x, starts)), inverse, counts};
}

Results repeat_places(const Call &c) // repeats, output_size
{
    const Array repeats = c.plain(0);
    if (repeats.rank() != 1 || (repeats.type() != HAL_TYPE_I64 && repeats.type() != HAL_TYPE_I32)) {
        throw Unsupported("repetitions of another type");
    }
    if (repeats.count() == 0) {
        return {repeats};
    }
    const Array ends(ops_array_scan(OPS_SCAN_SUM, 0, repeats));
    const int64_t total =
        c.has(1) ? c.integer(1) : read_number<int64_t>(cast(sum_of(repeats, 0), HAL_TYPE_I64));
    const bool is_negative =
        read_number<int32_t>(cast(reduce(OPS_REDUCE_MIN, repeats, 0, false), HAL_TYPE_I32)) < 0;
    TORCH_CHECK(!is_negative, "repeats can not be negative");
    const Array places = numbers(c.context(), repeats.type(), total);
    if (total == 0) {
        return {places};
    }
    return {cast(Array(ops_array_search_sorted(ends, places, 1)), repeats.type())};
}

// The places of what differs from 0, a fixed number of them: x, size, fill.
Results nonzero_static(const Call &c)
{
    const Array x = c.plain(0);
    const int64_t size = c.integer(1);
    const Shape shape{size, x.rank()};
    if (size == 0 || x.rank() == 0 || x.count() == 0) {
        return {full(c.context(), HAL_TYPE_I64, shape, c.number(2))};
    }
    const Array ones = cast(flatten(cast(x, HAL_TYPE_BOOL)), HAL_TYPE_I32);
    const int64_t found = std::min(size, x.count());
    const Array places(ops_array_argsort(0, 1, found, ones));
    const Array padded = Array(ops_array_gather(
        0, places, minimum(numbers(c.context(), HAL_TYPE_I32, size), (double)(found - 1))));
    const Array is_one =
        less(numbers(c.context(), HAL_TYPE_I32, size), minimum(sum_of(ones, 0), (double)found));
    Array rest = cast(padded, HAL_TYPE_I64);
    std::vector<Array> columns((size_t)x.rank());
    for (size_t axis = columns.size(); axis-- > 0;) {
        const double length = (double)x.length((int64_t)axis);
        const Array above = rest / length;
        columns[axis] = reshape(where(is_one, rest - above * length, c.number(2)), Shape{size, 1});
        rest = above;
    }
    const std::vector<ops_array *> parts(columns.begin(), columns.end());
    return {Array(ops_array_concatenate(1, parts.data(), (uint32_t)parts.size()))};
}

// ---- Histograms ----

// The counts, or sums of weights, of bins.
Array counted(int64_t bins, const Array &places, const Array &weights)
{
    return Array(ops_array_bin_count(bins, places, weights));
}

struct Range {
    double low, high;
};

// The range of a histogram; where both ends are equal, that of the elements, which are read, and
// where those are equal it is widened on both sides.
Range range_of(const Array &x, double low, double high, double widening)
{
    if (low == high && x.count()) {
        low = read_number<float>(cast(reduce(OPS_REDUCE_MIN, x, 0, false), HAL_TYPE_F32));
        high = read_number<float>(cast(reduce(OPS_REDUCE_MAX, x, 0, false), HAL_TYPE_F32));
    }
    if (low == high) {
        low -= widening;
        high += widening;
    }
    if (!(low < high) || std::isinf(low) || std::isinf(high)) {
        throw Unsupported("a range that is not finite");
    }
    return {low, high};
}

// The bin of each element of [low, high]; -1 beyond it. Of whole numbers products are exact.
Array bins_of(const Array &x, int64_t bins, Range r, bool is_whole = false)
{
    const Array above = x - r.low;
    const Array position = is_whole ? above * (double)bins / (r.high - r.low)
                                    : above / (r.high - r.low) * (double)bins;
    const Array place = minimum(unary(OPS_FLOOR, position), (double)(bins - 1));
    const Array inside = both(greater_equal(x, r.low), less_equal(x, r.high));
    return cast(where(inside, place, -1.0), HAL_TYPE_I32);
}

Results histc(const Call &c) // x, bins, min, max
{
    const Array elements = flatten(c.plain(0));
    const hal_type type = elements.type();
    const int64_t bins = c.integer(1);
    if (hal_type_is_narrow_float(type) || type == HAL_TYPE_BOOL || bins < 1) {
        throw Unsupported("a histogram of narrow floats or truths");
    }
    if (elements.count() == 0) {
        return {full(c.context(), type, Shape{bins}, 0)};
    }
    // Integers, which PyTorch's processor refuses and its other devices take, up to 2^53.
    const Array x = hal_type_is_float(type) ? elements : cast(elements, HAL_TYPE_F64);
    const Range r = range_of(x, c.number(2), c.number(3), 1);
    return {cast(counted(bins, bins_of(x, bins, r, x.type() != type), Array()), type)};
}

// The counts, divided by their sum and the widths of the bins where asked for.
Array histogram_values(Array counts, const Array &edges, bool is_density)
{
    counts = cast(counts, edges.type());
    if (is_density) {
        const int64_t bins = counts.count();
        const Array widths = slice(edges, 0, 1, bins) - slice(edges, 0, 0, bins);
        counts = counts / (sum_of(counts, 0) * widths);
    }
    return counts;
}

Array weights_of(const Call &c, size_t index)
{
    return c.has(index) ? flatten(c.plain(index)) : Array();
}

Results histogram_by_count(const Call &c) // x, bins, range, weight, density
{
    const Array x = flatten(c.plain(0));
    const int64_t bins = c.integer(1);
    if (!hal_type_is_float(x.type()) || x.count() == 0 || bins < 1) {
        throw Unsupported("a histogram of nothing");
    }
    const auto range = c.has(2) ? c.value(2).toDoubleVector() : std::vector<double>{0, 0};
    if (range.size() != 2) {
        throw Unsupported("a range of other than two numbers");
    }
    const Range r = range_of(x, range[0], range[1], 0.5);
    const Array steps = cast(numbers(c.context(), HAL_TYPE_I32, bins + 1), x.type());
    const double step = (r.high - r.low) / (double)bins;
    const Array edges = where(less(steps, (double)((bins + 1) / 2)), steps * step + r.low,
                              r.high - ((double)bins - steps) * step);
    const Array counts = counted(bins, bins_of(x, bins, r), weights_of(c, 3));
    return {histogram_values(counts, edges, c.flag(4)), edges};
}

Results histogram_by_edges(const Call &c) // x, edges, weight, density
{
    const Array x = flatten(c.plain(0)), edges = c.plain(1);
    const int64_t bins = edges.count() - 1;
    if (!hal_type_is_float(x.type()) || x.count() == 0 || bins < 1) {
        throw Unsupported("a histogram of nothing");
    }
    const Array above(ops_array_search_sorted(edges, x, 1)); // edges that are not above
    const Array is_last = equal(x, slice(edges, 0, bins, 1));
    const Array place = where(is_last, (double)(bins - 1), above - 1);
    const Array inside = both(greater_equal(place, 0), less(place, (double)bins));
    const Array counts = counted(bins, where(inside, place, -1.0), weights_of(c, 2));
    return {histogram_values(counts, edges, c.flag(3)), edges};
}

// ---- Norms of parts, sums of exponentials, distances of pairs ----

// sum |x|^p over the last axis, to the power 1 / p.
Array norm_of(const Array &x, double p)
{
    const Array m = unary(OPS_ABS, x);
    const int64_t axis = x.rank() - 1;
    if (p == 0) {
        return sum_of(cast(not_equal(m, 0), x.type()), axis);
    }
    if (std::isinf(p)) {
        return reduce(OPS_REDUCE_MAX, m, axis, false);
    }
    if (p == 1) {
        return sum_of(m, axis);
    }
    return p == 2 ? unary(OPS_SQRT, sum_of(square(x), axis))
                  : power(sum_of(power(m, p), axis), 1 / p);
}

Results renormalise(const Call &c) // x, p, dim, largest norm
{
    const Array x = c[0];
    if (!hal_type_is_float(c.common()) || x.count() == 0) {
        throw Unsupported("norms of nothing or of integers");
    }
    const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.rank()), n = x.length(axis);
    const Array rows = reshape(transpose(x, 0, axis), Shape{n, x.count() / n});
    const Array norm = norm_of(rows, c.number(1));
    const double largest = c.number(3);
    const Array factor = where(greater(norm, largest), largest / (norm + 1e-7), 1.0);
    Shape shape((size_t)x.rank(), 1);
    shape[(size_t)axis] = n;
    return {x * reshape(factor, shape)};
}

// Each step adds twice as many elements before.
Results log_cumulative_sum(const Call &c) // x, dim
{
    Array x = c[0];
    if (!hal_type_is_float(c.common())) {
        throw Unsupported("integers");
    }
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.rank());
    if (x.rank() == 0 || x.count() == 0) {
        return {x};
    }
    const int64_t n = x.length(axis);
    for (int64_t step = 1; step < n; step *= 2) {
        Shape before((size_t)x.rank(), 0), after((size_t)x.rank(), 0);
        before[(size_t)axis] = step;
        after[(size_t)axis] = -step;
        const Array other(
            ops_array_pad(OPS_PAD_CONSTANT, before.data(), after.data(), -INFINITE, x));
        const Array most = maximum(x, other);
        const Array sum = most + unary(OPS_LOG1P, exp_of(-unary(OPS_ABS, x - other)));
        x = where(unary(OPS_IS_INFINITE, most), most, sum);
    }
    return {x};
}

Results pair_distances(const Call &c) // x [n, d], p: [n (n - 1) / 2]
{
    const Array x = c[0];
    const int64_t n = x.length(0), pairs = n * (n - 1) / 2;
    if (pairs == 0 || x.length(1) == 0) {
        return {full(c.context(), x.type(), Shape{pairs}, 0)};
    }
    std::vector<int32_t> first, second;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i + 1; k < n; k++) {
            first.push_back((int32_t)i);
            second.push_back((int32_t)k);
        }
    }
    const auto rows = [&](const std::vector<int32_t> &places) {
        const int64_t count = (int64_t)places.size();
        return Array(ops_array_gather(
            0, x, Array(ops_array_from_host(c.context(), HAL_TYPE_I32, 1, &count, places.data()))));
    };
    return {norm_of(rows(first) - rows(second), c.value(1).toDouble())};
}

// ---- Fractions and exponents ----

Results fraction_and_exponent(const Call &c)
{
    const Array own = c[0];
    if (!hal_type_is_float(own.type())) {
        throw Unsupported("integers");
    }
    const double scale = std::ldexp(1.0, 24); // of subnormal numbers
    const Array is_small = less(unary(OPS_ABS, own), std::ldexp(1.0, -100));
    const Array x = where(is_small, own * scale, own);
    const Array e = unary(OPS_FLOOR, unary(OPS_LOG2, unary(OPS_ABS, x))) + 1;
    const Array half = unary(OPS_FLOOR, e / 2);
    Array m = x * unary(OPS_EXP2, -half) * unary(OPS_EXP2, half - e);
    const Array size = unary(OPS_ABS, m), up = greater_equal(size, 1), down = less(size, 0.5);
    m = where(up, m / 2, where(down, m * 2, m));
    const Array exponent =
        where(up, e + 1, where(down, e - 1, e)) - where(is_small, 24.0, scalar_like(x, 0));
    const Array is_number = both(unary(OPS_IS_FINITE, own), not_equal(own, 0));
    return {where(is_number, m, own), cast(where(is_number, exponent, 0.0), HAL_TYPE_I32)};
}

#define WITH_OUT(name) name " " name ".out"

const Operator TABLE[] = {
    {"median.dim median.dim_values", Types::PLAIN, [](const Call &c) { return median(c, false); }},
    {"nanmedian.dim nanmedian.dim_values", Types::PLAIN,
     [](const Call &c) { return median(c, true); }},
    {"nanmedian", Types::PLAIN, median_without_nan},
    {"mode mode.values", Types::PLAIN, mode, Sharing::NONE},
    {"_unique2", Types::PLAIN, unique},
    {"unique_consecutive", Types::PLAIN, unique_runs},
    {"repeat_interleave.Tensor", Types::PLAIN, repeat_places},
    {WITH_OUT("nonzero_static"), Types::PLAIN, nonzero_static},
    {WITH_OUT("histc"), Types::PLAIN, histc},
    {"histogram.bin_ct histogram.bin_ct_out", Types::PLAIN, histogram_by_count},
    {"histogram.bins_tensor histogram.bins_tensor_out", Types::PLAIN, histogram_by_edges},
    {WITH_OUT("renorm"), Types::COMMON, renormalise, Sharing::WHOLE},
    {WITH_OUT("_logcumsumexp"), Types::COMMON, log_cumulative_sum, Sharing::WHOLE},
    {"_pdist_forward", Types::COMMON, pair_distances},
    {"frexp.Tensor frexp.Tensor_out", Types::COMMON, fraction_and_exponent, Sharing::WHOLE},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
