#!/usr/bin/env python3
"""Holds docs/write-a-plugin.md to what it says; the ctests page_fragments and page_commands.

page.py --fragments PAGE FOLDER   every block marked as C stands in a file of FOLDER, word for word
page.py --commands PAGE PREFIX    types the commands of the blocks marked as console in an empty
folder and compares what they print; `...` stands for any lines, `…` for anything within a line.
PREFIX, where the package is, is copied first, so that the page may install into it
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "== page.py: end of a command, status "


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("--fragments", "--commands"):
        print(__doc__, file=sys.stderr)
        return 2
    page = Path(arguments[1]).read_text(encoding="utf-8")
    check = check_fragments if arguments[0] == "--fragments" else check_commands
    count, faults = check(page, Path(arguments[2]))
    for fault in faults:
        print(fault)
    print(f"page: {count} {arguments[0][2:]}, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def check_fragments(page, folder):
    sources = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.[ch]"))]
    fragments = blocks(page, "c")
    faults = [f"no file of {folder} has\n{fragment}" for fragment in fragments
              if not any(fragment in source for source in sources)]
    return len(fragments), faults


def check_commands(page, prefix):
    commands = commands_of(page)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(prefix, work / "prefix", symlinks=True)
        (work / "empty").mkdir()
        printed = type_in(commands, work)
    faults = []
    for (command, expected), (text, status) in zip(commands, printed):
        # A command that prints nothing has to succeed; of others the text says how they ended.
        if not re.fullmatch(pattern_of(expected), text) or (not expected and status != "0"):
            faults.append(f"$ {command}\nstatus {status}, printed\n{text}\nthe page says\n{expected}")
    if len(printed) < len(commands):
        faults.append(f"the shell ended before: {commands[len(printed)][0]}")
    return len(commands), faults


def commands_of(page):
    """Pairs of a command, with its here-document, and the text that it should print."""
    commands = []
    for block in blocks(page, "console"):
        ending = None
        for line in block.splitlines():
            if ending:
                commands[-1][0] += "\n" + line
                ending = None if line == ending else ending
            elif line.startswith("$ "):
                commands.append([line[2:], ""])
                here = re.search(r"<<'(\w+)'", line)
                ending = here.group(1) if here else None
            else:
                commands[-1][1] += line + "\n"
    return commands


def type_in(commands, work):
    """What each command printed, and its status; all of them in one shell, as a reader's."""
    script = work / "page.sh"
    script.write_text("".join(f'{command}\necho "{MARK}$?"\n' for command, _ in commands),
                      encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAL_")}
    for name in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "CMAKE_GENERATOR", "DESTDIR"):
        kept.pop(name, None)
    kept.update(PREFIX=str(work / "prefix"), PATH=f"{work}/prefix/bin:{kept['PATH']}",
                HAL_CACHE_DIR="off", LC_ALL="C.UTF-8")
    done = subprocess.run(["bash", script], cwd=work / "empty", env=kept, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return re.findall(rf"(.*?){MARK}(\d+)\n", done.stdout, re.DOTALL)


def pattern_of(expected):
    """A regular expression for what the page shows; blanks beside `…` do not count."""
    pattern = ""
    for line in expected.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            parts = [re.escape(part) for part in re.split(r" *… *", line)]
            pattern += ".*".join(parts) + "\n"
    return pattern


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
