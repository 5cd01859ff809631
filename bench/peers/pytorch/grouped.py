#!/usr/bin/env python3
"""products of groups of rows in PyTorch, next to the rows of hal-bench grouped.

    hal-bench grouped --device cuda --json ours.json
    python3 bench/peers/pytorch/grouped.py --device cuda --rows ours.json

Prints, for each row, PyTorch's time over ours, by one kernel and by a product for each group: a loop
of torch.mm for the groups that have rows, and torch._grouped_mm where PyTorch has it for the type.
Types are those of hal-bench, bf16 on GPUs and f32 on processors; so are the sizes of groups.
With --least the least times are compared, as on a machine that has other work, instead of medians.
With --thread-time they are processor times of the calling thread, as of hal-bench --thread-time.
"""
import argparse
import json
import statistics
import sys
import time

import torch

MASK = (1 << 64) - 1


def offsets_of(groups, rows):
    """Where groups begin, as suites/grouped.c draws them (harness/draw.c)."""
    state, weights = 0x9E3779B97F4A7C16, []
    for _ in range(groups):
        state = (state ^ state << 13) & MASK
        state ^= state >> 7
        state = (state ^ state << 17) & MASK
        weights.append(((state >> 11) * 2.0**-53) ** 2)
    total, done, at = sum(weights), 0.0, []
    for weight in weights:
        at.append(int(rows * done / total))
        done += weight
    return at + [rows]


def measure(call, device, clock):
    """Median and least microseconds of a call by a clock."""
    def wait():
        if device == "cuda":
            torch.cuda.synchronize()
    call()
    wait()
    times, end = [], time.perf_counter() + 0.4
    while time.perf_counter() < end or len(times) < 9:
        begin = clock()
        call()
        wait()
        times.append((clock() - begin) * 1e6)
    return statistics.median(times), min(times)


def peers(row, device):
    """Names and calls for a row."""
    words = row["case"].split(" ")
    groups, rows, turned = int(words[0]), row["m"], "turned" in words
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    at = offsets_of(groups, rows)
    a = torch.rand(rows, row["k"], device=device, dtype=kind)
    b = torch.rand(groups, *((row["n"], row["k"]) if turned else (row["k"], row["n"])),
                   device=device, dtype=kind)
    b = b.transpose(1, 2) if turned else b
    c = torch.empty(rows, row["n"], device=device, dtype=kind)

    def loop():
        for i in range(groups):
            if at[i + 1] > at[i]:
                torch.mm(a[at[i]:at[i + 1]], b[i], out=c[at[i]:at[i + 1]])

    found = [("torch_loop", loop)]
    if hasattr(torch, "_grouped_mm"):
        ends = torch.tensor(at[1:], dtype=torch.int32, device=device)
        found.append(("torch_grouped_mm", lambda: torch._grouped_mm(a, b, offs=ends)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", required=True, help="what hal-bench grouped --json wrote")
    parser.add_argument("--device", default="cuda", help="cuda or cpu (cuda)")
    parser.add_argument("--threads", type=int, help="of PyTorch on processors")
    parser.add_argument("--least", action="store_true", help="compare least times, not medians")
    parser.add_argument("--thread-time", action="store_true",
                        help="processor times of the calling thread, for --threads 1")
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    result = []
    clock = time.thread_time if options.thread_time else time.perf_counter
    for row in rows:
        key = "min_us" if options.least else "median_us"
        ways = {"kernel": row[key]}
        ways.update({name: peer[key] for name, peer in row["peers"].items()})
        for name, call in peers(row, options.device):
            try:
                times = dict(zip(("median_us", "min_us"), measure(call, options.device, clock)))
            except (RuntimeError, NotImplementedError) as error:
                print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            ratios = ", ".join(f"{times[key] / ours:.2f} of {way}" for way, ours in ways.items())
            print(f"{row['case']}: {name} {times[key]:.1f} us: {ratios}", flush=True)
            result.append({"case": row["case"], "peer": name, **times})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"suite": "torch_grouped", "torch": torch.__version__, "rows": result}, file,
                      indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
