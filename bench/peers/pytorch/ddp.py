#!/usr/bin/env python3
"""training cells of hal-bench dense --ranks N by PyTorch's DistributedDataParallel.

    hal-bench dense --ranks 2 --list --filter "L8 B4096 H4096" >cells.json
    python3 bench/peers/pytorch/ddp.py --ranks 2 --cells cells.json --json ddp.json
    hal-bench dense --device cuda --ranks 2 --spread --filter "L8 B4096 H4096" --join ddp.json

A process for each rank, on a GPU of its own through NCCL, or on the cpu through Gloo (f32 alone).
Each rank has the cell's batch. Peers: torch_ddp, a step of all ranks with DDP, and torch_one, the same step on the
first rank without DDP while the others wait. TF32 is on for the precision fast alone.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms, of rank 0.
"""
import argparse
import json
import math
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
LEAST_RUN = 5e-3  # seconds
LEAST_RUNS, MOST_RUNS = 9, 201


class Layer(torch.nn.Module):
    def __init__(self, make, scale, hidden):
        super().__init__()
        self.weight = torch.nn.Parameter(make(scale, hidden, hidden))
        self.bias = torch.nn.Parameter(make(0.125, hidden))

    def forward(self, x):
        return torch.relu(torch.addmm(self.bias, x, self.weight))


class Training:
    """The mean of the squared differences, and a step of gradient descent in place."""

    def __init__(self, device, cell, rate, is_divided):
        hidden = cell["hidden"]
        scale = 2.0 ** round(math.log2(math.sqrt(6.0 / hidden)))

        def make(factor, *shape):
            memory = torch.rand(shape, device=device, dtype=TYPES[cell["type"]])
            return (memory * 2 - 1) * factor

        self.x = make(1.0, cell["batch"], hidden)
        self.target = make(1.0, cell["batch"], hidden)
        self.network = torch.nn.Sequential(*[Layer(make, scale, hidden)
                                             for _ in range(cell["layers"])])
        self.parameters = list(self.network.parameters())
        self.rate = rate
        if is_divided:
            self.network = torch.nn.parallel.DistributedDataParallel(
                self.network, device_ids=[device] if device.type == "cuda" else None,
                gradient_as_bucket_view=True)

    def step(self):
        for p in self.parameters:
            p.grad = None
        (self.network(self.x) - self.target).square().mean().backward()
        with torch.no_grad():
            torch._foreach_add_(self.parameters, [p.grad for p in self.parameters],
                                alpha=-self.rate)


class Rank:
    """A process of the group. What all ranks do next is decided by rank 0."""

    def __init__(self, rank, options):
        self.rank, self.seconds, self.rows = rank, options.seconds, []
        self.device = torch.device(options.device, rank) if options.device == "cuda" \
            else torch.device(options.device)

    def synchronise(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def once(self, run, calls):
        self.synchronise()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        self.synchronise()
        return time.perf_counter() - start

    def decide(self, choice, is_shared):
        """The choice of rank 0, which the others take over."""
        if not is_shared:
            return choice
        told = torch.tensor([choice], dtype=torch.int64, device=self.device)
        dist.broadcast(told, 0)
        return int(told.item())

    def time(self, run, is_shared):
        calls, taken, samples = 1, self.once(run, 1), []
        end = time.perf_counter() + 0.2
        while self.decide(taken < LEAST_RUN or time.perf_counter() < end, is_shared):
            calls = self.decide(calls * 2 if taken < LEAST_RUN else calls, is_shared)
            taken = self.once(run, calls)
        start = time.perf_counter()
        while self.decide(len(samples) < LEAST_RUNS or
                          (len(samples) < MOST_RUNS and
                           time.perf_counter() - start < self.seconds), is_shared):
            samples.append(self.once(run, calls) / calls)
        return samples, calls

    def add(self, case, peer, measured):
        samples, calls = measured
        quartiles = statistics.quantiles(samples, n=4)
        row = {"case": case, "peer": peer, "median_us": 1e6 * statistics.median(samples),
               "min_us": 1e6 * min(samples), "spread_us": 1e6 * (quartiles[2] - quartiles[0]),
               "runs": len(samples), "calls": calls}
        self.rows.append(row)
        return row["median_us"]

    def measure(self, cell, rate):
        torch.backends.cuda.matmul.allow_tf32 = cell["precision"] == "fast"
        torch.manual_seed(1 + self.rank)
        divided = Training(self.device, cell, rate, True)
        ranks = self.time(divided.step, True)
        sums = [torch.stack([p.detach().double().sum() for p in divided.parameters])]
        others = [torch.empty_like(sums[0]) for _ in range(dist.get_world_size())]
        dist.all_gather(others, sums[0])
        if not all(torch.equal(other, sums[0]) for other in others):
            raise RuntimeError("the ranks have different weights")
        del divided
        dist.barrier()
        if self.rank == 0:
            one = Training(self.device, cell, rate, False)
            us = self.add(cell["case"], "torch_ddp", ranks)
            alone = self.add(cell["case"], "torch_one", self.time(one.step, False))
            print(f"{cell['case']}: DDP {us:.1f} us, one rank {alone:.1f} us, "
                  f"efficiency {alone / us:.3f}", flush=True)
        dist.barrier()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def write(process, options):
    name = torch.cuda.get_device_name() if process.device.type == "cuda" else ""
    result = {"suite": "torch_ddp", "torch": torch.__version__, "ranks": options.ranks,
              "device": {"name": name, "type": process.device.type}, "rows": process.rows}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


def rank_main(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with open(options.cells, encoding="utf-8") as file:
        listed = json.load(file)
    words = options.filter.split(",")
    process = Rank(rank, options)
    if process.device.type == "cuda":
        torch.cuda.set_device(process.device)
    else:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // options.ranks))
    dist.init_process_group("nccl" if process.device.type == "cuda" else "gloo", rank=rank,
                            world_size=options.ranks)
    for cell in listed["cells"]:
        has_type = process.device.type == "cuda" or cell["type"] == "f32"  # Gloo lacks bf16
        if cell["training"] and has_type and any(word in cell["case"] for word in words):
            process.measure(cell, listed["rate"])
            if rank == 0 and options.json:  # a run that is ended early leaves what it measured
                write(process, options)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=["cuda", "cpu"],
                        default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cells", required=True,
                        help="what hal-bench dense --ranks N --list printed")
    parser.add_argument("--filter", default="", help="words in the names of cells, with commas")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each figure")
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(rank_main, (options, port), nprocs=options.ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
