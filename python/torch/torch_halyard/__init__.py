"""torch.device("halyard"): PyTorch on every device that Halyard drives.

`import torch` loads this package where it is installed and CUDA is not available (torch_halyard_autoload);
elsewhere `import torch_halyard` does. The functions are those of torch.halyard. docs/torch.md has the start
and the rules.
"""
from ._load import load

__all__ = ["load"]

load()
