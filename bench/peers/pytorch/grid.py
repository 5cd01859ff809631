#!/usr/bin/env python3
"""cells of hal-bench grid in PyTorch, for its --join.

    hal-bench grid --list --seed 1 >cells.json
    python3 bench/peers/pytorch/grid.py --device cuda --cells cells.json --json torch.json
    hal-bench grid --device cuda --seed 1 --join torch.json

Each cell eager and compiled by torch.compile, on random elements in the same layout. A normalisation
along the last axis is PyTorch's own function. No cell is compiled after --compile-seconds.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import sys
import time

import torch
from torch.nn import functional

from cells import main

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


# Of x, y and the axis; the names of operations.c.
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


def measure(bench, cell, _listed, modes, compile_end):
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


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main(__doc__, "grid", "eager,compiled", measure))
