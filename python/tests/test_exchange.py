"""Exchange with NumPy: the buffer protocol, DLPack, and text as NumPy prints it."""
import array
import ctypes
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


def test_memory_of_producers_is_shared_on_the_processor(settled):
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


def test_shared_memory_is_kept_and_released(settled):
    import weakref
    with hx.Device("cpu") as device:
        def exchange(before):
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
            assert died() is None
        exchange([0])  # the library keeps the memory of the numbers 1 and 10000
        before = counted(device, "imported_bytes", "in_use_bytes")
        exchange(before)
        assert counted(device, "imported_bytes", "in_use_bytes") == before
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


def test_exports_keep_and_release_memory(settled):
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
        device.synchronize()
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


def test_a_million_arrays_leave_nothing(settled):
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


class Table(ctypes.Structure):
    """DLPackExchangeAPI."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("previous", ctypes.c_void_p),
                ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                                              ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
                                              ctypes.c_void_p)),
                ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                                                  ctypes.POINTER(ctypes.c_void_p))),
                ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                                                ctypes.POINTER(ctypes.py_object))),
                ("view_object", ctypes.c_void_p),
                ("get_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                                                 ctypes.POINTER(ctypes.c_void_p)))]


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned with its tensor."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p),
                ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64),
                ("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("index", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def exchange_table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = hx.Array.__dlpack_c_exchange_api__
    return Table.from_address(pointer(capsule, b"dlpack_exchange_api"))


def test_the_c_exchange_table_shares_memory_both_ways(settled):
    table = exchange_table()
    assert (table.major, table.minor) == (1, 3)
    with hx.Device("cpu") as device:
        for x in (hx.reshape(hx.arange(12.0), (3, 4))[:, ::2], hx.asarray([1 + 2j, 3j])):
            hx.evaluate(x)
            before = device.memory()["copied_bytes"]
            made, back, stream = ctypes.c_void_p(), ctypes.py_object(), ctypes.c_void_p(7)
            assert table.from_object(x, ctypes.byref(made)) == 0
            managed = Managed.from_address(made.value)
            assert (managed.kind, managed.rank, managed.flags & 1) == (1, x.ndim, 1)
            assert tuple(managed.shape[i] for i in range(x.ndim)) == x.shape
            assert table.to_object(made, ctypes.byref(back)) == 0
            assert device.memory()["copied_bytes"] == before
            assert back.value.tolist() == x.tolist() and back.value.dtype is x.dtype
            assert table.get_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None
        with pytest.raises(TypeError):
            table.from_object([1.0], ctypes.byref(made))


def test_the_c_exchange_table_allocates():
    table = exchange_table()
    with hx.Device("cpu"):
        made, shape = ctypes.c_void_p(), (ctypes.c_int64 * 2)(3, 5)
        prototype = Managed(kind=1, index=0, rank=2, code=2, bits=32, lanes=1, shape=shape)
        address = ctypes.addressof(prototype) + Managed.data.offset
        failures = []
        report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(
            lambda user, kind, message: failures.append((kind, message)))
        called = ctypes.cast(report, ctypes.c_void_p)
        assert table.allocate(address, ctypes.byref(made), None, called) == 0 and not failures
        managed = Managed.from_address(made.value)
        assert managed.data and managed.flags == 0
        assert (managed.shape[0], managed.shape[1]) == (3, 5)
        ctypes.memset(managed.data + managed.byte_offset, 0, 60)
        managed.destroy(made)
        prototype.bits = 7
        assert table.allocate(address, ctypes.byref(made), None, called) == -1
        assert failures and failures[0][0] == b"BufferError"


JOINED = [[(3,), (3,)], [(2, 3), (2, 3)], [(1,)] * 3, [(2, 3, 4)] * 20, [(2, 0), (2, 0)], [(0,), (3,)],
          [(), ()], [(2, 3), (4, 3)], [(2, 3), (3, 2)], [(2, 3), (2,)], [(5,)]]


@pytest.mark.parametrize("name", ["float32", "int16", "complex64"])
@pytest.mark.parametrize("shapes", JOINED, ids=str)
def test_arrays_are_joined_as_numpy_does(shapes, name):
    parts = [(numpy.arange(numpy.prod(shape, dtype=int)) + 7 * i).reshape(shape).astype(name)
             for i, shape in enumerate(shapes)]
    arrays = [hx.asarray(part) for part in parts]
    for axis in (None, 0, 1, -1, -2, 2, 5):
        for function in ("concat", "stack"):
            if function == "stack" and axis is None:
                continue
            try:
                expected = getattr(numpy, function)(parts, axis=axis)
            except ValueError:  # numpy's error of an axis is one as well
                with pytest.raises((ValueError, IndexError)):
                    getattr(hx, function)(arrays, axis=axis)
                continue
            for given in (arrays, tuple(arrays)):
                made = getattr(hx, function)(given, axis=axis)
                assert made.shape == expected.shape and made.dtype is getattr(hx, name)
                assert numpy.array_equal(numpy.asarray(made), expected)


def test_numbers_and_lists_become_arrays():
    for obj, dtype in [(1.5, "float32"), (3, "int64"), (True, "bool"), (2j, "complex64"),
                       ([1, 2.5], "float32"), ([True, 2], "int64"), ((True, False), "bool"),
                       ([[1, 2], (3, 4)], "int64"), ([], "float32"), ([[], []], "float32"),
                       ([2 ** 63, 1], "uint64"), ([numpy.float32(2), 1.0], "float32"),
                       (numpy.float64(0.1), "float32"), (numpy.int8(3), "int8"),
                       (numpy.ones((4, 6))[::2, 1::3], "float64"),
                       (b"ab", "uint8")]:
        made = hx.asarray(obj)
        assert made.dtype is getattr(hx, dtype), obj
        expected = numpy.frombuffer(obj, "uint8") if isinstance(obj, bytes) else numpy.asarray(obj)
        assert made.shape == expected.shape
        assert numpy.array_equal(numpy.asarray(made), expected.astype(dtype))
    for obj, dtype in [([1, 0], "bool"), ([1, 2], "float64"), ([1, 2], "uint8"), ([1.0, 2.0], "int32"),
                       ([1, 2], "float16"), ([1, 2], "complex64"), (numpy.ones(3), "float32")]:
        made = hx.asarray(obj, dtype=getattr(hx, dtype))
        assert made.dtype is getattr(hx, dtype)
        assert numpy.array_equal(numpy.asarray(made), numpy.asarray(obj).astype(dtype))
    for obj in ([[1, 2], [3]], [[1], 2], [1, [2]], ["a"], [None]):
        with pytest.raises((ValueError, TypeError)):
            hx.asarray(obj)
    with pytest.raises(OverflowError):
        hx.asarray([300], dtype=hx.uint8)
