#!/usr/bin/env python3
"""The installed pages as their readers meet them; the ctest consumer_links.

links.py PREFIX COMPILER    follows each relative link of each page below PREFIX/share/doc, and
                            compiles each C block that is a whole program; the other blocks of C, which
                            are fragments, have at least to be balanced
links.py --self-test        sees that a dead link, a missing anchor and a wrong program are noticed
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def anchors(page):
    """As GitHub makes them from headings."""
    text = FENCE.sub("", page.read_text())
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        count = sum(re.fullmatch(re.escape(anchor) + r"(-\d+)?", other) is not None for other in found)
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def dead_links(page):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{page}: {link} leads nowhere"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page}: {link}: the page has no such heading"


def balanced(text):
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", text, flags=re.DOTALL)
    open_ones = []
    for mark in re.findall(r"[][(){}]", text):
        if mark in "([{":
            open_ones.append(mark)
        elif not open_ones or "([{".index(open_ones.pop()) != ")]}".index(mark):
            return False
    return not open_ones


def bad_programs(page, compiler, flags):
    for number, (language, text) in enumerate(FENCE.findall(page.read_text()), 1):
        if language != "c":
            continue
        if "int main(" not in text:
            if not balanced(text):
                yield f"{page}: block {number}: brackets do not match"
            continue
        made = subprocess.run([compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-xc", "-", "-o",
                               "/dev/null", *flags], input=text, text=True, capture_output=True)
        if made.returncode != 0:
            yield f"{page}: block {number} does not compile:\n{made.stderr}"


def flags_of(prefix):
    folder = next(prefix.rglob("halyard-ops.pc")).parent
    said = subprocess.run(["pkg-config", "--cflags", "--libs", "halyard-ops"], text=True, check=True,
                          capture_output=True, env={"PKG_CONFIG_PATH": str(folder), "PATH": "/usr/bin:/bin"})
    return said.stdout.split()


def self_test():
    surprises = []
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "page.md"
        for text, notices in (("# One\n[x](#one) [y](page.md#one) [z](https://a.b/c)\n", 0),
                              ("[x](nowhere.md)\n", 1), ("# One\n[x](#two)\n", 1),
                              ("```c\nint main(void) { return 0; }\n```\n", 0),
                              ("```c\nint main(void) { return x; }\n```\n", 1),
                              ("```c\nf(a[1);\n```\n", 1)):
            page.write_text(text)
            found = [*dead_links(page), *bad_programs(page, "cc", [])]
            if len(found) != notices:
                surprises.append(f"{text!r}: {found}")
    return surprises


def main(arguments):
    if arguments[0] == "--self-test":
        faults = self_test()
    else:
        prefix, flags = Path(arguments[0]), flags_of(Path(arguments[0]))
        pages = sorted((prefix / "share/doc").rglob("*.md"))
        faults = [] if len(pages) > 15 else [f"{len(pages)} pages are installed"]
        for page in pages:
            faults += [*dead_links(page), *bad_programs(page, arguments[1], flags)]
    for fault in faults:
        print(fault)
    print(f"links: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
