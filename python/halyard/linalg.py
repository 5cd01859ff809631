"""The standard's linear algebra. Products and norms are computed on the device; factorisations, of
which ops has none, on the host in double precision (src/linalg.c, src/linalg_eig.c)."""
import builtins as _builtins
import math as _math
from collections import namedtuple as _namedtuple

from . import _core
from . import _dtypes as dt
from ._create import cast, eye, filled
from ._elementwise import abs, check_array, conj, exp, imag, real, sqrt, squared, where
from ._linear import matmul, tensordot, vecdot
from ._index import take_along_axis
from ._move import (axes_of, axis_of, broadcast_arrays, broadcast_shapes, concat, matrix_transpose,
                    stack)
from ._reduce import argsort, max, min, sum

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
           "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
           "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]

_greatest, _least = _builtins.max, _builtins.min


def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of length 3 along ``axis``; the other axes are broadcast."""
    x1, x2 = broadcast_arrays(x1, x2)
    axis = axis_of(x1.ndim, axis)
    if x1.shape[axis] != 3:
        raise ValueError(f"cross: expected an axis of length 3, got {x1.shape[axis]}")
    shape = x1.shape[:axis] + x1.shape[axis + 1:]
    a, b = ([_core.reshape(_core.slice(x, axis, i, 1, 1), shape) for i in range(3)]
            for x in (x1, x2))
    return stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                  a[0] * b[1] - a[1] * b[0]], axis=axis)


def diagonal(x, /, *, offset=0):
    """The elements x[..., i, i + offset] of matrices [..., n, m]."""
    check_array("diagonal", x)
    rows, columns = x.shape[-2:]
    first = -offset if offset < 0 else 0
    count = _greatest(0, _least(rows - first, columns - _greatest(offset, 0)))
    if count == 0 or x.size == 0:
        return filled(x._context, x.dtype, x.shape[:-2] + (count,), 0)
    flat = _core.reshape(x, x.shape[:-2] + (rows * columns,))
    start = first * columns + _greatest(offset, 0)
    return _core.slice(flat, x.ndim - 2, start, count, columns + 1)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of the diagonal of matrices [..., n, m]."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1, x2, /):
    """The products of all pairs of elements of two vectors: [n, m]."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("outer: expected two vectors")
    return _core.reshape(x1, (x1.size, 1)) * _core.reshape(x2, (1, x2.size))


def matrix_power(x, n, /):
    """The product of ``n`` >= 0 times the square matrices [..., m, m]."""
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return _core.copy(_core.broadcast(one, x.shape)) if x.size else x
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return result


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of order ``ord`` along ``axis`` (None: of all elements): inf, -inf, 0 (how many are
    not 0) or a number."""
    check_array("vector_norm", x)
    if not dt.is_inexact(x.dtype):
        raise TypeError(f"vector_norm: expected floats, got an array of {x.dtype}")
    axes = axes_of(x.ndim, axis)
    size = abs(x)
    if ord == _math.inf:
        return max(size, axis=axes, keepdims=keepdims)
    if ord == -_math.inf:
        return min(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return sum(cast(size != 0, size.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axes, keepdims=keepdims)
    if ord == 2:
        return sqrt(sum(squared(x), axis=axes, keepdims=keepdims))
    return sum(size ** float(ord), axis=axes, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of matrices [..., n, m]: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."""
    check_array("matrix_norm", x)
    size = abs(x)
    if ord == "fro":
        return sqrt(sum(squared(x), axis=(-2, -1), keepdims=keepdims))
    if ord in (1, -1, _math.inf, -_math.inf):
        first, second = (-2, -1) if ord in (1, -1) else (-1, -2)
        extreme = max if ord > 0 else min
        made = extreme(sum(size, axis=first, keepdims=True), axis=second, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(x)
        made = {2: max, -2: min, "nuc": sum}[ord](values, axis=-1, keepdims=True)
        made = _core.reshape(made, made.shape + (1,))
    else:
        raise ValueError(f"matrix_norm: ord: got {ord!r}")
    return made if keepdims else _core.reshape(made, made.shape[:-2])


# ---- Factorisations, on the host ----

eig_result = _namedtuple("eig_result", "eigenvalues eigenvectors")
eigh_result = _namedtuple("eigh_result", "eigenvalues eigenvectors")
qr_result = _namedtuple("qr_result", "Q R")
slogdet_result = _namedtuple("slogdet_result", "sign logabsdet")
svd_result = _namedtuple("svd_result", "U S Vh")


def _stacked(function, x, square=False):
    """x as [count, n, m] of float32, float64 or complex numbers, and the shape before."""
    check_array(function, x)
    if not dt.is_inexact(x.dtype):
        raise TypeError(f"{function}: expected floats, got an array of {x.dtype}")
    if x.ndim < 2 or square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{function}: expected {'square ' * square}matrices, got the shape "
                         f"{x.shape}")
    if x.dtype in (dt.float16, dt.bfloat16):
        x = cast(x, dt.float32)
    count = 1
    for length in x.shape[:-2]:
        count *= length
    return _core.reshape(x, (count,) + x.shape[-2:]), x.shape[:-2]


def slogdet(x, /):
    """The signs and the logarithms of the absolute values of determinants of x [..., n, n]."""
    flat, shape = _stacked("slogdet", x, True)
    if x.size == 0:
        return slogdet_result(filled(x._context, x.dtype, shape, 1),
                              filled(x._context, dt.part_of(x.dtype), shape, 0))
    sign, logarithm = (_core.reshape(part, shape) for part in _core.slogdet(flat))
    return slogdet_result(cast(sign, x.dtype), cast(logarithm, dt.part_of(x.dtype)))


def det(x, /):
    """The determinants of x [..., n, n]."""
    found = slogdet(x)
    return found.sign * exp(found.logabsdet)


def solve(x1, x2, /):
    """The y with x1 y = x2 for x1 [..., n, n] and x2 [n] or [..., n, m]. ValueError if a matrix is
    singular."""
    dtype = dt.promote(x1.dtype, x2.dtype)
    column = x2.ndim == 1
    if column:
        x2 = _core.reshape(x2, (x2.size, 1))
    if x1.ndim < 2 or x1.shape[-1] != x1.shape[-2] or x2.shape[-2] != x1.shape[-1]:
        raise ValueError(f"solve: the shapes {x1.shape} and {x2.shape} do not fit")
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    shape = batch + x2.shape[-2:]
    if 0 in shape or 0 in x1.shape:
        made = filled(x1._context, dtype, shape, 0)
    else:
        a = _core.broadcast(cast(x1, dtype), batch + x1.shape[-2:])
        b = _core.broadcast(cast(x2, dtype), shape)
        made = _core.solve(_stacked("solve", a, True)[0], _stacked("solve", b)[0])
        made = cast(_core.reshape(made, shape), dtype)
    return _core.reshape(made, shape[:-1]) if column else made


def inv(x, /):
    """The inverses of x [..., n, n]. ValueError if a matrix is singular."""
    _stacked("inv", x, True)
    return solve(x, eye(x.shape[-1], dtype=x.dtype, device=x.device))


def cholesky(x, /, *, upper=False):
    """The lower triangular L with L L^H = x [..., n, n], or with ``upper`` U with U^H U = x.
    ValueError if a matrix is not positive definite."""
    flat, _ = _stacked("cholesky", x, True)
    if x.size == 0:
        return x
    made = cast(_core.reshape(_core.cholesky(matrix_transpose(flat) if upper else flat), x.shape),
                x.dtype)
    return matrix_transpose(made) if upper else made


def qr(x, /, *, mode="reduced"):
    """Q and the upper triangular R with Q R = x [..., n, m]: of min(n, m) columns of Q, or with
    mode 'complete' of n."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode: expected 'reduced' or 'complete', got {mode!r}")
    flat, shape = _stacked("qr", x)
    n, m = x.shape[-2:]
    k = _least(n, m) if mode == "reduced" else n
    if 0 in shape or n == 0:
        return qr_result(filled(x._context, x.dtype, shape + (n, k), 0),
                         filled(x._context, x.dtype, shape + (k, m), 0))
    if m == 0:
        q = _core.broadcast(eye(n, dtype=x.dtype, device=x.device)[:, :k], shape + (n, k))
        return qr_result(q, filled(x._context, x.dtype, shape + (k, m), 0))
    q, r = _core.qr(flat)
    q, r = q[:, :, :k], r[:, :k, :]
    return qr_result(cast(_core.reshape(q, shape + (n, k)), x.dtype),
                     cast(_core.reshape(r, shape + (k, m)), x.dtype))


def eig(x, /):
    """The eigenvalues [..., n] and eigenvectors of length 1, in columns, of x [..., n, n]: complex
    numbers, in no order. ValueError for NaN and infinities."""
    flat, shape = _stacked("eig", x, True)
    dtype, n = dt.complex_of(x.dtype), x.shape[-1]
    if x.size == 0:
        return eig_result(filled(x._context, dtype, shape + (n,), 0),
                          filled(x._context, dtype, x.shape, 0))
    values, vectors = _core.eig(cast(flat, dtype))
    return eig_result(_core.reshape(values, shape + (n,)), _core.reshape(vectors, x.shape))


def eigvals(x, /):
    """The eigenvalues of ``eig``."""
    return eig(x).eigenvalues


def eigh(x, /):
    """The eigenvalues [..., n], in ascending order, and eigenvectors, in columns, of symmetric or
    Hermitian x [..., n, n], of which the lower triangle is read."""
    flat, shape = _stacked("eigh", x, True)
    dtype, n = dt.part_of(x.dtype), x.shape[-1]
    if x.size == 0:
        return eigh_result(filled(x._context, dtype, shape + (n,), 0), x)
    values, vectors = _core.eigh(flat)
    order = argsort(values, axis=-1)
    values = take_along_axis(values, order, axis=-1)
    vectors = take_along_axis(vectors, order, axis=-1)
    return eigh_result(cast(_core.reshape(values, shape + (n,)), dtype),
                       cast(_core.reshape(vectors, x.shape), x.dtype))


def eigvalsh(x, /):
    """The eigenvalues of ``eigh``."""
    return eigh(x).eigenvalues


def svd(x, /, *, full_matrices=True):
    """U, the singular values S [..., k] in descending order, and Vh with U S Vh = x [..., n, m]:
    k = min(n, m); U and Vh are square, or without ``full_matrices`` of k columns and rows."""
    flat, shape = _stacked("svd", x)
    n, m = x.shape[-2:]
    if n < m:
        u, s, vh = svd(matrix_transpose(x), full_matrices=full_matrices)
        return svd_result(matrix_transpose(vh), s, matrix_transpose(u))
    columns = n if full_matrices else m
    if 0 in shape or m == 0:
        u = eye(n, columns, dtype=x.dtype, device=x.device)
        return svd_result(_core.broadcast(u, shape + (n, columns)),
                          filled(x._context, dt.part_of(x.dtype), shape + (m,), 0),
                          filled(x._context, x.dtype, shape + (m, m), 0))
    scaled, v = _core.svd(flat)
    q, r = _core.qr(scaled)  # the columns are orthogonal: r is diagonal
    diagonals = diagonal(r)
    s = abs(diagonals)
    signs = where(s == 0, 1.0, diagonals / where(s == 0, 1.0, s))
    u = q[:, :, :m] * _core.reshape(signs, (signs.shape[0], 1, m))
    if columns > m:
        u = concat([u, q[:, :, m:]], axis=2)
    return svd_result(cast(_core.reshape(u, shape + (n, columns)), x.dtype),
                      cast(_core.reshape(s, shape + (m,)), dt.part_of(x.dtype)),
                      cast(_core.reshape(conj(matrix_transpose(v)), shape + (m, m)), x.dtype))


def svdvals(x, /):
    """The singular values of ``svd``."""
    return svd(x, full_matrices=False).S


def _cut(values, rtol, x, function):
    """The least singular value that counts: rtol times the greatest one."""
    if rtol is None:
        rtol = _greatest(x.shape[-2:]) * dt.finfo(x.dtype).eps
    if not isinstance(rtol, (int, float)):
        rtol = _core.reshape(cast(rtol, values.dtype), rtol.shape + (1,))
    return max(values, axis=-1, keepdims=True) * rtol


def matrix_rank(x, /, *, rtol=None):
    """How many singular values of x [..., n, m] are above ``rtol`` times the greatest, int64."""
    values = svdvals(x)
    if values.size == 0:
        return filled(x._context, dt.int64, x.shape[:-2], 0)
    return sum(cast(values > _cut(values, rtol, x, "matrix_rank"), dt.int64), axis=-1)


def pinv(x, /, *, rtol=None):
    """The pseudo-inverses of x [..., n, m], without the singular values that are not above
    ``rtol`` times the greatest."""
    _stacked("pinv", x)
    if x.size == 0:
        return matrix_transpose(x)
    u, s, vh = svd(x, full_matrices=False)
    keep = s > _cut(s, rtol, x, "pinv")
    inverse = where(keep, 1.0 / where(keep, s, 1.0), 0.0)
    scaled = conj(matrix_transpose(vh)) * _core.reshape(inverse,
                                                        s.shape[:-1] + (1, s.shape[-1]))
    return matmul(scaled, conj(matrix_transpose(u)))
