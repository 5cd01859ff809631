"""Reductions, running sums, and the standard's functions that sort, search and find sets.
Positions of true elements and binary searches are found on the host."""
from collections import namedtuple as _namedtuple

from . import _core
from . import _dtypes as dt
from ._core import Array
from ._create import asarray, cast, filled, full, like, scalar, _share
from ._elementwise import binary, check_array, imag, real, sqrt, squared, where
from ._index import take, take_along_axis
from ._move import axes_of, axis_of, concat

__all__ = ["all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
           "cumulative_sum", "diff", "isin", "log_softmax", "max", "mean", "min", "prod",
           "searchsorted", "softmax", "sort", "std", "sum", "unique_all", "unique_counts",
           "unique_inverse", "unique_values", "var"]

SUM, MEAN, MAX, MIN, ARGMAX, PRODUCT, ARGMIN = range(7)  # ops_reduction
SCAN_SUM, SCAN_PRODUCT = range(2)
_max_of = max


def _lengths(x, axes):
    result = 1
    for i in axes:
        result *= x.shape[i]
    return result


def _result_shape(x, axes, keepdims):
    return [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]


def reduced(x, reduction, axes, keepdims):
    """x reduced along axes, from the last to the first; several axes of neighbours as one."""
    if not axes:
        return _share(x)
    if len(axes) == x.ndim and len(axes) > 1:
        made = _core.reduce(reduction, 0, False, _core.reshape(x, (x.size,)))
        return _core.reshape(made, (1,) * x.ndim) if keepdims else made
    for i in sorted(axes, reverse=True):
        x = _core.reduce(reduction, i, keepdims, x)
    return x


def _sum_dtype(dtype, wanted):
    if wanted is not None:
        return dt.as_dtype(wanted)
    if dtype.kind == "unsigned integer":
        return dt.uint64
    return dt.int64 if dtype.kind in ("signed integer", "bool") else dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum along ``axis`` (None: all axes); of integers in 64 bits."""
    made = _core.quick_reduce(SUM, x, axis, keepdims) if dtype is None else None
    if made is not None:
        return made
    check_array("sum", x)
    x = cast(x, _sum_dtype(x.dtype, dtype))
    axes = axes_of(x.ndim, axis)
    if x.size == 0:
        return filled(x._context, x.dtype, _result_shape(x, axes, keepdims), 0)
    return reduced(x, SUM, axes, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product along ``axis`` (None: all axes); of integers in 64 bits."""
    made = _core.quick_reduce(PRODUCT, x, axis, keepdims) if dtype is None else None
    if made is not None:
        return made
    check_array("prod", x)
    x = cast(x, _sum_dtype(x.dtype, dtype))
    axes = axes_of(x.ndim, axis)
    if x.size == 0:
        return filled(x._context, x.dtype, _result_shape(x, axes, keepdims), 1)
    return reduced(x, PRODUCT, axes, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean along ``axis`` (None: all axes), of floats or complex numbers; NaN of nothing."""
    made = _core.quick_reduce(MEAN, x, axis, keepdims)
    if made is not None:
        return made
    check_array("mean", x)
    if not dt.is_inexact(x.dtype):
        raise TypeError(f"mean: expected floats, got an array of {x.dtype}")
    axes = axes_of(x.ndim, axis)
    if x.size == 0:
        return filled(x._context, x.dtype, _result_shape(x, axes, keepdims), float("nan"))
    return reduced(x, MEAN, axes, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance along ``axis`` (None: all axes): the squared distances from the mean, summed,
    over n - ``correction``; of complex numbers a float."""
    check_array("var", x)
    axes = axes_of(x.ndim, axis)
    count = _lengths(x, axes)
    if x.size == 0:
        return mean(x, axis=axis, keepdims=keepdims)
    distance = x - mean(x, axis=axes, keepdims=True)
    total = sum(squared(distance), axis=axes, keepdims=keepdims)
    parts = count - correction
    return total / float(parts) if parts > 0 else total * float("nan") if parts < 0 else total / 0.0


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation along ``axis``: the root of ``var``."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _extreme(name, x, reduction, axis, keepdims):
    made = _core.quick_reduce(reduction, x, axis, keepdims)
    if made is not None:
        return made
    check_array(name, x)
    axes = axes_of(x.ndim, axis)
    shape = _result_shape(x, axes, keepdims)
    if x.size == 0:
        if _lengths(x, axes) == 0 and 0 not in shape:
            raise ValueError(f"{name}: no elements along {axis}, and no least or greatest number")
        return filled(x._context, x.dtype, shape, 0)
    if x.dtype is dt.bool or dt.is_complex(x.dtype):
        raise TypeError(f"{name}: expected real numbers, got an array of {x.dtype}")
    return reduced(x, reduction, axes, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The greatest element along ``axis`` (None: all axes); NaN if any is NaN."""
    return _extreme("max", x, MAX, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The least element along ``axis`` (None: all axes); NaN if any is NaN."""
    return _extreme("min", x, MIN, axis, keepdims)


def _truth_reduced(x, reduction, of_nothing, axis, keepdims):
    axes = axes_of(x.ndim, axis)
    if x.size == 0:
        return full(tuple(_result_shape(x, axes, keepdims)), of_nothing, dtype=dt.bool,
                    device=x.device)
    truth = x if x.dtype is dt.bool else x != 0
    return reduced(cast(truth, dt.int32), reduction, axes, keepdims) != 0


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements along ``axis`` (None: all axes) are not 0."""
    check_array("all", x)
    return _truth_reduced(x, MIN, True, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether any element along ``axis`` (None: all axes) is not 0."""
    check_array("any", x)
    return _truth_reduced(x, MAX, False, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """The number of elements along ``axis`` (None: all axes) that are not 0, int64."""
    check_array("count_nonzero", x)
    truth = x if x.dtype is dt.bool else x != 0
    return sum(cast(truth, dt.int64), axis=axis, keepdims=keepdims)


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first greatest element along ``axis`` (None: of the flat array), int64."""
    check_array("argmax", x)
    return _position("argmax", x, ARGMAX, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first least element along ``axis`` (None: of the flat array), int64."""
    check_array("argmin", x)
    return _position("argmin", x, ARGMIN, axis, keepdims)


def _position(name, x, reduction, axis, keepdims):
    if dt.is_complex(x.dtype):
        raise TypeError(f"{name}: expected real numbers, got an array of {x.dtype}")
    ndim = x.ndim
    if axis is None:
        x, axis = _core.reshape(x, (x.size,)), 0
    else:
        axis, ndim = axis_of(x.ndim, axis), 0
    if x.shape[axis] == 0:
        raise ValueError(f"{name}: no elements along the axis")
    shape = _result_shape(x, (axis,), keepdims)
    if x.size == 0:
        return filled(x._context, dt.int64, shape, 0)
    made = cast(_core.reduce(reduction, axis, keepdims, x), dt.int64)
    return _core.reshape(made, (1,) * ndim) if keepdims and ndim else made


# ---- Along an axis ----

def softmax(x, /, *, axis=-1):
    """exp(x) over its sum along ``axis``, without overflow."""
    return _core.softmax(axis_of(x.ndim, axis), False, x)


def log_softmax(x, /, *, axis=-1):
    """The logarithm of ``softmax``."""
    return _core.softmax(axis_of(x.ndim, axis), True, x)


def _running(name, x, axis, dtype, include_initial, kind, neutral):
    check_array(name, x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis: expected an axis for an array of rank {x.ndim}")
        axis = 0
    axis = axis_of(x.ndim, axis)
    x = cast(x, _sum_dtype(x.dtype, dtype))
    made = _core.scan(kind, axis, x) if x.size else _share(x)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        made = concat([filled(x._context, x.dtype, shape, neutral), made], axis=axis)
    return made


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the first 1, 2, ... elements along ``axis``; with ``include_initial`` a 0
    first."""
    return _running("cumulative_sum", x, axis, dtype, include_initial, SCAN_SUM, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the first 1, 2, ... elements along ``axis``; with ``include_initial`` a 1
    first."""
    return _running("cumulative_prod", x, axis, dtype, include_initial, SCAN_PRODUCT, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours along ``axis``, ``n`` times."""
    check_array("diff", x)
    axis = axis_of(x.ndim, axis)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = cast(concat(parts, axis=axis), x.dtype)
    for _ in range(n):
        length = x.shape[axis]
        if length < 2 or x.size == 0:
            shape = list(x.shape)
            shape[axis] = _max_of(0, length - 1)
            x = filled(x._context, x.dtype, shape, 0)
            continue
        later = _core.slice(x, axis, 1, length - 1, 1)
        earlier = _core.slice(x, axis, 0, length - 1, 1)
        x = binary("xor" if x.dtype is dt.bool else "sub", later, earlier)
    return _share(x) if n == 0 else x


# ---- Order ----

def _sortable(x):
    return cast(x, dt.float32) if x.dtype in (dt.float16, dt.bfloat16) else x


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices, int64, that put x in order along ``axis``; equal elements keep their order, NaN
    is greatest. Complex numbers are ordered by their real parts, equal ones by the imaginary."""
    check_array("argsort", x)
    axis = axis_of(x.ndim, axis)
    if x.size == 0:
        return filled(x._context, dt.int64, x.shape, 0)
    if dt.is_complex(x.dtype):
        first = argsort(imag(x), axis=axis, descending=descending)
        then = argsort(take_along_axis(real(x), first, axis=axis), axis=axis,
                       descending=descending)
        return take_along_axis(first, then, axis=axis)
    return cast(_core.sort(axis, descending, True, x), dt.int64)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """x in order along ``axis``, that of ``argsort``."""
    check_array("sort", x)
    axis = axis_of(x.ndim, axis)
    if dt.is_complex(x.dtype) and x.size:
        return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)
    return _core.sort(axis, descending, False, x) if x.size else _share(x)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """For each element of x2 the index in x1, of rank 1 and in order, before which it keeps the
    order; with ``side='right'`` after equal elements. Computed on the host."""
    check_array("searchsorted", x1)
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side: expected 'left' or 'right', got {side!r}")
    x2 = like(x1, x2)
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    dtype = dt.promote(x1.dtype, x2.dtype)
    if dt.is_complex(dtype):
        raise TypeError("searchsorted: expected real numbers, got complex ones")
    if x2.size == 0:
        return filled(x1._context, dt.int64, x2.shape, 0)
    made = _core.searchsorted(_sortable(cast(x1, dtype)), _sortable(cast(x2, dtype)),
                              side == "right")
    return _core.reshape(made, x2.shape)


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is one of x2, of bool. Computed on the host."""
    if not isinstance(x1, Array):
        x1 = like(x2, x1)
    x2 = like(x1, x2)
    dtype = dt.promote(x1.dtype, x2.dtype)
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    if x1.size == 0 or x2.size == 0:
        return full(x1.shape, invert, dtype=dt.bool, device=x1.device)
    ordered = sort(_core.reshape(x2, (x2.size,)))
    place = searchsorted(ordered, x1)
    found = take(ordered, _core.reshape(where(place < x2.size, place, 0), (x1.size,)), axis=0)
    made = _core.reshape(found, x1.shape) == x1
    return ~made if invert else made


unique_all_result = _namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = _namedtuple("unique_counts_result", "values counts")
unique_inverse_result = _namedtuple("unique_inverse_result", "values inverse_indices")


def unique_all(x, /):
    """The different elements of x in order, the index of the first of each in the flat x, the
    index of each element of x among them, and how often each is in x. Each NaN is different."""
    check_array("unique_all", x)
    flat = _core.reshape(x, (x.size,))
    if x.size == 0:
        none = filled(x._context, dt.int64, (0,), 0)
        return unique_all_result(flat, none, filled(x._context, dt.int64, x.shape, 0), none)
    order = argsort(flat)
    ordered = take(flat, order, axis=0)
    one = full((1,), True, dtype=dt.bool, device=x.device)
    first = one
    if x.size > 1:
        first = concat([one, _core.slice(ordered, 0, 1, x.size - 1, 1) !=
                        _core.slice(ordered, 0, 0, x.size - 1, 1)])
    starts = _core.nonzero(first)
    group = cumulative_sum(cast(first, dt.int64)) - 1
    inverse = take(group, argsort(order), axis=0)
    ends = concat([_core.slice(starts, 0, 1, starts.size - 1, 1) if starts.size > 1 else
                   filled(x._context, dt.int64, (0,), 0),
                   full((1,), x.size, dtype=dt.int64, device=x.device)])
    return unique_all_result(take(ordered, starts, axis=0), take(order, starts, axis=0),
                             _core.reshape(inverse, x.shape), ends - starts)


def unique_counts(x, /):
    """The different elements of x in order, and how often each is in x."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x, /):
    """The different elements of x in order, and the index of each element of x among them."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x, /):
    """The different elements of x in order."""
    return unique_all(x).values
