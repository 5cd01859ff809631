"""Devices: what is known of them, and their tests."""
import os
import re
import shutil
import subprocess
import sys

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


QUIRKS = """import halyard as hx
for plugin in hx.info()["plugins"]:
    for index, device in enumerate(plugin["devices"]):
        name = f"{plugin['name']}:{index}"
        if not device.get("message"):
            assert hx.Device(name).info()["plugin_quirks"] == device["plugin_quirks"]
        for quirk in device["plugin_quirks"]:
            print(plugin["name"], quirk["name"], quirk["active"], bool(quirk["reason"]))
"""


def test_quirks_of_drivers():
    def quirks(off):
        ran = subprocess.run([sys.executable, "-c", QUIRKS], capture_output=True, text=True,
                             env=dict(os.environ, HAL_OPENCL_QUIRKS=off))
        assert ran.returncode == 0, ran.stderr
        return [line.split() for line in ran.stdout.splitlines()]
    found = quirks("")
    assert not any(plugin == "cpu" for plugin, *_ in found)
    known = [quirk for quirk in found if quirk[0] == "opencl"]
    if not known:
        pytest.skip("no driver with a known quirk")
    assert all(quirk[2:] == ["True", "True"] for quirk in known)
    names = {quirk[1] for quirk in known}
    off = [quirk for quirk in quirks(",".join("-" + name for name in names)) if quirk[0] == "opencl"]
    assert off == [[*quirk[:2], "False", "True"] for quirk in known]


INTERRUPTED = """
import os, signal, threading, time
import halyard as hx

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
device, products, left, end = hx.Device("cpu"), 30, 0, time.monotonic() + 60
while left < 0.05 and time.monotonic() < end:  # more work, if it was done before the signal
    products *= 2
    with device:
        x = hx.random_normal((1000, 1000), seed=1)
        y = hx.sum(x)
        for _ in range(products):
            x = x @ x * 1e-2
            hx.evaluate(x)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        device.synchronize()
        timer.join()
        time.sleep(60)  # until the signal is here
    except KeyboardInterrupt:
        start = time.monotonic()
        device.synchronize()
        left = time.monotonic() - start
print(left >= 0.05, hx.isfinite(y))
"""


def test_waits_end_by_an_interrupt():
    if os.environ.get("HAL_CPU_BACKGROUND") == "0":
        pytest.skip("batches run in the call that submits")
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert ran.stdout.split() == ["True", "True"], ran.stdout + ran.stderr


FINDING = """import halyard as hx
x = hx.asarray([1.0, 0.0, 2.0], device=hx.Device("cpu"))
y = hx.log(x)
z = y + x
print(float(hx.sum(z)))
"""


# Also of a program whose place looks like the package's.
PLACES = ["", os.path.dirname(hx.__file__) + "_models/", "/nowhere/halyard/_"]


def run_at(place, text, folder, check):
    """Runs a program model.py, which is in the folder or says that it is at the place."""
    program = folder / "model.py"
    program.write_text(f"exec(compile({text!r}, {place + 'model.py'!r}, 'exec'))" if place else text)
    return subprocess.run([sys.executable, program], capture_output=True, text=True,
                          env={**os.environ, "HAL_SANITIZE": check})


@pytest.mark.parametrize("place", PLACES)
def test_findings_name_the_lines_of_the_program(tmp_path, place):
    ran = run_at(place, FINDING, tmp_path, "nan")
    assert ran.stdout.split() == ["-inf"]
    assert re.search(r"of the calls log@_?model.py:3 add@_?model.py:4", ran.stderr), ran.stderr


WRONG_KERNEL = """
import halyard as hx
k = hx.Kernel("scale", group=4)
x, y = k.read("x", hx.float32), k.write("y", hx.float32)
i = k.global_id()
with k.when(i < 4):
    y[i] = x[i + 1]
print(k(hx.arange(4.0), (4,), groups=1))
"""


@pytest.mark.parametrize("place", PLACES)
def test_a_finding_names_the_line_of_a_kernel(tmp_path, place):
    ran = run_at(place, WRONG_KERNEL, tmp_path, "bounds")
    assert ran.stdout.split() == ["[1.", "2.", "3.", "0.]"], ran.stderr
    assert re.search(r"load f32 x\[.*, _?model.py:7\)", ran.stderr), ran.stderr


LOST = """
import halyard as hx
import numpy

kept = hx.asarray(numpy.arange(4, dtype="float32")) + 1
assert numpy.asarray(kept).tolist() == [1, 2, 3, 4]
x = hx.exp(kept)
later = x + 1


def fails(words, call):
    try:
        call()
    except Exception as error:
        assert words in str(error), error
    else:
        raise AssertionError("it succeeded")


try:
    numpy.asarray(x)
except hx.Error as error:
    assert "fails by HAL_FAULT" in str(error), error
else:
    raise SystemExit("another batch failed")
for _ in range(2):
    for call in (lambda: numpy.asarray(x), lambda: x + kept, lambda: x[1:], lambda: hx.sum(x), lambda: x.__dlpack__()):
        fails("got one (exp), which was lost when its batch failed: ", call)
    fails("whose source (exp) was lost when its batch failed: ", lambda: numpy.asarray(later))
    assert numpy.asarray(kept).tolist() == [1, 2, 3, 4]
x[:] = kept
assert numpy.asarray(x).tolist() == [1, 2, 3, 4]
print("done")
"""


def test_values_of_a_batch_that_failed_are_lost():
    """A failure is told once; later uses are errors, and what does not depend on it goes on."""
    for number in range(1, 20):
        variables = {**os.environ, "HAL_LAYERS": "fault", "HAL_FAULT": f"submit:{number}"}
        ran = subprocess.run([sys.executable, "-c", LOST], env=variables, capture_output=True, text=True)
        if ran.stdout == "done\n":
            return
        before = "another batch failed" in ran.stderr or "numpy.asarray(kept).tolist()" in ran.stderr
        assert before or "line 5" in ran.stderr or "line 6" in ran.stderr, ran.stderr
    raise AssertionError("the batch of x did not fail")
