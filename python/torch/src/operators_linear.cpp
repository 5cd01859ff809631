// Factorisations of matrices and what is solved with them: LU with partial pivoting, Cholesky, QR by
// Householder's reflections, triangular systems, determinants, inverses, exponentials. A factorisation
// takes a few kernels for each column, for all matrices of a batch at once.
// Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, chapters 3 to 5 and 9.
#include <cmath>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "call.h"

namespace halyard
{
namespace
{

constexpr int64_t MOST_COLUMNS = 512; // beyond it the processor's blocked algorithms are faster

using Shape = at::DimVector;

// Matrices [batch, rows, columns] of a tensor, and the tensor's leading axes.
struct Matrices {
    Array a;
    Shape leading;
    int64_t rows = 0, columns = 0;

    int64_t least() const
    {
        return std::min(rows, columns);
    }
    // x [batch, ...] with the leading axes of the tensor.
    Array given(const Array &x) const
    {
        Shape shape = leading;
        for (int64_t i = 1; i < x.rank(); i++) {
            shape.push_back(x.length(i));
        }
        return reshape(x, shape);
    }
    // The same for one number of each matrix.
    Array given_number(const Array &x) const
    {
        return reshape(x, leading);
    }
};

int64_t product(at::IntArrayRef sizes)
{
    return c10::multiply_integers(sizes);
}

Matrices matrices_of(const Array &x, at::IntArrayRef sizes)
{
    if (x.rank() < 2 || !(x.type() == HAL_TYPE_F32 || x.type() == HAL_TYPE_F64)) {
        throw Unsupported("a matrix of narrow floats or integers");
    }
    Matrices m;
    m.leading = Shape(sizes.slice(0, sizes.size() - 2));
    m.rows = sizes[sizes.size() - 2];
    m.columns = sizes[sizes.size() - 1];
    if (m.least() > MOST_COLUMNS) {
        throw Unsupported("a matrix of more than 512 columns");
    }
    m.a = reshape(x, Shape{product(m.leading), m.rows, m.columns});
    return m;
}

Matrices matrices_of(const Call &c, size_t index)
{
    return matrices_of(c.plain(index), c.tensor(index).sizes());
}

// The matrices, repeated to leading axes that they broadcast to.
Matrices broadcast_to(const Matrices &m, at::IntArrayRef leading)
{
    Shape shape(leading);
    shape.append({m.rows, m.columns});
    return matrices_of(broadcast(m.given(m.a), shape), shape);
}

// Numbers of rows [n, 1] and of columns [1, n].
Array row_numbers(const Array &like, int64_t n)
{
    return reshape(Array(ops_array_iota(like.context(), HAL_TYPE_I32, n, 0, 1)), Shape{n, 1});
}
Array column_numbers(const Array &like, int64_t n)
{
    return reshape(Array(ops_array_iota(like.context(), HAL_TYPE_I32, n, 0, 1)), Shape{1, n});
}

Array identity(const Array &like, int64_t rows, int64_t columns)
{
    const Array ones = equal(row_numbers(like, rows), column_numbers(like, columns));
    return broadcast(cast(ones, like.type()), Shape{like.length(0), rows, columns});
}

Array transposed(const Array &x)
{
    return transpose(x, 1, 2);
}
Array column(const Array &x, int64_t k)
{
    return slice(x, 2, k, 1);
}
Array row(const Array &x, int64_t k)
{
    return slice(x, 1, k, 1);
}
Array element(const Array &x, int64_t k)
{
    return row(column(x, k), k);
}

// Parts of one column each, one after the other along an axis: [batch, count].
Array joined(const Array &like, hal_type type, const std::vector<Array> &parts)
{
    const int64_t batch = like.length(0);
    if (parts.empty()) {
        const Shape none{batch, 0};
        return Array(ops_array_full(like.context(), type, 2, none.data(), 0));
    }
    const std::vector<ops_array *> list(parts.begin(), parts.end());
    return Array(ops_array_concatenate(1, list.data(), (uint32_t)list.size()));
}

Array zeros(const Array &like, hal_type type, const Shape &shape)
{
    return Array(ops_array_full(like.context(), type, (uint32_t)shape.size(), shape.data(), 0));
}

// Upper or lower part of [batch, rows, columns], from a diagonal on.
Array upper_part(const Array &x)
{
    return Array(ops_array_upper_triangle(0, x));
}
Array lower_part(const Array &x, int64_t diagonal)
{
    return Array(ops_array_lower_triangle(diagonal, x));
}

// The diagonal [batch, n] of square matrices.
Array diagonal(const Array &x)
{
    const Array inside = equal(row_numbers(x, x.length(1)), column_numbers(x, x.length(2)));
    return reduce(OPS_REDUCE_SUM, where(inside, x, 0.0), 2, false);
}

// ---- Triangular systems ----

// X with t X = x, by one column of t after the other.
Array triangular_solution(const Array &t, Array x, bool is_upper, bool is_unit)
{
    const int64_t n = t.length(1);
    const Array rows = row_numbers(t, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = is_upper ? n - 1 - i : i;
        const Array found = is_unit ? row(x, k) : row(x, k) / element(t, k);
        const Array rest = is_upper ? less(rows, (double)k) : greater(rows, (double)k);
        const Array reduced = where(rest, x - column(t, k) * found, x);
        x = is_unit ? reduced : where(equal(rows, (double)k), found, reduced);
    }
    return x;
}

// The same of op(t) X = x or X op(t) = x.
Array solved(const Array &t, const Array &x, bool is_upper, bool is_left, bool is_unit)
{
    return is_left
               ? triangular_solution(t, x, is_upper, is_unit)
               : transposed(triangular_solution(transposed(t), transposed(x), !is_upper, is_unit));
}

Shape common_leading(const Matrices &a, const Matrices &b)
{
    return at::infer_size_dimvector(a.leading, b.leading);
}

Results solve_triangular(const Call &c) // A, B, upper, left, unitriangular, out
{
    if (c.count() > 5) { // PyTorch copies B to the result
        at::assert_no_partial_overlap(c.tensor(5), c.tensor(1));
    }
    const Matrices a = matrices_of(c, 0), b = matrices_of(c, 1);
    const Shape leading = common_leading(a, b);
    const Matrices t = broadcast_to(a, leading), x = broadcast_to(b, leading);
    return {x.given(solved(t.a, x.a, c.flag(2), c.flag(3), c.flag(4)))};
}

Results old_triangular_solve(const Call &c) // B, A, upper, transpose, unitriangular
{
    const Matrices b = matrices_of(c, 0), a = matrices_of(c, 1);
    const Shape leading = common_leading(a, b);
    const Matrices t = broadcast_to(a, leading), x = broadcast_to(b, leading);
    const bool is_upper = c.flag(2), turns = c.flag(3);
    const Array solution =
        triangular_solution(turns ? transposed(t.a) : t.a, x.a, is_upper != turns, c.flag(4));
    return {x.given(solution), t.given(t.a)};
}

// ---- LU ----

struct Lu {
    Array lu;     // [batch, rows, columns], L below the diagonal
    Array pivots; // I32 [batch, least]: the row, from 1, that row k was exchanged with
    Array info;   // I32 [batch]: 0, or the first pivot, from 1, that is 0
};

// Rows in the order of an exchange of rows k and p.
Array exchanged(const Array &x, int64_t k, const Array &p)
{
    const Array rows = row_numbers(x, x.length(1));
    const Array order =
        where(equal(rows, (double)k), p, where(equal(rows, p), scalar_like(p, (double)k), rows));
    return Array(ops_array_take_along_axis(
        1, x, broadcast(order, Shape{x.length(0), x.length(1), x.length(2)})));
}

Lu factorised(const Matrices &m, bool is_pivoted)
{
    Lu f;
    f.lu = m.a;
    const int64_t batch = m.a.length(0);
    const Array rows = row_numbers(m.a, m.rows), columns = column_numbers(m.a, m.columns);
    Array info = zeros(m.a, HAL_TYPE_I32, Shape{batch, 1, 1});
    std::vector<Array> pivots;
    for (int64_t k = 0; k < m.least(); k++) {
        Array p = broadcast(scalar_like(info, (double)k), Shape{batch, 1, 1});
        if (is_pivoted) {
            const Array sizes = unary(OPS_ABS, column(f.lu, k));
            p = reduce(OPS_REDUCE_ARGMAX, where(less(rows, (double)k), -1.0, sizes), 1, true);
            f.lu = exchanged(f.lu, k, p);
        }
        pivots.push_back(reshape(p + 1, Shape{batch, 1}));
        const Array pivot = element(f.lu, k), is_zero = equal(pivot, 0);
        info = where(both(is_zero, equal(info, 0)), (double)(k + 1), info);
        const Array below = greater(rows, (double)k);
        const Array factors = column(f.lu, k) / where(is_zero, 1.0, pivot);
        const Array rest = where(greater(columns, (double)k), f.lu - factors * row(f.lu, k),
                                 where(equal(columns, (double)k), factors, f.lu));
        f.lu = where(below, rest, f.lu);
    }
    f.pivots = joined(m.a, HAL_TYPE_I32, pivots);
    f.info = reshape(info, Shape{batch});
    return f;
}

// x with its rows exchanged as the pivots say, or back.
Array permuted(Array x, const Array &pivots, bool goes_back)
{
    const int64_t batch = pivots.length(0), count = pivots.length(1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = goes_back ? count - 1 - i : i;
        x = exchanged(x, k, reshape(slice(pivots, 1, k, 1), Shape{batch, 1, 1}) - 1);
    }
    return x;
}

// X with A X = B, or A^T X = B.
Array lu_solution(const Lu &f, const Array &b, bool is_transposed)
{
    if (!is_transposed) {
        const Array y = triangular_solution(f.lu, permuted(b, f.pivots, false), false, true);
        return triangular_solution(f.lu, y, true, false);
    }
    const Array t = transposed(f.lu);
    const Array y = triangular_solution(t, b, false, false);
    return permuted(triangular_solution(t, y, true, true), f.pivots, true);
}

Matrices square_matrices(const Call &c, size_t index)
{
    const Matrices m = matrices_of(c, index);
    if (m.rows != m.columns) {
        throw Unsupported("a matrix that is not square");
    }
    return m;
}

// Errors that the call is to raise itself are PyTorch's.
void refuse_check(const Call &c, size_t check)
{
    if (c.flag(check)) {
        throw Unsupported("a check of errors within the call");
    }
}

Results lu_factor(const Call &c) // A, pivot, check_errors
{
    refuse_check(c, 2);
    const Matrices m = matrices_of(c, 0);
    const Lu f = factorised(m, c.flag(1));
    return {m.given(f.lu), m.given(f.pivots), m.given_number(f.info)};
}

struct Unpacked {
    Array p, l, u;
};

Unpacked unpacked(const Matrices &m, const Array &pivots)
{
    const int64_t least = m.least();
    const Array lower = slice(m.a, 2, 0, least), upper = slice(m.a, 1, 0, least);
    Unpacked result;
    result.l = lower_part(lower, -1) + identity(m.a, m.rows, least);
    result.u = upper_part(upper);
    if (pivots) {
        result.p = transposed(permuted(identity(m.a, m.rows, m.rows), pivots, false));
    }
    return result;
}

Results unpack_lu(const Call &c) // LU, pivots, unpack_data, unpack_pivots
{
    if (!c.flag(2) || !c.flag(3)) {
        throw Unsupported("a part of a factorisation");
    }
    const Matrices m = matrices_of(c, 0);
    const Array pivots = reshape(c.plain(1), Shape{m.a.length(0), m.least()});
    const Unpacked u = unpacked(m, pivots);
    return {m.given(u.p), m.given(u.l), m.given(u.u)};
}

Results lu(const Call &c) // A, pivot
{
    Matrices m = matrices_of(c, 0);
    const Lu f = factorised(m, c.flag(1));
    m.a = f.lu;
    const Unpacked u = unpacked(m, c.flag(1) ? f.pivots : Array());
    const int64_t none = 0;
    const Array no_p(ops_array_full(c.context(), m.a.type(), 1, &none, 0));
    return {c.flag(1) ? m.given(u.p) : no_p, m.given(u.l), m.given(u.u)};
}

Results solve_lu(const Call &c) // LU, pivots, B, left, adjoint
{
    const Matrices lu = square_matrices(c, 0), right = matrices_of(c, 2);
    const Shape leading = common_leading(lu, right);
    const Matrices a = broadcast_to(lu, leading), b = broadcast_to(right, leading);
    Shape pivot_shape = leading;
    pivot_shape.push_back(lu.rows);
    Lu f;
    f.lu = a.a;
    f.pivots = reshape(broadcast(c.plain(1), pivot_shape), Shape{a.a.length(0), lu.rows});
    const bool is_left = c.flag(3), is_adjoint = c.flag(4);
    return {b.given(is_left ? lu_solution(f, b.a, is_adjoint)
                            : transposed(lu_solution(f, transposed(b.a), !is_adjoint)))};
}

// A, B, left, check_errors: the solution, LU, pivots, info. B may be vectors.
Results solve(const Call &c)
{
    refuse_check(c, 3);
    const Matrices m = square_matrices(c, 0);
    const Tensor &right = c.tensor(1);
    const bool is_vector =
        right.dim() == 1 || (right.dim() == c.tensor(0).dim() - 1 &&
                             right.sizes() == c.tensor(0).sizes().slice(0, (size_t)right.dim()));
    Shape sizes(right.sizes());
    if (is_vector) {
        sizes.push_back(1);
    }
    const Matrices b = matrices_of(reshape(c.plain(1), sizes), sizes);
    const Lu f = factorised(m, true);
    Shape pivot_shape = m.leading;
    const Shape leading = common_leading(m, b);
    Matrices factor = m;
    factor.a = f.lu;
    pivot_shape.push_back(m.rows);
    Shape all_pivots = leading;
    all_pivots.push_back(m.rows);
    const Matrices x = broadcast_to(b, leading);
    Lu all = f;
    all.lu = broadcast_to(factor, leading).a;
    all.pivots = reshape(broadcast(reshape(f.pivots, pivot_shape), all_pivots),
                         Shape{all.lu.length(0), m.rows});
    const Array found = c.flag(2) ? lu_solution(all, x.a, false)
                                  : transposed(lu_solution(all, transposed(x.a), true));
    Array result = x.given(found);
    if (is_vector) {
        result = reshape(result, Shape(at::IntArrayRef(sizes).slice(0, sizes.size() - 1)));
        Shape shape = leading;
        shape.push_back(m.rows);
        result = reshape(result, shape);
    }
    return {result, m.given(f.lu), m.given(f.pivots), m.given_number(f.info)};
}

Results inverse(const Call &c) // A, check_errors
{
    refuse_check(c, 1);
    const Matrices m = square_matrices(c, 0);
    const Lu f = factorised(m, true);
    return {m.given(lu_solution(f, identity(m.a, m.rows, m.rows), false)), m.given_number(f.info)};
}

// The product of the signs of the exchanges, [batch].
Array parity(const Lu &f, hal_type type)
{
    const int64_t n = f.pivots.length(1);
    const Array own = Array(ops_array_iota(f.pivots.context(), HAL_TYPE_I32, n, 1, 1));
    const Array moved = cast(not_equal(f.pivots, own), type);
    return reduce(OPS_REDUCE_PRODUCT, 1 - moved * 2, 1, false);
}

// The factors of a determinant, which its gradient reads as those of the transposed of a contiguous matrix.
Lu factors_of_determinant(const Call &c, const Matrices &m)
{
    Matrices factored = m;
    factored.a = c.tensor(0).is_contiguous() ? transposed(m.a) : m.a;
    return factorised(factored, true);
}

Results determinant(const Call &c) // A: determinant, LU, pivots
{
    const Matrices m = square_matrices(c, 0);
    const Lu f = factors_of_determinant(c, m);
    const Array value = reduce(OPS_REDUCE_PRODUCT, diagonal(f.lu), 1, false);
    return {m.given_number(value * parity(f, m.a.type())), m.given(f.lu), m.given(f.pivots)};
}

Results log_determinant(const Call &c) // A: sign, log, LU, pivots
{
    const Matrices m = square_matrices(c, 0);
    const Lu f = factors_of_determinant(c, m);
    const Array d = diagonal(f.lu);
    const Array sign = reduce(OPS_REDUCE_PRODUCT, unary(OPS_SIGN, d), 1, false);
    const Array sum = reduce(OPS_REDUCE_SUM, unary(OPS_LOG, unary(OPS_ABS, d)), 1, false);
    return {m.given_number(sign * parity(f, m.a.type())), m.given_number(sum), m.given(f.lu),
            m.given(f.pivots)};
}

// ---- Cholesky ----

Results cholesky(const Call &c) // A, upper, check_errors: the factor, info
{
    refuse_check(c, 2);
    const Matrices m = square_matrices(c, 0);
    const int64_t batch = m.a.length(0);
    const Array rows = row_numbers(m.a, m.rows), columns = column_numbers(m.a, m.columns);
    Array a = c.flag(1) ? transposed(m.a) : m.a; // only its lower part is read
    Array factor = zeros(m.a, m.a.type(), Shape{batch, m.rows, m.columns});
    Array info = zeros(m.a, HAL_TYPE_I32, Shape{batch, 1, 1});
    for (int64_t k = 0; k < m.rows; k++) {
        const Array pivot = element(a, k);
        const Array is_bad = logical_not(greater(pivot, 0));
        info = where(both(is_bad, equal(info, 0)), (double)(k + 1), info);
        const Array l = where(less(rows, (double)k), 0.0, column(a, k) * unary(OPS_RSQRT, pivot));
        factor = where(equal(columns, (double)k), l, factor);
        a = a - l * transposed(l);
    }
    return {m.given(c.flag(1) ? transposed(factor) : factor), m.given_number(info)};
}

// X with L L^T X = b.
Array cholesky_solution(const Array &factor, const Array &b, bool is_upper)
{
    const Array l = is_upper ? transposed(factor) : factor;
    return triangular_solution(transposed(l), triangular_solution(l, b, false, false), true, false);
}

Results cholesky_inverse(const Call &c) // factor, upper
{
    const Matrices m = square_matrices(c, 0);
    return {m.given(cholesky_solution(m.a, identity(m.a, m.rows, m.rows), c.flag(1)))};
}

Results cholesky_solve(const Call &c) // B, factor, upper
{
    const Matrices b = matrices_of(c, 0), l = square_matrices(c, 1);
    return {b.given(cholesky_solution(l.a, b.a, c.flag(2)))};
}

// ---- QR ----

// The reflection k of reflections: [batch, rows, 1], 1 at row k and 0 above it.
Array reflector(const Array &v, int64_t k)
{
    const Array rows = row_numbers(v, v.length(1));
    return where(less(rows, (double)k), 0.0, where(equal(rows, (double)k), 1.0, column(v, k)));
}

// x - tau v (v^T x)
Array reflected(const Array &x, const Array &v, const Array &tau)
{
    return x - v * tau * reduce(OPS_REDUCE_SUM, v * x, 1, true);
}

struct Reflections {
    Array a;   // R and, below the diagonal, the vectors
    Array tau; // [batch, least]
};

Reflections reflections_of(const Matrices &m)
{
    const Array rows = row_numbers(m.a, m.rows), columns = column_numbers(m.a, m.columns);
    Array a = m.a;
    std::vector<Array> taus;
    for (int64_t k = 0; k < m.least(); k++) {
        const Array alpha = element(a, k), x = column(a, k), below = greater(rows, (double)k);
        const Array rest = reduce(OPS_REDUCE_SUM, where(below, square(x), 0.0), 1, true);
        const Array norm = unary(OPS_SQRT, square(alpha) + rest);
        const Array is_done = equal(rest, 0);
        const Array beta = where(is_done, alpha, where(less(alpha, 0), norm, -norm));
        const Array tau = where(is_done, 0.0, (beta - alpha) / beta);
        const Array scale = where(is_done, 0.0, 1 / (alpha - beta));
        const Array tail = x * scale;
        const Array v = where(below, tail, where(equal(rows, (double)k), 1.0, x * 0));
        const Array later = where(greater(columns, (double)k), reflected(a, v, tau), a);
        const Array own = where(below, tail, where(equal(rows, (double)k), beta, x));
        a = where(equal(columns, (double)k), own, later);
        taus.push_back(reshape(tau, Shape{a.length(0), 1}));
    }
    return {a, joined(m.a, m.a.type(), taus)};
}

// The reflections applied to x one after the other: the last first gives Q x, the first first Q^T x.
Array all_reflected(Array x, const Array &v, const Array &tau, bool is_transposed)
{
    const int64_t batch = tau.length(0), count = tau.length(1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = is_transposed ? i : count - 1 - i;
        x = reflected(x, reflector(v, k), reshape(slice(tau, 1, k, 1), Shape{batch, 1, 1}));
    }
    return x;
}

Results reflections(const Call &c)
{
    const Matrices m = matrices_of(c, 0);
    const Reflections r = reflections_of(m);
    return {m.given(r.a), m.given(r.tau)};
}

Array tau_of(const Call &c, size_t index, const Matrices &m)
{
    const Tensor &tau = c.tensor(index);
    if (tau.numel() == 0) {
        throw Unsupported("no reflections");
    }
    return reshape(c.plain(index), Shape{m.a.length(0), tau.size(tau.dim() - 1)});
}

Results reflection_product(const Call &c) // V, tau
{
    const Matrices m = matrices_of(c, 0);
    return {m.given(all_reflected(identity(m.a, m.rows, m.columns), m.a, tau_of(c, 1, m), false))};
}

Results reflect_by(const Call &c) // V, tau, x, left, transpose
{
    const Matrices v = matrices_of(c, 0), x = matrices_of(c, 2);
    const Array tau = tau_of(c, 1, v);
    const bool is_left = c.flag(3), is_transposed = c.flag(4);
    return {x.given(is_left
                        ? all_reflected(x.a, v.a, tau, is_transposed)
                        : transposed(all_reflected(transposed(x.a), v.a, tau, !is_transposed)))};
}

Results qr(const Call &c) // A, mode
{
    const Matrices m = matrices_of(c, 0);
    const std::string_view mode = c.value(1).toStringView();
    const Reflections r = reflections_of(m);
    const int64_t kept = mode == "complete" ? m.rows : m.least(), none = 0;
    const Array upper = m.given(upper_part(slice(r.a, 1, 0, kept)));
    if (mode == "r") {
        return {Array(ops_array_full(c.context(), m.a.type(), 1, &none, 0)), upper};
    }
    return {m.given(all_reflected(identity(m.a, m.rows, kept), r.a, r.tau, false)), upper};
}

// ---- Exponentials: Taylor's series of A / 2^s, squared s times; the norm of A is read ----

Results exponential(const Call &c)
{
    constexpr double MOST_SQUARINGS = 64;
    constexpr int TERMS = 18; // bound^19 / 19! is the type's precision
    const Matrices m = square_matrices(c, 0);
    const double bound = m.a.type() == HAL_TYPE_F64 ? 1.09 : 3;
    const Array sums = reduce(OPS_REDUCE_SUM, unary(OPS_ABS, m.a), 1, false);
    const Array largest = cast(reduce(OPS_REDUCE_MAX, flatten(sums), 0, false), HAL_TYPE_F32);
    float norm = 0;
    check(ops_array_read(largest, sizeof norm, &norm));
    const double squarings = norm > bound ? std::ceil(std::log2(norm / bound)) : 0;
    if (!(squarings <= MOST_SQUARINGS)) {
        throw Unsupported("the exponential of a very large matrix");
    }
    const Array a = m.a * std::pow(0.5, squarings);
    const Array one = identity(m.a, m.rows, m.rows);
    Array sum = one;
    for (int k = TERMS; k > 0; k--) {
        sum = one + matmul(a, sum) / (double)k;
    }
    for (int k = 0; k < (int)squarings; k++) {
        sum = matmul(sum, sum);
    }
    return {m.given(sum)};
}

#define WITH_OUT(name) name " " name ".out"

const Operator TABLE[] = {
    {WITH_OUT("linalg_solve_triangular"), Types::PLAIN, solve_triangular},
    {"triangular_solve triangular_solve.X", Types::PLAIN, old_triangular_solve},
    {WITH_OUT("linalg_lu_factor_ex"), Types::PLAIN, lu_factor},
    {WITH_OUT("lu_unpack"), Types::PLAIN, unpack_lu},
    {WITH_OUT("linalg_lu"), Types::PLAIN, lu},
    {WITH_OUT("linalg_lu_solve"), Types::PLAIN, solve_lu},
    {"_linalg_solve_ex _linalg_solve_ex.result", Types::PLAIN, solve},
    {"linalg_inv_ex linalg_inv_ex.inverse", Types::PLAIN, inverse},
    {"_linalg_det _linalg_det.result", Types::PLAIN, determinant},
    {"_linalg_slogdet _linalg_slogdet.sign", Types::PLAIN, log_determinant},
    {"linalg_cholesky_ex linalg_cholesky_ex.L", Types::PLAIN, cholesky},
    {WITH_OUT("cholesky_inverse"), Types::PLAIN, cholesky_inverse},
    {WITH_OUT("_cholesky_solve_helper"), Types::PLAIN, cholesky_solve},
    {"geqrf geqrf.a", Types::PLAIN, reflections},
    {WITH_OUT("linalg_householder_product"), Types::PLAIN, reflection_product},
    {WITH_OUT("ormqr"), Types::PLAIN, reflect_by},
    {WITH_OUT("linalg_qr"), Types::PLAIN, qr},
    {"linalg_matrix_exp", Types::PLAIN, exponential},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE);
}

} // namespace
} // namespace halyard
