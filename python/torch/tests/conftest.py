"""Fixtures: a device without fallback, and the counters of its kernels. HAL_BACKEND chooses it."""
import pytest
import torch
import torch_halyard  # noqa: F401


@pytest.fixture(autouse=True)
def fresh_counts():
    torch.halyard.fallbacks(reset=True)
    yield


@pytest.fixture
def strict():
    """The processor computes nothing: such an operator raises NotImplementedError."""
    with torch.halyard.no_fallback():
        yield


class Counter:
    """The kernels that a piece of program records."""

    def __enter__(self):
        torch.halyard.synchronize()
        self._before = torch.halyard.statistics()
        return self

    def __exit__(self, *_):
        torch.halyard.synchronize()
        after = torch.halyard.statistics()
        self.kernels = after["kernels"] - self._before["kernels"]
        self.dropped = after["dropped"] - self._before["dropped"]


@pytest.fixture
def counter():
    return Counter()
