"""Devices: what is known of them, and their tests."""
import os
import shutil

import pytest

import halyard as hx


def test_conformance_of_a_device():
    folder = os.path.join(os.path.dirname(hx.__file__), "lib", "hal-conformance")
    if not os.path.exists(folder) and not shutil.which("hal-conformance"):
        pytest.skip("hal-conformance is not installed")
    found = hx.conformance("cpu", filter="device/n*")
    assert found["passed"] > 0 and found["failed"] == 0 and found["failures"] == []
    with pytest.raises(hx.Error):
        hx.conformance("cpu", level="no_such")


def test_info():
    found = hx.info()
    assert any(plugin["name"] == "cpu" and plugin["devices"] for plugin in found["plugins"])
    assert "float32" in hx.Device("cpu").info()["dtypes"]
