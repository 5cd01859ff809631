// Padding by reflected or repeated elements, and changes of size along the last axes. Each axis is
// done by itself: padding and nearest neighbours by a list of places, interpolation and adaptive
// means by a matrix of weights. A matrix makes NaN of an infinity next to a weight of 0, so tensors
// with infinities differ from PyTorch's.
#include <cmath>

#include "call.h"

namespace halyard
{
namespace
{

using Shape = std::vector<int64_t>;

Array places_array(ops_context *context, const std::vector<int32_t> &places)
{
    const int64_t count = (int64_t)places.size();
    return Array(ops_array_from_host(context, HAL_TYPE_I32, 1, &count, places.data()));
}

// The tensor has the axes, those of channels and a batch.
void require_batch(const Tensor &x, size_t axes)
{
    if (x.numel() == 0 || x.dim() != (int64_t)axes + 2) {
        throw Unsupported("a change of size of nothing");
    }
}

// The same, or without a batch.
void require_elements(const Tensor &x, size_t axes)
{
    if (x.numel() == 0 || (x.dim() != (int64_t)axes + 2 && x.dim() != (int64_t)axes + 1)) {
        throw Unsupported("a change of size of nothing");
    }
}

// ---- Padding ----

using Fold = int64_t (*)(int64_t place, int64_t length);

int64_t reflected(int64_t place, int64_t length)
{
    place = place < 0 ? -place : place;
    return place >= length ? 2 * (length - 1) - place : place;
}
int64_t repeated(int64_t place, int64_t length)
{
    return std::clamp<int64_t>(place, 0, length - 1);
}

// The places that padding reads along axis `from_end` from the end.
std::vector<int32_t> padding_places(const Shape &padding, size_t from_end, int64_t length,
                                    Fold fold)
{
    const int64_t before = padding[2 * from_end], after = padding[2 * from_end + 1];
    std::vector<int32_t> places;
    for (int64_t i = -before; i < length + after; i++) {
        const int64_t place = fold(i, length);
        if (place < 0 || place >= length) {
            throw Unsupported("padding wider than the input");
        }
        places.push_back((int32_t)place);
    }
    if (places.empty()) {
        throw Unsupported("padding that leaves nothing");
    }
    return places;
}

// Nothing in the shape of x, or of its result, with other lengths along the last axes.
Array nothing(const Call &c, const Tensor &x, const Shape &space)
{
    Shape shape(x.sizes().begin(), x.sizes().end() - (int64_t)space.size());
    shape.insert(shape.end(), space.begin(), space.end());
    return Array(ops_array_full(c.context(), type_of(x.scalar_type()), (uint32_t)shape.size(),
                                shape.data(), 0));
}

// Whether a batch of no tensors is given.
bool is_batch_of_nothing(const Tensor &x, size_t axes)
{
    return x.dim() == (int64_t)axes + 2 && x.size(0) == 0;
}

// The processor's kernels read the list before they look at its length.
Shape padding_of(const Call &c, size_t index, size_t axes)
{
    TORCH_CHECK(c.integers(index).size() == 2 * axes, "padding size is expected to be ", 2 * axes,
                ", but got: ", c.integers(index).size());
    return c.integers(index, 2 * axes, INT32_MIN);
}

template <size_t AXES, Fold FOLD> Results pad(const Call &c) // x, padding
{
    const Shape padding = padding_of(c, 1, AXES);
    if (is_batch_of_nothing(c.tensor(0), AXES)) {
        Shape space(c.tensor(0).sizes().end() - AXES, c.tensor(0).sizes().end());
        for (size_t k = 0; k < AXES; k++) {
            space[AXES - 1 - k] += padding[2 * k] + padding[2 * k + 1];
        }
        return {nothing(c, c.tensor(0), space)};
    }
    require_elements(c.tensor(0), AXES);
    Array x = c.plain(0);
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = x.rank() - 1 - (int64_t)k;
        const auto places = padding_places(padding, k, x.length(axis), FOLD);
        x = Array(ops_array_gather((int32_t)axis, x, places_array(c.context(), places)));
    }
    return {x};
}

template <size_t AXES, Fold FOLD> Results pad_backward(const Call &c) // g, x, padding
{
    const Shape padding = padding_of(c, 2, AXES);
    require_elements(c.tensor(1), AXES);
    Shape padded(c.tensor(1).sizes().begin(), c.tensor(1).sizes().end());
    for (size_t k = 0; k < AXES; k++) {
        padded[padded.size() - 1 - k] += padding[2 * k] + padding[2 * k + 1];
    }
    c.require_shape(0, padded);
    Array g = c.plain(0);
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = g.rank() - 1 - (int64_t)k;
        const int64_t length = c.tensor(1).size(axis);
        const Array places = places_array(c.context(), padding_places(padding, k, length, FOLD));
        Shape shape, one((size_t)g.rank(), 1), all;
        for (int64_t i = 0; i < g.rank(); i++) {
            all.push_back(g.length(i));
            shape.push_back(i == axis ? length : g.length(i));
        }
        one[(size_t)axis] = all[(size_t)axis];
        const Array zeros(
            ops_array_full(c.context(), g.type(), (uint32_t)shape.size(), shape.data(), 0));
        g = Array(ops_array_scatter(OPS_SCATTER_ADD, (int32_t)axis, zeros,
                                    broadcast(reshape(places, one), all), g));
    }
    return {g};
}

// ---- Nearest neighbours ----

// The step between the places that results read, as PyTorch computes it.
double step_of(const Call &c, size_t factor, int64_t from, int64_t to)
{
    return factor < c.count() && c.has(factor) && c.value(factor).toDouble() > 0
               ? 1.0 / c.value(factor).toDouble()
               : (double)from / (double)to;
}

template <size_t AXES, bool IS_EXACT> Results nearest(const Call &c) // x, size, factors
{
    const Shape out = c.integers(1, AXES, 1);
    require_batch(c.tensor(0), AXES);
    Array x = c.plain(0);
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = 2 + (int64_t)k, length = x.length(axis);
        const float step = (float)step_of(c, 2 + k, length, out[k]);
        std::vector<int32_t> places;
        for (int64_t i = 0; i < out[k]; i++) {
            const float place = ((float)i + (IS_EXACT ? 0.5f : 0.0f)) * step;
            places.push_back((int32_t)std::min<int64_t>((int64_t)std::floor(place), length - 1));
        }
        x = Array(ops_array_gather((int32_t)axis, x, places_array(c.context(), places)));
    }
    return {x};
}

// ---- Weights: a matrix [to, from] for each axis ----

using Matrix = std::vector<float>;

Matrix linear_weights(int64_t from, int64_t to, bool aligns_corners, double step)
{
    Matrix m((size_t)(to * from), 0.0f);
    for (int64_t i = 0; i < to; i++) {
        double place = 0;
        if (aligns_corners) {
            place = to > 1 ? (double)i * (double)(from - 1) / (double)(to - 1) : 0;
        } else {
            place = std::max(0.0, ((double)i + 0.5) * step - 0.5);
        }
        const int64_t low = std::min<int64_t>((int64_t)place, from - 1);
        const int64_t high = std::min<int64_t>(low + 1, from - 1);
        const double part = std::clamp(place - (double)low, 0.0, 1.0);
        m[(size_t)(i * from + low)] += (float)(1 - part);
        m[(size_t)(i * from + high)] += (float)part;
    }
    return m;
}

// Of Keys' kernel with a = -3/4, on four elements, those beyond an end repeated.
Matrix cubic_weights(int64_t from, int64_t to, bool aligns_corners, double step)
{
    constexpr double A = -0.75;
    const auto near = [](double x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };
    const auto far = [](double x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };
    Matrix m((size_t)(to * from), 0.0f);
    for (int64_t i = 0; i < to; i++) {
        const double place = !aligns_corners ? ((double)i + 0.5) * step - 0.5
                             : to > 1        ? (double)i * (double)(from - 1) / (double)(to - 1)
                                             : 0;
        const double low = std::floor(place), t = place - low;
        const double weights[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
        for (int64_t k = 0; k < 4; k++) {
            const int64_t at = std::clamp<int64_t>((int64_t)low + k - 1, 0, from - 1);
            m[(size_t)(i * from + at)] += (float)weights[k];
        }
    }
    return m;
}

// Of a triangle that is as wide as the step where that is above 1.
Matrix smooth_weights(int64_t from, int64_t to, bool aligns_corners, double step)
{
    if (aligns_corners) {
        step = to > 1 ? (double)(from - 1) / (double)(to - 1) : 0;
    }
    const double width = std::max(step, 1.0);
    Matrix m((size_t)(to * from), 0.0f);
    for (int64_t i = 0; i < to; i++) {
        const double center = step * ((double)i + 0.5);
        const int64_t begin = std::max<int64_t>((int64_t)(center - width + 0.5), 0);
        const int64_t end = std::min<int64_t>((int64_t)(center + width + 0.5), from);
        double total = 0;
        for (int64_t k = begin; k < end; k++) {
            total += std::max(0.0, 1 - std::abs(((double)k - center + 0.5) / width));
        }
        for (int64_t k = begin; k < end; k++) {
            const double w = std::max(0.0, 1 - std::abs(((double)k - center + 0.5) / width));
            m[(size_t)(i * from + k)] = (float)(total > 0 ? w / total : w);
        }
    }
    return m;
}

Matrix mean_weights(int64_t from, int64_t to)
{
    Matrix m((size_t)(to * from), 0.0f);
    for (int64_t i = 0; i < to; i++) {
        const int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
        for (int64_t k = begin; k < end; k++) {
            m[(size_t)(i * from + k)] = (float)(1.0 / (double)(end - begin));
        }
    }
    return m;
}

// x with its axis multiplied by the matrix [to, from], or by its transpose.
Array weighted(const Array &x, int64_t axis, const Matrix &m, int64_t to, int64_t from,
               bool is_transposed)
{
    const Shape shape{to, from};
    Array matrix = cast(
        Array(ops_array_from_host(x.context(), HAL_TYPE_F32, 2, shape.data(), m.data())), x.type());
    matrix = is_transposed ? matrix : transpose(matrix, 0, 1);
    const Array moved = transpose(x, axis, x.rank() - 1);
    Shape result;
    for (int64_t i = 0; i < x.rank(); i++) {
        result.push_back(moved.length(i));
    }
    const int64_t width = result.back();
    const Array rows = reshape(moved, Shape{x.count() / width, width});
    result.back() = is_transposed ? from : to;
    return transpose(reshape(matmul(rows, matrix), result), axis, x.rank() - 1);
}

using Weights = Matrix (*)(int64_t from, int64_t to, bool aligns_corners, double step);

// x, size, aligns_corners, factors
template <size_t AXES, Weights WEIGHTS = linear_weights> Results linear(const Call &c)
{
    const Shape out = c.integers(1, AXES, 1);
    require_batch(c.tensor(0), AXES);
    Array x = c[0];
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = 2 + (int64_t)k, from = x.length(axis);
        const Matrix m = WEIGHTS(from, out[k], c.flag(2), step_of(c, 3 + k, from, out[k]));
        x = weighted(x, axis, m, out[k], from, false);
    }
    return {x};
}

// g, size, in, aligns_corners, factors
template <size_t AXES, Weights WEIGHTS = linear_weights> Results linear_backward(const Call &c)
{
    const Shape out = c.integers(1, AXES, 1), in = c.integers(2, AXES + 2, 1);
    Shape shape(in.begin(), in.begin() + 2);
    shape.insert(shape.end(), out.begin(), out.end());
    require_batch(c.tensor(0), AXES);
    c.require_shape(0, shape);
    Array g = c[0];
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = 2 + (int64_t)k, from = in[2 + k];
        const Matrix m = WEIGHTS(from, out[k], c.flag(3), step_of(c, 4 + k, from, out[k]));
        g = weighted(g, axis, m, out[k], from, true);
    }
    return {g};
}

template <size_t AXES> Results adaptive_mean(const Call &c) // x, size
{
    const Shape out = c.integers(1, AXES, 0);
    if (is_batch_of_nothing(c.tensor(0), AXES)) {
        return {nothing(c, c.tensor(0), out)};
    }
    require_elements(c.tensor(0), AXES);
    Array x = c[0];
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = x.rank() - (int64_t)AXES + (int64_t)k, from = x.length(axis);
        if (out[k] < 1) {
            throw Unsupported("a result of nothing");
        }
        x = weighted(x, axis, mean_weights(from, out[k]), out[k], from, false);
    }
    return {x};
}

template <size_t AXES> Results adaptive_mean_backward(const Call &c) // g, x
{
    require_elements(c.tensor(0), AXES);
    require_elements(c.tensor(1), AXES);
    if (c.tensor(0).dim() != c.tensor(1).dim()) {
        throw Unsupported("a gradient of another rank");
    }
    Array g = c[0];
    for (size_t k = 0; k < AXES; k++) {
        const int64_t axis = g.rank() - (int64_t)AXES + (int64_t)k;
        const int64_t from = c.tensor(1).size(axis), to = g.length(axis);
        g = weighted(g, axis, mean_weights(from, to), to, from, true);
    }
    return {g};
}

#define WITH_OUT(name) name " " name ".out"
#define BACKWARD(name) name " " name ".grad_input"

const Operator TABLE[] = {
    {WITH_OUT("reflection_pad1d"), Types::PLAIN, pad<1, reflected>},
    {WITH_OUT("reflection_pad2d"), Types::PLAIN, pad<2, reflected>},
    {WITH_OUT("reflection_pad3d"), Types::PLAIN, pad<3, reflected>},
    {WITH_OUT("replication_pad1d"), Types::PLAIN, pad<1, repeated>},
    {WITH_OUT("replication_pad2d"), Types::PLAIN, pad<2, repeated>},
    {WITH_OUT("replication_pad3d"), Types::PLAIN, pad<3, repeated>},
    {BACKWARD("reflection_pad1d_backward"), Types::PLAIN, pad_backward<1, reflected>},
    {BACKWARD("reflection_pad2d_backward"), Types::PLAIN, pad_backward<2, reflected>},
    {BACKWARD("reflection_pad3d_backward"), Types::PLAIN, pad_backward<3, reflected>},
    {BACKWARD("replication_pad1d_backward"), Types::PLAIN, pad_backward<1, repeated>},
    {BACKWARD("replication_pad2d_backward"), Types::PLAIN, pad_backward<2, repeated>},
    {BACKWARD("replication_pad3d_backward"), Types::PLAIN, pad_backward<3, repeated>},
    {WITH_OUT("upsample_nearest1d"), Types::PLAIN, nearest<1, false>},
    {WITH_OUT("upsample_nearest3d"), Types::PLAIN, nearest<3, false>},
    {WITH_OUT("_upsample_nearest_exact1d"), Types::PLAIN, nearest<1, true>},
    {WITH_OUT("_upsample_nearest_exact2d"), Types::PLAIN, nearest<2, true>},
    {WITH_OUT("_upsample_nearest_exact3d"), Types::PLAIN, nearest<3, true>},
    {WITH_OUT("upsample_linear1d"), Types::COMMON, linear<1>},
    {WITH_OUT("upsample_bilinear2d"), Types::COMMON, linear<2>},
    {WITH_OUT("upsample_trilinear3d"), Types::COMMON, linear<3>},
    {BACKWARD("upsample_linear1d_backward"), Types::COMMON, linear_backward<1>},
    {BACKWARD("upsample_bilinear2d_backward"), Types::COMMON, linear_backward<2>},
    {BACKWARD("upsample_trilinear3d_backward"), Types::COMMON, linear_backward<3>},
    {WITH_OUT("upsample_bicubic2d"), Types::COMMON, linear<2, cubic_weights>},
    {BACKWARD("upsample_bicubic2d_backward"), Types::COMMON, linear_backward<2, cubic_weights>},
    {WITH_OUT("_upsample_bilinear2d_aa"), Types::COMMON, linear<2, smooth_weights>},
    {BACKWARD("_upsample_bilinear2d_aa_backward"), Types::COMMON,
     linear_backward<2, smooth_weights>},
    {"_adaptive_avg_pool2d", Types::COMMON, adaptive_mean<2>},
    {"_adaptive_avg_pool3d", Types::COMMON, adaptive_mean<3>},
    {"_adaptive_avg_pool2d_backward", Types::COMMON, adaptive_mean_backward<2>},
    {"_adaptive_avg_pool3d_backward", Types::COMMON, adaptive_mean_backward<3>},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
