"""The standard's elementwise functions, on top of those of ops. What ops lacks is composed of what
it has; fusion makes one kernel of the parts."""
import math as _math
from sys import modules as _modules

from . import _core
from . import _dtypes as dt
from ._core import Array
from ._create import asarray, cast, filled, full, like, scalar, _share

BINARY, UNARY, COMPLEX = _core.BINARY, _core.UNARY, _core.COMPLEX

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor",
    "floor_divide", "greater", "greater_equal", "hypot", "isfinite", "isinf", "isnan", "less",
    "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter",
    "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit",
    "sin", "sinh", "square", "sqrt", "subtract", "tan", "tanh", "trunc", "where", "conj", "imag",
    "erf", "sigmoid", "silu", "gelu", "softplus", "relu", "rsqrt", "exp2",
]

_bool = bool


def unary(name, x):
    return _core.unary(UNARY[name], x)


def binary(name, x, y):
    return _core.binary(BINARY[name], x, y)


def _refuse(function, x, wanted):
    hint = "; use astype(x, float32)" if wanted == "floats" else ""
    raise TypeError(f"{function}: expected {wanted}, got an array of {x.dtype}{hint}")


def check_array(function, x):
    if not isinstance(x, Array):
        raise TypeError(f"{function}: expected a halyard.Array, got {type(x).__name__}")


def pair(function, x, y):
    """Two operands, of which one may be a Python number, as arrays of one dtype."""
    if isinstance(x, Array):
        y = like(x, y)
    elif isinstance(y, Array):
        x = like(y, x)
    else:
        raise TypeError(f"{function}: expected an array, got {type(x).__name__} and "
                        f"{type(y).__name__}")
    if x._type == y._type:
        return x, y
    dtype = dt.promote(x.dtype, y.dtype)
    return cast(x, dtype), cast(y, dtype)


# ---- Functions of one value ----

def _float_function(name, ops_name, text):
    number, quick = UNARY[ops_name], _core.quick_unary

    def function(x, /):
        made = quick(number, x)
        if made is not None:
            return made
        check_array(name, x)
        if dt.is_complex(x.dtype) and ops_name in COMPLEX:
            return _core.complex_unary(COMPLEX[ops_name], x)
        if not dt.is_float(x.dtype):
            _refuse(name, x, "floats")
        return unary(ops_name, x)
    return _named(function, name, text)


def _named(function, name, text):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


acos = _float_function("acos", "acos", "The angle in radians, 0 to pi, whose cosine is x.")
asin = _float_function("asin", "asin", "The angle in radians, -pi/2 to pi/2, whose sine is x.")
atan = _float_function("atan", "atan", "The angle in radians, -pi/2 to pi/2, whose tangent is x.")
cos = _float_function("cos", "cos", "The cosine of x in radians.")
sin = _float_function("sin", "sin", "The sine of x in radians.")
tan = _float_function("tan", "tan", "The tangent of x in radians.")
cosh = _float_function("cosh", "cosh", "The hyperbolic cosine.")
sinh = _float_function("sinh", "sinh", "The hyperbolic sine.")
tanh = _float_function("tanh", "tanh", "The hyperbolic tangent.")
exp = _float_function("exp", "exp", "e to the power x.")
exp2 = _float_function("exp2", "exp2", "2 to the power x.")
expm1 = _float_function("expm1", "expm1", "exp(x) - 1, exact near 0.")
log = _float_function("log", "log", "The natural logarithm.")
log1p = _float_function("log1p", "log1p", "log(1 + x), exact near 0.")
log2 = _float_function("log2", "log2", "The logarithm to base 2.")
log10 = _float_function("log10", "log10", "The logarithm to base 10.")
sqrt = _float_function("sqrt", "sqrt", "The square root; NaN below 0.")
rsqrt = _float_function("rsqrt", "rsqrt", "1 / sqrt(x).")
erf = _float_function("erf", "erf", "The error function.")
sigmoid = _float_function("sigmoid", "sigmoid", "1 / (1 + exp(-x)).")
silu = _float_function("silu", "silu", "x sigmoid(x).")
gelu = _float_function("gelu", "gelu", "x (1 + erf(x / sqrt 2)) / 2.")
softplus = _float_function("softplus", "softplus", "log(1 + exp(x)), without overflow.")


def _number_function(name, ops_name, text):
    number, quick = UNARY[ops_name], _core.quick_unary

    def function(x, /):
        made = quick(number, x)
        if made is not None:
            return made
        check_array(name, x)
        if x.dtype is dt.bool:
            _refuse(name, x, "numbers")
        return unary(ops_name, x)
    return _named(function, name, text)


negative = _number_function("negative", "neg", "-x; integers wrap.")
positive = _number_function("positive", "identity", "x.")
relu = _number_function("relu", "relu", "max(x, 0); NaN stays.")


def _complex_function(name, of_reals, of_complex, text):
    def function(x, /):
        if isinstance(x, Array) and dt.is_complex(x.dtype):
            return of_complex(x)
        return of_reals(x)
    return _named(function, name, text)


abs = _complex_function("abs", _number_function("abs", "abs", ""),
                        lambda x: _core.complex_unary(COMPLEX["abs"], x),
                        "The absolute value; of complex numbers a float.")
square = _complex_function("square", _number_function("square", "square", ""),
                           lambda x: binary("mul", x, x), "x x; integers wrap.")
reciprocal = _complex_function("reciprocal", _float_function("reciprocal", "reciprocal", ""),
                               lambda x: binary("div", scalar(x._context, x.dtype, 1), x),
                               "1 / x.")
real = _complex_function("real", _number_function("real", "identity", ""),
                         lambda x: _core.complex_real(x),
                         "The real part, a view; x itself of real numbers.")
conj = _complex_function("conj", _number_function("conj", "identity", ""),
                         lambda x: _core.complex_unary(COMPLEX["conj"], x),
                         "x with the sign of the imaginary part changed.")


def squared(x):
    """|x|^2, of complex numbers a float."""
    if dt.is_complex(x.dtype):
        re, im = real(x), imag(x)
        return re * re + im * im
    return x * x


def imag(x, /):
    """The imaginary part, a view; zeros of real numbers."""
    check_array("imag", x)
    if dt.is_complex(x.dtype):
        return _core.complex_imag(x)
    if x.dtype is dt.bool:
        _refuse("imag", x, "numbers")
    return filled(x._context, x.dtype, x.shape, 0)


def sign(x, /):
    """-1, 0 or 1; NaN stays. Of complex numbers x / abs(x), 0 of 0."""
    check_array("sign", x)
    if dt.is_complex(x.dtype):
        return _core.complex_unary(COMPLEX["sign"], x)
    if x.dtype is dt.bool:
        _refuse("sign", x, "numbers")
    made = unary("sign", x)
    if dt.is_float(x.dtype):  # ops keeps the sign of zeros
        zero = filled(x._context, x.dtype, (), 0)
        made = _core.where(binary("eq", x, zero), zero, made)
    return made


def _rounding_function(name, text):
    def function(x, /):
        check_array(name, x)
        if x.dtype is dt.bool or dt.is_complex(x.dtype) and name != "round":
            _refuse(name, x, "real numbers")
        return unary(name, x) if dt.is_inexact(x.dtype) else _share(x)
    return _named(function, name, text)


ceil = _rounding_function("ceil", "The least whole number that is not below x.")
floor = _rounding_function("floor", "The greatest whole number that is not above x.")
trunc = _rounding_function("trunc", "The whole number next to x towards 0.")
round = _rounding_function("round", "The nearest whole number; halves to even. Of complex numbers both parts.")


def _test_function(name, ops_name, of_integers, text):
    def function(x, /):
        check_array(name, x)
        if dt.is_float(x.dtype):
            return unary(ops_name, x)
        if dt.is_complex(x.dtype):
            return _core.complex_test(UNARY[ops_name], x)
        if x.dtype is dt.bool:
            _refuse(name, x, "numbers")
        return full(x.shape, of_integers, dtype=dt.bool, device=x.device)
    return _named(function, name, text)


isnan = _test_function("isnan", "is_nan", False, "Whether x is NaN.")
isinf = _test_function("isinf", "is_infinite", False, "Whether x is infinite.")
isfinite = _test_function("isfinite", "is_finite", True, "Whether x is neither infinite nor NaN.")


def bitwise_invert(x, /):
    """~x; of bool, not x."""
    check_array("bitwise_invert", x)
    if dt.is_inexact(x.dtype):
        _refuse("bitwise_invert", x, "integers or bool")
    return unary("not", x)


def logical_not(x, /):
    """not x, of bool."""
    check_array("logical_not", x)
    return unary("not", _truth("logical_not", x))


def _truth(name, x):
    return x if x.dtype is dt.bool else not_equal(x, 0)


# ---- Functions of two values ----

def _pair_function(name, ops_name, allowed, text):
    number, quick = BINARY[ops_name], _core.quick_binary
    takes_floats = allowed(dt.float32)

    def function(x1, x2, /):
        if takes_floats and (made := quick(number, x1, x2)) is not None:
            return made
        x1, x2 = pair(name, x1, x2)
        if not allowed(x1.dtype):
            _refuse(name, x1, "other dtypes")
        return binary(ops_name, x1, x2)
    return _named(function, name, text)


def _is_number(dtype):
    return dtype is not dt.bool


def _is_real(dtype):
    return dtype is not dt.bool and not dt.is_complex(dtype)


def _is_whole(dtype):
    return not dt.is_inexact(dtype)


def _is_any(dtype):
    return True


add = _pair_function("add", "add", _is_number, "x1 + x2; integers wrap.")
subtract = _pair_function("subtract", "sub", _is_number, "x1 - x2; integers wrap.")
multiply = _pair_function("multiply", "mul", _is_number, "x1 x2; integers wrap.")
maximum = _pair_function("maximum", "max", _is_real, "The greater one; NaN if either is NaN.")
minimum = _pair_function("minimum", "min", _is_real, "The lesser one; NaN if either is NaN.")
atan2 = _pair_function("atan2", "atan2", dt.is_float,
                       "The angle in radians of the point (x2, x1), -pi to pi.")
bitwise_and = _pair_function("bitwise_and", "and", _is_whole, "x1 & x2.")
bitwise_or = _pair_function("bitwise_or", "or", _is_whole, "x1 | x2.")
bitwise_xor = _pair_function("bitwise_xor", "xor", _is_whole, "x1 ^ x2.")
equal = _pair_function("equal", "eq", _is_any, "x1 == x2, of bool.")
not_equal = _pair_function("not_equal", "ne", _is_any, "x1 != x2, of bool.")
less = _pair_function("less", "lt", _is_real, "x1 < x2, of bool.")
less_equal = _pair_function("less_equal", "le", _is_real, "x1 <= x2, of bool.")
greater = _pair_function("greater", "gt", _is_real, "x1 > x2, of bool.")
greater_equal = _pair_function("greater_equal", "ge", _is_real, "x1 >= x2, of bool.")


def _logical_function(name, ops_name, text):
    def function(x1, x2, /):
        x1, x2 = pair(name, x1, x2)
        return binary(ops_name, _truth(name, x1), _truth(name, x2))
    return _named(function, name, text)


logical_and = _logical_function("logical_and", "and", "x1 and x2, of bool.")
logical_or = _logical_function("logical_or", "or", "x1 or x2, of bool.")
logical_xor = _logical_function("logical_xor", "xor", "Whether x1 and x2 differ, of bool.")


def divide(x1, x2, /):
    """x1 / x2; of integers as float32."""
    x1, x2 = pair("divide", x1, x2)
    if not dt.is_inexact(x1.dtype):
        if x1.dtype is dt.bool:
            _refuse("divide", x1, "numbers")
        x1, x2 = cast(x1, dt.float32), cast(x2, dt.float32)
    return binary("div", x1, x2)


def floor_divide(x1, x2, /):
    """x1 // x2: the greatest whole number that is not above the quotient, as Python rounds; of
    integers, 0 where x2 is 0."""
    x1, x2 = pair("floor_divide", x1, x2)
    if not _is_real(x1.dtype):
        _refuse("floor_divide", x1, "real numbers")
    zero = filled(x1._context, x1.dtype, (), 0)
    one = filled(x1._context, x1.dtype, (), 1)
    if x1.dtype.kind == "unsigned integer":
        return binary("div", x1, x2)
    if dt.is_integer(x1.dtype):
        quotient = binary("div", x1, x2)
        rest = binary("rem", x1, x2)
        below = binary("and", binary("ne", rest, zero),
                       binary("lt", binary("xor", rest, x2), zero))
        below = binary("and", below, binary("ne", x2, zero))
        return _core.where(below, binary("sub", quotient, one), quotient)
    quotient = binary("div", x1, x2)
    rest = binary("rem", x1, x2)
    below = binary("and", binary("ne", rest, zero),
                   binary("ne", binary("lt", rest, zero), binary("lt", x2, zero)))
    exact = binary("div", binary("sub", x1, rest), x2)
    exact = unary("round", _core.where(below, binary("sub", exact, one), exact))
    # Without a finite remainder, and for results of 0, whose sign is the quotient's.
    plain = binary("or", binary("or", unary("is_infinite", x1), unary("is_infinite", x2)),
                   binary("or", binary("eq", x2, zero), binary("eq", exact, zero)))
    return _core.where(plain, unary("floor", quotient), exact)


def remainder(x1, x2, /):
    """x1 % x2, with the sign of x2; of integers, 0 where x2 is 0."""
    x1, x2 = pair("remainder", x1, x2)
    if not _is_real(x1.dtype):
        _refuse("remainder", x1, "real numbers")
    rest = binary("rem", x1, x2)
    zero = filled(x1._context, x1.dtype, (), 0)
    if dt.is_integer(x1.dtype):
        if x1.dtype.kind == "unsigned integer":
            return _core.where(binary("eq", x2, zero), zero, rest)
        other = binary("and", binary("ne", rest, zero),
                       binary("lt", binary("xor", rest, x2), zero))
        made = _core.where(other, binary("add", rest, x2), rest)
        return _core.where(binary("eq", x2, zero), zero, made)
    other = binary("and", binary("ne", rest, zero),
                   binary("ne", binary("lt", rest, zero), binary("lt", x2, zero)))
    made = _core.where(other, binary("add", rest, x2), rest)
    # A remainder of 0 has the sign of x2.
    return _core.where(binary("eq", rest, zero),
                       _core.where(binary("lt", x2, zero), unary("neg", zero), zero), made)


def pow(x1, x2, /):
    """x1 to the power x2; integers wrap, and negative powers of them are not defined."""
    x1, x2 = pair("pow", x1, x2)
    if dt.is_inexact(x1.dtype):
        return binary("pow", x1, x2)
    if x1.dtype is dt.bool:
        _refuse("pow", x1, "numbers")
    # Beyond 63 only 0, 1 and -1 have powers that fit: they depend on the lowest bit.
    dtype, context = x1.dtype, x1._context
    one = filled(context, dtype, (), 1)
    zero = filled(context, dtype, (), 0)
    most = filled(context, dtype, (), 63)
    exponent = _core.where(binary("gt", x2, most),
                           binary("add", filled(context, dtype, (), 62), binary("and", x2, one)),
                           x2)
    result, base = one, x1
    for bit in range(6):
        mask = filled(context, dtype, (), 1 << bit)
        taken = binary("ne", binary("and", exponent, mask), zero)
        result = _core.where(taken, binary("mul", result, base), result)
        base = binary("mul", base, base)
    return result


def _shift(name, ops_name, x1, x2):
    x1, x2 = pair(name, x1, x2)
    if not dt.is_integer(x1.dtype):
        _refuse(name, x1, "integers")
    bits = 8 * x1.dtype.itemsize
    context, dtype = x1._context, x1.dtype
    last = filled(context, dtype, (), bits - 1)
    beyond = binary("gt", x2, last)
    if ops_name == "shr":
        return binary("shr", x1, _core.where(beyond, last, x2)) if dt.is_signed(dtype) else \
            _core.where(beyond, filled(context, dtype, (), 0), binary("shr", x1, x2))
    return _core.where(beyond, filled(context, dtype, (), 0), binary("shl", x1, x2))


def bitwise_left_shift(x1, x2, /):
    """x1 << x2; 0 where x2 is at least the number of bits."""
    return _shift("bitwise_left_shift", "shl", x1, x2)


def bitwise_right_shift(x1, x2, /):
    """x1 >> x2, arithmetic for signed integers."""
    return _shift("bitwise_right_shift", "shr", x1, x2)


# ---- Composed functions of floats ----

def _floats(name, *arrays):
    for x in arrays:
        check_array(name, x)
        if not dt.is_float(x.dtype):
            _refuse(name, x, "floats")


def asinh(x, /):
    """The inverse of the hyperbolic sine."""
    if isinstance(x, Array) and dt.is_complex(x.dtype):
        return _core.complex_unary(COMPLEX["asinh"], x)
    _floats("asinh", x)
    size = abs(x)
    squared = size * size
    small = log1p(size + squared / (sqrt(squared + 1) + 1))
    large = log(size) + _math.log(2)
    return copysign(where(size > 1e8, large, small), x)


def acosh(x, /):
    """The inverse of the hyperbolic cosine, at least 0; of real numbers NaN below 1."""
    if isinstance(x, Array) and dt.is_complex(x.dtype):
        return _core.complex_unary(COMPLEX["acosh"], x)
    _floats("acosh", x)
    above = x - 1
    made = log1p(above + sqrt(above * (above + 2)))
    return where(x < 1, float("nan"), where(x > 1e8, log(x) + _math.log(2), made))


def atanh(x, /):
    """The inverse of the hyperbolic tangent; of real numbers NaN beyond 1."""
    if isinstance(x, Array) and dt.is_complex(x.dtype):
        return _core.complex_unary(COMPLEX["atanh"], x)
    _floats("atanh", x)
    size = abs(x)
    return copysign(0.5 * log1p(2 * size / (1 - size)), x)


def hypot(x1, x2, /):
    """sqrt(x1 x1 + x2 x2), without overflow."""
    x1, x2 = pair("hypot", x1, x2)
    _floats("hypot", x1)
    x1, x2 = abs(x1), abs(x2)
    most, least = maximum(x1, x2), minimum(x1, x2)
    ratio = least / where(most == 0, 1.0, most)
    made = most * sqrt(1 + ratio * ratio)
    infinite = logical_or(isinf(x1), isinf(x2))
    return where(infinite, float("inf"), made)


def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2)), without overflow."""
    x1, x2 = pair("logaddexp", x1, x2)
    _floats("logaddexp", x1)
    most = maximum(x1, x2)
    distance = abs(x1 - x2)
    return where(x1 == x2, x1 + _math.log(2), most + log1p(exp(-distance)))


_BITS = {2: dt.int16, 4: dt.int32, 8: dt.int64}


def _bits(x):
    """The bits of floats, as signed integers of the same size."""
    return _core.bitcast(_BITS[x.dtype.itemsize]._type, x)


def signbit(x, /):
    """Whether the sign bit is set, also of -0 and NaN."""
    _floats("signbit", x)
    return _bits(x) < 0


def copysign(x1, x2, /):
    """x1 with the sign of x2."""
    x1, x2 = pair("copysign", x1, x2)
    _floats("copysign", x1)
    size = abs(x1)
    return where(signbit(x2), -size, size)


def nextafter(x1, x2, /):
    """The float next to x1 towards x2."""
    x1, x2 = pair("nextafter", x1, x2)
    _floats("nextafter", x1)
    whole = _BITS[x1.dtype.itemsize]
    bits = _bits(x1)
    away = (x1 < x2) == (bits >= 0)
    moved = where(away, bits + 1, bits - 1)
    least = where(x2 < 0, scalar(x1._context, whole, dt.iinfo(whole).min + 1),
                  scalar(x1._context, whole, 1))
    moved = where(x1 == 0, least, moved)
    made = _core.bitcast(x1._type, _core.copy(moved))
    made = where(x1 == x2, x2, made)
    return where(logical_or(isnan(x1), isnan(x2)), x1 + x2, made)


def clip(x, /, min=None, max=None):
    """x, at least ``min`` and at most ``max``: arrays or numbers; None is no limit."""
    check_array("clip", x)
    if not _is_real(x.dtype):
        _refuse("clip", x, "real numbers")
    made = x
    for limit, function in ((min, "max"), (max, "min")):
        if limit is not None:
            if not isinstance(limit, Array):
                limit = _limit(x, limit, function)
                if limit is None:
                    continue
            made = binary(function, made, cast(limit, x.dtype))
    return _share(x) if made is x else made


def _limit(x, value, function):
    """A number as a limit of x: beyond the range of an integer it is the end of the range."""
    if dt.is_integer(x.dtype):
        if isinstance(value, float) and not _math.isinf(value) and value == value:
            value = _math.ceil(value) if function == "max" else _math.floor(value)
        limits = dt.iinfo(x.dtype)
        value = limits.min if value < limits.min else limits.max if value > limits.max else value
    return scalar(x._context, x.dtype, value)


def where(condition, x1, x2, /):
    """x1 where ``condition`` (bool), else x2; one of these may be a number."""
    made = _core.quick_where(condition, x1, x2)
    if made is not None:
        return made
    check_array("where", condition)
    if isinstance(x1, Array) or isinstance(x2, Array):
        x1, x2 = pair("where", x1, x2)
    else:
        dtype = dt.result_type(*[dt.bool if isinstance(v, _bool) else
                                 dt.int64 if isinstance(v, int) else
                                 dt.complex64 if isinstance(v, complex) else dt.float32
                                 for v in (x1, x2)])
        x1, x2 = (scalar(condition._context, dtype, v) for v in (x1, x2))
    return _core.where(_truth("where", condition), x1, x2)


def _from_numpy(operand, device):
    """The array of a NumPy array, the Python number of a NumPy scalar, or the operand itself."""
    numpy = _modules.get("numpy")
    if numpy and isinstance(operand, numpy.generic):
        return operand.item()
    if numpy and isinstance(operand, numpy.ndarray) and operand.dtype.kind in "biufc":
        return asarray(operand, device=device)
    return operand


def hook(name, x, y):
    """What the operators of Array call for operands that need conversion."""
    device = (x if isinstance(x, Array) else y).device
    x, y = _from_numpy(x, device), _from_numpy(y, device)
    for operand in (x, y):
        if not isinstance(operand, (Array, _bool, int, float, complex)):
            return NotImplemented
    if name == "matmul":
        if not (isinstance(x, Array) and isinstance(y, Array)):
            return NotImplemented
        from ._linear import matmul
        return matmul(x, y)
    return globals()[name](x, y)
