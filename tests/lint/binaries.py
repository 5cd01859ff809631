#!/usr/bin/env python3
"""Holds the built libraries to their borders; the ctests lint_binaries and lint_binaries_self_test.
Promise 25: plugins show no other symbols.

binaries.py BUILD_OR_PREFIX [LIB]   in lib, or LIB, libhalyard.so shows hal_* and needs only libc, libhalyard_ops.so shows
ops_* and needs only libhalyard and libc, libhalyard_blas.so shows BLAS names and needs only these, and a plugin shows hal_plugin_create alone and needs
neither library. No built object searches the working folder for libraries.
binaries.py --self-test CC   builds libraries that break each border and sees the complaints
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIBC = r"libc\.so|ld-linux|libpthread\.so|libdl\.so|libm\.so"


def main(arguments):
    if arguments[0] == "--self-test":
        return self_test(arguments[1])
    folder = Path(arguments[0])
    faults, plugins = check(Path(arguments[1]) if len(arguments) > 1 else folder / "lib")
    objects = list(elf_files(folder))
    for path in objects:
        faults += search_path(path)
    for fault in faults:
        print(fault)
    print(f"binaries: 2 libraries, {plugins} plugins, {len(objects)} objects, {len(faults)} faults")
    return 1 if faults else 0


def check(folder):
    """The faults, and how many plugins there were."""
    faults = []
    faults += library(folder / "libhalyard.so", r"hal_\w+", LIBC)
    faults += library(folder / "libhalyard_ops.so", r"ops_\w+", LIBC + r"|libhalyard\.so")
    blas = folder / "libhalyard_blas.so"
    if blas.exists():
        faults += library(blas, r"(cblas_)?[sdcz](gemm(3m|t|tr|_batch(_strided)?)?|(sy|he)(mm|rk|r2k)|tr[ms]m)(_|_64_?|64_)?|(cblas_)?(h|s[hb])gemm(_|_64_?|64_)?|[sdcz](ge(trf|qrf|sv)|potrf)_(64_)?|([sd]or|[cz]un)[gm]qr_(64_)?|halyard_blas_written|HALYARD_BLAS_0",
                          LIBC + r"|libhalyard(_ops)?\.so")
    plugins = sorted((folder / "halyard" / "plugins").glob("*.so"))
    for plugin in plugins:
        faults += library(plugin, r"hal_plugin_create", r"(?!libhalyard)")
        if "hal_plugin_create" not in exported(plugin):
            faults.append(f"{plugin.name} does not export hal_plugin_create")
    return faults, len(plugins)


def library(path, symbols, needs):
    """What path exports or needs beyond the two patterns."""
    for symbol in exported(path):
        if not re.fullmatch(symbols, symbol):
            yield f"{path.name} exports {symbol}"
    dynamic = output("readelf", "--dynamic", "--wide", path)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not re.match(needs, needed):
            yield f"{path.name} needs {needed}"


def elf_files(folder):
    """Programs and shared objects below the folder; object files have no search path."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix in ("", ".so", ".0"):
            with path.open("rb") as file:
                head = file.read(18)
            if head[:4] == b"\x7fELF" and head[16] in (2, 3):
                yield path


def search_path(path):
    """An empty or relative element means the working folder of the process."""
    for entry in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                            output("readelf", "--dynamic", "--wide", path)):
        for element in entry.split(":"):
            if not element.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                yield f"{path.name} searches '{element}' for libraries, of the path '{entry}'"


def exported(path):
    lines = output("nm", "--dynamic", "--defined-only", path).splitlines()
    return [line.split()[-1].split("@")[0] for line in lines]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def self_test(compiler):
    good = {"libhalyard.so": "hal_open", "libhalyard_ops.so": "ops_reduce_sum",
            "libhalyard_blas.so": "cblas_dgemm_64",
            "halyard/plugins/hal_a.so": "hal_plugin_create"}
    cases = [  # file, symbol, library it needs, the complaint
        (None, None, None, None),
        ("libhalyard.so", "open_device", None, "libhalyard.so exports open_device"),
        ("libhalyard.so", "hal_x", "halyard_ops", "libhalyard.so needs libhalyard_ops"),
        ("libhalyard_ops.so", "hal_x", None, "libhalyard_ops.so exports hal_x"),
        ("libhalyard_blas.so", "blas_run", None, "libhalyard_blas.so exports blas_run"),
        ("halyard/plugins/hal_a.so", "lower", None, "hal_a.so exports lower"),
        ("halyard/plugins/hal_a.so", "lower", None, "hal_a.so does not export hal_plugin_create"),
        ("halyard/plugins/hal_a.so", "hal_plugin_create", "halyard", "hal_a.so needs libhalyard"),
    ]
    surprises = 0
    for file, symbol, needs, expected in cases:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "halyard/plugins").mkdir(parents=True)
            for path, name in good.items():
                build(compiler, folder, path, name, None)
            if file:
                build(compiler, folder, file, symbol, needs)
            faults, _ = check(folder)
        if not (any(expected in fault for fault in faults) if expected else not faults):
            print(f"expected '{expected}', got {faults}")
            surprises += 1
    for entry, is_good in {"$ORIGIN/../lib": True, "$ORIGIN::": False, ":/usr/lib": False,
                           "lib": False}.items():
        with tempfile.TemporaryDirectory() as name:
            build(compiler, Path(name), "a.so", "f", None, [f"-Wl,-rpath,{entry}"])
            faults = [fault for path in elf_files(Path(name)) for fault in search_path(path)]
        if bool(faults) == is_good:
            print(f"search path '{entry}': got {faults}")
            surprises += 1
    print(f"binaries: {len(cases) + 4} samples, {surprises} surprises")
    return 1 if surprises else 0


def build(compiler, folder, path, symbol, needs, options=()):
    link = ["-Wl,--no-as-needed", f"-L{folder}", f"-l{needs}"] if needs else []
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", folder / path, *link, *options],
                   input=f"int {symbol}(void);\nint {symbol}(void) {{ return 0; }}\n",
                   text=True, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
