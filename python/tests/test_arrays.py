"""Arrays against Python's own numbers: operators, indexing, assignment, order, text, errors."""
import doctest
import math
import operator
import pathlib
import pickle
import re

import pytest

import halyard as hx


def test_operators_of_integers_follow_python():
    values = [-7, -3, -1, 0, 1, 2, 5, 6]
    others = [3, -2, 5, -7, 2, -1, 1, -4]
    for dtype in (hx.int8, hx.int16, hx.int32, hx.int64):
        x, y = hx.asarray(values, dtype=dtype), hx.asarray(others, dtype=dtype)
        for function in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
                         operator.and_, operator.or_, operator.xor, operator.lt, operator.ge,
                         operator.eq):
            assert function(x, y).tolist() == [function(a, b) for a, b in zip(values, others)]
    assert (hx.asarray([1, 1, -8, 3]) << hx.asarray([3, 70, 1, 0])).tolist() == [8, 0, -16, 3]
    assert (hx.asarray([16, -1, -16, 3]) >> hx.asarray([2, 70, 2, 0])).tolist() == [4, -1, -4, 3]
    assert (hx.asarray([2, -1, 0, 7, -3]) ** hx.asarray([62, 81, 64, 0, 3])).tolist() == \
        [2 ** 62, -1, 0, 1, -27]


def test_operators_of_floats_follow_python():
    values = [-7.5, -3.0, -0.0, 0.0, 5.25, math.inf, 1e-3]
    others = [2.0, -2.0, 3.0, -3.0, -0.5, 2.0, 7.0]
    x, y = hx.asarray(values, dtype=hx.float64), hx.asarray(others, dtype=hx.float64)
    for i, (a, b) in enumerate(zip(values, others)):
        if math.isinf(a):
            continue
        for made, want in ((x // y)[i].item(), a // b), ((x % y)[i].item(), a % b):
            assert made == want and math.copysign(1, made) == math.copysign(1, want), (a, b)


def test_promotion():
    assert (hx.ones(2, dtype=hx.int8) + hx.ones(2, dtype=hx.uint8)).dtype is hx.int16
    assert (hx.ones(2, dtype=hx.float32) + hx.ones(2, dtype=hx.float64)).dtype is hx.float64
    assert (hx.ones(2, dtype=hx.uint8) + 1).dtype is hx.uint8
    with pytest.raises(TypeError):
        hx.ones(2, dtype=hx.uint64) + hx.ones(2, dtype=hx.int8)
    with pytest.raises(OverflowError):
        hx.ones(2, dtype=hx.uint8) + 256
    with pytest.raises(TypeError):
        hx.ones(2) + "1"
    big = hx.asarray([2 ** 63 - 1, -2 ** 63])
    assert (big ^ 2 ** 62).tolist() == [(2 ** 63 - 1) ^ 2 ** 62, -2 ** 63 ^ 2 ** 62]


KEYS = [0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(4, 0, -2), slice(0, 0), None,
        Ellipsis, (1, 2), (slice(1, 3), 0), (Ellipsis, 1), (None, slice(None), 2), (2, None),
        (slice(None, None, 2), slice(3, 0, -1)), (slice(-2, None), slice(-3, -1))]


def reference(key, rows, columns, assigned=None):
    """What NumPy's rules select of a matrix of row * 10 + column; or the matrix after assignment."""
    key = key if isinstance(key, tuple) else (key,)
    parts = [k for k in key if k is not None]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at:at + 1] = [slice(None)] * (3 - len(parts))
    parts += [slice(None)] * (2 - len(parts))
    sets = [range(n)[p] if isinstance(p, slice) else [range(n)[p]]
            for p, n in zip(parts, (rows, columns))]
    if assigned is None:
        return [i * 10 + j for i in sets[0] for j in sets[1]]
    return [[assigned if i in sets[0] and j in sets[1] else i * 10 + j for j in range(columns)]
            for i in range(rows)]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_and_assignment(key):
    matrix = [[i * 10 + j for j in range(5)] for i in range(6)]
    x = hx.asarray(matrix)
    part = x[key]
    assert hx.reshape(part, -1).tolist() == reference(key, 6, 5) if part.size else part.size == 0
    before = hx.asarray(x, copy=True)
    x[key] = -1
    assert x.tolist() == reference(key, 6, 5, -1)
    assert before.tolist() == matrix
    x = hx.asarray(matrix)
    x[key] = part * 2
    y = hx.asarray(matrix)
    assert hx.reshape(x[key], -1).tolist() == hx.reshape(y[key] * 2, -1).tolist()


def test_indexing_by_arrays():
    x = hx.reshape(hx.arange(12), (3, 4))
    assert x[x > 6].tolist() == [7, 8, 9, 10, 11]
    assert x[hx.asarray([True, False, True])].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert x[hx.asarray([2, -3, 1])].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert x[hx.asarray([[0], [2]]), hx.asarray([1, -1])].tolist() == [[1, 3], [9, 11]]
    assert x[:, hx.asarray([3, 0])].tolist() == [[3, 0], [7, 4], [11, 8]]
    x[x > 6] = 0
    x[hx.asarray([0, 0]), hx.asarray([1, 2])] = hx.asarray([50, 60])
    x[hx.asarray([True, False, False])] = hx.asarray([[1, 2, 3, 4]])
    assert x.tolist() == [[1, 2, 3, 4], [4, 5, 6, 0], [0, 0, 0, 0]]
    for key in (3, (0, 4), (0, 0, 0), (Ellipsis, Ellipsis), 1.5, hx.asarray([True])):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(ValueError):
        x[0] = hx.ones(3, dtype=hx.int64)
    with pytest.raises(TypeError):
        x[0] = 1.5


def test_in_place_changes_all_names():
    x = hx.ones(3)
    y, part = x, x[:2]
    x += 1
    assert y.tolist() == [2, 2, 2] and part.tolist() == [1, 1]
    with pytest.raises(TypeError):
        x += hx.ones((2, 3))


def test_order_and_sets():
    x = hx.asarray([3.0, math.nan, -0.0, 0.0, -5.0, 3.0])
    assert hx.argsort(x).tolist() == [4, 2, 3, 0, 5, 1]
    assert hx.argsort(hx.asarray([1, 2, 2, 0]), descending=True).tolist() == [1, 2, 0, 3]
    rows = hx.asarray([[3, 1, 2], [9, 7, 8]])
    assert hx.sort(rows, axis=0).tolist() == [[3, 1, 2], [9, 7, 8]]
    assert hx.sort(rows, descending=True).tolist() == [[3, 2, 1], [9, 8, 7]]
    found = hx.unique_all(hx.asarray([[3, 1], [3, 2]]))
    assert [part.tolist() for part in found] == [[1, 2, 3], [1, 3, 0], [[2, 0], [2, 1]], [1, 1, 2]]
    assert hx.searchsorted(hx.asarray([1, 3, 3]), hx.asarray([0, 3, 4])).tolist() == [0, 1, 3]
    assert hx.searchsorted(hx.asarray([1, 3, 3]), 3, side="right").item() == 3
    assert hx.isin(rows, hx.asarray([7, 3])).tolist() == [[True, False, False],
                                                          [False, True, False]]
    assert hx.cumulative_sum(hx.arange(1, 6), include_initial=True).tolist() == [0, 1, 3, 6, 10, 15]
    assert hx.cumulative_prod(rows, axis=1).tolist() == [[3, 3, 6], [9, 63, 504]]
    assert hx.prod(hx.arange(1, 8)).item() == 5040
    assert hx.argmin(hx.asarray([3, -2, -2])).item() == 1
    assert hx.argmin(hx.asarray([3.0, math.nan, -2.0])).item() == 1
    assert hx.argmin(hx.asarray([[7, 2], [3, 9]], dtype=hx.uint8), axis=0).tolist() == [1, 0]


def test_products():
    x = hx.reshape(hx.arange(6), (2, 3))
    y = hx.reshape(hx.arange(12), (3, 4))
    want = [[sum(i * 3 * 0 + (3 * i + k) * (4 * k + j) for k in range(3)) for j in range(4)]
            for i in range(2)]
    for dtype in (hx.int32, hx.uint8, hx.float32, hx.float64):
        assert hx.astype(hx.astype(x, dtype) @ hx.astype(y, dtype), hx.int64).tolist() == want
    stack = hx.stack([x, x + 1])
    assert (hx.astype(stack, hx.float32) @ hx.astype(y, hx.float32)).shape == (2, 2, 4)
    assert hx.tensordot(x, y, axes=1).tolist() == want
    assert hx.vecdot(x, x).tolist() == [5, 50]


def test_exact_products():
    x = hx.asarray([[1e16, 1.0, -1e16]], dtype=hx.float64)
    y = hx.ones((3, 2), dtype=hx.float64)
    assert hx.matmul(x, y, precision="exact").tolist() == [[1.0, 1.0]]
    assert (hx.matmul(x, y, precision="exact") + 1).tolist() == [[2.0, 2.0]]
    with pytest.raises(ValueError, match="_EXACT, got 4 of f32"):
        hx.matmul(hx.astype(x, hx.float32), hx.astype(y, hx.float32), precision="exact")


def test_factorisations():
    x = hx.random_normal((2, 5, 5), seed=3, dtype=hx.float64)
    one = hx.eye(5, dtype=hx.float64)

    def near(a, b):
        return hx.max(hx.abs(a - b)).item() < 1e-10
    assert near(x @ hx.linalg.inv(x), one)
    for part in (x, x[:, :3, :], x[:, :, :3]):
        q, r = hx.linalg.qr(part)
        assert near(q @ r, part)
        u, s, v = hx.linalg.svd(part, full_matrices=False)
        assert near(u * s[:, None, :] @ v, part)
        assert near(part @ hx.linalg.pinv(part) @ part, part)
    square = x @ x.mT
    lower = hx.linalg.cholesky(square)
    assert near(lower @ lower.mT, square)
    values, vectors = hx.linalg.eigh(square)
    assert near(square @ vectors, vectors * values[:, None, :])
    assert near(hx.linalg.det(square), hx.prod(values, axis=-1) * 1.0)
    with pytest.raises(ValueError):
        hx.linalg.inv(hx.zeros((2, 2)))
    with pytest.raises(ValueError):
        hx.linalg.cholesky(-one)


def test_errors_have_the_message_of_hal():
    with pytest.raises(hx.Error, match=r"f32\[3\] and f32\[4\]") as caught:
        hx.ones(3) + hx.ones(4)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LookupError, match="no file hal_nothing.so"):
        hx.Device("nothing:0").synchronize()


def test_devices():
    with hx.Device("cpu") as device:
        x = hx.ones(3)
    assert x.device is device is hx.Device("cpu:0") and device in hx.devices()
    assert x.to_device(device) is x
    assert any(plugin["name"] == "cpu" for plugin in hx.info()["plugins"])
    assert device.info()["plugin"] == "cpu" and device.memory()["total_bytes"] > 0


def test_chains_become_one_kernel(kernels_of):
    x = hx.asarray([0.5, 1.0, 2.0])
    hx.evaluate(x)
    assert kernels_of(lambda x: hx.tanh(x * x + 1.0), x) == 1
    assert kernels_of(lambda x: hx.cumulative_sum(x * x) + 1.0, x) > 1


def test_memory_is_flat(settled):
    """10^5 arrays, of which each takes 1 MiB when it is computed."""
    device = hx.default_device()
    x = hx.asarray([1.0] * (1 << 18))
    for _ in range(100):
        y = x + 1.0
        hx.evaluate(y)
    device.synchronize()
    arrays, memory = device.statistics()["arrays"], device.memory()["in_use_bytes"]
    for i in range(100000):
        y = x + 1.0
        if i % 1000 == 0:
            hx.evaluate(y)
    hx.evaluate(y)
    device.synchronize()
    assert device.statistics()["arrays"] == arrays
    assert device.memory()["in_use_bytes"] <= memory


def test_pickle_and_text():
    x = hx.asarray([[1.5, -2.0], [0.125, 0.0]])
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert repr(x) == ("array([[ 1.5  , -2.   ],\n       [ 0.125,  0.   ]], dtype=float32)")
    assert str(hx.arange(3)) == "[0 1 2]" and f"{x[0, 0]:.2f}" == "1.50"
    assert repr(hx.zeros((0, 2))) == "array([], shape=(0, 2), dtype=float32)"


def test_examples_of_the_documentation():
    for module in (hx, hx._create, hx._device, hx._random):
        failures, count = doctest.testmod(module)
        assert failures == 0


def test_program_of_the_page(capsys):
    page = pathlib.Path(__file__).parents[2] / "docs/python.md"
    program = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL).group(1)
    exec(program, {})
    printed = capsys.readouterr().out
    assert " float32" in printed and str(hx.devices()[-1]) in printed
