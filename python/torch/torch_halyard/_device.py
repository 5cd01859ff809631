"""torch.halyard: devices, memory, streams, events, random numbers, and what runs where.

A device index counts the devices of `HAL_BACKEND`, or without it the default device first and then
the others in the order of hal-info.
"""
import contextlib
import os

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_ops = torch.ops.halyard
_in_child = False
_MODES = ("fused", "eager", "blocking")
_POLICIES = ("allow", "warn", "error")


def _start():
    """Called once, when the library is loaded."""
    def forked():
        global _in_child
        _in_child = True
    os.register_at_fork(after_in_child=forked)
    register_optimizer_step_post_hook(_flush_after_step)


def _flush_after_step(optimizer, *_) -> None:
    """Begins the step of all parameters together. Left deferred, each would be computed where the next
    forward pass reads it, and all gradients and what they are computed of would keep their memory until then."""
    firsts = (group["params"][0] for group in optimizer.param_groups if group["params"])
    for index in {p.device.index for p in firsts if p.device.type == "halyard"}:
        _ops.flush(index)


def _index(device=None) -> int:
    """The index of a device: a number, a string, a torch.device, or None for the current one."""
    if device is None:
        return _ops.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    return _ops.current_device() if device.index is None else device.index


# ---- Devices ----

def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    return True


def init() -> None:
    pass


def _lazy_init() -> None:
    pass


def _is_in_bad_fork() -> bool:
    return _in_child


def device_count() -> int:
    return _ops.device_count()


def current_device() -> int:
    return _ops.current_device()


def set_device(device) -> None:
    _ops.set_device(_index(device))


def get_device_name(device=None) -> str:
    """The plugin and the device's own name, such as "cpu: Xeon"."""
    return _ops.device_name(_index(device))


class device(contextlib.ContextDecorator):
    """Makes a device current within a `with` statement."""

    def __init__(self, device):
        self._wanted = _index(device)

    def __enter__(self):
        self._before = current_device()
        set_device(self._wanted)
        return self

    def __exit__(self, *_):
        set_device(self._before)
        return False


def synchronize(device=None) -> None:
    """Computes everything that is deferred, and waits for the device."""
    _ops.synchronize(_index(device))


def flush(device=None) -> None:
    """Submits what is deferred to the device, without a wait. Every step of an optimizer ends with it."""
    _ops.flush(_index(device))


# ---- Memory ----

def memory_stats(device=None) -> dict:
    """Bytes: of the device, free, held by live tensors and deferred work, kept for reuse, and copied
    between host and device since it was opened; peaks since reset_peak_memory_stats()."""
    names = ("total_bytes", "free_bytes", "allocated_bytes", "pooled_bytes", "allocations", "copied_bytes",
             "peak_allocated_bytes", "peak_reserved_bytes")
    statistics = dict(zip(names, _ops.memory(_index(device))))
    statistics["reserved_bytes"] = statistics["allocated_bytes"] + statistics["pooled_bytes"]
    return statistics


def memory_allocated(device=None) -> int:
    return memory_stats(device)["allocated_bytes"]


def memory_reserved(device=None) -> int:
    return memory_stats(device)["reserved_bytes"]


def max_memory_allocated(device=None) -> int:
    return memory_stats(device)["peak_allocated_bytes"]


def max_memory_reserved(device=None) -> int:
    return memory_stats(device)["peak_reserved_bytes"]


def reset_peak_memory_stats(device=None) -> None:
    _ops.reset_peaks(_index(device))


def mem_get_info(device=None) -> tuple:
    statistics = memory_stats(device)
    return statistics["free_bytes"], statistics["total_bytes"]


def empty_cache() -> None:
    """Returns unused memory of the current device to its driver."""
    _ops.empty_cache(current_device())


# ---- Streams and events: a device's streams are in order with each other ----

class Stream(torch.Stream):
    def __new__(cls, device=None, priority=0, **kwargs):
        if kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, device=f"halyard:{_index(device)}", priority=priority)


class Event(torch.Event):
    """Makes a torch.Event: elapsed_time takes no instance of another class."""

    def __new__(cls, enable_timing=False):
        return torch.Event(device="halyard", enable_timing=enable_timing)


def current_stream(device=None):
    return torch.accelerator.current_stream(f"halyard:{_index(device)}")


def set_stream(stream) -> None:
    torch.accelerator.set_stream(stream)


@contextlib.contextmanager
def stream(stream):
    """Makes a stream current within a `with` statement."""
    before = current_stream(stream.device)
    set_stream(stream)
    try:
        yield stream
    finally:
        set_stream(before)


# ---- Random numbers ----

def manual_seed(seed: int) -> None:
    """Seeds the random numbers of the current device."""
    _ops.manual_seed(current_device(), seed)


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        _ops.manual_seed(index, seed)


def get_rng_state(device="halyard"):
    return _ops.get_random_state(_index(device))


def set_rng_state(state, device="halyard") -> None:
    _ops.set_random_state(_index(device), state)


def initial_seed() -> int:
    return _ops.initial_seed(current_device())


# ---- Mixed precision ----

def get_amp_supported_dtype() -> list:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


# ---- What runs where ----

def fallbacks(reset: bool = False) -> dict:
    """How often the processor computed each operator since the last reset."""
    return _ops.fallbacks(reset)


def set_fallback(policy: str) -> None:
    """Whether the processor may compute operators: "allow", "warn" (once each) or "error"."""
    if policy not in _POLICIES:
        raise ValueError(f"set_fallback: expected one of {_POLICIES}, got {policy!r}")
    _ops.set_fallback(_POLICIES.index(policy))


@contextlib.contextmanager
def no_fallback():
    """An operator that the processor would compute raises NotImplementedError."""
    _ops.set_fallback(_POLICIES.index("error"))
    try:
        yield
    finally:
        set_fallback(os.environ.get("HALYARD_TORCH_FALLBACK", "allow"))


def set_mode(mode: str) -> None:
    """"fused": operations are deferred; "eager": one kernel for each; "blocking": and a wait."""
    if mode not in _MODES:
        raise ValueError(f"set_mode: expected one of {_MODES}, got {mode!r}")
    _ops.set_mode(_MODES.index(mode))


def get_mode() -> str:
    return _MODES[_ops.mode()]


def statistics(device=None) -> dict:
    """Counters since the device was opened: operations recorded, evaluated and dropped, kernels,
    kernels that were planned anew, arrays that exist, and arrays that are not computed yet."""
    names = ("recorded", "evaluated", "dropped", "kernels", "compiled", "arrays", "deferred")
    return dict(zip(names, _ops.statistics(_index(device))))


# ---- Memory of others ----

def from_dlpack(source, device=None):
    """A tensor in the memory of an object with __dlpack__ (see _share.py)."""
    from ._share import from_dlpack as share
    return share(source, device)


# ---- torch.compile ----

def compile_backend(module, inputs, **options):
    """torch.compile(backend=torch.halyard.compile_backend), or backend="halyard" where the package is
    installed (see _compile.py)."""
    from ._compile import backend
    return backend(module, inputs, **options)
