#!/usr/bin/env python3
"""random convolutions of Halyard and PyTorch, in turns in one process, on processors.

    python3 bench/peers/pytorch/convolution.py --seed 1 --random 80 --threads 1

In F32, strict, of one to three axes: dense, with groups, depthwise, transposed; windows, steps,
dilation and padding at random, channels second or last; with --gradients also by the input and by
the weights. Worst ratio (the time of PyTorch over that of Halyard) first. turns.py says how times
are taken.
"""
import random
import sys

import torch

import turns
from library import convolution_options, numbers

MOST_MULTIPLIED, LEAST_MULTIPLIED, MOST_ELEMENTS = 3e8, 2e5, 4e6
SIDES = {1: (16, 20000), 2: (5, 256), 3: (4, 48)}
WINDOWS = {1: 25, 2: 7, 3: 5}


def logarithmic(draw, least, most):
    """A number whose logarithm is uniform."""
    return int(least * ((most + 1) / least) ** draw.random())


def volume(lengths):
    product = 1
    for length in lengths:
        product *= length
    return product


def draw_channels(draw, kind):
    """Groups, and of one group channels of the input and of the result."""
    if kind == "depthwise":
        return logarithmic(draw, 2, 1024), 1, draw.choice([1, 1, 1, 2])
    if kind == "groups":
        return 2 ** draw.randint(1, 6), logarithmic(draw, 2, 32), logarithmic(draw, 1, 32)
    return 1, logarithmic(draw, 1, 512), logarithmic(draw, 1, 512)


def draw_shape(draw, transposed):
    rank = draw.choice([1, 2, 2, 2, 3])
    kind = draw.choice(["dense", "dense", "groups", "depthwise"])
    groups, inputs, outputs = draw_channels(draw, kind)
    least, most = SIDES[rank]
    side = logarithmic(draw, least, most)
    lengths = [side if draw.random() < 0.6 else logarithmic(draw, least, most)
               for _ in range(rank)]
    size = draw.randint(1, WINDOWS[rank])
    window = [size if draw.random() < 0.8 else draw.randint(1, WINDOWS[rank])
              for _ in range(rank)]
    stride = draw.choice([1, 1, 2, 2, 3]) if size > 1 or not transposed else 1
    dilation = draw.choice([1, 1, 1, 1, 2])
    padding = [draw.choice([0, 1, 1]) * ((k - 1) * dilation // 2) for k in window]
    return {"rank": rank, "kind": kind, "transposed": transposed, "images": logarithmic(draw, 1, 8),
            "groups": groups, "inputs": inputs, "outputs": outputs, "lengths": lengths,
            "window": window, "stride": [stride] * rank, "dilation": [dilation] * rank,
            "padding": padding, "last": rank > 1 and draw.random() < 0.35}


def last_axis(cell, tensor):
    """A tensor of images in the order of axes that the cell's arrays have."""
    return tensor.movedim(1, -1) if cell["last"] else tensor


def places(cell):
    """Lengths of the result; of a transposed convolution those of its input's gradient."""
    result = []
    for length, k, s, d, p in zip(*(cell[name] for name in (
            "lengths", "window", "stride", "dilation", "padding"))):
        reach = (k - 1) * d
        result.append((length - 1) * s + reach + 1 - 2 * p if cell["transposed"]
                      else (length + 2 * p - reach - 1) // s + 1)
    return result


def fits(cell):
    of_result = places(cell)
    if min(of_result) < 1:
        return False
    images, groups = cell["images"], cell["groups"]
    elements = images * groups * max(cell["inputs"] * volume(cell["lengths"]),
                                     cell["outputs"] * volume(of_result))
    count = images * groups * cell["inputs"] * cell["outputs"] * volume(cell["window"])
    count *= volume(cell["lengths"] if cell["transposed"] else of_result)
    return elements <= MOST_ELEMENTS and LEAST_MULTIPLIED <= count <= MOST_MULTIPLIED


def name_of(cell, function):
    def text(values):
        return "x".join(str(value) for value in values)
    groups = cell["groups"]
    kind = f"{groups} groups" if cell["kind"] == "groups" else cell["kind"]
    return (f"{function} {kind}{' transposed' if cell['transposed'] else ''}"
            f"{' last' if cell['last'] else ''} {cell['images']}x{groups * cell['inputs']} "
            f"{text(cell['lengths'])} to {groups * cell['outputs']}, window {text(cell['window'])} "
            f"step {cell['stride'][0]} dilation {cell['dilation'][0]} "
            f"padding {text(cell['padding'])}")


def draw_cells(options):
    draw, cells = random.Random(options.seed), []
    functions = ["result", "input", "weights"] if options.gradients else ["result"]
    while len(cells) < options.random:
        cell = draw_shape(draw, draw.random() < 0.15)
        if not fits(cell):
            continue
        function = draw.choice(["result"] if cell["transposed"] else functions)
        cells.append(cell | {"function": function, "case": name_of(cell, function)})
    return cells


def operands(cell):
    """x, the weights, the bias and the gradient of the result, in PyTorch's order of axes."""
    channels = cell["groups"] * cell["inputs"], cell["groups"] * cell["outputs"]
    weights = (channels[0], cell["outputs"]) if cell["transposed"] else (channels[1],
                                                                         cell["inputs"])
    x = torch.rand(cell["images"], channels[0], *cell["lengths"]) * 2 - 1
    w = torch.rand(*weights, *cell["window"]) * 2 - 1
    dy = torch.rand(cell["images"], channels[1], *places(cell)) * 2 - 1
    if cell["last"]:
        order = {2: torch.channels_last, 3: torch.channels_last_3d}[cell["rank"]]
        x, w, dy = (t.to(memory_format=order) for t in (x, w, dy))
    return x, w, torch.rand(channels[1]) * 2 - 1, dy


def peer(cell, x, w, bias, dy):
    """PyTorch's call."""
    settings = (cell["stride"], cell["padding"], cell["dilation"], cell["transposed"],
                [0] * cell["rank"])
    if cell["function"] == "result":
        return lambda: torch.convolution(x, w, bias, *settings, cell["groups"])
    of_input = cell["function"] == "input"
    wanted = [of_input, not of_input, False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, *settings, cell["groups"], wanted)[0 if of_input else 1]


def ours(cell, library, x, w, bias, dy):
    """The same by Halyard."""
    options = convolution_options(cell)
    if cell["function"] == "input":
        lengths = numbers(cell["lengths"])
        return lambda: library.convolution_transposed(options, dy, w, None, lengths)
    if cell["function"] == "weights":
        window = numbers(cell["window"])
        return lambda: library.convolution_weights(options, x, dy, window)
    if cell["transposed"]:
        return lambda: library.convolution_transposed(options, x, w, bias, None)
    return lambda: library.convolution(options, x, w, bias)


def measure(state, cell):
    library, tensors = state.library, operands(cell)
    theirs = peer(cell, *tensors)
    expected = theirs()
    arrays = [library.array(last_axis(cell, tensor) if i in (0, 3) else tensor)
              for i, tensor in enumerate(tensors)]
    make = ours(cell, library, *arrays)
    found = torch.empty(last_axis(cell, expected).shape if cell["function"] != "weights"
                        else expected.shape)
    with library.scope():
        library.read(make(), found)
    if cell["function"] != "weights":
        expected = last_axis(cell, expected)
    state.add(cell["case"], lambda: library.compute(lambda: [make()]), theirs, [found], [expected])
    library.release(arrays)


if __name__ == "__main__":
    parser = turns.parser(__doc__)
    parser.add_argument("--gradients", action="store_true",
                        help="also gradients by the input and the weights")
    given = parser.parse_args()
    with torch.inference_mode():
        sys.exit(turns.main(given, draw_cells(given), measure))
