#include "windows.h"

#include "runtime.h"

namespace halyard
{
namespace
{

using Shape = std::vector<int64_t>;

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

// Narrow floats may be multiplied by matrix units, as PyTorch does: the bound is the same.
ops_convolution_options options_of(hal_type type, const Geometry &g, int64_t groups)
{
    ops_convolution_options options{};
    options.size = sizeof options;
    options.precision = precision_of(type);
    options.groups = groups;
    for (size_t k = 0; k < g.kernel.size(); k++) {
        options.stride[k] = g.stride[k];
        options.dilation[k] = g.dilation[k];
        options.before[k] = options.after[k] = g.padding[k];
    }
    return options;
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

Array convolve(const Array &x, const Array &w, const Geometry &g, int64_t groups, const Array *bias)
{
    require_elements(x, w);
    places_of(g, space_of(x));
    const ops_convolution_options options = options_of(x.type(), g, groups);
    return Array(ops_array_convolution(&options, x, w, bias ? (ops_array *)*bias : nullptr));
}

Array convolve_input_gradient(const Array &g, const Array &w, const Geometry &geometry,
                              int64_t groups, const Shape &space)
{
    require_elements(g, w);
    const ops_convolution_options options = options_of(g.type(), geometry, groups);
    return Array(ops_array_convolution_transposed(&options, g, w, nullptr, space.data()));
}

Array convolve_weight_gradient(const Array &g, const Array &x, const Geometry &geometry,
                               int64_t groups)
{
    require_elements(g, x);
    ops_convolution_options options = options_of(x.type(), geometry, groups);
    Array read = x; // the elements that windows reach
    for (size_t k = 0; k < geometry.kernel.size(); k++) {
        const int64_t reach = (g.length((int64_t)k + 2) - 1) * geometry.stride[k] +
                              (geometry.kernel[k] - 1) * geometry.dilation[k] + 1;
        const int64_t after = reach - geometry.padding[k] - x.length((int64_t)k + 2);
        if (after < 0) {
            read = slice(read, (int64_t)k + 2, 0, x.length((int64_t)k + 2) + after);
        }
        options.after[k] = after > 0 ? after : 0;
    }
    return Array(ops_array_convolution_weights(&options, read, g, geometry.kernel.data()));
}

} // namespace halyard
