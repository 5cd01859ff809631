"""torch.device("halyard"): PyTorch on every device that Halyard drives.

`import torch` loads this package where it is installed (entry point torch.backends) and CUDA is not
available; elsewhere `import torch_halyard` does. The functions are those of torch.halyard. docs/torch.md has the start and the rules.
"""
import torch  # noqa: F401, first: it loads ._autoload by the entry point

from ._autoload import load

__all__ = ["load"]

load()
