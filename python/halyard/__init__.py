"""Halyard: arrays on processors and GPUs by the array API standard 2025.12.

>>> import halyard as hx
>>> x = hx.asarray([1.0, 2.0, 3.0])
>>> hx.sum(x * x + 1)
array(17., dtype=float32)

Operations are recorded and computed late: chains of them become one kernel. Printing, reading an
element, ``evaluate`` and ``Device.synchronize`` compute. All functions are in this module; docs/
python.md has the rules. Shapes are written as [n, m], with ... for any number of axes before.
"""
from math import e, inf, nan, pi

from . import _compile, _create, _device, _dtypes, _elementwise, _index, _kernel, _linear, _move
from . import _random, _reduce
from ._array import *
from ._compile import *
from ._create import *
from ._device import *
from ._dtypes import *
from ._elementwise import *
from ._index import *
from ._info import __array_namespace_info__
from ._kernel import *
from ._linear import *
from ._move import *
from ._random import *
from ._reduce import *
from . import linalg

newaxis = None

# Names of NumPy that the standard replaced.
_NUMPY = {
    "absolute": "abs", "allclose": "all(abs(x - y) <= ...)", "amax": "max", "amin": "min",
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "array": "asarray", "concatenate": "concat",
    "cumprod": "cumulative_prod", "cumsum": "cumulative_sum", "dot": "matmul or vecdot",
    "float_power": "pow", "hstack": "concat(..., axis=1)", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "mod": "remainder", "ndarray": "Array",
    "norm": "linalg.vector_norm or matrix_norm", "outer": "linalg.outer", "power": "pow",
    "random": "random_normal and random_uniform", "ravel": "reshape(x, (-1,))",
    "right_shift": "bitwise_right_shift", "rint": "round", "swapaxes": "permute_dims",
    "transpose": "permute_dims", "unique": "unique_values", "vstack": "concat(..., axis=0)",
}


def __getattr__(name):
    hint = f"; the name here is {_NUMPY[name]}" if name in _NUMPY else ""
    raise AttributeError(f"module 'halyard' has no attribute {name!r}{hint}")


__array_api_version__ = "2025.12"
__version__ = "0.1.0"

from . import _array

__all__ = ["e", "inf", "nan", "pi", "newaxis", "linalg", "__array_namespace_info__",
           "__array_api_version__", "__version__"]
for _part in (_array, _compile, _create, _device, _dtypes, _elementwise, _index, _kernel, _linear,
              _move, _random, _reduce):
    __all__ += _part.__all__
