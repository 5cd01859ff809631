#!/usr/bin/env python3
"""programs of hal-bench mixes in PyTorch and NumPy, for its --join.

    hal-bench mixes --list --seed 1 >cells.json
    python3 bench/peers/pytorch/mixes.py --device cpu --threads 1 --cells cells.json --json torch.json
    hal-bench mixes --device cpu --threads 1 --seed 1 --join torch.json

The same operations on the same numbers, one call each; NumPy has one thread and runs on the host.
Programs in PyTorch are held to the same in float64, loosely, because errors grow with each operation.
Each figure: warmed up, synchronised, the median of repeated runs of at least 5 ms.
"""
import sys

import numpy
import torch

from cells import main
from sequential import Series

# The names of program.c.
TORCH = {"neg": torch.neg, "abs": torch.abs, "relu": torch.relu, "square": torch.square,
         "tanh": torch.tanh, "sin": torch.sin, "cos": torch.cos, "exp": torch.exp,
         "atan": torch.atan, "add": torch.add, "sub": torch.sub, "mul": torch.mul,
         "minimum": torch.minimum, "maximum": torch.maximum,
         "mean": lambda x, axis: torch.mean(x, axis, True),
         "max": lambda x, axis: torch.amax(x, axis, True),
         "min": lambda x, axis: torch.amin(x, axis, True)}
NUMPY = {"neg": numpy.negative, "abs": numpy.abs, "relu": lambda x: numpy.maximum(x, 0),
         "square": numpy.square, "tanh": numpy.tanh, "sin": numpy.sin, "cos": numpy.cos,
         "exp": numpy.exp, "atan": numpy.arctan, "add": numpy.add, "sub": numpy.subtract,
         "mul": numpy.multiply, "minimum": numpy.minimum, "maximum": numpy.maximum,
         "mean": lambda x, axis: numpy.mean(x, axis, keepdims=True),
         "max": lambda x, axis: numpy.max(x, axis, keepdims=True),
         "min": lambda x, axis: numpy.min(x, axis, keepdims=True)}


def program(cell, functions):
    """A function that runs the program on a list of arrays and returns what they are then."""
    steps = [(kind, functions.get(name), target, x, y, axis)
             for kind, name, target, x, y, axis in cell["operations"]]

    def run(inputs):
        variables = list(inputs)
        for kind, function, target, x, y, axis in steps:
            if kind == "binary":
                variables[target] = function(variables[x], variables[y])
            elif kind == "unary":
                variables[target] = function(variables[x])
            elif kind == "reduce":
                variables[target] = function(variables[x], axis)
            else:
                variables[x].item()
        return variables

    return run


def measure(bench, cell, _listed, modes, _compile_end):
    name, parts, numbers = cell["case"], len(cell["operations"]), []
    for i, axes in enumerate(cell["axes"]):
        shape = (cell["rows"] if axes & 1 else 1, cell["columns"] if axes & 2 else 1)
        values = Series(cell["seed"] + i).floats(shape[0] * shape[1])
        numbers.append(numpy.array(values, dtype=numpy.float32).reshape(shape))
    if "eager" in modes:
        run = program(cell, TORCH)
        with torch.inference_mode():
            x = [torch.from_numpy(one).to(bench.device) for one in numbers]
            for found, exact in zip(run(x), run([one.double() for one in x])):
                if not (found.double() - exact).abs().median().item() <= 1e-2:
                    raise RuntimeError("the results differ from those in float64")
            bench.add(name, "torch_eager", lambda: run(x), parts)
    if "numpy" in modes:
        run = program(cell, NUMPY)
        bench.add(name, "numpy", lambda: run(numbers), parts)


if __name__ == "__main__":
    sys.exit(main(__doc__, "mixes", "eager,numpy", measure))
