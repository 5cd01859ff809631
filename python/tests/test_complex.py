"""Complex numbers: operators, functions and their special values, views, assignment, exchange, text
as NumPy prints it, linear algebra."""
import cmath
import math
import pickle

import pytest

import halyard as hx

numpy = pytest.importorskip("numpy")

DTYPES = ["complex64", "complex128"]


def numbers(name, shape=(3, 4), seed=0):
    made = numpy.random.default_rng(seed).normal(size=(2, *shape))
    return (made[0] + 1j * made[1]).astype(name)


def near(x, want, factor=40):
    found, want = numpy.asarray(x), numpy.asarray(want)
    eps = numpy.finfo(found.dtype).eps
    return found.shape == want.shape and bool(
        (abs(found - want) <= factor * eps * (1 + abs(want))).all())


@pytest.mark.parametrize("name", DTYPES)
def test_exchange_without_loss(name):
    a = numbers(name)
    for part in (a, a[::-1, 1:3], a.T, a[:0], a[1, 2:3]):
        for x in (hx.asarray(part), hx.from_dlpack(numpy.asarray(part)), hx.asarray(part.tolist(),
                  dtype=getattr(hx, name)) if part.size else hx.asarray(part)):
            assert x.dtype is getattr(hx, name) and x.shape == part.shape
            assert numpy.array_equal(numpy.asarray(x), part)
            assert numpy.array_equal(numpy.from_dlpack(x, device="cpu"), part)
            assert pickle.loads(pickle.dumps(x)).tolist() == part.tolist()


def test_memory_is_shared_on_the_processor():
    with hx.Device("cpu") as device:
        a = numbers("complex64", (100,))
        before = device.memory()["copied_bytes"]
        x = hx.from_dlpack(a[::2])
        assert device.memory()["copied_bytes"] == before
        assert numpy.array_equal(numpy.asarray(x), a[::2])
        y = hx.asarray(a)
        hx.evaluate(y)
        views = [numpy.from_dlpack(y) for _ in range(2)]
        assert views[0].dtype == a.dtype and views[0].ctypes.data == views[1].ctypes.data


@pytest.mark.parametrize("name", DTYPES)
def test_operators_and_functions(name):
    a, b = numbers(name), numbers(name, (4,), 1)
    x, y = hx.asarray(a), hx.asarray(b)
    assert near(x + y, a + b) and near(x - y, a - b) and near(x * y, a * b)
    assert near(x / y, a / b) and near(x ** y, a ** b, 400) and near(-x, -a) and near(+x, a)
    assert near(x * 2 - 1j, a * 2 - 1j) and near(1 / x, 1 / a) and near(2.5 - x, 2.5 - a)
    assert near(abs(x), abs(a)) and abs(x).dtype is hx.real(x).dtype
    for f in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh",
              "cosh", "tanh", "square", "reciprocal", "conj", "real", "imag"):
        assert near(getattr(hx, f)(x), getattr(numpy, f)(a)), f
    for f in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
        assert near(getattr(hx, f)(x), getattr(numpy, "arc" + f[1:])(a)), f
    assert near(hx.sign(x), a / abs(a)) and near(hx.round(x * 3), numpy.round(a * 3))
    assert (x == x).tolist() == (a == a).tolist() and not hx.any(x != x)
    x += y
    x *= 1j
    assert near(x, (a + b) * 1j)


def test_special_values_are_those_of_annex_g():
    inf, nan = math.inf, math.nan
    parts = [0.0, -0.0, 1.0, -2.5, inf, -inf, nan]
    points = [complex(re, im) for re in parts for im in parts]
    x = hx.asarray(points, dtype=hx.complex128)
    for name in ("exp", "log", "sqrt", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "acos"):
        for z, found in zip(points, getattr(hx, name)(x).tolist()):
            if name in ("tanh", "acosh") and z.real == 0:  # cmath has those of an earlier C
                continue
            try:
                want = getattr(cmath, name)(z)
            except (ValueError, OverflowError):  # Python raises where Annex G has a flag
                continue
            for got, part in ((found.real, want.real), (found.imag, want.imag)):
                assert math.isnan(got) == math.isnan(part), (name, z, found)
                if math.isinf(part):  # of open signs
                    assert math.isinf(got), (name, z, found)
                elif not math.isnan(part):
                    assert math.isclose(got, part, rel_tol=1e-14), (name, z, found)
                if math.isfinite(z.real) and math.isfinite(z.imag):
                    assert math.copysign(1, got) == math.copysign(1, part), (name, z, found)
    assert hx.isnan(x).tolist() == [cmath.isnan(z) for z in points]
    assert hx.isinf(x).tolist() == [cmath.isinf(z) for z in points]
    assert hx.isfinite(x).tolist() == [cmath.isfinite(z) for z in points]


def test_sizes_at_the_ends_of_the_range():
    x = hx.asarray([3e38 + 3e38j, 1e-38 + 1e-38j, 2e38j])
    assert near(x / x, numpy.ones(3, "complex64"))
    assert near(abs(hx.asarray([2e38 + 2e38j])), numpy.asarray([2.828427e38], "float32"))
    want = numpy.sqrt(numpy.asarray(x).astype("complex128"))
    assert near(hx.astype(hx.sqrt(x), hx.complex128) / hx.asarray(want), numpy.ones(3), 1e10)


def test_promotion():
    assert (hx.ones(2) + 1j).dtype is hx.complex64
    assert (hx.ones(2, dtype=hx.float64) * 1j).dtype is hx.complex128
    assert (hx.asarray([1, 2]) + 1j).dtype is hx.complex64
    assert hx.result_type(hx.complex64, hx.float64) is hx.complex128
    assert hx.result_type(hx.float16, hx.complex64) is hx.complex64
    assert hx.isdtype(hx.complex64, "complex floating") and hx.isdtype(hx.complex64, "numeric")
    assert hx.finfo(hx.complex64).dtype is hx.float32
    assert hx.astype(hx.asarray([1, 2]), hx.complex64).tolist() == [1, 2]
    assert complex(hx.asarray(1 + 2j)) == 1 + 2j and bool(hx.asarray(1j))
    for refused in (lambda x: hx.astype(x, hx.float32), float, int, lambda x: x < x, lambda x: x // x,
                    lambda x: hx.maximum(x, x), hx.floor, hx.max, hx.argmax,
                    lambda x: hx.atan2(x, x), lambda x: hx.ones(1).__setitem__(0, 1j)):
        with pytest.raises(TypeError):
            refused(hx.asarray([1 + 2j]))


@pytest.mark.parametrize("name", DTYPES)
def test_moves_and_reductions(name):
    a = numbers(name)
    x = hx.asarray(a)
    assert near(x.T, a.T) and near(x[1], a[1]) and near(x[:, ::-2], a[:, ::-2])
    assert near(hx.reshape(x, (2, 6)), a.reshape(2, 6)) and near(hx.flip(x), numpy.flip(a))
    assert near(hx.concat([x, x], axis=1), numpy.concatenate([a, a], 1))
    assert near(hx.stack([x, hx.ones_like(x)]), numpy.stack([a, numpy.ones_like(a)]))
    assert near(hx.take(x, hx.asarray([2, 0]), axis=1), a[:, [2, 0]])
    assert near(x[hx.real(x) > 0], a[a.real > 0]) and near(hx.roll(x, 1), numpy.roll(a, 1))
    assert near(hx.where(hx.imag(x) > 0, x, 0), numpy.where(a.imag > 0, a, 0))
    assert near(hx.sort(x, axis=0), numpy.sort(a, axis=0)) and near(hx.tril(x), numpy.tril(a))
    assert near(hx.sum(x, axis=0), a.sum(0)) and near(hx.mean(x), a.mean())
    assert near(hx.prod(x), a.prod()) and near(hx.prod(x, axis=1), a.prod(1))
    assert near(hx.cumulative_prod(x, axis=1), a.cumprod(1))
    assert near(hx.cumulative_sum(x, axis=0), a.cumsum(0))
    assert near(hx.var(x), a.var()) and near(hx.diff(x), numpy.diff(a))
    x[1:, 0] = 2j
    x[hx.real(x) > 1] = 0
    a[1:, 0] = 2j
    a[a.real > 1] = 0
    assert near(x, a)
    assert near(hx.real(x), a.real) and hx.imag(x).dtype is hx.real(x).dtype


@pytest.mark.parametrize("name", DTYPES)
def test_products(name):
    a, b = numbers(name, (2, 3, 5)), numbers(name, (2, 5, 4), 1)
    x, y = hx.asarray(a), hx.asarray(b)
    assert near(x @ y, a @ b) and near(x[0] @ y[0], a[0] @ b[0]) and near(x @ y[0, :, 0], a @ b[0, :, 0])
    assert near(hx.vecdot(x[0], x[1]), numpy.sum(numpy.conj(a[0]) * a[1], -1))
    assert near(hx.tensordot(x[0], y[0], axes=1), numpy.tensordot(a[0], b[0], 1))
    assert near(hx.linalg.vector_norm(x), numpy.linalg.norm(a.ravel()))
    assert near(hx.linalg.matrix_norm(x), numpy.linalg.norm(a, axis=(1, 2)))


def test_a_chain_is_one_kernel(kernels_of):
    with hx.Device("cpu"):
        x, y = hx.asarray(numbers("complex64")), hx.asarray(numbers("complex64", seed=1))
        hx.evaluate(x, y)
        assert kernels_of(lambda x: hx.exp(x * y + x) / (x - hx.sqrt(y)), x) == 1
        assert kernels_of(lambda x: hx.real(x) - hx.imag(y), x) == 1
        assert kernels_of(lambda x: hx.sort(x * y) - x, x) > 1


def test_recorded_steps():
    step = hx.compile(lambda x, y: (x * y + (2 - 3j), hx.real(x)))
    for seed in range(3):
        a, b = numbers("complex64", seed=seed), numbers("complex64", seed=seed + 7)
        product, real = step(hx.asarray(a), hx.asarray(b))
        assert near(product, a * b + (2 - 3j)) and near(real, a.real)


@pytest.mark.parametrize("values", [[1 + 2j, -3.5j, 0, 1e-3 + 4j], [1e10 + 1j, -1e-10j],
                                    [[1j, 2], [3, -4j]], [complex(math.nan, -math.inf), 1],
                                    numpy.arange(2000) * (1 - 1j)])
def test_text_is_that_of_numpy(values):
    a = numpy.asarray(values, dtype="complex64")
    x = hx.asarray(a)
    assert str(x) == str(a)
    assert repr(x) == repr(a)


@pytest.mark.parametrize("name", DTYPES)
def test_factorisations(name):
    a, b = numbers(name, (2, 4, 4)), numbers(name, (2, 4, 3), 1)
    x, y = hx.asarray(a), hx.asarray(b)
    linalg, hermitian = hx.linalg, a + numpy.conj(a.transpose(0, 2, 1))
    definite = a @ numpy.conj(a.transpose(0, 2, 1)) + numpy.eye(4).astype(name)
    assert near(linalg.solve(x, y), numpy.linalg.solve(a, b), 1000)
    assert near(linalg.inv(x) @ x, numpy.broadcast_to(numpy.eye(4), a.shape), 1000)
    assert near(linalg.det(x), numpy.linalg.det(a), 1000)
    lower = linalg.cholesky(hx.asarray(definite))
    assert near(lower, numpy.linalg.cholesky(definite), 1000)
    upper = numpy.conj(numpy.linalg.cholesky(definite).transpose(0, 2, 1))
    assert near(linalg.cholesky(hx.asarray(definite), upper=True), upper, 1000)
    one = numpy.broadcast_to(numpy.eye(4), a.shape)
    q, r = linalg.qr(x)
    assert near(q @ r, a, 1000) and near(hx.conj(q.mT) @ q, one, 1000) and near(hx.triu(r), r)
    values, vectors = linalg.eigh(hx.asarray(hermitian))
    assert near(values, numpy.linalg.eigvalsh(hermitian), 1000) and not hx.isdtype(
        values.dtype, "complex floating")
    assert near(hx.asarray(hermitian) @ vectors, numpy.asarray(vectors * values[:, None, :]), 1000)
    for m in (a, b, b.transpose(0, 2, 1)):
        u, s, vh = linalg.svd(hx.asarray(m), full_matrices=False)
        assert near(s, numpy.linalg.svd(m, compute_uv=False), 1000)
        assert near((u * s[:, None, :]) @ vh, m, 1000)
        assert near(linalg.pinv(hx.asarray(m)), numpy.linalg.pinv(m), 1000)
        u, s, vh = linalg.svd(hx.asarray(m))
        assert u.shape[-1] == m.shape[-2] and vh.shape[-2] == m.shape[-1]
        assert near(hx.conj(u.mT) @ u, numpy.broadcast_to(numpy.eye(u.shape[-1]), u.shape), 1000)
    assert linalg.matrix_rank(x).tolist() == [4, 4]


@pytest.mark.parametrize("name", ["float32", "float64", *DTYPES])
def test_eigenvalues_of_any_matrix(name):
    generator = numpy.random.default_rng(3)
    for n in (1, 2, 5, 12):
        a = generator.normal(size=(3, n, n)).astype(name)
        if name in DTYPES:
            a = a + 1j * generator.normal(size=a.shape).astype(a.real.dtype)
        values, vectors = hx.linalg.eig(hx.asarray(a))
        assert values.dtype is getattr(hx, str((a + 0j).dtype)) and vectors.shape == a.shape
        wide = numpy.asarray(vectors).astype("complex128")
        error = a @ wide - wide * numpy.asarray(values)[:, None, :]
        assert abs(error).max() < 300 * numpy.finfo(a.dtype).eps
        assert abs(numpy.linalg.norm(wide, axis=1) - 1).max() < 1e-6
    shift = numpy.roll(numpy.eye(6), 1, axis=1)  # a cycle, and a matrix with one eigenvector
    found = numpy.asarray(hx.linalg.eigvals(hx.asarray(shift)))
    assert abs(found ** 6 - 1).max() < 1e-12
    block = hx.linalg.eig(hx.asarray([[2.0, 1.0], [0.0, 2.0]], dtype=hx.float64))
    assert near(block.eigenvalues, [2, 2]) and abs(abs(block.eigenvectors[0, 1]) - 1) < 1e-12
    with pytest.raises(ValueError):
        hx.linalg.eigvals(hx.asarray([[math.nan, 1], [2, 3]]))
