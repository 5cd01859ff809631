// Special functions of one element: gamma, error, Bessel and Airy functions, zeta, and orthogonal
// polynomials. Chebyshev expansions (expansions.inc, by tools/expansions.py) near the origin, and of
// the smooth factors of the asymptotic forms; other formulas from F. W. J. Olver et al. (editors),
// "NIST Digital Library of Mathematical Functions", chapters 5, 7, 9, 10, 18 and 25.
#include <cmath>
#include <limits>

#include <ATen/ExpandUtils.h>

#include "call.h"
#include "expansions.inc"

namespace halyard
{
namespace
{

constexpr double PI = 3.14159265358979323846;
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
const double SQRT_2 = std::sqrt(2.0);

Array magnitude(const Array &x)
{
    return unary(OPS_ABS, x);
}
Array log_of(const Array &x)
{
    return unary(OPS_LOG, x);
}
Array root_of(const Array &x)
{
    return unary(OPS_SQRT, x);
}

// c[0] / 2 + sum c[k] T_k(u) by Clenshaw's recurrence, without the terms below the type's precision.
template <size_t N> Array expansion(const double (&c)[N], const Array &u)
{
    const double precision = u.type() == HAL_TYPE_F64 ? 1e-17 : 1e-9;
    size_t n = N;
    while (n > 3 && std::abs(c[n - 1]) < precision * std::abs(c[0])) {
        n--;
    }
    const Array twice = u * 2;
    Array after = scalar_like(u, c[n - 1]);
    Array sum = twice * c[n - 1] + c[n - 2];
    for (size_t k = n - 3; k > 0; k--) {
        Array next = twice * sum - after + c[k];
        after = std::move(sum);
        sum = std::move(next);
    }
    return u * sum - after + c[0] / 2;
}

// The arguments of expansions: below a bound by the square, and above it.
Array within_square(const Array &x, double bound)
{
    return square(minimum(x, bound) / bound) * 2 - 1;
}
Array beyond(const Array &x, double bound)
{
    return 2 * bound / maximum(x, bound) - 1;
}
Array beyond_square(const Array &x, double bound)
{
    return square(bound / maximum(x, bound)) * 2 - 1;
}

Array with_sign_of(const Array &x, const Array &value)
{
    return where(less(x, 0), -value, value);
}

// ---- Error functions ----

constexpr double ERFC_IS_ZERO = 40; // exp(-x^2) is 0 in F64

// exp(sign x^2), x >= 0: x is split so that the square of its first part is exact.
Array exp_of_square(const Array &x, double sign)
{
    const Array high = unary(OPS_TRUNC, x * 16) / 16;
    return exp_of(square(high) * sign) * exp_of((x - high) * (x + high) * sign);
}

// exp(x^2) erfc(x), x >= 0
Array scaled_erfc(const Array &x)
{
    const Array bounded = minimum(x, 1e15);
    return expansion(ERFCX, (bounded - 3.75) / (bounded + 3.75)) / (bounded * 2 + 1);
}

Array erfc_of(const Array &x)
{
    const Array m = magnitude(x);
    const Array tail = exp_of_square(minimum(m, ERFC_IS_ZERO), -1) * scaled_erfc(m);
    return where(less(x, 0), 2 - tail, tail);
}

Results erfc(const Call &c)
{
    return {erfc_of(c[0])};
}

Results erfcx(const Call &c)
{
    const Array x = c[0], m = magnitude(x), scaled = scaled_erfc(m);
    return {where(less(x, 0), exp_of_square(minimum(m, ERFC_IS_ZERO), 1) * 2 - scaled, scaled)};
}

Results log_ndtr(const Call &c)
{
    const Array x = c[0], t = x / SQRT_2;
    const Array low = log_of(scaled_erfc(magnitude(t)) / 2) - square(t);
    return {where(less(x, -1), low, unary(OPS_LOG1P, erfc_of(t) / -2))};
}

// y with erf(|y|) = |x|, of x's sign, given t = 1 - |x| without cancellation: an estimate by
// S. Winitzki ("A handy approximation for the error function and its inverse", 2008), then two of
// Halley's steps, towards the one of erf and erfc that is less than a half.
Array inverse_erf(const Array &x, const Array &t)
{
    constexpr double A = 0.147;
    const double half_root = std::sqrt(PI) / 2;
    const Array m = 1 - t, w = -log_of(t * (2 - t)), b = 2 / (PI * A) - w / 2;
    const Array root = root_of(square(b) + w / A);
    Array y = root_of(where(less(b, 0), root - b, w / A / (root + b)));
    for (int i = 0; i < 2; i++) {
        const Array grown = exp_of_square(y, 1);
        const Array below = (magnitude(x) - unary(OPS_ERF, y)) * grown * half_root;
        const Array above = (scaled_erfc(y) - t * grown) * half_root;
        const Array step = where(less(m, 0.5), below, above);
        y = y + step / (1 - step * y);
    }
    y = where(equal(x, 0), magnitude(x), where(equal(t, 0), INFINITE, y));
    return with_sign_of(x, where(less(t, 0), NOT_A_NUMBER, y));
}

Results erfinv(const Call &c)
{
    const Array x = c[0];
    return {inverse_erf(x, 1 - magnitude(x))};
}

Results ndtri(const Call &c)
{
    const Array p = c[0];
    return {inverse_erf(p * 2 - 1, minimum(p, 1 - p) * 2) * SQRT_2};
}

// ---- Gamma functions ----

// The values of x with the fraction of `x`, from -1/2 to 1/2.
Array from_nearest_integer(const Array &x)
{
    return x - unary(OPS_ROUND, x);
}

// sum B_2k / (2k (2k - 1)) / x^(2k - 1), x >= 8
Array stirling_rest(const Array &x)
{
    static constexpr double terms[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                       -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
    const Array w = 1 / square(x);
    Array sum = w * terms[0];
    for (size_t k = 1; k < std::size(terms); k++) {
        sum = k + 1 < std::size(terms) ? (sum + terms[k]) * w : sum + terms[k];
    }
    return sum / x;
}

// log(Gamma(x)), x >= 0
Array log_gamma_of(const Array &x)
{
    const Array is_small = less(x, 1);
    Array r = where(is_small, x + 1, x), product = where(is_small, 1 / x, 1.0);
    for (int i = 0; i < 5; i++) { // from below 8 to below 3
        const Array is_above = greater(r, 3);
        r = where(is_above, r - 1, r);
        product = where(is_above, product * r, product);
    }
    const Array near = log_of(product) + (r - 1) * (r - 2) * expansion(LOG_GAMMA_1_3, r - 2);
    const Array far = (x - 0.5) * log_of(x) - x + std::log(2 * PI) / 2 + stirling_rest(x);
    return where(less(x, 8), near, where(equal(x, INFINITE), INFINITE, far));
}

Results log_gamma(const Call &c)
{
    const Array x = c[0], m = magnitude(x), value = log_gamma_of(m);
    const Array sine = magnitude(unary(OPS_SIN, from_nearest_integer(m) * PI));
    const Array reflected = std::log(PI) - log_of(sine) - log_of(m) - value;
    return {where(both(less(x, 0), less(m, INFINITE)), reflected, value)};
}

Array digamma_of(const Array &x)
{
    static constexpr double terms[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                       1.0 / 252, -1.0 / 120,     1.0 / 12};
    const Array is_negative = less(x, 0);
    Array z = where(is_negative, 1 - x, x), sum = scalar_like(x, 0);
    for (int i = 0; i < 8; i++) {
        const Array is_below = less(z, 8);
        sum = where(is_below, sum + 1 / z, sum);
        z = where(is_below, z + 1, z);
    }
    const Array w = 1 / square(z);
    Array rest = w * terms[0];
    for (size_t k = 1; k < std::size(terms); k++) {
        rest = (rest + terms[k]) * w;
    }
    const Array value = log_of(z) - 0.5 / z - rest - sum;
    const Array fraction = from_nearest_integer(x);
    const Array reflected = value - PI / unary(OPS_TAN, fraction * PI);
    const Array negative = where(equal(fraction, 0), NOT_A_NUMBER, reflected);
    return where(equal(x, 0), -1 / x, where(is_negative, negative, value));
}

Results digamma(const Call &c)
{
    return {digamma_of(c[0])};
}

// An extreme of all elements, which is read from the device.
double read_extreme(ops_reduction reduction, const Array &x)
{
    double value = 0;
    if (x.count()) {
        const Array extreme = reduce(reduction, cast(flatten(x), HAL_TYPE_F32), 0, false);
        float number = 0;
        check(ops_array_read(extreme, sizeof number, &number));
        value = number;
    }
    return value;
}

// sum 1 / (q + k)^s by the Euler-Maclaurin formula after the terms below 9.
Array zeta_of(const Array &s, const Array &q)
{
    static constexpr double terms[] = {1.0 / 12,           -1.0 / 720,     1.0 / 30240,
                                       -1.0 / 1209600,     1.0 / 47900160, -691.0 / 1307674368000.0,
                                       1.0 / 74724249600.0};
    constexpr double MOST = 256;
    const double least = read_extreme(OPS_REDUCE_MIN, q);
    if (!(least > -MOST)) {
        throw Unsupported("zeta of very negative numbers");
    }
    const int count = 9 + (int)std::max(0.0, std::ceil(-least));
    Array sum = power(q, -s);
    for (int k = 1; k < count; k++) {
        sum = sum + power(q + (double)k, -s);
    }
    const Array a = q + (double)count, tail = power(a, -s);
    sum = sum + tail * (a / (s - 1) + 0.5);
    Array factor = s * tail / a;
    for (size_t k = 0; k < std::size(terms); k++) {
        sum = sum + factor * terms[k];
        factor = factor * (s + (2.0 * (double)k + 1)) * (s + (2.0 * (double)k + 2)) / square(a);
    }
    const Array is_pole = both(less_equal(q, 0), equal(q, unary(OPS_FLOOR, q)));
    const Array is_defined =
        both(greater(s, 1), either(greater(q, 0), equal(s, unary(OPS_FLOOR, s))));
    const Array value = where(is_pole, INFINITE, where(is_defined, sum, NOT_A_NUMBER));
    return where(equal(s, 1), INFINITE, where(less(s, 1), NOT_A_NUMBER, value));
}

Results zeta(const Call &c)
{
    return {zeta_of(c[0], c[1])};
}

// The derivative of order n of digamma: (-1)^(n + 1) n! zeta(n + 1, x).
Array polygamma_of(int64_t n, const Array &x)
{
    if (n < 0) {
        throw Unsupported("an order below zero");
    }
    if (n == 0) {
        return digamma_of(x);
    }
    const double factor = (n % 2 ? 1 : -1) * std::tgamma((double)n + 1);
    return zeta_of(scalar_like(x, (double)n + 1), x) * factor;
}

// ---- Bessel and Airy functions ----

// sqrt(2 / (pi x)) (P cos(x - phase) - Q sin(x - phase)), or with sin and cos for Y; x >= 8.
template <size_t N, size_t M>
Array bessel_wave(const Array &x, double phase, const double (&p)[N], const double (&q)[M],
                  bool is_second)
{
    const Array m = maximum(x, 8), u = beyond_square(m, 8), angle = m - phase;
    const Array P = expansion(p, u), Q = expansion(q, u) / m;
    const Array cosine = unary(OPS_COS, angle), sine = unary(OPS_SIN, angle);
    return root_of(2 / PI / m) * (is_second ? P * sine + Q * cosine : P * cosine - Q * sine);
}

Array small_j0(const Array &m)
{
    return expansion(J0_TO_8, within_square(m, 8));
}
Array small_j1(const Array &m)
{
    return m * expansion(J1_TO_8, within_square(m, 8));
}

Array zero_at_infinity(const Array &m, const Array &value)
{
    return where(equal(m, INFINITE), 0.0, value);
}

Results bessel_j0(const Call &c)
{
    const Array m = magnitude(c[0]);
    const Array far = bessel_wave(m, PI / 4, P0_FROM_8, Q0_FROM_8, false);
    return {zero_at_infinity(m, where(less(m, 8), small_j0(m), far))};
}

Results bessel_j1(const Call &c)
{
    const Array x = c[0], m = magnitude(x);
    const Array far = bessel_wave(m, 3 * PI / 4, P1_FROM_8, Q1_FROM_8, false);
    return {zero_at_infinity(m, with_sign_of(x, where(less(m, 8), small_j1(m), far)))};
}

// The value for x > 0, with the limit at 0 and none below it.
Array of_positive(const Array &x, const Array &value, double at_zero)
{
    return where(equal(x, 0), at_zero, where(less(x, 0), NOT_A_NUMBER, value));
}

Results bessel_y0(const Call &c)
{
    const Array x = c[0];
    const Array near = expansion(Y0_TO_8, within_square(x, 8)) + log_of(x) * small_j0(x) * (2 / PI);
    const Array far = bessel_wave(x, PI / 4, P0_FROM_8, Q0_FROM_8, true);
    const Array value = zero_at_infinity(x, where(less(x, 8), near, far));
    return {of_positive(x, value, -INFINITE)};
}

Results bessel_y1(const Call &c)
{
    const Array x = c[0];
    const Array near =
        x * expansion(Y1_TO_8, within_square(x, 8)) + (log_of(x) * small_j1(x) - 1 / x) * (2 / PI);
    const Array far = bessel_wave(x, 3 * PI / 4, P1_FROM_8, Q1_FROM_8, true);
    const Array value = zero_at_infinity(x, where(less(x, 8), near, far));
    return {of_positive(x, value, -INFINITE)};
}

// exp(-m) I0(m), exp(-m) I1(m), m >= 0
Array scaled_i0(const Array &m)
{
    const Array far = expansion(I0E_FROM_8, beyond(m, 8)) / root_of(m);
    return where(less(m, 8), expansion(I0E_TO_8, minimum(m, 8) / 4 - 1), far);
}
Array scaled_i1(const Array &m)
{
    const Array far = expansion(I1E_FROM_8, beyond(m, 8)) / root_of(m);
    return where(less(m, 8), m * expansion(I1E_TO_8, minimum(m, 8) / 4 - 1), far);
}

// exp(m) times a scaled function, which at infinity is 0 times infinity: there the limit is x.
Array without_scale(const Array &x, const Array &m, const Array &value)
{
    return where(equal(m, INFINITE), x, exp_of(m) * value);
}

Results modified_i0(const Call &c, bool is_scaled)
{
    const Array m = magnitude(c[0]), value = scaled_i0(m);
    return {is_scaled ? value : without_scale(m, m, value)};
}

Results modified_i1(const Call &c, bool is_scaled)
{
    const Array x = c[0], m = magnitude(x), value = with_sign_of(x, scaled_i1(m));
    return {is_scaled ? value : without_scale(x, m, value)};
}

// K0 or K1 with or without the factor exp(x).
Array modified_k(const Array &x, int order, bool is_scaled)
{
    const Array small = minimum(x, 2), grown = exp_of(small), u = within_square(small, 2);
    const Array logarithm = log_of(small);
    const Array near = order == 0 ? expansion(K0_TO_2, u) - logarithm * grown * scaled_i0(small)
                                  : small * expansion(K1_TO_2, u) + 1 / small +
                                        logarithm * grown * scaled_i1(small);
    const Array v = beyond(x, 2);
    const Array far =
        (order == 0 ? expansion(K0E_FROM_2, v) : expansion(K1E_FROM_2, v)) / root_of(x);
    const Array value = is_scaled ? where(less_equal(x, 2), near * grown, far)
                                  : where(less_equal(x, 2), near, far * exp_of(-x));
    return of_positive(x, value, INFINITE);
}

template <int ORDER, bool IS_SCALED> Results modified_bessel_k(const Call &c)
{
    return {modified_k(c[0], ORDER, IS_SCALED)};
}

Results spherical_bessel(const Call &c)
{
    const Array x = c[0], w = square(x);
    Array series = w * (1.0 / 6227020800.0) - 1.0 / 39916800;
    for (const double term : {1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0}) {
        series = series * w + term;
    }
    const Array m = magnitude(x);
    return {zero_at_infinity(m, where(less(m, 0.5), series, unary(OPS_SIN, x) / x))};
}

Results airy(const Call &c)
{
    const Array x = c[0], m = magnitude(x), zeta = m * root_of(m) * (2.0 / 3);
    const Array quarter = root_of(root_of(m)) * std::sqrt(PI);
    const Array tail =
        expansion(AIRY_TAIL, beyond(zeta, 4 * SQRT_2 / 3)) * exp_of(-zeta) / quarter / 2;
    const Array middle = expansion(AIRY_MIDDLE, (maximum(minimum(x, 2), -4) + 4) / 3 - 1);
    const Array far = maximum(zeta, 16.0 / 3), u = beyond_square(far, 16.0 / 3),
                angle = far - PI / 4;
    const Array wave = expansion(AIRY_P, u) * unary(OPS_COS, angle) +
                       expansion(AIRY_Q, u) / far * unary(OPS_SIN, angle);
    return {where(less(x, -4), wave / quarter, where(greater(x, 2), tail, middle))};
}

// ---- Orthogonal polynomials: p_(k + 1) = (a x + b) p_k - c p_(k - 1) ----

struct Recurrence {
    double a, b, c;
};
using RecurrenceOf = Recurrence (*)(double k); // k = 0 gives p_1 with p_(-1) = 0

Recurrence first_or_twice_x(double k, double a, double b)
{
    return k == 0 ? Recurrence{a, b, 0} : Recurrence{2, 0, 1};
}
Recurrence chebyshev_t(double k)
{
    return first_or_twice_x(k, 1, 0);
}
Recurrence chebyshev_u(double k)
{
    return first_or_twice_x(k, 2, 0);
}
Recurrence chebyshev_v(double k)
{
    return first_or_twice_x(k, 2, -1);
}
Recurrence chebyshev_w(double k)
{
    return first_or_twice_x(k, 2, 1);
}
Recurrence hermite_h(double k)
{
    return {2, 0, 2 * k};
}
Recurrence hermite_he(double k)
{
    return {1, 0, k};
}
Recurrence laguerre(double k)
{
    return {-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)};
}
Recurrence legendre(double k)
{
    return {(2 * k + 1) / (k + 1), 0, k / (k + 1)};
}

// The polynomials whose degrees are the elements of n, rounded towards 0; 0 for negative degrees.
// The largest degree is read from the device.
template <RecurrenceOf RECURRENCE, bool IS_SHIFTED> Results polynomial(const Call &c)
{
    constexpr double MOST = 128;
    const Array n = unary(OPS_TRUNC, c[1]), x = IS_SHIFTED ? c[0] * 2 - 1 : c[0];
    const double largest = c.is_number(1) ? c.number(1) : read_extreme(OPS_REDUCE_MAX, n);
    if (!(largest <= MOST)) {
        throw Unsupported("a polynomial of a degree above 128");
    }
    const at::DimVector shape =
        at::infer_size_dimvector(c.is_number(0) ? at::IntArrayRef() : c.tensor(0).sizes(),
                                 c.is_number(1) ? at::IntArrayRef() : c.tensor(1).sizes());
    Array before = scalar_like(x, 0), current = scalar_like(x, 1);
    Array result = where(equal(n, 0), 1.0, broadcast(before, shape));
    for (double k = 0; k < largest; k++) {
        const Recurrence r = RECURRENCE(k);
        const Array line = r.b == 0 ? x * r.a : x * r.a + r.b;
        Array next = r.c == 0 ? line * current : line * current - before * r.c;
        before = std::move(current);
        current = std::move(next);
        result = where(equal(n, k + 1), current, result);
    }
    return {result};
}

#define FORMS(name) name " " name "_ " name ".out"
#define WITH_OUT(name) name " " name ".out"
#define POLYNOMIAL(name)                                                                 \
    name " " name ".x_scalar " name ".n_scalar " name ".out " name ".x_scalar_out " name \
         ".n_scalar_out"

const Operator TABLE[] = {
    {FORMS("erfc"), Types::FLOAT, erfc},
    {FORMS("erfinv"), Types::FLOAT, erfinv},
    {WITH_OUT("special_erfcx"), Types::FLOAT, erfcx},
    {WITH_OUT("special_ndtri"), Types::FLOAT, ndtri},
    {WITH_OUT("special_log_ndtr"), Types::FLOAT, log_ndtr},
    {FORMS("lgamma"), Types::FLOAT, log_gamma},
    {FORMS("digamma"), Types::FLOAT, digamma},
    {"polygamma polygamma.out", Types::FLOAT,
     [](const Call &c) -> Results { return {polygamma_of(c.integer(0), c[1])}; }},
    {"polygamma_", Types::FLOAT,
     [](const Call &c) -> Results { return {polygamma_of(c.integer(1), c[0])}; }},
    {"special_zeta special_zeta.self_scalar special_zeta.other_scalar special_zeta.out "
     "special_zeta.self_scalar_out special_zeta.other_scalar_out",
     Types::FLOAT, zeta},
    {WITH_OUT("special_bessel_j0"), Types::FLOAT, bessel_j0},
    {WITH_OUT("special_bessel_j1"), Types::FLOAT, bessel_j1},
    {WITH_OUT("special_bessel_y0"), Types::FLOAT, bessel_y0},
    {WITH_OUT("special_bessel_y1"), Types::FLOAT, bessel_y1},
    {FORMS("i0") " " WITH_OUT("special_modified_bessel_i0"), Types::FLOAT,
     [](const Call &c) { return modified_i0(c, false); }},
    {WITH_OUT("special_i0e"), Types::FLOAT, [](const Call &c) { return modified_i0(c, true); }},
    {WITH_OUT("special_i1") " " WITH_OUT("special_modified_bessel_i1"), Types::FLOAT,
     [](const Call &c) { return modified_i1(c, false); }},
    {WITH_OUT("special_i1e"), Types::FLOAT, [](const Call &c) { return modified_i1(c, true); }},
    {WITH_OUT("special_modified_bessel_k0"), Types::FLOAT, modified_bessel_k<0, false>},
    {WITH_OUT("special_modified_bessel_k1"), Types::FLOAT, modified_bessel_k<1, false>},
    {WITH_OUT("special_scaled_modified_bessel_k0"), Types::FLOAT, modified_bessel_k<0, true>},
    {WITH_OUT("special_scaled_modified_bessel_k1"), Types::FLOAT, modified_bessel_k<1, true>},
    {WITH_OUT("special_spherical_bessel_j0"), Types::FLOAT, spherical_bessel},
    {WITH_OUT("special_airy_ai"), Types::FLOAT, airy},
    {POLYNOMIAL("special_chebyshev_polynomial_t"), Types::FLOAT, polynomial<chebyshev_t, false>},
    {POLYNOMIAL("special_chebyshev_polynomial_u"), Types::FLOAT, polynomial<chebyshev_u, false>},
    {POLYNOMIAL("special_chebyshev_polynomial_v"), Types::FLOAT, polynomial<chebyshev_v, false>},
    {POLYNOMIAL("special_chebyshev_polynomial_w"), Types::FLOAT, polynomial<chebyshev_w, false>},
    {POLYNOMIAL("special_shifted_chebyshev_polynomial_t"), Types::FLOAT,
     polynomial<chebyshev_t, true>},
    {POLYNOMIAL("special_shifted_chebyshev_polynomial_u"), Types::FLOAT,
     polynomial<chebyshev_u, true>},
    {POLYNOMIAL("special_shifted_chebyshev_polynomial_v"), Types::FLOAT,
     polynomial<chebyshev_v, true>},
    {POLYNOMIAL("special_shifted_chebyshev_polynomial_w"), Types::FLOAT,
     polynomial<chebyshev_w, true>},
    {POLYNOMIAL("special_hermite_polynomial_h"), Types::FLOAT, polynomial<hermite_h, false>},
    {POLYNOMIAL("special_hermite_polynomial_he"), Types::FLOAT, polynomial<hermite_he, false>},
    {POLYNOMIAL("special_laguerre_polynomial_l"), Types::FLOAT, polynomial<laguerre, false>},
    {POLYNOMIAL("special_legendre_polynomial_p"), Types::FLOAT, polynomial<legendre, false>},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    add_operators(library, TABLE, Sharing::WHOLE);
}

} // namespace
} // namespace halyard
