#!/usr/bin/env python3
"""Which sentence of the plugin contract is tested by what: tests/lint/contract.txt is the one table.

contract.py ROOT [HAL-CONFORMANCE]
  Each sentence of the four texts has a row in the table, and each row's sentence stands in its text.
  A row names cases and the mutants that they catch, or a test, or says why there is none, or refers
  to another row. docs/contract.md is what --write makes of the table. With HAL-CONFORMANCE, each
  case is one of its. The same of docs/planted-faults.md.
contract.py ROOT --write
  Writes docs/contract.md.
contract.py ROOT --missing
  Prints the sentences that have no row.
contract.py --self-test
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(".")
TEXTS = {
    "hal/plugin.h": "hal/include/hal/plugin.h hal/include/hal/plugin_interop.h",
    "hal/ir.h": "hal/include/hal/ir.h",
    "docs/plugin-abi.md": "docs/plugin-abi.md",
    "docs/ir.md": "docs/ir.md",
}
REASONS = ("hal", "kernel", "name", "rule", "process", "heading")
TABLE = ROOT / "tests/lint/contract.txt"
PAGE = ROOT / "docs/contract.md"
HEAD = """# What proves each sentence of the plugin contract
Each sentence of [plugin.h](../hal/include/hal/plugin.h), [plugin_interop.h](../hal/include/hal/plugin_interop.h), [ir.h](../hal/include/hal/ir.h), [plugin-abi.md](plugin-abi.md) and
[ir.md](ir.md) that promises or demands something of a plugin, with the cases of `hal-conformance` that fail when it is
violated and the [mutants](conformance.md#mutants) that they catch: wrong plugins that violate it. A failing case names
its sentences by these numbers.

Numbers are stable: a new sentence gets the next free number of its subject. A cell says where a sentence is proven
otherwise: by a unit test of hal, which refuses the plugin before a case can run (its deliberately wrong plugins are in
`tests/plugins/broken.c`, named here as ways), or not at all, with the reason.

This page is generated: edit `tests/lint/contract.txt` and run `tests/lint/contract.py . --write`. The test
`lint_contract` compares the table with the four texts, with `tests/mutants/mutants.txt` and with the list of cases.
"""
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
        comment = comment.split("Overview.")[0]  # repeats the other comments
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.split("\n")
                 if not re.search("-----", line)]
        # Paragraphs, list items, and lines of tables of two columns.
        for paragraph in re.split(r"\n\s*\n|\n\s*- |\n(?= \w.* \| )", "\n".join(lines)):
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


def read_table(lines):
    """[(text, number, sentence, proof, mutants)], {text: sentences that ask nothing}"""
    rows, others, text = [], {name: [] for name in TEXTS}, None
    for line in lines:
        cells = line.rstrip(" |").split(" | ")
        if line.startswith("= "):
            text = line[2:]
        elif re.match("[A-Z0-9]+-[0-9]+$", cells[0]) and len(cells) in (3, 4):
            rows.append((text, *cells, *[""] * (4 - len(cells))))
        elif cells[0] in REASONS:
            others[text].append(line.split(" | ", 1)[1])
        elif line and not line.startswith("#"):
            fault(f"contract.txt: expected a row of the table, got {line}")
    return rows, others


def page_of(rows):
    parts = [HEAD]
    for name in dict.fromkeys(row[0] for row in rows):
        parts.append(f"\n## {name}\n| number | sentence | cases | mutants |\n|---|---|---|---|\n")
        parts += [f"| {' | '.join(row[1:])} |\n" for row in rows if row[0] == name]
    return "".join(parts)


def mutants_of_tests():
    mutants = {}
    for line in (ROOT / "tests/mutants/mutants.txt").read_text().split("\n"):
        parts = line.split(" | ")
        if len(parts) == 4 and re.match("[a-z]", line) and parts[2] != "-":
            mutants[parts[0]] = parts[2]
    return mutants


def check_sentences(rows, others):
    missing = []
    for name, path in TEXTS.items():
        text = "\n".join((ROOT / part).read_text() for part in path.split())
        units = units_of_header(text) if path.endswith(".h") else units_of_page(text)
        here = [plain(row[2]) for row in rows if row[0] == name]
        known = {plain(other) for other in others[name]}
        for sentence in here:
            if not any(sentence in unit for unit in units):
                fault(f"contract.txt: {name} does not say: {sentence}")
        for sentence in sorted(known - set(units)):
            fault(f"contract.txt: {name} does not say: {sentence}")
        missing += [(name, unit) for unit in dict.fromkeys(units)
                    if unit not in known and not any(sentence in unit for sentence in here)]
    for name, unit in missing:
        fault(f"contract.txt: {name}: no row for: {unit}")
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
            fault(f"contract.txt: two rows are numbered {number}")
        numbers.add(number)
        patterns = re.findall(r"`([^`]+)`", tests)
        if tests.startswith("none: ") or tests.startswith("test: ") or tests.startswith("see "):
            if caught:
                fault(f"contract.txt: {number}: mutants without a case")
            for name in patterns if tests.startswith("test: ") else []:
                if not test_exists(name):
                    fault(f"contract.txt: {number}: no test is called {name}")
            continue
        if not patterns:
            fault(f"contract.txt: {number}: no case")
        for pattern in patterns:
            if cases and not fnmatch.filter(cases, case_pattern(pattern)):
                fault(f"contract.txt: {number}: hal-conformance has no case {pattern}")
        names = [name for name in caught.split(", ") if name and not caught.startswith("none: ")]
        if not caught:
            fault(f"contract.txt: {number}: no mutant")
        for name in names:
            used.add(name)
            case = mutants.get(name)
            if case is None:
                fault(f"contract.txt: {number}: no mutant is called {name}")
            elif not any(fnmatch.fnmatchcase(case, case_pattern(pattern)) or
                         fnmatch.fnmatchcase(pattern, case_pattern(case)) or case == pattern
                         for pattern in patterns):
                fault(f"contract.txt: {number}: {name} is caught by {case}, which is not "
                      "among the row's cases")
    for row in rows:
        if row[3].startswith("see ") and row[3][4:] not in numbers:
            fault(f"contract.txt: {row[1]} refers to {row[3][4:]}, which is no row")
    for name in sorted(set(mutants) - used):
        fault(f"contract.txt: no row names the mutant {name}")


def check_planted(text, numbers, mutants, cases):
    """docs/planted-faults.md: cases, mutants that one of the row's cases catches, tests, numbers."""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| ") or cells[0] in ("fault", "remark"):
            continue
        here = f"planted-faults.md: {cells[0]}"
        names = set(re.findall(r"test `([^`]+)`", line))
        patterns = [name for name in re.findall(r"`([^`]+)`", "|".join(cells[1:]))
                    if "/" in name and name not in names]
        for name in names:
            if not test_exists(name):
                fault(f"{here}: no test is called {name}")
        for pattern in patterns:
            if cases and not fnmatch.filter(cases, case_pattern(pattern)):
                fault(f"{here}: hal-conformance has no case {pattern}")
        for number in re.findall(r"\b[A-Z]+-[0-9]+\b", "|".join(cells[1:])):
            if number not in numbers:
                fault(f"{here}: no row of contract.txt is numbered {number}")
        for name in cells[2].split(", ") if len(cells) == 3 else []:
            if name not in mutants:
                fault(f"{here}: no mutant is called {name}")
            elif not any(fnmatch.fnmatchcase(mutants[name], case_pattern(pattern))
                         for pattern in patterns):
                fault(f"{here}: {name} is caught by {mutants[name]}, which is not in its row")
        if len(cells) not in (2, 3) or not cells[-1]:
            fault(f"{here}: a row without an answer")


def case_pattern(pattern):
    """Of fnmatch: names of cases have no brackets of its kind."""
    return pattern.replace("[", "[[]")


def self_test():
    """A stale page and a row of the wrong form are noticed."""
    lines = ["= hal/ir.h", "A-1 | Be fast. | test: `test_x`", "name | What it is.", "B-1 | x"]
    rows, others = read_table(lines)
    assert rows == [("hal/ir.h", "A-1", "Be fast.", "test: `test_x`", "")], rows
    assert others["hal/ir.h"] == ["What it is."] and len(faults) == 1, faults
    assert "| A-1 | Be fast. | test: `test_x` |  |\n" in page_of(rows)
    assert page_of(rows) != page_of([("hal/ir.h", "A-1", "Be slow.", "test: `test_x`", "")])
    check_planted("| remark | answer |\n| one | X-9 |\n| two | `a/b` | m |\n", set(), {"m": "a/c"}, None)
    assert len(faults) == 3 and "m is caught by a/c" in faults[2] and "X-9" in faults[1], faults
    units = units_of_header("/* Overview. Not this. */ /* One. Two:\n * - three is\n *  a | table\n */")
    assert units == ["One.", "Two:", "three is", "a | table"], units
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    rows, others = read_table(TABLE.read_text().split("\n"))
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(page_of(rows))
        return 0
    missing = check_sentences(rows, others)
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
    check_planted((ROOT / "docs/planted-faults.md").read_text(), {row[1] for row in rows},
                  mutants_of_tests(), cases)
    if PAGE.read_text() != page_of(rows):
        fault("docs/contract.md is older than the table: run tests/lint/contract.py . --write")
    for text in faults:
        print(text)
    print(f"contract: {len(rows)} sentences, {len(mutants_of_tests())} mutants, "
          f"{len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
