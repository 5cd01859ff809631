"""Writes a folder to link with in place of glibc's, for files that run on an older glibc as well.

    python wheel_glibc.py VERSION COMPILER FOLDER

The folder gets libraries without code that have the symbols of the compiler's own glibc, each with its
newest version up to VERSION, as 2.28, in the library where that glibc has it; and libc.so, the
script that the linker reads for -lc, with wheel_glibc.c for functions that are newer. A symbol that is
in neither is an undefined reference. glibc keeps every version of a symbol that programs were linked
to, so the symbols are those of glibc VERSION, without the ones that it removed since. Needs readelf.
"""
import pathlib
import re
import subprocess
import sys

# Libraries that glibc 2.34 joined with libc.so.6, and their symbols, which got a new version there. So
# did those of libutil, libanl and libresolv, which are left out; and one symbol that was there before.
JOINED = {
    "libpthread.so.0": re.compile(r"_*(pthread|sem|thrd|mtx|cnd|tss|call_once)"),
    "libdl.so.2": re.compile(r"dl"),
    "librt.so.1": re.compile(r"_*(aio|lio|mq|shm|timer)_"),
}
STAYED = "__libc_start_main"
SYMBOL = re.compile(r"\d+: (?P<value>[0-9a-f]+) +(?P<size>\w+) (?P<type>FUNC|IFUNC|OBJECT|NOTYPE) +"
                    r"(?P<binding>GLOBAL|WEAK) +DEFAULT +\d+ (?P<name>\w+)(?P<at>@@?)"
                    r"GLIBC_(?P<version>[\d.]+)")


def number(version):
    return tuple(map(int, version.split(".")))


def read(path, newest):
    """The symbols of a library that are not newer: name -> (version, is a variable, address, size,
    binding); and the names of those that have newer versions as well. Symbols for old programs only are
    left out."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True,
                          check=True).stdout
    symbols, renewed, linked = {}, set(), set()
    for found in SYMBOL.finditer(text):
        name, version = found["name"], number(found["version"])
        if found["at"] == "@@":
            linked.add(name)
        if version > newest:
            renewed.add(name)
        elif name not in symbols or version > symbols[name][0]:
            symbols[name] = (version, found["type"] == "OBJECT", int(found["value"], 16),
                             int(found["size"], 0), found["binding"])
    return {name: symbols[name] for name in symbols.keys() & linked}, renewed


def write(folder, compiler, library, symbols):
    """A library of the symbols, and the script for -l. Names of a variable keep one address and are weak
    but one: of a program that copies the variable (environ), the linker then lets it have them all."""
    lines, nodes, last = [".data"], {}, None
    for name, (version, is_variable, address, size, binding) in sorted(
            symbols.items(), key=lambda item: (item[1][1:], item[0])):
        if is_variable and last != address:
            lines += [".zero 4096"]
            last = address
        lines += [f".{'weak' if binding == 'WEAK' else 'globl'} {name}",
                  f".type {name},%{'object' if is_variable else 'function'}",
                  f".size {name},{size}", f"{name}:"]
        nodes.setdefault(version, []).append(name)
    lines += [".zero 4096", '.section .note.GNU-stack,"",%progbits', ""]
    source, versions = folder / f"{library}.s", folder / f"{library}.map"
    source.write_text("\n".join(lines))
    versions.write_text("".join(f"GLIBC_{'.'.join(map(str, version))} {{ {'; '.join(names)}; }};\n"
                                for version, names in sorted(nodes.items())))
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{library}",
                    f"-Wl,--version-script,{versions}", source, "-o", folder / library], check=True)
    (folder / f"{library.partition('.')[0]}.so").write_text(f'INPUT("{folder / library}")\n')


def main():
    newest, compiler, folder = number(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)

    def place(name):
        return subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                              check=True).stdout.strip()
    machine = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True,
                             check=True).stdout.partition("-")[0]
    loader = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}[machine]
    libc, renewed = read(place("libc.so.6"), newest)
    moved = {name: libc.pop(name) for name in renewed & libc.keys() if name != STAYED}
    write(folder, compiler, "libc.so.6", libc)
    for library, names in JOINED.items():
        symbols = {name: moved[name] for name in moved if names.match(name)}
        symbols.update(read(place(library), newest)[0])
        write(folder, compiler, library, symbols)
    write(folder, compiler, loader, read(place(loader), newest)[0])
    write(folder, compiler, "libm.so.6", read(place("libm.so.6"), newest)[0])
    here, objects = pathlib.Path(__file__).parent, []
    for name in ("wheel_glibc", "wheel_start"):
        objects.append(folder / f"{name}.o")
        subprocess.run([compiler, "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-c",
                        here / f"{name}.c", "-o", objects[-1]], check=True)
    archive = folder / "libnewer.a"
    archive.unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", archive, *objects], check=True)
    others = " ".join(f'"{folder / name}"' for name in [*JOINED, loader])
    (folder / "libc.so").write_text(f'GROUP("{folder / "libc.so.6"}" "{archive}" '
                                    f'"{place("libc_nonshared.a")}" AS_NEEDED({others}))\n')


if __name__ == "__main__":
    main()
