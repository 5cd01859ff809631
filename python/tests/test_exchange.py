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


def counted(device, *names):
    memory = device.memory()
    return [memory[name] for name in names]


def test_memory_of_producers_is_shared_on_the_processor():
    with hx.Device("cpu") as device:
        for name in DTYPES:
            a = (numpy.arange(60).reshape(3, 4, 5) % 7).astype(name)
            for part in (a, a[::-1], a[:, 1:3, ::-2], a.T, a[1:, 2], a[0, 0, 1:2]):
                before = counted(device, "copied_bytes", "in_use_bytes")
                x, y = hx.from_dlpack(part), hx.asarray(part, copy=False)
                assert counted(device, "copied_bytes", "in_use_bytes") == before
                assert numpy.array_equal(numpy.asarray(x), part)
                assert numpy.array_equal(numpy.asarray(y), part)
        assert hx.from_dlpack(numpy.ones((0, 3))).shape == (0, 3)


def test_shared_memory_is_seen_and_never_written():
    with hx.Device("cpu") as device:
        a = numpy.arange(1000, dtype=numpy.float32)
        a.flags.writeable = False
        writable = a.copy()
        for source in (a, writable):
            expected = source.copy()
            x = hx.from_dlpack(source, copy=False)
            x += 1
            x[3] = 70
            y = hx.sqrt(x * 2)
            hx.evaluate(x, y)
            device.synchronize()
            assert numpy.array_equal(source, expected)
        x = hx.from_dlpack(writable)
        writable[0] = 12
        assert x[0] == 12
        copies = hx.asarray(writable), hx.from_dlpack(writable, copy=True)
        writable[0] = 13
        assert copies[0][0] == 12 and copies[1][0] == 12


def test_shared_memory_is_kept_and_released():
    import weakref
    with hx.Device("cpu") as device:
        before = counted(device, "imported_bytes", "in_use_bytes")
        a = numpy.ones(5000, numpy.float32)
        died = weakref.ref(a)
        x = hx.from_dlpack(a)
        del a
        gc.collect()
        assert died() is not None and counted(device, "imported_bytes")[0] == before[0] + 20000
        y = x + 1
        del x
        assert hx.sum(y) == 10000
        del y
        device.synchronize()
        gc.collect()
        assert died() is None and counted(device, "imported_bytes", "in_use_bytes") == before
        for _ in range(1000):
            hx.from_dlpack(numpy.ones(1000, numpy.float32))
        device.synchronize()
        assert counted(device, "imported_bytes", "in_use_bytes") == before


def test_copy_false_raises_where_a_copy_is_needed():
    with hx.Device("cpu"):
        with pytest.raises(ValueError):
            hx.asarray([1, 2], copy=False)
        with pytest.raises(ValueError):
            hx.asarray(numpy.ones(3), dtype=hx.float32, copy=False)
        raw = numpy.zeros(41, numpy.uint8)[1:].view(numpy.float32)
        assert hx.from_dlpack(raw).shape == (10,)
        with pytest.raises(BufferError):
            hx.from_dlpack(raw, copy=False)


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


def resident_kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_million_arrays_leave_nothing():
    with hx.Device("cpu") as device:
        x = hx.ones(1024)

        def make(count):
            for _ in range(count):
                x + 1.0
            hx.evaluate(x)
            device.synchronize()
        make(100000)
        gc.collect()
        before = resident_kilobytes(), device.memory()["in_use_bytes"]
        arrays = device.statistics()["arrays"]
        make(1000000)
        gc.collect()
        assert device.memory()["in_use_bytes"] == before[1]
        assert device.statistics()["arrays"] == arrays
        assert resident_kilobytes() - before[0] < 2048


def test_references_of_exchanges_are_exact():
    import sys
    with hx.Device("cpu") as device:
        a, x = numpy.ones(1000, numpy.float32), hx.ones(1000)
        hx.evaluate(x)
        counts = sys.getrefcount(a), sys.getrefcount(x)
        for _ in range(1000):
            made = hx.from_dlpack(a)
            shown = numpy.from_dlpack(x)
            again = hx.from_dlpack(numpy.from_dlpack(made + 1))
        assert sys.getrefcount(a) == counts[0] + 1
        del made, shown, again
        device.synchronize()
        assert (sys.getrefcount(a), sys.getrefcount(x)) == counts
