"""x[key], x[key] = value, take and what else selects elements."""
import operator as _operator

from . import _core
from . import _dtypes as dt
from ._core import Array
from ._create import asarray, cast, filled, indices, scalar, _share
from ._elementwise import where
from ._move import axis_of, broadcast_shapes

__all__ = ["take", "take_along_axis", "nonzero"]


# ---- take ----

def wrapped(index, length):
    """int64 indices from 0 on, of some that may count from the end."""
    if not dt.is_integer(index.dtype):
        raise IndexError(f"expected indices of an integer dtype, got {index.dtype}")
    index = cast(index, dt.int64)
    return where(index < 0, index + length, index)


def take(x, indices, /, *, axis=None):
    """The elements of x along ``axis`` at ``indices`` (integers of rank 1 or 0). An index out of
    range gives 0."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis: expected an axis for an array of rank {x.ndim}")
        axis = 0
    axis = axis_of(x.ndim, axis)
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1:]
    if 0 in shape or x.size == 0:
        if x.shape[axis] == 0 and indices.size and 0 not in shape:
            raise IndexError("take: no element to take from an axis of length 0")
        return filled(x._context, x.dtype, shape, 0)
    flat = _core.reshape(wrapped(indices, x.shape[axis]), (indices.size,))
    return _core.reshape(_core.gather(axis, x, flat), shape)


def take_along_axis(x, indices, /, *, axis=-1):
    """For each place of ``indices`` the element of x with that index along ``axis``; the other
    axes are broadcast."""
    axis = axis_of(x.ndim, axis)
    if indices.ndim != x.ndim:
        raise ValueError("take_along_axis: expected as many axes of x and indices")
    others = broadcast_shapes(x.shape[:axis] + (1,) + x.shape[axis + 1:],
                              indices.shape[:axis] + (1,) + indices.shape[axis + 1:])
    wide = others[:axis] + (x.shape[axis],) + others[axis + 1:]
    shape = others[:axis] + (indices.shape[axis],) + others[axis + 1:]
    if 0 in shape:
        return filled(x._context, x.dtype, shape, 0)
    if 0 in wide:
        raise IndexError("take_along_axis: no element to take from an axis of length 0")
    index = _core.broadcast(wrapped(indices, x.shape[axis]), shape)
    return _core.take_along_axis(axis, _core.broadcast(x, wide), index)


def _axis_indices(context, shape, axis):
    """0, 1, ... along an axis of a shape of that rank."""
    return _core.reshape(indices(context, shape[axis]),
                         [shape[i] if i == axis else 1 for i in range(len(shape))])


def nonzero(x, /):
    """The indices of the elements that are not 0, one int64 array for each axis. Waits for x."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected at least one axis, got rank 0")
    flat = _flat_nonzero(x)
    return tuple(_unravel(flat, x.shape))


def _flat_nonzero(x):
    return _core.nonzero(x if x.dtype is dt.bool else x != 0)


def _unravel(flat, shape):
    result, rest = [], 1
    for length in reversed(shape):
        if flat.size == 0:
            result.append(_share(flat))
            continue
        result.append(flat // rest % max(length, 1) if rest > 1 else flat % max(length, 1))
        rest *= length
    return reversed(result)


# ---- Keys ----

class Selection:
    """A key in parts: one slice or number for each axis of x, and the shape of the result."""

    def __init__(self, x, key):
        self.slices = []  # (axis, start, count, step) of axes that are not whole
        self.shape = []   # of the result
        self.dropped = []
        ellipsis = sum(1 for part in key if part is Ellipsis)
        if ellipsis > 1:
            raise IndexError("expected at most one ellipsis")
        given = sum(1 for part in key if part is not None and part is not Ellipsis)
        if given > x.ndim:
            raise IndexError(f"expected at most {x.ndim} indices, got {given}")
        axis = 0
        for part in key if ellipsis else tuple(key) + (Ellipsis,):
            if part is None:
                self.shape.append(1)
            elif part is Ellipsis:
                for _ in range(x.ndim - given):
                    self.shape.append(x.shape[axis])
                    axis += 1
            else:
                self._add(part, axis, x.shape[axis])
                axis += 1

    def _add(self, part, axis, length):
        if isinstance(part, slice):
            start, stop, step = part.indices(length)
            count = len(range(start, stop, step))
            if count != length or step != 1:
                self.slices.append((axis, start if count else 0, count, step))
            self.shape.append(count)
            return
        try:
            index = _operator.index(part)
        except TypeError:
            raise IndexError("expected an int, a slice, None, an ellipsis or an array as index, "
                             f"got {part!r}") from None
        if not -length <= index < length:
            raise IndexError(f"index {index} is out of bounds for axis {axis} of length {length}")
        self.slices.append((axis, index + length if index < 0 else index, 1, 1))
        self.dropped.append(axis)


def getitem(x, key):
    """x[key]: numbers, slices, None and ... give a view; a bool array, or integer arrays with
    numbers, give a copy."""
    if type(key) is int:
        if not x.ndim:
            raise IndexError("expected no index of an array of rank 0")
        shape = x.shape
        length = shape[0]
        if not -length <= key < length:
            raise IndexError(f"index {key} is out of bounds for axis 0 of length {length}")
        part = _core.slice(x, 0, key + length if key < 0 else key, 1, 1)
        return _core.reshape(part, shape[1:])
    made = _core.quick_slice(x, key)
    if made is not None:
        return made
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, (Array, bool, list)) for part in parts):
        return _get_by_arrays(x, parts)
    selection = Selection(x, parts)
    made = x
    for axis, start, count, step in selection.slices:
        made = _core.slice(made, axis, start, count, step)
    if made.shape != tuple(selection.shape):
        made = _core.reshape(made, selection.shape)
    return _share(x) if made is x else made


def _as_index(x, part):
    if isinstance(part, (bool, list)):
        return asarray(part, device=x.device)
    return part


def _get_by_arrays(x, parts):
    parts = tuple(_as_index(x, part) for part in parts)
    if len(parts) == 1 and isinstance(parts[0], Array) and parts[0].dtype is dt.bool:
        mask = parts[0]
        _check_mask(x, mask)
        rest = x.shape[mask.ndim:]
        flat = _core.nonzero(mask)
        if flat.size == 0 or 0 in rest:
            return filled(x._context, x.dtype, (flat.size,) + rest, 0)
        return take(_core.reshape(x, (mask.size,) + rest), flat, axis=0)
    if all(not isinstance(part, Array) or part.ndim == 0 and dt.is_integer(part.dtype)
           for part in parts):
        return getitem(x, tuple(int(p) if isinstance(p, Array) else p for p in parts))
    x, order, coordinates, shape = _points(x, parts)
    rest = x.shape[len(coordinates):]
    if 0 in shape or 0 in rest:
        return filled(x._context, x.dtype, shape + rest, 0)
    if x.size == 0:
        raise IndexError("an index is out of bounds for an axis of length 0")
    joined = _core.reshape(x, (-1 if not rest else _product(x.shape[:len(coordinates)]),) + rest)
    place = _flat_place(coordinates, x.shape, shape)
    made = _core.reshape(_core.gather(0, joined, place), shape + rest)
    return made if order is None else _core.permute(made, order(len(shape), made.ndim))


def _product(lengths):
    result = 1
    for length in lengths:
        result *= length
    return result


def _flat_place(coordinates, lengths, shape):
    place = None
    for index, length in zip(coordinates, lengths):
        place = index if place is None else place * length + index
    return _core.reshape(_core.broadcast(place, shape), (_product(shape),))


def _points(x, parts):
    """x with the axes that arrays index in front, how to put the result's axes in order (None: they
    are), the coordinates and their common shape. Slices next to arrays apply first; as in NumPy the
    axes of the arrays take the place of the first one if they are neighbours, else they come
    first."""
    selection, arrays, axis = [], [], 0
    given = sum(1 for p in parts if p is not None and p is not Ellipsis)
    for part in parts:
        if part is Ellipsis:
            selection += [slice(None)] * (x.ndim - given)
            axis += x.ndim - given
        elif part is None:
            raise IndexError("None next to arrays as index: use expand_dims")
        elif isinstance(part, slice):
            selection.append(part)
            axis += 1
        else:
            if isinstance(part, Array) and part.dtype is dt.bool:
                raise IndexError("a bool array is the only index, or none")
            arrays.append((axis, part))
            selection.append(slice(None))
            axis += 1
    if axis > x.ndim:
        raise IndexError(f"expected at most {x.ndim} indices, got {axis}")
    x = getitem(x, tuple(selection))
    axes = [i for i, _ in arrays]
    rest = [i for i in range(x.ndim) if i not in axes]
    coordinates = []
    for i, part in arrays:
        part = part if isinstance(part, Array) else scalar(x._context, dt.int64, int(part))
        coordinates.append(wrapped(part, x.shape[i]))
    shape = broadcast_shapes(*(c.shape for c in coordinates))
    first = axes[0]
    order = None
    if first and axes == list(range(first, first + len(axes))):
        def order(count, ndim):
            return list(range(count, count + first)) + list(range(count)) + \
                list(range(count + first, ndim))
    return _core.permute(x, axes + rest), order, coordinates, shape


def _check_mask(x, mask):
    if mask.ndim > x.ndim or any(n not in (0, m) for n, m in zip(mask.shape, x.shape)):
        raise IndexError(f"a bool index of the shape {mask.shape} does not fit {x.shape}")


# ---- Assignment ----

def setitem(x, key, value):
    """x[key] = value: the elements of x change; arrays that were made of x before do not."""
    if not isinstance(value, (Array, int, float, complex)):
        value = asarray(value, device=x.device)
    if not isinstance(value, Array):
        if not isinstance(value, bool) or x.dtype is not dt.bool:
            dtype = dt.scalar_dtype(x.dtype, value)
            if dtype is not x.dtype:
                raise TypeError(f"a {type(value).__name__} does not go into an array of {x.dtype}")
        value = scalar(x._context, x.dtype, value)
    elif value._type != x._type:
        if dt.promote(x.dtype, value.dtype) is not x.dtype:
            raise TypeError(f"an array of {value.dtype} does not go into one of {x.dtype}")
        value = cast(value, x.dtype)
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, (Array, bool, list)) for part in parts):
        parts = tuple(_as_index(x, part) for part in parts)
        if all(not isinstance(part, Array) or part.ndim == 0 and dt.is_integer(part.dtype)
               for part in parts):
            parts = tuple(int(p) if isinstance(p, Array) else p for p in parts)
        else:
            _core.assign(x, _set_by_arrays(x, parts, value))
            return
    _core.assign(x, _set_by_slices(x, Selection(x, parts), value))


def _set_by_slices(x, selection, value):
    shape = tuple(selection.shape)
    lead = value.ndim - len(shape)
    if lead > 0:  # leading axes of length 1 may be dropped
        if any(n != 1 for n in value.shape[:lead]):
            raise ValueError(f"the shape {value.shape} does not fit {shape}")
        value = _core.reshape(value, value.shape[lead:])
    if broadcast_shapes(value.shape, shape) != shape:
        raise ValueError(f"the shape {value.shape} does not fit {shape}")
    if 0 in shape:
        return x
    counts = list(x.shape)
    for axis, _, count, _ in selection.slices:
        counts[axis] = count
    value = _core.reshape(_core.broadcast(value, shape), counts) if value.size > 1 else \
        _core.reshape(value, (1,) * x.ndim)
    mask = None
    for axis, start, count, step in selection.slices:
        if count == x.shape[axis] and step == 1:
            continue
        place = _axis_indices(x._context, x.shape, axis) - start
        if step < 0:
            place, step = -place, -step
        part = (place >= 0) & (place < count * step)
        if step > 1:
            part = part & (place % step == 0)
            place = place // step
        mask = part if mask is None else mask & part
        if value.shape[axis] > 1:
            flat = _core.reshape(place, (x.shape[axis],))
            value = _core.gather(axis, value, flat)
    if mask is None:
        return _share(_core.broadcast(value, x.shape))
    return _core.where(mask, value, x)


def _set_by_arrays(x, parts, value):
    if len(parts) == 1 and parts[0].dtype is dt.bool:
        mask = parts[0]
        _check_mask(x, mask)
        rest = x.shape[mask.ndim:]
        if x.size == 0:
            return x
        if value.ndim == 0:
            wide = _core.reshape(mask, mask.shape + (1,) * len(rest))
            return _core.where(_core.broadcast(wide, x.shape), value, x)
        place, lead, shape = _core.nonzero(mask), mask.ndim, None
        return _scatter(x, place, lead, (place.size,), rest, value)
    x_moved, order, coordinates, shape = _points(x, parts)
    if order is not None or x_moved.shape != x.shape or any(
            not isinstance(p, (int, Array)) for p in parts):
        raise IndexError("assignment takes arrays as the first indices, without slices")
    place = _flat_place(coordinates, x.shape, shape)
    return _scatter(x, place, len(coordinates), shape, x.shape[len(coordinates):], value)


def _scatter(x, place, lead, shape, rest, value):
    """x whose rows `place`, flat over the first `lead` axes, are those of `value`."""
    if broadcast_shapes(value.shape, shape + rest) != shape + rest:
        raise ValueError(f"the shape {value.shape} does not fit {shape + rest}")
    rows = _product(x.shape[:lead])
    if place.size == 0 or x.size == 0:
        return x
    wide = (place.size,) + rest
    value = _core.reshape(_core.broadcast(value, shape + rest), wide)
    index = _core.broadcast(_core.reshape(place, (place.size,) + (1,) * len(rest)), wide)
    return _core.reshape(_core.scatter(0, _core.reshape(x, (rows,) + rest), index, value), x.shape)
