// Convolutions, means of windows of two axes, and changes of size.
#include <cmath>

#include "call.h"
#include "windows.h"

namespace halyard
{
namespace
{

using Shape = std::vector<int64_t>;

// A number for each axis of space, or one for all; an empty list is `otherwise`.
Shape expanded(const Call &c, size_t index, size_t d, int64_t least, const Shape &otherwise)
{
    return c.integers(index).empty() ? otherwise : c.expanded(index, d, least);
}

// x has d axes of space and those of channels and, but for `needs_batch`, perhaps of a batch.
void require_rank(const Tensor &x, size_t d, bool needs_batch)
{
    if (x.dim() != (int64_t)d + 2 && (needs_batch || x.dim() != (int64_t)d + 1)) {
        throw Unsupported("windows of a tensor of another rank");
    }
}

Shape space_of(const Tensor &x, size_t d)
{
    return Shape(x.sizes().end() - (int64_t)d, x.sizes().end());
}

Array channel_sum(const Array &g) // over the batch and space
{
    const int64_t n = g.length(0), channels = g.length(1);
    if (g.count() == 0) {
        throw Unsupported("a sum of nothing");
    }
    const Array rows = reshape(g, Shape{n, channels, g.count() / (n * channels)});
    return reduce(OPS_REDUCE_SUM, reduce(OPS_REDUCE_SUM, rows, 2, false), 0, false);
}

// ---- Convolutions ----

// x, weight, bias, stride, padding, dilation, transposed, output_padding,
// groups; the gradient's call has the gradient in front, and no bias.
struct Convolution {
    Geometry geometry;
    bool is_transposed;
    Shape output_padding;
    int64_t groups;
};

Convolution convolution_of(const Call &c, const Tensor &w, size_t stride)
{
    const size_t d = (size_t)w.dim() - 2;
    if (w.dim() < 3 || d > 3) {
        throw Unsupported("a convolution of another rank");
    }
    Convolution v;
    v.geometry = {space_of(w, d), c.expanded(stride, d, 1), c.expanded(stride + 1, d, 0),
                  c.expanded(stride + 2, d, 1)};
    v.is_transposed = c.flag(stride + 3);
    v.output_padding = expanded(c, stride + 4, d, 0, Shape(d, 0));
    v.groups = c.integer(stride + 5);
    for (size_t k = 0; k < d && v.is_transposed; k++) {
        TORCH_CHECK(v.output_padding[k] < v.geometry.stride[k] ||
                        v.output_padding[k] < v.geometry.dilation[k],
                    "output padding must be smaller than either stride or dilation");
    }
    return v;
}

Results convolution(const Call &c)
{
    const Tensor &tensor = c.tensor(0);
    const Convolution v = convolution_of(c, c.tensor(1), 3);
    const hal_type type = type_of(tensor.scalar_type());
    // Integers, of at most 53 bits, are exact in F64.
    const hal_type compute = hal_type_is_float(type) ? type : (hal_type)HAL_TYPE_F64;
    const Array x = c.cast_to(0, compute), w = c.cast_to(1, compute);
    const size_t d = v.geometry.kernel.size();
    require_rank(tensor, d, true);
    Array y, bias;
    if (c.has(2)) {
        bias = c.cast_to(2, compute);
    }
    if (v.is_transposed) {
        Shape space = space_of(tensor, d);
        for (size_t k = 0; k < d; k++) {
            space[k] = (space[k] - 1) * v.geometry.stride[k] - 2 * v.geometry.padding[k] +
                       v.geometry.dilation[k] * (v.geometry.kernel[k] - 1) + v.output_padding[k] +
                       1;
        }
        y = convolve_input_gradient(x, w, v.geometry, v.groups, space);
        if (c.has(2)) {
            Shape channels(d + 1, 1);
            channels[0] = y.length(1);
            y = y + reshape(bias, channels);
        }
    } else {
        y = convolve(x, w, v.geometry, v.groups, c.has(2) ? &bias : nullptr);
    }
    return {cast(y, type)};
}

// The first elements along space: an output padding can make more windows than
// the input has.
Array cut_to(Array x, const Shape &space)
{
    for (size_t k = 0; k < space.size(); k++) {
        if (x.length((int64_t)k + 2) > space[k]) {
            x = slice(x, (int64_t)k + 2, 0, space[k]);
        }
    }
    return x;
}

Results convolution_backward(const Call &c) // g, x, w, stride, ..., groups, mask
{
    const Convolution v = convolution_of(c, c.tensor(2), 3);
    const auto mask = c.value(9).toBoolList();
    require_rank(c.tensor(0), v.geometry.kernel.size(), true);
    require_rank(c.tensor(1), v.geometry.kernel.size(), true);
    const Array g = c.plain(0), x = c.plain(1), w = c.plain(2);
    Results r(3);
    if (mask[0]) {
        const Shape space = space_of(c.tensor(1), v.geometry.kernel.size());
        r[0] = v.is_transposed ? cut_to(convolve(g, w, v.geometry, v.groups), space)
                               : convolve_input_gradient(g, w, v.geometry, v.groups, space);
    }
    if (mask[1]) {
        r[1] = v.is_transposed ? convolve_weight_gradient(x, g, v.geometry, v.groups)
                               : convolve_weight_gradient(g, x, v.geometry, v.groups);
    }
    if (mask[2]) {
        r[2] = channel_sum(g);
    }
    return r;
}

// ---- Means of windows of two axes ----

Array with_batch(const Array &x)
{
    if (x.rank() == 4) {
        return x;
    }
    if (x.rank() != 3) {
        throw Unsupported("a pooling of another rank");
    }
    return reshape(x, Shape{1, x.length(0), x.length(1), x.length(2)});
}

// The shape of the result for a tensor with these leading axes.
Shape result_shape(const Tensor &x, const Shape &places)
{
    Shape shape(x.sizes().begin(), x.sizes().end() - 2);
    shape.insert(shape.end(), places.begin(), places.end());
    return shape;
}

struct Pooling {
    Geometry geometry;
    Shape places, after; // windows, and the padding at the end that they reach
};

// kernel, stride, padding from argument `first` on; the dilation and ceil_mode
// where they are.
Pooling pooling_of(const Call &c, const Tensor &x, size_t first, bool rounds_up)
{
    Pooling p;
    const Shape kernel = c.expanded(first, 2, 1);
    p.geometry = {kernel, expanded(c, first + 1, 2, 1, kernel), c.expanded(first + 2, 2, 0),
                  Shape{1, 1}};
    require_rank(x, 2, false);
    const Shape space = space_of(x, 2);
    for (size_t k = 0; k < 2; k++) {
        const Geometry &g = p.geometry;
        const int64_t room = space[k] + 2 * g.padding[k] - g.kernel[k];
        int64_t places = room / g.stride[k] + 1;
        if (rounds_up && room % g.stride[k] &&
            places * g.stride[k] < space[k] + g.padding[k]) { // windows begin within the input
            places++;
        }
        if (room < 0 || places <= 0 || 2 * g.padding[k] > g.kernel[k]) {
            throw Unsupported("a window larger than the input, or padding than half of it");
        }
        p.places.push_back(places);
        p.after.push_back((places - 1) * g.stride[k] + g.kernel[k] - space[k] - g.padding[k]);
    }
    return p;
}

// [n, channels, places, taps]: each window as a row.
Array rows_of_windows(const Array &x, const Pooling &p)
{
    const Array big = padded(x, p.geometry.padding, p.after, 0);
    const Array windows = windows_of(big, p.geometry, p.places, {0, 1, 4, 5, 2, 3});
    return reshape(windows, Shape{x.length(0), x.length(1), p.places[0] * p.places[1],
                                  p.geometry.kernel[0] * p.geometry.kernel[1]});
}

// How many elements each window is divided by: those of the kernel, or of the
// input in it.
Array divisors(ops_context *context, hal_type type, const Pooling &p, const Shape &space,
               bool counts_padding, std::optional<int64_t> fixed)
{
    std::vector<float> values;
    const auto length = [&](size_t k, int64_t place) {
        const Geometry &g = p.geometry;
        int64_t begin = place * g.stride[k] - g.padding[k];
        int64_t end = std::min(begin + g.kernel[k], space[k] + g.padding[k]);
        if (!counts_padding) {
            begin = std::max<int64_t>(begin, 0);
            end = std::min(end, space[k]);
        }
        return end - begin;
    };
    for (int64_t i = 0; i < p.places[0]; i++) {
        for (int64_t k = 0; k < p.places[1]; k++) {
            values.push_back(fixed ? (float)*fixed : (float)(length(0, i) * length(1, k)));
        }
    }
    return cast(
        Array(ops_array_from_host(context, HAL_TYPE_F32, 2, p.places.data(), values.data())), type);
}

std::optional<int64_t> fixed_divisor(const Call &c, size_t index)
{
    if (!c.has(index)) {
        return std::nullopt;
    }
    if (c.integer(index) == 0) {
        throw Unsupported("a divisor of zero");
    }
    return c.integer(index);
}

// x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Results avg_pool(const Call &c)
{
    const Tensor &tensor = c.tensor(0);
    const Array x = with_batch(c[0]);
    if (!hal_type_is_float(x.type()) || x.count() == 0) {
        throw Unsupported("a pooling of integers or of nothing");
    }
    const Pooling p = pooling_of(c, tensor, 1, c.flag(4));
    const Array sums = reshape(reduce(OPS_REDUCE_SUM, rows_of_windows(x, p), 3, false),
                               Shape{x.length(0), x.length(1), p.places[0], p.places[1]});
    const Array by =
        divisors(c.context(), x.type(), p, space_of(tensor, 2), c.flag(5), fixed_divisor(c, 6));
    return {reshape(sums / by, result_shape(tensor, p.places))};
}

// g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Results avg_pool_backward(const Call &c)
{
    const Tensor &x = c.tensor(1);
    const Pooling p = pooling_of(c, x, 2, c.flag(5));
    c.require_shape(0, result_shape(x, p.places));
    if (x.numel() == 0) {
        throw Unsupported("a pooling of nothing");
    }
    const Shape space = space_of(x, 2);
    const Array g = with_batch(c[0]);
    const Array each =
        g / divisors(c.context(), g.type(), p, space, c.flag(6), fixed_divisor(c, 7));
    const int64_t planes = x.numel() / (space[0] * space[1]);
    const Shape one{1, 1, p.geometry.kernel[0], p.geometry.kernel[1]};
    const Array ones(ops_array_full(c.context(), g.type(), 4, one.data(), 1));
    const Array sums = convolve_input_gradient(
        reshape(each, Shape{planes, 1, p.places[0], p.places[1]}), ones, p.geometry, 1, space);
    return {reshape(sums, x.sizes())};
}

// ---- Nearest neighbours ----

Array nearest_places(ops_context *context, int64_t from, int64_t to, const c10::IValue &factor)
{
    const float scale = factor.isDouble() && factor.toDouble() > 0
                            ? (float)(1.0 / factor.toDouble())
                            : (float)from / (float)to;
    std::vector<int32_t> places;
    for (int64_t i = 0; i < to; i++) {
        places.push_back(
            (int32_t)std::min<int64_t>((int64_t)std::floor((float)i * scale), from - 1));
    }
    return Array(ops_array_from_host(context, HAL_TYPE_I32, 1, &to, places.data()));
}

Results nearest(const Call &c) // x, size, factors
{
    const Shape out = c.integers(1, 2, 1);
    Array x = c.plain(0);
    if (x.count() == 0 || x.rank() != 4) {
        throw Unsupported("a change of size of nothing");
    }
    for (size_t k = 0; k < 2; k++) {
        const int64_t axis = 2 + (int64_t)k;
        x = Array(ops_array_gather(
            (int32_t)axis, x, nearest_places(c.context(), x.length(axis), out[k], c.value(2 + k))));
    }
    return {x};
}

Results nearest_backward(const Call &c) // g, size, input_size, factors
{
    const Shape out = c.integers(1, 2, 1), in = c.integers(2, 4, 1);
    c.require_shape(0, {in[0], in[1], out[0], out[1]});
    if (out[0] % in[2] || out[1] % in[3] || c.tensor(0).numel() == 0) {
        throw Unsupported("a factor that is not whole");
    }
    const Array g =
        reshape(c[0], Shape{in[0] * in[1], in[2], out[0] / in[2], in[3], out[1] / in[3]});
    return {reshape(reduce(OPS_REDUCE_SUM, reduce(OPS_REDUCE_SUM, g, 4, false), 2, false), in)};
}

const Operator TABLE[] = {
    {"convolution_overrideable", Types::PLAIN, convolution},
    {"convolution_backward_overrideable", Types::PLAIN, convolution_backward},
    {"avg_pool2d avg_pool2d.out", Types::COMMON, avg_pool},
    {"avg_pool2d_backward avg_pool2d_backward.grad_input", Types::COMMON, avg_pool_backward},
    {"upsample_nearest2d upsample_nearest2d.out", Types::PLAIN, nearest},
    {"upsample_nearest2d_backward upsample_nearest2d_backward.grad_input", Types::COMMON,
     nearest_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
