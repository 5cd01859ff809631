#!/usr/bin/env python3
"""Keeps docs/contract.md complete: which sentence of the plugin contract is tested by what.

contract.py ROOT [HAL-CONFORMANCE]
  Each sentence of the four texts has a row in docs/contract.md or is listed in contract.txt as one
  that asks nothing of a plugin. Each row's sentence stands in its text. A row names cases and the
  mutants that they catch, or a test, or says why there is none, or refers to another row. With
  HAL-CONFORMANCE, each case is one of its.
contract.py ROOT --missing
  Prints the sentences that are in neither.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
TEXTS = {
    "hal/plugin.h": "hal/include/hal/plugin.h",
    "hal/ir.h": "hal/include/hal/ir.h",
    "docs/plugin-abi.md": "docs/plugin-abi.md",
    "docs/ir.md": "docs/ir.md",
}
OTHERS = ROOT / "tests/lint/contract.txt"
PAGE = ROOT / "docs/contract.md"
faults = []


def fault(text):
    faults.append(text)


def plain(text):
    """Without marks, so that line breaks and emphasis do not matter."""
    text = text.replace("\u2212", "-").replace("\\|", "|")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text)).strip()


def split(paragraph):
    parts = re.split(r"(?<=[.:])\s+(?=[A-Z`(*])", paragraph)
    return [plain(part) for part in parts if re.search(r"[a-z]{2}", part)]


def units_of_header(text):
    units = []
    for comment in re.findall(r"/\*(.*?)\*/", text, re.S):
        if comment.strip().startswith("----"):
            continue
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.split("\n")]
        for paragraph in re.split(r"\n\s*\n|\n\s*- ", "\n".join(lines)):
            units += split(paragraph)
    return units


def units_of_page(text):
    text = text.split("## Change log")[0]  # history, which each version appends to
    text = re.sub(r"```.*?```", "\n", text, flags=re.S)
    text = re.sub(r"(?m)^#.*$", "\n", text)
    units = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[-|] ?)", text):
        paragraph = paragraph.strip()
        if not paragraph or re.match(r"\|[-| ]+\|$", paragraph):
            continue
        if paragraph.startswith("|"):
            cells = re.split(r"(?<!\\)\|", paragraph.strip("|"))
            units.append(plain(" / ".join(cell.strip() for cell in cells)))
        else:
            units += split(re.sub(r"^- ", "", paragraph))
    return units


def rows_of_page():
    """[(text, number, sentence, cases, mutants)]"""
    rows, text = [], None
    for line in PAGE.read_text().split("\n"):
        if line.startswith("## "):
            text = line[3:].strip()
        match = re.match(r"\| ([A-Z0-9]+-[0-9]+) \| (.*) \| (.*) \| (.*) \|$", line)
        if match:
            rows.append((text, *match.groups()))
        elif re.match(r"\| [A-Z0-9]+-", line):
            fault(f"docs/contract.md: expected four columns, got {line}")
    return rows


def mutants_of_tests():
    mutants = {}
    for line in (ROOT / "tests/mutants/mutants.txt").read_text().split("\n"):
        parts = line.split(" | ")
        if len(parts) == 4 and re.match("[a-z]", line) and parts[2] != "-":
            mutants[parts[0]] = parts[2]
    return mutants


def check_sentences(rows):
    others = [line.split(" | ", 2) for line in OTHERS.read_text().split("\n")
              if line and not line.startswith("#")]
    missing = []
    for name, path in TEXTS.items():
        text = (ROOT / path).read_text()
        units = units_of_header(text) if path.endswith(".h") else units_of_page(text)
        here = [plain(row[2]) for row in rows if row[0] == name]
        known = {plain(other[2]) for other in others if len(other) == 3 and other[1] == name}
        for sentence in here:
            if not any(sentence in unit for unit in units):
                fault(f"docs/contract.md: {name} does not say: {sentence}")
        for unit in units:
            if unit not in known and not any(sentence in unit for sentence in here):
                missing.append((name, unit))
        for sentence in sorted(known - set(units)):
            fault(f"tests/lint/contract.txt: {name} does not say: {sentence}")
    for name, unit in missing:
        fault(f"{name}: no row in docs/contract.md for: {unit}. If it asks nothing of a plugin, "
              "add it to tests/lint/contract.txt")
    return missing


def test_exists(name):
    """A test's source, or a name that the tests' CMakeLists.txt give; \u2026 is any end."""
    begin = name.rstrip("\u2026").rstrip("_")
    tests = ROOT / "tests"
    given = begin[len("abi_"):] if begin.startswith("abi_") else begin
    return any(tests.rglob(f"{begin}*.c")) or any(
        re.search(rf"\b({re.escape(given)}|{re.escape(begin)})", path.read_text())
        for path in tests.rglob("CMakeLists.txt"))


def check_rows(rows, cases):
    mutants, used, numbers = mutants_of_tests(), set(), set()
    for _, number, _, tests, caught in rows:
        if number in numbers:
            fault(f"docs/contract.md: two rows are numbered {number}")
        numbers.add(number)
        patterns = re.findall(r"`([^`]+)`", tests)
        if tests.startswith("none: ") or tests.startswith("test: ") or tests.startswith("see "):
            if caught:
                fault(f"docs/contract.md: {number}: mutants without a case")
            for name in patterns if tests.startswith("test: ") else []:
                if not test_exists(name):
                    fault(f"docs/contract.md: {number}: no test is called {name}")
            continue
        if not patterns:
            fault(f"docs/contract.md: {number}: no case")
        for pattern in patterns:
            if cases and not fnmatch.filter(cases, case_pattern(pattern)):
                fault(f"docs/contract.md: {number}: hal-conformance has no case {pattern}")
        names = [name for name in caught.split(", ") if name and not caught.startswith("none: ")]
        if not caught:
            fault(f"docs/contract.md: {number}: no mutant")
        for name in names:
            used.add(name)
            case = mutants.get(name)
            if case is None:
                fault(f"docs/contract.md: {number}: no mutant is called {name}")
            elif not any(fnmatch.fnmatchcase(case, case_pattern(pattern)) or
                         fnmatch.fnmatchcase(pattern, case_pattern(case)) or case == pattern
                         for pattern in patterns):
                fault(f"docs/contract.md: {number}: {name} is caught by {case}, which is not "
                      "among the row's cases")
    for row in rows:
        if row[3].startswith("see ") and row[3][4:] not in numbers:
            fault(f"docs/contract.md: {row[1]} refers to {row[3][4:]}, which is no row")
    for name in sorted(set(mutants) - used):
        fault(f"docs/contract.md: no row names the mutant {name}")


def case_pattern(pattern):
    """Of fnmatch: names of cases have no brackets of its kind."""
    return pattern.replace("[", "[[]")


def main():
    rows = rows_of_page()
    missing = check_sentences(rows)
    if sys.argv[2:] == ["--missing"]:
        for name, unit in missing:
            print(f"{name} | {unit}")
        return 0
    cases = None
    if len(sys.argv) > 2:
        command = [sys.argv[2], "--list", "--level", "core,ops,stress,comm,process"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        cases = listed.stdout.split("\n")
    check_rows(rows, cases)
    for text in faults:
        print(text)
    print(f"contract: {len(rows)} sentences, {len(mutants_of_tests())} mutants, "
          f"{len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
