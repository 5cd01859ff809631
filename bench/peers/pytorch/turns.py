"""Halyard and PyTorch in turns in one process: what pytorch/convolution.py and
pytorch/attention_gradients.py have in common.

The least time of a call of each, of turns that take at least 2 ms: with one thread the processor
time of the calling thread, which a busy machine changes little, else the time that passes, with a
pause before each turn in which idle threads fall asleep. Results are compared before they are timed.
"""
import argparse
import json
import statistics
import sys
import time

import torch

from library import Library, find

TURN, PAUSE, ROUNDS = 2e-3, 40e-3, 5


def parser(description, seconds=0.3):
    """Of the options that all have."""
    options = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    options.add_argument("--seed", type=int, default=int(time.time()), help="of the cells")
    options.add_argument("--random", type=int, default=80, help="how many cells")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seconds", type=float, default=seconds, help="for each cell, at least")
    options.add_argument("--filter", default="", help="words in the names of cells, with commas")
    options.add_argument("--library", help="libhalyard_ops.so; without it that of build/release")
    options.add_argument("--json", help="file to write")
    options.add_argument("--list", action="store_true", help="print the names of the cells and end")
    return options


class Turns:
    def __init__(self, options):
        self.options, self.rows, self.failed = options, [], 0
        torch.set_num_threads(options.threads)
        self.library = Library(find(options.library), options.threads)
        self.clock = time.thread_time if options.threads == 1 else time.perf_counter

    def once(self, run, calls):
        start = self.clock()
        for _ in range(calls):
            run()
        return (self.clock() - start) / calls

    def settled(self, run, calls):
        """The time of a call, after one that finds the caches as others left them."""
        if self.options.threads > 1:
            time.sleep(PAUSE)
        self.once(run, calls // 8 + 1)
        return self.once(run, calls)

    def time(self, runs):
        """The least seconds of a call of each."""
        calls = []
        for run in runs:
            self.once(run, 2)
            calls.append(max(1, int(TURN / max(self.once(run, 1), 1e-6))))
        least = [float("inf")] * len(runs)
        end, rounds = time.perf_counter() + self.options.seconds, 0
        while rounds < ROUNDS or time.perf_counter() < end:
            for i, run in sorted(enumerate(runs), reverse=rounds % 2 == 1):
                least[i] = min(least[i], self.settled(run, calls[i]))
            rounds += 1
        return least

    def add(self, name, ours, theirs, found, expected, most=1e-4):
        """A cell of two functions, after a comparison of results, whose norms may differ by `most`."""
        error = max(((f.float() - e.float()).norm() / e.float().norm().clamp_min(1e-30)).item()
                    for f, e in zip(found, expected))
        if not error < most:
            print(f"{name}: the results differ by {error:.2g}", file=sys.stderr)
            self.failed += 1
            return
        halyard, peer = self.time([ours, theirs])
        self.rows.append({"case": name, "us": 1e6 * halyard, "torch_us": 1e6 * peer,
                          "ratio": peer / halyard})

    def end(self):
        """Prints the cells, worst first."""
        rows = sorted(self.rows, key=lambda row: row["ratio"])
        for row in rows:
            print(f"{row['ratio']:6.2f}  {row['us']:10.1f} us  {row['torch_us']:10.1f} of PyTorch"
                  f"  {row['case']}")
        if rows:
            ratios = [row["ratio"] for row in rows]
            print(f"{len(rows)} cells of seed {self.options.seed}, {self.options.threads} threads: "
                  f"worst {ratios[0]:.2f}, median {statistics.median(ratios):.2f}, "
                  f"{sum(ratio < 0.5 for ratio in ratios)} below 0.5")
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as file:
                json.dump({"suite": "turns", "seed": self.options.seed, "torch": torch.__version__,
                           "threads": self.options.threads, "rows": rows}, file, indent=1)
        return 1 if self.failed else 0


def main(options, cells, measure):
    """Calls measure(turns, cell) for each cell, a dictionary with a `case`, that the options
    select."""
    words = options.filter.split(",")
    cells = [cell for cell in cells if any(word in cell["case"] for word in words)]
    if options.list:
        print("\n".join(cell["case"] for cell in cells))
        return 0
    turns = Turns(options)
    for cell in cells:
        measure(turns, cell)
    return turns.end()
