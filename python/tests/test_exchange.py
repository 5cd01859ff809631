"""Exchange with NumPy: the buffer protocol, DLPack, and text as NumPy prints it."""
import array
import gc

import pytest

import halyard as hx

numpy = pytest.importorskip("numpy")

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_there_and_back(name):
    a = (numpy.arange(12).reshape(3, 4) % 5).astype(name)[::-1, ::2]
    for x in (hx.asarray(a), hx.from_dlpack(a)):
        assert x.dtype is getattr(hx, name) and x.shape == a.shape
        assert numpy.array_equal(numpy.asarray(x), a)
        assert numpy.array_equal(numpy.from_dlpack(x, device="cpu"), a)


def test_memory_is_shared_with_consumers_on_the_processor():
    with hx.Device("cpu"):
        x = hx.reshape(hx.arange(12.0), (3, 4))
        hx.evaluate(x)
        views = [numpy.from_dlpack(x) for _ in range(3)]
        assert len({view.ctypes.data for view in views}) == 1
        assert not views[0].flags.writeable
        part = numpy.from_dlpack(x.T)
        assert part.strides == (4, 16)
        copy = numpy.from_dlpack(x, copy=True)
        assert copy.ctypes.data != views[0].ctypes.data
        with pytest.raises(BufferError):
            hx.from_dlpack(views[0], copy=False)


def test_exports_keep_and_release_memory():
    gc.collect()
    with hx.Device("cpu") as device:
        before = device.memory()["in_use_bytes"], device.statistics()["arrays"]
        x = hx.asarray(numpy.ones(1000, numpy.float32))
        held = numpy.from_dlpack(x)
        capsule = x.__dlpack__(max_version=(1, 0))
        legacy = x.__dlpack__()
        del x
        gc.collect()
        assert held.sum() == 1000 and device.memory()["in_use_bytes"] > before[0]
        del held, capsule, legacy
        for _ in range(1000):
            numpy.from_dlpack(hx.from_dlpack(numpy.ones(1000, numpy.float32)))
        gc.collect()
        assert (device.memory()["in_use_bytes"], device.statistics()["arrays"]) == before


def test_other_buffers():
    assert hx.asarray(array.array("d", [1, 2])).dtype is hx.float64
    assert hx.asarray(b"ab").tolist() == [97, 98]
    assert memoryview(hx.ones((2, 3))).shape == (2, 3)
    assert numpy.asarray(hx.ones(2, dtype=hx.bfloat16)).dtype == numpy.float32


def test_text_is_that_of_numpy():
    random = numpy.random.default_rng(1)
    shapes = [(), (1,), (5,), (40,), (3, 4), (2, 3, 2), (0,), (0, 3), (1500,), (40, 50)]
    for shape in shapes:
        for a in (random.standard_normal(shape).astype(numpy.float32),
                  random.standard_normal(shape), random.integers(-1000, 1000, shape),
                  random.integers(0, 2, shape).astype(bool),
                  (10.0 ** random.integers(-9, 9, shape) *
                   random.standard_normal(shape)).astype(numpy.float32),
                  numpy.where(random.random(shape) < 0.3, numpy.inf, 1.5)):
            a = numpy.asarray(a)
            x = hx.asarray(a)
            assert repr(x) == repr(a) and str(x) == str(a)
