"""The entry points that the wheel has, in a process that imports torch alone: a folder stands for the installed
wheel's metadata."""
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]


def environment(folder, **variables):
    """Variables of a process that finds the package and the metadata of its wheel."""
    metadata = folder / "torch_halyard-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-halyard\nVersion: 0\n")
    groups = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["entry-points"]
    (metadata / "entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()))
    return {**os.environ, "PYTHONPATH": f"{FOLDER}:{folder}", **variables}


def run(program, variables):
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_import_torch_is_enough(tmp_path):
    out, _ = run("import torch; print(torch.ones(3, device='halyard').sum().item())", environment(tmp_path))
    assert out == "3.0\n"


def test_torch_compile_finds_the_backend_by_its_name(tmp_path):
    out, _ = run("import torch; print('halyard' in torch._dynamo.list_backends())", environment(tmp_path))
    assert out == "True\n"


@pytest.mark.parametrize("library", ["missing", "of another PyTorch"])
def test_torch_imports_without_the_library(tmp_path, library):
    file = tmp_path / "libtorch_halyard.so"
    if library != "missing":
        file.write_bytes(b"no library")
    out, err = run("import torch; print(torch.ones(3).sum().item())",
                   environment(tmp_path, TORCH_HALYARD_LIBRARY=str(file)))
    assert out == "3.0\n" and "the device halyard is not available" in err
