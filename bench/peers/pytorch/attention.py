#!/usr/bin/env python3
"""cells of hal-bench attention in PyTorch, for its --join.

    hal-bench attention --list --seed 1 >cells.json
    python3 bench/peers/pytorch/attention.py --device cuda --cells cells.json --json torch.json
    hal-bench attention --device cuda --seed 1 --join torch.json

Each cell by scaled_dot_product_attention, with the kernel that PyTorch chooses; gradients by its
autograd, without the forward pass. TF32 is off.
"""
import sys

import torch
from torch.nn.functional import scaled_dot_product_attention

from cells import main

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def matrices(bench, cell, count, rows):
    shape = (1, count, rows, cell["d"])
    return (torch.rand(shape, device=bench.device) * 2 - 1).to(TYPES[cell["type"]])


def causal_mask(bench, cell):
    """As ours, where the last row has all columns; PyTorch's own starts at the first."""
    mask = torch.ones(cell["m"], cell["n"], device=bench.device, dtype=torch.bool)
    return mask.tril(cell["n"] - cell["m"])


def measure(bench, cell, _listed, _modes, _compile_end):
    q = matrices(bench, cell, cell["heads"], cell["m"])
    k = matrices(bench, cell, cell["groups"], cell["n"])
    v = matrices(bench, cell, cell["groups"], cell["n"])
    is_square = cell["m"] == cell["n"]
    options = {"is_causal": cell["causal"] and is_square,
               "attn_mask": causal_mask(bench, cell) if cell["causal"] and not is_square else None}
    if cell["heads"] != cell["groups"]:
        options["enable_gqa"] = True
    if not cell["gradients"]:
        with torch.inference_mode():
            bench.add(cell["case"], "torch_eager",
                      lambda: scaled_dot_product_attention(q, k, v, **options), 1)
        return
    inputs = [x.requires_grad_() for x in (q, k, v)]
    y = scaled_dot_product_attention(*inputs, **options)
    dy = torch.rand_like(y)
    bench.add(cell["case"], "torch_eager",
              lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True), 1)


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = False
    sys.exit(main(__doc__, "attention", "eager", measure))
