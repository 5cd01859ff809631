#!/usr/bin/env python3
"""What the checks of HAL_SANITIZE cost: the table of docs/layers.md.

sanitize.py [--bench PROGRAM] [--device NAME] [--words LIST] [--suites LIST] [--turns N] [--worst N]
            [--json FILE]

Runs hal-bench without checks and with each word (`all`: all words at once), in turns, and prints the
ratios of the least times of each cell: median and worst of each word, then the worst cells. On the
cpu device the times are processor times of one thread, so that other load hardly matters.
--json adds the times to those in the file, so that runs of one build can be put together; with
--turns 0 nothing is run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = ("bounds", "init", "race", "math", "nan")
RUNS = (
    ("pointwise", "--sizes", "1048576"),
    ("reduce", "--sizes", "1024x1024"),
    ("grid", "--random", "40", "--seed", "7", "--largest", "1048576"),
    ("operators", "--random", "14", "--seed", "3", "--largest", "262144"),
    ("gemm", "--impl", "portable", "--sizes", "256,64x500x33,512x64x300"),
)


def run(options, suite, word):
    """The least times of a suite's cells, in microseconds."""
    environment = dict(os.environ)
    environment.pop("HAL_SANITIZE", None)
    if word:
        environment["HAL_SANITIZE"] = ",".join(WORDS) if word == "all" else word
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [options.bench, *suite, "--device", options.device, "--seconds", "0.05", "--json", file.name]
        command += ["--threads", "1", "--thread-time"] if options.device.startswith("cpu") else []
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or "sanitize: " in done.stderr:
            sys.exit(f"{word or 'no checks'}: {' '.join(command)}\n{done.stderr[-2000:]}")
        return {row["case"]: row["min_us"] for row in json.load(open(file.name, encoding="utf-8"))["rows"]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bench", default=str(Path(__file__).parent.parent / "build/release/bin/hal-bench"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--words", default=",".join(WORDS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--suites")
    parser.add_argument("--worst", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    words = options.words.split(",")
    times = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for _ in range(options.turns):
        for suite in RUNS:
            if options.suites and suite[0] not in options.suites.split(","):
                continue
            for word in [""] + words:
                least = times.setdefault(word, {})
                for case, time in run(options, suite, word).items():
                    least[case] = min(time, least.get(case, time))
                if options.json:
                    options.json.write_text(json.dumps(times, indent=1))
    ratios = {word: {case: times[word][case] / time for case, time in times[""].items() if case in times[word]}
              for word in words}
    print("| check | median | worst |\n|---|---|---|")
    for word in words:
        case = max(ratios[word], key=ratios[word].get)
        print(f"| `{word}` | {statistics.median(ratios[word].values()):.1f} | {ratios[word][case]:.1f} ({case}) |")
    for word in words:
        print(f"\n{word}:")
        for case in sorted(ratios[word], key=ratios[word].get, reverse=True)[: options.worst]:
            print(f"  {ratios[word][case]:6.2f}  {case}: {times[''][case]:.1f} and {times[word][case]:.1f} µs")


main()
