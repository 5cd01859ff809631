#!/usr/bin/env python3
"""torch_grid.py: cells of hal-bench grid in PyTorch, for its --join.

    hal-bench grid --list --seed 1 >cells.json
    python3 ops/bench/torch_grid.py --device cuda --cells cells.json --json torch.json
    hal-bench grid --device cuda --seed 1 --join torch.json

Each cell eager and compiled by torch.compile, on random elements in the same layout. A normalisation
along the last axis is PyTorch's own function. No cell is compiled after --compile-seconds.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import argparse
import json
import os
import sys
import time

import torch
from torch.nn import functional

from torch_sequential import Bench

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
EPSILON, LEAST = 1e-5, 1e-12


def layer_norm(x, axis):
    if axis == x.dim() - 1:
        return functional.layer_norm(x, (x.shape[-1],), eps=EPSILON)
    d = x - x.mean(axis, keepdim=True)
    return d * torch.rsqrt(d.square().mean(axis, keepdim=True) + EPSILON)


def rms_norm(x, axis):
    if axis == x.dim() - 1 and hasattr(functional, "rms_norm"):
        return functional.rms_norm(x, (x.shape[-1],), eps=EPSILON)
    return x * torch.rsqrt(x.square().mean(axis, keepdim=True) + EPSILON)


# Of x, y and the axis; the names of grid_operations.c.
OPERATIONS = {
    "copy": lambda x, y, axis: x.clone(memory_format=torch.contiguous_format),
    "neg": lambda x, y, axis: -x,
    "exp": lambda x, y, axis: torch.exp(x),
    "tanh": lambda x, y, axis: torch.tanh(x),
    "gelu": lambda x, y, axis: functional.gelu(x),
    "add": lambda x, y, axis: x + y,
    "chain": lambda x, y, axis: torch.sigmoid(torch.relu(x * y + x)),
    "where": lambda x, y, axis: torch.where(x < y, x, -y),
    "sum": lambda x, y, axis: x.sum(axis),
    "mean": lambda x, y, axis: x.mean(axis),
    "max": lambda x, y, axis: x.amax(axis),
    "argmax": lambda x, y, axis: x.argmax(axis),
    "variance": lambda x, y, axis: torch.var(x, axis, correction=0),
    "softmax": lambda x, y, axis: torch.softmax(x, axis),
    "log_softmax": lambda x, y, axis: torch.log_softmax(x, axis),
    "layer_norm": lambda x, y, axis: layer_norm(x, axis),
    "rms_norm": lambda x, y, axis: rms_norm(x, axis),
    "l2_norm": lambda x, y, axis: functional.normalize(x, dim=axis, eps=LEAST),
    "gather": lambda x, y, axis: torch.index_select(x, axis, y),
    "concatenate": lambda x, y, axis: torch.cat((x, y), axis),
}
TRANSFERS = ("write", "read", "upload", "download")


def random_elements(bench, dtype, row):
    memory = torch.rand(row["shape"], device=bench.device, dtype=dtype) * 2 - 1
    return memory.permute(row["order"])


def operands(bench, cell):
    dtype, rows = TYPES[cell["type"]], cell["inputs"]
    x = random_elements(bench, dtype, rows[0])
    if len(rows) == 1:
        return x, None
    if cell["operation"] == "gather":
        return x, torch.randint(0, rows[0]["shape"][0], rows[1]["shape"], device=bench.device,
                                dtype=torch.int32)
    return x, random_elements(bench, dtype, rows[1])


def transfer(bench, cell):
    """Between the device and ordinary memory of the host, or page-locked memory."""
    there = random_elements(bench, TYPES[cell["type"]], cell["inputs"][0])
    is_locked = cell["operation"] in ("upload", "download") and bench.device.type == "cuda"
    here = torch.rand(there.shape, dtype=there.dtype, pin_memory=is_locked)
    target, source = (there, here) if cell["operation"] in ("write", "upload") else (here, there)
    bench.add(cell["case"], "torch_eager",
              lambda: target.copy_(source, non_blocking=is_locked), 1)


def measure(bench, cell, modes, compile_end):
    if cell["operation"] in TRANSFERS:
        if "eager" in modes:
            transfer(bench, cell)
        return
    function, axis = OPERATIONS[cell["operation"]], cell["axis"]
    x, y = operands(bench, cell)
    if "eager" in modes:
        bench.add(cell["case"], "torch_eager", lambda: function(x, y, axis), 1)
    if "compiled" in modes and time.perf_counter() < compile_end:
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, y: function(x, y, axis), dynamic=False)
        compiled(x, y)
        bench.add(cell["case"], "torch_compiled", lambda: compiled(x, y), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cells", required=True, help="what hal-bench grid --list printed")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--modes", default="eager,compiled", help="of eager,compiled")
    parser.add_argument("--filter", default="", help="words in the names of cells, with commas")
    parser.add_argument("--every", type=int, default=1, help="of N cells only the first")
    parser.add_argument("--compile-seconds", type=float, default=300.0,
                        help="after which no cell is compiled")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each figure")
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with open(options.cells, encoding="utf-8") as file:
        listed = json.load(file)
    words = options.filter.split(",")
    cells = [cell for cell in listed["cells"]
             if any(word in cell["case"] for word in words)][::options.every]
    bench, failed = Bench(options), 0
    compile_end = time.perf_counter() + options.compile_seconds
    with torch.inference_mode():
        for cell in cells:
            try:
                measure(bench, cell, options.modes.split(","), compile_end)
            except RuntimeError as error:  # of torch.compile, or out of memory
                print(f"{cell['case']}: {str(error).splitlines()[0]}", file=sys.stderr)
                failed += 1
            if bench.device.type == "cuda":
                torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"suite": "torch_grid", "torch": torch.__version__, "seed": listed["seed"],
                       "device": {"name": torch.cuda.get_device_name()
                                  if bench.device.type == "cuda" else "", "type": bench.device.type},
                       "threads": options.threads, "rows": bench.rows}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
