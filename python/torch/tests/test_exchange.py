"""DLPack, graphs of torch.compile, process groups, and errors of indices."""
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F
import torch_halyard  # noqa: F401

DEVICE = "halyard"
on_processor = torch.halyard.get_device_name(0).startswith("cpu:")


# ---- DLPack ----

@pytest.mark.skipif(not on_processor, reason="another device's memory is copied")
def test_exports_are_in_the_tensors_memory():
    x = torch.arange(6.0, device=DEVICE).view(2, 3)
    first, second = numpy.from_dlpack(x), numpy.from_dlpack(x.t())
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]] and second.tolist() == first.T.tolist()
    assert first.ctypes.data == second.ctypes.data and not first.flags.writeable
    x.add_(1)
    assert first[0, 0] == 0 and x[0, 0].item() == 1


@pytest.mark.skipif(not on_processor, reason="another device's memory is copied")
def test_imports_use_the_memory():
    source = numpy.arange(5, dtype=numpy.float32)
    x = torch.halyard.from_dlpack(source)
    assert x.device.type == DEVICE and x.tolist() == [0, 1, 2, 3, 4]
    assert numpy.from_dlpack(x).ctypes.data == source.ctypes.data
    assert (x * 2).tolist() == [0, 2, 4, 6, 8]


def test_imports_from_any_dtype_and_stride():
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.float16, torch.bool):
        source = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype).t()
        assert torch.halyard.from_dlpack(source).cpu().equal(source)


def test_copies_for_others():
    x = torch.tensor([1.0, 2.0], device=DEVICE)
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=True, max_version=(1, 0))).tolist() == [1, 2]
    with pytest.raises(BufferError):
        x.requires_grad_().__dlpack__()


# Memory of a GPU, over a driver without one (tests/unit/plugins/cuda/cuda_mock.h) whose memory is the host's.
GPU = """
import ctypes, gc, numpy, torch, torch_halyard
from torch_halyard import _share
i32, i64, u64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p
Destroy = ctypes.CFUNCTYPE(None, pointer)
def fields(*pairs): return type("Fields", (ctypes.Structure,), {"_fields_": list(pairs)})
Tensor = fields(("data", pointer), ("kind", i32), ("index", i32), ("rank", i32), ("type", i32),
                ("shape", ctypes.POINTER(i64)), ("strides", pointer), ("offset", u64))
Managed = fields(("version", u64), ("owner", pointer), ("destroy", Destroy), ("flags", u64), ("tensor", Tensor))
Legacy = fields(("tensor", Tensor), ("owner", pointer), ("destroy", Destroy))
class Source:
    def __init__(self, is_versioned, index=0):
        self.is_versioned, self.index, self.released, self.stream = is_versioned, index, 0, None
        self.memory, self.shape = numpy.arange(64, dtype=numpy.float32), (i64 * 2)(8, 8)
        self.destroy = Destroy(self.release)
        t = Tensor(self.memory.ctypes.data, 2, index, 2, 0x12002, self.shape, None, 0)
        self.managed = Managed(1, None, self.destroy, 0, t) if is_versioned else Legacy(t, None, self.destroy)
    def release(self, _): self.released += 1
    def __dlpack_device__(self): return 2, self.index
    def __dlpack__(self, *, stream, **options):
        if options and not self.is_versioned: raise TypeError("max_version")
        self.stream = stream
        return _share._api.PyCapsule_New(ctypes.addressof(self.managed),
                                         _share._VERSIONED if self.is_versioned else _share._LEGACY, None)
own = torch.ops.halyard.dlpack_stream(0)
for is_versioned in (True, False):
    source = Source(is_versioned)
    x = torch.halyard.from_dlpack(source)
    assert x.device.type == "halyard" and x.shape == (8, 8) and source.stream == own
    assert x.cpu().flatten().tolist() == list(range(64)) and x.__dlpack_device__() == (2, 0)
    capsule = x.t().__dlpack__(stream=own, max_version=(1, 0))
    export = Managed.from_address(_share._api.PyCapsule_GetPointer(id(capsule), _share._VERSIONED))
    assert export.tensor.data == source.memory.ctypes.data and export.tensor.kind == 2 and export.flags == 1
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))).tolist() == x.tolist()
    for options in ({}, {"copy": True, "max_version": (1, 0)}, {"dl_device": (2, 1), "max_version": (1, 0)}):
        try: x.__dlpack__(**options)
        except BufferError: continue
        raise AssertionError(options)
    del x, capsule, export
    torch.halyard.synchronize()
    assert source.released == 1
try: torch.halyard.from_dlpack(Source(True, 5))
except BufferError as error: assert "GPU 5" in str(error)
else: raise AssertionError("memory of another GPU")
print("done")
"""
MOCK = Path(__file__).parents[3] / "build/release/tests/cuda_mock"


@pytest.mark.skipif(not (MOCK / "libcuda.so.1").exists(), reason="without the target cuda_mock")
def test_memory_of_a_gpu():
    path = f"{MOCK}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    environment = {**os.environ, "HAL_BACKEND": "cuda", "HAL_PROBE": "off", "HAL_CACHE_DIR": "off",
                   "LD_LIBRARY_PATH": path}
    ran = subprocess.run([sys.executable, "-c", GPU], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and "done" in ran.stdout, ran.stderr


# ---- import torch ----

@pytest.fixture
def installed(tmp_path):
    """The environment of a process in which the package is installed, with its entry points."""
    package = Path(__file__).parents[1]
    information = tmp_path / "torch_halyard-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-halyard\nVersion: 0\n")
    (information / "entry_points.txt").write_text("[torch.backends]\nhalyard = torch_halyard_autoload:autoload\n")
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{package}", "HALYARD_TORCH_AUTOLOAD": "1"}


def test_import_torch_finds_the_device(installed):
    program = "import torch; print(torch.ones(3, device=torch.device('halyard')).sum().item())"
    ran = subprocess.run([sys.executable, "-c", program], env=installed, capture_output=True, text=True)
    assert ran.stdout == "3.0\n", ran.stderr


def test_import_torch_works_where_the_device_does_not_load(installed):
    installed["TORCH_HALYARD_LIBRARY"] = "/nonexistent.so"
    ran = subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(3).sum().item())"], env=installed,
                         capture_output=True, text=True)
    assert ran.stdout == "3.0\n" and "halyard is not available" in ran.stderr, ran.stderr


def test_cuda_keeps_its_place():
    """Where CUDA is available, importing torch does not register the device; importing torch_halyard does."""
    program = """
import torch
torch.cuda.is_available = lambda: True
import torch_halyard_autoload
torch_halyard_autoload.autoload()
assert not hasattr(torch, "halyard")
import torch_halyard
print(torch.ones(3, device="halyard").sum().item())
"""
    environment = {k: v for k, v in os.environ.items() if k != "HALYARD_TORCH_AUTOLOAD"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                         env={**environment, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert ran.stdout == "3.0\n", ran.stderr


# ---- torch.compile ----

def test_compiled_graphs_are_launched():
    from torch_halyard import _compile
    launches = []
    original = _compile._Recorded._launch
    _compile._Recorded._launch = lambda self, arguments: launches.append(1) or original(self, arguments)
    try:
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        expected = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        expected.load_state_dict(model.state_dict())
        compiled = torch.compile(model.to(DEVICE), backend=torch.halyard.compile_backend)
        for i in range(4):
            x = torch.full((3, 4), 0.1 * i)
            y = compiled(x.to(DEVICE))
            y.square().sum().backward()
            expected(x).square().sum().backward()
            assert torch.allclose(y.detach().cpu(), expected(x).detach(), atol=1e-5)
        for ours, theirs in zip(model.parameters(), expected.parameters()):
            assert torch.allclose(ours.grad.cpu(), theirs.grad, atol=1e-4)
    finally:
        _compile._Recorded._launch = original
    assert len(launches) == 6  # three of the forward graph and three of the backward graph


def test_graphs_with_random_numbers_stay_random():
    compiled = torch.compile(lambda x: x + torch.rand_like(x), backend=torch.halyard.compile_backend)
    x = torch.zeros(4, device=DEVICE)
    values = {tuple(compiled(x).tolist()) for _ in range(4)}
    assert len(values) == 4


# ---- Indices ----

CASES = {
    "embedding": lambda i: F.embedding(i, torch.ones(3, 2, device=DEVICE)),
    "gather": lambda i: torch.ones(3, device=DEVICE).gather(0, i),
    "index": lambda i: torch.ones(3, 2, device=DEVICE)[i],
    "index_select": lambda i: torch.ones(3, 2, device=DEVICE).index_select(0, i),
    "index_add": lambda i: torch.ones(3, device=DEVICE).index_add(0, i, torch.ones(1, device=DEVICE)),
    "scatter": lambda i: torch.ones(3, device=DEVICE).scatter(0, i, 2.0),
    "index_put": lambda i: torch.ones(3, device=DEVICE).index_put((i,), torch.ones(1, device=DEVICE)),
    "take": lambda i: torch.ones(3, device=DEVICE).take(i),
    "nll_loss": lambda i: F.nll_loss(torch.zeros(1, 3, device=DEVICE), i),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["fused", "blocking"])
def test_an_index_out_of_range_is_an_error(name, mode):
    torch.halyard.set_mode(mode)
    try:
        for bad in (3, -4):
            with pytest.raises(IndexError):
                CASES[name](torch.tensor([bad], device=DEVICE)).cpu()
        assert CASES[name](torch.tensor([2], device=DEVICE)).cpu().isfinite().all()
    finally:
        torch.halyard.set_mode("fused")
    torch.halyard.synchronize()


def test_ignored_classes_are_no_error():
    x = torch.zeros(2, 3, device=DEVICE)
    for ignored in (-100, 5):
        target = torch.tensor([ignored, 1], device=DEVICE)
        assert F.nll_loss(x, target, ignore_index=ignored).item() == 0


# ---- Process groups ----

RANK = """
import os, sys, torch, torch_halyard, torch.distributed as dist
from torch import nn
dist.init_process_group("halyard", init_method="file://" + sys.argv[2], rank=int(sys.argv[1]), world_size=2)
rank = dist.get_rank()
def t(*values): return torch.tensor(values, device="halyard", dtype=torch.float32)
x = t(1, 2) * (rank + 1)
dist.all_reduce(x); assert x.tolist() == [3, 6], x
x = t(1, 2) * (rank + 1)
dist.all_reduce(x, op=dist.ReduceOp.MAX); assert x.tolist() == [2, 4], x
x = t(rank)
dist.broadcast(x, 1); assert x.tolist() == [1], x
parts = [t(0), t(0)]
dist.all_gather(parts, t(rank + 5)); assert [p.item() for p in parts] == [5, 6]
out = t(0, 0)
dist.all_gather_into_tensor(out, t(rank)); assert out.tolist() == [0, 1]
out = t(0)
dist.reduce_scatter_tensor(out, t(rank, 10 + rank)); assert out.tolist() == [1 if rank == 0 else 21], out
if rank == 0: dist.send(t(7, 8), 1)
else:
    y = t(0, 0); dist.recv(y, 0); assert y.tolist() == [7, 8]
out = t(0, 0)
dist.all_to_all_single(out, t(10 * rank, 10 * rank + 1)); assert out.tolist() == [rank, 10 + rank], out
dist.barrier()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
data = torch.randn(8, 4)
single = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)); single.load_state_dict(model.state_dict())
parallel = nn.parallel.DistributedDataParallel(model.to("halyard"))
ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (parallel, single))
for _ in range(3):
    for optimizer, m, x in ((ours, parallel, data[rank * 4:rank * 4 + 4].to("halyard")), (theirs, single, data)):
        optimizer.zero_grad(); m(x).square().mean().backward(); optimizer.step()
for a, b in zip(model.parameters(), single.parameters()):
    assert torch.allclose(a.detach().cpu(), b.detach(), atol=1e-5)
assert not torch.halyard.fallbacks(), torch.halyard.fallbacks()
dist.destroy_process_group()
print("done")
"""


def test_two_processes_train_one_model(tmp_path):
    environment = {**os.environ, "HAL_BACKEND": "cpu"}
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(tmp_path / "store")], text=True,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
             for rank in range(2)]
    for rank in ranks:
        output, _ = rank.communicate(timeout=240)
        assert rank.returncode == 0 and "done" in output, output
