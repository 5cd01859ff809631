"""Trains a network on handwritten digits and tests it on digits of other writers.

    python -m halyard.demo [--device SELECTION] [--epochs N] [--seed N]
"""
import argparse
import csv
import pathlib
import time

import halyard as hx

WIDTHS = (64, 256, 128, 10)
BATCH, MOMENTUM, RATE, DECAY = 64, 0.9, 0.05, 1e-4


def read_digits(name):
    """Pictures [count, 64] from 0 to 1 and labels [count] of a file of the data."""
    here = pathlib.Path(__file__).resolve().parent
    folders = [here / "data", here.parents[1] / "examples/digits/data"]
    path = next(folder / name for folder in folders if (folder / name).exists())
    with open(path, newline="") as file:
        rows = [[int(field) for field in row] for row in csv.reader(file)]
    pictures = hx.asarray([[v / 16 for v in row[:64]] for row in rows])
    return pictures, hx.asarray([row[64] for row in rows])


def make_network(seed):
    """Weights and biases of each layer, and the last change of each."""
    layers = []
    for i, (n, m) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        w = hx.random_normal((n, m), seed=seed, stream=i, deviation=(2 / n) ** 0.5)
        layers.append([w, hx.zeros((1, m)), hx.zeros((n, m)), hx.zeros((1, m))])
    return layers


def forward(layers, x):
    """The input of each layer, and the values of the last one."""
    inputs = []
    for i, (w, b, _, _) in enumerate(layers):
        inputs.append(x)
        x = x @ w + b
        x = hx.relu(x) if i + 1 < len(layers) else x
    return inputs, x


def step(layers, x, targets, rate):
    """Changes the network by one batch; returns the mean of the loss."""
    inputs, values = forward(layers, x)
    logarithm = hx.log_softmax(values)
    loss = -hx.sum(targets * logarithm) / x.shape[0]
    slope = (hx.exp(logarithm) - targets) / x.shape[0]
    for i in reversed(range(len(layers))):
        w, b, w_change, b_change = layers[i]
        w_slope = inputs[i].T @ slope + DECAY * w
        b_slope = hx.sum(slope, axis=0, keepdims=True)
        if i > 0:
            slope = hx.where(inputs[i] > 0, slope @ w.T, 0.0)
        w_change = MOMENTUM * w_change - rate * w_slope
        b_change = MOMENTUM * b_change - rate * b_slope
        layers[i] = [w + w_change, b + b_change, w_change, b_change]
    hx.evaluate(loss, *(array for layer in layers for array in layer))
    return loss


def accuracy(layers, pictures, labels):
    """The share of pictures whose digit is the greatest value."""
    _, values = forward(layers, pictures)
    return hx.count_nonzero(hx.argmax(values, axis=1) == labels).item() / labels.size


def train(epochs, seed, report=print):
    """Trains for some epochs; returns the accuracy on the digits of other writers."""
    pictures, labels = read_digits("train.csv")
    tests, test_labels = read_digits("test.csv")
    targets = hx.astype(hx.expand_dims(labels, axis=1) == hx.arange(10), hx.float32)
    layers = make_network(seed)
    count = labels.size // BATCH * BATCH
    for epoch in range(epochs):
        order = hx.argsort(hx.random_uniform(labels.size, seed=seed, stream=100 + epoch))
        x, y = hx.take(pictures, order, axis=0), hx.take(targets, order, axis=0)
        rate = RATE * (1 - epoch / epochs)
        for start in range(0, count, BATCH):
            loss = step(layers, x[start:start + BATCH], y[start:start + BATCH], rate)
        if report:
            report(f"epoch {epoch + 1:2}: loss {loss:.4f}, "
                   f"accuracy {accuracy(layers, tests, test_labels):.4f}")
    return accuracy(layers, tests, test_labels)


def main():
    parser = argparse.ArgumentParser(prog="python -m halyard.demo", description=__doc__)
    parser.add_argument("--device", default=None, help="such as cpu, vulkan or opencl:0")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with hx.Device(arguments.device) as device:
        print(f"{device}: {device.info()['name']}")
        begin = time.monotonic()
        result = train(arguments.epochs, arguments.seed)
        print(f"accuracy {result:.4f} on 1797 digits of other writers, "
              f"{time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()
