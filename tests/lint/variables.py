#!/usr/bin/env python3
"""Holds the texts about environment variables to their table, hal/include/hal/variables.h; the ctest
lint_variables. README.md, docs/man/hal-info.1 and docs/man/halyard.7 have a row for each, with the table's words; no other
man page repeats them; sources read no variable that the table, or the plugin's README, lacks.

variables.py ROOT        one line for each fault
variables.py --self-test ROOT   sees that changes of each text are noticed
"""
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROW = re.compile(r'X\((HAL_\w+), "([^"]*)", "([^"]*)",((?:\s*"[^"]*")+)\)')
READ = re.compile(r'getenv\("(HAL_\w+)"\)')


def main(arguments):
    if arguments[0] == "--self-test":
        return self_test(Path(arguments[1]))
    faults = check(Path(arguments[0]))
    for fault in faults:
        print(fault)
    print(f"variables: {len(faults)} faults")
    return 1 if faults else 0


def table_of(root):
    text = (root / "hal/include/hal/variables.h").read_text().replace("\\\n", "\n")
    text = text[text.index("#define HAL_VARIABLES"):]
    return {name: (values, reader, "".join(re.findall(r'"([^"]*)"', help)))
            for name, values, reader, help in ROW.findall(text)}


def words(text):
    """Without the marks of Markdown and mdoc, and with single spaces."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text.replace("`", ""))
    return " ".join(text.split())


def check(root):
    table = table_of(root)
    faults = [] if table else ["hal/include/hal/variables.h: no rows"]
    faults += list(readme(root, table)) + man_pages(root, table) + sources(root, table)
    return faults


def readme(root, table):
    rows = dict(re.findall(r"^\| `(HAL_\w+)` \| (.*) \|$", (root / "README.md").read_text(),
                           re.MULTILINE))
    for name, (_, _, help) in table.items():
        if words(rows.get(name, "")) != words(help):
            yield f"README.md: the row of {name}: expected '{help}', got '{rows.get(name, '')}'"
    for name in rows.keys() - table.keys():
        if not name.startswith("HAL_CPU_"):
            yield f"README.md: {name} is not in hal/variables.h"


def man_pages(root, table):
    faults = []
    for page in sorted((root / "docs/man").glob("*.[17]")):
        text = page.read_text()
        items = dict(re.findall(r"^\.It Ev (\w+)[^\n]*\n((?:[^.][^\n]*\n)+)", text, re.MULTILINE))
        if page.name not in ("hal-info.1", "halyard.7"):
            faults += [f"{page.name}: {name} is described in hal-info.1 and halyard.7 alone" for name in items]
            continue
        for name, (_, _, help) in table.items():
            if words(items.get(name, "")) != words(help):
                faults.append(f"{page.name}: {name}: expected '{help}', got '{items.get(name)}'")
        faults += [f"{page.name}: {name} is not in hal/variables.h"
                   for name in items.keys() - table.keys()]
    return faults


def sources(root, table):
    faults, read_by = [], {}
    for room in ("hal", "ops", "plugins", "conformance"):
        for file in sorted((root / room).rglob("*.[ch]")):
            name = file.relative_to(root).as_posix()
            for variable in READ.findall(file.read_text()):
                read_by.setdefault(variable, set()).add(name)
                if variable not in table and not in_readme_of_plugin(root, name, variable):
                    faults.append(f"{name}: {variable} is not in hal/variables.h")
    for variable, (_, reader, _) in table.items():
        if reader not in read_by.get(variable, ()):
            faults.append(f"hal/variables.h: {reader} does not read {variable}")
    return faults


def in_readme_of_plugin(root, name, variable):
    parts = name.split("/")
    page = root / parts[0] / parts[1] / "README.md"
    return parts[0] == "plugins" and page.is_file() and variable in page.read_text()


def self_test(root):
    changes = [  # file, what is replaced, by what
        ("README.md", "| `HAL_LOG` |", "| `HAL_LOGS` |"),
        ("docs/man/hal-info.1", ".It Ev HAL_FAULT", ".It Ev HAL_FAULTS"),
        ("docs/man/halyard.7", ".It Ev HAL_FAULT", ".It Ev HAL_FAULTS"),
        ("docs/man/hal-replay.1", ".Sh EXIT STATUS", ".It Ev HAL_LOG\nThe log.\n.Sh EXIT STATUS"),
        ("hal/include/hal/variables.h", "no log", "nothing"),
        ("hal/src/base/log.c", 'getenv("HAL_LOG")', 'getenv("HAL_LOUD")'),
    ]
    surprises = [f"the tree: {fault}" for fault in check(root)]
    for name, old, new in changes:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder)
            for part in ("README.md", "docs/man", "hal", "plugins"):
                source = root / part
                if source.is_dir():
                    shutil.copytree(source, copy / part)
                else:
                    shutil.copy(source, copy / part)
            text = (copy / name).read_text()
            if old not in text:
                surprises.append(f"{name} has no '{old}'")
            (copy / name).write_text(text.replace(old, new))
            if not check(copy):
                surprises.append(f"{name}: nobody noticed '{new}'")
    for surprise in surprises:
        print(surprise)
    print(f"variables: {len(changes)} changes, {len(surprises)} surprises")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
