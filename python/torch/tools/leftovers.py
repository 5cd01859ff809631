"""Whether training leaves anything behind: what a process has after 100 steps of a network, and after many.

leftovers.py [--steps N] [CASE ...]

Arrays and deferred ones, file descriptors and threads are the same after both, and the bytes that the device
keeps have grown by at most a tenth: the pool settles over some hundred steps. Exits with 1 otherwise. The
device is the first of HAL_BACKEND.
"""
import argparse
import gc
import os
import sys

import torch
from torch import nn
import torch.nn.functional as F

import torch_halyard  # noqa: F401

WARM = 100


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.cells, self.out = nn.Embedding(50, 24), nn.LSTM(24, 24, 2), nn.Linear(24, 50)

    def forward(self, i):
        return self.out(self.cells(self.tokens(i))[0])


def perceptron():
    return nn.Sequential(nn.Linear(20, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 5)), torch.rand(16, 20), 5


def words():
    return Words(), torch.randint(50, (7, 6)), 50


def convolutions():
    layers = (nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, 2, 1),
              nn.Dropout(0.1), nn.Flatten(), nn.Linear(32, 4))
    return nn.Sequential(*layers), torch.rand(8, 2, 8, 8), 4


CASES = {"perceptron": perceptron, "words": words, "convolutions": convolutions}


def counts():
    """What the process has now."""
    gc.collect()
    torch.halyard.synchronize()
    now = {name: value for name, value in torch.halyard.statistics().items() if name in ("arrays", "deferred")}
    now["descriptors"] = len(os.listdir("/proc/self/fd"))
    now["threads"] = len(os.listdir("/proc/self/task"))
    now["bytes"] = torch.halyard.memory_reserved()
    return now


def leftovers(first, last):
    """The names of what has grown."""
    return [name for name, value in first.items()
            if last[name] > (value * 1.1 if name == "bytes" else value)]


def training(name):
    """A step of a case with Adam, whose loss is read at every tenth only."""
    torch.manual_seed(1)
    model, data, classes = CASES[name]()
    model, data = model.to("halyard"), data.to("halyard")
    labels = (torch.arange(model(data).numel() // classes) % classes).to("halyard")
    optimizer, done = torch.optim.Adam(model.parameters(), lr=1e-3), 0

    def step():
        nonlocal done
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data).flatten(0, -2), labels)
        loss.backward()
        optimizer.step()
        done += 1
        return loss.item() if done % 10 == 0 else None
    return step


def measure(name, steps, warm=WARM):
    """The counts after the first steps and after all."""
    step, answers = training(name), []
    for count in (warm, steps - warm):
        for _ in range(count):
            step()
        answers.append(counts())
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.cases or CASES:
        first, last = measure(name, arguments.steps)
        found = leftovers(first, last)
        failed |= bool(found)
        print(f"{name}: after {WARM} and {arguments.steps} steps")
        for what, value in first.items():
            print(f"  {what}: {value} {last[what]}{' LEFT' if what in found else ''}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
