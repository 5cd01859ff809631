"""Keys and assignments, next to NumPy's."""
import random

import pytest

import halyard as hx

numpy = pytest.importorskip("numpy")


def random_slice(rng, length):
    bounds = [rng.choice([None, rng.randint(-length - 1, length + 1)]) for _ in range(2)]
    return slice(*bounds, rng.choice([None, 1, 2, 3, -1, -2]))


def random_key(rng, shape, has_arrays):
    """A tuple of ints, slices, and either None and ... or arrays."""
    key = []
    for length in shape[:rng.randint(0, len(shape))]:
        kind = rng.choice(["int", "slice", "all"] + 2 * ["array"] * has_arrays)
        if kind == "int":
            key.append(rng.randint(-length, length - 1))
        elif kind == "array":  # different elements, so that assignment has one result
            key.append(numpy.array(rng.sample(range(length), rng.randint(1, length))[:1]))
        else:
            key.append(random_slice(rng, length) if kind == "slice" else slice(None))
    if not has_arrays and rng.random() < 0.4:
        key.insert(rng.randint(0, len(key)), None)
    if rng.random() < 0.3:
        key.append(Ellipsis)
    return tuple(key)


def ours(key):
    return tuple(hx.asarray(part) if isinstance(part, numpy.ndarray) else part for part in key)


@pytest.mark.parametrize("name", ["float32", "int64", "uint8", "bool", "complex64"])
def test_random_keys(name):
    rng, numbers = random.Random(name), numpy.random.default_rng(1)
    for _ in range(200):
        shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4)))
        a = (numbers.standard_normal(shape) * 5).astype("int8").astype(name)
        x = hx.asarray(a)
        if a.ndim == 2 and rng.random() < 0.5:
            a, x = a.T.copy(), x.T
        key = random_key(rng, a.shape, rng.random() < 0.4)
        taken = a[key].copy()
        assert x[ours(key)].shape == taken.shape, (shape, key)
        assert numpy.array_equal(numpy.asarray(x[ours(key)]), taken), (shape, key)
        lengths = [rng.choice([1, n]) for n in taken.shape]
        value = (numbers.standard_normal(lengths) * 5).astype("int8").astype(name)
        if taken.ndim and rng.random() < 0.3:
            value = value[None]
        before, copy, view = a.copy(), hx.asarray(x, copy=True), x[...]
        a[key] = value
        x[ours(key)] = hx.asarray(value)
        assert numpy.array_equal(numpy.asarray(x), a), (shape, key, value.shape)
        assert numpy.array_equal(numpy.asarray(copy), before)
        assert numpy.array_equal(numpy.asarray(view), before)


def test_arrays_next_to_slices():
    x = hx.zeros((3, 4))
    x[:, [0, 2]] = hx.asarray([[1.0], [2], [3]])
    x[-1:, [3]] += 7
    assert x.tolist() == [[1, 0, 1, 0], [2, 0, 2, 0], [3, 0, 3, 7]]
    x[:, hx.asarray([1, 9])] = 5  # indices of arrays out of range write nothing
    assert x.tolist() == [[1, 5, 1, 0], [2, 5, 2, 0], [3, 5, 3, 7]]
    assert x[:0, [1, 2]].shape == (0, 2) and hx.zeros((2, 0, 4))[:, :, [1]].shape == (2, 0, 1)


def test_loop_of_assignments_writes_in_place(settled):
    with hx.Device("cpu") as device:
        x = hx.zeros((1000, 1000))
        x[0] = 0.0
        hx.evaluate(x)
        device.synchronize()
        before = device.memory()
        for i in range(100):
            x[i] = float(i)
            hx.evaluate(x)
        device.synchronize()
        after = device.memory()
        assert hx.sum(x) == 4950000
        grown = sum(after[k] - before[k] for k in ("in_use_bytes", "pooled_bytes"))
        assert grown < x.size * 4


def test_idioms_of_numpy():
    x = hx.reshape(hx.arange(6.0), (2, 3))
    assert x.reshape(3, 2).tolist() == x.reshape((3, -1)).tolist() == [[0, 1], [2, 3], [4, 5]]
    copy = x.copy()
    copy[0] = 9
    assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5] and copy.max() == 9 and x.nbytes == 24
    assert x.argmax() == 5 and x.argmin(axis=1).tolist() == [0, 0]
    assert x.clip(1, 4).sum() == 15
    assert hx.take(x, [2, 0], axis=1).tolist() == [[2, 0], [5, 3]]
    assert hx.finfo("float32").bits == 32 and hx.iinfo("int8").max == 127
    assert hx.can_cast("int8", "int16") and not hx.can_cast(numpy.int64, "int32")


def test_operands_of_numpy():
    x, a = hx.asarray([1.0, 2.0]), numpy.asarray([10, 20], numpy.float32)
    for made in (x + a, a + x, numpy.float32(10) * x, x * numpy.int64(10), a @ hx.eye(2), x < a):
        assert isinstance(made, hx.Array) and made.shape == (2,)
    assert (a - x).tolist() == [9, 18] and (numpy.float32(8) / x).tolist() == [8, 4]
    assert (x * numpy.float32(3)).dtype is hx.float32 and (a == x).tolist() == [False, False]
    x += a
    assert x.tolist() == [11, 22]
    with pytest.raises(TypeError):
        x + numpy.asarray(["a", "b"])


def test_messages_say_what_to_use():
    x = hx.zeros((2, 3))
    for error, text, function in (
            (TypeError, r"any\(x\)", lambda: bool(x)),
            (TypeError, "astype", lambda: hx.exp(hx.arange(3))),
            (AttributeError, "concat", lambda: hx.concatenate([x, x])),
            (AttributeError, "'no_such'$", lambda: hx.no_such),
            (TypeError, r"astype\(value, float32\)", lambda: x.__setitem__(0, numpy.ones(3)))):
        with pytest.raises(error, match=text):
            function()


def test_assignments_that_do_not_fit():
    x = hx.zeros((2, 3))
    for key, value in ((0, hx.ones(2)), ((slice(None), 1), hx.ones(3)), ([0, 1], hx.ones((3, 3))),
                       ((0, 0), hx.ones(2))):
        with pytest.raises(ValueError):
            x[key] = value
    for key in (2, (0, 3), (0, 0, 0), (0, 1.5), (Ellipsis, Ellipsis)):
        with pytest.raises(IndexError):
            x[key] = 1
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(TypeError):
        x[0] = hx.ones(3, dtype=hx.float64)
    most = hx.__array_namespace_info__().capabilities()["max dimensions"]
    assert x[(None,) * (most - 2)].ndim == most
    with pytest.raises(IndexError):
        x[(None,) * (most - 1)]
    assert not hx.any(x != 0)
