"""Reads report.json, report.xml and report.tap in a folder, as strictly as their formats are, and
compares what they say. Called by test_conformance_report and program.sh; status 77 where a parser
is missing."""
import re
import sys

try:
    import json
    import xml.etree.ElementTree as xml
except ImportError as error:
    print("no parser:", error)
    sys.exit(77)


def fail(text):
    sys.exit("check_reports: " + text)


def read_json(path):
    with open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8", "strict"))


def read_junit(path):
    suite = xml.parse(path).getroot()
    cases = suite.findall("testcase")
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    if counts["tests"] != len(cases):
        fail("JUnit counts %d tests of %d" % (counts["tests"], len(cases)))
    for element, key in (("failure", "failures"), ("skipped", "skipped")):
        found = sum(case.find(element) is not None for case in cases)
        if counts[key] != found:
            fail("JUnit counts %d %s of %d" % (counts[key], key, found))
    return cases


def read_tap(path):
    """Version line, plan, test lines; YAML blocks of a test are indented, '#' begins a directive
    unless it is escaped."""
    with open(path, "rb") as file:
        lines = file.read().decode("utf-8", "strict").split("\n")
    if lines[0] != "TAP version 13" or lines.pop() != "":
        fail("TAP has no version line, or does not end with a line")
    plan = re.fullmatch(r"1\.\.(\d+)", lines[1])
    if plan is None:
        fail("TAP has no plan")
    tests, block = [], None
    for line in lines[2:]:
        if block is not None:
            if line == "  ...":
                block = None
            elif not re.match(r'  \w+: ("([^"\\]|\\.)*"|[\d.]+)$', line):
                fail("TAP: no YAML: " + line)
            continue
        if line == "  ---":
            block = line
            continue
        if line.startswith("#"):
            continue
        test = re.fullmatch(r"(not )?ok (\d+) - ((?:[^#\\]|\\.)*?)(?: # (skip|todo) (.*))?", line)
        if test is None:
            fail("TAP: no test line: " + line)
        if int(test.group(2)) != len(tests) + 1:
            fail("TAP: test %s is the %dth" % (test.group(2), len(tests) + 1))
        tests.append((test.group(1) is None, test.group(4), re.sub(r"\\(.)", r"\1", test.group(3))))
    if len(tests) != int(plan.group(1)):
        fail("TAP plans %s tests and has %d" % (plan.group(1), len(tests)))
    return tests


folder = sys.argv[1]
report = read_json(folder + "/report.json")
junit = read_junit(folder + "/report.xml")
tap = read_tap(folder + "/report.tap")
cases = report["cases"]
if not len(cases) == len(junit) == len(tap):
    fail("the reports have %d, %d and %d cases" % (len(cases), len(junit), len(tap)))
for case, other, line in zip(cases, junit, tap):
    # XML 1.0 and a line of TAP cannot hold every character that JSON can.
    plain = re.sub(r"[\n\t]", " ", case["name"])
    plain = re.sub(r"[\x00-\x1f\x7f]", "?", plain)
    if not plain == other.get("name") == line[2]:
        fail("one case has the names %r, %r, %r" % (plain, other.get("name"), line[2]))
    expected = {"passed": (True, None, None), "failed": (False, None, "failure"),
                "unsupported": (True, "skip", "skipped"),
                "expected_failure": (False, "todo", "skipped")}[case["status"]]
    child = next((c.tag for c in other), None)
    if (line[0], line[1], child) != expected:
        fail("%s is %s in TAP and JUnit" % (case["status"], (line[0], line[1], child)))
