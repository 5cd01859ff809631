// Moving elements: by index, joining, repeating, and tensors made of indices.
#include <cmath>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ScatterGatherChecks.h>
#include <ATen/native/TypeProperties.h>

#include "call.h"
#include "view.h"
#include "index_check.h"

namespace halyard
{
namespace
{

// A scalar has one element along an axis.
Array with_axis(const Array &x)
{
    return x.rank() ? x : flatten(x);
}

at::DimVector shape_of(const Array &x)
{
    at::DimVector shape;
    for (int64_t i = 0; i < x.rank(); i++) {
        shape.push_back(x.length(i));
    }
    return shape;
}

// A result in the shape of the first operand.
Array as_first(const Call &c, const Array &x)
{
    return c.tensor(0).dim() ? x : reshape(x, at::DimVector());
}

int64_t axis_of(const Call &c, size_t dim, const Array &x)
{
    if (x.rank() == 0) {
        throw Unsupported("an axis of a scalar");
    }
    return at::maybe_wrap_dim(c.integer(dim), x.rank());
}

// Indices from the end count as PyTorch's: those of the index operator may be
// negative.
Array from_start(const Array &indices, int64_t length)
{
    return where(less(indices, 0), indices + (double)length, indices);
}

Array indices_of(const Call &c, size_t index)
{
    const Array i = c.tensor(index).numel() ? c.plain(index) : c.cast_to(index, HAL_TYPE_I64);
    if (i.type() != HAL_TYPE_I64 && i.type() != HAL_TYPE_I32) {
        throw Unsupported("indices of another type");
    }
    return i;
}

// The same, tested to be within an axis.
Array checked_indices(const Call &c, size_t index, int64_t length, int64_t low = 0)
{
    const Array i = indices_of(c, index);
    require_indices(i, c.device(), length, low);
    return i;
}

// ---- Reading ----

// An out= tensor at `index` has the type of the first operand.
void require_result_type(const Call &c, size_t index)
{
    if (c.count() > index && c.value(index).isTensor()) {
        TORCH_CHECK(c.tensor(index).scalar_type() == c.tensor(0).scalar_type(),
                    "Expected out tensor to have dtype ", c.tensor(0).scalar_type(), ", but got ",
                    c.tensor(index).scalar_type(), " instead");
    }
}

// Indices are a vector, or one. The processor has the messages for others.
void require_vector(const Tensor &indices)
{
    if (indices.dim() > 1) {
        throw Unsupported("indices of several axes");
    }
}

// There is an index for each row of the source, whose other axes have the lengths of x.
void require_rows(const Array &x, const Array &source, int64_t axis, const Tensor &indices)
{
    require_vector(indices);
    bool fits = source.type() == x.type() && source.rank() == x.rank();
    for (int64_t k = 0; fits && k < x.rank(); k++) {
        fits = source.length(k) == (k == axis ? indices.numel() : x.length(k));
    }
    if (!fits) {
        throw Unsupported("a source of another type or shape");
    }
}

Results index_select(const Call &c)
{
    const Array x = with_axis(c.plain(0));
    require_vector(c.tensor(2));
    const int64_t axis = axis_of(c, 1, x);
    const Array i = checked_indices(c, 2, x.length(axis));
    return {as_first(c, Array(ops_array_gather((int32_t)axis, x, flatten(i))))};
}

// x reduced to the indices' shape except at the axis.
Array fitted(Array x, const Array &indices, int64_t axis)
{
    for (int64_t k = 0; k < x.rank(); k++) {
        if (k != axis && indices.length(k) < x.length(k)) {
            x = slice(x, k, 0, indices.length(k));
        }
    }
    return x;
}

Results gather(const Call &c)
{
    at::native::gather_shape_check(c.tensor(0), c.integer(1), c.tensor(2));
    require_result_type(c, 4);
    if (c.count() > 4) { // PyTorch looks again at a view that has grown
        at::native::resize_output(c.tensor(4), c.tensor(2).sizes());
        at::assert_no_overlap(c.tensor(4), c.tensor(0));
        at::assert_no_overlap(c.tensor(4), c.tensor(2));
    }
    const Array x = with_axis(c.plain(0));
    const int64_t axis = axis_of(c, 1, x);
    const Array i = with_axis(checked_indices(c, 2, x.length(axis)));
    if (i.rank() != x.rank()) {
        throw Unsupported("indices of another rank");
    }
    if (i.count() == 0) {
        return {Array(ops_array_full(c.context(), x.type(), (uint32_t)c.tensor(2).dim(),
                                     c.tensor(2).sizes().data(), 0))};
    }
    const Array taken(ops_array_take_along_axis((int32_t)axis, fitted(x, i, axis), i));
    return {reshape(taken, c.tensor(2).sizes())};
}

Results embedding(const Call &c)
{
    const Array w = c.plain(0);
    if (w.rank() != 2) {
        throw Unsupported("weights of another rank");
    }
    const Array i = checked_indices(c, 1, w.length(0));
    at::DimVector shape(c.tensor(1).sizes());
    shape.push_back(w.length(1));
    return {reshape(Array(ops_array_gather(0, w, flatten(i))), shape)};
}

// The rows of g added up at the indices' rows of zeros.
Array scattered_rows(const Array &g, const Array &indices, int64_t rows)
{
    const int64_t n = indices.count(), width = n ? g.count() / n : 0;
    const at::DimVector shape{rows, width}, one{n, 1}, all{n, width};
    const Array zeros(ops_array_full(g.context(), g.type(), 2, shape.data(), 0));
    if (n == 0 || width == 0) {
        return zeros;
    }
    const Array spread = broadcast(reshape(indices, one), all);
    return Array(ops_array_scatter(OPS_SCATTER_ADD, 0, zeros, spread, reshape(g, all)));
}

Results embedding_backward(const Call &c) // grad, indices, rows, padding, by frequency
{
    if (c.flag(4)) {
        throw Unsupported("gradients scaled by frequency");
    }
    Array i = flatten(indices_of(c, 1));
    const int64_t padding = c.integer(3);
    if (padding >= 0) {
        i = where(equal(i, (double)padding), -1.0, i);
    }
    return {scattered_rows(c.plain(0), i, c.integer(2))};
}

// ---- Writing ----

// x with its first elements along each axis replaced by `part`.
Array with_first(const Array &x, const Array &part)
{
    if (part.count() == x.count()) {
        return part;
    }
    ops_tensor view;
    check(ops_array_describe(x, &view));
    for (int64_t k = 0; k < x.rank(); k++) {
        check(ops_tensor_slice(&view, (int32_t)k, 0, part.length(k), 1, &view));
    }
    return Array(ops_array_update(x, &view, part));
}

Results scatter(const Call &c, ops_scatter_kind kind)
{
    at::native::scatter_shape_check(c.tensor(0), c.integer(1), c.tensor(2),
                                    c.value(3).isTensor() ? std::optional<Tensor>(c.tensor(3))
                                                          : std::nullopt);
    const Array x = c.plain(0);
    const int64_t axis = axis_of(c, 1, x);
    const Array i = checked_indices(c, 2, x.length(axis));
    if (i.rank() != x.rank()) {
        throw Unsupported("indices of another rank");
    }
    if (i.count() == 0) {
        return {x};
    }
    Array updates = c.is_number(3) && !c.value(3).isTensor()
                        ? scalar(c.context(), x.type(), c.number(3))
                        : c.plain(3);
    if (updates.type() != x.type()) {
        throw Unsupported("updates of another type");
    }
    if (updates.rank()) {
        for (int64_t k = 0; k < updates.rank(); k++) {
            if (updates.length(k) > i.length(k)) {
                updates = slice(updates, k, 0, i.length(k));
            }
        }
    }
    at::DimVector shape(c.tensor(2).sizes());
    updates = broadcast(updates, shape);
    const Array part = fitted(x, i, axis);
    return {with_first(x, Array(ops_array_scatter(kind, (int32_t)axis, part, i, updates)))};
}

// The reductions of scatter_reduce: what an element that takes part begins
// with.
struct Reduction {
    ops_scatter_kind kind;
    double start;
};

Reduction reduction_of(std::string_view name)
{
    if (name == "sum" || name == "add" || name == "mean") {
        return {OPS_SCATTER_ADD, 0};
    }
    if (name == "prod" || name == "multiply") {
        return {OPS_SCATTER_MULTIPLY, 1};
    }
    return name == "amax" ? Reduction{OPS_SCATTER_MAX, -INFINITY}
                          : Reduction{OPS_SCATTER_MIN, INFINITY};
}

// x with `source` reduced into it at `indices`, all of one shape but for the
// axis. With keeps_own the elements of x take part.
Array reduced_into(const Array &own, int64_t axis, const Array &indices, const Array &source,
                   std::string_view name, bool keeps_own)
{
    const Reduction r = reduction_of(name);
    const int32_t a = (int32_t)axis;
    const at::DimVector shape = shape_of(indices);
    const auto spread = [&](double value) { return broadcast(scalar_like(own, value), shape); };
    Array x = own;
    if (!keeps_own) {
        x = Array(ops_array_scatter(OPS_SCATTER_ASSIGN, a, x, indices, spread(r.start)));
    }
    Array result(ops_array_scatter(r.kind, a, x, indices, source));
    if (name == "mean") {
        const at::DimVector all = shape_of(x);
        const Array ones(
            ops_array_full(x.context(), x.type(), (uint32_t)x.rank(), all.data(), keeps_own));
        const Array count(ops_array_scatter(OPS_SCATTER_ADD, a, ones, indices, spread(1)));
        result = result / maximum(count, 1.0);
    }
    return result;
}

Results scatter_reduce(const Call &c) // self, dim, index, source, reduce, include_self
{
    const Array own = c.plain(0), x = with_axis(own);
    const Array i = with_axis(indices_of(c, 2));
    Array source = c.is_number(3) ? scalar(c.context(), x.type(), c.number(3)) : c.plain(3);
    if (i.count() == 0) {
        return {own};
    }
    const int64_t axis = axis_of(c, 1, x);
    require_indices(i, c.device(), x.length(axis));
    if (i.rank() != x.rank() || !hal_type_is_float(x.type()) || source.type() != x.type()) {
        throw Unsupported("indices of another rank, or values of integers");
    }
    for (int64_t k = 0; k < source.rank(); k++) {
        if (source.length(k) > i.length(k)) {
            source = slice(source, k, 0, i.length(k));
        }
    }
    const bool keeps_own = c.count() < 6 || !c.value(5).isBool() || c.flag(5);
    const Array part = reduced_into(fitted(x, i, axis), axis, i, broadcast(source, shape_of(i)),
                                    c.value(4).toStringView(), keeps_own);
    return {reshape(with_first(x, part), c.tensor(0).sizes())};
}

Results index_reduce(const Call &c) // self, dim, index, source, reduce, include_self
{
    const Array x = with_axis(c.plain(0)), source = with_axis(c.plain(3));
    const Array i = flatten(indices_of(c, 2));
    if (i.count() == 0) {
        return {c.plain(0)};
    }
    const int64_t axis = axis_of(c, 1, x);
    require_rows(x, source, axis, c.tensor(2));
    require_indices(i, c.device(), x.length(axis));
    if (!hal_type_is_float(x.type())) {
        throw Unsupported("values of integers");
    }
    at::DimVector one((size_t)x.rank(), 1), all(shape_of(source));
    one[(size_t)axis] = i.count();
    return {as_first(c, reduced_into(x, axis, broadcast(reshape(i, one), all), source,
                                     c.value(4).toStringView(), c.flag(5)))};
}

Results take(const Call &c) // self, indices of the flattened elements
{
    const Array x = flatten(c.plain(0));
    const Array i = checked_indices(c, 1, x.count(), -x.count());
    if (x.count() == 0 || i.count() == 0) {
        throw Unsupported("nothing to take");
    }
    const Array places = flatten(from_start(i, x.count()));
    return {reshape(Array(ops_array_gather(0, x, places)), c.tensor(1).sizes())};
}

Results put(const Call &c) // self, indices of the flattened elements, source,
                           // accumulate
{
    const Array own = c.plain(0), x = flatten(own);
    const Array i = checked_indices(c, 1, x.count(), -x.count());
    if (i.count() == 0 || x.count() == 0) {
        return {own};
    }
    const Array source = c.plain(2);
    if (source.type() != x.type() || source.count() != i.count()) {
        throw Unsupported("a source of another type or size");
    }
    const ops_scatter_kind kind = c.flag(3) ? OPS_SCATTER_ADD : OPS_SCATTER_ASSIGN;
    return {reshape(
        Array(ops_array_scatter(kind, 0, x, flatten(from_start(i, x.count())), flatten(source))),
        c.tensor(0).sizes())};
}

// The elements of the source, in order, where the mask is true.
Results masked_scatter(const Call &c) // self, mask, source
{
    TORCH_CHECK(c.tensor(1).scalar_type() == at::kBool,
                "masked_scatter_ only supports boolean masks, but got mask with dtype ",
                c.tensor(1).scalar_type());
    const Array x = c.plain(0), source = flatten(c.plain(2));
    if (source.type() != x.type() || source.count() == 0 || x.count() == 0) {
        throw Unsupported("a source of another type, or nothing");
    }
    const at::DimVector shape = shape_of(x);
    const Array mask = broadcast(c.cast_to(1, HAL_TYPE_BOOL), shape);
    const Array before(ops_array_scan(OPS_SCAN_SUM, 0, cast(flatten(mask), HAL_TYPE_I64)));
    const Array picked(ops_array_gather(0, source, before - 1));
    return {where(mask, reshape(picked, shape), x)};
}

Results index_add(const Call &c) // self, dim, index, source, alpha
{
    const Array x = with_axis(c.plain(0));
    const int64_t axis = axis_of(c, 1, x);
    Array source = with_axis(c.plain(3));
    require_rows(x, source, axis, c.tensor(2));
    const Array i = flatten(checked_indices(c, 2, x.length(axis)));
    const double alpha = c.number_or(4, 1);
    if (i.count() == 0 || x.type() == HAL_TYPE_BOOL) {
        throw Unsupported("a sum of nothing, or of truth values");
    }
    if (alpha != 1) {
        source = source * alpha;
    }
    at::DimVector one((size_t)x.rank(), 1), all(shape_of(source));
    one[(size_t)axis] = i.count();
    return {as_first(c, Array(ops_array_scatter(OPS_SCATTER_ADD, (int32_t)axis, x,
                                                broadcast(reshape(i, one), all), source)))};
}

Results index_fill(const Call &c) // self, dim, index, value
{
    const Array x = with_axis(c.plain(0));
    const int64_t axis = axis_of(c, 1, x);
    require_vector(c.tensor(2));
    const Array i = flatten(checked_indices(c, 2, x.length(axis), -x.length(axis)));
    if (i.count() == 0 || x.count() == 0) {
        return {c.plain(0)};
    }
    at::DimVector one((size_t)x.rank(), 1), all(shape_of(x));
    one[(size_t)axis] = all[(size_t)axis] = i.count();
    const Array places = broadcast(reshape(from_start(i, x.length(axis)), one), all);
    const Array value = broadcast(scalar(c.context(), x.type(), c.number(3)), all);
    return {
        as_first(c, Array(ops_array_scatter(OPS_SCATTER_ASSIGN, (int32_t)axis, x, places, value)))};
}

Results index_copy(const Call &c) // self, dim, index, source
{
    const Array x = with_axis(c.plain(0)), source = with_axis(c.plain(3));
    const int64_t axis = axis_of(c, 1, x);
    require_rows(x, source, axis, c.tensor(2));
    const Array i = flatten(checked_indices(c, 2, x.length(axis)));
    if (i.count() == 0) {
        throw Unsupported("a copy of nothing");
    }
    at::DimVector one((size_t)x.rank(), 1), all(shape_of(source));
    one[(size_t)axis] = i.count();
    return {as_first(c, Array(ops_array_scatter(OPS_SCATTER_ASSIGN, (int32_t)axis, x,
                                                broadcast(reshape(i, one), all), source)))};
}

// ---- Masks: the places where they are true, whose number has to be read ----

// The places in the flattened mask, I32 of rank 1, in ascending order.
Array true_places(const Array &mask)
{
    const Array ones = cast(flatten(cast(mask, HAL_TYPE_BOOL)), HAL_TYPE_I32);
    int32_t count = 0;
    if (ones.count()) {
        check(ops_array_read(reduce(OPS_REDUCE_SUM, ones, 0, false), sizeof count, &count));
    }
    const int64_t length = count;
    if (length == 0) {
        return Array(ops_array_full(mask.context(), HAL_TYPE_I32, 1, &length, 0));
    }
    return Array(ops_array_argsort(0, 1, length,
                                   ones)); // stable: ones first, in their order
}

// The index along each axis of the mask, I64 of rank 1.
std::vector<Array> true_indices(const Array &mask)
{
    Array rest = cast(true_places(mask), HAL_TYPE_I64);
    std::vector<Array> indices((size_t)mask.rank());
    for (size_t axis = indices.size(); axis-- > 0;) {
        const double length = (double)std::max<int64_t>(mask.length((int64_t)axis), 1);
        const Array above = rest / length;
        indices[axis] = rest - above * length;
        rest = above;
    }
    return indices;
}

Results nonzero(const Call &c)
{
    const Array x = c.plain(0);
    const std::vector<Array> indices = true_indices(x);
    const int64_t count = indices.empty() ? true_places(x).count() : indices[0].count();
    const at::DimVector shape{count, x.rank()};
    if (count == 0 || indices.empty()) {
        return {Array(ops_array_full(c.context(), HAL_TYPE_I64, 2, shape.data(), 0))};
    }
    std::vector<Array> columns;
    std::vector<ops_array *> parts;
    for (const Array &index : indices) {
        columns.push_back(reshape(index, at::DimVector{count, 1}));
        parts.push_back(columns.back());
    }
    return {Array(ops_array_concatenate(1, parts.data(), (uint32_t)parts.size()))};
}

Results masked_select(const Call &c)
{
    const at::DimVector shape = at::infer_size_dimvector(c.tensor(0).sizes(), c.tensor(1).sizes());
    const Array x = flatten(broadcast(c.plain(0), shape));
    const Array places = true_places(broadcast(c.plain(1), shape));
    if (places.count() == 0) {
        const int64_t none = 0;
        return {Array(ops_array_full(c.context(), x.type(), 1, &none, 0))};
    }
    return {Array(ops_array_gather(0, x, places))};
}

// ---- The index operator: x[i, j, ...] with tensors of indices ----

// x with the indexed axes in front, as one axis of rows, and the number of the
// row of each index.
struct Indexed {
    Array rows;    // [rows, rest...] flattened to [rows, width]
    Array numbers; // of rows, rank 1
    at::DimVector index_shape;
    at::DimVector rest_shape;
    std::vector<int32_t> order; // of x's axes
    at::DimVector moved_shape;  // x's shape in that order
    int64_t place = 0;          // of the index's axes in the result
};

Indexed indexed(const Call &c, const Array &x, size_t list)
{
    const c10::List<c10::IValue> entries = c.value(list).toList();
    std::vector<int64_t> axes;
    std::vector<Array> indices;
    Indexed result;
    at::DimVector &shape = result.index_shape;
    int64_t axes_before = 0; // by which a mask of several axes moves the entries after it
    for (size_t k = 0; k < entries.size(); k++) {
        const c10::IValue entry = entries.get(k);
        if (entry.isNone() || !entry.toTensor().defined()) {
            continue;
        }
        const Tensor &tensor = entry.toTensor();
        if (!is_ours(tensor)) {
            throw Unsupported("indices on the processor");
        }
        std::vector<Array> found;
        if (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte) {
            found = true_indices(array_of(tensor));
            if (found.empty()) {
                throw Unsupported("a mask of no axes");
            }
        } else {
            found.push_back(cast(array_of(tensor), HAL_TYPE_I64));
        }
        for (size_t m = 0; m < found.size(); m++) {
            const int64_t axis = axes_before + (int64_t)(k + m);
            TORCH_CHECK_INDEX(axis < x.rank(), "too many indices for tensor of dimension ",
                              x.rank());
            if (found.size() > 1 || tensor.scalar_type() == at::kBool) {
                TORCH_CHECK_INDEX(x.length(axis) == tensor.size((int64_t)m),
                                  "The shape of the mask ", tensor.sizes(), " at index ", m,
                                  " does not match the shape of the indexed tensor at index ",
                                  axis);
            }
            axes.push_back(axis);
            indices.push_back(found[m]);
            const at::DimVector one{found[m].count()};
            const at::IntArrayRef sizes = found.size() > 1 || tensor.scalar_type() == at::kBool
                                              ? at::IntArrayRef(one)
                                              : tensor.sizes();
            shape =
                axes.size() == 1 ? at::DimVector(sizes) : at::infer_size_dimvector(shape, sizes);
        }
        axes_before += (int64_t)found.size() - 1;
    }
    if (axes.empty() || x.count() == 0) {
        throw Unsupported("no indices, or nothing to index");
    }
    const bool adjacent = axes.back() - axes.front() + 1 == (int64_t)axes.size();
    result.place = adjacent ? axes.front() : 0;
    int64_t rows = 1;
    Array number;
    for (size_t k = 0; k < axes.size(); k++) {
        const int64_t length = x.length(axes[k]);
        require_indices(indices[k], c.device(), length, -length);
        const Array i = from_start(indices[k], length);
        number = k == 0 ? i : number * (double)length + i;
        rows *= length;
        result.order.push_back((int32_t)axes[k]);
    }
    for (int64_t k = 0; k < x.rank(); k++) {
        if (std::find(axes.begin(), axes.end(), k) == axes.end()) {
            result.order.push_back((int32_t)k);
            result.rest_shape.push_back(x.length(k));
        }
    }
    for (const int32_t axis : result.order) {
        result.moved_shape.push_back(x.length(axis));
    }
    result.numbers = flatten(broadcast(number, shape));
    result.rows = reshape(Array(ops_array_permute(x, result.order.data())),
                          at::DimVector{rows, x.count() / rows});
    return result;
}

// The order that moves the first `count` of `rank` axes to `place`.
std::vector<int32_t> move_axes(size_t count, size_t rank, size_t place)
{
    std::vector<int32_t> order;
    for (size_t k = 0; k < place; k++) {
        order.push_back((int32_t)(count + k));
    }
    for (size_t k = 0; k < count; k++) {
        order.push_back((int32_t)k);
    }
    for (size_t k = count + place; k < rank; k++) {
        order.push_back((int32_t)k);
    }
    return order;
}

Results index(const Call &c)
{
    const Array x = c.plain(0);
    const Indexed i = indexed(c, x, 1);
    at::DimVector shape = i.index_shape;
    shape.append(i.rest_shape.begin(), i.rest_shape.end());
    Array picked =
        i.numbers.count()
            ? reshape(Array(ops_array_gather(0, i.rows, i.numbers)), shape)
            : Array(ops_array_full(c.context(), x.type(), (uint32_t)shape.size(), shape.data(), 0));
    if (i.place) {
        const auto order = move_axes(i.index_shape.size(), shape.size(), (size_t)i.place);
        picked = Array(ops_array_permute(picked, order.data()));
    }
    return {picked};
}

// x[mask] = number: a choice, without reading how many there are.
Array masked_number(const Call &c, const Array &x)
{
    const c10::List<c10::IValue> entries = c.value(1).toList();
    if (entries.size() != 1 || !entries.get(0).isTensor() || c.tensor(2).numel() != 1 ||
        (c.value(3).isBool() && c.flag(3))) {
        return Array();
    }
    const Tensor mask = entries.get(0).toTensor();
    if (!mask.defined() || mask.scalar_type() != at::kBool || !is_ours(mask) ||
        mask.dim() > x.rank() || c.tensor(2).scalar_type() != c.tensor(0).scalar_type() ||
        mask.sizes() != c.tensor(0).sizes().slice(0, (size_t)mask.dim())) {
        return Array();
    }
    at::DimVector shape(mask.sizes());
    shape.resize((size_t)x.rank(), 1);
    const Array value = c.is_number(2) ? scalar(c.context(), x.type(), c.number(2))
                                       : reshape(c.plain(2), at::DimVector());
    return where(reshape(array_of(mask), shape), value, x);
}

Results index_put(const Call &c) // self, indices, values, accumulate
{
    const Array x = c.plain(0);
    if (const Array chosen = masked_number(c, x); chosen) {
        return {chosen};
    }
    const Indexed i = indexed(c, x, 1);
    const size_t index_rank = i.index_shape.size();
    at::DimVector shape(i.rest_shape.begin(), i.rest_shape.begin() + i.place);
    shape.append(i.index_shape.begin(), i.index_shape.end());
    shape.append(i.rest_shape.begin() + i.place, i.rest_shape.end());
    if (i.numbers.count() == 0) {
        return {x};
    }
    const Array value = c.is_number(2) ? scalar(c.context(), x.type(), c.number(2)) : c.plain(2);
    const bool adds = c.value(3).isBool() && c.flag(3);
    if (value.type() != x.type() || (adds && x.type() == HAL_TYPE_BOOL)) {
        throw Unsupported("values of another type");
    }
    Array updates = broadcast(value, shape);
    if (i.place) { // the axes of the index in front
        std::vector<int32_t> order;
        for (size_t k = 0; k < index_rank; k++) {
            order.push_back((int32_t)(k + (size_t)i.place));
        }
        for (size_t k = 0; k < shape.size(); k++) {
            if (k < (size_t)i.place || k >= (size_t)i.place + index_rank) {
                order.push_back((int32_t)k);
            }
        }
        updates = Array(ops_array_permute(updates, order.data()));
    }
    const int64_t n = i.numbers.count(), width = i.rows.length(1);
    const at::DimVector one{n, 1}, all{n, width};
    Array result(ops_array_scatter(adds ? OPS_SCATTER_ADD : OPS_SCATTER_ASSIGN, 0, i.rows,
                                   broadcast(reshape(i.numbers, one), all), reshape(updates, all)));
    std::vector<int32_t> back(i.order.size());
    for (size_t k = 0; k < i.order.size(); k++) {
        back[(size_t)i.order[k]] = (int32_t)k;
    }
    return {Array(ops_array_permute(reshape(result, i.moved_shape), back.data()))};
}

// As PyTorch, which fills under a single mask with a number that it reads before, and else refuses
// values and indices that share memory with what is written.
Results index_put_in_place(const Call &c)
{
    c10::SmallVector<Tensor, 4> indices;
    for (const c10::IValue &entry : c.value(1).toListRef()) {
        if (entry.isTensor() && entry.toTensor().defined()) {
            indices.push_back(entry.toTensor());
        }
    }
    const bool adds = c.value(3).isBool() && c.flag(3);
    const bool fills =
        indices.size() == 1 && c.tensor(2).numel() == 1 && !adds &&
        (indices[0].scalar_type() == at::kBool || indices[0].scalar_type() == at::kByte);
    if (fills) {
        at::assert_no_partial_overlap(c.tensor(0), indices[0]);
    } else {
        at::assert_no_overlap(c.tensor(0), c.tensor(2));
        for (const Tensor &index : indices) {
            at::assert_no_overlap(c.tensor(0), index);
        }
    }
    return index_put(c);
}

// ---- Joining and turning ----

// The tensors as one, if they follow one another in a storage, as the parts of a split do; an empty
// Array otherwise.
Array adjacent(const std::vector<Tensor> &tensors, int64_t axis, hal_type type)
{
    const Tensor &first = tensors[0];
    if (!is_plain(first) || !is_ours(first) || axis != 0 || first.dim() == 0) {
        return Array();
    }
    at::DimVector sizes(first.sizes());
    int64_t end = first.storage_offset();
    sizes[0] = 0;
    for (const Tensor &t : tensors) {
        if (!t.is_alias_of(first) || type_of(t.scalar_type()) != type || !t.is_contiguous() ||
            t.dim() != first.dim() || t.sizes().slice(1) != first.sizes().slice(1) ||
            t.storage_offset() != end || !is_plain(t) || t.numel() == 0) {
            return Array();
        }
        sizes[0] += t.size(0);
        end += t.numel();
    }
    Cell *cell = Cell::of(first);
    const Array view = view_of(cell, type, sizes, first.strides(), first.storage_offset());
    const bool is_whole = (size_t)view.count() * first.itemsize() == cell->bytes;
    return is_whole ? view : Array(ops_array_copy(view));
}

Results concatenate(const Call &c)
{
    const std::vector<Tensor> tensors = c.value(0).toTensorVector();
    const hal_type type = type_of(at::native::result_type(at::TensorList(tensors)));
    if (type == HAL_TYPE_NONE) {
        throw Unsupported("a type that Halyard lacks");
    }
    const Array together = adjacent(tensors, c.integer(1), type);
    if (together) {
        return {together};
    }
    std::vector<Array> arrays;
    std::vector<ops_array *> parts;
    const Tensor *first = nullptr;
    for (const Tensor &tensor : tensors) {
        if (tensor.dim() == 1 && tensor.size(0) == 0) {
            continue; // PyTorch joins it with anything
        }
        first = first ? first : &tensor;
        TORCH_CHECK(tensor.dim() == first->dim(),
                    "Tensors must have same number of dimensions: got ", first->dim(), " and ",
                    tensor.dim());
        arrays.push_back(cast(array_of(tensor), type));
    }
    if (!first || first->dim() == 0) {
        throw Unsupported("a joint of nothing");
    }
    for (const Array &array : arrays) {
        parts.push_back(array);
    }
    const int64_t axis = at::maybe_wrap_dim(c.integer(1), first->dim());
    return {Array(ops_array_concatenate((int32_t)axis, parts.data(), (uint32_t)parts.size()))};
}

Array reversed(const Array &x, int64_t axis)
{
    const int64_t n = x.length(axis);
    const Array places(ops_array_iota(x.context(), HAL_TYPE_I32, n, (double)(n - 1), -1));
    return Array(ops_array_gather((int32_t)axis, x, places));
}

Results flip(const Call &c)
{
    Array x = c.plain(0);
    const std::vector<int64_t> dims = c.integers(1);
    at::dim_list_to_bitset(dims, (size_t)x.rank()); // raises where a dim is twice in the list
    for (const int64_t dim : dims) {
        if (x.count() && x.rank()) {
            x = reversed(x, at::maybe_wrap_dim(dim, x.rank()));
        }
    }
    return {x};
}

Array rolled(const Array &x, int64_t axis, int64_t shift)
{
    const int64_t n = x.length(axis);
    shift = ((shift % n) + n) % n;
    if (shift == 0) {
        return x;
    }
    const Array last = slice(x, axis, n - shift, shift), first = slice(x, axis, 0, n - shift);
    ops_array *parts[2] = {last, first};
    return Array(ops_array_concatenate((int32_t)axis, parts, 2));
}

Results roll(const Call &c) // self, shifts, dims
{
    Array x = c.plain(0);
    const std::vector<int64_t> shifts = c.integers(1), dims = c.integers(2);
    TORCH_CHECK(!shifts.empty(), "`shifts` required");
    for (const int64_t dim : dims) {
        TORCH_CHECK_INDEX(c.tensor(0).dim() > 0, "Dimension specified as ", dim,
                          " but tensor has no dimensions");
    }
    const bool is_flat = dims.empty() && shifts.size() == 1;
    if (!is_flat && dims.size() != shifts.size()) {
        throw Unsupported("shifts and dims of different lengths");
    }
    if (x.count() == 0) {
        return {x};
    }
    if (is_flat) {
        return {reshape(rolled(flatten(x), 0, shifts[0]), c.tensor(0).sizes())};
    }
    for (size_t k = 0; k < dims.size(); k++) {
        x = rolled(x, at::maybe_wrap_dim(dims[k], x.rank()), shifts[k]);
    }
    return {x};
}

// ---- Tensors of numbers ----

Array numbers(ops_context *context, hal_type type, int64_t count, double start, double step)
{
    if (count == 0) {
        return Array(ops_array_full(context, type, 1, &count, 0));
    }
    return Array(ops_array_iota(context, type, count, start, step));
}

hal_type number_type(const Tensor &out)
{
    const hal_type type = type_of(out.scalar_type());
    if (type == HAL_TYPE_NONE || type == HAL_TYPE_BOOL) {
        throw Unsupported("numbers of this type");
    }
    return type;
}

Results arange(const Call &c) // start, end, step, out
{
    const double start = c.number(0), end = c.number(1), step = c.number(2);
    const Tensor &out = c.tensor(3);
    const hal_type type = number_type(out);
    const double size = std::ceil((end - start) / step);
    if (step == 0 || !(size >= 0) || size > 1e15 ||
        (hal_type_is_integer(type) && (start != std::trunc(start) || step != std::trunc(step)))) {
        throw Unsupported("bounds that do not fit");
    }
    return {numbers(c.context(), type, (int64_t)size, start, step)};
}

// Numbers at equal distances, in F32 for narrow floats: start, end, steps.
Array line(const Call &c, hal_type type)
{
    const double start = c.number(0), end = c.number(1);
    const int64_t steps = c.integer(2);
    const hal_type wide = hal_type_is_narrow_float(type) ? (hal_type)HAL_TYPE_F32 : type;
    if (!hal_type_is_float(type) || steps < 0) {
        throw Unsupported("a line of integers");
    }
    if (steps < 2) {
        return Array(ops_array_full(c.context(), wide, 1, &steps, start));
    }
    // From both ends, as PyTorch: the last one is exact.
    const double step = (end - start) / (double)(steps - 1);
    const Array i = numbers(c.context(), HAL_TYPE_I32, steps, 0, 1);
    const Array low = cast(i, wide) * step + start;
    const Array high = end - cast((double)(steps - 1) - i, wide) * step;
    return where(less(i, (double)(steps / 2)), low, high);
}

Results linspace(const Call &c) // start, end, steps, out
{
    const hal_type type = number_type(c.tensor(3));
    return {cast(line(c, type), type)};
}

Results logspace(const Call &c) // start, end, steps, base, out
{
    const hal_type type = number_type(c.tensor(4));
    return {cast(power(c.value(3).toDouble(), line(c, type)), type)};
}

const Operator TABLE[] = {
    {"index_select index_select.out", Types::PLAIN, index_select, Sharing::NONE},
    {"gather gather.out", Types::PLAIN, gather, Sharing::NONE},
    {"embedding", Types::PLAIN, embedding},
    {"embedding_dense_backward", Types::PLAIN, embedding_backward},
    {"scatter.src scatter_.src scatter.src_out scatter.value scatter_.value "
     "scatter.value_out",
     Types::PLAIN, [](const Call &c) { return scatter(c, OPS_SCATTER_ASSIGN); },
     Sharing::REST_NONE},
    {"scatter_add scatter_add_ scatter_add.out", Types::PLAIN,
     [](const Call &c) { return scatter(c, OPS_SCATTER_ADD); }, Sharing::REST_NONE},
    {"scatter_reduce.two scatter_reduce_.two scatter_reduce.two_out "
     "scatter.reduce scatter_.reduce "
     "scatter.reduce_out scatter.value_reduce scatter_.value_reduce "
     "scatter.value_reduce_out",
     Types::PLAIN, scatter_reduce, Sharing::REST_NONE},
    {"take take.out", Types::PLAIN, take, Sharing::NONE},
    {"index_add index_add_ index_add.out", Types::PLAIN, index_add, Sharing::REST_NONE},
    {"index_fill.int_Scalar index_fill_.int_Scalar index_fill.int_Tensor "
     "index_fill_.int_Tensor",
     Types::PLAIN, index_fill},
    {"index_copy index_copy_ index_copy.out", Types::PLAIN, index_copy, Sharing::REST_NONE},
    {"index.Tensor index.Tensor_out _unsafe_index.Tensor", Types::PLAIN, index, Sharing::NONE},
    {"index_put _unsafe_index_put", Types::PLAIN, index_put},
    {"index_put_ _index_put_impl_", Types::PLAIN, index_put_in_place},
    {"nonzero nonzero.out", Types::PLAIN, nonzero, Sharing::NONE},
    {"masked_select masked_select.out", Types::PLAIN, masked_select, Sharing::NONE},
    {"cat cat.out", Types::PLAIN, concatenate, Sharing::NONE},
    {"flip", Types::PLAIN, flip},
    {"roll", Types::PLAIN, roll},
    {"arange.start_out", Types::PLAIN, arange},
    {"linspace.out", Types::PLAIN, linspace},
    {"logspace.out", Types::PLAIN, logspace},
    {"index_reduce index_reduce_ index_reduce.out", Types::PLAIN, index_reduce, Sharing::REST_NONE},
    {"put_", Types::PLAIN, put, Sharing::REST_NONE},
    {"masked_scatter_", Types::PLAIN, masked_scatter},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
