// Matrix products and triangles.
#include <cmath>

#include <ATen/WrapDimUtils.h>

#include "call.h"

namespace halyard
{
namespace
{

void check_numbers(const Array &a, const Array &b)
{
    if (a.type() == HAL_TYPE_BOOL || a.type() != b.type()) {
        throw Unsupported("a product of bool or of two types");
    }
}

// A sum of no products is 0.
Array product_of_nothing(const Array &a, const Array &b)
{
    at::DimVector shape;
    for (int64_t i = 0; i < a.rank(); i++) {
        shape.push_back(i + 1 < a.rank() ? a.length(i) : b.length(i));
    }
    return Array(ops_array_full(a.context(), a.type(), (uint32_t)a.rank(), shape.data(), 0));
}

Array product(const Call &c, size_t a, size_t b)
{
    const Array x = c.plain(a), y = c.plain(b);
    check_numbers(x, y);
    return x.count() && y.count() ? matmul(x, y) : product_of_nothing(x, y);
}

// A factor of numbers of a type: of integers its whole part, as PyTorch has it.
double factor(const Call &c, size_t index, hal_type type)
{
    const double number = c.number(index);
    return hal_type_is_float(type) ? number : std::trunc(number);
}

// beta * c + alpha * p, in F32 of narrow floats; c is not read where beta is 0.
Array add_product(const Call &c, Array p, size_t beta, size_t alpha)
{
    const hal_type type = p.type();
    const double a = factor(c, alpha, type), b = factor(c, beta, type);
    if (b == 0) {
        return a == 1 ? p : p * a;
    }
    Array addend = c.plain(0);
    if (addend.type() != type) {
        throw Unsupported("an addend of another type");
    }
    if (a == 1 && b == 1) {
        return p + addend;
    }
    const hal_type wide = hal_type_is_narrow_float(type) ? (hal_type)HAL_TYPE_F32 : type;
    addend = cast(addend, wide);
    p = cast(p, wide);
    return cast((a == 1 ? p : p * a) + (b == 1 ? addend : addend * b), type);
}

// The rank of PyTorch's operator decides; its own messages name what does not fit.
void check_matrices(const Call &c, size_t a, size_t b, int64_t rank)
{
    const Tensor &x = c.tensor(a), &y = c.tensor(b);
    if (x.dim() != rank || y.dim() != rank || x.size(rank - 1) != y.size(rank - 2) ||
        (rank == 3 && x.size(0) != y.size(0))) {
        throw Unsupported("shapes that do not fit");
    }
}

Results mm(const Call &c)
{
    check_matrices(c, 0, 1, 2);
    return {product(c, 0, 1)};
}
// Sums of bytes have 32 bits.
Results int_mm(const Call &c)
{
    check_matrices(c, 0, 1, 2);
    const Array x = cast(c.plain(0), HAL_TYPE_I32), y = cast(c.plain(1), HAL_TYPE_I32);
    return {x.count() && y.count() ? matmul(x, y) : product_of_nothing(x, y)};
}
Results bmm(const Call &c)
{
    check_matrices(c, 0, 1, 3);
    return {product(c, 0, 1)};
}
template <int RANK> Results add_mm(const Call &c)
{
    check_matrices(c, 1, 2, RANK);
    const Array p = product(c, 1, 2);
    at::DimVector shape;
    for (int64_t i = 0; i < p.rank(); i++) {
        shape.push_back(p.length(i));
    }
    const Array sum = add_product(c, p, 3, 4);
    return {broadcast(sum, shape)};
}

Array as_column(const Array &x)
{
    return reshape(x, at::DimVector{x.count(), 1});
}

Results add_mv(const Call &c)
{
    const Array a = c.plain(1), x = c.plain(2);
    if (a.rank() != 2 || x.rank() != 1 || a.length(1) != x.length(0) || a.count() == 0) {
        throw Unsupported("shapes that do not fit");
    }
    check_numbers(a, x);
    return {broadcast(add_product(c, flatten(matmul(a, as_column(x))), 3, 4),
                      at::DimVector{a.length(0)})};
}

Results add_outer(const Call &c) // c, x, y, beta, alpha
{
    const bool is_float = hal_type_is_float(c.common());
    if (c.tensor(1).dim() != 1 || c.tensor(2).dim() != 1 || c.common() == HAL_TYPE_BOOL ||
        (!is_float &&
         !(c.value(3).toScalar().isIntegral(false) && c.value(4).toScalar().isIntegral(false)))) {
        throw Unsupported("an outer product of other shapes, of bool, or of integers by fractions");
    }
    const double beta = c.number(3), alpha = c.number(4);
    Array outer = as_column(c[1]) * c[2];
    const at::DimVector shape{outer.length(0), outer.length(1)};
    outer = alpha == 1 ? outer : outer * alpha;
    if (beta == 0) {
        return {outer};
    }
    const Array addend = broadcast(c[0], shape);
    return {outer + (beta == 1 ? addend : addend * beta)};
}

Results dot(const Call &c)
{
    const Array a = c.plain(0), b = c.plain(1);
    if (a.rank() != 1 || b.rank() != 1 || a.count() != b.count()) {
        throw Unsupported("shapes that do not fit");
    }
    check_numbers(a, b);
    if (a.count() == 0) {
        return {scalar(c.context(), a.type(), 0)};
    }
    const hal_type wide = hal_type_is_narrow_float(a.type()) ? (hal_type)HAL_TYPE_F32 : a.type();
    return {cast(reduce(OPS_REDUCE_SUM, cast(a, wide) * cast(b, wide), 0, false), a.type())};
}

// Row and column numbers of the last two axes: [rows, 1] and [1, columns].
Array row_numbers(ops_context *context, int64_t rows)
{
    return reshape(Array(ops_array_iota(context, HAL_TYPE_I32, rows, 0, 1)),
                   at::DimVector{rows, 1});
}
Array column_numbers(ops_context *context, int64_t columns)
{
    return reshape(Array(ops_array_iota(context, HAL_TYPE_I32, columns, 0, 1)),
                   at::DimVector{1, columns});
}

Results triangle(const Call &c, bool is_lower)
{
    const Array x = c.plain(0);
    if (x.rank() < 2 || x.count() == 0) {
        throw Unsupported("a triangle of a vector");
    }
    const int64_t rows = x.length(x.rank() - 2), columns = x.length(x.rank() - 1);
    const int64_t limit = rows + columns;
    const int64_t diagonal = std::clamp(c.count() > 1 ? c.integer(1) : 0, -limit, limit);
    const Array distance = column_numbers(c.context(), columns) - row_numbers(c.context(), rows);
    const Array inside = is_lower ? less_equal(distance, (double)diagonal)
                                  : greater_equal(distance, (double)diagonal);
    return {where(inside, x, 0.0)};
}

Results identity(const Call &c) // n, m, out
{
    const int64_t rows = c.integer(0), columns = c.integer(1);
    const hal_type type = type_of(c.tensor(2).scalar_type());
    if (type == HAL_TYPE_NONE) {
        throw Unsupported("a type that Halyard lacks");
    }
    const int64_t device = c.device();
    if (rows == 0 || columns == 0) {
        const int64_t shape[2] = {rows, columns};
        return {Array(ops_array_full(c.context(), type, 2, shape, 0))};
    }
    return {cast(
        equal(row_numbers(context_at(device), rows), column_numbers(context_at(device), columns)),
        type)};
}

const Operator TABLE[] = {
    {"mm mm.out", Types::PLAIN, mm},
    {"_int_mm _int_mm.out", Types::PLAIN, int_mm},
    {"bmm bmm.out", Types::PLAIN, bmm},
    {"addmm addmm_ addmm.out", Types::PLAIN, add_mm<2>, Sharing::FIRST_WHOLE},
    {"baddbmm baddbmm_ baddbmm.out", Types::PLAIN, add_mm<3>, Sharing::FIRST_WHOLE},
    {"addmv addmv_ addmv.out", Types::PLAIN, add_mv, Sharing::FIRST_WHOLE},
    {"addr addr_ addr.out", Types::COMMON, add_outer, Sharing::WHOLE},
    {"dot vdot", Types::PLAIN, dot},
    {"tril tril_ tril.out", Types::PLAIN, [](const Call &c) { return triangle(c, true); }},
    {"triu triu_ triu.out", Types::PLAIN, [](const Call &c) { return triangle(c, false); }},
    {"eye.m_out", Types::PLAIN, identity},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
