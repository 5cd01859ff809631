#!/usr/bin/env python3
"""Holds the order of folders and the size of cycles, over includes and calls; the ctests
lint_architecture and lint_architecture_self_test.

architecture.py ROOT BUILD [--report]   no file of a library calls or includes one of a higher folder;
                                        no files include or call each other in a circle
architecture.py --self-test             sees small trees that break each rule
"""
import json
import re
import subprocess
import sys
from pathlib import Path

# The folders of each library, program or plugin from the bottom up; "." is the unit's own folder,
# without those below it and the files named in the order by their stems; a folder that is not named
# belongs to the one around it. A plugin that is not listed is one folder.
LIBRARIES = {"hal/src": ("base", "ir", "plugin", "core", "comm", "layers"),
             "ops/src": ("tuning", "tensor", "kernels", "gemm/normwise", "gemm", "attention",
                         "array",
                         "composed"),
             "blas/src": ("half", "routine", "call", "shape", "invoke", "host", "lapack", "report", "layout", "matrix", "plain", "lane", "watch",
                          "resident", "estimate",
                          "operand", "pairs", "solve", "product", "factor_run", "triangles", "reflectors", "factor", "store", "measure", "model",
                          "decide", "summary", "forward", "run", "entry", "factorings", "groups", "fortran", "cblas", "pass", "."),
             "bench": ("harness", "peers", "suites", "."),
             "conformance": ("math", "case", "hal", "ir", "ops", "report", "runner", "."),
             "plugins/cpu": ("status", "threads", "lanes", "lower", "jit", "executable", "worker", "gemm",
                             "memory", "device", "kernel", "dispatch", "queue", "plugin"),
             "plugins/cuda": ("driver", "status", "capability", "lower", "describe", "device", "pinned",
                              "stream", "memory", "queue", "point", "kernel", "modules", "gemm/tile",
                              "gemm/producer", "gemm/end", "gemm", "attention", "chain", "collectives",
                              "commands", "plugin"),
             "plugins/vulkan": ("newer", "status", "driver", "quirks", "lower", "describe", "device",
                                "memory", "kernel", "queue", "point", "slot", "commands", "send",
                                "plugin"),
             "plugins/opencl": ("driver", "status", "quirks", "card", "lower", "describe", "device",
                                "memory", "kernel", "queue", "point", "commands", "plugin"),
             "plugins/metal": ("driver", "status", "quirks", "card", "lower", "describe", "device",
                               "memory", "archive", "kernel", "transfer", "queue", "point",
                               "commands", "plugin")}
MAX_CYCLE = 1
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root, build = Path(arguments[0]).resolve(), Path(arguments[1]).resolve()
    units = [(library, LIBRARIES[library]) for library in LIBRARIES]
    units += [(f"plugins/{folder.name}", ()) for folder in sorted((root / "plugins").iterdir())
              if folder.is_dir() and f"plugins/{folder.name}" not in LIBRARIES]
    faults = []
    objects = objects_of(build)
    for unit, folders in units:
        includes, calls = include_edges(root, unit), call_edges(root, unit, objects)
        faults += upward(unit, folders, includes, "includes") + upward(unit, folders, calls, "calls")
        for kind, edges in (("include", includes), ("call", calls)):
            cycles = [cycle for cycle in strongly_connected(edges) if len(cycle) > 1]
            faults += [f"{unit}: a cycle of {kind}s through {len(cycle)} files: {' '.join(cycle)}"
                       for cycle in cycles if len(cycle) > MAX_CYCLE]
            if "--report" in arguments:
                sizes = sorted((len(cycle) for cycle in cycles), reverse=True)
                print(f"{unit}: {kind} cycles of {sizes} files")
    for fault in faults:
        print(fault)
    print(f"architecture: {len(units)} libraries and plugins, {len(faults)} faults")
    return 1 if faults else 0


def stem(path):
    """Header and source of one noun are one node."""
    return str(Path(path).with_suffix(""))


def include_edges(root, unit):
    """Pairs of nodes, relative to the unit's folder."""
    edges = {}
    for file in sorted((root / unit).rglob("*.[ch]")):
        node = stem(file.relative_to(root / unit))
        for name in INCLUDE.findall(file.read_text()):
            for place in (file.parent, root / unit):
                target = place / name
                if target.is_file() and target.resolve().is_relative_to(root / unit):
                    other = stem(target.resolve().relative_to(root / unit))
                    if other != node:
                        edges.setdefault(node, set()).add(other)
                    break
    return edges


def objects_of(build):
    """Source file -> object file, of the targets that are shipped."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        output = re.search(r" -o (\S+)", entry["command"]).group(1)
        if not re.search(r"/(\w+_internal|test_\w+)\.dir/", output):
            found.setdefault(entry["file"], Path(entry["directory"]) / output)
    return found


def call_edges(root, unit, objects):
    """Which file uses a symbol that another one defines."""
    defined, undefined, nodes = {}, {}, {}
    for file in sorted((root / unit).rglob("*.c")):
        item = objects.get(str(file))
        if item is not None and item.is_file():
            nodes[str(item)] = stem(file.relative_to(root / unit))
    if not nodes:
        return {}
    lines = subprocess.run(["nm", "-g", "-A", *nodes], capture_output=True, text=True, check=True)
    for line in lines.stdout.splitlines():  # FILE:[VALUE] KIND SYMBOL
        item, _, rest = line.partition(":")
        *_, kind, symbol = rest.split()
        if kind == "U":
            undefined.setdefault(nodes[item], set()).add(symbol)
        elif kind != "w":
            defined[symbol] = nodes[item]
    return {node: {defined[symbol] for symbol in symbols
                   if symbol in defined and defined[symbol] != node}
            for node, symbols in undefined.items()}


def level(folders, path):
    """The place of a file or its folder in the order, by its path below the unit; -1: it has none."""
    folder = stem(path) if stem(path) in folders else str(Path(path).parent)
    while folder not in folders and "/" in folder:
        folder = str(Path(folder).parent)
    return folders.index(folder) if folder in folders else -1


def upward(unit, folders, edges, verb):
    faults = []
    for node, others in sorted(edges.items()):
        for other in sorted(others):
            if level(folders, other) > level(folders, node) >= 0:
                faults.append(f"{unit}/{node} {verb} {other}, which is in a higher folder")
    return faults


def strongly_connected(edges):
    """Tarjan's algorithm; each component is a sorted list."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            found.append(sorted(component))

    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def self_test():
    folders = LIBRARIES["hal/src"]
    samples = [  # edges, cycles longer than allowed, upward edges
        ({"core/a": {"base/b"}, "base/b": set()}, 0, 0),
        ({"base/b": {"core/a"}}, 0, 1),
        ({"ir/x": {"layers/y"}, "core/z": {"layers/y"}}, 0, 2),
        ({"a": {"b"}, "b": {"a"}}, 0, 0),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 1, 0),
        ({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d", "a"}}, 1, 0),
    ]
    surprises = 0
    for edges, cycles, ups in samples:
        long = [cycle for cycle in strongly_connected(edges) if len(cycle) > 2]
        if len(long) != cycles or len(upward("hal/src", folders, edges, "calls")) != ups:
            print(f"unexpected result for {edges}")
            surprises += 1
    top = {"main": {"suites/a"}, "suites/a": {"suites/b/c"}, "suites/b/c": {"harness/d", "main"}}
    if len(upward("bench", LIBRARIES["bench"], top, "calls")) != 1:
        print(f"unexpected result for {top}")
        surprises += 1
    named = {"low.h": {"base/a"}, "base/a": {"low.h", "up.h"}, "up.h": {"base/a", "low.h"}}
    if len(upward("named", ("low", "base", "."), named, "includes")) != 2:
        print(f"unexpected result for {named}")
        surprises += 1
    nested = {"gemm/tile/a": {"gemm/b"}, "gemm/end/c": {"gemm/tile/a", "d"}, "d": {"chain/e"},
              "gemm/other/f": {"chain/e"}}
    if len(upward("plugins/cuda", LIBRARIES["plugins/cuda"], nested, "calls")) != 2:
        print(f"unexpected result for {nested}")
        surprises += 1
    print(f"architecture: {len(samples) + 3} samples, {surprises} surprises")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
