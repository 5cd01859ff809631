"""The tests use the device of HAL_BACKEND, by default the processor."""
import gc
import os

import pytest

os.environ.setdefault("HAL_BACKEND", "cpu")


@pytest.fixture
def settled():
    """Nothing of earlier tests is left, neither garbage nor work: counts change by the test alone."""
    import halyard as hx
    gc.collect()
    for device in (hx.default_device(), hx.Device("cpu")):
        device.synchronize()


@pytest.fixture
def kernels_of(settled):
    """Counts the kernels that f(x) takes, by a recording of it. Computed at once, the operations run in
    kernels of their own until these have cost as much as a compilation, which depends on the load."""
    import halyard as hx

    def count(f, x):
        counted = []
        for _ in range(2):  # the first recording computes what is deferred
            before = x.device.statistics()["kernels"]
            hx.compile(f)(x)
            counted.append(x.device.statistics()["kernels"] - before)
        return counted[-1] - 1  # without the copy of x
    return count
