#!/usr/bin/env python3
"""What NVIDIA's compute-sanitizer says of the faults that level sanitize plants.

planted_faults.py PROGRAM [--device cuda] [--jobs N]

PROGRAM is planted_fault, which runs each kernel with its fault and without, both without checks of
ours. Faults of bounds are shown to memcheck, of init to initcheck, of race to racecheck; it has no
tool for those of math and nan. Prints a table, and ends with 1 when it reports a kernel without fault,
with 77 when compute-sanitizer is missing.
"""
import argparse
import concurrent.futures
import re
import shutil
import subprocess
import sys

TOOLS = {"bounds": ["memcheck"], "init": ["initcheck"],
         "race": ["racecheck", "--racecheck-report", "all", "--print-level", "info"]}


def reports(options, name, part):
    """The errors that the tool counts, and the first lines of it that say what."""
    command = ["compute-sanitizer", "--tool", *TOOLS[name.split("/")[0]], options.program, options.device, name, part]
    out = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
    total = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", out)
    if not total:
        sys.exit(f"{' '.join(command)}: no summary\n{out[-2000:]}")
    said = [line.lstrip("= ") for line in out.splitlines()
            if re.search(r"Invalid|Uninitialized|hazard|[Mm]isaligned|out of bounds", line)]
    return int(total[-1]), said


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    if not shutil.which("compute-sanitizer"):
        print("compute-sanitizer is missing (NVIDIA's CUDA toolkit)")
        return 77
    names = [name for name in subprocess.run([options.program, "--list"], capture_output=True, text=True,
                                             check=True).stdout.split() if name.split("/")[0] in TOOLS]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wrong = list(pool.map(lambda name: reports(options, name, "wrong"), names))
        right = list(pool.map(lambda name: reports(options, name, "right"), names))
    print("| fault | compute-sanitizer | without the fault |\n|---|---|---|")
    for name, (count, said), (falsely, _) in zip(names, wrong, right):
        print(f"| {name} | {f'{count}: {said[0][:80]}' if count and said else count or 'nothing'} | "
              f"{falsely or 'nothing'} |")
    print(f"\n{sum(count > 0 for count, _ in wrong)} of {len(names)} found, "
          f"{sum(count > 0 for count, _ in right)} reports without a fault")
    return int(any(count for count, _ in right))


if __name__ == "__main__":
    sys.exit(main())
