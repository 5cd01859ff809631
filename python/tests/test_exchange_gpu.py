"""Exchange on a GPU of the cuda plugin: PyTorch, CuPy and JAX share memory in the order of the
streams. JAX asks for the form of DLPack that has no read-only memory, so it gets a copy on the device.
A library that is missing is skipped."""
import ctypes
import gc
import importlib
import os
import weakref

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX takes most of the memory

import pytest

import halyard as hx

numpy = pytest.importorskip("numpy")

from test_exchange import Managed


class Torch:
    name = "torch"

    def __init__(self):
        self.module = pytest.importorskip("torch")
        if not self.module.cuda.is_available():
            pytest.skip("PyTorch has no GPU")

    def make(self, a):
        return self.module.from_numpy(a).to("cuda")

    def share(self, x):
        return self.module.from_dlpack(x)

    def address(self, t):
        return t.data_ptr()

    def read(self, t):
        return t.cpu().numpy()

    def total(self, t):
        return float(t.sum())


class CuPy:
    name = "cupy"

    def __init__(self):
        self.module = pytest.importorskip("cupy")

    def make(self, a):
        return self.module.asarray(a)

    def share(self, x):
        return self.module.from_dlpack(x)

    def address(self, t):
        return t.data.ptr

    def read(self, t):
        return self.module.asnumpy(t)

    def total(self, t):
        return float(t.sum())


class Jax:
    name = "jax"

    def __init__(self):
        self.module = pytest.importorskip("jax")
        try:
            self.device = self.module.devices("cuda")[0]
        except RuntimeError as error:
            pytest.skip(f"JAX has no GPU: {error}")

    def make(self, a):
        return self.module.device_put(a, self.device)

    def share(self, x):
        return importlib.import_module("jax.dlpack").from_dlpack(x)

    def address(self, t):
        return t.unsafe_buffer_pointer()

    def read(self, t):
        return numpy.asarray(t)

    def total(self, t):
        return float(t.sum())


@pytest.fixture(scope="module")
def device():
    try:
        return hx.Device("cuda:0")
    except hx.Error as error:
        pytest.skip(str(error))


@pytest.fixture(params=[Torch, CuPy, Jax], ids=lambda kind: kind.name)
def peer(request, device):
    return request.param()


def address(x):
    """Where the first element of an array of halyard is."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = x.__dlpack__(max_version=(1, 0), stream=-1)
    managed = Managed.from_address(pointer(capsule, b"dltensor_versioned"))
    return managed.data + managed.byte_offset


def copied(device):
    return device.memory()["copied_bytes"]


NAMES = ["int8", "int32", "uint8", "float16", "float32"]


@pytest.mark.parametrize("name", NAMES)
def test_memory_of_producers_is_shared(device, peer, name):
    a = (numpy.arange(6000) % 100).astype(name)
    t = peer.make(a)
    before = copied(device)
    x, y = hx.from_dlpack(t), hx.asarray(t, copy=False)
    assert x.device == device and copied(device) == before
    assert address(x) == address(y) == peer.address(t)
    assert numpy.array_equal(numpy.asarray(x + x), a + a)
    assert numpy.array_equal(peer.read(t), a)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_shared_with_consumers(device, peer, name):
    with device:
        x = hx.asarray((numpy.arange(6000) % 100).astype(name))
        x = x + x
        hx.evaluate(x)
        before = copied(device)
        t = peer.share(x)
        assert copied(device) == before
        assert (peer.address(t) == address(x)) == (peer.name != "jax")
        assert numpy.array_equal(peer.read(t), numpy.asarray(x))


def test_strides_are_kept(device, peer):
    if peer.name == "jax":
        pytest.skip("JAX has no strides")
    a = numpy.arange(60, dtype=numpy.float32).reshape(3, 4, 5)
    t = peer.make(a)
    before = copied(device)
    x = hx.from_dlpack(t[1:, ::2])
    back = peer.share(hx.permute_dims(x, (2, 0, 1)))
    assert copied(device) == before
    assert numpy.array_equal(peer.read(back), a[1:, ::2].transpose(2, 0, 1))
    assert peer.address(back) == peer.address(t) + 20 * 4


def test_streams_are_ordered(device, peer):
    """Each side reads what the other computes for some milliseconds, without a wait of the host."""
    size = 2048
    eye = peer.make(numpy.eye(size, dtype=numpy.float32))
    with device:
        own = hx.eye(size)
        for step in range(1, 21):
            t = eye * step
            for _ in range(4):
                t = t @ eye
            x = hx.from_dlpack(t)
            for _ in range(4):
                x = x @ own
            back = peer.share(x + 1)
            assert peer.total(back) == step * size + size * size
            assert float(hx.sum(x)) == step * size


def test_memory_is_kept_and_released(device, peer):
    def exchange():
        t = peer.make(numpy.ones(5000, numpy.float32))
        died = weakref.ref(t) if peer.name != "jax" else None
        x = hx.from_dlpack(t)
        y = peer.share(x + 1)
        del t
        gc.collect()
        assert peer.total(y) == 10000 and float(hx.sum(x)) == 5000
        del x, y
        device.synchronize()
        gc.collect()
        assert died is None or died() is None
    gc.collect()
    gc.freeze()  # of the libraries' million objects, so that a collection takes less than a second
    try:
        with device:
            exchange()
            memory = device.memory()
            for _ in range(100):
                exchange()
            after = device.memory()
    finally:
        gc.unfreeze()
    assert after["imported_bytes"] == memory["imported_bytes"]
    assert after["in_use_bytes"] == memory["in_use_bytes"]
