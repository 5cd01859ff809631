#!/usr/bin/env python3
"""cases of hal-bench sequential in PyTorch, for its --join.

    python3 bench/peers/pytorch/sequential.py --device cuda --json torch.json
    hal-bench sequential --device cuda --second cpu --join torch.json

The same functions, seeds and sizes: 10,000 unary operations on 1,024 floats and the recurrent step,
eager, compiled by torch.compile, and as a CUDA graph. TF32 is off. Results are held to float64.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import argparse
import json
import math
import os
import platform
import statistics
import sys
import time

import torch

MASK = (1 << 64) - 1
OPERATIONS, ELEMENTS, RING = 10000, 1024, 16
COMPILED_OPERATIONS = 500  # more take the compiler minutes
HIDDEN, BATCHES = (16, 32, 64, 128, 256, 512), (1, 64)
# chain.c: five that are drawn three times as often, and three.
OFTEN = (torch.neg, torch.sin, torch.tanh, torch.atan, torch.erf)
SELDOM = (torch.sinh, torch.tan, torch.expm1)


class Series:
    """bench_random of rows.c."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & MASK

    def word(self):
        s = self.state
        s ^= (s << 13) & MASK
        s ^= s >> 7
        s ^= (s << 17) & MASK
        self.state = s
        return s

    def floats(self, count):
        return [(self.word() >> 11) * 2.0 ** -52 - 1.0 for _ in range(count)]


class Bench:
    def __init__(self, options):
        self.device = torch.device(options.device)
        self.seconds = options.seconds
        self.rows = []

    def synchronise(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def time(self, run, parts):
        """Seconds of a part of run(): median, least, distance of the quartiles, runs, calls."""
        calls, taken = 1, 0.0
        end = time.perf_counter() + min(0.2, 4 * self.seconds)
        while taken < 5e-3 or time.perf_counter() < end:
            taken = self.once(run, calls)
            if taken < 5e-3:
                calls *= 2
        samples = []
        start = time.perf_counter()
        while len(samples) < 9 or (len(samples) < 201
                                   and time.perf_counter() - start < self.seconds):
            samples.append(self.once(run, calls) / calls / parts)
        quartiles = statistics.quantiles(samples, n=4)
        return statistics.median(samples), min(samples), quartiles[2] - quartiles[0], calls, \
            len(samples)

    def once(self, run, calls):
        self.synchronise()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        self.synchronise()
        return time.perf_counter() - start

    def add(self, case, peer, run, parts):
        median, least, spread, calls, runs = self.time(run, parts)
        self.rows.append({"case": case, "peer": peer, "median_us": 1e6 * median,
                          "min_us": 1e6 * least, "spread_us": 1e6 * spread, "runs": runs,
                          "calls": calls * parts})
        print(f"{case:36} {peer:16} {1e6 * median:10.3f} us, least {1e6 * least:10.3f}",
              flush=True)


def capture(run):
    """A CUDA graph of run(), warmed up on a stream of its own as PyTorch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def hold(what, found, expected, tolerance):
    difference = (found.double().cpu() - expected).abs().max().item()
    if not difference <= tolerance:
        sys.exit(f"{what}: {difference:.3g} from the result in float64")


def chain(bench, modes):
    series = Series(2)
    order = []
    for _ in range(OPERATIONS):
        draw = (series.word() >> 33) % 18
        order.append(OFTEN[draw % 5] if draw < 15 else SELDOM[draw - 15])
    numbers = torch.tensor(Series(7).floats(ELEMENTS), dtype=torch.float32)
    x = numbers.to(bench.device)

    def run(count=OPERATIONS, start=x):
        y = start
        for function in order[:count]:
            y = function(y)
        return y

    for count in (50, 64, 100, 1000, OPERATIONS):
        hold(f"{count} operations", run(count), run(count, numbers.double()), 2e-4)
    case = "10000 unary operations"
    if "eager" in modes:
        bench.add(case, "torch_eager", run, OPERATIONS)
    if "compiled" in modes:
        part = torch.compile(lambda: run(COMPILED_OPERATIONS), dynamic=False)
        hold("compiled operations", part(), run(COMPILED_OPERATIONS, numbers.double()), 2e-4)
        bench.add(case, "torch_compiled", part, COMPILED_OPERATIONS)
    if "graph" in modes:
        graph = capture(run)
        bench.add(case, "torch_graph", graph.replay, OPERATIONS)


def recurrent_step(state, weight, rate, x):
    """steps.c: h' = h + a (tanh(h W + x) - h)."""
    return state + rate * (torch.tanh(state @ weight + x) - state)


def step(bench, modes, batch, hidden):
    scale = torch.tensor(0.9 * math.sqrt(3.0 / hidden), dtype=torch.float32)

    def make(seed, *shape):
        count = math.prod(shape)
        return torch.tensor(Series(seed).floats(count), dtype=torch.float32).reshape(shape)

    weight = make(21, hidden, hidden) * scale
    rate = 0.5 + 0.25 * make(22, 1, hidden)
    inputs = [make(100 + i, batch, hidden) for i in range(RING)]
    exact = torch.zeros(batch, hidden, dtype=torch.float64)
    for i in range(3 * RING):
        exact = recurrent_step(exact, weight.double(), rate.double(), inputs[i % RING].double())
    weight, rate = weight.to(bench.device), rate.to(bench.device)
    inputs = [x.to(bench.device) for x in inputs]
    case = f"step, batch {batch}, hidden {hidden}"
    state = torch.zeros(batch, hidden, device=bench.device)

    def runner(function):
        place = [torch.zeros(batch, hidden, device=bench.device)]

        def run():
            h = place[0]
            for x in inputs:
                h = function(h, weight, rate, x)
            place[0] = h

        for _ in range(3):
            run()
        hold(case, place[0], exact, 1e-4)
        return run

    if "eager" in modes:
        bench.add(case, "torch_eager", runner(recurrent_step), RING)
    if "compiled" in modes:
        torch._dynamo.reset()
        compiled = torch.compile(recurrent_step, dynamic=False)
        bench.add(case, "torch_compiled", runner(compiled), RING)
    if "graph" in modes:
        # RING steps in place: the inputs' memory is the graph's, nothing is copied to it.
        def ring():
            h = state
            for x in inputs:
                h = recurrent_step(h, weight, rate, x)
            state.copy_(h)

        graph = capture(ring)
        state.zero_()
        for _ in range(3):
            graph.replay()
        hold(case + ", graph", state, exact, 1e-4)
        bench.add(case, "torch_graph", graph.replay, RING)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--modes", default="", help="of eager,compiled,graph; all without it")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    modes = options.modes.split(",") if options.modes else ["eager", "compiled", "graph"]
    modes = [mode for mode in modes if cuda or mode != "graph"]
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    bench = Bench(options)
    with torch.inference_mode():
        chain(bench, modes)
        for batch in BATCHES:
            for hidden in HIDDEN:
                step(bench, modes, batch, hidden)
    name = torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"suite": "torch_sequential", "torch": torch.__version__,
                       "device": {"name": name, "type": bench.device.type},
                       "threads": options.threads, "load": os.getloadavg()[0],
                       "compiled_operations": COMPILED_OPERATIONS, "rows": bench.rows},
                      file, indent=1)


if __name__ == "__main__":
    main()
