#!/usr/bin/env python3
"""programs of hal-bench kernels in PyTorch: the first calls of the same random shapes.

    hal-bench kernels --device cuda --random 200 --filter "lstm,attention,gpt,chain,gru,convnet"
    python3 bench/peers/pytorch/kernels.py --device cuda --random 200

Prints for each program the times of the first three shapes, of the slowest later one and of all, as
hal-bench does: each shape once, synchronised before and after the call.
"""
import argparse
import math
import time

import torch

MASK = (1 << 64) - 1


class Draw:
    """The sequence of bench_word and the lengths of bench/suites/kernels/cases.c."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & MASK

    def length(self, least, most):
        self.state ^= self.state << 13 & MASK
        self.state ^= self.state >> 7
        self.state ^= self.state << 17 & MASK
        unit = (self.state >> 11) * 2.0 ** -53
        low, high = math.log(least), math.log(most + 1.0)
        return min(max(int(math.exp(low + unit * (high - low))), least), most)


def lstm(draw, zeros):
    batch, width = draw.length(1, 128), draw.length(16, 512)
    x, h, c = (zeros(batch, width) for _ in range(3))
    of_x, of_h, bias = zeros(width, 4 * width), zeros(width, 4 * width), zeros(1, 4 * width)

    def step():
        keep, add, new, out = (x @ of_x + h @ of_h + bias).split(width, 1)
        cell = torch.sigmoid(keep) * c + torch.sigmoid(add) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(cell), cell
    return step


def attend(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def attention(draw, zeros):
    length = draw.length(1, 512)
    q, k, v = (zeros(8, length, 64).half() for _ in range(3))
    return lambda: attend(q, k, v)


def block(draw, zeros):
    length, width, heads = draw.length(1, 256), 64, 4
    x = zeros(length, width)
    gains = [zeros(width) for _ in range(4)]
    qkv, mix = zeros(width, 3 * width), zeros(width, width)
    up, down = zeros(width, 4 * width), zeros(4 * width, width)

    def step():
        y = torch.layer_norm(x, (width,), gains[0], gains[1]) @ qkv
        q, k, v = y.reshape(length, 3, heads, width // heads).permute(1, 2, 0, 3)
        y = x + attend(q, k, v).permute(1, 0, 2).reshape(length, width) @ mix
        wide = torch.layer_norm(y, (width,), gains[2], gains[3]) @ up
        return y + (wide * torch.sigmoid(wide)) @ down
    return step


def chain(draw, zeros):
    batch, before = draw.length(1, 256), draw.length(8, 256)
    middle, after = draw.length(8, 256), draw.length(2, 256)
    x, first, second = zeros(batch, before), zeros(before, middle), zeros(middle, after)
    biases = zeros(1, middle), zeros(1, after)
    return lambda: torch.softmax(torch.relu(x @ first + biases[0]) @ second + biases[1], -1)


def gru(draw, zeros):
    batch, width = draw.length(1, 128), draw.length(16, 512)
    x, h = zeros(batch, width), zeros(batch, width)
    of_x, of_h = zeros(width, 3 * width), zeros(width, 3 * width)

    def step():
        a, b = (x @ of_x).split(width, 1), (h @ of_h).split(width, 1)
        reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        new = torch.tanh(a[2] + reset * b[2])
        return new + update * (h - new)
    return step


def convnet(draw, zeros):
    batch, side = draw.length(1, 32), draw.length(5, 32)
    x, first, second = zeros(batch, 3, side, side), zeros(16, 3, 3, 3), zeros(32, 16, 3, 3)
    biases, last = (zeros(16), zeros(32)), zeros(32, 10)

    def step():
        y = torch.relu(torch.nn.functional.conv2d(x, first, biases[0]))
        y = torch.relu(torch.nn.functional.conv2d(y, second, biases[1]))
        return y.mean((-1, -2)) @ last
    return step


PROGRAMS = {"lstm step": lstm, "attention f16": attention, "gpt block": block, "chain": chain,
            "gru step": gru, "convnet": convnet}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--random", type=int, default=200, help="shapes of each program")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    synchronise = torch.cuda.synchronize if options.device != "cpu" else lambda: None

    def zeros(*shape):
        return torch.zeros(*shape, device=options.device)

    for name, program in PROGRAMS.items():
        draw, times = Draw(options.seed), []
        for _ in range(options.random):
            step = program(draw, zeros)
            synchronise()
            start = time.perf_counter()
            step()
            synchronise()
            times.append(1e3 * (time.perf_counter() - start))
        print(f"{name}: PyTorch {torch.__version__}; median us {1e3 * sorted(times)[len(times) // 2]:.1f}; "
              f"ms of the first three shapes {times[0]:.2f} {times[1]:.2f} {times[2]:.2f}, "
              f"slowest later {max(times[2:]):.2f}, total {sum(times):.0f}")


main()
