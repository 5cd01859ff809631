#include "windows.h"

#include "runtime.h"

namespace halyard
{
namespace
{

using Shape = std::vector<int64_t>;

int64_t product(const Shape &sizes)
{
    int64_t n = 1;
    for (const int64_t size : sizes) {
        n *= size;
    }
    return n;
}

Shape shape_of(const Array &x)
{
    Shape shape;
    for (int64_t i = 0; i < x.rank(); i++) {
        shape.push_back(x.length(i));
    }
    return shape;
}

Shape space_of(const Array &x)
{
    const Shape shape = shape_of(x);
    return Shape(shape.begin() + 2, shape.end());
}

Array permuted(const Array &x, const std::vector<int32_t> &axes)
{
    return Array(ops_array_permute(x, axes.data()));
}

Array reversed(const Array &x, int64_t axis)
{
    const int64_t n = x.length(axis);
    if (n == 1) {
        return x;
    }
    const Array places(ops_array_iota(x.context(), HAL_TYPE_I32, n, (double)(n - 1), -1));
    return Array(ops_array_gather((int32_t)axis, x, places));
}

// x in the middle of an array of `value`: at `start`, with `step` between its elements along space.
Array placed(const Array &x, const Shape &space, const Shape &start, const Shape &step,
             double value)
{
    Shape shape = shape_of(x);
    std::copy(space.begin(), space.end(), shape.begin() + 2);
    const Array all(
        ops_array_full(x.context(), x.type(), (uint32_t)shape.size(), shape.data(), value));
    ops_tensor view;
    check(ops_array_describe(all, &view));
    for (size_t k = 0; k < space.size(); k++) {
        check(ops_tensor_slice(&view, (int32_t)k + 2, start[k], x.length((int64_t)k + 2), step[k],
                               &view));
    }
    return Array(ops_array_update(all, &view, x));
}

std::vector<int> identity_order(size_t count)
{
    std::vector<int> axes;
    for (size_t i = 0; i < count; i++) {
        axes.push_back((int)i);
    }
    return axes;
}

Shape places_of(const Geometry &g, const Shape &space)
{
    Shape places;
    for (size_t k = 0; k < space.size(); k++) {
        places.push_back(g.windows(k, space[k]));
        if (places.back() <= 0) {
            throw Unsupported("a kernel larger than its input");
        }
    }
    return places;
}

void require_elements(const Array &a, const Array &b)
{
    if (a.count() == 0 || b.count() == 0 || a.type() != b.type() || !hal_type_is_float(a.type())) {
        throw Unsupported("a convolution of nothing, of integers, or of two types");
    }
}

} // namespace

Array padded(const Array &x, const Shape &before, const Shape &after, double value)
{
    Array result = x;
    Shape space = space_of(x), zero(space.size(), 0), one(space.size(), 1);
    bool grows = false;
    Shape start(space.size(), 0);
    for (size_t k = 0; k < space.size(); k++) {
        const int64_t cut_before = before[k] < 0 ? -before[k] : 0;
        const int64_t cut_after = after[k] < 0 ? -after[k] : 0;
        const int64_t kept = space[k] - cut_before - cut_after;
        if (kept <= 0) {
            throw Unsupported("a padding that leaves nothing");
        }
        if (kept < space[k]) {
            result = slice(result, (int64_t)k + 2, cut_before, kept);
        }
        start[k] = before[k] > 0 ? before[k] : 0;
        space[k] = kept + start[k] + (after[k] > 0 ? after[k] : 0);
        grows |= space[k] > kept;
    }
    return grows ? placed(result, space, start, one, value) : result;
}

Array windows_of(const Array &padded, const Geometry &g, const Shape &places,
                 const std::vector<int> &axes)
{
    const Array copy(ops_array_copy(padded)); // row-major
    ops_tensor memory, view;
    check(ops_array_get_tensor(copy, &memory));
    const size_t d = places.size();
    Shape shape{memory.shape[0], memory.shape[1]}, stride{memory.stride[0], memory.stride[1]};
    for (size_t k = 0; k < d; k++) {
        shape.push_back(g.kernel[k]);
        stride.push_back(memory.stride[k + 2] * g.dilation[k]);
    }
    for (size_t k = 0; k < d; k++) {
        shape.push_back(places[k]);
        stride.push_back(memory.stride[k + 2] * g.stride[k]);
    }
    view = memory;
    view.rank = (uint32_t)axes.size();
    for (size_t i = 0; i < axes.size(); i++) {
        view.shape[i] = shape[(size_t)axes[i]];
        view.stride[i] = view.shape[i] == 1 ? 0 : stride[(size_t)axes[i]];
    }
    return Array(ops_array_from_tensor(padded.context(), &view));
}

Array convolve(const Array &x, const Array &w, const Geometry &g, int64_t groups)
{
    require_elements(x, w);
    const Shape space = space_of(x), places = places_of(g, space);
    const int64_t n = x.length(0), outputs = w.length(0), inner = w.count() / outputs;
    const int64_t count = product(places), each = outputs / groups;
    Array columns; // [n * groups, inner, count]
    const Array big = padded(x, g.padding, g.padding, 0);
    if (product(g.kernel) == 1 && product(g.stride) == 1) {
        columns = big;
    } else {
        columns = windows_of(big, g, places, identity_order(2 + 2 * space.size()));
    }
    columns = reshape(columns, Shape{n * groups, inner, count});
    Array weights = reshape(w, Shape{groups, each, inner});
    if (n > 1 || groups > 1) {
        const Shape one{1, groups, each, inner}, all{n, groups, each, inner};
        weights = reshape(broadcast(reshape(w, one), all), Shape{n * groups, each, inner});
    }
    Shape result{n, outputs};
    result.insert(result.end(), places.begin(), places.end());
    return reshape(matmul(weights, columns), result);
}

Array convolve_input_gradient(const Array &g, const Array &w, const Geometry &geometry,
                              int64_t groups, const Shape &space)
{
    require_elements(g, w);
    const size_t d = space.size();
    const Shape one(d, 1), zero(d, 0);
    // Elements of g, `stride` apart.
    Shape spread_space;
    for (size_t k = 0; k < d; k++) {
        spread_space.push_back((g.length((int64_t)k + 2) - 1) * geometry.stride[k] + 1);
    }
    const Array spread =
        product(geometry.stride) == 1 ? g : placed(g, spread_space, zero, geometry.stride, 0);
    Shape before, after;
    for (size_t k = 0; k < d; k++) {
        const int64_t reach = geometry.dilation[k] * (geometry.kernel[k] - 1);
        before.push_back(reach - geometry.padding[k]);
        after.push_back(space[k] + reach - before[k] - spread_space[k]);
    }
    // w [groups * each, inner, kernel...] turned around: [groups * inner, each, kernel...].
    const int64_t outputs = w.length(0), inner = w.length(1), each = outputs / groups;
    Shape split{groups, each, inner}, joined{groups * inner, each};
    std::vector<int32_t> order{0, 2, 1};
    for (size_t k = 0; k < d; k++) {
        split.push_back(geometry.kernel[k]);
        joined.push_back(geometry.kernel[k]);
        order.push_back((int32_t)k + 3);
    }
    Array turned = reshape(permuted(reshape(w, split), order), joined);
    for (size_t k = 0; k < d; k++) {
        turned = reversed(turned, (int64_t)k + 2);
    }
    const Geometry plain{geometry.kernel, one, zero, geometry.dilation};
    return convolve(padded(spread, before, after, 0), turned, plain, groups);
}

Array convolve_weight_gradient(const Array &g, const Array &x, const Geometry &geometry,
                               int64_t groups)
{
    require_elements(g, x);
    const size_t d = geometry.kernel.size();
    const int64_t n = x.length(0), inner = x.length(1) / groups, outputs = g.length(1);
    const int64_t each = outputs / groups;
    const Shape places = space_of(g);
    const int64_t count = product(places), taps = product(geometry.kernel);
    const Array big = padded(x, geometry.padding, geometry.padding, 0);
    // [n, places..., channels, kernel...] of all groups
    std::vector<int> axes{0};
    for (size_t k = 0; k < d; k++) {
        axes.push_back((int)(2 + d + k));
    }
    axes.push_back(1);
    for (size_t k = 0; k < d; k++) {
        axes.push_back((int)(2 + k));
    }
    const Array columns =
        reshape(windows_of(big, geometry, places, axes), Shape{n * count, groups, inner * taps});
    const Array gradients = permuted(reshape(g, Shape{n, groups, each, count}), {1, 2, 0, 3});
    const Array left = reshape(gradients, Shape{groups, each, n * count});
    const Array right = permuted(columns, {1, 0, 2});
    Shape result{outputs, inner};
    result.insert(result.end(), geometry.kernel.begin(), geometry.kernel.end());
    return reshape(matmul(left, right), result);
}

} // namespace halyard
