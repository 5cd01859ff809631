#!/usr/bin/env python3
"""gradients of attention of Halyard and PyTorch, in turns in one process, on processors.

    python3 bench/peers/pytorch/attention_gradients.py --seed 1 --random 40 --threads 1

In F32, strict: dq, dk and dv of named and of random shapes, causal or not; PyTorch's kernel for
processors. With --forward the results instead. Worst ratio (the time of PyTorch over that of
Halyard) first. turns.py says how times are taken.
"""
import random
import sys

import torch

import turns

# Heads, queries, keys, elements of a head, causal.
NAMED = ((1, 64, 64, 64, False), (4, 256, 256, 64, False), (2, 512, 512, 64, False),
         (12, 128, 128, 64, True), (12, 197, 197, 64, False), (48, 32, 32, 32, False),
         (8, 1024, 1024, 64, True), (4, 1024, 1024, 128, False), (16, 1, 512, 64, False),
         (2, 2048, 2048, 64, True), (8, 77, 1024, 40, False), (1, 4096, 4096, 64, False))
# The type, and how far results may differ.
TYPES = {"f32": (torch.float32, 1e-4), "f16": (torch.float16, 4e-3), "bf16": (torch.bfloat16, 3e-2)}
MOST_SCORES, LEAST_SCORES = 2**24, 2**10

forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def logarithmic(draw, least, most):
    """A number whose logarithm is uniform."""
    return int(least * ((most + 1) / least) ** draw.random())


def draw_cell(draw):
    rows = logarithmic(draw, 8, 2048)
    is_square = draw.random() < 0.75
    return (logarithmic(draw, 1, 48), rows, rows if is_square else logarithmic(draw, 8, 2048),
            draw.choice((16, 32, 40, 64, 64, 80, 96, 128, 160)), is_square and draw.random() < 0.5)


def name_of(heads, rows, keys, size, causal):
    return f"{heads} x {rows} x {keys} x {size}{' causal' if causal else ''}"


def draw_cells(options):
    draw, shapes = random.Random(options.seed), list(NAMED)
    while len(shapes) < len(NAMED) + options.random:
        shape = draw_cell(draw)
        if LEAST_SCORES <= shape[0] * shape[1] * shape[2] <= MOST_SCORES:
            shapes.append(shape)
    return [{"case": name_of(*shape), "shape": shape, "forward": options.forward, "type": options.type}
            for shape in shapes]


def measure(state, cell):
    library, (heads, rows, keys, size, causal) = state.library, cell["shape"]
    dtype, most = TYPES[cell["type"]]
    q, dy = ((torch.rand(1, heads, rows, size) * 2 - 1).to(dtype) for _ in range(2))
    k, v = ((torch.rand(1, heads, keys, size) * 2 - 1).to(dtype) for _ in range(2))
    y, sums = forward(q, k, v, 0.0, causal)
    arrays = [library.array(x[0]) for x in (q, k, v, y, dy)]
    if cell["forward"]:
        def theirs():
            return [forward(q, k, v, 0.0, causal)[0]]

        def ours():
            return [library.attention(*arrays[:3], causal)]
    else:
        def theirs():
            return backward(dy, q, k, v, y, sums, 0.0, causal)

        def ours():
            return library.attention_gradients(*arrays, causal)
    expected = [x[0] for x in theirs()]
    with library.scope():
        found = [library.read(x, torch.empty(e.shape, dtype=dtype)) for x, e in zip(ours(), expected)]
    state.add(cell["case"], lambda: library.compute(ours), theirs, found, expected, most)
    library.release(arrays)


if __name__ == "__main__":
    parser = turns.parser(__doc__)
    parser.add_argument("--forward", action="store_true", help="the results, not the gradients")
    parser.add_argument("--type", choices=TYPES, default="f32")
    with torch.inference_mode():
        given = parser.parse_args()
        sys.exit(turns.main(given, draw_cells(given), measure))
