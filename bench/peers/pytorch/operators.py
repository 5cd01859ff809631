#!/usr/bin/env python3
"""cells of hal-bench operators in PyTorch, for its --join.

    hal-bench operators --list >cells.json
    python3 bench/peers/pytorch/operators.py --device cpu --threads 1 --cells cells.json --json torch.json
    hal-bench operators --device cpu --threads 1 --join torch.json

The same shapes, eager; on the cpu convolutions are oneDNN's. TF32 is off.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import sys

import torch
from torch.nn import functional

from cells import main

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def image(bench, cell, is_last):
    n, c, h, w = cell["numbers"][:4]
    x = torch.rand((n, c, h, w), device=bench.device, dtype=TYPES[cell["type"]]) * 2 - 1
    return x.to(memory_format=torch.channels_last) if is_last else x


def vector(bench, cell, count):
    return torch.rand(count, device=bench.device, dtype=TYPES[cell["type"]]) * 2 - 1


def convolution(bench, cell):
    _, c, _, _, o, window, stride, padding, groups, last = cell["numbers"]
    x, bias = image(bench, cell, last), vector(bench, cell, o)
    w = vector(bench, cell, o * c // groups * window * window)
    w = w.reshape(o, c // groups, window, window)
    w = w.to(memory_format=torch.channels_last) if last else w
    return lambda: functional.conv2d(x, w, bias, stride, padding, 1, groups)


def gradient(bench, cell, function):
    n, c, height, width, o, window, stride, padding, groups, last = cell["numbers"]
    x = image(bench, cell, last)
    w = vector(bench, cell, o * c // groups * window * window)
    w = w.reshape(o, c // groups, window, window)
    places = [(length + 2 * padding - window) // stride + 1 for length in (height, width)]
    dy = vector(bench, cell, n * o * places[0] * places[1]).reshape(n, o, *places)
    if last:
        w, dy = (t.to(memory_format=torch.channels_last) for t in (w, dy))
    wanted = [function == "input", function == "weights", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, wanted)


def convolution_input(bench, cell):
    return gradient(bench, cell, "input")


def convolution_weights(bench, cell):
    return gradient(bench, cell, "weights")


def pooling(function):
    def make(bench, cell):
        _, _, _, _, _, window, stride, padding, _, last = cell["numbers"]
        x = image(bench, cell, last)
        return lambda: function(x, window, stride, padding)
    return make


def average_pool(x, window, stride, padding):
    return functional.avg_pool2d(x, window, stride, padding, count_include_pad=False)


def batch_norm(bench, cell):
    c = cell["numbers"][1]
    x, weight, bias = image(bench, cell, False), vector(bench, cell, c), vector(bench, cell, c)
    return lambda: functional.batch_norm(x, None, None, weight, bias, True)


def group_norm(bench, cell):
    c, groups = cell["numbers"][1], cell["numbers"][8]
    x, weight, bias = image(bench, cell, False), vector(bench, cell, c), vector(bench, cell, c)
    return lambda: functional.group_norm(x, groups, weight, bias)


def lines(bench, cell):
    return vector(bench, cell, cell["numbers"][0] * cell["numbers"][1]).reshape(
        cell["numbers"][:2])


def sort(bench, cell):
    x = lines(bench, cell)
    return lambda: torch.sort(x, stable=True)


def top(bench, cell):
    x, count = lines(bench, cell), cell["numbers"][2]
    return lambda: torch.topk(x, count)


def scatter_add(bench, cell):
    rows, length, count = cell["numbers"][:3]
    y, updates = lines(bench, cell), vector(bench, cell, count * length).reshape(count, length)
    picks = torch.randint(0, rows, (count, length), device=bench.device)
    return lambda: torch.scatter_add(y, 0, picks, updates)


def index_add(bench, cell):
    rows, length, count = cell["numbers"][:3]
    y, updates = lines(bench, cell), vector(bench, cell, count * length).reshape(count, length)
    picks = torch.randint(0, rows, (count,), device=bench.device)
    return lambda: torch.index_add(y, 0, picks, updates)


OPERATIONS = {"convolution": convolution, "convolution_input": convolution_input,
              "convolution_weights": convolution_weights, "max_pool": pooling(functional.max_pool2d),
              "average_pool": pooling(average_pool), "batch_norm": batch_norm,
              "group_norm": group_norm, "sort": sort, "top": top, "scatter_add": scatter_add,
              "index_add": index_add}


def measure(bench, cell, _listed, modes, _compile_end):
    if "eager" in modes:
        bench.add(cell["case"], "torch", OPERATIONS[cell["operation"]](bench, cell), 1)


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with torch.inference_mode():
        sys.exit(main(__doc__, "operators", "eager", measure))
