// Maxima of windows, means of windows of three axes, maxima to given lengths, their inverses, and
// samples of a grid.
#include <cmath>

#include "call.h"
#include "index_check.h"
#include "windows.h"

namespace halyard
{
namespace
{

using Shape = std::vector<int64_t>;

void require_floats(const Array &x)
{
    if (!hal_type_is_float(x.type()) || x.count() == 0) {
        throw Unsupported("a pooling of integers or of nothing");
    }
}

// x has the axes of space, those of channels and perhaps of a batch.
void require_rank(const Tensor &x, int64_t axes)
{
    if (x.dim() != axes + 1 && x.dim() != axes + 2) {
        throw Unsupported("a pooling of another rank");
    }
}

Shape space_of(const Tensor &x, int64_t axes)
{
    return Shape(x.sizes().end() - axes, x.sizes().end());
}

Shape leading_of(const Tensor &x, int64_t axes)
{
    return Shape(x.sizes().begin(), x.sizes().end() - axes);
}

int64_t product(const Shape &sizes)
{
    int64_t n = 1;
    for (const int64_t size : sizes) {
        n *= size;
    }
    return n;
}

Shape joined(Shape shape, const Shape &more)
{
    shape.insert(shape.end(), more.begin(), more.end());
    return shape;
}

// The gradient, argument 0, has the leading axes of x.
void require_gradient(const Call &c, const Tensor &x, int64_t axes)
{
    require_rank(x, axes);
    require_rank(c.tensor(0), axes);
    c.require_shape(0, joined(leading_of(x, axes), space_of(c.tensor(0), axes)));
}

// x with a batch, which is 1 where it has none.
Array batched(const Array &x, int64_t axes)
{
    if (x.rank() == axes + 2) {
        return x;
    }
    Shape shape{1};
    for (int64_t k = 0; k < x.rank(); k++) {
        shape.push_back(x.length(k));
    }
    return reshape(x, shape);
}

// ---- Windows ----

// From the arguments kernel, stride, padding on; the rest differs.
ops_pool_options options_of(const Call &c, size_t axes, size_t kernel, size_t dilation,
                            bool is_ceiling)
{
    ops_pool_options o{};
    o.size = sizeof o;
    o.ceiling = is_ceiling;
    const Shape window = c.expanded(kernel, axes, 1), padding = c.expanded(kernel + 2, axes, 0);
    const Shape stride = c.integers(kernel + 1).empty() ? window : c.expanded(kernel + 1, axes, 1);
    const Shape step = dilation ? c.expanded(dilation, axes, 1) : Shape(axes, 1);
    for (size_t k = 0; k < axes; k++) {
        if (2 * padding[k] > window[k]) {
            throw Unsupported("padding wider than half of the window");
        }
        o.window[k] = window[k];
        o.stride[k] = stride[k];
        o.before[k] = o.after[k] = padding[k];
        o.dilation[k] = step[k];
    }
    return o;
}

// The result for `like`: without a batch where that has none.
Array unbatched(const Array &pooled, const Tensor &like, int64_t axes)
{
    Shape shape = leading_of(like, axes);
    for (int64_t k = 0; k < axes; k++) {
        shape.push_back(pooled.length(k + 2));
    }
    return reshape(pooled, shape);
}

// There is a window. With `ceiling` its last stride may reach beyond the end.
void require_windows(const ops_pool_options &o, const Tensor &x, int64_t axes)
{
    require_rank(x, axes);
    if (x.numel() == 0) {
        throw Unsupported("a pooling of nothing");
    }
    for (int64_t k = 0; k < axes; k++) {
        const int64_t reach = o.dilation[k] * (o.window[k] - 1) + 1;
        const int64_t beyond = o.ceiling ? o.stride[k] - 1 : 0;
        if (reach > beyond + x.size(k - axes) + o.before[k] + o.after[k]) {
            throw Unsupported("a window larger than the input");
        }
    }
}

template <int AXES>
Results max_pool(const Call &c) // x, kernel, stride, padding, dilation, ceil_mode
{
    const Tensor &tensor = c.tensor(0);
    const Array x = c.plain(0);
    require_floats(x);
    const ops_pool_options o = options_of(c, AXES, 1, 4, c.flag(5));
    require_windows(o, tensor, AXES);
    ops_array *places = nullptr;
    const Array y(ops_array_pool(OPS_POOL_MAX, &o, batched(x, AXES), &places));
    return {unbatched(y, tensor, AXES), unbatched(Array(places), tensor, AXES)};
}

// g, x, kernel, stride, padding, dilation, ceil_mode, places
template <int AXES> Results max_pool_backward(const Call &c)
{
    const Tensor &x = c.tensor(1);
    const ops_pool_options o = options_of(c, AXES, 2, 5, c.flag(6));
    require_windows(o, x, AXES);
    require_gradient(c, x, AXES);
    c.require_shape(7, c.tensor(0).sizes());
    const Shape space = space_of(x, AXES);
    const Array g = batched(c.plain(0), AXES), places = batched(c.plain(7), AXES);
    return {reshape(Array(ops_array_pool_gradient(OPS_POOL_MAX, &o, g, places, space.data())),
                    x.sizes())};
}

// x, kernel, stride, padding, ceil_mode, count_include_pad, divisor
Results average_pool(const Call &c)
{
    const Array x = c[0];
    require_floats(x);
    ops_pool_options o = options_of(c, 3, 1, 0, c.flag(4));
    require_windows(o, c.tensor(0), 3);
    o.count_padding = c.flag(5) || c.has(6);
    if (c.has(6) && (o.ceiling || c.integer(6) == 0)) {
        throw Unsupported("a divisor of zero, or with windows beyond the end");
    }
    Array y(ops_array_pool(OPS_POOL_AVERAGE, &o, batched(x, 3), nullptr));
    if (c.has(6)) {
        y = y * ((double)(o.window[0] * o.window[1] * o.window[2]) / (double)c.integer(6));
    }
    return {unbatched(y, c.tensor(0), 3)};
}

// g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor
Results average_pool_backward(const Call &c)
{
    const Tensor &x = c.tensor(1);
    ops_pool_options o = options_of(c, 3, 2, 0, c.flag(5));
    o.count_padding = c.flag(6);
    require_windows(o, x, 3);
    require_gradient(c, x, 3);
    if (c.has(7)) {
        throw Unsupported("the gradient with a divisor");
    }
    const Shape space = space_of(x, 3);
    const Array g = batched(c[0], 3);
    return {reshape(Array(ops_array_pool_gradient(OPS_POOL_AVERAGE, &o, g, nullptr, space.data())),
                    x.sizes())};
}

// ---- Maxima to given lengths: windows of one length, whose last elements may repeat ----

// The place of the maximum along the last of three axes: the first one, or that of the last NaN.
Array last_axis_argmax(const Array &rows, int64_t length)
{
    const Array first = reduce(OPS_REDUCE_ARGMAX, rows, 2, true);
    if (!hal_type_is_float(rows.type())) {
        return first;
    }
    const Array numbers(ops_array_iota(rows.context(), first.type(), length, 0, 1));
    const Array is_nan = not_equal(rows, rows);
    const Array last = reduce(OPS_REDUCE_MAX, where(is_nan, numbers, -1.0), 2, true);
    return where(less(last, 0), first, last);
}

template <int AXES> Results adaptive_max(const Call &c) // x, lengths
{
    const Tensor &tensor = c.tensor(0);
    require_rank(tensor, AXES);
    for (int64_t axis = 1; axis < tensor.dim(); axis++) {
        TORCH_CHECK(tensor.size(axis) > 0, "adaptive_max_pool", AXES,
                    "d(): Expected input to have non-zero size for non-batch dimensions, but input "
                    "has sizes ",
                    tensor.sizes(), " with dimension ", axis, " being empty");
    }
    const Shape space = space_of(tensor, AXES);
    const Shape out = c.integers(1, AXES, 0);
    const Shape shape = joined(leading_of(tensor, AXES), out);
    if (tensor.numel() == 0 || product(shape) == 0) {
        const auto nothing = [&](hal_type type) {
            return Array(
                ops_array_full(c.context(), type, (uint32_t)shape.size(), shape.data(), 0));
        };
        return {nothing(c.plain(0).type()), nothing(HAL_TYPE_I64)};
    }
    const int64_t planes = tensor.numel() / product(space);
    int64_t windows[3], total = 1;
    for (int k = 0; k < AXES; k++) {
        windows[k] = 0;
        for (int64_t i = 0; i < out[k]; i++) {
            const int64_t begin = i * space[k] / out[k];
            windows[k] = std::max(windows[k], ((i + 1) * space[k] + out[k] - 1) / out[k] - begin);
        }
        total *= windows[k];
    }
    std::vector<int32_t> places((size_t)(product(out) * total));
    for (int64_t p = 0; p < (int64_t)places.size(); p++) {
        int64_t result = p / total, inner = p % total, place = 0, scale = 1;
        for (int k = AXES - 1; k >= 0; k--) {
            const int64_t i = result % out[k], m = inner % windows[k];
            const int64_t begin = i * space[k] / out[k];
            const int64_t end = ((i + 1) * space[k] + out[k] - 1) / out[k];
            place += scale * std::min(begin + m, end - 1);
            scale *= space[k];
            result /= out[k];
            inner /= windows[k];
        }
        places[(size_t)p] = (int32_t)place;
    }
    const int64_t count = (int64_t)places.size();
    const Array table(ops_array_from_host(c.context(), HAL_TYPE_I32, 1, &count, places.data()));
    const Array x = reshape(c.plain(0), Shape{planes, product(space)});
    const Array rows =
        reshape(Array(ops_array_gather(1, x, table)), Shape{planes, product(out), total});
    const Array which = last_axis_argmax(rows, total);
    const Array all = broadcast(reshape(table, Shape{1, product(out), total}),
                                Shape{planes, product(out), total});
    const Array place(ops_array_take_along_axis(2, all, which));
    return {reshape(reduce(OPS_REDUCE_MAX, rows, 2, false), shape),
            cast(reshape(place, shape), HAL_TYPE_I64)};
}

// Values put, or added up, at places of planes of zeros.
Array spread(const Call &c, const Tensor &values, const Tensor &places, const Shape &leading,
             const Shape &space, ops_scatter_kind kind)
{
    const int64_t planes = product(leading), size = product(space);
    const Array v = array_of(values), p = array_of(places);
    const Shape all{planes, size};
    const Array zeros(ops_array_full(c.context(), v.type(), 2, all.data(), 0));
    const Shape result = joined(leading, space);
    if (v.count() == 0 || planes == 0) {
        return reshape(zeros, result);
    }
    const Shape rows{planes, v.count() / planes};
    return reshape(Array(ops_array_scatter(kind, 1, zeros, reshape(p, rows), reshape(v, rows))),
                   result);
}

template <int AXES> Results adaptive_max_backward(const Call &c) // g, x, places
{
    const Tensor &x = c.tensor(1);
    require_gradient(c, x, AXES);
    c.require_shape(2, c.tensor(0).sizes());
    require_indices(c.plain(2), c.device(), product(space_of(x, AXES)));
    return {spread(c, c.tensor(0), c.tensor(2), leading_of(x, AXES), space_of(x, AXES),
                   OPS_SCATTER_ADD)};
}

template <int AXES> Results unpool(const Call &c) // x, places, lengths, with 3 axes stride, padding
{
    const Tensor &x = c.tensor(0);
    require_rank(x, AXES);
    const Shape space = c.integers(2, AXES, 0);
    if (AXES == 3) { // PyTorch asks that they are numbers of a pooling, and uses neither
        c.integers(3, AXES, 1);
        c.integers(4, AXES, INT32_MIN);
    }
    if (x.sizes() != c.tensor(1).sizes()) {
        throw Unsupported("places of another shape");
    }
    require_indices(c.plain(1), c.device(), product(space));
    return {spread(c, x, c.tensor(1), leading_of(x, AXES), space, OPS_SCATTER_ASSIGN)};
}

// ---- Windows as columns ----

Results columns(const Call &c) // x [n, channels, h, w], kernel, dilation, padding, stride
{
    Array x = c.plain(0);
    const bool has_batch = x.rank() == 4;
    const bool is_empty = x.count() == 0;
    require_rank(c.tensor(0), 2);
    if (is_empty && (!has_batch || x.length(0) != 0)) {
        throw Unsupported("columns of nothing");
    }
    if (!has_batch) {
        x = reshape(x, Shape{1, x.length(0), x.length(1), x.length(2)});
    }
    const Geometry g{c.integers(1, 2, 1), c.integers(4, 2, 1), c.integers(3, 2, 0),
                     c.integers(2, 2, 1)};
    const Shape places{g.windows(0, x.length(2)), g.windows(1, x.length(3))};
    if (places[0] < 1 || places[1] < 1) {
        throw Unsupported("a kernel larger than its input");
    }
    const int64_t inner = x.length(1) * product(g.kernel);
    if (is_empty) {
        const Shape none{0, inner, product(places)};
        return {Array(ops_array_full(c.context(), x.type(), 3, none.data(), 0))};
    }
    const Array windows =
        windows_of(padded(x, g.padding, g.padding, 0), g, places, {0, 1, 2, 3, 4, 5});
    return {has_batch ? reshape(windows, Shape{x.length(0), inner, product(places)})
                      : reshape(windows, Shape{inner, product(places)})};
}

// ---- Samples of a grid ----

enum Interpolation { LINEAR, NEAREST };
enum Padding { ZEROS, BORDER, REFLECTION };

// x reflected into [low / 2, high / 2].
Array reflected(const Array &x, double low, double high)
{
    if (low == high) {
        return x * 0;
    }
    const double begin = low / 2, span = (high - low) / 2;
    const Array distance = unary(OPS_ABS, x - begin), flips = unary(OPS_FLOOR, distance / span);
    const Array rest = distance - flips * span;
    const Array is_even = equal(flips, unary(OPS_FLOOR, flips / 2) * 2);
    return where(is_even, rest + begin, (span + begin) - rest);
}

// Where samples are along an axis of `length` elements, from coordinates from -1 to 1.
Array positions(const Array &g, int64_t length, Padding padding, bool aligns_corners)
{
    const double n = (double)length;
    Array x = aligns_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    if (padding == REFLECTION) {
        x = aligns_corners ? reflected(x, 0, 2 * (n - 1)) : reflected(x, -1, 2 * n - 1);
    }
    // NaN, also of an infinite coordinate that was reflected, becomes 0, as on PyTorch's own devices.
    return padding == ZEROS ? x : where(greater(x, 0), minimum(x, n - 1), 0.0);
}

// x [n, channels, space...], grid [n, out..., AXES], interpolation, padding, aligns_corners
template <int AXES> Results sample_grid(const Call &c)
{
    const Array x = c[0], grid = c[1];
    const int64_t mode = c.integer(2), n = x.length(0), channels = x.length(1);
    const Padding padding = (Padding)c.integer(3);
    if (c.tensor(0).dim() != AXES + 2 || c.tensor(1).dim() != AXES + 2 ||
        c.tensor(1).size(0) != n || c.tensor(1).size(-1) != AXES) {
        throw Unsupported("samples of a tensor of another rank, or a grid of another shape");
    }
    const Shape space = space_of(c.tensor(0), AXES);
    if (mode < LINEAR || mode > NEAREST || x.count() == 0 || grid.count() == 0 ||
        !hal_type_is_float(x.type())) {
        throw Unsupported("samples by cubic interpolation, or of nothing");
    }
    Shape out(c.tensor(1).sizes().begin() + 1, c.tensor(1).sizes().end() - 1);
    const int64_t count = product(out), corners = mode == LINEAR ? 1 << AXES : 1;
    const Array g = reshape(grid, Shape{n, count, AXES});
    Array base[AXES], part[AXES];
    for (int k = 0; k < AXES; k++) { // the last axis of space is the first coordinate
        const Array coordinate = reshape(slice(g, 2, AXES - 1 - k, 1), Shape{n, 1, count});
        const Array p = positions(coordinate, space[(size_t)k], padding, c.flag(4));
        base[k] = unary(mode == LINEAR ? OPS_FLOOR : OPS_ROUND, p);
        part[k] = p - base[k];
    }
    const Array flat = reshape(x, Shape{n, channels, product(space)});
    Array sum;
    for (int64_t corner = 0; corner < corners; corner++) {
        Array place, weight, inside;
        for (int k = 0; k < AXES; k++) {
            const bool is_upper = corner >> k & 1;
            const double length = (double)space[(size_t)k];
            const Array i = is_upper ? base[k] + 1 : base[k];
            const Array fits = both(greater_equal(i, 0), less(i, length));
            const Array w = is_upper ? part[k] : 1 - part[k];
            const Array index = minimum(maximum(i, 0), length - 1);
            place = k ? place * length + index : index;
            inside = k ? both(inside, fits) : fits;
            weight = k ? weight * w : w;
        }
        const Array indices = broadcast(cast(place, HAL_TYPE_I32), Shape{n, channels, count});
        const Array value = where(inside, Array(ops_array_take_along_axis(2, flat, indices)), 0.0);
        const Array term = mode == LINEAR ? value * weight : value;
        sum = corner ? sum + term : term;
    }
    return {reshape(sum, joined({n, channels}, out))};
}

#define WITH_OUT(name) name " " name ".out"
#define BACKWARD(name) name " " name ".grad_input"

const Operator TABLE[] = {
    {WITH_OUT("max_pool2d_with_indices"), Types::PLAIN, max_pool<2>},
    {WITH_OUT("max_pool3d_with_indices"), Types::PLAIN, max_pool<3>},
    {BACKWARD("max_pool2d_with_indices_backward"), Types::PLAIN, max_pool_backward<2>},
    {BACKWARD("max_pool3d_with_indices_backward"), Types::PLAIN, max_pool_backward<3>},
    {WITH_OUT("avg_pool3d"), Types::COMMON, average_pool},
    {BACKWARD("avg_pool3d_backward"), Types::COMMON, average_pool_backward},
    {WITH_OUT("adaptive_max_pool2d"), Types::PLAIN, adaptive_max<2>},
    {WITH_OUT("adaptive_max_pool3d"), Types::PLAIN, adaptive_max<3>},
    {BACKWARD("adaptive_max_pool2d_backward"), Types::PLAIN, adaptive_max_backward<2>},
    {BACKWARD("adaptive_max_pool3d_backward"), Types::PLAIN, adaptive_max_backward<3>},
    {WITH_OUT("max_unpool2d"), Types::PLAIN, unpool<2>},
    {WITH_OUT("max_unpool3d"), Types::PLAIN, unpool<3>},
    {WITH_OUT("im2col"), Types::PLAIN, columns},
    {"grid_sampler_2d", Types::COMMON, sample_grid<2>},
    {"grid_sampler_3d", Types::COMMON, sample_grid<3>},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
