"""Matrix products."""
from . import _core
from . import _dtypes as dt
from ._create import cast, filled
from ._elementwise import check_array, conj
from ._move import axis_of, broadcast_shapes
from ._reduce import sum

__all__ = ["matmul", "tensordot", "vecdot"]

PRECISIONS = {"strict": 0, "accurate": 1, "fast": 2, "exact": 4}


def _numbers(function, x1, x2):
    check_array(function, x1)
    check_array(function, x2)
    dtype = dt.promote(x1.dtype, x2.dtype)
    if dtype is dt.bool:
        raise TypeError(f"{function}: expected numbers, got arrays of bool")
    return cast(x1, dtype), cast(x2, dtype), dtype


def matmul(x1, x2, /, *, precision="strict"):
    """The matrix product of x1 [..., n, k] and x2 [..., k, m]: [..., n, m]. An array of rank 1 is a
    row on the left and a column on the right, whose axis the result lacks. ``precision`` is
    'strict' (IEEE arithmetic), 'accurate' or 'fast' (the device's matrix units), or of float64
    'exact' (by integers, with the same bits on every device); sums of integers wrap."""
    x1, x2, dtype = _numbers("matmul", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError("matmul: expected at least one axis, got rank 0")
    row, column = x1.ndim == 1, x2.ndim == 1
    x1 = _core.reshape(x1, (1,) + x1.shape) if row else x1
    x2 = _core.reshape(x2, x2.shape + (1,)) if column else x2
    (n, k), (k2, m) = x1.shape[-2:], x2.shape[-2:]
    if k != k2:
        raise ValueError(f"matmul: the shapes {x1.shape} and {x2.shape} do not fit")
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    shape = batch + (() if row else (n,)) + (() if column else (m,))
    if 0 in shape or k == 0:
        return filled(x1._context, dtype, shape, 0)
    if not batch:
        made = _core.matmul(x1, x2, PRECISIONS[precision])
    else:
        count = 1
        for length in batch:
            count *= length
        if len(x2.shape) == 2:  # one matrix on the right: all rows at once
            made = _core.matmul(_core.reshape(x1, (count * n, k)), x2, PRECISIONS[precision])
        else:
            left = _core.reshape(_core.broadcast(x1, batch + (n, k)), (count, n, k))
            right = _core.reshape(_core.broadcast(x2, batch + (k, m)), (count, k, m))
            made = _core.matmul(left, right, PRECISIONS[precision])
    return made if made.shape == shape else _core.reshape(made, shape)


def tensordot(x1, x2, /, *, axes=2):
    """The sum of products over pairs of axes: the last ``axes`` of x1 with the first of x2, or two
    sequences of axes."""
    x1, x2, dtype = _numbers("tensordot", x1, x2)
    if isinstance(axes, int):
        first, second = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        first, second = ([axis_of(x.ndim, i) for i in part]
                         for x, part in zip((x1, x2), axes))
    if len(first) != len(second) or any(x1.shape[i] != x2.shape[j]
                                        for i, j in zip(first, second)):
        raise ValueError(f"tensordot: axes: {axes} do not fit {x1.shape} and {x2.shape}")
    rows = [i for i in range(x1.ndim) if i not in first]
    columns = [i for i in range(x2.ndim) if i not in second]
    shape = tuple(x1.shape[i] for i in rows) + tuple(x2.shape[i] for i in columns)
    n, m, k = 1, 1, 1
    for i in rows:
        n *= x1.shape[i]
    for i in columns:
        m *= x2.shape[i]
    for i in first:
        k *= x1.shape[i]
    if n * m * k == 0:
        return filled(x1._context, dtype, shape, 0)
    left = _core.reshape(_core.permute(x1, rows + first), (n, k))
    right = _core.reshape(_core.permute(x2, second + columns), (k, m))
    return _core.reshape(matmul(left, right), shape)


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of conj(x1) x2 along ``axis``, which counts from the end; the other axes are
    broadcast."""
    x1, x2, dtype = _numbers("vecdot", x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot: axis: expected -{min(x1.ndim, x2.ndim)} to -1, got {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: the shapes {x1.shape} and {x2.shape} do not fit")
    return sum(conj(x1) * x2, axis=axis, dtype=dtype)
