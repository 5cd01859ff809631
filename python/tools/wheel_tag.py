"""Names a wheel by the oldest glibc that it needs: manylinux_2_X of PEP 600.

    python wheel_tag.py WHEEL

Reads the versions of symbols and the libraries that each file of the wheel asks for, prints the
newest version with the file, and renames the wheel. The result is 1 if a file needs a library that
not every Linux has. Needs readelf and the package wheel.
"""
import pathlib
import platform
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
    """The libraries and the newest version of glibc that a file asks for."""
    text = subprocess.run(["readelf", "-dV", path], capture_output=True, text=True,
                          check=True).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)]
    return libraries, max(versions, default=(2, 5))


def main():
    wheel = pathlib.Path(sys.argv[1])
    newest, missing = (2, 5), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        zipfile.ZipFile(wheel).extractall(folder)
        inside = {path.name for path in elf_files(folder)}
        for path in elf_files(folder):
            libraries, version = asked(path)
            missing += [f"{path.relative_to(folder)}: {library}" for library in libraries
                        if library not in inside and not EVERYWHERE.fullmatch(library)]
            newest = max(newest, version)
            print(f"{path.relative_to(folder)}: glibc {version[0]}.{version[1]}")
    for text in missing:
        print(f"not on every Linux: {text}")
    if missing:
        return 1
    tag = f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"
    return subprocess.run([sys.executable, "-m", "wheel", "tags", "--platform-tag", tag,
                           "--remove", wheel]).returncode


if __name__ == "__main__":
    sys.exit(main())
