"""Element types, their promotion, and what the standard asks about them."""
import math as _math
from collections import namedtuple as _namedtuple

__all__ = ["DType", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
           "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "can_cast", "finfo", "iinfo",
           "isdtype", "result_type"]

_bool, _int, _float, _complex = bool, int, float, complex


class DType:
    """An element type. ``name`` as in NumPy, ``kind`` one of 'bool', 'signed integer',
    'unsigned integer', 'real floating' and 'complex floating', ``itemsize`` in bytes."""

    __slots__ = ("name", "kind", "itemsize", "_type")

    def __init__(self, name, kind, itemsize, number):
        self.name, self.kind, self.itemsize, self._type = name, kind, itemsize, number

    def __repr__(self):
        return f"halyard.{self.name}"

    def __str__(self):
        return self.name

    def __reduce__(self):
        return (_dtype_named, (self.name,))


def _dtype_named(name):
    return by_name[name]


# The numbers are hal_type's (hal/ir_types.h), of complex numbers that of their parts with this bit.
_COMPLEX = 32
bool = DType("bool", "bool", 1, 1)
int8 = DType("int8", "signed integer", 1, 2)
uint8 = DType("uint8", "unsigned integer", 1, 3)
int16 = DType("int16", "signed integer", 2, 4)
uint16 = DType("uint16", "unsigned integer", 2, 5)
int32 = DType("int32", "signed integer", 4, 6)
uint32 = DType("uint32", "unsigned integer", 4, 7)
int64 = DType("int64", "signed integer", 8, 8)
uint64 = DType("uint64", "unsigned integer", 8, 9)
float16 = DType("float16", "real floating", 2, 10)
bfloat16 = DType("bfloat16", "real floating", 2, 11)
float32 = DType("float32", "real floating", 4, 12)
float64 = DType("float64", "real floating", 8, 13)
complex64 = DType("complex64", "complex floating", 8, 12 | _COMPLEX)
complex128 = DType("complex128", "complex floating", 16, 13 | _COMPLEX)

all_dtypes = (bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16,
              float32, float64, complex64, complex128)
by_type = tuple(next((d for d in all_dtypes if d._type == i), None) for i in range(2 * _COMPLEX))
by_name = {d.name: d for d in all_dtypes}
standard = tuple(d for d in all_dtypes if d not in (float16, bfloat16))

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def is_float(dtype):
    return dtype.kind == "real floating"


def is_complex(dtype):
    return dtype.kind == "complex floating"


def is_inexact(dtype):
    """Whether the elements are floats or complex numbers."""
    return dtype.kind in ("real floating", "complex floating")


def part_of(dtype):
    """The dtype of the real and the imaginary part; of other dtypes the dtype itself."""
    return by_type[dtype._type & ~_COMPLEX]


def complex_of(dtype):
    """The dtype of complex numbers whose parts hold the floats of a dtype."""
    return complex128 if part_of(dtype) is float64 else complex64


def is_integer(dtype):
    return dtype.kind in _KINDS["integral"]


def is_signed(dtype):
    return dtype.kind in ("signed integer", "real floating", "complex floating")


def dtype_of(x):
    """The dtype of an array, or that which as_dtype finds."""
    return as_dtype(x) if isinstance(x, (DType, str, type)) else x.dtype


def as_dtype(dtype):
    """A DType, or one named by text, a dtype of NumPy, or one of Python's types bool, int, float
    and complex."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type):
        found = {_bool: bool, _int: int64, _float: float32, _complex: complex64}.get(dtype) or \
            by_name.get(dtype.__name__)
    else:
        found = by_name.get(str(dtype))
    if found is None:
        raise TypeError(f"expected a dtype of halyard, got {dtype!r}")
    return found


def isdtype(dtype, kind):
    """Whether ``dtype`` is ``kind``: a dtype, a kind's name, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: kind: expected one of {sorted(_KINDS)}, got {kind!r}")
    return as_dtype(dtype).kind in _KINDS[kind]


_promotions = {}


def promote(x, y):
    """The dtype that holds both; of an integer and a float, the float. TypeError for uint64 and a
    signed integer, and for bool and a number."""
    if x is y:
        return x
    found = _promotions.get((x, y))
    if found is None:
        found = _promotions[(x, y)] = _promote(x, y)
    return found


def _promote(x, y):
    if (x is bool) != (y is bool):
        raise TypeError(f"no dtype holds both {x} and {y}: convert one by astype")
    if is_complex(x) or is_complex(y):
        parts = [part_of(d) for d in (x, y) if is_inexact(d)]
        return complex_of(parts[0] if len(parts) == 1 else promote(*parts))
    if is_float(x) and is_float(y):
        if x.itemsize == y.itemsize:
            return float32  # float16 and bfloat16
        return max(x, y, key=lambda d: d.itemsize)
    if is_float(x) or is_float(y):
        return x if is_float(x) else y
    if x.kind == y.kind:
        return max(x, y, key=lambda d: d.itemsize)
    signed, unsigned = (x, y) if x.kind == "signed integer" else (y, x)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise TypeError(f"no dtype holds both {x} and {y}: convert one by astype")
    return by_name[f"int{16 * unsigned.itemsize}"]


def scalar_dtype(dtype, scalar):
    """The dtype of an array of ``dtype`` with a Python number."""
    if isinstance(scalar, _bool):
        if dtype is not bool:
            raise TypeError(f"a bool does not combine with an array of {dtype}")
        return dtype
    if isinstance(scalar, _int):
        if dtype is bool:
            raise TypeError("an int does not combine with an array of bool")
        return dtype
    if isinstance(scalar, _float):
        if dtype is bool:
            raise TypeError("a float does not combine with an array of bool")
        return dtype if is_inexact(dtype) else float32
    if isinstance(scalar, _complex):
        if dtype is bool:
            raise TypeError("a complex number does not combine with an array of bool")
        return complex_of(dtype) if is_inexact(dtype) else complex64
    raise TypeError(f"expected an array or a number, got {type(scalar).__name__}")


def result_type(*arrays_and_dtypes):
    """The dtype that an operation on the arguments has: arrays, dtypes and Python numbers."""
    dtypes = [dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (_int, _float, _complex))]
    scalars = [x for x in arrays_and_dtypes if isinstance(x, (_int, _float, _complex))]
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for scalar in scalars:
        result = scalar_dtype(result, scalar)
    return result


def can_cast(from_, to, /):
    """Whether every value of ``from_`` (a dtype or array) is one of ``to`` by promotion."""
    from_, to = dtype_of(from_), as_dtype(to)
    try:
        return promote(from_, to) is to
    except TypeError:
        return False


finfo_object = _namedtuple("finfo_object", "bits eps max min smallest_normal dtype")
iinfo_object = _namedtuple("iinfo_object", "bits max min dtype")

# Bits of the significand with the implicit one, least and highest exponent of normal numbers.
_FLOATS = {float16: (11, -14, 15), bfloat16: (8, -126, 127), float32: (24, -126, 127),
           float64: (53, -1022, 1023)}


def finfo(type, /):
    """Properties of a float dtype, given or of an array: bits, eps, max, min, smallest_normal. Of
    complex numbers those of their parts."""
    dtype = dtype_of(type)
    if not is_inexact(dtype):
        raise TypeError(f"finfo: expected a float dtype, got {dtype}")
    dtype = part_of(dtype)
    digits, least, highest = _FLOATS[dtype]
    most = _math.ldexp(2 - 2.0 ** (1 - digits), highest)
    return finfo_object(8 * dtype.itemsize, 2.0 ** (1 - digits), most, -most, 2.0 ** least, dtype)


def iinfo(type, /):
    """Properties of an integer dtype, given or of an array: bits, max, min."""
    dtype = dtype_of(type)
    if not is_integer(dtype):
        raise TypeError(f"iinfo: expected an integer dtype, got {dtype}")
    bits = 8 * dtype.itemsize
    if dtype.kind == "signed integer":
        return iinfo_object(bits, 2 ** (bits - 1) - 1, -2 ** (bits - 1), dtype)
    return iinfo_object(bits, 2 ** bits - 1, 0, dtype)
