"""Random numbers from a counter: the same on every device."""
from . import _core
from . import _dtypes as dt
from ._create import shape_tuple
from ._device import context_of

__all__ = ["random_normal", "random_uniform"]


def random_uniform(shape, *, seed, stream=0, low=0.0, high=1.0, dtype=dt.float32, device=None):
    """Floats in [low, high). Equal ``seed`` and ``stream`` give equal numbers.

    >>> import halyard as hx
    >>> hx.random_uniform(3, seed=1).shape
    (3,)
    """
    return _core.random(context_of(device), dtype._type, shape_tuple(shape), seed, stream,
                        float(low), float(high), False)


def random_normal(shape, *, seed, stream=0, mean=0.0, deviation=1.0, dtype=dt.float32,
                  device=None):
    """Normally distributed floats. Equal ``seed`` and ``stream`` give equal numbers."""
    return _core.random(context_of(device), dtype._type, shape_tuple(shape), seed, stream,
                        float(mean), float(deviation), True)
