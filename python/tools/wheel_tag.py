"""Names a wheel by the glibc that it was linked for: manylinux_2_X of PEP 600.

    python wheel_tag.py WHEEL VERSION

Reads the versions of symbols and the libraries that each file of the wheel asks for, prints the
newest version with the file, and renames the wheel. The result is 1 if a file needs a newer glibc
than VERSION, as 2.28, a library that not every Linux has, or a symbol of no library that it names.
Needs readelf and the package wheel.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# Of PEP 600; drivers are opened at run time.
EVERYWHERE = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d|ld-linux.*\.so\.\d")


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def asked(path):
    """The libraries, the newest version of glibc, and the symbols without a version that a file asks
    for."""
    text = subprocess.run(["readelf", "-WdV", "--dyn-syms", path], capture_output=True, text=True,
                          check=True).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)]
    return libraries, max(versions, default=(2, 5)), re.findall(r" GLOBAL +DEFAULT +UND (\w+)$", text,
                                                                re.MULTILINE)


def defined(path):
    """The symbols that a file defines."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True,
                          check=True).stdout
    return re.findall(r" DEFAULT +\d+ (\w+)", text)


def main():
    wheel, newest = pathlib.Path(sys.argv[1]), tuple(map(int, sys.argv[2].split(".")))
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        zipfile.ZipFile(wheel).extractall(folder)
        files = list(elf_files(folder))
        inside = {path.name for path in files}
        known = {symbol for path in files for symbol in defined(path)}
        for path in files:
            libraries, version, symbols = asked(path)
            own = path.relative_to(folder)
            print(f"{own}: glibc {version[0]}.{version[1]}")
            faults += [f"{own}: {library} is not on every Linux" for library in libraries
                       if library not in inside and not EVERYWHERE.fullmatch(library)]
            faults += [f"{own}: no library has {symbol}" for symbol in symbols
                       if symbol not in known and not re.match("_?Py", symbol)]
            if version > newest:
                faults.append(f"{own}: needs a newer glibc than {newest[0]}.{newest[1]}")
    if faults:
        print(*faults, sep="\n")
        return 1
    machine = wheel.stem.partition("-linux_")[2]
    tag = f"manylinux_{newest[0]}_{newest[1]}_{machine}"
    return subprocess.run([sys.executable, "-m", "wheel", "tags", "--platform-tag", tag,
                           "--remove", wheel]).returncode


if __name__ == "__main__":
    sys.exit(main())
