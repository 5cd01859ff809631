#!/usr/bin/env python3
"""Writes small libraries in the place of the CUDA libraries that PyTorch's ordinary wheel links.

cuda_stand_ins.py TORCH_LIB_FOLDER OUTPUT_FOLDER

PyPI has no wheel for processors alone, and the ordinary one does not load without 2.5 GB of CUDA
packages. On a machine without an NVIDIA GPU nothing in them is used: each function of a stand-in
returns cudaErrorNoDevice. Those that give the text of an error (cudaGetErrorString,
cublasGetStatusName, ncclGetLastError and their like) return a message instead; those of the driver
(cuGet...) do not, because they return a status and write the text to an argument. With
OUTPUT_FOLDER in LD_LIBRARY_PATH, `pip install --no-deps torch` is enough. Needs readelf, nm and
gcc. Libraries other than those of CUDA are left out.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

NO_DEVICE = 100
MESSAGE = re.compile(r"(?!cuGet)\w+Get(Error|Status)(String|Name)|ncclGetLastError")
CUDA = re.compile(r"lib(cu|nv|nccl)\w*\.so\.\d+")
NAME_OF_CUDA = re.compile(r"(__)?(cu[A-Z]|cuda[A-Z]|cufile|cuFile|cusparse|nccl|nvshmem|nvrtc)\w*")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed_libraries(file):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", str(file)))


def versions_of(file):
    """The versions that a file wants of each library."""
    wanted, library = defaultdict(set), None
    for line in output_of("readelf", "-V", "-W", str(file)).splitlines():
        found = re.search(r"File: (\S+)", line)
        library = found.group(1) if found else library
        found = re.search(r"Name: (\S+) .*Version: \d+", line)
        if found and library:
            wanted[library].add(found.group(1))
    return wanted


def undefined_symbols(file):
    """Pairs of a name and its version, which may be empty."""
    for line in output_of("nm", "-D", "--undefined-only", str(file)).splitlines():
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@")


def function_of(symbol):
    if MESSAGE.fullmatch(symbol):
        return f'const char *{symbol}(void) {{ return "no CUDA device is available"; }}\n'
    return f"int {symbol}(void) {{ return {NO_DEVICE}; }}\n"


def write_library(folder, name, versions, symbols):
    plain = sorted(symbol for symbol, version in symbols if not version)
    script = ""
    for version in sorted(versions):
        exported = "".join(f"{symbol}; " for symbol, v in sorted(symbols) if v == version)
        script += f"{version} {{ {'global: ' if exported else ''}{exported}}};\n"
    script_file = folder / "versions"
    script_file.write_text(script)
    code = "".join(map(function_of, sorted({s for s, v in symbols if v} | set(plain))))
    command = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", "-o",
               str(folder / name), f"-Wl,-soname,{name}"]
    if versions:
        command.append(f"-Wl,--version-script,{script_file}")
    subprocess.run(command, input=code, text=True, check=True)
    script_file.unlink()


def main(torch_folder, folder):
    files = sorted(torch_folder.glob("*.so*"))
    own = {file.name for file in files}
    needed = {name for file in files for name in needed_libraries(file)
              if CUDA.fullmatch(name) and name not in own}
    versions, symbols, unversioned = defaultdict(set), defaultdict(set), set()
    for file in files:
        for library, wanted in versions_of(file).items():
            versions[library] |= wanted
        for symbol, version in undefined_symbols(file):
            for library in needed:
                if version in versions[library]:
                    symbols[library].add((symbol, version))
            if not version and NAME_OF_CUDA.fullmatch(symbol):
                unversioned.add((symbol, ""))
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(needed):
        write_library(folder, name, versions[name],
                      symbols[name] if versions[name] else unversioned)
    print(f"cuda_stand_ins: {len(needed)} libraries in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
