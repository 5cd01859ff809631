"""The standard's manipulation functions. Views copy nothing."""
from . import _core
from . import _dtypes as dt
from ._core import Array
from ._create import cast, filled, _share

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
           "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
           "unstack", "matrix_transpose"]


def axis_of(ndim, axis, name="axis"):
    """An axis counted from the start."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: expected -{ndim} to {ndim - 1}, got {axis}")
    return axis + ndim if axis < 0 else axis


def axes_of(ndim, axes):
    """Axes counted from the start, a tuple: of None all, of one number that."""
    if axes is None:
        return tuple(range(ndim))
    axes = (axes,) if isinstance(axes, int) else axes
    found = tuple(axis_of(ndim, axis) for axis in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"axis: expected each axis once, got {tuple(axes)}")
    return found


def broadcast_shapes(*shapes):
    """The shape to which all of ``shapes`` stretch."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, length in enumerate(shape, rank - len(shape)):
            if result[i] == 1:
                result[i] = length
            elif length not in (1, result[i]):
                raise ValueError("the shapes " + ", ".join(map(str, shapes)) +
                                 " cannot be broadcast to one")
    return tuple(result)


def broadcast_to(x, /, shape):
    """A view of x whose axes of length 1, or missing leading axes, stretch to ``shape``."""
    return _core.broadcast(x, tuple(shape))


def broadcast_arrays(*arrays):
    """Views of the arrays in the shape to which all stretch."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(_core.broadcast(x, shape) for x in arrays)


def permute_dims(x, /, axes):
    """A view of x whose axis i is axis ``axes[i]`` of x."""
    axes = axes_of(x.ndim, axes)
    if len(axes) != x.ndim:
        raise ValueError(f"permute_dims: axes: expected {x.ndim} axes, got {len(axes)}")
    return _core.permute(x, axes)


def matrix_transpose(x, /):
    """A view of x [..., n, m] as [..., m, n]."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected at least two axes, got {x.ndim}")
    axes = list(range(x.ndim))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return _core.permute(x, axes)


def moveaxis(x, source, destination, /):
    """A view of x whose axes ``source`` are at ``destination``; the others keep their order."""
    source = axes_of(x.ndim, source)
    destination = axes_of(x.ndim, destination)
    if len(source) != len(destination):
        raise ValueError("moveaxis: expected as many destinations as sources")
    order = [i for i in range(x.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return _core.permute(x, order)


def reshape(x, /, shape, *, copy=None):
    """x in row-major order in another shape; one length may be -1. A view where memory allows it.
    ``copy=False`` is an error where it does not."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape:
        known = 1
        for length in shape:
            known *= length if length != -1 else 1
        if shape.count(-1) > 1 or known == 0 or x.size % known:
            raise ValueError(f"reshape: shape: {x.shape} does not fit {shape}")
        shape = tuple(x.size // known if length == -1 else length for length in shape)
    made = _core.reshape(x, shape)
    return _core.copy(made) if copy else made


def expand_dims(x, /, axis):
    """A view of x with axes of length 1 at ``axis``: a number or a tuple, in the result."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(axes)
    axes = axes_of(rank, axes)
    lengths = iter(x.shape)
    return _core.reshape(x, [1 if i in axes else next(lengths) for i in range(rank)])


def squeeze(x, /, axis):
    """A view of x without ``axis``: a number or a tuple, of axes of length 1."""
    axes = axes_of(x.ndim, axis)
    for i in axes:
        if x.shape[i] != 1:
            raise ValueError(f"squeeze: axis: expected axes of length 1, got {x.shape[i]}")
    return _core.reshape(x, [n for i, n in enumerate(x.shape) if i not in axes])


def flip(x, /, *, axis=None):
    """A view of x with the elements along ``axis`` (None: all axes) in reverse order."""
    made = x
    for i in axes_of(x.ndim, axis):
        length = x.shape[i]
        if length > 1:
            made = _core.slice(made, i, length - 1, length, -1)
    return _share(x) if made is x else made


def promoted(arrays, function):
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{function}: arrays: expected at least one")
    dtype = dt.result_type(*arrays)
    return [cast(x, dtype) for x in arrays], dtype


def concat(arrays, /, *, axis=0):
    """The arrays one after the other along ``axis``; None: all elements, flat."""
    made = _core.quick_join(arrays, axis, False)
    if made is not None:
        return made
    arrays, dtype = promoted(arrays, "concat")
    if axis is None:
        arrays, axis = [_core.reshape(x, (x.size,)) for x in arrays], 0
    ndim = arrays[0].ndim
    axis = axis_of(ndim, axis)
    shape = list(arrays[0].shape)
    for x in arrays[1:]:
        other = list(x.shape)
        if other[:axis] + other[axis + 1:] != shape[:axis] + shape[axis + 1:] or x.ndim != ndim:
            raise ValueError("concat: the shapes " + ", ".join(str(x.shape) for x in arrays) +
                             f" differ in more than axis {axis}")
    parts = [x for x in arrays if x.shape[axis]]
    shape[axis] = sum(x.shape[axis] for x in parts)
    if not parts or 0 in shape:
        return filled(arrays[0]._context, dtype, shape, 0)
    return _core.concatenate(axis, parts) if len(parts) > 1 else _share(parts[0])


def stack(arrays, /, *, axis=0):
    """The arrays, of one shape, one after the other along a new axis."""
    made = _core.quick_join(arrays, axis, True)
    if made is not None:
        return made
    arrays = list(arrays)
    if not arrays:
        raise ValueError("stack: arrays: expected at least one")
    axis = axis_of(arrays[0].ndim + 1, axis)
    return concat([expand_dims(x, axis) for x in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The slices of x along ``axis``, a tuple of views with one axis less."""
    axis = axis_of(x.ndim, axis)
    shape = x.shape[:axis] + x.shape[axis + 1:]
    return tuple(_core.reshape(_core.slice(x, axis, i, 1, 1), shape)
                 for i in range(x.shape[axis]))


def roll(x, /, shift, *, axis=None):
    """x with the elements moved by ``shift`` along ``axis`` (None: flat); the last ones come
    first."""
    if axis is None:
        if isinstance(shift, tuple):
            shift = sum(shift)
        return _core.reshape(roll(_core.reshape(x, (x.size,)), shift, axis=0), x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        raise ValueError("roll: expected as many shifts as axes")
    made = x
    for by, i in zip(shifts, axes):
        i = axis_of(x.ndim, i)
        length = x.shape[i]
        by = by % length if length else 0
        if by and x.size:
            made = _core.concatenate(i, [_core.slice(made, i, length - by, by, 1),
                                         _core.slice(made, i, 0, length - by, 1)])
    return _share(x) if made is x else made


def tile(x, repetitions, /):
    """x repeated ``repetitions[i]`` times along axis i; missing axes come first."""
    rank = max(x.ndim, len(repetitions))
    repetitions = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    shape = (1,) * (rank - x.ndim) + x.shape
    made = _core.reshape(x, shape)
    if 0 in repetitions or 0 in shape:
        return filled(x._context, x.dtype, [n * r for n, r in zip(shape, repetitions)], 0)
    for i, times in enumerate(repetitions):
        if times > 1:
            made = _core.concatenate(i, [made] * times)
    return _share(x) if made is x else made


def repeat(x, repeats, /, *, axis=None):
    """x with each element along ``axis`` (None: flat) ``repeats`` times: a number, or an array of
    rank 1 with one for each element."""
    from ._index import take
    if axis is None:
        x, axis = _core.reshape(x, (x.size,)), 0
    axis = axis_of(x.ndim, axis)
    length = x.shape[axis]
    if isinstance(repeats, Array):
        if repeats.size == 1 and length != 1:
            counts = [int(repeats)] * length
        else:
            counts = _core.values(_core.reshape(repeats, (repeats.size,)))
    else:
        counts = [int(repeats)] * length
    places = [i for i, count in enumerate(counts) for _ in range(count)]
    index = _core.from_list(x._context, dt.int64._type, (len(places),), places)
    return take(x, index, axis=axis)
