"""torch.device("halyard"): PyTorch on every device that Halyard drives.

`import torch` loads this module where the package is installed (entry point torch.backends); the
functions are those of torch.halyard. docs/torch.md has the start and the rules.
"""
import os
from pathlib import Path

import torch

from . import _device

__all__ = ["load"]


def _library() -> str:
    """The shared object: next to this file, or where TORCH_HALYARD_LIBRARY says."""
    return os.environ.get("TORCH_HALYARD_LIBRARY") or str(Path(__file__).parent / "libtorch_halyard.so")


def load() -> None:
    """Registers the device; a second call does nothing."""
    if hasattr(torch, "halyard"):
        return
    torch.utils.rename_privateuse1_backend("halyard")
    torch.ops.load_library(_library())
    torch._register_device_module("halyard", _device)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _device._start()


load()
