"""Kernels of one's own, built in Python by the calls of hal/ir_build.h; docs/kernels.md teaches
them, docs/ir.md has every operation."""
import contextlib as _contextlib
import ctypes as _ctypes
import os as _os
import struct as _struct
import sys as _sys

from . import _core
from . import _dtypes as dt
from ._core import Array
from ._device import context_of, make_error

__all__ = ["Kernel"]

_NONE = 0xFFFFFFFF
_READ, _WRITE = 1, 2
_hal = _ctypes.CDLL(_core.__file__)  # finds the functions of the libraries that it needs
_u32, _i32, _pointer, _text = _ctypes.c_uint32, _ctypes.c_int32, _ctypes.c_void_p, _ctypes.c_char_p


def _call(name, result, *types):
    function = getattr(_hal, "hal_" + name)
    function.restype, function.argtypes = result, types
    return function


_status_message = _call("status_message", _text)
_create = _call("ir_builder_create", _i32, _text, _ctypes.POINTER(_pointer))
_destroy = _call("ir_builder_destroy", None, _pointer)
_status = _call("ir_builder_get_status", _i32, _pointer)
_group_size = _call("ir_group_size", None, _pointer, _u32, _u32, _u32)
_binding = _call("ir_binding", _u32, _pointer, _text, _i32, _u32)
_shared = _call("ir_shared", _u32, _pointer, _text, _i32, _u32)
_scalar = _call("ir_scalar_value", _u32, _pointer, _text, _i32)
_number = _call("ir_number", _u32, _pointer, _i32, _ctypes.c_double)
_id = _call("ir_id", _u32, _pointer, _u32, _u32)
_global_id = _call("ir_global_id", _u32, _pointer, _u32)
_unary = _call("ir_unary", _u32, _pointer, _u32, _u32)
_binary = _call("ir_binary", _u32, _pointer, _u32, _u32, _u32)
_ternary = _call("ir_ternary", _u32, _pointer, _u32, _u32, _u32, _u32)
_cast = _call("ir_cast", _u32, _pointer, _i32, _u32)
_load = _call("ir_load_wide", _u32, _pointer, _u32, _u32, _i32, _u32, _u32)
_store = _call("ir_store_wide", None, _pointer, _u32, _u32, _i32, _u32, _u32)
_atomic = _call("ir_atomic", _u32, _pointer, _u32, _u32, _u32, _u32, _u32, _u32)
_var = _call("ir_var", _u32, _pointer, _u32)
_get = _call("ir_get", _u32, _pointer, _u32)
_set = _call("ir_set", None, _pointer, _u32, _u32)
_for = _call("ir_for", _u32, _pointer, _u32, _u32, _u32)
_if = _call("ir_if", None, _pointer, _u32)
_else = _call("ir_else", None, _pointer)
_end = _call("ir_end", None, _pointer)
_barrier = _call("ir_barrier", None, _pointer)
_shuffle_xor = _call("ir_shuffle_xor", _u32, _pointer, _u32, _u32)
_reduce = _call("ir_subgroup_reduce", _u32, _pointer, _u32, _u32)
_type_of = _call("ir_type_of", _i32, _pointer, _u32)
_set_position = _call("ir_set_position", None, _pointer, _text, _u32)
_opcode_name = _call("ir_opcode_name", _text, _u32)

_OPCODES = {name.decode(): number for number in range(256)
            if (name := _opcode_name(number)) is not None}
_ATOMICS = ["add", "min", "max", "and", "or", "xor", "exchange", "compare_exchange"]
_REDUCTIONS = ["add", "min", "max"]
_FORMATS = {dt.int32: "i", dt.uint32: "I", dt.int64: "q", dt.uint64: "Q", dt.float32: "f",
            dt.float64: "d"}


class Value:
    """A value of a kernel that is being built. Operators with values and numbers give new ones;
    a number takes the other operand's type."""

    __hash__ = None

    def __init__(self, kernel, number):
        self._kernel = kernel
        self._number = number

    @property
    def dtype(self):
        """Its type: bool, a 32- or 64-bit integer, float32 or float64."""
        return dt.by_type[_type_of(self._kernel._builder, self._number)]

    def cast(self, dtype):
        """The value as another type."""
        made = _cast(self._kernel._builder, dt.as_dtype(dtype)._type, self._number)
        return self._kernel._value(made)

    def __neg__(self):
        return self._kernel.op("neg", self)

    def __invert__(self):
        return self._kernel.op("not", self)

    def __gt__(self, other):
        return self._kernel.op("lt", other, self)

    def __ge__(self, other):
        return self._kernel.op("le", other, self)


def _operator(name):
    def forward(self, other):
        return self._kernel.op(name, self, other)

    def backward(self, other):
        return self._kernel.op(name, other, self)
    return forward, backward


for _method, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div",
                       "floordiv": "div", "mod": "rem", "and": "and", "or": "or", "xor": "xor",
                       "lshift": "shl", "rshift": "shr", "lt": "lt", "le": "le", "eq": "eq",
                       "ne": "ne"}.items():
    _forward, _backward = _operator(_name)
    setattr(Value, f"__{_method}__", _forward)
    setattr(Value, f"__r{_method}__", _backward)


class Memory:
    """A binding or shared memory: ``m[i]`` loads, ``m[i] = x`` stores, ``m.load(i, where=c)`` and
    ``m.store(i, x, where=c)`` do so where c is true, else a load gives 0."""

    def __init__(self, kernel, number, dtype):
        self._kernel = kernel
        self._number = number
        self.dtype = dtype

    def load(self, index, where=None):
        k = self._kernel
        return k._value(_load(k._builder, self._number, k._as(index, dt.uint32), 0, 1,
                              _NONE if where is None else where._number))

    def store(self, index, value, where=None):
        k = self._kernel
        computed = self.dtype if self.dtype.itemsize >= 4 or self.dtype is dt.bool else \
            dt.float32 if dt.is_float(self.dtype) else \
            dt.int32 if dt.is_signed(self.dtype) else dt.uint32
        _store(k._builder, self._number, k._as(index, dt.uint32), 0,
               _NONE if where is None else where._number, k._as(value, computed))

    def atomic(self, kind, index, operand, comparand=None, where=None):
        """add, min, max, and, or, xor, exchange or compare_exchange; returns the old value."""
        k = self._kernel
        return k._value(_atomic(k._builder, _ATOMICS.index(kind), self._number,
                                k._as(index, dt.uint32), _NONE if where is None else where._number,
                                k._as(operand, self.dtype),
                                _NONE if comparand is None else k._as(comparand, self.dtype)))

    __getitem__ = load
    __setitem__ = store


class Variable:
    """What changes in loops and branches: ``v.value`` is read and assigned."""

    def __init__(self, kernel, number):
        self._kernel = kernel
        self._number = number

    @property
    def value(self):
        return self._kernel._value(_get(self._kernel._builder, self._number))

    @value.setter
    def value(self, value):
        before = _type_of(self._kernel._builder, _get(self._kernel._builder, self._number))
        _set(self._kernel._builder, self._number, self._kernel._as(value, dt.by_type[before]))


_checks = "HAL_SANITIZE" in _os.environ  # findings name the lines of kernels
_files = {}  # names of files, which hal keeps until the process ends


def _position():
    """The file and the line of the innermost frame outside of the package."""
    frame = _sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module != "contextlib" and module.partition(".")[0] != __package__:
            name = _os.path.basename(frame.f_code.co_filename)
            return _files.setdefault(name, _ctypes.c_char_p(name.encode())), frame.f_lineno
        frame = frame.f_back
    return None, 0


class Kernel:
    """A kernel that is built by the calls below and then called.

    >>> import halyard as hx
    >>> k = hx.Kernel("scale", group=64)
    >>> x, y = k.read("x", hx.float32), k.write("y", hx.float32)
    >>> n, alpha = k.scalar("n", hx.uint32), k.scalar("alpha", hx.float32)
    >>> i = k.global_id()
    >>> with k.when(i < n):
    ...     y[i] = alpha * x[i]
    >>> k(hx.arange(4.0), (4,), 4, 0.5, groups=1)
    array([0. , 0.5, 1. , 1.5], dtype=float32)
    """

    def __init__(self, name, group=1):
        """``group``: work-items of a group, an int or up to three of them."""
        self._handle = None
        builder = _pointer()
        if _create(name.encode(), _ctypes.byref(builder)) != 0:
            raise make_error(1, _status_message().decode())
        self._handle = builder
        self._made = {}
        self._arguments = []
        sizes = (group,) if isinstance(group, int) else tuple(group)
        _group_size(builder, *(sizes + (1, 1))[:3])

    def __del__(self):
        if self._handle is not None:
            _destroy(self._handle)

    @property
    def _builder(self):
        """The builder, for a call that is of the program's present line."""
        if _checks:
            _set_position(self._handle, *_position())
        return self._handle

    def _value(self, number):
        if number == _NONE:
            raise make_error(_status(self._builder), _status_message().decode())
        return Value(self, number)

    def _as(self, value, dtype):
        """The number of a value; Python's numbers take the dtype."""
        if isinstance(value, Value):
            return value._number
        return _number(self._builder, dtype._type, float(value))

    # ---- Declarations ----

    def _declare(self, name, dtype, access):
        dtype = dt.as_dtype(dtype)
        number = _binding(self._builder, name.encode(), dtype._type, access)
        self._arguments.append((name, dtype, access))
        return Memory(self, self._value(number)._number, dtype)

    def read(self, name, dtype):
        """The next argument: an array that is read."""
        return self._declare(name, dtype, _READ)

    def write(self, name, dtype):
        """The next argument: the shape of an array that is made. What is not written is undefined."""
        return self._declare(name, dtype, _WRITE)

    def scalar(self, name, dtype):
        """The next argument: a number."""
        dtype = dt.as_dtype(dtype)
        self._arguments.append((name, dtype, None))
        return self._value(_scalar(self._builder, name.encode(), dtype._type))

    def shared(self, name, dtype, count):
        """Memory of ``count`` elements that a group shares."""
        dtype = dt.as_dtype(dtype)
        number = _shared(self._builder, name.encode(), dtype._type, count)
        return Memory(self, self._value(number)._number, dtype)

    # ---- Values ----

    def constant(self, value, dtype):
        """A number as a value."""
        return self._value(_number(self._builder, dt.as_dtype(dtype)._type, float(value)))

    def local_id(self, axis=0):
        """The work-item's place in its group."""
        return self._value(_id(self._builder, _OPCODES["local_id"], axis))

    def group_id(self, axis=0):
        """The group's place in the grid."""
        return self._value(_id(self._builder, _OPCODES["group_id"], axis))

    def group_count(self, axis=0):
        """Groups in the grid."""
        return self._value(_id(self._builder, _OPCODES["group_count"], axis))

    def global_id(self, axis=0):
        """group id * group size + local id."""
        return self._value(_global_id(self._builder, axis))

    def op(self, name, *operands):
        """An operation of docs/ir.md by its name: ``k.op("fma", x, y, z)``."""
        if name not in _OPCODES:
            raise ValueError(f"Kernel.op: name: expected an operation of docs/ir.md, got {name!r}")
        known = [x.dtype for x in operands if isinstance(x, Value)]
        if not known:
            raise TypeError("Kernel.op: expected a value among the operands")
        numbers = [self._as(x, known[-1]) for x in operands]
        function = (_unary, _binary, _ternary)[len(numbers) - 1]
        return self._value(function(self._builder, _OPCODES[name], *numbers))

    def select(self, condition, x, y):
        """x where the condition is true, else y."""
        return self.op("select", condition, x, y)

    def shuffle_xor(self, x, mask):
        """The value of lane LANE_ID xor mask of the subgroup."""
        return self._value(_shuffle_xor(self._builder, x._number, mask))

    def subgroup_reduce(self, kind, x):
        """add, min or max over the lanes of the subgroup."""
        return self._value(_reduce(self._builder, _REDUCTIONS.index(kind), x._number))

    # ---- Control ----

    def var(self, initial, dtype=None):
        """A variable with its first value."""
        initial = initial if isinstance(initial, Value) else self.constant(initial, dtype)
        return Variable(self, self._value(_var(self._builder, initial._number))._number)

    @_contextlib.contextmanager
    def loop(self, start, end, step=1):
        """``with k.loop(0, n) as i:`` runs the block for start, start + step, ... below end."""
        known = [x.dtype for x in (start, end, step) if isinstance(x, Value)] or [dt.uint32]
        numbers = [self._as(x, known[0]) for x in (start, end, step)]
        yield self._value(_for(self._builder, *numbers))
        _end(self._builder)

    @_contextlib.contextmanager
    def when(self, condition):
        """``with k.when(c):`` runs the block where c is true."""
        _if(self._builder, condition._number)
        yield
        _end(self._builder)

    def barrier(self):
        """Waits for all work-items of the group."""
        _barrier(self._builder)

    # ---- Calls ----

    def __call__(self, *arguments, groups, device=None):
        """Records a run over ``groups`` groups, an int or up to three of them. Arguments in the
        order of their declarations: arrays, shapes of arrays that are made, numbers. Returns the
        array that is made, or a tuple of several. The first call ends the building."""
        if len(arguments) != len(self._arguments):
            raise TypeError(f"Kernel: expected {len(self._arguments)} arguments, "
                            f"got {len(arguments)}")
        arrays = [x for x in arguments if isinstance(x, Array)]
        context = arrays[0]._context if arrays and device is None else context_of(device)
        bindings, form, numbers = [], "", []
        for (name, dtype, access), value in zip(self._arguments, arguments):
            if access is None:
                form += _FORMATS[dtype]
                numbers.append(value if dt.is_float(dtype) else int(value))
            elif access == _WRITE:
                shape = (value,) if isinstance(value, int) else tuple(value)
                bindings.append((dtype._type, shape))
            elif isinstance(value, Array) and value.dtype is dtype:
                bindings.append(value)
            else:
                raise TypeError(f"Kernel: {name}: expected an array of {dtype}, got {value!r}")
        made = self._made.get(context)
        if made is None:
            if self._made:
                raise ValueError("Kernel: expected the device of its first call; build it again "
                                 "for another one")
            made = self._made[context] = _core.kernel_create(context, self._builder.value)
        data = _struct.pack("@" + form, *numbers)
        data += bytes(-len(data) % max((_struct.calcsize(c) for c in form), default=1))
        counts = (groups,) if isinstance(groups, int) else tuple(groups)
        results = _core.kernel_run(made, (counts + (1, 1))[:3], tuple(bindings), data)
        return results[0] if len(results) == 1 else results
