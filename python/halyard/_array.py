"""The methods of Array that are written in Python. Its operators are in C (src/array.c)."""
from . import _core
from . import _dtypes as dt
from ._core import Array
from ._create import asarray, astype, cast, item, to_device, tolist, wide
from ._device import Error, make_error
from ._elementwise import clip, hook
from ._format import array_repr, array_str
from ._index import getitem, setitem
from ._move import matrix_transpose, reshape
from ._reduce import all as all_of, any as any_of, argmax, argmin, max, mean, min, prod, std, sum
from ._reduce import var

__all__ = ["Array", "evaluate"]

_core.set_hooks(hook, make_error, dt.by_type)

# DLDeviceType of devices whose memory has no address for others.
DLPACK_KINDS = {"opencl": 4, "vulkan": 7, "metal": 8}


def evaluate(*arrays):
    """Submits the work that computes the arrays, together where that takes fewer kernels, and does
    not wait. Reading an element does this by itself."""
    _core.evaluate(list(arrays))
    for context in {x._context for x in arrays}:
        context.flush()


def _bool(self):
    if self.size != 1:
        raise TypeError(f"an array of the shape {self.shape} is not true or false: use any(x) or "
                        "all(x), and &, | and ~ instead of and, or and not")
    return bool(item(self))


def _real_item(self, name):
    if dt.is_complex(self.dtype):
        raise TypeError(f"{name}: expected a real number, got an array of {self.dtype}")
    return item(self)


def _int(self):
    return int(_real_item(self, "int"))


def _float(self):
    return float(_real_item(self, "float"))


def _complex(self):
    return complex(item(self))


def _index(self):
    if not dt.is_integer(self.dtype):
        raise TypeError(f"only an array of integers is an index, got {self.dtype}")
    return item(self)


def _len(self):
    if not self.ndim:
        raise TypeError("an array of rank 0 has no length")
    return self.shape[0]


def _iter(self):
    return iter([getitem(self, i) for i in range(_len(self))])


def _contains(self, value):
    return bool(any_of(self == value))


def _format(self, spec):
    if self.ndim == 0 and spec:
        return format(item(self), spec)
    return format(array_str(self), spec)


def _array_namespace(self, /, *, api_version=None):
    import halyard
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"api_version: expected None or up to 2025.12, got {api_version!r}")
    return halyard


def _numpy(self, dtype=None, copy=None):
    """The elements as a numpy.ndarray, a copy; needs NumPy."""
    import numpy
    made = numpy.array(memoryview(wide(self)))
    return made if dtype is None else made.astype(dtype)


def _dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A capsule of DLPack. On a processor and on the cuda plugin it shares the array's memory,
    read-only; on other devices, for ``dl_device=(1, 0)`` and with ``copy=True`` it is a copy, in
    memory of the host. Consumers older than DLPack 1.0, which know no read-only memory, get a copy.
    On the cuda plugin the work that ``stream`` gets later comes after the array's; -1: no order."""
    kind, _, _ = _core.dlpack_device(self._context)
    if dl_device is not None:
        wanted = int(getattr(dl_device[0], "value", dl_device[0]))
        if wanted != 1 and (wanted, dl_device[1]) != self.__dlpack_device__():
            raise BufferError(f"dl_device: expected the array's device or (1, 0), got {dl_device}")
        to_host = wanted == 1
    else:
        to_host = False
    versioned = max_version is not None and max_version[0] >= 1
    by_stream = kind == 2 and not to_host
    if kind == 0 and not to_host and copy is not True:
        raise BufferError(f"the memory of {self.device} has no address that others can use: ask "
                          "for a copy on the host by dl_device=(1, 0)")
    copies = bool(copy) or not versioned or not (kind == 1 or by_stream)
    if copy is False and copies and self.size and versioned:
        raise BufferError("copy: the export needs a copy, got False")
    try:
        if by_stream:
            x = _core.copy(self) if copies else self
            return _core.dlpack_export(x, False, versioned, 1 if stream is None else stream)
        return _core.dlpack_export(self, copies, versioned, None)
    except Error as error:
        raise BufferError(str(error)) from error


def _dlpack_device(self, /):
    """(kind, index) of the device in DLPack's terms."""
    kind, index, _ = _core.dlpack_device(self._context)
    return (kind, index) if kind else (DLPACK_KINDS.get(self.device._plugin, 12),
                                       self.device._index)


def _transpose(self):
    made = _core.quick_transpose(self)
    if made is None:
        raise ValueError(f"T: expected a matrix, got the shape {self.shape}")
    return made


def _reduce_ex(self, protocol):
    return (_unpickled, (self.dtype.name, self.shape, bytes(wide(self))))


def _unpickled(name, shape, data):
    dtype = dt.by_name[name]
    stored = dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype
    from ._device import context_of
    return cast(_core.from_buffer(context_of(None), stored._type, shape, data), dtype)


def _reshape(self, *shape):
    """x with another shape of as many elements, given as a tuple or as lengths; one may be -1."""
    return reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)


def _flatten(self):
    """The elements with one axis, row by row."""
    return reshape(self, (-1,))


def _copy(self):
    """An array of the same elements that assignment to x does not change."""
    return asarray(self, copy=True)


def _method(function):
    def method(self, *arguments, **names):
        return function(self, *arguments, **names)
    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


_METHODS = {
    "__bool__": _bool, "__int__": _int, "__float__": _float, "__complex__": _complex,
    "__index__": _index, "__len__": _len, "__iter__": _iter, "__contains__": _contains,
    "__getitem__": getitem, "__setitem__": setitem, "__repr__": array_repr, "__str__": array_str,
    "__format__": _format, "__array_namespace__": _array_namespace, "__array__": _numpy,
    "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device, "__reduce_ex__": _reduce_ex,
    "to_device": to_device, "item": item, "tolist": tolist, "astype": astype,
    "T": property(_transpose, doc="A view of a matrix with its axes exchanged."),
    "mT": property(matrix_transpose, doc="A view with the last two axes exchanged."),
    "sum": sum, "mean": mean, "max": max, "min": min, "prod": prod, "std": std, "var": var,
    "all": all_of, "any": any_of, "argmax": argmax, "argmin": argmin, "clip": clip,
    "reshape": _reshape, "flatten": _flatten, "copy": _copy,
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of the elements."),
    "__array_priority__": 1000.0,
    "__dlpack_c_exchange_api__": _core.dlpack_table(),
}
for _name, _value in _METHODS.items():
    setattr(Array, _name, _value)
