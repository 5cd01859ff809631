"""Kernels that Python builds: those of docs/kernels.md, and what is refused."""
import pytest

import halyard as hx


def scale(group=64):
    k = hx.Kernel("scale", group=group)
    x, y = k.read("x", hx.float32), k.write("y", hx.float32)
    n, alpha = k.scalar("n", hx.uint32), k.scalar("alpha", hx.float32)
    i = k.global_id()
    with k.when(i < n):
        y[i] = alpha * x[i]
    return k


def test_bindings_and_scalars():
    k = scale()
    for n in (1, 64, 65, 1000):
        x = hx.random_normal(n, seed=n)
        assert hx.all(k(x, n, n, 2.5, groups=(n + 63) // 64) == 2.5 * x)
    x = hx.reshape(hx.arange(12.0), (3, 4))
    assert k(x.T, (4, 3), 12, 1.0, groups=1).tolist() == x.T.tolist()  # a view is copied


def test_guards():
    k = hx.Kernel("vector_add", group=64)
    x, y, z = k.read("x", hx.float16), k.read("y", hx.float16), k.write("sum", hx.float16)
    i, n = k.global_id(), k.scalar("n", hx.uint32)
    z.store(i, x.load(i, where=i < n) + y.load(i, where=i < n), where=i < n)
    a = hx.astype(hx.arange(100.0), hx.float16)
    assert hx.all(k(a, a, 100, 100, groups=2) == a + a)


def test_loops_and_variables():
    k = hx.Kernel("row_sums", group=64)
    matrix, sums = k.read("matrix", hx.float32), k.write("sums", hx.float32)
    rows, columns = k.scalar("rows", hx.uint32), k.scalar("columns", hx.uint32)
    row, total = k.global_id(), k.var(0, hx.float32)
    with k.loop(0, columns) as c:
        total.value = total.value + matrix.load(row * columns + c, where=row < rows)
    sums.store(row, total.value, where=row < rows)
    x = hx.asarray([[1.0, 2, 3], [4, 5, 6]])
    assert k(x, 2, 2, 3, groups=1).tolist() == [6, 15]


def test_shared_memory_and_barriers():
    k = hx.Kernel("block_reduce", group=64)
    x, y = k.read("x", hx.float32), k.write("y", hx.float32)
    part, i, l = k.shared("part", hx.float32, 64), k.global_id(), k.local_id()
    part[l] = x[i]
    k.barrier()
    for half in (32, 16, 8, 4, 2, 1):
        with k.when(l < half):
            part[l] = part[l] + part[l + half]
        k.barrier()
    with k.when(l == 0):
        y[k.group_id()] = part[0]
    x = hx.arange(192.0)
    assert k(x, 3, groups=3).tolist() == hx.sum(hx.reshape(x, (3, 64)), axis=1).tolist()


def test_several_results_and_operations_by_name():
    k = hx.Kernel("two", group=1)
    x, y, z = k.read("x", hx.float64), k.write("y", hx.float64), k.write("z", hx.int32)
    i = k.global_id()
    y[i] = k.op("fma", x[i], x[i], k.op("sqrt", x[i]))
    z[i] = k.select(x[i] >= 4, 1, k.constant(0, hx.int32))
    y, z = k(hx.asarray([1.0, 4.0], dtype=hx.float64), 2, 2, groups=2)
    assert y.tolist() == [2, 18] and z.tolist() == [0, 1]


def test_refusals():
    k = scale()
    x = hx.arange(4.0)
    with pytest.raises(TypeError, match="expected 4 arguments"):
        k(x, 4, groups=1)
    with pytest.raises(TypeError, match="x: expected an array of float32"):
        k(hx.arange(4), 4, 4, 1.0, groups=1)
    with pytest.raises(hx.Error, match="name"):
        hx.Kernel("not a name")
    k = hx.Kernel("wrong")
    with pytest.raises(hx.Error):
        k.constant(1, hx.float32) + k.constant(1, hx.int32)
    k = hx.Kernel("other")
    with pytest.raises(ValueError, match="docs/ir.md"):
        k.op("no_such", k.global_id())


def test_steps_are_recorded_once():
    step = hx.compile(lambda x, w, scale: (hx.tanh(x @ w) * scale, hx.sum(x, axis=0)))
    for seed in range(4):
        x = hx.random_normal((8, 3), seed=seed)
        w = hx.random_normal((3, 5), seed=9)
        y, total = step(x, w, 2.0)
        assert hx.all(y == hx.tanh(x @ w) * 2.0) and hx.all(total == hx.sum(x, axis=0))
    assert step.count == 1
    step(x, w, 3.0)
    step(x[:4, :], w, 3.0)
    assert step.count == 3


def test_steps_refuse_what_cannot_be_recorded():
    x = hx.arange(3.0)
    with pytest.raises(hx.Error):
        hx.compile(lambda x: x + float(x[0]))(x)
    for made in (lambda: hx.asarray([1.0, 2.0, 3.0]), lambda: hx.linspace(0, 1, 3),
                 lambda: hx.asarray(b"abc"), lambda: hx.full(3, 2 ** 60)):
        with pytest.raises(hx.Error, match="compile: .* make it before"):
            hx.compile(lambda x: x + made())(x)
    with pytest.raises(TypeError):
        hx.compile(lambda x: 3)(x)
    with pytest.raises(TypeError):
        hx.compile(lambda n: hx.ones(n))(3)
    assert (x + 1).tolist() == [1, 2, 3]  # no recording is left
    step = hx.compile(lambda x: x)
    y = step(x)
    y += 1
    assert x.tolist() == [0, 1, 2]
