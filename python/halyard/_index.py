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
    """The elements of x along ``axis`` at ``indices`` (integers of rank 1 or 0, or a list). An
    index out of range gives 0."""
    if not isinstance(indices, Array):
        indices = asarray(indices, device=x.device)
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
    """A key that the extension takes: ints, slices, None and ..., with the shape of the result."""

    def __init__(self, x, key):
        self.key = tuple(part if part is None or part is Ellipsis or isinstance(part, slice)
                         else _as_int(part) for part in key)
        self.shape = []
        ellipsis = sum(1 for part in key if part is Ellipsis)
        if ellipsis > 1:
            raise IndexError("expected at most one ellipsis")
        given = sum(1 for part in key if part is not None and part is not Ellipsis)
        if given > x.ndim:
            raise IndexError(f"expected at most {x.ndim} indices, got {given}")
        axis = 0
        for part in self.key if ellipsis else self.key + (Ellipsis,):
            if part is None:
                self.shape.append(1)
            elif part is Ellipsis:
                self.shape += x.shape[axis:axis + x.ndim - given]
                axis += x.ndim - given
            else:
                length = x.shape[axis]
                if isinstance(part, slice):
                    self.shape.append(len(range(*part.indices(length))))
                elif not -length <= part < length:
                    raise IndexError(f"index {part} is out of bounds for axis {axis} of length "
                                     f"{length}")
                axis += 1
        most = _core.MAX_RANK - dt.is_complex(x.dtype)
        if len(self.shape) > most:
            raise IndexError(f"expected at most {most} axes, got {len(self.shape)}")


def _as_int(part):
    try:
        return _operator.index(part)
    except TypeError:
        raise IndexError("expected an int, a slice, None, an ellipsis or an array as index, "
                         f"got {part!r}") from None


def getitem(x, key):
    """x[key]: numbers, slices, None and ... give a view; a bool array, or integer arrays with
    numbers, give a copy."""
    made = _core.key_get(x, key)
    if made is not None:
        return made
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, (Array, bool, list)) for part in parts):
        return _get_by_arrays(x, parts)
    selection = Selection(x, parts)
    if 0 in selection.shape:
        return filled(x._context, x.dtype, selection.shape, 0)
    made = _core.key_get(x, selection.key)
    return _share(x) if made is None else made


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
        made = filled(x._context, x.dtype, shape + rest, 0)
    elif x.size == 0:
        raise IndexError("an index is out of bounds for an axis of length 0")
    else:
        rows = _product(x.shape[:len(coordinates)])
        place = _flat_place(coordinates, x.shape, shape)
        made = _core.gather(0, _core.reshape(x, (rows,) + rest), place)
        made = _core.reshape(made, shape + rest)
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
    if _core.key_set(x, key, value):
        return
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
            raise TypeError(f"an array of {value.dtype} does not go into one of {x.dtype}; use "
                            f"astype(value, {x.dtype.name})")
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
    _set_by_slices(x, Selection(x, parts), value)


def _fitting(value, shape):
    """The value without leading axes of length 1 that the shape, to which it is broadcast, lacks."""
    lead = value.ndim - len(shape)
    if lead > 0 and all(n == 1 for n in value.shape[:lead]):
        value = _core.reshape(value, value.shape[lead:])
    if value.ndim > len(shape) or any(n not in (1, m) for n, m in
                                      zip(reversed(value.shape), reversed(shape))):
        raise ValueError(f"the shape {value.shape} does not fit {shape}")
    return value


def _set_by_slices(x, selection, value):
    shape = tuple(selection.shape)
    value = _fitting(value, shape)
    if 0 not in shape and not _core.key_set(x, selection.key, value):
        raise ValueError(f"the value is on {value.device}, the array on {x.device}")


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
    # The key selects among the numbers of the elements; those of indices out of range are -1.
    numbers = _core.reshape(indices(x._context, x.size) + 1, x.shape)
    place = getitem(numbers, parts) - 1
    return _scatter(x, _core.reshape(place, (place.size,)), x.ndim, place.shape, (), value)


def _scatter(x, place, lead, shape, rest, value):
    """x whose rows `place`, flat over the first `lead` axes, are those of `value`."""
    value = _fitting(value, shape + rest)
    rows = _product(x.shape[:lead])
    if place.size == 0 or x.size == 0:
        return x
    wide = (place.size,) + rest
    value = _core.reshape(_core.broadcast(value, shape + rest), wide)
    index = _core.broadcast(_core.reshape(place, (place.size,) + (1,) * len(rest)), wide)
    return _core.reshape(_core.scatter(0, _core.reshape(x, (rows,) + rest), index, value), x.shape)
