"""The entry point torch.backends, which `import torch` calls. A package of its own, because importing
torch_halyard registers the device."""
import os
import warnings

import torch


def autoload() -> None:
    """PyTorch has one accelerator in a process, and a registered device takes the place of CUDA: from
    PyTorch 2.8 on, backward of cuda tensors then fails by an assertion of its engine. So where CUDA is
    there, the device waits for `import torch_halyard`, or for HALYARD_TORCH_AUTOLOAD=1."""
    if os.environ.get("HALYARD_TORCH_AUTOLOAD") == "1" or not torch.cuda.is_available():
        try:
            import torch_halyard  # noqa: F401
        except OSError as error:  # `import torch` itself works without this device
            warnings.warn(f"the device halyard is not available: {error}; the wheel belongs to the minor version "
                          f"of PyTorch that it was built with, and this is {torch.__version__}")
