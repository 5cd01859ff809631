// Windows: the parts of a tensor that a convolution or a pooling reads, and convolutions made of
// them by matrix products. Tensors are [n, channels, space...] with one to three axes of space.
#pragma once

#include <vector>

#include "array.h"

namespace halyard
{

// For each axis of space.
struct Geometry {
    std::vector<int64_t> kernel, stride, padding, dilation;
    // The number of windows along an axis of `length` elements.
    int64_t windows(size_t axis, int64_t length) const
    {
        return (length + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) /
                   stride[axis] +
               1;
    }
};

// x with `before` and `after` more elements of `value` along each axis of space; negative: fewer.
Array padded(const Array &x, const std::vector<int64_t> &before, const std::vector<int64_t> &after,
             double value);

// The windows of a padded tensor in the order of `axes` of [n, channels, kernel..., places...]: a
// view of computed memory. `places` are the numbers of windows.
Array windows_of(const Array &padded, const Geometry &geometry, const std::vector<int64_t> &places,
                 const std::vector<int> &axes);

// The convolution of x with w [outputs, channels / groups, kernel...] and a bias [outputs], which
// may be missing, and its gradients: of x, whose lengths along space are `space`, and of w.
Array convolve(const Array &x, const Array &w, const Geometry &geometry, int64_t groups,
               const Array *bias = nullptr);
Array convolve_input_gradient(const Array &g, const Array &w, const Geometry &geometry,
                              int64_t groups, const std::vector<int64_t> &space);
Array convolve_weight_gradient(const Array &g, const Array &x, const Geometry &geometry,
                               int64_t groups);

} // namespace halyard
