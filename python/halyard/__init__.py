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

__array_api_version__ = "2025.12"
__version__ = "0.1.0"

from . import _array

__all__ = ["e", "inf", "nan", "pi", "newaxis", "linalg", "__array_namespace_info__",
           "__array_api_version__", "__version__"]
for _part in (_array, _compile, _create, _device, _dtypes, _elementwise, _index, _kernel, _linear,
              _move, _random, _reduce):
    __all__ += _part.__all__
