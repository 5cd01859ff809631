"""Trains a network on handwritten digits with PyTorch: on halyard, next to PyTorch's processor.

    python -m torch_halyard.demo [--device halyard:0] [--epochs N] [--seed N]
"""
import argparse
import csv
import pathlib
import time

import torch
import torch_halyard  # noqa: F401, for PyTorch without the installed entry point
from torch import nn

BATCH = 64


def read_digits(name):
    """Pictures [count, 64] from 0 to 1 and labels [count] of a file of the data."""
    here = pathlib.Path(__file__).resolve().parent
    folders = [here / "data", *(up / "examples/digits/data" for up in here.parents)]
    path = next(folder / name for folder in folders if (folder / name).exists())
    with open(path, newline="") as file:
        rows = torch.tensor([[int(field) for field in row] for row in csv.reader(file)])
    return rows[:, :64] / 16, rows[:, 64]


def make_network(seed):
    """The same weights on every device: they are drawn on the processor."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 10))


def accuracy(network, pictures, labels):
    """The share of pictures whose digit has the greatest value."""
    with torch.no_grad():
        return (network(pictures).argmax(1) == labels).float().mean().item()


def train(device, epochs, seed):
    """Returns the accuracy on the digits of other writers and the seconds of the training."""
    pictures, labels = (t.to(device) for t in read_digits("train.csv"))
    tests, test_labels = (t.to(device) for t in read_digits("test.csv"))
    network = make_network(seed).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    order_of = torch.Generator().manual_seed(seed)
    begin = time.perf_counter()
    for _ in range(epochs):
        order = torch.randperm(len(labels), generator=order_of).to(device)
        for places in order.split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(pictures[places]), labels[places])
            loss.backward()
            optimizer.step()
    result = accuracy(network, tests, test_labels)
    return result, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for device in (arguments.device, "cpu"):
        name = torch.halyard.get_device_name(device) if device != "cpu" else "PyTorch's own"
        share, seconds = train(device, arguments.epochs, arguments.seed)
        print(f"{device} ({name}): {share:.2%} of the digits of other writers, {seconds:.2f} s")
    fallbacks = torch.halyard.fallbacks()
    print(f"operators that the processor computed for halyard: {fallbacks or 'none'}")


if __name__ == "__main__":
    main()
