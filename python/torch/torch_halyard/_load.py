"""Registers the device. A module of its own, because __init__ calls it after its own `import torch`."""
import os
from pathlib import Path

import torch


def _library() -> str:
    """The shared object: next to this file, or where TORCH_HALYARD_LIBRARY says."""
    return os.environ.get("TORCH_HALYARD_LIBRARY") or str(Path(__file__).parent / "libtorch_halyard.so")


def load() -> None:
    """Registers the device; a second call does nothing."""
    if hasattr(torch, "halyard"):
        return
    torch.utils.rename_privateuse1_backend("halyard")
    torch.ops.load_library(_library())
    from . import _device, _distributed, _module, _share  # they ask torch.ops.halyard, which the library defines
    torch._register_device_module("halyard", _device)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    for module in (_device, _distributed, _module, _share):
        module._start()
