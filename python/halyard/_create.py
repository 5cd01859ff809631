"""Making arrays, and their way to the host."""
import math as _math

from . import _core
from . import _dtypes as dt
from ._core import Array
from ._device import Device, Error, context_of

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
           "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
           "astype"]

UNARY, BINARY = _core.UNARY, _core.BINARY
_EXACT = 2 ** 53


def shape_tuple(shape):
    return (int(shape),) if not isinstance(shape, (tuple, list)) else tuple(shape)


def cast(x, dtype):
    """x as dtype; x itself if it has it."""
    return x if x._type == dtype._type else _core.cast(dtype._type, x)


def check_range(dtype, value):
    limits = dt.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError(f"{value} is out of the range of {dtype}")


def scalar(context, dtype, value):
    """An array of rank 0 with a Python number, converted to dtype."""
    return filled(context, dtype, (), value)


def filled(context, dtype, shape, value):
    if dt.is_integer(dtype):
        value = int(value)
        check_range(dtype, value)
        if abs(value) > _EXACT:
            one = _core.from_list(context, dtype._type, (), [value])
            return _core.broadcast(one, shape) if shape else one
    elif dtype is dt.bool:
        value = 1 if value else 0
    return _core.full(context, dtype._type, shape,
                      complex(value) if dt.is_complex(dtype) else float(value))


def like(x, y):
    """The Python number or array y as an array next to the array x, of the promoted dtype."""
    if isinstance(y, Array):
        return y
    return scalar(x._context, dt.scalar_dtype(x.dtype, y), y)


def iota(context, dtype, count, start=0, step=1):
    made = _core.iota(context, dt.part_of(dtype)._type, count, float(start), float(step))
    return cast(made, dtype)


def indices(context, count):
    """0, 1, ... count - 1 as int64."""
    return _core.iota(context, dt.int64._type, count, 0.0, 1.0)


# ---- From Python's objects ----

def _scan(obj, shape, depth, flat, kinds):
    if isinstance(obj, (list, tuple)):
        if len(shape) == depth and not flat:
            shape.append(len(obj))
        elif len(shape) == depth:
            raise ValueError("asarray: obj: the nested sequences have different depths")
        elif shape[depth] != len(obj):
            raise ValueError("asarray: obj: the nested sequences have different lengths")
        for part in obj:
            _scan(part, shape, depth + 1, flat, kinds)
        return
    if len(shape) != depth:
        raise ValueError("asarray: obj: the nested sequences have different depths")
    if isinstance(obj, Array):
        obj = item(obj)
    kind = type(obj)
    if kind not in (bool, int, float, complex):
        if isinstance(obj, complex):
            obj, kind = complex(obj), complex
        elif hasattr(obj, "__index__"):
            obj, kind = obj.__index__(), int
        elif isinstance(obj, float) or hasattr(obj, "__float__"):
            obj, kind = float(obj), float
        else:
            raise TypeError(f"asarray: obj: expected numbers, got {kind.__name__}")
    kinds.add(kind)
    flat.append(obj)


def _from_nested(obj, dtype, context):
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(x, Array) for x in obj):
        from ._move import stack
        made = stack(list(obj))
        return made if dtype is None else cast(made, dtype)
    shape, flat, kinds = [], [], set()
    _scan(obj, shape, 0, flat, kinds)
    if dtype is None:
        dtype = (dt.complex64 if complex in kinds else dt.float32 if float in kinds or not kinds
                 else dt.int64 if int in kinds else dt.bool)
        if dtype is dt.int64 and flat and max(flat) > 2 ** 63 - 1:
            dtype = dt.uint64
    if dt.is_integer(dtype):
        flat = [int(x) for x in flat]
    if dtype in (dt.float16, dt.bfloat16):
        return cast(_core.from_list(context, dt.float32._type, shape, flat), dtype)
    return _core.from_list(context, dtype._type, shape, flat)


_FORMATS = {"?": "bool", "e": "float16", "f": "float32", "d": "float64", "Zf": "complex64",
            "Zd": "complex128"}


def _from_view(view, context):
    letter = view.format.lstrip("@=<")
    if letter in _FORMATS:
        dtype = dt.by_name[_FORMATS[letter]]
    elif letter in "bhilqn":
        dtype = dt.by_name[f"int{8 * view.itemsize}"]
    elif letter in "BHILQN":
        dtype = dt.by_name[f"uint{8 * view.itemsize}"]
    else:
        raise TypeError(f"asarray: obj: the buffer has elements of the format {view.format!r}")
    data = view if view.c_contiguous else view.tobytes()
    return _core.from_buffer(context, dtype._type, view.shape, data)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of ``obj``: an array, a number, nested lists of numbers, or an object with the
    buffer protocol or DLPack (NumPy, PyTorch, array.array).

    Floats become float32 and ints int64 unless ``dtype`` says otherwise. Elements of other
    libraries are copied, as they may change before the array is computed; ``copy=False`` shares
    the memory of objects with DLPack as ``from_dlpack`` does, or raises.

    >>> import halyard as hx
    >>> hx.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if dtype is not None:
        dtype = dt.as_dtype(dtype)
    if isinstance(obj, Array):
        x = to_device(obj, device) if device is not None else obj
        if x is not obj or (dtype is not None and x._type != dtype._type):
            if copy is False:
                raise ValueError("asarray: copy: the conversion needs a copy, got False")
            return x if dtype is None else cast(x, dtype)
        return _share(x) if copy else x
    if copy is False:
        if not hasattr(obj, "__dlpack__"):
            raise ValueError("asarray: copy: elements of Python's objects are copied, got False")
        made = from_dlpack(obj, device=device, copy=False)
        if dtype is not None and made._type != dtype._type:
            raise ValueError("asarray: copy: the conversion needs a copy, got False")
        return made
    context = context_of(device)
    made = _core.quick_numbers(context, obj, None if dtype is None else dtype._type)
    if made is not None:
        return made
    if isinstance(obj, (bool, int, float, complex, list, tuple)):
        return _from_nested(obj, dtype, context)
    try:
        made = _from_view(memoryview(obj), context)
    except (TypeError, BufferError):
        if not hasattr(obj, "__dlpack__"):
            if hasattr(obj, "__array__"):
                made = _from_view(memoryview(obj.__array__()), context)
            elif hasattr(obj, "__len__") and hasattr(obj, "__getitem__"):
                return _from_nested(list(obj), dtype, context)
            else:
                return _from_nested(obj, dtype, context)
    if made is None:
        made = from_dlpack(obj, device=device, copy=True)
    return made if dtype is None else cast(made, dtype)


def _share(x):
    """Another array with the same elements: assignment to one leaves the other."""
    return _core.unary(UNARY["identity"], x)


def to_device(x, device, /, *, stream=None):
    """x on another device; x itself if it is there."""
    device = Device(device)
    if stream is not None:
        raise ValueError("to_device: stream: expected None")
    if device is x.device:
        return x
    return _core.from_buffer(device._context, x._type, x.shape, _bytes(x))


def _bytes(x):
    if x.dtype is dt.bfloat16:
        return memoryview(_core.bitcast(dt.uint16._type, _core.copy(x)))
    return memoryview(x)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of any object with ``__dlpack__``. On a processor and on a device of the cuda plugin
    it is the object's memory, which stays alive and is never written: what its owner writes to it
    later is seen by what is computed later. On a GPU the object's library orders its stream before
    the device's, without a wait of the host. Memory is copied with ``copy=True``, and where the device cannot use it in place unless
    ``copy=False``, which raises there."""
    if isinstance(x, Array):
        moved = to_device(x, device) if device is not None else x
        if moved is x:
            return _share(x)
        if copy is False:
            raise ValueError("from_dlpack: copy: another device needs a copy, got False")
        return moved
    kind, index = (int(number) for number in x.__dlpack_device__())
    if kind == 2 and device is None:
        device = f"cuda:{index}"
    context = context_of(device)
    own_kind, own_index, stream = _core.dlpack_device(context)
    if kind in (1, 3):
        arguments = {}
    elif (kind, index) == (own_kind, own_index) and copy is not True:
        arguments = {"stream": stream}
    elif copy is False:
        raise BufferError("from_dlpack: copy: memory of another device is copied, got False")
    else:
        arguments = {"dl_device": (1, 0), "copy": True}
    try:
        capsule = x.__dlpack__(max_version=(1, 3), **arguments)
    except TypeError:
        arguments.pop("dl_device", None), arguments.pop("copy", None)
        capsule = x.__dlpack__(**arguments)
    try:
        return _core.dlpack_import(context, capsule, 2 if copy is None else int(copy))
    except Error as error:
        if copy is False:
            raise BufferError(str(error)) from error
        raise


# ---- To Python's objects ----

def wide(x):
    """x, or its elements as float32 if the host has no such type."""
    return cast(x, dt.float32) if x.dtype in (dt.float16, dt.bfloat16) else x


def item(x):
    """The element of an array of one element, as bool, int, float or complex."""
    if x.size != 1:
        raise TypeError(f"only an array of one element is a number, got the shape {x.shape}")
    return _core.item(wide(x))


def tolist(x):
    """The elements as nested lists of bool, int, float or complex."""
    flat = _core.values(wide(x))
    for length in reversed(x.shape[1:]):
        if not length:
            return _nested_empty(x.shape)
        flat = [flat[i:i + length] for i in range(0, len(flat), length)]
    return flat if x.ndim else flat[0]


def _nested_empty(shape):
    if not shape or shape[0] == 0:
        return []
    return [_nested_empty(shape[1:]) for _ in range(shape[0])]


# ---- The standard's creation functions ----

def full(shape, fill_value, *, dtype=None, device=None):
    """An array of ``shape`` whose elements are ``fill_value``. It has the memory of one element."""
    if dtype is None:
        dtype = (dt.bool if isinstance(fill_value, bool)
                 else dt.int64 if isinstance(fill_value, int)
                 else dt.float32 if isinstance(fill_value, float)
                 else dt.complex64 if isinstance(fill_value, complex)
                 else dt.dtype_of(fill_value))
    if isinstance(fill_value, Array):
        fill_value = item(fill_value)
    return filled(context_of(device), dt.as_dtype(dtype), shape_tuple(shape), fill_value)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros, float32 unless ``dtype`` says otherwise."""
    return full(shape, 0, dtype=dtype or dt.float32, device=device)


def ones(shape, *, dtype=None, device=None):
    """An array of ones, float32 unless ``dtype`` says otherwise."""
    return full(shape, 1, dtype=dtype or dt.float32, device=device)


def empty(shape, *, dtype=None, device=None):
    """As ``zeros``: an array takes memory when its elements differ."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """``full`` with the shape, and by default the dtype and device, of ``x``."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x, /, *, dtype=None, device=None):
    """``zeros`` with the shape, and by default the dtype and device, of ``x``."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """``ones`` with the shape, and by default the dtype and device, of ``x``."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """``empty`` with the shape, and by default the dtype and device, of ``x``."""
    return full_like(x, 0, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """The numbers start, start + step, ... below stop; with one argument from 0 to it."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = dt.float32 if any(isinstance(v, float) for v in (start, stop, step)) else dt.int64
    dtype = dt.as_dtype(dtype)
    if all(isinstance(v, int) for v in (start, stop, step)):
        count = max(0, -((start - stop) // step))
    else:
        count = max(0, _math.ceil((stop - start) / step))
    context = context_of(device)
    if dt.is_integer(dtype):
        start, step = int(start), int(step)
        if count:
            check_range(dtype, start)
            check_range(dtype, start + (count - 1) * step)
        if max(abs(start), abs(start + count * step)) > _EXACT:
            return _core.from_list(context, dtype._type, (count,),
                                   [start + i * step for i in range(count)])
    return iota(context, dtype, count, start, step)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """``num`` numbers with equal distances from start to stop, which is the last one unless
    ``endpoint`` is false."""
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(stop, complex)
        dtype = dt.complex64 if is_complex else dt.float32
    dtype = dt.as_dtype(dtype)
    context = context_of(device)
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else 0.0
    values = [start + i * step for i in range(num)]
    if endpoint and num > 1:
        values[-1] = stop
    if dt.is_integer(dtype):
        values = [int(v) for v in values]
    if dtype in (dt.float16, dt.bfloat16):
        return cast(_core.from_list(context, dt.float32._type, (num,), values), dtype)
    if dt.is_inexact(dtype):
        values = [complex(v) if dt.is_complex(dtype) else float(v) for v in values]
    return _core.from_list(context, dtype._type, (num,), values)


def _diagonal_mask(context, rows, columns, k, comparison):
    k = max(-rows, min(columns, k))
    row = _core.reshape(indices(context, rows), (rows, 1))
    column = _core.reshape(indices(context, columns), (1, columns))
    return comparison(column - row, k)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix of zeros with ones on diagonal ``k``."""
    n_cols = n_rows if n_cols is None else n_cols
    dtype = dt.float32 if dtype is None else dt.as_dtype(dtype)
    context = context_of(device)
    if n_rows == 0 or n_cols == 0:
        return filled(context, dtype, (n_rows, n_cols), 0)
    return cast(_diagonal_mask(context, n_rows, n_cols, k, lambda d, k: d == k), dtype)


def _triangle(x, k, comparison):
    if x.ndim < 2:
        raise ValueError(f"expected a matrix or a stack of matrices, got the shape {x.shape}")
    if x.size == 0:
        return _share(x)
    keep = _diagonal_mask(x._context, x.shape[-2], x.shape[-1], k, comparison)
    return _core.where(keep, x, filled(x._context, x.dtype, (), 0))


def tril(x, /, *, k=0):
    """x [..., n, m] with zeros above diagonal ``k``."""
    return _triangle(x, k, lambda d, k: d <= k)


def triu(x, /, *, k=0):
    """x [..., n, m] with zeros below diagonal ``k``."""
    return _triangle(x, k, lambda d, k: d >= k)


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of a grid, one array for each of the given ones, which have rank 1."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: expected 'xy' or 'ij', got {indexing!r}")
    count = len(arrays)
    lengths = [x.shape[0] if x.ndim else 1 for x in arrays]
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    result = []
    for i, x in enumerate(arrays):
        shape = [1] * count
        shape[order.index(i)] = lengths[i]
        grid = [lengths[j] for j in order]
        result.append(_core.broadcast(_core.reshape(x, shape), grid) if count else x)
    return tuple(result)


def astype(x, dtype, /, *, copy=True, device=None):
    """x with another dtype; without ``copy`` x itself if it has it."""
    if not isinstance(x, Array):
        raise TypeError(f"astype: x: expected a halyard.Array, got {type(x).__name__}")
    dtype = dt.as_dtype(dtype)
    if device is not None:
        x = to_device(x, device)
    if x._type == dtype._type:
        return _share(x) if copy else x
    return cast(x, dtype)
