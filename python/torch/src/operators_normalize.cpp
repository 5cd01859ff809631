// Normalisation by layer, group and batch, and the cells of recurrent networks.
#include <ATen/WrapDimUtils.h>

#include "call.h"
#include "recurrent.h"

namespace halyard
{
namespace
{

using Shape = at::DimVector;

Array mean(const Array &x, int64_t axis, bool keep = true)
{
    return reduce(OPS_REDUCE_MEAN, x, axis, keep);
}
Array sum(const Array &x, int64_t axis, bool keep = false)
{
    return reduce(OPS_REDUCE_SUM, x, axis, keep);
}

void require_elements(const Array &x)
{
    if (x.count() == 0 || !hal_type_is_float(x.type())) {
        throw Unsupported("normalisation of nothing or of integers");
    }
}

int64_t product(at::IntArrayRef sizes)
{
    int64_t n = 1;
    for (const int64_t size : sizes) {
        n *= size;
    }
    return n;
}

// Rows of x less their mean, and what they are multiplied with: x [rows, n].
struct Normalized {
    Array mean, rstd; // [rows, 1]
    Array values;
};

Normalized normalized(const Array &x, double eps)
{
    Normalized n;
    n.mean = mean(x, 1);
    const Array centred = x - n.mean;
    n.rstd = unary(OPS_RSQRT, mean(square(centred), 1) + eps);
    n.values = centred * n.rstd;
    return n;
}

// The gradient of x from that of the normalised values: rows of [rows, n].
Array normalized_gradient(const Array &g, const Array &values, const Array &rstd)
{
    return (g - mean(g, 1) - values * mean(g * values, 1)) * rstd;
}

// ---- Layers ----

// A result in the shape of an operand and in its type, which weights of a wider one do not change.
Array like_operand(const Call &c, size_t index, const Array &y)
{
    const Tensor &x = c.tensor(index);
    return reshape(cast(y, type_of(x.scalar_type())), x.sizes());
}

Results layer_norm(const Call &c) // x, shape, weight, bias, eps
{
    const std::vector<int64_t> inner = c.integers(1);
    TORCH_CHECK(!inner.empty(),
                "Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
                "least one element, but got normalized_shape = []");
    const Array x = c[0];
    require_elements(x);
    const int64_t n = product(inner);
    const at::IntArrayRef sizes = c.tensor(0).sizes();
    TORCH_CHECK(sizes.size() >= inner.size() &&
                    sizes.slice(sizes.size() - inner.size()) == at::IntArrayRef(inner),
                "Given normalized_shape=", at::IntArrayRef(inner),
                ", expected input with shape [*, ...], but got input of size", sizes);
    const Normalized rows = normalized(reshape(x, Shape{x.count() / n, n}), c.value(4).toDouble());
    Array y = rows.values;
    y = c.has(2) ? y * reshape(c[2], Shape{n}) : y;
    y = c.has(3) ? y + reshape(c[3], Shape{n}) : y;
    Shape statistics(sizes.begin(), sizes.end() - (int64_t)inner.size());
    statistics.resize(sizes.size(), 1);
    return {like_operand(c, 0, y), reshape(rows.mean, statistics),
            reshape(rows.rstd, statistics)};
}

std::array<bool, 3> mask_of(const Call &c, size_t index)
{
    const auto list = c.value(index).toBoolList();
    return {list[0], list[1], list[2]};
}

Results layer_norm_backward(const Call &c) // g, x, shape, mean, rstd, weight, bias, mask
{
    const std::vector<int64_t> inner = c.integers(2);
    require_elements(c[1]);
    const at::IntArrayRef sizes = c.tensor(1).sizes();
    if (inner.size() > sizes.size() ||
        sizes.slice(sizes.size() - inner.size()) != at::IntArrayRef(inner)) {
        throw Unsupported("a shape that does not end that of the tensor");
    }
    const int64_t n = product(inner), rows = c[1].count() / n;
    const auto mask = mask_of(c, 7);
    const Array rstd = reshape(c[4], Shape{rows, 1}), g = reshape(c[0], Shape{rows, n});
    const Array values = (reshape(c[1], Shape{rows, n}) - reshape(c[3], Shape{rows, 1})) * rstd;
    Results r(3);
    if (mask[0]) {
        const Array weighted = c.has(5) ? g * reshape(c[5], Shape{n}) : g;
        r[0] = like_operand(c, 1, normalized_gradient(weighted, values, rstd));
    }
    if (mask[1]) {
        r[1] = reshape(sum(g * values, 0), inner);
    }
    if (mask[2]) {
        r[2] = reshape(sum(g, 0), inner);
    }
    return r;
}

// ---- Groups of channels ----

void require_groups(int64_t channels, int64_t groups)
{
    if (groups < 1 || channels % groups) {
        throw Unsupported("groups that do not divide the channels");
    }
}

Results group_norm(const Call &c) // x, weight, bias, n, channels, inner, groups, eps
{
    const Array x = c[0];
    require_elements(x);
    const int64_t n = c.integer(3), channels = c.integer(4), inner = c.integer(5);
    const int64_t groups = c.integer(6);
    require_groups(channels, groups);
    const Normalized rows =
        normalized(reshape(x, Shape{n * groups, channels / groups * inner}), c.value(7).toDouble());
    Array y = reshape(rows.values, Shape{n, channels, inner});
    y = c.has(1) ? y * reshape(c[1], Shape{channels, 1}) : y;
    y = c.has(2) ? y + reshape(c[2], Shape{channels, 1}) : y;
    const Shape statistics{n, groups};
    return {like_operand(c, 0, y), reshape(rows.mean, statistics),
            reshape(rows.rstd, statistics)};
}

Results group_norm_backward(const Call &c) // g, x, mean, rstd, weight, n, channels, inner, groups
{
    require_elements(c[1]);
    const int64_t n = c.integer(5), channels = c.integer(6), inner = c.integer(7);
    const int64_t groups = c.integer(8);
    require_groups(channels, groups);
    const int64_t rows = n * groups, width = channels / groups * inner;
    const auto mask = mask_of(c, 9);
    const Shape by_channel{n, channels, inner}, by_row{rows, width}, one{rows, 1};
    const Array g = reshape(c[0], by_channel), rstd = reshape(c[3], one);
    const Array values = (reshape(c[1], by_row) - reshape(c[2], one)) * rstd;
    Results r(3);
    if (mask[0]) {
        const Array weighted = c.has(4) ? g * reshape(c[4], Shape{channels, 1}) : g;
        r[0] = like_operand(c, 1, normalized_gradient(reshape(weighted, by_row), values, rstd));
    }
    if (mask[1]) {
        r[1] = sum(sum(g * reshape(values, by_channel), 2), 0);
    }
    if (mask[2]) {
        r[2] = sum(sum(g, 2), 0);
    }
    return r;
}

// ---- Batches: x [n, channels, inner...] as [n, channels, inner] ----

struct Batch {
    Array x;
    int64_t channels, count; // elements of a channel
    Shape per_channel;
};

Batch batch_of(const Call &c, size_t index)
{
    const Array x = c[index];
    require_elements(x);
    const int64_t n = x.length(0), channels = x.length(1);
    return {reshape(x, Shape{n, channels, x.count() / (n * channels)}), channels,
            x.count() / channels, Shape{channels, 1}};
}

// Over everything except the channel.
Array channel_sum(const Array &x)
{
    return sum(sum(x, 2), 0);
}

void move_towards(const Tensor &running, const Array &value, double momentum)
{
    const Array old = array_of(running), target = cast(value, old.type());
    assign(running, old * (1 - momentum) + target * momentum);
}

// Running mean and variance are changed in place.
Results batch_norm_with(const Call &c, const Tensor *running_mean, const Tensor *running_var,
                        bool trains, double momentum, double eps)
{
    const Batch b = batch_of(c, 0);
    Array mean, rstd;
    if (trains) {
        mean = channel_sum(b.x) / (double)b.count;
        const Array total = channel_sum(square(b.x - reshape(mean, b.per_channel)));
        const Array variance = total / (double)b.count;
        rstd = unary(OPS_RSQRT, variance + eps);
        if (running_mean && running_mean->defined()) {
            move_towards(*running_mean, mean, momentum);
        }
        if (running_var && running_var->defined()) {
            move_towards(*running_var, total / (double)(b.count - 1), momentum);
        }
    } else {
        mean = cast(array_of(*running_mean), b.x.type());
        rstd = unary(OPS_RSQRT, cast(array_of(*running_var), b.x.type()) + eps);
    }
    Array y = (b.x - reshape(mean, b.per_channel)) * reshape(rstd, b.per_channel);
    y = c.has(1) ? y * reshape(c[1], b.per_channel) : y;
    y = c.has(2) ? y + reshape(c[2], b.per_channel) : y;
    const int64_t none = 0;
    const Array empty(ops_array_full(c.context(), b.x.type(), 1, &none, 0));
    y = like_operand(c, 0, y);
    return {y, trains ? mean : empty, trains ? rstd : empty};
}

const Tensor *optional_tensor(const Call &c, size_t index)
{
    return c.has(index) ? &c.tensor(index) : nullptr;
}

// x, weight, bias, running_mean, running_var, training, momentum, eps
Results batch_norm(const Call &c)
{
    return batch_norm_with(c, optional_tensor(c, 3), optional_tensor(c, 4), c.flag(5),
                           c.value(6).toDouble(), c.value(7).toDouble());
}

// x, weight, bias, training, momentum, eps: without running values
Results batch_norm_without_running(const Call &c)
{
    return batch_norm_with(c, nullptr, nullptr, true, c.value(4).toDouble(), c.value(5).toDouble());
}

// x, weight, bias, running_mean, running_var, momentum, eps: as batch_norm in training, with a
// buffer for libraries that need one.
Results batch_norm_with_update(const Call &c)
{
    Results r = batch_norm_with(c, optional_tensor(c, 3), optional_tensor(c, 4), true,
                                c.value(5).toDouble(), c.value(6).toDouble());
    const int64_t none = 0;
    r.push_back(Array(ops_array_full(c.context(), HAL_TYPE_U8, 1, &none, 0)));
    return r;
}

// g, x, weight, running_mean, running_var, save_mean, save_rstd, train, eps, mask, and of
// batch_norm_with_update its buffer
Results batch_norm_backward(const Call &c)
{
    const Batch g = batch_of(c, 0), b = batch_of(c, 1);
    const bool trains = c.flag(7);
    const double n = (double)b.count;
    const auto mask = mask_of(c, 9);
    const Array mean = reshape(trains ? c[5] : c[3], b.per_channel);
    const Array rstd =
        reshape(trains ? c[6] : unary(OPS_RSQRT, c[4] + c.value(8).toDouble()), b.per_channel);
    // Two kernels read them: to compute them again takes fewer bytes than to store them.
    const auto values = [&] { return (b.x - mean) * rstd; };
    const Array total = channel_sum(g.x), along = channel_sum(g.x * values());
    Results r(3);
    if (mask[0]) {
        Array slope = g.x;
        if (trains) {
            slope = slope - reshape(total / n, b.per_channel) -
                    values() * reshape(along / n, b.per_channel);
        }
        slope = slope * rstd;
        slope = c.has(2) ? slope * reshape(c[2], b.per_channel) : slope;
        r[0] = like_operand(c, 1, slope);
    }
    r[1] = mask[1] ? along : Array();
    r[2] = mask[2] ? total : Array();
    return r;
}

// ---- Cells of recurrent networks ----

// Gate `index` of x [n, gates * width], or x itself, as [n, copies, width]. Formulas of such views are
// of one shape, so that the values of all gates come from one kernel without slices and joints.
Array gate(const Array &x, int64_t index, int64_t width, int64_t copies)
{
    if (x.rank() != 2 || width < 1 || x.length(1) % width) {
        throw Unsupported("gates of another width");
    }
    const int64_t n = x.length(0), count = x.length(1) / width;
    const Array one = slice(reshape(x, Shape{n, count, width}), 1, index, 1);
    return copies == 1 ? one : broadcast(one, Shape{n, copies, width});
}

// The first formula for gate 0, the second for gate 1, and so on: [n, gates * width].
Array by_gate(const Call &c, std::initializer_list<Array> formulas)
{
    const int64_t count = (int64_t)formulas.size();
    Array result = *(formulas.end() - 1);
    for (int64_t k = count - 2; k >= 0; k--) {
        result = where(gate_mask(c.device(), count, k), formulas.begin()[k], result);
    }
    return reshape(result, Shape{result.length(0), result.count() / result.length(0)});
}

Array sigmoid_slope(const Array &y)
{
    return y * (1 - y);
}
Array tanh_slope(const Array &y)
{
    return 1 - square(y);
}

Results lstm_cell(const Call &c) // input gates, hidden gates, cx, input bias, hidden bias
{
    const Tensor &cx = c.tensor(2);
    const int64_t n = cx.size(0), h = cx.size(1);
    Array gates = c[0] + c[1];
    if (c.has(3)) {
        gates = gates + c[3] + c[4];
    }
    const Array x = reshape(gates, Shape{n, 4, h});
    const Array values =
        reshape(where(gate_mask(c.device(), 4, 2), tanh_of(x), sigmoid(x)), Shape{n, 4 * h});
    // Of the sums, not of `values`: those are computed for a gradient only, and by a kernel before.
    const auto sums = [&](int64_t k) { return slice(x, 1, k, 1); };
    const Array i = sigmoid(sums(0)), f = sigmoid(sums(1)), g = tanh_of(sums(2)),
                o = sigmoid(sums(3));
    const Array cy = f * gate(c[2], 0, h, 1) + i * g;
    return {reshape(o * tanh_of(cy), cx.sizes()), reshape(cy, cx.sizes()), values};
}

Results lstm_cell_backward(const Call &c) // grad_hy, grad_cy, cx, cy, values, has_bias
{
    const Shape shape(c.tensor(2).sizes());
    const int64_t h = c.tensor(2).size(1);
    const Array w = c[4], t = tanh_of(c[3]);
    const auto own = [&](int64_t k) { return reshape(gate(w, k, h, 1), shape); };
    const Array gh = c.has(0) ? c[0] : t * 0, along = gh * own(3) * tanh_slope(t);
    const Array gc = c.has(1) ? along + c[1] : along, go = gh * t;
    const auto all = [&](const Array &x) { return gate(x, 0, h, 4); };
    const Array i = gate(w, 0, h, 4), f = gate(w, 1, h, 4), g = gate(w, 2, h, 4);
    const Array gates =
        by_gate(c, {all(gc) * g * sigmoid_slope(i), all(gc) * all(c[2]) * sigmoid_slope(f),
                    all(gc) * i * tanh_slope(g), all(go) * sigmoid_slope(gate(w, 3, h, 4))});
    return {gates, gc * own(1), c.flag(5) ? sum(gates, 0) : Array()};
}

// The gates of a cell for `copies` of each element.
struct GruGates {
    Array r, z, n, hx, hn;
};

GruGates gru_gates(const Call &c, const Array &x, const Array &y, int64_t copies)
{
    const int64_t h = c.tensor(2).size(1);
    GruGates s;
    s.hx = gate(c[2], 0, h, copies);
    s.hn = gate(y, 2, h, copies);
    s.r = sigmoid(gate(x, 0, h, copies) + gate(y, 0, h, copies));
    s.z = sigmoid(gate(x, 1, h, copies) + gate(y, 1, h, copies));
    s.n = tanh_of(gate(x, 2, h, copies) + s.r * s.hn);
    return s;
}

Results gru_cell(const Call &c) // input gates, hidden gates, hx, input bias, hidden bias
{
    const Array x = c.has(3) ? c[0] + c[3] : c[0], y = c.has(4) ? c[1] + c[4] : c[1];
    const GruGates s = gru_gates(c, x, y, 1), all = gru_gates(c, x, y, 5);
    return {reshape(s.n + s.z * (s.hx - s.n), c.tensor(2).sizes()),
            by_gate(c, {all.r, all.z, all.n, all.hx, all.hn})};
}

Results gru_cell_backward(const Call &c) // grad_hy, workspace, has_bias
{
    const int64_t h = c.tensor(0).size(1);
    const Array own = c[0], w = c[1], g = gate(own, 0, h, 3);
    const Array r = gate(w, 0, h, 3), z = gate(w, 1, h, 3), n = gate(w, 2, h, 3);
    const Array hx = gate(w, 3, h, 3), hn = gate(w, 4, h, 3);
    const Array gz = g * (hx - n) * sigmoid_slope(z), gn = g * (1 - z) * tanh_slope(n);
    const Array gr = gn * hn * sigmoid_slope(r);
    const Array inputs = by_gate(c, {gr, gz, gn}), hidden = by_gate(c, {gr, gz, gn * r});
    const Array gh = own * reshape(gate(w, 1, h, 1), c.tensor(0).sizes());
    const bool has_bias = c.flag(2);
    return {inputs, hidden, gh, has_bias ? sum(inputs, 0) : Array(),
            has_bias ? sum(hidden, 0) : Array()};
}

// ---- Weight normalisation ----

// Sums of all but one axis, the first or the last: PyTorch composes others.
Array sum_of_others(const Call &c, const Array &x, size_t dim)
{
    const int64_t rank = x.rank(), axis = at::maybe_wrap_dim(c.integer(dim), rank);
    if (rank < 2 || (axis != 0 && axis != rank - 1)) {
        throw Unsupported("weights that are normalised along an axis in the middle");
    }
    const int64_t kept = x.length(axis), others = x.count() / kept;
    const Array sums = axis == 0 ? sum(reshape(x, Shape{kept, others}), 1)
                                 : sum(reshape(x, Shape{others, kept}), 0);
    Shape shape((size_t)rank, 1);
    shape[(size_t)axis] = kept;
    return reshape(sums, shape);
}

Results weight_norm(const Call &c) // v, g, dim
{
    const Array v = c[0];
    require_elements(v);
    const Array norms = unary(OPS_SQRT, sum_of_others(c, square(v), 2));
    return {v * (c[1] / norms), norms};
}

Results weight_norm_backward(const Call &c) // gradient, v, g, norms, dim
{
    const Array gradient = c[0], v = c[1], norms = c[3];
    require_elements(v);
    const Array along = sum_of_others(c, gradient * v, 4) / norms;
    return {(gradient - v * (along / norms)) * (c[2] / norms), along};
}

const Operator TABLE[] = {
    {"_weight_norm_interface", Types::COMMON, weight_norm},
    {"_weight_norm_interface_backward", Types::COMMON, weight_norm_backward},
    {"native_layer_norm", Types::COMMON, layer_norm},
    {"native_layer_norm_backward", Types::COMMON, layer_norm_backward},
    {"native_group_norm", Types::COMMON, group_norm},
    {"native_group_norm_backward", Types::COMMON, group_norm_backward},
    {"native_batch_norm _native_batch_norm_legit", Types::COMMON, batch_norm},
    {"_native_batch_norm_legit.no_stats", Types::COMMON, batch_norm_without_running},
    {"_batch_norm_with_update", Types::COMMON, batch_norm_with_update},
    {"native_batch_norm_backward batch_norm_backward", Types::COMMON, batch_norm_backward},
    {"_thnn_fused_lstm_cell", Types::COMMON, lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl", Types::COMMON, lstm_cell_backward},
    {"_thnn_fused_gru_cell", Types::COMMON, gru_cell},
    {"_thnn_fused_gru_cell_backward", Types::COMMON, gru_cell_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
