"""What the standard's inspection functions tell."""
from . import _core
from . import _dtypes as dt
from ._device import Device, default_device as current_device, devices as all_devices


class Info:
    """The result of ``__array_namespace_info__``."""

    def capabilities(self):
        """Which optional parts of the standard there are, a dict."""
        return {"boolean indexing": True, "data-dependent shapes": True, 
                "max dimensions": _core.MAX_RANK}

    def default_device(self):
        """The device of new arrays."""
        return current_device()

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays by kind, a dict."""
        return {"real floating": dt.float32, "complex floating": dt.complex64,
                "integral": dt.int64, "indexing": dt.int64}

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes that the device has, a dict by name."""
        known = (Device(device) if device is not None else current_device())._dtypes()
        return {d.name: d for d in dt.standard
                if d in known and (kind is None or dt.isdtype(d, kind))}

    def devices(self):
        """All devices, a tuple."""
        return all_devices()


def __array_namespace_info__():
    """Functions that tell devices, dtypes and capabilities."""
    return Info()
