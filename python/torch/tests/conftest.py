"""Fixtures: fresh counters, and a device without fallback. HAL_BACKEND chooses the device."""
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
