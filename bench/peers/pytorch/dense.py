#!/usr/bin/env python3
"""cells of hal-bench dense in PyTorch, for its --join.

    hal-bench dense --list >cells.json
    python3 bench/peers/pytorch/dense.py --device cuda --cells cells.json --json torch.json
    hal-bench dense --device cuda --join torch.json

Each cell eager, as a CUDA graph and compiled by torch.compile (of inference, a CUDA graph of the
compiled function). TF32 is on for the precision fast alone. No cell is compiled after
--compile-seconds.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import math
import sys
import time

import torch

from cells import main
from sequential import capture

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Network:
    def __init__(self, bench, cell, rate):
        self.rate, hidden = rate, cell["hidden"]
        scale = 2.0 ** round(math.log2(math.sqrt(6.0 / hidden)))

        def make(factor, *shape):
            memory = torch.rand(shape, device=bench.device, dtype=TYPES[cell["type"]])
            return (memory * 2 - 1) * factor

        self.x = make(1.0, cell["batch"], hidden)
        self.target = make(1.0, cell["batch"], hidden)
        self.layers = [(make(scale, hidden, hidden), make(0.125, hidden))
                       for _ in range(cell["layers"])]

    def forward(self):
        h = self.x
        for weight, bias in self.layers:
            h = torch.relu(torch.addmm(bias, h, weight))
        return h

    def train(self):
        """The mean of the squared differences, and a step of gradient descent in place."""
        parameters = [p for layer in self.layers for p in layer]
        for p in parameters:
            p.requires_grad_(True)
            p.grad = None
        loss = (self.forward() - self.target).square().mean()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-self.rate)


def measure(bench, cell, listed, modes, compile_end):
    network, name = Network(bench, cell, listed["rate"]), cell["case"]
    torch.backends.cuda.matmul.allow_tf32 = cell["precision"] == "fast"
    step = network.train if cell["training"] else network.forward
    has_graphs = bench.device.type == "cuda"
    with torch.inference_mode(not cell["training"]):
        if "eager" in modes:
            bench.add(name, "torch_eager", step, 1)
        if "graph" in modes and has_graphs:
            bench.add(name, "torch_graph", capture(step).replay, 1)
        if "compiled" in modes and time.perf_counter() < compile_end:
            torch._dynamo.reset()
            compiled = torch.compile(step, dynamic=False)
            for _ in range(3):
                compiled()
            run = capture(compiled).replay if has_graphs and not cell["training"] else compiled
            bench.add(name, "torch_compiled", run, 1)


if __name__ == "__main__":
    sys.exit(main(__doc__, "dense", "eager,graph,compiled", measure))
