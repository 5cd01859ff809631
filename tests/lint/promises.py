#!/usr/bin/env python3
"""Holds docs/promises.md to the tests that it names; the ctest lint_promises.

promises.py ROOT   every promise from 1 to 26 is there once, each file that it names exists and says
"promise N" or "promises N, M and K" with its number, and no test claims a promise that the page does
not give it. Promise 21: a benchmark on record has the cost of an empty dispatch for each plugin that
drives a device, but for those whose README says that they have never run on one.
"""
import gzip
import json
import re
import sys
from pathlib import Path

PROMISES = 26
CLAIM = re.compile(r"[Pp]romises? (\d+(?:(?:, | and )\d+)*)")


def main(root):
    page = (root / "docs" / "promises.md").read_text()
    faults = []
    named = {}
    for number, tests in re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", page, re.M):
        if int(number) in named:
            faults.append(f"promise {number} is there twice")
        named[int(number)] = re.findall(r"`([^`]+)`", tests)
    faults += [f"promise {n} is missing" for n in range(1, PROMISES + 1) if not named.get(n)]
    for number, files in named.items():
        for file in files:
            if not (root / file).is_file():
                faults.append(f"promise {number}: there is no {file}")
            elif number not in claims(root / file):
                faults.append(f"promise {number}: {file} does not name it")
    for folder in "tests", "conformance":
        for file in sorted((root / folder).rglob("*.*")):
            if file.suffix in (".c", ".h", ".sh", ".py") and file.name != "promises.py":
                name = str(file.relative_to(root))
                faults += [f"{name} names promise {n}, docs/promises.md does not name it there"
                           for n in claims(file) if name not in named.get(n, [])]
    faults += unpublished(root)
    for fault in faults:
        print(fault)
    print(f"promises: {len(named)} promises, {len(faults)} faults")
    return 1 if faults else 0


def claims(file):
    """The numbers that a file names, in comments that may break lines."""
    text = re.sub(r"\n\s*(?:\*|#|//)?\s*", " ", file.read_text(errors="replace"))
    return {int(n) for found in CLAIM.findall(text) for n in re.findall(r"\d+", found)}


def unpublished(root):
    """Promise 21: plugins without a cost of an empty dispatch on record."""
    plugins = {folder.parent.name for folder in (root / "plugins").glob("*/CMakeLists.txt")
               if "has never run on" not in (folder.parent / "README.md").read_text()}
    published = set()
    for page in (root / "docs" / "benchmarks").glob("*.json.gz"):
        for run in json.loads(gzip.decompress(page.read_bytes()))["runs"]:
            if any(row[0] == "empty kernel, many in a flush" for row in run["rows"]):
                published.add(run["plugin"])
    return [f"promise 21: no cost of an empty dispatch is on record for {plugin}"
            for plugin in sorted(plugins - published - {"kit", "template", "example_c"})]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
