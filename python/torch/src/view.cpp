#include "view.h"

#include <algorithm>
#include <optional>

#include "cell.h"

namespace halyard
{
namespace
{

// An axis of a tensor with more than one element and a stride.
struct Axis {
    int32_t position; // in the tensor
    int64_t size;
    int64_t stride;
};
using Axes = c10::SmallVector<Axis, OPS_MAX_RANK>;
using Shape = c10::SmallVector<int64_t, OPS_MAX_RANK>;

// The axes from the largest stride to the smallest.
Axes sorted_axes(c10::IntArrayRef sizes, c10::IntArrayRef strides)
{
    Axes axes;
    for (size_t i = 0; i < sizes.size(); i++) {
        if (sizes[i] != 1 && strides[i] != 0) {
            axes.push_back({(int32_t)i, sizes[i], strides[i]});
        }
    }
    std::stable_sort(axes.begin(), axes.end(),
                     [](const Axis &a, const Axis &b) { return a.stride > b.stride; });
    return axes;
}

// Whether an array has this shape.
bool has_shape(const Array &array, c10::IntArrayRef sizes)
{
    bool same = array.rank() == (int64_t)sizes.size();
    for (size_t i = 0; same && i < sizes.size(); i++) {
        same = array.length((int64_t)i) == sizes[i];
    }
    return same;
}

// The array with one axis for each of `axes`, in their order, permuted to the tensor's order, with
// its axes of one element and its broadcast axes.
Array in_tensor_order(Array array, const Axes &axes, c10::IntArrayRef sizes)
{
    Axes by_position = axes;
    std::sort(by_position.begin(), by_position.end(),
              [](const Axis &a, const Axis &b) { return a.position < b.position; });
    int32_t order[OPS_MAX_RANK];
    bool moved = false;
    for (size_t i = 0; i < axes.size(); i++) {
        for (size_t k = 0; k < axes.size(); k++) {
            if (axes[k].position == by_position[i].position) {
                order[i] = (int32_t)k;
            }
        }
        moved |= order[i] != (int32_t)i;
    }
    if (moved) {
        array = Array(ops_array_permute(array, order));
    }
    if (axes.size() != sizes.size()) {
        Shape shape(sizes.size(), 1);
        for (const Axis &axis : axes) {
            shape[(size_t)axis.position] = axis.size;
        }
        array = reshape(array, shape);
    }
    return broadcast(array, sizes);
}

// A view that is made of ops' own views of the row-major storage: every stride divides the next
// larger one, and the part of each axis lies within it.
std::optional<Array> nested_view(const Array &storage, const Axes &axes, c10::IntArrayRef sizes,
                                 int64_t offset)
{
    const int64_t count = storage.count();
    if (axes.size() + 1 > OPS_MAX_RANK) {
        return std::nullopt;
    }
    Shape shape, starts;
    int64_t above = 0, rest = offset; // stride of the axis before
    for (const Axis &axis : axes) {
        if (above && (above % axis.stride || above == axis.stride)) {
            return std::nullopt;
        }
        const int64_t length = above ? above / axis.stride : count / axis.stride;
        const int64_t start = rest / axis.stride;
        if (start + axis.size > length) {
            return std::nullopt;
        }
        shape.push_back(length);
        starts.push_back(start);
        rest %= axis.stride;
        above = axis.stride;
    }
    shape.push_back(above);
    starts.push_back(rest);
    const int64_t used = shape[0] * axes[0].stride;
    Array array = flatten(storage);
    if (used < count) {
        array = slice(array, 0, 0, used);
    }
    array = reshape(array, shape);
    Shape kept;
    for (size_t i = 0; i < shape.size(); i++) {
        const int64_t size = i < axes.size() ? axes[i].size : 1;
        if (size != shape[i]) {
            array = slice(array, (int64_t)i, starts[i], size);
        }
        kept.push_back(size);
    }
    kept.pop_back();
    return in_tensor_order(reshape(array, kept), axes, sizes);
}

// Any view, of computed row-major memory.
Array memory_view(Cell *cell, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset)
{
    ops_tensor tensor;
    check(ops_array_get_tensor(cell->value, &tensor));
    if (!ops_tensor_is_contiguous(&tensor)) {
        Array copy(ops_array_copy(cell->value));
        check(ops_array_get_tensor(copy, &tensor));
        ops_array_release(cell->value);
        cell->value = copy.release();
    }
    cell->forget_deferred();
    tensor.rank = (uint32_t)sizes.size();
    tensor.offset += offset;
    for (size_t i = 0; i < sizes.size(); i++) {
        tensor.shape[i] = sizes[i];
        tensor.stride[i] = sizes[i] == 1 ? 0 : strides[i];
    }
    return Array(ops_array_from_tensor(context_at(cell->device), &tensor));
}

bool is_contiguous(c10::IntArrayRef sizes, c10::IntArrayRef strides)
{
    int64_t expected = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        if (sizes[i] != 1 && strides[i] != expected) {
            return false;
        }
        expected *= sizes[i];
    }
    return true;
}

} // namespace

Array view_of(Cell *cell, hal_type type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
              int64_t offset)
{
    const Array storage = Array::retained(cell->as(type));
    int64_t count = 1;
    for (const int64_t size : sizes) {
        count *= size;
    }
    if (offset == 0 && count == storage.count() && is_contiguous(sizes, strides)) {
        return has_shape(storage, sizes) ? storage : reshape(storage, sizes);
    }
    const Axes axes = sorted_axes(sizes, strides);
    if (axes.empty()) {
        return in_tensor_order(reshape(slice(flatten(storage), 0, offset, 1), Shape()), axes,
                               sizes);
    }
    if (cell->is_deferred || offset == 0) {
        if (std::optional<Array> view = nested_view(storage, axes, sizes, offset)) {
            return std::move(*view);
        }
    }
    return memory_view(cell, sizes, strides, offset);
}

Array in_order_of_strides(const Array &array, c10::IntArrayRef strides)
{
    int32_t order[OPS_MAX_RANK];
    for (int32_t i = 0; i < (int32_t)strides.size(); i++) {
        order[i] = i;
    }
    std::stable_sort(order, order + strides.size(),
                     [&](int32_t a, int32_t b) { return strides[a] > strides[b]; });
    return Array(ops_array_permute(array, order));
}

} // namespace halyard
